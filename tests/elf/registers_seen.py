"""Where -g says that PTX registers are, seen in runs: at the first instruction of every PTX line that the simulator
executes, each machine register that the table names holds what the PTX register holds in the interpreter there."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from orchestrator.api import compile_ptx
from stages.elf.dwarf import GENERAL, PREDICATE, REG_SASS, REG_TYPE
from stages.interpret import machine as interpreter
from stages.interpret.launch import Module
from stages.simulate import Device
from stages.simulate import device as simulator
from tests.elf.line_rows import decode
from tests.elf.reader import Cubin, read

MASK = 0xFFFFFFFF


class Place(NamedTuple):
    """Part ``part`` of PTX register ``name`` is in ``number`` (as DWARF numbers it) from ``begin`` to ``end``."""

    name: str
    part: int
    number: int
    begin: int
    end: int
    type: int


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1


def register_places(cubin: Cubin) -> dict[str, list[Place]]:
    """The two tables, by function."""
    data, types = cubin.section(REG_SASS).data, cubin.section(REG_TYPE).data
    out: dict[str, list[Place]] = {}
    at = of = 0
    while at < len(data):
        function, at = _text(data, at)
        again, of = _text(types, of)
        (count,), (same,) = struct.unpack_from("<I", data, at), struct.unpack_from("<I", types, of)
        assert (function, count) == (again, same)
        at, of = at + 4, of + 4
        rows = out[function] = []
        for _ in range(count):
            (part,) = struct.unpack_from("<I", data, at)
            name, at = _text(data, at + 4)
            rows.append(Place(name, part, *struct.unpack_from("<3I", data, at), types[of]))
            at, of = at + 12, of + 1
    assert of == len(types)
    return out


class Seen(NamedTuple):
    """``compared``: values; ``wrong``: what differed."""

    compared: int
    wrong: list[str]


Snapshot = dict[str, int | None]


def _interpreted(text: str, arch: str, kernel: str, args: Sequence[Any]) -> list[tuple[int, Snapshot]]:
    """Each unguarded step of one thread: line, and the registers before it (None: undefined)."""
    steps: list[tuple[int, Snapshot]] = []
    plain = interpreter.Machine._compile

    def compiled(self: Any, pc: int) -> None:
        plain(self, pc)
        step = self.code.steps[pc]
        if step.guard is not None:  # it may not run
            return
        run = step.run
        regs = self.code.functions[step.function].function.regs

        def watched(m: Any) -> Any:
            seen: Snapshot = {}
            for d, row in zip(regs, m.regs, strict=True):
                defined = row is not m.junk and row is not m.junk_bits
                seen[d.name] = sum(int(x) << 64 * i for i, x in enumerate(np.atleast_1d(row[0]))) if defined else None
            steps.append((step.inst.line, seen))
            return run(m)

        step.run = watched

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreter.Machine, "_compile", compiled)
        Module(text, arch).launch(kernel, (1, 1, 1), (1, 1, 1), args)
    return steps


def _simulated(cubin: bytes, kernel: str, args: Sequence[Any]) -> list[tuple[int, list[int], int]]:
    """Each instruction of one thread: its offset in the kernel's code, R registers, predicates as bits."""
    seen: list[tuple[int, list[int], int]] = []

    class Order:
        """Runs one instruction at a time."""

        def __init__(self, *_: Any) -> None: ...

        def pick(self, ready: list[Any]) -> tuple[Any, int]:
            view = ready[0].view
            preds = sum(bool(view.P[p][0]) << p for p in range(7))
            seen.append((ready[0].pc * 16, [int(row[0]) for row in view.U[:255]], preds))
            return ready[0], ready[0].pc + 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulator, "Order", Order)
        Device(cubin).launch(kernel, 1, 1, args, order="parts")
    return seen


def compare(text: str, arch: str, kernel: str, args: Sequence[Any]) -> Seen:
    """Run the kernel with one thread both ways. Addresses differ and are left out."""
    options: dict[str, Any] = {"device-debug": 1, "generate-line-info": 1, "opt-level": 0}
    raw = compile_ptx(text, arch, options)
    cubin = read(raw)
    lines = {row.address: row.line for row in _rows(cubin, kernel)}
    steps = _interpreted(text, arch, kernel, [a.copy() if isinstance(a, np.ndarray) else a for a in args])
    want = iter(steps)
    places = register_places(cubin)
    begins = {s.name.removeprefix(f"${kernel}$"): s.value for s in cubin.symbols if s.type == 2}
    ranges = [(begins[f], p) for f, rows in places.items() if f in begins for p in rows]
    known = {line for line, _ in steps}
    compared, wrong = 0, list[str]()
    for pc, regs, preds in _simulated(raw, kernel, args):
        line = lines.get(pc)
        if line not in known:
            continue
        expected = next((s for at, s in want if at == line), None)
        assert expected is not None, f"line {line} comes sooner in the interpreter"
        for begin, p in ranges:
            if not begin + p.begin <= pc < begin + p.end:
                continue
            value = expected.get(p.name)
            if value is None:
                continue
            number = p.number & 0xFFFFFF
            got = preds >> number & 1 if p.number < GENERAL else regs[number]
            assert p.number & ~0xFFFFFF in (GENERAL, PREDICATE)
            bits = {0: 8, 4: 8, 8: 8, 1: 16, 5: 16, 9: 16, 12: 16, 16: 1}.get(p.type, 32)
            if value >> 33 and p.type in (3, 7, 11):
                continue  # an address
            compared += 1
            if (got ^ value >> 32 * p.part) & ((1 << bits) - 1):
                wrong.append(f"{pc:#x}, line {line}: {p.name}[{p.part}] in R{number}: {got:#x}, not {value:#x}")
    return Seen(compared, wrong)


def _rows(cubin: Cubin, kernel: str) -> list[Any]:
    """Rows of the kernel's PTX line table; the module has one kernel."""
    return [row for rows, _ in decode(cubin.section(".nv_debug_line_sass").data).sequences for row in rows]
