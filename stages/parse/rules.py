"""Modifiers: classes and messages."""

from __future__ import annotations

from ir_format.late_pattern import late_pattern
from ir_format.typed import Final

ROUNDINGS: Final = frozenset(["rn", "rz", "rm", "rp", "rna", "rs", "rni", "rzi", "rmi", "rpi"])
COMPARISONS: Final = frozenset(
    ["eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]
)
SPACES: Final = frozenset(
    [
        "const",
        "global",
        "local",
        "param",
        "param::entry",
        "param::func",
        "shared",
        "shared::cta",
        "shared::cluster",
        "tex",
    ]
)
VECTORS: Final = frozenset(["v2", "v4", "v8"])
CACHE: Final = frozenset(["ca", "cg", "cs", "lu", "cv", "wb", "wt"])
POST: Final = frozenset(["and", "or", "xor", "add", "min", "max", "inc", "dec", "exch", "cas", "popc"])
# What ptxas refuses on an instruction that has no use for it before it looks at the instruction's own gate (measured on
# 22 gated instructions).
EARLY_ILLEGAL: Final = frozenset(("L2::cache_hint", "relu", "satfinite", "sync"))
#: What it refuses before it looks at the types, on names that have no use for it (measured on 20 instructions).
BEFORE_TYPES: Final = (
    EARLY_ILLEGAL
    | (POST - {"inc", "dec", "exch"})
    | {"L2::64B", "L2::128B", "L2::256B", "cta_group::1", "cta_group::2", "tile", "tile::gather4", "tile::scatter4"}
    | {"im2col", "im2col::w", "im2col::w::128", "im2col_no_offs", "multicast::cluster", "multicast::cluster::all"}
)
# What it refuses after the gates of instructions whose other modifiers it looks at before them (measured on atom, red,
# mma and wgmma).
LATE_ILLEGAL: Final = (
    ROUNDINGS | COMPARISONS | VECTORS | CACHE | {"clamp", "wrap", "trap", "zero", "volatile", "relaxed", "acquire",
    "release", "gpu", "cta", "sys", "cluster", "nc", "NaN", "trans", "x1", "x2", "x4", "cc"}
)  # fmt: skip
CLAMPS: Final = frozenset(["clamp", "wrap", "trap", "zero"])
SCOPES: Final = frozenset(["cta", "cluster", "gpu", "sys"])
ORDERS: Final = frozenset(["relaxed", "acquire", "release", "acq_rel", "sc", "weak", "volatile"])
DIMENSIONS: Final = frozenset(["1d", "2d", "3d", "4d", "5d", "a1d", "a2d", "cube", "acube", "2dms", "a2dms"])
PLAIN: Final = frozenset(["1d", "2d", "3d", "4d", "5d"])
TYPES: Final = frozenset(
    [
        "u8",
        "u16",
        "u32",
        "u64",
        "s8",
        "s16",
        "s32",
        "s64",
        "b8",
        "b16",
        "b32",
        "b64",
        "b128",
        "f16",
        "f16x2",
        "bf16",
        "bf16x2",
        "tf32",
        "f32",
        "f64",
        "f32x2",
        "pred",
        "e4m3",
        "e5m2",
        "e4m3x2",
        "e5m2x2",
        "e2m3",
        "e3m2",
        "e2m1",
        "e2m1x2",
        "e2m3x2",
        "e3m2x2",
        "e4m3x4",
        "e5m2x4",
        "e2m1x4",
        "e2m3x4",
        "e3m2x4",
        "ue8m0",
        "ue8m0x2",
        "ue4m3",
        "u4",
        "s4",
        "u2",
        "s2",
        "b1",
        "u16x2",
        "s16x2",
        "u8x4",
        "s8x4",
        "s2f6x2",
        "ue5m3x2",
        "ue8m0x4",
        "e2m1p4x4",
        "texref",
        "samplerref",
        "surfref",
    ]
)

QUERIES: Final = frozenset(
    [
        "width", "height", "depth", "normalized_coords", "filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2",
        "channel_data_type", "channel_order", "array_size", "num_mipmap_levels", "num_samples", "memory_layout",
        "force_unnormalized_coords",
    ]
)  # fmt: skip
COMPONENTS: Final = frozenset(("a", "b", "g", "r"))
PERMUTES: Final = frozenset(("b4e", "ecl", "ecr", "f4e", "rc8", "rc16"))
_SHAPE: Final = late_pattern(r"m\d+n\d+(k\d+)?|\d+x\d+b(x2)?")

_CARRYING: Final = frozenset(("add", "sub", "mad.lo", "mad.hi"))
#: What takes `.sat` with some integers.
SATURATED: Final = frozenset(("add", "sub", "addc", "subc", "mad.hi", "madc.hi", "mad24.hi"))


def small_pair(types: tuple[str, ...]) -> bool:
    """Whether a conversion reads two small floats."""
    return len(types) == 2 and types[1][0] == "e" and types[1].endswith("x2")


#: What a message calls a modifier that it does not name itself.
_CLASSES: Final[dict[str, str]] = {
    **dict.fromkeys(CLAMPS, "Clamp"),
    **dict.fromkeys(COMPONENTS, "Component"),
    **dict.fromkeys(PLAIN, "dimension"),
    **dict.fromkeys(DIMENSIONS - PLAIN, "Geometry"),
    **dict.fromkeys(PERMUTES, "Permute"),
    **dict.fromkeys(("shr7", "shr15"), "Shift-right"),
    **{
        f"{level}::{priority}": ".level::eviction_priority"
        for level in ("L1", "L2")
        for priority in ("evict_first", "evict_last", "evict_normal", "evict_unchanged", "no_allocate")
    },
}


#: What names an operation's type when the operation does not have it.
TYPED_OPERATIONS: Final = frozenset(
    ("redux", "red.async", "cp.reduce.async.bulk", "multimem.red", "multimem.ld_reduce")
)
_EXTREMES: Final = ".u32 or .s32 or .u64 or .s64 or .f16 or .f16x2 or .bf16 or .bf16x2"
_OPERATION_TYPES: Final = {
    **dict.fromkeys(("and", "or", "xor"), ".b32 or .b64"),
    **dict.fromkeys(("inc", "dec"), ".u32"),
    **dict.fromkeys(("min", "max"), _EXTREMES),
    "exch": ".b32 or .b64 or .b128",
}


def illegal(mod: str, name: str, spaced: bool, types: tuple[str, ...] = ()) -> str:
    """The message for a modifier that the instruction does not take (`spaced`: it takes some state space)."""
    if mod == "sat" and name in SATURATED and types and types[0][0] in "us":
        return f"Modifier '.sat' does not apply to '.{types[0]}' type"
    if mod in ROUNDINGS and mod != "rs":
        return f"Illegal rounding modifier for instruction '{name}'"
    if mod in SPACES:
        if spaced or name == "membar.proxy":
            return f"State space incorrect for instruction '{name}'"
        return f"No state space qualifier expected for instruction '{name}'"
    if mod in VECTORS and name.startswith("wmma."):
        return f"Argument vector size mismatch for instruction '{name}'"
    if mod in VECTORS:
        return f"Vector qualifier is not allowed for instruction '{name}'"
    if mod in COMPARISONS and name in ("set", "setp"):
        return "Mismatch between instruction type and comparison qualifier"
    if mod == "cc" and name in _CARRYING and types and types[0][1:] == "16":
        return f"Modifier '.cc' applies only to {name} integer types"
    if mod in COMPARISONS:
        return f"Comparison qualifier is not allowed for instruction '{name}'"
    if mod in QUERIES:
        return f"Illegal query modifier for instruction '{name}'"
    if mod in POST and types:
        if name in TYPED_OPERATIONS and not (name == "multimem.red" and mod in ("inc", "dec", "exch")):
            return f"Incorrect type '.{types[0]}' for operation '.{mod}' in instruction '{name}'"
        if name in ("atom", "red") and mod in _OPERATION_TYPES and (name, mod) != ("red", "exch"):
            return f"Operation .{mod} requires {_OPERATION_TYPES[mod]} type for instruction '{name}'"
    if mod in ("inc", "dec", "exch"):
        return f"Illegal reduction operation for instruction '{'.'.join((name, *types))}'"
    if mod in DIMENSIONS and name == "tld4" and "ms" not in mod:
        return f"Illegal modifier '.{mod}' for instruction '{name}'"
    if mod in _CLASSES:
        return f"Illegal modifier '{_CLASSES[mod]}' for instruction '{name}'"
    if name == "cvt" and mod in ("satfinite", "relu") and types[1:] == ("ue8m0x2",):
        of = ".".join(types) if mod == "satfinite" else types[1]
        return f"Illegal modifier '.{mod}' for instruction 'cvt' with type '.{of}'"
    if mod in ("row", "col"):
        return f"Illegal modifier '.alayout or .blayout' for instruction '{name}'"
    return f"Illegal modifier '.{mod}' for instruction '{name}'"


_MISSING: Final[dict[str, str]] = {
    "approx": ".approx modifier required",
    "clamp": "Clamp modifier required",
    "trap": "Clamp modifier required",
    "1d": "Geometry modifier required",
    "2d": "Geometry modifier required",
    "sync": ".sync modifier required",
    "aligned": ".aligned modifier required",
    "row": "layout modifier required",
    "col": "layout modifier required",
    "kind::f16": ".kind modifier required",
    "alias": ".proxykind modifier required",
    "async": ".proxykind modifier required",
    "tensormap::generic": ".proxykind modifier required",
    "cta_group::1": ".cta_group modifier required",
    "r": "Component modifier required",
    "width": "Query modifier required",
    "filter_mode": "Query modifier required",
    "force_unnormalized_coords": "Query modifier required",
    "sat": ".sat modifier required",
    "mbarrier::complete_tx::bytes": ".completion_mechanism modifier required",
    "mbarrier::arrive::one": ".completion_mechanism modifier required",
    "bulk_group": ".completion_mechanism modifier required",
    "L2::evict_last": "cache eviction priority modifier required",
    "x1": ".num modifier required",
    "x2": ".num modifier required",
    "x4": ".num modifier required",
    "up": "Shuffle modifier required",
    "rn": "Rounding modifier required",
}
_LEVELS: Final = frozenset(("L1", "L2"))
_MISSING_OF: Final[dict[tuple[str, str], str]] = {
    ("movmatrix", "trans"): ".trans modifier required",
    ("match", "any"): "'.any' or '.all' modifier required",
    ("discard", "L2"): ".L2 modifier required",
    ("applypriority", "L2::evict_normal"): "cache eviction priority modifier required",
    ("cp.async", "ca"): "'.ca or .cg' modifier required",
    ("tensormap.replace", "b1024"): "Tensormap size modifier required",
    ("rcp", "rn"): "Rounding modifier or '.approx' modifier required",
}


def missing(values: tuple[str, ...], name: str, types: tuple[str, ...]) -> str:
    """The message for a required modifier that is absent."""
    first = values[0]
    tail = f" for instruction '{name}'"
    if (name, first) in _MISSING_OF:
        return _MISSING_OF[name, first] + tail
    if name.startswith("tensormap") and first in ("tile", "release", "tensormap::generic"):
        return f".{first} modifier required{tail}"
    if is_shape(first):
        return f"Shape modifier required{tail}"
    if name == "vote" and first != "sync":
        return ".mode modifier required" + tail
    if first == "approx" and len(values) > 1:
        return "Rounding modifier or '.approx' modifier required" + tail
    if first == "1d" and name.startswith("cp."):
        return ".dim modifier required" + tail
    if name == "membar":
        return "Membar level required" + tail
    if name == "createpolicy.cvt":
        return ".L2 modifier required" + tail
    if first == "approx" and name in ("ex2", "tanh") and types[0] in ("bf16", "bf16x2"):
        return ".approx modifier required" + tail
    if first == "approx" and name in ("ex2", "tanh") and types[0] in ("f16", "f16x2"):
        return "Rounding modifier or '.approx' modifier required" + tail
    if first == "sync" and name.startswith("bar") and name != "bar.warp":
        return "Barrier modifier required" + tail
    if name == "tcgen05.shift" or (name.startswith("multimem.") and first in ("release", "bulk_group")):
        return f".{first} modifier required" + tail
    if first in _MISSING:
        return _MISSING[first] + tail
    if first in ROUNDINGS:
        return "Rounding modifier required" + tail
    if first in COMPARISONS:
        return "Comparison modifier required" + tail
    if first in _LEVELS:
        return ("Cache level modifier required" if name.startswith("prefetch") else ".level modifier required") + tail
    if first in SPACES:
        if name == "tensormap.cp_fenceproxy":
            return f"Unexpected number of state spaces specified in instruction '{name}'"
        incorrect = name.startswith("cp.") and "prefetch" not in name
        return ("State space incorrect" if incorrect else "State space modifier required") + tail
    if first in SCOPES:
        return ("Scope" if name == "fence" else "scope") + " modifier required" + tail
    if first in POST:
        return _missing_operation(name, types)
    if first[0] == "m" and first[1:2].isdigit():
        return "Shape modifier required" + tail
    if first == "satfinite" and name == "cvt":
        return f"'.satfinite' modifier required for instruction 'cvt' with destination type '.{types[0]}'"
    if len(values) == 2:
        return f"'.{first}' or '.{values[1]}' modifier required" + tail
    return f"'.{first}' modifier required" + tail


def _missing_operation(name: str, types: tuple[str, ...]) -> str:
    if name in ("atom", "red"):
        return f"Illegal operation '' for instruction '{name}'"
    if name.startswith("sured."):
        return f"Illegal operation '(null)' for instruction '{name}'"
    if name.endswith(".red") and name.startswith("bar"):
        return f"Illegal reduction operation for instruction '{name}.{types[0]}'"
    return f"Reduction operation is required for instruction '{name}'"


def spoken(name: str) -> str:
    """What messages call an instruction: without what it waits for, fences or asks."""
    if name.startswith(("tcgen05.fence::", "tcgen05.wait::")):
        return name.split("::")[0]
    return "clusterlaunchcontrol.query_cancel" if name.startswith("clusterlaunchcontrol.query_cancel.") else name


def is_shape(mod: str) -> bool:
    """True of a matrix shape, or of one of tensor memory."""
    return _SHAPE.fullmatch(mod) is not None


def conditional(name: str, mods: tuple[str, ...]) -> str:
    """An operand is there that a modifier must call for, or the modifier without its operand."""
    if name in ("setp", "set") and any(m[:4] == "bf16" for m in mods):
        return f"Arguments mismatch for instruction '{name}'"
    if name in ("setp", "set", "lop3") and not any(m in ("and", "or", "xor") for m in mods):
        return f"Boolean operation is required for instruction '{name}'"
    return f"Arguments mismatch for instruction '{name}'"


_SMALL_FLOATS: Final = frozenset(("e3m2", "e2m3", "e2m1"))
_FP8: Final = frozenset(("e4m3", "e5m2"))


def feature(name: str, mods: tuple[str, ...]) -> str:
    """What a gate message calls an instruction: its name, or the feature that it belongs to (measured)."""
    words = frozenset(mods)
    if name == "wgmma.mma_async":
        if words & _FP8:
            kind = "FP8 types"
        elif "b1" in words:
            kind = "boolean type"
        elif "s32" in words:
            kind = "mixed integer types" if {"u8", "s8"} <= words else "integer types"
        else:
            kind = "floating point types"
        return f"{'Sparse ' if 'sp' in words else ''}{name} with {kind}"
    if name == "mma":
        if "block_scale" in words:
            return "mma with block scale"
        if words & _SMALL_FLOATS:
            return "mma with with FP6/FP4 floating point type"
        if words & _FP8:
            return "mma with FP8 floating point type"
        if words & {"sp", "sp::ordered_metadata"}:
            return "Sparse MMA"
    if name in ("atom", "red") and words & VECTORS:
        return f"{name} instruction with vector types"
    if name in ("st.async", "red.async") and "release" in words:
        return "st.async/red.async with .release modifier"
    types = [m for m in mods if m in TYPES]
    if name in ("add", "sub", "mul", "fma") and (
        words & {"f32x2", "bf16", "bf16x2", "u16x2", "s16x2", "u8x4", "s8x4"} or len(types) == 2
    ):
        return ".".join([name, *types])
    if name == "cvt" and words & {"e4m3x2", "e5m2x2"}:
        return "cvt with .e4m3x2/.e5m2x2"
    if name == "cvt" and words & {"f16x2", "bf16", "bf16x2", "tf32"}:
        return ".".join([name, *types])
    if words & {"f16", "f16x2"} and name in ("add", "sub", "mul", "fma", "set", "setp"):
        return "f16 arithemetic and compare instructions"
    return name.split("::")[0]


#: The fields that `tensormap.replace` writes.
MAP_FIELDS: Final = frozenset(
    (
        "global_address",
        "rank",
        "box_dim",
        "global_dim",
        "global_stride",
        "element_stride",
        "elemtype",
        "interleave_layout",
        "swizzle_mode",
        "swizzle_atomicity",
        "fill_mode",
    )
)

# Words that ptxas reads and forgets on any instruction that has no use for them (measured on 24 instructions).
IGNORED: Final = frozenset(
    [
        "acc::f16",
        "acc::f32",
        "b8x16",
        "b6x16_p32",
        "b4x16_p64",
        "box_dim",
        "element_stride",
        "elemtype",
        "fill_mode",
        "finite",
        "global_address",
        "global_dim",
        "global_stride",
        "infinite",
        "interleave_layout",
        "normal",
        "notanumber",
        "number",
        "rank",
        "subnormal",
        "swizzle_atomicity",
        "swizzle_mode",
    ]
)

_LAYOUTS: Final = frozenset(("row", "col"))
#: Words that it forgets on some instructions only.
IGNORED_ON: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(("ldmatrix", "stmatrix", "tcgen05.cp", "tcgen05.ld", "tcgen05.st"), _LAYOUTS),
    "cp.async.bulk": SCOPES,
    "bar": frozenset(("any", "all")),
    **dict.fromkeys(("bar.arrive", "bar.red"), frozenset(("any",))),
}

# Words that ptxas knows as modifiers although no row here takes them.
KNOWN_ELSEWHERE: Final = frozenset(("tex", "sp", "cp"))
