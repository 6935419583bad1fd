"""Failures planted in the optimizer, reduced, and compared with hand-made programs.

    python -m tests.reduce.planted [--only NAME ...] [-j N]

Each fault is a change to the units that `optimize` reads, wherever its condition is true: a crash, a refusal, or a
wrong value that co-simulation sees. The hand-made programs are as short as possible and show the fault themselves;
instructions are counted."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ir_format.diag import CompileError
from ir_format.model import Imm, Inst, Mem, Reg, Unit
from ir_format.ptx import PtxInst
from stages.plumbing.chain import OPTIMIZE
from stages.plumbing.runner import Context, Pass
from stages.reduce.judges import ByChain
from stages.reduce.program import Program
from stages.reduce.reduce import Reducer

PTX: Final = Path(__file__).parents[1] / "kernels/ptx/sm_90"
#: The most instructions of a reduced program, relative to the hand-made one.
MOST: Final = 1.5
Change = Callable[[list[Inst]], object]


class Case:
    """A planted failure: the kernel that shows it, what is wrong with its units, and the shortest program."""

    def __init__(
        self, name: str, kernel: str, change: Change, hand: str, declared: str = "", crash: bool = False
    ) -> None:
        self.name, self.kernel, self.change, self.crash = name, kernel, change, crash
        self.hand = (
            f".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n{declared}\n"
            ".reg .b32 %r<9>;\n.reg .f32 %f<9>;\n.reg .f64 %fd<9>;\n.reg .b64 %d<9>;\n.reg .pred %p<3>;\n"
            f"{hand}\n}}\n"
        )


def _breaks(*wanted: str) -> Change:
    """Crash if there is an instruction of each of these."""

    def change(insts: list[Inst]) -> None:
        if all(any(i.op == op for i in insts) for op in wanted):
            raise LookupError(f"no {' and '.join(wanted)} here")

    return change


def _refuses(op: str) -> Change:
    def change(insts: list[Inst]) -> None:
        for i in insts:
            if i.op == op:
                raise CompileError(f"{op} is refused", i.line)

    return change


def _constant(op: str, mask: int, place: int) -> Change:
    """Change a constant among the sources of an instruction."""

    def change(insts: list[Inst]) -> None:
        for i in insts:
            o = i.srcs[place] if i.op == op and place < len(i.srcs) else None
            if isinstance(o, Imm) and not o.sym:
                i.srcs = (*i.srcs[:place], o._replace(value=o.value ^ mask), *i.srcs[place + 1 :])

    return change


def _same_source(op: str, to: int, by: int) -> Change:
    """Read one source twice."""

    def change(insts: list[Inst]) -> None:
        for i in insts:
            if i.op == op and all(isinstance(i.srcs[n], Reg) for n in (to, by)):
                i.srcs = tuple([i.srcs[by] if n == to else o for n, o in enumerate(i.srcs)])

    return change


def _other_modifier(op: str, old: str, new: str) -> Change:
    def change(insts: list[Inst]) -> None:
        for i in insts:
            if i.op == op:
                i.mods = tuple([new if m == old else m for m in i.mods])

    return change


def _offset(op: str) -> Change:
    """Read the next word of memory."""

    def change(insts: list[Inst]) -> None:
        for i in insts:
            if i.op == op:
                i.srcs = tuple([o._replace(offset=o.offset ^ 4) if isinstance(o, Mem) else o for o in i.srcs])

    return change


_OUT: Final = "ld.param.u64 %d1, [out];\n"
_TILE: Final = ".shared .b32 tile[64];"
CASES: Final = (
    Case("barrier", "scan", _breaks("BAR"), "bar.sync 0;", crash=True),
    Case(
        "shuffle and store",
        "scan",
        _breaks("SHFL", "STS"),
        "shfl.sync.up.b32 %r1, 3, 1, 0, -1;\nst.shared.u32 [tile], 7;",
        _TILE,
        True,
    ),
    Case("square root", "softmax", _breaks("MUFU"), "ex2.approx.f32 %f1, 0f3F800000;", crash=True),
    Case("atomic", "histogram", _refuses("ATOMS"), "atom.shared.add.u32 %r1, [tile], 1;", _TILE, True),
    Case(
        "float sum",
        "vadd",
        _same_source("FADD", 0, 1),
        _OUT + "mov.f32 %f1, 0f40000000;\nmov.f32 %f2, 0f40400000;\nadd.f32 %f3, %f1, %f2;\nst.global.f32 [%d1], %f3;",
    ),
    Case(
        "fused product",
        "saxpy",
        _same_source("FFMA", 0, 1),
        _OUT
        + "mov.f32 %f1, 0f40000000;\nmov.f32 %f2, 0f40400000;\n"
        + "fma.rn.f32 %f3, %f1, %f2, %f2;\nst.global.f32 [%d1], %f3;",
    ),
    Case(
        "shared word",
        "histogram",
        _offset("LDS"),
        _OUT + "st.shared.u32 [tile], 7;\nld.shared.u32 %r1, [tile];\nst.global.u32 [%d1], %r1;",
        _TILE,
    ),
    Case(
        "double product",
        "f64_ops",
        _same_source("DMUL", 0, 1),
        _OUT
        + "mov.f64 %fd1, 0d4000000000000000;\nmov.f64 %fd2, 0d4008000000000000;\n"
        + "mul.f64 %fd3, %fd1, %fd2;\nst.global.f64 [%d1], %fd3;",
    ),
    Case(
        "comparison",
        "switch10",
        _other_modifier("ISETP", "EQ", "NE"),
        _OUT + "setp.eq.s32 %p1, 3, 4;\n@%p1 st.global.u32 [%d1], 7;",
    ),
    Case(
        "bits",
        "histogram",
        _constant("LOP3", 1, 1),
        _OUT + "ld.global.u32 %r1, [%d1];\nand.b32 %r2, %r1, 255;\nst.global.u32 [%d1+4], %r2;",
    ),
)


@contextmanager
def planted(case: Case) -> Iterator[None]:
    """While active `optimize` begins with the fault."""

    def run(unit: Unit, ctx: Context) -> None:
        case.change([i for f in unit.functions for b in f.blocks for i in b.insts])

    passes = OPTIMIZE.passes
    table = [Pass("planted", run, min_opt=1), *passes()]
    object.__setattr__(OPTIMIZE, "passes", lambda: table)
    try:
        yield
    finally:
        object.__setattr__(OPTIMIZE, "passes", passes)


def instructions(text: str) -> int:
    """How many instructions a program has."""
    return sum(isinstance(x, PtxInst) for f in Program(text, "sm_90").functions().values() for x in f.body)


def reduced(case: Case, jobs: int) -> str:
    """The reduced kernel of a case. Raises OriasError if it, or the hand-made program, does not show the fault."""
    text = (PTX / f"{case.kernel}.ptx").read_text()
    with planted(case):
        for given in (case.hand, text):
            judge = ByChain("sm_90", {"opt-level": 3, "fmad": 0}, "" if case.crash else None, False, 20.0)
            judge.begin(given)
        return Reducer(text, "sm_90", judge, jobs, lambda said: None).run()


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=[c.name for c in CASES])
    parser.add_argument("-j", type=int, default=2)
    parser.add_argument("--show", action="store_true", help="print what is left")
    args = parser.parse_args(argv)
    bad = 0
    for case in CASES:
        if case.name not in args.only:
            continue
        began = time.time()
        left = reduced(case, args.j)
        by_hand, ours = instructions(case.hand), instructions(left)
        given = instructions((PTX / f"{case.kernel}.ptx").read_text())
        bad += ours > MOST * by_hand
        took = time.time() - began
        print(
            f"{case.name:18} {given:4} -> {ours:2}, by hand {by_hand}: {ours / by_hand:.2f}, {took:.0f} s",
            flush=True,
        )
        if args.show:
            print(left)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
