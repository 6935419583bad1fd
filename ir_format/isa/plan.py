"""Plans: a plan is a row on one SM, in one operand form, with one choice of modifiers.

Everything that encode, decode, print and parse need is computed when the plan is made, so that the work per instruction
is a few calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ir_format.features import has
from ir_format.isa import derive, vectors
from ir_format.isa.codec import (
    ZERO_NUM,
    Codec,
    ConstCodec,
    CxCodec,
    HalfImmCodec,
    ImmCodec,
    InnerRegCodec,
    Mismatch,
    NameCodec,
    RegCodec,
    SplitRegCodec,
    address_bits,
    bits_get,
    bits_mask,
    bits_put,
    operand_text,
)
from ir_format.isa.facts import table
from ir_format.isa.rowlang import LAYOUTS, Bits, Enum, ModSpec, Row, SlotSpec
from ir_format.model import ABS, INV, NEG, REUSE, ZERO, Const, Imm, Mem, Name, Operand, Reg

GUARD_MASK = 0xF << 12
CTL_MASK = 0x1FFFF << 105  # stall, yield, scoreboards, waits; the reuse bits 122-125 belong to the slots
#: Bit of the reuse hint by the lowest bit of the register field; the metadata and scales of matrix products have theirs
#: elsewhere.
REUSE_BIT = {24: 1 << 122, 32: 1 << 123, 64: 1 << 124, 40: 1 << 50, 52: 1 << 51}
OPCODE_MASK = 0xFFF

#: Places of the sign, absolute and suffix bits by the position of a flexible operand.
_NEG_AT = {24: 72, 32: 63, 64: 75}
_ABS_AT = {24: 73, 32: 62, 64: 74}
_SUB_AT: dict[int, Bits] = {32: ((60, 2),), 64: ((81, 2),)}

#: Layouts whose form letter is an address form.
MEMORY = frozenset(("G", "G4", "GA", "GT", "AP", "GS", "L", "L1", "L6", "A", "GU"))

Codecmaker = Callable[[SlotSpec, "Form", int, tuple[str, ...]], Codec]

#: Codecs of special slot kinds by kind name, filled by the modules that define them.
SPECIAL: dict[str, Codecmaker] = {}


def ur_bits(sm: int) -> int:
    """Bits of a uniform register field (measured: 6 to sm_90, 8 from sm_100)."""
    return 8 if has(sm, "uniform-fields-8-bits") else 6


#: All that codecs look at in a register but the number: whether it is RZ, flags, suffix. Or an immediate.
_Shape = tuple[bool, int, str] | Imm
#: Immediates about which a slot remembers whether it takes them.
_REMEMBERED = 512


class Slot:
    """A slot of a plan. ``known``: of the codec, shared by the plans that have it."""

    __slots__ = ("codec", "default", "is_dst", "is_predicate", "known", "name", "optional", "shown")

    def __init__(
        self,
        name: str,
        codec: Codec,
        known: dict[_Shape, bool],
        default: Operand | None,
        shown: bool,
        optional: bool,
        is_dst: bool,
        is_predicate: bool,
    ) -> None:
        self.known = known if shown else {}  # what :meth:`takes` said of registers
        self.name = name
        self.codec = codec
        self.default = default
        self.shown = shown  # False: not printed with these modifiers, holds its default
        self.optional = optional  # printed unless it holds its default
        self.is_dst = is_dst
        self.is_predicate = is_predicate  # written as one in the row

    def hidden(self, o: Operand) -> int:
        """Encoder of a slot that is not printed: no bits. Raises Mismatch for another operand than the slot holds
        then."""
        held = self.default
        if o != held and not (isinstance(o, Reg) and isinstance(held, Reg) and o[:2] == held[:2] and o[4] == held[4]):
            raise Mismatch(f"operand {self.name} must be {operand_text(held)} here")  # type: ignore[arg-type]
        return 0

    def takes(self, o: Operand) -> bool:
        """Whether the slot holds the operand; virtual register numbers count as any, and so do places of branch
        targets."""
        if self.shown and self.codec.placed:
            return True
        try:
            (self.codec.enc if self.shown else self.hidden)(_any_number(o))
        except Mismatch:
            return False
        return True


class Plan:
    """See the module text. ``value``/``mask``: the bits that no operand, guard or control field owns. ``shared``: bits
    that two operands own. ``encoders``: of each slot, None where the bits depend on the instruction's address.
    ``kinds``: of operands that each slot of the row may hold in some form, filled when first asked for."""

    __slots__ = ("derived", "encoders", "form", "hints", "kinds", "mask", "mods", "ndst", "shared", "slots", "value")

    def __init__(self, form: Form, mods: tuple[str, ...], slots: list[Slot], ndst: int, value: int, owned: int) -> None:
        self.form = form
        self.mods = mods
        self.slots = slots
        self.ndst = ndst
        self.value = value
        self.mask = ((1 << 128) - 1) & ~(owned | GUARD_MASK | CTL_MASK)
        self.encoders: list[Callable[[Operand], int] | None] = [
            s.hidden if not s.shown else None if s.codec.placed else s.codec.enc for s in slots
        ]
        self.hints = 0  # reuse bits of the operands
        self.shared = 0
        held = 0
        for s in slots:
            if not s.shown:
                continue
            if isinstance(s.codec, RegCodec):
                self.hints |= s.codec.flags.get(REUSE, 0)
            self.shared |= held & s.codec.mask
            held |= s.codec.mask
        self.derived = form.derived
        self.kinds: list[frozenset[str]] = []

    def takes(self, ops: Sequence[Operand]) -> bool:
        """Whether every slot takes its operand (:meth:`Slot.takes`); the answers for registers and some immediates
        are remembered."""
        for slot, o in zip(self.slots, ops):
            if type(o) is Reg:
                key = o[1] == ZERO, o[4], o[5]
                fits = slot.known.get(key)
                if fits is None:
                    fits = slot.known[key] = slot.takes(o)
                if not fits:
                    return False
            elif type(o) is Imm:
                fits = slot.known.get(o)
                if fits is None:
                    fits = slot.takes(o)
                    if len(slot.known) < _REMEMBERED:
                        slot.known[o] = fits
                if not fits:
                    return False
            elif not slot.takes(o):
                return False
        return True

    def check_shared(self, ops: Sequence[Operand]) -> None:
        """Raises Mismatch where two operands of one field differ."""
        word = held = 0
        for slot, o in zip(self.slots, ops):
            mask = slot.codec.mask & self.shared
            if slot.shown and mask:
                bits = slot.codec.enc(o) & mask
                if (word ^ bits) & held & mask:
                    raise Mismatch(f"operand {slot.name} differs from the one that shares its field")
                word, held = word | bits, held | mask


def _any_number(o: Operand) -> Operand:
    """The operand with register 1 for each of its registers: virtual numbers have no range."""
    if type(o) is Reg:
        return _numbered(o)
    if type(o) is Mem:
        return Mem(
            "M",
            o.base and _numbered(o.base),
            o.ubase and _numbered(o.ubase),
            o.offset,
            o.desc and _numbered(o.desc),
            o.sym,
        )
    if type(o) is Const and o.ireg is not None:
        return o._replace(ireg=_numbered(o.ireg))
    return o


def _numbered(r: Reg) -> Reg:
    """The register with number 1, RZ and PT left alone."""
    return r if r.num == ZERO else Reg(r.file, 1, r.sub, r.width, r.flags, r.mod)


class Form:
    """A row at one SM with fixed kinds of its flexible operands."""

    __slots__ = (
        "by_bits", "by_mods", "choices", "codecs", "derived", "enums", "fixmask", "fixvalue", "flexible", "groups",
        "guard", "letters", "modmask", "opcode", "places", "row", "sm",
        "widths",
    )  # fmt: skip

    def __init__(
        self, row: Row, sm: int, letters: str, enums: dict[str, Enum], choices: dict[tuple[str, ...], list[int] | None]
    ) -> None:
        """``choices``: what :func:`choose` said, shared by the forms of a row."""
        self.row = row
        self.letters = letters
        self.choices = choices
        self.codecs: dict[tuple[int, int, bool], tuple[Codec, dict[_Shape, bool]]] = {}
        specs = (*row.dsts, *row.srcs)
        self.places = len(specs)
        own = "UR" if row.layout.startswith("U") else "R"
        self.flexible = [
            (k, _KIND_OF.get(_place(s, self)[0], "I") or own) for k, s in enumerate(specs) if s.kind == "alu"
        ]
        self.sm = sm
        self.enums = enums
        number = LAYOUTS[row.layout][letters]
        self.opcode = row.opcode if row.layout == "-" else row.opcode | number << 9
        self.fixvalue, self.fixmask = self.opcode, OPCODE_MASK
        wide = 1 if "u" in letters or "x" in letters else 0
        if row.layout != "-" and row.layout not in MEMORY:
            self.fixmask |= 1 << 91
            self.fixvalue |= (wide or (row.layout.startswith("U") and row.layout != "UB")) << 91
        if row.layout in MEMORY:
            self._address_mode()
        for bits, value in row.fix:
            self.fixmask |= bits_mask(bits)
            self.fixvalue = self.fixvalue & ~bits_mask(bits) | bits_put(bits, value)
        hidden = row.facts.get("immsub", "")
        for spec in specs if hidden else ():
            if spec.kind == "alu" and _place(spec, self)[0] == "i":
                self._hidden_suffix(spec, hidden)
        self.groups = [m for m in row.mods if m.bits]
        self.modmask = 0
        for group in self.groups:
            self.modmask |= bits_mask(group.bits)
        self.derived = tuple((m.cond, m.values[1] or "", derive.RULES[m.cond]) for m in row.mods if m.cond)
        self.by_bits: dict[int, Plan | None] = {}
        self.by_mods: dict[tuple[str, ...], Plan | None] = {}
        self.widths = vectors.RULES.get(row.facts.get("widths", ""))
        self.guard = row.facts.get("guard") or ("UP" if row.op.startswith("U") else "P")

    def _hidden_suffix(self, spec: SlotSpec, name: str) -> None:
        """An immediate has this suffix in the word, though nvdisasm prints none (measured)."""
        names, bits = _suffixes(spec, self, 0)
        self.fixmask |= bits_mask(bits)
        self.fixvalue |= bits_put(bits, names.index(name))

    def _address_mode(self) -> None:
        args = next(s.args for s in (*self.row.srcs, *self.row.dsts) if s.kind == "M")
        fixed = address_bits(self.letters, args, self.row.layout, self.sm)
        if self.letters in ("w", "d", "p") and any(
            m.bits == ((72, 1),) and m.values == ("", "E") for m in self.row.mods
        ):
            fixed[72] = 1  # a 64-bit base is an extended address
        for bit, value in fixed.items():
            self.fixmask |= 1 << bit
            self.fixvalue = self.fixvalue & ~(1 << bit) | value << bit

    def may_take(self, kinds: tuple[str, ...]) -> bool:
        """False where the operands' kinds are not those of the form; quick."""
        if len(kinds) != self.places:
            return False
        return all([kinds[k] == kind for k, kind in self.flexible])

    def plan_for_word(self, word: int) -> Plan | None:
        """The plan by the modifier bits of a word, None where they are undefined."""
        key = word & self.modmask
        try:
            return self.by_bits[key]
        except KeyError:
            plan = self._make([bits_get(m.bits, word) if m.bits else 0 for m in self.row.mods])
            self.by_bits[key] = plan
            return plan

    def plan_for_mods(self, mods: tuple[str, ...]) -> Plan | None:
        """The plan by modifier names, None where the row does not take them."""
        try:
            return self.by_mods[mods]
        except KeyError:
            fixed = self.row.fixed
            plan = None
            if mods[: len(fixed)] == fixed:
                if mods not in self.choices:
                    self.choices[mods] = choose(self.row.mods, mods[len(fixed) :])
                values = self.choices[mods]
                if values is not None:
                    plan = self._make(values)
            self.by_mods[mods] = plan
            return plan

    def _make(self, values: list[int]) -> Plan | None:
        names: list[str] = list(self.row.fixed)
        value = self.fixvalue
        widths: dict[str, int] = {}
        for group, choice in zip(self.row.mods, values):
            if group.cond:
                continue
            text = group.values[choice] if choice < len(group.values) else None
            if text is None:
                return None
            if text:
                names += text.split(".")
            if group.group:
                widths[group.group] = group.width[choice]
            if group.bits:
                value |= bits_put(group.bits, choice)
        mods = tuple(names)
        slots: list[Slot] = []
        owned = 0
        row = self.row
        for is_dst, specs in ((True, row.dsts), (False, row.srcs)):
            for spec in specs:
                width = widths.get(spec.group, 0) or spec.width if spec.group else spec.width
                codec, known = self._codec(len(slots), spec, width, mods)
                shown = spec.opt in ("", "*") or any(c in mods for c in spec.opt.split("_"))
                default = parse_default(spec, codec, width)
                slot = Slot(spec.name, codec, known, default, shown, spec.opt == "*", is_dst, spec.kind in ("P", "UP"))
                slots.append(slot)
                if shown:
                    owned |= codec.mask
                else:
                    if default is None:
                        return None  # an absent operand leaves no room for an immediate or a constant
                    value |= codec.enc(default)
        value &= ~owned
        if (value ^ self.fixvalue) & self.fixmask:
            return None  # the modifiers contradict the fixed bits of the form
        return Plan(self, mods, slots, len(row.dsts), value, owned)

    def _codec(self, place: int, spec: SlotSpec, width: int, mods: tuple[str, ...]) -> tuple[Codec, dict[_Shape, bool]]:
        """The codec of a slot, and what is known of it. Plans share those of registers: modifiers only say whether a
        sign is an inversion there."""
        key = place, width, spec.inv == "*" or (spec.inv != "" and spec.inv in mods)
        found = self.codecs.get(key)
        if found is None:
            found = make_codec(spec, self, width, mods), {}
            if spec.kind in _REGISTERS and isinstance(found[0], RegCodec):
                self.codecs[key] = found
        return found


#: Kind of operand by the letter of a form; '' a register of the layout's file.
_KIND_OF = {"r": "", "k": "C", "u": "UR", "x": "C"}
_REGISTERS = frozenset(("alu", "R", "Rn", "UR", "URn", "P", "UP", "B"))


def choose(specs: tuple[ModSpec, ...], mods: tuple[str, ...]) -> list[int] | None:
    """Values of the modifier groups that print as ``mods``; derived names may be there or not. None where nothing
    fits."""

    def walk(i: int, j: int) -> list[int] | None:
        if i == len(specs):
            return [] if j == len(mods) else None
        spec = specs[i]
        found: list[int] | None
        for value, text in enumerate(spec.values):
            if not text:
                continue
            count = text.count(".") + 1
            if mods[j : j + count] == (tuple(text.split(".")) if count > 1 else (text,)):
                found = walk(i + 1, j + count)
                if found is not None:
                    return [value, *found]
        if "" in spec.values:
            found = walk(i + 1, j)
            if found is not None:
                return [spec.values.index(""), *found]
        return None

    return walk(0, 0)


def parse_default(spec: SlotSpec, codec: Codec, width: int) -> Operand | None:
    """The operand that a slot holds when it is not written, None where it must be."""
    text = spec.default
    if not text:
        return None
    kind = spec.kind if spec.kind != "alu" else codec.kind
    if kind in ("P", "UP", "PI", "UPI"):
        return Reg(codec.kind, 0 if text.endswith("0") else ZERO, 0, 1, INV if text.startswith("!") else 0)
    if isinstance(codec, ImmCodec):
        return Imm("I", int(text, 0)) if text[0].isdigit() else Imm("I", 0)
    if kind in ("N", "SBS"):
        return Name("N", text)
    if kind in ("R", "UR"):
        return Reg(kind, ZERO, 0, width)
    return None


def _flags(spec: SlotSpec, pos: int, inv: bool, reuse: bool, reuse_at: int = 0, yneg: int = 0) -> dict[int, int]:
    flags: dict[int, int] = {}
    if spec.neg >= 0:
        at = (yneg if yneg and pos == 64 else _NEG_AT.get(pos, spec.neg)) if spec.kind == "alu" else spec.neg
        flags[INV if inv else NEG] = 1 << at
    if spec.abs >= 0:
        flags[ABS] = 1 << (
            (83 if yneg == 84 and pos == 64 else _ABS_AT.get(pos, spec.abs)) if spec.kind == "alu" else spec.abs
        )
    if reuse and (reuse_at or pos) in REUSE_BIT:
        flags[REUSE] = REUSE_BIT[reuse_at or pos]
    return flags


def _reuse_at(spec: SlotSpec, form: Form) -> int:
    """Which operand's reuse bit: by place in the three-operand scheme, where the b of AC layouts is the third
    (measured)."""
    return 64 if spec.name == "c" or form.row.layout in ("AC", "AY") else 32


def _has_reuse(row: Row, spec: SlotSpec) -> bool:
    """Whether a register slot may carry a reuse hint: all of arithmetic, where the row does not say otherwise
    (``reuse=ab``, ``reuse=1``, ``reuse=0``)."""
    said = row.facts.get("reuse")
    if said is not None:
        return said == "1" or spec.name in said
    return row.layout != "-" and row.layout not in MEMORY


def _spaced(form: Form, mods: tuple[str, ...], name: str) -> bool:
    facts = form.row.facts
    if facts.get("csp") == "1" or (name == "c" and facts.get("cspc") == "1"):
        return True
    if "halfgap" in table()[form.row.op].tags:
        return "F16" in mods or "BF16" in mods
    if form.row.op == "I2F":
        return source_type(tuple(m for m in mods if m not in ("F16", "BF16"))) in _SMALL
    return form.row.op == "F2F" and source_type(mods) in _SMALL


def _suffixes(spec: SlotSpec, form: Form, pos: int) -> tuple[tuple[str | None, ...], Bits]:
    """Suffix table and bits of a slot; ``<=SIGN>`` is a suffix that is always there."""
    if spec.enum.startswith("="):
        return (spec.enum[1:],), ()
    return form.enums[spec.enum].names, _SUB_AT.get(pos, spec.ebits) if spec.ebits in _SUB_AT.values() else spec.ebits


def make_codec(spec: SlotSpec, form: Form, width: int, mods: tuple[str, ...]) -> Codec:
    """The codec of a slot in a form with these modifiers."""
    inv = spec.inv == "*" or (spec.inv != "" and spec.inv in mods)
    kind, pos = spec.kind, spec.bits[0][0] if spec.bits else 0
    reuse = _has_reuse(form.row, spec)
    sub = _suffixes(spec, form, 0) if spec.enum else None
    if kind == "alu":
        letter, pos = _place(spec, form)
        uniform = form.row.layout.startswith("U")
        if spec.enum:
            sub = _suffixes(spec, form, pos)
        flags = _flags(
            spec,
            pos,
            inv,
            reuse and letter == "r" and not uniform,
            _reuse_at(spec, form),
            int(form.row.facts.get("yneg", "0")),
        )
        if letter == "r":
            if uniform:
                return RegCodec("UR", pos, ur_bits(form.sm), width, flags, spec.name, sub)
            kind_of = InnerRegCodec if form.row.facts.get("inbars") else RegCodec
            return kind_of("R", pos, 8, width, flags, spec.name, sub)
        if letter == "u":
            return RegCodec("UR", pos, ur_bits(form.sm), width, flags, spec.name, sub)
        if letter == "k":
            return ConstCodec(width, flags, spec.name, sub, _spaced(form, mods, spec.name))
        if letter == "x":
            return CxCodec(width, flags, spec.name, sub, _spaced(form, mods, spec.name))
        style = imm_style(form.row, mods)
        small = style in ("f16", "bf16") or (
            form.row.op == "I2F" and source_type(tuple(m for m in mods if m not in ("F16", "BF16", "F64"))) in _SMALL
        )
        size = 16 if small else 32
        if spec.enum == "lowhigh" and sub is not None:
            return HalfImmCodec(((32, size),), style, spec.name, sub)
        return ImmCodec(((32, size),), style, spec.name)
    if kind in SPECIAL:
        return SPECIAL[kind](spec, form, width, mods)
    if kind in ("R", "Rn"):
        return RegCodec(
            "R", pos, 8, width, _flags(spec, pos, inv, reuse and pos in REUSE_BIT), spec.name, sub, kind == "R" or None
        )
    if kind == "UR" and len(spec.bits) > 1:
        return SplitRegCodec("UR", spec.bits, width, spec.name)
    if kind in ("UR", "URn"):
        return RegCodec(
            "UR", pos, ur_bits(form.sm), width, _flags(spec, pos, inv, False), spec.name, sub, kind == "UR" or None
        )
    if kind in ZERO_NUM:
        return RegCodec(kind, pos, 3, 1, {INV: 1 << spec.neg} if spec.neg >= 0 else {}, spec.name, sub)
    if kind == "B":
        return RegCodec("B", pos, 4, 1, {}, spec.name, None, False)
    if kind == "I":
        return ImmCodec(
            spec.bits, spec.args or imm_style(form.row, mods), spec.name, 1 << spec.neg if spec.neg >= 0 else 0
        )
    if kind == "N":
        names = form.enums[spec.args].names if spec.args in form.enums else (spec.args,)
        return NameCodec(names, spec.bits, spec.name)
    raise Mismatch(f"slot kind {kind}")


def imm_style(row: Row, mods: tuple[str, ...]) -> str:
    """How the row prints an immediate. ``src``: by the source type, the last type modifier; ``int``: signed for signed
    types."""
    style = row.facts.get("imm", "s")
    if style == "f16x2" and "BF16_V2" in mods:
        return "bf16x2"
    if style == "src":
        return {"F16": "f16", "BF16": "bf16"}.get(source_type(mods), "f32")
    if style == "int":
        kind = source_type(mods)
        return "u" if kind.startswith("U") else "s"
    return style


_TYPES = frozenset("F16 BF16 F32 F64 U8 S8 U16 S16 U32 S32 U64 S64".split())  # noqa: SIM905


def source_type(mods: tuple[str, ...]) -> str:
    """The source type of a conversion, '' where it is the unprinted 32-bit one."""
    types = [m for m in mods if m in _TYPES]
    return types[-1] if types else ""


#: Source types of 8 and 16 bits: nvdisasm prints their constants with a blank between the brackets (measured).
_SMALL = frozenset("F16 BF16 U8 S8 U16 S16".split())  # noqa: SIM905


def _place(spec: SlotSpec, form: Form) -> tuple[str, int]:
    """Kind letter and lowest bit of a flexible operand in a form."""
    layout, letters = form.row.layout, form.letters
    index = 1 if spec.name in ("c", "uc") else 0
    letter = letters[index]
    if letter != "r":
        return letter, 32
    if index == 1 or layout.endswith("AY") or (len(letters) == 2 and letters[1] != "r"):
        return letter, 64
    return letter, 32
