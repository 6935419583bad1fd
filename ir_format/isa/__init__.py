"""The ISA spec: every SASS instruction form of sm_75 to sm_121 as a row; encoder, decoder, printer and reader walk the
rows.

>>> t = target(90)
>>> t.complete("IADD3", (), (Reg...,), (...))

Importing this package reads no rows; a row is compiled when its mnemonic is first used.
"""

from __future__ import annotations

from ir_format.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from ir_format.isa.machine import Target as Target

_TARGETS: dict[int, Target] = {}


def target(sm: int | str) -> Target:
    """The instruction set of an SM: 90, "90a", "sm_90a". Raises ValueError for an SM without rows."""
    number = sm if isinstance(sm, int) else int(sm.removeprefix("sm_").rstrip("af"))
    found = _TARGETS.get(number)
    if found is None:
        from ir_format.isa.machine import Target
        from ir_format.isa.rowlang import SMS

        if number not in SMS:
            raise ValueError(f"no instruction set for sm_{number}")
        found = _TARGETS[number] = Target(number)
    return found
