"""A Numba kernel compiled to a cubin by hand, and run in the simulator: no GPU is needed."""

import numpy as np
from numba import cuda, types

import orias


def saxpy(a, x, y, n):
    """y = a * x + y."""
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < n:
        y[i] = a * x[i] + y[i]


pointer = types.CPointer(types.float32)
ptx, _ = cuda.compile_ptx(saxpy, (types.float32, pointer, pointer, types.int32), cc=(9, 0))
cubin = orias.compile(ptx, arch="sm_90")
x, y = np.arange(1000, dtype=np.float32), np.ones(1000, dtype=np.float32)
orias.run(cubin, grid=4, block=256, args=[np.float32(2), x, y, np.int32(1000)])
assert np.array_equal(y, 2 * x + 1)
(kernel,) = cubin.kernels.values()
print(f"{kernel.name}: {kernel.registers} registers, {kernel.instructions} instructions; 1,000 values are right")
