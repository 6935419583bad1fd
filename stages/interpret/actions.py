"""Maps an instruction to its action: moves, memory, atomics, carries; pure operations come from a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import stages.interpret.convert
import stages.interpret.video  # noqa: F401  (both add rows)
from ir_format.ptx import Neg, Pair, Part, PtxInst, Reg, Sym, Vec
from stages.interpret import alu, barriers, bulk, control, copies, tensor_memory, tensormap, warps
from stages.interpret.atomics import atomic
from stages.interpret.code import Action, Code, Step, generic, get, put, symbol
from stages.interpret.floats import Format
from stages.interpret.fpu import Bound, bound_of, nans_left_open
from stages.interpret.loads import FULL, load, store
from stages.interpret.machine import Machine
from stages.interpret.memory import RANK_SHIFT, WINDOWS
from stages.interpret.rows import BITS, PURE, U64, Arr, Unsupported, format_of, unsigned
from stages.interpret.undocumented import refuse_outside

Maker = Callable[[Code, Step, int], Action]


def action(code: Code, step: Step, pc: int) -> Action:
    """The action of an instruction. Raises Unsupported."""
    inst = step.inst
    refuse_outside(inst.opcode, code.module.target)
    if inst.has("async") and inst.op in ("st", "red"):
        return bulk.remote(code, step, pc)
    if inst.has("bulk") and inst.op == "st":
        return bulk.zeros(code, step, pc)
    maker = _ALL.get(inst.op)
    if maker is not None:
        return maker(code, step, pc)
    if inst.op in ("ldmatrix", "stmatrix", "movmatrix", "mma", "wmma", "wgmma"):
        from stages.interpret import matrix, tiles, warpgroup, wmma

        return {**tiles.ACTIONS, **matrix.ACTIONS, **wmma.ACTIONS, **warpgroup.ACTIONS}[inst.op](code, step, pc)
    return pure(code, step)


def pure(code: Code, step: Step) -> Action:
    """An instruction of the evaluation table."""
    inst = step.inst
    maker = PURE.get(inst.op)
    if maker is None:
        raise Unsupported(inst.opcode)
    try:
        fn = maker(inst)
    except (KeyError, StopIteration, ValueError) as error:
        raise Unsupported(inst.opcode) from error
    f = code.functions[step.function]
    sources = [get(code, step.function, _plain(x)) for x in inst.operands[1:]]
    dest = inst.operands[0]
    if isinstance(dest, Part):
        dest = dest.reg
    if isinstance(dest, Pair):
        first, second = put(f, dest.first), put(f, dest.second)

        def run2(m: Machine) -> int | None:
            a, b = fn(*[s(m) for s in sources])
            first(m, a)
            second(m, b)
            return None

        return run2
    to = put(f, dest)
    loose = nans_left_open(inst)
    if loose is not None:
        to = _noting(to, loose, inst.types[0].endswith("x2"))
    bound = bound_of(inst)
    if bound is not None:
        if inst.op in ("sin", "cos"):
            angle = sources[0]
            sources[0] = lambda m: m.far(angle(m))
        to = _erring(to, bound, format_of(inst.types[0].removesuffix("x2")), inst.types[0].endswith("x2"))
    if inst.op == "setp":

        def run1(m: Machine) -> int | None:
            to(m, fn(*[s(m) for s in sources])[0])
            return None

        return run1
    if len(sources) == 1:
        a = sources[0]

        def run_1(m: Machine) -> int | None:
            to(m, fn(a(m)))
            return None

        return run_1
    if len(sources) == 2:
        a, b = sources

        def run_2(m: Machine) -> int | None:
            to(m, fn(a(m), b(m)))
            return None

        return run_2

    def run(m: Machine) -> int | None:
        to(m, fn(*[s(m) for s in sources]))
        return None

    return run


def _noting(to: Any, f: Format, pair: bool) -> Any:
    """A writer for results whose NaNs the manual leaves open."""
    if not pair:
        return lambda m, v: to(m, m.nan(v, f))
    low = U64((1 << f.bits) - 1)
    return lambda m, v: to(m, m.nan(v & low, f) | m.nan(v >> U64(f.bits), f) << U64(f.bits))


def _erring(to: Any, bound: Bound, f: Format, pair: bool) -> Any:
    """A writer for the result of an approximation."""
    if not pair:
        return lambda m, v: to(m, m.approximate(v, bound, f))
    low = U64((1 << f.bits) - 1)
    return lambda m, v: to(
        m, m.approximate(v & low, bound, f) | m.approximate(v >> U64(f.bits), bound, f) << U64(f.bits)
    )


def _plain(x: Any) -> Any:
    """The register of a selected or negated operand."""
    if isinstance(x, Neg):
        x = x.operand
    return x.reg if isinstance(x, Part) else x


# --------------------------------------------------------------------------- moves and addresses


def mov(code: Code, step: Step, pc: int) -> Action:
    """mov: registers, special registers, addresses, packing"""
    inst = step.inst
    f = code.functions[step.function]
    dest, source = inst.operands[:2]
    width = BITS[inst.types[0]]
    if isinstance(dest, Vec) and isinstance(source, Vec):
        parts = [(put(f, d), get(code, step.function, s)) for d, s in zip(dest.elems, source.elems, strict=True)]

        def each(m: Machine) -> int | None:
            values = [np.array(g(m)) for _, g in parts]
            for (p, _), v in zip(parts, values, strict=True):
                p(m, v)
            return None

        return each
    if width == 128:
        return _mov128(code, step)
    if isinstance(dest, Vec):
        read = get(code, step.function, source)
        piece = width // len(dest.elems)
        outs = [put(f, d) for d in dest.elems]

        def unpack(m: Machine) -> int | None:
            v = np.array(read(m))
            for k, out in enumerate(outs):
                out(m, (v >> U64(k * piece)) & U64((1 << piece) - 1))
            return None

        return unpack
    to = put(f, dest)
    if isinstance(source, Vec):
        piece = width // len(source.elems)
        reads = [get(code, step.function, s) for s in source.elems]

        def pack(m: Machine) -> int | None:
            out: Any = U64(0)
            for k, r in enumerate(reads):
                out = out | ((r(m) & U64((1 << piece) - 1)) << U64(k * piece))
            to(m, out)
            return None

        return pack
    read = get(code, step.function, source)
    if isinstance(source, Sym):
        read = _symbol_value(code, step.function, source)

    def move(m: Machine) -> int | None:
        to(m, read(m))
        return None

    return move


def _symbol_value(code: Code, function: int, x: Sym) -> Any:
    return symbol(code, function, x.name, x.offset)


def _mov128(code: Code, step: Step) -> Action:
    f = code.functions[step.function]
    dest, source = step.inst.operands[:2]
    reads = [get(code, step.function, s) for s in source.elems] if isinstance(source, Vec) else None

    def run(m: Machine) -> int | None:
        if reads is not None:
            lanes = len(m.idx)
            v = np.stack([np.broadcast_to(r(m), (lanes,)) for r in reads], 1)
        else:
            assert isinstance(source, Reg)
            v = np.array(m.regs[source.index][m.act])
        if isinstance(dest, Vec):
            for k, d in enumerate(dest.elems):
                put(f, d)(m, v[:, k])
        elif isinstance(dest, Reg):
            m.write_wide(dest.index, v)
        return None

    return run


def _space_word(inst: PtxInst) -> str:
    for m in inst.mods:
        word = m.split("::")[0]
        if word in ("global", "shared", "local", "const"):
            return word
        if word == "param":
            return "kparam"
    raise Unsupported(inst.opcode)


def cvta(code: Code, step: Step, pc: int) -> Action:
    """cvta and cvta.to"""
    inst = step.inst
    to = put(code.functions[step.function], inst.operands[0])
    read = get(code, step.function, inst.operands[1])
    space = _space_word(inst)
    back = inst.has("to")

    def run(m: Machine) -> int | None:
        v = read(m)
        if space != "global":
            v = v & U64(FULL) if back else generic(space, v)
        to(m, v)
        return None

    return run


def isspacep(code: Code, step: Step, pc: int) -> Action:
    """isspacep"""
    inst = step.inst
    to = put(code.functions[step.function], inst.operands[0])
    read = get(code, step.function, inst.operands[1])
    space = _space_word(inst)
    windows = set(WINDOWS.values())

    def run(m: Machine) -> int | None:
        high = read(m) >> U64(32)
        if space == "global":
            other = np.zeros(high.shape, np.bool_)
            for w in sorted(windows):
                other |= high == U64(w)
            to(m, (~other).astype(U64))
        else:
            to(m, (high == U64(WINDOWS[space])).astype(U64))
        return None

    return run


def mapa(code: Code, step: Step, pc: int) -> Action:
    """mapa: the shared address of another block of the cluster"""
    inst = step.inst
    to = put(code.functions[step.function], inst.operands[0])
    read = get(code, step.function, inst.operands[1])
    rank = get(code, step.function, inst.operands[2])
    shared = any(x.startswith("shared") for x in inst.mods)

    def run(m: Machine) -> int | None:
        a = read(m)
        low = a & U64((1 << RANK_SHIFT) - 1)
        v = low | ((rank(m) + U64(1)) << U64(RANK_SHIFT))
        to(m, v if shared else generic("shared", v))
        return None

    return run


# --------------------------------------------------------------------------- carries


def carry(code: Code, step: Step, pc: int) -> Action:
    """add.cc, addc, sub.cc, subc, mad.cc, madc. The manual leaves the flag open when an addition follows a subtraction
    (*borrow*) or the reverse. ptxas's code for every mix uses the adder's carry: a difference is a + ~b + 1, or a + ~b
    + flag, and 1 means no borrow."""
    inst = step.inst
    to = put(code.functions[step.function], inst.operands[0])
    sources = [get(code, step.function, x) for x in inst.operands[1:]]
    type_ = inst.types[0]
    bits = BITS[type_]
    takes = inst.op.endswith("c")
    gives = inst.has("cc")
    minus = inst.op.startswith("sub")
    low = U64((1 << bits) - 1)

    def product(a: Arr, b: Arr) -> Arr:
        return alu.mul_high(a, b, type_) if inst.has("hi") else unsigned(a * b, bits)

    def run(m: Machine) -> int | None:
        values = [unsigned(s(m), bits) for s in sources]
        if len(values) == 3:
            values = [product(values[0], values[1]), values[2]]
        a, b = np.broadcast_arrays(*values)
        if minus:
            b = ~b & low
        flag = m.frame.cc[m.act] if takes else np.full(1, minus, U64)
        r = (a + b + flag) & low
        out = (r < a) | ((r == a) & (flag != 0) & (b == low)) if bits == 64 else (a + b + flag) > low
        to(m, r)
        if gives:
            m.frame.cc[m.act] = out
        return None

    return run


def arith(code: Code, step: Step, pc: int) -> Action:
    """add, sub, mad: with or without the carry flag"""
    return carry(code, step, pc) if step.inst.has("cc") else pure(code, step)


# --------------------------------------------------------------------------- the rest


def nothing(code: Code, step: Step, pc: int) -> Action:
    """Instructions that have no visible effect here."""
    return lambda m: None


def policy(code: Code, step: Step, pc: int) -> Action:
    """createpolicy: a cache policy is opaque and changes no value"""
    to = put(code.functions[step.function], step.inst.operands[0])

    def run(m: Machine) -> int | None:
        to(m, m.junk[m.act])
        return None

    return run


def rank(code: Code, step: Step, pc: int) -> Action:
    """getctarank: the cluster rank of the block whose shared memory contains an address"""
    inst = step.inst
    to = put(code.functions[step.function], inst.operands[0])
    read = get(code, step.function, inst.operands[1])

    def run(m: Machine) -> int | None:
        far = (read(m) & U64(FULL)) >> U64(RANK_SHIFT)
        own = m.special("%cluster_ctarank")
        to(m, np.where(far > 0, far - U64(1), own))
        return None

    return run


def _mbarrier(code: Code, step: Step, pc: int) -> Action:
    from stages.interpret.mbarrier import mbarrier

    return mbarrier(code, step, pc)


def stack(code: Code, step: Step, pc: int) -> Action:
    """alloca, stacksave, stackrestore"""
    inst = step.inst
    f = code.functions[step.function]
    if inst.op == "stackrestore":
        read = get(code, step.function, inst.operands[0])

        def restore(m: Machine) -> int | None:
            m.sp[m.act] = read(m)
            return None

        return restore
    to = put(f, inst.operands[0])
    if inst.op == "stacksave":

        def save(m: Machine) -> int | None:
            to(m, np.array(m.sp[m.act]))
            return None

        return save
    size = get(code, step.function, inst.operands[1])
    align = get(code, step.function, inst.operands[2]) if len(inst.operands) > 2 else None

    def alloca(m: Machine) -> int | None:
        k = np.maximum(align(m), U64(16)) if align is not None else np.array([16], U64)
        at = (m.sp[m.act] + k - U64(1)) // k * k
        m.sp[m.act] = at + (size(m) + U64(15)) // U64(16) * U64(16)
        to(m, at)
        return None

    return alloca


ACTIONS: Final[dict[str, Maker]] = {
    "mov": mov, "cvta": cvta, "isspacep": isspacep, "mapa": mapa, "getctarank": rank, "createpolicy": policy,
    "ld": load, "ldu": load, "st": store, "atom": atomic, "red": atomic,
    "add": arith, "sub": arith, "mad": arith, "addc": carry, "subc": carry, "madc": carry, "cp": copies.cp,
    "mbarrier": _mbarrier, "tensormap": tensormap.change, "tcgen05": tensor_memory.tcgen05,
    "alloca": stack, "stacksave": stack,
    "stackrestore": stack, "membar": nothing, "fence": nothing, "prefetch": nothing, "prefetchu": nothing,
    "nanosleep": nothing,
    "pmevent": nothing, "applypriority": nothing, "fabric": nothing, "discard": nothing, "griddepcontrol": nothing,
    "setmaxnreg": nothing,
}  # fmt: skip
_ALL: Final[dict[str, Maker]] = {**ACTIONS, **control.ACTIONS, **barriers.ACTIONS, **warps.ACTIONS}
__all__ = ["ACTIONS", "action"]
