"""The schedule checker is silent on ptxas's cubins and ours, and reports every control word that is surely broken."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from ir_format import isa
from ir_format.diag import OriasError
from ir_format.flow import PHYSICAL_BASE
from ir_format.hazards import hazards
from ir_format.hazards.load import matrices
from ir_format.model import ZERO, Imm, Inst, Name, Reg
from orchestrator.api import ChainError, compile_ptx
from stages.check.command import check_compiled
from stages.check.schedule_checker import check_bytes, check_cubin
from stages.check.schedule_rules import REACH
from stages.disasm.cubin import read_cubin
from stages.disasm.listing import decode_section
from tests import oracle
from tests.check import probes
from tests.check.schedule_mutants import KERNELS, certain, judge

SMS = (75, 80, 90, 120)


def sources(sm: int) -> list[Path]:
    """Every kernel of the repository for an SM, one kernel per file."""
    found = [
        *sorted((KERNELS / "ptx" / f"sm_{sm}").glob("*.ptx")),
        *sorted((KERNELS / "corpus" / "ptx" / f"sm_{sm}").glob("*.ptx")),
    ]
    return [p for p in [*found, *sorted((KERNELS / "hand").glob("*.ptx"))] if p.stem != "all16"]


@pytest.mark.parametrize("sm", SMS)
def test_no_table_reaches_further(sm: int) -> None:
    assert max(c.cycles for m in matrices(sm).values() for row in m.values() for c in row.values()) < REACH


@pytest.mark.oracle
@pytest.mark.parametrize("sm", SMS)
def test_silent_on_ptxas(sm: int) -> None:
    oracle.require("ptxas")
    judged = 0
    for path in sources(sm):
        cubin = oracle.run_ptxas(path, "90a" if sm == 90 else sm)
        if isinstance(cubin, Path):
            assert [str(f) for f in check_bytes(cubin.read_bytes()).findings] == [], path
            judged += 1
    assert judged >= 60


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("sm", SMS)
def test_silent_on_ours(sm: int, level: int) -> None:
    judged = 0
    for path in sources(sm)[level % 2 :: 4]:
        try:
            data = compile_ptx(path.read_text(), f"sm_{sm}", {"opt-level": level})
        except ChainError:
            continue  # another test covers kernels that the chain refuses on this SM
        report = check_bytes(data)
        assert [str(f) for f in report.findings] == [], path
        judged += 1
    assert judged >= 10


@pytest.mark.parametrize("sm", SMS)
def test_certain_mutants_die(sm: int) -> None:
    rng = random.Random(sm)
    made: Counter[str] = Counter()
    for name in ("matmul", "softmax", "divrem64", "trig", "f64_ops", "call_twice"):
        cubin = read_cubin(compile_ptx((KERNELS / "ptx" / f"sm_{sm}" / f"{name}.ptx").read_text(), f"sm_{sm}"))
        sure = certain(cubin, rng)
        one, caught, left = judge(cubin, rng.sample(sure, min(12, len(sure))))
        assert left == []
        assert one == caught
        made += one
    assert {"stall raw", "wait result", "index result"} <= set(made)
    assert made.total() >= 50


def test_finding_names_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(5)
    data = compile_ptx((KERNELS / "ptx" / "sm_90" / "matmul.ptx").read_text(), "sm_90")
    good = tmp_path / "good.cubin"
    good.write_bytes(data)
    assert check_compiled(good) == 0
    cubin = read_cubin(data)
    mutant = next(m for m in certain(cubin, rng) if m.kind == "stall raw")
    broken = mutant.apply(cubin).sections[mutant.section]
    bad = tmp_path / "bad.cubin"
    bad.write_bytes(data[: broken.offset] + broken.data + data[broken.offset + len(broken.data) :])
    capsys.readouterr()
    assert check_compiled(bad) == 1
    said = capsys.readouterr().out
    assert "raw R" in said or "raw P" in said or "raw UR" in said
    assert f"{mutant.place * 16:#06x} " in said
    assert "needed [raw" in said
    assert "on sm_90" in said


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF" + bytes(100), b"nothing like it" * 20])
def test_bad_files(tmp_path: Path, data: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.cubin"
    path.write_bytes(data)
    assert check_compiled(path) == 2
    assert "orias-check:" in capsys.readouterr().err
    assert check_compiled(tmp_path / "absent.cubin") == 2


@pytest.mark.oracle
@pytest.mark.parametrize("sm", SMS)
def test_certain_mutants_of_ptxas_die(sm: int) -> None:
    oracle.require("ptxas")
    rng = random.Random(sm)
    lines = 0
    for name in ("reduce_sum", "scan", "switch10", "mandelbrot"):
        path = oracle.run_ptxas(KERNELS / "ptx" / f"sm_{sm}" / f"{name}.ptx", sm, "-lineinfo")
        assert isinstance(path, Path), path
        cubin = read_cubin(path.read_bytes())
        sure = certain(cubin, rng)
        _, _, left = judge(cubin, rng.sample(sure, min(8, len(sure))))
        assert left == []
        lines += sum(f.line > 0 for f in check_cubin(sure[0].apply(cubin)).findings)
    assert lines > 0  # findings name the PTX line if the cubin has the tables


def test_damaged_code_is_no_traceback() -> None:
    rng = random.Random(9)
    data = compile_ptx((KERNELS / "ptx" / "sm_90" / "switch10.ptx").read_text(), "sm_90")
    judged = 0
    for n in range(150):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 3, 20))):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        if n % 5 == 0:
            del damaged[rng.randrange(len(damaged)) :]
        try:
            check_bytes(bytes(damaged))
            judged += 1
        except OriasError:
            pass
    assert judged > 50


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("arch", "families", "every"),
    [("75", {"wmma"}, 11), ("80", {"mmasparse"}, 17), ("90a", {"mbar", "mma"}, 31), ("120a", {"mmascale", "mbar"}, 29)],
)
def test_silent_on_the_instruction_set(arch: str, families: set[str], every: int) -> None:
    """A sample of :mod:`tests.check.sweep`: matrix products and barrier objects by ptxas."""
    from tests.check.sweep import Sweep, compiler, isa_corpus

    oracle.require("ptxas")
    sweep = Sweep(arch, None)
    isa_corpus(sweep, compiler(arch, "ptxas", 3), arch, families, slice(None, None, every))
    assert [str(f) for f in sweep.examples.values()] == []
    assert sweep.instructions > 200


@pytest.mark.oracle
@pytest.mark.parametrize("arch", ["75", "80", "90a", "100a", "120a"])
@pytest.mark.parametrize("who", ["ptxas", "ours"])
def test_silent_on_probes(arch: str, who: str) -> None:
    """Kinds of instructions that are closer to each other, or wait for less, than the checker once demanded."""
    text = probes.text(arch)
    if who == "ptxas":
        oracle.require("ptxas")
        got = oracle.compile_ptx(text, arch)
        assert isinstance(got, Path), got
        data = got.read_bytes()
    else:
        data = compile_ptx(text, f"sm_{arch}", {})
    report = check_bytes(data)
    assert [str(f) for f in report.findings] == []
    assert report.unjudged == []


def _waits(arch: str, kernel: str, op: str, before: str) -> list[tuple[int, int]]:
    """In our code: for each instruction ``op`` its wait mask, and the scoreboards that instructions ``before`` it have
    set."""
    cubin = read_cubin(compile_ptx(probes.text(arch), f"sm_{arch}", {}))
    section = next(s for s in cubin.sections if s.name == f".text.{kernel}")
    insts = [
        item.inst
        for item in decode_section(section, isa.target(cubin.sm))
        if item.inst is not None and item.inst.ctl is not None
    ]
    out, up = [], 0
    for inst in insts:
        assert inst.ctl is not None
        if inst.op == op:
            out.append((inst.ctl.wait, up))
        if inst.op == before and inst.ctl.wr != 7:
            up |= 1 << inst.ctl.wr
    return out


def test_an_acquire_waits_for_its_own_load_only() -> None:
    (wait, loads), *_ = _waits("90a", "acquire", "CCTL", "LDG")
    assert loads.bit_count() == 2 and (wait & loads).bit_count() == 1


def test_shared_accesses_do_not_wait_for_barrier_objects() -> None:
    (wait, objects), *_ = _waits("90a", "arrive_store", "STS", "SYNCS")
    assert objects and not wait & objects


def test_masks_leave_predicates_alone() -> None:
    h = hazards(80)
    mask = Imm("I", 0x5)
    from_mask = Inst("R2P", dsts=(Name("N", "PR"),), srcs=(Reg("R", 4), mask))
    assert sorted(cell for cell, _, _ in h.access(from_mask).writes) == [PHYSICAL_BASE["P"], PHYSICAL_BASE["P"] + 2]
    to_mask = Inst("P2R", dsts=(Reg("R", 4),), srcs=(Name("N", "PR"), Reg("R", ZERO), mask))
    assert sorted(
        cell for cell, role, _ in h.access(to_mask).reads if role != "guard" and cell >= PHYSICAL_BASE["P"]
    ) == [PHYSICAL_BASE["P"], PHYSICAL_BASE["P"] + 2]
