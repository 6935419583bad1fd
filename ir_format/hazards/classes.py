"""Hazard classes: the pipe of an instruction, and its place in every table of :mod:`ir_format.hazards.distances`.

The ``op`` line of an instruction names its class (``class=``, :mod:`ir_format.isa.facts`) as alternatives separated by
``|``. An alternative is a class, with the modifiers that select it before (``WIDE:imadw`` is any IMAD with the modifier
WIDE) and its SMs after it (``mma1/80-90``). The alternative with the most modifiers wins.

``PIPES``: a line is ``class : pipe interval latency``. ``interval``: issue cycles after which the pipe takes the next
instruction of a warp (measured C4; a wrong one costs time, never a wrong result). Constant-bank loads keep no distance
from other memory accesses in ptxas's code (LDC to LDG or S2R 1; LDC to LDC 8 on sm_90 and sm_120, which costs more than
it brings by the estimate here), nor do S2R. ``latency``: cycles until the result can be used, for priorities only
(memory: a guess at the loaded machine; the rest from the published Turing microbenchmarks).

``SCOREBOARDS``: a line is ``class tag SMs : W, R, WR or -``. W: the result has a scoreboard; R: the reading of general
registers has one. Later lines win. Provenance tags: m measured (what ptxas -O0 tags, C2), d documented, g guessed on
the safe side.

``STALLS``: least issue cycles after an instruction (measured B1/C4 of ptxas's output, anchors 1.4 and 1.6; where
sources differ, the larger).
"""

from __future__ import annotations

from ir_format.typed import Final

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
ldc     : cbank 4 40
stg sts red sust ldgdep bar membar fence cctl cgaerrbar syncs bulk arrives gate setreg setregd cctlu : mio 4 12
errbar : mio 1 12
ldgsts  : mio 4 300
atom    : mio 4 300
shfl redux : mio 4 26
sreg    : sreg 4 26
credux elect : alu 2 13
bmov    : branch 2 12
bssy branch call ret nop depbar : branch 1 2
udp uldc udp64 : uni 2 6
uflt    : uni 2 12
r2ur    : xu 2 13
"""

#: Intervals that differ among SMs: ``class``, ``class.SP`` (sparse) or ``class.QMMA``, provenance, SMs : issue cycles
#: from one product to the next (measured: the distance that ptxas leaves between independent products of each shape).
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
sreg.S2R                      m 90+    : 1
"""

#: class(es), provenance, SMs, scoreboards
SCOREBOARDS: Final = """
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
cgaerrbar m 90+ : 6
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

#: The row or column that stands for a class without its own: as a result, and as a reader of R and of P.
AS_RESULT: Final = {
    "r2p": "alu",
    "p2r": "alu",
    "vote": "dual",
    "credux": "r2ur",
    "setp64": "alu64",
    "imadw": "whi",
    "call": "alu",
    "ret": "alu",
    "uflt": "udp",
}
AS_READER: Final = {
    "r2p": "alu", "p2r": "alu", "vote": "alu", "disp64": "alu", "imadw": "wab", "imadhi": "wab", "imma1": "mma",
    "mma1": "mma", "mma2": "mma", "dmma": "mma", "gmma": "mma", "wgarrive": "mma", "wgdepbar": "mma", "setregd": "xu",
    "xu": "xu", "tex": "xu", "sust": "xu",
    "branch": "jump", "ret": "jump", "call": "call", "r2ur": "xu", "udp": "uni", "uldc": "uni", "uflt": "uni",
    "udp64": "uni", "redux": "xu", "syncs": "xu", "bulk": "xu", "arrives": "xu", "gate": "xu", "credux": "alu",
    "elect": "alu", "ldtm": "xu", "sttm": "xu", "utc": "xu", "utcshift": "xu", "utcatom": "xu", "utcvirt": "xu",
    "ustg": "xu", "nop": "alu",
}  # fmt: skip
