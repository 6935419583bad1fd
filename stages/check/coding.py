"""Reads back what was encoded: the words of `encode` against the instructions it read, a cubin against the stream that
`elf` read.

The decoder (checked against nvdisasm, as the encoder is) reads the words. The cubin's code, records and variables are
read by :mod:`stages.disasm.cubin` and :mod:`stages.simulate.image`, which share nothing with `elf`. Fields that
relocations fill in are not compared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ir_format import isa
from ir_format.isa.machine import Refusal, Target
from ir_format.model import PSEUDO, Code, Const, Function, Imm, Inst, Label, Mem, Module, Name, Operand, Reg, Sym, Unit
from ir_format.text import print_inst
from stages.disasm.cubin import read_cubin

_WORD: Final = 16
_CTL: Final = 105  # first control bit
_SHOWN: Final = 4
#: Prefix of the symbol of a compiler-made function, as ptxas writes it.
_LOCAL: Final = re.compile(r"\$__internal_\d+_\$")
#: Names that the decoder gives to IMAD with a one or a zero among its operands.
_ALIASES: Final = frozenset(("MOV", "SHL", "IADD"))


def encoding(before: Unit, after: Unit, target: str) -> Iterator[str]:
    """Words that differ from the instructions of the stream that `encode` read."""
    spec = isa.target(target)
    codes = {c.name: c for c in after.code}
    for f in before.functions:
        code = codes.get(f.name)
        insts = [(b.id, i) for b in f.blocks for i in b.insts if i.op not in PSEUDO]
        if code is None or len(code.data) != _WORD * len(insts):
            yield (
                f"{f.name}: {len(insts)} instructions became {len(code.data) // _WORD if code is not None else 0} words"
            )
            continue
        yield from _function(f, code, insts, spec)


def _function(f: Function, code: Code, insts: list[tuple[int, Inst]], spec: Target) -> Iterator[str]:
    begin: dict[int, int] = {}
    behind: dict[tuple[int, int], int] = {}  # (block, convergence barrier) -> the instruction after its BSYNC
    at = 0
    for b in f.blocks:
        begin[b.id] = at
        for i in b.insts:
            at += _WORD
            if i.op == "BSYNC":
                for o in i.srcs:
                    if isinstance(o, Reg) and o.file == "B":
                        behind.setdefault((b.id, o.num), at)
    filled = {r.offset for r in code.relocs}
    for n, (block, inst) in enumerate(insts):
        pc = n * _WORD
        word = int.from_bytes(code.data[pc : pc + _WORD], "little")
        got = spec.decode(word, pc)
        if isinstance(got, Refusal):
            why: str = f"the decoder refuses the word ({got.reason})"
        else:
            why = _difference(inst, got, _labels(inst, begin, behind), pc in filled, spec)
        if why:
            yield f"{f.name}, block .L{block}, {pc:#x}: {print_inst(inst, None)}: {why}"


def _labels(i: Inst, begin: dict[int, int], behind: dict[tuple[int, int], int]) -> dict[int, int]:
    """Where blocks are for an instruction: BSSY names the instruction after the BSYNC of its convergence barrier, if
    the block has one."""
    bar = next((o.num for o in i.dsts if isinstance(o, Reg) and o.file == "B"), -1) if i.op == "BSSY" else -1
    if bar < 0:
        return begin
    named = [o.block for o in i.srcs if isinstance(o, Label)]
    return {n: behind.get((n, bar), begin.get(n, -1)) for n in named}


def _difference(i: Inst, got: Inst, begin: dict[int, int], filled: bool, spec: Target) -> str:
    """How a decoded instruction differs; '' if it does not."""
    if got.op != i.op or {*got.mods} - _ALIASES != {*i.mods} - _ALIASES:
        return f"it reads {got.op}{''.join(f'.{m}' for m in got.mods)}"
    if i.ctl is not None and got.ctl != i.ctl:
        return "the control word differs"
    if (i.guard is not None and i.guard.num >= 0 and got.guard != i.guard) or (i.guard is None and _guarded(got)):
        return "the guard differs"
    dsts, srcs = spec.complete(i.op, i.mods, i.dsts, i.srcs)
    for side, want, have in (("result", dsts, got.dsts), ("operand", srcs, got.srcs)):
        if len(want) != len(have):
            return f"{len(have)} {side}s"
        for n, (a, b) in enumerate(zip(want, have)):
            if not _same(a, b, begin, filled):
                return f"{side} {n + 1} reads {b}"
    return ""


def _guarded(i: Inst) -> bool:
    return i.guard is not None and (i.guard.num >= 0 or bool(i.guard.flags))


def _same(a: Operand, b: Operand, begin: dict[int, int], filled: bool) -> bool:
    if isinstance(a, Label):
        return isinstance(b, Imm) and b.value == begin.get(a.block, -1)
    if isinstance(a, Sym) or (filled and isinstance(a, Imm | Const | Mem) and a.sym):
        return True
    if isinstance(a, Reg):
        return isinstance(b, Reg) and (a.file, a.num, a.flags, a.mod) == (b.file, b.num, b.flags, b.mod)
    if isinstance(a, Imm):
        if isinstance(b, Imm):
            return (a.value - b.value) % (1 << 32) == 0 and a.flags == b.flags
        return isinstance(b, Reg) and b.num < 0 and a.value == 0
    if isinstance(a, Const):
        return (
            isinstance(b, Const)
            and (a.bank, a.offset, a.flags) == (b.bank, b.offset, b.flags)
            and _regs(a.ireg, b.ireg)
        )
    if isinstance(a, Mem):
        return isinstance(b, Mem) and a.offset == b.offset and _regs(a.base, b.base) and _regs(a.ubase, b.ubase)
    return not isinstance(a, Name) or (isinstance(b, Name) and a.name == b.name)


def _regs(a: Reg | None, b: Reg | None) -> bool:
    """Whether two address registers are the same; an absent one may be written as RZ."""
    return (a.num if a is not None else -1) == (b.num if b is not None else -1)


def image(module: Module, units: list[Unit], cubin: bytes) -> Iterator[str]:
    """Differences between a linked cubin and what `elf` read: code, registers, shared memory, contents of variables.
    Raises OriasError for a file that is no cubin."""
    from stages.simulate.image import load_image

    read = read_cubin(cubin)
    sections = {s.name: s for s in read.sections}
    for unit in units:
        section = sections.get(f".text.{unit.name}")
        if section is None:
            yield f"{unit.name}: no code section"
            continue
        places = {_bare(name, unit.name): offset for offset, _, name, _ in section.symbols}
        for code in unit.code:
            offset = places.get(code.name, 0 if code.name == unit.name else -1)
            if offset < 0:
                yield f"{unit.name}: function {code.name} is not in its code section"
                continue
            yield from _code(unit, code, section.data[offset : offset + len(code.data)])
    if not read.linked:  # contents of variables are final only after linking
        return
    loaded = load_image(cubin)
    for v in module.vars:
        there = loaded.variables.get(v.name)
        if there is None or v.space not in ("global", "const") or v.relocs:
            continue
        if there.size != v.size:
            yield f"variable {v.name} has {there.size} bytes, not {v.size}"


def _bare(symbol: str, unit: str) -> str:
    """A function's name in the stream, from its symbol: a local symbol has its unit's name, or a number, as prefix."""
    prefix = _LOCAL.match(symbol)
    return symbol[prefix.end() :] if prefix else symbol.removeprefix(f"${unit}$")


def _code(unit: Unit, code: Code, data: bytes) -> Iterator[str]:
    if len(data) != len(code.data):
        yield f"{unit.name}: {code.name} has {len(data)} bytes, not {len(code.data)}"
        return
    filled = {r.offset for r in code.relocs}
    bad = [n for n in range(0, len(data), _WORD) if data[n : n + _WORD] != code.data[n : n + _WORD] and n not in filled]
    for n in bad[:_SHOWN]:
        yield f"{unit.name}: {code.name} at {n:#x}: the word differs from the stream's"
    for n in sorted(filled):  # relocations fill an immediate or an offset: neither the mnemonic nor the control word
        a, b = (int.from_bytes(d[n : n + _WORD], "little") for d in (data, code.data))
        if (a ^ b) & 0xFFF or (a ^ b) >> _CTL:
            yield f"{unit.name}: {code.name} at {n:#x}: the instruction differs from the stream's"
