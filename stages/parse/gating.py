"""Gates that are closed for an instruction, in ptxas's order and words (the table: `stages.parse.table.gates`)."""

from __future__ import annotations

from functools import cache

from ir_format.kept import kept
from ir_format.record import NamedTuple
from ir_format.release import DEFAULT
from ir_format.typed import Any, Final
from stages.parse import compat, rules, textures
from stages.parse.table import Gate, Row, gates, parse_gate
from stages.parse.table.vocabulary import vocabulary
from stages.parse.targets import Target

_KINDS: Final = {"F": "Feature", "I": "Instruction", "M": "Modifier"}


class Rule(NamedTuple):
    """A line of the table: the names it is for; one tuple of alternatives per word (`a*` a prefix); words that must not
    be there; kind and text of the feature."""

    names: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    never: tuple[str, ...]
    kind: str
    quoted: str
    gate: Gate

    def holds(self, words: frozenset[str]) -> str | None:
        """The word that the first choice found, else the first word; None if the line does not hold."""
        if any(_hits(w, words) for w in self.never):
            return None
        found = chosen = ""
        for choice in self.words:
            hit = next((w for c in choice for w in _hits(c, words)), None)
            if hit is None:
                return None
            found = found or hit
            if not chosen and (len(choice) > 1 or choice[0].endswith("*")):
                chosen = hit
        return chosen or found


def _hits(wanted: str, words: frozenset[str]) -> list[str]:
    if wanted.endswith("*"):
        return sorted([w for w in words if w.startswith(wanted[:-1])])
    return [wanted] if wanted in words else []


_GATES: dict[str, Gate] = {}  # by text: many lines have the same


def _gate(text: str) -> Gate:
    found = _GATES.get(text)
    if found is None:
        found = _GATES[text] = parse_gate(text.split())
    return found


@cache
def _rules(text: str) -> list[Rule]:
    """The lines of a table that have a gate."""
    out: list[Rule] = []
    for line in text.splitlines():
        head, _, gate = line.rpartition("|")
        if gate:
            names, words, feature = [column.strip() for column in head.split("|")]
            parts = words.split()
            out.append(
                Rule(
                    tuple(names.split()),
                    tuple([tuple(w.split("/")) for w in parts if w[0] != "!"]),
                    tuple([w[1:] for w in parts if w[0] == "!"]),
                    _KINDS[feature[0]],
                    feature[2:],
                    _gate(gate),
                )
            )
    return out


@kept
def _plain_rules(own: bool, name: str) -> list[tuple[Any, ...]]:
    """The lines for an instruction as plain tuples; ``own``: about itself, else about its modifiers."""
    rules = _rules(gates.OWN if own else gates.OTHER)
    return [(*rule[:-1], (*rule.gate,)) for rule in rules if _is_for(rule, name)]


def _closed(own: bool, name: str, target: Target) -> list[Rule]:
    """The lines for an instruction whose gates are closed."""
    found = [Rule(*[*rule[:-1], Gate(*rule[-1])]) for rule in _plain_rules(own, name)]
    return [rule for rule in found if target.closed(rule.gate)]


def _early() -> dict[str, list[tuple[str, str, str]]]:
    """Word -> kind, text of the feature, text of the gate."""
    out: dict[str, list[tuple[str, str, str]]] = {}
    for line in gates.EARLY.splitlines():
        if line:
            words, feature, gate = [column.strip() for column in line.split("|")]
            for word in words.split():
                out.setdefault(word, []).append((_KINDS[feature[0]], feature[2:].replace("{mod}", word), gate))
    return out


_EARLY: dict[str, list[tuple[str, str, str]]] = {}  # filled when first needed


def _is_for(rule: Rule, name: str) -> bool:
    taken = False
    for n in rule.names:
        if n[0] == "!":
            if _covers(n[1:], name):
                return False
        else:
            taken = taken or _covers(n, name)
    return taken


def _covers(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern[-1] == "*" else name == pattern


class Gates:
    """The gates under one version and target."""

    __slots__ = ("_early", "_rules", "target", "words")

    def __init__(self, target: Target) -> None:
        self.target = target
        self.words = vocabulary(target.release.newest, target.release.name == DEFAULT)
        self._rules: dict[str, tuple[list[Rule], list[Rule]]] = {}
        self._early: dict[str, list[str]] = {}

    def early(self, word: str) -> list[str]:
        """Messages about a modifier as it is read."""
        found = self._early.get(word)
        if found is None:
            if not _EARLY:
                _EARLY.update(_early())
            found = [
                text
                for kind, quoted, gate in _EARLY.get(word, ())
                for text in self.target.refuses(_gate(gate), kind, quoted)
            ]
            self._early[word] = found
        return found

    def named_early(self, part: str) -> list[str]:
        """Messages about a part of an instruction's name as it is read."""
        return self.early(part) if part in gates.NAMED_EARLY else []

    def _closed(self, name: str) -> tuple[list[Rule], list[Rule]]:
        found = self._rules.get(name)
        if found is None:
            found = self._rules[name] = _closed(True, name, self.target), _closed(False, name, self.target)
        return found

    def refusals(
        self, row: Row, mods: tuple[str, ...], types: tuple[str, ...], kinds: tuple[str, ...]
    ) -> tuple[list[str], list[str]]:
        """Messages about the instruction itself, and about its modifiers and the spaces of its addresses."""
        target = self.target
        own, other = self._closed(row.name)
        named: list[str] = []
        worded: list[str] = []
        version = number = 0
        listed = False
        if own or other:
            words = _words(row, mods, types, kinds)
            for lines, out in ((own, named), (other, worded)):
                for rule in lines:
                    found = rule.holds(words)
                    if found is None:
                        continue
                    if rule.gate.version > self.words.newest:
                        version = max(version, rule.gate.version)
                        if rule.quoted in _OLDER:
                            out.append(_OLDER[rule.quoted])
                        continue
                    kind, quoted = rule.kind, rule.quoted
                    if quoted in _NARROW and found != "ue8m0x2" and target.since("13.5"):
                        kind, quoted = "Feature", "cvt.{types}"
                    out.extend(target.refuses(rule.gate, kind, _text(quoted, row, mods, types, found)))
                    version = max(version, rule.gate.version)
                    number = max(number, rule.gate.target)
                    listed = listed or bool(rule.gate.only and not target.has(rule.gate.only))
        for gate in (row.gate, *[g for m, g in row.modifier_gates if m in mods]):
            if target.closed(gate):
                left = gate._replace(
                    version=gate.version if gate.version > version else 0,
                    target=gate.target if gate.target > number else 0,
                    only=() if listed else gate.only,
                )
                worded.extend(target.refuses(left, "Feature", rules.feature(row.name, mods)))
        return named, worded


#: What a release says of words that it knows in a meaning that it does not (measured with ptxas 13.0). Of forms that
#: are rows of their own the rows that are left say it.
_OLDER: Final = {
    "cp.async.bulk.weak": "Illegal modifier '.weak' for instruction 'cp.async.bulk'",
    "ld/st with .local.volatile": "Modifier '.volatile' cannot be applied to '.local' space",
    "mma with .scale_vec::4X and .ue8m0 scale type": (
        "Illegal modifier '.scale_vec::4X' for instruction 'mma' with type '.ue8m0'"
    ),
}


#: What 13.5 calls by its types.
_NARROW: Final = frozenset(("cvt with .e4m3x2/.e5m2x2", "cvt with .e2m3x2/.e3m2x2", "cvt with .{mod}"))


def _words(row: Row, mods: tuple[str, ...], types: tuple[str, ...], kinds: tuple[str, ...]) -> frozenset[str]:
    """The words that lines of the table ask for."""
    words = {*mods, *types, f"<{'.'.join(types)}>", f"<{len(kinds)}>", *textures.gate_words(row.name, kinds)}
    if (
        not any(m in rules.SPACES for m in mods)
        and row.name != "fence.proxy"
        and any(o.role == "m" for o in row.operands)
    ):
        words.add("<generic>")
    if "r:pred" in kinds or "n" in kinds:
        words.add("<guard>")
    if "i" in kinds[1:] and kinds[-1] == "i" and "r:pred" in kinds:
        words.add("<scale>")
    vector = next((int(m[1:]) for m in mods if m in rules.VECTORS), 0)
    if vector and types and types[0] != "b128" and vector * compat.bit_size(types[0]) > 128:
        words.add("<wide>")
    return frozenset(words)


def _text(quoted: str, row: Row, mods: tuple[str, ...], types: tuple[str, ...], found: str) -> str:
    if "{" not in quoted:
        return quoted
    if "{atomic}" in quoted:
        operation = next((m for m in mods if m in rules.POST), "")
        space = next((m for m in mods if m in rules.SPACES), "")
        where = f".{space}" if space else " with generic state space"
        return f"{row.name}.{operation}.{types[0] if types else ''}{where}"
    shown = found.split("::")[-1] if found.startswith("L1::") and found != "L1::32B" else found
    return quoted.replace("{name}", row.name).replace("{mod}", shown).replace("{types}", ".".join(types))
