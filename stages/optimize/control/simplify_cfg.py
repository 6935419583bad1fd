"""CFG simplification: jumps around jumps, to jumps and to EXIT; barriers that converge threads only to exit; WARPSYNC
of a warp that has not diverged.

Pre: a function at level `ori`. Post: the same effects of every thread. A divergent branch is one whose predicate is not
marked uniform.
"""

from __future__ import annotations

from ir_format.flow import Cfg, build_cfg, falls_through, is_guarded, is_terminator
from ir_format.isa import facts
from ir_format.model import INV, PT, ZERO, Block, Function, Inst, Label, Operand, Reg, label
from ir_format.typed import Final
from stages.optimize.analyses import Analyses
from stages.optimize.evaluate.operands import value_of
from stages.optimize.scalar.fold import inverted
from stages.optimize.values import PURE
from stages.plumbing.runner import Context

_DIVERGING: Final = facts.having("diverging")
_ALL: Final = 0xFFFFFFFF


def simplify_cfg(f: Function, a: Analyses) -> bool:
    """The pass; it leaves SSA form where there is something to do."""
    if a.webs is not None:
        if not _may_simplify(f, a.cfg):
            return False
        a.leave_ssa()
    if _decide(f, a.ctx):
        drop_unreachable(f)
    _invert(f, a.ctx)
    if f.kind == "entry":
        _drop_last_barriers(f, a.ctx)
        _exit_at_once(f, a.ctx)
    drop_unreachable(f)
    return True


def _may_simplify(f: Function, cfg: Cfg) -> bool:
    """Whether there may be something to do, in SSA form: a branch on a constant, to the next block, to a block without
    more than a jump or EXIT; a barrier before EXIT; an empty block; one that nothing reaches."""
    if len(cfg.rpo) < len(f.blocks):
        return True
    short: set[int] = set()  # blocks that hold a jump or EXIT, or nothing, beside PHIs and BSYNC
    for b in f.blocks:
        insts = b.insts
        if len(insts) < 3 or insts[-2].op in ("PHI", "BSYNC"):
            rest = [i for i in insts if i.op not in ("PHI", "BSYNC")]
            if not rest:
                return True
            if len(rest) == 1 and (rest[0].op == "EXIT" or plain_jump(rest[0]) >= 0):
                if len(rest) < len(insts) and insts[-2].op == "BSYNC":
                    return True
                short.add(b.id)
    for n, b in enumerate(f.blocks):
        last = b.insts[-1]
        to = plain_jump(last)
        if to >= 0 and (
            to in short or (n + 1 < len(f.blocks) and (f.blocks[n + 1].id == to or f.blocks[n + 1].id in short))
        ):
            return True
        guard = last.guard
        if guard is not None and guard.num == ZERO and guard.file == "P":
            return True
    return False


def _decide(f: Function, ctx: Context) -> bool:
    """A branch on a constant, which combining found, is taken always or never; what it alone led to is unreachable.
    Whether there was one."""
    found = False
    for b in f.blocks:
        last = b.insts[-1] if b.insts else None
        guard = last.guard if last is not None and (last.op == "EXIT" or plain_jump(last) >= 0) else None
        if last is None or guard is None or guard.num != ZERO or guard.file != "P" or not ctx.allow():
            continue
        ctx.count("branches on constants")
        found = True
        if guard.flags & INV:
            b.insts.pop()
        else:
            last.guard = None
    return found


def plain_jump(inst: Inst) -> int:
    """Block id that a BRA without modifiers and predicate operands goes to, guarded or not; -1 for anything else."""
    if inst.op == "BRA" and not inst.mods and not inst.uses and not (inst.attrs and inst.attrs.keys() - {"uni"}):
        target = inst.srcs[-1]
        if type(target) is Label and all(o == PT for o in inst.srcs[:-1]):
            return target.block
    return -1


def lasting(inst: Inst) -> tuple[Operand, ...]:
    """The sources without the predicate operand PT before."""
    return inst.srcs[1:] if inst.srcs and inst.srcs[0] == PT else inst.srcs


def named_blocks(f: Function) -> dict[int, int]:
    """How many operands name each block."""
    found: dict[int, int] = {}
    for b in f.blocks:
        for i in b.insts:
            if i.op in PURE:
                continue
            for group in (i.dsts, i.srcs, i.uses):
                for o in group:
                    if type(o) is Label:
                        found[o.block] = found.get(o.block, 0) + 1
    return found


def drop_unreachable(f: Function) -> None:
    """Blocks that nothing reaches and no operand names go."""
    keep = set(build_cfg(f).rpo)
    if len(keep) < len(f.blocks):
        named = named_blocks(f)
        f.blocks = [b for n, b in enumerate(f.blocks) if n in keep or b.id in named]


def merge_blocks(f: Function, a: Analyses | None = None) -> bool:
    """The pass: a block that control only falls into from the one before it, and that no operand names, becomes part of
    that one; outside of SSA form. Whether there was one."""
    if not any(
        not (before.insts and is_terminator(before.insts[-1]))
        for before, _ in zip(f.blocks, f.blocks[1:], strict=False)
    ):
        return False
    named = named_blocks(f)
    out: list[Block] = []
    for b in f.blocks:
        before = out[-1] if out else None
        if before is not None and b.id not in named and not (before.insts and is_terminator(before.insts[-1])):
            before.insts += b.insts
        else:
            out.append(b)
    changed = len(out) < len(f.blocks)
    f.blocks = out
    return changed


def may_merge(f: Function) -> bool:
    """Whether :func:`merge_blocks` would find something."""
    after = [
        b.id
        for before, b in zip(f.blocks, f.blocks[1:], strict=False)
        if not (before.insts and is_terminator(before.insts[-1]))
    ]
    return bool(after) and not named_blocks(f).keys() >= set(after)


def _invert(f: Function, ctx: Context) -> None:
    """`@P BRA X; BRA Y; X:` becomes `@!P BRA Y; X:`; a jump to a lone jump goes where that goes."""
    alone = {
        b.id: plain_jump(b.insts[0])
        for b in f.blocks
        if len(b.insts) == 1 and not is_guarded(b.insts[0]) and plain_jump(b.insts[0]) >= 0
    }
    named = named_blocks(f)
    gone: set[int] = set()
    for n, b in enumerate(f.blocks[:-1]):
        to = plain_jump(b.insts[-1]) if b.insts else -1
        if to < 0:
            continue
        last = b.insts[-1]
        after = f.blocks[n + 1]
        if (
            is_guarded(last)
            and after.id in alone
            and n + 2 < len(f.blocks)
            and f.blocks[n + 2].id == to
            and not named.get(after.id)
            and ctx.allow()
        ):
            assert last.guard is not None
            last.guard = inverted(last.guard)
            to = alone[after.id]
            last.srcs = (*last.srcs[:-1], label(to))
            gone.add(after.id)
            ctx.count("branches inverted")
        hops = 0
        while to in alone and hops < 8:
            to = alone[to]
            hops += 1
        if hops and to not in alone and ctx.allow():
            last.srcs = (*last.srcs[:-1], label(to))
    if gone:
        f.blocks = [b for b in f.blocks if b.id not in gone]
    for here, following in zip(f.blocks, f.blocks[1:], strict=False):
        if here.insts and plain_jump(here.insts[-1]) == following.id:
            here.insts.pop()


def _only_exit(b: Block) -> bool:
    return len(b.insts) == 1 and b.insts[0].op == "EXIT" and not is_guarded(b.insts[0]) and not b.insts[0].mods


def _exit_at_once(f: Function, ctx: Context) -> None:
    """A jump to an EXIT is an EXIT."""
    ends = {b.id: b.insts[0] for b in f.blocks if _only_exit(b)}
    for b in f.blocks:
        last = b.insts[-1] if b.insts else None
        if last is not None and plain_jump(last) in ends and ctx.allow():
            end = ends[plain_jump(last)]
            b.insts[-1] = Inst("EXIT", (), (), end.srcs, last.guard, last.line, last.loc)
            ctx.count("jumps to EXIT")


def barrier_users(f: Function) -> dict[int, list[tuple[Block, Inst]]]:
    """B register -> instructions that name it."""
    users: dict[int, list[tuple[Block, Inst]]] = {}
    for b in f.blocks:
        for i in b.insts:
            for o in (*i.dsts, *i.srcs):
                if type(o) is Reg and o.file == "B":
                    users.setdefault(o.num, []).append((b, i))
    return users


def drop_barrier(users: list[tuple[Block, Inst]]) -> None:
    """Remove every instruction that names a barrier."""
    gone = {id(i) for _, i in users}
    for b in {id(b): b for b, _ in users}.values():
        b.insts = [i for i in b.insts if id(i) not in gone]


def simple_barrier(users: list[tuple[Block, Inst]]) -> bool:
    """Whether a barrier is set in one place and waited for in one, and broken at none."""
    ops = sorted(i.op for _, i in users)
    return ops in (["BSSY", "BSYNC"], ["BMOV", "BSSY", "BSYNC", "UNDEF"]) and not any(is_guarded(i) for _, i in users)


def _drop_last_barriers(f: Function, ctx: Context) -> None:
    """Threads that do nothing but end after a BSYNC need not reconverge there (ptxas emits no barrier either:
    measured)."""
    ends: set[int] = set()  # blocks from whose start nothing happens but EXIT
    for n in range(len(f.blocks) - 1, -1, -1):
        b = f.blocks[n]
        rest = [i for i in b.insts if i.op != "BSYNC"]
        if _only_exit(Block(b.id, rest)) or (not rest and n + 1 < len(f.blocks) and f.blocks[n + 1].id in ends):
            ends.add(b.id)
    for _, users in sorted(barrier_users(f).items()):
        where = next((b for b, i in users if i.op == "BSYNC"), None)
        if where is not None and where.id in ends and simple_barrier(users) and ctx.allow():
            drop_barrier(users)
            ctx.count("barriers before EXIT")
    # what is empty now gives way to the block after it
    moved: dict[int, int] = {}
    for n in range(len(f.blocks) - 2, -1, -1):
        b = f.blocks[n]
        if not b.insts:
            moved[b.id] = moved.get(f.blocks[n + 1].id, f.blocks[n + 1].id)
    if moved:
        redirect(f, moved)
        f.blocks = [b for b in f.blocks if b.id not in moved]


def redirect(f: Function, moved: dict[int, int]) -> None:
    """Name other blocks in all operands."""

    def new(ops: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return tuple([label(moved[o.block]) if type(o) is Label and o.block in moved else o for o in ops])

    for b in f.blocks:
        for i in b.insts:
            if i.op not in PURE:
                i.dsts, i.srcs, i.uses = new(i.dsts), new(i.srcs), new(i.uses)


def drop_warpsync(f: Function, a: Analyses) -> bool:
    """The pass: remove WARPSYNC of all threads if the warp can't have diverged since the last one (ptxas has none there
    either: measured)."""
    if any(i.op == "WARPSYNC" for b in f.blocks for i in b.insts):
        _warpsync(f, a)
        return True
    return False


def _warpsync(f: Function, a: Analyses) -> None:
    ctx, values, cfg = a.ctx, a.values, a.cfg

    def whole(i: Inst) -> bool:
        if i.op != "WARPSYNC" or is_guarded(i) or i.mods not in ((), ("ALL",)):
            return False
        rest = lasting(i)
        if not rest:
            return i.mods == ("ALL",)
        mask = rest[0]
        return (values.constant(mask) if type(mask) is Reg and not mask.flags else value_of(mask)) == _ALL

    def parts(i: Inst) -> bool:
        if i.op in _DIVERGING:
            return True
        if i.op != "BRA":
            return False
        guard = i.guard
        if i.mods or len(lasting(i)) > 1:
            return True
        return (
            guard is not None
            and guard._replace(flags=0) != PT
            and not (guard.file == "UP" or f.vregs[guard.num].uniform)
        )

    count = len(f.blocks)
    apart = [f.kind != "entry"] * count  # a divergent group may call a function
    sync = {id(i) for b in f.blocks for i in b.insts if whole(i)}

    def leave(pos: int) -> bool:
        state = apart[pos]
        for i in f.blocks[pos].insts:
            if id(i) in sync:
                state = False
            elif parts(i):
                state = True
        return state

    work = list(cfg.rpo)
    while work:
        pos = work.pop()
        if leave(pos):
            for s in cfg.succs[pos]:
                if not apart[s]:
                    apart[s] = True
                    work.append(s)
    for pos, b in enumerate(f.blocks):
        state = apart[pos]
        out = []
        for i in b.insts:
            if id(i) in sync:
                if not state and ctx.allow():
                    ctx.count("needless WARPSYNC")
                    # what the threads stored before it they read after it (ptxas has a NOP there too: measured)
                    if i.attrs and "fence" in i.attrs:
                        out.append(Inst("NOP", (), (), (), None, i.line, i.loc, attrs=i.attrs))
                    continue
                state = False
            elif parts(i):
                state = True
            out.append(i)
        b.insts = out
    assert all(b.insts or falls_through(b) for b in f.blocks)
