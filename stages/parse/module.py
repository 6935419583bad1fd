"""The module level: header, variables, functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ir_format.diag import Diagnostic
from ir_format.ptx import PtxAlias, PtxDirectives, PtxFunction, PtxModule, PtxParam, PtxProto, PtxUnit
from stages.parse import declare, directives, targets
from stages.parse.body import Body
from stages.parse.match import Matcher
from stages.parse.scan import Abort, Scanner, load
from stages.parse.symbols import FuncSym, FunctionState, Scope
from stages.parse.types import LINKAGES, SPACES
from stages.parse.units import build_units

_SPACES = frozenset(SPACES)


@dataclass(slots=True)
class ParseResult:
    """What a parse gives: `module` is None and `units` empty when a diagnostic is an error."""

    module: PtxModule | None
    units: list[PtxUnit]
    diagnostics: list[Diagnostic]


def parse_sources(sources: Sequence[tuple[str, bytes]], arch: str, options: Mapping[str, object]) -> ParseResult:
    """Parses (name, bytes) sources, one after another.

    Options read: `compile-only` (one unit per function).  Several sources are refused for now.  Never raises for bad input.
    """
    diagnostics: list[Diagnostic] = []
    if len(sources) != 1:
        diagnostics.append(Diagnostic("fatal", "Several PTX inputs are not supported"))
        return ParseResult(None, [], diagnostics)
    name, data = sources[0]
    # Latin-1 maps every byte to one character; the reader refuses all that is not ASCII.
    module, units, diagnostics = parse_text(data.decode("latin-1"), name, arch, separate=bool(options.get("compile-only")))
    return ParseResult(module, units, diagnostics)


def parse_text(
    text: str, filename: str, arch: str, *, separate: bool = False
) -> tuple[PtxModule | None, list[PtxUnit], list[Diagnostic]]:
    """Parses and checks PTX text for an architecture name (`sm_90a`, `compute_90a`).

    Returns the module record, the units, and all diagnostics in ptxas's order; module and units are
    None and empty if there is an error.  `separate` makes one unit per function (`-c`).
    Never raises for bad input.
    """
    try:
        source, notes = load(text, filename)
    except Abort as stop:
        return None, [], stop.args[0].diags
    parser = Parser(Scanner.__new__(Scanner), arch)
    try:
        parser.s.__init__(source, notes)  # type: ignore[misc]
        parser.run()
    except Abort:
        pass
    except RecursionError:
        notes.add("fatal", "Expression nested too deeply", 0)
    if notes.errors or parser.module is None:
        return None, [], notes.diags
    units = build_units(parser.module, parser.functions, separate)
    return parser.module, units, notes.diags


class Parser:
    """State of one parse at module level."""

    __slots__ = ("arch", "functions", "matcher", "module", "s", "scope")

    def __init__(self, s: Scanner, arch: str) -> None:
        self.s = s
        self.arch = arch
        self.scope = Scope(None)
        self.functions: dict[str, FuncSym] = {}
        self.module: PtxModule | None = None
        self.matcher: Matcher

    def run(self) -> None:
        """Reads the whole file."""
        s = self.s
        self.module = self._header()
        while s.kind != "eof":
            self._item()

    def _header(self) -> PtxModule:
        s = self.s
        notes = s.notes
        if not (s.kind == "dot" and s.tok == ".version"):
            notes.fatal(f"Missing .version directive at start of file '{s.source.filename}'", s.line)
        s.next()
        text = s.expect("flt")
        major, minor = text.split(".")
        version = int(major[:4]), int(minor[:4] or 0)
        if text not in targets.VERSIONS:
            notes.error(f"Unsupported .version {text}; current version is '{targets.CURRENT}'", s.line)
        if not (s.kind == "dot" and s.tok == ".target"):
            notes.fatal(f"Missing .target directive at start of file '{s.source.filename}'", s.line)
        s.next()
        line = s.line
        names = [s.expect("id")]
        while s.accept(","):
            names.append(s.expect("id"))
        name = next((n for n in names if n not in targets.OPTIONS), names[0])
        module = PtxModule(version, name, tuple([n for n in names if n != name]))
        sm = targets.parse_name(name)
        if sm is None:
            notes.fatal(f"Unsupported .target '{name}'", line)
        number = version[0] * 10 + version[1]
        if number < targets.minimum_version(sm):
            notes.error(f"PTX .version {text} does not support .target {name}", line)
        refused = targets.arch_error(name, sm, self.arch)
        if refused is not None:
            notes.fatal(refused, 0)
        self.matcher = Matcher(notes, targets.Target(name, sm, number))
        if s.accept_dot(".address_size"):
            module.address_size = int(s.expect("int"))
        return module

    def _item(self) -> None:
        s = self.s
        assert self.module is not None
        if s.kind != "dot":
            s.syntax_error()
        linkage = ""
        if s.tok in LINKAGES:
            linkage = s.tok[1:]
            s.next()
            if s.kind != "dot":
                s.syntax_error()
        word = s.tok
        if word in (".entry", ".func"):
            self._function(linkage, word == ".entry")
        elif word in _SPACES:
            declare.variables(s, self.scope, None, linkage, self.module.variables)
        elif linkage:
            s.syntax_error()
        elif word == ".file":
            directives.file(s, self.module)
        elif word == ".section":
            directives.section(s, self.module)
        elif word == ".pragma":
            self.module.pragmas += directives.pragma(s)
        elif word == ".alias":
            line = s.line
            s.next()
            name = s.expect("id")
            s.expect(",")
            self.module.aliases.append(PtxAlias(name, s.expect("id"), line))
            s.expect(";")
        else:
            s.syntax_error()

    def _function(self, linkage: str, entry: bool) -> None:
        s = self.s
        assert self.module is not None
        s.next()
        scope = Scope(self.scope)
        function = PtxFunction("", entry, linkage)
        fs = FunctionState(function, scope)
        hints = PtxDirectives()
        directives.performance(s, hints)
        rets: list[PtxParam] = []
        if s.kind == "(" and not entry:
            rets = declare.parameters(s, scope, fs, entry, True)
        line = s.line
        name = s.expect("id")
        params: list[PtxParam] = []
        if s.kind == "(":
            params = declare.parameters(s, scope, fs, entry)
        directives.performance(s, hints)
        function.name = name
        function.line = line
        function.rets = tuple(rets)
        function.params = tuple(params)
        function.directives = hints
        symbol = self._declare(name, function, entry, line)
        if s.kind == ";":
            s.next()
            return
        if symbol.defined:
            s.notes.error(f"Duplicate definition of function '{name}'", line)
        symbol.defined = True
        symbol.function = function
        symbol.proto.linkage = linkage or symbol.proto.linkage
        function.linkage = symbol.proto.linkage
        (self.module.entries if entry else self.module.functions).append(name)
        body = Body(s, fs, self.matcher)
        body.run()
        function.end_line = s.source.line(max(0, s.pos - 1))
        body.finish()
        self.matcher.finish()

    def _declare(self, name: str, function: PtxFunction, entry: bool, line: int) -> FuncSym:
        known = self.scope.names.get(name)
        if isinstance(known, FuncSym):
            if known.entry != entry:
                self.s.notes.error(f"Inconsistent redefinition of '{name}' as entry and function", line)
            return known
        if known is not None:
            self.s.notes.error(f"Duplicate definition of variable '{name}'", line)
        proto = PtxProto(name, function.rets, function.params, function.linkage, function.directives, line)
        symbol = FuncSym(proto, entry, line)
        self.scope.names[name] = symbol
        self.functions[name] = symbol
        return symbol
