"""Control flow, barriers, warp operations, miscellany.  Column meaning: see `stages.parse.table`."""

ROWS = """
bra | - | uni? | l |
brx.idx | - | uni? | s:U, t | v6.0 t30
call | - | uni? | |
ret | - | uni? | |
exit | - | | |
trap | - | | |
brkpt | - | | | v1.0 t11
pmevent | - | | i | v1.4 | pmevent
pmevent.mask | - | | i | v3.0 t20
nanosleep | u32 | | s:u32 | v6.2 t70
stacksave | u32,u64 | | d | v7.3 t52
stackrestore | u32,u64 | | d | v7.3 t52
alloca | u32,u64 | | d, s, i? | v7.3 t52 | power2
setmaxnreg.inc | u32,s32 | sync aligned | i | v8.0 on=90a+100f+110f+120f | maxnreg
setmaxnreg.dec | u32,s32 | sync aligned | i | v8.0 on=90a+100f+110f+120f | maxnreg
griddepcontrol | - | launch_dependents/wait | | v7.8 t90
bar | - | sync | s:U, s:U? | v1.0 | barrier
bar.arrive | - | | s:U, s:U | v2.0 t20 | barrier
bar.red | u32 | popc | d, s:U, s:U?, ps | v2.0 t20 | barrier
bar.red | pred | and/or | dp, s:U, s:U?, ps | v2.0 t20 | barrier
bar.warp | - | sync | s:U | v6.0 t30
bar.cta | - | sync | s:U, s:U? | v7.8 | barrier
bar.cta.arrive | - | | s:U, s:U | v7.8 | barrier
bar.cta.red | u32 | popc | d, s:U, s:U?, ps | v7.8 | barrier
bar.cta.red | pred | and/or | dp, s:U, s:U?, ps | v7.8 | barrier
barrier | - | sync aligned? | s:U, s:U? | v6.0 t30 | barrier
barrier.arrive | - | aligned? | s:U, s:U | v6.0 t30 | barrier
barrier.red | u32 | popc aligned? | d, s:U, s:U?, ps | v6.0 t30 | barrier
barrier.red | pred | and/or aligned? | dp, s:U, s:U?, ps | v6.0 t30 | barrier
barrier.cta | - | sync aligned? | s:U, s:U? | v7.8 t30 | barrier
barrier.cta.arrive | - | aligned? | s:U, s:U | v7.8 t30 | barrier
barrier.cta.red | u32 | popc aligned? | d, s:U, s:U?, ps | v7.8 t30 | barrier
barrier.cta.red | pred | and/or aligned? | dp, s:U, s:U?, ps | v7.8 t30 | barrier
barrier.cluster.arrive | - | release/relaxed? aligned? | | v7.8 t90
barrier.cluster.wait | - | acquire? aligned? | | v7.8 t90
vote | pred | all/any/uni | dp, ps | v1.2 t12
vote | b32 | ballot | d, ps | v2.0 t20
vote | pred | sync all/any/uni | dp, ps, s:U | v6.0 t30
vote | b32 | sync ballot | d, ps, s:U | v6.0 t30
match | b32,b64 | any sync | d:u32, s, s:U | v6.0 t70
match | b32,b64 | all sync | d:u32|p, s, s:U | v6.0 t70
activemask | b32 | | d | v6.2 t30
redux | u32,s32 | sync add/min/max | d!, s!, s!:U | v7.0 t80
redux | b32 | sync and/or/xor | d!, s!, s!:U | v7.0 t80
redux | f32 | sync min/max abs? NaN? | d!, s!, s!:U | v8.6 on=100f
shfl | b32 | up/down/bfly/idx | d|p, s, s, s | v3.0 t30
shfl | b32 | sync up/down/bfly/idx | d|p, s, s, s, s:u32 | v6.0 t30
elect | - | sync | d:u32|p, s:u32 | v8.0 t90
clusterlaunchcontrol.try_cancel.async | b128 | shared::cta? mbarrier::complete_tx::bytes multicast::cluster::all? | \
m, m | v8.6 t100
clusterlaunchcontrol.query_cancel.is_canceled | pred.b128 | | dp, s2 | v8.6 t100
clusterlaunchcontrol.query_cancel.get_first_ctaid | b32.b128 | v4 | dv4, s2 | v8.6 t100
clusterlaunchcontrol.query_cancel.get_first_ctaid::x | b32.b128 | | d, s2 | v8.6 t100
clusterlaunchcontrol.query_cancel.get_first_ctaid::y | b32.b128 | | d, s2 | v8.6 t100
clusterlaunchcontrol.query_cancel.get_first_ctaid::z | b32.b128 | | d, s2 | v8.6 t100
"""
