"""Block cleanup after the rules: remove unreachable blocks and jumps to the next block; every function ends in a
jump."""

from __future__ import annotations

from ir_format.flow import build_cfg, falls_through
from ir_format.model import Function, Inst


def tidy_blocks(fn: Function) -> None:
    """Split blocks after the jumps in them and remove unreachable blocks. `optimize` numbers the loop depths."""
    if falls_through(fn.blocks[-1]):
        fn.blocks[-1].insts.append(Inst("EXIT") if fn.kind == "entry" else Inst("BPT", ("TRAP",), (), ()))
    cfg = build_cfg(fn)
    keep = set(cfg.rpo)
    if len(keep) != len(fn.blocks):
        fn.blocks = [b for i, b in enumerate(fn.blocks) if i in keep]
    for here, after in zip(fn.blocks, fn.blocks[1:], strict=False):
        if here.insts and here.insts[-1].op == "BRA":
            last = here.insts[-1]
            if (
                last.guard is None
                and not last.mods
                and len(last.srcs) == 1
                and getattr(last.srcs[0], "block", -1) == after.id
            ):
                here.insts.pop()
