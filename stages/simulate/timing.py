"""When results become visible, for the strict machine: latency classes and tables.

Distances are cycles from the issue of the producer to the issue of the consumer. The tables are the documented ones
that Mesa publishes for SM75, SM80 and SM100 (readers in rows, writers in columns). SM90 follows SM80 except for FP64
and DMMA (measured in ptxas's output); SM120 adds one cycle before and after the "dual" ALU ops (measured). If ptxas
never goes as low as a document says, the measured distance is used. Variable latencies have no bound: they are drawn
at random.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Final

from ir_format.features import has
from ir_format.isa import facts
from ir_format.model import Inst

_of = facts.of_class
_ALU: Final = _of("alu", "dual", "r2p", "p2r", "vote", "disp64")
_DUAL: Final = _of("dual", "vote") - {"PLOP3"}  # PLOP3 keeps the distances of the others (measured)
_FMA: Final = _of("fma")
_HALF: Final = _of("half", "hcmp")
#: Memory-pipe instructions that read operands as early as the special function unit does (documented for LDC,
#: measured for MATCH, barrier objects, textures and surfaces).
_EARLY: Final = (
    _of("r2ur", "credux", "ldc", "redux", "syncs", "sust") | {"MATCH", "TEX"} | facts.reading("texture", "surface")
)
#: Ops that either pipe runs: the shorter distance applies (measured: VIADD follows IMAD, and the reverse, at 4).
_EITHER: Final = frozenset(("VIADD",))
_FP64: Final = _of("fp64")
_XU: Final = _of("xu") - {"R2UR"}
_SHARED: Final = _of("lds", "shfl", "redux", "sreg") - {"QSPC"} | {"ATOMS"}
_MEMORY: Final = _SHARED | {"UBLKCP"} | _of(
    "ldg", "ldl", "ldc", "stg", "sts", "atom", "red", "ldgsts", "ldgdep", "sreg", "bar", "membar", "cctl", "errbar",
    "syncs", "arrives",
)  # fmt: skip
_FAR: Final = _of("ldg", "ldl", "atom", "ldgsts", "tex") - {"ATOMS"}
#: Pipes whose results return in the order of issue (measured: ptxas sets a scoreboard only on the last of a run).
_ORDERED: Final[dict[str, str]] = {
    **dict.fromkeys(_SHARED, "shared"), **dict.fromkeys(_of("ldc"), "const"), **dict.fromkeys(_XU, "xu"),
    **dict.fromkeys(_FP64, "fp64"), "DMMA": "dmma", "LDTM": "tensor memory",
}  # fmt: skip

#: Of the memory pipe, what touches no memory that anything writes (constants, special registers).
_UNORDERED: Final = _of("ldc", "sreg")
_UNIFORM_LOADS: Final = _of("uldc")
_TENSOR: Final = facts.having("latesrc")
#: Other instructions whose results need a scoreboard.
_TOLD: Final = (
    facts.reading("texture", "surface")
    | facts.writing("surface")
    | facts.having("warpgroup")
    | frozenset(["QMMA", "OMMA", "USETMAXREG", "UTCATOMSWS", "LDTM"])
)

_W75: Final = ("disp64", "alu", "fma", "wlo", "whi", "fp64", "half", "mma1", "mma2", "imma")
_T75: Final[dict[str, tuple[int, ...]]] = {
    "alu": (6, 4, 5, 3, 5, 9, 8, 14, 22, 10), "fma": (6, 5, 4, 2, 4, 9, 8, 14, 22, 10),
    "wide": (4, 3, 2, 2, 2, 7, 6, 12, 20, 8),
    "wab": (6, 5, 4, 4, 6, 9, 8, 14, 22, 10), "call": (3, 3, 3, 3, 3, 9, 8, 14, 22, 10),
    "fp64": (6, 6, 6, 6, 6, 8, 8, 14, 22, 10), "half": (6, 6, 6, 6, 6, 9, 6, 14, 22, 10),
    "mem": (6, 6, 6, 6, 6, 9, 8, 14, 22, 10),
    "xu": (6, 6, 6, 6, 6, 9, 8, 14, 22, 10), "mma": (6, 6, 6, 6, 6, 9, 8, 14, 22, 4),
    "branch": (6, 6, 6, 6, 6, 9, 8, 14, 22, 10),
}  # fmt: skip
_W80: Final = ("alu", "disp64", "fma", "wlo", "whi", "half", "halfmma", "fp64", "imma", "mma1", "mma2", "dmma")
_T80: Final[dict[str, tuple[int, ...]]] = {
    "alu": (4, 6, 5, 3, 5, 5, 10, 10, 13, 16, 24, 25), "fma": (5, 6, 4, 2, 4, 5, 10, 10, 13, 16, 24, 25),
    "wab": (5, 6, 4, 4, 6, 5, 10, 10, 13, 16, 24, 25), "wide": (3, 4, 2, 2, 2, 3, 8, 8, 11, 14, 22, 23),
    "half": (5, 6, 5, 3, 5, 4, 10, 10, 13, 16, 24, 25),
    "halfmma": (6, 6, 6, 6, 6, 6, 6, 6, 13, 16, 24, 25), "fp64": (6, 6, 6, 6, 6, 6, 6, 6, 13, 16, 24, 25),
    "mma": (7, 7, 7, 7, 7, 7, 11, 11, 6, 6, 10, 18), "xu": (4, 4, 4, 4, 4, 4, 6, 6, 11, 14, 22, 23),
    "branch": (4, 4, 4, 4, 4, 4, 6, 6, 11, 14, 22, 23), "call": (2, 4, 2, 2, 2, 4, 6, 6, 11, 14, 22, 23),
    "mem": (5, 5, 5, 5, 5, 5, 7, 7, 12, 15, 23, 24),
}  # fmt: skip
#: IADD.64 as a producer (measured): reader -> cycles; the pairs of the 64-bit units 4, the rest 6.
_FROM_ADD64: Final = {"alu": 5, "dual": 6, "wide": 4, "wab": 4, "add64": 4, "xu": 5}
#: Readers without a row of their own.
_AS_READER: Final = {"uni": "alu", "guard": "alu", "dual": "alu", "add64": "alu"}
#: Predicates: reader -> (from alu, fma, half, fp64).
_P75: Final = {
    "alu": (4, 5, 8, 9),
    "fma": (5, 4, 8, 9),
    "wide": (2, 2, 8, 9),
    "fp64": (12, 12, 14, 8),
    "half": (12, 12, 6, 15),
}
_P80: Final = {
    "alu": (4, 5, 5, 6),
    "fma": (5, 4, 5, 6),
    "wide": (2, 2, 5, 6),
    "fp64": (13, 13, 13, 6),
    "halfmma": (13, 13, 13, 6),
    "half": (5, 5, 4, 6),
}
_P_GUARD: Final = {75: (12, 12, 14, 15), 80: (13, 13, 13, 14)}
#: Uniform registers: reader -> (from the uniform datapath, from ULDC, UMOV or VOTEU).
_UNIFORM: Final = {"uni": (4, 2), "mem": (9, 2), "xu": (9, 2), "branch": (9, 2)}
_UNIFORM_P: Final = {"uni": (4, 1), "guard": (11, 5), "branch": (9, 2), "gmma": (11, 5)}


#: Matrix products by shape (measured on sm_80 from ptxas's distances, with TF32 as with twice the shape: IMMA.8816,
#: IMMA.8832 and BMMA.88128 to STG 12, IMMA.16816 15, HMMA.16816 23).
_PRODUCTS: Final = {
    "HMMA": {"16816": "mma2", "16832": "mma2"},
    "HMMA.TF32": {"1688": "mma2"},
    "HMMA.SP": {"16832": "mma2"},
    "HMMA.SP.TF32": {"16816": "mma2"},
    "IMMA": {"8816": "imma", "8832": "imma", "16832": "mma2", "16864": "mma2", "168128": "mma2"},
    "BMMA": {"88128": "imma", "168256": "mma2"},
}


def writer_class(inst: Inst, sm: int) -> str:
    """The class of an instruction as a producer; ``var`` has no fixed latency."""
    op = inst.op
    if is_variable(inst, sm):
        return "var"
    if op in _EITHER:
        return "either"
    if op == "IADD" and "64" in inst.mods:
        return "add64"
    if op in _ALU:
        return "disp64" if op == "CS2R" and "32" not in inst.mods else "alu"
    if op in _FMA:
        return (
            "wide" if "WIDE" in inst.mods else "high" if "HI" in inst.mods and op != "IDP" else "fma"
        )  # (IDP.2A.HI takes the upper bytes of an operand)
    if op in _HALF:
        return "halfmma" if "MMA" in inst.mods else "half"
    if op in _FP64:
        return "fp64"
    if op == "IMMA" and has(sm, "distance-products-late"):
        return "imma"  # of every shape (measured: IMMA.16832 -> IMMA at 27, STG at 26)
    if op in _PRODUCTS:
        kind = op + "".join(f".{m}" for m in ("SP", "TF32") if op == "HMMA" and m in inst.mods)
        return next((k for k in map(_PRODUCTS[kind].get, inst.mods) if k), "mma1")
    if op in _UNIFORM_LOADS:
        return "uldc"
    if op == "ELECT":
        return "elect"
    if op in ("R2UR", "CREDUX"):
        return "r2ur"
    return "uni" if op.startswith("U") else "alu"


#: Instructions whose 64-bit form runs in the 64-bit adder.
_ADDS_64: Final = frozenset(
    op
    for op, f in facts.table().items()
    if any(mods == ("64",) and name in ("iadd64", "alu64") for mods, name, _ in facts.alternatives(f))
)


def reader_class(inst: Inst, sm: int) -> str:
    """The class of an instruction as a consumer."""
    op = inst.op
    if op in _EITHER:
        return "either"
    if op in _ALU:
        return "add64" if op in _ADDS_64 and "64" in inst.mods else "dual" if op in _DUAL else "alu"
    if op in _FMA:
        return "wide" if "WIDE" in inst.mods or ("HI" in inst.mods and op != "IDP") else "fma"
    if op in _HALF:
        return "halfmma" if "MMA" in inst.mods else "half"
    if op in _FP64:
        return "fp64"
    if op in _TENSOR:
        return "mma"
    if op in facts.having("warpgroup"):
        return "gmma"
    if op in _XU or op in _EARLY:
        return "xu"
    if op in _MEMORY:
        return "mem"
    if op.startswith("U") or op == "VOTEU":
        return "uni"
    return "call" if op == "CALL" else "branch"


def is_variable(inst: Inst, sm: int) -> bool:
    """Is the result's time known only by a scoreboard? (measured from what -O0 code tags)"""
    op = inst.op
    if op in _XU or op in _MEMORY or op in ("DMMA", "BMOV"):
        return True
    if op in _FP64:
        return not has(sm, "distance-fp64-fixed")
    if op == "HMMA":
        return has(sm, "distance-hmma-told")
    if op in ("IMMA", "BMMA"):
        return has(sm, "distance-imma-told")
    if op == "R2UR":
        return has(sm, "distance-r2ur-told")
    return op in _TOLD


@cache
def latency(writer: str, part: int, dual: bool, reader: str, kind: str, uniform: bool, sm: int) -> int:
    """Cycles from issue to issue after which a fixed-latency result is visible. ``part``: which register of the result;
    ``kind``: U or P."""
    if writer == "either":
        return min(latency(w, part, dual, reader, kind, uniform, sm) for w in ("alu", "fma"))
    if reader == "either":
        return min(latency(writer, part, dual, r, kind, uniform, sm) for r in ("alu", "fma"))
    if writer == "r2ur" and kind == "P" and not uniform:
        return 8  # measured: ptxas tests whether all threads have the same value
    if writer == "r2ur":
        return 13 if has(sm, "distance-r2ur-late") else 10
    if writer == "elect":  # its predicate like an ALU's, its uniform register like a moved one (measured)
        writer = "uldc" if uniform else "alu"
    if uniform:
        table = _UNIFORM_P if kind == "P" else _UNIFORM
        pair = table.get("branch" if reader == "call" else reader, (6, 1) if kind == "P" else (6, 2))
        return pair[1] if writer in ("uldc", "uldcp") else pair[0]
    if kind == "P":
        column = {"alu": 0, "disp64": 0, "fma": 1, "wide": 1, "high": 1, "half": 2, "halfmma": 3, "fp64": 3}.get(
            writer, 0
        )
        table_p = _P75 if has(sm, "distances-first") else _P80
        row = table_p.get({"dual": "alu", "add64": "alu", "wab": "fma"}.get(reader, reader))
        if row is None:
            row = _P_GUARD[75 if has(sm, "distances-first") else 80]
        return (
            max(row[column], 5)
            if has(sm, "add-64") and dual and reader in ("alu", "dual", "fma", "wab")
            else row[column]
        )
    if writer == "add64":
        return _FROM_ADD64.get(reader, 6)
    if writer in ("mma1", "mma2", "imma") and has(sm, "distance-products"):
        base = 19 + (reader == "mma")
        if not has(sm, "distance-products-late"):
            return base
        return base + (7 if writer == "imma" else 9)
    if writer == "fp64" and reader == "fp64" and has(sm, "distance-fp64-chain"):
        return 10 if has(sm, "distance-fp64-late") else 8
    if writer == "fp64" and has(sm, "distance-fp64-late"):
        return latency(writer, part, dual, reader, kind, uniform, 100) + 2
    columns, rows = (_W75, _T75) if has(sm, "distances-first") else (_W80, _T80)
    name = (
        "whi"
        if writer == "high"
        else "wlo"
        if writer == "wide" and part == 0
        else "whi"
        if writer == "wide"
        else writer
    )
    values = rows.get(_AS_READER.get(reader, reader), rows["alu"])
    base = values[columns.index(name)] if name in columns else 4
    if reader in ("alu", "dual"):
        if name == "wlo" and has(sm, "distance-wide-low"):
            return 5  # documented as 3; before sm_90 ptxas never goes below 5 (measured)
        if has(sm, "add-64") and (dual or reader == "dual") and name == "alu":
            return base + 1
    return base + (2 if reader == "call" and has(sm, "distance-call-late") else 0)


def is_memory(inst: Inst) -> bool:
    """Does it go through the load/store pipe, in order with the other loads and stores?"""
    return inst.op in _MEMORY and inst.op not in _UNORDERED


def is_dual(inst: Inst) -> bool:
    """Is it one of the ops that SM120 treats differently (measured)?"""
    return inst.op in _DUAL


def pipe_of(inst: Inst) -> str:
    """The in-order pipe of a variable-latency instruction, '' where results may overtake each other."""
    return _ORDERED.get(inst.op, "")


class Draw:
    """Variable latencies. ``seed % 4``: 1 all short, 2 all long, 0 one in five long, the others short, 3 random;
    ``typical``: one guess per instruction, for estimates."""

    __slots__ = ("mode", "random")

    def __init__(self, seed: int, typical: bool = False) -> None:
        self.mode = 4 if typical else seed % 4
        self.random = random.Random(seed * 7919 + 17)

    def result(self, inst: Inst) -> int:
        """Cycles from issue until a variable-latency result is written."""
        op = inst.op
        if self.mode == 4:
            return 300 if op in _FAR else 28 if op in _MEMORY else 20
        low, high = (30, 900) if op in _FAR else (22, 140) if op in _MEMORY else (16, 90)
        return self._between(low, high)

    def source(self, inst: Inst) -> int:
        """Cycles from issue until the sources have been read."""
        return 12 if self.mode == 4 else self._between(6, 120)

    def _between(self, low: int, high: int) -> int:
        if self.mode == 1:
            return low
        if self.mode == 2:
            return high
        if self.mode == 0:
            return high if self.random.random() < 0.2 else low
        return low if self.random.random() < 0.4 else self.random.randint(low, high)
