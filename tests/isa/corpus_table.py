"""Cubins of every PTX form that the front end's descriptor table knows, for :mod:`tests.isa.coverage`.

    python -m tests.isa.corpus_table OUT --sm 100a [--opt 0]

The instructions are those of :func:`tests.parse.generate.accepted`, many to a kernel; ptxas keeps dead ones at -O0.
Refused lines are left out and counted. At -O3 each line is a separate kernel, so only instructions with an effect
remain.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from pathlib import Path

from tests import oracle
from tests.isa.corpus import ptx_version
from tests.parse import generate


def compile_table(out: Path, sm: str, opt: str = "0", bundle: int = 150, names: str = "") -> tuple[int, int]:
    """Compile the table's forms for one target into ``out``; (lines taken, lines refused)."""
    out.mkdir(parents=True, exist_ok=True)
    ptxas = str(oracle.find(oracle.tool_for(sm)))
    cases = dict.fromkeys(c.text for c in generate.accepted("sm_" + sm) if re.match(names, c.text))
    lines = list(cases)
    good = bad = 0
    for start in range(0, len(lines), bundle):
        part = lines[start : start + bundle]
        path = out / "in.ptx"
        while part:
            text, before = generate.kernel(part, ptx_version(sm), "sm_" + sm)
            path.write_text(text)
            cubin = out / f"t{start:05d}.cubin"
            done = subprocess.run(
                [ptxas, f"-arch=sm_{sm}", f"-O{opt}", str(path), "-o", str(cubin)],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode == 0:
                good += len(part)
                break
            hit = {int(x) - before - 1 for x in re.findall(r"line (\d+)", done.stderr)} & set(range(len(part)))
            if not hit:  # no line named: halve until one line is left
                keep = part[: len(part) // 2]
                lines[start + bundle : start + bundle] = []
                if len(part) == 1:
                    hit = {0}
                else:
                    good_, bad_ = _halves(part[len(part) // 2 :], out, sm, opt, ptxas, start)
                    good, bad = good + good_, bad + bad_
                    part = keep
                    continue
            bad += len(hit)
            part = [line for i, line in enumerate(part) if i not in hit]
    return good, bad


def _halves(part: list[str], out: Path, sm: str, opt: str, ptxas: str, start: int) -> tuple[int, int]:
    """One cubin per line: for parts in which ptxas names no line."""
    good = bad = 0
    for k, line in enumerate(part):
        path = out / "in.ptx"
        path.write_text(generate.kernel([line], ptx_version(sm), "sm_" + sm)[0])
        cubin = out / f"t{start:05d}_{k}.cubin"
        done = subprocess.run(
            [ptxas, f"-arch=sm_{sm}", f"-O{opt}", str(path), "-o", str(cubin)],
            capture_output=True,
            text=True,
            check=False,
        )
        good, bad = good + (done.returncode == 0), bad + (done.returncode != 0)
    return good, bad


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--sm", default="90a")
    parser.add_argument("--opt", default="0")
    parser.add_argument("--names", default="", help="regular expression that the instructions must match")
    args = parser.parse_args()
    print(args.sm, compile_table(args.out, args.sm, args.opt, names=args.names))


if __name__ == "__main__":
    main()
