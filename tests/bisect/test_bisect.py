"""Faults planted in passes of every stage are found: the part, the rewrite, the pair of cubins."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import stages.optimize.passes
import stages.regalloc.passes
import stages.schedule.passes
from ir_format.model import Inst, Unit, imm
from stages.bisect.bisect import Guilt, Unfit, bisect, changed, command
from stages.bisect.chain import Chain, parts_of
from stages.bisect.cli import app
from stages.bisect.judges import Command, Cosim
from stages.bisect.search import TRIES, Verdict, first_wrong
from stages.plumbing.chain import MIDDLE
from stages.plumbing.front_end import parse_to_stream
from stages.plumbing.runner import Context, Pass

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry sums(.param .u64 out)
{
.reg .b32 %r<9>;
.reg .b64 %d<4>;
ld.param.u64 %d1, [out];
cvta.to.global.u64 %d1, %d1;
mov.u32 %r1, %tid.x;
mov.u32 %r7, %ctaid.x;
mov.u32 %r8, %ntid.x;
mad.lo.u32 %r1, %r7, %r8, %r1;
mul.wide.u32 %d2, %r1, 4;
add.s64 %d1, %d1, %d2;
ld.global.u32 %r2, [%d1];
add.s32 %r3, %r2, 7;
xor.b32 %r4, %r3, 1234567;
mul.lo.u32 %r5, %r4, %r2;
add.s32 %r6, %r5, 99;
shr.u32 %r7, %r6, 3;
st.global.u32 [%d1], %r7;
ret;
}
"""


def chain() -> Chain:
    out = io.BytesIO()
    assert parse_to_stream([("sums.ptx", KERNEL.encode())], "sm_80", {"opt-level": 3, "fmad": 0}, out.write) == 0
    return Chain(out.getvalue())


def insts(unit: Unit) -> list[Inst]:
    return [i for f in unit.functions for b in f.blocks for i in b.insts]


def replace(unit: Unit, constant: int) -> None:
    """Put the next constant in the place of one."""
    for i in insts(unit):
        i.srcs = tuple([imm(constant + 1) if s == imm(constant) else s for s in i.srcs])


def faulty(constant: int) -> Pass:
    """A pass that makes three rewrites, of which the second puts another constant in the place of one."""

    def run(unit: Unit, ctx: Context) -> None:
        ctx.allow()
        if any(imm(constant) in i.srcs for i in insts(unit)) and ctx.allow():
            replace(unit, constant)
        ctx.allow()

    return Pass("faulty", run, min_opt=1)


def planted(monkeypatch: pytest.MonkeyPatch, module: object, at: int, p: Pass) -> None:
    passes = list(module.PASSES)  # type: ignore[attr-defined]
    passes.insert(at, p)
    monkeypatch.setattr(module, "PASSES", tuple(passes))


def search() -> tuple[Chain, Guilt]:
    c = chain()
    return c, bisect(c, Cosim(KERNEL, "sm_80", seeds=2))


@pytest.mark.parametrize("at", [0, 5, len(stages.optimize.passes.PASSES)])
def test_a_rewrite_of_the_optimizer_is_found(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    planted(monkeypatch, stages.optimize.passes, at, faulty(1234567))
    c, guilt = search()
    assert [str(p) for p in guilt.parts] == ["optimize: faulty"]
    assert guilt.rewrite == guilt.of[0] + 2  # counted in the stage: behind the rewrites of the passes in front
    judge = Cosim(KERNEL, "sm_80", seeds=2)
    assert judge(guilt.right) is Verdict.RIGHT and judge(guilt.wrong) is Verdict.WRONG
    lines = [line for line in changed(guilt.before, guilt.after) if line[0] in "+-" and line[:3] not in ("+++", "---")]
    assert len(lines) == 2 and "0x12d688" in lines[1].lower()
    assert f"optimize:limit={guilt.rewrite}" in command(guilt, c, guilt.rewrite, "sums.ptx", "wrong.cubin")
    assert command(guilt, c, guilt.rewrite, "sums.ptx", "w").startswith("orias --start-from sums.ptx")


def test_the_allocator_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import stages.regalloc.allocate as module

    plain = module.allocate_unit

    def wrong(unit: Unit, header: object, options: dict[str, object]) -> None:
        plain(unit, header, options)  # type: ignore[arg-type]
        if options["allocator"] == "greedy":
            replace(unit, 1234567)

    monkeypatch.setattr(module, "allocate_unit", wrong)
    _, guilt = search()
    assert [str(p) for p in guilt.parts] == ["regalloc: allocate"] and guilt.rewrite == 0


@pytest.mark.parametrize("at", [0, 1, len(stages.schedule.passes.PASSES)])
def test_a_rewrite_of_the_scheduler_is_found(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    planted(monkeypatch, stages.schedule.passes, at, faulty(1234567))
    _, guilt = search()
    assert [str(p) for p in guilt.parts] == ["schedule: faulty"] and guilt.rewrite == guilt.of[0] + 2


def test_a_fault_of_the_plain_chain_is_not_laid_on_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    p = faulty(1234567)
    planted(monkeypatch, stages.optimize.passes, 0, Pass(p.name, p.run, required=True))
    _, guilt = search()
    assert guilt.parts == [] and "plain chain" in guilt.notes[0]


def test_right_code_is_said_to_be_right() -> None:
    with pytest.raises(Unfit) as e:
        search()
    assert e.value.verdict is Verdict.RIGHT


def test_without_any_part_the_words_of_both_schedulers_and_allocators_differ() -> None:
    c = chain()
    assert c.cubin(0) != c.cubin(len(c.parts)) and len({c.cubin(n) for n in range(len(c.parts) + 1)}) > 4
    assert [str(p) for p in parts_of(MIDDLE, 3)[-5:]] == [
        "regalloc: allocate", "schedule: zero-pairs", "schedule: control", "schedule: list-schedule", "schedule: reuse",
    ]  # fmt: skip
    assert [str(p) for p in parts_of(MIDDLE, 0)] == ["regalloc: allocate"]


def test_the_whole_chain_is_the_orchestrators() -> None:
    from orchestrator.api import compile_ptx

    c = chain()
    assert c.cubin(len(c.parts)) == compile_ptx(KERNEL, "sm_80", {"opt-level": 3, "fmad": 0}, name="sums.ptx")


def test_search_steps_over_what_cant_be_judged() -> None:
    def probe(n: int) -> Verdict:
        return Verdict.OPEN if n in (50, 51, 49) else Verdict.RIGHT if n < 70 else Verdict.WRONG

    assert first_wrong(0, 100, probe) == (69, 70)
    assert first_wrong(0, 100, lambda n: Verdict.OPEN) == (0, 100)
    asked: list[int] = []
    first_wrong(0, 1000, lambda n: asked.append(n) or Verdict.OPEN)
    assert len(asked) == TRIES


def test_exit_codes_of_a_command() -> None:
    assert Command("true")(b"") is Verdict.RIGHT
    assert Command("exit 125 #")(b"") is Verdict.OPEN
    assert Command("kill -9 $$ #")(b"") is Verdict.WRONG
    assert Command("sleep 5 #", 0.2)(b"") is Verdict.WRONG
    assert Command("grep -q xyz {}")(b"xyz") is Verdict.RIGHT
    assert Command("grep -q xyz")(b"abc") is Verdict.WRONG


LOOP = """.version 8.0
.target sm_80
.address_size 64
.visible .entry loop(.param .u64 out)
{
.reg .b32 %r<4>;
.reg .f32 %f<3>;
.reg .b64 %d<3>;
.reg .pred %p;
ld.param.u64 %d1, [out];
cvta.to.global.u64 %d1, %d1;
ld.global.f32 %f1, [%d1];
mov.u32 %r1, 0;
LOOP:
fma.rn.f32 %f1, %f1, %f1, %f1;
add.s32 %r1, %r1, 1;
setp.lt.s32 %p, %r1, 8;
@%p bra LOOP;
st.global.f32 [%d1], %f1;
ret;
}
"""


def test_command_line_names_the_pass_that_makes_copies_of_a_loop(tmp_path: Path) -> None:
    """`wrong` may be anything that a command sees: here, more than one FFMA."""
    file = tmp_path / "loop.ptx"
    file.write_text(LOOP)
    test = "test $(orias-disasm {} | grep -c FFMA) -le 1"
    if shutil.which("orias-disasm") is None:
        test = test.replace("orias-disasm", f"PYTHONPATH={Path(__file__).parents[2]} {sys.executable} -m stages.disasm")
    done = CliRunner().invoke(
        app, [str(file), "-arch", "sm_80", "--test", test, "--keep", str(tmp_path / "kept"), "-q"]
    )
    assert done.exit_code == 0, done.output
    assert done.output.startswith("wrong from optimize: unroll on, rewrite ")
    assert (tmp_path / "kept" / "right.cubin").read_bytes() != (tmp_path / "kept" / "wrong.cubin").read_bytes()
    # The streams of the pair go on by hand: one stage of the chain reads them.
    again = CliRunner().invoke(app, [str(tmp_path / "kept" / "wrong.ori"), "--test", test, "-q"])
    assert again.exit_code == 0 and "plain chain" in again.output


@pytest.mark.parametrize(
    ("text", "args", "said"),
    [
        ("nonsense", [], "fatal"),
        (KERNEL, ["--kernel", "none"], "no kernel 'none'"),
        (KERNEL, ["--option", "maxrregcount"], "expected KEY=VALUE"),
        (None, [], "No such file"),
    ],
)  # fmt: skip
def test_bad_input_is_a_diagnostic(tmp_path: Path, text: str | None, args: list[str], said: str) -> None:
    file = tmp_path / "x.ptx"
    if text is not None:
        file.write_text(text)
    done = CliRunner().invoke(app, [str(file), "-arch", "sm_80", *args])
    assert done.exit_code == 2 and said in done.output and not isinstance(done.exception, ValueError)


def test_a_stream_wants_a_command(tmp_path: Path) -> None:
    file = tmp_path / "x.ori"
    file.write_bytes(chain().data)
    done = CliRunner().invoke(app, [str(file)])
    assert done.exit_code == 2 and "--test" in done.output
