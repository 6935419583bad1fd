"""The row language: one text row per SASS instruction form, and its parser.

A row reads::

    NAME      OPC LAYOUT [sm=RANGE]  DSTS <- SRCS  ; MODIFIERS  ; FACTS

and continues on indented lines.  ``docs/isa.md`` describes it; in short:

* ``NAME`` is the mnemonic with its fixed modifiers (``IMAD.WIDE``).
* ``OPC`` is the base opcode in hex (bits 0-8) for the arithmetic layouts, or all twelve bits for layout ``-``; ``+91``
  sets bit 91.
* ``LAYOUT`` names which operand may be a register, an immediate, a constant or a uniform register (table
  :data:`LAYOUTS`).
* A slot is ``name[width][/group][-|~][<enum>@bits][@bits][?[COND]][=default]``.
* A modifier is ``.NAME@bit`` (printed when the bit is 1), ``.NAME@bit=0`` (printed when 0), ``.NAME`` (always) or
  ``.{A B _ ?}[:group]@lo-hi`` / ``.enum[:group]@lo-hi`` (``_`` prints nothing, ``?`` is undefined).
* ``72=1`` fixes bits. ``<80+>token`` keeps a token for some SMs only.
"""

from __future__ import annotations

from functools import cache, lru_cache

from ir_format.features import covers, has
from ir_format.kept import kept
from ir_format.late_pattern import late_pattern
from ir_format.record import NamedTuple
from ir_format.target import numbers
from ir_format.typed import Any

#: Every SM that rows speak of.
SMS = numbers()

Bits = tuple[tuple[int, int], ...]  # (lowest bit, count) pieces, least significant first


class RowError(ValueError):
    """A row that does not parse: an error of the tables, never of the input."""


class Enum(NamedTuple):
    """A named value table. ``names[i]``: text of value i, '' prints nothing, None undefined. ``width[i]``: words it
    stands for, 0 = unsaid."""

    names: tuple[str | None, ...]
    width: tuple[int, ...]


class SlotSpec(NamedTuple):
    """One operand slot as written. ``kinds``: operand kinds taken, by form letter when the layout decides."""

    name: str
    kind: str  # R UR P UP B I C M T N, or 'alu' where the layout decides
    bits: Bits
    neg: int  # bit of negation, -1 = none ('alu': 1 = allowed)
    abs: int
    inv: str  # '' never, '*' always, else: negation reads as inversion with this modifier
    width: int
    group: str  # modifier group that gives the width, '' = fixed
    enum: str  # operand suffix table
    ebits: Bits
    opt: str  # '' always printed, '*' omitted when default, else: printed only with the modifier
    default: str
    args: str  # codec argument


class ModSpec(NamedTuple):
    """One modifier group as written. ``values[i]``: text for value i, '' nothing, None undefined. ``cond``: derived
    from operands."""

    values: tuple[str | None, ...]
    width: tuple[int, ...]
    bits: Bits
    group: str
    cond: str


class Row(NamedTuple):
    """A parsed row for one SM."""

    name: str
    op: str
    fixed: tuple[str, ...]
    opcode: int
    layout: str
    forms: tuple[str, ...]
    dsts: tuple[SlotSpec, ...]
    srcs: tuple[SlotSpec, ...]
    mods: tuple[ModSpec, ...]
    fix: tuple[tuple[Bits, int], ...]
    facts: dict[str, str]
    text: str


#: layout -> {form letters of the flexible operands: value of bits 9-11}.  The first letter belongs to b, the second to
#: c. r register, i immediate, k constant, u uniform register, x constant through a descriptor (``cx``).
LAYOUTS: dict[str, dict[str, int]] = {
    "ABC": {"rr": 1, "ri": 2, "rk": 3, "ir": 4, "kr": 5, "ur": 6, "ru": 7, "rx": 3, "xr": 5},
    "3ABC": {"rr": 3, "ri": 7, "ir": 5},  # F2FP with a scale
    "ABc": {"rr": 1, "ir": 4, "kr": 5, "ur": 6, "xr": 5},
    "AB": {"r": 1, "i": 4, "k": 5, "u": 6, "x": 5},
    "AC": {"r": 1, "i": 2, "k": 3, "u": 7, "x": 3},
    "AY": {"r": 1, "i": 2, "k": 3, "u": 7, "x": 3},  # as AC, the register at 64-71
    "S64": {"r": 3, "i": 2, "u": 7},
    "UAY": {"r": 1, "i": 2},
    "UABC": {"rr": 1, "ir": 4},
    "UIABC": {"rr": 1, "ir": 4, "ri": 2},
    "UAB": {"r": 1, "i": 4},
    "UB": {"u": 6, "i": 4},
    "UB1": {"u": 1},
    # memory: r [R], u [R+UR], v [R.U32+UR], w [R.64+UR], d desc[UR][R.64], p the same with a cache policy
    "G": {"r": 1, "v": 4, "w": 4, "d": 4, "p": 4},
    "L": {"r": 4, "u": 4},
    "L1": {"r": 1, "u": 4},
    "L6": {"r": 4, "u": 6},
    "A": {"r": 1, "u": 4},
    "G4": {"r": 4, "v": 4, "w": 4, "d": 4, "p": 4},
    "GU": {"v": 4, "w": 4, "d": 4},
    "GS": {"v": 6, "w": 6},
    "GA": {"v": 7, "w": 7, "d": 7, "p": 7},
    "GT": {"d": 6, "p": 6},
    "AP": {"u": 7},
    "-": {"": 0},
}


@cache
def sm_set(text: str) -> frozenset[int]:
    """The SMs in ``75``, ``80+``, ``80-89``, ``100,103`` and unions with commas."""
    return frozenset(sm for sm in SMS if covers(text, sm))


def parse_bits(text: str) -> Bits:
    """``16-23``, ``72``, ``16-23+34-81``; pieces are given least significant first."""
    out = []
    for part in text.split("+"):
        low, _, high = part.partition("-")
        first = int(low)
        out.append((first, (int(high) if high else first) - first + 1))
    return tuple(out)


#: Predefined slots: name -> (kind, bits, bit of negation, default).
NAMED: dict[str, tuple[str, str, int, str]] = {
    "d": ("R", "16-23", -1, "RZ"),
    "a": ("R", "24-31", 72, "RZ"),
    "b": ("R", "32-39", 63, "RZ"),
    "c": ("R", "64-71", 75, "RZ"),
    "ud": ("UR", "16", -1, "URZ"),
    "ua": ("UR", "24", 72, "URZ"),
    "ub": ("UR", "32", 63, "URZ"),
    "uc": ("UR", "64", 75, "URZ"),
    "Pu": ("P", "81-83", -1, "PT"),
    "Pv": ("P", "84-86", -1, "PT"),
    "Pp": ("P", "87-89", 90, "PT"),
    "Pq": ("P", "77-79", 80, "PT"),
    "Px": ("P", "68-70", 71, "PT"),
    "UPu": ("UP", "81-83", -1, "UPT"),
    "UPv": ("UP", "84-86", -1, "UPT"),
    "UPp": ("UP", "87-89", 90, "UPT"),
    "UPq": ("UP", "77-79", 80, "UPT"),
    "UPx": ("UP", "68-70", 71, "UPT"),
}
_ABS_BIT = {"a": 73, "b": 62, "c": 74, "ua": 73, "ub": 62, "uc": 74}

_SLOT = late_pattern(
    r"(?P<name>[A-Za-z]+?)(?P<width>\d+)?(?::(?P<kind>[A-Za-z]+)(?:\((?P<args>[^)]*)\))?)?(?:@(?P<bits>[\d+-]*\d))?"
    r"(?:/(?P<group>\w+))?(?P<flags>(?:-(?:@\d+)?|\|(?:@\d+)?|~(?:\w+)?)*)"
    r"(?:<(?P<enum>=?\w+)>(?:@(?P<ebits>[\d+-]*\d))?)?(?P<opt>\?\w*)?(?:=(?P<default>\S+))?$"
)
_FLAG = late_pattern(r"([-|~])(?:@(\d+)|(\w+))?")
_MOD = late_pattern(
    r"\.(?:\{(?P<list>[^}]*)\}|(?P<name>[\w.:]+?))(?::(?P<group>[a-z]\w*))?"
    r"(?:@(?P<bits>[\d+-]*\d)(?:=(?P<val>\d+))?)?(?:\?\((?P<cond>[^)]*)\))?$"
)
_FIX = late_pattern(r"(?P<bits>\d[\d+-]*)=(?P<val>\d+|0x[0-9a-f]+)$")
_MACRO = late_pattern(r"\$(\w+)")
_TOKEN = late_pattern(r"(?:[^\s{(]|\{[^}]*\}|\([^)]*\))+")


def parse_slot(text: str, layout: str) -> SlotSpec:
    """A slot token."""
    m = _SLOT.match(text)
    if m is None:
        raise RowError(f"slot {text!r}")
    name = m["name"]
    kind, bits, negbit, default = NAMED.get(name, ("", "", -1, ""))
    alu = layout != "-" and name.removeprefix("u") in ("b", "c") and not m["bits"] and not m["kind"]
    if name.endswith("c") and "C" not in layout[2:].upper():
        alu = False
    if m["kind"]:
        kind = m["kind"]
    if m["bits"] is not None:
        bits = m["bits"]
    if not kind:
        raise RowError(f"slot {text!r}: unknown name")
    pieces = parse_bits(bits) if bits else ()
    if kind in ("UR", "URn") and pieces and "-" not in bits:
        pieces = ((pieces[0][0], 0),)  # width of the field depends on the SM
    neg, absbit, inv = -1, -1, ""
    if kind in ("P", "UP") and negbit >= 0:
        neg, inv = negbit, "*"
    for sign, at, cond in _FLAG.findall(m["flags"] or ""):
        if sign == "-":
            neg = int(at) if at else negbit
        elif sign == "|":
            absbit = int(at) if at else _ABS_BIT.get(name, -1)
        elif kind in ("P", "UP"):
            neg, inv = int(at) if at else negbit, "*"
        else:
            neg = negbit if neg < 0 else neg
            inv = cond or "*"
    opt = m["opt"]
    return SlotSpec(
        name,
        "alu" if alu else kind,
        pieces,
        neg,
        absbit,
        inv,
        int(m["width"] or 1),
        m["group"] or "",
        m["enum"] or "",
        parse_bits(m["ebits"]) if m["ebits"] else (),
        "" if opt is None else (opt[1:] or "*"),
        m["default"] or default,
        m["args"] or "",
    )


def parse_enum(items: str) -> Enum:
    """``A B:2 _ ?``: names with an optional width in words after a colon; ``N=A`` continues at value N; ``*=SR`` names
    the gaps SRn."""
    names: list[str | None] = []
    width: list[int] = []
    for item in items.split():
        at, equals, rest = item.partition("=")
        if at == "*":
            names += [None] * (256 - len(names))
            names = [f"{rest}{i}" if n is None else n for i, n in enumerate(names)]
            width += [0] * (256 - len(width))
            continue
        if equals:
            index = int(at)
            names += [None] * (index - len(names))
            width += [0] * (index - len(width))
            if index < len(names):
                names[index] = rest
                continue
            item = rest
        name, _, w = item.partition(":")
        names.append(None if name == "?" else "" if name == "_" else name)
        width.append(int(w) if w else 0)
    return Enum(tuple(names), tuple(width))


def guarded(items: str, sm: int) -> str:
    """Drop the ``<RANGE>`` items that are for other SMs."""
    if "<" not in items:
        return items
    return " ".join(
        t.partition(">")[2] if t[0] == "<" else t
        for t in items.split()
        if t[0] != "<" or sm in sm_set(t[1:].partition(">")[0])
    )


def parse_mod(text: str, enums: dict[str, Enum], sm: int) -> ModSpec:
    """A modifier token."""
    m = _MOD.match(text)
    if m is None:
        raise RowError(f"modifier {text!r}")
    bits = parse_bits(m["bits"]) if m["bits"] else ()
    group, cond = m["group"] or "", m["cond"] or ""
    if m["list"] is not None:
        enum = parse_enum(guarded(m["list"], sm))
    elif m["name"] in enums and bits:
        enum = enums[m["name"]]
        group = group or m["name"]
    elif not bits:
        return ModSpec(("", m["name"]) if cond else (m["name"],), (0, 0) if cond else (0,), (), group, cond)
    elif m["val"] == "0":
        enum = Enum((m["name"], ""), (0, 0))
    else:
        enum = Enum(("", m["name"]), (0, 0))
    return ModSpec(enum.names, enum.width, bits, group, cond)


def parse_row(text: str, sm: int, enums: dict[str, Enum], macros: dict[str, str]) -> Row | None:
    """The row for one SM, or None where the row is not for it."""
    for _ in range(4):
        if "$" not in text:
            break
        text = _MACRO.sub(lambda m: macros[m[1]], text)
    tokens: list[str] = []
    for token in _TOKEN.findall(text):
        if token.startswith("<") and token[1].isdigit():
            guard, _, token = token[1:].partition(">")
            if sm not in sm_set(guard):
                continue
        tokens.append(token)
    name, opc, layout = tokens[0], tokens[1], tokens[2]
    rest = tokens[3:]
    while rest and rest[0].startswith(("sm=", "forms=")):
        if rest[0].startswith("sm=") and sm not in sm_set(rest[0][3:]):
            return None
        rest = rest[1:]
    wanted = next((t[6:].split(",") for t in tokens[3:5] if t.startswith("forms=")), None)
    sections: list[list[str]] = [[]]
    for token in rest:
        if token == ";":
            sections.append([])
        else:
            sections[-1].append(token)
    operands, modtexts, facttexts = (*sections, [], [])[:3]
    arrow = operands.index("<-") if "<-" in operands else 0
    dsts = tuple(parse_slot(t, layout) for t in operands[:arrow])
    srcs = tuple(parse_slot(t, layout) for t in operands[arrow:] if t != "<-")
    mods: list[ModSpec] = []
    fix: list[tuple[Bits, int]] = []
    for token in modtexts:
        m = _FIX.match(token)
        if m is not None:
            fix.append((parse_bits(m["bits"]), int(m["val"], 0)))
        else:
            mods.append(parse_mod(token, enums, sm))
    base, plus, extra = opc.partition("+")
    opcode = int(base, 16)
    if plus:
        fix.append((parse_bits(extra), 1))
    forms = LAYOUTS[layout]
    names = tuple(f for f in (wanted or forms) if _form_on(f, sm))
    if layout.endswith(("ABC", "ABc")) and not any(s.name in ("c", "uc") for s in srcs):
        names = tuple(f for f in names if f[1] == "r")  # the third place is fixed
    op, *fixed = name.split(".")
    facts = dict(t.partition("=")[::2] for t in facttexts)
    return Row(name, op, tuple(fixed), opcode, layout, names, dsts, srcs, tuple(mods), tuple(fix), facts, text)


def rows_of(op: str, sm: int) -> dict[str, Row | None]:
    """The rows of a mnemonic by their texts, None where a row is for other SMs."""
    return {text: None if row is None else _made(*row) for text, row in _rows_of(op, sm).items()}


@kept
def _rows_of(op: str, sm: int) -> dict[str, tuple[Any, ...] | None]:
    """The rows as plain tuples."""
    enums = enums_for(sm)
    out: dict[str, tuple[Any, ...] | None] = {}
    for text in source().rows.get(op, ()):
        try:
            row = parse_row(text, sm, enums, source().macros)
        except (RowError, KeyError, ValueError, IndexError) as error:
            raise RowError(f"{error!r} in row: {text}") from error
        out[text] = None if row is None else (*row[:6], *[[(*part,) for part in parts] for parts in row[6:9]], *row[9:])
    return out


def _made(*row: Any) -> Row:
    """A row of its plain tuples."""
    dsts, srcs = [tuple([SlotSpec(*slot) for slot in slots]) for slots in row[6:8]]
    return Row(*[*row[:6], dsts, srcs, tuple([ModSpec(*mod) for mod in row[8]]), *row[9:]])


def _form_on(form: str, sm: int) -> bool:
    """Whether the SM has the form: constant operands of arithmetic, addresses with a descriptor (measured)."""
    if ("k" in form or "x" in form) and not has(sm, "alu-const-operands"):
        return False
    return (form != "d" or has(sm, "descriptor-addresses")) and (form != "p" or has(sm, "descriptor-addresses-p"))


class Source(NamedTuple):
    """The row texts by mnemonic, with the tables that they use."""

    rows: dict[str, list[str]]
    by_opcode: dict[int, list[str]]
    enums: dict[str, str]
    macros: dict[str, str]


def enums_for(sm: int) -> dict[str, Enum]:
    """The value tables of one SM."""
    return {name: Enum(names, width) for name, (names, width) in _enum_values(sm).items()}


@kept
def _enum_values(sm: int) -> dict[str, tuple[tuple[str | None, ...], tuple[int, ...]]]:
    return {name: (*parse_enum(guarded(items, sm)),) for name, items in source().enums.items()}


@lru_cache(maxsize=1)
def source() -> Source:
    """Read the row files: split them into rows, parse nothing but names and opcodes."""
    return Source(*_source())


@kept
def _source() -> tuple[dict[str, list[str]], dict[int, list[str]], dict[str, str], dict[str, str]]:
    from ir_format.isa import facts
    from ir_format.isa.rows import TEXTS

    rows: dict[str, list[str]] = {}
    by_opcode: dict[int, list[str]] = {}
    enums: dict[str, str] = {}
    macros: dict[str, str] = {}
    for text in TEXTS:
        entry: list[str] = []
        for line in (*text.splitlines(), "."):
            body = line.split("#", 1)[0].rstrip()
            if not body:
                continue
            if body[0] == " ":
                entry.append(body)
                continue
            if entry:
                _file_entry(" ".join(entry), rows, by_opcode, enums, macros)
            entry = [body]
    without = rows.keys() - facts.table().keys()
    if without:
        raise RowError(f"rows without an op line: {', '.join(sorted(without))}")
    return rows, by_opcode, enums, macros


def _file_entry(
    text: str,
    rows: dict[str, list[str]],
    by_opcode: dict[int, list[str]],
    enums: dict[str, str],
    macros: dict[str, str],
) -> None:
    head, _, rest = text.partition(" ")
    if head == "enum":
        name, _, items = rest.partition("=")
        enums[name.strip()] = items
    elif head == "def":
        name, _, items = rest.partition("=")
        macros[name.strip()] = items.strip()
    elif head != "op":
        opcode = rest.split(None, 1)[0].partition("+")[0]
        rows.setdefault(head.partition(".")[0], []).append(text)
        by_opcode.setdefault(int(opcode, 16) & 0x1FF, []).append(text)


@kept
def predicate_results() -> frozenset[str]:
    """The mnemonics that have a row with a predicate among its destinations."""
    out = set()
    for op, texts in source().rows.items():
        for text in texts:
            if any(token.rpartition(">")[2].startswith(("P", "UP")) for token in text.partition("<-")[0].split()[3:]):
                out.add(op)
                break
    return frozenset(out)
