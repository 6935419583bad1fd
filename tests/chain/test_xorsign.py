"""min and max with .xorsign.abs: the sign is that of the product of the operands, also for constants and negated
ones."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.api import compile_ptx
from stages.simulate import Device

VALUES = np.array([0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, np.inf, -np.inf], np.float32)
CONSTANTS = (-1.0, -0.0, 2.0, 0.0)


def want(op: str, a: np.ndarray, b: np.ndarray | float) -> np.ndarray:
    """By the PTX manual: min or max of the absolute values, with the exclusive or of the signs."""
    size = (np.minimum if op == "min" else np.maximum)(np.abs(a), np.abs(b))
    return np.asarray(np.where(np.signbit(a) ^ np.signbit(b), -size, size), np.float32)


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("arch", ["sm_86", "sm_90", "sm_120"])
@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
def test_signs(kind: str, arch: str, level: int) -> None:
    """A register, a negated register, and constants of both signs."""
    bits = 32 if kind == "f32" else 16
    words = {
        "f32": lambda x: np.float32(x).view(np.uint32),
        "f16": lambda x: np.float16(x).view(np.uint16),
        "bf16": lambda x: np.float32(x).view(np.uint32) >> 16,
    }[kind]
    mov = [
        f"mov.b{bits} %c{k}, {'0f%08X' % int(words(c)) if bits == 32 else hex(int(words(c)))};"
        for k, c in enumerate(CONSTANTS)
    ]
    body, wanted = [*mov], []
    x, y = VALUES, np.roll(VALUES, 3)
    for op in ("min", "max"):
        name = f"{op}.xorsign.abs.{kind}"
        for k, c in enumerate(CONSTANTS):
            body.append(f"{name} %d, %x, %c{k};")
            wanted.append(want(op, x, np.float32(c)))
        if bits == 32:
            body += [f"{name} %d, %x, 0fBF800000;", f"neg.{kind} %e, %y; {name} %d, %x, %e;"]
            wanted += [want(op, x, np.float32(-1.0)), want(op, x, -y)]
        body.append(f"{name} %d, %x, %y;")
        wanted.append(want(op, x, y))
    lines, n = [], 0
    for line in body:
        lines.append(line)
        if ".xorsign" in line:
            lines.append(f"st.global.b{bits} [%q+{4 * n}], %d;")
            n += 1
    text = (
        f".version 8.7\n.target {arch}\n.address_size 64\n.visible .entry k(.param .u64 a, "
        f".param .u64 b)\n{{ .reg .b{bits} %x, %y, %d, %e, %c<{len(CONSTANTS)}>; .reg .b64 %p, %q, %o; "
        f".reg .b32 %t;\n"
        f"ld.param.u64 %p, [a]; ld.param.u64 %q, [b]; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 8; "
        f"add.s64 %p, %p, %o; mul.wide.u32 %o, %t, {4 * n}; add.s64 %q, %q, %o;\n"
        f"ld.global.b{bits} %x, [%p]; ld.global.b{bits} %y, [%p+4];\n" + "\n".join(lines) + "\nret; }\n"
    )
    put = np.stack([np.array([words(v) for v in x], np.uint32), np.array([words(v) for v in y], np.uint32)], 1)
    got = np.zeros((len(x), n), np.uint32)
    Device(compile_ptx(text, arch, {"opt-level": level})).launch("k", 1, len(x), [put, got])
    expected = np.array([[int(words(v)) for v in row] for row in np.stack(wanted, 1)], np.uint32)
    assert (got == expected).all(), np.argwhere(got != expected)
