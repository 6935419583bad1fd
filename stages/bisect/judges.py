"""Judges of the chain's output: co-simulation with the PTX interpreter, a command of the user's, a judge that needs no
test (:mod:`stages.bisect.quick_checks`), or the chain itself, if the fault is that it crashes, refuses or does not end.
They run in separate processes under a time limit."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from ir_format.diag import OriasError
from stages.bisect.attempt import Failure, Note, attempt
from stages.bisect.chain import Made
from stages.bisect.quick_checks import Rule, applicable, findings
from stages.bisect.search import Verdict

#: Exit code of a test command that cannot tell, as in `git bisect run`.
CANT_TELL: Final = 125
#: Exit codes with which a shell says that there is no such program, or that it can't be run.
MISSING: Final = (126, 127)
#: Processor seconds for a kernel in the first look of co-simulation, for all kernels together if there are many, and
#: the least for one.
KERNEL_SECONDS: Final = 5.0
ALL_SECONDS: Final = 16.0
LEAST_SECONDS: Final = 1.0
#: Launches of a kernel in the strict machine, which is slow; the schedule checker has checked all paths before.
STRICT_LAUNCHES: Final = 2
_NUMBERS: Final = re.compile(r"0x[0-9a-f]+|\d+")


class NoProgram(OriasError):
    """The test command does not run."""


class NoInterpreter(OriasError):
    """The interpreter does not support the module."""


class Judge(ABC):
    """Base of all judges. ``said``: the reason of the last verdict; ``kernels``: the wrong ones, if the judge knows
    them."""

    name = "the judge"
    wants_cubin = True

    def __init__(self) -> None:
        self.said = ""
        self.kernels: list[str] = []

    @abstractmethod
    def judge(self, made: Made) -> Verdict:
        """The verdict on a run of the chain."""


class CubinJudge(Judge):
    """A judge that looks only at the cubin."""

    def judge(self, made: Made) -> Verdict:
        """The verdict on the cubin; none if there is no cubin."""
        if made.failure is not None:
            self.said = f"no cubin: {made.failure}"
            return Verdict.OPEN
        return self(made.cubin)

    @abstractmethod
    def __call__(self, cubin: bytes) -> Verdict:
        """The verdict on a cubin."""


class Command(CubinJudge):
    """A shell command that gets a cubin's path instead of `{}` or at its end. Exit code 0: right, 125: cannot tell;
    others, signals and does not end within ``seconds``: wrong."""

    name = "the test command"

    def __init__(self, command: str, seconds: float = 60.0) -> None:
        super().__init__()
        self.command = command
        self.seconds = seconds

    def __call__(self, cubin: bytes) -> Verdict:
        """Judge one cubin; `said` is then the last line that the command printed. Raises NoProgram."""
        code, text = run_on(self.command, cubin, "bisect.cubin", self.seconds)
        lines = text.strip().splitlines()
        self.said = lines[-1] if lines else f"exit code {code}"
        if code in MISSING and ("not found" in self.said or "denied" in self.said or "No such file" in self.said):
            raise NoProgram(f"the test command does not run: {self.said}")
        if code is None:
            self.said = f"does not end within {self.seconds:g} s"
        return {0: Verdict.RIGHT, CANT_TELL: Verdict.OPEN}.get(-1 if code is None else code, Verdict.WRONG)


def run_on(command: str, data: bytes, name: str, seconds: float) -> tuple[int | None, str]:
    """Run a shell command on a file of this name with these bytes; it gets the path for `{}` or at its end. Returns its
    exit code (None: it did not end, and was stopped with all that it started) and its output."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        quoted = shlex.quote(str(path))
        command = command.replace("{}", quoted) if "{}" in command else f"{command} {quoted}"
        with subprocess.Popen(
            command,
            shell=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as running:
            try:
                text, _ = running.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
                running.communicate()
                return None, ""
        return running.returncode, text


class Cosim(CubinJudge):
    """Co-simulation (:mod:`stages.check.cosim`) of a module's kernels. After the first wrong launch, only that launch
    is judged. ``how``: in which way the first wrong launch is wrong: `value`, `failed` (an access out of bounds, no
    end) or `hazard`."""

    name = "co-simulation"

    def __init__(
        self, text: str, arch: str, kernels: Sequence[str] = (), seeds: int | None = None, seconds: float = 60.0
    ) -> None:
        """Raises NoInterpreter if the interpreter does not support the text, OriasError if it has none of the
        kernels."""
        import stages.simulate  # noqa: F401 - here, so that no child imports it for itself
        from stages.check.cosim import Cosim as Whole
        from stages.interpret.launch import ParseError

        super().__init__()
        self.seconds = seconds
        try:
            self.cosim = Whole(text, arch, {}, seeds, seconds=KERNEL_SECONDS)
        except ParseError as e:
            raise NoInterpreter(str(e)) from None
        missing = [k for k in kernels if k not in self.cosim.module.codes]
        if missing:
            raise OriasError(f"no kernel '{missing[0]}'; there is {', '.join(self.cosim.module.codes)}")
        self.chosen = list(kernels) or list(self.cosim.module.codes)
        self.cosim.seconds = min(KERNEL_SECONDS, max(LEAST_SECONDS, ALL_SECONDS / max(len(self.chosen), 1)))
        self.witness: tuple[str, Any, Any, Any] | None = None
        self.strict = False
        self.how = ""
        self.progress = False  # as in docs/simulator.md: needed for ptxas's code

    def look(self, cubin: bytes, note: Callable[[str], object] = lambda text: None) -> None:
        """Judge every kernel: `kernels` are the wrong ones, `said` the first finding, `witness` its launch, and
        `unjudged` why others were not judged."""
        self.kernels, self.unjudged, self.launches, self.witness, self.how = [], [], 0, None, ""

        def job(kernel: str) -> Any:
            note(f"co-simulation of {kernel}")
            return attempt(lambda n: self._kernel(cubin, kernel, n), self.seconds)

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:  # each kernel in a process of its own
            results = list(pool.map(job, self.chosen))
        for kernel, got in zip(self.chosen, results, strict=True):
            if isinstance(got, Failure):
                self.unjudged.append(f"{kernel}: {got}")
                continue
            how, said, count, witness = got
            self.launches += count
            if how:
                if not self.kernels:
                    self.said, self.witness, self.how = said, witness, how
                self.kernels.append(kernel)
            elif not count:
                self.unjudged.append(f"{kernel}: {said}")

    def _kernel(self, cubin: bytes, kernel: str, note: Note) -> tuple[str, str, int, Any]:
        from stages.check.executors import approximates
        from stages.simulate import Device

        note(kernel)
        c = self.cosim
        c.began, device, launches = _now(), Device(cubin, progress=self.progress), 0
        unit = c.module.codes[kernel].unit
        for launch, base, stable in c.judged(unit, quiet=True):
            how, said = self._wrong(device, launch, base, stable, approximates(unit))
            if how:
                return how, said, launches, (kernel, launch, base, stable)
            launches += any(v.any() for v in stable.keep.values())
            if self.strict and launches >= STRICT_LAUNCHES:
                break
        why = c.report.findings
        return "", str(why[-1]) if why else "no launch could be judged", launches, None

    def _wrong(self, device: Any, launch: Any, base: Any, stable: Any, loose: bool) -> tuple[str, str]:
        """In which way a launch is wrong, and the difference; '' if there is none, or none that can be told."""
        from stages.check.executors import simulate

        c = self.cosim
        got = simulate(device, launch, seed=launch.seed, limit=c._most(launch, base)[0], strict=self.strict)
        if got.error:
            before = len(c.report.findings)
            c._failed(launch.entry, "ours", launch, base, stable, got)
            new = [f for f in c.report.findings[before:] if f.kind == "failed"]
            return ("failed", str(new[0])) if new else ("", "")
        if self.strict and got.hazards:
            return "hazard", f"{launch.entry}: {got.hazards[0]}"
        if c._wrong(launch, base, got, stable, loose, device):
            first = c._first(launch, base, got, stable, loose)
            return "value", f"{launch.entry}: {_difference(launch, base, got, first)}"
        return "", ""

    def __call__(self, cubin: bytes) -> Verdict:
        """Judge one cubin, by the known wrong launch if there is one."""
        if self.witness is None:
            self.look(cubin)
            if self.kernels:
                return Verdict.WRONG
            self.said = (
                f"{self.launches} launches as the interpreter has them"
                if self.launches
                else "; ".join(self.unjudged[:1])
            )
            return Verdict.RIGHT if self.launches else Verdict.OPEN
        kernel, launch, base, stable = self.witness

        def job(note: Note) -> str:
            from stages.check.executors import approximates
            from stages.simulate import Device

            note(kernel)
            self.cosim.began = _now()
            unit = self.cosim.module.codes[kernel].unit
            device = Device(cubin, progress=self.progress)
            return self._wrong(device, launch, base, stable, approximates(unit))[1]

        got = attempt(job, self.seconds)
        if isinstance(got, Failure):
            self.said = str(got)
            return Verdict.OPEN if got.kind != "hang" else Verdict.WRONG
        self.said = got or f"{kernel} is right on that launch"
        return Verdict.WRONG if got else Verdict.RIGHT

    def explain(self, cubin: bytes) -> tuple[Any, list[str], tuple[int, int] | None]:
        """The wrong launch, shrunk; how its first wrong element should be computed and how the cubin computes it; and
        that element (argument, byte)."""

        def job(note: Note) -> Any:
            from stages.check.arithmetic import explained
            from stages.check.executors import approximates
            from stages.simulate import Device

            assert self.witness is not None
            kernel, launch, _, _ = self.witness
            self.cosim.began = _now()
            loose = approximates(self.cosim.module.codes[kernel].unit)
            return explained(self.cosim, launch, Device(cubin, progress=self.progress), loose)

        if self.witness is None or self.how != "value":
            return None, [], None
        got = attempt(job, self.seconds)
        return (None, [], None) if isinstance(got, Failure) else got


def _now() -> float:
    import time

    return time.process_time()


def _difference(launch: Any, base: Any, got: Any, first: tuple[Any, int] | None) -> str:
    """The first differing element, in words."""
    from stages.check.memory_compare import size_of

    if first is None:
        return f"memory differs ({launch.describe()})"
    k, byte = first
    where = launch.names[k] if isinstance(k, int) else k
    want, have = (base.buffers[k], got.buffers[k]) if isinstance(k, int) else (base.variables[k], got.variables[k])
    size = size_of(launch.types[k]) if isinstance(k, int) else 4
    at = byte // size * size
    a, b = (int.from_bytes(bytes(v[at : at + size]), "little") for v in (want, have))
    return f"{where}[{at // size}] is {b:#x}, by the interpreter {a:#x} ({launch.describe()})"


class Static(Judge):
    """A judge that needs no test and looks at the streams."""

    def __init__(self, rule: Rule, seconds: float = 60.0) -> None:
        super().__init__()
        self.rule = rule
        self.name = f"the {rule.name}" if rule.name != "records" else "the judge of records"
        self.seconds = seconds
        self.wants_cubin = "" in rule.needs

    def judge(self, made: Made) -> Verdict:
        """Wrong if there are findings."""
        if not applicable(self.rule, made):
            self.said = f"no cubin: {made.failure}"
            return Verdict.OPEN
        found = findings(self.rule, made, self.seconds)
        self.said = found[0] if found else "no findings"
        return Verdict.WRONG if found else Verdict.RIGHT


class Crash(Judge):
    """The chain crashes, refuses or hangs: with ``message`` in its output, or in the same way as the first time."""

    name = "whether there is a cubin"

    def __init__(self, message: str = "", first: Failure | None = None) -> None:
        super().__init__()
        self.message = message
        self.first = first

    def judge(self, made: Made) -> Verdict:
        """Wrong for that failure, right for a cubin; another failure cannot be judged."""
        f = made.failure
        if f is None:
            self.said = "a cubin"
            return Verdict.RIGHT
        self.said = str(f)
        if self.message:
            return Verdict.WRONG if self.message in f"{f}" else Verdict.OPEN
        if self.first is None:
            return Verdict.WRONG
        return Verdict.WRONG if self.alike(f) else Verdict.OPEN

    def alike(self, f: Failure) -> bool:
        """Whether a failure is the same as the first one."""
        first = self.first
        return (
            first is not None
            and f.kind == first.kind
            and (f.kind == "hang" or _form(f.message) == _form(first.message))
        )


def _form(text: str) -> str:
    """A message without its numbers."""
    return _NUMBERS.sub("0", text)
