"""The operations of the corpus: see :mod:`tests.isa.corpus` for the notation."""

from __future__ import annotations

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
mov.u32 r %{tid.x,tid.y,tid.z,ntid.x,ctaid.x,ctaid.y,ctaid.z,nctaid.x,laneid,warpid,nwarpid,smid,nsmid,clock,clock_hi,lanemask_eq,lanemask_lt,lanemask_le,lanemask_gt,lanemask_ge,globaltimer_lo,globaltimer_hi,dynamic_smem_size,total_smem_size,aggr_smem_size,pm0,pm1,pm7,envreg0,envreg3,envreg31,cluster_ctarank,cluster_nctarank,clusterid.x,clusterid.y,nclusterid.x,cluster_ctaid.x,cluster_ctaid.z,cluster_nctaid.x,reserved_smem_offset_begin,reserved_smem_offset_1}
mov.u64 d %{clock64,globaltimer,gridid,pm0_64,current_graph_exec}
mov.pred p %is_explicit_cluster
activemask.b32 r
""",
}

RAW: list[str] = []
