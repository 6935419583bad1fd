"""Static check of the control words of a cubin: over all paths, every distance and every scoreboard wait of the hazard
tables.

Written independently of the scheduler: it reads only machine code and :mod:`ir_format.hazards`. Forward dataflow over
the decoded code. The state at each place has, for the paths that lead there:

* ``recent``: instructions whose fixed-latency results, or whose reads without a scoreboard, are younger than any table
  distance, with the least issue cycles passed since (sums of stall counts; a stall of 0 drains the pipe);
* ``pending``: instructions that signal results or late reads through a scoreboard, with the registers in flight and the
scoreboards that signal. An instruction of an in-order class that signals nothing is covered by a later one of its
class that does (measured C2).

The entry of a function that is only reached from outside starts with nothing in flight.
"""

from __future__ import annotations

from typing import NamedTuple

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.flow import bit_indices
from ir_format.hazards import Access, Hazards, cell_name, hazards
from ir_format.model import INV, ZERO, Ctl, Inst
from stages.check.schedule_flow import Flow, branch_tables, line_finder
from stages.check.schedule_nodes import ACQUIRED, BEFORE_WRITES, LOADED, ORDER, PLAIN, R_CELLS, Node, control
from stages.check.schedule_rules import (
    BEHIND_MEMORY,
    DMMA_OVER,
    GROUPS,
    REACH,
    WRITE_IN_ORDER,
    YOUNGEST,
    relaxed,
)
from stages.disasm.cubin import CodeSection, Cubin, read_cubin
from stages.disasm.listing import Decoded, decode_section


class Finding(NamedTuple):
    """One broken rule. ``kind``: raw, waw, war (too close), wait (result or read in flight), silent (result without a
    scoreboard), set (waited for too early), stall (too short whatever follows), call (in flight when control leaves the
    section), reuse (an operand kept for the next instruction is overwritten; measured: ptxas never does). ``need``,
    ``have``: cycles. ``pc``: of the later instruction. ``rule``: the table's names, earlier -> later; ``source``: where
    the number is from."""

    kind: str
    register: str
    earlier: str
    later: str
    need: int
    have: int
    rule: str
    source: str
    section: str
    pc: int
    line: int

    def __str__(self) -> str:
        at = f" (PTX line {self.line})" if self.line else ""
        if self.kind in ("raw", "waw", "war"):
            what = f"{self.have} cycles apart, {self.need} needed [{self.rule}, {self.source}]"
        else:
            what = f"{self.rule} [{self.source}]"
        return f"{self.section}: {self.kind} {self.register}{at}: {what}\n    {self.earlier}\n    {self.later}"


class Report(NamedTuple):
    """Findings, what could not be judged (text), and how many instructions were checked."""

    findings: list[Finding]
    unjudged: list[str]
    instructions: int


# recent: instruction -> (cycles since issue, results still visible); pending: (instruction, scoreboards that signal
# its results, scoreboards that signal its reads) -> (results, reads, younger setters, cycles since issue)
_Recent = dict[int, tuple[int, int]]
_Key = tuple[int, int, int]
_Pending = dict[_Key, tuple[int, int, int, int]]


class _State:
    """``raised``: cycles since each scoreboard was last set. ``stale``: pending instructions whose guard has been
    written since."""

    __slots__ = ("pending", "raised", "recent", "stale")

    def __init__(self, recent: _Recent, pending: _Pending, raised: list[int], stale: frozenset[int]) -> None:
        self.stale = stale
        self.recent = recent
        self.pending = pending
        self.raised = raised

    def join(self, other: _State) -> bool:
        """Merge another path; whether anything is new."""
        raised = [min(a, b) for a, b in zip(self.raised, other.raised)]
        changed = raised != self.raised
        self.raised = raised
        if not other.stale <= self.stale:
            self.stale |= other.stale
            changed = True
        for n, (at, live) in other.recent.items():
            mine = self.recent.get(n)
            new = (at, live) if mine is None else (min(at, mine[0]), live | mine[1])
            if new != mine:
                self.recent[n] = new
                changed = True
        for key, (w, r, younger, since) in other.pending.items():
            old = self.pending.get(key)
            now = (
                (w, r, younger, since)
                if old is None
                else (w | old[0], r | old[1], min(younger, old[2]), min(since, old[3]))
            )
            if now != old:
                self.pending[key] = now
                changed = True
        return changed


class _Walk:
    """The dataflow over one section."""

    def __init__(self, section: CodeSection, h: Hazards, tables: dict[int, tuple[int, ...]]) -> None:
        self.name = section.name.removeprefix(".text.")
        self.h = h
        self.items = decode_section(section, isa.target(h.sm))
        self.unjudged: list[str] = []
        self.nodes: list[Node] = []
        for item in self.items:
            self.nodes.append(self._node(item))
        self.flow = Flow(section, self.items, tables)
        for n in self.flow.lost:
            self.unjudged.append(f"{self.name}: {self._text(n)}: the target of this branch is not known")
        self.found: dict[tuple[str, int, int], Finding] = {}

    def _node(self, item: Decoded) -> Node:
        if item.inst is None:
            self.unjudged.append(f"{self.name}: {item.pc:#06x}: {item.reason}")
            return Node(
                item, Inst("?", ctl=control(item.word)), Access()
            )  # no registers known; its control word counts
        guard = item.inst.guard
        if guard is not None and guard.num == ZERO and guard.flags & INV:
            return Node(item, item.inst, Access())  # never runs (@!PT LDS RZ before LDGSTS and UTMALDG)
        try:
            return Node(item, item.inst, self.h.access(item.inst))
        except (CompileError, KeyError) as error:
            self.unjudged.append(f"{self.name}: {item.pc:#06x} {item.text}: {error}")
            return Node(item, item.inst, Access())

    def _text(self, n: int) -> str:
        item = self.items[n]
        c = item.inst.ctl if item.inst is not None and item.inst.ctl is not None else Ctl()
        tags = "".join(
            (
                f" W{c.wr}" if c.wr != 7 else "",
                f" R{c.rd}" if c.rd != 7 else "",
                f" wait {c.wait:06b}" if c.wait else "",
            )
        )
        return f"{item.pc:#06x} {item.text}  {{stall {c.stall}{tags}}}"

    def run(self) -> list[Finding]:
        blocks, following = self.flow.blocks, self.flow.following
        entry: list[_State | None] = [None] * len(blocks)
        work = sorted(set(self.flow.entries))
        for b in work:
            entry[b] = _State({}, {}, [REACH] * 8, frozenset())
        queued = set(work)
        work.reverse()
        while work:
            b = work.pop()
            queued.discard(b)
            state = entry[b]
            assert state is not None
            out = self._block(b, state, False)
            for succ in following[b]:
                there = entry[succ]
                if there is None:
                    entry[succ] = _State(dict(out.recent), dict(out.pending), list(out.raised), out.stale)
                elif not there.join(out):
                    continue
                if succ not in queued:
                    queued.add(succ)
                    work.append(succ)
        for b, state in enumerate(entry):
            if state is not None:
                self._block(b, state, True)
        return list(self.found.values())

    # -- one block ------------------------------------------------------------------------------------------------

    def _block(self, b: int, start: _State, judge: bool) -> _State:
        recent = {n: (-at, live) for n, (at, live) in start.recent.items()}  # issue times while inside
        pending = {key: (w, r, y, -since) for key, (w, r, y, since) in start.pending.items()}
        raised = [-since for since in start.raised]
        stale = set(start.stale)
        clock = 0
        first, end = self.flow.blocks[b]
        for n in range(first, end):
            node = self.nodes[n]
            if node.ctl.wait or node.depbar is not None:
                self._wait(n, node, recent, pending, raised, clock, judge)
            if judge:
                self._judge(n, node, recent, pending, stale, clock)
            w = node.w
            if w and not node.access.guarded:
                for m in [m for m, (_, live) in recent.items() if live & w]:
                    at, live = recent[m]
                    recent[m] = (at, live & ~w)
            if w & ~R_CELLS:
                stale.update(
                    key[0]
                    for key in pending
                    if self.nodes[key[0]].guard >= 0 and w >> (self.nodes[key[0]].guard >> 1) & 1
                )
            if n in stale and all(key[0] != n for key in pending):
                stale.discard(n)
            if w:
                for key in [
                    k for k, v in pending.items() if (v[0] | v[1]) & w and not self._either(k[0], node, stale)
                ]:  # judged once: what follows is not reported again
                    pw, pr, y, at = pending[key]
                    pw, pr = pw & ~w, pr & ~w
                    if pw | pr:
                        pending[key] = (pw, pr, y, at)
                    else:
                        del pending[key]
            self._issue(n, node, recent, pending, raised, clock)
            if node.guard >= 0 and w >> (node.guard >> 1) & 1:
                stale.add(n)
            if node.ctl.stall == 0:
                recent.clear()
                clock += 2  # a drain is long enough for a scoreboard to be seen (measured: DMMA at -O0)
            else:
                clock += node.ctl.stall
            if node.op == "BAR" and node.item.inst is not None and "DEFER_BLOCKING" not in node.item.inst.mods:
                # Stores and shared accesses have read their registers after a barrier that blocks at once, and so have
                # barriers after one that is waited at (measured on sm_75 and sm_80; before
                # BAR.SYNC.DEFER_BLOCKING ptxas signals the reads, on sm_80 to sm_120).
                done = ("sts", "lds", "stg") if "ARV" in node.item.inst.mods else ("sts", "lds", "stg", "bar")
                for key in [k for k in pending if k[0] != n and self.nodes[k[0]].access.klass in done]:
                    pw, _, y, at = pending.pop(key)
                    if pw:
                        _merge(pending, (key[0], key[1], 0), (pw, 0, y, at))
            if n in self.flow.drained:
                recent.clear()
                pending.clear()
            if len(recent) > REACH:
                recent = {m: v for m, v in recent.items() if clock - v[0] < REACH}
        return _State(
            {m: (clock - at, live) for m, (at, live) in recent.items() if clock - at < REACH},
            {key: (w, r, y, min(clock - at, REACH)) for key, (w, r, y, at) in pending.items()},
            [min(clock - at, REACH) for at in raised],
            frozenset(stale & {key[0] for key in pending}),
        )

    def _wait(
        self, n: int, node: Node, recent: _Recent, pending: _Pending, raised: list[int], clock: int, judge: bool
    ) -> None:
        early = (
            sum(1 << k for k in range(6) if clock - raised[k] < 2) if node.op != "DEPBAR" else 0
        )  # measured: LDCU, DEPBAR one cycle later on sm_100
        mask = node.ctl.wait & ~early
        early &= node.ctl.wait
        for m in [m for m in recent if self.nodes[m].ctl.wr != 7 and mask >> self.nodes[m].ctl.wr & 1]:
            del recent[m]  # signalled although the tables call it fixed (measured: IMMA.16832 on sm_103)
        board, left = node.depbar if node.depbar is not None else (-1, 0)
        for key in list(pending):
            m, by_w, by_r = key
            w, r, younger, at = pending[key]
            done_w = by_w & mask
            done_r = by_r & mask
            if judge and (by_w | by_r) & early and clock - at < 2:
                self._add(
                    "set", -1, m, n, 2, clock - at, "waited for less than 2 cycles after it was set", "documented"
                )
            if board >= 0 and younger >= left and (left == 0 or self.nodes[m].in_turn):
                done_w |= by_w & 1 << board
                done_r |= by_r & 1 << board
            if done_w:
                del pending[key]
            elif done_r:
                del pending[key]
                if w:
                    pending[(m, by_w, 0)] = (w, 0, younger, at)

    def _issue(self, n: int, node: Node, recent: _Recent, pending: _Pending, raised: list[int], clock: int) -> None:
        if node.fixed_w or node.fixed_r:
            recent[n] = (clock, node.fixed_w)
        elif n in recent:
            del recent[n]
        c = node.ctl
        bits_w = 1 << c.wr if c.wr != 7 else node.group
        bits_r = 1 << c.rd if c.rd != 7 else node.group
        both = bits_w | bits_r
        if both:
            for key in list(pending):
                m, by_w, by_r = key
                earlier = self.nodes[m]
                w, r, younger, at = pending[key]
                if (by_w | by_r) & both:
                    younger = min(younger + 1, YOUNGEST)
                if bits_w and node.wq and earlier.wq == node.wq and not by_w and w:
                    by_w |= bits_w
                if r and (
                    node.rq and earlier.rq == node.rq or earlier.rq == "memory" and node.access.klass in BEHIND_MEMORY
                ):
                    by_r |= both
                del pending[key]
                _merge(pending, (m, by_w, by_r), (w, r, younger, at))
            for k in bit_indices(both):
                raised[k] = clock
        if not both and c.stall == 0:
            return  # with a drain and no scoreboard it is done before the next one (all code of ptxas 13.5 at -O0)
        if node.slow_w & ACQUIRED:
            # the CCTL of an acquire waits only for its own access (measured after weak, relaxed, volatile loads and
            # atomics)
            _forget(pending, ACQUIRED)
        if node.slow_w or node.slow_r:
            _merge(pending, (n, bits_w, bits_r), (node.slow_w, node.slow_r, 0, clock))
        if node.early_w:
            _merge(pending, (n, both, 0), (node.early_w, 0, 0, clock))
        signals = both if node.access.klass != "syncs" else bits_w
        if node.signal and (signals or node.access.klass == "fence"):
            _merge(pending, (n, signals, 0), (node.signal, 0, 0, clock))
        if node.access.klass == "membar" or node.op in ("UCGABAR_ARV", "UCGABAR_WAIT"):
            # CCTL waits for loads, but not for those before a MEMBAR or a barrier of the cluster; nothing after the
            # latter waits for what precedes its MEMBAR (all measured).
            behind = BEFORE_WRITES if node.access.klass == "membar" else 0
            for key, (w, r, younger, at) in list(pending.items()):
                if w & (LOADED | BEFORE_WRITES):
                    kept = w & ~(LOADED | BEFORE_WRITES | ACQUIRED) | behind
                    if kept | r:
                        pending[key] = (kept, r, younger, at)
                    else:
                        del pending[key]

    # -- rules ----------------------------------------------------------------------------------------------------

    def _judge(self, n: int, node: Node, recent: _Recent, pending: _Pending, stale: set[int], clock: int) -> None:
        r, w = node.r, node.w
        for m, (at, live) in recent.items():
            if clock - at >= REACH:
                continue
            first = self.nodes[m]
            for kind, cells in (("raw", live & r), ("waw", first.fixed_w & w), ("war", first.fixed_r & w)):
                for cell in bit_indices(cells) if cells else ():
                    need = self.h.between(kind, first.access, node.access, cell)
                    if (
                        need is not None
                        and clock - at < need.cycles
                        and clock - at < relaxed(kind, first.access, first.op, node.access, node.op, self.h.sm, cell)
                    ):
                        self._add(
                            kind, cell, m, n, need.cycles, clock - at, self._rule(kind, first, node, cell), need.source
                        )
        for (m, by_w, by_r), (results, reads, _, at) in pending.items():
            first = self.nodes[m]
            if not by_w and first.access.klass == "dmma" and clock - at >= DMMA_OVER:
                continue
            if self._either(m, node, stale):
                continue  # @P and @!P of the same value: only one of them runs (measured: MUFU and FFMA on sm_75)
            if results & ORDER and _independent(first, node):
                results &= ~ORDER
            hit = results & (r if first.wq == node.wq and node.wq in WRITE_IN_ORDER else r | w)
            if first.wq == node.wq == "gmma":
                hit &= ~w  # products with the same accumulators are computed in order
            if hit:
                told = (
                    f"its result is in flight, signalled by {_scoreboards(by_w)}"
                    if by_w
                    else "its result needs a scoreboard and has none"
                )
                cell = bit_indices(hit)[0]
                self._add("wait" if by_w else "silent", cell, m, n, 2, clock - at, told, "measured")
            hit = reads & w & ~results
            if hit and not self._in_turn(first, node):
                by = by_w | by_r
                told = (
                    f"it may still read this, signalled by {_scoreboards(by)}"
                    if by
                    else "it may still read this, without a scoreboard"
                )
                self._add("wait" if by else "silent", bit_indices(hit)[0], m, n, 2, clock - at, told, "measured")

        self._rules(n, node, pending, clock)

    def _rules(self, n: int, node: Node, pending: _Pending, clock: int) -> None:
        """Rules about one place: the least stall after it, scoreboards that are up when control leaves the section."""
        least = self.h.floor(node.access.klass) if node.paced else 0
        if 0 < node.ctl.stall < least:
            source = "measured"
            self._add(
                "stall",
                -1,
                n,
                n,
                least,
                node.ctl.stall,
                f"stall {node.ctl.stall}, {least} needed after {node.op}",
                source,
            )
        if node.reused & node.w:
            told = "its operand is kept for the next instruction, and it overwrites that register"
            self._add("reuse", bit_indices(node.reused & node.w)[0], n, n, 0, 0, told, "measured")
        if n in self.flow.leaving:
            for (m, by_w, by_r), (results, reads, _, at) in pending.items():
                if self._either(m, node, set()):
                    continue
                told = _scoreboards(by_w | by_r) or "no scoreboard"
                cell = bit_indices(results | reads)[0]
                self._add(
                    "call",
                    cell,
                    m,
                    n,
                    2,
                    clock - at,
                    f"in flight when control leaves this code, signalled by {told}",
                    "documented",
                )

    def _either(self, m: int, node: Node, stale: set[int]) -> bool:
        """Whether the two instructions have the guards P and !P of the same value."""
        guard = self.nodes[m].guard
        return guard >= 0 and node.guard == guard ^ 1 and m not in stale

    def _in_turn(self, first: Node, second: Node) -> bool:
        """Whether the order of their pipe makes the later result come after the earlier instruction has read its
        registers."""
        return second.slow_w != 0 and (
            first.rq == "memory" and second.access.klass in BEHIND_MEMORY or (first.rq != "" and first.rq == second.rq)
        )

    def _rule(self, kind: str, first: Node, second: Node, cell: int) -> str:
        one = [
            name if kind != "war" else reader
            for at, name, reader in (first.access.reads if kind == "war" else first.access.writes)
            if at == cell
        ]
        two = [
            role if kind == "raw" else group
            for at, role, group in (second.access.reads if kind == "raw" else second.access.writes)
            if at == cell
        ]
        return f"{kind} {'/'.join(dict.fromkeys(one))} -> {'/'.join(dict.fromkeys(two))} on sm_{self.h.sm}"

    def _add(
        self, kind: str, cell: int, earlier: int, later: int, need: int, have: int, rule: str, source: str
    ) -> None:
        key = (kind, earlier, later)
        if key not in self.found:
            name = "-" if cell < 0 else "memory" if 1 << cell >= ORDER else cell_name(cell)
            self.found[key] = Finding(
                kind,
                name,
                self._text(earlier),
                self._text(later),
                need,
                have,
                rule,
                source,
                self.name,
                self.items[later].pc,
                0,
            )


def _independent(first: Node, node: Node) -> bool:
    """Whether an instruction that waits for memory need not wait for this one (all measured). Operations on barrier
    objects are done in the order of shared accesses (STS, LDS after EXCH and ARRIVE, also at the same address, on sm_90
    to sm_120), and so are fences (FENCE after EXCH, FENCE.VIEW.ASYNC.S after .T on sm_100). A barrier does not wait for
    registers given back."""
    if first.op == "SYNCS":
        return node.op == "FENCE" or node.access.klass in PLAIN
    if first.op == "FENCE":
        return node.op == "FENCE"
    return first.access.klass == "setregd" and node.op == "BAR"


def _merge(pending: _Pending, key: _Key, new: tuple[int, int, int, int]) -> None:
    old = pending.get(key)
    w, r, younger, at = new
    pending[key] = new if old is None else (w | old[0], r | old[1], min(younger, old[2]), max(at, old[3]))


def _forget(pending: _Pending, cells: int) -> None:
    """Drop cells from all results in flight."""
    for key, (w, r, younger, at) in list(pending.items()):
        if w & cells:
            if w & ~cells | r:
                pending[key] = (w & ~cells, r, younger, at)
            else:
                del pending[key]


def _scoreboards(bits: int) -> str:
    return " or ".join("gsb0" if k == GROUPS else f"SB{k}" for k in bit_indices(bits))


def _with_lines(cubin: Cubin, findings: list[Finding]) -> list[Finding]:
    """The findings with the PTX line of the later instruction, if the cubin has line tables."""
    line = line_finder(cubin)
    return [f._replace(line=line(f".text.{f.section}", f.pc)) for f in findings]


def check_cubin(cubin: Cubin) -> Report:
    """Judge every code section. Raises CubinError or CompileError for a file or an SM that cannot be judged at all."""
    h = hazards(cubin.sm)
    tables = branch_tables(cubin.data)
    findings: list[Finding] = []
    unjudged: list[str] = []
    count = 0
    for section in cubin.sections:
        walk = _Walk(section, h, tables.get(section.name, {}))
        findings += walk.run()
        unjudged += walk.unjudged
        count += len(walk.items)
    return Report(_with_lines(cubin, findings) if findings else findings, unjudged, count)


def check_bytes(data: bytes) -> Report:
    """:func:`check_cubin` of a file's bytes."""
    return check_cubin(read_cubin(data))
