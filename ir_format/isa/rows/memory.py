"""Memory, caches, atomics, fences."""

from __future__ import annotations

TEXT = r"""
enum ltc     = _ LTC64B LTC128B LTC256B
enum ord80   = _ CONSTANT.PRIVATE CONSTANT.CTA CONSTANT.CTA.PRIVATE CONSTANT STRONG.SM STRONG.GPU.PRIVATE STRONG.GPU MMIO.GPU CONSTANT.SM
               STRONG.SYS CONSTANT.SM.PRIVATE MMIO.SYS CONSTANT.VC CONSTANT.VC.PRIVATE CONSTANT.GPU
enum sto80   = _ CONSTANT.PRIVATE CONSTANT.CTA CONSTANT.CTA.PRIVATE STRONG.SM.PRIVATE STRONG.SM STRONG.GPU.PRIVATE STRONG.GPU MMIO.GPU CONSTANT.SM
               STRONG.SYS CONSTANT.SM.PRIVATE MMIO.SYS CONSTANT.VC CONSTANT.VC.PRIVATE CONSTANT.GPU
enum atomop  = ADD MIN MAX INC DEC AND OR XOR EXCH ? ? ? ? ? ? ?
enum redop   = ADD MIN MAX INC DEC AND OR XOR
enum atype   = _:1 S32:1 64:2 F32.FTZ.RN:1 F16x2.RN:1 S64:2 F64.RN:2 BF16_V2:1
enum cassize = _:1 64:2 ? ?
def ordload  = <75>.{CONSTANT _ STRONG MMIO}@79-80 <75>.{CTA SM GPU SYS}@77-78 <75>.PRIVATE@76 <80+>.ord80@77-80
def ordstore = <75>.{CONSTANT _ STRONG MMIO}@79-80 <75>.{CTA SM GPU SYS}@77-78 <75>.PRIVATE@76 <80+>.sto80@77-80
# ---- loads and stores
LDC          b82 - sm=75+ d/csize <- k:K@5               ; .csize@73-75 .{_ IL IS ISL}@78-79                                        ; cls=lsu sb=WR mem=r space=const
LDG          181 G              Pu?=PT d/msize <- m:M(R24,O40,U32,X76) Pz:PI@64?=PT ; .E@72 .evict@84-86 .ltc@68-69 .msize@73-75 $ordload  ; cls=lsu sb=WR mem=r space=global
STG          186 G              <- m:M(R24,O40,U64,X76) s:R@32/msize    ; .E@72 .evict@84-86 .msize@73-75 $ordstore                        ; cls=lsu sb=R mem=w space=global
LD           180 G              Pu?=PT d/msize <- m:M(R24,O40,U32,X76) Pz:PI@64?=PT ; .E@72 .evict@84-86 .ltc@68-69 .msize@73-75 $ordload  ; cls=lsu sb=WR mem=r space=generic
ST           185 G              <- m:M(R24,O40,U64,X76) s:R@32/msize    ; .E@72 .evict@84-86 .msize@73-75 $ordstore                        ; cls=lsu sb=R mem=w space=generic
LDL          183 L              d/msize <- m:M(R24,O40,U32)             ; .evict@84-86 .msize@73-75                                        ; cls=lsu sb=WR mem=r space=local
STL          187 L1             <- m:M(R24,O40,U64) s:R@32/msize        ; .evict@84-86 .msize@73-75                                        ; cls=lsu sb=R mem=w space=local
LDS          184 L  sm=75       d/msize <- m:M(R24,O40,U32,S78)         ; .U@76 .msize@73-75                                              ; cls=lsu sb=WR mem=r space=shared
LDS          184 L  sm=80+      d/msize <- m:M(R24,O40,U32,S78)         ; .msize@73-75                                                    ; cls=lsu sb=WR mem=r space=shared
STS          188 L1             <- m:M(R24,O40,U64,S78) s:R@32/msize    ; .msize@73-75                                                    ; cls=lsu sb=R mem=w space=shared
LDSM         03b S              d/lnum <- m:M(R24,O40,U32,S80)          ; .16 .{M88:1 MT88:1}@78 .{_:1 2:2 4:4 ?}:lnum@72-73               ; cls=lsu sb=WR mem=r space=shared
# ---- atomics
ATOMS        18c A              d/atype <- m:M(R24,O40,U64,S78) s:R@32/atype ; .atomop@87-90 .atype@73-75                                  ; cls=lsu sb=WR mem=rw space=shared
ATOMS.CAS    18d A              d/cassize <- m:M(R24,O40,U64,S78) s:R@32/cassize c/cassize ; .cassize@73-74                                ; cls=lsu sb=WR mem=rw space=shared
ATOMG        1a8 G              Pu=PT d/atype <- m:M(R24,O40,U64,X71) s:R@32/atype ; .E@72 .atomop@87-90 .evict@84-86 .atype@73-75 $ordstore ; cls=lsu sb=WR mem=rw space=global
ATOMG.CAS    1a9 G              Pu=PT d/cassize <- m:M(R24,O40,U72,X71) s:R@32/cassize c/cassize ; .E@72 .evict@84-86 .cassize@73-74 $ordstore ; cls=lsu sb=WR mem=rw space=global
ATOM         18a G              Pu=PT d/atype <- m:M(R24,O40,U64,X71) s:R@32/atype ; .E@72 .atomop@87-90 .evict@84-86 .atype@73-75 $ordstore ; cls=lsu sb=WR mem=rw space=generic
ATOM.CAS     18b G              Pu=PT d/cassize <- m:M(R24,O40,U72,X71) s:R@32/cassize c/cassize ; .E@72 .evict@84-86 .cassize@73-74 $ordstore ; cls=lsu sb=WR mem=rw space=generic
RED          18e L  sm=75       <- m:M(R24,O40,U64) s:R@32/atype    ; .E@72 .redop@87-89 .evict@84-86 .atype@73-75 $ordstore           ; cls=lsu sb=R mem=rw space=global
REDG         18e G  sm=80+      <- m:M(R24,O40,U64,X71) s:R@32/atype    ; .E@72 .redop@87-89 .evict@84-86 .{_:1 S32:1 64:2 ? ? S64:2 ? ?}:atype@73-75 $ordstore           ; cls=lsu sb=R mem=rw space=global
REDG         1a6 G  sm=80+      <- m:M(R24,O40,U64,X71) s:R@32/ftype    ; .E@72 .redop@87-89 .evict@84-86 .{? ? ? F32.FTZ.RN:1 F16x2.RN:1 ? F64.RN:2 BF16_V2:1}:ftype@73-75 $ordstore ; cls=lsu sb=R mem=rw space=global
# ---- fences and caches
MEMBAR       992 -              <-                                      ; .{SC ALL}@79 .{CTA SM GPU SYS ? VC ? ?}@76-78             ; cls=lsu sb=R fence=1
ERRBAR       9ab -              <-                                      ;                                                           ; cls=lsu
CCTL         98f -              <- m:M(R24,O40)                         ; .E@72                                                     ; cls=lsu sb=R
# ---- asynchronous copies
LDGSTS       1ae -  sm=80+      <- t:M(R16,O40) m:M(R24,D32)            ; .E .BYPASS .128                                                  ; cls=lsu sb=WR mem=rw space=global
LDGDEPBAR    9af -  sm=80+      <-                                      ;                                                           ; cls=lsu sb=W
DEPBAR       91a -              <- sb:N(sb)@44-46 n:I(u)@38-43          ; .LE 47=1                                                  ; cls=ctl
"""
