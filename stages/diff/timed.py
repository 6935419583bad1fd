"""The instructions of a stream or a cubin with their control words, an estimate of when each issues, and why not
earlier.

The estimate follows each block from a cold start: stalls as given, and waits for a scoreboard until the estimated
latency of the instruction that sets it has passed."""

from __future__ import annotations

import io

from ir_format import wire
from ir_format.diag import CompileError, StreamError
from ir_format.hazards import Hazards, cell_name, hazards
from ir_format.model import Ctl, Function, Inst, Unit
from ir_format.record import Record
from ir_format.text import print_ctl, print_inst


class Line(Record):
    """One instruction. ``key``: alignment compares it; ``cycles``: from its issue to the next one's; ``why``: the
    reason for these cycles."""

    key: str
    text: str
    line: int
    ctl: str
    cycles: int
    why: str


class Code(Record):
    """One function. ``registers``: general registers."""

    name: str
    registers: int
    lines: list[Line]

    @property
    def cycles(self) -> int:
        """The estimate of all blocks, each once."""
        return sum(x.cycles for x in self.lines)


def read_codes(data: bytes) -> list[Code]:
    """The functions of a cubin, or of a stream of level `ori` or later. Raises OriasError."""
    if data[:4] == b"\x7fELF":
        from stages.check.schedule_flow import line_finder
        from stages.disasm.cubin import read_cubin
        from stages.disasm.lift import lift

        cubin = read_cubin(data)
        header, _, units = lift(cubin)
        find = line_finder(cubin)
        for u in units:
            pc = 0
            for i in (i for f in u.functions for b in f.blocks for i in b.insts):
                i.line = find(f".text.{u.name}", pc)
                pc += 16
        return [_code(f, header.level, hazards(header.target)) for u in units for f in u.functions]
    frames = list(wire.frames(io.BytesIO(data)))
    header = wire.header_from_wire(wire.unpack(frames[0][1]))
    if header.level in ("ptx", "encoded"):
        raise StreamError(f"a stream of level {header.level} has no instructions to compare")
    read: list[Unit] = [wire.unit_from_wire(wire.unpack(d), header.level) for tag, d in frames if tag == "unit"]
    return [_code(f, header.level, hazards(header.target)) for u in read for f in u.functions]


def _code(f: Function, level: str, tables: Hazards) -> Code:
    vregs = f.vregs if level == "ori" else None
    lines: list[Line] = []
    for b in f.blocks:
        times = _times(b.insts, tables) if level == "scheduled" else [(0, "")] * len(b.insts)
        for i, (cycles, why) in zip(b.insts, times):
            bare = Inst(i.op, i.mods, i.dsts, i.srcs, i.guard, uses=i.uses, defs=i.defs)
            ctl = print_ctl(i.ctl) if i.ctl is not None else ""
            lines.append(Line(".".join((i.op, *i.mods)), print_inst(bare, vregs), i.line, ctl, cycles, why))
    return Code(f.name, f.regs.get("R", 0), lines)


def _times(insts: list[Inst], tables: Hazards) -> list[tuple[int, str]]:
    """For each instruction of a block: cycles until the next one issues, and why."""
    out: list[tuple[int, str]] = []
    now = 0
    set_by: dict[int, tuple[int, str]] = {}  # scoreboard -> when it is released, which instruction sets it
    for n, i in enumerate(insts):
        ctl = i.ctl or Ctl()
        reasons = []
        late = now
        for k in range(6):
            if ctl.wait >> k & 1 and k in set_by:
                when, what = set_by.pop(k)
                reasons.append(f"SB{k} of {what}")
                late = max(late, when)
        try:
            a = tables.access(i)
        except CompileError:
            out.append((ctl.stall, "no hazard data"))
            now = late + ctl.stall
            continue
        waited = late - now
        for k, latency in ((ctl.wr, a.latency), (ctl.rd, 12)):
            if k < 7:
                set_by[k] = late + latency, f"{i.op} (class {a.klass}, about {latency})"
        stall = ctl.stall or 15
        if ctl.stall > max(a.stall, 1) and n + 1 < len(insts):
            reasons.append(_next_reader(insts, n, tables))
        elif ctl.stall == 0:
            reasons.append("drain")
        out.append((waited + stall, "; ".join([r for r in reasons if r])))
        now = late + stall
    return out


def _next_reader(insts: list[Inst], n: int, tables: Hazards) -> str:
    """The likely reason for a stall: the first of the next instructions that reads or overwrites a result in flight."""
    try:
        later = tables.access(insts[n + 1])
        for m in range(n, max(n - 16, -1), -1):
            a = tables.access(insts[m])
            common = a.write_mask & (later.read_mask | later.write_mask) if not a.board_w else 0
            if common:
                cell = cell_name((common & -common).bit_length() - 1)
                return f"{cell} of {insts[m].op} (class {a.klass}) for {insts[n + 1].op} (class {later.klass})"
    except CompileError:
        pass
    return ""
