"""Matches instructions against the descriptor table.

An opcode text is analysed once (`Matcher.opcode`): its name, modifiers and types select the rows that can match, or
give
its errors.  A tuple of operand kinds is matched once per opcode (`Opcode.verdicts`): which row takes it, or the errors.
So an instruction seen before costs two dictionary look-ups.  The order of checks is ptxas's: types, modifiers, gates,
operand types ("Arguments mismatch"), then the form of each operand.
"""

from __future__ import annotations

from itertools import combinations

from ir_format.ptx import Addr, LabelList, LabelRef, Operand, Pair, PtxReg, Reg, Sym, Vec
from ir_format.typed import Final
from stages.parse import checks, compat, operand_forms, refusals, relations, repeated_modifiers, rules, table, textures
from stages.parse.gating import Gates
from stages.parse.opcodes import Opcode, Typed, Verdict
from stages.parse.operands import literal_bits
from stages.parse.scan import Notes
from stages.parse.table import OperandSpec, Row
from stages.parse.table.gates import BEYOND, BEYOND_WORDS
from stages.parse.targets import Target
from stages.parse.vectors import elements, fits_for_vector

MAX_TARGETS = 1 << 20  # of all indirect branches of a function together


def _beyond_table() -> list[tuple[str, str, table.Gate]]:
    """Name, what messages call it, and gates of each line of `BEYOND`."""
    out: list[tuple[str, str, table.Gate]] = []
    for row in BEYOND.strip().splitlines():
        names, kind, gate = [column.strip() for column in row.split("|")]
        for name in names.split():
            out.append((name, "Feature" if kind == "F" else "Instruction", table.parse_gate(gate.split())))
    return out


_BEYOND: Final = _beyond_table()


class Matcher:
    """The opcodes and verdicts of one parse."""

    __slots__ = ("gates", "late", "narrow", "notes", "opcodes", "registers", "target", "unknown")

    def __init__(self, notes: Notes, target: Target) -> None:
        self.notes = notes
        self.target = target
        self.gates = Gates(target)
        self.opcodes: dict[str, Opcode] = {}
        self.unknown: set[str] = set()
        self.registers: list[PtxReg] = []  # of the function that is read now: messages name them
        self.late: list[tuple[LabelList, list[LabelRef]]] = []
        self.narrow: list[tuple[int, int]] = []  # line and bits of each address of global memory that is too narrow

    def opcode(self, text: str) -> Opcode | None:
        """Analyses an opcode text; None if it is not an instruction."""
        if text in self.unknown:
            return None
        parts = text.split(".")
        n = 0 if self._beyond(text) is not None else self.gates.words.split_name(parts)
        if not n:
            self.unknown.add(text)
            return None
        found = self.opcodes[text] = Opcode(parts[0], ".".join(parts[:n]))
        _analyse(found, parts, n, self.gates)
        return found

    def _beyond(self, text: str) -> tuple[str, str, table.Gate] | None:
        """Name, kind and gates of an opcode that ptxas of this release knows and orias does not support."""
        if not self.target.since("13.5"):
            return None
        return next((b for b in _BEYOND if text == b[0] or text.startswith(b[0] + ".")), None)

    def complain(self, text: str, line: int) -> None:
        """Reports an opcode that is not an instruction, or one that orias does not support."""
        beyond = self._beyond(text)
        if beyond is not None:
            name, kind, gate = beyond
            for message in self.target.refuses(gate, kind, name) or [f"Instruction '{text}' not supported by orias"]:
                self.notes.error(message, line)
            return
        parts = text.split(".")
        for severity, message in _as_read(parts[1:], self.gates):
            if severity == "fatal":
                self.notes.fatal(message, line)
            self.notes.error(message, line)
        # `clmad.lo` is one name for a ptxas that does not have it; other names end at their first dot (measured)
        n = table.split_name(parts)
        known = n > 1 and parts[1] in ("lo", "hi")
        self.notes.error(f"Not a name of any known instruction: '{'.'.join(parts[: n if known else 1])}'", line)

    def check(
        self, opcode: Opcode, operands: tuple[Operand, ...], kinds: tuple[str, ...], line: int
    ) -> tuple[tuple[Operand, ...], str]:
        """Reports what is wrong with an instruction; returns its operands with literals in their final form, and its
        row."""
        if opcode.name == "mma" and "block_scale" in opcode.mods:
            operands, kinds = _unbraced(operands, kinds)
        verdict = opcode.verdicts.get(kinds)
        if verdict is None:
            verdict = opcode.verdicts[kinds] = _judge(opcode, kinds, self.gates)
            spoken = rules.spoken(opcode.name)
            if spoken != opcode.name:
                verdict.errors = tuple([(s, t.replace(f"'{opcode.name}'", f"'{spoken}'")) for s, t in verdict.errors])
        for severity, message in verdict.errors:
            if "{operand" in message:
                message = operand_forms.named(message, operands, self.registers)
            if severity == "fatal":
                self.notes.fatal(message, line)
            self.notes.add(severity, message, line)
        if verdict.narrow and not (opcode.op == "mov" and isinstance(operands[1], Sym) and operands[1].offset):
            self.narrow.append((line, verdict.narrow))
        for name in verdict.checks:
            for message in checks.CHECKS[name](opcode.name, opcode.mods, operands):
                self.notes.error(message, line)
        if verdict.literals:
            changed = list(operands)
            for index, type_ in verdict.literals:
                x = changed[index]
                if type_ == "[" and isinstance(x, Sym):
                    changed[index] = Addr(Sym(x.name), x.offset)
                    continue
                if type_ == "[" and isinstance(x, Reg):
                    changed[index] = Addr(x, 0)
                    continue
                if type_ == "|" and isinstance(x, Pair):
                    changed[index] = x.first
                    continue
                if type_[0] == "{" and isinstance(x, Vec):
                    x, type_ = x.elems[0], type_[1:-1]
                changed[index] = literal_bits(x, type_)
            operands = tuple(changed)
        return operands, verdict.row

    def finish(self, line: int) -> None:
        """Fills the label lists of a function whose labels are all known; branches by one table share one list."""
        lists: dict[int, tuple[int, ...]] = {}
        total = 0
        for late, refs in self.late:
            found = lists.get(id(refs))
            if found is None:
                found = lists[id(refs)] = tuple([r.index for r in refs])
            late.labels = found
            total += len(found)
            if total > MAX_TARGETS:  # the stream lists them for each branch
                self.notes.fatal(f"More than {MAX_TARGETS} targets of indirect branches in one function", line)
        self.late.clear()


def _unbraced(operands: tuple[Operand, ...], kinds: tuple[str, ...]) -> tuple[tuple[Operand, ...], tuple[str, ...]]:
    """The scales of a block-scaled mma may be in braces; the first register in them counts (measured)."""
    values, words = list(operands), list(kinds)
    for index in (len(values) - 4, len(values) - 2):
        x = values[index] if index > 3 else None
        if isinstance(x, Vec) and all(k[:2] == "r:" for k in elements(words[index])):
            values[index], words[index] = x.elems[0], elements(words[index])[0]
    return tuple(values), tuple(words)


# --------------------------------------------------------------------------- opcodes


def _analyse(out: Opcode, parts: list[str], n: int, gates: Gates) -> None:
    """Finds the rows whose types agree, and the faults that show before any operand is looked at."""
    mods = parts[n:]
    words = gates.words
    own = words.modifiers_of(out.name)
    forgotten = rules.IGNORED_ON.get(out.name, frozenset())
    useful = own - (forgotten & words.later(out.name))
    mods = [m for m in mods if m in useful or (m not in rules.IGNORED and m not in forgotten)]
    known = [m for m in mods if m in own or words.is_type(m) or words.is_modifier(m)]
    errors = [("error", text) for part in parts[1:n] for text in gates.named_early(part)]
    errors.extend(_as_read(parts[n:], gates, own, out.name))
    said = [m for m in parts[n:] if m in known or m in forgotten]
    errors.extend([("error", text) for text in repeated_modifiers.late(out.name, said)])
    if sum(m in ("row", "col") for m in known) > 2:
        last = [m for m in known if m in ("row", "col")][2]
        severity = "error" if out.name in ("mma", "wmma.mma") else "fatal"
        errors.append((severity, f"Parsing error near '.{last}': too many layout specifiers"))
    out.mods = tuple(parts[1:])
    out.vector = next((int(m[1:]) for m in mods if m in rules.VECTORS), 0)
    typed: list[Typed] = []
    later = words.later(out.name)
    types = tuple([m for m in known if m in rules.TYPES])
    late = out.name.startswith(repeated_modifiers.LATE_OPERATIONS)
    untyped = _without_repeats([m for m in known if m not in rules.TYPES], late)
    for row in words.rows_with(out.name, types):
        split, rest = (types, untyped) if row.types else ((), _without_repeats(known, late))
        if gates.target.knows(row.gate):
            taken = None if later.intersection(rest) else _assign(row, rest, split)
            typed.append(Typed(row, split, tuple(rest), taken))
    if not typed:
        alien = [m for m in untyped if m in rules.BEFORE_TYPES and m not in own]
        errors.extend([("error", rules.illegal(m, out.name, False)) for m in alien])
        errors.extend([("error", text) for text in relations.saturated_pair(out.name, known, types, gates.target)])
        errors.append(("error", f"Unexpected instruction types specified for '{out.name}'"))
    fit = next((t for t in typed if t.mods is not None), None)
    if fit is not None and fit.mods is not None:
        out.types = fit.types
        out.mods = tuple(parts[1:n]) + fit.mods
        out.row = fit.row.key
    out.typed = tuple(typed)
    out.errors = tuple(errors)


def _as_read(mods: list[str], gates: Gates, own: frozenset[str] = frozenset(), name: str = "") -> list[tuple[str, str]]:
    """What ptxas says of modifiers as it reads them: unknown ones, repeated ones and their gates, in the order of the
    text. A `.vN` before other modifiers must come right before the types (a warning)."""
    words = gates.words
    reader = repeated_modifiers.Reader()
    out: list[tuple[str, str]] = []
    last = ""
    for m in mods:
        if name:
            out.extend([("error", text) for text in reader.read(m)])
        if m in own or words.is_type(m) or words.is_modifier(m):
            out.extend([("error", text) for text in gates.early(m)])
        elif name and m in BEYOND_WORDS and gates.target.since("13.5"):
            out.append(("error", f"Modifier '.{m}' of '{name}' not supported by orias"))
        elif m[0].isdigit() and not m.isdigit() and not any(words.is_modifier(m[:k]) for k in range(2, len(m))):
            out.append(("fatal", f"Parsing error near '{m.lstrip('0123456789')}': syntax error"))  # a number and a name
            break
        else:
            out.append(("error", f"Unknown modifier '.{m}'"))
        if name and last in ("v2", "v4") and m not in rules.VECTORS and (m not in rules.TYPES or m in _LATER_TYPES):
            out.append(("warning", "Vector Type not specified properly"))
        last = m
    return out


#: Types that are no types to what looks at the place of a `.vN`.
_LATER_TYPES: Final = frozenset(("b1", "e2m1", "e2m3", "e3m2", "tf32", "ue4m3", "ue8m0"))
_REPEATED = frozenset(("row", "col")) | rules.SPACES


def _without_repeats(mods: list[str], operations: bool) -> list[str]:
    """A flag given twice counts once (measured), an operation too unless `operations` are looked at late."""
    first = dict(zip(reversed(mods), range(len(mods) - 1, -1, -1), strict=True))
    return [m for k, m in enumerate(mods) if m in _REPEATED or first[m] == k or (operations and m in rules.POST)]


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


# --------------------------------------------------------------------------- operands


#: What takes `name[constant]` (measured): loads and stores as an address, the others as a value.
_SUBSCRIPTS: Final = frozenset(("ld", "ldu", "st", "mov", "cvta"))


def _judge(opcode: Opcode, kinds: tuple[str, ...], gates: Gates) -> Verdict:
    """Matches operand kinds against the rows of an opcode, in ptxas's order: operand types, then gates and modifiers,
    then forms."""
    if opcode.op not in _SUBSCRIPTS or opcode.name == "cvta.to":
        kinds = tuple([f"?:{k[2:]}" if k[:2] == "V:" else k for k in kinds])
    early = (
        *opcode.errors,
        *operand_forms.misfits(kinds),
        *operand_forms.early_special(opcode.name, opcode.vector, kinds),
    )
    late = next((k for k in kinds[1:] if k == "_" or k[:2] == "p:"), "")
    if late and not opcode.op.startswith("call"):
        return Verdict(
            opcode.row, (*early, ("fatal", f"Parsing error near '{late[0].replace('p', '|')}': syntax error")), (), ()
        )
    if not opcode.typed:
        return Verdict(opcode.row, early, (), ())
    known: Fits = {}
    nearest: list[tuple[str, str]] | None = None
    for t in opcode.typed:
        if t.mods is None:
            continue
        specs = _bind(t, kinds, opcode.vector, t.mods, known)
        if specs is None:
            continue
        problems, literals = _problems(opcode, t, t.mods, specs, kinds, gates)
        if not problems:
            notices = relations.notices(opcode.name, t.mods, gates.target)
            return Verdict(
                t.row.key,
                (*early, *notices),
                literals,
                t.row.checks,
                relations.narrow(opcode.name, t.mods, t.types, kinds),
            )
        if nearest is None or len(problems) < len(nearest):
            nearest = problems
    bound = [(t, _bind(t, kinds, opcode.vector, None, known)) for t in opcode.typed]
    fitting = [t for t, specs in bound if specs is not None]
    taking = [t for t in opcode.typed if t.mods is not None]
    if not fitting or (taking and not any(t in taking for t in fitting)):
        return Verdict(opcode.row, (*early, *refusals.mismatch(opcode, kinds, fitting, gates)), (), ())
    if opcode.name == "mma" and not refusals.before_advice(opcode):  # its advice stands before its gates
        early = (*early, *relations.notices("mma", opcode.typed[0].rest, gates.target))
    if nearest is None:
        nearest = [("error", text) for text in refusals.refusal(opcode, fitting, kinds, gates)]
    return Verdict(opcode.row, (*early, *nearest), (), ())


def _problems(
    opcode: Opcode, t: Typed, mods: tuple[str, ...], specs: list[OperandSpec], kinds: tuple[str, ...], gates: Gates
) -> tuple[list[tuple[str, str]], tuple[tuple[int, str], ...]]:
    """What is wrong with an instruction if it is of this row; and its literals that take a float type."""
    named, worded = gates.refusals(t.row, mods, t.types, kinds)
    problems = [] if opcode.op != "st" else operand_forms.written_parameters(kinds, mods)
    older = relations.first(opcode.name, mods, t.types, gates.target)
    between = relations.between(opcode.name, mods, t.types, gates.target)
    if opcode.name.startswith("mbarrier."):
        if any("requires order" in text for text in between):  # of a scope without one, after the name's own gates
            own = [text for text in named if f" '{opcode.name}' requires" in text or "'.shared::cluster'" in text]
            named, between = own + between, [text for text in named if text not in own]
        else:
            between, worded = worded, between
    related = relations.errors(opcode.name, mods, t.types, gates.target)
    if ("2dms" in mods or "a2dms" in mods) and not opcode.vector:
        older, related = related, []
    problems.extend([("error", text) for text in older + named + between + worded])
    if opcode.name == "cvta":
        problems.extend(operand_forms.converted(kinds, mods))
    addresses, forms, literals = _forms(opcode, t, mods, specs, kinds, gates)
    if opcode.op in ("ld", "st"):
        by_space = relations.evictions(related)
        problems.extend([("error", text) for text in by_space])
        problems.extend(addresses)
        problems.extend([("error", text) for text in related if text not in by_space])
        problems.extend(forms)
    elif opcode.op in ("tex", "tld4"):
        first = [x for x in forms if x[1].startswith(_BEFORE_TEXTURES)]
        if not opcode.vector:  # a result that should be a vector is said last
            first = [x for x in first if x[1] != "Result vector expected"]
        problems.extend([*first, *[("error", text) for text in related], *addresses])
        problems.extend([x for x in forms if x not in first])
    elif opcode.op == "cp":
        problems.extend([*forms, *[("error", text) for text in related]])
    else:
        problems.extend([*[("error", text) for text in related], *forms])
    if opcode.op in ("atom", "red"):  # vectors where none stand: the last one first
        problems.sort(key=lambda x: -int(x[1].split()[6]) if x[1][:22] == "Vector is not expected" else 0)
    if opcode.name == "wmma.mma" and len(t.types) == 2 and any(text[:15] == "Vector expected" for _, text in problems):
        problems.insert(0, ("error", f"Argument vector size mismatch for instruction '{opcode.name}'"))
    return problems, literals


#: Forms of a texture's result and gradients, which are looked at before its types.
_BEFORE_TEXTURES: Final = (
    "Vector expected", "Result register", "Result vector", "Argument vector size", "Illegal vector size",
)  # fmt: skip


def _forms(
    opcode: Opcode, t: Typed, mods: tuple[str, ...], specs: list[OperandSpec], kinds: tuple[str, ...], gates: Gates
) -> tuple[list[tuple[str, str]], list[tuple[str, str]], tuple[tuple[int, str], ...]]:
    """What is wrong with the forms of addresses (of loads and stores, which ptxas looks at first) and of the operands;
    and the literals that take a float type."""
    memory = operand_forms.Memory(opcode.name, mods)
    literals: list[tuple[int, str]] = []
    addresses: list[tuple[str, str]] = []
    forms: list[tuple[str, str]] = []
    for index, (spec, kind) in enumerate(zip(specs, kinds, strict=True)):
        type_ = type_name(spec, t.types)
        float_type = _literal_type(spec, type_, kind)
        if float_type:
            literals.append((index, float_type))
        out = addresses if spec.role == "m" and opcode.op in ("ld", "st") else forms
        out.extend(operand_forms.problems(spec, type_, opcode.vector, kind, index, opcode.name))
        if spec.role in textures.ROLES:
            out.extend(
                [("error", text) for text in textures.problems(spec.role, opcode.name, mods, kind, gates.target)]
            )
        if spec.role == "m" and kind[:2] in ("V:", "v:", "r:"):
            literals.append((index, "["))
        if spec.role in ("m", "mt"):
            out.extend(memory.problems(spec.role, kind if kind[0] in "aV" else f"a:{kind}", index))
    return addresses, forms, tuple(literals)


def _literal_type(spec: OperandSpec, type_: str, kind: str) -> str:
    """The float type that a literal (or the literals of a vector) must be brought to; "" if it stays as it is."""
    if kind[:2] == "p:" and kind.endswith("|_") and not spec.pair and spec.role != "dpp":
        return "|"
    if (kind == "d" and type_ == "f32") or (kind == "f" and type_ == "f64"):
        return type_
    if kind[0] == "(" and spec.vector == -1 and "," not in kind:
        return f"{{{type_}}}"  # a vector of one in place of a scalar
    if kind[0] == "(" and ("d" in kind or "f" in kind):
        kinds = elements(kind)
        bits = compat.bit_size(type_) // (len(kinds) if spec.role == "spack" else 1)
        if bits in (32, 64) and ("d" in kinds or "f" in kinds):
            return f"f{bits}"
    return ""


Fits = dict[tuple[OperandSpec, str, str], bool]  # operand specification, type, operand kind


def _bind(
    t: Typed, kinds: tuple[str, ...], vector: int, mods: tuple[str, ...] | None, known: Fits
) -> list[OperandSpec] | None:
    """Which operand of the row each operand is, with optional ones left out from the right; None if types disagree.

    Operands that a modifier calls for are there exactly with it; with `mods` None they are optional.  Rows have many
    operands
    in common: `known` holds what fits.
    """
    needed: list[OperandSpec] = []
    optional = 0
    for spec in t.row.operands:
        if spec.when:
            if mods is None:
                spec = spec._replace(optional=True)
            elif not any(w in mods for w in spec.when):
                continue
        needed.append(spec)
        optional += spec.optional
    spare = len(needed) - len(kinds)
    if not 0 <= spare <= optional:
        return None
    for drop in _drops(needed, spare):
        specs = [spec for k, spec in enumerate(needed) if k not in drop]
        for spec, kind in zip(specs, kinds, strict=True):
            key = (spec, type_name(spec, t.types), kind)
            fits = known.get(key)
            if fits is None:
                fits = operand_forms.fits(spec, key[1], vector, kind)
                if spec.vector > 0 and kind[0] != "(":
                    fits = fits_for_vector(t.row.name, t.types, spec.type, kind, fits)
                known[key] = fits
            if not fits:
                break
        else:
            return specs
    return None


def _drops(specs: list[OperandSpec], spare: int) -> list[frozenset[int]]:
    """Choices of optional operands to leave out, later ones first."""
    places = [k for k, spec in enumerate(specs) if spec.optional][::-1]
    return [frozenset(choice) for choice in combinations(places, spare)]


def type_name(spec: OperandSpec, types: tuple[str, ...]) -> str:
    """The instruction type that an operand must agree with."""
    t = spec.type
    if t.isdigit():
        index = int(t) - 1
        return types[index] if index < len(types) else "b32"
    if t == "X":
        return types[0] if types[0] in ("f16x2", "e4m3x2", "e5m2x2") else "b32"
    if t == "M":
        return "bf16i" if types[1] == "bf16" else types[1]
    return compat.wide(types[0]) if t == "W" else t


__all__ = ["Matcher", "Opcode", "Verdict"]
