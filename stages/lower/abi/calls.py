"""Calls by the fixed convention: functions of the module, external functions, pointers, functions of the driver.

Arguments and results are placed by :mod:`.arguments`; :mod:`.frame` holds the callee's side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ir_format import ptx
from ir_format.alignment import align_up
from ir_format.diag import CompileError
from ir_format.model import RZ, AttrValue, Const, Imm, Label, Mem, Operand, Reg, Sym
from ir_format.ptx import CallTarget, PtxFunction, PtxInst, PtxParam, PtxProto, PtxVar
from ir_format.target import ARG_REGS, RETURN_REG
from stages.lower.abi.arguments import (
    assign,
    chunk_of,
    copy_all,
    first_argument,
    param_part,
    rechunk,
    returns_in_memory,
    signature_text,
    words_of,
)
from stages.lower.abi.frame import DRIVER_STACK, STACK, check_param, lifted, load_const, signature, stack_move
from stages.lower.abi.register_arguments import from_words, to_words
from stages.lower.builder import Builder

_FIRST, _LAST = ARG_REGS[0], ARG_REGS[-1]
_TARGETS = tuple(range(_LAST - 1, _FIRST - 1, -2))  # pairs that a call destroys and that may be free of arguments
_FAR_TARGET = 32
#: Functions of the driver, whose calls the cubin lists (measured).
_DRIVER = frozenset(("vprintf", "vfprintf", "malloc", "free", "__assertfail"))


def _argument(b: Builder, x: ptx.Operand, p: PtxParam) -> list[Reg | Imm]:
    """The chunks of an argument."""
    if type(x) is ptx.Sym:
        kind, decl = b.ctx.find(b, x.name)
        if not isinstance(decl, (PtxVar, PtxParam)) or (isinstance(decl, PtxVar) and decl.space != "param"):
            raise CompileError(f"Call argument '{x.name}' is not a .param variable", b.line)
        return list(param_part(b, x.name, decl, 0, words_of(p if p.size else decl)))
    if type(x) is ptx.Vec or p.type == "pred":
        return [to_words(b, x, p)]
    return [b.src(x, p.type)]


def lower_call(b: Builder, inst: PtxInst) -> None:
    """``call``: move the arguments to registers or the stack, call, move the results back."""
    target = inst.operands[0]
    assert isinstance(target, CallTarget)
    sig = signature(b, target)
    if len(target.args) != len(sig.params) or len(target.rets) != len(sig.rets):
        raise CompileError(f"Call of '{sig.name}' does not match its declaration", inst.line)
    with b.region():
        args = [_argument(b, x, p) for x, p in zip(target.args, sig.params, strict=True)]
        if type(target.target) is not ptx.Sym:
            if b.ctx.relocatable:
                note(b, "pointer_calls", (signature_text(sig.rets, sig.params),))
            jump = _indirect(b, target.target)  # type: ignore[arg-type]
        elif isinstance(sig, PtxProto):
            jump = _external(b, target.target.name)
        elif b.ctx.relocatable and target.target.name == b.ctx.unit.name:
            jump = _absolute(b, target.target.name)  # it returns as it does to any other caller
        else:
            jump = _direct(b, sig.name)  # an alias is called by the name of its function
        results = _emit_call(b, jump, sig, args)
        for x, p, got in zip(target.rets, sig.rets, results, strict=True):
            if type(x) is ptx.Sym:
                decl = b.ctx.find(b, x.name)[1]
                assert isinstance(decl, (PtxVar, PtxParam))
                to: Sequence[Reg] = param_part(b, x.name, decl, 0, words_of(p))
            elif type(x) is ptx.Sink:
                continue
            elif type(x) is ptx.Vec or p.type == "pred":
                from_words(b, x, p, got)
                continue
            else:
                to = [b.dst(x)]
            copy_all(b, to, got)


def note(b: Builder, key: str, row: tuple[AttrValue, ...]) -> None:
    """Add a row to a list in the unit's attributes, unless it is there."""
    rows = b.ctx.unit.attrs.get(key, ())
    if isinstance(rows, tuple) and row not in rows:
        b.ctx.unit.attrs[key] = (*rows, row)


class LowStack:
    """The stack of a call in a function with a dynamic stack, or with arguments for which R1 is not aligned enough. It
    lies below the dynamic stack, or in the frame, has ``size`` bytes, and is followed by the function's stack pointer.
    R1 points there only during the CALL: no other instruction may come between the two changes of R1, because spill
    code uses R1 as the base of the frame."""

    __slots__ = ("base", "size")

    def __init__(self, b: Builder, size: int) -> None:
        self.size = align_up(max(size, DRIVER_STACK), 16)
        self.base = b.r()
        low = b.r()
        if STACK in b.cache:
            b.emit("IADD3", low, (b.cache[STACK], Imm("I", -(self.size + 16) & 0xFFFFFFFF), RZ))
        else:  # in the frame, which has `LIFT` bytes more for it
            b.emit("IADD3", low, (b.r1, Imm("I", 8), RZ))
        b.emit("LOP3.LUT", self.base, (low, Imm("I", 0xFFFFFFF0), RZ, Imm("I", 0xC0)))
        b.emit("STL", (), (Mem("M", self.base, None, self.size), b.r1))

    def enter(self, b: Builder) -> None:
        b.emit("MOV", b.r1, (self.base,))

    def leave(self, b: Builder) -> None:
        b.emit("LDL", b.r1, (Mem("M", b.r1, None, self.size),))


Jump = Callable[[Reg, tuple[Operand, ...], tuple[Operand, ...]], None]
# A function of the return-address pair and of the uses and defs of the call: it sets the pair and calls.


def _return_offset(b: Builder, back: Reg) -> None:
    """R20:R21 <- offset in .text of the instruction after the call."""
    b.emit("MOV", b.lo_r(back), (Imm("I", 0, b.fn.name, "ret"),))
    b.emit("MOV", b.hi_r(back), (Imm("I", 0),))


def _call(
    b: Builder,
    op: str,
    srcs: tuple[Operand, ...],
    uses: tuple[Operand, ...],
    defs: tuple[Operand, ...],
    attrs: dict[str, AttrValue] | None = None,
) -> None:
    """Emit the CALL. On a low stack, no spilled register may be reloaded for it."""
    if b.low is not None:
        if type(srcs[0]) is Reg:
            taken = {b.fn.vregs[x.num].fixed + i for x in uses if type(x) is Reg for i in range(x.width)}
            to = b.fixed(next((r for r in _TARGETS if taken.isdisjoint((r, r + 1))), _FAR_TARGET), 2)
            b.copy(to, srcs[0])
            srcs = (to, *srcs[1:])
        b.low.enter(b)
        uses = (*uses, b.r1)
    b.emit(op, (), srcs, uses=uses, defs=defs, attrs=attrs)


def _direct(b: Builder, name: str) -> Jump:
    def jump(back: Reg, uses: tuple[Operand, ...], defs: tuple[Operand, ...]) -> None:
        _return_offset(b, back)
        _call(b, "CALL.REL.NOINC", (Sym("S", name),), uses=uses, defs=defs)

    return jump


def _indirect(b: Builder, x: ptx.Reg) -> Jump:
    """Call by pointer. In a whole program the pointer is an index into a table of the kernel, whose entries are the
    kernel's copies of the functions."""
    to = b.r(2)
    if b.ctx.relocatable:
        b.copy(to, b.reg(x.index))
        return _absolute(b, to)
    b.ctx.use_table(b.line)
    place = b.r()
    b.copy(place, b.lo_r(b.reg(x.index)))
    b.emit("LDC.64", to, (Const("C", 2, 0, 2, place),))

    def jump(back: Reg, uses: tuple[Operand, ...], defs: tuple[Operand, ...]) -> None:
        _return_offset(b, back)
        # Threads with different pointers diverge here, and must reconverge after the call.
        bar, after = b.fn.new_vreg("B"), b.new_block()
        kind = ".RECONVERGENT" if b.has("bssy-kinds") else ""
        b.emit(f"BSSY{kind}", bar, (Label("L", after),))
        _call(b, "CALL.REL.NOINC", (to, Sym("S", b.ctx.unit.name)), uses=uses, defs=defs)
        b.place(after)
        b.emit(f"BSYNC{kind}", (), (bar,))

    return jump


def _absolute(b: Builder, to: str | Reg) -> Jump:
    """In an object, call a function outside the unit, or one that a pointer names, by its absolute address. On sm_90
    and later a pointer is an offset into the table of functions, to which the linker adds the place of the table."""
    b.ctx.unit.attrs["abi_call"] = 1

    def jump(back: Reg, uses: tuple[Operand, ...], defs: tuple[Operand, ...]) -> None:
        b.emit("MOV", b.lo_r(back), (Imm("I", 0, b.fn.name, "ret_lo"),))
        b.emit("MOV", b.hi_r(back), (Imm("I", 0, b.fn.name, "ret_hi"),))
        if isinstance(to, str):
            _call(b, "CALL.ABS.NOINC", (Imm("I", 0, to, "call"),), uses=uses, defs=defs)
            return
        bar, after = b.fn.new_vreg("B"), b.new_block()
        kind = ".RECONVERGENT" if b.has("bssy-kinds") else ""
        b.emit(f"BSSY{kind}", bar, (Label("L", after),))
        _call(
            b,
            "CALL.ABS.NOINC",
            (to,),
            uses=uses,
            defs=defs,
            attrs={"mark": "unified_call"} if b.has("unified-call") else None,
        )
        b.place(after)
        b.emit(f"BSYNC{kind}", (), (bar,))

    return jump


def _external(b: Builder, name: str) -> Jump:
    """Call a function of the driver: its address is in bank 4, and the return address is absolute."""
    if b.ctx.relocatable:
        b.ctx.use_symbol(name)
        return _absolute(b, name)
    b.ctx.use_symbol(name)
    b.ctx.unit.attrs["abi_call"] = 1
    to = b.r(2)
    load_const(b, to, 4, 0, name)
    mark: dict[str, AttrValue] | None = (
        {"mark": "syscall"} if name in _DRIVER or name.startswith("__cuda_syscall_") else None
    )

    def jump(back: Reg, uses: tuple[Operand, ...], defs: tuple[Operand, ...]) -> None:
        if b.has("call-from-lepc"):
            after = b.new_block()
            b.emit("LEPC", back, (Label("L", after),))
            _call(b, "CALL.ABS.NOINC", (to,), uses=uses, defs=defs, attrs=mark)
            b.place(after)
            return
        here, c = b.r(2), b.p()
        b.emit("LEPC", here, ())
        b.emit("IADD3", (b.lo_r(back), c), (b.lo_r(here), Imm("I", 0, "", "dist"), RZ))
        b.emit("IADD3.X", b.hi_r(back), (b.hi_r(here), RZ, RZ, c))
        _call(b, "CALL.ABS.NOINC", (to,), uses=uses, defs=defs, attrs=mark)

    return jump


def call_driver(
    b: Builder, name: str, params: Sequence[PtxParam], args: Sequence[Reg | Imm], rets: Sequence[PtxParam] = ()
) -> list[list[Reg]]:
    """Call a function of the driver that the PTX does not declare. Returns the registers of each result."""
    known = b.ctx.unit.attrs.get("externs", ())
    if isinstance(known, tuple) and name not in known:
        b.ctx.unit.attrs["externs"] = (*known, name)
    with b.region():
        return _emit_call(b, _external(b, name), PtxProto(name, tuple(rets), tuple(params)), [[a] for a in args])


def call_helper(b: Builder, name: str, args: Sequence[Reg | Imm]) -> list[Reg]:
    """Call a library function; see :meth:`Builder.call_helper`."""
    sig = b.ctx.need_helper(name)
    if len(args) != len(sig.params):
        raise RuntimeError(f"helper {name} takes {len(sig.params)} arguments, not {len(args)}")
    with b.region():
        results = _emit_call(b, _direct(b, name), sig, [[a] for a in args])
        out: list[Reg] = []
        for p, got in zip(sig.rets, results, strict=True):
            whole = b.r(words_of(p))
            copy_all(b, [whole], got)
            out.append(whole)
    return out


def _emit_call(
    b: Builder, jump: Jump, sig: PtxFunction | PtxProto, args: Sequence[Sequence[Reg | Imm]]
) -> list[list[Reg]]:
    indirect = returns_in_memory(sig.rets)
    places, stack = assign(sig.params, first_argument(sig.rets))
    if sig.params and not sig.params[-1].size:  # a list of arguments: its size is that of the argument given
        stack = align_up(places[-1][1] + sum([4 * (x.width if type(x) is Reg else 1) for x in args[-1]]), 8)
    ret_at = align_up(stack, 16)
    low = (
        LowStack(b, ret_at + sum(align_up(p.size, 16) for p in sig.rets) if indirect else stack)
        if STACK in b.cache or lifted(b, sig)
        else None
    )
    base = low.base if low is not None else b.r1
    uses: list[Operand] = []
    pending: list[tuple[Reg, Reg | Imm]] = []
    for p, (at, offset), arg in zip(sig.params, places, args, strict=True):
        check_param(b, p)
        w = chunk_of(p) if p.size else 1
        pieces = (
            rechunk(b, arg, words_of(p), w)
            if p.size
            else [b.word(x, i) for x in arg for i in range(x.width if type(x) is Reg else 1)]
        )
        for piece in pieces:
            if at >= 0:
                pending.append((b.fixed(at, w), piece))
                at += w
            else:
                stack_move(b, b.in_reg(piece, w), Mem("M", base, None, offset), load=False)
                offset += 4 * w
    if indirect:
        pointer = b.fixed(_FIRST)
        b.emit("IADD3", pointer, (base, Imm("I", ret_at), RZ))
        uses.append(pointer)
    for d, s in pending:
        b.copy(d, s)
        uses.append(d)
    back = b.fixed(RETURN_REG, 2)
    uses.append(back)
    defs: list[Operand] = []
    results: list[list[Reg]] = []
    if not indirect:
        for p, (at, _) in zip(sig.rets, assign(sig.rets)[0], strict=True):
            w = chunk_of(p)
            regs = [b.fixed(at + w * i, w) for i in range(words_of(p) // w)]
            defs += regs
            results.append(regs)
    b.low = low
    jump(back, tuple(uses), tuple(defs))
    if low is not None:
        low.leave(b)
    b.desc_reg = None
    if indirect:
        at = ret_at
        for p in sig.rets:
            at = align_up(at, max(4, p.align))
            w = chunk_of(p)
            regs = [b.r(w) for _ in range(words_of(p) // w)]
            for reg in regs:
                stack_move(b, reg, Mem("M", base, None, at), load=True)
                at += 4 * w
            results.append(regs)
    else:
        results = [[_fresh_copy(b, reg) for reg in regs] for regs in results]
    return results


def _fresh_copy(b: Builder, reg: Reg) -> Reg:
    """Copy into a new vreg, so that the live range of a fixed vreg stays next to its call."""
    d = b.r(reg.width)
    b.copy(d, reg)
    return d
