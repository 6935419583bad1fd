"""A host program in CUDA C++ that shows a wrong element of memory on a GPU: one launch with its inputs, the value that
the PTX manual requires, and the cubins to compare."""

from __future__ import annotations

import json
from typing import Any, Final

_ROW: Final = 24

_BEGIN: Final = """\
// Build: nvcc -o repro repro.cu -lcuda        Run: ./repro FIRST.cubin [SECOND.cubin ...]
// Prints the element for each cubin. Exit code 1 if one of them has another value than the PTX manual asks for.
#include <cuda.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call) do { CUresult r_ = (call); if (r_ != CUDA_SUCCESS) { const char *s_ = "?"; \\
  cuGetErrorString(r_, &s_); std::fprintf(stderr, "%s: %s\\n", #call, s_); std::exit(2); } } while (0)

"""

_RUN: Final = """
static unsigned long long run(const char *file) {
  CUmodule module;
  CUfunction kernel;
  CHECK(cuModuleLoad(&module, file));
  CHECK(cuModuleGetFunction(&kernel, module, KERNEL));
  for (const Constant &c : constants) {
    CUdeviceptr at;
    size_t size;
    CHECK(cuModuleGetGlobal(&at, &size, module, c.name));
    CHECK(cuMemcpyHtoD(at, c.data, c.size));
  }
  std::vector<std::vector<unsigned char>> values;
  for (const Blob &p : parameters) values.emplace_back(p.data, p.data + p.size);
  std::vector<CUdeviceptr> buffers;
  for (const Buffer &b : inputs) {
    CUdeviceptr at;
    CHECK(cuMemAlloc(&at, b.size ? b.size : 1));
    CHECK(cuMemcpyHtoD(at, b.data, b.size));
    std::memcpy(values[b.parameter].data() + b.offset, &at, sizeof at);
    buffers.push_back(at);
  }
  std::vector<void *> arguments;
  for (auto &v : values) arguments.push_back(v.data());
  CHECK(cuLaunchKernel(kernel, GRID, BLOCK, SHARED, nullptr, arguments.data(), nullptr));
  CHECK(cuCtxSynchronize());
  unsigned long long got = 0;
  CHECK(cuMemcpyDtoH(&got, buffers[WRONG_BUFFER] + WRONG_BYTE, WRONG_SIZE));
  for (CUdeviceptr b : buffers) cuMemFree(b);
  cuModuleUnload(module);
  return got;
}

int main(int argc, char **argv) {
  CUdevice device;
  CUcontext context;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  int bad = 0;
  for (int i = 1; i < argc; i++) {
    unsigned long long got = run(argv[i]);
    const char *word = got == EXPECTED ? "" : "  WRONG";
    std::printf("%s: " WHERE " is %#llx, expected %#llx%s\\n", argv[i], got, EXPECTED, word);
    bad |= got != EXPECTED;
  }
  return bad;
}
"""


def _bytes(name: str, data: bytes) -> str:
    rows = [data[at : at + _ROW] for at in range(0, len(data), _ROW)] or [bytes(1)]
    body = ",\n  ".join(",".join(str(b) for b in row) for row in rows)
    return f"static const unsigned char {name}[] = {{\n  {body}}};\n"


def host_program(launch: Any, argument: int, byte: int, size: int, expected: int) -> str:
    """The program. ``launch``: a :class:`stages.check.launches.Launch`; ``argument``, ``byte``, ``size``: the wrong
    element; ``expected``: its value."""
    names = list(launch.buffers)
    out = [_BEGIN]
    rows = []
    for k, a in enumerate(launch.args):
        # a pointer's place in the parameters is filled in once the buffer exists
        data = bytes(8) if k in launch.buffers else bytes(a[0] if isinstance(a, tuple) else a)
        out.append(_bytes(f"parameter_{k}", data))
        rows.append(f"{{parameter_{k}, {len(data)}}}")
    out.append("struct Blob { const unsigned char *data; size_t size; };\n")
    out.append(f"static const std::vector<Blob> parameters = {{{', '.join(rows)}}};\n")
    rows = []
    for n, k in enumerate(names):
        data = launch.buffers[k].tobytes()
        parameter, offset = launch.fields.get(k, (k, 0))
        out.append(_bytes(f"input_{n}", data))
        rows.append(f"{{input_{n}, {len(data)}, {parameter}, {offset}}}")
    out.append("struct Buffer { const unsigned char *data; size_t size; int parameter; size_t offset; };\n")
    out.append(f"static const std::vector<Buffer> inputs = {{{', '.join(rows)}}};\n")
    rows = []
    for n, (name, array) in enumerate(launch.constants.items()):
        out.append(_bytes(f"constant_{n}", array.tobytes()))
        rows.append(f"{{{json.dumps(name)}, constant_{n}, {array.nbytes}}}")
    out.append("struct Constant { const char *name; const unsigned char *data; size_t size; };\n")
    out.append(f"static const std::vector<Constant> constants = {{{', '.join(rows)}}};\n")
    where = f"{launch.names[argument]}[{byte // size}]"
    defines = {
        "KERNEL": json.dumps(launch.entry),
        "GRID": ", ".join(map(str, launch.grid)),
        "BLOCK": ", ".join(map(str, launch.block)),
        "SHARED": str(launch.shared),
        "WRONG_BUFFER": str(names.index(argument)),
        "WRONG_BYTE": str(byte // size * size),
        "WRONG_SIZE": str(size),
        "WHERE": json.dumps(where),
        "EXPECTED": f"{expected:#x}ULL",
    }
    out += [f"#define {name} {value}\n" for name, value in defines.items()]
    return "".join([*out, _RUN])
