"""Hostile input: truncated, flipped and forged streams into every stage, random bytes as PTX. The result is a
diagnostic and an exit code, never an exception."""

from __future__ import annotations

import io
import random
import subprocess
import sys
from functools import lru_cache
from typing import Any

import msgpack
import pytest

from ir_format import isa, wire
from ir_format.diag import CompileError
from ir_format.model import RZ, Block, Ctl, Function, Inst, Label, Reg
from ir_format.verify import verify_function
from orchestrator.api import compile_ptx
from stages.plumbing.back_end import elf_from_stream
from stages.plumbing.chain import MIDDLE, NAMES, Stage
from stages.plumbing.front_end import parse_to_stream
from stages.plumbing.runner import Flags, run_stage
from tests.chain import mutate
from tests.chain.corpus import ptx_path
from tests.chain.test_chain import env

CUTS = 2000  # over all stages
PTX_CASES = 500


@lru_cache(maxsize=1)
def streams() -> dict[str, bytes]:
    """The stream after every stage for one kernel with branches, shared memory and a loop."""
    kept: dict[str, bytes] = {}
    compile_ptx(ptx_path("matmul", "sm_90").read_bytes(), "sm_90", {}, streams=kept)
    return kept


def feed(name: str, data: bytes) -> int:
    """Run one stage on bytes; its exit code."""
    if name == "elf":
        return elf_from_stream(io.BytesIO(data), lambda b: None)
    stage: Stage = next(s for s in MIDDLE if s.name == name)
    return run_stage(stage, io.BytesIO(data), io.BytesIO(), Flags(quiet=True))


@pytest.mark.parametrize("at", range(1, len(NAMES)))
def test_cut_and_flipped_streams(at: int, capsys: pytest.CaptureFixture[str]) -> None:
    data = streams()[NAMES[at - 1]]
    rng = random.Random(at)
    for case in range(-(-CUTS // (len(NAMES) - 1))):
        bad = bytearray(data)
        if case % 2:
            del bad[rng.randrange(len(bad)) :]
        else:
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        assert feed(NAMES[at], bytes(bad)) == 1
    err = capsys.readouterr().err
    assert "Traceback" not in err and "internal fault" not in err


def forge(rng: random.Random, x: Any, depth: int = 0) -> Any:
    """One value somewhere inside changed."""
    if isinstance(x, list) and x and rng.random() < 0.93:
        i = rng.randrange(len(x))
        return [*x[:i], forge(rng, x[i], depth + 1), *x[i + 1 :]]
    if isinstance(x, dict) and x:
        k = rng.choice(sorted(x, key=str))
        return {**x, k: forge(rng, x[k], depth + 1)}
    if isinstance(x, int):
        return rng.choice([x + 1, x - 1, 0, -1, 255, 1 << 20, 1 << 40])
    if isinstance(x, str):
        return rng.choice(["", "IADD3", "BRA", "R", "P", "PHI", "COPY", "X", x + "x"])
    return rng.choice([None, 0, "", b"", []])


def resealed(data: bytes, rng: random.Random) -> bytes:
    """The stream with one forged value and a correct trailer."""
    frames = [(tag, msgpack.unpackb(d, use_list=True)[1]) for tag, d in wire.frames(io.BytesIO(data))]
    out = io.BytesIO()
    w = wire.Writer(out.write)
    victim = rng.choice([n for n, (t, _) in enumerate(frames) if t == "unit"] * 6 + list(range(len(frames))))
    for n, (tag, body) in enumerate(frames):
        w.record(tag, forge(rng, body) if n == victim else body)
    w.end()
    return out.getvalue()


@pytest.mark.parametrize("at", range(1, len(NAMES)))
def test_forged_streams_with_a_true_checksum(at: int, capsys: pytest.CaptureFixture[str]) -> None:
    data = streams()[NAMES[at - 1]]
    rng = random.Random(100 + at)
    for _ in range(80):
        assert feed(NAMES[at], resealed(data, rng)) in (0, 1)
    err = capsys.readouterr().err
    assert "Traceback" not in err


def test_random_bytes_as_ptx() -> None:
    rng = random.Random(5)
    good = ptx_path("saxpy", "sm_90").read_bytes()
    for case in range(PTX_CASES):
        if case % 2:
            text = bytes(rng.randrange(256) for _ in range(rng.randrange(400)))
        else:
            text = bytearray(good)
            for _ in range(rng.randrange(1, 30)):
                text[rng.randrange(len(text))] = rng.randrange(256)
        said: list[str] = []
        code = parse_to_stream([("r.ptx", bytes(text))], "sm_90", {"opt-level": 3}, lambda b: None, say=said.append)
        assert code in (0, 1)
        assert code == 0 or any("error" in s or "fatal" in s for s in said)


BOUNDED = r"""
import io, random, resource, sys
from tests.chain import test_hostile as T
T.streams()
limit = 512 << 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
rng = random.Random(9)
bombs = [b"\x92\xa5orias" + b"\xdd\xff\xff\xff\xff" * 900, b"\x92\xa5orias\xc6\xff\xff\xff\xff"]
for at in range(1, len(T.NAMES)):
    data = T.streams()[T.NAMES[at - 1]]
    cases = list(bombs)
    for _ in range(60):
        bad = bytearray(data)
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        cases += [bytes(bad), T.resealed(data, rng)]
    for case in cases:
        assert T.feed(T.NAMES[at], case) in (0, 1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10, "MiB")
"""


def test_memory_stays_bounded() -> None:
    """Every stage under a limit of 512 MiB: flipped and forged streams, and arrays that claim four billion elements
    each."""
    done = subprocess.run([sys.executable, "-c", BOUNDED], capture_output=True, env=env(), timeout=200, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Traceback" not in done.stderr and "MemoryError" not in done.stderr
    assert int(done.stdout.split()[0]) < 512


def test_a_sample_of_mutations(capsys: pytest.CaptureFixture[str]) -> None:
    """A small sample of the campaign (`python -m tests.chain.mutate`)."""
    code = mutate.main(["--streams", "120", "--cubins", "40", "--ptx", "20", "--arch", "sm_90", "--seed", "7"])
    assert code == 0, capsys.readouterr().out


EXIT = Inst("EXIT", (), *isa.target(90).complete("EXIT", (), (), ()))


@pytest.mark.parametrize(
    ("form", "rule"),
    [
        (Inst("COPY", (), (Reg("R", 0),), ()), "1 destinations and 0 sources"),
        (Inst("PCOPY", (), (), ()), "0 destinations and 0 sources"),
        (Inst("COPY", (), (Reg("R", 0, 0, 2),), (Reg("R", 2),)), "a destination of width 2 and a source of width 1"),
        (Inst("COPY", (), (RZ,), (Reg("R", 2),)), "a destination that is no register"),
        (Inst("COPY", (), (Reg("R", 0),), (Label("L", 0),)), "a source that is no value"),
        (Inst("UNDEF", (), (Reg("R", 0),), (Reg("R", 1),)), "it has no sources"),
        (Inst("PHI", (), (Reg("R", 0),), (Reg("R", 1),)), "this pseudo instruction can't occur at level ori"),
        (Inst("NOP", (), (), (), None, 1, 5), "there is no source position 5"),
    ],
)
def test_rules_of_pseudo_instructions(form: Inst, rule: str) -> None:
    f = Function("k", "entry")
    f.blocks = [Block(0, [form, EXIT])]
    with pytest.raises(CompileError, match=rule):
        verify_function(f, "ori", isa.target(90))


def test_padding_after_a_program_is_no_fault() -> None:
    f = Function("k", "entry")
    f.blocks = [
        Block(0, [Inst("EXIT", (), (), EXIT.srcs, None, 0, -1, Ctl(5))]),
        Block(1, [Inst("NOP", (), (), (), None, 0, -1, Ctl())]),
    ]
    verify_function(f, "scheduled", isa.target(90))
    with pytest.raises(CompileError, match="falls off"):
        verify_function(f, "allocated", isa.target(90))
