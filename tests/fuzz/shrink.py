"""Shrink a wrong program: drop lines while it stays wrong in the same way."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

from tests.fuzz.judge import Fault, Launch, ParseError, Program, check


def still(launch: Launch, fault: Fault) -> Callable[[list[str]], bool]:
    """Whether lines of a module still have the fault (and nothing undefined)."""

    def test(lines: list[str]) -> bool:
        if fault.kind in ("value", "run") and not settled(lines):
            return False
        try:
            program = Program("\n".join(lines) + "\n", launch)
        except ParseError:
            return False
        kernels = [fault.kernel] if fault.kernel else []
        if any(k not in program.kernels for k in kernels):
            return False
        shifted = Launch(launch.grid, launch.block, launch.arguments, launch.seed + fault.data)
        program.launch = shifted
        found = check(program, fault.way, kernels)
        if fault.kind in ("refused", "fault"):
            return bool(found) and found[0].kind == fault.kind and _gist(found[0].what) == _gist(fault.what)
        return bool(found) and found[0].kind == fault.kind and not program.defined(fault.kernel)

    return test


_REGISTER = re.compile(r"%[a-z]+\d*(?!\w)(?!\.)")
_NO_RESULT = ("st.", "red.", "bra", "bar.sync", "bar.warp", "call", "brx", "exit", "ret", "membar", "fence")


def settled(lines: list[str]) -> bool:
    """Whether every register gets a value before it is read, on every path: random programs obey this rule, so shrunk
    ones should too."""
    return not any(_unset(part) for part in _functions(lines))


def _functions(lines: list[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for line in lines:
        if line.startswith((".visible", ".func", ".entry")):
            yield part
            part = []
        part.append(line)
    yield part


def _unset(lines: list[str]) -> str:
    """A line that reads a register which a path to it leaves without a value, or ''. Definitions under a guard count:
    random programs write a register that has no value under both guards."""
    tables = {
        name: targets.replace(",", " ").split()
        for name, mark, targets in (line.rstrip(";").partition(": .branchtargets ") for line in lines)
        if mark
    }
    at_label: dict[str, set[str]] = {}
    changed = True
    found = ""

    def jump(label: str, known: set[str]) -> None:
        nonlocal changed
        before = at_label.get(label)
        if before is None or not before <= known:
            at_label[label] = known.copy() if before is None else before & known
            changed = True

    while changed:
        changed = False
        found = ""
        known: set[str] | None = {"%laneid"}
        for line in lines:
            label = line.partition(":")[0]
            if line.endswith(":"):
                if known is not None:
                    jump(label, known)
                known = at_label[label].copy() if label in at_label else None
            if known is None or line.endswith(":") or line.startswith((".", "//", "{", "}")) or label in tables:
                continue
            for part in line.split(";"):
                guard, op, head, rest = _parts(part)
                reads = {r for text in (guard, rest) for r in _REGISTER.findall(text)}
                if not reads <= known and not found:
                    found = line
                for to in tables.get(rest.split()[-1], ()) if op == "brx.idx" else (rest.strip(),) * (op == "bra"):
                    jump(to, known)
                if not guard and op in ("bra", "brx.idx", "ret", "exit"):
                    known = None
                    break
                known.update(_REGISTER.findall(head))
    return found


def _parts(part: str) -> tuple[str, str, str, str]:
    """Guard, operation, results and operands of an instruction."""
    text = part.strip()
    guard = ""
    if text.startswith("@"):
        guard, _, text = text.partition(" ")
    op, _, rest = text.partition(" ")
    head = ""
    if not op.startswith(_NO_RESULT):
        cut = rest.find("}") + 1 if rest.startswith("{") else rest.find(",")
        head, rest = rest[:cut], rest[cut:]
    return guard, op, head, rest


_ADDRESS = re.compile(r"mov\.u\d+ (%\w+), (?!%)[a-zA-Z]\w*;")


def _bases(lines: list[str]) -> frozenset[str]:
    """The lines that compute an address of a variable and add something to it. Without them a program would read or
    store values that differ between compilers."""
    found = set()
    known = ""
    for line in lines:
        made = _ADDRESS.match(line)
        if made:
            known = made[1]
        if made or (known and line.endswith(f"{known};") and line.startswith(("add.", "mad."))):
            found.add(line)
    return frozenset(found)


def _gist(message: str) -> str:
    """A message without file names and numbers."""
    return re.sub(r"\S*/\S*|\d+", "", message)


def _kernels_dropped(lines: list[str], test: Callable[[list[str]], bool]) -> list[str]:
    """Whole functions first: from a line with an entry or function to its closing brace."""
    starts = [n for n, line in enumerate(lines) if line.startswith((".visible", ".func", ".entry"))]
    for start in reversed(starts):
        end = next(
            n
            for n in range(start, len(lines))
            if lines[n] == "}" and (n + 1 == len(lines) or lines[n + 1].startswith((".", "//")))
        )
        rest = lines[:start] + lines[end + 1 :]
        if test(rest):
            lines = rest
    return lines


def shrink(text: str, launch: Launch, fault: Fault, seconds: float = 300.0) -> str:
    """The smallest text found in the time, '' if the fault does not recur."""
    test = still(launch, fault)
    lines = [line for line in text.split("\n") if line.strip()]
    if not test(lines):
        return ""
    end = time.monotonic() + seconds
    lines = _kernels_dropped(lines, test)
    kept = _bases(lines) if fault.kind in ("value", "run") else frozenset()
    changed = True
    while changed and time.monotonic() < end:
        before = len(lines)
        lines = _halves(lines, kept, test, end)
        lines = _simpler(lines, test, end)
        changed = len(lines) < before
    return "\n".join(lines) + "\n"


def _halves(lines: list[str], kept: frozenset[str], test: Callable[[list[str]], bool], end: float) -> list[str]:
    """Drop runs of lines, long ones first, from the end (where nothing depends on them)."""
    size = max(1, len(lines) // 3)
    while True:
        at = len(lines) - size
        while at > -size and time.monotonic() < end:
            low = max(at, 0)
            rest = lines[:low] + [x for x in lines[low : at + size] if x in kept] + lines[at + size :]
            if len(rest) < len(lines) and test(rest):
                lines = rest
            at -= size
        if size == 1 or time.monotonic() >= end:
            return lines
        size = max(1, size // 2)


def _simpler(lines: list[str], test: Callable[[list[str]], bool], end: float) -> list[str]:
    """Remove guards, make branches unconditional or remove them, remove the braces of calls with their contents."""
    for n in range(len(lines) - 1, -1, -1):
        if time.monotonic() >= end:
            break
        if n >= len(lines):
            continue
        line = lines[n]
        if line.startswith("@"):
            bare = line.split(" ", 1)[1]
            if test([*lines[:n], bare, *lines[n + 1 :]]):
                lines = [*lines[:n], bare, *lines[n + 1 :]]
        elif line == "}" and n + 1 < len(lines):
            depth, start = 1, n
            while depth and start:
                start -= 1
                depth += lines[start].count("}") == 1 and lines[start] == "}"
                depth -= lines[start] == "{"
            rest = lines[:start] + lines[n + 1 :]
            if test(rest):
                lines = rest
    return lines
