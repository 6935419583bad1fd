"""atom and red: one instruction if the space has the operation, else a loop around compare-and-swap.

The native operations were measured with ptxas 13.0.88 (sm_75 to sm_120). Global memory has all operations of the table
below; shared memory only those on 32-bit integers, exchange and compare-and-swap. Generic ATOM works on shared memory
if shared memory has the operation. f32 addition flushes subnormals in global memory, but not in shared memory (PTX
manual and hardware agree).
"""

from __future__ import annotations

from collections.abc import Callable

from ir_format import ptx
from ir_format.model import PT, RZ, AttrValue, Imm, Mem, Reg
from ir_format.ptx import PtxInst
from stages.lower.builder import Builder, Rule
from stages.lower.memory import acquired, fence, order_mods, order_of, resolve, with_policy
from stages.lower.rules.cluster import reduce_async, remote
from stages.lower.rules.integer import Val, add32, add64, compare, logic, minmax, pair
from stages.lower.spaces import from_generic

# (operation, type) -> SASS modifiers in global memory.
_GLOBAL: dict[tuple[str, str], str] = {
    ("add", "u32"): "ADD", ("add", "s32"): "ADD", ("add", "u64"): "ADD.64", ("add", "f32"): "ADD.F32.FTZ.RN",
    ("add", "f64"): "ADD.F64.RN",
    ("add", "f16x2"): "ADD.F16x2.RN", ("add", "bf16x2"): "ADD.BF16x2.RN",
    ("min", "u32"): "MIN", ("min", "s32"): "MIN.S32", ("min", "u64"): "MIN.64", ("min", "s64"): "MIN.S64",
    ("max", "u32"): "MAX", ("max", "s32"): "MAX.S32", ("max", "u64"): "MAX.64", ("max", "s64"): "MAX.S64",
    ("inc", "u32"): "INC", ("dec", "u32"): "DEC",
    **{(o, "b32"): o.upper() for o in ("and", "or", "xor", "exch", "cas")},
    **{(o, "b64"): o.upper() + ".64" for o in ("and", "or", "xor", "exch", "cas")},
    ("exch", "b128"): "EXCH.128", ("cas", "b128"): "CAS.128",
}  # fmt: skip
_SHARED = {
    k: v for k, v in _GLOBAL.items() if k[1] in ("u32", "s32", "b32", "b128") or k in (("exch", "b64"), ("cas", "b64"))
}
_OPS = ("add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas")

# Marks the swap of our own loop, which needs no YIELD: some thread always makes progress (see converge.py).
_RETRY: dict[str, AttrValue] = {"retry": 1}
_HALF: dict[str, AttrValue] = {"half": 1}  # `uses` has the address of the half; the instruction has that of its word
# Marks operations that later accesses need not wait for (see stages/optimize/memory/atomics.py).
_RELAXED: dict[str, AttrValue] = {"relaxed": 1}

_NEAR = 1 << 22

Step = Callable[[Builder, Reg], Reg]


def atom(b: Builder, inst: PtxInst) -> None:
    """atom.* and red.*, which differ only in the result."""
    op = next((m for m in inst.mods if m in _OPS), "")
    t = inst.types[0] if len(inst.types) == 1 else ""
    if inst.has("async") and remote(inst):
        reduce_async(b, inst)
        return
    if any(m in ("v2", "v4", "v8") for m in inst.mods):
        _vector(b, inst, op, t)
        return
    if not op or not t:
        raise b.unsupported(inst)
    red = inst.op == "red"
    ops = inst.operands if red else inst.operands[1:]
    width = max(1, b.bits(t) // 32)
    d = Reg("R", -1, 0, width) if red else b.dst(inst.operands[0], t)
    where = resolve(b, inst, ops[0])
    if not isinstance(where.at, Mem) or where.space == "local":
        raise b.unsupported(inst, "space")
    if inst.has("L2::cache_hint"):
        # Loops and compare-and-swap have no field for it: it is omitted there, as in ptxas's code.
        where = where._replace(at=with_policy(b, where.at, ops[-1]))
        ops = ops[:-1]
    vals = [b.src(o, t) for o in ops[1:]]
    o = order_of(inst, "relaxed")
    if o.sem in ("release", "acq_rel"):
        fence(b, "ALL", o.scope)
    mods = ".".join(order_mods(b, o))
    with b.region() if not _native(b, where.space, op, t) else _nothing():
        assert isinstance(where.at, Mem)
        _perform(b, inst, d, where.space, where.at, op, t, vals, mods)
    acquired(b, o, (d,))


class _nothing:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def _named(mods: str, inst: PtxInst) -> str:
    """With .noftz numbers below the normal ones stay, which only the sum of f32 would flush."""
    return mods.replace(".FTZ", "") if inst.has("noftz") else mods


def _native(b: Builder, space: str, op: str, t: str) -> bool:
    table = _SHARED if space in ("shared", "generic") else _GLOBAL
    return (op, t) in table and not (t == "bf16x2" and not b.has("atom-bf16x2-shared"))


def _perform(
    b: Builder, inst: PtxInst, d: Reg, space: str, at: Mem, op: str, t: str, vals: list[Val], mods: str
) -> None:
    width = max(1, b.bits(t) // 32)
    if _native(b, space, op, t):
        relaxed = order_of(inst, "relaxed").sem in ("relaxed", "release")
        _emit(
            b,
            d,
            space,
            at,
            _named((_SHARED if space == "shared" else _GLOBAL)[op, t], inst),
            [b.in_reg(v, width) for v in vals],
            mods,
            op == "cas",
            _RELAXED if relaxed else None,
        )
        return
    if space == "generic" and (op, t) in _GLOBAL:
        _split(b, inst, d, at, op, t, vals, mods)
        return
    if b.bits(t) == 16:
        _half_loop(b, inst, d, space, at, op, t, vals, mods)
        return
    step = _step(b, inst, op, t, vals)
    old = cas_loop(b, space, at, width, mods, step)
    b.copy(d, old)


def _emit(
    b: Builder,
    d: Reg,
    space: str,
    at: Mem,
    mods: str,
    vals: list[Reg],
    order: str,
    cas: bool,
    attrs: dict[str, AttrValue] | None = None,
) -> None:
    if space == "shared":
        b.emit(f"ATOMS.{mods}", d, (at, *vals), attrs=attrs)
    elif cas:  # this form has no descriptor (measured)
        b.emit(
            f"{'ATOMG' if space == 'global' else 'ATOM'}.E.{mods}.{order}",
            (PT, d),
            (at._replace(desc=None), *vals),
            attrs=attrs,
        )
    elif space == "global" and d.num < 0 and not mods.startswith("EXCH"):
        op = "REDG" if b.has("red-named-redg") else "RED"
        b.emit(f"{op}.E.{mods}.{order}", (), (at, *vals), attrs=attrs)
    else:
        b.emit(
            f"{'ATOMG' if space == 'global' else 'ATOM'}.E.{mods}.{order}", (PT, d), (_near(b, at), *vals), attrs=attrs
        )


def _near(b: Builder, at: Mem) -> Mem:
    """The address as ATOM takes it with a descriptor: from sm_100 on its offset has 23 bits (measured)."""
    if not b.has("atom-offset-23-bits") or -_NEAR <= at.offset < _NEAR:
        return at
    assert at.base is not None
    base = b.r(2)
    add64(b, base, at.base, Imm("I", at.offset & (1 << 64) - 1))
    return at._replace(base=base, offset=0)


def _vector(b: Builder, inst: PtxInst, op: str, t: str) -> None:
    """Operations on two to eight neighbours in global memory (sm_90 on); halves travel in pairs."""
    b.need(inst, "vector-reductions")
    red = inst.op == "red"
    ops = inst.operands if red else inst.operands[1:]
    value = ops[1]
    if not isinstance(value, ptx.Vec) or op not in ("add", "min", "max"):
        raise b.unsupported(inst)
    where = resolve(b, inst, ops[0])
    if not isinstance(where.at, Mem) or where.space not in ("global", "generic"):
        raise b.unsupported(inst, "space")
    at = with_policy(b, where.at, ops[2]) if inst.has("L2::cache_hint") else where.at
    count = len(value.elems) * (2 if t.endswith("x2") else 1)
    single = b.bits(t) == 16
    words = [b.in_reg(b.src(e, t)) for e in value.elems]
    if single:
        pairs = []
        for low, high in zip(words[::2], words[1::2], strict=True):
            both = b.r()
            b.emit("PRMT", both, (low, Imm("I", 0x5410), high))
            pairs.append(both)
        words = pairs
    data = b.r(len(words))
    for i, w in enumerate(words):
        b.copy(data._replace(sub=i, width=1), w)
    kind = (
        f"F32x{count}{'' if inst.has('noftz') else '.FTZ'}.RN"
        if t == "f32"
        else f"{'BF16' if t.startswith('b') else 'F16'}x{count}.RN"
    )
    o = order_of(inst, "relaxed")
    if o.sem in ("release", "acq_rel"):
        fence(b, "ALL", o.scope)
    old = Reg("R", -1, 0, len(words)) if red else b.r(len(words))
    _emit(b, old, where.space, at, f"{op.upper()}.{kind}", [data], ".".join(order_mods(b, o)), False)
    acquired(b, o, (old,))
    if red:
        return
    to = inst.operands[0]
    assert isinstance(to, ptx.Vec)
    for i, e in enumerate(to.elems):
        if isinstance(e, ptx.Sink):
            continue
        word = old._replace(sub=i // 2 if single else i, width=1)
        if single and i & 1:
            b.emit("SHF.R.U32.HI", b.dst(e), (RZ, Imm("I", 16), word))
        else:
            b.copy(b.dst(e), word)


def _split(b: Builder, inst: PtxInst, d: Reg, at: Mem, op: str, t: str, vals: list[Val], mods: str) -> None:
    """A generic address and an operation that shared memory does not have: test the space of the address."""
    assert at.base is not None
    base: Reg = at.base
    if at.offset:
        base = b.r(2)
        add64(b, base, at.base, Imm("I", at.offset & (1 << 64) - 1))
    p = b.p()
    other, end = b.new_block(), b.new_block()
    b.emit("QSPC.E.S", (p, RZ), (Mem("M", base, None, 0),))
    b.branch(other, b.not_(p))
    low = b.in_reg(b.lo(from_generic(b, "shared", base)))
    _perform(b, inst, d, "shared", Mem("M", low, None, 0), op, t, vals, mods)
    b.branch(end)
    b.place(other)
    width = max(1, b.bits(t) // 32)
    _emit(
        b,
        d,
        "generic",
        Mem("M", base, None, 0, at.desc),
        _GLOBAL[op, t],
        [b.in_reg(v, width) for v in vals],
        mods,
        False,
    )
    b.place(end)


def cas_loop(b: Builder, space: str, at: Mem, width: int, mods: str, step: Step, half: Reg | None = None) -> Reg:
    """old = *at; repeat new = step(old) until the swap succeeds. Returns the old value. ``half`` is the low word of the
    address of the 16-bit half."""
    from stages.lower.spaces import descriptor

    old = b.r(width)
    size = ".64" if width == 2 else ""
    bare = at._replace(desc=None)
    noted = () if half is None else (half,)
    seen = None if half is None else _HALF
    swap = _RETRY if half is None else {**_RETRY, **_HALF}
    if space == "shared":
        b.emit(("LDS.U" if b.has("load-unsigned-named") else "LDS") + size, old, (at,), uses=noted, attrs=seen)
    else:
        order = f".{mods}"
        b.emit(
            f"{'LDG' if space == 'global' else 'LD'}.E{size}{order}",
            old,
            (at._replace(desc=descriptor(b)),),
            uses=noted,
            attrs=seen,
        )
    again = b.new_block()
    b.place(again)
    new = step(b, old)
    got = b.r(width)
    if space == "shared":
        b.emit(f"ATOMS.CAS{size}", got, (at, old, new), uses=noted, attrs=swap)
    else:
        b.emit(
            f"{'ATOMG' if space == 'global' else 'ATOM'}.E.CAS{size}.{mods}",
            (PT, got),
            (bare, old, new),
            uses=noted,
            attrs=swap,
        )
    p, _ = compare(b, "NE", "u64" if width == 2 else "u32", got, old)
    b.copy(old, got)
    b.branch(again, p)
    return old


def _step(b: Builder, inst: PtxInst, op: str, t: str, vals: list[Val]) -> Step:
    """The new value from the old one."""
    width = max(1, b.bits(t) // 32)
    v = b.in_reg(vals[0], width)

    def bitwise(b: Builder, old: Reg) -> Reg:
        d = b.r(width)
        for i in range(width):
            logic(b, b.word(d, i), {"and": 0xC0, "or": 0xFC, "xor": 0x3C}[op], b.word(old, i), b.word(v, i))
        return d

    def add(b: Builder, old: Reg) -> Reg:
        d = b.r(width)
        if t == "f64":
            b.emit("DADD", d, (old, v))
        elif t == "f32":
            b.emit("FADD", d, (old, v))
        elif t in ("f16x2", "f16"):
            b.emit("HADD2", d, (old, v))
        elif t in ("bf16x2", "bf16"):
            one = b.in_reg(Imm("I", 0x3F803F80))
            b.emit("HFMA2.BF16_V2", d, (old, one, v))
        elif width == 2:
            add64(b, d, old, v)
        else:
            add32(b, d, old, v)
        return d

    def extreme(b: Builder, old: Reg) -> Reg:
        d = b.r(width)
        minmax(b, d, t, old, v, op == "max")
        return d

    def exch(b: Builder, old: Reg) -> Reg:
        return v

    if op in ("and", "or", "xor"):
        return bitwise
    if op == "add" and not (t.startswith("bf16") and not b.has("atom-f16-add")):
        return add
    if op in ("min", "max") and t[0] in "us":
        return extreme
    if op == "exch" and width <= 2:
        return exch
    raise b.unsupported(inst)


def _half_loop(
    b: Builder, inst: PtxInst, d: Reg, space: str, at: Mem, op: str, t: str, vals: list[Val], mods: str
) -> None:
    """16-bit operations: compare-and-swap of the word that holds the half."""
    assert at.base is not None or at.offset >= 0
    wide = space != "shared"
    if wide:
        assert at.base is not None
        base = b.r(2)
        add64(b, base, at.base, Imm("I", at.offset & (1 << 64) - 1))
        low = b.lo_r(base)
    else:
        low = b.r()
        add32(b, low, at.base if at.base is not None else RZ, Imm("I", at.offset & 0xFFFFFFFF))
    word, half, sel, shift = b.r(), b.r(), b.r(), b.r()
    logic(b, word, 0xC0, low, Imm("I", 0xFFFFFFFC))
    logic(b, half, 0xC0, low, Imm("I", 2))
    upper, _ = compare(b, "NE", "u32", half, Imm("I", 0))
    b.select(sel, Imm("I", 0x5410), Imm("I", 0x3254), upper)  # insert c's low half into a
    b.emit("SHF.L.U32", shift, (half, Imm("I", 3), RZ))
    place = Mem("M", pair(b, word, b.hi(base)), None, 0, at.desc) if wide else Mem("M", word, None, 0)
    from stages.lower.spaces import descriptor

    mine = b.in_reg(vals[0])

    def current(b: Builder, old: Reg) -> Reg:
        r = b.r()
        b.emit("SHF.R.U32.HI", r, (RZ, shift, old))
        return r

    def insert(b: Builder, old: Reg, v: Reg) -> Reg:
        r = b.r()
        b.emit("PRMT", r, (old, sel, v))
        return r

    if op == "cas":
        want, new = b.ext(vals[0], "u16"), b.in_reg(vals[1])
        old = b.r()
        load = (
            ("LDS.U" if b.has("load-unsigned-named") else "LDS")
            if space == "shared"
            else f"{'LDG' if space == 'global' else 'LD'}.E.{mods}"
        )
        b.emit(
            load, old, (place if space == "shared" else place._replace(desc=descriptor(b)),), uses=(low,), attrs=_HALF
        )
        again, end = b.new_block(), b.new_block()
        b.place(again)
        differs, _ = compare(b, "NE", "u16", current(b, old), want)
        b.branch(end, differs)
        got = b.r()
        v = insert(b, old, new)
        if space == "shared":
            b.emit("ATOMS.CAS", got, (place, old, v), uses=(low,), attrs={**_RETRY, **_HALF})
        else:
            b.emit(
                f"{'ATOMG' if space == 'global' else 'ATOM'}.E.CAS.{mods}",
                (PT, got),
                (place._replace(desc=None), old, v),
                uses=(low,),
                attrs={**_RETRY, **_HALF},
            )
        p, _ = compare(b, "NE", "u32", got, old)
        b.copy(old, got)
        b.branch(again, p)
        b.place(end)
    else:
        step = _step(b, inst, op, t, [mine])

        def whole(b: Builder, word: Reg) -> Reg:
            return insert(b, word, step(b, current(b, word)))

        old = cas_loop(b, space, place, 1, mods, whole, low)
    b.copy(d, current(b, old))


RULES: dict[str, Rule] = {"atom": atom, "red": atom}
