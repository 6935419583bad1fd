"""Asynchronous copies and mbarriers.  Column meaning: see `stages.parse.table`."""

ROWS = """
cp.async | - | ca shared/shared::cta global L2::cache_hint? $l2fetch? | m, m, i, s:u32?, s:u64@L2::cache_hint | \
v7.0 t80 | cpsize
cp.async | - | cg shared/shared::cta global L2::cache_hint? $l2fetch? | m, m, i, s:u32?, s:u64@L2::cache_hint | \
v7.0 t80 | cpsize16
cp.async | - | ca shared/shared::cta global L2::cache_hint? $l2fetch? | m, m, i, ps, s:u64@L2::cache_hint | v7.5 t80 | \
cpsize
cp.async | - | cg shared/shared::cta global L2::cache_hint? $l2fetch? | m, m, i, ps, s:u64@L2::cache_hint | v7.5 t80 | \
cpsize16
cp.async.commit_group | - | | | v7.0 t80
cp.async.wait_group | - | | i | v7.0 t80
cp.async.wait_all | - | | | v7.0 t80
cp.async.mbarrier.arrive | b64 | noinc? shared/shared::cta? | m | v7.0 t80
cp.async.bulk | - | weak? relaxed? $scope? shared::cluster global mbarrier::complete_tx::bytes $report? \
multicast::cluster/multicast::cluster::16b? L2::cache_hint? | m, m, s:u32, m, \
s:u16@multicast::cluster/multicast::cluster::16b, s:u64@L2::cache_hint | v8.0 t90 | size16
cp.async.bulk | - | weak? relaxed? $scope? shared::cluster global mbarrier::complete_tx::bytes $report? \
multicast::cluster::32b L2::cache_hint? | m, m, s:u32, m, s:u32, s:u64@L2::cache_hint | v9.4 on=107f | size16
cp.async.bulk | - | weak? relaxed? $scope? shared::cta global mbarrier::complete_tx::bytes $report? L2::cache_hint? | \
m, m, s:u32, m, s:u64@L2::cache_hint | v8.6 t90 | size16
cp.async.bulk | - | weak? relaxed? $scope? shared::cta global mbarrier::complete_tx::bytes $report? L2::cache_hint? \
ignore_oob | m, m, s:u32, s:u32, s:u32, m, s:u64@L2::cache_hint | v9.2 t90 | size16
cp.async.bulk | - | weak? relaxed? cta/cluster? shared::cluster shared::cta mbarrier::complete_tx::bytes | m, m, \
s:u32, m | v8.0 t90 | size16
cp.async.bulk | - | weak? relaxed? $scope? global shared::cta bulk_group L2::cache_hint? | m, m, s:u32, \
s:u64@L2::cache_hint | v8.0 t90 | size16
cp.async.bulk | - | weak? relaxed? $scope? global shared::cta bulk_group L2::cache_hint? cp_mask | \
m, m, s:u32, s:u64@L2::cache_hint, s:u16 | v8.6 t100 | size16
multimem.cp.async.bulk | - | weak? relaxed? $scope? global shared::cta bulk_group | m, m, s:u32 | v9.1 t90 | size16
multimem.cp.async.bulk | - | weak? relaxed? $scope? global shared::cta bulk_group cp_mask | m, m, s:u32, s:u16 | v9.1 \
t100 | size16
cp.async.bulk | b128 | relaxed? $scope? shared::cluster global mbarrier::complete_tx::bytes $report? \
multicast::cluster/multicast::cluster::16b? L2::cache_hint? | m, m, s:u32, m, \
s:u16@multicast::cluster/multicast::cluster::16b, s:u64@L2::cache_hint | v8.0 t90 | size16
cp.async.bulk | b128 | relaxed? $scope? shared::cluster global mbarrier::complete_tx::bytes $report? \
multicast::cluster::32b L2::cache_hint? | m, m, s:u32, m, s:u32, s:u64@L2::cache_hint | v9.4 on=107f | size16
cp.async.bulk | b128 | relaxed? $scope? shared::cta global mbarrier::complete_tx::bytes $report? L2::cache_hint? | m, \
m, s:u32, m, s:u64@L2::cache_hint | v8.6 t90 | size16
cp.async.bulk | b128 | relaxed? $scope? shared::cta global mbarrier::complete_tx::bytes $report? L2::cache_hint? \
ignore_oob | m, m, s:u32, s:u32, s:u32, m, s:u64@L2::cache_hint | v9.2 t90 | size16
cp.async.bulk | b128 | relaxed? cta/cluster? shared::cluster shared::cta mbarrier::complete_tx::bytes | m, m, s:u32, \
m | v8.0 t90 | size16
cp.async.bulk | b128 | relaxed? $scope? global shared::cta bulk_group L2::cache_hint? | m, m, s:u32, \
s:u64@L2::cache_hint | v8.0 t90 | size16
cp.async.bulk | b128 | relaxed? $scope? global shared::cta bulk_group L2::cache_hint? cp_mask | m, m, s:u32, \
s:u64@L2::cache_hint, s:u16 | v8.6 t100 | size16
multimem.cp.async.bulk | b128 | relaxed? $scope? global shared::cta bulk_group | m, m, s:u32 | v9.1 t90 | size16
multimem.cp.async.bulk | b128 | relaxed? $scope? global shared::cta bulk_group cp_mask | m, m, s:u32, s:u16 | v9.1 \
t100 | size16
cp.async.bulk.commit_group | - | | | v8.0 t90
cp.async.bulk.wait_group | - | read? | i | v8.0 t90
cp.async.bulk.wait_group | - | sync_restrict::proxy::async | i | v9.5 t90
cp.async.bulk.prefetch | - | L2 global L2::cache_hint? | m, s:u32, s:u64@L2::cache_hint | v8.0 t90 | size16p
cp.async.bulk.prefetch | - | L2 global L2::evict_last L2::cache_hint? | m, s:u32, s:u64@L2::cache_hint | \
v9.4 on=107f | size16p
applypriority.async.bulk | - | global? bulk_group L2::evict_normal | m, s:u32 | v9.4 on=107f | size16p
applypriority.async.bulk.tensor | - | $dim global? bulk_group tile/tile::gather4? L2::evict_normal | mt | \
v9.4 on=107f | tensor
applypriority.async.bulk.tensor | - | $dim global? bulk_group im2col/im2col::w/im2col::w::128 L2::evict_normal | \
mt, sv:b16 | v9.4 on=107f | tensor
cp.async.bulk.tensor | - | $dim $scope? shared::cluster global tile? mbarrier::complete_tx::bytes $report? \
multicast::cluster/multicast::cluster::16b? cta_group::1/cta_group::2? L2::cache_hint? | m~, mt~, m~, \
s:u16@multicast::cluster/multicast::cluster::16b, s:u64@L2::cache_hint | v8.0 t90 | tensor
cp.async.bulk.tensor | - | $dim $scope? shared::cluster global tile? mbarrier::complete_tx::bytes $report? \
multicast::cluster::32b cta_group::1/cta_group::2? L2::cache_hint? | m~, mt~, m~, s:u32, s:u64@L2::cache_hint | v9.4 \
on=107f | tensor
cp.async.bulk.tensor | - | $dim $scope? shared::cluster global im2col/im2col::w/im2col::w::128 \
mbarrier::complete_tx::bytes $report? multicast::cluster/multicast::cluster::16b? cta_group::1/cta_group::2? \
L2::cache_hint? | m~, mt~, m~, sv:b16, s:u16@multicast::cluster/multicast::cluster::16b, s:u64@L2::cache_hint | v8.0 \
t90 | tensor
cp.async.bulk.tensor | - | $dim $scope? shared::cluster global im2col/im2col::w/im2col::w::128 \
mbarrier::complete_tx::bytes $report? multicast::cluster::32b cta_group::1/cta_group::2? L2::cache_hint? | m~, mt~, \
m~, sv:b16, s:u32, s:u64@L2::cache_hint | v9.4 on=107f | tensor
cp.async.bulk.tensor | - | $dim $scope? shared::cluster global tile::gather4 mbarrier::complete_tx::bytes $report? \
multicast::cluster/multicast::cluster::16b? cta_group::1/cta_group::2? L2::cache_hint? | m~, mt~, m~, \
s:u16@multicast::cluster/multicast::cluster::16b, s:u64@L2::cache_hint | v8.6 on=100f+110f | tensor
cp.async.bulk.tensor | - | $dim $scope? shared::cluster global tile::gather4 mbarrier::complete_tx::bytes $report? \
multicast::cluster::32b cta_group::1/cta_group::2? L2::cache_hint? | m~, mt~, m~, s:u32, s:u64@L2::cache_hint | v9.4 \
on=107f | tensor
cp.async.bulk.tensor | - | $dim $scope? shared::cta global tile? mbarrier::complete_tx::bytes $report? \
cta_group::1/cta_group::2? L2::cache_hint? | m~, mt~, m~, s:u64@L2::cache_hint | v8.6 t90 | tensor
cp.async.bulk.tensor | - | $dim $scope? shared::cta global im2col/im2col::w/im2col::w::128 \
mbarrier::complete_tx::bytes $report? cta_group::1/cta_group::2? L2::cache_hint? | m~, mt~, m~, sv:b16, \
s:u64@L2::cache_hint | v8.6 t90 | tensor
cp.async.bulk.tensor | - | $dim $scope? shared::cta global tile::gather4 mbarrier::complete_tx::bytes $report? \
cta_group::1/cta_group::2? L2::cache_hint? | m~, mt~, m~, s:u64@L2::cache_hint | v8.6 t100 | tensor
cp.async.bulk.tensor | - | $dim $scope? global shared::cta tile/im2col_no_offs/im2col_no_offs::w/tile::scatter4? \
bulk_group L2::cache_hint? | mt, m~, s:u64@L2::cache_hint | v8.0 t90 | tensor
cp.async.bulk.prefetch.tensor | - | $dim L2 global tile/tile::gather4? L2::cache_hint? | mt, s:u64@L2::cache_hint | \
v8.0 t90 | tensor
cp.async.bulk.prefetch.tensor | - | $dim L2 global im2col/im2col::w/im2col::w::128 L2::cache_hint? | \
mt, sv:b16, s:u64@L2::cache_hint | v8.0 t90 | tensor
cp.async.bulk.prefetch.tensor | - | $dim L2 global tile/tile::gather4? L2::evict_last L2::cache_hint? | \
mt, s:u64@L2::cache_hint | v9.4 on=107f | tensor
cp.async.bulk.prefetch.tensor | - | $dim L2 global im2col/im2col::w/im2col::w::128 L2::evict_last L2::cache_hint? | \
mt, sv:b16, s:u64@L2::cache_hint | v9.4 on=107f | tensor
cp.reduce.async.bulk | u32 | relaxed? cta/cluster? shared::cluster shared::cta mbarrier::complete_tx::bytes \
add/inc/dec/min/max | m, m, s:u32, m | v8.0 t90 | size16
cp.reduce.async.bulk | s32 | relaxed? cta/cluster? shared::cluster shared::cta mbarrier::complete_tx::bytes \
add/min/max | m, m, s:u32, m | v8.0 t90 | size16
cp.reduce.async.bulk | u64 | relaxed? cta/cluster? shared::cluster shared::cta mbarrier::complete_tx::bytes add | m, \
m, s:u32, m | v8.0 t90 | size16
cp.reduce.async.bulk | b32 | relaxed? cta/cluster? shared::cluster shared::cta mbarrier::complete_tx::bytes \
and/or/xor | m, m, s:u32, m | v8.0 t90 | size16
cp.reduce.async.bulk | u32 | relaxed? $scope? global shared::cta bulk_group L2::cache_hint? add/inc/dec/min/max | \
m, m, s:u32, s:u64@L2::cache_hint | v8.0 t90 | size16
cp.reduce.async.bulk | s32,u64 | relaxed? $scope? global shared::cta bulk_group L2::cache_hint? add/min/max | \
m, m, s:u32, s:u64@L2::cache_hint | v8.0 t90 | size16
cp.reduce.async.bulk | s64 | relaxed? $scope? global shared::cta bulk_group L2::cache_hint? min/max | \
m, m, s:u32, s:u64@L2::cache_hint | v8.0 t90 | size16
cp.reduce.async.bulk | f16,bf16 | relaxed? $scope? global shared::cta bulk_group L2::cache_hint? min/max | \
m, m, s:u32, s:u64@L2::cache_hint | v8.0 t90 | size16
cp.reduce.async.bulk | f16,bf16 | relaxed? $scope? global shared::cta bulk_group L2::cache_hint? add noftz | \
m, m, s:u32, s:u64@L2::cache_hint | v8.0 t90 | size16
cp.reduce.async.bulk | f32 | relaxed? $scope? global shared::cta bulk_group L2::cache_hint? add noftz | \
m, m, s:u32, s:u64@L2::cache_hint | v9.4 t90 | size16
cp.reduce.async.bulk | f32,f64 | relaxed? $scope? global shared::cta bulk_group L2::cache_hint? add | \
m, m, s:u32, s:u64@L2::cache_hint | v8.0 t90 | size16
cp.reduce.async.bulk | b32,b64 | relaxed? $scope? global shared::cta bulk_group L2::cache_hint? and/or/xor | \
m, m, s:u32, s:u64@L2::cache_hint | v8.0 t90 | size16
multimem.cp.reduce.async.bulk | u32 | relaxed? $scope? global shared::cta bulk_group add/inc/dec/min/max | m, m, \
s:u32 | v9.1 t90 | size16
multimem.cp.reduce.async.bulk | s32,u64 | relaxed? $scope? global shared::cta bulk_group add/min/max | m, m, s:u32 | \
v9.1 t90 | size16
multimem.cp.reduce.async.bulk | s64 | relaxed? $scope? global shared::cta bulk_group min/max | m, m, s:u32 | v9.1 t90 \
| size16
multimem.cp.reduce.async.bulk | f16,bf16 | relaxed? $scope? global shared::cta bulk_group min/max | m, m, s:u32 | \
v9.1 t90 | size16
multimem.cp.reduce.async.bulk | f16,bf16 | relaxed? $scope? global shared::cta bulk_group add noftz | m, m, s:u32 | \
v9.1 t90 | size16
multimem.cp.reduce.async.bulk | f32 | relaxed? $scope? global shared::cta bulk_group add noftz | m, m, s:u32 | v9.4 \
t90 | size16
multimem.cp.reduce.async.bulk | f32,f64 | relaxed? $scope? global shared::cta bulk_group add | m, m, s:u32 | v9.1 t90 \
| size16
multimem.cp.reduce.async.bulk | b32,b64 | relaxed? $scope? global shared::cta bulk_group and/or/xor | m, m, s:u32 | \
v9.1 t90 | size16
cp.reduce.async.bulk.tensor | - | $dim $scope? global shared::cta add/min/max/inc/dec/and/or/xor \
tile/im2col_no_offs/im2col_no_offs::w? bulk_group L2::cache_hint? | mt, m~, s:u64@L2::cache_hint | v8.0 t90 | tensor
mbarrier.init | b64 | layout::v0/layout::v1? shared/shared::cta? | m, s:u32 | v7.0 t80
mbarrier.check_layout | b64 | layout::v0/layout::v1 shared/shared::cta? | dp, m | v9.3 t90
mbarrier.inval | b64 | shared/shared::cta? | m | v7.0 t80
mbarrier.expect_tx | b64 | relaxed? cta/cluster? shared/shared::cta/shared::cluster? | m, s:u32 | v8.0 t90
mbarrier.complete_tx | b64 | relaxed? cta/cluster? shared/shared::cta/shared::cluster? | m, s:u32 | v8.0 t90
mbarrier.arrive | b64 | release/relaxed? cta/cluster? shared/shared::cta? | d_!, m | v7.0 t80
mbarrier.arrive | b64 | release/relaxed? cta/cluster? shared/shared::cta? | d_!, m, s:u32 | v7.8 t90
mbarrier.arrive | b64 | release/relaxed? cta/cluster? shared::cluster | k, m, s:u32? | v8.0 t90
mbarrier.arrive.expect_tx | b64 | release/relaxed? cta/cluster? shared/shared::cta? | d_!, m, s:u32 | v8.0 t90
mbarrier.arrive.expect_tx | b64 | release/relaxed? cta/cluster? shared::cluster | k, m, s:u32 | v8.0 t90
mbarrier.arrive | b64 | release? cta? noComplete shared/shared::cta? | d!, m, s:u32 | v7.0 t80
mbarrier.arrive_drop | b64 | release/relaxed? cta/cluster? shared/shared::cta? | d_!, m | v7.0 t80
mbarrier.arrive_drop | b64 | release/relaxed? cta/cluster? shared/shared::cta? | d_!, m, s:u32 | v7.8 t90
mbarrier.arrive_drop | b64 | release/relaxed? cta/cluster? shared::cluster | k, m, s:u32? | v8.0 t90
mbarrier.arrive_drop.expect_tx | b64 | release/relaxed? cta/cluster? shared/shared::cta? | d_!, m, s:u32 | v8.0 t90
mbarrier.arrive_drop.expect_tx | b64 | release/relaxed? cta/cluster? shared::cluster | k, m, s:u32 | v8.0 t90
mbarrier.arrive_drop | b64 | release? cta? noComplete shared/shared::cta? | d!, m, s:u32 | v7.0 t80
mbarrier.test_wait | b64 | phase_type::primary? acquire/relaxed? cta/cluster? shared/shared::cta? | dp, m, s:u64 | \
v7.0 t80
mbarrier.test_wait.parity | b64 | phase_type::primary/phase_type::conditional? acquire/relaxed? cta/cluster? \
shared/shared::cta? | dp, m, s:u32 | v7.1 t80 | parity
mbarrier.try_wait | b64 | phase_type::primary? acquire/relaxed? cta/cluster? shared/shared::cta? | \
dp, m, s:u64, s:u32? | v7.8 t90
mbarrier.try_wait.parity | b64 | phase_type::primary/phase_type::conditional? acquire/relaxed? cta/cluster? \
shared/shared::cta? | dp, m, s:u32, s:u32? | v7.8 t90 | parity
mbarrier.pending_count | b64 | | d:u32, s:u64 | v7.0 t80
"""
