"""Tensor maps in memory: their fields, and their publication.

The places of the fields in the 128 bytes of a map were measured with ptxas 13.0.88: the same on sm_90a, sm_100a and
sm_120a.
"""

from __future__ import annotations

from ir_format import ptx
from ir_format.model import PT, RZ, Imm, Mem, Name, Reg
from ir_format.ptx import PtxInst
from ir_format.typed import Final
from stages.lower.builder import Builder, Rule
from stages.lower.memory import SCOPES, resolve
from stages.lower.rules.bulk import shared_word, told, wide_word
from stages.lower.rules.integer import Val, add64, logic

#: Field of a map: (byte offset of its word, shift, mask). An enumerated or plain value is stored unchanged. Measured,
#: the same on all targets.
_FIELDS: Final[dict[str, tuple[int, int, int]]] = {
    "rank": (8, 4, 0x70), "interleave_layout": (8, 11, 0x1800), "swizzle_mode": (8, 13, 0x6000),
    "fill_mode": (8, 15, 0x8000), "swizzle_atomicity": (8, 19, 0x380000),
    "elemtype": (8, 7, 0x780),
}  # fmt: skip
#: Other changes: (mask, value) of the same word. Element types 11 and 12 are 7 and 8 with a bit; higher ones continue
#: from 11 (measured).
_ROUNDED: Final = 0x10000
_SWIZZLE_FLAG: Final = 0x400000
_ACCESS: Final = {"global": ("LDG.E", "STG.E"), "generic": ("LD.E", "ST.E"), "shared": ("LDS", "STS")}


def tensormap(b: Builder, inst: PtxInst) -> None:
    """tensormap.replace and tensormap.cp_fenceproxy: plain accesses to the 128 bytes of a map."""
    b.need(inst, "tensor-maps")
    if inst.has("cp_fenceproxy"):
        _publish(b, inst)
        return
    told(b, 2)
    field = next((m for m in inst.mods if m in _FIELDS or m in _INDEXED or m == "global_address"), "")
    where = resolve(b, inst, inst.operands[0])
    if not field or not isinstance(where.at, Mem) or where.space not in _ACCESS:
        raise b.unsupported(inst)
    word = _Word(b, where.space, where.at)
    x = inst.operands[-1]
    if field == "global_address":
        b.emit(_ACCESS[where.space][1] + ".64", (), (where.at, b.in_reg(b.src(x, "b64"), 2)))
    elif field in _FIELDS:
        at, shift, mask = _FIELDS[field]
        v = b.src(x, "b32")
        if field == "elemtype":
            assert isinstance(v, Imm)
            more = v.value in (11, 12)
            n = v.value - 4 if more else v.value - 2 if v.value > 12 else v.value
            word.put(at, mask | (_ROUNDED if more else 0), Imm("I", n << shift | (_ROUNDED if more else 0)))
        elif type(v) is Imm:
            word.put(at, mask | (_SWIZZLE_FLAG if field == "swizzle_mode" else 0), Imm("I", v.value << shift & mask))
        else:
            word.put(at, mask, _shifted(b, v, shift))
    else:
        _indexed(b, inst, field, word)


#: Fields by dimension: how many there are.
_INDEXED: Final = {"box_dim": 5, "global_dim": 5, "element_stride": 5, "global_stride": 4}


def _indexed(b: Builder, inst: PtxInst, field: str, word: _Word) -> None:
    """Dimensions and strides. Sizes are stored minus one, strides in units of 16 bytes, with the upper four bits in
    another word (measured)."""
    n = inst.operands[1]
    if not isinstance(n, ptx.Imm) or not 0 <= n.value < _INDEXED[field]:
        raise b.unsupported(inst)
    i = n.value
    if field == "global_stride":
        v = b.in_reg(b.src(inst.operands[2], "b64"), 2)
        low, high = b.r(), b.r()
        b.emit("SHF.R.U64", low, (b.lo_r(v), Imm("I", 4), b.hi_r(v)))
        b.emit("SHF.R.U32.HI", high, (RZ, Imm("I", 4), b.hi_r(v)))
        word.store(0x0C + 4 * i, low)
        word.put(0x1C, 0xF << 4 * i, _shifted(b, high, 4 * i))
        return
    less = b.r()
    b.emit("IADD3", less, (b.in_reg(b.src(inst.operands[2], "b32")), Imm("I", 0xFFFFFFFF), RZ))
    if field == "global_dim":
        word.store(0x20 + 4 * i, less)
    elif field == "element_stride":
        word.put(0x34, 7 << 3 * i, _shifted(b, less, 3 * i))
    elif i == 0:
        word.put(0x34, 0xFF000000, _shifted(b, less, 24))
    else:
        word.put(0x38, 0xFF << 8 * (i - 1), _shifted(b, less, 8 * (i - 1)))


def _shifted(b: Builder, x: Val, n: int) -> Reg:
    if not n:
        return b.in_reg(x)
    d = b.r()
    b.emit("SHF.L.U32", d, (b.in_reg(x), Imm("I", n), RZ))
    return d


class _Word:
    """Words of a map in memory."""

    __slots__ = ("at", "b", "load_op", "store_op")

    def __init__(self, b: Builder, space: str, at: Mem) -> None:
        self.b = b
        self.at = at
        self.load_op, self.store_op = _ACCESS[space]

    def store(self, offset: int, x: Reg) -> None:
        """Replace a word."""
        self.b.emit(self.store_op, (), (self.at._replace(offset=self.at.offset + offset), x))

    def put(self, offset: int, mask: int, x: Val) -> None:
        """Replace the bits of a mask in a word."""
        b = self.b
        old, new = b.r(), b.r()
        b.emit(self.load_op, old, (self.at._replace(offset=self.at.offset + offset),))
        logic(b, new, 0xB8, old, Imm("I", mask), x)
        self.store(offset, new)


def _publish(b: Builder, inst: PtxInst) -> None:
    """tensormap.cp_fenceproxy: each thread of the warp exchanges its word of the copy, at the scope given."""
    scope = next((m for m in inst.mods if m in SCOPES), "")
    x = inst.operands[2] if len(inst.operands) > 2 else None
    if not scope or not isinstance(x, ptx.Imm) or x.value != 128:
        raise b.unsupported(inst)
    with b.region():
        src, to = shared_word(b, inst, inst.operands[1]), wide_word(b, inst, inst.operands[0])
        lane, step, at, wide, v = b.r(), b.r(2), b.r(), b.r(2), b.r()
        b.emit("S2R", lane, (Name("N", "SR_LANEID"),))
        b.emit("SHF.L.U32", b.lo_r(step), (lane, Imm("I", 2), RZ))
        b.copy(b.hi_r(step), RZ)
        b.emit("IADD3", at, (b.lo_r(step), src, RZ))
        b.emit("LDS", v, (Mem("M", at, None, 0),), attrs={"warp": 1})
        add64(b, wide, to, step)
        strength = "SYS" if scope == "sys" else "GPU"  # also for .cta
        b.emit(
            f"ATOMG.E.EXCH.STRONG.{strength}", (PT, RZ), (Mem("M", wide, None, 0), v)
        )  # without descriptor (measured)


RULES: dict[str, Rule] = {"tensormap": tensormap}
