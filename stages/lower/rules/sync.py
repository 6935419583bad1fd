"""Barriers, fences, warp-wide operations, asynchronous copies, sleep."""

from __future__ import annotations

from ir_format import ptx
from ir_format.model import PT, RZ, AttrValue, Imm, Mem, Name, Reg
from ir_format.ptx import PtxInst
from stages.lower.builder import Builder, Rule
from stages.lower.memory import fence, invalidate, wide_address, with_policy
from stages.lower.rules import masked
from stages.lower.rules.bulk import bulk, forget_map
from stages.lower.rules.cluster import arrive_copies
from stages.lower.rules.integer import Val, add64, compare, logic, negated
from stages.lower.spaces import shared_place
from stages.lower.waterfall import definitions

# --------------------------------------------------------------------------- CTA barriers


def bar(b: Builder, inst: PtxInst) -> None:
    """bar and barrier[.cta]: sync, arrive, red; bar.warp.sync; barrier.cluster."""
    if inst.has("warp"):
        warpsync(b, mask_of(b, inst.operands[0]), {"fence": 1, "coop": 1})
        return
    if inst.has("cluster"):
        cluster_barrier(b, inst)
        return
    ops = list(inst.operands)
    red = next((m for m in ("popc", "and", "or") if inst.has("red") and inst.has(m)), "")
    to = ops.pop(0) if red else None
    guard = b.src(ops.pop(), "pred") if red else None
    which = b.src(ops[0], "u32")
    count = b.src(ops[1], "u32") if len(ops) > 1 else None
    _note_barrier(b, which)
    if type(which) is Reg and count is not None:
        t, u = b.r(), b.r()
        b.emit("SHF.L.U32", t, (b.in_reg(count), Imm("I", 16), RZ))
        logic(b, u, 0xF8, t, Imm("I", 15), which)
        args: tuple[Val, ...] = (u, u)
    else:
        args = (which,) if count is None else (which, count)
    defer = ".DEFER_BLOCKING" if b.has("bar-defers") else ""
    if red:
        b.emit(f"BAR.RED.{red.upper()}{defer}", (), (*args, guard), attrs={"warp": 1})  # type: ignore[arg-type]
        assert to is not None
        if red == "popc":
            b.emit("B2R.RESULT", (b.dst(to), PT), ())
        else:
            b.emit("B2R.RESULT", (RZ, b.dst(to, "pred")), ())
    elif inst.has("arrive"):
        b.emit("BAR.ARV", (), args, attrs={"warp": 1})
    else:
        b.emit(f"BAR.SYNC{defer}", (), args, attrs={"warp": 1})


def _note_barrier(b: Builder, which: Val) -> None:
    n = which.value + 1 if type(which) is Imm else 16
    old = b.ctx.unit.attrs.get("barriers", 0)
    if isinstance(old, int):
        b.ctx.unit.attrs["barriers"] = max(old, min(n, 16))


def warpsync(b: Builder, mask: Val, attrs: dict[str, AttrValue] | None = None) -> None:
    """Wait for the threads of a mask. ``attrs`` has ``fence`` if the wait also orders memory."""
    if type(mask) is Imm and mask.value == 0xFFFFFFFF and b.has("warpsync-all"):
        b.emit("WARPSYNC.ALL", attrs=attrs)
    else:
        b.emit("WARPSYNC", (), (b.in_reg(mask) if b.has("warpsync-all") else mask,), attrs=attrs)


def mask_of(b: Builder, x: ptx.Operand) -> Val:
    """The mask of a warp-wide instruction. A register that holds a number counts as this number, as in ptxas (nvcc
    writes masks so up to sm_90)."""
    if type(x) is ptx.Reg:
        if b.definitions is None:
            b.definitions = definitions(b.pf.body)
        inst = b.definitions.get(x.index)
        if inst is not None and inst.op == "mov" and len(inst.operands) == 2:
            number = inst.operands[1]
            if type(number) is ptx.Imm:
                return b.const(number.value, "b32")
    return b.src(x, "b32")


def members(b: Builder, inst: PtxInst, index: int) -> masked.Members:
    """Make the threads of a warp-wide instruction converged. For a full mask,
    :mod:`stages.lower.convergence.converge` does so (attrs ``warp``), because it knows where threads may have diverged.
    For other masks a WARPSYNC is emitted here. The register of such a mask is kept up to the instruction, because
    debuggers read it there (attrs ``coop``)."""
    if not inst.has("sync") or len(inst.operands) <= index:
        return {"attrs": {"coop": 1}, "uses": ()}
    mask = mask_of(b, inst.operands[index])
    if type(mask) is Imm and mask.value == 0xFFFFFFFF:
        return {"attrs": {"coop": 1, "warp": 1}, "uses": ()}
    noted = b.has("warpsync-all")
    if noted:
        mask = b.in_reg(mask)
    warpsync(b, mask)
    return {"attrs": {"coop": 1}, "uses": (mask,) if noted else ()}


def cluster_barrier(b: Builder, inst: PtxInst) -> None:
    """barrier.cluster: UCGABAR if the launch has clusters, else the CTA barrier 0 (measured on sm_90). A kernel whose
    directives ask for clusters has them."""
    b.need(inst, "clusters")
    if {"explicitcluster", "reqnctapercluster"} & b.ctx.unit.attrs.keys():
        _of_clusters(b, inst)
        return
    from stages.lower.abi.frame import load_const

    with b.region():
        flag = b.r()
        load_const(b, flag, 0, b.ctx.target.bank0.is_explicit_cluster)
        p, _ = compare(b, "EQ", "u32", flag, Imm("I", 1))
        other, end = b.new_block(), b.new_block()
        wait = inst.has("wait")
        if not wait and not inst.has("relaxed"):
            fence(b, "ALL", "gpu")
        b.branch(other, b.not_(p))
        _of_clusters(b, inst, fenced=True)
        b.branch(end)
        b.place(other)
        if wait:
            _note_barrier(b, Imm("I", 0))
            b.emit("BAR.SYNC.DEFER_BLOCKING", (), (Imm("I", 0),))
        b.place(end)


def _of_clusters(b: Builder, inst: PtxInst, fenced: bool = False) -> None:
    wait, orders = inst.has("wait"), not inst.has("relaxed")
    if not wait and orders and not fenced:
        fence(b, "ALL", "gpu")
    b.emit("UCGABAR_WAIT" if wait else "UCGABAR_ARV")
    if wait and orders:
        invalidate(b)


# --------------------------------------------------------------------------- fences


def _alias(b: Builder) -> None:
    """fence.proxy.alias with the system scope. From sm_80 on, ptxas tests a flag of the launch that tells whether the
    GPU scope suffices; the system scope always does."""
    b.emit("MEMBAR.SC.SYS" if b.has("fence-alias-system") else "MEMBAR.SC.GPU")
    invalidate(b)


def membar(b: Builder, inst: PtxInst) -> None:
    if inst.has("alias"):
        _alias(b)
        return
    scope = next(({"cta": "cta", "gl": "gpu", "sys": "sys"}[m] for m in inst.mods if m in ("cta", "gl", "sys")), "")
    if not scope:
        raise b.unsupported(inst)
    _fenced(b, "SC", scope)


def fence_rule(b: Builder, inst: PtxInst) -> None:
    if inst.has("tensormap::generic"):
        b.need(inst, "tensor-maps")
        if inst.has("acquire"):
            forget_map(b, inst)
        else:
            fence(b, "ALL", "sys" if inst.has("sys") else "gpu")
        return
    if inst.has("alias"):
        if inst.has("release"):  # of reads too, for which ptxas only waits
            fence(b, "ALL", "sys")
        elif inst.has("acquire"):
            invalidate(b)
            if inst.has("fabric::generic") or inst.has("fabric::fabric"):
                b.emit("FENCE.VIEW.ASYNC.G")
        else:
            _alias(b)
        return
    special = _FENCES.get(".".join(inst.mods))
    if special is not None:
        b.need(inst, "async-proxy")
        for op in special:
            b.emit(op)
        return
    scope = next((m for m in inst.mods if m in ("cta", "cluster", "gpu", "sys")), "")
    if not scope or any(m not in ("sc", "acq_rel", "acquire", "release", scope) for m in inst.mods):
        raise b.unsupported(inst)
    if inst.has("release"):
        fence(b, "ALL", scope)
    else:  # acquire too: ptxas omits the MEMBAR there, but our later stages must see a fence
        _fenced(b, "SC" if inst.has("sc") else "ALL", scope)


# ptxas's code for the other fences (measured). A fence without code orders accesses that the hardware keeps in order.
_FENCES: dict[str, tuple[str, ...]] = {
    "proxy.async": ("MEMBAR.ALL.GPU", "FENCE.VIEW.ASYNC.S"),
    "proxy.async.shared::cluster": ("MEMBAR.ALL.GPU", "FENCE.VIEW.ASYNC.S"),
    "proxy.async.shared::cta": ("MEMBAR.ALL.CTA", "FENCE.VIEW.ASYNC.S"),
    "proxy.async.global": ("FENCE.VIEW.ASYNC.G",),
    "proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster": (
        "MEMBAR.ALL.CTA",
    ),  # ptxas: nothing, but our later stages must see a fence
    "proxy.async::generic.release.sync_restrict::shared::cta.cluster": ("MEMBAR.ALL.CTA", "FENCE.VIEW.ASYNC.S"),
    "mbarrier_init.release.cluster": ("MEMBAR.ALL.CTA",),
    "acquire.sync_restrict::shared::cluster.cluster": ("MEMBAR.ALL.CTA",),
    "release.sync_restrict::shared::cta.cluster": ("MEMBAR.ALL.CTA",),
}


def _fenced(b: Builder, kind: str, scope: str) -> None:
    fence(b, kind, scope)
    if scope != "cta":
        invalidate(b)


# --------------------------------------------------------------------------- warp-wide


def shfl(b: Builder, inst: PtxInst) -> None:
    mode = next((m.upper() for m in inst.mods if m in ("up", "down", "bfly", "idx")), "")
    to = inst.operands[0]
    d, p = (b.dst(to.first), b.dst(to.second, "pred")) if isinstance(to, ptx.Pair) else (b.dst(to), PT)
    x, n, c = (b.src(o, "b32") for o in inst.operands[1:4])
    if type(n) is Imm:
        n = Imm("I", n.value & 0x1F)
    if type(c) is Imm:
        c = Imm("I", c.value & 0x1F1F)
    b.emit(f"SHFL.{mode}", (p, d), (b.in_reg(x), n, c), **members(b, inst, 4))


def vote(b: Builder, inst: PtxInst) -> None:
    p: Reg = b.src(inst.operands[1], "pred")  # type: ignore[assignment]
    mask = mask_of(b, inst.operands[2]) if inst.has("sync") and len(inst.operands) > 2 else PT
    if masked.varies(mask) and mask != PT:
        who = members(b, inst, 2)
        if inst.has("ballot"):
            b.copy(b.dst(inst.operands[0]), masked.ballot(b, p, mask, who))
        else:
            kind = {"any": "ANY", "all": "ALL", "uni": "EQ"}[next(m for m in inst.mods if m in ("any", "all", "uni"))]
            masked.vote(b, kind, b.dst(inst.operands[0], "pred"), p, mask, who)
        return
    if inst.has("ballot"):
        b.emit("VOTE.ANY", (b.dst(inst.operands[0]), PT), (p,), **members(b, inst, 2))
        return
    kind = {"any": "ANY", "all": "ALL", "uni": "EQ"}[next(m for m in inst.mods if m in ("any", "all", "uni"))]
    b.emit(f"VOTE.{kind}", (RZ, b.dst(inst.operands[0], "pred")), (p,), **members(b, inst, 2))


def activemask(b: Builder, inst: PtxInst) -> None:
    b.emit("VOTE.ANY", (b.dst(inst.operands[0]), PT), (PT,), attrs={"coop": 0})


def match(b: Builder, inst: PtxInst) -> None:
    t = inst.types[0]
    wide = ".U64" if b.bits(t) == 64 else ""
    x = b.in_reg(b.src(inst.operands[1], t), 2 if wide else 1)
    mask = mask_of(b, inst.operands[2])
    to = inst.operands[0]
    if inst.has("any"):
        m = b.r()
        b.emit(f"MATCH.ANY{wide}", m, (x,), **members(b, inst, 2))
        logic(b, b.dst(to), 0xC0, m, mask)
        return
    d, p = (b.dst(to.first), b.dst(to.second, "pred")) if isinstance(to, ptx.Pair) else (b.dst(to), b.p())
    if masked.varies(mask):
        masked.match_all(b, d, p, x, mask, wide, members(b, inst, 2))
        return
    m = b.r()
    q = b.p()
    if b.has("match-all"):
        b.emit(f"MATCH.ALL{wide}", (q, m), (x,), **members(b, inst, 2))
        b.copy(d, m)
        b.copy(p, q)
        return
    b.emit(f"MATCH.ANY{wide}", m, (x,), **members(b, inst, 2))
    v = b.r()
    logic(b, v, 0xC0, m, mask)
    q, _ = compare(b, "EQ", "u32", v, mask)
    b.select(d, mask, Imm("I", 0), q)
    b.copy(p, q)


_REDUX = {
    ("add", "u32"): ".SUM", ("add", "s32"): ".SUM.S32", ("min", "u32"): ".MIN", ("min", "s32"): ".MIN.S32",
    ("max", "u32"): ".MAX",
    ("max", "s32"): ".MAX.S32", ("and", "b32"): "", ("or", "b32"): ".OR", ("xor", "b32"): ".XOR",
}  # fmt: skip


def redux(b: Builder, inst: PtxInst) -> None:
    op = next((m for m in inst.mods if m in ("add", "min", "max", "and", "or", "xor")), "")
    mods = _REDUX.get((op, inst.types[0]))
    if inst.types[0] == "f32" and op in ("min", "max") and b.has("redux-float"):
        name = f"CREDUX.{op.upper()}{'ABS' if inst.has('abs') else ''}.F32{'.NAN' if inst.has('NaN') else ''}"
    elif mods is None:
        raise b.unsupported(inst)
    else:
        name = f"REDUX{mods}"
    b.need(inst, "redux")
    mask = mask_of(b, inst.operands[2])
    if masked.varies(mask):
        x = b.in_reg(b.src(inst.operands[1], inst.types[0]))
        who = members(b, inst, 2)
        masked.redux(
            b,
            name,
            op,
            inst.types[0],
            b.dst(inst.operands[0]),
            x,
            mask,
            who,
            absolute=inst.has("abs"),
            nan=inst.has("NaN"),
        )
        return
    u = b.ur()
    b.emit(name, u, (b.in_reg(b.src(inst.operands[1], inst.types[0])),), **members(b, inst, 2))
    b.copy(b.dst(inst.operands[0]), u)


def elect(b: Builder, inst: PtxInst) -> None:
    b.need(inst, "elect")
    to = inst.operands[0]
    if not isinstance(to, ptx.Pair):
        raise b.unsupported(inst)
    u = b.ur()
    b.emit("ELECT", (b.dst(to.second, "pred"), u), (PT,), **members(b, inst, 1))
    if not isinstance(to.first, ptx.Sink):
        b.copy(b.dst(to.first), u)


# --------------------------------------------------------------------------- asynchronous copies


def cp(b: Builder, inst: PtxInst) -> None:
    """cp.async; bulk copies are in :mod:`stages.lower.rules.bulk`."""
    if inst.has("bulk"):
        bulk(b, inst)
        return
    if inst.has("mbarrier"):
        arrive_copies(b, inst)
        return
    if not inst.has("async"):
        raise b.unsupported(inst)
    b.need(inst, "async-copies")
    if inst.has("commit_group"):
        b.emit("LDGDEPBAR")
    elif inst.has("wait_group") or inst.has("wait_all"):
        n = 0
        if inst.has("wait_group"):
            x = inst.operands[0]
            if not isinstance(x, ptx.Imm):
                raise b.unsupported(inst)
            n = x.value & 63 if x.value < 63 else 63
        else:
            b.emit("LDGDEPBAR")
        b.emit("DEPBAR.LE", (), (Name("N", "SB0"), Imm("I", n)))
    else:
        _copy(b, inst)


def _copy(b: Builder, inst: PtxInst) -> None:
    ops = list(inst.operands)
    policy = ops.pop() if inst.has("L2::cache_hint") else None
    dst = _shared_part(b, inst, inst.operands[0])
    size_op = inst.operands[2]
    if not isinstance(size_op, ptx.Imm) or size_op.value not in (4, 8, 16):
        raise b.unsupported(inst)
    size = size_op.value
    src = inst.operands[1]
    assert isinstance(src, ptx.Addr)
    base: Val = b.src(src.base, "u64")
    at: Mem | None = None
    zfill = ""
    p: Reg = PT
    if len(ops) > 3:
        x = b.src(ops[3], "u32" if not _is_pred(b, ops[3]) else "pred")
        if type(x) is Reg and x.file == "P":
            p = b.not_(x)
        else:  # the unit reads from the end of the source's aligned chunk (ptxas's address arithmetic, measured)
            zfill = ".ZFILL"
            if type(x) is Imm:
                at = wide_address(b, base, src.offset + (size - x.value) % size)
                if x.value == 0:
                    p = b.not_(PT)
            else:
                t, u, moved = b.r(), b.r(2), b.r(2)
                b.emit("IADD3", t, (negated(x), Imm("I", size), RZ))
                logic(b, b.lo_r(u), 0xC0, t, Imm("I", size - 1))
                b.copy(b.hi_r(u), RZ)
                add64(b, moved, base, u)
                p, _ = compare(b, "NE", "u32", x, Imm("I", 0))
                at = wide_address(b, moved, src.offset)
    if at is None:
        at = wide_address(b, base, src.offset)
    if policy is not None:
        at = with_policy(b, at, policy)
    bypass = ".BYPASS" if inst.has("cg") else ""
    ltc = "".join(f".LTC{m[4:]}" for m in inst.mods if m in ("L2::64B", "L2::128B", "L2::256B"))
    width = {4: "", 8: ".64", 16: ".128"}[size]
    b.emit(f"LDGSTS.E{bypass}{ltc}{width}{zfill}", (), (dst, at, p))


def _is_pred(b: Builder, x: ptx.Operand) -> bool:
    return isinstance(x, ptx.NotPred) or (isinstance(x, ptx.Reg) and b.pf.regs[x.index].type == "pred")


def _shared_part(b: Builder, inst: PtxInst, x: ptx.Operand) -> Mem:
    """The shared destination of a copy, as [R + imm]."""
    assert isinstance(x, ptx.Addr)
    if isinstance(x.base, ptx.Sym):
        place, at = shared_place(b, x.base.name, x.base.offset + x.offset)
        return Mem("M", place, None, at)
    base = b.lo(b.src(x.base, "u32"))
    if type(base) is Imm:
        return Mem("M", None, None, base.value + x.offset)
    return Mem("M", base, None, x.offset)  # type: ignore[arg-type]


# --------------------------------------------------------------------------- the rest


def nanosleep(b: Builder, inst: PtxInst) -> None:
    b.emit("NANOSLEEP.WARP" if b.has("nanosleep-warp") else "NANOSLEEP", (), (b.src(inst.operands[0], "u32"),))


def griddep(b: Builder, inst: PtxInst) -> None:
    b.need(inst, "grid-dependencies")
    b.emit("ACQBULK" if inst.has("wait") else "PREEXIT")


def pmevent(b: Builder, inst: PtxInst) -> None:
    x = inst.operands[0]
    if not isinstance(x, ptx.Imm):
        raise b.unsupported(inst)
    b.emit("PMTRIG", (), (Imm("I", x.value & 0xFFFF if inst.has("mask") else 1 << (x.value & 15)),))


RULES: dict[str, Rule] = {
    "bar": bar, "barrier": bar, "membar": membar, "fence": fence_rule, "shfl": shfl, "vote": vote,
    "activemask": activemask, "match": match,
    "redux": redux, "elect": elect, "cp": cp, "nanosleep": nanosleep, "griddepcontrol": griddep, "pmevent": pmevent,
}  # fmt: skip
