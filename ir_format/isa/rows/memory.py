"""Memory, caches, atomics, fences."""

from __future__ import annotations

TEXT = r"""
def smsize  = <75-89>.{_:1 S32:1 64:2 ? ? ? ? ?}:at@73-75 <90+>.{_:1 S32:1 64:2 ? 128:4 ? ? ?}:at@73-75
enum synop   = _ A1T0 A0T1 A0TR A0TX ART0 ? ?
enum usynop  = _ A1T0 A0T1 A0TR A0TX ART0 ACT0 ?
def aatomf  = <90>m:M(R24,O40-63,U64,X71,W70) <100+>m:M(R24,O40-62,U64,X90,W63)
enum ordcp   = _ CONSTANT.PRIVATE CONSTANT.CTA CONSTANT.CTA.PRIVATE CONSTANT MMIO.CTA GPU.PRIVATE MMIO.CTA.PRIVATE
          MMIO.SM CONSTANT.SM MMIO.VC CONSTANT.SM.PRIVATE
               MMIO.GPU CONSTANT.VC CONSTANT.VC.PRIVATE CONSTANT.GPU
def ordatom  = <75>.{? _ STRONG ?}@79-80 <75>.{CTA SM GPU SYS}@77-78 <75>.PRIVATE@76 <80+>.sto80@77-80
def afsize  = .{F16x2.RN:1 F16x4.RN:2 F16x8.RN:4 BF16x2.RN:1 BF16x4.RN:2 BF16x8.RN:4 ? ? ? F32.FTZ.RN:1 F32x2.FTZ.RN:2
          F32x4.FTZ.RN:4 F32.RN:1 F32x2.RN:2 F32x4.RN:4 F64.RN:2}:at@73-76
def asize   = <75-89>.{_:1 S32:1 64:2 F32.FTZ.RN:1 F16x2.RN:1 S64:2 F64.RN:2 ?}:at@73-75
          <90+>.{_:1 S32:1 64:2 S64:2 128:4 ? ? ?}:at@73-75
def policy  = <75,90+>pol:H@101?=0
def ared    = <75-90>m:M(R24,O40-63,U64,X71,W90) <100+>m:M(R24,O40-63,U64,X81,W90)
def aatom   = <75-89>m:M(R24,O40-63,U64,X71,W70,!dp) <90>m:M(R24,O40-63,U64,X71,W70) <100+>m:M(R24,O40-62,U64,X76,W63)
def astore  = m:M(R24,O40-63,U64,X76)
def aload   = m:M(R24,O40-63,U32,X76)
enum lsize   = U8:1 S8:1 U16:1 S16:1 _:1 64:2 128:4 ?
enum ltc     = _ LTC64B LTC128B <75>? <80+>LTC256B
enum ord80   = _ CONSTANT.PRIVATE CONSTANT.CTA CONSTANT.CTA.PRIVATE CONSTANT STRONG.SM STRONG.GPU.PRIVATE STRONG.GPU
          MMIO.GPU CONSTANT.SM
               STRONG.SYS CONSTANT.SM.PRIVATE MMIO.SYS CONSTANT.VC CONSTANT.VC.PRIVATE CONSTANT.GPU
enum sto80   = _ CONSTANT.PRIVATE CONSTANT.CTA CONSTANT.CTA.PRIVATE STRONG.SM.PRIVATE STRONG.SM STRONG.GPU.PRIVATE
          STRONG.GPU MMIO.GPU CONSTANT.SM
               STRONG.SYS CONSTANT.SM.PRIVATE MMIO.SYS CONSTANT.VC CONSTANT.VC.PRIVATE CONSTANT.GPU
enum stg80   = _ CONSTANT.PRIVATE CONSTANT.CTA CONSTANT.CTA.PRIVATE STRONG.SM.PRIVATE STRONG.SM STRONG.GPU.PRIVATE
          STRONG.GPU MMIO.GPU CONSTANT.SM
               STRONG.SYS CONSTANT.SM.PRIVATE MMIO.SYS <80-90>CONSTANT.VC <80-90>CONSTANT.VC.PRIVATE <80-90>CONSTANT.GPU
               <100+>SYS.ORDERED <100+>STRONG.SYS.ORDERED <100+>MMIO.SYS.ORDERED
enum atomop  = ADD MIN MAX INC DEC AND OR XOR EXCH ? ? ? ? ? ? ?
enum redop   = ADD MIN MAX INC DEC AND OR XOR
enum atype   = _:1 S32:1 64:2 F32.FTZ.RN:1 F16x2.RN:1 S64:2 F64.RN:2 BF16_V2:1
enum cassize = _:1 ? 64:2 ? <75-89>? <90+>128:4 ? ? ?
def ordload  = <75>.{CONSTANT _ STRONG MMIO}@79-80 <75>.{CTA SM GPU SYS}@77-78 <75>.PRIVATE@76 <80+>.ord80@77-80
def ordstg   = <75>.{? _ STRONG MMIO}@79-80 <75>.{CTA SM GPU SYS}@77-78 <75>.PRIVATE@76 <80+>.stg80@77-80
def ordstore = <75>.{? _ STRONG MMIO}@79-80 <75>.{CTA SM GPU SYS}@77-78 <75>.PRIVATE@76 <80+>.sto80@77-80
# ---- loads and stores
op LDC        pure read=const constant remat=3 class=ldc
LDC          b82 - sm=75+ d/csize <- k:K@5               ; .csize@73-75 .{_ IL IS ISL}@78-79
op LDG        read=global class=ldg
LDG          181 G forms=r,v,w,d Pu?=PT d/msize <- $aload Pz:PI@64?=PT $policy
          ; .E@72 .evict@84-86 .ltc@68-69 .msize@73-75 $ordload
LDG          181 G forms=p      Pu?=PT d/msize <- $aload Pz:PI@64?=PT
          ; .E@72 .evict@84-86 .ltc@68-69 .msize@73-75 $ordload
op STG        write=global class=stg
STG          186 G forms=r,v,w,d <- $astore s:R@32/msize $policy    ; .E@72 .evict@84-86 .msize@73-75 $ordstg
STG          186 G forms=p      <- $astore s:R@32/msize    ; .E@72 .evict@84-86 .msize@73-75 $ordstg
op LD         read=generic varies class=ldg
LD           180 L forms=r      d/msize <- m:M(R24,O32-63) Pz:PI@64?=PT $policy
          ; .E@72 .evict@84-86 .ltc@68-69 .msize@73-75 $ordload
LD           180 G forms=v,w,d  d/msize <- $aload Pz:PI@64?=PT $policy
          ; .E@72 .evict@84-86 .ltc@68-69 .msize@73-75 $ordload
LD           180 G forms=p      d/msize <- $aload Pz:PI@64?=PT ; .E@72 .evict@84-86 .ltc@68-69 .msize@73-75 $ordload
op ST         write=generic class=stg
ST           185 G forms=v,w,d  <- $astore s:R@32/msize $policy    ; .E@72 .evict@84-86 .msize@73-75 $ordstore
ST           185 G forms=p      <- $astore s:R@32/msize    ; .E@72 .evict@84-86 .msize@73-75 $ordstore
ST           185 G forms=r      <- m:M(R24,O32-63) s:R@64/msize $policy ; .E@72 .evict@84-86 .msize@73-75 $ordstore
op LDL        read=local varies class=ldl
LDL          183 L              d/lsize <- m:M(R24,O40-63,U32)             ; .evict@84-86 .lsize@73-75
op STL        write=local class=stg
STL          187 L1             <- m:M(R24,O40-63,U64) s:R@32/lsize        ; .evict@84-86 .lsize@73-75
op LDS        read=shared class=lds
LDS          184 L  sm=75       d/lsize <- m:M(R24,O40-63,U32,S78)         ; .U@76 .lsize@73-75
LDS          184 L  sm=80+      d/lsize <- m:M(R24,O40-63,U32,S78)         ; .lsize@73-75
op STS        write=shared class=sts
STS          188 L1             <- m:M(R24,O40-63,U64,S78) s:R@32/lsize    ; .lsize@73-75
op LDSM       read=shared convergent varies class=lds
LDSM         03b L              d/lnum <- <75>m:M(R24,O40-63,U32,A) <80+>m:M(R24,O40-63,U32,Y)
          ; .16 .{M88:1 MT88:1 M816:1 M832:1}@78-79 .{_:1 2:2 4:4 ?}:lnum@72-73
# ---- atomics
op ATOMS      read=shared write=shared atomic waits varies class=atom
ATOMS        18c A forms=r      d/at <- m:M(R24,O40-63,S78) s:R@32/at cc:H@64-71?=255 ; .atomop@87-90 $smsize
ATOMS        18c A forms=u      d/at <- m:M(R24,O40-63,U64,S78) s:R@32/at ; .atomop@87-90 $smsize
ATOMS.CAS    38d A forms=r      d/cassize <- m:M(R24,O40-63,S78) s:R@32/cassize c/cassize ; .cassize@73-75 87-88=0
op ATOMG      read=global write=global atomic waits varies class=atom
ATOMG        1a8 G  forms=r     Pu=PT d/at <- m:M(R24,O40-63) s:R@32/at cc:H@64-71?=255 $policy
          ; .E@72 .atomop@87-90 .evict@84-86 $asize $ordatom
ATOMG        1a8 G  forms=v,w,d Pu=PT d/at <- $aatom s:R@32/at $policy
          ; .E@72 .atomop@87-90 .evict@84-86 $asize $ordatom
ATOMG        1a8 G  forms=p     Pu=PT d/at <- $aatom s:R@32/at ; .E@72 .atomop@87-90 .evict@84-86 $asize $ordatom
ATOMG        1a9 G  forms=r     Pu=PT d/cassize <- m:M(R24,O40-63) <75>s:Rn@32/cassize <80+>s:R@32/cassize c/cassize
          $policy ; .E@72 .CAS .evict@84-86 .cassize@73-75 $ordatom 87-88=0
ATOMG        1a3 G  forms=r sm=90+ Pu=PT d/at <- m:M(R24,O40-63) s:R@32/at
          ; .E@72 .{ADD MIN MAX ?}@88-89 87=0 .evict@84-86 $afsize $ordatom
ATOMG        1a3 GU sm=90+      Pu=PT d/at <- $aatomf s:R@32/at $policy
          ; .E@72 .{ADD MIN MAX ?}@88-89 87=0 .evict@84-86 $afsize $ordatom
op ATOM       read=generic write=generic atomic waits varies class=atom
ATOM         18a G  forms=r     Pu=PT d/at <- m:M(R24,O40-63) s:R@32/at cc:H@64-71?=255 $policy
          ; .E@72 .atomop@87-90 .evict@84-86 $asize $ordatom
ATOM         18a G  forms=v,w,d Pu=PT d/at <- $aatom s:R@32/at $policy
          ; .E@72 .atomop@87-90 .evict@84-86 $asize $ordatom
ATOM         18a G  forms=p     Pu=PT d/at <- $aatom s:R@32/at ; .E@72 .atomop@87-90 .evict@84-86 $asize $ordatom
ATOM         18b G  forms=r     Pu=PT d/cassize <- m:M(R24,O40-63) s:R@32/cassize c/cassize $policy
          ; .E@72 .CAS .evict@84-86 .cassize@73-75 $ordatom 87-88=0
ATOM         18b G  forms=r     Pu=PT d/cassize <- m:M(R24,O40-63) s:R@32/cassize c/cassize $policy
          ; .E@72 .CAST .SPIN@88 .evict@84-86 .cassize@73-75 $ordatom 87=1
ATOM         1a2 G  forms=r sm=90+ Pu=PT d/at <- m:M(R24,O40-63) s:R@32/at
          ; .E@72 .{ADD MIN MAX ?}@88-89 87=0 .evict@84-86 $afsize $ordatom
ATOM         1a2 GU sm=90+      Pu=PT d/at <- $aatomf s:R@32/at $policy
          ; .E@72 .{ADD MIN MAX ?}@88-89 87=0 .evict@84-86 $afsize $ordatom
ATOM         18a GA forms=v,w sm=80-89 Pu=PT d <- m:M(R24,O40-63,U64,X71,W70,!dp)
          ; .E 72=1 .POPC.INC 87-90=10 .evict@84-86 .32 73-76=0 $ordatom
ATOM         18a GA forms=v,w sm=80-89 Pu=PT d2 <- m:M(R24,O40-63,U64,X71,W70,!dp)
          ; .E 72=1 .ARRIVE 87-90=9 .evict@84-86 .64 73-76=2 $ordatom
op RED        read=generic write=generic atomic class=red
RED          18e G4 sm=75-89 forms=r,v,w,d <- $ared s:R@32/at $policy
          ; .E@72 .redop@87-89 .evict@84-86 $asize $ordatom
RED          18e G4 sm=75-89 forms=p <- $ared s:R@32/at    ; .E@72 .redop@87-89 .evict@84-86 $asize $ordatom
op REDG       read=global write=global atomic class=red
REDG         18e G4 sm=90+      <- $ared s:R@32/at $policy
          ; .E@72 .redop@87-89 .evict@84-86 .{_:1 S32:1 64:2 S64:2 ? ? ? ?}:at@73-75 $ordatom
REDG         1a6 G4 sm=90+      <- $ared s:R@32/at $policy
          ; .E@72 .{ADD ? MIN ? MAX ? ? ?}@87-89 .evict@84-86 $afsize $ordatom
# ---- fences and caches
op MEMBAR     effect=order waits fence noduplicate class=membar
MEMBAR       992 -              <-
          ; <75>.{SC ALL _ ?}@79-80 <80+>.{SC ALL _ MMIO}@79-80 <75-89>.{CTA SM GPU SYS ? VC ? ?}@76-78
          <90+>.{CTA SM GPU SYS ? VC CTA.PARTIAL ?}@76-78
op ERRBAR     effect=order fence noduplicate class=errbar
ERRBAR       9ab -              <-                                      ;
op CCTL       effect=cache fence noduplicate class=cctl|LDCU:cctlu
CCTL         98f -              <- m:M(R24,O32-63)
          ; .E@72 .{_ U C I}@78-79 .{PF1 PF2 WB IV ? RS ? ? ? <75>? <80+>PML2 <75>? <80+>DML2 <75>? <80+>RML2 ? ? ?
          ?}@87-90
CCTL         98f -              <-
          ; .{_ U C I}@78-79 .{? ? ? ? IVALL ? IVALLP WBALL WBALLP ? ? ? ? ? ? ?}@87-90 24-31=255
# ---- asynchronous copies
op LDGSTS     read=global write=shared class=ldgsts
LDGSTS       1ae GA sm=80-90   <- t:MS(R16,O44-63) m:M(R24,O32-43,U64,X76,W70,Zv) Pp?=PT $policy
          ; .E .BYPASS@81=0 .evict@84-86 .ltc@71-72 .{? ? ? ? _ 64 128 ?}@73-75 .ZFILL@82 .ordcp@77-80
LDGSTS       1ae GA sm=100+     <- t:MS(R16,O44-63) m:M(R24,O32-43,U64,X76,W83,Zv) Pp?=PT $policy
          ; .E .BYPASS@81=0 .evict@84-86 .ltc@72-73 .{_ 64 128 ?}@74-75 .ZFILL@82 .ordcp@77-80
LDGSTS      1ae GT sm=80-90    <- t:MT(R16,O44-63,U64) m:M(R24,O32-43,N64,X76,W70,Zv) Pp?=PT $policy
          ; .E .BYPASS@81=0 .evict@84-86 .ltc@71-72 .{? ? ? ? _ 64 128 ?}@73-75 .ZFILL@82 .ordcp@77-80
LDGSTS      1ae GT sm=100+     <- t:MT(R16,O44-63,U64) m:M(R24,O32-43,N64,X76,W83,Zv) Pp?=PT $policy
          ; .E .BYPASS@81=0 .evict@84-86 .ltc@72-73 .{_ 64 128 ?}@74-75 .ZFILL@82 .ordcp@77-80
op LDGDEPBAR  effect=order fence commit class=ldgdep
LDGDEPBAR    9af -  sm=80+      <-                                      ;
op DEPBAR     effect=order waits fence class=depbar
DEPBAR       91a -              <- sb:N(sb)@44-46 n:I(u)@38-43 set:SBS@32-37?={} ; .LE 47=1
DEPBAR       91a -              <- set:SBS@32-37?={}                    ; 47=0
LDG.E        17e GU sm=100+     e4:R@64 d4 <- m:M(R24,O40-56*32,U32,X76,W75,!vd) mask:I(u)@57-63+72?=255 Pz:PI@87?=PT
          $policy ; .evict@84-86 .{EFL2 ENL2 ELL2 ?}@81-82 .{_ LTC64B LTC128B LTC256B}@73-74 .256 .ord80@77-80
STG.E        17f GU sm=100+     <- m:M(R24,O40-58*32,U64,X76,W75,!vd) s4:R@32 e4:R@16 mask:I(u)@59-63+88-90?=255 $policy
          ; .evict@84-86 .{EFL2 ENL2 ELL2 ?}@81-82 .256 .stg80@77-80
ATOMS.POPC.INC.32 18c AP forms=u sm=80+ d <- m:M(R24,O40-63,U64,S78)         ; <80-89>87-90=10 <90+>87-90=11 73-75=0
ATOMS.CAST   38d - sm=75-90     d/cassize <- m:M(R24,O40-63,S78) s:R@32/cassize c/cassize ; .SPIN@88 .cassize@73-75 87=1
ATOMS.CAST   58d - sm=100+      Pu=PT <- m:M(R24,O40-63,S78) s:R@32/cassize c/cassize ; .SPIN@88 .cassize@73-75 87=1
LDGMC        1a4 GU sm=90+      d/at <- <90>m:M(R24,O40-63,U64,X71,W70) <100+>m:M(R24,O40-63,U64,X82,W81)
          ; .E 72=1 .{ADD MIN MAX ? ? AND OR XOR ? ? ? ? ? ? ? ?}@87-90 .{32:1 S32:1 64:2 S64:2 ? ? ? ?}:at@73-75 76=0
          .STRONG.SYS 77-80=10
LDGMC        1a5 GU sm=90+      d/at <- <90>m:M(R24,O40-63,U64,X71,W70) <100+>m:M(R24,O40-63,U64,X82,W81)
          ; .E 72=1 .{ADD MIN MAX <90>F32ADD <100+>HPADD}@88-89 87=0
          .{F16x2.RN:1 F16x4.RN:2 F16x8.RN:4 BF16x2.RN:1 BF16x4.RN:2 BF16x8.RN:4 ? ? ? ? ? ? F32.RN:1 F32x2.RN:2
          F32x4.RN:4 F64.RN:2}:at@73-76 .STRONG.SYS 77-80=10
op QSPC       pure class=sreg
QSPC         3aa -              Pu=PT d <- m:M(R24,O40-63)              ; .E@72 .{G L S <75-89>? <90+>D}@73-74
QSPC         1aa GU             Pu=PT d <- m:M(R24,O40-63,U32,W90,X126)   ; .E@72 .{G L S <75-89>? <90+>D}@73-74
op REDAS      read=cluster write=cluster atomic class=red
REDAS        1be GS sm=90+      <- m:M(R24,O40-63,U64,X126,W72,Z) s:R@32/rsz
          ; .redop@87-89 .{_:1 S32:1 64:2 ?}:rsz@73-74
op STAS       write=cluster class=sts
STAS         1bd GS sm=90+      <- m:M(R24,O40-63,U64,X126,W90,Z) s:R@32/ssz ; .{? ? ? ? _:1 64:2 128:4 ?}:ssz@73-75
op CGAERRBAR  effect=order fence noduplicate class=cgaerrbar
CGAERRBAR    5ab -  sm=90+      <-                                      ;
op FENCE      effect=order wall noduplicate class=fence
FENCE.VIEW.ASYNC 3c6 - sm=90+   <-                                      ; .{S G}@72
ATOMS.ARRIVE.64 18c AP forms=u sm=80-103,110+ d2 <- m:M(R24,O40-63,U64,S78) ; <80-89>87-90=9 <90+>87-90=10 73-75=2
CCTL.E.C.LDCU 540+91 - sm=100+     <- m:MUO(U24,O32-63,Z)                    ; .IV .DEEP@86 87-90=3 78-80=2
op USYNCS     read=shared write=shared waits fence protocol noduplicate class=syncs
USYNCS.EXCH.64 5b2+91 - sm=107   ud2 <- m:MUO(U24,O40-63) us2:UR@32      ; 72-73=1 ; guard=UP
USYNCS.ARRIVE.TRANS64 9bf+91 - sm=107 ud2 <- m:MUO(U24,O40-63) s:URX(24)
          ; .{_ TMASK RED ?}@73-74 .OPTOUT@75 .usynop@84-86 76-77=0 ; guard=UP
USYNCS.ARRIVE.TRANS64 3bf+91 - sm=107 <- m:MUO(U24,O40-63) s:URX(24) c:UR@64
          ; .{_ TMASK RED ?}@73-74 .OPTOUT@75 .usynop@84-86 .MULTICAST 76-77=0 ; guard=UP
USYNCS.PHASECHK.TRANS64 5bf+91 - sm=107 UPu <- m:MUO(U24,O40-63) s:URX(24) ; .TRYWAIT@72 .CONDITIONAL@74 76-77=1
          ; guard=UP
USYNCS.CCTL  db2+91 - sm=107   <- m:MUO(U24,O40-63)                         ; .{IV WB}@72 73=0 ; guard=UP
op SYNCS      read=shared write=shared waits fence protocol noduplicate class=syncs
SYNCS.PHASECHK.TRANS64 5a7+91 - sm=90 Pu=PT <- m:MT(R24,O40-63,U64) s:R@32 ; 70-71=1 .TRYWAIT@72
SYNCS.PHASECHK.TRANS64 5a7+91 - sm=100+ Pu=PT <- m:MT(R24,O40-63,U64) s:R@32 ; 76-77=1 .TRYWAIT@72 <107>.CONDITIONAL@74
SYNCS.LD.64  5b1+91 - sm=90+   d2 <- m:MT(R24,O40-63,U64)                ; 73=1 .WATCH@74
SYNCS.ARRIVE.TRANS64 1a7 L forms=u sm=90+ d2 <- m:M(R24,O40-63,U64) s:R@32
          ; .{_ TMASK RED ?}@73-74 .OPTOUT@75 .synop@84-86 <90>70-71=0
SYNCS.CCTL   9b1 L forms=u sm=90+ <- m:M(R24,O40-63,U64)                ; .{IV WB}@72
SYNCS.CCTL   9b1 - sm=90+      <-                                      ; .{IVALL WBALL}@72 91=0
SYNCS.EXCH.64 5b2+91 - sm=90-103,110+   ud2 <- m:MUO(U24,O40-63) us2:UR@32      ; 72-73=1 ; guard=UP
"""
