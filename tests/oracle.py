"""Find and run NVIDIA's tools as black boxes, for tests only.

The product never needs these programs. Tests that do are marked ``@pytest.mark.oracle`` and begin with
``oracle.require("ptxas", "nvdisasm")``, which skips them, with a reason, if a tool is absent.

Tools are searched on PATH first, then in the ``nvidia`` wheels of PyPI.  Those wheels came in two layouts:
``nvidia/cu13/bin/TOOL`` (one folder for a CUDA major version) and ``nvidia/cuda_nvcc/bin/TOOL`` (one folder
for a component); both are searched, in sorted order.

A second ptxas, of release 13.5, has the name ``ptxas-13.5`` here (:mod:`tests.second_oracle` installs it in a separate
folder); unless a test says otherwise, its oracle is the first one.

Results are cached for the life of the process; files are in a temporary folder that is removed at exit.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

#: The tool of the second oracle, its default folder, and the variable that names another.
NEWER = "ptxas-13.5"
NEWER_FOLDER = Path(__file__).parents[1] / ".tox" / NEWER
NEWER_ENV = "ORIAS_PTXAS_13_5"

TOOLS = ("ptxas", "nvcc", "nvdisasm", "cuobjdump", "nvlink")

#: Seconds after which a tool counts as hung.
TIMEOUT_S = 120.0

#: The text that :func:`disasm_words` returns for a word that nvdisasm refuses.
UNDEFINED = ""

#: An instruction word that every SM from 75 on reads as NOP (measured); replaces refused words.
NOP_WORD = 0x000FC000_00000000_00000000_00007918

#: nvdisasm slows down on long raw files and an error costs a whole call, so batches are bounded.
_BATCH_WORDS = 4096


@dataclass(frozen=True, slots=True)
class ToolError:
    """A tool run that failed: exit status (-1 for a time-out), its stderr (or stdout), the command."""

    returncode: int
    stderr: str
    command: tuple[str, ...]

    def __str__(self) -> str:
        return f"{Path(self.command[0]).name}: exit {self.returncode}: {self.stderr.strip()}"


class OracleFailure(RuntimeError):
    """A tool refused input that the caller expected it to accept; carries the :class:`ToolError`."""

    def __init__(self, error: ToolError) -> None:
        super().__init__(str(error))
        self.error = error


@functools.cache
def _wheel_folders() -> tuple[Path, ...]:
    """Every ``bin`` folder of the installed nvidia wheels, sorted."""
    spec = importlib.util.find_spec("nvidia")
    if spec is None or spec.submodule_search_locations is None:
        return ()
    found: list[Path] = []
    for root in spec.submodule_search_locations:
        found += sorted(Path(root).glob("*/bin"))
    return tuple(found)


def tool_for(arch: int | str) -> str:
    """The ptxas that knows an SM: sm_107 came after 13.0."""
    return NEWER if str(arch).startswith("107") else "ptxas"


@functools.cache
def find(name: str) -> Path | None:
    """The path of tool ``name``, or None if it is neither on PATH nor in a wheel."""
    if "/" in name:  # a tool of another release, by its path
        return Path(name) if os.access(name, os.X_OK) else None
    if name == NEWER:
        own = Path(os.environ.get(NEWER_ENV) or NEWER_FOLDER) / "ptxas"
        return own if os.access(own, os.X_OK) else None
    on_path = shutil.which(name)
    if on_path is not None:
        return Path(on_path)
    for folder in _wheel_folders():
        candidate = folder / name
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    return None


def cuda_header(name: str) -> Path | None:
    """A header of the CUDA toolkit, or of its wheels; None if it is absent."""
    nvcc = find("nvcc")
    folders = [nvcc.resolve().parents[1]] if nvcc is not None else []
    folders += [f.parent for f in _wheel_folders()]
    return next((f / "include" / name for f in folders if (f / "include" / name).exists()), None)


def have(name: str) -> bool:
    """Whether tool ``name`` can be run here."""
    return find(name) is not None


def require(*names: str) -> None:
    """Skip the calling test, naming the missing tools, unless all of ``names`` are available."""
    missing = [name for name in names if not have(name)]
    if missing:
        import pytest

        pytest.skip("oracle tool absent: " + ", ".join(missing))


@functools.cache
def _scratch() -> Path:
    folder = tempfile.mkdtemp(prefix="oracle-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _new_path(stem: str, suffix: str) -> Path:
    handle, name = tempfile.mkstemp(prefix=stem + "-", suffix=suffix, dir=_scratch())
    os.close(handle)
    return Path(name)


def run_tool(name: str, *args: str, timeout: float = TIMEOUT_S) -> str | ToolError:
    """Run a tool uncached; its stdout on exit 0, else a :class:`ToolError`.  Raises FileNotFoundError if absent."""
    path = find(name)
    if path is None:
        raise FileNotFoundError(f"oracle tool absent: {name}")
    command = (str(path), *args)
    try:
        done = subprocess.run(command, capture_output=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return ToolError(-1, f"no end after {timeout:g} s", command)
    out = done.stdout.decode("utf-8", "replace")
    err = done.stderr.decode("utf-8", "replace")
    if done.returncode != 0:
        return ToolError(done.returncode, err if err.strip() else out, command)
    return out


def _file_key(path: Path) -> tuple[str, int, int]:
    """A cache key that changes when the file does."""
    status = path.stat()
    return str(path.resolve()), status.st_mtime_ns, status.st_size


@functools.cache
def _ptxas_cached(tool: str, key: tuple[str, int, int], arch: str, opts: tuple[str, ...]) -> Path | ToolError:
    source = Path(key[0])
    out = _new_path(source.stem, ".cubin")
    result = run_tool(tool, f"-arch={arch}", *opts, str(source), "-o", str(out))
    if isinstance(result, ToolError):
        out.unlink(missing_ok=True)
        return result
    return out


def run_ptxas(ptx_path: Path | str, sm: int | str, *opts: str, tool: str = "ptxas") -> Path | ToolError:
    """Compile a PTX file; ``sm`` is 90, "90a", "sm_90" or "compute_90".  The cubin's path, or the error."""
    text = str(sm)
    arch = text if "_" in text else f"sm_{text}"
    return _ptxas_cached(tool, _file_key(Path(ptx_path)), arch, opts)


def compile_ptx(ptx_text: str, sm: int | str, *opts: str, tool: str = "ptxas") -> Path | ToolError:
    """:func:`run_ptxas` for PTX text."""
    return run_ptxas(_text_file(ptx_text), sm, *opts, tool=tool)


@functools.cache
def _text_file(text: str) -> Path:
    path = _new_path("text", ".ptx")
    path.write_text(text)
    return path


@functools.cache
def _cubin_tool_cached(tool: str, key: tuple[str, int, int], opts: tuple[str, ...]) -> str | ToolError:
    return run_tool(tool, *opts, key[0])


def _cubin_tool(tool: str, cubin: Path | str, opts: tuple[str, ...]) -> str:
    result = _cubin_tool_cached(tool, _file_key(Path(cubin)), opts)
    if isinstance(result, ToolError):
        raise OracleFailure(result)
    return result


def nvdisasm(cubin: Path | str, *opts: str) -> str:
    """nvdisasm's text for a cubin. Raises :class:`OracleFailure` if it refuses the file."""
    return _cubin_tool("nvdisasm", cubin, opts)


def cuobjdump(cubin: Path | str, *opts: str) -> str:
    """cuobjdump's text for a cubin (``-sass``, ``-elf``, ``-res-usage``).  Raises :class:`OracleFailure`."""
    return _cubin_tool("cuobjdump", cubin, opts)


# --- raw words -------------------------------------------------------------------------------------------------

_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s*(.*?)\s*;?\s*$")
_BAD_AT = re.compile(r"at address 0x([0-9a-f]+)")
_WORD_LIMIT = 1 << 128


def _words_once(words: list[int], binary_sm: str) -> list[str] | ToolError:
    """One nvdisasm call over all words; texts by position."""
    path = _new_path("words", ".bin")
    path.write_bytes(b"".join(word.to_bytes(16, "little") for word in words))
    result = run_tool("nvdisasm", "-b", binary_sm, "-ndf", str(path))
    path.unlink(missing_ok=True)
    if isinstance(result, ToolError):
        return result
    texts = [UNDEFINED] * len(words)
    for line in result.splitlines():
        match = _LINE.match(line)
        if match is not None:
            texts[int(match[1], 16) // 16] = match[2]
    return texts


def _words_batch(words: list[int], binary_sm: str) -> list[str]:
    """Texts of all words; refused ones are replaced by a NOP, and the call is repeated until it succeeds.

    nvdisasm names the addresses of all refused words of a file (measured, 13.5); it refuses a zero word without an
    address. If neither helps, the batch is halved; each word keeps its address by NOPs before it.
    """
    todo = list(words)
    bad: set[int] = set()
    while True:
        result = _words_once(todo, binary_sm)
        if not isinstance(result, ToolError):
            return [UNDEFINED if i in bad else text for i, text in enumerate(result)]
        found = {i for i in (int(at, 16) // 16 for at in _BAD_AT.findall(result.stderr)) if i < len(todo)} - bad
        found = found or {i for i, word in enumerate(todo) if word == 0}
        if not found:
            index = _find_bad(todo, binary_sm)
            if index < 0:
                raise OracleFailure(result)
            found = {index}
        bad |= found
        for i in found:
            todo[i] = NOP_WORD


def _find_bad(words: list[int], binary_sm: str) -> int:
    """The index of one refused word by halving, or -1 if each half alone is accepted."""
    low, high = 0, len(words)
    while high - low > 1:
        middle = (low + high) // 2
        first = [NOP_WORD] * low + words[low:middle]
        if isinstance(_words_once(first, binary_sm), ToolError):
            high = middle
        else:
            low = middle
    alone = [NOP_WORD] * low + words[low:high]
    return low if isinstance(_words_once(alone, binary_sm), ToolError) else -1


def disasm_batches(words: list[int], sm: int | str, batch: int) -> list[str]:
    """Like :func:`disasm_words` with ``batch`` words per call, without caching. Word i is at address
    ``16 * (i % batch)``."""
    binary_sm = "SM" + str(sm).removeprefix("sm_")
    return [
        text for start in range(0, len(words), batch) for text in _words_batch(words[start : start + batch], binary_sm)
    ]


@functools.cache
def _disasm_cached(words: tuple[int, ...], sm: str) -> tuple[str, ...]:
    return tuple(disasm_batches(list(words), sm, _BATCH_WORDS))


def disasm_words(words: Iterable[int], sm: int | str) -> list[str]:
    """nvdisasm's text of raw 128-bit words (no trailing semicolon), :data:`UNDEFINED` for each it refuses.

    Word i is at address 16*i (modulo 65536), on which a relative branch's text depends. ``sm`` is 90, "90a" or "sm_90".
    A batch costs 0.2 s, and the same again if words are refused. Raises ValueError for a word out of range and
    :class:`OracleFailure` if nvdisasm fails for another reason.
    """
    items = tuple(words)
    for word in items:
        if not 0 <= word < _WORD_LIMIT:
            raise ValueError(f"not a 128-bit word: {word:#x}")
    return list(_disasm_cached(items, str(sm)))


def text_words(cubin: Path | str, section: str) -> list[int]:
    """The instruction words of one section (``.text.NAME``) of a 64-bit ELF file.  Raises KeyError if absent."""
    import struct

    data = Path(cubin).read_bytes()
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names_index = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(count)]
    names_at = headers[names_index][4]
    for header in headers:
        start = names_at + header[0]
        name = data[start : data.index(b"\0", start)].decode()
        if name == section:
            body = data[header[4] : header[4] + header[5]]
            return [int.from_bytes(body[i : i + 16], "little") for i in range(0, len(body), 16)]
    raise KeyError(section)
