"""The carry flag: every instruction that sets it before every one that reads it, in 32 and 64 bits, against Python
integers. The flag is the adder's carry."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from orchestrator.api import compile_ptx
from stages.interpret.launch import Module
from stages.simulate import Device
from tests import oracle

SETS = ("add.cc", "sub.cc", "mad.lo.cc", "mad.hi.cc")
TAKES = ("addc", "subc", "madc.lo", "madc.hi")
#: Between the two: nothing, a reader that sets it again, a branch, a setter under a guard, twice the same flag.
BETWEEN = ("", "addc.cc", "subc.cc", "branch", "guard", "twice")
Row = tuple[str, str, str]
ROWS: tuple[Row, ...] = tuple((s, b, t) for s in SETS for b in BETWEEN for t in TAKES)


def _operands(op: str) -> str:
    return "%a, %b, %c" if op[0] == "m" else "%a, %b"


def _text(bits: int) -> str:
    """One kernel: the results of every row."""
    lines = []
    for n, (first, between, last) in enumerate(ROWS):
        lines.append(f"{first}.u{bits} %x, {_operands(first)};")
        if between in ("addc.cc", "subc.cc"):
            lines.append(f"{between}.u{bits} %y, %b, %c;")
        elif between == "branch":
            lines.append(f"setp.lt.u{bits} %p, %a, %c; @%p bra J{n}; add.u{bits} %x, %x, 3; J{n}:")
        elif between == "guard":
            lines.append(f"setp.lt.u{bits} %p, %a, %c; @%p sub.cc.u{bits} %y, %c, %b;")
        elif between == "twice":
            lines.append(f"subc.u{bits} %x, %x, 5;")
        lines.append(
            f"{last}.u{bits} %z, {_operands(last)}; xor.b{bits} %x, %x, %z; st.global.u{bits} [%o+{n * bits // 8}], %x;"
        )
    regs = f".reg .b{bits} %a, %b, %c, %x, %y, %z; .reg .b64 %i, %o; .reg .b32 %t; .reg .pred %p;"
    loads = "".join(f"ld.global.u{bits} %{r}, [%i+{n * bits // 8}]; " for n, r in enumerate("abc"))
    begin = (
        f"ld.param.u64 %i, [in]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %i, %t, "
        f"{3 * bits // 8}, %i; mad.wide.u32 %o, %t, {len(ROWS) * bits // 8}, %o;"
    )
    body = "\n".join(lines)
    return (
        f".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 in, "
        f".param .u64 out)\n{{\n{regs}\n{begin}\n{loads}\n{body}\nret;\n}}\n"
    )


def _expected(bits: int, a: int, b: int, c: int) -> list[int]:
    """A thread's results."""
    mask = (1 << bits) - 1

    def run(op: str, x: int, y: int, z: int, flag: int) -> tuple[int, int]:
        """(result, flag): a difference is x + ~y + 1, or x + ~y + flag."""
        name = op.split(".")[0]
        if name[0] == "m":
            x, y = (x * y >> bits if ".hi" in op else x * y) & mask, z
        minus = name.startswith("sub")
        total = x + (y ^ mask if minus else y) + (flag if name.endswith("c") else minus)
        return total & mask, total >> bits

    out = []
    for first, between, last in ROWS:
        x, flag = run(first, a, b, c, 0)
        if between in ("addc.cc", "subc.cc"):
            _, flag = run(between, b, c, 0, flag)
        elif between == "branch" and not a < c:
            x = x + 3 & mask
        elif between == "guard" and a < c:
            _, flag = run("sub.cc", c, b, 0, 0)
        elif between == "twice":
            x, _ = run("subc", x, 5, 0, flag)
        z, _ = run(last, a, b, c, flag)
        out.append(x ^ z)
    return out


@cache
def _given(bits: int) -> tuple[tuple[int, int, int], ...]:
    top = (1 << bits) - 1
    edges = (0, 1, 2, top, top - 1, top >> 1, (top >> 1) + 1, 0x1234567 << bits - 28)
    return tuple((a, b, edges[(n + 3 * k) % 8]) for n, a in enumerate(edges) for k, b in enumerate(edges))


def _differs(bits: int, got: NDArray[np.uint32] | NDArray[np.uint64]) -> list[tuple[Row, tuple[int, int, int]]]:
    rows = got.reshape(len(_given(bits)), len(ROWS)).tolist()
    return [
        (ROWS[n], v)
        for v, row in zip(_given(bits), rows, strict=True)
        for n, (x, y) in enumerate(zip(row, _expected(bits, *v), strict=True))
        if x != y
    ]


def _buffers(bits: int) -> list[NDArray[np.uint32] | NDArray[np.uint64]]:
    kind = np.uint32 if bits == 32 else np.uint64
    return [np.array(_given(bits), kind).reshape(-1), np.zeros(len(_given(bits)) * len(ROWS), kind)]


@pytest.mark.parametrize(
    ("bits", "arch", "level"), [(32, "sm_75", 0), (32, "sm_80", 3), (64, "sm_90", 3), (64, "sm_120", 3)]
)
def test_our_carries_match_python(bits: int, arch: str, level: int) -> None:
    buffers = _buffers(bits)
    Device(compile_ptx(_text(bits), arch, {"opt-level": level})).launch("k", 1, len(_given(bits)), buffers)
    assert _differs(bits, buffers[1]) == []


@pytest.mark.parametrize("bits", [32, 64])
def test_interpreter_carries_match_python(bits: int) -> None:
    buffers = _buffers(bits)
    Module(_text(bits), "sm_90").launch("k", (1, 1, 1), (len(_given(bits)), 1, 1), buffers)
    assert _differs(bits, buffers[1]) == []


@pytest.mark.oracle
@pytest.mark.parametrize(("bits", "arch"), [(32, "75"), (32, "90"), (64, "80"), (64, "120")])
def test_ptxas_carries_match_python(bits: int, arch: str) -> None:
    """ptxas's code, on which this reading of the manual is based."""
    oracle.require("ptxas")
    made = oracle.compile_ptx(_text(bits), arch)
    assert not isinstance(made, oracle.ToolError), made
    buffers = _buffers(bits)
    Device(made.read_bytes()).launch("k", 1, len(_given(bits)), buffers)
    assert _differs(bits, buffers[1]) == []
