"""Random integer kernels: our cubin and ptxas's, run side by side in the simulator on the same data.

    python -m tests.lower.test_against_ptxas [--arch 90] [--first N] [--count N] [--depth N]      runs more of them
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests import oracle
from tests.kernels.run import compile_orias, compile_ptxas
from tests.lower.random_ptx import RECORD, Generator

THREADS = 64
_EDGES = (0, 1, 2**64 - 1, 2**63, 2**63 - 1, 2**31, 2**31 - 1, 31, 32, 255, 0x80, 0x8000)


def data(seed: int) -> np.ndarray:  # type: ignore[type-arg]
    """Random bytes with two fifths of the slots at edge values."""
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 256, THREADS * RECORD, dtype=np.uint8)
    slots = raw.view(np.uint64)
    chosen = rng.random(slots.shape) < 0.4
    slots[chosen] = rng.choice(np.array(_EDGES, np.uint64), int(chosen.sum()))
    return raw


def run(image: bytes, seed: int) -> np.ndarray:  # type: ignore[type-arg]
    """What the kernel writes."""
    from stages.simulate import Device

    out = np.zeros(THREADS * RECORD, np.uint8)
    Device(image).launch("k", (1, 1, 1), (THREADS, 1, 1), [data(seed), out])
    return out


def difference(seed: int, arch: str, depth: int) -> str:
    """'' when both cubins write the same, else the slots that differ or the error."""
    text = Generator(seed).text(f"sm_{min(int(arch), 90)}", depth)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.ptx"
        path.write_text(text)
        theirs, ours = compile_ptxas(path, arch, []), compile_orias(path, arch, [])
    if isinstance(theirs, str) or isinstance(ours, str):
        return str(theirs if isinstance(theirs, str) else ours)
    a, b = run(theirs, seed), run(ours, seed)
    wrong = np.nonzero(a != b)[0]
    return f"slots {sorted(set((wrong % RECORD // 8).tolist()))} of {len(set((wrong // RECORD).tolist()))} threads" if len(wrong) else ""


@pytest.mark.oracle
@pytest.mark.parametrize(("arch", "seed"), [("75", 1), ("80", 2), ("80", 3), ("90", 4), ("90", 5), ("120", 6)])
def test_random_kernels(arch: str, seed: int) -> None:
    oracle.require("ptxas")
    assert difference(seed, arch, 2) == ""


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Random kernels, ours against ptxas's.")
    parser.add_argument("--arch", default="90")
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--depth", type=int, default=2)
    options = parser.parse_args()
    bad = 0
    for seed in range(options.first, options.first + options.count):
        found = difference(seed, options.arch, options.depth)
        if found:
            bad += 1
            print(f"{seed}: {found}", flush=True)
    print(f"{bad} of {options.count} differ")


if __name__ == "__main__":
    main()
