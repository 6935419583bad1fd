"""What ``-v`` prints about each kernel, in ptxas's format (measured). Compile times are what the stages say of each
unit (``compile_us``)."""

from __future__ import annotations

from ir_format.model import Header, Module, Unit
from ir_format.target import REG_CEILING, Target, target
from stages.analysis.register_limits import bounded_registers, register_option
from stages.elf import attrs
from stages.elf.layout import Kernel, build_kernel, order_units, place_variables
from stages.elf.order import object_order
from stages.elf.resolve import collect_externs

INFO = "ptxas info    : "


def resource_lines(header: Header, module: Module, units: list[Unit]) -> list[str]:
    """Lines without newline: memory of the module, then each kernel in file order; of an object each function too.
    Raises as :func:`stages.elf.link.link` does."""
    t = target(header.target)
    whole = not header.options.get("compile-only")
    ordered = order_units(module, units)
    kernels = [build_kernel(u, t, 0, header.options) for u in (ordered[::-1] if whole else object_order(ordered))]
    defined = Module()
    defined.vars = [v for v in module.vars if whole or v.linkage != "extern"]
    variables = place_variables(defined)
    if whole:
        collect_externs(kernels, module, variables)
    banks = t.exec_rel  # from sm_90 on ptxas prints no constant banks
    first = f"{INFO}{len(variables.init) + variables.zero_size} bytes gmem"
    if banks:
        first += _bank(3, len(variables.const)) + _bank(4, 8 * len(variables.slot))
    out = [*_overridden(kernels, header, t), first]
    if header.options.get("verbose2"):
        out[:0] = [f"{INFO}Processing {k.name}" for k in kernels]
    for k in kernels:
        entry = k.unit.kind == "entry"
        if entry:
            out.append(f"{INFO}Compiling entry function '{k.name}' for '{header.target}'")
        out += _properties(k, k.name, 0)
        if entry:
            out.append(_used(k, t, whole))
        spent = attrs.number(k.unit, "compile_us", 0, 1 << 50)
        if spent:
            out.append(f"{INFO}Compile time = {spent / 1000:.3f} ms")
        for i, f in enumerate(k.functions):
            if f.code.kind == "func" and f.code.name != k.name:
                out += _properties(k, f.code.name, i)
    return out


def _overridden(kernels: list[Kernel], header: Header, t: Target) -> list[str]:
    """What of -maxrregcount and of a kernel's own bounds takes precedence (measured: all lines of the first kind come
    before those of the second)."""
    asked = header.options.get("maxrregcount")
    if asked is None:
        return []
    option = register_option(asked)
    override = bool(header.options.get("override-directive-values"))
    own, limits = list[str](), list[str]()
    for k in kernels:
        a = k.unit.attrs
        if k.unit.kind != "entry":
            continue
        threads = bool({"maxntid", "reqntid"} & a.keys())
        value = min(attrs.number(k.unit, "maxnreg", 0, 1 << 31), REG_CEILING)
        of = "of .maxnreg"
        if not value and threads and "minnctapersm" in a:
            value, of = bounded_registers(k.unit, t.sm), "computed using thread count"
        if value not in (0, option) and not (override and "maxnreg" in a):
            own.append(f"{INFO}Overriding global maxrregcount {option} with entry-specific value {value} {of}")
        most = value if "maxnreg" in a else 256
        if most != option and (override or not (threads or "maxnreg" in a)):
            limits.append(
                f"{INFO}Overriding maximum register limit {most} for '{k.name}' with  {option} of maxrregcount option"
            )
    return own + limits


def _used(k: Kernel, t: Target, whole: bool) -> str:
    line = f"{INFO}Used {k.regcount} registers, used {attrs.number(k.unit, 'barriers', 0, 16)} barriers"
    if k.min_stack and whole:
        line += f", {k.min_stack} bytes cumulative stack size"
    if k.static_shared:
        line += f", {k.static_shared} bytes smem"
    if t.exec_rel:
        line += _bank(0, t.param_base(k.param_size) + k.param_size)
        line += _bank(2, 4 * len(attrs.numbers(k.unit, "bank2", -1, 0xFFFFFFFF) or ()))
    return line


def usage_warnings(header: Header, module: Module, units: list[Unit]) -> list[str]:
    """What -warn-spills and -warn-lmem-usage say, function by function in the order of -v."""
    spills, local = header.options.get("warn-on-spills"), header.options.get("warn-on-local-memory-usage")
    out: list[str] = []
    if not spills and not local:
        return out
    for u in reversed(order_units(module, units)):
        for f in u.functions:
            frame = next((c.frame for c in u.code if c.name == f.name), 0)
            if local and frame:
                out.append(f"Local memory used for function '{f.name}', size of stack frame: {frame} bytes")
            if spills and any(f.spills):
                out.append(
                    f"Registers are spilled to local memory in function '{f.name}', "
                    f"{f.spills[0]} bytes spill stores, {f.spills[1]} bytes spill loads"
                )
    return out


def _bank(number: int, size: int) -> str:
    return f", {size} bytes cmem[{number}]" if size else ""


def _properties(k: Kernel, name: str, index: int) -> list[str]:
    code = k.functions[index].code
    stores, loads = next((f.spills for f in k.unit.functions if f.name == code.name), (0, 0))
    return [
        f"{INFO}Function properties for {name}",
        f"    {code.frame} bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads",
    ]
