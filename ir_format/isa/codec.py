"""Operand codecs: they encode, decode and print the bits of one operand slot of a plan.

A codec has ``mask`` (the bits it owns), ``enc(operand) -> bits``, ``dec(word) -> operand`` and
``fmt(operand, pc) -> text``. ``enc`` raises :class:`Mismatch` if the slot can't hold the operand; ``dec`` raises it for
undefined field values.
"""

from __future__ import annotations

from ir_format.features import has
from ir_format.isa import numbers
from ir_format.isa.rowlang import Bits
from ir_format.model import ABS, INV, NEG, REUSE, ZERO, Const, Imm, Name, Operand, Reg

#: Register number printed as RZ/URZ/PT/UPT.
ZERO_NUM = {"R": 255, "P": 7, "UP": 7}


class Mismatch(Exception):
    """The slot does not take this operand, or the field holds an undefined value."""


def bits_mask(bits: Bits) -> int:
    """All bits of a field."""
    mask = 0
    for low, count in bits:
        mask |= ((1 << count) - 1) << low
    return mask


def bits_put(bits: Bits, value: int) -> int:
    """A field's value at its place. ``value`` must fit."""
    out = 0
    for low, count in bits:
        out |= (value & ((1 << count) - 1)) << low
        value >>= count
    if value:
        raise Mismatch("value does not fit its field")
    return out


def bits_get(bits: Bits, word: int) -> int:
    """A field's value."""
    out = shift = 0
    for low, count in bits:
        out |= (word >> low & ((1 << count) - 1)) << shift
        shift += count
    return out


def bits_len(bits: Bits) -> int:
    """Bits in a field."""
    return sum(count for _, count in bits)


class Codec:
    """Base: a slot that takes nothing."""

    __slots__ = ("kind", "mask", "name")
    mask: int
    kind: str
    name: str
    placed = False  # whether its bits depend on the address of the instruction

    def enc(self, o: Operand) -> int:
        """Bits of an operand."""
        raise Mismatch(f"slot {self.name} takes no {type(o).__name__}")

    def dec(self, word: int) -> Operand:
        """The operand in a word."""
        raise Mismatch("undecodable slot")

    def fmt(self, o: Operand, pc: int) -> str:
        """nvdisasm's text of the operand."""
        return operand_text(o)


class RegCodec(Codec):
    """A register field with its sign, absolute, inversion and reuse bits and its suffix table."""

    __slots__ = (
        "file",
        "fixed",
        "flagmask",
        "flags",
        "flags_back",
        "high",
        "low",
        "pos",
        "refused",
        "submask",
        "subs",
        "subs_back",
        "width",
        "zero",
    )

    def __init__(
        self,
        file: str,
        pos: int,
        size: int,
        width: int,
        flags: dict[int, int],
        name: str,
        sub: tuple[tuple[str | None, ...], Bits] | None = None,
        has_zero: bool | None = True,
    ) -> None:
        """``flags``: single operand flag -> its bit's mask. ``has_zero``: the highest number is the zero register;
        None: it is not allowed here."""
        self.file, self.pos, self.width, self.name = file, pos, width, name
        self.kind = file
        self.low = (1 << size) - 1
        self.zero = self.low if has_zero else -1
        self.refused = self.low if has_zero is None else -1
        combos = {0: 0}
        for flag, bit in flags.items():
            combos.update({have | flag: bits | bit for have, bits in list(combos.items())})
        self.flags = combos
        self.flags_back = {bits: flag for flag, bits in combos.items()}
        self.flagmask = 0
        for bit in flags.values():
            self.flagmask |= bit
        self.subs: dict[str, int] = {"": 0}
        self.subs_back: dict[int, str] = {0: ""}
        self.submask = 0
        if sub is not None:
            names, bits_ = sub
            if not bits_:
                self.subs, self.subs_back = {names[0] or "": 0}, {0: names[0] or ""}
        if sub is not None and bits_:
            self.submask = bits_mask(bits_)
            self.subs = {n: bits_put(bits_, i) for i, n in enumerate(names) if n is not None}
            self.subs_back = {v: n for n, v in self.subs.items()}
        self.mask = self.low << pos | self.flagmask | self.submask

    def enc(self, o: Operand) -> int:
        if not isinstance(o, Reg) or o[0] != self.file:
            raise Mismatch(f"slot {self.name} takes a {self.file} register")
        num = o[1]
        if num == ZERO:
            num = self.zero
            if num < 0:
                raise Mismatch(f"slot {self.name} has no zero register")
        elif num >= self.low and (num > self.low or self.zero >= 0 or num == self.refused):
            raise Mismatch(f"{self.file}{num} is out of range")
        try:
            return num << self.pos | self.flags[o[4]] | self.subs[o[5]]
        except KeyError:
            raise Mismatch(f"slot {self.name} does not take {operand_text(o)}") from None

    def dec(self, word: int) -> Reg:
        num = word >> self.pos & self.low
        sub = self.subs_back.get(word & self.submask)
        if sub is None:
            raise Mismatch(f"undefined suffix of {self.name}")
        if num == self.refused:
            raise Mismatch(f"slot {self.name} has no zero register")
        return Reg(
            self.file, ZERO if num == self.zero else num, 0, self.width, self.flags_back[word & self.flagmask], sub
        )


class InnerRegCodec(RegCodec):
    """A register whose suffix is inside the bars: ``|R2.H1|`` (conversions; measured)."""

    __slots__ = ()

    def fmt(self, o: Operand, pc: int) -> str:
        assert isinstance(o, Reg)
        if not (o.mod and o.flags & ABS):
            return operand_text(o)
        return f"{operand_text(o._replace(mod=''))[:-1]}.{o.mod}|"


class SplitRegCodec(RegCodec):
    """A plain register whose field has several pieces."""

    __slots__ = ("bits",)

    def __init__(self, file: str, bits: Bits, width: int, name: str) -> None:
        super().__init__(file, 0, bits_len(bits), width, {}, name)
        self.bits = bits
        self.mask = bits_mask(bits)

    def enc(self, o: Operand) -> int:
        return bits_put(self.bits, super().enc(o))

    def dec(self, word: int) -> Reg:
        return super().dec(bits_get(self.bits, word))


class ImmCodec(Codec):
    """An immediate. ``style``: see :mod:`ir_format.isa.numbers`. ``scale``: the field counts units of this many
    bytes."""

    __slots__ = ("bits", "limit", "negbit", "one", "size", "style")

    def __init__(self, bits: Bits, style: str, name: str, negbit: int = 0) -> None:
        self.bits, self.style, self.name = bits, style, name
        self.kind = "I"
        self.size = bits_len(bits)
        self.limit = 1 << self.size
        self.one = bits[0][0] if len(bits) == 1 else -1
        self.negbit = negbit
        self.mask = bits_mask(bits) | negbit

    def enc(self, o: Operand) -> int:
        if not isinstance(o, Imm):
            raise Mismatch(f"slot {self.name} takes an immediate")
        value = o.value
        if value < 0:
            if self.style != "s" or value < -(self.limit >> 1):
                raise Mismatch(f"immediate {value} does not fit {self.name}")
            value &= self.limit - 1
        elif value >= self.limit or (self.style == "s" and self.size < 32 and value >= self.limit >> 1):
            raise Mismatch(f"immediate {value:#x} does not fit {self.name}")
        flags = o.flags
        extra = 0
        if flags:
            if (flags != INV and flags != NEG) or not self.negbit:
                raise Mismatch(f"slot {self.name} takes no sign on an immediate")
            extra = self.negbit
        return (value << self.one if self.one >= 0 else bits_put(self.bits, value)) | extra

    def dec(self, word: int) -> Imm:
        value = bits_get(self.bits, word)
        if self.style == "s" and self.size < 32 and value >> (self.size - 1):
            value -= self.limit
        return Imm("I", value, "", "", NEG if self.negbit and word & self.negbit else 0)

    def fmt(self, o: Operand, pc: int) -> str:
        assert isinstance(o, Imm)
        if o.sym:
            return operand_text(o)
        text = numbers.format_imm(o.value, self.style, self.size)
        return "-" + text if o.flags & NEG else text


class HalfImmCodec(ImmCodec):
    """An immediate of which a suffix names the half that counts."""

    __slots__ = ("back", "halves", "part")

    def __init__(self, bits: Bits, style: str, name: str, sub: tuple[tuple[str | None, ...], Bits]) -> None:
        super().__init__(bits, style, name)
        names, where = sub
        self.part = bits_mask(where)
        self.halves = {n: bits_put(where, i) for i, n in enumerate(names) if n is not None}
        self.back = {v: n for n, v in self.halves.items()}
        self.mask |= self.part

    def enc(self, o: Operand) -> int:
        half = self.halves.get(o.mod) if isinstance(o, Imm) else None
        if half is None:
            raise Mismatch(f"slot {self.name} does not take {operand_text(o)}")
        return super().enc(o) | half

    def dec(self, word: int) -> Imm:
        half = self.back.get(word & self.part)
        if half is None:
            raise Mismatch(f"undefined suffix of {self.name}")
        return super().dec(word)._replace(mod=half)

    def fmt(self, o: Operand, pc: int) -> str:
        assert isinstance(o, Imm)
        return f"{super().fmt(o, pc)}.{o.mod}"


class ConstCodec(Codec):
    """``c[bank][offset]`` of arithmetic: offset in words at 40-53, bank at 54-58."""

    __slots__ = ("flagmask", "flags", "flags_back", "spaced", "submask", "subs", "subs_back", "width")

    def __init__(
        self,
        width: int,
        flags: dict[int, int],
        name: str,
        sub: tuple[tuple[str | None, ...], Bits] | None = None,
        spaced: bool = False,
    ) -> None:
        self.spaced = spaced  # operations on halves print a blank between the brackets (measured)
        reg = RegCodec("C", 0, 1, width, flags, name, sub)
        self.width, self.name, self.kind = width, name, "C"
        self.flags, self.flagmask, self.flags_back = reg.flags, reg.flagmask, reg.flags_back
        self.subs, self.subs_back, self.submask = reg.subs, reg.subs_back, reg.submask
        self.mask = 0x7FFFF << 40 | reg.flagmask | reg.submask

    def enc(self, o: Operand) -> int:
        if not isinstance(o, Const) or o.ireg is not None:
            raise Mismatch(f"slot {self.name} takes a constant")
        if not 0 <= o.bank < 32 or o.offset & 3 or not -32768 <= o.offset < 65536:
            raise Mismatch(f"{operand_text(o)} is out of range")
        try:
            return (o.offset & 0xFFFF) >> 2 << 40 | o.bank << 54 | self.flags[o.flags] | self.subs[o.mod]
        except KeyError:
            raise Mismatch(f"slot {self.name} does not take {operand_text(o)}") from None

    def fmt(self, o: Operand, pc: int) -> str:
        return operand_text(o, self.spaced)

    def dec(self, word: int) -> Const:
        sub = self.subs_back.get(word & self.submask)
        if sub is None:
            raise Mismatch(f"undefined suffix of {self.name}")
        offset = (word >> 40 & 0x3FFF) << 2
        if offset >= 0x8000:
            offset -= 0x10000  # the field is signed (measured)
        return Const("C", word >> 54 & 31, offset, self.width, None, self.flags_back[word & self.flagmask], "", sub)


class CxCodec(ConstCodec):
    """``cx[UR][offset]``: a constant through a descriptor in a uniform register pair (UR at 32-37)."""

    __slots__ = ()

    def __init__(
        self,
        width: int,
        flags: dict[int, int],
        name: str,
        sub: tuple[tuple[str | None, ...], Bits] | None = None,
        spaced: bool = False,
    ) -> None:
        super().__init__(width, flags, name, sub, spaced)
        self.mask = 0x3FFF << 40 | 0x3F << 32 | self.flagmask | self.submask

    def enc(self, o: Operand) -> int:
        if not isinstance(o, Const) or o.ireg is None or o.ireg.file != "UR":
            raise Mismatch(f"slot {self.name} takes a constant through a descriptor")
        if o.offset & 3 or not 0 <= o.offset < 65536:
            raise Mismatch(f"{operand_text(o)} is out of range")
        num = 63 if o.ireg.num == ZERO else o.ireg.num
        try:
            return o.offset >> 2 << 40 | num << 32 | self.flags[o.flags] | self.subs[o.mod]
        except KeyError:
            raise Mismatch(f"slot {self.name} does not take {operand_text(o)}") from None

    def dec(self, word: int) -> Const:
        num = word >> 32 & 63
        ireg = Reg("UR", ZERO if num == 63 else num, 0, 2)
        sub = self.subs_back.get(word & self.submask)
        if sub is None:
            raise Mismatch(f"undefined suffix of {self.name}")
        return Const(
            "C", 0, (word >> 40 & 0x3FFF) << 2, self.width, ireg, self.flags_back[word & self.flagmask], "", sub
        )


class NameCodec(Codec):
    """A keyword operand from a table (or one fixed word, with no bits)."""

    __slots__ = ("back", "bits", "values")

    def __init__(self, names: tuple[str | None, ...], bits: Bits, name: str) -> None:
        self.bits, self.name, self.kind = bits, name, "N"
        self.values = {n: bits_put(bits, i) if bits else 0 for i, n in enumerate(names) if n is not None}
        self.back = {v: n for n, v in self.values.items()}
        self.mask = bits_mask(bits)

    def enc(self, o: Operand) -> int:
        if not isinstance(o, Name) or o.name not in self.values:
            raise Mismatch(f"slot {self.name} does not take {operand_text(o)}")
        return self.values[o.name]

    def dec(self, word: int) -> Name:
        name = self.back.get(word & self.mask)
        if name is None:
            raise Mismatch(f"undefined name in {self.name}")
        return Name("N", name)


_REG_ZERO_TEXT = {"R": "RZ", "UR": "URZ", "P": "PT", "UP": "UPT", "B": "BZ"}


def operand_text(o: Operand, spaced: bool = False) -> str:
    """nvdisasm's text of an operand whose text does not depend on its slot."""
    kind = o[0]
    if isinstance(o, Reg):
        text = _REG_ZERO_TEXT.get(kind, "?") if o.num == ZERO else f"{kind}{o.num}"
        return _flag_text(text, o.flags, kind, o.mod)
    if isinstance(o, Const):
        if o.ireg is not None and o.ireg.file == "UR":
            text = f"cx[{operand_text(o.ireg)}][{o.offset:#x}]"
        elif o.ireg is not None:
            sign = f"+{o.offset:#x}" if o.offset > 0 else f"-{-o.offset:#x}" if o.offset < 0 else ""
            text = f"c[{o.bank:#x}][{operand_text(o.ireg)}{sign}]"
        else:
            text = f"c[{o.bank:#x}][{'-' if o.offset < 0 else ''}{abs(o.offset):#x}]"
        if spaced:
            text = text.replace("][", "] [")
        return _flag_text(text, o.flags, "C", o.mod)
    if isinstance(o, Imm):
        return numbers.format_imm(o.value, "s", 32) if not o.sym else f"{o.fmt or 'off'}({o.sym}{o.value:+#x})"
    if isinstance(o, Name):
        return o.name
    return str(o)


def _flag_text(text: str, flags: int, kind: str, mod: str) -> str:
    """Signs, bars, reuse and suffix in nvdisasm's order: bars hold a uniform register's suffix, but not a
    register's."""
    if mod and kind in ("UR", "C"):
        text += "." + mod
    if flags & ABS:
        text = f"|{text}|"
    if flags & REUSE:
        text += ".reuse"
    if mod and kind not in ("UR", "C"):
        text += "." + mod
    if flags & NEG:
        text = "-" + text
    if flags & INV:
        text = ("!" if kind in ("P", "UP") else "~") + text
    return text


def address_bits(letters: str, args: str, layout: str, sm: int) -> dict[int, int]:
    """Bits that tell address forms apart: 91 a uniform register; ``W``: the base is 64 bits wide; ``X``: the uniform
    register is a descriptor."""
    fixed = {91: int(letters != "r")}
    if layout.startswith("G") and letters != "r":
        fixed[arg_of(args, "W", 90)] = int(letters != "v")
        if has(sm, "descriptor-addresses"):
            fixed[arg_of(args, "X", 76)] = int(letters in "dp")
        if letters == "p":
            fixed[101] = 1
    return fixed


def arg_of(args: str, letter: str, default: int) -> int:
    """The bit that a slot's arguments give a letter."""
    return next((int(a[1:]) for a in args.split(",") if a[0] == letter), default)
