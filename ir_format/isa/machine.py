"""One SM's instruction set: complete, match, encode, decode, format, parse."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ir_format.diag import CompileError
from ir_format.isa import rowlang
from ir_format.isa.codec import Mismatch, operand_text
from ir_format.isa.plan import REUSE_BIT, Form, Plan, Slot
from ir_format.isa.rowlang import LAYOUTS, Row, SlotSpec
from ir_format.isa.special import TargetCodec
from ir_format.isa.tmem import KINDS as TMEM_KINDS
from ir_format.isa.vectors import widen
from ir_format.model import INV, ZERO, Ctl, Imm, Inst, Label, Name, Operand, Reg, Sym

LabelPc = Mapping[int, int] | Callable[[int], int]

#: 5-bit stall and yield values that nvdisasm takes (measured).
LEGAL_STALL = frozenset([*range(16), *range(17, 28)])


class Refusal:
    """A word that :meth:`Target.decode` does not know, with the reason. False in a condition."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"Refusal({self.reason})"


class Target:
    """The rows of one SM, compiled when they are first used."""

    def __init__(self, sm: int) -> None:
        self.sm = sm
        self._source = rowlang.source()
        self._enums = rowlang.enums_for(sm)
        self._forms: dict[str, list[Form]] = {}
        self._rows: dict[str, list[Row]] = {}
        self._by_opcode: dict[int, list[Form]] = {}
        self._plans: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[Plan]] = {}
        self._parsed: dict[str, Row | None] = {}
        self._opcode_done: set[int] = set()
        self._kinds: dict[tuple[str, str, str], frozenset[str]] = {}
        self._classed: dict[str, bool] = {}
        self._first_plans: dict[tuple[str, tuple[str, ...]], list[Plan | None]] = {}

    # -- rows ---------------------------------------------------------------------------------------------------

    def rows(self, op: str) -> list[Row]:
        """The rows of a mnemonic on this SM, in order of the tables."""
        rows = self._rows.get(op)
        if rows is None:
            parsed = rowlang.rows_of(op, self.sm)
            self._parsed.update(parsed)
            rows = self._rows[op] = [r for r in parsed.values() if r is not None]
        return rows

    def mnemonics(self) -> list[str]:
        """Every mnemonic that has a row on this SM."""
        return [op for op in self._source.rows if self.rows(op)]

    def row_of(self, inst: Inst) -> Row | None:
        """The row of an instruction by its mnemonic and modifiers (operands are not looked at, except where rows share
        modifiers)."""
        plans = self._candidates(inst.op, inst.mods, tuple(o[0] for o in (*inst.dsts, *inst.srcs)))
        if plans:
            return plans[0].form.row
        for form in self.forms(inst.op):
            if form.plan_for_mods(inst.mods) is not None:
                return form.row
        return None

    def fact(self, inst: Inst, name: str) -> str:
        """A fact of the instruction's row (``cls``, ``sb``, ``mem``, ``space``...), '' where the row does not say."""
        row = self.row_of(inst)
        return "" if row is None else row.facts.get(name, "")

    def isa_class(self, inst: Inst) -> int:
        """The class of instruction sets (`.nv.compat`) that an instruction belongs to: 1, or what the row's fact
        ``isa`` says, of certain modifiers where it names some (measured)."""
        marked = self._classed.get(inst.op)
        if marked is None:
            marked = self._classed[inst.op] = any("isa" in row.facts for row in self.rows(inst.op))
        if not marked:
            return 1
        number, _, mods = self.fact(inst, "isa").partition(":")
        return int(number) if number and (not mods or not set(mods.split(",")).isdisjoint(inst.mods)) else 1

    def provenance(self, row: Row) -> str:
        """Where the row comes from on this SM: see :func:`ir_format.isa.evidence.describe`."""
        from ir_format.isa import evidence

        return evidence.describe(evidence.keys()[self.written(row)], self.sm, row.facts.get("src") == "guess")

    def written(self, row: Row) -> str:
        """The row's text in the tables, before macros."""
        return next(text for text in self._source.rows[row.op] if self._parse_row(text) is row)

    def forms(self, op: str) -> list[Form]:
        """The forms of a mnemonic."""
        forms = self._forms.get(op)
        if forms is None:
            forms = []
            for row in self.rows(op):
                choices: dict[tuple[str, ...], list[int] | None] = {}
                forms += [Form(row, self.sm, letters, self._enums, choices) for letters in row.forms]
            self._forms[op] = forms
        return forms

    def _parse_row(self, text: str) -> Row | None:
        if text not in self._parsed:
            self.rows(text.split(None, 1)[0].partition(".")[0])
        return self._parsed[text]

    def _forms_at(self, opcode: int) -> list[Form]:
        """Forms whose low twelve bits are ``opcode``."""
        base = opcode & 0x1FF
        if base not in self._opcode_done:
            self._opcode_done.add(base)
            for text in self._source.by_opcode.get(base, ()):
                op = text.split(None, 1)[0].partition(".")[0]
                for form in self.forms(op):
                    if form.row.text == self._row_text(text) and form not in self._by_opcode.setdefault(
                        form.opcode, []
                    ):
                        self._by_opcode[form.opcode].append(form)
        return self._by_opcode.get(opcode, [])

    def _row_text(self, text: str) -> str:
        row = self._parse_row(text)
        return "" if row is None else row.text

    # -- complete -----------------------------------------------------------------------------------------------

    def _slot_kinds(self, row: Row, spec: SlotSpec) -> frozenset[str]:
        key = (row.text, spec.name, spec.kind)
        kinds = self._kinds.get(key)
        if kinds is None:
            if spec.kind == "alu":
                index = 1 if spec.name in ("c", "uc") else 0
                letters = {f[index] for f in row.forms}
                reg = "UR" if row.layout.startswith("U") else "R"
                names = {"r": reg, "i": "I", "k": "C", "u": "UR", "x": "C"}
                kinds = frozenset(names[x] for x in letters)
            else:
                kinds = _KINDS.get(spec.kind, frozenset((spec.kind,)))
            self._kinds[key] = kinds
        return kinds

    def complete(
        self, op: str, mods: tuple[str, ...], dsts: tuple[Operand, ...], srcs: tuple[Operand, ...]
    ) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
        """Fill omitted slots with their defaults; of several rows that take the operands, one with an encoding for them
        goes first.

        Raises CompileError where no row of the mnemonic takes these operands.
        """
        dsts, srcs, _ = self.completed(op, mods, dsts, srcs)
        return dsts, srcs

    def completed(
        self, op: str, mods: tuple[str, ...], dsts: tuple[Operand, ...], srcs: tuple[Operand, ...]
    ) -> tuple[tuple[Operand, ...], tuple[Operand, ...], bool]:
        """As :meth:`complete`, and whether some form takes the result."""
        why = "no such instruction on this SM"
        first: tuple[tuple[Operand, ...], tuple[Operand, ...], bool] | None = None
        for plan in self._ways(op, mods):
            if plan is None:
                why = "no row takes these modifiers"
                continue
            slots, kinds, ndst = plan.slots, self._plan_kinds(plan), plan.ndst
            out_d = _fill(slots[:ndst], kinds[:ndst], dsts)
            out_s = _fill(slots[ndst:], kinds[ndst:], srcs)
            if out_d is None or out_s is None:
                why = "no row takes these operands"
                continue
            if self._plan_of(op, mods, (*out_d, *out_s)) is not None:
                return out_d, out_s, True
            first = first or (out_d, out_s, False)
        if first is not None:
            return first
        shown = ", ".join(map(operand_text, (*dsts, *srcs)))
        raise CompileError(f"{'.'.join((op, *mods))} {shown}: {why} (sm_{self.sm})")

    def _ways(self, op: str, mods: tuple[str, ...]) -> list[Plan | None]:
        """The first plan of each row of a mnemonic that takes the modifiers, None for a row that does not."""
        ways = self._first_plans.get((op, mods))
        if ways is None:
            ways = []
            for row in self.rows(op):
                plans = (f.plan_for_mods(mods) for f in self.forms(op) if f.row is row)
                ways.append(next((p for p in plans if p is not None), None))
            self._first_plans[op, mods] = ways
        return ways

    def _plan_kinds(self, plan: Plan) -> list[frozenset[str]]:
        if not plan.kinds:
            row = plan.form.row
            plan.kinds = [self._slot_kinds(row, spec) for spec in (*row.dsts, *row.srcs)]
        return plan.kinds

    # -- encode -------------------------------------------------------------------------------------------------

    def _candidates(self, op: str, mods: tuple[str, ...], kinds: tuple[str, ...]) -> list[Plan]:
        key = (op, mods, kinds)
        plans = self._plans.get(key)
        if plans is None:
            plans = []
            for form in self.forms(op):
                plan = form.plan_for_mods(mods) if form.may_take(kinds) else None
                if plan is None:
                    continue
                if all(k in _KINDS.get(s.codec.kind, (s.codec.kind,)) for k, s in zip(kinds, plan.slots)):
                    plans.append(plan)
            self._plans[key] = plans
        return plans

    def has_slots(self, inst: Inst) -> bool:
        """Whether a form has the instruction's modifiers and slots for just its kinds of operands."""
        return bool(self._candidates(inst.op, inst.mods, tuple([o[0] for o in (*inst.dsts, *inst.srcs)])))

    def match(self, inst: Inst, widths: bool = False) -> Form | None:
        """The form that takes the instruction's operands and modifiers on this SM; with ``widths`` register widths
        count too."""
        plan = self.plan(inst)
        if plan is None:
            return None
        if widths:
            ops = (*inst.dsts, *inst.srcs)
            if plan.form.widths is not None:
                right = list(ops)
                widen(plan.form.widths, plan.mods, [s.name for s in plan.slots], right, self.sm)
                return (
                    plan.form
                    if all(
                        r.width == o.width or o.num == ZERO
                        for r, o in zip(right, ops)
                        if isinstance(o, Reg) and isinstance(r, Reg)
                    )
                    else None
                )
            for o, slot in zip(ops, plan.slots):
                want = getattr(slot.codec, "width", 0)
                if isinstance(o, Reg) and want and o.width != want and o.num != ZERO:
                    return None
        return plan.form

    def plan(self, inst: Inst) -> Plan | None:
        """The plan that takes an instruction, None where none does (virtual register numbers count as any)."""
        return self._plan_of(inst.op, inst.mods, (*inst.dsts, *inst.srcs))

    def _plan_of(self, op: str, mods: tuple[str, ...], ops: tuple[Operand, ...]) -> Plan | None:
        kinds = tuple([o[0] for o in ops])
        plans = self._plans.get((op, mods, kinds))
        if plans is None:
            plans = self._candidates(op, mods, kinds)
        for plan in plans:
            if plan.takes(ops):
                return plan
        return None

    def encode(self, inst: Inst, pc: int = 0, label_pc: LabelPc | None = None) -> int:
        """The 128-bit word. ``pc``: byte address of the instruction; ``label_pc``: block id -> byte address (mapping or
        callable).

        Raises CompileError that names the instruction and the reason. An operand with a symbol encodes as 0 plus its
        offset; the caller makes the relocation.
        """
        ops = (*inst.dsts, *inst.srcs)
        try:
            kinds = tuple([o[0] for o in ops])
            plans = self._plans.get((inst.op, inst.mods, kinds))
            if plans is None:
                plans = self._candidates(inst.op, inst.mods, kinds)
            why = "no form takes these operands and modifiers"
            for plan in plans:
                try:
                    word = _encode_operands(plan, ops, pc, label_pc)
                except Mismatch as error:
                    why = str(error)
                    continue
                if word & plan.hints and inst.ctl is not None and not inst.ctl.yield_:
                    raise Mismatch("a reuse hint needs bit 109 of the control word")
                return word | _guard_bits(inst.guard, plan.form.guard) | ctl_bits(inst.ctl)
        except Mismatch as error:
            why = str(error)
        shown = ", ".join(map(operand_text, ops))
        raise CompileError(f"can't encode {'.'.join((inst.op, *inst.mods))} {shown} on sm_{self.sm}: {why}", inst.line)

    # -- decode -------------------------------------------------------------------------------------------------

    def decode(self, word: int, pc: int = 0) -> Inst | Refusal:
        """The instruction in a word, or a :class:`Refusal`. Branch targets come as ``Imm`` with the absolute byte
        address."""
        found = self.decode_plan(word, pc)
        return found if isinstance(found, Refusal) else found[0]

    def decode_plan(self, word: int, pc: int = 0) -> tuple[Inst, Plan] | Refusal:
        """As :meth:`decode`, with the plan that read the word."""
        opcode = word & 0xFFF
        forms = self._by_opcode.get(opcode)
        if forms is None or (opcode & 0x1FF) not in self._opcode_done:
            forms = self._forms_at(opcode)
        reason = f"unknown opcode {opcode:#05x}"
        for form in forms:
            if word & form.fixmask != form.fixvalue:
                reason = f"{form.row.name}: undefined fixed bits" if reason.startswith("unknown") else reason
                continue
            plan = form.plan_for_word(word)
            if plan is None:
                reason = f"{form.row.name}: undefined modifier"
                continue
            if word & plan.mask != plan.value:
                reason = f"{form.row.name}: unknown bits {word & plan.mask ^ plan.value:#x}"
                continue
            ops: list[Operand] = []
            try:
                for slot in plan.slots:
                    if not slot.shown:
                        assert slot.default is not None
                        ops.append(slot.default)
                    elif isinstance(slot.codec, TargetCodec):
                        ops.append(slot.codec.dec_at(word, pc))
                    else:
                        ops.append(slot.codec.dec(word))
            except Mismatch as error:
                reason = f"{form.row.name}: {error}"
                continue
            stall = word >> 105 & 31
            if stall not in LEGAL_STALL or word >> 126 or (word & plan.hints and stall < 16):
                reason = "undefined control field"  # without bit 109 the reuse bits are no reuse hints (measured)
                continue
            mods = plan.mods
            if form.widths is not None:
                widen(form.widths, mods, [s.name for s in plan.slots], ops, self.sm)
            for _, text, rule in plan.derived:
                if rule(form.letters, mods, ops):
                    mods = (text, *mods)
                    break
            guard = _guard(word, form.guard)
            ctl = Ctl(stall & 15, stall >> 4, word >> 110 & 7, word >> 113 & 7, word >> 116 & 63)
            inst = Inst(form.row.op, mods, tuple(ops[: plan.ndst]), tuple(ops[plan.ndst :]), guard, 0, -1, ctl)
            return inst, plan
        return Refusal(reason)

    # -- text ---------------------------------------------------------------------------------------------------

    def format(
        self,
        inst: Inst,
        pc: int = 0,
        plan: Plan | None = None,
        instead: Mapping[int, str] | None = None,
        exact: bool = False,
    ) -> str:
        """The instruction as nvdisasm prints it, without semicolon. Raises CompileError where no form takes it.

        ``instead``: texts of some operands by their index in dsts and srcs together (labels, relocated symbols).
        ``exact``: with notes after it (:mod:`ir_format.isa.exact`), so that :meth:`parse` gives this very instruction
        back.
        """
        if plan is None:
            plan = self.plan(inst)
        if plan is None:
            raise CompileError(f"can't print {inst!r} on sm_{self.sm}: no form takes it", inst.line)
        texts: list[str] = []
        ops = (*inst.dsts, *inst.srcs)
        slots = plan.slots
        for k, (slot, o) in enumerate(zip(slots, ops)):
            if not slot.shown:
                continue
            text = instead[k] if instead and k in instead else slot.codec.fmt(o, pc)
            if slot.optional and (
                o == slot.default
                or (
                    isinstance(o, Reg)
                    and isinstance(slot.default, Reg)
                    and o._replace(width=slot.default.width) == slot.default
                )
            ):
                continue
            if isinstance(slot.codec, TargetCodec) and slot.codec.spaced and texts:
                texts[-1] += " " + text
            elif text:
                texts.append(text)
        head = ".".join((inst.op, *inst.mods))
        if inst.guard is not None:
            head = f"@{operand_text(inst.guard)} {head}"
        text = f"{head} {', '.join(texts)}" if texts else head
        if not exact:
            return text
        from ir_format.isa.exact import notes

        return " ".join((text, *notes(self, inst, pc, plan, text)))

    def parse(self, text: str, pc: int = 0) -> Inst:
        """Read nvdisasm's text of one instruction, with or without notes; without them ``ctl`` is None. Raises
        CompileError."""
        from ir_format.isa import text as reader

        return reader.parse(self, text, pc)


#: Operand discriminators that a slot kind takes.
_KINDS: dict[str, frozenset[str]] = {
    "T": frozenset("LSI"),
    "Tr": frozenset("LSI"),
    "Ta": frozenset("LSI"),
    "Tas": frozenset("LSI"),
    "K": frozenset("C"),
    "UK": frozenset("C"),
    "UKi": frozenset("C"),
    "PI": frozenset("P"),
    "UPI": frozenset(("UP",)),
    "MU": frozenset("M"),
    "MS": frozenset("M"),
    "MT": frozenset("M"),
    "MUO": frozenset("M"),
    "MUN": frozenset("M"),
    "URX": frozenset(("UR",)),
    "Tb": frozenset("LSI"),
    "H": frozenset("I"),
    "SBS": frozenset("N"),
    "Rn": frozenset("R"),
    "URn": frozenset(("UR",)),
    "SWZ": frozenset("N"),
    "M": frozenset("M"),
    **TMEM_KINDS,
}


def _fill(slots: list[Slot], kinds: list[frozenset[str]], given: tuple[Operand, ...]) -> tuple[Operand, ...] | None:
    """Operands for all slots, defaults where some were omitted; None where they do not fit. ``kinds``: what each slot
    may hold."""
    if len(given) == len(slots):
        return given if all([o[0] in k for o, k in zip(given, kinds)]) else None
    out: list[Operand] = []
    missing = len(slots) - len(given)
    later = sum([not slot.shown for slot in slots])  # hidden slots after this one
    i = 0
    for slot, takes in zip(slots, kinds):
        default = slot.default
        hide = not slot.shown
        later -= hide
        if hide and missing > 0:
            out.append(default)  # type: ignore[arg-type]
            missing -= 1
            continue
        predicate = slot.is_predicate
        omissible = default is not None and (slot.optional or hide or predicate)
        fits = i < len(given) and given[i][0] in takes
        if fits and not (omissible and missing > later and not predicate):
            out.append(given[i])
            i += 1
        elif omissible and missing > 0:
            assert default is not None
            out.append(default)
            missing -= 1
        elif fits:
            out.append(given[i])
            i += 1
        else:
            return None
    return tuple(out) if i == len(given) else None


def _encode_operands(plan: Plan, ops: tuple[Operand, ...], pc: int, label_pc: LabelPc | None) -> int:
    word = plan.value
    for i, enc in enumerate(plan.encoders):
        if enc is not None:
            word |= enc(ops[i])
        else:
            codec = plan.slots[i].codec
            assert isinstance(codec, TargetCodec)
            word |= codec.enc_at(ops[i], pc, label_pc)
    if plan.shared:
        plan.check_shared(ops)
    return word


def ctl_bits(ctl: Ctl | None) -> int:
    """Control word at its place. Raises Mismatch for the values that nvdisasm refuses."""
    if ctl is None:
        raise Mismatch("no control word")
    stall = ctl.stall | ctl.yield_ << 4
    if stall not in LEGAL_STALL or not (0 <= ctl.wr < 8 and 0 <= ctl.rd < 8 and 0 <= ctl.wait < 64):
        raise Mismatch(f"illegal control word {tuple(ctl)}")
    return (stall | ctl.wr << 5 | ctl.rd << 8 | ctl.wait << 11) << 105


def _guard_bits(guard: Reg | None, file: str) -> int:
    if guard is None:
        return 7 << 12
    if guard.file != file:
        raise Mismatch(f"the guard is a {file} predicate here")
    num = 7 if guard.num == ZERO else guard.num
    if not 0 <= num < 8:
        raise Mismatch("guard out of range")
    return num << 12 | (1 << 15 if guard.flags & INV else 0)


def _guard(word: int, file: str) -> Reg | None:
    num = word >> 12 & 15
    if num == 7:
        return None
    return Reg(file, ZERO if num & 7 == 7 else num & 7, 0, 1, INV if num & 8 else 0)


__all__ = ["LAYOUTS", "LEGAL_STALL", "REUSE_BIT", "Imm", "Label", "LabelPc", "Name", "Refusal", "Sym", "Target"]
