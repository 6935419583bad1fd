"""Speed of the PTX front end: lines per second on nvcc-like text, memory per line, and ptxas's own parse time.

    python -m benchmarks.parse_speed [--copies N]

The text is the repository's kernels as nvcc made them, repeated under new names. Our times are processor time; ptxas
prints its own, which other work on the machine lengthens.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_BODY = re.compile(r"^\.(visible|func|global|const|extern|weak)", re.MULTILINE)
_NAME = re.compile(r"\.entry (\w+)")
_GLOBALS = re.compile(
    r"^(?:\.\w+ )*\.(?:global|const|func|shared)[^=\n;{]*?([A-Za-z_$][\w$]*)(?=\[| =|;|\()", re.MULTILINE
)


def big_text(copies: int) -> str:
    """One module of many kernels."""
    head = ""
    parts = []
    for number, path in enumerate(sorted((ROOT / "tests/kernels/ptx/sm_90").glob("*.ptx"))):
        text = path.read_text()
        at = _BODY.search(text)
        names = set(_NAME.findall(text)) | set(_GLOBALS.findall(text))
        if at is None or "vprintf" in text:
            continue
        head = head or text[: at.start()]
        body = text[at.start() :]
        pattern = (
            re.compile(r"\b(" + "|".join(sorted(map(re.escape, names), key=len, reverse=True)) + r")(?=\b|_param)")
            if names
            else None
        )
        for k in range(copies):
            parts.append(pattern.sub(rf"\1__{number}_{k}", body) if pattern else body)
    return head + "\n".join(parts)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=30)
    args = parser.parse_args()
    text = big_text(args.copies)
    lines = text.count("\n")
    start = time.process_time()
    from stages.parse import parse_text

    imported = time.process_time() - start
    times = []
    for _ in range(5):
        start = time.process_time()  # of this core: other work on the machine does not count
        module, units, diagnostics = parse_text(text, "big.ptx", "sm_90")
        times.append(time.process_time() - start)
        if module is None:
            sys.exit("\n".join(d.render() for d in diagnostics[:5]))
    best = min(times)
    tracemalloc.start()
    kept = parse_text(text, "big.ptx", "sm_90")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    print(f"import                {1000 * imported:8.1f} ms")
    print(f"parse and check       {lines / best:8.0f} lines/s ({lines} lines, best of {len(times)}: {best:.3f} s)")
    print(f"memory                {peak / lines:8.0f} bytes a line at the peak")
    _oracle(text, lines, best)


def _oracle(text: str, lines: int, ours: float) -> None:
    from tests.oracle import find

    tool = find("ptxas")
    if tool is None:
        print("ptxas                 not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.ptx"
        path.write_text(text)
        done = subprocess.run(
            [str(tool), "-arch", "sm_90", "-O0", "--compiler-stats", "time,phase-wise", "-o", str(Path(folder) / "o"),
                str(path)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    m = re.search(r"Parse-time\s*: ([0-9.]+) ms", done.stdout + done.stderr)
    if m is None:
        print("ptxas                 gave no parse time:", done.stderr[:200])
        return
    theirs = float(m.group(1)) / 1000
    print(
        f"ptxas parse time      {lines / theirs:8.0f} lines/s ({theirs:.3f} s); ours takes {ours / theirs:.1f} times "
        f"as long"
    )


if __name__ == "__main__":
    main()
