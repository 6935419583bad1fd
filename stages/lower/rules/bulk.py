"""Bulk and tensor-map copies, their groups, register counts of warps.

Sequences measured with ptxas 13.0.88 on sm_90a, sm_100a and sm_120a. A bulk instruction executes once per warp,
with its operands in uniform registers, but PTX asks for one copy per thread. So a loop goes over the threads: each
iteration elects one of the remaining threads and moves its values to the uniform registers, and the elected thread
leaves the loop. (ptxas counts the iterations with a second predicate, with the same effect.)
"""

from __future__ import annotations

from collections.abc import Callable

from ir_format import ptx
from ir_format.model import PT, RZ, URZ, Imm, Label, Name, Operand, Reg
from ir_format.ptx import PtxInst, PtxParam
from ir_format.typed import Final
from stages.lower.abi.calls import call_driver
from stages.lower.abi.frame import load_const
from stages.lower.builder import Builder, Rule
from stages.lower.memory import invalidate
from stages.lower.rules.integer import Val, add64, compare
from stages.lower.spaces import shared_place, to_generic
from stages.lower.uniform_operands import Uniform

_HINT: Final = "L2::cache_hint"
#: Masks of CTAs in halves, and in words.
_MANY: Final = ("multicast::cluster", "multicast::cluster::16b")
_MANY_32: Final = "multicast::cluster::32b"


def _l2(b: Builder, inst: PtxInst, unit: str) -> str:
    """The prefetch of a unit to the second cache, or the change of its priority there (to last, to normal)."""
    what = "DM" if inst.op == "applypriority" else "PM" if inst.has("L2::evict_last") else "PF"
    if what != "PF":
        b.need(inst, "prefetch-l2-control")
    return f"{unit}L2CCTL.{what}" if b.has("prefetch-l2-control") else f"{unit}PF.L2"


def mask_of_blocks(b: Builder, inst: PtxInst, ops: list[ptx.Operand]) -> Val | None:
    """The mask of a multicast, the last operand left."""
    if inst.has(_MANY_32):
        return b.src(ops.pop(), "u32")
    return b.src(ops.pop(), "u16") if any(inst.has(m) for m in _MANY) else None


#: What a copy looks for, and reports to the barrier (PTX 9.4).
_REPORTS: Final = {
    "per_16bytes::80000000": ".VALIDCHK_80000000", "per_16bytes::8000": ".VALIDCHK_XXXX8000",
    "per_16bytes::80": ".VALIDCHK_XXXXXX80", "per_16bytes::8": ".VALIDCHK_XXXXXXX8",
    "per_element::ff": ".VALIDCHK_EVERY_FF",
}  # fmt: skip


def _signalled(inst: PtxInst) -> str:
    """Where a copy signals, and what it reports."""
    start = "mbarrier::report::validity::"
    what = next((_REPORTS[m.removeprefix(start)] for m in inst.mods if m.startswith(start)), "")
    return (".2CTA" if inst.has("cta_group::2") else "") + what


REDUCTIONS: Final = {
    "add": "ADD",
    "min": "MIN",
    "max": "MAX",
    "inc": "INC",
    "dec": "DEC",
    "and": "AND",
    "or": "OR",
    "xor": "XOR",
}
#: Scopes of the accesses of a copy that is ordered (measured).
_SCOPES: Final = {"cta": ".STRONG.SM", "cluster": ".STRONG.GPU", "gpu": ".STRONG.GPU", "sys": ".STRONG.SYS"}
_TYPES = {
    "u32": "", "b32": "", "s32": ".S32", "u64": ".U64", "b64": ".U64", "s64": ".S64", "f16": ".F16.RN",
    "bf16": ".BF16.RN", "f32": ".F32.FTZ.RN", "f64": ".F64.RN",
}  # fmt: skip

# --------------------------------------------------------------------------- operands


def shared_word(b: Builder, inst: PtxInst, x: ptx.Operand) -> Reg:
    """The 32-bit address of an operand in the CTA's or the cluster's shared memory."""
    if not isinstance(x, ptx.Addr):
        raise b.unsupported(inst, "address")
    base: Val
    if isinstance(x.base, ptx.Sym) and b.ctx.space_of(b, x) != "shared":
        return b.in_reg(b.lo(wide_word(b, inst, x)))  # what is left of a generic address (measured)
    if isinstance(x.base, ptx.Sym):
        place, at = shared_place(b, x.base.name, x.base.offset + x.offset)
        base = RZ if place is None else place
    else:
        at = x.offset
        base = b.lo(b.src(x.base, "u32"))
    if type(base) is Imm:
        return b.in_reg(Imm("I", base.value + at & 0xFFFFFFFF))
    if not at:
        return b.in_reg(base)
    d = b.r()
    b.emit("IADD3", d, (base, Imm("I", at & 0xFFFFFFFF), RZ))
    return d


def wide_word(b: Builder, inst: PtxInst, x: ptx.Operand) -> Reg:
    """The 64-bit address of an operand in global memory (its generic address is the same), or the generic one."""
    if not isinstance(x, ptx.Addr):
        raise b.unsupported(inst, "address")
    if isinstance(x.base, ptx.Sym):
        base: Val = b.ctx.address_of(b, ptx.Sym(x.base.name, x.base.offset + x.offset))
        space = b.ctx.space_of(b, x)
        if space != "global":
            base = to_generic(b, space, base)
    else:
        base = b.src(x.base, "u64")
        if x.offset:
            d = b.r(2)
            add64(b, d, base, Imm("I", x.offset & (1 << 64) - 1))
            base = d
    return b.in_reg(base, 2)


def pack16(b: Builder, low: Val, high: Val | None) -> Val:
    """Two halves in a word."""
    if type(low) is Imm and (high is None or type(high) is Imm):
        return Imm("I", low.value & 0xFFFF | ((high.value & 0xFFFF) << 16 if high is not None else 0))
    d = b.r()
    b.emit("PRMT", d, (b.in_reg(low), Imm("I", 0x5410), RZ if high is None else b.in_reg(high)))
    return d


def each_thread(b: Builder, make: Callable[[Uniform], None], warp_once: bool = False) -> None:
    """Emit an instruction in a loop over the active threads. With ``warp_once`` the warp executes it once: its
    operands are uniform."""
    with b.region():
        if warp_once:
            make(Uniform(b, None))
            return
        again = b.new_block()
        b.place(again)
        turn = b.p()
        b.emit("ELECT", (turn, URZ), (PT,))
        make(Uniform(b, turn))
        b.branch(again, b.not_(turn))


def _policy(b: Builder, inst: PtxInst, ops: list[ptx.Operand]) -> Reg | None:
    """The cache policy, the last operand left."""
    return b.in_reg(b.src(ops.pop(), "b64"), 2) if inst.has(_HINT) else None


def _finish(b: Builder, inst: PtxInst, ops: list[ptx.Operand], want: int) -> None:
    if len(ops) != want:
        raise b.unsupported(inst, "operands")


# --------------------------------------------------------------------------- shared memory of another CTA on sm_120
#
# There the copy unit writes only to its own CTA. Functions of the driver write to the rest of the cluster (measured:
# names, arguments, and the test of the address).

_WORD = PtxParam("w", "b32", 4, 4)
_LONG = PtxParam("d", "b64", 8, 8)
_HALVES = PtxParam("h", "b8", 4, 8)  # three halves, on the stack


def here_or_elsewhere(
    b: Builder, low: Reg, here: Callable[[], None], name: str, params: list[PtxParam], args: list[Val]
) -> None:
    """``here`` if ``low`` is in the own CTA's shared memory, else a call of the driver's function."""
    with b.region():
        rank, owner = b.r(), b.r()
        b.emit("S2R", rank, (Name("N", "SR_CgaCtaId"),))
        b.emit("SHF.R.U32.HI", owner, (RZ, Imm("I", 24), low))
        own, _ = compare(b, "EQ", "u32", owner, rank)
        _here_or_call(b, own, here, f"{name}unicast", params, args)


def alone_or_everywhere(
    b: Builder, mask: Val, here: Callable[[], None], name: str, params: list[PtxParam], args: list[Val]
) -> None:
    """``here`` if there is no cluster and the mask names the only CTA, else a call of the driver's function for several
    CTAs."""
    with b.region():
        cluster = b.r()
        load_const(b, cluster, 0, b.ctx.target.bank0.is_explicit_cluster)
        none, _ = compare(b, "NE", "u32", cluster, Imm("I", 1))
        alone, _ = compare(b, "EQ", "u32", mask, Imm("I", 1), "AND", none)
        _here_or_call(b, alone, here, f"{name}multicast", params, args)


def _here_or_call(
    b: Builder, test: Reg, here: Callable[[], None], name: str, params: list[PtxParam], args: list[Val]
) -> None:
    """``here`` if the test holds, else a call of the driver's function."""
    other, end = b.new_block(), b.new_block()
    b.branch(other, b.not_(test))
    here()
    b.branch(end)
    b.place(other)
    call_driver(b, f"__cuda_syscall_cp_async_bulk_{name}", params, args)
    b.place(end)


def _wide(b: Builder, x: Reg) -> Reg:
    """A shared address as 64 bits."""
    d = b.r(2)
    b.copy(b.lo_r(d), x)
    b.copy(b.hi_r(d), RZ)
    return d


def _hint(policy: Reg | None) -> Val:
    return Imm("I", 0) if policy is None else policy


# --------------------------------------------------------------------------- copies without a map


_FORMS: Final[dict[tuple[str, ...], str]] = {
    ("shared::cluster", "global"): "S.G", ("shared::cta", "global"): "S.G", ("global", "shared::cta"): "G.S",
    ("shared::cluster", "shared::cta"): "S.S",
}  # fmt: skip


def _direction(b: Builder, inst: PtxInst) -> str:
    form = _FORMS.get(tuple(m for m in inst.mods if m in ("global", "shared::cta", "shared::cluster")))
    if form is None:
        raise b.unsupported(inst)
    return form


def _size(b: Builder, inst: PtxInst, x: ptx.Operand, mask: Val | None) -> Val:
    """Units of 16 bytes, with a mask above."""
    n = b.src(x, "u32")
    if type(n) is Imm:
        return pack16(b, Imm("I", n.value >> 4), mask)
    t = b.r()
    b.emit("SHF.R.U32.HI", t, (RZ, Imm("I", 4), b.in_reg(n)))
    return pack16(b, t, mask)


def _bulk(b: Builder, inst: PtxInst) -> None:
    """cp.async.bulk and cp.reduce.async.bulk."""
    form = _direction(b, inst)
    ops = list(inst.operands)
    mask: Val | None = None
    if inst.has("cp_mask"):
        mask = b.src(ops.pop(), "u16")
    policy = _policy(b, inst, ops)
    many = mask_of_blocks(b, inst, ops)
    mask = mask if many is None else many
    if inst.has("ignore_oob"):  # counts of bytes that need not be copied: they are, as in ptxas's code
        del ops[3:5]
    _finish(b, inst, ops, 3 if form == "G.S" else 4)
    by_driver = b.has("cluster-copies-called") and many is not None
    wide = inst.has(_MANY_32)
    size = _size(b, inst, ops[2], None if by_driver or wide else mask)
    sizes = [size, mask] if wide and mask is not None else [size]  # the mask is a word of its own
    order = next((_SCOPES[m] for m in inst.mods if m in _SCOPES), "")
    if inst.has("reduce"):
        t = inst.types[0]
        what = next(m for m in inst.mods if m in REDUCTIONS)
        name = f"UBLKRED.{form}.{REDUCTIONS[what]}{'.F32.RN' if t == 'f32' else _TYPES[t]}"
        order = order or (".STRONG.SYS" if inst.has("multimem") else "")
    else:
        name = (
            f"UBLKCP.{form}"
            + (".MULTICAST32" if wide else ".MULTICAST" if many is not None and not by_driver else "")
            + (".DST_G_BYTE_MASK" if inst.has("cp_mask") else "")
        )
    name += order + _signalled(inst)
    if form == "G.S":
        to, src = wide_word(b, inst, ops[0]), shared_word(b, inst, ops[1])
        each_thread(b, lambda u: _put(b, name, (u.at_pair(to), u.at([src]), u.block([size]), *u.policy(policy))))
        return
    low, bar = shared_word(b, inst, ops[0]), shared_word(b, inst, ops[3])
    if form == "S.G":
        src = wide_word(b, inst, ops[1])

        def here() -> None:
            each_thread(
                b, lambda u: _put(b, name, (u.at([low, bar]), u.at_pair(src), u.block(sizes), *u.policy(policy)))
            )

        if b.has("cluster-copies-called") and inst.has("shared::cluster"):
            bytes_ = b.in_reg(b.src(ops[2], "u32"))
            if mask is not None:
                word = b.ext(mask, "u16")
                alone_or_everywhere(
                    b,
                    word,
                    here,
                    "",
                    [_LONG, _LONG, _WORD, _WORD, _LONG, _LONG],
                    [_wide(b, low), src, bytes_, word, _wide(b, bar), _hint(policy)],
                )
                return
            args: list[Val] = [_wide(b, low), src, bytes_, _wide(b, bar), _hint(policy)]
            here_or_elsewhere(b, low, here, "", [_LONG, _LONG, _WORD, _LONG, _LONG], args)
        else:
            here()
    else:
        src = shared_word(b, inst, ops[1])
        each_thread(b, lambda u: _put(b, name, (u.at([low, bar]), u.at([src]), u.block([size]), *u.policy(policy))))


def _put(b: Builder, name: str, srcs: tuple[Operand, ...]) -> None:
    b.emit(name, (), srcs)


def _prefetch(b: Builder, inst: PtxInst) -> None:
    """cp.async.bulk.prefetch.L2."""
    ops = list(inst.operands)
    policy = _policy(b, inst, ops)
    _finish(b, inst, ops, 2)
    at = wide_word(b, inst, ops[0])
    size = _size(b, inst, ops[1], None)
    each_thread(b, lambda u: _put(b, _l2(b, inst, "UBLK"), (u.at_pair(at), u.block([size]), *u.policy(policy))))


# --------------------------------------------------------------------------- copies by a map

_LOAD_MODES: Final = {
    "tile": "", "im2col": ".IM2COL", "im2col::w": ".W", "im2col::w::128": ".W128", "tile::gather4": ".GATHER4",
    "tile::scatter4": ".SCATTER4",
    "im2col_no_offs": ".IM2COL", "im2col_no_offs::w": ".W",
}  # fmt: skip


def _mode(inst: PtxInst) -> str:
    return next((_LOAD_MODES[m] for m in inst.mods if m in _LOAD_MODES), "")


def _map_operand(b: Builder, inst: PtxInst, x: ptx.Operand) -> tuple[Reg, list[Val]]:
    """(address of the map, coordinates) of ``[map, {c0, c1...}]``."""
    if not isinstance(x, ptx.Bracket) or len(x.parts) != 2 or not isinstance(x.parts[1], ptx.Vec):
        raise b.unsupported(inst, "address")
    return wide_word(b, inst, x.parts[0]), [b.in_reg(b.src(c, "s32")) for c in x.parts[1].elems]


def _offsets(b: Builder, inst: PtxInst, x: ptx.Operand, dims: int) -> Val:
    """im2col offsets in a half word: eight bits each in four dimensions, five bits in five. With ``w``, eleven bits
    below the other offset (measured)."""
    elems = x.elems if isinstance(x, ptx.Vec) else (x,)
    words = [b.src(e, "u16") for e in elems]
    step = 11 if "im2col::w" in inst.mods or "im2col::w::128" in inst.mods else {3: 16, 4: 8, 5: 5}[dims]
    total: Val = words[0]
    if step == 8:
        d = b.r()
        b.emit("PRMT", d, (b.in_reg(words[0]), Imm("I", 0x0040), b.in_reg(words[1])))
        return d
    for i, w in enumerate(words[1:], 1):
        d = b.r()
        b.emit("LEA", d, (b.in_reg(w), b.in_reg(total), Imm("I", step * i)))
        total = d
    return total


def _tensor(b: Builder, inst: PtxInst) -> None:
    """cp.async.bulk.tensor, its reductions and prefetches."""
    dims = next(int(m[0]) for m in inst.mods if m in ("1d", "2d", "3d", "4d", "5d"))
    ops = list(inst.operands)
    policy = _policy(b, inst, ops)
    name = f".{dims}D{_mode(inst)}"
    if inst.has("prefetch") or inst.op == "applypriority":
        at, coords = _map_operand(b, inst, ops[0])
        more = [_offsets(b, inst, ops[1], dims)] if len(ops) > 1 else []
        us = [pack16(b, m, None) for m in more]
        each_thread(
            b,
            lambda u: _put(
                b,
                f"{_l2(b, inst, 'UTMA')}{name}",
                (u.at(coords), u.at_pair(at), *(u.block([w]) for w in us), *u.policy(policy)),
            ),
        )
        return
    if inst.has("bulk_group"):
        at, coords = _map_operand(b, inst, ops[0])
        _finish(b, inst, ops, 2)
        src = shared_word(b, inst, ops[1])
        what = next((m for m in inst.mods if m in REDUCTIONS), "") if inst.has("reduce") else ""
        op = f"UTMAREDG{name}.{REDUCTIONS[what]}" if what else f"UTMASTG{name}"
        each_thread(b, lambda u: _put(b, op, (u.at([src, *coords]), u.at_pair(at), *u.policy(policy))))
        return
    mask = mask_of_blocks(b, inst, ops)
    wide = [mask] if inst.has(_MANY_32) and mask is not None else []
    at, coords = _map_operand(b, inst, ops[1])
    low, bar = shared_word(b, inst, ops[0]), shared_word(b, inst, ops[2])
    offsets = _offsets(b, inst, ops[3], dims) if len(ops) > 3 else None
    _finish(b, inst, ops, 3 if offsets is None else 4)
    by_driver = b.has("cluster-copies-called") and mask is not None
    us = (
        []
        if offsets is None and (mask is None or by_driver)
        else [pack16(b, offsets if offsets is not None else Imm("I", 0), None if by_driver else mask)]
    )
    if wide:  # the mask is a word of its own
        us = [*([] if offsets is None else [pack16(b, offsets, None)]), *wide]
    op = (
        f"UTMALDG{name}"
        + (".MULTICAST32" if wide else ".MULTICAST" if mask is not None and not by_driver else "")
        + _signalled(inst)
    )

    def here() -> None:
        each_thread(
            b,
            lambda u: _put(
                b,
                op,
                (u.at([low, bar, *coords]), u.at_pair(at), *([u.block(us)] if us else []), *u.policy(policy)),
            ),
        )

    if not b.has("cluster-copies-called") or not inst.has("shared::cluster"):
        here()
        return
    mode = next((m for m in inst.mods if m in _LOAD_MODES), "tile")
    if mode not in ("tile", "im2col"):
        raise b.unsupported(inst, "this mode on this target")
    word = None if mask is None else b.ext(mask, "u16")
    params = [_LONG, _LONG, *[_WORD] * (5 if word is None else 6), _LONG]
    args: list[Val] = [_wide(b, low), at, *coords, *[RZ] * (5 - dims), *([] if word is None else [word]), _wide(b, bar)]
    if offsets is not None:
        x = ops[3]
        halves = [b.src(e, "u16") for e in (x.elems if isinstance(x, ptx.Vec) else (x,))]
        three = b.r(2)
        b.copy(b.lo_r(three), pack16(b, halves[0], halves[1] if len(halves) > 1 else None))
        b.copy(b.hi_r(three), halves[2] if len(halves) > 2 else RZ)
        params.append(_HALVES)
        args.append(three)
    params.append(_LONG)
    args.append(_hint(policy))
    if word is None:
        here_or_elsewhere(b, low, here, f"tensor_{dims}d_{mode}_", params, args)
    else:
        alone_or_everywhere(b, word, here, f"tensor_{dims}d_{mode}_", params, args)


# --------------------------------------------------------------------------- groups


def _commit(b: Builder, inst: PtxInst) -> None:
    with b.region():  # the guard would have to be a uniform predicate
        b.emit("UTMACMDFLUSH")


def _wait(b: Builder, inst: PtxInst) -> None:
    x = inst.operands[0]
    if not isinstance(x, ptx.Imm):
        raise b.unsupported(inst)
    b.emit("DEPBAR.LE", (), (Name("N", "SB0"), Imm("I", max(0, min(x.value, 63)))))
    if not inst.has("read"):
        invalidate(b)


def told(b: Builder, bit: int) -> None:
    """Tell what a unit does with maps, as `.nv.compat` has it: 1 copies tensors, 2 changes maps (measured)."""
    old = b.ctx.unit.attrs.get("tensormap", 0)
    b.ctx.unit.attrs["tensormap"] = (old if isinstance(old, int) else 0) | bit


def bulk(b: Builder, inst: PtxInst) -> None:
    """Every ``cp`` that is a bulk copy."""
    b.need(inst, "bulk-copies")
    if inst.has("tensor"):
        told(b, 1)
    bulk_class(b)
    if inst.has("commit_group"):
        _commit(b, inst)
    elif inst.has("wait_group"):
        _wait(b, inst)
    elif inst.has("tensor"):
        _tensor(b, inst)
    elif inst.has("prefetch") or inst.op == "applypriority":
        _prefetch(b, inst)
    else:
        _bulk(b, inst)


# --------------------------------------------------------------------------- maps


def prefetch_map(b: Builder, inst: PtxInst) -> None:
    """prefetch.tensormap."""
    b.need(inst, "tensor-maps")
    x = inst.operands[0]
    if inst.has("param") and isinstance(x, ptx.Addr) and isinstance(x.base, ptx.Sym):
        at = b.in_reg(to_generic(b, "param", b.ctx.address_of(b, ptx.Sym(x.base.name, x.base.offset + x.offset))), 2)
    elif inst.has("param") or inst.has("const"):
        space = "param" if inst.has("param") else "const"
        if not isinstance(x, ptx.Addr):
            raise b.unsupported(inst, "address")
        sym = ptx.Sym(x.base.name, x.base.offset + x.offset) if isinstance(x.base, ptx.Sym) else None
        place: Val = b.src(x.base, "u64") if sym is None else b.ctx.address_of(b, sym)
        if sym is None and x.offset:
            moved = b.r(2)
            add64(b, moved, b.in_reg(place, 2), Imm("I", x.offset & (1 << 64) - 1))
            place = moved
        at = b.in_reg(to_generic(b, space, place), 2)
    else:
        at = wide_word(b, inst, x)
    each_thread(b, lambda u: _put(b, "UTMACCTL.PF", (u.at_pair(at),)))


def forget_map(b: Builder, inst: PtxInst) -> None:
    """fence.proxy.tensormap::generic.acquire: the copy unit drops its copy of the map."""
    at = wide_word(b, inst, inst.operands[0])
    b.emit("DEPBAR", (), (Name("N", "{5,4,3,2,1,0}"),))

    def forget(u: Uniform) -> None:
        where = u.at_pair(at)
        if b.has("deep-cctl"):
            _put(b, "CCTL.E.C.LDCU.IV.DEEP", (where,))
        _put(b, "UTMACCTL.IV", (where,))

    each_thread(b, forget)


def fill(b: Builder, inst: PtxInst) -> None:
    """st.bulk: zeros, in units of eight bytes."""
    b.need(inst, "bulk-fill")
    low = shared_word(b, inst, inst.operands[0])
    n = b.src(inst.operands[1], "u64")
    units: Val
    if type(n) is Imm:
        units = Imm("I", n.value >> 3 & 0xFFFFFFFF)
    else:
        units = b.r()
        b.emit("SHF.R.U64", units, (b.lo(n), Imm("I", 3), b.hi(n)))
    each_thread(b, lambda u: _put(b, "UMEMSETS.64", (u.at([low]), Name("N", "URZ"), u.block([units]))))


# --------------------------------------------------------------------------- registers of a warp


def register_count(b: Builder, inst: PtxInst) -> None:
    """setmaxnreg: the release drains the warp; the request is repeated until it is granted. As in ptxas, the launch
    bounds must determine the number of registers at the start of the kernel."""
    b.need(inst, "register-requests")
    x = inst.operands[0]
    if not isinstance(x, ptx.Imm) or not 24 <= x.value <= 256 or x.value % 8:
        raise b.unsupported(inst)
    why = _kept_count(b)
    if why:
        note = ("info", f"{why}.", 0)
        if note not in b.ctx.unit.diags:
            b.ctx.unit.diags.append(note)
        return
    b.ctx.unit.attrs["reg_reconfig"] = 1
    bulk_class(b)
    with b.region():
        b.emit("WARPSYNC.ALL")
        if inst.has("dec"):
            b.emit("USETMAXREG.DEALLOC.CTAPOOL", (), (Imm("I", x.value),))
            return
        again = b.new_block()
        b.place(again)
        got = b.fn.new_vreg("UP", 1, 0, -1, 1)
        b.emit("USETMAXREG.TRY_ALLOC.CTAPOOL", got, (Imm("I", x.value),))
        b.emit("BRA.U", (), (b.not_(got), Label("L", again)))
        b.place(b.new_block())


def _kept_count(b: Builder) -> str:
    """The reason why the number of registers can't change, in ptxas's order of reasons (measured); '' if it can."""
    attrs, options = b.ctx.unit.attrs, b.ctx.header.options
    ignored = "Potential Performance Loss: 'setmaxnreg' ignored"
    if options.get("device-debug"):
        return f"(C7505) {ignored} to allow debugging"
    if options.get("compile-only") and not options.get("extensible-whole-program"):
        return f"(C7504) {ignored} to maintain compatibility across compilation units"
    bounds = "maxntid" in attrs or "reqntid" in attrs
    known = (
        "maxnreg" in attrs
        or (bounds and "minnctapersm" in attrs)
        or (not bounds and options.get("maxrregcount") is not None)
    )
    if not known or not b.pf.entry:
        return f"(C7508) {ignored}; unable to determine register count at entry"
    if options.get("compile-only") and any(i.op == "call" for i in b.pf.body if isinstance(i, PtxInst)):
        return f"(C7506) {ignored} to maintain compatibility into 'extern' call"
    return ""


def bulk_class(b: Builder) -> None:
    """Mark the kernel as class 2 in the cubin (docs/stream.md)."""
    attrs = b.ctx.unit.attrs
    if attrs.get("isa_class", 1) == 1:
        attrs["isa_class"] = 2


RULES: dict[str, Rule] = {"setmaxnreg": register_count}
