"""One-instruction kernels: every form of the descriptor table that ptxas takes, run by the PTX interpreter, and the cubins of ptxas
and ours in the simulator, on edge cases and random values.

    python -m tests.cosim.one_op [--arch 80 --arch 90 ...] [--only NAME] [--limit N] [--seed N] [--who ptxas --who ours] [--report FILE]

ptxas decides which forms exist, the manual which of them are compared.  Prints what differs or is refused, one line a form, then a table for each target:
how many are equal to the manual, how many are what a stated model of ptxas predicts (`forms/quirks.py`), how many are neither.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from typing import Any

import numpy as np

from tests import oracle
from tests.cosim.forms import Corpus, quirks
from tests.cosim.forms.base import Form, kernel_text, module_text
from tests.cosim.forms.exceptions import cause, outside
from tests.cosim.forms.values import Array, inputs, memory, wrong

CHUNK = 60
TARGETS = ("80", "90", "120a")
_LINE = re.compile(r"line (\d+); (?:error|fatal) *: (.*)")
#: Steps that a kernel of one instruction may take.
LIMIT = 400_000

Outputs = tuple[Array, Array]
#: Sources, third buffer and parameter bytes of a form.
Given = tuple[Array, Array, bytes]


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
    device.launch(entry, form.blocks, form.threads, [data.copy(), out, third, *([blob] if form.blob else [])], limit=LIMIT, **options)
    return out, third


def ptxas_takes(forms: list[Form], target: str, refusals: Counter[str] | None = None) -> tuple[list[Form], Any]:
    """The forms that ptxas compiles, and their cubin as a device; forms that it refuses are counted with the message."""
    from stages.simulate import Device

    while forms:
        text = module_text(forms, target)
        got = oracle.compile_ptx(text, target)
        if not isinstance(got, oracle.ToolError):
            return forms, Device(got.read_bytes())
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
                first, second = (ptxas_takes(part, target, refusals)[0] for part in (forms[:half], forms[half:]))
                if len(first) + len(second) == len(forms):
                    raise RuntimeError(f"ptxas takes the kernels apart but not together: {got}")
                forms = first + second
                continue
            bad[0] = got.stderr.strip().splitlines()[0] if got.stderr.strip() else "?"
        if refusals is not None:
            for k, message in bad.items():
                refusals[f"{forms[k].row}: {message}"] += 1
        forms = [f for k, f in enumerate(forms) if k not in bad]
    return [], None


class Sweep:
    """One target: judges forms, keeps counts and lines."""

    def __init__(self, target: str, who: tuple[str, ...], seed: int, report: Any) -> None:
        self.target = target
        self.who = who
        self.seed = seed
        self.report = report
        self.counts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.ptxas_refuses: Counter[str] = Counter()
        self.by_name: Counter[str] = Counter()
        self.known: Counter[str] = Counter()
        self.apart: Counter[str] = Counter()

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
        """Judge some forms; those that ptxas refuses do not count."""
        forms, theirs = ptxas_takes(forms, self.target, self.ptxas_refuses)
        if not forms:
            return
        if "ptxas" in self.who:
            modules = self._modules(forms)
            for k, form in enumerate(forms):
                self.counts["ptxas takes"] += 1
                self.by_name[form.name] += 1
                module, entry = modules[k]
                self._judge(form, module, entry, "ptxas", theirs, f"k{k}")
        if "ours" in self.who:
            self.judge_ours(forms)

    def _modules(self, forms: list[Form]) -> list[tuple[Any, str]]:
        """For each form an interpreter module and the entry in it; a text where our parser refuses it."""
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
        try:
            got = run_cubin(device, theirs, form, given)
        except Exception as error:
            got = f"{type(error).__name__}: {error}"
        if want is None:
            self._outside(form, who, given, got)
        elif isinstance(got, str):
            self._refuse(form, who, "simulator", got)
        else:
            self._compare(form, who, given, want, got)

    def _compare(self, form: Form, who: str, given: Given, want: Outputs, got: Outputs) -> None:
        bad = wrong(form, want, got)
        if not bad.any():
            self.counts[f"{who} equal"] += 1
            return
        why = cause(form.text, who)
        exact = bool(why) and quirks.predicts(form, self.target, given, want, got, lambda other: self._interpret(other, given))
        self.counts[f"{who} {'as modelled' if exact else 'differs'}"] += 1
        if exact:
            self.known[why] += 1
        shown = _shown(form, given, want, got, int(bad.argmax()))
        self.say(f"{self.target} {who} {'MODELLED' if exact else 'DIFFERS'} {form.text} [{int(bad.sum())}] {shown}")

    def _outside(self, form: Form, who: str, given: Given, got: Outputs | str) -> None:
        """A form that the manual does not have: no part of the comparison; ptxas's code is held against what is known of it."""
        if who != "ptxas":
            self.counts[f"{who} outside the manual"] += 1
            return
        why = outside(form.text)
        if isinstance(got, str):
            exact = "instruction word 0x" + 32 * "0" in got and bool(re.match(r"fence\.", form.text))
        else:
            exact = bool(why) and quirks.predicts(form, self.target, given, None, got, lambda other: self._interpret(other, given))
        self.counts[f"{who} outside the manual, {'as modelled' if exact else 'not explained'}"] += 1
        self.apart[why if exact else "not explained"] += 1
        if not exact:
            self.say(f"{self.target} {who} OUTSIDE {form.text} is not what is known: {got if isinstance(got, str) else _shown(form, given, None, got, 0)}")

    def _interpret(self, form: Form, given: Given) -> Outputs:
        """Another form on the same inputs."""
        from stages.interpret.launch import Module

        return run_interpreter(Module(module_text([form], self.target), self.target), "k0", form, given)

    def _refuse(self, form: Form, who: str, by: str, why: str) -> None:
        self.counts[f"{who} refused by {by}"] += 1
        why = " ".join(why.split())
        self.refused[f"{who} {by}: {_reason(why)}"] += 1
        self.say(f"{self.target} {who} REFUSED {form.text} {by}: {why[:260]}")

    def table(self, corpus: Corpus, seconds: float) -> None:
        """The counts.  Shares are of the forms that the manual has."""
        self.say(f"\n{self.target}: {self.counts['ptxas takes']} forms that ptxas takes, of {len(corpus.forms)} made, {len(self.by_name)} mnemonics, {seconds:.0f} s")
        for who in self.who:
            mine = {k.removeprefix(who + " "): v for k, v in sorted(self.counts.items()) if k.startswith(who + " ") and k != "ptxas takes"}
            total = max(sum(v for k, v in mine.items() if not k.startswith("outside")), 1)
            equal, modelled = mine.get("equal", 0), mine.get("as modelled", 0)
            self.say(f"  {who}: " + ", ".join([f"{k} {v}" for k, v in mine.items()]))
            self.say(f"  {who}: of {total} in the manual {100 * equal / total:.2f} % equal, {100 * (equal + modelled) / total:.2f} % with those that the models of ptxas predict")
        for why, n in sorted(self.known.items()):
            self.say(f"    as modelled {n:5} {why}")
        for why, n in sorted(self.apart.items()):
            self.say(f"    outside the manual {n:5} {why}")
        for why, n in self.refused.most_common(40):
            self.say(f"    refused {n:5} {why}")
        for why, n in sorted(corpus.apart.items()):
            self.say(f"    apart {n:5} {why}")
        for name, n in sorted(corpus.unmade.items()):
            self.say(f"    no kernel made {n:5} {name}")
        missing = sorted({f.name for f in corpus.forms} - set(self.by_name))
        if missing and "ptxas" in self.who:
            self.say("    mnemonics of which ptxas took no form: " + " ".join(missing))


def _reason(why: str) -> str:
    """A message without what is particular to a place."""
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


def sweep(arch: str, who: tuple[str, ...], only: str, limit: int, seed: int, report: Any = None, text: str = "") -> Sweep:
    """Judge the forms of a target; ``text``: a pattern that their instructions must have."""
    state = Sweep(f"sm_{arch}", who, seed, report)
    start = time.perf_counter()
    corpus = Corpus(f"sm_{arch}", only, limit, seed)
    forms = [f for f in corpus.forms if re.search(text, f.text)]
    for at in range(0, len(forms), CHUNK):
        state.chunk(forms[at : at + CHUNK])
    state.table(corpus, time.perf_counter() - start)
    return state


def main(argv: list[str] | None = None) -> int:
    """Command line; see the module's text."""
    parser = argparse.ArgumentParser(description="One-instruction kernels, judged three ways.")
    parser.add_argument("--arch", action="append", default=[], help="80, 90, 120a, ... (default 80, 90, 120a)")
    parser.add_argument("--only", default="", help="a regular expression for names of rows")
    parser.add_argument("--text", default="", help="a regular expression that is in the instruction")
    parser.add_argument("--limit", type=int, default=40, help="most forms of one descriptor row")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--who", action="append", choices=["ptxas", "ours"], default=[], help="whose cubins (default both)")
    parser.add_argument("--refusals", action="store_true", help="print what ptxas refuses, by row")
    parser.add_argument("--report", default="")
    options = parser.parse_args(argv)
    report = open(options.report, "w") if options.report else None
    bad = 0
    for arch in options.arch or TARGETS:
        state = sweep(arch, tuple(options.who or ("ptxas", "ours")), options.only, options.limit, options.seed, report, options.text)
        bad += sum(state.counts[x] for x in ("ours differs", "ptxas differs", "ptxas outside the manual, not explained"))
        if options.refusals:
            for why, n in sorted(state.ptxas_refuses.items()):
                state.say(f"    ptxas refuses {n:5} {why}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
