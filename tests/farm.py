"""A campaign of `orias-farm`: many files on a local cluster whose workers are killed at random; nothing is lost, done
twice, or different from what `orias` makes alone.

    python -m tests.farm --files 1000 --kill-every 40
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from orchestrator.api import compile_ptx

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "tests/kernels/ptx/sm_90"
SMALL = 8  # kernels that the files are made of, the smallest ones


class Outcome(NamedTuple):
    """``wrong``: what was lost, doubled or different; ``again``: jobs that were sent more than once."""

    files: int
    wrong: list[str]
    kills: int
    again: int
    seconds: float


def make_files(folder: Path, count: int) -> dict[str, str]:
    """Write ``count`` different PTX files, each tenth one with an error; file name -> digest of the cubin that the
    chain makes of it in this process, '' for an error."""
    texts = sorted((p.read_text() for p in SOURCES.glob("*.ptx")), key=len)[:SMALL]
    expected: dict[str, str] = {}
    for n in range(count):
        text = texts[n % len(texts)]
        kernel = re.search(r"\.entry\s+(\w+)", text)
        assert kernel is not None
        text = text.replace(kernel[1], f"k{n}")
        if n % 10 == 4:
            text = text.replace("ret;", "rot;")
        (folder / f"f{n}.ptx").write_text(text)
        expected[f"f{n}.ptx"] = "" if n % 10 == 4 else digest(compile_ptx(text, "sm_90"))
    return expected


def digest(data: bytes) -> str:
    """A name for bytes."""
    return hashlib.sha256(data).hexdigest()


def worker_pids(cluster: Any) -> list[int]:
    """The processes that work now."""
    return [n.process.process.pid for n in cluster.workers.values() if n.process and n.process.process.pid]


def campaign(count: int, workers: int, kill_every: int, seed: int = 1) -> Outcome:
    """Compile ``count`` files on ``workers`` processes, one of which dies after every ``kill_every`` cubins."""
    from distributed import LocalCluster

    rng = random.Random(seed)
    kills = 0
    os.environ["PYTHONPATH"] = str(ROOT)
    with (
        tempfile.TemporaryDirectory() as name,
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
    ):
        folder = Path(name)
        expected = make_files(folder, count)
        (folder / "list").write_text("\n".join(expected))
        made = folder / "made"
        made.mkdir()
        command = [
            sys.executable,
            "-m",
            "orchestrator.farm",
            "-arch",
            "sm_90",
            "--scheduler",
            cluster.scheduler_address,
        ]
        command += ["--retries", "20", "--batch", "list", "--output-dir", "made", "--report", "report.json"]
        began = time.monotonic()
        with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as farm:
            while farm.poll() is None:
                time.sleep(rng.random() * 0.2)
                if len(os.listdir(made)) >= kill_every * (kills + 1) and (pids := worker_pids(cluster)):
                    os.kill(rng.choice(pids), signal.SIGKILL)
                    kills += 1
            assert farm.stderr is not None
            said = farm.stderr.read()
        seconds = time.monotonic() - began
        rows = json.loads((folder / "report.json").read_text())
        wrong = _wrong(expected, rows, made, said)
    return Outcome(count, wrong, kills, sum(r["attempts"] > 1 for r in rows), seconds)


def _wrong(expected: dict[str, str], rows: list[dict[str, Any]], made: Path, said: str) -> list[str]:
    out = []
    if [r["input"] for r in rows] != list(expected):
        out.append("the report does not list each file once, in order")
    for name, value in expected.items():
        cubin = made / name.replace(".ptx", ".cubin")
        got = digest(cubin.read_bytes()) if cubin.exists() else ""
        if got != value:
            out.append(f"{name}: {'no file' if not got else 'other bytes' if value else 'a file of a refused input'}")
    refused = re.findall(r"^ptxas (\S+), line \d+; error", said, re.M)
    if refused != [n for n, value in expected.items() if not value]:
        out.append(f"messages are not each file's once, in order: {said[:300]}")
    if len(list(made.iterdir())) != sum(map(bool, expected.values())):
        out.append("files that nobody asked for")
    return out


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kill-every", type=int, default=40, metavar="CUBINS")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    got = campaign(args.files, args.workers, args.kill_every, args.seed)
    print("\n".join(got.wrong[:20]))
    print(
        f"{got.files} files, {got.kills} workers killed, {got.again} jobs sent again by the farm, "
        f"{len(got.wrong)} wrong, {got.seconds:.0f} s"
    )
    sys.exit(bool(got.wrong))


if __name__ == "__main__":
    main()
