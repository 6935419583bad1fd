"""Moves, conversions and address conversion.  Column meaning: see `stages.parse.table`."""

ROWS = """
mov | pred,b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64 | v2/v4? | dV, xV |
mov | b16,b32,b64 | | dpack, x |
mov | b16,b32,b64 | | d, spack |
mov | b128 | | d, x | v8.3 t70
mov | b128 | | dpack, x | v8.3 t70
mov | b128 | | d, spack | v8.3 t70
cvt | u8.u8 s8.s8 u16.u8 u16.u16 s16.u8 s16.s8 s16.s16 u32.u8 u32.u16 u32.u32 s32.u8 s32.s8 s32.u16 s32.s16 s32.s32 \
u64.u8 u64.u16 u64.u32 u64.u64 s64.u8 s64.s8 s64.u16 s64.s16 s64.u32 s64.s32 s64.s64 | | d~, x2~ |
cvt | u8.s8 u8.u16 u8.s16 u8.u32 u8.s32 u8.u64 u8.s64 s8.u8 s8.u16 s8.s16 s8.u32 s8.s32 s8.u64 s8.s64 u16.s8 u16.s16 \
u16.u32 u16.s32 u16.u64 u16.s64 s16.u16 s16.u32 s16.s32 s16.u64 s16.s64 u32.s8 u32.s16 u32.s32 u32.u64 u32.s64 s32.u32 \
s32.u64 s32.s64 u64.s8 u64.s16 u64.s32 u64.s64 s64.u64 | sat? | d~, x2~ |
cvt | u8,s8,u16,s16,u32,s32,u64,s64.f16,f64 | rni/rzi/rmi/rpi sat? | d~, x2~ |
cvt | u8,s8,u16,s16,u32,s32,u64,s64.f32 | rni/rzi/rmi/rpi ftz? sat? | d~, x2~ |
cvt | u16,s16,u32,s32,u64,s64.bf16 | rni/rzi/rmi/rpi | d, s2 | v7.8 t90
cvt | f16,f64.u8,s8,u16,s16,u32,s32,u64,s64 | rn/rz/rm/rp sat? | d~, s2~ |
cvt | f32.u8,s8,u16,s16,u32,s32,u64,s64 | rn/rz/rm/rp ftz? sat? | d~, s2~ |
cvt | bf16.u16,s16,u32,s32,u64,s64 | rn/rz/rm/rp | d, s2 | v7.8 t90
cvt | f16.f64 | rn/rz/rm/rp sat? | d~, x2~ |
cvt | bf16.f64 | rn/rz/rm/rp | d, x2~ | v7.8 t90
cvt | f16.f16 f64.f64 | rni/rzi/rmi/rpi? sat? | d~, x2~ |
cvt | f32.f32 | rni/rzi/rmi/rpi? ftz? sat? | d~, x2~ |
cvt | bf16.bf16 | rni/rzi/rmi/rpi? | d, s2 | v7.8 t90
cvt | f16.bf16 f64.bf16 | rn/rz/rm/rp? | d~, s2 | v7.8 t90
cvt | bf16.f16 | rn/rz/rm/rp? | d, x2~ | v7.8 t90
cvt | f32.f64 | rn/rz/rm/rp ftz? sat? | d~, x2~ |
cvt | f64.f16 | sat? | d~, x2~ |
cvt | f32.f16 f64.f32 | ftz? sat? | d~, x2~ |
cvt | f32.bf16 | | d~, s2 | v7.1 t80
cvt | f32.bf16 | rn/rz/rm/rp? ftz | d~, s2 | v7.8 t90
cvt | f32.bf16 | rn/rz/rm/rp | d~, s2 | v7.1 t80
cvt | f16.f32 | rn/rz/rm/rp ftz? sat? | d~, x2~ |
cvt | f16.f32 | rn/rz relu | d~, x2~ | v7.0 t80
cvt | f16.f32 | rn/rz satfinite | d~, x2~ | v8.1 t70
cvt | f16.f32 | rn/rz relu satfinite | d~, x2~ | v8.1 t80
cvt | bf16.f32 | rn/rz/rm/rp ftz? | d, x2 | v7.0 t80
cvt | bf16.f32 | rn/rz relu | d, x2 | v7.0 t80
cvt | bf16.f32 | rn/rz relu? satfinite | d, x2 | v8.1 t80
cvt | f16x2.f32 | rn/rz relu? | d~, s2~, s2~ | v7.0 t80
cvt | f16x2.f32 | rn/rz relu? satfinite | d~, s2~, s2~ | v8.1 t80
cvt | f16x2.f32 bf16x2.f32 | rs relu? satfinite? | d~, s2~, s2~, s:B32 | v8.7 on=100a+103a+107a
cvt | tf32.f32 | rna | d:B32, s2 | v7.0 t80
cvt | tf32.f32 | rna satfinite | d:B32, s2 | v8.1 t80
cvt | tf32.f32 | rn/rz relu? | d:B32, s2 | v7.8 t90
cvt | tf32.f32 | rn/rz relu? satfinite | d:B32, s2 | v8.6 t100
cvt | e4m3x2,e5m2x2.f32 | rn satfinite relu? | d:B16, s2, s2 | v7.8 t89
cvt | e4m3x2,e5m2x2.f16x2 | rn satfinite relu? | d:B16, s:f16x2 | v7.8 t89
cvt | f16x2.e4m3x2,e5m2x2 | rn relu? | d:f16x2, s:B16 | v7.8 t89
cvt | e4m3x4,e5m2x4,e2m3x4,e3m2x4.f32 | rs relu? satfinite | d:B32, sv4:f32, s:B32 | v8.7 on=100a+103a+107a
cvt | e2m1x4.f32 | rs relu? satfinite | d:B16, sv4:f32, s:B32 | v8.7 on=100a+103a+107a
cvt | e2m3x2,e3m2x2.f32 | rn satfinite relu? | d:B16, s2, s2 | v8.6 on=100f+110f+120f
cvt | e4m3x2,e5m2x2.bf16x2 | rn satfinite relu? | d:B16, s:f16x2 | v9.1 on=100f+110f+120f
cvt | e2m3x2,e3m2x2.f16x2,bf16x2 | rn satfinite relu? | d:B16, s:f16x2 | v9.1 on=100f+110f+120f
cvt | e2m1x2.bf16x2 | rn satfinite relu? | d:b8, s:f16x2 | v9.1 on=100f+110f+120f
cvt | bf16x2.e4m3x2,e5m2x2,e2m3x2,e3m2x2 | rn satfinite? relu? | d:f16x2, s:B16 | v9.2 on=100f+110f+120f
cvt | bf16x2.e4m3x2,e5m2x2,e2m3x2,e3m2x2 | rn satfinite? relu? scaled::n2::ue8m0 | d:f16x2, s:B16, s:B16 | \
v9.2 on=100f+110f+120f
cvt | bf16x2.e2m1x2 | rn satfinite? relu? | d:f16x2, s:b8 | v9.2 on=100f+110f+120f
cvt | bf16x2.e2m1x2 | rn satfinite? relu? scaled::n2::ue8m0 | d:f16x2, s:b8, s:B16 | v9.2 on=100f+110f+120f
cvt | s2f6x2.f32 | rn satfinite relu? | d:B16, s2, s2 | v9.1 on=100a+103a+107a+110a+120a+121a
cvt | s2f6x2.f32 | rn satfinite relu? scaled::n2::ue8m0 | d:B16, s2, s2, s:B16 | v9.1 on=100a+103a+107a+110a+120a+121a
cvt | s2f6x2.bf16x2 | rn satfinite relu? | d:B16, s:f16x2 | v9.1 on=100a+103a+107a+110a+120a+121a
cvt | s2f6x2.bf16x2 | rn satfinite relu? scaled::n2::ue8m0 | d:B16, s:f16x2, s:B16 | \
v9.1 on=100a+103a+107a+110a+120a+121a
cvt | bf16x2.s2f6x2 | rn satfinite? relu? | d:f16x2, s:B16 | v9.1 on=100a+103a+107a+110a+120a+121a
cvt | bf16x2.s2f6x2 | rn satfinite? relu? scaled::n2::ue8m0 | d:f16x2, s:B16, s:B16 | \
v9.1 on=100a+103a+107a+110a+120a+121a
cvt | e2m1x2.f32 | rn satfinite relu? | d:b8, s2, s2 | v8.6 on=100f+110f+120f
cvt | f16x2.e2m3x2,e3m2x2 | rn relu? | d:f16x2, s:B16 | v8.6 on=100f+110f+120f
cvt | e2m1x2.f16x2 | rn satfinite relu? | d:b8, s:f16x2 | v8.6 on=100f+110f+120f
cvt | f16x2.e2m1x2 | rn relu? | d:f16x2, s:b8 | v8.6 on=100f+110f+120f
cvt | ue8m0x2.f32 | rz/rp satfinite? | d:B16, s2, s2 | v8.6 on=100f+110f+120f
cvt | ue8m0x2.bf16x2 | rz/rp satfinite? | d:B16, s:f16x2 | v8.6 on=100f+110f+120f
cvt | bf16x2.ue8m0x2 | rn | d:f16x2, s:B16 | v8.6 on=100f+110f+120f
cvt | e4m3x2,e5m2x2,e2m3x2,e3m2x2.f32 | rz satfinite relu? pzo? | d:B16, s2, s2 | v9.4 on=107f
cvt | e4m3x2,e5m2x2,e2m3x2,e3m2x2.f32 | rn satfinite relu? pzo | d:B16, s2, s2 | v9.4 on=107f
cvt | e4m3x2,e5m2x2,e2m3x2,e3m2x2.f32 | rn/rz satfinite relu? pzo? scaled::n1::ue8m0 | d:B16, s2, s2, s:b8 | \
v9.4 on=107f
cvt | e2m1x2.f32 | rz satfinite relu? pzo? | d:b8, s2, s2 | v9.4 on=107f
cvt | e2m1x2.f32 | rn satfinite relu? pzo | d:b8, s2, s2 | v9.4 on=107f
cvt | e2m1x2.f32 | rn/rz satfinite relu? pzo? scaled::n1::ue8m0 | d:b8, s2, s2, s:b8 | v9.4 on=107f
cvt | ue5m3x2.f32 | rn/rz/rp satfinite? | d:B16, s2, s2 | v9.4 on=107f
cvt | ue5m3x2.f32 | rn/rz satfinite? scaled::n1::ue8m0 | d:B16, s2, s2, s:b8 | v9.4 on=107f
cvt | e4m3x2,e5m2x2,e2m3x2,e3m2x2.f16x2,bf16x2 | rz satfinite relu? pzo? | d:B16, s:f16x2 | v9.4 on=107f
cvt | e4m3x2,e5m2x2,e2m3x2,e3m2x2.f16x2,bf16x2 | rn satfinite relu? pzo | d:B16, s:f16x2 | v9.4 on=107f
cvt | e4m3x2,e5m2x2,e2m3x2,e3m2x2.f16x2,bf16x2 | rn/rz satfinite relu? pzo? scaled::n1::ue8m0 | \
d:B16, s:f16x2, s:b8 | v9.4 on=107f
cvt | e2m1x2.f16x2,bf16x2 | rz satfinite relu? pzo? | d:b8, s:f16x2 | v9.4 on=107f
cvt | e2m1x2.f16x2,bf16x2 | rn satfinite relu? pzo | d:b8, s:f16x2 | v9.4 on=107f
cvt | e2m1x2.f16x2,bf16x2 | rn/rz satfinite relu? pzo? scaled::n1::ue8m0 | d:b8, s:f16x2, s:b8 | v9.4 on=107f
cvt | ue5m3x2.f16x2,bf16x2 | rn/rz/rp satfinite? | d:B16, s:f16x2 | v9.4 on=107f
cvt | ue5m3x2.f16x2,bf16x2 | rn/rz satfinite? scaled::n1::ue8m0 | d:B16, s:f16x2, s:b8 | v9.4 on=107f
cvt | f16x2.ue5m3x2 | rn | d:f16x2, s:B16 | v9.4 on=107f
cvt | bf16x2.ue5m3x2 | rn satfinite? | d:f16x2, s:B16 | v9.4 on=107f
cvt | bf16x2.ue5m3x2 | rn satfinite? scaled::n2::ue8m0 | d:f16x2, s:B16, s:B16 | v9.4 on=107f
cvt | f16.f32 | rn/rz relu? satfinite? pzo | d~, x2~ | v9.4 on=107f
cvt | bf16.f32 | rn/rz relu? satfinite? pzo | d, x2 | v9.4 on=107f
cvt | f16x2.f32 bf16x2.f32 | rn/rz relu? satfinite? pzo | d~, s2~, s2~ | v9.4 on=107f
cvt | tf32.f32 | rn/rz relu? satfinite? pzo | d:B32, s2 | v9.4 on=107f
cvt | u8,s8.bf16 | rni/rzi/rmi/rpi | d, s2 | v7.8 t90
cvt | bf16.u8,s8 | rn/rz/rm/rp | d, s2 | v7.8 t90
cvt | bf16x2.f32 | rn/rz relu? | d, s2, s2 | v7.0 t80
cvt | bf16x2.f32 | rn/rz relu? satfinite | d, s2, s2 | v8.1 t80
cvt.pack | u16,s16.s32 | sat | d~:u32, s~:u32, s~:u32 | v6.5 t72
cvt.pack | u8,s8.s32.b32 | sat | d~:u32, s~:u32, s~:u32, s~:b32 | v6.5 t72
cvt.pack | u4,s4,u2,s2.s32.b32 | sat | d~:u32, s~:u32, s~:u32, s~:b32 | v6.5 t75
cvta | u32,u64 | const/global/local/shared/shared::cta/shared::cluster/param/param::entry | d, x | v2.0 t20
cvta.to | u32,u64 | const/global/local/shared/shared::cta/shared::cluster/param/param::entry | d, s | v2.0 t20
isspacep | - | const/global/local/shared/shared::cta/shared::cluster/param/param::entry | dp, s:S | v2.0 t20
mapa | u32,u64 | shared::cluster? | d, x, s:u32 | v7.8 t90
getctarank | u32,u64 | shared::cluster? | d:u32, x | v7.8 t90
istypep | texref,samplerref,surfref | | dp, s:u64 | v4.0 t30
"""
