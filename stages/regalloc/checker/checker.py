"""Register-allocation checker: every use in the allocated unit must read the value of the virtual program.

The checker is symbolic, like regalloc2's, and shares no code with the allocator. It takes only two hints from it, which
align the two programs. ``attrs["ra"]`` marks inserted instructions; if a mark is wrong, an original instruction is
missing, which is a finding. The section ``regalloc`` lists original instructions that vanished; this is accepted only
for instructions that can be rematerialized: a constant, a parameter, a special register.

Both programs are executed side by side, block by block, over value numbers. A *place* is a physical register or a word
of the frame; a *cell* is a component of a virtual register. At a block boundary the state holds, for every place, the
cells that it holds on all paths. Where paths meet, states are intersected, up to a fixed point. A virtual value that no
path defines may be anything, and so may its register.

The checker does not see warp-level effects on uniform registers in divergent code, nor user code that writes outside of
its frame.
"""

from __future__ import annotations

from ir_format.flow import Cfg, build_cfg, liveness
from ir_format.model import AttrValue, Imm, Inst, Sym, Unit
from ir_format.target import STACK_REG
from ir_format.typed import Final, TypeAlias
from stages.regalloc.checker.execute import ABI_PRESERVED, Executor, Finding
from stages.regalloc.checker.values import Names, Place, State, constant_words, join

PSEUDO: Final = ("COPY", "PCOPY", "UNDEF", "FENTRY")


Pair: TypeAlias = (
    "tuple[Inst | None, Inst | None]"  # (virtual, physical): pseudo, inserted, or an original in both forms
)


class FunctionChecker(Executor):
    """Checks one function: aligns the two programs and finds the states that hold on all paths."""

    def line_up(self) -> list[list[Pair]] | None:
        """The aligned programs, block by block; None, with a finding, if they do not match."""
        self.quiet = False
        if [b.id for b in self.before.blocks] != [b.id for b in self.after.blocks]:
            self.report("the blocks are not the same")
            return None
        out: list[list[Pair]] = []
        number = 0
        for pos, (old, new) in enumerate(zip(self.before.blocks, self.after.blocks, strict=True)):
            self.pos = pos
            pairs: list[Pair] = []
            at = 0
            insts = new.insts
            for inst in old.insts:
                number += 1
                if inst.op in PSEUDO:
                    pairs.append((inst, None))
                    continue
                if inst.attrs and "frame" in inst.attrs and not self.after.frame:
                    continue
                if number - 1 in self.gone:
                    if constant_words(inst) is None:
                        self.line = inst.line
                        self.report(f"{inst.op} vanished and can't be made again")
                        return None
                    pairs.append((inst, None))
                    continue
                while at < len(insts) and _inserted(insts[at]):
                    pairs.append((None, insts[at]))
                    at += 1
                if at >= len(insts):
                    self.line = inst.line
                    self.report(f"{inst.op} is missing")
                    return None
                pairs.append((inst, insts[at]))
                at += 1
            for inst in insts[at:]:
                if not _inserted(inst):
                    self.index, self.line = at, inst.line
                    self.report(f"{inst.op} is not in the virtual program")
                    return None
                pairs.append((None, inst))
            out.append(pairs)
        return out

    # ------------------------------------------------------------------ the fixed point

    def run(self) -> None:
        """Check the function; findings in ``findings``."""
        paired = self.line_up()
        if paired is None:
            return
        cfg = build_cfg(self.before)
        if build_cfg(self.after).succs != cfg.succs:
            self.report("the control flow is not the same")
            return
        live = liveness(self.before, cfg, clip=False)
        live_out = [frozenset(live.members(bits)) for bits in live.live_out]
        exits: list[State | None] = [None] * len(paired)
        entries: list[State | None] = [None] * len(paired)
        self.quiet = True
        dirty = bytearray(b"\1") * len(paired)
        changed = True
        while changed:
            changed = False
            for pos in cfg.rpo:
                if not dirty[pos]:
                    continue
                dirty[pos] = 0
                entry = self._entry(cfg, exits, pos)
                entries[pos] = entry
                result = self._block(pos, entry, paired[pos], live_out[pos])
                old = exits[pos]
                if old is None or not old.same(result):
                    exits[pos] = result
                    for succ in cfg.succs[pos]:
                        dirty[succ] = 1
                        changed = True
        self.quiet = False
        for pos in cfg.rpo:
            entry_state = entries[pos]
            assert entry_state is not None
            self._block(pos, entry_state, paired[pos], live_out[pos])

    def _entry(self, cfg: Cfg, exits: list[State | None], pos: int) -> State:
        states = [s for s in (exits[p] for p in cfg.preds[pos]) if s is not None]
        if pos == 0:
            states.append(self._start())
        return join(states, self.predicates)

    def _start(self) -> State:
        holds: dict[Place, Names] = {}
        defined: set[int] = set()
        if self.before.kind != "entry":
            for number, vreg in enumerate(self.before.vregs):
                if vreg.fixed >= 0:  # an incoming argument, the return address, R1
                    for part in range(vreg.width):
                        place = (vreg.file, vreg.fixed + part)
                        cell = self.base[number] + part
                        holds[place] = holds.get(place, frozenset()) | {cell}
                        defined.add(cell)
            for file, n in sorted(self.named):
                holds[file, n] = holds.get((file, n), frozenset()) | {("entry", file, n)}
        undef = frozenset(c for c in range(self.count) if c not in defined)
        return State(holds, undef, frozenset(), {}, 0)

    def _block(self, pos: int, entry: State, pairs: list[Pair], live_out: frozenset[int]) -> State:
        self.pos = pos
        self.index = 0
        self._enter(entry)
        for old, new in pairs:
            inst = old if new is None else new
            assert inst is not None
            self.line = inst.line
            if old is None:
                assert new is not None
                self._inserted(new)
            elif new is None:
                self._pseudo(old)
            else:
                self._original(old, new)
            if new is not None:
                self.index += 1
        return self._leave(entry, live_out)


def _inserted(inst: Inst) -> bool:
    return inst.attrs is not None and "ra" in inst.attrs


def _gone(unit: Unit) -> dict[str, frozenset[int]]:
    section: AttrValue = unit.sections.get("regalloc", ())
    found: dict[str, frozenset[int]] = {}
    if isinstance(section, tuple):
        for entry in section:
            if (
                isinstance(entry, tuple)
                and len(entry) == 2
                and isinstance(entry[0], str)
                and isinstance(entry[1], tuple)
            ):
                found[entry[0]] = frozenset(n for n in entry[1] if isinstance(n, int))
    return found


def check_allocation(before: Unit, after: Unit) -> list[Finding]:
    """Check that ``after`` (level `allocated`) is a right allocation of ``before`` (level `ori`); returns the
    findings."""
    findings: list[Finding] = []
    if [f.name for f in before.functions] != [f.name for f in after.functions]:
        return [Finding(before.name, 0, 0, 0, "the functions are not the same")]
    gone = _gone(after)
    by_name = {f.name: (f, g) for f, g in zip(before.functions, after.functions)}
    preserved: dict[str, frozenset[Place]] = {}
    assumed: set[str] = {before.functions[0].name} if before.functions else set()
    for name in _callees_first(before, assumed):
        old, new = by_name[name]
        checker = FunctionChecker(old, new, gone.get(name, frozenset()), preserved)
        checker.run()
        findings.extend(checker.findings)
        kept = checker.preserved_places()
        if old.kind != "entry" and kept is not None:
            preserved[name] = kept
            if name in assumed:
                missing = sorted(p for p in ABI_PRESERVED if p not in kept and p != ("R", STACK_REG))
                if missing:
                    text = ", ".join(f"{f}{n}" for f, n in missing[:4])
                    findings.append(Finding(name, 0, 0, 0, f"does not preserve {text}"))
    return findings


def _callees_first(unit: Unit, assumed: set[str]) -> list[str]:
    """Function names, callees first; callees on a cycle join ``assumed``: their callers rely on the convention."""
    calls = {
        f.name: [o.name for b in f.blocks for i in b.insts if i.op == "CALL" for o in i.srcs if type(o) is Sym]
        for f in unit.functions
    }
    for func in unit.functions:
        for block in func.blocks:
            for inst in block.insts:
                for operand in inst.srcs:
                    if type(operand) is Imm and operand.sym in calls and operand.fmt != "ret":
                        assumed.add(operand.sym)
    done: dict[str, bool] = {}
    order: list[str] = []
    for root in calls:
        stack = [(root, iter(calls[root]))] if root not in done else []
        done.setdefault(root, False)
        while stack:
            name, rest = stack[-1]
            for target in rest:
                if target in calls and target not in done:
                    done[target] = False
                    stack.append((target, iter(calls[target])))
                    break
                if done.get(target) is False:
                    assumed.add(target)
            else:
                done[name] = True
                order.append(name)
                stack.pop()
    return order
