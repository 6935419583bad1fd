"""ZLUDA's tests of PTX, whose expected values come from hardware, on our chain, on ptxas's cubins and in the PTX
interpreter.

    python -m tests.cosim.zluda CHECKOUT [--arch sm_90 ...] [-O LEVEL ...] [--only NAME ...] [--who ours ptxas
    interpreter]

CHECKOUT is a folder with the repository vosen/ZLUDA: its table of names, inputs and outputs is read from
`ptx/src/test/spirv_run/mod.rs` (macros `test_ptx!`, one thread, and `test_ptx_warp!`, 64 threads), the PTX from the
files next to it; nothing of it is kept here. PTX that ptxas refuses is not judged. If ptxas's cubin gives other values
in the simulator, the line says so.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from orchestrator.api import ChainError, compile_ptx
from stages.interpret.launch import InterpreterError, Module, ParseError
from stages.simulate import Device, SimError
from tests import oracle

Arr = NDArray[Any]
FOLDER: Final = Path("ptx/src/test/spirv_run")
SHARED: Final = 1024  # bytes of dynamic shared memory in their launches
_KINDS: Final = {"u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16, "u32": np.uint32, "i32": np.int32,
"u64": np.uint64, "i64": np.int64,
                 "f16": np.float16, "f32": np.float32, "f64": np.float64}  # fmt: skip
_CALL: Final = re.compile(r"^(test_ptx|test_ptx_with_32|test_ptx_warp)!\(", re.MULTILINE)
_SUFFIX: Final = re.compile(r"(?<=[0-9a-fA-F.)_])(u8|i8|u16|i16|u32|i32|u64|i64|f32|f64)$")


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the table. ``given``: None if the kernel takes only the output."""

    name: str
    given: Arr | None
    wanted: Arr


def _element(text: str) -> tuple[str, float | int]:
    """(type or "", value) of one expression of the table. Raises ValueError."""
    text = text.strip()
    if text.endswith(".to_bits()"):
        _, value = _element(text.removesuffix(".to_bits()"))
        return "u16", int(np.array(value, np.float16).view(np.uint16))
    if "/" in text:
        (kind, a), (_, b) = (_element(x) for x in text.split("/"))
        return kind, a / b
    text = text.removeprefix("std::").removeprefix("half::")
    named = {"f32::consts::PI": ("f32", math.pi), "f32::NAN": ("f32", math.nan), "f16::NAN": ("f16", math.nan),
        "f32::INFINITY": ("f32", math.inf),
             "f32::NEG_INFINITY": ("f32", -math.inf), "f16::NEG_INFINITY": ("f16", -math.inf)}  # fmt: skip
    if text in named:
        return named[text]
    limit = re.fullmatch(r"([ui])(\d+)::(MAX|MIN|max_value\(\))", text)
    if limit:
        info = np.iinfo(_KINDS[limit[1] + limit[2]])  # type: ignore[type-var]
        return limit[1] + limit[2], int(info.min if limit[3] == "MIN" else info.max)
    made = re.fullmatch(r"(f16|f32)::(from_bits|from_f32|from_f64)\((.*)\)", text)
    if made:
        _, value = _element(made[3])
        if made[2] == "from_bits":
            size = {"f16": np.uint16, "f32": np.uint32}[made[1]]
            return made[1], float(np.array(int(value), size).view(_KINDS[made[1]]))
        return made[1], value
    sign = -1 if text.startswith("-") else 1
    text = text.lstrip("-")
    suffix = _SUFFIX.search(text) if not text.startswith("0x") or not text.endswith(("f32", "f64")) else None
    kind = suffix[1] if suffix else ""
    digits = (text[: suffix.start()] if suffix else text).replace("_", "")
    if kind.startswith("f") or "." in digits:
        return kind or "f", sign * float(digits)
    return kind, sign * int(digits, 0)


def _array(text: str) -> Arr:
    """The array for a list in brackets. Untyped numbers take the type of the others, else Rust's default."""
    elements = [_element(x) for x in re.sub(r"//[^\n]*", "", text).strip().strip("[]").split(",") if x.strip()]
    kinds = [k for k, _ in elements if k not in ("", "f")]
    floats = any(k.startswith("f") for k, _ in elements)
    kind = np.dtype(_KINDS[kinds[0] if kinds else "f64" if floats else "i32"])
    if kind.kind == "f":
        return np.array([v for _, v in elements], kind)
    mask = (1 << 8 * kind.itemsize) - 1
    return np.array([int(v) & mask for _, v in elements], f"u{kind.itemsize}")


def _arguments(text: str, at: int) -> tuple[list[str], int]:
    """The arguments of a macro call whose parenthesis ends before ``at``, and where it ends."""
    depth, parts, begin = 1, [], at
    for n in range(at, len(text)):
        c = text[n]
        depth += (c in "([") - (c in ")]")
        if (depth == 1 and c == ",") or depth == 0:
            parts.append(text[begin:n])
            begin = n + 1
            if depth == 0:
                return [p.strip() for p in parts if p.strip()], n
    raise ValueError("a macro call that does not end")


def table(checkout: Path) -> Iterator[Entry]:
    """The rows that have values. Raises OSError, and ValueError for an unknown expression."""
    text = re.sub(r"//[^\n]*", "", (checkout / FOLDER / "mod.rs").read_text())
    for found in _CALL.finditer(text):
        parts, _ = _arguments(text, found.end())
        if len(parts) < 2:
            continue
        warp = found[1] == "test_ptx_warp"
        yield Entry(parts[0], None if warp else _array(parts[1]), _array(parts[-1]))


def _same(got: Arr, wanted: Arr) -> bool:
    """Bit for bit, any NaN for a NaN."""
    if wanted.dtype.kind == "f":
        return bool(
            np.all((got == wanted) & (np.signbit(got) == np.signbit(wanted)) | np.isnan(got) & np.isnan(wanted))
        )
    return bool(np.array_equal(got, wanted))


def _said(got: Arr, wanted: Arr) -> str:
    """'', or how the results differ."""
    return "" if _same(got, wanted) else f"{got[:8].tolist()} in place of {wanted[:8].tolist()}"


def _arguments_of(e: Entry, text: str) -> tuple[list[Arr], Arr]:
    """Their launches pass two pointers no matter what the kernel takes."""
    out = np.zeros_like(e.wanted)
    head = re.search(rf"\.entry\s+{e.name}\s*\(([^)]*)\)", text)
    count = head[1].count(".param") if head else 2
    return [e.given.copy() if e.given is not None else out, out][2 - count :] if count else [], out


def _threads(e: Entry) -> tuple[int, ...]:
    """Their blocks; a second warp that leaves the memory of a kernel written for one (hardware allows it) is
    omitted."""
    return (1,) if e.given is not None else (64, 32)


def simulated(e: Entry, text: str, cubin: bytes) -> str:
    """Run a cubin; '' or what is wrong."""
    device = Device(cubin)
    said = ""
    for threads in _threads(e):
        args, out = _arguments_of(e, text)
        device.reset()
        try:
            device.launch(e.name, 1, threads, args, shared=SHARED)
        except SimError as x:
            said = str(x)
            if "out-of-bounds" not in said:
                return said
        else:
            return _said(out, e.wanted)
    return said


def interpreted(e: Entry, text: str, arch: str) -> str:
    """Run the PTX interpreter; '' or what is wrong."""
    said = ""
    for threads in _threads(e):
        args, out = _arguments_of(e, text)
        try:
            Module(text, arch).launch(e.name, (1, 1, 1), (threads, 1, 1), args, shared=SHARED)
        except (InterpreterError, ParseError) as x:
            said = str(x).splitlines()[0]
            if not (isinstance(x, InterpreterError) and x.kind == "address"):
                return said
        else:
            return _said(out, e.wanted)
    return said


def judge(e: Entry, text: str, who: str, arch: str, level: int) -> str:
    """What is wrong on one side ('' nothing)."""
    if who == "interpreter":
        return interpreted(e, text, arch)
    if who == "ours":
        try:
            return simulated(e, text, compile_ptx(text, arch, {"opt-level": level}))
        except ChainError as x:
            return str(x).strip().splitlines()[-1]
    made = oracle.compile_ptx(text, arch[3:], f"-O{level}")
    return str(made) if isinstance(made, oracle.ToolError) else simulated(e, text, made.read_bytes())


def run(checkout: Path, arches: Sequence[str], levels: Sequence[int], only: Sequence[str], who: Sequence[str]) -> int:
    """Judge every row; prints the faults and the sums; returns how many rows were wrong in ours or the interpreter."""
    counts = {
        f"{w} {a} -O{o}": [0, 0] for w in who for a in arches for o in (levels if w != "interpreter" else levels[:1])
    }
    refused: dict[str, list[str]] = {a: [] for a in arches}
    wrong = 0
    for e in table(checkout):
        if only and e.name not in only:
            continue
        text = (checkout / FOLDER / f"{e.name}.ptx").read_text()
        for arch in arches:
            if isinstance(oracle.compile_ptx(text, arch[3:]), oracle.ToolError):
                refused[arch].append(e.name)
                continue
            for w in who:
                for level in levels if w != "interpreter" else levels[:1]:
                    key = f"{w} {arch} -O{level}"
                    said = judge(e, text, w, arch, level)
                    counts[key][0] += 1
                    counts[key][1] += not said
                    wrong += bool(said) and w != "ptxas"
                    if said:
                        print(f"{e.name}, {key}: {said}", flush=True)
    for arch, names in refused.items():
        print(f"{arch}: ptxas refuses {len(names)}: {' '.join(names)}")
    for key, (all_, right) in counts.items():
        print(f"{key}: {right} of {all_}")
    return wrong


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="ZLUDA's tests of PTX on our chain and in the interpreter.")
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--arch", nargs="+", default=["sm_80", "sm_90", "sm_120"])
    parser.add_argument("-O", dest="levels", nargs="+", type=int, default=[3])
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument(
        "--who", nargs="+", choices=("ours", "ptxas", "interpreter"), default=["ours", "ptxas", "interpreter"]
    )
    options = parser.parse_args()
    return 1 if run(options.checkout, options.arch, options.levels, options.only, options.who) else 0


if __name__ == "__main__":
    sys.exit(main())
