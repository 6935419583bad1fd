"""Loop kernels for the tests of the loop passes, and a comparison of our cubin in the simulator with the PTX
interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np

from ir_format.model import AttrValue
from orchestrator.api import compile_ptx
from stages.interpret.launch import Module
from stages.simulate import Device
from tests.lower.helpers import kernel

SMS = ("sm_75", "sm_80", "sm_90", "sm_120")
PARAMS = ".param .u64 p, .param .u64 q, .param .u32 n"
#: p: words to read, q: words to write; %r1 = thread, %r2 = n, %rd3 = &p[thread], %rd5 = &q[thread], %r9 = p[thread] &
#: 15: a divergent count.
HEAD = (
    "mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; ld.param.u64 %rd1, [p]; ld.param.u64 %rd4, [q]; "
    "cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd4, %rd4; "
    "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; add.s64 %rd5, %rd4, %rd2; ld.global.u32 %r9, "
    "[%rd3]; and.b32 %r9, %r9, 15;\n"
)
WORDS = 4096
THREADS = 64


def text(body: str, target: str) -> str:
    """The module of a loop kernel."""
    return kernel(HEAD + body, target, PARAMS).replace("\n{ .reg", "\n{ .shared .align 16 .b8 sh[1024]; .reg")


def run(machine: Any, n: int, seed: int = 7) -> np.ndarray[Any, Any]:
    """The words that a kernel leaves in q."""
    data = np.random.default_rng(seed).integers(0, 1 << 32, WORDS, dtype=np.uint32)
    data[:THREADS] = data[:THREADS] & ~np.uint32(15) | (np.arange(THREADS, dtype=np.uint32) * 7 % 16)
    out = np.full(WORDS, 0xA5A5A5A5, np.uint32)
    machine.reset()
    machine.launch("k", (1, 1, 1), (THREADS, 1, 1), [data, out, np.uint32(n).tobytes()])
    return out


def differences(body: str, target: str, counts: tuple[int, ...], **options: AttrValue) -> list[int]:
    """Values of n for which our cubin and the interpreter differ."""
    source = text(body, target)
    ours = Device(compile_ptx(source.encode(), target, dict(options), name="t.ptx"))
    wanted = Module(source, target)
    return [n for n in counts if not np.array_equal(run(ours, n), run(wanted, n))]
