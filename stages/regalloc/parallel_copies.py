"""Parallel copies: turn each PCOPY into a sequence of COPY with the same effect, over virtual registers."""

from __future__ import annotations

from ir_format.model import ZERO, Function, Inst, Operand, Reg


def split_parallel(func: Function) -> int:
    """Replace every PCOPY; returns their number. A cycle costs one temporary vreg."""
    count = 0
    for block in func.blocks:
        if any(inst.op == "PCOPY" for inst in block.insts):
            out: list[Inst] = []
            for inst in block.insts:
                if inst.op == "PCOPY":
                    out.extend(sequence(func, inst))
                    count += 1
                else:
                    out.append(inst)
            block.insts = out
    return count


def sequence(func: Function, inst: Inst) -> list[Inst]:
    """The moves of one PCOPY, in an order that overwrites no source before it is read."""
    moves: list[tuple[Reg, Operand]] = []
    for dst, src in zip(inst.dsts, inst.srcs, strict=True):
        assert isinstance(dst, Reg)
        if dst.num != ZERO and dst != src:
            moves.append((dst, src))
    readers: dict[tuple[int, int], int] = {}  # component -> pending moves that read it
    for _, src in moves:
        for part in _parts(src):
            readers[part] = readers.get(part, 0) + 1
    writer = {part: i for i, (dst, _) in enumerate(moves) for part in _parts(dst)}
    blocked = [0] * len(moves)  # components of the destination that other pending moves still read
    for i, (dst, src) in enumerate(moves):
        own = set(_parts(src))
        blocked[i] = sum(readers.get(p, 0) - (1 if p in own else 0) for p in _parts(dst))
    ready = [i for i in range(len(moves) - 1, -1, -1) if blocked[i] == 0]
    waiting = {i for i in range(len(moves)) if blocked[i]}
    out: list[Inst] = []

    def release(i: int, src: Operand) -> None:
        for part in _parts(src):
            other = writer.get(part)
            if other is not None and other != i and other in waiting:
                blocked[other] -= 1
                if blocked[other] == 0:
                    waiting.discard(other)
                    ready.append(other)

    todo = sorted(waiting)
    at = 0
    while ready or waiting:
        if ready:
            i = ready.pop()
            dst, src = moves[i]
            out.append(_copy(inst, dst, src))
            release(i, src)
            continue
        while todo[at] not in waiting:
            at += 1
        i = todo[at]  # every pending move is in a cycle: save the source of this one
        dst, src = moves[i]
        assert isinstance(src, Reg)
        parked = func.new_vreg(
            src.file, src.width, func.vregs[src.num].align if src.width == func.vregs[src.num].width else 0
        )
        out.append(_copy(inst, parked, src._replace(flags=0, mod="")))
        moves[i] = (dst, parked._replace(flags=src.flags, mod=src.mod))
        release(i, src)
    return out


def _copy(origin: Inst, dst: Reg, src: Operand) -> Inst:
    return Inst("COPY", (), (dst,), (src,), origin.guard, origin.line, origin.loc)


def _parts(operand: Operand) -> list[tuple[int, int]]:
    if type(operand) is not Reg or operand.num == ZERO:
        return []
    return [(operand.num, operand.sub + i) for i in range(operand.width)]
