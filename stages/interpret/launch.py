"""The Python interface: a module loaded into the interpreter.

>>> module = Module(open("vadd.ptx").read())
>>> c = np.zeros(100, np.float32)
>>> module.launch("vadd", (4, 1, 1), (32, 1, 1), [a, b, c, np.int32(100)])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ir_format.diag import Diagnostic
from ir_format.ptx import CallTarget, PtxInst, PtxVar, Sym
from stages.interpret.actions import action
from stages.interpret.barriers import release_all
from stages.interpret.code import FUNCTION_BASE, Code
from stages.interpret.machine import Geometry, InterpreterError, Machine
from stages.interpret.memory import MOST, WINDOWS, Filler, Heap, TooMuch, Window

Arr = NDArray[Any]
#: A buffer, a scalar, or a record: its bytes and the buffers whose addresses go at some offsets.
Arg: TypeAlias = "Arr | np.generic | bytes | int | tuple[bytes, dict[int, Arr]]"
Dim3 = tuple[int, int, int]
DEFAULT_LIMIT: Final = 20_000_000
#: Most threads that run together (but always a whole block or cluster).
TOGETHER: Final = 32768
RECURSION_BYTES: Final = 16384


class ParseError(Exception):
    """The PTX has errors; the text has the diagnostics."""


@dataclass(slots=True)
class Result:
    """The result of a launch: steps (of groups of threads); for each buffer, if asked for, the code index of the last
    store to every byte, plus one; whether there was a NaN whose payload and sign the manual leaves open."""

    steps: int = 0
    writers: list[Arr | None] = field(default_factory=list)
    open_nans: bool = False


def _diagnostics(found: Sequence[Diagnostic]) -> str:
    return "\n".join([d.render() for d in found])


class Module:
    """A parsed module. Variables live as long as it does."""

    def __init__(self, text: str, arch: str = "sm_90", name: str = "input.ptx") -> None:
        """Raises ParseError."""
        from stages.parse import parse_text

        module, units, found = parse_text(text, name, arch)
        if module is None:
            raise ParseError(_diagnostics(found))
        self.module = module
        self.codes = {u.name: Code(module, u) for u in units}
        self.values: dict[str, Arr] = {}
        self.reset()

    def reset(self) -> None:
        """Give every module variable its initial value; variables that no launch can have get none."""
        for v in self.module.variables:
            if v.size > MOST:
                continue
            data = np.zeros(max(v.size, 1), np.uint8)
            if v.init is not None:
                data[: len(v.init)] = np.frombuffer(v.init, np.uint8)
            self.values[v.name] = data

    def set_global(self, name: str, value: Arr) -> None:
        """Overwrite a module variable from its first byte. Raises KeyError."""
        data = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        self.values[name][: len(data)] = data

    def get_global(self, name: str, dtype: Any = np.uint8) -> Arr:
        """A copy of a module variable."""
        return self.values[name].copy().view(dtype)

    def launch(
        self,
        entry: str,
        grid: Dim3,
        block: Dim3,
        args: Sequence[Arg] = (),
        *,
        shared: int = 0,
        seed: int = 0,
        shuffled: int = 0,
        limit: int = DEFAULT_LIMIT,
        track: bool = False,
        other_nans: int = 0,
        errors: int = 0,
    ) -> Result:
        """Run a kernel; arrays among `args` (and in records among them) are buffers, copied in and back.

        `seed` draws the contents of undefined registers and memory, see :class:`Filler`, and the speed of clocks.
        `shuffled`, if not 0, names an order in which warps run one by one (with an odd number, of threads that store to
        one address at once the first one wins, not the last); `track` records who wrote what; `other_nans` gives NaNs
        that the manual leaves open another payload and one sign (1: negative, 2: positive); `errors`, if not 0, lets
        approximations err. Raises InterpreterError.
        """
        code = self.codes.get(entry)
        if code is None:
            raise InterpreterError("unsupported", f"no kernel '{entry}' (the module has: {', '.join(self.codes)})")
        try:
            return self._launch(code, grid, block, args, shared, seed, shuffled, limit, track, other_nans, errors)
        except TooMuch as much:
            raise InterpreterError("unsupported", str(much)) from much

    def _launch(
        self,
        code: Code,
        grid: Dim3,
        block: Dim3,
        args: Sequence[Arg],
        shared: int,
        seed: int,
        shuffled: int,
        limit: int,
        track: bool,
        other_nans: int,
        errors: int,
    ) -> Result:
        rng = np.random.default_rng([seed, 17])
        filler = Filler(seed, rng)
        directives = code.functions[0].function.directives
        geometry = Geometry(grid, block, _cluster(directives.reqnctapercluster))
        buffers = [x for k, a in enumerate(args) for x in buffers_of(k, a)]
        heap = Heap([*code.globals, *((f"argument {k}", max(a.nbytes, 1)) for (k, _), a in buffers)])
        for k, (name, _) in enumerate(code.globals):
            heap.slot(k)[:] = self._initial(code, name)
        first = len(code.globals)
        for k, (_, a) in enumerate(buffers):
            heap.slot(first + k)[: a.nbytes] = np.ascontiguousarray(a).reshape(-1).view(np.uint8)
        const = Window("const", max(code.const_size, 1), 1, None)
        self._constants(code, const)
        self._relocate(code, heap, const)
        kparam = self._params(code, args, {place: heap.address(first + j) for j, (place, _) in enumerate(buffers)})
        result = Result()
        align = code.dynamic_align
        dynamic = -(-code.shared_size // align) * align
        per = -(-geometry.threads // 32) * 32
        cluster = geometry.cluster[0] * geometry.cluster[1] * geometry.cluster[2]
        stack = _stack(code)
        together = max(min(TOGETHER, MOST // stack) // per // cluster, 1) * cluster
        done = 0
        while done < geometry.blocks:
            count = min(together, geometry.blocks - done)
            window = Window("shared", dynamic + shared, count, filler)
            window.backward = heap.backward = bool(shuffled % 2)
            machine = Machine(
                code, geometry, heap, window,
                    Window("local", stack, count * per, filler), const, kparam,
                dynamic, shared, done, count, limit - result.steps, action, release_all, track,
            )  # fmt: skip
            machine.other_nans = other_nans
            machine.errors = np.random.default_rng([errors, done, 23]) if errors else None
            if seed:
                machine.pace, machine.started = (int(x) for x in np.random.default_rng([seed, 29]).integers(2, 64, 2))
            machine.prepare(shuffled, filler)
            machine.run()
            result.steps += machine.executed
            result.open_nans |= machine.open_nans
            done += count
        for k, (name, _) in enumerate(code.globals):
            if name in self.values:
                self.values[name][:] = heap.slot(k)
        for k, (_, a) in enumerate(buffers):
            if a.flags.writeable:
                a[...] = heap.slot(first + k)[: a.nbytes].view(a.dtype).reshape(a.shape)
            writer = heap.writer
            span = slice(heap.starts[first + k], heap.starts[first + k] + a.nbytes)
            result.writers.append(writer[span] if writer is not None else None)
        return result

    def _variable(self, code: Code, name: str) -> PtxVar | None:
        for v in self.module.variables:
            if v.name == name:
                return v
        for f in code.functions:
            for v in f.function.vars:
                if v.name == name:
                    return v
        return None

    def _initial(self, code: Code, name: str) -> Arr:
        if name in self.values:
            return self.values[name]
        v = self._variable(code, name)
        data = np.zeros(max(v.size if v else 1, 1), np.uint8)
        if v is not None and v.init is not None:
            data[: len(v.init)] = np.frombuffer(v.init, np.uint8)
        return data

    def _constants(self, code: Code, const: Window) -> None:
        for places in (code.places, *(f.places for f in code.functions)):
            for name, place in places.items():
                if place.space == "const":
                    const.data[place.offset : place.offset + place.size] = self._initial(code, name)[: place.size]

    def _relocate(self, code: Code, heap: Heap, const: Window) -> None:
        """Addresses in initialisers."""
        for v in self.module.variables:
            place = code.places.get(v.name)
            if place is None or place.space not in ("global", "const"):
                continue
            data = (
                heap.slot(place.offset) if place.space == "global" else const.data[place.offset : place.offset + v.size]
            )
            for r in v.relocs:
                target = code.places.get(r.symbol)
                if target is None:
                    continue
                value = (heap.address(target.offset) if target.space == "global" else target.offset) + r.addend
                if target.space not in ("global", "func") and r.generic:
                    value |= WINDOWS[target.space] << 32
                if r.mask:
                    shift = (r.mask & -r.mask).bit_length() - 1
                    value = (value & r.mask) >> shift
                field = (value & (1 << 8 * r.size) - 1).to_bytes(r.size, "little")
                data[r.offset : r.offset + r.size] = np.frombuffer(field, np.uint8)

    def _params(self, code: Code, args: Sequence[Arg], pointers: dict[tuple[int, int], int]) -> Window:
        params = code.functions[0].function.params
        if len(args) != len(params):
            raise InterpreterError("unsupported", f"the kernel takes {len(params)} arguments, {len(args)} given")
        size = max((p.offset + p.size for p in params), default=0)
        window = Window("kparam", max(size, 1), 1, None)
        for k, (p, a) in enumerate(zip(params, args, strict=True)):
            if isinstance(a, tuple):
                record = bytearray(a[0])
                for at in a[1]:
                    record[at : at + 8] = pointers[k, at].to_bytes(8, "little")
                data = bytes(record)
            elif isinstance(a, np.ndarray):
                data = pointers[k, 0].to_bytes(8, "little")[: p.size]
            elif isinstance(a, (bytes, bytearray)):
                data = bytes(a)
            elif isinstance(a, np.generic):
                data = a.tobytes()
            elif isinstance(a, int):
                data = (a & (1 << 8 * p.size) - 1).to_bytes(p.size, "little")
            else:
                raise InterpreterError("unsupported", f"argument {k} is neither bytes nor a number")
            window.data[p.offset : p.offset + len(data)] = np.frombuffer(data, np.uint8)
        return window


def buffers_of(k: int, a: Arg) -> list[tuple[tuple[int, int], Arr]]:
    """The buffers of an argument: ((argument, offset of its address), array)."""
    if isinstance(a, tuple):
        return [((k, at), x) for at, x in a[1].items()]
    return [((k, 0), a)] if isinstance(a, np.ndarray) else []


def _cluster(extent: tuple[int, ...] | None) -> Dim3:
    full = (*(extent or ()), 1, 1, 1)
    return full[0], full[1], full[2]


def _stack(code: Code) -> int:
    """Bytes of local memory per thread: every function once, more if it can recurse or allocate."""
    total = sum(f.frame for f in code.functions) + 64
    calls = [s.inst for s in code.steps if s.inst.op in ("call", "alloca")]
    direct = {
        c.operands[0].target.name
        for c in calls
        if isinstance(c, PtxInst)
        and c.operands
        and isinstance(c.operands[0], CallTarget)
        and isinstance(c.operands[0].target, Sym)
    }
    simple = len(direct) == sum(1 for _ in direct) and _acyclic(code) and not any(c.op == "alloca" for c in calls)
    return total if simple else total + RECURSION_BYTES


def _acyclic(code: Code) -> bool:
    """Whether no function can reach itself by direct calls (and there are no calls by address)."""
    edges: dict[int, set[int]] = {k: set() for k in range(len(code.functions))}
    for s in code.steps:
        if s.inst.op != "call":
            continue
        target = s.inst.operands[0]
        if not (isinstance(target, CallTarget) and isinstance(target.target, Sym)):
            return False
        if target.target.name in code.by_name:
            edges[s.function].add(code.by_name[target.target.name])
    state: dict[int, int] = {}

    def visit(k: int) -> bool:
        state[k] = 1
        for j in sorted(edges[k]):
            if state.get(j) == 1 or (j not in state and not visit(j)):
                return False
        state[k] = 2
        return True

    return all(k in state or visit(k) for k in edges)


__all__ = ["FUNCTION_BASE", "InterpreterError", "Module", "ParseError", "Result"]
