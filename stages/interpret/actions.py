"""From an instruction to what it does: moves, memory, atomics, carries; the rest by table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import stages.interpret.convert
import stages.interpret.video  # noqa: F401  (both enter rows)
from ir_format.ptx import Addr, Neg, Pair, Part, PtxInst, Reg, Sink, Sym, Vec
from stages.interpret import alu, control, floats
from stages.interpret.code import Action, Code, Step, address, generic, get, put, space_of, symbol
from stages.interpret.floats import FORMATS
from stages.interpret.fpu import FLOAT
from stages.interpret.machine import Machine
from stages.interpret.memory import RANK_SHIFT, WINDOWS, ranks
from stages.interpret.rows import BITS, PURE, U64, Arr, Unsupported, signed, typed, unsigned

Maker = Callable[[Code, Step, int], Action]
FULL: Final = 0xFFFFFFFF


def action(code: Code, step: Step, pc: int) -> Action:
    """The action of an instruction.  Raises Unsupported."""
    inst = step.inst
    maker = control.ACTIONS.get(inst.op) or ACTIONS.get(inst.op)
    if maker is not None:
        return maker(code, step, pc)
    if inst.op in ("ldmatrix", "stmatrix", "movmatrix", "mma"):
        from stages.interpret import matrix

        return matrix.ACTIONS[inst.op](code, step, pc)
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


# --------------------------------------------------------------------------- loads and stores


def resolve(m: Machine, space: str, a: Arr, size: int, what: str, threads: Arr) -> list[tuple[Any, Arr, Any]]:
    """Where an access goes: (memory, checked byte offsets, which of the threads or all)."""
    a = np.broadcast_to(a, threads.shape)
    if space == "global":
        return [(m.heap, m.heap.offsets(a, size, what), slice(None))]
    if space in ("shared", "cluster"):
        return [(m.shared, _shared(m, a & U64(FULL), size, what, threads), slice(None))]
    if space == "local":
        return [(m.local, m.local.offsets(a & U64(FULL), size, what, threads), slice(None))]
    if space in ("const", "kparam"):
        return [(getattr(m, space), getattr(m, space).offsets(a & U64(FULL), size, what, np.zeros(a.shape, np.int64)), slice(None))]
    high = a >> U64(32)
    if high.size and (high == U64(0x7F00)).all():
        return [(m.heap, m.heap.offsets(a, size, what), slice(None))]
    out = []
    rest = np.ones(a.shape, np.bool_)
    for name, window in WINDOWS.items():
        here = high == U64(window)
        if here.any():
            rest &= ~here
            k = np.flatnonzero(here)
            memory, off, _ = resolve(m, name, a[k] & U64(FULL), size, what, threads[k])[0]
            out.append((memory, off, k))
    if rest.any():
        k = np.flatnonzero(rest)
        out.append((m.heap, m.heap.offsets(a[k], size, what), k))
    return out


def _shared(m: Machine, a: Arr, size: int, what: str, threads: Arr) -> Arr:
    block = m.block_of[threads]
    rank = (a >> U64(RANK_SHIFT)).astype(np.int64)
    if rank.any():
        per = m.geometry.cluster[0] * m.geometry.cluster[1] * m.geometry.cluster[2]
        block = np.where(rank > 0, block // per * per + rank - 1, block)
        if (rank > per).any():
            raise Unsupported("an address outside of the cluster")
    return m.shared.offsets(a & U64((1 << RANK_SHIFT) - 1), size, what, block)


def _vector(x: Any) -> list[Any]:
    return list(x.elems) if isinstance(x, Vec) else [x]


def load(code: Code, step: Step, pc: int) -> Action:
    """ld, ldu"""
    inst = step.inst
    f = code.functions[step.function]
    dests = _vector(inst.operands[0])
    at = inst.operands[1]
    if not isinstance(at, Addr):
        raise Unsupported(inst.opcode)
    where = address(code, step.function, at)
    space = space_of(code, step.function, at, inst)
    type_ = inst.types[-1]
    size = BITS[type_] // 8
    wide = size == 16
    unit = 8 if wide else size
    outs = [put(f, d) for d in dests]
    total = size * len(dests)
    is_signed = type_[0] == "s" and size < 8

    def run(m: Machine) -> int | None:
        threads = m.all[m.act]
        places = resolve(m, space, where(m), total, "load", threads)
        for k, out in enumerate(outs):
            if wide:
                value: Arr = np.zeros((len(threads), 2), U64)
                for memory, off, which in places:
                    value[which, 0] = memory.load(off + k * 16, 8)
                    value[which, 1] = memory.load(off + k * 16 + 8, 8)
            elif len(places) == 1:
                value = places[0][0].load(places[0][1] + k * unit, unit)
            else:
                value = np.zeros(len(threads), U64)
                for memory, off, which in places:
                    value[which] = memory.load(off + k * unit, unit)
            out(m, signed(value, 8 * size).view(U64) if is_signed else value)
        return None

    return run


def store(code: Code, step: Step, pc: int) -> Action:
    """st"""
    inst = step.inst
    at = inst.operands[0]
    if not isinstance(at, Addr) or inst.has("async") or inst.has("bulk"):
        raise Unsupported(inst.opcode)
    sources = _vector(inst.operands[1])
    where = address(code, step.function, at)
    space = space_of(code, step.function, at, inst)
    size = BITS[inst.types[-1]] // 8
    total = size * len(sources)
    reads: list[Any] = [_read_wide(s) if size == 16 else get(code, step.function, s) for s in sources]

    def run(m: Machine) -> int | None:
        threads = m.all[m.act]
        for memory, off, which in resolve(m, space, where(m), total, "store", threads):
            for k, read in enumerate(reads):
                if size == 16:
                    v = np.asarray(read(m))[which]
                    memory.store(off + k * 16, 8, v[:, 0])
                    memory.store(off + k * 16 + 8, 8, v[:, 1])
                else:
                    memory.store(off + k * size, size, np.broadcast_to(read(m), threads.shape)[which])
            if m.track:
                memory.mark(off, total, pc)
        return None

    return run


def _read_wide(x: Any) -> Any:
    if not isinstance(x, Reg):
        raise Unsupported("a 128-bit constant")
    i = x.index
    return lambda m: m.regs[i][m.act]


# --------------------------------------------------------------------------- atomics


def _update(inst: PtxInst) -> tuple[Any, str]:
    """(old, operands) -> new, and the element type."""
    type_ = inst.types[-1]
    op = next(x for x in inst.mods if x in ("add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"))
    bits = BITS[type_]
    if op == "exch":
        return (lambda old, b: b), type_
    if op == "cas":
        return (lambda old, b, c: np.where(old == unsigned(b, bits), c, old)), type_
    if op in ("and", "or", "xor"):
        fn: Any = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[op]
        return fn, type_
    if op == "inc":
        return (lambda old, b: np.where(old >= unsigned(b, 32), U64(0), old + U64(1))), type_
    if op == "dec":
        return (lambda old, b: np.where((old == 0) | (old > unsigned(b, 32)), b, old - U64(1))), type_
    element = type_.removesuffix("x2")
    if element in FORMATS:
        mods = tuple(x for x in inst.mods if x in ("rn", "noftz", type_))
        return FLOAT[op](PtxInst(op, mods, (type_,), ())), type_
    if op == "add":
        return (lambda old, b: unsigned(old + b, bits)), type_
    pick: Any = np.minimum if op == "min" else np.maximum

    def extreme(old: Arr, b: Arr) -> Arr:
        r = pick(typed(old, type_), typed(b, type_))
        return unsigned(np.asarray(r).view(U64), bits)

    return extreme, type_


def atomic(code: Code, step: Step, pc: int) -> Action:
    """atom and red: one thread after the other where addresses meet"""
    inst = step.inst
    if inst.has("async"):
        raise Unsupported(inst.opcode)
    f = code.functions[step.function]
    operands = list(inst.operands)
    outs = [put(f, d) for d in _vector(operands.pop(0))] if inst.op == "atom" else []
    at = operands.pop(0)
    if not isinstance(at, Addr):
        raise Unsupported(inst.opcode)
    where = address(code, step.function, at)
    space = space_of(code, step.function, at, inst)
    fn, type_ = _update(inst)
    size = BITS[type_] // 8
    if inst.has("L2::cache_hint"):
        operands.pop()
    if size == 16:
        return _atomic128(code, step, operands, where, space, outs, inst.has("cas"))
    # The manual: additions of f32 in global memory flush subnormals, those in shared memory do not.
    flushes = type_ == "f32" and inst.has("add")
    flushed = FLOAT["add"](PtxInst("add", ("ftz", "f32"), ("f32",), ())) if flushes else fn
    count = len(_vector(operands[0]))
    columns = [[get(code, step.function, _vector(o)[k]) for o in operands] for k in range(count)]

    def run(m: Machine) -> int | None:
        threads = m.all[m.act]
        olds = [np.zeros(len(threads), U64) for _ in range(count)]
        for memory, off, which in resolve(m, space, where(m), size * count, "atomic", threads):
            for k, column in enumerate(columns):
                values = [np.broadcast_to(c(m), threads.shape)[which] for c in column]
                here = off + k * size
                old = np.zeros(len(here), U64)
                for group in ranks(here):
                    before = memory.load(here[group], size)
                    old[group] = before
                    new = fn(before, *[v[group] for v in values])
                    if flushes and memory is m.heap:
                        new = flushed(before, *[v[group] for v in values])
                    memory.store(here[group], size, new)
                olds[k][which] = old
            if m.track:
                memory.mark(off, size * count, pc)
        for out, old in zip(outs, olds, strict=False):
            out(m, old)
        return None

    return run


def _atomic128(code: Code, step: Step, operands: list[Any], where: Any, space: str, outs: list[Any], cas: bool) -> Action:
    reads = [_read_wide(x) for x in operands]

    def run(m: Machine) -> int | None:
        threads = m.all[m.act]
        old = np.zeros((len(threads), 2), U64)
        for memory, off, which in resolve(m, space, where(m), 16, "atomic", threads):
            values = [np.asarray(r(m))[which] for r in reads]
            got = np.zeros((len(off), 2), U64)
            for group in ranks(off):
                before = np.stack([memory.load(off[group], 8), memory.load(off[group] + 8, 8)], 1)
                got[group] = before
                new = values[-1][group]
                if cas:
                    new = np.where((before == values[0][group]).all(1)[:, None], new, before)
                memory.store(off[group], 8, new[:, 0])
                memory.store(off[group] + 8, 8, new[:, 1])
            old[which] = got
        for out in outs:
            out(m, old)
        return None

    return run


# --------------------------------------------------------------------------- carries


def carry(code: Code, step: Step, pc: int) -> Action:
    """add.cc, addc, sub.cc, subc, mad.cc, madc"""
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
        flag = m.frame.cc[m.act] if takes else np.zeros(1, U64)
        if minus:
            r = (a - b - flag) & low
            out = (a < b) | ((a == b) & (flag != 0))
        else:
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
    """Instructions without a visible effect here."""
    return lambda m: None


def cp(code: Code, step: Step, pc: int) -> Action:
    """cp.async: the copy is made at once (the manual lets it happen at any time before the wait)"""
    inst = step.inst
    if "mbarrier" in inst.mods:
        return _copy_arrives(code, step, pc)
    if "bulk" in inst.mods or "reduce" in inst.mods:
        raise Unsupported(inst.opcode)
    if "commit_group" in inst.mods or "wait_group" in inst.mods or "wait_all" in inst.mods:
        return lambda m: None
    dest, source, amount = inst.operands[:3]
    if not (isinstance(dest, Addr) and isinstance(source, Addr)):
        raise Unsupported(inst.opcode)
    to, frm = address(code, step.function, dest), address(code, step.function, source)
    size_of = get(code, step.function, amount)
    extra = [x for x in inst.operands[3:]]
    if inst.has("L2::cache_hint") and extra:
        extra.pop()
    ignored = get(code, step.function, extra[0]) if extra else None
    register_type = code.functions[step.function].widths
    is_pred = bool(extra) and isinstance(extra[0], Reg) and register_type[extra[0].index] == 1

    def run(m: Machine) -> int | None:
        threads = m.all[m.act]
        size = int(size_of(m).ravel()[0])
        have = np.full(len(threads), size, np.int64)
        if ignored is not None:
            v = np.broadcast_to(ignored(m), threads.shape)
            have = np.where(v != 0, 0, size) if is_pred else np.minimum(unsigned(v, 32).astype(np.int64), size)
        target = resolve(m, "shared", to(m), size, "copy", threads)[0][1]
        rows = np.zeros((len(threads), size), np.uint8)
        some = np.flatnonzero(have > 0)
        if len(some):
            a = np.broadcast_to(frm(m), threads.shape)[some]
            off = m.heap.offsets(a, 1, "copy")
            m.heap.offsets(a + (have[some] - 1).astype(U64), 1, "copy")
            span = np.arange(size)
            valid = span < have[some][:, None]
            rows[some] = np.where(valid, m.heap.data[np.minimum(off[:, None] + span, len(m.heap.data) - 1)], 0)
        m.shared.data[target[:, None] + np.arange(size)] = rows
        return None

    return run


def _copy_arrives(code: Code, step: Step, pc: int) -> Action:
    """cp.async.mbarrier.arrive: the copies are done, so it arrives; without .noinc it counts itself as one more first."""
    inst = step.inst
    if not inst.has("noinc"):
        return nothing(code, step, pc)
    from stages.interpret.mbarrier import mbarrier

    mods = ("arrive", *[x for x in inst.mods if x.startswith("shared")], "b64")
    return mbarrier(code, Step(PtxInst("mbarrier", mods, ("b64",), inst.operands, line=inst.line), step.function), pc)


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
    "mov": mov, "cvta": cvta, "isspacep": isspacep, "mapa": mapa, "ld": load, "ldu": load, "st": store, "atom": atomic, "red": atomic,
    "add": arith, "sub": arith, "mad": arith, "addc": carry, "subc": carry, "madc": carry, "cp": cp, "mbarrier": _mbarrier, "alloca": stack, "stacksave": stack,
    "stackrestore": stack, "membar": nothing, "fence": nothing, "prefetch": nothing, "prefetchu": nothing, "nanosleep": nothing,
    "pmevent": nothing, "applypriority": nothing, "discard": nothing, "griddepcontrol": nothing, "setmaxnreg": nothing,
}  # fmt: skip
__all__ = ["ACTIONS", "Sink", "action", "floats"]
