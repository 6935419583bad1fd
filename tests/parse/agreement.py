"""Compares our front end with ptxas's, case by case: accepted or refused, line and class of the first message.

    python -m tests.parse.agreement [--count N] [--seed S] [--targets sm_80,sm_90a] [--show K] [--accept]

Both sides read the same kernels, one instruction a line.  A fatal message hides what follows, so the line is taken
out and the rest is run again.  The class of a message is its text with quoted names and numbers blanked.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

from stages.parse import parse_text
from tests.oracle import find
from tests.parse.generate import TARGETS, Case, accepted, kernel, mutated, old_cases
from tests.parse.module_cases import CASES

_LINE = re.compile(r"ptxas (?:.*, line (\d+); )?(\w+)\s*: (.*)")
Messages = list[tuple[str, str]]
RELEASE = "13.0"  # of the ptxas to compare with, and which orias replaces


def message_class(text: str) -> str:
    """The kind of a message: names and numbers blanked, gates reduced to version or target."""
    if "requires PTX ISA .version" in text:
        return "gate: version"
    if (
        "requires .target" in text
        or "not supported on .target" in text
        or "cannot be compiled for architecture" in text
    ):
        return "gate: target"
    text = re.sub(r"'[^']*'", "'*'", text)
    return re.sub(r"\d+", "N", text)


def oracle(lines: list[str], version: str, target: str, known: bool = False) -> list[Messages]:
    """ptxas's messages for each line."""
    arch = target.replace("sm_", "compute_")
    number = int(re.sub(r"\D", "", target))
    if number < 75 or number in (82,):
        arch = "compute_75" if number < 75 else "compute_86"
    return judge(lines, lambda part: kernel(part, version, target), lambda text: _ptxas(text, arch), known)


def ours(lines: list[str], version: str, target: str, known: bool = False) -> list[Messages]:
    """Our messages for each line."""
    number = int(re.sub(r"\D", "", target))
    arch = target if number >= 75 else "sm_75"

    def run(text: str) -> list[tuple[int, str, str]]:
        _, _, diagnostics = parse_text(text, "k.ptx", arch, release=RELEASE)
        return [(d.line, d.severity, d.message) for d in diagnostics]

    return judge(lines, lambda part: kernel(part, version, target), run, known)


def _tool() -> str:
    tool = find("ptxas" if RELEASE == "13.0" else f"ptxas-{RELEASE}")
    if tool is None:
        raise SystemExit("ptxas is not installed")
    return str(tool)


def _ptxas(text: str, arch: str) -> list[tuple[int, str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.ptx"
        path.write_bytes(text.encode("latin-1"))
        done = subprocess.run([_tool(), "-arch", arch, str(path)], capture_output=True, text=True, check=False)
    out = []
    for line in done.stderr.splitlines():
        m = _LINE.match(line)
        if m and "aborted due to errors" not in line:
            out.append((int(m.group(1) or 0), m.group(2), m.group(3)))
    if done.returncode not in (0, 255):
        out.append((-1, "crash", str(done.returncode)))
    return out


def judge(
    lines: list[str],
    module: Callable[[list[str]], tuple[str, int]],
    front: Callable[[str], list[tuple[int, str, str]]],
    known: bool = False,
) -> list[Messages]:
    """A front end's messages for each line of a module (made with the number of lines before the first).

    With `known` every name is declared, so that nothing is delayed to the end of the function: the lines before a
    fatal message have their messages.
    """
    out: list[Messages] = [[] for _ in lines]
    active = list(range(len(lines)))
    while active:
        text, before = module([lines[i] for i in active])
        found = front(text)
        # A fatal message at no case's line comes from text that ptxas substitutes for an instruction (mma.m8n8k4):
        # it is searched for like a crash.
        stray = any(sev == "fatal" and not 0 < line - before <= len(active) for line, sev, _ in found)
        if stray or any(sev == "crash" for _, sev, _ in found):
            if len(active) == 1:
                out[active[0]] = [("crash", "crash")]
                break
            half = len(active) // 2
            for part in (active[:half], active[half:]):
                for i, got in zip(part, judge([lines[i] for i in part], module, front, known), strict=True):
                    out[i] = got
            break
        per: dict[int, Messages] = defaultdict(list)
        fatal = None
        for line, severity, message in found:
            k = line - before - 1
            per[k].append((severity, message))
            if severity == "fatal":
                fatal = k
        if fatal is not None:
            if known:
                for k, i in enumerate(active[:fatal]):
                    out[i] = per.get(k, [])
                out[active[fatal]] = per[fatal]
                active = active[fatal + 1 :]
                continue
            out[active[fatal]] = [m for m in per[fatal] if m[0] == "fatal"]
            active.pop(fatal)
            continue
        for k, i in enumerate(active):
            out[i] = per.get(k, [])
        break
    return out


def refused(messages: Messages) -> bool:
    """True if a message is an error."""
    return any(severity in ("error", "fatal", "crash") for severity, _ in messages)


def compare(cases: list[Case], show: int = 0) -> dict[str, int]:
    """Runs both sides; returns counts and prints disagreements."""
    groups: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        groups[(case.version, case.target)].append(case)
    counts: Counter[str] = Counter()
    wrong: dict[str, list[str]] = defaultdict(list)
    for (version, target), group in sorted(groups.items()):
        for start in range(0, len(group), 4000):
            part = group[start : start + 4000]
            lines = [c.text for c in part]
            for case, a, b in zip(part, oracle(lines, version, target), ours(lines, version, target), strict=True):
                _count(case, a, b, counts, wrong)
    for key in sorted(wrong, key=lambda k: -len(wrong[k])):
        print(f"{len(wrong[key]):6} {key}")
        for text in wrong[key][:show]:
            print("         ", text)
    return counts


def _first(messages: Messages) -> str:
    return next((m for s, m in messages if s in ("error", "fatal", "crash")), "")


def _count(case: Case, a: Messages, b: Messages, counts: Counter[str], wrong: dict[str, list[str]]) -> None:
    counts["cases"] += 1
    if any(s == "crash" for s, _ in a):
        counts["oracle crashed"] += 1
        return
    where = f"[{case.version} {case.target} {case.row} {case.kind}] {case.text}"
    if refused(a) != refused(b):
        counts["verdict differs"] += 1
        side = "refused by ptxas only" if refused(a) else "refused by us only"
        wrong[f"{side}: {case.row.split('#')[0]}: {message_class(_first(a) or _first(b))}"].append(
            f"{where}  {_first(a) or _first(b)}"
        )
        return
    counts["verdict equal"] += 1
    if refused(a):
        counts["refused by both"] += 1
        if _first(a) == _first(b):
            counts["first text equal"] += 1
        if message_class(_first(a)) == message_class(_first(b)):
            counts["first class equal"] += 1
        else:
            wrong[f"class: {message_class(_first(a))}  <>  {message_class(_first(b))}"].append(
                f"{where}  {_first(a)}  <> {_first(b)}"
            )


def compare_modules(show: bool) -> tuple[int, int, int]:
    """Whole modules: how many, how many verdicts are equal, how many have all messages equal in text, line and
    order."""
    cases = equal = same = 0
    for name, text in CASES.items():
        theirs = [m for m in _ptxas(text, "compute_90")]
        _, _, diagnostics = parse_text(text, "k.ptx", "compute_90", release=RELEASE)
        mine = [(d.line, d.severity, d.message.replace("'k.ptx'", "'*'")) for d in diagnostics]
        theirs = [(line, severity, re.sub(r"'/[^']*\.ptx'", "'*'", message)) for line, severity, message in theirs]
        cases += 1
        if refused([m[1:] for m in theirs]) != refused([m[1:] for m in mine]):
            if show:
                print(f"module {name}: ptxas {theirs[:2]}, ours {mine[:2]}")
            continue
        equal += 1
        same += theirs == mine
        if show and theirs != mine:
            print(f"module {name}: messages differ: ptxas {theirs[:3]}, ours {mine[:3]}")
    return cases, equal, same


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=4000, help="mutated cases per target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--show", type=int, default=2, help="examples per disagreement")
    parser.add_argument("--accept", action="store_true", help="only the cases made to be accepted")
    parser.add_argument("--modules", action="store_true", help="only the whole modules of module_cases")
    parser.add_argument("--release", default="13.0", help="the ptxas to be compared with: 13.0 or 13.5")
    args = parser.parse_args()
    global RELEASE
    RELEASE = args.release
    modules, equal, same = compare_modules(True)
    print(f"modules: {modules}, verdicts equal {equal}, all messages equal {same}")
    if args.modules:
        return
    total: Counter[str] = Counter()
    if not args.accept:
        total.update(compare(list(old_cases()), args.show))
        print("old versions and targets", dict(total))
    for target in args.targets.split(","):
        cases = list(accepted(target))
        if not args.accept:
            cases += list(mutated(target, args.seed, args.count))
        counts = compare(cases, args.show)
        total.update(counts)
        print(target, dict(counts))
    n = total["cases"] - total["oracle crashed"]
    print(f"verdicts equal: {total['verdict equal']} of {n} = {100 * total['verdict equal'] / n:.2f} %")
    both = max(1, total["refused by both"])
    print(
        f"refused by both: {both}; class of the first message equal {100 * total['first class equal'] / both:.2f} %, "
        f"text equal {100 * total['first text equal'] / both:.2f} %"
    )


if __name__ == "__main__":
    main()
