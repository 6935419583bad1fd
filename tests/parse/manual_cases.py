"""Modules in the style of the PTX manual's examples, at least one for each of its chapters; all are valid PTX.

    python -m tests.parse.manual_cases FOLDER     (then `python -m tests.parse.corpus_check --code FOLDER`)

Each is (version, target, text); every kernel made by `_kernel` has the registers of `_REGISTERS`.
"""

from __future__ import annotations

import sys
from pathlib import Path

_REGISTERS = (
    ".reg .pred p, q, r; .reg .b16 h, h1, h2; .reg .u16 us; .reg .b32 a, b, c, d, i, j; .reg .u32 u, v; "
    ".reg .s32 s, t; "
    ".reg .b64 x, y, z; .reg .u64 ptr, ux; .reg .s64 sx; .reg .f32 f, g, k, f0, f1, f2, f3; .reg .f64 fd, gd, kd;"
)


def _kernel(body: str, before: str = "", params: str = ".param .u64 out", name: str = "main") -> str:
    """A kernel whose `ptr` is a global address from its parameter, and that stores what the body leaves in `a`, `x`,
    `f`."""
    return f"""{before}
.visible .entry {name}({params})
{{
  {_REGISTERS}
  ld.param.u64 ptr, [out];
  cvta.to.global.u64 ptr, ptr;
  mov.u32 a, %tid.x; mov.u32 b, %ntid.x; mov.u32 c, %ctaid.y; mov.u64 x, %clock64; mov.u32 u, %laneid; mov.s32 s, -7;
  cvt.u64.u32 y, b; cvt.rn.f32.u32 f, a; cvt.rn.f32.u32 g, b; mov.f32 k, 0f40490FDB; cvt.f64.f32 fd, f; \
cvt.f64.f32 gd, g; cvt.u16.u32 us, u;
  mov.b16 h, us; mov.b16 h1, 0x3c00; mov.b32 d, a; mov.b32 i, b; mov.u32 v, c; mov.s32 t, s; mov.b64 z, x; \
cvt.s64.s32 sx, s; mov.u64 ux, y;
{body}
  st.global.b32 [ptr], a; st.global.b64 [ptr+8], x; st.global.f32 [ptr+16], f; st.global.f64 [ptr+24], fd; \
st.global.b16 [ptr+32], h;
  ret;
}}
"""


MODULES: dict[str, tuple[str, str, str]] = {
    "syntax": ("8.0", "sm_80", _kernel("""
  /* comments: block */ // and line
  mov.b32 a, 0x7fFF; mov.b32 b, 0b101U; mov.b32 c, 017; mov.s32 s, -(3 + 4) * 2 % 5; mov.u32 u, (1 << 4) | 3 & ~1 ^ 2;
  mov.u32 v, 7 > 3 ? WARP_SZ : 0; mov.f32 f, 0F3f800000; mov.f64 fd, 0D400921FB54442D18; mov.f32 g, 1.5e-3; \
mov.f64 gd, .5; mov.u64 x, (.u64) -1 / 2;
  add.s32 a, a, !0; @!p bra $Skip; setp.eq.s32 p, a, 1;
$Skip: { .reg .b32 a; mov.b32 a, 5; _inner: st.global.b32 [ptr+64], a; }
""")),
    "state spaces": ("8.0", "sm_80", _kernel("""
  .reg .v4 .f32 accel; .reg .b32 %many<8>; .local .align 8 .b8 scratch[16]; .shared .f32 tile[32];
  mov.b32 %many7, a; st.local.b32 [scratch + 4], %many7; ld.local.b32 a, [scratch+4]; ld.const.f32 f, [bias]; \
ld.const.f32 g, [bias+4];
  mov.f32 accel.x, f; mov.f32 accel.w, g; add.f32 f, accel.x, accel.w; st.shared.f32 [tile], f; mov.u32 b, tile; \
ld.shared.f32 f, [b];
  ld.global.v4.u32 {a, b, c, d}, [table]; ld.global.b64 x, [names + 8]; ld.param.b32 c, [extra + 4];
""", """
.const .f32 bias[] = { -1.0, 1.0 };
.global .align 16 .u32 table[2][4] = { {1, 2, 3, 4}, {5, 6} };
.global .u64 names[2] = { table, generic(table) + 16 };
.global .s32 offset = -5; .global .u8 bg[4] = { 0xff(table), 0xff00(table), 0, 0 };
.global .v4 .f32 where_; .global .b8 blob[3] = {1, 2, 3}; .visible .global .f64 pi = 3.141592653589793; \
.weak .global .u32 maybe; .extern .shared .b8 dynamic[];
""", ".param .u64 out, .param .align 8 .b8 extra[16]")),
    "integer arithmetic": ("8.0", "sm_80", _kernel("""
  add.s32 s, s, t; add.sat.s32 s, s, t; add.u64 x, x, y; sub.u16 us, us, 1; sub.sat.s32 t, s, 1; mul.lo.u32 a, a, b; \
mul.hi.s32 t, s, t; mul.wide.u32 x, a, b;
  mul.wide.u16 b, us, us; mad.lo.s32 s, s, t, s; mad.hi.u32 a, a, b, c; mad.wide.s32 sx, s, t, sx; \
mad.hi.sat.s32 s, s, t, s; mul24.lo.u32 a, a, b;
  mad24.hi.s32 s, s, t, s; sad.s32 s, s, t, u; div.s32 s, s, 3; div.u64 x, x, 7; rem.u32 a, a, 10; abs.s32 t, t; \
neg.s64 sx, sx; min.s32 s, s, t;
  max.u64 x, x, y; popc.b64 b, x; clz.b32 c, a; bfind.u32 b, a; bfind.shiftamt.s64 c, sx; brev.b32 a, a; \
bfe.u32 a, a, 4, 8; bfe.s64 sx, sx, 3, 9;
  bfi.b32 a, a, b, 8, 4; fns.b32 b, a, 3, 2; dp4a.u32.s32 s, a, b, s; dp2a.lo.u32.u32 u, a, b, u; \
szext.wrap.u32 u, a, 5; bmsk.clamp.b32 b, 3, 7;
  add.u32 a, a, b; add.u32 a, a, c; xor.b64 x, x, sx; add.s32 s, s, t; xor.b32 a, a, s; xor.b32 a, a, u;
""")),
    "extended precision": ("8.0", "sm_80", _kernel("""
  add.cc.u32 a, a, b; addc.cc.u32 c, c, d; addc.u32 i, i, 0; sub.cc.u32 a, a, 9; subc.cc.u32 c, c, 0; subc.u32 i, i, 0;
  mad.lo.cc.u32 a, b, c, a; madc.hi.cc.u32 d, b, c, d; madc.lo.u32 i, b, c, 0; add.cc.u64 x, x, y; addc.u64 z, z, 0; \
xor.b64 x, x, z; xor.b32 a, a, i; xor.b32 a, a, d;
""")),
    "floating point": ("8.0", "sm_90", _kernel("""
  testp.finite.f32 p, f; testp.subnormal.f64 q, fd; copysign.f32 f, g, f; add.rz.f32 f, f, g; \
add.rn.ftz.sat.f32 f, f, g; sub.f64 fd, fd, gd; mul.rm.f32 f, f, g;
  mul.rp.f64 fd, fd, gd; fma.rn.ftz.f32 f, f, g, k; fma.rz.f64 fd, fd, gd, fd; mad.rn.f32 f, f, g, k; \
div.approx.f32 f, f, g; div.full.ftz.f32 f, f, g; div.rn.f32 f, f, g;
  div.rn.f64 fd, fd, gd; abs.f32 f, f; neg.f64 fd, fd; min.f32 f, f, g; min.NaN.f32 f, f, g; \
max.xorsign.abs.f32 f, f, g; max.f64 fd, fd, gd; rcp.approx.ftz.f32 f, f;
  rcp.rn.f64 fd, fd; rcp.approx.ftz.f64 fd, fd; sqrt.rn.f32 f, f; sqrt.approx.f32 f, f; rsqrt.approx.f32 f, f; \
rsqrt.approx.f64 fd, fd; sin.approx.f32 f, f; cos.approx.ftz.f32 f, f;
  lg2.approx.f32 f, f; ex2.approx.f32 f, f; tanh.approx.f32 f, f; selp.f32 f, f, g, p; selp.f64 fd, fd, gd, q;
""")),
    "half precision": ("8.6", "sm_100", _kernel("""
  add.f16 h, h, h1; add.rn.sat.f16x2 a, a, b; sub.bf16x2 b, a, b; mul.rn.bf16 h2, h, h1; fma.rn.relu.f16 h, h, h1, h2; \
fma.rn.oob.f16x2 a, a, b, c; neg.f16x2 a, a;
  abs.bf16 h, h; min.NaN.f16x2 a, a, b; max.bf16 h, h, h1; tanh.approx.f16x2 a, a; ex2.approx.ftz.bf16x2 b, b; \
set.gt.f16x2.f16x2 c, a, b; setp.lt.f16x2 p|q, a, b;
  add.f32.bf16 f, h, f; fma.rn.f32.f16 f, h, h1, f; add.rn.f32x2 x, x, y; fma.rn.ftz.f32x2 x, x, y, z; xor.b32 a, a, c;
""")),
    "comparison": ("8.0", "sm_80", _kernel("""
  setp.lt.s32 p, s, t; setp.geu.f32 q, f, g; setp.eq.and.u32 p|r, a, b, !q; setp.num.f64 q, fd, gd; \
set.lt.u32.f32 a, f, g; set.ne.xor.f32.s32 f, s, t, p;
  selp.b32 a, a, b, p; selp.u64 x, x, y, r; slct.u32.s32 a, a, b, s; slct.ftz.f32.f32 f, f, g, k; \
setp.hi.u16 p, us, 3; @p not.b32 a, a; @!q cnot.b32 a, a;
  and.pred p, p, q; or.pred p, p, r; xor.pred q, p, r; not.pred r, q; mov.pred q, r; @q add.u32 a, a, 1; \
setp.ls.u64 p, x, y; selp.f32 f, f, g, p;
""")),
    "logic and shift": ("8.2", "sm_80", _kernel("""
  and.b32 a, a, 0xff; or.b64 x, x, y; xor.b16 h, h, h1; not.b32 b, b; cnot.b16 h, h; lop3.b32 a, a, b, c, 0x96; \
lop3.or.b32 a|p, a, b, c, 0x3f, q; shf.l.wrap.b32 a, a, b, 3;
  shf.r.clamp.b32 b, a, b, c; shl.b64 x, x, 3; shr.s32 s, s, 5; shr.u64 y, y, b; shr.b16 h, h, 2; xor.b32 a, a, s; \
xor.b64 x, x, y; xor.b32 a, a, b;
""")),
    "data movement": ("8.3", "sm_90", _kernel("""
  .reg .b128 w;
  ld.global.nc.v2.f32 {f0, f1}, [ptr]; ld.global.L1::evict_last.u32 a, [ptr+4]; ld.volatile.global.u8 us, [ptr]; \
ld.relaxed.gpu.global.u32 b, [ptr]; ld.acquire.cta.u64 x, [ux];
  ld.global.ca.L2::128B.b32 c, [ptr]; st.global.wb.v4.f32 [ptr+48], {f0, f1, f2, f3}; \
st.release.sys.global.u32 [ptr], a; ldu.global.f32 f, [ptr]; ld.b128 w, [ux]; st.b128 [ux], w;
  prefetch.global.L2 [ptr]; prefetchu.L1 [ux]; applypriority.global.L2::evict_normal [ptr], 128; \
discard.global.L2 [ptr], 128; createpolicy.fractional.L2::evict_last.b64 x, 0.5;
  ld.global.L2::cache_hint.u32 d, [ptr], x; isspacep.global p, ux; cvta.shared.u64 x, x; mov.b64 {a, b}, x; \
mov.b64 x, {b, a}; mov.b32 a, {h, h1}; prmt.b32 a, a, b, 0x5410;
  prmt.f4e.b32 b, a, c, d; shfl.sync.bfly.b32 a|p, a, 1, 0x1f, -1; shfl.sync.idx.b32 b, a, 0, 31, 0xffffffff; \
mov.u64 y, ptr; mapa.shared::cluster.u32 c, d, 1; getctarank.shared::cluster.u32 d, c;
  mov.b128 w, {x, y}; mov.b128 {x, y}, w; st.weak.global.u64 [ptr+8], y; xor.b32 a, a, d;
""")),
    "conversions": ("8.6", "sm_100a", _kernel("""
  cvt.s8.s32 s, s; cvt.rzi.sat.u8.f32 a, f; cvt.rni.s32.f32 s, f; cvt.rzi.ftz.u64.f32 x, f; cvt.rn.f32.s64 f, sx; \
cvt.rn.f16.f32 h, f; cvt.f32.f16 f, h; cvt.rz.bf16.f32 h1, f;
  cvt.f32.bf16 g, h1; cvt.rn.f16x2.f32 a, f, g; cvt.rn.relu.bf16x2.f32 b, f, g; cvt.rna.tf32.f32 c, f; \
cvt.rn.satfinite.e4m3x2.f32 h, f, g; cvt.rn.f16x2.e5m2x2 d, h;
  cvt.rpi.f64.f64 fd, fd; cvt.rm.f32.f64 f, fd; cvt.rn.f64.s32 fd, s; cvt.pack.sat.u8.s32.b32 a, s, t, a; \
cvta.to.shared.u64 x, x; cvta.const.u64 y, y; cvt.rmi.f32.f32 g, g; cvt.rn.f32.u8 f, a;
  cvt.rn.satfinite.e2m3x2.f32 h2, f, g; cvt.rp.satfinite.ue8m0x2.f32 h, f, g; xor.b32 a, a, b; xor.b32 a, a, c; \
xor.b32 a, a, d;
""")),
    "asynchronous copies": ("8.6", "sm_90", _kernel("""
  .shared .align 128 .b8 stage[256]; .shared .align 8 .b64 bar; .reg .b64 token;
  mov.u32 i, stage; mov.u32 j, bar; cp.async.ca.shared.global [i], [ptr], 16; \
cp.async.cg.shared.global.L2::128B [i+16], [ptr+16], 16, 8; cp.async.commit_group; cp.async.wait_group 0; \
cp.async.wait_all;
  mbarrier.init.shared.b64 [bar], 32; mbarrier.arrive.expect_tx.shared.b64 token, [bar], 64; \
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [i], [ptr], 64, [j];
Wait: mbarrier.try_wait.shared.b64 p, [bar], token; @!p bra Wait; mbarrier.test_wait.parity.shared.b64 q, [bar], 0; \
mbarrier.arrive.shared::cta.b64 token, [bar]; mbarrier.pending_count.b64 a, token;
  cp.async.mbarrier.arrive.noinc.shared.b64 [bar]; fence.proxy.async; \
cp.async.bulk.global.shared::cta.bulk_group [ptr], [i], 64; cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
  cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [ptr], [i], 16; mbarrier.inval.shared.b64 [bar]; \
cp.async.bulk.prefetch.L2.global [ptr], 64;
""")),
    "tensor copies": ("8.6", "sm_90", _kernel("""
  .shared .align 128 .b8 stage[1024]; .shared .align 8 .b64 bar;
  mov.u32 i, stage; mov.u32 j, bar; mov.u64 x, map; \
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [i], [x, {a, b}], [j];
  cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster [i], [x, {a, \
b, c}], [j], {h}, us; cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [x, {a}], [i];
  cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [x, {a, b}], [i]; \
cp.async.bulk.prefetch.tensor.4d.L2.global.tile [x, {a, b, c, d}]; prefetch.tensormap [x];
""", "", ".param .u64 out, .param .align 64 .b8 map[128]").replace("mov.u64 x, map", "mov.b64 x, map")),
    "textures": ("8.0", "sm_80", _kernel("""
  tex.1d.v4.s32.s32 {a, b, c, d}, [image, {a}]; tex.2d.v4.f32.f32 {f0, f1, f2, f3}, [image, {f, g}]; \
tex.a2d.v4.u32.f32 {a, b, c, d}, [image, {a, f, g, k}]; add.f32 f, f0, f3;
  tex.level.2d.v4.f32.f32 {f0, f1, f2, f3}, [image, {f, g}], k; \
tex.grad.2d.v4.f32.f32 {f0, f1, f2, f3}, [image, {f, g}], {f, g}, {g, f}; \
tex.cube.v4.f32.f32 {f0, f1, f2, f3}, [image, {f, g, k, k}];
  tld4.g.2d.v4.f32.f32 {f0, f1, f2, f3}, [image, {f, g}]; tex.3d.v4.f32.f32 {f0, f1, f2, f3}, [x, {f, g, k, k}]; \
tex.2d.v4.f32.s32 {f0, f1, f2, f3}|p, [image, {a, b}]; txq.width.b32 b, [image];
  txq.level.height.b32 c, [image], a; add.f32 f, f, f1; add.u32 a, a, c; \
tex.base.2d.v4.f32.f32 {f0, f1, f2, f3}, [image, {f, g}]; tex.2d.v4.f32.f32 {f0, f1, f2, f3}, [image, {f, g}], {a, b};
  suld.b.1d.b32.trap a, [pixels, {b}]; suld.b.2d.v4.b8.clamp {h, h1, h2, us}, [pixels, {a, b}]; \
sust.b.2d.b32.zero [pixels, {a, b}], c; sust.p.1d.v4.b32.trap [pixels, {a}], {a, b, c, d};
  sured.b.add.2d.u32.trap [pixels, {a, b}], c; sured.p.min.1d.b32.clamp [pixels, {a}], b; suq.height.b32 d, [pixels]; \
add.f32 f, f, f2; istypep.texref p, x;
""", ".global .texref image; .global .surfref pixels;")),
    "independent samplers": ("8.0", "sm_80, texmode_independent", _kernel("""
  tex.2d.v4.f32.f32 {f0, f1, f2, f3}, [image, point, {f, g}]; txq.filter_mode.b32 a, [point]; \
txq.channel_order.b32 b, [image]; add.f32 f, f0, f1; add.u32 a, a, b;
""", ".global .texref image; .global .samplerref point = { filter_mode = nearest, addr_mode_0 = clamp_to_edge };")),
    "control flow": ("8.0", "sm_80", _kernel("""
  mov.u32 i, 0;
Loop: setp.ge.u32 p, i, b; @p bra.uni Done; rem.u32 j, i, 4;
Targets: .branchtargets Zero, One, Two, Three; brx.idx j, Targets;
Zero: add.u32 a, a, 1; bra Next;
One: xor.b32 a, a, 0x55; bra Next;
Two: call.uni (a), twice, (a); bra Next;
Three: mov.u64 x, thrice; Known: .calltargets twice, thrice; call (a), x, (a), Known;
Next: add.u32 i, i, 1; bra Loop;
Done: mov.u64 x, twice; Shape: .callprototype (.param .b32 _) _ (.param .b32 _); { .param .b32 in0, out0; \
st.param.b32 [in0], a; call (out0), x, (in0), Shape; ld.param.b32 a, [out0]; }
  setp.eq.u32 q, a, 77; @q exit;
""", """
.func (.param .b32 result) twice(.param .b32 value);
.func (.param .b32 result) thrice(.param .b32 value) { .reg .b32 n, m; ld.param.b32 n, [value]; mad.lo.u32 m, n, 2, n; \
st.param.b32 [result], m; ret; }
.func (.param .b32 result) twice(.param .b32 value) { .reg .b32 n; ld.param.b32 n, [value]; shl.b32 n, n, 1; \
st.param.b32 [result], n; ret; }
""")),
    "calls": ("8.0", "sm_80", _kernel("""
  { .param .align 16 .b8 point[16]; .param .b64 where; .param .b32 count, status; st.param.f32 [point], f; \
st.param.v2.f32 [point+8], {g, k}; st.param.b64 [where], ptr; st.param.b32 [count], a;
    call.uni (status), walk, (point, where, count); ld.param.b32 a, [status]; }
  call (a), vsum, (b, 5); call plain;
""", """
.func (.reg .b32 sum) vsum(.reg .b32 n, .reg .b32 m) { add.u32 sum, n, m; ret; }
.func plain() { ret; }
.func (.param .b32 status) walk(.param .align 16 .b8 point[16], .param .b64 where, .param .b32 count) .noreturn_not
{ .reg .f32 v<4>; .reg .b64 w; .reg .b32 n; .reg .pred more; ld.param.v4.f32 {v0, v1, v2, v3}, [point]; \
ld.param.b64 w, [where]; ld.param.b32 n, [count];
  add.f32 v0, v0, v3; st.global.f32 [w], v0; setp.gt.u32 more, n, 3; @more sub.u32 n, n, 1; st.param.b32 [status], n; \
ret; }
""".replace(" .noreturn_not", ""))),
    "synchronisation": ("8.6", "sm_90", _kernel("""
  bar.sync 0; bar.sync 1, 64; bar.arrive 2, 64; bar.red.popc.u32 a, 3, p; barrier.sync.aligned 4; \
barrier.cta.red.and.pred q, 5, 64, !p; bar.warp.sync 0xffffffff; barrier.cluster.arrive.relaxed;
  barrier.cluster.wait; membar.gl; membar.cta; fence.acq_rel.gpu; fence.sc.sys; fence.proxy.alias; \
vote.sync.any.pred p, q, -1; vote.sync.ballot.b32 b, p, -1; match.any.sync.b32 c, a, -1;
  match.all.sync.b64 d|p, x, -1; activemask.b32 i; redux.sync.add.s32 s, s, -1; redux.sync.xor.b32 a, a, 0xffff; \
elect.sync j|q, -1; griddepcontrol.wait; griddepcontrol.launch_dependents;
  atom.global.add.u32 a, [ptr], 1; atom.acq_rel.gpu.global.cas.b64 x, [ptr+8], x, y; \
atom.shared::cluster.exch.b32 b, [c], 5; red.global.max.s32 [ptr], s; red.relaxed.sys.global.add.f64 [ptr+24], fd;
  atom.global.add.noftz.f16x2 a, [ptr], b; atom.global.inc.u32 u, [ptr], 7; \
red.global.add.v4.f32 [ptr+48], {f, g, f, g}; atom.global.v2.f32.add {f0, f1}, [ptr+48], {f, g}; add.f32 f, f, f0; \
xor.b32 a, a, i;
""".replace("atom.global.v2.f32.add", "atom.global.add.v2.f32"))),
    "matrices": ("8.0", "sm_80", _kernel("""
  .shared .align 16 .b8 tile[2048]; .reg .b32 m<8>, n<8>; .reg .f32 acc<8>; .reg .f64 da, db, d0, d1;
  wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {m0, m1, m2, m3, m4, m5, m6, m7}, [tile], 16; \
wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {n0, n1, n2, n3, n4, n5, n6, n7}, [ptr], 16;
  wmma.load.c.sync.aligned.row.m16n16k16.f32 {acc0, acc1, acc2, acc3, acc4, acc5, acc6, acc7}, [ux];
  wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {acc0, acc1, acc2, acc3, acc4, acc5, acc6, acc7}, {m0, m1, m2, m3, \
m4, m5, m6, m7}, {n0, n1, n2, n3, n4, n5, n6, n7}, {acc0, acc1, acc2, acc3, acc4, acc5, acc6, acc7};
  wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [tile], {acc0, acc1, acc2, acc3, acc4, acc5, acc6, acc7};
  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {acc0, acc1, acc2, acc3}, {m0, m1, m2, m3}, {n0, n1}, {acc4, \
acc5, acc6, acc7};
  mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {a, b, c, d}, {m0, m1, m2, m3}, {n0, n1}, {a, b, c, d}; \
mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {d0, d1}, {da}, {db}, {d0, d1};
  mma.sp.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16 {m0, m1}, {m0, m1, m2, m3}, {n0, n1, n2, n3}, {m2, m3}, a, 0x0; \
ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {m0, m1, m2, m3}, [tile];
  movmatrix.sync.aligned.m8n8.trans.b16 a, m0; add.f32 f, acc0, acc3; add.f64 fd, fd, d0; xor.b32 a, a, m1;
""")),
    "warpgroup matrices": ("8.0", "sm_90a", _kernel("""
  .shared .align 128 .b8 tile[4096]; .reg .f32 acc<4>; .reg .b64 da, db; mov.b64 da, 0; mov.b64 db, 0;
  wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {acc0, acc1, acc2, acc3}, da, db, 1, 1, \
1, 0, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
  setmaxnreg.inc.sync.aligned.u32 152; stmatrix.sync.aligned.m8n8.x2.shared.b16 [tile], {a, b}; add.f32 f, acc0, acc3;
""").replace("\n{\n", " .maxntid 128\n{\n")),
    "tensor memory": ("8.6", "sm_100a", _kernel("""
  .shared .align 16 .b8 slot[16]; .shared .align 8 .b64 bar;
  mov.u32 i, slot; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [i], 64; ld.shared.b32 j, [i]; \
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
  setp.ne.b32 p, a, 0; tcgen05.mma.cta_group::1.kind::f16 [j], x, y, b, p; \
tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [bar]; tcgen05.fence::before_thread_sync; \
tcgen05.fence::after_thread_sync;
  tcgen05.ld.sync.aligned.32x32b.x2.b32 {a, b}, [j]; tcgen05.wait::ld.sync.aligned; \
tcgen05.st.sync.aligned.16x64b.x1.b32 [j], {a}; tcgen05.wait::st.sync.aligned;
  tcgen05.cp.cta_group::1.128x256b [j], x; tcgen05.shift.cta_group::1.down [j]; \
tcgen05.dealloc.cta_group::1.sync.aligned.b32 j, 64;
""".replace("[bar]", "[x]"))),
    "stack": ("8.0", "sm_80", _kernel("""
  .reg .u64 saved, block; stacksave.u64 saved; alloca.u64 block, 64, 8; st.local.u32 [block], a; \
ld.local.u32 a, [block]; stackrestore.u64 saved;
""")),
    "video": ("8.0", "sm_80", _kernel("""
  vadd.s32.u32.s32.sat s, a.b0, b.h1; vsub.u32.s32.u32.min u, s, a.b3, v; vabsdiff.u32.u32.u32.add u, a, b, c; \
vmin.s32.s32.s32 s, s, t; vshl.u32.u32.u32.clamp u, a.b1, b.b0;
  vmad.s32.s32.s32.shr7 s, a.b0, b.b1, t; vset.u32.u32.lt u, a, b; vadd2.u32.u32.u32 u, a, b, c; \
vabsdiff4.u32.u32.u32.add u, a, b, u; vmax4.s32.s32.s32.sat s, a, b, c; xor.b32 a, u, s;
""")),
    "miscellaneous": ("8.0", "sm_80", _kernel("""
  .pragma "nounroll"; pmevent 3; nanosleep.u32 40; setp.eq.u32 p, a, 1234567; @p trap; @p brkpt;
  mov.u32 a, %warpid; mov.u32 b, %nwarpid; mov.u32 c, %smid; mov.u32 d, %nsmid; mov.u64 x, %gridid; \
mov.u32 i, %lanemask_lt; mov.u32 j, %clock; mov.u64 y, %globaltimer; mov.u32 u, %nctaid.z;
  mov.u32 v, %dynamic_smem_size; mov.u32 s, %total_smem_size; mov.u32 t, %envreg3; xor.b32 a, a, b; xor.b32 a, a, c; \
xor.b32 a, a, d; xor.b32 a, a, i; xor.b32 a, a, u; xor.b32 a, a, v; xor.b64 x, x, y;
""")),
    "performance directives": ("8.0", "sm_80",
    '.pragma "nounroll";\n' + _kernel("").replace("\n{\n",
    " .maxntid 16, 16, 1 .minnctapersm 2 .maxnreg 64\n{\n") + _kernel("", name="other").replace("\n{\n",
    " .reqntid 256\n{\n")),
    "clusters": ("8.0", "sm_90", _kernel("""
  mov.u32 a, %cluster_ctaid.x; mov.u32 b, %cluster_nctaid.y; mov.u32 c, %cluster_ctarank; \
mov.u32 d, %cluster_nctarank; mov.u32 i, %clusterid.x; mov.u32 j, %nclusterid.z; mov.pred p, %is_explicit_cluster;
  selp.u32 a, a, b, p; xor.b32 a, a, c; xor.b32 a, a, d; xor.b32 a, a, i;
""").replace("\n{\n", " .reqnctapercluster 2, 1, 1 .explicitcluster\n{\n") + _kernel("", name="other").replace("\n{\n",
" .maxclusterrank 8\n{\n")),
    "debugging": ("8.0", "sm_80", _kernel("""
  .loc 1 10 3
  add.u32 a, a, 1;
  .loc 2 20 1, function_name $name, inlined_at 1 10 3
  mul.lo.u32 a, a, a;
""",
'.file 1 "kernel.cu", 1700000000, 123\n.file 2 "inline.h"') +
    '.section .debug_str { $name: .b8 110, 97\n.b8 109, 0 }\n.section .debug_info { .b32 0x10\n.b64 main\n.b32 '
    '.debug_str+2 }\n'),
    "linking": ("8.0", "sm_80", _kernel("""
  call (a), chosen, (a); ld.global.u32 b, [defaulted]; add.u32 a, a, b; ld.global.u32 c, [shared_one]; add.u32 a, a, c;
""", """
.weak .global .u32 defaulted = 3; .common .global .u32 shared_one;
.func (.reg .b32 r) original(.reg .b32 n) { add.u32 r, n, 40; ret; }
.weak .func (.reg .b32 r) chosen(.reg .b32 n);
.alias chosen, original;
""")),
    "managed and pointers": ("8.0", "sm_80", _kernel("""
  ld.param.u64 x, [data]; ld.global.f32 f, [x]; ld.global.u32 a, [everywhere];
""", ".global .attribute(.managed) .u32 everywhere; .visible .global .attribute(.managed) .f32 also[4];",
".param .u64 out, .param .u64 .ptr .global .align 16 data")),
    "old PTX": ("1.4", "sm_13", """
.entry old ( .param .u32 out ) {
  .reg .u32 %r<4>; .reg .f32 %f<3>; .reg .pred %p;
  ld.param.u32 %r1, [out]; mov.u16 %rh, %tid.x; cvt.u32.u16 %r2, %rh; setp.lt.u32 %p, %r2, 5; @%p add.u32 %r2, %r2, 1; \
st.global.u32 [%r1], %r2; exit;
}
""".replace(".reg .pred %p;", ".reg .pred %p; .reg .u16 %rh;")),
}  # fmt: skip


def text_of(name: str) -> str:
    """The whole text of a module."""
    version, target, text = MODULES[name]
    head = f".version {version}\n.target {target}\n" + (".address_size 64\n" if float(version) >= 2.3 else "")
    return head + text


def main() -> None:
    """Writes the modules as files."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in MODULES:
        (folder / f"{name.replace(' ', '_')}.ptx").write_text(text_of(name))
    print(f"{len(MODULES)} files")


if __name__ == "__main__":
    main()
