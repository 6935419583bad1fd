"""One-instruction kernels: every arithmetic, logic, comparison, selection, bit and conversion form of the descriptor table,
run by the PTX interpreter, our cubin and ptxas's cubin, on edge cases and random values.

    python -m tests.cosim.one_op [--arch 80 --arch 90 ...] [--only NAME] [--limit N] [--seed N] [--no-ptxas] [--report FILE]

Prints the disagreements, one line a form, and counts.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stages.interpret.floats import FORMATS
from stages.interpret.fpu import BOUNDS, Bound
from stages.interpret.rows import BITS, PURE
from stages.parse import table
from stages.parse.match import type_name
from stages.parse.table import Row
from tests import oracle
from tests.parse.generate import needs, opcode_text, type_tuples

Array = np.ndarray[Any, Any]
THREADS = 256
#: Bytes of one input of one thread, and of its output.
SLOT, OUT = 8, 16
CHUNK = 30
CARRY = ("addc", "subc", "madc")


@dataclass
class Form:
    """One instruction form: text, types of its sources, of its destinations, and how to judge it."""

    opcode: str
    body: str
    sources: list[str]
    dests: list[str]
    name: str
    wide: list[bool] = field(default_factory=list)


def _full(name: str) -> list[tuple[str, Row]]:
    return [(name, row) for row in table.rows(name)]


def names() -> list[str]:
    """Mnemonics that the sweep covers."""
    return [n for n in table.names() if n.split(".")[0] in PURE or n.split(".")[0] in CARRY]


def _modifiers(row: Row) -> Iterator[list[str]]:
    """All combinations of the row's modifiers."""
    slots = [(*(() if s.required else ("",)), *s.values) if s.values else ("",) for s in row.slots]
    yield from (list(c) for c in itertools.product(*slots))


def register(type_: str, k: int) -> str:
    """The register that holds an operand."""
    width = max(BITS[type_], 16)
    return f"%{'p' if type_ == 'pred' else {16: 'h', 32: 'r', 64: 'd'}[width]}{k}"


def _load(type_: str, k: int) -> str:
    if type_ == "pred":
        return f"ld.global.u8 %t0, [%in+{k * SLOT}]; and.b16 %t0, %t0, 1; setp.ne.u16 {register(type_, k)}, %t0, 0;"
    return f"ld.global.{'u' if BITS[type_] == 8 else 'b'}{BITS[type_]} {register(type_, k)}, [%in+{k * SLOT}];"


def _store(type_: str, reg: str, at: int) -> str:
    if type_ == "pred":
        return f"selp.u32 %t1, 1, 0, {reg}; st.global.u32 [%out+{at}], %t1;"
    width = {"h": 16, "r": 32, "d": 64}[reg[1]]
    return f"st.global.b{width} [%out+{at}], {reg};"


SELECTORS = ("", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1")


class Builder:
    """Makes forms from rows."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def form(self, row: Row, mods: list[str], types: tuple[str, ...]) -> Form | None:
        """One form; None where this sweep has no rule for an operand."""
        opcode = opcode_text(row, mods, types)
        name = opcode.split(".")[0]
        operands: list[str] = []
        sources: list[str] = []
        dests: list[tuple[str, str]] = []
        initial: list[str] = []
        for spec in row.operands:
            if spec.when and not any(w in mods for w in spec.when):
                continue
            if spec.optional:
                continue
            type_ = type_name(spec, types)
            role = spec.role
            if spec.vector:
                return None
            if role in ("d", "dp", "d_"):
                if type_ not in BITS and role != "dp":
                    return None
                reg = "%p30" if role == "dp" or type_ == "pred" else register(type_, 30)
                dests.append(("pred" if reg[1] == "p" else type_, reg))
                if spec.pair:
                    operands.append(f"{reg}|%p31")
                    dests.append(("pred", "%p31"))
                else:
                    operands.append(reg)
            elif role == "dpp" and type_ in ("f16", "bf16"):
                operands.append("%p30")  # a scalar half has no second result (measured)
                dests.append(("pred", "%p30"))
            elif role == "dpp":
                operands.append("%p30|%p31")
                dests += [("pred", "%p30"), ("pred", "%p31")]
            elif role == "ps":
                operands.append(register("pred", len(sources)))
                sources.append("pred")
            elif role in ("s", "x"):
                if type_ not in BITS or BITS[type_] > 64:
                    return None
                operands.append(register(type_, len(sources)))
                sources.append(type_)
            elif role == "i":
                operands.append(str(self.rng.choice([0x96, 0xE8, 0xCA, 0x1B, 0x3F, 0x80])))
            elif role in ("sel", "nsel", "msel"):
                k = len(sources)
                sources.append("b32")
                if role == "msel":
                    operands.append(f"%r{k}")
                else:
                    operands.append(f"%r{k}{self.rng.choice(SELECTORS)}")
            elif role == "dsel":
                operands.append(f"%r30{self.rng.choice(SELECTORS[1:])}")
                dests.append(("b32", "%r30"))
            elif role == "dmask":
                operands.append("%r30")
                dests.append(("b32", "%r30"))
            else:
                return None
        lines = [_load(t, k) for k, t in enumerate(sources)]
        extra = ""
        if "cc" in mods or name in CARRY:
            bits = BITS[types[0]]
            t = f"u{bits}"
            r = "r" if bits == 32 else "d"
            before = f"add.cc.{t} %{r}20, %{r}0, %{r}1;" if name != "subc" else f"sub.cc.{t} %{r}20, %{r}0, %{r}1;"
            if name in CARRY:
                initial.append(before)
            if "cc" in mods:
                extra = f"addc.{t} %{r}31, 0, 0;" if not name.startswith("sub") else f"subc.{t} %{r}31, 0, 0;"
                dests.append((t, f"%{r}31"))
        lines += [*initial, f"{opcode} {', '.join(operands)};", extra]
        at = 0
        for type_, reg in dests:
            lines.append(_store(type_, reg, at))
            at += 8
        return Form(opcode, "\n".join(x for x in lines if x), sources, [t for t, _ in dests], name)


def module_text(forms: list[Form], target: str) -> str:
    """A module with one kernel for each form."""
    out = [f".version 9.0\n.target {target}\n.address_size 64"]
    for k, f in enumerate(forms):
        out.append(
            f".visible .entry k{k}(.param .u64 pin, .param .u64 pout)\n{{\n.reg .b16 %h<40>, %t0; .reg .b32 %r<40>, %t1, %ti; .reg .b64 %d<40>, %in, %out, %o;\n"
            f".reg .pred %p<40>;\nld.param.u64 %in, [pin]; ld.param.u64 %out, [pout]; mov.u32 %ti, %tid.x;\n"
            f"mad.wide.u32 %in, %ti, {4 * SLOT}, %in; mad.wide.u32 %out, %ti, {OUT}, %out;\ncvta.to.global.u64 %in, %in; cvta.to.global.u64 %out, %out;\n"
            f"{f.body}\nret;\n}}"
        )
    return "\n".join(out) + "\n"


# --------------------------------------------------------------------------- inputs


def _edges(type_: str) -> list[int]:
    bits = BITS[type_]
    if type_ == "pred":
        return [0, 1]
    element = re.sub(r"x[24]$", "", type_)
    if element in FORMATS and element not in ("tf32",):
        f = FORMATS[element]
        one = (1 - f.emin) << f.prec - 1
        top = (1 << f.prec - 1) - 1
        positive = [
            0, 1, 2, top - 1, top, top + 1, top + 2, 2 * (top + 1), one, one - 1, one + 1, one + (1 << f.prec - 2), one + top, one + top + 1,
            one - top - 1, f.inf - 1, f.inf, one + (5 << f.prec - 1), one + (16 << f.prec - 1), one + (31 << f.prec - 1) + top // 3,
            one + (32 << f.prec - 1), one + (63 << f.prec - 1) + 3, one + (24 << f.prec - 1) + 1, f.nan, f.inf + 1,
        ]  # fmt: skip
        positive = [p for p in positive if 0 <= p < f.sign]
        values = [*positive, *(p | f.sign for p in positive)]
        if element != type_:
            n = int(type_[-1])
            return [v | (values[(k * 7 + 3) % len(values)] << f.bits) if n == 2 else v * 0x01010101 for k, v in enumerate(values)]
        return values
    m = (1 << bits) - 1
    return [0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 127, 128, 255, 256, m, m - 1, m >> 1, (m >> 1) + 1, (m >> 1) + 2, m // 3, m // 5 * 2, 1 << bits // 2, (1 << bits // 2) - 1]


def inputs(form: Form, rng: np.random.Generator) -> Array:
    """Values for THREADS threads and four sources, as uint64."""
    out = rng.integers(0, 1 << 64, (THREADS, 4), dtype=np.uint64)
    for k, type_ in enumerate(form.sources):
        edges = np.array(_edges(type_), np.uint64)
        pick = rng.integers(0, len(edges), THREADS)
        use = rng.random(THREADS) < 0.6
        out[:, k] = np.where(use, edges[pick], out[:, k])
        # Like exponents make sums and differences interesting.
        element = type_.removesuffix("x2")
        if k and element in ("f32", "f64", "f16", "bf16") and form.sources[k - 1] == type_:
            close = rng.random(THREADS) < 0.2
            out[:, k] = np.where(close, out[:, k - 1] ^ rng.integers(0, 1 << 12, THREADS, dtype=np.uint64), out[:, k])
        if type_ == "u32" and k:
            small = rng.random(THREADS) < 0.4
            out[:, k] = np.where(small, rng.integers(0, 70, THREADS, dtype=np.uint64), out[:, k])
        if element in ("f32", "f64") and form.name in ("cvt", "sin", "cos", "ex2", "tanh", "set", "setp"):
            near = rng.random(THREADS) < 0.35
            scale = rng.choice([1.0, 10.0, 300.0, 70000.0, 3e9, 1e19], THREADS)
            value = np.round((rng.random(THREADS) - 0.5) * scale, 0) / rng.choice([1, 2, 4, 3], THREADS)
            bits = value.astype(np.float32).view(np.uint32).astype(np.uint64) if element == "f32" else value.view(np.uint64)
            out[:, k] = np.where(near, bits, out[:, k])
    if form.name in ("sin", "cos"):  # no bound is documented beyond 100 pi
        x = out[:, 0].astype(np.uint32).view(np.float32)
        out[:, 0] = np.where(np.isfinite(x) & (np.abs(x) > 300), np.uint64(0x40490FDB), out[:, 0])
    if form.name in ("div", "rem") and form.sources[0][0] in "us":
        mask = np.uint64((1 << BITS[form.sources[1]]) - 1)
        out[:, 1] = np.where(out[:, 1] & mask == 0, np.uint64(3), out[:, 1])  # division by zero is unspecified
    return out


# --------------------------------------------------------------------------- comparison


def bound(form: Form) -> Bound | None:
    """The error that the manual allows."""
    return BOUNDS.get(form.opcode) or BOUNDS.get(form.opcode.replace(".ftz", ""))


def _values(bits: Array, type_: str) -> list[tuple[Array, Any]]:
    """(bits, format or None) of each element of a result."""
    element = re.sub(r"x[24]$", "", type_)
    if element == "tf32":
        return [(bits & np.uint64(0xFFFFFFFF), FORMATS["f32"])]
    if element not in FORMATS or BITS[type_] == 8:
        return [(bits & np.uint64((1 << max(BITS[type_], 16)) - 1), None)]
    f = FORMATS[element]
    count = int(type_[-1]) if element != type_ else 1
    return [((bits >> np.uint64(k * f.bits)) & np.uint64((1 << f.bits) - 1), f) for k in range(count)]


def wrong(form: Form, want: Array, got: Array) -> Array:
    """Which threads disagree."""
    from stages.interpret.floats import decode, is_nan

    bad = np.zeros(THREADS, np.bool_)
    limit = bound(form)
    if form.opcode.startswith("div.full") or form.opcode.startswith("div.approx"):
        limit = Bound(ulp=2)
    for k, type_ in enumerate(form.dests):
        for (a, f), (b, _) in zip(_values(want[:, k], type_), _values(got[:, k], type_), strict=True):
            differ = a != b
            if f is not None and f.kind != "finite":
                nan = is_nan(a, f) & is_nan(b, f)
                differ &= ~nan
                if limit is not None and differ.any():
                    with np.errstate(all="ignore"):
                        x, y = decode(a, f), decode(b, f)
                        step = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(x), 2.0**f.emin))) - f.prec + 1)
                        room = np.maximum.reduce([limit.rel * np.abs(x), np.full(x.shape, limit.abs), limit.ulp * step])
                        ok = np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= room)
                    differ &= ~ok
            bad |= differ
    return bad


def run_interpreter(module: Any, entry: str, data: Array) -> Array:
    """Outputs as (threads, 2) uint64."""
    out = np.full((THREADS, 2), 0xA5A5A5A5A5A5A5A5, np.uint64)
    module.launch(entry, (1, 1, 1), (THREADS, 1, 1), [data.copy(), out])
    return out


def run_cubin(device: Any, entry: str, data: Array) -> Array:
    """The same by the simulator."""
    out = np.full((THREADS, 2), 0xA5A5A5A5A5A5A5A5, np.uint64)
    device.launch(entry, 1, THREADS, [data.copy(), out])
    return out


def forms_for(target: str, only: str, limit: int, seed: int) -> list[Form]:
    """The forms that a target has; at most `limit` a row."""
    number = int(re.sub(r"\D", "", target))
    rng = random.Random(seed)
    builder = Builder(rng)
    out: list[Form] = []
    for name in names():
        if only and not re.fullmatch(only, name.split(".")[0]):
            continue
        for row in table.rows(name):
            if row.gate.target > number:
                continue
            if row.gate.only and not any(n == number or (s in "fg" and number >= n and (s == "g" or number // 10 == n // 10)) for n, s in row.gate.only):
                continue
            combos = [(m, t) for m in _modifiers(row) for t in type_tuples(row)]
            if len(combos) > limit:
                combos = [combos[0], *rng.sample(combos[1:], limit - 1)]
            for mods, types in combos:
                if needs(row, [m for m in mods if m], types)[1] > number:
                    continue
                form = builder.form(row, mods, types)
                if form is not None:
                    out.append(form)
    return out


class Sweep:
    """State of one sweep: counts and lines."""

    def __init__(self, target: str, use_ptxas: bool, seed: int, report: Any) -> None:
        self.target = target
        self.use_ptxas = use_ptxas
        self.seed = seed
        self.report = report
        self.counts: Counter[str] = Counter()
        self.times: Counter[str] = Counter()

    def say(self, line: str) -> None:
        """One finding."""
        print(line, flush=True)
        if self.report is not None:
            self.report.write(line + "\n")
            self.report.flush()

    def _ours(self, text: str) -> Any:
        from orchestrator.api import ChainError, compile_ptx
        from stages.simulate import Device, ImageError

        start = time.perf_counter()
        try:
            return Device(compile_ptx(text, self.target))
        except ChainError as error:
            return str(error)
        except (ImageError, Exception) as error:
            return f"{type(error).__name__}: {error}"
        finally:
            self.times["compile"] += int(1000 * (time.perf_counter() - start))

    def _theirs(self, text: str) -> Any:
        from stages.simulate import Device

        got = oracle.compile_ptx(text, self.target)
        if isinstance(got, oracle.ToolError):
            return str(got)
        try:
            return Device(got.read_bytes())
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    def chunk(self, forms: list[Form]) -> None:
        """Judge some forms together; a module that somebody refuses is taken apart."""
        from stages.interpret.launch import Module, ParseError

        text = module_text(forms, self.target)
        try:
            module = Module(text, self.target)
        except ParseError as error:
            if len(forms) > 1:
                self._halves(forms)
                return
            self.counts["refused by the parser"] += 1
            del error
            return
        theirs = self._theirs(text) if self.use_ptxas else None
        if isinstance(theirs, str) and len(forms) > 1:
            self._halves(forms)
            return
        ours = self._ours(text)
        if isinstance(ours, str) and len(forms) > 1:
            self._halves(forms)
            return
        for k, form in enumerate(forms):
            self._judge(form, f"k{k}", module, ours, theirs)

    def _halves(self, forms: list[Form]) -> None:
        middle = len(forms) // 2
        self.chunk(forms[:middle])
        self.chunk(forms[middle:])

    def _judge(self, form: Form, entry: str, module: Any, ours: Any, theirs: Any) -> None:
        self.counts["forms"] += 1
        data = inputs(form, np.random.default_rng([self.seed, sum(form.opcode.encode())]))
        want: Any = None
        try:
            want = run_interpreter(module, entry, data)
        except Exception as error:
            self.counts["interpreter cannot"] += 1
            self.say(f"{self.target} {form.opcode}: interpreter: {type(error).__name__}: {str(error)[:150]}")
        for who, device in (("ours", ours), ("ptxas", theirs)):
            if device is None:
                continue
            if isinstance(device, str):
                self.counts[f"{who} cannot"] += 1
                self.say(f"{self.target} {form.opcode}: {who}: {' '.join(device.split())[:220]}")
                continue
            try:
                got = run_cubin(device, entry, data)
            except Exception as error:
                self.counts[f"{who} cannot run"] += 1
                self.say(f"{self.target} {form.opcode}: {who}: run: {type(error).__name__}: {str(error)[:220]}")
                continue
            if want is None:
                continue
            bad = wrong(form, want, got)
            self.counts[f"{who} compared"] += 1
            if bad.any():
                self.counts[f"{who} differs"] += 1
                t = int(bad.argmax())
                shown = ",".join(f"{int(data[t, j]) & (1 << max(BITS[x], 1)) - 1:#x}" for j, x in enumerate(form.sources))
                a, b = (",".join(f"{int(v[t, j]) & (1 << max(BITS[x], 16)) - 1:#x}" for j, x in enumerate(form.dests)) for v in (want, got))
                self.say(f"{self.target} {form.opcode}: {who} differs on {int(bad.sum())}: ({shown}) -> {b}, interpreter {a}")


def main(argv: list[str] | None = None) -> int:
    """Command line; see the module's text."""
    parser = argparse.ArgumentParser(description="One-instruction kernels, judged three ways.")
    parser.add_argument("--arch", action="append", default=[], help="80, 90, 120a, ... (default 80, 90, 120a)")
    parser.add_argument("--only", default="", help="a regular expression for mnemonics")
    parser.add_argument("--limit", type=int, default=60, help="most forms of one descriptor row")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-ptxas", action="store_true")
    parser.add_argument("--report", default="")
    options = parser.parse_args(argv)
    report = open(options.report, "w") if options.report else None
    bad = 0
    for arch in options.arch or ["80", "90", "120a"]:
        sweep = Sweep(f"sm_{arch}", not options.no_ptxas and oracle.have("ptxas"), options.seed, report)
        start = time.perf_counter()
        forms = forms_for(f"sm_{arch}", options.only, options.limit, options.seed)
        for at in range(0, len(forms), CHUNK):
            sweep.chunk(forms[at : at + CHUNK])
        sweep.say(f"sm_{arch}: {dict(sweep.counts)} in {time.perf_counter() - start:.0f} s")
        bad += sweep.counts["ours differs"] + sweep.counts["ptxas differs"]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
