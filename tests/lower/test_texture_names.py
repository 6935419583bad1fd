"""The handle that `mov.u64 d, name` gives, in ptxas's form: the word of bank 0 that the driver fills in, and a
tag."""

from __future__ import annotations

import re

import pytest

from orchestrator.api import compile_ptx
from tests import oracle

NAMES = {"t": ("", 0x20000000), "s": ("", 0x80000000), "sm": (", texmode_independent", 0x40000000)}


def constants(text: str) -> set[int]:
    """The immediates of moves; HFMA2's by their halves."""
    found = {int(x, 16) & 0xFFFFFFFF for x in re.findall(r"MOV(?:\.U32)? U?R\d+, (?:RZ, RZ, )?(-?0x[0-9a-f]+)", text)}
    halves = {"0.0078125": 0x2000, "-0.0 ": 0x8000, "-0.0": 0x8000, "2": 0x4000}
    return found | {
        halves[h] << 16 for h in re.findall(r"HFMA2(?:\.MMA)? R\d+, -RZ, RZ, (-?[0-9.]+ ?), 0", text) if h in halves
    }


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_handle_constants_equal_ptxas(name: str, arch: str, tmp_path: object) -> None:
    oracle.require("ptxas")
    oracle.require("nvdisasm")
    mode, tag = NAMES[name]
    declared = ".global .texref t; .global .surfref s;" + (" .global .samplerref sm;" if mode else "")
    text = (
        f".version 9.0\n.target {arch}{mode}\n.address_size 64\n{declared}\n.visible .entry k(.param .u64 p)\n"
        f"{{ .reg .u64 %d<3>; ld.param.u64 %d1, [p]; mov.u64 %d2, {name}; st.global.u64 [%d1], %d2; ret; }}\n"
    )
    made = oracle.compile_ptx(text, arch)
    assert not isinstance(made, oracle.ToolError)
    own = made.with_name(f"own-{name}-{arch}.cubin")
    own.write_bytes(compile_ptx(text, arch))
    word = "c[0x0][0x168]" if arch == "sm_75" else "c[0x0][0x218]"
    for cubin in (made, own):
        code = oracle.nvdisasm(cubin, "-c")
        assert word in code
        assert (tag in constants(code)) or f"{tag:#x}" in code
        assert ("0x80000000" in code) == (arch == "sm_75" or (name == "s" and cubin is own))
        assert ("0x14" in code or ", 0xc ;" in code) == (arch == "sm_75" and name == "sm")
