"""Gates of combinations: they hold when an instruction of the name has all the words among its modifiers and types.

    names | words | gates

Measured with ptxas 13.0; `tests/parse/gates.py` compares them with what it reports.
"""

RULES = """
atom red | | v1.1 t11
atom red | cta | v5.0 t60
atom red | gpu | v5.0 t60
atom red | sys | v5.0 t60
atom red | min s64 | v3.1 t32
atom red | max s64 | v3.1 t32
atom red | min u64 | v3.1 t32
atom red | max u64 | v3.1 t32
atom red | and b64 | v3.1 t32
atom red | or b64 | v3.1 t32
atom red | xor b64 | v3.1 t32
atom red | add f64 | v5.0 t60
atom red | add f32 | v2.0 t20
atom red | add f16 | v6.3 t70
atom red | add bf16 | v7.8 t90
atom red | add bf16x2 | v7.8 t90
atom | cas b16 | v6.3 t70
atom | cas b128 | v8.3 t90
atom | exch b128 | v8.3 t90
fence atom red ld st | cluster | v7.8 t90
barrier.cluster.arrive | release | v8.0
barrier.cluster.arrive | relaxed | v8.0
barrier.cluster.wait | acquire | v8.0
clusterlaunchcontrol.try_cancel.async | multicast::cluster::all | on=100f+110f+120f
cp.async.bulk.tensor | cta_group::1 | v8.6 on=100f+110f
cp.async.bulk.tensor | cta_group::2 | v8.6 on=100f+110f
cvta cvta.to isspacep | const | v3.1
cvta cvta.to isspacep | param | v7.7 t70
cvta cvta.to isspacep | param::entry | v7.7 t70
fence.proxy | async | v8.0 t90
mma wmma.mma | b1 and | v7.1 t80
mma | sp::ordered_metadata | v8.5
set | u32 f16x2 | v6.5
set | s32 f16x2 | v6.5
suld.b sust.b sust.p | 3d | v3.0
suld.b sust.b | a1d | v3.0
suld.b sust.b | a2d | v3.0
sust.p | a1d | v4.1 t30
sust.p | a2d | v4.1 t30
addc subc madc.hi madc.lo | cc u64 | v4.3
addc subc madc.hi madc.lo | cc s64 | v4.3
tld4 | cube | v4.3 t30
tld4 | acube | v4.3 t30
suq txq | channel_data_type | v2.1
suq txq | channel_order | v2.1
suq txq | array_size | v4.1
suq | memory_layout | v4.2
txq | num_mipmap_levels | v4.1
txq | num_samples | v4.1 t30
sured.b sured.p | 3d | v3.0
sured.b | min s64 | v8.1 t50
sured.b | max s64 | v8.1 t50
sured.b | min u64 | v8.1 t50
sured.b | max u64 | v8.1 t50
sured.p | b64 | v8.1 t50
tex tex.base tex.level tex.grad | f16x2 | v4.2 t53
tex tex.base tex.level tex.grad | cube | v3.0 t20
tex tex.base tex.level tex.grad | acube | v3.0 t20
tex tex.base tex.level tex.grad | a1d | v2.3 t20
tex tex.base tex.level tex.grad | a2d | v2.3 t20
tex.grad | cube | v4.3
tex.grad | acube | v4.3
tcgen05.mma | block16 | v8.8
tcgen05.mma | block32 | v8.8
tcgen05.mma | kind::mxf4nvf4 | v8.7
tensormap.replace | swizzle_atomicity | v8.6 on=100f+110f+120f
tcgen05.mma tcgen05.mma.ws | kind::i8 | on=100a+110a
wgmma.mma_async | sp | v8.2
wgmma.mma_async | u8 s8 | v8.4
"""
