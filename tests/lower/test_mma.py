"""mma.sync in all its forms: our cubin and ptxas's give the same bits in the simulator.

python -m tests.lower.test_mma --arch 90 [--every N]      judges every N-th form
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.api import ChainError, compile_ptx
from stages.simulate import Device, SimError
from tests import oracle
from tests.parse import generate

_SIZES = {"r": ("b32", 4), "f": ("f32", 4), "rd": ("f64", 8), "s": ("b32", 4)}
#: Metadata that every sparse shape takes: the pairs of kept elements alternate.
_METADATA = 0xE4E4E4E4
SHAPES_OF_HALVES = "m8n8k4"


def forms(sm: str) -> list[str]:
    """Instructions of the descriptor table, without operands beyond the first set of registers."""
    cases = dict.fromkeys(c.text for c in generate.accepted(f"sm_{sm}", limit=1000) if c.text.startswith("mma."))
    return [c for c in cases if f"{SHAPES_OF_HALVES}." not in c or ".f64" in c]  # steps of quads are not simulated


def kernel(text: str, name: str) -> str:
    """One product per lane: sources from 512 bytes of its own, results to 64."""
    opcode, _, rest = text.rstrip(";").partition(" ")
    declared: list[str] = []
    loads: list[str] = []
    stores: list[str] = []
    operands: list[str] = []
    at = 0
    for k, item in enumerate(re.findall(r"\{[^}]*\}|[^,{}]+", rest)):
        item = item.strip()
        if not item:
            continue
        names = re.findall(r"%([a-z]+)\d+", item)
        kind = _SIZES.get(names[0]) if names else None
        if kind is None:
            operands.append(re.sub(r"%u?h\d+", "0", item) if names else item)
            continue
        t, size = kind
        regs = [f"v{k}_{i}" for i in range(len(names))]
        declared.append(f" .reg .{t} {', '.join(regs)};")
        if not operands:
            stores = [f" st.global.{t} [o+{size * i}], {r};" for i, r in enumerate(regs)]
        elif len(regs) == 1 and "{" not in item and ".sp" in opcode and not any("mov.u32" in x for x in loads):
            loads.append(f" mov.u32 {regs[0]}, {_METADATA:#x};")
        else:
            for r in regs:
                loads.append(f" ld.global.{t} {r}, [a+{at}];")
                at += size
        operands.append("{" + ", ".join(regs) + "}" if "{" in item else regs[0])
    return (
        f".visible .entry {name}(.param .u64 pa, .param .u64 po) {{\n .reg .b64 a, o, w; .reg .b32 t;\n ld.param.u64 "
        f"a, [pa]; ld.param.u64 o, [po];\n"
        " cvta.to.global.u64 a, a; cvta.to.global.u64 o, o; mov.u32 t, %tid.x; mul.wide.u32 w, t, 512; add.u64 a, a, "
        "w; mul.wide.u32 w, t, 64; add.u64 o, o, w;\n"
        + "\n".join([*declared, *loads, f" {opcode} {', '.join(operands)};", *stores])
        + "\n ret;\n}\n"
    )


def values(text: str, rng: np.random.Generator) -> Any:
    """Bytes of the lanes; floats are small numbers, so that no sum is infinite."""
    if ".f64" in text:
        return rng.standard_normal(32 * 64).view(np.uint8)
    raw = rng.integers(0, 256, 32 * 512, dtype=np.uint8)
    if (
        ".tf32" in text
        or ".bf16" in text
        or ".f16" in text
        or "e4m3" in text
        or "e5m2" in text
        or "e2m" in text
        or "e3m" in text
    ):
        raw &= 0x3B  # every format reads a number of moderate size
    return raw


def judge(sm: str, every: int, seed: int = 1) -> tuple[int, list[str]]:
    """(forms compared, those that differ or could not run)."""
    compared = 0
    problems: list[str] = []
    rng = np.random.default_rng(seed)
    for text in forms(sm)[::every]:
        source = f".version 9.0\n.target sm_{sm}\n.address_size 64\n" + kernel(text, "k")
        theirs = oracle.compile_ptx(source, sm)
        if not isinstance(theirs, Path):
            continue  # not a form of this SM
        opcode = text.partition(" ")[0]
        try:
            ours = compile_ptx(source, f"sm_{sm}", {}, name="k")
        except ChainError as error:
            problems.append(f"refused: {opcode}: {str(error)[:150]}")
            continue
        data = values(text, rng)
        outs = []
        for image in (ours, theirs.read_bytes()):
            out = np.zeros(32 * 64, np.uint8)
            try:
                Device(image).launch("k", 1, 32, [data, out])
            except SimError as error:
                problems.append(f"not run: {opcode}: {error}")
                break
            outs.append(out)
        else:
            compared += 1
            if not outs[0].any() or (outs[0] != outs[1]).any():
                problems.append(f"differs: {opcode}")
    return compared, problems


@pytest.mark.oracle
@pytest.mark.parametrize(("sm", "every", "least"), [("75", 2, 6), ("80", 11, 6), ("90", 11, 7), ("120a", 37, 8)])
def test_against_ptxas(sm: str, every: int, least: int) -> None:
    oracle.require("ptxas")
    compared, problems = judge(sm, every)
    assert not [p for p in problems if p.startswith("differs")]
    assert compared >= least, problems


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Matrix products, ours against ptxas's.")
    parser.add_argument("--arch", default="90")
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    compared, problems = judge(options.arch, options.every)
    print(f"sm_{options.arch}: {compared} forms compared")
    for problem in problems:
        print("   ", problem)


if __name__ == "__main__":
    main()
