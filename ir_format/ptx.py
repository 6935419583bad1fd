"""The `ptx` level of the IR: resolved PTX, one step below the text.

Everything is resolved and checked: names point at one declaration, labels and registers are
indices, literals are integers or IEEE bit patterns, scopes are flattened (a name declared again
in an inner scope is renamed `name$1`, `name$2`, ... in order of declaration).  Nothing is lowered:
one :class:`PtxInst` per PTX instruction, in source order.

Layout of a stream at this level:

* one :class:`PtxModule`: header facts, debug files and sections, all module-scope variables,
  aliases, the prototypes of functions that have no body here;
* one :class:`PtxUnit` per entry kernel.  `unit.functions[0]` is the kernel; then come private
  copies of all `.func` bodies that it can reach (called, or with their address taken), in order
  of first reference.  Functions that only initialisers of unused variables point to go to the first unit.  With
  separate compilation a unit is one function.

Wire form: see :mod:`ir_format.ptx_wire`.  All classes compare by value.
"""

from __future__ import annotations

from ir_format.record import Record, fresh
from ir_format.typed import TypeAlias

# --------------------------------------------------------------------------- operands


class Reg(Record):
    """A register: index into `PtxFunction.regs` (predicates too)."""

    index: int


class NotPred(Record):
    """A negated predicate register `!%p`: index into `PtxFunction.regs`."""

    index: int


class Imm(Record):
    """An integer literal or folded constant expression, -2**63 .. 2**64-1, not truncated to the
    instruction's width (PTX truncates silently; so must the consumer)."""

    value: int


class ImmF32(Record):
    """An f32 literal as its 32 bits.  A double literal in an f32 position is already rounded."""

    bits: int


class ImmF64(Record):
    """An f64 literal as its 64 bits."""

    bits: int


class SReg(Record):
    """A special register with its sigil and component: `%tid.x`, `%clock64`, `WARP_SZ` is an Imm."""

    name: str


class Sink(Record):
    """The bit bucket `_`."""


class Sym(Record):
    """The address of a variable, parameter or function, plus a byte offset.

    The name is looked up in order in: `PtxFunction.params` and `.rets`, `PtxFunction.vars`, the
    module's variables, functions.  Names are unique over all four.
    """

    name: str
    offset: int = 0


class LabelRef(Record):
    """A label of the same function: index into `PtxFunction.labels`."""

    index: int


class LabelList(Record):
    """A `.branchtargets` list, as used by `brx.idx`: indices into `PtxFunction.labels`."""

    labels: tuple[int, ...]


class Vec(Record):
    """A brace vector `{a, b, ...}`; elements are Reg, immediates, Sink, or nested where PTX nests."""

    elems: tuple[Operand, ...]


class Addr(Record):
    """A memory operand `[base + offset]` (bytes).  Base is a Reg, a Sym (with offset 0: the offset
    is here), or an Imm for an absolute address (then offset is 0)."""

    base: Reg | Sym | Imm
    offset: int = 0


class Bracket(Record):
    """A bracketed list `[a, b, ...]` of more than an address: texture, surface and tensor operands
    such as `[tex, {x, y}]`, `[tex, sampler, {x, y}]`, `[tensormap, {c0, c1}]`.  An address among
    the parts is an Addr, a texture or sampler name a Sym."""

    parts: tuple[Operand, ...]


class Pair(Record):
    """`p|q`: two destinations written by one instruction (each Reg or Sink; a texture fetch has a Vec first)."""

    first: Reg | Sink | Vec
    second: Reg | Sink


class Part(Record):
    """A selected part of a register in a video instruction: `%r.b2`, `%r.h1`, `%r.b3210`."""

    reg: Reg
    selector: str


class Neg(Record):
    """A negated source `-a` (video multiply-add only)."""

    operand: Reg | Part


class CallTarget(Record):
    """The one operand of `call`.

    `target` is a Sym for a direct call, a Reg for an indirect one.  Args and rets are Reg,
    immediates or Syms naming `.param` variables.  For an indirect call either `proto` names an
    entry of `PtxFunction.protos`, or `targets` lists the possible functions.
    """

    target: Sym | Reg
    rets: tuple[Operand, ...] = ()
    args: tuple[Operand, ...] = ()
    proto: str | None = None
    targets: tuple[str, ...] = ()


Operand: TypeAlias = (
    Reg
    | NotPred
    | Imm
    | ImmF32
    | ImmF64
    | SReg
    | Sink
    | Sym
    | LabelRef
    | LabelList
    | Vec
    | Addr
    | Bracket
    | Pair
    | Part
    | Neg
    | CallTarget
)

# --------------------------------------------------------------------------- instructions


class PtxInst(Record):
    """One PTX instruction.

    `op` is the mnemonic up to the first dot (`add`, `cp`, `mbarrier`, `tcgen05`); `mods` are all
    dot-parts after it, without dots, in the descriptor row's slot order, as written (no defaults
    filled in): `add.rn.ftz.f32` is op `add`, mods `('rn', 'ftz', 'f32')`.  A part that holds
    colons stays whole (`shared::cluster`).  `types` are the type parts among the mods in order,
    so `cvt.rn.f32.s32` has types `('f32', 's32')`: destination first.

    Operands are in source order, destination first; absent optional operands have no entry.
    `guard` is (register index, negated) or None.  `line` is the line in the PTX text (1-based,
    `# line` markers not applied), `loc` an index into `PtxFunction.locs` or None.  `row` is the
    key of the descriptor row that matched.
    """

    op: str
    mods: tuple[str, ...]
    types: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: tuple[int, bool] | None = None
    line: int = 0
    loc: int | None = None
    row: str = ""

    @property
    def opcode(self) -> str:
        """The full dotted opcode, `add.rn.ftz.f32`."""
        return ".".join((self.op, *self.mods))

    def has(self, mod: str) -> bool:
        """True if the modifier was written (without its dot)."""
        return mod in self.mods


class PtxLabel(Record):
    """A label definition: index into `PtxFunction.labels`."""

    index: int
    line: int = 0


class PtxPragma(Record):
    """A `.pragma` inside a body (`nounroll`, `used_bytes_mask ...`), at its place."""

    text: str
    line: int = 0


Item: TypeAlias = PtxInst | PtxLabel | PtxPragma

# --------------------------------------------------------------------------- declarations


class PtxReg(Record):
    """A declared register.  `type` is as declared: pred, b16, b32, b64, b128, u8.., s32.., f16,
    f16x2, f32, f64, ...  A `.reg .v4 .f32 %v` is split into `%v.x`, `%v.y`, `%v.z`, `%v.w`, which
    are at successive indices; their `vec` is 4 (else 1)."""

    name: str
    type: str
    vec: int = 1


class PtxReloc(Record):
    """An address inside an initialiser: `size` bytes at `offset` hold (symbol + addend), as a
    generic address if `generic`.  `mask` 0 means the whole address; else one byte selected by
    `mask()` (0xFF, 0xFF00, ...).  The bytes at that place are 0."""

    offset: int
    size: int
    symbol: str
    addend: int = 0
    generic: bool = False
    mask: int = 0


class PtxVar(Record):
    """A variable in memory, at module scope or in a function.

    `space` is global, const, shared, local, param or tex; `type` the element type (b8 ... f64,
    b128) or texref, samplerref, surfref; `vec` 1, 2 or 4 elements per item (`.v2`); `dims` the
    array dimensions as declared (() for a scalar; a leading 0 for an unsized extern array, or the
    count that the initialiser implies); `size` in bytes over all dimensions, `align` in bytes (the
    natural one if not given).  `init` is None (zero / undefined) or exactly `size` bytes.
    `linkage` is "", extern, visible, weak or common.  `attributes` e.g. ('managed',).
    `fields` are the initialiser fields of a samplerref and its like, in order, as text.
    """

    name: str
    space: str
    type: str
    align: int
    size: int
    dims: tuple[int, ...] = ()
    vec: int = 1
    init: bytes | None = None
    relocs: tuple[PtxReloc, ...] = ()
    linkage: str = ""
    attributes: tuple[str, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    line: int = 0


class PtxParam(Record):
    """A parameter or return parameter of an entry, function or prototype.

    `space` is param or reg.  For param: element `type`, `dims`, `align`, `size` in bytes, and
    `offset` in the parameter space with natural alignment from 0 (driver layout for entries).
    For reg: `reg` is the index into `PtxFunction.regs` (-1 in a prototype), size the width in
    bytes.  `.ptr` gives `ptr` True with `ptr_space` ("" for generic) and `ptr_align` (bytes,
    0 if not given).  Opaque parameters have type texref, samplerref or surfref.
    """

    name: str
    type: str
    align: int
    size: int
    dims: tuple[int, ...] = ()
    space: str = "param"
    offset: int = 0
    reg: int = -1
    ptr: bool = False
    ptr_space: str = ""
    ptr_align: int = 0
    vec: int = 1


class PtxDirectives(Record):
    """Performance and ABI directives; None or False where absent.  Triples are x, y, z."""

    maxntid: tuple[int, ...] | None = None
    reqntid: tuple[int, ...] | None = None
    minnctapersm: int | None = None
    maxnctapersm: int | None = None
    maxnreg: int | None = None
    local_maxnreg: int | None = None
    reqnctapercluster: tuple[int, ...] | None = None
    explicitcluster: bool = False
    maxclusterrank: int | None = None
    blocksareclusters: bool = False
    noreturn: bool = False
    abi_preserve: int | None = None
    abi_preserve_control: int | None = None
    pragmas: tuple[str, ...] = ()


class PtxProto(Record):
    """A call signature: a `.callprototype`, or a function without a body in this unit."""

    name: str
    rets: tuple[PtxParam, ...] = ()
    params: tuple[PtxParam, ...] = ()
    linkage: str = ""
    directives: PtxDirectives = fresh(default_factory=PtxDirectives)
    line: int = 0


class PtxLoc(Record):
    """A `.loc`: file index (`PtxFile.index`), line, column; `inlined_at` is an index into the same
    `PtxFunction.locs` with `function` naming the inlined function as (debug label, byte offset)."""

    file: int
    line: int
    col: int
    inlined_at: int | None = None
    function: tuple[str, int] | None = None


class PtxFunction(Record):
    """An entry or function with its body.

    `regs` is the register table that operand indices refer to, in order of declaration; `vars`
    are function-scope variables of every nested scope; `labels` are label names (unique in the
    function); `protos` the `.callprototype`s by name; `body` the flat code.
    """

    name: str
    entry: bool
    linkage: str = ""
    rets: tuple[PtxParam, ...] = ()
    params: tuple[PtxParam, ...] = ()
    directives: PtxDirectives = fresh(default_factory=PtxDirectives)
    regs: list[PtxReg] = fresh(default_factory=list)
    vars: list[PtxVar] = fresh(default_factory=list)
    labels: list[str] = fresh(default_factory=list)
    protos: list[PtxProto] = fresh(default_factory=list)
    locs: list[PtxLoc] = fresh(default_factory=list)
    body: list[Item] = fresh(default_factory=list)
    line: int = 0
    end_line: int = 0


class PtxUnit(Record):
    """One unit of compilation: `functions[0]` is the kernel (or the lone function).

    `variables` names the module-scope variables used by any function of the unit (in order of
    first use, initialisers followed); `externs` are signatures of functions called but not
    defined in the unit.
    """

    name: str
    functions: list[PtxFunction] = fresh(default_factory=list)
    variables: list[str] = fresh(default_factory=list)
    externs: list[PtxProto] = fresh(default_factory=list)


class PtxFile(Record):
    """A `.file` directive; `timestamp` and `size` are None if not given."""

    index: int
    name: str
    timestamp: int | None = None
    size: int | None = None


class PtxFixup(Record):
    """An address in a debug section: `size` bytes at `offset` hold symbol - minus + addend
    (`minus` "" if none).  Symbols are section labels, section names, functions, variables or
    code labels; `function` qualifies a code label."""

    offset: int
    size: int
    symbol: str
    addend: int = 0
    minus: str = ""


class PtxSection(Record):
    """A `.section` of DWARF data: bytes, addresses in it, and labels (name, offset)."""

    name: str
    data: bytes = b""
    fixups: tuple[PtxFixup, ...] = ()
    labels: tuple[tuple[str, int], ...] = ()
    line: int = 0


class PtxAlias(Record):
    """`.alias name, aliasee;`: a unit that calls `name` holds the body of `aliasee` (and `name` among its externs)."""

    name: str
    aliasee: str
    line: int = 0


class PtxModule(Record):
    """Module record: header and everything that units share.

    `version` is (major, minor); `target` the `.target` name (`sm_90a`), `target_options` the rest
    of that directive in order (`texmode_independent`, `debug`); `address_size` 64 (or 32).
    `variables` are all module-scope variables in source order, `entries` and `functions` the names
    of those that units hold, in source order, `externs` the signatures of undefined functions.
    """

    version: tuple[int, int]
    target: str
    target_options: tuple[str, ...] = ()
    address_size: int = 64
    files: list[PtxFile] = fresh(default_factory=list)
    variables: list[PtxVar] = fresh(default_factory=list)
    entries: list[str] = fresh(default_factory=list)
    functions: list[str] = fresh(default_factory=list)
    externs: list[PtxProto] = fresh(default_factory=list)
    aliases: list[PtxAlias] = fresh(default_factory=list)
    sections: list[PtxSection] = fresh(default_factory=list)
    pragmas: tuple[str, ...] = ()
    text: str = ""  # the PTX as given, where line tables are wanted
