"""Hazard classes: which pipe an instruction runs in, and with it how it takes part in every table of :mod:`ir_format.hazards.distances`.

``CLASSES``: a line is ``class : instructions``; an instruction is a mnemonic with the modifiers that make the difference (``IMAD.WIDE`` speaks
of any IMAD that has the modifier WIDE); the entry with most modifiers wins. ``/75-89`` behind an instruction limits it to these SMs.

``PIPES``: a line is ``class : pipe interval latency``. ``interval``: issue cycles after which the pipe takes the next instruction of a warp
(measured C4; a wrong one costs time, never a wrong result). ``latency``: cycles until the result can be used, for priorities only (memory: a
guess at the loaded machine; the rest from the published Turing microbenchmarks).

``BOARDS``: a line is ``class tag SMs : W, R, WR or -``: does the instruction announce its result (W), and that it has read its general registers
(R), through a scoreboard? Later lines win. Provenance tags: m measured (what ptxas -O0 tags, C2), d documented, g guessed on the safe side.

``STALLS``: least issue cycles after an instruction (measured B1/C4 of ptxas's output, anchors 1.4 and 1.6; where sources differ, the larger).
"""

from __future__ import annotations

from typing import Final

CLASSES: Final = """
alu      : IADD3 LOP3 SHF PRMT LEA SGXT BMSK IABS F2FP I2FP F2IP I2I I2IP VABSDIFF VABSDIFF4 VIADDMNMX VIMNMX3 FMNMX3 IADD
alu      : CS2R.32 RPCMOV VHMNMX
r2p      : R2P
p2r      : P2R
dual     : ISETP IMNMX FMNMX FSET FSETP FSEL MOV SEL VIMNMX PLOP3
vote     : VOTE
iadd64   : IADD.64
alu64    : MOV.64 SEL.64 IMNMX.U64 IMNMX.S64
setp64   : ISETP.U64 ISETP.S64
disp64   : CS2R LEPC
fma      : FADD FMUL FFMA IMAD IDP FSWZADD FHADD FHFMA FADD2 FMUL2 FFMA2 VIADD
imadw    : IMAD.WIDE
imadhi   : IMAD.HI
half     : HADD2 HMUL2 HFMA2
hcmp     : HSET2 HSETP2 HMNMX2
hf32     : HADD2.F32
halfmma  : HFMA2.MMA
fp64     : DADD DMUL DFMA DSETP
imma1    : IMMA BMMA.88128 IMMA.16832/103 IMMA.16864/103
mma1     : HMMA HMMA.1688 HMMA.1684 HMMA.884 HMMA.SP.16816/80-90 HMMA.SP.1688.TF32/80-90 IMMA.16816 IMMA.16832.S4/80-89 IMMA.16832.U4/80-89 IMMA.SP.16864.S4/80-89 IMMA.SP.16864.U4/80-89
mma1     : IMMA.SP.16832.S8/80-90 IMMA.SP.16832.U8/80-90 QMMA.16816/89 BMMA
mma2     : HMMA.16816 HMMA.16832 HMMA.1688.TF32 HMMA.SP.16816.TF32 IMMA.16832/75-100,110+ IMMA.16864/75-100,110+ QMMA OMMA BMMA.168256
dmma     : DMMA
xu       : MUFU F2I I2F F2F FRND FCHK FLO POPC BREV R2UR/75-89
lds      : LDS LDSM MOVM
ldtm     : LDTM
sttm     : STTM
utc      : UTCHMMA UTCIMMA UTCQMMA UTCOMMA UTCCP UTCBAR
utcshift : UTCSHIFT
utcatom  : UTCATOMSWS
utcvirt  : UVIRTCOUNT
ustg     : USTGR UREDGR
ldg      : LDG LD LDGMC
tex      : TEX TLD TLD4 TXD TXQ TMML SULD SUATOM
sust     : SUST SURED
ldl      : LDL
ldc      : LDC LDCU
stg      : STG ST STL
sts      : STS STSM STAS
atom     : ATOM ATOMG ATOMS
red      : RED REDG REDS REDAS
ldgsts   : LDGSTS
ldgdep   : LDGDEPBAR
shfl     : SHFL MATCH
redux    : REDUX
credux   : CREDUX
sreg     : S2R S2UR B2R QSPC
bar      : BAR
membar   : MEMBAR
fence    : FENCE
cctl     : CCTL CCTLL CCTLT
cctlu    : CCTL.LDCU
errbar   : ERRBAR CGAERRBAR
syncs    : SYNCS
bulk     : UBLKCP UBLKRED UBLKPF UTMALDG UTMASTG UTMAREDG UTMAPF UTMACCTL UTMACMDFLUSH UMEMSETS UGETNEXTWORKID
arrives  : ARRIVES
gate     : UCGABAR_ARV UCGABAR_WAIT ACQBULK PREEXIT
elect    : ELECT
setreg   : USETMAXREG SETMAXREG
setregd  : USETMAXREG.DEALLOC
gmma     : HGMMA QGMMA IGMMA BGMMA
wgarrive : WARPGROUP.ARRIVE
wgdepbar : WARPGROUP.DEPBAR
bmov     : BMOV
bssy     : BSSY
branch   : BRA BRX BRXU JMP JMX JMXU EXIT BPT KILL RTT PMTRIG BSYNC BREAK WARPSYNC YIELD NANOSLEEP ENDCOLLECTIVE
call     : CALL
ret      : RET
nop      : NOP
depbar   : DEPBAR
udp      : UIADD3 UIMAD ULEA ULOP3 UPLOP3 USHF UPRMT USGXT UBMSK UISETP USEL UI2I UI2IP UFLO UPOPC UBREV UP2UR UR2UP CS2UR UIMNMX UVIADD UIABS UVIMNMX
uflt     : UFADD UFMUL UFFMA UFSETP UFSEL UFRND UI2F UF2F UF2I UI2FP UFMNMX UF2FP
udp64    : UIADD3.64 UISETP.U64 UISETP.S64
uldc     : ULDC UMOV VOTEU UMOV.64
r2ur     : R2UR/90+
"""

PIPES: Final = """
alu dual disp64 r2p p2r vote : alu 2 4
iadd64 alu64 setp64 : alu 2 6
fma     : fma 2 4
imadw imadhi : fma 4 5
half hcmp hf32 : half 2 5
halfmma : tensor 2 10
fp64    : fp64 4 16
imma1 mma1 : tensor 8 20
mma2    : tensor 16 28
dmma    : fp64 16 40
gmma    : tensor 4 128
wgarrive : tensor 6 6
wgdepbar : tensor 2 128
xu      : xu 8 20
lds     : mio 4 30
ldtm    : mio 4 40
sttm utc utcshift utcvirt ustg : mio 4 12
utcatom : mio 4 30
ldg     : mio 4 300
tex     : tex 4 400
ldl     : mio 4 120
ldc     : mio 4 40
stg sts red sust ldgdep bar membar fence cctl errbar syncs bulk arrives gate setreg setregd cctlu : mio 4 12
ldgsts  : mio 4 300
atom    : mio 4 300
shfl sreg redux : mio 4 26
credux elect : alu 2 13
bmov    : branch 2 12
bssy branch call ret nop depbar : branch 1 2
udp uldc udp64 : uni 2 6
uflt    : uni 2 12
r2ur    : xu 2 13
"""

#: Intervals that differ among SMs: ``class``, ``class.SP`` (sparse) or ``class.QMMA``, provenance, SMs : issue cycles from one product to the next (measured: the
#: distance that ptxas leaves between independent products of each shape).
PACES: Final = """
mma1                          m 75     : 8
imma1                         m 75     : 4
mma1 imma1                    m 80-90  : 4
mma1.SP                       m 80-90  : 6
mma2                          m 80-89  : 8
mma1.QMMA                     m 89     : 8
mma2.QMMA                     m 89     : 16
mma2                          m 90     : 6
mma2.SP                       m 80-90  : 8
mma1 mma2 imma1               m 100-110 : 8
mma1.SP mma2.SP               m 100-110 : 9
mma1 mma2 imma1               m 120+   : 16
dmma                          m 80-89  : 10
"""

#: class(es), provenance, SMs, scoreboards
BOARDS: Final = """
xu lds ldg ldl ldc atom tex shfl redux sreg dmma m 75+ : WR
stg sts red sust bar membar             m 75+ : R
ldgsts                                  m 80-89 : R
ldgsts                                  m 90+ : WR
ldgdep                                  m 80-89 : W
ldgdep                                  m 90+ : WR
cctl                                    d 75+ : R
bmov                                    m 75+ : WR
fp64                                    m 75-89,103,110+ : WR
mma1 mma2                               m 75 : WR
imma1                                   m 75,103 : WR
fence                                   m 90+ : W
syncs                                   m 75+ : WR
bulk                                    m 75+ : R
ldtm                                    m 100+ : W
sttm utc                                m 100+ : R
ustg                                    m 100+ : R
utcatom                                 m 100+ : WR
arrives                                 m 100+ : R
setreg setregd                          m 90+ : W
cctlu                                   m 100+ : W
"""

STALLS: Final = """
bar     m 75    : 5
bar     m 80+   : 6
membar  m 75    : 5
membar  m 80+   : 6
errbar  m 75+   : 0
cctl    m 75-89 : 5
cctl    m 90+   : 4
fence   m 90+   : 10
depbar  d 75+   : 4
branch call ret m 75+ : 5
bmov    g 75+   : 2
syncs bulk arrives g 75+ : 2
utc utcshift m 100+ : 12
utcatom m 100+ : 2
utcvirt m 100+ : 4
gate    m 75+   : 6
setreg  m 90+   : 2
setregd m 90+   : 0
wgarrive m 90   : 6
wgdepbar m 90   : 2
"""

#: How a class stands in the tables where it has no row or column of its own: as a result, and as a reader of R and of P.
AS_RESULT: Final = {"r2p": "alu", "p2r": "alu", "vote": "dual", "credux": "r2ur", "setp64": "alu64", "imadw": "whi", "call": "alu", "ret": "alu", "uflt": "udp"}
AS_READER: Final = {
    "r2p": "alu", "p2r": "alu", "vote": "alu", "disp64": "alu", "imadw": "wab", "imadhi": "wab", "imma1": "mma", "mma1": "mma", "mma2": "mma", "dmma": "mma", "gmma": "mma", "wgarrive": "mma", "wgdepbar": "mma", "setregd": "xu", "xu": "xu", "tex": "xu", "sust": "xu",
    "branch": "jump", "ret": "jump", "call": "call", "r2ur": "xu", "udp": "uni", "uldc": "uni", "uflt": "uni", "udp64": "uni", "redux": "xu", "syncs": "xu", "bulk": "xu", "arrives": "xu", "gate": "xu", "credux": "alu", "ldtm": "xu", "sttm": "xu", "utc": "xu", "utcshift": "xu", "utcatom": "xu", "utcvirt": "xu", "ustg": "xu",
}  # fmt: skip
