"""Which registers of a file are taken at which points: one bit for each register, all of them looked up at once.

A live range is compared with every register of the file by a few unions of bitsets in place of a search in each
register's list of segments. Points stand in rows of 16, rows in pages of 16, so that a long range touches few bitsets:
what covers a whole row (page) is noted at the row (page) alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from stages.regalloc.live_ranges import Seg

_SHIFT: Final = 4


class Taken:
    """Bitsets over the registers. ``_points``: taken at a point, by a range that doesn't cover its row; ``_rows``:
    throughout a row, by a range that doesn't cover its page; ``_pages``: throughout a page. ``_in_row``, ``_in_page``:
    at any point of a row or page, but for what is taken throughout the page that a row lies in."""

    __slots__ = ("_in_page", "_in_row", "_pages", "_points", "_rows")

    def __init__(self, points: int) -> None:
        pages = (points >> 2 * _SHIFT) + 1
        self._pages = [0] * pages
        self._in_page = [0] * pages
        self._rows = [0] * (pages << _SHIFT)
        self._in_row = [0] * (pages << _SHIFT)
        self._points = [0] * (pages << 2 * _SHIFT)

    def within(self, segs: Iterable[Seg]) -> int:
        """The registers that are taken at any point of the segments."""
        points, rows, in_row, pages = self._points, self._rows, self._in_row, self._pages
        found = 0
        for start, stop in segs:
            row, last = start >> _SHIFT, (stop - 1) >> _SHIFT
            if row == last:
                found |= rows[row] | pages[row >> _SHIFT]
                for mask in points[start:stop]:
                    found |= mask
                continue
            page, end = row >> _SHIFT, last >> _SHIFT
            found |= rows[row] | rows[last] | pages[page] | pages[end]
            for mask in points[start : (row + 1) << _SHIFT]:
                found |= mask
            for mask in points[last << _SHIFT : stop]:
                found |= mask
            row += 1
            if end - page > 1:
                for mask in in_row[row : (page + 1) << _SHIFT]:
                    found |= mask
                for mask in self._in_page[page + 1 : end]:
                    found |= mask
                row = end << _SHIFT
            for mask in in_row[row:last]:
                found |= mask
        return found

    def take(self, number: int, segs: Iterable[Seg]) -> None:
        """Take a register in the segments."""
        points, in_row, in_page = self._points, self._in_row, self._in_page
        bit = 1 << number
        for start, stop in segs:
            row, last = start >> _SHIFT, (stop - 1) >> _SHIFT
            if row == last:
                if stop - start == 1:
                    points[start] |= bit
                else:
                    points[start:stop] = [mask | bit for mask in points[start:stop]]
                in_row[row] |= bit
                in_page[row >> _SHIFT] |= bit
                continue
            page, end = row >> _SHIFT, last >> _SHIFT
            in_row[row] |= bit
            in_row[last] |= bit
            in_page[page] |= bit
            in_page[end] |= bit
            row += 1
            edge = row << _SHIFT
            points[start:edge] = [mask | bit for mask in points[start:edge]]
            edge = last << _SHIFT
            points[edge:stop] = [mask | bit for mask in points[edge:stop]]
            if end - page > 1:
                self._throughout(row, (page + 1) << _SHIFT, bit)
                for at in range(page + 1, end):
                    self._pages[at] |= bit
                    in_page[at] |= bit
                row = end << _SHIFT
            if row < last:
                self._throughout(row, last, bit)

    def _throughout(self, row: int, last: int, bit: int) -> None:
        rows, in_row = self._rows, self._in_row
        rows[row:last] = [mask | bit for mask in rows[row:last]]
        in_row[row:last] = [mask | bit for mask in in_row[row:last]]

    def release(self, number: int, segs: Iterable[Seg]) -> None:
        """Undo :meth:`take` of segments that overlap no others of the register."""
        points, rows = self._points, self._rows
        keep = ~(1 << number)
        for start, stop in segs:
            row, last = start >> _SHIFT, (stop - 1) >> _SHIFT
            page, end = row >> _SHIFT, last >> _SHIFT
            for at in range(start, min(stop, (row + 1) << _SHIFT)):
                points[at] &= keep
            for at in range(max(start, last << _SHIFT), stop):
                points[at] &= keep
            inner = range(row + 1, last)
            if end - page > 1:
                for at in range(page + 1, end):
                    self._pages[at] &= keep
                    self._in_page[at] &= keep
                inner = range(row + 1, (page + 1) << _SHIFT)
                for at in range(end << _SHIFT, last):
                    rows[at] &= keep
                    self._in_row[at] &= keep
            for at in inner:
                rows[at] &= keep
                self._in_row[at] &= keep
            for at in {row, last}:
                self._in_row[at] = rows[at] | _union(points, at)
            for at in {page, end}:
                self._in_page[at] = self._pages[at] | _union(self._in_row, at)


def _union(masks: list[int], at: int) -> int:
    """The union of the masks of one row, or of the rows of one page."""
    found = 0
    for mask in masks[at << _SHIFT : (at + 1) << _SHIFT]:
        found |= mask
    return found
