"""Compares the gates of the descriptor table with those that ptxas reports.

    python -m tests.parse.gates [--show K]

Every case that ptxas takes at PTX 9.0 on some target is run again under an old `.version` (on that target) and under an
old `.target` (at 9.0); the highest version and target that it then asks for are compared with the table's.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict

from stages.parse import table
from stages.parse.rules import EARLY_GATES, MODIFIER_GATES, TYPES
from stages.parse.table import Row
from tests.parse.agreement import Messages, _ptxas, _run, oracle, refused
from tests.parse.generate import accepted

TARGETS = ("sm_100a", "sm_120a", "sm_90a", "sm_103a", "sm_80", "sm_75")
_VERSION = re.compile(r"requires PTX ISA \.version (\d+)\.(\d+)")
_TARGET = re.compile(r"requires \.target sm_(\d+)")
_Key = tuple[str, str]


def _runnable() -> dict[_Key, str]:
    """Cases with the first target that takes them."""
    waiting: dict[_Key, None] = {}
    for target in TARGETS:
        waiting.update(dict.fromkeys((c.row, c.text) for c in accepted(target, 6)))
    found: dict[_Key, str] = {}
    for target in TARGETS:
        keys = [k for k in waiting if k not in found]
        for start in range(0, len(keys), 4000):
            part = keys[start : start + 4000]
            for key, messages in zip(part, oracle([k[1] for k in part], "9.0", target), strict=True):
                if not refused(messages):
                    found[key] = target
    return found


def _old(lines: list[str], version: str, target: str, arch: str) -> list[Messages]:
    return _run(lines, version, target, lambda text: [m for m in _ptxas(text, arch) if "does not support .target" not in m[2]])


def measured(keys: list[_Key], target: str) -> list[tuple[int, int, bool]]:
    """Version (times ten), target, and whether only some targets have it, by ptxas's messages; 20 stands for 20 or less."""
    lines = [k[1] for k in keys]
    arch = target.replace("sm_", "compute_")
    runs = [
        _old(lines, "4.2", target, arch), _old(lines, "2.0", target, arch),
        _old(lines, "9.0", "sm_60", "compute_100a"), _old(lines, "9.0", "sm_20", "compute_100a"),
    ]  # fmt: skip
    out = []
    for messages in zip(*runs, strict=True):
        texts = [m for part in messages for _, m in part]
        version = max([int(a) * 10 + int(b) for t in texts for a, b in _VERSION.findall(t)], default=20)
        number = max([int(n) for t in texts for n in _TARGET.findall(t)], default=20)
        only = any("not supported on .target" in t and "without" not in t for t in texts)
        out.append((max(version, 20), max(number, 20), only))
    return out


def expected(row: Row, text: str) -> tuple[int, int, bool]:
    """The same by the tables."""
    parts = text.split()[0].rstrip(";").split(".")
    n = table.split_name(parts)
    mods = parts[n:]
    gates = [row.gate, *table.combination_gates(row.name, frozenset(mods))]
    gates += [g for m in mods for g in (MODIFIER_GATES.get(m), EARLY_GATES.get(m)) if g is not None]
    gates += [g for m, g in row.modifier_gates if m in mods]
    if row.name == "cp.async" and "shared::cta" in mods:
        gates.remove(MODIFIER_GATES["shared::cta"])
    if row.name in ("ld", "st") and _bits(mods) > 128:
        gates.append(table.Gate(88, 100))
    return max(20, *(g.version for g in gates)), max(20, *(g.target for g in gates)), any(g.only for g in gates)


def _bits(mods: list[str]) -> int:
    vector = next((int(m[1:]) for m in mods if m in ("v2", "v4", "v8")), 1)
    type_ = next((m for m in mods if m in TYPES), "b8")
    digits = re.sub(r"\D", "", type_)
    return vector * int(digits or 0)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", type=int, default=3)
    args = parser.parse_args()
    rows = {row.key: row for name in table.names() for row in table.rows(name)}
    by_target: dict[str, list[_Key]] = defaultdict(list)
    for key, target in _runnable().items():
        if ".b128" not in key[1]:  # an old version cannot declare the registers
            by_target[target].append(key)
    wrong: dict[str, list[str]] = defaultdict(list)
    total = 0
    for target, keys in by_target.items():
        for start in range(0, len(keys), 3000):
            part = keys[start : start + 3000]
            for (name, text), got in zip(part, measured(part, target), strict=True):
                want = expected(rows[name], text)
                total += 1
                if want[2] or got[2]:  # a list of targets stands for a minimum
                    want, got = (want[0], 0, want[2]), (got[0], 0, got[2])
                if want != got:
                    wrong[name].append(f"table {want} ptxas {got}: {text[:100]}")
    for name in sorted(wrong):
        print(name, len(wrong[name]))
        for line in wrong[name][: args.show]:
            print("    ", line)
    bad = sum(map(len, wrong.values()))
    print(f"{total} forms, gates equal {total - bad} = {100 * (total - bad) / total:.2f} %")


if __name__ == "__main__":
    main()
