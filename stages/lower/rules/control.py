"""Branches, calls, returns, exits."""

from __future__ import annotations

from ir_format import ptx
from ir_format.model import Imm, Label
from ir_format.ptx import PtxInst
from stages.lower.abi.frame import leave, lower_ret
from stages.lower.builder import Builder, Rule
from stages.lower.rules.integer import Val, compare


def _block(b: Builder, index: int) -> int:
    got = b.labels.get(index)
    if got is None:
        got = b.labels[index] = b.new_block()
    return got


def bra(b: Builder, inst: PtxInst) -> None:
    to = inst.operands[0]
    assert isinstance(to, ptx.LabelRef)
    b.emit("BRA", (), (Label("L", _block(b, to.index)),), attrs={"uni": 1} if inst.has("uni") else None)
    b.place(b.new_block())


def brx(b: Builder, inst: PtxInst) -> None:
    """brx.idx: a binary tree of compares over the table."""
    if not inst.has("idx") or len(inst.operands) < 2 or not isinstance(inst.operands[1], ptx.LabelList):
        raise b.unsupported(inst)
    targets = [_block(b, i) for i in inst.operands[1].labels]
    if not targets:
        raise b.unsupported(inst, "empty table")
    index = b.src(inst.operands[0], "u32")
    with b.region():
        _tree(b, index, targets, 0)
        b.place(b.new_block())


def _tree(b: Builder, index: Val, targets: list[int], base: int) -> None:
    if all(t == targets[0] for t in targets):
        b.branch(targets[0])
        return
    half = len(targets) // 2
    p, _ = compare(b, "LT", "u32", index, Imm("I", base + half))
    low = b.new_block()
    b.branch(low, p)
    _tree(b, index, targets[half:], base + half)
    b.place(low)
    _tree(b, index, targets[:half], base)


def exit_(b: Builder, inst: PtxInst) -> None:
    leave(b)
    b.place(b.new_block())


def trap(b: Builder, inst: PtxInst) -> None:
    with b.region():
        b.emit("BPT.TRAP", (), (Imm("I", 1),))
        b.place(b.new_block())


def ret(b: Builder, inst: PtxInst) -> None:
    lower_ret(b, inst)
    b.place(b.new_block())


def call(b: Builder, inst: PtxInst) -> None:
    from stages.lower.abi.calls import lower_call

    lower_call(b, inst)


RULES: dict[str, Rule] = {
    "brkpt": trap,
    "bra": bra,
    "brx": brx,
    "call": call,
    "ret": ret,
    "exit": exit_,
    "trap": trap,
}
