"""Hazards of one SM: the registers that an instruction reads and writes, their roles, and the distances between the
issues of two instructions.

Distances count from issue to issue. :meth:`Hazards.access` returns everything that the tables need of an instruction;
:meth:`Hazards.distance` the distance of a pair for one register. Registers are numbered as in :mod:`ir_format.flow`
(``PHYSICAL_BASE``), so sets of them are integers used as bitsets. The hardware tracks B registers (documented): they
have no distances.
"""

from __future__ import annotations

from functools import cache

from ir_format.diag import CompileError
from ir_format.features import has
from ir_format.flow import PHYSICAL_BASE, is_guarded
from ir_format.hazards import load
from ir_format.hazards.classes import AS_READER, AS_RESULT
from ir_format.hazards.load import Cell, Pipe
from ir_format.isa import facts
from ir_format.model import ZERO, Const, Imm, Inst, Mem, Name, Reg
from ir_format.typed import Final

FILES: Final = ("R", "UR", "P", "UP")
B0: Final = PHYSICAL_BASE["B"]
_R_END: Final = PHYSICAL_BASE["UR"]
_P0: Final = PHYSICAL_BASE["P"]
_UP0: Final = PHYSICAL_BASE["UP"]
R_CELLS: Final = (1 << _R_END) - 1
P_CELLS: Final = ((1 << _UP0) - 1) ^ ((1 << _P0) - 1)
UNIFORM_CELLS: Final = ((1 << _P0) - 1) ^ R_CELLS | ((1 << B0) - 1) ^ ((1 << _UP0) - 1)
#: Predicates that an instruction names as a whole file.
_FILES_BY_NAME: Final = {"PR": (_P0, 7), "UPR": (_UP0, 7)}

_MEMORY: Final = frozenset("lds ldg ldl ldc stg sts atom red ldgsts cctl syncs".split())  # noqa: SIM905
_DATA: Final = _MEMORY | frozenset("shfl membar fence bar sreg bmov setreg elect".split())  # noqa: SIM905
#: Instructions whose read scoreboard covers their uniform registers too (measured).
_LATE_UNIFORM: Final = frozenset(("syncs", "bulk", "arrives", "utc", "utcatom", "ustg"))
#: Later instructions wait for their scoreboard, whether they write a register or not (measured).
_SIGNALS: Final = frozenset(("fence", "syncs", "setreg", "setregd", "cctlu"))
_UNIFORM: Final = frozenset("udp udp64 uflt uldc".split())  # noqa: SIM905
_TENSOR: Final = frozenset(("imma1", "mma1", "mma2", "dmma", "gmma"))
_P_READERS: Final = frozenset(
    "alu dual iadd64 alu64 setp64 fma imadw imadhi half hcmp hf32 fp64 halfmma r2p".split()  # noqa: SIM905
)
_GROUPS: Final = {
    "disp64": "disp64",
    "hf32": "hf32",
    "halfmma": "halfmma",
    "fp64": "fp64",
    "r2ur": "r2ur",
    "uldc": "uldc",
    "half": "half",
    "hcmp": "half",
}


_PREDICATE_MASKS: Final = facts.having("predmask")


class Access:
    """An instruction as the tables see it.

    ``reads``: (cell, role, reader class) per register read; ``writes``: (cell, result column, group of later writer);
    names as in the tables. ``read_mask``/``write_mask``: the same cells as bitsets, with B registers. ``late``: cells
    that the instruction may read long after issue, until its read scoreboard is released. ``board_w``/``board_r``: its
    results or its late reads need a scoreboard. ``stall``: least issue cycles after it (0: drain). ``signals``: later
    memory accesses and barriers wait for its scoreboard; MEMBAR raises one only for this.
    """

    __slots__ = (
        "board_r", "board_w", "guarded", "interval", "klass", "late", "latency", "pipe", "read_mask", "reads",
        "signals", "stall", "write_mask", "writes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.klass = ""
        self.reads: list[tuple[int, str, str]] = []
        self.writes: list[tuple[int, str, str]] = []
        self.read_mask = 0
        self.write_mask = 0
        self.late = 0
        self.board_w = False
        self.board_r = False
        self.guarded = False
        self.signals = False
        self.pipe = ""
        self.interval = 1
        self.latency = 4
        self.stall = 1


class Hazards:
    """The tables of one SM."""

    def __init__(self, sm: int) -> None:
        self.sm = sm
        self._matrices = load.matrices(sm)
        self._classes = load.classes(sm)
        self._scoreboards = load.scoreboards(sm)
        self._stalls = load.stalls(sm)
        self._known: dict[tuple[str, tuple[str, ...]], str] = {}
        #: (file, result column, operand role) -> distance, as far as they were asked for.
        self.raw_cycles: dict[tuple[str, str, str], int] = {}
        self._facts: dict[tuple[str, str], tuple[Pipe, tuple[str, str] | None, int, dict[str, str]]] = {}

    # -- classes ------------------------------------------------------------------------------------------------

    def klass(self, inst: Inst) -> str:
        """The hazard class of an instruction. Raises CompileError for one that no table knows."""
        key = (inst.op, inst.mods)
        found = self._known.get(key)
        if found is None:
            mods = frozenset(inst.mods)
            found = next((name for need, name in self._classes.get(inst.op, ()) if need <= mods), "")
            if not found:
                raise CompileError(
                    f"no hazard data for instruction {'.'.join((inst.op, *inst.mods))} on sm_{self.sm}", inst.line
                )
            self._known[key] = found
        return found

    def scoreboards(self, inst: Inst) -> str:
        """Which scoreboards the instruction needs: '', 'W', 'R' or 'WR'."""
        return self._scoreboards.get(self.klass(inst), ("", ""))[0]

    def needless(self, inst: Inst) -> str:
        """The reason why an instruction must not raise a scoreboard of its control word; '' if it may. No instruction
        of ptxas raises one that its class does not need (86,216 instructions of tests/kernels for sm_75 to sm_120 at
        -O0 and -O3), and the effect of a result of fixed latency on it is not known."""
        if inst.ctl is None:
            return ""
        try:
            needed = self.scoreboards(inst)
        except CompileError:
            return ""
        if inst.ctl.wr != 7 and "W" not in needed:
            return f"it sets scoreboard {inst.ctl.wr} for a result that comes after a fixed time"
        if inst.ctl.rd != 7 and "R" not in needed:
            return f"it sets scoreboard {inst.ctl.rd} for operands that it reads when it issues"
        return ""

    def pipe(self, klass: str) -> Pipe:
        """Pipe, issue interval and estimated latency of a class."""
        return load.pipes()[klass]

    def least_stall(self, inst: Inst) -> int:
        """Least stall count after the instruction; 0 means a drain, which the control word spells 0."""
        return int(self._stalls.get(self.klass(inst), ("1", ""))[0])

    def pace(self, inst: Inst, klass: str, usual: int) -> int:
        """Issue cycles from a product to the next."""
        paces = load.paces(self.sm)
        kind = "SP" if "SP" in inst.mods else inst.op
        return paces.get(f"{klass}.{kind}") or paces.get(klass, usual)

    def floor(self, klass: str) -> int:
        """Least stall count after a class of instructions if it is known, not guessed, and no drain; else 0."""
        text, source = self._stalls.get(klass, ("0", "guessed"))
        return int(text) if source != "guessed" else 0

    # -- operands -----------------------------------------------------------------------------------------------

    def access(self, inst: Inst) -> Access:
        """Everything the tables need about the instruction (physical registers)."""
        a = Access()
        klass = a.klass = self.klass(inst)
        facts = self._facts.get((klass, inst.op))
        if facts is None:
            facts = self._facts[klass, inst.op] = self._about(klass, inst.op)
        pipe, tags, a.stall, roles = facts
        a.pipe, a.interval, a.latency = pipe
        if pipe.name in ("tensor", "sreg") or klass == "dmma":
            a.interval = self.pace(inst, klass, pipe.interval)
        variable = tags is not None
        a.guarded = is_guarded(inst)
        reads = a.reads
        guard = inst.guard
        if guard is not None and guard.num != ZERO:
            reads.append((PHYSICAL_BASE[guard.file] + guard.num, "guard", klass))
        for slot, operand in enumerate(inst.srcs):
            if type(operand) is Reg:
                if operand.num == ZERO:
                    continue
                if operand.file == "R" and slot == 2 and klass in ("imadw", "imadhi"):
                    first = operand.num
                    reads.append((first, "clo", klass))
                    if operand.width > 1:
                        reads.append((first + 1, "chi", klass))
                    continue
                self._read(a, operand, roles[operand.file], klass)
            else:
                self._inner(a, inst, operand, roles, klass)
        for operand in inst.dsts:
            if type(operand) is not Reg:
                self._inner(a, inst, operand, roles, klass)
        for operand in inst.uses:
            if type(operand) is Reg and operand.num != ZERO:
                self._read(a, operand, roles[operand.file], klass)
        self._results(a, inst, klass, variable)
        mask = 0
        late = 0
        for cell, role, _ in reads:
            mask |= 1 << cell
            if cell < _R_END or (klass in _LATE_UNIFORM and role != "guard"):
                late |= 1 << cell
        a.read_mask |= mask
        if tags is not None:
            # A strong load needs a scoreboard even if no instruction reads its result: the cache invalidation after an
            # acquire waits for it.
            a.board_w = "W" in tags[0] and (
                a.write_mask & ((1 << B0) - 1) != 0
                or (klass in ("ldg", "atom") and any(m.startswith("STRONG") for m in inst.mods))
            )
            # Predicate sources of LDGSTS and BAR.RED are read at issue (measured: the next instruction overwrites
            # them); this was not measured for others.
            for operand in inst.srcs if klass not in ("ldgsts", "bar") else ():
                if type(operand) is Reg and operand.file == "P" and operand.num != ZERO:
                    late |= 1 << (_P0 + operand.num)
            # later instructions wait until it is done, whether it writes a register or not (measured)
            if klass in _SIGNALS:
                a.board_w = True
            a.signals = klass in _SIGNALS or klass == "membar"
            if klass == "membar":
                a.board_r = True
            if "R" in tags[0] and late:
                a.board_r = True
                a.late = late
        return a

    def _about(self, klass: str, op: str) -> tuple[Pipe, tuple[str, str] | None, int, dict[str, str]]:
        """Of a class and mnemonic: pipe, scoreboards, least stall, and the role of a register operand by its file."""
        tags = self._scoreboards.get(klass)
        variable = tags is not None
        p_role = klass if klass in _P_READERS else "guard"
        if klass in ("imadw", "imadhi"):
            p_role = "wab"
        elif klass == "r2p":
            p_role = "alu"
        u_role = _uniform_role(op, klass, variable)
        plain = AS_READER.get(klass) or (
            "data"
            if (variable and klass in _MEMORY) or klass in ("shfl", "membar", "bar", "sreg", "bmov", "setreg")
            else klass
        )
        # From sm_80 on, addresses of textures, surfaces and barrier objects have the distances of the other operands
        # (measured: HFMA2 -> SULD, LEA -> SYNCS).
        addr = "xu" if klass in ("tex", "sust", "syncs") and has(self.sm, "object-addresses-early") else "addr"
        roles = {
            "addr": addr,
            "R": plain,
            "UR": u_role,
            "P": p_role,
            "UP": "guard" if klass == "uldc" else u_role if u_role != "var" else "vec",
            "B": "",
        }
        if klass in ("gmma", "utc"):
            roles["UP"] = "guard"  # measured: UISETP -> HGMMA at 11, UTCHMMA never nearer than 12
        if klass == "branch":
            roles["P"] = "guard"
            roles["UP"] = "jump"
        return load.pipes()[klass], tags, int(self._stalls[klass][0]) if klass in self._stalls else 1, roles

    def _read(self, a: Access, reg: Reg, role: str, klass: str) -> None:
        first = PHYSICAL_BASE[reg.file] + reg.num
        if reg.file == "B":
            a.read_mask |= 1 << first
            return
        for cell in range(first, first + reg.width):
            a.reads.append((cell, role, klass))

    def _inner(self, a: Access, inst: Inst, operand: object, roles: dict[str, str], klass: str) -> None:
        if type(operand) is Mem:
            if operand.base is not None and operand.base.num != ZERO:
                self._read(a, operand.base, roles["addr"], klass)
            for reg in (operand.ubase, operand.desc):
                if reg is not None and reg.num != ZERO:
                    self._read(a, reg, roles["UR"], klass)
        elif type(operand) is Const:
            reg = operand.ireg
            if reg is not None and reg.num != ZERO:
                self._read(a, reg, "idx" if reg.file == "R" else "uldc", klass)
        elif type(operand) is Name and operand.name in _FILES_BY_NAME:
            first, count = _FILES_BY_NAME[operand.name]
            # P2R Rd, PR, Ra, mask: the others are not read (measured: ISETP -> P2R at 2 cycles on sm_75 to sm_89)
            wanted = _named_by_mask(inst)
            for bit in range(count):
                if wanted >> bit & 1:
                    a.reads.append((first + bit, "alu", klass))

    def _results(self, a: Access, inst: Inst, klass: str, variable: bool) -> None:
        column = AS_RESULT.get(klass, klass)
        group = _group(klass, variable, self.sm)
        mask = 0
        for operand in (*inst.dsts, *inst.defs):
            if type(operand) is Reg:
                if operand.num == ZERO:
                    continue
                first = PHYSICAL_BASE[operand.file] + operand.num
                for part in range(_filled(inst, operand)):
                    mask |= 1 << (first + part)
                    if operand.file == "B":
                        continue
                    name = column
                    if klass == "imadw":
                        name = ("whi" if part else "wlo") if operand.file == "R" else "imadw"
                    elif klass == "imadhi" and operand.file == "P":
                        name = "imadw"
                    elif klass == "r2p":
                        name = "r2p"
                    elif klass == "elect":
                        name = "dual" if operand.file == "P" else "uldc"  # measured
                    a.writes.append((first + part, name, group))
            elif type(operand) is Name and operand.name in _FILES_BY_NAME:
                first, count = _FILES_BY_NAME[operand.name]
                # R2P PR, Ra, mask: the others are not written (measured: ISETP and PLOP3 write them one cycle before
                # and after it)
                wanted = _named_by_mask(inst)
                a.guarded |= wanted < 0
                for bit in range(count):
                    if wanted >> bit & 1:
                        mask |= 1 << (first + bit)
                        a.writes.append((first + bit, "r2p", group))
        a.write_mask = mask

    # -- distances ----------------------------------------------------------------------------------------------

    def cell(self, kind: str, file: str, earlier: str, later: str, guarded: bool = False) -> Cell:
        """A table cell. ``earlier``: result column (raw, waw) or reader class (war); ``later``: operand role (raw) or
        writer group."""
        matrix = self._matrices[(kind, file)]
        line = matrix.get(later)
        if line is None:
            line = matrix.get("*")
        if line is None:
            raise KeyError(f"{kind} {file}: no row {later} on sm_{self.sm}")
        if guarded:
            found = line.get(earlier + "@")
            if found is not None:
                return found
        found = line.get(earlier) or line.get("any")
        if found is None and kind == "war":
            return Cell(1, "guessed") if later == "fixed" else Cell(2, "guessed")
        if found is None:
            raise KeyError(f"{kind} {file}: no cell {earlier} -> {later} on sm_{self.sm}")
        return found

    def longest(self, what: str, file: str, earlier: str) -> int:
        """The largest distance that any later instruction keeps from a result (``what`` w; ``@`` after its column:
        guarded) or from a reader (r)."""
        name = earlier.rstrip("@")
        most = 1
        for kind in ("raw", "waw") if what == "w" else ("war",):
            for later in self._matrices[(kind, file)]:
                line = self._matrices[(kind, file)][later]
                found = line.get(earlier) or line.get(name) or line.get("any")
                if found is not None:
                    most = max(most, found.cycles)
        return max(most, 2) if what == "r" else most

    def distance(self, kind: str, earlier: Inst, later: Inst, cell: int) -> Cell | None:
        """The least cycles between the issues of two instructions for register ``cell``; None if there is no such
        hazard.

        If the earlier instruction has a scoreboard for this hazard, the result is :data:`WAIT`: wait, at least two
        cycles later.
        """
        return self.between(kind, self.access(earlier), self.access(later), cell)

    def between(self, kind: str, first: Access, second: Access, cell: int) -> Cell | None:
        """As :meth:`distance`, for instructions that :meth:`access` has looked at."""
        if (
            first.board_r and first.late >> cell & 1
            if kind == "war"
            else first.board_w and first.write_mask >> cell & 1
        ):
            return WAIT if (second.read_mask if kind == "raw" else second.write_mask) >> cell & 1 else None
        best: Cell | None = None
        file = file_of(cell)
        for at, name, reader in first.reads if kind == "war" else first.writes:
            if at != cell:
                continue
            for at2, role, group in second.reads if kind == "raw" else second.writes:
                if at2 == cell:
                    found = self.cell(
                        kind, file, reader if kind == "war" else name, role if kind == "raw" else group, first.guarded
                    )
                    if best is None or found.cycles > best.cycles:
                        best = found
        return best


def _group(klass: str, variable: bool, sm: int) -> str:
    """The group of a class as the later writer. FP64 writes equally late with and without a scoreboard (measured on
    sm_80 and sm_120: DADD one cycle after a reader, DMUL four cycles after IMAD.MOV)."""
    if variable and (klass != "fp64" or not has(sm, "fp64-writes-fixed")):
        return "var"
    return _GROUPS.get(klass, "mma" if klass in _TENSOR else "fixed")


def _filled(inst: Inst, operand: Reg) -> int:
    """The number of registers of a destination that are written: in each half of a 256-bit load, those of the mask
    (measured)."""
    if operand.width == 4 and "256" in inst.mods and len(inst.dsts) > 1:
        mask = next((o.value for o in inst.srcs if type(o) is Imm), 0xFF)
        return (mask >> 4 if operand is inst.dsts[0] else mask & 15).bit_count()
    return operand.width


def _named_by_mask(inst: Inst) -> int:
    """The predicates that an instruction over the whole predicate file (P2R, R2P and their uniform forms) accesses, as
    a mask; -1 if its mask is no immediate."""
    mask = inst.srcs[-1] if inst.srcs else None
    if inst.op in _PREDICATE_MASKS and type(mask) is Imm and type(mask.value) is int:
        return mask.value
    return -1


def _uniform_role(op: str, klass: str, variable: bool) -> str:
    if klass in _UNIFORM:
        if klass == "uldc":
            return "uldc" if op == "ULDC" else "umov"
        return "uni"
    if klass in ("branch", "call", "ret"):
        return "jump"
    if klass == "ldc":
        return "uldc"
    return "var" if variable or klass in _TENSOR or klass == "r2ur" else "vec"


#: An instruction that waits for a scoreboard issues at least two cycles after the one that raises it.
WAIT: Final = Cell(2, "documented")


def file_of(cell: int) -> str:
    """Register file of a cell."""
    return "R" if cell < _R_END else "UR" if cell < _P0 else "P" if cell < _UP0 else "UP" if cell < B0 else "B"


#: Cell -> register file.
FILE_OF: Final = [file_of(cell) for cell in range(B0 + 16)]


def cell_name(cell: int) -> str:
    """``R12``, ``UP3``..."""
    file = file_of(cell)
    return f"{file}{cell - PHYSICAL_BASE[file]}"


@cache
def hazards(target: str | int) -> Hazards:
    """The tables of a target (``sm_90a`` or 90)."""
    return Hazards(target if isinstance(target, int) else int("".join(c for c in target if c.isdigit())))
