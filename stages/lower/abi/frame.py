"""The frame of a function: entry, parameters, local variables and return.

Arguments and results are placed by :mod:`.arguments`. The return address is in R20:R21 (measured, ptxas -c).

Contract with the later stages (docs/lowering.md): the return address is ``MOV R20, Imm(sym=function, fmt='ret')``, and
the instructions that move R1 carry ``attrs['frame']`` (-1 at entry, +1 before RET).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ir_format import ptx
from ir_format.alignment import align_up
from ir_format.diag import CompileError
from ir_format.model import RZ, ZERO, Const, Imm, Mem, Name, Operand, Reg, Sym
from ir_format.ptx import CallTarget, PtxFunction, PtxInst, PtxParam, PtxProto, PtxVar
from ir_format.target import ARG_REGS, FRAME_MOST, RETURN_REG
from stages.lower.abi.arguments import (
    accessed_behind,
    assign,
    chunk_of,
    first_argument,
    param_regs,
    returns_in_memory,
    words_of,
)
from stages.lower.abi.register_arguments import from_words, in_words, registers_of, to_words
from stages.lower.builder import Builder

_FIRST = ARG_REGS[0]
#: Bytes of stack that the arguments of the driver's copy functions take.
DRIVER_STACK = 16
#: The same for fetches with derivatives: a vector of derivatives, one of offsets, the value to compare with.
GRADIENT_STACK = 48
#: Bytes that a lifted call stack takes besides its own: the way up to a multiple of 16, and R1 as it was.
LIFT = 32


@contextmanager
def in_prologue(b: Builder) -> Iterator[None]:
    """Emit into the function's first block, which dominates all others."""
    block, guard, line, loc = b.block, b.guard, b.line, b.loc
    b.block, b.guard, b.line, b.loc = b.fn.blocks[0], None, b.pf.line, -1
    yield
    b.block, b.guard, b.line, b.loc = block, guard, line, loc


def load_const(b: Builder, dst: Reg, bank: int, offset: int, sym: str = "") -> None:
    """``dst <- c[bank][offset]``: MOV if arithmetic has constant operands, else LDC."""
    if b.ctx.target.alu_const and not offset & 3:
        for i in range(dst.width):
            b.emit("MOV", b.word(dst, i), (Const("C", bank, offset + 4 * i, 1, None, 0, sym),))
    elif dst.width == 2 and not offset & 7:
        b.emit("LDC.64", dst, (Const("C", bank, offset, 2, None, 0, sym),))
    else:
        for i in range(dst.width):
            b.emit("LDC", b.word(dst, i), (Const("C", bank, offset + 4 * i, 1, None, 0, sym),))


def move_stack(b: Builder, sign: int) -> None:
    """R1 -= frame (sign -1) or R1 += frame. The frame is 0 here; `regalloc` fills it in, and takes the check out where
    there is none. ptxas checks with -g too."""
    b.emit("IADD3", b.r1, (b.r1, Imm("I", 0), RZ), attrs={"frame": sign})
    options = b.ctx.header.options
    if sign < 0 and (options.get("sp-bounds-check") or options.get("device-debug")):
        low, outside = b.r(), b.p()
        b.emit("S2R", low, (Name("N", "SR_LMEMHIOFF"),), attrs={"frame_check": 1})
        places = (outside, Reg("P", ZERO)), (b.r1, low, Reg("P", ZERO))
        b.emit("ISETP.LT.U32.AND", *places, attrs={"frame_check": 1})
        b.emit("BPT.TRAP", (), (Imm("I", 1),), guard=outside, attrs={"frame_check": 1})


_DYNAMIC = ("alloca", "stacksave", "stackrestore")
# Key in the builder's cache: the register that holds the lower end of the dynamic stack, in a function that has one.
STACK = "stack"


def begin_function(b: Builder) -> None:
    """Emit the prologue: stack pointer, arguments, local variables."""
    f = b.pf
    b.padded = accessed_behind(f)
    if f.entry:
        load_const(b, b.r1, 0, b.ctx.target.bank0.stack_init)
        move_stack(b, -1)
    else:
        _receive(b, f)
    outgoing = max(
        (outgoing_bytes(b, i) for i in f.body if type(i) is PtxInst and i.op in ("call", "cp", "tex")), default=0
    )
    at = outgoing
    # The alignment of the stack pointer. Another compiler's callers of an object's functions keep 8 only.
    sure = 8 if b.ctx.relocatable and not f.entry else 16
    held: list[PtxVar | PtxParam] = [v for v in f.vars if v.space == "local"]
    for v in [*held, *[p for p in _with_address(f) if p.size]]:
        at = align_up(at, min(sure, max(4 if isinstance(v, PtxParam) else 1, v.align)))
        b.local_offset[v.name] = at
        if v.align > sure:
            b.local_base[v.name] = _aligned(b, at, v.align)
            at += v.align - sure
        at += 4 * words_of(v) if isinstance(v, PtxParam) else v.size
    b.fn.frame = min(align_up(at, sure if at else 8), FRAME_MOST)
    if any(type(i) is PtxInst and i.op in _DYNAMIC for i in f.body):
        b.cache[STACK] = b.fn.new_vreg("R", name="stack")
        b.copy(b.cache[STACK], b.r1)
    for p in f.params:
        if p.name in b.local_offset and p.size:
            _to_memory(b, p, b.param_words.pop(p.name))
        elif not f.entry and in_words(p):
            from_words(b, registers_of(p), p, b.param_words.pop(p.name))
    b.place(b.new_block())


def _with_address(f: PtxFunction) -> list[PtxParam]:
    """The arguments and results of a function whose address is taken. They are in the frame, as in ptxas's code."""
    if f.entry:
        return []
    own = {p.name: p for p in (*f.params, *f.rets) if p.space == "param"}
    found = {
        x.name: own[x.name]
        for i in f.body
        if type(i) is PtxInst
        for x in i.operands
        if type(x) is ptx.Sym and x.name in own
    }
    return list(found.values())


def _to_memory(b: Builder, p: PtxParam, regs: Sequence[Reg]) -> None:
    base, at = local_place(b, p.name, 0)
    for reg in regs:
        stack_move(b, reg, Mem("M", base, None, at), load=False)
        at += 4 * reg.width


def _value_of(b: Builder, p: PtxParam) -> list[Reg]:
    """The registers that hold an argument or result of this function. If it is in the frame, it is loaded."""
    if p.name not in b.local_offset:
        return [b.in_reg(to_words(b, registers_of(p), p), words_of(p))] if in_words(p) else param_regs(b, p.name, p)
    w = chunk_of(p)
    base, at = local_place(b, p.name, 0)
    out = [b.r(w) for _ in range(words_of(p) // w)]
    for i, reg in enumerate(out):
        stack_move(b, reg, Mem("M", base, None, at + 4 * w * i), load=True)
    return out


def _aligned(b: Builder, at: int, align: int) -> Reg:
    """The first multiple of ``align`` at or above R1 + at."""
    up, d = b.r(), b.r()
    b.emit("IADD3", up, (b.r1, Imm("I", at + align - 1), RZ))
    b.emit("LOP3.LUT", d, (up, Imm("I", -align & 0xFFFFFFFF), RZ, Imm("I", 0xC0)))
    return d


def local_place(b: Builder, name: str, offset: int) -> tuple[Reg, int]:
    """(base, offset) of a byte of a local variable."""
    base = b.local_base.get(name)
    if base is not None:
        return base, offset
    if name not in b.local_offset:
        raise CompileError(f"Local variable '{name}' at module scope not supported by orias", b.line)
    return b.r1, b.local_offset[name] + offset


def _receive(b: Builder, f: PtxFunction) -> None:
    indirect = returns_in_memory(f.rets)
    places, _ = assign(f.params, first_argument(f.rets))
    moves: list[tuple[Reg, Reg]] = []
    defs: list[Operand] = []

    def take(dst: Reg, at: int) -> None:
        src = b.fixed(at, dst.width)
        defs.append(src)
        moves.append((dst, src))

    stacked: list[tuple[PtxParam, int]] = []
    if indirect:
        b.cache["ret_pointer"] = b.r()
        take(b.cache["ret_pointer"], _FIRST)
    for p, (at, offset) in zip(f.params, places, strict=True):
        check_param(b, p)
        if at < 0:
            stacked.append((p, offset))
            continue
        for reg in param_regs(b, p.name, p):
            take(reg, at)
            at += reg.width
    b.ret_addr = b.r(2)
    take(b.ret_addr, RETURN_REG)
    b.emit("FENTRY", (), (), defs=tuple(defs))
    for dst, src in moves:
        b.copy(dst, src)
    caller = b.r()
    if stacked:
        b.copy(caller, b.r1)
    move_stack(b, -1)
    for p, offset in stacked:
        if not p.size:
            b.local_offset[p.name] = 0
            b.local_base[p.name] = list_at = b.r()
            b.emit("IADD3", list_at, (caller, Imm("I", offset), RZ))
            continue
        for reg in param_regs(b, p.name, p):
            stack_move(b, reg, Mem("M", caller, None, offset), load=True)
            offset += 4 * reg.width


def stack_move(b: Builder, reg: Reg, where: Mem, load: bool) -> None:
    size = {1: "", 2: ".64", 4: ".128"}[reg.width]
    if load:
        b.emit(f"LDL{size}", reg, (where,))
    else:
        b.emit(f"STL{size}", (), (where, reg))


def _store_result(b: Builder, p: PtxParam, base: Reg, at: int) -> None:
    """Store a result in the caller's memory: no byte after its end, and nothing wider than its alignment, which is all
    that another compiler's caller keeps (measured)."""
    widest = min(4, p.align)
    left = p.size
    for reg in _value_of(b, p):
        if widest == 4 and left >= 4 * reg.width:
            stack_move(b, reg, Mem("M", base, None, at), load=False)
        else:
            for word in range(reg.width):
                held = reg._replace(sub=reg.sub + word, width=1)
                _store_bytes(b, held, Mem("M", base, None, at + 4 * word), widest, min(4, left - 4 * word))
        at += 4 * reg.width
        left -= 4 * reg.width


def _store_bytes(b: Builder, word: Reg, where: Mem, widest: int, count: int) -> None:
    """Store the first ``count`` bytes of a word by pieces of at most ``widest`` bytes."""
    done = 0
    while done < count:
        n = next(n for n in (4, 2, 1) if n <= widest and not done % n and done + n <= count)
        part = word
        if done:
            part = b.r()
            b.emit("SHF.R.U32.HI", part, (RZ, Imm("I", 8 * done), word))
        op = {4: "STL", 2: "STL.U16", 1: "STL.U8"}[n]
        b.emit(op, (), (where._replace(offset=where.offset + done), part))
        done += n


def check_param(b: Builder, p: PtxParam) -> None:
    if p.type in ("texref", "samplerref", "surfref"):
        raise CompileError(f"Function parameter '{p.name}' of type '.{p.type}' not supported by orias", b.line)


def leave(b: Builder) -> None:
    """End the thread. With `make-errors-visible-at-exit`, wait for the errors of its stores first. With -g ptxas does
    so too, after a barrier for its stores."""
    options = b.ctx.header.options
    if options.get("device-debug"):
        b.emit("MEMBAR.SC.VC")
    if options.get("make-errors-visible-at-exit") or options.get("device-debug"):
        b.emit("ERRBAR")
        if b.has("clusters"):
            b.emit("CGAERRBAR")
    b.emit("EXIT")


def end_function(b: Builder) -> None:
    """Emit the end of the function. A device function has one RET block; falling off its end returns."""
    if b.pf.entry:
        b.line = b.pf.end_line or b.line
        leave(b)
        return
    if b.ret_block < 0:
        b.ret_block = b.new_block()
    b.place(b.ret_block)
    b.line = b.pf.end_line or b.line
    uses: list[Operand] = []
    f = b.pf
    if returns_in_memory(f.rets):
        at = 0
        for p in f.rets:
            at = align_up(at, max(4, p.align))
            _store_result(b, p, b.cache["ret_pointer"], at)
            at += 4 * words_of(p)
    else:
        for p, (at, _) in zip(f.rets, assign(f.rets)[0], strict=True):
            for reg in _value_of(b, p):
                out = b.fixed(at, reg.width)
                b.copy(out, reg)
                uses.append(out)
                at += reg.width
    move_stack(b, 1)
    back = b.fixed(RETURN_REG, 2)
    assert b.ret_addr is not None
    b.copy(back, b.ret_addr)
    if b.ctx.relocatable and b.pf.name == b.ctx.unit.name:
        b.emit("RET.ABS.NODEC", (), (back, Imm("I", 0)), uses=tuple(uses))
        return
    b.emit("RET.REL.NODEC", (), (back, Sym("S", b.ctx.unit.name)), uses=tuple(uses))


def lower_ret(b: Builder, inst: PtxInst) -> None:
    """``ret``: EXIT in a kernel, a jump to the RET block in a function."""
    if b.pf.entry:
        leave(b)
        if b.guard is not None:
            b.place(b.new_block())
        return
    if b.ret_block < 0:
        b.ret_block = b.new_block()
    b.branch(b.ret_block)
    if b.guard is None:
        b.place(b.new_block())


def signature(b: Builder, target: CallTarget) -> PtxFunction | PtxProto:
    """The declaration of a call's target."""
    if type(target.target) is ptx.Sym:
        kind, decl = b.ctx.find(b, target.target.name)
        if kind in ("func", "extern"):
            return decl  # type: ignore[return-value]
        raise CompileError(f"Call target '{target.target.name}' is not a function", b.line)
    for proto in b.pf.protos:
        if proto.name == target.proto:
            return proto
    raise CompileError("Indirect call without a prototype not supported by orias", b.line)


def outgoing_bytes(b: Builder, inst: PtxInst) -> int:
    if inst.op == "tex":
        if b.has("texture-gradient-called") and inst.has("grad"):
            return GRADIENT_STACK
        return 0 if b.has("textures") else DRIVER_STACK
    if inst.op == "cp":
        return (
            DRIVER_STACK if b.has("cluster-copies-called") and inst.has("tensor") and inst.has("shared::cluster") else 0
        )
    target = inst.operands[0]
    if not isinstance(target, CallTarget):
        return 0
    sig = signature(b, target)
    indirect = returns_in_memory(sig.rets)
    size = assign(sig.params, first_argument(sig.rets))[1]
    if sig.params and not sig.params[-1].size and target.args and type(target.args[-1]) is ptx.Sym:
        size = align_up(size + b.ctx.find(b, target.args[-1].name)[1].size, 8)  # type: ignore[attr-defined]
    if indirect:
        size = align_up(size, 16) + sum(align_up(p.size, 16) for p in sig.rets)
    return size + LIFT if lifted(b, sig) else size


def lifted(b: Builder, sig: PtxFunction | PtxProto) -> bool:
    """Whether a call's stack needs more than the alignment that the callers of the function keep. R1 is lifted to the
    next multiple of 16 for the call. (ptxas aligns R1 at the function's begin.)"""
    if not b.ctx.relocatable or b.pf.entry:
        return False
    places = assign(sig.params, first_argument(sig.rets))[0]
    if any(at < 0 and p.align > 8 for p, (at, _) in zip(sig.params, places, strict=True)):
        return True
    return returns_in_memory(sig.rets) and any(p.align > 8 for p in sig.rets)
