"""Control flow over decoded code: which instruction can follow which, with calls, returns and jump tables, in one
section of a cubin."""

from __future__ import annotations

import io
import struct
from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ir_format.flow import ENDS, JUMPS, is_guarded
from ir_format.model import INV, ZERO, Inst, Reg
from stages.disasm.cubin import WORD, CodeSection, Cubin

if TYPE_CHECKING:
    from stages.disasm.listing import Decoded

INDIRECT_BRANCH_TARGETS: Final = 0x34
_WITH_PAYLOAD: Final = 4


def branch_tables(data: bytes) -> dict[str, dict[int, tuple[int, ...]]]:
    """Code section -> address of an indirect branch -> addresses it can go to, from the ``.nv.info.NAME`` sections
    (measured A6)."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    out: dict[str, dict[int, tuple[int, ...]]] = {}
    try:
        for section in ELFFile(io.BytesIO(data)).iter_sections():
            if section.name.startswith(".nv.info."):
                found = out.setdefault(".text." + section.name[len(".nv.info.") :], {})
                for payload in _payloads(section.data(), INDIRECT_BRANCH_TARGETS):
                    found.update(_targets(payload))
    except (
        ELFError,
        ValueError,
        KeyError,
        IndexError,
        UnicodeError,
        AttributeError,
        TypeError,
        AssertionError,
        OverflowError,
        struct.error,
    ):
        # read_cubin has judged the file; a damaged attribute section only leaves branches without targets, which is
        # reported
        pass
    return out


def _payloads(info: bytes, wanted: int) -> list[bytes]:
    out = []
    at = 0
    while at + 4 <= len(info):
        fmt, code, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if fmt == _WITH_PAYLOAD:
            if code == wanted:
                out.append(info[at : at + size])
            at += size
    return out


def _targets(payload: bytes) -> dict[int, tuple[int, ...]]:
    words = struct.unpack(f"<{len(payload) // 4}I", payload[: len(payload) // 4 * 4])
    out: dict[int, tuple[int, ...]] = {}
    at = 0
    while at + 3 <= len(words):
        count = words[at + 2]
        out[words[at]] = out.get(words[at], ()) + words[at + 3 : at + 3 + count]
        at += 3 + count
    return out


def may_pass(inst: Inst) -> bool:
    """Whether a jump or an exit may leave the thread on the next instruction."""
    if is_guarded(inst):
        return True
    if inst.op != "BRA":
        return False
    if "DIV" in inst.mods or "CONV" in inst.mods:
        return True
    return any(type(o) is Reg and (o.num != ZERO or bool(o.flags & INV)) for o in (*inst.dsts, *inst.srcs))


def line_finder(cubin: Cubin) -> Callable[[str, int], int]:
    """The PTX line of an address in a section, 0 if the cubin has no line tables."""
    from stages.simulate.elfread import ImageError
    from stages.simulate.image import load_image
    from stages.simulate.lines import LineTable

    try:
        image = load_image(cubin.data)
    except ImageError:
        return lambda section, pc: 0
    table = LineTable(image)
    bases = {section.name: section.base for section in image.code}
    return lambda section, pc: table.ptx_line(bases[section] + pc) if section in bases else 0


class Flow:
    """Successors by instruction index. ``drained``: calls to code outside the section, after which everything has
    arrived. ``leaving``: those, and returns to callers outside the section. ``lost``: indirect branches without known
    targets. ``blocks``: (first, last + 1) index of basic blocks; ``following``: their successors by block number."""

    __slots__ = ("blocks", "drained", "entries", "following", "leaving", "lost", "succs")

    def __init__(self, section: CodeSection, items: list[Decoded], tables: dict[int, tuple[int, ...]]) -> None:
        self.drained: set[int] = set()
        self.leaving: set[int] = set()
        self.lost: list[int] = []
        self.succs: list[tuple[int, ...]] = []
        count = len(items)
        starts = sorted({at // WORD for at, _, _, _ in section.symbols if at // WORD < count} | {0})
        returns: dict[int, list[int]] = {}
        reconverge: dict[tuple[int, int], list[int]] = {}
        for n, item in enumerate(items):
            inst = item.inst
            if inst is None:
                continue
            if inst.op == "CALL":
                if item.target >= 0 and "ABS" not in inst.mods:
                    returns.setdefault(_region(starts, item.target // WORD), []).append(n + 1)
                else:
                    self.drained.add(n)
                    self.leaving.add(n)
            elif inst.op == "BSSY" and item.target >= 0:
                for o in (*inst.dsts, *inst.srcs):
                    if type(o) is Reg and o.file == "B":
                        reconverge.setdefault((_region(starts, n), o.num), []).append(item.target // WORD)
        for n, item in enumerate(items):
            inst = item.inst
            out: dict[int, None] = {}
            passes = True
            if inst is not None:
                if inst.op == "CALL":
                    if n not in self.drained:
                        out[item.target // WORD] = None
                        passes = is_guarded(inst)
                elif inst.op in JUMPS:
                    if item.target >= 0:
                        out[item.target // WORD] = None
                    elif inst.op.startswith(("BRX", "JMX")):
                        for pc in tables.get(item.pc, ()):
                            if pc % WORD == 0 and pc // WORD < count:
                                out[pc // WORD] = None
                        if not out:
                            self.lost.append(n)
                    passes = may_pass(inst)
                elif inst.op == "RET":
                    if not returns.get(_region(starts, n)):
                        self.leaving.add(n)
                    for place in returns.get(_region(starts, n), ()):
                        if place < count:
                            out[place] = None
                    passes = is_guarded(inst)
                elif inst.op in ENDS or (inst.op == "BPT" and "TRAP" in inst.mods):
                    passes = is_guarded(inst)
                elif inst.op == "WARPSYNC" and item.target >= 0:
                    out[item.target // WORD] = None
            if passes and n + 1 < count:
                out[n + 1] = None
            if any(place >= count for place in out):  # a branch out of the section: a damaged file
                self.lost.append(n)
            self.succs.append(tuple([place for place in out if place < count]))
        self.entries = starts if count else []
        self._cut(count)

    def _cut(self, count: int) -> None:
        leaders = set(self.entries) | {0}
        for n, out in enumerate(self.succs):
            if out != (n + 1,):
                leaders.update(out)
                if n + 1 < count:
                    leaders.add(n + 1)
        firsts = sorted(leaders)
        number = {first: k for k, first in enumerate(firsts)}
        self.blocks = [
            (first, firsts[k + 1] if k + 1 < len(firsts) else count) for k, first in enumerate(firsts) if first < count
        ]
        self.following = [tuple(number[s] for s in self.succs[end - 1]) for _, end in self.blocks]
        self.entries = [number[e] for e in self.entries]


def _region(starts: list[int], n: int) -> int:
    """First instruction of the function around instruction ``n``."""
    return starts[max(bisect_right(starts, n) - 1, 0)]
