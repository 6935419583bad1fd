"""Textures and surfaces.

Operands of a texture instruction: second and first half of the result (``e``: what follows the two registers of ``d``),
coordinates (``a``), further values (``b``: bindless handle, level, offsets, compare value, sample...), then where the
header is: two numbers (constant bank and word), a uniform register that holds the handle (sm_75 to sm_90 add a word
offset), or nothing (``.B``: the handle is in ``b``). How many registers each takes depends on geometry and modifiers:
``widths=`` names the rule in :mod:`ir_format.isa.vectors`.

From sm_100 on bits 48-55 are a second uniform register, which sm_120 alone can use.
"""

from __future__ import annotations

TEXT = r"""
enum geo    = 1D 2D 3D CUBE ARRAY_1D ARRAY_2D ? ARRAY_CUBE
enum geoxd  = 1D 2D ? ? ARRAY_1D ARRAY_2D ? ?
enum geoxg  = ? 2D ? CUBE ? ARRAY_2D ? ARRAY_CUBE
enum geoxl  = 1D 2D 3D ? ARRAY_1D ARRAY_2D ? ?
enum header = TEX_HEADER_DIMENSION TEX_HEADER_TEXTURE_TYPE TEX_HEADER_SAMPLER_POS ?
enum sgeo   = 1D:1 1D_BUFFER:1 1D_ARRAY:2 2D:2 2D_ARRAY:3 3D:3 ? ?
enum f16rnd = _ F16.RN F16.RZ ?
enum clamp  = IGN _ TRAP ?
enum smask  = ? R:1 ? RG:2 ? ? ? ? ? ? ? ? ? ? ? _:4
enum ssize  = U8:1 S8:1 U16:1 S16:1 _:1 64:2 128:4 ?
enum stype  = _:1 S32:1 U64:2 F32.FTZ.RN:1 F16x2.RN:1 S64:2 SD32:1 SD64:2
enum satom  = ADD MIN MAX INC DEC AND OR XOR
enum satomx = ADD MIN MAX INC DEC AND OR XOR EXCH ? ? ? ? ? ? ?
# ---- level of detail, offsets, derivatives
def tlod    = <75-90>.{_ LZ LB LL LC LB.LC LC.FDV ?}@87-89 <100-110>.{_ LZ LB LL LC LB.LC ? ? ? ? ? ? ? ? ? ?}@59+87-89
          <120+>.{_ LZ LB LL LC LB.LC ULB ULL ULC ULB.LC LB.ULC ? ? ? ? ?}@59+87-89
def toff    = <75-90>.AOFFI@76 <100-110>.{_ AOFFI ? ?}@56-57 <120+>.{_ AOFFI UAOFFI ?}@56-57 <120+>.UAI@58
def tndv    = <75-90>.NDV@77 <100-110>.{_ NDV FDV ?}@76-77 <120+>.{_ NDV ? DXY}@76-77
def tldlod  = <75-90>.{? LZ ? LL ? ? ? ?}@87-89 <100-110>.{LZ LL ? ?}@87-88 <120+>.{LZ LL ULL ?}@87-88
def tldms   = <75-90>.MS@78 <75-90>.CL@77 <100-110>.{_ MS ? ?}@77-78 <120+>.{_ MS UMS ?}@77-78 <100+>.CL@76
def tldoff4 = <75-110>.{_ AOFFI PTP ?}@76-77 <120+>.{_ AOFFI PTP UAOFFI}@76-77 <120+>.UAI@58
def txdlc   = <75-90>.LC@87 <100-110>.{_ LC ? ?}@87-88 <120+>.{_ LC ULC ?}@87-88
# ---- where the header is
def hnum    = bank:I(u)@54-58 word:I(u)@40-53
def hreg    = <75-90>u:URn@40 <75-90>off:I(u)@46-53 <100+>u:UR@40 <120+>ux:UR@48?=URZ
def hfix    = <75-90>59=0 <100-110>48-55=255
def bfix    = <75-90>59=1 <100-110>48-55=255
def tregs   = Pu?=PT e:R@64 d <- a:Rn@24-31 b:R@32-39?=RZ
def tregsb  = Pu?=PT e:R@64 d <- a:Rn@24-31 b:Rn@32-39
def tregsd  = Pu?=PT e:R@64 d <- a:Rn@24-31 b:R@32-39
def tmask   = mask:I(u)@72-75?=15
def tmods   = .evict@84-86
# ---- textures
op TEX        read=texture class=tex
TEX          b60 - sm=75-90 $tregs $hnum g:N(geo)@61-63 $tmask
          ; .SCR@60 .f16rnd@79-80 $tlod $toff .DC@78 .evict@84-86 $tndv .NODEP@90 59=0 ; widths=tex
TEX          f60+91 - sm=75-103,110+ $tregs $hreg g:N(geo)@61-63 $tmask
          ; .SCR@60 .f16rnd@79-80 $tlod $toff .DC@78 .evict@84-86 $tndv .NODEP@90 $hfix ; widths=tex
TEX          361 - sm=75-90 $tregsb g:N(geo)@61-63 $tmask
          ; .SCR@60 .B .f16rnd@79-80 $tlod $toff .DC@78 .evict@84-86 $tndv .NODEP@90 59=1 ; widths=tex
TEX          d61+91 - sm=100-103,110+ $tregsb <120+>ux:UR@48?=URZ g:N(geo)@61-63 $tmask
          ; .SCR@60 .B .f16rnd@79-80 $tlod $toff .DC@78 .evict@84-86 $tndv .NODEP@90 <100-110>48-55=255 ; widths=tex
op TLD        read=texture class=tex
TLD          b66 - sm=75-90 $tregs $hnum g:N(geoxl)@61-63 $tmask
          ; .SCR@60 .f16rnd@79-80 $tldlod $toff .evict@84-86 $tldms .NODEP@90 59=0 ; widths=tex
TLD          f66+91 - sm=75-103,110+ $tregs $hreg g:N(geoxl)@61-63 $tmask
          ; .SCR@60 .f16rnd@79-80 $tldlod $toff .evict@84-86 $tldms .NODEP@90 $hfix ; widths=tex
TLD          367 - sm=75-90 $tregsb g:N(geoxl)@61-63 $tmask
          ; .SCR@60 .B .f16rnd@79-80 $tldlod $toff .evict@84-86 $tldms .NODEP@90 59=1 ; widths=tex
TLD          d67+91 - sm=100-103,110+ $tregsb <120+>ux:UR@48?=URZ g:N(geoxl)@61-63 $tmask
          ; .SCR@60 .B .f16rnd@79-80 $tldlod $toff .evict@84-86 $tldms .NODEP@90 <100-110>48-55=255 ; widths=tex
op TLD4       read=texture class=tex
TLD4         b63 - sm=75-90 $tregs $hnum g:N(geoxg)@61-63 $tmask
          ; .SCR@60 .{R G B A}@87-88 .f16rnd@79-80 $tldoff4 .DC@78 .evict@84-86 .NODEP@90 59=0 ; widths=tld4
TLD4         f63+91 - sm=75-103,110+ $tregs $hreg g:N(geoxg)@61-63 $tmask
          ; .SCR@60 .{R G B A}@87-88 .f16rnd@79-80 $tldoff4 .DC@78 .evict@84-86 .NODEP@90 $hfix ; widths=tld4
TLD4         364 - sm=75-90 $tregsb g:N(geoxg)@61-63 $tmask
          ; .SCR@60 .{R G B A}@87-88 .B .f16rnd@79-80 $tldoff4 .DC@78 .evict@84-86 .NODEP@90 59=1 ; widths=tld4
TLD4         d64+91 - sm=100-103,110+ $tregsb <120+>ux:UR@48?=URZ g:N(geoxg)@61-63 $tmask
          ; .SCR@60 .{R G B A}@87-88 .B .f16rnd@79-80 $tldoff4 .DC@78 .evict@84-86 .NODEP@90 <100-110>48-55=255
          ; widths=tld4
op TXD        read=texture class=tex
TXD          b6c - sm=75-90 $tregsd $hnum g:N(geoxd)@61-63 $tmask
          ; .f16rnd@79-80 $txdlc $toff .evict@84-86 .NODEP@90 59=0 ; widths=txd
TXD          f6c+91 - sm=75-103,110+ $tregsd $hreg g:N(geoxd)@61-63 $tmask
          ; .f16rnd@79-80 $txdlc $toff .evict@84-86 .NODEP@90 $hfix ; widths=txd
TXD          36d - sm=75-90 $tregsb g:N(geoxd)@61-63 $tmask
          ; .B .f16rnd@79-80 $txdlc $toff .evict@84-86 .NODEP@90 59=1 ; widths=txd
TXD          d6d+91 - sm=100-103,110+ $tregsb <120+>ux:UR@48?=URZ g:N(geoxd)@61-63 $tmask
          ; .B .f16rnd@79-80 $txdlc $toff .evict@84-86 .NODEP@90 <100-110>48-55=255 ; widths=txd
op TMML       read=texture class=tex
TMML         b69 - sm=75-90 e:R@64 d <- a:Rn@24-31 b:R@32-39?=RZ $hnum g:N(geo)@61-63 $tmask
          ; .LOD .NDV@77 .NODEP@90 59=0 ; widths=tex
TMML         f69+91 - sm=75-103,110+ e:R@64 d <- a:Rn@24-31 b:R@32-39?=RZ <75-90>u:URn@40 <75-90>off:I(u)@46-53
          <100+>u:UR@40 g:N(geo)@61-63 $tmask ; .LOD <75-90>.NDV@77 <100+>.NDV@76 .NODEP@90 $hfix <120+>48-55=255
          ; widths=tex
TMML         36a - sm=75-90 e:R@64 d <- a:Rn@24-31 b:Rn@32-39 g:N(geo)@61-63 $tmask ; .B .LOD .NDV@77 .NODEP@90 59=1
          ; widths=tex
op TXQ        read=texture class=tex
TXQ          b6f - sm=75-90 e:R@64 d <- a:Rn@24-31 q:N(header)@62-63 $hnum mask:I(u)@72-75 ; .NODEP@90 59=0 ; widths=txq
TXQ          f6f+91 - sm=75-103,110+ e:R@64 d <- a:Rn@24-31 q:N(header)@62-63 <75-90>u:URn@40 <75-90>off:I(u)@46-53
          <100+>u:UR@40 <100+>off:I(u) mask:I(u)@72-75 ; .NODEP@90 <75-90>59=0 ; widths=txq
TXQ          370 - sm=75-90 e:R@64 d <- a:Rn@24-31 q:N(header)@62-63 mask:I(u)@72-75 ; .B .NODEP@90 59=1 ; widths=txq
# ---- what ptxas uses beside them: sums over a quad, the mask of active threads
enum threads = 26=MACTIVE
op FSWZADD    effect=warp convergent varies class=fma
FSWZADD      822 -            d <- a b:R@64 signs:SWZ@32-39      ; .FTZ@80 .rnd@78-79 .NDV@77 ; reuse=1
BMOV.32      f55 - sm=75-89   D:B@16 <- n:N(threads)@24-29       ; 84=0
BMOV.32      f56 - sm=75-89   n:N(threads)@24-29 <- S:B@16       ; .PQUAD@84
# ---- surfaces
def sorder  = <75>.{? _ STRONG MMIO}@79-80 <75>.{CTA SM GPU SYS}@77-78 <75>.PRIVATE@76 <80+>.ord80@77-80
def sordst  = <75>.{? _ STRONG MMIO}@79-80 <75>.{CTA SM GPU SYS}@77-78 <75>.PRIVATE@76 <80+>.sto80@77-80
def sordat  = <75>.{? _ STRONG ?}@79-80 <75>.{CTA SM GPU SYS}@77-78 <75>.PRIVATE@76 <80+>.sto80@77-80
def sdmods  = .D .BA@72 .sgeo@61-63 .evict@84-86 .ssize@73-75
def spmods  = .P .sgeo@61-63 .evict@84-86
def sreg    = <75-90>u:URn@40 <75-90>off:I(u)@46-53 <100+>u:UR@40 <120+>ux:UR@48?=URZ
def sux     = <120+>ux:UR@48?=URZ
op SULD       read=surface class=tex
SULD         b99 - sm=75-90 Pu?=PT d/ssize <- m:M(R24,!r) $hnum   ; $sdmods $sorder .clamp@59-60 ; widths=sur
SULD         f99+91 - sm=75-103,110+ Pu?=PT d/ssize <- m:M(R24,!r) $sreg
          ; $sdmods $sorder .clamp@59-60 <100-110>48-55=255 ; widths=sur
SULD         99a - sm=75-103,110+ Pu?=PT d/ssize <- m:M(R24,!r) c:Rn@64 $sux  ; $sdmods $sorder .clamp@59-60
          ; widths=sur
SULD         b97 - sm=75-90 Pu?=PT d/smask <- m:M(R24,!r) $hnum   ; $spmods $sorder .smask@72-75 .clamp@59-60
          ; widths=sur
SULD         f97+91 - sm=75-103,110+ Pu?=PT d/smask <- m:M(R24,!r) $sreg
          ; $spmods $sorder .smask@72-75 .clamp@59-60 <100-110>48-55=255 ; widths=sur
SULD         998 - sm=75-103,110+ Pu?=PT d/smask <- m:M(R24,!r) c:Rn@64 $sux
          ; $spmods $sorder .smask@72-75 .clamp@59-60 ; widths=sur
op SUST       write=surface class=sust
SUST         b9d - sm=75-90 <- m:M(R24,!r) b:R@32-39/ssize $hnum  ; $sdmods $sordst .clamp@59-60 ; widths=sur
SUST         f9d+91 - sm=75-103,110+ <- m:M(R24,!r) b:R@32-39/ssize $sreg
          ; $sdmods $sordst .clamp@59-60 <100-110>48-55=255 ; widths=sur
SUST         99e - sm=75-103,110+ <- m:M(R24,!r) b:R@32-39/ssize c:Rn@64 $sux ; $sdmods $sordst .clamp@59-60
          ; widths=sur
SUST         b9b - sm=75-90 <- m:M(R24,!r) b:R@32-39/smask $hnum  ; $spmods $sordst .smask@72-75 .clamp@59-60
          ; widths=sur
SUST         f9b+91 - sm=75-103,110+ <- m:M(R24,!r) b:R@32-39/smask $sreg
          ; $spmods $sordst .smask@72-75 .clamp@59-60 <100-110>48-55=255 ; widths=sur
SUST         99c - sm=75-103,110+ <- m:M(R24,!r) b:R@32-39/smask c:Rn@64 $sux
          ; $spmods $sordst .smask@72-75 .clamp@59-60 ; widths=sur
op SUATOM     read=surface write=surface atomic varies class=tex
SUATOM       593 - sm=75-90 Pu?=PT d/stype <- m:M(R24,!r) b:R@32-39/stype $hnum
          ; .D .BA@72 .sgeo@61-63 .satomx@87-90 .evict@84-86 .stype@73-75 $sordat .clamp@59-60 64-71=255 ; widths=sur
SUATOM       f93+91 - sm=75-103,110+ Pu?=PT d/stype <- m:M(R24,!r) b:R@32-39/stype $sreg
          ; .D .BA@72 .sgeo@61-63 .satomx@87-90 .evict@84-86 .stype@73-75 $sordat .clamp@59-60 64-71=255
          <100-110>48-55=255 ; widths=sur
SUATOM       394 - sm=75-103,110+ Pu?=PT d/stype <- m:M(R24,!r) b:R@32-39/stype c:Rn@64 $sux
          ; .D .BA@72 .sgeo@61-63 .satomx@87-90 .evict@84-86 .stype@73-75 $sordat .clamp@59-60 ; widths=sur
op SURED      read=surface write=surface atomic class=sust
SURED        59f - sm=75-90 <- m:M(R24,!r) b:R@32-39/stype $hnum
          ; .D .BA@72 .sgeo@61-63 .satom@87-89 .evict@84-86 .stype@73-75 $sordat .clamp@59-60 ; widths=sur
SURED        f9f+91 - sm=75-103,110+ <- m:M(R24,!r) b:R@32-39/stype $sreg
          ; .D .BA@72 .sgeo@61-63 .satom@87-89 .evict@84-86 .stype@73-75 $sordat .clamp@59-60 <100-110>48-55=255
          ; widths=sur
SURED        3a0 - sm=75-103,110+ <- m:M(R24,!r) b:R@32-39/stype c:Rn@64 $sux
          ; .D .BA@72 .sgeo@61-63 .satom@87-89 .evict@84-86 .stype@73-75 $sordat .clamp@59-60 ; widths=sur
"""
