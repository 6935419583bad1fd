"""Comparison, selection, logic, shifts.  Column meaning: see `stages.parse.table`."""

ROWS = """
setp | u16,u32,u64 | eq/ne/lt/le/gt/ge/lo/ls/hi/hs and/or/xor? | dpp, s, s, ps@and/or/xor |
setp | s16,s32,s64 | eq/ne/lt/le/gt/ge and/or/xor? | dpp, s, s, ps@and/or/xor |
setp | b16,b32,b64 | eq/ne and/or/xor? | dpp, s, s, ps@and/or/xor |
setp | f32 | eq/ne/lt/le/gt/ge/equ/neu/ltu/leu/gtu/geu/num/nan and/or/xor? ftz? | dpp, s, s, ps@and/or/xor |
setp | f64 | eq/ne/lt/le/gt/ge/equ/neu/ltu/leu/gtu/geu/num/nan and/or/xor? | dpp, s, s, ps@and/or/xor |
setp | f16 | eq/ne/lt/le/gt/ge/equ/neu/ltu/leu/gtu/geu/num/nan and/or/xor? ftz? | dpp, s, s, ps@and/or/xor | v4.2 t53
setp | f16x2 | eq/ne/lt/le/gt/ge/equ/neu/ltu/leu/gtu/geu/num/nan and/or/xor? ftz? | dpp, s, s, ps@and/or/xor | v4.2 t53
setp | bf16 | eq/ne/lt/le/gt/ge/equ/neu/ltu/leu/gtu/geu/num/nan and/or/xor? | dpp, s, s, ps@and/or/xor | v7.8 t90
setp | bf16x2 | eq/ne/lt/le/gt/ge/equ/neu/ltu/leu/gtu/geu/num/nan and/or/xor? | dpp, s, s, ps@and/or/xor | v7.8 t90
set | u32,s32,f32.u16,u32,u64 | eq/ne/lt/le/gt/ge/lo/ls/hi/hs and/or/xor? | d, s2, s2, ps@and/or/xor |
set | u8x4,u16x2 | eq/ne/lt/le/gt/ge/lo/ls/hi/hs | d, s, s | v9.4 on=107f
set | s8x4,s16x2 | eq/ne/lt/le/gt/ge | d, s, s | v9.4 on=107f
set | u32,s32,f32.s16,s32,s64 | eq/ne/lt/le/gt/ge and/or/xor? | d, s2, s2, ps@and/or/xor |
set | u32,s32,f32.b16,b32,b64 | eq/ne and/or/xor? | d, s2, s2, ps@and/or/xor |
set | u32,s32,f32.f32 | eq/ne/lt/le/gt/ge/equ/neu/ltu/leu/gtu/geu/num/nan and/or/xor? ftz? | d, s2, s2, ps@and/or/xor |
set | u32,s32,f32.f64 | eq/ne/lt/le/gt/ge/equ/neu/ltu/leu/gtu/geu/num/nan and/or/xor? | d, s2, s2, ps@and/or/xor |
set | f16.u16,u32,u64 | eq/ne/lt/le/gt/ge/lo/ls/hi/hs and/or/xor? | d, s2, s2, ps@and/or/xor | v4.2 t53
set | f16.s16,s32,s64 | eq/ne/lt/le/gt/ge and/or/xor? | d, s2, s2, ps@and/or/xor | v4.2 t53
set | f16.b16,b32,b64 | eq/ne and/or/xor? | d, s2, s2, ps@and/or/xor | v4.2 t53
set | f16.f16 f16.f32 | eq/ne/lt/le/gt/ge/equ/neu/ltu/leu/gtu/geu/num/nan and/or/xor? ftz? | \
d, s2, s2, ps@and/or/xor | v4.2 t53
set | f16.f64 | eq/ne/lt/le/gt/ge/equ/neu/ltu/leu/gtu/geu/num/nan and/or/xor? | d, s2, s2, ps@and/or/xor | v4.2 t53
set | u16,s16,u32,s32.f16 | eq/ne/lt/le/gt/ge/equ/neu/ltu/leu/gtu/geu/num/nan and/or/xor? ftz? | \
d, s2, s2, ps@and/or/xor | v6.5 t53
set | u16,s16,u32,s32.bf16 | eq/ne/lt/le/gt/ge/equ/neu/ltu/leu/gtu/geu/num/nan and/or/xor? | \
d, s2, s2, ps@and/or/xor | v7.8 t90
set | bf16.bf16 | eq/ne/lt/le/gt/ge/equ/neu/ltu/leu/gtu/geu/num/nan and/or/xor? | d, s2, s2, ps@and/or/xor | v7.8 t90
set | f16x2.f16x2 u32.f16x2 s32.f16x2 | eq/ne/lt/le/gt/ge/equ/neu/ltu/leu/gtu/geu/num/nan and/or/xor? ftz? | \
d, s2, s2, ps@and/or/xor | v4.2 t53
set | bf16x2.bf16x2 u32.bf16x2 s32.bf16x2 | eq/ne/lt/le/gt/ge/equ/neu/ltu/leu/gtu/geu/num/nan and/or/xor? | \
d, s2, s2, ps@and/or/xor | v7.8 t90
selp | b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64 | | d, s, s, ps |
slct | b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64.s32 | | d, s, s, s2 |
slct | b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64.f32 | ftz? | d, s, s, s2 |
and | pred,b16,b32,b64 | | d, s, s |
or | pred,b16,b32,b64 | | d, s, s |
xor | pred,b16,b32,b64 | | d, s, s |
not | pred,b16,b32,b64 | | d, s |
cnot | b16,b32,b64 | | d, s |
lop3 | b32 | | d, s, s, s, i | v4.3 t50 | lut
lop3 | b32 | and/or | d|p, s, s, s, i, ps | v8.2 t70 | lut
shf.l | b32 | clamp/wrap | d, s, s, s:U | v3.1 t32
shf.r | b32 | clamp/wrap | d, s, s, s:U | v3.1 t32
shl | b16,b32,b64 | | d, s, s:U |
shr | b16,b32,b64,u16,u32,u64,s16,s32,s64 | | d, s, s:U |
prmt | b32 | T f4e/b4e/rc8/ecl/ecr/rc16? | d, s, s, s | v2.0 t20
"""
