"""Addresses and orderings of memory instructions: shared by loads, stores and atomics."""

from __future__ import annotations

from collections.abc import Iterable

from ir_format import ptx
from ir_format.model import RZ, Const, Imm, Mem, Name, Operand, Reg
from ir_format.ptx import PtxInst, PtxParam, PtxVar
from ir_format.record import NamedTuple
from ir_format.target import CONST_MAX
from ir_format.typed import TypeAlias
from stages.lower.abi.arguments import param_base
from stages.lower.abi.frame import local_place
from stages.lower.builder import Builder
from stages.lower.spaces import descriptor, shared_place, space_name, to_generic

_OFFSET_MIN, _OFFSET_END = -(1 << 23), 1 << 23

# PTX scope -> SASS scope; the SM-level one is printed CTA on sm_75.
SCOPES = {"cta": "SM", "cluster": "GPU", "gpu": "GPU", "sys": "SYS"}
# cluster: guessed to be GPU scope, the next wider one that exists everywhere.


class Where(NamedTuple):
    """A resolved address: ``space`` after resolution, and the SASS operand (Mem, or Const for const and kernel
    parameters)."""

    space: str
    at: Mem | Const


class Order(NamedTuple):
    """Memory semantics of an instruction: ``sem`` weak, relaxed, acquire, release, acq_rel, volatile or mmio; ``scope``
    cta, gpu..."""

    sem: str
    scope: str


def order_of(inst: PtxInst, default: str = "weak") -> Order:
    """The memory semantics of the modifiers."""
    sem, scope = default, ""
    for m in inst.mods:
        if m in ("weak", "relaxed", "acquire", "release", "acq_rel", "volatile", "mmio") and not (
            m == "relaxed" and sem == "mmio"
        ):
            sem = m
        elif m in SCOPES and not scope:
            scope = m
    if sem == "volatile" or (not scope and sem in ("mmio",)):
        scope = "sys"
    return Order(sem, scope or ("gpu" if sem not in ("weak", "volatile") else "sys"))


def order_mods(b: Builder, o: Order) -> list[str]:
    """Modifiers of a load or store; sm_75 always names a scope."""
    scope = "CTA" if b.has("load-unsigned-named") and o.scope == "cta" else SCOPES[o.scope]
    if o.sem == "weak":
        return ["SYS"] if b.has("load-unsigned-named") else []
    return ["MMIO" if o.sem == "mmio" else "STRONG", scope]


def fence(b: Builder, kind: str, scope: str) -> None:
    """MEMBAR of a scope, with the instructions that must follow it. ``kind``: SC or ALL."""
    s = {"cta": "CTA", "cluster": "GPU", "gpu": "GPU", "sys": "SYS"}[scope]
    b.emit(f"MEMBAR.{kind}.{s}")
    if s != "CTA":
        b.emit("ERRBAR")
        if b.has("clusters"):
            b.emit("CGAERRBAR")


def invalidate(b: Builder) -> None:
    """Invalidate L1, after an acquire with a scope wider than the CTA."""
    b.emit("CCTL.IVALL")


def acquired(b: Builder, o: Order, got: Iterable[Operand]) -> None:
    """Finish an access that acquires: no later access may start before ``got`` is available. In a CTA, a NOP waits for
    it (measured); for wider scopes, L1 is invalidated."""
    if o.sem not in ("acquire", "acq_rel"):
        return
    if o.scope != "cta":
        invalidate(b)
        return
    b.emit(
        "NOP",
        uses=tuple(dict.fromkeys(r for r in got if type(r) is Reg and r.file == "R" and r.num >= 0)),
        attrs={"fence": 1},
    )


def mark_strong(b: Builder, o: Order, since: int) -> None:
    """Mark volatile and atomic accesses to shared memory, which have no field for their semantics: they are not moved
    out of loops, merged or reordered."""
    if o.sem != "weak":
        for i in b.block.insts[since:]:
            if i.op in ("LDS", "STS"):
                i.attrs = {**(i.attrs or {}), "strong": 1}


def resolve(b: Builder, inst: PtxInst, x: ptx.Operand) -> Where:
    """The address of a memory instruction (not of the .param space of functions)."""
    space = space_name(inst.mods)
    if isinstance(x, ptx.Bracket) and len(x.parts) == 1:
        x = x.parts[0]
    if not isinstance(x, ptx.Addr):
        raise b.unsupported(inst, "address form")
    if space in ("", "global") and isinstance(x.base, ptx.Sym):
        return _symbol(b, inst, x, space)
    if space in ("", "global"):
        return Where(space or "generic", wide_address(b, b.src(x.base, "u64"), x.offset))
    if isinstance(x.base, ptx.Sym):
        return _symbol(b, inst, x, space)
    base = b.src(x.base, "u64" if isinstance(x.base, ptx.Imm) else "u32")
    return _narrow(b, inst, space, base, x.offset)


def wide_address(b: Builder, base: Reg | Imm, offset: int) -> Mem:
    """``[base.64 + offset]`` with the descriptor."""
    if type(base) is Imm or not _OFFSET_MIN <= offset < _OFFSET_END:
        from stages.lower.rules.integer import add64

        if type(base) is Imm:
            base = b.in_reg(Imm("I", (base.value + offset) & (1 << 64) - 1), 2)
        else:
            t = b.r(2)
            add64(b, t, base, Imm("I", offset & (1 << 64) - 1))
            base = t
        offset = 0
    base = b.in_reg(base, 2)
    return Mem("M", base, None, offset, descriptor(b))


def with_policy(b: Builder, at: Mem, x: ptx.Operand) -> Mem:
    """The address with a cache policy (64 bits) instead of the descriptor, as in ptxas's code (measured)."""
    policy = b.in_reg(b.src(x, "b64"), 2)
    u = b.ur(2)
    for i in range(2):
        b.emit("R2UR", u._replace(sub=i, width=1), (b.word(policy, i),))
    return at._replace(desc=u)


def _narrow(b: Builder, inst: PtxInst, space: str, base: Reg | Imm, offset: int) -> Where:
    """A 32-bit address: shared, local, const, kernel parameter, or the cluster's shared memory."""
    if space == "shared::cluster":
        high, pair = b.r(), b.r(2)
        b.emit("S2R", high, (Name("N", "SR_SWINHI"),))
        b.copy(b.lo_r(pair), b.lo(base))
        b.copy(b.hi_r(pair), high)
        return Where("generic", wide_address(b, pair, offset))
    if type(base) is Imm:
        low: Reg | None = None
        offset += base.value
    else:
        low = b.lo(base)  # type: ignore[assignment]
    if space == "param" and not b.pf.entry:
        space = "local"  # an argument whose address is taken is in the frame
    if space in ("const", "param"):
        bank = 3
        if space == "param":
            bank = 0
            offset += param_base(b)
        return Where(space, _in_bank(b, bank, low, offset))
    return _windowed(b, space, low, offset)


def _in_bank(b: Builder, bank: int, low: Reg | None, offset: int) -> Const:
    """A word of a constant bank. An offset that the field can't hold is added to the register (an address has 32 bits;
    higher bits are dropped)."""
    if not 0 <= offset < (CONST_MAX if low is None else 0x8000):
        low, offset = _folded(b, low or RZ, offset), 0
    return Const("C", bank, offset, 1, low)


def _windowed(b: Builder, space: str, low: Reg | None, offset: int) -> Where:
    """A place in shared or local memory, with the same treatment of the offset."""
    if not _OFFSET_MIN <= offset < _OFFSET_END:
        low, offset = _folded(b, low or RZ, offset), 0
    return Where(space, Mem("M", low, None, offset))


def _folded(b: Builder, low: Reg, offset: int) -> Reg:
    d = b.r()
    b.emit("IADD3", d, (low, Imm("I", offset & 0xFFFFFFFF), RZ))
    return d


def _symbol(b: Builder, inst: PtxInst, x: ptx.Addr, space: str) -> Where:
    assert isinstance(x.base, ptx.Sym)
    sym = ptx.Sym(x.base.name, x.base.offset + x.offset)
    kind, decl = b.ctx.find(b, sym.name)
    if sym.name in b.local_offset and isinstance(decl, PtxParam):
        frame, at = local_place(b, sym.name, sym.offset)
        return _windowed(b, "local", frame, at)
    if isinstance(decl, PtxParam) and kind == "param":
        if not b.pf.entry or space not in ("param", ""):
            raise b.unsupported(inst, "parameter address")
        return Where("param", _in_bank(b, 0, None, param_base(b) + decl.offset + sym.offset))
    if not isinstance(decl, PtxVar):
        raise b.unsupported(inst, f"address of '{sym.name}'")
    own = decl.space
    if space in ("", "global") and own != "global":
        return Where("generic", wide_address(b, to_generic(b, own, b.ctx.address_of(b, ptx.Sym(sym.name))), sym.offset))
    if own == "global":
        return Where("global", wide_address(b, b.ctx.address_of(b, ptx.Sym(sym.name)), sym.offset))
    if own == "shared":
        base, at = shared_place(b, sym.name, sym.offset)
        if space == "shared::cluster":
            return _narrow(b, inst, space, base if base is not None else Imm("I", 0), at)
        return _windowed(b, "shared", base, at)
    if own == "local":
        base, at = local_place(b, sym.name, sym.offset)
        return _windowed(b, "local", base, at)
    if own == "const":
        if not 0 <= sym.offset < CONST_MAX:
            return Where("const", Const("C", 3, 0, 1, b.lo(b.ctx.address_of(b, sym))))  # type: ignore[arg-type]
        b.ctx.use_symbol(sym.name)
        return Where("const", Const("C", 3, sym.offset, 1, None, 0, sym.name))
    raise b.unsupported(inst, f"address of '{sym.name}'")


#: A `.param` variable in registers: name, declaration, offset into it.
FunctionParam: TypeAlias = "tuple[str, PtxParam | PtxVar, int]"


def function_param(b: Builder, x: ptx.Operand) -> FunctionParam | None:
    """What is accessed, if the address is a `.param` variable in registers."""
    if not isinstance(x, ptx.Addr) or not isinstance(x.base, ptx.Sym):
        return None
    kind, decl = b.ctx.find(b, x.base.name)
    if isinstance(decl, PtxParam) and x.base.name in b.local_offset:
        return None
    if (kind == "param" and not b.pf.entry) or (isinstance(decl, PtxVar) and decl.space == "param"):
        return x.base.name, decl, x.base.offset + x.offset  # type: ignore[return-value]
    return None
