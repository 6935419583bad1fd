"""What --fdevice-time-trace adds to a Chrome trace: the file holds an object with `traceEvents`, to which ptxas
(measured) appends complete events in microseconds: the whole compilation, and its parts in it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from ir_format.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orchestrator.options import CommandLine
    from stages.plumbing.observe import Seen

#: Names of ptxas for what our stages do.
_NAMES = {"parse": "PTX parsing and setup time", "elf": "Post processing"}


class Times(list[tuple[str, float]]):
    """Name and seconds of each part of a compilation; ``spans``: also when it began."""

    def __init__(self) -> None:
        super().__init__()
        self.began = time.perf_counter()
        self.spans: list[tuple[str, float, float]] = []

    def took(self, name: str, begin: float) -> None:
        """Note that a part ends here."""
        spent = time.perf_counter() - begin
        self.append((name, spent))
        self.spans.append((name, begin - self.began, spent))

    def trace(self, cl: CommandLine, seen: Sequence[Seen]) -> bytes:
        """What the file of --fdevice-time-trace holds from now on. Where there is none it is made (ptxas refuses)."""
        from orchestrator.abort import Abort

        path = cl.values["fdevice-time-trace"]
        pid = cl.number("use-trace-pid", 0) if "use-trace-pid" in cl.values else None
        source = os.path.basename(cl.inputs[0]) if cl.inputs else ""
        spent = time.perf_counter() - self.began
        try:
            text = '{"traceEvents":[]}'
            if os.path.lexists(path):
                with open(path, encoding="utf-8", errors="replace") as f:
                    text = f.read()
            after = cl.values.get("ftrace-phase-after", "")
            return extended(text, source, spent, self.spans, pid, after, _nested(seen, self.began)).encode()
        except TraceError:
            raise Abort(f"Input file '{path}' not in expected format") from None
        except (OSError, ValueError):
            raise Abort(f"File '{path}' could not be opened") from None


class TraceError(ValueError):
    """The file holds no trace."""


#: The thread of the first kernel: far from those that others have written into the file.
_KERNELS = 100_000


def _nested(seen: Sequence[Seen], began: float) -> list[dict[str, Any]]:
    """Events of kernels, in them stages, in them passes: a thread of its own for each kernel. Times count from
    ``began``."""
    out: list[dict[str, Any]] = []

    def add(tid: int, name: str, begin: int, spent: int, args: dict[str, Any]) -> None:
        at = begin // 1000 - round(began * 1e6)
        end = (begin + spent) // 1000 - round(began * 1e6)  # rounded alike, so that what is inside stays inside
        out.append({"args": args, "dur": end - at, "name": name, "ph": "X", "tid": tid, "ts": at})

    for k, unit in enumerate(seen):
        tid = _KERNELS + k
        if not unit.passes:
            continue
        begin = min([row.begin for row in unit.passes])
        end = max([row.begin + row.spent for row in unit.passes])
        out.append({"args": {"name": unit.unit}, "name": "thread_name", "ph": "M", "tid": tid, "ts": 0})
        add(tid, unit.unit, begin, end - begin, {"kernel": unit.unit})
        for row in sorted(unit.passes, key=lambda row: (row.begin, -row.spent)):
            args = {"before": row.before, "after": row.after, "rewrites": row.rewrites, "memory KiB": row.memory}
            add(tid, f"{row.stage}/{row.name}" if row.name else row.stage, row.begin, row.spent, args)
    return out


def extended(
    text: str,
    source: str,
    seconds: float,
    spans: Sequence[tuple[str, float, float]],
    pid: int | None,
    after: str,
    nested: Sequence[dict[str, Any]] = (),
) -> str:
    """The trace with our events after the others; ``spans``: name, begin and duration in seconds. ``after``: the event
    whose process, thread and end ours take over. ``nested``: events of kernels, from the beginning of ours."""
    import json  # seldom wanted: every compilation loads this module

    try:
        trace = json.loads(text)
        events: list[dict[str, Any]] = trace["traceEvents"]
        events.extend(())  # raises where it is no list
        begin, process, thread = 0, os.getpid() if pid is None else pid, 0
        for old in events:
            if after and old.get("name") == after:
                begin = int(old["ts"]) + int(old.get("dur", 0))
                process, thread = int(old["pid"]), int(old.get("tid", 0))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise TraceError from None

    def event(name: str, about: str, at: float, duration: float) -> dict[str, Any]:
        return {
            "args": {"name": about},
            "dur": round(duration * 1e6),
            "name": name,
            "ph": "X",
            "pid": process,
            "tid": thread,
            "ts": begin + round(at * 1e6),
        }

    events.append(event("Total PTXAS Time", source, 0, seconds))
    events.extend([event(_NAMES.get(name, f"Stages {name}"), "", at, spent) for name, at, spent in spans])
    events.extend([{**e, "pid": process, "ts": e["ts"] + begin * (e["ph"] == "X")} for e in nested])
    return json.dumps(trace, separators=(",", ":"))
