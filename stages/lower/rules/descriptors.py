"""Queries of textures, samplers and surfaces that no instruction answers: the driver keeps a table for each, whose
address is in bank 0. The header's number counts its entries; their size is a symbol that the driver resolves.

Tables, sizes and places of the fields as measured on ptxas 13.0.
"""

from __future__ import annotations

from ir_format import ptx
from ir_format.model import RZ, Imm, Mem, Reg
from ir_format.ptx import PtxInst
from ir_format.typed import Final
from stages.lower.abi.frame import load_const
from stages.lower.builder import Builder
from stages.lower.headers import handle, separate
from stages.lower.spaces import descriptor

#: kind -> name of the size of an entry, and the distance of its table's address from the first one's.
_UNIFIED: Final = (".nv.unified.texrefDescSize", 0)
_TEXTURE: Final = (".nv.independent.texrefDescSize", 0)
_SAMPLER: Final = (".nv.independent.samplerrefDescSize", 8)
_SURFACE: Final = (".nv.surfrefDescSize", 16)
_FIELDS: Final[dict[tuple[str, int], dict[str, int]]] = {
    _UNIFIED: {
        "addr_mode_0": 0xC, "addr_mode_1": 0x10, "addr_mode_2": 0x14, "filter_mode": 0x18, "normalized_coords": 0x1C,
        "channel_data_type": 0x20, "channel_order": 0x24, "array_size": 0x28, "num_mipmap_levels": 0x2C,
        "num_samples": 0x30, "force_unnormalized_coords": 0,
    },
    _TEXTURE: {
        "normalized_coords": 0xC, "channel_data_type": 0x10, "channel_order": 0x14, "array_size": 0x18,
        "num_mipmap_levels": 0x1C, "num_samples": 0x20,
    },
    _SAMPLER: {
        "addr_mode_0": 0, "addr_mode_1": 4, "addr_mode_2": 8, "filter_mode": 0xC, "force_unnormalized_coords": 0x10,
    },
    _SURFACE: {"channel_data_type": 0xC, "channel_order": 0x10, "memory_layout": 0x14, "array_size": 0x1C},
}  # fmt: skip


def described(b: Builder, inst: PtxInst) -> None:
    """Load the field of the entry."""
    tables = (_SURFACE,) if inst.op == "suq" else (_TEXTURE, _SAMPLER) if separate(b) else (_UNIFIED,)
    table, what = next(((t, m) for t in tables for m in inst.mods if m in _FIELDS[t]), (None, ""))
    if table is None:
        raise b.unsupported(inst)
    symbol, behind = table
    dst, at = inst.operands[:2]
    number = _number(b, inst, at, table is _SAMPLER)
    size, base, entry, d = b.r(), b.r(2), b.r(2), b.r()
    b.emit("MOV", size, (Imm("I", 0, symbol, "off"),))
    load_const(b, base, 0, b.ctx.target.bank0.header_tables + behind)
    b.emit("IMAD.WIDE.U32", entry, (number, size, base))
    load = "LDG.E.CONSTANT.SYS" if b.has("load-unsigned-named") else "LDG.E.CONSTANT"
    b.emit(load, d, (Mem("M", entry, None, _FIELDS[table][what], descriptor(b)),))
    b.copy(b.dst(dst), d)


def _number(b: Builder, inst: PtxInst, at: ptx.Operand, sampler: bool) -> Reg:
    """The header's number. Where one word holds a texture's and a sampler's, the sampler's are the upper twelve bits,
    but the lower ones of a handle."""
    x = handle(b, inst, (at,)).texture
    word = b.r()
    if isinstance(x, int):
        load_const(b, word, 0, x)
    else:
        b.copy(word, x)
    if b.has("header-in-uniform"):
        return word
    d = b.r()
    if sampler and isinstance(x, int):
        b.emit("SHF.R.U32.HI", d, (RZ, Imm("I", 20), word))
    else:
        b.emit("LOP3.LUT", d, (word, Imm("I", 0xFFF if sampler else 0xFFFFF), RZ, Imm("I", 0xC0)))
    return d
