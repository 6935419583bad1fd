"""State spaces: addresses of symbols, and conversion between addresses of a space and generic addresses."""

from __future__ import annotations

from ir_format import ptx
from ir_format.diag import CompileError
from ir_format.model import RZ, Const, Imm, Name, Reg
from ir_format.ptx import PtxFunction, PtxProto, PtxVar
from ir_format.typed import TYPE_CHECKING
from stages.lower.abi.arguments import param_base, signature_text
from stages.lower.abi.calls import note
from stages.lower.abi.frame import in_prologue, load_const, local_place

if TYPE_CHECKING:
    from stages.lower.builder import Builder

_PARAM_END = 0x12C  # up to sm_89: the word of bank 0 that holds where the parameters end (measured)
SMEM_BASE = 0x400  # sm_90+: static shared memory starts here in the CTA's window (measured)


def space_name(mods: tuple[str, ...]) -> str:
    """The state space among an instruction's modifiers: global, shared, shared::cluster, local, const, param, or ''
    (generic)."""
    for m in mods:
        base, _, sub = m.partition("::")
        if base in ("global", "shared", "local", "const", "param"):
            return "shared::cluster" if (base, sub) == ("shared", "cluster") else base
    return ""


def descriptor(b: Builder) -> Reg | None:
    """The UR pair with the global-memory descriptor; None if the SM has none. Each block loads it at its first use; see
    :func:`place_descriptor`."""
    at = b.ctx.target.bank0.descriptor
    if at < 0:
        return None
    if b.desc_reg is None:
        reg = b.cache.get("desc")
        if reg is None:
            reg = b.cache["desc"] = b.ur(2)
        guard, b.guard = b.guard, None
        b.emit("LDCU.64" if b.has("uniform-const-load") else "ULDC.64", reg, (Const("C", 0, at, 2),), attrs={"desc": 1})
        b.guard = guard
        b.desc_reg = reg
    return b.desc_reg


def place_descriptor(b: Builder) -> None:
    """In a function without calls, keep one load of the descriptor, in the prologue."""
    reg = b.cache.get("desc")
    if reg is None or any(i.op == "CALL" for blk in b.fn.blocks for i in blk.insts):
        return
    one = None
    for blk in b.fn.blocks:
        kept = []
        for i in blk.insts:
            if i.attrs and "desc" in i.attrs:
                one = i
            else:
                kept.append(i)
        blk.insts = kept
    assert one is not None
    one.line, one.loc = b.pf.line, -1
    b.fn.blocks[0].insts.append(one)


def shared_base(b: Builder) -> Reg:
    """sm_90+: (SR_CgaCtaId << 24) + 0x400, computed in the prologue."""
    got = b.cache.get("shared_base")
    if got is None:
        with in_prologue(b):
            cta, got, start = b.r(), b.r(), b.r()
            b.emit("S2R", cta, (Name("N", "SR_CgaCtaId"),))
            b.emit("MOV", start, (Imm("I", b.ctx.target.smem_base),))
            b.emit("LEA", got, (cta, start, Imm("I", 24)))
        b.cache["shared_base"] = got
    return got


def shared_place(b: Builder, name: str, offset: int) -> tuple[Reg | None, int]:
    """(base, offset) of a byte of a shared variable, in the CTA's window."""
    if not b.ctx.relocatable:
        return shared_base(b) if b.ctx.target.smem_base else None, b.ctx.shared_offset(b, name) + offset
    own = any(v.name == name for v in b.pf.vars)
    symbol = b.ctx.shared_symbol(b.ctx.local_name(b.pf, name)) if own else b.ctx.use_symbol(name)
    got = b.cache.get("shared\0" + symbol)
    if got is None:
        with in_prologue(b):
            got = b.r()
            b.emit("MOV", got, (Imm("I", 0, symbol, "off"),))
            if b.ctx.target.smem_base:
                start, got, cta = got, b.r(), b.r()
                first = b.r()
                b.emit("IADD3", first, (start, Imm("I", b.ctx.target.smem_base), RZ))
                b.emit("S2R", cta, (Name("N", "SR_CgaCtaId"),))
                b.emit("LEA", got, (cta, first, Imm("I", 24)))
        b.cache["shared\0" + symbol] = got
    return got, offset


def _absolute(b: Builder, x: ptx.Sym) -> Reg:
    """An address that the linker fills in."""
    b.ctx.use_symbol(x.name)
    d = b.r(2)
    b.emit("MOV", b.word(d, 0), (Imm("I", x.offset & 0xFFFFFFFF, x.name, "lo"),))
    b.emit("MOV", b.word(d, 1), (Imm("I", x.offset & 0xFFFFFFFF, x.name, "hi"),))
    return d


def _local_address(b: Builder, x: ptx.Sym) -> Reg:
    start, at = local_place(b, x.name, x.offset)
    d = b.r(2)
    b.emit("IADD3", b.word(d, 0), (start, Imm("I", at & 0xFFFFFFFF), RZ))
    b.copy(b.hi_r(d), RZ)
    return d


def symbol_address(b: Builder, x: ptx.Sym) -> Reg | Imm:
    """The 64-bit address of a symbol in its space (the result of ``mov.u64 d, sym``)."""
    kind, decl = b.ctx.find(b, x.name)
    if kind == "param":
        if not b.pf.entry:
            return _local_address(b, x)
        return Imm("I", decl.offset + x.offset)  # type: ignore[attr-defined]
    if b.ctx.relocatable and (kind in ("func", "extern") or (isinstance(decl, PtxVar) and decl.space == "global")):
        if isinstance(decl, (PtxFunction, PtxProto)):
            note(b, "addresses", (x.name, signature_text(decl.rets, decl.params)))
        return _absolute(b, x)
    if kind == "func" or (kind == "extern" and b.ctx.pointer_to(x.name)):
        return Imm("I", b.ctx.pointer_to(x.name) + x.offset)
    if not isinstance(decl, PtxVar):
        raise CompileError(f"Address of external function '{x.name}' not supported by orias", b.line)
    if decl.space == "shared":
        base, at = shared_place(b, x.name, x.offset)
        if base is None:
            return Imm("I", at)
        d = b.r(2)
        b.emit("IADD3", b.word(d, 0), (base, Imm("I", at & 0xFFFFFFFF), RZ))
        b.copy(b.hi_r(d), RZ)
        return d
    if decl.space == "local":
        return _local_address(b, x)
    if decl.space == "const":
        b.ctx.use_symbol(x.name)
        d = b.r(2)
        b.emit("MOV", b.word(d, 0), (Imm("I", x.offset & 0xFFFFFFFF, x.name, "off"),))
        b.copy(b.hi_r(d), RZ)
        return d
    if decl.space == "global":
        b.ctx.use_symbol(x.name)
        d = b.r(2)
        load_const(b, d, 4, 0, x.name)
        if not x.offset:
            return d
        from stages.lower.rules.integer import add64

        out = b.r(2)
        add64(b, out, d, Imm("I", x.offset & (1 << 64) - 1))
        return out
    if decl.space == "tex" and b.pf.entry and not x.offset and not decl.fields and not b.ctx.relocatable:
        from stages.lower.headers import handle_of

        return handle_of(b, x.name, decl.type)
    raise CompileError(f"Address of '{x.name}' in space '.{decl.space}' not supported by orias", b.line)


# --------------------------------------------------------------------------- generic addresses


def window(b: Builder, space: str) -> Reg | None:
    """The 64-bit base of a window in the generic space, in a new Reg. The low word of the shared window's base is 0 on
    sm_90+."""
    bank = b.ctx.target.bank0
    d = b.r(2)
    if space == "shared" and bank.shared_window < 0:
        b.copy(b.lo_r(d), RZ)
        b.emit("S2R", b.word(d, 1), (Name("N", "SR_SWINHI"),))
        return d
    if space == "param":
        _param_generic(b, d, Imm("I", 0))
        return d
    at = {"shared": bank.shared_window, "local": bank.local_window, "const": bank.const_window}.get(space)
    if at is None:
        raise CompileError(f"Generic addresses of space '.{space}' not supported by orias", b.line)
    load_const(b, d, 0, at)
    return d


def param_bounds(b: Builder) -> tuple[Reg, Reg]:
    """The first and the last generic address of the kernel's parameters, as ptxas compares them (measured)."""
    from stages.lower.rules.integer import add64

    bank = b.ctx.target.bank0
    low, high = b.r(2), b.r(2)
    if not b.has("alu-const-words"):
        load_const(b, low, 0, bank.param_window)
        load_const(b, high, 0, bank.param_window + 8)
        return low, high
    base, size = b.r(2), b.r(2)
    load_const(b, base, 0, bank.param_window)
    load_const(b, b.lo_r(size), 0, _PARAM_END)
    b.copy(b.hi_r(size), RZ)
    add64(b, low, base, Imm("I", b.ctx.target.param_base(0)))
    add64(b, high, base, size)
    return low, high


def _param_generic(b: Builder, d: Reg, x: Imm) -> None:
    """``d`` <- the generic address of an offset in the parameters."""
    from stages.lower.rules.integer import add64

    bank = b.ctx.target.bank0
    base = b.r(2)
    load_const(b, base, 0, bank.param_window)
    add64(b, d, base, Imm("I", x.value + param_base(b) - bank.param_bias & (1 << 64) - 1))


def to_generic(b: Builder, space: str, x: Reg | Imm) -> Reg | Imm:
    """Generic address of an address in ``space`` (64-bit operand)."""
    if space == "global":
        return x
    if space == "param" and type(x) is Imm:
        d = b.r(2)
        _param_generic(b, d, x)
        return d
    base = window(b, space)
    assert base is not None
    from stages.lower.rules.integer import add64

    d = b.r(2)
    if space == "shared" and b.ctx.target.bank0.shared_window < 0:
        b.copy(b.lo_r(d), b.lo(x))
        b.copy(b.hi_r(d), b.hi(base))
        return d
    low = b.r(2)
    b.copy(b.lo_r(low), b.lo(x))
    b.copy(b.hi_r(low), RZ)
    add64(b, d, low, base)
    return d


def from_generic(b: Builder, space: str, x: Reg | Imm) -> Reg | Imm:
    """Address in ``space`` of a generic address (64 bits; high word 0 for the small spaces)."""
    if space == "global":
        return x
    d = b.r(2)
    bank = b.ctx.target.bank0
    if space == "shared" and bank.shared_window < 0:
        b.copy(b.lo_r(d), b.lo(x))
    else:
        base = window(b, space)
        assert base is not None
        from stages.lower.rules.integer import add32, negated

        add32(b, b.lo_r(d), b.in_reg(b.lo(x)), negated(b.lo(base)))
    b.copy(b.hi_r(d), RZ)
    return d
