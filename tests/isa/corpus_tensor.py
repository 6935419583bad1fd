"""Matrix operations of a warp: every shape, type and layout of ``mma``, ``mma.sp`` and ``wmma``, in the notation of
:mod:`tests.isa.corpus`."""

from __future__ import annotations

_F8 = "{e4m3,e5m2}.{e4m3,e5m2}"
_F8F6F4 = "{e4m3,e5m2,e3m2,e2m3,e2m1}.{e4m3,e5m2,e3m2,e2m3,e2m1}"
_I8 = "{u8,s8}.{u8,s8}"
_I4 = "{u4,s4}.{u4,s4}"

DENSE = f"""
mma.sync.aligned.m8n8k4.{{row,col}}.{{row,col}}.f16.f16.f16.f16 rrrr rr rr rrrr
mma.sync.aligned.m8n8k4.{{row,col}}.{{row,col}}.f32.f16.f16.f16 ffffffff rr rr rrrr
mma.sync.aligned.m8n8k4.{{row,col}}.{{row,col}}.f32.f16.f16.f32 ffffffff rr rr ffffffff
mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 rr rr r rr
mma.sync.aligned.m16n8k8.row.col.f32.{{f16.f16,bf16.bf16}}.f32 ffff rr r ffff
mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 rr rrrr rr rr
mma.sync.aligned.m16n8k16.row.col.f32.{{f16.f16,bf16.bf16}}.f32 ffff rrrr rr ffff
mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 ffff rr r ffff
mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 ffff rrrr rr ffff
mma.sync.aligned.m8n8k4.row.col{{,.rn,.rz,.rm,.rp}}.f64.f64.f64.f64 gg g g gg
mma.sync.aligned.m16n8k4.row.col{{,.rn,.rz,.rm,.rp}}.f64.f64.f64.f64 gggg gg g gggg
mma.sync.aligned.m16n8k8.row.col{{,.rn,.rz,.rm,.rp}}.f64.f64.f64.f64 gggg gggg gg gggg
mma.sync.aligned.m16n8k16.row.col{{,.rn,.rz,.rm,.rp}}.f64.f64.f64.f64 gggg gggggggg gggg gggg
mma.sync.aligned.m8n8k16.row.col{{,.satfinite}}.s32.{_I8}.s32 rr r r rr
mma.sync.aligned.m16n8k16.row.col{{,.satfinite}}.s32.{_I8}.s32 rrrr rr r rrrr
mma.sync.aligned.m16n8k32.row.col{{,.satfinite}}.s32.{_I8}.s32 rrrr rrrr rr rrrr
mma.sync.aligned.m8n8k32.row.col{{,.satfinite}}.s32.{_I4}.s32 rr r r rr
mma.sync.aligned.m16n8k32.row.col{{,.satfinite}}.s32.{_I4}.s32 rrrr rr r rrrr
mma.sync.aligned.m16n8k64.row.col{{,.satfinite}}.s32.{_I4}.s32 rrrr rrrr rr rrrr
mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.{{xor,and}}.popc rr r r rr
mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.{{xor,and}}.popc rrrr rr r rrrr
mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.{{xor,and}}.popc rrrr rrrr rr rrrr
mma.sync.aligned.m16n8k16.row.col.f32.{_F8}.f32 ffff rr r ffff
mma.sync.aligned.m16n8k16.row.col.f16.{_F8}.f16 rr rr r rr
mma.sync.aligned.m16n8k32.row.col.f32.{_F8}.f32 ffff rrrr rr ffff
mma.sync.aligned.m16n8k32.row.col.f16.{_F8}.f16 rr rrrr rr rr
mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.{_F8F6F4}.f32 ffff rrrr rr ffff
mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f16.{_F8F6F4}.f16 rr rrrr rr rr
"""

SCALED = f"""
mma.sync.aligned.kind::mxf8f6f4.block_scale{{,.scale_vec::1X}}.m16n8k32.row.col.f32.{_F8F6F4}.f32.ue8m0 ffff rrrr rr \
ffff r hh r hh
mma.sync.aligned.kind::mxf4.block_scale{{,.scale_vec::2X}}.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0 ffff rrrr rr ffff \
r hh r hh
mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0 ffff rrrr rr ffff r \
hh r hh
mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3 ffff rrrr rr ffff r \
hh r hh
mma.sp::ordered_metadata.sync.aligned.kind::mxf8f6f4.block_scale{{,\
.scale_vec::1X}}.m16n8k64.row.col.f32.{_F8F6F4}.f32.ue8m0 ffff rrrr rrrr ffff r 0x0 r hh r hh
mma.sp::ordered_metadata.sync.aligned.kind::mxf4.block_scale{{,\
.scale_vec::2X}}.m16n8k128.row.col.f32.e2m1.e2m1.f32.ue8m0 ffff rrrr rrrr ffff r 0x0 r hh r hh
mma.sp::ordered_metadata.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::2X.m16n8k128.row.col.f32.e2m1.e2m1.f32\
.ue8m0 ffff rrrr rrrr ffff r 0x0 r hh r hh
mma.sp::ordered_metadata.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k128.row.col.f32.e2m1.e2m1.f32\
.ue4m3 ffff rrrr rrrr ffff r 0x0 r hh r hh
"""

_SP = "mma.sp{,::ordered_metadata}.sync.aligned"
SPARSE = f"""
{_SP}.m16n8k16.row.col.f16.f16.f16.f16 rr rr rr rr r 0x{{0,1,2,3}}
{_SP}.m16n8k16.row.col.f32.{{f16.f16,bf16.bf16}}.f32 ffff rr rr ffff r 0x{{0,1,2,3}}
{_SP}.m16n8k32.row.col.f16.f16.f16.f16 rr rrrr rrrr rr r 0x{{0,1}}
{_SP}.m16n8k32.row.col.f32.{{f16.f16,bf16.bf16}}.f32 ffff rrrr rrrr ffff r 0x{{0,1}}
{_SP}.m16n8k8.row.col.f32.tf32.tf32.f32 ffff rr rr ffff r 0x{{0,1,2,3}}
{_SP}.m16n8k16.row.col.f32.tf32.tf32.f32 ffff rrrr rrrr ffff r 0x{{0,1}}
{_SP}.m16n8k32.row.col{{,.satfinite}}.s32.{_I8}.s32 rrrr rr rr rrrr r 0x{{0,1}}
{_SP}.m16n8k64.row.col{{,.satfinite}}.s32.{_I8}.s32 rrrr rrrr rrrr rrrr r 0x0
{_SP}.m16n8k64.row.col{{,.satfinite}}.s32.{_I4}.s32 rrrr rr rr rrrr r 0x{{0,1}}
{_SP}.m16n8k128.row.col{{,.satfinite}}.s32.{_I4}.s32 rrrr rrrr rrrr rrrr r 0x0
{_SP}.m16n8k64.row.col.f32.{_F8}.f32 ffff rrrr rrrr ffff r 0x0
{_SP}.m16n8k64.row.col.f16.{_F8}.f16 rr rrrr rrrr rr r 0x0
mma.sp::ordered_metadata.sync.aligned.kind::f8f6f4.m16n8k64.row.col.f32.{_F8F6F4}.f32 ffff rrrr rrrr ffff r 0x0
mma.sp::ordered_metadata.sync.aligned.kind::f8f6f4.m16n8k64.row.col.f16.{_F8F6F4}.f16 rr rrrr rrrr rr r 0x0
"""

_L = "{row,col}.{row,col}"
WMMA = f"""
wmma.mma.sync.aligned.{_L}.{{m16n16k16,m8n32k16,m32n8k16}}.f16.f16 rrrr rrrrrrrr rrrrrrrr rrrr
wmma.mma.sync.aligned.{_L}.{{m16n16k16,m8n32k16,m32n8k16}}.f32.f16 ffffffff rrrrrrrr rrrrrrrr rrrr
wmma.mma.sync.aligned.{_L}.{{m16n16k16,m8n32k16,m32n8k16}}.f16.f32 rrrr rrrrrrrr rrrrrrrr ffffffff
wmma.mma.sync.aligned.{_L}.{{m16n16k16,m8n32k16,m32n8k16}}.f32.f32 ffffffff rrrrrrrr rrrrrrrr ffffffff
wmma.mma.sync.aligned.{_L}.m16n16k16.f32.bf16.bf16.f32 ffffffff rrrr rrrr ffffffff
wmma.mma.sync.aligned.{_L}.m8n32k16.f32.bf16.bf16.f32 ffffffff rr rrrrrrrr ffffffff
wmma.mma.sync.aligned.{_L}.m32n8k16.f32.bf16.bf16.f32 ffffffff rrrrrrrr rr ffffffff
wmma.mma.sync.aligned.{_L}.m16n16k8.f32.tf32.tf32.f32 ffffffff rrrr rrrr ffffffff
wmma.mma.sync.aligned.{_L}.m8n8k4{{,.rn,.rz,.rm,.rp}}.f64.f64.f64.f64 gg g g gg
wmma.mma.sync.aligned.{_L}.m16n16k16.s32.{{u8.u8,s8.s8}}.s32{{,.satfinite}} rrrrrrrr rr rr rrrrrrrr
wmma.mma.sync.aligned.{_L}.m8n32k16.s32.{{u8.u8,s8.s8}}.s32{{,.satfinite}} rrrrrrrr r rrrr rrrrrrrr
wmma.mma.sync.aligned.{_L}.m32n8k16.s32.{{u8.u8,s8.s8}}.s32{{,.satfinite}} rrrrrrrr rrrr r rrrrrrrr
wmma.mma.sync.aligned.row.col.m8n8k32.s32.{{u4.u4,s4.s4}}.s32{{,.satfinite}} rr r r rr
wmma.mma.{{xor,and}}.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 rr r r rr
wmma.load.{{a,b}}.sync.aligned.{{row,col}}.{{m16n16k16,m8n32k16,m32n8k16}}{{,.global,.shared}}.f16 rrrrrrrr [sa] r
wmma.load.c.sync.aligned.{{row,col}}.{{m16n16k16,m8n32k16,m32n8k16}}{{,.global,.shared}}.f16 rrrr [sa] r
wmma.load.c.sync.aligned.{{row,col}}.{{m16n16k16,m8n32k16,m32n8k16}}{{,.global,.shared}}.f32 ffffffff [sa] r
wmma.load.{{a,b}}.sync.aligned.{{row,col}}.m16n16k16{{,.global,.shared}}.{{bf16}} rrrr [sa]
wmma.load.{{a,b}}.sync.aligned.{{row,col}}.m16n16k16{{,.global,.shared}}.{{s8,u8}} rr [sa] r
wmma.load.{{a,b}}.sync.aligned.{{row,col}}.m16n16k8{{,.global,.shared}}.tf32 rrrr [sa] r
wmma.load.{{a,b}}.sync.aligned.{{row,col}}.m8n8k4{{,.global,.shared}}.f64 g [sa] r
wmma.store.d.sync.aligned.{{row,col}}.{{m16n16k16,m8n32k16,m32n8k16}}{{,.global,.shared}}.f16 : [sa] rrrr r
wmma.store.d.sync.aligned.{{row,col}}.{{m16n16k16,m8n32k16,m32n8k16}}{{,.global,.shared}}.f32 : [sa] ffffffff r
wmma.store.d.sync.aligned.{{row,col}}.m16n16k16{{,.global,.shared}}.s32 : [sa] rrrrrrrr r
wmma.store.d.sync.aligned.{{row,col}}.m8n8k4{{,.global,.shared}}.f64 : [sa] gg r
"""


def _once(table: str) -> str:
    """One kernel per operation: operands from global memory."""
    return "\n".join(line + " @reg" for line in table.strip().splitlines())


#: More families of operations.
OPS: dict[str, str] = {"mma": _once(DENSE), "mmascale": _once(SCALED), "mmasparse": _once(SPARSE), "wmma": _once(WMMA)}

_PACKED = (
    ".visible .entry NAME(.param .u64 pa) {{\n"
    "  .reg .b64 a; .reg .b8 q0, q1; .reg .b16 h; .reg .b32 r; .reg .f32 f0, f1;\n"
    "  ld.param.u64 a, [pa]; ld.global.f32 f0, [a]; ld.global.f32 f1, [a+4]; ld.global.b16 h, [a+8]; mov.b16 {{q0, "
    "q1}}, h;\n"
    "  {body}\n  ret;\n}}\n"
)

#: Whole kernels: conversions of pairs of four-bit floats, which are in registers of eight bits.
RAW: dict[str, tuple[str, ...]] = {
    "cvt4": tuple(
        _PACKED.format(body=body)
        for relu in ("", ".relu")
        for body in (
            f"cvt.rn.satfinite{relu}.e2m1x2.f32 q0, f0, f1; mov.b16 h, {{q0, q1}}; st.global.b16 [a+64], h;",
            f"cvt.rn{relu}.f16x2.e2m1x2 r, q0; st.global.b32 [a+64], r;",
            f"cvt.rn{relu}.f16x2.e2m1x2 r, q1; st.global.b32 [a+64], r;",
        )
    )
}
