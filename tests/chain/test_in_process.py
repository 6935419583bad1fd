"""The stages in one process produce the same as through the bytes, and a crashing one is named."""

from __future__ import annotations

import io

import pytest

from ir_format import wire
from ir_format.model import Block, Function, Imm, Inst, Reg, Unit
from ir_format.unit_copy import copy_unit
from orchestrator.processes import Step, note, pump, start
from stages.plumbing import chain, in_process
from stages.plumbing.chain import MIDDLE
from stages.plumbing.front_end import parse_to_stream
from stages.plumbing.runner import Context, Flags, Pass, Stage, run_stage
from tests.chain.corpus import ptx_path


def parsed(text: bytes, arch: str, opt: int = 3) -> bytes:
    """The stream that parse writes."""
    out = io.BytesIO()
    assert parse_to_stream([("k.ptx", text)], arch, {"opt-level": opt}, out.write) == 0
    return out.getvalue()


def apart(data: bytes) -> tuple[int, bytes]:
    """Through the bytes, stage by stage: (worst exit code, stream)."""
    code = 0
    for stage in MIDDLE:
        out = io.BytesIO()
        code = max(code, run_stage(stage, io.BytesIO(data), out, Flags(quiet=True)))
        data = out.getvalue()
    return code, data


def at_once(data: bytes, stages: tuple[Stage, ...] = MIDDLE) -> tuple[int, bytes, list[str]]:
    """In one process: (exit code, stream, the reported stages)."""
    out = io.BytesIO()
    told: list[str] = []
    return in_process.run_in_process(stages, io.BytesIO(data), out, told.append), out.getvalue(), told


@pytest.mark.parametrize(("arch", "opt"), [("sm_75", 3), ("sm_80", 1), ("sm_90", 3), ("sm_90", 0), ("sm_120", 3)])
def test_same_stream_as_through_the_bytes(arch: str, opt: int) -> None:
    data = parsed(ptx_path("all16", arch).read_bytes(), arch, opt)
    code, want = apart(data)
    got = at_once(data)
    assert (code, want) == got[:2]
    assert got[2][:6] == [s.name for s in MIDDLE] + ["lower"]


def test_a_refused_unit_travels_with_its_diagnostic() -> None:
    text = (
        b".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 a)\n{\n"
        b".reg .f32 %f<5>; .reg .b64 %d;\n"
        b"tex.grad.3d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%d, {%f1,%f2,%f3,%f4}], {%f1,%f2,%f3,%f4}, {%f1,%f2,%f3,%f4};\n"
        b"ret;\n}\n.visible .entry good()\n{\nret;\n}\n"
    )
    data = parsed(text, "sm_75")
    code, want = apart(data)
    assert code == 1 and b"tex.grad.3d" in want
    assert at_once(data)[:2] == (1, want)


def test_a_broken_pass_is_reported_by_its_stage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(unit: Unit, ctx: Context) -> None:
        raise ZeroDivisionError("on purpose")

    row = Stage("optimize", "ori", "ori", lambda: [Pass("broken", broken)])
    code, _, told = at_once(parsed(ptx_path("vadd", "sm_90").read_bytes(), "sm_90"), (chain.LOWER, row, chain.REGALLOC))
    said = capsys.readouterr().err
    assert code == 2 and told[-1] == "optimize"
    assert said.startswith("orias-optimize: internal fault (ZeroDivisionError: on purpose)") and said.rstrip().endswith(
        ".ori"
    )


def test_stream_of_another_level_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, _ = at_once(parsed(ptx_path("vadd", "sm_90").read_bytes(), "sm_90"), MIDDLE[1:])
    assert code == 1 and "stage optimize reads level 'ori', this stream is at level 'ptx'" in capsys.readouterr().err


def test_relay_is_writing_and_reading() -> None:
    f = Function("f")
    f.new_vreg("R")
    f.regs = {"UR": 2, "R": 3}
    shared = Inst("MOV", (), (Reg("R", 0),), (Imm("I", 1),), attrs={"z": (1, ("a",)), "b": 2})
    f.blocks = [Block(0, [shared, shared], 2)]
    u = Unit("f")
    u.functions = [f]
    u.sections = {"z": (1, 2), "a": "x"}
    u.diags = [("warning", "text", 3)]
    packed: list[bytes] = []
    wire.Writer(packed.append).record("unit", wire.unit_to_wire(u))
    read = wire.unit_from_wire(wire.unpack(b"".join(packed)), "ori")
    got = copy_unit(u)
    for name in Unit.__slots__:
        assert getattr(got, name) == getattr(read, name), name
    one, two = got.functions[0].blocks[0].insts
    assert one is not two and one is not shared and one.attrs is not shared.attrs
    assert (
        list(one.attrs or ()) == ["b", "z"]
        and list(got.sections) == ["a", "z"]
        and list(got.functions[0].regs) == ["R", "UR"]
    )


def test_notes_name_the_stage_and_are_not_printed() -> None:
    def body(inp: object, out: object) -> int:
        import os

        note("lower")
        os.write(2, b"a word\n")
        note("regalloc")
        os.write(2, b"and \0 one\n")
        return 3

    pl = start([Step("lower+regalloc", body)], b"")
    pump([pl], 20)
    p = pl.processes[0]
    assert (p.at, p.said) == ("regalloc", "a word\nand \0 one\n")
