"""The strict simulator as a judge of broken control words: it runs the test kernels, and a mutant is caught by a wrong
result, a reported hazard or a fault.

Only what runs can be caught. A survivor is apart, with its reason, if an argument shows that it changes nothing here:

* ``never reached``: one of the two instructions is not issued in any launch, or never for a lane (its guard is false
  each time);
* ``order of the pipe``: a later instruction of the same in-order pipe is waited for before the result is needed, so the
  result is there;
* ``results of one pipe come in order``: two writes of a register by the same pipe, of fixed and equal latency: the
  second comes after the first at any distance;
* ``a wait keeps the distance``: the second instruction of the pair also waits for a scoreboard, and is never closer
than
  in the sound code, even with the shortest latencies (observed in a run that records every wait);
* ``the later result is slower``: two writes of a register closer than their table cell, the second with a scoreboard:
  it takes at least 16 cycles (timing.Draw), longer than any fixed one that it could overtake;
* ``waited for elsewhere``: on the only path, an instruction between the two waits for the scoreboard that the mutant
  sets instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

from ir_format import isa
from ir_format.model import Inst
from stages.disasm.cubin import WORD, Cubin, read_cubin
from stages.disasm.listing import decode_section
from stages.simulate import Device, ImageError, SimError
from stages.simulate.timing import is_variable, pipe_of, writer_class
from tests.check.schedule_mutants import Mutant
from tests.kernels.model import KernelSpec, Launch
from tests.kernels.run import run_launch

#: Latencies: all long, all short, two random ones; more random ones for mutants that survive these.
SEEDS = (2, 1, 3, 4)
MORE = tuple(k for k in range(7, 68) if k % 4 in (0, 3))
#: Most threads of a launch.
THREADS = 2048
#: Warp instructions of a launch; a mutant may never end.
LIMIT = 3_000_000


class Verdict(NamedTuple):
    """``caught``: how (wrong, hazard, fault) or "". ``apart``: why a survivor changes nothing here, or ""."""

    caught: str
    apart: str


def run(device: Device, launch: Launch, **how: Any) -> tuple[list[str], Any]:
    """Like :func:`run_launch`, limited to ``LIMIT``."""
    return run_launch(device, launch, limit=LIMIT, **how)


class Bench:
    """One kernel's cubin with its launches of up to ``THREADS`` threads."""

    def __init__(self, spec: KernelSpec, data: bytes) -> None:
        self.name = spec.name
        self.cubin = read_cubin(data)
        launches = sorted(spec.launches(0), key=lambda launch: launch.threads())
        self.launches = [launch for launch in launches if launch.threads() <= THREADS] or launches[:1]
        device = Device(data)
        self.reached: set[tuple[int, int]] = set()
        for launch in self.launches:
            for seed in SEEDS:
                wrong, stats = run(device, launch, strict=True, seed=seed)
                assert not wrong and not stats.hazards, (
                    f"{spec.name}: the sound cubin fails: {wrong[:1]} {stats.hazards[:1]}"
                )
            self.reached |= self._reached(run(device, launch, cycles=True)[1].cycles)

    def _reached(self, table: dict[str, Any]) -> set[tuple[int, int]]:
        return {self._where[key] for key in table["acted"] if key in self._where}

    @cached_property
    def _where(self) -> dict[tuple[str, int], tuple[int, int]]:
        """(function, offset in its section) -> section and number of an instruction."""
        sections = [(k, name, len(s.data)) for k, s in enumerate(self.cubin.sections) for _, _, name, _ in s.symbols]
        return {(name, offset): (k, offset // WORD) for k, name, size in sections for offset in range(0, size, WORD)}

    def judge(self, mutant: Mutant) -> Verdict:
        """Run a mutant until a fault shows; only a few times if an argument says that none can."""
        reason = self._why(mutant)
        if reason == "never reached":
            return Verdict("", reason)
        try:
            device = Device(mutant.bytes(self.cubin))
            for seed, launch in [
                (seed, launch) for seed in (SEEDS if reason else (*SEEDS, *MORE)) for launch in reversed(self.launches)
            ]:
                wrong, stats = run(device, launch, strict=True, seed=seed)
                if wrong or stats.hazards:
                    return Verdict("wrong" if wrong else "hazard", "")
                if (
                    not reason
                    and mutant.field == "stall"
                    and seed == SEEDS[-1]
                    and launch is self.launches[0]
                    and self._waits(mutant, device)
                ):
                    reason = "a wait keeps the distance"
                    break
            return Verdict("", reason)
        except (SimError, ImageError):
            return Verdict("fault", "")

    def _waits(self, mutant: Mutant, device: Device) -> bool:
        """Whether in every run a wait of the second instruction compensates the shorter stall."""
        place = (mutant.section, mutant.place + 1)
        missing = (self.cubin.sections[mutant.section].words[mutant.place] >> 105 & 15) - mutant.value
        for seed in SEEDS:
            for launch in self.launches:
                shortest = run(device, launch, strict=True, cycles=True, seed=seed)[1].cycles["shortest"]
                if any(wait < missing for key, wait in shortest.items() if self._where.get(key) == place):
                    return False
        return True

    def _why(self, mutant: Mutant) -> str:
        pair = [mutant.place] if mutant.partner < 0 else [mutant.place, mutant.partner]
        if any((mutant.section, n) not in self.reached for n in pair):
            return "never reached"
        first, last = min(pair), max(pair)
        if mutant.kind == "stall waw" and self._variable(mutant.section, last):
            return "the later result is slower"
        if mutant.kind == "stall waw" and self._pipe(mutant.section, first) == self._pipe(mutant.section, last):
            return "results of one pipe come in order"
        if first == last or mutant.kind.split()[0] not in ("wait", "index"):
            return ""
        code = list(_between(mutant.apply(self.cubin), mutant.section, first, last))
        queue = code[0][0]
        for n, (klass, wr, _) in enumerate(code[1:], 1):
            if queue and klass == queue and wr != 7 and any(w >> wr & 1 for _, _, w in code[n + 1 :]):
                return "order of the pipe"
        if mutant.kind.startswith("index") and any(w >> mutant.value & 1 for _, _, w in code[1:]):
            return "waited for elsewhere"
        return ""

    def _inst(self, section: int, place: int) -> Inst:
        inst = isa.target(self.cubin.sm).decode(self.cubin.sections[section].words[place], place * WORD)
        assert isinstance(inst, Inst)
        return inst

    def _variable(self, section: int, place: int) -> bool:
        return is_variable(self._inst(section, place), self.cubin.sm)

    def _pipe(self, section: int, place: int) -> str:
        return writer_class(self._inst(section, place), self.cubin.sm)


def _between(cubin: Cubin, section: int, first: int, last: int) -> Iterator[tuple[str, int, int]]:
    """In-order pipe of the simulator, write scoreboard and wait mask of the instructions from ``first`` to ``last``."""
    for item in decode_section(cubin.sections[section], isa.target(cubin.sm))[first : last + 1]:
        if item.inst is None or item.inst.ctl is None:
            yield "", 7, 0
        else:
            yield pipe_of(item.inst), item.inst.ctl.wr, item.inst.ctl.wait
