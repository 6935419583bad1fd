"""Who says whether a cubin is right: co-simulation with the PTX interpreter, or a command of the user's."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ir_format.diag import OriasError
from stages.bisect.search import Verdict

#: Exit code of a test command that can't tell, as `git bisect run` has it.
CANT_TELL: Final = 125


class Command:
    """A shell command that is given a cubin's path, in the place of `{}` or at its end. Exit code 0: right, 125: can't tell, others, signals and no end within
    ``seconds``: wrong."""

    def __init__(self, command: str, seconds: float = 60.0) -> None:
        self.command = command
        self.seconds = seconds
        self.said = ""

    def __call__(self, cubin: bytes) -> Verdict:
        """Judge one cubin; `said` is then the last line that the command wrote."""
        import shlex

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bisect.cubin"
            path.write_bytes(cubin)
            name = shlex.quote(str(path))
            command = self.command.replace("{}", name) if "{}" in self.command else f"{self.command} {name}"
            try:
                done = subprocess.run(
                    command,
                    shell=True,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    timeout=self.seconds,
                )
            except subprocess.TimeoutExpired:
                self.said = f"no end within {self.seconds:g} s"
                return Verdict.WRONG
        lines = (done.stdout + done.stderr).strip().splitlines()
        self.said = lines[-1] if lines else f"exit code {done.returncode}"
        return {0: Verdict.RIGHT, CANT_TELL: Verdict.OPEN}.get(done.returncode, Verdict.WRONG)


class Cosim:
    """Co-simulation (:mod:`stages.check.cosim`) of a module's kernels; from the first wrong one on, of that kernel alone."""

    def __init__(self, text: str, arch: str, kernels: Sequence[str] = (), seeds: int = 8) -> None:
        """Raises OriasError where the text is no module that the interpreter takes, or has none of the kernels."""
        from stages.check.cosim import Cosim as Judge
        from stages.interpret.launch import ParseError

        try:
            self.judge = Judge(text, arch, {}, seeds)
        except ParseError as e:
            raise OriasError(str(e)) from None
        missing = [k for k in kernels if k not in self.judge.module.codes]
        if missing:
            raise OriasError(f"no kernel '{missing[0]}'; there is {', '.join(self.judge.module.codes)}")
        self.kernels = list(kernels)
        self.said = ""

    def __call__(self, cubin: bytes) -> Verdict:
        """Judge one cubin; `said` is then the first finding."""
        from stages.check.cosim import Report
        from stages.simulate import Device, ImageError

        try:
            self.judge.devices = {"ours": Device(cubin)}
        except ImageError as e:
            self.said = str(e)
            return Verdict.OPEN
        self.judge.report = Report()
        report = self.judge.run(self.kernels)
        wrong = report.differences()
        if wrong:
            self.kernels = [wrong[0].kernel]
            self.said = str(wrong[0])
            return Verdict.WRONG
        judged = report.judged.get("ours", 0)
        self.said = (
            f"{judged} launches as the interpreter has them"
            if judged
            else "; ".join(str(f) for f in report.findings[:1])
        )
        return Verdict.RIGHT if judged else Verdict.OPEN
