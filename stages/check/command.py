"""The actions of the command line: compile, co-simulate, print."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from stages.check.files import read

TIMEOUT_S: Final = 120.0


def own_target(text: str) -> str:
    """The architecture that the PTX's `.target` names; sm_90 if it names none."""
    found = re.search(r"^\s*\.target\s+(sm_\w+)", text, re.MULTILINE)
    return found[1] if found else "sm_90"


def compile_elsewhere(compiler: Path, source: Path, arch: str, options: Sequence[str]) -> bytes | str:
    """A cubin from another compiler, or its error output."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.cubin"
        command = [str(compiler), str(source), "-arch", arch, *options, "-o", str(out)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        if done.returncode or not out.is_file():
            return done.stderr.strip() or f"exit {done.returncode}"
        return out.read_bytes()


def sides_of(
    text: str, source: Path, arch: str, ptxas: Path | None, cubin: Path | None, level: int = 3
) -> tuple[dict[str, Any], list[str]]:
    """Simulator devices by side, and what failed. Both compilers run without contraction of products and sums
    (-fmad=false), so that results are what the PTX says."""
    from orchestrator.api import ChainError, compile_ptx
    from stages.simulate import Device, ImageError

    images: dict[str, bytes] = {}
    problems: list[str] = []
    if cubin is not None:
        images["cubin"] = read(cubin)
    else:
        try:
            images["ours"] = compile_ptx(text, arch, {"fmad": 0, "opt-level": level}, name=str(source))
        except ChainError as error:
            problems.append(f"ours: {str(error).strip()}")
    if ptxas is not None:
        got = compile_elsewhere(ptxas, source, arch, ["-fmad", "false", f"-O{level}"])
        if isinstance(got, str):
            problems.append(f"{ptxas.name}: {got}")
        else:
            images["ptxas"] = got
    devices: dict[str, Any] = {}
    for side, image in images.items():
        try:
            device = Device(image, progress=side != "ours")
            if str(device.sm) != "".join([c for c in arch if c.isdigit()]):
                problems.append(f"{side}: the cubin is for sm_{device.sm}, not for {arch}")
                continue
            devices[side] = device
        except ImageError as error:
            problems.append(f"{side}: {error}")
    return devices, problems


def check_file(
    file: Path,
    arch: str,
    kernels: Sequence[str],
    seeds: int | None,
    ptxas: Path | None,
    cubin: Path | None,
    level: int = 3,
    thorough: bool = False,
    strict: bool = False,
) -> int:
    """Co-simulate a PTX file. Print a line for each kernel (equal, different, not judged), then the findings. 1 if a
    kernel is different, else 2 if one was not judged."""
    from stages.check.cosim import SECONDS, Cosim
    from stages.interpret.launch import ParseError

    try:
        text = read(file).decode("latin-1")
        arch = arch or own_target(text)
        began = time.process_time()
        devices, problems = sides_of(text, file, arch, ptxas, cubin, level)
    except OSError as error:
        sys.stderr.write(f"orias-check: {error.filename}: {error.strerror}\n")
        return 2
    try:
        seconds = None if thorough or seeds is not None else SECONDS
        cosim = Cosim(text, arch, devices, seeds, seconds=seconds, strict=strict)
        cosim.spent = min(time.process_time() - began, SECONDS / 2) / max(len(cosim.module.codes), 1)
        report = cosim.run(kernels)
    except ParseError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for verdict in report.verdicts:
        print(verdict)
    for problem in problems:
        print(f"not judged: {problem}")
    for finding in report.findings:
        print(finding)
    counts = ", ".join(f"{side}: {report.judged.get(side, 0)} launches" for side in devices)
    print(f"{len(report.differences())} differences ({counts or 'no cubins'})")
    idle = report.idle or any(v.word == "not judged" for v in report.verdicts)
    return 1 if report.differences() else 2 if problems or idle or not devices else 0


def check_compiled(file: Path, before: Path | None = None) -> int:
    """Judge the control words of a cubin, or a saved stream; prints findings; 1 if a rule is broken, 2 if something
    could not be judged."""
    from stages.check.streams import check_stream, is_stream

    try:
        data = read(file)
    except OSError as error:
        sys.stderr.write(f"orias-check: {error.filename}: {error.strerror}\n")
        return 2
    if is_stream(data):
        return check_stream(file, data, before)
    if before is not None:
        sys.stderr.write(f"orias-check: {file}: --before needs a stream to compare with\n")
        return 2
    return check_schedule(file, data)


class Judged(NamedTuple):
    """What the judges of a cubin found. ``notes``: places where threads wait at a WARPSYNC while others wait at a
    BSYNC."""

    findings: list[Any]
    unjudged: list[str]
    notes: list[Any]
    instructions: int


def judge(data: bytes) -> Judged:
    """Judge control words, convergence and records of a cubin. Raises OriasError for a file that is no cubin."""
    from stages.check import convergence_checker, scoreboards
    from stages.check.records import check_records
    from stages.check.schedule_checker import check_bytes

    report = check_bytes(data)
    meeting = convergence_checker.check_bytes(data)
    records = [f"record: {text}" for text in check_records(data)]
    needless = scoreboards.check_bytes(data)
    found = [*report.findings, *needless, *meeting.findings, *records]
    return Judged(found, [*report.unjudged, *meeting.unjudged], meeting.notes, report.instructions)


def check_schedule(file: Path, data: bytes) -> int:
    """Judge a cubin; prints findings; 1 if a rule is broken, 2 if something could not be judged."""
    from ir_format.diag import OriasError

    try:
        found = judge(data)
    except OriasError as error:
        sys.stderr.write(f"orias-check: {file}: {error}\n")
        return 2
    for finding in found.findings:
        print(finding)
    for text in found.unjudged:
        print(f"not judged: {text}")
    if found.notes:
        print(
            f"note: {len(found.notes)} times threads wait at a WARPSYNC while others wait at a BSYNC for them, "
            f"first in {found.notes[0]}"
        )
    print(f"{len(found.findings)} findings, {found.instructions} instructions")
    return 1 if found.findings else 2 if found.unjudged else 0
