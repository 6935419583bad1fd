"""Tensor memory (tcgen05, sm_100a to sm_110a): products, loads, stores, copies, arrival, allocation.

Sequences measured with ptxas 13.0.88 on sm_100a, sm_103a and sm_110a. Products, copies, shifts and arrival execute one
time per warp, but PTX asks for one per thread: a loop goes over the threads (rules.bulk). Loads and stores are
operations of the warp. Allocation has its records in 32 reserved bytes of shared memory that the driver prepares: masks
of the columns in use and of first columns, in units of 32 columns, and a flag that is set when the CTA stops
allocating. For pairs of CTAs there are also a barrier and its phase, through which the even CTA passes the column to
the odd one.
"""

from __future__ import annotations

from ir_format import ptx
from ir_format.diag import CompileError
from ir_format.model import PT, RZ, UPT, URZ, Imm, Mem, Name, Operand, Reg
from ir_format.ptx import PtxInst
from ir_format.typed import Final
from stages.lower.builder import Builder, Rule
from stages.lower.rules.async_copy import shared_address
from stages.lower.rules.bulk import each_thread, mask_of_blocks, shared_word
from stages.lower.rules.integer import Val, add32, compare, logic
from stages.lower.rules.warpgroup import vector
from stages.lower.uniform_operands import Uniform

# The allocator's words in its part of reserved shared memory.
_BARRIER, _PHASE, _COLUMNS, _FIRSTS, _CLOSED = 0x8, 0x10, 0x14, 0x18, 0x1C
_KINDS: Final = {
    "kind::f16": "UTCHMMA", "kind::tf32": "UTCHMMA", "kind::ti16": "UTCHMMA", "kind::i8": "UTCIMMA",
    "kind::f8f6f4": "UTCQMMA",
    "kind::mxf8f6f4": "UTCQMMA",
    "kind::mxf4": "UTCOMMA", "kind::mxf4nvf4": "UTCOMMA",
}  # fmt: skip
_COLLECT: Final = {"fill": "KEEP", "use": "REUSE.KEEP", "lastuse": "REUSE", "discard": ""}
_COPIES: Final = {
    "128x256b": "", "4x256b": ".4dp256bit", "128x128b": ".128dp128bit", "64x128b": ".2x64dp128bit",
    "32x128b": ".4x32dp128bit",
    "warpx2::02_13": "_lw02_lw13", "warpx2::01_23": "_lw01_lw23", "b6x16_p32": ".U6x16P32", "b4x16_p64": ".U4x16P64",
}  # fmt: skip
_SHAPES: Final = {"32x32b": "", "16x64b": ".16dp64bit", "16x128b": ".16dp128bit", "16x256b": ".16dp256bit"}
_WHOLE, _WHOLE_107 = 512 // 32, 576 // 32  # all columns of tensor memory, in units of 32
_TRAP_AT: Final = 0xFFFFFFFF  # the address that ptxas's code stores when it refuses to allocate


def _pair_of_ctas(b: Builder, inst: PtxInst) -> str:
    """``.2CTA`` or nothing; the unit records which of the two the kernel uses."""
    two = inst.has("cta_group::2")
    used = b.ctx.unit.attrs.setdefault("tcgen05", 2 if two else 1)
    if used != (2 if two else 1):
        name = b.ctx.unit.name
        raise CompileError(
            f"Function '{name}' uses single CTA(.cta_group::1) and CTA pair granularity(.cta_group::2) and that is "
            f"not allowed."
        )
    return ".2CTA" if two else ""


def _tensor_address(b: Builder, inst: PtxInst, x: ptx.Operand) -> tuple[Reg, int]:
    """(register, offset) of an address in tensor memory."""
    if not isinstance(x, ptx.Addr) or isinstance(x.base, ptx.Sym):
        raise b.unsupported(inst, "address")
    return b.in_reg(b.lo(b.src(x.base, "u32"))), x.offset


def _tensor_word(b: Builder, inst: PtxInst, x: ptx.Operand) -> Reg:
    """The address with the offset added, for instructions without an offset field."""
    base, offset = _tensor_address(b, inst, x)
    if not offset:
        return base
    d = b.r()
    add32(b, d, base, Imm("I", offset & 0xFFFFFFFF))
    return d


# --------------------------------------------------------------------------- products


def _collector(inst: PtxInst) -> tuple[str, str]:
    """(suffix of A, suffix of B): the contents of the collector buffers."""
    held = {"A": "", "B": ""}
    for m in inst.mods:
        if m.startswith("collector::"):
            _, which, how = m.split("::")
            side = which[0].upper()
            parts = [f"{side}_{w}" for w in _COLLECT[how].split(".") if w]
            if side == "B" and which[1:] not in ("", "0"):
                parts.append(f"BUFFER{which[1]}")
            held[side] = ".".join(parts)
    return held["A"], held["B"]


def _scale_form(b: Builder, inst: PtxInst) -> str:
    """The modifier of block scales of 16 elements."""
    if inst.has("scale_vec::4X") or inst.has("block16"):
        return ".BLOCK16" if b.has("block-16-named") else ".4X"
    return ""


def _mma(b: Builder, inst: PtxInst) -> None:
    op = next((_KINDS[m] for m in inst.mods if m in _KINDS), "")
    if not op:
        raise b.unsupported(inst)
    scaled = inst.has("block_scale")
    ws = inst.has("ws")
    name = (
        op
        + (".LUTB" if inst.has("decompress::lut::b") else "")
        + _pair_of_ctas(b, inst)
        + (".ASHIFT" if inst.has("ashift") else "")
        + (".WS" if ws else "")
        + _scale_form(b, inst)
    )
    ops = list(inst.operands)
    d = _tensor_word(b, inst, ops.pop(0))
    a = ops.pop(0)
    in_tensor = isinstance(a, ptx.Addr)
    left: Reg = _tensor_word(b, inst, a) if in_tensor else b.in_reg(b.src(a, "b64"), 2)
    right = b.in_reg(b.src(ops.pop(0), "b64"), 2)
    listed = inst.has("sp") or inst.has("decompress::lut::b")  # metadata, or the table that B's numbers come from
    meta: Val = _tensor_word(b, inst, ops.pop(0)) if listed else Imm("I", 0)
    idesc = b.src(ops.pop(0), "b32")
    extra: list[Val] = []
    if scaled:
        extra = [_tensor_word(b, inst, ops.pop(0)), _tensor_word(b, inst, ops.pop(0))]
    elif isinstance(ops[0], ptx.Vec):
        extra = [b.src(e, "b32") for e in ops.pop(0).elems]  # type: ignore[union-attr]
    keep = b.src(ops.pop(0), "pred")
    scale: list[Operand] = []
    if ws and ops:
        zero = b.in_reg(b.src(ops.pop(0), "b64"), 2)
        extra = [b.word(zero, 0), b.word(zero, 1)]
    if op == "UTCIMMA":
        b.ctx.unit.attrs["byte_products"] = 1
    if op == "UTCHMMA":
        scale = [Imm("I", _number(b, inst, ops.pop(0)) if ops else 0)]
    if ops:
        raise b.unsupported(inst, "operands")
    keep_a, keep_b = _collector(inst)

    def make(u: Uniform) -> None:
        first = u.at([left]) if in_tensor else Mem("M", None, None, 0, u.pair(left))
        if keep_a:
            first = _suffixed(first, keep_a)
        second = Mem("M", None, None, 0, u.pair(right)._replace(mod=keep_b))
        lanes: list[Operand] = (
            [u.at(extra)]
            if scaled
            else [u.block(extra) if extra else Reg("UR", -1, 0, 2 if ws else 8 if inst.has("cta_group::2") else 4)]
        )
        srcs = [first, second, u.at([d]), u.at([meta, idesc]), *lanes, _uniform_predicate(b, u, keep), *scale]
        b.emit(name, (), tuple(srcs))

    each_thread(b, make)


def _suffixed(x: Mem, text: str) -> Mem:
    if x.desc is not None:
        return x._replace(desc=x.desc._replace(mod=text))
    assert x.ubase is not None
    return x._replace(ubase=x.ubase._replace(mod=text))


def _number(b: Builder, inst: PtxInst, x: ptx.Operand) -> int:
    if not isinstance(x, ptx.Imm):
        raise b.unsupported(inst, "immediate")
    return x.value


def _uniform_predicate(b: Builder, u: Uniform, p: Val) -> Reg:
    """The elected thread's predicate as a uniform one."""
    assert isinstance(p, Reg)
    if p.num < 0:
        return UPT._replace(flags=p.flags)
    word = b.r()
    b.emit("SEL", word, (b.in_reg(Imm("I", 1)), RZ, p))
    up = b.fn.new_vreg("UP", 1, 0, -1, 1)
    b.emit("UISETP.NE.U32.AND", (up, UPT), (u.block([word]), URZ, UPT))
    return up


# --------------------------------------------------------------------------- copies, shifts, arrival


def _cp(b: Builder, inst: PtxInst) -> None:
    name = "UTCCP.T.S" + _pair_of_ctas(b, inst) + "".join(_COPIES[m] for m in inst.mods if m in _COPIES)
    to, offset = _tensor_address(b, inst, inst.operands[0])
    desc = b.in_reg(b.src(inst.operands[1], "b64"), 2)

    def make(u: Uniform) -> None:
        b.emit(name, (), (u.at([to])._replace(offset=offset), Mem("M", None, None, 0, u.pair(desc))))

    each_thread(b, make)


def _shift(b: Builder, inst: PtxInst) -> None:
    name = "UTCSHIFT" + _pair_of_ctas(b, inst) + ".DOWN"
    at, offset = _tensor_address(b, inst, inst.operands[0])

    def make(u: Uniform) -> None:
        b.emit(name, (), (u.at([at])._replace(offset=offset),))

    each_thread(b, make)


def _commit(b: Builder, inst: PtxInst) -> None:
    mask = mask_of_blocks(b, inst, list(inst.operands))
    name = "UTCBAR" + _pair_of_ctas(b, inst) + ("" if mask is None else ".MULTICAST")
    if inst.has("sync_restrict::shared::read::mma::a"):
        name += ".MMA_READ_SHM_A"
    at = shared_word(b, inst, inst.operands[0])
    if mask is not None and not inst.has("multicast::cluster::32b"):
        mask = b.ext(mask, "u16")

    def make(u: Uniform) -> None:
        b.emit(name, (), (u.at([at]), URZ, URZ if mask is None else u.block([mask])))

    each_thread(b, make)


# --------------------------------------------------------------------------- loads and stores


def _access(b: Builder, inst: PtxInst) -> tuple[list[tuple[str, int]], str, Reg, int]:
    """(shape and offset of each instruction, count and packing, address register, offset)."""
    store = inst.mods[0] == "st"
    at, offset = _tensor_address(b, inst, inst.operands[0 if store else 2 if inst.has("red") else 1])
    count = next((m for m in inst.mods if m[0] == "x" and m[1:].isdigit()), "x1")
    tail = ("" if count == "x1" else f".{count}") + (
        ".EXPAND16BIT" if inst.has("unpack::16b") else ".PACK16BIT" if inst.has("pack::16b") else ""
    )
    u = b.ur()
    b.emit("R2UR", u, (at,))
    if inst.has("16x32bx2"):
        second = _number(b, inst, inst.operands[1] if store else inst.operands[-1])
        return [(".16dp32bit_t0_t15", offset), (".16dp32bit_t16_t31", offset + second)], tail, u, offset
    return [(_SHAPES[next(m for m in inst.mods if m in _SHAPES)], offset)], tail, u, offset


def _ld(b: Builder, inst: PtxInst) -> None:
    """ld, and ld.red with a maximum or minimum over the columns (sm_103a, sm_110a)."""
    red = inst.has("red")
    with b.region():
        parts, tail, u, _ = _access(b, inst)
        x = inst.operands[0]
        assert isinstance(x, ptx.Vec)
        block, copied = vector(b, x, False)
        best = b.dst(inst.operands[1]) if red else None
        op = "LDTM"
        if red:
            t = inst.types[-1]
            how = ("MAX" if inst.has("max") else "MIN") + ("ABS" if inst.has("abs") else "")
            op = "LDTM.STAT"
            tail += f".{how}" + {"s32": ".S32", "f32": ".F32"}.get(t, "") + (".NAN" if inst.has("NaN") else "")
        for i, (shape, offset) in enumerate(parts):
            dsts = (block,) if best is None else (best, block)
            # The second half of a split load writes other lanes: the results of the first half stay.
            b.emit(op + shape + tail, dsts, (Mem("M", None, u, offset),), uses=dsts if i else (), attrs={"warp": 1})
        if copied:
            for i, e in enumerate(x.elems):
                b.copy(b.dst(e), block._replace(sub=i, width=1))


def _st(b: Builder, inst: PtxInst) -> None:
    with b.region():
        parts, tail, u, _ = _access(b, inst)
        x = inst.operands[-1]
        assert isinstance(x, ptx.Vec)
        block, _ = vector(b, x, True)
        for shape, offset in parts:
            b.emit("STTM" + shape + tail, (), (Mem("M", None, u, offset), block), attrs={"warp": 1})


def _wait(b: Builder, inst: PtxInst) -> None:
    """For loads: wait until all results are in their registers; nothing moves over the wait. For stores: the fence of
    tensor memory."""
    with b.region():
        if inst.mods[0] == "wait::st":
            b.emit("FENCE.VIEW.ASYNC.T")
        else:
            b.emit("WARPSYNC.ALL", uses=_loaded(b))


def _loaded(b: Builder) -> tuple[Operand, ...]:
    """The results of the loads of this block since the last wait. A load of another block was waited for at the end of
    that block."""
    found: dict[Reg, None] = {}
    for made in reversed(b.block.insts):
        if made.op == "WARPSYNC" and made.uses:
            break
        if made.op == "LDTM":
            for x in made.dsts:
                if type(x) is Reg and x.num >= 0:
                    found[x] = None
    return tuple(found)


# --------------------------------------------------------------------------- allocation


def _partition(b: Builder, inst: PtxInst) -> Reg:
    """The allocator records of this CTA. The kernel is marked as using them."""
    two = inst.has("cta_group::2")
    used = b.ctx.unit.attrs.get("tcgen05_alloc", 0)
    b.ctx.unit.attrs["tcgen05_alloc"] = (used if isinstance(used, int) else 0) | (2 if two else 1)
    cta, start, d = b.r(), b.r(), b.r()
    b.emit("S2R", cta, (Name("N", "SR_CgaCtaId"),))
    b.emit("MOV", start, (Imm("I", b.ctx.target.reserved_smem_offset0 + b.ctx.target.reserved_smem_war),))
    b.emit("LEA", d, (cta, start, Imm("I", 24)))
    return d


def _columns(b: Builder, x: ptx.Operand) -> Val:
    """Columns in units of 32."""
    n = b.src(x, "u32")
    if type(n) is Imm:
        return Imm("I", n.value >> 5)
    d = b.r()
    b.emit("SHF.R.U32.HI", d, (RZ, Imm("I", 5), b.in_reg(n)))
    return d


def _mask(b: Builder, n: Val, first: Val) -> Reg:
    """``n`` ones from bit ``first`` on."""
    d = b.r()
    if type(n) is Imm:
        ones: Reg = b.in_reg(Imm("I", (1 << min(n.value, 32)) - 1))
    else:
        ones, high = b.r(), b.r()
        b.emit("SHF.L.U32", high, (b.in_reg(Imm("I", 0xFFFFFFFF)), n, RZ))
        b.emit("LOP3.LUT", ones, (RZ, high, RZ, Imm("I", 0x33)))
    b.emit("SHF.L.U32", d, (ones, first, RZ))
    return d


def _one(b: Builder, first: Val) -> Reg:
    d = b.r()
    b.emit("SHF.L.U32", d, (b.in_reg(Imm("I", 1)), first, RZ))
    return d


def _trap(b: Builder) -> None:
    b.emit("BPT.TRAP", (), (Imm("I", 1),))


def _find(b: Builder, n: Val, two: str, whole: bool) -> Reg:
    """The first column of ``n`` free ones, in units of 32. The code loops until there are some."""
    again = b.new_block()
    done = b.new_block()
    b.place(again)
    u = b.ur()
    up = b.fn.new_vreg("UP", 1, 0, -1, 1)
    if type(n) is Imm:
        b.emit("COPY", u, (n,))
    else:
        b.emit("R2UR", u, (b.in_reg(n),))
    b.emit("DEPBAR.LE", (), (Name("N", "SB0"), Imm("I", 0x36)))
    got = b.ur()
    b.emit(f"UTCATOMSWS{two}.FIND_AND_SET{'' if whole else '.ALIGN'}", (up, got), (u,))
    first, found = b.r(), b.r()
    b.copy(first, got)
    one = b.ur()
    b.emit("USEL", one, (_uniform_word(b, 1), URZ, up))
    b.copy(found, one)
    p, _ = compare(b, "NE", "u32", found, Imm("I", 0))
    b.branch(done, p)
    b.emit("NANOSLEEP", (), (Imm("I", 0x64),))
    b.branch(again)
    b.place(done)
    return first


def _uniform_word(b: Builder, value: int) -> Reg:
    """A number in a uniform register."""
    u = b.ur()
    b.emit("COPY", u, (Imm("I", value),))
    return u


def _record_columns(b: Builder, part: Reg, n: Val, first: Reg, to: Mem) -> None:
    """Record the columns, and store their address."""
    b.emit("ATOMS.OR", RZ, (Mem("M", part, None, _COLUMNS), _mask(b, n, first)))
    b.emit("ATOMS.OR", RZ, (Mem("M", part, None, _FIRSTS), _one(b, first)))
    at = b.r()
    b.emit("SHF.L.U32", at, (first, Imm("I", 5), RZ))
    b.emit("STS", (), (to, at))


def _open(b: Builder, part: Reg, to: Mem) -> None:
    """Refuse the allocation, as ptxas's code does, if the CTA has stopped allocating."""
    closed = b.r()
    b.emit("LDS.U8", closed, (Mem("M", part, None, _CLOSED),))
    p, _ = compare(b, "EQ", "u32", closed, Imm("I", 0))
    fine = b.new_block()
    b.branch(fine, p)
    b.emit("STS", (), (to, b.in_reg(Imm("I", _TRAP_AT))))
    _trap(b)
    b.place(fine)


def _elected(b: Builder) -> Reg:
    p = b.p()
    b.emit("ELECT", (p, URZ), (PT,))
    return p


def _alloc(b: Builder, inst: PtxInst) -> None:
    two = _pair_of_ctas(b, inst)
    with b.region():
        to = shared_address(b, inst, inst.operands[0])
        whole = inst.has("exclusive")  # all columns, whatever the operand says, and no more after it (measured)
        n = Imm("I", _WHOLE_107 if b.has("tensor-memory-576") else _WHOLE) if whole else _columns(b, inst.operands[1])
        part = _partition(b, inst)
        if not whole:
            _open(b, part, to)
        end = b.new_block()
        if two:
            _alloc_pair(b, part, n, to, whole)
        else:
            b.branch(end, b.not_(_elected(b)))
            _record_columns(b, part, n, _find(b, n, "", whole), to)
            if whole:
                _close(b, part, 2)
        b.place(end)
        b.emit("WARPSYNC.ALL")


def _await(b: Builder, part: Reg) -> None:
    """Wait until the barrier has passed the phase that memory holds."""
    phase, bit = b.r(), b.r()
    b.emit("LDS", phase, (Mem("M", part, None, _PHASE),))
    b.emit("SHF.L.U32", bit, (phase, Imm("I", 31), RZ))
    again = b.new_block()
    b.place(again)
    p = b.p()
    b.emit("SYNCS.PHASECHK.TRANS64.TRYWAIT", p, (Mem("M", part, URZ, _BARRIER), bit))
    b.branch(again, b.not_(p))


def _close(b: Builder, part: Reg, how: int) -> None:
    """The CTA stops allocating: 1 relinquished, 2 has all."""
    b.emit("STS.U8", (), (Mem("M", part, None, _CLOSED), b.in_reg(Imm("I", how))))


def _alloc_pair(b: Builder, part: Reg, n: Val, to: Mem, whole: bool) -> None:
    """The even CTA allocates for both and sends the number of the first column; the odd CTA takes it and
    acknowledges."""
    rank, odd, peer = b.r(), b.r(), b.r()
    b.emit("S2R", rank, (Name("N", "SR_CgaCtaId"),))
    logic(b, odd, 0xC0, rank, Imm("I", 1))
    logic(b, peer, 0x3C, rank, Imm("I", 1))
    own, barrier, theirs = b.r(), b.r(), b.r()
    add32(b, own, to.base if to.base is not None else RZ, Imm("I", to.offset & 0xFFFFFFFF))
    add32(b, barrier, part, Imm("I", _BARRIER))
    b.emit("PRMT", theirs, (peer, Imm("I", 0x0654), barrier))
    p, _ = compare(b, "NE", "u32", odd, Imm("I", 0))
    second, end = b.new_block(), b.new_block()
    b.branch(second, p)
    b.branch(end, b.not_(_elected(b)))
    first = _find(b, n, ".2CTA", whole)
    _await(b, part)
    pair = b.r(2)
    b.emit("PRMT", b.word(pair, 0), (peer, Imm("I", 0x0654), own))
    b.copy(b.hi_r(pair), theirs)
    b.emit("SYNCS.ARRIVE.TRANS64.RED", RZ, (Mem("M", theirs, URZ, 0), b.in_reg(Imm("I", 4))))
    b.emit("STAS", (), (Mem("M", pair, URZ._replace(width=2), 0), first))
    _record_columns(b, part, n, first, to)
    b.emit("ATOMS.XOR", RZ, (Mem("M", part, None, _PHASE), b.in_reg(Imm("I", 1))))
    if whole:
        _close(b, part, 2)
    b.branch(end)
    b.place(second)
    b.branch(end, b.not_(_elected(b)))
    _await(b, part)
    got = b.r()
    b.emit("LDS", got, (to,))
    _record_columns(b, part, n, got, to)
    b.emit("SYNCS.ARRIVE.TRANS64.RED.A1T0", RZ, (Mem("M", theirs, URZ, 0), RZ))
    b.emit("ATOMS.XOR", RZ, (Mem("M", part, None, _PHASE), b.in_reg(Imm("I", 1))))
    b.place(end)


def _dealloc(b: Builder, inst: PtxInst) -> None:
    _pair_of_ctas(b, inst)
    with b.region():
        at = b.in_reg(b.src(inst.operands[0], "u32"))
        n = _columns(b, inst.operands[1])
        part = _partition(b, inst)
        low, first = b.r(), b.r()
        logic(b, low, 0xC0, at, Imm("I", 0xFFFF))
        b.emit("SHF.R.U32.HI", first, (RZ, Imm("I", 5), low))
        mask, one = _mask(b, n, first), _one(b, first)
        for offset, want in ((_COLUMNS, mask), (_FIRSTS, one)):  # only what was allocated, as ptxas checks it
            have, both = b.r(), b.r()
            b.emit("LDS", have, (Mem("M", part, None, offset),))
            logic(b, both, 0xC0, have, want)
            p, _ = compare(b, "EQ", "u32", both, want)
            fine = b.new_block()
            b.branch(fine, p)
            _trap(b)
            b.place(fine)
        keep, rest = b.r(), b.r()
        b.emit("LOP3.LUT", keep, (RZ, mask, RZ, Imm("I", 0x33)))
        b.emit("LOP3.LUT", rest, (RZ, one, RZ, Imm("I", 0x33)))
        u = b.ur()
        b.emit("R2UR", u, (keep,))
        b.emit("UTCATOMSWS.AND", URZ, (u,))
        p = _elected(b)
        b.emit("ATOMS.AND", RZ, (Mem("M", part, None, _COLUMNS), keep), p)
        b.emit("ATOMS.AND", RZ, (Mem("M", part, None, _FIRSTS), rest), p)
        b.emit("WARPSYNC.ALL")


def _relinquish(b: Builder, inst: PtxInst) -> None:
    _pair_of_ctas(b, inst)
    with b.region():
        part = _partition(b, inst)
        b.emit("UVIRTCOUNT.DEALLOC.SMPOOL", (), (Imm("I", 0x80),))
        b.emit("STS.U8", (), (Mem("M", part, None, _CLOSED), b.in_reg(Imm("I", 1))), _elected(b))


def _nothing(b: Builder, inst: PtxInst) -> None:
    """fence::before_thread_sync and after_thread_sync: they order the compiler, which emits tensor operations in
    program order in any case (measured: no code)."""


_OPS: dict[str, Rule] = {
    "mma": _mma, "cp": _cp, "shift": _shift, "commit": _commit, "ld": _ld, "st": _st, "wait::ld": _wait,
    "wait::st": _wait, "alloc": _alloc,
    "dealloc": _dealloc, "relinquish_alloc_permit": _relinquish, "fence::before_thread_sync": _nothing,
    "fence::after_thread_sync": _nothing,
}  # fmt: skip


def tcgen05(b: Builder, inst: PtxInst) -> None:
    """All operations on tensor memory."""
    if not b.has("tensor-memory"):
        raise b.unsupported(inst)
    what = inst.mods[0]
    b.ctx.unit.attrs["isa_class"] = max(2, _isa_class(b))
    if what not in ("relinquish_alloc_permit", "fence::before_thread_sync", "fence::after_thread_sync"):
        b.ctx.unit.attrs["vrc_count"] = 0x80
    _OPS[what](b, inst)


def _isa_class(b: Builder) -> int:
    got = b.ctx.unit.attrs.get("isa_class", 1)
    return got if isinstance(got, int) else 1


RULES: dict[str, Rule] = {"tcgen05": tcgen05}
