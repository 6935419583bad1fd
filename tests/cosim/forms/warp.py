"""Forms that exchange data between threads: votes, shuffles, barriers; control flow; instructions that only order."""

from __future__ import annotations

import random

from stages.parse.table import Row
from tests.cosim.forms import arith
from tests.cosim.forms.base import Form, opcode_text

NAMES = (
    "shfl",
    "vote",
    "match",
    "redux",
    "elect",
    "activemask",
    "bar",
    "barrier",
    "membar",
    "fence",
    "nanosleep",
    "griddepcontrol",
    "pmevent",
    "setmaxnreg",
    "bra",
    "brx",
    "call",
    "ret",
    "exit",
    "trap",
)
#: Kinds of values of restricted operands.
_SHFL = ("b32", "lane", "clamp")


def form(row: Row, mods: list[str], types: tuple[str, ...], rng: random.Random) -> Form | None:
    """A form of this module's families."""
    name = row.name.split(".")[0]
    opcode = opcode_text(row, mods, types)
    if name in ("shfl", "vote", "match", "redux", "elect", "activemask"):
        return _across(opcode, row, mods, types, rng)
    if name in ("bar", "barrier"):
        if "cluster" in row.name:
            return _cluster(opcode, row)
        if "warp" in row.name:
            return _exchange(opcode, f"{opcode} 0xffffffff;", row, "xor.b32 %r3, %me, 5;")
        return _block(opcode, row, mods, rng)
    if name in ("membar", "fence"):
        text = f"{opcode};" if len(row.operands) == 0 else f"{opcode} [%mem], 128;"
        aligned = "and.b64 %mem, %mem, -128;" if row.operands else ""
        return Form(
            opcode,
            text,
            (
                f"ld.global.b32 %r0, [%in]; {aligned} st.global.b32 [%out], %r0; {text} ld.global.b32 %r1, "
                f"[%out]; st.global.b32 [%out+8], %r1;"
            ),
            ["b32"],
            ["b32", "b32"],
            row.key,
            memory="b8" if row.operands else "",
        )
    if name in ("nanosleep", "griddepcontrol", "pmevent", "setmaxnreg"):
        operand = {"nanosleep": " 20", "pmevent": " 3", "setmaxnreg": " 64"}.get(name, "")
        text = f"{opcode}{operand};"
        return Form(
            opcode,
            text,
            f"ld.global.b32 %r0, [%in]; {text} add.u32 %r0, %r0, 1; st.global.b32 [%out], %r0;",
            ["b32"],
            ["b32"],
            row.key,
        )
    return _flow(opcode, row)


def _across(opcode: str, row: Row, mods: list[str], types: tuple[str, ...], rng: random.Random) -> Form | None:
    """Votes, matches and similar by all lanes of a warp, or (the forms with a mask) by some of them."""
    o = arith.Operands()
    name = row.name.split(".")[0]
    some = "sync" in mods and name != "shfl" and rng.random() < 0.5
    member = rng.choice(["0x0000ffff", "0x77777777", "0xfffffffe"]) if some else "0xffffffff"
    free = {"shfl": _SHFL, "match": ("few64" if types and types[-1] == "b64" else "few",)}.get(name, ())
    shown = 0
    for k, spec in enumerate(row.operands):
        last = k == len(row.operands) - 1
        if last and "sync" in mods and spec.role == "s":
            o.texts.append(member)
        elif spec.role == "s" and shown < len(free):
            o.texts.append(o.source(free[shown]))
            shown += 1
        elif not arith.operand(o, spec, row, mods, types, rng):
            return None
    text = f"{opcode} {', '.join(o.texts)};"
    lines = list(o.lines)
    if some:
        lines.append(
            f"mov.u32 %t2, %laneid; shr.b32 %t2, {member}, %t2; and.b32 %t2, %t2, 1; setp.eq.u32 %p50, "
            f"%t2, 0; @%p50 bra DONE;"
        )
    lines += [text, *o.stores()]
    return Form(opcode, text, "\n".join(lines) + ("\nDONE:" if some else ""), o.sources, o.kinds(), row.key)


def _exchange(opcode: str, text: str, row: Row, partner: str, threads: int = 256, local: str = "") -> Form:
    """Threads write, synchronize, and read what a partner wrote."""
    body = (
        f"ld.global.b32 %r0, [%in]; mov.u32 %r1, sm; mad.lo.u32 %r2, %me, 4, %r1; st.shared.b32 [%r2], "
        f"%r0; {partner}\n{text}\n"
        "mad.lo.u32 %r2, %r3, 4, %r1; ld.shared.b32 %r4, [%r2]; st.global.b32 [%out], %r4;"
    )
    return Form(
        opcode, text, body, ["b32"], ["b32"], row.key, local=f".shared .align 16 .b8 sm[1024]; {local}", threads=threads
    )


def _block(opcode: str, row: Row, mods: list[str], rng: random.Random) -> Form:
    """Barriers of a block: all threads, or half of them arriving only."""
    partner = "xor.b32 %r3, %me, 100;"
    number = rng.randrange(1, 8)
    count = rng.choice(["", ", 256"])
    if "arrive" in row.name:
        wait = opcode.replace("arrive", "sync", 1) if row.name.startswith("barrier") else "bar.sync"
        text = f"{opcode} {number}, 256;"
        body = (
            f"ld.global.b32 %r0, [%in]; mov.u32 %r1, sm; mad.lo.u32 %r2, %me, 4, %r1; st.shared.b32 [%r2], "
            f"%r0; setp.lt.u32 %p1, %me, 128;\n"
            f"@%p1 bra WAITS; {text} bra DONE;\nWAITS: {wait} {number}, 256; add.u32 %r3, %me, 128; "
            f"mad.lo.u32 %r2, %r3, 4, %r1; ld.shared.b32 %r4, [%r2]; st.global.b32 [%out], %r4;\nDONE:"
        )
        return Form(opcode, text, body, ["b32"], ["b32"], row.key, local=".shared .align 16 .b8 sm[1024];")
    if "red" in row.name:
        dest, kind = ("%r40", "u32") if "popc" in mods else ("%p40", "pred")
        o = arith.Operands()
        value = o.source(rng.choice(["pred", "ones"]))
        o.result(kind, dest)
        text = f"{opcode} {dest}, {number}{count}, {value};"
        return Form(opcode, text, "\n".join([*o.lines, text, *o.stores()]), o.sources, o.kinds(), row.key)
    text = f"{opcode} {number}{count};"
    return _exchange(opcode, text, row, partner)


def _cluster(opcode: str, row: Row) -> Form:
    """Barriers of a cluster: the other block's shared memory is read after the barrier."""
    arrive = "arrive" in row.name
    aligned = ".aligned" if opcode.endswith("aligned") else ""
    fence = "fence.acq_rel.cluster; " if "relaxed" in opcode else ""
    meet = (
        f"{fence}{opcode}; barrier.cluster.wait{aligned};" if arrive else f"barrier.cluster.arrive{aligned}; {opcode};"
    )
    body = (
        "ld.global.b32 %r0, [%in]; mov.u32 %r1, sm; mov.u32 %r5, %tid.x; mad.lo.u32 %r2, %r5, 4, %r1; "
        "st.shared.b32 [%r2], %r0;\n"
        f"{meet}\nmov.u32 %r3, %cluster_ctarank; xor.b32 %r3, %r3, 1; mapa.shared::cluster.u32 %r4, %r2, "
        f"%r3; ld.shared::cluster.b32 %r6, [%r4]; st.global.b32 [%out], %r6;\n"
        "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
    )
    return Form(
        opcode,
        f"{opcode};",
        body,
        ["b32"],
        ["b32"],
        row.key,
        local=".shared .align 16 .b8 sm[1024];",
        blocks=4,
        cluster=2,
    )


_CALLEE = (
    ".func (.reg .b32 fr) f$$(.reg .b32 fa) { add.u32 fr, fa, 7; ret; "
    "} .func (.reg .b32 fr) g$$(.reg .b32 fa) { mul.lo.u32 fr, fa, 3; ret; }"
)


def _flow(opcode: str, row: Row) -> Form | None:
    """Branches and calls."""
    name = row.name.split(".")[0]
    head = "ld.global.b32 %r0, [%in]; and.b32 %r1, %r0, 3; mov.u32 %r2, 0;"
    tail = "st.global.b32 [%out], %r2;"
    module = ""
    # A uniform branch goes the same way in the whole warp.
    same = "shr.u32 %r1, %me, 5; and.b32 %r1, %r1, 3;" if "uni" in opcode else ""
    if name == "bra":
        text = f"@%p1 {opcode} L1;"
        body = (
            f"{head} {same} setp.eq.u32 %p1, %r1, 1; {text} add.u32 %r2, %r0, 5; bra L2; L1: xor.b32 %r2, %r0, "
            f"9; L2: {tail}"
        )
    elif name == "brx":
        text = f"{opcode} %r1, TS;"
        body = (
            f"{head} {same} TS: .branchtargets L0, L1, L2, L3; {text} L0: add.u32 %r2, %r0, 1; bra LX; L1: "
            f"add.u32 %r2, %r0, 20; bra LX; "
            f"L2: xor.b32 %r2, %r0, 300; bra LX; L3: mul.lo.u32 %r2, %r0, 5; LX: {tail}"
        )
    elif name == "call":
        module = _CALLEE
        text = f"{opcode} (%r2), f$$, (%r0);"
        body = f"{head} {text} {tail}"
    elif name == "exit":
        text = "@%p1 exit;"
        body = f"{head} setp.eq.u32 %p1, %r1, 1; st.global.b32 [%out], %r0; {text} add.u32 %r2, %r0, 2; {tail}"
    elif name == "ret":
        module = (
            ".func (.reg .b32 fr) f$$(.reg .b32 fa) { .reg .pred %p; mov.u32 fr, fa; setp.gt.u32 %p, fa, 50; @%p "
            + opcode
            + "; add.u32 fr, fa, 100; ret; }"
        )
        text = f"{opcode};"
        body = f"{head} and.b32 %r1, %me, 127; {'and.b32 %r1, %r1, 96;' if same else ''} call (%r2), f$$, (%r1); {tail}"
    elif name == "trap":
        text = "@%p1 trap;"
        body = f"{head} setp.gt.u32 %p1, %r1, 5; {text} {tail}"
        body = body.replace("mov.u32 %r2, 0;", "mov.u32 %r2, %r1;")
    else:
        return None
    return Form(opcode, text, body, ["b32"], ["b32"], row.key, module=module)


def indirect_call() -> Form:
    """A call through an address."""
    module = _CALLEE
    text = "call (%r2), %d1, (%r0), PT;"
    body = (
        "ld.global.b32 %r0, [%in]; and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0; mov.u64 %d0, f$$; "
        "mov.u64 %d2, g$$; selp.b64 %d1, %d0, %d2, %p1; "
        f"PT: .callprototype (.reg .b32 _) _ (.reg .b32 _); {text} st.global.b32 [%out], %r2;"
    )
    return Form("call", text, body, ["b32"], ["b32"], "call#0", module=module)
