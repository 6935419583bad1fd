"""The instructions of random programs: one template per instruction (or a few that belong together).

``{d*}`` is a destination, ``{s*}`` a register or a literal, ``{r*}`` a register. The following letter names a kind of
register: w 32 bits, l 64, h 16, p predicate, f binary32, d binary64, e binary16, b bfloat16, v two binary16 in 32 bits,
y two bfloat16. ``{c}`` compares integers, ``{fc}`` floats; ``{n}`` is an amount of any size, ``{m}`` a field's position
or length below 256, ``{o}`` an odd divisor, ``{=0}`` the first destination again, ``{lut}`` a table of LOP3, ``{bool}``
an operation on predicates, ``{rnd}`` a rounding, ``{!}`` nothing or a negation. The prefix ``80:`` names the first SM.

Everything here is defined for all operands: no division by zero, no approximation, nothing that shows which NaN an
operation gave (:mod:`programs` cleans floats before it uses their bits).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: kind -> type of its registers, prefix of their names.
KINDS: Final = {
    "w": ("b32", "%w"), "l": ("b64", "%l"), "h": ("b16", "%h"), "p": ("pred", "%p"), "f": ("f32", "%f"),
    "d": ("f64", "%d"),
    "e": ("b16", "%e"), "b": ("b16", "%b"), "v": ("b32", "%v"), "y": ("b32", "%y"), "u": ("b32", "%u"),
    "q": ("pred", "%q"),
}  # fmt: skip

INTEGER: Final = """
add.s32 {dw},{sw},{sw} | sub.s32 {dw},{sw},{sw} | add.u64 {dl},{sl},{sl} | sub.s64 {dl},{sl},{sl} | \
add.sat.s32 {dw},{sw},{sw} | sub.sat.s32 {dw},{sw},{sw}
mul.lo.s32 {dw},{sw},{sw} | mul.hi.s32 {dw},{sw},{sw} | mul.hi.u32 {dw},{sw},{sw} | mul.wide.s32 {dl},{sw},{sw} | \
mul.wide.u32 {dl},{sw},{sw}
mul.lo.s64 {dl},{sl},{sl} | mul.hi.s64 {dl},{sl},{sl} | mul.hi.u64 {dl},{sl},{sl} | mad.lo.s32 {dw},{sw},{sw},{sw} | \
mad.wide.s32 {dl},{sw},{sw},{sl}
mad.hi.u32 {dw},{sw},{sw},{sw} | mad.lo.u64 {dl},{sl},{sl},{sl} | mad.wide.u16 {dw},{sh},{sh},{sw} | \
mul.wide.s16 {dw},{sh},{sh} | mul.lo.u16 {dh},{sh},{sh}
mul24.lo.s32 {dw},{sw},{sw} | mul24.hi.u32 {dw},{sw},{sw} | mul24.hi.s32 {dw},{sw},{sw} | mul.hi.s16 {dh},{sh},{sh} | \
mad.lo.s16 {dh},{sh},{sh},{sh}
and.b32 {dw},{sw},{sw} | or.b32 {dw},{sw},{sw} | xor.b64 {dl},{sl},{sl} | not.b32 {dw},{sw} | cnot.b32 {dw},{sw} | \
and.b64 {dl},{sl},{sl} | not.b64 {dl},{sl}
xor.b32 {dw},{sw},{sw} | or.b64 {dl},{sl},{sl} | and.b16 {dh},{sh},{sh} | or.b16 {dh},{sh},{sh} | \
xor.b16 {dh},{sh},{sh} | not.b16 {dh},{sh} | cnot.b16 {dh},{sh} | cnot.b64 {dl},{sl}
shl.b32 {dw},{sw},{n} | shr.u32 {dw},{sw},{n} | shr.s32 {dw},{sw},{n} | shl.b64 {dl},{sl},{n} | shr.u64 {dl},{sl},{n} \
| shr.s64 {dl},{sl},{n}
shl.b16 {dh},{sh},{n} | shr.u16 {dh},{sh},{n} | shr.s16 {dh},{sh},{n}
shf.l.wrap.b32 {dw},{sw},{sw},{n} | shf.r.wrap.b32 {dw},{sw},{sw},{n} | shf.l.clamp.b32 {dw},{sw},{sw},{n} | \
shf.r.clamp.b32 {dw},{sw},{sw},{n}
bfe.u32 {dw},{sw},{m},{m} | bfe.s32 {dw},{sw},{m},{m} | bfe.u64 {dl},{sl},{m},{m} | bfe.s64 {dl},{sl},{m},{m}
bfi.b32 {dw},{sw},{sw},{m},{m} | bfi.b64 {dl},{sl},{sl},{m},{m}
popc.b32 {dw},{sw} | popc.b64 {dw},{sl} | clz.b32 {dw},{sw} | clz.b64 {dw},{sl} | brev.b32 {dw},{sw} | \
brev.b64 {dl},{sl}
bfind.u32 {dw},{sw} | bfind.s32 {dw},{sw} | bfind.u64 {dw},{sl} | bfind.s64 {dw},{sl} | bfind.shiftamt.s32 {dw},{sw} | \
bfind.shiftamt.u64 {dw},{sl}
prmt.b32 {dw},{sw},{sw},{sw} | prmt.b32.f4e {dw},{sw},{sw},{n} | prmt.b32.rc8 {dw},{sw},{sw},{n} | \
prmt.b32.ecl {dw},{sw},{sw},{n} | lop3.b32 {dw},{sw},{sw},{sw},{lut}
min.s32 {dw},{sw},{sw} | max.u32 {dw},{sw},{sw} | min.s64 {dl},{sl},{sl} | max.u64 {dl},{sl},{sl} | \
min.s16 {dh},{sh},{sh} | max.u16 {dh},{sh},{sh}
max.s32 {dw},{sw},{sw} | min.u32 {dw},{sw},{sw} | abs.s32 {dw},{sw} | abs.s64 {dl},{sl} | neg.s32 {dw},{sw} | \
neg.s64 {dl},{sl} | abs.s16 {dh},{sh} | neg.s16 {dh},{sh}
sad.s32 {dw},{sw},{sw},{sw} | sad.u32 {dw},{sw},{sw},{sw} | sad.u64 {dl},{sl},{sl},{sl} | sad.s16 {dh},{sh},{sh},{sh}
add.u16 {dh},{sh},{sh} | sub.s16 {dh},{sh},{sh} | dp4a.s32.u32 {dw},{sw},{sw},{sw} | dp4a.u32.u32 {dw},{sw},{sw},{sw} \
| dp2a.lo.s32.s32 {dw},{sw},{sw},{sw} | dp2a.hi.u32.s32 {dw},{sw},{sw},{sw}
bmsk.clamp.b32 {dw},{sw},{sw} | bmsk.wrap.b32 {dw},{sw},{sw} | szext.wrap.s32 {dw},{sw},{sw} | \
szext.clamp.u32 {dw},{sw},{sw}
div.u32 {dw},{sw},{o} | div.s32 {dw},{sw},{o} | rem.u32 {dw},{sw},{o} | rem.s32 {dw},{sw},{o} | div.u16 {dh},{sh},{oh} \
| rem.s16 {dh},{sh},{oh}
div.u64 {dl},{sl},{ol} | rem.u64 {dl},{sl},{ol} | div.s64 {dl},{sl},{ol} | rem.s64 {dl},{sl},{ol}
"""

CONVERSION: Final = """
cvt.u64.u32 {dl},{rw} | cvt.s64.s32 {dl},{rw} | cvt.u32.u64 {dw},{rl} | cvt.u16.u32 {dh},{rw} | cvt.s32.s16 {dw},{rh} \
| cvt.u32.u16 {dw},{rh} | cvt.s64.s16 {dl},{rh}
cvt.s8.s32 {dw},{rw} | cvt.u8.u32 {dw},{rw} | cvt.sat.s8.s32 {dw},{rw} | cvt.sat.u8.s32 {dw},{rw} | \
cvt.sat.u16.u32 {dh},{rw} | cvt.sat.s32.s64 {dw},{rl}
cvt.sat.u32.s32 {dw},{rw} | cvt.sat.s16.u64 {dh},{rl} | cvt.u64.s8 {dl},{rw} | cvt.sat.u64.s64 {dl},{rl} | \
cvt.sat.s32.u32 {dw},{rw} | cvt.s16.s8 {dh},{rh} | cvt.u16.u8 {dh},{rh}
cvt.s32.s8 {dw},{rh} | cvt.u32.u8 {dw},{rl} | cvt.u16.u64 {dh},{rl} | cvt.sat.s8.s16 {dh},{rh} | cvt.u64.u16 {dl},{rh} \
| cvt.s64.s8 {dl},{rh}
mov.b64 {dl},{{{rw},{rw}}} | mov.b32 {dw},{{{rh},{rh}}} | mov.u32 {dw},{sw} | mov.u64 {dl},{sl} | \
mov.b64 {{{dw},{dw}}},{rl} | mov.b32 {{{dh},{dh}}},{rw} | mov.b16 {dh},{rh}
mov.b64 {dl},{{{rh},{rh},{rh},{rh}}} | mov.b64 {{{dh},{dh},{dh},{dh}}},{rl} | mov.b64 {{{dw},_}},{rl} | \
mov.b64 {{_,{dw}}},{rl} | mov.u32 {dw},{rw} | mov.u64 {dl},{rl}
cvt.pack.sat.u8.s32.b32 {dw},{rw},{rw},{rw} | cvt.pack.sat.s16.s32 {dw},{rw},{rw}
"""

CARRY: Final = """
add.cc.u32 {dw},{sw},{sw}; addc.cc.u32 {dw},{sw},{sw}; addc.u32 {dw},{sw},{sw}
sub.cc.u32 {dw},{sw},{sw}; subc.cc.u32 {dw},{sw},{sw}; subc.u32 {dw},{sw},{sw}
mad.lo.cc.u32 {dw},{sw},{sw},{sw}; madc.hi.u32 {dw},{sw},{sw},{sw} | add.cc.u64 {dl},{sl},{sl}; addc.u64 {dl},{sl},{sl}
sub.cc.u32 {dw},{sw},{sw}; subc.u32 {dw},{sw},{sw} | mad.lo.cc.u32 {dw},{sw},{sw},{sw}; \
madc.hi.cc.u32 {dw},{sw},{sw},{sw}; addc.u32 {dw},{sw},{sw}
"""

PREDICATE: Final = """
setp.{c}.s32 {dp},{sw},{sw} | setp.{c}.u32 {dp},{sw},{sw} | setp.{c}.s64 {dp},{sl},{sl} | setp.{c}.u64 {dp},{sl},{sl} \
| setp.{c}.s16 {dp},{sh},{sh} | setp.{c}.u16 {dp},{sh},{sh}
setp.{c}.{bool}.s32 {dp},{sw},{sw},{!}{rp} | setp.{c}.{bool}.u64 {dp},{sl},{sl},{!}{rp} | \
setp.{c}.{bool}.u16 {dp},{sh},{sh},{!}{rp}
setp.{c}.{bool}.s32 {dp}|{dp},{sw},{sw},{!}{rp} | setp.{c}.{bool}.s64 {dp}|{dp},{sl},{sl},{rp} | \
setp.{c}.u32 {dp}|{dp},{sw},{sw} | setp.{c}.{bool}.u32 {dp},{sw},{sw},{!}{rp}
and.pred {dp},{rp},{rp} | or.pred {dp},{rp},{rp} | xor.pred {dp},{rp},{rp} | not.pred {dp},{rp} | mov.pred {dp},{rp} | \
or.pred {dp},{rp},{rp}
selp.b32 {dw},{sw},{sw},{rp} | selp.b64 {dl},{sl},{sl},{rp} | selp.u16 {dh},{sh},{sh},{rp} | \
selp.f32 {df},{sf},{sf},{rp} | selp.f64 {dd},{sd},{sd},{rp} | selp.u32 {dw},1,0,{rp} | selp.s32 {dw},-1,0,{rp}
set.{c}.u32.s32 {dw},{sw},{sw} | set.{c}.s32.u64 {dw},{sl},{sl} | set.{c}.{bool}.u32.s32 {dw},{sw},{sw},{!}{rp} | \
slct.s32.s32 {dw},{sw},{sw},{sw} | slct.u64.s32 {dl},{sl},{sl},{sw}
selp.u32 {dw},1,0,{rp}; setp.ne.s32 {dp},{=0},0 | and.b32 {dw},{sw},{sw}; setp.{c}.s32 {dp},{=0},0 | \
and.b32 {dw},{sw},{bit}; setp.{ne}.u32 {dp},{=0},0
and.b32 {dw},{sw},1; setp.eq.b32 {dp},{=0},1 | setp.{c}.s32 {dp},{rw},{sw}; setp.{c}.{bool}.s32 {dp},{rw},{sw},{=0}
setp.{c}.s32 {dp},{sw},{sw}; setp.{fc}.f32 {dp},{sf},{sf}; not.pred {dp},{=1}; {bool}.pred {dp},{=0},{=2} | \
setp.{c}.u32 {dp},{sw},{sw}; not.pred {dp},{=0}; {bool}.pred {dp},{=1},{rp}
selp.b32 {dw},{sw},{sw},{rp}; setp.{c}.s32 {dp},{=0},{sw} | cvt.u32.u16 {dw},{rh}; setp.{ne}.s32 {dp},{=0},0
"""

FLOAT: Final = """
add{rnd}.f32 {df},{sf},{sf} | sub{rnd}.ftz.f32 {df},{sf},{sf} | mul{rnd}.f32 {df},{sf},{sf} | \
fma.rn.f32 {df},{sf},{sf},{sf} | fma.rz.ftz.f32 {df},{sf},{sf},{sf} | mul.f32 {df},{sf},{sf} | add.f32 {df},{sf},{sf}
add.sat.f32 {df},{sf},{sf} | mul.rn.ftz.sat.f32 {df},{sf},{sf} | fma.rp.sat.f32 {df},{sf},{sf},{sf} | \
sub.f32 {df},{sf},{sf} | fma.rn.f32 {df},{rf},{rf},{rf}
min.f32 {df},{sf},{sf} | max.ftz.f32 {df},{sf},{sf} | abs.f32 {df},{sf} | neg.f32 {df},{sf} | neg.ftz.f32 {df},{sf} | \
abs.ftz.f32 {df},{sf} | 80:min.NaN.f32 {df},{sf},{sf} | mov.f32 {df},{sf}
div.rn.f32 {df},{sf},{sf} | rcp.rn.f32 {df},{sf} | sqrt.rn.f32 {df},{sf} | div.rz.f32 {df},{sf},{sf} | \
sqrt.rm.ftz.f32 {df},{sf} | rcp.rp.f32 {df},{sf} | div.rn.ftz.f32 {df},{sf},{sf}
setp.{fc}.f32 {dp},{sf},{sf} | setp.{fc}.ftz.f32 {dp},{sf},{sf} | setp.{fc}.{bool}.f32 {dp}|{dp},{sf},{sf},{!}{rp} | \
setp.{fc}.{bool}.f32 {dp},{sf},{sf},{!}{rp}
set.{fc}.u32.f32 {dw},{sf},{sf} | set.{fc}.f32.f32 {df},{sf},{sf} | slct.s32.f32 {dw},{sw},{sw},{sf} | \
slct.f32.s32 {df},{sf},{sf},{sw} | set.{fc}.{bool}.u32.f32 {dw},{sf},{sf},{rp}
testp.finite.f32 {dp},{rf} | testp.subnormal.f32 {dp},{rf} | testp.number.f32 {dp},{rf} | testp.normal.f32 {dp},{rf} | \
testp.infinite.f64 {dp},{rd} | testp.notanumber.f64 {dp},{rd}
cvt.rni.s32.f32 {dw},{sf} | cvt.rzi.u32.f32 {dw},{sf} | cvt.rmi.s64.f32 {dl},{rf} | cvt.rpi.u64.f32 {dl},{rf} | \
cvt.rzi.s16.f32 {dh},{rf} | cvt.rzi.ftz.s32.f32 {dw},{rf} | cvt.rzi.u8.f32 {dw},{rf}
cvt.rn.f32.s32 {df},{sw} | cvt.rz.f32.u32 {df},{sw} | cvt.rn.f32.s64 {df},{rl} | cvt.rp.f32.u64 {df},{rl} | \
cvt.rn.f32.s16 {df},{rh} | cvt.rn.f32.u8 {df},{rw}
cvt.rni.f32.f32 {df},{rf} | cvt.rzi.f32.f32 {df},{rf} | cvt.sat.f32.f32 {df},{rf} | cvt.ftz.f32.f32 {df},{rf} | \
cvt.rmi.ftz.f32.f32 {df},{rf}
mov.b32 {df},{rw} | mov.f32 {df},{rf} | mov.b64 {dd},{{{rw},{rw}}} | mov.b64 {dd},{rl} | mov.f64 {dd},{rd} | \
mov.f64 {dd},{sd}
"""

DOUBLE: Final = """
add{rnd}.f64 {dd},{sd},{sd} | sub{rnd}.f64 {dd},{sd},{sd} | mul{rnd}.f64 {dd},{sd},{sd} | \
fma.rn.f64 {dd},{sd},{sd},{sd} | fma.rz.f64 {dd},{sd},{sd},{sd}
min.f64 {dd},{sd},{sd} | max.f64 {dd},{sd},{sd} | abs.f64 {dd},{sd} | neg.f64 {dd},{sd} | add.f64 {dd},{sd},{sd} | \
mul.f64 {dd},{sd},{sd}
div.rn.f64 {dd},{sd},{sd} | rcp.rn.f64 {dd},{sd} | sqrt.rn.f64 {dd},{sd} | setp.{fc}.f64 {dp},{sd},{sd} | \
setp.{fc}.{bool}.f64 {dp},{sd},{sd},{!}{rp} | slct.f64.s32 {dd},{sd},{sd},{sw}
cvt.rni.s32.f64 {dw},{rd} | cvt.rzi.u32.f64 {dw},{rd} | cvt.rmi.s64.f64 {dl},{rd} | cvt.rpi.u64.f64 {dl},{rd} | \
cvt.rn.f64.s64 {dd},{rl} | cvt.rz.f64.u64 {dd},{rl} | cvt.rn.f64.s32 {dd},{rw} | cvt.rn.f64.u32 {dd},{rw}
cvt.f64.f32 {dd},{rf} | cvt.rn.f32.f64 {df},{rd} | cvt.rz.f32.f64 {df},{rd} | cvt.rn.ftz.f32.f64 {df},{rd} | \
cvt.rni.f64.f64 {dd},{rd} | cvt.rzi.f64.f64 {dd},{rd} | set.{fc}.u32.f64 {dw},{sd},{sd}
"""

HALF: Final = """
add.f16 {de},{re},{re} | sub.f16 {de},{re},{re} | mul.f16 {de},{re},{re} | fma.rn.f16 {de},{re},{re},{re} | \
add.rn.ftz.f16 {de},{re},{re} | mul.sat.f16 {de},{re},{re} | neg.f16 {de},{re} | abs.f16 {de},{re}
add.f16x2 {dv},{rv},{rv} | sub.f16x2 {dv},{rv},{rv} | mul.f16x2 {dv},{rv},{rv} | fma.rn.f16x2 {dv},{rv},{rv},{rv} | \
fma.rn.sat.f16x2 {dv},{rv},{rv},{rv} | neg.f16x2 {dv},{rv} | abs.f16x2 {dv},{rv}
setp.{fc}.f16 {dp},{re},{re} | setp.{fc}.f16x2 {dp}|{dp},{rv},{rv} | \
setp.{fc}.{bool}.f16x2 {dp}|{dp},{rv},{rv},{!}{rp} | set.{fc}.u32.f16 {dw},{re},{re} | \
set.{fc}.f16x2.f16x2 {dv},{rv},{rv}
cvt.rn.f16.f32 {de},{rf} | cvt.rz.f16.f32 {de},{rf} | cvt.f32.f16 {df},{re} | cvt.rn.f16.s32 {de},{rw} | \
cvt.rzi.s32.f16 {dw},{re} | cvt.rn.f16.f64 {de},{rd} | cvt.f64.f16 {dd},{re} | cvt.rni.s16.f16 {dh},{re} | \
cvt.rni.f16.f16 {de},{re}
mov.b32 {dv},{rw} | mov.b32 {dv},{{{re},{re}}} | mov.b32 {{{de},{de}}},{rv} | mov.b16 {de},{rh} | mov.b16 {de},{re} | \
mov.b32 {dv},{rv} | selp.b16 {de},{re},{re},{rp} | selp.b32 {dv},{rv},{rv},{rp}
80:min.f16 {de},{re},{re} | 80:max.f16x2 {dv},{rv},{rv} | 80:fma.rn.relu.f16 {de},{re},{re},{re} | \
80:min.NaN.f16x2 {dv},{rv},{rv} | 80:cvt.rn.f16x2.f32 {dv},{rf},{rf}
80:fma.rn.bf16 {db},{rb},{rb},{rb} | 80:neg.bf16 {db},{rb} | 80:max.bf16 {db},{rb},{rb} | 80:cvt.rn.bf16.f32 {db},{rf} \
| 90:add.rn.bf16 {db},{rb},{rb} | 90:mul.bf16 {db},{rb},{rb} | 90:setp.{fc}.bf16 {dp},{rb},{rb}
mov.b16 {db},{rh} | mov.b16 {db},{rb} | 90:cvt.f32.bf16 {df},{rb} | selp.b16 {db},{rb},{rb},{rp} | \
mov.b32 {dv},{{{re},{re}}} | mov.b32 {{{de},{de}}},{rv} | neg.f16x2 {dv},{rv} | 80:fma.rn.relu.f16x2 {dv},{rv},{rv},{rv}
mul.f16x2 {dv},{rv},{rv}; add.f16x2 {dv},{=0},{rv} | mov.b32 {{{de},{de}}},{rv}; mov.b32 {dv},{{{=1},{=0}}} | \
neg.f16 {de},{re}; fma.rn.f16 {de},{=0},{re},{re} | neg.f16x2 {dv},{rv}; mul.f16x2 {dv},{=0},{rv}
add.ftz.f16x2 {dv},{rv},{rv} | sub.sat.f16x2 {dv},{rv},{rv} | abs.f16x2 {dv},{rv}; add.f16x2 {dv},{=0},{rv} | \
set.{fc}.f16.f16 {de},{re},{re} | 90:min.xorsign.abs.f16x2 {dv},{rv},{rv} | 90:max.xorsign.abs.f32 {df},{sf},{sf}
"""

#: With bfloat16 pairs: from sm_80 on.
BRAIN: Final = """
80:fma.rn.bf16x2 {dy},{ry},{ry},{ry} | 80:neg.bf16x2 {dy},{ry} | 80:abs.bf16x2 {dy},{ry} | \
80:min.bf16x2 {dy},{ry},{ry} | 80:max.NaN.bf16x2 {dy},{ry},{ry} | 80:fma.rn.relu.bf16x2 {dy},{ry},{ry},{ry} | \
90:add.bf16x2 {dy},{ry},{ry}
90:sub.bf16x2 {dy},{ry},{ry} | 90:mul.rn.bf16x2 {dy},{ry},{ry} | 80:cvt.rn.bf16x2.f32 {dy},{rf},{rf} | \
80:cvt.rz.bf16x2.f32 {dy},{rf},{rf} | 80:cvt.rn.relu.bf16x2.f32 {dy},{rf},{rf} | mov.b32 {dy},{rw} | mov.b32 {dy},{ry}
mov.b32 {dy},{{{rb},{rb}}} | mov.b32 {{{db},{db}}},{ry} | selp.b32 {dy},{ry},{ry},{rp} | \
90:setp.{fc}.bf16x2 {dp}|{dp},{ry},{ry} | 90:setp.{fc}.{bool}.bf16x2 {dp}|{dp},{ry},{ry},{!}{rp} | \
80:neg.bf16x2 {dy},{ry}; fma.rn.bf16x2 {dy},{=0},{ry},{ry}
80:abs.bf16 {db},{rb} | 80:fma.rn.bf16 {db},{rb},{rb},{rb} | 90:sub.bf16 {db},{rb},{rb} | 80:cvt.rz.bf16.f32 {db},{rf} \
| 90:cvt.rn.bf16.s32 {db},{rw} | 90:cvt.rzi.s32.bf16 {dw},{rb} | 90:min.xorsign.abs.bf16x2 {dy},{ry},{ry}
mov.b32 {{{db},{db}}},{ry}; mov.b32 {dy},{{{=1},{=0}}} | 90:mul.bf16x2 {dy},{ry},{ry}; add.bf16x2 {dy},{=0},{ry} | \
90:set.{fc}.bf16x2.bf16x2 {dy},{ry},{ry} | 90:set.{fc}.u32.bf16 {dw},{rb},{rb}
"""

#: For a whole warp at one instruction with the mask {mask}.
WARP: Final = """
shfl.sync.idx.b32 {dw},{rw},{n},{seg},{mask} | shfl.sync.bfly.b32 {dw},{rw},{n},{seg},{mask} | \
shfl.sync.up.b32 {dw}|{dp},{rw},{n},{segup},{mask} | shfl.sync.down.b32 {dw}|{dp},{rw},{n},{seg},{mask}
shfl.sync.idx.b32 {dw},{rw},{rw},0x1f,{mask} | vote.sync.ballot.b32 {dw},{!}{rp},{mask} | \
vote.sync.all.pred {dp},{!}{rp},{mask} | vote.sync.any.pred {dp},{rp},{mask} | vote.sync.uni.pred {dp},{rp},{mask}
match.any.sync.b32 {dw},{rw},{mask} | match.any.sync.b64 {dw},{rl},{mask} | match.all.sync.b32 {dw}|{dp},{rw},{mask} | \
bar.warp.sync {mask}
80:redux.sync.add.s32 {dw},{rw},{mask} | 80:redux.sync.min.u32 {dw},{rw},{mask} | \
80:redux.sync.max.s32 {dw},{rw},{mask} | 80:redux.sync.xor.b32 {dw},{rw},{mask} | 80:redux.sync.and.b32 {dw},{rw},{mask}
"""

#: For some threads of a warp with the mask {mask}: nothing here reads a lane outside it.
PART: Final = """
vote.sync.ballot.b32 {dw},{rp},{mask} | vote.sync.all.pred {dp},{rp},{mask} | vote.sync.any.pred {dp},{!}{rp},{mask} | \
match.any.sync.b32 {dw},{rw},{mask} | match.all.sync.b64 {dw}|{dp},{rl},{mask} | bar.warp.sync {mask}
80:redux.sync.add.u32 {dw},{rw},{mask} | 80:redux.sync.max.u32 {dw},{rw},{mask} | \
80:redux.sync.or.b32 {dw},{rw},{mask} | shfl.sync.idx.b32 {dw},{rw},{leader},0x1f,{mask}
"""

#: The same value in all threads if the operands are: {w} is read as {u}, {p} as {q}.
UNIFORM: Final = """
add.s32 {dw},{sw},{sw} | sub.s32 {dw},{sw},{sw} | mul.lo.s32 {dw},{sw},{sw} | and.b32 {dw},{sw},{sw} | \
or.b32 {dw},{sw},{sw} | xor.b32 {dw},{sw},{sw} | shl.b32 {dw},{sw},{n} | shr.u32 {dw},{sw},{n}
shr.s32 {dw},{sw},{n} | mad.lo.s32 {dw},{sw},{sw},{sw} | min.s32 {dw},{sw},{sw} | max.u32 {dw},{sw},{sw} | \
selp.b32 {dw},{sw},{sw},{rp} | popc.b32 {dw},{sw} | clz.b32 {dw},{sw} | abs.s32 {dw},{sw}
setp.{c}.s32 {dp},{sw},{sw} | setp.{c}.u32 {dp},{sw},{sw} | setp.{c}.{bool}.s32 {dp},{sw},{sw},{!}{rp} | \
and.pred {dp},{rp},{rp} | or.pred {dp},{rp},{rp} | xor.pred {dp},{rp},{rp} | not.pred {dp},{rp} | mov.u32 {dw},{sw}
lop3.b32 {dw},{sw},{sw},{sw},{lut} | prmt.b32 {dw},{sw},{sw},{sw} | shf.l.wrap.b32 {dw},{sw},{sw},{n} | \
mul.hi.u32 {dw},{sw},{sw} | bfe.s32 {dw},{sw},{m},{m} | brev.b32 {dw},{sw} | bfind.u32 {dw},{sw} | neg.s32 {dw},{sw}
setp.{c}.{bool}.u32 {dp}|{dp},{sw},{sw},{!}{rp} | not.b32 {dw},{sw} | selp.u32 {dw},1,0,{rp}; \
setp.{ne}.s32 {dp},{=0},0 | add.cc.u32 {dw},{sw},{sw}; addc.u32 {dw},{sw},{sw} | div.u32 {dw},{sw},{o}
"""

EDGES: Final = {
    "w": (0, 1, -1, 2, 31, 32, 0x7FFFFFFF, -0x80000000, 0x80, 0xFF, 0x8000, 0xFFFF, 0x10000, -2, 0x55555555),
    "l": (0, 1, -1, 0x7FFFFFFFFFFFFFFF, -0x8000000000000000, 0xFFFFFFFF, 0x100000000, -0x100000000, 63, 64),
    "h": (0, 1, -1, 0x7FFF, -0x8000, 0xFF, 0x80, 15, 16),
    "f": (0, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x807FFFFF, 0x00800000,
    0x7F7FFFFF, 0x3F000000, 0x4B000000, 0x4F000000, 0x40490FDB),
    "d": (0, 1 << 63, 0x3FF << 52, 0xBFF << 52, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48, 1, 0x0010 << 48,
    0x7FEFFFFFFFFFFFFF, 0x41E0 << 48, 0x3FE0 << 48, 0x400921FB54442D18),
}  # fmt: skip
AMOUNTS: Final = (0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65, 100, 127, 255)
COMPARE: Final = ("eq", "ne", "lt", "le", "gt", "ge")
FCOMPARE: Final = (*COMPARE, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
#: The absent rounding relies on -fmad=false: nothing is contracted.
ROUNDINGS: Final = ("", ".rn", ".rn", ".rz", ".rm", ".rp")


@dataclass(frozen=True, slots=True)
class Form:
    """A template and the SM that it needs."""

    text: str
    sm: int = 75


def table(text: str) -> tuple[Form, ...]:
    """The forms of one of the strings above."""
    out = []
    for cell in (t.strip() for line in text.splitlines() for t in line.split(" | ") if t.strip()):
        sm, colon, rest = cell.partition(":")
        out.append(Form(rest, int(sm)) if colon and sm.isdigit() else Form(cell))
    return tuple(out)
