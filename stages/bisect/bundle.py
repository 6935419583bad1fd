"""The folder for a bug report: the report's lines, the page, both cubins and streams, the reduced PTX."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ir_format.diag import OriasError
from ir_format.model import AttrValue
from stages.bisect.attempt import Failure
from stages.bisect.bisect import Guilt
from stages.bisect.chain import Chain, parsed
from stages.bisect.judges import Command, Cosim, Crash, Judge, Static


def reduced(source: Any, guilt: Guilt, judge: Judge, say: Callable[[str], object]) -> str:
    """The smallest PTX that still shows the fault; '' if it cannot be reduced. ``source``: a
    :class:`stages.bisect.command.Source`; ``judge``: the one that found it."""
    from stages.reduce.judges import ByChain, ByJudge
    from stages.reduce.reduce import Reducer

    if source.saved:
        return ""
    options: dict[str, AttrValue] = dict(source.run.options)
    text = source.data.decode("latin-1")

    def make(candidate: str) -> tuple[Chain, Judge] | None:
        data = candidate.encode("latin-1", "replace")
        got = parsed("reduced.ptx", data, source.arch, options, source.seconds)
        if isinstance(got, Failure):
            return None
        chain = Chain(got, False, source.run.flags, source.run.foreign, source.seconds)
        return chain, _again(judge, source.seconds)

    shows: Any
    if isinstance(judge, Command | Static):
        shows = ByJudge(make)
    elif isinstance(judge, Cosim) and not judge.strict:
        shows = ByChain(source.arch, options, None, False, source.seconds, source.run.flags, source.run.foreign)
    elif isinstance(judge, Crash):
        shows = ByChain(
            source.arch, options, judge.message, False, source.seconds, source.run.flags, source.run.foreign
        )
    else:
        return ""
    try:
        if isinstance(shows, ByChain):
            shows.begin(text)
        return Reducer(text, source.arch, shows, os.cpu_count() or 1, lambda t: say(f"reducing: {t}")).run()
    except OriasError as e:
        say(f"not reduced: {e}")
        return ""


def _again(judge: Judge, seconds: float) -> Judge:
    """A new judge of the same kind."""
    if isinstance(judge, Static):
        return Static(judge.rule, seconds)
    assert isinstance(judge, Command)
    return Command(judge.command, judge.seconds)


def numbered(path: Path, number: int) -> Path:
    """The path for a culprit's number: the first uses the path as it was given."""
    return path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
