"""Video instructions by the manual's text, in Python integers: scalar ones with selected parts, packed ones with
masks and sums.

Left out: forms whose error in ptxas is known (docs: `.sat` into a part of the register, a destination `.h1`, `vmad` of
unsigned words, second operations of saturated results)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Final

from tests.edges.form import Form
from tests.edges.integers import PY, clamp, sg, un

Answer = Callable[[int, int, int], int]
Types = tuple[str, str, str]
_OPS: Final[dict[str, Callable[[int, int], int]]] = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
}
_ORDERS: Final = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _part(x: int, sel: str, t: str) -> int:
    """The part of a source: .b0 to .b3, .h0, .h1, or all of it; extended by its type's sign."""
    if not sel:
        return sg(x, 32) if t == "s32" else x
    n = 8 if sel[0] == "b" else 16
    v = x >> n * int(sel[1]) & (1 << n) - 1
    return sg(v, n) if t == "s32" else v


def _scalar() -> Iterator[Form]:
    sels = ("", "b0", "b3", "h0", "h1", "b2")
    for k, (op, f) in enumerate(_OPS.items()):
        for n, (t, u) in enumerate(itertools.product(("u32", "s32"), repeat=2)):
            x, y = sels[(k + n) % 6], sels[(2 * k + n + 3) % 6]
            names = f"{{a}}{'.' + x if x else ''}, {{b}}{'.' + y if y else ''}"
            yield Form(
                "video, one result", f"{op}.s32.{t}.{u} {{d}}, {names};", ("32", "32"), ("32",),
                lambda a, b, f=f, x=x, y=y, t=t, u=u: un(f(_part(a, x, t), _part(b, y, u)), 32), PY,
            )  # fmt: skip
            yield Form(
                "video, one result", f"{op}.u32.{t}.{u}.add {{d}}, {names}, {{c}};", ("32",) * 3, ("32",),
                lambda a, b, c, f=f, x=x, y=y, t=t, u=u: un(f(_part(a, x, t), _part(b, y, u)) + c, 32), PY,
            )  # fmt: skip
            yield Form(
                "video, one result", f"{op}.u32.{t}.{u} {{d}}.b1, {names}, {{c}};", ("32",) * 3, ("32",),
                lambda a, b, c, f=f, x=x, y=y, t=t, u=u: (
                    c & ~0xFF00 | un(f(_part(a, x, t), _part(b, y, u)), 8) << 8
                ),
                PY,
            )  # fmt: skip
    for mode, (op, right) in itertools.product(("clamp", "wrap"), (("vshl", False), ("vshr", True))):
        for t in ("u32", "s32"):
            yield Form(
                "video, one result", f"{op}.{t}.{t}.u32.{mode} {{d}}, {{a}}, {{b}};", ("32", "shift"), ("32",),
                lambda a, b, t=t, m=mode, r=right: _shifted(a, b, t, m, r), PY,
            )  # fmt: skip
    for order, f2 in _ORDERS.items():
        for t in ("u32", "s32"):
            yield Form(
                "video, one result", f"vset.{t}.{t}.{order} {{d}}, {{a}}.h1, {{b}}.b0;", ("32", "32"), ("32",),
                lambda a, b, f=f2, t=t: int(f(_part(a, "h1", t), _part(b, "b0", t))), PY,
            )  # fmt: skip


def _shifted(a: int, b: int, t: str, mode: str, right: bool) -> int:
    n = min(b, 32) if mode == "clamp" else b & 31
    return un((sg(a, 32) if t == "s32" else a) >> n, 32) if right else un(a << n, 32)


def _lane(x: int, i: int, width: int, t: str) -> int:
    v = x >> width * i & (1 << width) - 1
    return sg(v, width) if t == "s32" else v


def _lanewise(f: Callable[[int, int], int], types: Types, width: int, chosen: list[int], sat: str) -> Answer:
    """The chosen lanes of c are replaced. ``types``: of the result and the sources."""
    d, t, u = types

    def answer(a: int, b: int, c: int) -> int:
        for i in chosen:
            r = f(_lane(a, i, width, t), _lane(b, i, width, u))
            r = clamp(r, f"{d[0]}{width}") if sat else un(r, width)
            c = c & ~((1 << width) - 1 << width * i) | r << width * i
        return c

    return answer


def _total(f: Callable[[int, int], int], types: Types, width: int) -> Answer:
    """.add: c and the results of all lanes."""
    _, t, u = types
    return lambda a, b, c: un(c + sum(f(_lane(a, i, width, t), _lane(b, i, width, u)) for i in range(32 // width)), 32)


def _packed() -> Iterator[Form]:
    for lanes, width in ((2, 16), (4, 8)):
        masks = ("", ".h1", ".h10") if lanes == 2 else ("", ".b2", ".b310")
        ops: dict[str, Callable[[int, int], int]] = {**_OPS, "vavrg": lambda a, b: a + b + (a + b >= 0) >> 1}
        for k, (op, f) in enumerate(ops.items()):
            for n, types in enumerate(itertools.product(("u32", "s32"), repeat=3)):
                name = ".".join(types)
                mask = masks[(k + n) % 3]
                chosen = [int(x) for x in mask[2:]] if mask else list(range(lanes))
                for sat in ("", ".sat") if op in ("vadd", "vsub", "vabsdiff") else ("",):
                    text = f"{op}{lanes}.{name}{sat} {{d}}{mask}, {{a}}, {{b}}, {{c}};"
                    answer = _lanewise(f, types, width, chosen, sat)
                    yield Form("video, packed", text, ("32",) * 3, ("32",), answer, PY)
                if n in (0, 7):
                    text = f"{op}{lanes}.{name}.add {{d}}, {{a}}, {{b}}, {{c}};"
                    yield Form("video, packed", text, ("32",) * 3, ("32",), _total(f, types, width), PY)


def forms() -> Iterator[Form]:
    """All of them."""
    yield from _scalar()
    yield from _packed()
