"""Special registers: which differ between the threads of a warp, which are invariant while a thread runs, which tell
the time.

A name covers every register that begins with it (``SR_TID`` for ``SR_TID.X``). Documented in the PTX manual, except
SR_SWINHI, SR_CgaCtaId and SRZ, which were measured: ptxas's code reads them in one place and uses the value everywhere.
"""

from __future__ import annotations

from ir_format.typed import Final

#: Register -> facts: ``thread`` (differs between the threads of a warp), ``invariant`` (a thread always reads the same
#: value).
_FACTS: Final = {
    "SR_TID": "thread invariant", "SR_LANEID": "thread invariant", "SR_EQMASK": "thread invariant",
    "SR_LTMASK": "thread invariant",
    "SR_LEMASK": "thread invariant",
    "SR_GTMASK": "thread invariant", "SR_GEMASK": "thread invariant", "SR_CTAID": "invariant", "SR_NTID": "invariant",
    "SR_NCTAID": "invariant", "SR_SWINHI": "invariant",
    "SR_CgaCtaId": "invariant", "SRZ": "invariant", "SR_CLOCK": "clock", "SR_GLOBALTIMER": "clock",
}  # fmt: skip

#: Beginnings of names, for ``str.startswith``.
THREAD: Final = tuple(name for name, facts in _FACTS.items() if "thread" in facts)
INVARIANT: Final = tuple(name for name, facts in _FACTS.items() if "invariant" in facts)
CLOCKS: Final = tuple(name for name, facts in _FACTS.items() if "clock" in facts)
