"""The number of registers of the operands of a texture or surface instruction. It depends on modifiers and on other
operands.

A texture instruction has a list of values: array index and coordinates, then handle (``.B``), level of detail, offsets,
compare value, sample. Operand ``a`` holds array index and coordinates, ``b`` the rest. With ``.SCR`` (at most four
values) the list is split in the middle instead: ``a`` holds the first two values and ``b`` the others; of two values,
each holds one. TXD has handle, coordinates, and one register for array index and offsets in ``a``, and pairs of
derivatives in ``b``.

The results are the components of the mask, packed: the first two registers are ``d``, the others ``e``. ``.F16`` puts
two components into a register. Measured on ptxas 13.0 for every PTX form: each input was followed to its register
(tests/lower/texture_trace.py).
"""

from __future__ import annotations

from collections.abc import Callable

from ir_format.features import has
from ir_format.model import Imm, Mem, Name, Operand, Reg
from ir_format.typed import Final

#: (modifiers, operands by slot name, SM) -> registers by slot name
Rule = Callable[[tuple[str, ...], dict[str, Operand], int], dict[str, int]]

_COORDINATES: Final = {"1D": 1, "2D": 2, "3D": 3, "CUBE": 3, "ARRAY_1D": 2, "ARRAY_2D": 3, "ARRAY_CUBE": 4}
_SURFACE: Final = {"1D": 1, "1D_BUFFER": 1, "1D_ARRAY": 2, "2D": 2, "2D_ARRAY": 3, "3D": 3}
#: Modifiers that put a value into ``b``.
_VALUES: Final = {"B": 1, "LL": 1, "LB": 1, "LC": 1, "AOFFI": 1, "PTP": 2, "DC": 1, "MS": 1}


def header(sm: int) -> int:
    """Uniform registers that name texture and sampler: one up to sm_89, a pair from sm_90 on (measured)."""
    return 2 if has(sm, "header-two-uniforms") else 1


def results(mods: tuple[str, ...], mask: int) -> tuple[int, int]:
    """Registers of the first and of the second result operand."""
    count = max(mask.bit_count(), 1)
    if "F16" in mods:
        return 1, 1
    return min(count, 2), max(count - 2, 1)


def split(coordinates: int, values: int, scattered: bool) -> tuple[int, int]:
    """Registers of ``a`` and ``b``."""
    if not scattered:
        return coordinates, values
    count = coordinates + values
    first = 1 if count <= 2 else 2
    return first, count - first


def _common(mods: tuple[str, ...], ops: dict[str, Operand], sm: int) -> dict[str, int]:
    mask = ops.get("mask")
    d, e = results(mods, mask.value if isinstance(mask, Imm) else 15)
    return {"d": d, "e": e, "u": header(sm)}


def _coordinates(mods: tuple[str, ...], ops: dict[str, Operand]) -> int:
    geometry = ops.get("g")
    count = _COORDINATES.get(geometry.name, 1) if isinstance(geometry, Name) else 1
    return count - 1 if "UAI" in mods else count


def _fetch(mods: tuple[str, ...], ops: dict[str, Operand], sm: int) -> dict[str, int]:
    a, b = split(_coordinates(mods, ops), sum([_VALUES.get(m, 0) for m in mods]), "SCR" in mods)
    return {**_common(mods, ops, sm), "a": max(a, 1), "b": max(b, 1)}


def _gather(mods: tuple[str, ...], ops: dict[str, Operand], sm: int) -> dict[str, int]:
    rest = list(mods)
    rest.pop(1 if rest[0] == "SCR" else 0)  # the component, whose name may be B
    return _fetch(tuple(rest), ops, sm)


def _gradient(mods: tuple[str, ...], ops: dict[str, Operand], sm: int) -> dict[str, int]:
    geometry = ops.get("g")
    name = geometry.name if isinstance(geometry, Name) else "1D"
    plane = 2 if "2D" in name else 1
    extra = ("B" in mods) + (("ARRAY" in name and "UAI" not in mods) or "AOFFI" in mods)
    return {**_common(mods, ops, sm), "a": plane + extra, "b": 2 * plane}


def _query(mods: tuple[str, ...], ops: dict[str, Operand], sm: int) -> dict[str, int]:
    return {**_common(mods, ops, sm), "a": 2 if "B" in mods else 1}


def _surface(mods: tuple[str, ...], ops: dict[str, Operand], sm: int) -> dict[str, int]:
    return {"m": next((n for name, n in _SURFACE.items() if name in mods), 1), "u": 1}


RULES: Final[dict[str, Rule]] = {"tex": _fetch, "tld4": _gather, "txd": _gradient, "txq": _query, "sur": _surface}


def widen(rule: Rule, mods: tuple[str, ...], names: list[str], ops: list[Operand], sm: int) -> None:
    """Set the widths of the registers in ``ops``, in place."""
    widths = rule(mods, dict(zip(names, ops)), sm)
    for k, (name, o) in enumerate(zip(names, ops)):
        width = widths.get(name, 0)
        if not width:
            continue
        if isinstance(o, Reg):
            if o.width != width:
                ops[k] = o._replace(width=width)
        elif isinstance(o, Mem) and o.base is not None and o.base.width != width:
            ops[k] = o._replace(base=o.base._replace(width=width))
