"""Bulk copies, tensor maps, multicast objects and warpgroup products: our code against ptxas's, nvdisasm and the
schedule judge."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.flow import read_regs, written_regs
from ir_format.model import ZERO, Inst, Reg
from orchestrator.api import ChainError, compile_ptx
from stages.check.schedule_checker import check_bytes
from tests import oracle
from tests.isa.corpus import kernels
from tests.isa.coverage import check, code_words
from tests.lower.helpers import kernel, lower_text, names

PRODUCTS = ("HGMMA", "QGMMA", "IGMMA", "BGMMA")
_HEAD = (
    ".version 9.0\n.target sm_{sm}\n.address_size 64\n.extern .shared .align 16 .b8 smem[];\n.global .align 16 "
    ".b8 gmem[256];\n"
)
#: Instructions that we and ptxas must agree on, operand by operand.
_SHARED_NAMES = re.compile(r"UBLK|UTMA|UMEMSETS|LDGMC|[HQIB]GMMA|WARPGROUP|FENCE\.VIEW|DEPBAR|ATOMG\.E\.EXCH")


def texts(family: str, step: int) -> list[str]:
    """A sample of a family of the corpus."""
    return [t for _, t in kernels({family})][1::step]


def compiled(text: str, sm: str, level: int = 3) -> bytes | str:
    """Our cubin, or the chain's diagnostics."""
    try:
        return compile_ptx(_HEAD.format(sm=sm) + text, f"sm_{sm}", {"opt-level": level}, name="t.ptx")
    except ChainError as error:
        return str(error)


def decoded(cubin: bytes, sm: str, tmp: Path) -> list[Inst]:
    """The instructions of a cubin in order."""
    path = tmp / "ours.cubin"
    path.write_bytes(cubin)
    target = isa.target(sm)
    out = [target.decode(word, 0) for word in code_words(path)]
    assert all(out)
    return [i for i in out if isinstance(i, Inst)]


def in_flight_faults(insts: list[Inst]) -> list[str]:
    """Accesses to registers of products that no wait has covered, in layout order; independent of the pass that inserts
    waits."""
    faults: list[str] = []
    ended: list[list[tuple[set[int], set[int]]]] = [
        []
    ]  # groups, the open one last; per product its accumulators and its fragment
    fresh: set[int] = set()  # written since the last ARRIVE
    for inst in insts:
        reads = {r.num + k for r in read_regs(inst) if r.file == "R" and r.num != ZERO for k in range(r.width)}
        writes = {r.num + k for r in written_regs(inst) if r.file == "R" and r.num != ZERO for k in range(r.width)}
        busy = [p for group in ended for p in group]
        if inst.op in PRODUCTS:
            if fresh & reads:
                faults.append(f"{inst}: no ARRIVE behind a write")
            for acc, _ in busy:
                if acc & (reads | writes) and acc != writes:
                    faults.append(f"{inst}: accumulators of another product")
            ended[-1].append((writes, reads - writes))
            if str(getattr(inst.srcs[-1], "name", "")) == "gsb0":
                ended.append([])
        elif inst.op == "WARPGROUP":
            if "ARRIVE" in inst.mods:
                fresh = set()
            else:
                left = int(getattr(inst.srcs[1], "value", 0))
                ended = (
                    [*ended[:-1][len(ended) - 1 - left if left < len(ended) - 1 else 0 :], ended[-1]]
                    if left
                    else [ended[-1]]
                )
        else:
            for acc, frag in busy:
                if acc & (reads | writes) or frag & writes:
                    faults.append(f"{inst}: touches registers under way")
            fresh |= writes
    return faults


@pytest.mark.parametrize(
    ("family", "sm", "step"),
    [
        ("bulk", "90a", 17),
        ("bulk", "100a", 23),
        ("tmap", "90a", 19),
        ("tensormap", "100a", 97),
        ("multimem", "100a", 19),
        ("wgmma", "90a", 23),
    ],
)
def test_judges_find_nothing(family: str, sm: str, step: int, tmp_path: Path) -> None:
    """Every form compiles or is refused by name; the schedule judge is silent."""
    done = 0
    for text in texts(family, step):
        got = compiled(text, sm)
        if isinstance(got, str):
            assert "error" in got, got
            continue
        done += 1
        report = check_bytes(got)
        assert not report.findings, [str(f) for f in report.findings]
        if family == "wgmma":
            assert in_flight_faults(decoded(got, sm, tmp_path)) == []
    assert done >= 4


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("family", "sm", "step"),
    [
        ("bulk", "90a", 97),
        ("tensormap", "100a", 509),
        ("tmap", "100a", 31),
        ("wgmma", "90a", 101),
        ("bulk", "120a", 131),
    ],
)
def test_words_and_operands_as_ptxas_has_them(family: str, sm: str, step: int, tmp_path: Path) -> None:
    """nvdisasm prints every word as we do, at -O3 and -O0, and the instructions of these families equal ptxas's."""
    oracle.require("ptxas", "nvdisasm")
    compared = 0
    for text in texts(family, step):
        got = compiled(text, sm)
        if isinstance(got, str):
            continue
        ours, theirs = tmp_path / "ours.cubin", tmp_path / "theirs.cubin"
        for image in (got, compiled(text, sm, 0)):
            assert isinstance(image, bytes), image
            ours.write_bytes(image)
            report = check(list(dict.fromkeys(code_words(ours))), sm)
            assert not report.wrong and not report.refused, dict(report.examples)
        ours.write_bytes(got)
        source = tmp_path / "k.ptx"
        source.write_text(_HEAD.format(sm=sm) + text)
        done = subprocess.run(
            [str(oracle.find("ptxas")), f"-arch=sm_{sm}", str(source), "-o", str(theirs)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        if not {"HGMMA.64x8x16.F16 RZ, gdesc[URZ], RZ, !UPT, gsb0"} & set(
            listing(theirs)
        ):  # ptxas dropped a product there
            assert essence(ours) == essence(theirs), text
            compared += bool(essence(ours))
    assert compared >= 1


def listing(cubin: Path) -> list[str]:
    """nvdisasm's instructions."""
    done = subprocess.run([str(oracle.find("nvdisasm")), "-c", str(cubin)], capture_output=True, text=True, check=True)
    return [
        re.sub(r"\s+", " ", m[1]).strip() for m in re.finditer(r"^\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", done.stdout, re.M)
    ]


def essence(cubin: Path) -> list[str]:
    """The instructions that both compilers must have, register numbers left out."""
    out = []
    for text in listing(cubin):
        bare = re.sub(r"^@\S+ ", "", text)
        if _SHARED_NAMES.match(bare):
            out.append(re.sub(r"\b(UR|R|UP|P)\d+", r"\1", re.sub(r"\[R[^\]]*\]|\[UR[^\]]*\]", "[]", bare)))
    return out


_MMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%s}, %%rd1, %%rd2, 1, 1, 1, 0, 0;\n"
_FENCE, _COMMIT, _WAIT = (
    "wgmma.fence.sync.aligned;\n",
    "wgmma.commit_group.sync.aligned;\n",
    "wgmma.wait_group.sync.aligned 0;\n",
)


def _store(regs: str) -> str:
    return "ld.param.u64 %rd9, [p];\nst.global.v4.f32 [%rd9], {" + regs + "};\nret;"


@pytest.mark.parametrize(
    ("body", "waits"),
    [
        (_FENCE + _MMA % "%f1,%f2,%f3,%f4" + _COMMIT + _WAIT + _store("%f1,%f2,%f3,%f4"), 1),
        # a chain over two groups needs no wait between
        (_FENCE + _MMA % "%f1,%f2,%f3,%f4" + _COMMIT + _MMA % "%f1,%f2,%f3,%f4" + _COMMIT + _WAIT
            + _store("%f1,%f2,%f3,%f4"), 1),
        # moves from one block to the next, as inline assembly leaves them
        (
            _FENCE + _MMA % "%f1,%f2,%f3,%f4" + "".join(f"mov.f32 %f{k + 4}, %f{k};\n" for k in range(1, 5))
                + _MMA % "%f5,%f6,%f7,%f8" + _COMMIT + _WAIT
            + _store("%f5,%f6,%f7,%f8"), 1,
        ),
        # the accumulators in another order: they must move, so the first product is waited for
        (_FENCE + _MMA % "%f1,%f2,%f3,%f4" + _COMMIT + _MMA % "%f4,%f3,%f2,%f1" + _COMMIT + _WAIT
            + _store("%f1,%f2,%f3,%f4"), 2),
        # read without a wait
        (_FENCE + _MMA % "%f1,%f2,%f3,%f4" + _COMMIT + _store("%f1,%f2,%f3,%f4"), 1),
    ],
)  # fmt: skip
def test_accumulators_stay_in_place(body: str, waits: int, tmp_path: Path) -> None:
    """There is a wait for a product exactly where its registers are touched."""
    got = compile_ptx(kernel(body, "sm_90a"), "sm_90a", {}, name="t.ptx")
    insts = decoded(got, "90a", tmp_path)
    assert in_flight_faults(insts) == []
    assert sum(i.op == "WARPGROUP" and "DEPBAR" in i.mods for i in insts) == waits
    for i in insts:
        if i.op == "HGMMA":
            assert i.dsts[0] in i.srcs


def test_the_judge_of_products_sees_faults(tmp_path: Path) -> None:
    """A product without its wait, or with its ARRIVE after it, is reported."""
    body = (
        "mov.f32 %f1, 0f00000000;\n" + _FENCE + _MMA % "%f1,%f2,%f3,%f4" + _COMMIT + _WAIT + _store("%f1,%f2,%f3,%f4")
    )
    insts = decoded(compile_ptx(kernel(body, "sm_90a"), "sm_90a", {}, name="t.ptx"), "90a", tmp_path)
    assert in_flight_faults(insts) == []
    assert in_flight_faults([i for i in insts if not (i.op == "WARPGROUP" and "DEPBAR" in i.mods)])
    assert in_flight_faults([i for i in insts if not (i.op == "WARPGROUP" and "ARRIVE" in i.mods)])


def test_groups_are_counted_on_one_scoreboard(tmp_path: Path) -> None:
    """UTMACMDFLUSH, and nothing else, raises SB0, and DEPBAR waits for it."""
    body = (
        "ld.param.u64 %rd1, [p];\ncp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 64;\n"
        "cp.async.bulk.commit_group;\n"
        "ld.global.u32 %r2, [%rd1];\ncp.async.bulk.wait_group.read 0;\nst.global.u32 [%rd1+8], %r2;\nret;"
    )
    got = compile_ptx(kernel(body, "sm_90a"), "sm_90a", {}, name="t.ptx")
    path = tmp_path / "k.cubin"
    path.write_bytes(got)
    order = []
    for word in code_words(path):
        inst = isa.target(90).decode(word, 0)
        assert isinstance(inst, Inst)
        written, read = word >> 110 & 7, word >> 113 & 7
        if inst.op == "UTMACMDFLUSH":
            assert read == 0
        else:
            assert 0 not in (written, read)
        if inst.op in ("UBLKCP", "UTMACMDFLUSH", "DEPBAR"):
            order.append(inst.op)
    assert order == ["UBLKCP", "UTMACMDFLUSH", "DEPBAR"]


def test_divergent_copies_are_serialized() -> None:
    """A copy is in a loop that elects one thread per iteration; its values reach the uniform registers under the
    elected thread's predicate."""
    (unit,) = lower_text(
        kernel(
            "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\ncp.async.bulk.prefetch.L2.global [%rd1], %r1;\nret;",
            "sm_90",
        ),
        "sm_90",
    )
    seen = names(unit)
    at = seen.index("UBLKPF.L2")
    assert "ELECT" in seen[:at] and seen[at + 1].startswith("BRA")
    for f in unit.functions:
        for block in f.blocks:
            for inst in block.insts:
                if inst.op == "R2UR":
                    assert inst.guard is not None


@pytest.mark.parametrize(
    ("body", "target", "why"),
    [
        ("wgmma.fence.sync.aligned;", "sm_100a", "not supported on .target"),
        ("cp.async.bulk.wait_group %r1;", "sm_90", "wait_group"),
    ],
)
def test_refused_by_name(body: str, target: str, why: str) -> None:
    """An unsupported form is refused with its line."""
    with pytest.raises((CompileError, AssertionError), match=why):
        lower_text(kernel(body + "\nret;", target), target)


_COUNTS = ".reqntid 384\n.minnctapersm 1\n"


@pytest.mark.parametrize(
    ("bounds", "kept"),
    [(_COUNTS, True), (".maxntid 384\n.maxnreg 168\n", True), (".maxntid 384\n", False), ("", False)],
)
def test_register_counts_change_where_the_first_is_known(bounds: str, kept: bool, tmp_path: Path) -> None:
    """setmaxnreg is kept if the launch bounds give the count at entry; the kernel then reports that count."""
    text = kernel(
        "setmaxnreg.dec.sync.aligned.u32 40;\nld.param.u64 %rd1, [p];\nst.global.u32 [%rd1], %r1;\nret;", "sm_90a"
    ).replace("n)\n{", "n)\n" + bounds + "{")
    got = compile_ptx(text, "sm_90a", {}, name="t.ptx")
    insts = decoded(got, "90a", tmp_path)
    assert any(i.op == "USETMAXREG" for i in insts) == kept
    assert not check_bytes(got).findings
    regcount = (b"\x04\x2f\x08\x00", 8)  # EIATTR_REGCOUNT, a symbol and a number
    at = got.index(regcount[0])
    assert (int.from_bytes(got[at + 8 : at + 12], "little") == 168) == kept


def test_register_counts_are_kept(tmp_path: Path) -> None:
    """If more registers are in use after the release than remain, no change is made."""
    loads = "".join(f"ld.global.u32 %r{k}, [%rd1+{4 * k}];\n" for k in range(50))
    sums = "".join(f"add.u32 %r50, %r50, %r{k};\n" for k in range(50))
    body = (
        "ld.param.u64 %rd1, [p];\n"
        + loads
        + "bar.sync 0;\nsetmaxnreg.dec.sync.aligned.u32 40;\nmov.u32 %r50, 0;\n"
        + sums
        + "st.global.u32 [%rd1], %r50;\nret;"
    )
    got = compile_ptx(kernel(body, "sm_90a").replace("n)\n{", "n)\n" + _COUNTS + "{"), "sm_90a", {}, name="t.ptx")
    assert not any(i.op == "USETMAXREG" for i in decoded(got, "90a", tmp_path))


@pytest.mark.parametrize(("values", "kept"), [(20, True), (60, False)])
def test_values_live_across_a_lower_register_count(values: int, kept: bool, tmp_path: Path) -> None:
    """Registers that a warp gives away have lost their values when it gets them again (ptxas spills them): without
    room for all values in those that stay, the count is not lowered."""
    loads = "".join(f"ld.volatile.global.u32 %v{i}, [%rd1+{4 * i}]; " for i in range(values))
    stores = "".join(f"st.volatile.global.u32 [%rd1+{4 * i}], %v{values - 1 - i}; " for i in range(values))
    text = f""".version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p) .maxntid 384 .minnctapersm 1 {{
    .reg .b32 %v<{values}>; .reg .b64 %rd1; ld.param.u64 %rd1, [p];
    {loads}setmaxnreg.dec.sync.aligned.u32 40; bar.sync 0; setmaxnreg.inc.sync.aligned.u32 168; {stores}ret; }}
"""
    insts = decoded(compile_ptx(text, "sm_90a", {}), "90a", tmp_path)
    assert any(i.op == "USETMAXREG" for i in insts) == kept
    stored = [i.srcs[1].num for i in insts if i.op == "STG" and isinstance(i.srcs[1], Reg)]
    assert len(set(stored)) == values and (not kept or max(stored) <= 37)
