"""PTX as a tree to cut: the parts that can be removed, and the text that remains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, Final

from ir_format.diag import OriasError
from ir_format.ptx import (
    Addr,
    Imm,
    ImmF32,
    ImmF64,
    NotPred,
    PtxFunction,
    PtxInst,
    PtxLabel,
    PtxModule,
    PtxUnit,
    Reg,
    Sym,
    Vec,
)
from ir_format.ptx_types import TYPE_BITS
from stages.check.ptx_uses import defined, jumps, mapped, registers, used, writes

#: Most instructions that a jump may skip for a guard to replace it.
_SKIPPED: Final = 4
#: Functions with at most this many instructions are tried with final values of loop counters, of this many
#: comparisons.
_SMALL: Final = 24
_COMPARED: Final = 2


class Program:
    """A parsed module. Raises OriasError for text that is no PTX."""

    def __init__(self, text: str, target: str) -> None:
        from stages.parse import parse_sources

        got = parse_sources([("reduced.ptx", text.encode("latin-1", "replace"))], target, {"opt-level": 3})
        bad = [d for d in got.diagnostics if d.severity in ("error", "fatal")]
        if bad or got.module is None:
            raise OriasError(bad[0].message if bad else "no module")
        self.module: PtxModule = got.module
        self.units: list[PtxUnit] = got.units

    def functions(self) -> dict[str, PtxFunction]:
        """The functions by name, without repetition."""
        return {f.name: f for u in self.units for f in u.functions}

    def text(self, only: Sequence[str] | None = None, changed: dict[str, PtxFunction] | None = None) -> str:
        """The module as text, with only these kernels, and with some functions replaced."""
        from stages.parse.printer import print_module

        module, units = copy(self.module), []
        module.entries = [n for n in self.module.entries if only is None or n in only]
        for u in self.units:
            if only is None or u.name in only or u.name not in self.module.entries:
                new = copy(u)
                new.functions = [(changed or {}).get(f.name, f) for f in u.functions]
                units.append(new)
        return print_module(module, units)


def without(f: PtxFunction, start: int, end: int) -> Iterator[PtxFunction]:
    """The function without some of its items, except labels: unchanged otherwise (another place may write what is
    read), and with a constant for each register that is still read, where its value was computed."""
    gone = [x for x in f.body[start:end] if not isinstance(x, PtxLabel)]
    if not gone:
        return
    labels = [x for x in f.body[start:end] if isinstance(x, PtxLabel)]
    new = copy(f)
    new.body = [*f.body[:start], *labels, *f.body[end:]]
    yield new
    read = {r for x in new.body if isinstance(x, PtxInst) for r in used(x)}
    body: list[Any] = []
    for x in f.body[start:end]:
        if isinstance(x, PtxInst):
            made = [m for r in sorted(defined(x) & read) if (m := constant(f, r)) is not None]
            body += [x] if any(same(m, x) for m in made) else made
        elif isinstance(x, PtxLabel):
            body.append(x)
    if len(body) > len(labels) and [*map(repr, body)] != [*map(repr, f.body[start:end])]:
        new = copy(f)
        new.body = [*f.body[:start], *body, *f.body[end:]]
        yield new


def constant(f: PtxFunction, register: int) -> PtxInst | None:
    """An instruction that gives a register a constant of its own."""
    kind = f.regs[register].type
    n = register % 61 + 3
    if kind == "pred":
        return PtxInst("setp", ("eq", "u32"), ("u32",), (Reg(register), Imm(n), Imm(n if register % 2 else 0)))
    digits = "".join(c for c in kind if c.isdigit())
    if kind in ("f32", "f64"):
        import struct

        bits = int.from_bytes(struct.pack("<f" if kind == "f32" else "<d", float(n)), "little")
        value: Any = ImmF32(bits) if kind == "f32" else ImmF64(bits)
        return PtxInst("mov", (kind,), (kind,), (Reg(register), value))
    if digits in ("16", "32", "64"):
        return PtxInst("mov", (f"b{digits}",), (f"b{digits}",), (Reg(register), Imm(n)))
    return None


def same(a: PtxInst, b: PtxInst) -> bool:
    """Whether two instructions are equal."""
    return (a.op, a.mods, repr(a.operands)) == (b.op, b.mods, repr(b.operands)) and b.guard is None


def simplified(f: PtxFunction, at: int) -> Iterator[PtxFunction]:
    """The function with one instruction made simpler: without its guard; with a constant instead of a register; with an
    end of a variable instead of an address; removed, with its source instead of its result; a jump over a few
    instructions as their guard."""
    i = f.body[at]
    if not isinstance(i, PtxInst):
        return
    tries: list[PtxInst] = []
    if i.guard is not None:
        new = copy(i)
        new.guard = None
        tries.append(new)
    for n in range(writes(i), len(i.operands)):
        o = i.operands[n]
        if isinstance(o, Reg) and f.regs[o.index].type != "pred" and i.op not in ("bra", "call", "cvta"):
            value = constant(f, o.index)
            held = [value.operands[1]] if value is not None else []
            if held and isinstance(held[0], Imm):
                held += _bounds(f)
            for x in held:
                new = copy(i)
                new.operands = (*i.operands[:n], x, *i.operands[n + 1 :])
                tries.append(new)
        if isinstance(o, Addr) and isinstance(o.base, Reg):
            for v in f.vars:
                if v.space in i.mods:
                    for offset in dict.fromkeys(
                        (0, max(v.size - _access_size(i), 0))
                    ):  # its first and its last element
                        new = copy(i)
                        new.operands = (*i.operands[:n], Addr(Sym(v.name), offset), *i.operands[n + 1 :])
                        tries.append(new)
    for inst in tries:
        yield _with(f, at, at + 1, [inst])
    if i.op == "bra" and i.guard is not None:
        yield from _guarded(f, at)
    elif i.guard is None:
        yield from _forwarded(f, at)


def _bounds(f: PtxFunction) -> list[Imm]:
    """Values of a counter in the last iteration of a loop: one less than the numbers that a small function compares
    with, and these numbers."""
    insts = [x for x in f.body if isinstance(x, PtxInst)]
    found = {o.value for x in insts if x.op == "setp" for o in x.operands if isinstance(o, Imm)}
    return [Imm(v) for n in sorted(found)[-_COMPARED:] for v in (n - 1, n)] if len(insts) <= _SMALL else []


def _access_size(i: PtxInst) -> int:
    """Bytes that a memory instruction accesses."""
    parts = max([len(o.elems) for o in i.operands if isinstance(o, Vec)], default=1)
    return TYPE_BITS.get(i.types[0], 32) // 8 * parts if i.types else 4


def _with(f: PtxFunction, start: int, end: int, items: Sequence[Any]) -> PtxFunction:
    new = copy(f)
    new.body = [*f.body[:start], *items, *f.body[end:]]
    return new


def _guarded(f: PtxFunction, at: int) -> Iterator[PtxFunction]:
    """Replace a jump over a few instructions by these instructions under the inverted guard."""
    jump = f.body[at]
    assert isinstance(jump, PtxInst) and jump.guard is not None
    (target,) = jumps(jump) or [-1]
    skipped: list[Any] = []
    for x in f.body[at + 1 : at + 2 + _SKIPPED]:
        if isinstance(x, PtxLabel) and x.index == target:
            yield _with(f, at, at + 1 + len(skipped), skipped)
            return
        if not isinstance(x, PtxInst) or x.guard is not None:
            return
        under = copy(x)
        under.guard = (jump.guard[0], not jump.guard[1])
        skipped.append(under)


def _forwarded(f: PtxFunction, at: int) -> Iterator[PtxFunction]:
    """Remove an instruction and use one of its sources instead of its result."""
    i = f.body[at]
    assert isinstance(i, PtxInst)
    made = sorted(defined(i))
    if len(made) != 1 or writes(i) != 1 or not isinstance(i.operands[0], Reg):
        return
    insts = [x for x in f.body if isinstance(x, PtxInst)]
    size = _bits(f.regs[made[0]].type)
    for source in dict.fromkeys(r for o in i.operands[1:] for r in registers(o)):
        once = sum(source in defined(x) for x in insts) == sum(made[0] in defined(x) for x in insts) == 1
        if source == made[0] or not once or _bits(f.regs[source].type) != size:
            continue

        def change(e: Any, by: int = source) -> Any:
            if isinstance(e, Reg | NotPred) and e.index == made[0]:
                e.index = by
            return e

        body: list[Any] = []
        for x in (*f.body[:at], *f.body[at + 1 :]):
            if isinstance(x, PtxInst) and made[0] in used(x):
                x = copy(x)
                x.operands = mapped(x.operands, change)
                if x.guard is not None and x.guard[0] == made[0]:
                    x.guard = (source, x.guard[1])
            body.append(x)
        yield _with(f, 0, len(f.body), body)


def _bits(kind: str) -> str:
    return kind if kind == "pred" else "".join(c for c in kind if c.isdigit())


def without_unused(f: PtxFunction) -> PtxFunction:
    """The function without unused labels, registers and variables."""
    named = {n for x in f.body if isinstance(x, PtxInst) for n in jumps(x)}
    new = copy(f)
    body = [x for x in f.body if not isinstance(x, PtxLabel) or x.index in named]
    live = sorted({r for x in body if isinstance(x, PtxInst) for r in (*used(x), *defined(x))})
    if all(r.vec == 1 for r in f.regs):
        place = {old: n for n, old in enumerate(live)}

        def move(e: Any) -> Any:
            if isinstance(e, Reg | NotPred):
                e.index = place[e.index]
            return e

        for n, x in enumerate(body):
            if isinstance(x, PtxInst):
                moved = copy(x)
                moved.operands = mapped(x.operands, move)
                moved.guard = (place[x.guard[0]], x.guard[1]) if x.guard is not None else None
                body[n] = moved
        new.regs = [f.regs[r] for r in live]
    new.body = body
    names = {r.symbol for v in f.vars for r in v.relocs}

    def note(e: Any) -> Any:
        if isinstance(e, Sym):
            names.add(e.name)
        return e

    for x in body:
        if isinstance(x, PtxInst):
            mapped(x.operands, note)
    new.vars = [v for v in f.vars if v.name in names]
    return new
