"""The strict machine's fast path (safe results written at once) and its slow path agree: memory, hazards, counts; also
for broken control words."""

from __future__ import annotations

import io
import random
from collections.abc import Callable

import pytest
from elftools.elf.elffile import ELFFile

from stages.simulate import Device, SimError
from stages.simulate.strict_runs import Runs
from stages.simulate.strict_time import Plan
from tests import oracle
from tests.kernels import cases
from tests.kernels.model import KernelSpec, Launch
from tests.kernels.run import compile_ptxas, prepare, ptx_for

pytestmark = pytest.mark.oracle

ARCH = "90"
_BREAKS: dict[str, Callable[[int, random.Random], int]] = {
    "stall": lambda word, r: word & ~(15 << 105) | r.randrange(1, 4) << 105,
    "wait": lambda word, r: word & ~(63 << 116),
    "reuse": lambda word, r: word | 1 << 122,
}


def broken(cubin: bytes, r: random.Random) -> bytes:
    """The cubin with a few wrong control words."""
    texts = [
        (s["sh_offset"], s["sh_size"])
        for s in ELFFile(io.BytesIO(cubin)).iter_sections()
        if s.name.startswith(".text.")
    ]
    data = bytearray(cubin)
    for _ in range(r.choice((0, 1, 4))):
        offset, size = r.choice(texts)
        at = offset + 16 * r.randrange(size // 16)
        word = _BREAKS[r.choice(sorted(_BREAKS))](int.from_bytes(data[at : at + 16], "little"), r)
        data[at : at + 16] = word.to_bytes(16, "little")
    return bytes(data)


def outcome(cubin: bytes, launch: Launch, seed: int) -> tuple[object, ...]:
    """The results of a strict launch."""
    device = Device(cubin)
    buffers, args = prepare(device, launch)
    try:
        stats = device.launch(
            launch.entry, launch.grid, launch.block, args, shared=launch.shared, strict=True, seed=seed, limit=100_000
        )
    except SimError as e:
        return (
            "error",
            str(e).split(" at SASS")[0],
        )  # the slow path finds a bad address when the instruction reads it, and names that place
    return {k: v.tobytes() for k, v in buffers.items()}, sorted(stats.hazards), stats.instructions


def never(self: Runs, plan: Plan) -> bool:
    """No instruction is safe: the slow path for all."""
    return False


@pytest.mark.parametrize(
    "spec",
    [cases.CASES[n] for n in ("vadd", "matmul", "reduce_sum", "switch10", "call_twice", "half2_ops")],
    ids=lambda s: s.name,
)
def test_fast_and_slow_paths_agree(spec: KernelSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle.require("ptxas")
    got = compile_ptxas(ptx_for(spec, ARCH), ARCH, [])
    assert isinstance(got, bytes)
    launch = spec.launches(0)[2]
    r = random.Random(spec.name)
    cubins = [(broken(got, r), r.randrange(1, 9)) for _ in range(6)]
    short = [outcome(cubin, launch, seed) for cubin, seed in cubins]
    monkeypatch.setattr(Runs, "safe", never)
    assert [outcome(cubin, launch, seed) for cubin, seed in cubins] == short
