"""Control flow, barriers, warp operations, special registers."""

from __future__ import annotations

TEXT = r"""
enum masks   = 24=MEXITED 25=MKILL 26=MACTIVE
enum rpc     = Rpc.LO Rpc.HI
enum sb      = SB0 SB1 SB2 SB3 SB4 SB5 ? ?
enum sr      = 0=SR_LANEID SR_CLOCK SR_VIRTCFG SR_VIRTID 15=SR_ORDERING_TICKET SR_PRIM_TYPE SR_INVOCATION_ID
          SR_Y_DIRECTION SR_THREAD_KILL
               SM_SHADER_TYPE SR_DIRECTCBEWRITEADDRESSLOW SR_DIRECTCBEWRITEADDRESSHIGH SR_DIRECTCBEWRITEENABLED
               25=SR_MACHINE_ID_1
               SR_MACHINE_ID_2 SR_MACHINE_ID_3 SR_AFFINITY SR_INVOCATION_INFO SR_WSCALEFACTOR_XY SR_WSCALEFACTOR_Z
               SR_TID SR_TID.X SR_TID.Y
               SR_TID.Z 37=SR_CTAID.X SR_CTAID.Y SR_CTAID.Z SR_NTID SR_CirQueueIncrMinusOne SR_NLATC
               44=SR_SM_SPA_VERSION
               SR_MULTIPASSSHADERINFO SR_LWINHI SR_SWINHI SR_SWINLO SR_SWINSZ SR_SMEMSZ SR_SMEMBANKS SR_LWINLO SR_LWINSZ
               SR_LMEMLOSZ
               SR_LMEMHIOFF SR_EQMASK SR_LTMASK SR_LEMASK SR_GTMASK SR_GEMASK SR_REGALLOC SR_BARRIERALLOC
               64=SR_GLOBALERRORSTATUS
               66=SR_WARPERRORSTATUS SR_VIRTUALSMID SR_VIRTUALENGINEID 80=SR_CLOCKLO SR_CLOCKHI SR_GLOBALTIMERLO
               SR_GLOBALTIMERHI SR_ESR_PC
               SR_ESR_PC_HI 96=SR_HWTASKID SR_CIRCULARQUEUEENTRYINDEX SR_CIRCULARQUEUEENTRYADDRESSLOW
               SR_CIRCULARQUEUEENTRYADDRESSHIGH
               SR_PM0 SR_PM_HI0 SR_PM1 SR_PM_HI1 SR_PM2 SR_PM_HI2 SR_PM3 SR_PM_HI3 SR_PM4 SR_PM_HI4 SR_PM5 SR_PM_HI5
               SR_PM6 SR_PM_HI6 SR_PM7
               SR_PM_HI7 SR_SNAP_PM0 SR_SNAP_PM_HI0 SR_SNAP_PM1 SR_SNAP_PM_HI1 SR_SNAP_PM2 SR_SNAP_PM_HI2 SR_SNAP_PM3
               SR_SNAP_PM_HI3
               SR_SNAP_PM4 SR_SNAP_PM_HI4 SR_SNAP_PM5 SR_SNAP_PM_HI5 SR_SNAP_PM6 SR_SNAP_PM_HI6 SR_SNAP_PM7
               SR_SNAP_PM_HI7 SR_VARIABLE_RATE
               <75>24=SR_MACHINE_ID_0 <80+>24=SR_SW_SCRATCH <90+>65=SR_CGAERRORSTATUS <90,110>134=SR_WARPGROUP_INFO
               <90,110>135=SR_WARPGROUPID
               <90+>136=SR_CgaCtaId <90+>137=SR_GpcLocalCgaId <90+>139=SR_CTARegPoolSz <100+>138=SR_CgaSize
               <100+>141=SR_TMemSz
               133=__HIR0X000 <120+>142=SR_CONTEXT_SAVE_ADDR_LO <120+>143=SR_CONTEXT_SAVE_ADDR_HI 255=SRZ *=SR
# ---- branches
op BRA        ctl=branch wall class=branch
BRA          947 - sm=75-89     <- Pp?=PT t:T@34-81             ; .{_ INC DEC ?}@85-86 .{_ U DIV CONV}@32-33 84=0
BRA          947 - sm=90+       <- Pp?=PT t:T@16-23+34-81       ; .{_ INC DEC ?}@85-86 .{_ U DIV CONV}@32-33 84=0
BRA          547+91 - sm=90+    <- UPp:UP@24-26-@27 t:T@16-23+34-81 ; .{_ INC DEC ?}@85-86 .U 32-33=1 87-90=7
BRA          547+91 - sm=90+    <- Pp UPp:UP@24-26-@27 t:T@16-23+34-81 ; .{_ INC DEC ?}@85-86 .U 32-33=1
BRA.U.ANY    547+91 - sm=90+    <- UPp:UP@24-26-@27 t:T@16-23+34-81 ; 32-33=1 84=1 87-90=7
BRA.U.ANY    547+91 - sm=90+    <- Pp UPp:UP@24-26-@27 t:T@16-23+34-81 ; 32-33=1 84=1
BRA          947+91 - sm=80-89  <- Pp?=PT ur:UR@24-@30~ t:T@34-81 ; .{_ INC DEC ?}@85-86 .{? ? DIV CONV}@32-33 31=0 84=0
BRA          947+91 - sm=90     <- Pp?=PT ur:UR@24-@30~ t:T@16-23+34-81
          ; .{_ INC DEC ?}@85-86 .{? ? DIV CONV}@32-33 31=0 84=0
BRA          947+91 - sm=100+   <- Pp?=PT ur:UR@24-@82~ t:T@16-23+34-81
          ; .{_ INC DEC ?}@85-86 .{? ? DIV CONV}@32-33 84=0
op BRX        ctl=branch diverging wall noduplicate class=branch
BRX          949 - sm=75-89     <- Pp?=PT a2 t:Tr(sp)@34-81          ; .{_ INC DEC ?}@85-86
BRX          949 - sm=90+       <- Pp?=PT a2 t:Tr(sp)@16-23+34-81    ; .{_ INC DEC ?}@85-86
op BRXU       ctl=branch diverging wall noduplicate class=branch
BRXU         958+91 - sm=75-89     <- Pp?=PT ua2:UR@24 t:Tr(sp)@34-81    ; .{_ INC DEC ?}@85-86 .{_ U DIV CONV}@32-33
BRXU         958+91 - sm=90+       <- Pp?=PT ua2:UR@24 t:Tr(sp)@16-23+34-81 ; .{_ INC DEC ?}@85-86 .{_ U DIV CONV}@32-33
op JMP        ctl=branch wall noduplicate class=branch
JMP          94a - sm=75-89     <- Pp?=PT t:Ta@34-80            ; .{_ INC DEC ?}@85-86 .{_ U ? CONV}@32-33
JMP          94a - sm=90+       <- Pp?=PT t:Ta@16-23+34-80      ; .{_ INC DEC ?}@85-86 .{_ U ? CONV}@32-33
op CALL       ctl=call waits diverging varies wall noduplicate boundary class=call
CALL.REL     944 - sm=75-89     <- Pp?=PT t:T@34-81                 ; .NOINC@86
CALL.REL     944 - sm=90+       <- Pp?=PT t:T@16-23+34-81           ; .NOINC@86
CALL.REL     344 - sm=75-89     <- Pp?=PT a2 t:T(sp)@34-81          ; .NOINC@86
CALL.REL     344 - sm=90+       <- Pp?=PT a2 t:T(sp)@16-23+34-81    ; .NOINC@86
CALL.REL     944+91 - sm=90+    <- Pp?=PT ua2:UR@24 t:T(sp)@16-23+34-81 ; .NOINC@86
CALL.REL     944+91 - sm=80-89  <- Pp?=PT ua2:UR@24 t:T(sp)@34-81 ; .NOINC@86
CALL.ABS     343 - sm=75+       <- Pp?=PT a2:R@24                       ; .NOINC@86
CALL.ABS     943 - sm=75-89     <- Pp?=PT t:Ta@34-80            ; .NOINC@86
CALL.ABS     943 - sm=90+       <- Pp?=PT t:Ta@16-23+34-80      ; .NOINC@86
op RET        ctl=ret wall noduplicate boundary class=ret
RET.REL      950 - sm=75-89     <- Pp?=PT a2 t:T(sp)@34-81          ; .NODEC@86 85=0
RET.REL      950 - sm=90+       <- Pp?=PT a2 t:T(sp)@16-23+34-81    ; .NODEC@86 85=0
RET.ABS      950 - sm=75-89     <- Pp?=PT a2 t:Tas(sp)@34-81         ; .NODEC@86 85=1
RET.ABS      950 - sm=90+       <- Pp?=PT a2 t:Tas(sp)@16-23+34-81   ; .NODEC@86 85=1
RET.REL      950+91 - sm=90+     <- Pp?=PT ua2:UR@24 t:T(sp)@16-23+34-81 ; .NODEC@86 85=0
RET.REL      950+91 - sm=80-89   <- Pp?=PT ua2:UR@24 t:T(sp)@34-81 ; .NODEC@86 85=0
RET.ABS      950+91 - sm=90+     <- Pp?=PT ua2:UR@24 t:Tas(sp)@16-23+34-81 ; .NODEC@86 85=1
RET.ABS      950+91 - sm=80-89   <- Pp?=PT ua2:UR@24 t:Tas(sp)@34-81 ; .NODEC@86 85=1
op EXIT       ctl=exit wall noduplicate class=branch
EXIT         94d -              <- Pp?=PT                       ; .{_ KEEPREFCOUNT PREEMPTED ?}@84-85 .NO_ATEXIT@86
op BPT        ctl=trap wall noduplicate class=branch
BPT.TRAP     95c -              <- i:I(u)@34-36?=0              ; 84-85=3
# ---- convergence
# What BSYNC and its kinds promise is a guess from ptxas's code (docs/simulator.md): a WARPSYNC lets threads at any
# BSYNC go, a YIELD those at a plain one.
op BSSY       ctl=bssy synchronizing waits diverging noduplicate class=bssy
BSSY         945 - sm=75-90     Pp?=PT B:B@16 <- t:T@34-63      ;
BSSY         945 - sm=100+      Pp?=PT B:B@16 <- t:T@34-63      ; .{_ RELIABLE RECONVERGENT ?}@72-73
op BSYNC      ctl=bsync waits diverging wall noduplicate class=branch
BSYNC        941 - sm=75-90     <- Pp?=PT B:B@16                ;
BSYNC        941 - sm=100+      <- Pp?=PT B:B@16                ; .{_ RELIABLE RECONVERGENT ?}@72-73
op BREAK      ctl=break diverging wall noduplicate class=branch
BREAK        942 - sm=75-90     <- Pp?=PT B:B@16                ;
BREAK        942 - sm=100+      <- Pp?=PT B:B@16                ; .{_ RELIABLE ? ?}@72-73
op WARPSYNC   effect=sync convergent waits wall class=branch
WARPSYNC     148 AB sm=80-89 forms=r <- Pp?=PT b                ; .EXCLUSIVE@86 ; reuse=0
WARPSYNC     148 AB sm=80-89 forms=i,k,u,x <- Pp?=PT b            ; 86=0 ; imm=u reuse=0
WARPSYNC     148 AB sm=75       <- Pp?=PT b                     ; ; imm=u reuse=0
WARPSYNC     348 - sm=90+       <- Pp?=PT a                     ; .EXCLUSIVE@85 86=0
WARPSYNC.ALL 948 - sm=90+       <- Pp?=PT                       ; 86=0
WARPSYNC.COLLECTIVE 348 - sm=90+  <- Pp?=PT a t:T@16-23+34-81         ; 86=1
op YIELD      effect=sync waits diverging wall noduplicate class=branch
YIELD        946 -              <- Pp?=PT                       ;
op NOP        effect=hint class=nop
NOP          918 -              <-                              ;
op NANOSLEEP  effect=sync waits diverging wall noduplicate class=branch
NANOSLEEP    15d AB             <- Pp?=PT b                             ; .RAND@86 .WARP@85 <75-89>84=0 <90+>.SYNCS@84
          ; imm=u reuse=0
# ---- barriers
op BAR        effect=sync convergent synchronizing waits fence class=bar
BAR          b1d -              <- i:I(u)@54-57 n:I(u)@42-53?=0         ; .SYNC 77-79=0 .DEFER_BLOCKING@80
BAR          b1d -              <- i:I(u)@54-57 n:I(u)@42-53            ; .ARV 77-79=1 80=0
BAR          91d -              <- i:I(u)@54-57 <75-89>b:R@32 <90+>b:Rn@32 ; .SYNC 77-79=0 .DEFER_BLOCKING@80
BAR          91d -              <- i:I(u)@54-57 b:R@32                  ; .ARV 77-79=1 80=0
BAR          51d -              <- b:R@32 n:I(u)@42-53?=0               ; .SYNC 77-79=0 .DEFER_BLOCKING@80
BAR          51d -              <- b:R@32 n:I(u)@42-53                  ; .ARV 77-79=1 80=0
BAR          31d -              <- b:R@32 n:R@32                        ; .SYNC 77-79=0 .DEFER_BLOCKING@80
BAR          31d -              <- b:R@32 n:R@32                        ; .ARV 77-79=1 80=0
# ---- warp operations
op SHFL       effect=warp convergent synchronizing varies class=shfl
SHFL         389 -              Pu=PT d <- a b c                         ; .{IDX UP DOWN BFLY}@58-59
SHFL         589 -              Pu=PT d <- a b c:I(u)@40-52              ; .{IDX UP DOWN BFLY}@58-59
SHFL         989 -              Pu=PT d <- a b:I(u)@53-57 c              ; .{IDX UP DOWN BFLY}@58-59
SHFL         f89 -              Pu=PT d <- a b:I(u)@53-57 c:I(u)@40-52   ; .{IDX UP DOWN BFLY}@58-59
op VOTE       effect=warp convergent synchronizing agrees class=vote
VOTE         806 -              d?=RZ Pu=PT <- Pp                       ; .{ALL ANY EQ ?}@72-73
op REDUX      effect=warp convergent synchronizing agrees class=redux
REDUX        3c4 -  sm=80+      d:UR@16 <- a                            ; .{_ OR XOR SUM MIN MAX ? ?}@78-80 .S32@73
# ---- special registers
op S2R        sreg speculatable constant remat=4 class=sreg
S2R          919 -              d <- sr:N(sr)@72-79             ;
op CS2R       sreg speculatable varies class=32:alu|disp64
CS2R         805 -              d <- sr:N(sr)@72-79             ; .32 80=0
CS2R         805 -              d2 <- sr:N(sr)@72-79            ; 80=1
op LEPC       effect=state speculatable varies wall noduplicate class=disp64
LEPC         34e - sm=75-110    d2 <-                                   ;
LEPC         94e - sm=90+       d2 <- t:Tb@24-81                        ;
op ENDCOLLECTIVE effect=sync wall noduplicate class=branch
ENDCOLLECTIVE 91b - sm=90+      <- Pp?=PT                       ;
op RPCMOV     effect=state class=alu
RPCMOV.32    352 - sm=90+       rpc:N(rpc)@31 <- b              ; ; reuse=1
RPCMOV.32    353 - sm=90+       d <- rpc:N(rpc)@31              ;
op MATCH      effect=warp convergent synchronizing varies class=shfl
MATCH.ALL    3a1 -              Pu=PT d <- a/mw                         ; .{_:1 U64:2}:mw@73 79=0
MATCH.ANY    3a1 -              d <- a/mw                               ; .{_:1 U64:2}:mw@73 79=1 81-83=7
op CREDUX     effect=warp convergent synchronizing agrees class=credux
CREDUX       2cc -  sm=100-107 d:UR@16 <- a
          ; .{MAX ? MIN ?}@78-79 .{_ S32 ? ?}@73-74 77=0 ; reuse=1
CREDUX       2cc -  sm=100-107 d:UR@16 <- a
          ; .{MAX MAXABS MIN MINABS}@78-79 .F32 73-74=2 .NAN@77 ; reuse=1
op PMTRIG     effect=state class=branch
PMTRIG       801 -              <- Pp?=PT i:I(u)@32-47                  ;
op ELECT      effect=warp convergent synchronizing waits varies noduplicate class=elect
ELECT        82f -  sm=90+      Pu=PT ud <- Pp                          ; .IGNOREKILL@85
op ACQBULK    effect=sync waits wall noduplicate class=gate
ACQBULK      82e -  sm=90+      <-                                      ;
op PREEXIT    effect=sync wall noduplicate class=gate
PREEXIT      82d -  sm=90+      <-                                      ;
BRA.U.ANY    947 - sm=90+       <- Pp?=PT t:T@16-23+34-81       ; 32-33=1 84=1
op B2R        effect=sync speculatable wall noduplicate class=sreg
B2R.RESULT   31c -              d Pu?=PT <-                             ; 78-79=1
B2R          31c -              d <- i:I(u)@54-57                       ; 78-79=0
BAR.RED      b1d -              <- i:I(u)@54-57 n:I(u)@42-53?=0 Pp
          ; 77-79=2 .{POPC AND OR ?}@74-75 .DEFER_BLOCKING@80
BAR.RED      91d -              <- i:I(u)@54-57 <75-89>b:R@32 <90+>b:Rn@32 Pp
          ; 77-79=2 .{POPC AND OR ?}@74-75 .DEFER_BLOCKING@80
BAR.RED      31d -              <- b:R@32 n:R@32 Pp
          ; 77-79=2 .{POPC AND OR ?}@74-75 .DEFER_BLOCKING@80
BAR.RED      51d -              <- b:R@32 n:I(u)@42-53?=0 Pp
          ; 77-79=2 .{POPC AND OR ?}@74-75 .DEFER_BLOCKING@80
BAR          b1d -              <- i:I(u)@54-57 n:I(u)@42-53 Pp            ; .SCAN 77-79=3 74-75=0 80=0
BAR          91d -              <- i:I(u)@54-57 b:R@32 Pp                  ; .SCAN 77-79=3 74-75=0 80=0
BAR          51d -              <- b:R@32 n:I(u)@42-53 Pp                  ; .SCAN 77-79=3 74-75=0 80=0
BAR          31d -              <- b:R@32 n:R@32 Pp                        ; .SCAN 77-79=3 74-75=0 80=0
WARPSYNC.COLLECTIVE.ALL 948 - sm=90+  <- Pp?=PT t:T@16-23+34-81         ; 86=1
op BMOV       moves effect=state noduplicate class=bmov
BMOV.32      355 -              d <- B:B@24                     ; .CLEAR@84 28-29=0
BMOV.32      356 -              B:B@24 <- b:R@32                ; .PQUAD@84
BMOV.32      956 -              B:B@24 <- i:I(u)@32-63          ; .PQUAD@84
BMOV.32.CLEAR f55 -             D:B@16 <- B:B@24                ; 84=1 28-29=0
BMOV.32      355 - sm=90+      d <- n:N(masks)@24-29           ; 84=0
BMOV.32      356 - sm=90+      n:N(masks)@24-29 <- b:R@32      ; .PQUAD@84
"""
