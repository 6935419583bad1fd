"""Function bodies: statements, nested scopes, labels, instructions.

Most lines are `opcode operand, operand;` with operands seen before, so a statement is first tried with one
regular expression and a dictionary of operand texts (valid per scope until something is declared).  Whatever does
not fit goes through the scanner and the grammar, which also gives the diagnostics.
"""

from __future__ import annotations

from ir_format.late_pattern import late_pattern
from ir_format.ptx import (
    Addr,
    Bracket,
    CallTarget,
    Imm,
    ImmF32,
    LabelList,
    LabelRef,
    Operand,
    PtxFunction,
    PtxInst,
    PtxLabel,
    PtxLoc,
    PtxParam,
    PtxPragma,
    PtxProto,
    PtxVar,
    Reg,
    Sym,
    Vec,
)
from stages.parse import compat, declare, directives, match, operand_forms
from stages.parse.calls import check_call
from stages.parse.operands import operand, unresolved
from stages.parse.scan import Scanner
from stages.parse.sums import Sums, is_sum, offset
from stages.parse.symbols import FuncSym, FunctionState, ProtoSym, RegSym, Scope, TargetsSym, Typed, lookup
from stages.parse.types import SCALARS, SPACES
from stages.parse.vectors import is_element

STATEMENT = late_pattern(
    r"[ \t\r\n]*(?:@(!?)[ \t]*([%A-Za-z0-9_$]+)[ \t\r\n]+)?([a-z][a-z0-9_]*(?:\.[A-Za-z0-9_:]+)*)(?:[ "
    r"\t]+([^;:()@\"'=#!|]*))?;"
)
_CHUNK = late_pattern(r"(?:\{[^{}]*\}|\[[^\[\]]*\]|[^,{}\[\]])+")
_ADDRESS = late_pattern(r"\[([%A-Za-z0-9_$]+)(?:\+(-?[1-9][0-9]{0,9}|0))?\]")
# A label alone on its line (no table follows), or a plain `.loc`.
_MARK = late_pattern(
    r"[ \t\r\n]*(?:(?P<label>[A-Za-z_$][A-Za-z0-9_$]*):(?=[ \t\r]*\n[ \t\r\n]*[@A-Za-z_$}])"
    r"|\.loc[ \t]+(?P<file>[1-9][0-9]{0,8})[ \t]+(?P<line>[1-9][0-9]{0,8}|0)[ "
    r"\t]+(?P<col>[1-9][0-9]{0,8}|0)(?=[ \t\r]*\n[ \t\r\n]*[@A-Za-z_$}]))"
)
_NAME = late_pattern(r"[A-Za-z_$][A-Za-z0-9_$]*")
_SMALL = late_pattern(r"-?[1-9][0-9]{0,8}|0")
_F32 = late_pattern(r"0[fF][0-9A-Fa-f]{8}")
MAX_SCOPES = 1000
_VARIABLE = frozenset(SPACES)


class Body:
    """Reads one body; `run` leaves the scanner after the closing brace."""

    __slots__ = ("depth", "end", "fs", "function", "guards", "matcher", "notes", "rooted", "s")

    def __init__(self, s: Scanner, fs: FunctionState, matcher: match.Matcher) -> None:
        self.s = s
        self.notes = s.notes
        self.fs = fs
        self.function: PtxFunction = fs.function
        self.matcher = matcher
        matcher.registers = fs.function.regs
        self.depth = 0
        self.end = 0
        self.rooted = fs.scope
        self.guards: dict[tuple[str, str], tuple[int, bool]] = {}

    # ---------------------------------------------------------------- the loop

    def run(self) -> None:
        """Reads from `{` to the matching `}`."""
        s = self.s
        fs = self.fs
        if s.kind != "{":
            s.syntax_error()
        text = s.text
        pos = s.pos
        statement = STATEMENT.match
        opcodes = self.matcher.opcodes
        line_of = s.source.line
        append = self.function.body.append
        cache = fs.scope.cache
        while True:
            m = statement(text, pos)
            if m is not None:
                negated, guard_name, opcode_text, operand_text = m.groups()
                opcode = opcodes.get(opcode_text) or self.matcher.opcode(opcode_text)
                guard = None
                if guard_name is not None:
                    guard = self._guard(negated, guard_name)
                if opcode is not None and opcode.plain and (guard_name is None or guard is not None):
                    typed = self._quick_operands(operand_text, cache)
                    if typed is not None:
                        verdict = opcode.verdicts.get(typed[1])
                        line = line_of(m.start(3))
                        if verdict is None or not verdict.clean:
                            self._emit(opcode, typed[0], typed[1], guard, line)
                        else:
                            append(
                                PtxInst(
                                    opcode.op, opcode.mods, opcode.types, typed[0], guard, line, fs.loc, verdict.row
                                )
                            )
                        pos = m.end()
                        continue
            m = _MARK.match(text, pos)
            if m is not None:
                pos = m.end()
                if m.lastgroup == "label":
                    self._place_label(m.group("label"), line_of(m.start("label")))
                else:
                    place = int(m.group("file")), int(m.group("line")), int(m.group("col"))
                    fs.loc = fs.add_loc(place, PtxLoc(*place))
                continue
            s.seek(pos)
            if s.kind == "}" and self.depth == 0:
                self.end = s.start
                s.next()
                return
            self._statement()
            pos = s.start
            cache = fs.scope.cache

    def _guard(self, negated: str, name: str) -> tuple[int, bool] | None:
        key = (negated, name)
        guard = self.guards.get(key)
        if guard is None:
            symbol = lookup(self.fs.scope, name, self.fs)
            if isinstance(symbol, RegSym) and symbol.reg is not None and symbol.type == "pred":
                guard = self.guards[key] = (symbol.reg.index, negated == "!")
        return guard

    def _quick_operands(
        self, text: str | None, cache: dict[str, Typed]
    ) -> tuple[tuple[Operand, ...], tuple[str, ...]] | None:
        if not text:
            return (), ()
        if "{" in text:
            chunks = _CHUNK.findall(text)
            if ",".join(chunks) != text:
                return None  # a stray brace or comma
        else:
            chunks = text.split(", ")
        operands: list[Operand] = []
        kinds: list[str] = []
        for chunk in chunks:
            typed = cache.get(chunk)
            if typed is None:
                typed = self._quick(chunk, cache)
                if typed is None:
                    return None
            operands.append(typed[0])
            kinds.append(typed[1])
        return tuple(operands), tuple(kinds)

    def _quick(self, chunk: str, cache: dict[str, Typed]) -> Typed | None:
        """The common operand shapes; None sends the statement to the grammar."""
        typed: Typed | None = None
        bare = chunk.strip(" ")
        if not bare:
            return None
        symbol = lookup(self.fs.scope, bare, self.fs)
        if isinstance(symbol, RegSym):
            typed = symbol.typed()
        elif bare[0] == "[":
            m = _ADDRESS.fullmatch(bare)
            if m is not None:
                symbol = lookup(self.fs.scope, m.group(1), self.fs)
                if isinstance(symbol, RegSym) and symbol.reg is not None:
                    typed = Addr(symbol.reg, int(m.group(2) or 0)), "a:r:" + symbol.type
        elif bare[0] == "{" and bare[-1] == "}":
            inner = self._quick_operands(bare[1:-1].strip(" "), cache)
            if inner is not None and inner[0] and all(map(is_element, inner[1])):
                typed = Vec(inner[0]), "(" + ",".join(inner[1]) + ")"
        elif _SMALL.fullmatch(bare):
            typed = Imm(int(bare)), "i"
        elif _F32.fullmatch(bare):
            typed = ImmF32(int(bare[2:], 16)), "f"
        elif symbol is None and bare[0] != "%" and len(bare) > 1 and bare != "WARP_SZ" and _NAME.fullmatch(bare):
            typed = unresolved(self.fs.scope, bare, 0), "l"
        if typed is not None:
            cache[chunk] = typed
        return typed

    # ---------------------------------------------------------------- the grammar

    def _statement(self) -> None:
        s = self.s
        kind = s.kind
        if kind == "id":
            name = s.tok
            line = s.line
            if s.text.startswith(":", s.pos) or s.text[s.pos : s.pos + 64].lstrip().startswith(":"):
                s.next()
                s.next()
                self._label(name, line)
                return
            self._instruction(None)
        elif kind == "dot":
            self._directive()
        elif kind == "{":
            self._open()
        elif kind == "}":
            self._close()
        elif kind == "@":
            self._guarded()
        else:
            s.syntax_error()

    def _open(self) -> None:
        self.depth += 1
        if self.depth > MAX_SCOPES:
            self.notes.fatal("Scopes nested too deeply", self.s.line)
        self.fs.scope = Scope(self.fs.scope)
        self.guards.clear()
        self.s.next()

    def _close(self) -> None:
        self.depth -= 1
        scope = self.fs.scope
        assert scope.parent is not None
        self._resolve_labels(scope, scope.parent)
        self.fs.scope = scope.parent
        self.guards.clear()
        self.s.next()

    def _resolve_labels(self, scope: Scope, parent: Scope | None) -> None:
        """Resolves the labels of a scope that ends; what is left goes to its parent (the smaller table into the larger
        one)."""
        pending = scope.pending
        for name in (
            [n for n in pending if n in scope.labels]
            if len(pending) < len(scope.labels)
            else [n for n in scope.labels if n in pending]
        ):
            for ref in pending.pop(name)[0]:
                ref.index = scope.labels[name]
        scope.pending = {}
        if parent is None:
            if pending:
                self._unknown([(name, refs, line) for name, (refs, line) in pending.items()])
            return
        small, large = (pending, parent.pending) if len(pending) < len(parent.pending) else (parent.pending, pending)
        for name, entry in small.items():
            known = large.get(name)
            if known is not None:
                few, many = sorted((entry[0], known[0]), key=len)
                many.extend(few)
                entry = many, min(entry[1], known[1])
            large[name] = entry
        parent.pending = large

    def _unknown(self, unknown: list[tuple[str, list[LabelRef], int]]) -> None:
        """Reports every use of names that nothing declares, in order."""
        names = {id(ref): name for name, refs, _ in unknown for ref in refs}
        uses: list[tuple[int, str]] = []
        for item in self.function.body:
            if isinstance(item, PtxInst):
                uses.extend([(item.line, names[k]) for k in _references(item.operands) if k in names])
        found = {name for _, name in uses}
        uses.extend([(line, name) for name, _, line in unknown if name not in found])
        for line, name in sorted(uses, key=lambda use: use[0]):
            self.notes.error(f"Unknown symbol '{name}'", line)

    def finish(self) -> None:
        """After the body: unresolved names are errors, label lists get their indices."""
        self._resolve_labels(self.rooted, None)

    def _label(self, name: str, line: int) -> None:
        s = self.s
        if s.kind == "dot" and s.tok in (".branchtargets", ".calltargets", ".callprototype"):
            self._table(name, line)
            return
        self._place_label(name, line)

    def _place_label(self, name: str, line: int) -> None:
        scope = self.fs.scope
        if name in scope.labels or name in scope.names:
            self.notes.error(f"Duplicate definition of label '{name}'", line)
            return
        labels = self.function.labels
        unique = name
        n = self.fs.unique.get(":" + name, 0)
        while n and f":{name}${n}" in self.fs.unique:
            n += 1
        if n:
            unique = f"{name}${n}"
            self.fs.unique[":" + unique] = 1
        self.fs.unique[":" + name] = n + 1
        scope.labels[name] = len(labels)
        self.function.body.append(PtxLabel(len(labels), line))
        labels.append(unique)

    def _table(self, name: str, line: int) -> None:
        s = self.s
        scope = self.fs.scope
        declare.used_too_early(s, scope, name, scope.pending.get(name, ([], line))[1])
        word = s.tok
        if word == ".callprototype":
            proto = prototype(s, name, line)
            self.function.protos.append(proto)
            scope.names[name] = ProtoSym(proto)
            return
        s.next()
        names: list[str] = []
        refs: list[LabelRef] = []
        while True:
            at = s.line
            target = s.expect("id")
            names.append(target)
            if word == ".branchtargets":
                refs.append(unresolved(scope, target, at))
            elif not isinstance(lookup(scope, target, None), FuncSym):
                self.notes.error("Illegal call target, device function expected", at)
                self.notes.fatal("Call target not recognized", at)
            if not s.accept(","):
                break
        s.expect(";")
        scope.cache.clear()
        scope.names[name] = TargetsSym(word, tuple(names), refs, line)

    def _directive(self) -> None:
        s = self.s
        word = s.tok
        if word == ".loc":
            directives.loc(s, self.fs)
        elif word == ".reg":
            self.guards.clear()
            declare.registers(s, self.fs, self.fs.scope)
        elif word in _VARIABLE:
            declare.variables(s, self.fs.scope, self.fs, "", self.function.vars)
        elif word in (".extern", ".visible", ".weak", ".common"):
            s.next()
            s.syntax_error()
        elif word == ".pragma":
            line = s.line
            texts = directives.pragma(s)
            directives.check_pragmas(s, texts, line, self.fs.target, "body", self.function.entry)
            for text in texts:
                self.function.body.append(PtxPragma(text, line))
        elif word[1:] in SCALARS:
            line = s.line
            s.next()
            s.expect("id")
            self.notes.fatal("No variable storage specified", line)
        else:
            s.syntax_error()

    def _guarded(self) -> None:
        s = self.s
        s.next()
        negated = "!" if s.accept("!") else ""
        line = s.line
        name = s.expect("id")
        guard = self._guard(negated, name)
        if guard is None:
            self.notes.error("Predicate expression expected", line)
            if lookup(self.fs.scope, name, self.fs) is None:
                unresolved(self.fs.scope, name, line)
        if s.kind != "id":
            s.syntax_error()
        self._instruction(guard)

    def _instruction(self, guard: tuple[int, bool] | None) -> None:
        s = self.s
        line = s.line
        parts = [s.tok]
        s.next()
        while s.kind == "dot":
            parts.append(s.tok)
            s.next()
        text = "".join(parts)
        opcode = self.matcher.opcodes.get(text) or self.matcher.opcode(text)
        if parts[0] == "call":
            self._call(opcode, guard, line)
            return
        operands: list[Operand] = []
        kinds: list[str] = []
        cache = self.fs.scope.cache
        errors = self.notes.errors
        if s.kind != ";":
            while True:
                start = s.start
                value, kind = operand(s, self.fs)
                if kind == "t":
                    value, kind = self._targets(value)
                elif is_sum(s, kind, s.text[start : s.start]):
                    added = offset(s) if s.kind == "+" else 0
                    if opcode is not None:
                        value, kind = Sums(self.fs, self.matcher, opcode, line).resolve(
                            len(operands), (value, kind), added
                        )
                    start = s.start  # nothing that a later instruction could find again
                operands.append(value)
                kinds.append(kind)
                chunk = s.text[start : s.start].rstrip()
                if kind != "t" and chunk and self.notes.errors == errors:
                    cache[chunk] = cache[" " + chunk] = (value, kind)
                if s.kind != ",":
                    break
                s.next()
        if s.kind != ";":
            s.syntax_error()
        s.next()
        if opcode is None:
            self.matcher.complain(text, line)
            return
        self._emit(opcode, tuple(operands), tuple(kinds), guard, line)

    def _targets(self, value: Operand) -> Typed:
        assert isinstance(value, Sym)
        symbol = lookup(self.fs.scope, value.name, None)
        if isinstance(symbol, TargetsSym) and symbol.kind == ".branchtargets":
            # The labels are patched when their scope ends, so the list is made in `finish`.
            late = LabelList(())
            self.matcher.late.append((late, symbol.refs))
            return late, "t"
        return value, "t"

    def _emit(
        self,
        opcode: match.Opcode,
        operands: tuple[Operand, ...],
        kinds: tuple[str, ...],
        guard: tuple[int, bool] | None,
        line: int,
    ) -> None:
        """Checks an instruction against the descriptor table and appends it."""
        if self.fs.named is not None:
            self._beyond(opcode, self.fs.named, line)
            self.fs.named = None
        if self.function.entry and "param::func" in opcode.mods and self.fs.target.since("13.5"):
            for text in operand_forms.parameter_of_kernel(opcode.op, kinds):
                self.notes.error(text, line)
        operands, row = self.matcher.check(opcode, operands, kinds, line)
        self.function.body.append(
            PtxInst(opcode.op, opcode.mods, opcode.types, operands, guard, line, self.fs.loc, row)
        )

    def _beyond(self, opcode: match.Opcode, named: tuple[str, PtxVar | PtxParam], line: int) -> None:
        """Tells of a load or store that is wider than the variable that it names, at any offset (measured)."""
        name, var = named
        if opcode.op not in ("ld", "st") or "." in opcode.name or not opcode.types or var.dims or var.space == "tex":
            return
        have, want = var.vec * compat.bit_size(var.type), compat.bit_size(opcode.types[0])
        if have < want:
            self.notes.add(
                "info",
                f"Potential out of bound access while accessing symbol '{name}' of type '.{var.type}' "
                f"with instruction type '.{opcode.types[0]}'.",
                line,
            )

    # ---------------------------------------------------------------- calls

    def _call_list(self) -> tuple[list[Operand], list[str]]:
        s = self.s
        s.expect("(")
        values: list[Operand] = []
        kinds: list[str] = []
        while s.kind != ")":
            value, kind = operand(s, self.fs)
            values.append(value)
            kinds.append(kind)
            if not s.accept(","):
                break
        s.expect(")")
        return values, kinds

    def _call(self, opcode: match.Opcode | None, guard: tuple[int, bool] | None, line: int) -> None:
        s = self.s
        rets: tuple[list[Operand], list[str]] = ([], [])
        args: tuple[list[Operand], list[str]] = ([], [])
        if s.kind == "(":
            rets = self._call_list()
            s.expect(",")
        name = s.expect("id")
        proto_name = None
        if s.accept(","):
            if s.kind == "(":
                args = self._call_list()
                if s.accept(","):
                    proto_name = s.expect("id")
            else:
                proto_name = s.expect("id")
        s.expect(";")
        self.fs.named = None  # that a variable is an argument tells nothing of its width
        scope = self.fs.scope
        symbol = lookup(scope, name, self.fs)
        target: Sym | Reg
        proto: PtxProto | None = None
        targets: tuple[str, ...] = ()
        illegal = opcode is not None and any(m != "uni" for m in opcode.mods)
        if illegal and opcode is not None:
            self.notes.error(
                f"Illegal modifier '.{next(m for m in opcode.mods if m != 'uni')}' for instruction 'call'", line
            )
        if isinstance(symbol, FuncSym):
            target = Sym(name)
            proto = symbol.proto
            if symbol.entry:
                self.notes.error("Illegal call target, device function expected", line)
        else:
            if isinstance(symbol, RegSym) and symbol.reg is not None:
                target = symbol.reg
            else:
                target = Sym(name)
                if symbol is None:
                    self.notes.error(f"Call to '{name}' requires call prototype", line)
                    unresolved(scope, name, line)
                else:
                    self.notes.error("Label expected for argument 0 of instruction 'call'", line)
                    self.notes.error("Argument 0 of instruction 'call': must be register", line)
            if proto_name is not None:
                table = lookup(scope, proto_name, None)
                if isinstance(table, ProtoSym):
                    proto = table.proto
                elif isinstance(table, TargetsSym) and table.kind == ".calltargets":
                    targets = table.names
                    proto_name = None
                    first = lookup(scope, targets[0], None)
                    proto = first.proto if isinstance(first, FuncSym) else None
                else:
                    self.notes.error(f"Unknown symbol '{proto_name}'", line)
                    self.notes.error("Arguments mismatch for instruction 'call'", line)
                    unresolved(scope, proto_name, line)
            elif isinstance(target, Reg):
                self.notes.error("Label expected for argument 0 of instruction 'call'", line)
        if proto is not None:
            check_call(self.notes, self.fs, proto, rets, args, line)
        if opcode is None:
            return
        shown = None if isinstance(symbol, FuncSym) else proto_name
        call = CallTarget(target, tuple(rets[0]), tuple(args[0]), shown, targets)
        self.function.body.append(PtxInst("call", opcode.mods, (), (call,), guard, line, self.fs.loc, opcode.row))


def _references(operands: tuple[Operand, ...]) -> list[int]:
    """Identities of the label references in operands, in order."""
    out: list[int] = []
    for x in operands:
        if isinstance(x, LabelRef):
            out.append(id(x))
        elif isinstance(x, Vec):
            out.extend(_references(x.elems))
        elif isinstance(x, Bracket):
            out.extend(_references(x.parts))
        elif isinstance(x, Addr):
            out.extend(_references((x.base,)))
        elif isinstance(x, CallTarget):
            out.extend(_references((*x.rets, *x.args)))
    return out


def prototype(s: Scanner, name: str, line: int) -> PtxProto:
    """`.callprototype (rets) _ (params) directives;`"""
    s.next()
    rets = declare.parameters(s, Scope(None), None, False, True) if s.kind == "(" else []
    s.expect("id")
    params = declare.parameters(s, Scope(None), None, False) if s.kind == "(" else []
    proto = PtxProto(name, tuple(rets), tuple(params), line=line)
    directives.performance(s, proto.directives)
    s.expect(";")
    return proto
