"""Compare every record, section and symbol of two compilers' cubins of one PTX file, whose code differs.

    python -m tests.elf.records [PTX_OR_FOLDER...]     # each for its folder's SM or its own; default: all of tests/

Records that do not depend on the code must be equal. Records of places or counts of the code are checked against the
code on each side by `stages/check/records.py`; here the program's own instructions are counted by kind: each compiler
lists all of them. The complete list of differences with a reason:

* INT_WARP_WIDE_INSTR_OFFSETS: instructions that each compiler adds (election of a thread, atomics reduced over a warp).
* CRS_STACK_SIZE: follows the code of each (CALL, BSSY); ptxas also writes it if a later pass removed them.
* UNUSED_LOAD_BYTE_OFFSET: which loads stay wide although not all of their bytes are needed.
* INDIRECT_BRANCH_TARGETS: which switches become tables.
* ANNOTATIONS: which instructions spill and refill registers.
* COOP_GROUP_INSTR_OFFSETS: a kind of instruction may be the program's for one compiler and added by the other. Their
number depends on the code (loops unrolled, ptxas's second copy after WARPSYNC.COLLECTIVE or in a helper, shuffles of a
uniform value). The same is true of MBARRIER_INSTR_OFFSETS, by operation.
* `.nv.compat`'s class of instruction sets: follows the instructions of each.
* A symbol of sm_90 that ptxas gives no name, or that of the shared memory's cap.
* REGCOUNT of ptxas's cubin may be one above what its code needs: it counts a register that no instruction uses
(arrivals at mbarriers by threads whose addresses differ). Ours must be exact.
* `.nv.constant2` and `.rela.text`: tables of either compiler; symbols of helpers and of copies of functions.
"""

from __future__ import annotations

import re
import struct
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ir_format import isa
from ir_format.isa.machine import Refusal
from stages.check.command import own_target
from stages.check.record_facts import Info
from stages.check.records import check_records
from tests.elf.compare import is_second_copy
from tests.elf.reader import Cubin, Section, info_records, read

#: Records of a kernel that are compared by rule, not by bytes.
PLACES = {
    Info.EXIT_INSTR_OFFSETS, Info.COOP_GROUP_INSTR_OFFSETS, Info.COOP_GROUP_MASK_REGIDS,
        Info.INT_WARP_WIDE_INSTR_OFFSETS, Info.INDIRECT_BRANCH_TARGETS,
    Info.MBARRIER_INSTR_OFFSETS, Info.INSTR_REG_MAP, Info.UNUSED_LOAD_BYTE_OFFSET, Info.SYSCALL_OFFSETS,
        Info.ATOM16_EMUL_INSTR_REG_MAP, Info.CRS_STACK_SIZE,
    Info.NUM_MBARRIERS,
}  # fmt: skip
#: Of these only the presence is not enough to compare.
FREE = {
    Info.INT_WARP_WIDE_INSTR_OFFSETS,
    Info.CRS_STACK_SIZE,
    Info.UNUSED_LOAD_BYTE_OFFSET,
    Info.INDIRECT_BRANCH_TARGETS,
    Info.ANNOTATIONS,
}
_ISA_CLASS = 2
_CAN_FASTPATH = 0x0B  # .nv.compat: which SMs could run the code unchanged: ours promises none


def _name(c: Cubin, number: int) -> str:
    return c.symbols[number].name if number < len(c.symbols) else f"?{number}"


def _payload(c: Cubin, code: int, payload: bytes) -> object:
    if code == Info.PARAM_CBANK:
        symbol, where = struct.unpack("<II", payload)
        return c.sections[c.symbols[symbol].shndx].name, where
    if code == Info.EXTERNS:
        return tuple(_name(c, n) for (n,) in struct.iter_unpack("<I", payload))
    return payload.hex()


def _rows(c: Cubin, s: Section) -> list[tuple[int, object]]:
    """Records of a kernel in order; those about places in code without their contents."""
    out: list[tuple[int, object]] = []
    for _, code, payload in info_records(s.data):
        if code not in FREE and code not in (
            Info.NUM_MBARRIERS,
            Info.COOP_GROUP_INSTR_OFFSETS,
            Info.COOP_GROUP_MASK_REGIDS,
        ):
            out.append((code, "" if code in PLACES else _payload(c, code, payload)))
    return out


def _own(c: Cubin) -> set[str]:
    """Names of the program's own symbols: no helper, no copy of a function."""
    return {y.name for y in c.symbols if not y.name.startswith("$")}


def _module_rows(c: Cubin) -> list[tuple[int, str]]:
    own = _own(c)
    rows = []
    for _, code, payload in info_records(c.section(".nv.info").data):
        name = _name(c, struct.unpack_from("<I", payload)[0]) if len(payload) == 8 else ""
        if not name or name in own:
            rows.append((code, name))
    return rows


def _kinds(c: Cubin, kernel: str, sm: str) -> dict[int, Counter[str]]:
    """The program's instructions that records list, by kind."""
    target = isa.target(sm)
    code = c.section(f".text.{kernel}").data
    out: dict[int, Counter[str]] = {}
    for _, record, payload in info_records(c.section(f".nv.info.{kernel}").data):
        words = struct.unpack(f"<{len(payload) // 4}I", payload) if len(payload) > 2 else ()
        if record in (Info.COOP_GROUP_INSTR_OFFSETS, Info.INT_WARP_WIDE_INSTR_OFFSETS):
            kinds: Counter[str] = Counter()
            for at in words:
                found = target.decode(int.from_bytes(code[at : at + 16], "little"), at)
                assert not isinstance(found, Refusal)
                kinds[{"WARPSYNC": "NOP", "CREDUX": "REDUX"}.get(found.op, found.op)] += 1
            out[record] = kinds
        elif record == Info.MBARRIER_INSTR_OFFSETS:
            out[record] = Counter(str(row & 0xFF) for row in words[3::4])
        elif record == Info.INSTR_REG_MAP:
            out[record] = Counter(f"{row & 0xFF} {row >> 8 & 0xFF}" for row in words[1::3])
        elif record in (Info.SYSCALL_OFFSETS, Info.ATOM16_EMUL_INSTR_REG_MAP):
            out[record] = Counter({"": len(words)})
    return out


def _sections(c: Cubin) -> dict[str, tuple[object, ...]]:
    out: dict[str, tuple[object, ...]] = {}
    for s in c.sections:
        if is_second_copy(s.name) or s.name.startswith((".nv.constant2.", ".rela.nv.constant2.", ".rela.text.")):
            continue
        size = (
            s.size
            if s.name.startswith(
                (
                    ".nv.shared",
                    ".nv.global",
                    ".nv.constant0",
                    ".nv.constant3",
                    ".nv.constant4",
                    ".nv.compat",
                    ".note.nv.cuinfo",
                )
            )
            else -1
        )
        out[s.name] = (s.type, s.flags, s.align, s.entsize, size)
    return out


def _symbols(c: Cubin) -> list[tuple[object, ...]]:
    out: list[tuple[object, ...]] = []
    for y in c.symbols:
        where = c.sections[y.shndx].name if 0 < y.shndx < len(c.sections) else str(y.shndx)
        if (
            y.name.startswith("$")
            or (y.name in ("", ".nv.reservedSmem.cap") and y.index)
            or where.startswith(".nv.constant2.")
        ):
            continue
        out.append((y.name, y.bind, y.type, y.other, where, y.value, y.size if y.type != 2 else -1))
    return out


def differences(theirs: Cubin, ours: Cubin, sm: str) -> Iterator[str]:
    """Every difference without a reason in the list above."""

    def check(what: str, a: object, b: object) -> Iterator[str]:
        if a != b:
            yield f"{what}: {a!r} != {b!r}"[:600]

    yield from check(".nv.info", _module_rows(theirs), _module_rows(ours))
    a, b = _sections(theirs), _sections(ours)
    yield from check("sections", sorted(a.keys() - b.keys()), sorted(b.keys() - a.keys()))
    for name in a.keys() & b.keys():
        yield from check(name, a[name], b[name])
    x, y = _symbols(theirs), _symbols(ours)
    if x != y:
        yield (
            f"symbols: {[s for s in x if s not in y]} != {[s for s in y if s not in x]}"[:600]
            if set(x) != set(y)
            else f"order of symbols: {x} != {y}"[:600]
        )
    for s in theirs.sections:
        if s.type != 0x70000000 or s.name == ".nv.info" or is_second_copy(s.name) or s.name not in ours.names():
            continue
        yield from check(s.name, _rows(theirs, s), _rows(ours, ours.section(s.name)))
        kernel = s.name.removeprefix(".nv.info.")
        one, two = _kinds(theirs, kernel, sm), _kinds(ours, kernel, sm)
        for code in (one.keys() | two.keys()) - {Info.COOP_GROUP_INSTR_OFFSETS, Info.INT_WARP_WIDE_INSTR_OFFSETS}:
            p, q = one.get(code, Counter()), two.get(code, Counter())
            if set(p) != set(q) or (code != Info.MBARRIER_INSTR_OFFSETS and p != q):
                yield f"{s.name} {code:#x}: {dict(p)} != {dict(q)}"
        user, own = (
            [side.get(code, Counter()) for side in (one, two)]
            for code in (Info.COOP_GROUP_INSTR_OFFSETS, Info.INT_WARP_WIDE_INSTR_OFFSETS)
        )
        for a_side, b_side in ((0, 1), (1, 0)):
            for kind in user[a_side].keys() - user[b_side].keys():
                if kind in own[b_side] and kind not in own[a_side]:
                    yield f"{s.name}: {kind} is the program's for {'ptxas' if a_side == 0 else 'us'} alone"
    for name in (".nv.compat", ".note.nv.cuinfo"):
        if name in theirs.names() and name in ours.names():
            if name == ".nv.compat":
                p1, q1 = (
                    [(c, d) for _, c, d in info_records(f.section(name).data) if c not in (_CAN_FASTPATH, _ISA_CLASS)]
                    for f in (theirs, ours)
                )
                yield from check(name, p1, q1)
            else:
                yield from check(name, theirs.section(name).data.hex(), ours.section(name).data.hex())


def compare(path: Path, sm: str) -> list[str]:
    """Both compilers on a file: differences without a reason, and records that either's code contradicts."""
    from orchestrator.api import ChainError, compile_ptx
    from tests import oracle

    theirs = oracle.run_ptxas(path, sm)
    if isinstance(theirs, oracle.ToolError):
        return [f"ptxas: {theirs}"]
    try:
        ours = compile_ptx(path.read_bytes(), f"sm_{sm}", name=path.name)
    except ChainError as error:
        return [f"ours: {error}"]
    out = [f"ptxas's {text}" for text in check_records(theirs.read_bytes()) if not _one_register_more(text)]
    out += [f"our {text}" for text in check_records(ours)]
    return out + list(differences(read(theirs.read_bytes()), read(ours), sm))


def _one_register_more(text: str) -> bool:
    """Whether a finding says that REGCOUNT is one above what the code needs."""
    found = re.search(r"REGCOUNT is (\d+), the code needs (\d+)$", text)
    return found is not None and int(found[1]) == int(found[2]) + 1


def files() -> list[tuple[Path, str]]:
    """All kernels of tests/ with the SMs that they are for."""
    root = Path(__file__).parents[1]
    out = []
    for folder in ("kernels/ptx", "kernels/corpus/ptx"):
        out += [(p, p.parent.name.removeprefix("sm_")) for p in sorted((root / folder).glob("sm_*/*.ptx"))]
    for folder in ("kernels/hand", "elf/shapes", "elf/lineinfo", "cosim/known", "fuzz/cases", "fuzz/theirs"):
        for p in sorted((root / folder).glob("*.ptx")):
            found = re.search(r"^\s*\.target\s+sm_(\d+)(\w?)", p.read_text(), re.M)
            assert found, p
            out += [
                (p, s)
                for s in ((found[1] + "a",) if found[2] else ("75", "80", "90", "100", "120"))
                if int(s.rstrip("a")) >= int(found[1])
            ]
    return out


def _sm_of(path: Path) -> str:
    if path.parent.name.startswith("sm_"):
        return path.parent.name.removeprefix("sm_")
    return own_target(path.read_text()).removeprefix("sm_")


def main(folders: list[str]) -> int:
    """Print every difference; 1 if there are any."""
    given = [p for f in map(Path, folders) for p in (sorted(f.glob("**/*.ptx")) if f.is_dir() else [f])]
    found = [(p, _sm_of(p)) for p in given] if folders else files()
    bad = 0
    for path, sm in found:
        rows = compare(path, sm)
        bad += bool(rows)
        for text in rows:
            print(f"{path.stem} sm_{sm}: {text}", flush=True)
    print(f"{bad} of {len(found)} files differ without a reason")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
