"""Random modules: kernels of nested and irregular control flow over the forms of :mod:`forms`, and functions that they
call.

A kernel ``kN`` takes the buffers ``in``, ``out``, ``own`` and ``common``, scalars and a structure (see
:func:`arguments`). Threads work on their own bytes. Where they exchange data (shuffles, votes, barriers), all threads
of a warp or block are present. Everything is defined: registers have values before they are read, loops count down.
"""

from __future__ import annotations

import random
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tests.fuzz.bodies import ALL, INPUT, OUTPUT, READ, SOME, Body, Signature, Style, style
from tests.fuzz.forms import EDGES, KINDS
from tests.fuzz.judge import Launch
from tests.fuzz.memory import BLOCK, COMMON, OWN, Pointer

Arr = NDArray[Any]
GRID: Final = 2


def kernel(rng: random.Random, sm: int, number: int, callees: list[Signature]) -> list[str]:
    """One kernel."""
    how = style(rng, sm)
    k = Body(rng, sm, how, callees if rng.random() < 0.4 else [], f"K{number}_")
    w, memory = k.w, k.memory
    w.put(
        "mov.u32 %thr, %tid.x;",
        "mov.u32 %cta, %ctaid.x;",
        f"mad.lo.u32 %me, %cta, {BLOCK}, %thr;",
        "ld.param.u64 %in, [in];",
        "ld.param.u64 %out, [out];",
        "ld.param.u64 %own, [own];",
    )
    w.put(
        f"mad.wide.u32 %in, %me, {INPUT}, %in;",
        f"mad.wide.u32 %out, %me, {OUTPUT}, %out;",
        f"mad.wide.u32 %own, %me, {OWN}, %own;",
    )
    w.put("mov.u32 %mine, meeting;", "mad.lo.u32 %mine, %thr, 4, %mine;")
    k.slots = 0

    def given(kind: str) -> str | None:
        name = w.new(kind)
        if kind == "u":
            w.put(
                rng.choice(
                    (
                        f"ld.param.u32 {name}, [s0];",
                        f"ld.param.u32 {name}, [s1];",
                        f"mov.u32 {name}, %cta;",
                        f"ld.param.u8 {name}, [st+{rng.randrange(OWN)}];",
                    )
                )
            )
        elif kind in "pq":
            word = w.new("w")
            w.put(given_word(word) if kind == "p" else f"ld.param.u32 {word}, [s{rng.randrange(2)}];")
            test = rng.random()
            if test < 0.5:
                bit = w.new("w")
                w.put(f"and.b32 {bit}, {word}, {1 << rng.randrange(3)};", f"setp.ne.u32 {name}, {bit}, 0;")
            else:
                w.put(f"setp.{rng.choice(('lt', 'gt', 'ge'))}.s32 {name}, {word}, {w.literal('w')};")
        elif kind == "w" and rng.random() < 0.3:
            source = w.move("w", rng.choice(("%thr", "%me", "%laneid", "%ntid.x", "%cta")))
            how = rng.choice(
                (
                    "mov.u32 {d}, {s}",
                    "mul.lo.s32 {d}, {s}, {n}",
                    "xor.b32 {d}, {s}, {n}",
                    "shl.b32 {d}, {s}, 3",
                    "add.s32 {d}, {s}, {n}",
                    "mad.lo.s32 {d}, {s}, {n}, 77",
                    "or.b32 {d}, {s}, {n}",
                )
            )
            w.put(f"{how.format(d=name, s=source, n=w.literal('w'))};")
        else:
            size = int(READ[kind][1:]) // 8
            w.put(
                f"ld.global{rng.choice(('', '', '.nc'))}.{READ[kind]} {name}, "
                f"[%in+{rng.randrange(INPUT // size) * size}];"
            )
        return name

    def given_word(name: str) -> str:
        return f"ld.global.b32 {name}, [%in+{4 * rng.randrange(INPUT // 4)}];"

    for kind in "ulwhfdpqebvy":
        k.begin(kind, how.registers[kind], given)
    if how.memory:
        memory.readable += [Pointer(".global", "%in", False), Pointer(".param", "st", False)]
        k.constants()
        memory.writable.append(Pointer(".global", "%own"))
        if rng.random() < 0.4:
            memory.writable.append(Pointer("", k.generic("global", "%own")))
        if rng.random() < 0.5:
            pointer, common = w.new("l"), w.new("l")
            w.put(
                f"mov.u64 {pointer}, slots;",
                f"mad.wide.u32 {pointer}, %thr, {OWN}, {pointer};",
                f"ld.param.u64 {common}, [common];",
            )
            for at in range(0, OWN, 8):
                w.put(f"st.shared.b64 [{pointer}+{at}], {w.pick('l')};")
            memory.writable.append(Pointer(".shared", pointer))
            memory.common.append(Pointer(".global", common))
            if rng.random() < 0.5:
                memory.writable.append(Pointer("", k.generic("shared", pointer)))
        if rng.random() < 0.5:
            k.local()
        memory.away()
        generic = [p for p in memory.writable if p.space == "" and not p.bias]
        if len(generic) > 1:
            chosen = w.new("l")
            w.put(f"selp.b64 {chosen}, {generic[0].base}, {generic[-1].base}, {w.pick('p')};")
            memory.writable.append(Pointer("", chosen, all(p.atomic for p in generic)))
    while k.budget > 0:
        k.statement(rng.choice((1, 2, 3)), ALL)
    keep = rng.choice((0.4, 0.8, 1.0))
    for kind in "wlhfdpqeubvy":
        for name in w.scope[kind]:
            if rng.random() < keep and k.slots < OUTPUT - 3 * OWN:
                k.store_result(kind, name=name)
    at = OUTPUT - OWN
    for place in [p for p in memory.writable if p.space in (".shared", ".local") and not p.bias and p.base[1] == "l"]:
        for n in range(0, OWN, 16):
            words = [w.new("w") for _ in range(4)]
            w.put(
                f"ld{place.space}.v4.b32 {{{','.join(words)}}}, [{place.base}+{n}];",
                f"st.global.v4.b32 [%out+{at + n}], {{{','.join(words)}}};",
            )
        at -= OWN
    head = [
        (
            f".visible .entry k{number}(.param .u64 in, .param .u64 out, .param .u64 own, .param .u64 common, "
            f".param .u32 s0, .param .u32 s1, .param .u64 s2, .param .f32 s3, .param .align 16 .b8 st[{OWN}])"
        )
    ]
    head += ["{", *k.declarations(), ".reg .b32 %thr, %cta, %me, %mine;", ".reg .b64 %in, %out, %own;"]
    return [*head, *w.lines, rng.choice(("ret;", "exit;")), "}"]


def _prototype(f: Signature) -> str:
    params = [
        f".param .align 8 .b8 p{n}[{k}]" if k.isdigit() else f".param .{'b32' if k in 'hp' else KINDS[k][0]} p{n}"
        for n, k in enumerate(f.params)
    ]
    return f".func (.param .{KINDS[f.result][0]} result) {f.name} ({', '.join(params)})"


def function(rng: random.Random, sm: int, f: Signature, callees: list[Signature]) -> list[str]:
    """One device function."""
    how = style(rng, sm)
    how = Style(
        {**how.registers, "u": 0, "q": 0},
        how.fresh,
        tuple(t for t in how.tables if t != "uniform"),
        rng.choice((4, 10, 20)),
        how.memory,
        0.3,
        how.guards,
    )
    k = Body(rng, sm, how, callees, f"{f.name}_")
    w = k.w
    k.most = SOME
    for n, kind in enumerate(f.params):
        if kind.isdigit():
            at = 0
            while at < int(kind):
                part, size = rng.choice((("w", 4), ("w", 4), ("l", 8), ("f", 4)))
                if at % size or at + size > int(kind):
                    part, size = "w", 4
                name = w.new(part)
                w.put(f"ld.param.{KINDS[part][0]} {name}, [p{n}+{at}];")
                w.show(part, name)
                at += size
        else:
            name = w.new(kind)
            w.put(f"ld.param.{KINDS[kind][0]} {name}, [p{n}];")
            w.show(kind, name)
    if not w.scope["w"]:
        w.show("w", w.move("w", "77"))
    word = w.scope["w"][-1]

    def derived(kind: str) -> str:
        name = w.new(kind)
        if kind == "p":
            w.put(f"setp.{rng.choice(('lt', 'gt', 'ne'))}.s32 {name}, {w.pick('w')}, {w.literal('w')};")
        elif kind in "wvyf":
            w.put(f"mov.b32 {name}, {word};")
        elif kind in "ld":
            w.put(f"mov.b64 {name}, {{{word},{w.pick('w')}}};")
        else:
            w.put(f"cvt.u16.u32 {name}, {word};")
        return name

    for kind in "wlhfdpebvy":
        k.begin(kind, max(1, how.registers[kind] // 2), derived)
    if how.memory:
        k.constants()
        k.local()

    def leave() -> list[str]:
        start = len(w.lines)
        value = w.pick(f.result)
        if f.result in "fdebv":
            value = w.clean(f.result, value) if f.result != "v" else w.bits("v", value)[1]
        w.put(f"st.param.{KINDS[f.result][0]} [result], {value};", "ret;")
        lines = w.lines[start:]
        del w.lines[start:]
        return lines

    k.leave = leave
    if f.recursive:
        depth, p = w.scope["w"][0], w.new("p")
        less, out = w.new("w"), w.new(f.result)
        w.put(
            f"mov.u32 {less}, {depth};",
            f"setp.eq.s32 {p}, {less}, 0;",
            f"@!{p} bra deep;",
            *leave(),
            "deep:",
            f"sub.s32 {less}, {less}, 1;",
        )
        k.statement(1, SOME)
        w.put("{", f".param .{KINDS[f.result][0]} again;")
        args = []
        for n, kind in enumerate(f.params):
            w.put(f".param .align 8 .b8 n{n}[{kind}];" if kind.isdigit() else f".param .{KINDS[kind][0]} n{n};")
            args.append(f"n{n}")
        for n, kind in enumerate(f.params):
            if kind.isdigit():
                for at in range(0, int(kind), 4):
                    w.put(f"st.param.b32 [n{n}+{at}], {w.pick('w')};")
            else:
                w.put(f"st.param.{KINDS[kind][0]} [n{n}], {less if n == 0 else w.pick(kind)};")
        w.put(f"call (again), {f.name}, ({', '.join(args)});", f"ld.param.{KINDS[f.result][0]} {out}, [again];", "}")
        w.show(f.result, out)
    while k.budget > 0:
        k.statement(rng.choice((1, 2)), SOME)
    w.put(*leave())
    return [_prototype(f), "{", *k.declarations(), *w.lines, "}"]


def module(seed: int, sm: int, kernels: int) -> str:
    """The text of a module for an SM, with this many kernels."""
    rng = random.Random(seed)
    signatures: list[Signature] = []
    bodies: list[str] = []
    for n in range(rng.choice((0, 1, 2, 3))):
        if signatures and rng.random() < 0.4 and not signatures[-1].recursive:
            params, result, recursive = signatures[-1].params, signatures[-1].result, False
        else:
            recursive = rng.random() < 0.3
            params = tuple(rng.choice(("w", "w", "l", "f", "d", "12", "8", "16")) for _ in range(rng.randint(1, 5)))
            params, result = (("w", *params) if recursive else params), rng.choice("wwlfd")
        f = Signature(f"f{n}", params, result, recursive)
        bodies += function(rng, sm, f, list(signatures))
        signatures.append(f)
    head = [f".version {'8.7' if sm > 90 else '8.0'}", f".target sm_{sm}", ".address_size 64"]
    head += [f".const .align 16 .b8 table[{OWN}] = {{{','.join(str(rng.randrange(256)) for _ in range(OWN))}}};"]
    head += [f".shared .align 16 .b8 slots[{OWN * BLOCK}];", f".shared .align 4 .b8 meeting[{4 * BLOCK}];"]
    lines = [*head, *bodies]
    for n in range(kernels):
        lines += kernel(random.Random(rng.getrandbits(64)), sm, n, signatures)
    return "\n".join(lines) + "\n"


def arguments(seed: int) -> list[Any]:
    """Arguments of any kernel; each call creates new buffers."""
    rng = np.random.default_rng(seed)
    threads = BLOCK * GRID

    def mixed(size: int) -> Arr:
        raw = rng.integers(0, 256, size, dtype=np.uint8)
        for view, edges in (
            (raw.view(np.uint64), EDGES["l"]),
            (raw.view(np.uint32), EDGES["w"]),
            (raw.view(np.uint32), EDGES["f"]),
            (raw.view(np.uint64), EDGES["d"]),
        ):
            chosen = rng.random(view.shape) < 0.15
            view[chosen] = rng.choice(
                np.array([e & (1 << 8 * view.itemsize) - 1 for e in edges], view.dtype), int(chosen.sum())
            )
        small = rng.random(size // 4) < 0.15
        raw.view(np.uint32)[small] = rng.integers(0, 8, int(small.sum()), dtype=np.uint32)
        return raw

    scalars = mixed(OWN + 32)
    return [
        mixed(threads * INPUT), np.zeros(threads * OUTPUT, np.uint8), mixed(threads * OWN),
            np.zeros(4 * len(COMMON), np.uint8),
        scalars[:4].view(np.uint32)[0], scalars[4:8].view(np.uint32)[0], scalars[8:16].view(np.uint64)[0],
            scalars[16:20].view(np.float32)[0], scalars[32:].tobytes(),
    ]  # fmt: skip


def launch(seed: int) -> Launch:
    """How kernels of :func:`module` are run."""
    return Launch(GRID, BLOCK, arguments, seed)
