"""`orias`: run the chain over PTX files, several kernels at once, and write the cubin.

Small inputs are compiled in this process. Otherwise parse runs first; meanwhile this process imports the other stages,
so that the chains are forked warm. Units are dealt out to chains by size, largest first, and their results put back in
module order: output doesn't depend on the number of jobs. Where there is but one chain to run, it starts together with
parse and imports for itself: a process that is forked warm copies every page that it touches.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Sequence

from ir_format import wire
from ir_format.diag import Diagnostic, StreamError
from ir_format.model import AttrValue, Header
from ir_format.typed import TYPE_CHECKING, BinaryIO
from orchestrator.abort import Abort
from orchestrator.client import own_program
from orchestrator.conflicts import UsageError
from orchestrator.options import CommandLine, stream_options
from orchestrator.preload import import_stages
from orchestrator.processes import NoProcess, Pipeline, Stalled, Step, end_with_stages, note, pump, start, stop
from orchestrator.time_trace import Times
from stages.plumbing.chain import MIDDLE, NAMES, check_stream, next_stage, stage
from stages.plumbing.files import why, write_file
from stages.plumbing.in_process import run_in_process
from stages.plumbing.runner import Context, Flags, Stage, read_upto, run_stage, select, set_limit

if TYPE_CHECKING:
    from orchestrator.reuse import Reuse
    from stages.plumbing.observe import Seen

FAILED = 255  # ptxas's exit code for every failure
MOST = 1 << 29  # bytes of one input: what a stream's record may hold, and memory for it, end not far beyond
SMALL = 1 << 16  # bytes of PTX, or of a stream, that this process works on itself
#: --stage-option keys of every stage.
_SHARED = ("only", "skip", "limit", "stop-after", "start-after", "upto", "dump-after", "verify", "stats")
#: Options that ask to see more than the output (:mod:`orchestrator.seen`).
_TELLING = ("time", "fdevice-time-trace", "stats-json", "remarks", "report")


def _say(severity: str, message: str) -> None:
    sys.stderr.write(Diagnostic(severity, message).render() + "\n")


class Run:
    """One invocation."""

    def __init__(self, cl: CommandLine) -> None:
        self.cl = cl
        self.began = time.perf_counter()
        self.target = cl.values.get("gpu-name", "sm_75").replace("compute_", "sm_").replace("lto_", "sm_")
        self.parse_only = not cl.values.get("gpu-name", "sm_75").startswith("sm_")
        self.options: dict[str, AttrValue] = stream_options(cl, self.target)
        self.given: list[tuple[str, bytes]] | None = None  # the inputs, once they are read
        self.timeout = float(cl.number("stage-timeout", 600))
        self.foreign = self._foreign()
        self.flags = self._flags()
        self.times = Times()
        self.resident = False
        self.ahead: Pipeline | None = None  # the chain that was started together with parse
        self.stop_after = cl.values.get("stop-after", "")
        if self.stop_after and self.stop_after not in NAMES:
            raise UsageError(f"'{self.stop_after}' is no stage; they are {', '.join(NAMES)}")
        self.telling = any(name in cl.values for name in _TELLING) or "compiler-stats" in cl.lists
        if self.telling:
            from orchestrator.seen import observed

            looks = observed(cl)
            if looks:
                self.options["observe"] = looks
        self.reuse = self._reuse()

    def _reuse(self) -> Reuse | None:
        if "observe" in self.options or not (self.cl.values.get("cache") or os.environ.get("ORIAS_CACHE")):
            return None
        from orchestrator.reuse import reuse_of

        return reuse_of(self.cl)

    def _foreign(self) -> dict[str, str]:
        out = {}
        for text in self.cl.lists.get("stage", []):
            name, eq, command = text.partition("=")
            if not eq or not command or name not in NAMES[1:]:
                raise UsageError(f"'{text}': expected NAME=COMMAND with NAME one of {', '.join(NAMES[1:])}")
            out[name] = command
        return out

    def _flags(self) -> dict[str, Flags]:
        flags = {s.name: Flags(quiet=True) for s in MIDDLE}
        for text in self.cl.lists.get("stage-option", []):
            name, colon, rest = text.partition(":")
            key, _, value = rest.partition("=")
            if not colon or name not in flags:
                raise UsageError(f"'{text}': expected NAME:KEY=VALUE with NAME one of {', '.join(flags)}")
            f = flags[name]
            if key in ("only", "skip", "dump-after"):
                setattr(f, key.replace("-", "_"), tuple(value.split(",")))
            elif key in ("stop-after", "start-after"):
                setattr(f, key.replace("-", "_"), value)
            elif key in ("limit", "upto"):
                try:
                    if key == "limit":
                        set_limit(f, value)
                    else:
                        f.upto = read_upto(value)
                except StreamError as e:
                    raise UsageError(str(e)) from None
            elif key in ("verify", "stats"):
                setattr(f, key, True)
            elif key in stage(name).knobs:
                f.extra[key] = value
            else:
                raise UsageError(
                    f"'{text}': stage {name} has no option '{key}'; it has {', '.join((*_SHARED, *stage(name).knobs))}"
                )
        for text in self.cl.lists.get("pass", []):
            name, colon, rest = text.partition(":")
            if not colon or name not in flags:
                raise UsageError(f"'{text}': expected STAGE:after=NAME:WHAT with STAGE one of {', '.join(flags)}")
            flags[name].added = (*flags[name].added, rest)
        for s in MIDDLE:
            if flags[s.name] != Flags(quiet=True):
                try:
                    select(s, s.passes(), Context(Header("", ""), None, flags[s.name]))
                except StreamError as e:
                    raise UsageError(str(e)) from None
        return flags

    # -------------------------------------------------------------- the chain

    def sources(self) -> list[tuple[str, bytes]]:
        """(name, bytes) of every input, in order."""
        if self.given is not None:
            return self.given
        out: list[tuple[str, bytes]] = []
        for text in self.cl.lists.get("input-as-string", []):
            out.append(("application ptx input", text.encode("utf-8", "surrogateescape")))
        for path in self.cl.inputs:
            try:
                with sys.stdin.buffer if path == "-" else open(path, "rb") as f:
                    data = f.read(MOST + 1)
            except (OSError, ValueError):  # a name with a NUL in it is a ValueError
                _say("fatal", f"Input file '{path}' could not be opened")
                raise Abort("Ptx assembly aborted due to errors") from None
            if len(data) > MOST:
                raise Abort(f"Input file '{path}' has more than {MOST} bytes, which is not supported by orias")
            out.append(("<stdin>" if path == "-" else path, data))
        self.given = out
        return out

    def parse(self) -> bytes:
        """The stream at level `ptx`."""
        from stages.plumbing.front_end import parse_to_stream

        sources = self.sources()
        if self._here_suffices(sum(len(text) for _, text in sources)):
            from orchestrator.one_process import parse_here

            data = self._here("parse", lambda say: parse_here(sources, self.target, self.options, say))
            if data is not None:
                return data

        def body(inp: BinaryIO, out: BinaryIO) -> int:
            return parse_to_stream(sources, self.target, self.options, out.write, out.flush)

        t = time.perf_counter()
        pl = start([Step("parse", body)], b"")
        if self._one_chain(sources):
            self.ahead = start([Step(_joined(MIDDLE), self._import_and_run)], b"")
        elif not self.foreign and not self.cl.flag("exec"):
            import_stages(self.target)
            from stages.lower.rules.table import rules

            rules()
        import stages.elf.link  # noqa: F401 - meanwhile

        self._run([pl])
        self.times.took("parse", t)
        sys.stderr.write(pl.processes[0].said)
        self._judge(pl, reported=True)
        return bytes(pl.result)

    def _here_suffices(self, size: int) -> bool:
        """Whether this process runs stages itself: there is little to do, and no one waits for what processes of their
        own are for, a line of progress and a limit of time."""
        own = self.cl.flag("exec") or "stage-timeout" in self.cl.values
        return size <= SMALL and not own and (self.resident or not sys.stderr.isatty())

    def _here(self, name: str, work: Callable[[Callable[[str], object]], tuple[int, bytes]]) -> bytes | None:
        """What stages make in this process; None where they broke. Raises Abort where `parse` refuses."""
        from orchestrator.one_process import here

        t = time.perf_counter()
        got = here(work, refuses=name == "parse")
        if got is None:
            return None
        code, said, made = got
        self.times.took(name, t)
        sys.stderr.write(said)
        if code and name == "parse":
            raise Abort("")
        return made

    def _import_and_run(self, inp: BinaryIO, out: BinaryIO) -> int:
        """All stages between `parse` and `elf`; what they need is imported before the stream is there."""
        import_stages(self.target)
        return run_in_process(MIDDLE, inp, out, note)

    def _jobs(self) -> int:
        return self.cl.number("jobs", self.cl.number("split-compile", 0)) or os.cpu_count() or 1

    def _one_chain(self, sources: list[tuple[str, bytes]]) -> bool:
        """Whether one process will run all stages between `parse` and `elf`: no option asks to see or change anything
        between them, and there is one unit (or one job)."""
        if (
            self.cl.flag("exec")
            or self.parse_only
            or self.stop_after not in ("", "elf")
            or "save-temps" in self.cl.values
        ):
            return False
        if not self._usual():
            return False
        words = (b".entry", b".func") if self.options.get("compile-only") else (b".entry",)
        return self._jobs() == 1 or sum(text.count(word) for _, text in sources for word in words) < 2

    def _usual(self) -> bool:
        """Whether all stages between `parse` and `elf` are ours, as they are without options."""
        return not any(s.name in self.foreign or self.flags[s.name] != Flags(quiet=True) for s in MIDDLE)

    def middle(self, data: bytes, stages: list[Stage]) -> bytes:
        """Run stages over a stream; several chains at once when there are several units."""
        if self.reuse is None and self._here_suffices(len(data)) and self._usual() and len(stages) == len(MIDDLE):
            from orchestrator.one_process import middle_here

            made = self._here(_joined(stages), lambda say: middle_here(data))
            if made is not None:
                return made
        t = time.perf_counter()
        frames = list(wire.frames(io.BytesIO(data)))
        units = [d for tag, d in frames if tag == "unit"]
        head = [(tag, d) for tag, d in frames if tag != "unit"]
        keys, out = self._known_units(stages, head, units)
        todo = [i for i, d in enumerate(out) if not d]
        ahead, self.ahead = self.ahead, None
        jobs = max(1, min(self._jobs() if ahead is None else 1, len(todo)))
        hands: list[list[int]] = [[] for _ in range(jobs)]
        load = [0] * jobs
        for i in sorted(todo, key=lambda i: (-len(units[i]), i)):
            j = load.index(min(load))
            hands[j].append(i)
            load[j] += len(units[i])
        pipelines = []
        for hand in hands:
            hand.sort()
            feed = io.BytesIO()
            w = wire.Writer(feed.write)
            for tag, d in head:
                w.frame(tag, d)
            for i in hand:
                w.frame("unit", units[i])
            w.end()
            if ahead is None:
                pipelines.append(start(self._steps(stages), feed.getvalue()))
            else:
                ahead.feed = memoryview(feed.getvalue())
                pipelines.append(ahead)
        self._run(pipelines, len(todo))
        new_head: list[tuple[str, bytes]] = []
        for pl, hand in zip(pipelines, hands, strict=True):
            bad = pl.failed()
            broken = bad is not None and bad.hard
            for p in pl.processes:
                if not broken or p is bad:  # what its victims say of the cut stream is no news
                    sys.stderr.write(p.said)
            last = self._called(stages[-1].name)
            self._judge(pl)
            try:
                got = list(wire.frames(io.BytesIO(bytes(pl.result))))
                if stages[-1].name in self.foreign:
                    level = wire.header_from_wire(wire.unpack(got[0][1])).level
                    if level != stages[-1].writes:
                        expected = f"expected '{stages[-1].writes}'; no output is written"
                        raise Abort(f"{last} wrote level '{level}', {expected}")
                    check_stream(got, stages[-1].writes, self.target, [("unit", units[i]) for i in hand])
            except StreamError as e:
                raise Abort(f"{last} wrote no valid stream ({e}); no output is written") from None
            results = [d for tag, d in got if tag == "unit"]
            if len(results) != len(hand):
                raise Abort(f"{last} wrote {len(results)} units of {len(hand)}; no output is written")
            for i, d in zip(hand, results, strict=True):
                out[i] = d
                if self.reuse is not None and keys and not any(p.said for p in pl.processes):
                    self.reuse.keep_unit(keys[i], d)
            new_head = [(tag, d) for tag, d in got if tag != "unit"]
        merged = io.BytesIO()
        w = wire.Writer(merged.write)
        for tag, d in new_head:
            w.frame(tag, d)
        for d in out:
            w.frame("unit", d)
        w.end()
        self.times.took(_joined(stages), t)
        return merged.getvalue()

    def _known_units(
        self, stages: list[Stage], head: list[tuple[str, bytes]], units: list[bytes]
    ) -> tuple[list[bytes], list[bytes]]:
        """The cache's keys of units, and the records that it has for them at the level that ``stages`` write (empty
        where it has none). No keys if the cache doesn't know what ``stages`` do."""
        none = [b""] * len(units)
        if self.reuse is None or not self._usual() or [s.name for s in stages] != [s.name for s in MIDDLE]:
            return [], none
        keys = self.reuse.unit_keys(head, units)
        return keys, [self.reuse.cache.get(key) or b"" for key in keys]

    def elf(self, data: bytes) -> bytes:
        """The cubin. `elf` of ours works in this process: little is left to do, on units that the other stages made."""
        from stages.plumbing.back_end import elf_from_stream

        t = time.perf_counter()
        if "elf" not in self.foreign and not self.cl.flag("exec"):
            parts: list[bytes] = []
            code = elf_from_stream(io.BytesIO(data), parts.append)
            self.times.took("elf", t)
            if code:
                raise Abort(f"stage elf exit code {code}; no output is written" if code > 1 else "")
            return b"".join(parts)
        step = (
            Step("elf", shell=self.foreign["elf"]) if "elf" in self.foreign else Step("elf", command=_executable("elf"))
        )
        pl = start([step], data)
        self._run([pl])
        self.times.took("elf", t)
        sys.stderr.write(pl.processes[0].said)
        self._judge(pl, reported="elf" not in self.foreign)
        if "elf" in self.foreign and pl.result[:4] != b"\x7fELF":
            raise Abort(
                f"{self._called('elf')} wrote {'no ELF file' if pl.result else 'nothing'}; no output is written"
            )
        return bytes(pl.result)

    def _called(self, name: str) -> str:
        """A stage as messages name it: by its command too where that is the user's."""
        return f"stage {name} ('{self.foreign[name]}')" if name in self.foreign else f"stage {name}"

    def _steps(self, stages: list[Stage]) -> list[Step]:
        """Neighbours that are ours and have no flags work in one process; the others each in their own."""
        steps: list[Step] = []
        ours: list[Stage] = []
        for s in stages:
            if s.name in self.foreign or self.cl.flag("exec") or self.flags[s.name] != Flags(quiet=True):
                steps += [*self._together(ours), self._step(s)]
                ours = []
            else:
                ours.append(s)
        return steps + self._together(ours)

    def _together(self, stages: list[Stage]) -> list[Step]:
        if len(stages) < 2:
            return [self._step(s) for s in stages]
        return [Step(_joined(stages), body=lambda inp, out: run_in_process(stages, inp, out, note))]

    def _step(self, s: Stage) -> Step:
        if s.name in self.foreign:
            return Step(s.name, shell=self.foreign[s.name])
        if self.cl.flag("exec"):
            return Step(s.name, command=_executable(s.name))
        flags = self.flags[s.name]
        return Step(s.name, body=lambda inp, out: run_stage(s, inp, out, flags, trusted=True))

    def _run(self, pipelines: list[Pipeline], kernels: int = 0) -> None:
        """Run pipelines to their end, with a line of progress where a person waits."""
        progress = None
        if sys.stderr.isatty():
            from orchestrator.progress import Progress

            progress = Progress(kernels, self.began, MIDDLE[0].name)
        try:
            pump(pipelines, self.timeout, progress)
        except Stalled as e:
            raise Abort(f"stage {e} made no progress for {self.timeout:g} seconds and was stopped") from None
        finally:
            if progress is not None:
                progress.clear()

    def _judge(self, pl: Pipeline, reported: bool = False) -> None:
        """Raise Abort for a stage that broke. Exit code 1 of a middle stage is no breakage: the unit's diagnostics are
        in the stream."""
        bad = pl.failed()
        if bad is not None and bad.hard:
            raise Abort(f"{self._called(bad.at)} {bad.failure}; no output is written")
        if bad is not None and reported:
            raise Abort("")
        if bad is not None and not pl.result:
            raise Abort(
                f"{self._called(bad.at)} "
                f"{'gave up' if bad.at not in self.foreign else bad.failure + ' and no stream'}; no output is "
                "written"
            )

    # -------------------------------------------------------------- what the user asked for

    def start_stream(self) -> tuple[bytes, int]:
        """The stream to begin with and the index in NAMES of the stage that reads it next."""
        path = self.cl.values.get("start-from")
        if path is None:
            return self.parse(), 1
        try:
            with open(path, "rb") as f:
                data = f.read()
        except (OSError, ValueError):
            raise Abort(f"Input file '{path}' could not be opened") from None
        try:
            frames = list(wire.frames(io.BytesIO(data)))
            header: Header = wire.header_from_wire(wire.unpack(frames[0][1]))
            check_stream(frames, header.level)
            if header.level == "ori" and not self.cl.flag("allow-undefined"):
                self._refuse_undefined(path, frames)
        except StreamError as e:
            raise Abort(f"'{path}': {e}") from None
        return data, next_stage(header)

    @staticmethod
    def _refuse_undefined(path: str, frames: Sequence[tuple[str, bytes]]) -> None:
        """Raise Abort for a stream whose effects depend on words that nothing defines: a definition was lost."""
        from stages.check.undefined import surely_undefined

        for tag, body in frames:
            for found in surely_undefined(wire.unit_from_wire(wire.unpack(body), "ori")) if tag == "unit" else ():
                raise Abort(f"'{path}': {found}; orias-check prints all, --allow-undefined takes the stream as it is")

    def temp(self, index: int, data: bytes) -> None:
        """Keep a stream under --save-temps: ``N.stage.ori``."""
        folder = self.cl.values.get("save-temps")
        if folder is not None:
            self.write(os.path.join(folder, f"{index}.{NAMES[index]}.ori"), data)

    def write(self, path: str, data: bytes) -> None:
        """Write a file; raises Abort."""
        try:
            write_file(path, data)
        except (OSError, ValueError) as e:
            reason = why(e) if isinstance(e, OSError) else ""
            raise Abort(
                f"Output file '{path}' could not be written: {reason}"
                if reason
                else f"Output file '{path}' could not be opened"
            ) from None

    def _groups(self, stages: list[Stage]) -> list[list[Stage]]:
        """The stages that run as one pipeline: all of them, except that a foreign one is alone (what it is given and
        what it writes is judged before others see it), and each
        does where the streams between them are kept."""
        out: list[list[Stage]] = []
        for s in stages:
            alone = "save-temps" in self.cl.values or s.name in self.foreign
            if not out or alone or out[-1][-1].name in self.foreign:
                out.append([s])
            else:
                out[-1].append(s)
        return out

    def execute(self) -> None:
        """Everything; raises Abort."""
        if self.reuse is None:
            self._compile()
            return
        try:
            self._cached(self.reuse)
        finally:
            self.reuse.cache.trim()

    def _cached(self, reuse: Reuse) -> None:
        """Everything, by the cache: a whole result is taken from there, or kept."""
        from orchestrator.reuse import joined, plain, split
        from stages.plumbing.console import recorded

        if not plain(self.cl):
            self._compile()
            return
        key = reuse.whole_key(self.cl, self.sources())
        found = reuse.cache.get(key)
        if found is not None:
            text, data = split(found)
            sys.stderr.write(text)
            self.write(self.output, data)
            return
        said = recorded()
        data = self._compile()
        if said is not None and data:
            reuse.cache.put(key, joined(said, data))

    @property
    def output(self) -> str:
        """The name of the output file."""
        return self.cl.values.get("output-file", "elf.o")

    def _compile(self) -> bytes:
        """Everything, without a look at whole results in the cache; what was written as the output."""
        cl = self.cl
        folder = cl.values.get("save-temps")
        if folder is not None:
            try:
                os.makedirs(folder, exist_ok=True)
            except (OSError, ValueError):
                raise Abort(f"Output file '{folder}' could not be opened") from None
        data, at = self.start_stream()
        if at == 1:
            self.temp(0, data)
        if self.parse_only and not self.stop_after:
            return b""
        stop = NAMES.index(self.stop_after) if self.stop_after else len(NAMES) - 1
        last_middle = min(stop, len(MIDDLE))
        todo = [stage(n) for n in NAMES[at : last_middle + 1]]
        groups = self._groups(todo)
        for group in groups:
            data = self.middle(data, group)
            at = NAMES.index(group[-1].name)
            self.temp(at, data)
        seen: list[Seen] = []
        if "observe" in self.options:
            from stages.plumbing.observe import taken

            data, seen = taken(data)
        encoded = data
        data = self.elf(data) if stop == len(NAMES) - 1 else data
        self.write(self.output, data)
        if self.telling:
            from orchestrator.seen import tell

            tell(self, seen, encoded, data)
        return data


def _executable(name: str) -> list[str]:
    """The command that runs a stage's executable: next to this Python if installed there, else as a module. Nothing is
    imported from the current folder."""
    path = os.path.join(os.path.dirname(sys.executable), f"orias-{name}")
    if os.access(path, os.X_OK):
        return [path]
    return own_program(f"stages.{name}.__main__", "main", "main()", f"sys.argv[0] = 'orias-{name}'; ")


def _joined(stages: Sequence[Stage]) -> str:
    return "+".join(s.name for s in stages)


def run(cl: CommandLine, resident: bool = False) -> int:
    """Run one invocation; returns the exit code. ``resident``: this process is warm, and has nothing to lose."""
    job: Run | None = None
    end_with_stages()
    try:
        job = Run(cl)
        job.resident = resident
        for d in cl.messages:
            if cl.flag("warning-as-error") and d.severity == "warning":
                _say("error", d.message)
                raise Abort("")
            if not (cl.flag("disable-warnings") and d.severity == "warning"):
                sys.stderr.write(d.render() + "\n")
        if not cl.flag("disable-warnings"):
            for text in cl.notes:
                _say("warning", text)
        job.execute()
    except UsageError as e:
        _say("fatal", str(e))
        return FAILED
    except Abort as e:
        if str(e):
            _say("fatal", str(e))
        return FAILED
    except NoProcess as e:
        _say("fatal", str(e))
        return FAILED
    except MemoryError:
        _say("fatal", "Memory allocation failure")
        return FAILED
    finally:
        if job is not None and job.ahead is not None:
            stop([job.ahead])
    return 0
