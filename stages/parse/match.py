"""Matches instructions against the descriptor table."""

from __future__ import annotations

from ir_format.ptx import LabelList, LabelRef, Operand, PtxProto
from stages.parse.operands import literal_bits
from stages.parse.scan import Notes
from stages.parse.types import SCALARS


class Verdict:
    """What is known of one opcode with one tuple of operand kinds.

    `clean`: nothing to report and nothing to convert.  `literals`: operand index and the float type that a
    double literal there takes.
    """

    __slots__ = ("clean", "errors", "literals")

    def __init__(self, errors: tuple[str, ...], literals: tuple[tuple[int, str], ...]) -> None:
        self.errors = errors
        self.literals = literals
        self.clean = not errors and not literals


class Opcode:
    """One distinct opcode text, analysed once."""

    __slots__ = ("mods", "op", "plain", "row", "types", "verdicts")

    def __init__(self, op: str, mods: tuple[str, ...], types: tuple[str, ...], row: str) -> None:
        self.op = op
        self.mods = mods
        self.types = types
        self.row = row
        self.plain = op not in ("call", "brx")
        self.verdicts: dict[tuple[str, ...], Verdict] = {}


class Matcher:
    """The opcodes and verdicts of one parse."""

    __slots__ = ("late", "notes", "opcodes")

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.opcodes: dict[str, Opcode] = {}
        self.late: list[tuple[LabelList, list[LabelRef]]] = []

    def opcode(self, text: str) -> Opcode | None:
        """Analyses an opcode text; None if it is not an instruction."""
        op, *mods = text.split(".")
        if op == "nop":
            return None
        types = tuple([m for m in mods if m in SCALARS])
        found = self.opcodes[text] = Opcode(op, tuple(mods), types, op)
        return found

    def complain(self, text: str, line: int) -> None:
        """Reports an opcode that is not an instruction."""
        self.notes.error(f"Not a name of any known instruction: '{text.split('.')[0]}'", line)

    def check(
        self, opcode: Opcode, operands: tuple[Operand, ...], kinds: tuple[str, ...], line: int, guarded: bool
    ) -> tuple[Operand, ...]:
        """Reports what is wrong with an instruction; returns its operands with literals in their final form."""
        verdict = opcode.verdicts.get(kinds)
        if verdict is None:
            type_ = opcode.types[-1] if opcode.types else ""
            literals = tuple([(i, type_) for i, k in enumerate(kinds) if k == "d"])
            verdict = opcode.verdicts[kinds] = Verdict((), literals)
        for message in verdict.errors:
            self.notes.error(message, line)
        if verdict.literals:
            changed = list(operands)
            for index, type_ in verdict.literals:
                changed[index] = literal_bits(changed[index], type_)
            return tuple(changed)
        return operands

    def finish(self) -> None:
        """Fills the label lists of a function whose labels are all known."""
        for late, refs in self.late:
            late.labels = tuple([r.index for r in refs])
        self.late.clear()


def check_call(
    notes: Notes,
    proto: PtxProto,
    name: str,
    rets: tuple[list[Operand], list[str]],
    args: tuple[list[Operand], list[str]],
    line: int,
) -> None:
    """Compares the lists of a call with a signature."""
    if len(rets[0]) != len(proto.rets) or len(args[0]) != len(proto.params):
        notes.error(f"Argument count mismatch in call to '{name}'", line)
