"""Symbolic execution of one function before and after allocation, side by side: the core of
:mod:`stages.regalloc.checker.checker`."""

from __future__ import annotations

from collections.abc import Callable

from ir_format.flow import is_guarded
from ir_format.isa import facts
from ir_format.model import INV, PT, ZERO, Function, Imm, Inst, Mem, Operand, Reg, Sym
from ir_format.record import NamedTuple
from ir_format.target import CALLEE_SAVED, STACK_REG
from ir_format.typed import Final
from stages.regalloc.checker.values import (
    ALL_LANES,
    ALL_PLACES,
    FILE_LIMIT,
    Names,
    Place,
    State,
    Values,
    constant_words,
    named_places,
    registers,
    shape,
)

MAX_FINDINGS: Final = 50
ABI_PRESERVED: Final[frozenset[Place]] = frozenset(
    {("R", r) for r in (STACK_REG, *CALLEE_SAVED)} | {("B", b) for b in range(6, 16)}
)


_MOVES: Final = facts.having("moves")


class Finding(NamedTuple):
    """What is wrong and where: function, block id, position in the allocated block, PTX line."""

    function: str
    block: int
    at: int
    line: int
    message: str

    def render(self) -> str:
        """One line of text."""
        return f"{self.function}: block {self.block}, instruction {self.at} (line {self.line}): {self.message}"


class _Classes:
    """Classes of equal values (union-find). A constant or entry value leads its class, else the lowest cell does."""

    def __init__(self) -> None:
        self.leader: dict[object, object] = {}

    def find(self, x: object) -> object:
        """The leader of the class of ``x``."""
        while self.leader.get(x, x) != x:
            x = self.leader[x]
        return x

    def unite(self, keys: list[object]) -> object:
        """Make one class of all keys; returns its leader."""
        head = self.find(keys[0])
        for key in keys[1:]:
            other = self.find(key)
            if other != head:
                if isinstance(other, tuple) or (isinstance(head, int) and isinstance(other, int) and other < head):
                    head, other = other, head
                self.leader[other] = head
        return head


def _places_held(entry: State, classes: _Classes) -> tuple[dict[Place, object], dict[Place, list[int]]]:
    """For each place the leader of the values that it holds, and the predicates that it holds as 0 or 1. Cells that are
    defined on all paths and share a place are equal."""
    direct: dict[Place, object] = {}
    packed: dict[Place, list[int]] = {}
    for place, names in entry.holds.items():
        whole: list[object] = []
        bits: list[int] = []
        for name in names:
            if isinstance(name, int):
                if name not in entry.partial:
                    whole.append(entry.consts.get(name, name))
            elif isinstance(name, tuple) and name[0] == "p2r":
                bits.append(name[1])
            else:
                whole.append(name)
        if whole:
            direct[place] = classes.unite(whole)
        if bits:
            packed[place] = bits
            certain: list[object] = [cell for cell in bits if cell not in entry.partial]
            if len(certain) > 1:
                classes.unite(certain)
    return direct, packed


class Executor:
    """Executes one function. ``preserved`` maps a function name to the places that a call of it preserves."""

    def __init__(
        self, before: Function, after: Function, gone: frozenset[int], preserved: dict[str, frozenset[Place]]
    ) -> None:
        self.before = before
        self.after = after
        self.gone = gone
        self.preserved = preserved
        self.values = Values()
        self.findings: list[Finding] = []
        self.base: list[int] = []
        count = 0
        for vreg in before.vregs:
            self.base.append(count)
            count += vreg.width
        self.count = count
        self.stack_cells = {
            self.base[v] for v, reg in enumerate(before.vregs) if reg.file == "R" and reg.fixed == STACK_REG
        }
        self.predicates = frozenset(self.base[v] for v, reg in enumerate(before.vregs) if reg.file in ("P", "UP"))
        self.at_return: frozenset[Place] | None = None
        self.named = frozenset(named_places(after))
        self.others = ALL_PLACES - self.named  # registers that the function does not name: only calls change them
        self.undef_value = self.values.make("undef")
        self.true = self.values.make("true")
        self.real: dict[Place, int] = {}
        self._virtual: dict[int, int] = {}
        self._undef: frozenset[int] = frozenset()
        self._partial: frozenset[int] = frozenset()
        self._number: Callable[[object], int] = self.values.make
        self.stack: int | None = None
        self.pos = 0
        self.index = 0
        self.line = 0
        self.quiet = True

    def report(self, message: str) -> None:
        """Add a finding at the current place."""
        if not self.quiet and len(self.findings) < MAX_FINDINGS:
            block = self.after.blocks[self.pos].id if self.pos < len(self.after.blocks) else -1
            self.findings.append(Finding(self.after.name, block, self.index, self.line, message))

    def _enter(self, entry: State) -> None:
        """Begin a block in the state ``entry``: number the values of the places and cells."""
        values = self.values
        values.facts = set()
        pos = self.pos
        self.stack = entry.stack
        virtual: dict[int, int] = {}
        for c, t in entry.consts.items():
            if c in entry.partial:
                values.facts.add((values.make(*t), values.make("partial", pos, c)))
            else:
                virtual[c] = values.make(*t)
        self.real = {}
        classes = _Classes()
        direct, packed = _places_held(entry, classes)
        numbers: dict[object, int] = {}

        def number(key: object) -> int:
            top = classes.find(key)
            got = numbers.get(top)
            if got is None:
                got = values.make(*top) if isinstance(top, tuple) else values.make("in", pos, top)
                numbers[top] = got
            return got

        for place, head in direct.items():
            self.real[place] = number(head)
        self._virtual = virtual
        self._undef = entry.undef
        self._partial = entry.partial
        self._number = number
        for place, names in entry.holds.items():
            if place not in self.real:
                self.real[place] = self._packed_value(entry, place, packed.get(place), number)
            for name in names:
                if isinstance(name, int) and name in entry.partial:
                    values.facts.add((self.real[place], values.make("partial", pos, name)))

    def _packed_value(
        self, entry: State, place: Place, inside: list[int] | None, number: Callable[[object], int]
    ) -> int:
        """The value of a place that holds predicates as 0 or 1 (``inside``), or nothing that is known."""
        values, pos = self.values, self.pos
        if not inside:
            return values.make("junk", pos, place)
        certain = [cell for cell in inside if cell not in entry.partial]
        inner = number(certain[0]) if certain else values.make("junk", pos, place)
        values.facts.update((inner, values.make("partial", pos, cell)) for cell in inside if cell in entry.partial)
        return values.to_r(inner)

    def cell(self, cell: int) -> int:
        """Value of a virtual cell."""
        got = self._virtual.get(cell)
        if got is None:
            if cell in self._undef:
                got = self.undef_value
            elif cell in self._partial:
                got = self.values.make("partial", self.pos, cell)
            else:
                got = self._number(cell)
            self._virtual[cell] = got
        return got

    def place(self, place: Place) -> int:
        """Value of a place."""
        got = self.real.get(place)
        if got is None:
            got = self.real[place] = self.values.make("junk", self.pos, place)
        return got

    def _leave(self, entry: State, live_out: frozenset[int]) -> State:
        values = self.values
        by_value: dict[int, list[object]] = {}
        soft: list[tuple[int, int]] = []
        undef: set[int] = set()
        partial: set[int] = set()
        consts: dict[int, tuple[object, ...]] = {}
        for cell in live_out:
            value = self.cell(cell)
            if value == self.undef_value:
                undef.add(cell)
                continue
            if values.soft[value]:
                partial.add(cell)
                soft.append((cell, value))
                if cell in entry.consts and value == values.make("partial", self.pos, cell):
                    consts[cell] = entry.consts[cell]
                continue
            by_value.setdefault(value, []).append(cell)
            term = values.terms[value]
            if term[0] in ("imm", "c", "sym", "sr", "op"):
                consts[cell] = term
        holds: dict[Place, Names] = {}
        for place, value in self.real.items():
            names = list(by_value.get(value, ()))
            term = values.terms[value]
            if term[0] in ("imm", "c", "sym", "sr", "op", "entry"):
                names.append(term)
            if term[0] == "p2r" or (term[0] == "sel" and place[0] in ("R", "M")):
                inner = values.to_p(value)
                names.extend(("p2r", cell) for cell in by_value.get(inner, ()))
                names.extend(("p2r", cell) for cell, wanted in soft if values.refines(inner, wanted))
            if soft:
                names.extend(cell for cell, wanted in soft if values.refines(value, wanted))
            if names:
                holds[place] = frozenset(names)
        return State(holds, frozenset(undef), frozenset(partial), consts, self.stack)

    # ------------------------------------------------------------------ execution

    def guard_value(self, reg: Reg, value: int) -> int:
        """Truth of a guard operand."""
        return self.values.negate(value) if reg.flags & INV else value

    def _virtual_word(self, reg: Reg, part: int) -> int:
        if reg.num == ZERO:
            return self.true if reg.file in ("P", "UP") else self.values.make("imm", 0)
        return self.cell(self.base[reg.num] + reg.sub + part)

    def _real_word(self, reg: Reg, part: int) -> int:
        if reg.num == ZERO:
            return self.true if reg.file in ("P", "UP") else self.values.make("imm", 0)
        return self.place((reg.file, reg.num + part))

    def _pseudo(self, inst: Inst) -> None:
        """Execute a virtual instruction without a physical counterpart: only names of values change."""
        values = self.values
        if inst.op == "FENTRY":
            return
        if inst.op == "UNDEF":
            for dst in inst.dsts:
                if type(dst) is Reg and dst.num != ZERO:
                    for part in range(dst.width):
                        self._virtual[self.base[dst.num] + dst.sub + part] = self.undef_value
            return
        moves: list[tuple[int, int]] = []
        if inst.op in ("COPY", "PCOPY"):
            for dst, src in zip(inst.dsts, inst.srcs):
                assert type(dst) is Reg
                if dst.num != ZERO:
                    words = self._source_words(inst, dst, src)
                    moves.extend((self.base[dst.num] + dst.sub + i, w) for i, w in enumerate(words))
        else:
            words_of = constant_words(inst)
            dst = inst.dsts[0]
            assert words_of is not None and type(dst) is Reg
            moves.extend((self.base[dst.num] + dst.sub + i, values.make(*w)) for i, w in enumerate(words_of))
        if is_guarded(inst):
            assert inst.guard is not None
            guard = self.guard_value(inst.guard, self._virtual_word(inst.guard, 0))
            moves = [(cell, values.select(guard, word, self.cell(cell))) for cell, word in moves]
        for cell, word in moves:
            self._virtual[cell] = word

    def _source_words(self, inst: Inst, dst: Reg, src: Operand) -> list[int]:
        values = self.values
        if type(src) is Reg:
            words = [self._virtual_word(src, i) for i in range(dst.width)]
            if src.file in ("P", "UP"):
                words = [self.guard_value(src, w) for w in words]
                if dst.file in ("R", "UR"):
                    words = [values.to_r(w) for w in words]
            elif dst.file in ("P", "UP"):
                words = [values.to_p(w) for w in words]
            return words
        made = constant_words(Inst("COPY", (), (dst,), (src,)))
        if made is None:
            return [values.make("opaque", self.pos, id(inst), i) for i in range(dst.width)]
        return [values.make(*w) for w in made]

    def _inserted(self, inst: Inst) -> None:
        """Execute an inserted instruction by its own meaning, whatever its mark says."""
        values = self.values
        if inst.attrs and inst.attrs.get("frame") == -1:
            self._move_stack(inst, -1)
            return
        words = self._effect(inst)
        if words is None:
            self.report(f"inserted {inst.op} is not a move")
            return
        if is_guarded(inst):
            assert inst.guard is not None
            guard = self.guard_value(inst.guard, self._real_word(inst.guard, 0))
            words = [(place, values.select(guard, value, self.place(place))) for place, value in words]
        for place, value in words:
            if place == ("R", STACK_REG):
                self.report("R1 is overwritten")
            self.real[place] = value
        self._check_numbers(inst)

    def _effect(self, inst: Inst) -> list[tuple[Place, int]] | None:
        values = self.values
        if inst.op == "STL":
            where, src = inst.srcs
            if type(where) is not Mem or type(src) is not Reg:
                return None
            return [(p, self._real_word(src, i)) for i, p in enumerate(self._frame_words(where, src.width, inst))]
        dst = inst.dsts[0] if inst.dsts else None
        if inst.op == "R2UR" and inst.dsts[:-1] == (PT,):
            dst = inst.dsts[-1]
        if type(dst) is not Reg or dst.num == ZERO:
            return None
        places = [(dst.file, dst.num + i) for i in range(dst.width)]
        if inst.op == "LDL":
            where = inst.srcs[0]
            if type(where) is not Mem:
                return None
            return [(places[i], self.place(p)) for i, p in enumerate(self._frame_words(where, dst.width, inst))]
        bare = Inst(inst.op, inst.mods, inst.dsts, inst.srcs)
        made = constant_words(bare)
        if made is not None:
            return [(p, values.make(*w)) for p, w in zip(places, made)]
        if not inst.srcs:
            return None
        src = inst.srcs[0]
        if inst.srcs[1:] not in ((), ALL_LANES) and inst.op in _MOVES:
            return None
        if inst.op in _MOVES and type(src) is Reg and not src.flags and not src.mod and src.width == dst.width == 1:
            files = {
                "MOV": ("R", ("R", "UR")),
                "UMOV": ("UR", ("UR",)),
                "R2UR": ("UR", ("R",)),
                "BMOV": (dst.file, ("R", "B")),
            }[inst.op]
            if dst.file != files[0] or src.file not in files[1]:
                return None
            moved = [(places[0], self._real_word(src, 0))]
            if "CLEAR" in inst.mods:
                moved.append(((src.file, src.num), values.make("clear", self.pos, self.index)))
            return moved
        if inst.op in ("PLOP3", "UPLOP3") and type(src) is Reg and len(inst.srcs) == 5:
            ones = all(type(o) is Reg and o.num == ZERO and not o.flags for o in inst.srcs[1:3])
            lut = inst.srcs[3]
            if not ones or type(lut) is not Imm or lut.value != 0x80:
                return None
            return [(places[0], self.guard_value(src, self._real_word(src, 0)))]
        if inst.op in ("SEL", "USEL") and len(inst.srcs) == 3:
            zero, one, cond = inst.srcs
            if type(zero) is Reg and zero.num == ZERO and type(one) is Imm and one.value == 1 and type(cond) is Reg:
                return [(places[0], values.to_r(values.negate(self.guard_value(cond, self._real_word(cond, 0)))))]
            return None
        if inst.op in ("ISETP", "UISETP") and inst.mods == ("NE", "U32", "AND") and type(src) is Reg and not src.flags:
            rest = inst.srcs[1:3]
            if all(type(o) is Reg and o.num == ZERO and not o.flags for o in rest):
                return [(places[0], values.to_p(self._real_word(src, 0)))]
        return None

    def _frame_words(self, where: Mem, width: int, inst: Inst) -> list[Place]:
        """Places of an inserted access to the frame."""
        base = where.base
        if base is None or base.file != "R" or base.num != STACK_REG or where.ubase is not None:
            self.report(f"inserted {inst.op} does not go through R1")
            return []
        wanted = {1: (), 2: ("64",), 4: ("128",)}.get(width)
        if inst.mods != wanted:
            self.report(f"inserted {inst.op} has the wrong size")
        if self.stack is None:
            self.report("R1 differs between paths")
            return []
        at = self.stack + where.offset
        low = -self.after.frame + self.before.frame
        if at < low or at + 4 * width > 0 or at % (4 * width):
            self.report(f"inserted {inst.op} at [R1{where.offset:+d}] is outside of the spill area")
        return [("M", at + 4 * i) for i in range(width)]

    def _original(self, old: Inst, new: Inst) -> None:
        values = self.values
        if old.op != new.op or old.mods != new.mods or len(old.dsts) != len(new.dsts) or len(old.srcs) != len(new.srcs):
            self.report(f"{new.op} stands where {old.op} should")
            return
        sign = old.attrs.get("frame") if old.attrs else None
        if isinstance(sign, int):
            self._move_stack(new, sign)
            return
        groups = ((old.dsts, new.dsts), (old.srcs, new.srcs), (old.uses, new.uses), (old.defs, new.defs))
        for mine, theirs in groups:
            if [shape(o) for o in mine] != [shape(o) for o in theirs]:
                self.report(f"operands of {new.op} changed")
                return
        guard = 0
        if (old.guard is None) != (new.guard is None) or (
            old.guard and new.guard and shape(old.guard) != shape(new.guard)
        ):
            self.report(f"guard of {new.op} changed")
            return
        if old.guard is not None and new.guard is not None:
            self._use(old.guard, new.guard, new)
            guard = self.guard_value(new.guard, self._real_word(new.guard, 0))
        for mine, theirs in (groups[0], groups[1], groups[2]):
            for a, b in zip(mine, theirs):
                if mine is old.dsts and type(a) is Reg:
                    continue
                for x, y in zip(registers(a), registers(b)):
                    self._use(x, y, new)
        made = constant_words(old)
        if new.op == "CALL":
            self._call(new)
        if new.op == "RET":
            self._return()
        guarded = is_guarded(old)
        written: set[Place] = set()
        serial = 0
        results: list[tuple[int, Place, int]] = []
        for a, b in zip((*old.dsts, *old.defs), (*new.dsts, *new.defs)):
            if type(a) is not Reg or type(b) is not Reg or a.num == ZERO:
                continue
            self._check_home(a, b, new)
            for part in range(a.width):
                place = (b.file, b.num + part)
                if place in written:
                    self.report(f"two results of {new.op} share {b.file}{b.num + part}")
                written.add(place)
                fresh = (
                    values.make(*made[part]) if made is not None else values.make("def", self.pos, self.index, serial)
                )
                serial += 1
                results.append((self.base[a.num] + a.sub + part, place, fresh))
        for cell, place, fresh in results:
            if place == ("R", STACK_REG) and cell not in self.stack_cells:
                self.report("R1 is overwritten")
            if guarded:
                real = values.select(guard, fresh, self.place(place))
                self._virtual[cell] = values.select(guard, fresh, self.cell(cell))
                self.real[place] = real
            else:
                self.real[place] = fresh
                self._virtual[cell] = fresh
        self._check_numbers(new)

    def _use(self, virtual: Reg, physical: Reg, inst: Inst) -> None:
        if virtual.num == ZERO:
            return
        self._check_home(virtual, physical, inst)
        for part in range(virtual.width):
            wanted = self._virtual_word(virtual, part)
            real = self._real_word(physical, part)
            if not self.values.refines(real, wanted):
                name = self.before.vregs[virtual.num].name or f"v{virtual.num}"
                self.report(
                    f"{inst.op} reads {physical.file}{physical.num + part}, which does not hold "
                    f"{name}[{virtual.sub + part}]"
                )

    def _check_home(self, virtual: Reg, physical: Reg, inst: Inst) -> None:
        vreg = self.before.vregs[virtual.num]
        if vreg.fixed >= 0 and physical.num != vreg.fixed + virtual.sub:
            self.report(
                f"{inst.op} should name {vreg.file}{vreg.fixed + virtual.sub}, not {physical.file}{physical.num}"
            )
        if virtual.width > 1:
            align = 1
            while align < vreg.align and virtual.sub % (align * 2) == 0 and align < virtual.width:
                align *= 2
            if physical.num % align:
                self.report(f"{physical.file}{physical.num} is not aligned for {virtual.width} registers")

    def _check_numbers(self, inst: Inst) -> None:
        operands = (*inst.dsts, *inst.srcs, *inst.uses, *inst.defs, *((inst.guard,) if inst.guard is not None else ()))
        for operand in operands:
            for reg in registers(operand):
                if reg.num == ZERO:
                    continue
                if reg.sub or reg.num + reg.width > FILE_LIMIT[reg.file]:
                    self.report(f"{inst.op} names {reg.file}{reg.num}, which does not exist")
                elif reg.num + reg.width > self.after.regs.get(reg.file, 0):
                    self.report(
                        f"{inst.op} names {reg.file}{reg.num}, beyond the declared count of "
                        f"{self.after.regs.get(reg.file, 0)}"
                    )

    def _move_stack(self, inst: Inst, sign: int) -> None:
        reg = inst.dsts[0]
        amount = [o.value for o in inst.srcs if type(o) is Imm]
        if type(reg) is not Reg or reg.num != STACK_REG or is_guarded(inst) or not amount:
            self.report("the stack pointer is moved in a strange way")
            return
        step = amount[0] - (1 << 32) if amount[0] >> 31 else amount[0]
        if step != sign * self.after.frame:
            self.report(f"the stack pointer moves by {step}, the frame has {self.after.frame} bytes")
        if self.stack is not None:
            self.stack += step
            value = self.values.make("stack", self.stack)
            self.real["R", STACK_REG] = value
            for cell in self.stack_cells:
                self._virtual[cell] = value

    def _call(self, inst: Inst) -> None:
        if self.stack != -self.after.frame and self.after.frame:
            self.report("a call while R1 is not at the bottom of the frame")
        name = next((o.name for o in inst.srcs if type(o) is Sym), "")
        keep = self.preserved.get(name, ABI_PRESERVED)
        for place in [p for p in self.real if p[0] != "M" and p not in keep and p != ("R", STACK_REG)]:
            self.real[place] = self.values.make("call", self.pos, self.index, place)
        for place in self.named:
            if place not in self.real and place not in keep:
                self.real[place] = self.values.make("call", self.pos, self.index, place)
        if not self.quiet:
            self.others &= keep

    def _return(self) -> None:
        if self.stack != 0:
            self.report(f"returns with R1 off by {self.stack}")
        kept = frozenset(
            place
            for place, value in self.real.items()
            if place[0] != "M" and self.values.terms[value] == ("entry", place[0], place[1])
        )
        if not self.quiet:
            self.at_return = kept if self.at_return is None else self.at_return & kept

    def preserved_places(self) -> frozenset[Place] | None:
        """Registers that hold their entry value at every RET; None when there is no RET."""
        return None if self.at_return is None else self.at_return | self.others
