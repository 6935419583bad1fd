"""Multicast objects: loads that reduce over their copies, stores and reductions to all of them. Measured with ptxas
13.0.88."""

from __future__ import annotations

from ir_format import ptx
from ir_format.model import Mem, Reg
from ir_format.ptx import PtxInst
from stages.lower.builder import Builder, Rule
from stages.lower.elements import gather, put, vector_of
from stages.lower.memory import acquired, fence, order_mods, order_of, wide_address
from stages.lower.rules.bulk import REDUCTIONS, bulk

_MC_HALF = {"f16": "F16", "bf16": "BF16", "f16x2": "F16", "bf16x2": "BF16"}
_MC_BYTE = {"e4m3": "E4M3", "e5m2": "E5M2"}
_MC_INT = {"u32": "32", "b32": "32", "s32": "S32", "u64": "64", "b64": "64", "s64": "S64"}
_RED_INT = {"u32": "", "b32": "", "s32": ".S32", "u64": ".64", "b64": ".64", "s64": ".S64"}


def multimem(b: Builder, inst: PtxInst) -> None:
    """multimem.ld_reduce, .st and .red; a bulk copy is one to global memory, a bulk reduction one with an
    order (as in ptxas 13.5's code)."""
    b.need(inst, "multimem")
    if inst.mods[0] == "cp":
        bulk(
            b,
            PtxInst(
                "cp", (*inst.mods[1:], "multimem"), inst.types, inst.operands, inst.guard, inst.line, inst.loc, inst.row
            ),
        )
        return
    what = inst.mods[0]
    t = inst.types[-1]
    count = next((int(m[1:]) for m in inst.mods if m in ("v2", "v4", "v8")), 1)
    bits = b.bits(t) * count
    least = 8 if inst.has("async") else 32
    if bits < least or bits > 128 or bits & bits - 1:
        raise b.unsupported(inst)
    op = next((m for m in inst.mods[1:] if m in REDUCTIONS), "")
    o = order_of(inst, "weak" if what == "st" else "relaxed")
    if o.sem == "release":
        fence(b, "ALL", o.scope)
    order = ".".join(order_mods(b, o))
    if what == "ld_reduce":
        d = b.r(bits // 32)
        at = Mem(
            "M",
            b.in_reg(b.src(_base(b, inst, inst.operands[1]), "u64"), 2),
            Reg("UR", -1, 0, 2),
            _offset(inst.operands[1]),
        )
        b.emit(f"LDGMC.E.{_reduction(b, inst, op, t, bits)}.STRONG.SYS", d, (at,))
        acquired(b, o, (d,))
        for i, e in enumerate(vector_of(inst.operands[0])):
            put(b, e, d, i * b.bits(t) // 8, t)
        return
    at = wide_address(b, b.src(_base(b, inst, inst.operands[0]), "u64"), _offset(inst.operands[0]))
    data = gather(b, vector_of(inst.operands[1]), t)
    if what == "st":
        size = {8: ".U8", 16: ".U16", 32: "", 64: ".64", 128: ".128"}[bits]
        b.emit(f"STG.E{size}" + (f".{order}" if order else ""), (), (at, data))
    elif what == "red":
        b.emit(f"REDG.E.{_red(b, inst, op, t, bits)}.{order}", (), (at, data))
    else:
        raise b.unsupported(inst)


def _base(b: Builder, inst: PtxInst, x: ptx.Operand) -> ptx.Operand:
    if not isinstance(x, ptx.Addr):
        raise b.unsupported(inst, "address")
    return x.base if not isinstance(x.base, ptx.Sym) else ptx.Sym(x.base.name, x.base.offset)


def _offset(x: ptx.Operand) -> int:
    assert isinstance(x, ptx.Addr)
    return x.offset


def _lanes(name: str, n: int) -> str:
    return f"{name}x{n}" if n > 1 else name


def _reduction(b: Builder, inst: PtxInst, op: str, t: str, bits: int) -> str:
    """Operation and type of LDGMC; a wider accumulator has names of its own (sm_90: F32ADD)."""
    if t in _MC_INT:
        return f"{REDUCTIONS[op]}.{_MC_INT[t]}"
    wide = any(m.startswith("acc::") for m in inst.mods)
    how = ("HPADD" if b.has("multimem-bytes") else "F32ADD") if wide else REDUCTIONS[op]
    if t in ("f32", "f64"):
        return f"{how}.{_lanes(t.upper(), bits // b.bits(t))}.RN"
    if t in _MC_HALF:
        return f"{how}.{_MC_HALF[t]}x{bits // 16}.RN"
    byte = _MC_BYTE.get(t.partition("x")[0])
    if byte is None or not b.has("multimem-bytes"):
        raise b.unsupported(inst)
    return f"{how}.{byte}x{bits // 8}.RN"


def pulled(b: Builder, inst: PtxInst) -> tuple[str, int]:
    """Operation of a load that reduces whole words over the copies, and its bits: integers one at a time, floats as
    many as 128 bits hold. There is no word for the type that it adds in (both as in ptxas 13.5's code)."""
    t = inst.types[0]
    bits = b.bits(t) if t in _MC_INT else 128
    mods = tuple([m for m in inst.mods if not m.startswith("acc::")])
    plain = PtxInst(inst.op, mods, inst.types, inst.operands, inst.guard, inst.line, inst.loc, inst.row)
    return _reduction(b, plain, next(m for m in inst.mods if m in REDUCTIONS), t, bits), bits


def _red(b: Builder, inst: PtxInst, op: str, t: str, bits: int) -> str:
    if t in _RED_INT:
        return REDUCTIONS[op] + _RED_INT[t]
    if t == "f64":
        return "ADD.F64.RN"
    if t == "f32":
        return f"ADD.{_lanes('F32', bits // 32)}.FTZ.RN"
    if t in _MC_HALF:
        return f"{REDUCTIONS[op]}.{_MC_HALF[t]}x{bits // 16}.RN"
    raise b.unsupported(inst)


RULES: dict[str, Rule] = {"multimem": multimem}
