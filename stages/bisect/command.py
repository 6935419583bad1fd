"""The actions of the command line: make the stream, choose the judge, search, print, save."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ir_format.diag import OriasError
from ir_format.model import AttrValue
from ir_format.record import Record
from ir_format.target import fitting_target
from orchestrator.conflicts import UsageError
from orchestrator.driver import Run
from orchestrator.options import read as read_options
from stages.bisect.attempt import Failure
from stages.bisect.bisect import Guilt, Hunt, Unfit
from stages.bisect.bundle import numbered, reduced
from stages.bisect.chain import Chain, parsed
from stages.bisect.judges import Command, Cosim, Crash, CubinJudge, Judge, NoInterpreter, NoProgram, run_on
from stages.bisect.report import page, report
from stages.bisect.search import Verdict
from stages.check.command import compile_elsewhere
from stages.check.files import read
from stages.check.streams import is_stream
from stages.plumbing.files import write_file

#: Exit codes.
FOUND, RIGHT, BAD, UNJUDGED, NOT_FOUND, NO_PROGRAM = range(6)
#: Most culprits that are searched for, one after another.
MOST: Final = 5
#: Default seconds for a test command. Processor seconds for the chain and for a judge: a fixed number, plus one for a
#: number of bytes of PTX (a large kernel takes
#: a second for 15,000 bytes).
TEST_SECONDS: Final = 60.0
CHAIN_SECONDS: Final = 8.0
BYTES_A_SECOND: Final = 4000


class Request(Record):
    """The command line. ``words``: options of `orias`; ``crash``: None, or the message of the failure ('' any)."""

    file: Path
    words: list[str]
    test: str = ""
    crash: str | None = None
    metric: str = ""
    ptxas: str = ""
    kernels: tuple[str, ...] = ()
    seeds: int | None = None
    seconds: float | None = None
    keep: Path | None = None
    html: Path | None = None
    without: tuple[str, ...] = ()
    every: bool = False
    table: bool = False
    report: Path | None = None
    vendor: Path | None = None
    witness: Path | None = None


class Refusal(OriasError):
    """The input is unusable; the text says why."""


class Broken(OriasError):
    """`parse` produces no stream."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class Source:
    """A file, the user's options, and chains that begin with it."""

    def __init__(self, request: Request, say: Callable[[str], object]) -> None:
        """Raises OriasError, OSError."""
        self.request = request
        self.say = say
        self.data = read(request.file)
        self.saved = is_stream(self.data)
        words = list(request.words)
        if not self.saved and not any(w.startswith(("-arch", "--gpu-name", "-gpu-name")) for w in words):
            words += ["-arch", fitting_target(self.data)]
        if not self.saved and self._compares() and not any(w.startswith(("--fmad", "-fmad")) for w in words):
            words.append("--fmad=false")  # so that results are what the PTX says
        self.words = words
        try:
            self.run = Run(read_options([*words, str(request.file)]))
        except UsageError as e:
            raise Refusal(e.render().strip()) from None
        for name in ("exec", "start-from", "save-temps", "stop-after", "output-file"):
            if name in self.run.cl.values:
                raise Refusal(f"--{name} makes no sense here")

    def _compares(self) -> bool:
        r = self.request
        return not r.test and r.crash is None and not r.metric

    @property
    def seconds(self) -> float:
        """Processor seconds after which the chain or a judge counts as hanging."""
        return self.request.seconds or CHAIN_SECONDS + len(self.data) / BYTES_A_SECOND

    @property
    def arch(self) -> str:
        """The target."""
        return self.run.target

    def chain(self, kernel: str = "", words: list[str] | None = None, without: tuple[str, ...] = ()) -> Chain:
        """The chain, of one kernel alone if one is named. Raises OriasError."""
        r = self.request
        run = self.run if words is None else Run(read_options([*words, str(r.file)]))
        given = {"given": run.flags, "foreign": run.foreign, "seconds": self.seconds, "say": self.say}
        if self.saved:
            return Chain(self.data, True, without=(*r.without, *without), **given)  # type: ignore[arg-type]
        options: dict[str, AttrValue] = dict(run.options)
        if kernel:
            options["entry"] = (kernel,)
        got = parsed(str(r.file), self.data, run.target, options, self.seconds, self.say)
        if isinstance(got, Failure):
            raise Broken(got)
        return Chain(got, False, without=(*r.without, *without), **given)  # type: ignore[arg-type]

    def judge(self) -> Judge:
        """The user's judge. Raises OriasError."""
        r = self.request
        if r.crash is not None:
            return Crash(r.crash)
        if r.test:
            return Command(r.test, r.seconds or TEST_SECONDS)
        if self.saved:
            raise Refusal("a stream has no PTX to be compared with: give a command with --test, or --crash")
        try:
            return Cosim(self.data.decode("latin-1"), self.arch, r.kernels, r.seeds, self.seconds)
        except NoInterpreter as e:
            self.say(f"no co-simulation: {e}")
            return Unjudged(str(e))

    def narrow(self) -> Callable[[str], Chain] | None:
        """How to continue with one kernel alone, if possible."""
        if self.saved or "compile-only" in self.run.options or "entry" in self.run.options or self.request.test:
            return None
        return lambda kernel: self.chain(kernel)


class Unjudged(CubinJudge):
    """Used if no judge of values exists: only static judges and failures of the chain remain."""

    name = "nobody"

    def __init__(self, why: str) -> None:
        super().__init__()
        self.said = why

    def __call__(self, cubin: bytes) -> Verdict:
        """Can't tell."""
        return Verdict.OPEN


def keep(folder: Path, chain: Chain, guilt: Guilt) -> None:
    """Write the two cubins and the two streams. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, setting in (("right.cubin", guilt.right), ("wrong.cubin", guilt.wrong)):
        data = chain.make(setting).cubin if setting is not None else b""
        if data:
            write_file(str(folder / name), data)
    for name, data in (("right.ori", guilt.before), ("wrong.ori", guilt.after)):
        if data:
            write_file(str(folder / name), data)


def run_file(request: Request, say: Callable[[str], object]) -> int:
    """Search and print what was found; the exit code."""
    try:
        say(f"reading {request.file}")
        source = Source(request, say)
        try:
            if request.vendor is not None:
                return _vendor(source, request, request.vendor, say)
            if request.metric:
                return _metric(source, request)
            return _hunt(source, request, say)
        except Broken as e:
            return _unparsed(source, e.failure)
    except Unfit as e:
        sys.stderr.write(f"orias-bisect: {e}\n")
        return RIGHT if e.verdict is Verdict.RIGHT else UNJUDGED
    except NoProgram as e:
        sys.stderr.write(f"orias-bisect: {e}\n")
        return NO_PROGRAM
    except OSError as e:
        sys.stderr.write(f"orias-bisect: {e.filename or request.keep or request.file}: {e.strerror}\n")
        return BAD
    except OriasError as e:
        sys.stderr.write(f"orias-bisect: {e}\n")
        return BAD


def _unparsed(source: Source, failure: Failure) -> int:
    """`parse` produced no stream: a fault of its own if it crashes, or if the search is for a refusal."""
    wanted = source.request.crash
    if failure.kind == "refused" and (wanted is None or wanted not in failure.message):
        sys.stderr.write(f"orias-bisect: {failure.message}\n")
        return BAD
    print(f"wrong from stage parse on\nfound by whether there is a cubin: {failure}")
    return FOUND


def _hunt(source: Source, request: Request, say: Callable[[str], object]) -> int:
    found: list[str] = []
    code = FOUND
    while len(found) < (MOST if request.every else 1):
        chain = source.chain(without=tuple(found))
        judge = source.judge()
        hunt = Hunt(chain, judge, say, source.narrow())
        try:
            guilt = hunt.run()
        except Unfit:
            if not found:
                raise
            print("no further culprit")
            break
        whole = Source.chain(source, without=tuple(found)) if found else chain
        lines = report(whole, guilt, str(request.file), source.words)
        if request.table or request.report is not None:
            lines += _table(source, judge)
        if request.report is not None and (least := reduced(source, guilt, hunt.judge, say)):
            lines += ["reduced:", *least.splitlines()]
        for line in lines:
            print(line)
        _write(request, whole, guilt, lines, len(found) + 1)
        if not guilt.stage:
            code = NOT_FOUND
        if len(guilt.parts) != 1:
            break
        found.append(str(guilt.parts[0]))
    return code


def _write(request: Request, chain: Chain, guilt: Guilt, lines: list[str], number: int) -> None:
    """Write the files that were asked for. Raises OSError."""
    for folder in (request.keep, request.report):
        if folder is not None:
            keep(numbered(folder, number), chain, guilt)
    if request.html is not None:
        write_file(str(numbered(request.html, number)), page(chain, guilt, lines).encode())
    if request.report is not None:
        folder = numbered(request.report, number)
        write_file(str(folder / "report.txt"), ("\n".join(lines) + "\n").encode())
        write_file(str(folder / "report.html"), page(chain, guilt, lines).encode())
        if "reduced:" in lines:
            text = "\n".join(lines[lines.index("reduced:") + 1 :]) + "\n"
            write_file(str(folder / "reduced.ptx"), text.encode("latin-1", "replace"))


def _vendor(source: Source, request: Request, program: Path, say: Callable[[str], object]) -> int:
    """Judge another compiler instead of ours."""
    from stages.bisect.vendor import Vendor, find, folder, report

    if source.saved:
        raise Refusal("--vendor wants PTX")
    words = without_target(source.words)
    vendor = Vendor(program, request.file, source.data.decode("latin-1"), source.arch, words,
                    request.kernels, request.seeds, source.seconds)  # fmt: skip
    lines, case = find(vendor, request.witness, say)
    if case is None:
        print("\n".join(lines))
        judged = any(line.endswith(": ok") for line in lines)
        sys.stderr.write(f"orias-bisect: {'nothing is wrong' if judged else 'no cubin could be judged'}\n")
        return RIGHT if judged else UNJUDGED
    lines = report(vendor, lines, case)
    print("\n".join(lines))
    if request.report is not None:
        folder(vendor, case, lines, request.report)
    return FOUND if case.witnesses else UNJUDGED


def without_target(words: list[str]) -> list[str]:
    """Options without the target and the -O level."""
    out, at = [], 0
    while at < len(words):
        word = words[at]
        at += 1
        if word.startswith(("-arch", "--gpu-name", "-gpu-name")):
            at += "=" not in word
        elif not word.startswith("-O"):
            out.append(word)
    return out


def _table(source: Source, judge: Judge) -> list[str]:
    """The verdicts over -O levels and targets that have the program."""
    out = ["  -O0 -O1 -O2 -O3"]
    bare = [w for w in source.words if not w.startswith("-O")]
    at = next(n for n, w in enumerate(bare) if w.startswith(("-arch", "--gpu-name", "-gpu-name")))
    for arch in dict.fromkeys([source.arch, "sm_80", "sm_90", "sm_120"]):
        words = list(bare)
        words[at : at + (1 if "=" in bare[at] else 2)] = ["-arch", arch]
        cells = []
        for level in range(4):
            try:
                chain = source.chain("", [*words, f"-O{level}"])
                verdict = judge.judge(chain.on(len(chain.parts)))
                cells.append({Verdict.RIGHT: "ok", Verdict.WRONG: "WRONG", Verdict.OPEN: "?"}[verdict])
            except OriasError:
                cells.append("-")
        out.append(f"{arch:8} " + " ".join(cells))
    return out


def _metric(source: Source, request: Request) -> int:
    """Print a command's number for the cubin without optional parts, with each one more, with all; ptxas's beside
    them."""
    chain = source.chain()
    rows: list[tuple[str, bytes | None]] = []
    for on in range(len(chain.parts) + 1):
        rows.append((str(chain.parts[on - 1]) if on else "plain", chain.on(on).cubin or None))
    if request.ptxas:
        words = [*without_target(source.words), *[w for w in source.words if w.startswith("-O")]]
        got = compile_elsewhere(Path(request.ptxas), request.file, source.arch, words)
        rows.append(("ptxas", got if isinstance(got, bytes) else None))
    last = ""
    for name, cubin in rows:
        said = "no cubin"
        if cubin is not None:
            code, text = run_on(request.metric, cubin, "bisect.cubin", request.seconds or TEST_SECONDS)
            lines = text.strip().splitlines()
            said = lines[-1] if lines and not code else f"exit code {code}" + (f": {lines[-1]}" if lines else "")
            if code in (126, 127):
                raise NoProgram(f"the command does not run: {said}")
        print(f"{name:28} {said}{'' if said != last else ' ='}")
        last = said
    return FOUND
