"""Write ptx/NAME.ptx of the kernels of cuda/ with nvcc 13.0.88.

python -m tests.tensor.make_ptx
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests import oracle

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Compile every source."""
    nvcc = oracle.find("nvcc")
    if nvcc is None:
        sys.stderr.write("nvcc is not here\n")
        return 1
    for source in sorted((HERE / "cuda").glob("*.cu")):
        target = HERE / "ptx" / f"{source.stem}.ptx"
        arch = "sm_100a" if source.stem.endswith("_100") else "sm_90a"
        subprocess.run(
            [str(nvcc), f"-arch={arch}", "-ptx", "-o", str(target), source.name], cwd=source.parent, check=True
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
