"""``.nv.info``, ``.nv.info.<kernel>`` and ``.nv.compat``: attribute records.

A record is (format, code, 16 bits): format 1 = no value, 2 = byte, 3 = half word, 4 = size of the payload that follows
(measured by patching one code at a time and reading the name that cuobjdump prints). Kernel records are two tables, one
per ABI generation, in file order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence

from ir_format.diag import CompileError
from ir_format.features import has
from ir_format.model import AttrValue, Param
from ir_format.target import PARAM_SMALL, Target
from ir_format.typed import Final
from stages.elf import attrs
from stages.elf.headers import KINDS
from stages.elf.layout import Kernel

NVAL: Final = 1
BVAL: Final = 2
HVAL: Final = 3
SVAL: Final = 4

# Codes (names as cuobjdump prints them).
CTAIDZ_USED: Final = 0x04
MAX_THREADS: Final = 0x05
PARAM_CBANK: Final = 0x0A
EXTERNS: Final = 0x0F
REQNTID: Final = 0x10
FRAME_SIZE: Final = 0x11
MIN_STACK_SIZE: Final = 0x12
KPARAM_INFO: Final = 0x17
MAX_STACK_SIZE: Final = 0x23
CBANK_PARAM_SIZE: Final = 0x19
MAXREG_COUNT: Final = 0x1B
EXIT_INSTR_OFFSETS: Final = 0x1C
CRS_STACK_SIZE: Final = 0x1E
COOP_GROUP_INSTR_OFFSETS: Final = 0x28
COOP_GROUP_MASK_REGIDS: Final = 0x29
WMMA_USED: Final = 0x2B
ATOM16_EMUL_INSTR_REG_MAP: Final = 0x2E
REGCOUNT: Final = 0x2F
INT_WARP_WIDE_INSTR_OFFSETS: Final = 0x31
INDIRECT_BRANCH_TARGETS: Final = 0x34
SW2861232_WAR: Final = 0x35
SW_WAR: Final = 0x36
CUDA_API_VERSION: Final = 0x37
CTA_PER_CLUSTER: Final = 0x3D
NUM_MBARRIERS: Final = 0x38
MBARRIER_INSTR_OFFSETS: Final = 0x39
EXPLICIT_CLUSTER: Final = 0x3E
MAX_CLUSTER_RANK: Final = 0x3F
INSTR_REG_MAP: Final = 0x40
RESERVED_SMEM_USED: Final = 0x41
UNUSED_LOAD_BYTE_OFFSET: Final = 0x44
KPARAM_INFO_V2: Final = 0x45
TEXMODE_INDEPENDENT: Final = 0x4D
SAMPLER_INIT: Final = 0x09
SYSCALL_OFFSETS: Final = 0x46
VRC_CTA_INIT_COUNT: Final = 0x4A
NUM_BARRIERS: Final = 0x4C
AT_ENTRY_FRAGMENTS: Final = 0x4F
SPARSE_MMA_MASK: Final = 0x50
GEN_ERRBAR_AT_EXIT: Final = 0x53
TCGEN05_1CTA_USED: Final = 0x51
TCGEN05_2CTA_USED: Final = 0x52
REG_RECONFIG: Final = 0x54
BLOCKS_ARE_CLUSTERS: Final = 0x5B
ANNOTATIONS: Final = 0x55
MERCURY_ISA_VERSION: Final = 0x5F

TOOLKIT: Final = 0x82  # 13.0, as major * 10: what the ABI generation we write belongs to
COOP_MASK_REG: Final = 0x05000000  # register number of the mask of a warp-cooperative instruction
COOP_MASK_CONST: Final = 0xFFFFFFFF

# Space codes of KPARAM_INFO: sm_90+ numbers const 4 (measured).
_SPACE: Final = {
    "": 0,
    "local": 1,
    "shared": 2,
    "const": 3,
    "global": 4,
    "generic": 5,
    "texture": 6,
    "surface": 7,
    "sampler": 8,
}
_NO_PLACE: Final = 0xFFFF


def record(fmt: int, code: int, value: int = 0) -> bytes:
    """A record without payload."""
    return struct.pack("<BBH", fmt, code, value)


def words(code: int, *values: int) -> bytes:
    """A record with 32-bit words as payload."""
    if len(values) > 0x3FFF:
        raise CompileError(f"attribute record {code:#x}: {len(values)} entries are more than a record holds")
    return struct.pack(f"<BBH{len(values)}I", SVAL, code, 4 * len(values), *values)


Symbols = dict[str, int]
Writer = Callable[[Kernel, Target, Symbols], bytes]


def _sw_war(k: Kernel, t: Target, s: Symbols) -> bytes:
    return words(SW_WAR, t.sw_war) if t.sw_war >= 0 else b""


def _api(k: Kernel, t: Target, s: Symbols) -> bytes:
    return words(CUDA_API_VERSION, TOOLKIT)


def _sw2861232(k: Kernel, t: Target, s: Symbols) -> bytes:
    return record(NVAL, SW2861232_WAR) if t.sw2861232 else b""


def _param_cbank(k: Kernel, t: Target, s: Symbols) -> bytes:
    if not k.unit.params:
        return b""
    return words(PARAM_CBANK, s[f".nv.constant0.{k.name}"], t.param_base(k.param_size) | k.param_size << 16)


def _cbank_size(k: Kernel, t: Target, s: Symbols) -> bytes:
    return (
        record(HVAL, CBANK_PARAM_SIZE, k.param_size)
        if k.param_size or any(p.space not in KINDS for p in k.unit.params)
        else b""
    )


def _kparam(t: Target, ordinal: int, p: Param, large: bool, s: Symbols) -> bytes:
    symbol = s[p.name] if p.space in KINDS else 0
    place = ordinal | (_NO_PLACE if symbol else p.offset) << 16
    if large:
        return words(KPARAM_INFO_V2, symbol, place, p.size)
    space = _SPACE.get(p.space, 0)
    if space == 3 and has(t.sm, "clusters"):
        space = 4
    align = max(p.ptr_align, 1).bit_length() - 1
    return words(KPARAM_INFO, symbol, place, (align & 0xFF) | space << 8 | 0x1F << 12 | p.size << 18)


def _kparams(k: Kernel, t: Target, s: Symbols) -> bytes:
    large = k.param_size > PARAM_SMALL
    rows = [_kparam(t, i, p, large, s) for i, p in enumerate(k.unit.params)]
    return b"".join(reversed(rows))


def _maxreg(k: Kernel, t: Target, s: Symbols) -> bytes:
    return record(HVAL, MAXREG_COUNT, k.register_limit)


def _barriers(k: Kernel, t: Target, s: Symbols) -> bytes:
    n = attrs.number(k.unit, "barriers", 0, 16)
    return record(BVAL, NUM_BARRIERS, n) if n else b""


def _externs(k: Kernel, t: Target, s: Symbols) -> bytes:
    return words(EXTERNS, *(s[name] for name in k.externs)) if k.externs else b""


def _annotations(k: Kernel, t: Target, s: Symbols) -> bytes:
    """``-annotate``: numbers of instructions (without the end's padding) and registers, as text."""
    if not k.instructions:
        return b""
    text = f"instr/R-regs: {k.instructions} instructions, {k.regcount} R-regs\0".encode()
    body = struct.pack("<2I", 3, len(text)) + text + bytes(-len(text) % 4)
    return struct.pack("<BBH", SVAL, ANNOTATIONS, len(body)) + body


def _mercury(k: Kernel, t: Target, s: Symbols) -> bytes:
    return record(HVAL, MERCURY_ISA_VERSION, t.mercury_isa)


def _offsets(code: int, mark: str) -> Writer:
    def write(k: Kernel, t: Target, s: Symbols) -> bytes:
        at = [a for a, _ in k.marks(mark)]
        return words(code, *at) if at else b""

    return write


def _coop_masks(k: Kernel, t: Target, s: Symbols) -> bytes:
    masks = [COOP_MASK_CONST if v < 0 else COOP_MASK_REG | v & 0xFF for _, v in k.marks("coop")]
    return words(COOP_GROUP_MASK_REGIDS, *masks) if masks else b""


def _exits(k: Kernel, t: Target, s: Symbols) -> bytes:
    return words(EXIT_INSTR_OFFSETS, *k.exits) if k.exits else b""


def _indirect(k: Kernel, t: Target, s: Symbols) -> bytes:
    branches: dict[int, list[int]] = {}
    for f in k.functions:
        for kind, at, value in f.code.marks:
            if kind == "brx_target":
                branches.setdefault(f.begin + at, []).append(f.begin + value)
    body: list[int] = []
    for at, to in branches.items():
        body += (at, 0, len(to), *to)
    return words(INDIRECT_BRANCH_TARGETS, *(v & 0xFFFFFFFF for v in body)) if body else b""


def _threads(k: Kernel, t: Target, s: Symbols) -> bytes:
    for key, code in (("maxntid", MAX_THREADS), ("reqntid", REQNTID)):
        dims = attrs.numbers(k.unit, key, 3, 0xFFFFFFFF)
        if dims is not None:
            return words(code, *dims)
    return b""


def _crs(k: Kernel, t: Target, s: Symbols) -> bytes:
    if not (k.converges or "crs_stack" in k.unit.attrs):
        return b""
    return words(CRS_STACK_SIZE, attrs.number(k.unit, "crs_stack", 0, 1 << 30))


def _reserved_smem(k: Kernel, t: Target, s: Symbols) -> bytes:
    return (
        record(NVAL, RESERVED_SMEM_USED)
        if t.reserved_smem_war
        or attrs.number(k.unit, "tcgen05_alloc", 0, 3)
        or attrs.number(k.unit, "reserved_smem", 0, 1)
        else b""
    )


def _fragments(k: Kernel, t: Target, s: Symbols) -> bytes:
    """What the driver runs before the kernel: preparing the allocator of tensor memory, 6 for single CTAs, 7 for
    pairs."""
    used = attrs.number(k.unit, "tcgen05_alloc", 0, 3)
    return words(AT_ENTRY_FRAGMENTS, *(6 + i for i in range(2) if used >> i & 1)) if used else b""


def _tcgen05(k: Kernel, t: Target, s: Symbols) -> bytes:
    used = attrs.number(k.unit, "tcgen05", 0, 3)
    return b"".join(
        record(NVAL, code) for i, code in enumerate((TCGEN05_1CTA_USED, TCGEN05_2CTA_USED)) if used >> i & 1
    )


def _sparse(k: Kernel, t: Target, s: Symbols) -> bytes:
    return record(HVAL, SPARSE_MMA_MASK)


def _vrc(k: Kernel, t: Target, s: Symbols) -> bytes:
    return record(BVAL, VRC_CTA_INIT_COUNT, attrs.number(k.unit, "vrc_count", 0, 0xFF)) if t.vrc_record else b""


def _cluster(k: Kernel, t: Target, s: Symbols) -> bytes:
    out = b""
    if attrs.number(k.unit, "explicitcluster", 0, 1):
        out += record(NVAL, EXPLICIT_CLUSTER)
    dims = attrs.numbers(k.unit, "reqnctapercluster", 3, 0xFFFFFFFF)
    if dims is not None:
        out += words(CTA_PER_CLUSTER, *dims)
    rank = attrs.number(k.unit, "maxclusterrank", 0, 0xFFFFFFFF)
    if rank:
        out += words(MAX_CLUSTER_RANK, rank)
    return out


def _mbarriers(k: Kernel, t: Target, s: Symbols) -> bytes:
    rows = b""
    made, loops = 0, False
    for at, value in k.marks("mbarrier"):
        op, uniform, base, offset = value & 0xFF, value >> 8 & 0xFF, value >> 16 & 0xFF, value >> 24 & 0xFFFFFFFF
        rows += struct.pack("<3I4B", at, base, offset, op, 1, uniform, 0)
        if op == 0:
            made += 1
            loops |= bool(value >> 56 & 1)
    if not rows:
        return b""
    if len(rows) > 0xFFFF:
        raise CompileError(f"unit '{k.name}': too many mbarrier instructions for one record")
    count = 0xFFFF if loops else made  # made in a loop: unknown
    return struct.pack("<BBH", SVAL, MBARRIER_INSTR_OFFSETS, len(rows)) + rows + record(HVAL, NUM_MBARRIERS, count)


def _operands(k: Kernel, t: Target, s: Symbols) -> bytes:
    """Operands of the program's instructions that the machine's instruction doesn't show: operand number, 2 for a
    register or 5 for a number, which."""
    out: list[int] = []
    for at, value in k.marks("operand"):
        what = value >> 16 & 0xFFFFFFFF
        place = (what & 0xFFFF, 0xFFFFFFFF) if value >> 8 & 0xFF == 2 else (0xFFFF, what)
        out += (at, value & 0xFFFF | place[0] << 16, place[1])
    return words(INSTR_REG_MAP, *out) if out else b""


def _pairs(code: int, mark: str) -> Writer:
    def write(k: Kernel, t: Target, s: Symbols) -> bytes:
        rows = [word & 0xFFFFFFFF for row in k.marks(mark) for word in row]
        return words(code, *rows) if rows else b""

    return write


def _flag(code: int, key: str) -> Writer:
    def write(k: Kernel, t: Target, s: Symbols) -> bytes:
        return record(NVAL, code) if attrs.number(k.unit, key, 0, 1) else b""

    return write


_COMMON: Final[tuple[Writer, ...]] = (
    _annotations,
    _mercury,
    _flag(REG_RECONFIG, "reg_reconfig"),
    _pairs(UNUSED_LOAD_BYTE_OFFSET, "unused"),
    _offsets(INT_WARP_WIDE_INSTR_OFFSETS, "int_warp_wide"),
    _coop_masks,
    _offsets(COOP_GROUP_INSTR_OFFSETS, "coop"),
)
_PLACES: Final[tuple[Writer, ...]] = (_operands, _mbarriers, _pairs(ATOM16_EMUL_INSTR_REG_MAP, "half"))
_BEFORE_90: Final[tuple[Writer, ...]] = (
    _sw_war, _api, _sw2861232, _param_cbank, _cbank_size, _kparams, _reserved_smem, _flag(WMMA_USED, "wmma_used"),
    _maxreg, _barriers, _externs, *_COMMON,
    _offsets(SYSCALL_OFFSETS, "syscall"), *_PLACES, _exits, _indirect, _flag(CTAIDZ_USED, "ctaidz_used"), _threads,
    _crs,
)  # fmt: skip
_FROM_90: Final[tuple[Writer, ...]] = (
    _flag(BLOCKS_ARE_CLUSTERS, "blocksareclusters"), _api, _kparams, _fragments, _cluster, _reserved_smem, _sparse,
    _tcgen05, _flag(WMMA_USED, "wmma_used"),
    _maxreg, _barriers, _externs, *_COMMON, _vrc,
    _offsets(SYSCALL_OFFSETS, "syscall"), *_PLACES, _exits, _indirect, _threads, _crs, _cbank_size, _param_cbank,
    _sw_war,
)  # fmt: skip


def kernel_info(k: Kernel, t: Target, symbols: Symbols) -> bytes:
    """The bytes of ``.nv.info.<kernel>``."""
    return b"".join(write(k, t, symbols) for write in (_FROM_90 if t.compat else _BEFORE_90))


_FUNCTION_BEFORE_90: Final[tuple[Writer, ...]] = (
    _sw_war,
    _api,
    _sw2861232,
    _barriers,
    _externs,
    *_COMMON,
    *_PLACES,
    _indirect,
)
_FUNCTION_FROM_90: Final[tuple[Writer, ...]] = (
    _api,
    _sparse,
    _barriers,
    _externs,
    *_COMMON,
    _vrc,
    *_PLACES,
    _indirect,
    _sw_war,
)


def function_info(k: Kernel, t: Target, symbols: Symbols) -> bytes:
    """The bytes of ``.nv.info.<function>`` of a device function in an object."""
    return b"".join(write(k, t, symbols) for write in (_FUNCTION_FROM_90 if t.compat else _FUNCTION_BEFORE_90))


def errors_at_exit(options: Mapping[str, AttrValue]) -> bool:
    """Whether the code makes errors visible at each exit, which a record of each kernel and function says."""
    return bool(options.get("make-errors-visible-at-exit") or options.get("device-debug"))


def module_info(
    kernels: list[Kernel], t: Target, symbols: Symbols, samplers: Sequence[str] = (), errors: bool = False
) -> bytes:
    """The bytes of ``.nv.info``. ``kernels`` in declaration order; a module without kernels has one record (measured).
    ``samplers``: names of the module's samplers; none has an initialiser."""
    if not kernels:
        return record(HVAL, MERCURY_ISA_VERSION, t.mercury_isa)
    out = bytearray()
    for k in kernels:
        out += words(REGCOUNT, symbols[k.name], k.regcount)
        if k is kernels[0]:
            for name in samplers:
                out += words(SAMPLER_INIT, symbols[name], 0xFFFFFFFF)
        for f in reversed(k.functions[1:]):
            out += words(FRAME_SIZE, symbols[f.symbol], f.code.frame)
        out += words(FRAME_SIZE, symbols[k.name], k.functions[0].code.frame)
        if k is kernels[0] and any(attrs.number(other.unit, "texmode_independent", 0, 1) for other in kernels):
            out += record(NVAL, TEXMODE_INDEPENDENT)
        if errors:
            out += record(NVAL, GEN_ERRBAR_AT_EXIT)
    for k in reversed(kernels):
        out += words(MIN_STACK_SIZE, symbols[k.name], k.min_stack)
    return bytes(out)


def compat(t: Target, isa_class: int, fast_finalize: int, tensormap: int, byte_products: bool) -> bytes:
    """The bytes of ``.nv.compat`` (sm_90+). ``isa_class``: 1 plain, 2 textures, bulk copies, setmaxnreg or tcgen05, 4
    wgmma; ``tensormap``: bits, 1 with tensor copies, 2 where maps are changed;
    ``byte_products``: with tcgen05 of kind i8 (measured).

    ``fast_finalize``: SMs of the family that could run the code unchanged, as bits; ptxas writes 0x09 for plain kernels
    on sm_100, 0x01 for kernels with f64, 0x50 on sm_120, 0 elsewhere (measured; that the bits name SMs is a guess). 0
    promises nothing and is always right.
    """
    return b"".join(
        (
            record(BVAL, 9, int(t.accelerated)),
            record(BVAL, 2, isa_class),
            record(BVAL, 5, 6 if byte_products else 5),
            record(HVAL, 7, 0x101),
            record(BVAL, 3, tensormap),
            record(BVAL, 6, 1),
            words(0x0B, fast_finalize, 0),
        )
    )
