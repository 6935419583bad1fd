"""Facts about an instruction that do not depend on its operands: the ``op`` lines of the row files.

An ``op`` line precedes the rows of its mnemonic, reads ``op NAME TAG... KEY=VALUE...`` and continues on indented
lines; the values of a key that stands twice are joined by ``|``. A line with a tag or key
that is not listed below, or without the effect of the instruction, does not load. Every stage, checker and table
derives its sets of mnemonics from these lines, so that an instruction is described in one place.
"""

from __future__ import annotations

from functools import cache

from ir_format.kept import kept
from ir_format.late_pattern import late_pattern
from ir_format.record import NamedTuple
from ir_format.typed import Final

#: Tag -> its meaning.
TAGS: Final = {
    "pure": "only computes its destinations from its sources: it may be removed if unused, merged with an equal "
        "one, and executed although its guard is false",
    "sreg": "reads a special register; pure where that register is (:mod:`ir_format.isa.sregs`)",
    "speculatable": "not pure, but harmless if executed although its guard is false",
    "atomic": "reads and writes memory in one step",
    "convergent": "its result depends on the threads of the warp that execute it: it never moves to a place that "
        "other threads execute",
    "synchronizing": "threads exchange values or wait for each other: such instructions keep their order "
        "(exchanges only among the others)",
    "waits": "a thread may wait here for others",
    "diverging": "converged threads of a warp may diverge after it",
    "varies": "the result may differ between the threads of a warp although the sources are equal",
    "agrees": "the result is the same in all threads that execute it, whatever their sources",
    "wall": "no instruction moves over it",
    "fence": "no memory access moves over it",
    "protocol": "a step of an asynchronous protocol: it is not reordered with other steps or memory accesses",
    "noduplicate": "a copy in an unrolled loop would change the program, or gain nothing",
    "boundary": "no scoreboard may be raised: the code after it does not know them, or registers are released",
    "commit": "ends a group of asynchronous copies that DEPBAR counts",
    "latesrc": "reads sources after its first results are written",
    "warpgroup": "a product of a whole warpgroup",
    "moves": "copies its source unchanged, unless an operand modifier says otherwise",
    "adds": "its result is the sum of its integer sources",
    "predmask": "an immediate mask says which predicates it touches",
    "halfgap": "nvdisasm prints a space in a constant's address if a type has 16 bits",
    "constant": "can produce a value without register operands",
}  # fmt: skip
#: Key -> the meaning of its value.
KEYS: Final = {
    "effect": "its effect, if that is neither a memory access nor a jump",
    "ctl": "its effect on control flow",
    "read": "memory spaces that it reads",
    "write": "memory spaces that it writes",
    "remat": "issue slots that rematerialization costs",
    "fused": "SUM:FUSED: what does this product and a SUM of it as one FUSED instruction, rounded once",
    "class": "hazard class (:mod:`ir_format.hazards.classes`), with alternatives by modifier and SM",
}
EFFECTS: Final = frozenset(("warp", "sync", "order", "cache", "state", "hint", "copy"))
SPACES: Final = frozenset(
    ("global", "shared", "local", "generic", "const", "texture", "surface", "tensor", "cluster", "multicast")
)

_LINE: Final = late_pattern(r"(?m)^op (\S+)([^#\n]*(?:\n [^#\n]*)*)")


class Facts(NamedTuple):
    """The facts of one mnemonic. ``read``, ``write``: memory spaces; ``values``: the other keys."""

    name: str
    tags: frozenset[str]
    read: frozenset[str]
    write: frozenset[str]
    values: dict[str, str]


@cache
def table() -> dict[str, Facts]:
    """Mnemonic -> facts, in the order of the row files. Raises ValueError for a line that says something unknown, or
    too little."""
    from ir_format.isa.rows import TEXTS

    out: dict[str, Facts] = {}
    for text in TEXTS:
        for name, rest in _LINE.findall(text):
            out[name] = _parse(name, rest.split())
    return out


def _parse(name: str, words: list[str]) -> Facts:
    tags = frozenset(w for w in words if "=" not in w)
    values: dict[str, str] = {}
    for key, _, value in (w.partition("=") for w in words if "=" in w):
        values[key] = f"{values[key]}|{value}" if key in values else value
    spaces = {key: frozenset(values.get(key, "").split(",")) - {""} for key in ("read", "write")}
    unknown = (
        (tags - TAGS.keys())
        | (values.keys() - KEYS.keys())
        | ((spaces["read"] | spaces["write"]) - SPACES)
        | ({values.get("effect", "hint")} - EFFECTS)
    )
    if unknown:
        raise ValueError(f"op {name}: unknown fact {', '.join(sorted(unknown))}")
    if not (tags & {"pure", "sreg"} or values.keys() & {"effect", "ctl", "read", "write"}):
        raise ValueError(f"op {name}: nothing says what it does")
    return Facts(name, tags, spaces["read"], spaces["write"], values)


@kept
def having(tag: str) -> frozenset[str]:
    """The mnemonics with a tag."""
    assert tag in TAGS, tag
    return frozenset(name for name, f in table().items() if tag in f.tags)


@kept
def with_value(key: str, *wanted: str) -> frozenset[str]:
    """The mnemonics whose ``effect`` or ``ctl`` is one of those wanted."""
    assert key in KEYS, key
    return frozenset(name for name, f in table().items() if f.values.get(key) in wanted)


@kept
def exchanging() -> frozenset[str]:
    """The mnemonics by which threads of a warp learn something of each other. ELECT waits, and no list of `.nv.info`
    has it (measured)."""
    return with_value("effect", "warp") & having("synchronizing") - having("waits")


@kept
def speculatable() -> frozenset[str]:
    """The mnemonics that may run though their guard is false."""
    return having("pure") | having("speculatable")


def alternatives(f: Facts) -> list[tuple[tuple[str, ...], str, str]]:
    """The hazard classes of a mnemonic: the modifiers that ask for it, the class, the SMs that it is for ('' for
    all)."""
    out: list[tuple[tuple[str, ...], str, str]] = []
    for item in f.values.get("class", "").split("|"):
        where, _, sms = item.partition("/")
        mods, _, name = where.rpartition(":")
        if name:
            out.append((tuple(mods.split(".")) if mods else (), name, sms))
    return out


@kept
def of_class(*classes: str) -> frozenset[str]:
    """The mnemonics whose plain form is in one of these hazard classes on some SM."""
    return frozenset(
        op for op, f in table().items() if any(not mods and name in classes for mods, name, _ in alternatives(f))
    )


@kept
def with_class(*classes: str) -> frozenset[str]:
    """The mnemonics of which some form is in one of these hazard classes on some SM."""
    return frozenset(op for op, f in table().items() if any(name in classes for _, name, _ in alternatives(f)))


@kept
def mnemonics() -> frozenset[str]:
    """All mnemonics."""
    return frozenset(table())


#: Spaces that loads and stores of a thread address directly.
ADDRESSED: Final = frozenset(("global", "shared", "local", "generic"))


@cache
def _accesses() -> tuple[Facts, ...]:
    """The mnemonics that access directly addressed spaces alone, and are no step of a protocol."""
    return tuple(
        f for f in table().values() if f.read | f.write and f.read | f.write <= ADDRESSED and "protocol" not in f.tags
    )


@kept
def loads() -> dict[str, str]:
    """Mnemonics that only read one addressed space -> the space."""
    return {f.name: min(f.read) for f in _accesses() if len(f.read) == 1 and not f.write}


@kept
def stores() -> dict[str, str]:
    """Mnemonics that only write one addressed space -> the space."""
    return {f.name: min(f.write) for f in _accesses() if len(f.write) == 1 and not f.read}


@kept
def atomics() -> dict[str, str]:
    """Mnemonics that read and write one addressed space in one step -> the space."""
    return {f.name: min(f.write) for f in _accesses() if "atomic" in f.tags and f.read == f.write}


@kept
def copies() -> dict[str, str]:
    """Mnemonics that copy from one addressed space to another, per thread -> the space that they write."""
    return {f.name: min(f.write) for f in _accesses() if f.read and f.write and f.read != f.write}


@kept
def reading(*spaces: str) -> frozenset[str]:
    """The mnemonics that read one of these spaces."""
    return frozenset(name for name, f in table().items() if f.read.intersection(spaces))


@kept
def writing(*spaces: str) -> frozenset[str]:
    """The mnemonics that write one of these spaces."""
    return frozenset(name for name, f in table().items() if f.write.intersection(spaces))


@kept
def costs(key: str) -> dict[str, int]:
    """Mnemonic -> the number that follows a key, for those that have it."""
    return {name: int(f.values[key]) for name, f in table().items() if key in f.values}


@kept
def contractions() -> dict[str, tuple[str, str]]:
    """Product -> (the sum that it can be joined with, the instruction that is both)."""
    split = {name: f.values["fused"].split(":") for name, f in table().items() if "fused" in f.values}
    return {name: (both[0], both[1]) for name, both in split.items()}


@kept
def fetching() -> frozenset[str]:
    """The mnemonics that bring something from memory: loads, copies, atomics with a result."""
    return frozenset(
        name for name, f in table().items() if f.read and not ("atomic" in f.tags and "waits" not in f.tags)
    )


@kept
def known_accesses() -> frozenset[str]:
    """The mnemonics whose accesses to memory are all said here, and that order nothing."""
    return frozenset(
        name for name, f in table().items() if (f.read or f.write) and not f.tags & {"fence", "protocol", "waits"}
    )
