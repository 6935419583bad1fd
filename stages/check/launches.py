"""Generated launches for a kernel: shapes, buffers, scalars, all drawn from a seed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ir_format.ptx import Addr, PtxInst, PtxModule, PtxParam, PtxUnit, SReg, Sym
from stages.check.kernel_constants import Words, near, words_of
from stages.check.pointers import Field, Use, pointer_fields

Arr = NDArray[Any]
Dim3 = tuple[int, int, int]
BUFFER_BYTES: Final = 1 << 16
#: Attempts at a launch that fill constant variables; the others leave them zero.
ATTEMPTS_WITH_CONSTANTS: Final = 2
#: Dynamic shared memory of a kernel: less than the most, and the most that any SM has.
MUCH_SHARED: Final = 1 << 16
MOST_SHARED: Final = 227 << 10
_FLOATS: Final = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
_WIDTH: Final = {"8": 1, "16": 2, "32": 4, "64": 8}


@dataclass(slots=True)
class Launch:
    """Geometry and arguments. `args` has the bytes of each parameter. `buffers` has the arrays for pointers, in the
    order of the parameters: by the number of the parameter, or by a number beyond those if `fields` has the pointer's
    place inside a parameter (number, offset). `types` and `names` have the same numbers. `constants`: the contents of
    constant variables that a host program would fill in."""

    entry: str
    grid: Dim3
    block: Dim3
    shared: int
    args: list[bytes]
    buffers: dict[int, Arr] = field(default_factory=dict)
    types: dict[int, str] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    constants: dict[str, Arr] = field(default_factory=dict)
    fields: dict[int, tuple[int, int]] = field(default_factory=dict)
    seed: int = 0

    def values(self) -> list[Any]:
        """Arguments for a run: fresh copies of the buffers; parameters with pointers inside are records."""
        out: list[Any] = [self.buffers[k].copy() if k in self.buffers else a for k, a in enumerate(self.args)]
        for number, (k, at) in self.fields.items():
            if not isinstance(out[k], tuple):
                out[k] = out[k], {}
            out[k][1][at] = self.buffers[number].copy()
        return out

    def arrays(self, args: list[Any]) -> dict[int, Arr]:
        """The buffers among the arguments of a run."""
        return {k: args[self.fields[k][0]][1][self.fields[k][1]] if k in self.fields else args[k] for k in self.buffers}

    def describe(self) -> str:
        """The launch in words."""
        scalars = [
            f"{self.names[k]}={int.from_bytes(a, 'little'):#x}"
            for k, a in enumerate(self.args)
            if k not in self.buffers and len(a) <= 8
        ]
        return (
            f"seed {self.seed}, grid {self.grid}, block {self.block}, shared {self.shared}, "
            f"{', '.join(scalars) or 'no scalars'}"
        )

    def resized(self, grid: Dim3, block: Dim3) -> Launch:
        """The same with another geometry."""
        return replace(self, grid=grid, block=block)


def uses(unit: PtxUnit, names: tuple[str, ...]) -> bool:
    for f in unit.functions:
        for item in f.body:
            for x in getattr(item, "operands", ()):
                if isinstance(x, SReg) and x.name in names:
                    return True
    return False


def doubles(unit: PtxUnit) -> bool:
    """Whether a kernel computes in double precision."""
    return any(isinstance(x, PtxInst) and "f64" in x.types for f in unit.functions for x in f.body)


#: Instructions in which all 32 threads of a warp must take part: with fewer, results are undefined.
_WHOLE_WARPS: Final = ("mma", "wmma", "ldmatrix", "stmatrix", "movmatrix")


def whole_warps(unit: PtxUnit) -> bool:
    """Whether a kernel uses matrices that a warp holds."""
    return any(isinstance(x, PtxInst) and x.op in _WHOLE_WARPS for f in unit.functions for x in f.body)


def shapes(unit: PtxUnit) -> list[tuple[Dim3, Dim3]]:
    """Geometries to try: within the kernel's own bounds, and of whole warps if it needs them."""
    found = _shapes(unit)
    return [x for x in found if threads_of((x[1], (1, 1, 1))) % 32 == 0] or found if whole_warps(unit) else found


def _shapes(unit: PtxUnit) -> list[tuple[Dim3, Dim3]]:
    d = unit.functions[0].directives
    flat: list[tuple[Dim3, Dim3]] = [
        ((2, 1, 1), (64, 1, 1)),
        ((1, 1, 1), (32, 1, 1)),
        ((3, 1, 1), (50, 1, 1)),
        ((1, 1, 1), (128, 1, 1)),
        ((1, 1, 1), (640, 1, 1)),
    ]
    few: Dim3 = (3, 1, 1)
    if uses(unit, ("%tid.y", "%ctaid.y", "%ntid.y")):
        flat = [
            ((2, 2, 1), (16, 16, 1)),
            ((2, 2, 1), (8, 8, 1)),
            ((1, 1, 1), (16, 16, 1)),
            ((2, 1, 1), (32, 2, 1)),
            *flat[1:2],
        ]
        few = (3, 2, 1)
    flat[4:4] = [
        ((1, 1, 1), (1, 1, 1)),
        ((2, 1, 1), few),
    ]  # no other thread does what the first one must do; a tree of sums has one step
    if d.reqntid is not None:
        block = _three(d.reqntid)
        flat = [(grid, block) for grid, _ in flat]
    elif d.maxntid is not None:
        most = 1
        for x in d.maxntid:
            most *= x
        # Code with launch bounds is mostly written for exactly that many threads (tables and exchanges in shared
        # memory): every other shape has that number.
        full = _three(d.maxntid)
        rest = [(g, b) for g, b in flat if b[0] * b[1] * b[2] <= most] or [((1, 1, 1), full)]
        flat = [x for pair in zip([(g, full) for g, _ in flat], rest * len(flat), strict=False) for x in pair]
    if d.reqnctapercluster is not None:
        c = _three(d.reqnctapercluster)
        flat = [((-(-g[0] // c[0]) * c[0], -(-g[1] // c[1]) * c[1], -(-g[2] // c[2]) * c[2]), b) for g, b in flat]
    return flat


def threads_of(shape: tuple[Dim3, Dim3]) -> int:
    """Threads of a geometry."""
    return int(np.prod(shape, dtype=np.int64))


def _three(x: tuple[int, ...]) -> Dim3:
    full = (*x, 1, 1)
    return full[0], full[1], full[2]


def _dynamic(module: PtxModule, unit: PtxUnit, threads: int, attempt: int) -> int:
    """Bytes of dynamic shared memory: some at first, more if that was not enough, at most what static variables
    leave."""
    used = set(unit.variables)
    shared = [v for v in module.variables if v.space == "shared" and v.name in used]
    shared += [v for f in unit.functions for v in f.vars if v.space == "shared"]
    if all(v.linkage != "extern" for v in shared):
        return 0
    static = sum(v.size + v.align for v in shared if v.linkage != "extern")
    wanted = max(4096, 32 * threads) if attempt == 0 else MUCH_SHARED if attempt == 1 else MOST_SHARED
    return max(0, min(wanted, MOST_SHARED - static) & ~15)


#: How buffers are filled, by seed: moderate numbers; special values among them; magnitudes over the whole format;
#: both; zeros and the smallest numbers.
STYLES: Final = ("tame", "special", "spread", "edges", "small")
#: Share of a buffer's elements that are numbers of the code.
FROM_CODE: Final = 0.03
#: Styles whose launches have up to this many times the blocks (at most four times `MANY_THREADS`): rare paths through
#: the code need many threads.
_MANY: Final = {"spread": 16, "edges": 16, "special": 4}
MANY_THREADS: Final = 2048
#: Seeds of launches with very many threads, each with its own elements (the styles are `spread` and `edges`); their
#: threads and bytes of a buffer.
WIDE_SEEDS: Final = (1001, 1004)
WIDE_THREADS: Final = 1 << 16
#: Double precision costs the interpreter and the simulator this many times as much as anything else (measured: 1 us a
#: lane, for fused multiply-add).
DOUBLE: Final = 8
WIDE_BYTES: Final = 1 << 20


def fill(
    type_: str, rng: np.random.Generator, style: str, count: int = BUFFER_BYTES, words: Words | None = None
) -> Arr:
    """Contents of a buffer of a type, in one of the `STYLES` (tame: integers below 32, which are often indices). Some
    elements are numbers of the code."""
    data = _fill(type_, rng, style, count)
    width = 8 * _width(type_)
    table = {} if words is None else words.floats if type_ in _FLOATS else words.whole
    if style in ("special", "spread", "edges") and width in table:
        cells: Any = data[: len(data) // (width // 8) * (width // 8)].view(f"u{width // 8}")
        some = near(table[width], width, rng, len(cells))
        if type_ in _FLOATS:
            some ^= np.uint64(1 << width - 1) * rng.integers(0, 2, len(cells), dtype=np.uint64)
        cells[:] = np.where(rng.random(len(cells)) < FROM_CODE, some, cells)
    return data


def _width(type_: str) -> int:
    """Bytes of an element of a buffer; packed pairs and types without a size count as words."""
    return next((w for s, w in _WIDTH.items() if type_.endswith(s) and "x" not in type_), 4)


def _fill(type_: str, rng: np.random.Generator, style: str, count: int) -> Arr:
    if type_ in _FLOATS:
        return _floats(_FLOATS[type_], rng, style, count)
    width = _width(type_)
    if width == 1:
        return rng.integers(0, 256, count, dtype=np.uint8)
    whole: Any = {2: np.uint16, 4: np.uint32, 8: np.uint64}[width]
    n = count // width
    if style in ("tame", "small"):
        return rng.integers(0, 32 if style == "tame" else 3, n).astype(whole).view(np.uint8).copy()
    bits = 8 * width
    v = rng.integers(0, 1 << bits, n, dtype=np.uint64)
    if style == "spread":  # as many short numbers as long ones, of both signs
        v >>= rng.integers(0, bits, n, dtype=np.uint64)
        v = np.where(rng.random(n) < 0.3, ~v + np.uint64(1), v)
    powers = np.uint64(1) << rng.integers(0, bits, n, dtype=np.uint64)
    near = powers + rng.integers(0, 3, n, dtype=np.uint64) - np.uint64(1)
    ends = np.array([0, 1, 2, (1 << bits) - 1, 1 << bits - 1, (1 << bits - 1) - 1], np.uint64)
    kind = rng.random(n)
    v = np.where(kind < 0.2, ends[rng.integers(0, len(ends), n)], np.where(kind < 0.4, near, v))
    return np.asarray(v.astype(whole).view(np.uint8)).copy()


def _floats(kind: Any, rng: np.random.Generator, style: str, count: int) -> Arr:
    """Floats of moderate size (a tenth of them powers of two and small integers). Styles other than tame add special
    values, bit patterns of any exponent, or both: zeros, infinities, NaNs, the smallest and greatest of the format and
    their neighbours. Exponents at both ends are more frequent than others, since code for divisions and roots takes
    other paths there."""
    info = np.finfo(kind)
    word: Any = {2: np.uint16, 4: np.uint32, 8: np.uint64}[info.bits // 8]
    n = count // word().itemsize
    sign = np.uint64(1 << info.bits - 1)
    # even a small addend shows in a sum with them; if subnormal results are flushed, in one with the smallest normal
    # numbers
    if style == "small":
        least = np.where(rng.random(n) < 0.1, np.uint64(1 << info.nmant), np.uint64(0)) + rng.integers(
            0, 3, n, dtype=np.uint64
        )
        return np.asarray(
            (least | np.where((rng.random(n) < 0.3) & (least < 3), sign, np.uint64(0))).astype(word).view(np.uint8)
        ).copy()
    scales = [0.1, 1.0, 8.0] if style == "tame" else [0.1, 1.0, 8.0, 1000.0, 30000.0]
    v = (rng.standard_normal(n) * rng.choice(scales, n)).astype(kind)
    exact = np.where(rng.random(n) < 0.5, np.exp2(rng.integers(-8, 9, n)), rng.integers(-9, 10, n)).astype(kind)
    v = np.where(rng.random(n) < 0.1, exact, v)
    if style in ("spread", "edges"):
        exponents = (1 << info.bits - 1 - info.nmant) - 1
        near = min(info.nmant + 4, exponents // 3)
        where = rng.integers(0, 3, n)
        exponent = np.where(
            where == 0,
            rng.integers(0, exponents, n),
            np.where(where == 1, rng.integers(0, near, n), exponents - 1 - rng.integers(0, near, n)),
        )
        if style == "spread" and rng.random() < 0.5:  # no product or sum is infinite (that would hide everything else)
            exponent = exponents // 2 + rng.integers(-exponents // 8, exponents // 8, n)
        fraction = rng.integers(0, 1 << info.nmant, n, dtype=np.uint64)
        bits = (
            exponent.astype(np.uint64) << np.uint64(info.nmant)
            | fraction
            | np.where(rng.random(n) < 0.5, sign, np.uint64(0))
        )
        v = np.where(rng.random(n) < (0.7 if style == "spread" else 0.3), bits.astype(word).view(kind), v)
    if style in ("special", "edges"):
        one, top, tiny = (int(np.array([x], kind).view(word)[0]) for x in (1.0, info.max, info.tiny))
        two = one + (1 << info.nmant)  # halves of the smallest numbers are ties
        rare = [
            1,
            2,
            3,
            tiny - 1,
            tiny,
            tiny + 1,
            one - 1,
            one,
            one + 1,
            two,
            top - 1,
            top,
            top + 2,
            (top + 1) | (1 << info.nmant - 1),
        ]
        table = np.array([*rare, 0, 0, 0, top + 1, top + 1, top + 1], np.uint64)  # top + 1 is the infinity
        some = table[rng.integers(0, len(table), n)] | np.where(rng.random(n) < 0.5, sign, np.uint64(0))
        v = np.where(rng.random(n) < (0.1 if style == "special" else 0.4), some.astype(word).view(kind), v)
    return np.asarray(v.astype(kind).view(np.uint8)).copy()


def _constants(module: PtxModule, unit: PtxUnit, rng: np.random.Generator, style: str) -> dict[str, Arr]:
    """Contents of the unit's constant variables without initialiser. Arrays are often declared as bytes. They are then
    filled with the type of the loads that name them (if none does: of all loads from constant memory), if these have
    one type. A variable that may hold pointers gets no contents.
    """
    loads: dict[str, set[str]] = {}
    for f in unit.functions:
        for x in f.body:
            if isinstance(x, PtxInst) and x.op == "ld" and x.has("const") and isinstance(x.operands[1], Addr):
                base = x.operands[1].base
                for name in ("", base.name if isinstance(base, Sym) else ""):
                    loads.setdefault(name, set()).add(x.types[-1])
    used = set(unit.variables)
    out = {}
    for v in module.variables:
        types = {v.type} if v.type != "b8" else loads.get(v.name) or loads.get("", set())
        type_ = min(types) if len(types) == 1 else ""
        if (
            v.space == "const"
            and v.init is None
            and not v.relocs
            and v.name in used
            and 0 < v.size <= BUFFER_BYTES
            and type_ in (*_FLOATS, "b16", "b32", "u16", "u32", "s16", "s32")
        ):
            if v.size % _WIDTH[type_[1:]] == 0:
                out[v.name] = fill(type_, rng, style, v.size)
    return out


#: What the extreme float is in a launch that has one, and whether all others are of its size. (A NaN would hide
#: everything else.)
_EXTREMES: Final = (
    ("infinite", False), ("subnormal", False), ("little", True), ("great", True), ("great", False), ("little", False),
    ("great", True), ("subnormal", True),
)  # fmt: skip


def _extreme(kind: Any, rng: np.random.Generator, which: str) -> bytes:
    """One float from either end of its format, of either sign: infinite, of greatest or smallest exponent, or
    subnormal."""
    info = np.finfo(kind)
    word: Any = {2: np.uint16, 4: np.uint32, 8: np.uint64}[info.bits // 8]
    infinite = (1 << info.bits - 1 - info.nmant) - 1
    near = int(
        min(info.nmant + 4, infinite // 3) ** rng.random()
    )  # values nearer the end are likelier: code for divisions takes other paths at the very ends
    exponent = {"infinite": infinite, "great": infinite - near, "little": near, "subnormal": 0}[which]
    fraction = int(rng.integers(1, 1 << info.nmant)) if exponent < infinite else 0
    return np.array([exponent << info.nmant | fraction | int(rng.integers(0, 2)) << info.bits - 1], word).tobytes()


def _chosen(params: list[PtxParam], at: int, wanted: bool) -> str:
    """The name of one of the parameters if one is wanted; they take turns, the last one first."""
    return params[-1 - at % len(params)].name if params and wanted else ""


def _related(kind: Any, rng: np.random.Generator, extreme: bytes) -> bytes:
    """A float for a parameter that goes with the extreme one: as much or half as much with the other sign, so that sums
    and quotients of the two are no extremes."""
    value = np.frombuffer(extreme, kind)
    with np.errstate(over="ignore"):
        return np.asarray(-value * np.array([rng.choice([0.5, 1.0, 1.0, 1.0])], kind), kind).tobytes()


def _scalar(
    p: PtxParam,
    rng: np.random.Generator,
    threads: int,
    style: str,
    attempt: int,
    long: bool | None,
    counts: list[int],
    turn: int = -1,
) -> bytes:
    """A parameter by value: near the number of threads at first, smaller with every attempt; if `turn` is set, the
    counts and their neighbours in turn; `long`: whether it is the one that makes loops run long (None if there is
    none)."""
    if p.type in _FLOATS and not p.dims:
        usual = [1.5, -2.25, 0.5, 3.0, -0.75, 0.1, 0.015625]
        return np.array(
            [rng.choice(usual if style != "edges" else [0.0, -1.0, 1e-3, 4096.0])], _FLOATS[p.type]
        ).tobytes()
    if p.dims or p.size > 8:
        words = rng.integers(0, 8, -(-p.size // 4), dtype=np.uint32)
        return words.tobytes()[: p.size]
    few = int(rng.integers(0, 8))  # code unrolled four- and eightfold has tails for every remainder
    fewer = max(threads - few, 1)
    first = (
        [threads, fewer, 2 * threads + few]
        if style in ("spread", "edges")
        else [threads, fewer, 2 * threads + few, 16 + few]
    )
    middle = [64, 50, 33, 40, 16 + few]
    choices = [first, middle if long is None else [2, 3, 5], middle, [40, 17, 8, 5, 3], [20, 5, 3, 2, 1], [1, 2, 0, 1]][
        min(attempt, 5)
    ]
    if long:
        choices = [1100 + few + 8 * int(rng.integers(0, 64))]
    elif (
        turn >= 0
        and (beside := [c + d for c in counts if c <= (MANY_THREADS if attempt < 2 else 64) for d in (0, 1, -1)])
        and attempt < 5
    ):
        choices = [beside[turn % len(beside)]]
    value = int(rng.choice(choices)) & (1 << 8 * p.size) - 1
    return value.to_bytes(p.size, "little")


def _extreme_bits(floats: list[PtxParam], extreme: str, rng: np.random.Generator, turn: int) -> dict[str, bytes]:
    """Parameter -> its bytes: the one named ``extreme``, and in some turns others that go with it."""
    which, kin = _EXTREMES[turn % len(_EXTREMES)]
    bits = {p.name: _extreme(_FLOATS[p.type], rng, which) for p in floats if p.name == extreme}
    if bits and kin:
        bits |= {
            p.name: _related(_FLOATS[p.type], rng, bits[extreme])
            for p in floats
            if p.name != extreme and p.size == len(bits[extreme])
        }
    return bits


def make(module: PtxModule, unit: PtxUnit, shape: tuple[Dim3, Dim3], seed: int, attempt: int = 0) -> Launch:
    """One launch. Higher attempts use smaller scalars and tamer data, for kernels that leave their buffers."""
    rng = np.random.default_rng([seed, zlib.crc32(unit.name.encode()), attempt])
    grid, block = shape
    style = (
        STYLES[2 * seed % len(STYLES)] if attempt < 2 else STYLES[0]
    )  # (spread floats enter long loops early: their sums hide little)
    wide, size = seed in WIDE_SEEDS, WIDE_BYTES if seed in WIDE_SEEDS else BUFFER_BYTES
    if wide:
        grid = (
            grid[0] * max(1, WIDE_THREADS // threads_of(shape) // (DOUBLE if doubles(unit) else 1)),
            grid[1],
            grid[2],
        )
    elif style in _MANY and attempt == 0:
        times = MANY_THREADS // threads_of(shape)
        grid = (max(4, min(times, _MANY[style])) * grid[0], grid[1], grid[2])
    total = threads_of((grid, block))
    found = pointer_fields(unit)
    launch = Launch(
        unit.name, grid, block, _dynamic(module, unit, block[0] * block[1] * block[2], attempt), [], seed=seed
    )
    params = unit.functions[0].params
    whole = [
        p for p in params if p.size in (4, 8) and not p.dims and p.type not in _FLOATS and (p.name, 0) not in found
    ]
    longest = _chosen(whole, seed // 2, seed % 2 == 1 and attempt < 2 and not wide)
    nothing = _chosen(
        whole, seed // 10, seed % 10 == 9 and len(whole) > 1
    )  # (the only one is mostly the number of elements: no thread would do anything)
    floats = [p for p in params if p.type in _FLOATS and not p.dims]
    turn = seed // 2 - 1
    extreme = _chosen(floats, turn // len(_EXTREMES), seed % 2 == 0 < seed and attempt < 5 and not wide)
    bits = _extreme_bits(floats, extreme, rng, turn)
    words = words_of(unit)
    counts = sorted({*words.counts, *(times * extent for extent in block if 1 < extent <= 64 for times in (1, 2, 3))})
    launch.names += [p.name for p in params]
    for k, p in enumerate(params):
        use = found.get((p.name, 0))
        inside = sorted(at for name, at in found if name == p.name and at % 8 == 0 and at + 8 <= p.size)
        if inside and p.size > 8:
            launch.args.append(_scalar(p, rng, total, style, attempt, False, []))
            for at in inside:
                number = len(launch.names)
                launch.names.append(f"{p.name}+{at}")
                launch.fields[number] = k, at
                launch.types[number] = element_type(found[p.name, at])
                launch.buffers[number] = fill(launch.types[number], rng, style, size, words)
        elif use is not None and p.size == 8:
            type_ = element_type(use)
            launch.buffers[k] = fill(type_, rng, style, size, words)
            launch.types[k] = type_
            launch.args.append(bytes(8))
        elif p.name == nothing:
            launch.args.append(bytes(p.size))
        elif p.name in bits:
            launch.args.append(bits[p.name])
        elif (
            len(bits) > 1 and p in whole and p.name != longest
        ):  # quotients by powers of two are exact, so that sums of related values can cancel
            launch.args.append(int(rng.choice([2, 2, 4, 4, 8])).to_bytes(p.size, "little"))
        else:
            launch.args.append(
                _scalar(
                    p,
                    rng,
                    total,
                    style,
                    attempt,
                    p.name == longest if longest else None,
                    counts,
                    seed // 2 + 5 * k if (seed + k) % 2 else -1,
                )
            )
    if attempt < ATTEMPTS_WITH_CONSTANTS:
        launch.constants = _constants(module, unit, rng, style)
    return launch


def element_type(use: Use) -> str:
    """The type of most accesses; on a tie a float type wins over an integer."""
    if not use.types:
        return "b32"
    floats = [t for t in use.types if t in _FLOATS]
    best = max(use.types.values())
    for t in floats:
        if use.types[t] == best:
            return t
    return min(t for t, n in use.types.items() if n == best)


def pointers_in_structs(unit: PtxUnit) -> list[Field]:
    """Pointers at unusual places inside parameters: such launches cannot be generated."""
    sizes = {p.name: p.size for p in unit.functions[0].params}
    return sorted(f for f in pointer_fields(unit) if f[1] % 8 or f[1] + 8 > sizes.get(f[0], 0))


def launches(module: PtxModule, unit: PtxUnit, seeds: int) -> Iterator[tuple[tuple[Dim3, Dim3], int]]:
    """Shapes and seeds: each shape gets other contents of buffers in every turn."""
    options = shapes(unit)
    for seed in range(seeds):
        yield options[(seed + (seed // len(STYLES) if len(options) % len(STYLES) == 0 else 0)) % len(options)], seed
