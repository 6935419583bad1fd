"""Cubins in which one synchronizing instruction (convergence, wait, fence) is missing, moved or wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.flow import ENDS, JUMPS, is_guarded
from ir_format.model import INV, ZERO, Imm, Inst, Operand, Reg
from stages.disasm.cubin import WORD, Cubin
from stages.disasm.listing import Decoded, decode_section
from tests.check.schedule_mutants import replace
from tests.oracle import NOP_WORD

#: Instructions to drop and to move.
MEETING: Final = ("BAR", "BSSY", "BSYNC", "BREAK", "WARPSYNC", "MEMBAR", "FENCE", "CCTL", "BMOV")
_MEMORY: Final = (
    "LDS",
    "STS",
    "LDG",
    "STG",
    "LD",
    "ST",
    "ATOM",
    "ATOMG",
    "ATOMS",
    "RED",
    "REDG",
    "LDGSTS",
    "SHFL",
    "VOTE",
    "SYNCS",
    "REDUX",
    "MATCH",
)
_COLLECTIVE: Final = ("SHFL", "VOTE", "REDUX", "MATCH")
_CONTROL: Final = ((1 << 18) - 1) << 105  # stall, yield, counters, waits
_FAR: Final = 12


class Change(NamedTuple):
    """A mutant: ``kind``, section, place and the replacement words, with a text for messages."""

    kind: str
    section: int
    place: int
    words: tuple[tuple[int, int], ...]
    text: str

    def bytes(self, cubin: Cubin) -> bytes:
        """The whole file with the mutant in it."""
        data = bytearray(cubin.data)
        for place, word in self.words:
            at = cubin.sections[self.section].offset + place * WORD
            data[at : at + WORD] = word.to_bytes(WORD, "little")
        return bytes(data)


def changes(cubin: Cubin, names: frozenset[str]) -> Iterator[Change]:
    """All mutants of the sections of some kernels."""
    target = isa.target(cubin.sm)
    for s, section in enumerate(cubin.sections):
        if section.name.removeprefix(".text.") not in names:
            continue
        items = decode_section(section, target)
        for n, item in enumerate(items):
            inst = item.inst
            if inst is None or inst.op not in MEETING or (inst.op == "CCTL" and "IVALL" not in inst.mods):
                continue
            if inst.op == "BMOV" and any(type(o) is Reg and o.file == "R" and o.num == ZERO for o in inst.dsts):
                continue
            where = f"{section.name.removeprefix('.text.')} {item.pc:#06x} {item.text}"
            nop = NOP_WORD & ~_CONTROL | item.word & _CONTROL
            yield Change(f"{inst.op} dropped", s, n, ((n, nop),), where)
            for kind, words in _moved(items, n, inst):
                yield Change(kind, s, n, words, where)
            for kind, wrong in _wrong(items, n, inst):
                try:
                    word = target.encode(wrong, n * WORD)
                except CompileError:
                    continue
                if word != item.word:
                    yield Change(kind, s, n, ((n, word),), f"{where} becomes {target.format(wrong, item.pc)}")


def _moved(items: list[Decoded], n: int, inst: Inst) -> Iterator[tuple[str, tuple[tuple[int, int], ...]]]:
    """The instruction moved after the next access in its basic block, and before the previous one. (BSSY may
    move: nothing depends on its own address.)"""
    if inst.op in ("BMOV", "BSSY"):
        return
    for step, name in ((1, "later"), (-1, "earlier")):
        k = n + step
        while 0 <= k < len(items) and abs(k - n) <= _FAR:
            other = items[k].inst
            if (
                other is None
                or other.op in JUMPS
                or other.op in ENDS
                or other.op in ("CALL", *MEETING)
                or (inst.guard is not None and _writes(other, inst.guard))
            ):
                break
            if any(
                i.target == max(n, k) * WORD or i.target in range(min(n, k) * WORD + 1, max(n, k) * WORD) for i in items
            ):
                break  # another synchronizing instruction comes between
            if other.op in _MEMORY and not (other.op in _COLLECTIVE and inst.op in ("BAR", "MEMBAR", "FENCE", "CCTL")):
                order = [*range(min(n, k), max(n, k) + 1)]
                order = [*order[1:], order[0]] if step > 0 else [order[-1], *order[:-1]]
                low = min(n, k)
                yield f"{inst.op} {name}", tuple((low + at, items[m].word) for at, m in enumerate(order))
                break
            k += step


def _writes(inst: Inst, guard: Reg) -> bool:
    return guard.num != ZERO and any(type(o) is Reg and o.file == guard.file and o.num == guard.num for o in inst.dsts)


def _wrong(items: list[Decoded], n: int, inst: Inst) -> Iterator[tuple[str, Inst]]:
    """Wrong operands."""
    if inst.op in ("BSSY", "BSYNC", "BREAK"):
        yield (
            f"{inst.op} register",
            _with(inst, lambda o: o._replace(num=(o.num + 1) % 16) if type(o) is Reg and o.file == "B" else o),
        )
    if inst.op == "BSSY":
        others = [
            m.pc + WORD
            for m in items
            if m.inst is not None
            and m.inst.op == "BSYNC"
            and m.pc + WORD != items[n].target
            and m.pc != items[n].target
        ]
        for name, at in (("BSSY target", others[0] if others else -1), ("BSSY target", items[n].target + 3 * WORD)):
            if 0 <= at < len(items) * WORD:
                yield name, _with(inst, partial(_placed, to=at))
                break
    if inst.op == "BREAK" and is_guarded(inst) and inst.guard is not None:
        yield "BREAK mask", replace(inst, guard=inst.guard._replace(flags=inst.guard.flags ^ INV))
        yield "BREAK mask", replace(inst, guard=None)
    if inst.op == "WARPSYNC" and items[n].target < 0:
        yield (
            "WARPSYNC mask",
            _with(
                inst,
                lambda o: (
                    o._replace(value=o.value >> 16 or 1)
                    if type(o) is Imm
                    else o._replace(num=ZERO)
                    if type(o) is Reg and o.file == "R"
                    else o
                ),
            ),
        )
    if inst.op == "BAR":
        numbers = [k for k, o in enumerate(inst.srcs) if type(o) is Imm]
        for k in numbers[:2]:
            name, by = ("BAR number", 1) if k == numbers[0] else ("BAR count", 32)
            old = inst.srcs[k]
            assert type(old) is Imm
            if name == "BAR count" and old.value == 0:
                continue
            yield name, replace(inst, srcs=(*inst.srcs[:k], old._replace(value=old.value + by), *inst.srcs[k + 1 :]))


def _placed(o: Operand, to: int) -> Operand:
    return o._replace(value=to) if type(o) is Imm else o


def _with(inst: Inst, fn: Callable[[Operand], Operand]) -> Inst:
    return replace(inst, srcs=tuple(fn(o) for o in inst.srcs), dsts=tuple(fn(o) for o in inst.dsts))
