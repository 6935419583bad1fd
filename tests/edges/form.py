"""One PTX instruction with the values that its result must have, from a source outside the project.

A form is compiled into a separate kernel: every thread loads a row of operands (a slot of 8 bytes each), runs the
instruction, and stores its results into slots.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.uint64]
#: Bits of a register type, as loads and stores name it.
WIDTH: Final = {"pred": 1, "8": 8, "16": 16, "32": 32, "64": 64}
MOST: Final = 1024  # rows of a form
_WARPS: Final = 12

_I: Final = {n: (0, 1, 2, 3, n - 1, n, n + 1, (1 << n - 1) - 1, 1 << n - 1, (1 << n - 1) + 1, (1 << n) - 2,
(1 << n) - 1, 0x5A5A5A5A5A5A5A5A & (1 << n) - 1, 0xFF, 0x80 | 0x7F << n - 8)
             for n in (8, 16, 32, 64)}  # fmt: skip
_F16: Final = (
    0,
    0x8000,
    1,
    0x8001,
    0x3FF,
    0x400,
    0x8400,
    0x3800,
    0x3C00,
    0xBC00,
    0x3C01,
    0x3E00,
    0x4100,
    0x7BFF,
    0xFBFF,
    0x7C00,
    0xFC00,
    0x7E00,
    0x7D01,
    0xFE00,
    0x6400,
    0x67FF,
    0x7FFF,
    0xFFFF,
)
_BF16: Final = (
    0,
    0x8000,
    1,
    0x8001,
    0x7F,
    0x80,
    0x8080,
    0x3F00,
    0x3F80,
    0xBF80,
    0x3F81,
    0x3FC0,
    0x4020,
    0x7F7F,
    0xFF7F,
    0x7F80,
    0xFF80,
    0x7FC0,
    0x7F81,
    0xFFC0,
    0x4300,
    0x7FFF,
    0xFFFF,
)
_F32: Final = (0, 1 << 31, 1, 0x80000001, 0x7FFFFF, 0x807FFFFF, 0x800000, 0x80800000, 0x3F000000, 0x3EFFFFFF,
0x3F800000, 0xBF800000, 0x3F800001, 0x3FC00000, 0x40200000, 0xC0200000,
               0x4EFFFFFF, 0x4F000000, 0xCF000000, 0xCF000001, 0x4F7FFFFF, 0x4F800000, 0x5F000000, 0x5F800000,
               0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFC12345,
               0x47FFEFFF, 0x477FF000, 0x477FE000, 0x33000000, 0x33000001, 0x38800000, 0x43E00000, 0x43E80000,
               0x47600000, 0x3A800000, 0x437F8000, 0xBF000000, 0x4B000001)  # fmt: skip
_F64: Final = (0, 1 << 63, 1, (1 << 63) + 1, (1 << 52) - 1, 1 << 52, 0x3FE0000000000000, 0x3FF0000000000000,
0xBFF0000000000000, 0x3FF0000000000001, 0x3FF8000000000000, 0x4004000000000000,
               0xC004000000000000, 0x41DFFFFFFFC00000, 0x41E0000000000000, 0x41DFFFFFFFE00000, 0xC1E0000000200000,
               0x43DFFFFFFFFFFFFF, 0x43E0000000000000, 0x43F0000000000000, 0x7FEFFFFFFFFFFFFF,
               0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0x7FF0000000000001,
               0x47EFFFFFF0000000, 0x47EFFFFFEFFFFFFF, 0x36A0000000000000, 0x36A0000000000001,
               0x3690000000000000, 0x380FFFFFE0000000, 0x3FF0000010000000, 0x3FF0000030000000)  # fmt: skip
_EDGES: Final[dict[str, Sequence[int]]] = {
    "8": _I[8],
    "16": _I[16],
    "32": _I[32],
    "64": _I[64],
    "f16": _F16,
    "bf16": _BF16,
    "f32": _F32,
    "f64": _F64,
    "shift": (0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 255, 256, 288, 0x80000000, 0xFFFFFFFF),
    "field": (0, 1, 5, 8, 16, 31, 32, 33, 63, 64, 65, 128, 255, 256, 257, 0x80000000, 0xFFFFFFFF),
    "f16x2": tuple(a | b << 16 for a, b in zip(_F16 + _F16, _F16[3:] + _F16 + _F16[:3], strict=False)),
    "bf16x2": tuple(a | b << 16 for a, b in zip(_BF16 + _BF16, _BF16[3:] + _BF16 + _BF16[:3], strict=False)),
    "16x2": tuple(a | b << 16 for a, b in itertools.product(_I[16][::2], _I[16][1::3])),
    "bytes": (0, 0xFFFFFFFF, 0x80808080, 0x7F7F7F7F, 0x01020304, 0x807F01FF, 0xFF00FF00, 0xC3A55A3C, 0x7FFF8001),
}
_BITS: Final = {"8": 8, "16": 16, "32": 32, "64": 64, "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "pred": 1}


def bits(kind: str) -> int:
    """Bits of an operand of a kind."""
    return _BITS.get(kind, 32)


@dataclass(frozen=True, slots=True)
class Form:
    """``text``: the instruction with {d}, {e} for results and {a}, {b}, {c} for operands. ``takes``, ``gives``: kinds.
    ``answer``: from the operands' bits to the results'. ``source``: where the answer comes from. ``family``: the row
    of the table. ``floats``: results have this format, and all NaNs are equal."""

    family: str
    text: str
    takes: tuple[str, ...]
    gives: tuple[str, ...]
    answer: Callable[..., Any]
    source: str
    sm: int = 75
    floats: str = ""
    only: Callable[..., bool] | None = None  # rows that the manual defines
    suffix: str = ""  # "a" if only a family of SMs has the form
    together: int = 1  # 32: a warp's rows are answered together, ``answer`` takes and returns lists
    draw: Callable[[random.Random], list[tuple[int, ...]]] | None = None  # one warp's rows

    def rows(self) -> Rows:
        """Operands, one row per thread: all combinations of edges, or a random choice of as many as fit."""
        lists = [_EDGES[k] for k in self.takes]
        rng = random.Random(self.text)
        if self.draw is not None:
            return np.array([r for _ in range(_WARPS) for r in self.draw(rng)], np.uint64)
        total = 1
        for x in lists:
            total *= len(x)
        if total <= MOST:
            rows = list(itertools.product(*lists))
        else:
            rows = [tuple(rng.choice(x) for x in lists) for _ in range(MOST * 3 // 4)]
            rows += [
                tuple(
                    rng.getrandbits(bits(k)) if k not in ("shift", "field") else rng.choice(_EDGES[k])
                    for k in self.takes
                )
                for _ in range(MOST // 4)
            ]
        if self.only is not None:
            rows = [r for r in rows if self.only(*r)]
        return np.array(rows, np.uint64).reshape(len(rows), len(lists))

    def expected(self, rows: Rows) -> Rows:
        """The source's answer for every row."""
        if self.together > 1:
            warps = [rows[n : n + self.together].tolist() for n in range(0, len(rows), self.together)]
            return np.array([x for w in warps for x in self.answer([tuple(r) for r in w])], np.uint64).reshape(
                len(rows), len(self.gives)
            )
        out = [x if isinstance(x, tuple) else (x,) for x in (self.answer(*r) for r in rows.tolist())]
        return np.array(out, np.uint64).reshape(len(rows), len(self.gives))

    def kernel(self, name: str) -> str:
        """The kernel of this form."""
        size = 8 * len(self.takes), 8 * len(self.gives)
        loads, stores, regs = [], [], []
        names: dict[str, str] = {}
        for k, kind in enumerate(self.takes):
            r = names["abcf"[k]] = f"%{'abcf'[k]}"
            regs.append(f".reg .b{max(bits(kind), 16)} {r};")
            loads.append(
                f"ld.global.b{bits(kind)} {r}, [%in+{8 * k}];"
                if bits(kind) > 8
                else f"ld.global.u8 {r}, [%in+{8 * k}];"
            )
        for k, kind in enumerate(self.gives):
            r = names["de"[k]] = f"%{'de'[k]}"
            regs.append(f".reg .pred {r};" if kind == "pred" else f".reg .b{max(bits(kind), 16)} {r};")
            stores.append(
                f"selp.b32 %t, 1, 0, {r}; st.global.b32 [%out+{8 * k}], %t;"
                if kind == "pred"
                else f"st.global.b{bits(kind)} [%out+{8 * k}], {r};"
            )
        body = "\n".join([*regs, *loads, self.text.format(**names), *stores])
        return (
            f".visible .entry {name}(.param .u64 in, .param .u64 out)\n{{\n.reg .b64 %in, %out; "
            f".reg .b32 %t, %n;\nld.param.u64 %in, [in]; ld.param.u64 %out, [out];\n"
            f"mov.u32 %t, %ctaid.x; mov.u32 %n, %ntid.x; mul.lo.u32 %t, %t, %n; mov.u32 %n, %tid.x; "
            f"add.u32 %t, %t, %n;\n"
            f"mad.wide.u32 %in, %t, {size[0]}, %in; mad.wide.u32 %out, %t, {size[1]}, %out;\n{body}\nret;\n}}\n"
        )


def same(form: Form, got: Rows, wanted: Rows) -> NDArray[np.bool_]:
    """Row by row; all NaNs are equal if results are floats."""
    equal = got == wanted
    if form.floats:
        equal |= nan(form.floats, got) & nan(form.floats, wanted)
    return np.asarray(equal.all(axis=1))


#: Format -> exponent mask, fraction mask (of one element), elements, bits.
_FORMATS: Final = {"f16": (0x7C00, 0x3FF, 1, 16), "bf16": (0x7F80, 0x7F, 1, 16), "f32": (0x7F800000, 0x7FFFFF, 1, 32),
"f64": (0x7FF << 52, (1 << 52) - 1, 1, 64),
                   "f16x2": (0x7C00, 0x3FF, 2, 16), "bf16x2": (0x7F80, 0x7F, 2, 16)}  # fmt: skip


def nan(kind: str, x: Rows) -> NDArray[np.bool_]:
    """Which are NaNs (of two elements: both)."""
    exponent, fraction, count, size = _FORMATS[kind]
    out: Any = np.ones(x.shape, np.bool_)
    for k in range(count):
        part = x >> np.uint64(k * size)
        out &= ((part & np.uint64(exponent)) == np.uint64(exponent)) & ((part & np.uint64(fraction)) != 0)
    return np.asarray(out)
