"""Atomics and reductions in every space. Modifiers give operation and type; lanes that collide act in lane order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ir_format.model import Mem, Reg
from stages.simulate import fp
from stages.simulate.build import Arr, Build, Builder, InstFn, View
from stages.simulate.exact import BF16, F16, Format
from stages.simulate.memory import atomic
from stages.simulate.ops_float import best
from stages.simulate.ops_memory import HINTS, active, data_rows, gather_data, generic, locate, mem_of, words_of
from stages.simulate.ops_sync import arrive_shared
from stages.simulate.state import SINK

u16, u32, u64, i32, i64, f32, f64 = np.uint16, np.uint32, np.uint64, np.int32, np.int64, np.float32, np.float64

_OPS: Final = ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH", "CAS", "SAFEADD", "POPC", "CAST")
#: Vectors: (bytes, element type).
_VECTORS: Final = {
    "F16x4": (8, "F16"), "F16x8": (16, "F16"), "BF16x4": (8, "BF16"), "BF16x8": (16, "BF16"), "F32x2": (8, "F32"),
    "F32x4": (16, "F32"),
}  # fmt: skip
_TYPES: Final = (
    "U32",
    "S32",
    "U64",
    "S64",
    "F32",
    "F64",
    "F16x2",
    "BF16x2",
    "F16",
    "BF16",
    "64",
    "128",
    "32",
    "F16X2",
    "BF16_V2",
    "BF16X2",
    *_VECTORS,
)
#: Words that change nothing: rounding is to nearest, a retry loop never spins here.
_QUIET: Final = ("RN", "FTZ", "INC", "SPIN", "NOINC")

Step = Callable[[Arr, Arr], Arr]  # (old, operand) -> new, as the memory's unsigned words


def _typed(kind: Any, fn: Callable[[Arr, Arr], Arr]) -> Step:
    def run(old: Arr, value: Arr) -> Arr:
        with np.errstate(all="ignore"):
            return np.ascontiguousarray(fn(old.view(kind), value.view(kind))).view(old.dtype)

    return run


def _f32_add(flush: bool) -> Step:
    def run(x: Arr, y: Arr) -> Arr:
        if flush:
            return fp.ftz32(fp.canonical32(fp.ftz32(x) + fp.ftz32(y)))
        return fp.canonical32(x + y)

    return _typed(f32, run)


def _halves(fn: Callable[[Arr, Arr], Arr], fmt: Format) -> Step:
    def run(old: Arr, value: Arr) -> Arr:
        x, y = (fp.decode_half(np.ascontiguousarray(a).view(u16), fmt) for a in (old, value))
        return fp.encode_half(fn(x, y), fmt).view(old.dtype)

    return run


def _inc(x: Arr, y: Arr) -> Arr:
    return np.asarray(np.where(x >= y, x.dtype.type(0), x + x.dtype.type(1)))


def _dec(x: Arr, y: Arr) -> Arr:
    return np.where((x == 0) | (x > y), y, x - x.dtype.type(1))


_PLAIN: Final[dict[str, Callable[[Arr, Arr], Arr]]] = {
    "ADD": np.add, "MIN": np.minimum, "MAX": np.maximum, "AND": np.bitwise_and, "OR": np.bitwise_or,
    "XOR": np.bitwise_xor,
    "EXCH": lambda x, y: y, "INC": _inc, "DEC": _dec,
}  # fmt: skip
_INT_KINDS: Final[dict[str, tuple[int, Any]]] = {
    "U32": (4, u32),
    "32": (4, u32),
    "S32": (4, i32),
    "U64": (8, u64),
    "64": (8, u64),
    "S64": (8, i64),
}


def operation(b: Build) -> tuple[int, Step]:
    """(bytes, step) of the operation that the modifiers name; addition of 32-bit words if they name none."""
    words = words_of(b)
    op = next((w for w in words if w in _PLAIN), "ADD")
    return _step(b, op, next((w for w in words if w in _TYPES), "U32"))


def _step(b: Build, op: str, kind: str) -> tuple[int, Step]:
    """(bytes, step) of an operation on a type."""
    if kind in _VECTORS:
        size, element = _VECTORS[kind]
        one = _step(b, op, element)[1]
        unit = u16 if element.endswith("F16") else u32

        def each(old: Arr, value: Arr) -> Arr:
            x, y = (np.ascontiguousarray(a).view(unit) for a in (old, value))
            return np.ascontiguousarray(one(x, y)).view(old.dtype).reshape(old.shape)

        return size, each
    if kind in _INT_KINDS:
        size, numpy_type = _INT_KINDS[kind]
        return size, _typed(numpy_type, _PLAIN[op])
    halves = {"F16x2": (4, F16), "F16X2": (4, F16), "BF16x2": (4, BF16), "BF16X2": (4, BF16), "BF16_V2": (4, BF16),
              "F16": (2, F16), "BF16": (2, BF16)}.get(kind)  # fmt: skip
    if halves is not None:
        fn = {
            "ADD": fp.add_odd,
            "MIN": lambda x, y: best(True, False, x, y),
            "MAX": lambda x, y: best(False, False, x, y),
        }.get(op)
        if fn is not None:
            return halves[0], _halves(fn, halves[1])
    if kind == "F32" and op == "ADD":
        return 4, _f32_add("FTZ" in words_of(b))
    if kind == "F64" and op == "ADD":
        return 8, _typed(f64, np.add)
    if kind in ("F32", "F64") and op in ("MIN", "MAX"):
        low = op == "MIN"
        return (
            (4, _typed(f32, lambda x, y: best(low, False, x, y)))
            if kind == "F32"
            else (8, _typed(f64, lambda x, y: best(low, False, x, y)))
        )
    raise b.refuse(f"{op} on {kind}")


def _cas(size: int) -> Callable[[Arr, Arr, Arr], Arr]:
    if size == 16:
        return lambda old, want, new: np.where((old == want).all(axis=1)[:, None], new, old)
    return lambda old, want, new: np.where(old == want, new, old)


def _put_words(v: View, rows: list[int], result: Arr, act: Arr | None) -> None:
    """Write the words of each lane's result to registers."""
    wide = result.dtype == u64 or result.ndim > 1
    table = result.view(u32).reshape(len(result), -1) if wide else result.astype(u32).reshape(len(result), 1)
    for i, row in enumerate(rows):
        if act is None:
            v.U[row][:] = table[:, i]
        else:
            v.U[row][act] = table[:, i]


def atom(space: str) -> Builder:
    """An atomic (with a result) or reduction (without) in ``space``."""

    def build(b: Build) -> InstFn:
        words = words_of(b)
        if "ARRIVE" in words:
            return arrive_shared(b)
        op = next((w for w in words if w in _OPS), "")
        if not op or any(w not in _OPS and w not in _TYPES and w not in _QUIET and w not in HINTS for w in words):
            raise b.refuse()
        if op == "INC" and "POPC" in words:
            op = "POPC"
        kind = next((w for w in words if w in _TYPES), "U32")
        target = mem_of(b)
        operands = [o for o in b.s if isinstance(o, Reg)]
        want_old = bool(b.d) and not (isinstance(b.d[0], Reg) and b.d[0].num == -1)
        compare = op in ("CAS", "CAST")
        if op == "POPC":  # one more for every active lane at the address
            size, step, rows2 = 4, _typed(u32, lambda x, y: x + u32(1)), []
            rows: list[int] = []
        elif op == "EXCH" or compare:
            size = {"64": 8, "U64": 8, "128": 16}.get(kind, 4)
            rows = data_rows(b, operands[0], size)
            rows2 = data_rows(b, operands[1], size) if compare else []
            step = _typed(u32, lambda x, y: y)
        else:
            size, step = _step(b, op, kind)
            rows, rows2 = data_rows(b, operands[0], size), []
        out = [b.dst(i) for i in range(max(size // 4, 1))] if b.d else [SINK]
        heap = b.ctx.memory.heap
        swap = _cas(size)
        additive = (op == "ADD" and kind in _INT_KINDS) or op == "POPC"
        groups = _groups(b, space, target, size)
        flags = [p for p in b.pd if isinstance(p, Reg) and p.num != -1]
        flag = b.pout(flags[0]) if flags else -1

        def run(v: View, m: Arr | None) -> None:
            act = active(m)
            n = v.n if act is None else len(act)
            if not n:
                return
            values = gather_data(rows, size, v, act) if rows else np.ones(n, u32)
            news = gather_data(rows2, size, v, act) if rows2 else values
            result = np.empty_like(values)
            done = np.ones(n, np.bool_)
            for memory, at, where in groups(v, act):
                if flag >= 0 and space == "generic" and memory is not heap:
                    # The form with a predicate works in global memory alone; in other spaces the code tries again
                    # another way (measured: f16x2 add).
                    done[slice(None) if where is None else where] = False
                    continue
                store = memory.quads if size == 16 else memory.views[size]
                mine = values if where is None else values[where]
                new = news if where is None else news[where]
                if compare:
                    old = atomic(store, at // size, lambda o, k, p=mine, q=new: swap(o, p[k], q[k]), mine, True)
                elif op == "EXCH":
                    old = atomic(store, at // size, lambda o, k, p=mine: p[k], mine, True)
                else:
                    old = atomic(store, at // size, lambda o, k, p=mine: step(o, p[k]), mine, want_old, additive)
                if where is None:
                    result = old
                else:
                    result[where] = old
            if op == "CAST":  # the result is whether the exchange took place (measured: the code compares it with 1)
                done = result == values if result.ndim == 1 else (result == values).all(axis=1)
                result = done.astype(values.dtype)  # as wide as the data (measured: .64 is compared as a pair)
            if want_old:
                _put_words(v, out, result, act)
            if flag >= 0:
                v.P[flag][slice(None) if act is None else act] = done

        return run

    return build


def _groups(
    b: Build, space: str, target: Mem, size: int
) -> Callable[[View, Arr | None], list[tuple[Any, Arr, Arr | None]]]:
    if space == "generic":
        return generic(b, target, size, "atomic")
    place = locate(b, space, target, size, "atomic")

    def run(v: View, act: Arr | None) -> list[tuple[Any, Arr, Arr | None]]:
        memory, at = place(v, act)
        return [(memory, at, None)]

    return run


OPS: Final[dict[str, Builder]] = {
    "ATOMG": atom("global"), "ATOM": atom("generic"), "ATOMS": atom("shared"), "RED": atom("global"),
    "REDG": atom("global"),
    "REDS": atom("shared"),
}  # fmt: skip
