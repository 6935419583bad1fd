"""Special registers: types and the versions and targets that introduce them."""

from __future__ import annotations

from ir_format.typed import Final

# name -> (type, minimum PTX version times ten, minimum SM). Versions and targets: documented, then checked against
# ptxas.
_SCALAR: Final[dict[str, tuple[str, int, int]]] = {
    "%laneid": ("u32", 13, 10), "%warpid": ("u32", 13, 10), "%nwarpid": ("u32", 20, 20),
    "%smid": ("u32", 13, 10), "%nsmid": ("u32", 20, 20), "%gridid": ("u64", 10, 10),
    "%lanemask_eq": ("u32", 20, 20), "%lanemask_le": ("u32", 20, 20), "%lanemask_lt": ("u32", 20, 20),
    "%lanemask_ge": ("u32", 20, 20), "%lanemask_gt": ("u32", 20, 20),
    "%clock": ("u32", 10, 10), "%clock_hi": ("u32", 50, 20), "%clock64": ("u64", 20, 20),
    "%globaltimer": ("u64", 31, 30), "%globaltimer_lo": ("u32", 31, 30), "%globaltimer_hi": ("u32", 31, 30),
    "%is_explicit_cluster": ("pred", 78, 90), "%cluster_ctarank": ("u32", 78, 90), "%cluster_nctarank": ("u32", 78, 90),
    "%total_smem_size": ("u32", 41, 20), "%aggr_smem_size": ("u32", 81, 90), "%dynamic_smem_size": ("u32", 41, 20),
    "%reserved_smem_offset_begin": ("b32", 76, 80), "%reserved_smem_offset_end": ("b32", 76, 80),
    "%reserved_smem_offset_cap": ("b32", 76, 80), "%reserved_smem_offset_0": ("b32", 76, 80),
    "%reserved_smem_offset_1": ("b32", 76, 80), "%current_graph_exec": ("u64", 80, 50),
}  # fmt: skip
_VECTOR: Final[dict[str, tuple[str, int, int]]] = {
    "%tid": ("u32", 10, 10), "%ntid": ("u32", 10, 10), "%ctaid": ("u32", 10, 10), "%nctaid": ("u32", 10, 10),
    "%clusterid": ("u32", 78, 90), "%nclusterid": ("u32", 78, 90),
    "%cluster_ctaid": ("u32", 78, 90), "%cluster_nctaid": ("u32", 78, 90),
}  # fmt: skip

SREGS: Final[dict[str, tuple[str, int, int]]] = {
    **_SCALAR,
    **{f"{name}.{c}": facts for name, facts in _VECTOR.items() for c in "xyzw"},
    **{f"%envreg{k}": ("b32", 10, 10) for k in range(32)},
    **{f"%pm{k}": ("u32", 13, 10) for k in range(8)},
    **{f"%pm{k}_64": ("u64", 40, 50) for k in range(8)},
}


ANY_INTEGER: Final = "grid"  # %gridid was 16, then 32, then 64 bits wide: all are taken still
_UNTYPED: Final = {
    "u32": "b32",
    "u64": "b64",
}  # a special register agrees with floats too (measured), then is refused there


def sreg_type(name: str) -> str | None:
    """Type of a special register by its full name, or None if there is no such register."""
    if name == "%gridid":
        return ANY_INTEGER
    facts = SREGS.get(name)
    return None if facts is None else _UNTYPED.get(facts[0], facts[0])
