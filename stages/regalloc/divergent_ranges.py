"""Uniform registers and divergent code.

A UR, UP or B register belongs to the whole warp. The two paths of a divergent branch run one after the other, or
interleaved, so a write on one path is seen on the other. The liveness of a thread does not know this. Therefore two
such registers that are live or named in a divergent region with two paths interfere over the whole region. A region
with one path needs nothing, because the threads that skip it wait at its end.
"""

from __future__ import annotations

from ir_format.flow import post_dominators
from ir_format.typed import Final
from stages.analysis.divergence import divergent_branches, divergent_paths, has_two_paths
from stages.regalloc.live_ranges import Ranges, Seg, overlap, union

WARP_FILES: Final = frozenset({"UR", "UP", "B"})


def divergent_regions(ranges: Ranges) -> list[list[int]]:
    """Block positions of the outermost divergent regions with two paths."""
    cfg = ranges.cfg
    blocks = ranges.func.blocks
    forks = divergent_branches(ranges.func, cfg)
    if not forks:
        return []
    join = post_dominators(cfg)
    covered: set[int] = set()
    found: list[list[int]] = []
    for fork in forks:
        if fork in covered or not has_two_paths(cfg, blocks, fork, join[fork]):
            continue
        region = set().union(*divergent_paths(cfg, blocks, fork, join[fork]))
        covered |= region
        found.append(sorted(region))
    return found


def widen(ranges: Ranges, temps: set[int], files: frozenset[str] = WARP_FILES) -> None:
    """Extend the live ranges of warp registers over the divergent regions in which they occur. ``temps`` are excepted:
    spill code is next to its use."""
    vregs = ranges.func.vregs
    owner = ranges.cells.owner
    warp = [
        c
        for c in range(ranges.cells.count)
        if vregs[owner[c][0]].file in files and ranges.segs[c] and owner[c][0] not in temps
    ]
    if not warp:
        return
    for region in divergent_regions(ranges):
        hull: list[Seg] = []
        for pos in region:
            low, high = 2 * ranges.starts[pos], 2 * ranges.starts[pos + 1]
            if low < high:
                if hull and hull[-1][1] == low:
                    hull[-1] = (hull[-1][0], high)
                else:
                    hull.append((low, high))
        for cell in warp:
            if overlap(ranges.segs[cell], hull):
                ranges.segs[cell] = union(ranges.segs[cell], hull)
