"""Wide loads with unread words are marked with the bytes that are read (ptxas lists them in
UNUSED_LOAD_BYTE_OFFSET: measured, for loads of 8 and 16 bytes; never for 32 bytes).

Pre: a function at level `ori`, not in SSA form, after all passes that add or remove readers. Post: the same with marks.
"""

from __future__ import annotations

from ir_format.flow import read_regs
from ir_format.isa import facts
from ir_format.model import ZERO, Function, Inst, Reg
from ir_format.typed import Final
from stages.optimize.analyses import Analyses

_LOADS: Final = facts.loads().keys() - facts.having("convergent")
_WIDTHS: Final = (2, 4)


def mark_used_bytes(f: Function, a: Analyses) -> None:
    """The pass."""
    wide: list[tuple[Inst, Reg]] = []
    for b in f.blocks:
        for i in b.insts:
            if i.op in _LOADS and not (i.attrs and "mark" in i.attrs):
                for d in i.dsts:
                    if type(d) is Reg and d.file == "R" and d.width in _WIDTHS and d.num != ZERO:
                        wide.append((i, d))
    if not wide:
        return
    read: dict[int, int] = {d.num: 0 for _, d in wide}  # register -> its words that anything reads, as bits
    for b in f.blocks:
        for i in b.insts:
            for r in read_regs(i):
                if r.num in read and r.file == "R":
                    read[r.num] |= (1 << r.width) - 1 << r.sub
    for i, d in wide:
        words = read[d.num] >> d.sub & (1 << d.width) - 1
        if words not in (0, (1 << d.width) - 1) and a.ctx.allow():
            mask = sum([0xF << 4 * k for k in range(d.width) if words >> k & 1])
            i.attrs = {**(i.attrs or {}), "mark": "unused", "mark_value": mask}
