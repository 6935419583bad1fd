"""Convergence barriers on random graphs: no deadlock, every thread keeps its path, structured code reconverges."""

from __future__ import annotations

import random

import pytest

from ir_format.model import PT, RZ, Block, Function, Inst, Name
from stages.lower.cleanup import tidy_blocks
from stages.lower.convergence import regions
from stages.lower.convergence.converge import insert_convergence
from stages.lower.convergence.divergence import Flow
from stages.lower.convergence.regions import Regions
from tests.lower.warp import label, run_warp


def graph(succs: list[list[int]]) -> Function:
    """A function with one block per entry: no successor = EXIT, one = jump, two = divergent branch with fall-through
    jump, more = BRX."""
    fn = Function("g")
    n = len(succs)
    fn.blocks.append(Block(2 * n))  # the prologue: no branch goes back to it
    for i, out in enumerate(succs):
        tid, p = fn.new_vreg("R"), fn.new_vreg("P")
        insts = [
            Inst("S2R", (), (tid,), (Name("N", "SR_TID.X"),)),
            Inst("ISETP", ("NE", "AND"), (p, PT), (tid, RZ, PT)),
        ]
        blocks = [Block(i, insts)]
        if not out:
            insts.append(Inst("EXIT"))
        elif len(out) == 1:
            insts.append(Inst("BRA", (), (), (label(out[0]),)))
        else:
            insts.append(Inst("BRA", (), (), (label(out[0]),), p))
            blocks.append(Block(n + i, [Inst("BRA", (), (), (label(out[1]),))]))
        fn.blocks += blocks
    return fn


def decide(seed: int):  # type: ignore[no-untyped-def]
    def pick(thread: int, block: int, visit: int) -> int:
        return random.Random(seed * 7919 + thread * 131 + block * 17 + visit).randrange(2)

    return pick


def check(succs: list[list[int]], seed: int) -> tuple[bool, list[tuple[int, frozenset[int]]]]:
    """Run with and without barriers; (all threads ended, groups by block of the last run)."""
    plain = graph(succs)
    original = set(range(len(succs)))
    want, _ = run_warp(plain, 6, decide(seed), seed, original, 60)
    fn = graph(succs)
    tidy_blocks(fn)
    insert_convergence(fn, 90)
    log: list[tuple[int, frozenset[int]]] = []
    for order in range(3):
        got, log = run_warp(fn, 6, decide(seed), seed * 3 + order, original, 60)
        for t in want:
            n = min(len(got[t]), len(want[t]))
            assert got[t][:n] == want[t][:n]
            assert n > 60 or len(got[t]) == len(want[t])
    return all(len(w) <= 60 for w in want.values()), log


@pytest.mark.parametrize("chunk", range(8))
def test_random_graphs(chunk: int) -> None:
    for k in range(60):
        rng = random.Random(chunk * 1000 + k)
        n = rng.randrange(3, 14)
        succs: list[list[int]] = []
        for i in range(n):
            kind = rng.random()
            near = [rng.randrange(max(0, i - 4), min(n, i + 5)) for _ in range(2)]
            succs.append([] if kind < 0.08 or i == n - 1 else near[:1] if kind < 0.4 else near)
        check(succs, chunk * 1000 + k)


def structured(rng: random.Random, depth: int, succs: list[list[int]], exits: bool) -> tuple[int, int]:
    """Append a random structured statement; returns (entry, exit) blocks; the exit block has no successor yet."""

    def block() -> int:
        succs.append([])
        return len(succs) - 1

    kind = rng.choice(["seq", "if", "ifelse", "loop", "dowhile", "plain"]) if depth else "plain"
    if kind == "plain":
        b = block()
        return b, b
    if kind == "seq":
        a = structured(rng, depth - 1, succs, exits)
        c = structured(rng, depth - 1, succs, exits)
        succs[a[1]] = [c[0]]
        return a[0], c[1]
    if kind in ("if", "ifelse"):
        head = block()
        one = structured(rng, depth - 1, succs, exits)
        other = structured(rng, depth - 1, succs, exits) if kind == "ifelse" else None
        join = block()
        succs[head] = [one[0], join if other is None else other[0]]
        succs[one[1]] = [join]
        if other is not None:
            succs[other[1]] = [join]
        if exits and rng.random() < 0.3:
            gone, head2 = block(), block()
            succs[head2] = [head, gone]
            return head2, join
        return head, join
    if kind == "loop":
        head, out = block(), block()
        body = structured(rng, depth - 1, succs, exits)
        succs[head] = [body[0], out]
        if rng.random() < 0.4:  # break out of the body
            brk = block()
            succs[body[1]] = [brk]
            succs[brk] = [head, out]
        else:
            succs[body[1]] = [head]
        return head, out
    body = structured(rng, depth - 1, succs, exits)
    test, out = block(), block()
    succs[body[1]] = [test]
    succs[test] = [body[0], out]
    return body[0], out


@pytest.mark.parametrize("exits", [False, True])
@pytest.mark.parametrize("chunk", range(6))
def test_structured_code_converges(chunk: int, exits: bool) -> None:
    """Without early exits every thread passes the last block, and must do so in one group. With early exits, the
    remaining threads must."""
    whole = 0
    for k in range(40):
        seed = 10000 + chunk * 1000 + k
        rng = random.Random(seed)
        succs: list[list[int]] = [[]]  # block 0: the entry
        entry, out = structured(rng, 4, succs, exits)
        succs[0] = [entry]
        succs.append([])
        final = len(succs) - 1
        succs[out] = [final]
        ended, log = check(succs, seed)
        if ended:
            ends = [g for b, g in log if b == final]
            assert len(ends) <= 1, f"seed {seed}: threads pass the end in {len(ends)} groups"
            whole += len(ends)
    assert whole > 20


def test_regions_of_large_functions_have_the_same_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """There they are not listed but read from the trees of dominators."""
    short = 0
    for seed in range(200):
        rng = random.Random(seed)
        succs: list[list[int]] = [[]]
        entry, out = structured(rng, 4, succs, seed % 4 == 0)
        succs[0] = [entry]
        succs[out] = [len(succs)]
        succs.append([])
        flow = Flow(graph(succs))
        found = []
        for least in (1 << 30, 0):
            monkeypatch.setattr(regions, "_LARGE", least)
            here = Regions(flow)
            at = [here.at(j) for j in flow.cfg.rpo]
            found.append([(set(r.inside), len(r.inside), r.at, r.leaving, r.leaks) if r else None for r in at])
            short += sum(r is not None and type(r.inside) is not set for r in at)
        assert found[0] == found[1], seed
    assert short > 200
