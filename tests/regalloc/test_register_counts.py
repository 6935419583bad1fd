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


def _instructions(text: str) -> list[Inst]:
    target = isa.target(90)
    words = read_cubin(compile_ptx(text, "sm_90a", {}, name="t.ptx")).sections[0].words
    return [i for w in words if isinstance(i := target.decode(w, 0), Inst)]


def test_parameters_are_read_where_few_registers_exist() -> None:
    """48 words of parameters that both parts read in a loop: the part with 24 registers reads them from the constant
    bank in each round."""
    params = ", ".join(f".param .u32 p{n}" for n in range(48))
    loads = "".join(f"ld.param.u32 %r{n + 10}, [p{n}];\n" for n in range(48))
    rounds = "".join(f"mad.lo.u32 %r1, %r1, %r{n + 10}, %r2;\n" for n in range(48))
    loop = "{0}: " + rounds + "bar.sync {1}, 128;\nsub.u32 %r3, %r3, 1;\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 bra {0};\n"
    text = f""".version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 rounds, {params})
.maxntid 256
.minnctapersm 2
{{
.reg .pred %p<3>;
.reg .b32 %r<64>;
.reg .b64 %rd<3>;
ld.param.u64 %rd1, [out];
ld.param.u32 %r3, [rounds];
{loads}mov.u32 %r2, %tid.x;
mov.u32 %r1, %r2;
setp.lt.u32 %p2, %r2, 128;
@%p2 bra L;
setmaxnreg.inc.sync.aligned.u32 200;
{loop.format("A", 1)}bra E;
L:
setmaxnreg.dec.sync.aligned.u32 24;
{loop.format("B", 2)}E:
mad.wide.u32 %rd2, %r2, 4, %rd1;
st.global.u32 [%rd2], %r1;
ret;
}}
"""
    code = _instructions(text)
    assert sum(i.op == "USETMAXREG" for i in code) == 2 and not {"STL", "LDL"} & {i.op for i in code}


def test_functions_of_the_driver_need_no_more() -> None:
    """A call of vprintf where 24 registers exist: as in ptxas's code, the changes stay."""
    text = """.version 8.6
.target sm_90a
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.global .align 1 .b8 text[4] = {104, 105, 10, 0};
.visible .entry k(.param .u64 out)
.maxntid 384
.minnctapersm 1
{
.reg .pred %p<2>;
.reg .b32 %r<4>;
.reg .b64 %rd<4>;
ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x;
setp.lt.u32 %p1, %r1, 128;
@%p1 bra L;
setmaxnreg.inc.sync.aligned.u32 240;
st.global.u32 [%rd1], %r1;
ret;
L:
setmaxnreg.dec.sync.aligned.u32 24;
mov.u64 %rd2, text;
mov.u64 %rd3, 0;
{
.param .b64 a;
.param .b64 b;
.param .b32 r;
st.param.b64 [a], %rd2;
st.param.b64 [b], %rd3;
call.uni (r), vprintf, (a, b);
ld.param.b32 %r2, [r];
}
st.global.u32 [%rd1+4], %r2;
st.global.u32 [%rd1+8], %r1;
ret;
}
"""
    assert sum(i.op == "USETMAXREG" for i in _instructions(text)) == 2


def test_registers_that_are_given_away_lose_their_values() -> None:
    """In the simulator: 30 values are alive over a change to 24 registers, so the change may not stay (and if it does,
    as in code that was changed by hand, the values are lost)."""
    numbers = range(30)
    loads = "".join(f"ld.volatile.global.u32 %r{n + 10}, [%rd1+{4 * n}];\n" for n in numbers)
    sums = "".join(f"add.u32 %r1, %r1, %r{n + 10};\n" for n in numbers)
    text = f""".version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
.maxntid 128
.minnctapersm 1
{{
.reg .b32 %r<48>;
.reg .b64 %rd<3>;
ld.param.u64 %rd1, [p];
mov.u32 %r1, 0;
{loads}setmaxnreg.dec.sync.aligned.u32 24;
{sums}st.global.u32 [%rd1+512], %r1;
ret;
}}
"""
    assert not any(i.op == "USETMAXREG" for i in _instructions(text))
