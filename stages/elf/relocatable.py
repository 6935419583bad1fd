"""`link_object`: a module and its encoded units to an object for the linker (ET_REL, ``-c``).

Every function has a section of its own; what another section or another file holds is reached by relocations. Section
types, symbol types and relocation numbers as ptxas 13.0.88 writes them, order and string tables our own (measured:
nvlink goes by names and indexes). Our math helpers follow the function that calls them, in its section.
`.nv.prototype`, by which nvlink compares declarations, is not written.
"""

from __future__ import annotations

import struct

from ir_format.diag import CompileError
from ir_format.model import AttrValue, Header, Module, Reloc, Unit, Var
from ir_format.target import DRIVER_PREFIXES, Target, target
from ir_format.typed import Final
from stages.elf import attrs, image, info, notes
from stages.elf.dwarf import DebugSection, debug_sections, split_relocations
from stages.elf.file import lay_out
from stages.elf.frame import debug_frame
from stages.elf.headers import ENTRY_SIZES, R_ABS32, header_symbols, header_words
from stages.elf.image import SHT_PROGBITS, Section, Strings
from stages.elf.layout import (
    CONST,
    GLOBAL_INIT,
    GLOBAL_ZERO,
    Kernel,
    address_kind,
    build_kernel,
    order_units,
    place_variables,
)
from stages.elf.lines import line_info
from stages.elf.order import object_order
from stages.elf.patch import add_imm32, set_branch, take_const_offset, take_imm32
from stages.elf.symbols import (
    BINDING,
    FUNC,
    GLOBAL,
    LOCAL,
    NOTYPE,
    OBJECT,
    OTHER_ENTRY,
    OTHER_MANAGED,
    WEAK,
    Symbol,
    SymbolTable,
)

ET_REL: Final = 1
ET_EXTENSIBLE: Final = 0xFF00  # of an object with -ewp, measured
SHT_PROTOTYPE: Final = 0x70000002
SHT_GLOBAL: Final = 0x70000007
SHT_GLOBAL_INIT: Final = 0x70000008
SHT_SHARED: Final = 0x7000000A
SHT_CONSTANT: Final = 0x70000064  # bank n: + n
CUDA_OBJECT: Final = 13
OTHER_GLOBAL: Final = 0x20
OTHER_SHARED: Final = 0x40
OTHER_CONST: Final = 0x80
OTHER_PARAM: Final = 0x81

COMMON_SHARED: Final = (
    ".nv_debug.shared"  # shared variables of the module and of device functions: the linker gives them places
)
FRAME: Final = ".debug_frame"
TKINFO: Final = ".note.nv.tkinfo"
CUINFO: Final = ".note.nv.cuinfo"
COMPAT: Final = ".nv.compat"
CALLGRAPH: Final = ".nv.callgraph"

R_CUDA_64: Final = 2
R_CUDA_G64: Final = 4
R_CUDA_8_0: Final = (
    76  # the lowest byte of an address; the next seven types are the other bytes, and so with the two below (measured)
)
R_CUDA_G8_0: Final = 84
R_UNIFIED8_0: Final = 104
R_LO32: Final = 56
R_HI32: Final = 57
R_CALL: Final = 58  # absolute call, up to sm_89
R_CONST16: Final = 59  # the offset of a constant variable as an immediate
R_CONST_FIELD19: Final = 64
R_CONST_FIELD21: Final = 66
R_CALL_90: Final = 75
R_UNIFIED64: Final = 102
R_UNIFIED_LO: Final = 112
R_UNIFIED_HI: Final = 113
R_UNIFIED_CALL: Final = 114

# Tables of functions and data that programs of several files share; the linker makes them (measured: every object of
# sm_90 and later names them).
UNIFIED: Final = (
    "__UDT_OFFSET",
    "__UFT_OFFSET",
    "__UFT_CANONICAL",
    "__UDT_CANONICAL",
    "__UFT",
    "__UDT",
    "__UFT_END",
    "__UDT_END",
)

Rows = list[tuple[int, int, str, int]]


def _rows(value: AttrValue | None, width: int) -> list[tuple[str, ...]]:
    """An attribute that is a list of rows of names."""
    out: list[tuple[str, ...]] = []
    for row in value if isinstance(value, tuple) else ():
        names = tuple([x for x in row if isinstance(x, str)]) if isinstance(row, tuple) else ()
        if len(names) != width or not all(names):
            raise CompileError("a list of names among the attributes is malformed")
        out.append(names)
    return out


class ObjectLinker:
    """State of one object: its functions, variables, symbols, and the relocations by section."""

    def __init__(self, header: Header, module: Module, units: list[Unit]) -> None:
        self.header = header
        self.module = module
        self.target: Target = target(header.target)
        self.kernels: list[Kernel] = []
        number = 0
        for u in object_order(order_units(module, units)):
            if header_words(u, not self.target.exec_rel):
                raise CompileError(
                    f"unit '{u.name}': textures by name are not supported by orias with '--compile-only'"
                )
            k = build_kernel(u, self.target, number, header.options)
            number += sum(f.code.kind == "helper" for f in k.functions)
            self.kernels.append(k)
        self.by_name: dict[str, Var] = {v.name: v for v in module.vars}
        self.functions = {k.name for k in self.kernels}
        self.externs: dict[str, None] = {}
        defined = Module()
        defined.vars = [v for v in module.vars if v.linkage != "extern"]
        self.variables = place_variables(defined)
        self.undefined: dict[str, None] = {}
        self.strings = Strings()
        self.aliases = {row[0]: row[1] for row in _rows(module.attrs.get("aliases"), 2)}
        self.signatures = {row[0]: row[1] for row in _rows(module.attrs.get("prototypes"), 2)}
        self.addresses: dict[str, str] = {}
        for k in self.kernels:
            text = k.unit.attrs.get("signature")
            if isinstance(text, str):
                self.signatures[k.name] = text
            for row in _rows(k.unit.attrs.get("addresses"), 2):
                self._function(row[0])
                self.addresses[row[0]] = row[1]
        self.lines = line_info(module, self.kernels, True) if header.options.get("generate-line-info") else None
        names = {v.name: v.name for v in (*self.variables.order, *self._shared_of_module())}
        for k in self.kernels:
            names.update((name.removeprefix(f"${k.name}$"), name) for name, _, _ in self._shared_of(k))
        linked = dict.fromkeys([".debug_line", *module.sections])
        self.dwarf: list[DebugSection] = []
        if header.options.get("device-debug"):
            self.dwarf = debug_sections(module, self.kernels[::-1], names, linked)
        self.table = SymbolTable()
        self.named: set[str] = set()  # of what `header_symbols` lists
        self.rows: dict[str, Rows] = {}
        self.callees: dict[str, dict[str, None]] = {}
        for k in self.kernels:
            self.rows[f".text.{k.name}"] = [
                row for f in k.functions for r in f.code.relocs for row in self._text_row(k, f.begin + r.offset, r)
            ]
            self._unified_calls(k)
        for v in self.variables.order:
            section, base = self.variables.place[v.name]
            self.rows.setdefault(section, []).extend(self._data_rows(v, base))

    # -- relocations
    # ------------------------------------------------------------------------------------------------------------------

    def _text_row(self, k: Kernel, at: int, r: Reloc) -> Rows:
        """The relocation of an instruction; the field is emptied into the addend. Nothing for what lies in the same
        section."""
        old = self.target.exec_rel
        base = k.base(r.symbol)
        if r.kind == "call":
            if base is None:
                raise CompileError(f"unit '{k.name}' calls '{r.symbol}', which it does not hold")
            set_branch(k.text, at, base + r.addend, self.target.branch_low8)
            return []
        if r.symbol in ENTRY_SIZES:
            return [(at, R_ABS32, r.symbol, 0)]
        if r.kind == "call_abs":
            self._function(r.symbol)
            self.callees.setdefault(k.name, {})[r.symbol] = None
            return [(at, R_CALL if old else R_CALL_90, r.symbol, 0)]
        if r.kind == "imm_off" and base is not None:  # the return address of a call inside the section
            add_imm32(k.text, at, base + r.addend)
            return []
        if r.kind == "bank3":
            self._variable(r.symbol, "const")
            offset, load = take_const_offset(k.text, at)
            return [(at, R_CONST_FIELD21 if load else R_CONST_FIELD19, r.symbol, offset + r.addend)]
        if r.kind in ("imm_lo", "imm_hi"):
            high = r.kind == "imm_hi"
            addend = take_imm32(k.text, at) + r.addend
            if addend >> 31:
                addend -= 1 << 32
            if r.symbol in self.by_name:
                self._variable(r.symbol, "global")
            elif r.symbol != k.name or not addend:
                self._function(r.symbol)
                if not old:
                    return [(at, R_UNIFIED_HI if high else R_UNIFIED_LO, r.symbol, addend)]
            return [(at, R_HI32 if high else R_LO32, r.symbol, addend)]
        if r.kind == "imm_off":
            v = self.by_name.get(r.symbol)
            kind = R_CONST16 if v is not None and v.space == "const" else R_ABS32
            if v is not None:
                self._variable(r.symbol, v.space)
            elif not r.symbol.startswith("$"):
                raise CompileError(f"unit '{k.name}': '{r.symbol}' is no variable of the module")
            return [(at, kind, r.symbol, take_imm32(k.text, at) + r.addend)]
        raise CompileError(
            f"unit '{k.name}': relocation '{r.kind}' against '{r.symbol}' is not supported by orias in an object"
        )

    def _unified_calls(self, k: Kernel) -> None:
        self.rows[f".text.{k.name}"] += [(at, R_UNIFIED_CALL, "__UFT_OFFSET", 0) for at, _ in k.marks("unified_call")]

    def _function(self, name: str) -> None:
        if name not in self.functions and name not in self.aliases:
            if name not in self.module.externs and not name.startswith(
                DRIVER_PREFIXES[0]
            ):  # those that `lower` calls need no declaration
                raise CompileError(f"function '{name}' is not in the module")
            self.externs[name] = None

    def _variable(self, name: str, space: str) -> None:
        v = self.by_name.get(name)
        if v is None or v.space != space:
            raise CompileError(f"'{name}' is no variable of the module in space '{space}'")
        if v.linkage == "extern":
            self.undefined[name] = None

    def _data_rows(self, v: Var, base: int) -> Rows:
        rows: Rows = []
        for at, name, addend, form in v.relocs:
            if name in self.by_name:
                space = self.by_name[name].space
                self._variable(name, space)
                kinds = (R_CUDA_64, R_CUDA_8_0) if space == "const" and not form & 1 else (R_CUDA_G64, R_CUDA_G8_0)
            else:
                self._address(name)
                kinds = (R_CUDA_64, R_CUDA_8_0) if self.target.exec_rel else (R_UNIFIED64, R_UNIFIED8_0)
            rows.append((base + at, address_kind(v, name, form, *kinds), name, addend))
        return rows

    # -- symbols
    # ------------------------------------------------------------------------------------------------------------------

    def symbols(self) -> None:
        """Create every symbol."""
        table, t = self.table, self.target
        table.section(TKINFO)
        table.section(CUINFO)
        if t.compat:
            for name in UNIFIED:
                table.add(Symbol(name, WEAK, OBJECT, "", 0, 8))
            table.add(Symbol(".nv.reservedSmem.offset0", WEAK, OBJECT, "", t.reserved_smem_offset0, 4))
        for name, space in ((CONST, OTHER_CONST), (GLOBAL_INIT, OTHER_GLOBAL), (GLOBAL_ZERO, OTHER_GLOBAL)):
            inside = [v for v in self.variables.order if self.variables.place[v.name][0] == name]
            if inside:
                table.section(name)
            for v in inside:
                other = space | (OTHER_MANAGED if "managed" in v.attrs else 0)
                table.add(
                    Symbol(
                        v.name, BINDING[v.linkage], CUDA_OBJECT, name, self.variables.place[v.name][1], v.size, other
                    )
                )
        shared = self._shared_of_module()
        if shared or any(self._shared_of(k) for k in self.kernels if k.unit.kind != "entry"):
            table.section(COMMON_SHARED)
        for v in shared:
            table.add(
                Symbol(v.name, BINDING[v.linkage], CUDA_OBJECT, COMMON_SHARED, max(1, v.align), v.size, OTHER_SHARED)
            )
        for k in self.kernels:
            self._function_symbols(k)
        table.section(FRAME)
        for section in dict.fromkeys([s.name for s in self.dwarf] + [r[2] for s in self.dwarf for r in s.relocs]):
            if section.startswith("."):
                table.section(section)
        table.section(CALLGRAPH)
        for v in self.module.vars:
            if v.linkage == "extern" and (v.name in self.undefined or v.space == "shared"):
                other = {"shared": OTHER_SHARED, "const": OTHER_CONST}.get(v.space, OTHER_GLOBAL)
                table.add(Symbol(v.name, GLOBAL, CUDA_OBJECT, "", 0, v.size, other))
        for name in self.externs:
            table.add(Symbol(name, GLOBAL, FUNC))
        table.freeze()

    def _function_symbols(self, k: Kernel) -> None:
        table = self.table
        text = f".text.{k.name}"
        table.add(
            Symbol(
                k.name,
                BINDING[k.unit.linkage],
                FUNC,
                text,
                0,
                len(k.text),
                OTHER_ENTRY if k.unit.kind == "entry" else 0,
            )
        )
        for symbol in header_symbols(k, text):
            if symbol.name not in self.named:
                self.named.add(symbol.name)
                table.add(symbol)
        for name, what in self.aliases.items():
            if what == k.name:
                table.add(Symbol(name, GLOBAL, FUNC, text, 0, len(k.text)))
        table.section(text)
        # of no type: nvlink crashes when it drops a function that is not called, with a second function in its section
        # (measured)
        for f in k.functions[1:]:
            table.add(Symbol(f.symbol, LOCAL, NOTYPE, text, f.begin, f.size))
        own = self._shared_of(k)
        if own and k.unit.kind == "entry":
            table.section(f".nv.shared.{k.name}")
        for name, size, align in own:
            section = f".nv.shared.{k.name}" if k.unit.kind == "entry" else COMMON_SHARED
            table.add(Symbol(name, LOCAL, CUDA_OBJECT, section, align, size, OTHER_SHARED))
        if k.unit.kind == "entry":
            name = f".nv.constant0.{k.name}"
            table.section(name)
            if self.target.exec_rel and k.param_size:
                table.add(
                    Symbol(
                        "_param",
                        LOCAL,
                        CUDA_OBJECT,
                        name,
                        self.target.param_base(k.param_size),
                        k.param_size,
                        OTHER_PARAM,
                    )
                )

    def _shared_of_module(self) -> list[Var]:
        return [v for v in self.module.vars if v.space == "shared" and v.linkage != "extern"]

    @staticmethod
    def _shared_of(k: Kernel) -> list[tuple[str, int, int]]:
        got = k.unit.attrs.get("shared_vars", ())
        out: list[tuple[str, int, int]] = []
        for row in got if isinstance(got, tuple) else ():
            if not (
                isinstance(row, tuple)
                and len(row) == 3
                and isinstance(row[0], str)
                and isinstance(row[1], int)
                and isinstance(row[2], int)
            ):
                raise attrs.bad(k.unit, "shared_vars")
            out.append((row[0], row[1], max(1, row[2])))
        return out

    # -- sections
    # ------------------------------------------------------------------------------------------------------------------

    def sections(self) -> list[Section]:
        """All sections after the three tables."""
        t = self.target
        frames = debug_frame(self.kernels, t)
        self.rows[FRAME] = [(at, R_CUDA_64, name, addend) for at, name, addend in frames.relocs] + self._frame_rows(
            frames.data
        )
        compat = COMPAT if t.compat else 0
        out = [Section(FRAME, SHT_PROGBITS, data=frames.data), *self._debug()]
        out.append(Section(TKINFO, image.SHT_NOTE, 0x02000000, notes.tkinfo(self.header), align=4))
        out.append(
            Section(
                CUINFO,
                image.SHT_NOTE,
                0x01000040 if compat else 0x01000000,
                notes.cuinfo(self.header),
                link=TKINFO,
                info=compat,
                align=4,
            )
        )
        out += self._infos()
        for name, rows in self.rows.items():
            out += self._relocation(name, rows)
        v = self.variables
        if v.const:
            out.append(Section(CONST, SHT_CONSTANT + 3, 2, v.const, align=v.const_align))
        if t.exec_rel:
            out += self._params()
        for k in self.kernels:
            symbol = self.table.index[k.name]
            value = symbol | k.regcount << 24 if t.exec_rel else symbol
            out.append(Section(f".text.{k.name}", SHT_PROGBITS, 6, k.text, link=".symtab", info=value, align=128))
        if v.init:
            out.append(Section(GLOBAL_INIT, SHT_GLOBAL_INIT, 3, v.init, align=v.init_align))
        if v.zero_size:
            out.append(Section(GLOBAL_ZERO, SHT_GLOBAL, 3, size=v.zero_size, align=v.zero_align))
        out += self._shared()
        if not t.exec_rel:
            out += self._params()
        return out

    @staticmethod
    def _frame_rows(data: bytes | bytearray) -> Rows:
        """The linker joins the sections of several files: where each entry finds its common part."""
        rows: Rows = []
        at = 0
        while at < len(data):
            length, common = struct.unpack_from("<QQ", data, at + 4)
            if common != (1 << 64) - 1:
                rows.append((at + 12, R_CUDA_64, FRAME, common))
            at += 12 + length
        return rows

    def _debug(self) -> list[Section]:
        """Sections of -lineinfo and -g."""
        out: list[Section] = []
        if self.lines is not None:
            tables = [
                (".debug_line", self.lines.source.data, self.lines.source.relocs),
                (".debug_str", self.lines.strings, []),
            ]
            if self.lines.sass is not None:
                tables += [
                    (".nv_debug_line_sass", self.lines.sass.data, self.lines.sass.relocs),
                    (self.lines.text_name, self.lines.text, []),
                ]
            for name, data, relocs in tables:
                if data:
                    out.append(Section(name, SHT_PROGBITS, data=bytes(data)))
                    self.rows[name] = [(at, R_CUDA_64, function, 0) for at, function in relocs]
        for s in self.dwarf:
            out.append(Section(s.name, SHT_PROGBITS, data=bytes(s.data)))
            self.rows[s.name] = s.relocs[::-1]
        return out

    def _shared(self) -> list[Section]:
        out: list[Section] = []
        loose = [(v.size, max(1, v.align)) for v in self._shared_of_module()]
        for k in self.kernels:
            own = [(size, align) for _, size, align in self._shared_of(k)]
            if k.unit.kind != "entry":
                loose += own
        if loose:
            out.append(
                Section(COMMON_SHARED, SHT_SHARED, 3, size=sum(s for s, _ in loose), align=max(a for _, a in loose))
            )
        for k in self.kernels:
            own = [(size, align) for _, size, align in self._shared_of(k)]
            if own and k.unit.kind == "entry":
                name, size, align = f".nv.shared.{k.name}", sum(s for s, _ in own), max(a for _, a in own)
                out.append(Section(name, SHT_SHARED, 0x43, size=size, info=f".text.{k.name}", align=align))
        return out

    def _params(self) -> list[Section]:
        out = []
        for k in self.kernels:
            if k.unit.kind == "entry":
                size = self.target.param_base(k.param_size) + k.param_size
                out.append(
                    Section(f".nv.constant0.{k.name}", SHT_CONSTANT, 0x42, bytes(size), info=f".text.{k.name}", align=4)
                )
        return out

    def _infos(self) -> list[Section]:
        t, index = self.target, self.table.index
        body = bytearray()
        for k in reversed(self.kernels):
            body += info.words(info.REGCOUNT, index[k.name], k.regcount)
            body += info.words(info.MAX_STACK_SIZE, index[k.name], 0)
            body += info.words(info.FRAME_SIZE, index[k.name], k.min_stack)
            if info.errors_at_exit(self.header.options):
                body += info.record(info.NVAL, info.GEN_ERRBAR_AT_EXIT)
        out = [Section(".nv.info", image.SHT_INFO, 0, bytes(body), link=".symtab", align=4)]
        if t.compat:
            isa = max((attrs.number(k.unit, "isa_class", 1, 4, 1) for k in self.kernels), default=1)
            tensormap = 0
            for k in self.kernels:
                tensormap |= attrs.number(k.unit, "tensormap", 0, 3)
            byte_products = any(attrs.number(k.unit, "byte_products", 0, 1) for k in self.kernels)
            data = info.compat(t, isa, 0, tensormap, byte_products)
            out.append(Section(COMPAT, image.SHT_COMPAT, 0, data, align=4))
        graph = struct.pack("<Ii", 0, -1)
        for k in self.kernels:
            called = list(self.callees.get(k.name, ()))
            k.externs = [name for name in called if name in self.externs]
            write = info.kernel_info if k.unit.kind == "entry" else info.function_info
            name = f".nv.info.{k.name}"
            out.append(
                Section(name, image.SHT_INFO, 0x40, write(k, t, index), link=".symtab", info=f".text.{k.name}", align=4)
            )
            for other in called:
                graph += struct.pack("<II", index[k.name], index[other])
        graph += self._pointers()
        out.append(Section(CALLGRAPH, image.SHT_CALLGRAPH, 0, graph, link=".symtab", align=4, entsize=8))
        return out

    def _pointers(self) -> bytes:
        """What the linker knows of calls by pointer: functions whose address is taken with their signatures, calls with
        theirs, and which of them takes which address."""
        index, strings = self.table.index, self.strings
        taken, calls, targets = struct.pack("<Ii", 0, -2), struct.pack("<Ii", 0, -3), struct.pack("<Ii", 0, -4)
        for name, text in self.addresses.items():
            taken += struct.pack("<II", index[name], strings.add(text))
        for k in self.kernels:
            for row in _rows(k.unit.attrs.get("pointer_calls"), 1):
                calls += struct.pack("<II", index[k.name], strings.add(row[0]))
            for row in _rows(k.unit.attrs.get("addresses"), 2):
                targets += struct.pack("<II", index[k.name], index[row[0]])
        return taken + calls + targets

    def _address(self, name: str) -> None:
        """A function whose address the module's data hold."""
        self._function(name)
        text = self.signatures.get(name, "")
        if text:
            self.addresses[name] = text

    def _relocation(self, section: str, rows: Rows) -> list[Section]:
        """`.rel` for zero addends up to sm_89, else `.rela`."""
        index = self.table.index
        for _, _, name, addend in rows:
            if name not in index:
                raise CompileError(f"'{name}' is not in the module")
            if not -(1 << 63) <= addend < 1 << 63:
                raise CompileError(f"illegal address offset {addend} from '{name}'")
        rel = [r for r in rows if self.target.exec_rel and not r[3]]
        rela = [r for r in rows if not self.target.exec_rel or r[3]]
        if any(section == s.name for s in self.dwarf):
            rel, rela = split_relocations(section, rows, self.target.exec_rel)
        out: list[Section] = []
        if rela:
            body = b"".join(struct.pack("<Q2Iq", at, kind, index[name], addend) for at, kind, name, addend in rela)
            out.append(
                Section(
                    f".rela{section}", image.SHT_RELA, 0x40, body, link=".symtab", info=section, align=8, entsize=24
                )
            )
        if rel:
            body = b"".join(struct.pack("<Q2I", at, kind, index[name]) for at, kind, name, _ in rel)
            out.append(
                Section(f".rel{section}", image.SHT_REL, 0x40, body, link=".symtab", info=section, align=8, entsize=16)
            )
        return out

    # -- the file
    # ------------------------------------------------------------------------------------------------------------------

    def write(self) -> bytes:
        """The whole file."""
        self.symbols()
        laid = lay_out(self.table, self.strings, self.sections())
        flags = laid.index[CUINFO] << 24 | self.target.elf_sm << 8 | 0x04
        type_ = ET_EXTENSIBLE if self.header.options.get("extensible-whole-program") else ET_REL
        return bytes(laid.pack(image.file_header(type_, flags, 0, 0, laid.shoff, len(laid.sections) + 1)))


def link_object(header: Header, module: Module, units: list[Unit]) -> bytes:
    """The object of a module. Raises :class:`CompileError` for anything that has no relocation."""
    return ObjectLinker(header, module, units).write()
