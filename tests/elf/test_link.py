"""The elf stage in isolation: hand-written records, relocations, padding, limits, bad input."""

from __future__ import annotations

import io
import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from ir_format.diag import CompileError
from ir_format.model import Code, Header, Module, Param, Reloc, Unit, Var
from ir_format.target import PARAM_MAX, SHARED_MAX, target, targets
from stages.elf.link import link
from stages.elf.report import resource_lines
from tests.elf.reader import info_records, read

NOP = (0x000FC000_00000000_00000000_00007918).to_bytes(16, "little")
EXIT = (0x000FEA00_03800000_00000000_0000794D).to_bytes(16, "little")
LDC = 0x00000A00_00000000_0000FF02_7B82  # LDC.64 R2, c[bank][offset], as sm_90 has it
ALL_SMS = tuple(targets())


def unit(name: str = "k", insts: int = 2, **attrs: object) -> Unit:
    u = Unit(name)
    u.code = [Code(name, "entry", NOP * (insts - 1) + EXIT, regs=10)]
    u.attrs.update(attrs)  # type: ignore[arg-type]
    return u


def module(*units: Unit, vars: tuple[Var, ...] = ()) -> Module:
    m = Module()
    m.units = [u.name for u in units]
    m.vars = list(vars)
    return m


def cubin(  # type: ignore[no-untyped-def]
    sm: str, *units: Unit, vars: tuple[Var, ...] = (), externs: tuple[str, ...] = ()
):
    m = module(*units, vars=vars)
    m.externs = list(externs)
    return read(link(Header("encoded", sm), m, list(units)))


def vadd() -> Unit:
    u = Unit("vadd")
    u.code = [Code("vadd", "entry", NOP * 5 + EXIT + NOP * 9 + EXIT, regs=10)]
    u.params = [Param("a", 0, 8, 8), Param("b", 8, 8, 8), Param("c", 16, 8, 8), Param("n", 24, 4, 4)]
    return u


def test_info_of_a_simple_kernel() -> None:
    """Bytes taken from a cubin for the same parameters, written here by hand."""
    c = cubin("sm_80", vadd())
    assert (
        c.section(".nv.info").data.hex()
        == "042f0800080000000c000000" + "041108000800000000000000" + "041208000800000000000000"
    )
    assert c.section(".nv.info.vadd").data.hex() == (
        "0437040082000000" + "01350000" + "040a08000400000060011c00" + "03191c00"
        + "04170c00000000000300180000f01100" + "04170c00000000000200100000f02100"
        + "04170c00000000000100080000f02100" + "04170c00000000000000000000f02100"
        + "031bff00" + "035f0000" + "041c080050000000f0000000"
    )  # fmt: skip
    c = cubin("sm_90a", vadd())
    assert (
        c.section(".nv.compat").data.hex()
        == "02090100020201000205050003070101" + "0203000002060100" + "040b08000000000000000000"
    )
    assert c.section(".nv.info.vadd").data.endswith(
        bytes.fromhex("03191c00" + "040a08000900000010021c00" + "0436040008000000")
    )


@pytest.mark.parametrize("sm", ALL_SMS)
def test_header_and_notes(sm: str) -> None:
    c = cubin(sm, unit())
    number = target(sm).sm
    assert c.raw[:16] == b"\x7fELF\x02\x01\x01\x41\x08" + bytes(7)
    assert (c.header[1], c.header[2], c.header[3]) == (2, 190, 1)
    assert c.header[7] == c.section(".note.nv.cuinfo").index << 24 | number << 8 | 4
    assert struct.unpack("<4H", c.section(".note.nv.cuinfo").data[-8:]) == (2, number, 0x82, 0)
    note = c.section(".note.nv.tkinfo").data
    assert b"orias" in note and b"ptxas, version" in note and b"-arch " + sm.encode() in note
    assert b"Cuda compilation tools" not in note
    assert len(note) == 24 + struct.unpack_from("<I", note, 4)[0]


@pytest.mark.parametrize("sm", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
def test_padding(sm: str) -> None:
    """BRA to itself, then NOPs to 128 bytes: at least 8 of them from sm_80 on."""
    for n in range(1, 20):
        text = cubin(sm, unit(insts=n)).section(".text.k").data
        words = [int.from_bytes(text[i : i + 16], "little") for i in range(0, len(text), 16)]
        assert len(text) % 128 == 0
        assert words[n] & 0xFFF == 0x947
        assert all(w == int.from_bytes(NOP, "little") for w in words[n + 1 :])
        pad = len(words) - n - 1
        assert (0 if sm == "sm_75" else 8) <= pad < (8 if sm == "sm_75" else 16)


def const_word(bank: int, offset: int) -> bytes:
    return (LDC | bank << 54 | offset << 38).to_bytes(16, "little")


VARS = (
    Var("g0", "global", 4, 4),
    Var("g1", "global", 8, 8, b"\1"),
    Var("c0", "const", 4, 4, b"\7\0\0\0"),
    Var("c1", "const", 16, 16, b"\1\2\3\4"),
)


def test_bank_relocations() -> None:
    u = unit()
    data = const_word(3, 4) + const_word(4, 0) + const_word(4, 4) + NOP + EXIT
    relocs = (
        Reloc(0, "bank3", "c1", 8),
        Reloc(16, "bank4", "g1"),
        Reloc(32, "bank4", "vprintf"),
        Reloc(48, "imm_off", "vprintf"),
    )
    u.code = [Code("k", "entry", data, relocs)]
    c = cubin("sm_90", u, vars=VARS, externs=("vprintf",))
    text = c.section(".text.k").data
    assert text[:16] == const_word(3, 16 + 4 + 8)
    assert text[16:32] == const_word(4, 16)
    assert text[32:48] == const_word(4, 4)
    assert struct.unpack_from("<I", text, 52)[0] == 0  # NOP with an immediate: the slot of vprintf
    assert c.section(".nv.constant3").data == b"\7\0\0\0" + bytes(12) + b"\1\2\3\4" + bytes(12)
    assert c.section(".nv.constant4").data == bytes(24)
    rows = [struct.unpack_from("<QIIq", c.section(".rela.nv.constant4").data, i) for i in (0, 24, 48)]
    assert [(at, kind, c.symbols[s].name, add) for at, kind, s, add in rows] == [
        (16, 2, "g1", 0),
        (8, 2, "g0", 0),
        (0, 2, "vprintf", 0),
    ]
    externs = [p for _, code, p in info_records(c.section(".nv.info.k").data) if code == 0x0F]
    assert [c.symbols[i].name for i in struct.unpack("<I", externs[0])] == ["vprintf"]


def test_uniform_load_constant_has_its_own_field() -> None:
    """LDCU of sm_100+ keeps the byte offset one bit lower (taken from the disassembler)."""
    word = 0x000E2E0008000A00_01000000FF0477AC  # LDCU.64 UR4, c[0x4][0x0]
    u = unit()
    u.code = [Code("k", "entry", word.to_bytes(16, "little") + EXIT, (Reloc(0, "bank4", "g1"),))]
    text = cubin("sm_120", u, vars=VARS).section(".text.k").data
    assert int.from_bytes(text[:16], "little") == word | 8 << 37  # g1 has the second slot


@pytest.mark.parametrize("sm", ["sm_75", "sm_89", "sm_90", "sm_120"])
def test_branch_relocations(sm: str) -> None:
    """Calls forward to a helper, back from it to the kernel, and between copies."""
    u = unit()
    call = (0x000FEA0003C00000_0000000000007944).to_bytes(16, "little")
    ret = (0x000FEA0003C00000_0000000002007950).to_bytes(16, "little")
    u.code = [
        Code("k", "entry", call + NOP + EXIT, (Reloc(0, "call", "h"), Reloc(16, "imm_lo", "f", 32))),
        Code("f", "func", NOP + call + ret, (Reloc(16, "call", "h"), Reloc(32, "call", "k"))),
        Code("h", "helper", ret, (Reloc(0, "call", "k"),)),
    ]
    c = cubin(sm, u)
    text = c.section(".text.k").data

    def target_of(at: int) -> int:
        w = int.from_bytes(text[at : at + 16], "little")
        value = w >> 34 & (1 << 48) - 1
        bits = 48
        if sm in ("sm_90", "sm_120"):
            value, bits = value << 8 | w >> 16 & 0xFF, 56
        value -= (value >> bits - 1) << bits
        return at + 16 + 4 * value

    assert [target_of(at) for at in (0, 64, 80, 96)] == [96, 96, 0, 0]
    assert struct.unpack_from("<I", text, 20)[0] == 48 + 32
    places = {s.name: (s.value, s.size) for s in c.symbols if s.type == 2}
    assert places == {"k": (0, len(text)), "$k$f": (48, 48), "$__internal_0_$h": (96, len(text) - 96)}


def test_worst_stack_follows_calls() -> None:
    u = unit()
    call = Reloc(0, "call", "a")
    u.code = [
        Code("k", "entry", NOP + NOP + EXIT, (call, Reloc(16, "call", "c")), frame=16),
        Code("a", "func", NOP + EXIT, (Reloc(0, "call", "b"), Reloc(16, "call", "k")), frame=8),
        Code("b", "func", EXIT, (), frame=64),
        Code("c", "func", EXIT, (), frame=32),
    ]
    assert resource_lines(Header("encoded", "sm_90"), module(u), [u])[4].endswith(", 88 bytes cumulative stack size")
    u.code[2] = Code("b", "func", EXIT, (call,), frame=64)  # recursion
    # measured: functions that take part in recursion count nothing, the others do
    assert resource_lines(Header("encoded", "sm_90"), module(u), [u])[4].endswith(", 48 bytes cumulative stack size")


def test_kernels_are_in_reverse_order_for_any_order_of_records() -> None:
    a, b, c = unit("a"), unit("b", 3), unit("c", 4)
    m = module(a, b, c)
    files = {link(Header("encoded", "sm_90"), m, list(order)) for order in ((a, b, c), (c, a, b), (b, c, a))}
    assert len(files) == 1
    assert [n for n in read(files.pop()).names() if n.startswith(".text")] == [".text.c", ".text.b", ".text.a"]


def test_same_bytes_under_any_hash_seed() -> None:
    program = (
        "import sys, hashlib; from tests.elf.test_link import *\n"
        "u = vadd(); v = unit('z', 9, barriers=2, shared=64); m = module(u, v, vars=VARS); "
        "m.externs = ['free', 'malloc', 'vprintf']\n"
        "v.attrs['externs'] = ('vprintf', 'free', 'malloc')\n"
        "print(hashlib.sha256(link(Header('encoded', 'sm_90'), m, [u, v])).hexdigest())"
    )
    root = Path(__file__).parents[2]
    got = set()
    for seed in ("0", "1", "77"):
        env = dict(os.environ, PYTHONHASHSEED=seed, PYTHONPATH=str(root))
        got.add(
            subprocess.run(
                [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env, cwd=root
            ).stdout
        )
    assert len(got) == 1


@pytest.mark.parametrize("sm", ["sm_75", "sm_90", "sm_110", "sm_120"])
def test_pyelftools_reads_it(sm: str) -> None:
    from elftools.elf.elffile import ELFFile

    u = vadd()
    v = unit("z", 9, barriers=2, shared=64)
    elf = ELFFile(io.BytesIO(link(Header("encoded", sm), module(u, v, vars=VARS), [u, v])))
    assert elf.num_segments() >= 4
    names = [s.name for s in elf.iter_sections()]
    assert ".text.vadd" in names and ".nv.shared.z" in names
    symbols = {s.name: s for s in elf.get_section_by_name(".symtab").iter_symbols()}
    assert symbols["g1"]["st_size"] == 8
    end = max(s["sh_offset"] + (0 if s["sh_type"] == "SHT_NOBITS" else s["sh_size"]) for s in elf.iter_sections())
    assert end <= elf.header["e_shoff"] and elf.header["e_phoff"] == elf.header["e_shoff"] + 64 * elf.num_sections()


REFUSED = {
    "offset outside": lambda u: setattr(u, "code", [Code("k", "entry", EXIT, (Reloc(16, "bank3", "c0"),))]),
    "offset odd": lambda u: setattr(u, "code", [Code("k", "entry", EXIT * 2, (Reloc(8, "bank3", "c0"),))]),
    "negative offset": lambda u: setattr(u, "code", [Code("k", "entry", EXIT, (Reloc(-16, "bank3", "c0"),))]),
    "unknown symbol": lambda u: setattr(u, "code", [Code("k", "entry", EXIT, (Reloc(0, "bank3", "nope"),))]),
    "global as constant": lambda u: setattr(u, "code", [Code("k", "entry", EXIT, (Reloc(0, "bank3", "g0"),))]),
    "unknown kind": lambda u: setattr(u, "code", [Code("k", "entry", EXIT, (Reloc(0, "what", "c0"),))]),
    "address of data": lambda u: setattr(u, "code", [Code("k", "entry", EXIT, (Reloc(0, "imm_lo", "g0"),))]),
    "call outside": lambda u: setattr(u, "code", [Code("k", "entry", EXIT, (Reloc(0, "call", "nope"),))]),
    "huge addend": lambda u: setattr(u, "code", [Code("k", "entry", EXIT, (Reloc(0, "bank3", "c0", 1 << 40),))]),
    "unaligned call": lambda u: setattr(u, "code", [Code("k", "entry", EXIT, (Reloc(0, "call", "k", 2),))]),
    "call too far": lambda u: setattr(u, "code", [Code("k", "entry", EXIT, (Reloc(0, "call", "k", 1 << 62),))]),
    "half an instruction": lambda u: setattr(u, "code", [Code("k", "entry", EXIT[:8])]),
    "no code": lambda u: setattr(u, "code", []),
    "no entry": lambda u: setattr(u, "code", [Code("k", "func", EXIT)]),
    "two of a name": lambda u: setattr(u, "code", [Code("k", "entry", EXIT), Code("k", "func", EXIT)]),
    "mark outside": lambda u: setattr(u, "code", [Code("k", "entry", EXIT, (), (), (("exit", 4096, 0),))]),
    "error travels": lambda u: u.diags.append(("error", "broken before", 3)),
    "relocatable": lambda u: setattr(u, "kind", "func"),
    "parameter place": lambda u: u.params.append(Param("p", -8, 8, 8)),
    "parameters too large": lambda u: u.params.append(Param("p", 0, PARAM_MAX + 1, 8)),
    "shared too large": lambda u: u.attrs.update(shared=SHARED_MAX + 1),
    "shared negative": lambda u: u.attrs.update(shared=-1),
    "barriers": lambda u: u.attrs.update(barriers=17),
    "shape of maxntid": lambda u: u.attrs.update(maxntid=(1, 2)),
    "type of maxntid": lambda u: u.attrs.update(maxntid="12"),
    "alignment": lambda u: u.attrs.update(dynamic_shared_align=3),
    "extern is a variable": lambda u: u.attrs.update(externs=("g0",)),
    "extern without a driver": lambda u: u.attrs.update(externs=("printf",)),
    "bank 2 slot": lambda u: (u.attrs.update(bank2=(0,)),
    setattr(u, "code", [Code("k", "entry", EXIT, (), (), (("bank2", 0, 4),))])),
    "linkage": lambda u: setattr(u, "linkage", "strange"),
    "surrogate in a name": lambda u: setattr(u, "code", [Code("k", "entry", EXIT), Code("\ud800", "func", EXIT)]),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("sm", ["sm_80", "sm_90"])
def test_bad_units_are_refused(what: str, sm: str) -> None:
    good = unit()
    link(Header("encoded", sm), module(good, vars=VARS), [good])
    bad = unit()
    REFUSED[what](bad)
    with pytest.raises(CompileError) as caught:
        link(Header("encoded", sm), module(bad, vars=VARS), [bad])
    assert caught.value.message


def test_variable_with_the_name_of_a_driver_function() -> None:
    u = unit(externs=("vprintf",))
    with pytest.raises(CompileError, match="both a variable and"):
        link(Header("encoded", "sm_90"), module(u, vars=(Var("vprintf", "global", 4, 4),)), [u])


def test_unresolved_function_is_named_as_ptxas_does() -> None:
    u = unit(externs=("helper",))
    with pytest.raises(CompileError, match=r"^Unresolved extern function 'helper'$") as caught:
        link(Header("encoded", "sm_90"), module(u), [u])
    assert caught.value.severity == "fatal"


BAD_VARS = {
    "twice": Var("g0", "global", 4, 4),
    "space": Var("v", "tex", 4, 4),
    "linkage": Var("v", "global", 4, 4, linkage="odd"),
    "alignment": Var("v", "global", 4, 3),
    "size": Var("v", "global", -4, 4),
    "more bytes than size": Var("v", "global", 1, 4, b"12345"),
    "pointer outside": Var("v", "global", 8, 8, b"1", ((4, "g0", 0, 0),)),
    "pointer to nothing": Var("v", "global", 8, 8, b"", ((0, "nope", 0, 0),)),
    "addend": Var("v", "global", 8, 8, b"", ((0, "g0", 1 << 70, 0),)),
    "bank overflow": Var("v", "const", 0x10000, 4),
    "memory bomb": Var("v", "global", 1 << 40, 4, b"1"),
    "empty name": Var("", "global", 4, 4),
    "kernel's name": Var("k", "global", 4, 4),
}


@pytest.mark.parametrize("what", BAD_VARS)
def test_bad_variables_are_refused(what: str) -> None:
    u = unit()
    with pytest.raises(CompileError):
        link(Header("encoded", "sm_90"), module(u, vars=(*VARS, BAD_VARS[what])), [u])


def test_module_and_units_must_agree() -> None:
    a, b = unit("a"), unit("b")
    for m, units in ((module(a), [a, b]), (module(a, b), [a]), (module(a), [a, a]), (module(a, a), [a])):
        with pytest.raises(CompileError):
            link(Header("encoded", "sm_90"), m, units)
    with pytest.raises(CompileError):
        link(Header("encoded", "sm_91"), module(a), [a])


def test_random_units_never_crash() -> None:
    """Seeded: records with random numbers either link or are refused; nothing else happens."""
    rng = random.Random(7)
    wild = (-1, 0, 1, 3, 8, 16, 100, 0xFFFF, 1 << 16, 1 << 31, (1 << 32) - 1, 1 << 40, -(1 << 62))
    names = ("k", "f", "g0", "c0", "vprintf", "", "a\0b", "x" * 300)
    kinds = (
        "bank3",
        "bank4",
        "imm_lo",
        "imm_hi",
        "imm_off",
        "call",
        "exit",
        "coop",
        "bank2",
        "brx_target",
        "syscall",
        "",
    )
    keys = (
        "shared",
        "barriers",
        "maxntid",
        "reqntid",
        "bank2",
        "externs",
        "min_stack",
        "isa_class",
        "crs_stack",
        "vrc_count",
        "visible",
    )
    linked = 0
    for _ in range(1500):
        u = unit()
        data = rng.randbytes(16 * rng.randrange(0, 5))
        relocs = tuple(
            Reloc(rng.choice((0, 16, rng.choice(wild))), rng.choice(kinds), rng.choice(names), rng.choice(wild))
            for _ in range(rng.randrange(3))
        )
        marks = tuple(
            (rng.choice(kinds), rng.choice((0, 16, rng.choice(wild))), rng.choice(wild))
            for _ in range(rng.randrange(3))
        )
        kind = rng.choice(("func", "helper", "entry"))
        if rng.random() < 0.8:
            u.code.append(
                Code(rng.choice(names), kind, data, relocs, (), marks, rng.choice((0, 20, 255)), rng.choice((0, 64)))
            )
        for _ in range(rng.randrange(3)):
            u.attrs[rng.choice(keys)] = rng.choice((rng.choice(wild), (1, 2, 3), ("a",), "text", (rng.choice(wild),)))
        m = module(u, vars=VARS)
        m.externs = ["vprintf"]
        if rng.random() < 0.3:
            rows = ((rng.choice(wild), rng.choice(names), rng.choice(wild), 0),)
            m.vars.append(
                Var(
                    rng.choice(names),
                    rng.choice(("global", "const", "shared")),
                    rng.choice(wild[:9]),
                    rng.choice(wild[:6]),
                    b"",
                    rows,
                )
            )
        header = Header("encoded", rng.choice(("sm_75", "sm_90", "sm_120")))
        try:
            linked += bool(read(link(header, m, [u])).sections)
            resource_lines(header, m, [u])
        except CompileError as e:
            assert e.message
    assert linked > 50
