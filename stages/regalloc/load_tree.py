"""Numbers at consecutive points, whose ranges are increased and queried for their largest, each in logarithmic time (a
segment tree whose inner nodes keep what was added to all of their points).

Spilling undoes choices one by one; with a list each would cost the length of the function.
"""

from __future__ import annotations

from collections.abc import Sequence


class LoadTree:
    """``values``: the numbers at points 0, 1, ..."""

    __slots__ = ("_added", "_most", "_size")

    def __init__(self, values: Sequence[int]) -> None:
        size = 1
        while size < len(values):
            size *= 2
        self._size = size
        most = [0] * size + list(values) + [0] * (size - len(values))
        for node in range(size - 1, 0, -1):
            most[node] = max(most[2 * node], most[2 * node + 1])
        self._most = most  # of a node's points, with all that was added at it and below
        self._added = [0] * size  # at an inner node, to all of its points

    def add(self, start: int, stop: int, amount: int) -> None:
        """Add to the points ``start`` to ``stop`` - 1."""
        if start >= stop:
            return
        most, added, size = self._most, self._added, self._size
        low, high = start + size, stop + size
        while low < high:
            if low & 1:
                most[low] += amount
                if low < size:
                    added[low] += amount
                low += 1
            if high & 1:
                high -= 1
                most[high] += amount
                if high < size:
                    added[high] += amount
            low >>= 1
            high >>= 1
        for leaf in (start + size, stop - 1 + size):
            node = leaf >> 1
            while node:
                most[node] = max(most[2 * node], most[2 * node + 1]) + added[node]
                node >>= 1

    def most(self, start: int, stop: int) -> int:
        """The largest number at the points ``start`` to ``stop`` - 1; ``start`` < ``stop``."""
        low, high = start + self._size, stop - 1 + self._size
        left, right = self._most[low], self._most[high]  # of what lies inside, below the two nodes
        while low >> 1 != high >> 1:
            if not low & 1:
                left = max(left, self._most[low + 1])
            if high & 1:
                right = max(right, self._most[high - 1])
            low >>= 1
            high >>= 1
            left += self._added[low]
            right += self._added[high]
        found = max(left, right)
        node = low >> 1
        while node:
            found += self._added[node]
            node >>= 1
        return found
