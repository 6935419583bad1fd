"""orias-check on saved streams."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ir_format import wire
from ir_format.model import Reg, Unit
from orchestrator.api import compile_ptx
from stages.check.cli import app
from stages.plumbing.runner import Flags

ROOT = Path(__file__).parents[2]
NAMES = ("parse", "lower", "optimize", "regalloc", "schedule", "encode")


def streams(arch: str, text: str) -> dict[str, bytes]:
    out: dict[str, bytes] = {}
    compile_ptx(text, arch, streams=out)
    return out


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    for name, data in streams("sm_90", (ROOT / "tests/kernels/ptx/sm_90/softmax.ptx").read_text()).items():
        (folder / f"{name}.ori").write_bytes(data)
    return folder


def check(*args: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(a) for a in args])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


@pytest.mark.parametrize("name", NAMES)
def test_every_level_is_judged(saved: Path, name: str) -> None:
    code, said = check(saved / f"{name}.ori")
    assert (code, said.split(",")[0]) == (0, "0 findings")
    assert ("instructions" in said) == (name in ("schedule", "encode"))


def test_an_allocation_is_judged_against_what_was_allocated(saved: Path) -> None:
    assert check(saved / "regalloc.ori", "--before", saved / "optimize.ori")[0] == 0


def changed(data: bytes, level: str, change: object) -> bytes:
    """A stream with `change` applied to its units."""
    out = io.BytesIO()
    writer = wire.Writer(out.write)
    for tag, body in wire.records(io.BytesIO(data)):
        if tag == "unit":
            unit = wire.unit_from_wire(body, level)
            change(unit)  # type: ignore[operator]
            body = wire.unit_to_wire(unit)
        if tag != "end":
            writer.record(tag, body)
    writer.end()
    return out.getvalue()


def test_a_foreign_allocation_that_mixes_registers_up_is_found(saved: Path, tmp_path: Path) -> None:
    def wrong(unit: Unit) -> None:
        i = next(
            i
            for f in unit.functions
            for b in f.blocks
            for i in b.insts
            if i.op == "FFMA" and type(i.srcs[0]) is Reg and i.srcs[0].num < 90
        )
        r = i.srcs[0]
        assert isinstance(r, Reg)
        i.srcs = (r._replace(num=r.num + 1), *i.srcs[1:])

    file = tmp_path / "x.ori"
    file.write_bytes(changed((saved / "regalloc.ori").read_bytes(), "allocated", wrong))
    assert check(file)[0] == 0  # no rule of the level is broken
    code, said = check(file, "--before", saved / "optimize.ori")
    assert code == 1 and "FFMA" in said


def test_an_instruction_without_its_slots_breaks_a_rule(saved: Path, tmp_path: Path) -> None:
    def wrong(unit: Unit) -> None:
        i = next(i for f in unit.functions for b in f.blocks for i in b.insts if i.op == "IADD3")
        i.dsts = i.dsts[:1]
        i.srcs = i.srcs[:2]

    file = tmp_path / "x.ori"
    file.write_bytes(changed((saved / "optimize.ori").read_bytes(), "ori", wrong))
    code, said = check(file)
    assert code == 1 and "no encoding" in said


def test_a_short_stall_is_found_in_a_scheduled_stream(saved: Path, tmp_path: Path) -> None:
    def wrong(unit: Unit) -> None:
        for i in (i for f in unit.functions for b in f.blocks for i in b.insts):
            if i.ctl is not None and i.ctl.stall > 3:
                i.ctl = i.ctl._replace(stall=1)

    file = tmp_path / "x.ori"
    file.write_bytes(changed((saved / "schedule.ori").read_bytes(), "scheduled", wrong))
    code, said = check(file)
    assert code == 1 and "need" in said


def test_bad_input_is_a_diagnostic(saved: Path, tmp_path: Path) -> None:
    whole = (saved / "regalloc.ori").read_bytes()
    (tmp_path / "cut.ori").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "cubin").write_bytes(b"\x7fELF")
    for args in (
        (tmp_path / "cut.ori",),
        (saved / "regalloc.ori", "--before", saved / "parse.ori"),
        (saved / "regalloc.ori", "--before", tmp_path / "cut.ori"),
        (saved / "schedule.ori", "--before", saved / "optimize.ori"),
        (saved / "regalloc.ori", "--before", tmp_path / "absent.ori"),
        (tmp_path / "cubin", "--before", saved / "optimize.ori"),
        (tmp_path / "absent.ori",),
    ):
        code, said = check(*args)
        assert code == 2 and said.startswith("orias-check: "), said


@pytest.mark.parametrize(("arch", "level"), [("sm_75", 3), ("sm_80", 3), ("sm_90", 2), ("sm_120", 3), ("sm_90", 0)])
def test_all_stages_keep_to_the_rules_of_their_level(arch: str, level: int) -> None:
    """With the verifier and the allocation checker behind every stage, the sixteen kernels pass."""
    flags = {name: Flags(quiet=True, verify=True) for name in NAMES[1:]}
    compile_ptx((ROOT / f"tests/kernels/ptx/{arch}/all16.ptx").read_text(), arch, {"opt-level": level}, flags=flags)
