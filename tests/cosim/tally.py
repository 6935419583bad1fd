"""Counts of the one-instruction sweep: what was seen, and the estimate for all forms.

Rows of the descriptor table with more forms than were run are sampled. The forms drawn with equal chances represent the
rest of such a row: drawn from all its combinations, or from those that a screen left (`tests.cosim.forms.screen`).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.cosim.forms import SCREENED

#: Outcomes that are not compared, as words in a count's name.
_OUTSIDE = "outside"
#: Two-sided 95 %.
_Z = 1.96


def lower_bound(equal: float, total: float) -> float:
    """The least share that an observed one is compatible with (Wilson, 95 %)."""
    if not total:
        return 0.0
    p = equal / total
    middle = p + _Z * _Z / (2 * total)
    spread = _Z * math.sqrt(p * (1 - p) / total + _Z * _Z / (4 * total * total))
    return (middle - spread) / (1 + _Z * _Z / total)


@dataclass(slots=True)
class RowTally:
    """One row: all its forms, the outcomes of those looked at, and of those among them that were drawn with equal
    chances."""

    population: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    drawn: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: str, drawn: bool, n: int = 1) -> None:
        """Count an outcome; every form also counts as "looked at"."""
        self.seen[outcome] += n
        if drawn:
            self.drawn[outcome] += n

    def rest(self) -> float:
        """How many other forms of the row each drawn one represents."""
        unseen = self.population - self.seen["looked at"]
        if unseen <= 0:
            return 0.0
        return unseen / (self.drawn["looked at"] or self.seen["looked at"])

    def basis(self) -> Counter[str]:
        """The outcomes that represent the forms not looked at."""
        return self.drawn if self.drawn["looked at"] else self.seen


@dataclass(slots=True)
class Estimate:
    """The estimate for all forms of a target: numbers of forms, estimated for sampled rows."""

    compared: float = 0.0
    equal: float = 0.0
    modelled: float = 0.0
    least: float = 0.0  # equal, if the sampled rows are as bad as the sample allows
    rows: int = 0  # that were sampled

    @property
    def shares(self) -> tuple[float, float, float]:
        """Equal, equal or as modelled, least equal: in percent."""
        total = max(self.compared, 1.0)
        return 100 * self.equal / total, 100 * (self.equal + self.modelled) / total, 100 * self.least / total


_COUNTERS = ("counts", "refused", "ptxas_refuses", "by_name", "known", "apart", "unmade", "left")


@dataclass(slots=True)
class Tally:
    """Everything that a sweep counts; tallies of disjoint parts can be added."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    ptxas_refuses: Counter[str] = field(default_factory=Counter)
    by_name: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    #: Forms that the manual does not have, by what ptxas makes of them.
    apart: Counter[str] = field(default_factory=Counter)
    #: Rows without a kernel.
    unmade: Counter[str] = field(default_factory=Counter)
    #: Families left for later.
    left: Counter[str] = field(default_factory=Counter)
    rows: dict[str, RowTally] = field(default_factory=dict)
    seconds: float = 0.0

    def row(self, key: str, population: int) -> RowTally:
        """The row's part."""
        found = self.rows.setdefault(key, RowTally())
        found.population = max(found.population, population)
        return found

    def add(self, other: Tally) -> None:
        """Add the counts of another part."""
        for name in _COUNTERS:
            getattr(self, name).update(getattr(other, name))
        for key, part in other.rows.items():
            mine = self.row(key, part.population)
            mine.seen.update(part.seen)
            mine.drawn.update(part.drawn)
        self.seconds += other.seconds

    def as_json(self) -> dict[str, Any]:
        """For a journal."""
        rows = {key: [r.population, dict(r.seen), dict(r.drawn)] for key, r in sorted(self.rows.items())}
        return {
            **{name: dict(getattr(self, name)) for name in _COUNTERS if getattr(self, name)},
            "rows": rows,
            "seconds": round(self.seconds, 2),
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> Tally:
        """The inverse of `as_json`."""
        out = Tally()
        for name in _COUNTERS:
            getattr(out, name).update(data.get(name, {}))
        out.rows = {key: RowTally(n, Counter(seen), Counter(drawn)) for key, (n, seen, drawn) in data["rows"].items()}
        out.seconds = data["seconds"]
        return out

    def estimate(self, who: str) -> Estimate:
        """Each row's outcomes, weighted by the number of its forms that exist."""
        out = Estimate()
        for key, row in self.rows.items():
            compared = _compared(row.seen, who)
            equal = row.seen[f"{who} equal"]
            out.compared += compared
            out.equal += equal
            out.modelled += row.seen[f"{who} as modelled"]
            out.least += equal
            factor = (
                0.0 if key + SCREENED in self.rows else row.rest()
            )  # the sample from the screen's rest represents it
            if factor:
                out.rows += 1
                basis = row.basis()
                n, e = _compared(basis, who), basis[f"{who} equal"]
                out.compared += factor * n
                out.equal += factor * e
                out.modelled += factor * basis[f"{who} as modelled"]
                out.least += factor * n * lower_bound(e, n)
        return out

    def lines(self, target: str, whose: tuple[str, ...]) -> Iterator[str]:
        """The table. Shares are of the forms that the manual has."""
        made = sum([r.seen["made"] for r in self.rows.values()])
        yield (
            f"\n{target}: {self.counts['ptxas takes']} forms that ptxas takes, of {made} made, "
            f"{len(self.by_name)} mnemonics, {self.seconds:.0f} s"
        )
        for who in whose:
            mine = {
                k.removeprefix(who + " "): v
                for k, v in sorted(self.counts.items())
                if k.startswith(who + " ") and k != "ptxas takes"
            }
            total = _compared(self.counts, who)
            share = 100 / max(total, 1)
            equal, modelled = mine.get("equal", 0), mine.get("as modelled", 0)
            yield f"  {who}: " + ", ".join([f"{k} {v}" for k, v in mine.items()])
            yield (
                f"  {who}: of {total} in the manual {share * equal:.2f} % equal, "
                f"{share * (equal + modelled):.2f} % with those that the models of ptxas predict"
            )
            e = self.estimate(who)
            if e.rows:
                shares = (
                    "{:.3f} % equal, {:.3f} % with those that the models predict, at least {:.3f} % equal (95 %)"
                ).format(*e.shares)
                yield f"  {who}: of all forms, about {e.compared:.0f} ({e.rows} rows drawn from): {shares}"
        for title, counter in (("as modelled", self.known), ("outside the manual", self.apart)):
            for why, n in sorted(counter.items()):
                yield f"    {title} {n:5} {why}"
        for why, n in self.refused.most_common(40):
            yield f"    refused {n:5} {why}"
        for title, counter in (("apart", self.left), ("no kernel made", self.unmade)):
            for why, n in sorted(counter.items()):
                yield f"    {title} {n:5} {why}"
        missing = sorted(
            {key.split("#")[0].split(".")[0] for key, r in self.rows.items() if r.seen["made"]}
            - set(self.by_name)
            - {"more"}
        )
        if missing and "ptxas" in whose:
            yield "    mnemonics of which ptxas took no form: " + " ".join(missing)


def _compared(counts: Counter[str], who: str) -> int:
    """Forms that the manual has."""
    return sum(
        [
            v
            for k, v in counts.items()
            if k.startswith(who + " ") and k != "ptxas takes" and not k.startswith(f"{who} {_OUTSIDE}")
        ]
    )


def journal(paths: list[str]) -> dict[str, tuple[int, Tally]]:
    """For each key of journals (a target, or a run of one part): its progress, and its tally."""
    out: dict[str, tuple[int, Tally]] = {}
    for path in paths:
        with open(path) as lines:
            for line in lines:
                entry = json.loads(line)
                _, tally = out.setdefault(entry["run"], (0, Tally()))
                tally.add(Tally.from_json(entry))
                out[entry["run"]] = (entry["end"], tally)
    return out
