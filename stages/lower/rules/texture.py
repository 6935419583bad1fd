"""Textures: tex, tld4, txq and the queries of suq that use the same hardware.

Every fact here was measured on ptxas 13.0's output for all forms (tests/lower/texture_trace.py compares ours with it,
value by value):

* The values of a fetch are, in order: array index, coordinates, bindless handle (up to sm_89), level of detail,
  offsets,
  value to compare with, sample. `ir_format.isa.vectors` distributes them over the two operands.
* A kernel has no implicit derivatives: up to sm_110 ``tex`` and ``tex.base`` fetch level -32.0, which is the base
  level.
  sm_120 fetches without a level, and with ``.LZ`` if integer coordinates were converted to floats.
* If sampler and texture are one (``texmode_unified``), 1d textures are 2d ones with y = 0, and integer coordinates use
  TLD. With separate samplers, integer coordinates without a level are converted to floats, because TLD has no sampler.
* Offsets are four bits each, packed; for TXD they are in the upper half of the array index. Array indices are clamped
  to
  0..65535.
* Cube coordinates are divided by the largest magnitude.
* Results are packed: components that no instruction reads are left out of the mask.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ir_format import ptx
from ir_format.isa.vectors import split
from ir_format.model import ABS, RZ, ZERO, Imm, Name, Operand, Reg
from ir_format.ptx import PtxFunction, PtxInst, PtxParam
from ir_format.record import NamedTuple
from stages.lower.abi.calls import call_driver
from stages.lower.builder import Builder, Rule
from stages.lower.headers import Header, handle, object_handle, separate
from stages.lower.rules import texture_calls
from stages.lower.rules.descriptors import described

Val = Reg | Imm

#: PTX geometry -> SASS geometry, coordinates without array index
GEOMETRIES = {
    "1d": ("1D", 1), "2d": ("2D", 2), "3d": ("3D", 3), "cube": ("CUBE", 3), "a1d": ("ARRAY_1D", 1),
    "a2d": ("ARRAY_2D", 2), "acube": ("ARRAY_CUBE", 3),
    "2dms": ("2D", 2), "a2dms": ("ARRAY_2D", 2),
}  # fmt: skip
#: Level of a fetch in a kernel, which has no derivatives: -32.0.
BASE_LEVEL = Imm("I", 0xC2000000)
DIMENSIONS = {"width": 1, "height": 2, "depth": 4}


class Fetch(NamedTuple):
    """The parts of a fetch. ``place`` holds array index and coordinates, ``rest`` the values after the handle, and
    ``mods`` the modifiers by meaning."""

    op: str
    geometry: str
    place: list[Val]
    rest: list[Val]
    mods: list[str]


def _parts(x: ptx.Operand) -> tuple[ptx.Operand, ...]:
    return x.elems if isinstance(x, ptx.Vec) else (x,)


def _target(x: ptx.Operand) -> tuple[tuple[ptx.Operand, ...], ptx.Operand | None]:
    """Result components and residency predicate."""
    return (_parts(x.first), x.second) if isinstance(x, ptx.Pair) else (_parts(x), None)


class _Seen(NamedTuple):
    function: PtxFunction | None
    counts: Counter[int]


_last = _Seen(None, Counter())


def _mentions(pf: PtxFunction) -> Counter[int]:
    """The number of times that the function's body names each register."""
    global _last
    if _last.function is not pf:
        counts: Counter[int] = Counter()
        for item in pf.body:
            if isinstance(item, PtxInst):
                if item.guard is not None:
                    counts[item.guard[0]] += 1
                for x in item.operands:
                    _count(x, counts)
        _last = _Seen(pf, counts)
    return _last.counts


def _count(x: object, counts: Counter[int]) -> None:
    if isinstance(x, ptx.Reg | ptx.NotPred):
        counts[x.index] += 1
    elif isinstance(x, tuple | list):
        for y in x:
            _count(y, counts)
    elif hasattr(x, "__slots__"):
        for name in x.__slots__:
            _count(getattr(x, name), counts)


def unread(b: Builder, x: ptx.Operand) -> bool:
    """Whether no other operand of the function names the result."""
    return isinstance(x, ptx.Sink) or (isinstance(x, ptx.Reg) and _mentions(b.pf)[x.index] == 1)


# --------------------------------------------------------------------------- values


def array_index(b: Builder, x: Val) -> Val:
    """An index clamped to 16 bits."""
    if type(x) is Imm:
        return Imm("I", min(x.value, 0xFFFF))
    d = b.r()
    op = "VIMNMX.U32" if b.has("int-min-max-vector") else "IMNMX.U32"
    b.emit(op, d, (x, Imm("I", 0xFFFF), Reg("P", ZERO)))
    return d


def packed_offsets(b: Builder, parts: Sequence[ptx.Operand], count: int, every: int = 4, size: int = 4) -> Val:
    """Signed offsets of ``size`` bits, one ``every`` this many bits, the first lowest; a single one is taken as it
    is."""
    values = [b.src(p, "b32") for p in parts[:count]]
    if count == 1:
        return values[0]
    constant = 0
    field = (1 << size) - 1
    first = (1 << every) - 1
    made: Reg | None = None
    for k, v in enumerate(values):
        if type(v) is Imm:
            constant |= (v.value & (field if k else first)) << every * k
            continue
        part = b.r()
        if k == 0:
            b.emit("LOP3.LUT", part, (v, Imm("I", first), RZ, Imm("I", 0xC0)))
        else:
            up = b.r()
            b.emit("IMAD.SHL.U32", up, (v, Imm("I", 1 << every * k), RZ))
            b.emit(
                "LOP3.LUT", part, (up, Imm("I", field << every * k), made or RZ, Imm("I", 0xEA))
            )  # (up & mask) | made
        made = part
    if made is None:
        return Imm("I", constant)
    if constant:
        both = b.r()
        b.emit("LOP3.LUT", both, (made, Imm("I", constant), RZ, Imm("I", 0xFC)))
        made = both
    return made


def cube_direction(b: Builder, parts: list[Val]) -> list[Val]:
    """Coordinates divided by the largest of their magnitudes."""
    x, y, z = [b.in_reg(p) for p in parts]
    yz, most, inverse = b.r(), b.r(), b.r()
    larger = (Reg("P", ZERO, 0, 1, 4),)
    b.emit("FMNMX", yz, (y._replace(flags=ABS), z._replace(flags=ABS), *larger))
    b.emit("FMNMX", most, (yz, x._replace(flags=ABS), *larger))
    b.emit("MUFU.RCP", inverse, (most,))
    out: list[Val] = []
    for v in (x, y, z):
        d = b.r()
        b.emit("FMUL", d, (inverse, v))
        out.append(d)
    return out


def as_float(b: Builder, x: Val) -> Reg:
    """A signed integer coordinate as a float."""
    d = b.r()
    b.emit("I2FP.F32.S32" if b.has("int-to-float-alu") else "I2F", d, (x,))
    return d


# --------------------------------------------------------------------------- instructions


def emit_fetch(b: Builder, inst: PtxInst, f: Fetch, header: Header, out: ptx.Operand, half: bool) -> None:
    """The instruction, and its results to their places."""
    elems, flag = _target(out)
    # Unread results are left out of the mask. If two results go to one register, the last one counts.
    wanted = [k for k, e in enumerate(elems) if not unread(b, e)]
    count = 2 if half else 1
    mask = sum(1 << k * count + j for k in wanted for j in range(count))
    mods = [*f.mods]
    where: tuple[Operand, ...]
    if not b.has("textures"):
        _called(b, inst, f, header, elems, flag, wanted, mask, half)
        return
    values = list(f.rest)
    gradient = f.op == "TXD"
    place = list(f.place)
    uniform = b.has("header-in-uniform")
    if uniform:
        where = ()
    elif header.numbers is not None:
        where = header.numbers
    else:
        where = ()
        (place if gradient else values).insert(0, header.register(b))
        mods.insert(1 if f.op == "TLD4" else 0, "B")
    scattered = b.has("texture-scattered") and not gradient and len(place) + len(values) <= 4
    if scattered:
        mods.insert(0, "SCR")
        everything = place + values
        n, _ = split(len(place), len(values), True)
        place, values = everything[:n], everything[n:]
    packed = half and scattered  # two halves per register
    if packed:
        mods.insert(next((k for k, m in enumerate(mods) if m not in ("SCR", "B", "R", "G", "A")), len(mods)), "F16.RN")
    a, c = block(b, place), block(b, values)
    registers = [2 * k + j for k in wanted for j in range(2)] if half and not packed else list(range(len(wanted)))
    need = len(registers)
    if packed:
        first, second = b.r(), b.r()
        results: list[Reg] = [first, second][: max(need, 1)]
        d, e = first, (second if need > 1 else RZ)
    else:
        d = b.r(min(max(need, 1), 2))
        e = b.r(need - 2) if need > 2 else RZ
        results = [
            b.lo_r(d),
            *([b.hi_r(d)] if need > 1 else []),
            *[e._replace(sub=j, width=1) for j in range(max(need - 2, 0))],
        ]
    residency = b.p() if flag is not None and not isinstance(flag, ptx.Sink) else Reg("P", ZERO)
    # The predicate needs the fetch even if no component is read: the mask must not be empty then.
    dsts = (residency, e, d) if need else (residency, RZ, RZ)
    name = ".".join((f.op, *[m for m in mods if m]))

    def fetch(where: tuple[Operand, ...], who: Reg | None) -> None:
        b.emit(name, dsts, (a, c, *where, Name("N", f.geometry), Imm("I", mask)), who)

    if uniform:
        header.uniform(b, fetch, dsts)
    else:
        fetch(where, None)
    if half and not packed:
        for k, element in enumerate(elems[k] for k in wanted):
            pack_halves(b, b.dst(element), results[2 * k], results[2 * k + 1])
    else:
        for value, element in zip(results, [elems[k] for k in wanted]):
            b.copy(b.dst(element), value)
    if flag is not None and not isinstance(flag, ptx.Sink):
        # The hardware's predicate is true if a texel was absent; PTX's is true if all were present.
        b.emit(
            "PLOP3.LUT",
            (b.dst(flag, "pred"), Reg("P", ZERO)),
            (residency, Reg("P", ZERO), Reg("P", ZERO), Imm("I", 0x0F), Imm("I", 0)),
        )


def _called(
    b: Builder,
    inst: PtxInst,
    f: Fetch,
    header: Header,
    elems: tuple[ptx.Operand, ...],
    flag: ptx.Operand | None,
    wanted: list[int],
    mask: int,
    half: bool,
) -> None:
    """A fetch by a function of the driver."""
    read = flag is not None and not isinstance(flag, ptx.Sink)
    word, results = texture_calls.fetch(
        b, f.op, f.geometry, f.place, f.rest, f.mods, header, mask, flag is not None, inst.line
    )
    for k, element in enumerate([elems[k] for k in wanted]):
        if half:
            pack_halves(b, b.dst(element), results[2 * k], results[2 * k + 1])
        else:
            b.copy(b.dst(element), results[k])
    if read and flag is not None:
        texture_calls.absent(b, b.dst(flag, "pred"), word)


def pack_halves(b: Builder, d: Reg, low: Reg, high: Reg) -> None:
    """Two floats rounded to halves in one register."""
    if b.has("pack-halves"):
        b.emit("F2FP.F16.F32.PACK_AB" if b.has("pack-names-types") else "F2FP.PACK_AB", d, (high, low))
        return
    x, y = b.r(), b.r()
    b.emit("F2F.F16.F32", x, (low,))
    b.emit("F2F.F16.F32", y, (high,))
    b.emit("PRMT", d, (x, Imm("I", 0x5410), y))


def block(b: Builder, values: list[Val]) -> Reg:
    """Values in neighbouring registers; RZ for none."""
    if not values:
        return RZ
    if len(values) == 1:
        return b.in_reg(values[0])
    to = b.r(len(values))
    for k, v in enumerate(values):
        b.copy(to._replace(sub=k, width=1), v)
    return to


# --------------------------------------------------------------------------- tex


def tex(b: Builder, inst: PtxInst) -> None:
    """tex, tex.base, tex.level, tex.grad."""
    with b.region():
        _tex(b, inst)


def _tex(b: Builder, inst: PtxInst) -> None:
    out, bracket, *rest = inst.operands
    assert isinstance(bracket, ptx.Bracket)
    geometry = next(m for m in inst.mods if m in GEOMETRIES)
    name, dims = GEOMETRIES[geometry]
    if (
        b.has("texture-gradient-called")
        and "grad" in inst.mods
        and (dims == 3 or (len(rest) > 2 and not isinstance(rest[-1], ptx.Vec)))
    ):
        _driver_gradient(b, inst, geometry, dims)
        return
    integer = inst.types[-1] == "s32"
    lod = next((m for m in inst.mods if m in ("base", "level", "grad")), "")
    header = handle(b, inst, bracket.parts[:-1])
    parts = list(_parts(bracket.parts[-1]))
    coordinate = "s32" if integer else "f32"
    sample = b.src(parts.pop(0), "b32") if geometry.endswith("ms") else None
    place: list[Val] = []
    index: Val | None = None
    if geometry[0] == "a":
        index = array_index(b, b.src(parts.pop(0), "b32"))
    coordinates: list[Val] = [b.src(p, coordinate) for p in parts[:dims]]
    multisample = sample is not None
    level: list[Val] = []
    gradients: list[list[Val]] = []
    if lod == "level":
        level = [b.src(rest.pop(0), "b32")]
    elif lod == "grad":
        gradients = [[b.src(p, "f32") for p in _parts(rest.pop(0))[:dims]] for _ in range(2)]
    offset: Val | None = None
    if rest and isinstance(rest[0], ptx.Vec):
        offset = packed_offsets(b, rest.pop(0).elems, dims)  # type: ignore[union-attr]
    compare = b.src(rest.pop(0), "f32") if rest else None
    if rest:
        raise b.unsupported(inst, "operands")
    if lod == "grad" and (compare is not None or dims == 3):
        raise b.unsupported(inst, "derivatives of 3d and cube textures, and with a comparison, before sm_90")
    fetch_texel = integer and (multisample or lod == "level" or geometry == "1d" or not separate(b))
    if integer and not fetch_texel:
        coordinates = [as_float(b, c) for c in coordinates]
    if name.endswith("CUBE"):
        coordinates = cube_direction(b, coordinates)
    if geometry == "1d" and not fetch_texel and not separate(b):
        name, dims = "2D", 2
        coordinates.append(Imm("I", 0))
        gradients = [[*g, Imm("I", 0)] for g in gradients]
    half = inst.types[0] == "f16x2"
    place = [*([index] if index is not None else []), *coordinates]
    mods: list[str] = []
    values: list[Val] = []
    if gradients:
        emit_fetch(b, inst, _gradient(b, name, coordinates, index, offset, gradients), header, out, half)
        return
    if fetch_texel:
        mods.append("LL" if level else "LZ")
        values += level
    elif level:
        mods.append("LL")
        values += level
    elif b.has("texture-level-zero"):
        mods.append("LL")
        values.append(BASE_LEVEL)
    elif separate(b) and integer:
        mods.append("LZ")
    if offset is not None:
        mods.append("AOFFI")
        values.append(offset)
    if compare is not None:
        mods.append("DC")
        values.append(compare)
    if sample is not None:
        mods.append("MS")
        values.append(sample)
    if fetch_texel and level:
        mods.append("CL")
    emit_fetch(b, inst, Fetch("TLD" if fetch_texel else "TEX", name, place, values, mods), header, out, half)


_HANDLE = PtxParam("h", "b64", 8, 8)
_FOUR = PtxParam("v", "b32", 16, 16)
_ONE = PtxParam("w", "b32", 4, 4)


def _driver_gradient(b: Builder, inst: PtxInst, geometry: str, dims: int) -> None:
    """The driver's function for derivatives of 3d and cube textures and with a comparison (sm_90 on, as ptxas has it):
    handles, index and coordinates, both derivatives, offsets, the value to compare with; it returns residency and four
    components."""
    out, bracket, dx, dy, *rest = inst.operands
    assert isinstance(bracket, ptx.Bracket)
    handles = bracket.parts[:-1]
    place = list(_parts(bracket.parts[-1]))
    index = [place.pop(0)] if geometry[0] == "a" else []
    elems, flag = _target(out)
    resident = "pred_" if isinstance(out, ptx.Pair) else ""
    name = f"__cuda_syscall_tex_grad_{resident}{geometry}_v4_{inst.types[0].removesuffix('x2')}_f32"
    params, args = [], []
    for h in handles:
        params.append(_HANDLE)
        args.append(object_handle(b, inst, h))
    vectors = [
        [*[b.src(x, "b32") for x in index], *[b.src(x, "f32") for x in place[:dims]]],
        *[[b.src(x, "f32") for x in _parts(d)[:dims]] for d in (dx, dy)],
    ]
    if len(handles) == 2:
        name += "_texmode_independent"
    if rest and isinstance(rest[0], ptx.Vec):
        name += "_offset"
        vectors.append([b.src(x, "b32") for x in rest.pop(0).elems[:dims]])  # type: ignore[union-attr]
    for v in vectors:
        params.append(_FOUR)
        args.append(block(b, [*v, *[v[-1]] * (4 - len(v))]))
    if rest:
        name += "_depth_compare"
        params.append(_ONE)
        args.append(b.in_reg(b.src(rest.pop(0), "f32")))
    if rest:
        raise b.unsupported(inst, "operands")
    b.ctx.unit.attrs["isa_class"] = max(2, b.ctx.unit.attrs.get("isa_class", 1))
    residency, *got = [r[0] for r in call_driver(b, name, params, args, (_ONE,) * 5)]
    for x, value in zip(elems, got, strict=False):
        if not isinstance(x, ptx.Sink):
            b.copy(b.dst(x), value)
    if flag is not None and not isinstance(flag, ptx.Sink):
        b.emit("ISETP.NE.U32.AND", (b.dst(flag, "pred"), Reg("P", ZERO)), (residency, RZ, Reg("P", ZERO)))


def _gradient(
    b: Builder, name: str, coordinates: list[Val], index: Val | None, offset: Val | None, gradients: list[list[Val]]
) -> Fetch:
    """TXD: pairs of derivatives; offsets above the array index."""
    place = list(coordinates)
    if offset is not None:
        up = b.r()
        b.emit("IMAD.SHL.U32", up, (b.in_reg(offset), Imm("I", 1 << 16), RZ))
        if index is not None:
            both = b.r()
            b.emit("LOP3.LUT", both, (b.in_reg(index), up, RZ, Imm("I", 0xFC)))
            up = both
        place.append(up)
    elif index is not None:
        place.append(index)
    values = [v for pair in zip(*gradients) for v in pair]
    return Fetch("TXD", name, place, values, [] if offset is None else ["AOFFI"])


# --------------------------------------------------------------------------- tld4 and queries


def tld4(b: Builder, inst: PtxInst) -> None:
    """One component of the four texels that a filter would take."""
    with b.region():
        out, bracket, *rest = inst.operands
        assert isinstance(bracket, ptx.Bracket)
        geometry = next(m for m in inst.mods if m in GEOMETRIES)
        name, dims = GEOMETRIES[geometry]
        component = next(m for m in inst.mods if m in ("r", "g", "b", "a")).upper()
        header = handle(b, inst, bracket.parts[:-1])
        parts = list(_parts(bracket.parts[-1]))
        place: list[Val] = [array_index(b, b.src(parts.pop(0), "b32"))] if geometry[0] == "a" else []
        coordinates: list[Val] = [b.src(p, "f32") for p in parts[:dims]]
        place += cube_direction(b, coordinates) if dims == 3 else coordinates
        mods, values = [component], []
        if rest and isinstance(rest[0], ptx.Vec):
            values.append(packed_offsets(b, rest.pop(0).elems, dims, 8, 6))  # type: ignore[union-attr]
            mods.append("AOFFI")
        if rest:
            values.append(b.src(rest.pop(0), "f32"))
            mods.append("DC")
        if rest:
            raise b.unsupported(inst, "operands")
        emit_fetch(b, inst, Fetch("TLD4", name, place, values, mods), header, out, False)


def query(b: Builder, inst: PtxInst) -> None:
    """Sizes of a texture or surface; the other facts are in the driver's tables."""
    what = next((m for m in inst.mods if m in DIMENSIONS), "")
    if not what:
        with b.region():
            described(b, inst)
        return
    with b.region():
        dst, at, *rest = inst.operands
        header = handle(b, inst, (at,))
        level = b.src(rest[0], "b32") if rest else Imm("I", 0)
        if not b.has("textures"):
            b.copy(b.dst(dst), texture_calls.size(b, what, header, level))
            return
        place: list[Val] = [level]
        mods: list[str] = []
        where: tuple[Operand, ...] = ()
        uniform = b.has("header-in-uniform")
        if not uniform and header.numbers is not None:
            where = header.numbers
        elif not uniform:
            place.insert(0, header.register(b))
            mods = ["B"]
        d = b.r()
        at_place = block(b, place)

        def ask(where: tuple[Operand, ...], who: Reg | None) -> None:
            srcs = (at_place, Name("N", "TEX_HEADER_DIMENSION"), *where, Imm("I", DIMENSIONS[what]))
            b.emit(".".join(("TXQ", *mods)), (RZ, d), srcs, who)

        if uniform:
            header.uniform(b, lambda where, who: ask((where[0], Imm("I", 0)), who), (d,))
        else:
            ask(where, None)
        b.copy(b.dst(dst), d)


RULES: dict[str, Rule] = {"tex": tex, "tld4": tld4, "txq": query, "suq": query}
