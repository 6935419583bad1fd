"""Names of code addresses as nvdisasm gives them, and the texts of operands that name code or relocated symbols.

Labels ``.L_x_N`` are numbered through the whole file (measured): first the targets of relocations, then branch targets,
both in order of code; then the addresses that `.nv.info` notes; last the ends of functions in order of the symbol
table. Notes and ends use up a number even if the address already has a name. A function's name takes precedence over a
label.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from ir_format.isa.codec import ConstCodec, ImmCodec
from ir_format.isa.special import LdcCodec, MemCodec, TargetCodec
from ir_format.model import Imm, Mem

if TYPE_CHECKING:
    from stages.disasm.cubin import CodeSection, Cubin, TextReloc
    from stages.disasm.listing import Decoded

Place = tuple[int, int]  # (section index, byte offset)

#: `.nv.info` attributes that note code offsets: code -> words of a record, the offset first; 0: the first record alone
#: is read. Measured: exits, cooperative groups, warp-wide and system call instructions, 16-bit atomics (with a
#: register), unused bytes of loads, mbarriers, register maps. Guessed from their names: SR_CTAID reads, barriers of the
#: system.
_NOTED = {0x1C: 1, 0x28: 1, 0x31: 1, 0x46: 1, 0x2E: 2, 0x44: 2, 0x39: 4, 0x40: 0, 0x1D: 1, 0x47: 1}
_BRANCH_TARGETS = 0x34

#: Relocation kinds by what they fill in (measured): the text around the symbol, for immediates and targets.
_IMMEDIATE = {
    0x37: "`({})",
    0x38: "32@lo({})",
    0x39: "32@hi({})",
    0x3A: "`({})",
    0x4B: "`({})",
    0x70: "32@lo(fun@unified({}))",
    0x71: "32@hi(fun@unified({}))",
}
_CONSTANT = frozenset((0x40, 0x42, 0x73))
_MEMORY = frozenset((0x4A,))


class Names:
    """Names of code addresses of a cubin: functions and labels."""

    def __init__(self, cubin: Cubin, decoded: dict[int, list[Decoded]]) -> None:
        """``decoded``: instructions by section index."""
        self.functions: dict[Place, str] = {}
        self.labels: dict[Place, str] = {}
        self.count = 0
        by_index = {s.number: s for s in cubin.sections}
        for symbol in cubin.symbols:
            if symbol.kind == "FUNC" and symbol.section in by_index:
                self.functions.setdefault((symbol.section, symbol.value), symbol.name)
        for section in cubin.sections:
            for reloc in section.relocs:
                if reloc.symbol.section in by_index and reloc.addend and _places(reloc):
                    self.want((reloc.symbol.section, reloc.symbol.value + reloc.addend))
        for section in cubin.sections:
            for item in decoded[section.number]:
                if item.label >= 0:
                    self.want((section.number, item.label))
        #: targets of indirect branches by (section, offset of the branch)
        self.indirect: dict[Place, list[int]] = {}
        for index in cubin.noted:
            for code, payload in by_index[index].notes:
                for offset in self._noted(index, code, payload):
                    if 0 <= offset < len(by_index[index].data):
                        self.take((index, offset))
        for symbol in cubin.symbols:
            if symbol.kind == "FUNC" and symbol.section in by_index:
                self.take((symbol.section, symbol.value + symbol.size))

    def want(self, place: Place) -> None:
        """Give the place a label unless it has a name."""
        if place not in self.labels and place not in self.functions:
            self.labels[place] = f".L_x_{self.count}"
            self.count += 1

    def take(self, place: Place) -> None:
        """Use up a number for the place; it keeps its label."""
        self.labels.setdefault(place, f".L_x_{self.count}")
        self.count += 1

    def of(self, place: Place) -> str:
        """The name of a place, '' if it has none."""
        return self.functions.get(place) or self.labels.get(place, "")

    def label(self, place: Place) -> str:
        """The label that precedes a place in the listing, '' if there is none."""
        return "" if place in self.functions else self.labels.get(place, "")

    def _noted(self, index: int, code: int, payload: bytes) -> list[int]:
        """Code offsets in an attribute."""
        words = [w for (w,) in struct.iter_unpack("<I", payload[: len(payload) & ~3])]
        if code in _NOTED:
            return words[:: _NOTED[code]] if _NOTED[code] else words[:1]
        out: list[int] = []
        if code == _BRANCH_TARGETS:  # branch, 0, count, targets
            at = 0
            while at + 3 <= len(words):
                targets = words[at + 3 : at + 3 + words[at + 2]]
                self.indirect[index, words[at]] = targets
                out += [words[at], *targets]
                at += 3 + len(targets)
        return out


def _places(reloc: TextReloc) -> bool:
    return reloc.symbol.kind in ("FUNC", "SECTION")


def operand_texts(item: Decoded, section: CodeSection, names: Names, relocs: list[TextReloc]) -> dict[int, str]:
    """Texts that replace operands of an instruction: ```(label)`` and relocated symbols, by operand index."""
    out: dict[int, str] = {}
    if item.inst is None or item.plan is None:
        return out
    ops = (*item.inst.dsts, *item.inst.srcs)
    for k, slot in enumerate(item.plan.slots):
        codec = slot.codec
        if isinstance(codec, TargetCodec) and codec.relative and not codec.distance and item.label >= 0:
            out[k] = f"`({names.of((section.number, item.label))})"
    for reloc in relocs:
        for k, slot in enumerate(item.plan.slots):
            codec, o = slot.codec, ops[k]
            if not slot.shown:
                continue
            if reloc.kind in _IMMEDIATE and isinstance(codec, ImmCodec | TargetCodec) and isinstance(o, Imm):
                if isinstance(codec, ImmCodec) and codec.size < 32:
                    continue
                out[k] = _IMMEDIATE[reloc.kind].format(
                    _symbol(reloc, o.value if isinstance(codec, ImmCodec) else 0, names)
                )
                break
            if reloc.kind in _CONSTANT and isinstance(codec, ConstCodec | LdcCodec):
                plain = codec.fmt(o, item.pc)
                out[k] = re.sub(
                    r"c\[[^]]*\]\s*\[[^]]*\]",
                    lambda _, r=reloc: f"c[`({_symbol(r, 0, names)})]",  # type: ignore[misc]
                    plain,
                    count=1,
                )
                break
            if reloc.kind in _MEMORY and isinstance(codec, MemCodec) and isinstance(o, Mem):
                base = codec.fmt(o._replace(offset=0), item.pc)
                inner = base[base.rindex("[") + 1 : -1]
                head = base[: base.rindex("[")]
                out[k] = f"{head}[{'' if inner == 'RZ' else inner + '+'}`({_symbol(reloc, 0, names)})]"
                break
    return out


def _symbol(reloc: TextReloc, held: int, names: Names) -> str:
    """The symbol of a relocation with its addend; inside code the place's label."""
    addend = held if reloc.addend is None else reloc.addend
    if not addend:
        return reloc.symbol.name
    place = names.of((reloc.symbol.section, reloc.symbol.value + addend)) if _places(reloc) else ""
    return f"({reloc.symbol.name} + {place}@srel)" if place else f"({reloc.symbol.name} + {addend:#x})"
