"""Random modules of functions with every kind of signature, and their results, computed here in Python: no other code
of the project contributes to the values.

A module has a kernel ``k(in, out)``, whose threads have :data:`WORDS` words each of both, and functions that call each
other: directly, by pointer (moved, selected, from a table in memory), recursively, in loops and under divergent
branches. The functions are in two files (:attr:`Program.files`), so that either may come from another compiler, or in
one (:attr:`Program.whole`). Everything is defined: bytes of a result that a function does not write are not read.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.fuzz.function_code import SCALARS, WORK, Body, Function, Param, Piece, run_steps
from tests.fuzz.function_ops import OPS, Env

THREADS: Final = 32
WORDS: Final = 8


def signature(rng: random.Random) -> tuple[list[Param], Param | None]:
    """Parameters and result of a function."""

    def scalar() -> Param:
        t = rng.choice(tuple(SCALARS))
        return Param(t, int(t[1:]) // 8)

    def array() -> Param:
        t = rng.choice(("b8", "b8", "b8", "b8", "b32", "b64", "b16", "f32"))
        n = int(t[1:]) // 8
        align = rng.choice([a for a in (1, 2, 4, 4, 8, 8, 16) if a >= n])
        size = rng.choice(
            (1, 2, 3, 4, 5, 6, 7, 8, 8, 12, 12, 13, 16, 16, 20, 24, 28, 32, 36, 40, 44, 48, 49, 52, 56, 64, 80, 100)
        )
        return Param(t, align, max(1, size // n))

    style = rng.random()
    count = rng.choice((0, 1, 1, 2, 2, 3, 4, 6, 9, 14)) if style < 0.9 else rng.randint(10, 20)
    params = [array() if rng.random() < 0.4 else scalar() for _ in range(count)]
    if rng.random() < 0.08:
        params.append(Param("b8", rng.choice((1, 4, 8, 8, 16)), -1))
    ret = None if rng.random() < 0.12 else array() if rng.random() < 0.5 else scalar()
    return params, ret


def _begin(body: Body, rng: random.Random, acc: str) -> None:
    """Values of every kind, computed from the inputs."""
    body.need("w")
    body.scope["l"].append(acc)
    for kind in "hfdlpp":
        body.op(rng.choice([o for o in OPS if o.kind == kind and all(body.scope[k] for k in o.srcs)]), True)


def _write(rng: random.Random, f: Function, callees: Sequence[Function], partner: Function | None, small: bool) -> None:
    body = Body(rng, f, callees, f"{f.name}_")
    acc = body.new("l")
    seed = rng.getrandbits(62)
    body.put(f"mov.b64 {acc}, {seed};")

    def begin(env: Env) -> None:
        env[acc] = seed

    body.steps.append(begin)
    for n, p in enumerate(f.params):
        if p.count >= 0 and rng.random() < 0.93:
            body.read_all(f"p{n}", n, p, p.size, acc)
        elif p.count < 0:
            body.read_all(f"p{n}", n, p, 8, acc)  # callers pass 8 bytes or more
    left = ""
    if f.depth:
        name, p, out = body.new("w"), body.new("p"), body.label()
        left = body.new("w")
    _begin(body, rng, acc)
    if f.depth:
        body.put(
            f"ld.param.b32 {name}, [p0];",
            f"setp.ne.u32 {p}, {name}, 0;",
            f"sub.u32 {left}, {name}, 1;",
            f"@{p} bra {out};",
        )
        outer, body.steps = body.steps, []
        body.leave()
        inner, body.steps = body.steps, outer
        body.put(f"{out}:")

        def test(env: Env) -> bytearray | None:
            n = int.from_bytes(env["&0"][:4], "little")
            env[left] = n - 1 & 0xFFFFFFFF
            return None if n else run_steps(inner, env)

        body.steps.append(test)
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        body.local()
    pressure = rng.choice((0, 0, 0, 3, 8) if small else (0, 4, 20, 50))
    body.some_ops(pressure, True)
    kept = {k: list(v) for k, v in body.scope.items()}
    body.block(rng.randint(0, 2) if small else rng.randint(1, 4), 0, fresh=rng.random() < 0.7)
    if f.depth and partner is not None:
        body.emit_call([partner], rng.random() < 0.2, left)
        body.block(rng.randint(0, 1), 0, fresh=True)
    body.scope = {k: list(dict.fromkeys((*kept[k], *body.scope[k]))) for k in kept}
    body.fold(acc)
    body.scope["l"] = [*body.scope["l"], acc, acc, acc]
    for kind in "whfd":  # the returned value depends on all
        body.op(rng.choice([o for o in OPS if o.kind == "w" and o.srcs == "l"]), True)
        if kind != "w":
            body.op(rng.choice([o for o in OPS if o.kind == kind and o.srcs in ("w", "l")]), True)
    body.leave()
    f.lines = [*body.declarations(), *body.lines]
    f.steps = body.steps
    f.cost = body.cost * (4 if f.depth else 1)


def _write_tiny(rng: random.Random, f: Function, halves: bool) -> None:
    """A few operations on some of the arguments, and the last result: much of what is computed here is never read."""
    body = Body(rng, f, (), f"{f.name}_")
    for n, p in enumerate(f.params):
        made: list[tuple[str, str]] = []

        def fill(kind: str, made: list[tuple[str, str]] = made) -> str:
            made.append((kind, body.new(kind)))
            return made[-1][1]

        got = body.pieces(p, p.size, fill)
        if n and rng.random() < 0.2:
            continue
        body.put(*[x.load(f"p{n}") for x in got])

        def load(env: Env, got: list[Piece] = got, key: str = f"&{n}") -> None:
            for x in got:
                x.get(env[key], env)

        body.steps.append(load)
        for kind, name in made:
            body.scope[kind].append(name)
    if halves:
        wide = [o for o in OPS if o.kind in "lw" and set(o.srcs) <= {"l", "w"} and "t;" not in o.text]
        for _ in range(rng.randint(1, 6)):
            body.op(rng.choice([o for o in wide if all(body.scope[k] for k in o.srcs)]), True)
    else:
        body.need("w")
        body.some_ops(rng.randint(1, 7), True)
    body.leave()
    f.lines = [*body.declarations(), *body.lines]
    f.steps = body.steps
    f.cost = body.cost


@dataclass(slots=True, eq=False)
class Program:
    """``files``: the text of each, without a header; ``whole``: all in one."""

    files: list[str]
    whole: str
    kernel: Body
    relocatable: bool = True

    def expected(self, words: Sequence[Sequence[int]]) -> list[list[int]]:
        """The words that each thread writes."""
        out = []
        for given in words:
            env: Env = {f"in{n}": x for n, x in enumerate(given)}
            run_steps(self.kernel.steps, env)
            out.append([env[f"out{n}"] for n in range(WORDS)])
        return out


def inputs(seed: int) -> list[list[int]]:
    """The words of each thread: few different ones, so that threads diverge and converge."""
    rng = random.Random(seed)
    some = [rng.choice((0, 1, 2, 3, 0xFFFFFFFF, 0x80000000, rng.getrandbits(32), rng.getrandbits(8))) for _ in range(6)]
    return [
        [rng.choice(some) if rng.random() < 0.8 else rng.getrandbits(32) for _ in range(WORDS)] for _ in range(THREADS)
    ]


def _kernel(rng: random.Random, callees: Sequence[Function], small: bool) -> Body:
    k = Body(rng, None, callees, "k_")
    k.put(
        "ld.param.u64 %in, [in];",
        "ld.param.u64 %out, [out];",
        "mov.u32 %me, %tid.x;",
        f"mad.wide.u32 %in, %me, {4 * WORDS}, %in;",
        f"mad.wide.u32 %out, %me, {4 * WORDS}, %out;",
    )
    words = [k.new("w") for _ in range(WORDS)]
    k.put(*[f"ld.global.b32 {w}, [%in+{4 * n}];" for n, w in enumerate(words)])
    acc = k.new("l")
    k.put(f"mov.b64 {acc}, 1;")

    def begin(env: Env) -> None:
        env.update({w: env[f"in{n}"] for n, w in enumerate(words)})
        env[acc] = 1

    k.steps.append(begin)
    k.scope["w"] += words
    _begin(k, rng, acc)
    for f in callees:
        if not small or rng.random() < 0.3:
            k.block(1, 1, fresh=rng.random() < 0.5)
        if k.cost + f.cost < 2 * WORK:
            k.emit_call([f], rng.random() < 0.15 and not f.listed)
    k.fold(acc, most=12)
    low = k.new("w")
    k.put(f"cvt.u32.u64 {low}, {acc};")
    final = [low, *[k.pick("w") for _ in range(WORDS - 2)]]
    high = k.new("w")
    k.put(
        f"{{.reg .b64 t; shr.u64 t, {acc}, 32; cvt.u32.u64 {high}, t;}}",
        *[f"st.global.b32 [%out+{4 * n}], {w};" for n, w in enumerate((*final, high))],
        "ret;",
    )

    def end(env: Env) -> None:
        env[low], env[high] = env[acc] & 0xFFFFFFFF, env[acc] >> 32
        env.update({f"out{n}": env[w] for n, w in enumerate((*final, high))})

    k.steps.append(end)
    return k


def program(seed: int) -> Program:
    """A random program; most are small."""
    rng = random.Random(seed)
    small = rng.random() < 0.8
    done: list[Function] = []
    n = 0
    for _ in range(rng.randint(1, 3) if small else rng.randint(2, 5)):
        params, ret = signature(rng)
        again = rng.random() < 0.2 and bool(done)
        if again:
            params, ret = done[-1].params, done[-1].ret
        listed = (
            bool(params) and params[-1].count < 0
        )  # a list in a recursive function: ptxas's own code is wrong from -O1 on
        depth = (rng.random() < 0.25 and not again and not listed) or (again and done[-1].depth)
        if depth and not again:
            params = [Param("b32", 4), *params]
        file = rng.randrange(2)
        group = [Function(f"f{n}", list(params), ret, file, rng.random() < 0.85, depth)]
        if depth and rng.random() < 0.5:
            group.append(Function(f"f{n + 1}", list(params), ret, rng.randrange(2), True, depth))
            group[0].visible = True
        n += len(group)
        below = [f for f in done if f.visible or f.file == file]
        for i, f in enumerate(group):
            _write(rng, f, [g for g in below if g.visible or g.file == f.file], group[i - 1] if depth else None, small)
        if len(group) > 1:
            group[0].cost = group[1].cost = 2 * max(g.cost for g in group)
        done += group
    kernel = _kernel(rng, [f for f in done if f.visible or f.file == 0], small)
    return Program([_file(done, i, kernel if i == 0 else None) for i in (0, 1)], _whole(done, kernel), kernel)


def tiny(seed: int) -> Program:
    """A kernel that calls one to four small leaf functions of the other file."""
    rng = random.Random(seed)
    done: list[Function] = []
    for n in range(rng.randint(1, 4)):
        params, ret = signature(rng)
        params = [p for p in params if p.count >= 0 and p.size <= 16][:3]
        halves = rng.random() < 0.5
        if halves:  # of 64-bit values, with few registers in use
            params, ret = [Param("b64", 8), *rng.choice(([], [Param("b64", 8)], [Param("b32", 4)]))], Param("b64", 8)
        f = Function(f"f{n}", params, ret if ret and ret.size <= 16 else Param("b64", 8), 1, True)
        _write_tiny(rng, f, halves)
        done.append(f)
    kernel = _kernel(rng, done, True)
    return Program([_file(done, i, kernel if i == 0 else None) for i in (0, 1)], _whole(done, kernel), kernel)


def _table(f: Function) -> str:
    return f".global .align 8 .u64 ptr_{f.name} = {f.name};"


def _kernel_text(kernel: Body) -> list[str]:
    return [
        ".visible .entry k(.param .u64 in, .param .u64 out)",
        "{",
        *kernel.declarations(),
        ".reg .b64 %in, %out;",
        ".reg .b32 %me;",
        *kernel.lines,
        "}",
    ]


def _file(done: Sequence[Function], file: int, kernel: Body | None) -> str:
    lines = []
    for f in done:
        if f.file == file:
            lines += [f.head(".visible " if f.visible else "") + ";", _table(f)]
        elif f.visible:
            lines += [f.head(".extern ") + ";", _table(f)]
    for f in done:
        if f.file == file:
            lines += [f.head(".visible " if f.visible else ""), "{", *f.lines, "}"]
    return "\n".join([*lines, *(_kernel_text(kernel) if kernel else [])]) + "\n"


def _whole(done: Sequence[Function], kernel: Body) -> str:
    lines = [line for f in done for line in (f.head("") + ";", _table(f))]
    for f in done:
        lines += [f.head(""), "{", *f.lines, "}"]
    return "\n".join([*lines, *_kernel_text(kernel)]) + "\n"
