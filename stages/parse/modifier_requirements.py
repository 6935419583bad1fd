"""Modifiers that call for another one, or that do not go with one: what is said before the modifiers of any one row are
looked at.

The table says which modifiers a row has; where none has all those given, ptxas first names pairs that need or exclude
each other.  Each rule gives the message, or nothing; all were measured on ptxas 13.0.
"""

from __future__ import annotations

from collections.abc import Callable

from ir_format.typed import Final
from stages.parse import repeated_modifiers, rules

Rule = Callable[[str, tuple[str, ...], tuple[str, ...]], str]

_ORDERS: Final = ("relaxed", "acquire", "release", "acq_rel")
_ORDERED_BY: Final = {"ld": ("relaxed", "acquire"), "st": ("relaxed", "release")}
_FORMATS: Final = ("b8x16", "b6x16_p32", "b4x16_p64")


def _of(mods: tuple[str, ...], choice: tuple[str, ...] | frozenset[str]) -> str:
    return next((m for m in mods if m in choice), "")


def _needs(name: str, have: str, want: str) -> str:
    return f"Modifier '.{have}' requires modifier '.{want}' for instruction '{name}'"


def _layouts(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    """Products of matrices have a layout for each of A and B."""
    count = sum(m in ("row", "col") for m in mods)
    if name in ("mma", "wmma.mma"):
        return (
            "" if count > 1 else f"'.{'' if count else 'alayout.'}blayout' modifier required for instruction '{name}'"
        )
    return "" if count == 1 else f"layout modifier required for instruction '{name}'"


def _products(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    """The bits of `wmma.mma` take two operations, and no other product takes one."""
    operations = [m for m in mods if m in rules.POST]
    if "b1" not in types:
        return f"Unexpected instruction types specified for '{name}'" if operations else ""
    if name == "wmma.mma" and operations == ["popc"]:
        return f"Illegal reduction operation for instruction '{name}.{types[0]}.{types[-1]}'"
    shape = next((m for m in mods if rules.is_shape(m)), "")
    if name == "mma" and operations == ["popc"]:
        return f"Illegal reduction operation for instruction 'mma.{types[0]}.{types[-1]}'"
    if (name == "wmma.mma" and len(operations) == 1) or (name == "mma" and len(operations) < 2):
        return f"Unexpected number of operations specified for {name} with shape '.{shape}'"
    return repeated_modifiers.TWO_OPERATIONS if name == "wmma.mma" and operations and not shape else ""


def _block_scale(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    kind = next((m for m in mods if m.startswith("kind::")), "")
    size = next((m for m in mods if m.startswith("scale_vec::") or m in ("block16", "block32")), "")
    if "block_scale" in mods:
        if not kind:
            return "Modifier '' cannot be combined with modifier '.block_scale'"
        return _needs(name, kind, "scale_vectorsize") if kind == "kind::mxf4nvf4" and not size else ""
    if size:
        return _needs(name, size, "block_scale")
    return f".block_scale modifier required for instruction '{name}'" if kind.startswith("kind::mx") else ""


def _looked_up(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    """A table of B's numbers is one of eight-bit floats."""
    kind = next((m for m in mods if m.startswith("kind::")), "")
    odd = "ashift" if "ashift" in mods else kind if kind not in ("kind::f8f6f4", "kind::mxf8f6f4") else ""
    if "decompress::lut::b" not in mods or not odd:
        return ""
    return f"Modifier '.decompress::lut::b' cannot be combined with modifier '.{odd}'"


def _copied(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    """`tcgen05.cp`: shapes that go to several warps, formats in two words."""
    shape = next((m for m in mods if rules.is_shape(m)), "")
    warps = any(m.startswith("warpx") for m in mods)
    if warps and not shape:
        return f"Modifier .warptype not allowed for instruction {name} with shape ''"
    if shape in ("64x128b", "32x128b") and not warps:
        return f"Modifier '.warptype' require for instruction {name} with shape '.{shape}'"
    return _formats(name, mods, types)


def _formats(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    if sum(m in _FORMATS for m in mods) == 1:
        return "Unexpected number of 'format conversion' modifiers specified"
    shape = next((m for m in mods if rules.is_shape(m)), "")
    if shape == ("m16n8" if name == "stmatrix" else "m16n16") and "trans" not in mods:
        return f"Modifier '.trans' require for instruction {name} with shape '.{shape}'"
    return ""


def _asynchronous(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    """`red.async`: an order always, an mbarrier in the cluster."""
    order = _of(mods, _ORDERS)
    if "mmio" in mods:
        if order != "release":
            return _needs(name, "mmio", "release")
        return "" if _of(mods, rules.SCOPES) else f"Modifier '.mmio' requires scope with '{name}' instruction"
    if not order:
        return f"order modifier required for instruction '{name}'"
    if order == "relaxed" and "cluster" in mods and "mbarrier::complete_tx::bytes" not in mods:
        return _needs(name, "cluster", "completion_mechanism")
    return ""


def _memory(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    """Loads and stores: orders, scopes and the read-only path."""
    order = _of(mods, _ORDERS)
    scope = _of(mods, rules.SCOPES)
    vector = _of(mods, rules.VECTORS)
    if "mmio" in mods:
        if vector:
            return f"Modifier '.mmio' cannot be combined with modifier '.{vector}'"
        if order != "relaxed":
            return _needs(name, "mmio", "relaxed")
        return "" if scope else f"Modifier '.mmio' requires scope with '{name}' instruction"
    if order and not scope and order in _ORDERED_BY[name]:
        return f"Modifier '.{order}' requires scope with '{name}' instruction"
    if scope and "volatile" in mods:
        return f"Modifier '.volatile' cannot be combined with modifier '.{scope}'"
    if scope and not order:
        return f"Modifier '.{scope}' requires memory order with '{name}' instruction"
    if "nc" in mods and "global" not in mods:
        return "Modifier '.nc' requires .global space"
    return ""


def _packed(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    """Reductions through a multicast address have small floats in vectors only."""
    small = types[:1] and (types[0][0] == "e" or types[0] in ("f16", "bf16"))
    bare = name != "multimem.st" and not _of(mods, rules.POST)
    return (
        "" if not small or bare or _of(mods, rules.VECTORS) else f"Unexpected instruction types specified for '{name}'"
    )


def _fence(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    word = next((m for m in mods if m == "mbarrier_init" or m.startswith("sync_restrict")), "")
    if word and not _of(mods, _ORDERS):
        return f"Modifier '.{word}' requires modifier 'order'"
    return f"Modifier '.{word}' requires modifier 'scope'" if word and not _of(mods, rules.SCOPES) else ""


def _proxy(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    order = _of(mods, _ORDERS)
    tail = f"modifier required for instruction '{name}'"
    if "async::generic" not in mods and "tensormap::generic" not in mods:
        return f".proxykind {tail}" if any(m.startswith("sync_restrict") for m in mods) else ""
    if order not in ("acquire", "release"):
        return f".acquire/.release {tail}"
    if "tensormap::generic" in mods:
        return ""
    if not _of(mods, rules.SCOPES):
        return f".cluster {tail}"
    if not any(m.startswith("sync_restrict") for m in mods):
        return f".sync_restrict::shared::{'cluster' if order == 'acquire' else 'cta'} {tail}"
    return ""


def _extreme(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    if "abs" in mods and "xorsign" not in mods and "f" in types[0]:
        return "Modifier '.abs' requires modifier '.xorsign'"
    if "relu" in mods and types[:1] and types[0] in ("s16", "u16", "u32"):
        return f"Illegal modifier '.relu' for instruction '{name}' with type '.{types[0]}'"
    return _rectified(name, mods, types)


def _rectified(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    wide = "relu" in mods and types[:1] and types[0] in ("f32", "f64")
    return f"Unexpected instruction types specified for '{name}'" if wide else ""


def _unflushed(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    small = types[:1] and types[0] in ("f16", "f16x2", "bf16", "bf16x2")
    if not small or ("add" not in mods and name[:2] == "cp"):
        return ""
    if "noftz" in mods:
        lone = _of(mods, ("min", "max")) and not _of(mods, rules.VECTORS) and name[:2] != "cp"
        return f"Vector modifier required for instruction '{name}'" if lone else ""
    if name == "cp.reduce.async.bulk":
        return f"Modifier '.noftz' required for instruction '{name}' with type '.{types[0]}' and operation '.add'"
    return f"'.noftz' modifier required for instruction '{name}' with type '.{types[0]}'"


def _approximate(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    """A rounding and `.approx` exclude each other; what is approximate in bf16 and f64 has words of its own."""
    if name in ("rcp", "sqrt", "div"):
        if "approx" in mods and types == ("f64",) and name != "rcp":
            return f"Illegal modifier '.approx' for instruction '{name}'"
        if "approx" in mods and _of(mods, ("rn", "rz", "rm", "rp")):
            return f"Rounding modifier or '.approx' modifier required for instruction '{name}'"
        bare = name == "rcp" and types == ("f64",) and "approx" in mods and "ftz" not in mods
        return "'.ftz' modifier required for instruction 'rcp.approx.f64'" if bare else ""
    if types[:1] in (("f16",), ("f16x2",)) and _of(mods, ("rn", "rz", "rm", "rp")):
        return f"Rounding modifier or '.approx' modifier required for instruction '{name}'"
    if types[:1] not in (("bf16",), ("bf16x2",)):
        return ""
    if "approx" not in mods:
        return f".approx modifier required for instruction '{name}'"
    return f".ftz modifier required for instruction '{name}.{types[0]}'" if name == "ex2" and "ftz" not in mods else ""


def _video(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    if "sat" in mods and "add" in mods:
        return "Illegal combination of .sat and .add modifiers"
    operations = [m for m in mods if m in rules.POST]
    lone = operations in (["min"], ["max"])
    return f"Illegal secondary operation for video instruction '{name}'" if lone else ""


def _lacks(want: str, text: str) -> Rule:
    """A rule that asks for one modifier."""
    return lambda name, mods, types: "" if want in mods else f"{text} modifier required for instruction '{name}'"


def _tensor_map(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    fields = rules.MAP_FIELDS & frozenset(mods)
    if not fields and types == ("b64",):
        return f"Illegal modifier '' for instruction '{name}' with type '.b64'"
    return "" if fields else f"Tensormap field modifier required for instruction '{name}'"


def _two_spaces(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    lone = sum(m in rules.SPACES for m in mods) == 1
    return f"Unexpected number of state spaces specified in instruction '{name}'" if lone else ""


def _one_space(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    two = sum(m in rules.SPACES for m in mods) > 1
    return f"Unexpected number of state spaces specified in instruction '{name}'" if two else ""


def _shaped(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    shape = any(rules.is_shape(m) for m in mods)
    if name == "movmatrix":
        return "" if shape else f"Illegal matrix shape '' for instruction '{name}'"
    return "" if shape else f"Shape modifier required for instruction '{name}'"


def _map_prefetch(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    odd = "tensormap" not in mods and _of(mods, ("const", "param"))
    return f"State space incorrect for instruction '{name}'" if odd else ""


def _ordered_copy(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    """Bulk copies: what is weak has no type, what stays in the cluster few scopes."""
    scope = _of(mods, rules.SCOPES)
    copied = "reduce" not in name
    if copied and "weak" in mods and types == ("b128",):
        return f"Illegal modifier '.weak' for instruction '{name}' with '.b128'"
    if scope in ("gpu", "sys") and "relaxed" in mods and "shared::cluster" in mods and "shared::cta" in mods:
        return f"Illegal modifier '.{scope}' for instruction '{name}' with '.relaxed.shared::cluster.shared::cta'"
    return ""


def _absolute(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    word = _of(mods, ("NaN", "abs")) if types != ("f32",) else ""
    return f"Instruction '{name}' requires '.f32' type with '.{word}' modifier." if word else ""


def _expected(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    """A space that must be written out."""
    want = "::cluster" if name in ("mapa", "getctarank") else ".shared::cta"
    text = f"State space incorrect for instruction '{name}', expected '{want}'"
    return text if "shared" in mods else ""


def _saturated(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    whole = "satfinite" in mods and (
        all(t[0] in "us" for t in types) or types[:1] == ("f16x2",) and rules.small_pair(types)
    )
    return f"Unexpected instruction types specified for '{name}'" if whole else ""


_RULES: Final[dict[str, tuple[Rule, ...]]] = {
    "mma": (_products, _layouts),
    "wgmma.mma_async": (_products,),
    "wmma.mma": (_products, _layouts),
    **{f"wmma.{x}": (_layouts,) for x in ("load.a", "load.b", "load.c", "store.d")},
    "tcgen05.mma": (_looked_up, _block_scale),
    "tcgen05.cp": (_copied, _shaped),
    "tcgen05.ld": (_shaped,),
    "tcgen05.st": (_shaped,),
    "tcgen05.shift": (_lacks("down", ".down"),),
    "ldmatrix": (_formats,),
    "stmatrix": (_formats,),
    "movmatrix": (_shaped,),
    "red.async": (_asynchronous,),
    "ld": (_memory,),
    "st": (_memory,),
    "multimem.ld_reduce": (_packed,),
    "multimem.st": (_packed,),
    "multimem.red": (_packed,),
    "fence": (_fence,),
    "fence.proxy": (_proxy,),
    "min": (_extreme,),
    "max": (_extreme,),
    "fma": (_rectified,),
    "atom": (_unflushed,),
    "red": (_unflushed,),
    "cp.async.bulk": (_ordered_copy,),
    "multimem.cp.async.bulk": (_ordered_copy,),
    "multimem.cp.reduce.async.bulk": (_ordered_copy,),
    "cp.reduce.async.bulk": (_ordered_copy, _unflushed),
    **dict.fromkeys(("rcp", "sqrt", "div", "ex2", "tanh"), (_approximate,)),
    **{f"v{x}{n}": (_video,) for n in "24" for x in ("add", "sub", "avrg", "absdiff", "min", "max", "set")},
    "tensormap.replace": (_tensor_map,),
    "cp.async": (_two_spaces,),
    "cp.async.bulk.prefetch": (_one_space,),
    "cp.async.bulk.prefetch.tensor": (_one_space,),
    "prefetch": (_map_prefetch,),
    "redux": (_absolute,),
    "cvt": (_saturated,),
    **dict.fromkeys(("mapa", "getctarank", "st.bulk", "tcgen05.alloc"), (_expected,)),
    "clusterlaunchcontrol.try_cancel.async": (
        _expected,
        _lacks("mbarrier::complete_tx::bytes", ".mbarrier::complete_tx::bytes"),
    ),
}
#: What none of these takes together with a memory order.
_CACHED: Final = rules.CACHE | {"nc"}


def pair(name: str, mods: tuple[str, ...], types: tuple[str, ...]) -> str:
    """The first complaint about modifiers that need or exclude each other; "" if there is none."""
    order = _of(mods, (*_ORDERS, "volatile"))
    cache = _of(mods, _CACHED)
    if order and cache and name != "cp.async":
        return f"Modifier '.{order}' cannot be combined with modifier '.{cache}'"
    return next((text for rule in _RULES.get(name, ()) if (text := rule(name, mods, types))), "")
