"""Gates: which PTX version and target a feature needs, in the order and words in which ptxas reports them.

    names | words | feature | gates

A line holds for an instruction of one of the names (`a.*`: all that begin so, `!a`: not that one) whose modifiers and
types include all the
words.  A word may be a choice (`a/b`), a prefix (`kind::*`), or forbidden (`!a`).  Words in angle brackets say
something
else about the instruction: `<generic>` an address and no state space, `<wide>` a vector of more than 128 bits, `<3>`
three
operands, `<f16.f32>` just these types, `<guard>` a predicate as
operand, `<scale>` a constant after a predicate, `<pair>` a second result, `<extra>` a sampler, offset or comparison of
a texture
fetch, `<indirect>` its reference in a register.
The feature is quoted after Feature (`F:`), Instruction (`I:`) or Modifier (`M:`).  In it `{name}` is the instruction,
`{mod}` the
word that a choice or prefix found, `{atomic}` an atomic with its operation, type and space, `{types}` the types.
Gates are written as in the rows; the first one is reported first.  With `T` the target's message says Instruction.

What a row's own gate asks for and no line here has reported comes last.  Measured with ptxas 13.0 under `.version 1.4`,
`.target sm_10`, where all gates are closed; `tests/parse/gates.py` compares every version and target.
"""

# Reported when the modifier is read: before anything else, in the order of the text.
EARLY = """
aligned | F:.{mod} | v6.0 t20
cc | F:.{mod} | v1.2
ftz approx | F:.{mod} | v1.4
bf16 tf32 | F:.{mod} | t80 v7.0
bf16x2 | F:.{mod} | t75
bf16x2 | F:.{mod} | t80 v7.0
s4 u4 b1 | F:.{mod} | t75 v6.3
s2 u2 | F:.{mod} | t75 v6.5
abs | F:.{mod} | t86 v7.2
relu | F:.{mod} | v7.0
satfinite weak | F:.{mod} | v6.0 t70
oob | M:.{mod} | t90
oob | F:.{mod} | v8.1
mmio | F:.{mod} | v8.2 t70
alias | M:.{mod} | t60 v7.5
async read | M:.{mod} | t90 v8.0
launch_dependents wait | M:.{mod} | t90 v7.8
sp::ordered_metadata | F:.{mod} | v8.5 t80
is_canceled get_first_ctaid get_first_ctaid::x get_first_ctaid::y get_first_ctaid::z | F:.{mod} | v8.6 t100
128x128b 128x256b 16x128b 16x256b 16x32bx2 16x64b 32x128b 32x32b 4x256b 64x128b | F:.{mod} | on=100f+110f
128x128b 128x256b 16x128b 16x256b 16x32bx2 16x64b 32x128b 32x32b 4x256b 64x128b | M:.{mod} | v8.6
m16n16 m16n8 | F:.{mod} | on=100f+110f+120f
m16n16 m16n8 | M:.{mod} | v8.6
"""

# Parts of instruction names that have such a gate (an `async` in a name has none).
NAMED_EARLY = frozenset(
    ("is_canceled", "get_first_ctaid", "get_first_ctaid::x", "get_first_ctaid::y", "get_first_ctaid::z")
)

_ADDRESSES = """
ld st atom red | <generic> | F:generic addressing | t20 v2.0
ld st | param::entry | F:::entry | v8.3
ld st | param::func | F:::func | v8.3
ld st atom red | shared::cta | F:::cta | v7.8
ld st atom red | shared::cluster | F:::cluster | v7.8 t90
"""

_MEMORY = """
atom | | I:atom | t11
atom red | shared/shared::cta/shared::cluster | F:shared storage | t12
red | | F:red | v1.2
atom red | u32/s32/b32 | I:{atomic} | t11
atom red | u64 add global | I:{atomic} | t12 v1.2
atom red | u64 add <generic> | I:{atomic} | t11
atom red | u64 add shared/shared::cta/shared::cluster | I:{atomic} | t20 v2.0
atom | b64 exch/cas global | I:{atomic} | t12 v1.2
atom | b64 exch/cas <generic> | I:{atomic} | t11
atom | b64 exch/cas shared/shared::cta/shared::cluster | I:{atomic} | t20 v2.0
atom red | add f32 | I:{atomic} | t20 v2.0
atom red | s64/u64 min/max | I:{atomic} | t32 v3.1
atom red | b64 and/or/xor | I:{atomic} | t32 v3.1
atom red | f64 | I:{atomic} | t60 v5.0
atom red | add f16x2 | I:{atomic} | t60 v6.2
atom red | add f16 | I:{atomic} | t70 v6.3
atom | cas b16 | I:{atomic} | t70 v6.3
atom red | add bf16/bf16x2 | I:{atomic} | t90 v7.8
atom red | min/max f16/f16x2/bf16/bf16x2 | I:{atomic} | t90 v8.1
atom | b128 | I:{atomic} | t90 v8.3
atom red | v2/v4/v8 | F:{name} instruction with vector types | t90 v8.1
"""

_NAMED = """
bar.arrive bar.red bfe bfi bfind brev clz copysign isspacep cvta cvta.to ldu popc prefetch prefetchu prmt sured.b \
sured.p sust.p testp | | F:{name} | T20 v2.0
bar.cta bar.cta.arrive bar.cta.red | | F:{name} | T20 v7.8
barrier.cta barrier.cta.arrive barrier.cta.red | | F:{name} | T30 v7.8
bar.warp | | F:{name} | v6.0 T30
barrier barrier.arrive barrier.red fns | | F:{name} | T30 v6.0
match | | F:{name} | v6.0 T70
bmsk szext | | F:{name} | T70 v7.6
nanosleep | | F:{name} | T70 v6.2
brkpt | | I:brkpt | t11
dp2a.lo dp2a.hi dp4a | | F:{name} | T61 v5.0
istypep | | F:{name} | T30 v4.0
shfl | | F:shfl | T30 v3.0
shfl | sync | F:shfl.sync | v6.0
shf.l shf.r | | F:{name} | T32 v3.1
vote | | I:vote | t12
vote | b32 | F:vote.ballot | v2.0 T20
vote | sync | F:vote.sync | v6.0 T30
tex.base tex.level tex.grad | | F:{name} | T20 v3.1
tld4 | | F:tld4 | T20 v2.2
tex tex.* tld4 | <pair> | F:Texture instruction with optional predicate result | t60 v7.1
tex tex.* tld4 | <extra> | F:offset operand | t30
tex tex.* tld4 | <extra> | F:{name} | v4.3
txq.level | | F:txq.level | T30 v4.3
vadd vsub vabsdiff vmin vmax vshl vshr vmad vset | | I:{name} | t20
vadd vsub vabsdiff vmin vmax vshl vshr vmad vset | | F:2.0 | v2.0
vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4 | | I:{name} | t20
vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4 | | F:2.0 | v2.0
vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4 | | I:{name} | t30
vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4 | | F:3.0 | v3.0
lop3 | !and !or !xor | F:lop3 | T50 v4.3
lop3 | and/or/xor | F:lop3.<BoolOp> | T70 v8.2
membar | sys | F:membar.sys | v2.0 T20
griddepcontrol | | F:griddepcontrol | v7.8 T90
cvta cvta.to isspacep | const | F:cvta/isspacep with .const state space | v3.1
cvta cvta.to isspacep | param::entry | F:::entry | v8.3
cvta cvta.to isspacep | param/param::entry | F:cvta/isspacep with .param state space | t70 v7.7
prefetch | L1::32B | F:.{mod} | v9.4 t90
prefetch | L2::evict_last/L2::evict_normal | M:cache eviction priority' on 'prefetch | v7.4 t80
pmevent.mask | | F:{name} | v3.0 t20
stacksave stackrestore alloca | | F:{name} | t52 v7.3
activemask | | F:{name} | v6.2 t30
elect | | F:{name} | v8.0 t90
mapa getctarank | | F:{name} | t90 v7.8
barrier.cluster.arrive barrier.cluster.wait | | F:{name} | v7.8 t90
barrier.cluster.arrive barrier.cluster.wait | release/relaxed/acquire | M:.{mod}' on '{name} | v8.0
redux | !f32 | F:redux | t80 v7.0
redux | f32 | I:redux.f32 | on=100f
redux | f32 | F:redux.f32 | v8.6
setmaxnreg.* | | F:{name} | v8.0
setmaxnreg.* | | I:{name} | on=90a+100f+110f+120f
clusterlaunchcontrol.query_cancel.* | | F:clusterlaunchcontrol.query_cancel | v8.6 t100
clusterlaunchcontrol.try_cancel.async | | F:{name} | v8.6 t100
clusterlaunchcontrol.try_cancel.async | multicast::cluster::all | F:.{mod} | v8.6 on=100f+110f+120f
tanh | | F:tanh | t75 v7.0
tanh ex2 | bf16/bf16x2 | F:{name}.{mod} | t90 v7.8
ex2 | f16/f16x2 | F:ex2.f16/f16x2 | t75 v7.0
mad.lo mad.hi madc.lo madc.hi add addc sub subc | cc u64/s64 | F:.cc with 64bit type | T20 v4.3
mad.lo mad.hi | cc | F:mad.cc | T20 v3.0
madc.lo madc.hi | | F:madc | T20 v3.0
div rcp sqrt | f32 rn/rz/rm/rp | I:{name}.rnd.f32 | t20
mad | f32 rn/rz/rm/rp | I:{name}.rnd.f32 | t20
div sqrt rcp | f64 rz/rm/rp | I:{name}.rn.f64 | t20
rcp | f64 approx | F:rcp.approx.f64 | v2.1 T20
rsqrt | f64 ftz | F:rsqrt.approx.ftz.f64 | v4.0 T20
fma | f32 !f16 !bf16 | F:fma.f32 | v2.0 T20
fma | f64 | F:fma.f64 | v1.4

add sub fma | f32x2 f16x2/bf16x2 | F:{name}.{types} | v9.4 on=107f
add sub mul fma | e4m3x4/e5m2x4 | F:{name}.{types} | v9.4
add sub mul fma | e4m3x4/e5m2x4 | I:{name}.{types} | on=100a+103a
min max | relu !s8x4 | F:{name}.relu | t90 v8.0
min max | relu s8x4 | F:{name}.relu | v9.2 on=107f+120f
min max add sub neg | u8x4/s8x4 | F:{name}.{mod} | v9.2 on=107f+120f
clmad.lo clmad.hi | | F:{name} | v9.3 t80
min max add sub | u16x2/s16x2 | F:{name}.{mod} | v8.0 t90
add | sat u32/u16x2/s16x2 | F:add.sat | v9.2 on=107f+120f
min max | <4> | F:{name}.f32 with 3 input operands | t100 v8.8
min max redux | NaN | F:.NaN | v7.0
min max redux | NaN | M:.NaN | t80
min max | xorsign | F:.xorsign | v7.2
min max | xorsign | M:.xorsign | t86
min max | f16/f16x2 | F:{name}.f16 or {name}.f16x2 | t80 v7.0
fma min max | relu | F:.relu | v7.0
fma min max | relu | M:.relu | t80
add sub mul fma setp | f16/f16x2 !f32 | F:f16 arithemetic and compare instructions | t53 v4.2
set | <u8x4>/<s8x4>/<u16x2>/<s16x2> | F:set.{types} | v9.4
set | <u8x4>/<s8x4>/<u16x2>/<s16x2> | I:set.{types} | on=107f
set | <f16.f16>/<f16.u16>/<f16.u32>/<f16.u64>/<f16.s16>/<f16.s32>/<f16.s64>/<f16.b16>/<f16.b32>/<f16.b64>/<f16.f32>/\
<f16.f64>/<f16x2.f16x2> | F:f16 arithemetic and compare instructions | t53 v4.2
set | <u16.f16>/<s16.f16>/<u32.f16>/<s32.f16>/<u32.f16x2>/<s32.f16x2> | \
F:half precision floating point set instruction with integer result | v6.5 t53
abs neg | f16/f16x2 | F:f16 arithemetic and compare instructions | t53 v4.2
abs | f16/f16x2 | F:abs.f16 or abs.f16x2 | v6.5
neg | f16/f16x2 | F:neg.f16 or neg.f16x2 | v6.0
add sub mul setp set | bf16/bf16x2 !f32 | F:{name}.{mod} | t90 v7.8
add sub mul fma | f32x2 | F:{name}.f32x2 | t100 v8.6
add sub fma | f32 f16/bf16 | F:{name}.f32.{mod} | t100 v8.6

cvt | bf16 !<f32.bf16> | F:cvt.{types} | t80 v7.0
cvt | bf16 !f32 | F:cvt with .{types} | t90 v7.8
cvt | <f32.bf16> !ftz | F:cvt with .f32.bf16 | t80 v7.1
cvt | <f32.bf16> ftz | F:cvt with .f32.bf16.ftz | t90 v7.8
cvt | <f16x2.f32>/<bf16x2.f32> | F:cvt.{types} | t80 v7.0
cvt | <f16.f32>/<bf16.f32>/<f16x2.f32>/<bf16x2.f32> satfinite | M:.satfinite' on 'cvt.{types} | v8.1
cvt | rna satfinite | M:.satfinite' on 'cvt.tf32.f32.rna | v8.1
cvt | tf32 rn/rz | F:cvt with .tf32.f32.{mod} | t90 v7.8
cvt | tf32 rn/rz satfinite | M:.satfinite' on 'cvt.tf32.f32.{mod} | v8.6 t100
cvt | e4m3x2/e5m2x2 | F:cvt with .e4m3x2/.e5m2x2 | b8.1 t90 v7.8
cvt | e4m3x2/e5m2x2 | F:cvt with .e4m3x2/.e5m2x2 | t89
cvt | e2m3x2/e3m2x2 | F:cvt with .e2m3x2/.e3m2x2 | v8.6
cvt | e2m3x2/e3m2x2 | I:cvt with .e2m3x2/.e3m2x2 | on=100f+110f+120f
cvt | e2m1x2/ue8m0x2 | F:cvt with .{mod} | v8.6
cvt | e2m1x2/ue8m0x2 | I:cvt with .{mod} | on=100f+110f+120f
cvt | s2f6x2 | F:cvt with .s2f6x2 | v9.1
cvt | s2f6x2 | I:cvt with .s2f6x2 | on=100a+103a+107a+110a+120a+121a
cvt | <e4m3x2.bf16x2>/<e5m2x2.bf16x2>/<e2m3x2.bf16x2>/<e3m2x2.bf16x2>/<e2m1x2.bf16x2>/<e2m3x2.f16x2>/<e3m2x2.f16x2> | \
F:cvt.{types} | v9.1 on=100f+110f+120f
cvt | <bf16x2.e4m3x2>/<bf16x2.e5m2x2>/<bf16x2.e2m3x2>/<bf16x2.e3m2x2>/<bf16x2.e2m1x2> | F:cvt.{types} | \
v9.2 on=100f+110f+120f
cvt | ue5m3x2 | F:cvt with .ue5m3x2 | v9.4
cvt | ue5m3x2 | I:cvt with .ue5m3x2 | on=107f
cvt | pzo | F:.pzo | on=107f v9.4
cvt | rs | F:.rs | v8.7 on=100a+103a+107a
cvt | relu | F:.relu | v7.0
cvt | relu | M:.relu | t80
cvt.pack | | F:cvt.pack | t72 v6.5
cvt.pack | u4/s4/u2/s2 | F:cvt.pack with sub-byte type | v6.5 t75

fence | sync_restrict::* | F:.sync_restrict | t90 v8.6
fence | mbarrier_init | F:.op_restrict | t90 v8.0
fence | | F:fence instruction | v6.0 t70
fence.proxy | alias/async | F:fence.proxy | v7.5 t70
fence.proxy | fabric::generic/generic::fabric/fabric::fabric | \
I:fence.proxy with unidirectional fabric proxy fence | v9.3 on=100g
fence.proxy | alias acquire/release !fabric::generic !generic::fabric !fabric::fabric | \
F:order and scope with fence.proxy.alias | v9.4 t90
fence.proxy | tensormap::generic/async::generic | F:fence.proxy with unidirection proxy fence | v8.3
fence.proxy | tensormap::generic/async::generic | I:fence.proxy with unidirection proxy fence | on=90g
fence.proxy | async::generic | F:.sync_restrict | t90 v8.6
fence.proxy | release/alias | F:generic addressing | t20 v2.0
fence.proxy | async !global !shared::cta !shared::cluster | F:generic addressing | t20 v2.0
mapa getctarank | !shared::cluster | F:generic addressing | t20 v2.0
fabric.submit fabric.wait fabric.try_get.async fabric.try_put.async fabric.try_red.async fabric.try_pullred.async | | \
F:{name} | on=100g v9.3
applypriority.async.bulk applypriority.async.bulk.tensor | | F:{name} | v9.4
applypriority.async.bulk applypriority.async.bulk.tensor | | I:{name} | on=107f
membar.proxy | | F:membar.proxy | v7.5 t60
"""

_ASYNC = """
applypriority discard createpolicy.* | | F:{name} | t80 v7.4
cp.async.commit_group cp.async.wait_group cp.async.wait_all cp.async.mbarrier.arrive cp.async mbarrier.init \
mbarrier.inval mbarrier.test_wait mbarrier.pending_count | | F:{name} | v7.0 t80
mbarrier.test_wait.parity | | F:{name} | v7.1 t80
mbarrier.try_wait mbarrier.try_wait.parity | | F:{name} | v7.8 t90
mbarrier.check_layout | | F:{name} | v9.3 t90
cp.async | <guard> | F:ignore-src on cp.async | v7.5
mbarrier.arrive mbarrier.arrive_drop | | F:{name} | v7.0 t80
mbarrier.arrive mbarrier.arrive_drop mbarrier.test_wait mbarrier.test_wait.parity | relaxed | M:.{mod}' on '{name} | \
v8.0 t90
mbarrier.arrive.expect_tx mbarrier.arrive_drop.expect_tx mbarrier.complete_tx mbarrier.expect_tx | | F:{name} | v8.0 t90
mbarrier.arrive mbarrier.arrive_drop mbarrier.arrive.expect_tx mbarrier.arrive_drop.expect_tx mbarrier.complete_tx \
mbarrier.expect_tx | shared::cluster | F:.shared::cluster | v8.0 t90
cp.async.bulk cp.async.bulk.* cp.reduce.async.bulk cp.reduce.async.bulk.* | | F:{name} | t90 v8.0
cp.async.bulk cp.async.bulk.tensor | multicast::cluster | M:.{mod} | t90 v8.0
cp.async.bulk cp.async.bulk.tensor | shared::cta mbarrier::complete_tx::bytes !shared::cluster | F:{name} \
with destination state space as .shared::cta | v8.6
cp.async.bulk.tensor cp.async.bulk.prefetch.tensor cp.reduce.async.bulk.tensor | tile/im2col | F:.{mod} | t90 v8.0
multimem.cp.* | | F:{name} | t90 v9.1
cp.async.bulk multimem.cp.async.bulk cp.reduce.async.bulk multimem.cp.reduce.async.bulk | cta/cluster/gpu/sys | \
F:{name}.{mod} | v9.3
cp.async.bulk | relaxed shared::cluster global | I:cp.async.bulk.relaxed.shared::cluster.global | on=90a+100f+110f
cp.async.bulk multimem.cp.async.bulk | cp_mask | F:.cp_mask | t100 v8.6
cp.async.bulk multimem.cp.async.bulk | weak/volatile | F:{name}.{mod} | v9.3
cp.async.bulk multimem.cp.async.bulk cp.reduce.async.bulk multimem.cp.reduce.async.bulk | relaxed | \
F:{name}.{mod} | v9.3
mma | scale_vec::4X ue8m0 | F:mma with .scale_vec::4X and .ue8m0 scale type | v9.1
red.async st.async | | F:{name} | t90 v8.1
st.async | b128 | F:st.async.b128 | v9.2
atom red | noftz f32 | F:{name} with .noftz and .f32 | v9.4 t90
red.async st.async | mmio | F:st.async/red.async with .mmio modifier | t100 v8.7
red.async st.async | global | F:st.async/red.async with .global state space | t100 v8.7
st.bulk | | F:st.bulk | v8.6 t100
multimem.* !multimem.cp.* !multimem.st.async !multimem.red.async | | F:{name} | t90 v8.1
multimem.st.async multimem.red.async | | F:{name} | t100 v9.3
tensormap.replace | !swizzle_atomicity | F:tensormap.replace | v8.3
tensormap.replace | !swizzle_atomicity | I:tensormap.replace | on=90a+100f+110f+120f
tensormap.replace | swizzle_atomicity | F:tensormap.replace.swizzle_atomicity | v8.6
tensormap.replace | swizzle_atomicity | I:tensormap.replace.swizzle_atomicity | on=100f+110f+120f
tensormap.cp_fenceproxy | | F:{name} | v8.3
tensormap.cp_fenceproxy | | I:{name} | on=90g
"""

_MATRIX = """
ldmatrix | | F:ldmatrix | t75 v6.5
stmatrix | | F:stmatrix | t90 v7.8
movmatrix | | F:movmatrix | t75 v7.8
wgmma.fence wgmma.commit_group wgmma.wait_group | | F:WGMMA | v8.0
wgmma.fence wgmma.commit_group wgmma.wait_group | | I:{name} | on=90a
wgmma.mma_async | sp e4m3/e5m2 | F:Sparse WGMMA with FP8 types | v8.2
wgmma.mma_async | sp e4m3/e5m2 | I:Sparse wgmma.mma_async with FP8 types | on=90a
wgmma.mma_async | !sp e4m3/e5m2 | F:WGMMA with FP8 types | v8.0
wgmma.mma_async | !sp e4m3/e5m2 | I:wgmma.mma_async with FP8 types | on=90a
wgmma.mma_async | sp f16/bf16/tf32 !e4m3 !e5m2 | F:Sparse WGMMA with floating point types | v8.2
wgmma.mma_async | sp f16/bf16/tf32 !e4m3 !e5m2 | I:Sparse wgmma.mma_async with floating point types | on=90a
wgmma.mma_async | !sp f16/bf16/tf32 !e4m3 !e5m2 | F:WGMMA with floating point types | v8.0
wgmma.mma_async | !sp f16/bf16/tf32 !e4m3 !e5m2 | I:wgmma.mma_async with floating point types | on=90a
wgmma.mma_async | sp u8 s8 | F:Sparse WGMMA with mixed integer types | v8.4
wgmma.mma_async | sp u8 s8 | I:Sparse wgmma.mma_async with mixed integer types | on=90a
wgmma.mma_async | !sp u8 s8 | F:WGMMA with mixed integer types | v8.4
wgmma.mma_async | !sp u8 s8 | I:wgmma.mma_async with mixed integer types | on=90a
wgmma.mma_async | sp <s32.u8.u8>/<s32.s8.s8> | F:Sparse WGMMA with integer types | v8.2
wgmma.mma_async | sp <s32.u8.u8>/<s32.s8.s8> | I:Sparse wgmma.mma_async with integer types | on=90a
wgmma.mma_async | !sp <s32.u8.u8>/<s32.s8.s8> | F:WGMMA with integer types | v8.0
wgmma.mma_async | !sp <s32.u8.u8>/<s32.s8.s8> | I:wgmma.mma_async with integer types | on=90a
wgmma.mma_async | b1 | F:WGMMA with boolean type | v8.0
wgmma.mma_async | b1 | I:wgmma.mma_async with boolean type | on=90a
mma | !kind::* !block_scale !e4m3 !e5m2 | F:mma | v6.4 t70
mma | m8n8k4 f16 | F:.m8n8k4 | v6.4 t70
mma | m8n8k4 f64 | F:.m8n8k4 with double types | v7.0 t80
mma | m16n8k4/m16n8k8/m16n8k16 f64 | F:.{mod} with double types | v7.8 t90
mma | m8n8k16/m8n8k32 | F:.{mod} | v6.5 t75
mma | m8n8k128 | F:.m8n8k128 | v7.0 t75
mma | sp/sp::ordered_metadata !kind::* !block_scale !e4m3 !e5m2 | F:Sparse MMA | v7.1 t80
mma | m16n8k8 f16 | F:.m16n8k8 | v6.5 t75
mma | and | M:.and' on 'mma | v7.1 t80
mma | m16n8k4/m16n8k16/m16n8k32/m16n8k64/m16n8k128/m16n8k256 !f64 !kind::* !e4m3 !e5m2 | F:.{mod} | v7.0 t80
mma | m16n8k8 !f16 !f64 | F:.m16n8k8 | v7.0 t80
mma | kind::f8f6f4 e2m1/e2m3/e3m2 | F:mma with with FP6/FP4 floating point type | v8.7
mma | kind::f8f6f4 e2m1/e2m3/e3m2 | I:mma with with FP6/FP4 floating point type | on=120f
mma | e4m3/e5m2 !block_scale | F:mma with FP8 floating point type | v8.4 t89
mma | sp/sp::ordered_metadata m16n8k64 <f16.e4m3.e4m3.f16>/<f16.e4m3.e5m2.f16>/<f16.e5m2.e4m3.f16>/<f16.e5m2.e5m2.f16> \
| I:mma with with F16 accumulator and F8 floating point type | on=120f
mma | block_scale !m16n8k128 | F:mma with block scale | v8.7
mma | block_scale | I:mma with block scale | on=120f
mma | block_scale m16n8k128 | F:Sparse mma with block scale | v8.7
mma | block_scale m16n8k128 | I:Sparse mma with block scale | on=120a+121a
mma | kind::f8f6f4 | F:.kind::f8f6f4 | v8.6 on=100f+110f+120f
wmma.* | <generic> | F:generic addressing | t20 v2.0
wmma.* | shared::cta | F:::cta | v7.8
wmma.* | f16/f32/bf16/tf32 | F:WMMA with floating point types | v6.0 t70
wmma.* | bf16/tf32 | F:WMMA with .bf16/.tf32 FP types | v7.0 t80
wmma.* | s8/u8/s32 !s4 !u4 !b1 | F:WMMA with integer types | v6.3 t72
wmma.* | f64 | F:WMMA with fp64 types | v7.0 t80
wmma.* | s4/u4 | F:WMMA with sub-byte integer types | v6.3 t75
wmma.* | b1 | F:WMMA with bit types | v6.3 t75
wmma.* | | F:.aligned modifier for wmma | v6.3
wmma.* | m16n16k16 | F:.m16n16k16 | v6.0
wmma.* | m8n32k16/m32n8k16 | F:.{mod} | v6.1
wmma.* | m16n16k16/m8n32k16/m32n8k16 | M:.{mod} | t70
wmma.* | m16n16k8/m8n8k4 | F:.{mod} | v7.0
wmma.* | m16n16k8/m8n8k4 | M:.{mod} | t80
wmma.* | m8n8k32/m8n8k128 | F:.{mod} | v6.3
wmma.* | m8n8k32/m8n8k128 | M:.{mod} | t75
wmma.mma | and | M:.and' on 'wmma.mma | v7.1 t80
tcgen05.alloc tcgen05.commit tcgen05.cp tcgen05.dealloc tcgen05.relinquish_alloc_permit tcgen05.ld tcgen05.st \
tcgen05.mma tcgen05.mma.ws | | F:{name} | v8.6
tcgen05.alloc tcgen05.commit tcgen05.cp tcgen05.dealloc tcgen05.relinquish_alloc_permit tcgen05.ld tcgen05.st \
tcgen05.mma tcgen05.mma.ws | | I:{name} | on=100f+110f
tcgen05.fence::* | | F:tcgen05.fence | v8.6
tcgen05.fence::* | | I:tcgen05.fence | on=100f+110f
tcgen05.wait::* | | F:tcgen05.wait | v8.6
tcgen05.wait::* | | I:tcgen05.wait | on=100f+110f
tcgen05.shift | | F:tcgen05.shift | v8.6
tcgen05.shift | | I:tcgen05.shift | on=100a+103a+107a+110a
tcgen05.ld.red | | F:tcgen05.ld.red | v8.8
tcgen05.ld.red | | I:tcgen05.ld.red | on=103f+110f
"""

_AFTER = """
mbarrier.arrive mbarrier.arrive_drop | <3> !noComplete | F:{name} \
with count argument and without '.noComplete' modifier | t90 v7.8
multimem.* | e4m3/e5m2/e4m3x2/e5m2x2/e4m3x4/e5m2x4 | F:.{mod} | on=100f+110f+120a+121a v8.6
cp.async.bulk.tensor | tile::gather4 shared::cluster | \
F:.tile::gather4 with destination state space as .shared::cluster | on=100f+110f
cp.async.bulk.tensor | cta_group::1/cta_group::2 | M:.{mod}' on '{name} | v8.6
cp.async.bulk.tensor | cta_group::1/cta_group::2 | F:.{mod} | v8.6 on=100f+110f
cp.async.bulk.tensor | tile::gather4 shared::cta | F:.tile::gather4 with destination state space as .shared::cta | t100
cp.async.bulk.tensor | tile::* | F:.{mod} | v8.6
cp.async.bulk.tensor cp.reduce.async.bulk.tensor | im2col_no_offs::w | F:.{mod} | on=107f v9.4
cp.async.bulk cp.async.bulk.tensor | mbarrier::report::disabled/mbarrier::report::validity::per_16bytes::80000000/\
mbarrier::report::validity::per_16bytes::8000/mbarrier::report::validity::per_16bytes::80/\
mbarrier::report::validity::per_16bytes::8/mbarrier::report::validity::per_element::ff | F:.{mod} | v9.4
* | ignore_oob | F:.{mod} | t90 v9.2
cp.async.bulk cp.async.bulk.tensor tcgen05.commit | multicast::cluster::16b | F:.{mod} | v9.4
cp.async.bulk cp.async.bulk.tensor tcgen05.commit | multicast::cluster::32b | F:{name}.{mod} | v9.4 on=107f
* | sync_restrict::proxy::async/2pi | F:.{mod} | v9.5
* | layout::v0/layout::v1 | F:.{mod} | v9.3 t90
* | phase_type::primary/phase_type::conditional | F:.{mod} | t90 v9.3
* | proxy::readonly | F:.{mod} | t90 v9.4
ld st | volatile local | F:ld/st with .local.volatile | v9.1
* !ld !st !atom !red !wmma.* | <generic> | F:generic addressing | t20 v2.0
* !ld !st !atom !red !wmma.* !cp.async !cp.async.bulk !cp.async.bulk.* !cp.reduce.async.bulk !cp.reduce.async.bulk.* | \
shared::cta | F:::cta | v7.8
* !ld !st !atom !red !cp.async.bulk !cp.async.bulk.* | shared::cluster | F:::cluster | v7.8 t90
ldmatrix | m8n8 b16 | F:.m8n8 | v6.5
ldmatrix | m8n8 b16 | M:.m8n8 | t75
ldmatrix | m8n16 | M:.m8n16' on 'ldmatrix | v8.6
ldmatrix | m8n16 !s8 | F:.m8n16 | on=100f+110f+120f
ldmatrix | s8 s4 | M:.s8.s4' on 'ldmatrix | v9.4
ldmatrix | s8 s4 | F:ldmatrix with .s8.s4 | on=90a+100f+110f+120f
ldmatrix | b8x16 | M:format conversion' on 'ldmatrix | v8.6
ldmatrix | b8x16 | F:ldmatrix with format conversion | on=100f+110f+120f
ldmatrix stmatrix | b8 | F:{name}.b8 | on=100f+110f+120f v8.6
tcgen05.* | kind::i8 | F:.kind::i8 | v8.6 on=100a+110a
tcgen05.mma | kind::mxf4/kind::mxf4nvf4 sp | F:.{mod} with .sp modifier | on=100a+103a+107a+110a
tcgen05.* | ashift | F:.ashift | v8.6 on=100f+110f
tcgen05.mma | <scale> | F:argument scale-inp-d-imm | on=100f
tcgen05.* | cta_group::* | F:.{mod} | v8.6 on=100f+110f
tcgen05.commit | multicast::cluster | M:.{mod} | t90 v8.0
tcgen05.* | kind::f16/kind::tf32/kind::f8f6f4/kind::mxf8f6f4/kind::mxf4 | F:.{mod} | v8.6 on=100f+110f
tcgen05.* | kind::mxf4nvf4 | F:.{mod} | v8.7 on=100f+110f
tcgen05.* | kind::ti16/decompress::lut::b | F:.{mod} | v9.4 on=107f
tcgen05.alloc | exclusive | M:.{mod} | v9.4
tcgen05.* | block_scale | F:.{mod} | v8.6 on=100f+110f
tcgen05.* | scale_vec::* | F:.{mod} | v8.6 on=100a+103a+107a+110a
tcgen05.mma | block_scale !scale_vec::* !block16 | F:.block32 | v8.8 on=100f+110f
tcgen05.mma | block16 | F:.block16 | v8.8 on=100f+110f
tcgen05.* | collector::* | F:.{mod} | v8.6 on=100f+110f
tcgen05.* | pack::16b/unpack::16b/warpx4/warpx2::* | F:.{mod} | v8.6
applypriority | | M:.evict_normal' on 'applypriority | v7.4 t80
createpolicy.fractional createpolicy.range | L2::* | M:.{mod}' on '{name} | v7.4 t80
tex tex.* | f16x2 | F:f16 arithemetic and compare instructions | t53 v4.2
tex tex.* tld4 | <indirect> | F:indirect texture access | v3.1 T20
tex.grad | cube/acube | F:tex.grad with cube geometry | v4.3
tex.grad | cube/acube | F:tex.grad.{cube, acube} | t20
tld4 | cube/acube | F:tld4 instruction with .cube | t30 v4.3
tex tex.* tld4 | cube/acube | F:cubemap textures | v3.0
tex tex.* | a1d/a2d/acube | F:array textures | v2.3
tex tex.* | 2dms/a2dms | F:multi-sample textures | t30 v3.2
txq suq | | F:{name} | v1.5
txq suq | channel_data_type/channel_order | F:{mod} attribute | v2.1
txq suq | array_size | F:{mod} attribute | v4.1
txq | num_mipmap_levels | F:{mod} attribute | v4.1 t20
txq | num_samples | F:{mod} attribute | v4.1 t30
suq | memory_layout | F:{mod} attribute | v4.2
txq | force_unnormalized_coords | F:{mod} attribute | v2.2
txq txq.level | <indirect> | F:indirect texture access | v3.1 T20
suq sust.b sust.p suld.b sured.b sured.p | <indirect> | F:indirect surface access | v3.1 T20
suld.b sust.b | | F:{name} | v1.5
sured.b | s64/u64 min/max | F:64-bit min/max operation on sured.b | v8.1 t50
sured.p | b64 | F:.b64 on sured.p | v8.1 t50
suld.b sust.b sust.p sured.b sured.p | 3d | F:surface instruction with .3d geometry | t20 v3.0
sust.p | a1d/a2d | F:sust.p with array geometry | t30 v4.1
suld.b sust.b | a1d/a2d | F:surface instruction with array geometry | t20 v3.0
suld.b sust.b sust.p | a1d/a2d | F:array geometry | v2.3
ld st | L1::* | M:.{mod}' on '{name} | v7.4 t70
ld cp.async | L2::64B/L2::128B/L2::256B | F:cache prefetching | t75 v7.4
ld cp.async | L2::256B | M:.L2::256B | t80
ldu | b128 | F:Instruction type .b128 for instruction ldu | v8.3 t70
createpolicy.range | fabric | F:.fabric | t100 v9.4
* | bulk_group/mbarrier::complete_tx::bytes | F:.{mod} | t90 v8.0
fabric.* | mbarrier::complete_tx::16B | F:.{mod} | v9.3 t90
fabric.* | mbarrier::complete_tx::16B | F:.{mod} | t100
fabric.* | mbarrier::report::fabric | F:.{mod} | v9.3 t100
tcgen05.ld.red | NaN | F:.NaN | v7.0
tcgen05.ld.red | NaN | M:.NaN | t80
* | relaxed/acquire/release/acq_rel/sc/weak | F:.{mod} | v6.0 t70
fence | mbarrier_init | M:.{mod} | v8.0 t90
prefetch | tensormap | M:.{mod} | t90 v8.0
atom red fence fence.proxy ld st red.async tensormap.cp_fenceproxy mbarrier.* | cluster | F:.cluster scope | t90 v7.8
ld | nc | I:ld.nc | t32
ld | nc | F:.nc | v3.1
ld mov st | b128 | F:Instruction type .b128 for instruction {name} | v8.3 t70
ld st cp.async suld.b sust.b sust.p | ca/cg/cs/lu/cv/wb/wt | I:{name} | t20
ld st cp.async suld.b sust.b sust.p | ca/cg/cs/lu/cv/wb/wt | F:cache operation | v2.0
suld.b sust.b sust.p sured.b sured.p | trap | F:.trap modifier | v1.5
suld.b sust.b sust.p sured.b sured.p | clamp/zero | F:.{mod} modifier | v2.0
red.async st.async | release | F:st.async/red.async with .release modifier | t100 v8.7
atom red | cta/cluster/gpu/sys | F:scopes on atomic operations | t60 v5.0
* | L2::cache_hint | M:.{mod} | t80 v7.4
atom ld st | b128 sys | F:.b128 with .sys | v8.4
tensormap.replace | tile | F:.tile | t90 v8.0
* | volatile | F:.volatile | v1.1
sub | cc | F:sub.cc | v1.3
subc | | F:1.3 | v1.3
"""

# Of an instruction's own, then of its modifiers and of the spaces of its addresses (ld, st and atomics have those
# first).
OWN = "ld st | <wide> | F:256 bit wide load/store | v8.8 t100" + _ADDRESSES + _MEMORY + _NAMED + _ASYNC + _MATRIX
OTHER = _AFTER

# What ptxas 13.5 knows and orias does not support: beginnings of opcodes, and the gates before that answer.
BEYOND = """
fabric.try_get.async.tensor fabric.try_put.async.tensor fabric.try_red.async.tensor fabric.try_atom.async | F | \
v9.3 on=100g
spcompress spdecompress | I | v9.4 on=107f
tensormap.query | I | v9.5 on=90g
"""

# Modifiers of which the same is true.
BEYOND_WORDS = frozenset(
    [
        "override::global_address",
        "override::global_dim",
        "override::global_dim_stride",
        "report_mechanism",
        "spcompress",
        "alloc_class",
    ]
)
