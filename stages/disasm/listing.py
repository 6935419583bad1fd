"""Instructions of a code section as nvdisasm -c prints them, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_format import isa
from ir_format.isa.exact import notes
from ir_format.isa.machine import Refusal
from ir_format.isa.special import TargetCodec
from ir_format.model import Imm, Inst
from stages.disasm.cubin import WORD, CodeSection, Cubin, Symbol, TextReloc
from stages.disasm.labels import Names, operand_texts

if TYPE_CHECKING:
    from ir_format.isa.machine import Target
    from ir_format.isa.plan import Plan


class Decoded:
    """One instruction of a listing. ``inst`` is None if the word does not decode; the reason says why."""

    __slots__ = ("inst", "label", "pc", "plan", "reason", "target", "text", "word")

    def __init__(self, pc: int, word: int, inst: Inst | None, plan: Plan | None, text: str, reason: str) -> None:
        self.pc, self.word, self.inst, self.plan, self.text, self.reason = pc, word, inst, plan, text, reason
        self.target = -1  # byte address of a branch target inside the section
        self.label = -1  # the same, and what LEPC names


def decode_section(section: CodeSection, target: Target) -> list[Decoded]:
    """Decode every word of a section."""
    out: list[Decoded] = []
    size = len(section.data)
    for index, word in enumerate(section.words):
        pc = index * WORD
        found = target.decode_plan(word, pc)
        if isinstance(found, Refusal):
            out.append(Decoded(pc, word, None, None, "", found.reason))
            continue
        inst, plan = found
        item = Decoded(pc, word, inst, plan, target.format(inst, pc, plan), "")
        place = branch_slot(plan)
        if place >= 0:
            o = (*inst.dsts, *inst.srcs)[place]
            if isinstance(o, Imm) and 0 <= o.value < size and o.value % WORD == 0:
                item.label = o.value
                if plan.slots[place].codec.unit == 4:  # type: ignore[attr-defined]
                    item.target = o.value
        out.append(item)
    return out


def branch_slot(plan: Plan) -> int:
    """Index of the operand that is a pc-relative code address, -1 if there is none."""
    for k, slot in enumerate(plan.slots):
        if isinstance(slot.codec, TargetCodec) and slot.codec.relative and not slot.codec.distance:
            return k
    return -1


def print_cubin(
    cubin: Cubin, hex_words: bool = False, exact: bool = False, lines: str = "", separate: bool = False
) -> Iterator[str]:
    """The listing of all code sections, line by line, as ``nvdisasm -c`` prints it; ``exact``: with notes of what that
    text omits; ``lines``: with source lines (:func:`stages.disasm.source_lines.notes_of`); ``separate``: with empty
    lines before each function."""
    target = isa.target(cubin.sm)
    origin: dict[int, dict[int, list[str]]] = {}
    if lines:
        from stages.disasm.source_lines import notes_of

        origin = notes_of(cubin, lines)
    decoded = {s.number: decode_section(s, target) for s in cubin.sections}
    names = Names(cubin, decoded)
    name = f"sm_{cubin.sm}{'a' if cubin.accelerated else ''}"
    yield f'\t.target\t{name}\n\n\t.elftype\t@"{"ET_EXEC" if cubin.linked else "ET_REL"}"\n\n'
    for section in cubin.sections:
        yield f"\n//--------------------- {section.name:<25} --------------------------\n"
        yield f'\t.section\t{section.name},"ax",@progbits\n'
        if section.registers:
            yield f'\t.sectioninfo\t@"SHI_REGISTERS={section.registers}"\n'
        yield f"\t.align\t{section.align}\n"
        symbols: dict[int, list[Symbol]] = {}
        for symbol in cubin.symbols:
            if symbol.section == section.number and symbol.kind == "FUNC":
                symbols.setdefault(symbol.value, []).append(symbol)
        opened = False
        for pc, line in section_lines(section, decoded[section.number], names, target, hex_words, exact):
            here = symbols.pop(pc, [])
            if here and separate:
                yield "\n\n\n\n"
            for symbol in (s for s in here if s.bind == "GLOBAL"):
                yield from function_head(symbol, names)
            if not opened:
                opened = True
                yield f"{section.name}:\n"
            for symbol in (s for s in here if s.bind != "GLOBAL"):
                yield from function_head(symbol, names)
            label = names.label((section.number, pc))
            if label:
                yield f"{label}:\n"
            yield from origin.get(section.number, {}).get(pc, ())
            yield line
        if not opened:
            yield f"{section.name}:\n"
        end = names.label((section.number, len(section.data)))
        if end:
            yield f"{end}:\n"
        yield "\n"
    yield from _undefined(cubin)


def function_head(symbol: Symbol, names: Names) -> Iterator[str]:
    """The lines before a function: binding, type, size, kind, name."""
    name = symbol.name
    if symbol.bind != "LOCAL":
        yield f"        .{symbol.bind.lower():<15}{name}\n"
    end = names.of((symbol.section, symbol.value + symbol.size))
    yield f"        .type           {name},@function\n        .size           {name},({end} - {name})\n"
    if symbol.other & ~3:
        yield f'        .other          {name},@"{_other(symbol)}"\n'
    yield f"{name}:\n"


#: Upper bits of st_other and their names (measured).
_OTHER = ((0x10, "STO_CUDA_ENTRY"), (0x40, "STO_CUDA_SHARED"), (0x20, "STO_CUDA_GLOBAL"), (0x80, "STO_CUDA_CONSTANT"))
_VISIBILITY = ("STV_DEFAULT", "STV_INTERNAL", "STV_HIDDEN", "STV_PROTECTED")


def _other(symbol: Symbol) -> str:
    return " ".join([*(name for bit, name in _OTHER if symbol.other & bit), _VISIBILITY[symbol.other & 3]])


def _undefined(cubin: Cubin) -> Iterator[str]:
    """The list of symbols that are defined elsewhere."""
    kinds = {
        "FUNC": "@function",
        "OBJECT": "@object",
        "10": '@"STT_CUDA_TEXTURE"',
        "12": '@"STT_CUDA_SURFACE"',
        "13": '@"STT_CUDA_OBJECT"',
    }
    found = [s for s in cubin.symbols if s.section == 0 and s.kind in kinds]
    if found:
        yield "\n//--------------------- SYMBOLS --------------------------\n\n"
    for symbol in found:
        yield f"\t.type\t\t{symbol.name},{kinds[symbol.kind]}\n"
        if symbol.size:
            yield f"\t.size\t\t{symbol.name},{symbol.size:#x}\n"
        if symbol.other & ~3:
            yield f'\t.other\t\t{symbol.name},@"{_other(symbol)}"\n'


def section_lines(
    section: CodeSection,
    items: list[Decoded],
    names: Names,
    target: Target,
    hex_words: bool = False,
    exact: bool = False,
) -> Iterator[tuple[int, str]]:
    """(offset, line) of every instruction of a section, with labels and symbols."""
    relocs: dict[int, list[TextReloc]] = {}
    for reloc in section.relocs:
        relocs.setdefault(reloc.offset, []).append(reloc)
    for item in items:
        texts = operand_texts(item, section, names, relocs.get(item.pc, []))
        behind = (
            notes(target, item.inst, item.pc, item.plan, item.text)
            if exact and item.inst is not None and item.plan is not None
            else []
        )
        if item.inst is not None and texts:
            item.text = target.format(_named(item, bool(relocs.get(item.pc))), item.pc, item.plan, texts)
        item.text = " ".join((item.text, *behind))
        targets = names.indirect.get((section.number, item.pc))
        yield item.pc, _line(item, hex_words, [names.of((section.number, t)) for t in targets] if targets else [])


def _named(item: Decoded, relocated: bool) -> Inst:
    """The instruction without the names that nvdisasm derives from operands, if a relocation hides the operand
    (measured: IMAD.MOV)."""
    inst, plan = item.inst, item.plan
    assert inst is not None and plan is not None
    if relocated and plan.derived and inst.mods != plan.mods:
        return Inst(inst.op, plan.mods, inst.dsts, inst.srcs, inst.guard, inst.line, inst.loc, inst.ctl)
    return inst


def _line(item: Decoded, hex_words: bool, targets: list[str]) -> str:
    text = item.text if item.inst is not None else f".word {item.word:#034x}"
    guard = ""
    if text.startswith("@"):
        guard, _, text = text.partition(" ")
    if targets:
        text = f'{text:<50} (*"BRANCH_TARGETS {",".join(targets)}"*)'
    # nvdisasm omits the blank if the control word is empty: no stall, no scoreboard, no wait (measured)
    blank = "" if targets or item.word >> 105 & 0x1FFFFF == 0x7E0 else " "
    line = f"        /*{item.pc:04x}*/ {guard:>17} {text}{blank};"
    if item.inst is None:
        line += f"  // refused: {item.reason}"
    if not hex_words:
        return line + "\n"
    low, high = item.word & (1 << 64) - 1, item.word >> 64
    return f"{line:<77} /* {low:#018x} */\n{'':<78}/* {high:#018x} */\n"


def json_cubin(cubin: Cubin) -> str:
    """All code as one JSON array: a map per section with its instructions (pc, opcode, operands' text, words,
    control)."""
    target = isa.target(cubin.sm)
    out = []
    for section in cubin.sections:
        rows = []
        for item in decode_section(section, target):
            row: dict[str, object] = {"pc": item.pc, "word": f"{item.word:#034x}"}
            if item.inst is None:
                row["refused"] = item.reason
            else:
                assert item.inst.ctl is not None
                row["text"] = item.text
                row["opcode"] = ".".join((item.inst.op, *item.inst.mods))
                row["ctl"] = list(item.inst.ctl)
                if item.target >= 0:
                    row["target"] = item.target
            rows.append(row)
        functions = [{"name": n, "offset": at, "size": size} for at, size, n, _ in section.symbols]
        out.append({"section": section.name, "sm": cubin.sm, "functions": functions, "instructions": rows})
    return json.dumps(out, indent=1)
