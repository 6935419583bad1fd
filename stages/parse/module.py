"""The module level: header, variables, functions."""

from __future__ import annotations

from ir_format.ptx import PtxAlias, PtxDirectives, PtxFunction, PtxModule, PtxParam, PtxProto
from ir_format.release import DEFAULT, RELEASES
from stages.parse import declare, directives, table, targets
from stages.parse.body import Body
from stages.parse.calls import check_redeclaration, differences
from stages.parse.match import Matcher
from stages.parse.scan import Scanner
from stages.parse.symbols import FuncSym, FunctionState, Scope
from stages.parse.types import LINKAGES, SPACES

_SPACES = frozenset((*SPACES, ".reg"))
_OPTIONS = {"debug": 30, "texmode_independent": 15}  # the PTX version of the options of .target
_PARAM_SMALL = 0x1100
_PARAM_LARGE = 0x7FFC


class Parser:
    """State of one parse at module level."""

    __slots__ = (
        "aliased",
        "arch",
        "declared_size",
        "entered",
        "files",
        "functions",
        "located",
        "matcher",
        "module",
        "newer",
        "release",
        "s",
        "scope",
        "target",
        "target_line",
        "refused",
        "too_old",
    )

    def __init__(self, s: Scanner, arch: str, newer: bool = False, release: str = DEFAULT) -> None:
        self.s = s
        self.newer = newer  # a version newer than the known ones is read as the last of them
        self.release = RELEASES[release]
        self.arch = arch
        self.scope = Scope(None)
        self.functions: dict[str, FuncSym] = {}
        self.module: PtxModule | None = None
        self.matcher: Matcher
        self.target: targets.Target
        self.target_line = 0
        self.refused = ""  # why the architecture cannot have this target; what the text has wrong comes first
        self.too_old = ""  # the message about a version that does not know the target, for files with an entry
        self.declared_size = False  # an .address_size was seen
        self.entered = False
        self.files: set[int] = set()
        self.aliased: dict[str, str] = {}
        self.located = False  # a .loc was seen

    def run(self) -> None:
        """Reads the whole file."""
        s = self.s
        self.module = self._header()
        while s.kind != "eof":
            self._item()

    def _header(self) -> PtxModule:
        s = self.s
        notes = s.notes
        version = self._version()
        text = f"{version[0]}.{version[1]}"
        if not (s.kind == "dot" and s.tok == ".target"):
            notes.fatal(f"Missing .target directive at start of file '{s.source.filename}'", s.line)
        self.target_line = s.line
        name, options = self._target_names()
        module = PtxModule(version, name, options)
        sm = targets.parse_name(name)
        assert sm is not None
        number = version[0] * 10 + version[1]
        self.target = s.target = targets.Target(
            name, sm, number, self.arch.startswith("sm_"), "texmode_independent" in options, self.release
        )
        if number < targets.minimum_version(sm):
            self.too_old = f"PTX .version {text} does not support .target {name}"
        self._check_options(options)
        self.refused = targets.arch_error(name, sm, self.arch) or ""
        self.matcher = Matcher(notes, self.target)
        if s.kind == "dot" and s.tok == ".address_size":  # here only
            self._address_size(module)
        return module

    def _check_options(self, options: tuple[str, ...]) -> None:
        notes = self.s.notes
        for option in options:
            if option == "map_f64_to_f32" and self.target.can("doubles"):
                notes.error("Directive map_f64_to_f32 is not supported with SM 1.3 or higher", self.target_line)
            for text in self.target.refuses(table.Gate(_OPTIONS.get(option, 0)), "Feature", option):
                notes.error(text, self.target_line)

    def _version(self) -> tuple[int, int]:
        s = self.s
        missing = f"Missing .version directive at start of file '{s.source.filename}'"
        if not (s.kind == "dot" and s.tok == ".version"):
            if s.kind == "dot" and s.tok == ".target":
                self._target_names()
            s.notes.fatal(missing, s.line)
        line = s.line
        s.next()
        if s.kind != "flt" or s.tok[0] == ".":
            s.notes.fatal(missing, line)
        text = s.tok
        s.next()
        newest = self.release.ptx
        beyond = targets.is_newer(text, self.release)
        if self.newer and beyond:
            s.notes.warning(
                f"PTX .version {text} is newer than {newest}, the newest of this release; it is read as {newest}", line
            )
            text = newest
        elif beyond or text not in targets.VERSIONS:
            s.notes.fatal(f"Unsupported .version {text}; current version is '{newest}'", line)
        major, minor = text.split(".")
        return int(major), int(minor)

    def _target_names(self) -> tuple[str, tuple[str, ...]]:
        """`.target name, option, ...` with its conflicts."""
        s = self.s
        line = s.line
        s.next()
        names = [s.expect("id")]
        while s.accept(","):
            names.append(s.expect("id"))
        target = ""
        options: list[str] = []
        for name in names:
            if name in targets.OPTIONS:
                if name.startswith("texmode") and any(o.startswith("texmode") for o in options):
                    s.notes.error(f"Conflicting .target option '{name}'", line)
                options.append(name)
            elif targets.parse_name(name) is None:
                s.notes.fatal(f"Unsupported .target '{name}'", line)
            else:
                target = name
        if not target:
            s.notes.fatal(f"Unsupported .target '{names[0]}'", line)
        return target, tuple(options)

    def _address_size(self, module: PtxModule) -> None:
        s = self.s
        line = s.line
        s.next()
        value = int(s.tok) if s.kind == "int" and len(s.tok) < 9 and s.tok.isdigit() else s.syntax_error()
        s.next()
        for text in self.target.refuses(table.Gate(23), "Feature", ".address_size directive"):
            s.notes.error(text, line)
        if value not in (32, 64):
            s.notes.error("Illegal value for .address_size directive (must be 32 or 64)", line)
            return
        module.address_size = value
        self.declared_size = True
        if value == 32 and self.target.real:
            self._narrow_program(32)

    def _narrow_program(self, bits: int) -> None:
        notes = self.s.notes
        notes.warning(
            f" 64 Bit host architecture (--machine) being used mismatches with .address_size of {bits} bits", 0
        )
        if bits == 32:
            self._no_narrow_code()

    def _no_narrow_code(self) -> None:
        notes = self.s.notes
        if self.target.can("narrow-refused-by-name"):
            notes.fatal(
                " 32-Bit ABI (--machine 32 or 32-Bit addressing) is not supported on sm_90 or higher architectures.", 0
            )
        notes.fatal(" 32-Bit compilation is no longer supported", 0)

    def _narrow_addresses(self) -> None:
        """Addresses of global memory of fewer than 64 bits: no code is made for those of 32, others are taken with a
        warning (measured)."""
        found = self.matcher.narrow
        if not found:
            return
        if not self.declared_size:
            self._narrow_program(32 if any(bits == 32 for _, bits in found) else found[0][1])
            return
        for line, bits in found:
            self.s.notes.warning(
                f"Program uses {bits}-bit address on line '{line}' which is conflicting with .address_size 64", 0
            )
        if any(bits == 32 for _, bits in found):
            self._no_narrow_code()

    def finish(self) -> None:
        """Checks that need the whole file."""
        module = self.module
        assert module is not None
        notes = self.s.notes
        if "debug" in module.target_options and not any(".debug_" in x.name for x in module.sections):
            notes.error("Debug information not found in presence of .target debug", 0)
        if self.entered and self.too_old:
            notes.error(self.too_old, self.target_line)
        if self.refused and not notes.errors:
            notes.fatal(self.refused, 0)
        if self.target.real and not notes.errors:
            self._narrow_addresses()
        if self.located and not module.files:
            notes.warning(
                (
                    ".loc directive without .file directive is found, line information in generated binary may "
                    "not be complete"
                ),
                0,
            )

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
            self._variables(linkage)
        elif linkage:
            s.syntax_error()
        elif word == ".file":
            directives.file(s, self.module, self.files)
        elif word == ".section":
            directives.section(s, self.module)
        elif word == ".pragma":
            line = s.line
            texts = directives.pragma(s)
            directives.check_pragmas(s, texts, line, self.target, "module")
            self.module.pragmas += texts
        elif word == ".alias":
            self._alias()
        elif word == ".target":
            self._target_names()
        else:
            s.syntax_error()

    def _variables(self, linkage: str) -> None:
        assert self.module is not None
        s = self.s
        first = len(self.module.variables)
        line = s.line
        declare.variables(s, self.scope, None, linkage, self.module.variables)
        if not self.target.independent and any(v.type == "samplerref" for v in self.module.variables[first:]):
            s.notes.error("Instruction or declaration violates .target texmode_unified setting", line)

    def _alias(self) -> None:
        assert self.module is not None
        s = self.s
        line = s.line
        s.next()
        name = s.expect("id")
        s.expect(",")
        aliasee = s.expect("id")
        s.expect(";")
        notes = s.notes
        for text in self.target.refuses(table.Gate(63, 30), "Feature", ".alias"):
            notes.error(text, line)
        for text in self._alias_faults(name, aliasee):
            notes.error(text, line)
        self.module.aliases.append(PtxAlias(name, aliasee, line))

    def _alias_faults(self, name: str, aliasee: str) -> list[str]:
        out: list[str] = []
        symbols: list[FuncSym] = []
        for word in (name, aliasee):
            symbol = self.scope.names.get(word)
            if isinstance(symbol, FuncSym):
                symbols.append(symbol)
            else:
                out.append(
                    f"Unknown symbol '{word}'" if symbol is None else f"Cannot define alias to variable object '{word}'"
                )
        if out:
            return out
        alias, other = symbols
        known = self.aliased.get(name)
        if known is not None:
            return [f"'{name}' is already aliased to '{known}' and cannot be redefined"]
        self.aliased[name] = aliasee
        if alias.defined:
            out.append(f"Illegal redefinition of function '{name}' as alias")
        if name == aliasee:
            out.append("Cannot alias a function to itself")
        if other.entry:
            return [*out, f"Cannot define alias to entry function '{aliasee}'"]
        if other.proto.linkage in ("weak", "extern"):
            out.append(f"Function '{aliasee}' with .{other.proto.linkage} scope cannot be aliased")
        return out + [
            f"Mismatch in prototype of alias '{name}' and aliasee '{aliasee}'. {what} differ(s)"
            for what in differences(alias.proto, other.proto)
        ]

    def _function(self, linkage: str, entry: bool) -> None:
        s = self.s
        assert self.module is not None
        s.next()
        scope = Scope(self.scope)
        function = PtxFunction("", entry, linkage)
        fs = FunctionState(function, scope, self.target, self.module.variables)
        hints = PtxDirectives()
        if not entry:
            directives.performance(s, hints, self.target, entry)
        rets: list[PtxParam] = []
        if s.kind == "(" and not entry:
            rets = declare.parameters(s, scope, fs, entry, True)
        line = s.line
        name = s.expect("id")
        params: list[PtxParam] = []
        if s.kind == "(":
            if entry:
                for text in self.target.refuses(table.Gate(14), "Feature", "kernel parameter list"):
                    s.notes.error(text, s.line)
            params = declare.parameters(s, scope, fs, entry)
        function.name = name
        function.rets = tuple(rets)
        function.params = tuple(params)
        directives.performance(s, hints, self.target, entry)
        self._check_function(function, linkage, hints, line)
        function.line = line
        function.directives = hints
        if (
            not entry
            and self.target.version < 20
            and s.kind == "{"
            and any(p.space == "param" for p in (*rets, *params))
        ):
            s.notes.error("Parameter variables must be declared within .entry function", line)
        symbol = self._declare(name, function, entry, line)
        if s.kind != "{" and (
            s.kind == ";" or not entry
        ):  # a declaration of a function may lack its semicolon (measured)
            s.accept(";")
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
        function.end_line = s.source.line(max(0, body.end))
        self.located = self.located or bool(function.locs)
        body.finish()
        symbol.module_registers = fs.module_registers
        self.matcher.finish(function.end_line)
        if entry:
            directives.conflicts(s, hints, function.end_line)

    def _check_function(self, function: PtxFunction, linkage: str, hints: PtxDirectives, line: int) -> None:
        s = self.s
        notes = s.notes
        if function.entry:
            self.entered = True
            total = max([p.offset + p.size for p in function.params], default=0)
            large = self.target.version >= 81 and self.target.can("large-parameters")
            limit = _PARAM_LARGE if large else _PARAM_SMALL
            if total > limit:
                notes.error(
                    (
                        f"Entry function '{function.name}' uses too much parameter space (0x{total:x} bytes, "
                        f"0x{limit:x} max)."
                    ),
                    line,
                )
            if total > _PARAM_SMALL:
                for text in self.target.refuses(
                    table.Gate(81, 70), "Feature", "Kernel parameter size larger than 4352 bytes"
                ):
                    notes.error(text, line)
        if hints.noreturn and function.rets:
            notes.error(f"Invalid directive '.noreturn' for function '{function.name}'", line)
        if linkage == "extern" and s.kind == "{":
            notes.error(
                f"Function definition conflicts with '.extern' declaration for function '{function.name}'", line
            )

    def _declare(self, name: str, function: PtxFunction, entry: bool, line: int) -> FuncSym:
        known = self.scope.names.get(name)
        notes = self.s.notes
        if isinstance(known, FuncSym):
            if known.entry != entry:
                notes.error(f"Inconsistent redefinition of '{name}' as entry and function", line)
            else:
                new = PtxProto(name, function.rets, function.params)
                check_redeclaration(notes, known.proto, new, line)
                if known.proto.directives.noreturn != function.directives.noreturn:
                    notes.error(f"Inconsistent redefinition of variable '{name}'", line)
                self._check_linkage(known, function, line)
            return known
        if known is not None:
            notes.error(f"Inconsistent redefinition of variable '{name}'", line)
            notes.error(f"Duplicate definition of function '{name}'", line)
            notes.fatal(f"Inconsistent redefinition of symbol '{name}'", line)
        proto = PtxProto(name, function.rets, function.params, function.linkage, function.directives, line)
        symbol = FuncSym(proto, entry, line)
        self.scope.names[name] = symbol
        self.functions[name] = symbol
        return symbol

    def _check_linkage(self, known: FuncSym, function: PtxFunction, line: int) -> None:
        old, new = known.proto.linkage, function.linkage
        if old == new or (new == "" and old != "extern") or known.entry:
            return
        if old == "extern" or new == "visible":
            self.s.notes.error(f"Inconsistent redefinition of variable '{function.name}'", line)
        if old == "extern" and self.s.kind == "{":
            self.s.notes.error(
                f"Function definition conflicts with '.extern' declaration for function '{function.name}'", line
            )
