"""Rules that tie modifiers, types and state spaces of one opcode together.

The table says which modifiers an instruction has; these say which go together.  Each rule gives messages in ptxas's
words; all were measured on ptxas 13.0.
"""

from __future__ import annotations

from collections.abc import Callable

from ir_format.typed import Final
from stages.parse import compat, rules
from stages.parse.targets import Target

Rule = Callable[[str, tuple[str, ...], tuple[str, ...], Target], list[str]]

_LOADS: Final = frozenset(("ld", "st"))
_SHARED: Final = frozenset(("shared", "shared::cta", "shared::cluster"))
_ORDERED: Final = ("volatile", "relaxed", "acquire", "release")
# Instructions in which an order needs a scope and a scope an order.
_PAIRED: Final = frozenset(
    [
        "multimem.ld_reduce",
        "multimem.st",
        "multimem.red",
        "mbarrier.arrive",
        "mbarrier.arrive_drop",
        "mbarrier.arrive.expect_tx",
        "mbarrier.arrive_drop.expect_tx",
        "mbarrier.expect_tx",
        "mbarrier.complete_tx",
        "mbarrier.test_wait",
        "mbarrier.test_wait.parity",
        "mbarrier.try_wait",
        "mbarrier.try_wait.parity",
    ]
)
#: Other instructions whose orders need a scope.
_MULTIMEM: Final = frozenset(("multimem.st.async", "multimem.red.async"))
_FABRIC: Final = frozenset([f"fabric.try_{what}.async" for what in ("get", "put", "red", "pullred")])
_SCOPED: Final = frozenset(("ld", "st", "red.async", "fence.proxy")) | _MULTIMEM
_NEVER: Final = {"ld": "release", "st": "acquire"}
_ADD_TYPES: Final = ".u32 or .s32 or .u64 or .f64 or f16 or f16x2 or .f32 or .bf16 or .bf16x2"


def _space(mods: tuple[str, ...]) -> str:
    return next((m for m in mods if m in rules.SPACES), "")


def _vector(mods: tuple[str, ...]) -> int:
    return next((int(m[1:]) for m in mods if m in rules.VECTORS), 0)


def aligned(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """The manual asks for `.aligned`, ptxas since 13.5."""
    missing = target.since("13.5") and "aligned" not in mods
    return [f".aligned modifier required for instruction '{name}'"] if missing else []


def reduction_scope(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """A reduction with `.mmio` is one of the system, for ptxas since 13.5."""
    if "mmio" in mods and "gpu" in mods and target.since("13.5"):
        return [f"Illegal modifier '.gpu' for instruction '{name}' with '.mmio'"]
    return []


def order_and_scope(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """`.relaxed` and its like need a scope, and a scope needs an order."""
    order = next((m for m in mods if m in ("relaxed", "acquire", "release")), "")
    scope = next((m for m in mods if m in rules.SCOPES), "")
    if order and not scope:
        return [f"Modifier '.{order}' requires scope with '{name}' instruction"]
    if scope and not order:
        return [f"Modifier '.{scope}' requires order with '{name}' instruction"]
    return []


def ordered_copy(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """Bulk copies: `.relaxed` needs a scope, and a copy the type of a whole access; a scope needs an order. The type
    came with 13.5, for all versions."""
    scope = next((m for m in mods if m in rules.SCOPES), "")
    if types == ("b128",) and not target.since("13.5"):
        return [f"Unexpected instruction types specified for '{name}'"]
    out = []
    if scope and "relaxed" not in mods:
        out.append(f"Modifier '.{scope}' requires modifier '.order'")
    if "relaxed" in mods and not types:
        out.append(f"Instruction '{name}' requires '.b128' type with '.relaxed' modifier.")
    if "relaxed" in mods and not scope:
        out.append(f"Modifier '.relaxed' requires scope with '{name}' instruction")
    return out


def load_spaces(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """Which spaces take an order, a cache priority, a prefetch size, 256 bits."""
    space = _space(mods)
    out: list[str] = []
    for m in mods:
        if m == "volatile" and space == "local":
            continue  # since PTX 9.1, which a gate asks for
        if m in _ORDERED and space and space != "global" and space not in _SHARED:
            out.append(f"Modifier '.{m}' cannot be applied to '.{space}' space")
    if "mmio" in mods and space not in ("", "global"):
        out.append(f"Modifier '.mmio' cannot be applied to '.{space}' space")
    if "mmio" in mods and _vector(mods):
        out.append(f"Modifier '.mmio' cannot be combined with modifier '.v{_vector(mods)}'")
    for m in mods:
        if space in ("", "global"):
            break
        if m.startswith(("L1::", "L2::evict")):
            out.append(f"Modifier '.{m.split('::')[1]}' cannot be applied to '.{space}' space for instruction '{name}'")
        elif m == "L2::cache_hint":
            out.append(f"Modifier '.L2::cache_hint' cannot be applied to '.{space}' space for instruction '{name}'")
        elif m in ("L2::64B", "L2::128B", "L2::256B"):
            out.append("State space incorrect for feature 'cache prefetching'")
    if "nc" in mods and any(m in ("lu", "cv") for m in mods):
        out.append("Illegal cache operation for instruction 'ld.nc'")
    priority = next((m for m in mods if m.startswith("L1::")), "")
    cache = next((m for m in mods if m in rules.CACHE), "")
    if priority and cache:
        out.append(f"Modifier '.{priority.split('::')[1]}' cannot be combined with modifier '.{cache}'")
    return out


def vector_size(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """At most 128 bits, 256 for loads and stores of global memory on sm_100 and above."""
    n = _vector(mods)
    level2 = next((m for m in mods if m in ("L2::evict_last", "L2::evict_first", "L2::evict_normal")), "")
    bits = n * compat.bit_size(types[0]) if n and types else 0
    if level2 and name in _LOADS and bits != 256:
        return [f"Instruction '{name}' requires '.v8.b32/.v4.b64' type with '.{level2}' modifier."]
    if bits <= 128:
        return []
    if types[0] == "pred":
        return [f"Vector qualifier is not allowed for instruction '{name}'"]
    if name not in _LOADS:
        return ["Vector type too large, exceeds 128 bit limit"] if bits > 128 else []
    if bits > 256:
        return []  # reported before gates, see `first`
    if types[0] == "b128":
        return ["Vector type too large, exceeds 128 bit limit"]
    out = []
    if _space(mods) not in ("", "global"):
        out.append("global state space expected for feature '256 bit wide load/store'")
    return out


def move_vector(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """`mov.vN`: no predicates, at most 128 bits."""
    if _vector(mods) and types[0] == "pred":
        return ["Vector qualifier is not allowed for instruction 'mov'"]
    return vector_size(name, mods, types, target)


def reduction_type(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """`add` has no signed 64-bit form, and no bits."""
    if "add" in mods and types and types[0] in ("s64", "b8", "b16", "b32", "b64", "b128", "u16", "s16"):
        listed = _ADD_TYPES.replace(" f16", " .f16") if target.since("13.5") else _ADD_TYPES
        return [f"Operation .add requires {listed} type for instruction '{name}'"]
    return []


def hinted_reduction(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """Shared memory has no cache that could be given a hint."""
    space = _space(mods)
    if "L2::cache_hint" not in mods or space in ("", "global"):
        return []
    return [f"Modifier '.L2::cache_hint' cannot be applied to '.{space}' space for instruction '{name}'"]


def without_sync(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """`shfl` and `vote` without `.sync` end with PTX 6.4 on sm_70."""
    if "sync" not in mods and target.can("independent-threads") and target.version >= 64:
        return [
            (
                f"Instruction '{name}' without '.sync' is not supported on .target sm_70 and higher from PTX "
                f"ISA version 6.4"
            )
        ]
    return []


def tensor_modes(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """Dimensions that the modes of a tensor copy allow."""
    dim = next((m for m in mods if m in rules.DIMENSIONS), "")
    mode = next((m for m in mods if m.startswith(("im2col", "tile"))), "")
    if mode.startswith("im2col") and dim in ("1d", "2d"):
        return [f"Modifier '.{dim}' cannot be combined with modifier '.{mode}'"]
    if mode in ("tile::gather4", "tile::scatter4") and dim != "2d":
        return [f"Modifier '.{dim}' cannot be combined with modifier '.{mode}'"]
    return []


def fabric_order(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """An order of a fabric copy needs its scope; both may be left out, or the order alone."""
    lone = "relaxed" in mods and "sys" not in mods
    return [f"Modifier '.relaxed' requires scope with '{name}' instruction"] if lone else []


def reported(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """Copies of sm_107 report what they found to the barrier."""
    how = next((m for m in mods if m.startswith("mbarrier::report::")), "")
    if not how or target.version < 94 or target.has(((107, "f"),)):
        return []
    return [f"Illegal modifier '.{how}' for instruction '{name}', for arch '{target.name}'"]


def tensor_scope(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """A scope is without meaning on a tensor copy, and taken since 13.5."""
    scope = next((m for m in mods if m in rules.SCOPES), "")
    return [rules.illegal(scope, name, True)] if scope and not target.since("13.5") else []


def satfinite_wmma(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """`.satfinite` on float wmma ended with PTX 6.5."""
    if "satfinite" in mods and types[0] in ("f16", "f32") and target.version >= 65:
        return [
            (
                f"Instruction ''{name}' with floating point type' with '.satfinite' is not supported starting "
                f"from PTX ISA version 6.5"
            )
        ]
    return []


def proxy_restrict(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """Acquire restricts to the cluster, release to the CTA; a fence of aliases restricts to reads."""
    if "alias" in mods:
        return []
    want = "sync_restrict::shared::cluster" if "acquire" in mods else "sync_restrict::shared::cta"
    have = next((m for m in mods if m.startswith("sync_restrict")), want)
    if have == want:
        return []
    if name == "fence":
        order = "acquire" if "acquire" in mods else "release"
        return [f"Modifier '.{have}' cannot be combined with modifier '.{order}'"]
    return [f".{want} modifier required for instruction '{name}'"]


def multisample(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """Cube textures take float coordinates, multi-sample ones integers."""
    out: list[str] = []
    if types and types[-1] == "s32" and any(m in ("cube", "acube") for m in mods):
        out.append("Floating-point coordinates required")
    if types and types[-1] == "f32" and any(m in ("2dms", "a2dms") for m in mods):
        out.append("Integer coordinates require .s32 instruction type")
    if types and name != "tld4":
        want = "v2" if types[0] == "f16x2" else "v4"
        if want not in mods:
            out.append(f"Instruction '{name}.{types[0]}' requires .{want} type")
    if name == "tld4" and "v4" not in mods:
        out.append(f"Instruction 'tld4.{types[0]}' requires .v4 type")
    return out


def surface_atomics(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """Which types the operations of `sured` take."""
    operation = next((m for m in mods if m in rules.POST), "")
    type_ = types[0]
    if not operation:
        return []  # it is asked for
    if name == "sured.b":
        allowed = {
            "add": ("u32", "s32", "u64"),
            "min": ("u32", "s32", "u64", "s64"),
            "max": ("u32", "s32", "u64", "s64"),
        }
        if type_ not in allowed.get(operation, ("b32",)):
            return [f"Incorrect type '.{type_}' for operation '.{operation}' in instruction '{name}'"]
    elif type_ == "b64" and operation in ("add", "and", "or"):
        return [f"Incorrect type '.b64' for operation '.{operation}' in instruction '{name}'"]
    return []


def accumulate(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """`.acc::f32` is for `add` only."""
    acc = next((m for m in mods if m.startswith("acc::")), "")
    if acc and "add" not in mods:
        return [f"Illegal reduction operation for instruction '{name}.{acc}'"]
    return []


_ROUNDED: Final = frozenset(("add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt", "mma", "wmma.mma"))
_NAMED_FIRST: Final = frozenset(("mad", "div", "rcp", "sqrt"))


def old_roundings(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """Roundings that came later: `.rm` and `.rp` with sm_20, all of `mad.f32` too, those of `div.f32` and its like with
    PTX 1.4.

    For `.f64` sm_13 has them.
    """
    if name not in _ROUNDED:
        return []
    directed = any(m in ("rm", "rp") for m in mods)
    if not target.can("doubles" if types[:1] == ("f64",) else "float-rounding") and (
        directed or (name == "mad" and types == ("f32",) and any(m in rules.ROUNDINGS for m in mods))
    ):
        return [f"Illegal rounding modifier for instruction '{name}'"]
    if (
        target.version < 14
        and any(m in rules.ROUNDINGS for m in mods)
        and ((name in ("div", "rcp", "sqrt") and types == ("f32",)) or (name == "rcp" and types == ("f64",)))
    ):
        return [rules.missing(("approx", "rn"), name, types)]
    return []


_FLUSHED_LATER: Final = frozenset([("u64", "f32"), ("s64", "f32"), ("f32", "u8"), ("f32", "s8"), ("f64", "f32")])


def old_flush(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """Conversions that take `.ftz` from PTX 1.5 on."""
    if "ftz" in mods and types in _FLUSHED_LATER and target.version < 15:
        return ["Modifier '.ftz' does not apply to this type of convert operation"]
    return []


def asynchronous_store(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """What needs what in `st.async`: `.mmio` a release, a release a scope; vectors and the cluster's memory an
    mbarrier."""
    out: list[str] = []
    if "mmio" in mods and "release" not in mods:
        out.append(f"Modifier '.mmio' requires modifier '.release' for instruction '{name}'")
    if "release" in mods and not any(m in rules.SCOPES for m in mods):
        out.append(f"Modifier '.release' requires scope with '{name}' instruction")
    if "mbarrier::complete_tx::bytes" not in mods:
        if "shared::cluster" in mods:
            out.append(
                f"Modifier '.shared::cluster' requires modifier '.completion_mechanism' for instruction '{name}'"
            )
        if _vector(mods):
            out.append(f"Vector qualifier is not allowed for instruction '{name}'")
    return out


def collected_b(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """Only products of sm_107 keep B."""
    held = next((m for m in mods if m.startswith("collector::b::")), "")
    return [f"Illegal modifier '.{held}' for instruction '{name}'"] if held and not target.has(((107, "f"),)) else []


def shifted_collector(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """A shifted A can't come from the collector, nor stay in it."""
    held = next((m for m in mods if m in ("collector::a::fill", "collector::a::use")), "")
    return [f"Modifier '.{held}' cannot be combined with modifier '.ashift'"] if held and "ashift" in mods else []


RULES: Final[dict[str, tuple[Rule, ...]]] = {
    "tcgen05.mma": (collected_b, shifted_collector),
    "ld": (vector_size, load_spaces),
    "st": (vector_size, load_spaces),
    "ldu": (vector_size,),
    "mov": (move_vector,),
    "cvt": (old_flush,),
    "tcgen05.ld": (aligned,),
    "tcgen05.st": (aligned,),
    "red.async": (reduction_scope,),
    "st.async": (asynchronous_store, vector_size),
    "suld.b": (vector_size,),
    "sust.b": (vector_size,),
    "atom": (reduction_type, hinted_reduction),
    "red": (reduction_type, hinted_reduction),
    "shfl": (without_sync,),
    "vote": (without_sync,),
    "cp.async.bulk.tensor": (tensor_modes, reported, tensor_scope),
    "cp.async.bulk.prefetch.tensor": (tensor_modes, tensor_scope),
    "cp.reduce.async.bulk.tensor": (tensor_modes, tensor_scope),
    "wmma.mma": (satfinite_wmma,),
    "fence": (proxy_restrict,),
    "fence.proxy": (proxy_restrict,),
    "tex": (multisample,),
    "tex.base": (multisample,),
    "tex.level": (multisample,),
    "tex.grad": (multisample,),
    "tld4": (multisample,),
    "sured.b": (surface_atomics,),
    "sured.p": (surface_atomics,),
    **{name: (order_and_scope,) for name in _PAIRED},
    **{name: (fabric_order,) for name in _FABRIC},
    **{
        f"{first}cp{what}.async.bulk": (ordered_copy, reported)
        for first in ("", "multimem.")
        for what in ("", ".reduce")
    },
}
RULES["multimem.ld_reduce"] = (order_and_scope, accumulate)


def sign_of_product(mods: tuple[str, ...]) -> list[str]:
    """`.xorsign` is for absolute values."""
    return ["Modifier '.xorsign' requires modifier '.abs'"] if "xorsign" in mods and "abs" not in mods else []


def lone_order(name: str, mods: tuple[str, ...], target: Target) -> list[str]:
    """An order without a scope or a scope without an order, of what has both."""
    order = next((m for m in mods if m in ("relaxed", "acquire", "release")), "")
    scope = next((m for m in mods if m in rules.SCOPES), "")
    alias = name == "fence.proxy" and "alias" in mods
    if alias and not target.since("13.5"):
        return []
    if scope and not order and (name in _MULTIMEM or alias):
        return [f"Modifier '.{scope}' requires order with '{name}' instruction"]
    restricted = next((m for m in mods if m.startswith("sync_restrict::")), "")
    if name == "fence" and restricted and not order:
        return [f"Modifier '.{restricted}' requires modifier 'order'"]
    if name not in _SCOPED or not order or scope or order == _NEVER.get(name):
        return []
    return [f"Modifier '.{order}' requires scope with '{name}' instruction"]


def ordered_fence(mods: tuple[str, ...], target: Target) -> list[str]:
    """`fence` of one direction came with sm_90; ptxas refuses it below since 13.5."""
    order = next((m for m in mods if m in ("acquire", "release")), "")
    if not order or target.can("fence-one-direction") or target.version < 60 or not target.since("13.5"):
        return []
    return [f"Modifier '.{order}' on 'fence' requires .target sm_90 or higher"]


#: Rules that ptxas applies between the gates of an instruction and those of its modifiers, whatever the operands are.
_BETWEEN: Final = frozenset((order_and_scope, ordered_copy, collected_b, reported, tensor_modes))


def between(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """What is reported directly after an instruction's own gates."""
    if name == "fence":
        return ordered_fence(mods, target)
    return [text for rule in RULES.get(name, ()) if rule in _BETWEEN for text in rule(name, mods, types, target)]


def first(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """What is reported before gates."""
    if name in _LOADS and types and _vector(mods) * compat.bit_size(types[0]) > 256 and types[0] != "pred":
        return ["Vector type too large, exceeds 128 bit limit"]
    return old_roundings(name, mods, types, target) if name in _NAMED_FIRST else []


def sizes(texts: list[str]) -> list[str]:
    """Those of the messages of `errors` that are about the size of a vector."""
    return [t for t in texts if t.startswith("Vector type") or "' type with '.L2::" in t]


def takes_scope(name: str) -> bool:
    """True of what has a memory order with a scope."""
    return name in _PAIRED


def evictions(texts: list[str]) -> list[str]:
    """Those about the space that a cache priority or prefetch goes with: a load's are said before its address is looked
    at."""
    return [t for t in texts if " space for instruction '" in t or t.endswith("'cache prefetching'")]


def errors(name: str, mods: tuple[str, ...], types: tuple[str, ...], target: Target) -> list[str]:
    """All messages about an opcode's modifiers taken together."""
    out = [] if name in _NAMED_FIRST else old_roundings(name, mods, types, target)
    for rule in RULES.get(name, ()):
        if rule not in _BETWEEN:
            out.extend(rule(name, mods, types, target))
    return out


#: Instructions whose addresses of global memory ptxas wants in 64 bits; in others (copies, matrices, tensors) it takes
#: any register (measured).
_WIDE: Final = frozenset(("ld", "ldu", "st", "atom", "red", "prefetch", "prefetchu", "applypriority", "discard"))


def narrow(name: str, mods: tuple[str, ...], types: tuple[str, ...], kinds: tuple[str, ...]) -> int:
    """Bits of an address of global memory (or a generic one) of fewer than 64 bits; 0 if there is none."""
    if name in ("cvta", "cvta.to"):
        bits = compat.bit_size(types[0])
        return bits if bits < 64 else 0
    if name == "mov":
        bits = compat.bit_size(types[0])
        return bits if kinds[1:] == ("v:global",) and bits < 64 else 0
    if name in _WIDE or name.startswith("multimem.") or name.startswith("mbarrier."):
        if _space(mods) not in ("", "global") or (name == "mbarrier.pending_count"):
            return 0
        for kind in kinds:
            if kind[:4] == "a:r:":
                bits = compat.bit_size(kind[4:])
                return bits if bits < 64 else 0
    return 0


_BETTER: Final = "should be used on"
_SLOWER: Final = "is expected to have substantially reduced performance on some future architectures"
#: Where a copy to the CTAs of a cluster is fast.
_MULTICASTS: Final = ("sm_90a", "sm_100a", "sm_100f", "sm_103a", "sm_103f", "sm_110a", "sm_110f")


def notices(name: str, mods: tuple[str, ...], target: Target) -> list[tuple[str, str]]:
    """Warnings and advice about an instruction that is right, as (severity, text)."""
    out: list[tuple[str, str]] = []
    if name in ("shfl", "vote") and "sync" not in mods:
        risk = "may produce unpredictable results on sm_70 and later architectures"
        out.append(("warning", f"Instruction '{name}' without '.sync' {risk}"))
        if target.version >= 60:
            out.append(("warning", f"Instruction '{name}' without '.sync' is deprecated since PTX ISA version 6.0"))
    if name == "mma" and "sp" in mods:
        text = f"Modifier '.sp::ordered_metadata' {_BETTER} instruction 'mma' instead of modifier '.sp' as it {_SLOWER}"
        out.append(("info", f"Advisory: {text}"))
    if "multicast::cluster" in mods and name.startswith("cp.async.bulk") and target.name not in _MULTICASTS:
        there = f"{_BETTER} .target '{'/'.join(_MULTICASTS)}' instead of .target '{target.name}'"
        where = "instruction 'cp.async.bulk{.tensor}'"
        text = f"'.multicast::cluster' modifier on {where} {there} as this feature {_SLOWER}"
        out.append(("warning", f"Advisory: {text}"))
    return out


def saturated_pair(name: str, mods: list[str], types: tuple[str, ...], target: Target) -> list[str]:
    """What ptxas says of `.satfinite` of two small floats as bf16, before it says that there is no such conversion."""
    if name != "cvt" or "satfinite" not in mods or types[:1] != ("bf16x2",) or not rules.small_pair(types):
        return []
    if types[1] == "e2m1x2":
        return []
    word = f"cvt.{'.'.join(types)}"
    if target.version < 81:
        return [f"Modifier '.satfinite' on '{word}' requires PTX ISA .version 8.1 or later"]
    return [f"Illegal modifier '.satfinite' for instruction '{word}'"]
