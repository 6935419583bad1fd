"""Features of SMs by name: code asks here what an SM can do, and does not compare SM numbers.

A line of :data:`TABLE` is ``name : SMs : meaning``. A new SM that lies in a range has the feature; ranges are
``80+``, ``75-89``, ``100,103``. Provenance: measured on ptxas 13.0's output for every SM
(sm_107: 13.5's) unless a line says otherwise.
The rows (:mod:`ir_format.isa`), not this table, tell whether an SM has an instruction or a form of it.
"""

from __future__ import annotations

from functools import cache

from ir_format.typed import Final

TABLE: Final = """
clusters              : 90+      : clusters of CTAs: launch values, CGAERRBAR, shared memory of another CTA
cluster-values-indexed: 100+     : launch values of clusters are indexed by c[0][SR_CgaSize]
cluster-copies-called : 120+     : copies to another CTA of the cluster are functions of the driver
prefetch-l2-control   : 107      : prefetches of copies are UBLKL2CCTL and UTMAL2CCTL; elsewhere UBLKPF and UTMAPF
barrier-layout-1      : 107      : mbarriers of PTX 9.3's second layout have counts of their own, and conditional phases
sync-uniform-named    : 107      : what uniform registers give to the sync unit is USYNCS; elsewhere SYNCS
sync-unit             : 90+      : mbarriers are worked by SYNCS; before, by atomics and loads
red-named-redg        : 90+      : a reduction in global memory is REDG; before, RED
uniform-const-load    : 100+     : LDCU brings constants to uniform registers; before, ULDC
bssy-kinds            : 100+     : BSSY and BSYNC say RECONVERGENT or RELIABLE
bssy-clears           : 80+      : BSSY clears the participants of the barrier; sm_75 needs a BMOV.CLEAR before it
warpsync-all          : 90+      : WARPSYNC.ALL, and no mask but in a register
call-from-lepc        : 90+      : the return address of a call by pointer is a label's, from LEPC
shared-index-scaled   : 75-89    : accesses to shared memory shift their index ([R.X4])
load-unsigned-named   : 75       : LDS.U; the scope of a weak access is always named
bar-defers            : 80+      : BAR.SYNC.DEFER_BLOCKING
match-all             : 80+      : MATCH.ALL has its mask in a register and its predicate beside
fence-alias-system    : 80+      : fence.proxy.alias needs the system's scope unless a launch says otherwise
nanosleep-warp        : 75       : NANOSLEEP.WARP
bf16-conversions      : 80+      : cvt between f32 and bf16, and with .relu
bf16-conversions-all  : 90+      : cvt of bf16 with integers, f64, f16 and bf16 itself
tf32-conversions      : 80+      : cvt.rna.tf32
tf32-roundings        : 90+      : cvt to tf32 with other roundings
tf32-saturates        : 100+     : cvt to tf32 with .satfinite
eight-bit-float-conversions: 89+ : cvt of e4m3x2 and e5m2x2
narrow-float-conversions: 100+   : cvt of floats of six and four bits, and of ue8m0
stochastic-rounding   : 100+     : cvt.rs
half-min-max          : 80+      : min and max of f16 and bf16
half-mixed-sums       : 100+     : add, sub and fma of halves into f32
three-way-min-max     : 100+     : PTX's min and max of three f32, one instruction or two
mbarriers             : 80+      : mbarrier
mbarrier-transactions : 90+      : mbarrier counts bytes
async-copies          : 80+      : cp.async
bulk-copies           : 90+      : cp.async.bulk
bulk-fill             : 100+     : st.bulk
tensor-maps           : 90+      : tensor maps: their copies, fences, replacement and prefetch
async-proxy           : 90+      : fences of the asynchronous proxy
cache-policies        : 80+      : createpolicy
vector-reductions     : 90+      : atom and red on vectors in global memory
multimem              : 90+      : multimem
register-requests     : 90+      : setmaxnreg
elect                 : 90+      : elect.sync
grid-dependencies     : 90+      : griddepcontrol
cluster-launch-control: 100+     : clusterlaunchcontrol
matrix-store          : 90+      : stmatrix
matrix-load-narrow    : 100+     : ldmatrix of tiles of bytes, and of six and four bits
redux                 : 80+      : REDUX
redux-float           : 100-107  : CREDUX of f32
atomic-count          : 80+      : ATOMS.POPC.INC.32
atom-bf16x2-shared    : 90+      : atomics on bf16x2 that are one instruction
atom-f16-add          : 80+      : sums of bf16 by one addition of halves
atom-offset-23-bits   : 100+     : ATOM with a descriptor has a signed offset of 23 bits
int-to-float-alu      : 86+      : I2FP: conversions of 32-bit integers in the arithmetic pipe
pack-halves           : 80+      : F2FP packs two f32 into halves
pack-names-types      : 89+      : F2FP names the types of both sides
half-pair-signed-zero : 80+      : HADD2.F32 takes -RZ as a pair; before, as its low half
three-way-float       : 100-119  : FMNMX3 (sm_120 and sm_121 have none)
half-mixed-pairs      : 107      : FHADD2 and FHFMA2, pairs of halves and of floats
four-narrow-sums      : 100,103  : QADD4, QMUL4 and QFMA4
packed-comparisons    : 107      : VISET of packed integers
narrow-float-roundings: 107      : F2FP to narrow formats in other roundings, away from -0, with a scale, and to UE5M3
matrix-load-signed    : 90+      : LDSM.S4TO8
packed-bytes          : 107,120+ : VIADD and VIMNMX of four bytes, VIADD.ISAT
carry-less-product    : 80+      : CLMAD
narrow-from-bf16      : 100+     : F2FP from bf16 to floats of eight, six and four bits
packed-f32            : 100-107  : FADD2, FMUL2, FFMA2
int-min-max-vector    : 90-107,120+ : VIMNMX in place of IMNMX
int-min-max-typed     : 107,120+ : VIMNMX names the type of both kinds
add-64                : 107,120+ : IADD.64
multiplier-pipe-apart : 75-119   : IMAD has a pipe beside the ALU's (ptxas balances both on sm_75 to 100, not on 120)
dot-product           : 75-90,107 : IDP
abs-diff-bytes        : 75-103,110 : VABSDIFF4
mma-1688              : 75+      : HMMA.1688 of halves
mma-16816             : 80+      : HMMA.16816, tensor cores for bf16, tf32 and f64
mma-double-16-rows    : 90+      : PTX's products of doubles with 16 rows
mma-sparse            : 80+      : sparse products
mma-integers-8-rows   : 75+      : PTX's products of integers with 8 rows
mma-integers-16-rows  : 80+      : products of integers with 16 rows
mma-bits              : 75-89    : BMMA with exclusive or
mma-nibbles           : 75-89    : IMMA on four-bit integers, sparse too
mma-bits-and          : 80+      : BMMA.AND
mma-bits-and-only     : 90       : BMMA.AND alone
mma-8816              : 75-90    : IMMA.8816
mma-eight-bit-floats  : 89+      : products of eight-bit floats
mma-narrow-floats     : 120+     : products of floats of six and four bits, and mixed ones
mma-16816-eight       : 89       : QMMA.16816
mma-eight-by-halves   : 90-110   : products of eight-bit floats are made of products of halves
dmma-large            : 90       : DMMA.16x8x4 to 16x8x16
dmma-884              : 75-89    : DMMA.884; later DMMA.8x8x4
warpgroup-mma         : 90       : wgmma
tensor-memory         : 100-110  : tcgen05
block-16-named        : 103,107  : block scales of 16 elements are BLOCK16; else 4X
header-in-uniform     : 90+      : textures and surfaces take their header from a uniform register
header-immediate      : 75-90    : texture header and sampler are a pair of words
textures              : 75-103,110+ : TEX, SULD and their kin; sm_107 has none (ptxas calls functions of the driver)
header-pair           : 120+     : a texture's header comes with a second uniform register
texture-scattered     : 75-89    : TEX.SCR takes its words from scattered registers
texture-gradient-called: 90+     : gradients of 3d and cube textures are functions of the driver
texture-level-zero    : 75-103,110-119 : a level is always given
multimem-bytes        : 100+     : LDGMC on eight-bit floats, HPADD
deep-cctl             : 100+     : CCTL.E.C.LDCU.IV.DEEP before UTMACCTL
shared-cap-named      : 100+     : the symbol of the shared window has a name
params-stay           : 90+      : many parameters leave their area where it is
unified-call          : 90+      : calls of driver functions are marked in .nv.info
alu-const-words       : 75-89    : a word of a constant bank is an operand of MOV
alu-const-operands    : 75-99    : arithmetic has operands in constant banks
descriptor-addresses  : 80+      : addresses with a descriptor in a uniform register
descriptor-addresses-p: 80-89    : such addresses with bit 101 set
descriptor-not-printed: 75-89    : nvdisasm does not print the descriptor of an address
address-w-needs-base  : 90+      : a 64-bit base plus a uniform register: the base is not RZ
uniform-fields-8-bits : 100+     : fields of uniform registers have 8 bits; before, 6
header-two-uniforms   : 90+      : texture and sampler are named by two uniform registers; before, by one
object-addresses-early: 80+      : addresses of textures, surfaces and mbarriers have the distances of other operands
distances-first       : 75       : distances between instructions are sm_75's; later those of sm_80
distance-fp64-fixed   : 90,100,107 : results of FP64 come after a fixed time
distance-fp64-chain   : 90+      : FP64 to FP64 in 8 cycles, on sm_107 in 10
distance-fp64-late    : 107      : results of FP64 come two cycles later
distance-hmma-told    : 75       : a scoreboard tells when HMMA is done
distance-imma-told    : 75,103   : a scoreboard tells when IMMA and BMMA are done
distance-r2ur-told    : 75-89    : a scoreboard tells when R2UR is done
distance-r2ur-late    : 100+     : R2UR takes 13 cycles; before, 10
distance-products     : 100+     : products of matrices all take 19 cycles
distance-products-late: 120+     : ... and 7 (integers) or 9 more
distance-wide-low     : 75-89    : the low word of IMAD.WIDE reaches the arithmetic pipe after 5 cycles (documented: 3)
distance-call-late    : 90+      : CALL reads its operands two cycles earlier
fp64-writes-fixed     : 80+      : FP64 writes equally late with and without a scoreboard
tensor-memory-576     : 107      : tensor memory has 576 columns; elsewhere 512
fabric-copies         : 100-110  : fabric.try_* are bulk copies; elsewhere ptxas's code traps
fabric-access-check   : 100+     : ptxas has --gno-fabric-access-check
membermasks-printed   : 75-79    : ptxas has --print-potentially-overlapping-membermasks
options-of-90         : 90+      : ptxas has --disable-smem-reservation and --sw4575628
doubles-pooled        : 75-89    : ptxas keeps constants of 64 bits in bank 2
arrivals-counted-first: 75-89    : the code counts itself in before ARRIVES.LDGSTSBAR, which only counts out
relocs-not-preserved  : 90+      : ptxas warns of --preserve-relocs
static-shared-large   : 90-110   : with suffix a, 227 KiB of static shared memory; others 99 KiB
tensor-memory-checks  : 100-110  : ptxas has --g-tensor-memory-access-check
narrow-refused-by-name: 90+      : ptxas says that this SM has no programs of 32 bits; before, of none
doubles               : 13+      : .f64, with directed rounding
float-rounding        : 20+      : .f32 with directed rounding, and mad.f32 with a rounding
parameters-in-memory  : 20+      : .func has parameters in .param, and textures are none
large-parameters      : 70+      : 32,764 bytes of parameters from PTX 8.1 on
independent-threads   : 70+      : threads of a warp advance apart: shfl and vote need .sync from PTX 6.4 on
fence-one-direction   : 90+      : fence.acquire and fence.release
"""


@cache
def table() -> dict[str, tuple[str, str]]:
    """Feature -> (SMs, what it says)."""
    out: dict[str, tuple[str, str]] = {}
    for line in TABLE.strip().splitlines():
        name, sms, what = (part.strip() for part in line.split(":", 2))
        out[name] = sms, what
    return out


def covers(text: str, sm: int) -> bool:
    """Whether a list of SMs (``80+``, ``75-89``, ``90,100``) has ``sm``."""
    for part in text.split(","):
        low, dash, high = part.rstrip("+").partition("-")
        if int(low) <= sm and (part.endswith("+") or sm <= int(high if dash else low)):
            return True
    return False


@cache
def first(feature: str) -> int:
    """The first SM that has a feature."""
    return min(int(part.rstrip("+").partition("-")[0]) for part in table()[feature][0].split(","))


@cache
def has(sm: int, feature: str) -> bool:
    """Whether an SM has a feature. Raises KeyError for a feature that the table does not name."""
    return covers(table()[feature][0], sm)
