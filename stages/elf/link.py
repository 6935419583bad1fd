"""`link`: a module and its encoded units to the bytes of a cubin (ET_EXEC).

Section order, symbol order and every header field follow what ptxas 13.0.88 writes (measured; docs/cubin.md). The
optional second copy of the code that ptxas adds from sm_100 on is left out, which ``e_flags`` says by its low byte.
"""

from __future__ import annotations

import struct

from ir_format.diag import CompileError
from ir_format.features import has
from ir_format.model import Header, Module, Unit, Var
from ir_format.target import Target, target
from ir_format.typed import TYPE_CHECKING, Final
from stages.elf import attrs, image, info, notes
from stages.elf.file import lay_out
from stages.elf.frame import Frames, debug_frame
from stages.elf.headers import (
    entry_sizes,
    header_symbol,
    header_symbols,
    header_variables,
    header_words,
)
from stages.elf.image import SHT_NOBITS, SHT_PROGBITS, Section, Strings
from stages.elf.layout import (
    CONST,
    GLOBAL_INIT,
    GLOBAL_ZERO,
    SLOTS,
    Kernel,
    Variables,
    address_kind,
    build_kernel,
    fill_offsets,
    is_offset,
    order_units,
    place_variables,
)
from stages.elf.resolve import collect_externs, resolve
from stages.elf.symbols import (
    BINDING,
    FUNC,
    GLOBAL,
    LOCAL,
    NOTYPE,
    OBJECT,
    OTHER_ENTRY,
    OTHER_HIDDEN,
    OTHER_MANAGED,
    OTHER_RESERVED_SHARED,
    WEAK,
    Symbol,
    SymbolTable,
)

if TYPE_CHECKING:
    from stages.elf.dwarf import DebugSection
    from stages.elf.lines import LineInfo

SASS_ONLY: Final = 0x04
R_CUDA_64: Final = 2
R_CUDA_G64: Final = 4
R_CUDA_G8_0: Final = 84  # the lowest byte of a generic address; the next seven types are the others

PARTITION_SIZE: Final = 0x20
RESERVED: Final = ".nv.shared.reserved.0"
FRAME: Final = ".debug_frame"
CALLGRAPH: Final = ".nv.callgraph"
REL_ACTION: Final = ".nv.rel.action"
COMPAT: Final = ".nv.compat"
TKINFO: Final = ".note.nv.tkinfo"
CUINFO: Final = ".note.nv.cuinfo"

REL_ACTION_BYTES: Final = bytes.fromhex("73000000000000000000001125000536")

Rows = list[tuple[int, int, str, int]]  # relocations of a section: (offset, type, symbol, addend)


def _binding(k: Kernel) -> int:
    if k.unit.linkage not in BINDING:
        raise CompileError(f"unit '{k.name}': illegal linkage '{k.unit.linkage}'")
    return BINDING[k.unit.linkage]


class Linker:
    """State of one link: what the parts of the file need to know of each other."""

    def __init__(self, header: Header, module: Module, units: list[Unit]) -> None:
        self.header = header
        self.module = module
        self.target: Target = target(header.target)
        ordered = order_units(module, units)
        self.kernels: list[Kernel] = []  # file order: last declared first
        number = 0
        for u in reversed(ordered):
            k = build_kernel(u, self.target, number, header.options)
            number += sum(f.code.kind == "helper" for f in k.functions)
            self.kernels.append(k)
        self.variables: Variables = place_variables(module)
        fill_offsets(self.variables)
        self.externs = collect_externs(self.kernels, module, self.variables)
        for k in self.kernels:
            resolve(k, self.variables, self.target)
        self.frames: Frames = debug_frame(self.kernels, self.target)
        self.lines: LineInfo | None = None
        if header.options.get("generate-line-info"):
            from stages.elf.lines import line_info

            self.lines = line_info(module, self.kernels)
        names = {v.name: v.name for v in self.variables.order}
        self.dwarf: list[DebugSection] = []
        if header.options.get("device-debug"):
            from stages.elf.dwarf import debug_sections

            self.dwarf = debug_sections(module, self.kernels[::-1], names)
        self.created: dict[str, int] = {}  # sections of variables and shared memory: name -> order of creation
        self.table = SymbolTable()
        # Bytes of the allocator of tensor memory after offset0 in reserved shared memory.
        self.partition = PARTITION_SIZE if any(attrs.number(k.unit, "tcgen05_alloc", 0, 3) for k in self.kernels) else 0
        self.capped = False
        self.named: set[str] = set()  # of what `header_symbols` lists
        self.late_slots = False  # bank 4 begins with a function that only a later kernel calls

    # -- symbols
    # ------------------------------------------------------------------------------------------------------------------

    def symbols(self) -> None:
        """Create every symbol, in the order that the file has them."""
        table, t = self.table, self.target
        # A dynamic array of the module gives every kernel a section, used or not, but only sections with content get a
        # symbol.
        any_dynamic = any(k.dynamic for k in self.kernels) or any(
            v.space == "shared" and v.linkage == "extern" for v in self.module.vars
        )
        table.section(TKINFO)
        table.section(CUINFO)
        for i, k in enumerate(self.kernels):
            table.add(Symbol(k.name, _binding(k), FUNC, f".text.{k.name}", 0, len(k.text), OTHER_ENTRY))
            table.section(f".text.{k.name}")
            if k.shared or any_dynamic:
                self._create(f".nv.shared.{k.name}", symbol=k.shared > 0)
            if k.externs and i and SLOTS not in self.created:
                self.late_slots = True
                self._create(SLOTS)
            if i == 0:
                self._reserved_symbols()
                if k.externs:
                    self._create(SLOTS)
                self._variable_symbols()
            self._kernel_symbols(k)
        if not self.kernels:
            self._reserved_symbols()
            self._variable_symbols()
        for name in self.externs:
            table.add(Symbol(name, GLOBAL, FUNC))
        if self.frames.data:
            table.section(FRAME)
        for s in self._debug():
            table.section(s.name)
        table.section(CALLGRAPH)
        if t.exec_rel:
            table.section(REL_ACTION)
        else:
            for k in self.kernels:
                table.section(f".nv.constant0.{k.name}", last=True)
        table.freeze()
        if len(table.index) + self._anonymous() + 1 != len(table.rows):
            raise CompileError("two symbols of the cubin have the same name")

    def _anonymous(self) -> int:
        return sum(not s.name for s in self.table.rows[1:])

    def _create(self, section: str, symbol: bool = True) -> None:
        if section not in self.created:
            self.created[section] = len(self.created)
            if symbol:
                self.table.section(section)

    def _reserved_symbols(self) -> None:
        at, war = self.target.reserved_smem_offset0, self.target.reserved_smem_war
        if at < 0:
            return
        self.table.add(Symbol(".nv.reservedSmem.offset0", WEAK, OBJECT, "", at, 4))
        if war or self.partition:
            self.table.section(RESERVED)
        self.table.add(Symbol("__nv_reservedSMEM_offset_0_alias", WEAK, NOTYPE, RESERVED, at, 0, OTHER_RESERVED_SHARED))
        if not war:
            self._partition_symbol()

    def _variable_symbols(self) -> None:
        pending = self.target.reserved_smem_war  # a weak symbol of its own: after those of the program
        for v in self.variables.order:
            if pending and BINDING[v.linkage] == LOCAL:
                self._war_symbol()
                pending = 0
            section, at = self.variables.place[v.name]
            self._create(section)
            other = OTHER_MANAGED if "managed" in v.attrs else 0
            self.table.add(Symbol(v.name, BINDING[v.linkage], OBJECT, section, at, v.size, other))
            if section != CONST:
                self._create(SLOTS)
        if pending:
            self._war_symbol()
        used = {name for k in self.kernels for _, _, name in header_words(k.unit, not self.target.exec_rel)}
        for v in sorted(header_variables(self.module), key=lambda v: v.name not in used):
            self.table.add(header_symbol(v))

    def _war_symbol(self) -> None:
        at, war = self.target.reserved_smem_offset0, self.target.reserved_smem_war
        self.table.add(Symbol("__nv_reservedSMEM_gb10b_war_var", WEAK, OBJECT, RESERVED, at, war))
        self._partition_symbol()

    def _partition_symbol(self) -> None:
        if self.partition:
            at = self.target.reserved_smem_offset0 + self.target.reserved_smem_war
            self.table.add(Symbol("__nv_reservedSMEM_tcgen05_partition", WEAK, OBJECT, RESERVED, at, self.partition))

    def _kernel_symbols(self, k: Kernel) -> None:
        table, t = self.table, self.target
        if (k.shared or k.dynamic or self.partition) and t.compat and not self.capped:
            # Once a module. sm_90: ptxas leaves an anonymous symbol where sm_100+ has the cap; kept so that symbol
            # indexes agree.
            self.capped = True
            if has(t.sm, "shared-cap-named"):
                table.add(Symbol(".nv.reservedSmem.cap", WEAK, OBJECT, "", 0x400, 4))
            else:
                table.add(Symbol("", LOCAL, NOTYPE, other=OTHER_HIDDEN))
        if self._bank2(k):
            table.section(f".nv.constant2.{k.name}")
        text = f".text.{k.name}"
        visible = set(attrs.names(k.unit, "visible"))
        for f in k.functions[1:]:
            bind = WEAK if f.code.kind == "helper" else GLOBAL if f.code.name in visible else LOCAL
            table.add(Symbol(f.symbol, bind, FUNC, text, f.begin, f.size))
        for symbol in header_symbols(k, text):
            if symbol.name not in self.named:
                self.named.add(symbol.name)
                table.add(symbol)
        if t.exec_rel:
            table.section(f".nv.constant0.{k.name}")

    # -- sections
    # ------------------------------------------------------------------------------------------------------------------

    def sections(self) -> list[Section]:
        """All sections after the three tables, in file order."""
        return [
            Section(FRAME, SHT_PROGBITS, data=self.frames.data),
            *self._debug(),
            *self._notes(),
            *self._infos(),
            *self._relocations(),
            *self._constants(),
            *self._texts(),
            *self._globals(),
            *self._own_constants(False, not self.target.exec_rel),
        ]

    def _debug(self) -> list[Section]:
        """Sections of -lineinfo."""
        if self.lines is None:
            return self._carried()
        out = [Section(".debug_line", SHT_PROGBITS, data=self.lines.source.data)]
        if self.lines.strings:
            out.append(Section(".debug_str", SHT_PROGBITS, data=self.lines.strings))
        if self.lines.sass is not None:
            out.append(Section(".nv_debug_line_sass", SHT_PROGBITS, data=self.lines.sass.data))
            out.append(Section(".nv_debug_ptx_txt", SHT_PROGBITS, data=self.lines.text))
        return out + self._carried()

    def _carried(self) -> list[Section]:
        """Sections of -g."""
        return [Section(s.name, SHT_PROGBITS, data=bytes(s.data)) for s in self.dwarf]

    def _notes(self) -> list[Section]:
        compat = self.target.compat
        return [
            Section(TKINFO, image.SHT_NOTE, 0x02000000, notes.tkinfo(self.header), align=4),
            Section(
                CUINFO, image.SHT_NOTE, 0x01000040 if compat else 0x01000000, notes.cuinfo(self.header), link=TKINFO,
                    info=COMPAT if compat else 0, align=4
            ),
        ]  # fmt: skip

    def _infos(self) -> list[Section]:
        t, index = self.target, self.table.index
        samplers = [v.name for v in header_variables(self.module) if "samplerref" in v.attrs]
        out = [
            Section(
                ".nv.info",
                image.SHT_INFO,
                0,
                info.module_info(self.kernels[::-1], t, index, samplers, info.errors_at_exit(self.header.options)),
                link=".symtab",
                align=4,
            )
        ]
        if t.compat:
            isa = max((attrs.number(k.unit, "isa_class", 1, 4, 1) for k in self.kernels), default=1)
            fast = min((attrs.number(k.unit, "fast_finalize", 0, 0xFF) for k in self.kernels), default=0)
            tensormap = 0
            for k in self.kernels:
                tensormap |= attrs.number(k.unit, "tensormap", 0, 3)
            byte_products = any(attrs.number(k.unit, "byte_products", 0, 1) for k in self.kernels)
            data = info.compat(t, isa, fast, tensormap, byte_products)
            out.append(Section(COMPAT, image.SHT_COMPAT, 0, data, align=4))
        for k in self.kernels:
            body = info.kernel_info(k, t, index)
            out.append(
                Section(
                    f".nv.info.{k.name}", image.SHT_INFO, 0x40, body, link=".symtab", info=f".text.{k.name}", align=4
                )
            )
        graph = struct.pack("<Ii", 0, -1)
        for k in self.kernels[::-1]:
            for name in k.externs[::-1]:
                graph += struct.pack("<II", index[k.name], index[name])
        graph += struct.pack("<IiIiIi", 0, -2, 0, -3, 0, -4)
        out.append(Section(CALLGRAPH, image.SHT_CALLGRAPH, 0, graph, link=".symtab", align=4, entsize=8))
        if t.exec_rel:
            out.append(Section(REL_ACTION, image.SHT_REL_ACTION, 0, REL_ACTION_BYTES, align=8, entsize=8))
        return out

    def _relocations(self) -> list[Section]:
        out: list[Section] = []
        if self.lines is not None:
            for name, lines in ((".debug_line", self.lines.source), (".nv_debug_line_sass", self.lines.sass)):
                if lines is not None:
                    rows: Rows = [(at, R_CUDA_64, kernel, 0) for at, kernel in lines.relocs]
                    out += self._relocation(name, rows[::-1] if self.target.exec_rel else rows)
        for s in self.dwarf:
            out += self._relocation(s.name, s.relocs[::-1])
        if not self.target.exec_rel:
            # ptxas leaves the emptied relocation section of a text whose calls or shared addresses it resolved.
            for k in self.kernels:
                if (k.calls or k.shared or k.dynamic) and not entry_sizes(k):
                    out += self._relocation(f".text.{k.name}", [], keep_empty=True)
                if self._bank2(k) and k.marks("bank2"):
                    out += self._relocation(f".nv.constant2.{k.name}", [], keep_empty=True)
        for k in self.kernels:
            out += self._relocation(f".text.{k.name}", entry_sizes(k)[::-1])
            words = header_words(k.unit, not self.target.exec_rel)[::-1]
            for _, _, name in words:
                if name not in self.table.index:
                    raise CompileError(f"unit '{k.name}' uses '{name}', which is not in the module")
            out += self._relocation(f".nv.constant0.{k.name}", [(at, kind, name, 0) for at, kind, name in words])
        slots: Rows = [(at, R_CUDA_64, name, 0) for name, at in self.variables.slot.items()]
        addresses = self._relocation(SLOTS, slots[::-1])
        frames = self._relocation(
            FRAME, [(at, R_CUDA_64, name, addend) for at, name, addend in self.frames.relocs], in_place=True
        )
        if not self.late_slots:
            out += addresses
        out += self._relocation(CONST, self._pointers(CONST))
        out += self._relocation(GLOBAL_INIT, self._pointers(GLOBAL_INIT))
        out += frames
        return out + addresses if self.late_slots else out

    def _pointers(self, section: str) -> Rows:
        rows: Rows = []
        for v in self.variables.order:
            if self.variables.place[v.name][0] == section:
                rows += self._pointers_of(v)
        return sorted(rows, reverse=True)

    def _pointers_of(self, v: Var) -> Rows:
        base = self.variables.place[v.name][1]
        rows: Rows = []
        for at, name, addend, form in v.relocs:
            if is_offset(self.variables, name, form):
                continue
            if name not in self.table.index:
                raise CompileError(f"variable '{v.name}' holds the address of '{name}', which is not in the module")
            if not -(1 << 63) <= addend < 1 << 63:
                raise CompileError(f"variable '{v.name}': illegal address offset {addend}")
            rows.append((base + at, address_kind(v, name, form, R_CUDA_G64, R_CUDA_G8_0), name, addend))
        return rows

    def _relocation(self, section: str, rows: Rows, keep_empty: bool = False, in_place: bool = False) -> list[Section]:
        """Relocation sections of ``section``. Before sm_90 zero addends, and addends that the data holds, go to
        ``.rel``."""
        index = self.table.index
        rela = [r for r in rows if not self.target.exec_rel or (r[3] and not in_place)]
        rel = [r for r in rows if self.target.exec_rel and (in_place or not r[3])]
        if any(section == s.name for s in self.dwarf):
            from stages.elf.dwarf import split_relocations

            rel, rela = split_relocations(section, rows, self.target.exec_rel)
        out: list[Section] = []
        if rela or keep_empty:
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

    def _constants(self) -> list[Section]:
        """Banks that precede the code, in order of creation: bank 4 comes late if only a later kernel needs it."""
        place = {s.name: i for i, s in enumerate(self.table.low)}
        return sorted(
            self._shared_constants() + self._own_constants(True, self.target.exec_rel), key=lambda s: place[s.name]
        )

    def _shared_constants(self) -> list[Section]:
        out: list[Section] = []
        v = self.variables
        for name in self.created:
            if name == SLOTS:
                out.append(Section(SLOTS, SHT_PROGBITS, 2, bytes(8 * len(v.slot)), align=8))
            elif name == CONST:
                out.append(Section(CONST, SHT_PROGBITS, 2, v.const, align=v.const_align))
        return out

    def _bank2(self, k: Kernel) -> bytes:
        """The kernel's own constants: words of attrs["bank2"], with addresses of blocks where marks say so."""
        given = attrs.numbers(k.unit, "bank2", -1, 0xFFFFFFFF)
        if given is None:
            return b""
        row = list(given)
        names, places = (
            attrs.names(k.unit, "function_table"),
            attrs.numbers(k.unit, "function_places", -1, 0xFFFFFFFF) or (),
        )
        if len(names) != len(places):
            raise attrs.bad(k.unit, "function_places")
        for name, slot in zip(names, places, strict=True):
            begin = k.base(name)
            if slot % 4 or slot >= 4 * len(row) or begin is None:
                raise attrs.bad(k.unit, "function_places")
            row[slot // 4] = begin
        for at, slot in k.marks("bank2"):
            if slot % 4 or not 0 <= slot < 4 * len(row):
                raise CompileError(f"unit '{k.name}': address slot {slot:#x} is outside bank 2")
            row[slot // 4] = at
        return struct.pack(f"<{len(row)}I", *row)

    def _own_constants(self, bank2: bool, params: bool) -> list[Section]:
        """Banks 2 and 0 of each kernel: before the code, but bank 0 after all memory from sm_90 on."""
        out: list[Section] = []
        for k in self.kernels:
            text = f".text.{k.name}"
            data = self._bank2(k) if bank2 else b""
            if data:
                out.append(Section(f".nv.constant2.{k.name}", SHT_PROGBITS, 0x42, data, info=text, align=4))
            if params:
                size = self.target.param_base(k.param_size) + k.param_size
                size = max([size, *[at + 4 for at, _, _ in header_words(k.unit, not self.target.exec_rel)]])
                out.append(Section(f".nv.constant0.{k.name}", SHT_PROGBITS, 0x42, bytes(size), info=text, align=4))
        return out

    def _texts(self) -> list[Section]:
        out = []
        for k in self.kernels:
            symbol = self.table.index[k.name]
            value = symbol | k.regcount << 24 if self.target.exec_rel else symbol
            if self.target.exec_rel and symbol >= 1 << 24:
                raise CompileError("too many symbols for one cubin")
            out.append(Section(f".text.{k.name}", SHT_PROGBITS, 6, k.text, link=".symtab", info=value, align=128))
        return out

    def _globals(self) -> list[Section]:
        v, t = self.variables, self.target
        out: list[Section] = []
        if v.init:
            out.append(Section(GLOBAL_INIT, SHT_PROGBITS, 3, v.init, align=v.init_align))
        memory: list[Section] = []
        dynamic = [
            max(16, v.align) for v in self.module.vars if v.space == "shared" and v.linkage == "extern"
        ]  # for every kernel, used or not (measured)
        for name in self.created:
            if name == GLOBAL_ZERO:
                memory.append(Section(name, SHT_NOBITS, 3, size=v.zero_size, align=v.zero_align))
        for k in self.kernels:
            name = f".nv.shared.{k.name}"
            if name in self.created:
                size = t.smem_base + k.static_shared
                memory.append(
                    Section(
                        name,
                        SHT_NOBITS,
                        0x43,
                        size=size,
                        info=f".text.{k.name}",
                        align=max(k.shared_align, *dynamic, 1),
                    )
                )
        memory.sort(key=lambda s: self.created[s.name])
        if t.reserved_smem_offset0 >= 0:
            first = f".nv.shared.{self.kernels[0].name}" if self.kernels else ""
            at = 1 if memory and memory[0].name == first else 0
            size = t.reserved_smem_offset0 + self.partition + t.reserved_smem_war
            memory.insert(at, Section(RESERVED, SHT_NOBITS, 3, size=size, align=16 if t.reserved_smem_war else 1))
        return out + memory

    # -- the file
    # ------------------------------------------------------------------------------------------------------------------

    def segments(self, sections: list[Section], phoff: int) -> list[bytes]:
        """Program headers; two styles (measured)."""
        code = [s for s in sections if s.name.startswith(".text.")]
        zero = [s for s in sections if s.type == SHT_NOBITS]
        init = [s for s in sections if s.name == GLOBAL_INIT]
        banks = [s for s in sections if s.name.startswith(".nv.constant")]
        first = [s for s in banks if not s.name.startswith(".nv.constant0.")]
        params = [s for s in banks if s.name.startswith(".nv.constant0.")]
        old = self.target.exec_rel
        loads: list[tuple[int, list[Section]]]
        if old:
            loads = [(5, banks + code), (6, init + zero)]
        else:
            loads = [(4, first), (5, code), (6, init + zero), (4, params)]
        loads = [(flags, group) for flags, group in loads if group]
        size = image.PHDR_SIZE * (2 + len(loads))
        own = image.segment(1, 5 if old else 4, phoff, size, size)
        out = [image.segment(6, 5 if old else 4, phoff, size, size)]
        if not old:
            out.append(own)
        for flags, group in loads:
            out.append(self._load(flags, group))
        if old:
            out.append(own)
        return out

    def _load(self, flags: int, group: list[Section]) -> bytes:
        begin, last = group[0].offset, group[-1]
        filesz = last.offset + last.in_file - begin
        return image.segment(1, flags, begin, filesz, filesz + sum(s.size for s in group if s.type == SHT_NOBITS))

    def write(self) -> bytes:
        """The whole file."""
        self.symbols()
        laid = lay_out(self.table, Strings(), self.sections())
        phoff = laid.shoff + image.SHDR_SIZE * (len(laid.sections) + 1)
        segments = self.segments(laid.sections, phoff)
        flags = laid.index[CUINFO] << 24 | self.target.elf_sm << 8 | SASS_ONLY
        header = image.file_header(2, flags, phoff, len(segments), laid.shoff, len(laid.sections) + 1)
        return bytes(laid.pack(header) + b"".join(segments))


def link(header: Header, module: Module, units: list[Unit], notes: list[str] | None = None) -> bytes:
    """The cubin of a module whose units are at level ``encoded``. ``notes``: filled with what the user should know.
    Raises :class:`CompileError` for anything it can't or won't link."""
    if header.options.get("compile-only"):
        from stages.elf.relocatable import link_object

        return link_object(header, module, units)
    linker = Linker(header, module, units)
    if linker.variables.crowded and notes is not None:
        notes.append(
            "Disabling default position-independent-code(pic) compilation mode as program requires more "
            "resources than allowed."
        )
    return linker.write()
