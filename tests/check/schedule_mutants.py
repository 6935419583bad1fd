"""Cubins with one broken control word, and how many of them the schedule checker finds.

Two sorts. *Certain* mutants break a rule by construction: an adjacent pair brought closer than its table cell; the only
wait between a signalled result (or read) and the instruction that needs it dropped; its scoreboard renumbered; an
operand kept for reuse that is overwritten. *Random* ones change any stall, wait or scoreboard; many of them break
nothing, so their rate has no bar.

    python -m tests.check.schedule_mutants --sm 90 --count 200
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.flow import ENDS, JUMPS
from ir_format.hazards import Access, hazards
from ir_format.hazards.model import R_CELLS
from ir_format.model import REUSE, ZERO, Ctl, Inst, Reg
from stages.check.schedule_checker import check_cubin, relaxed
from stages.disasm.cubin import WORD, Cubin
from stages.disasm.listing import decode_section

KERNELS = Path(__file__).parent.parent / "kernels"
_AT = {"stall": (105, 4), "wr": (110, 3), "rd": (113, 3), "wait": (116, 6), "word": (0, 128)}
_LEAVES = JUMPS | ENDS | {"CALL", "BSYNC", "DEPBAR"}
_REACH = 24  # instructions between producer and consumer


class Mutant(NamedTuple):
    """One field of one instruction changed. ``partner``: the instruction with which it breaks a rule (-1: none in
    particular)."""

    kind: str
    section: int
    place: int
    field: str
    value: int
    partner: int = -1

    def bytes(self, cubin: Cubin) -> bytes:
        """The whole file with the mutant in it."""
        broken = self.apply(cubin).sections[self.section]
        return cubin.data[: broken.offset] + broken.data + cubin.data[broken.offset + len(broken.data) :]

    def apply(self, cubin: Cubin) -> Cubin:
        section = cubin.sections[self.section]
        at, width = _AT[self.field]
        word = section.words[self.place] & ~((1 << width) - 1 << at) | self.value << at
        data = bytearray(section.data)
        data[self.place * WORD : (self.place + 1) * WORD] = word.to_bytes(WORD, "little")
        return cubin._replace(
            sections=(
                *cubin.sections[: self.section],
                section._replace(data=bytes(data)),
                *cubin.sections[self.section + 1 :],
            )
        )


def _code(cubin: Cubin) -> Iterator[tuple[int, list[tuple[Inst, Access, Ctl]]]]:
    h = hazards(cubin.sm)
    target = isa.target(cubin.sm)
    for number, section in enumerate(cubin.sections):
        code = []
        for item in decode_section(section, target):
            if item.inst is None or item.inst.ctl is None:
                break
            code.append((item.inst, h.access(item.inst), item.inst.ctl))
        yield number, code


def certain(cubin: Cubin, rng: random.Random) -> list[Mutant]:
    """Every place where a mutant surely breaks a rule, one value for each."""
    out: list[Mutant] = []
    h = hazards(cubin.sm)
    target = isa.target(cubin.sm)
    for s, code in _code(cubin):
        for i, (inst, a, ctl) in enumerate(code[:-1]):
            if inst.op in _LEAVES:
                continue
            later, b, _ = code[i + 1]
            for kind, cells in (("raw", a.write_mask & b.read_mask), ("waw", a.write_mask & b.write_mask)):
                if not a.board_w and cells and ctl.stall:
                    cell = cells.bit_length() - 1
                    need = h.between(kind, a, b, cell)
                    least = (
                        min(need.cycles, relaxed(kind, a, inst.op, b, later.op, cubin.sm, cell))
                        if need is not None
                        else 1
                    )
                    if 1 < least <= ctl.stall:
                        out.append(Mutant(f"stall {kind}", s, i, "stall", rng.randrange(1, least), i + 1))
            out += _reuse(s, i, inst, ctl, later, target)
            if ctl.wr != 7 and a.board_w:
                out += _around(s, code, i, ctl.wr, a.write_mask, True)
            elif ctl.rd != 7 and a.board_r:
                out += _around(s, code, i, ctl.rd, a.late, False)
            elif a.klass == "gmma":
                out += _behind_product(s, code, i, target)
    return out


def _behind_product(s: int, code: list[tuple[Inst, Access, Ctl]], i: int, target: isa.Target) -> Iterator[Mutant]:
    """The only wait between a warpgroup product and what touches its accumulators or fragments, without its
    scoreboard."""
    _, a, _ = code[i]
    walls: list[int] = []
    for j in range(i + 1, min(i + _REACH, len(code))):
        inst, b, ctl = code[j]
        if b.klass == "gmma" and b.write_mask & a.write_mask or inst.op in _LEAVES:
            return  # waiting for the later product covers them
        if b.klass == "wgdepbar":
            walls.append(j)
        elif b.klass != "gmma" and (
            a.write_mask & (b.read_mask | b.write_mask) or a.read_mask & b.write_mask & R_CELLS
        ):
            if len(walls) == 1:
                yield Mutant(
                    "wait product",
                    s,
                    walls[0],
                    "word",
                    target.encode(Inst("NOP", ctl=code[walls[0]][2]), walls[0] * WORD),
                    i,
                )
            return


def _reuse(s: int, i: int, inst: Inst, ctl: Ctl, later: Inst, target: isa.Target) -> Iterator[Mutant]:
    """The operand cache set to keep a register that the instruction overwrites and the next one reads in the same
    slot."""
    mine, next_ = _vector_slots(inst), _vector_slots(later)
    if inst.guard is not None and inst.guard.num != ZERO or not 0 < ctl.stall < 12:
        return
    for slot, (place, reg) in mine.items():
        other = next_.get(slot)
        if other is None or other[1].num != reg.num or reg.flags & REUSE or reg.width != 1 or other[1].width != 1:
            continue
        if not any(type(o) is Reg and o.file == "R" and o.num <= reg.num < o.num + o.width for o in inst.dsts):
            continue
        planted = replace(
            inst,
            srcs=(*inst.srcs[:place], reg._replace(flags=reg.flags | REUSE), *inst.srcs[place + 1 :]),
            ctl=ctl._replace(yield_=1),
        )
        try:
            yield Mutant("reuse", s, i, "word", target.encode(planted, i * WORD), i + 1)
        except CompileError:
            continue  # this slot of this form has no such bit


def _vector_slots(inst: Inst) -> dict[int, tuple[int, Reg]]:
    """Operand slots A, B, C -> (index in the sources, register); only A if the others cannot be told from the
    text."""
    values = [(place, o) for place, o in enumerate(inst.srcs) if not (type(o) is Reg and o.file in ("P", "UP"))]
    if len(values) < 2:
        return {}  # conversions and similar: their one operand is in slot B
    plain = all(type(o) is Reg and o.file == "R" for _, o in values)
    return {
        slot: (place, o)
        for slot, (place, o) in enumerate(values[:3])
        if type(o) is Reg and o.file == "R" and o.num != ZERO and (plain or slot == 0)
    }


def replace(inst: Inst, **changes: object) -> Inst:
    """A copy of an instruction with other fields."""
    out = copy.copy(inst)
    for name, value in changes.items():
        setattr(out, name, value)
    return out


def _around(
    s: int, code: list[tuple[Inst, Access, Ctl]], i: int, board: int, cells: int, result: bool
) -> Iterator[Mutant]:
    """Mutants for the first instruction after ``i`` that needs its scoreboard."""
    waited = 0
    name = "result" if result else "read"
    for j in range(i + 1, min(i + _REACH, len(code))):
        inst, b, ctl = code[j]
        touched = b.write_mask | b.read_mask if result else b.write_mask
        waited |= ctl.wait
        if touched & cells:
            if ctl.wait >> board & 1:
                if not result and b.board_w:
                    return  # the order of the pipe may suffice
                yield Mutant(f"wait {name}", s, j, "wait", ctl.wait & ~(1 << board), i)
                for other in range(6):
                    if not waited >> other & 1:
                        yield Mutant(f"index {name}", s, i, "wr" if result else "rd", other, j)
                        break
            return
        if (
            ctl.wait >> board & 1
            or inst.op in _LEAVES
            or inst.op == "BAR"
            or (not result and (ctl.wr != 7 or ctl.rd != 7))
        ):
            return


def anywhere(cubin: Cubin, rng: random.Random, count: int) -> list[Mutant]:
    """Random changes of random control words, whether they matter or not."""
    places: dict[str, list[Mutant]] = {"random stall": [], "random wait": [], "random index": []}
    for s, code in _code(cubin):
        for i, (_, _, ctl) in enumerate(code):
            if ctl.stall > 1:
                places["random stall"].append(Mutant("random stall", s, i, "stall", rng.randrange(1, ctl.stall)))
            bits = [k for k in range(6) if ctl.wait >> k & 1]
            if bits:
                places["random wait"].append(Mutant("random wait", s, i, "wait", ctl.wait & ~(1 << rng.choice(bits))))
            if ctl.wr != 7:
                places["random index"].append(Mutant("random index", s, i, "wr", (ctl.wr + rng.randrange(1, 6)) % 6))
    return [m for found in places.values() for m in rng.sample(found, min(count, len(found)))]


def judge(cubin: Cubin, mutants: list[Mutant]) -> tuple[Counter[str], Counter[str], list[Mutant]]:
    """Mutants by kind, the caught ones by kind, and the others."""
    made: Counter[str] = Counter()
    caught: Counter[str] = Counter()
    left: list[Mutant] = []
    for mutant in mutants:
        made[mutant.kind] += 1
        if check_cubin(mutant.apply(cubin)).findings:
            caught[mutant.kind] += 1
        else:
            left.append(mutant)
    return made, caught, left


def main() -> None:
    import argparse

    from orchestrator.api import compile_ptx
    from stages.disasm.cubin import read_cubin

    parser = argparse.ArgumentParser(description="kill rates of the schedule checker on our cubins")
    parser.add_argument("--sm", type=int, nargs="*", default=[75, 80, 90, 120])
    parser.add_argument("--count", type=int, default=20, help="mutants of each sort a kernel")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    for sm in options.sm:
        made: Counter[str] = Counter()
        caught: Counter[str] = Counter()
        for path in sorted((KERNELS / "ptx" / f"sm_{sm}").glob("*.ptx")):
            if path.stem == "all16":
                continue
            cubin = read_cubin(compile_ptx(path.read_text(), f"sm_{sm}"))
            sure = certain(cubin, rng)
            one, two, left = judge(
                cubin, rng.sample(sure, min(options.count, len(sure))) + anywhere(cubin, rng, options.count // 3)
            )
            made += one
            caught += two
            for m in left:
                if not m.kind.startswith("random"):
                    print(f"survives: sm_{sm} {path.stem} {m}")
        print(f"sm_{sm}: " + ", ".join(f"{kind} {caught[kind]}/{made[kind]}" for kind in sorted(made)))


if __name__ == "__main__":
    main()
