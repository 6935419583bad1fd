"""The chain inside one process, for programs and tests: no pipes, no files, the same bytes as `orias` makes."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from ir_format.diag import OriasError
from ir_format.model import AttrValue
from stages.plumbing.back_end import elf_from_stream
from stages.plumbing.chain import MIDDLE, OPTIONS
from stages.plumbing.front_end import parse_to_stream
from stages.plumbing.runner import Flags, Stage, run_stage


class ChainError(OriasError):
    """The chain refused its input; the text holds the diagnostics as `orias` prints them."""


def compile_ptx(
    text: str | bytes,
    arch: str = "sm_90",
    options: dict[str, AttrValue] | None = None,
    *,
    name: str = "input.ptx",
    flags: dict[str, Flags] | None = None,
    streams: dict[str, bytes] | None = None,
) -> bytes:
    """A cubin from PTX text.

    ``options``: by ptxas's long name (``opt-level``, ``maxrregcount``...). ``flags``: per stage name. ``streams``:
    filled with the stream after each stage. Raises ChainError, also for an option, a stage, a pass or an option of a
    stage that does not exist.
    """
    return compile_sources(
        [(name, text.encode("latin-1", "replace") if isinstance(text, str) else text)], arch, options, flags, streams
    )


def compile_sources(
    sources: Sequence[tuple[str, bytes]],
    arch: str,
    options: dict[str, AttrValue] | None = None,
    flags: dict[str, Flags] | None = None,
    streams: dict[str, bytes] | None = None,
) -> bytes:
    """As :func:`compile_ptx`, for several (name, bytes) sources merged into one module."""
    from contextlib import redirect_stderr

    _known(options or {}, OPTIONS, "option")
    _known(flags or {}, [s.name for s in MIDDLE], "stage")
    said = io.StringIO()
    out = io.BytesIO()
    with redirect_stderr(said):
        if parse_to_stream(sources, arch, {"opt-level": 3, **(options or {})}, out.write, say=said.write):
            raise ChainError(said.getvalue())
        data = out.getvalue()
        if streams is not None:
            streams["parse"] = data
    return finish(data, MIDDLE, flags, streams, said)


def _known(given: Iterable[str], known: Iterable[str], what: str) -> None:
    for name in given:
        if name not in known:
            raise ChainError(f"there is no {what} '{name}'; there are {', '.join(sorted(known))}")


def finish(
    data: bytes,
    stages: Sequence[Stage] = (),
    flags: dict[str, Flags] | None = None,
    streams: dict[str, bytes] | None = None,
    said: io.StringIO | None = None,
) -> bytes:
    """The cubin that ``stages`` and `elf` make of a stream. ``said``: what was said before; without it the stream comes
    from elsewhere, and is checked. Raises ChainError."""
    from contextlib import redirect_stderr

    trusted = said is not None
    said = said or io.StringIO()
    with redirect_stderr(said):
        for stage in stages:
            out = io.BytesIO()
            f = (flags or {}).get(stage.name) or Flags(quiet=True)
            if run_stage(stage, io.BytesIO(data), out, f, trusted) not in (0, 1):
                raise ChainError(said.getvalue())
            data = out.getvalue()
            trusted = True
            if streams is not None:
                streams[stage.name] = data
        parts: list[bytes] = []
        if elf_from_stream(io.BytesIO(data), parts.append):
            raise ChainError(said.getvalue())
    return b"".join(parts)
