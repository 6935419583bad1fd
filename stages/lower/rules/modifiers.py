"""The modifiers that each core rule supports, by PTX opcode (without types). Other modifiers are refused: no rule
ignores a modifier."""

from __future__ import annotations

from ir_format.ptx import PtxInst
from ir_format.typed import Final


def _s(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SPACES = _s("global shared shared::cta shared::cluster local const param param::entry param::func")
_SCOPES = _s("cta cluster gpu sys")
_VECTOR = _s("v2 v4 v8")
_L1 = _s("L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate")
_L2_FETCH = _s("L2::64B L2::128B L2::256B")
_L2_EVICT = _s(
    "L2::evict_last L2::evict_normal L2::evict_first"
)  # of 256-bit accesses alone; a hint, which their two halves have no field for
_HINT = _s("L2::cache_hint")
_COMPARE = _s("eq ne lt le gt ge lo ls hi hs and or xor")
_WIDTH = _s("lo hi wide")
_CLAMP = _s("clamp wrap")
_BULK = (
    _s(
        "bulk reduce prefetch tensor L2 shared::cluster bulk_group read mbarrier::complete_tx::bytes "
        "multicast::cluster "
        "cp_mask noftz weak relaxed ignore_oob sync_restrict::proxy::async"
    )
    | _s(
        "add min max inc dec and or xor 1d 2d 3d 4d 5d tile im2col im2col::w im2col::w::128 im2col_no_offs "
        "tile::gather4 "
        "tile::scatter4 cta_group::1 cta_group::2 im2col_no_offs::w mbarrier::report::disabled"
    )
    | _s(
        "mbarrier::report::validity::per_16bytes::80000000 mbarrier::report::validity::per_16bytes::8000 "
        "mbarrier::report::validity::per_16bytes::80 mbarrier::report::validity::per_16bytes::8 "
        "mbarrier::report::validity::per_element::ff"
    )
)
_WGMMA_SHAPES = frozenset(f"m64n{n}k{k}" for n in range(8, 257, 8) for k in (8, 16, 32, 64, 256))
_MMA_SHAPES = _s("m8n8k4 m8n8k16 m8n8k32 m8n8k128 m16n8k4 m16n8k8 m16n8k16 m16n8k32 m16n8k64 m16n8k128 m16n8k256")
_TEXTURE = _s("1d 2d 3d cube a1d a2d acube 2dms a2dms v2 v4")
_SURFACE = _s("1d 2d 3d a1d a2d v2 v4 trap clamp zero")
_QUERY = _s(
    "level width height depth channel_data_type channel_order normalized_coords array_size num_mipmap_levels "
    "num_samples memory_layout"
) | _s("filter_mode addr_mode_0 addr_mode_1 addr_mode_2 force_unnormalized_coords")
_ATOMIC = (
    _s(
        "add min max inc dec and or xor exch cas noftz relaxed acquire release acq_rel global shared shared::cta "
        "shared::cluster"
    )
    | _SCOPES
    | _HINT
)

_TCGEN05 = (
    _s(
        "mma sp ws cp shift down commit ld st red alloc dealloc relinquish_alloc_permit wait::ld wait::st "
        "fence::before_thread_sync fence::after_thread_sync"
    )
    | _s(
        "cta_group::1 cta_group::2 sync aligned shared::cta shared::cluster multicast::cluster mbarrier::arrive::one "
        "ashift block_scale block16 block32"
    )
    | _s(
        "kind::f16 kind::tf32 kind::i8 kind::f8f6f4 kind::mxf8f6f4 kind::mxf4 kind::mxf4nvf4 scale_vec::1X "
        "scale_vec::2X scale_vec::4X"
    )
    | _s(
        "128x256b 4x256b 128x128b 64x128b 32x128b warpx2::02_13 warpx2::01_23 warpx4 b8x16 b6x16_p32 b4x16_p64 min "
        "max abs NaN"
    )
    | _s("exclusive kind::ti16 decompress::lut::b")
    | _s("32x32b 16x64b 16x128b 16x256b 16x32bx2 pack::16b unpack::16b x1 x2 x4 x8 x16 x32 x64 x128")
    | frozenset(
        f"collector::{w}::{how}"
        for w in ("a", "b", "b0", "b1", "b2", "b3")
        for how in ("fill", "use", "lastuse", "discard")
    )
)

MODIFIERS: Final[dict[str, frozenset[str]]] = {
    **{op: _s("sat cc") for op in ("add", "sub", "addc", "subc")},
    "clmad": _s("lo hi"), "mul": _WIDTH, "mad": _WIDTH | _s("sat cc"), "madc": _WIDTH | _s("cc"), "mul24": _s("lo hi"),
    "mad24": _s("lo hi sat"),
    "min": _s("relu"), "max": _s("relu"), "lop3": _s("and or"), "shf": _s("l r") | _CLAMP, "szext": _CLAMP,
    "bmsk": _CLAMP,
    "prmt": _s("f4e b4e rc8 ecl ecr rc16"), "bfind": _s("shiftamt"), "setp": _COMPARE, "set": _COMPARE,
    "slct": _s("ftz"), "dp2a": _s("lo hi"),
    "ld": _SPACES | _SCOPES | _VECTOR | _L1 | _L2_FETCH | _L2_EVICT | _HINT
        | _s("weak relaxed acquire volatile mmio nc ca cg cs lu cv proxy::readonly"),
    "ldu": _s("global v2 v4"),
    "st": _SPACES | _SCOPES | _VECTOR | _L1 | _L2_EVICT | _HINT
        | _s("async mbarrier::complete_tx::bytes weak relaxed release volatile mmio wb cg cs wt bulk"),
    "istypep": _s("samplerref texref surfref"),
    "prefetch": _s("local global L1 L2 L1::32B valid_addr L2::evict_last L2::evict_normal tensormap param const"),
    "prefetchu": _s("L1"),
    "discard": _s("global L2"),
    "fabric": _s("submit wait op_restrict::fetching sync_restrict::reads try_get try_put try_red try_pullred async")
        | _s("multimem shared::cta mbarrier::complete_tx::bytes mbarrier::complete_tx::16B mbarrier::report::fabric")
        | _s("cp_mask counted::bytes relaxed sys and or xor add min max acc::f16 acc::f32 sync") | _HINT,
    "applypriority": _s("global L2::evict_normal async bulk bulk_group tensor tile tile::gather4 im2col im2col::w "
        "im2col::w::128 1d 2d 3d 4d 5d"), "mov": _s("v2 v4"), "cvta": _SPACES | _s("to"), "isspacep": _SPACES,
    "cvt": _s("sat pack"),
    "atom": _ATOMIC | _VECTOR, "red": _ATOMIC | _VECTOR | _s("async mbarrier::complete_tx::bytes mmio"),
    "clusterlaunchcontrol": _s("try_cancel async query_cancel is_canceled get_first_ctaid get_first_ctaid::x "
        "get_first_ctaid::y get_first_ctaid::z v4")
    | _s("shared::cta mbarrier::complete_tx::bytes multicast::cluster::all"),
    "bar": _s("cta sync arrive red popc and or warp"),
    "barrier": _s("cta cluster sync arrive wait red popc and or aligned acquire release relaxed"),
    "membar": _s("cta gl sys proxy alias"),
    "fence": _SCOPES | _s("sc acq_rel acquire release proxy async async.global global shared::cta shared::cluster "
        "mbarrier_init")
    | _s("sync_restrict::shared::cluster sync_restrict::shared::cta tensormap::generic async::generic alias "
        "sync_restrict::read fabric::generic generic::fabric fabric::fabric"),
    "shfl": _s("sync up down bfly idx"), "vote": _s("sync any all uni ballot"), "match": _s("sync any all"),
    "redux": _s("abs NaN sync add min max and or xor"), "elect": _s("sync"),
    "cp": _s("mbarrier arrive noinc async ca cg shared shared::cta global commit_group wait_group wait_all")
        | _s("multicast::cluster::16b multicast::cluster::32b L2::evict_last")
        | _L2_FETCH | _HINT | _BULK | _SCOPES,
    "tensormap": _s("replace tile global_address rank box_dim global_dim global_stride element_stride elemtype "
        "interleave_layout swizzle_mode fill_mode")
    | _s("swizzle_atomicity global shared::cta b1024 cp_fenceproxy tensormap::generic release sync aligned") | _SCOPES,
    "multimem": _s("ld_reduce st red weak relaxed acquire release global add min max and or xor acc::f16 acc::f32")
        | _s("cp async bulk bulk_group shared::cta cp_mask reduce noftz inc dec") | _SCOPES | _VECTOR,
    "setmaxnreg": _s("inc dec sync aligned"),
    "wgmma": _s("fence mma_async commit_group wait_group sync aligned sp satfinite and popc") | _WGMMA_SHAPES,
    "griddepcontrol": _s("wait launch_dependents"), "pmevent": _s("mask"),
    "bra": _s("uni"), "brx": _s("idx uni"), "call": _s("uni"), "ret": _s("uni"),
    "ldmatrix": _s("sync aligned m8n8 m8n16 m16n16 x1 x2 x4 trans shared shared::cta b6x16_p32 b4x16_p64 b8x16"),
    "stmatrix": _s("sync aligned m8n8 m16n8 x1 x2 x4 trans shared shared::cta"),
    "wmma": _s("load store mma a b c d sync aligned row col global shared shared::cta satfinite xor and popc rn rz "
        "rm rp")
    | _s("m16n16k16 m8n32k16 m32n8k16 m16n16k8 m8n8k4 m8n8k32 m8n8k128"),
    "tex": _TEXTURE | _s("base level grad"), "tld4": _TEXTURE | _s("r g b a"), "txq": _QUERY, "suq": _QUERY,
    "suld": _SURFACE | _s("b ca cg cs cv"), "sust": _SURFACE | _s("b p wb cg cs wt"),
    "sured": _SURFACE | _s("b p add min max and or"),
    "movmatrix": _s("sync aligned m8n8 row col trans"),
    "mma": _MMA_SHAPES | _s("sync aligned row col satfinite xor and popc rn rz rm rp sp sp::ordered_metadata "
        "block_scale scale_vec::1X "
        "scale_vec::2X scale_vec::4X")
    | _s("kind::f8f6f4 kind::mxf8f6f4 kind::mxf4 kind::mxf4nvf4"),
    "mbarrier": _s("init inval arrive arrive_drop expect_tx complete_tx test_wait try_wait pending_count parity "
        "noComplete check_layout shared shared::cta layout::v0 layout::v1 phase_type::primary phase_type::conditional")
    | _s("relaxed acquire release shared::cluster") | _SCOPES,
    **{op + n: _s("sat add min max wrap clamp po shr7 shr15 eq ne lt le gt ge") for op in ("vadd", "vsub", "vabsdiff",
        "vmin", "vmax", "vshl", "vshr", "vset", "vmad", "vavrg") for n in ("", "2", "4")},
    "tcgen05": _TCGEN05
        | _s("multicast::cluster::16b multicast::cluster::32b sync_restrict::shared::read::mma::a"),
    "mapa": _s("shared::cluster"), "getctarank": _s("shared::cluster"),
    "createpolicy": _s("global fabric fractional range cvt L2 L2::evict_last L2::evict_first L2::evict_unchanged "
        "L2::evict_normal"),
}  # fmt: skip
_NONE: Final[frozenset[str]] = frozenset()


def unknown_modifier(inst: PtxInst) -> str:
    """The first modifier that the core rule of the instruction does not support; '' if it supports all."""
    known = MODIFIERS.get(inst.op, _NONE)
    types = inst.types
    for m in inst.mods:
        if m not in known and m not in types:
            return m
    return ""
