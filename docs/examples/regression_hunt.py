"""Which pass costs a kernel its registers or instructions? Leaves out one pass at a time and compares.

python regression_hunt.py K.ptx sm_90
"""

import sys
from pathlib import Path

from orias.orchestrator.api import compile_ptx
from orias.stages.plumbing.runner import Flags

import orias


def measure(ptx: bytes, arch: str, skipped: str = "") -> tuple[int, int]:
    """(instructions, registers) of the largest kernel."""
    flags = {"optimize": Flags(quiet=True, skip=(skipped,))} if skipped else None
    lines = orias.disassemble(compile_ptx(ptx, arch, flags=flags)).splitlines()
    code = [line for line in lines if line.lstrip().startswith("/*") and "NOP" not in line]
    registers = max([int(line.split("=")[1].split('"')[0]) for line in lines if "SHI_REGISTERS" in line] or [0])
    return len(code), registers


def hunt(path: str, arch: str) -> list[tuple[str, int, int]]:
    """Each pass with the instructions and registers that it adds, the worst first."""
    ptx = Path(path).read_bytes()
    all_of_it = measure(ptx, arch)
    rows = []
    for p in orias.passes()["optimize"]:
        if not p.required:
            without = measure(ptx, arch, p.name)
            rows.append((p.name, all_of_it[0] - without[0], all_of_it[1] - without[1]))
    return sorted(rows, key=lambda row: (-row[2], -row[1]))


if __name__ == "__main__":
    for name, instructions, registers in hunt(sys.argv[1], sys.argv[2]):
        if instructions or registers:
            print(f"{name:20} adds {instructions:+d} instructions, {registers:+d} registers")
