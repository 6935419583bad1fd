"""Random functions (:mod:`functions`) compiled, linked and run: their values against those computed in Python.

    python -m tests.fuzz.links [--seed N] [--count N] [--arch X ...] [-O LEVEL ...] [--what compile|whole|objects|mixed
    ...] [--minutes M] [--keep FOLDER] [--journal FILE]

*compile*: both files as objects, nothing run. *tiny* in addition to any of these: small functions (with *compile*: only
the functions' file). *whole*: one file as a whole program. *objects*: both objects ours, linked by nvlink. *mixed*: the
four pairs of ours and ptxas's. The SM and level change with each module. A run with a journal continues where it was
interrupted, and counts everything in the journal.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ir_format.diag import OriasError
from orchestrator.api import compile_ptx
from stages.simulate import Device, ImageError, SimError
from tests import oracle
from tests.fuzz.functions import THREADS, WORDS, Program, inputs, program, tiny

Words = npt.NDArray[np.uint32]

ARCHES = ("75", "80", "90", "100", "120")
STACK = 16384
#: Prefix of a line that says that both objects were ptxas's: no fault of ours.
THEIRS = "ptxas's, ptxas's"
#: How lines begin in which no code of ptxas has a part.
OURS = ("ours, ours", "whole")


def module(body: str, arch: str) -> str:
    """The text of a file."""
    return (
        f".version {'9.0' if int(arch) >= 100 or arch == '88' else '8.0'}\n.target sm_{arch}\n.address_size 64\n{body}"
    )


def ours(body: str, arch: str, level: int, *, whole: bool = False) -> bytes:
    return compile_ptx(
        module(body, arch), f"sm_{arch}", {"opt-level": level, "fmad": 0, **({} if whole else {"compile-only": 1})}
    )


def theirs(body: str, arch: str, level: int, *, whole: bool = False) -> bytes:
    got = oracle.compile_ptx(module(body, arch), arch, f"-O{level}", "-fmad=false", *(() if whole else ("-c",)))
    if isinstance(got, oracle.ToolError):
        raise OriasError(str(got))
    return got.read_bytes()


def linked(objects: list[bytes], arch: str, folder: str) -> bytes:
    """What nvlink makes of objects."""
    paths = []
    for i, data in enumerate(objects):
        path = Path(folder) / f"{i}.o"
        path.write_bytes(data)
        paths.append(str(path))
    out = Path(folder) / "linked.cubin"
    got = oracle.run_tool("nvlink", "-arch", f"sm_{arch}", *paths, "-o", str(out))
    if isinstance(got, oracle.ToolError):
        raise OriasError(str(got))
    return out.read_bytes()


@lru_cache(maxsize=1)
def _expected(p: Program, seed: int) -> tuple[Words, Words]:
    """What a program reads and writes: the same for every pair of objects."""
    words = inputs(seed)
    return np.array(words, np.uint32), np.array(p.expected(words), np.uint32)


def wrong(image: bytes, p: Program, seed: int) -> str:
    """'' if the kernel writes the expected words, else what is wrong."""
    given, want = _expected(p, seed)
    out = np.zeros(THREADS * WORDS, np.uint32)
    try:
        Device(image).launch("k", 1, THREADS, [given.flatten(), out], stack=STACK, limit=2_000_000)
    except (SimError, ImageError) as e:
        return f"run: {e}"
    bad = np.argwhere(want != out.reshape(THREADS, WORDS))
    if len(bad):
        t, n = bad[0]
        return f"value: {len(bad)} words, thread {t} word {n}: {int(out[t * WORDS + n]):#x} for {int(want[t, n]):#x}"
    return ""


def check(seed: int, arch: str, level: int, what: list[str]) -> list[str]:
    """What is wrong with a module, one line each."""
    p = tiny(seed) if "tiny" in what else program(seed)
    found: list[str] = []

    def attempt(label: str, make: Callable[[], bytes], run: bool = True) -> bytes:
        try:
            image = make()
        except OriasError as e:
            text = str(e).strip()
            said = [t for t in text.splitlines() if "internal fault" in t] or text.splitlines()[-1:]
            found.append(f"{label}: {said[0]}")
            return b""
        if run:
            text = wrong(image, p, seed)
            if text:
                found.append(f"{label}: {text}")
        return image

    if "whole" in what:
        attempt("whole", lambda: ours(p.whole, arch, level, whole=True))
    if "ptxas-whole" in what:
        attempt("ptxas's whole", lambda: theirs(p.whole, arch, level, whole=True))
    if {"compile", "objects", "mixed"} & set(what):
        compiled = [i for i in range(len(p.files)) if i or what != ["tiny", "compile"]]
        mine = [attempt(f"object {i}", partial(ours, p.files[i], arch, level), False) for i in compiled]
        pairs: list[tuple[str, list[bytes]]] = []
        if "objects" in what or "mixed" in what:
            pairs.append(("ours, ours", mine))
        if "mixed" in what:
            other = [attempt(f"ptxas's object {i}", partial(theirs, p.files[i], arch, level), False) for i in compiled]
            pairs += [("ours, ptxas's", [mine[0], other[1]]), ("ptxas's, ours", [other[0], mine[1]]), (THEIRS, other)]
        with tempfile.TemporaryDirectory() as folder:
            for label, objects in pairs[::-1]:
                if all(objects):
                    attempt(label, partial(linked, objects, arch, folder))
    own = next((text for text in found if text.startswith(THEIRS)), "")
    if not own:
        return found
    fault = own.split(": ", 1)[1]  # what ptxas's objects show in a pair with ours too; nothing of it is in ours alone
    return [t for t in found if t == own or t.startswith(OURS) or t.split(": ", 1)[1] != fault]


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="Random functions, compiled, linked and run.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--arch", nargs="+", default=list(ARCHES))
    parser.add_argument("-O", dest="levels", nargs="+", type=int, default=[3, 2, 1, 0])
    parser.add_argument("--what", nargs="+", default=["mixed", "whole"])
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--keep", type=Path, help="a folder for the texts of modules with faults")
    parser.add_argument("--journal", type=Path, help="a file with one line for each module that is done")
    options = parser.parse_args()
    began = time.monotonic()
    before: dict[int, list[str]] = {}
    if options.journal and options.journal.exists():
        before = dict(json.loads(line) for line in options.journal.read_text().splitlines())
    done = len(before)
    faults = sum(not text.startswith(THEIRS) for found in before.values() for text in found)
    for seed in range(options.seed, options.seed + options.count):
        if options.minutes and time.monotonic() - began > 60 * options.minutes:
            break
        if seed in before:
            continue
        arch = options.arch[seed % len(options.arch)]
        level = options.levels[seed // len(options.arch) % len(options.levels)]
        done += 1
        found = check(seed, arch, level, options.what)
        if options.journal:
            with options.journal.open("a") as out:
                out.write(json.dumps([seed, found]) + "\n")
        for text in found:
            faults += not text.startswith(THEIRS)
            print(f"seed {seed} sm_{arch} -O{level}: {text}", flush=True)
            if options.keep:
                p = tiny(seed) if "tiny" in options.what else program(seed)
                options.keep.mkdir(parents=True, exist_ok=True)
                for name, body in (("0", p.files[0]), ("1", p.files[1]), ("whole", p.whole)):
                    (options.keep / f"{seed}_{name}.ptx").write_text(module(body, arch))
    print(f"{done} modules, {faults} faults, {time.monotonic() - began:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
