"""Kernel parameters that are textures, samplers and surfaces: nothing is passed; the driver binds a symbol and writes
its number to a word of bank 0. Compared with ptxas's cubin."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from orchestrator.api import compile_ptx
from tests import oracle
from tests.elf.reader import Cubin, info_records, load, read

HEAD = """.version 8.0
.target {arch}{mode}
.address_size 64
{declared}
.visible .entry k(.param .u32 z, .param .texref t, .param .u64 o, {more}, .param .u32 n, .param .texref t2)
{{ .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .f32 %f<9>;
   ld.param.u32 %r1, [n]; ld.param.u64 %rd2, [o];
   {body}
   st.global.u32 [%rd2], %r2; st.global.f32 [%rd2+8], %f1; st.global.f32 [%rd2+12], %f5; ret; }}
.visible .entry k2(.param .texref unused, .param .texref t) {{ ret; }}
"""
PLAIN = {
    "mode": "",
    "declared": ".global .texref g;",
    "more": ".param .surfref s",
    "body": """suld.b.1d.b32.trap {%r2}, [s, {%r1}]; mov.u64 %rd3, t; st.global.u64 [%rd2+16], %rd3; \
txq.width.b32 %r3, [t]; st.global.u32 [%rd2+24], %r3;
   tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [t2, {%r1}]; tex.1d.v4.f32.s32 {%f5,%f6,%f7,%f8}, [g, {%r1}];""",
}
APART = {
    "mode": ", texmode_independent",
    "declared": ".global .samplerref gs;",
    "more": ".param .samplerref sm",
    "body": """mov.u32 %r2, %r1;
   tex.1d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [t, sm, {%f1}]; tex.1d.v4.f32.f32 {%f5,%f6,%f7,%f8}, [t2, gs, {%f1}];""",
}


def facts(c: Cubin) -> dict[str, object]:
    """The facts by which the driver binds: symbols, relocated words, parameter records; names instead of numbers."""
    out: dict[str, object] = {
        "symbols": sorted(
            [(y.name, y.bind, y.type, c.sections[y.shndx].name) for y in c.symbols if y.type in (10, 11, 12)]
        )
    }
    for s in c.sections:
        if s.name.startswith((".rel.nv.constant0", ".rela.nv.constant0")):
            form, size = ("<QQ", 16) if s.type == 9 else ("<QQq", 24)
            rows = [struct.unpack_from(form, s.data, at) for at in range(0, len(s.data), size)]
            out[s.name] = sorted([(r[1] & 0xFFFFFFFF, c.symbols[r[1] >> 32].name) for r in rows])
        if s.name.startswith(".nv.info."):
            found = []
            for _, code, payload in info_records(s.data):
                if code == 0x17:
                    symbol, place, rest = struct.unpack("<III", payload)
                    found.append((c.symbols[symbol].name, place, rest))
                if code == 0x19:
                    found.append(("size", *payload))
            out[s.name] = found
    return out


@pytest.mark.oracle
@pytest.mark.parametrize("arch", ["sm_75", "sm_89", "sm_90", "sm_120"])
@pytest.mark.parametrize("kind", ["together", "apart"])
def test_they_are_bound_as_ptxas_binds_them(arch: str, kind: str) -> None:
    oracle.require("ptxas")
    text = HEAD.format(arch=arch if arch != "sm_120" else "sm_90", **(PLAIN if kind == "together" else APART))
    theirs = oracle.compile_ptx(text, arch)
    assert not isinstance(theirs, oracle.ToolError), theirs
    expected = facts(load(theirs))
    assert facts(read(compile_ptx(text, arch))) == expected
    assert any("t2" in str(row) for row in expected.values())


FACTS = {
    "txq": "channel_data_type channel_order normalized_coords array_size num_mipmap_levels num_samples",
    "suq": "channel_data_type channel_order array_size memory_layout",
    "samplers": "filter_mode addr_mode_0 addr_mode_1 addr_mode_2",
}


def queries(arch: str, apart: bool) -> tuple[str, int]:
    """A kernel that queries everything by names and by handles; the number of queries."""
    rows = [(op, fact, "t" if op == "txq" else "s") for op in ("txq", "suq") for fact in FACTS[op].split()]
    rows += [("txq", fact, "m" if apart else "t") for fact in FACTS["samplers"].split()]
    rows += [("txq", "force_unnormalized_coords", "m")] if apart else []
    body = [
        f"{op}.{fact}.b32 %r1, [{x}]; st.volatile.global.u32 [%rd2], %r1;"
        for op, fact, name in rows
        for x in (name, "%rd1")
    ]
    declared = ".global .texref t; .global .surfref s;" + (" .global .samplerref m;" if apart else "")
    return (
        f".version 9.0\n.target {arch}{', texmode_independent' * apart}\n.address_size 64\n{declared}\n"
        ".visible .entry k(.param .u64 o, .param .u64 h) { .reg .b32 %r<9>; .reg .b64 %rd<3>;\n"
        "ld.param.u64 %rd2, [o]; ld.param.u64 %rd1, [h];\n" + "\n".join(body) + "\nret; }\n"
    ), len(body)


def asked(cubin: Path, count: int) -> list[tuple[str, str]]:
    """Symbols of sizes, fields that are read, tables. ptxas adds the field before it loads."""
    c = load(cubin)
    (text,) = [s for s in c.sections if s.name.startswith((".rel.text", ".rela.text"))]
    form, size = ("<QQ", 16) if text.type == 9 else ("<QQq", 24)
    rows = sorted([struct.unpack_from(form, text.data, at)[:2] for at in range(0, len(text.data), size)])
    assert all(r[1] & 0xFFFFFFFF == 55 for r in rows)
    symbols = {c.symbols[r[1] >> 32].name for r in rows}
    code = oracle.nvdisasm(cubin, "-c")
    loads = re.findall(r"LDG\.E\.CONSTANT\S* R\d+, \S*\[R\d+[^\]+]*(?:\+UR\d+)?(?:\+(0x[0-9a-f]+))?\]", code)
    sums = re.findall(r"IMAD \S+, \S+, \S+, (0x[0-9a-f]+|URZ|RZ)", code)
    fields = sorted(
        [int(x or "0", 16) for x in loads] if any(loads) else [int(x, 16) if x[0] == "0" else 0 for x in sums]
    )
    tables = {x for x in re.findall(r"c\[0x0\]\[(0x[0-9a-f]+)\]", code) if int(x, 16) in TABLES}
    assert len(loads) == len(fields) == count
    return [("sizes", str(sorted(symbols))), ("fields", str(fields)), ("tables", str(sorted(tables)))]


#: Offsets in bank 0 that hold addresses of the driver's tables on some SM.
TABLES = (0x70, 0x78, 0x80, 0xF0, 0xF8, 0x100, 0x150, 0x158, 0x160)


@pytest.mark.oracle
@pytest.mark.parametrize(("arch", "apart"), [("sm_80", False), ("sm_75", True), ("sm_90", True), ("sm_120", False)])
def test_what_the_driver_knows_is_read_where_ptxas_reads_it(arch: str, apart: bool, tmp_path: Path) -> None:
    oracle.require("ptxas", "nvdisasm")
    text, count = queries(arch, apart)
    theirs = oracle.compile_ptx(text, arch, "-O1")
    assert not isinstance(theirs, oracle.ToolError), theirs
    (tmp_path / "own.cubin").write_bytes(compile_ptx(text, arch))
    assert asked(tmp_path / "own.cubin", count) == asked(theirs, count)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (".func f(.param .texref t) { ret; }", "Variable 't' cannot be allocated in .param state space"),
        (
            ".entry f(.param .texref t[2]) { ret; }",
            "Kernel parameter 't', an array of '.texref', is not supported by orias",
        ),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    with pytest.raises(Exception, match=said):
        compile_ptx(f".version 8.0\n.target sm_80\n.address_size 64\n.visible {text}\n", "sm_80")
