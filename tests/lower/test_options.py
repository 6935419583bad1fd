"""Options that change single instructions: default and forced cache operators, errors visible at exit, warnings about
doubles; against ptxas."""

from __future__ import annotations

import re

import pytest

from ir_format.model import AttrValue, Header
from orchestrator.api import compile_ptx
from stages.lower.lower import lower_unit
from stages.parse import parse_text
from tests import oracle
from tests.lower.instruction_text import chosen

TEXT = """.version 8.0
.target sm_{arch}
.address_size 64
.visible .entry k(.param .u64 p)
{{ .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .f64 %d<4>;
ld.param.u64 %rd1, [p];
ld.global.u32 %r1, [%rd1];
ld.u32 %r2, [%rd1+4];
ld.global.ca.u32 %r3, [%rd1+72];
ld.global.nc.u32 %r5, [%rd1+16];
ld.volatile.global.u32 %r6, [%rd1+24];
ld.global.f64 %d1, [%rd1+64];
add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; add.u32 %r1, %r1, %r5; add.u32 %r1, %r1, %r6;
add.f64 %d1, %d1, %d1;
st.global.u32 [%rd1], %r1;
st.u32 [%rd1+4], %r1;
st.global.cg.u32 [%rd1+80], %r1;
st.global.f64 [%rd1+64], %d1;
ret; }}
"""
CASES: list[tuple[str, dict[str, AttrValue]]] = [
    ("-dlcm=ca", {"def-load-cache": "ca"}), ("-dlcm=cg", {"def-load-cache": "cg"}),
    ("-dlcm=cs", {"def-load-cache": "cs"}), ("-dlcm=cv", {"def-load-cache": "cv"}),
    ("-flcm=cg", {"force-load-cache": "cg"}), ("-dscm=cg", {"def-store-cache": "cg"}),
    ("-dscm=cs", {"def-store-cache": "cs"}), ("-dscm=wt", {"def-store-cache": "wt"}),
    ("-fscm=cs", {"force-store-cache": "cs"}), ("-make-errors-visible-at-exit", {"make-errors-visible-at-exit": 1}),
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("arch", ["75", "80", "90"])
@pytest.mark.parametrize(("option", "ours"), CASES, ids=[c[0] for c in CASES])
def test_options_change_accesses_as_in_ptxas(option: str, ours: dict[str, AttrValue], arch: str) -> None:
    """The same accesses (in any order), and the same barriers before EXIT."""
    oracle.require("ptxas", "nvdisasm")
    text = TEXT.format(arch=arch)
    theirs = oracle.compile_ptx(text, arch, "-O1", option)
    assert not isinstance(theirs, oracle.ToolError), theirs.stderr
    names = [
        sorted(t.split()[0] for t in chosen(image, "LD|ST|.*ERRBAR"))
        for image in (compile_ptx(text, f"sm_{arch}", ours), theirs.read_bytes())
    ]
    plain = [[n for n in side if not re.match("LDC|LDS", n)] for side in names]
    assert plain[0] == plain[1]


def test_doubles_are_named() -> None:
    module, units, _ = parse_text(TEXT.format(arch="80"), "t.ptx", "sm_80")
    assert module is not None
    header = Header("ptx", "sm_80", "t.ptx")
    header.options["warn-on-double-precision-use"] = 1
    warnings = [(d[0], d[2]) for d in lower_unit(units[0], module, header).diags]
    assert warnings == [("warning", 12), ("warning", 14), ("warning", 18)]
