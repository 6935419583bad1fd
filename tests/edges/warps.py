"""Warp-wide instructions under masks, and atomics, by the manual's text in Python integers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from tests.edges.form import Form
from tests.edges.formats import EXACT, C, host, is_nan, number, to_half
from tests.edges.integers import PY, sg, un

Warp = list[tuple[int, ...]]
MASKS: Final = (0xFFFFFFFF, 0x0000FFFF, 0xAAAAAAAA, 0x80000001, 0x00000010)


def _few(bits: int) -> Callable[[random.Random], Warp]:
    """A warp's operands: all equal, few different values, or all different."""

    def draw(rng: random.Random) -> Warp:
        count = rng.choice((1, 2, 3, 32))
        pool = [
            rng.choice((0, 1, (1 << bits) - 1, 1 << bits - 1, rng.getrandbits(bits)))
            if count < 32
            else rng.getrandbits(bits)
            for _ in range(count)
        ]
        return [(rng.choice(pool),) for _ in range(32)]

    return draw


def _masked(text: str, mask: int) -> str:
    """The instruction for the threads of a mask; the others have zeros."""
    if mask == 0xFFFFFFFF:
        return text
    return (
        f"{{{{ .reg .pred %q; mov.u32 %t, %laneid; shr.u32 %t, {mask}, %t; and.b32 %t, %t, 1; setp.eq.u32 %q, "
        f"%t, 0; mov.b32 {{d}}, 0; @%q bra L; {text} L: }}}}"
    )


def _here(mask: int) -> list[int]:
    return [i for i in range(32) if mask >> i & 1]


def _spread(mask: int, f: Callable[[int], int]) -> list[tuple[int, ...]]:
    return [(f(i) if mask >> i & 1 else 0,) for i in range(32)]


def _votes() -> Iterator[Form]:
    for mask in MASKS:
        here = _here(mask)
        kinds: dict[str, Callable[[list[int]], int]] = {
            "all": lambda x: int(all(x)),
            "any": lambda x: int(any(x)),
            "uni": lambda x: int(all(x) or not any(x)),
        }
        for name, f in kinds.items():
            for negated in ("", "!"):
                text = (
                    f"{{{{ .reg .pred %v, %w; setp.ne.u32 %v, {{a}}, 0; vote.sync.{name}.pred %w, {negated}%v, "
                    f"{mask}; selp.b32 {{d}}, 1, 0, %w; }}}}"
                )
                yield Form(
                    "vote",
                    _masked(text, mask),
                    ("32",),
                    ("32",),
                    lambda w, m=mask, h=here, f=f, n=bool(negated): _spread(
                        m, lambda i: f([int((w[k][0] != 0) != n) for k in h])
                    ),
                    PY,
                    together=32,
                    draw=_few(32),
                )
        text = f"{{{{ .reg .pred %v; setp.ne.u32 %v, {{a}}, 0; vote.sync.ballot.b32 {{d}}, %v, {mask}; }}}}"
        yield Form(
            "vote",
            _masked(text, mask),
            ("32",),
            ("32",),
            lambda w, m=mask, h=here: _spread(m, lambda i: sum((w[k][0] != 0) << k for k in h)),
            PY,
            together=32,
            draw=_few(32),
        )
        for n in (32, 64):
            yield Form(
                "match",
                _masked(f"match.any.sync.b{n} {{d}}, {{a}}, {mask};", mask),
                (str(n),),
                ("32",),
                lambda w, m=mask, h=here: _spread(m, lambda i: sum((w[k][0] == w[i][0]) << k for k in h)),
                PY,
                together=32,
                draw=_few(n),
            )
            text = (
                f"{{{{ .reg .pred %v; .reg .b32 %s; match.all.sync.b{n} {{d}}|%v, {{a}}, {mask}; selp.b32 %s, "
                f"1, 0, %v; xor.b32 {{d}}, {{d}}, %s; }}}}"
            )
            yield Form(
                "match",
                _masked(text, mask),
                (str(n),),
                ("32",),
                lambda w, m=mask, h=here: _spread(m, lambda i: m ^ 1 if len({w[k][0] for k in h}) == 1 else 0),
                PY,
                together=32,
                draw=_few(n),
            )
        ops: dict[str, Callable[[list[int]], int]] = {
            "add.u32": sum, "add.s32": sum, "min.u32": min, "max.u32": max,
            "min.s32": lambda x: min(x, key=lambda v: sg(v, 32)), "max.s32": lambda x: max(x, key=lambda v: sg(v, 32)),
            "and.b32": lambda x: _fold(x, lambda a, b: a & b), "or.b32": lambda x: _fold(x, lambda a, b: a | b),
            "xor.b32": lambda x: _fold(x, lambda a, b: a ^ b),
        }  # fmt: skip
        for name, f in ops.items():
            yield Form(
                "redux",
                _masked(f"redux.sync.{name} {{d}}, {{a}}, {mask};", mask),
                ("32",),
                ("32",),
                lambda w, m=mask, h=here, f=f: _spread(m, lambda i: un(f([w[k][0] for k in h]), 32)),
                PY,
                80,
                together=32,
                draw=_few(32),
            )
        yield Form(
            "activemask",
            _masked("activemask.b32 {d};", mask),
            ("32",),
            ("32",),
            lambda w, m=mask: _spread(m, lambda i: m),
            PY,
            together=32,
            draw=_few(32),
        )


def _fold(x: list[int], f: Callable[[int, int], int]) -> int:
    out = x[0]
    for v in x[1:]:
        out = f(out, v)
    return out


def _shuffled(mode: str, lane: int, b: int, c: int) -> tuple[int, int]:
    """The manual's pseudo-code: (source lane, in range)."""
    b, c, segment = b & 31, c & 31, c >> 8 & 31
    most, least = lane & segment | c & ~segment & 31, lane & segment
    if mode == "up":
        j = lane - b
        return (j, 1) if j >= most else (lane, 0)
    j = lane + b if mode == "down" else lane ^ b if mode == "bfly" else least | b & ~segment & 31
    return (j, 1) if j <= most else (lane, 0)


def _shuffles() -> Iterator[Form]:
    for mode in ("up", "down", "bfly", "idx"):
        for b in (0, 1, 5, 16, 31, 32, 33):
            for c in (0, 0x1800, 0x1C00, 0x0007) if mode == "up" else (31, 0x181F, 0x1C03, 0x1F1F, 0x0007):
                text = (
                    f"{{{{ .reg .pred %v; shfl.sync.{mode}.b32 {{d}}|%v, {{a}}, {b}, {c}, 0xffffffff; "
                    f"selp.b32 {{e}}, 1, 0, %v; }}}}"
                )
                yield Form(
                    "shfl",
                    text,
                    ("32",),
                    ("32", "32"),
                    lambda w, m=mode, b=b, c=c: [
                        (w[s][0], ok) for i in range(32) for s, ok in (_shuffled(m, i, b, c),)
                    ],
                    PY,
                    together=32,
                    draw=_few(32),
                )


def _atomics() -> Iterator[Form]:
    """Each thread's own word: the old and the new value. Global memory in the output's slots, shared
    memory in slots by thread."""

    def text(op: str, n: int, count: int, space: str) -> str:
        names = ", ".join(("{b}", "{c}")[:count])
        if space == "global":
            return (
                f"st.global.b{n} [%out+8], {{a}}; atom.global.{op} {{d}}, [%out+8], {names}; "
                f"ld.global.b{n} {{e}}, [%out+8];"
            )
        return (
            "{{ .shared .align 8 .b64 own[256]; .reg .b32 %s; mov.u32 %s, own; mov.u32 %t, %tid.x; mad.lo.u32 %s, "
            f"%t, 8, %s; st.shared.b{n} [%s], {{a}}; "
                f"atom.shared.{op} {{d}}, [%s], {names}; ld.shared.b{n} {{e}}, [%s]; }}}}")  # fmt: skip

    for space in ("global", "shared"):
        for n in (32, 64):
            k = str(n)
            ops: dict[str, Callable[[int, int], int]] = {
                f"exch.b{n}": lambda a, b: b, f"add.u{n}": lambda a, b, n=n: un(a + b, n), f"and.b{n}": lambda a,
                    b: a & b, f"or.b{n}": lambda a, b: a | b, f"xor.b{n}": lambda a, b: a ^ b,
                f"min.u{n}": min, f"max.u{n}": max, f"min.s{n}": lambda a, b, n=n: min(a, b, key=lambda v: sg(v, n)),
                    f"max.s{n}": lambda a, b, n=n: max(a, b, key=lambda v: sg(v, n)),
            }  # type: ignore[misc]  # fmt: skip
            if n == 32:
                ops |= {
                    "inc.u32": lambda a, b: 0 if a >= b else a + 1,
                    "dec.u32": lambda a, b: b if a == 0 or a > b else a - 1,
                }
            for op, f in ops.items():
                yield Form("atom", text(op, n, 1, space), (k, k), (k, k), lambda a, b, f=f: (a, f(a, b)), PY)
            yield Form(
                "atom", text(f"cas.b{n}", n, 2, space), (k, k, k), (k, k), lambda a, b, c: (a, c if a == b else a), PY
            )
        yield Form(
            "atom add f64",
            text("add.f64", 64, 1, space),
            ("f64", "f64"),
            ("f64", "f64"),
            lambda a, b: (a, host().f64_op(0, 0, a, b, 0)),
            C,
            floats="f64",
        )
        yield Form(
            "atom add f32",
            text("add.f32", 32, 1, space),
            ("f32", "f32"),
            ("f32", "f32"),
            lambda a, b, s=space: (a, _atomic_sum(a, b, s == "global")),
            C + ", the manual's flush of global memory",
            floats="f32",
        )
        yield Form(
            "atom add f16x2",
            text("add.noftz.f16x2", 32, 1, space),
            ("f16x2", "f16x2"),
            ("32", "32"),
            lambda a, b: (a, _half_sum(a, b) | _half_sum(a >> 16, b >> 16) << 16),
            EXACT,
            only=lambda a, b: (
                not any(
                    is_nan(x, "f16")
                    for x in (a & 65535, a >> 16, b & 65535, b >> 16, _half_sum(a, b), _half_sum(a >> 16, b >> 16))
                )
            ),
        )


def _atomic_sum(a: int, b: int, flush: bool) -> int:
    """atom.add.f32: in global memory subnormal numbers are zeros of their sign, in shared memory not."""

    def cut(x: int) -> int:
        return x & 1 << 31 if flush and not x & 0x7F800000 else x

    return cut(host().f32_op(0, 0, cut(a), cut(b), 0))


def _half_sum(a: int, b: int) -> int:
    x, y = number(a & 65535, "f16"), number(b & 65535, "f16")
    with np.errstate(all="ignore"):
        return to_half(x + y, "rn")  # exact in a double


def forms() -> Iterator[Form]:
    """All of them."""
    yield from _votes()
    yield from _shuffles()
    yield from _atomics()
