"""The operations of the corpus: see :mod:`tests.isa.corpus` for the notation."""

from __future__ import annotations

from collections.abc import Iterable

from tests.isa import corpus_bulk, corpus_tensor, corpus_texture
from tests.isa.corpus_tcgen05 import NEWER, TENSOR_MEMORY

OPS: dict[str, str] = {
    "int": """
{add,sub}.{u16,s16} h h h
{add,sub}{.s32,.u32,.sat.s32} r r r
{add,sub}.{s64,u64} d d d
{add,min,max}.{u16x2,s16x2} r r r
{add.cc,sub.cc}.{u32,s32} r r r
{mul,mad}.lo.s16 h h h h
mul.{lo,hi}.{u16,s16} h h h
mul.wide.{u16,s16} r h h
mul.{lo,hi}.{u32,s32} r r r
mul.wide.{u32,s32} d r r
mul.{lo,hi}.{u64,s64} d d d
mul24.{lo,hi}.{u32,s32} r r r
mad24.{lo,hi}.{u32,s32} r r r r
mad.{lo,hi}.{u32,s32} r r r r
mad.hi.sat.s32 r r r r
mad.wide.{u32,s32} d r r d
mad.{lo,hi}.{u64,s64} d d d d
sad.{u16,s16} h h h h
sad.{u32,s32} r r r r
sad.{u64,s64} d d d d
div.{u16,s16} h h h
{div,rem}.{u32,s32} r r r
{div,rem}.{u64,s64} d d d
{abs,neg}.{s16} h h
{abs,neg}.{s32} r r
{abs,neg}.{s64} d d
{min,max}.{u16,s16} h h h
{min,max}.{u32,s32} r r r
{min,max}.relu.{s32,s16x2} r r r
{min,max}.{u64,s64} d d d
{popc,clz,bfind.u32,bfind.s32,bfind.shiftamt.u32,bfind.shiftamt.s32}.b32 r r
{popc,clz}.b32 r r
{popc,clz}.b64 r d
bfind{,.shiftamt}.{u32,s32} r r
bfind{,.shiftamt}.{u64,s64} r d
brev.b32 r r
brev.b64 d d
bfe.{u32,s32} r r r r
bfe.{u64,s64} d d r r
bfi.b32 r r r r r
bfi.b64 d d d r r
szext.{wrap,clamp}.{u32,s32} r r r
bmsk.{wrap,clamp}.b32 r r r
dp4a.{u32,s32}.{u32,s32} r r r r
dp2a.{lo,hi}.{u32,s32}.{u32,s32} r r r r
fns.b32 r r r r
cnot.{b16} h h
cnot.b32 r r
cnot.b64 d d
{and,or,xor}.b16 h h h
{and,or,xor}.b32 r r r
{and,or,xor}.b64 d d d
{and,or,xor}.pred p p p
not.b16 h h
not.b32 r r
not.b64 d d
not.pred p p
lop3.b32 r r r r 0x{1a,80,fe,96,e8,3f}
lop3.{or,and}.b32 r|p : r r r 0x1a p
{shl,shr}.b16 h h r
shr.{u16,s16} h h r
{shl.b32,shr.u32,shr.s32} r r r
{shl.b64,shr.u64,shr.s64} d d r
shf.{l,r}.{wrap,clamp}.b32 r r r r
prmt.b32{,.f4e,.b4e,.rc8,.ecl,.ecr,.rc16} r r r r
prmt.b32 r r r 0x{5410,7632,4321,3333,7770,4440,8888,9910}
selp.b16 h h h p
selp.{b32,s32} r r r p
selp.b64 d d d p
selp.f32 f f f p
selp.f64 g g g p
slct.{u32,s32}.s32 r r r r
slct.b64.s32 d d d r
slct.b32.f32 r r r f
slct.ftz.b32.f32 r r r f
slct.f32.s32 f f f r
slct.f64.s32 g g g r
mov.b16 h h
mov.b32 r r
mov.b64 d d
mov.pred p p
mov.b32 r hh
mov.b32 hh : r
mov.b64 rr : d
mov.b64 d rr
mov.b64 hhhh : d
mov.b64 d hhhh
mov.u64 d gmem
mov.u64 d smem
""",
    "setp": """
setp.{eq,ne,lt,le,gt,ge}.{s16} p h h
setp.{lt,lo,hs}.{u16} p h h
setp.{eq,ne,lt,le,gt,ge}.s32 p r r
setp.{eq,ne,lo,ls,hi,hs}.u32 p r r
setp.{eq,ne,lt,le,gt,ge}.s64 p d d
setp.{eq,ne,lo,ls,hi,hs}.u64 p d d
setp.{eq,lt,hs}.{and,or,xor}.u32 p|p : r r p
setp.lt.and.s64 p|p : d d p
setp.lt.and.s32 p : r r !p
setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}.f32 p f f
setp.{eq,ltu,num}.ftz.f32 p f f
setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}.f64 p g g
setp.{lt,neu}.{and,or,xor}.f32 p|p : f f p
setp.{lt,neu}.{and,or,xor}.f64 p|p : g g p
setp.{eq,ltu,num}{,.ftz}.f16 p h h
setp.{eq,lt,nan}.bf16 p h h
setp.{eq,ne,lt,le,gt,ge,equ,neu,ltu,leu,gtu,geu,num,nan}{,.ftz}.f16x2 p|p : r r
setp.{lt,neu}.bf16x2 p|p : r r
setp.lt.{and,or,xor}.f16x2 p|p : r r p
set.{eq,lt,hi}.u32.u32 r r r
set.lt.f32.{u32,s32} f r r
set.{eq,lt,geu,nan}{,.ftz}.{u32,s32}.f32 r f f
set.{lt,neu}{,.ftz}.f32.f32 f f f
set.lt.and.{u32}.f32 r f f p
set.lt.u32.f64 r g g
set.{eq,lt}{,.ftz}.f16.f16 h h h
set.{eq,lt,geu}{,.ftz}.f16x2.f16x2 r r r
set.{lt,geu}.and.f16x2.f16x2 r r r p
set.{lt,geu}.{u32}.f16x2 r r r
set.lt.{u16}.f16 h h h
set.lt.bf16x2.bf16x2 r r r
set.lt.u32.bf16x2 r r r
testp.{finite,infinite,number,notanumber,normal,subnormal}.f32 p f
testp.{finite,infinite,number,notanumber,normal,subnormal}.f64 p g
""",
    "float": """
{add,sub,mul}{,.rn,.rz,.rm,.rp}{,.ftz}{,.sat}.f32 f f f
{fma,mad}{.rn,.rz,.rm,.rp}{,.ftz}{,.sat}.f32 f f f f
{add,sub,mul}{,.rn,.rz,.rm,.rp}.f64 g g g
{fma,mad}{.rn,.rz,.rm,.rp}.f64 g g g g
{add,sub,mul}{.rn,.rz,.rm,.rp}{,.ftz}.f32x2 d d d
fma{.rn,.rz,.rm,.rp}{,.ftz}.f32x2 d d d d
{abs,neg}{,.ftz}.f32 f f
{abs,neg}.f64 g g
{min,max}{,.ftz}{,.NaN}{,.xorsign.abs}.f32 f f f
{min,max}{,.ftz}{,.NaN}{,.abs}.f32 f f f f
{min,max}.f64 g g g
copysign.f32 f f f
copysign.f64 g g g
div{.approx,.full,.rn,.rz,.rm,.rp}{,.ftz}.f32 f f f
div{.rn,.rz}.f64 g g g
rcp{.approx,.rn,.rz,.rm,.rp}{,.ftz}.f32 f f
rcp{.rn,.rz}.f64 g g
rcp.approx.ftz.f64 g g
sqrt{.approx,.rn,.rz,.rm,.rp}{,.ftz}.f32 f f
sqrt{.rn,.rm}.f64 g g
rsqrt.approx{,.ftz}.f32 f f
rsqrt.approx{,.ftz}.f64 g g
{sin,cos,lg2,ex2}.approx{,.ftz}.f32 f f
tanh.approx.f32 f f
add{,.rz}{,.sat}.f32.{f16,bf16} f h f
sub.f32.{f16,bf16} f h f
fma.rn.f32.{f16,bf16} f h h f
""",
    "half": """
{add,sub,mul}{,.rn}{,.ftz}{,.sat}.f16 h h h
{add,sub,mul}{,.rn}{,.ftz}{,.sat}.f16x2 r r r
{add,sub,mul}{,.rn}.bf16 h h h
{add,sub,mul}{,.rn}.bf16x2 r r r
fma.rn{,.ftz}{,.sat,.relu}.f16 h h h h
fma.rn{,.ftz}{,.sat,.relu}.f16x2 r r r r
fma.rn{,.relu,.oob,.oob.relu}.bf16 h h h h
fma.rn{,.relu,.oob,.oob.relu}.bf16x2 r r r r
fma.rn{.oob,.oob.relu}.f16x2 r r r r
{abs,neg}{,.ftz}.f16 h h
{abs,neg}{,.ftz}.f16x2 r r
{abs,neg}.bf16 h h
{abs,neg}.bf16x2 r r
{min,max}{,.ftz}{,.NaN}{,.xorsign.abs}.f16 h h h
{min,max}{,.ftz}{,.NaN}{,.xorsign.abs}.f16x2 r r r
{min,max}{,.NaN}{,.xorsign.abs}.bf16 h h h
{min,max}{,.NaN}{,.xorsign.abs}.bf16x2 r r r
{tanh.approx,ex2.approx}.{f16} h h
{tanh.approx,ex2.approx}.{f16x2} r r
tanh.approx.bf16 h h
tanh.approx.bf16x2 r r
ex2.approx.ftz.bf16 h h
ex2.approx.ftz.bf16x2 r r
""",
    "cvt": """
cvt.{u8,s8}.{u16,s16} h h
cvt.{sat.,}{u8,s8}.{u32,s32} r r
cvt.{sat.,}{u16,s16}.{u32,s32} h r
cvt.{u32,s32}.{u16,s16,u8,s8} r h
cvt.{u64,s64}.{u32,s32} d r
cvt.{sat.,}{u32,s32}.{u64,s64} r d
cvt.{rn,rz,rm,rp}.f32.{u32,s32} f r
cvt.{rn,rz,rm,rp}.f32.{u16,s16,u8,s8} f h
cvt.{rn,rz,rm,rp}.f32.{u64,s64} f d
cvt.rn.f64.{u32,s32} g r
cvt.rn.f64.{u16,s16,u8,s8} g h
cvt.{rn,rz,rm,rp}.f64.{u64,s64} g d
cvt.{rn,rz,rm,rp}.f16.{u32,s32} h r
cvt.rn.f16.{u16,s16,u8,s8} h h
cvt.rn.f16.{u64,s64} h d
cvt.{rn,rz}.bf16.{u32,s32} h r
cvt.rn.bf16.{u16,s16,u64,s64,u8,s8} h h
cvt.rn.bf16.{u64,s64} h d
cvt.{rni,rzi,rmi,rpi}{,.ftz}{,.sat}.{u32,s32}.f32 r f
cvt.{rni,rzi,rmi,rpi}{,.ftz}.{u16,s16,u8,s8}.f32 h f
cvt.{rni,rzi,rmi,rpi}{,.ftz}.{u64,s64}.f32 d f
cvt.{rni,rzi,rmi,rpi}.{u32,s32}.f64 r g
cvt.{rni,rzi,rmi,rpi}.{u64,s64}.f64 d g
cvt.rzi.{u16,s16,u8,s8}.f64 h g
cvt.{rni,rzi,rmi,rpi}.{u32,s32}.f16 r h
cvt.{rni,rzi,rmi,rpi}.{u16,s16,u8,s8}.f16 h h
cvt.{rni,rzi}.{u64,s64}.f16 d h
cvt.{rni,rzi,rmi,rpi}.{u32,s32}.bf16 r h
cvt.rzi.{u16,s16,u8,s8}.bf16 h h
cvt.rzi.{u64,s64}.bf16 d h
cvt.{rni,rzi,rmi,rpi}{,.ftz}{,.sat}.f32.f32 f f
cvt.{rni,rzi,rmi,rpi}.f64.f64 g g
cvt.{rni,rzi,rmi,rpi}.f16.f16 h h
cvt.{rni,rzi,rmi,rpi}.bf16.bf16 h h
cvt.ftz.sat.f32.f32 f f
cvt.sat.f16.f16 h h
cvt.{rn,rz,rm,rp}{,.ftz}.f32.f64 f g
cvt{,.ftz}.f64.f32 g f
cvt.{rn,rz,rm,rp}{,.ftz}{,.sat}.f16.f32 h f
cvt{,.ftz}{,.sat}.f32.f16 f h
cvt{,.ftz}.f32.bf16 f h
cvt.f64.{f16,bf16} g h
cvt.{rn,rz}.f16.f64 h g
cvt.{rn,rz}.bf16.f64 h g
cvt.{rn,rz}{,.relu}.bf16.f32 h f
cvt.{rn,rz}{,.relu}{,.satfinite}.f16x2.f32 r f f
cvt.{rn,rz}{,.relu}{,.satfinite}.bf16x2.f32 r f f
cvt.{rn,rz}{,.relu}{,.satfinite}.f16.f32 h f
cvt.rn.bf16.f16 h h
cvt.rn.f16.bf16 h h
cvt.rna{,.satfinite}.tf32.f32 r f
cvt.{rn,rz}{,.relu}{,.satfinite}.tf32.f32 r f
cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f32 h f f
cvt.rn.satfinite{,.relu}.{e4m3x2,e5m2x2}.f16x2 h r
cvt.rn{,.relu}.f16x2.{e4m3x2,e5m2x2} r h
cvt.rn.satfinite{,.relu}.{e2m3x2,e3m2x2}.f32 h f f
cvt.rn{,.relu}.f16x2.{e2m3x2,e3m2x2} r h
cvt.{rz,rp}{,.satfinite}.ue8m0x2.f32 h f f
cvt.{rz,rp}{,.satfinite}.ue8m0x2.bf16x2 h r
cvt.rn.bf16x2.ue8m0x2 r h
cvt.rs{,.relu}{,.satfinite}.{f16x2,bf16x2}.f32 r f f r
cvt.rs.satfinite{,.relu}.{e4m3x4,e5m2x4,e2m3x4,e3m2x4}.f32 r ffff r
cvt.rs.satfinite{,.relu}.e2m1x4.f32 h ffff r
cvt.pack.sat.{u16,s16}.s32 r r r
cvt.pack.sat.{u8,s8,u4,s4,u2,s2}.s32.b32 r r r r
""",
    "sreg": """
mov.u32 r %{tid.x,tid.y,tid.z,ntid.x,ctaid.x,ctaid.y,ctaid.z,nctaid.x,laneid,warpid,nwarpid,smid,nsmid,clock,clock_hi,\
lanemask_eq,lanemask_lt,lanemask_le,lanemask_gt,lanemask_ge,globaltimer_lo,globaltimer_hi,dynamic_smem_size,\
total_smem_size,aggr_smem_size,pm0,pm1,pm7,envreg0,envreg3,envreg31,cluster_ctarank,cluster_nctarank,clusterid.x,\
clusterid.y,nclusterid.x,cluster_ctaid.x,cluster_ctaid.z,cluster_nctaid.x,reserved_smem_offset_begin,\
reserved_smem_offset_1}
mov.u64 d %{clock64,globaltimer,gridid,pm0_64,current_graph_exec}
mov.pred p %is_explicit_cluster
activemask.b32 r
""",
    "mem": """
ld.global.{u8,s8} h [a+4] @reg
ld.global.{u16,s16} h [a+4] @reg
ld.global{,.ca,.cg,.cs,.lu,.cv,.nc}.b32 r [a+-4] @reg
ld.global{,.ca,.cg,.cs,.lu,.cv,.nc}.b64 d [a+8] @reg
ld.global{,.nc}.v4.b32 rrrr [a+16] @reg
ld.global{,.nc}.v2.b64 dd [a+16] @reg
ld.global.v8.b32 rrrrrrrr [a+32] @reg
ld.global.v4.b64 dddd [a+32] @reg
ld.{volatile,relaxed.cta,relaxed.cluster,relaxed.gpu,relaxed.sys,acquire.cta,acquire.cluster,acquire.gpu,\
acquire.sys}.global.b32 r [a] @reg
ld.{volatile,relaxed.gpu,relaxed.sys,acquire.gpu}.global.v2.b32 rr [a] @reg
ld.{volatile,relaxed.cta,relaxed.gpu,acquire.sys}.b32 r [a] @reg
ld.{volatile,relaxed.cta,acquire.cta}.shared.b32 r [sa] @reg
ld.mmio.relaxed.sys.global.u32 r [a] @reg
ld.global{.L1::evict_normal,.L1::evict_unchanged,.L1::evict_first,.L1::evict_last,.L1::no_allocate}{,.L2::64B,\
.L2::128B,.L2::256B}.b32 r [a] @reg
ld.global.nc{.L1::evict_first,.L1::no_allocate}{,.L2::256B}.v4.b32 rrrr [a] @reg
ld.global.L2::cache_hint.b32 r [a] d @reg
ld.global.L1::evict_last.L2::cache_hint.v4.b32 rrrr [a] d @reg
ld.global{.L2::evict_last,.L2::evict_first,.L2::evict_normal}.v8.b32 rrrrrrrr [a] @reg
ld.{u8,s8,u16,s16} h [a+4] @reg
ld.b32 r [a+4] @reg
ld.b64 d [a+8] @reg
ld.v4.b32 rrrr [a+16] @reg
ld.b128 q [a+16] @reg
ld.global.b128 q [a+16] @reg
ld.shared.{u8,s8,u16,s16} h [sa+4] @reg
ld.shared.b32 r [sa+4] @reg
ld.shared.b32 r [s32a+4] @reg
ld.shared.b64 d [sa+8] @reg
ld.shared.v4.b32 rrrr [sa+16] @reg
ld.shared::cluster.b32 r [sa] @reg
ld.shared::cluster.v4.b32 rrrr [sa] @reg
ld.const.b32 r [cmem+4] @reg
ld.const.{u8,s8,u16,s16} h [cmem+4] @reg
ld.const.v4.b32 rrrr [cmem+16] @reg
ldu.global.b32 r [a] @reg
ldu.global.v4.b32 rrrr [a] @reg
st.global.{u8,u16} : [a+4] h @reg
st.global{,.wb,.cg,.cs,.wt}.b32 : [a+-4] r @reg,imm
st.global.b64 : [a+8] d @reg
st.global.v4.b32 : [a+16] rrrr @reg
st.global.v8.b32 : [a+32] rrrrrrrr @reg
st.global.b128 : [a+16] q @reg
st.{volatile,relaxed.cta,relaxed.cluster,relaxed.gpu,relaxed.sys,release.cta,release.cluster,release.gpu,\
release.sys}.global.b32 : [a] r @reg
st.{volatile,relaxed.gpu,release.sys}.b32 : [a] r @reg
st.{volatile,relaxed.cta,release.cta}.shared.b32 : [sa] r @reg
st.mmio.relaxed.sys.global.u32 : [a] r @reg
st.global{.L1::evict_normal,.L1::evict_unchanged,.L1::evict_first,.L1::evict_last,.L1::no_allocate}.b32 : [a] r @reg
st.global.L2::cache_hint.b32 : [a] r d @reg
st.global.L1::evict_first.L2::cache_hint.v4.b32 : [a] rrrr d @reg
st.{u8,u16} : [a+4] h @reg
st.b32 : [a+4] r @reg
st.b64 : [a+8] d @reg
st.v4.b32 : [a+16] rrrr @reg
st.shared.{u8,u16} : [sa+4] h @reg
st.shared.b32 : [sa+4] r @reg
st.shared.b64 : [sa+8] d @reg
st.shared.v4.b32 : [sa+16] rrrr @reg
st.shared::cluster.b32 : [sa] r @reg
prefetch.global.{L1,L2} : [a] @reg
prefetch.{L1,L2} : [a] @reg
prefetch.global.L2::{evict_last,evict_normal} : [a] @reg
prefetchu.L1 : [a] @reg
applypriority.global.L2::evict_normal : [a] 128 @reg
discard.global.L2 : [a] 128 @reg
createpolicy.fractional.L2::{evict_last,evict_normal,evict_first,evict_unchanged}.b64 d f @reg
createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 d f @reg
createpolicy.range.global.L2::evict_last.b64 d [a] r r @reg
createpolicy.cvt.L2.b64 d d @reg
isspacep.{global,shared,local,const,shared::cluster,param} p d @reg
cvta.{global,shared,local,const}.u64 d d @reg
cvta.to.{global,shared,local,const}.u64 d d @reg
cvta.shared::cluster.u64 d d @reg
mapa.u64 d d r @reg
mapa.shared::cluster.u32 r r r @reg
getctarank.u64 r d @reg
getctarank.shared::cluster.u32 r r @reg
membar.{cta,gl,sys} : @reg
fence.{sc,acq_rel}.{cta,gpu,sys,cluster} : @reg
fence.{acquire,release}.sync_restrict::shared::{cta,cluster}.cluster : @reg
fence.proxy.{async,alias,async.global,async.shared::cta,async.shared::cluster} : @reg
fence.mbarrier_init.release.cluster : @reg
fence.proxy.tensormap::generic.{release.gpu,release.cta,release.sys,release.cluster} : @reg
fence.proxy.tensormap::generic.{acquire.gpu,acquire.sys} : [a] 128 @reg
""",
    "atom": """
atom.global.{add,min,max,inc,dec,and,or,xor,exch}.{u32,s32,b32} r [a] r @reg,imm
atom.global.{add,min,max,and,or,xor,exch}.{u64,s64,b64} d [a] d @reg
atom.global.cas.b32 r [a] r r @reg
atom.global.cas.b64 d [a] d d @reg
atom.global.cas.b16 h [a] h h @reg
atom.global.{cas,exch}.b128 q [a] q q @reg
atom.global.exch.b128 q [a] q @reg
atom.global.add.f32 f [a] f @reg
atom.global.add.f64 g [a] g @reg
atom.global.add.noftz.{f16,bf16} h [a] h @reg
atom.global.add.noftz.{f16x2,bf16x2} r [a] r @reg
atom{.relaxed,.acquire,.release,.acq_rel}{.cta,.cluster,.gpu,.sys}.global.add.u32 r [a] r @reg
atom.{add,min,max,inc,dec,and,or,xor,exch}.{u32,s32,b32} r [a] r @reg
atom.{add,min,max,and,or,xor,exch}.{u64,s64,b64} d [a] d @reg
atom.cas.b32 r [a] r r @reg
atom.cas.b64 d [a] d d @reg
atom.add.f32 f [a] f @reg
atom.shared.{add,min,max,inc,dec,and,or,xor,exch}.{u32,s32,b32} r [sa+4] r @reg,imm
atom.shared.{add,min,max,and,or,xor,exch}.{u64,s64,b64} d [sa] d @reg
atom.shared.cas.b32 r [sa] r r @reg
atom.shared.cas.b64 d [sa] d d @reg
atom.shared.cas.b16 h [sa] h h @reg
atom.shared.add.f32 f [sa] f @reg
atom.shared.add.f64 g [sa] g @reg
atom.shared::cluster.add.u32 r [sa] r @reg
atom{,.acq_rel}{.cluster,.gpu}.shared::cluster.{add.f32,add.noftz.f16x2,add.noftz.bf16x2} r [s32a+16] r @reg
atom{,.acq_rel}.shared::cluster.add.f64 g [s32a+16] g @reg
red.shared::cluster.{add.f32,add.noftz.f16x2,add.noftz.bf16x2} : [s32a+16] r @reg
red.shared::cluster.add.f64 : [s32a+16] g @reg
atom.global.v4.f32.add ffff [a] ffff @reg
atom.global.add.noftz{.v2,.v4}.f16x2 rr [a] rr @reg
atom.global.add.v2.f32 ff [a] ff @reg
atom.global.add.v4.f32 ffff [a] ffff @reg
atom.global.add.noftz.v4.{f16x2,bf16x2} rrrr [a] rrrr @reg
atom.global.{add,min,max}.noftz.v2.{f16,bf16} hh [a] hh @reg
atom.global.L2::cache_hint.add.u32 r [a] r d @reg
red.global.{add,min,max,inc,dec,and,or,xor}.{u32,s32,b32} : [a] r @reg,imm
red.global.{add,min,max,and,or,xor}.{u64,s64,b64} : [a] d @reg
red.global.add.f32 : [a] f @reg
red.global.add.f64 : [a] g @reg
red.global.add.noftz.{f16,bf16} : [a] h @reg
red.global.add.noftz.{f16x2,bf16x2} : [a] r @reg
red{.relaxed,.release}{.cta,.cluster,.gpu,.sys}.global.add.u32 : [a] r @reg
red.{add,min,and}.{u32,s32} : [a] r @reg
red.add.f32 : [a] f @reg
red.shared.{add,min,max,inc,dec,and,or,xor}.{u32,s32,b32} : [sa+4] r @reg
red.shared.add.u64 : [sa] d @reg
red.shared.add.f32 : [sa] f @reg
red.global.add.v2.f32 : [a] ff @reg
red.global.add.v4.f32 : [a] ffff @reg
red.global.add.noftz.v4.{f16x2,bf16x2} : [a] rrrr @reg
red.global.L2::cache_hint.add.u32 : [a] r d @reg
red.async.relaxed.cluster.global.shared::cluster.mbarrier::complete_tx::bytes.{inc,dec,min,max,add,and,or,xor}.u32 : \
[sa] r [sa+8] @reg
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{inc,dec,min,max,add,and,or,xor}.u32 : [s32a] r \
[s32a+8] @reg
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 : [s32a] d [s32a+8] @reg
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.{b32,u32} : [s32a] r [s32a+8] @reg
st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 : [s32a] d [s32a+8] @reg
st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 : [s32a] rrrr [s32a+8] @reg
multimem.ld_reduce.relaxed.gpu.global.add.{u32,f32} r [a] @reg
multimem.ld_reduce.relaxed.sys.global.add.f32 f [a] @reg
multimem.ld_reduce.global.{add,min,max}.f16x2 r [a] @reg
multimem.ld_reduce.global.{add,min,max}.v4.f16x2 rrrr [a] @reg
multimem.ld_reduce.global.add.v4.f32 ffff [a] @reg
multimem.st.relaxed.gpu.global.u32 : [a] r @reg
multimem.st.global.v4.f32 : [a] ffff @reg
multimem.red.relaxed.gpu.global.add.{u32,s32,u64,f32} : [a] r @reg
multimem.red.global.{add,min,max}.{u32,s32} : [a] r @reg
multimem.red.global.add.v4.f32 : [a] ffff @reg
""",
    "warp": """
shfl.sync.{up,down,bfly,idx}.b32 r r r r 0xffffffff @reg
shfl.sync.{up,down,bfly,idx}.b32 r r 3 0x1f 0xffffffff @reg
shfl.sync.{up,down,bfly,idx}.b32 r r r 0x1f r @reg
shfl.sync.{up,idx}.b32 r|p : r 1 r r @reg
vote.sync.{all,any,uni}.pred p p 0xffffffff @reg
vote.sync.{all,any,uni}.pred p p r @reg
vote.sync.ballot.b32 r p r @reg
vote.sync.ballot.b32 r p 0xffffffff @reg,uni
match.any.sync.{b32} r r r @reg
match.any.sync.b64 r d r @reg
match.all.sync.b32 r|p : r r @reg
match.all.sync.b64 r|p : d r @reg
redux.sync.{add,min,max}.{u32,s32} r r r @reg
redux.sync.{and,or,xor}.b32 r r r @reg
redux.sync.{min,max}{,.abs}{,.NaN}.f32 f f r @reg
activemask.b32 r @reg
elect.sync r|p : r @reg
elect.sync _|p : 0xffffffff @reg
bar.sync : 0 @reg
bar.sync : 1 64 @reg
bar.sync : r r @reg
barrier.sync.aligned : 3 @reg
barrier.sync : r @reg
barrier.arrive : 2 r @reg
bar.arrive : 1 128 @reg
bar.red.popc.u32 r 0 p @reg
bar.red.{and,or}.pred p 0 p @reg
bar.red.{and,or}.pred p r r p @reg
barrier.red.popc.u32 r 2 64 p @reg
bar.warp.sync : 0xffffffff @reg
bar.warp.sync : r @reg
barrier.cluster.arrive{,.release,.relaxed}{,.aligned} : @reg
barrier.cluster.wait{,.acquire}{,.aligned} : @reg
griddepcontrol.{launch_dependents,wait} : @reg
nanosleep.u32 : r @reg
nanosleep.u32 : 100 @reg
pmevent : 3 @reg
pmevent.mask : 7 @reg
brkpt : @reg
trap : @reg
exit : @reg
setmaxnreg.{inc,dec}.sync.aligned.u32 : 128 @reg
clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 : [s32a] [s32a+16] @reg
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p q @reg
clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 rrrr q @reg
clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 r q @reg
""",
    "async": """
cp.async.ca.shared.global{,.L2::64B,.L2::128B,.L2::256B} : [s32a] [a] {4,8,16} @reg
cp.async.cg.shared.global{,.L2::128B} : [s32a+16] [a+32] 16 @reg
cp.async.ca.shared.global : [s32a] [a] 4 r @reg
cp.async.cg.shared.global : [s32a] [a] 16 r @reg
cp.async.cg.shared.global.L2::cache_hint : [s32a] [a] 16 d @reg
cp.async.ca.shared.global : [s32a] [a] 16 p @reg
cp.async.commit_group : @reg
cp.async.wait_group : {0,1,3} @reg
cp.async.wait_all : @reg
cp.async.mbarrier.arrive{,.noinc}.shared.b64 : [s32a] @reg
mbarrier.init.shared.b64 : [s32a] r @reg,imm
mbarrier.inval.shared.b64 : [s32a] @reg
mbarrier.arrive.shared.b64 d [s32a] @reg
mbarrier.arrive.shared.b64 d [s32a] r @reg
mbarrier.arrive.noComplete.shared.b64 d [s32a] r @reg
mbarrier.arrive.expect_tx.shared.b64 d [s32a] r @reg
mbarrier.arrive.shared::cluster.b64 _ [s32a] @reg
mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _ [s32a] r @reg
mbarrier.arrive_drop.shared.b64 d [s32a] @reg
mbarrier.arrive_drop.noComplete.shared.b64 d [s32a] r @reg
mbarrier.expect_tx.relaxed.cta.shared::cta.b64 : [s32a] r @reg
mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 : [s32a] r @reg
mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 : [s32a] r @reg
mbarrier.test_wait.shared.b64 p [s32a] d @reg
mbarrier.test_wait.parity.shared.b64 p [s32a] r @reg
mbarrier.test_wait.parity.acquire.cluster.shared.b64 p [s32a] r @reg
mbarrier.try_wait.shared.b64 p [s32a] d @reg
mbarrier.try_wait.parity.shared.b64 p [s32a] r @reg
mbarrier.try_wait.parity.shared.b64 p [s32a] r r @reg
mbarrier.try_wait.parity.relaxed.cluster.shared.b64 p [s32a] r @reg
mbarrier.pending_count.b64 r d @reg
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes : [s32a] [a] r [s32a+8] @reg,uni
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes : [s32a] [a] r [s32a+8] @reg,uni
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster : [s32a] [a] r [s32a+8] h @reg
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint : [s32a] [a] r [s32a+8] d @reg
cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes : [s32a] [s32a+64] r [s32a+8] @reg
cp.async.bulk.global.shared::cta.bulk_group{,.L2::cache_hint} : [a] [s32a] r d @reg
cp.async.bulk.global.shared::cta.bulk_group : [a] [s32a] r @reg,uni
cp.async.bulk.prefetch.L2.global : [a] r @reg
cp.reduce.async.bulk.global.shared::cta.bulk_group.{add,min,max,and,or,xor,inc,dec}.{u32,s32,u64,s64,b32,b64} \
: [a] [s32a] r @reg
cp.reduce.async.bulk.global.shared::cta.bulk_group.{add.f32,add.f64,add.noftz.f16,add.noftz.bf16,min.f16,max.bf16} \
: [a] [s32a] r @reg
cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{add,min,and,inc,dec}.{u32,s32,b32} \
: [s32a] [s32a+64] r [s32a+8] @reg
cp.async.bulk.commit_group : @reg
cp.async.bulk.wait_group{,.read} : {0,1} @reg
cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes : [s32a] [a,{r}] [s32a+8] @reg
""",
    "video": """
{vadd,vsub,vabsdiff,vmin,vmax}.{u32,s32}.{u32,s32}.{u32,s32}{,.sat} r r r @reg
{vadd,vsub,vabsdiff,vmin,vmax}.u32.u32.s32{.add,.min,.max} r r r r @reg
vadd.s32.u32.s32 r r.b1 r.h0 @reg
{vshl,vshr}.{u32,s32}.{u32,s32}.u32{.clamp,.wrap} r r r @reg
vmad.u32.u32.u32{,.shr7,.shr15} r r r r @reg
vmad.s32.s32.s32.sat r r r r @reg
vset.{u32,s32}.{u32,s32}.{eq,ne,lt,le,gt,ge} r r r @reg
{vadd2,vsub2,vavrg2,vabsdiff2,vmin2,vmax2}.{u32,s32}.{u32,s32}.{u32,s32} r r r r @reg
{vadd4,vsub4,vavrg4,vabsdiff4,vmin4,vmax4}.{u32,s32}.{u32,s32}.{u32,s32} r r r r @reg
vabsdiff4.u32.u32.u32.add r r r r @reg
{vset2,vset4}.{u32,s32}.{u32,s32}.{eq,lt,ge} r r r r @reg
""",
    "tensor": """
mma.sync.aligned.m16n8k8.row.col.{f16.f16.f16.f16} rr rr r rr @reg
mma.sync.aligned.m16n8k8.row.col.f32.{f16.f16,bf16.bf16}.f32 ffff rr r ffff @reg
mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 rr rrrr rr rr @reg
mma.sync.aligned.m16n8k16.row.col.f32.{f16.f16,bf16.bf16}.f32 ffff rrrr rr ffff @reg
mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 ffff rr r ffff @reg
mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 ffff rrrr rr ffff @reg
mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 gg g g gg @reg
mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 gggg gggggggg gggg gggg @reg
mma.sync.aligned.m8n8k16.row.col{,.satfinite}.s32.{u8,s8}.{u8,s8}.s32 rr r r rr @reg
mma.sync.aligned.m16n8k16.row.col{,.satfinite}.s32.{u8,s8}.{u8,s8}.s32 rrrr rr r rrrr @reg
mma.sync.aligned.m16n8k32.row.col{,.satfinite}.s32.{u8,s8}.{u8,s8}.s32 rrrr rrrr rr rrrr @reg
mma.sync.aligned.m8n8k32.row.col.s32.{u4,s4}.{u4,s4}.s32 rr r r rr @reg
mma.sync.aligned.m16n8k64.row.col.s32.{u4,s4}.{u4,s4}.s32 rrrr rrrr rr rrrr @reg
mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.{xor,and}.popc rrrr rrrr rr rrrr @reg
mma.sync.aligned.m16n8k32.row.col.f32.{e4m3,e5m2}.{e4m3,e5m2}.f32 ffff rrrr rr ffff @reg
mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.{e4m3,e3m2,e2m3,e2m1}.{e5m2,e2m1}.f32 ffff rrrr rr ffff @reg
mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.{f16.f16,bf16.bf16}.f32 ffff rrrr rrrr ffff r 0x{0,1} @reg
mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 ffff rr rr ffff r 0x{0,1} @reg
mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.{u8,s8}.s8.s32 rrrr rrrr rrrr rrrr r 0x0 @reg
ldmatrix.sync.aligned.m8n8.x1{,.trans}.shared.b16 r [s32a] @reg
ldmatrix.sync.aligned.m8n8.x2{,.trans}.shared.b16 rr [s32a+16] @reg
ldmatrix.sync.aligned.m8n8.x4{,.trans}.shared.b16 rrrr [s32a+16] @reg
stmatrix.sync.aligned.m8n8.x1{,.trans}.shared.b16 : [s32a] r @reg
stmatrix.sync.aligned.m8n8.x2{,.trans}.shared.b16 : [s32a] rr @reg
stmatrix.sync.aligned.m8n8.x4{,.trans}.shared.b16 : [s32a+16] rrrr @reg
movmatrix.sync.aligned.m8n8.trans.b16 r r @reg
""",
    "newer": NEWER,
}

#: Whole kernels, by family.
RAW: dict[str, Iterable[str]] = {"tcgen05": TENSOR_MEMORY, **corpus_bulk.RAW, **corpus_texture.RAW, **corpus_tensor.RAW}
#: Requirements of a family's modules: options after the target, declarations.
MODULES: dict[str, tuple[str, str]] = corpus_texture.MODULES
OPS.update(corpus_bulk.OPS)
OPS.update(corpus_tensor.OPS)
