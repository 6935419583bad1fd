"""A listing, perhaps edited, back into words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ir_format import isa
from ir_format.diag import CompileError
from stages.disasm.cubin import WORD, CodeSection, Cubin, CubinError, TextReloc
from stages.disasm.labels import Names, operand_texts
from stages.disasm.listing import Decoded, decode_section

if TYPE_CHECKING:
    from ir_format.isa.machine import Target

_SECTION = re.compile(r"^\s*\.section\s+([^,\s]+)")
_CODE = re.compile(r"^\s*/\*(?P<pc>[0-9a-f]{4,})\*/\s*(?P<text>.*?)\s*;")
_LABEL = re.compile(r"^(?P<name>[.$\w][\w.$]*):\s*$")
_REF = re.compile(r"`\((?P<name>[^()]*)\)")
_NOTE = re.compile(r'\(\*".*?"\*\)')


def assemble(text: str, cubin: Cubin) -> dict[str, bytes]:
    """The code of the sections in a listing. A line that prints as before keeps its word. A changed line is encoded
    with the control word in its notes, or without notes with that of its old word. A relocated operand may stay as
    printed. Raises CompileError with the line, :class:`CubinError` for an unknown section."""
    target = isa.target(cubin.sm)
    decoded = {s.number: decode_section(s, target) for s in cubin.sections}
    names = Names(cubin, decoded)
    known = {s.name: s for s in cubin.sections}
    out: dict[str, bytes] = {}
    section: CodeSection | None = None
    labels: dict[str, int] = {}
    lines: list[tuple[int, int, str]] = []
    pending: list[str] = []

    def finish() -> None:
        if section is not None:
            out[section.name] = _assemble_section(
                section, lines, labels, _Before(section, decoded[section.number], names), target
            )

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


class _Before:
    """A section as it was printed: operand texts that replace others, by offset."""

    def __init__(self, section: CodeSection, items: list[Decoded], names: Names) -> None:
        self.items = items
        self.texts: dict[int, dict[str, str]] = {}
        relocs: dict[int, list[TextReloc]] = {}
        for reloc in section.relocs:
            relocs.setdefault(reloc.offset, []).append(reloc)
        for pc in relocs:
            if pc % WORD == 0 and pc // WORD < len(items):
                item = items[pc // WORD]
                if item.inst is not None and item.plan is not None:
                    ops = (*item.inst.dsts, *item.inst.srcs)
                    shown = operand_texts(item, section, names, relocs[pc])
                    self.texts[pc] = {text: item.plan.slots[k].codec.fmt(ops[k], pc) for k, text in shown.items()}


def _plain(text: str, before: dict[str, str], labels: dict[str, int], number: int) -> str:
    """The text with relocated operands as the word holds them, and label references replaced by addresses."""
    text = _NOTE.sub("", text)
    for shown, held in before.items():
        text = text.replace(shown, held)
    for name in _REF.findall(text):
        if name not in labels:
            raise CompileError(f"unknown label {name}", number)
    return re.sub(r"\s+", " ", _REF.sub(lambda m: f"{labels[m['name']]:#x}", text)).strip()


def _assemble_section(
    section: CodeSection, lines: list[tuple[int, int, str]], labels: dict[str, int], before: _Before, target: Target
) -> bytes:
    words = section.words
    for number, pc, text in lines:
        if pc % WORD or pc // WORD >= len(words):
            raise CompileError(f"no instruction at {pc:#x}", number)
        item = before.items[pc // WORD]
        plain = _plain(text, before.texts.get(pc, {}), labels, number)
        if plain.startswith(".word "):
            try:
                words[pc // WORD] = int(plain[6:], 0) & (1 << 8 * WORD) - 1
            except ValueError:
                raise CompileError(f"not a number: {plain[6:]}", number) from None
            continue
        if item.inst is not None and re.sub(r"\s+", " ", item.text).strip() == plain:
            continue
        try:
            inst = target.parse(plain, pc)
            if inst.ctl is None and item.inst is not None:
                inst.ctl = item.inst.ctl
            words[pc // WORD] = target.encode(inst, pc)
        except CompileError as error:
            raise CompileError(error.message, number) from None
    return b"".join(w.to_bytes(WORD, "little") for w in words)
