"""Lowering of a unit: each PTX instruction of its functions, then convergence barriers and legal operand forms."""

from __future__ import annotations

from collections.abc import Sequence

from ir_format import ptx
from ir_format.diag import CompileError
from ir_format.isa import facts
from ir_format.late_pattern import late_pattern
from ir_format.model import Header, Inst, Module, Param, Unit, Var
from ir_format.ptx import PtxFunction, PtxInst, PtxLabel, PtxModule, PtxParam, PtxPragma, PtxReloc, PtxUnit, PtxVar
from ir_format.record import replace
from ir_format.target import Target
from ir_format.typed import Any
from stages.analysis.abi import without_saves
from stages.lower.abi.arguments import signature_text
from stages.lower.abi.frame import begin_function, end_function
from stages.lower.builder import Builder
from stages.lower.cleanup import tidy_blocks
from stages.lower.convergence.converge import insert_convergence
from stages.lower.debug_places import DebugNames, set_debug_places
from stages.lower.headers import HEADERS
from stages.lower.legalize import legalize
from stages.lower.rules.modifiers import unknown_modifier
from stages.lower.rules.table import find_rule, own_check
from stages.lower.rules.warpgroup import bind_vectors
from stages.lower.rules.wide import convert_wide, is_wide
from stages.lower.spaces import place_descriptor, space_name
from stages.lower.unit import UnitContext, function_places, new_function

# A rule that raises an exception (on a forged stream, or an unforeseen form) refuses the instruction. Tests let the
# exception through.
SHOW_FAULTS = False
_FAULTS = (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError)

_LINKAGE = {"": "static", "extern": "extern", "visible": "visible", "weak": "weak", "common": "common"}


def lower_module(module: PtxModule, header: Header) -> Module:
    """The module record of level `ori`: variables and names. Variables that are private to a kernel (shared, local)
    belong to its unit."""
    out = Module()
    places = {} if header.options.get("compile-only") else function_places(module)
    for v in module.variables:
        init, relocs = _pointers(v, places)
        out.vars.append(
            Var(
                v.name, v.space, v.size, max(1, v.align), init,
                tuple((r.offset, r.symbol, r.addend, int(r.generic) + 2 * _part(r)) for r in relocs),
                _LINKAGE.get(v.linkage, v.linkage), (*v.attributes, v.type) if v.space == "tex" else v.attributes,
            )
        )  # fmt: skip
    out.externs = [e.name for e in module.externs]
    out.units = list(module.entries)
    if header.options.get("device-debug") and not header.options.get("suppress-debug-info"):
        for s in module.sections:
            out.sections[s.name] = (
                s.data.decode("latin-1"),
                tuple([(x.offset, x.size, x.symbol, x.addend, x.minus) for x in s.fixups]),
                s.labels,
            )
    if header.options.get("compile-only"):
        out.units += module.functions
        out.attrs["prototypes"] = tuple([(e.name, signature_text(e.rets, e.params)) for e in module.externs])
        out.attrs["aliases"] = tuple([(a.name, a.aliasee) for a in module.aliases])
    out.files = [(f.index, f.name) for f in module.files]
    if module.text:
        out.attrs["ptx_text"] = module.text
    return out


def _part(r: PtxReloc) -> int:
    """The part of an address that the data holds; see `ir_format.model.Var`."""
    if r.mask:
        return (r.mask & -r.mask).bit_length() // 8 + 1
    return 9 if r.size == 4 else 0


def _pointers(v: PtxVar, places: dict[str, int]) -> tuple[bytes, tuple[PtxReloc, ...]]:
    """The bytes of a variable with the pointers to functions filled in, and its other addresses."""
    init = v.init or b""
    if all(r.symbol not in places for r in v.relocs):
        return init, v.relocs
    data = bytearray(init.ljust(v.size, b"\0"))
    for r in v.relocs:
        if r.symbol in places:
            value = places[r.symbol] + r.addend
            if r.mask:
                value >>= (r.mask & -r.mask).bit_length() - 1
            data[r.offset : r.offset + r.size] = (value & (1 << 8 * r.size) - 1).to_bytes(r.size, "little")
    return bytes(data), tuple([r for r in v.relocs if r.symbol not in places])


def lower_unit(pu: PtxUnit, module: PtxModule, header: Header, kept: dict[str, Any] | None = None) -> Unit:
    """Lower one unit. ``kept``: what the units of a module share (:attr:`stages.plumbing.stage.Context.kept`). Raises
    CompileError, with the PTX line, for the first thing that is not supported by orias."""
    main = pu.functions[0]
    unit = Unit(pu.name, "entry" if main.entry else "func", _LINKAGE.get(main.linkage, main.linkage))
    if module.address_size != 64:
        raise CompileError("32-bit addresses (.address_size 32) are not supported by orias", main.line)
    ctx = UnitContext(pu, module, header, unit)
    if main.entry:
        _align_params(main.params, ctx.target)
    _launch_facts(unit, main, header)
    if ctx.relocatable and not main.entry:
        unit.attrs["signature"] = signature_text(main.rets, main.params)
    if "texmode_independent" in module.target_options:
        unit.attrs["texmode_independent"] = 1
    todo = list(pu.functions)
    lowered: list[tuple[Builder, PtxFunction]] = []
    while len(lowered) < len(todo):
        pf = todo[len(lowered)]
        lowered.append((lower_function(ctx, pf), pf))
        known = {f.name for f in todo}
        todo += [ctx.funcs[n] for n in ctx.helpers if n not in known]
    exact = without_saves(unit)
    names = _debug_names(module, {} if kept is None else kept) if ctx.debugging else None
    for b, pf in lowered:
        insert_convergence(b.fn, ctx.sm, exact)
        legalize(b.fn, ctx, pf)
        if names is not None:
            set_debug_places(b, names)
    return unit


def _debug_names(module: PtxModule, kept: dict[str, Any]) -> DebugNames:
    """The names in the debug sections, which are searched once for a module."""
    known: DebugNames | None = kept.get("debug names")
    if known is None:
        known = kept["debug names"] = DebugNames(module.sections)
    return known


def _align_params(params: Sequence[PtxParam], target: Target) -> None:
    """Give parameters of a kernel places at which their address in the bank is aligned, not their offset alone
    (measured on five targets: a tensor map, aligned to 64, begins at offset 48 where the parameters do at 0x210)."""
    base = target.param_base(0)
    for _ in range(2):  # more parameters may begin elsewhere
        at = 0
        for p in params:
            if p.space == "param" and p.type not in HEADERS:
                align = max(p.align, 1)
                at = p.offset = -(-(base + at) // align) * align - base
                at += p.size
        base = target.param_base(at)


def _launch_facts(unit: Unit, f: PtxFunction, header: Header) -> None:
    d = f.directives
    if f.entry:
        unit.params = [
            Param(p.name, p.offset, p.size, max(1, p.align), p.ptr_space or ("generic" if p.ptr else ""), p.ptr_align)
            if p.type not in HEADERS
            else Param(p.name, 0, 0, 1, HEADERS[p.type])
            for p in f.params
        ]
        for p in f.params:
            if p.type in HEADERS and p.dims:
                raise CompileError(
                    f"Kernel parameter '{p.name}', an array of '.{p.type}', is not supported by orias", f.line
                )
    for name in ("maxntid", "reqntid", "reqnctapercluster"):
        got = getattr(d, name)
        if got is not None:
            unit.attrs[name] = tuple((*got, 1, 1)[:3])
    for name in ("minnctapersm", "maxnctapersm", "maxnreg", "maxclusterrank"):
        got = getattr(d, name)
        if got is not None:
            unit.attrs[name] = got
    over = bool(header.options.get("override-directive-values"))
    for name in ("maxntid", "minnctapersm"):  # as options; directives come first
        value = header.options.get(name)
        if (
            f.entry
            and value is not None
            and (over or name not in unit.attrs)
            and (over or not (name == "maxntid" and "reqntid" in unit.attrs))
        ):
            unit.attrs[name] = value
    for name in ("blocksareclusters", "noreturn"):
        if getattr(d, name):
            unit.attrs[name] = 1
    if f.entry and header.options.get("blocks-are-clusters"):
        unit.attrs["blocksareclusters"] = 1
    if d.explicitcluster:
        unit.attrs["explicitcluster"] = 1
    unit.attrs["barriers"] = 0


def lower_function(ctx: UnitContext, pf: PtxFunction) -> Builder:
    """Lower one function and add it to the unit, without convergence barriers yet: those depend on what is called."""
    fn = new_function(ctx, pf)
    b = Builder(ctx, pf, fn)
    begin_function(b)
    bind_vectors(b)
    placed: set[int] = set()
    nounroll: dict[int, None] = {}
    used_bytes = 0  # of the load that follows, by a pragma
    for item in pf.body:
        k = type(item)
        if k is PtxInst:
            start = len(b.block.insts)
            lower_inst(b, item)  # type: ignore[arg-type]
            if used_bytes:
                _tell_used_bytes(b.block.insts[start:], used_bytes)
                used_bytes = 0
        elif k is PtxLabel:
            index = item.index  # type: ignore[union-attr]
            if index in placed:
                raise CompileError(f"Label '{pf.labels[index]}' defined twice", item.line)
            placed.add(index)
            b.place(block_of(b, index))
        elif k is PtxPragma and item.text == "nounroll":  # type: ignore[union-attr]
            nounroll[b.block.id] = None
        elif k is PtxPragma and item.text == "enable_smem_spilling":  # type: ignore[union-attr]
            ctx.unit.attrs["smem_spilling"] = item.line
        elif k is PtxPragma and (found := _USED_BYTES.match(item.text)):  # type: ignore[union-attr]
            used_bytes = int(found[1], 0)
    if nounroll:
        fn.attrs["nounroll"] = tuple(nounroll)
    for index in b.labels:
        if index not in placed:
            raise CompileError(f"Label '{pf.labels[index]}' is not defined", pf.line)
    end_function(b)
    place_descriptor(b)
    tidy_blocks(fn)
    ctx.unit.functions.append(fn)
    return b


_USED_BYTES = late_pattern(r"used_bytes_mask\s+(0[xX][0-9a-fA-F]+|[1-9]\d*)\s*$")


def _tell_used_bytes(made: list[Inst], mask: int) -> None:
    """Mark a load with the bytes that the program says it needs. One that has become several loads gets no mark."""
    loads = [i for i in made if i.op in facts.loads() and i.op not in facts.having("convergent")]
    if len(loads) == 1:
        loads[0].attrs = {**(loads[0].attrs or {}), "mark": "unused", "mark_value": mask}


def block_of(b: Builder, index: int) -> int:
    """The block that a PTX label starts."""
    got = b.labels.get(index)
    if got is None:
        got = b.labels[index] = b.new_block()
    return got


_CACHING = {
    "ld": ("load", frozenset(("ca", "cg", "cs", "lu", "cv"))),
    "st": ("store", frozenset(("wb", "cg", "cs", "wt"))),
}
_ORDERED = frozenset(("volatile", "relaxed", "acquire", "release", "mmio", "async", "bulk"))


def _with_cache(b: Builder, inst: PtxInst) -> PtxInst:
    """The instruction with the cache operator of the options: the default if it has none, or the forced one. For
    read-only loads only .cs has an effect (measured)."""
    kind, known = _CACHING[inst.op]
    options = b.ctx.cache_options
    own = [m for m in inst.mods if m in known]
    forced, default = options.get(f"force-{kind}-cache"), options.get(f"def-{kind}-cache")
    wanted = forced or (default if not own else None)
    space = space_name(inst.mods)
    if (
        wanted is None
        or space not in ("", "global")
        or any(m in _ORDERED or m.startswith("L1::") for m in inst.mods)
        or ("nc" in inst.mods and wanted != "cs")
    ):
        return inst
    return replace(inst, mods=(*[m for m in inst.mods if m not in known], wanted))


def lower_inst(b: Builder, inst: PtxInst) -> None:
    """Apply the rule for one PTX instruction, under its guard."""
    b.line = inst.line
    b.loc = -1 if inst.loc is None else inst.loc
    rule = find_rule(inst)
    if rule is None:
        raise b.unsupported(inst)
    if not own_check(rule):
        odd = unknown_modifier(inst)
        if odd:
            raise b.unsupported(inst, f"modifier .{odd}")
    if inst.guard is None:
        b.guard = None
    else:
        index, negated = inst.guard
        b.guard = b.src(ptx.NotPred(index) if negated else ptx.Reg(index), "pred")  # type: ignore[assignment]
    b.mark = len(b.fn.vregs)
    if b.ctx.cache_options and inst.op in ("ld", "st"):
        inst = _with_cache(b, inst)
    if "f64" in inst.types and b.ctx.header.options.get("warn-on-double-precision-use"):
        b.ctx.unit.diags.append(("warning", "Program is doing double precision computations.", inst.line))
    try:
        if inst.op == "cvt" and is_wide(b, inst):
            convert_wide(b, inst, rule)
        else:
            rule(b, inst)
    except _FAULTS as e:
        if SHOW_FAULTS:
            raise
        raise b.unsupported(inst, "in this form") from e
    b.guard = None
