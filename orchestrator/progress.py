"""The progress line: kernels done, the stage at work, the time left. It is shown only on a terminal,
once a compile has taken two seconds, and is gone when something else is printed."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ir_format.typed import Final, TextIO
from orchestrator.processes import END, MARK, Pipeline

AFTER: Final = 2.0  # seconds of silence
EACH: Final = 0.25  # seconds between two lines
_WIDTH: Final = 79
CLEAR: Final = "\r" + " " * _WIDTH + "\r"


class Progress:
    """The line of one run of pipelines, which work on ``total`` kernels (0: not known yet)."""

    def __init__(self, total: int, began: float, first: str, out: TextIO | None = None) -> None:
        # Not sys.stderr, which may keep what is written for the cache.
        self.out = open(2, "w", closefd=False) if out is None else out
        self.total = total
        self.began = began
        self.started = time.perf_counter()
        self.mark = MARK + first.encode() + END
        self.last = 0.0
        self.shown = False

    def __call__(self, pipelines: Sequence[Pipeline]) -> None:
        """Show the state of the pipelines, if it is time to."""
        now = time.perf_counter()
        if now - self.began < AFTER or now - self.last < EACH:
            return
        self.last = now
        self.shown = True
        self.out.write(CLEAR + self.text(pipelines, now)[:_WIDTH])
        self.out.flush()

    def text(self, pipelines: Sequence[Pipeline], now: float) -> str:
        """The line."""
        busy = [p for pl in pipelines for p in pl.processes if p.status is None]
        stages = ", ".join(dict.fromkeys(p.at for p in busy))
        if not self.total:
            return f"orias: {stages}, {now - self.began:.0f} s"
        begun = sum(p.err.count(self.mark) for pl in pipelines for p in pl.processes)
        done = max(0, begun - len(pipelines))
        line = f"orias: {done} of {self.total} kernels, {stages}, {now - self.began:.0f} s"
        if done:
            line += f", about {(now - self.started) * (self.total - done) / done:.0f} s left"
        return line

    def clear(self) -> None:
        """Take the line away."""
        if self.shown:
            self.out.write(CLEAR)
            self.out.flush()
            self.shown = False
