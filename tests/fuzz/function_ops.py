"""Operations of the functions of :mod:`functions`: the PTX text and the same in Python's integers, by the PTX
manual."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

Env = dict[
    str, Any
]  # registers by name: integers (floats by their bits, predicates 0 or 1); parameters and local arrays: bytes

REGS: Final = {"w": ".b32", "l": ".b64", "h": ".b16", "f": ".f32", "d": ".f64", "p": ".pred"}
_W: Final = (1 << 32) - 1
_L: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Op:
    """``text`` with places for the sources, ``{d}`` and ``{n}`` (a literal); ``value`` takes the sources and the
    literal."""

    kind: str
    text: str
    srcs: str
    value: Callable[..., int]
    literal: Callable[[random.Random], int] | None = None


def _s32(x: int) -> int:
    return x - (x >> 31 << 32)


def _s64(x: int) -> int:
    return x - (x >> 63 << 64)


def _s16(x: int) -> int:
    return x - (x >> 15 << 16)


def _amount(rng: random.Random) -> int:
    return rng.choice((1, 3, 7, 8, 16, 24, 31))


def _wide_amount(rng: random.Random) -> int:
    return rng.choice((1, 5, 16, 31, 32, 33, 48, 63))


def _word(rng: random.Random) -> int:
    return rng.choice((1, 2, 7, 255, 256, 65535, 0x7FFFFFFF, rng.getrandbits(31)))


def _odd(rng: random.Random) -> int:
    return rng.choice((3, 7, 10, 255, 1000003, rng.getrandbits(20) | 1))


def _bits(x: float) -> int:
    return int.from_bytes(struct.pack("<d", x), "little")


def _prmt(a: int, b: int, selector: int) -> int:
    data = (a | b << 32).to_bytes(8, "little")
    return int.from_bytes(bytes(data[selector >> 4 * i & 7] for i in range(4)), "little")


OPS: Final = (
    Op("w", "add.u32 {d}, {0}, {1};", "ww", lambda a, b: a + b & _W),
    Op("w", "sub.u32 {d}, {0}, {1};", "ww", lambda a, b: a - b & _W),
    Op("w", "xor.b32 {d}, {0}, {1};", "ww", lambda a, b: a ^ b),
    Op("w", "and.b32 {d}, {0}, {n};", "w", lambda a, n: a & n, _word),
    Op("w", "mad.lo.u32 {d}, {0}, {1}, {2};", "www", lambda a, b, c: a * b + c & _W),
    Op("w", "add.u32 {d}, {0}, {n};", "w", lambda a, n: a + n & _W, _word),
    Op("w", "shl.b32 {d}, {0}, {n};", "w", lambda a, n: a << n & _W, _amount),
    Op("w", "shr.u32 {d}, {0}, {n};", "w", lambda a, n: a >> n, _amount),
    Op("w", "shr.s32 {d}, {0}, {n};", "w", lambda a, n: _s32(a) >> n & _W, _amount),
    Op("w", "min.s32 {d}, {0}, {1};", "ww", lambda a, b: min(_s32(a), _s32(b)) & _W),
    Op("w", "max.u32 {d}, {0}, {1};", "ww", lambda a, b: max(a, b)),
    Op("w", "selp.b32 {d}, {0}, {1}, {2};", "wwp", lambda a, b, p: a if p else b),
    Op("w", "prmt.b32 {d}, {0}, {1}, {n};", "ww", _prmt,
        lambda rng: rng.choice((0x3210, 0x0123, 0x5410, 0x7632, 0x2103))),
    Op("w", "popc.b32 {d}, {0};", "w", lambda a: a.bit_count()),
    Op("w", "cvt.u32.u64 {d}, {0};", "l", lambda a: a & _W),
    Op("w", "cvt.u32.u16 {d}, {0};", "h", lambda a: a),
    Op("w", "cvt.s32.s16 {d}, {0};", "h", lambda a: _s16(a) & _W),
    Op("w", "mov.b32 {d}, {0};", "f", lambda a: a),
    Op("w", "div.u32 {d}, {0}, {n};", "w", lambda a, n: a // n, _odd),
    Op("w", "rem.u32 {d}, {0}, {n};", "w", lambda a, n: a % n, _odd),
    Op("w", "{{.reg .b32 t; or.b32 t, {1}, 1; div.u32 {d}, {0}, t;}}", "ww", lambda a, b: a // (b | 1)),
    Op("w", "mul.hi.u32 {d}, {0}, {1};", "ww", lambda a, b: a * b >> 32),
    Op("l", "add.u64 {d}, {0}, {1};", "ll", lambda a, b: a + b & _L),
    Op("l", "sub.u64 {d}, {0}, {1};", "ll", lambda a, b: a - b & _L),
    Op("l", "xor.b64 {d}, {0}, {1};", "ll", lambda a, b: a ^ b),
    Op("l", "mul.lo.u64 {d}, {0}, {1};", "ll", lambda a, b: a * b & _L),
    Op("l", "mad.wide.u32 {d}, {0}, {1}, {2};", "wwl", lambda a, b, c: a * b + c & _L),
    Op("l", "mul.wide.s32 {d}, {0}, {1};", "ww", lambda a, b: _s32(a) * _s32(b) & _L),
    Op("l", "shl.b64 {d}, {0}, {n};", "l", lambda a, n: a << n & _L, _wide_amount),
    Op("l", "shr.u64 {d}, {0}, {n};", "l", lambda a, n: a >> n, _wide_amount),
    Op("l", "shr.s64 {d}, {0}, {n};", "l", lambda a, n: _s64(a) >> n & _L, _wide_amount),
    Op("l", "cvt.u64.u32 {d}, {0};", "w", lambda a: a),
    Op("l", "cvt.s64.s32 {d}, {0};", "w", lambda a: _s32(a) & _L),
    Op("l", "mov.b64 {d}, {{{0}, {1}}};", "ww", lambda a, b: a | b << 32),
    Op("l", "selp.b64 {d}, {0}, {1}, {2};", "llp", lambda a, b, p: a if p else b),
    Op("l", "mov.b64 {d}, {0};", "d", lambda a: a),
    Op("l", "{{.reg .b64 t; or.b64 t, {1}, 1; rem.u64 {d}, {0}, t;}}", "ll", lambda a, b: a % (b | 1)),
    Op("l", "{{.reg .b64 t; or.b64 t, {1}, 1; div.u64 {d}, {0}, t;}}", "ll", lambda a, b: a // (b | 1)),
    Op("h", "cvt.u16.u32 {d}, {0};", "w", lambda a: a & 0xFFFF),
    Op("h", "add.u16 {d}, {0}, {1};", "hh", lambda a, b: a + b & 0xFFFF),
    Op("h", "mul.lo.u16 {d}, {0}, {1};", "hh", lambda a, b: a * b & 0xFFFF),
    Op("h", "shr.u16 {d}, {0}, {n};", "h", lambda a, n: a >> n, lambda rng: rng.choice((1, 4, 8, 15))),
    Op("f", "mov.b32 {d}, {0};", "w", lambda a: a),
    Op("f", "cvt.rn.f32.u16 {d}, {0};", "h", lambda a: int.from_bytes(struct.pack("<f", float(a)), "little")),
    Op("d", "cvt.rn.f64.s32 {d}, {0};", "w", lambda a: _bits(float(_s32(a)))),
    Op("d", "mov.b64 {d}, {0};", "l", lambda a: a),
    Op("d",
            "{{.reg .b32 t; .reg .f64 x, y; or.b32 t, {1}, 1; cvt.rn.f64.u32 x, {0}; cvt.rn.f64.u32 y, t; div.rn.f64 "
            "{d}, x, y;}}", "ww", lambda a, b: _bits(float(a) / float(b | 1))),
    Op("p", "setp.lt.s32 {d}, {0}, {1};", "ww", lambda a, b: int(_s32(a) < _s32(b))),
    Op("p", "setp.gt.u32 {d}, {0}, {n};", "w", lambda a, n: int(a > n), _word),
    Op("p", "setp.eq.u64 {d}, {0}, {1};", "ll", lambda a, b: int(a == b)),
    Op("p", "setp.lt.s64 {d}, {0}, {1};", "ll", lambda a, b: int(_s64(a) < _s64(b))),
    Op("p", "and.pred {d}, {0}, {1};", "pp", lambda a, b: a & b),
    Op("p", "xor.pred {d}, {0}, {1};", "pp", lambda a, b: a ^ b),
    Op("p", "not.pred {d}, {0};", "p", lambda a: 1 - a),
    Op("p", "{{.reg .b32 t; and.b32 t, {0}, {n}; setp.ne.u32 {d}, t, 0;}}", "w", lambda a, n: int(a & n != 0),
        lambda rng: 1 << rng.randrange(4)),
)  # fmt: skip
