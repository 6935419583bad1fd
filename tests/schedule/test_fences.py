"""Stalls of fences equal ptxas's, without NOPs between their steps."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from ir_format import isa
from ir_format.isa.machine import Refusal
from ir_format.model import Inst
from orchestrator.api import compile_ptx
from tests import oracle
from tests.elf.reader import Cubin, load, read

_TEXT = """
.version 8.0
.target sm_{sm}
.address_size 64
.visible .entry k(.param .u64 p) {{
    .reg .b32 %r<3>; .reg .b64 %rd<3>; ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd1+8], %r1;
    fence.acq_rel.gpu; ld.global.u32 %r2, [%rd1+4]; st.global.u32 [%rd1+12], %r2; membar.sys;
    st.global.u32 [%rd1+20], %r2; ret; }}
"""
_STEPS = ("MEMBAR", "ERRBAR", "CGAERRBAR", "CCTL")


def _steps(c: Cubin, sm: str) -> list[tuple[str, int, str]]:
    """(step of a fence, its stall, the next instruction if that is also a step or a NOP)."""
    code = c.section(".text.k").data
    found = [isa.target(sm).decode(int.from_bytes(code[i : i + 16], "little"), i) for i in range(0, len(code), 16)]
    insts: list[Inst] = [i for i in found if not isinstance(i, Refusal)]
    out = []
    for i, following in itertools.pairwise(insts):
        if i.op in _STEPS:
            assert i.ctl is not None
            out.append((i.op, i.ctl.stall, following.op if following.op in (*_STEPS, "NOP") else ""))
    return out


@pytest.mark.parametrize("sm", ["75", "80", "90"])
def test_stalls_of_fences(sm: str, tmp_path: Path) -> None:
    oracle.require("ptxas")
    text = _TEXT.format(sm=sm)
    theirs = oracle.compile_ptx(text, sm)
    assert isinstance(theirs, Path)
    assert _steps(read(compile_ptx(text, f"sm_{sm}")), sm) == _steps(load(theirs), sm)
