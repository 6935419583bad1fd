"""The Ori IR: the data that the stages between `lower` and `elf` read and write.

A *unit* is one kernel with private copies of the device functions it reaches (or one function with ``-c``). It holds
functions; a function holds blocks in layout order; a block holds instructions; instructions hold operands.

Opcodes are SASS mnemonics from the first level on, spelled as nvdisasm spells them: ``op="IADD3"``, ``mods=("X",)``.
Operands are in nvdisasm's print order, **with every optional slot present** (an unused predicate output is ``PT``, an
unused predicate input ``!PT`` or ``PT`` as the spec row says); :func:`ir_format.isa.complete` fills omitted slots.

Levels: ``ptx`` -> ``ori`` -> ``allocated`` -> ``scheduled`` -> ``encoded``. At ``ori`` a register operand names a
virtual register of its function; from ``allocated`` on it names a physical one. Operands are immutable tuples that go
to the wire as they are; instructions and blocks are mutable slotted objects.
"""

from __future__ import annotations

from ir_format.record import NamedTuple
from ir_format.typed import Final, TypeAlias

LEVELS: Final = ("ptx", "ori", "allocated", "scheduled", "encoded")

# Register files. R: 32-bit per-thread; UR: 32-bit per-warp; P, UP: predicates; B: convergence barriers.
FILES: Final = ("R", "UR", "P", "UP", "B")

# Operand flags (bit set).
NEG: Final = 1  # arithmetic negation, printed -x
ABS: Final = 2  # |x|
INV: Final = 4  # ~x for integers, !p for predicates
REUSE: Final = 8  # operand cache hint, from level `scheduled` on

ZERO: Final = -1  # register number of RZ, URZ, PT, UPT at every level


class Reg(NamedTuple):
    """A register operand.

    At level ``ori``: ``num`` is the index into ``Function.vregs``, ``sub`` the first 32-bit component that is accessed
    and ``width`` how many (1, 2, 3, 4, 8...). From ``allocated`` on: ``num`` is the physical number of the first
    register, ``sub`` is 0. ``num == ZERO`` is RZ/URZ (zero) or PT/UPT (true), whatever the width. ``mod`` is an operand
    suffix as nvdisasm prints it, without the dot (``H0_H0``, ``H1``, ``B2``, ``X4``...).
    """

    file: str
    num: int
    sub: int = 0
    width: int = 1
    flags: int = 0
    mod: str = ""


class Imm(NamedTuple):
    """An immediate. ``value`` is the bit pattern of the field as an unsigned integer (32-bit operand: 0..2**32-1; a
    float is its IEEE bits). Small signed fields of a few opcodes hold a signed integer where the spec row says so.
    With ``sym`` the value is relative to the symbol: ``fmt`` is ``lo``/``hi`` for the halves of a 64-bit address,
    ``off`` for an offset inside a bank or window."""

    kind: str  # always "I"
    value: int
    sym: str = ""
    fmt: str = ""
    flags: int = 0
    mod: str = ""


class Const(NamedTuple):
    """A constant-bank operand ``c[bank][ireg + offset]``; bytes. ``ireg`` is an R register (LDC) or a UR register
    (``cx[UR][offset]``, bank ignored). ``width`` in 32-bit words. With ``sym``, ``offset`` is relative to the place
    that `elf` gives the symbol in the bank (bank 3: the variable; bank 4: the 8-byte slot that holds the symbol's
    address)."""

    kind: str  # always "C"
    bank: int
    offset: int
    width: int = 1
    ireg: Reg | None = None
    flags: int = 0
    sym: str = ""
    mod: str = ""


class Mem(NamedTuple):
    """A memory address ``desc[desc][base + ubase + offset]``. ``base.width`` 2 prints ``.64``; ``base.mod`` may be a
    scale (X4, X8, X16) or ``U32``. ``offset`` is a signed byte offset. ``sym``: the offset is relative to a symbol
    (shared address)."""

    kind: str  # always "M"
    base: Reg | None
    ubase: Reg | None = None
    offset: int = 0
    desc: Reg | None = None
    sym: str = ""


class Label(NamedTuple):
    """A block of the same function, by ``Block.id``."""

    kind: str  # always "L"
    block: int


class Sym(NamedTuple):
    """A code symbol (function) plus a byte addend, for CALL and relocated moves."""

    kind: str  # always "S"
    name: str
    addend: int = 0


class Name(NamedTuple):
    """A named operand: special register (``SR_TID.X``), scoreboard (``SB0``), or any keyword operand that nvdisasm
    prints as a word."""

    kind: str  # always "N"
    name: str


Operand: TypeAlias = Reg | Imm | Const | Mem | Label | Sym | Name

RZ: Final = Reg("R", ZERO)
RZ2: Final = Reg("R", ZERO, 0, 2)
URZ: Final = Reg("UR", ZERO)
PT: Final = Reg("P", ZERO)
NOT_PT: Final = Reg("P", ZERO, 0, 1, INV)
UPT: Final = Reg("UP", ZERO)
NOT_UPT: Final = Reg("UP", ZERO, 0, 1, INV)


def imm(value: int) -> Imm:
    """A 32-bit immediate from any Python integer (wraps modulo 2**32)."""
    return Imm("I", value & 0xFFFFFFFF)


def cbank(bank: int, offset: int, width: int = 1, sym: str = "") -> Const:
    """``c[bank][offset]``, ``width`` 32-bit words."""
    return Const("C", bank, offset, width, None, 0, sym)


def mem(base: Reg | None, offset: int = 0, ubase: Reg | None = None, desc: Reg | None = None) -> Mem:
    """A memory operand."""
    return Mem("M", base, ubase, offset, desc)


def label(block: int) -> Label:
    """A reference to a block."""
    return Label("L", block)


class Ctl(NamedTuple):
    """Control word of one instruction (bits 105-121). ``stall``: issue cycles until the warp's next instruction, 0-15.
    ``yield_``: bit 109 as encoded (1 = do not switch; see measured B2: 0 is always legal, 1 only with stall 1-11).
    ``wr``/``rd``: scoreboard set when the result is written / the sources are read, 7 = none. ``wait``: bit i = wait
    until scoreboard i is 0 before issue."""

    stall: int = 15
    yield_: int = 0
    wr: int = 7
    rd: int = 7
    wait: int = 0


#: Sources, destinations, guard and ``uses`` of an instruction, and the registers that it reads with them.
KnownReads: TypeAlias = tuple[tuple[Operand, ...], tuple[Operand, ...], Reg | None, tuple[Operand, ...], list[Reg]]


class Inst:
    """One instruction.

    ``uses``/``defs`` are register operands touched besides the encoded ones (call arguments and results, values live
    out at RET; block references of BRX). ``line`` is the PTX line (1-based; 0 = none), ``loc`` an index into
    ``Function.locs`` (source position; -1 = none). ``attrs`` holds rare facts by name (ints, strings or tuples of
    them): see docs/stream.md. ``known_reads`` belongs to :func:`ir_format.flow.read_regs`: what it saw last and
    the registers in that. Code that replaces an operand need not care.
    """

    __slots__ = ("attrs", "ctl", "defs", "dsts", "guard", "known_reads", "line", "loc", "mods", "op", "srcs", "uses")

    def __init__(
        self,
        op: str,
        mods: tuple[str, ...] = (),
        dsts: tuple[Operand, ...] = (),
        srcs: tuple[Operand, ...] = (),
        guard: Reg | None = None,
        line: int = 0,
        loc: int = -1,
        ctl: Ctl | None = None,
        uses: tuple[Operand, ...] = (),
        defs: tuple[Operand, ...] = (),
        attrs: dict[str, AttrValue] | None = None,
    ) -> None:
        self.op = op
        self.mods = mods
        self.dsts = dsts
        self.srcs = srcs
        self.guard = guard
        self.line = line
        self.loc = loc
        self.ctl = ctl
        self.uses = uses
        self.defs = defs
        self.attrs = attrs
        self.known_reads: KnownReads | None = None

    def __eq__(self, other: object) -> bool:
        if type(other) is not Inst:
            return NotImplemented
        return self._key() == other._key()

    def _key(self) -> tuple[object, ...]:
        return (
            self.op,
            self.mods,
            self.dsts,
            self.srcs,
            self.guard,
            self.line,
            self.loc,
            self.ctl,
            self.uses,
            self.defs,
            self.attrs,
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{'.'.join((self.op, *self.mods))} {self.dsts} <- {self.srcs}>"


AttrValue: TypeAlias = int | str | tuple["AttrValue", ...]

# Pseudo instructions of levels `ori` (none survives `regalloc` except where said):
#   COPY d <- s        any width; R<->R, UR<->UR, UR->R, P<->P, R->UR when the value is uniform, Imm/Const -> R/UR
#   PCOPY d.. <- s..   parallel copy
#   PHI d <- s..       only inside `optimize` (attrs["preds"] = block ids)
#   UNDEF d            any value
#   FENTRY             first instruction of a device function; `defs` = fixed vregs of the arguments and of the return
# address
PSEUDO: Final = frozenset({"COPY", "PCOPY", "PHI", "UNDEF", "FENTRY"})


class VReg(NamedTuple):
    """A virtual register: ``width`` 32-bit components (predicates and B: 1), aligned to ``align`` registers when
    allocated. ``fixed``: physical register it must get, or -1. ``uniform``: 1 when every thread of the warp holds the
    same value. ``name``: the PTX register it came from, or ''."""

    file: str
    width: int = 1
    align: int = 1
    fixed: int = -1
    uniform: int = 0
    name: str = ""


class Block:
    """A basic block. ``id`` is unique in the function and stable; layout order is the order in ``Function.blocks``.

    A branch (BRA, BRX, EXIT, RET...) may only be the last instruction. Control falls through to the next block of
    the layout unless the last instruction is an unguarded BRA/BRX/EXIT/RET/BPT.TRAP... BSSY and CALL do not end a
    block.
    """

    __slots__ = ("depth", "id", "insts")

    def __init__(self, id: int, insts: list[Inst] | None = None, depth: int = 0) -> None:
        self.id = id
        self.insts: list[Inst] = [] if insts is None else insts
        self.depth = depth  # loop depth, 0 outside loops

    def __eq__(self, other: object) -> bool:
        if type(other) is not Block:
            return NotImplemented
        return self.id == other.id and self.depth == other.depth and self.insts == other.insts

    __hash__ = None  # type: ignore[assignment]


class Function:
    """A function of a unit. ``kind``: ``entry``, ``func`` (user device function) or ``helper`` (our math library).

    ``frame``: bytes of local memory that [R1 + 0 .. frame) names (user arrays, outgoing arguments, later spill slots);
    multiple of 8. ``locs``: source positions (file index, line, column, inlined-at loc or -1, function name).
    ``regs``: register file -> highest physical index used + 1, set by regalloc. ``spills``: (store bytes, load bytes).
    """

    __slots__ = ("attrs", "blocks", "frame", "kind", "locs", "name", "regs", "spills", "vregs")

    def __init__(self, name: str, kind: str = "entry") -> None:
        self.name = name
        self.kind = kind
        self.blocks: list[Block] = []
        self.vregs: list[VReg] = []
        self.frame = 0
        self.locs: list[tuple[int, int, int, int, str]] = []
        self.regs: dict[str, int] = {}
        self.spills: tuple[int, int] = (0, 0)
        self.attrs: dict[str, AttrValue] = {}

    def new_vreg(
        self, file: str, width: int = 1, align: int = 0, fixed: int = -1, uniform: int = 0, name: str = ""
    ) -> Reg:
        """Add a virtual register and return the operand that names all of it."""
        if align == 0:
            align = min(width, 4) if width != 3 else 4
        self.vregs.append(VReg(file, width, align, fixed, uniform, name))
        return Reg(file, len(self.vregs) - 1, 0, width)

    def __eq__(self, other: object) -> bool:
        if type(other) is not Function:
            return NotImplemented
        return self._key() == other._key()

    def _key(self) -> tuple[object, ...]:
        return (
            self.name,
            self.kind,
            self.frame,
            self.regs,
            self.spills,
            self.attrs,
            self.locs,
            self.vregs,
            self.blocks,
        )

    __hash__ = None  # type: ignore[assignment]


class Reloc(NamedTuple):
    """A place in the code of a function that `elf` fills. ``offset``: byte offset of the instruction in the function's
    code. ``kind``: ``bank3`` / ``bank4`` (add the symbol's bank offset / slot offset to the const-operand offset
    field), ``imm_lo``, ``imm_hi``, ``imm_off`` (imm32 field: halves of an address, or offset in its bank or window),
    ``call`` (pc-relative branch field to a function of the unit)."""

    offset: int
    kind: str
    symbol: str
    addend: int = 0


class Code(NamedTuple):
    """Machine code of one function, level `encoded`. ``data``: 16 bytes per instruction, no tail padding. ``lines``:
    (byte offset, PTX line, loc index). ``marks``: (kind, byte offset, value) for .nv.info lists: ``exit``, ``coop``
    (value: register or -1), ``syscall``..."""

    name: str
    kind: str
    data: bytes
    relocs: tuple[Reloc, ...] = ()
    lines: tuple[tuple[int, int, int], ...] = ()
    marks: tuple[tuple[str, int, int], ...] = ()
    regs: int = 0
    frame: int = 0


class Param(NamedTuple):
    """A kernel parameter; offset and size in bytes from the parameter base. ``space``: pointee space of `.ptr` or '';
    ``ptr_align`` its alignment."""

    name: str
    offset: int
    size: int
    align: int
    space: str = ""
    ptr_align: int = 0


class Unit:
    """One kernel (kind ``entry``) or one function compiled with -c (kind ``func``): the record that travels through the
    stages.

    ``functions[0]`` is the unit's own function. ``attrs`` holds launch bounds and resources by name (docs/stream.md):
    ``reqntid``, ``maxntid``, ``minnctapersm``, ``maxnreg``, ``shared`` (static bytes), ``barriers`` (highest index +
    1)... ``diags``: diagnostics as (severity, message, line); a unit with an ``error`` travels on empty and stops
    `elf`. ``sections``: optional data by name (schedule reasons, live ranges...): integers, strings and nested tuples
    of them.
    """

    __slots__ = ("attrs", "code", "diags", "functions", "kind", "linkage", "name", "params", "sections", "symbols")

    def __init__(self, name: str, kind: str = "entry", linkage: str = "visible") -> None:
        self.name = name
        self.kind = kind
        self.linkage = linkage
        self.functions: list[Function] = []
        self.params: list[Param] = []
        self.code: list[Code] = []
        self.symbols: list[str] = []  # module symbols this unit refers to, in first-use order
        self.attrs: dict[str, AttrValue] = {}
        self.diags: list[tuple[str, str, int]] = []
        self.sections: dict[str, AttrValue] = {}


class Var(NamedTuple):
    """A module variable. ``space``: global, const, shared, local... ``size``/``align`` in bytes. ``init``: initial
    bytes or b'' (zero). ``relocs``: (byte offset, symbol, addend, form) of addresses inside ``init``; form: 1 for a
    generic address, 0 for one in the symbol's space, plus twice the number of the part that is stored: 0 all eight
    bytes, 1..8 only the byte of that number, 9 the low four bytes. ``linkage``: visible, weak, extern, common,
    static."""

    name: str
    space: str
    size: int
    align: int
    init: bytes = b""
    relocs: tuple[tuple[int, str, int, int], ...] = ()
    linkage: str = "static"
    attrs: tuple[str, ...] = ()


class Module:
    """Data that units share: variables in declaration order, external functions, unit names in declaration order, debug
    files."""

    __slots__ = ("attrs", "externs", "files", "sections", "units", "vars")

    def __init__(self) -> None:
        self.vars: list[Var] = []
        self.externs: list[str] = []
        self.units: list[str] = []
        self.files: list[tuple[int, str]] = []
        self.attrs: dict[str, AttrValue] = {}
        self.sections: dict[str, AttrValue] = {}


class Header:
    """First object of a stream. ``target``: e.g. ``sm_90a``; ``ptx_target``/``ptx_version``: from the PTX text;
    ``options``: by ptxas's long name; ``producers``: (stage, version) of every stage that wrote it; ``source``: input
    file name as given."""

    __slots__ = ("level", "options", "producers", "ptx_target", "ptx_version", "source", "target")

    def __init__(self, level: str, target: str, source: str = "") -> None:
        self.level = level
        self.target = target
        self.ptx_target = target
        self.ptx_version = "9.0"
        self.options: dict[str, AttrValue] = {}
        self.producers: list[tuple[str, str]] = []
        self.source = source
