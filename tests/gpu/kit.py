"""Run exported launches on the GPU of this machine and judge the results.

    python kit.py FOLDER [--kernel NAME] [--time N] [--trim] [--json FILE] [--timeout S] [--libcuda PATH]

FOLDER has ``manifest.json`` from export.py, with cubins and data next to it. Needs an NVIDIA driver, Python 3.9 or
newer and numpy, nothing else. Every cubin runs in a separate process, so that a fault or a hang spoils no other. Exit
status: 0 all right, 1 something wrong, 2 bad use, 77 no driver or no device (skipped).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tests.gpu import driver as cuda
    from tests.gpu import trim
else:  # the exported copy has its parts next to it
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import driver as cuda
    import trim

SKIPPED = 77
MANIFEST_VERSION = 1
SHOWN = 4

Array = Any
Entry = dict[str, Any]


def load_manifest(folder: Path) -> Entry:
    """The manifest; raises SystemExit with status 2 if it is unusable."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
    except (OSError, ValueError) as error:
        raise SystemExit(_usage(f"{folder}: no usable manifest.json: {error}")) from None
    if not isinstance(manifest, dict) or manifest.get("version") != MANIFEST_VERSION:
        raise SystemExit(_usage(f"{folder}: manifest version {MANIFEST_VERSION} expected"))
    return manifest


def _usage(text: str) -> int:
    print(f"error: {text}", file=sys.stderr)
    return 2


# --- comparison -----------------------------------------------------------------------------------------------------


def _steps(values: Array) -> Array:
    """Floats as integers in the order of the reals, both zeros at 0."""
    bits = values.view(f"i{values.dtype.itemsize}")
    size = (bits & np.iinfo(bits.dtype).max).astype(object)
    return np.where(bits < 0, -size, size)


def differences(name: str, want: Array, got: Array, rule: Entry, mask: Array | None) -> list[str]:
    """Lines of text about the wrong elements; see the folder's README for the rules."""
    kind = f"u{want.dtype.itemsize}"
    wrong = want.view(kind) != got.view(kind)
    if want.dtype.kind == "f":
        wrong &= ~(np.isnan(want) & np.isnan(got))
        with np.errstate(all="ignore"):
            if rule.get("ulp"):
                numbers = ~np.isnan(want) & ~np.isnan(got)
                near = np.array([abs(step) <= rule["ulp"] for step in _steps(want) - _steps(got)], bool)
                wrong &= ~(numbers & near)
            if rule.get("rel") or rule.get("abs"):
                exact = want.astype(np.float64)
                close = np.abs(exact - got.astype(np.float64)) <= rule["abs"] + rule["rel"] * np.abs(exact)
                wrong &= ~(close & np.isfinite(want) & np.isfinite(got))
    if mask is not None:
        wrong &= mask
    places = np.flatnonzero(wrong)
    lines = [f"{name}[{i}]: got {got[i]} ({got.view(kind)[i]:#x}), want {want[i]} ({want.view(kind)[i]:#x})"
             for i in places[:SHOWN]]  # fmt: skip
    if len(places) > SHOWN:
        lines.append(f"{name}: {len(places)} of {want.size} elements differ")
    return lines


class Data:
    """The arrays of a manifest's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def raw(self, name: str) -> bytes:
        """A file's bytes."""
        return (self._folder / name).read_bytes()

    def judge(self, name: str, rule: Entry, got: bytes) -> list[str]:
        """Differences between device bytes and an expectation of the manifest."""
        want = np.frombuffer(self.raw(rule["file"]), rule["dtype"])
        mask = np.frombuffer(self.raw(rule["mask"]), np.bool_) if rule.get("mask") else None
        return differences(name, want, np.frombuffer(got, rule["dtype"]), rule, mask)


# --- running --------------------------------------------------------------------------------------------------------


def run_launch(device: cuda.Driver, image: bytes, launch: Entry, data: Data, repeat: int) -> Entry:
    """One launch in a freshly loaded module: {"wrong": [lines], "attributes": {...}, "us": best time or None}."""
    module = cuda.Module(device, image)
    function = module.function(launch["entry"])
    memory: dict[str, int] = {}
    try:
        for symbol in launch["globals"]:
            content = data.raw(symbol["file"])
            address, size = module.symbol(symbol["name"])
            if size < len(content):
                raise cuda.CudaError(f"{symbol['name']}: {size} bytes in the module, {len(content)} wanted")
            device.write(address, content)
        args: list[bytes] = []
        for arg in launch["args"]:
            if arg["kind"] == "scalar":
                args.append(bytes.fromhex(arg["bytes"]))
                continue
            content = data.raw(arg["before"])
            memory[arg["name"]] = device.allocate(len(content))
            device.write(memory[arg["name"]], content)
            args.append(memory[arg["name"]].to_bytes(8, "little"))
        shape = (function, launch["grid"], launch["block"], launch["shared"], args)
        device.launch(*shape)
        wrong: list[str] = []
        for arg in launch["args"]:
            if arg["kind"] == "buffer":
                size = len(data.raw(arg["before"]))
                wrong += data.judge(arg["name"], arg["expect"], device.read(memory[arg["name"]], size))
        for rule in launch["expect_globals"]:
            address, size = module.symbol(rule["name"])
            wrong += data.judge(rule["name"], rule, device.read(address, min(size, len(data.raw(rule["file"])))))
        best = device.time(*shape, repeat) if repeat and not wrong else None
        return {"wrong": wrong, "attributes": device.function_attributes(function), "us": best}
    finally:
        for address in memory.values():
            device.free(address)
        module.unload()


def work(job: Entry) -> Entry:
    """The child's part: every launch of one cubin.  {"results": [...]} or {"error": text, "results": before it}."""
    results: list[Entry] = []
    try:
        device = cuda.Driver(job["libcuda"])
        data = Data(Path(job["folder"]))
        image = Path(job["cubin"]).read_bytes()
        for launch in job["launches"]:
            results.append({"label": launch["label"], **run_launch(device, image, launch, data, job["repeat"])})
    except cuda.NoDriver as error:
        return {"skipped": str(error), "results": results}
    except cuda.CudaError as error:
        return {"error": str(error), "results": results}
    return {"results": results}


def run_child(job: Entry, timeout: float) -> Entry:
    """Run :func:`work` in a separate process."""
    command = [sys.executable, str(Path(__file__).resolve()), "--worker"]
    try:
        done = subprocess.run(
            command, input=json.dumps(job), capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no end after {timeout:g} s", "results": []}
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        tail = done.stderr.strip().splitlines()[-1:]
        return {"error": f"process ended with status {done.returncode} {' '.join(tail)}".strip(), "results": []}
    return answer


def problems(answer: Entry) -> list[str]:
    """Everything wrong in a child's answer, as lines."""
    lines = [f"{result['label']}: {line}" for result in answer["results"] for line in result["wrong"]]
    if answer.get("error"):
        lines.append(answer["error"])
    return lines


# --- what the driver needs
# ----------------------------------------------------------------------------------------------


def trim_one(image: bytes, job: Entry, timeout: float) -> list[tuple[str, str]]:
    """(part, verdict) for every part of a cubin removed alone, and finally for all removable sections at once."""
    verdicts: list[tuple[str, str]] = []
    removable: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "variant.cubin"

        def verdict(variant: bytes) -> str:
            path.write_bytes(variant)
            wrong = problems(run_child({**job, "cubin": str(path), "repeat": 0}, timeout))
            return wrong[0] if wrong else "not needed"

        for part, variant in trim.variants(image):
            verdicts.append((part, verdict(variant)))
            if verdicts[-1][1] == "not needed" and part.startswith("section "):
                removable.append(part)
        smallest, kept_out = image, []
        places = {f"section {section.name}": section for section in trim.sections(image)}
        for part in removable:
            # Removed one after another: two sections may replace each other. Headers keep their places.
            shorter = trim.without_section(smallest, places[part])
            if verdict(shorter) == "not needed":
                smallest = shorter
                kept_out.append(part.removeprefix("section "))
        verdicts.append(("all of " + ", ".join(kept_out), "not needed together"))
    return verdicts


# --- command line
# -------------------------------------------------------------------------------------------------------


def _report(case: Entry, producer: str, answer: Entry) -> int:
    wrong = problems(answer)
    times = [result["us"] for result in answer["results"] if result["us"] is not None]
    attributes = answer["results"][0]["attributes"] if answer["results"] else {}
    figures = " ".join(f"{key}={value}" for key, value in attributes.items())
    if times:
        figures += f" us={max(times):.1f}"
    print(
        f"{'WRONG' if wrong else 'ok   '} {case['kernel']:16} {producer:10} {len(case['launches'])} launches {figures}"
    )
    for line in wrong[:8]:
        print(f"      {line}")
    return 1 if wrong else 0


def run_folder(folder: Path, options: argparse.Namespace) -> int:
    """Run everything in a manifest; returns the exit status."""
    manifest = load_manifest(folder)
    try:
        device = cuda.Driver(options.libcuda)
    except cuda.NoDriver as error:
        print(f"skipped: {error}")
        return SKIPPED
    capability = device.capability()
    print(f"{device.device_name()}, compute capability {capability / 10}, driver {device.version()}")
    if manifest["sm"] // 10 != capability // 10 or manifest["sm"] > capability:
        print(f"skipped: cubins are for sm_{manifest['sm']}")
        return SKIPPED
    failed = 0
    report: list[Entry] = []
    for case in manifest["cases"]:
        if options.kernel and case["kernel"] not in options.kernel:
            continue
        for producer, cubin in sorted(case["cubins"].items()):
            job = {"folder": str(folder), "cubin": str(folder / cubin), "launches": case["launches"],
                   "repeat": options.time, "libcuda": options.libcuda}  # fmt: skip
            answer = run_child(job, options.timeout)
            failed += _report(case, producer, answer)
            row = {"kernel": case["kernel"], "producer": producer, **answer}
            if options.trim:
                row["trim"] = trim_one((folder / cubin).read_bytes(), job, options.timeout)
                for part, verdict in row["trim"]:
                    print(f"      without {part}: {verdict}")
            report.append(row)
    if options.json:
        device_row = {"name": device.device_name(), "capability": capability, "driver": device.version()}
        Path(options.json).write_text(json.dumps({"device": device_row, "rows": report}, indent=1) + "\n")
    print(f"{failed} of {len(report)} cubins wrong")
    return 1 if failed else 0


def main(argv: list[str] | None = None) -> int:
    """Command line; see the module's text."""
    parser = argparse.ArgumentParser(description="Run exported launches on this machine's GPU.")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--kernel", action="append", help="only this kernel (may be repeated)")
    parser.add_argument("--time", type=int, default=0, metavar="N", help="time N launches by events")
    parser.add_argument("--trim", action="store_true", help="take away ELF sections and records one at a time")
    parser.add_argument("--json", metavar="FILE", help="write everything found")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="S", help="seconds for one cubin")
    parser.add_argument("--libcuda", metavar="PATH", help="the driver library")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.worker:
        json.dump(work(json.load(sys.stdin)), sys.stdout)
        sys.stdout.flush()
        os._exit(0)  # a faulted context must not run its destructors
    if options.folder is None:
        return _usage("no folder given")
    return run_folder(options.folder, options)


if __name__ == "__main__":
    sys.exit(main())
