"""Stage processes: data through pipes, death, stalling, no process left behind."""

from __future__ import annotations

import os
import time
from typing import BinaryIO

import pytest

from orchestrator.processes import Pipeline, Stalled, Step, pump, start


def upper(inp: BinaryIO, out: BinaryIO) -> int:
    """A stage that converts its input to capitals."""
    out.write(inp.read().upper())
    return 0


def run(*steps: Step, feed: bytes = b"abc", timeout: float = 20) -> Pipeline:
    """Run a pipeline to its end."""
    pl = start(steps, feed)
    pump([pl], timeout)
    return pl


def gone(pid: int) -> bool:
    """True when no such process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_more_data_than_a_pipe_holds_goes_through_forked_and_exec_steps() -> None:
    data = b"x" * 3_000_000
    pl = run(Step("a", upper), Step("b", shell="cat"), Step("c", command=["cat"]), feed=data)
    assert bytes(pl.result) == data.upper()
    assert pl.failed() is None


def test_a_step_that_dies_is_named() -> None:
    pl = run(Step("a", shell="kill -9 $$"), Step("b", shell="cat > /dev/null; exit 1"))
    bad = pl.failed()
    assert bad is not None and bad.name == "a" and "signal 9" in bad.failure


def test_the_first_fault_is_blamed_not_its_victim() -> None:
    pl = run(Step("a", shell="cat"), Step("b", shell="exit 3"), Step("c", shell="exit 1"))
    bad = pl.failed()
    assert bad is not None and bad.name == "b"


def test_a_writer_whose_reader_died_is_not_blamed() -> None:
    for writer in ("kill -PIPE $$", "exit 141"):
        bad = run(Step("a", shell=writer), Step("b", shell="exit 1")).failed()
        assert bad is not None and bad.name == "b"


def test_a_missing_program_is_a_failure_with_its_reason() -> None:
    pl = run(Step("a", command=["/nonexistent/program"]))
    bad = pl.failed()
    assert bad is not None and b"can't run" in bytes(bad.err)


def test_a_stalled_step_is_killed_with_its_children() -> None:
    steps = [Step("slow", shell="sleep 600 & sleep 600"), Step("next", upper)]
    pl = start(steps, b"")
    pids = [p.pid for p in pl.processes]
    t = time.monotonic()
    with pytest.raises(Stalled, match="slow"):
        pump([pl], 0.5)
    assert time.monotonic() - t < 10
    assert all(gone(pid) for pid in pids)


def test_standard_error_is_collected() -> None:
    pl = run(Step("a", shell="echo hello >&2; cat"))
    assert bytes(pl.processes[0].err) == b"hello\n"
