"""Reduced programs, by every judge: as small as hand-made ones, no undefined reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import stages.optimize.passes
from ir_format.model import Unit, imm
from stages.check.ptx_uses import undefined
from stages.plumbing.runner import Context, Pass
from stages.reduce.cli import app
from stages.reduce.program import Program, simplified
from tests.bisect.test_bisect import KERNEL, LOOP, SECOND, insts, planted, replace
from tests.reduce.planted import CASES, MOST, instructions
from tests.reduce.planted import reduced as reduced_case

PTX = Path(__file__).parents[1] / "kernels/ptx/sm_90"


def reduced(tmp_path: Path, text: str, *args: str) -> list[str]:
    """The lines of the reduced text, without the header, declarations and braces."""
    file, out = tmp_path / "given.ptx", tmp_path / "reduced.ptx"
    file.write_text(text)
    done = CliRunner().invoke(app, [str(file), *args, "-q", "-o", str(out)])
    assert done.exit_code == 0, done.output
    return [x for x in out.read_text().splitlines() if x.endswith(";") and not x.startswith(".")]


def test_a_wrong_value(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hand-made: load the pointer, make the value, store it."""

    def wrong(unit: Unit, ctx: Context) -> None:
        if any(imm(1234567) in i.srcs for i in insts(unit)):
            replace(unit, 1234567)

    planted(monkeypatch, stages.optimize.passes, 0, Pass("wrong", wrong, min_opt=1))
    text = "".join(KERNEL.partition(".visible")[:1]) + SECOND.replace("%r1, 8", "%r1, 1234567").replace(
        "ld.global.u32 %r1, [%d1]", "mov.u32 %r1, 77"
    )
    left = reduced(tmp_path, text, "-j", "2")
    assert any("1234567" in x for x in left) and len(left) <= 5, left


def test_a_crash(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hand-made: the multiplication that must stay, and a store of its result."""

    def crash(unit: Unit, ctx: Context) -> None:
        if any(imm(1234567) in i.srcs for i in insts(unit)):
            raise LookupError("it is gone")

    planted(monkeypatch, stages.optimize.passes, 0, Pass("breaks", crash, min_opt=1))
    left = reduced(tmp_path, KERNEL + SECOND, "--crash", "--message", "it is gone")
    assert any("1234567" in x for x in left) and len(left) <= 3, left


def test_a_command_and_no_register_is_read_that_nothing_wrote(tmp_path: Path) -> None:
    left = reduced(tmp_path, (PTX / "scan.ptx").read_text(), "--test", "grep -q bar.sync {} && grep -q st.shared {}")
    assert len(left) <= 3 and any(x.startswith("bar.sync") for x in left), left
    text = (tmp_path / "reduced.ptx").read_text()
    assert not any(undefined(f) for f in Program(text, "sm_90").functions().values())


def test_what_is_read_before_it_is_written() -> None:
    def unread(text: str) -> set[str]:
        (f,) = Program(text, "sm_80").functions().values()
        return {f.regs[r].name for r in undefined(f)}

    assert unread(LOOP) == set()
    assert unread(LOOP.replace("mov.u32 %r1, 0;\n", "")) == {"%r1"}
    assert unread(LOOP.replace("LOOP:\n", "@%p bra LOOP;\nLOOP:\n")) == {"%p"}


def test_what_shows_nothing_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.ptx"
    file.write_text(LOOP)
    assert CliRunner().invoke(app, [str(file), "--test", "false #"]).exit_code == 1
    assert CliRunner().invoke(app, [str(file), "--crash"]).exit_code == 1
    assert CliRunner().invoke(app, [str(tmp_path / "none.ptx")]).exit_code == 2


@pytest.mark.parametrize("name", ["barrier", "atomic"])
def test_planted_failures_are_as_small_as_by_hand(name: str) -> None:
    """A sample of ten (`python -m tests.reduce.planted`)."""
    case = next(c for c in CASES if c.name == name)
    assert instructions(reduced_case(case, 2)) <= MOST * instructions(case.hand)


def test_a_jump_becomes_a_guard_and_a_copy_is_removed() -> None:
    """Hand-made: `@!%p mov`, and the pointer itself as the address."""
    text = (
        "".join(KERNEL.partition(".visible")[:1])
        + """.visible .entry k(.param .u64 out)
{
.reg .b32 %r<3>;
.reg .b64 %d<3>;
.reg .pred %p;
ld.param.u64 %d1, [out];
cvta.to.global.u64 %d2, %d1;
mov.u32 %r1, 6;
setp.eq.u32 %p, 7, 0;
@%p bra END;
mov.u32 %r1, 21;
END:
st.global.u32 [%d2], %r1;
}
"""
    )
    program = Program(text, "sm_80")
    (f,) = program.functions().values()
    texts = [program.text(None, {f.name: new}) for at in range(len(f.body)) for new in simplified(f, at)]
    assert any("@!%p mov.u32 %r1, 21;" in x and "bra" not in x for x in texts)
    assert any("[%d1], %r1" in x and "cvta" not in x for x in texts)
