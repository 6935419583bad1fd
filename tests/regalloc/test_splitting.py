"""Live-range splitting: values that live over a call are saved beside it, not wherever they are read."""

from __future__ import annotations

from benchmarks.cubin_facts import kernel_facts
from ir_format import isa
from ir_format.model import Inst
from orchestrator.api import compile_ptx
from stages.disasm.cubin import read_cubin

_VALUES = 80


def _text() -> str:
    """80 values that a loop reads, 128 registers, and in front of the loop an assertion: over the call 63 registers
    keep their values."""
    numbers = range(_VALUES)
    loads = "".join(f"ld.global.u32 %r{n + 10}, [%rd2+{512 * n}];\n" for n in numbers)
    rounds = "".join(f"mad.lo.u32 %r1, %r1, %r{n + 10}, %r{(n + 7) % _VALUES + 10};\n" for n in numbers)
    return f""".version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.global .align 1 .b8 text[4] = {{104, 105, 10, 0}};
.visible .entry k(.param .u64 p, .param .u32 rounds)
.maxnreg 128
{{
.reg .pred %p<3>;
.reg .b32 %r<{_VALUES + 10}>;
.reg .b64 %rd<5>;
ld.param.u64 %rd1, [p];
ld.param.u32 %r3, [rounds];
mov.u32 %r2, %tid.x;
mov.u32 %r1, %r2;
mad.wide.u32 %rd2, %r2, 4, %rd1;
{loads}setp.gt.s32 %p1, %r3, 0;
@%p1 bra L;
mov.u64 %rd3, text;
mov.u64 %rd4, 0;
{{
.param .b64 a;
.param .b64 b;
.param .b32 r;
st.param.b64 [a], %rd3;
st.param.b64 [b], %rd4;
call.uni (r), vprintf, (a, b);
ld.param.b32 %r4, [r];
}}
L:
{rounds}sub.u32 %r3, %r3, 1;
setp.gt.s32 %p2, %r3, 0;
@%p2 bra L;
st.global.u32 [%rd2], %r1;
ret;
}}
"""


def test_values_are_saved_beside_the_call() -> None:
    """No access to local memory where the assertion holds."""
    target = isa.target(90)
    words = read_cubin(compile_ptx(_text(), "sm_90", {}, name="t.ptx")).sections[0].words
    code = [i for w in words if isinstance(i := target.decode(w, 0), Inst)]
    call = next(n for n, i in enumerate(code) if i.op == "CALL")
    branch = max(n for n, i in enumerate(code[:call]) if i.op == "BRA")
    local = [n for n, i in enumerate(code) if i.op in ("STL", "LDL")]
    assert local and branch < min(local)
    back = next(n for n, i in enumerate(code) if n > call and i.op not in ("LDL", "MOV", "IMAD", "CS2R", "R2UR"))
    assert max(local) < back


def test_values_over_slow_paths_take_no_step_of_occupancy() -> None:
    """14 values, most of them alive over 12 calls of slow paths, which leave them 20 registers of 32: 34 without
    splits."""
    values, rounds = 14, 3
    loads = "".join(f"ld.global.f32 %f{n}, [%rd1+{4 * n}];\n" for n in range(values))
    steps = ""
    for k in range(rounds):
        steps += f"sqrt.rn.f32 %g{k}, %f{k};\n"
        for j in range(k + 1, k + 4):
            other = (j + 5) % values
            steps += f"div.rn.f32 %f{j}, %f{j}, %g{k};\nfma.rn.f32 %f{other}, %f{j}, %f{j}, %f{other};\n"
    names = [*[f"%f{n}" for n in range(values)], *[f"%g{n}" for n in range(rounds)]]
    stores = "".join(f"st.global.f32 [%rd1+{4 * n}], {name};\n" for n, name in enumerate(names))
    text = f""".version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{{
.reg .f32 %f<{values}>, %g<{rounds}>;
.reg .b64 %rd<3>;
ld.param.u64 %rd1, [p];
{loads}{steps}{stores}ret;
}}
"""
    assert kernel_facts(compile_ptx(text, "sm_90", {}, name="t.ptx"))["k"].registers <= 32
