"""Loads, stores, caches, atomics, fences.  Column meaning: see `stages.parse.table`."""

ROWS = """
ld | b8,b16,b32,b64,b128,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64 | \
weak? $space? $ldcop? $l1evict? $l2evict? L2::cache_hint? $l2fetch? v2/v4/v8? | dV~, m, s:u64@L2::cache_hint |
ld | b8,b16,b32,b64,b128,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64 | volatile $space? $l2fetch? v2/v4/v8? | dV~, m |
ld | b8,b16,b32,b64,b128,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64 | \
relaxed/acquire $scope $space? $l1evict? $l2evict? L2::cache_hint? $l2fetch? v2/v4/v8? | \
dV~, m, s:u64@L2::cache_hint | v6.0 t70
ld | b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64 | mmio relaxed sys global? v2/v4/v8? | dV~, m | v8.2 t70
ld | b8,b16,b32,b64,b128,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64 | \
global $ldcop? nc $l1evict? $l2evict? L2::cache_hint? $l2fetch? v2/v4/v8? | dV~, m, s:u64@L2::cache_hint | v3.1 t32
ldu | b8,b16,b32,b64,b128,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64 | global? v2/v4? | dV~, m | v2.0 t20
ld | b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64 | proxy::readonly global? v2/v4? | dV~, m | v9.4 t90
ld | b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64 | proxy::readonly global nc v2/v4? | dV~, m | v9.4 t90
st | b8,b16,b32,b64,b128,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64 | \
weak? $stspace? $stcop? $l1evict? $l2evict? L2::cache_hint? v2/v4/v8? | m, sV~, s:u64@L2::cache_hint |
st | b8,b16,b32,b64,b128,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64 | volatile $stspace? v2/v4/v8? | m, sV~ |
st | b8,b16,b32,b64,b128,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64 | \
relaxed/release $scope $stspace? $l1evict? $l2evict? L2::cache_hint? v2/v4/v8? | m, sV~, s:u64@L2::cache_hint | v6.0 t70
st | b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64 | mmio relaxed sys global? v2/v4/v8? | m, sV~ | v8.2 t70
st.async | b32,b64,u32,u64,s32,s64,f32,f64 | weak? shared::cluster? mbarrier::complete_tx::bytes? v2/v4? | m, sV, m? | \
v8.1 t90 | completion
st.async | b128 | weak? shared::cluster? mbarrier::complete_tx::bytes | m, s, m | v9.2 t90
st.async | b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64 | weak? mmio? release? gpu/sys? global? | m, s | \
v8.1 t90
st.bulk | - | weak? shared::cta? | m, s:u64, i | v8.6 t100 | zero2
prefetch | - | global/local? L1/L2 | m | v2.0 t20
prefetch | - | global? L2::evict_last/L2::evict_normal | m | v7.4 t80
prefetch | - | global? L1::32B valid_addr | m | v9.4 t90
prefetch | - | const/param? tensormap | m | v8.0 t90
prefetchu | - | L1 | m | v2.0 t20
applypriority | - | global? L2::evict_normal | m, i | v7.4 t80 | size128
discard | - | global? L2 | m, i | v7.4 t80 | size128
createpolicy.fractional | b64 | L2::evict_last/L2::evict_normal/L2::evict_first/L2::evict_unchanged $l2second? | \
d:u64, s:f32? | v7.4 t80 | fraction
createpolicy.range | b64 | global? L2::evict_last/L2::evict_normal/L2::evict_first/L2::evict_unchanged $l2second? | \
d:u64, m, s:u32, s:u32 | v7.4 t80
createpolicy.range | b64 | fabric L2::evict_last/L2::evict_normal/L2::evict_first/L2::evict_unchanged $l2second? | \
d:u64, mh, s:u32, s:u32 | v9.4 t100
createpolicy.cvt | b64 | L2 | d:u64, s!:b64 | v7.4 t80
atom | u32 | $sem? $scope? $rspace? inc/dec/min/max/add L2::cache_hint? | d_, m, s, s:u64@L2::cache_hint |
atom | s32,u64,s64 | $sem? $scope? $rspace? min/max/add L2::cache_hint? | d_, m, s, s:u64@L2::cache_hint |
atom | f32 | $sem? $scope? $rspace? add noftz L2::cache_hint? | d_, m, s, s:u64@L2::cache_hint | v9.4 t90
atom | f32,f64 | $sem? $scope? $rspace? add L2::cache_hint? | d_, m, s, s:u64@L2::cache_hint |
atom | b32,b64,b128 | $sem? $scope? $rspace? exch L2::cache_hint? | d_, m, s, s:u64@L2::cache_hint |
atom | b32,b64 | $sem? $scope? $rspace? and/or/xor L2::cache_hint? | d_, m, s, s:u64@L2::cache_hint |
atom | b16,b32,b64,b128 | $sem? $scope? $rspace? cas | d_, m, s, s |
atom | f16,f16x2,bf16,bf16x2 | $sem? $scope? $rspace? add noftz L2::cache_hint? | d_, m, s, s:u64@L2::cache_hint | \
v6.2 t60
atom | f32 | $sem? $scope? global? add noftz L2::cache_hint? v2/v4 | d_V, m, sV, s:u64@L2::cache_hint | v9.4 t90
atom | f32 | $sem? $scope? global? add L2::cache_hint? v2/v4 | d_V, m, sV, s:u64@L2::cache_hint | v8.1 t90
atom | f16,bf16 | $sem? $scope? global? add/min/max noftz L2::cache_hint? v2/v4/v8 | \
d_V, m, sV, s:u64@L2::cache_hint | v8.1 t90
atom | f16x2,bf16x2 | $sem? $scope? global? add/min/max noftz L2::cache_hint? v2/v4 | \
d_V, m, sV, s:u64@L2::cache_hint | v8.1 t90
red | u32 | $rsem? $scope? $rspace? inc/dec/min/max/add L2::cache_hint? | m, s, s:u64@L2::cache_hint | v1.2
red | s32,u64,s64 | $rsem? $scope? $rspace? min/max/add L2::cache_hint? | m, s, s:u64@L2::cache_hint | v1.2
red | f32 | $rsem? $scope? $rspace? add noftz L2::cache_hint? | m, s, s:u64@L2::cache_hint | v9.4 t90
red | f32,f64 | $rsem? $scope? $rspace? add L2::cache_hint? | m, s, s:u64@L2::cache_hint | v1.2
red | b32,b64 | $rsem? $scope? $rspace? and/or/xor L2::cache_hint? | m, s, s:u64@L2::cache_hint | v1.2
red | f16,f16x2,bf16,bf16x2 | $rsem? $scope? $rspace? add noftz L2::cache_hint? | m, s, s:u64@L2::cache_hint | v6.2 t60
red | f32 | $rsem? $scope? global? add noftz L2::cache_hint? v2/v4 | m, sV, s:u64@L2::cache_hint | v9.4 t90
red | f32 | $rsem? $scope? global? add L2::cache_hint? v2/v4 | m, sV, s:u64@L2::cache_hint | v8.1 t90
red | f16,bf16 | $rsem? $scope? global? add/min/max noftz L2::cache_hint? v2/v4/v8 | m, sV, s:u64@L2::cache_hint | \
v8.1 t90
red | f16x2,bf16x2 | $rsem? $scope? global? add/min/max noftz L2::cache_hint? v2/v4 | m, sV, s:u64@L2::cache_hint | \
v8.1 t90
red.async | u32 | relaxed cluster shared::cluster? mbarrier::complete_tx::bytes inc/dec/min/max/add | m, s, m? | \
v8.1 t90
red.async | s32 | relaxed cluster shared::cluster? mbarrier::complete_tx::bytes min/max/add | m, s, m? | v8.1 t90
red.async | u64 | relaxed cluster shared::cluster? mbarrier::complete_tx::bytes add | m, s, m? | v8.1 t90
red.async | b32 | relaxed cluster shared::cluster? mbarrier::complete_tx::bytes and/or/xor | m, s, m? | v8.1 t90
red.async | u32 | mmio? release/relaxed gpu/sys global? add/min/max/inc/dec | m, s | v8.1 t90
red.async | s32 | mmio? release/relaxed gpu/sys global? add/min/max | m, s | v8.1 t90
red.async | b32 | mmio? release/relaxed gpu/sys global? and/or/xor | m, s | v8.1 t90
red.async | u64 | mmio? release/relaxed gpu/sys global? add | m, s | v8.1 t90
membar | - | cta/gl/sys | | v1.4
membar.proxy | - | alias | | v7.5 t60
fence | - | sc/acq_rel? $scope | | v6.0 t70
fence | - | acquire/release sync_restrict::shared::cluster/sync_restrict::shared::cta cluster | | v8.6 t90
fence | - | mbarrier_init release cluster | | v8.0 t90
fence | - | acquire/release $scope | | v6.0 t70
fence.proxy | - | alias | | v7.5 t70
fence.proxy | - | alias acquire/release sys | | v9.4 t90
fence.proxy | - | fabric::generic/generic::fabric/fabric::fabric alias acquire/release sys | | v9.3 t100
fence | - | alias release sync_restrict::read sys | | v9.5 t90
fabric.submit | - | op_restrict::fetching? | | v9.3 on=100g
fabric.wait | - | sync_restrict::reads | | v9.3 on=100g
fabric.try_get.async | b128 | shared::cta mbarrier::complete_tx::bytes mbarrier::report::fabric L2::cache_hint? \
relaxed? sys? | m, mh, s:u32, m, s:u64@L2::cache_hint | v9.3 on=100g
fabric.try_put.async | b128 | multimem? shared::cta mbarrier::complete_tx::16B mbarrier::report::fabric \
L2::cache_hint? relaxed? sys? | mh, m, s:u32, m, s:u64@L2::cache_hint | v9.3 on=100g
fabric.try_put.async | b128 | multimem? shared::cta mbarrier::complete_tx::16B mbarrier::report::fabric cp_mask \
L2::cache_hint? relaxed? sys? | mh, m, s:u32, m, s:u16, s:u64@L2::cache_hint | v9.3 on=100g
fabric.try_put.async | b128 | multimem? shared::cta mbarrier::complete_tx::16B mbarrier::report::fabric \
counted::bytes L2::cache_hint? relaxed? sys? | mhc, m, s:u32, m, s:u64@L2::cache_hint | v9.3 on=100g
fabric.try_red.async | b32,b64 | multimem? shared::cta mbarrier::complete_tx::16B mbarrier::report::fabric \
L2::cache_hint? relaxed? sys? and/or/xor | mh, m, s:u32, m, s:u64@L2::cache_hint | v9.3 on=100g
fabric.try_red.async | b32,b64 | multimem? shared::cta mbarrier::complete_tx::16B mbarrier::report::fabric \
counted::bytes L2::cache_hint? relaxed? sys? and/or/xor | mhc, m, s:u32, m, s:u64@L2::cache_hint | v9.3 on=100g
fabric.try_red.async | u32,u64,f16,bf16,f32,f64 | multimem? shared::cta mbarrier::complete_tx::16B \
mbarrier::report::fabric L2::cache_hint? relaxed? sys? add | mh, m, s:u32, m, s:u64@L2::cache_hint | v9.3 on=100g
fabric.try_red.async | u32,u64,f16,bf16,f32,f64 | multimem? shared::cta mbarrier::complete_tx::16B \
mbarrier::report::fabric counted::bytes L2::cache_hint? relaxed? sys? add | mhc, m, s:u32, m, s:u64@L2::cache_hint | \
v9.3 on=100g
fabric.try_red.async | u32,s32,u64,s64,f16,bf16 | multimem? shared::cta mbarrier::complete_tx::16B \
mbarrier::report::fabric L2::cache_hint? relaxed? sys? min/max | mh, m, s:u32, m, s:u64@L2::cache_hint | v9.3 on=100g
fabric.try_red.async | u32,s32,u64,s64,f16,bf16 | multimem? shared::cta mbarrier::complete_tx::16B \
mbarrier::report::fabric counted::bytes L2::cache_hint? relaxed? sys? min/max | mhc, m, s:u32, m, \
s:u64@L2::cache_hint | v9.3 on=100g
fabric.try_pullred.async | b32,b64 | multimem shared::cta mbarrier::complete_tx::bytes mbarrier::report::fabric \
relaxed? sys? and/or/xor T sync | m, mh, s:u32, m, i | v9.3 on=100g | everyone
fabric.try_pullred.async | u32,u64,f16,bf16,f32 | multimem shared::cta mbarrier::complete_tx::bytes \
mbarrier::report::fabric relaxed? sys? add T sync | m, mh, s:u32, m, i | v9.3 on=100g | everyone
fabric.try_pullred.async | u32,s32,u64,s64,f16,bf16 | multimem shared::cta mbarrier::complete_tx::bytes \
mbarrier::report::fabric relaxed? sys? min/max T sync | m, mh, s:u32, m, i | v9.3 on=100g | everyone
fabric.try_pullred.async | e4m3,e5m2 | multimem shared::cta mbarrier::complete_tx::bytes mbarrier::report::fabric \
relaxed? sys? min/max T sync | m, mh, s:u32, m, i | v9.3 on=100f+110f+120a+121a | everyone
fabric.try_pullred.async | e4m3,e5m2 | multimem shared::cta mbarrier::complete_tx::bytes mbarrier::report::fabric \
relaxed? sys? add acc::f16 T sync | m, mh, s:u32, m, i | v9.3 on=100f+110f+120a+121a | everyone
fabric.try_pullred.async | f16,bf16 | multimem shared::cta mbarrier::complete_tx::bytes mbarrier::report::fabric \
relaxed? sys? add acc::f32 T sync | m, mh, s:u32, m, i | v9.3 on=100g | everyone
fence.proxy | - | async global/shared::cta/shared::cluster? | | v7.5 t70
fence.proxy | - | tensormap::generic release $scope | | v8.3 t70 on=90g
fence.proxy | - | tensormap::generic acquire $scope | m, i | v8.3 t70 on=90g | size128
fence.proxy | - | async::generic acquire/release sync_restrict::shared::cluster/sync_restrict::shared::cta cluster | | \
v8.6 on=90g
multimem.ld_reduce | u32,s32,u64 | weak/relaxed/acquire? $scope? global? min/max/add | d, m | v8.1 t90
multimem.ld_reduce | s64 | weak/relaxed/acquire? $scope? global? min/max | d, m | v8.1 t90
multimem.ld_reduce | b32,b64 | weak/relaxed/acquire? $scope? global? and/or/xor | d, m | v8.1 t90
multimem.ld_reduce | f32 | weak/relaxed/acquire? $scope? global? add v2/v4? | dV, m | v8.1 t90
multimem.ld_reduce | f64 | weak/relaxed/acquire? $scope? global? add | d, m | v8.1 t90
multimem.ld_reduce | f16,bf16 | weak/relaxed/acquire? $scope? global? min/max/add acc::f32? v2/v4/v8 | dV, m | v8.1 t90
multimem.ld_reduce | f16x2,bf16x2 | weak/relaxed/acquire? $scope? global? min/max/add acc::f32? v2/v4? | dV:X, m | \
v8.1 t90
multimem.ld_reduce | e5m2,e4m3 | weak/relaxed/acquire? $scope? global? min/max/add acc::f16? v4/v8 | dV, m | \
v8.6 on=100f+110f+120a+121a
multimem.ld_reduce | e5m2x2,e4m3x2 | weak/relaxed/acquire? $scope? global? min/max/add acc::f16? v2/v4/v8 | dV, m | \
v8.6 on=100f+110f+120a+121a
multimem.ld_reduce | e5m2x4,e4m3x4 | weak/relaxed/acquire? $scope? global? min/max/add acc::f16? v2/v4? | dV:X, m | \
v8.6 on=100f+110f+120a+121a
multimem.st | e5m2,e4m3 | weak/relaxed/release? $scope? global? v4/v8 | m, sV | v8.6 on=100f+110f+120a+121a
multimem.st | e5m2x2,e4m3x2 | weak/relaxed/release? $scope? global? v2/v4/v8 | m, sV | v8.6 on=100f+110f+120a+121a
multimem.st | e5m2x4,e4m3x4 | weak/relaxed/release? $scope? global? v2/v4? | m, sV:X | v8.6 on=100f+110f+120a+121a
multimem.st | u32,s32,u64,s64,b32,b64,f64 | weak/relaxed/release? $scope? global? | m, s | v8.1 t90
multimem.st | f32 | weak/relaxed/release? $scope? global? v2/v4? | m, sV | v8.1 t90
multimem.st | f16,bf16 | weak/relaxed/release? $scope? global? v2/v4/v8 | m, sV | v8.1 t90
multimem.st | f16x2,bf16x2 | weak/relaxed/release? $scope? global? v2/v4? | m, sV:X | v8.1 t90
multimem.st.async | b8,b16,b32,b64,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64 | release gpu/sys global? | m, s~ | v9.3 t100
multimem.red.async | u32,s32,u64 | release gpu/sys global? add | m, s | v9.3 t100
multimem.red | u32,s32,u64 | relaxed/release? $scope? global? min/max/add | m, s | v8.1 t90
multimem.red | s64 | relaxed/release? $scope? global? min/max | m, s | v8.1 t90
multimem.red | b32,b64 | relaxed/release? $scope? global? and/or/xor | m, s | v8.1 t90
multimem.red | f32 | relaxed/release? $scope? global? add v2/v4? | m, sV | v8.1 t90
multimem.red | f64 | relaxed/release? $scope? global? add | m, s | v8.1 t90
multimem.red | f16,bf16 | relaxed/release? $scope? global? min/max/add v2/v4/v8 | m, sV | v8.1 t90
multimem.red | f16x2,bf16x2 | relaxed/release? $scope? global? add | m, s:X | v8.1 t90
multimem.red | f16x2,bf16x2 | relaxed/release? $scope? global? min/max/add v2/v4 | m, sV:X | v8.1 t90
tensormap.replace | b64 | tile global_address $tmspace? b1024 | m, s | v8.3 on=90a+100f+110f+120f
tensormap.replace | b32 | tile rank $tmspace? b1024 | m, s | v8.3 on=90a+100f+110f+120f
tensormap.replace | b32 | tile elemtype/interleave_layout/swizzle_mode/fill_mode/swizzle_atomicity $tmspace? b1024 | \
m, i | v8.3 on=90a+100f+110f+120f | tensormap
tensormap.replace | b32 | tile box_dim/global_dim/element_stride $tmspace? b1024 | m, i, s | \
v8.3 on=90a+100f+110f+120f | tensormap
tensormap.replace | b64 | tile global_stride $tmspace? b1024 | m, i, s | v8.3 on=90a+100f+110f+120f | tensormap
tensormap.cp_fenceproxy | - | global shared::cta tensormap::generic release $scope sync aligned | m, m, i | \
v8.3 t70 on=90g | fence128
"""
