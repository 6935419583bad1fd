"""The inputs of a texture or surface instruction: run a kernel, ours or ptxas's, in the simulator with a replacement
for these instructions that records its operands' values and returns arbitrary numbers. Two cubins of one PTX agree if
the records and the memory afterwards agree.

    python -m tests.lower.texture_trace --sm 90 [--family surface] [--handle memory] [--show 5]

compares every form of :mod:`tests.isa.corpus_texture` and prints the differences, the forms that we refuse, and the
counts.
"""

from __future__ import annotations

import argparse
import re
import struct
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ir_format.diag import CompileError
from ir_format.model import ZERO, Imm, Mem, Name, Operand, Reg
from orchestrator.api import ChainError, compile_ptx
from stages.simulate import Device, ImageError, SimError, program
from stages.simulate.build import Build
from stages.simulate.stubs import Stubs
from tests import oracle
from tests.isa import corpus_texture as corpus

OPS = ("TEX", "TLD", "TLD4", "TXD", "TXQ", "SULD", "SUST", "SURED")
#: One line of a trace: opcode and modifiers, values of the operands in order.
Line = tuple[str, tuple[object, ...]]
#: Modifiers that say how operands are packed, not what they mean: a bindless handle, scattered values.
_RESULT = 0xD0000000


def _values() -> dict[str, int]:
    """A value for every input by name: small integers, floats near 1."""
    out: dict[str, int] = {}
    for k, (name, kind) in enumerate(corpus.REGISTERS.items()):
        if kind == "f32":
            out[name] = struct.unpack("<I", struct.pack("<f", 1.0 + k / 64))[0]
        elif name[0] == "i":
            out[name] = (1000, 1001, 1002, 77, 5, 1, 2, 3)[int(name[1])]
        else:
            out[name] = {"h": 0x77000000_12300456, "s": 0x66000000_ABC00789}.get(name, 0xB0000000 + k)
    return out


VALUES = _values()


def _registers(o: Operand, sm: int) -> list[tuple[str, Reg]]:
    if isinstance(o, Reg) and o.file in ("R", "UR"):
        return [(o.file, o)]
    if isinstance(o, Mem) and o.base is not None:
        return [("M", o.base)]
    return []


def _stand_in(trace: list[Line]) -> Any:
    def builder(b: Build) -> Any:
        inst = b.inst
        items: list[object] = []
        for o in inst.srcs:
            found = _registers(o, b.ctx.sm)
            if found:
                _, reg = found[0]
                items.append(() if reg.num == ZERO else tuple(b.row(reg, k) for k in range(reg.width)))
            elif isinstance(o, Imm):
                items.append(o.value)
            elif isinstance(o, Name):
                items.append(o.name)
        results = [(k, o) for k, o in enumerate(inst.dsts) if isinstance(o, Reg) and o.num != ZERO]
        rows = [[(_RESULT + 16 * k + p, b.out(o, p)) for p in range(o.width)] for k, o in results if o.file == "R"]
        flags = [b.pout(o) for _, o in results if o.file == "P"]
        name = ".".join((inst.op, *inst.mods))

        def run(v: Any, m: Any) -> None:
            values = tuple(tuple(int(v.U[r][0]) for r in i) if isinstance(i, tuple) else i for i in items)
            trace.append((name, values))
            for group in rows:
                for value, row in group:
                    v.U[row][:] = value
            for row in flags:
                v.P[row][:] = False

        return run

    return builder


_COORDINATES = {"1d": (1, 1), "a1d": (2, 1), "2d": (2, 2), "3d": (3, 3), "cube": (3, 3), "a2d": (3, 2), "acube": (4, 3)}


def _driver(stubs: Stubs, name: str, trace: list[Line]) -> Any:
    """A replacement for a function of the driver: handles, coordinates, derivatives, offsets and the comparison value,
    as ptxas's calls pass them."""
    found = re.match(r"__cuda_syscall_tex_grad_(?:pred_)?(\w+?)_v4_", name)
    assert found is not None
    at, slopes = _COORDINATES[found[1]]
    both, shifted = "independent" in name, "offset" in name

    def run(machine: Any, bundle: Any, mask: Any) -> None:
        u = bundle.view.U
        local = stubs.memory.local
        where = int(bundle.view.wide(local.lane_key)[0]) + int(u[1][0])

        def stacked(offset: int, count: int) -> list[int]:
            return [int.from_bytes(local.data[where + offset + 4 * k :][:4].tobytes(), "little") for k in range(count)]

        values = [int(u[r][0]) for r in (*range(4, 8 if both else 6), *range(8, 8 + at), *range(12, 12 + slopes))]
        values += stacked(0, slopes) + (stacked(16, slopes) if shifted else [])
        if "compare" in name:
            values += stacked(32 if shifted else 16, 1) if both else [int(u[6][0])]
        trace.append((name, tuple(values)))
        for k in range(5):
            u[4 + k][:] = _RESULT + k

    return run


#: Function of the driver on sm_107 -> registers and words of the stack that hold arguments (headers are pairs of which
#: only the lower word counts), and its results.
_BUILT: dict[str, tuple[tuple[int, ...], int, int]] = {
    "tex_level": ((4, 5, 6, 8, *range(10, 16)), 3, 5),
    "tex_grad": ((4, 5, 6, 8, *range(10, 16)), 10, 5),
    "tld4": ((4, 5, 6, 8, *range(10, 16)), 0, 5),
    "txq_level": ((4, 5, 6), 0, 1),
    "suld": ((4, 5, 6, 8, 9, 10), 0, 4),
    "sust": ((4, 5, 6, *range(8, 15)), 0, 0),
    "sured": ((4, 5, 6, *range(8, 13)), 0, 0),
}


def _built(stubs: Stubs, name: str, trace: list[Line]) -> Any:
    """A replacement for a function of the driver that does a whole texture or surface instruction."""
    kind = next(k for k in _BUILT if name.endswith(k))
    registers, stacked, results = _BUILT[kind]

    def run(machine: Any, bundle: Any, mask: Any) -> None:
        u = bundle.view.U
        local = stubs.memory.local
        where = int(bundle.view.wide(local.lane_key)[0]) + int(u[1][0])
        words = [int.from_bytes(local.data[where + 4 * k :][:4].tobytes(), "little") for k in range(stacked)]
        trace.append((name, (*[int(u[r][0]) for r in registers], *words)))
        for k in range(12):
            u[4 + k][:] = _RESULT + k if k < results else 0xBAD00000 + k
        if kind[:2] == "te" or kind == "tld4":
            u[4][:] = 0

    return run


@contextmanager
def stand_in() -> Iterator[list[Line]]:
    """While open, the simulator runs texture instructions and appends to the list."""
    trace: list[Line] = []
    before = {op: program.OPS[op] for op in OPS if op in program.OPS}
    params, start = Device._params, Stubs.__init__

    def with_driver(self: Stubs, image: Any) -> None:
        start(self, image)
        for address, name in image.stubs.items():
            if "syscall_tex_grad" in name:
                self.table[address] = _driver(self, name, trace)
            if "_bw_do_" in name:
                self.table[address] = _built(self, name, trace)

    def padded(self: Device, *args: Any) -> bytes:
        return params(self, *args) + struct.pack(
            "<4I", 0x5100, 0x5200, 0x5300, 0x5400
        )  # the words that the driver would append

    Device._params = padded  # type: ignore[assignment, method-assign]
    Stubs.__init__ = with_driver  # type: ignore[method-assign]
    for op in OPS:
        program.OPS[op] = _stand_in(trace)
    try:
        yield trace
    finally:
        Stubs.__init__ = start  # type: ignore[method-assign]
        Device._params = params  # type: ignore[method-assign]
        for op in OPS:
            program.OPS.pop(op, None)
        program.OPS.update(before)


def without_header_words(cubin: bytes) -> bytes:
    """The cubin without the relocations of bank 0, which only the driver can apply: the words read as 0."""
    data = bytearray(cubin)
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<3H", data, 0x3A)
    (strings,) = struct.unpack_from("<Q", data, table + names * size + 0x18)
    for i in range(count):
        at = table + i * size
        name, kind = struct.unpack_from("<2I", data, at)
        if kind in (4, 9) and b".nv.constant0." in data[strings + name : data.index(0, strings + name)]:
            struct.pack_into("<I", data, at + 4, 1)
    return bytes(data)


def run(cubin: bytes, entry: str) -> tuple[list[Line], bytes] | str:
    """Trace and output of a kernel of the corpus, or the simulator's error."""
    memory = np.zeros(4096, dtype=np.uint8)
    for k, name in enumerate(corpus.REGISTERS):
        memory[8 * k : 8 * k + 8] = np.frombuffer(struct.pack("<Q", VALUES[name]), dtype=np.uint8)
    out = np.zeros(4096, dtype=np.uint8)
    with stand_in() as trace:
        try:
            Device(without_header_words(cubin)).launch(
                entry,
                (1, 1, 1),
                (1, 1, 1),
                [np.uint64(VALUES["h"]), np.uint64(VALUES["s"]), memory, out],
                names=["ph", "ps", "pi", "po"],
            )
        except (ImageError, SimError) as error:
            return f"simulator: {error}"
        return list(trace), out.tobytes()


def module_text(family: str, sm: str, forms: Sequence[corpus.Form], handle: str) -> str:
    """PTX of kernels k0, k1... around forms."""
    options, declarations = corpus.MODULES.get(family, ("", ""))
    head = (
        f".version {9.4 if sm == '107a' else 9.0}\n.target sm_{sm}{options}\n.address_size 64\n"
        f".global .texref tex0;\n.global .surfref surf0;\n{declarations}"
    )
    return head + "".join(corpus.body(f"k{k}", form, handle) for k, form in enumerate(forms))


def compare(
    family: str, sm: str, forms: Sequence[corpus.Form], handle: str, folder: Path
) -> tuple[int, list[str], list[str]]:
    """(equal, differences, refused) over forms that ptxas accepts."""
    equal, different, refused = 0, [], []
    plain = [f for f in forms if f.text[:3] not in ("txq", "suq")]
    groups = [plain] if plain else []
    groups += [[f] for f in forms if f.text[:3] in ("txq", "suq")]  # an undefined symbol spoils the whole cubin
    for group in groups:
        path = folder / "forms.ptx"
        path.write_text(module_text(family, sm, group, handle))
        theirs = oracle.run_ptxas(path, sm, tool=oracle.tool_for(sm))
        if isinstance(theirs, oracle.ToolError):
            raise AssertionError(str(theirs))
        image = theirs.read_bytes()
        for k, form in enumerate(group):
            try:
                ours = compile_ptx(module_text(family, sm, [form], handle), f"sm_{sm}", {}, name="form.ptx")
            except (ChainError, CompileError) as error:
                refused.append(f"{form.text}: {str(error).strip()[:160]}")
                continue
            want = run(image, f"k{k}")
            if isinstance(want, str):
                refused.append(f"{form.text}: ptxas's kernel does not run here ({want[:120]})")
                continue
            got = run(ours, "k0")
            if got == want:
                equal += 1
            else:
                different.append(f"{form.text}\n      ptxas {show(want)}\n      ours  {show(got)}")
    return equal, different, refused


_NAMES = {v & 0xFFFFFFFF: n for n, v in VALUES.items()}


def show(x: tuple[list[Line], bytes] | str) -> str:
    """A trace with the inputs' names instead of their values."""
    if isinstance(x, str):
        return x
    lines = [
        f"{name} "
        + " ; ".join(
            "[" + ",".join(_NAMES.get(w, f"{w:#x}") for w in v) + "]" if isinstance(v, tuple) else str(v)
            for v in values
        )
        for name, values in x[0]
    ]
    stored = [w for w in struct.unpack("<1024I", x[1]) if w]
    return " / ".join(lines) + " -> " + ",".join(f"{w:#x}" for w in stored)


def main() -> int:
    """Command line."""
    import tempfile

    parser = argparse.ArgumentParser()
    parser.add_argument("--sm", default="90")
    parser.add_argument("--family", default=",".join(corpus.FAMILIES))
    parser.add_argument("--handle", default="memory")
    parser.add_argument("--form", default="", help="a regular expression")
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--show", type=int, default=5)
    args = parser.parse_args()
    bad = 0
    for family in args.family.split(","):
        forms = [f for f in corpus.forms(family) if re.search(args.form, f.text)][:: args.step]
        with tempfile.TemporaryDirectory() as folder:
            equal, different, refused = compare(family, args.sm, forms, args.handle, Path(folder))
        print(
            f"sm_{args.sm} {family} {args.handle}: {len(forms)} forms, {equal} equal, {len(different)} different, "
            f"{len(refused)} refused"
        )
        for text in different[: args.show]:
            print("   ", text)
        for text, n in Counter(re.sub(r"^.*?: ", "", r)[-110:] for r in refused).most_common(args.show):
            print("    refused", n, text)
        bad += len(different)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
