"""Binary search for the first step that makes a result wrong, where some results cannot be judged (as in `git
bisect`)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

#: Places tried between two known ones before the search gives up: each may cost a compilation and a run.
TRIES: Final = 8


class Verdict(Enum):
    """A judge's verdict on a cubin."""

    RIGHT = "right"
    WRONG = "wrong"
    OPEN = "can't be judged"


def first_wrong(right: int, wrong: int, probe: Callable[[int], Verdict]) -> tuple[int, int]:
    """The closest pair (right, wrong) around a change from right to wrong; neighbours unless what lies between cannot
    be judged. ``right`` < ``wrong`` are places with a known verdict. If several steps are wrong, one of them is
    found."""
    while wrong - right > 1:
        middle = (right + wrong) // 2
        between = sorted(
            range(max(right + 1, middle - TRIES), min(wrong, middle + TRIES + 1)), key=lambda n: (abs(n - middle), n)
        )
        for n in between[:TRIES]:
            verdict = probe(n)
            if verdict is not Verdict.OPEN:
                break
        else:
            return right, wrong
        if verdict is Verdict.RIGHT:
            right = n
        else:
            wrong = n
    return right, wrong
