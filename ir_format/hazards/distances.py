"""Least distances in issue cycles between two instructions that touch the same register, per register file and SM.

A table is headed ``KIND FILE SMs`` (KIND: raw, waw, war). A line of column names (the *earlier* instruction) starts
with ``:``; the others start with row names (the *later* instruction), then a default provenance tag, then the cells: a
number, with its own tag where it differs. ``-`` leaves what an earlier table said; ``1`` is "the next cycle". Later
tables override earlier ones, cell by cell, for their SMs.

Tags: d documented (published by NVIDIA through Mesa), m measured (smallest distance that ptxas 13.0 leaves in
two-instruction chains), g guessed: on the safe side, from the nearest class. Where a document and a measurement
disagree, the larger number is kept.

Columns are *results*: a class of :mod:`ir_format.hazards.classes`, ``wlo``/``whi`` for the two registers of IMAD.WIDE.
Rows of ``raw`` are operand *roles*: a class, or ``wab``/``clo``/``chi`` (IMAD.WIDE: A and B, low and high register of
C), ``addr``, ``data``, ``lsu``, ``idx`` (address, stored data, any other operand of the memory pipe, index of a
constant access), ``guard`` (guards, branch conditions, votes, predicates read by the other pipes), ``vec``/``var``
(uniform operand of a fixed or variable latency instruction), ``uldc`` (index of a constant access), ``jump`` (address
of an indirect branch). Rows of ``waw`` and ``war`` are groups of later writers: ``fixed``, ``disp64``, ``hf32``,
``halfmma``, ``fp64``, ``mma``, ``var``, ``udp``, ``uldc``, ``r2ur``. Columns with ``@`` are for an earlier instruction
with a guard.

Two readings that look like longer latencies and are not (measured): IADD3.X -> LDG at 6 and IABS -> F2I at 6 are the
WAW distance to a variable latency result where the load or conversion overwrites its own source.

A result that is announced by a scoreboard has no column: its reader waits, and any distance from 1 on is right.
"""

from __future__ import annotations

from ir_format.typed import Final

TABLES: Final = """
raw R 75
                          :    alu dual disp64 fma wlo whi imadhi half hcmp hf32
alu dual                  d    4   4    6      5   3   5   5      8    8    8
fma                       d    5   5    6      4   2   4   4      8    8    8
wab                       d    5   5    6      4   4   6   6m     8    8    8
clo                       d    5   5    6      4   2   2   4      8    8    8
chi                       d    3   3    4      2   2   2   4      6    6    6
fp64                      d    6   6    6      6   6   6   6      8    8    8
half hcmp hf32            d    6   6    6      6   6   6   6      6    6    6
mma xu idx                d    6   6    6      6   6   6   6      8    8    8
addr data lsu             m    8   8    8      8   8   8   8      8    8    8
jump                      m    6   6    6g     6   6   6   6      8g   8g   8g
call                      m    3   3    3g     3   3   3   3      8g   8g   8g

raw R 80+
             : alu dual disp64 iadd64 alu64 fma wlo whi imadhi half hcmp hf32 halfmma fp64 imma1 mma1 mma2 dmma
alu          d 4   4    6      5m     5m    5   3   5   5      5    5    5    10      10   13    16   24   25
dual         d 4   4    6      6m     6m    5   3   5   5      5    5    5    10      10   13    16   24   25
iadd64 alu64 m 5   5    6g     4      6g    5   5   5   5      5    5g   5g   10g     10g  13g   16g  24g  25g
setp64       m 5   5    6g     6      6g    5   5   5   5      5    5g   5g   10g     10g  13g   16g  24g  25g
fma          d 5   5    6      6m     6g    4   2   4   4      5    5    5    10      10   13    16   24   25
wab          d 5   5    6      4m     6g    4   4   6   6m     5    5    5    10      10   13    16   24   25
clo          d 5   5    6      4m     6g    4   2   2   4      5    5    5    10      10   13    16   24   25
chi          d 3   3    4      4m     6g    2   2   2   4      3    3    3    8       8    11    14   22   23
half         d 5   5    6      6g     6g    5   5   5   5      4    5    5    10      10   13    16   24   25
hcmp         d 5   5    6      6g     6g    5   5   5   5      5    4    5    10      10   13    16   24   25
hf32         d 5   5    6      6g     6g    5   5   5   5      5    5    5    10      10   13    16   24   25
halfmma fp64 d 6   6    6      8g     8g    6   6   6   6      6    6    6    6       6    13    16   24   25
mma          d 7   7    7      8g     8g    7   7   7   7      7    7    7    11      11   14    16m  24m  26
xu idx       m 4   4    4d     5g     5     4   4   4   4      4    4    4    6       6    11    14   22   23
addr         m 5   5    5d     6g     6     5   5   5   5      5    5    5    7       7    12    15   23   24
data lsu     d 5   5    5      6g     6g    5   5   5   5      5    5    5    7       7    12    15   23   24
jump         m 4   4    6g     6g     6g    4   4   4   4      4    6g   6g   6       10g  14g   16g  24g  26g
call         m 2   2    5g     6g     6g    2   2   2   2      5g   5g   5g   7g      10g  14g   16g  24g  26g

raw R 90+
                          :    alu dual disp64 iadd64 alu64 fma wlo whi imadhi half hcmp hf32
call                      m    7   7    7g     7g     7g    7   7   7   7      7g   7g   7g

# The low register of IMAD.WIDE: documented at 3. ptxas 13.0 is there from sm_90 on, never below 5 before. basalt-sass,
# which judges whole mnemonics, asks for 4.
raw R 75-89
                          :    wlo
alu dual                  m    5

raw R 90+
                          :    wlo
alu dual                  g    4

# HMMA.1688 to a store: documented at 15, and ptxas has IMMA.16816 there. basalt-sass asks for 16.
raw R 80-99
                          :    mma1
data lsu                  g    16

raw R 90
                          :    fp64 dmma
fp64                      m    8    25

# One tensor class from sm_100 on.
raw R 100+
                          :    halfmma fp64 imma1 mma1 mma2
*                         d    -       -    19    19   19
mma                       d    -       -    20    20   20
fp64                      d    -       8    -     -    -
halfmma                   d    8       10   -     -    -

raw R 120+
                          :    alu dual
alu                       d    -   5m
dual                      m    5   5

# The 64-bit integer units of sm_120: MOV.64 and SEL.64 -> IADD.64, IMNMX.S64 -> IMNMX.U64, MOV.64 -> DSETP, DFMA.
raw R 120+
                          :    alu64
iadd64 alu64              m    4
fp64                      m    7

# sm_107 (chains and kernels of ptxas 13.5; what it never left nearer): doubles come later than on sm_100, MOV and SEL
# as on sm_120. Cells seen in few places have the distance seen there.
raw R 107
                          :    alu dual fma half hf32 wlo whi iadd64 fp64
alu                       m    -   5    -   7    -    -   -   -      12
dual                      m    5   5    -   -    -    -   -   -      12
iadd64 alu64 setp64       m    -   6g   -   -    -    -   -   -      13
fma                       m    -   -    -   6    8    -   -   -      12
wab                       m    -   7    -   8    -    -   -   -      11
clo                       m    8   8g   8   8    -    -   -   -      11
chi                       m    -   -    -   -    -    -   -   -      11
half hcmp hf32            g    -   -    -   -    -    -   -   -      12
halfmma                   g    -   -    -   -    -    -   -   -      8
fp64                      m    -   -    -   -    -    -   -   -      10
mma                       g    -   -    -   -    -    -   -   -      13
xu                        m    -   -    -   5    -    -   -   -      8
idx                       m    6   6g   6g  6g   6g   -   -   -      8
addr                      m    -   -    -   -    -    -   -   7      9
data lsu                  m    -   -    -   7    -    9   9   -      11

# The tensor distances of sm_120: the larger of two measurements.
raw R 120+
                          :    imma1 mma1 mma2
*                         m    33    28   28
mma                       m    33    32   32

# Accumulators are available after WARPGROUP.DEPBAR: their reader keeps its distance from that, not from the product.
raw R 90
                          :    gmma
*                         m    1

raw P 75
                          :    alu dual r2p fma imadw half hcmp fp64
alu                       d    4   4    12g 5   5     8    8    9
dual                      d    4   4    5m  5   5     8    8    9
fma                       d    5   5    12g 4   4     8    8    9
wab imadhi                d    5   5    12g 4   4     8    8    9
fp64                      d    12  12   12g 12  12    14   14   8
half hcmp hf32            d    12  12   12g 12  12    6    6    15
guard                     d    12  12   12g 12  12    14   14   15

raw P 80+
                          :    alu dual r2p iadd64 alu64 fma imadw half hcmp fp64 r2ur
alu dual                  d    4   4    5   6g     6m    5   5     5    5    6    8
iadd64 alu64              m    5   5    8g  6g     6     5g  9g    8g   8g   8g   13g
setp64                    m    5   5    8g  6g     6     5g  9g    8g   8g   8g   13g
fma                       d    5   5    13  6g     8g    4   4     5    5    6    13
wab imadhi                d    5   5    13  6g     8g    4   4     5    5    6    13
half hcmp hf32            g    13  13   13  13     14    13  13    5    5    13   13
fp64 halfmma              d    13  13   13  13g    14g   13  13    13   13   6    13
guard                     d    13  13   13  13g    14m   13  13    13   13   14   13

raw P 120+
                          :    alu dual fma alu64
dual                      m    4   5    5   5
alu fma wab imadhi        m    -   5    -   -
half hcmp hf32            m    5   5    -   -

raw P 107
                          :    alu dual alu64 fp64
alu                       m    5   5    -     8
dual                      m    5   5    -     8
alu64 iadd64 setp64       m    -   -    8     8g
fma wab imadhi half hcmp hf32 halfmma g    5   5    -     8
fp64                      m    -   -    -     8
guard                     m    -   -    -     16

raw UR 75
                          :    udp uldc
uni                       d    4   2
vec                       d    6   2
var                       d    9   2
jump                      d    10  3
umov                      d    7   2
uldc                      d    12  5

raw UR 80+
                          :    udp udp64 uldc r2ur
uni                       d    4   5m    2    13
vec                       d    6   6m    2    13
var                       d    9   9m    2    13
jump                      d    10  10g   3    13
umov                      d    7   7g    2    13
uldc                      d    12  12g   5    14m

raw UR 107
                          :    uldc
uni umov                  m    4
vec                       m    6
var                       m    9
jump                      g    10

raw UP 75+
                          :    udp udp64 uldc r2ur
uni                       d    4   4m    1    13g
vec                       d    6   6g    1    13g
guard                     d    11  11m   5    13g
jump                      d    9   9m    2    13g
uldc                      d    11  13g   5    15g

waw R 75
                          :    alu dual disp64 fma wlo whi imadhi half hcmp hf32 half@ hcmp@ hf32@
*                         d    1   1    2      1   1g  1g  1g     1    1    1    5     5     5
disp64                    d    2   2    2      2   2g  2g  2g     4    4    4    5     5     5
var                       d    6   6    6      6   6   6   6      6    6    6    6     6     6

# Tensor columns: the value for a guarded first write stands for both.
waw R 80+
                    : alu dual disp64 iadd64 alu64 fma wlo whi imadhi half hcmp hf32 halfmma
*                   d 1   1    2      4g     4g    1   1m  3   3g     2g   2g   2g   6g
disp64 hf32 halfmma d 1   1    2      4g     4g    1   1m  3   3g     2g   2g   2g   6g
fp64                d 1   1    2      4g     4g    1   1m  3   3g     2g   2g   2g   2g
mma                 d 1   1    2      4g     4g    1   1m  3   3g     2g   2g   2g   2g
var                 d 6   6    6      7m     8g    6   6   6   6      6    6    6    10
                    : fp64 fp64@ imma1 mma1 mma2 dmma halfmma@
*                   d 3    6     9     12   20   21   6g
disp64 hf32 halfmma d 3    6     9     12   20   21   6g
fp64                d 1    2     7     10   18   19   2g
mma                 d 6    6     4     8    16   17   2g
var                 d 9    10    13    15   23   25   10

waw R 100+
                          :    fp64 imma1 mma1 mma2
*                         d    6    17    17   17
disp64 hf32 halfmma fp64  d    6    17    17   17
mma                       d    6    17    17   17
var                       d    10   19    19   19

waw R 120+
                          :    imma1 mma1 mma2
*                         d    24    24   24
disp64 hf32 halfmma fp64  d    24    24   24
mma                       d    24    24   24
var                       d    26    26   26

waw R 120+
                          :    alu64
*                         m    2
var                       m    7

war R 75
                          :    alu dual disp64 fma imadw imadhi half hcmp hf32 uni
*                         d    1   1    1      1   1     1      1    1    1    1g
var                       d    2   2    2      2   2     2      2    2    2    2g
bmov                      d    9   9    9      9   9     9      9    9    9    9g

war R 80+
        : alu dual disp64 iadd64 alu64 fma imadw imadhi half hcmp hf32 halfmma fp64 imma1 mma1 mma2 dmma uni r2ur branch
*       d 1   1    1      1      1g    1   1     1      1    1    1    1       1    7g    7g   7    7    1   1    1
mma var d 2   2    2      2      2g    2   2     2      2    2    2    2       2    7g    7g   7    7    2   2g   2g
bmov    d 2   2    2      2      2g    2   2     2      2    2    2    2       2    7g    7g   7    7    2   2g   2g

# DFMA -> LDG, LDS over what it reads, where its own result comes without a scoreboard.
war R 90+
                          :    fp64
mma var                   m    1

war R 120+
                          :    imma1 mma1 mma2
*                         d    14    14   14
mma var bmov              d    14    14   14

waw P 75+
                          :    alu alu@ dual dual@ r2p iadd64 alu64 fma imadw half hcmp fp64 fp64@ r2ur
*                         d    1   1    1    1     1g  4g     4g    1   1     1g   1g   1g   1g    4g
fp64                      d    7   7    7    7     7g  7g     7g    7   7     7    7    5    7     7g
half                      d    9   9    9    9     9g  9g     9g    9   9     9    9    9    9     9g
var                       d    12  13   12   13    13g 13g    14g   13  13    13   13   13   13    13g

war P 75+
                          :    any
*                         d    1

waw R 90
                          :    gmma
*                         m    1

waw UR 75+
                          :    udp udp@ udp64 uldc r2ur
*                         d    1   1    4g    1    4g
uldc                      d    7   7    7g    1    7g
r2ur                      d    7   11   11    4    11g
var                       d    11  11   11m   4    11g

war UR 75+
                          :    udp any
*                         d    1   1
uldc                      d    3   1
r2ur                      m    1   1

waw UP 75+
                          :    udp udp64 uldc r2ur
*                         d    1   4g    1    4g
uldc                      d    7   9g    1    7g
r2ur var                  g    11  13    4    11

war UP 75+
                          :    udp any
*                         d    1   1
uldc                      m    1   1
r2ur var                  g    3   2
"""
