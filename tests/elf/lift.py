"""Take a ptxas cubin apart into the records that `elf` reads, so that linking them again can be compared with the
original.

Fields that `elf` resolves are blanked first (branch fields of CALL.REL and RET.REL, offsets of bank 3 and 4 operands of
the load-constant instructions) and turned into relocations: the original bytes come back only if `elf` resolves them
right.
"""

from __future__ import annotations

import re
import struct

from ir_format.model import Code, Header, Module, Param, Reloc, Unit, Var
from tests.elf.reader import Cubin, Symbol, info_records

NOP_OP = 0x118
SPACES = {1: "local", 2: "shared", 3: "const", 4: "global", 5: "generic"}


def words(data: bytes) -> list[int]:
    return [int.from_bytes(data[i : i + 16], "little") for i in range(0, len(data), 16)]


def records_of(cubin: Cubin, kernel: str) -> dict[int, list[bytes]]:
    out: dict[int, list[bytes]] = {}
    for _, code, payload in info_records(cubin.section(f".nv.info.{kernel}").data):
        out.setdefault(code, []).append(payload)
    return out


def module_records(cubin: Cubin, code: int) -> dict[str, int]:
    """REGCOUNT, FRAME_SIZE... by symbol name."""
    out = {}
    for _, c, payload in info_records(cubin.section(".nv.info").data):
        if c == code:
            sym, value = struct.unpack("<II", payload)
            out[cubin.symbols[sym].name] = value
    return out


def u32s(payload: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(payload) // 4}I", payload))


def _params(records: dict[int, list[bytes]], sm: int) -> list[Param]:
    rows = []
    for payload in records.get(0x17, []):
        _, place, w = struct.unpack("<III", payload)
        code = w >> 8 & 15
        space = "const" if code == 4 and sm >= 90 else SPACES.get(code, "")
        rows.append((place & 0xFFFF, Param("p", place >> 16, w >> 18, 1, space, 1 << (w & 0xFF) if w & 0xFF else 0)))
    for payload in records.get(0x45, []):
        _, place, size = struct.unpack("<III", payload)
        rows.append((place & 0xFFFF, Param("p", place >> 16, size, 1)))
    return [p for _, p in sorted(rows)]


def _branch_target(word: int, at: int, sm: int) -> int:
    field = word >> 34 & (1 << 48) - 1
    bits = 48
    if sm >= 90:
        field = field << 8 | word >> 16 & 0xFF
        bits = 56
    if field >> bits - 1:
        field -= 1 << bits
    return at + 16 + 4 * field


def _blank_branch(word: int, sm: int) -> int:
    word &= ~(((1 << 48) - 1) << 34)
    return word & ~(0xFF << 16) if sm >= 90 else word


def _load_constant(word: int, sm: int) -> tuple[int, int, int, int] | None:
    """(bank, byte offset, shift, bits) of LDC, ULDC and LDCU with a constant bank and no register index of UR kind."""
    op = word & 0x1FF
    if op == 0x1AC and sm >= 100:
        shift, bits = 37, 17
    elif op in (0x182, 0x0B9):
        shift, bits = 38, 16
    else:
        return None
    return word >> 54 & 31, word >> shift & (1 << bits) - 1, shift, bits


def lift(cubin: Cubin, sm_name: str, ptx: str) -> tuple[Header, Module, list[Unit]]:
    """Header, module and units whose link should give ``cubin``. ``ptx``: its source, for the order of declarations."""
    sm = int(re.sub(r"\D", "", sm_name))
    header = Header("encoded", sm_name)
    found = re.search(r"\.target\s+(\w+)", ptx)
    assert found
    header.ptx_target = found[1]
    module = Module()
    by_name = {s.name: s for s in cubin.symbols if s.name and s.type != 3}
    module.vars = _variables(cubin, ptx, by_name)
    module.externs = [s.name for s in cubin.symbols if s.type == 2 and s.shndx == 0]
    module.units = re.findall(r"\.entry\s+(\w+)", ptx)
    slots = {
        struct.unpack_from("<Q", r)[0]: cubin.symbols[struct.unpack_from("<I", r, 12)[0]].name
        for r in _slot_rows(cubin)
    }
    consts = sorted(
        (v.value, v.value + v.size, v.name)
        for v in cubin.symbols
        if v.type == 1 and _section(cubin, v) == ".nv.constant3"
    )
    units = [_unit(cubin, sm, name, slots, consts) for name in module.units]
    _dynamic_shared(ptx, units, module)
    return header, module, units


def _dynamic_shared(ptx: str, units: list[Unit], module: Module) -> None:
    """Which kernels use the module's unsized shared array, and the linkage of kernels: both from the PTX text."""
    found = re.search(r"\.extern\s+\.shared\s+\.align\s+(\d+)\s+\.b8\s+(\w+)\[\]", ptx)
    parts = re.split(r"\.entry\s+(\w+)", ptx)
    bodies = dict(zip(parts[1::2], parts[2::2], strict=True))
    before = dict(zip(parts[1::2], parts[0::2], strict=False))
    for u in units:
        word = before[u.name].split()[-1] if before[u.name].split() else ""
        u.linkage = word[1:] if word in (".visible", ".weak") else "static"
        if found and re.search(rf"\b{found[2]}\b", bodies[u.name]):
            u.attrs["dynamic_shared_align"] = int(found[1])
    if found:
        module.vars.append(Var(found[2], "shared", 0, int(found[1]), linkage="extern"))


def _slot_rows(cubin: Cubin) -> list[bytes]:
    out = []
    for name, size in ((".rel.nv.constant4", 16), (".rela.nv.constant4", 24)):
        if name in cubin.names():
            data = cubin.section(name).data
            out += [data[i : i + size] for i in range(0, len(data), size)]
    return out


def _section(cubin: Cubin, s: Symbol) -> str:
    return cubin.sections[s.shndx].name if 0 < s.shndx < len(cubin.sections) else ""


def _variables(cubin: Cubin, ptx: str, by_name: dict[str, Symbol]) -> list[Var]:
    pointers: dict[str, list[tuple[int, str, int]]] = {}
    for target in (".nv.global.init", ".nv.constant3"):
        for prefix, size in ((".rel", 16), (".rela", 24)):
            if prefix + target in cubin.names():
                data = cubin.section(prefix + target).data
                for i in range(0, len(data), size):
                    at, _, sym = struct.unpack_from("<QII", data, i)
                    addend = struct.unpack_from("<q", data, i + 16)[0] if size == 24 else 0
                    pointers.setdefault(target, []).append((at, cubin.symbols[sym].name, addend))
    out = []
    for linkage, space, name in re.findall(
        r"^(?:\.(visible|weak)\s+)?\.(global|const)\b[^;=\[]*?(\w+)\s*(?:\[|=|;)", ptx, re.M
    ):
        s = by_name[name]
        section = cubin.sections[s.shndx]
        align = int(m[1]) if (m := re.search(r"\.align\s+(\d+)[^;=]*\b" + name + r"\b", ptx)) else 1
        init = section.data[s.value : s.value + s.size] if section.type != 8 else b""
        if space == "const" and not any(init):
            init = b""
        rows = tuple(
            (at - s.value, n, a, 1) for at, n, a in pointers.get(section.name, []) if s.value <= at < s.value + s.size
        )
        managed = re.search(r"\.managed\b[^;]*\b" + name + r"\b", ptx) is not None
        out.append(Var(name, space, s.size, align, init, rows, linkage or "static", ("managed",) if managed else ()))
    return out


def _unit(cubin: Cubin, sm: int, name: str, slots: dict[int, str], consts: list[tuple[int, int, str]]) -> Unit:
    unit = Unit(name)
    records = records_of(cubin, name)
    unit.params = _params(records, sm)
    text = cubin.section(f".text.{name}")
    end = len(text.data)
    ws = words(text.data)
    while ws[end // 16 - 1] & 0x1FF == NOP_OP:
        end -= 16
    end -= 16  # the final branch
    symbols = sorted(
        (s for s in cubin.symbols if s.type == 2 and s.shndx == text.index), key=lambda s: (s.value, -s.size)
    )
    bounds = [*(s.value for s in symbols[1:]), end]
    regs = module_records(cubin, 0x2F)[name]
    frames = module_records(cubin, 0x11)
    marks = _marks(records)
    table = f".nv.constant2.{name}"
    if table in cubin.names():
        targets = {at for kind, _, at in marks if kind == "brx_target"}
        marks += [("bank2", w, 4 * i) for i, w in enumerate(u32s(cubin.section(table).data)) if w in targets]
    for s, stop in zip(symbols, bounds, strict=True):
        kind = "entry" if s.name == name else "helper" if s.name.startswith("$__internal") else "func"
        own = tuple(
            (k, at - s.value, v - s.value if k == "brx_target" else v) for k, at, v in marks if s.value <= at < stop
        )
        data, relocs = _blank(ws[s.value // 16 : stop // 16], s.value, sm, symbols, name, slots, consts)
        unit.code.append(
            Code(
                _plain(s.name, name),
                kind,
                data,
                relocs,
                (),
                own,
                regs - 2 if kind == "entry" else 0,
                frames.get(s.name, 0),
            )
        )
        if kind == "func" and s.bind == 1:
            unit.attrs["visible"] = (*unit.attrs.get("visible", ()), _plain(s.name, name))  # type: ignore[misc]
    unit.attrs["min_stack"] = module_records(cubin, 0x12)[name]
    _attributes(cubin, unit, records, sm)
    if 0x0F in records:
        unit.attrs["externs"] = tuple(cubin.symbols[i].name for i in u32s(records[0x0F][0]))
    return unit


def _attributes(cubin: Cubin, unit: Unit, records: dict[int, list[bytes]], sm: int) -> None:
    if ".nv.compat" in cubin.names():
        for _, code, payload in info_records(cubin.section(".nv.compat").data):
            if code == 2:
                unit.attrs["isa_class"] = payload[0]
            elif code == 3:
                unit.attrs["tensormap"] = payload[0]
            elif code == 0x0B:
                unit.attrs["fast_finalize"] = payload[0]
    if 0x4C in records:
        unit.attrs["barriers"] = records[0x4C][0][0]
    if 0x05 in records:
        unit.attrs["maxntid"] = tuple(u32s(records[0x05][0]))
    if 0x10 in records:
        unit.attrs["reqntid"] = tuple(u32s(records[0x10][0]))
    if 0x3D in records:
        unit.attrs["reqnctapercluster"] = tuple(u32s(records[0x3D][0]))
    if 0x3F in records:
        unit.attrs["maxclusterrank"] = u32s(records[0x3F][0])[0]
    if 0x38 in records:
        unit.attrs["mbarriers"] = struct.unpack("<H", records[0x38][0])[0]
    for code, key in (
        (0x3E, "explicitcluster"),
        (0x5B, "blocksareclusters"),
        (0x2B, "wmma_used"),
        (0x54, "reg_reconfig"),
    ):
        if code in records:
            unit.attrs[key] = 1
    if 0x04 in records:
        unit.attrs["ctaidz_used"] = 1
    maxreg = struct.unpack("<H", records[0x1B][0])[0]
    if maxreg != 0xFF:
        unit.attrs["maxregcount"] = maxreg
    if f".nv.shared.{unit.name}" in cubin.names():
        s = cubin.section(f".nv.shared.{unit.name}")
        unit.attrs["shared"] = s.size - (0x400 if sm >= 90 else 0)
        unit.attrs["shared_align"] = s.align
    if f".nv.constant2.{unit.name}" in cubin.names():
        unit.attrs["bank2"] = tuple(u32s(cubin.section(f".nv.constant2.{unit.name}").data))


def _marks(records: dict[int, list[bytes]]) -> list[tuple[str, int, int]]:
    out = [("int_warp_wide", at, 0) for p in records.get(0x31, []) for at in u32s(p)]
    masks = [v for p in records.get(0x29, []) for v in u32s(p)]
    offsets = [at for p in records.get(0x28, []) for at in u32s(p)]
    out += [("coop", at, -1 if m == 0xFFFFFFFF else m & 0xFF) for at, m in zip(offsets, masks, strict=True)]
    out += [("syscall", at, 0) for p in records.get(0x46, []) for at in u32s(p)]
    for p in records.get(0x39, []):
        for i in range(0, len(p), 16):
            at, base, offset, op, _, reg, _ = struct.unpack_from("<3I4B", p, i)
            looped = op == 0 and records[0x38][0] == b"\xff\xff"
            out.append(("mbarrier", at, op | reg << 8 | base << 16 | offset << 24 | looped << 56))
    for p in records.get(0x40, []):
        for at, what, value in struct.iter_unpack("<3I", p):
            out.append(("operand", at, what & 0xFFFF | (value if what >> 8 & 0xFF == 5 else what >> 16) << 16))
    for code, kind in ((0x2E, "half"), (0x44, "unused")):
        out += [(kind, at, value) for p in records.get(code, []) for at, value in struct.iter_unpack("<2I", p)]
    for p in records.get(0x34, []):
        row = u32s(p)
        while row:
            at, _, n = row[:3]
            out += [("brx_target", at, to) for to in row[3 : 3 + n]]
            row = row[3 + n :]
    return out


def _plain(symbol: str, kernel: str) -> str:
    if symbol.startswith("$__internal"):
        return symbol.split("$", 2)[2]
    return symbol.removeprefix(f"${kernel}$")


def _blank(
    ws: list[int],
    base: int,
    sm: int,
    symbols: list[Symbol],
    kernel: str,
    slots: dict[int, str],
    consts: list[tuple[int, int, str]],
) -> tuple[bytes, tuple[Reloc, ...]]:
    starts = {s.value: _plain(s.name, kernel) for s in reversed(symbols)}
    starts[0] = kernel
    relocs = []
    out = bytearray()
    for i, w in enumerate(ws):
        at = 16 * i
        if w & 0x1FF in (0x144, 0x150):
            target = _branch_target(w, base + at, sm)
            if target in starts:
                w = _blank_branch(w, sm)
                relocs.append(Reloc(at, "call", starts[target]))
        load = _load_constant(w, sm)
        if load is not None:
            bank, offset, shift, bits = load
            blank = w & ~(((1 << bits) - 1) << shift)
            if bank == 4 and offset & ~7 in slots:
                w = blank | (offset & 4) << shift
                relocs.append(Reloc(at, "bank4", slots[offset & ~7]))
            for lo, hi, name in consts:
                if bank == 3 and lo <= offset < hi:
                    w = blank
                    relocs.append(Reloc(at, "bank3", name, offset - lo))
        out += w.to_bytes(16, "little")
    return bytes(out), tuple(relocs)
