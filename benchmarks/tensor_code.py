"""Size of the code of tensor kernels, beside ptxas's: instructions, registers, frame, and where the difference is.

python -m benchmarks.tensor_code [--more N] [--worst] [FILE.ptx ...]

The target is that of the file's `.target`. Without files: the kernels of tests/tensor. `--more N` prints the N
mnemonics that differ most; `--worst` sorts by instructions, and prints the worst last.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from benchmarks.cubin_facts import kernel_facts
from ir_format import isa
from ir_format.diag import OriasError
from orchestrator.api import compile_ptx
from stages.disasm.cubin import read_cubin
from stages.disasm.listing import decode_section
from tests import oracle

ROOT = Path(__file__).resolve().parents[1]
FRAME_SIZE = 0x11


class Facts(NamedTuple):
    """Code of a kernel. ``mnemonics``: instructions before the tail, by their name up to the first dot."""

    mnemonics: Counter[str]
    registers: int
    frame: int

    @property
    def instructions(self) -> int:
        """How many."""
        return self.mnemonics.total()


def facts_of(data: bytes) -> dict[str, Facts]:
    """Facts of each function with code, by name."""
    cubin = read_cubin(data)
    target = isa.target(cubin.sm)
    frames, counts = frame_sizes(data), kernel_facts(data)
    out = {}
    for section in cubin.sections:
        texts = [d.text for d in decode_section(section, target)]
        names = [re.sub(r"^(@!?U?P\w+ )?", "", t).split()[0].rstrip(";").split(".")[0] if t else "?" for t in texts]
        while names and names[-1] == "NOP":
            names.pop()
        if names and names[-1] == "BRA":
            names.pop()
        name = section.name.removeprefix(".text.")
        if name in counts:
            out[name] = Facts(Counter(names), counts[name].registers, frames.get(name, 0))
    return out


def frame_sizes(data: bytes) -> dict[str, int]:
    """Bytes of stack of each function: EIATTR_FRAME_SIZE."""
    import io
    import struct

    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    elf = ELFFile(io.BytesIO(data))
    symbols = elf.get_section_by_name(".symtab")
    names = [s.name for s in symbols.iter_symbols()] if isinstance(symbols, SymbolTableSection) else []
    info = elf.get_section_by_name(".nv.info")
    found: dict[str, int] = {}
    notes = info.data() if info is not None else b""
    at = 0
    while at + 4 <= len(notes):
        form, code, size = struct.unpack_from("<BBH", notes, at)
        at += 4
        if form == 4:
            if code == FRAME_SIZE:
                symbol, frame = struct.unpack_from("<II", notes, at)
                found[names[symbol]] = frame
            at += size
    return found


def target_of(text: str) -> str:
    """The `.target` of a module: sm_90a."""
    found = re.search(r"^\s*\.target\s+(\w+)", text, re.MULTILINE)
    return found[1] if found else "sm_90a"


def compare(path: Path) -> list[tuple[str, Facts, Facts]]:
    """Kernels of a file: name, our facts, ptxas's."""
    text = path.read_text()
    arch = target_of(text)
    theirs = oracle.run_ptxas(path, arch.removeprefix("sm_"), "-O3")
    if not isinstance(theirs, Path):
        print(f"{path.name}: ptxas refuses it: {theirs}")
        return []
    vendor = facts_of(theirs.read_bytes())
    try:
        ours = facts_of(compile_ptx(text, arch, {}, name=path.name))
    except OriasError as e:
        print(f"{path.name}: refused: {e}")
        return []
    stem = path.stem
    return [(stem if len(vendor) == 1 else f"{stem}:{k}", ours[k], vendor[k]) for k in vendor if k in ours]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--more", type=int, default=6)
    parser.add_argument("--worst", action="store_true")
    args = parser.parse_args()
    files = args.files or sorted((ROOT / "tests/tensor/ptx").glob("*.ptx"))
    logs: tuple[list[float], list[float]] = ([], [])
    lines: list[tuple[float, str]] = []
    stacks = 0
    for path in files:
        began = time.process_time()
        for name, ours, theirs in compare(path):
            ratios = (ours.instructions / theirs.instructions, ours.registers / theirs.registers)
            for store, ratio in zip(logs, ratios, strict=True):
                store.append(math.log(ratio))
            stacks += ours.frame > 0 and not theirs.frame
            keys = sorted(
                ours.mnemonics | theirs.mnemonics, key=lambda k: -abs(ours.mnemonics[k] - theirs.mnemonics[k])
            )
            rest = "  ".join(f"{k} {ours.mnemonics[k]}|{theirs.mnemonics[k]}" for k in keys[: args.more])
            line = (
                f"{name[:28]:28} {ours.instructions:6} | {theirs.instructions:5} {ratios[0]:5.2f}  regs "
                f"{ours.registers:3} | {theirs.registers:3} {ratios[1]:5.2f}  frame {ours.frame:4} | {theirs.frame:4}"
                f"  {time.process_time() - began:5.1f} s  {rest}"
            )
            lines.append((ratios[0], line))
            if not args.worst:
                print(line, flush=True)
    if args.worst:
        for _, line in sorted(lines):
            print(line)
    for what, store in zip(("instructions", "registers"), logs, strict=True):
        if store:
            mean = math.exp(sum(store) / len(store))
            print(f"{what}: geometric mean {mean:.3f} over {len(store)} kernels, worst {math.exp(max(store)):.2f}")
    print(f"stack where ptxas has none: {stacks}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
