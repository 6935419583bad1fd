"""Comparisons with results in registers or two predicates, accesses that cut and extend, atomics of narrow and wide
words, bit searches: Python integers, numpy, exact fractions, by the manual's text."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Final

from tests.edges.floats import compare
from tests.edges.form import Form
from tests.edges.formats import EXACT, NUMPY, flushed, is_nan, number
from tests.edges.halves import exact
from tests.edges.integers import PY, num, sg, un

_ORDERS: Final = ("eq", "ne", "lt", "le", "gt", "ge")
_JOINS: Final[dict[str, Callable[[int, int], int]]] = {
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
}
_ONE: Final = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}


def _test(name: str, t: str, ftz: bool = False) -> Callable[[int, int], int]:
    """A comparison of operands' bits; lo, ls, hi, hs are the unsigned ones."""
    if t[0] in "usb" and t != "bf16":
        plain = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(name, name)
        kind = t if t[0] != "b" else "u" + t[1:]
        return lambda a, b: compare(plain, num(a, kind), num(b, kind))
    return lambda a, b: compare(name, *(number(flushed(x, t) if ftz else x, t) for x in (a, b)))


def _kind(t: str) -> str:
    return t if t in ("f16", "bf16", "f32", "f64") else t[1:]


def _set() -> Iterator[Form]:
    """`set`: all ones or 1.0."""
    sources = ["u16", "s16", "u32", "s32", "u64", "s64", "f32", "f64"]
    for k, t in enumerate(sources):
        orders = [*_ORDERS, "equ", "ltu", "num", "nan"] if t[0] == "f" else [*_ORDERS]
        orders += ["lo", "ls", "hi", "hs"] if t[0] == "u" else []
        for n, name in enumerate(orders):
            d = ("u32", "s32", "f32")[(n + k) % 3]
            f = _test(name, t)
            yield Form(
                "set", f"set.{name}.{d}.{t} {{d}}, {{a}}, {{b}};", (_kind(t),) * 2, ("32",),
                lambda a, b, f=f, d=d: (_ONE["f32"] if d == "f32" else 0xFFFFFFFF) if f(a, b) else 0,
                NUMPY if t[0] == "f" else PY,
            )  # fmt: skip
    for (join, g), t in itertools.product(_JOINS.items(), ("s32", "f32", "u64")):
        f = _test("lt", t)
        for inverted in ("", "!"):
            text = (
                f"{{{{ .reg .pred %v; setp.ne.u32 %v, {{c}}, 0; set.lt.{join}.u32.{t} {{d}}, {{a}}, {{b}}, "
                f"{inverted}%v; }}}}"
            )
            yield Form(
                "set", text, (_kind(t), _kind(t), "32"), ("32",),
                lambda a, b, c, f=f, g=g, i=bool(inverted): 0xFFFFFFFF if g(f(a, b), int((c != 0) != i)) else 0,
                NUMPY if t == "f32" else PY,
            )  # fmt: skip
    for t, sm in (("f16", 75), ("bf16", 90)):
        for name, ftz in itertools.product(("eq", "lt", "geu", "nan"), ("", ".ftz") if t == "f16" else ("",)):
            f = _test(name, t, bool(ftz))
            for d, one in ((t, _ONE[t]), ("u16", 0xFFFF), ("s32", 0xFFFFFFFF)):
                yield Form(
                    "set of halves", f"set.{name}{ftz}.{d}.{t} {{d}}, {{a}}, {{b}};", (t, t),
                    ("16" if d in ("u16", t) else "32",), lambda a, b, f=f, one=one: one if f(a, b) else 0, NUMPY, sm,
                )  # fmt: skip
            yield Form(
                "set of halves", f"set.{name}{ftz}.{t}x2.{t}x2 {{d}}, {{a}}, {{b}};", (f"{t}x2",) * 2, ("32",),
                lambda a, b, f=f, one=_ONE[t]: (
                    (one if f(a & 65535, b & 65535) else 0) | (one if f(a >> 16, b >> 16) else 0) << 16
                ),
                NUMPY, sm,
            )  # fmt: skip


def _setp() -> Iterator[Form]:
    """Two predicates, joined with a third."""
    for (join, g), t in itertools.product(
        _JOINS.items(), ("u16", "s16", "u32", "s32", "u64", "s64", "f32", "f64", "f16")
    ):
        for n, name in enumerate(("lt", "ne", "geu" if t[0] == "f" else "ge")):
            f, i = _test(name, t), bool(n % 2)
            text = (
                f"{{{{ .reg .pred %v; setp.ne.u32 %v, {{c}}, 0; setp.{name}.{join}.{t} {{d}}|{{e}}, {{a}}, {{b}}, "
                f"{'!' if i else ''}%v; }}}}"
            )
            yield Form(
                "setp of two predicates", text, (_kind(t), _kind(t), "32"), ("pred", "pred"),
                lambda a, b, c, f=f, g=g, i=i: (g(f(a, b), int((c != 0) != i)), g(1 - f(a, b), int((c != 0) != i))),
                NUMPY if t[0] == "f" else PY,
            )  # fmt: skip
    for t, sm in (("f16", 75), ("bf16", 90)):
        for name in ("eq", "ltu", "num", "gt"):
            f = _test(name, t)
            yield Form(
                "setp of pairs", f"setp.{name}.{t}x2 {{d}}|{{e}}, {{a}}, {{b}};", (f"{t}x2",) * 2, ("pred", "pred"),
                lambda a, b, f=f: (f(a & 65535, b & 65535), f(a >> 16, b >> 16)), NUMPY, sm,
            )  # fmt: skip


def _accesses() -> Iterator[Form]:
    """Loads extend to the register, stores cut: every width, signed and not."""
    for t, r in itertools.product(("u8", "s8", "u16", "s16", "u32", "s32"), (16, 32, 64)):
        n = int(t[1:])
        if n > r:
            continue
        for space in ("global", "shared", "local"):
            at = {"global": "[%out]", "shared": "[%s]", "local": "[own]"}[space]
            declared = {
                "global": "",
                "shared": ".shared .align 8 .b64 own[256]; .reg .b32 %s; mov.u32 %s, own; mov.u32 %t, %tid.x; "
                "mad.lo.u32 %s, %t, 8, %s; ",
                "local": ".local .align 8 .b8 own[8]; ",
            }[space]
            text = (
                f"{{{{ {declared}st.{space}.b{r} {at}, {{a}}; .reg .b{r} %x; st.{space}.{t} {at}, {{b}}; "
                f"ld.{space}.{t} %x, {at}; mov.b{r} {{d}}, %x; }}}}"
            )
            yield Form(
                "ld st, cut and extended", text, (str(r), str(r)), (str(r),),
                lambda a, b, r=r, t=t: un(num(b, t), r), PY,
            )  # fmt: skip


def _searches() -> Iterator[Form]:
    yield Form("fns", "fns.b32 {d}, {a}, {b}, {c};", ("32", "shift", "32"), ("32",), _fns, PY,
               only=lambda a, b, c: b < 32 and -40 < sg(c, 32) < 40)  # fmt: skip
    for op, g in _JOINS.items():
        if op == "xor":
            continue
        text = (
            f"{{{{ .reg .pred %v; setp.ne.u32 %v, {{c}}, 3; lop3.{op}.b32 {{d}}|{{e}}, {{a}}, {{b}}, {{c}}, "
            "0x96, %v; }}"
        )
        yield Form(
            "lop3 with a predicate", text, ("32",) * 3, ("32", "pred"),
            lambda a, b, c, g=g: (a ^ b ^ c, g(int(a ^ b ^ c != 0), int(c != 3))), PY,
        )  # fmt: skip


def _fns(mask: int, base: int, offset: int) -> int:
    """The manual: the nth set bit from a base on, counted upwards or downwards; offset 0 asks for the base's own."""
    n = sg(offset, 32)
    if n == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    at, step, left = base, (1 if n > 0 else -1), abs(n)
    while 0 <= at < 32:
        left -= mask >> at & 1
        if not left:
            return at
        at += step
    return 0xFFFFFFFF


def _atomics() -> Iterator[Form]:
    """Words of 16 and 128 bits, halves, vectors."""

    def own(n: int, op: str, names: str) -> str:
        return (
            f"st.global.b{n} [%out+8], {{a}}; atom.global.{op} {{d}}, [%out+8], {names}; "
            f"ld.global.b{n} {{e}}, [%out+8];"
        )

    yield Form(
        "atom of 16 bits", own(16, "cas.b16", "{b}, {c}"), ("16",) * 3, ("16", "16"),
        lambda a, b, c: (a, c if a == b else a), PY,
    )  # fmt: skip
    for t, sm in (("f16", 75), ("bf16", 90)):
        yield Form(
            "atom add of a half", own(16, f"add.noftz.{t}", "{b}"), (t, t), (t, t),
            lambda a, b, t=t: (a, exact("add", [a, b], t)), EXACT, sm,
            only=lambda a, b, t=t: not (is_nan(a, t) or is_nan(b, t) or is_nan(exact("add", [a, b], t), t)),
        )  # fmt: skip
    wide = (
        "{{ .reg .b128 %x, %y, %z; .reg .b64 %u; mov.b128 %x, {{ {a}, {b} }}; mov.b128 %y, {{ {b}, {c} }}; "
        "{{ .shared .align 16 .b8 own[4096]; .reg .b32 %s; mov.u32 %s, own; mov.u32 %t, %tid.x; mad.lo.u32 %s, %t, 16, "
        "%s; st.shared.v2.b64 [%s], {{ {a}, {b} }}; "
        "OP mov.b128 {{ {d}, %u }}, %z; ld.shared.v2.b64 {{ {e}, %u }}, [%s]; }} }}"
    )
    yield Form(
        "atom of 128 bits", wide.replace("OP", "atom.shared.exch.b128 %z, [%s], %y;"), ("64",) * 3, ("64", "64"),
        lambda a, b, c: (a, b), PY, 90,
    )  # fmt: skip
    yield Form(
        "atom of 128 bits", wide.replace("OP", "atom.shared.cas.b128 %z, [%s], %x, %y;"), ("64",) * 3, ("64", "64"),
        lambda a, b, c: (a, b), PY, 90,
    )  # fmt: skip


def forms() -> Iterator[Form]:
    """All of them."""
    yield from _set()
    yield from _setp()
    yield from _accesses()
    yield from _searches()
    yield from _atomics()
