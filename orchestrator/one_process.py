"""Stages inside the process of a command, where the input is small: a process for them would cost more than their work.
What they say is held back until they end, so that nothing is lost where they break. The caller then runs them again in
a process of their own, whose end it reports."""

from __future__ import annotations

import io
import signal
from collections.abc import Callable, Sequence

from ir_format.model import AttrValue
from ir_format.typed import Final

Say = Callable[[str], object]
_LONGEST: Final = 60.0  # seconds; after them something is wrong, which a process of its own survives


class _TooLong(Exception):
    """The stages took longer than a small input takes."""


def _too_long(number: int, frame: object) -> None:
    raise _TooLong


def here(work: Callable[[Say], tuple[int, bytes]], refuses: bool) -> tuple[int, str, bytes] | None:
    """The exit code, the messages and the result of ``work``; None where it broke. ``refuses``: exit code 1 without a
    result is an answer."""
    from contextlib import redirect_stderr

    said = io.StringIO()
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, _LONGEST)
    try:
        with redirect_stderr(said):
            code, data = work(said.write)
    except Exception:
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    if code > 1 or (code == 1 and not data and not refuses):
        return None
    return code, said.getvalue(), data


def parse_here(
    sources: Sequence[tuple[str, bytes]], target: str, options: dict[str, AttrValue], say: Say
) -> tuple[int, bytes]:
    """The stream at level `ptx`."""
    from stages.plumbing.front_end import parse_to_stream

    parts: list[bytes] = []
    own = dict(options)  # parse adds to them
    return parse_to_stream(sources, target, own, parts.append, say=say), b"".join(parts)


def middle_here(data: bytes) -> tuple[int, bytes]:
    """The stream at level `encoded`."""
    from stages.plumbing.chain import MIDDLE
    from stages.plumbing.in_process import run_in_process

    out = io.BytesIO()
    return run_in_process(MIDDLE, io.BytesIO(data), out, lambda name: None), out.getvalue()


def warm() -> None:
    """Import what any compile needs, for a server, whose jobs are forks of it."""
    import stages.elf.link
    import stages.elf.report
    import stages.parse.sources
    import stages.plumbing.back_end
    import stages.plumbing.front_end  # noqa: F401
    from orchestrator.preload import import_stages
    from stages.lower.rules.table import rules
    from stages.optimize.manager import import_late

    import_stages("sm_90")
    rules()
    import_late()
