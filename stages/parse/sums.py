"""`register + constant` and `variable + constant` as a value: ptxas accepts them wherever a single source may be, and
adds before the instruction (measured on its code: IADD3 with the register's width). So orias inserts an instruction."""

from __future__ import annotations

from ir_format.ptx import Imm, Operand, PtxInst, Reg, SReg, Sym
from ir_format.typed import Final
from stages.parse import expr, match
from stages.parse.scan import Scanner
from stages.parse.symbols import FunctionState, Typed

_WIDTHS: Final = {
    "b16": "16",
    "u16": "16",
    "s16": "16",
    "b32": "32",
    "u32": "32",
    "s32": "32",
    "b64": "64",
    "u64": "64",
    "s64": "64",
}
_RESULTS: Final = frozenset(("d", "d_", "dp", "dpp", "dtex", "dmask", "dsel", "dpack"))
_NAMES: Final = frozenset(("mov", "cvta", "ld", "ldu"))  # take a variable with an offset themselves


def is_sum(s: Scanner, kind: str, text: str) -> bool:
    """True if a constant is added to what was read: after a register it has yet to be read, in a variable's text it was
    read already."""
    if s.kind == "+":
        return kind[:2] == "r:" or (kind[:2] == "s:" and "." not in text)
    return (kind == "F" or kind[:2] == "v:") and "+" in text


def offset(s: Scanner) -> int:
    """`+ constant` after a register."""
    line = s.line
    s.next()
    value = expr.expression(s).number
    if isinstance(value, float):
        s.notes.error("Integer constant expression expected", line)
        return 0
    return value


class Sums:
    """The sums of one instruction, and the instructions that make them."""

    __slots__ = ("fs", "line", "matcher", "opcode")

    def __init__(self, fs: FunctionState, matcher: match.Matcher, opcode: match.Opcode, line: int) -> None:
        self.fs = fs
        self.matcher = matcher
        self.opcode = opcode
        self.line = line

    def resolve(self, index: int, typed: Typed, added: int) -> Typed:
        """The operand that replaces a sum: what was read, and what is added to it."""
        value, kind = typed
        notes = self.matcher.notes
        name = self.opcode.name
        if kind == "F":
            assert isinstance(value, Sym)
            notes.fatal(
                f"Line No: {self.line}: Cannot take address of function '{value.name}' in arithmetic expressions", 0
            )
        if kind[:2] == "v:":
            return typed if self.opcode.op in _NAMES else self._address(value, kind)
        if (
            index == 0
            and self.opcode.typed
            and self.opcode.typed[0].row.operands[:1]
            and self.opcode.typed[0].row.operands[0].role in _RESULTS
        ):
            notes.error(f"Result register required for instruction '{name}'", self.line)
            return typed
        width = _WIDTHS.get(kind[2:])
        if width is None or not isinstance(value, Reg | SReg):
            notes.error(f"A constant added to an operand of type .{kind[2:]} is not supported by orias", self.line)
            return typed
        if isinstance(value, SReg):
            value, kind = self._make("mov.b", width, (value,), (kind,))
        return self._make("add.s", width, (value, Imm(added)), (kind, "i"))

    def _address(self, value: Operand, kind: str) -> Typed:
        types = self.opcode.types
        return self._make("mov.u", "64" if types and types[-1][-2:] == "64" else "32", (value,), (kind,))

    def _make(self, start: str, width: str, operands: tuple[Operand, ...], kinds: tuple[str, ...]) -> Typed:
        opcode = self.matcher.opcodes.get(start + width) or self.matcher.opcode(start + width)
        assert opcode is not None
        symbol = self.fs.add_reg("%sum", "b" + width, 1)
        result, kind = symbol.typed()
        operands, row = self.matcher.check(opcode, (result, *operands), (kind, *kinds), self.line)
        self.fs.function.body.append(
            PtxInst(opcode.op, opcode.mods, opcode.types, operands, None, self.line, self.fs.loc, row)
        )
        return result, kind
