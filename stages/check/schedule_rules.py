"""What the schedule checker knows beyond the hazard tables: queues that keep order, and distances measured to be
smaller.

All of it is measured on ptxas's code, independently of the scheduler's own tables, which are on the safe side.
"""

from __future__ import annotations

from typing import Final

from ir_format.features import covers
from ir_format.hazards import Access
from ir_format.isa import facts

#: Cycles beyond which no table constrains a pair (the largest cell is 33; test_schedule checks it against the tables).
REACH: Final = 48
#: Classes whose instructions finish in order, by queue: results, and reads of registers (measured C2).
RESULT_QUEUE: Final = {
    c: c for c in ("xu", "tex", "lds", "ldc", "sreg", "redux", "fp64", "dmma", "mma1", "imma1", "gmma")
} | {"shfl": "lds", "ldtm": "ldtm"}  # (LDS, LDSM signalled by SHFL: sm_75, sm_80; S2UR by S2UR: sm_90; LDTM: sm_100)
OWN_QUEUE: Final = {"QSPC": "qspc", "ATOMS": "lds"}  # measured on sm_120, sm_75 and sm_80
#: UTMALDG signalled by the next (measured on sm_100).
OWN_READS: Final = {"UTMALDG": "tma", "UTMASTG": "tma"}
WRITE_IN_ORDER: Final = frozenset(
    ("lds", "ldtm", "fp64")
)  # queues in which a result may overwrite an earlier one in flight (measured: LDS over LDS.128, @P DFMA over DFMA)
MEMORY: Final = ("lds", "ldg", "ldl", "stg", "sts", "atom", "red", "ldgsts", "bar", "shfl")
READ_QUEUE: Final = (
    RESULT_QUEUE
    | dict.fromkeys(MEMORY, "memory")
    | {
        "syncs": "syncs",
        "ldtm": "tmem",
        "sttm": "tmem",
    }
)  # STTM signalled by the LDTM after it (measured on sm_100)
#: Classes whose results leave the memory pipe after the reads of everything that entered it before (measured:
#: ptxas lets LDS, LDC, SHFL and B2R overwrite what an earlier access reads, without a wait).
BEHIND_MEMORY: Final = frozenset(("lds", "ldg", "ldl", "ldc", "atom", "sreg", "shfl"))
YOUNGEST: Final = 63  # a scoreboard counts no further
#: The counter of groups of warpgroup products, treated as a seventh scoreboard: a product with ``gsb0`` ends a
#: group, WARPGROUP.DEPBAR.LE gsb0, n waits until n groups are in flight (measured: ptxas puts it before whatever
#: touches accumulators or fragments, except products).
GROUPS: Final = 6
#: Pairs for which ptxas 13.0 goes below the tables (all measured on its output): kind, earlier, later, SMs, least
#: cycles seen. Earlier and later are a class, a mnemonic, ``=NAME`` for a result column or operand role of the tables,
#: ``MNEMONIC=ROLE``, "var" (with a scoreboard) or "" (any). The tables stay as they are for the scheduler: on the safe
#: side.
RELAXED: Final = (
    ("raw", "", "MATCH=data", "75+", 4),  # LOP3 -> MATCH.ANY on sm_90; 5
    ("raw", "=udp", "QMMA", "120+", 8),  # ULOP3 -> QMMA.SF; 9
    ("raw", "=udp", "OMMA", "120+", 8),
    (
        "raw",
        "=wlo",
        "=alu",
        "90+",
        3,
    ),  # IMAD.WIDE -> SHF, LEA, IADD3 over its low register; so documented; the table has 4
    ("raw", "=wlo", "=dual", "90+", 3),
    ("raw", "=udp64", "=uni", "120+", 4),  # UIADD3.64 -> ULOP3, its low register; the high one at 5
    ("raw", "=alu", "=hcmp", "103", 5),  # LOP3 -> HSET2, HSETP2 over their predicate; a guess says 13
    ("raw", "=mma1", "=data", "80-99", 15),  # IMMA.16816 -> STG; 16 is needed by others
    ("raw", "=mma1", "=lsu", "80-99", 15),
    ("raw", "IMMA", "", "120+", 26),  # IMMA.16832 -> STG, IADD3, IMMA (27); 28 and 32, which are right for HMMA
    ("raw", "HMMA", "HMMA", "120+", 29),  # HMMA.16816 -> HMMA.1688; 32
    ("waw", "fp64", "fp64", "100-119", 2),  # DFMA -> @P DFMA, one pipe; 6
    ("waw", "half", "", "120+", 1),  # HFMA2 -> @P MOV; a guess says 2
    (
        "waw",
        "=alu",
        "hcmp",
        "120+",
        5,
    ),  # LOP3 -> HSETP2 over the predicate that it reads; 9, documented for the first SMs
    ("waw", "=alu", "hcmp", "103", 5),
    ("waw", "=dual", "hcmp", "120+", 5),  # ISETP -> HSETP2
    ("waw", "IMMA", "", "100-119", 16),  # IMMA.16816 -> SHF; 17
    ("waw", "IMMA", "", "120+", 23),  # IMMA.16816 -> SHF; 24
    ("war", "bar", "", "75+", 1),  # BAR.RED -> LOP3 over its predicate on sm_80; 2
    ("war", "syncs", "", "75+", 1),  # SYNCS -> ULDC over its uniform address on sm_90; 2
    ("war", "mma1", "", "75+", 1),  # HMMA.1688 -> IMAD.WIDE over B on sm_90; a guess says 7
    ("war", "imma1", "", "75+", 1),  # IMMA.8816, IMMA.8832 -> IMAD.MOV over B on sm_80 and sm_90; a guess says 7
    ("war", "IMMA", "var", "120+", 1),  # IMMA.16832 -> MOVM over A
    ("war", "mma2", "mma2", "90-99", 6),  # HMMA.16816 -> HMMA.16816; 7
    ("war", "mma2", "", "120+", 8),  # HMMA.16816, QMMA.16832 -> MOV, SHF over A; 14
    ("war", "IMMA", "", "120+", 8),  # IMMA.16832 -> LOP3 over A; 14
    ("war", "mma2", "", "100-119", 1),  # HMMA.16816 -> SHF, IMMA.16832 -> LOP3, MOVM over A or B; 7
    (
        "war",
        "mma2",
        "var",
        "75+",
        1,
    ),  # HMMA.16816, QMMA -> LDC over A on sm_90 and sm_120: a result that needs a scoreboard comes late
)
#: Instructions whose least stall is a rule. Not all of a class of the table: 1 is measured after BAR, YIELD, WARPSYNC,
#: NANOSLEEP, BREAK, BPT and PMTRIG.
PACED: Final = facts.with_value("ctl", "branch", "exit", "call", "ret") | facts.of_class("membar", "depbar")
#: Cycles after which an FP64 matrix product without a scoreboard is done (measured: ptxas puts NOPs after DMMA on
#: sm_120, 586 cycles at least).
DMMA_OVER: Final = 512


def relaxed(kind: str, first: Access, first_op: str, second: Access, second_op: str, sm: int, cell: int) -> int:
    """Cycles that ptxas's output shows to be enough for such a pair over a register, :data:`REACH` if it shows
    nothing below the tables."""
    before = {"", first.klass, first_op}
    behind = {"", second.klass, second_op, "var" if second.board_w else "fixed"}
    if kind != "war":
        before.update("=" + name for at, name, _ in first.writes if at == cell)
    if kind == "raw":
        for at, role, _ in second.reads:
            if at == cell:
                behind.update(("=" + role, f"{second_op}={role}"))
    return min(
        (c for k, a, b, sms, c in RELAXED if k == kind and a in before and b in behind and covers(sms, sm)),
        default=REACH,
    )
