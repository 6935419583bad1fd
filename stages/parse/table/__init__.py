"""The descriptor table: one row per PTX instruction form.

The files of this package hold rows as text, one per line, in five or six columns separated by bars:

    name | types | slots | operands | gates | checks

* name: the mnemonic with its fixed dotted parts (`mul.wide`, `mbarrier.init`).
* types: alternatives separated by blanks; an alternative is a dotted tuple; each place a comma list. `-` for none.
* slots: modifiers in canonical order; `a/b` is a choice, `?` makes a slot optional, `$name` a named choice from
  `CHOICES`; `T` marks the place of the types if not at the end.
* operands, in order: a role, then optionally a type, e.g. `d`, `s2`, `s:b32`, `dv4:f32`, `xV~`. Roles: d destination
  register, s source register or constant, x the same or a special register, i constant, m memory, mt tensor map, mh
  handle of a fabric (mhc: with a counter), ta
  tensor memory, l label, dp predicate destination, dpp predicate destination or pair, ps predicate source, d_
  destination or `_`, `d|p` destination with optional predicate, others for textures and video (see
  `stages.parse.match`). `V` after the role: a vector if a `.v` modifier is present; `v4` a vector of four, `v` of any
  length. Type: a digit is the place in the type tuple (1 if absent), `:W` twice as wide as type 1, `:U` an unsigned
  32-bit count, `:A` an integer (an address), `:S` one of 32 or 64 bits, `:M` `:X` see `match.type_name`, `:name` that
  type. `~`: wider registers are taken too. `!`: an address, vector or float mismatches. `?`: may be absent. `@mods`:
  present exactly if one of these modifiers is.
* gates: `v7.0` minimum PTX version, `t80` minimum target, `b1.4` and `u20` the version and target that the form must be
  below, `on=90a+100f` the only targets (a: that one, f: its family from that number on, g: that number and all
  greater); after `;` the same for a modifier: `relu v8.0 t90`.
* checks: names of value checks in `stages.parse.checks`.

Sources: the PTX ISA manual for forms, gates measured with ptxas 13.0 (tests/parse/agreement.py compares).
"""

from __future__ import annotations

from collections.abc import Callable

from ir_format.kept import kept
from ir_format.late_pattern import late_pattern
from ir_format.record import NamedTuple
from ir_format.typed import Any, Final

CHOICES: Final[dict[str, str]] = {
    "space": "const/global/local/param/param::entry/param::func/shared/shared::cta/shared::cluster",
    "stspace": "global/local/param/param::func/shared/shared::cta/shared::cluster",
    "rspace": "global/shared/shared::cta/shared::cluster",
    "tmspace": "global/shared::cta",
    "ldcop": "ca/cg/cs/lu/cv",
    "stcop": "wb/cg/cs/wt",
    "cop": "ca/cg/cs/cv/wb/wt",
    "l1evict": "L1::evict_normal/L1::evict_unchanged/L1::evict_first/L1::evict_last/L1::no_allocate",
    "l2evict": "L2::evict_last/L2::evict_normal/L2::evict_first",
    "l2second": "L2::evict_first/L2::evict_unchanged",
    "l2fetch": "L2::64B/L2::128B/L2::256B",
    "scope": "cta/cluster/gpu/sys",
    "sem": "relaxed/acquire/release/acq_rel",
    "rsem": "relaxed/release",
    "dim": "1d/2d/3d/4d/5d",
    "report": "/".join(
        f"mbarrier::report::{how}"
        for how in (
            "disabled",
            *(f"validity::per_16bytes::{pattern}" for pattern in ("80000000", "8000", "80", "8")),
            "validity::per_element::ff",
        )
    ),
}


class Gate(NamedTuple):
    """Minimum PTX version (times ten; 0: any), minimum target number, the only targets as (number, suffix) or ();
    a form of old times has a version or target that it must stay below (0: none)."""

    version: int = 0
    target: int = 0
    only: tuple[tuple[int, str], ...] = ()
    version_below: int = 0
    target_below: int = 0
    order: str = "tvo"  # what is reported first: v version, t target (T: in words of its own), o the list of targets


class Slot(NamedTuple):
    """A modifier slot: its values, whether one must be present; an empty tuple marks the place of the types."""

    values: tuple[str, ...]
    required: bool


class OperandSpec(NamedTuple):
    """One operand of a row; `vector` 0 scalar, -1 by the `.v` modifier, -2 any length, else the length."""

    role: str
    type: str
    vector: int
    relaxed: bool
    optional: bool
    when: tuple[str, ...]
    pair: bool
    plain: bool = False  # a register of the type (or an integer where values are read): all else is a mismatch


class Row(NamedTuple):
    """A descriptor row; `key` is unique: name, `#`, number among the rows of its name."""

    key: str
    name: str
    types: tuple[tuple[frozenset[str], ...], ...]
    slots: tuple[Slot, ...]
    operands: tuple[OperandSpec, ...]
    gate: Gate
    modifier_gates: tuple[tuple[str, Gate], ...]
    checks: tuple[str, ...]


_BAR = late_pattern(r"\|(?!p)")  # the bar of an operand `d|p` does not separate columns
_OPERAND = late_pattern(
    r"(dtex|dsel|dmask|dpp|dp|d_|dpack|d|spack|sel|nsel|msel|s|x|i|mt|mq|ms|mhc|mh|ta|m|l|tx|toff|tcmp|tgrad|t|ps|k|o)"
    r"(V|v\d*)?(\d)?(~)?(!)?(?::(\w+))?(\|p)?(\?)?(?:@(.+))?"
)


@kept
def _index() -> dict[str, list[str]]:
    """Name -> its lines, without those of families."""
    from stages.parse.table import (
        arith,
        async_copy,
        control,
        convert,
        logic,
        matrix,
        memory,
        tensor5,
        texture,
        video,
    )

    lines: dict[str, list[str]] = {}
    for module in (arith, async_copy, control, convert, logic, matrix, memory, tensor5, texture, video):
        for line in module.ROWS.splitlines():
            if line:
                lines.setdefault(line.split(" ", 1)[0], []).append(line)
    return lines


_LINES: dict[str, list[str]] = _index()
_ROWS: dict[str, tuple[Row, ...]] = {}


def _families() -> dict[str, Callable[[], str]]:
    """First word of the names of a family -> what makes its lines."""
    from stages.parse.table import matrix, tensor5

    return {**matrix.FAMILIES, **tensor5.FAMILIES}


@kept
def _family_names() -> list[str]:
    return list(_families())


_PENDING = dict.fromkeys(_family_names())


def _load_family(first: str) -> None:
    if first in _PENDING:
        del _PENDING[first]
        for line in _families()[first]().splitlines():
            if line:
                _LINES.setdefault(line.split(" ", 1)[0], []).append(line)


def split_name(parts: list[str]) -> int:
    """How many leading parts of a dotted opcode form the longest known name; 0 if none."""
    if parts[0] in _PENDING:
        _load_family(parts[0])
    for n in range(min(5, len(parts)), 0, -1):
        if ".".join(parts[:n]) in _LINES:
            return n
    return 0


def rows(name: str) -> tuple[Row, ...]:
    """All rows of a name, parsed when first asked for."""
    found = _ROWS.get(name)
    if found is None:
        found = _ROWS[name] = tuple([_made(*row) for row in _plain_rows(name)])
    return found


@kept
def _plain_rows(name: str) -> list[tuple[Any, ...]]:
    """The rows of a name as plain tuples."""
    out = []
    for row in [parse_row(line, k) for k, line in enumerate(_LINES[name])]:
        gates = [(word, (*gate,)) for word, gate in row.modifier_gates]
        slots, operands = [(*slot,) for slot in row.slots], [(*operand,) for operand in row.operands]
        out.append((row.key, row.name, row.types, slots, operands, (*row.gate,), gates, row.checks))
    return out


def _made(key: str, name: str, types: Any, slots: Any, operands: Any, gate: Any, gates: Any, checks: Any) -> Row:
    """A row of its plain tuples."""
    return Row(
        key,
        name,
        types,
        tuple([Slot(*slot) for slot in slots]),
        tuple([OperandSpec(*operand) for operand in operands]),
        Gate(*gate),
        tuple([(word, Gate(*gate)) for word, gate in gates]),
        checks,
    )


_WITH: dict[tuple[str, tuple[str, ...]], tuple[Row, ...]] = {}


def rows_with(name: str, types: tuple[str, ...]) -> tuple[Row, ...]:
    """The rows of a name that an opcode with these types can be of; a row without types may have the words as
    modifiers."""
    found = _WITH.get((name, types))
    if found is None:
        found = _WITH[name, types] = tuple([row for row in rows(name) if _has_types(row, types)])
    return found


def _has_types(row: Row, types: tuple[str, ...]) -> bool:
    if not row.types:
        return all(any(t in slot.values for slot in row.slots) for t in types)
    return any(
        len(alternative) == len(types) and all(t in place for t, place in zip(types, alternative, strict=True))
        for alternative in row.types
    )


_OF: dict[str, frozenset[str]] = {}


def modifiers_of(name: str) -> frozenset[str]:
    """All modifiers that some row of a name takes."""
    found = _OF.get(name)
    if found is None:
        found = _OF[name] = frozenset([v for row in rows(name) for slot in row.slots for v in slot.values])
    return found


def names() -> list[str]:
    """All names, sorted."""
    for first in list(_PENDING):
        _load_family(first)
    return sorted(_LINES)


def parse_row(line: str, number: int) -> Row:
    """Parses one line of a table."""
    columns = [c.strip() for c in _BAR.split(line)]
    columns += [""] * (6 - len(columns))
    name, types, slots, operands, gates, checks = columns[:6]
    alternatives = () if types == "-" else tuple([_alternative(t) for t in types.split()])
    first, *modifiers = gates.split(";")
    return Row(
        f"{name}#{number}",
        name,
        alternatives,
        tuple([_slot(s) for s in slots.split()]),
        tuple([_operand(o.strip()) for o in operands.split(",")]) if operands else (),
        parse_gate(first.split()),
        tuple([(m.split()[0], parse_gate(m.split()[1:])) for m in modifiers]),
        tuple(checks.split()),
    )


def _alternative(text: str) -> tuple[frozenset[str], ...]:
    return tuple([frozenset(place.split(",")) for place in text.split(".")])


def _slot(text: str) -> Slot:
    if text == "T":
        return Slot((), False)
    required = not text.endswith("?")
    text = text.rstrip("?")
    if text.startswith("$"):
        text = CHOICES[text[1:]]
    return Slot(tuple(text.split("/")), required)


def _operand(text: str) -> OperandSpec:
    m = _OPERAND.fullmatch(text)
    if m is None:
        raise ValueError(f"bad operand '{text}' in the PTX table")
    role, vector, place, relaxed, plain, type_, pair, optional, when = m.groups()
    width = 0
    if vector == "V":
        width = -1
    elif vector == "v":
        width = -2
    elif vector:
        width = int(vector[1:])
    return OperandSpec(
        role, type_ or place or "1", width, relaxed is not None, optional is not None,
        tuple(when.split("/")) if when else (), pair is not None, plain is not None,
    )  # fmt: skip


def parse_gate(words: list[str]) -> Gate:
    """Parses the words of a gate."""
    version = target = version_below = target_below = 0
    only: list[tuple[int, str]] = []
    order = "".join([word[0] for word in words if word[0] in "vtTo"])
    for word in words:
        if word[0] == "v":
            major, minor = word[1:].split(".")
            version = int(major) * 10 + int(minor)
        elif word[0] in "tT":
            target = int(word[1:])
        elif word[0] == "b":
            major, minor = word[1:].split(".")
            version_below = int(major) * 10 + int(minor)
        elif word[0] == "u":
            target_below = int(word[1:])
        elif word.startswith("on="):
            only = [(int(w[:-1]), w[-1]) for w in word[3:].split("+")]
    return Gate(version, target, tuple(only), version_below, target_below, order)


_KNOWN: set[str] = set()


def is_modifier(word: str) -> bool:
    """True if a dotted word is a modifier or type of any row."""
    return word in _all_modifiers()


def _all_modifiers() -> set[str]:
    """Filled when the first word is asked for that its instruction does not have."""
    if not _KNOWN:
        from stages.parse.rules import KNOWN_ELSEWHERE, TYPES

        _KNOWN.update(TYPES, KNOWN_ELSEWHERE, *[modifiers_of(name) for name in names()])
    return _KNOWN


def modifiers() -> list[str]:
    """All modifiers and types, sorted."""
    return sorted(_all_modifiers())
