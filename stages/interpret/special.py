"""Special registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stages.interpret.rows import U64, Unsupported

if TYPE_CHECKING:
    from stages.interpret.machine import Machine

Arr = NDArray[Any]


def _one(x: int) -> Arr:
    return np.array([x], U64)


def cluster_rank(m: Machine) -> tuple[Arr, Arr, Arr]:
    """Block coordinates in the cluster."""
    c = m.geometry.cluster
    x, y, z = (np.asarray(m.ctaid[k][m.act] % U64(c[k])) for k in range(3))
    return x, y, z


def _linear(xyz: tuple[Arr, Arr, Arr], extent: tuple[int, int, int]) -> Arr:
    return np.asarray(xyz[0] + xyz[1] * U64(extent[0]) + xyz[2] * U64(extent[0] * extent[1]))


def special(m: Machine, name: str) -> Arr:
    """The value of a special register for the active threads."""
    word, _, part = name[1:].partition(".")
    axis = "xyzw".find(part) if part else 0
    g = m.geometry
    if word in ("tid", "ctaid"):
        return _one(0) if axis == 3 else np.asarray((m.tid if word == "tid" else m.ctaid)[axis][m.act])
    extents = {
        "ntid": g.block,
        "nctaid": g.grid,
        "cluster_nctaid": g.cluster,
        "nclusterid": tuple(-(-a // b) for a, b in zip(g.grid, g.cluster, strict=True)),
    }
    if word in extents:
        return _one(1 if axis == 3 else extents[word][axis])
    lane = (m.all[m.act] % 32).astype(U64)
    if word == "laneid":
        return np.asarray(lane)
    if word.startswith("lanemask_"):
        bit = U64(1) << lane
        below = bit - U64(1)
        masks = {"eq": bit, "lt": below, "le": below | bit, "gt": ~(below | bit), "ge": ~below}
        return np.asarray(masks[word[9:]] & U64(0xFFFFFFFF))
    if word == "warpid":
        return np.asarray((m.all[m.act] // 32 % m.warps).astype(U64))
    if word == "nwarpid":
        return _one(m.warps)
    if word in ("smid", "gridid", "current_graph_exec"):
        return _one(0)
    if word == "nsmid":
        return _one(1)
    if word in ("clock", "clock64", "globaltimer", "globaltimer_lo"):
        m.clock += 7
        return _one(m.started + m.pace * (m.executed + m.clock))
    if word in ("clock_hi", "globaltimer_hi"):
        return _one(0)
    if word == "dynamic_smem_size":
        return _one(m.dynamic_size)
    if word == "total_smem_size":
        return _one(m.shared.size)
    if word == "is_explicit_cluster":
        return _one(int(g.cluster != (1, 1, 1)))
    if word in ("cluster_ctaid", "clusterid"):
        own = cluster_rank(m)
        if axis == 3:
            return _one(0)
        return own[axis] if word == "cluster_ctaid" else np.asarray(m.ctaid[axis][m.act] // U64(g.cluster[axis]))
    if word == "cluster_ctarank":
        return _linear(cluster_rank(m), g.cluster)
    if word == "cluster_nctarank":
        return _one(g.cluster[0] * g.cluster[1] * g.cluster[2])
    raise Unsupported(name)
