"""Values, states and operand views of the register-allocation checker (:mod:`stages.regalloc.checker.checker`)."""

from __future__ import annotations

from collections.abc import Iterator

from ir_format.flow import is_guarded
from ir_format.isa import facts
from ir_format.model import ZERO, Const, Function, Imm, Inst, Mem, Name, Operand, Reg
from ir_format.typed import Final, TypeAlias

Place: TypeAlias = "tuple[str, int]"  # (file, number); frame words: ("M", byte offset from R1 at function entry)
Names: TypeAlias = "frozenset[object]"

FILE_LIMIT: Final = {"R": 255, "UR": 255, "P": 7, "UP": 7, "B": 16}
INVARIANT: Final = (
    "SR_TID",
    "SR_CTAID",
    "SR_LANEID",
    "SR_NTID",
    "SR_NCTAID",
    "SR_LANEMASK",
    "SRZ",
    "SR_CgaCtaId",
    "SR_SWINHI",
)
ALL_LANES: Final = (Imm("I", 15),)  # second operand of MOV: write all four bytes


_CONSTANT_LOADS: Final = facts.reading("const")


class Values:
    """Interned terms. A term is a tuple whose children are value numbers."""

    __slots__ = ("facts", "soft", "table", "terms")

    def __init__(self) -> None:
        self.table: dict[tuple[object, ...], int] = {}
        self.terms: list[tuple[object, ...]] = []
        self.soft: list[bool] = []  # contains something undefined
        self.facts: set[tuple[int, int]] = (
            set()
        )  # (a, b): a place with value a may stand for the partly undefined value b

    def make(self, *term: object) -> int:
        """The number of a term."""
        got = self.table.get(term)
        if got is None:
            got = self.table[term] = len(self.terms)
            self.terms.append(term)
            kind = term[0]
            soft = kind in ("undef", "partial")
            if kind in ("sel", "not", "p2r", "r2p"):
                soft = any(self.soft[child] for child in term[1:] if isinstance(child, int))
            self.soft.append(soft)
        return got

    def negate(self, value: int) -> int:
        """Not of a predicate."""
        term = self.terms[value]
        return term[1] if term[0] == "not" and isinstance(term[1], int) else self.make("not", value)

    def to_r(self, value: int) -> int:
        """Predicate as 0 or 1 in a register."""
        return self.make("p2r", value)

    def to_p(self, value: int) -> int:
        """Register not zero."""
        term = self.terms[value]
        if term[0] == "p2r" and isinstance(term[1], int):
            return term[1]
        if term[0] == "sel":
            _, guard, new, old = term
            assert isinstance(guard, int) and isinstance(new, int) and isinstance(old, int)
            return self.select(guard, self.to_p(new), self.to_p(old))
        return self.make("r2p", value)

    def select(self, guard: int, new: int, old: int) -> int:
        """``guard ? new : old``, in a normal form: no negated guard, no second test of the same guard below it."""
        term = self.terms[guard]
        if term[0] == "not" and isinstance(term[1], int):
            return self.select(term[1], old, new)
        for arm in (2, 3):
            value = new if arm == 2 else old
            mine = self.terms[value]
            if mine[0] == "sel" and mine[1] == guard:
                inner = mine[arm]
                assert isinstance(inner, int)
                if arm == 2:
                    new = inner
                else:
                    old = inner
        return new if new == old else self.make("sel", guard, new, old)

    def refines(self, real: int, wanted: int) -> bool:
        """Whether a place with value ``real`` may stand for the virtual value ``wanted``."""
        if real == wanted:
            return True
        if not self.soft[wanted]:
            return False
        if (real, wanted) in self.facts:
            return True
        term = self.terms[wanted]
        if term[0] == "undef":
            return True
        if term[0] == "sel":
            _, guard, new, old = term
            assert isinstance(guard, int) and isinstance(new, int) and isinstance(old, int)
            mine = self.terms[real]
            if mine[0] == "sel" and mine[1] == guard:
                assert isinstance(mine[2], int) and isinstance(mine[3], int)
                return self.refines(mine[2], new) and self.refines(mine[3], old)
            return self.refines(real, new) and self.refines(real, old)
        if term[0] in ("not", "p2r", "r2p"):
            mine = self.terms[real]
            return (
                mine[0] == term[0]
                and isinstance(mine[1], int)
                and isinstance(term[1], int)
                and self.refines(mine[1], term[1])
            )
        return False


class State:
    """At a block boundary. ``holds``: place -> cells and constants it holds on every path; ``undef``: cells that no
    path defines; ``partial``: cells that some path leaves undefined; ``consts``: cell -> constant. ``stack``: R1 minus
    its entry value, None when paths differ."""

    __slots__ = ("consts", "holds", "partial", "stack", "undef")

    def __init__(
        self,
        holds: dict[Place, Names],
        undef: frozenset[int],
        partial: frozenset[int],
        consts: dict[int, tuple[object, ...]],
        stack: int | None,
    ) -> None:
        self.holds = holds
        self.undef = undef
        self.partial = partial
        self.consts = consts
        self.stack = stack

    def same(self, other: State) -> bool:
        """Equality."""
        return (
            self.holds == other.holds
            and self.undef == other.undef
            and self.partial == other.partial
            and self.consts == other.consts
            and self.stack == other.stack
        )


def join(states: list[State], predicates: frozenset[int]) -> State:
    first = states[0]
    if len(states) == 1:
        return first
    holds: dict[Place, Names] = {}
    places = set(first.holds)
    for state in states[1:]:
        places |= set(state.holds)
    for place in places:
        names: Names | None = None
        for state in states:
            mine: Names = (
                state.holds.get(place, frozenset()) | state.undef | {("p2r", cell) for cell in state.undef & predicates}
            )
            names = mine if names is None else names & mine
        if names:
            holds[place] = names
    undef = first.undef
    partial = first.partial | first.undef
    consts: dict[int, tuple[object, ...]] = {}
    for state in states:
        consts.update(state.consts)
    for state in states[1:]:
        undef &= state.undef
        partial |= state.partial | state.undef
    consts = {c: t for c, t in consts.items() if all(s.consts.get(c) == t or c in s.undef for s in states)}
    stack = first.stack if all(s.stack == first.stack for s in states) else None
    if undef:
        drop = undef | {("p2r", cell) for cell in undef}
        holds = {place: names - drop for place, names in holds.items()}
    return State(holds, undef, partial - undef, consts, stack)


def constant_words(inst: Inst) -> list[tuple[object, ...]] | None:
    """Per destination word the constant that the instruction makes; None when it depends on anything. Places that hold
    equal constants are equal."""
    if (
        len(inst.dsts) != 1
        or type(inst.dsts[0]) is not Reg
        or inst.defs
        or inst.uses
        or is_guarded(inst)
        or not inst.srcs
    ):
        return None
    if inst.srcs[1:] and (inst.op != "MOV" or inst.srcs[1:] != ALL_LANES):
        return None
    width = inst.dsts[0].width
    src = inst.srcs[0]
    op, mods = inst.op, inst.mods
    if (
        type(src) is Imm
        and op in ("MOV", "UMOV", "COPY")
        and not mods
        and src.fmt != "ret"
        and not src.flags
        and not src.mod
    ):
        if src.sym:
            return [("sym", src.sym, src.fmt, src.value)] if width == 1 else None
        if op != "COPY" and width != 1:
            return None
        return [("imm", (src.value >> (32 * i)) & 0xFFFFFFFF) for i in range(width)]
    if (
        type(src) is Reg
        and src.num == ZERO
        and src.file in ("R", "UR")
        and op in ("MOV", "UMOV", "COPY")
        and not mods
        and not src.flags
    ):
        return [("imm", 0)] * width
    if type(src) is Const and src.ireg is None and not src.flags and not src.mod:
        plain = (op in ("MOV", "COPY") and not mods) or (op in _CONSTANT_LOADS and mods in ((), ("64",), ("128",)))
        if plain:
            return [("c", src.bank, src.offset + 4 * i, src.sym) for i in range(width)]
        if op in _CONSTANT_LOADS:
            return [("op", op, mods, src, i) for i in range(width)]
    if type(src) is Name and op in ("S2R", "S2UR") and src.name.startswith(INVARIANT) and width == 1:
        return [("sr", src.name)]
    return None


def registers(operand: Operand) -> Iterator[Reg]:
    if type(operand) is Reg:
        yield operand
    elif type(operand) is Mem:
        for reg in (operand.base, operand.ubase, operand.desc):
            if reg is not None:
                yield reg
    elif type(operand) is Const and operand.ireg is not None:
        yield operand.ireg


def shape(operand: Operand) -> object:
    """The operand without its register numbers."""
    if type(operand) is Reg:
        return ("reg", operand.file, operand.num == ZERO, operand.width, operand.flags, operand.mod)
    if type(operand) is Mem:
        parts = [None if r is None else shape(r) for r in (operand.base, operand.ubase, operand.desc)]
        return ("mem", *parts, operand.offset, operand.sym)
    if type(operand) is Const:
        return operand._replace(ireg=None), None if operand.ireg is None else shape(operand.ireg)
    return operand


ALL_PLACES: Final[frozenset[Place]] = frozenset((file, n) for file, limit in FILE_LIMIT.items() for n in range(limit))


def named_places(func: Function) -> Iterator[Place]:
    """Physical registers that the function names."""
    for block in func.blocks:
        for inst in block.insts:
            guard = () if inst.guard is None else (inst.guard,)
            for operand in (*inst.dsts, *inst.srcs, *inst.uses, *inst.defs, *guard):
                for reg in registers(operand):
                    if reg.num != ZERO:
                        for part in range(reg.width):
                            yield reg.file, reg.num + part
