"""Codecs of operands that are not plain fields: branch targets, memory addresses, loadable constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ir_format.features import has
from ir_format.isa.codec import (
    Codec,
    ImmCodec,
    Mismatch,
    NameCodec,
    bits_get,
    bits_len,
    bits_mask,
    bits_put,
    operand_text,
)
from ir_format.isa.plan import SPECIAL, ur_bits
from ir_format.isa.rowlang import Bits, SlotSpec, parse_bits
from ir_format.model import INV, ZERO, Const, Imm, Label, Mem, Name, Operand, Reg, Sym
from ir_format.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from ir_format.isa.plan import Form


class TargetCodec(Codec):
    """A pc-relative branch target in units of 4 bytes from the next instruction."""

    __slots__ = ("bits", "distance", "relative", "signed", "size", "spaced", "unit")
    placed = True

    def __init__(
        self,
        bits: Bits,
        name: str,
        relative: bool = True,
        spaced: bool = False,
        distance: bool = False,
        unit: int = 4,
        signed: bool = False,
    ) -> None:
        self.bits, self.name, self.kind = bits, name, "T"
        self.relative = relative
        self.signed = relative or signed
        self.unit = unit  # bytes
        self.distance = distance  # printed as the distance from the next instruction
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
        if delta % self.unit:
            raise Mismatch("branch target is not aligned")
        delta //= self.unit
        half = 1 << (self.size - 1)
        if not (-half <= delta < half if self.signed else 0 <= delta < 2 * half):
            raise Mismatch("branch target is too far")
        return bits_put(self.bits, delta & ((1 << self.size) - 1))

    def dec_at(self, word: int, pc: int) -> Imm:
        """The absolute byte address."""
        value = bits_get(self.bits, word)
        if value >> (self.size - 1) and self.signed:
            value -= 1 << self.size
        return Imm("I", self.unit * value + (pc + 16 if self.relative else 0))

    def fmt(self, o: Operand, pc: int) -> str:
        if isinstance(o, Imm):
            value = o.value - pc - 16 if self.distance else o.value
            return f"{value:#x}" if value >= 0 else f"-{-value:#x}"
        return operand_text(o)


class InvPredCodec(Codec):
    """A predicate whose field is stored inverted (0 = PT), its negation in the next bit."""

    __slots__ = ("pos",)

    def __init__(self, pos: int, name: str, file: str = "P") -> None:
        self.pos, self.name, self.kind = pos, name, file
        self.mask = 15 << pos

    def enc(self, o: Operand) -> int:
        if not isinstance(o, Reg) or o.file != self.kind or o.flags & ~INV:
            raise Mismatch(f"slot {self.name} takes a predicate")
        num = 7 if o.num == ZERO else o.num
        return (7 - num | (8 if o.flags & INV else 0)) << self.pos

    def dec(self, word: int) -> Reg:
        value = word >> self.pos & 15
        num = 7 - (value & 7)
        return Reg(self.kind, ZERO if num == 7 else num, 0, 1, INV if value & 8 else 0)


class LdcCodec(Codec):
    """``c[bank][Rindex + offset]`` of LDC, ULDC and LDCU: index register at 24, byte offset at 38-53, bank at 54-58.

    ULDC has an opcode with an index register (``UKi``: URZ is printed) and one without.
    """

    __slots__ = ("file", "indexed", "low", "omask", "width", "zero")

    def __init__(self, spec: SlotSpec, form: Form, width: int, file: str) -> None:
        self.name, self.kind, self.width = spec.name, "K", width
        self.file = file
        self.indexed = spec.kind == "UKi"
        self.zero = 255 if file == "R" or has(form.sm, "uniform-fields-8-bits") else 63 if self.indexed else 0
        self.low = (
            37 if file == "UR" and has(form.sm, "uniform-const-load") else 38
        )  # 17 signed bits on LDCU (measured)
        self.omask = (1 << (54 - self.low)) - 1
        self.mask = self.omask << self.low | 31 << 54 | self.zero << 24

    def enc(self, o: Operand) -> int:
        if not isinstance(o, Const):
            raise Mismatch("takes a constant")
        if o.ireg is not None and (o.ireg.file != self.file or not self.zero):
            raise Mismatch("index register of the wrong file")
        if self.indexed and o.ireg is None:
            raise Mismatch("no index register")
        index = self.zero if o.ireg is None or o.ireg.num == ZERO else o.ireg.num
        half = self.omask + 1 >> 1
        most = 0xFFFF if index == self.zero else half - 1  # an index is added to a signed offset
        if not -half <= o.offset <= most or not 0 <= o.bank < 32 or index > self.zero:
            raise Mismatch(f"{operand_text(o)} is out of range")
        return (o.offset & self.omask) << self.low | o.bank << 54 | index << 24

    def dec(self, word: int) -> Const:
        index = word >> 24 & self.zero
        ireg = Reg(self.file, index) if index != self.zero else Reg(self.file, ZERO) if self.indexed else None
        offset = word >> self.low & self.omask
        if offset > self.omask >> 1:
            offset -= self.omask + 1
        return Const("C", word >> 54 & 31, offset, self.width, ireg)

    def fmt(self, o: Operand, pc: int) -> str:
        assert isinstance(o, Const)
        if o.ireg is None:
            text = operand_text(o)
            zero = "RZ" if self.file == "R" else "URZ" if self.zero else ""
            return text if o.offset or not zero else f"{text[: text.rindex('[')]}[{zero}]"
        sign = f"+{o.offset:#x}" if o.offset > 0 else f"+-{-o.offset:#x}" if o.offset < 0 else ""
        return f"c[{o.bank:#x}][{operand_text(o.ireg)}{sign}]"


class MemCodec(Codec):
    """A memory address.

    Arguments: ``R24`` base at 24-31, ``O40-63`` signed byte offset (``O40-56*32``: in units of 32), ``U32`` uniform
    register (base or descriptor) at 32, ``S78`` scale of the base at 78-79; ``W90`` and ``X76``: see
    :func:`address_bits`. The form letter says which parts there are: r none, u uniform base, v ``R.U32 + UR``, w
    ``R.64 + UR``, d ``desc[UR][R.64]``. ``!dp``: RZ can't be the base in these forms (nvdisasm refuses it, or prints
    what another form prints); ``Z``: URZ is not printed in w, ``Zv`` in v and w, where RZ is; ``Y``: an absolute
    address is signed too; ``A``: one with a uniform register is unsigned too.
    """

    __slots__ = (
        "absolute",
        "base",
        "hidden",
        "letter",
        "next",
        "nourz",
        "nozero",
        "off",
        "osize",
        "quiet",
        "scale",
        "unit",
        "upos",
        "ur",
        "uwide",
        "wide",
    )

    def __init__(self, spec: SlotSpec, form: Form, mods: tuple[str, ...]) -> None:
        self.name, self.kind = spec.name, "M"
        self.letter = "r" if spec.kind == "MS" else "u" if spec.kind == "MT" else form.letters or "r"
        self.base = self.off = self.osize = self.upos = self.scale = -1
        self.unit = 1
        args = spec.args.split(",")
        #: an absolute address (RZ as base) is printed unsigned (measured)
        self.absolute = spec.kind == "M" and "Y" not in args and (self.letter == "r" or "A" in args)
        #: RZ as base is undefined in w addresses from sm_90 on; before, a v address with RZ prints as the w one does
        #: (measured)
        self.nozero = (self.letter == ("w" if has(form.sm, "address-w-needs-base") else "v")) or any(
            a[0] == "!" and self.letter in a for a in args
        )
        self.quiet = next((a for a in args if a[0] == "Z"), "")
        #: URZ is not there where its text is that of the descriptor form, whose descriptor is not printed (measured,
        #: sm_80 to sm_89)
        self.nourz = self.quiet == "Zv" and self.letter == "w" and has(form.sm, "descriptor-not-printed")
        self.next = 0  # 1: the register after the one in the field
        self.ur = (1 << ur_bits(form.sm)) - 1
        self.mask = 0
        for arg in args:
            if arg[0] in "!AYZ":
                continue
            where, star, unit = arg[1:].partition("*")
            low = parse_bits(where)[0][0]
            if arg[0] == "R":
                self.base = low
                self.mask |= 255 << low
            elif arg[0] == "O":
                self.off, self.osize = parse_bits(where)[0]
                self.unit = int(unit) if star else 1
                self.mask |= ((1 << self.osize) - 1) << low
            elif arg[0] in "UN" and self.letter != "r":
                self.upos = low
                self.next = int(arg[0] == "N")
                self.mask |= self.ur << low
            elif arg[0] == "S":
                self.scale = low
                self.mask |= 3 << low
        self.wide = (
            2
            if self.letter in ("w", "d", "p")
            or (self.letter == "r" and spec.kind == "M" and "E" in mods and self.upos == -1 and self.scale < 0)
            else 1
        )
        self.uwide = 2 if self.letter in ("v", "w", "d", "p") and "A1" not in form.row.facts else 1
        self.hidden = self.letter == "d" and has(form.sm, "descriptor-not-printed")

    def enc(self, o: Operand) -> int:
        if not isinstance(o, Mem):
            raise Mismatch(f"slot {self.name} takes an address")
        base, letter = o.base, self.letter
        number = 255 if base is None or base.num == ZERO else base.num
        mod = "" if base is None else base.mod
        if (
            (letter in ("d", "p")) != (o.desc is not None)
            or (o.desc is not None and (o.desc.mod == "P") != (letter == "p"))
            or (letter in ("u", "v", "w")) != (o.ubase is not None)
        ):
            raise Mismatch("address parts of another form")
        if (letter == "v") != (mod == "U32") or (self.scale < 0 and mod in _SCALES and mod):
            raise Mismatch(f"base suffix {mod}")
        word = 0
        if self.base >= 0:
            if base is not None and (base.file != "R" or not 0 <= number < 256):
                raise Mismatch("base register out of range")
            if letter in ("w", "d", "p") and number != 255 and base is not None and base.width != 2:
                raise Mismatch("base is a 64-bit pair here")
            if number == 255 and self.nozero:
                raise Mismatch("RZ can't be the base here")
            word = number << self.base
        elif number != 255:
            raise Mismatch("the address has no base register here")
        offset, rest = divmod(o.offset, self.unit)
        half = 1 << (self.osize - 1) if self.off >= 0 else 0
        if rest or (offset and not -half <= offset < half * (2 if self.absolute and number == 255 else 1)):
            raise Mismatch(f"offset {o.offset:#x} does not fit")
        if self.off >= 0:
            word |= (offset & (2 * half - 1)) << self.off
        uniform = o.desc if letter in ("d", "p") else o.ubase
        if uniform is not None:
            num = self.ur if uniform.num == ZERO else uniform.num - self.next
            if not 0 <= num <= self.ur or uniform.file != "UR":
                raise Mismatch("uniform register out of range")
            if num == self.ur and self.nourz:
                raise Mismatch("URZ can't be the uniform base here")
            word |= num << self.upos
        if self.scale >= 0:
            word |= _SCALES[mod] << self.scale
        return word

    def dec(self, word: int) -> Mem:
        offset = 0
        if self.off >= 0:
            offset = word >> self.off & ((1 << self.osize) - 1)
            plain = (
                self.absolute and word >> self.base & 255 == 255
            )  # an absolute address is printed unsigned (measured)
            if offset >> (self.osize - 1) and not plain:
                offset -= 1 << self.osize
        mod = "U32" if self.letter == "v" else ""
        if self.scale >= 0:
            mod = _SCALE_NAMES[word >> self.scale & 3]
        base = None
        if self.base >= 0:
            number = word >> self.base & 255
            if number == 255 and (self.nozero or (self.letter == "r" and mod)):
                raise Mismatch("RZ can't be the base here")
            base = Reg("R", ZERO if number == 255 else number, 0, self.wide, 0, mod)
        ubase = desc = None
        if self.upos >= 0:
            num = word >> self.upos & self.ur
            if num == self.ur and self.nourz:
                raise Mismatch("URZ can't be the uniform base here")
            if self.next:
                if num >= self.ur - 1:
                    raise Mismatch("the uniform register after the last")
                num += 1
            uniform = Reg("UR", ZERO if num == self.ur else num, 0, self.uwide, 0, "P" if self.letter == "p" else "")
            if self.letter in ("d", "p"):
                desc = uniform
            else:
                ubase = uniform
        return Mem("M", base, ubase, offset * self.unit, desc)

    def fmt(self, o: Operand, pc: int) -> str:
        assert isinstance(o, Mem)
        if self.quiet and self.letter in "vw"[self.quiet == "Z" :] and o.ubase is not None:
            return mem_text(
                o._replace(ubase=None, desc=o.ubase) if o.ubase.num == ZERO else o, True, self.quiet == "Zv"
            )
        return mem_text(o, self.hidden)


class UMemCodec(Codec):
    """``[UR]``: an address in uniform registers, or ``desc[UR]`` (argument ``D``)."""

    __slots__ = ("desc", "low", "ur", "width")

    def __init__(self, spec: SlotSpec, form: Form, width: int) -> None:
        self.name, self.kind, self.width = spec.name, "M", width
        self.desc = spec.args[0] == "D"
        self.low = int(spec.args.lstrip("D"))
        self.ur = (1 << ur_bits(form.sm)) - 1
        self.mask = self.ur << self.low

    def enc(self, o: Operand) -> int:
        if not isinstance(o, Mem) or o.base is not None or o.offset:
            raise Mismatch(f"slot {self.name} takes an address in uniform registers")
        reg = o.desc if self.desc else o.ubase
        if reg is None or (o.ubase if self.desc else o.desc) is not None:
            raise Mismatch(f"slot {self.name} takes another kind of address")
        num = self.ur if reg.num == ZERO else reg.num
        if not 0 <= num <= self.ur:
            raise Mismatch("uniform register out of range")
        return num << self.low

    def dec(self, word: int) -> Mem:
        num = word >> self.low & self.ur
        reg = Reg("UR", ZERO if num == self.ur else num, 0, self.width)
        return Mem("M", None, None, 0, reg) if self.desc else Mem("M", None, reg)

    def fmt(self, o: Operand, pc: int) -> str:
        assert isinstance(o, Mem)
        return f"desc[{operand_text(o.desc)}]" if o.desc is not None else mem_text(o)


class UOffCodec(MemCodec):
    """``[UR + offset]`` with no vector register: arguments ``U24``, ``O32-63``; ``E64``: the base is a pair."""

    __slots__ = ()

    def __init__(self, spec: SlotSpec, form: Form) -> None:
        super().__init__(spec, form, ())
        self.letter = "u"
        self.nozero = False
        self.uwide = 2 if "E64" in spec.args else 1
        self.upos = next(int(a[1:]) for a in spec.args.split(",") if a[0] == "U")
        self.mask |= self.ur << self.upos

    def fmt(self, o: Operand, pc: int) -> str:
        assert isinstance(o, Mem)
        return mem_text(
            o._replace(ubase=None) if self.quiet and o.ubase is not None and o.ubase.num == ZERO and o.offset else o
        )


class UNextCodec(UMemCodec):
    """``[UR]`` of the register after the one in the field."""

    __slots__ = ()

    def enc(self, o: Operand) -> int:
        if not isinstance(o, Mem) or o.ubase is None:
            raise Mismatch(f"slot {self.name} takes an address in uniform registers")
        if o.ubase.num <= 0:
            raise Mismatch("no register before this one")
        return super().enc(o._replace(ubase=o.ubase._replace(num=o.ubase.num - 1)))

    def dec(self, word: int) -> Mem:
        o = super().dec(word)
        assert o.ubase is not None
        if o.ubase.num == ZERO or o.ubase.num == self.ur - 1:
            raise Mismatch("no register after this one")
        return o._replace(ubase=o.ubase._replace(num=o.ubase.num + 1))


class UFollowingCodec(Codec):
    """``UR``: the register after the one in the field, which is that of another operand."""

    __slots__ = ("low", "ur")

    def __init__(self, spec: SlotSpec, form: Form) -> None:
        self.name, self.kind = spec.name, "UR"
        self.low = int(spec.args)
        self.ur = (1 << ur_bits(form.sm)) - 1
        self.mask = self.ur << self.low

    def enc(self, o: Operand) -> int:
        if not isinstance(o, Reg) or o.file != "UR" or not 0 < o.num < self.ur:
            raise Mismatch(f"slot {self.name} takes a uniform register that follows another")
        return o.num - 1 << self.low

    def dec(self, word: int) -> Reg:
        num = word >> self.low & self.ur
        if num >= self.ur - 1:
            raise Mismatch("no register after this one")
        return Reg("UR", num + 1)


class ScoreboardSet(Codec):
    """``{5,4,3}``: a set of scoreboards as a bit mask; the operand is the text as a name."""

    __slots__ = ("low",)

    def __init__(self, bits: Bits, name: str) -> None:
        self.name, self.kind, self.low = name, "N", bits[0][0]
        self.mask = 63 << self.low

    def enc(self, o: Operand) -> int:
        if not isinstance(o, Name) or o.name[:1] + o.name[-1:] != "{}":
            raise Mismatch(f"slot {self.name} takes a set of scoreboards")
        word = 0
        for item in filter(None, o.name[1:-1].split(",")):
            if item not in _DIGITS:
                raise Mismatch(f"no scoreboard {item}")
            word |= 1 << self.low + int(item)
        return word

    def dec(self, word: int) -> Name:
        bits = word >> self.low & 63
        return Name("N", "{" + ",".join(str(i) for i in range(5, -1, -1) if bits >> i & 1) + "}")

    def fmt(self, o: Operand, pc: int) -> str:
        assert isinstance(o, Name)
        return o.name if o.name != "{}" else ""


_DIGITS = frozenset("012345")


class HiddenCodec(ImmCodec):
    """Bits that nvdisasm does not print."""

    __slots__ = ()

    def fmt(self, o: Operand, pc: int) -> str:
        return ""


_SCALES = {"": 0, "X4": 1, "X8": 2, "X16": 3}
_SCALE_NAMES = ("", "X4", "X8", "X16")


def mem_text(o: Mem, hide_desc: bool = False, show_base: bool = False) -> str:
    """nvdisasm's text of an address."""
    parts: list[str] = []
    base = o.base
    if base is not None and (
        base.num != ZERO or base.mod or show_base or o.desc is not None or (o.ubase is None and o.offset == 0)
    ):
        text = "RZ" if base.num == ZERO else f"R{base.num}"
        if base.mod:
            text += "." + base.mod
        elif base.width == 2 and (o.desc is not None or o.ubase is not None):
            text += ".64"
        parts.append(text)
    if o.ubase is not None:
        parts.append(operand_text(o.ubase))
    if o.offset or not parts:
        parts.append(f"{'-' if o.offset < 0 else ''}{abs(o.offset):#x}")
    inner = f"[{'+'.join(parts)}]"
    return inner if o.desc is None or hide_desc else f"desc[{operand_text(o.desc._replace(mod=''))}]{inner}"


def swizzles() -> tuple[str, ...]:
    """The 256 signs of FSWZADD: per lane pair of the two quads, highest first, both added, one negated, or the first
    left out."""
    pairs = ("PP", "PN", "NP", "ZP")
    return tuple(["".join(pairs[v >> at & 3] for at in (6, 4, 2, 0)) for v in range(256)])


SPECIAL["T"] = lambda spec, form, width, mods: TargetCodec(spec.bits, spec.name, True, spec.args == "sp")
SPECIAL["Tr"] = lambda spec, form, width, mods: TargetCodec(spec.bits, spec.name, True, spec.args == "sp", True)
SPECIAL["Tas"] = lambda spec, form, width, mods: TargetCodec(
    spec.bits, spec.name, False, spec.args == "sp", signed=True
)
SPECIAL["Ta"] = lambda spec, form, width, mods: TargetCodec(spec.bits, spec.name, False, spec.args == "sp")
SPECIAL["K"] = lambda spec, form, width, mods: LdcCodec(spec, form, width, "R")
SPECIAL["UK"] = SPECIAL["UKi"] = lambda spec, form, width, mods: LdcCodec(spec, form, width, "UR")
SPECIAL["H"] = lambda spec, form, width, mods: HiddenCodec(spec.bits, "u", spec.name)
SPECIAL["MU"] = lambda spec, form, width, mods: UMemCodec(spec, form, width)
SPECIAL["SBS"] = lambda spec, form, width, mods: ScoreboardSet(spec.bits, spec.name)
SPECIAL["SWZ"] = lambda spec, form, width, mods: NameCodec(swizzles(), spec.bits, spec.name)
SPECIAL["M"] = lambda spec, form, width, mods: MemCodec(spec, form, mods)
SPECIAL["MS"] = SPECIAL["MT"] = SPECIAL["M"]
SPECIAL["MUO"] = lambda spec, form, width, mods: UOffCodec(spec, form)
SPECIAL["URX"] = lambda spec, form, width, mods: UFollowingCodec(spec, form)
SPECIAL["MUN"] = lambda spec, form, width, mods: UNextCodec(spec, form, width)
SPECIAL["Tb"] = lambda spec, form, width, mods: TargetCodec(spec.bits, spec.name, unit=1)
SPECIAL["UPI"] = lambda spec, form, width, mods: InvPredCodec(spec.bits[0][0], spec.name, "UP")
SPECIAL["PI"] = lambda spec, form, width, mods: InvPredCodec(spec.bits[0][0], spec.name)
