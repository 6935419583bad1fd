"""Constant expressions: literals, C operators, casts, folded as they are read.

PTX computes in 64 bits, signed or unsigned as in C, or in double precision (measured: a comparison of doubles
gives an integer).  Float literals given as bits (`0f...`, `0d...`) are not operands of operators.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from ir_format.late_pattern import late_pattern
from ir_format.ptx import Imm, ImmF32, ImmF64
from ir_format.record import NamedTuple
from stages.parse.scan import Scanner

Number = int | float
MAX_NESTING = 150

_PRECEDENCE: dict[str, int] = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_MASK = (1 << 64) - 1
_LEAST_NORMAL = 2.0**-1022


class Value(NamedTuple):
    """A folded value: a Python int (already wrapped to 64 bits) with its signedness, or a float."""

    number: Number
    signed: bool = True


def wrap(x: int, signed: bool) -> int:
    """Reduces to 64 bits, two's complement or unsigned."""
    x &= _MASK
    return x - (1 << 64) if signed and x >> 63 else x


def _divide(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


_INT_OPS: dict[str, Callable[[int, int], int]] = {
    "||": lambda a, b: int(bool(a) or bool(b)),
    "&&": lambda a, b: int(bool(a) and bool(b)),
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
    "<<": lambda a, b: a << (b & 63),
    ">>": lambda a, b: a >> (b & 63),
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "%": lambda a, b: a - b * _divide(a, b),
}
_FLOAT_OPS: dict[str, Callable[[float, float], Number]] = {
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}
_COMPARE = frozenset(("||", "&&", "==", "!=", "<", ">", "<=", ">="))


def f64_bits(x: float) -> int:
    """The IEEE double bits of a float."""
    return int.from_bytes(struct.pack("<d", x), "little")


def f32_bits(x: float) -> int:
    """The IEEE single bits of a double, rounded to nearest even; overflow gives infinity."""
    try:
        return int.from_bytes(struct.pack("<f", x), "little")
    except OverflowError:
        return 0xFF800000 if x < 0 else 0x7F800000


def f64_from_bits(bits: int) -> float:
    """The float of 64 bits."""
    return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])


def int_literal(s: Scanner) -> Value:
    """Reads the current integer token."""
    tok = s.tok
    line = s.line
    s.next()
    unsigned = tok[-1] == "U"
    digits = tok[:-1] if unsigned else tok
    if len(digits) > 1 and digits[0] == "0":
        lead = digits[1]
        if lead in "xX":
            value = int(digits, 16)
        elif lead in "bB":
            value = int(digits, 2)
        else:
            value = int(digits, 8)
    elif len(digits) > 30:
        value = 1 << 64
    else:
        value = int(digits)
    if value > _MASK:
        value, lost = _wrapped(digits)
        if lost:
            s.notes.error("Constant overflow", line)
    return Value(value, not unsigned and value < 1 << 63)


def _wrapped(digits: str) -> tuple[int, bool]:
    """A literal beyond 64 bits: its value modulo 2^64, and whether it is an error. It is one when a digit follows 64
    bits with the top one set (measured: other bits are lost without a word)."""
    base = 10
    if digits[0] == "0":
        base, digits = {"x": (16, digits[2:]), "b": (2, digits[2:])}.get(digits[1].lower(), (8, digits[1:]))
    value = 0
    lost = False
    for digit in digits:
        lost = lost or value >> 63 != 0
        value = (value * base + int(digit, 16)) & _MASK
    return value, lost


def word_literal(s: Scanner) -> int:
    """Reads the current integer token of a directive: 32 bits, more of them are an error and cut off (measured)."""
    line = s.line
    value = int(int_literal(s).number)
    if not 0 <= value <= 0xFFFFFFFF:
        s.notes.error("Constant overflow", line)
    return value & 0xFFFFFFFF


def _float_literal(s: Scanner) -> float:
    """Reads the current decimal float; an error where it overflows, or is below the normal numbers and not exact
    (measured)."""
    tok, line = s.tok, s.line
    s.next()
    value = float(tok)
    if abs(value) < _LEAST_NORMAL or value == float("inf"):
        mantissa = tok.lower().partition("e")[0]
        from decimal import Decimal

        if mantissa.strip("0.") and (value in (0.0, float("inf")) or Decimal(tok) != Decimal(value)):
            s.notes.error("Constant overflow", line)
    return value


# Numbers of a list, each with its comma. Bounded, so that no element is looked at again and again. Nothing follows the
# group, so nothing is tried again either; a possessive repeat would say so, but Python 3.11.2 loses characters in it
# (measured: "19" was read as "9").
_RUN = late_pattern(r"(?:(?:[1-9][0-9]{0,8}|0)[ \t\r\n]*,[ \t\r\n]*){8,4096}")


def run(s: Scanner, most: int) -> list[int]:
    """Reads the numbers of a long list up to the comma after the last; none if they are few, more than `most`, or not
    plain."""
    m = _RUN.match(s.text, s.start) if s.kind == "int" else None
    if m is None or m.group().count(",") > most:
        return []
    s.seek(m.end())
    return [int(x) for x in m.group().split(",")[:-1]]


def starts_constant(s: Scanner) -> bool:
    """True if the current token can begin a constant expression."""
    return s.kind in ("int", "flt", "(", "-", "+", "~", "!") or (s.kind == "id" and s.tok == "WARP_SZ")


def expression(s: Scanner, depth: int = 0) -> Value:
    """Reads `binary [? a : b]`."""
    if depth > MAX_NESTING:
        s.syntax_error()
    cond = _binary(s, 1, depth)
    if not s.accept("?"):
        return cond
    yes = expression(s, depth + 1)
    s.expect(":")
    no = expression(s, depth + 1)
    return yes if cond.number else no


def _binary(s: Scanner, level: int, depth: int) -> Value:
    left = _unary(s, depth)
    while True:
        prec = _PRECEDENCE.get(s.kind, 0)
        if prec < level or not prec:
            return left
        op = s.kind
        s.next()
        left = _apply(s, op, left, _binary(s, prec + 1, depth + 1))


def _apply(s: Scanner, op: str, a: Value, b: Value) -> Value:
    x, y = a.number, b.number
    if op in ("/", "%") and not y:
        s.notes.fatal("Constant expression has division by zero", s.line)
    if isinstance(x, float) or isinstance(y, float):
        fop = _FLOAT_OPS.get(op)
        if fop is None:
            s.syntax_error()
        r = fop(float(x), float(y))
        return Value(r)
    signed = a.signed if op in ("<<", ">>") else a.signed and b.signed
    if op not in ("<<", ">>") and not signed:
        x, y = wrap(x, False), wrap(y, False)
    result = _INT_OPS[op](x, y)
    return Value(result) if op in _COMPARE else Value(wrap(result, signed), signed)


def _unary(s: Scanner, depth: int) -> Value:
    if depth > MAX_NESTING:
        s.syntax_error()
    kind = s.kind
    if kind == "int":
        return int_literal(s)
    if kind == "flt":
        return Value(_float_literal(s))
    if kind == "id" and s.tok == "WARP_SZ":
        s.next()
        return Value(32)
    if kind == "(":
        s.next()
        if s.kind == "dot" and s.tok in (".s64", ".u64"):
            signed = s.tok == ".s64"
            s.next()
            s.expect(")")
            v = _unary(s, depth + 1)
            return Value(wrap(int(v.number), signed), signed)
        v = expression(s, depth + 1)
        s.expect(")")
        return v
    if kind in ("-", "+", "~", "!"):
        s.next()
        v = _unary(s, depth + 1)
        if kind == "!":
            return Value(int(not v.number))
        if isinstance(v.number, float):
            if kind == "~":
                s.syntax_error()
            return Value(-v.number if kind == "-" else v.number)
        if kind == "+":
            return v
        return Value(wrap(-v.number if kind == "-" else ~v.number, v.signed), v.signed)
    s.syntax_error()


def constant(s: Scanner) -> Imm | ImmF32 | ImmF64:
    """Reads a constant operand: a bit-pattern float, or an expression."""
    if s.kind == "f32":
        bits = int(s.tok[2:], 16)
        s.next()
        return ImmF32(bits)
    if s.kind == "f64":
        bits = int(s.tok[2:], 16)
        s.next()
        return ImmF64(bits)
    v = expression(s)
    return ImmF64(f64_bits(v.number)) if isinstance(v.number, float) else Imm(v.number)


def integer(s: Scanner) -> int:
    """Reads an integer expression; a double is a syntax error."""
    v = expression(s)
    if isinstance(v.number, float):
        s.syntax_error()
    return v.number


def f32_value(bits: int) -> float:
    """The value of 32 float bits."""
    return float(struct.unpack("<f", bits.to_bytes(4, "little"))[0])
