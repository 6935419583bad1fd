"""Matches instructions against the descriptor table.

An opcode text is analysed once (`Matcher.opcode`): its name, modifiers and types select the rows that can match, or give
its errors.  A tuple of operand kinds is matched once per opcode (`Opcode.verdicts`): which row takes it, or the errors.
So an instruction seen before costs two dictionary look-ups.  The order of checks is ptxas's: types, modifiers, gates,
operand types ("Arguments mismatch"), then the form of each operand.
"""

from __future__ import annotations

from typing import NamedTuple

from ir_format.ptx import LabelList, LabelRef, Operand, PtxProto
from stages.parse import checks, compat, operand_forms, relations, rules, table
from stages.parse.operands import literal_bits
from stages.parse.scan import Notes
from stages.parse.table import Gate, OperandSpec, Row
from stages.parse.targets import Target


class Candidate(NamedTuple):
    """A row that fits an opcode's modifiers, with the types chosen."""

    row: Row
    types: tuple[str, ...]
    vector: int


class Verdict:
    """What is known of one opcode with one tuple of operand kinds.

    `clean`: nothing to report, convert or look at.  `literals`: operand index and the float type that a double
    literal there takes.
    """

    __slots__ = ("checks", "clean", "errors", "literals", "row")

    def __init__(
        self, row: str, errors: tuple[tuple[str, str], ...], literals: tuple[tuple[int, str], ...], todo: tuple[str, ...]
    ) -> None:
        self.row = row
        self.errors = errors
        self.literals = literals
        self.checks = todo
        self.clean = not errors and not literals and not todo


class Opcode:
    """One distinct opcode text, analysed once."""

    __slots__ = ("candidates", "errors", "mods", "name", "op", "plain", "row", "types", "verdicts")

    def __init__(self, op: str, name: str) -> None:
        self.op = op
        self.name = name
        self.mods: tuple[str, ...] = ()
        self.types: tuple[str, ...] = ()
        self.row = ""
        self.plain = op not in ("call", "brx")
        self.errors: tuple[tuple[str, str], ...] = ()
        self.candidates: tuple[Candidate, ...] = ()
        self.verdicts: dict[tuple[str, ...], Verdict] = {}


class Matcher:
    """The opcodes and verdicts of one parse."""

    __slots__ = ("late", "notes", "opcodes", "target", "unknown")

    def __init__(self, notes: Notes, target: Target) -> None:
        self.notes = notes
        self.target = target
        self.opcodes: dict[str, Opcode] = {}
        self.unknown: set[str] = set()
        self.late: list[tuple[LabelList, list[LabelRef]]] = []

    def opcode(self, text: str) -> Opcode | None:
        """Analyses an opcode text; None if it is not an instruction."""
        if text in self.unknown:
            return None
        parts = text.split(".")
        n = table.split_name(parts)
        if not n:
            self.unknown.add(text)
            return None
        found = self.opcodes[text] = Opcode(parts[0], ".".join(parts[:n]))
        _analyse(found, parts, n, self.target)
        return found

    def complain(self, text: str, line: int) -> None:
        """Reports an opcode that is not an instruction."""
        self.notes.error(f"Not a name of any known instruction: '{text.split('.')[0]}'", line)

    def check(
        self, opcode: Opcode, operands: tuple[Operand, ...], kinds: tuple[str, ...], line: int
    ) -> tuple[tuple[Operand, ...], str]:
        """Reports what is wrong with an instruction; returns its operands with literals in their final form, and its row."""
        verdict = opcode.verdicts.get(kinds)
        if verdict is None:
            verdict = opcode.verdicts[kinds] = _judge(opcode, kinds)
        for severity, message in verdict.errors:
            if severity == "fatal":
                self.notes.fatal(message, line)
            self.notes.add(severity, message, line)
        for name in verdict.checks:
            for message in checks.CHECKS[name](opcode.name, opcode.mods, operands):
                self.notes.error(message, line)
        if verdict.literals:
            changed = list(operands)
            for index, type_ in verdict.literals:
                changed[index] = literal_bits(changed[index], type_)
            operands = tuple(changed)
        return operands, verdict.row

    def finish(self) -> None:
        """Fills the label lists of a function whose labels are all known."""
        for late, refs in self.late:
            late.labels = tuple([r.index for r in refs])
        self.late.clear()


# --------------------------------------------------------------------------- opcodes


def _analyse(out: Opcode, parts: list[str], n: int, target: Target) -> None:
    errors: list[tuple[str, str]] = []
    mods = parts[n:]
    rows = table.rows(out.name)
    own = {v for row in rows for slot in row.slots for v in slot.values} | rules.TYPES
    known = [m for m in mods if m in own or table.is_modifier(m)]
    errors.extend([("error", f"Unknown modifier '.{m}'") for m in mods if m not in known])
    errors.extend([("error", text) for text in rules.duplicate(known)])
    typed: list[tuple[Row, tuple[str, ...], list[str]]] = []
    for row in rows:
        split = _split(row, known)
        if split is not None:
            typed.append((row, *split))
    out.mods = tuple(parts[1:])
    if not typed:
        errors.append(("error", f"Unexpected instruction types specified for '{out.name}'"))
        out.errors = tuple(errors)
        return
    fits: list[tuple[Row, tuple[str, ...], tuple[str, ...]]] = []
    if not errors:
        for row, types, rest in typed:
            ordered = _assign(row, rest, types)
            if ordered is not None:
                fits.append((row, types, ordered))
        if fits:
            related = [relations.errors(out.name, mods, types, target) for _, types, mods in fits]
            good = [fit for fit, texts in zip(fits, related, strict=True) if not texts]
            if not good:
                errors.extend([("error", text) for text in related[0]])
            fits = good or fits
        else:
            errors.extend([("error", text) for text in _modifier_errors(out.name, typed)])
    if fits:
        row, out.types, ordered = fits[0]
        out.mods = tuple(parts[1:n]) + ordered
        out.row = row.key
        allowed, refused = _gates(fits, target)
        out.candidates = tuple([Candidate(r, t, _vector(o)) for r, t, o in allowed or fits])
        if not allowed:
            errors.extend(refused)
    out.errors = tuple(errors)


def _split(row: Row, mods: list[str]) -> tuple[tuple[str, ...], list[str]] | None:
    """Separates the types of an opcode from its modifiers, if the row has them."""
    if not row.types:
        slots = {v for slot in row.slots for v in slot.values}
        if any(m in rules.TYPES and m not in slots for m in mods):
            return None
        return (), mods
    types = [m for m in mods if m in rules.TYPES]
    for alternative in row.types:
        if len(alternative) == len(types) and all(t in place for t, place in zip(types, alternative, strict=True)):
            return tuple(types), [m for m in mods if m not in rules.TYPES]
    return None


def _assign(row: Row, mods: list[str], types: tuple[str, ...]) -> tuple[str, ...] | None:
    """Puts modifiers into the row's slots, whatever their order; gives them in canonical order with the types."""
    left = list(mods)
    ordered: list[str] = []
    placed = False
    for slot in row.slots:
        if not slot.values:
            ordered.extend(types)
            placed = True
            continue
        for m in left:
            if m in slot.values:
                ordered.append(m)
                left.remove(m)
                break
        else:
            if slot.required:
                return None
    if left:
        return None
    if not placed:
        ordered.extend(types)
    return tuple(ordered)


def _modifier_errors(name: str, typed: list[tuple[Row, tuple[str, ...], list[str]]]) -> list[str]:
    """The nearest row's complaint: modifiers that no row with these types takes, else a required one that is absent."""
    taken: set[str] = set()
    for row, _, _ in typed:
        for slot in row.slots:
            taken.update(slot.values)
    alien = [m for m in typed[0][2] if m not in taken]
    if alien:
        spaced = any(m in rules.SPACES for m in taken)
        return [rules.illegal(m, name, spaced) for m in alien]
    best: tuple[int, list[str]] | None = None
    for row, _, rest in typed:
        left = list(rest)
        missing: list[str] = []
        for slot in row.slots:
            hit = next((m for m in left if m in slot.values), None)
            if hit is not None:
                left.remove(hit)
            elif slot.required and slot.values:
                missing.append(rules.missing(slot.values, name))
        texts = missing + [rules.illegal(m, name, True) for m in left]
        if best is None or len(texts) < best[0]:
            best = (len(texts), texts)
    return best[1][:1] if best is not None else []


def _vector(mods: tuple[str, ...]) -> int:
    for m in mods:
        if m in rules.VECTORS:
            return int(m[1:])
    return 0


_Fit = tuple[Row, tuple[str, ...], tuple[str, ...]]


def _gates(fits: list[_Fit], target: Target) -> tuple[list[_Fit], list[tuple[str, str]]]:
    """The fitting rows that version and target allow, and why the first is refused."""
    allowed: list[_Fit] = []
    refused: list[tuple[str, str]] = []
    for fit in fits:
        row, _, mods = fit
        texts = _gate_errors(row, mods, target)
        if not texts:
            allowed.append(fit)
        elif not refused:
            refused = [("error", t) for t in texts]
    return allowed, refused


def _gate_errors(row: Row, mods: tuple[str, ...], target: Target) -> list[str]:
    out: list[str] = []
    for m in mods:
        gate = rules.MODIFIER_GATES.get(m)
        if gate is not None:
            out.extend(target.refuses(gate, f"Feature '.{m}'"))
    out.extend(target.refuses(row.gate, f"Feature '{row.name}'", f"Instruction '{row.name}'"))
    for m, gate in row.modifier_gates:
        if m in mods:
            out.extend(target.refuses(gate, f"Modifier '.{m}'"))
    for gate in table.combination_gates(row.name, frozenset(mods)):
        out.extend(target.refuses(gate, f"Feature '{row.name}.{'.'.join(mods)}'"))
    return out


# --------------------------------------------------------------------------- operands


def _judge(opcode: Opcode, kinds: tuple[str, ...]) -> Verdict:
    """Matches operand kinds against the candidates of an opcode."""
    if not opcode.candidates:
        return Verdict(opcode.row, opcode.errors, (), ())
    nearest: list[tuple[str, str]] | None = None
    for candidate in opcode.candidates:
        specs = _bind(candidate, opcode.mods, kinds)
        if specs is None:
            continue
        problems: list[tuple[str, str]] = []
        literals: list[tuple[int, str]] = []
        memory = operand_forms.Memory(opcode.name, opcode.mods)
        for index, (spec, kind) in enumerate(zip(specs, kinds, strict=True)):
            type_ = type_name(spec, candidate.types)
            if kind == "d" or kind == "f":
                literals.append((index, type_))
            problems.extend(operand_forms.problems(spec, type_, candidate.vector, kind, index, opcode.name))
            if spec.role in ("m", "mt"):
                problems.extend(memory.problems(spec.role, kind))
        if not problems:
            kept = tuple([(i, t) for i, t in literals if (kinds[i] == "d" and t == "f32") or (kinds[i] == "f" and t == "f64")])
            return Verdict(candidate.row.key, opcode.errors, kept, candidate.row.checks)
        if nearest is None:
            nearest = problems
    problems = nearest or [("error", f"Arguments mismatch for instruction '{opcode.name}'")]
    return Verdict(opcode.row, (*opcode.errors, *problems), (), ())


def _bind(candidate: Candidate, mods: tuple[str, ...], kinds: tuple[str, ...]) -> list[OperandSpec] | None:
    """Which operand of the row each operand is, with optional ones left out from the right; None if types disagree."""
    needed: list[OperandSpec] = []
    optional = 0
    for spec in candidate.row.operands:
        if spec.when and not any(w in mods for w in spec.when):
            continue
        needed.append(spec)
        optional += spec.optional
    spare = len(needed) - len(kinds)
    if not 0 <= spare <= optional:
        return None
    for drop in _drops(needed, spare):
        specs = [spec for k, spec in enumerate(needed) if k not in drop]
        if all(
            operand_forms.fits(spec, type_name(spec, candidate.types), candidate.vector, kind)
            for spec, kind in zip(specs, kinds, strict=True)
        ):
            return specs
    return None


def _drops(specs: list[OperandSpec], spare: int) -> list[frozenset[int]]:
    """Choices of optional operands to leave out, later ones first."""
    places = [k for k, spec in enumerate(specs) if spec.optional][::-1]
    if spare == 0:
        return [frozenset()]
    if spare == 1:
        return [frozenset((k,)) for k in places]
    if spare == len(places):
        return [frozenset(places)]
    return [frozenset((a, b)) for i, a in enumerate(places) for b in places[i + 1 :]] if spare == 2 else []


def type_name(spec: OperandSpec, types: tuple[str, ...]) -> str:
    """The instruction type that an operand must agree with."""
    t = spec.type
    if t.isdigit():
        index = int(t) - 1
        return types[index] if index < len(types) else "b32"
    return compat.wide(types[0]) if t == "W" else t


# --------------------------------------------------------------------------- calls


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


__all__ = ["Candidate", "Gate", "Matcher", "Opcode", "Verdict", "check_call"]
