"""A cubin's bytes in CuPy. Without a GPU the simulator runs them.

python cupy_kernel.py tests/kernels/ptx/sm_90/vadd.ptx
"""

import sys
from pathlib import Path

import cupy
import numpy as np

import orias

n = 1000
a, b = np.arange(n, dtype=np.float32), np.ones(n, dtype=np.float32)
try:
    major, minor = divmod(int(cupy.cuda.Device().compute_capability), 10)
except cupy.cuda.runtime.CUDARuntimeError:
    cubin = orias.compile(Path(sys.argv[1]), arch="sm_90")
    c = np.zeros(n, dtype=np.float32)
    orias.run(cubin, grid=4, block=256, args=[a, b, c, np.int32(n)])
    where = "in the simulator"
else:
    cubin = orias.compile(Path(sys.argv[1]), arch=f"sm_{major}{minor}")
    module = cupy.cuda.function.Module()
    module.load(cubin.image)
    out = cupy.zeros(n, dtype=np.float32)
    module.get_function(next(iter(cubin.kernels)))((4,), (256,), (cupy.asarray(a), cupy.asarray(b), out, np.int32(n)))
    c = cupy.asnumpy(out)
    where = "on the GPU"
assert np.array_equal(c, a + b)
print(f"{n} sums are right {where}")
