"""Reuse of earlier results through :mod:`orchestrator.cache`, at two levels.

A whole result is found by the bytes of the input files and the command line: the messages and the cubin, without a
parse. Where that fails, the code of each kernel is found by its record after the parse (names, types and operands of
all that it reaches, no comments, blanks and, unless line tables are wanted, line numbers), so that one changed kernel
is compiled alone. Only what succeeded is kept, and of kernels only what gave rise to no message.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ir_format.typed import Final
from orchestrator.cache import LIMIT, Cache, Unusable, code_state, digest
from orchestrator.conflicts import UsageError
from orchestrator.options import CommandLine, stream_options
from stages.plumbing.files import write_file
from stages.plumbing.version import VERSION

#: Options that change neither the messages nor the cubin.
_ASIDE: Final = frozenset({"output-file", "jobs", "split-compile", "stage-timeout", "jobserver", "tool-name", "cache"})
#: Options whose result is more than messages and a cubin, or may depend on what no key holds.
_APART: Final = frozenset(
    {"save-temps", "start-from", "stop-after", "exec", "time", "compiler-stats-file"}
    | {"stage", "stage-option", "pass", "compiler-stats", "fdevice-time-trace"}
)


#: Options that ask for more than the cache keeps, or whose input can be read once.
_MORE: Final = frozenset({"stats-json", "remarks", "report"})


def folder_of(cl: CommandLine) -> str:
    """The cache that the command line or the environment asks for; '' for none."""
    return cl.values.get("cache", os.environ.get("ORIAS_CACHE", ""))


def reuse_of(cl: CommandLine) -> Reuse | None:
    """The cache that is asked for; None if none is, or with a warning where its folder can't be used."""
    folder = folder_of(cl)
    if not folder:
        return None
    given = os.environ.get("ORIAS_CACHE_SIZE", "")
    try:
        return Reuse(Cache(folder, int(given) if given.isascii() and given.isdigit() else LIMIT))
    except Unusable as e:
        cl.notes.append(f"the cache '{folder}' is not used: {e}")
        return None


class Reuse:
    """The cache as one invocation uses it."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.state = digest(VERSION, code_state())

    def whole_key(self, cl: CommandLine, sources: Sequence[tuple[str, bytes]]) -> bytes:
        """The key of a whole result."""
        values = [f"{k}={v}" for k, v in sorted(cl.values.items()) if k not in _ASIDE]
        lists = [f"{k}={v!r}" for k, v in sorted(cl.lists.items()) if k not in ("input-as-string", "options-file")]
        parts: list[bytes | str] = ["whole", self.state, "\0".join(values), "\0".join(lists)]
        for name, data in sources:
            parts += [name, data]
        return digest(*parts)

    def unit_keys(self, head: Sequence[tuple[str, bytes]], units: Sequence[bytes]) -> list[bytes]:
        """The keys of units of a stream at level `ptx`, whose other records are ``head``."""
        from msgpack import packb

        from ir_format import ptx_wire, wire

        header = dict(wire.unpack(head[0][1], raw_lists=True))
        lined = bool(header["options"].get("generate-line-info"))
        if not lined:
            header["source"] = ""  # only messages and line tables tell it
        module = ptx_wire.shared_by_units(wire.unpack(head[1][1], raw_lists=True))
        common = digest("unit", self.state, packb(header), packb(module))
        if lined:
            return [digest(common, "lined", data) for data in units]
        return [digest(common, packb(ptx_wire.without_lines(wire.unpack(data, raw_lists=True)))) for data in units]

    def keep_unit(self, key: bytes, data: bytes) -> None:
        """Keep the encoded record of a unit that no stage had anything to say about."""
        from ir_format import wire

        if not wire.unpack(data)["diags"]:
            self.cache.put(key, data)


def plain(cl: CommandLine) -> bool:
    """Whether the result is messages and a cubin, and nothing else."""
    if not cl.values.get("gpu-name", "sm_75").startswith("sm_"):
        return False
    return not any(cl.lists.get(name) or name in cl.values for name in _APART)


def written_from_cache(cl: CommandLine) -> bool:
    """Whether the whole result was in the cache and is written, with its messages. False where there is anything else
    to do or to say: then :mod:`orchestrator.driver` does it all, whose imports take longer than this."""
    usual = plain(cl) and not (cl.values.keys() & _MORE or cl.messages or cl.notes or "-" in cl.inputs)
    if not usual or not folder_of(cl) or not cl.inputs or cl.lists.get("input-as-string") or _says_more(cl):
        return False
    reuse = reuse_of(cl)
    if reuse is None:
        cl.notes.clear()  # the driver finds it once more, and says it
        return False
    sources: list[tuple[str, bytes]] = []
    try:
        for path in cl.inputs:
            with open(path, "rb") as f:
                sources.append((path, f.read()))
        found = reuse.cache.get(reuse.whole_key(cl, sources))
        if found is None:
            return False
        text, cubin = split(found)
        write_file(cl.values.get("output-file", "elf.o"), cubin)
    except (OSError, ValueError):
        return False
    sys.stderr.write(text)
    return True


def _says_more(cl: CommandLine) -> bool:
    """Whether there are warnings, or an error, of options that are read for the stages."""
    try:
        stream_options(cl, cl.values.get("gpu-name", "sm_75"))
        return bool(cl.messages)
    except UsageError:
        return True
    finally:
        cl.messages.clear()  # there were none before


def split(found: bytes) -> tuple[str, bytes]:
    """The messages and the cubin of a whole result."""
    size, _, rest = found.partition(b"\n")
    return rest[: int(size)].decode("utf-8", "surrogateescape"), rest[int(size) :]


def joined(said: Sequence[str], cubin: bytes) -> bytes:
    """A whole result."""
    text = "".join(said).encode("utf-8", "surrogateescape")
    return b"%d\n%b%b" % (len(text), text, cubin)
