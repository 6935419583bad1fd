"""The chain from a saved stream on, with its optional parts switched on one after another.

Part by part in the order in which they run: the optional passes of the optimizer, the greedy allocator in the place of the naive one, zero pairs, control words of the
tables in the place of the serial ones, order and reuse hints of the scheduler. With none of them the chain is as plain as it can be.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from contextlib import redirect_stderr
from typing import Final

from ir_format import wire
from ir_format.model import Header
from ir_format.record import Record
from orchestrator.api import ChainError, finish
from stages.plumbing.chain import NAMES, next_stage, stage
from stages.plumbing.runner import Flags, Stage, run_stage

_ALLOCATE: Final = "allocate"
_CONTROL: Final = "control"
_REWRITES: Final = re.compile(r"^\w+: rewrites (\d+)$", re.MULTILINE)


class Part(Record, frozen=True):
    """A part that can be left out. ``counted``: it counts its rewrites, so that --limit reaches into it."""

    stage: str
    name: str
    counted: bool

    def __str__(self) -> str:
        return f"{self.stage}: {self.name}"


def header_of(data: bytes) -> Header:
    """The header of a stream. Raises StreamError."""
    _, raw = next(wire.frames(io.BytesIO(data)))
    return wire.header_from_wire(wire.unpack(raw))


def parts_of(stages: Sequence[Stage], opt: int) -> list[Part]:
    """The parts of these stages that an -O level runs, in order."""
    out = []
    for s in stages:
        for p in s.passes():
            if p.required:
                if p.name == _ALLOCATE or (p.name == _CONTROL and opt > 0):
                    out.append(Part(s.name, p.name, False))
            elif opt >= p.min_opt:
                out.append(Part(s.name, p.name, True))
    if opt > 0:  # the control words before the order: `inorder` is a scheduler of its own
        names = [p.name for p in out]
        if _CONTROL in names and "list-schedule" in names[names.index(_CONTROL) - 1 :]:
            at = names.index(_CONTROL)
            out[at - 1 : at + 1] = [out[at], out[at - 1]]
    return out


class Chain:
    """A stream, and cubins made of it."""

    def __init__(self, data: bytes, saved: bool = True) -> None:
        """``saved``: the user has it as a file; else it was made of PTX just now. Raises StreamError for what is no stream."""
        self.data = data
        self.saved = saved
        self.header = header_of(data)
        level = self.header.options.get("opt-level", 3)
        self.opt = min(level, 3) if isinstance(level, int) else 3
        self.stages = [stage(n) for n in NAMES[next_stage(self.header) : -1]]
        if self.stages and self.stages[0].name == "lower":  # has no parts: done once
            self.data = self._run(self.stages.pop(0), data, Flags(quiet=True))[0]
        self.parts = parts_of(self.stages, self.opt)
        self._made: dict[tuple[str, str, bytes], bytes] = {}

    def flags(self, on: int, limit: int | None = None) -> dict[str, Flags]:
        """By stage: the flags that leave out all parts but the first ``on``; ``limit``: how many rewrites the stage of the last of them may apply."""
        given = set(self.parts[:on])
        out = {}
        for s in self.stages:
            off = [p.name for p in self.parts if p.stage == s.name and p not in given]
            f = Flags(quiet=True, skip=tuple(n for n in off if n not in (_ALLOCATE, _CONTROL)))
            if _ALLOCATE in off:
                f.extra["allocator"] = "naive"
            if _CONTROL in off:
                f.extra["scheduler"] = "naive"
            elif s.name == "schedule" and "list-schedule" in off:
                f.extra["scheduler"] = "inorder"
            if limit is not None and self.parts[on - 1].stage == s.name:
                f.limit = limit
            out[s.name] = f
        return out

    def cubin(self, on: int, limit: int | None = None) -> bytes:
        """The cubin with the first ``on`` parts. Raises ChainError."""
        return self.with_flags(self.flags(on, limit))

    def with_flags(self, flags: dict[str, Flags]) -> bytes:
        """The cubin that the stages make under these flags. Raises ChainError."""
        data = self.data
        for s in self.stages:
            key = (s.name, str(flags[s.name]), data)
            if key not in self._made:
                self._made[key] = self._run(s, data, flags[s.name])[0]
            data = self._made[key]
        return finish(data)

    def rewrites(self, on: int) -> int:
        """How many rewrites the stage of the last of ``on`` parts applies up to that part."""
        _, said = self._partly(on, None)
        found = _REWRITES.search(said)
        return int(found[1]) if found else 0

    def stream(self, on: int, limit: int | None) -> bytes:
        """The stream right behind the last of ``on`` parts."""
        return self._partly(on, limit)[0]

    def _partly(self, on: int, limit: int | None) -> tuple[bytes, str]:
        data = self.data
        flags = self.flags(on, limit)
        last = self.parts[on - 1]
        for s in self.stages:
            f = flags[s.name]
            if s.name == last.stage:
                f.stop_after, f.stats = last.name, True
                return self._run(s, data, f)
            data = self._run(s, data, f)[0]
        raise ValueError(f"no stage {last.stage}")

    @staticmethod
    def _run(s: Stage, data: bytes, flags: Flags) -> tuple[bytes, str]:
        out, said = io.BytesIO(), io.StringIO()
        with redirect_stderr(said):
            code = run_stage(s, io.BytesIO(data), out, flags)
        if code not in (0, 1):
            raise ChainError(said.getvalue().strip())
        return out.getvalue(), said.getvalue()
