"""From one decoded instruction to one closure: operand access, guards, writes.

``build(inst, context)`` looks the opcode up in the table of its family. The entry gets a :class:`Build` and returns
``run(view, m)``, which executes the instruction for lanes ``m`` (None = all) of a view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ir_format.model import ABS, INV, NEG, ZERO, Const, Imm, Inst, Mem, Name, Operand, Reg
from stages.simulate.image import Kernel
from stages.simulate.machine import Fault, InstFn
from stages.simulate.state import P_SINK, PT_ROW, RZ_ROW, SINK, UP0, UR0, Lanes, View

Arr = NDArray[Any]
Get = Callable[[View], Arr]
u32, u64, i32, i64, f32, f64 = np.uint32, np.uint64, np.int32, np.int64, np.float32, np.float64
count = np.count_nonzero


class Unsupported(Exception):
    """The simulator does not know this instruction or form; the text names it."""


class Context:
    """What the instructions of a launch share: registers, banks, memories (see :mod:`device`)."""

    __slots__ = ("banks", "code", "copies", "flight", "kernel", "lanes", "launch", "memory", "sm", "tensor", "watcher")

    def __init__(
        self,
        lanes: Lanes,
        kernel: Kernel,
        sm: int,
        banks: dict[int, bytes],
        memory: Any,
        launch: Any,
        code: Any,
        watcher: Any = None,
    ) -> None:
        self.watcher = watcher
        self.tensor: Any = None  # tensor memory, if any
        self.copies: Any = None  # the same for copies of the bulk-copy unit
        self.flight: Any = None  # products of warpgroups in flight, unless products are computed at once
        self.lanes = lanes
        self.kernel = kernel
        self.sm = sm
        self.banks = banks
        self.memory = memory
        self.launch = launch
        self.code = code


def put(row: Arr, value: Arr, m: Arr | None) -> None:
    """Write lanes ``m`` of a row."""
    if m is None:
        row[:] = value
    else:
        np.copyto(row, value, where=m)


class Build:
    """One instruction under construction. ``reads`` and ``writes`` collect the rows it touches, as ('U', row) or ('P',
    row)."""

    __slots__ = ("address", "ctx", "d", "inst", "mods", "pc", "pd", "ps", "reads", "s", "writes")

    def __init__(self, inst: Inst, ctx: Context, pc: int, address: int) -> None:
        self.inst = inst
        self.ctx = ctx
        self.pc = pc
        self.address = address
        self.mods = frozenset(inst.mods)
        self.reads: list[tuple[str, int]] = []
        self.writes: list[tuple[str, int]] = []
        self.d = [o for o in inst.dsts if not is_pred(o)]
        self.pd = [o for o in inst.dsts if is_pred(o)]
        self.s = [o for o in inst.srcs if not is_pred(o)]
        self.ps = [o for o in inst.srcs if is_pred(o)]

    # --- errors ---

    def refuse(self, why: str = "") -> Unsupported:
        """The error for a form that is not supported."""
        inst = self.inst
        name = ".".join((inst.op, *inst.mods))
        return Unsupported(f"instruction {name} is not supported by the simulator" + (f" ({why})" if why else ""))

    def only(self, *known: str) -> None:
        """Refuse modifiers other than these."""
        extra = [m for m in self.inst.mods if m not in known]
        if extra:
            raise self.refuse("modifier " + ", ".join(extra))

    def pick(self, *names: str, default: str = "") -> str:
        """The first of ``names`` among the modifiers."""
        for name in names:
            if name in self.mods:
                return name
        return default

    # --- rows ---

    def _row(self, op: Reg, part: int = 0) -> int:
        if op.num == ZERO:
            return RZ_ROW
        number = op.num + op.sub + part
        if op.file == "R":
            if number >= max(self.ctx.kernel.regs - 2, 2) and number >= 255 - 2:
                raise self.refuse(f"register R{number}")
            return number
        if op.file == "UR":
            return UR0 + number
        raise self.refuse(f"{op.file} register where a number is read")

    def _read(self, kind: str, row: int) -> int:
        if not (kind == "U" and row == RZ_ROW) and not (kind == "P" and row == PT_ROW):
            self.reads.append((kind, row))
        return row

    def out(self, op: Operand, part: int = 0) -> int:
        """The row to write for component ``part`` of a destination."""
        if not isinstance(op, Reg):
            raise self.refuse("destination is not a register")
        row = self._row(op, part)
        if row == RZ_ROW:
            return SINK
        self.writes.append(("U", row))
        return row

    def pout(self, op: Operand) -> int:
        """The row to write for a predicate destination."""
        if not isinstance(op, Reg):
            raise self.refuse("destination is not a predicate")
        if op.num == ZERO:
            return P_SINK
        row = op.num + (UP0 if op.file == "UP" else 0)
        self.writes.append(("P", row))
        return row

    def pdst(self, index: int) -> int:
        """The row of the index-th predicate destination, or the sink if the instruction has none."""
        return self.pout(self.pd[index]) if index < len(self.pd) else P_SINK

    def dst(self, part: int = 0) -> int:
        """The row of the (only) register destination."""
        return self.out(self.d[0], part) if self.d else SINK

    # --- constants ---

    def bank(self, number: int, offset: int, size: int) -> int:
        """``size`` bytes of a constant bank."""
        data = self.ctx.banks.get(number)
        if data is None or offset < 0 or offset + size > len(data):
            raise Unsupported(f"constant c[{number:#x}][{offset:#x}] lies outside its bank")
        return int.from_bytes(data[offset : offset + size], "little")

    # --- sources ---

    def row(self, op: Operand, part: int = 0) -> int:
        """The row that holds component ``part`` of a 32-bit source without flags."""
        if isinstance(op, Reg):
            return self._read("U", self._row(op, part))
        if isinstance(op, Imm):
            return self.ctx.lanes.constant(op.value >> (32 * part))
        if isinstance(op, Const) and op.ireg is None:
            return self.ctx.lanes.constant(self.bank(op.bank, op.offset + 4 * part, 4))
        raise self.refuse(f"operand {op!r}")

    def u(self, op: Operand, part: int = 0) -> Get:
        """A 32-bit integer source with negation or inversion."""
        at = self.row(op, part)
        flags = flags_of(op)
        if flags & INV:
            return lambda v: np.invert(v.U[at])
        if flags & NEG:
            return lambda v: np.negative(v.U[at])
        if flags & ABS:
            return lambda v: np.abs(v.I[at]).view(u32)
        return lambda v: v.U[at]

    def raw(self, op: Operand, part: int = 0) -> Get:
        """A 32-bit source, flags ignored."""
        at = self.row(op, part)
        return lambda v: v.U[at]

    def f(self, op: Operand, part: int = 0) -> Get:
        """A float32 source (register ``part`` of it) with absolute value and negation."""
        at = self.row(op, part)
        flags = flags_of(op)
        if flags & ABS and flags & NEG:
            return lambda v: -np.abs(v.F[at])
        if flags & ABS:
            return lambda v: np.abs(v.F[at])
        if flags & NEG:
            return lambda v: -v.F[at]
        return lambda v: v.F[at]

    def q(self, op: Operand) -> Get:
        """A 64-bit integer source (register pair, constant, or a 64-bit immediate) with negation or inversion."""
        if isinstance(op, Imm):
            value = op.value
            if self.inst.op in ("SEL", "USEL"):
                value = (value & 0x1FFFFFFFF) - (
                    (value & 0x100000000) << 1
                )  # a 33-bit field (measured: SEL.64 has both -1 and 0xffffffff)
            elif self.inst.op not in ("MOV", "UMOV") and not (self.inst.op in ("IMAD", "UIMAD") and "U32" in self.mods):
                value = (value & 0xFFFFFFFF) - (
                    (value & 0x80000000) << 1
                )  # a 32-bit field, sign-extended (measured: IADD.64 -1)
            low, high = self.ctx.lanes.constant(value), self.ctx.lanes.constant(value >> 32)
        else:
            low, high = self.row(op, 0), self.row(op, 1)
        flags = flags_of(op)

        def get(v: View) -> Arr:
            return join64(v.U[low], v.U[high])

        if flags & INV:
            return lambda v: np.invert(get(v))
        if flags & NEG:
            return lambda v: np.negative(get(v))
        return get

    def f64(self, op: Operand) -> Get:
        """A double source; an immediate holds the upper 32 bits."""
        if isinstance(op, Imm):
            low, high = RZ_ROW, self.ctx.lanes.constant(op.value if op.value < 1 << 32 else op.value >> 32)
        else:
            low, high = self.row(op, 0), self.row(op, 1)
        flags = flags_of(op)

        def get(v: View) -> Arr:
            return join64(v.U[low], v.U[high]).view(f64)

        if flags & ABS and flags & NEG:
            return lambda v: -np.abs(get(v))
        if flags & ABS:
            return lambda v: np.abs(get(v))
        if flags & NEG:
            return lambda v: -get(v)
        return get

    def high64(self, op: Operand) -> Get:
        """The upper word of a double when the instruction names only that word, with the double's sign flags."""
        at = self.row(op)
        flags = flags_of(op)
        keep, flip = u32(0x7FFFFFFF if flags & ABS else 0xFFFFFFFF), u32(0x80000000 if flags & NEG else 0)
        return lambda v: (v.U[at] & keep) ^ flip

    def p(self, op: Operand) -> Get:
        """A predicate source."""
        if not isinstance(op, Reg):
            raise self.refuse("operand is not a predicate")
        at = PT_ROW if op.num == ZERO else op.num + (UP0 if op.file == "UP" else 0)
        self._read("P", at)
        if op.flags & INV:
            return lambda v: np.logical_not(v.P[at])
        return lambda v: v.P[at]

    def psrc(self, index: int, default: bool) -> Get:
        """The index-th predicate source; ``default`` if the instruction has none."""
        if index < len(self.ps):
            return self.p(self.ps[index])
        if default:
            return lambda v: v.P[PT_ROW]
        return lambda v: np.logical_not(v.P[PT_ROW])

    def pconst(self, index: int) -> bool | None:
        """True or False if the index-th predicate source is PT or !PT (or absent: False), else None."""
        if index >= len(self.ps):
            return False
        op = self.ps[index]
        if isinstance(op, Reg) and op.num == ZERO:
            return not op.flags & INV
        return None

    # --- emitters ---

    def emit(self, fn: Callable[..., Arr], gets: Sequence[Get], dst: int | None = None) -> InstFn:
        """``d = fn(*gets)`` for 32-bit integer results."""
        d = self.dst() if dst is None else dst
        if len(gets) == 1:
            (g0,) = gets
            return lambda v, m: put(v.U[d], fn(g0(v)), m)
        if len(gets) == 2:
            g0, g1 = gets
            return lambda v, m: put(v.U[d], fn(g0(v), g1(v)), m)
        if len(gets) == 3:
            g0, g1, g2 = gets
            return lambda v, m: put(v.U[d], fn(g0(v), g1(v), g2(v)), m)
        return lambda v, m: put(v.U[d], fn(*[g(v) for g in gets]), m)

    def emit_f(self, fn: Callable[..., Arr], gets: Sequence[Get]) -> InstFn:
        """``d = fn(*gets)`` for float32 results."""
        d = self.dst()
        if len(gets) == 1:
            (g0,) = gets
            return lambda v, m: put(v.F[d], fn(g0(v)), m)
        if len(gets) == 2:
            g0, g1 = gets
            return lambda v, m: put(v.F[d], fn(g0(v), g1(v)), m)
        if len(gets) == 3:
            g0, g1, g2 = gets
            return lambda v, m: put(v.F[d], fn(g0(v), g1(v), g2(v)), m)
        return lambda v, m: put(v.F[d], fn(*[g(v) for g in gets]), m)

    def emit_q(self, fn: Callable[..., Arr], gets: Sequence[Get]) -> InstFn:
        """``d2 = fn(*gets)`` for 64-bit results of any 64-bit type."""
        low, high = self.dst(0), self.dst(1)

        def run(v: View, m: Arr | None) -> None:
            halves = np.ascontiguousarray(fn(*[g(v) for g in gets])).view(u32).reshape(-1, 2)
            put(v.U[low], halves[:, 0], m)
            put(v.U[high], halves[:, 1], m)

        return run

    def emit_p(self, fn: Callable[..., tuple[Arr, Arr]], gets: Sequence[Get]) -> InstFn:
        """``Pu, Pv = fn(*gets)``."""
        pu, pv = self.pdst(0), self.pdst(1)
        if pv == P_SINK:

            def one(v: View, m: Arr | None) -> None:
                put(v.P[pu], fn(*[g(v) for g in gets])[0], m)

            return one

        def run(v: View, m: Arr | None) -> None:
            first, second = fn(*[g(v) for g in gets])
            put(v.P[pu], first, m)
            put(v.P[pv], second, m)

        return run


def is_pred(op: Operand) -> bool:
    """Is the operand a predicate register?"""
    return isinstance(op, Reg) and op.file in ("P", "UP")


def flags_of(op: Operand) -> int:
    """Flags of an operand that can have them."""
    return op.flags if isinstance(op, (Reg, Imm, Const)) else 0


def join64(low: Arr, high: Arr) -> Arr:
    """64-bit words of two rows of 32-bit words."""
    out = np.empty((len(low), 2), u32)
    out[:, 0] = low
    out[:, 1] = high
    return out.view(u64).reshape(-1)


Builder = Callable[[Build], InstFn]


def is_uniform(inst: Inst) -> bool:
    """Does the instruction run in the uniform datapath (all its operands are per warp)?"""
    return inst.op.startswith("U") and all(
        not (isinstance(o, Reg) and o.file in ("R", "P") and o.num != ZERO) for o in (*inst.dsts, *inst.srcs)
    )


def guarded(inst: Inst, run: InstFn, b: Build) -> InstFn:
    """Wrap ``run`` with the guard, and give uniform instructions their own lane set."""
    uniform = is_uniform(inst)
    guard = inst.guard
    if guard is None or (guard.num == ZERO and not guard.flags & INV):
        if uniform:
            return lambda v, m: run(v, v.um)
        return run
    get = b.p(guard)
    if any(
        isinstance(o, Reg) and (o.file, o.num) == (guard.file, guard.num) for o in inst.dsts
    ):  # the lanes from before the instruction, also for a second result
        before = get
        get = lambda v: before(v).copy()  # noqa: E731

    def checked(v: View, m: Arr | None) -> None:
        base = v.um if uniform else m
        g = get(v)
        mm = g if base is None else g & base
        n = int(count(mm))
        if n:
            run(v, None if n == v.n else mm)

    return checked


def text_of(inst: Inst) -> str:
    """Opcode with modifiers."""
    return ".".join((inst.op, *inst.mods))


__all__ = [
    "Arr", "Build", "Builder", "Context", "Fault", "Get", "InstFn", "Mem", "Name", "Unsupported", "View", "count",
    "flags_of", "guarded", "is_pred",
    "is_uniform", "join64", "put", "text_of",
]  # fmt: skip
