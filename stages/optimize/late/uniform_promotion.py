"""Words that a warp shares, for instructions that can read a uniform register: constant-bank words and block indices,
on targets whose arithmetic takes no constant operands (from sm_90 on).

Pre: a function at level `ori`. Post: the same values; a register that one LDC or S2R of a block index makes, and that
every reader can take from a uniform register, is one (ULDC or LDCU, S2UR), as ptxas has it. It costs no general
register then, and ULDC has a third of LDC's latency. Calls destroy uniform registers, but for those of functions of the
unit that have none (slow paths of divisions): where a function has such calls, the word is loaded in each block that
reads it, unless that is in a loop that the original load is not in.
"""

from __future__ import annotations

from ir_format.features import has
from ir_format.flow import Cfg, build_cfg, loop_depths, post_dominators
from ir_format.model import Const, Function, Inst, Mem, Name, Operand, Reg, Unit, VReg
from ir_format.target import target as find_target
from ir_format.typed import Final
from stages.analysis.abi import call_graph, callee, without_saves
from stages.analysis.divergence import blocks_of_divergent_paths, divergent_branches, divergent_paths
from stages.optimize.late.def_use import Place, insert, single_definitions, use_places
from stages.optimize.late.uniform_forms import UniformForms
from stages.plumbing.runner import Context

# words that may live over several blocks; there are 59 uniform registers, and barriers of divergent code keep them
# apart
_MOST: Final = 24
_COPIES: Final = ("COPY", "PCOPY", "UNDEF")

Use = tuple[int, int, Inst]  # a place and the instruction there


def promote_to_uniform(unit: Unit, ctx: Context) -> bool:
    """The pass."""
    if find_target(ctx.header.target).alu_const:
        return False
    sharers = [_Sharer(f, ctx) for f in unit.functions]
    if not any([s.find() for s in sharers]):
        return False
    harmless = _without_uniform_registers(unit, {s.f.name for s in sharers if s.words})
    for s in sharers:
        s.find_calls(harmless)
    if all(map(paths_reconverge, unit.functions)):
        return any([s.run() for s in sharers])
    if ctx.remarks is not None:
        why = "divergent threads do not reconverge where their paths do: uniform registers would be overwritten"
        for s in sharers:
            for num, (_, _, made) in s.words.items():
                s.say("missed", "ThreadsApart", num, made, f"uniform promotion blocked because {why}")
    return False


def _without_uniform_registers(unit: Unit, getting: set[str]) -> set[str]:
    """Functions of the unit that leave all uniform registers as they are; ``getting``: those that may get some yet."""
    exact = without_saves(unit)
    if not exact:
        return set()
    graph = call_graph(unit)
    found = {
        f.name
        for f in unit.functions
        if f.name in exact and f.name not in getting and not any([v.file in ("UR", "UP") for v in f.vregs])
    }
    while wrong := {name for name in found if not found.issuperset(graph[name])}:
        found -= wrong
    return found


def paths_reconverge(f: Function) -> bool:
    """Whether divergent threads reconverge at once where their paths do. If lowering found no place for a barrier
    (loops with several entries) they continue separately, and what one group of the warp writes to a uniform register
    the other may read in the midst of another use."""
    cfg = build_cfg(f)
    forks = divergent_branches(f, cfg)
    if not forks:
        return True
    join = post_dominators(cfg)
    for fork in forks:
        at = join[fork]
        if at < 0 or (at < len(f.blocks) and f.blocks[at].insts and f.blocks[at].insts[0].op not in ("BSYNC", "EXIT")):
            paths = divergent_paths(cfg, f.blocks, fork, -1)
            if len(paths) != 2 or paths[0] & paths[1]:  # the whole warp gathers before that
                return False
    return True


def convergent_blocks(f: Function, cfg: Cfg) -> set[int]:
    """Blocks that the whole warp executes at the same time."""
    forks = divergent_branches(f, cfg)
    return set(cfg.rpo) - blocks_of_divergent_paths(cfg, f.blocks, forks, post_dominators(cfg))


class _Sharer:
    """One function."""

    def __init__(self, f: Function, ctx: Context) -> None:
        self.f = f
        self.ctx = ctx
        self.form = UniformForms(ctx.header.target)
        self.relocated = bool(ctx.header.options.get("compile-only"))  # no relocation reaches a uniform load
        self.load = "LDCU" if has(find_target(ctx.header.target).sm, "uniform-const-load") else "ULDC"
        self.before: dict[Place, list[Inst]] = {}  # what to put there
        self.gone: set[int] = set()  # identities of replaced instructions
        self.words: dict[int, Use] = {}  # register -> the instruction that makes it
        self.calls: dict[int, list[int]] = {}  # the calls of each block that destroy uniform registers

    def find_calls(self, harmless: set[str]) -> None:
        """Fill ``calls``; ``harmless``: functions that destroy none."""
        for pos, block in enumerate(self.f.blocks):
            self.calls[pos] = [n for n, i in enumerate(block.insts) if i.op == "CALL" and callee(i) not in harmless]

    def find(self) -> bool:
        """Whether the function has such words."""
        self.words = self._words()
        return bool(self.words)

    def run(self) -> bool:
        """Move the words; whether there were any."""
        words = self.words
        if not words:
            return False
        uses = use_places(self.f, words)
        depth = loop_depths(build_cfg(self.f))
        long_lived = 0
        heard = self.ctx.remarks is not None
        for num, (pos, at, made) in words.items():
            read = [(p, n, self.f.blocks[p].insts[n]) for p, n in uses.get(num, ())]
            places = self._places(pos, at, read, depth)
            forms = [] if not places or all(i.op in _COPIES for _, _, i in read) else self._forms(read, num)
            if not forms:
                if heard:
                    self._missed(num, made, read, places)
                continue
            over = len({p for p, _ in places}) < len({p for p, _, _ in read}) or places[0][0] != read[0][0]
            long_lived += over * self.f.vregs[num].width
            if over and long_lived > _MOST and heard:
                why = f"more than {_MOST} words would live over several blocks"
                self.say("missed", "UniformPressure", num, made, f"uniform promotion blocked because {why}")
            if (over and long_lived > _MOST) or not self.ctx.allow():
                continue
            self.ctx.count("words in uniform registers")
            if heard:
                self.say("passed", "Promoted", num, made, "value moved to a uniform register")
            self._move(num, made, read, forms, places)
        insert(self.f, self.before, self.gone)
        return bool(self.gone)

    def say(self, kind: str, name: str, num: int, made: Inst, message: str) -> None:
        """Remark on a word."""
        value = self.f.vregs[num].name or "?"
        self.ctx.remark(kind, "uniform-promotion", name, self.f.name, made.line, message, value)

    def _missed(self, num: int, made: Inst, read: list[Use], places: list[Place]) -> None:
        """Say why a word stays in a general register."""
        if not read:
            return
        other = [i for _, _, i in read if self.form.reading(i, num) is None]
        if not places:
            name, why = "CallsInLoop", "calls destroy uniform registers, and its readers are in a loop"
        elif other:
            name, why = "NoUniformForm", f"{other[0].op} of PTX line {other[0].line} can't read it from one"
        else:
            name, why = "OnlyCopies", "it is only copied"
        self.say("missed", name, num, made, f"uniform promotion blocked because {why}")

    def _words(self) -> dict[int, Use]:
        """Register -> the one instruction that makes it, where that is a load from the constant bank or of a block
        index; the latter first."""

        def fits(i: Inst) -> bool:
            return i.mods in ((), ("64",)) and _shared(i, self.relocated)

        found = {
            num: (*place, inst)
            for num, (place, inst) in single_definitions(self.f, ("LDC", "S2R"), fits).items()
            if self.f.vregs[num].width <= 2
        }
        return dict(sorted(found.items(), key=lambda x: (x[1][2].op != "S2R", x[1][:2])))

    def _places(self, pos: int, at: int, read: list[Use], depth: list[int]) -> list[Place]:
        """Where to load the word, so that no call comes between; nowhere if that would be in a loop."""
        if not read:
            return []
        blocks = {p for p, _, _ in read}
        if len(blocks) > 1 and not any(self.calls.values()):
            return [(pos, at)]
        if any(depth[p] > depth[pos] for p in blocks):
            return [] if any(self.calls.values()) else [(pos, at)]
        places: list[Place] = []
        last = (-1, -1)
        for p, n, _ in read:
            calls = sum(c < n for c in self.calls[p])
            if (p, calls) != last:
                places.append((p, n))
                last = p, calls
        return places

    def _forms(self, read: list[Use], num: int) -> list[Inst]:
        """What each reader would be (:meth:`UniformForms.reading`); empty where one can't take the word."""
        forms: list[Inst] = []
        for _, _, inst in read:
            form = self.form.reading(inst, num)
            if form is None:
                return []
            forms.append(form)
        return forms

    def _move(self, num: int, made: Inst, read: list[Use], forms: list[Inst], places: list[Place]) -> None:
        """Let the readers take the word from a uniform register, each in its form with one."""
        fresh = -1
        todo = sorted(places)
        old = self.f.vregs[num]
        for (pos, n, inst), new in zip(read, forms, strict=True):
            while todo and (todo[0] <= (pos, n) or len(places) == 1):
                where = todo.pop(0)
                fresh = len(self.f.vregs)
                self.f.vregs.append(VReg("UR", old.width, old.width, -1, 1, old.name))
                d = Reg("UR", fresh, 0, old.width)
                op = "S2UR" if made.op == "S2R" else self.load
                dsts, srcs = self.form.target.complete(op, made.mods, (d,), made.srcs)
                self.before.setdefault(where, []).append(Inst(op, made.mods, dsts, srcs, None, made.line, made.loc))
            inst.op, inst.mods = new.op, new.mods
            inst.dsts = tuple([_renamed(o, num, fresh) for o in new.dsts])
            inst.srcs = tuple([_renamed(o, num, fresh) for o in new.srcs])
        self.gone.add(id(made))


def _renamed(o: Operand, old: int, new: int) -> Operand:
    """An operand with the uniform register ``new`` where the stand-in ``old`` is, also as a base of an address."""
    if type(o) is Reg:
        return o._replace(num=new) if o.file == "UR" and o.num == old else o
    if type(o) is Mem and o.ubase is not None and o.ubase.num == old:
        return o._replace(ubase=o.ubase._replace(num=new))
    return o


def _shared(inst: Inst, relocated: bool) -> bool:
    """A constant-bank word without an index, or a block index. ``relocated``: words of named constants are not
    meant."""
    o = inst.srcs[0]
    if inst.op == "S2R":
        return type(o) is Name and o.name.startswith("SR_CTAID")
    return type(o) is Const and o.ireg is None and not o.flags and not o.mod and not (relocated and o.sym)
