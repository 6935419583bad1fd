"""Random CUDA kernels whose threads diverge and converge in every way: early exits, breaks from depth, switch, goto,
loops with several exits, short circuit, with barriers, shuffles, votes, locks and flags.

    python -m tests.fuzz.converge [--seeds 0:84] [--sm 75,80,90,100,120] [--opt 3] [--kernels 24] [--minutes 60]
    [--journal FILE]

Each kernel's result is independent of the order of threads. It runs on the host (every thread a fiber,
tests/kernels/host), in the simulator as ptxas's cubin and as ours, and ours again in an adverse order of warps
(:mod:`stages.simulate.orders`, in turn). Findings: a value that differs, a launch that never ends, and more than 1.5
times the warp instructions that ptxas's code executes (kernels that wait for locks and flags are not counted: how often
they test depends on the order). A run with a journal continues where it was interrupted, and sums up everything in the
journal.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from ir_format.diag import OriasError
from orchestrator.api import compile_ptx
from stages.simulate import Device, SimError
from tests import oracle
from tests.kernels.model import HERE

THREADS: Final = 64
WORDS: Final = 8  # words of the result per thread
LIMIT: Final = 60_000
ORDERS: Final = ("far", "back", "parts", "random", "starve")
#: Most warp instructions of a launch that runs again with separate warps, which costs twenty times as much.
SLOW: Final = 12_000
RATIO: Final = 1.5
#: A kernel that runs longer on the host (others end within milliseconds) is not judged, but counted as skipped.
HOST_SECONDS: Final = 5
ENDLESS: Final = "endless"
_HEAD: Final = """#define KERNEL extern "C" __global__ void
#ifdef SHIM_ENTRY
#define PAUSE shim_wait(SHIM_READY)
#define __threadfence_block()
#define __syncwarp() shim_exchange(0xffffffffu, 0)
#else
#define PAUSE
#endif
"""


class Kernel:
    """One random kernel: ``text``; ``waits``: whether its threads spin."""

    def __init__(self, name: str, rng: random.Random) -> None:
        self.name = name
        self.rng = rng
        self.waits = False
        self.labels = 0
        self.budget = rng.choice((8, 14, 22))
        self.exits = False  # some threads may have exited
        self.rounds: list[bool] = []  # loops around that all threads go round: whether all must come again
        self.calls = rng.random() < 0.2
        body = ""
        while self.budget > 0:
            body += self.statement(3, whole=True, loop=False, out=None)
        function = ""
        if self.calls:
            function = (
                f"__device__ __noinline__ unsigned f_{name}(const unsigned *in, unsigned x, "
                f"unsigned y) {{ unsigned s = y; \n#pragma unroll 1\nwhile (x & 7) {{ s += in[x & 63]; "
                f"if (s % 5 == 3) return s; x = x * 3 + 1 >> 1; }}\n"
                "if (s & 1) s ^= in[s & 63]; else s -= 7; return s; }\n"
            )
        self.text = (
            f"{function}KERNEL {name}(const unsigned *in, unsigned *out, "
            f"unsigned n) {{ __shared__ unsigned sh[64]; __shared__ unsigned lock[2]; "
            f"__shared__ volatile unsigned flag[64]; __shared__ volatile unsigned sum[2];\n"
            "unsigned t = threadIdx.x, lane = t & 31; unsigned a = in[t], b = in[t + 64], c = t * 7 + 1, "
            "d = n; unsigned *o = out + t * 8;\n"
            "sh[t] = a; flag[t] = 0; if (t == 0) { lock[0] = 0; lock[1] = 0; sum[0] = 0; sum[1] = 0; "
            "} __syncthreads();\n"
            f"{body}o[0] = a; o[1] = b; o[2] = c; o[3] = d; "
            f"{'__syncthreads(); o[6] = sum[0]; o[7] = sum[1];' if not self.exits else ''} }}\n"
        )

    def var(self) -> str:
        return self.rng.choice("abcd")

    def value(self) -> str:
        rng = self.rng
        v, w = self.var(), self.var()
        return rng.choice(
            (
                v,
                f"({v} + {w})",
                f"({v} ^ {w})",
                f"({v} * 3 - {w})",
                f"in[{v} & 127]",
                f"in[({v} + {w}) & 127]",
                f"({v} >> {rng.randint(1, 4)})",
                str(rng.randint(-9, 99)),
            )
        )

    def condition(self, depth: int = 1) -> str:
        rng = self.rng
        plain = rng.choice((
            f"(({self.var()} & {1 << rng.randrange(4)}) != 0)",
                f"({self.var()} % {rng.choice((3, 5, 7))} == {rng.randrange(3)})", f"({self.value()} < {self.value()})",
                    f"(in[{self.var()} & 127] & {1 << rng.randrange(3)})",
        ))  # fmt: skip
        if depth and rng.random() < 0.35:
            return f"({plain} {rng.choice(('&&', '||'))} {self.condition(depth - 1)})"
        return plain

    def work(self) -> str:
        rng = self.rng
        v = self.var()
        return rng.choice((
            f"{v} += {self.value()};\n", f"{v} = {self.value()} - {v};\n", f"{v} ^= {self.value()} * 5;\n",
                f"o[{rng.randrange(4, 6)}] = {self.value()};\n",
                    f"{v} += in[{self.var()} & 127] * {self.value()}; o[4] = {v};\n",
            f"{v} = f_{self.name}(in, {self.var()}, {v});\n" if self.calls else f"{v}--;\n",
        ))  # fmt: skip

    def block(self, depth: int, whole: bool, loop: bool, out: str | None) -> str:
        return "{ " + "".join(self.statement(depth, whole, loop, out) for _ in range(self.rng.randint(1, 4))) + "}\n"

    def statement(self, depth: int, whole: bool, loop: bool, out: str | None) -> str:
        """``whole``: all threads that have not exited come here together; ``loop``: break and continue are allowed;
        ``out``: a label outside all loops here."""
        rng = self.rng
        self.budget -= 1
        kind = rng.random()
        if depth <= 0 or self.budget <= 0:
            kind *= 0.4
        if kind < 0.2:
            return "".join(self.work() for _ in range(rng.randint(1, 5)))
        if kind < 0.3 and whole:
            return self.together()
        if kind < 0.36:
            if loop and not whole:
                leave = rng.choice(("break;", "continue;", f"goto {out};" if out else "break;"))
                return f"if ({self.condition()}) {{ {self.work()}{leave} }}\n"
            if out and not whole:
                return f"if ({self.condition()}) {{ {self.work()}goto {out}; }}\n"
            return self.work()
        if kind < 0.4:
            if rng.random() < 0.7:
                more = "".join(self.work() for _ in range(rng.randint(0, 3)))
                leave = "" if any(self.rounds) else "return; "
                self.exits |= bool(leave)
                return f"if ({self.condition()}) {{ {more}o[0] = {self.value()}; {leave}}}\n"
            return self.lock() if not loop else self.work()
        if kind < 0.6:
            text = f"if ({self.condition()}) {self.block(depth - 1, False, loop and not whole, out)}"
            return text + (
                f"else {self.block(depth - 1, False, loop and not whole, out)}" if rng.random() < 0.5 else ""
            )
        if kind < 0.7 and whole:
            return self.uniform(depth)
        if kind < 0.88:
            return self.loop(depth, out)
        return self.switch(depth, out) if rng.random() < 0.6 else self.forward(depth)

    def together(self) -> str:
        """An action of all threads together. Shuffles only while none has exited."""
        rng = self.rng
        v = self.var()
        made = [
            (
                f"__syncthreads(); sh[t] = {self.value()}; __syncthreads(); "
                f"{v} += sh[(t + {rng.randrange(64)}) & 63]; __syncthreads();\n"
            ),
            f"{v} ^= __popc(__ballot_sync(0xffffffffu, {self.condition()}));\n",
            f"if (__any_sync(0xffffffffu, {self.condition(0)})) {v} += 3;\n",
        ]
        plain = len(made)
        if not self.exits:
            made += [
                f"{v} += __shfl_xor_sync(0xffffffffu, {self.value()}, {1 << rng.randrange(5)});\n",
                    f"{v} -= __shfl_sync(0xffffffffu, {self.value()}, {rng.randrange(32)});\n",
                f"if (lane & 1) {{ {self.work()}{v} += __shfl_xor_sync(0xaaaaaaaau, {v}, 2); {self.work()}}}\n",
                    f"{v} += __syncthreads_count({self.condition(0)});\n", self.flags(),
                f"if (__all_sync(0xffffffffu, {self.condition(0)})) {{ {self.work()}}} else {{ {self.work()}}}\n",
                    f"__syncwarp(); {v} += __popc(__match_any_sync(0xffffffffu, {self.var()} & 7));\n",
            ]  # fmt: skip
        at = rng.randrange(len(made))
        if at >= plain:  # needs those that have left, too
            self.rounds = [True] * len(self.rounds)
        return made[at]

    def lock(self) -> str:
        rng = self.rng
        self.waits = True
        k = rng.randrange(2)
        inside = f"sum[{k}] = sum[{k}] + {self.value()}; __threadfence_block(); atomicExch(&lock[{k}], 0u);"
        if rng.random() < 0.7:
            return (
                f"{{ int done = 0; while (!done) {{ if (atomicCAS(&lock[{k}], 0u, "
                f"1u) == 0) {{ {inside} done = 1; }} else {{ PAUSE; }} }} }}\n"
            )
        return (
            f"if ((lane & 15) == {rng.randrange(16)}) {{ while (atomicCAS(&lock[{k}], 0u, 1u) != 0) {{ PAUSE; "
            f"}} __threadfence_block(); {inside} }}\n"
        )

    def flags(self) -> str:
        self.waits = True
        who = self.rng.randrange(64)
        v = self.var()
        return (
            f"__syncthreads(); if (t == {who}) {{ {self.work()}sh[{who}] = {v}; __threadfence_block(); "
            f"flag[{who}] = 1; }} else {{ while (flag[{who}] == 0) {{ PAUSE; }} __threadfence_block(); "
            f"{v} += sh[{who}]; }} "
            f"__syncthreads(); flag[{who}] = 0; __syncthreads();\n"
        )

    def uniform(self, depth: int) -> str:
        """A branch or loop that all threads take alike."""
        rng = self.rng
        if rng.random() < 0.4:
            return f"if (n & {1 << rng.randrange(3)}) {self.block(depth - 1, True, False, None)}"
        self.labels += 1
        i = f"i{self.labels}"
        self.rounds.append(False)
        text = (
            f"\n#pragma unroll 1\nfor (int {i} = 0; {i} < (int)({rng.choice(('n', 'n', '3', '(n & 3) + 1'))}); "
            f"{i}++) {{ d += {i}; {self.block(depth - 1, True, False, None)} }}\n"
        )
        self.rounds.pop()
        return text

    def loop(self, depth: int, out: str | None) -> str:
        rng = self.rng
        self.labels += 1
        i, mine = f"i{self.labels}", f"L{self.labels}"
        bound = rng.choice((f"({self.var()} & 7)", "(t & 7)", "4", f"({self.var()} & 3) + 1", "(lane >> 2)"))
        label = out
        behind = ""
        if out is None and rng.random() < 0.5:
            label, behind = mine, f"{mine}:;\n"
        body = self.block(depth - 1, False, True, label)
        unroll = "\n#pragma unroll 1\n" if rng.random() < 0.7 else ""
        kind = rng.random()
        if kind < 0.5:
            text = f"{unroll}for (int {i} = 0; {i} < (int)({bound}); {i}++) {{ c += {i}; {body} }}\n"
        elif kind < 0.75:
            text = (
                f"{{ int {i} = (int)({bound});{unroll} while ({i}-- > 0) {{ if ({self.condition(0)}) continue; "
                f"{body} {self.work()}}} }}\n"
            )
        else:
            text = (
                f"{{ int {i} = (int)({bound});{unroll} do {{ {body.replace('continue;', 'break;')} "
                f"{self.work()}if ({i} > 8 || {self.condition()}) break; }} while ({i}++ < 6); }}\n"
            )
        return "{ " + text + behind + "}\n" if behind else text

    def switch(self, depth: int, out: str | None) -> str:
        rng = self.rng
        n = rng.choice((3, 4, 6, 9))
        text = f"switch ((unsigned){self.var()} % {n + 1}u) {{\n"
        for k in range(n):
            text += f"case {k}: {self.block(depth - 2, False, False, out)} {'break;' if rng.random() < 0.7 else ''}\n"
        return text + (f"default: {self.work()}" if rng.random() < 0.5 else "") + "}\n"

    def forward(self, depth: int) -> str:
        """Jumps forward to a shared tail, from several depths."""
        self.labels += 1
        one, two = f"A{self.labels}", f"B{self.labels}"
        work = self.work
        return (
            f"{{ if ({self.condition()}) {{ {work()}if ({self.condition(0)}) goto {one}; "
            f"{work()}{work()}}} else {{ {self.block(depth - 1, False, False, two)}if "
            f"({self.condition(0)}) goto {two}; {work()}}}\n"
            f"{work()}{one}:; {work()}{work()}{two}:; }}\n"
        )


def kernels(seed: int, count: int) -> list[Kernel]:
    """The kernels of a seed."""
    return [Kernel(f"k{k}", random.Random(seed * 1000 + k)) for k in range(count)]


def inputs(seed: int) -> np.ndarray:
    """Words that all kernels of a seed read."""
    return np.random.default_rng(seed).integers(0, 1 << 12, 128).astype(np.int32)


def source(made: list[Kernel]) -> str:
    """CUDA C."""
    return _HEAD + "".join(k.text for k in made)


def on_host(made: list[Kernel], seed: int, n: int, folder: Path) -> dict[str, np.ndarray | str]:
    """Results of the kernels on the host."""
    path, lib = folder / "host.cpp", folder / "host.so"
    calls = "".join(
        f"    if (which == {i}) {k.name}(*(const unsigned **)args[0], *(unsigned **)args[1], *(unsigned *)args[2]);\n"
        for i, k in enumerate(made)
    )
    path.write_text(
        f'#define SHIM_ENTRY\n#include "cuda_shim.h"\n{source(made)}\nstatic int which;\nextern "C" void '
        f'choose(int k) {{ which = k; }}\nextern "C" void shim_entry(void **args)\n{{\n{calls}}}\n'
    )
    done = subprocess.run(
        [
            "g++",
            "-std=c++17",
            "-O0",
            "-shared",
            "-fPIC",
            "-fno-gnu-unique",
            "-fwrapv",
            "-w",
            "-I",
            str(HERE / "host"),
            str(path),
            "-o",
            str(lib),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[:2000])
    library = ctypes.CDLL(str(lib))
    return {k.name: _launched(library, i, inputs(seed), n) for i, k in enumerate(made)}


def _launched(library: ctypes.CDLL, which: int, data: np.ndarray, n: int) -> np.ndarray | str:
    """The result of one kernel on the host. It runs in a separate process, since some of the loops never end."""
    result = np.frombuffer(mmap.mmap(-1, THREADS * WORDS * 4), np.int32)
    child = os.fork()
    if not child:
        signal.alarm(HOST_SECONDS)  # its default action ends the process
        library.choose(which)
        cells = [ctypes.c_void_p(data.ctypes.data), ctypes.c_void_p(result.ctypes.data), ctypes.c_int(n)]
        pointers = (ctypes.c_void_p * len(cells))(*(ctypes.addressof(c) for c in cells))
        stuck = library.shim_launch(library.shim_entry, pointers, (ctypes.c_uint * 6)(1, 1, 1, THREADS, 1, 1))
        os._exit(1 if stuck else 0)
    ended = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(ended):
        return ENDLESS if os.WTERMSIG(ended) == signal.SIGALRM else f"signal {os.WTERMSIG(ended)}"
    return "deadlock" if ended else result


def in_simulator(
    device: Device, name: str, seed: int, n: int, order: str = "", progress: bool = False
) -> tuple[np.ndarray | str, int]:
    """Result, or the error's text, and executed warp instructions. ``order``: of warps, else in step; ``progress``: as
    in :meth:`Device.launch`."""
    result = np.zeros(THREADS * WORDS, np.int32)
    device.reset()
    try:
        stats = device.launch(
            name,
            1,
            THREADS,
            [inputs(seed), result, np.int32(n)],
            seed=seed % 7,
            limit=LIMIT,
            order=order,
            progress=progress,
        )
    except SimError as e:
        return str(e), 0
    return result, stats.instructions


@dataclass(slots=True)
class Verdict:
    """Results for one seed: findings, ratios of executed instructions, kernels, and those that wait too long to be
    judged."""

    found: list[str] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    kernels: int = 0
    skipped: int = 0


def one(v: Verdict, k: Kernel, where: str, seed: int, theirs: Device, ours: Device, want: np.ndarray | str) -> None:
    """Run one kernel of both compilers and add the findings to ``v``."""
    n = seed % 5
    v.kernels += 1
    if isinstance(want, str) and want == ENDLESS:
        v.skipped += 1
        return
    if isinstance(want, str):
        v.found.append(f"{where}: host: {want}")
        return
    good, most = in_simulator(theirs, k.name, seed, n, progress=True)
    if k.waits and isinstance(good, str) and "limit" in good:
        v.skipped += 1  # it tests the lock too often to be simulated here
        return
    right = not isinstance(good, str) and np.array_equal(good, want)
    if not right:
        v.found.append(f"{where}: ptxas's code: {good if isinstance(good, str) else 'other values than the host'}")
    order = ORDERS[(seed + int(k.name[1:])) % len(ORDERS)]
    for way in ("", order):
        got, executed = in_simulator(ours, k.name, seed, n, way)
        if way and k.waits and isinstance(got, str) and "limit" in got:
            v.skipped += 1
        elif isinstance(got, str):
            v.found.append(f"{where} {way}: {got}")
        elif not np.array_equal(got, want):
            v.found.append(
                f"{where} {way}: values of threads {sorted(set((np.flatnonzero(got != want) // WORDS).tolist()))[:8]}"
            )
        elif not way and not k.waits and right:
            v.ratios.append(round(executed / most, 4))
            if executed > RATIO * most + 20:
                v.found.append(f"{where}: {executed} instructions executed, ptxas {most}")
        if executed > SLOW:
            break


def judge(seed: int, sm: int, opt: int, count: int) -> Verdict:
    """One seed: all of its kernels in one file."""
    made = kernels(seed, count)
    v = Verdict()
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)
        (folder / "k.cu").write_text(source(made))
        said = oracle.run_tool(
            "nvcc", "-ptx", f"-arch=sm_{sm}", "-w", str(folder / "k.cu"), "-o", str(folder / "k.ptx")
        )
        if isinstance(said, oracle.ToolError):
            raise RuntimeError(f"seed {seed} sm_{sm}: nvcc: {said}")
        text = (folder / "k.ptx").read_text()
        theirs = oracle.compile_ptx(text, sm, f"-O{opt}")
        if isinstance(theirs, oracle.ToolError):
            v.found.append(f"seed {seed} sm_{sm} -O{opt}: ptxas: {theirs}")
            return v
        try:
            ours = Device(compile_ptx(text, f"sm_{sm}", {"opt-level": opt}))
        except OriasError as e:
            v.found.append(f"seed {seed} sm_{sm} -O{opt}: not compiled: {e}")
            return v
        expected = on_host(made, seed, seed % 5, folder)
        other = Device(theirs.read_bytes())
        for k in made:
            one(v, k, f"seed {seed} {k.name} sm_{sm} -O{opt}", seed, other, ours, expected[k.name])
    return v


def main() -> int:
    """Run a range of seeds."""
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--seeds", default="0:7")
    ap.add_argument("--sm", default="75,80,90,100,120")
    ap.add_argument("--opt", default="3")
    ap.add_argument("--kernels", type=int, default=24)
    ap.add_argument("--minutes", type=float, default=600)
    ap.add_argument("--journal", type=Path, help="a file with one line for each seed that is done")
    ap.add_argument("--print", action="store_true", help="print the source of the first seed and end")
    args = ap.parse_args()
    low, high = (int(x) for x in args.seeds.split(":"))
    if args.print:
        print(source(kernels(low, args.kernels)))
        return 0
    sms, opts = [int(x) for x in args.sm.split(",")], [int(x) for x in args.opt.split(",")]
    end = time.monotonic() + 60 * args.minutes
    done: dict[int, Verdict] = {}
    if args.journal and args.journal.exists():
        lines = [json.loads(line) for line in args.journal.read_text().splitlines()]
        done = {seed: Verdict(**rest) for seed, rest in lines}
    for seed in range(low, high):
        if time.monotonic() > end:
            break
        if seed in done:
            continue
        v = done[seed] = judge(seed, sms[seed % len(sms)], opts[seed // len(sms) % len(opts)], args.kernels)
        for line in v.found:
            print(line, flush=True)
        if args.journal:
            with args.journal.open("a") as out:
                out.write(json.dumps([seed, asdict(v)]) + "\n")
    bad = sum(len(v.found) for v in done.values())
    ratios = [r for v in done.values() for r in v.ratios]
    mean = float(np.exp(np.mean(np.log(ratios)))) if ratios else 0.0
    print(
        f"{sum(v.kernels for v in done.values())} kernels ({sum(v.skipped for v in done.values())} wait "
        f"too long to be judged whole), {bad} findings; "
        f"executed instructions: geometric mean {mean:.3f} of ptxas's, most {max(ratios, default=0):.2f}"
    )
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
