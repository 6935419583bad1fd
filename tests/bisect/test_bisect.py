"""Faults planted in passes of every stage are found: the part, the rewrite, the pair of cubins."""

from __future__ import annotations

import io
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import stages.optimize.passes
import stages.regalloc.passes
import stages.schedule.passes
from ir_format.model import Inst, Unit, imm
from orchestrator.api import compile_ptx
from stages.bisect.bisect import Guilt, Unfit, bisect
from stages.bisect.chain import Chain, parts_of
from stages.bisect.cli import app
from stages.bisect.judges import Command, Cosim, NoProgram
from stages.bisect.report import changed, command
from stages.bisect.search import TRIES, Verdict, first_wrong
from stages.plumbing.chain import MIDDLE
from stages.plumbing.front_end import parse_to_stream
from stages.plumbing.runner import Context, Pass
from tests.bisect.known import KNOWN, replanted
from tests.bisect.known import hunt as hunt_known
from tests.bisect.planted import AREAS, Fault, hunt

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
    """Replace one constant by the next."""
    for i in insts(unit):
        i.srcs = tuple([imm(constant + 1) if s == imm(constant) else s for s in i.srcs])


def faulty(constant: int) -> Pass:
    """A pass with three rewrites, the second of which replaces one constant by another."""

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


@pytest.mark.parametrize("at", [5, len(stages.optimize.passes.PASSES)])
def test_a_rewrite_of_the_optimizer_is_found(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    planted(monkeypatch, stages.optimize.passes, at, faulty(1234567))
    c, guilt = search()
    assert [str(p) for p in guilt.parts] == ["optimize: faulty"]
    assert guilt.rewrite == guilt.of[0] + 2  # counted in the stage: after the rewrites of earlier passes
    judge = Cosim(KERNEL, "sm_80", seeds=2)
    assert guilt.right is not None and guilt.wrong is not None
    right, wrong = c.make(guilt.right).cubin, c.make(guilt.wrong).cubin
    assert judge(right) is Verdict.RIGHT and judge(wrong) is Verdict.WRONG
    lines = [line for line in changed(guilt.before, guilt.after) if line[0] in "+-" and line[:3] not in ("+++", "---")]
    assert len(lines) == 2 and "0x12d688" in lines[1].lower()
    assert f"optimize:limit={guilt.rewrite}" in command(c, guilt.wrong, "sums.ptx", (), "wrong.cubin")
    assert command(c, guilt.wrong, "sums.ptx", (), "w").startswith("orias --start-from sums.ptx")


def test_the_allocator_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import stages.regalloc.allocate as module

    plain = module.allocate_unit

    def wrong(unit: Unit, header: object, options: dict[str, object], **more: object) -> None:
        plain(unit, header, options, **more)  # type: ignore[arg-type]
        if options["allocator"] == "greedy":
            replace(unit, 1234567)

    monkeypatch.setattr(module, "allocate_unit", wrong)
    _, guilt = search()
    assert [str(p) for p in guilt.parts] == ["regalloc: allocate"] and guilt.rewrite == 0


@pytest.mark.parametrize("at", [0, len(stages.schedule.passes.PASSES)])
def test_a_rewrite_of_the_scheduler_is_found(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    planted(monkeypatch, stages.schedule.passes, at, faulty(1234567))
    _, guilt = search()
    assert [str(p) for p in guilt.parts] == ["schedule: faulty"] and guilt.rewrite == guilt.of[0] + 2


def test_a_required_pass_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """No flag can leave it out: the search sees that its fault disappears without it."""
    p = faulty(1234567)
    planted(monkeypatch, stages.optimize.passes, 0, Pass(p.name, p.run, required=True))
    _, guilt = search()
    assert guilt.parts == [] and (guilt.stage, guilt.name) == ("optimize", "faulty")


def test_right_code_has_no_culprit() -> None:
    with pytest.raises(Unfit) as e:
        search()
    assert e.value.verdict is Verdict.RIGHT


def test_without_any_part_the_words_of_both_schedulers_and_allocators_differ() -> None:
    c = chain()
    cubins = [c.on(n).cubin for n in range(len(c.parts) + 1)]
    assert all(cubins) and cubins[0] != cubins[-1] and len(set(cubins)) > 4
    assert [str(p) for p in parts_of(MIDDLE, 3)[-6:]] == [
        "regalloc: allocate", "schedule: zero-pairs", "schedule: pipe-balance", "schedule: control",
        "schedule: list-schedule", "schedule: reuse",
    ]  # fmt: skip
    assert [str(p) for p in parts_of(MIDDLE, 0)] == ["regalloc: allocate"]


def test_the_whole_chain_makes_the_orchestrators_cubin() -> None:
    c = chain()
    assert c.on(len(c.parts)).cubin == compile_ptx(KERNEL, "sm_80", {"opt-level": 3, "fmad": 0}, name="sums.ptx")


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
    with pytest.raises(NoProgram):
        Command("no-such-program-here")(b"")


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


def counting(folder: Path) -> str:
    """A test that is wrong for more than one FFMA."""
    script = folder / "count.py"
    script.write_text(
        "import sys\ndata = open(sys.argv[1], 'rb').read()\n"
        "sys.exit(sum(data[n] == 0x23 and data[n + 1] & 15 == 2 for n in range(0, len(data) - 15, 16)) > 1)\n"
    )
    return f"{sys.executable} -S -E {script}"


def test_command_line_names_the_pass_that_makes_copies_of_a_loop(tmp_path: Path) -> None:
    """`wrong` may be anything that a command sees: here, more than one FFMA."""
    file = tmp_path / "loop.ptx"
    file.write_text(LOOP)
    test = counting(tmp_path)
    done = CliRunner().invoke(
        app, [str(file), "-arch", "sm_80", "--test", test, "--keep", str(tmp_path / "kept"), "-q"]
    )
    assert done.exit_code == 0, done.output
    assert "wrong from optimize: unroll on, rewrite " in done.output
    assert (tmp_path / "kept" / "right.cubin").read_bytes() != (tmp_path / "kept" / "wrong.cubin").read_bytes()
    # Continue from the pair's streams: one stage of the chain reads them.
    again = CliRunner().invoke(app, [str(tmp_path / "kept" / "wrong.ori"), "--test", test, "-q"])
    assert again.exit_code == 4 and "in the given stream" in again.output


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


SECOND = """.visible .entry other(.param .u64 out)
{
.reg .b32 %r<4>;
.reg .b64 %d<3>;
ld.param.u64 %d1, [out];
cvta.to.global.u64 %d1, %d1;
ld.global.u32 %r1, [%d1];
mul.lo.u32 %r2, %r1, 8;
st.global.u32 [%d1], %r2;
ret;
}
"""


@pytest.mark.parametrize("units", [1, 3])
def test_printed_commands_make_the_same_bytes_with_any_number_of_jobs(tmp_path: Path, units: int) -> None:
    """Rewrites are counted unit by unit, so the driver may distribute the units freely."""
    from orchestrator.__main__ import _run

    extra = [SECOND.replace("other", f"other{n}") for n in range(units - 1)]
    file = tmp_path / "loop.ptx"
    file.write_text(LOOP + "".join(extra))
    test = counting(tmp_path)
    kept = tmp_path / "kept"
    done = CliRunner().invoke(app, [str(file), "--test", test, "--keep", str(kept), "-q"])
    assert done.exit_code == 0, done.output
    for name in ("right", "wrong"):
        line = next(x for x in done.output.splitlines() if x.startswith(f"{name}: orias "))
        for jobs in ("1", "2"):
            out = tmp_path / f"{name}{jobs}.cubin"
            assert _run([*shlex.split(line)[2:-1], str(out), "-j", jobs]) == 0
            assert out.read_bytes() == (kept / f"{name}.cubin").read_bytes()


def test_a_crash_and_its_message_are_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def crash(unit: Unit, ctx: Context) -> None:
        if any(imm(1234567) in i.srcs for i in insts(unit)) and ctx.allow():
            raise LookupError("it is gone")

    planted(monkeypatch, stages.optimize.passes, 3, Pass("breaks", crash, min_opt=1))
    file = tmp_path / "sums.ptx"
    file.write_text(KERNEL)
    for args in ([], ["--crash"], ["--crash", "--message", "it is gone"], ["-c"]):
        done = CliRunner().invoke(app, [str(file), *args, "-q"])
        assert done.exit_code == 0 and "wrong from optimize: breaks on" in done.output, (args, done.output)
    assert CliRunner().invoke(app, [str(file), "--crash", "--message", "another", "-q"]).exit_code == 3


def test_a_command_in_the_place_of_a_stage_may_be_guilty(tmp_path: Path) -> None:
    file = tmp_path / "sums.ptx"
    file.write_text(KERNEL)
    program = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from ir_format import wire
from ir_format.model import imm
w = wire.Writer(sys.stdout.buffer.write)
for tag, data in wire.frames(sys.stdin.buffer):
    if tag == "unit":
        unit = wire.unit_from_wire(wire.unpack(data), "ori")
        for i in (i for f in unit.functions for b in f.blocks for i in b.insts):
            i.srcs = tuple([imm(8) if s == imm(7) else s for s in i.srcs])
        w.record("unit", wire.unit_to_wire(unit))
    else:
        w.frame(tag, data)
w.end()
"""
    script = tmp_path / "mine.py"
    script.write_text(program)
    done = CliRunner().invoke(app, [str(file), "--stage", f"optimize={sys.executable} {script}", "--seeds", "2", "-q"])
    assert done.exit_code == 0 and "wrong from optimize: the command given for it on" in done.output, done.output


def test_exit_codes(tmp_path: Path) -> None:
    file = tmp_path / "sums.ptx"
    file.write_text(KERNEL)
    assert CliRunner().invoke(app, [str(file), "--test", "no-such-program", "-q"]).exit_code == 5
    assert CliRunner().invoke(app, [str(file), "--test", "true #", "-q"]).exit_code == 1
    assert CliRunner().invoke(app, [str(file), "--test", "exit 125 #", "-q"]).exit_code == 3
    assert CliRunner().invoke(app, [str(file), "--no-such-option"]).exit_code == 2


def test_a_metric_is_printed_part_by_part(tmp_path: Path) -> None:
    file = tmp_path / "sums.ptx"
    file.write_text(KERNEL)
    done = CliRunner().invoke(app, [str(file), "--metric", "stat -c %s", "-O", "0", "-q"])
    rows = [line.split() for line in done.output.splitlines()]
    assert done.exit_code == 0 and [r[0] for r in rows] == ["plain", "regalloc:"] and rows[0][1].isdigit()


@pytest.mark.parametrize("area", AREAS)
def test_planted_faults_are_named(area: str) -> None:
    """A sample of the campaign (`python -m tests.bisect.planted`): the first fault of the area that any judge sees."""
    for seed in range(1, 9):
        fault = Fault(area, seed, kinds=("wait",) if area == "schedule" else ("value",))
        fault.kernel, fault.sm = "vadd", "sm_80"
        result = hunt(fault)
        if result.guilt is not None:
            assert result.stage and result.name, str(result)
            return
    pytest.fail("no fault was seen")


@pytest.mark.parametrize(
    "name",
    [
        "a predicate lost as a result",  # a word that lower left undefined shows as a fault of a later pass
        "arguments behind a large result",  # an object, which can't be executed
        "BSSY names its BSYNC",
    ],
)
def test_known_faults_are_named(name: str) -> None:
    """A sample of `python -m tests.bisect.known`."""
    fault = next(k for k in KNOWN if k.name.startswith(name))
    result = hunt_known(fault)
    assert result.stage and result.name, str(result)


def test_the_text_of_known_faults_is_there() -> None:
    for fault in KNOWN:
        with replanted(fault):
            pass
