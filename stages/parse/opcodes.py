"""What is known of one opcode text, and of it with one tuple of operand kinds."""

from __future__ import annotations

from ir_format.record import NamedTuple
from stages.parse.table import Row


class Typed(NamedTuple):
    """A row whose types agree with an opcode's; `rest` are the opcode's modifiers without the types."""

    row: Row
    types: tuple[str, ...]
    rest: tuple[str, ...]
    mods: tuple[str, ...] | None  # in canonical order with the types; None if the row does not take these modifiers


class Verdict:
    """What is known of one opcode with one tuple of operand kinds.

    `clean`: nothing to report, convert or look at.  `literals`: operand index and the float type that
    literals there take; in braces if the operand is a vector of one, to be unwrapped; a bar if it is a pair whose
    second is `_`.
    `narrow`: bits of an address of global memory that has fewer than 64; 0 if there is none.
    """

    __slots__ = ("checks", "clean", "errors", "literals", "narrow", "row")

    def __init__(
        self,
        row: str,
        errors: tuple[tuple[str, str], ...],
        literals: tuple[tuple[int, str], ...],
        todo: tuple[str, ...],
        narrow: int = 0,
    ) -> None:
        self.row = row
        self.errors = errors
        self.literals = literals
        self.checks = todo
        self.narrow = narrow
        self.clean = not errors and not literals and not todo and not narrow


class Opcode:
    """One distinct opcode text, analysed once."""

    __slots__ = ("errors", "mods", "name", "op", "plain", "row", "typed", "types", "vector", "verdicts")

    def __init__(self, op: str, name: str) -> None:
        self.op = op
        self.name = name
        self.mods: tuple[str, ...] = ()
        self.types: tuple[str, ...] = ()
        self.row = ""
        self.plain = op not in ("call", "brx")
        self.errors: tuple[tuple[str, str], ...] = ()
        self.typed: tuple[Typed, ...] = ()
        self.vector = 0
        self.verdicts: dict[tuple[str, ...], Verdict] = {}
