"""The code of one random kernel or function: nested and irregular control flow over the forms of :mod:`forms`.

Everything is defined: registers have values before they are read, and loops count down.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from tests.fuzz.chances import apart, bits, checked, reloaded
from tests.fuzz.forms import KINDS
from tests.fuzz.joins import joined
from tests.fuzz.loops import counted
from tests.fuzz.memory import BLOCK, OWN, Memory, Pointer
from tests.fuzz.writer import TABLES, Writer

#: Bytes of input and of output of a thread.
INPUT: Final = 256
OUTPUT: Final = 768
#: All threads of a block are here; all of a warp; neither.
ALL, WARP, SOME = 2, 1, 0
READ: Final = {
    "w": "b32",
    "l": "b64",
    "h": "b16",
    "f": "f32",
    "d": "f64",
    "e": "b16",
    "b": "b16",
    "v": "b32",
    "y": "b32",
}


@dataclass(frozen=True, slots=True)
class Style:
    """The character of a kernel."""

    registers: dict[str, int]  # of each kind at the beginning
    fresh: float
    tables: tuple[str, ...]
    budget: int  # instructions, about
    memory: bool
    constant: float  # the share of registers that begin with a constant
    guards: float
    loops: int = 4  # how often control flow is a counted loop


def style(rng: random.Random, sm: int) -> Style:
    """Draw one."""
    many = rng.random() < 0.2
    base = {
        "w": rng.choice((4, 6, 10)),
        "l": rng.choice((2, 4)),
        "h": 3,
        "p": rng.choice((3, 4, 9)),
        "u": 4,
        "q": 2,
        "f": 3,
        "d": 2,
        "e": 2,
        "b": 2,
        "v": 2,
        "y": 2,
    }
    if many:
        base["w"], base["l"], base["d"] = rng.choice((24, 24, 40)), rng.choice((10, 16)), 6
        base["p"] = rng.choice((4, 9, 16))
    tables = [
        "integer",
        "conversion",
        "predicate",
        rng.choice(("predicate", "integer", "conversion", "carry", "float")),
    ]
    tables += [
        t
        for t in ("float", "double", "half", "brain", "carry", "uniform")
        if rng.random() < (0.15 if t == "double" else 0.3)
    ]
    return Style(
        base,
        rng.choice((0.15, 0.5, 0.8)),
        tuple(tables),
        rng.choice((15, 30, 30, 60, 60, 110)),
        rng.random() < 0.6,
        rng.choice((0.0, 0.2, 0.5)),
        rng.choice((0.05, 0.2, 0.5)),
        rng.choice((1, 4, 16)),
    )


@dataclass(frozen=True, slots=True)
class Signature:
    """A function: kinds of its parameters (a digit: a structure of that many bytes) and of its result."""

    name: str
    params: tuple[str, ...]
    result: str
    recursive: bool = False


class Body:
    """The code of one function or kernel."""

    def __init__(self, rng: random.Random, sm: int, how: Style, callees: list[Signature], prefix: str) -> None:
        self.rng = rng
        self.how = how
        self.w = Writer(rng, sm, how.fresh)
        self.w.prefix = prefix
        self.memory = Memory(self.w)
        self.callees = callees
        self.most = ALL  # the largest set of threads that can converge from here on
        self.loops = 0
        self.rounds = 20  # most iterations of a loop here
        self.budget = how.budget
        self.sm = sm
        self.leave: Callable[[], list[str]] = lambda: ["exit;"]
        self.tables = [[f for f in TABLES[t] if f.sm <= sm] for t in how.tables if t != "uniform"]
        self.uniform = [f for f in TABLES["uniform"] if f.sm <= sm]
        self.warp = [f for f in TABLES["warp"] if f.sm <= sm]
        self.part = [f for f in TABLES["part"] if f.sm <= sm]
        self.slots: int | None = None  # bytes of output in use; a function has none

    # -------------------------------------------------------------- straight code

    def guard(self) -> str:
        rng = self.rng
        if rng.random() >= self.how.guards:
            return ""
        kind = "q" if self.w.scope["q"] and rng.random() < 0.1 else "p"
        return f"@{rng.choice(('', '!'))}{self.w.pick(kind)} "

    def straight(self, count: int, whole: int) -> None:
        """``count`` instructions, about."""
        for _ in range(count):
            self.budget -= 1
            self.one(min(whole, self.most))

    def one(self, whole: int) -> None:
        rng = self.rng
        kind = rng.random()
        if self.how.memory and kind < 0.2:
            self.memory.access(self.guard())
        elif kind < 0.27 and whole:
            self.meet(whole)
        elif kind < 0.33 and whole == ALL and "uniform" in self.how.tables:
            self.line(rng.choice(self.uniform), "", True)
        elif kind < 0.36:
            self.both()
        elif kind < 0.39:
            self.rotate()
        elif kind < 0.41 and self.callees:
            self.call(rng.choice(self.callees))
        elif kind < 0.43:
            self.observe()
        elif kind < 0.45:
            joined(self)
        elif kind < 0.47 and self.slots is not None:
            self.given()
        elif kind < 0.51:
            bits(self)
        else:
            self.line(rng.choice(rng.choice(self.tables)), self.guard())

    def line(self, form: Any, guard: str, uniform: bool = False) -> None:
        text = self.w.fill(form, bool(guard), uniform)
        self.w.put("; ".join(f"{guard}{part}" for part in text.split("; ")) + ";")

    def given(self) -> None:
        """A parameter, or an index or size of the launch, read in the middle of the code."""
        w, rng = self.w, self.rng
        what = rng.random()
        if what < 0.3:
            kind = rng.choice("uw")
            name = w.move(
                kind,
                rng.choice(
                    ("%ctaid.x", "%nctaid.x", "%ntid.x", "%ctaid.y")
                    if kind == "u"
                    else ("%tid.x", "%laneid", "%ctaid.x")
                ),
            )
        elif what < 0.7:
            kind, form, place = rng.choice(
                (("u", "u32", "s0"), ("u", "u32", "s1"), ("l", "u64", "s2"), ("f", "f32", "s3"), ("l", "s32", "s1"))
            )
            name = w.new(kind)
            w.put(f"ld.param.{form} {name}, [{place}];")
        else:
            kind, form, size = rng.choice(
                (("u", "b32", 4), ("l", "b64", 8), ("u", "u8", 1), ("w", "s16", 2), ("d", "f64", 8), ("h", "u16", 2))
            )
            name = w.new(kind)
            w.put(f"ld.param.{form} {name}, [st+{rng.randrange(OWN // size) * size}];")
        w.show(kind, name)

    def both(self) -> None:
        """A register written under a predicate and under its opposite."""
        w, rng = self.w, self.rng
        kind = rng.choice("wwwlhfd")
        p = w.pick("p")
        out = w.new(kind)
        a, b = w.pick(kind), w.pick(kind)
        t = KINDS[kind][0]
        if rng.random() < 0.5:
            w.put(f"@{p} mov.{t} {out}, {a};", f"@!{p} mov.{t} {out}, {b};")
        else:
            w.put(f"mov.{t} {out}, {a};", f"@{rng.choice(('', '!'))}{p} mov.{t} {out}, {b};")
        w.show(kind, out)

    def rotate(self) -> None:
        """Values are exchanged, as at the end of a loop."""
        w, rng = self.w, self.rng
        kind = rng.choice("wwwlhfdp")
        names = list(dict.fromkeys(w.scope[kind]))
        if len(names) < 2:
            return
        chosen = rng.sample(names, rng.randint(2, min(4, len(names))))
        t = KINDS[kind][0]
        if rng.random() < 0.5:
            first = w.move(kind, chosen[0])
            for a, b in pairwise(chosen):
                w.put(f"mov.{t} {a}, {b};")
            w.put(f"mov.{t} {chosen[-1]}, {first};")
        else:
            copies = [w.move(kind, c) for c in chosen]
            rng.shuffle(copies)
            for a, b in zip(chosen, copies, strict=True):
                w.put(f"mov.{t} {a}, {b};")

    def observe(self) -> None:
        """A value that is stored to the output at once."""
        rng = self.rng
        if self.slots is None or self.slots >= OUTPUT - 4 * OWN:
            return
        self.store_result(rng.choice("wwlfdhpevy"), self.guard())

    def store_result(self, kind: str, guard: str = "", name: str = "") -> None:
        """The bits of a register (a random one of the kind by default) to the next slot of the output."""
        w = self.w
        if not name:
            if not w.scope[kind]:
                return
            name = w.pick(kind)
        if kind in "pq":
            word = w.new("w")
            w.put(f"selp.u32 {word}, 1, 0, {name};")
            kind, name = "w", word
        elif kind in "fdebvy":
            kind, name = w.bits(kind, name)
        assert self.slots is not None
        w.put(f"{guard}st.global.{KINDS[kind][0]} [%out+{self.slots}], {name};")
        self.slots += 8

    def meet(self, whole: int) -> None:
        """Threads exchange values."""
        w, rng = self.w, self.rng
        if whole < ALL or rng.random() < 0.75:
            self.line(rng.choice(self.warp), "")
            return
        if rng.random() < 0.3:
            out = w.new("q")
            w.put(f"bar.red.{rng.choice(('or', 'and'))}.pred {out}, 0, {w.pick('p')};")
            w.show("q", out)
        elif rng.random() < 0.3:
            out = w.new("u")
            w.put(f"bar.red.popc.u32 {out}, 0, {rng.choice(('', '!'))}{w.pick('p')};")
            w.show("u", out)
        else:
            at, base, out = (
                w.new("w"),
                w.new("w"),
                w.new("w"),
            )  # an address is not compared: it differs between compilers
            other = rng.randrange(1, BLOCK)
            w.put(
                f"st.shared.b32 [%mine], {w.pick('w')};",
                "bar.sync 0;",
                f"add.s32 {at}, %thr, {other};",
                f"and.b32 {at}, {at}, {BLOCK - 1};",
            )
            w.put(
                f"shl.b32 {at}, {at}, 2;",
                f"mov.u32 {base}, meeting;",
                f"add.s32 {at}, {at}, {base};",
                f"ld.shared.b32 {out}, [{at}];",
                "bar.sync 0;",
            )
            w.show("w", out)

    # -------------------------------------------------------------- calls

    def call(self, f: Signature) -> None:
        """A direct call, or one through a register."""
        w, rng = self.w, self.rng
        n = w.labels = w.labels + 1
        w.put("{")
        names = []
        for k, kind in enumerate(f.params):
            name = f"a{n}_{k}"
            names.append(name)
            if kind.isdigit():
                w.put(f".param .align 8 .b8 {name}[{kind}];")
                for at in range(0, int(kind), 4):
                    w.put(f"st.param.b32 [{name}+{at}], {w.pick('w')};")
            else:
                t = "b32" if kind in "hp" else KINDS[kind][0]
                w.put(f".param .{t} {name};")
                value = "1" if kind == "w" and rng.random() < 0.1 else w.pick(kind)
                if k == 0 and f.recursive:
                    value = w.new("w")
                    w.put(f"and.b32 {value}, {w.pick('w')}, 3;")
                w.put(f"st.param.{t} [{name}], {value};")
        t = KINDS[f.result][0]
        w.put(f".param .{t} r{n};")
        out = w.new(f.result)
        same = [
            g
            for g in self.callees
            if g.params == f.params and g.result == f.result and g.name != f.name and not g.recursive
        ]
        if same and not f.recursive and rng.random() < 0.4:
            a, b, p = w.new("l"), w.new("l"), w.pick("p")
            w.put(f"mov.u64 {a}, {f.name};", f"mov.u64 {b}, {rng.choice(same).name};", f"selp.b64 {a}, {a}, {b}, {p};")
            params = ", ".join(
                f".param .align 8 .b8 _[{k}]" if k.isdigit() else f".param .{KINDS[k][0]} _" for k in f.params
            )
            w.put(
                f"proto{n}: .callprototype (.param .{t} _) _ ({params});",
                f"call (r{n}), {a}, ({', '.join(names)}), proto{n};",
            )
        else:
            w.put(f"call (r{n}), {f.name}, ({', '.join(names)});")
        w.put(f"ld.param.{t} {out}, [r{n}];", "}")
        w.show(f.result, out)
        self.budget -= 5

    # -------------------------------------------------------------- control

    def statement(self, depth: int, whole: int) -> None:
        """A statement of at most this depth."""
        rng = self.rng
        whole = min(whole, self.most)
        if depth <= 0 or self.budget <= 0:
            self.straight(rng.randrange(1, 4), whole)
            return
        if rng.random() < 0.4:
            self.straight(rng.randrange(1, 7), whole)
            return
        kinds: list[tuple[int, Callable[[int, int], None]]] = [
            (6, self.branch), (4, self.loop), (self.how.loops, self.counted), (2, self.switch), (2, self.tangle),
            (2, self.chain), (3, self.sequence), (2, self.group), (1, self.gone), (2, self.apart),
        ]  # fmt: skip
        if self.how.memory:
            kinds += [(2, self.reloaded), (2, self.checked)]
        rng.choices([k for _, k in kinds], [n for n, _ in kinds])[0](depth, whole)

    def inner(self, depth: int, whole: int) -> None:
        """A statement whose new registers are not visible after it; sometimes one is copied to an older one."""
        w, rng = self.w, self.rng
        mark = w.mark()
        self.statement(depth, whole)
        if rng.random() < 0.6:
            for kind in rng.sample("wlhfpdeu" if whole == ALL else "wlhfpde", 2):
                late = w.scope[kind][mark[kind] :]
                if late and mark[kind]:
                    w.put(f"mov.{KINDS[kind][0]} {rng.choice(w.scope[kind][: mark[kind]])}, {rng.choice(late)};")
        w.release(mark)

    def sequence(self, depth: int, whole: int) -> None:
        self.statement(depth - 1, whole)
        self.statement(depth - 1, whole)

    def condition(self, whole: int) -> tuple[str, int]:
        """A predicate, and which threads are together in an arm under it."""
        w, rng = self.w, self.rng
        if rng.random() < 0.3 and w.scope["q"]:
            return w.pick("q"), whole
        if whole and rng.random() < 0.1:
            p = w.new("p")
            w.put(f"vote.sync.{rng.choice(('any', 'all'))}.pred {p}, {w.pick('p')}, 0xffffffff;")
            return p, WARP
        return w.pick("p"), SOME

    def branch(self, depth: int, whole: int) -> None:
        w, rng = self.w, self.rng
        p, arm = self.condition(whole)
        other, end = w.label(), w.label()
        w.put(f"@{rng.choice(('', '!'))}{p} bra{'.uni' if arm == ALL and rng.random() < 0.2 else ''} {other};")
        self.inner(depth - 1, arm)
        if rng.random() < 0.5:
            if rng.random() < 0.9:
                w.put(f"bra {end};")
            w.put(f"{other}:")
            self.inner(depth - 1, arm)
            w.put(f"{end}:")
        else:
            w.put(f"{other}:")

    def chain(self, depth: int, whole: int) -> None:
        """Several tests that lead to one place: short circuits."""
        w, rng = self.w, self.rng
        good, end = w.label(), w.label()
        for _ in range(rng.randint(2, 4)):
            w.put(f"@{rng.choice(('', '!'))}{w.pick('p')} bra {rng.choice((good, good, end))};")
            mark = w.mark()
            self.straight(rng.randrange(3), SOME)
            w.release(mark)
        self.inner(depth - 1, SOME)
        if rng.random() < 0.6:
            w.put(f"bra {end};")
        w.put(f"{good}:")
        self.inner(depth - 1, SOME)
        w.put(f"{end}:")

    def counted(self, depth: int, whole: int) -> None:
        counted(self, depth, whole)

    def apart(self, depth: int, whole: int) -> None:
        apart(self, depth, whole)

    def reloaded(self, depth: int, whole: int) -> None:
        reloaded(self, depth, whole)

    def checked(self, depth: int, whole: int) -> None:
        checked(self, depth, whole)

    def loop(self, depth: int, whole: int) -> None:
        w, rng = self.w, self.rng
        even = bool(w.scope["u"]) and rng.random() < 0.4
        kind = "u" if even else "w"
        inside = whole if even else SOME
        count, again = w.new(kind), w.new("p")
        if even and rng.random() < 0.4:
            w.put(f"mov.u32 {count}, {rng.randint(1, 5)};")
        else:
            w.put(f"and.b32 {count}, {w.pick(kind)}, {rng.choice((1, 3, 3, 7))};")
        head, out, step = w.label(), w.label(), w.label()
        if rng.random() < 0.4:  # tested before the loop
            w.put(f"setp.eq.s32 {again}, {count}, 0;", f"@{again} bra {out};")
        broken = rng.random() < 0.4
        leavers = "q" if inside and rng.random() < 0.4 else "p"
        if broken and leavers == "p":
            inside = SOME  # after the first iteration: the next one may lack some
        w.put(f"{head}:")
        self.loops += 1
        mark = w.mark()
        for _ in range(rng.randint(1, 3)):
            self.inner(depth - 1, inside)
            if broken:
                w.put(f"@{rng.choice(('', '!'))}{w.pick(leavers)} bra {rng.choice((out, step))};")
        w.release(mark)
        self.loops -= 1
        w.put(
            f"{step}:",
            f"sub.s32 {count}, {count}, 1;",
            f"setp.gt.s32 {again}, {count}, 0;",
            f"@{again} bra {head};",
            f"{out}:",
        )

    def switch(self, depth: int, whole: int) -> None:
        w, rng = self.w, self.rng
        even = bool(w.scope["u"]) and rng.random() < 0.3
        index, n = w.new("w"), rng.choice((2, 4, 4, 8))
        w.put(f"and.b32 {index}, {w.pick('u' if even else 'w')}, {n - 1};")
        inside = whole if even else SOME
        labels = [w.label() for _ in range(n)]
        end, name = w.label(), w.label()
        targets = [rng.choice((*labels, end)) if rng.random() < 0.3 else x for x in labels]
        w.put(f"{name}: .branchtargets {', '.join(targets)};", f"brx.idx {index}, {name};")
        for label in labels:
            w.put(f"{label}:")
            self.inner(depth - 2, inside)
            if rng.random() < 0.7:
                w.put(f"bra {end};")
        w.put(f"{end}:")

    def tangle(self, depth: int, whole: int) -> None:
        """Blocks that jump to each other at random, as long as there is fuel."""
        w, rng = self.w, self.rng
        fuel, empty, end = w.new("w"), w.new("p"), w.label()
        w.put(f"mov.u32 {fuel}, {rng.randint(3, 9)};")
        labels = [w.label() for _ in range(rng.randint(2, 5))]
        self.loops += 1
        for label in labels:
            w.put(
                f"{label}:", f"sub.s32 {fuel}, {fuel}, 1;", f"setp.le.s32 {empty}, {fuel}, 0;", f"@{empty} bra {end};"
            )
            self.inner(0, SOME)
            for _ in range(rng.randint(0, 2)):
                w.put(f"@{rng.choice(('', '!'))}{w.pick('p')} bra {rng.choice((*labels, end))};")
            if rng.random() < 0.3:
                w.put(f"bra {rng.choice((*labels, end))};")
        self.loops -= 1
        w.put(f"{end}:")

    def group(self, depth: int, whole: int) -> None:
        """The threads whose predicate is true work together under their own mask."""
        if not whole or self.w.mask != "0xffffffff":
            self.straight(2, whole)
            return
        w, rng = self.w, self.rng
        p, end = w.pick("p"), w.label()
        mask, leader = w.new("w"), w.new("w")
        w.put(f"vote.sync.ballot.b32 {mask}, {p}, 0xffffffff;", f"bfind.u32 {leader}, {mask};", f"@!{p} bra {end};")
        mark = w.mark()
        for _ in range(rng.randint(1, 4)):
            w.mask, w.leader = mask, leader
            self.line(rng.choice(self.part), "")
            w.mask, w.leader = "0xffffffff", "0"
            self.straight(rng.randrange(2), SOME)
        w.release(mark)
        w.put(f"{end}:")

    def gone(self, depth: int, whole: int) -> None:
        """Some threads end here."""
        w, rng = self.w, self.rng
        if self.loops and self.most:
            self.straight(2, whole)
            return
        end = w.label()
        w.put(f"@{rng.choice(('', '!'))}{w.pick('p')} bra {end};")
        mark = w.mark()
        self.straight(rng.randrange(3), SOME)
        w.put(*self.leave())
        w.release(mark)
        w.put(f"{end}:")
        self.most = SOME

    # -------------------------------------------------------------- text

    def begin(self, kind: str, number: int, source: Callable[[str], str | None]) -> None:
        """The first registers of a kind: constants, or what ``source`` writes to a new register."""
        w, rng = self.w, self.rng
        for _ in range(number):
            name = None
            if kind in "wlhfdu" and rng.random() < self.how.constant:
                name = w.move(kind, w.literal("w" if kind == "u" else kind))
            else:
                name = source(kind)
            if name is None:
                name = w.move(kind, w.pick(kind))
            w.show(kind, name)

    def local(self) -> None:
        """A pointer to a filled local variable, and sometimes its generic address."""
        w, rng = self.w, self.rng
        name, pointer = f"local{w.prefix}", w.new("l")
        self.locals = name
        w.put(f".local .align 16 .b8 {name}[{OWN}];", f"mov.u64 {pointer}, {name};")
        for at in range(0, OWN, 4):
            w.put(f"st.local.b32 [{pointer}+{at}], {w.pick('w')};")
        self.memory.writable.append(Pointer(".local", pointer, False))
        if rng.random() < 0.4:
            generic = w.new("l")
            w.put(f"cvta.local.u64 {generic}, {pointer};")
            self.memory.writable.append(Pointer("", generic, False))

    def constants(self) -> None:
        pointer = self.w.new("l")
        self.w.put(f"mov.u64 {pointer}, table;")
        self.memory.readable.append(Pointer(".const", pointer, False))

    def declarations(self) -> list[str]:
        """Registers."""
        return [f".reg .{t} {prefix}<{self.w.count[k]}>;" for k, (t, prefix) in KINDS.items() if self.w.count[k]]

    def generic(self, space: str, pointer: str) -> str:
        out = self.w.new("l")
        self.w.put(f"cvta.{space}.u64 {out}, {pointer};")
        return out
