"""The code of a launch: words decoded on first use, compiled to closures on first execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ir_format.model import Inst
from stages.simulate import (
    control,
    ops_atomic,
    ops_bulk,
    ops_convert,
    ops_float,
    ops_half,
    ops_int,
    ops_matrix,
    ops_memory,
    ops_sync,
    ops_tensor_map,
    ops_tensor_memory,
    ops_warp,
    ops_warpgroup,
)
from stages.simulate.build import Build, Builder, Context, Unsupported, guarded, text_of
from stages.simulate.control import CONTROL
from stages.simulate.image import Image
from stages.simulate.lines import LineTable
from stages.simulate.machine import Bundle, CtlFn, Fault, InstFn, Machine
from stages.simulate.state import View

Arr = NDArray[Any]
#: (word, address) -> instruction; raises ValueError with a reason if the word is none.
Decoder = Callable[[int, int], Inst]

OPS: Final[dict[str, Builder]] = {
    **ops_int.OPS, **ops_float.OPS, **ops_half.OPS, **ops_convert.OPS, **ops_memory.OPS, **ops_atomic.OPS,
    **ops_warp.OPS, **ops_matrix.OPS,
    **ops_sync.OPS, **ops_bulk.OPS, **ops_tensor_map.OPS, **ops_tensor_memory.OPS, **ops_warpgroup.OPS, **control.OPS,
}  # fmt: skip


def isa_decoder(sm: int) -> Decoder:
    """Decode by the ISA spec rows."""
    from ir_format import isa

    target = isa.target(sm)

    def decode(word: int, address: int) -> Inst:
        inst = target.decode(word, address)
        if not isinstance(inst, Inst):
            raise ValueError(str(getattr(inst, "reason", inst)))
        return inst

    return decode


class Program:
    """Instructions of all code sections, numbered from 0; each section ends where the next begins."""

    def __init__(self, image: Image, decode: Decoder) -> None:
        self.image = image
        self.decode = decode
        self.words: list[int] = []
        self.addresses: list[int] = []
        self.first: list[tuple[int, int, int]] = []  # (address, bytes, first index)
        for section in image.code:
            start = len(self.words)
            data = section.data
            self.first.append((section.base, len(data) // 16 * 16, start))
            self.words += [int.from_bytes(data[i : i + 16], "little") for i in range(0, len(data) - 15, 16)]
            self.addresses += range(section.base, section.base + len(data) // 16 * 16, 16)
        self.insts: list[Inst | None] = [None] * len(self.words)
        self.lines = LineTable(image)

    def inst(self, index: int) -> Inst:
        """The decoded instruction. Raises Unsupported."""
        if not 0 <= index < len(self.words):
            raise Unsupported(f"there is no instruction number {index}")
        got = self.insts[index]
        if got is None:
            word = self.words[index]
            try:
                got = self.decode(word, self.addresses[index])
            except Exception as e:  # whatever a corrupt word does to the decoder
                raise Unsupported(f"instruction word {word:#034x} can't be decoded ({e})") from e
            self.insts[index] = got
        return got

    def index(self, address: int) -> int:
        """Instruction number of a code address. Raises Fault."""
        for base, size, first in self.first:
            if base <= address < base + size and not address & 15:
                return first + (address - base) // 16
        raise Fault(f"jump to {address:#x}, which is not an instruction")

    def indices(self, addresses: Arr, mask: Arr) -> Arr:
        """Instruction numbers of the code addresses of the lanes in ``mask``."""
        out = np.zeros(len(addresses), np.int64)
        for address in np.unique(addresses[mask]):
            out[addresses == address] = self.index(int(address))
        return out

    def place(self, index: int, kernel: str) -> str:
        """Words for an error message."""
        if not 0 <= index < len(self.addresses):
            return f"instruction {index} of kernel '{kernel}'"
        name, offset = self.image.function_at(self.addresses[index])
        inst = self.insts[index]
        what = f" ({text_of(inst)})" if inst is not None else ""
        inside = f"kernel '{kernel}'" if name == kernel else f"'{name}' (kernel '{kernel}')"
        line = self.lines.ptx_line(self.addresses[index])
        source = f", PTX line {line}" if line else ""
        return f"SASS {offset:#06x}{what} of {inside}{source}"


class Compiled:
    """A program bound to a launch: its closures. Rows of the context's lanes hold its constants."""

    def __init__(self, program: Program, context: Context) -> None:
        self.program = program
        self.context = context
        n = len(program.words)
        self.fns: list[InstFn] = [_never] * n  # filled in when a segment is entered: a module may have many kernels
        self.ctls: dict[int, CtlFn] = {}
        self.ends: list[int] = [-1] * n
        self.builds: dict[int, Build] = {}
        self.place = program.place

    def drop(self) -> None:
        """Drop the closures; nothing runs after this."""
        self.fns.clear()
        self.ctls.clear()
        self.builds.clear()

    def index(self, address: int) -> int:
        """See Program."""
        return self.program.index(address)

    def indices(self, addresses: Arr, mask: Arr) -> Arr:
        """See Program."""
        return self.program.indices(addresses, mask)

    def segment_end(self, pc: int) -> int:
        """First control instruction at or after ``pc``."""
        try:
            end = self.ends[pc]
        except IndexError:
            raise Fault("execution ran off the end of the code") from None
        if end >= 0:
            return end
        end = pc
        while True:
            if end >= len(self.ends):
                raise Fault("execution ran off the end of the code")
            if self.ends[end] >= 0:
                end = self.ends[end]
                break
            try:
                inst = self.program.inst(end)
                builder = CONTROL.get(inst.op)
                if builder is not None:
                    if end not in self.ctls:
                        self.ctls[end] = builder(self.build_of(end))
                    break
            except (Unsupported, Fault) as e:
                self.ctls[end] = _raiser(str(e) if isinstance(e, Unsupported) else e.message)
                break
            end += 1
        fns = self.fns
        for i in range(pc, end + 1):
            self.ends[i] = end
            if fns[i] is _never:
                fns[i] = _Lazy(self, i).run
        return end

    def build_of(self, index: int) -> Build:
        """The construction record of an instruction."""
        build = self.builds.get(index)
        if build is None:
            build = self.builds[index] = Build(
                self.program.inst(index), self.context, index, self.program.addresses[index]
            )
        return build

    def compile(self, index: int) -> InstFn:
        """Compile a data instruction."""
        try:
            build = self.build_of(index)
            builder = OPS.get(build.inst.op)
            if builder is None:
                raise build.refuse()
            run, watcher = builder(build), self.context.watcher
            if watcher is None:
                fn = guarded(build.inst, run, build)
            else:
                fn = watcher.watch(build.inst, index, lambda f: guarded(build.inst, f, build), run)
        except Unsupported as e:
            raise Fault(str(e)) from e
        except (IndexError, StopIteration, AttributeError, TypeError, KeyError) as e:
            raise Fault(
                f"instruction {text_of(self.program.inst(index))} has operands that the simulator can't read ({e!r})"
            ) from e
        self.fns[index] = fn
        return fn


def _never(v: View, m: Arr | None) -> None:
    raise AssertionError("no segment was entered here")


class _Lazy:
    """Compiles an instruction when it is first executed."""

    __slots__ = ("compiled", "index")

    def __init__(self, compiled: Compiled, index: int) -> None:
        self.compiled = compiled
        self.index = index

    def run(self, v: View, m: Arr | None) -> None:
        """Compile, then run."""
        self.compiled.compile(self.index)(v, m)


def _raiser(message: str) -> CtlFn:
    def run(machine: Machine, bundle: Bundle) -> bool:
        raise Fault(message)

    return run
