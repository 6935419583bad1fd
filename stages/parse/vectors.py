"""Vector operands `{a, b, ...}`: the type of all elements, and elements that do not fit together.

Measured with ptxas 13.0 over all pairs of element kinds. Elements of one type give that type, elements of one size the
untyped `bN`; a constant takes the size of a register next to it. Kinds are the strings described in
`stages.parse.symbols`.
"""

from __future__ import annotations

from ir_format.typed import Final
from stages.parse import compat
from stages.parse.sregs import ANY_INTEGER

_CONSTANTS: Final = {"i": "", "f": "f32", "d": "f64"}  # the type that a constant has by itself
_HEADS: Final = ("r:", "s:", "b:")


def elements(kind: str) -> list[str]:
    """The element kinds of a vector kind."""
    return kind[1:-1].split(",")


def is_element(kind: str) -> bool:
    """True if an operand of this kind may be in a vector."""
    return kind[:2] in _HEADS or kind in _CONSTANTS or kind == "_"


def common(kinds: list[str]) -> tuple[str, int]:
    """The common kind of all elements ("" if no element has a type), and how many have another size."""
    found = ""
    misfits = 0
    for kind in dict.fromkeys(kinds):
        kind = "r:" + kind[2:].replace(ANY_INTEGER, "b64") if kind[:2] in _HEADS else kind
        if kind == found or not (kind in _CONSTANTS or kind[:2] == "r:"):
            continue
        if not found:
            found = kind
        elif kind in _CONSTANTS:
            found = _with_constant(found, kind)
        elif found in _CONSTANTS:
            found = kind if _CONSTANTS[found] == kind[2:] else f"r:b{compat.bit_size(kind[2:])}"
        elif compat.bit_size(found[2:]) == compat.bit_size(kind[2:]):
            found = f"r:b{compat.bit_size(kind[2:])}"
        else:
            misfits += 1
    return found, misfits


def _with_constant(found: str, constant: str) -> str:
    """A constant together with the common kind of the elements before it."""
    own = _CONSTANTS[constant]
    if found in _CONSTANTS:
        return "r:b32" if "i" in (found, constant) else constant
    if constant == "i" or own == found[2:]:
        return found
    return f"r:b{compat.bit_size(found[2:])}"


def alien_neighbours(kinds: list[str]) -> int:
    """How many elements are not of their predecessor's class: integers, floats and predicates do not go together."""
    count = 0
    last = ""
    for kind in kinds:
        this = _class(kind)
        if this:
            count += bool(last) and this != last
            last = this
    return count


def _class(kind: str) -> str:
    """ "i" integer, "f" float, "p" predicate, "" what goes with all: untyped and special registers, `_`."""
    if kind in ("d", "f"):
        return "f"
    if kind == "i":
        return "i"
    if kind[:2] not in ("r:", "b:") or kind[2] == "b" or kind[2:] == "f16x2":
        return ""
    return {"u": "i", "s": "i", "f": "f", "p": "p"}[kind[2]]


_MATRICES: Final = ("ldmatrix", "stmatrix", "tcgen05.ld", "tcgen05.st")


def fits_for_vector(name: str, types: tuple[str, ...], own: str, kind: str, fits: bool) -> bool:
    """Whether something else is a fault of form where a vector is due, not of types (measured): addresses in copies of
    matrices and in products of the newer floats; no numbers in tensor memory's copies."""
    if kind[:2] == "a:":
        products = name.startswith(("mma", "wmma")) and ("bf16" in types or "tf32" in types)
        return products or name in _MATRICES
    if own == "R32" and kind == "r:pred" and (name in _MATRICES[:2] or name.startswith(("mma", "wmma.load"))):
        return True
    if (
        name.startswith(("wmma.load", "mma"))
        and own == "B32"
        and kind in ("r:f32", "r:pred")
        and {"bf16", "tf32"} & {*types}
    ):
        return True
    return fits and not (name.startswith("tcgen05.") and kind in ("i", "d", "f"))
