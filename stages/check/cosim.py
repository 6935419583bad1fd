"""Co-simulation: one kernel, generated launches, run by the PTX interpreter and as cubins in the simulator; all memory
is compared.

Every launch is interpreted three times: as it is, with other contents of everything undefined, and with another order
of warps. Bytes that differ between these runs depend on undefined values or on a race (or on the order of atomic
float additions). They are reported as such and not compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ir_format.ptx import PtxUnit
from stages.check.executors import SIM_LIMIT, STEP_LIMIT, Outcome, approximates, interpret, last_store, simulate
from stages.check.launches import (
    WIDE_SEEDS,
    Launch,
    doubles,
    launches,
    make,
    pointers_in_structs,
    shapes,
    threads_of,
    uses,
)
from stages.check.memory_compare import KINDS, by_elements, memory_of, nans, nans_in_both, size_of, unequal
from stages.interpret.launch import Module

Arr = NDArray[Any]
ATTEMPTS: Final = 6
#: Launches of a kernel: the first number in any case, and up to the second while they have cost the interpreter no more
#: than this many steps, counted again for each 8,192 threads (512 in double precision). Rare paths need many launches,
#: and most kernels cost little.
SEEDS: Final = 16
MOST_SEEDS: Final = 48
CHEAP: Final = 40_000
#: Default budget of processor seconds for a kernel; steps of the interpreter per second, for few threads (measured:
#: 60 us a step); the fraction of the remaining time that one run of the interpreter may take. A launch is run about
#: eight times in all.
SECONDS: Final = 8.0
STEPS_A_SECOND: Final = 15_000
#: Warp instructions that the simulator executes per second (measured: 20,000 to 60,000), and the number of steps from
#: which a run's own speed is used instead.
INSTRUCTIONS_A_SECOND: Final = 20_000
TELLING: Final = 500
SHARE: Final = 10
#: Warp instructions that a cubin may take for each step of the interpreter and warp before it counts as endless, and
#: the number that it may take in any case.
EXPANSION: Final = 64
AT_LEAST: Final = 20_000
#: The other runs of the interpreter for each launch (running warps one by one takes many times the steps).
_AGAIN: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("undefined", {"seed": 1}), ("undefined", {"seed": 3}), ("undefined", {"seed": 6}),
    ("race", {"shuffled": 1, "limit": 10 * STEP_LIMIT}), ("race", {"shuffled": 2, "limit": 10 * STEP_LIMIT}),
)  # fmt: skip
#: Contents of undefined values that are tried before a difference is believed.
MORE_CONTENTS: Final = range(4, 24)
#: Orders of warps that are tried before a difference is believed.
MORE_ORDERS: Final = range(3, 6)
#: Errors of approximations that are tried before a difference is believed, and how many times further off a cubin may
#: be.
ERRORS: Final = range(1, 9)
MOVES: Final = 4.0


#: Their speed is drawn together with undefined values.
_CLOCKS: Final = ("%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi")


@dataclass(slots=True)
class Finding:
    """One thing found: `kind` is difference, undefined, race, refused, failed or skipped."""

    kind: str
    kernel: str
    side: str
    text: str

    def __str__(self) -> str:
        return f"{self.kernel}: {self.side}: {self.kind}: {self.text}"


@dataclass(slots=True)
class Verdict:
    """The verdict on a kernel on one side: `equal`, `different` or `not judged`, over how many launches, and why."""

    kernel: str
    side: str
    word: str
    launches: int
    why: str = ""

    def __str__(self) -> str:
        return (
            f"{self.kernel}: {self.side}: "
            f"{self.word}{', because ' if self.word == 'not judged' else ': ' if self.why else ''}{self.why}"
        ) + (f" ({self.launches} launches)" if self.word == "equal" else "")


@dataclass(slots=True)
class Report:
    """All findings, how many launches were judged on each side, the verdict on each kernel, and the kernels of which
    no launch was judged."""

    findings: list[Finding] = field(default_factory=list)
    judged: dict[str, int] = field(default_factory=dict)
    idle: list[str] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)

    def differences(self) -> list[Finding]:
        """Findings that show a cubin to be wrong."""
        return [f for f in self.findings if f.kind in ("difference", "failed")]

    def verdict(self, kernel: str, side: str, launches: int) -> Verdict:
        """The verdict from the findings on a kernel, on a side of which this many launches were judged."""
        own = [f for f in self.findings if f.kernel == kernel]
        wrong = [f for f in own if f.side == side and f.kind in ("difference", "failed")]
        if wrong:
            return Verdict(kernel, side, "different", launches, wrong[0].text)
        if launches:
            return Verdict(kernel, side, "equal", launches)
        why = [f for f in own if f.side == side] or [f for f in own if f.side in ("launch", "interpreter")]
        return Verdict(
            kernel,
            side,
            "not judged",
            0,
            why[-1].text if why else "no launch ended in time that left anything to compare",
        )


@dataclass(slots=True)
class Stable:
    """Bytes of each memory that are defined (`keep`), and elements that are only known to be NaNs (see
    :func:`nans_in_both`); `left`: dependences that were not looked for (as in `_AGAIN`)."""

    keep: dict[Any, Arr]
    open_nans: dict[Any, list[tuple[int, int, Arr]]] = field(default_factory=dict)
    undefined: bool = False  # something depends on undefined values
    left: tuple[str, ...] = ()
    slack: dict[Any, Arr] = field(default_factory=dict)  # how far floats move when approximations err

    def judged(self, k: Any, got: Arr) -> Arr:
        """The bytes in which this outcome must equal the interpreter's."""
        mask = self.keep[k]
        for size, infinity, which in self.open_nans.get(k, ()):
            mask = mask.copy()
            mask[: len(which) * size] &= ~np.repeat(which & nans(got, size, infinity), size)
        return np.asarray(mask)


class Cosim:
    """One module with its compiled sides."""

    def __init__(
        self,
        text: str,
        arch: str,
        devices: dict[str, Any],
        seeds: int | None = None,
        limit: int = STEP_LIMIT,
        seconds: float | None = None,
        strict: bool = False,
        spent: float = 0.0,
    ) -> None:
        """`devices`: simulator devices by name (ours, ptxas); `seeds`: launches per kernel (None: see `SEEDS`);
        `limit`: steps of the interpreter after which a launch is made smaller; `seconds`: processor time for a kernel,
        to which launches and loops are fitted (None: no limit), of which compiling has already `spent` some.
        Raises ParseError.
        """
        self.module = Module(text, arch)
        self.devices = devices
        self.seeds = seeds
        self.limit = limit
        self.seconds = seconds
        self.spent = spent
        self.strict = (
            # cubins run in the machine that honours the control words; values that it reads too early are reported
            strict
        )
        self.began = time.process_time()
        self.rate: float = STEPS_A_SECOND  # steps per second of the interpreter, the lowest seen in the kernel
        self.report = Report()
        self.endless = False  # the last launch did not end
        self.cost = 0  # of the interpreter, for launches without changes

    def run(self, kernels: Sequence[str] = ()) -> Report:
        """Judge all kernels, or the named ones."""
        for name in kernels:
            if name not in self.module.codes:
                self._say(
                    "skipped", name, "launch", f"no such kernel in the module (it has: {', '.join(self.module.codes)})"
                )
                self.report.idle.append(name)
        for name, code in self.module.codes.items():
            if not kernels or name in kernels:
                before = dict(self.report.judged)
                self.began, self.rate = time.process_time() - self.spent, STEPS_A_SECOND
                self._kernel(name, code.unit)
                done = {side: self.report.judged.get(side, 0) - before.get(side, 0) for side in self.devices}
                self.report.verdicts += [self.report.verdict(name, side, done[side]) for side in self.devices]
                if not sum(done.values()):
                    self.report.idle.append(name)
        return self.report

    def _left(self) -> float:
        """Seconds left for the kernel."""
        return 1e9 if self.seconds is None else max(self.seconds - (time.process_time() - self.began), 0.0)

    def _steps(self, launch: Launch, most: int, share: int = 1) -> int:
        """Most steps of the interpreter for a run of a launch."""
        if self.seconds is None:
            return most
        return min(most, TELLING + int(self._left() * self.rate / share / self._weight(launch)))

    def _weight(self, launch: Launch) -> float:
        """The cost of a step of the interpreter, relative to a launch of few threads."""
        return 1 + threads_of((launch.grid, launch.block)) / 8192 * (
            16 if doubles(self.module.codes[launch.entry].unit) else 1
        )

    def _first_run(self, launch: Launch, most: int) -> Outcome:
        """Interpret a launch as it is; its speed then replaces the estimate."""
        began = time.process_time()
        out = interpret(self.module, launch, limit=self._steps(launch, most, SHARE))
        if out.steps >= TELLING:
            self.rate = min(self.rate, out.steps * self._weight(launch) / max(time.process_time() - began, 1e-3))
        return out

    def _say(self, kind: str, kernel: str, side: str, text: str) -> None:
        finding = Finding(kind, kernel, side, text)
        if finding not in self.report.findings:
            self.report.findings.append(finding)

    def _kernel(self, name: str, unit: PtxUnit) -> None:
        if pointers_in_structs(unit):
            self._say("skipped", name, "launch", f"pointers inside of a parameter: {pointers_in_structs(unit)[0]}")
            return
        loose = approximates(unit)
        broken: set[str] = set()
        for launch, base, stable in self.judged(unit):
            for side, device in self.devices.items():
                if side in broken:
                    continue
                most = self._most(launch, base)[0]
                got = simulate(device, launch, seed=launch.seed, limit=most, strict=self.strict)
                if got.hazards:
                    self._say("failed", name, side, f"{got.hazards[0]} ({launch.describe()})")
                    broken.add(side)
                    continue
                if got.error:
                    self._failed(name, side, launch, base, stable, got)
                    broken.add(side)
                    continue
                if not any(v.any() for v in stable.keep.values()):
                    continue  # nothing is left to compare; the reasons have been reported
                self.report.judged[side] = self.report.judged.get(side, 0) + 1
                if self._wrong(launch, base, got, stable, loose, device, quiet=False):
                    self._explain(launch, side, device, loose)
                    broken.add(side)

    def _most(self, launch: Launch, base: Outcome) -> tuple[int, bool]:
        """Most warp instructions for the cubin, and whether exceeding them shows that it does not end."""
        warps = (
            launch.grid[0]
            * launch.grid[1]
            * launch.grid[2]
            * -(-launch.block[0] * launch.block[1] * launch.block[2] // 32)
        )
        fair = AT_LEAST + EXPANSION * base.steps * warps
        most = SIM_LIMIT
        if self.seconds is not None:  # time that is over is not given to a further launch
            least = AT_LEAST // 10 if self.report.judged else AT_LEAST
            most = min(SIM_LIMIT, least + int(self._left() * INSTRUCTIONS_A_SECOND))
        return min(fair, most), fair <= most

    def _failed(self, name: str, side: str, launch: Launch, base: Outcome, stable: Stable, got: Outcome) -> None:
        """A cubin's run gave up. The cubin is at fault unless the simulator does not support it, its limit came first,
        or the program itself depends on undefined values."""
        text = f"{got.error} ({launch.describe()})"
        if "not supported by the simulator" in got.error or (
            "instruction limit" in got.error and not self._most(launch, base)[1]
        ):
            self._say("skipped", name, side, text)
            return
        left, stable.left = stable.left, ()
        again = [(kind, how) for kind, how in _AGAIN if kind in left] + [
            ("race", {"shuffled": k, "limit": 10 * STEP_LIMIT}) for k in MORE_ORDERS
        ]
        for kind, how in again + [("undefined", {"seed": k}) for k in MORE_CONTENTS[:6]]:
            if stable.undefined or not all(v.all() for v in stable.keep.values()):
                break
            self._drop(launch, base, stable, kind, how, quiet=False)
        sound = not stable.undefined and all(v.all() for k, v in stable.keep.items() if isinstance(k, int))
        self._say(
            "failed" if sound else "undefined",
            name,
            side,
            text if sound else f"{text}, where the program depends on what is undefined or on an order",
        )

    def judged(self, unit: PtxUnit, quiet: bool = False) -> Iterator[tuple[Launch, Outcome, Stable]]:
        """The launches of a kernel that stay within their buffers and end, with their outcomes and what of them is
        compared. If nothing depended on undefined values or on an order in the first launches, orders are no longer
        tried unless there is a difference (they take many times as long as everything else). Launches with very many
        threads follow, for which undefined values are not tried either.
        """
        began, clean, done, start = self.cost, True, 0, self._left()
        for shape, seed in launches(self.module.module, unit, MOST_SEEDS if self.seeds is None else self.seeds):
            if self.seeds is None and seed >= SEEDS and self.cost - began > CHEAP:
                break
            if self._left() < (1.5 * (start - self._left()) / done if done else 0.1):
                return
            launch, base = self.sound(unit, shape, seed)
            if base is not None:
                asked = ("race",) if clean and seed >= SEEDS else ()
                stable = self._stable(launch, base, quiet, left=asked)
                if done and stable.left != asked and self._left() < 0.6 * start:
                    return  # its other orders are too long for the rest of the time, and a difference needs all of them
                clean = clean and all(keep.all() for keep in stable.keep.values())
                yield launch, base, stable
                done += 1
            elif self.endless:  # the other shapes would take as long
                return
        for seed in WIDE_SEEDS if clean and self.seeds is None else ():
            launch = make(self.module.module, unit, shapes(unit)[0], seed)
            base = interpret(self.module, launch, limit=self._steps(launch, CHEAP, 3))
            if not base.error:
                yield launch, base, self._stable(launch, base, quiet, left=("undefined", "race"))

    def sound(self, unit: PtxUnit, shape: Any, seed: int) -> tuple[Launch, Outcome | None]:
        """A launch that stays within its buffers and ends, with its outcome."""
        launch, base = make(self.module.module, unit, shape, seed), Outcome()
        limit = self.limit
        others = [x for x in shapes(unit) if x != shape]
        tries = [
            *((shape, k) for k in (0, 1, 2)),
            *((x, k) for x in others for k in (0, 2)),
            *((shape, k) for k in range(3, ATTEMPTS)),
            *((x, 3) for x in others),
        ]
        for where, attempt in tries:
            if where != shape and base.kind != "address":
                continue
            launch = make(self.module.module, unit, where, seed, attempt)
            base = self._first_run(launch, limit)
            self.cost += base.steps * (
                1 + threads_of((launch.grid, launch.block)) * (16 if doubles(unit) else 1) // 8192
            )
            self.endless = base.kind == "limit"
            if self.endless:
                limit = max(limit // 2, self.limit // 4)
            if not base.error:
                return launch, base
            if base.kind in ("unsupported", "outside"):
                self._say("skipped", unit.name, "interpreter", base.error)
                return launch, None
        self._say("undefined", unit.name, "interpreter", f"{base.kind}: {base.error} ({launch.describe()})")
        return launch, None

    def _stable(self, launch: Launch, base: Outcome, quiet: bool = False, left: tuple[str, ...] = ()) -> Stable:
        """For each buffer and variable, the bytes whose elements depend neither on undefined values nor on the order of
        warps, except for the dependences in `left`."""
        stable = Stable({k: np.ones(len(v), np.bool_) for k, v in memory_of(base).items()}, left=left)
        for v in self.module.module.variables:
            for r in v.relocs if v.name in stable.keep else ():  # addresses differ between the sides
                stable.keep[v.name][r.offset : r.offset + r.size] = False
        for kind, how in _AGAIN:
            if kind not in left and kind not in stable.left:
                self._drop(launch, base, stable, kind, how, quiet, fitted=True)
        if base.open_nans:
            for sign in (1, 2):  # of xorsign, copysign and stores of halves, the sign alone may show
                self._drop(launch, base, stable, "payload", {"other_nans": sign}, quiet)
        return stable

    def _drop(
        self,
        launch: Launch,
        base: Outcome,
        stable: Stable,
        kind: str,
        how: dict[str, Any],
        quiet: bool,
        fitted: bool = False,
    ) -> None:
        """Interpret a launch in another way and stop comparing what changes; `kind`: undefined, race or payload (of
        NaNs, which may then be any NaN). If the run is `fitted` to the remaining time and takes longer, it is recorded
        in `left`."""
        if fitted:
            how = how | {"limit": self._steps(launch, how.get("limit", STEP_LIMIT), 4)}
        other, keep = interpret(self.module, launch, **how), stable.keep
        if other.kind == "limit" and self.seconds is not None and fitted:
            stable.left = (*stable.left, kind)
            return
        values = (
            "the clock or undefined values"
            if uses(self.module.codes[launch.entry].unit, _CLOCKS)
            else "undefined values"
        )
        what = {"undefined": f"on {values}", "race": "on the order of warps", "payload": "on payloads of NaNs"}[kind]
        kind = kind.replace("payload", "undefined")
        if other.error:
            if not quiet:
                self._say(kind, launch.entry, "interpreter", f"{other.error} ({launch.describe()})")
            for v in keep.values():
                v[:] = False
            return
        for k, v in memory_of(other).items():
            unlike = v != memory_of(base)[k]
            if "other_nans" in how and unlike.any():
                stable.open_nans[k] = nans_in_both(v, memory_of(base)[k])
                for size, _, which in stable.open_nans[k]:
                    unlike[: len(which) * size] &= ~np.repeat(which, size)
            changed = by_elements(unlike, self._type(launch, k)) & keep[k]
            if not changed.any():
                continue
            where = launch.names[k] if isinstance(k, int) else k
            if not quiet:
                self._say(
                    kind,
                    launch.entry,
                    "interpreter",
                    (
                        f"{where}: {int(changed.sum())} bytes from {int(changed.argmax())} on depend {what} "
                        f"({launch.describe()})"
                    ),
                )
            keep[k] &= ~changed
            stable.undefined |= kind == "undefined"

    def _type(self, launch: Launch, k: int | str) -> str:
        if isinstance(k, int):
            return launch.types[k]
        return next((x.type for x in self.module.module.variables if x.name == k), "b32")

    def _first(
        self, launch: Launch, base: Outcome, got: Outcome, stable: Stable, loose: bool
    ) -> tuple[Any, int] | None:
        """The first differing byte: (argument or variable, offset)."""
        for k, v in base.buffers.items():
            bad = unequal(v, got.buffers[k], launch.types[k], loose, stable.slack.get(k)) & stable.judged(
                k, got.buffers[k]
            )
            if bad.any():
                return k, int(bad.argmax())
        for name, v in base.variables.items():
            other = got.variables.get(name)
            if other is None or len(other) < len(v):
                continue
            apart = unequal(v, other[: len(v)], self._type(launch, name), loose, stable.slack.get(name))
            bad = apart & stable.judged(name, other[: len(v)])
            if bad.any():
                return name, int(bad.argmax())
        return None

    def _differs(self, launch: Launch, device: Any, loose: bool) -> bool:
        base = interpret(self.module, launch)
        if base.error:
            return False
        got = simulate(device, launch)
        if got.error:
            return False
        return self._wrong(launch, base, got, self._stable(launch, base, quiet=True), loose, device)

    def _wrong(
        self, launch: Launch, base: Outcome, got: Outcome, stable: Stable, loose: bool, device: Any, quiet: bool = True
    ) -> bool:
        """Whether an outcome differs. A difference is checked with more contents of everything undefined, because a few
        do not show that comparisons with undefined values can go either way. If results do depend on undefined values,
        bytes that the cubin itself changes with other contents do not count either: one of its contents may be the rare
        one."""
        left, stable.left = stable.left, ()
        more = [(kind, how) for kind, how in _AGAIN if kind in left] + [
            ("race", {"shuffled": k, "limit": 10 * STEP_LIMIT}) for k in MORE_ORDERS
        ]
        for errors in ERRORS if loose else ():
            if self._first(launch, base, got, stable, loose) is not None:
                self._err(launch, base, stable, errors)
        for kind, how in more:
            if self._first(launch, base, got, stable, loose) is not None:
                self._drop(launch, base, stable, kind, how, quiet)
        for seed in MORE_CONTENTS:
            if self._first(launch, base, got, stable, loose) is None:
                return False
            self._drop(launch, base, stable, "undefined", {"seed": seed}, quiet)
            again = simulate(device, launch, seed=seed) if stable.undefined else got
            for k, v in memory_of(again).items():  # (of a failed run: none)
                if k in stable.keep:
                    stable.keep[k] &= ~by_elements(v != memory_of(got)[k], self._type(launch, k))[: len(stable.keep[k])]
        return self._first(launch, base, got, stable, loose) is not None

    def _err(self, launch: Launch, base: Outcome, stable: Stable, errors: int) -> None:
        """Interpret a launch with approximations that err as far as the manual allows: elements may differ by a few
        times as much as they move. A value that is no float and changes is not compared."""
        other = interpret(self.module, launch, errors=errors, limit=10 * STEP_LIMIT)
        for k, v in memory_of(base).items():
            w = memory_of(other).get(k)
            kind = KINDS.get(self._type(launch, k))
            if w is None:  # it failed: a test of such a result decided
                stable.keep[k][:] = False
            elif kind is None or len(v) % np.dtype(kind).itemsize:
                stable.keep[k] &= ~by_elements(v != w, self._type(launch, k))
            else:
                with np.errstate(all="ignore"):
                    moved = MOVES * np.abs(w.view(kind).astype(np.float64) - v.view(kind).astype(np.float64))
                moved[np.isnan(moved) & ~(np.isnan(w.view(kind)) & np.isnan(v.view(kind)))] = np.inf
                stable.slack[k] = np.fmax(stable.slack.get(k, 0.0), np.nan_to_num(moved, nan=0.0, posinf=np.inf))

    def shrink(self, launch: Launch, bad: Callable[[Launch], bool]) -> Launch:
        """The smallest geometry that still differs, found by halving one extent at a time."""
        fixed = self.module.codes[launch.entry].functions[0].function.directives.reqntid is not None
        progress = True
        while progress:
            progress = False
            for which in ("grid", "block"):
                if which == "block" and fixed:
                    continue
                for axis in (2, 1, 0):
                    extent = list(getattr(launch, which))
                    for size in sorted({1, extent[axis] // 2, extent[axis] - 1}):
                        if not 1 <= size < extent[axis]:
                            continue
                        tried = [*extent[:axis], size, *extent[axis + 1 :]]
                        smaller = (tried[0], tried[1], tried[2])
                        candidate = (
                            launch.resized(smaller, launch.block)
                            if which == "grid"
                            else launch.resized(launch.grid, smaller)
                        )
                        if self._left() > 0 and bad(
                            candidate
                        ):  # (a difference is reported unshrunk when the time is over)
                            launch, progress = candidate, True
                            break
        return launch

    def _explain(self, launch: Launch, side: str, device: Any, loose: bool) -> None:
        """Shrink, then report the first differing element with the last stores to it."""
        small = self.shrink(launch, lambda x: self._differs(x, device, loose))
        base = interpret(self.module, small, track=True)
        got = simulate(device, small)
        stable = self._stable(small, base, quiet=True)
        self._wrong(
            small, base, got, stable, loose, device
        )  # differences within the tolerance do not count here either
        first = self._first(small, base, got, stable, loose)
        if first is None:  # a second look at the shrunk launch shows no difference
            self._say("difference", small.entry, side, f"memory differs ({launch.describe()})")
            return
        k, byte = first
        where = small.names[k] if isinstance(k, int) else k
        want, have = (base.buffers[k], got.buffers[k]) if isinstance(k, int) else (base.variables[k], got.variables[k])
        size = size_of(small.types[k]) if isinstance(k, int) else 4
        at = byte // size * size
        a, b = (int.from_bytes(bytes(v[at : at + size]), "little") for v in (want, have))
        text = f"{where}[{at // size}]: {b:#x}, interpreter {a:#x}"
        writer = base.writers.get(k) if isinstance(k, int) else None
        if writer is not None:
            index = int(writer[byte])
            inst = self.module.codes[small.entry].steps[index - 1].inst if index else None
            text += f"; PTX line {inst.line} ({inst.opcode})" if inst is not None else "; no PTX store to it"
        if isinstance(k, int):
            text += f"; {last_store(device, small, k, byte)}"
        self._say("difference", small.entry, side, f"{text} ({small.describe()})")
