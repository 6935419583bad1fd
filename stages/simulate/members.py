"""Members of convergence barriers: rows of 32-bit sets, one for each lane (:mod:`state`)."""

from __future__ import annotations

import numpy as np

from stages.simulate.state import Arr, View, ballot


def together(members: Arr, waits: Arr, go: Arr) -> Arr:
    """Those of ``go`` whose members wait for the same threads as they do. In recursion the barrier of a deeper call has
    the same number but is another barrier."""
    sets = np.where(waits, members, 0).reshape(-1, 32)
    mixed = (np.where(waits.reshape(-1, 32), sets, sets.max(1, keepdims=True)) != sets.max(1, keepdims=True)).any(1)
    if not mixed.any():
        return go
    out = go.copy()
    for warp in np.flatnonzero(mixed):
        row, here, mine = sets[warp], waits[32 * warp : 32 * warp + 32], out[32 * warp : 32 * warp + 32]
        for value in np.unique(row[mine]):
            others = here & (row != value)
            if int(ballot(others)[0]) & int(value):
                mine &= row != value
    return out


def leave(view: View, k: int, lanes: Arr) -> None:
    """Remove lanes from convergence barrier ``k``: they wait for no lane, and no lane waits for them. Lanes with other
    members are at another barrier of that number, a caller's, which gets its members back."""
    row = view.B[k]
    gone = ~ballot(lanes).repeat(32)
    sets = row.reshape(-1, 32)
    mine = np.where(lanes.reshape(-1, 32), sets, 0).max(1).repeat(32)
    if k < 16 and not (lanes & (row != mine)).any():
        same = row == mine
        row[same] &= gone[same]
    else:
        row &= gone
    row[lanes] = 0
