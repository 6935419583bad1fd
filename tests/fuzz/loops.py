"""Counted loops of every shape that the loop passes handle: up, down, by more than one, to a bound that is reached or
passed; counters that wrap round, of 16, 32 and 64 bits; iteration counts known to the compiler, uniform in the warp, or
of one thread; tests at the end, at the start, jumped to; pointers that step along.

Counters and bounds are computed here, so that every loop ends: a loop has four pairs of them, chosen by two bits of a
register, and each is counted through.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.fuzz.forms import KINDS
from tests.fuzz.memory import BLOCK, OWN, Pointer

if TYPE_CHECKING:
    from tests.fuzz.bodies import Body

_WIDTH: Final = {"w": 32, "l": 64, "h": 16}
_STEPS: Final = (
    1,
    1,
    1,
    1,
    1,
    -1,
    -1,
    2,
    2,
    3,
    4,
    4,
    5,
    7,
    8,
    16,
    32,
    100,
    -2,
    -3,
    -4,
    -8,
    0x1001,
    -0x1001,
    0xFFFFFF,
    -0xFFFFFF,
    0x1000000,
    0x30000000,
    -0x30000000,
)
_TESTS: Final[dict[str, Callable[[int, int], bool]]] = {
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "ne": lambda a, b: a != b, "eq": lambda a, b: a == b,
}  # fmt: skip
_TURNED: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "ne": "ne", "eq": "eq"}
_NOT: Final = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "ne": "eq", "eq": "ne"}


@dataclass(frozen=True, slots=True)
class Plan:
    """How a loop counts: four starts and bounds, of which a thread uses one."""

    kind: str  # of the counter's register
    signed: bool
    step: int
    compare: str  # the loop continues while the counter + ``offset`` compares so with the bound
    offset: int
    first: bool  # the test also precedes the first iteration
    early: bool  # the test uses the counter before the step
    starts: tuple[int, ...]
    bounds: tuple[int, ...]
    rounds: tuple[int, ...]

    @property
    def type(self) -> str:
        return f"{'s' if self.signed else 'u'}{_WIDTH[self.kind]}"


def _rounds(
    kind: str,
    signed: bool,
    step: int,
    compare: str,
    offset: int,
    first: bool,
    early: bool,
    start: int,
    bound: int,
    most: int,
) -> int:
    """The number of iterations; if more than ``most``: -1."""
    size = _WIDTH[kind]

    def value(v: int) -> int:
        v &= (1 << size) - 1
        return v - (1 << size) if signed and v >> size - 1 else v

    test = _TESTS[compare]
    x, n = start, 0
    if first and not test(value(x + offset), value(bound)):
        return 0
    while True:
        before, x, n = x, x + step, n + 1
        if not test(value((before if early else x) + offset), value(bound)):
            return n
        if n >= most:
            return -1


def plan(rng: random.Random, most: int) -> Plan:
    """Draw a plan with at most this many iterations."""
    while True:
        kind = rng.choices("wlh", (7, 2, 1))[0]
        size = _WIDTH[kind]
        step = rng.choice([s for s in _STEPS if abs(s) < 1 << size - 3])
        if kind == "l" and rng.random() < 0.2:
            step *= rng.choice((1 << 28, 1 << 32))
        signed = rng.random() < 0.5
        compare = rng.choices(
            ("lt", "le", "gt", "ge", "ne", "eq"), (6, 3, 1, 1, 5, 0.3) if step > 0 else (1, 1, 5, 5, 5, 0.3)
        )[0]
        first, early = rng.random() < 0.5, rng.random() < 0.2
        offset = rng.choice((0, 0, 0, 0, 0, 1, -1, 2, -step, step, 5))
        edge = (1 << size - 1) if signed else 0
        wanted = [rng.randint(0 if first else 1, most) for _ in range(4)]
        if rng.random() < 0.3:
            wanted = [wanted[0]] * 4
        begin = rng.choice(
            (
                0,
                0,
                0,
                1,
                -1,
                rng.randrange(100),
                -step * wanted[0],
                edge - step * rng.randint(0, 6) + rng.randint(-3, 3),
                edge + rng.randint(-2, 2),
                rng.getrandbits(size),
                2**32 - 4,
                2**31 - 3,
            )
        )
        what = rng.random()
        starts, bounds = [begin] * 4, [0] * 4
        slack = 0 if compare in ("ne", "eq") else rng.randint(0, abs(step) - 1) if rng.random() < 0.5 else 0
        away = [n * step + (offset if rng.random() < 0.9 else 0) - (slack if step > 0 else -slack) for n in wanted]
        if what < 0.25:  # all known
            bounds = [begin + away[0]] * 4
        elif what < 0.65:  # the bound varies
            bounds = [begin + a for a in away]
        elif what < 0.85:  # the start varies
            bounds = [begin + away[0]] * 4
            starts = [bounds[0] - a for a in away]
        else:
            starts = [begin + rng.randint(-5, 5) * abs(step) for _ in range(4)]
            bounds = [s + a for s, a in zip(starts, away, strict=True)]
        counted = [
            _rounds(kind, signed, step, compare, offset, first, early, s, b, most)
            for s, b in zip(starts, bounds, strict=True)
        ]
        if min(counted) >= 0:
            mask = (1 << size) - 1
            return Plan(
                kind,
                signed,
                step,
                compare,
                offset,
                first,
                early,
                tuple(s & mask for s in starts),
                tuple(b & mask for b in bounds),
                tuple(counted),
            )


def _number(kind: str, value: int) -> str:
    size = _WIDTH[kind]
    return str(value - (1 << size) if value >> size - 1 else value)


def _chosen(k: Body, kind: str, values: tuple[int, ...], selector: str) -> str:
    """A new register with one of four values. A single value is sometimes hidden from the compiler: it contains the
    block's size."""
    w, rng = k.w, k.rng
    out = w.new(kind)
    t = KINDS[kind][0]
    size = _WIDTH[kind]
    if len(set(values)) == 1:
        if size < 64 and rng.random() < 0.4:
            w.put(
                f"mov.u{size} {out}, %ntid.x;" if size == 32 else f"cvt.u16.u32 {out}, {w.move('w', '%ntid.x')};",
                f"add.s{size} {out}, {out}, {_number(kind, (values[0] - BLOCK) & (1 << size) - 1)};",
            )
        else:
            w.put(f"mov.{t} {out}, {_number(kind, values[0])};")
        return out
    step = values[1] - values[0]
    if all((values[n] - values[0] - n * step) % (1 << size) == 0 for n in range(4)) and size == 32:
        w.put(f"mad.lo.s32 {out}, {selector}, {_number('w', step & (1 << 32) - 1)}, {_number('w', values[0])};")
        return out
    p, other = w.new("p"), w.new(kind)
    w.put(
        f"setp.gt.u32 {p}, {selector}, 1;",
        f"selp.b{size} {out}, {_number(kind, values[2])}, {_number(kind, values[0])}, {p};",
        f"selp.b{size} {other}, {_number(kind, values[3])}, {_number(kind, values[1])}, {p};",
    )
    bit = w.new("w")
    w.put(
        f"and.b32 {bit}, {selector}, 1;",
        f"setp.{rng.choice(('ne', 'gt'))}.u32 {p}, {bit}, 0;",
        f"selp.b{size} {out}, {other}, {out}, {p};",
    )
    return out


@dataclass(slots=True)
class _Stepper:
    """A pointer that a loop advances."""

    pointer: Pointer
    size: int
    down: bool


class Loop:
    """The text of one loop."""

    def __init__(self, k: Body, depth: int, whole: int) -> None:
        self.k = k
        self.depth = depth
        self.whole = whole
        rng = k.rng
        most = max(2, min(rng.choice((3, 6, 6, 12, 12, 20)), k.rounds))
        self.plan = plan(rng, most)
        self.steppers: list[_Stepper] = []
        self.carried: list[tuple[str, str]] = []

    def write(self) -> None:
        k, w, rng, p = self.k, self.k.w, self.k.rng, self.plan
        even = len(set(p.starts)) == len(set(p.bounds)) == 1
        selector = "0"
        together = even
        if not even:
            selector = w.new("w")
            together = bool(w.scope["u"]) and rng.random() < 0.5
            w.put(f"and.b32 {selector}, {w.pick('u' if together else 'w')}, 3;")
        counter = _chosen(k, p.kind, p.starts, selector)
        bound = (
            _chosen(k, p.kind, p.bounds, selector)
            if len(set(p.bounds)) > 1 or rng.random() < 0.3
            else _number(p.kind, p.bounds[0])
        )
        inside = self.whole if together else 0
        broken = rng.random() < 0.15
        if broken:
            inside = 0
        self._begin()
        head, out, test = w.label(), w.label(), w.label()
        again = w.new("p")
        shape = rng.choice(("front", "jump", "copy")) if p.first else "end"
        if p.early and shape in ("front", "jump"):
            shape = "copy"  # there the test would see the step
        if shape == "copy":
            self._test(again, counter, bound, out, False)
        elif shape == "jump":
            w.put(f"bra {test};")
        w.put(f"{head}:")
        if rng.random() < 0.06:
            w.put('.pragma "nounroll";')
        if shape == "front":
            self._test(again, counter, bound, out, False)
        mark = w.mark()
        k.loops += 1
        rounds, k.rounds = k.rounds, max(1, k.rounds // max(1, *p.rounds))
        late = ""
        if p.early:
            late = self._compare(again, counter, bound)
        size = rng.choice((0, 1, 1, 2, 3, 5, 9))
        stand = rng.randint(0, size) if rng.random() < 0.3 else size
        for n in range(size + 1):
            if n == stand:
                self._step(counter)
            if n < size:
                self._inside(counter, inside)
            if broken and n == size // 2:
                w.put(f"@{rng.choice(('', '!'))}{w.pick('p')} bra {out};")
        k.loops -= 1
        k.rounds = rounds
        w.release(mark)
        if shape == "front":
            w.put(f"bra {head};")
        else:
            if shape == "jump":
                w.put(f"{test}:")
            if late:
                w.put(f"@{late} bra {head};")
            else:
                self._test(again, counter, bound, head, True)
        w.put(f"{out}:")
        if rng.random() < 0.5:
            w.show(p.kind, counter)

    # -------------------------------------------------------------- pieces

    def _begin(self) -> None:
        """Loop-carried values, and pointers that step."""
        k, w, rng = self.k, self.k.w, self.k.rng
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            kind = rng.choice("wwwlfd")
            name = w.move(kind, w.pick(kind))
            w.show(kind, name)
            self.carried.append((kind, name))
        rounds = max(1, *self.plan.rounds)
        for _ in range(rng.choice((0, 0, 1, 2)) if k.how.memory else 0):
            pointers = [
                p
                for p in (*k.memory.writable, *k.memory.readable)
                if p.space != ".param" and not p.narrow and not p.bias
            ]
            size = rng.choice((1, 2, 4, 4, 4, 8, 16))
            if pointers and (rounds + 1) * size <= OWN:  # one more: accesses may follow the step
                to = rng.choice(pointers)
                down = rng.random() < 0.3
                name = w.new("l")
                w.put(f"add.s64 {name}, {to.base}, {OWN - size if down else 0};")
                self.steppers.append(_Stepper(Pointer(to.space, name, to in k.memory.writable), size, down))

    def _compare(self, p: str, counter: str, bound: str) -> str:
        """The comparison; returns the predicate, maybe negated, for another iteration."""
        w, rng, x = self.k.w, self.k.rng, self.plan
        tested = counter
        if x.offset:
            tested = w.new(x.kind)
            w.put(f"add.{x.type} {tested}, {counter}, {x.offset};")
        compare, a, b = x.compare, tested, bound
        if rng.random() < 0.3:
            compare, a, b = _TURNED[compare], b, a
            if not a.startswith("%"):
                a = w.move(x.kind, a)
        if rng.random() < 0.3:
            w.put(f"setp.{_NOT[compare]}.{x.type} {p}, {a}, {b};")
            return f"!{p}"
        w.put(f"setp.{compare}.{x.type} {p}, {a}, {b};")
        return p

    def _test(self, p: str, counter: str, bound: str, to: str, stay: bool) -> None:
        on = self._compare(p, counter, bound)
        if not stay:
            on = on[1:] if on.startswith("!") else f"!{on}"
        self.k.w.put(f"@{on} bra {to};")

    def _step(self, counter: str) -> None:
        w, rng, x = self.k.w, self.k.rng, self.plan
        t = f"{'s' if x.signed else 'u'}{_WIDTH[x.kind]}"
        if rng.random() < 0.3:
            made = w.new(x.kind)
            w.put(f"add.{t} {made}, {counter}, {x.step};", f"mov.b{_WIDTH[x.kind]} {counter}, {made};")
        elif rng.random() < 0.3:
            w.put(f"sub.{t} {counter}, {counter}, {-x.step};")
        else:
            w.put(f"add.{t} {counter}, {counter}, {x.step};")
        for s in self.steppers:
            w.put(f"add.s64 {s.pointer.base}, {s.pointer.base}, {-s.size if s.down else s.size};")

    def _inside(self, counter: str, inside: int) -> None:
        """One action of an iteration."""
        k, w, rng, x = self.k, self.k.w, self.k.rng, self.plan
        k.budget -= 1
        what = rng.random()
        if what < 0.2:  # the counter itself, as a value
            w.show(x.kind, w.move(x.kind, counter))
        elif what < 0.5 and self.carried:
            kind, name = rng.choice(self.carried)
            guard, form = k.guard(), rng.choice(_CARRY[kind])
            a, b, word = w.pick(kind), w.pick(kind), w.pick("w")
            c = rng.choice([n for t, n in self.carried if t == kind])
            w.put(f"{guard}{form.format(d=name, a=a, b=b, w=word, c=c)};")
        elif what < 0.6 and len(self.carried) > 1:
            (kind, a), (other, b) = rng.sample(self.carried, 2)
            if kind == other:
                made = w.move(kind, a)
                w.put(f"mov.{KINDS[kind][0]} {a}, {b};", f"mov.{KINDS[kind][0]} {b}, {made};")
        elif what < 0.75 and self.steppers:
            self._along(rng.choice(self.steppers))
        elif what < 0.8 and self.depth > 1 and k.budget > 0:
            k.inner(self.depth - 1, inside)
        elif what < 0.86 and k.how.memory and x.kind == "w":
            self._indexed(counter)
        else:
            k.straight(1, inside)

    def _along(self, s: _Stepper) -> None:
        """An access through a stepping pointer."""
        k, w, rng = self.k, self.k.w, self.k.rng
        kind, form = {1: ("w", "u8"), 2: ("w", "s16"), 4: ("w", "b32"), 8: ("l", "b64"), 16: ("w", "v4.b32")}[s.size]
        address = w.new("l")
        w.put(f"mov.b64 {address}, {s.pointer.base};")
        s = _Stepper(Pointer(s.pointer.space, address, s.pointer.atomic), s.size, s.down)
        guard = k.guard()
        if s.size == 16:
            names = [w.new(kind) for _ in range(4)]
            if s.pointer.atomic and rng.random() < 0.5:
                w.put(f"{guard}st{s.pointer.space}.{form} [{address}], {{{','.join(w.pick(kind) for _ in names)}}};")
                return
            w.put(f"ld{s.pointer.space}.{form} {{{','.join(names)}}}, [{address}];")
            for n in names:
                w.show(kind, n)
        elif s.pointer.atomic and rng.random() < 0.4:
            w.put(f"{guard}st{s.pointer.space}.{form.replace('s16', 'u16')} [{address}], {w.pick(kind)};")
        else:
            name = w.new(kind)
            w.put(f"ld{s.pointer.space}.{form} {name}, [{address}];")
            w.show(kind, name)

    def _indexed(self, counter: str) -> None:
        """An access at an index computed from the counter."""
        k, w, rng = self.k, self.k.w, self.k.rng
        pointers = [p for p in k.memory.writable if p.space != ".param" and not p.narrow and not p.bias]
        if not pointers:
            return
        to = rng.choice(pointers)
        index, address = w.new("w"), w.new("l")
        w.put(
            f"{rng.choice(('add.s32', 'xor.b32', 'sub.s32'))} {index}, {counter}, {rng.choice((0, 1, 3, -1))};",
            f"and.b32 {index}, {index}, 7;",
            f"mad.wide.{rng.choice('su')}32 {address}, {index}, 4, {to.base};",
        )
        if rng.random() < 0.5:
            w.put(f"{k.guard()}st{to.space}.b32 [{address}+{rng.choice((0, 4, 32))}], {w.pick('w')};")
        else:
            name = w.new("w")
            w.put(f"ld{to.space}.b32 {name}, [{address}+{rng.choice((0, 4, 32))}];")
            w.show("w", name)


_CARRY: Final = {
    "w": ("add.s32 {d}, {d}, {a}", "xor.b32 {d}, {d}, {a}", "mad.lo.s32 {d}, {a}, {b}, {d}", "add.s32 {d}, {c}, 1",
    "min.s32 {d}, {d}, {a}", "add.s32 {d}, {d}, 7", "shl.b32 {d}, {d}, 1", "sub.s32 {d}, {a}, {d}"),
    "l": ("add.s64 {d}, {d}, {a}", "mad.wide.s32 {d}, {w}, 4, {d}", "mad.wide.u32 {d}, {w}, {w}, {d}",
    "add.s64 {d}, {d}, -16", "xor.b64 {d}, {d}, {a}", "add.s64 {d}, {c}, 4294967299", "sub.s64 {d}, {a}, {d}",
    "add.s64 {d}, {d}, {c}"),
    "f": ("add.f32 {d}, {d}, {a}", "fma.rn.f32 {d}, {a}, {b}, {d}", "min.f32 {d}, {d}, {a}", "mov.f32 {d}, {c}"),
    "d": ("add.f64 {d}, {d}, {a}", "fma.rn.f64 {d}, {a}, {b}, {d}", "max.f64 {d}, {d}, {a}"),
}  # fmt: skip


def counted(k: Body, depth: int, whole: int) -> None:
    """A loop of this module."""
    Loop(k, depth, whole).write()
