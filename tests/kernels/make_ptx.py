"""Write ptx/sm_XX/NAME.ptx for every kernel source here, and for the corpus, with nvcc.

    python tests/kernels/make_ptx.py [--check] [NAME ...]

``all16.ptx`` has all main kernels in one module. ``--check`` compiles to a temporary folder and reports every
checked-in file that differs, exit 1. The output depends only on nvcc's version (13.0.88 made the checked-in files); it
contains no paths.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

from tests import oracle  # noqa: E402

SMS = (75, 80, 90, 100, 120)
COMBINED = "all16"


def sources(folder: Path = HERE) -> list[Path]:
    """The kernel sources of a folder, sorted by name."""
    return sorted(folder.glob("*.cu"))


def compile_one(nvcc: Path, source: Path, sm: int, target: Path, include: Path) -> None:
    """Compile one .cu to PTX; raises SystemExit with nvcc's text if it fails."""
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [str(nvcc), f"-arch=sm_{sm}", "-ptx", "-I", str(include), str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{source.name} for sm_{sm}:\n{done.stdout}{done.stderr}")
    text = target.read_text()
    if str(HERE) in text or "/tmp/" in text:
        raise SystemExit(f"{target}: holds a path of this machine")


def make(folder: Path, out: Path, wanted: set[str], combined: str | None, nvcc: Path) -> list[Path]:
    """Compile the wanted sources of one folder for every SM; returns the files written."""
    written: list[Path] = []
    with tempfile.TemporaryDirectory() as scratch:
        inputs = [source for source in sources(folder) if not wanted or source.stem in wanted]
        if combined is not None and (not wanted or combined in wanted):
            whole = Path(scratch) / f"{combined}.cu"
            whole.write_text("".join(f'#include "{source.name}"\n' for source in sources(folder)))
            inputs.append(whole)
        for sm in SMS:
            for source in inputs:
                target = out / f"sm_{sm}" / f"{source.stem}.ptx"
                compile_one(nvcc, source, sm, target, folder)
                written.append(target)
    return written


def main() -> int:
    """Command line; see the module's text."""
    parser = argparse.ArgumentParser(description="Make the PTX of the test kernels.")
    parser.add_argument("--check", action="store_true", help="compare with the files in place, write nothing")
    parser.add_argument("names", nargs="*", help="kernels to make (default: all)")
    args = parser.parse_args()
    nvcc = oracle.find("nvcc")
    if nvcc is None:
        print("nvcc is absent: nothing made", file=sys.stderr)
        return 2
    wanted = set(args.names)
    different = 0
    with tempfile.TemporaryDirectory() as scratch:
        for folder, combined in ((HERE, COMBINED), (HERE / "corpus", None)):
            place = folder / "ptx"
            out = Path(scratch) / folder.name if args.check else place
            for path in make(folder, out, wanted, combined, nvcc):
                if args.check:
                    kept = place / path.relative_to(out)
                    if not kept.is_file() or kept.read_bytes() != path.read_bytes():
                        print(f"differs: {kept.relative_to(HERE)}")
                        different += 1
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
