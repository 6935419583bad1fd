"""Random kernels that use 64-bit values by halves, and carry chains of every mix, against Python integers.

    python -m tests.fuzz.halves [--pieces] [--seed N] [--count N] [--arch sm_X ...] [-O LEVEL ...] [--turns]
    [--who ours ptxas interpreter] [--keep FOLDER]

A program is a tree of steps. It is written as PTX and, independently of every other reading of PTX in the project,
computed thread by thread with Python integers. Pairs are split and joined (mov.b64, shifts by 32, bfi, bfe, cvt);
halves are chosen, written under guards, in short arms of branches and in loops; at the end some halves are stored and
others are dead. The carry flag is the adder's: a difference is x + ~y + 1, or x + ~y + flag.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from orchestrator.api import ChainError, compile_ptx
from stages.interpret.launch import Module
from stages.simulate import Device, SimError
from tests import oracle

Words = NDArray[np.uint32]
State = dict[str, int]
W, D = (1 << 32) - 1, (1 << 64) - 1
THREADS: Final = 32
INPUTS: Final = 12  # words per thread
ARCHES: Final = ("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")
_EDGES: Final = (0, 1, 2, 3, 5, 31, 32, 33, 255, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, W)


@dataclass(slots=True)
class Step:
    """One instruction: its text and its effect on a thread's registers. ``guard``: a predicate and whether it must be
    true."""

    text: str
    does: Callable[[State], None]
    guard: tuple[str, bool] | None = None


@dataclass(slots=True)
class Arms:
    """A branch around steps, and around others if it is not taken."""

    test: str
    then: list[Any]
    other: list[Any]
    label: str


@dataclass(slots=True)
class Loop:
    """A loop: the counter register starts at ``first`` & 3 and counts down; the test is at the end."""

    counter: str
    first: str
    body: list[Any]
    label: str


@dataclass(slots=True)
class Made:
    """A program: steps, and the stored expressions."""

    words: int
    pairs: int
    steps: list[Any] = field(default_factory=list)
    stores: list[tuple[str, str]] = field(default_factory=list)  # a register and which part: w, lo, hi


def signed(x: int, bits: int) -> int:
    return x - (1 << bits) if x >> bits - 1 else x


class Writer:
    """Draws a program."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.made = Made(rng.choice((4, 6, 10, 18)), rng.choice((2, 3, 5, 8)))
        self.labels = 0
        self.counters = 0

    # ------------------------------------------------------------------ operands

    def w(self) -> str:
        return f"%w{self.rng.randrange(self.made.words)}"

    def d(self) -> str:
        return f"%d{self.rng.randrange(self.made.pairs)}"

    def p(self) -> str:
        return f"%p{self.rng.randrange(3)}"

    def value(self, bits: int) -> tuple[str, Callable[[State], int]]:
        """A source: a register, sometimes a literal."""
        if self.rng.random() < 0.25:
            v = self.rng.choice(_EDGES)
            if bits == 64:
                v = self.rng.choice((v, v << 32, D - v, self.rng.getrandbits(64)))
            return str(v), lambda s: v
        r = self.w() if bits == 32 else self.d()
        return r, lambda s: s[r]

    # ------------------------------------------------------------------ one instruction

    def binary(self, bits: int) -> Step:
        mask = W if bits == 32 else D
        name, f = self.rng.choice((
            (f"add.u{bits}", lambda x, y: x + y), (f"sub.u{bits}", lambda x, y: x - y),
            (f"xor.b{bits}", lambda x, y: x ^ y), (f"and.b{bits}", lambda x, y: x & y),
            (f"or.b{bits}", lambda x, y: x | y), (f"mul.lo.u{bits}", lambda x, y: x * y), (f"min.u{bits}", min),
            (f"max.s{bits}", lambda x, y: max(x, y, key=lambda v: signed(v, bits))),
        ))  # fmt: skip
        to = self.w() if bits == 32 else self.d()
        (ta, a), (tb, b) = self.value(bits), self.value(bits)

        def does(s: State) -> None:
            s[to] = f(a(s), b(s)) & mask

        return Step(f"{name} {to}, {ta}, {tb};", does)

    def shift(self) -> Step:
        """Shifts of pairs: most of them by 32, which only moves a half."""
        n = self.rng.choice((32, 32, 32, 31, 33, 1, 63, 0, self.rng.randrange(64)))
        to, x = self.d(), self.d()
        kind = self.rng.choice(("shl.b64", "shr.u64", "shr.s64"))

        def does(s: State) -> None:
            v = s[x]
            s[to] = (v << n if kind == "shl.b64" else v >> n if kind == "shr.u64" else signed(v, 64) >> n) & D

        return Step(f"{kind} {to}, {x}, {n};", does)

    def halves(self) -> Step:
        """A pair made of words, split into words, or only one half of it."""
        d, a, b = self.d(), self.w(), self.w()
        kind = self.rng.randrange(8)
        if kind == 0:
            return Step(f"mov.b64 {d}, {{{a}, {b}}};", lambda s: s.__setitem__(d, s[a] | s[b] << 32))
        if kind == 1:
            if a == b:
                return self.halves()

            def apart(s: State) -> None:
                v = s[d]
                s[a], s[b] = v & W, v >> 32

            return Step(f"mov.b64 {{{a}, {b}}}, {d};", apart)
        if kind == 2:
            return Step(f"cvt.u32.u64 {a}, {d};", lambda s: s.__setitem__(a, s[d] & W))
        if kind == 3:
            return Step(f"cvt.u64.u32 {d}, {a};", lambda s: s.__setitem__(d, s[a]))
        if kind == 4:
            return Step(f"cvt.s64.s32 {d}, {a};", lambda s: s.__setitem__(d, signed(s[a], 32) & D))
        if kind == 5:
            return Step(f"{{ .reg .b32 %x; mov.b64 {{%x, {a}}}, {d}; }}", lambda s: s.__setitem__(a, s[d] >> 32))
        e = self.d()
        if kind == 6:
            return Step(f"bfi.b64 {d}, {e}, {d}, 32, 32;", lambda s: s.__setitem__(d, s[d] & W | (s[e] & W) << 32))
        return Step(f"bfi.b64 {d}, {e}, {d}, 0, 32;", lambda s: s.__setitem__(d, s[d] & W << 32 | s[e] & W))

    def wide(self) -> Step:
        to, a, b, c = self.d(), self.w(), self.w(), self.d()
        if self.rng.random() < 0.5:
            return Step(
                f"mul.wide.s32 {to}, {a}, {b};", lambda s: s.__setitem__(to, signed(s[a], 32) * signed(s[b], 32) & D)
            )
        return Step(f"mad.wide.u32 {to}, {a}, {b}, {c};", lambda s: s.__setitem__(to, s[a] * s[b] + s[c] & D))

    def choice(self) -> Step:
        bits = self.rng.choice((32, 64))
        to = self.w() if bits == 32 else self.d()
        (ta, a), (tb, b), p = self.value(bits), self.value(bits), self.p()
        return Step(f"selp.b{bits} {to}, {ta}, {tb}, {p};", lambda s: s.__setitem__(to, a(s) if s[p] else b(s)))

    def test(self) -> Step:
        bits = self.rng.choice((32, 32, 64))
        name, f = self.rng.choice(((f"eq.u{bits}", lambda x, y: x == y), (f"lt.u{bits}", lambda x, y: x < y),
            (f"ge.u{bits}", lambda x, y: x >= y), (f"ne.u{bits}", lambda x, y: x != y),
                                   (f"gt.s{bits}", lambda x, y: signed(x, bits) > signed(y, bits))))  # fmt: skip
        p = self.p()
        (_, a), (tb, b) = (r := self.w() if bits == 32 else self.d(), lambda s: s[r]), self.value(bits)
        return Step(f"setp.{name} {p}, {r}, {tb};", lambda s: s.__setitem__(p, int(f(a(s), b(s)))))

    def carry(self) -> Step:
        """One instruction of a carry chain."""
        bits = self.rng.choice((32, 32, 32, 64))
        mask = W if bits == 32 else D
        name = self.rng.choice(
            (
                "add.cc",
                "sub.cc",
                "addc",
                "subc",
                "addc.cc",
                "subc.cc",
                "madc.lo",
                "madc.hi",
                "madc.lo.cc",
                "madc.hi.cc",
                "mad.lo.cc",
                "mad.hi.cc",
            )
        )
        to = self.w() if bits == 32 else self.d()
        sources = [self.value(bits) for _ in range(3 if name[0] == "m" else 2)]
        takes, gives, minus = name.split(".")[0].endswith("c"), name.endswith("cc"), name[0] == "s"

        def does(s: State) -> None:
            v = [f(s) for _, f in sources]
            if len(v) == 3:
                v = [(v[0] * v[1] >> bits if ".hi" in name else v[0] * v[1]) & mask, v[2]]
            total = v[0] + (v[1] ^ mask if minus else v[1]) + (s["cc"] if takes else minus)
            s[to] = total & mask
            if gives:
                s["cc"] = total >> bits

        return Step(f"{name}.u{bits} {to}, {', '.join(t for t, _ in sources)};", does)

    def step(self) -> Step:
        kind = self.rng.random()
        s = (
            self.binary(32) if kind < 0.22 else self.binary(64) if kind < 0.38
            else self.halves() if kind < 0.6 else self.shift() if kind < 0.7
            else self.carry() if kind < 0.82 else self.test() if kind < 0.89
            else self.choice() if kind < 0.95 else self.wide()
        )  # fmt: skip
        if self.rng.random() < 0.15 and s.text[0] != "{":
            s.guard = self.p(), self.rng.random() < 0.5
        return s

    # ------------------------------------------------------------------ programs

    def run(self, count: int, depth: int) -> list[Any]:
        out: list[Any] = []
        while count > 0:
            kind = self.rng.random()
            self.labels += 1
            label = self.labels
            if kind < 0.06 and depth < 2:
                n = self.rng.randrange(2, 9)
                self.counters += 1
                out.append(Loop(f"%n{self.counters}", self.w(), self.run(n, depth + 1), f"Round{label}"))
            elif kind < 0.18 and depth < 3:
                n = self.rng.randrange(1, 7)
                out += [self.test()] if self.rng.random() < 0.6 else []
                other = self.run(self.rng.randrange(1, 5), depth + 1) if self.rng.random() < 0.35 else []
                out.append(Arms(self.p(), self.run(n, depth + 1), other, f"Past{label}"))
            elif kind < 0.24:
                n = self.rng.randrange(2, 7)
                out += [self.carry() for _ in range(n)]
            else:
                n = 1
                out.append(self.step())
            count -= n
        return out

    def program(self) -> Made:
        made = self.made
        made.steps = self.run(self.rng.choice((8, 16, 30, 60)), 0)
        places = [(f"%w{k}", "w") for k in range(made.words)] + [
            (f"%d{k}", part) for k in range(made.pairs) for part in ("lo", "hi")
        ]
        made.stores = [x for x in places if self.rng.random() < 0.6] or places[:1]
        return made


def lines(steps: Sequence[Any]) -> Iterator[str]:
    for s in steps:
        if isinstance(s, Step):
            yield (f"@{'' if s.guard[1] else '!'}{s.guard[0]} " if s.guard else "") + s.text
        elif isinstance(s, Arms):
            yield f"@!{s.test} bra {s.label};"
            yield from lines(s.then)
            if s.other:
                yield f"bra {s.label}_end;"
            yield f"{s.label}:"
            if s.other:
                yield from lines(s.other)
                yield f"{s.label}_end:"
        else:
            yield f"and.b32 {s.counter}, {s.first}, 3;"
            yield f"{s.label}:"
            yield from lines(s.body)
            yield f"sub.u32 {s.counter}, {s.counter}, 1;"
            yield f"setp.gt.s32 %pl, {s.counter}, 0;"
            yield f"@%pl bra {s.label};"


def text(made: Made, counters: int) -> str:
    """The program as PTX for sm_75 and up."""
    loads = [f"ld.global.u32 %w{k}, [%in+{k % INPUTS * 4}];" for k in range(made.words)]
    loads += [f"ld.global.u64 %d{k}, [%in+{k % (INPUTS // 2) * 8}];" for k in range(made.pairs)]
    loads += [f"setp.lt.u32 %p{k}, %w{k}, %w{k + 1};" for k in range(3)] + ["add.cc.u32 %t, %w0, %w1;"]
    stores = []
    for n, (r, part) in enumerate(made.stores):
        if part == "hi":
            stores.append(f"shr.u64 %e, {r}, 32;")
        if part != "w":
            stores.append(f"cvt.u32.u64 %t, {'%e' if part == 'hi' else r};")
        stores.append(f"st.global.u32 [%out+{4 * n}], {r if part == 'w' else '%t'};")
    body = "\n".join([*loads, *lines(made.steps), *stores])
    return f""".version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{{
.reg .b64 %in, %out, %e;
.reg .b32 %t, %w<{made.words}>, %n<{counters + 1}>;
.reg .b64 %d<{made.pairs}>;
.reg .pred %p<3>, %pl;
ld.param.u64 %in, [in];
ld.param.u64 %out, [out];
mov.u32 %t, %tid.x;
mad.wide.u32 %in, %t, {INPUTS * 4}, %in;
mad.wide.u32 %out, %t, {len(made.stores) * 4}, %out;
{body}
ret;
}}
"""


def execute(steps: Sequence[Any], s: State) -> None:
    for x in steps:
        if isinstance(x, Step):
            if x.guard is None or bool(s[x.guard[0]]) == x.guard[1]:
                x.does(s)
        elif isinstance(x, Arms):
            execute(x.then if s[x.test] else x.other, s)
        else:
            for _ in range(max(s[x.first] & 3, 1)):
                execute(x.body, s)


def expected(made: Made, given: Words) -> Words:
    """The words that every thread stores, in Python integers."""
    out = np.zeros((len(given), len(made.stores)), np.uint32)
    for thread, row in enumerate(given.tolist()):
        s: State = {f"%w{k}": row[k % INPUTS] for k in range(made.words)}
        for k in range(made.pairs):
            at = k % (INPUTS // 2) * 2
            s[f"%d{k}"] = row[at] | row[at + 1] << 32
        s |= {f"%p{k}": int(s[f"%w{k}"] < s[f"%w{k + 1}"]) for k in range(3)}
        s["cc"] = s["%w0"] + s["%w1"] >> 32
        execute(made.steps, s)
        for n, (r, part) in enumerate(made.stores):
            out[thread, n] = s[r] >> 32 if part == "hi" else s[r] & W
    return out


def given(seed: int) -> Words:
    """Inputs: edges and random words."""
    rng = random.Random(seed)
    rows = [
        [rng.choice(_EDGES) if rng.random() < 0.5 else rng.getrandbits(32) for _ in range(INPUTS)]
        for _ in range(THREADS)
    ]
    return np.array(rows, np.uint32)


@dataclass(frozen=True, slots=True)
class Case:
    """A program, its inputs and its results."""

    text: str
    given: Words
    wanted: Words

    def differs(self, got: Words) -> str:
        """'' or the first word that is wrong."""
        wrong = np.argwhere(got != self.wanted)
        if not len(wrong):
            return ""
        thread, at = wrong[0]
        return (
            f"{len(wrong)} words, thread {thread}, word {at}: {int(self.wanted[thread, at]):#010x} expected, "
            f"{int(got[thread, at]):#010x} found"
        )

    def simulated(self, cubin: bytes, strict: bool = False) -> str:
        """Run a cubin; '' or what is wrong."""
        out = np.zeros(self.wanted.size, np.uint32)
        try:
            Device(cubin).launch("k", 1, THREADS, [self.given.reshape(-1).copy(), out], limit=400_000, strict=strict)
        except SimError as e:
            return str(e)
        return self.differs(out.reshape(self.wanted.shape))

    def interpreted(self) -> str:
        """Run the PTX interpreter; '' or what is wrong."""
        out = np.zeros(self.wanted.size, np.uint32)
        Module(self.text, "sm_90").launch("k", (1, 1, 1), (THREADS, 1, 1), [self.given.reshape(-1).copy(), out])
        return self.differs(out.reshape(self.wanted.shape))


def case(seed: int) -> Case:
    """The program of a seed."""
    writer = Writer(seed)
    made = writer.program()
    values = given(seed)
    return Case(text(made, writer.counters), values, expected(made, values))


def judge(c: Case, who: str, arch: str, level: int, registers: int = 0) -> str:
    """What is wrong with one compiler's code ('' nothing)."""
    if who == "interpreter":
        return c.interpreted()
    try:
        if who == "ours":
            options: dict[str, Any] = {"opt-level": level} | ({"maxrregcount": registers} if registers else {})
            return c.simulated(compile_ptx(c.text, arch, options))
        made = oracle.compile_ptx(
            c.text, arch[3:], f"-O{level}", *([f"-maxrregcount={registers}"] if registers else [])
        )
        return str(made) if isinstance(made, oracle.ToolError) else c.simulated(made.read_bytes())
    except ChainError as e:
        return str(e).strip()


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description="Random kernels of 64-bit values by halves and carry chains, against Python integers."
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--arch", nargs="+", default=list(ARCHES))
    parser.add_argument("-O", dest="levels", nargs="+", type=int, default=[0, 1, 2, 3])
    parser.add_argument(
        "--turns", action="store_true", help="one SM and level a program, in turn, in place of all of them"
    )
    parser.add_argument(
        "--who", nargs="+", choices=("ours", "ptxas", "interpreter"), default=["ours", "ptxas", "interpreter"]
    )
    parser.add_argument("--keep", type=Path, help="a folder for programs that went wrong")
    parser.add_argument("--pieces", action="store_true", help="more steps on parts of values (pieces.py)")
    options = parser.parse_args()
    draw = case
    if options.pieces:
        from tests.fuzz.pieces import case as draw
    began = time.monotonic()
    counts = dict.fromkeys(options.who, 0)
    wrong = dict.fromkeys(options.who, 0)
    for seed in range(options.seed, options.seed + options.count):
        c = draw(seed)
        ways = [(a, o) for a in options.arch for o in options.levels]
        if options.turns:
            ways = [ways[seed % len(ways)]]
        for who in options.who:
            for arch, level in ways if who != "interpreter" else ways[:1]:
                counts[who] += 1
                found = judge(c, who, arch, level, (24, 32, 0, 0)[seed % 4] if level else 0)
                if found:
                    wrong[who] += 1
                    print(f"seed {seed}, {who}, {arch} -O{level}: {found}", flush=True)
                    if options.keep:
                        options.keep.mkdir(parents=True, exist_ok=True)
                        (options.keep / f"{seed}.ptx").write_text(c.text)
    said = ", ".join(f"{who}: {wrong[who]} of {counts[who]} wrong" for who in options.who)
    print(f"{options.count} programs; {said}; {time.monotonic() - began:.0f} s")
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
