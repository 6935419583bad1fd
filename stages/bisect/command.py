"""What the command line does: make the stream, choose the judge, search, print, keep."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

from ir_format import wire
from ir_format.diag import OriasError
from ir_format.model import AttrValue
from ir_format.record import Record
from stages.bisect.bisect import Guilt, Unfit, bisect, report
from stages.bisect.chain import Chain
from stages.bisect.judges import Command, Cosim
from stages.bisect.search import Verdict
from stages.check.command import read
from stages.plumbing.files import write_file
from stages.plumbing.front_end import parse_to_stream


class Request(Record, frozen=True):
    """The command line."""

    file: Path
    test: str
    arch: str
    level: int
    options: tuple[str, ...]
    kernels: tuple[str, ...]
    seeds: int
    seconds: float
    keep: Path | None


class Refusal(OriasError):
    """The input can't be used; the text says why."""


def _value(text: str) -> AttrValue:
    return int(text) if text.lstrip("-").isdigit() else {"true": 1, "false": 0}.get(text, text)


def chain_of(request: Request, data: bytes) -> Chain:
    """The chain behind PTX text or a saved stream. Raises OriasError."""
    try:
        next(wire.frames(io.BytesIO(data)))
    except OriasError:
        pass
    else:
        if not request.test:
            raise Refusal("a stream has no PTX to be compared with: give a command with --test")
        return Chain(data)
    options: dict[str, AttrValue] = {"opt-level": request.level}
    if not request.test:
        options["fmad"] = 0  # so that results are what the PTX says
    for text in request.options:
        key, eq, value = text.partition("=")
        if not eq or not key:
            raise Refusal(f"'{text}': expected KEY=VALUE")
        options[key] = _value(value)
    out, said = io.BytesIO(), io.StringIO()
    if parse_to_stream([(str(request.file), data)], request.arch, options, out.write, say=said.write):
        raise Refusal(said.getvalue().strip())
    return Chain(out.getvalue(), saved=False)


def keep(folder: Path, guilt: Guilt) -> None:
    """Write the two cubins and the two streams. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in (
        ("right.cubin", guilt.right),
        ("wrong.cubin", guilt.wrong),
        ("right.ori", guilt.before),
        ("wrong.ori", guilt.after),
    ):
        if data:
            write_file(str(folder / name), data)


def run_file(request: Request, say: Callable[[str], object]) -> int:
    """Search and print what was found. 0: found, 1: the cubin is right, 2: can't be judged."""
    try:
        data = read(request.file)
        chain = chain_of(request, data)
        judge = (
            Command(request.test, request.seconds)
            if request.test
            else Cosim(data.decode("latin-1"), request.arch, request.kernels, request.seeds)
        )
        guilt = bisect(chain, judge, say)
        for line in report(chain, guilt, str(request.file)):
            print(line)
        if request.keep is not None:
            keep(request.keep, guilt)
    except Unfit as e:
        sys.stderr.write(f"orias-bisect: {e}\n")
        return 1 if e.verdict is Verdict.RIGHT else 2
    except OSError as e:
        sys.stderr.write(f"orias-bisect: {e.filename or request.keep or request.file}: {e.strerror}\n")
        return 2
    except OriasError as e:
        sys.stderr.write(f"orias-bisect: {e}\n")
        return 2
    return 0
