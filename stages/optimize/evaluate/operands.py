"""How an instruction under evaluation reads its operands, and the shape of its answer."""

from __future__ import annotations

from collections.abc import Callable

from ir_format.model import ABS, INV, NEG, ZERO, Imm, Inst, Operand, Reg
from ir_format.typed import Final, TypeAlias

WORD: Final = 0xFFFFFFFF
LONG: Final = (1 << 64) - 1
#: What a lane of a register operand holds, its flags ignored: 32 bits, or 0 or 1 of a predicate; None if not known.
#: The number counts lanes from the operand's first.
Known: TypeAlias = Callable[[Reg, int], int | None]
#: The bits of the register result (None if there is none), and the predicates, in the order of the destinations.
Answer: TypeAlias = tuple[int | None, tuple[bool, ...]]


def value_of(o: Operand) -> int | None:
    """The 32-bit value of an integer operand that is known, sign applied; None else."""
    if type(o) is Reg and o.num == ZERO and o.file == "R" and not o.flags:
        return 0
    if type(o) is Imm and not o.sym and not o.fmt and not o.flags and not o.mod:
        return o.value & WORD
    return None


class Unknown(Exception):
    """The result depends on what is not known, or the hardware's bits are not known for sure."""


def is_predicate(o: Operand) -> bool:
    """Whether an operand is a predicate."""
    return type(o) is Reg and o.file in ("P", "UP")


def signed(value: int, bits: int) -> int:
    """A pattern of so many bits as a signed number."""
    return (value & (1 << bits) - 1) - ((value & 1 << bits - 1) << 1)


class Reader:
    """The operands of an instruction: ``values`` are its sources without predicates, ``predicates`` the others."""

    __slots__ = ("inst", "known", "mods", "predicates", "values")

    def __init__(self, inst: Inst, known: Known) -> None:
        self.inst = inst
        self.known = known
        self.mods = frozenset(inst.mods)
        self.values = [o for o in inst.srcs if not is_predicate(o)]
        self.predicates = [o for o in inst.srcs if is_predicate(o)]

    def has(self, name: str) -> bool:
        """Whether the instruction has a modifier."""
        return name in self.mods

    def pick(self, names: tuple[str, ...], default: str = "") -> str:
        """The one of ``names`` that is among the modifiers."""
        for name in self.inst.mods:
            if name in names:
                return name
        return default

    def raw(self, o: Operand, lane: int = 0) -> int:
        """A word of an operand, whatever its flags and suffix."""
        if type(o) is Reg:
            if o.num == ZERO:
                return 0
            got = self.known(o, lane)
            if got is not None:
                return got
        elif type(o) is Imm and not o.sym and not o.fmt and not lane:
            return o.value & WORD
        raise Unknown

    def word(self, n: int) -> int:
        """Source ``n`` as 32 bits, negated or inverted as its flags say."""
        o = self.values[n]
        v, flags = self.raw(o), _plain_flags(o)
        if flags & ABS:
            v = abs(signed(v, 32))
        if flags & NEG:
            v = -v
        return (~v if flags & INV else v) & WORD

    def addend(self, n: int) -> int:
        """Source ``n`` of a sum with carry: -x is 2**32 - x, which carries if x is 0, ~x the inverse."""
        o = self.values[n]
        v, flags = self.raw(o), _plain_flags(o)
        if flags & ABS:
            raise Unknown
        return (1 << 32) - v if flags & NEG else ~v & WORD if flags & INV else v

    def number(self, n: int, is_signed: bool) -> int:
        """Source ``n`` as a number of 32 bits."""
        v = self.word(n)
        return signed(v, 32) if is_signed else v

    def long(self, n: int, extended: bool = True) -> int:
        """Source ``n`` as 64 bits; an immediate has 32, extended by its sign."""
        o = self.values[n]
        if type(o) is Imm:
            v = self.raw(o)
            v = signed(v, 32) & LONG if extended else v
        else:
            v = self.raw(o) | self.raw(o, 1) << 32
        flags = _plain_flags(o)
        if flags & ABS:
            raise Unknown
        return (-v if flags & NEG else ~v if flags & INV else v) & LONG

    def double(self, n: int) -> int:
        """Source ``n`` as the bits of a double; an immediate has the upper 32."""
        o = self.values[n]
        v = self.raw(o) << 32 if type(o) is Imm else self.raw(o) | self.raw(o, 1) << 32
        return float_signs(v, _plain_flags(o), 1 << 63)

    def single(self, n: int, lane: int = 0) -> int:
        """Source ``n`` as the bits of a float."""
        o = self.values[n]
        return float_signs(self.raw(o, lane), _plain_flags(o), 1 << 31)

    def half(self, n: int, upper: int) -> int:
        """One half of source ``n``, chosen by its suffix, as the bits of a half or bfloat16."""
        o = self.values[n]
        suffix = o.mod if type(o) is Reg or type(o) is Imm else "?"
        at = _HALVES.get(suffix)
        if at is None:
            raise Unknown
        flags = o.flags if type(o) is Reg or type(o) is Imm else 0
        return float_signs(self.raw(o) >> 16 * at[upper] & 0xFFFF, flags, 1 << 15)

    def part(self, n: int, bits: int) -> int:
        """Source ``n``, or the byte or half of it that its suffix names, as ``bits`` bits."""
        o = self.values[n]
        suffix = o.mod if type(o) is Reg or type(o) is Imm else "?"
        at = _PARTS.get(suffix)
        if at is None or (type(o) is Reg or type(o) is Imm) and o.flags:
            raise Unknown
        return self.raw(o) >> at & (1 << bits) - 1

    def truth(self, n: int, default: bool) -> bool:
        """Predicate source ``n``; ``default`` if the instruction has none."""
        if n >= len(self.predicates):
            return default
        p = self.predicates[n]
        assert type(p) is Reg
        value = True
        if p.num != ZERO:
            got = self.known(p, 0)
            if got is None:
                raise Unknown
            value = bool(got)
        return value != bool(p.flags & INV)

    def carries(self) -> int:
        """The sum of the carries that come in."""
        return sum([self.truth(n, False) for n in range(len(self.predicates))]) if self.has("X") else 0

    def immediate(self, n: int) -> int:
        """Source ``n``, which is an immediate."""
        o = self.values[n]
        if type(o) is not Imm:
            raise Unknown
        return self.raw(o)


_HALVES: Final = {"": (0, 1), "H1_H0": (0, 1), "H0_H0": (0, 0), "H1_H1": (1, 1)}
_PARTS: Final = {"": 0, "B0": 0, "B1": 8, "B2": 16, "B3": 24, "H0": 0, "H0_H0": 0, "H1": 16, "H1_H1": 16}


def _plain_flags(o: Operand) -> int:
    """The flags of an operand without suffix."""
    if type(o) is Reg or type(o) is Imm:
        if o.mod:
            raise Unknown
        return o.flags
    raise Unknown


def float_signs(bits: int, flags: int, sign: int) -> int:
    """The bits of a float with the absolute value and the negation that flags ask for. Raises Unknown for ~."""
    if flags & INV:
        raise Unknown
    if flags & ABS:
        bits &= ~sign
    return bits ^ sign if flags & NEG else bits
