"""Executes a unit before or after allocation with hashed semantics: an instruction's results are a hash of the seed,
its name and its inputs.

Two executions agree if every store sees the same values in the same order. Control flow depends on the values, so a
wrong register shows soon. Undefined registers have values that depend on the register, so a read of one shows too.
"""

from __future__ import annotations

import zlib

from ir_format.flow import is_guarded
from ir_format.model import INV, ZERO, Const, Function, Imm, Inst, Label, Mem, Name, Operand, Reg, Sym, Unit

#: Instructions whose operands are observed.
_SEEN = ("STG", "STS", "ST", "RED", "ATOM", "ATOMG", "ATOMS")


class Stop(Exception):
    """The step limit or the call depth limit is reached."""


def mix(*parts: object) -> int:
    """A 32-bit hash, the same in every process."""
    return zlib.crc32(repr(parts).encode())


class Machine:
    """One thread. ``physical``: registers are shared between functions and identified by number; else each activation
    has its own cells."""

    def __init__(self, unit: Unit, physical: bool, seed: int, limit: int) -> None:
        self.functions = {f.name: f for f in unit.functions}
        self.physical = physical
        self.seed = seed
        self.left = limit
        self.trace: list[object] = []
        self.regs: dict[object, int] = {}
        self.memory: dict[int, int] = {}
        self.bases: dict[str, list[int]] = {}
        for f in unit.functions:
            base, count = [], 0
            for v in f.vregs:
                base.append(count)
                count += v.width
            self.bases[f.name] = base
        self.visits: dict[tuple[str, int], int] = {}

    def run(self, name: str) -> list[object]:
        """Run the kernel; returns the observed values."""
        try:
            self.call(self.functions[name], {}, 0)
        except Stop:
            pass
        return self.trace

    # registers: physical (file, number) or virtual (activation, cell); fixed R1 has one cell per activation

    def key(self, frame: Frame, reg: Reg, part: int) -> object:
        if self.physical:
            return (reg.file, reg.num + part)
        if frame.fn.vregs[reg.num].fixed == 1 and reg.file == "R":
            return "R1"
        return (frame.serial, frame.base[reg.num] + reg.sub + part)

    def read(self, frame: Frame, reg: Reg) -> list[int]:
        if reg.num == ZERO:
            value = 1 if reg.file in ("P", "UP") else 0
            if reg.flags & INV and reg.file in ("P", "UP"):
                value ^= 1
            return [value] * reg.width
        out = []
        for part in range(reg.width):
            key = self.key(frame, reg, part)
            value = self.regs.get(key)
            if value is None:
                value = mix(self.seed, "junk", self.physical, key)
                if reg.file in ("P", "UP"):
                    value &= 1
            if reg.flags & INV and reg.file in ("P", "UP"):
                value ^= 1
            out.append(value)
        return out

    def write(self, frame: Frame, reg: Operand, words: list[int]) -> None:
        if type(reg) is Reg and reg.num != ZERO:
            for part in range(reg.width):
                self.regs[self.key(frame, reg, part)] = words[part]

    def value(self, frame: Frame, operand: Operand) -> object:
        """A hashable representation of the operand's value."""
        if type(operand) is Reg:
            return tuple(self.read(frame, operand))
        if type(operand) is Mem:
            return tuple(
                tuple(self.read(frame, r)) if r is not None else None
                for r in (operand.base, operand.ubase, operand.desc)
            ), operand.offset
        if type(operand) is Const:
            return operand.bank, operand.offset, None if operand.ireg is None else tuple(self.read(frame, operand.ireg))
        if type(operand) is Imm:
            return operand.value
        if type(operand) is Name:
            return operand.name
        return None

    def call(self, fn: Function, args: dict[int, int], depth: int) -> dict[int, int]:
        if depth > 6:
            raise Stop
        frame = Frame(fn, self.bases[fn.name], args)
        index = {b.id: i for i, b in enumerate(fn.blocks)}
        pos = 0
        while True:
            for inst in fn.blocks[pos].insts:
                target = self.step(frame, inst, depth)
                if target is not None:
                    break
            else:
                pos += 1
                continue
            if target < 0:
                return frame.results
            pos = index[target]

    def step(self, frame: Frame, inst: Inst, depth: int) -> int | None:
        """Execute one instruction; returns a block id to jump to, -1 at the end of the function, None to continue."""
        op = inst.op
        mark = bool(inst.attrs and "ra" in inst.attrs)
        if op in ("BRA", "CALL", "STG", "RET"):  # never inserted or dropped: both programs stop at the same place
            self.left -= 1
            if self.left < 0:
                raise Stop
        if op == "FENTRY":
            for o in inst.defs:
                assert isinstance(o, Reg)
                fixed = frame.fn.vregs[o.num].fixed
                self.write(frame, o, [frame.args.get(fixed + i, mix("arg", fixed + i)) for i in range(o.width)])
            return None
        if inst.guard is not None and is_guarded(inst) and not self.read(frame, inst.guard)[0]:
            return None
        if op == "BRA":
            if any(not self.read(frame, o)[0] for o in inst.srcs if type(o) is Reg):
                return None
            return next(o.block for o in inst.srcs if type(o) is Label)
        if op in ("EXIT", "RET"):
            for o in inst.uses:
                assert isinstance(o, Reg)
                number = o.num if self.physical else frame.fn.vregs[o.num].fixed
                frame.results.update({number + i: w for i, w in enumerate(self.read(frame, o))})
            if op == "RET":
                self.trace.append(("ret", self.read(frame, inst.srcs[0])[0]))  # type: ignore[arg-type]
            return -1
        if op == "CALL":
            self.do_call(frame, inst, depth)
            return None
        if inst.attrs and "frame" in inst.attrs:
            amount = next(o.value for o in inst.srcs if type(o) is Imm)
            sign = inst.attrs["frame"]
            assert isinstance(sign, int)
            step = amount if self.physical else sign * frame.fn.frame
            to = inst.dsts[0]
            self.write(frame, to, [(self.read(frame, to)[0] + step) & 0xFFFFFFFF])  # type: ignore[arg-type]
            return None
        if op in _SEEN:
            self.trace.append(tuple(self.value(frame, o) for o in inst.srcs))
        if op in ("STL", "LDL"):
            self.local(frame, inst)
            return None
        self.compute(frame, inst, mark)
        return None

    def do_call(self, frame: Frame, inst: Inst, depth: int) -> None:
        name = next(o.name for o in inst.srcs if type(o) is Sym)
        args: dict[int, int] = {}
        for o in inst.uses:
            assert isinstance(o, Reg)
            number = o.num if self.physical else frame.fn.vregs[o.num].fixed
            args.update({number + i: w for i, w in enumerate(self.read(frame, o))})
        results = self.call(self.functions[name], args, depth + 1)
        for o in inst.defs:
            assert isinstance(o, Reg)
            if not self.physical:
                fixed = frame.fn.vregs[o.num].fixed
                self.write(frame, o, [results.get(fixed + i, 0) for i in range(o.width)])

    def local(self, frame: Frame, inst: Inst) -> None:
        where = inst.srcs[0]
        assert isinstance(where, Mem) and where.base is not None
        at = self.read(frame, where.base)[0] + where.offset
        if inst.op == "STL":
            src = inst.srcs[1]
            assert isinstance(src, Reg)
            for i, word in enumerate(self.read(frame, src)):
                self.memory[at + 4 * i] = word
        else:
            dst = inst.dsts[0]
            assert isinstance(dst, Reg)
            self.write(frame, dst, [self.memory.get(at + 4 * i, mix("mem")) for i in range(dst.width)])

    def compute(self, frame: Frame, inst: Inst, mark: bool) -> None:
        op = inst.op
        if op == "UNDEF":
            return
        moves: list[tuple[Operand, list[int]]] = []
        if op in ("COPY", "PCOPY"):
            moves = [(d, self.moved(frame, d, s)) for d, s in zip(inst.dsts, inst.srcs)]
        elif op in ("MOV", "UMOV", "R2UR", "BMOV", "LDC", "ULDC", "LDCU", "S2R") or (
            mark and op in ("PLOP3", "UPLOP3")
        ):
            moves = [(inst.dsts[0], self.moved(frame, inst.dsts[0], inst.srcs[0]))]
        elif mark and op in ("SEL", "USEL"):
            cond = inst.srcs[2]
            assert isinstance(cond, Reg)
            moves = [(inst.dsts[0], [0 if self.read(frame, cond)[0] else 1])]
        elif mark and op in ("ISETP", "UISETP"):
            src = inst.srcs[0]
            assert isinstance(src, Reg)
            moves = [(inst.dsts[0], [1 if self.read(frame, src)[0] else 0])]
        else:
            seen = (op, inst.mods, tuple(self.value(frame, o) for o in inst.srcs if type(o) is not Label))
            for n, dst in enumerate(inst.dsts):
                assert isinstance(dst, Reg)
                words = [mix(self.seed, seen, n, i) for i in range(dst.width)]
                if dst.file in ("P", "UP"):
                    words = [words[0] & 1]
                moves.append((dst, words))
        for reg, words in moves:
            self.write(frame, reg, words)

    def moved(self, frame: Frame, dst: Operand, src: Operand) -> list[int]:
        assert isinstance(dst, Reg)
        if type(src) is Reg:
            words = self.read(frame, src)
            if dst.file in ("P", "UP") and src.file not in ("P", "UP"):
                words = [1 if words[0] else 0]
            return words
        if type(src) is Imm:
            if src.sym:
                return [mix(src.sym, src.fmt)]
            return [(src.value >> (32 * i)) & 0xFFFFFFFF for i in range(dst.width)]
        if type(src) is Const:
            return [mix(self.seed, "const", src.bank, src.offset + 4 * i) for i in range(dst.width)]
        return [mix(self.seed, "named", src)]


class Frame:
    """One activation of a function."""

    count = 0

    def __init__(self, fn: Function, base: list[int], args: dict[int, int]) -> None:
        Frame.count += 1
        self.serial = Frame.count
        self.fn = fn
        self.base = base
        self.args = args
        self.results: dict[int, int] = {}


def observe(unit: Unit, physical: bool, seed: int, limit: int = 150) -> list[object]:
    """The observed values of a run of the unit's kernel."""
    machine = Machine(unit, physical, seed, limit)
    machine.regs["R1" if not physical else ("R", 1)] = 0x10000
    return machine.run(unit.functions[0].name)
