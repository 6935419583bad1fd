"""%reserved_smem_offset_end and _1, which cooperative groups of several warps read: the words of bank 0 and the
kernel's attribute, as in ptxas's cubin."""

from __future__ import annotations

import re

import pytest

from ir_format import isa
from orchestrator.api import compile_ptx
from stages.disasm.cubin import read_cubin
from stages.disasm.listing import decode_section
from tests import oracle

PLACES = {
    "sm_80": ("0x120", "0x124"),
    "sm_89": ("0x120", "0x124"),
    "sm_90": ("0x68", "0x6c"),
    "sm_100": ("+0x278", "+0x27c"),
    "sm_120": ("+0x278", "+0x27c"),
}
USED = b"\x01\x41"  # the attribute, without a value


def _text(arch: str) -> str:
    reads = "".join(
        [
            f"mov.u32 %r, %reserved_smem_offset_{name}; st.global.u32 [%o+{at}], %r;\n"
            for name, at in (("end", 0), ("1", 4))
        ]
    )
    return (
        f".version 8.7\n.target {arch}\n.address_size 64\n.visible .entry k(.param .u64 out) {{ .reg .b64 %o; "
        f".reg .b32 %r; ld.param.u64 %o, [out];\n{reads}ret; }}\n"
    )


def _places(image: bytes) -> list[str]:
    """Which of the offsets above the kernel reads in bank 0."""
    cubin = read_cubin(image)
    texts = "\n".join(
        [item.text or "" for section in cubin.sections for item in decode_section(section, isa.target(cubin.sm))]
    )
    read = re.findall(r"c\[0x0\]\[(?:R\d+)?(\+?0x[0-9a-f]+)\]", texts)
    return sorted({y for pair in PLACES.values() for y in pair} & set(read))


@pytest.mark.parametrize("arch", PLACES)
def test_offsets_in_bank_0_equal_ptxas(arch: str) -> None:
    image = compile_ptx(_text(arch), arch)
    assert _places(image) == sorted(PLACES[arch])
    assert USED in image


@pytest.mark.oracle
@pytest.mark.parametrize("arch", PLACES)
def test_places_of_ptxas(arch: str) -> None:
    oracle.require("ptxas")
    theirs = oracle.compile_ptx(_text(arch), arch.removeprefix("sm_"))
    assert not isinstance(theirs, oracle.ToolError), theirs
    assert _places(theirs.read_bytes()) == sorted(PLACES[arch])
    assert USED in theirs.read_bytes()
