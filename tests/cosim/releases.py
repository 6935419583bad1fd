"""Which release of ptxas has which of its known errors.

    python -m tests.cosim.releases [NAME=PTXAS ...]

Every file of `tests/cosim/known` (a kernel that some release compiles wrong, with the SM on which it shows), of
`known/counted` (instructions dropped) and of `tests/fuzz/theirs` (programs of the fuzzer) is compiled by each binary.
Its cubin runs in the simulator and is compared with the interpreter, or its instructions are counted. Without
arguments: the oracles of the tests. For a new release: unpack its wheel somewhere and give `13.6=FOLDER/ptxas`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from stages.check.cosim import Cosim
from stages.simulate import Device
from tests import oracle
from tests.fuzz.chain import read
from tests.fuzz.judge import check

HERE = Path(__file__).parent
KNOWN = sorted((HERE / "known").glob("*.ptx"))
COUNTED = sorted((HERE / "known" / "counted").glob("*.ptx"))
FUZZED = sorted((HERE.parent / "fuzz" / "theirs").glob("*.ptx"))


def shown(text: str) -> tuple[str, list[str]]:
    """The SM on which an error shows, and the options."""
    found = re.search(r"// With: (sm_\w+)(.*)", text)
    return (found[1], found[2].split()) if found else ("sm_90", [])


def image(tool: Path, path: Path, arch: str, options: list[str]) -> bytes | str:
    """The cubin, or the error output."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "k.cubin"
        try:
            command = [str(tool), "-arch", arch, *options, str(path), "-o", str(out)]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        except subprocess.TimeoutExpired:
            return "does not end"
        if done.returncode < 0 or done.returncode > 250 and not done.stderr:
            return "crashes"
        return out.read_bytes() if done.returncode == 0 else "refuses"


def computed(tool: Path, path: Path) -> str:
    """Whether a known case is computed right."""
    text = path.read_text()
    arch, options = shown(text)
    made = image(tool, path, arch, options)
    if isinstance(made, str):
        return made
    return "wrong" if Cosim(text, arch, {"ptxas": Device(made)}, 3).run().findings else "right"


def counted(tool: Path, path: Path) -> str:
    """Whether the cubin has all instructions that the file asks for."""
    from tests.cosim.test_cosim import counted as count

    made = image(tool, path, "sm_90a", ["-O3"])
    if isinstance(made, str):
        return made
    have, want = count(path, made)
    return "wrong" if have < want else "right"


def fuzzed(tool: Path, path: Path) -> str:
    """Whether a program of the fuzzer gives the interpreter's results, run as its head says."""
    program, way, kernels = read(path)
    return "wrong" if check(program, replace(way, by=str(tool)), kernels) else "right"


def sets() -> list[tuple[Path, Callable[[Path, Path], str]]]:
    """Every case with its judge."""
    return [*[(p, computed) for p in KNOWN], *[(p, counted) for p in COUNTED], *[(p, fuzzed) for p in FUZZED]]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", nargs="*", help="NAME=PATH of a ptxas")
    args = parser.parse_args()
    tools = {name: Path(path) for name, _, path in (t.partition("=") for t in args.tools)}
    if not tools:
        found = {"13.0": oracle.find("ptxas"), "13.5": oracle.find(oracle.NEWER)}
        tools = {name: path for name, path in found.items() if path is not None}
    print("| case | " + " | ".join(tools) + " |\n|---|" + "---|" * len(tools))
    for path, judged in sets():
        cells = [judged(tool, path) for tool in tools.values()]
        print(f"| `{path.stem}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
