"""Codecs of operands that are a keyword and an address in uniform registers: ``tmem[UR4+0x10]``,
``gdesc[UR8].A_KEEP``, ``tmem[UR4], idesc[UR5]``.

The operand is a Mem without a base: ``ubase`` holds the register of ``tmem``, ``desc`` that of ``gdesc``; a suffix
is in the register's ``mod``.
"""

from __future__ import annotations

from ir_format.isa.codec import Codec, Mismatch, bits_get, bits_len, bits_mask, bits_put
from ir_format.isa.plan import SPECIAL, _suffixes, ur_bits
from ir_format.isa.rowlang import SlotSpec, parse_bits
from ir_format.late_pattern import late_pattern
from ir_format.model import ZERO, Mem, Operand, Reg
from ir_format.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from ir_format.isa.plan import Form


class KeywordCodec(Codec):
    """``tmem[UR+offset]`` or ``gdesc[UR]``.

    Slot kinds ``TM`` and ``GD``; the register's field is at the slot's bit, ``O40-63+72-79`` in the arguments is a
    signed offset.
    """

    __slots__ = ("descriptor", "obits", "pos", "subs", "subs_back", "ur", "width", "word")

    def __init__(self, spec: SlotSpec, form: Form, width: int, word: str) -> None:
        self.name, self.kind, self.width, self.word = spec.name, "M", width, word
        self.descriptor = word == "gdesc"
        self.pos = spec.bits[0][0]
        self.ur = (1 << ur_bits(form.sm)) - 1
        self.obits = parse_bits(spec.args[1:]) if spec.args else ()
        self.mask = self.ur << self.pos | bits_mask(self.obits)
        self.subs = {"": 0}
        if spec.enum:
            names, at = _suffixes(spec, form, 0)
            self.subs = {n: bits_put(at, i) for i, n in enumerate(names) if n is not None}
            self.mask |= bits_mask(at)
        self.subs_back = {v: n for n, v in self.subs.items()}

    def enc(self, o: Operand) -> int:
        if not isinstance(o, Mem) or o.base is not None or (o.ubase if self.descriptor else o.desc) is not None:
            raise Mismatch(f"slot {self.name} takes {self.word}[UR]")
        reg = o.desc if self.descriptor else o.ubase
        if reg is None:
            raise Mismatch(f"slot {self.name} takes {self.word}[UR]")
        num = self.ur if reg.num == ZERO else reg.num
        if not 0 <= num <= self.ur or reg.file != "UR":
            raise Mismatch("uniform register out of range")
        if reg.mod not in self.subs:
            raise Mismatch(f"slot {self.name} does not take .{reg.mod}")
        word = num << self.pos | self.subs[reg.mod]
        if self.obits:
            size = bits_len(self.obits)
            if not -(1 << size - 1) <= o.offset < 1 << size - 1:
                raise Mismatch(f"offset {o.offset:#x} does not fit")
            word |= bits_put(self.obits, o.offset & (1 << size) - 1)
        elif o.offset:
            raise Mismatch("no offset here")
        return word

    def dec(self, word: int) -> Mem:
        num = word >> self.pos & self.ur
        sub = self.subs_back.get(word & self.mask & ~(self.ur << self.pos) & ~bits_mask(self.obits))
        if sub is None:
            raise Mismatch(f"undefined suffix of {self.name}")
        offset = 0
        if self.obits:
            offset, size = bits_get(self.obits, word), bits_len(self.obits)
            offset -= offset >> size - 1 << size
        return self._operand(ZERO if num == self.ur else num, sub, offset)

    def _operand(self, num: int, mod: str, offset: int) -> Mem:
        reg = Reg("UR", num, 0, self.width, 0, mod)
        return Mem("M", None, None, offset, reg) if self.descriptor else Mem("M", None, reg, offset)

    def fmt(self, o: Operand, pc: int) -> str:
        assert isinstance(o, Mem)
        reg = o.desc if self.descriptor else o.ubase
        assert reg is not None
        parts = [] if reg.num == ZERO and o.offset else [_ur(reg.num)]
        if o.offset:
            parts.append(f"{'-' if o.offset < 0 else ''}{abs(o.offset):#x}")
        return f"{self.word}[{'+'.join(parts)}]" + ("." + reg.mod if reg.mod else "")

    def read(self, text: str) -> Operand | None:
        """The operand in nvdisasm's text, None where it is another."""
        import re  # of texts alone

        m = re.fullmatch(rf"{self.word}\[(?:(UR\w+))?\+?(-?0x[0-9a-f]+)?\](?:\.([\w.]+))?", text)
        if m is None or not (m[1] or m[2]):
            return None
        return self._operand(_num(m[1] or "URZ"), m[3] or "", int(m[2] or "0", 0))


_PAIR = late_pattern(r"tmem\[(UR\w+)\], idesc\[(UR\w+)\]")


class PairCodec(KeywordCodec):
    """``tmem[UR4], idesc[UR5]``: a register pair that prints as two operands (slot kind ``TI``): metadata address and
    instruction descriptor."""

    __slots__ = ()

    def fmt(self, o: Operand, pc: int) -> str:
        assert isinstance(o, Mem) and o.ubase is not None
        num = o.ubase.num
        return f"tmem[{_ur(num)}], idesc[{_ur(ZERO if num == ZERO or num + 1 == self.ur else num + 1)}]"

    def read(self, text: str) -> Operand | None:
        m = _PAIR.fullmatch(text)
        if m is None:
            return None
        o = self._operand(_num(m[1]), "", 0)
        return o if self.fmt(o, 0) == text else None


def _ur(num: int) -> str:
    return "URZ" if num == ZERO else f"UR{num}"


def _num(text: str) -> int:
    return ZERO if text == "URZ" else int(text[2:])


SPECIAL["TM"] = lambda spec, form, width, mods: KeywordCodec(spec, form, width, "tmem")
SPECIAL["GD"] = lambda spec, form, width, mods: KeywordCodec(spec, form, width, "gdesc")
SPECIAL["TI"] = lambda spec, form, width, mods: PairCodec(spec, form, width, "tmem")

#: Operand discriminators of the slot kinds here.
KINDS: dict[str, frozenset[str]] = {kind: frozenset("M") for kind in ("TM", "GD", "TI")}
