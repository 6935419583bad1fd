"""Orders of warps that every program must survive: each warp runs by itself, none in step with another.

The machine's own order keeps warps together, which hides the effects of a missing barrier. Here every warp is a bundle
of its own, and the choice of the next one is adverse:

* ``far``: one warp runs until it waits or ends, then the next;
* ``back``: the same from the last warp on; of a diverged warp, the group that is furthest in the code runs first;
* ``parts``: the groups of a diverged warp in the opposite order, the warps in turn;
* ``random``: a random group, for a few instructions each time;
* ``starve``: one warp (chosen by the seed) runs only if no other can.

None of them is unfair for ever: a group that has been chosen :data:`PATIENCE` times without ending gives way to the
one that waited longest, so that loops that wait for another warp end, as they do on the hardware.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from stages.simulate.machine import Bundle

ORDERS: Final = ("far", "back", "parts", "random", "starve")
#: Consecutive choices of the same warp (each up to 32 control instructions) before another one runs.
PATIENCE: Final = 8
#: Choices after which the starved warp runs once.
HUNGER: Final = 48
#: Most instructions that the random order runs at once.
_FEW: Final = 12
_END: Final = 1 << 60


class Order:
    """See the module text; ``name`` is one of :data:`ORDERS`."""

    def __init__(self, name: str, seed: int, warps: int) -> None:
        if name not in ORDERS:
            raise ValueError(f"no order '{name}': there are {', '.join(ORDERS)}")
        self.random = random.Random(f"{name} {seed}")
        self.starved = 1 << seed % warps
        self.choose: Callable[[list[Bundle]], Bundle] = getattr(self, f"_{name}")
        self.few = name == "random"
        self.last = 0
        self.in_a_row = 0
        self.hunger = 0

    def pick(self, ready: list[Bundle]) -> tuple[Bundle, int]:
        """The next group of a warp and where it stops."""
        if len(ready) == 1:
            return ready[0], _END
        best = self.choose(ready)
        if best.warps == self.last:
            self.in_a_row += 1
            if self.in_a_row % PATIENCE == 0:
                best = min(ready, key=_stamp)
        if best.warps != self.last:
            self.last, self.in_a_row = best.warps, 0
        return best, best.pc + self.random.randint(1, _FEW) if self.few else _END

    def _far(self, ready: list[Bundle]) -> Bundle:
        mine = [b for b in ready if b.warps == self.last] or ready
        return min(mine, key=lambda b: (b.warps, b.pc))

    def _back(self, ready: list[Bundle]) -> Bundle:
        mine = [b for b in ready if b.warps == self.last] or ready
        return max(mine, key=lambda b: (b.warps, b.pc))

    def _parts(self, ready: list[Bundle]) -> Bundle:
        oldest = min(ready, key=_stamp)
        return max((b for b in ready if b.warps == oldest.warps), key=lambda b: b.pc)

    def _random(self, ready: list[Bundle]) -> Bundle:
        return self.random.choice(ready)

    def _starve(self, ready: list[Bundle]) -> Bundle:
        others = [b for b in ready if b.warps != self.starved]
        self.hunger += 1
        if not others or self.hunger % HUNGER == 0:
            return min(ready, key=lambda b: (b.warps != self.starved, b.pc))
        return min(others, key=_stamp)


def _stamp(bundle: Bundle) -> int:
    return bundle.stamp
