"""What a release of ptxas knows: the rows, names and modifiers whose PTX version it takes.

A row, or a word that a line of the gates names as a whole (`F:.{mod}`), that asks for a version beyond a release's
newest
is unknown there (measured with ptxas 13.0 on PTX 9.1 to 9.5: such a word is an unknown modifier, such a name no
instruction).
"""

from __future__ import annotations

from ir_format.late_pattern import late_pattern
from ir_format.typed import Final
from stages.parse import table
from stages.parse.rules import TYPES
from stages.parse.table import Row, gates

_VERSION: Final = late_pattern(r"\bv(\d+)\.(\d)")


_NONE: Final[frozenset[str]] = frozenset()
#: Types that ptxas knew before an instruction took them.
_NAMED_BEFORE: Final = frozenset(("ue8m0x4",))


class Vocabulary:
    """``newest``: the last PTX version that is known (times ten)."""

    __slots__ = ("_known", "_later", "_of", "_rows", "_types", "_whole", "newest")

    def __init__(self, newest: int, whole: bool) -> None:
        self.newest = newest
        self._whole = whole  # nothing in the tables is newer
        self._rows: dict[tuple[str, tuple[str, ...]], tuple[Row, ...]] = {}
        self._of: dict[str, frozenset[str]] = {}
        self._later: dict[str, frozenset[str]] = {}
        self._known: frozenset[str] | None = None
        self._types: frozenset[str] | None = None

    def split_name(self, parts: list[str]) -> int:
        """How many leading parts of a dotted opcode form the longest name that is known; 0 if none."""
        n = table.split_name(parts)
        while n and not self._whole and not self._named(".".join(parts[:n])):
            n = table.split_name(parts[: n - 1]) if n > 1 else 0
        return n

    def _named(self, name: str) -> bool:
        return any(row.gate.version <= self.newest for row in table.rows(name))

    def rows_with(self, name: str, types: tuple[str, ...]) -> tuple[Row, ...]:
        """The rows of a name that an opcode with these types can be of."""
        rows = table.rows_with(name, types)
        return rows if self._whole else tuple([row for row in rows if row.gate.version <= self.newest])

    def modifiers_of(self, name: str) -> frozenset[str]:
        """All modifiers that some row of a name takes."""
        if self._whole:
            return table.modifiers_of(name)
        found = self._of.get(name)
        if found is None:
            rows = [row for row in table.rows(name) if row.gate.version <= self.newest]
            found = frozenset([v for row in rows for slot in row.slots for v in slot.values]) - _words_after(
                self.newest
            )
            self._of[name] = found
        return found

    def later(self, name: str) -> frozenset[str]:
        """The modifiers that an instruction takes in later releases only, among those that are known."""
        if self._whole:
            return _NONE
        found = self._later.get(name)
        if found is None:
            found = self._later[name] = _words_after(self.newest, "{name}.{mod}", name)
        return found

    def is_type(self, word: str) -> bool:
        """True if a dotted word is a type."""
        if self._whole or word not in TYPES:
            return word in TYPES
        if self._types is None:
            rows = [row for name in table.names() for row in table.rows(name)]
            newer, older = set[str](), set[str]()
            for row in rows:
                into = older if row.gate.version <= self.newest else newer
                into.update(t for alternative in row.types for place in alternative for t in place)
            self._types = TYPES - (newer - older - _NAMED_BEFORE)
        return word in self._types

    def is_modifier(self, word: str) -> bool:
        """True if a dotted word is a modifier or type of any row."""
        if self._whole:
            return table.is_modifier(word)
        if self._known is None:
            every = frozenset(table.modifiers())
            older = frozenset().union(*[self.modifiers_of(name) for name in table.names()])
            newer = frozenset().union(*[table.modifiers_of(name) for name in table.names()]) - older
            self._known = every - newer - {t for t in TYPES if not self.is_type(t)}
        return word in self._known


def _words_after(newest: int, text: str = ".{mod}", name: str = "") -> frozenset[str]:
    """The words that are features of their own, of a version beyond this one; those of one instruction by its name."""
    out: set[str] = set()
    for line in (gates.OWN if name else gates.OTHER).splitlines():
        columns = [c.strip() for c in line.split("|")]
        if len(columns) == 4 and columns[2][2:] == text and (not name or name in columns[0].split()):
            version = _VERSION.search(columns[3])
            if version is not None and int(version[1]) * 10 + int(version[2]) > newest:
                out.update(columns[1].split("/"))
    return frozenset(out)


_MADE: dict[tuple[int, bool], Vocabulary] = {}


def vocabulary(newest: tuple[int, int], whole: bool) -> Vocabulary:
    """That of a release."""
    key = newest[0] * 10 + newest[1], whole
    found = _MADE.get(key)
    if found is None:
        found = _MADE[key] = Vocabulary(*key)
    return found
