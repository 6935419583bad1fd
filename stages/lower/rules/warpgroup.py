"""Matrix operations of a warpgroup (wgmma, sm_90a). Sequences and operands measured with ptxas 13.0.88.

The accumulators are one block of registers that is read and written in place, and must not move from the fence to the
wait. So the PTX registers of an accumulator vector (and those of an A fragment) become the parts of one wide register
for the whole function, before other code is lowered. If two vectors share registers at different offsets, copies
surround the operation instead. :mod:`stages.regalloc.warpgroup` inserts waits before instructions that touch registers
of outstanding operations.
"""

from __future__ import annotations

from ir_format import ptx
from ir_format.model import NEG, NOT_UPT, UPT, URZ, Imm, Inst, Mem, Operand, Reg
from ir_format.ptx import PtxInst
from ir_format.typed import Final
from stages.analysis.warpgroups import EMPTY, END, NO_DESCRIPTOR, NOTHING, OPEN, PRODUCTS, end_at_last
from stages.lower.builder import Builder, Rule
from stages.lower.rules.integer import Val

_FLOATS: Final = {"f16": "", "bf16": ".BF16", "tf32": ".TF32"}
_BYTES: Final = ("e4m3", "e5m2")
_MOST: Final = 7  # groups that WARPGROUP.DEPBAR can leave in flight

# --------------------------------------------------------------------------- registers


def bind_vectors(b: Builder) -> None:
    """Bind the PTX registers of accumulators and A fragments, and of loads and stores of tensor memory, to parts of
    wide registers."""
    taken: dict[int, tuple[int, ...]] = {}
    for inst in b.pf.body:
        if type(inst) is not PtxInst or not _takes_blocks(inst):
            continue
        for x in inst.operands:
            if isinstance(x, ptx.Vec):
                _bind(b, tuple(e.index for e in x.elems if isinstance(e, ptx.Reg)), len(x.elems), taken)


def _takes_blocks(inst: PtxInst) -> bool:
    if inst.op == "wgmma":
        return "mma_async" in inst.mods
    return inst.op == "tcgen05" and inst.mods[0] in ("ld", "st")


def _bind(b: Builder, regs: tuple[int, ...], want: int, taken: dict[int, tuple[int, ...]]) -> None:
    if len(regs) != want or len(set(regs)) != want or any(r in taken or r in b.regs for r in regs):
        return
    group = b.r(want, _align(want))
    for i, r in enumerate(regs):
        taken[r] = regs
        b.regs[r] = group._replace(sub=i, width=1)


def _align(width: int) -> int:
    """The alignment of a block: ptxas aligns accumulators to 8 registers, fragments to 4."""
    return 8 if width >= 8 else 4 if width > 2 else width


def vector(b: Builder, x: ptx.Vec, read: bool) -> tuple[Reg, bool]:
    """(the block of a vector, whether it is a block of its own with copies around it)."""
    parts = [b.dst(e) for e in x.elems]
    first = parts[0]
    if (
        first.num >= 0
        and b.fn.vregs[first.num].width == len(parts)
        and all(p == first._replace(sub=i) for i, p in enumerate(parts))
    ):
        return first._replace(sub=0, width=len(parts)), False
    block = b.r(len(parts), _align(len(parts)))
    if read:
        for i, p in enumerate(parts):
            b.copy(block._replace(sub=i, width=1), p)
    return block, True


# --------------------------------------------------------------------------- the product


def _name(b: Builder, inst: PtxInst) -> str:
    shape = next(m for m in inst.mods if m.startswith("m64n"))[1:].replace("n", "x").replace("k", "x")
    d, at, bt = inst.types
    sp = ".SP" if inst.has("sp") else ""
    if at in _FLOATS and at == bt:
        return f"HGMMA{sp}.{shape}.{d.upper()}{_FLOATS[at]}"
    if at in _BYTES and bt in _BYTES:
        return f"QGMMA{sp}.{shape}.{d.upper()}.{at.upper()}.{bt.upper()}"
    if at in ("s8", "u8") and bt in ("s8", "u8"):
        return f"IGMMA{sp}.{shape}.{at.upper()}.{bt.upper()}" + (".SAT" if inst.has("satfinite") else "")
    if at == bt == "b1" and inst.has("and"):
        return f"BGMMA.{shape}.AND.POPC"
    raise b.unsupported(inst)


def _flag(b: Builder, inst: PtxInst, x: ptx.Operand) -> int:
    if not isinstance(x, ptx.Imm):
        raise b.unsupported(inst, "immediate")
    return x.value


def _suffix(neg_a: bool, neg_b: bool, trans_a: bool, trans_b: bool) -> str:
    """The text after gdesc[], in nvdisasm's order."""
    names = (("negA", neg_a), ("negB", neg_b), ("tnspA", trans_a), ("tnspB", trans_b))
    return ".".join(name for name, on in names if on)


def _descriptors(b: Builder, words: dict[int, Val], suffix: str) -> Mem:
    """Four uniform registers: the descriptor of A in the lower two (unless A is in registers), that of B in the upper
    two."""
    block = b.fn.new_vreg("UR", 4, 4, -1, 1)
    if len(words) < 4:
        b.emit("UNDEF", block, ())
    for i, w in words.items():
        part = block._replace(sub=i, width=1)
        if type(w) is Imm:
            b.emit("COPY", part, (w,))
        else:
            b.emit("R2UR", part, (b.in_reg(w),))
    return Mem("M", None, None, 0, block._replace(mod=suffix))


def _accumulate(b: Builder, x: ptx.Operand) -> Reg:
    """The uniform predicate that says whether the accumulators count."""
    if isinstance(x, ptx.Imm):
        return UPT if x.value else NOT_UPT
    p = b.src(x, "pred")
    up = b.fn.new_vreg("UP", 1, 0, -1, 1)
    b.emit("VOTEU.ANY", (URZ, up), (p,), attrs={"coop": 0})
    return up


def _product(b: Builder, inst: PtxInst) -> None:
    name = _name(b, inst)
    to, a, *rest = inst.operands
    if not isinstance(to, ptx.Vec):
        raise b.unsupported(inst, "accumulators")
    in_regs = isinstance(a, ptx.Vec)
    bdesc = b.src(rest.pop(0), "b64")
    meta: list[Operand] = []
    if inst.has("sp"):
        e, sel = b.in_reg(b.src(rest.pop(0), "b32")), _flag(b, inst, rest.pop(0))
        meta = [e, Imm("I", sel)]
    scale = rest.pop(0)
    flags = [_flag(b, inst, x) for x in rest]
    neg_a, neg_b = (flags[0] < 0, flags[1] < 0) if len(flags) >= 2 else (False, False)
    trans = [bool(f) for f in flags[2:]]
    trans_a, trans_b = (
        (False, trans[0]) if len(trans) == 1 else (trans[0], trans[1]) if len(trans) == 2 else (False, False)
    )
    words: dict[int, Val] = {2: b.lo(bdesc), 3: b.hi(bdesc)}
    srcs: list[Operand] = []
    if in_regs:
        assert isinstance(a, ptx.Vec)
        frag, _ = vector(b, a, True)
        srcs.append(frag._replace(flags=NEG if neg_a else 0))
        neg_a = False
    else:
        adesc = b.src(a, "b64")
        words = {0: b.lo(adesc), 1: b.hi(adesc), **words}
    keep = _accumulate(b, scale)
    gone = keep == NOT_UPT
    block, copied = vector(b, to, not gone)
    srcs.append(_descriptors(b, words, _suffix(neg_a, neg_b, trans_a, trans_b)))
    srcs.append(Reg("R", -1, 0, block.width) if gone else block)
    b.emit(name, block, (*srcs, keep, *meta, OPEN), attrs={"warp": 1})
    if copied:
        for i, x in enumerate(to.elems):
            b.copy(b.dst(x), block._replace(sub=i, width=1))


# --------------------------------------------------------------------------- order


def _commit(b: Builder, inst: PtxInst) -> None:
    """End a group: its last product carries the mark. If that is not in the block, an empty product carries it
    (measured: ptxas ends empty groups so)."""
    if not end_at_last(b.block.insts):
        b.emit(EMPTY, NOTHING, (NO_DESCRIPTOR, NOTHING, NOT_UPT, END), attrs={"warp": 1})


def _wait(b: Builder, inst: PtxInst) -> None:
    n = max(0, min(_flag(b, inst, inst.operands[0]), _MOST))
    b.emit("WARPGROUP.DEPBAR.LE", (), (END, Imm("I", n)), uses=_fragments_in_use(b), attrs={"warp": 1})


def _fragments_in_use(b: Builder) -> tuple[Operand, ...]:
    """The fragments that products since the last full wait read: they must keep their registers until here.
    Accumulators are used later in any case. They are not named here, because then an accumulator that is copied to the
    next block could not share its registers."""
    found: dict[int, Operand] = {}
    for block in reversed(b.fn.blocks):
        for made in reversed(block.insts):
            if made.op == "WARPGROUP" and "DEPBAR" in made.mods and made.srcs[1] == Imm("I", 0):
                return tuple(found.values())
            if made.op in PRODUCTS:
                _note(made, found)
    return tuple(found.values())


def _note(made: Inst, found: dict[int, Operand]) -> None:
    for o in made.srcs:
        if type(o) is Reg and o.file == "R" and o.num >= 0 and o not in made.dsts:
            found[o.num] = o._replace(flags=0)


def wgmma(b: Builder, inst: PtxInst) -> None:
    """wgmma.fence, mma_async, commit_group and wait_group."""
    if not b.has("warpgroup-mma"):
        raise b.unsupported(inst)
    what = inst.mods[0]
    b.ctx.unit.attrs["isa_class"] = 4
    with b.region():
        if what == "fence":
            b.emit("WARPGROUP.ARRIVE", attrs={"warp": 1})
        elif what == "mma_async":
            _product(b, inst)
        elif what == "commit_group":
            _commit(b, inst)
        elif what == "wait_group":
            _wait(b, inst)
        else:
            raise b.unsupported(inst)


RULES: dict[str, Rule] = {"wgmma": wgmma}
