"""Launches of kernels75.cu and kernels80.cu, with the expected results, computed in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Arr = NDArray[Any]
HERE: Final = Path(__file__).resolve().parent
M: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Case:
    """A launch. ``args``: fresh arguments; ``check``: what is wrong with them afterwards, or ""."""

    name: str
    grid: int
    block: int | tuple[int, int]
    args: Callable[[], list[Any]]
    check: Callable[[list[Any]], str]
    sm: int = 75
    notes: tuple[str, ...] = field(default=())

    def ptx(self) -> Path:
        """The module that contains it."""
        return HERE / f"kernels{self.sm}.ptx"


def _words(n: int, high: int, seed: int = 0) -> Arr:
    return np.random.default_rng([seed, n]).integers(0, high, n).astype(np.uint32)


def _is(at: int, want: list[int] | Arr) -> Callable[[list[Any]], str]:
    expected = np.array([int(x) & M for x in want], np.uint32)

    def check(args: list[Any]) -> str:
        got = args[at][: len(expected)]
        bad = np.flatnonzero(got != expected)
        return "" if not len(bad) else f"element {bad[0]} is {got[bad[0]]}, not {expected[bad[0]]}"

    return check


def _zeros(n: int) -> Arr:
    return np.zeros(n, np.uint32)


def _plain(
    name: str,
    grid: int,
    block: int | tuple[int, int],
    data: Arr,
    out: int,
    want: list[int] | Arr,
    *more: int,
    sm: int = 75,
) -> Case:
    """in, out and numbers."""
    return Case(name, grid, block, lambda: [data.copy(), _zeros(out), *(np.uint32(x) for x in more)], _is(1, want), sm)


def _sorted() -> Case:
    data = _words(128, 1000)
    return _plain("bitonic", 1, 128, data, 128, np.sort(data))


def _producer() -> Case:
    data = _words(64 * 5, 1 << 20)
    want = (data.reshape(5, 64)[:, ::-1].astype(np.uint64) * 3 + 1).reshape(-1)
    return _plain("producer", 1, 128, data, 320, want, 5)


def _halves() -> Case:
    data = _words(128, 1 << 20)
    return _plain("halves", 1, 128, data, 128, np.concatenate([data[:64][::-1] + 1, data[64:][::-1] * 2]))


def _locked() -> Case:
    def check(args: list[Any]) -> str:
        count, order = args
        if count[0] != 64:
            return f"{count[0]} threads had the lock, not 64"
        return "" if sorted(order[:64].tolist()) == list(range(64)) else "not every thread had the lock once"

    return Case("spin_lock", 2, 32, lambda: [_zeros(1), _zeros(128)], check)


def _tickets() -> Case:
    lanes = [(b, t) for b in range(2) for t in range(0, 64, 32)]
    mixed = 0
    for b, t in lanes:
        mixed ^= (b + 1) * (t + 7)
    return Case("ticket_lock", 2, 64, lambda: [_zeros(2)], _is(0, [sum(t + 1 for _, t in lanes), mixed]))


def _early(data: Arr, n: int) -> list[int]:
    out = [0] * 128
    s = [int(data[t]) if t < n else 0 for t in range(128)]
    total = sum(s[:n]) & M
    for t in range(n):
        if data[t]:
            if total & 1:
                out[t] = total
                continue
            j = (t * 7) % n
            out[t] = (2 * int(data[j]) if data[j] else 0) + total
    return out


def _exits_early(n: int, odd: int) -> Case:
    data = _words(128, 50, n)
    data[::9] = 0
    data[5] += (int(data[:n].sum()) + odd) & 1
    return _plain("early_exit", 1, 128, data, 128, _early(data, n), n)


def _parts(data: Arr) -> list[int]:
    out = []
    for w in range(0, 64, 32):
        s = [int(x) for x in data[w : w + 32]]
        low, high = [s[15 - k] for k in range(16)], [s[47 - k] for k in range(16, 32)]
        s = [v + 1 for v in low] + [v * 3 & M for v in high]
        v = [low[k] + s[(k + 3) & 15] for k in range(16)] + [
            high[k - 16] + s[16 + ((k + 5) & 15)] for k in range(16, 32)
        ]
        out += [v[31 - k] + v[k ^ 1] for k in range(32)]
    return out


def _tiled(data: Arr) -> list[int]:
    v = [int(x) for x in data]
    for d in (4, 2, 1):
        v = [(v[t] + v[t ^ d]) & M for t in range(128)]
    s = [v[t] + (t & 7) for t in range(128)]
    v = [(v[t] + s[(t & ~7) + ((t + 3) & 7)]) & M for t in range(128)]
    bits = [sum((v[(t & ~7) + k] & 1) << k for k in range(8)) for t in range(128)]
    v = [(v[t] + bits[t]) & M for t in range(128)]
    s, out = v[:], v[:]
    for w in range(0, 128, 32):
        group = [t for t in range(w, w + 32) if v[t] & 2]
        for t in group:
            out[t] = v[t] + v[group[0]] + len(group)
    return [out[t] + s[127 - t] for t in range(128)]


def _grid(data: Arr) -> list[int]:
    v = [int(x) for x in data]
    for _ in range(3):
        v = [(v[i] + v[(i + 37) % len(v)]) & M for i in range(len(v))]
    return v


def _voted(data: Arr) -> list[int]:
    out = []
    for w in range(0, 64, 32):
        x = [int(a) for a in data[w : w + 32]]
        first = sum((x[k] & 1) << k for k in range(12))
        second = bin(sum((x[k] >> 1 & 1) << k for k in range(12))).count("1")
        all_ = 7 if all(a < 200 for a in x[12:]) else 9
        any_ = 100 * any(a == 77 for a in x[12:])
        for k in range(32):
            r = (first + x[k] if x[k] & 4 else first ^ 3) + second if k < 12 else all_ + any_
            same = sum(1 << j for j in range(32) if x[j] & 3 == x[k] & 3)
            out.append(r + same * 3 + sum((x[j] >> 3 & 1) << j for j in range(32)))
    return out


def _walk(v: int, n: int) -> tuple[int, int, int]:
    i = 0
    while i < n:
        v = (v * 1664525 + 1013904223) & M
        if v >> 28 == 3:
            return (v + 1000) & M, 1, i
        j = 0
        while j < v & 7:
            v ^= v >> 3
            if v & 0x1F0 == 0x130:
                return v, 0, i
            v = (v + j) & M
            j += 1
        if v & 0xF != 5:
            v = (v + 11) & M
        i += 1
    return (v + 1000) & M, 0, i


def _left(data: Arr, n: int) -> list[int]:
    out = []
    for w in range(0, len(data), 32):
        got = [_walk(int(x), n) for x in data[w : w + 32]]
        bits = sum(f << k for k, (_, f, _) in enumerate(got))
        out += [v + got[k ^ 16][0] * 3 + f * 7 + i + bits for k, (v, f, i) in enumerate(got)]
    return out


def _collatz(v: int) -> int:
    n = 0
    while v != 1 and n < 50:
        v = (3 * v + 1) & M if v & 1 else v >> 1
        n += 1
    return n


def _depth(v: int, d: int) -> int:
    if d == 0:
        return v
    r = _depth((v * 3 + 1) & M, d - 1) + 1 if v & 1 else _depth(v >> 1, d - 1) + _collatz(d)
    return (r + d) & M


def _called(data: Arr) -> list[int]:
    r = []
    for v in (int(x) for x in data):
        if v & 2:
            k = _collatz(v + 1)
            r.append(k + _collatz(k + 3) if k & 1 else k)
        else:
            r.append(_depth(v, 4))
    return [r[t] + r[t + 1 if t % 32 < 31 else t] for t in range(len(r))]


def _switched(data: Arr) -> list[int]:
    out = []
    for v in (int(x) for x in data):
        k = v & 7
        if k == 5:
            out.append(5)
            continue
        r = {0: v * 3, 2: v // 3, 4: v << 2, 3: v << 2}.get(k, ~v)
        if k == 1:
            r = v ^ 0x55
            for i in range(v & 15):
                r = r * 5 + i
        r &= M
        out.append(r + (r >> 1))
    return out


def _looped(data: Arr, rounds: int) -> list[int]:
    v = [int(x) for x in data]
    for _ in range(rounds):
        for t, x in enumerate(v):
            if x & 1:
                k, i = x, 0
                while i < k & 7:
                    k = (k * 7 + i) & M
                    i += 1
                v[t] = k
            elif x & 2:
                v[t] = x // 5 + 3
        s = v[:]
        v = [
            (v[t] + s[(t + 1) % 96] if s[(t + 1) % 96] > s[(t + 5) % 96] else v[t] ^ s[(t + 2) % 96]) & M
            for t in range(96)
        ]
    return v


def _shuffled(data: Arr) -> list[int]:
    v, total = [int(x) for x in data], [0] * len(data)
    for r in range(5):
        for t, x in enumerate(v):
            k = x & 15
            while k > 2:
                total[t] += k
                k = (k * 5) >> 3
                if total[t] & 64:
                    total[t] += 3
        v = [(v[t] * 69069 + 1 + total[t ^ (1 << r)]) & M for t in range(len(v))]
    return [v[t] + total[t] for t in range(len(v))]


def _objects(data: Arr) -> list[int]:
    v = [int(x) for x in data]
    for r in range(3):
        s = [v[t] + r for t in range(128)]
        v = [v[t] + s[(t + 33) & 127] for t in range(128)]
    return v


def _copied(data: Arr, rounds: int) -> list[int]:
    return [sum(int(data[r * 128 + 127 - t]) * 3 ** (rounds - 1 - r) for r in range(rounds)) for t in range(128)]


def _reduced(data: Arr) -> list[int]:
    out = []
    for w in range(0, 64, 32):
        x = [int(a) for a in data[w : w + 32]]
        r = [sum(x[1::2]) & M if k & 1 else max(x[::2]) for k in range(32)]
        r = [(r[k] + x[k] * 3 if x[k] & 4 else r[k]) & M for k in range(32)]
        both = 0
        for k in range(32):
            both ^= (x[k] + r[k]) & M
        out += [r[k] + both for k in range(32)]
    return out


def _last() -> Case:
    data = _words(6 * 64, 1000)
    return _plain(
        "last_block", 6, 64, data, 1, [sum(int(b.sum()) * (i + 1) for i, b in enumerate(data.reshape(6, 64)))]
    )


def _message() -> Case:
    data = _words(64, 1000)
    want = np.concatenate([np.ones(64, np.uint32), np.tile(np.roll(data, -1) + 9, 2)])
    return Case("message_acq", 3, 64, lambda: [data.copy(), _zeros(192), _zeros(1), _zeros(64)], _is(1, want), 80)


def _make() -> list[Case]:
    a, b, c = _words(128, 1000, 1), _words(64, 256, 2), _words(1024, 1 << 16, 3)
    small, odd = _words(96, 5000, 4), _words(128, 100, 5)
    two = _words(256, 900, 6)
    return [
        _sorted(), _plain("scan_steps", 1, 128, a, 128, np.cumsum(a)),
        _plain("scan_tree", 1, 64, a, 128, np.concatenate([[0], np.cumsum(a)[:-1]])),
        _plain("reduce_shared", 2, 128, two, 2, two.reshape(2, 128).sum(1)),
        _plain("reduce_shuffle", 1, 128, c, 1, [c.sum()], 1000 + 24),
        _producer(), _halves(), _locked(), _tickets(), _exits_early(100, 0), _exits_early(70, 1),
        _plain("warp_parts", 1, 64, b, 64, _parts(b)),
        _plain("tiles", 1, 128, a, 128, _tiled(a)), _last(),
        _plain("flag_wait", 2, 64, b, 128, np.concatenate([b, b[::-1] * 5])),
        _plain("grid_barrier", 2, 64, two[:128], 128, _grid(two[:128])), _plain("votes", 1, 64, b, 64, _voted(b)),
        _plain("exits", 1, 64, c[:64], 64, _left(c[:64], 6), 6),
        _plain("counts", 1, 96, small, 96, [int((small & 1).sum()) + 1000 * bool((small < 1000).all()) + 5000] * 96),
        _plain("called", 1, 64, b, 64, _called(b)), _plain("switched", 1, 64, b, 64, _switched(b)),
        _plain("transpose", 1, (16, 16), c, 1024, c.reshape(4, 16, 16).transpose(0, 2, 1).reshape(-1)),
        _plain("histogram", 1, 128, c[:500], 32, np.bincount(c[:500] & 31, minlength=32), 500),
        _plain("loop_barrier", 1, 96, small, 96, _looped(small, 3), 3),
        _plain("rounds_shuffle", 1, 64, b, 64, _shuffled(b)),
        _plain("barrier_object", 1, 128, odd, 128, _objects(odd), sm=80),
        _plain("copies", 1, 128, c[:512], 128, _copied(c[:512], 4), 4, sm=80),
        _plain("warp_reduce", 1, 64, b, 64, _reduced(b), sm=80), _message(),
    ]  # fmt: skip


CASES: Final = _make()
