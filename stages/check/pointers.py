"""Which kernel parameters are pointers, and to what: dataflow over the PTX that ignores order.

A parameter (or an eight-byte field of it) is a pointer if it is declared `.ptr`, if it is an operand of `cvta`, or if
its value, possibly added to something, is the base of a memory access. The types of the accesses tell how to fill the
buffer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ir_format.ptx import Addr, CallTarget, Imm, Operand, PtxFunction, PtxInst, PtxUnit, Reg, Sym, Vec

Field: TypeAlias = tuple[str, int]  # parameter, byte offset
Node: TypeAlias = tuple[int, str, int]  # function, "r" and register or symbol name and "" offset
_PASS: Final = frozenset(["mov", "add", "sub", "selp", "cvta", "mad", "or", "and", "min", "max", "cvt"])
_ACCESS: Final = frozenset(["ld", "ldu", "st", "atom", "red", "cp", "prefetch"])


@dataclass(slots=True)
class Use:
    """What is known of a parameter field: certainly a pointer, base of an access, types of the accesses, whether
    written."""

    strong: bool = False
    based: bool = False
    types: Counter[str] = field(default_factory=Counter)
    written: bool = False


def pointer_fields(unit: PtxUnit) -> dict[Field, Use]:
    """Uses of all parameter fields that look like pointers."""
    flow = _Flow(unit)
    flow.solve()
    return {f: u for f, u in flow.uses.items() if u.strong or u.based}


class _Flow:
    def __init__(self, unit: PtxUnit) -> None:
        self.unit = unit
        self.number = {f.name: k for k, f in enumerate(unit.functions)}
        self.taint: dict[Node, set[Field]] = {}
        self.uses: dict[Field, Use] = {}
        self.changed = True

    def solve(self) -> None:
        """Propagate to the fixed point, then look at the accesses."""
        for p in self.unit.functions[0].params:
            if p.ptr:
                self.uses.setdefault((p.name, 0), Use()).strong = True
        rounds = 0
        while self.changed and rounds < 50:
            self.changed = False
            rounds += 1
            for k, f in enumerate(self.unit.functions):
                for item in f.body:
                    if isinstance(item, PtxInst):
                        self._step(k, f, item)
        for k, f in enumerate(self.unit.functions):
            for item in f.body:
                if isinstance(item, PtxInst):
                    self._look(k, item)

    def _node(self, k: int, x: Operand) -> Node | None:
        if isinstance(x, Reg):
            return k, "r", x.index
        if isinstance(x, Sym):
            return k, x.name, x.offset
        return None

    def _of(self, k: int, x: Operand) -> set[Field]:
        node = self._node(k, x)
        return self.taint.get(node, set()) if node is not None else set()

    def _add(self, node: Node | None, fields: set[Field]) -> None:
        if node is None or not fields:
            return
        have = self.taint.setdefault(node, set())
        if not fields <= have:
            have |= fields
            self.changed = True

    def _step(self, k: int, f: PtxFunction, inst: PtxInst) -> None:
        ops = inst.operands
        if inst.op == "ld" and isinstance(ops[1], Addr) and isinstance(ops[1].base, Sym):
            name, offset = ops[1].base.name, ops[1].offset + ops[1].base.offset
            entry = f.entry and any(p.name == name for p in f.params)
            dests = ops[0].elems if isinstance(ops[0], Vec) else (ops[0],)
            for j, d in enumerate(dests):
                if entry and inst.types[-1] in ("u64", "b64", "s64"):
                    self._add(self._node(k, d), {(name, offset + 8 * j)})
                else:
                    self._add(self._node(k, d), self.taint.get((k, name, offset + 8 * j), set()))
        elif inst.op == "st" and isinstance(ops[0], Addr) and isinstance(ops[0].base, Sym):
            self._add((k, ops[0].base.name, ops[0].offset + ops[0].base.offset), self._of(k, ops[1]))
        elif inst.op == "call" and isinstance(ops[0], CallTarget):
            self._call(k, ops[0])
        elif inst.op in _PASS and len(ops) > 1:
            sources = ops[3:4] if inst.op == "mad" else ops[1:]
            for s in sources:
                self._add(self._node(k, ops[0]), self._of(k, s))
            if inst.op == "cvta":
                for fld in self._of(k, ops[1]):
                    self.uses.setdefault(fld, Use()).strong = True

    def _call(self, k: int, call: CallTarget) -> None:
        names = [call.target.name] if isinstance(call.target, Sym) else list(call.targets)
        for name in names:
            j = self.number.get(name)
            if j is None:
                continue
            callee = self.unit.functions[j]
            for formal, actual in zip(callee.params, call.args, strict=False):
                self._link(k, actual, j, formal.name if formal.space == "param" else formal.reg, True)
            for formal, actual in zip(callee.rets, call.rets, strict=False):
                self._link(k, actual, j, formal.name if formal.space == "param" else formal.reg, False)

    def _link(self, k: int, outer: Operand, j: int, inner: str | int, into: bool) -> None:
        if isinstance(outer, Reg):
            pairs: list[tuple[Node, Node]] = [
                ((k, "r", outer.index), (j, "r", inner) if isinstance(inner, int) else (j, inner, 0))
            ]
        elif isinstance(outer, Sym):
            pairs = [
                ((k, outer.name, at), (j, inner, at) if isinstance(inner, str) else (j, "r", inner))
                for at in range(0, 64, 8)
            ]
        else:
            return
        for a, b in pairs:
            source, dest = (a, b) if into else (b, a)
            self._add(dest, self.taint.get(source, set()))

    def _look(self, k: int, inst: PtxInst) -> None:
        if inst.op not in _ACCESS:
            return
        for x in inst.operands:
            if not isinstance(x, Addr) or isinstance(x.base, (Sym, Imm)):
                continue
            fields = self._of(k, x.base)
            strong = {f for f in fields if f in self.uses and self.uses[f].strong}
            for fld in sorted(strong or fields):
                use = self.uses.setdefault(fld, Use())
                use.based = True
                if inst.types:
                    use.types[inst.types[-1]] += 1
                if inst.op in ("st", "atom", "red"):
                    use.written = True
