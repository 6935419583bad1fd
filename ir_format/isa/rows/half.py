"""Packed half and bfloat arithmetic."""

from __future__ import annotations

TEXT = r"""
op HMUL2      pure class=half fused=HADD2:HFMA2
HMUL2       032 AB             d <- a-|<h2>@74-75 b-|<h2>@60-61
          ; <75-89>85=0 <90+>.BF16_V2@85 .FTZ@80 .SAT@77 ; imm=f16x2 comm=ab csp=1
op HFMA2      pure class=half|MMA:halfmma
HFMA2       031 ABC            d <- a-|<h2>@74-75 b-|<h2f>@60-61 c-|<h2>@81-82
          ; <75>85=0 <80+>.BF16_V2@85 .{_ FTZ FMZ <75-89>? <90+>OOB}@80+76 .SAT@77 79=0
          ; imm=f16x2 comm=ab yneg=84 csp=1
HFMA2       031 ABC sm=80+         d <- a-|<h2>@74-75 b-|<h2f>@60-61 c-|<h2>@81-82 Pp?=PT
          ; <75>85=0 <80+>.BF16_V2@85 .{_ FTZ FMZ <75-89>? <90+>OOB}@80+76 .RELU 79=1 77=0
          ; imm=f16x2 comm=ab yneg=84 csp=1
HFMA2.MMA   035 ABC sm=80-90   d <- a-| b- c-|
          ; <80-89>85=0 <90>.BF16_V2@85 .{_ FTZ FMZ ?}@80+76 .SAT@77 79=0 ; imm=f16x2 comm=ab yneg=84
HFMA2.MMA   035 ABC sm=80-90   d <- a-| b- c-| Pp?=PT
          ; <80-89>85=0 <90>.BF16_V2@85 .{_ FTZ FMZ ?}@80+76 .RELU 79=1 77=0 ; imm=f16x2 comm=ab yneg=84
op HMNMX2     pure class=hcmp
HMNMX2      040 AB  sm=80+     d <- a-|<h2>@74-75 b-|<h2>@60-61 Pp
          ; <75>85=0 <80+>.BF16_V2@85 .FTZ@80 .NAN@81 <80>82=0 <86+>.XORSIGN@82 ; imm=f16x2 comm=ab csp=1
op HSETP2     pure class=hcmp
HSETP2      034 AC             Pu Pv <- a-|<h2>@74-75 b-|<h2>@60-61 Pp
          ; <75-89>65=0 <90+>.BF16_V2@65 .fcmp@76-79 .H_AND@71 .FTZ@80 .bop@69-70 ; imm=f16x2 csp=1
op HSET2      pure class=hcmp
HSET2       033 AC             d <- a-|<h2>@74-75 b-|<h2>@60-61 Pp
          ; <75-89>65=0 <90+>.BF16_V2@65 .BF@71 .fcmp@76-79 .FTZ@80 .bop@69-70 ; imm=f16x2 csp=1
op HADD2      pure class=half|F32:hf32
HADD2.F32   030 AC forms=r,k,u,x d <- <75-80>a-|<h2>@74-75 <86+>a-<h2>@74-75 b-|<h2>@60-61
          ; 85=0 78=1 .FTZ@80 .SAT@77 ; imm=f16x2 csp=1 <86+>reuse=b
HADD2       030 AC             d <- a-|<h2>@74-75 b-|<h2>@60-61
          ; <75-89>85=0 <90+>.BF16_V2@85 78=0 .FTZ@80 .SAT@77 ; imm=f16x2 comm=ab csp=1
HADD2       030 AC sm=75 forms=k,x d <- a-|<h2>@74-75 b-|<=F32>
          ; 60-61=1 78=0 85=0 .FTZ@80 .SAT@77 ; imm=f16x2 csp=1
HADD2       030 AC sm=75 forms=r d <- a-|<=F32> b-|<h2>@60-61
          ; 74-75=1 78=0 85=0 .FTZ@80 .SAT@77 ; imm=f16x2 csp=1
HMUL2.F32   032 AB sm=75       d <- a-|<h2>@74-75 b-|<h2>@60-61
          ; 85=0 78=1 .FTZ@80 .SAT@77 ; imm=f16x2 csp=1
"""
