"""Integer and floating-point arithmetic.  Column meaning: see `stages.parse.table`."""

ROWS = """
add | u16,s16,u64,s64,u32 | | d, s, s |
add | s32 | sat? | d, s, s |
add | u32,s32 | cc | d, s, s | v1.2
add | u64,s64 | cc | d, s, s | v4.3
add | f32 | rn/rz/rm/rp? ftz? sat? | d, s, s |
add | f64 | rn/rz/rm/rp? | d, s, s |
add | f16,f16x2 | rn? ftz? sat? | d, s, s | v4.2 t53
add | bf16,bf16x2 | rn? | d, s, s | v7.8 t90
add | f32x2 | rn/rz/rm/rp? ftz? | d, s, s | v8.6 t100
add | f32.f16 f32.bf16 | rn/rz/rm/rp? sat? | d, s:M, s1 | v8.6 t100
add | u16x2,s16x2 | | d, s, s | v8.0 t90
add | u8x4,s8x4 | sat? | d, s, s | v9.2 on=107f+120f
add | u16x2,s16x2 | sat | d, s, s | v9.2 on=107f+120f
add | u32 | sat | d, s, s | v9.2 on=107f+120f
add | f32x2.f16x2,bf16x2.f32x2 | rn/rz/rm/rp? | d, s2, s3 | v9.4 on=107f
add | e4m3x4,e5m2x4.e4m3x4,e5m2x4,e2m3x4,e3m2x4,e2m1x4,e2m1p4x4,ue8m0x4 | rn? satfinite? | d:B32, s2, s1 | \
v9.4 on=100a+103a
sub | u16,s16,u64,s64,u32 | | d, s, s |
sub | s32 | sat? | d, s, s |
sub | u32,s32 | cc | d, s, s | v1.2
sub | u64,s64 | cc | d, s, s | v4.3
sub | f32 | rn/rz/rm/rp? ftz? sat? | d, s, s |
sub | f64 | rn/rz/rm/rp? | d, s, s |
sub | f16,f16x2 | rn? ftz? sat? | d, s, s | v4.2 t53
sub | bf16,bf16x2 | rn? | d, s, s | v7.8 t90
sub | f32x2 | rn/rz/rm/rp? ftz? | d, s, s | v8.6 t100
sub | f32.f16 f32.bf16 | rn/rz/rm/rp? sat? | d, s:M, s1 | v8.6 t100
sub | u8x4,s8x4 | sat? | d, s, s | v9.2 on=107f+120f
sub | f32x2.f16x2,bf16x2.f32x2 | rn/rz/rm/rp? | d, s2, s3 | v9.4 on=107f
sub | e4m3x4,e5m2x4.e4m3x4,e5m2x4,e2m3x4,e3m2x4,e2m1x4,e2m1p4x4,ue8m0x4 | rn? satfinite? | d:B32, s2, s1 | \
v9.4 on=100a+103a
addc | u32,s32 | cc? | d, s, s | v1.2
addc | u64,s64 | cc? | d, s, s | v1.2
subc | u32,s32 | cc? | d, s, s | v1.2
subc | u64,s64 | cc? | d, s, s | v1.2
mul.lo | u16,s16,u32,s32,u64,s64 | | d, s, s |
mul.hi | u16,s16,u32,s32,u64,s64 | | d, s, s |
mul.wide | u16,s16,u32,s32 | | d:W, s, s |
mul | f32 | rn/rz/rm/rp? ftz? sat? | d, s, s |
mul | f64 | rn/rz/rm/rp? | d, s, s |
mul | f16,f16x2 | rn? ftz? sat? | d, s, s | v4.2 t53
mul | bf16,bf16x2 | rn? | d, s, s | v7.8 t90
mul | f32x2 | rn/rz/rm/rp? ftz? | d, s, s | v8.6 t100
mul | e4m3x4,e5m2x4.e4m3x4,e5m2x4,e2m3x4,e3m2x4,e2m1x4,e2m1p4x4,ue8m0x4.e4m3x4,e5m2x4,e2m3x4,e3m2x4,e2m1x4,\
e2m1p4x4,ue8m0x4 | rn? satfinite? | d:B32, s2, s3 | v9.4 on=100a+103a
mad.lo | u16,s16,u32,s32,u64,s64 | | d, s, s, s |
mad.lo | u32,s32 | cc | d, s, s, s | v3.0 t20
mad.lo | u64,s64 | cc | d, s, s, s | v4.3 t20
mad.hi | u16,s16,u32,u64,s64 | | d, s, s, s |
mad.hi | s32 | sat? | d, s, s, s |
mad.hi | u32,s32 | cc | d, s, s, s | v3.0 t20
mad.hi | u64,s64 | cc | d, s, s, s | v4.3 t20
clmad.lo | u64 | | d, s:u64, s:u64, s:u64 | v9.3 t80
clmad.hi | u64 | | d, s:u64, s:u64, s:u64 | v9.3 t80
mad.wide | u16,s16,u32,s32 | | d:W, s, s, s:W |
mad | f32 | ftz? sat? | d, s, s, s | u20
mad | f64 | | d, s, s, s | b1.4
div | f32 | ftz? | d, s, s | b1.4
div | f64 | | d, s, s | b1.4
rcp | f32 | ftz? | d, s | b1.4
sqrt | f32 | ftz? | d, s | b1.4
sqrt | f64 | | d, s | b1.4
rsqrt | f32 | ftz? | d, s | b1.4
rsqrt | f64 | | d, s | b1.4
sin | f32 | ftz? | d, s | b1.4
cos | f32 | ftz? | d, s | b1.4
lg2 | f32 | ftz? | d, s | b1.4
ex2 | f32 | ftz? | d, s | b1.4
mad | f32 | rn/rz/rm/rp ftz? sat? | d, s, s, s |
mad | f64 | rn/rz/rm/rp | d, s, s, s |
madc.lo | u32,s32 | cc? | d, s, s, s | v3.0 t20
madc.lo | u64,s64 | cc? | d, s, s, s | v3.0 t20
madc.hi | u32,s32 | cc? | d, s, s, s | v3.0 t20
madc.hi | u64,s64 | cc? | d, s, s, s | v3.0 t20
mul24.lo | u32,s32 | | d, s, s |
mul24.hi | u32,s32 | | d, s, s |
mad24.lo | u32,s32 | | d, s, s, s |
mad24.hi | u32 | | d, s, s, s |
mad24.hi | s32 | sat? | d, s, s, s |
sad | u16,s16,u32,s32,u64,s64 | | d, s, s, s |
div | u16,s16,u32,s32,u64,s64 | | d, s, s |
div | f32 | approx/rn/rz/rm/rp ftz? | d, s, s |
div.full | f32 | ftz? | d, s, s | v1.4
div | f64 | rn/rz/rm/rp | d, s, s |
rem | u16,s16,u32,s32,u64,s64 | | d, s, s |
abs | s16,s32,s64 | | d, s |
abs | f32 | ftz? | d, s |
abs | f64 | | d, s |
abs | f16,f16x2 | ftz? | d, s | v6.5 t53
abs | bf16,bf16x2 | | d, s | v7.0 t80
neg | s16,s32,s64 | | d, s |
neg | s8x4 | | d, s | v9.2 on=107f+120f
neg | f32 | ftz? | d, s |
neg | f64 | | d, s |
neg | f16,f16x2 | ftz? | d, s | v6.0 t53
neg | bf16,bf16x2 | | d, s | v7.0 t80
min | u16,s16,u32,u64,s64 | | d, s, s |
min | s32 | relu? | d, s, s | ; relu v8.0 t90
min | u16x2 | | d, s, s | v8.0 t90
min | s16x2 | relu? | d, s, s | v8.0 t90
min | u8x4 | | d, s, s | v9.2 on=107f+120f
min | s8x4 | relu? | d, s, s | v9.2 on=107f+120f
min | f32 | ftz? NaN? | d, s, s |
min | f32 | ftz? NaN? xorsign abs | d, s, s | v7.2 t86
min | f32 | ftz? NaN? abs? | d, s, s, s | v8.8 t100
min | f64 | | d, s, s |
min | f16,f16x2 | ftz? NaN? | d, s, s | v7.0 t80
min | f16,f16x2 | ftz? NaN? xorsign abs | d, s, s | v7.2 t86
min | bf16,bf16x2 | NaN? | d, s, s | v7.0 t80
min | bf16,bf16x2 | NaN? xorsign abs | d, s, s | v7.2 t86
max | u16,s16,u32,u64,s64 | | d, s, s |
max | s32 | relu? | d, s, s | ; relu v8.0 t90
max | u16x2 | | d, s, s | v8.0 t90
max | s16x2 | relu? | d, s, s | v8.0 t90
max | u8x4 | | d, s, s | v9.2 on=107f+120f
max | s8x4 | relu? | d, s, s | v9.2 on=107f+120f
max | f32 | ftz? NaN? | d, s, s |
max | f32 | ftz? NaN? xorsign abs | d, s, s | v7.2 t86
max | f32 | ftz? NaN? abs? | d, s, s, s | v8.8 t100
max | f64 | | d, s, s |
max | f16,f16x2 | ftz? NaN? | d, s, s | v7.0 t80
max | f16,f16x2 | ftz? NaN? xorsign abs | d, s, s | v7.2 t86
max | bf16,bf16x2 | NaN? | d, s, s | v7.0 t80
max | bf16,bf16x2 | NaN? xorsign abs | d, s, s | v7.2 t86
popc | b32,b64 | | d:U, s | v2.0 t20
clz | b32,b64 | | d:U, s | v2.0 t20
bfind | u32,s32,u64,s64 | shiftamt? | d:U, s | v2.0 t20
fns | b32 | | d, s, s, s | v6.0 t30
brev | b32,b64 | | d, s | v2.0 t20
bfe | u32,s32,u64,s64 | | d, s, s:U, s:U | v2.0 t20 | bitfield
bfi | b32,b64 | | d, s, s, s:U, s:U | v2.0 t20
szext | u32,s32 | clamp/wrap | d, s, s:U | v7.6 t70
bmsk | b32 | clamp/wrap | d:U, s:U, s:U | v7.6 t70
dp4a | u32,s32.u32,s32 | | d:u32, s1, s2, s:u32 | v5.0 t61
dp2a.lo | u32,s32.u32,s32 | | d:u32, s1, s2, s:u32 | v5.0 t61
dp2a.hi | u32,s32.u32,s32 | | d:u32, s1, s2, s:u32 | v5.0 t61
fma | f32 | rn/rz/rm/rp ftz? sat? | d, s, s, s | v2.0 t20
fma | f64 | rn/rz/rm/rp | d, s, s, s | v1.4
fma | f16,f16x2 | rn ftz? sat? | d, s, s, s | v4.2 t53
fma | f16,f16x2 | rn ftz? relu | d, s, s, s | v7.0 t80
fma | f16,f16x2,bf16,bf16x2 | rn oob relu? | d, s, s, s | v8.1 t90
fma | bf16,bf16x2 | rn relu? | d, s, s, s | v7.0 t80
fma | f32x2 | rn/rz/rm/rp ftz? | d, s, s, s | v8.6 t100
fma | f32x2.f16x2,bf16x2.f32x2.f32x2 | rn/rz/rm/rp | d, s2, s3, s4 | v9.4 on=107f
fma | e4m3x4,e5m2x4.e4m3x4,e5m2x4,e2m3x4,e3m2x4,e2m1x4,e2m1p4x4,ue8m0x4.e4m3x4,e5m2x4,e2m3x4,e3m2x4,e2m1x4,\
e2m1p4x4,ue8m0x4 | rn? satfinite? | d:B32, s2, s3, s1 | v9.4 on=100a+103a
fma | f32.f16 f32.bf16 | rn/rz/rm/rp sat? | d, s:M, s:M, s1 | v8.6 t100
rcp | f32 | approx/rn/rz/rm/rp ftz? | d, s |
rcp | f64 | rn/rz/rm/rp | d, s |
rcp | f64 | approx ftz | d, s | v2.1 t20
sqrt | f32 | approx/rn/rz/rm/rp ftz? | d, s |
sqrt | f64 | rn/rz/rm/rp | d, s |
rsqrt | f32 | approx ftz? | d, s |
rsqrt | f64 | approx | d, s |
rsqrt | f64 | approx ftz | d, s | v4.0
sin | f32 | approx ftz? | d, s |
cos | f32 | approx ftz? | d, s |
sin | f32 | approx ftz 2pi | d, s | v9.5
cos | f32 | approx ftz 2pi | d, s | v9.5
lg2 | f32 | approx ftz? | d, s |
ex2 | f32 | approx ftz? | d, s |
ex2 | f16,f16x2 | approx | d, s | v7.0 t75
ex2 | bf16,bf16x2 | approx ftz | d, s | v7.8 t90
tanh | f32 | approx | d, s | v7.0 t75
tanh | f16,f16x2 | approx | d, s | v7.0 t75
tanh | bf16,bf16x2 | approx | d, s | v7.8 t90
fma | bf16,bf16x2 | rz/rm/rp oob? relu? | d, s, s, s | v7.0 t80 ; oob v8.1 t90
testp | f32,f64 | finite/infinite/number/notanumber/normal/subnormal? | dp, s | v2.0 t20
copysign | f32,f64 | | d, s, s | v2.0 t20
"""
