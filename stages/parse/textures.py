"""Operands of texture and surface instructions: coordinates, offsets, gradients, the value to compare with.

A reference with its coordinates has the kind `a2:reference,coordinates` or `a2:reference,sampler,coordinates`.
All rules and texts were measured with ptxas 13.0.
"""

from __future__ import annotations

from ir_format.typed import Final
from stages.parse import compat
from stages.parse.targets import Target
from stages.parse.vectors import alien_neighbours, common, elements

ROLES: Final = frozenset(("tx", "toff", "tgrad", "tcmp"))
_REFERENCES: Final = frozenset(("a:v:texref", "a:v:surfref", "a:v:samplerref", "a:r:b64", "a:r:u64", "a:r:s64", "a:i"))
_SAMPLERS: Final = frozenset(k[2:] for k in _REFERENCES if k != "a:i")
# Geometry: coordinates, offsets and gradients that it has; the place of the array index (-1: none).
_GEOMETRY: Final[dict[str, tuple[int, int, int, int]]] = {
    "1d": (1, 1, 1, -1), "2d": (2, 2, 2, -1), "3d": (3, 3, 4, -1), "a1d": (2, 1, 1, 0), "a2d": (3, 2, 2, 0),
    "cube": (3, 3, 0, -1), "acube": (4, 3, 0, 0), "2dms": (3, 2, 0, -1), "a2dms": (4, 2, 0, 1),
}  # fmt: skip
_PLAIN: Final = {"tex": 2, "tex.base": 2, "tex.level": 3, "tex.grad": 4, "tld4": 2}  # operands before offsets
_INDEX: Final = frozenset(("i", "r:b32", "r:u32", "r:s32", "s:b32", "b:b32", "b:u32", "b:s32"))


def is_reference(kind: str) -> bool:
    """True for `[reference]` as a query takes it."""
    return kind in _REFERENCES


def split(kind: str) -> tuple[str, str, str]:
    """Reference, sampler ("" if there is none) and coordinates of an `a2:` kind."""
    base, _, rest = kind[3:].partition(",")
    if rest[:1] == "(":
        return base, "", rest
    sampler, _, coordinates = rest.partition(",")
    return (base, sampler, coordinates) if coordinates else (base, "", sampler)


def fits(role: str, type_: str, kind: str) -> bool:
    """True if the types of an operand agree with those of the instruction."""
    if role == "tx":
        if kind[:3] != "a2:":
            return False
        base, sampler, coordinates = split(kind)
        return base in _REFERENCES and (not sampler or sampler in _SAMPLERS) and _coordinates(type_, coordinates)
    if role == "toff":
        if kind[0] == "(":
            return _vector("s32", kind, False)
        return kind == "i" or (type_ == "s32" and kind[:2] == "r:" and kind[2:] in compat.STRICT["u32"])
    return _vector("f32", kind, False) if kind[0] == "(" else _scalar("f32", kind)  # gradients


def _coordinates(type_: str, kind: str) -> bool:
    if kind[0] == "(":
        return _vector(type_, kind, True)
    if kind[:2] == "v:":  # for textures refused by form
        return type_ in ("f32", "s32") and kind not in ("v:texref", "v:surfref", "v:samplerref")
    return kind[:2] == "r:" and _scalar(type_ if type_ == "f32" else "s32", kind)


def _scalar(type_: str, kind: str) -> bool:
    if kind[:2] == "r:":
        return kind[2:] in compat.STRICT[type_]
    return kind in compat.literals(type_)


def _vector(type_: str, kind: str, loose: bool) -> bool:
    """Elements against a type; `loose`: integers pass for floats."""
    found, _ = common(elements(kind))
    if loose and found[:2] == "r:" and found[2:] in compat.STRICT["u32"]:
        return True
    return bool(found) and _scalar("s32" if type_[0] != "f" else type_, found)


def problems(role: str, name: str, mods: tuple[str, ...], kind: str, target: Target) -> list[str]:
    """What is wrong with an operand whose types agree."""
    geometry = next((m for m in mods if m in _GEOMETRY), "1d")
    coordinates, offsets, gradients, index = _GEOMETRY[geometry]
    mismatch = f"Operand vector size doesn't match geometry for instruction '{name}'"
    if role == "tx":
        _, sampler, kind = split(kind)
        if sampler and geometry in ("cube", "acube") and not target.independent:
            return [f"Illegal modifier '.{geometry}' for instruction '{name}'"]
        if target.independent and name[0] == "t" and sampler not in ("v:samplerref", "r:b64", "r:u64", "r:s64"):
            return [f"Argument 2 of instruction '{name}': .samplerref or .u64 register expected"]
        if kind[:2] == "v:":
            return [f"Argument 2 of instruction '{name}': must be register"]
        if kind[0] != "(":
            return []
        if target.version < 12:  # PTX 1.0 and 1.1: four coordinates whatever the geometry
            short = [] if len(elements(kind)) == 4 else [f"Argument vector size mismatch for instruction '{name}'"]
        else:
            short = (
                [mismatch] * (1 if name in ("sust.b", "sust.p", "sured.b", "sured.p") else 2)
                if len(elements(kind)) < coordinates
                else []
            )
        return _elements(name, kind, index) + short
    if role == "tcmp":
        return [f"Illegal modifier '.{geometry}' for instruction '{name}'"] if geometry == "3d" else []
    if kind[0] != "(":
        return []
    size = len(elements(kind))
    if role == "tgrad":
        return _elements(name, kind, -1) + ([mismatch] if gradients and size != gradients else [])
    out = _elements(name, kind, -1)
    if geometry in ("cube", "acube"):
        out.append(f"Illegal modifier '.{geometry}' for instruction '{name}'")
    return out + ([mismatch] if size < offsets else [])


def _elements(name: str, kind: str, index: int) -> list[str]:
    """Faults of the elements; the element at `index` is the number of an array's layer."""
    kinds = elements(kind)
    out: list[str] = []
    if len(kinds) not in (1, 2, 4):
        out.append(f"Illegal vector size: {len(kinds)}")
    rest = [k for n, k in enumerate(kinds) if n != index]
    out += [f"Vector with elements of different types are not allowed in {name} instruction"] * bool(
        alien_neighbours(rest)
    )
    if "_" in kinds:
        out.append("Sink '_' not allowed as a source operand")
    if index >= 0 and (index >= len(kinds) or kinds[index] not in _INDEX):
        out.append(f"Array index in the '{name}' instruction has unexpected type. Expecting type .u32")
    return out


def gate_words(name: str, kinds: tuple[str, ...]) -> list[str]:
    """Words for the table of gates: `<pair>` a second result, `<extra>` a sampler, offset or comparison, `<indirect>` a
    reference in a register."""
    out: list[str] = []
    if kinds and kinds[0][:2] == "p:":
        out.append("<pair>")
    if name[:2] not in ("te", "tl", "tx", "su"):
        return out
    for kind in kinds[:2]:
        base, sampler, _ = split(kind) if kind[:3] == "a2:" else (kind, "", "")
        if base[:4] == "a:r:":
            out.append("<indirect>")
        if sampler:
            out.append("<extra>")
    if any(k != "i" for k in kinds[_PLAIN.get(name, len(kinds)) :]):
        out.append("<extra>")
    return out
