"""Hints that look at the program. Expected texts come from the PTX manual and the programs."""

from __future__ import annotations

import pytest

from orchestrator.diagnostics import read_back
from stages.parse import parse_sources
from stages.parse.hints import wrong_operand

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
REGS = ".reg .u64 %rd<3>; .reg .f32 %f<4>, %sum; .reg .b32 %r<4>; .reg .pred %p;\n"


def hints(body: str) -> dict[str, str]:
    """Message -> hint."""
    data = (HEAD + REGS + body + "\nret;\n}\n").encode()
    found = parse_sources([("k.ptx", data)], "sm_90", {})
    text = "".join([d.render() + "\n" for d in found.diagnostics])
    return {f.message: f.hint for f in read_back(text, [("k.ptx", data)])}


@pytest.mark.parametrize(
    ("statement", "hint"),
    [
        ("add.f32 %f1, %f2, %rd1;", "operand 3, %rd1, is .u64; add.f32 wants .f32"),
        ("add.s32 %f1, %r1, %r2;", "operand 1, %f1, is .f32; add.s32 wants .s32"),
        ("mul.f32 %f1, %f2, %f22;", "operand 3, %f22, is not declared: did you mean %f2?"),
        ("mul.f32 %f1, %f2, %f22;", "did you mean %f2? Registers are declared with .reg"),
        ("mov.f32 %f1, %sun;", "did you mean %sum? Registers are declared with .reg"),
        ("redux.sync.min.f32 %f1, %f2, 0xffffffff;", "sm_100a has it"),  # PTX manual, redux.sync
    ],
)
def test_hints(statement: str, hint: str) -> None:
    assert hint in hints(statement).values(), hints(statement)


def test_operands_of_other_types_are_not_blamed() -> None:
    """No hint if an instruction's operands have several types, or if bits can be of any type."""
    lines = REGS.splitlines()
    for line in (
        "add.s32 %r1, %r2, %r3;",
        "and.b32 %f1, %r1, %r2;",
        "cvt.f32.s32 %f1, %r1;",
        "mov.b32 %r1, %f1;",
        "shl.b64 %rd1, %rd2, %r1;",
        "mul.wide.u32 %rd1, %r1, %r2;",
    ):
        assert wrong_operand(line, lines) == ""
