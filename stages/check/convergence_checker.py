"""Static check of reconvergence: convergence barriers over all paths of a cubin's code.

Written independently of lowering: it reads only machine code. Forward dataflow over each function. The state at a place
is a set of *paths* that reach it. Each path has the convergence barriers that are open on it (B register and the BSSY
that opened it, in the order of opening), the B registers that no longer hold the caller's value, the registers that
save a B register of the caller (BMOV), and the value of the predicate of a guarded BREAK up to the branch after it. A
path is small, and places have few of them: 1 in nearly all code. A function with more than :data:`PATHS` at a place
is not judged.

Rules, by the name of their finding (ptxas 13.0's code obeys all of them on every path, see docs/judges.md):

* ``unset``: BSYNC or BREAK of a barrier that is not open;
* ``overwritten``: BSSY or BMOV of a barrier that is open;
* ``target``: BSSY names no BSYNC of its register (ptxas names the instruction after it);
* ``elsewhere``: BSYNC of a barrier whose BSSY names another place;
* ``kind``: BSSY and BSYNC of one barrier differ in .RECONVERGENT or .RELIABLE;
* ``nesting``: BSYNC while a barrier that was opened later is still open: threads wait at both;
* ``left``: waiting (BAR, WARPSYNC, another BSYNC) or returning with an open barrier whose BSYNC is no longer reachable,
  without BREAK;
* ``barrier``: a barrier of all threads of the block inside a region, when some of its threads reached the end of the
  region without such a barrier and wait there;
* ``spin``: a loop that yields to others (YIELD) while a barrier that all members must reach (.RECONVERGENT) stays open
  across iterations;
* ``call``: an open barrier in a register that the called function overwrites;
* ``saved``: a function returns without what its caller had in a B register that calls keep.

If threads wait at a WARPSYNC, and others at a BSYNC that the first have left without BREAK or may not have reached,
the warp continues only if WARPSYNC releases those at the BSYNC. ptxas relies on this on every SM (an early return
before a vote, a shuffle or a barrier is enough), so these places are *notes*, not findings. Our code has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ir_format import isa
from ir_format.flow import ENDS, JUMPS, is_guarded
from ir_format.isa import facts
from ir_format.model import ZERO, Imm, Name, Reg
from stages.check.convergence_ahead import Ahead
from stages.check.convergence_path import Node, Open, Path, guard_of, partial, predicate, split_by, successors, tests_of
from stages.check.convergence_uniform import uniform_branches
from stages.check.schedule_flow import branch_tables, line_finder
from stages.disasm.cubin import WORD, CodeSection, Cubin, read_cubin
from stages.disasm.listing import decode_section

#: Most paths to one place that are kept separately.
PATHS: Final = 64
#: B registers that calls to outside code preserve (measured: ptxas saves these with BMOV before it uses them in a
#: function, and holds barriers in them across calls).
KEPT: Final = 0xFFC0
#: Instructions that name a convergence barrier, and others that matter: warp synchronisation, calls, YIELD.
_NAMING: Final = facts.with_value("ctl", "bssy", "bsync", "break") | facts.of_class("bmov")
_MEETING: Final = facts.with_value("ctl", "call", "ret") | facts.of_class("bar") | {"WARPSYNC"}
_TOUCHING: Final = _NAMING | _MEETING | {"YIELD"}
_FIRM: Final = frozenset(("RECONVERGENT", "RELIABLE"))


class Finding(NamedTuple):
    """One broken rule; ``first``: the BSSY concerned (or the place itself), ``second``: the place, whose address is
    ``pc``."""

    kind: str
    first: str
    second: str
    why: str
    section: str
    pc: int
    line: int

    def __str__(self) -> str:
        at = f" (PTX line {self.line})" if self.line else ""
        places = f"    {self.first}\n    {self.second}" if self.first != self.second else f"    {self.second}"
        return f"{self.section.removeprefix('.text.')}: convergence, {self.kind}{at}: {self.why}\n{places}"


class Report(NamedTuple):
    """Findings, what could not be judged (text), and notes: WARPSYNCs that must release threads at a BSYNC."""

    findings: list[Finding]
    unjudged: list[str]
    notes: list[Finding] = []


class _Function:
    """One function of a section: its instructions from the entry on. Calls are stepped over, not into."""

    def __init__(self, code: _Section, entry: int) -> None:
        self.code = code
        self.entry = entry
        self.order: list[int] = []
        self.overflow = False
        self.returned = 0  # B registers that do not hold the caller's barrier at a return
        self.calls: set[int] = set()
        self.together: set[int] = (
            set()
        )  # branches whose predicate is the same in all threads of a warp; computed only when there is a finding
        self._walk()

    def _walk(self) -> None:
        """Find the basic blocks reachable from the entry, and their successors."""
        code = self.code
        seen: set[int] = set()
        work = [self.entry]
        leaders = {self.entry}
        while work:
            n = work.pop()
            while n not in seen and n < len(code.items):
                seen.add(n)
                out = code.succs[n]
                if n in code.called:
                    self.calls.add(code.called[n])
                if out != (n + 1,):
                    leaders.update(out)
                    work += [s for s in out if s not in seen]
                    break
                n += 1
        joins: dict[int, int] = {}
        for n in seen:
            for s in code.succs[n]:
                joins[s] = joins.get(s, 0) + 1
        leaders.update(n for n, k in joins.items() if k > 1)
        self.order = sorted(seen)
        self.blocks: dict[int, list[int]] = {}
        run: list[int] = []
        for n in self.order:
            if n in leaders or not run or run[-1] + 1 != n:
                run = self.blocks[n] = []
            run.append(n)
        self.ahead = Ahead(self.blocks, code.succs, code.nodes, code.whole_block)

    def judge(self) -> None:
        """Follow all paths through the function; findings are added to the section."""
        code = self.code
        paths: dict[int, dict[Path, None]] = {self.entry: {Path(): None}}
        work = [(self.entry, Path())]
        while work:
            b, path = work.pop()
            now = [path]
            run = self.blocks[b]
            for n in run[:-1]:
                now = [x for w in now for x in self.step(n, w)]
            for w in now:
                for s, x in self.leave(run[-1], w):
                    there = paths.setdefault(s, {})
                    if x in there or s not in self.blocks:
                        continue
                    if len(there) >= PATHS:
                        self.overflow = True
                        continue
                    there[x] = None
                    work.append((s, x))
        if self.overflow:
            code.unjudged.append(
                f"{code.name}: {code.text(self.entry)}: convergence barriers: more than {PATHS} paths lead to one place"
            )

    # --- steps ---

    def step(self, n: int, path: Path) -> Iterable[Path]:
        """The paths after an instruction that does not branch."""
        code = self.code
        if path.fact is not None or path.saved:
            path = self._forget(n, path)
        node = code.nodes.get(n)
        if node is None:
            return (path,)
        acts, stays = split_by(path, node.tests)
        out = [self.act(n, node, acts)] if acts is not None else []
        if stays is not None:
            out.append(stays)
        return out

    def leave(self, n: int, path: Path) -> Iterator[tuple[int, Path]]:
        """The successors of a block's last instruction, with the path to each."""
        code = self.code
        succs = code.succs[n]
        inst = code.items[n].inst
        if inst is None or inst.op not in (*JUMPS, *ENDS, "CALL") or (len(succs) < 2 and inst.op not in ENDS):
            for x in self.step(n, path):
                for s in succs:
                    yield s, x
            return
        node = code.nodes.get(n)
        if inst.op in ENDS:
            acts, stays = split_by(path, tests_of(inst))
            if acts is not None and node is not None:
                self.act(n, node, acts)
            if stays is not None:
                for s in succs:
                    yield s, stays._replace(fact=None)
            return
        whole = "DIV" in inst.mods or "CONV" in inst.mods or inst.op not in ("BRA", "CALL")
        acts, stays = split_by(path, () if whole else tests_of(inst))
        uniform = "U" in inst.mods or whole or all(p >= 16 for p, _ in tests_of(inst)) or n in self.together
        target = code.items[n].target // WORD
        for s in succs:
            mine = path if whole else stays if s == n + 1 and s != target else acts
            if mine is None:
                continue
            if not uniform and mine.open:
                waiting = self.ahead.waiting([other for other in succs if other != s], mine.open)
                if waiting:
                    mine = mine._replace(
                        open=tuple(o._replace(waited=True) if o.k in waiting else o for o in mine.open)
                    )
            if n in self.together and mine.open:
                # the whole group leaves at once: none of its threads waits at a BSYNC that is no longer reachable
                live = self.ahead.reached(s)
                mine = mine._replace(open=tuple(o for o in mine.open if o.waited or live >> o.k & 1))
            yield s, mine._replace(fact=None)

    def _forget(self, n: int, path: Path) -> Path:
        """Drop facts about what an instruction overwrites."""
        inst = self.code.items[n].inst
        if inst is None:
            return path._replace(fact=None, saved=())
        for o in inst.dsts:
            if type(o) is not Reg or o.num == ZERO:
                continue
            if path.fact is not None and o.file in ("P", "UP") and any(p == predicate(o)[0] for p, _ in path.fact[0]):
                path = path._replace(fact=None)
            if o.file == "R" and path.saved:
                path = path._replace(saved=tuple(x for x in path.saved if not o.num <= x[0] < o.num + max(o.width, 1)))
        return path

    def act(self, n: int, node: Node, path: Path) -> Path:
        """The effect of an instruction if its predicates are true."""
        match node.op:
            case "BSSY":
                return self._opened(n, node, path)
            case "BSYNC":
                return self._closed(n, node, path)
            case "BREAK":
                return self._broken(n, node, path)
            case "BMOV":
                return self._moved(n, node, path)
            case "BAR" | "WARPSYNC":
                return self._waits(n, node, path)
            case "CALL":
                self._called(n, path)
            case "RET":
                self._returns(n, path)
            case "YIELD":
                self._yields(n, path)
        return path

    def _opened(self, n: int, node: Node, path: Path) -> Path:
        for o in path.open:
            if o.k == node.b:
                self.code.add(
                    "overwritten",
                    o.site,
                    n,
                    f"B{o.k} is open on a path to here and is set again: nothing waits for its threads any more",
                )
        kept = tuple(o for o in path.open if o.k != node.b)
        return path._replace(
            open=(*kept, Open(node.b, n, False)), touched=path.touched | 1 << node.b, gone=path.gone & ~(1 << node.b)
        )

    def _closed(self, n: int, node: Node, path: Path) -> Path:
        code = self.code
        mine = next((o for o in path.open if o.k == node.b), None)
        if mine is None:
            if (
                not path.gone >> node.b & 1
                # a thread that has left does not wait (measured: ptxas lets threads that leave a loop by BREAK pass its
                # BSYNC)
            ):
                code.add("unset", n, n, f"B{node.b} is not set on every path to here")
            return path
        meeting = code.meeting(mine.site)
        if meeting >= 0 and meeting != n:
            code.add("elsewhere", mine.site, n, f"B{node.b} was set for another reconvergence point")
        if node.mods & _FIRM != code.nodes[mine.site].mods & _FIRM:
            code.add("kind", mine.site, n, "the barrier is opened as one kind and waited on as another")
        for o in path.open[path.open.index(mine) + 1 :]:
            code.add(
                "nesting",
                o.site,
                n,
                f"threads wait here while B{o.k}, set later, is still open: others wait for them there",
            )
        self._stranded(n, path, node.b)
        return path._replace(open=tuple(o for o in path.open if o is not mine))

    def _broken(self, n: int, node: Node, path: Path) -> Path:
        code = self.code
        mine = next((o for o in path.open if o.k == node.b), None)
        if mine is None:
            if not path.gone >> node.b & 1:
                code.add("unset", n, n, f"B{node.b} is left here, but it is not set on every path to here")
            return path
        stay = self.ahead.left(code.meeting(mine.site), path.open)
        kept = tuple(o._replace(waited=True) if o.k in stay else o for o in path.open if o is not mine)
        return path._replace(open=kept, gone=path.gone | 1 << node.b)

    def _moved(self, n: int, node: Node, path: Path) -> Path:
        inst = self.code.items[n].inst
        assert inst is not None
        if any(type(o) is Name for o in (*inst.dsts, *inst.srcs)):  # a mask of the warp
            return path
        mine = next((o for o in path.open if o.k == node.b), None)
        register = next((o for o in (*inst.dsts, *inst.srcs) if type(o) is Reg and o.file == "R"), None)
        number = register.num if register is not None and register.num != ZERO else -1
        if inst.dsts and type(inst.dsts[0]) is Reg and inst.dsts[0].file == "B":
            # to the barrier: restores the caller's, from a register or from the stack
            if mine is not None:
                self.code.add("overwritten", mine.site, n, f"B{node.b} is open on a path to here and is overwritten")
            held = next((k for r, k in path.saved if r == number), node.b)
            touched = path.touched & ~(1 << node.b) if held == node.b else path.touched | 1 << node.b
            return path._replace(open=tuple(o for o in path.open if o is not mine), touched=touched)
        saved = path.saved
        if number >= 0 and not path.touched >> node.b & 1:
            saved = (*saved, (number, node.b))
        if "CLEAR" in node.mods:
            if mine is not None:
                self.code.add("overwritten", mine.site, n, f"B{node.b} is open on a path to here and is emptied")
            return path._replace(
                saved=saved, touched=path.touched | 1 << node.b, open=tuple(o for o in path.open if o is not mine)
            )
        return path._replace(saved=saved)

    def _waits(self, n: int, node: Node, path: Path) -> Path:
        if "ARV" in node.mods or not path.open:
            return path
        if node.op == "WARPSYNC":
            return self._warpsync(n, path)
        self._stranded(n, path, -1)
        if not self.code.whole_block(n):
            return path
        for o in path.open:
            if o.waited:
                self.code.add(
                    "barrier",
                    o.site,
                    n,
                    f"a barrier of the whole block, while threads that passed none may wait at the BSYNC of B{o.k}",
                )
        return path._replace(open=tuple(o._replace(waited=False) for o in path.open))

    def _warpsync(self, n: int, path: Path) -> Path:
        """WARPSYNC: threads at a BSYNC that wait for threads that are here are released; none remain if all are
        here."""
        live = self.ahead.live.get(n, 0xFFFF)
        whole = self.code.whole_warp(n)
        kept = []
        for o in path.open:
            gone = not live >> o.k & 1
            if gone or (whole and o.waited):
                self.code.note(o.site, n, f"threads wait here, others at the BSYNC of B{o.k}")
            if not gone:
                kept.append(o._replace(waited=o.waited and not whole))
        left = sum(1 << o.k for o in path.open if not live >> o.k & 1)
        return path._replace(open=tuple(kept), gone=path.gone | left)

    def _stranded(self, n: int, path: Path, but: int) -> None:
        """Report open barriers whose BSYNC is not reachable from here."""
        live = self.ahead.live.get(n, 0xFFFF)
        for o in path.open:
            if o.k != but and not live >> o.k & 1:
                self.code.add(
                    "left",
                    o.site,
                    n,
                    f"threads have left the region of B{o.k} without BREAK and wait here, others at its BSYNC",
                )

    def _called(self, n: int, path: Path) -> None:
        code = self.code
        lost = code.clobbers.get(code.called[n], 0) if n in code.called else 0xFFFF & ~KEPT
        for o in path.open:
            if lost >> o.k & 1:
                code.add("call", o.site, n, f"B{o.k} is open over a call that overwrites it")

    def _returns(self, n: int, path: Path) -> None:
        self.returned |= path.touched
        for o in path.open:
            self.code.add("left", o.site, n, f"the function returns while B{o.k} is open")
        lost = path.touched & KEPT
        if lost and self.entry in self.code.exported:
            self.code.add("saved", n, n, f"the function returns without its caller's value in B{lost.bit_length() - 1}")

    def _yields(self, n: int, path: Path) -> None:
        for o in path.open:
            if "RECONVERGENT" in self.code.nodes[o.site].mods and self.code.in_loop(n, o.site):
                self.code.add(
                    "spin",
                    o.site,
                    n,
                    f"a loop yields to threads at B{o.k}, which releases none until all have arrived (.RECONVERGENT)",
                )


class _Section:
    """The code of a section."""

    def __init__(self, section: CodeSection, spec: isa.Target, tables: dict[int, tuple[int, ...]]) -> None:
        self.name = section.name
        self.items = decode_section(section, spec)
        self.findings: dict[tuple[str, int, int], Finding] = {}
        self.notes: dict[tuple[int, int], Finding] = {}
        self.unjudged: list[str] = []
        self.nodes: dict[int, Node] = {}
        self.called: dict[int, int] = {}
        self.succs: list[tuple[int, ...]] = []
        count = len(self.items)
        starts = {at // WORD for at, _, _, _ in section.symbols if at // WORD < count} | {0}
        for n, item in enumerate(self.items):
            inst = item.inst
            if inst is not None and inst.op == "CALL" and item.target >= 0 and item.target // WORD not in starts:
                # A call of no function is a jump that never returns (measured: ptxas leaves a loop that yields so, on
                # sm_80).
                self.succs.append(
                    tuple(
                        s
                        for s in ((item.target // WORD, n + 1) if is_guarded(inst) else (item.target // WORD,))
                        if s < count
                    )
                )
                continue
            if inst is not None and inst.op in _TOUCHING:
                b = next((o.num for o in (*inst.dsts, *inst.srcs) if type(o) is Reg and o.file == "B"), -1)
                tests = tests_of(inst) if inst.op not in _MEETING else guard_of(inst)
                self.nodes[n] = Node(
                    inst.op, b, tests, frozenset(inst.mods), item.target // WORD if item.target >= 0 else -1
                )
                if inst.op == "CALL" and item.target >= 0:
                    self.called[n] = item.target // WORD
            self.succs.append(successors(n, item, tables, count))
        self.exported = {at // WORD for at, _, _, exported in section.symbols if exported}
        self.clobbers: dict[int, int] = {}
        self.functions = {entry: _Function(self, entry) for entry in sorted(starts | set(self.called.values()))}

    def run(self) -> None:
        """Judge every function; again if a function that it calls turns out to overwrite more."""
        for n, node in self.nodes.items():
            if node.op == "BSSY" and self.meeting(n) < 0:
                self.add("target", n, n, f"no BSYNC of B{node.b} is at the reconvergence point that it names")
        if all(node.op not in _NAMING for node in self.nodes.values()):
            return
        todo = list(self.functions)
        while todo:
            function = self.functions[todo.pop()]
            before, noted = dict(self.findings), dict(self.notes)
            function.judge()
            more = len(self.findings) > len(before) or len(self.notes) > len(noted)
            if more and not function.together:
                function.together = uniform_branches(self.items, function.blocks, self.succs, function.entry)
                # a group that leaves a region as a whole needs no BREAK (measured: ptxas emits none)
                if function.together:
                    self.findings, self.notes = before, noted
                    function.judge()
            lost = function.returned
            for entry in function.calls:
                lost |= self.clobbers.get(entry, 0) & ~KEPT
            if lost | self.clobbers.get(function.entry, 0) != self.clobbers.get(function.entry, 0):
                self.clobbers[function.entry] = lost | self.clobbers.get(function.entry, 0)
                todo += [e for e, f in self.functions.items() if function.entry in f.calls and e not in todo]

    def meeting(self, site: int) -> int:
        """The BSYNC that a BSSY names, -1 if there is none: the instruction before its target, or the target itself."""
        node = self.nodes[site]
        for n in (node.target - 1, node.target):
            other = self.nodes.get(n)
            if other is not None and other.op == "BSYNC" and other.b == node.b:
                return n
        return -1

    def whole_block(self, n: int) -> bool:
        """Whether the instruction waits for all threads of the block: BAR.SYNC, BAR.RED without a count."""
        inst = self.items[n].inst
        if inst is None or inst.op != "BAR" or "ARV" in inst.mods:
            return False
        values = [
            o for o in (*inst.dsts, *inst.srcs) if type(o) is Imm or (type(o) is Reg and o.file not in ("P", "UP"))
        ]
        return len(values) < 2 or (type(values[1]) is Imm and values[1].value == 0)

    def whole_warp(self, n: int) -> bool:
        """Whether a WARPSYNC waits for all threads of the warp."""
        inst = self.items[n].inst
        if inst is None or inst.op != "WARPSYNC" or partial(self.items[n + 1 : n + 64]):
            return False
        return "ALL" in inst.mods or any(type(o) is Imm and o.value & 0xFFFFFFFF == 0xFFFFFFFF for o in inst.srcs)

    def in_loop(self, n: int, site: int) -> bool:
        """Whether the instruction can reach itself again without passing ``site`` or a BRA.DIV: that goes on with all
        threads of a vote or shuffle, so that none of them waits elsewhere (ptxas's look-back loop in CUB's scan)."""
        seen: set[int] = set()
        work = list(self.succs[n])
        while work:
            m = work.pop()
            if m == n:
                return True
            inst = self.items[m].inst if m < len(self.succs) else None
            if m in seen or m == site or m >= len(self.succs):
                continue
            if inst is not None and inst.op == "BRA" and "DIV" in inst.mods:
                continue
            seen.add(m)
            work += self.succs[m]
        return False

    def text(self, n: int) -> str:
        """An instruction with its address."""
        item = self.items[n]
        return f"{item.pc:#06x} {item.text}"

    def add(self, kind: str, first: int, second: int, why: str) -> None:
        """Add a finding, one for each pair of places."""
        key = (kind, first, second)
        if key not in self.findings:
            self.findings[key] = Finding(
                kind, self.text(first), self.text(second), why, self.name, self.items[second].pc, 0
            )

    def note(self, first: int, second: int, why: str) -> None:
        """Add a place that is right only if WARPSYNC releases threads at a BSYNC."""
        self.notes[first, second] = Finding(
            "warpsync", self.text(first), self.text(second), why, self.name, self.items[second].pc, 0
        )


def check_cubin(cubin: Cubin, tables: dict[str, dict[int, tuple[int, ...]]]) -> Report:
    """Judge every function of a cubin; ``tables``: targets of its indirect branches (:func:`branch_tables`)."""
    spec = isa.target(cubin.sm)
    findings: list[Finding] = []
    unjudged: list[str] = []
    notes: list[Finding] = []
    for section in cubin.sections:
        code = _Section(section, spec, tables.get(f".text.{section.name.removeprefix('.text.')}", {}))
        code.run()
        findings += code.findings.values()
        unjudged += code.unjudged
        notes += code.notes.values()
    if findings or notes:
        line = line_finder(cubin)
        findings = [f._replace(line=line(f.section, f.pc)) for f in findings]
        notes = [f._replace(line=line(f.section, f.pc)) for f in notes]
    return Report(findings, unjudged, notes)


def check_bytes(data: bytes) -> Report:
    """:func:`check_cubin` of a file's bytes."""
    return check_cubin(read_cubin(data), branch_tables(data))
