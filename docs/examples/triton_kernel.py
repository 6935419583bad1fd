"""A Triton kernel compiled to a cubin without a GPU and without ptxas: Triton's own pipeline calls orias instead of
ptxas, and its PTX is compiled again through the Python package.

    python triton_kernel.py 90
"""

import os
import shutil
import sys

ORIAS = shutil.which("orias", path=f"{os.path.dirname(sys.executable)}:{os.environ.get('PATH', '')}")
os.environ.setdefault("TRITON_PTXAS_PATH", ORIAS or "orias")
os.environ.setdefault("TRITON_PTXAS_BLACKWELL_PATH", ORIAS or "orias")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

import orias  # noqa: E402


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    """out = x + y."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)


sm = int(sys.argv[1]) if len(sys.argv) > 1 else 90
signature = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"}
source = ASTSource(fn=add, signature=signature, constexprs={"BLOCK": 1024})
made = triton.compile(source, target=GPUTarget("cuda", sm, 32))
cubin = orias.compile(made.asm["ptx"])
kernel = cubin.kernels["add"]
print(f"Triton's cubin has {len(made.asm['cubin'])} bytes; by hand {len(cubin.image)} bytes,")
print(f"{kernel.registers} registers, {kernel.occupancy(128).fraction:.0%} occupancy in blocks of 128 threads")
