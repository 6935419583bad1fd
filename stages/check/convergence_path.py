"""State of the convergence checker on a path through the code: open barriers, predicates; and which instruction can
follow which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ir_format.flow import ENDS, JUMPS, is_guarded
from ir_format.model import INV, ZERO, Inst, Name, Reg
from stages.check.schedule_flow import may_pass
from stages.disasm.cubin import WORD
from stages.disasm.listing import Decoded


class Open(NamedTuple):
    """An open barrier: its register, its BSSY, and whether threads may wait at its end without having passed a barrier
    of the block."""

    k: int
    site: int
    waited: bool


class Path(NamedTuple):
    """The state on a path to a place. ``fact``: predicates with the values that they were tested for (numbers, plus 16
    for uniform ones), and whether all threads had them; ``gone``: barriers that the threads have left by BREAK and that
    have not been set since; ``touched``: B registers that do not hold the caller's barrier; ``saved``: (register, B
    register of the caller)."""

    open: tuple[Open, ...] = ()
    touched: int = 0
    gone: int = 0
    saved: tuple[tuple[int, int], ...] = ()
    fact: tuple[tuple[tuple[int, bool], ...], bool] | None = None


class Node(NamedTuple):
    """An instruction that matters: ``b`` its B register (-1: none), ``tests`` the predicates that must be true,
    ``mods``, ``target`` as an instruction index."""

    op: str
    b: int
    tests: tuple[tuple[int, bool], ...]
    mods: frozenset[str]
    target: int


def predicate(o: Reg) -> tuple[int, bool]:
    return o.num + (16 if o.file == "UP" else 0), not o.flags & INV


def tests_of(inst: Inst) -> tuple[tuple[int, bool], ...]:
    """Predicates that must all hold for the instruction to act: its guard, and the condition operand of control
    instructions."""
    operands = [inst.guard] if inst.guard is not None else []
    operands += [o for o in (*inst.dsts, *inst.srcs) if type(o) is Reg and o.file in ("P", "UP")]
    return tuple(sorted({predicate(o) for o in operands if o.num != ZERO or o.flags & INV}))


def split_by(path: Path, tests: tuple[tuple[int, bool], ...]) -> tuple[Path | None, Path | None]:
    """The path on which all predicates are true, and the path on which they are not."""
    if not tests:
        return path, None
    if (ZERO, False) in tests or (ZERO + 16, False) in tests:  # !PT
        return None, path
    if path.fact is not None:
        known, truth = path.fact
        if known == tests:
            return (path, None) if truth else (None, path)
        if len(tests) == 1 and known == ((tests[0][0], not tests[0][1]),):
            return (None, path) if truth else (path, None)
    return path._replace(fact=(tests, True)), path._replace(fact=(tests, False))


def guard_of(inst: Inst) -> tuple[tuple[int, bool], ...]:
    g = inst.guard
    return (predicate(g),) if g is not None and (g.num != ZERO or g.flags & INV) else ()


def partial(after: Sequence[Decoded]) -> bool:
    """Whether a WARPSYNC, with this code after it, ends a call during which threads that are elsewhere count as exited:
    the next BMOV restores their mask."""
    for item in after:
        inst = item.inst
        if inst is None or inst.op in JUMPS or inst.op in ENDS:
            return False
        if inst.op == "BMOV":
            return any(type(o) is Name and o.name == "MEXITED" for o in inst.dsts)
    return False


def successors(n: int, item: Decoded, tables: dict[int, tuple[int, ...]], count: int) -> tuple[int, ...]:
    """The possible successors of an instruction inside its function; calls return."""
    inst = item.inst
    out: dict[int, None] = {}
    passes = True
    if inst is not None:
        if inst.op in JUMPS:
            passes = may_pass(inst)
            if item.target >= 0:
                out[item.target // WORD] = None
            else:
                out.update(dict.fromkeys(pc // WORD for pc in tables.get(item.pc, ()) if pc % WORD == 0))
        elif inst.op in ENDS or (inst.op == "BPT" and "TRAP" in inst.mods):
            passes = is_guarded(inst)
        elif inst.op == "WARPSYNC" and item.target >= 0:
            out[item.target // WORD] = None
    if passes:
        out[n + 1] = None
    return tuple(s for s in out if s < count)
