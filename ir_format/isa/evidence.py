"""The provenance of a row: the SMs on which ptxas has written a word of it.

Every row was measured with nvdisasm (bits flipped, texts read; random words agree). :mod:`ir_format.isa.rows.seen` says
for which rows ptxas was seen to write a word; ``python -m tests.isa.evidence`` makes it from the test corpus. A guessed
row has ``src=guess`` among its facts.
"""

from __future__ import annotations

from functools import lru_cache

from ir_format.isa.rowlang import SMS, sm_set, source


def key_of(text: str, taken: dict[str, int]) -> str:
    """The short name of a row text: mnemonic with its fixed modifiers and opcode; ``#2`` and so on for the next rows of
    the same name."""
    name, opcode = text.split(None, 2)[:2]
    key = f"{name}/{opcode}"
    taken[key] = taken.get(key, 0) + 1
    return key if taken[key] == 1 else f"{key}#{taken[key]}"


@lru_cache(maxsize=1)
def keys() -> dict[str, str]:
    """Row text as written -> its short name, in the order of the tables."""
    taken: dict[str, int] = {}
    return {text: key_of(text, taken) for texts in source().rows.values() for text in texts}


@lru_cache(maxsize=1)
def seen() -> dict[str, frozenset[int]]:
    """Short name -> the SMs on which ptxas wrote a word of the row."""
    from ir_format.isa.rows.seen import TEXT

    out: dict[str, frozenset[int]] = {}
    for line in TEXT.strip().splitlines():
        head, _, names = line.partition(":")
        if names:
            sms = sm_set(head.strip())
        else:
            names = head
        out.update(dict.fromkeys(names.split(), sms))
    return out


def describe(key: str, sm: int, guessed: bool = False) -> str:
    """``ptxas``: ptxas writes it on this SM; ``ptxas sm_90``: ptxas writes it on another SM, and nvdisasm knows it on
    this one; ``nvdisasm``; ``guess``."""
    if guessed:
        return "guess"
    where = seen().get(key, frozenset())
    if sm in where:
        return "ptxas"
    return f"ptxas sm_{min(where, key=lambda s: (abs(SMS.index(s) - SMS.index(sm)), s))}" if where else "nvdisasm"


def ranges(sms: frozenset[int]) -> str:
    """``75-89,100``: the inverse of :func:`~ir_format.isa.rowlang.sm_set`."""
    out: list[str] = []
    run: list[int] = []
    for sm in (*SMS, 0):
        if sm in sms:
            run.append(sm)
        elif run:
            out.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
            run = []
    return ",".join(out)
