"""Write a folder for the kit to run on another machine: cubins, launches, data, expectations, and the kit itself.

    python -m tests.gpu.export OUT --sm 90 --cubins PRODUCER=DIR [--cubins ...] [--seed N] [--kernel NAME]

DIR has NAME.cubin for the kernels to run (of tests/kernels, its corpus and hand); kernels without a cubin are left out.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.kernels import cases, cases_corpus, cases_hand, cases_loops, cases_tensor
from tests.kernels.model import Array, Buffer, Expected, KernelSpec, Launch

HERE = Path(__file__).resolve().parent
KIT_FILES = ("kit.py", "driver.py", "trim.py", "README.md")
MANIFEST_VERSION = 1

ALL: dict[str, KernelSpec] = {
    **cases.CASES,
    **cases_corpus.CASES,
    **cases_hand.CASES,
    **cases_loops.CASES,
    **cases_tensor.CASES,
}


class Writer:
    """Writes arrays under OUT/data with numbered names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._next = 0
        (folder / "data").mkdir(parents=True, exist_ok=True)

    def array(self, values: Array) -> str:
        """The path, relative to the folder, of the array's raw little-endian bytes."""
        name = f"data/{self._next:06d}.bin"
        self._next += 1
        (self._folder / name).write_bytes(np.ascontiguousarray(values).tobytes())
        return name

    def expectation(self, want: Expected) -> dict[str, Any]:
        """One expectation in the manifest's form."""
        rule: dict[str, Any] = {
            "file": self.array(want.values),
            "dtype": want.values.dtype.str,
            "ulp": want.ulp,
            "rel": want.rel,
            "abs": want.abs,
        }
        if want.mask is not None:
            rule["mask"] = self.array(want.mask)
        return rule

    def launch(self, launch: Launch) -> dict[str, Any]:
        """One launch in the manifest's form."""
        args: list[dict[str, Any]] = []
        for arg in launch.args:
            if isinstance(arg, Buffer):
                want = launch.expect[arg.name] if arg.output else Expected(arg.data.view(f"u{arg.data.dtype.itemsize}"))
                args.append(
                    {
                        "kind": "buffer",
                        "name": arg.name,
                        "before": self.array(arg.data),
                        "expect": self.expectation(want),
                    }
                )
            else:
                args.append({"kind": "scalar", "name": arg.name, "bytes": arg.data.hex(), "align": arg.align})
        return {
            "entry": launch.entry,
            "label": launch.label,
            "grid": list(launch.grid),
            "block": list(launch.block),
            "shared": launch.shared,
            "args": args,
            "globals": [{"name": name, "file": self.array(values)} for name, values in launch.globals.items()],
            "expect_globals": [
                {"name": name, **self.expectation(want)} for name, want in launch.expect_globals.items()
            ],
        }


def export(out: Path, sm: int, cubins: dict[str, Path], names: list[str], seed: int = 0) -> list[str]:
    """Write the folder; returns the kernels included. ``cubins`` maps a producer's name to its folder."""
    writer = Writer(out)
    rows: list[dict[str, Any]] = []
    for name in names:
        found: dict[str, str] = {}
        for producer, folder in cubins.items():
            source = folder / f"{name}.cubin"
            if source.is_file():
                target = out / producer / source.name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
                found[producer] = f"{producer}/{source.name}"
        if found:
            launches = [writer.launch(launch) for launch in ALL[name].launches(seed)]
            rows.append({"kernel": name, "cubins": found, "launches": launches})
    for file in KIT_FILES:
        shutil.copyfile(HERE / file, out / file)
    manifest = {"version": MANIFEST_VERSION, "sm": sm, "seed": seed, "cases": rows}
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return [row["kernel"] for row in rows]


def main(argv: list[str] | None = None) -> int:
    """Command line; see the module's text."""
    parser = argparse.ArgumentParser(description="Export launches for the GPU kit.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--sm", type=int, required=True)
    parser.add_argument("--cubins", action="append", required=True, metavar="PRODUCER=DIR")
    parser.add_argument("--kernel", action="append", choices=sorted(ALL))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    folders: dict[str, Path] = {}
    for item in options.cubins:
        producer, equals, folder = item.partition("=")
        if not equals or not producer.isidentifier():
            parser.error(f"--cubins {item}: PRODUCER=DIR expected")
        folders[producer] = Path(folder)
    done = export(options.out, options.sm, folders, options.kernel or list(ALL), options.seed)
    print(f"{len(done)} kernels: {' '.join(done)}")
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
