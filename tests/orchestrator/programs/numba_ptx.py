"""Writes PTX that Numba makes, without a GPU: `python numba_ptx.py FOLDER CC...`. With ``plain`` as the first CC it
uses Numba's own target, else numba-cuda's, which replaces it if installed. Prints the files."""

from __future__ import annotations

import sys
from pathlib import Path

if sys.argv[2] == "plain":
    del sys.argv[2]
    sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "NumbaCudaFinder"]

from numba import cuda, float32, int32


def scale(x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[i] * 2.5 + i % 7


def block_sum(x, out):
    s = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    step = 64
    while step:
        if t < step:
            s[t] += s[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, s[0])


folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for cc in sys.argv[2:]:
    for fn, sig in ((scale, (float32[:], float32[:], int32)), (block_sum, (float32[:], float32[:]))):
        got = cuda.compile_ptx(fn, sig, cc=divmod(int(cc), 10))
        path = folder / f"{fn.__name__}.sm{cc}.ptx"
        path.write_text(got[0] if isinstance(got, tuple) else got)
        print(path)
