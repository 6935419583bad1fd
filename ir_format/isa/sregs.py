"""Special registers: which differ between threads of a warp, which stay as they are while a thread runs, which tell the
time.

A name speaks of every register that begins with it (``SR_TID`` of ``SR_TID.X``). Documented (PTX manual) but for
SR_SWINHI, SR_CgaCtaId and SRZ, which are measured in ptxas's code: computed once, read everywhere.
"""

from __future__ import annotations

from typing import Final

#: Register -> facts: ``thread`` (differs between the threads of a warp), ``steady`` (a thread always reads the same).
_FACTS: Final = {
    "SR_TID": "thread steady", "SR_LANEID": "thread steady", "SR_EQMASK": "thread steady", "SR_LTMASK": "thread steady",
    "SR_LEMASK": "thread steady",
    "SR_GTMASK": "thread steady", "SR_GEMASK": "thread steady", "SR_CTAID": "steady", "SR_NTID": "steady",
    "SR_NCTAID": "steady", "SR_SWINHI": "steady",
    "SR_CgaCtaId": "steady", "SRZ": "steady", "SR_CLOCK": "clock", "SR_GLOBALTIMER": "clock",
}  # fmt: skip

#: Beginnings of names, for ``str.startswith``.
THREAD: Final = tuple(name for name, facts in _FACTS.items() if "thread" in facts)
STEADY: Final = tuple(name for name, facts in _FACTS.items() if "steady" in facts)
CLOCKS: Final = tuple(name for name, facts in _FACTS.items() if "clock" in facts)
