"""Warp compiles a module ahead of time to PTX, without a GPU: `python warp_ptx.py FOLDER SM...`. Prints the files."""

from __future__ import annotations

import sys
from pathlib import Path

import warp as wp


@wp.kernel
def gravity(p: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3), f: wp.array(dtype=wp.vec3), dt: float):
    i = wp.tid()
    v[i] = v[i] + (f[i] + wp.vec3(0.0, -9.8, 0.0)) * dt
    p[i] = p[i] + v[i] * dt


@wp.kernel
def norm(p: wp.array(dtype=wp.vec3), total: wp.array(dtype=float)):
    wp.atomic_add(total, 0, wp.length(p[wp.tid()]) * wp.sin(p[wp.tid()][0]))


wp.config.quiet = True
wp.init()
folder = Path(sys.argv[1])
for sm in sys.argv[2:]:
    wp.compile_aot_module(sys.modules[__name__], arch=int(sm), use_ptx=True, module_dir=folder / sm, strip_hash=True)
for path in sorted(folder.rglob("*.ptx")):
    print(path)
