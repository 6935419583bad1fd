"""The widths of PTX's types, in bits. Every stage and the interpreter read them from here.

Sources: the PTX ISA manual; a packed type counts with all its elements, and a small float of a matrix product with the
container that it has in a register (e2m1 alone: 8 bits).
"""

from __future__ import annotations

from ir_format.typed import Final

TYPE_BITS: Final[dict[str, int]] = {
    **{f"{kind}{bits}": bits for kind in "bus" for bits in (8, 16, 32, 64, 128)},
    **{"pred": 1, "b1": 1, "s4": 4, "u4": 4},
    **{"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64},
    **{"f16x2": 32, "bf16x2": 32, "u16x2": 32, "s16x2": 32, "u8x4": 32, "s8x4": 32, "s2f6x2": 16, "f32x2": 64},
    **{"e4m3": 8, "e5m2": 8, "e3m2": 8, "e2m3": 8, "e2m1": 8, "bf8": 8},
    **{"e4m3x2": 16, "e5m2x2": 16, "e2m3x2": 16, "e3m2x2": 16, "ue8m0x2": 16, "ue5m3x2": 16, "e2m1x2": 8},
    **{"e4m3x4": 32, "e5m2x4": 32, "e2m3x4": 32, "e3m2x4": 32, "e2m1x4": 16, "e2m1p4x4": 32, "ue8m0x4": 32},
}
