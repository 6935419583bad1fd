"""One-instruction kernels: every form of the descriptor table that ptxas accepts, run by the PTX interpreter, and by
the simulator in cubins of ptxas and ours, on edge cases and random values.

    python -m tests.cosim.one_op [--arch 80 --arch 90 ...] [--only NAME] [--limit N] [--skip N] [--seed N] [--who ptxas
    --who ours] [--report FILE] [--journal FILE]
        [--screen FILE]
    python -m tests.cosim.one_op --sum JOURNAL [--sum JOURNAL ...]

ptxas decides which forms exist, the manual which of them are compared. Prints each form that differs or is refused on
one line, then a table for each target: how many are equal to the manual, how many a stated model of ptxas predicts
(`forms/quirks.py`), how many are neither.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests import oracle
from tests.cosim.forms import Corpus, Item, make, quirks, screen
from tests.cosim.forms.base import Form, kernel_text, module_text
from tests.cosim.forms.exceptions import cause, outside
from tests.cosim.forms.quirks import Given, Outputs
from tests.cosim.forms.values import inputs, memory, wrong
from tests.cosim.tally import Tally, journal

CHUNK = 60
#: Rows with more forms have a screen.
GREAT = 2400
#: Runs a form's cubin on given input.
Execute = Callable[[Given], Outputs]
#: Most forms in one ptxas call.
MOST = 600
TARGETS = ("80", "90", "120a")
_LINE = re.compile(r"line (\d+); (?:error|fatal) *: (.*)")
#: Steps that a kernel of one instruction may take.
LIMIT = 400_000


def buffers(form: Form, seed: int) -> Given:
    """Inputs of a form."""
    rng = np.random.default_rng([seed, sum(form.text.encode())])
    data = inputs(form, rng)
    third = memory(form, data, rng) if form.memory else np.zeros(form.count * 64, np.uint8)
    return data, third, bytes(rng.integers(0, 256, 64, dtype=np.uint8))


def run_interpreter(module: Any, entry: str, form: Form, given: Given) -> Outputs:
    """Results and the third buffer afterwards."""
    data, third, blob = given
    out = np.full((form.count, max(len(form.dests), 1)), 0xA5A5A5A5A5A5A5A5, np.uint64)
    third = third.copy()
    args = [data.copy(), out, third, *([blob] if form.blob else [])]
    module.launch(entry, (form.blocks, 1, 1), (form.threads, 1, 1), args, limit=LIMIT)
    return out, third


def run_cubin(device: Any, entry: str, form: Form, given: Given, **options: Any) -> Outputs:
    """The same by the simulator."""
    data, third, blob = given
    out = np.full((form.count, max(len(form.dests), 1)), 0xA5A5A5A5A5A5A5A5, np.uint64)
    third = third.copy()
    device.launch(
        entry,
        form.blocks,
        form.threads,
        [data.copy(), out, third, *([blob] if form.blob else [])],
        limit=LIMIT,
        **options,
    )
    return out, third


def ptxas_takes(forms: list[Form], target: str, refusals: Counter[str] | None = None) -> list[tuple[list[Form], Path]]:
    """The forms that ptxas compiles, and the files of their cubins: one, unless ptxas crashes on kernels together that
    it compiles separately.

    Forms that it refuses are counted with the message.
    """
    while forms:
        got = oracle.compile_ptx(module_text(forms, target), target)
        if not isinstance(got, oracle.ToolError):
            return [(forms, got)]
        starts = []
        line = 4
        for k, f in enumerate(forms):
            starts.append(line)
            line += kernel_text(f, k).count("\n") + 1
        bad: dict[int, str] = {}
        for m in _LINE.finditer(got.stderr):
            k = int(np.searchsorted(starts, int(m.group(1)), "right")) - 1
            bad.setdefault(max(k, 0), m.group(2))
        if not bad:
            if len(forms) > 1:  # an error without a line
                half = len(forms) // 2
                apart = ptxas_takes(forms[:half], target, refusals) + ptxas_takes(forms[half:], target, refusals)
                left = [f for part, _ in apart for f in part]
                if len(left) == len(forms):
                    return apart
                forms = left
                continue
            bad[0] = got.stderr.strip().splitlines()[0] if got.stderr.strip() else "?"
        if refusals is not None:
            for k, message in bad.items():
                refusals[f"{forms[k].row}: {message}"] += 1
        forms = [f for k, f in enumerate(forms) if k not in bad]
    return []


class Sweep:
    """One target: judges forms, keeps counts and lines."""

    def __init__(self, target: str, who: tuple[str, ...], seed: int, report: Any) -> None:
        self.target = target
        self.who = who
        self.seed = seed
        self.report = report
        self.tally = Tally()

    @property
    def counts(self) -> Counter[str]:
        """Outcomes."""
        return self.tally.counts

    def _note(self, form: Form, outcome: str) -> None:
        self.counts[outcome] += 1
        self.tally.row(form.row, 0).add(outcome, form.drawn)

    def look(self, item: Item) -> Form | None:
        """Count an entry of the corpus; returns its form."""
        if item.apart:
            self.tally.left[item.apart] += 1
            return None
        row = self.tally.row(item.row, item.population)
        row.add("looked at", item.drawn)
        if item.form is None:
            self.tally.unmade[item.row.split("#")[0]] += 1
        else:
            row.add("made", item.drawn)
        return item.form

    def say(self, line: str) -> None:
        """One finding."""
        print(line, flush=True)
        if self.report is not None:
            self.report.write(line + "\n")
            self.report.flush()

    def _ours(self, text: str) -> Any:
        from orchestrator.api import compile_ptx
        from stages.simulate import Device

        try:
            return Device(compile_ptx(text, self.target, {"fmad": 0}))
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    def chunk(self, forms: list[Form]) -> None:
        """Judge some forms; forms that ptxas refuses do not count."""
        from stages.simulate import Device

        for part, cubin in ptxas_takes(forms, self.target, self.tally.ptxas_refuses):
            if "ptxas" in self.who:
                self._judge_theirs(part, Device(cubin.read_bytes()))
            if "ours" in self.who:
                for at in range(0, len(part), CHUNK):
                    self.judge_ours(part[at : at + CHUNK])

    def _judge_theirs(self, forms: list[Form], device: Any) -> None:
        modules = self._modules(forms)
        for k, form in enumerate(forms):
            self._note(form, "ptxas takes")
            self.tally.by_name[form.name] += 1
            module, entry = modules[k]
            self._judge(form, module, entry, "ptxas", device, f"k{k}")

    def _modules(self, forms: list[Form]) -> list[tuple[Any, str]]:
        """For each form an interpreter module and its entry; a text if our parser refuses it."""
        from stages.interpret.launch import Module, ParseError

        try:
            module = Module(module_text(forms, self.target), self.target)
            return [(module, f"k{k}") for k in range(len(forms))]
        except ParseError as error:
            if len(forms) == 1:
                return [(f"our parser refuses it: {error}", "")]
            half = len(forms) // 2
            return self._modules(forms[:half]) + self._modules(forms[half:])

    def judge_ours(self, forms: list[Form]) -> None:
        """Judge our cubins of some forms."""
        device = self._ours(module_text(forms, self.target))
        if isinstance(device, str) and len(forms) > 1:
            half = len(forms) // 2
            self.judge_ours(forms[:half])
            self.judge_ours(forms[half:])
            return
        modules = self._modules(forms)
        for k, form in enumerate(forms):
            self._judge(form, *modules[k], "ours", device, f"k{k}")

    def _judge(self, form: Form, module: Any, entry: str, who: str, device: Any, theirs: str) -> None:
        given = buffers(form, self.seed)
        if isinstance(module, str):
            self._refuse(form, who, "interpreter", module)
            return
        if isinstance(device, str):
            self._refuse(form, who, "compiler", device)
            return
        want: Outputs | None = None
        try:
            want = run_interpreter(module, entry, form, given)
        except Exception as error:
            if getattr(error, "kind", "") != "outside":
                self._refuse(form, who, "interpreter", f"{type(error).__name__}: {error}")
                return
        got: Outputs | str

        def execute(given: Given) -> Outputs:
            return run_cubin(device, theirs, form, given)

        try:
            got = execute(given)
        except Exception as error:
            got = f"{type(error).__name__}: {error}"
        if want is None:
            self._outside(form, who, given, got, execute)
        elif isinstance(got, str):
            self._refuse(form, who, "simulator", got)
        else:
            self._compare(form, who, given, want, got, execute)

    def _compare(self, form: Form, who: str, given: Given, want: Outputs, got: Outputs, execute: Execute) -> None:
        bad = wrong(form, want, got)
        if not bad.any():
            self._note(form, f"{who} equal")
            return
        why = cause(form.text, who)
        exact = bool(why) and quirks.predicts(
            form, self.target, given, want, got, lambda other: self._interpret(other, given), execute
        )
        self._note(form, f"{who} {'as modelled' if exact else 'differs'}")
        if exact:
            self.tally.known[why] += 1
        shown = _shown(form, given, want, got, int(bad.argmax()))
        self.say(f"{self.target} {who} {'MODELLED' if exact else 'DIFFERS'} {form.text} [{int(bad.sum())}] {shown}")

    def _outside(self, form: Form, who: str, given: Given, got: Outputs | str, execute: Execute) -> None:
        """A form that the manual does not have is not compared; ptxas's code is checked against what is known of it."""
        if who != "ptxas":
            self._note(form, f"{who} outside the manual")
            return
        why = outside(form.text)
        if isinstance(got, str):
            exact = "instruction word 0x" + 32 * "0" in got and bool(re.match(r"fence\.", form.text))
        else:
            exact = bool(why) and quirks.predicts(
                form, self.target, given, None, got, lambda other: self._interpret(other, given), execute
            )
        self._note(form, f"{who} outside the manual, {'as modelled' if exact else 'not explained'}")
        self.tally.apart[why if exact else "not explained"] += 1
        if not exact:
            self.say(
                f"{self.target} {who} OUTSIDE {form.text} is not what is known: "
                f"{got if isinstance(got, str) else _shown(form, given, None, got, 0)}"
            )

    def _interpret(self, form: Form, given: Given) -> Outputs:
        """Another form on the same inputs."""
        from stages.interpret.launch import Module

        return run_interpreter(Module(module_text([form], self.target), self.target), "k0", form, given)

    def _refuse(self, form: Form, who: str, by: str, why: str) -> None:
        self._note(form, f"{who} refused by {by}")
        why = " ".join(why.split())
        self.tally.refused[f"{who} {by}: {_reason(why)}"] += 1
        self.say(f"{self.target} {who} REFUSED {form.text} {by}: {why[:260]}")

    def table(self) -> None:
        """The counts."""
        for line in self.tally.lines(self.target, self.who):
            self.say(line)


def _reason(why: str) -> str:
    """A message without the parts that depend on the place."""
    why = re.sub(r"SASS 0x[0-9a-f]+ ", "", why)
    return re.sub(r"k\d+|line \d+|0x[0-9a-f]+|/\S+", "", why)[:110]


def _shown(form: Form, given: Given, want: Outputs | None, got: Outputs, t: int) -> str:
    sources = ",".join([f"{int(x):#x}" for x in given[0][t]])
    if want is None:
        return f"thread {t} ({sources}) -> " + ",".join([f"{int(x):#x}" for x in got[0][t]])
    if form.dests and (want[0][t] != got[0][t]).any():
        a, b = (",".join([f"{int(x):#x}" for x in v[0][t]]) for v in (want, got))
    else:
        a, b = (v[1].reshape(form.count, -1)[t].tobytes().hex() for v in (want, got))
    return f"thread {t} ({sources}) -> {b}, interpreter {a}"


def sweep(corpus: Corpus, who: tuple[str, ...], report: Any = None, text: str = "", keep: str = "") -> Sweep:
    """Judge the forms of a target; ``text``: a pattern that their instructions must match; ``keep``: a journal to which
    each chunk is added, and from which a run of the same corpus continues."""
    state = Sweep(corpus.target, who, corpus.seed, report)
    run = " ".join(
        [
            corpus.target,
            "screen" if corpus.heads is not None else corpus.only or "all",
            f"limit {corpus.limit} skip {corpus.skip} seed {corpus.seed}",
            *who,
            text,
        ]
    )
    done, total = journal([keep]).get(run, (0, Tally())) if keep and os.path.exists(keep) else (0, Tally())
    items = itertools.islice(corpus.items(), done, None)
    size = CHUNK
    while True:
        start = time.perf_counter()
        part = list(itertools.islice(items, size))
        if not part:
            break
        made = [form for form in map(state.look, part) if form is not None and re.search(text, form.text)]
        state.chunk(made)
        taken = state.counts["ptxas takes"]
        size = max(CHUNK, min(MOST, CHUNK * len(part) // max(taken, 1)))  # ptxas refuses most combinations of some rows
        done += len(part)
        state.tally.seconds = time.perf_counter() - start
        if keep:
            with open(keep, "a") as file:
                file.write(json.dumps({"run": run, "end": done, **state.tally.as_json()}) + "\n")
        total.add(state.tally)
        state.tally = Tally()
    state.tally = total
    state.table()
    return state


def heads_of(target: str, path: str) -> screen.Heads:
    """The modifiers of the great rows that ptxas accepts, cached in a file."""
    return screen.load(
        path,
        target,
        lambda: screen.screen(
            screen.great_rows(target, GREAT),
            make,
            lambda forms: [f for part, _ in ptxas_takes(forms, target) for f in part],
            MOST,
        ),
    )


def main(argv: list[str] | None = None) -> int:
    """Command line; see the module's text."""
    parser = argparse.ArgumentParser(description="One-instruction kernels, judged three ways.")
    parser.add_argument("--arch", action="append", default=[], help="80, 90, 120a, ... (default 80, 90, 120a)")
    parser.add_argument("--only", default="", help="a regular expression for names of rows")
    parser.add_argument("--text", default="", help="a regular expression that is in the instruction")
    parser.add_argument("--limit", type=int, default=40, help="most forms of one descriptor row")
    parser.add_argument("--skip", type=int, default=0, help="leave out the forms that this limit would give")
    parser.add_argument(
        "--screen",
        default="",
        metavar="FILE",
        help="forms of the rows beyond 2,400 alone, of modifiers that ptxas takes; FILE keeps these",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--who", action="append", choices=["ptxas", "ours"], default=[], help="whose cubins (default both)"
    )
    parser.add_argument("--refusals", action="store_true", help="print what ptxas refuses, by row")
    parser.add_argument("--report", default="")
    parser.add_argument(
        "--journal",
        default="",
        help="a file that the counts of each chunk are added to; an interrupted run with the same options goes on",
    )
    parser.add_argument(
        "--sum",
        action="append",
        default=[],
        metavar="JOURNAL",
        help="run nothing: add up journals (of runs that have no form in common)",
    )
    options = parser.parse_args(argv)
    who = tuple(options.who or ("ptxas", "ours"))
    if options.sum:
        return add_up(options.sum, who)
    report = open(options.report, "w") if options.report else None
    bad = 0
    for arch in options.arch or TARGETS:
        corpus = Corpus(
            f"sm_{arch}",
            options.only,
            options.limit,
            options.seed,
            options.skip,
            heads_of(f"sm_{arch}", options.screen) if options.screen else None,
        )
        state = sweep(corpus, who, report, options.text, options.journal)
        bad += sum(
            state.counts[x] for x in ("ours differs", "ptxas differs", "ptxas outside the manual, not explained")
        )
        if options.refusals:
            for why, n in sorted(state.tally.ptxas_refuses.items()):
                state.say(f"    ptxas refuses {n:5} {why}")
    return 1 if bad else 0


def add_up(paths: list[str], who: tuple[str, ...]) -> int:
    """Print the combined tables of some journals."""
    totals: dict[str, Tally] = {}
    for run, (_, tally) in sorted(journal(paths).items()):
        totals.setdefault(run.split(" ")[0], Tally()).add(tally)
    for target, tally in totals.items():
        for line in tally.lines(target, who):
            print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
