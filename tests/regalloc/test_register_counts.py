"""setmaxnreg: each part of a kernel is allocated within the registers that it has."""

from __future__ import annotations

import numpy as np

from benchmarks.cubin_facts import kernel_facts
from ir_format import isa
from ir_format.flow import read_regs, written_regs
from ir_format.model import Inst
from orchestrator.api import compile_ptx
from stages.disasm.cubin import read_cubin
from stages.simulate.device import Device

_VALUES = 190


def _text() -> str:
    """128 threads give registers back, 256 take more and keep 190 loaded values at once."""
    names = range(1, _VALUES + 1)
    loads = "".join(f"ld.volatile.global.u32 %r{n + 10}, [%rd1+{4 * n}];\n" for n in names)
    sums = "".join(f"add.u32 %r1, %r1, %r{n + 10};\nshl.b32 %r1, %r1, 1;\n" for n in reversed(names))
    return f""".version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
.maxntid 384
.minnctapersm 1
{{
.reg .pred %p<3>;
.reg .b32 %r<{_VALUES + 20}>;
.reg .b64 %rd<5>;
ld.param.u64 %rd1, [p];
mov.u32 %r2, %tid.x;
setp.lt.u32 %p1, %r2, 128;
mov.u32 %r1, 0;
@%p1 bra L;
setmaxnreg.inc.sync.aligned.u32 240;
{loads}{sums}mad.wide.u32 %rd2, %r2, 4, %rd1;
st.volatile.global.u32 [%rd2+1024], %r1;
ret;
L:
setmaxnreg.dec.sync.aligned.u32 24;
mad.wide.u32 %rd2, %r2, 4, %rd1;
st.volatile.global.u32 [%rd2+1024], %r2;
ret;
}}
"""


def test_parts_have_registers_of_their_own() -> None:
    """No advisory, no spill: 190 values are alive in the part with 240 registers, and the kernel starts with the 168
    that its launch bounds leave."""
    data = compile_ptx(_text(), "sm_90a", {}, name="t.ptx")
    assert kernel_facts(data)["k"].registers == 168
    target = isa.target(90)
    code = [i for w in read_cubin(data).sections[0].words if isinstance(i := target.decode(w, 0), Inst)]
    assert sum(i.op == "USETMAXREG" for i in code) == 2 and not {"STL", "LDL"} & {i.op for i in code}
    top = max(r.num + r.width for i in code for r in (*read_regs(i), *written_regs(i)) if r.file == "R" and r.num < 255)
    assert 168 < top <= 240


def test_the_values_are_right() -> None:
    """In the simulator."""
    memory = np.zeros(1024, np.uint32)
    memory[: _VALUES + 1] = np.arange(_VALUES + 1)
    memory[1:_VALUES] *= 77
    want = 0
    for x in memory[_VALUES:0:-1]:
        want = (want + int(x)) * 2 & 0xFFFFFFFF
    Device(compile_ptx(_text(), "sm_90a", {}, name="t.ptx")).launch("k", (1,), (384, 1, 1), [memory])
    assert memory[256 : 256 + 128].tolist() == list(range(128))
    assert set(memory[256 + 128 : 256 + 384].tolist()) == {want}
