"""Codecs of operands that are not plain fields: branch targets, memory addresses, loadable constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ir_format.isa.codec import Codec, Mismatch, bits_get, bits_len, bits_mask, bits_put, operand_text
from ir_format.isa.plan import SPECIAL, ur_bits
from ir_format.isa.rowlang import Bits, SlotSpec
from ir_format.model import INV, ZERO, Const, Imm, Label, Mem, Operand, Reg, Sym

if TYPE_CHECKING:
    from ir_format.isa.plan import Form


class TargetCodec(Codec):
    """A pc-relative branch target in units of 4 bytes from the next instruction."""

    __slots__ = ("bits", "relative", "size", "spaced")

    def __init__(self, bits: Bits, name: str, relative: bool = True, spaced: bool = False) -> None:
        self.bits, self.name, self.kind = bits, name, "T"
        self.relative = relative
        self.spaced = spaced  # nvdisasm prints a blank, not a comma, before it
        self.size = bits_len(bits)
        self.mask = bits_mask(bits)

    def enc_at(self, o: Operand, pc: int, label_pc: Mapping[int, int] | Callable[[int], int] | None) -> int:
        """Field bits for a target: Label by ``label_pc``, Imm as absolute byte address, Sym as 0 (relocated)."""
        if isinstance(o, Label):
            if label_pc is None:
                raise Mismatch("a label without addresses")
            at = label_pc(o.block) if callable(label_pc) else label_pc[o.block]
        elif isinstance(o, Imm):
            at = o.value
        elif isinstance(o, Sym):
            at = pc + 16
        else:
            raise Mismatch(f"slot {self.name} takes a branch target")
        delta = at - pc - 16 if self.relative else at
        if delta & 3:
            raise Mismatch("branch target is not aligned")
        delta >>= 2
        half = 1 << (self.size - 1)
        if not -half <= delta < half:
            raise Mismatch("branch target is too far")
        return bits_put(self.bits, delta & ((1 << self.size) - 1))

    def dec_at(self, word: int, pc: int) -> Imm:
        """The absolute byte address."""
        value = bits_get(self.bits, word)
        if value >> (self.size - 1):
            value -= 1 << self.size
        return Imm("I", 4 * value + (pc + 16 if self.relative else 0))

    def fmt(self, o: Operand, pc: int) -> str:
        if isinstance(o, Imm):
            return f"{o.value:#x}" if o.value >= 0 else f"-{-o.value:#x}"
        return operand_text(o)


class InvPredCodec(Codec):
    """A predicate whose field is stored inverted (0 = PT), its negation in the next bit."""

    __slots__ = ("pos",)

    def __init__(self, pos: int, name: str) -> None:
        self.pos, self.name, self.kind = pos, name, "P"
        self.mask = 15 << pos

    def enc(self, o: Operand) -> int:
        if not isinstance(o, Reg) or o.file != "P" or o.flags & ~INV:
            raise Mismatch(f"slot {self.name} takes a predicate")
        num = 7 if o.num == ZERO else o.num
        return (7 - num | (8 if o.flags & INV else 0)) << self.pos

    def dec(self, word: int) -> Reg:
        value = word >> self.pos & 15
        num = 7 - (value & 7)
        return Reg("P", ZERO if num == 7 else num, 0, 1, INV if value & 8 else 0)


class LdcCodec(Codec):
    """``c[bank][Rindex + offset]`` of LDC, ULDC and LDCU: index register at 24, byte offset at 38-53, bank at 54-58."""

    __slots__ = ("file", "low", "omask", "width", "zero")

    def __init__(self, spec: SlotSpec, form: Form, width: int, file: str) -> None:
        self.name, self.kind, self.width = spec.name, "K", width
        self.file = file
        self.zero = 255 if file == "R" or form.sm >= 100 else 0  # ULDC has no index register
        self.low = 37 if file == "UR" and form.sm >= 100 else 38  # 17 signed bits on LDCU (measured)
        self.omask = (1 << (54 - self.low)) - 1
        self.mask = self.omask << self.low | 31 << 54 | self.zero << 24

    def enc(self, o: Operand) -> int:
        if not isinstance(o, Const):
            raise Mismatch("takes a constant")
        if o.ireg is not None and (o.ireg.file != self.file or not self.zero):
            raise Mismatch("index register of the wrong file")
        index = self.zero if o.ireg is None or o.ireg.num == ZERO else o.ireg.num
        if not -(self.omask + 1 >> 1) <= o.offset <= self.omask >> 1 or not 0 <= o.bank < 32 or index > self.zero:
            raise Mismatch(f"{operand_text(o)} is out of range")
        return (o.offset & self.omask) << self.low | o.bank << 54 | index << 24

    def dec(self, word: int) -> Const:
        index = word >> 24 & self.zero
        ireg = None if index == self.zero else Reg(self.file, index)
        offset = word >> self.low & self.omask
        if offset > self.omask >> 1:
            offset -= self.omask + 1
        return Const("C", word >> 54 & 31, offset, self.width, ireg)


    def fmt(self, o: Operand, pc: int) -> str:
        assert isinstance(o, Const)
        if o.ireg is None:
            text = operand_text(o)
            return text if o.offset or self.file == "UR" else text[: text.rindex("[")] + "[RZ]"
        sign = f"+{o.offset:#x}" if o.offset > 0 else f"+-{-o.offset:#x}" if o.offset < 0 else ""
        return f"c[{o.bank:#x}][{operand_text(o.ireg)}{sign}]"


class MemCodec(Codec):
    """A memory address.

    Arguments: ``R24`` base at 24-31, ``O40`` signed 24-bit byte offset, ``U32`` uniform register (base or descriptor) at 32,
    ``S78`` scale of the base at 78-79. The form letter says which parts there are: r none, u uniform base,
    v ``R.U32 + UR``, w ``R.64 + UR``, d ``desc[UR][R.64]``.
    """

    __slots__ = ("base", "hidden", "letter", "off", "scale", "upos", "ur", "wide")

    def __init__(self, spec: SlotSpec, form: Form, mods: tuple[str, ...]) -> None:
        self.name, self.kind = spec.name, "M"
        args = dict((a[0], int(a[1:])) for a in spec.args.split(","))
        self.letter = form.letters
        self.base, self.off = args.get("R", -1), args.get("O", -1)
        self.scale = args.get("S", -1)
        self.upos = args.get("U", -1) if self.letter in ("u", "v", "w", "d") else -1
        self.ur = (1 << ur_bits(form.sm)) - 1
        self.wide = 2 if "E" in mods and self.letter not in ("v", "u") else 1
        self.hidden = form.sm < 90
        self.mask = 0
        if self.base >= 0:
            self.mask |= 255 << self.base
        if self.off >= 0:
            self.mask |= 0xFFFFFF << self.off
        if self.upos >= 0:
            self.mask |= self.ur << self.upos
        if self.scale >= 0:
            self.mask |= 3 << self.scale

    def enc(self, o: Operand) -> int:
        if not isinstance(o, Mem):
            raise Mismatch(f"slot {self.name} takes an address")
        word = 0
        base = o.base
        number = 255 if base is None or base.num == ZERO else base.num
        if not 0 <= number < 256 or (base is not None and base.file != "R"):
            raise Mismatch("base register out of range")
        mod = "" if base is None else base.mod
        if (self.letter == "v" and mod != "U32") or (mod and self.letter in ("r", "w", "d") and mod not in _SCALES):
            raise Mismatch(f"base suffix {mod}")
        if self.letter in ("w", "d") and base is not None and base.num != ZERO and base.width != 2:
            raise Mismatch("base is a 64-bit pair here")
        word |= number << self.base
        if not -0x800000 <= o.offset < 0x800000:
            raise Mismatch(f"offset {o.offset:#x} does not fit")
        word |= (o.offset & 0xFFFFFF) << self.off
        uniform = o.desc if self.letter == "d" else o.ubase if self.upos >= 0 else None
        if (self.letter == "d") != (o.desc is not None) or (self.letter in ("u", "v", "w")) != (o.ubase is not None):
            raise Mismatch("address parts of another form")
        if uniform is not None:
            num = self.ur if uniform.num == ZERO else uniform.num
            if not 0 <= num <= self.ur or uniform.file != "UR":
                raise Mismatch("uniform register out of range")
            word |= num << self.upos
        if self.scale >= 0:
            word |= _SCALES.get(mod, 0) << self.scale
        return word

    def dec(self, word: int) -> Mem:
        number = word >> self.base & 255
        offset = word >> self.off & 0xFFFFFF
        if offset >> 23:
            offset -= 1 << 24
        mod = "U32" if self.letter == "v" else ""
        if self.scale >= 0:
            mod = _SCALE_NAMES[word >> self.scale & 3]
        base = Reg("R", ZERO if number == 255 else number, 0, self.wide, 0, mod)
        ubase = desc = None
        if self.upos >= 0:
            num = word >> self.upos & self.ur
            uniform = Reg("UR", ZERO if num == self.ur else num, 0, 2 if self.letter in ("v", "w", "d") else 1)
            if self.letter == "d":
                desc = uniform
            else:
                ubase = uniform
        return Mem("M", base, ubase, offset, desc)

    def fmt(self, o: Operand, pc: int) -> str:
        assert isinstance(o, Mem)
        return mem_text(o, self.hidden)


_SCALES = {"": 0, "X4": 1, "X8": 2, "X16": 3}
_SCALE_NAMES = ("", "X4", "X8", "X16")


def mem_text(o: Mem, hide_desc: bool = False) -> str:
    """nvdisasm's text of an address."""
    parts: list[str] = []
    base = o.base
    if base is not None and (base.num != ZERO or (o.ubase is None and o.offset == 0)):
        text = "RZ" if base.num == ZERO else f"R{base.num}"
        if base.mod:
            text += "." + base.mod
        elif base.width == 2 and (o.desc is not None or o.ubase is not None):
            text += ".64"
        parts.append(text)
    if o.ubase is not None:
        parts.append(operand_text(o.ubase))
    if o.offset or not parts:
        parts.append(f"{o.offset:#x}" if o.offset >= 0 else f"-{-o.offset:#x}")
    inner = f"[{'+'.join(parts)}]"
    return inner if o.desc is None or hide_desc else f"desc[{operand_text(o.desc)}]{inner}"


SPECIAL["T"] = lambda spec, form, width, mods: TargetCodec(spec.bits, spec.name, True, spec.args == "sp")
SPECIAL["Ta"] = lambda spec, form, width, mods: TargetCodec(spec.bits, spec.name, False, spec.args == "sp")
SPECIAL["K"] = lambda spec, form, width, mods: LdcCodec(spec, form, width, "R")
SPECIAL["UK"] = lambda spec, form, width, mods: LdcCodec(spec, form, width, "UR")
SPECIAL["M"] = lambda spec, form, width, mods: MemCodec(spec, form, mods)
SPECIAL["PI"] = lambda spec, form, width, mods: InvPredCodec(spec.bits[0][0], spec.name)
