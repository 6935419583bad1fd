"""Constant evaluation: instructions derived from the rows, against the simulator and against the host's arithmetic."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest

from ir_format import isa
from ir_format.flow import read_regs
from ir_format.model import ZERO, Imm, Inst, Reg
from stages.optimize.evaluate.floats import BF16, F16, F32, F64, Format, decoded, encoded, product, total
from stages.optimize.evaluate.table import EVALUATORS, evaluate, results
from stages.simulate.build import Build, Context, Unsupported
from stages.simulate.program import OPS
from stages.simulate.state import RZ_ROW, UP0, UR0, Lanes
from tests.isa.generate import random_words
from tests.optimize.loop_kernels import differences
from tests.optimize.test_loops_licm import optimized

#: Words at which something changes: zeros, ones, limits, subnormals, infinities and a NaN of f32 and of halves.
WORDS = (
    0, 1, 2, 31, 32, 33, 63, 64, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x3F800000,
    0xBF800000, 0x00800000, 0x807FFFFF, 0x7F800000, 0x7F7FFFFF, 0x7FC00000, 0x3C003C01, 0x04000001, 0x7BFF7C00,
    0x3FF00000, 0x41E00000, 0x4F000000, 0x5F000000, 0x33800000,
)  # fmt: skip


def contents(seed: int) -> np.ndarray:
    """What a warp's registers hold: random words, special ones, and floats that are close to one another."""
    (words,) = Lanes(1, seed).keep
    g = np.random.default_rng(seed)
    kind = g.integers(0, 3, words.shape)
    near = np.ldexp(g.integers(-512, 512, words.shape).astype(np.float32), g.integers(-24, 24, words.shape))
    special = g.choice(np.array(WORDS, np.uint32), words.shape)
    mixed = np.where(kind == 0, words, np.where(kind == 1, special, near.astype(np.float32).view(np.uint32)))
    mixed[RZ_ROW] = 0
    mixed[UR0:] = mixed[UR0:, :1]
    return mixed


def row_of(r: Reg, lane: int = 0) -> int:
    return r.num + r.sub + lane + (UR0 if r.file == "UR" else 0)


def read(of: Lanes, thread: int, r: Reg, lane: int) -> int:
    if r.file in ("P", "UP"):
        return int(of.preds[r.num + (UP0 if r.file == "UP" else 0)][thread])
    return int(of.rows[row_of(r, lane)][thread])


def simulate(inst: Inst, sm: int, of: Lanes) -> None:
    """Let the simulator run an instruction."""
    context = Context(of, SimpleNamespace(regs=255), sm, {}, None, None, None)  # type: ignore[arg-type]
    run = OPS[inst.op](Build(inst, context, 0, 0))
    run(of.view(1), None)


def folded_pieces(inst: Inst, of: Lanes, thread: int) -> list[tuple[Reg, int]] | None:
    """What the evaluator says that an instruction writes."""
    got = evaluate(inst, lambda r, lane: read(of, thread, r, lane))
    return None if got is None else results(inst, got)


def compared(sm: int, count: int) -> tuple[dict[str, int], list[str]]:
    """How often each mnemonic was folded, and what differs from the simulator: words of every form until
    ``count`` of it were folded, or many were not."""
    folded: dict[str, int] = {}
    wrong: list[str] = []
    target = isa.target(sm)
    done: dict[int, int] = {}
    state = Lanes(1, sm)
    filled, predicates = [contents(n) for n in range(4)], state.preds.copy()
    for n, (form, word) in enumerate(random_words(target, 4 * count + 2, sm, set(EVALUATORS))):
        inst = target.decode(word) if done.get(id(form), 0) < count else None
        if not isinstance(inst, Inst) or inst.op not in EVALUATORS or inst.op not in OPS:
            continue
        inst.guard = None
        touched = [*read_regs(inst), *written(inst)]
        if any(r.num + r.sub + r.width > 240 for r in touched) or len(set(written(inst))) < len(written(inst)):
            continue
        state.keep[0][:], state.preds[:] = filled[n % 4], predicates
        answers = [(thread, folded_pieces(inst, state, thread)) for thread in range(0, 32, 4)]
        if all(a is None for _, a in answers):
            continue
        try:
            with np.errstate(all="ignore"):
                simulate(inst, sm, state)
        except Unsupported:
            continue
        done[id(form)] = done.get(id(form), 0) + 1
        folded[inst.op] = folded.get(inst.op, 0) + 1
        for thread, pieces in answers:
            found = [(r, v, read(state, thread, r, 0)) for r, v in pieces or ()]
            bad = [(r, hex(v), hex(got)) for r, v, got in found if v != got]
            if bad:
                wrong.append(f"{target.format(inst)}: {bad}")
                break
    return folded, wrong


def written(inst: Inst) -> list[Reg]:
    return [d for d in inst.dsts if type(d) is Reg and d.num != ZERO]


def test_every_form_computes_what_the_simulator_computes() -> None:
    folded: dict[str, int] = {}
    for sm in (80, 100, 120):
        found, wrong = compared(sm, 1)
        assert wrong == []
        folded |= found
    missing = EVALUATORS.keys() & OPS.keys() - folded.keys()
    # a random MOV has a byte mask that keeps a part of the old value; UIMNMX is of 64 bits, which nothing emits
    assert missing <= {"MOV", "UIMNMX"}


FORMATS: dict[str, tuple[Format, type[np.floating], type[np.unsignedinteger]]] = {
    "f16": (F16, np.float16, np.uint16),
    "f32": (F32, np.float32, np.uint32),
    "f64": (F64, np.float64, np.uint64),
}


def numbers(kind: str, count: int) -> list[int]:
    """Bits of numbers of a format: any, special ones, and close ones."""
    f, host, word = FORMATS[kind]
    g = np.random.default_rng(f.bits)
    near = (g.integers(-64, 64, count) * 2.0 ** g.integers(-14, 10, count)).astype(host).view(word).tolist()
    wild = [random.Random(n).getrandbits(f.bits) for n in range(count)]
    special = [0, 1, f.sign, f.sign | 1, f.infinity - 1, f.infinity, 1 << f.precision - 1, (1 << f.precision - 1) - 1]
    return [b for b in near + wild + special if b & ~f.sign <= f.infinity]


@pytest.mark.parametrize("kind", FORMATS)
def test_sums_and_products_are_the_hosts(kind: str) -> None:
    """To nearest even, as numpy computes on the host; what has no bits that are known for sure (NaN) is left out."""
    f, host, word = FORMATS[kind]
    some = numbers(kind, 120)
    pairs = list(zip(some, reversed(some), strict=True)) + list(zip(some, some[7:] + some[:7], strict=True))
    a, b = (np.array([p[n] for p in pairs], word).view(host) for n in (0, 1))
    with np.errstate(all="ignore"):
        wanted = {"sum": (a + b).view(word).tolist(), "product": (a * b).view(word).tolist()}
        invalid = {"sum": np.isnan(a + b), "product": np.isnan(a * b)}
    for name, exact in (("sum", total), ("product", product)):
        for (x, y), want, bad in zip(pairs, wanted[name], invalid[name], strict=True):
            if not bad:
                assert encoded(exact(decoded(x, f), decoded(y, f)), f) == want, (name, hex(x), hex(y))


@pytest.mark.parametrize("f", [F16, BF16, F32])
def test_rounding_of_exact_values(f: Format) -> None:
    """Each mode against its definition: the nearest of the two neighbours, or the one on a side."""
    rng = random.Random(5)
    for n in range(400):
        bits = rng.getrandbits(f.bits - 1) % (f.infinity - 1)
        low, high = decoded(bits, f), decoded(bits + 1, f)
        scale = min(low.scale, high.scale) - 8
        a, b = low.count(scale), high.count(scale)
        x = rng.choice((a + (b - a) // 2, rng.randint(a, b), a, b - 1))
        for negative in (False, True):
            v = low._replace(negative=negative, size=x, scale=scale)
            near = bits if (x - a, bits & 1) < (b - x, bits + 1 & 1) else bits + 1
            up, down = (bits if x == a else bits + 1), (bits + 1 if x == b else bits)
            sign = f.sign if negative else 0
            want = {"RN": near, "RZ": down, "RM": up if negative else down, "RP": down if negative else up}
            for mode, size in want.items():
                assert encoded(v, f, mode) == sign | size, (n, mode)


def test_what_is_never_folded() -> None:
    """NaNs, whose bits are the hardware's; what rounds up to a normal number where subnormals are flushed; unknown
    operands; modifiers that no evaluator knows."""
    d, a, b = Reg("R", 0), Reg("R", 1), Reg("R", 2)

    def folded(op: str, x: int, y: int, *mods: str) -> int | None:
        got = evaluate(Inst(op, mods, (d,), (a, b)), lambda r, lane: (0, x, y)[r.num])
        return None if got is None else got[0]

    assert folded("FADD", 0x7F800000, 0xFF800000) is None
    assert folded("FMUL", 0x7FC00001, 0x3F800000) is None
    assert folded("FMUL", 0x00FFFFFF, 0x3F000000) == 0x00800000
    assert folded("FMUL", 0x00FFFFFF, 0x3F000000, "FTZ") is None
    assert folded("FMUL", 0x00800000, 0x3F000000, "FTZ") == 0
    assert folded("FMUL", 0x3F800000, 0x3F800000, "FMZ") is None
    for mask, want in ((15, 5), (3, None)):
        got = evaluate(Inst("MOV", (), (d,), (a, Imm("I", mask))), lambda r, lane: 5)
        assert (None if got is None else got[0]) == want
    assert folded("MUFU", 0x3F800000, 0) is None
    assert evaluate(Inst("FADD", (), (d,), (a, b)), lambda r, lane: None) is None


#: Constants only: roundings, subnormals, saturation, minima, comparisons, conversions, doubles.
CONSTANTS = """{ .reg .f64 %d<4>; mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f33800001; mov.f32 %f3, 0f00000003;
add.rm.f32 %f4, %f1, %f2; mov.b32 %r3, %f4; st.global.u32 [%rd5], %r3;
fma.rp.ftz.f32 %f4, %f2, %f3, %f1; mov.b32 %r3, %f4; st.global.u32 [%rd5+256], %r3;
mul.rn.f32 %f4, %f3, 0f3F000000; max.f32 %f4, %f4, 0f80000000; mov.b32 %r3, %f4; st.global.u32 [%rd5+512], %r3;
fma.rz.sat.f32 %f4, %f1, %f2, 0f3F7FFFFF; mov.b32 %r3, %f4; st.global.u32 [%rd5+768], %r3;
setp.lt.ftz.f32 %p1, %f3, 0f00000000; selp.u32 %r3, 3, 5, %p1; cvt.rpi.s32.f32 %r4, 0fC02CCCCD;
add.u32 %r3, %r3, %r4; cvt.rz.f32.u32 %f4, %r3; mov.b32 %r4, %f4; st.global.u32 [%rd5+1024], %r4;
mov.f64 %d1, 0d3FB999999999999A; mov.f64 %d2, 0d400921FB54442D18; fma.rm.f64 %d3, %d1, %d2, %d1;
cvt.rp.f32.f64 %f4, %d3; mov.b32 %r3, %f4; st.global.u32 [%rd5+1280], %r3; mov.b64 {%r3, %r4}, %d3;
xor.b32 %r3, %r3, %r4; st.global.u32 [%rd5+1536], %r3; ret; }"""


@pytest.mark.parametrize("target", ["sm_80", "sm_120"])
def test_constants_in_a_program(target: str) -> None:
    """Nothing is left to compute, and the values are the PTX interpreter's."""
    unit, _ = optimized(CONSTANTS, target)
    left = {i.op for b in unit.functions[0].blocks for i in b.insts}
    assert left.isdisjoint(EVALUATORS.keys() - {"COPY", "MOV", "IADD3", "IMAD", "LEA", "SHF", "LOP3"}), left
    assert differences(CONSTANTS, target, (1,)) == []
