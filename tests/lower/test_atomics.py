"""Every atomic form in every space against a model in Python: the old value, and memory afterwards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.kernels.run import compile_orias
from tests.lower.atomic_ptx import FORMS, SLOTS, SPACES, text

THREADS = 64
_FLOATS = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "f16x2": np.float16}


def bits_of(t: str) -> int:
    """Width of an atomic's type."""
    return 64 if t.endswith("64") else 16 if t in ("f16", "b16") else 32


def result(op: str, t: str, old: int, v: int, new: int) -> int:
    """The new value of the cell, as bits."""
    n = bits_of(t)
    if t in _FLOATS:
        kind = _FLOATS[t]
        unsigned = {2: np.uint16, 4: np.uint32, 8: np.uint64}[kind().itemsize]
        count = n // (8 * kind().itemsize)
        a, b = (np.array([x], f"<u{n // 8}").view(kind) for x in (old, v))
        with np.errstate(all="ignore"):
            total = (a + b).astype(kind)
        assert len(total) == count
        return int(sum(int(x) << (8 * kind().itemsize * i) for i, x in enumerate(total.view(unsigned))))
    sign = 1 << (n - 1)

    def key(x: int) -> int:
        return (x ^ sign) - sign if t[0] == "s" else x

    return {
        "add": (old + v) % (1 << n), "min": min(old, v, key=key), "max": max(old, v, key=key),
        "inc": 0 if old >= v else old + 1,
        "dec": v if old == 0 or old > v else old - 1, "and": old & v, "or": old | v, "xor": old ^ v, "exch": v,
        "cas": new if old == v else old,
    }[op]  # fmt: skip


def inputs() -> np.ndarray:  # type: ignore[type-arg]
    """Per thread: the cell before, the operand, the new value. No NaN, infinity or subnormal in any float type that
    reads them."""
    rng = np.random.default_rng(5)
    half = rng.integers(0x3000, 0x4400, (THREADS, 3, 4), dtype=np.uint16) | (
        rng.integers(0, 2, (THREADS, 3, 4), dtype=np.uint16) << 15
    )
    data = half.reshape(THREADS, 3, 4).copy().view(np.uint64).reshape(THREADS, 3)
    data[5] = (0x3C003C0000000000, 0x3C003C003C003C00, 7)
    data[6] = (0x3C003C003C003C00, 0x3C003C003C003C00, 9)
    return data


@pytest.mark.parametrize("arch", ["75", "80", "90", "120"])
def test_atomics(arch: str, tmp_path: Path) -> None:
    from stages.simulate import Device

    path = tmp_path / "k.ptx"
    path.write_text(text(f"sm_{min(int(arch), 90)}"))
    image = compile_orias(path, arch, [])
    assert isinstance(image, bytes), image
    data = inputs()
    out = np.zeros((THREADS, SLOTS), np.uint64)
    Device(image).launch("k", (1, 1, 1), (THREADS, 1, 1), [data.copy(), out], limit=500_000)
    for k, (op, t) in enumerate(FORMS):
        mask = (1 << bits_of(t)) - 1
        for s, space in enumerate(SPACES):
            at = 2 * (k * len(SPACES) + s)
            for thread in range(THREADS):
                cell, operand, new = (int(x) for x in data[thread])
                v = (
                    (operand if thread % 2 else cell) if op == "cas" else operand
                )  # the kernel lets every other swap succeed
                old = cell & mask
                want = cell & ~mask | result(op, t, old, v & mask, new & mask)
                got = tuple(int(x) for x in out[thread, at : at + 2])
                assert got == (old, want), (
                    op,
                    t,
                    space,
                    thread,
                    [hex(x) for x in got],
                    hex(old),
                    hex(want),
                    [hex(int(x)) for x in data[thread]],
                )
