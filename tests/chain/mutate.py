"""Mutated streams, cubins and PTX through every stage and tool: the only result allowed is a diagnostic and an exit
code.

    python -m tests.chain.mutate --streams 10000 --cubins 10000 --ptx 20000 [--seed N] [--arch sm_90,sm_75] [--keep
    FOLDER]

Everything runs in one process. A fault is an exception, a hang (20 s of processor time), an internal fault, a failure
without a message, output in spite of a failure.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import re
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgpack

from ir_format import wire
from orchestrator.api import ChainError, compile_ptx
from stages.plumbing.back_end import elf_from_stream
from stages.plumbing.chain import MIDDLE, NAMES
from stages.plumbing.runner import Flags, run_stage
from tests.chain.corpus import ptx_path

KERNELS = ("matmul", "softmax", "switch10", "call_twice", "local_array", "divrem64", "half2_ops", "histogram", "trig")
SECONDS = 20
#: Replacement values for mutations: words that stages look at, numbers at the edges.
WORDS = ("", "IADD3", "BRA", "EXIT", "RET", "CALL", "BSSY", "BSYNC", "WARPSYNC", "R", "UR", "P", "UP", "B", "PHI",
    "COPY", "PCOPY", "UNDEF", "FENTRY", "X", "LDG", "STS", "MOV",
         "I", "C", "M", "L", "S", "N", "E", "64", "U32", "SR_TID.X", "SB0", "entry", "func", "helper", "ori", "BRX",
         "R2UR", "LDC", "HMMA", "16816", "F32", "DEPBAR", "BAR", "SYNC", "rel", "ABS")  # fmt: skip
NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    4,
    7,
    8,
    15,
    16,
    31,
    63,
    64,
    128,
    254,
    255,
    256,
    1 << 16,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 40,
    (1 << 63) - 1,
    (1 << 64) - 1,
)


def forge(rng: random.Random, x: Any, donors: list[Any]) -> Any:
    """One value somewhere inside changed, moved, duplicated or dropped."""
    if isinstance(x, (list, tuple)) and x and rng.random() < 0.9:
        x = list(x)
        i = rng.randrange(len(x))
        if rng.random() < 0.9:
            return [*x[:i], forge(rng, x[i], donors), *x[i + 1 :]]
        j = rng.randrange(len(x))
        how = rng.randrange(4)
        if how == 0:
            return x[:i] + x[i + 1 :]
        if how == 1:
            return [*x[:i], x[i], *x[i:]]
        if how == 2:
            x[i], x[j] = x[j], x[i]
            return x
        return [*x[:i], rng.choice(donors), *x[i + 1 :]]
    if isinstance(x, dict) and x:
        k = rng.choice(sorted(x, key=str))
        if rng.random() < 0.05:
            return {n: v for n, v in x.items() if n != k}
        return {**x, k: forge(rng, x[k], donors)}
    if isinstance(x, int):
        return rng.choice([x + 1, x - 1, x ^ 1 << rng.randrange(16), *NUMBERS])
    if isinstance(x, str):
        return rng.choice([*WORDS, x + "x"])
    if isinstance(x, bytes) and x:
        at = rng.randrange(len(x))
        return x[:at] + bytes([x[at] ^ 1 << rng.randrange(8)]) + x[at + 1 :]
    return rng.choice([None, 0, "", b"", [], *donors])


def pieces(x: Any, out: list[Any]) -> list[Any]:
    """Parts of a record, to replace others."""
    if isinstance(x, (list, tuple)):
        if 0 < len(x) < 12:
            out.append(x)
        for e in x:
            pieces(e, out)
    elif isinstance(x, dict):
        for e in x.values():
            pieces(e, out)
    return out


def resealed(data: bytes, rng: random.Random, donors: list[Any]) -> bytes:
    """The stream with one or two forged values and a correct trailer."""
    frames = [(tag, msgpack.unpackb(d, use_list=True)[1]) for tag, d in wire.frames(io.BytesIO(data))]
    out = io.BytesIO()
    w = wire.Writer(out.write)
    victim = rng.choice([n for n, (t, _) in enumerate(frames) if t == "unit"] * 8 + list(range(len(frames))))
    for n, (tag, body) in enumerate(frames):
        if n == victim:
            for _ in range(1 + (rng.random() < 0.3)):
                body = forge(rng, body, donors)
        try:
            w.record(tag, body)
        except Exception:
            w.record(tag, 0)
    w.end()
    return out.getvalue()


class Hang(BaseException):
    """Too long."""


def guarded(run: Callable[[], Any]) -> tuple[str, str]:
    """('', messages) or (what is wrong, messages)."""

    def late(*_: object) -> None:
        raise Hang

    said = io.StringIO()
    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # processor time: other work on the machine causes no hang
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            code = run()
    except Hang:
        where = [
            f
            for f in traceback.extract_tb(sys.exc_info()[2])
            if "/site-packages/" not in f.filename and "contextlib" not in f.filename
        ][-2:]
        return "hang at " + " < ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in where), said.getvalue()
    except BaseException as e:
        f = traceback.extract_tb(e.__traceback__)[-1]
        return f"{type(e).__name__} at {os.path.basename(f.filename)}:{f.lineno}: {str(e)[:80]}", said.getvalue()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    text = said.getvalue()
    if "Traceback" in text or "internal fault" in text:
        return text.strip().splitlines()[-1].split("; please")[0], text
    if code not in (0, 1, 2):
        return f"exit code {code}", text
    if code and not text.strip():
        return f"exit code {code} and no word", text
    return "", text


def stage_case(at: int, data: bytes) -> Callable[[], int]:
    name = NAMES[at]

    def body() -> int:
        if name == "elf":
            got: list[bytes] = []
            code = elf_from_stream(io.BytesIO(data), got.append)
            assert bool(got) == (code == 0), "partial output"
            return code
        out = io.BytesIO()
        return run_stage(next(s for s in MIDDLE if s.name == name), io.BytesIO(data), out, Flags())

    return body


def streams(names: tuple[str, ...], archs: tuple[str, ...]) -> Iterator[tuple[str, str, dict[str, bytes]]]:
    for arch in archs:
        for name in names:
            kept: dict[str, bytes] = {}
            kept["cubin"] = compile_ptx(ptx_path(name, arch).read_bytes(), arch, {}, streams=kept)
            yield name, arch, kept


def main(argv: list[str] | None = None) -> int:
    """Run; 1 if something failed."""
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    p.add_argument("--streams", type=int, default=0, help="mutated streams into each stage, orias-show and orias-check")
    p.add_argument("--cubins", type=int, default=0, help="mutated cubins into orias-check and orias-disasm")
    p.add_argument("--ptx", type=int, default=0, help="mutated PTX through the whole chain")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--arch", default="sm_90,sm_75,sm_120")
    p.add_argument("--keep", type=Path, help="folder for inputs that break something")
    a = p.parse_args(argv)
    found: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    corpus = list(streams(KERNELS, tuple(a.arch.split(","))))
    donors: dict[tuple[str, str, int], list[Any]] = {}
    t = time.time()

    def judge(kind: str, number: int, data: bytes, run: Callable[[], Any]) -> None:
        wrong, said = guarded(run)
        codes[kind] += 1
        if wrong:
            key = f"{kind}: {wrong}"
            found[key] += 1
            if found[key] == 1:
                print(f"[{number}] {key}", flush=True)
                if a.keep:
                    a.keep.mkdir(parents=True, exist_ok=True)
                    (a.keep / f"{kind}-{number}").write_bytes(data)

    from stages.check.command import check_compiled
    from stages.show.show import show

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"

        def shown(number: int) -> int:
            from ir_format.diag import OriasError

            try:
                for _ in show([str(path)], ("text", "dot", "html")[number % 3], ""):
                    pass
            except OriasError as e:
                sys.stderr.write(str(e))
                return 1
            return 0

        for number in range(a.seed * 1_000_000, a.seed * 1_000_000 + a.streams):
            rng = random.Random(number)
            name, arch, kept = rng.choice(corpus)
            at = rng.randrange(1, len(NAMES))
            data = kept[NAMES[at - 1]]
            key = (name, arch, at)
            if key not in donors:
                donors[key] = pieces([msgpack.unpackb(d)[1] for _, d in wire.frames(io.BytesIO(data))], [])[:5000]
            bad = resealed(data, rng, donors[key])
            judge(NAMES[at], number, bad, stage_case(at, bad))
            if rng.random() < 0.3:
                path.write_bytes(bad)
                judge("show", number, bad, partial(shown, number))
                judge("check", number, bad, lambda: check_compiled(path))
        from stages.disasm import work

        for number in range(a.seed * 1_000_000, a.seed * 1_000_000 + a.cubins):
            rng = random.Random(number)
            name, arch, kept = rng.choice(corpus)
            bad_b = bytearray(kept["cubin"])
            for _ in range(rng.choice((1, 1, 2, 4))):
                where = (
                    rng.randrange(64)
                    if rng.random() < 0.3
                    else rng.randrange(len(bad_b))
                    if rng.random() < 0.5
                    else rng.randrange(max(0, len(bad_b) - 64 * 30), len(bad_b))
                )
                bad_b[where] = rng.choice((bad_b[where] ^ 1 << rng.randrange(8), rng.randrange(256), 0xFF, 0))
            if rng.random() < 0.1:
                del bad_b[rng.randrange(len(bad_b)) :]
            path.write_bytes(bytes(bad_b))
            judge("check", number, bytes(bad_b), lambda: check_compiled(path))

            def disasm(number: int) -> int:
                from ir_format.diag import OriasError

                try:
                    work.run(path, work.View(), number % 2 == 0, number % 3 == 0 and number % 2 == 1, None)
                except OriasError as e:
                    sys.stderr.write(str(e))
                    return 1
                return 0

            judge("disasm", number, bytes(bad_b), partial(disasm, number))
    texts = [(n, r, ptx_path(n, r).read_text()) for n, r, _ in corpus]
    for number in range(a.seed * 1_000_000, a.seed * 1_000_000 + a.ptx):
        rng = random.Random(number)
        name, arch, text = rng.choice(texts)
        raw = mutate_ptx(text, rng).encode("latin-1", "replace")

        def compiled(raw: bytes, arch: str) -> int:
            try:
                data = compile_ptx(raw, arch)
            except ChainError as e:
                sys.stderr.write(str(e))
                return 1
            assert data[:4] == b"\x7fELF"
            return 0

        judge("ptx", number, raw, partial(compiled, raw, arch))
    print(
        f"{sum(codes.values())} runs {dict(codes)} in {time.time() - t:.0f} s; "
        f"{sum(found.values())} faults of {len(found)} kinds"
    )
    for key, n in found.most_common():
        print(f"{n:6} {key}")
    return 1 if found else 0


def mutate_ptx(text: str, rng: random.Random) -> str:
    """Bytes, tokens, lines changed."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        how = rng.randrange(6)
        if how == 0:
            at = rng.randrange(len(text))
            text = text[:at] + chr(rng.randrange(256)) + text[at + rng.randrange(2) :]
        elif how in (1, 2):
            tokens = list(re.finditer(r"[%\w.$]+", text))
            a, b = rng.choice(tokens), rng.choice(tokens)
            text = text[: a.start()] + b[0] + text[a.end() :]
        elif how == 3:
            lines = text.split("\n")
            i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[i], lines[j] = (lines[j], lines[i]) if rng.random() < 0.5 else (lines[i] + lines[j], lines[j])
            text = "\n".join(lines)
        elif how == 4:
            numbers = list(re.finditer(r"\b\d+\b", text))
            if numbers:
                a = rng.choice(numbers)
                text = text[: a.start()] + str(rng.choice(NUMBERS)) + text[a.end() :]
        else:
            lines = text.split("\n")
            del lines[rng.randrange(len(lines))]
            text = "\n".join(lines)
    return text


if __name__ == "__main__":
    sys.exit(main())
