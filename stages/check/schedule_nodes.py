"""One instruction as the schedule checker sees it: what it reads and writes when, and which scoreboards signal it."""

from __future__ import annotations

from typing import Final

from ir_format.flow import PHYSICAL_BASE
from ir_format.hazards import Access
from ir_format.model import INV, REUSE, ZERO, Ctl, Imm, Inst, Name, Reg
from stages.check.schedule_rules import (
    GROUPS,
    OWN_QUEUE,
    OWN_READS,
    PACED,
    READ_QUEUE,
    RESULT_QUEUE,
)
from stages.disasm.listing import Decoded

CELLS: Final = (1 << PHYSICAL_BASE["B"]) - 1  # B registers are tracked by the hardware
R_CELLS: Final = (1 << PHYSICAL_BASE["UR"]) - 1
P_CELLS: Final = (1 << PHYSICAL_BASE["UP"]) - (1 << PHYSICAL_BASE["P"])
#: Cells that are no registers. ORDER: something that later memory accesses must wait for; LOADED: a load from global
#: memory that is in flight; BEFORE_WRITES: the same after a MEMBAR; ACQUIRED: the last strong load or atomic, for whose
#: result CCTL waits.
ORDER: Final = 1 << PHYSICAL_BASE["B"] + 64
LOADED: Final = ORDER << 1
BEFORE_WRITES: Final = ORDER << 2
ACQUIRED: Final = ORDER << 3
#: Instructions that wait for ORDER (measured: before the next of these ptxas waits for FENCE and a MEMBAR with any
#: scoreboard, BAR for SYNCS too; it gives most MEMBARs no scoreboard at -O3). The loads before a MEMBAR are waited for
#: by those that are neither loads nor BAR (measured: never by 30 LDS and LDG, by 94 BAR).
ORDERED: Final = frozenset(
    ("lds", "ldg", "ldl", "stg", "sts", "atom", "red", "ldgsts", "bar", "syncs", "fence", "cctl", "bulk")
)
PLAIN: Final = frozenset(("lds", "ldg", "ldl", "stg", "sts", "atom", "red", "ldgsts", "syncs"))


class Node:
    """One instruction as the walk needs it; bitsets of cells. ``slow_w``/``slow_r``: signalled by a scoreboard; the
    rest is fixed."""

    __slots__ = (
        "access",
        "ctl",
        "depbar",
        "early_w",
        "fixed_r",
        "fixed_w",
        "group",
        "guard",
        "in_turn",
        "item",
        "op",
        "paced",
        "r",
        "reused",
        "rq",
        "signal",
        "slow_r",
        "slow_w",
        "w",
        "wq",
    )

    def __init__(self, item: Decoded, inst: Inst, access: Access) -> None:
        self.item = item
        self.access = access
        self.op = inst.op
        g = inst.guard
        self.guard = (
            (PHYSICAL_BASE[g.file] + g.num) * 2 + bool(g.flags & INV) if g is not None and g.num != ZERO else -1
        )
        self.ctl: Ctl = inst.ctl or Ctl()
        waits = drained(inst)
        if waits:
            self.ctl = self.ctl._replace(wait=self.ctl.wait | waits)
        self.w = access.write_mask & CELLS
        self.r = access.read_mask & CELLS
        self.slow_w = self.w if access.board_w else 0
        self.fixed_w = 0 if access.board_w else self.w
        self.slow_r = access.late & CELLS if access.board_r else 0
        if access.klass in ("bar", "syncs"):
            # BAR.RED reads its predicate at issue (measured: the next instruction overwrites it on sm_75 to sm_90),
            # SYNCS its uniform address (measured: ULDC and LDCU overwrite it one cycle later on sm_90 and sm_120).
            self.slow_r &= R_CELLS
        if inst.op in ("UGETNEXTWORKID", "ARRIVES") and self.ctl.rd == 7:
            self.slow_r = (
                0  # without a scoreboard R2UR overwrites what they read (measured in loops on sm_90 to sm_120)
            )
        # The predicate of a generic atomic tells where the address is: it arrives with the read scoreboard at the
        # latest (measured: the branch waits only for that).
        self.early_w = self.slow_w & P_CELLS if inst.op == "ATOM" else 0
        self.slow_w &= ~self.early_w
        product = access.klass == "gmma"
        self.group = 1 << GROUPS if product and any(type(o) is Name and o.name == "gsb0" for o in inst.srcs) else 0
        if product:
            self.slow_w, self.fixed_w, self.slow_r = self.w, 0, self.r & R_CELLS
        self.fixed_r = self.r & ~self.slow_r
        self.wq = OWN_QUEUE.get(inst.op) or RESULT_QUEUE.get(access.klass, "")
        self.rq = OWN_READS.get(inst.op) or READ_QUEUE.get(access.klass, "")
        self.depbar = depbar(inst)
        self.paced = inst.op in PACED and not (
            inst.op == "CALL" and access.guarded
        )  # (measured: stall 1 after each guarded CALL on sm_80)
        self.reused = 0
        for o in inst.srcs:
            if type(o) is Reg and o.flags & REUSE and o.num != ZERO:
                self.reused |= ((1 << o.width) - 1) << PHYSICAL_BASE[o.file] + o.num
        # DEPBAR.LE SBx, n > 0 counts: it covers only what finishes in order. Loads and atomics do not; textures do
        # (documented).
        self.in_turn = access.klass not in ("ldg", "atom") or inst.op.startswith(("T", "SU"))
        # Memory order: what this instruction makes others wait for, and what it waits for itself.
        self.signal = ORDER if access.signals else 0
        if inst.op == "FENCE" and "VIEW" in inst.mods and self.ctl.wr == 7:
            self.signal = (
                0  # FENCE.VIEW.ASYNC.S and .G without a scoreboard: nothing waits (measured on sm_90 to sm_120)
            )
        if access.klass in ORDERED:
            self.r |= ORDER if access.klass in ("lds", "ldg", "ldl", "bar") else ORDER | BEFORE_WRITES
        if access.klass == "cctl":
            self.r |= ACQUIRED
        if access.klass in ("ldg", "atom") and self.slow_w:
            self.slow_w |= LOADED | (ACQUIRED if any(m.startswith("STRONG") for m in inst.mods) else 0)


def control(word: int) -> Ctl:
    """The control word of an instruction (bits 105-121)."""
    return Ctl(word >> 105 & 15, word >> 109 & 1, word >> 110 & 7, word >> 113 & 7, word >> 116 & 63)


def depbar(inst: Inst) -> tuple[int, int] | None:
    """Scoreboard and count of DEPBAR.LE SBx, n and of WARPGROUP.DEPBAR.LE gsb0, n."""
    if "LE" not in inst.mods or not (inst.op == "DEPBAR" or "DEPBAR" in inst.mods):
        return None
    board, left = -1, 0
    for o in inst.srcs:
        if isinstance(o, Name) and o.name.startswith("SB") and o.name[2:].isdigit():
            board = int(o.name[2:])
        elif isinstance(o, Name) and o.name == "gsb0":
            board = GROUPS
        elif isinstance(o, Imm):
            left = int(o.value)
    return (board, left) if board >= 0 else None


def drained(inst: Inst) -> int:
    """Scoreboards that a DEPBAR waits for to be zero, as a mask: ``DEPBAR {5,4}``, ``DEPBAR.LE SB0, 0x0, {5}``."""
    if inst.op != "DEPBAR":
        return 0
    sets = [o.name[1:-1] for o in inst.srcs if isinstance(o, Name) and o.name.startswith("{")]
    return sum(1 << int(n) for text in sets for n in text.split(",") if n.isdigit())
