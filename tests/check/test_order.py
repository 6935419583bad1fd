"""Judges of a scheduler's work: the order of dependent instructions, unneeded scoreboards, decoded words."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ir_format.model import Ctl, Unit
from orchestrator.api import compile_ptx
from stages.check.cli import app
from stages.check.order_checker import check_order
from stages.check.streams import Stream, encoding

PTX = Path(__file__).parents[1] / "kernels/ptx/sm_90"


@pytest.fixture(scope="module")
def streams() -> dict[str, bytes]:
    out: dict[str, bytes] = {}
    compile_ptx((PTX / "scan.ptx").read_text(), "sm_90", streams=out)
    return out


def units(data: bytes) -> list[Unit]:
    return list(Stream(data).units())


def test_the_order_of_dependent_instructions_is_judged(streams: dict[str, bytes]) -> None:
    before, after = units(streams["regalloc"])[0], units(streams["schedule"])[0]
    assert list(check_order(before, after)) == []
    rng = random.Random(4)
    for f in after.functions:  # a scheduler that knows no dependences
        for b in f.blocks:
            head = b.insts[:-1]
            rng.shuffle(head)
            b.insts[:-1] = head
    found = list(check_order(before, after))
    assert found and all(f.startswith("scan, block .L") for f in found)


def test_each_swap_of_two_dependent_neighbours_is_found(streams: dict[str, bytes]) -> None:
    before = units(streams["regalloc"])[0]
    seen = 0
    for n in range(len(before.functions[0].blocks)):
        after = units(streams["regalloc"])[0]
        insts = after.functions[0].blocks[n].insts
        for k in range(len(insts) - 2):
            made = {(r.file, r.num) for r in insts[k].dsts if hasattr(r, "num") and r.num >= 0}
            if made & {(r.file, r.num) for r in insts[k + 1].srcs if hasattr(r, "num")}:
                insts[k], insts[k + 1] = insts[k + 1], insts[k]
                assert list(check_order(before, after)), (n, k)
                insts[k], insts[k + 1] = insts[k + 1], insts[k]
                seen += 1
    assert seen > 10


def test_a_scoreboard_of_a_fixed_result_is_refused(streams: dict[str, bytes], tmp_path: Path) -> None:
    stream = Stream(streams["schedule"])
    (unit,) = stream.units()
    inst = next(i for f in unit.functions for b in f.blocks for i in b.insts if i.op == "IADD3")
    assert inst.ctl is not None
    inst.ctl = Ctl(inst.ctl.stall, inst.ctl.yield_, 3, inst.ctl.rd, inst.ctl.wait)
    from ir_format import wire

    file = tmp_path / "x.ori"
    file.write_bytes(wire.stream_of(stream.header, wire.module_from_wire(wire.unpack(stream.module)), [unit]))
    done = CliRunner().invoke(app, [str(file)])
    assert done.exit_code == 1 and "it sets scoreboard 3 for a result that comes after a fixed time" in done.output


def test_words_are_decoded_and_compared(streams: dict[str, bytes]) -> None:
    before, after = Stream(streams["schedule"]), Stream(streams["encode"])
    assert list(encoding(before, after)) == []
    (unit,) = after.units()
    (code,) = unit.code
    data = bytearray(code.data)
    data[16 * 3 + 2] ^= 1  # a bit of the destination register
    unit.code = [code._replace(data=bytes(data))]
    from stages.check.coding import encoding as compare

    found = list(compare(next(before.units()), unit, "sm_90"))
    assert len(found) == 1 and "0x30" in found[0]


def test_strict_cosimulation_on_the_command_line(tmp_path: Path) -> None:
    """A cubin without its waits: the plain machine sees nothing, the strict one reports what is read too early."""
    file = PTX / "vadd.ptx"
    out: dict[str, bytes] = {}
    compile_ptx(file.read_text(), "sm_90", {"fmad": 0}, streams=out)
    stream = Stream(out["schedule"])
    (unit,) = stream.units()
    for i in (i for f in unit.functions for b in f.blocks for i in b.insts):
        assert i.ctl is not None
        i.ctl = i.ctl._replace(wait=0)
    from ir_format import wire
    from orchestrator.api import finish
    from stages.plumbing.chain import ENCODE

    data = wire.stream_of(stream.header, wire.module_from_wire(wire.unpack(stream.module)), [unit])
    cubin = tmp_path / "x.cubin"
    cubin.write_bytes(finish(data, (ENCODE,)))
    args = [str(file), "--cosim", "--cubin", str(cubin), "--seeds", "1"]
    assert CliRunner().invoke(app, args).exit_code == 0
    strict = CliRunner().invoke(app, [*args, "--strict"])
    assert strict.exit_code == 1 and "different" in strict.output
