"""Value checks: ranges and multiples of constants, named by the table's last column.

Each takes the instruction's name, modifiers and operands, and gives messages.  Ranges measured on ptxas 13.0.
"""

from __future__ import annotations

from collections.abc import Callable

from ir_format.late_pattern import late_pattern
from ir_format.ptx import Bracket, Imm, ImmF32, ImmF64, Neg, Operand, Part, Vec
from ir_format.typed import Final

Check = Callable[[str, tuple[str, ...], tuple[Operand, ...]], list[str]]
_U64 = (1 << 64) - 1


def _constant(operands: tuple[Operand, ...], index: int) -> int | None:
    if index < len(operands):
        x = operands[index]
        if isinstance(x, Imm):
            return x.value
    return None


def barrier(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
    """Barrier number 0 to 15; thread count a multiple of the warp size."""
    first = 1 if "red" in name else 0
    out: list[str] = []
    number = _constant(operands, first)
    if number is not None and not 0 <= number <= 15:
        out.append(f"Barrier number '{number & _U64}' out of range, expected to be in range [0..15]")
    count = _constant(operands, first + 1)
    last = len(operands) - 1 if "red" in name else len(operands)
    if count is not None and first + 1 < last and count % 32:
        out.append("Number of threads participating in barrier must be in multiple of warp size")
    return out


def _within(index: int, low: int, high: int) -> Check:
    def check(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
        value = _constant(operands, index)
        if value is None or low <= value <= high:
            return []
        return [
            (
                f"Argument {index} of instruction '{name}': value '{value}' out of range, "
                f"expected to be in range [{low}..{high}]"
            )
        ]

    return check


def _among(index: int, *values: int, shown: int = 0) -> Check:
    def check(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
        value = _constant(operands, index)
        if value is None or value in values:
            return []
        allowed = " or ".join([str(v) for v in values])
        place = shown or index
        return [f"Argument {place} of instruction '{name}': unexpected value '{value}', expected to be {allowed}"]

    return check


def _everyone(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
    """The mask of threads of a reduction that the whole warp makes."""
    value, every = _constant(operands, 4), 0xFFFFFFFF
    head = f"Argument 5 of instruction '{name}': unexpected value '{value}', expected to be '{every}'"
    return [] if value is None or value & every == every else [head]


def _copy_size(*values: int) -> Check:
    """`cp.async`: the size, and that of its source, which is not greater."""
    size = _among(2, *values)

    def check(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
        return size(name, mods, operands) or _within(3, 0, _constant(operands, 2) or 0)(name, mods, operands)

    return check


def maxnreg(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
    """Register count 24 to 256 in steps of 8."""
    value = _constant(operands, 0)
    if value is None:
        return []
    if value % 8:
        return [f"Argument 1 of instruction '{name}': unexpected value '{value}', expected to be multiple of 8"]
    if not 24 <= value <= 256:
        return [f"Argument 1 of instruction '{name}': value '{value}' out of range, expected to be in range [24..256]"]
    return []


def bit_field(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
    """Position and length of a bit field: 0 to 255."""
    return _within(2, 0, 255)(name, mods, operands) + _within(3, 0, 255)(name, mods, operands)


def fraction(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
    """A fraction above 0, at most 1."""
    from stages.parse.expr import f32_value, f64_from_bits

    if len(operands) < 2:
        return []
    x = operands[1]
    if isinstance(x, ImmF32):
        value = f32_value(x.bits)
    elif isinstance(x, ImmF64):
        value = f64_from_bits(x.bits)
    else:
        return []
    if 0 < value <= 1:
        return []
    return [
        (
            f"Argument 2 of instruction '{name}': value '{value:f}' out of range, "
            f"expected to be in range (0.000000 .. 1.000000]"
        )
    ]


def sparse(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
    """The sparsity selector of mma.sp."""
    value = _constant(operands, 5)
    if value is None or 0 <= value <= 3:
        return []
    return [f"Argument 6 of instruction 'Sparse mma': value '{value}' out of range, expected to be in range [0..3]"]


#: Places of a scale's bytes that a `scale_vec` of this many of them may name.
_BYTES: Final = {"1X": (0, 1, 2, 3), "2X": (0, 2), "4X": (0,)}


def scaled(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
    """Where the scales of a block-scaled mma are: which byte of the registers, and which threads hold them (0 or 1
    for A, 0 to 3 for B)."""
    vector = next(
        (m.partition("::")[2] for m in mods if m.startswith("scale_vec::")), "1X" if "kind::mxf8f6f4" in mods else "2X"
    )
    allowed = _BYTES[vector]
    out: list[str] = []
    for index, last in ((len(operands) - 3, 1), (len(operands) - 1, 3)):
        ids = operands[index]
        if not isinstance(ids, Vec) or len(ids.elems) != 2:
            continue
        byte, thread = ids.elems
        head = f"Argument {index} of instruction '{name}':"
        if isinstance(byte, Imm) and byte.value not in allowed:
            listed = " or ".join([str(v) for v in allowed])
            wrong = (
                f"value '{byte.value}' out of range, expected to be in range [0..3]"
                if len(allowed) == 4
                else f"unexpected value '{byte.value}', expected to be {listed}"
            )
            out.append(f"{head} {wrong}")
        if isinstance(thread, Imm) and not 0 <= thread.value <= last:
            out.append(f"{head} value '{thread.value}' out of range, expected to be in range [0..{last}]")
    return out


_OFFSETS: Final = {"3d": 1, "4d": 2, "5d": 3}
_FIELDS: Final = {
    "elemtype": 15, "interleave_layout": 2, "swizzle_mode": 3, "fill_mode": 1, "swizzle_atomicity": 3,
    "box_dim": 4, "global_dim": 4, "element_stride": 4, "global_stride": 4,
}  # fmt: skip


def _multiple(index: int, unit: int) -> Check:
    def check(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
        value = _constant(operands, index)
        if value is None or value % unit == 0:
            return []
        return [
            f"Argument {index} of instruction '{name}': unexpected value '{value}', expected to be multiple of {unit}"
        ]

    return check


def tensor(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
    """Coordinates as many as dimensions (five for gather and scatter), im2col offsets two fewer (two for `::w`)."""
    out: list[str] = []
    dim = next((m for m in mods if m in ("1d", "2d", "3d", "4d", "5d")), "1d")
    mode = next((m for m in mods if m.startswith(("im2col", "tile"))), "")
    place = 0
    for x in operands:
        if isinstance(x, Bracket):
            want = 5 if mode in ("tile::gather4", "tile::scatter4") else int(dim[0])
            place += 1
            have = len(x.parts[1].elems) if len(x.parts) > 1 and isinstance(x.parts[1], Vec) else 1
            if have != want:
                out.append(f"Argument {place} of instruction '{name}': Argument vector size mismatch")
        elif isinstance(x, Vec) and mode.startswith("im2col"):
            want = 2 if mode.startswith("im2col::w") else _OFFSETS.get(dim, 1)
            if len(x.elems) != want:
                out.append(f"Argument {place} of instruction '{name}': Argument vector size mismatch")
        place += 1
    return out


def tensormap(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
    """Ordinals and enumerations of tensor map fields."""
    field = next((m for m in mods if m in _FIELDS), "")
    value = _constant(operands, 1)
    if not field or value is None or 0 <= value <= _FIELDS[field]:
        return []
    return [
        f"Argument 1 of instruction '{name}': value '{value}' expected to be in range [0..{_FIELDS[field]}] "
        f"when .{field} modifier is used."
    ]


def wgmma(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
    """The scales are 1 or -1, the transposes 0 or 1."""
    out: list[str] = []
    first = next((k for k, x in enumerate(operands) if k > 2 and isinstance(x, Imm) and k > 3), len(operands))
    shown = f"{name} with floating point types"
    for k in range(max(first, 4), len(operands)):
        value = _constant(operands, k)
        low = -1 if k - first < 2 else 0
        if value is not None and value not in (low, 1):
            out.append(f"Argument {k} of instruction '{shown}': unexpected value '{value}', expected to be {low} or 1")
    return out


def wgmma_sparse(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
    """The sparsity selector: 0 for 8-bit types, else 0 to 3; then the scales."""
    value = _constant(operands, 4)
    out: list[str] = []
    if value is not None and any(m in ("e4m3", "e5m2", "u8", "s8") for m in mods):
        kind = "FP8" if any(m in ("e4m3", "e5m2") for m in mods) else "integer"
        if value:
            out.append(
                f"Argument 4 of instruction 'Sparse {name} with {kind} types': unexpected value '{value}', "
                f"expected to be 0"
            )
    elif value is not None and not 0 <= value <= 3:
        out.append(
            f"Argument 4 of instruction 'Sparse {name}': value '{value}' out of range, expected to be in range [0..3]"
        )
    return out + wgmma(name, mods, (*operands[:4], *operands[5:]))


def power_of_two(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
    """The alignment of alloca."""
    value = _constant(operands, 2)
    return ["Alignment must be a power of two"] if value is not None and (value <= 0 or value & (value - 1)) else []


# Selectors of the result (a mask) and of the first two sources, by the number of lanes.
_SELECTORS: Final = {
    "2": (late_pattern(r"h0|h1|h10"), late_pattern(r"h[0-3]{2}")),
    "4": (late_pattern(r"b(?=.)3?2?1?0?"), late_pattern(r"b[0-7]{4}")),
    "": (late_pattern(r"b[0-3]|h[01]"), late_pattern(r"b[0-3]|h[01]")),
}


def selectors(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
    """Which parts of a register a video instruction may name."""
    result, source = _SELECTORS[name[-1] if name[-1] in "24" else ""]
    out: list[str] = []
    for index, x in enumerate(operands):
        part = x.operand if isinstance(x, Neg) else x
        if isinstance(part, Part):
            if not (result if index == 0 else source).fullmatch(part.selector):
                out.append(f"Incorrect video selector for operand {index}")
            if index == 3:
                out.append("Video selector is not allowed on 'source C' operand")
    return out


def completion(name: str, mods: tuple[str, ...], operands: tuple[Operand, ...]) -> list[str]:
    """`st.async` with an mbarrier says how it completes there (a copy to the cluster without one is refused by its
    modifiers)."""
    if len(operands) < 3 or "mbarrier::complete_tx::bytes" in mods or "shared::cluster" in mods:
        return []
    return [f"Modifier '.shared::cluster' requires modifier '.completion_mechanism' for instruction '{name}'"]


CHECKS: Final[dict[str, Check]] = {
    "selectors": selectors,
    "barrier": barrier,
    "maxnreg": maxnreg,
    "bitfield": bit_field,
    "fraction": fraction,
    "sparse": sparse,
    "scaled": scaled,
    "pmevent": _within(0, 0, 15),
    "size16": _multiple(2, 16),
    "size16p": _multiple(1, 16),
    "columns": _multiple(1, 32),
    "completion": completion,
    "tensor": tensor,
    "tensormap": tensormap,
    "wgmma": wgmma,
    "wgmmasp": wgmma_sparse,
    "power2": power_of_two,
    "lut": lambda name, mods, operands: [],
    "size128": _among(1, 128, shown=2),
    "fence128": _among(2, 128),
    "zero2": _among(2, 0),
    "parity": _among(2, 0, 1),
    "everyone": _everyone,
    "cpsize": _copy_size(4, 8, 16),
    "cpsize16": _copy_size(16),
}
