"""The control-flow graph as DOT, in the form of `nvdisasm -cfg` (hyperblocks: code from one label to the next, which
may be left at several places) and `-bbcfg` (basic blocks)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ir_format import isa
from ir_format.flow import is_guarded
from stages.disasm.cubin import WORD, CodeSection, Cubin
from stages.disasm.flow import BRANCHES, CALLS, LEAVE, targets, without_padding
from stages.disasm.labels import Names
from stages.disasm.listing import Decoded, decode_section, function_head, section_lines

_NODE = 'node [fontname="Courier",fontsize=10,shape=Mrecord];'
_ENDS = BRANCHES | LEAVE | CALLS


def flow_graph(cubin: Cubin, basic: bool) -> Iterator[str]:
    """The lines of the graph; ``basic``: of basic blocks."""
    target = isa.target(cubin.sm)
    decoded = {s.number: decode_section(s, target) for s in cubin.sections}
    names = Names(cubin, decoded)
    yield "digraph f {\n"
    for section in cubin.sections:
        items = decoded[section.number]
        list(section_lines(section, items, names, target))  # puts names into the texts
        yield from _Graph(section, without_padding(items), names, cubin, basic).lines()
    yield "}\n"


class _Graph:
    """The graph of one section."""

    def __init__(self, section: CodeSection, items: list[Decoded], names: Names, cubin: Cubin, basic: bool) -> None:
        self.section, self.items, self.names, self.cubin = section, items, names, cubin
        self.jumps = targets(items, section, names)
        self.name_of: dict[int, str] = {}
        starts = {0}
        for n, item in enumerate(items):
            if self._label(n):
                starts.add(n)
            if item.inst is not None and item.inst.op in _ENDS and (basic or not _goes_on(item)):
                starts.add(n + 1)
        self.starts = sorted(s for s in starts if s < len(items))
        made = 0
        for s in self.starts:
            self.name_of[s] = self._label(s)
            if not self.name_of[s]:
                self.name_of[s] = f"BB{made}"
                made += 1

    def _label(self, n: int) -> str:
        return self.names.of((self.section.number, n * WORD))

    def lines(self) -> Iterator[str]:
        """The subgraph. Unreachable code (the loop after the last instruction) is left out."""
        functions = {at // WORD for at, *_ in self.section.symbols}
        for n, s in enumerate(self.starts):
            end = self.starts[n + 1] if n + 1 < len(self.starts) else len(self.items)
            if not s or s in functions:
                yield "}\n" * (n > 0) + f'subgraph "cluster_{self.name_of[s]}" {{\n'
            if not s or self._reached(s):
                yield from self._node(s, end)
        yield "}\n"

    def _reached(self, s: int) -> bool:
        if any(at == s * WORD for at, *_ in self.section.symbols):
            return True
        before = self.items[s - 1].inst
        through = before is None or before.op not in _ENDS or _goes_on(self.items[s - 1])
        return through or any(s in to for n, to in self.jumps.items() if n != s)

    def _node(self, s: int, end: int) -> Iterator[str]:
        name = self.name_of[s]
        fields = [self._front(s, name)]
        edges: list[str] = []
        ports = ["entry"]
        exits = 0
        ended = False
        for n in range(s, end):
            inst = self.items[n].inst
            leaves = inst is not None and inst.op in _ENDS
            if leaves:
                ports.append(f"exit{exits}")
                fields.append(f"<exit{exits}>")
                edges += [f'"{name}":exit{exits}:e -> "{self.name_of[to]}":entry:n' for to in self._to(n)]
                exits += 1
                ended = not _goes_on(self.items[n])
            elif n > s and ports[-1].startswith("exit") and not ports[-1].startswith("exitpost"):
                ports.append(f"exitpost{exits - 1}")
                fields.append(f"<exitpost{exits - 1}>")
            fields[-1] += _escaped(f"  {self._text(n)};") + "\\l"
        if not ended and end < len(self.items) and end in self.name_of:
            edges.append(f'"{name}":{ports[-1]}:s -> "{self.name_of[end]}":entry:n')
        yield f'{_NODE}\n"{name}"\n[label="{{{"|".join(fields)}}}"]\n'
        for edge in edges:
            yield f"{edge} [style=solid];\n"

    def _text(self, n: int) -> str:
        blank = "" if self.items[n].word >> 105 & 0x1FFFFF == 0x7E0 else " "
        return f"{self.items[n].text}{blank}"

    def _to(self, n: int) -> list[int]:
        return [to for to in dict.fromkeys(self.jumps.get(n, ())) if to in self.name_of]

    def _front(self, s: int, name: str) -> str:
        """The part of a node's text before its instructions."""
        lines: list[str] = []
        for symbol in self.cubin.symbols:
            if (symbol.section, symbol.value, symbol.kind) == (self.section.number, s * WORD, "FUNC"):
                lines += [
                    re.sub(r"^ +(\.\w+) +", r"\t\1\t\t", line, flags=re.M) for line in function_head(symbol, self.names)
                ]
        if not s:
            lines.append(f"{self.section.name}:\n")
        if not lines and not name.startswith("BB"):
            lines = [f"{name}:\n"]
        text = "".join(lines).replace('@"STO_CUDA_ENTRY STV_DEFAULT"', "<no object>")
        return "<entry>" + "".join([_escaped(line) + "\\l" for line in text.splitlines()])


def _goes_on(item: Decoded) -> bool:
    """Whether the following instruction may be executed next."""
    return item.inst is None or is_guarded(item.inst) or item.inst.op in CALLS


def _escaped(text: str) -> str:
    return re.sub(r'([ <>{}|\[\]"\\])', r"\\\1", text)
