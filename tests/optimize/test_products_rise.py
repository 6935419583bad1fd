"""Matrix products move before an operation on a barrier that stands between them and their loads, if registers lack."""

from __future__ import annotations

from ir_format import isa
from ir_format.model import Inst
from orchestrator.api import compile_ptx
from stages.disasm.cubin import read_cubin

_STEPS, _ROWS, _COLUMNS = 4, 2, 8


def _text() -> str:
    """A loop: fragments for four steps are loaded (96 words), a barrier says so, and then come 64 products with 64
    sums: 160 values, where they are not interleaved."""
    loads, products = [], []
    for step in range(_STEPS):
        for row in range(_ROWS):
            names = ", ".join(f"%a{step}_{row}_{n}" for n in range(4))
            loads.append(f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{names}}}, [%r2+{512 * (step * 8 + row)}];")
        for column in range(0, _COLUMNS, 2):
            names = ", ".join(f"%b{step}_{c}_{n}" for c in (column, column + 1) for n in range(2))
            at = 512 * (step * 8 + column // 2) + 16384
            loads.append(f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{names}}}, [%r2+{at}];")
        for row in range(_ROWS):
            for column in range(_COLUMNS):
                d = ", ".join(f"%d{row}_{column}_{n}" for n in range(4))
                a = ", ".join(f"%a{step}_{row}_{n}" for n in range(4))
                b = ", ".join(f"%b{step}_{column}_{n}" for n in range(2))
                form = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
                products.append(f"{form} {{{d}}}, {{{a}}}, {{{b}}}, {{{d}}};")
    sums = [f"%d{r}_{c}_{n}" for r in range(_ROWS) for c in range(_COLUMNS) for n in range(4)]
    words = [f"%a{s}_{r}_{n}" for s in range(_STEPS) for r in range(_ROWS) for n in range(4)]
    words += [f"%b{s}_{c}_{n}" for s in range(_STEPS) for c in range(_COLUMNS) for n in range(2)]
    lines = "\n".join
    return f""".version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 rounds)
.maxnreg 128
{{
.shared .align 16 .b8 tile[32768];
.shared .align 8 .b64 free;
.reg .pred %p1;
.reg .b32 %r<5>;
.reg .b64 %rd<4>;
.reg .b32 {", ".join(words)};
.reg .f32 {", ".join(sums)};
ld.param.u64 %rd1, [p];
ld.param.u32 %r3, [rounds];
mov.u32 %r1, %tid.x;
mov.u32 %r2, tile;
mad.lo.u32 %r2, %r1, 16, %r2;
{lines(f"mov.f32 {name}, 0f00000000;" for name in sums)}
L:
{lines(loads)}
mbarrier.arrive.shared.b64 _, [free];
{lines(products)}
sub.u32 %r3, %r3, 1;
setp.ne.u32 %p1, %r3, 0;
@%p1 bra L;
mad.wide.u32 %rd2, %r1, 256, %rd1;
{lines(f"st.global.f32 [%rd2+{4 * n}], {name};" for n, name in enumerate(sums))}
ret;
}}
"""


def test_products_make_room_before_the_barrier() -> None:
    """Nothing is spilled."""
    target = isa.target(90)
    words = read_cubin(compile_ptx(_text(), "sm_90", {}, name="t.ptx")).sections[0].words
    names = [i.op for w in words if isinstance(i := target.decode(w, 0), Inst)]
    assert not {"STL", "LDL"} & set(names)
    assert names.index("HMMA") < names.index("SYNCS")
