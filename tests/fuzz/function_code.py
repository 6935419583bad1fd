"""The code of one random function and, with each statement, its effect in Python; see :mod:`tests.fuzz.functions`."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.fuzz.function_ops import OPS, REGS, Env, Op

MASK64: Final = (1 << 64) - 1
FOLD: Final = 0x9E3779B97F4A7C15
#: Approximate limit of statements that a thread may run in total.
WORK: Final = 2500

#: Types of scalar parameters (those of 8 and 16 bits with a sign are refused by ptxas), and the kind of register that
#: holds one.
SCALARS: Final = {
    "b8": "h",
    "b16": "h",
    "b32": "w",
    "u32": "w",
    "s32": "w",
    "b64": "l",
    "u64": "l",
    "s64": "l",
    "f32": "f",
    "f64": "d",
}
_BYTES: Final = {"h": 2, "w": 4, "l": 8, "f": 4, "d": 8}


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter or result. ``count`` 0: a scalar, -1: a list of unknown length (the last parameter)."""

    type: str
    align: int
    count: int = 0

    @property
    def item(self) -> int:
        return int(self.type[1:]) // 8

    @property
    def size(self) -> int:
        return self.item * max(1, self.count)

    def text(self, name: str, count: int = 0) -> str:
        """Its declaration; ``count``: the length that a caller chooses for a list."""
        align = f".align {self.align} " if self.align != self.item else ""
        n = count or self.count
        return f".param {align}.{self.type} {name}" + (f"[{n if n > 0 else ''}]" if n else "")


@dataclass(slots=True)
class Piece:
    """An access to a parameter: ``elems`` registers of kind ``kind`` and type ``type`` from ``offset``; an element
    is a register or a literal."""

    offset: int
    type: str
    kind: str
    elems: list[str | int]

    @property
    def size(self) -> int:
        return int(self.type[1:]) // 8

    def load(self, name: str) -> str:
        many = len(self.elems)
        to = "{" + ", ".join(map(str, self.elems)) + "}" if many > 1 else self.elems[0]
        return f"ld.param.{f'v{many}.' if many > 1 else ''}{self.type} {to}, [{name}+{self.offset}];"

    def store(self, name: str) -> str:
        many = len(self.elems)
        to = "{" + ", ".join(map(str, self.elems)) + "}" if many > 1 else self.elems[0]
        return f"st.param.{f'v{many}.' if many > 1 else ''}{self.type} [{name}+{self.offset}], {to};"

    def get(self, data: bytearray, env: Env) -> None:
        """The effect of the load."""
        for n, e in enumerate(self.elems):
            at = self.offset + n * self.size
            value = int.from_bytes(data[at : at + self.size], "little")
            if self.type[0] == "s":
                value -= (value >> 8 * self.size - 1) << 8 * self.size
            assert isinstance(e, str)
            env[e] = value & (1 << 8 * _BYTES[self.kind]) - 1

    def put(self, data: bytearray, env: Env) -> None:
        """The effect of the store."""
        for n, e in enumerate(self.elems):
            at = self.offset + n * self.size
            value = env[e] if isinstance(e, str) else e
            data[at : at + self.size] = (value & (1 << 8 * self.size) - 1).to_bytes(self.size, "little")


Step = Callable[[Env], bytearray | None]  # the effect of a statement; bytes when the function returns


@dataclass(slots=True)
class Function:
    """``depth``: its first parameter counts how often it may still call itself (or its partner)."""

    name: str
    params: list[Param]
    ret: Param | None
    file: int
    visible: bool
    depth: bool = False
    lines: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    cost: int = 0

    @property
    def listed(self) -> bool:
        return bool(self.params) and self.params[-1].count < 0

    def head(self, linkage: str) -> str:
        ret = f"({self.ret.text('result')}) " if self.ret else ""
        return f"{linkage}.func {ret}{self.name} ({', '.join([p.text(f'p{n}') for n, p in enumerate(self.params)])})"

    def prototype(self, label: str) -> str:
        ret = f"({self.ret.text('_')}) " if self.ret else ""
        return f"{label}: .callprototype {ret}_ ({', '.join([p.text('_') for p in self.params])});"

    def run(self, args: Sequence[bytearray]) -> bytearray:
        """Execute it."""
        env: Env = {f"&{n}": a for n, a in enumerate(args)}  # type: ignore[dict-item]
        for step in self.steps:
            got = step(env)
            if got is not None:
                return got
        raise AssertionError("no return")


class Body:
    """Writes the code of a function together with its effect in Python."""

    def __init__(self, rng: random.Random, f: Function | None, callees: Sequence[Function], prefix: str) -> None:
        self.rng = rng
        self.f = f
        self.callees = callees
        self.prefix = prefix
        self.lines: list[str] = []
        self.steps: list[Step] = []
        self.scope: dict[str, list[str]] = {k: [] for k in REGS}
        self.count = dict.fromkeys(REGS, 0)
        self.labels = 0
        self.cost = 0
        self.rounds = 1  # how often the code being written runs
        self.params_made = 0
        self.locals: list[tuple[str, int, int]] = []
        self.keys: dict[str, str] = {}  # pointer of a local array -> its name in the environment

    # -------------------------------------------------------------- names

    def new(self, kind: str) -> str:
        self.count[kind] += 1
        return f"%{kind}{self.count[kind] - 1}"

    def label(self) -> str:
        self.labels += 1
        return f"{self.prefix}{self.labels}"

    def put(self, *lines: str) -> None:
        self.lines += lines

    def pick(self, kind: str) -> str:
        names = self.scope[kind]
        if self.rng.random() < 0.5:
            return names[max(0, len(names) - 1 - int(self.rng.expovariate(0.4)))]
        return self.rng.choice(names)

    # -------------------------------------------------------------- statements

    def op(self, o: Op, fresh: bool) -> None:
        """One operation on visible registers."""
        dst = self.new(o.kind) if fresh or not self.scope[o.kind] else self.pick(o.kind)
        srcs = [self.pick(k) for k in o.srcs]
        literal = o.literal(self.rng) if o.literal else 0
        self.put(o.text.format(*srcs, d=dst, n=literal))
        function = o.value

        def step(env: Env) -> None:
            env[dst] = function(*[env[s] for s in srcs], *((literal,) if o.literal else ()))

        self.steps.append(step)
        self.cost += self.rounds
        if dst not in self.scope[o.kind]:
            self.scope[o.kind].append(dst)

    def some_ops(self, count: int, fresh: bool) -> None:
        for _ in range(count):
            usable = [o for o in OPS if all(self.scope[k] for k in o.srcs) and (fresh or self.scope[o.kind])]
            self.op(self.rng.choice(usable), fresh or self.rng.random() < 0.1)

    def fold(self, acc: str, kinds: str = "wlhfdp", most: int = 99) -> None:
        """Mix the visible registers into a 64-bit register."""
        for kind in kinds:
            for name in self.scope[kind][-most:]:
                if name == acc:
                    continue
                wide = self.new("l")
                how = {
                    "w": "cvt.u64.u32 {w}, {s};",
                    "l": "mov.b64 {w}, {s};",
                    "h": "cvt.u64.u16 {w}, {s};",
                    "d": "mov.b64 {w}, {s};",
                }
                if kind == "p":
                    self.put(f"selp.b64 {wide}, 1, 2, {name};")
                elif kind == "f":
                    word = self.new("w")
                    self.put(f"mov.b32 {word}, {name};", f"cvt.u64.u32 {wide}, {word};")
                else:
                    self.put(how[kind].format(w=wide, s=name))
                self.put(f"mad.lo.u64 {acc}, {acc}, {FOLD}, {wide};")

                def step(env: Env, name: str = name, kind: str = kind) -> None:
                    value = (1 if env[name] else 2) if kind == "p" else env[name]
                    env[acc] = (env[acc] * FOLD + value) & MASK64

                self.steps.append(step)
                self.cost += 2 * self.rounds

    def branch(self, depth: int) -> None:
        """An if with or without else."""
        p, rng = self.pick("p"), self.rng
        other, end = self.label(), self.label()
        mark = {k: len(v) for k, v in self.scope.items()}
        outer = self.steps
        self.put(f"@!{p} bra {other};")
        self.steps = yes = []
        self.block(rng.randint(1, 3), depth + 1, fresh=False)
        self.forget(mark)
        self.steps = no = []
        if rng.random() < 0.5:
            self.put(f"bra {end};", f"{other}:")
            self.block(rng.randint(1, 3), depth + 1, fresh=False)
            self.forget(mark)
            self.put(f"{end}:")
        else:
            self.put(f"{other}:")
        self.steps = outer

        def step(env: Env) -> bytearray | None:
            return run_steps(yes if env[p] else no, env)

        self.steps.append(step)

    def loop(self, depth: int) -> None:
        """A counted loop; threads count differently."""
        rng = self.rng
        n, p, at = self.new("w"), self.new("p"), self.label()
        fixed = rng.random() < 0.4
        source = self.pick("w")
        times = rng.randint(1, 3)
        self.put(
            f"mov.u32 {n}, {times};" if fixed else f"and.b32 {n}, {source}, 1;",
            *(() if fixed else (f"add.u32 {n}, {n}, 1;",)),
            f"{at}:",
        )
        mark = {k: len(v) for k, v in self.scope.items()}
        outer, self.steps = self.steps, []
        self.rounds *= 3
        self.block(rng.randint(1, 3), depth + 1, fresh=False)
        self.rounds //= 3
        body, self.steps = self.steps, outer
        self.forget(mark)
        self.put(f"sub.u32 {n}, {n}, 1;", f"setp.ne.u32 {p}, {n}, 0;", f"@{p} bra {at};")

        def step(env: Env) -> bytearray | None:
            for _ in range(times if fixed else (env[source] & 1) + 1):
                got = run_steps(body, env)
                if got is not None:
                    return got
            return None

        self.steps.append(step)

    def forget(self, mark: dict[str, int]) -> None:
        for k, n in mark.items():
            del self.scope[k][n:]

    def block(self, count: int, depth: int, fresh: bool) -> None:
        """Consecutive statements."""
        for _ in range(count):
            r = self.rng.random()
            if depth < 3 and r < 0.12:
                self.branch(depth)
            elif depth < 2 and r < 0.2:
                self.loop(depth)
            elif r < 0.45 and self.callees:
                self.call(depth)
            elif r < 0.5 and self.f and depth:
                p = self.pick("p")
                on = self.label()
                self.put(f"@!{p} bra {on};")
                outer, self.steps = self.steps, []
                self.leave()
                inner, self.steps = self.steps, outer
                self.put(f"{on}:")

                def step(env: Env, p: str = p, inner: list[Step] = inner) -> bytearray | None:
                    return run_steps(inner, env) if env[p] else None

                self.steps.append(step)
            elif r < 0.55 and self.locals:
                self.local_access()
            else:
                self.some_ops(self.rng.randint(1, 5), fresh)

    # -------------------------------------------------------------- memory of the frame

    def local(self) -> None:
        """A local array, filled."""
        size, align = self.rng.choice((16, 20, 32, 48)), self.rng.choice((4, 8, 16, 16, 32))
        name, base = f"{self.prefix}local{len(self.locals)}", self.new("l")
        self.put(f".local .align {align} .b8 {name}[{size}];", f"mov.u64 {base}, {name};")
        w = [self.pick("w") for _ in range(size // 4)]
        self.put(*[f"st.local.b32 [{base}+{4 * n}], {x};" for n, x in enumerate(w)])
        key = f"@{name}"

        def step(env: Env) -> None:
            env[key] = b"".join(env[x].to_bytes(4, "little") for x in w)  # type: ignore[assignment]

        self.steps.append(step)
        self.locals.append((base, size, align))
        self.cost += size // 4
        self.keys[base] = key

    def local_access(self) -> None:
        """Change a word of a local array and read another one, or as much as the array's alignment allows."""
        base, size, align = self.rng.choice(self.locals)
        key = self.keys[base]
        to, source = self.rng.randrange(size // 4) * 4, self.pick("w")
        self.put(f"st.local.b32 [{base}+{to}], {source};")
        most = min(align, 16)
        wide = self.rng.choice([n for n in (4, 8, 16) if n <= most])
        at = self.rng.randrange(size // wide) * wide
        out = [self.pick("w") for _ in range(1)] if wide == 4 else [self.new("w") for _ in range(wide // 4)]
        if wide == 4:
            self.put(f"ld.local.b32 {out[0]}, [{base}+{at}];")
        else:
            to_xor = self.pick("w")
            self.put(
                f"ld.local.v{wide // 4}.b32 {{{', '.join(out)}}}, [{base}+{at}];",
                *[f"xor.b32 {to_xor}, {to_xor}, {x};" for x in out],
            )

        def step(env: Env) -> None:
            data = bytearray(env[key])  # type: ignore[call-overload]
            data[to : to + 4] = env[source].to_bytes(4, "little")
            env[key] = bytes(data)  # type: ignore[assignment]
            for n, x in enumerate(out):
                env[x] = int.from_bytes(data[at + 4 * n : at + 4 * n + 4], "little")
            if wide > 4:
                for x in out:
                    env[to_xor] ^= env[x]

        self.steps.append(step)
        self.cost += 3 * self.rounds

    # -------------------------------------------------------------- parameters

    def pieces(self, p: Param, size: int, fill: Callable[[str], str | int]) -> list[Piece]:
        """Accesses that cover ``size`` bytes of a parameter, in some order."""
        rng = self.rng
        if not p.count:
            return [Piece(0, p.type, SCALARS[p.type], [fill(SCALARS[p.type])])]
        out: list[Piece] = []
        at = 0
        while at < size:
            fits = [(t, k) for t,
                k in (("b8", "h"), ("b16", "h"), ("b32", "w"), ("b64", "l"), ("u8", "w"), ("s8", "w"), ("s16", "w"),
                    ("f32", "f"), ("f64", "d"), ("b32", "w"), ("b64", "l"))
                    if (n := int(t[1:]) // 8) <= p.align and at % n == 0 and at + n <= size]  # fmt: skip
            if size > 24 and rng.random() < 0.8:
                widest = max(int(t[1:]) for t, _ in fits)
                fits = [x for x in fits if int(x[0][1:]) == widest]
            t, kind = rng.choice(fits)
            n = int(t[1:]) // 8
            many = rng.choice(
                [
                    m
                    for m in (1, 1, 2, 4)
                    if m * n <= p.align and m * n <= 16 and at % (m * n) == 0 and at + m * n <= size
                ]
            )
            out.append(Piece(at, t, kind, [fill(kind) for _ in range(many)]))
            at += many * n
        if rng.random() < 0.3:
            rng.shuffle(out)
        return out

    def read_all(self, name: str, key: int | str, p: Param, size: int, acc: str) -> None:
        """Load a parameter's bytes and mix them in."""
        before = {k: len(v) for k, v in self.scope.items()}
        made: list[tuple[str, str]] = []

        def fill(kind: str) -> str:
            made.append((kind, self.new(kind)))
            return made[-1][1]

        got = self.pieces(p, size, fill)
        for piece in got:
            self.put(piece.load(name))

        def step(env: Env) -> None:
            for piece in got:
                piece.get(env[f"&{key}"], env)  # type: ignore[arg-type]

        self.steps.append(step)
        for kind, register in made:
            self.scope[kind].append(register)
        self.cost += len(made) * self.rounds
        if made and len(made) > 6:  # not all of them stay visible
            only = {k: v[before[k] :] for k, v in self.scope.items()}
            whole, self.scope = self.scope, only
            self.fold(acc)
            self.scope = {k: [*whole[k][: before[k]], *whole[k][before[k] :][:2]] for k in whole}

    def value(self, kind: str) -> str | int:
        """Something to pass."""
        self.need(kind)
        return self.pick(kind)

    def need(self, kind: str) -> None:
        """Make sure that at least one register of a kind has a value."""
        if self.scope[kind]:
            return
        if not self.scope["w"]:
            word, n = self.new("w"), self.rng.randrange(1 << 31)
            self.put(f"mov.u32 {word}, {n};")

            def step(env: Env) -> None:
                env[word] = n

            self.steps.append(step)
            self.scope["w"].append(word)
        while not self.scope[kind]:
            self.op(
                self.rng.choice([o for o in OPS if o.kind in (kind, "l") and all(self.scope[k] for k in o.srcs)]), True
            )

    def leave(self) -> None:
        """Store the result and return."""
        f = self.f
        assert f is not None
        got = self.pieces(f.ret, f.ret.size, self.value) if f.ret else []
        if got and self.rng.random() < 0.15:  # stored twice: the second counts
            again = [Piece(x.offset, x.type, x.kind, [self.value(x.kind) for _ in x.elems]) for x in got]
            self.put(*[x.store("result") for x in again])
        self.put(*[x.store("result") for x in got], "ret;")
        size = f.ret.size if f.ret else 0

        def step(env: Env) -> bytearray:
            data = bytearray(size)
            for x in got:
                x.put(data, env)
            return data

        self.steps.append(step)
        self.cost += len(got) * self.rounds

    # -------------------------------------------------------------- calls

    def call(self, depth: int) -> None:
        """A call of some function that does not take too much work."""
        usable = [f for f in self.callees if self.cost + (f.cost + 20) * self.rounds < WORK]
        if not usable:
            return
        f = self.rng.choice(usable)
        r = self.rng.random()
        same = [g for g in usable if (g.params, g.ret, g.depth) == (f.params, f.ret, f.depth)]
        by = [f]
        if r < 0.2 and not f.listed:
            by = [f, self.rng.choice(same)]
        self.emit_call(by, r < 0.2 and not f.listed)

    def emit_call(self, by: list[Function], pointer: bool, depth_left: str = "") -> None:
        """Call ``by[0]``, or by pointer one of ``by`` (chosen by a visible predicate)."""
        rng, f = self.rng, by[0]
        n = self.params_made = self.params_made + 1
        counts = [rng.randint(1, 5) * 8 if p.count < 0 else 0 for p in f.params]
        sizes = [c or p.size for c, p in zip(counts, f.params, strict=True)]
        target, choose, before = f.name, "", []
        if pointer:
            target, before, choose = self.pointer(by)
            before.append(f.prototype(f"{self.prefix}proto{n}"))
        names = [f"a{n}_{k}" for k in range(len(f.params))]
        given = [self.pieces(p, size, self.value) for p, size in zip(f.params, sizes, strict=True)]
        if f.depth:
            given[0][0].elems[0] = depth_left or rng.choice((0, 1, 2, 3))
        by_register = (
            not pointer and all(not p.count and SCALARS[p.type] != "h" for p in f.params) and rng.random() < 0.3
        )
        lines = (
            [
                f".param {p_text[7:]};"
                for p_text in (p.text(name, c) for p, name, c in zip(f.params, names, counts, strict=True))
            ]
            if not by_register
            else []
        )
        out = self.label() + "_r"
        if f.ret:
            lines.append(f"{f.ret.text(out)};")
        if not by_register:
            lines += [x.store(name) for name, got in zip(names, given, strict=True) for x in got]
        args = [str(g[0].elems[0]) for g in given] if by_register else names
        lines.append(
            f"call {f'({out}), ' if f.ret else ''}{target}"
            + (f", ({', '.join(args)})" if args or pointer else "")
            + (f", {self.prefix}proto{n}" if pointer else "")
            + ";"
        )
        self.put("{", *before, *lines)

        def step(env: Env) -> None:
            data = []
            for size, got in zip(sizes, given, strict=True):
                data.append(bytearray(size))
                for x in got:
                    x.put(data[-1], env)
            env[f"&{out}"] = by[env[choose] if choose else 0].run(data)  # type: ignore[assignment]

        self.steps.append(step)
        self.cost += (max(g.cost for g in by) + 10 + sum(map(len, given))) * self.rounds
        if f.ret:
            self.take(f.ret, out)
        self.put("}")

    def take(self, p: Param, out: str) -> None:
        """Load the result into visible registers."""
        made: list[tuple[str, str]] = []

        def fill(kind: str) -> str:
            made.append((kind, self.new(kind)))
            return made[-1][1]

        got = self.pieces(p, p.size, fill)
        acc = self.pick("l")
        self.put(*[x.load(out) for x in got])

        def step(env: Env) -> None:
            for x in got:
                x.get(env[f"&{out}"], env)  # type: ignore[arg-type]

        self.steps.append(step)
        whole = self.scope
        self.scope = {k: [name for kind, name in made if kind == k] for k in REGS}
        self.fold(acc)
        self.scope = whole

    def pointer(self, by: list[Function]) -> tuple[str, list[str], str]:
        """A register that points to one of the functions: (register, lines that set it, what chooses)."""
        a, c, to = self.new("l"), self.new("l"), self.new("l")
        if len(by) == 1 or by[0] is by[1]:
            if self.rng.random() < 0.5:
                return a, [f"mov.u64 {a}, {by[0].name};"], ""
            return a, [f"ld.global.u64 {a}, [ptr_{by[0].name}];"], ""
        choose = self.new("w")
        p, source = self.new("p"), self.pick("w")
        lines = [f"and.b32 {choose}, {source}, 1;", f"setp.ne.u32 {p}, {choose}, 0;"]
        first = [
            f"mov.u64 {a}, {by[0].name};" if self.rng.random() < 0.5 else f"ld.global.u64 {a}, [ptr_{by[0].name}];"
        ]
        second = [
            f"mov.u64 {c}, {by[1].name};" if self.rng.random() < 0.5 else f"ld.global.u64 {c}, [ptr_{by[1].name}];"
        ]
        lines += [*first, *second, f"selp.b64 {to}, {c}, {a}, {p};"]

        def step(env: Env) -> None:
            env[choose] = env[source] & 1

        self.steps.append(step)
        return to, lines, choose

    def declarations(self) -> list[str]:
        return [f".reg {REGS[k]} %{k}<{n + 1}>;" for k, n in self.count.items()]


def run_steps(steps: Sequence[Step], env: Env) -> bytearray | None:
    for step in steps:
        got = step(env)
        if got is not None:
            return got
    return None
