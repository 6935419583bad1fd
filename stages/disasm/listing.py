"""Instructions of a code section as nvdisasm -c prints them, and as JSON; and a listing back into words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.isa.machine import Refusal
from ir_format.isa.special import TargetCodec
from ir_format.model import Imm, Inst
from stages.disasm.cubin import WORD, CodeSection, Cubin, CubinError

if TYPE_CHECKING:
    from ir_format.isa.machine import Target
    from ir_format.isa.plan import Plan


class Decoded:
    """One instruction of a listing. ``inst`` is None where the word is refused, with the reason."""

    __slots__ = ("inst", "pc", "plan", "reason", "target", "text", "word")

    def __init__(self, pc: int, word: int, inst: Inst | None, plan: Plan | None, text: str, reason: str) -> None:
        self.pc, self.word, self.inst, self.plan, self.text, self.reason = pc, word, inst, plan, text, reason
        self.target = -1  # byte address of a branch target inside the section


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
                item.target = o.value
        out.append(item)
    return out


def branch_slot(plan: Plan) -> int:
    """Index of the operand that is a pc-relative target inside the code, -1 where there is none."""
    for k, slot in enumerate(plan.slots):
        if isinstance(slot.codec, TargetCodec) and slot.codec.relative and not slot.codec.distance and slot.codec.unit == 4:
            return k
    return -1


def print_cubin(cubin: Cubin, hex_words: bool = False) -> Iterator[str]:
    """The listing of all code sections, line by line. Labels are numbered in order of first reference, through the whole file."""
    target = isa.target(cubin.sm)
    yield f"\t.target\tsm_{cubin.sm}\n\n"
    numbers: dict[tuple[str, int], int] = {}
    for section in sorted(cubin.sections, key=lambda s: s.name):
        items = decode_section(section, target)
        entries = {at: name for at, _, name, _ in reversed(section.symbols)}
        for item in items:
            if item.target >= 0 and item.target not in entries:
                numbers.setdefault((section.name, item.target), len(numbers))
        yield f"\n//--------------------- {section.name:<25}--------------------------\n"
        yield f'\t.section\t{section.name},"ax",@progbits\n\t.align\t{section.align}\n'
        opened = False
        for item in items:
            for at, size, name, is_global in section.symbols:
                if at == item.pc:
                    if is_global:
                        yield f"        .global         {name}\n"
                    yield f"        .type           {name},@function\n        .size           {name},{size:#x}\n{name}:\n"
            if not opened:
                opened = True
                yield f"{section.name}:\n"
            number = numbers.get((section.name, item.pc))
            if number is not None and item.pc not in entries:
                yield f".L_x_{number}:\n"
            yield _line(item, section, entries, numbers, hex_words)


def _line(item: Decoded, section: CodeSection, entries: dict[int, str], numbers: dict[tuple[str, int], int], hex_words: bool) -> str:
    text = item.text if item.inst is not None else f".word {item.word:#034x}"
    if item.target >= 0:
        name = entries.get(item.target) or f".L_x_{numbers[(section.name, item.target)]}"
        cut = max(text.rfind(" "), text.rfind(","))
        text = f"{text[: cut + 1].rstrip()} `({name})" if cut >= 0 else text
    guard = ""
    if text.startswith("@"):
        guard, _, text = text.partition(" ")
    line = f"        /*{item.pc:04x}*/ {guard:>17} {text} ;"
    if item.inst is None:
        line += f"  // refused: {item.reason}"
    if not hex_words:
        return line + "\n"
    low, high = item.word & (1 << 64) - 1, item.word >> 64
    return f"{line:<78}/* {low:#018x} */\n{'':<78}/* {high:#018x} */\n"


def json_cubin(cubin: Cubin) -> str:
    """All code as one JSON array: a map per section with its instructions (pc, opcode, operands' text, words, control)."""
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


_SECTION = re.compile(r'^\s*\.section\s+([^,\s]+)')
_CODE = re.compile(r"^\s*/\*(?P<pc>[0-9a-f]{4,})\*/\s*(?P<text>.*?)\s*;")
_LABEL = re.compile(r"^(?P<name>[.$\w][\w.$]*):\s*$")
_REF = re.compile(r"`\((?P<name>[^)]*)\)")


def assemble(text: str, cubin: Cubin) -> dict[str, bytes]:
    """Code of the sections that a listing holds. A line that prints as before keeps its word; a changed one is encoded with the control word and
    reuse hints that its text and its old word give. Raises CompileError that names the line, :class:`CubinError` for a foreign section."""
    target = isa.target(cubin.sm)
    known = {s.name: s for s in cubin.sections}
    out: dict[str, bytes] = {}
    section: CodeSection | None = None
    labels: dict[str, int] = {}
    lines: list[tuple[int, int, str]] = []
    pending: list[str] = []

    def finish() -> None:
        if section is not None:
            out[section.name] = _assemble_section(section, lines, labels, target)

    for number, line in enumerate(text.splitlines(), 1):
        m = _SECTION.match(line)
        if m is not None:
            finish()
            section = known.get(m[1])
            if section is None:
                raise CubinError(f"the cubin has no section {m[1]}")
            labels, lines, pending = {n: at for at, _, n, _ in section.symbols}, [], []
            continue
        m = _LABEL.match(line)
        if m is not None:
            pending.append(m["name"])
            continue
        m = _CODE.match(line)
        if m is not None and section is not None:
            pc = int(m["pc"], 16)
            labels.update(dict.fromkeys(pending, pc))
            pending = []
            lines.append((number, pc, m["text"]))
    finish()
    return out


def _with_addresses(text: str, labels: dict[str, int], number: int) -> str:
    """The text with ``(label) references replaced by addresses."""
    for name in _REF.findall(text):
        if name not in labels:
            raise CompileError(f"unknown label {name}", number)
    return _REF.sub(lambda m: f"{labels[m['name']]:#x}", text)


def _assemble_section(section: CodeSection, lines: list[tuple[int, int, str]], labels: dict[str, int], target: Target) -> bytes:
    words = section.words
    for number, pc, text in lines:
        if pc % WORD or pc // WORD >= len(words):
            raise CompileError(f"no instruction at {pc:#x}", number)

        plain = re.sub(r"\s+", " ", _with_addresses(text, labels, number)).strip()
        if plain.startswith(".word "):
            words[pc // WORD] = int(plain[6:], 0)
            continue
        old = words[pc // WORD]
        found = target.decode_plan(old, pc)
        if not isinstance(found, Refusal):
            before = re.sub(r"\s+", " ", target.format(found[0], pc, found[1])).strip()
            if before == plain:
                continue
        try:
            inst = target.parse(plain, pc)
            inst.ctl = None if isinstance(found, Refusal) else found[0].ctl
            words[pc // WORD] = target.encode(inst, pc)
        except CompileError as error:
            raise CompileError(error.message, number) from None
    return b"".join(w.to_bytes(WORD, "little") for w in words)
