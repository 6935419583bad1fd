"""Recompute a cubin's records from its code, and report what differs.

A driver, a debugger and the sanitizer believe the records of `.nv.info`, `.nv.info.<function>` and the symbols. This
module is independent of the writer in `stages/elf`: machine code, ELF headers and the target's constants are its only
sources. Facts that no code shows are not judged (launch bounds; whether the program or the compiler asked for a
warp-wide instruction). The rules hold for ptxas's cubins (tests/check/test_records.py).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from ir_format.isa import facts
from ir_format.model import Imm, Inst, Mem, Name, Reg
from ir_format.target import ABI_CALL_FLOOR, REG_CEILING, REG_RESERVED, STACK_REG
from stages.check.record_facts import Code, Info, read_codes, registers
from stages.disasm.cubin import CubinError, Symbol

_BARRIERS: Final = 16  # NUM_BARRIERS if a barrier's number is in a register
_WARP_WIDE: Final = facts.exchanging()
_TOOLKITS: Final = (0x82, 0x87)  # CUDA_API_VERSION of 13.0 and 13.5
_ALIGNMENTS: Final = 15  # exponents of the alignment of what a parameter points to
_SPACES: Final = 5  # state spaces it may point to
_RESERVED: Final = ".nv.shared.reserved.0"
_ALLOCATOR: Final = 32  # bytes there of the allocator of tensor memory
_ENTRY: Final = 0x10  # STO_CUDA_ENTRY
_CODE_FLAGS: Final = 6  # ALLOC, EXECINSTR
_VRC: Final = 0x80  # VRC_CTA_INIT_COUNT of kernels that allocate tensor memory, or compute there
_TENSOR_PRODUCTS: Final = facts.reading("tensor") & facts.writing("tensor") & facts.of_class("utc")

Judge = Callable[[Code], Iterator[str]]


#: What the program's warp-wide operations may also be written as.
_STANDING_FOR: Final = facts.with_value("ctl", "call") | facts.of_class("nop", "bar") | {"WARPSYNC"}


def check_records(data: bytes) -> list[str]:
    """Every mismatch of a cubin, as text. Raises :class:`stages.disasm.cubin.CubinError` for a damaged file."""
    out: list[str] = []
    for c in read_codes(data):
        for judge in _JUDGES:
            try:
                out += [f"{c.name}: {text}" for text in judge(c)]
            except (struct.error, IndexError, ValueError, KeyError) as error:
                raise CubinError(f"damaged records of {c.name} ({type(error).__name__})") from None
    return out


def _hex(values: Iterable[int]) -> str:
    got = list(values)
    return "[" + ", ".join(f"{v:#x}" for v in got[:12]) + (", ..." if len(got) > 12 else "") + "]"


def _same(name: str, said: Iterable[int], found: Iterable[int], what: str) -> Iterator[str]:
    a, b = sorted(said), sorted(found)
    if a != b:
        yield f"{name} says {_hex(a)}, {what} {_hex(b)}"


# --------------------------------------------------------------------------- registers, stack


def _register_count(c: Code) -> Iterator[str]:
    said = c.said(Info.REGCOUNT, c.name)
    if said is None:
        yield "REGCOUNT is missing"
        return
    high = max((r.num + r.width for _, i in c.insts() for r in registers(i) if r.file == "R" and r.num >= 0), default=0)
    needed = min(max(high, 2) + REG_RESERVED, REG_CEILING)
    if any(i.op in ("USETMAXREG", "SETMAXREG") for _, i in c.insts()):
        least, most = needed, REG_CEILING  # USETMAXREG changes the warps' registers at run time
    elif any(i.op == "CALL" for _, i in c.insts()) or (not c.cubin.linked and any(map(_helper, c.places))):
        # In an object, ptxas keeps the registers of a call to a helper that it then expanded (measured).
        least, most = needed, max(needed, ABI_CALL_FLOOR)
    else:
        least = most = needed
    if not least <= said <= most:
        yield f"REGCOUNT is {said}, the code needs {needed}"
    if c.target.exec_rel and c.section.registers != said:
        yield f"the section's header counts {c.section.registers} registers, REGCOUNT {said}"


def _helper(section: str) -> bool:
    """Whether a section has a helper function of ptxas's own, which an object carries."""
    return section.startswith(".text.__cuda_")


def _frame(c: Code, f: Symbol) -> int | None:
    """Bytes that a function takes from the stack pointer; None if that is no constant."""
    total = 0
    for at in range(f.value, c.end(f), 16):
        i = c.inst(at)
        if i is None or not any(isinstance(d, Reg) and d.file == "R" and d.num == STACK_REG for d in i.dsts):
            continue
        if not any(isinstance(s, Reg) and s.file == "R" and s.num == STACK_REG for s in i.srcs):
            continue
        step = next((s.value & 0xFFFFFFFF for s in i.srcs if isinstance(s, Imm)), None)
        if step is None or i.op not in facts.having("adds"):
            return None
        if step >> 31:
            total = max(total, (1 << 32) - step)
    return total


def _frames(c: Code) -> Iterator[str]:
    """The frame of each function. ptxas gives its kernel's frame to a copy of a function, the largest to the kernel,
    and 0 to a recursive function from sm_90 on; if functions are called by pointer, the deepest chain of calls from a
    function on (measured)."""
    if not c.cubin.linked:
        return
    taken = [_frame(c, f) for f in c.functions]
    whole = max((n for n in taken if n is not None), default=0)
    entry = c.said(Info.FRAME_SIZE, c.functions[0].name) if c.functions else None
    for k, f in enumerate(c.functions):
        said, found = c.said(Info.FRAME_SIZE, f.name), taken[k]
        if said is None:
            yield f"FRAME_SIZE of {f.name} is missing"
        elif found is not None and said not in (
            *((found, whole) if k == 0 else (found, entry, 0)),
            *_chains(c, taken, k),
        ):
            yield f"FRAME_SIZE of {f.name} is {said}, its code takes {found} bytes"


def _chains(c: Code, taken: list[int | None], k: int) -> tuple[int, ...]:
    """Bytes of the deepest chain of calls from a function on, when any function is called by pointer: by calls of
    known functions alone, and by calls of any."""
    edges, pointed = _calls(c)
    if not pointed:
        return ()
    own = {f.name: n or 0 for f, n in zip(c.functions, taken, strict=True)}
    start, callees = c.functions[k].name, [f for n, f in enumerate(c.functions) if n not in (0, k)]
    known = _deepest(own, edges, start)
    return known, own[start] + max((_deepest(own, edges, f.name) for f in callees), default=0)


def _calls(c: Code) -> tuple[dict[str, list[Symbol]], bool]:
    """Function -> the functions that it calls by name; whether any is called otherwise."""
    edges: dict[str, list[Symbol]] = {f.name: [] for f in c.functions}
    starts = {f.value: f for f in c.functions}
    pointed = False
    for f in c.functions:
        for at in range(f.value, c.end(f), 16):
            i = c.inst(at)
            if i is not None and i.op == "CALL":
                by_register = any(isinstance(s, Reg) and s.num >= 0 for s in i.srcs)
                to = None if by_register else _callee(c, starts, c.items[at].label)
                pointed |= to is None and at not in c.words(Info.SYSCALL_OFFSETS)
                if to is not None:
                    edges[f.name].append(to)
    return edges, pointed


def _callee(c: Code, starts: dict[int, Symbol], to: int | None) -> Symbol | None:
    """The function that begins at a place, or right after what is there: ptxas may put an instruction of the caller
    in front of the function, and call that (measured, `CALL.REL.NOINC` to the word before a division's symbol)."""
    if to is None or to not in c.items:
        return None
    return starts.get(to) or starts.get(to + 16)


def _stack(c: Code) -> Iterator[str]:
    """The deepest chain of calls; the kernel's own frame if functions are mutually recursive or share the kernel's
    frame (measured)."""
    if not c.cubin.linked or not c.entry:
        return
    said = c.said(Info.MIN_STACK_SIZE, c.name)
    if said is None:
        yield "MIN_STACK_SIZE is missing"
        return
    edges, pointed = _calls(c)
    own = {f.name: c.said(Info.FRAME_SIZE, f.name) for f in c.functions}
    if any(n is None for n in own.values()):
        return
    if pointed:  # the callees are not known: the chains by known calls, by any, or the kernel's frame (measured)
        taken = [_frame(c, f) for f in c.functions]
        if None not in taken and said not in (own[c.name], *_chains(c, taken, 0)):
            yield f"MIN_STACK_SIZE is {said}, no chain of calls takes that"
        return
    found = _deepest({name: n or 0 for name, n in own.items()}, edges, c.functions[0].name)
    if said not in (found, c.said(Info.FRAME_SIZE, c.name)):
        yield f"MIN_STACK_SIZE is {said}, the deepest chain of calls takes {found} bytes"


def _deepest(own: dict[str, int], edges: dict[str, list[Symbol]], start: str) -> int:
    """Bytes of the deepest chain of calls. Functions in a cycle count nothing: it may repeat any number of times."""
    total: dict[str, int] = {}
    path: list[str] = []
    circle: set[str] = set()
    stack = [(start, False)]
    while stack:
        name, done = stack.pop()
        if done:
            path.pop()
            total[name] = (0 if name in circle else own[name]) + max(
                (total.get(to.name, 0) for to in edges[name]), default=0
            )
        elif name not in total and name not in path:
            path.append(name)
            stack.append((name, True))
            for to in edges[name]:
                if to.name in path:
                    circle.update(path[path.index(to.name) :])
                else:
                    stack.append((to.name, False))
    return total[start]


# --------------------------------------------------------------------------- places in the code


def _exits(c: Code) -> Iterator[str]:
    if c.entry:
        yield from _same("EXIT_INSTR_OFFSETS", c.words(Info.EXIT_INSTR_OFFSETS), c.at("EXIT"), "EXIT is at")


def _warp_wide(c: Code) -> Iterator[str]:
    """The program's warp-wide instructions and the compiler's: each is in one of two lists, except votes on the active
    mask, and helpers of a listed call."""
    user, own = c.words(Info.COOP_GROUP_INSTR_OFFSETS), c.words(Info.INT_WARP_WIDE_INSTR_OFFSETS)
    wide = {at for at, i in c.insts() if i.op in _WARP_WIDE}
    for at in own:
        if at not in wide:
            yield f"INT_WARP_WIDE_INSTR_OFFSETS lists {at:#x}, where there is no warp-wide instruction"
    for at in user:
        i = c.inst(at)
        if at not in wide and (i is None or i.op not in _STANDING_FOR):
            yield f"COOP_GROUP_INSTR_OFFSETS lists {at:#x}, where there is no warp-wide instruction"
    if len(set(user)) != len(user) or len(set(own)) != len(own) or set(user) & set(own):
        yield "a warp-wide instruction is listed twice"
    helped = any((i := c.inst(at)) is not None and i.op == "CALL" for at in user)
    masks = c.words(Info.COOP_GROUP_MASK_REGIDS)
    if len(masks) != len(user):
        yield f"COOP_GROUP_MASK_REGIDS has {len(masks)} masks for {len(user)} instructions"
    limit = c.said(Info.REGCOUNT, c.name) or REG_CEILING
    for mask in masks:
        if mask != 0xFFFFFFFF and (mask >> 8 != 0x050000 or mask & 0xFF >= limit):
            yield f"COOP_GROUP_MASK_REGIDS names no register: {mask:#x}"
    for at in () if _helper(c.section.name) and not c.entry else sorted(wide - set(user) - set(own)):
        i = c.inst(at)
        assert i is not None
        asks = i.op in ("VOTE", "VOTEU") and all(isinstance(s, Reg) and s.num < 0 for s in i.srcs)
        asks |= (
            i.op == "VOTEU" and isinstance(i.dsts[0], Reg) and i.dsts[0].num < 0
        )  # a predicate made uniform for HGMMA
        if not asks and not (helped and at >= min((f.value for f in c.functions if f.value), default=0)):
            yield f"the warp-wide instruction at {at:#x} is in no list"


def _system_calls(c: Code) -> Iterator[str]:
    for at in c.words(Info.SYSCALL_OFFSETS):
        i = c.inst(at)
        if i is None or i.op != "CALL":
            yield f"SYSCALL_OFFSETS lists {at:#x}, where there is no call"


def _branches(c: Code) -> Iterator[str]:
    """Indirect branches and where they lead."""
    words = list(c.words(Info.INDIRECT_BRANCH_TARGETS))
    listed: list[int] = []
    table = c.places.get(f".nv.constant2.{c.name}")
    known = (
        set(struct.unpack(f"<{len(table.data) // 4}I", table.data[: len(table.data) & ~3]))
        if table is not None
        else set()
    )
    while len(words) >= 3:
        at, zero, count, *rest = words
        listed.append(at)
        if zero or len(rest) < count:
            yield f"INDIRECT_BRANCH_TARGETS: the row of {at:#x} is cut off"
        i = c.inst(at)
        if i is None or i.op not in ("BRX", "BRXU", "JMX", "JMXU"):
            yield f"INDIRECT_BRANCH_TARGETS lists {at:#x}, where there is no indirect branch"
        targets, words = rest[:count], rest[count:]
        for to in targets:
            if c.inst(to) is None or (known and to not in known):
                yield f"INDIRECT_BRANCH_TARGETS: {to:#x} is no target of the branch at {at:#x}"
    if words:
        yield "INDIRECT_BRANCH_TARGETS ends within a row"
    yield from _same("INDIRECT_BRANCH_TARGETS", listed, c.at("BRX", "BRXU"), "indirect branches are at")


#: Operations on mbarriers: the modifier of SYNCS that performs it, and the instruction before sm_90 (all measured).
_BARRIER_OPS: Final = {
    0: ("EXCH", "STS"), 1: ("ARRIVE", "ATOMS"), 2: ("TMASK", "ATOMS"), 3: ("ARRIVE", "ATOMS"), 4: ("TMASK", "ATOMS"),
    5: ("PHASECHK", "LDS"), 6: ("PHASECHK", "LDS"),
    7: ("", "ARRIVES"), 8: ("CCTL", ""), 9: ("TRYWAIT", ""), 10: ("TRYWAIT", ""), 11: ("A0TR", ""), 12: ("A0TX", ""),
}  # fmt: skip
_OPERAND_OF: Final = {
    5: 2,
    6: 2,
    2: 1,
    4: 1,
}  # the operand of an operation that INSTR_REG_MAP describes: waits up to sm_89, arrivals with a count from sm_90 on


def _does(i: Inst, op: int) -> bool:
    """Whether an instruction performs an operation on an mbarrier; a NOP marks one that takes several instructions."""
    modifier, old = _BARRIER_OPS.get(op, ("", ""))
    return i.op == "NOP" or (i.op == "STS" and op == 0) or i.op == old or (i.op == "SYNCS" and modifier in i.mods)


def _mbarriers(c: Code) -> Iterator[str]:
    words = c.words(Info.MBARRIER_INSTR_OFFSETS)
    zero = c.target.ur_zero
    made = 0
    for k in range(0, len(words) - 3, 4):
        at, base, offset, rest = words[k : k + 4]
        op, uniform = rest & 0xFF, rest >> 16 & 0xFF
        made += op == 0
        i = c.inst(at)
        if i is None or rest >> 8 & 0xFF != 1 or rest >> 24 or not _does(i, op):
            yield f"MBARRIER_INSTR_OFFSETS: operation {op} at {at:#x} is none"
            continue
        where = next((o for o in (*i.dsts, *i.srcs) if isinstance(o, Mem)), None)
        if where is None or i.op == "NOP":
            continue
        real = (
            where.base.num if where.base is not None and where.base.num >= 0 else 0xFF,
            where.ubase.num if where.ubase is not None and where.ubase.num >= 0 else zero,
            where.offset & 0xFFFFFFFF,
        )
        if real != (base, uniform, offset):
            yield f"MBARRIER_INSTR_OFFSETS: the address at {at:#x} is another one"
    said = c.words(Info.NUM_MBARRIERS)
    if bool(said) != bool(words) or (said and said[0] not in (made, 0xFFFF)):
        yield f"NUM_MBARRIERS is {said[0] if said else 'missing'}, {made} are made"
    if len(words) % 4:
        yield "MBARRIER_INSTR_OFFSETS ends within a row"
    yield from _hidden_operands(c, {at: row & 0xFF for at, row in zip(words[::4], words[3::4], strict=False)})


def _hidden_operands(c: Code, operations: dict[int, int]) -> Iterator[str]:
    """INSTR_REG_MAP: operands of operations on mbarriers that the instruction does not show."""
    words = c.words(Info.INSTR_REG_MAP)
    wanted = (2, 4) if c.target.compat else (5, 6)
    limit = c.said(Info.REGCOUNT, c.name) or REG_CEILING
    found = [at for at, op in operations.items() if op in wanted]
    yield from _same("INSTR_REG_MAP", words[::3], found, "operations that hide an operand are at")
    for at, what, value in zip(words[::3], words[1::3], words[2::3], strict=False):
        kind, which = what >> 8 & 0xFF, what >> 16
        if what & 0xFF != _OPERAND_OF.get(operations.get(at, 0)):
            yield f"INSTR_REG_MAP: operand {what & 0xFF} at {at:#x}"
        elif not ((kind == 2 and which < limit and value == 0xFFFFFFFF) or (kind == 5 and which == 0xFFFF)):
            yield f"INSTR_REG_MAP: no register and no number at {at:#x}"


def _loads(c: Code) -> Iterator[str]:
    words = c.words(Info.UNUSED_LOAD_BYTE_OFFSET)
    for at, mask in zip(words[::2], words[1::2], strict=False):
        i = c.inst(at)
        size = (
            4 * max((d.width for d in i.dsts if isinstance(d, Reg) and d.file == "R"), default=0)
            if i is not None and i.op.startswith("LD")
            else 0
        )
        if not size or mask >> size or mask == (1 << size) - 1:
            yield f"UNUSED_LOAD_BYTE_OFFSET: no load with unused bytes at {at:#x} (mask {mask:#x})"
    words = c.words(Info.ATOM16_EMUL_INSTR_REG_MAP)
    limit = c.said(Info.REGCOUNT, c.name) or REG_CEILING
    for at, register in zip(words[::2], words[1::2], strict=False):
        i = c.inst(at)
        if i is None or not i.op.startswith(("LD", "ATOM")) or register >= limit:
            yield f"ATOM16_EMUL_INSTR_REG_MAP: no emulated access of 16 bits at {at:#x}"


# --------------------------------------------------------------------------- what the code uses


def _barriers(c: Code) -> Iterator[str]:
    """The highest barrier that is named, + 1; if a register has a number, up to all of them (at -O0 ptxas counts the
    constants that it puts there)."""
    said = next(iter(c.words(Info.NUM_BARRIERS)), 0)
    found = most = 0
    for _, i in c.insts():
        if i.op == "BAR":
            number = i.srcs[0] if i.srcs else None
            if isinstance(number, Imm):
                found = max(found, number.value + 1)
            else:
                most = _BARRIERS
    outside = _calls(c)[1]  # functions there may use more
    if not found <= said <= (_BARRIERS if outside else max(found, most)):
        yield f"NUM_BARRIERS is {said}, the code uses {found}"
    header = c.places.get(c.section.name)
    if header is not None and header.flags != _CODE_FLAGS:
        yield f"the section's header has flags {header.flags:#x}"  # formats before this one counted barriers there


def _special(c: Code) -> Iterator[str]:
    def reads(name: str) -> bool:
        return any(isinstance(o, Name) and o.name == name for _, i in c.insts() for o in i.srcs)

    if c.entry and c.target.exec_rel and reads("SR_CTAID.Z") and Info.CTAIDZ_USED not in c.records:
        yield "CTAIDZ_USED is missing, the code reads SR_CTAID.Z"
    if not reads("SR_CTAID.Z") and Info.CTAIDZ_USED in c.records:
        yield "CTAIDZ_USED is there, the code does not read SR_CTAID.Z"
    moves = bool(c.at("USETMAXREG", "SETMAXREG"))
    if moves != (Info.REG_RECONFIG in c.records):
        yield (
            f"REG_RECONFIG is {'missing' if moves else 'there'}, but registers are "
            f"{'' if moves else 'not '}moved between warps"
        )
    returns = [
        f
        for f in c.functions
        if f.value and any(i is not None and i.op == "RET" for i in map(c.inst, range(f.value, c.end(f), 16)))
    ]
    called = any(c.items[at].label == f.value for f in returns for at in c.at("CALL"))
    if c.entry and c.cubin.linked and (called or c.at("BSSY")) and Info.CRS_STACK_SIZE not in c.records:
        yield "CRS_STACK_SIZE is missing"


def _constants(c: Code) -> Iterator[str]:
    """Records whose value depends only on the SM."""
    t = c.target
    for code, want in ((Info.SW_WAR, t.sw_war), (Info.MERCURY_ISA_VERSION, t.mercury_isa)):
        said = c.words(code)
        if said != (() if want < 0 else (want,)):
            yield (
                f"{code.name} is {_hex(said)}, the SM has {want:#x}"
                if want >= 0
                else f"{code.name} is there, the SM has none"
            )
    if c.words(Info.CUDA_API_VERSION)[:1] not in [(v,) for v in _TOOLKITS]:
        yield f"CUDA_API_VERSION is {_hex(c.words(Info.CUDA_API_VERSION))}"
    for code, there in (
        (Info.SW2861232_WAR, t.sw2861232),
        (Info.VRC_CTA_INIT_COUNT, t.vrc_record),
        (Info.SPARSE_MMA_MASK, t.compat),
    ):
        if there != (code in c.records):
            yield f"{code.name} is {'missing' if there else 'there'} on {t.name}"
    reserved = c.places.get(_RESERVED)
    if (
        c.cubin.linked
        and reserved is not None
        and reserved.size - max(t.reserved_smem_offset0, 0) - t.reserved_smem_war
        not in (
            0,
            _ALLOCATOR,
        )
    ):
        yield f"{_RESERVED} has {reserved.size} bytes"
    tensor = Info.AT_ENTRY_FRAGMENTS in c.records or any(i.op in _TENSOR_PRODUCTS for _, i in c.insts())
    vrc = _VRC if tensor else 0
    for code, value in ((Info.VRC_CTA_INIT_COUNT, vrc), (Info.SPARSE_MMA_MASK, 0), (Info.CRS_STACK_SIZE, 0)):
        if c.words(code)[:1] not in ((), (value,)):
            yield f"{code.name} is {_hex(c.words(code))}, not {value:#x}"


# --------------------------------------------------------------------------- parameters, symbols


def _parameters(c: Code) -> Iterator[str]:
    if not c.entry:
        return
    places: dict[int, tuple[int, int]] = {}
    for payload in c.records.get(Info.KPARAM_INFO, []):
        index, place, word = struct.unpack("<3I", payload)
        places[place & 0xFFFF] = (place >> 16, word >> 18)
        if index or word >> 12 & 0x3F != 0x1F or word & 0xFF > _ALIGNMENTS or word >> 8 & 15 > _SPACES:
            yield f"KPARAM_INFO: parameter {place & 0xFFFF} has no valid kind"
    for payload in c.records.get(Info.KPARAM_INFO_V2, []):
        index, place, size = struct.unpack("<3I", payload)
        places[place & 0xFFFF] = (place >> 16, size)
        if index:
            yield f"KPARAM_INFO_V2: parameter {place & 0xFFFF} has no valid kind"
    if sorted(places) != list(range(len(places))):
        yield f"KPARAM_INFO: parameters {sorted(places)}"
    end = 0
    for number in sorted(places):
        at, size = places[number]
        if at < end:
            yield f"KPARAM_INFO: parameter {number} overlaps the one before"
        end = at + size
    bank = f".nv.constant0.{c.name}"
    section = c.places.get(bank)
    base = c.target.param_base(end)
    if (
        section is None
        or section.size < base + end
        or (c.cubin.linked and not _headers_behind(c) and section.size != base + end)
    ):
        yield f"{bank} has {section.size if section is not None else 0} bytes, the parameters end at {base + end}"
    yield from _same(
        "CBANK_PARAM_SIZE", c.words(Info.CBANK_PARAM_SIZE), (end,) if places else (), "the parameters take"
    )
    words = c.words(Info.PARAM_CBANK)
    if places and (len(words) != 2 or words[1] != (base | end << 16)):
        yield f"PARAM_CBANK says {_hex(words[1:])}, the parameters are at {base | end << 16:#x}"
    elif places and c.cubin.linked:
        symbol = c.cubin.symbols[words[0]] if words[0] < len(c.cubin.symbols) else None
        if symbol is None or section is None or symbol.section != section.number:
            yield f"PARAM_CBANK names a symbol other than that of {bank}"


def _headers_behind(c: Code) -> bool:
    """Whether the numbers of textures follow the parameters."""
    return any(name in c.places for name in (f".rel.nv.constant0.{c.name}", f".rela.nv.constant0.{c.name}"))


def _symbols(c: Code) -> Iterator[str]:
    """A kernel's symbol covers its section; the functions in it follow each other without a gap."""
    own = next((f for f in c.functions if f.name == c.name), None)
    if own is None or own.value != 0 or own.size != len(c.section.data):
        yield f"the symbol says {own.size if own is not None else 0} bytes, the code has {len(c.section.data)}"
        return
    kernel = f".nv.constant0.{c.name}" in c.places  # parameters of a launch
    for f in c.functions:
        if bool(f.other & _ENTRY) != (kernel and f == own):
            yield f"the symbol {f.name} is {'' if f.other & _ENTRY else 'not '}marked as a kernel's"
    parts = [f for f in c.functions if f.value]
    for f in parts:
        if f.value % 16 or f.value + f.size != c.end(f):
            yield f"the symbol {f.name} does not end where the next function begins"
    header = c.places.get(c.section.name)
    number = (
        header.info & 0xFFFFFF
        if header is not None and c.target.exec_rel
        else header.info
        if header is not None
        else -1
    )
    if number >= len(c.cubin.symbols) or number < 0 or c.cubin.symbols[number] != own:
        yield "the section's header names another symbol"
    info = c.places.get(f".nv.info.{c.name}")
    if info is None or info.info != c.section.number:
        yield f"the header of .nv.info.{c.name} names another section"


def _externs(c: Code) -> Iterator[str]:
    if c.entry and c.cubin.linked and bool(c.words(Info.EXTERNS)) != bool(c.words(Info.SYSCALL_OFFSETS)):
        yield "one of EXTERNS and SYSCALL_OFFSETS is missing"
    for number in c.words(Info.EXTERNS):
        symbol = c.cubin.symbols[number] if number < len(c.cubin.symbols) else None
        if symbol is None or symbol.kind != "FUNC":
            yield f"EXTERNS names symbol {number}, which is no function"


_JUDGES: Final[tuple[Judge, ...]] = (
    _register_count, _frames, _stack, _exits, _warp_wide, _system_calls, _branches, _mbarriers, _loads, _barriers,
    _special, _constants, _parameters, _symbols,
    _externs,
)  # fmt: skip
