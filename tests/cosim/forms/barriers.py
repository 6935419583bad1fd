"""Forms of barrier objects in shared memory and of the asynchronous copies that arrive at them.

The state of a barrier object is opaque, so the forms compare when its phase completes, probed by arrivals one after
another.
"""

from __future__ import annotations

import random

from stages.interpret.rows import BITS
from stages.parse.table import Row
from tests.cosim.forms.base import PART, Form, opcode_text

NAMES = ("mbarrier", "cp", "st.async", "red.async", "st.bulk")
EXPECTED = 6
_ALL = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
_FENCE = "fence.proxy.async;"


def form(row: Row, mods: list[str], types: tuple[str, ...], rng: random.Random) -> Form | None:
    """A form of this module's families."""
    opcode = opcode_text(row, mods, types)
    if "tensor" in row.name:
        return None
    if row.name.startswith("mbarrier"):
        return _object(opcode, row, mods, rng)
    if row.name in ("st.async", "red.async"):
        return _remote(opcode, row, mods, types)
    if row.name == "st.bulk":
        return _bulk_store(opcode, row)
    if "bulk" in row.name:
        return _bulk(opcode, row, mods, types)
    if row.name == "cp.async.mbarrier.arrive":
        return _copies_arrive(opcode, row, mods)
    return _copy(opcode, row, mods, rng)


# --------------------------------------------------------------------------- barrier objects


def _probe(arrivals: int, address: str, tx: bool) -> str:
    """Whether the first phase counts as complete after each of some arrivals, and after a completed transaction; the
    answers are bits in %r40."""
    test = (
        f"mbarrier.test_wait.parity.shared.b64 %p1, [{address}], 0; selp.u32 %t1, 1, 0, %p1; shl.b32 %r40, "
        f"%r40, 1; or.b32 %r40, %r40, %t1;"
    )
    lines = ["mov.u32 %r40, 0;", test]
    for _ in range(arrivals):
        lines += [f"mbarrier.arrive.shared.b64 %d41, [{address}];", test]
    if tx:
        lines += [f"mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [{address}], 16;", test]
    return "\n".join(lines)


def _object(opcode: str, row: Row, mods: list[str], rng: random.Random) -> Form | None:
    """One barrier object, used by one thread; or a remote one in the cluster."""
    remote = "shared::cluster" in mods
    what = row.name.split(".", 1)[1]
    init = f"mbarrier.init.shared.b64 [mb], {EXPECTED};"
    at = "%r62" if remote else "mb"
    used, tx, after = 1, False, ""
    sink = "_" if remote else rng.choice(["%d40", "%d40", "_"])
    count = (
        row.operands[-1].type == "u32"
        and "expect_tx" not in what
        and what.startswith("arrive")
        and not row.operands[-1].optional
    )
    if what in ("arrive", "arrive_drop"):
        if "noComplete" in mods or (count and sink != "_"):
            sink = "%d40"
        used = 2 if count else 1
        text = f"{opcode} {sink}, [{at}]{', 2' if count else ''};"
        if sink == "%d40":
            after = "mbarrier.pending_count.b64 %r41, %d40; st.global.b32 [%out+8], %r41;"
    elif what in ("arrive.expect_tx", "arrive_drop.expect_tx"):
        text, tx = f"{opcode} {sink}, [{at}], 16;", True
    elif what == "expect_tx":
        text, used, tx = f"{opcode} [{at}], 16;", 0, True
    elif what == "complete_tx":
        init += " mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [mb], 16;"
        text, used = f"{opcode} [{at}], 16;", 0
    elif what == "init":
        text, used, init = f"{opcode} [mb], {EXPECTED};", 0, ""
    elif what == "inval":
        text, used = f"{opcode} [mb]; mbarrier.init.shared.b64 [mb], {EXPECTED};", 0
    else:
        return _waits(opcode, row, what)
    drop = what.startswith("arrive_drop")
    second = EXPECTED - (used if drop else 0)
    probe = _probe(EXPECTED - used, "mb", tx)
    again = probe.replace("mov.u32 %r40, 0;", "").replace(", 0; selp", ", 1; selp") if not tx else ""
    if drop and not tx:  # the next phase expects fewer
        again = _probe(second, "mb", False).replace("mov.u32 %r40, 0;", "").replace("], 0; selp", "], 1; selp")
    elif not tx:
        again = ""
    dests = ["b32", "b32"] if after else ["b32"]
    local = ".shared .align 8 .b64 mb;"
    if not remote:
        body = (
            f"setp.ne.u32 %p2, %me, 0; @%p2 bra "
            f"DONE;\n{init}\n{text}\n{after}\n{probe}\n{again}\nst.global.b32 [%out], %r40;\nDONE:"
        )
        return Form(opcode, text, body, [], dests, row.key, local=local, threads=32)
    body = (
        f"mov.u32 %r5, %tid.x; mov.u32 %r61, %cluster_ctarank; setp.ne.u32 %p2, %r5, 0; setp.ne.u32 %p3, "
        f"%r61, 0; or.pred %p4, %p2, %p3;\n@%p4 bra L1; {init} L1: {_ALL}\n"
        f"not.pred %p3, %p3; or.pred %p5, %p2, %p3; @%p5 bra L2; mov.u32 %r60, mb; mov.u32 %r63, 0; "
        f"mapa.shared::cluster.u32 %r62, %r60, %r63; {text} L2: {_ALL}\n"
        f"@%p4 bra L3; {probe}\n{again}\nst.global.b32 [%out], %r40; L3: {_ALL}"
    )
    return Form(opcode, text, body, [], ["b32"], row.key, local=local, threads=32, blocks=2, cluster=2)


def _waits(opcode: str, row: Row, what: str) -> Form | None:
    """Waiting: all threads of a block arrive, wait for the phase, and read what others wrote before."""
    if what == "pending_count":
        text = f"{opcode} %r40, %d40;"
        body = (
            f"setp.ne.u32 %p2, %me, 0; @%p2 bra DONE; mbarrier.init.shared.b64 [mb], 9; "
            f"mbarrier.arrive.shared.b64 %d40, [mb]; {text} st.global.b32 [%out], %r40;\nDONE:"
        )
        return Form(opcode, text, body, [], ["b32"], row.key, local=".shared .align 8 .b64 mb;", threads=32)
    state = "0" if "parity" in what else "%d40"
    text = f"{opcode} %p1, [mb], {state};"
    body = (
        "ld.global.b32 %r0, [%in]; mov.u32 %r1, sm; mad.lo.u32 %r2, %me, 4, %r1; setp.ne.u32 %p2, %me, 0; "
        "@%p2 bra L1; mbarrier.init.shared.b64 [mb], 256; L1: bar.sync 0;\n"
        f"st.shared.b32 [%r2], %r0; mbarrier.arrive.shared.b64 %d40, [mb];\nL2: {text} @!%p1 bra L2;\n"
        "xor.b32 %r3, %me, 77; mad.lo.u32 %r2, %r3, 4, %r1; ld.shared.b32 %r4, [%r2]; st.global.b32 [%out], %r4;"
    )
    return Form(
        opcode, text, body, ["b32"], ["b32"], row.key, local=".shared .align 8 .b64 mb; .shared .align 16 .b8 sm[1024];"
    )


# --------------------------------------------------------------------------- copies


def _own(to: str = "%r60") -> str:
    return f"mov.u32 %t2, %tid.x; mov.u32 {to}, sm; mad.lo.u32 {to}, %t2, {PART}, {to};"


_ZERO = " ".join([f"mov.u64 %d52, {0x1111111111111111}; st.shared.b64 [%r60+{k}], %d52;" for k in range(0, PART, 8)])
_BACK = " ".join([f"ld.shared.b64 %d52, [%r60+{k}]; st.global.b64 [%mem+{k}], %d52;" for k in range(0, PART, 8)])
_SHARED = f".shared .align 128 .b8 sm[{PART * 256}];"


def _copy(opcode: str, row: Row, mods: list[str], rng: random.Random) -> Form:
    """cp.async: the copied bytes, after the wait."""
    if row.operands and row.operands[0].role == "m":
        size = 16 if "cg" in mods else rng.choice([4, 8, 16])
        texts = ["[%r60+16]", "[%mem+16]", str(size)]
        lines = []
        hint = "createpolicy.fractional.L2::evict_last.b64 %d50, 1.0;" if "L2::cache_hint" in mods else ""
        sources: list[str] = []
        if any(s.role == "ps" for s in row.operands):
            lines.append("ld.global.b32 %r0, [%in]; and.b32 %r0, %r0, 1; setp.ne.u32 %p0, %r0, 0;")
            texts.append("%p0")
            sources = ["b32"]
        elif rng.random() < 0.6:
            lines.append(
                f"ld.global.b32 %r0, [%in]; and.b32 %r0, %r0, {size - 1}; "
                f"{'add.u32 %r0, %r0, 1;' if rng.random() < 0.5 else ''}"
            )
            texts.append("%r0")
            sources = ["b32"]
        if hint:
            texts.append("%d50")
        text = f"{opcode} {', '.join(texts)};"
        body = "\n".join([_own(), _ZERO, hint, *lines, text, "cp.async.wait_all;", _BACK])
        return Form(opcode, text, body, sources, [], row.key, local=_SHARED, memory="b8")
    operand = " 0" if row.operands else ""
    text = f"{opcode}{operand};"
    commit = "" if "commit" in opcode else "cp.async.commit_group;"
    rest = "cp.async.wait_group 0;" if "commit" in opcode else ""
    body = "\n".join([_own(), _ZERO, "cp.async.ca.shared.global [%r60], [%mem+32], 16;", commit, text, rest, _BACK])
    return Form(opcode, text, body, [], [], row.key, local=_SHARED, memory="b8")


def _copies_arrive(opcode: str, row: Row, mods: list[str]) -> Form:
    """The barrier's phase completes when every thread's copies are done."""
    text = f"{opcode} [mb];"
    arrive = "" if "noinc" in mods else "mbarrier.arrive.shared.b64 %d40, [mb];"
    body = (
        f"{_own()} {_ZERO}\nsetp.ne.u32 %p2, %me, 0; @%p2 bra L1; mbarrier.init.shared.b64 [mb], 256; L1: bar.sync 0;\n"
        f"cp.async.ca.shared.global [%r60], [%mem+32], 16; {text} {arrive}\nL2: "
        f"mbarrier.test_wait.parity.shared.b64 %p1, [mb], 0; @!%p1 bra L2;\n{_BACK}"
    )
    return Form(opcode, text, body, [], [], row.key, local=f"{_SHARED} .shared .align 8 .b64 mb;", memory="b8")


def _leader(body: str, number: int) -> str:
    return f"@%p2 bra L{number};\n{body}\nL{number}: bar.sync 0;"


def _bulk(opcode: str, row: Row, mods: list[str], types: tuple[str, ...]) -> Form | None:
    """Bulk copies by one thread of a block of 32: 2 KiB between the third buffer and shared memory."""
    n = 32 * PART
    mods = [m for m in mods if m not in ("", "weak")]  # the code below looks at the spaces by position
    hint = "L2::cache_hint" in mods
    policy = "createpolicy.fractional.L2::evict_last.b64 %d50, 1.0;" if hint else ""
    tail = ", %d50" if hint else ""
    load = " ".join([f"ld.global.b64 %d52, [%mem+{k}]; st.shared.b64 [%r60+{k}], %d52;" for k in range(0, PART, 8)])
    head = (
        f"{_own()} setp.ne.u32 %p2, %t2, 0; {policy} mov.u32 %r63, sm; mov.u32 %r64, so; mad.lo.u32 %r65, %t2, "
        f"{PART}, %r64;"
    )
    local = (
        f".shared .align 128 .b8 sm[{n}]; .shared .align 128 .b8 so[{n}]; .shared .align 8 .b64 mb; .reg .b32 %r<70>;"
    ).replace(".reg .b32 %r<70>;", ".reg .b32 %r64, %r65, %r66;")
    kind = types[0] if types else "b8"
    if row.name in ("cp.async.bulk.commit_group", "cp.async.bulk.wait_group", "cp.async.bulk.prefetch"):
        operands = {"cp.async.bulk.wait_group": " 0", "cp.async.bulk.prefetch": f" [%mem], {n}{tail}"}
        text = f"{opcode}{operands.get(row.name, '')};"
        copy = f"cp.async.bulk.global.shared::cta.bulk_group [%mem], [%r63], {n};"
        commit = "" if "commit" in opcode else "cp.async.bulk.commit_group;"
        wait = "cp.async.bulk.wait_group 0;"
        flip = " ".join(
            [
                f"ld.global.b64 %d52, [%mem+{k}]; not.b64 %d52, %d52; st.shared.b64 [%r60+{k}], %d52;"
                for k in range(0, PART, 8)
            ]
        )
        if "prefetch" in opcode:
            body = f"{head} {_leader(text, 1)} ld.global.b32 %r40, [%mem]; st.global.b32 [%out], %r40;"
            return Form(opcode, text, body, [], ["b32"], row.key, local=local, memory="b8", threads=32)
        body = (
            f"{head} {flip} {_FENCE} bar.sync 0; {_leader(f'{copy} {commit} {text} {wait}', 1)} ld.global.b32 "
            f"%r40, [%mem]; st.global.b32 [%out], %r40;"
        )
        return Form(opcode, text, body, [], ["b32"], row.key, local=local, memory="b8", threads=32)
    if mods[:1] == ["global"]:
        extra = ", 0x5555" if "cp_mask" in mods else ""
        text = f"{opcode} [%mem], [%r63], {n}{tail}{extra};"
        fill = " ".join(
            [
                f"ld.global.b64 %d52, [%mem+{(k + 24) % PART}]; st.shared.b64 [%r60+{k}], %d52;"
                for k in range(0, PART, 8)
            ]
        )
        body = (
            f"{head} {fill} {_FENCE} bar.sync 0; "
            f"{_leader(f'{text} cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;', 1)}"
        )
        return Form(opcode, text, body, [], [], row.key, local=local, memory=kind, threads=32)
    if mods[:2] == ["shared::cluster", "shared::cta"]:
        return _bulk_remote(opcode, row, kind, head, local, load, n)
    mask = ", %h1" if "multicast::cluster" in mods else ""
    cluster = 2 if mods[0] == "shared::cluster" else 1
    text = f"{opcode} [%r64], [%mem], {n}, [mb]{mask}{tail};"
    init = (
        f"mbarrier.init.shared.b64 [mb], 1; fence.mbarrier_init.release.cluster; "
        f"mbarrier.arrive.expect_tx.shared.b64 %d40, [mb], {n};"
    )
    mine = (
        "mov.u16 %h1, 1; mov.u32 %r61, %cluster_ctarank; cvt.u16.u32 %h2, %r61; shl.b16 %h1, %h1, %r61;" if mask else ""
    )
    wait = "LW: mbarrier.try_wait.parity.shared.b64 %p1, [mb], 0; @!%p1 bra LW;"
    back = " ".join(
        [
            f"ld.shared.b64 %d52, [%r65+{k}]; not.b64 %d52, %d52; st.global.b64 [%mem+{k}], %d52;"
            for k in range(0, PART, 8)
        ]
    )
    body = (
        f"{head} {_leader(init, 1)} {mine} {_leader(text, 2)} {wait} bar.sync 0; {back} {_ALL if cluster > 1 else ''}"
    )
    return Form(
        opcode, text, body, [], [], row.key, local=local, memory=kind, threads=32, blocks=cluster, cluster=cluster
    )


def _bulk_remote(opcode: str, row: Row, kind: str, head: str, local: str, load: str, n: int) -> Form:
    """From one block's shared memory to its neighbour's, whose barrier gets the bytes."""
    own = " ".join(
        [f"ld.global.b64 %d52, [%mem+{(k + 16) % PART}]; st.shared.b64 [%r65+{k}], %d52;" for k in range(0, PART, 8)]
    )
    init = (
        f"mbarrier.init.shared.b64 [mb], 1; fence.mbarrier_init.release.cluster; "
        f"mbarrier.arrive.expect_tx.shared.b64 %d40, [mb], {n};"
    )
    text = f"{opcode} [%r62], [%r63], {n}, [%r66];"
    remote = (
        "mov.u32 %r61, %cluster_ctarank; xor.b32 %r61, %r61, 1; mapa.shared::cluster.u32 %r62, %r64, %r61; "
        "mov.u32 %r59, mb; mapa.shared::cluster.u32 %r66, %r59, %r61;"
    )
    wait = "LW: mbarrier.try_wait.parity.shared.b64 %p1, [mb], 0; @!%p1 bra LW;"
    back = " ".join([f"ld.shared.b64 %d52, [%r65+{k}]; st.global.b64 [%mem+{k}], %d52;" for k in range(0, PART, 8)])
    body = (
        f"{head} {load} {own} {_leader(init, 1)} {_FENCE} {_ALL} {remote} {_leader(text, 2)} {wait} bar.sync "
        f"0; {back} {_ALL}"
    )
    return Form(opcode, text, body, [], [], row.key, local=local, memory=kind, threads=32, blocks=2, cluster=2)


def _remote(opcode: str, row: Row, mods: list[str], types: tuple[str, ...]) -> Form | None:
    """st.async and red.async: each thread of one block writes to the other's memory, whose barrier counts the bytes."""
    kind = types[0]
    if "mbarrier::complete_tx::bytes" not in mods:
        r = "%d0" if BITS[kind] == 64 else "%h0" if BITS[kind] < 32 else "%r0"
        bits = BITS[kind]
        text = f"{opcode} [%mem], {r};"
        body = f"ld.global.{'u8' if bits == 8 else f'b{bits}'} {r}, [%in]; {text}"
        return Form(opcode, text, body, [kind], [], row.key, memory=kind)
    n = int(next((m[1] for m in mods if m in ("v2", "v4")), "1"))
    size = BITS[kind] // 8
    r = "d" if size == 8 else "r"
    regs = [f"%{r}{k}" for k in range(n)]
    loads = " ".join([f"ld.global.b{size * 8} {x}, [%in+{k * 8}];" for k, x in enumerate(regs)])
    value = "{" + ", ".join(regs) + "}" if n > 1 else regs[0]
    text = f"{opcode} [%r62], {value}, [%r66];"
    fill = " ".join([f"ld.global.b64 %d52, [%mem+{k}]; st.shared.b64 [%r60+{k}], %d52;" for k in range(0, PART, 8)])
    body = (
        f"{loads} {_own()} {fill} setp.ne.u32 %p2, %t2, 0; "
        + _leader(
            (
                f"mbarrier.init.shared.b64 [mb], 1; fence.mbarrier_init.release.cluster; "
                f"mbarrier.arrive.expect_tx.shared.b64 %d40, [mb], {32 * size * n};"
            ),
            1,
        )
        + f" {_ALL} mov.u32 %r61, %cluster_ctarank; xor.b32 %r61, %r61, 1; mapa.shared::cluster.u32 %r62, "
        f"%r60, %r61; mov.u32 %r59, mb; mapa.shared::cluster.u32 %r66, %r59, %r61;\n"
        f"{text}\nLW: mbarrier.try_wait.parity.shared.b64 %p1, [mb], 0; @!%p1 bra LW; {_BACK} {_ALL}"
    )
    local = f".shared .align 128 .b8 sm[{32 * PART}]; .shared .align 8 .b64 mb; .reg .b32 %r66;"
    return Form(opcode, text, body, [kind] * n, [], row.key, local=local, memory=kind, threads=32, blocks=2, cluster=2)


def _bulk_store(opcode: str, row: Row) -> Form:
    """st.bulk: zeros."""
    generic = "shared" not in opcode
    text = f"{opcode} [{'%d51' if generic else '%r60'}+16], %d0, 0;"
    fill = " ".join([f"ld.global.b64 %d52, [%mem+{k}]; st.shared.b64 [%r60+{k}], %d52;" for k in range(0, PART, 8)])
    address = "cvt.u64.u32 %d51, %r60; cvta.shared.u64 %d51, %d51;" if generic else ""
    body = f"{_own()} {fill} {address} mov.u64 %d0, 24; {text} {_BACK}"
    return Form(opcode, text, body, [], [], row.key, local=_SHARED, memory="b8")
