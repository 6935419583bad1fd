"""The target record: everything that differs from one SM to the next, as data.

Provenance of the numbers is *measured* unless a comment says otherwise: read off the output of ptxas 13.0.88 for 23
targets and of 13.5.37 for sm_107, 107a and 107f (cubins dumped byte by byte, kernels that read one special value each).
Documented: from the PTX manual. Guessed: neither.

Offsets and sizes are bytes. An offset of :data:`ABSENT` means that the target has no such slot: the comment names what
replaces it.
"""

from __future__ import annotations

from functools import cache

from ir_format.diag import CompileError
from ir_format.features import has
from ir_format.late_pattern import late_pattern
from ir_format.record import Record, replace
from ir_format.typed import Final

ABSENT: Final = -1
# What the driver supplies; any other external function is unresolved in a whole program (measured).
DRIVER_FUNCTIONS: Final = frozenset({"vprintf", "vfprintf", "malloc", "free", "__assertfail"})
DRIVER_PREFIXES: Final = ("__cuda_syscall_", "cnp")


#: The target where a tool is given none, and the PTX names none.
DEFAULT_TARGET: Final = "sm_90"
_NAMED: Final = late_pattern(rb"(?m)^[ \t]*\.target[ \t]+(sm_\w+)")


def named_target(ptx: bytes) -> str:
    """The target that a PTX file names in its `.target` line, whether there is such a target or not; '' for none."""
    found = _NAMED.search(ptx)
    return found[1].decode() if found else ""


def given_by_driver(name: str) -> bool:
    """Whether a function of this name needs no definition."""
    return name in DRIVER_FUNCTIONS or name.startswith(DRIVER_PREFIXES)


class ConstMap(Record, frozen=True):
    """Bank 0: where the driver puts launch values, and where the kernel's parameters begin (c[0x0][...])."""

    ntid: tuple[int, int, int]
    nctaid: tuple[int, int, int]
    stack_init: int  # first instruction of every kernel: R1 <- this word
    local_window: int  # 64-bit base of the local window (cvta.local)
    shared_window: int  # 64-bit base; ABSENT on sm_90+: upper word comes from SR_SWINHI
    const_window: int  # 64-bit base
    descriptor: int  # 64-bit global-memory descriptor; ABSENT on sm_75 (needs none)
    param_base: int
    dyn_smem: int  # bytes of dynamic shared memory; ABSENT on sm_100+: indexed by SR_CgaSize
    gridid: int
    envreg0: int  # ABSENT on sm_100+: indexed by SR_CgaSize
    smem_bias: int  # subtracted from a generic shared address; ABSENT on sm_75
    nsmid: int
    cluster_nctaid: int  # ABSENT below sm_90 and on sm_100+ (indexed by SR_CgaSize)
    is_explicit_cluster: int
    param_window: int = 0x40  # 64-bit: the generic address of bank 0 plus `param_bias` (measured)
    param_bias: int = 0
    graph_exec: int = ABSENT  # 64-bit: the graph that runs
    header_tables: int = 0x70  # 64-bit: the driver's tables of textures, samplers and surfaces


# The parameter area moves on sm_75..89 when it is larger than PARAM_SMALL bytes; KPARAM records change form with it on
# every target.
PARAM_SMALL: Final = 4352
PARAM_MAX: Final = 0x7FFC
SHARED_MAX: Final = 0xC000  # static shared memory of a kernel; targets with suffix `a` have more (`Target.shared_max`)
CONST_MAX: Final = 0x10000  # one constant bank

# Register rules, the same on every target.
WARP: Final = 32
RZ_NUMBER: Final = 255
PT_NUMBER: Final = 7
B_COUNT: Final = 16  # B0..B15
BARRIER_COUNT: Final = 16
SCOREBOARDS: Final = 6
REG_RESERVED: Final = 2  # counted in REGCOUNT in addition to the highest register + 1
REG_FLOOR: Final = 24  # -maxrregcount and .maxnreg are raised to this
REG_CEILING: Final = 255  # REGCOUNT may be this much: R0..R252
ABI_CALL_FLOOR: Final = 24  # REGCOUNT of a kernel that makes an ABI call
ARCHMIN: Final = 32
ARCHMAX: Final = 255

# Calling convention of -c, recursive and address-taken functions (measured on 75 80 90 100 120: identical).
STACK_REG: Final = 1
FRAME_MAX: Final = (1 << 31) - 16  # bytes of a frame: more than any launch gives a thread
FRAME_MOST: Final = FRAME_MAX - (
    1 << 20
)  # the most that lowering requests, so that spill slots have room; addresses beyond it wrap in 32 bits
RETURN_REG: Final = 20  # R20:R21
ARG_REGS: Final = tuple(range(4, 16))
CALLEE_SAVED: Final = tuple(sorted({2, *range(16, 20), *range(22, 32), *(r for r in range(32, 253) if r % 8 >= 4)}))


class Target(Record, frozen=True):
    """One target. ``isa`` keys the instruction encodings: 75, 80, 90, 100 or 120. ``family`` keys the ``f`` targets:
    all members of a family with an equal or higher number run an ``f`` program. ``min_ptx``: lowest ``.version`` that
    knows the target, as (major, minor)."""

    name: str
    sm: int
    suffix: str  # '', 'a' or 'f'
    isa: int
    family: int
    min_ptx: tuple[int, int]
    bank0: ConstMap
    ur_zero: int  # number of URZ in its field
    ur_bits: int  # width of a uniform register field
    ur_count: int  # allocatable UR0..
    alu_const: bool  # ptxas uses c[][] operands of ALU instructions (else only LDC/ULDC/LDCU)
    desc_operand: bool  # global accesses print desc[UR]
    smem_base: int  # where static shared memory starts in the CTA window
    pad_nops: int  # least number of NOPs after the final branch
    branch_low8: bool  # pc-relative field: 8 low bits at 16-23 and the rest at 34 up (else 48 bits at 34)
    kernel_prologue_bmov: bool  # sm_87: ptxas starts kernels with a BMOV sequence (SW_WAR 2); what it cures is unknown
    # ELF stage
    exec_rel: bool  # .rel for zero addends besides .rela, and .nv.rel.action; also the section order of before sm_90
    compat: bool  # .nv.compat section
    sw_war: int  # EIATTR SW_WAR payload, ABSENT = no record
    sw2861232: bool  # EIATTR SW2861232_WAR record
    reserved_smem_war: (
        int  # bytes of reserved shared memory after offset0 that every kernel of sm_110 declares used; 0 elsewhere
    )
    reserved_smem_offset0: int  # value of .nv.reservedSmem.offset0, ABSENT = no such symbol
    vrc_record: bool  # EIATTR VRC_CTA_INIT_COUNT
    mercury_isa: int  # EIATTR MERCURY_ISA_VERSION
    accelerated: bool  # .nv.compat CUDA_ACCELERATOR_TARGET
    # resident warps and CTAs per SM that launch bounds may ask for; beyond it minnctapersm is ignored (measured)
    max_warps: int
    max_ctas: int
    # shared memory of an SM in KiB (CUDA's programming guide; 0: not known), bytes in which it is given out to blocks,
    # and those of each block that the driver takes (CUDA's occupancy calculator)
    shared_kib: int
    shared_unit: int
    shared_taken: int

    @property
    def elf_sm(self) -> int:
        """The SM number of ``e_flags`` and of the notes (suffix-free)."""
        return self.sm

    @property
    def shared_max(self) -> int:
        """Most bytes of static shared memory of a kernel (measured on all 23 targets; the PTX's .target does not
        matter)."""
        if self.suffix != "a":
            return SHARED_MAX
        return 0x38C00 if has(self.sm, "static-shared-large") else 0x18C00

    def param_base(self, size: int) -> int:
        """Bank-0 offset of the first parameter of a kernel with ``size`` bytes of parameters."""
        if not has(self.sm, "params-stay") and size > PARAM_SMALL:
            return 0x1A80
        return self.bank0.param_base


_BANK_75: Final = ConstMap(
    ntid=(0x0, 0x4, 0x8), nctaid=(0xC, 0x10, 0x14), stack_init=0x28, local_window=0x20, shared_window=0x18,
    const_window=0x50,
    descriptor=ABSENT, param_base=0x160, dyn_smem=0x2C, gridid=0x30, envreg0=0x88, smem_bias=ABSENT, nsmid=0x10C,
    cluster_nctaid=ABSENT, is_explicit_cluster=ABSENT, graph_exec=0x120,
)  # fmt: skip
_BANK_80: Final = replace(_BANK_75, descriptor=0x118, smem_bias=0x114, graph_exec=0x130)
_BANK_90: Final = replace(
    _BANK_80, shared_window=ABSENT, const_window=0xD0, descriptor=0x208, param_base=0x210, envreg0=0x40,
    cluster_nctaid=0x144,
    is_explicit_cluster=0x140, param_window=0x198, param_bias=0x210, graph_exec=0x190,
    header_tables=0xF0,
)  # fmt: skip
_BANK_100: Final = ConstMap(
    ntid=(0x360, 0x364, 0x368), nctaid=(0x370, 0x374, 0x378), stack_init=0x37C, local_window=0x2F8,
    shared_window=ABSENT,
    const_window=0x120, descriptor=0x358, param_base=0x380, dyn_smem=ABSENT, gridid=0x140, envreg0=ABSENT,
    smem_bias=0x16C,
    nsmid=0x2D0, cluster_nctaid=ABSENT, is_explicit_cluster=0x36C, param_window=0x348, param_bias=0x380,
    graph_exec=0x2E8,
    header_tables=0x150,
)  # fmt: skip

_SM_75: Final = Target(
    name="sm_75", sm=75, suffix="", isa=75, family=75, min_ptx=(6, 3), bank0=_BANK_75, ur_zero=63, ur_bits=6,
    ur_count=63, alu_const=True,
    desc_operand=False, smem_base=0, pad_nops=0, branch_low8=False, kernel_prologue_bmov=False, exec_rel=True,
    compat=False, sw_war=1,
    sw2861232=False, reserved_smem_war=0, reserved_smem_offset0=ABSENT, vrc_record=False, mercury_isa=0,
    accelerated=False, max_warps=32, max_ctas=16, shared_kib=64, shared_unit=256, shared_taken=0,
)  # fmt: skip
_SM_80: Final = replace(
    _SM_75, name="sm_80", sm=80, isa=80, family=80, min_ptx=(7, 0), bank0=_BANK_80, pad_nops=8, sw_war=ABSENT,
    sw2861232=True,
    max_warps=64, max_ctas=32, shared_kib=164, shared_unit=128, shared_taken=1024,
)  # fmt: skip
_SM_90: Final = replace(
    _SM_80, name="sm_90", sm=90, isa=90, family=90, min_ptx=(7, 8), bank0=_BANK_90, alu_const=False, desc_operand=True,
    smem_base=0x400,
    branch_low8=True, exec_rel=False, compat=True, sw_war=8, sw2861232=False, reserved_smem_offset0=0,
    mercury_isa=0x101, shared_kib=228,
)  # fmt: skip
# ur_count on sm_100+: the field has 8 bits and UR63 is an ordinary register (measured); how many exist is not: 63 is
# safe.
_SM_100: Final = replace(
    _SM_90, name="sm_100", sm=100, isa=100, family=100, min_ptx=(8, 6), bank0=_BANK_100, ur_zero=255, ur_bits=8,
    reserved_smem_offset0=0x40,
    vrc_record=True,
)  # fmt: skip
_SM_103: Final = replace(_SM_100, name="sm_103", sm=103, min_ptx=(8, 8))
_SM_107: Final = replace(_SM_100, name="sm_107", sm=107, min_ptx=(9, 4), sw_war=0, mercury_isa=0x103, shared_kib=0)
_SM_110: Final = replace(
    _SM_103, name="sm_110", sm=110, family=110, min_ptx=(9, 0), reserved_smem_war=0x80, max_warps=48, max_ctas=24
)
_SM_120: Final = replace(
    _SM_100,
    name="sm_120",
    sm=120,
    isa=120,
    family=120,
    min_ptx=(8, 7),
    sw_war=0,
    max_warps=48,
    max_ctas=24,
    shared_kib=100,
)
_SM_121: Final = replace(_SM_120, name="sm_121", sm=121, min_ptx=(8, 8))

_BASES: Final = (
    _SM_75,
    _SM_80,
    replace(_SM_80, name="sm_86", sm=86, min_ptx=(7, 1), max_warps=48, max_ctas=16, shared_kib=100),
    replace(
        _SM_80, name="sm_87", sm=87, min_ptx=(7, 4), sw_war=2, kernel_prologue_bmov=True, max_warps=48, max_ctas=16
    ),
    replace(_SM_80, name="sm_88", sm=88, min_ptx=(7, 3), max_warps=48, max_ctas=16, shared_kib=0),
    replace(_SM_80, name="sm_89", sm=89, min_ptx=(7, 8), sw2861232=False, max_warps=48, max_ctas=24, shared_kib=100),
    _SM_90,
    _SM_100,
    _SM_103,
    _SM_107,
    _SM_110,
    _SM_120,
    _SM_121,
)

# The SMs in the order in which ptxas 13.5's --list-arch prints them (measured).
LISTED: Final = (75, 80, 86, 87, 88, 89, 90, 100, 110, 103, 120, 121, 107)

# Suffixed targets: (base SM, suffix) -> min_ptx.
_SUFFIXED: Final = {
    (90, "a"): (8, 0),
    (100, "a"): (8, 6),
    (100, "f"): (8, 8),
    (103, "a"): (8, 8),
    (103, "f"): (8, 8),
    (107, "a"): (9, 4),
    (107, "f"): (9, 4),
    (110, "a"): (9, 0),
    (110, "f"): (9, 0),
    (120, "a"): (8, 7),
    (120, "f"): (8, 8),
    (121, "a"): (8, 8),
    (121, "f"): (8, 8),
}


def _all() -> dict[str, Target]:
    table: dict[str, Target] = {}
    for base in _BASES:
        table[base.name] = base
        for suffix in ("a", "f"):
            version = _SUFFIXED.get((base.sm, suffix))
            if version is not None:
                name = base.name + suffix
                table[name] = replace(base, name=name, suffix=suffix, min_ptx=version, accelerated=suffix == "a")
    return table


@cache
def targets() -> dict[str, Target]:
    """All 26 targets by name (``sm_75`` ... ``sm_121f``), in ascending order."""
    return _all()


def target(name: str) -> Target:
    """The record of ``name``, e.g. ``sm_90a``. Raises :class:`CompileError` for a name that ptxas's ``-arch`` would not
    take."""
    found = targets().get(name)
    if found is None:
        raise CompileError(f"Value '{name}' is not defined for option 'gpu-name'", severity="fatal")
    return found


def fitting_target(ptx: bytes) -> str:
    """The target to compile PTX for where none is given: the one that it names, if there is such a target."""
    name = named_target(ptx)
    return name if name in targets() else DEFAULT_TARGET


@cache
def numbers() -> tuple[int, ...]:
    """The numbers of all SMs, in ascending order."""
    return tuple(sorted({t.sm for t in targets().values()}))


#: SM -> most resident warps and CTAs that launch bounds may ask for.
SM_RESIDENCY: Final = {t.sm: (t.max_warps, t.max_ctas) for t in targets().values()}
