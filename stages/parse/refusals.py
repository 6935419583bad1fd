"""Why no row of the table takes an instruction: messages in the order in which ptxas has them (measured)."""

from __future__ import annotations

from ir_format.typed import Final
from stages.parse import modifier_requirements, operand_forms, relations, repeated_modifiers, rules
from stages.parse.gating import Gates
from stages.parse.opcodes import Opcode, Typed

#: Instructions whose gates ptxas looks at after most of their modifiers (measured).
_LATE_GATES: Final = frozenset(("atom", "mma", "red", "wgmma", "wmma"))
#: Those whose types and shapes it looks at before their modifiers.
_RELATED_FIRST: Final = frozenset(("tex", "tld4", "sured", "shfl", "vote"))
#: Those of which it asks for `.aligned` before all else since 13.5, as it does of `tcgen05.wait` always.
_ALIGNED: Final = ("tcgen05.ld", "tcgen05.st")
#: Kinds of a state of an mbarrier.
_STATES: Final = frozenset(("i", "r:b64", "r:s64", "r:u64"))
#: What it refuses on `shfl` and `vote` before it asks for `.sync`.
_BEFORE_SYNC: Final = frozenset(("aligned", "approx", "bulk_group", "ftz", "noftz", "sat", "uni"))
#: Those whose gates it looks at before their operands.
_GATES_FIRST: Final = frozenset(
    ("clusterlaunchcontrol.query_cancel.is_canceled", "tcgen05.cp", "tcgen05.ld", "tcgen05.st")
)


def _of_nearest_row(name: str, typed: list[Typed]) -> list[str]:
    """The nearest row's complaint: modifiers that no row with these types takes, else a required one that is absent."""
    taken: set[str] = set()
    for t in typed:
        for slot in t.row.slots:
            taken.update(slot.values)
    rest = typed[0].rest
    spaces = [m for m in rest if m in rules.SPACES]
    if name.startswith("cp.") and len(spaces) > 2:
        return ["Multiple state spaces specified"]
    if len(spaces) > 1 and not name.startswith(("cp.", "multimem.cp.", "tensormap")):
        return [f"Unexpected number of state spaces specified in instruction '{name}'"]
    alien = [m for m in rest if m not in taken]
    alien.sort(key=lambda m: m == "async")  # a word of the name for ptxas
    if alien:
        spaced = name == "prefetchu" or any(m in rules.SPACES for m in taken)
        return [rules.illegal(m, name, spaced, typed[0].types) for m in alien]
    best: tuple[int, list[str]] | None = None
    for t in typed:
        left = list(t.rest)
        missing: list[str] = []
        for slot in t.row.slots:
            hit = next((m for m in left if m in slot.values), None)
            if hit is not None:
                left.remove(hit)
            elif slot.required and slot.values:
                missing.append(rules.missing(slot.values, name, t.types))
        texts = missing + [rules.illegal(m, name, True, t.types) for m in left]
        if best is None or len(texts) < best[0]:
            best = (len(texts), texts)
    return best[1][:1] if best is not None else []


def _sparse(t: Typed) -> bool:
    return any(slot.required and "sp" in slot.values for slot in t.row.slots)


def before_advice(opcode: Opcode) -> bool:
    """True if an `mma` has a modifier that ptxas refuses before its advice."""
    return any(
        (m in rules.EARLY_ILLEGAL and m not in ("sync", "satfinite"))
        or m in rules.POST
        or m in rules.SPACES
        or m in rules.DIMENSIONS
        for m in opcode.typed[0].rest
    )


def mismatch(opcode: Opcode, kinds: tuple[str, ...], fitting: list[Typed], gates: Gates) -> list[tuple[str, str]]:
    """The operands are those of no row that takes the modifiers: ptxas reports some of these before (measured).

    `fitting`: rows that take the operands, with other modifiers.
    """
    t = opcode.typed[0]
    name = opcode.name
    early = [m for m in t.rest if m in rules.BEFORE_TYPES and m not in gates.words.modifiers_of(name)]
    if early:
        return [("error", rules.illegal(m, name, False, t.types)) for m in early]
    form = _form(opcode, kinds)
    if form:
        return [("error", form)]
    out: list[str] = []
    if fitting and opcode.op in ("shfl", "vote") and "sync" not in t.rest:
        return [("error", f".sync modifier required for instruction '{name}'")]
    if opcode.op in ("min", "max") and "xorsign" in t.rest and len(kinds) == 4 and t.types == ("f32",):
        return [("error", rules.illegal("xorsign", name, False))]
    if opcode.op == "lop3" and kinds and kinds[0][:2] == "p:":
        return [("error", rules.conditional(name, t.rest))]
    if (
        name in ("mma", "tcgen05.mma.ws")
        and any(_sparse(f) for f in fitting)
        and not any(m[:2] == "sp" for m in t.rest)
    ):
        out = gates.refusals(t.row, (*t.rest, *t.types), t.types, kinds)[0] if name != "mma" else []
        return [("error", text) for text in (*out, f".sp modifier required for instruction '{name}'")]
    if fitting and opcode.op in ("min", "max") and (pair := modifier_requirements.pair(name, t.rest, t.types)):
        return [("error", pair)]
    if name.startswith("mbarrier.arrive") and "shared::cluster" in t.rest and kinds[:1] and kinds[0] in _STATES:
        named, worded = gates.refusals(t.row, (*t.rest, *t.types), t.types, kinds)
        sink = f"Sink '_' is expected as a destination operand for instruction '{name}' with '.shared::cluster'"
        return [("error", text) for text in (*named, *worded, sink)]
    if name in ("mapa", "getctarank") and len(kinds) > 1 and operand_forms.not_shared(kinds[1]):
        out = [f"State space mismatch between instruction and address in instruction '{name}'"]
    tensor = fitting and opcode.op == "cp"
    if tensor or name in _GATES_FIRST or (fitting and opcode.op == "tcgen05"):
        out = gates.refusals(t.row, (*t.rest, *t.types), t.types, kinds)[0]
    if tensor:
        out += relations.between(name, t.rest, t.types, gates.target)
    if name in ("tcgen05.ld", "tcgen05.st") and operand_forms.offset_too_many(name, kinds):
        shape = next((m for m in t.rest if rules.is_shape(m)), "")
        return [
            ("error", text)
            for text in (*out, f"Unexpected number of arguments specified for {name} with shape '.{shape}'")
        ]
    return [("error", text) for text in (*out, f"Arguments mismatch for instruction '{name}'")]


def _form(opcode: Opcode, kinds: tuple[str, ...]) -> str:
    """What is said of the form of an operand although no operand of its kind fits."""
    name = opcode.name
    if name == "movmatrix" and len(kinds) == 2:
        place = next((k for k, kind in enumerate(kinds) if kind[0] in "(a"), -1)
        if place >= 0 and kinds[place][0] == "a":
            return f"Argument {place} of instruction '{name}': must be register"
        return f"Vector operand is not allowed for instruction '{name}'" if place >= 0 else ""
    t = opcode.typed[0]
    if name == "atom" and "cas" in t.rest and t.types[0] not in ("b16", "b32", "b64", "b128"):
        return f"Unexpected instruction types specified for '{name}'"
    return ""


def refusal(opcode: Opcode, fitting: list[Typed], kinds: tuple[str, ...], gates: Gates) -> list[str]:
    """Why no row takes the modifiers, given that the operands are right for some row."""
    first = fitting[0]
    name = opcode.name
    known = tuple([*first.rest, *first.types])
    named, worded = gates.refusals(first.row, known, first.types, kinds)
    if "cc" in first.rest and "sat" in first.rest and name in rules.SATURATED and first.types == ("s32",):
        return ["Modifier '.cc' cannot be combined with modifier '.sat'"]
    later = [m for m in first.rest if m in gates.words.later(name)]
    if later:
        return _later(opcode, later, named, worded)
    bad = _of_nearest_row(name, fitting)
    if name.endswith("get_first_ctaid") and "v4" not in first.rest:
        return [f"Arguments mismatch for instruction '{name}'"]
    related = relations.errors(name, first.rest, first.types, gates.target)
    aligned = ("tcgen05.wait::", *_ALIGNED) if gates.target.since("13.5") else "tcgen05.wait::"
    if name.startswith(aligned) and "aligned" not in first.rest:
        return [f".aligned modifier required for instruction '{name}'"]
    unconditional = [rules.conditional(name, first.rest)]
    if not bad or any(t.mods is not None for t in fitting):
        bad = unconditional
        if any(_hinted(t, kinds) for t in fitting):
            bad = [f".L2::cache_hint modifier required for instruction '{name}' with {len(kinds)} arguments"]
            return named + worded + related + bad
    bad = _unrounded(name, first, bad)
    between = relations.between(name, first.rest, first.types, gates.target)
    scoped = relations.lone_order(name, first.rest, gates.target)
    alien = next(
        (m for m in first.rest if any(rules.illegal(m, name, x, first.types) in bad for x in (True, False))), ""
    )
    if alien == "add" and name in ("atom", "red") and related:
        bad = related[:1]
    of_name = _by_name(opcode, first, alien, bad, named, worded, related)
    if of_name:
        return of_name
    priority = [
        m for m in first.rest if m.startswith(("L1::evict", "L2::evict")) and name.startswith("cp.async.bulk.p")
    ]
    if priority and alien:
        return _later(opcode, priority, named, worded)
    if alien in rules.SPACES and name in ("add", "sub", "ex2"):
        return bad + named + worded + related
    if opcode.op == "griddepcontrol" and not alien:
        return bad + named
    signs = relations.sign_of_product(first.rest) if opcode.op in ("min", "max") else []
    if signs:
        return signs + named + worded + related
    if name.startswith("cp.") and bad == unconditional:
        return bad
    pair = modifier_requirements.pair(name, first.rest, first.types)
    if pair:
        first_of_all = between if name.startswith(("multimem.", "mbarrier.")) else relations.sizes(related)
        if opcode.op in ("ld", "st"):
            spaces = [text for text in related if text.endswith(" space")]
            first_of_all = relations.first(name, first.rest, first.types, gates.target) + first_of_all + spaces
        return _paired(pair, opcode, alien, bad, named, worded, first_of_all)
    if sum(m in rules.POST for m in first.rest) > 1 and name.startswith(repeated_modifiers.LATE_OPERATIONS):
        bad = [repeated_modifiers.TWO_OPERATIONS]
    elif not alien and bad and bad[0].startswith((".sync", ".aligned", "Shape")) and opcode.op == "wgmma":
        return bad + named + worded + related
    elif opcode.op in ("mma", "wgmma") and not alien:
        return [text for text in named if text.startswith("Instruction")] + bad + named + worded + related
    elif _before_gates(opcode, alien):
        return bad + named + between + worded + related
    elif opcode.op in _RELATED_FIRST and not _before_related(opcode, alien):
        return named + related + bad + worded
    if (alien in rules.ORDERS and opcode.op != "ld") or (
        name.startswith("cp.") and (not alien or alien in rules.SPACES)
    ):
        return named + bad + scoped + between + worded + related
    if name.startswith("mbarrier.") and not (alien and _before_gates(opcode, alien)):
        return _of_barrier(opcode, fitting, kinds, gates, bad, scoped + between + related)
    if scoped or between:
        return named + scoped + between + bad + worded + related
    if name == "st.async" and related:
        return named + related + bad + worded
    if any(m in rules.ORDERS for m in known) and opcode.op not in _LATE_GATES and alien not in ("approx", "noftz"):
        return named + worded + related + bad
    return named + bad + worded + related


def _unrounded(name: str, first: Typed, bad: list[str]) -> list[str]:
    """A saturated conversion without a rounding, of other than small floats."""
    rounding = bad[0].startswith("Rounding modifier required")
    if name == "cvt" and "satfinite" in first.rest and rounding and first.types[0][0] not in "et":
        return ["Modifier '.satfinite' cannot be combined with modifier ''", *bad]
    return bad


def _by_name(
    opcode: Opcode, first: Typed, alien: str, bad: list[str], named: list[str], worded: list[str], related: list[str]
) -> list[str]:
    """Orders of messages that a few names have: sizes of vectors, ended forms, the cluster's space before modifiers."""
    name = opcode.name
    if opcode.op in ("ld", "st") and bad[0].startswith("Unexpected number of state spaces"):
        return named + bad + worded
    sized = relations.sizes(related) + relations.evictions(related)
    if (
        sized
        and alien not in rules.BEFORE_TYPES
        and (opcode.op in ("ld", "st", "ldu") or (opcode.op == "mov" and first.types != ("b128",)))
    ):
        return [*named, *dict.fromkeys(sized), *bad, *worded]
    if name == "wmma.mma" and related and alien and not _before_gates(opcode, alien):
        return [text for text in named if text.startswith("Instruction")] + related + bad + named + worded
    if name in ("cvta", "isspacep") and not (alien and _before_gates(opcode, alien)):
        return named + [text for text in worded if "'::cluster'" in text] + bad + worded
    return []


def _later(opcode: Opcode, later: list[str], named: list[str], worded: list[str]) -> list[str]:
    """What is said of modifiers that only later releases take here: operations and levels come before them."""
    name = opcode.name
    rest = opcode.typed[0].rest
    first = [rules.illegal(m, name, False) for m in rest if m in rules.POST and name.startswith("cp.async")]
    if name.startswith("cp.async.bulk.prefetch") and "L2" not in rest:
        first.append(f".level modifier required for instruction '{name}'")
    if name.startswith("cp.async.bulk.prefetch.tensor") and not any(m in rules.DIMENSIONS for m in rest):
        first.append(f".dim modifier required for instruction '{name}'")
    return named + first + [rules.illegal(m, name, False) for m in later] + worded


def _of_barrier(
    opcode: Opcode, fitting: list[Typed], kinds: tuple[str, ...], gates: Gates, bad: list[str], scoped: list[str]
) -> list[str]:
    """What is said of an mbarrier's modifiers: gates of the name, the cluster's memory and orders, scopes without an
    order, other gates of the form that takes the most of them, then what does not belong there."""
    name = opcode.name
    t = min(fitting, key=lambda t: sum(not any(m in slot.values for slot in t.row.slots) for m in t.rest))
    named, worded = gates.refusals(t.row, (*t.rest, *t.types), t.types, kinds)
    gated = [*named, *worded]
    first = [text for text in gated if f"'{name}' requires" in text and text.startswith("Feature")]
    first += [text for text in gated if "'.shared::cluster'" in text]
    first += [text for text in gated if text.startswith("Modifier")]
    rest = [text for text in gated if text not in first]
    if "noComplete" in t.rest and "cluster" in t.rest:
        scoped = ["Modifier '.cluster' cannot be combined with modifier '.noComplete'"]
    return [*first, *scoped, *rest, *bad] if relations.takes_scope(name) else [*first, *bad, *rest]


def _paired(
    pair: str, opcode: Opcode, alien: str, bad: list[str], named: list[str], worded: list[str], sizes: list[str]
) -> list[str]:
    """What is said, in order, where modifiers need or exclude each other."""
    early = alien in rules.EARLY_ILLEGAL or alien in rules.DIMENSIONS or rules.is_shape(alien)
    early = early or (opcode.op in ("ld", "st") and (alien in rules.COMPARISONS or alien in rules.POST))
    if early and "types" not in pair and "type" not in pair:
        return bad + named + [pair] + worded
    if "types" in pair:
        return [*(named if opcode.op == "multimem" else []), *sizes, pair]
    if opcode.name == "mma":  # shapes come with later gates
        return [text for text in named if text.startswith("Instruction")] + [pair] + named + worded
    if opcode.op in ("ld", "st"):
        return sizes + named + [pair] + worded
    return (named if opcode.name not in ("atom", "red") else []) + sizes + [pair] + named + worded


def _hinted(t: Typed, kinds: tuple[str, ...]) -> bool:
    """True if there is a cache policy after the operands, and no modifier that says so."""
    last = t.row.operands[-1]
    if t.row.name not in ("ld", "st", "atom", "red") and (t.row.name != "cp.async" or len(kinds) < 5):
        return False
    return (
        "L2::cache_hint" in last.when
        and "L2::cache_hint" not in t.rest
        and kinds[-1] in ("i", "r:b64", "r:u64", "r:s64")
    )


def _before_related(opcode: Opcode, alien: str) -> bool:
    """True if ptxas refuses this modifier before it looks at types and shapes of a texture, shuffle or vote."""
    if alien in rules.SPACES or alien in rules.EARLY_ILLEGAL:
        return True
    if opcode.op in ("shfl", "vote"):
        return alien in _BEFORE_SYNC or (not alien and opcode.op == "shfl")
    if opcode.op == "sured":
        return False
    return (
        alien not in ("", "uni", "abs", "trans")
        and alien not in rules.CLAMPS
        and not (alien[0] == "x" and alien[1:].isdigit())
    )


def _before_gates(opcode: Opcode, alien: str) -> bool:
    """True if ptxas refuses this modifier before it looks at the instruction's gates."""
    if alien in rules.POST and opcode.name in rules.TYPED_OPERATIONS:
        return False
    if alien in rules.EARLY_ILLEGAL or alien in rules.DIMENSIONS or alien in rules.POST:
        return True
    late = alien in rules.LATE_ILLEGAL and not (opcode.op == "atom" and alien in rules.VECTORS)
    layouts = ("row", "col") if opcode.name == "wgmma.mma_async" else ()  # of the others they are early
    late = late or (opcode.op == "wgmma" and alien in (*layouts, "abs"))
    return opcode.op in _LATE_GATES and opcode.name != "red.async" and not late
