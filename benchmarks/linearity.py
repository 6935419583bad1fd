"""How compile time and memory grow with the length of a kernel, by stage and pass.

    python -m benchmarks.linearity [--shapes NAME ...] [--sizes 2000 4000 8000 16000] [--arch sm_90] [--passes 8]

Generates kernels of one shape and growing length (in PTX instructions), compiles each in a separate process, and prints
per shape the processor seconds and bytes of memory per instruction, and the exponent of growth of every stage: the
slope of log(time) over log(length), from the second half of the sizes, where the constant part of small kernels counts
least. Passes that take at least a twentieth of the time and grow by more than 1.1 are named. 1 is linear.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ir_format.record import replace
from stages.plumbing.back_end import elf_from_stream
from stages.plumbing.chain import MIDDLE
from stages.plumbing.front_end import parse_to_stream
from stages.plumbing.runner import Flags, Pass, Stage, run_stage

_BAR: Final = 1.1  # exponent
_SHARE: Final = 0.05  # share of a compile's time below which a pass isn't named
_PATIENCE: Final = 900  # seconds of one compile

_HEAD: Final = """.version 8.5
.target {arch}
.address_size 64
"""


def _entry(name: str, body: Iterator[str], values: int = 64) -> Iterator[str]:
    """A kernel around ``body``, which may read and write ``values`` registers of each kind; %rd1 is its buffer."""
    yield f".visible .entry {name}(.param .u64 {name}_p, .param .u32 {name}_n)\n{{"
    yield f".reg .pred %p<16>; .reg .b32 %r<{values + 16}>; .reg .f32 %f<{values + 16}>; .reg .b64 %rd<16>;"
    yield f"ld.param.u64 %rd0, [{name}_p]; cvta.to.global.u64 %rd1, %rd0; ld.param.u32 %r0, [{name}_n];"
    yield "mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f1, %r1; mov.u32 %r2, %ctaid.x; cvt.rn.f32.u32 %f2, %r2;"
    yield from body
    yield "st.global.f32 [%rd1], %f1; st.global.u32 [%rd1+4], %r1;\nret;\n}"


def _straight(length: int) -> Iterator[str]:
    """One block in which each operation depends on the previous one."""

    def body() -> Iterator[str]:
        for i in range(length // 2):
            yield f"fma.rn.f32 %f1, %f1, %f2, 0f3F8{i % 4096:03X}0{i % 16:X}; xor.b32 %r1, %r1, %r{i % 2 * 2};"

    yield from _entry("straight", body())


def _blocks(length: int) -> Iterator[str]:
    """Small blocks after branches that depend on the thread."""

    def body() -> Iterator[str]:
        for i in range(length // 4):
            yield f"setp.lt.u32 %p1, %r1, {i * 7 % 1021}; @%p1 bra L{i};"
            yield f"add.s32 %r1, %r1, %r0; st.global.u32 [%rd1+{i % 1024 * 4}], %r1;\nL{i}:"

    yield from _entry("blocks", body())


def _loops(length: int) -> Iterator[str]:
    """Consecutive loops with unknown trip counts."""

    def body() -> Iterator[str]:
        for i in range(length // 6):
            yield f"mov.u32 %r3, {i % 5};\nL{i}: ld.global.f32 %f3, [%rd1+{i % 1024 * 4}]; add.f32 %f1, %f1, %f3;"
            yield f"add.s32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r0; @%p1 bra L{i};"

    yield from _entry("loops", body())


def _alive(length: int) -> Iterator[str]:
    """A third of all values are live at once."""
    count = length // 3

    def body() -> Iterator[str]:
        for i in range(count):
            yield f"ld.volatile.global.f32 %f{i + 3}, [%rd1+{i * 4}];"
        for i in range(count):
            yield f"add.f32 %f1, %f1, %f{i + 3}; st.volatile.global.f32 [%rd1+{i * 4}], %f{count + 2 - i};"

    yield from _entry("alive", body(), count)


def _kernels(length: int) -> Iterator[str]:
    """Kernels of about fifty instructions."""
    for k in range(length // 50):

        def body(k: int = k) -> Iterator[str]:
            for i in range(20):
                yield f"ld.global.f32 %f3, [%rd1+{i * 4 + 8}]; fma.rn.f32 %f1, %f1, %f3, 0f3F80{k % 65536:04X};"

        yield from _entry(f"k{k}", body())


def _nested(length: int) -> Iterator[str]:
    """Nested conditions, a tenth of the length deep."""
    depth = length // 10

    def body() -> Iterator[str]:
        for i in range(depth):
            yield f"setp.lt.u32 %p1, %r1, {i + 3}; @%p1 bra L{i}; add.s32 %r1, %r1, %r0; xor.b32 %r1, %r1, {i};"
        for i in reversed(range(depth)):
            yield f"L{i}: add.s32 %r1, %r1, %r2; st.global.u32 [%rd1+{i % 1024 * 4}], %r1; xor.b32 %r1, %r1, %r2;"

    yield from _entry("nested", body())


def _labels(length: int) -> Iterator[str]:
    """One loop of blocks that leave it by forward jumps."""

    def body() -> Iterator[str]:
        yield "AGAIN:"
        for i in range(length // 4):
            yield f"L{i}: add.s32 %r1, %r1, {i % 97}; and.b32 %r3, %r1, {1 << i % 20}; setp.eq.u32 %p1, %r3, 0;"
            yield f"@%p1 bra {f'L{i + 2}' if i + 2 < length // 4 and i % 3 else 'OUT'};"
        yield "setp.lt.u32 %p2, %r1, %r0; @%p2 bra AGAIN;\nOUT:"

    yield from _entry("labels", body())


SHAPES: Final[dict[str, Callable[[int], Iterator[str]]]] = {
    "straight": _straight,
    "blocks": _blocks,
    "loops": _loops,
    "alive": _alive,
    "kernels": _kernels,
    "nested": _nested,
    "labels": _labels,
}


def make(shape: str, length: int, arch: str) -> str:
    """PTX of about ``length`` instructions."""
    return _HEAD.format(arch=arch) + "\n".join(SHAPES[shape](length)) + "\n"


class _Clock:
    """Processor seconds by "stage/pass", and by "stage" for a whole stage."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}

    def timed(self, name: str, work: Callable[..., object]) -> Callable[..., object]:
        """``work`` with its time added to ``name``'s."""

        def run(*given: object) -> object:
            began = time.process_time()
            try:
                return work(*given)
            finally:
                self.times[name] = self.times.get(name, 0.0) + time.process_time() - began

        return run

    def passes(self, stage: Stage) -> Callable[[], Sequence[Pass]]:
        """The passes of ``stage``, each timed."""
        timed = [replace(p, run=self.timed(f"{stage.name}/{p.name}", p.run)) for p in stage.passes()]
        return lambda: timed


def measure(shape: str, length: int, arch: str) -> dict[str, float]:
    """Seconds by stage and pass of one compile, and "memory": bytes beyond those of a process that has imported all
    stages. Must run in a separate process."""
    text = make(shape, length, arch).encode()
    clock = _Clock()
    stages = [replace(stage, passes=clock.passes(stage)) for stage in MIDDLE]
    idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    parts: list[bytes] = []
    clock.timed("parse", parse_to_stream)([("linear.ptx", text)], arch, {}, parts.append)
    data = b"".join(parts)
    for stage in stages:
        out = io.BytesIO()
        if clock.timed(stage.name, run_stage)(stage, io.BytesIO(data), out, Flags(quiet=True), True):
            raise SystemExit(f"{shape} of {length}: stage {stage.name} failed")
        data = out.getvalue()
    if clock.timed("elf", elf_from_stream)(io.BytesIO(data), parts.append):
        raise SystemExit(f"{shape} of {length}: stage elf failed")
    clock.times["memory"] = 1024.0 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - idle)
    return clock.times


def slope(sizes: Sequence[int], values: Sequence[float]) -> float:
    """The exponent of growth: the least-squares slope of the logarithms."""
    xs = [math.log(n) for n in sizes]
    ys = [math.log(max(v, 1e-9)) for v in values]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def _apart(shape: str, length: int, arch: str) -> dict[str, float] | None:
    """:func:`measure` in a separate process; None if it took too long."""
    command = [sys.executable, "-m", "benchmarks.linearity", "--one", shape, str(length), "--arch", arch]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise SystemExit(f"{shape} of {length}: {done.stderr.strip()}")
    times: dict[str, float] = json.loads(done.stdout)
    return times


def _whole(times: dict[str, float]) -> float:
    """Seconds of all stages."""
    return sum(seconds for name, seconds in times.items() if "/" not in name and name != "memory")


def report(shape: str, sizes: Sequence[int], arch: str, most: int) -> int:
    """Print the table of a shape; returns how many stages and passes grow by more than the bar."""
    got = {n: times for n in sizes if (times := _apart(shape, n, arch)) is not None}
    for n in sizes:
        if n not in got:
            print(f"{shape:9} {n:7}  given up after {_PATIENCE} s")
            continue
        whole = _whole(got[n])
        each = f"{1e6 * whole / n:7.0f} us  {got[n]['memory'] / n:7.0f} bytes an instruction"
        print(f"{shape:9} {n:7}  {whole:7.2f} s  {each}")
    done = [n for n in sizes if n in got]
    late = done[-max(2, (len(done) + 1) // 2) :]
    if len(late) < 2:
        return 1
    last = got[late[-1]]
    whole = _whole(last)
    grown = {k: slope(late, [got[n].get(k, 0.0) for n in late]) for k in last if k != "memory"}
    print(" " * 10 + "stages " + ", ".join(f"{k} {grown[k]:.2f}" for k in grown if "/" not in k))
    bad = [k for k in grown if grown[k] > _BAR and last[k] >= _SHARE * whole]
    for k in sorted((k for k in bad if "/" in k), key=lambda k: -last[k])[:most]:
        print(f"{'':10}{k}: exponent {grown[k]:.2f}, {last[k]:.2f} of {whole:.2f} s")
    return len(bad)


def main() -> None:
    """The command."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    options.add_argument("--sizes", nargs="+", type=int, default=[2000, 4000, 8000, 16000])
    options.add_argument("--arch", default="sm_90")
    options.add_argument("--passes", type=int, default=8, help="passes that are named for each shape, at most")
    options.add_argument("--one", nargs=2, metavar=("SHAPE", "LENGTH"), help="one compile, its times as JSON")
    options.add_argument("--ptx", nargs=2, metavar=("SHAPE", "LENGTH"), help="print the PTX of one kernel")
    args = options.parse_args()
    if args.ptx:
        sys.stdout.write(make(args.ptx[0], int(args.ptx[1]), args.arch))
    elif args.one:
        json.dump(measure(args.one[0], int(args.one[1]), args.arch), sys.stdout)
    else:
        bad = sum(report(shape, args.sizes, args.arch, args.passes) for shape in args.shapes)
        print(f"{bad} of all stages and passes that count grow by more than {_BAR}")


if __name__ == "__main__":
    main()
