"""Run the CUDA sources of this folder on the host's C++ compiler, to judge the references.

``host/cuda_shim.h`` gives a C++ compiler the device language; each kernel becomes a shared object.  Needs g++ and a
CPU with fused multiply-add (gcc fuses the same products as nvcc here, so float results agree bit for bit).
"""

from __future__ import annotations

import ctypes
import functools
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np

from tests.kernels.model import HERE, Array, Buffer, KernelSpec, Launch

FLAGS = ("-std=c++17", "-O2", "-shared", "-fPIC", "-fno-gnu-unique", "-fwrapv", "-ffp-contract=fast", "-mfma", "-w")

#: Kernels whose data contain zero divisors, which trap on a CPU: their quotients go through a guarded function.
GUARDED_DIVISION = frozenset({"divrem64", "div32"})


def absent() -> str:
    """Why kernels cannot run here; empty when they can."""
    if shutil.which("g++") is None:
        return "no g++"
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return "no /proc/cpuinfo"
    return "" if re.search(r"\bfma\b", flags) else "no fused multiply-add on this CPU"


def _parameter_types(source: str, entry: str) -> list[str]:
    """The C types of a kernel's parameters."""
    match = re.search(rf"__global__ void {entry}\(([^)]*)\)", source)
    if match is None:
        raise ValueError(f"{entry}: no such kernel in the source")
    return [re.sub(r"\w+$", "", " ".join(part.split())) for part in match[1].split(",")]


def _host_source(spec: KernelSpec) -> str:
    text = spec.source().read_text()
    types = _parameter_types(text, spec.name)
    text = re.sub(r"extern __shared__ (\w+) (\w+)\[\];", r"\1 *\2 = (\1 *)shim_dynamic;", text)
    if spec.name in GUARDED_DIVISION:
        text = re.sub(r"\b(\w+) / (\w+)\b", r"shim_divide<decltype(\1)>(\1, \2)", text)
        text = re.sub(r"\b(\w+) % (\w+)\b", r"shim_modulo<decltype(\1)>(\1, \2)", text)
    typedefs = "".join(f"    typedef {kind} P{i};\n" for i, kind in enumerate(types))
    values = ", ".join(f"*(P{i} *)args[{i}]" for i in range(len(types)))
    return (
        f'#include "cuda_shim.h"\n{text}\nextern "C" void shim_entry(void **args)\n{{\n{typedefs}'
        f"    {spec.name}({values});\n}}\n"
    )


def build(spec: KernelSpec, folder: Path) -> ctypes.CDLL:
    """Compile one kernel into ``folder`` and load it.  Raises RuntimeError with the compiler's text."""
    source, target = folder / f"{spec.name}.cpp", folder / f"{spec.name}.so"
    source.write_text(_host_source(spec))
    command = ["g++", *FLAGS, "-I", str(HERE / "host"), str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return ctypes.CDLL(str(target))


@functools.cache
def _c_array(count: int) -> type[ctypes.Array[ctypes.c_char]]:
    return ctypes.c_char * count


def run(library: ctypes.CDLL, launch: Launch) -> tuple[dict[str, Array], dict[str, Array]]:
    """The buffers and symbols after a launch.  Raises RuntimeError for a deadlock at a barrier or warp operation."""
    symbol_cells = {name: _c_array(value.nbytes).in_dll(library, name) for name, value in launch.globals.items()}
    initial = {name: bytes(cell) for name, cell in symbol_cells.items()}
    for name, cell in symbol_cells.items():
        cell.raw = launch.globals[name].tobytes()
    memory = {name: buffer.data.copy() for name, buffer in launch.buffers().items()}
    cells: list[ctypes.Array[ctypes.c_char]] = []
    for arg in launch.args:
        data = memory[arg.name].ctypes.data.to_bytes(8, "little") if isinstance(arg, Buffer) else arg.data
        cells.append(ctypes.create_string_buffer(data, len(data)))
    pointers = (ctypes.c_void_p * len(cells))(*(ctypes.addressof(cell) for cell in cells))
    dims = (ctypes.c_uint * 6)(*launch.grid, *launch.block)
    if library.shim_launch(library.shim_entry, pointers, dims):
        raise RuntimeError(f"{launch.entry} {launch.label}: deadlock")
    symbols: dict[str, Array] = {}
    for name, want in launch.expect_globals.items():
        raw = bytes(_c_array(want.values.nbytes).in_dll(library, name))
        symbols[name] = np.frombuffer(raw, want.values.dtype)
    for name, cell in symbol_cells.items():  # the next launch finds the module as loaded
        cell.raw = initial[name]
    return memory, symbols
