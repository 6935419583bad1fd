"""Instructions with uniform registers whose PTX operands differ between threads: values in the simulator against
Python's integers (and ptxas's code, which loops too)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from orchestrator.api import compile_ptx
from stages.interpret.launch import Module
from stages.lower.waterfall import definitions
from stages.simulate import Device
from tests import oracle
from tests.lower.helpers import insts, lower_text

#: Each thread makes its own barrier, in the second layout for odd threads, and queries the layout; then threads t and
#: t + 16 complete the phase of barrier t % 16 by their copies.
TEXT = """.version 9.3
.target sm_{target}
.address_size 64
.visible .entry k(.param .u64 p) {{
.reg .b64 %p; .reg .b32 %t, %a, %b, %n, %q<4>, %w; .reg .pred %odd, %done, %v1; .shared .align 8 .b64 s[48];
.shared .align 8 .b64 copied[32];
ld.param.u64 %p, [p]; mov.u32 %t, %tid.x; mad.wide.u32 %p, %t, 16, %p;
mov.u32 %a, s; mad.lo.u32 %a, %t, 8, %a; add.u32 %n, %t, 1;
mbarrier.init.shared.b64 [%a], %n;
bar.sync 0;
ld.shared.u32 %q0, [%a]; mov.u32 %q1, 0;
{layout}
bar.sync 0;
and.b32 %b, %t, 15; mad.lo.u32 %b, %b, 8, 256; mov.u32 %w, s; add.u32 %b, %b, %w;
setp.lt.u32 %v1, %t, 16;
@%v1 mbarrier.init.shared.b64 [%b], 2;
bar.sync 0;
mov.u32 %w, copied; mad.lo.u32 %w, %t, 8, %w;
cp.async.ca.shared.global [%w], [%p], 8;
cp.async.mbarrier.arrive.noinc.shared.b64 [%b];
W: mbarrier.test_wait.parity.shared.b64 %done, [%b], 0;
@!%done bra W;
ld.shared.u32 %q2, [%w]; mov.u32 %q3, %n;
st.global.v4.u32 [%p], {{%q0, %q1, %q2, %q3}};
ret; }}
"""
LAYOUT = """and.b32 %w, %t, 1; setp.eq.u32 %odd, %w, 1;
@%odd mbarrier.init.layout::v1.shared.b64 [%a], %n;
mbarrier.check_layout.layout::v1.shared.b64 %v1, [%a]; selp.u32 %q1, 1, 0, %v1;
mbarrier.check_layout.layout::v0.shared.b64 %v1, [%a]; @%v1 add.u32 %q1, %q1, 2;
"""
TARGETS = ("80", "90", "100a", "120a")


def text(target: str) -> str:
    return TEXT.format(target=target, layout="" if target == "80" else LAYOUT)


def check(target: str, data: np.ndarray, words: bool = True) -> None:
    lanes = np.arange(32)
    if words:  # the contents of an mbarrier are up to the hardware
        first = (
            (0x40000000 if target == "80" else 0x100000 << 1) - (lanes + 1) * (1 if target == "80" else 2)
        ) & 0xFFFFFFFF
        assert data[:, 0].tolist() == first.tolist()
    assert data[:, 1].tolist() == [0 if target == "80" else 1 if t % 2 else 2 for t in range(32)]
    assert data[:, 2].tolist() == (1000 + lanes).tolist()
    assert data[:, 3].tolist() == (lanes + 1).tolist()


def given() -> np.ndarray:
    data = np.zeros((32, 4), np.uint32)
    data[:, 0] = 1000 + np.arange(32)
    return data


@pytest.mark.parametrize("target", TARGETS)
def test_barriers_of_each_thread(target: str) -> None:
    data = given()
    Device(compile_ptx(text(target), f"sm_{target}")).launch("k", 1, 32, [data], strict=True)
    check(target, data)


def test_barriers_in_the_interpreter() -> None:
    data = given()
    plain = text("90").replace("ld.shared.u32 %q0, [%a];", "mov.u32 %q0, 0;")
    Module(plain, "sm_90").launch("k", (1, 1, 1), (32, 1, 1), [data])
    check("90", data, words=False)


@pytest.mark.oracle
def test_barriers_of_ptxas(tmp_path: Path) -> None:
    oracle.require(oracle.NEWER)
    cubin = oracle.compile_ptx(text("100a"), "100a", tool=oracle.NEWER)
    assert isinstance(cubin, Path), cubin
    data = given()
    Device(cubin.read_bytes()).launch("k", 1, 32, [data])
    check("100a", data)


def test_fetches_with_divergent_handles_are_serialized() -> None:
    """A fetch whose handle a thread computes runs under the predicate of the threads with this handle; one whose handle
    is a parameter does not."""
    ptx = """.version 9.0
.target sm_100
.address_size 64
.visible .entry k(.param .u64 h, .param .u64 p) {{ .reg .b64 %h, %p; .reg .f32 %f<8>; .reg .b32 %t;
ld.param.u64 %p, [p]; ld.param.u64 %h, [h]; mov.u32 %t, %tid.x;
{differ}
tex.2d.v4.f32.f32 {{%f0, %f1, %f2, %f3}}, [%h, {{%f4, %f5}}]; suld.b.1d.b32.trap {{%t}}, [%h, {{%t}}];
st.global.v4.f32 [%p], {{%f0, %f1, %f2, %f3}}; st.global.u32 [%p+16], %t; ret; }}
"""
    for differ, guarded in (("", False), ("mad.wide.u32 %h, %t, 8, %p; ld.global.u64 %h, [%h];", True)):
        (unit,) = lower_text(ptx.format(differ=differ), "sm_100")
        found = [i for i in insts(unit) if i.op in ("TEX", "SULD", "TLD")]
        assert len(found) == 2 and all((i.guard is not None) == guarded for i in found)


def test_a_register_with_two_definitions_has_none() -> None:
    ptx = """.version 9.0
.target sm_90
.entry k() { .reg .b32 %a, %b; .reg .pred %p; mov.u32 %a, 1; mov.u32 %b, 2; @%p mov.u32 %b, 3; ret; }
"""
    from stages.parse import parse_text

    units = parse_text(ptx, "k.ptx", "sm_90")[1]
    known = definitions(units[0].functions[0].body)
    assert sorted(inst is None for inst in known.values()) == [False, True]
