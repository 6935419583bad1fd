"""Compare a cubin of ours with ptxas's, section by section.

Allowed differences, all of them:

1. ``.strtab`` and ``.shstrtab``: ptxas also keeps the names of sections and symbols that it dropped again. Names are
   compared where they are used.
2. ``.note.nv.tkinfo``: names the tool that made the file.
3. ``e_flags``, low byte on sm_100+: 0x04 (no second copy of the code) against 0x02, and all sections of that copy.
4. ``.debug_frame``: ptxas's frame programs have extra location steps. Compared: number of entries, code range of each,
   the rules by register, the relocations. Its size moves what follows, so file offsets (and a first load segment that
   spans alignment gaps) are not compared.
5. Line programs (``.debug_line``, ``.nv_debug_line_sass``): other opcodes for the same rows, and no file times;
   test_lines.py compares rows.
6. ``CRS_STACK_SIZE`` of 0: ours follows the code (calls, BSSY); ptxas also writes it for some loops whose convergence
   barriers it removed, and not for a kernel whose only call does not return.
"""

from __future__ import annotations

import struct

from tests.elf.reader import Cubin, Section, info_records

_PROGRAMS = (".debug_frame", ".debug_line", ".nv_debug_line_sass")
OPAQUE = (
    ".strtab",
    ".shstrtab",
    ".note.nv.tkinfo",
    ".symtab",
    *(p + s for p in ("", ".rel", ".rela") for s in _PROGRAMS),
)
CRS_STACK_SIZE = 0x1E


def is_second_copy(name: str) -> bool:
    return name.startswith((".nv.capmerc.", ".nv.merc."))


def _records(s: Section) -> list[tuple[int, int, bytes]]:
    return [r for r in info_records(s.data) if not (r[1] == CRS_STACK_SIZE and not any(r[2]))]


def _facts(c: Cubin, s: Section) -> dict[str, object]:
    out: dict[str, object] = {f: getattr(s, f) for f in ("type", "flags", "link", "info", "align", "entsize")}
    if s.name not in OPAQUE and not s.name.startswith(".nv.info."):
        out["size"] = s.size
    return out


def differences(theirs: Cubin, ours: Cubin) -> list[str]:
    """Every difference that is not in the list above, as text."""
    out: list[str] = []

    def check(what: str, a: object, b: object) -> None:
        if a != b:
            out.append(f"{what}: {a!r} != {b!r}"[:400])

    kept = [s for s in theirs.sections if not is_second_copy(s.name)]
    check("sections", [s.name for s in kept], ours.names())
    for i in (0, 1, 2, 3, 4, 8, 9, 10, 11, 13):
        check(f"header field {i}", theirs.header[i], ours.header[i])
    check("e_flags", theirs.header[7] & ~0xFF, ours.header[7] & ~0xFF)
    if ours.header[7] & 0xFF != 4:
        out.append("e_flags low byte")
    for s in kept:
        if s.name not in ours.names():
            continue
        t = ours.section(s.name)
        check(s.name, _facts(theirs, s), _facts(ours, t))
        if s.name.startswith(".nv.info."):
            check(s.name, _records(s), _records(t))
        elif s.name not in OPAQUE:
            check(s.name, s.data.hex(), t.data.hex())
    rows = [[(y.name, y.bind, y.type, y.other, y.shndx, y.value, y.size) for y in c.symbols] for c in (theirs, ours)]
    for a, b in zip(*rows, strict=False):
        check("symbol", a, b)
    check("symbols", len(rows[0]), len(rows[1]))
    check("frames", _frames(theirs), _frames(ours))
    for name in (".rel.debug_frame", ".rela.debug_frame"):
        if name in theirs.names() and name in ours.names():
            check(name, _frame_relocs(theirs, name), _frame_relocs(ours, name))
    check("segments", _segments(theirs), _segments(ours))
    return out


def _segments(c: Cubin) -> list[tuple[int, ...]]:
    """Type, flags, alignment, memory beyond the file's; sizes only where no alignment gap can be inside."""
    out = []
    for type_, flags, offset, vaddr, paddr, filesz, memsz, align in c.segments:
        own = [s for s in c.sections if s.index and not is_second_copy(s.name)]
        inside = [s for s in own if offset <= s.offset < offset + max(filesz, 1) and s.type != 8 and s.size]
        out.append((type_, flags, vaddr, paddr, align, memsz - filesz, filesz if len(inside) < 2 else -1, len(inside)))
    return out


def frame_entries(c: Cubin) -> list[tuple[int, bytes]]:
    """(offset, bytes after the length) of each entry of ``.debug_frame``."""
    data = c.section(".debug_frame").data
    out = []
    at = 0
    while at < len(data):
        mark, length = struct.unpack_from("<IQ", data, at)
        assert mark == 0xFFFFFFFF
        out.append((at, data[at + 12 : at + 12 + length]))
        at += 12 + length
    return out


def _frames(c: Cubin) -> list[object]:
    """CIEs without the number of the return register, FDEs as (CIE ordinal, begin, length)."""
    entries = frame_entries(c)
    order = {at: i for i, (at, _) in enumerate(entries)}
    out: list[object] = []
    for _, body in entries:
        cie, begin, length = struct.unpack_from("<3Q", body.ljust(24, b"\0"))
        if cie == 0xFFFFFFFFFFFFFFFF:
            out.append(("cie", body[8:12].hex(), body[12] != 0xFF))
        else:
            out.append(("fde", order[cie], begin, length))
    return out


def _frame_relocs(c: Cubin, name: str) -> list[tuple[str, str, int]]:
    """(entry and field, symbol, addend) of each relocation, since offsets move with the size of the programs."""
    entries = [at for at, _ in frame_entries(c)]
    size = 16 if name.startswith(".rel.") else 24
    data = c.section(name).data
    out = []
    for i in range(0, len(data), size):
        at, kind, sym = struct.unpack_from("<QII", data, i)
        addend = struct.unpack_from("<q", data, i + 16)[0] if size == 24 else 0
        entry = max(e for e in entries if e <= at)
        where = f"{entries.index(entry)} {'pc' if at - entry == 20 else 'rule'} type {kind}"
        out.append((where, c.symbols[sym].name, addend))
    return out
