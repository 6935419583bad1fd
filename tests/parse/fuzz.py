"""Coverage-guided fuzzing of the PTX front end.

    python -m tests.parse.fuzz [--seconds N] [--seed S]

Starts from the whole modules of `module_cases` and one instruction of every descriptor row; keeps mutants that reach
new lines of the front end. Anything but a module or a diagnostic is a failure: the input is printed. An input of more
new lines of the front end. Anything but a module or a diagnostic is a failure: the input is printed. An input that
takes more than five seconds is read again without tracing (which makes everything some ten times slower); it is printed
with both times, and is a failure if the second is over five seconds too.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from types import FrameType
from typing import Any

from ir_format import ptx_wire
from stages.parse import parse_text
from stages.parse.printer import print_module
from tests.parse.generate import accepted
from tests.parse.helpers import kernel
from tests.parse.module_cases import CASES

_ARCHES = ("sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a", "compute_90")
_PATIENCE = 5.0  # seconds
_PIECES = (
    "{", "}", "(", ")", "[", "]", ",", ";", ":", "@", "!", "|", "<", ">", "=", "+", "-", "*", "?", "#", "0", "1", "-1",
    "0x", "1.5", "0f3F800000",
    "_", "%r1", "%p1", "%rd1", "%tid.x", ".reg", ".param", ".global", ".shared", ".b32", ".f32", ".v4", ".align",
    "generic(", "\n", "//", "/*", "*/",
    '"', "call", "bra", "ret", "add", ".loc", ".pragma", "\0", "\xff", "99999999999999999999",
)  # fmt: skip


class Coverage:
    """Lines of the front end that were reached."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, int]] = set()
        self.new = False

    def trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        """A trace function for `sys.settrace`."""
        name = frame.f_code.co_filename
        if "/stages/parse/" not in name and "/ir_format/ptx" not in name:
            return None
        if event == "line":
            place = (name, frame.f_lineno)
            if place not in self.seen:
                self.seen.add(place)
                self.new = True
        return self.trace


def attempt(text: str, arch: str) -> bool:
    """Parses; checks for an orderly end, and that accepted input can be packed and printed. True if accepted."""
    module, units, diagnostics = parse_text(text, "t.ptx", arch)
    if module is None:
        assert any(d.severity in ("error", "fatal") for d in diagnostics), "no module and no error"
        return False
    for unit in units:
        assert ptx_wire.unit_from_wire(ptx_wire.to_wire(unit)) == unit, "the wire form changes the unit"
    print_module(module, units)
    return True


def _alone(text: str) -> float:
    """Processor seconds without tracing, of the worst architecture."""
    times = []
    for arch in _ARCHES:
        begin = time.process_time()
        attempt(text, arch)
        times.append(time.process_time() - begin)
    return max(times)


def mutate(rng: random.Random, text: str, pool: list[str]) -> str:
    """A few edits: cut, repeat, insert a piece, splice from another input."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        a = rng.randrange(len(text) + 1)
        b = min(len(text), a + rng.choice((1, 2, 5, 20, 100)))
        kind = rng.randrange(5)
        if kind == 0:
            text = text[:a] + text[b:]
        elif kind == 1:
            text = text[:a] + text[a:b] * rng.choice((2, 3, 50)) + text[b:]
        elif kind < 4:
            text = text[:a] + rng.choice(_PIECES) + text[b if kind == 3 else a :]
        else:
            other = rng.choice(pool)
            c = rng.randrange(len(other) + 1)
            text = text[:a] + other[c : c + rng.choice((5, 20, 100))] + text[b:]
    return text[:20_000]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    pool = [t for t in CASES.values() if t]
    pool += [kernel(c.text, target="sm_100a") for c in list(accepted("sm_100a", 1))[::6] if "wgmma" not in c.row]
    coverage = Coverage()
    end = time.monotonic() + args.seconds
    tried = accepted_count = failures = 0
    worst = 0.0
    start_lines = 0
    queue = list(pool)
    while time.monotonic() < end:
        text = queue.pop() if queue else mutate(rng, rng.choice(pool), pool)
        coverage.new = False
        begin = time.monotonic()
        sys.settrace(coverage.trace)
        try:
            accepted_count += attempt(text, rng.choice(_ARCHES))
        except Exception as e:
            sys.settrace(None)
            failures += 1
            print(f"FAILURE {type(e).__name__}: {e}\n{text!r}\n")
        finally:
            sys.settrace(None)
        taken = time.monotonic() - begin
        if taken > _PATIENCE:
            alone = _alone(text)
            failures += alone > _PATIENCE
            print(f"SLOW {taken:.2f} s traced, {alone:.2f} s alone: {text!r}\n", flush=True)
        worst = max(worst, taken)
        tried += 1
        if not queue and not start_lines:
            start_lines = len(coverage.seen)
        if coverage.new and not queue:
            pool.append(text)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{tried} inputs ({accepted_count} accepted), {failures} failures, "
        f"lines reached {start_lines} -> {len(coverage.seen)}, "
        f"inputs kept {len(pool)}, slowest {worst:.2f} s, peak memory {peak} MiB"
    )
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
