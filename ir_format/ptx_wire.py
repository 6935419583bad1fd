"""Wire form of the `ptx` level: lists of integers, strings, byte strings and nil only.

A declaration class is a list of its fields in declaration order (the tables `_FIELDS` below say
how each is written).  A function body is compact, since it is most of the stream:

* `ops`: table of `[op, mods, types, row]`, each distinct opcode once, in order of first use;
* `body`: one list per item; instruction `[ops index, line, loc or -1, guard, operand...]` with
  guard -1 for none, else register * 2 + negated; label `[-1, index, line]`; pragma
  `[-2, text, line]`;
* operands: a register is its bare index; every other kind a list `[tag, ...]` (`_TAGS`).

Reading trusts nothing: types, lengths, ranges and indices are checked, and every fault is a
:class:`ir_format.diag.StreamError`.
"""

from __future__ import annotations

from collections.abc import Callable

from ir_format import ptx
from ir_format.diag import StreamError
from ir_format.ptx import (
    Addr,
    Bracket,
    CallTarget,
    Imm,
    ImmF32,
    ImmF64,
    LabelList,
    LabelRef,
    Neg,
    NotPred,
    Operand,
    Pair,
    Part,
    PtxFunction,
    PtxInst,
    PtxLabel,
    PtxModule,
    PtxPragma,
    PtxUnit,
    Reg,
    Sink,
    SReg,
    Sym,
    Vec,
)
from ir_format.record import Record
from ir_format.record import fields as fields_of
from ir_format.typed import Any, Final

Wire = Any  # int | str | bytes | None | list[Wire]

# Operand tags. A bare integer is a Reg.
(
    T_NOT,
    T_IMM,
    T_F32,
    T_F64,
    T_SREG,
    T_SINK,
    T_SYM,
    T_LABEL,
    T_LABELS,
    T_VEC,
    T_ADDR,
    T_BRACKET,
    T_PAIR,
    T_PART,
    T_NEG,
    T_CALL,
) = range(16)

_MAX_DEPTH = 4  # of operand nesting; PTX needs 3
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1


# --------------------------------------------------------------------------- scalars


def _fail(what: str, x: object) -> StreamError:
    text = repr(x)
    return StreamError(f"ptx record: expected {what}, found {text[:60]}")


def _int(x: Wire) -> int:
    if type(x) is not int or not _INT_MIN <= x <= _INT_MAX:
        raise _fail("an integer", x)
    return x


def _nat(x: Wire) -> int:
    if type(x) is not int or not 0 <= x <= _INT_MAX:
        raise _fail("a non-negative integer", x)
    return x


def _str(x: Wire) -> str:
    if type(x) is not str:
        raise _fail("a string", x)
    return x


def _bool(x: Wire) -> bool:
    if x is not True and x is not False:
        raise _fail("a boolean", x)
    return bool(x)


def _bytes(x: Wire) -> bytes:
    if type(x) is not bytes:
        raise _fail("a byte string", x)
    return x


def _list(x: Wire, what: str = "a list") -> list[Wire]:
    if type(x) is not list:
        raise _fail(what, x)
    return x


def _sized(x: Wire, n: int, what: str) -> list[Wire]:
    if type(x) is not list or len(x) != n:
        raise _fail(f"{what} of {n} fields", x)
    return x


# --------------------------------------------------------------------------- codecs for declarations

Codec = tuple[Callable[[Any], Wire], Callable[[Wire], Any]]


def _same(x: Any) -> Wire:
    return x


def _lanes(x: Wire) -> int:
    if x not in (1, 2, 4) or type(x) is not int:
        raise _fail("1, 2 or 4 elements", x)
    return x


_INT: Codec = (_same, _int)
_NAT: Codec = (_same, _nat)
_LANES: Codec = (_same, _lanes)
_STR: Codec = (_same, _str)
_BOOL: Codec = (_same, _bool)
_BYTES: Codec = (_same, _bytes)


def _opt(c: Codec) -> Codec:
    enc, dec = c
    return (lambda x: None if x is None else enc(x)), (lambda x: None if x is None else dec(x))


def _tup(c: Codec) -> Codec:
    enc, dec = c
    return (lambda x: [enc(e) for e in x]), (lambda x: tuple([dec(e) for e in _list(x)]))


def _lst(c: Codec) -> Codec:
    enc, dec = c
    return (lambda x: [enc(e) for e in x]), (lambda x: [dec(e) for e in _list(x)])


def _fixed(*cs: Codec) -> Codec:
    def enc(x: Any) -> Wire:
        return [c[0](e) for c, e in zip(cs, x, strict=True)]

    def dec(x: Wire) -> Any:
        return tuple([c[1](e) for c, e in zip(cs, _sized(x, len(cs), "a tuple"), strict=True)])

    return enc, dec


def _rec(cls: type[Record], **fields: Codec) -> Codec:
    """Codec of a record whose fields are given in declaration order (checked)."""
    names = tuple(fields)
    if names != fields_of(cls):
        raise TypeError(f"wire fields of {cls.__name__} do not match the class")
    encs = [(n, c[0]) for n, c in fields.items()]
    decs = [c[1] for c in fields.values()]
    what = f"a {cls.__name__}"

    def enc(x: Any) -> Wire:
        return [e(getattr(x, n)) for n, e in encs]

    def dec(x: Wire) -> Any:
        return cls(*[d(v) for d, v in zip(decs, _sized(x, len(decs), what), strict=True)])

    return enc, dec


_STRS = _tup(_STR)
_INTS = _tup(_NAT)
_REG = _rec(ptx.PtxReg, name=_STR, type=_STR, vec=_LANES)
_RELOC = _rec(ptx.PtxReloc, offset=_NAT, size=_NAT, symbol=_STR, addend=_INT, generic=_BOOL, mask=_NAT)
_VAR = _rec(
    ptx.PtxVar, name=_STR, space=_STR, type=_STR, align=_NAT, size=_NAT, dims=_INTS, vec=_LANES, init=_opt(_BYTES),
    relocs=_tup(_RELOC), linkage=_STR, attributes=_STRS, fields=_tup(_fixed(_STR, _STR)), line=_NAT,
)  # fmt: skip
_PARAM = _rec(
    ptx.PtxParam, name=_STR, type=_STR, align=_NAT, size=_NAT, dims=_INTS, space=_STR, offset=_NAT, reg=_INT,
    ptr=_BOOL, ptr_space=_STR, ptr_align=_NAT, vec=_LANES,
)  # fmt: skip
_DIRECTIVES = _rec(
    ptx.PtxDirectives, maxntid=_opt(_INTS), reqntid=_opt(_INTS), minnctapersm=_opt(_NAT), maxnctapersm=_opt(_NAT),
    maxnreg=_opt(_NAT), local_maxnreg=_opt(_NAT), reqnctapercluster=_opt(_INTS), explicitcluster=_BOOL,
    maxclusterrank=_opt(_NAT), blocksareclusters=_BOOL, noreturn=_BOOL, abi_preserve=_opt(_NAT),
    abi_preserve_control=_opt(_NAT), pragmas=_STRS,
)  # fmt: skip
_PROTO = _rec(
    ptx.PtxProto, name=_STR, rets=_tup(_PARAM), params=_tup(_PARAM), linkage=_STR, directives=_DIRECTIVES, line=_NAT
)
_LOC = _rec(ptx.PtxLoc, file=_NAT, line=_NAT, col=_NAT, inlined_at=_opt(_NAT), function=_opt(_fixed(_STR, _INT)))
_FILE = _rec(ptx.PtxFile, index=_NAT, name=_STR, timestamp=_opt(_NAT), size=_opt(_NAT))
_FIXUP = _rec(ptx.PtxFixup, offset=_NAT, size=_NAT, symbol=_STR, addend=_INT, minus=_STR)
_SECTION = _rec(ptx.PtxSection, name=_STR, data=_BYTES, fixups=_tup(_FIXUP), labels=_tup(_fixed(_STR, _NAT)), line=_NAT)
_ALIAS = _rec(ptx.PtxAlias, name=_STR, aliasee=_STR, line=_NAT)
_MODULE = _rec(
    ptx.PtxModule, version=_fixed(_NAT, _NAT), target=_STR, target_options=_STRS, address_size=_NAT,
    files=_lst(_FILE), variables=_lst(_VAR), entries=_lst(_STR), functions=_lst(_STR), externs=_lst(_PROTO),
    aliases=_lst(_ALIAS), sections=_lst(_SECTION), pragmas=_STRS, text=_STR,
)  # fmt: skip

# --------------------------------------------------------------------------- operands out


def _operand_out(x: Operand) -> Wire:
    return _OUT[type(x)](x)


def _call_out(x: CallTarget) -> Wire:
    return [
        T_CALL,
        _operand_out(x.target),
        [_operand_out(e) for e in x.rets],
        [_operand_out(e) for e in x.args],
        x.proto,
        list(x.targets),
    ]


_OUT: dict[type, Callable[[Any], Wire]] = {
    Reg: lambda x: x.index,
    NotPred: lambda x: [T_NOT, x.index],
    Imm: lambda x: [T_IMM, x.value],
    ImmF32: lambda x: [T_F32, x.bits],
    ImmF64: lambda x: [T_F64, x.bits],
    SReg: lambda x: [T_SREG, x.name],
    Sink: lambda x: [T_SINK],
    Sym: lambda x: [T_SYM, x.name, x.offset],
    LabelRef: lambda x: [T_LABEL, x.index],
    LabelList: lambda x: [T_LABELS, *x.labels],
    Vec: lambda x: [T_VEC, *[_operand_out(e) for e in x.elems]],
    Addr: lambda x: [T_ADDR, _operand_out(x.base), x.offset],
    Bracket: lambda x: [T_BRACKET, *[_operand_out(e) for e in x.parts]],
    Pair: lambda x: [T_PAIR, _operand_out(x.first), _operand_out(x.second)],
    Part: lambda x: [T_PART, x.reg.index, x.selector],
    Neg: lambda x: [T_NEG, _operand_out(x.operand)],
    CallTarget: _call_out,
}

# --------------------------------------------------------------------------- operands in


class _Reader:
    """Reads the operands of one function; holds the sizes of its tables."""

    __slots__ = ("labels", "locs", "regs")

    def __init__(self, regs: int, labels: int, locs: int) -> None:
        self.regs = regs
        self.labels = labels
        self.locs = locs

    def reg(self, x: Wire) -> Reg:
        if type(x) is not int or not 0 <= x < self.regs:
            raise _fail("a register index", x)
        return Reg(x)

    def label(self, x: Wire) -> int:
        if type(x) is not int or not 0 <= x < self.labels:
            raise _fail("a label index", x)
        return x

    def operand(self, x: Wire, depth: int = 0) -> Operand:
        if type(x) is int:
            return self.reg(x)
        if type(x) is not list or not x or type(x[0]) is not int or not 0 <= x[0] < len(_IN):
            raise _fail("an operand", x)
        if depth >= _MAX_DEPTH:
            raise StreamError("ptx record: operands nested too deeply")
        arity, read = _IN[x[0]]
        if arity >= 0 and len(x) != arity + 1:
            raise _fail(f"an operand of {arity} fields", x)
        return read(self, x, depth + 1)

    def one_of(self, x: Wire, depth: int, *kinds: type) -> Any:
        got = self.operand(x, depth)
        if type(got) not in kinds:
            raise _fail(" or ".join(k.__name__ for k in kinds), x)
        return got

    def many(self, xs: list[Wire], depth: int) -> tuple[Operand, ...]:
        return tuple([self.operand(e, depth) for e in xs])

    def call(self, x: list[Wire], d: int) -> CallTarget:
        target = self.one_of(x[1], d, Sym, Reg)
        proto = None if x[4] is None else _str(x[4])
        targets = tuple([_str(e) for e in _list(x[5])])
        return CallTarget(target, self.many(_list(x[2]), d), self.many(_list(x[3]), d), proto, targets)


def _bits(x: Wire, width: int) -> int:
    if type(x) is not int or not 0 <= x < 1 << width:
        raise _fail(f"{width} bits", x)
    return x


_In = Callable[[_Reader, list[Wire], int], Operand]
_IN: tuple[tuple[int, _In], ...] = (
    (1, lambda r, x, d: NotPred(r.reg(x[1]).index)),
    (1, lambda r, x, d: Imm(_int(x[1]))),
    (1, lambda r, x, d: ImmF32(_bits(x[1], 32))),
    (1, lambda r, x, d: ImmF64(_bits(x[1], 64))),
    (1, lambda r, x, d: SReg(_str(x[1]))),
    (0, lambda r, x, d: Sink()),
    (2, lambda r, x, d: Sym(_str(x[1]), _int(x[2]))),
    (1, lambda r, x, d: LabelRef(r.label(x[1]))),
    (-1, lambda r, x, d: LabelList(tuple([r.label(e) for e in x[1:]]))),
    (-1, lambda r, x, d: Vec(r.many(x[1:], d))),
    (2, lambda r, x, d: Addr(r.one_of(x[1], d, Reg, Sym, Imm), _int(x[2]))),
    (-1, lambda r, x, d: Bracket(r.many(x[1:], d))),
    (2, lambda r, x, d: Pair(r.one_of(x[1], d, Reg, Sink, Vec), r.one_of(x[2], d, Reg, Sink))),
    (2, lambda r, x, d: Part(r.reg(x[1]), _str(x[2]))),
    (1, lambda r, x, d: Neg(r.one_of(x[1], d, Reg, Part))),
    (5, lambda r, x, d: r.call(x, d)),
)

# --------------------------------------------------------------------------- functions


def _body_out(body: list[ptx.Item]) -> tuple[list[Wire], list[Wire]]:
    ops: dict[tuple[str, tuple[str, ...], tuple[str, ...], str], int] = {}
    out: list[Wire] = []
    for item in body:
        if type(item) is PtxInst:
            key = (item.op, item.mods, item.types, item.row)
            index = ops.setdefault(key, len(ops))
            guard = -1 if item.guard is None else item.guard[0] * 2 + item.guard[1]
            loc = -1 if item.loc is None else item.loc
            out.append(
                [
                    index,
                    item.line,
                    loc,
                    guard,
                    *[x.index if type(x) is Reg else _OUT[type(x)](x) for x in item.operands],
                ]
            )
        elif type(item) is PtxLabel:
            out.append([-1, item.index, item.line])
        elif type(item) is PtxPragma:
            out.append([-2, item.text, item.line])
    return [[op, list(mods), list(types), row] for op, mods, types, row in ops], out


def _body_in(r: _Reader, ops_wire: Wire, body_wire: Wire) -> list[ptx.Item]:
    ops = []
    for entry in _list(ops_wire):
        op, mods, types, row = _sized(entry, 4, "an opcode")
        ops.append((_str(op), tuple([_str(m) for m in _list(mods)]), tuple([_str(t) for t in _list(types)]), _str(row)))
    n_ops, n_regs, n_locs = len(ops), r.regs, r.locs
    operand = r.operand
    body: list[ptx.Item] = []
    for item in _list(body_wire):
        if type(item) is not list or len(item) < 3 or type(item[0]) is not int:
            raise _fail("a body item", item)
        kind = item[0]
        if kind >= 0:
            if kind >= n_ops or len(item) < 4:
                raise _fail("an instruction", item)
            _, line, loc, guard = item[:4]
            if type(line) is not int or line < 0 or type(loc) is not int or type(guard) is not int:
                raise _fail("an instruction", item)
            if not -1 <= loc < n_locs or not -1 <= guard < 2 * n_regs:
                raise _fail("an instruction with valid guard and location", item)
            op, mods, types, row = ops[kind]
            body.append(
                PtxInst(
                    op, mods, types, tuple([operand(x) for x in item[4:]]),
                    None if guard < 0 else (guard >> 1, bool(guard & 1)), line, None if loc < 0 else loc, row,
                )
            )  # fmt: skip
        elif kind == -1:
            body.append(PtxLabel(r.label(item[1]), _nat(item[2])))
        elif kind == -2:
            body.append(PtxPragma(_str(item[1]), _nat(item[2])))
        else:
            raise _fail("a body item", item)
    return body


_FUNCTION_FIELDS: tuple[tuple[str, Codec], ...] = (
    ("name", _STR),
    ("entry", _BOOL),
    ("linkage", _STR),
    ("rets", _tup(_PARAM)),
    ("params", _tup(_PARAM)),
    ("directives", _DIRECTIVES),
    ("regs", _lst(_REG)),
    ("vars", _lst(_VAR)),
    ("labels", _lst(_STR)),
    ("protos", _lst(_PROTO)),
    ("locs", _lst(_LOC)),
    ("line", _NAT),
    ("end_line", _NAT),
)


def _function_out(f: PtxFunction) -> Wire:
    ops, body = _body_out(f.body)
    return [*[c[0](getattr(f, n)) for n, c in _FUNCTION_FIELDS], ops, body]


def _function_in(x: Wire) -> PtxFunction:
    n = len(_FUNCTION_FIELDS)
    xs = _sized(x, n + 2, "a function")
    fields = {name: c[1](v) for (name, c), v in zip(_FUNCTION_FIELDS, xs, strict=False)}
    locs = fields["locs"]
    for i, loc in enumerate(locs):
        if loc.inlined_at is not None and loc.inlined_at >= len(locs):
            raise StreamError(f"ptx record: location {i} inlined at an unknown location")
    for p in (*fields["params"], *fields["rets"]):
        if not -1 <= p.reg < len(fields["regs"]):
            raise StreamError(f"ptx record: parameter '{p.name}' in an unknown register")
    reader = _Reader(len(fields["regs"]), len(fields["labels"]), len(locs))
    return PtxFunction(**fields, body=_body_in(reader, xs[n], xs[n + 1]))


_FUNCTION: Codec = (_function_out, _function_in)
_UNIT = _rec(ptx.PtxUnit, name=_STR, functions=_lst(_FUNCTION), variables=_lst(_STR), externs=_lst(_PROTO))

# --------------------------------------------------------------------------- public


def module_to_wire(m: PtxModule) -> list[Wire]:
    """The module record as a msgpack-able list."""
    return _MODULE[0](m)  # type: ignore[no-any-return]


def module_from_wire(x: Wire) -> PtxModule:
    """Reads a module record; raises StreamError if anything is wrong with it."""
    return _MODULE[1](x)  # type: ignore[no-any-return]


def unit_to_wire(u: PtxUnit) -> list[Wire]:
    """A unit record as a msgpack-able list."""
    return _UNIT[0](u)  # type: ignore[no-any-return]


def unit_from_wire(x: Wire) -> PtxUnit:
    """Reads a unit record; raises StreamError if anything is wrong with it."""
    u: PtxUnit = _UNIT[1](x)
    if not u.functions:
        raise StreamError(f"ptx record: unit '{u.name}' has no function")
    return u


def to_wire(x: PtxModule | PtxUnit) -> list[Wire]:
    """Either record."""
    return module_to_wire(x) if isinstance(x, PtxModule) else unit_to_wire(x)


def without_lines(unit: Wire) -> Wire:
    """A unit record (as lists) with the line numbers of instructions, labels, functions and prototypes left out: what
    the unit's code depends on where no line table is wanted. The line of the one pragma that a message of a later stage
    tells stays."""
    name, functions, variables, externs = unit
    at = [n for n, _ in _FUNCTION_FIELDS].index("line")
    out = []
    for f in functions:
        *fields, ops, body = f
        fields[at] = fields[at + 1] = 0
        fields[_VARS] = [[*v[:-1], 0] for v in fields[_VARS]]
        fields[_PROTOS] = [[*p[:-1], 0] for p in fields[_PROTOS]]
        items = [[i[0], 0, *i[2:]] if i[0] >= 0 else i if i[1] == "enable_smem_spilling" else [*i[:2], 0] for i in body]
        out.append([*fields, ops, items])
    return [name, out, variables, [[*e[:-1], 0] for e in externs]]


_VARS: Final = [n for n, _ in _FUNCTION_FIELDS].index("vars")
_PROTOS: Final = [n for n, _ in _FUNCTION_FIELDS].index("protos")


def shared_by_units(module: Wire) -> Wire:
    """What code of a unit may depend on in a module record (as lists): all but line numbers and the kernels' names."""
    out = list(module)
    for name, at in _MODULE_LINES.items():
        out[at] = [[*x[:-1], 0] for x in out[at]] if name != "entries" else []
    return out


_MODULE_LINES: Final = {
    n: fields_of(ptx.PtxModule).index(n) for n in ("variables", "entries", "externs", "aliases", "sections")
}
