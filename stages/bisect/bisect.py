"""Find the stage, the pass and the rewrite that make the chain's output wrong.

First the judges that need no test check every stream of the whole chain (:mod:`stages.bisect.quick_checks`). If one has
a finding, the stage that it blames is searched with that judge. Otherwise the judge is the user's command,
co-simulation, or whether there is a cubin at all. Some parts of the chain are optional (:mod:`stages.bisect.chain`):
binary search finds the first optional part with which the judge finds something wrong. If that part counts its
rewrites, binary search finds the first wrong rewrite too. If even the plain chain, without any optional part, is wrong,
the static judges check it: the stages that they clear are right, and what is left is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ir_format.diag import OriasError
from ir_format.record import Record, fresh
from stages.bisect.chain import Chain, Made, Part, Setting
from stages.bisect.judges import Command, Cosim, Crash, Judge, Static
from stages.bisect.quick_checks import Rule, first_look, left_undefined
from stages.bisect.search import Verdict, first_wrong
from stages.plumbing.chain import NAMES
from stages.plumbing.runner import Context, Flags, select


class Guilt(Record):
    """The culprit. ``stage``, ``name``: the guilty stage and pass ('' if no pass can be told); ``parts``: the optional
    parts of the chain at fault, several if what lies between them cannot be judged. ``rewrite``: the first wrong
    rewrite of a unit, counted in its stage, 0 if none can be told; ``of``: how many were applied before and after the
    pass. ``right``, ``wrong``: settings of the chain whose cubins differ by that step; ``before``, ``after``: streams
    before and after the guilty pass; ``evidence``: what was computed, and what should have been."""

    stage: str
    name: str = ""
    parts: list[Part] = fresh(default_factory=list)
    on: int = 0
    rewrite: int = 0
    of: tuple[int, int] = (0, 0)
    right: Setting | None = None
    wrong: Setting | None = None
    before: bytes = b""
    after: bytes = b""
    said: str = ""
    judge: str = ""
    evidence: list[str] = fresh(default_factory=list)
    kernels: list[str] = fresh(default_factory=list)
    notes: list[str] = fresh(default_factory=list)


class Unfit(OriasError):
    """There is nothing to search for: the cubin is right, or cannot be judged (``verdict``)."""

    def __init__(self, verdict: Verdict, why: str) -> None:
        super().__init__(f"the whole chain's cubin {'is right' if verdict is Verdict.RIGHT else verdict.value}: {why}")
        self.verdict = verdict


class Hunt:
    """One search. ``judge``: the user's; ``narrow``: returns the chain for one kernel alone, and the judge for
    it."""

    def __init__(
        self,
        chain: Chain,
        judge: Judge,
        say: Callable[[str], object] = lambda text: None,
        narrow: Callable[[str], Chain] | None = None,
    ) -> None:
        self.whole = chain
        self.chain = chain
        self.judge = judge
        self.say = say
        self.narrow = narrow
        self.known: dict[tuple[str, bytes], tuple[Verdict, str]] = {}
        self.said = ""

    # ------------------------------------------------------------ verdicts

    def verdict(self, made: Made, what: str) -> Verdict:
        """The judge's verdict on a run of the chain."""
        streams = b"" if self.judge.wants_cubin else b"".join(made.streams.values())
        key = (self.judge.name, made.cubin + streams)
        if made.failure is None and key in self.known:
            found, said = self.known[key]
        else:
            found = self.judge.judge(made)
            said = self.judge.said
            if made.failure is None:
                self.known[key] = found, said
        if found is Verdict.WRONG:
            self.said = said
        self.say(f"{what}: {found.value}{f' ({said})' if said else ''}")
        return found

    def at(self, on: int, limit: int | None = None, unit: str = "") -> Verdict:
        """The verdict on the chain with the first ``on`` parts."""
        what = (
            "plain"
            if not on
            else f"up to {self.chain.parts[on - 1]}" + ("" if limit is None else f", {limit} rewrites")
        )
        return self.verdict(self.chain.on(on, limit, unit), what)

    # ------------------------------------------------------------ the search

    def run(self) -> Guilt:
        """Find the guilty part. Raises Unfit if there is nothing to find."""
        chain, given = self.chain, self.judge
        made = chain.on(len(chain.parts))
        if made.failure is not None and not isinstance(given, Crash):
            self.say(f"whole: no cubin ({made.failure})")
            given = self.judge = Crash("", made.failure)
        blamed = ""
        looked = first_look(made, chain.seconds, self.say)
        if looked is not None:
            rule, found = looked
            self.say(f"{rule.name}: {found[0]}")
            self._judge_by(rule, found)
            blamed = rule.stage
        else:
            if isinstance(given, Crash) and given.first is None:
                given.first = made.failure
            first = self.verdict(made, "whole")
            if first is Verdict.RIGHT and isinstance(given, Cosim) and self._strict(given, made):
                first, blamed = Verdict.WRONG, "schedule"
            if first is not Verdict.WRONG:
                raise Unfit(first, self.judge.said)
            if isinstance(given, Crash) and made.failure is not None:
                blamed = made.failure.place.partition(":")[0]
            elif given.kernels:
                self._only(given.kernels[0])
        guilt = self._search(blamed, made)
        guilt = self._or_lower(guilt)
        guilt.said, guilt.judge = self.said, self.judge.name
        guilt.kernels = list(self.judge.kernels or given.kernels)
        if isinstance(self.judge, Cosim):
            guilt.evidence = self.judge.explain(made.cubin)[1]
        if looked is not None:
            guilt.notes += [f"{looked[0].name}: {text}" for text in looked[1][1:4]]
        return guilt

    def _or_lower(self, guilt: Guilt) -> Guilt:
        """If co-simulation names a later stage, still blame `lower` if it left a word undefined that is read: any
        change after it may give that word another value."""
        chain = self.chain
        if not isinstance(self.judge, Cosim) or guilt.stage == "lower" or "lower" not in [s.name for s in chain.stages]:
            return guilt
        found = left_undefined(chain.on(0), chain.data)
        if not found:
            return guilt
        note = f"after lower nothing defines a word that the PTX defines: {found[0]}"
        shows = f"it shows from {guilt.parts[0]} on" if guilt.parts else ""
        return Guilt("lower", wrong=chain.setting(len(chain.parts)), notes=[n for n in (note, shows) if n])

    def _judge_by(self, rule: Rule, found: Sequence[str]) -> None:
        """Continue with a judge that needs no test, on the kernel that its finding names."""
        self.judge = Static(rule, self.chain.seconds)
        self.said = found[0]
        units = self._units()
        named = [u for u in sorted(units, key=len, reverse=True) if u in found[0]]
        if named and len(units) > 1:
            self.judge.kernels = named[:1]
            self._only(named[0])

    def _units(self) -> list[str]:
        made = self.chain.on(len(self.chain.parts))
        return sorted({u for _, u, _ in made.marks})

    def _only(self, kernel: str) -> None:
        """Work on one kernel alone from here on, if possible."""
        if self.narrow is not None and len(self._units()) > 1:
            self.say(f"from here on {kernel} alone")
            self.chain = self.narrow(kernel)

    def _strict(self, judge: Cosim, made: Made) -> bool:
        """Whether the machine that honours the control words finds something that the plain one does not."""
        judge.strict, judge.name = True, "strict simulation"
        judge.witness = None
        found = self.verdict(made, "whole, strict")
        if found is Verdict.WRONG and judge.kernels:
            self._only(judge.kernels[0])
        return found is Verdict.WRONG

    def _range(self, blamed: str) -> tuple[int, int]:
        """The numbers of enabled parts between which the search runs."""
        parts = self.chain.parts
        if blamed not in NAMES or (isinstance(self.judge, Static) and self.judge.rule.name == "records"):
            return 0, len(parts)
        place = NAMES.index(blamed)
        before = [n for n, p in enumerate(parts) if NAMES.index(p.stage) < place]
        upto = [n for n, p in enumerate(parts) if NAMES.index(p.stage) <= place]
        return len(before), len(upto)

    def _search(self, blamed: str, made: Made) -> Guilt:
        low, high = self._range(blamed)
        if isinstance(self.judge, Crash):
            return self._crash(made, blamed, low, high)
        # wrong only with later stages, or only with other kernels present
        if high and self.at(high) is not Verdict.WRONG:
            low, high = 0, len(self.chain.parts)
            if self.at(high) is not Verdict.WRONG:
                self.chain = self.whole
        start = self.at(low)
        if start is not Verdict.RIGHT and low:
            if blamed and start is Verdict.WRONG:
                return self._mandatory(blamed, low)
            low, start = 0, self.at(0)
        if start is Verdict.WRONG and (not blamed or not isinstance(self.judge, Static)):
            return self._plain()
        if start is Verdict.WRONG:
            return self._mandatory(blamed, low)
        if start is Verdict.OPEN:
            note = f"the plain chain can't be judged: {self.judge.said}"
            return Guilt(blamed, wrong=self.chain.setting(len(self.chain.parts)), notes=[note])
        low, high = first_wrong(low, high, self.at)
        return self._narrowed(low, high)

    def _narrowed(self, low: int, high: int) -> Guilt:
        """The culprit among the parts between two adjacent verdicts, down to the rewrite."""
        chain = self.chain
        parts = chain.parts[low:high]
        guilt = Guilt(parts[0].stage, parts[0].name if len(parts) == 1 else "", parts, high)
        guilt.right, guilt.wrong = chain.setting(low), chain.setting(high)
        if len(parts) > 1:
            return guilt
        guilt.before, guilt.after = chain.stream(low, None) if low else b"", chain.stream(high, None)
        if not parts[0].counted:
            return guilt
        guilt.of = start, end = chain.counted(high, self._unit())
        unit = self._unit()
        if end <= start:
            return guilt
        if self.at(high, start, unit) is not Verdict.RIGHT:
            guilt.notes.append(f"{parts[0]} is wrong even with no rewrite allowed: --limit does not reach its fault")
            return guilt
        under, over = first_wrong(start, end, lambda n: self.at(high, n, unit)) if end - start > 1 else (start, end)
        if over - under != 1:
            guilt.notes.append(f"rewrites {under + 1} to {over} can't be told apart")
        guilt.rewrite = over if over - under == 1 else 0
        guilt.right, guilt.wrong = chain.setting(high, under, unit), chain.setting(high, over, unit)
        guilt.before, guilt.after = chain.stream(high, under, unit), chain.stream(high, over, unit)
        return guilt

    def _unit(self) -> str:
        """The unit to which limits apply, if the module has several."""
        units = {u for _, u, _ in self.whole.on(len(self.whole.parts)).marks}
        named = [k for k in self.judge.kernels if k in units]
        return named[0] if named and len(units) > 1 else ""

    # ------------------------------------------------------------ what can't be left out

    def _crash(self, made: Made, blamed: str, low: int, high: int) -> Guilt:
        """The part with which the chain fails: usually the one that was running."""
        parts = self.chain.parts
        at = next((n for n, p in enumerate(parts) if made.failure is not None and str(p) == made.failure.place), -1)
        if at >= 0 and self.at(at) is Verdict.RIGHT and self.at(at + 1) is Verdict.WRONG:
            return self._narrowed(at, at + 1)
        if high > low and self.at(low) is Verdict.RIGHT and self.at(high) is Verdict.WRONG:
            return self._narrowed(*first_wrong(low, high, self.at))
        if parts and self.at(0) is Verdict.RIGHT:
            return self._narrowed(*first_wrong(0, len(parts), self.at))
        stage, _, name = (made.failure.place if made.failure is not None else blamed).partition(": ")
        return Guilt(stage, name, wrong=self.chain.setting(len(parts)), notes=[_CANT_LEAVE_OUT] if name else [])

    def _plain(self) -> Guilt:
        """The plain chain is wrong. The static judges clear some stages; what is left is lower, or a required pass of
        optimize."""
        chain = self.chain
        made = chain.on(0)
        looked = first_look(made, chain.seconds, self.say)
        if looked is not None and looked[0].stage:
            self.say(f"plain chain, {looked[0].name}: {looked[1][0]}")
            self._judge_by(*looked)
            guilt = self._mandatory(looked[0].stage, 0)
            guilt.notes.append(f"{looked[0].name}: {looked[1][0]}")
            return guilt
        if isinstance(self.judge, Static) and self.judge.rule.stage:
            return self._mandatory(self.judge.rule.stage, 0)
        if "optimize" in [s.name for s in chain.stages]:
            setting = chain.setting(0)
            setting.bypass = tuple([("optimize", p) for p in self._required("optimize")])
            if setting.bypass and self.verdict(chain.make(setting), "no pass of optimize at all") is Verdict.RIGHT:
                return self._mandatory("optimize", 0)
        if "lower" not in [s.name for s in chain.stages]:
            return Guilt("", wrong=chain.setting(len(chain.parts)), notes=["wrong in the given stream"])
        return Guilt("lower", wrong=chain.setting(len(chain.parts)), notes=[_BY_ELIMINATION])

    def _required(self, stage: str) -> list[str]:
        row = next(s for s in self.chain.stages if s.name == stage)
        context = Context(self.chain.header, None, Flags(quiet=True))
        return [p.name for p in select(row, row.passes(), context) if p.required]

    def _mandatory(self, stage: str, on: int) -> Guilt:
        """Which required pass of a stage is guilty, with ``on`` parts: the finding disappears without it, or first
        appears after it."""
        chain = self.chain
        guilt = Guilt(stage, wrong=chain.setting(on), notes=[_CANT_LEAVE_OUT])
        if stage in ("lower", "elf") or stage not in [s.name for s in chain.stages]:
            guilt.notes = []
            return guilt
        required = self._required(stage)
        if len(required) == 1:
            guilt.name = required[0]
            return guilt
        for name in required:
            setting = chain.setting(on)
            setting.flags[stage].stop_after = name
            if isinstance(self.judge, Static) and not self.judge.wants_cubin:
                found = (
                    self.verdict(chain.make(setting, stage), f"up to {stage}: {name}, which is required")
                    is Verdict.WRONG
                )
            else:
                setting = chain.setting(on)
                setting.bypass = ((stage, name),)
                found = (
                    self.verdict(chain.make(setting), f"without {stage}: {name}, which is required") is Verdict.RIGHT
                )
            if found:
                guilt.name = name
                return guilt
        return guilt


_CANT_LEAVE_OUT = "the pass can't be left out: there is no command for a right cubin"
_BY_ELIMINATION = "in the plain chain, the judges clear the stages after lower: what is left is parse or lower"


def bisect(chain: Chain, judge: Judge, say: Callable[[str], object] = lambda text: None) -> Guilt:
    """Find the guilty part. Raises Unfit if the whole chain is not wrong."""
    return Hunt(chain, judge, say).run()


__all__ = ["Command", "Guilt", "Hunt", "Unfit", "bisect"]
