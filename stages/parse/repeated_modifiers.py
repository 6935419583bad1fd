"""Modifiers of one class that an opcode has twice, in ptxas's words: most are reported as they are read, in the order
of the text, some after all are read (measured on 13.0 with each modifier of the table doubled)."""

from __future__ import annotations

from ir_format.typed import Final
from stages.parse import rules

TWO_OPERATIONS: Final = "Multiple instruction post-operation flags set"
TWO_SHAPES: Final = "Multiple matrix shape modifiers specified"
#: What is asked whether it has two operations only after its gates.
LATE_OPERATIONS: Final = ("cp.reduce.", "multimem.", "red.async", "redux", "tcgen05.")

_ORDERS: Final = frozenset(("relaxed", "acquire", "release", "acq_rel", "sc", "weak", "volatile"))
_MECHANISMS: Final = frozenset(("bulk_group", "mbarrier::complete_tx::bytes", "mbarrier::arrive::one"))
_SHUFFLES: Final = frozenset(("up", "down", "bfly", "idx"))
_MODES: Final = frozenset(
    ("tile", "tile::gather4", "tile::scatter4", "im2col", "im2col::w", "im2col::w::128", "im2col_no_offs")
)
_TESTS: Final = frozenset(("finite", "infinite", "number", "notanumber", "normal", "subnormal"))
_CLASSES: Final = (
    (rules.ROUNDINGS, "Multiple rounding modifiers specified"),
    (rules.COMPARISONS, "Multiple comparisons set"),
    (rules.VECTORS, "Multiple vector modifiers specified"),
    (rules.CACHE, "Multiple cache operation modifiers specified"),
    (frozenset(("L1", "L2", "tensormap")), "Multiple cache operation modifiers specified"),
    (rules.SCOPES | {"gl"}, "Multiple scope modifiers specified"),
    (rules.CLAMPS, "Multiple clamp modifiers specified"),
    (frozenset(("x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128")), "Multiple .num modifiers specified"),
    (rules.QUERIES, "Multiple query modifiers specified"),
    (rules.COMPONENTS, "Multiple component modifiers specified"),
    (rules.PERMUTES, "Multiple permute modifiers specified"),
    (_TESTS, "Multiple testp operation modifiers specified"),
    (rules.PLAIN, "Multiple dimension modifiers specified"),
    (rules.DIMENSIONS - rules.PLAIN, "Multiple texture modifiers specified"),
    (_SHUFFLES - {"down"}, "Multiple shuffle modifiers specified"),
    (frozenset(("all", "any")), "Multiple .any/.all modifiers specified"),
    (frozenset(("ballot",)), "Multiple vote modifiers specified"),
    (frozenset(("sp", "sp::ordered_metadata")), "Multiple sparsity modifiers specified"),
    (_MODES, "Multiple .load_mode modifiers specified"),
    (frozenset(("block16", "block32")), "Multiple .scale_vectorsize modifiers specified"),
    (frozenset(("L2::64B", "L2::128B", "L2::256B")), "Multiple cache prefetching modifiers specified"),
    (frozenset(("shr7", "shr15")), "Multiple shift-right modifiers specified"),
    (frozenset(("b6x16_p32", "b4x16_p64")), "Unexpected number of 'format conversion' modifiers specified"),
    *[
        (frozenset((word,)), f"Duplicate .{word} modifier")
        for word in ("ftz", "nc", "noftz", "oob", "wait", "launch_dependents")
    ],
    *[
        (frozenset((word,)), f"Multiple .{word} modifiers specified")
        for word in (
            "abs", "alias", "aligned", "ashift", "async", "async::generic", "b1024", "block_scale", "cp_mask",
            "down", "L2::cache_hint", "mbarrier_init", "mmio", "multicast::cluster", "multicast::cluster::all",
            "noComplete", "noinc", "pack::16b", "read", "sync_restrict::shared::cta", "sync_restrict::shared::cluster",
            "tensormap::generic", "trans", "unpack::16b", "warpx2::01_23", "warpx2::02_13", "warpx4", "xorsign",
            *sorted(rules.MAP_FIELDS),
        )
    ],
)  # fmt: skip
_CLASS_OF: Final = {word: (k, text) for k, (words, text) in enumerate(_CLASSES) for word in words}
#: The same by what a modifier begins with.
_FAMILIES: Final = (
    ("kind::", "Multiple .kind modifiers specified"),
    ("collector::a", "Multiple .collector_usage modifiers specified"),
    ("collector::b", "Multiple .collector_usage modifiers specified"),
    ("scale_vec::", "Multiple .scale_vec_size modifiers specified"),
    ("acc::", "Multiple accumulation precision modifiers specified"),
)


class Reader:
    """What was read of one opcode."""

    __slots__ = ("_classes", "_order", "_spaces", "_words")

    def __init__(self) -> None:
        self._classes: set[int] = set()
        self._words: set[str] = set()
        self._order = False
        self._spaces = 0

    def read(self, word: str) -> list[str]:
        """The messages about the next modifier."""
        out: list[str] = []
        found = _class(word)
        if found is not None:
            if found[0] in self._classes:
                out.append(found[1])
            self._classes.add(found[0])
        if word in _ORDERS:
            if self._order:
                out.append(f"Duplicate .{word} modifier")
            self._order = True
        elif word in _MECHANISMS or word.startswith("cta_group::"):
            kind = "cta_group" if word[0] == "c" else "mechanism"
            if kind in self._words:
                out.append(f"Multiple .{word} modifiers specified")
            self._words.add(kind)
        elif word in rules.SPACES:
            self._spaces += 1
            if self._spaces == 3:
                out.append("Multiple state spaces specified")
        elif word in rules.DIMENSIONS:
            other = "plain" if word in rules.PLAIN else "geometry"
            if {"plain", "geometry"} - {other} & self._words:
                out.append("Multiple texture modifiers specified")
            self._words.add(other)
        elif word in ("sat", "satfinite", "relu", "wait", "launch_dependents"):
            self._words.add(word)
            out.extend([text for a, b, text in _TOGETHER if word in (a, b) and a in self._words and b in self._words])
        return out


_TOGETHER: Final = (
    ("satfinite", "sat", "Modifier '.satfinite' cannot be combined with modifier '.sat'"),
    ("relu", "sat", "Modifier '.relu' cannot be combined with modifier '.sat'"),
    ("wait", "launch_dependents", "Modifier '.wait' cannot be combined with modifier '.launch_dependents'"),
)


def _class(word: str) -> tuple[int, str] | None:
    """Number and message of a modifier's class."""
    found = _CLASS_OF.get(word)
    if found is not None:
        return found
    if rules.is_shape(word):
        return -1, TWO_SHAPES
    return next(((-2 - k, text) for k, (start, text) in enumerate(_FAMILIES) if word.startswith(start)), None)


def late(name: str, mods: list[str]) -> list[str]:
    """What is said of repetitions after all modifiers are read."""
    out = _eviction(name, mods)
    operations = [m for m in mods if m in rules.POST]
    if len(operations) > 1:
        video = name[0] == "v" and operations[0] == "and"  # which it refuses by itself
        alone = ("popc" in mods and not name.startswith("bar")) or name.startswith(LATE_OPERATIONS) or video
        shape = next((m for m in mods if rules.is_shape(m)), "")
        if name in ("mma", "wmma.mma") and len(operations) > 2:
            out.append(f"Unexpected number of operations specified for {name} with shape '.{shape}'")
        elif name in ("mma", "wmma.mma") and len(set(operations)) == 1:
            out.append(f"Incorrect operations specified for {name} with shape '.{shape}'")
        elif not alone:
            out.append(TWO_OPERATIONS)
    shuffles = {m for m in mods if m in _SHUFFLES}
    if len(shuffles) > 1 and "down" in shuffles:
        out.append("Multiple shuffle modifiers specified")
    votes = [m for m in mods if m in ("all", "any", "uni", "ballot")]
    if name == "vote" and len(votes) > 1 and ("uni" in votes or len(set(votes)) > 1) and {*votes} != {"all", "any"}:
        out.append("Multiple vote modifiers specified")
    if mods.count("b8x16") > 1:
        out.append("Unexpected number of 'format conversion' modifiers specified")
    return out


def _eviction(name: str, mods: list[str]) -> list[str]:
    """Priorities of eviction: loads have one for each cache, policies two that differ in what they may be."""
    out: list[str] = []
    for level in ("L1", "L2"):
        given = [m for m in mods if m.startswith((f"{level}::evict", f"{level}::no_allocate"))]
        if len(given) < 2:
            continue
        if name.startswith("createpolicy"):
            if given[1] not in ("L2::evict_first", "L2::evict_unchanged"):
                second = given[1].split("::")[1]
                out.append(f"Unsupported modifier '.{second}' as secondary_priority for instruction '{name}'")
        elif name in ("ld", "st"):
            out.append(f"Duplicate '.{level}::eviction_priority' modifier specified for instruction '{name}'")
        elif name in ("applypriority", "prefetch"):
            out.append("Multiple cache eviction priority modifiers specified")
    return out
