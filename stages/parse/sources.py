"""Entry points of the front end: text or several sources to a module and its units."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence

from ir_format.diag import Diagnostic
from ir_format.ptx import PtxModule, PtxUnit, PtxVar
from ir_format.record import NamedTuple
from ir_format.release import DEFAULT
from stages.parse.abi import check_abi, check_object, without_abi
from stages.parse.bounds import check_bounds, check_spilling
from stages.parse.module import Parser
from stages.parse.module_registers import NotSpread, spread
from stages.parse.scan import Abort, Scanner, load
from stages.parse.symbols import FuncSym
from stages.parse.undefined_symbols import check_definitions
from stages.parse.units import UnitsTooLarge, build_units


class ParseResult(NamedTuple):
    """What a parse gives: `module` is None and `units` empty when a diagnostic is an error."""

    module: PtxModule | None
    units: list[PtxUnit]
    diagnostics: list[Diagnostic]


def judged(program: bytes, arch: str) -> list[Diagnostic]:
    """What the front end says of a program for a target."""
    return parse_sources([("hint.ptx", program)], arch, {}).diagnostics


def parse_sources(sources: Sequence[tuple[str, bytes]], arch: str, options: Mapping[str, object]) -> ParseResult:
    """Parses (name, bytes) sources into one module, in order; a function of one may be called from another.

    Options read: `compile-only` (one unit per function), `explain` (source line and hint under each message),
    `accept-newer-ptx` (a newer `.version` and a NUL at the end are warnings), `release` (of ptxas: the PTX versions
    taken), `minnctapersm` and `maxntid`. Never raises for bad input.
    """
    diagnostics: list[Diagnostic] = []
    parsers: list[Parser] = []
    for name, data in sources:
        # Latin-1 maps every byte to one character; the reader refuses all that is not ASCII.
        text = data.decode("latin-1")
        release = str(options.get("release", DEFAULT))
        parser, found = _parse(text, name, arch, bool(options.get("accept-newer-ptx")), release)
        if options.get("explain") and found:
            from stages.parse.explain import explain

            found = explain(found, text, name, judged)
        diagnostics.extend(found)
        if parser is not None:
            parsers.append(parser)
    if len(parsers) != len(sources) or not parsers:
        return ParseResult(None, [], diagnostics)
    module, functions, clashes = _merge(parsers)
    diagnostics.extend(clashes)
    if clashes:
        return ParseResult(None, [], diagnostics)
    first = next((p.scope.module_registers[0] for p in parsers if p.scope.module_registers), "")
    return _finished(module, functions, options, arch, sources[0][0], diagnostics, first)


def parse_text(
    text: str, filename: str, arch: str, *, separate: bool = False, release: str = DEFAULT
) -> tuple[PtxModule | None, list[PtxUnit], list[Diagnostic]]:
    """Parses and checks PTX text for an architecture name (`sm_90a`, `compute_90a`).

    Returns the module record, the units, and all diagnostics in ptxas's order; module and units are
    None and empty if there is an error.  `separate` makes one unit per function (`-c`);
    `release` is that of ptxas.
    Never raises for bad input.
    """
    parser, diagnostics = _parse(text, filename, arch, release=release)
    if parser is None or parser.module is None:
        return None, [], diagnostics
    first = parser.scope.module_registers[0] if parser.scope.module_registers else ""
    return _finished(parser.module, parser.functions, {"compile-only": separate}, arch, filename, diagnostics, first)


def _stopped(diagnostics: list[Diagnostic]) -> bool:
    return any(d.severity == "fatal" for d in diagnostics)


def _finished(
    module: PtxModule,
    functions: dict[str, FuncSym],
    options: Mapping[str, object],
    arch: str,
    filename: str,
    diagnostics: list[Diagnostic],
    module_registers: str,
) -> ParseResult:
    """`module_registers`: the first register or local variable at module scope."""
    separate = bool(options.get("compile-only"))
    if arch.startswith("sm_"):  # for compute_ ptxas only reads
        without = without_abi(functions, module_registers)
        diagnostics += without
        diagnostics += check_object(module, separate, not without)
        if not _stopped(diagnostics):
            diagnostics += check_definitions(module, functions, filename, options)
        if not _stopped(diagnostics):
            diagnostics += check_abi(module, functions, separate, not without)
        if _stopped(diagnostics):
            return ParseResult(None, [], diagnostics)
        diagnostics += check_bounds(functions, arch, options)
    try:
        if module_registers:
            spread(module, functions)
        units = build_units(module, functions, separate)
        diagnostics += check_spilling(module, units) if arch.startswith("sm_") else []
        return ParseResult(None, [], diagnostics) if _stopped(diagnostics) else ParseResult(module, units, diagnostics)
    except (UnitsTooLarge, NotSpread) as e:
        return ParseResult(None, [], [*diagnostics, Diagnostic("fatal", str(e), filename, 0)])


def _parse(
    text: str, filename: str, arch: str, newer: bool = False, release: str = DEFAULT
) -> tuple[Parser | None, list[Diagnostic]]:
    end = text.rstrip("\0") if newer else text
    try:
        source, notes = load(end, filename)
        if len(end) < len(text):
            notes.warning("NUL at the end of the text is left out", source.line(len(end)))
    except Abort as stop:
        return None, stop.args[0].diags
    collecting = gc.isenabled()
    gc.disable()  # the tree that is made has no cycles, and scanning it over and over costs a third of the time
    try:
        parser = Parser(Scanner(source, notes), arch, newer, release)
        parser.run()
        parser.finish()
    except Abort:
        return None, notes.diags
    except RecursionError:
        notes.add("fatal", "Expression nested too deeply", 0)
        return None, notes.diags
    finally:
        if collecting:
            gc.enable()
    return (None if notes.errors else parser), notes.diags


def _merge(parsers: list[Parser]) -> tuple[PtxModule, dict[str, FuncSym], list[Diagnostic]]:
    """One module of several: definitions replace external declarations, two definitions clash."""
    first = parsers[0]
    module = first.module
    assert module is not None
    functions = dict(first.functions)
    clashes: list[Diagnostic] = []
    for parser in parsers[1:]:
        other = parser.module
        assert other is not None
        file = parser.s.source.filename
        shift = max([f.index for f in module.files], default=0)
        for f in other.files:
            f.index += shift
        module.files.extend(other.files)
        for name, symbol in parser.functions.items():
            if symbol.function is not None:
                for loc in symbol.function.locs:
                    loc.file += shift
            known = functions.get(name)
            if known is None or (symbol.defined and not known.defined):
                functions[name] = symbol
            elif symbol.defined:
                clashes.append(Diagnostic("error", f"Duplicate definition of function '{name}'", file, symbol.line))
        clashes.extend(_merge_variables(module, other.variables, file))
        module.entries.extend(other.entries)
        module.functions.extend(other.functions)
        module.aliases.extend(other.aliases)
        module.sections.extend(other.sections)
        module.pragmas += other.pragmas
    return module, functions, clashes


def _merge_variables(module: PtxModule, variables: list[PtxVar], file: str) -> list[Diagnostic]:
    clashes: list[Diagnostic] = []
    places = {v.name: k for k, v in enumerate(module.variables)}
    for var in variables:
        place = places.get(var.name)
        if place is None:
            places[var.name] = len(module.variables)
            module.variables.append(var)
        elif module.variables[place].linkage == "extern":
            module.variables[place] = var
        elif var.linkage not in ("extern", "common", "weak"):
            clashes.append(Diagnostic("error", f"Duplicate definition of variable '{var.name}'", file, var.line))
    return clashes
