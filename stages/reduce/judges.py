"""Whether a text still shows the fault: a command, co-simulation, a failure of the chain, or the same culprit as
before."""

from __future__ import annotations

from collections.abc import Callable

from ir_format.diag import OriasError
from ir_format.model import AttrValue
from stages.bisect.attempt import Failure, Note, attempt
from stages.bisect.bisect import Hunt
from stages.bisect.chain import Chain, parsed
from stages.bisect.judges import Cosim, Crash, Judge, run_on
from stages.bisect.report import headline
from stages.bisect.search import Verdict
from stages.plumbing.runner import Flags


class Command:
    """A shell command that gets the text's path, for `{}` or at its end: exit code 0 means that the fault is
    there."""

    def __init__(self, command: str, seconds: float) -> None:
        self.command = command
        self.seconds = seconds

    def __call__(self, text: str) -> bool:
        """Judge one text."""
        return run_on(self.command, text.encode("latin-1"), "reduced.ptx", self.seconds)[0] == 0


class ByJudge:
    """The fault: a judge of `orias-bisect` finds the whole chain's cubin wrong. ``make``: a new chain and a new judge;
    None if the text gives no stream."""

    def __init__(self, make: Callable[[str], tuple[Chain, Judge] | None]) -> None:
        self.make = make

    def __call__(self, text: str) -> bool:
        """Judge one text."""
        try:
            got = self.make(text)
        except OriasError:
            return False
        if got is None:
            return False
        chain, judge = got
        return judge.judge(chain.on(len(chain.parts))) is Verdict.WRONG


class ByChain:
    """Judges that compile the text. ``message``: of the failure searched for (None: co-simulation, or the first text's
    failure); ``culprit``: the same stage and pass as the first text's; ``given``, ``foreign``: as in
    :class:`stages.bisect.chain.Chain`."""

    def __init__(
        self,
        target: str,
        options: dict[str, AttrValue],
        message: str | None,
        culprit: bool,
        seconds: float,
        given: dict[str, Flags] | None = None,
        foreign: dict[str, str] | None = None,
    ) -> None:
        self.given, self.foreign = given, foreign
        self.target = target
        self.options = options
        self.message = message
        self.culprit = culprit
        self.seconds = seconds
        self.wanted = ""
        self.part = ""  # the guilty part, if it is optional
        self.first: Failure | None = None
        self.how = ""  # in which way co-simulation finds it wrong: another way is another fault

    def begin(self, text: str) -> str:
        """Check the unchanged text; returns its fault in words. Raises OriasError if there is none."""
        import stages.check.cosim
        import stages.simulate  # noqa: F401 - here, so that no child imports it for itself

        chain = self._chain(text)
        if isinstance(chain, Failure):
            self.first = chain
        else:
            self.first = chain.on(len(chain.parts)).failure
        if self.culprit:
            self.wanted = self._culprit(text)
            if not self.wanted:
                raise OriasError("orias-bisect finds no culprit")
            return self.wanted
        if self.first is not None:
            return str(self.first)
        if self.message is not None:
            raise OriasError("the chain makes a cubin")
        self.how = self._differs(text)
        if not self.how:
            raise OriasError("co-simulation finds nothing wrong")
        return "co-simulation finds it wrong"

    def __call__(self, text: str) -> bool:
        """Judge one text."""
        if self.culprit:
            return self._same(text) if self.part else self._culprit(text) == self.wanted
        if self.first is not None:
            chain = self._chain(text)
            failure = chain if isinstance(chain, Failure) else chain.on(len(chain.parts)).failure
            if failure is None or failure.kind != self.first.kind:
                return False
            if self.message:
                return self.message in str(failure)
            same = Crash("", self.first)
            return failure.kind == "hang" or same.alike(failure)
        return bool(self.how) and self._differs(text) == self.how

    def _chain(self, text: str) -> Chain | Failure:
        got = parsed("reduced.ptx", text.encode("latin-1", "replace"), self.target, self.options, self.seconds)
        return got if isinstance(got, Failure) else Chain(got, False, self.given, self.foreign, self.seconds)

    def _differs(self, text: str) -> str:
        """In which way co-simulation finds a text wrong; '' if it does not."""

        def job(note: Note) -> str:
            chain = self._chain(text)
            if isinstance(chain, Failure):
                return ""
            cubin = chain.on(len(chain.parts)).cubin
            judge = Cosim(text, self.target, (), 3, self.seconds)
            judge.look(cubin)
            return judge.how

        got = attempt(job, self.seconds)
        return "" if isinstance(got, Failure) else str(got)

    def _same(self, text: str) -> bool:
        """Whether the chain is wrong with the guilty part, and right without it."""
        chain = self._chain(text)
        if isinstance(chain, Failure):
            return False
        names = [str(p) for p in chain.parts]
        at = names.index(self.part) if self.part in names else -1
        if at < 0:
            return False
        try:
            judge = Cosim(text, self.target, (), 3, self.seconds)
        except OriasError:
            return False
        return judge.judge(chain.on(at + 1)) is Verdict.WRONG and judge.judge(chain.on(at)) is Verdict.RIGHT

    def _culprit(self, text: str) -> str:
        """The stage and pass that `orias-bisect` names; '' for none."""
        chain = self._chain(text)
        if isinstance(chain, Failure):
            return ""
        try:
            guilt = Hunt(chain, Cosim(text, self.target, (), 3, self.seconds)).run()
        except OriasError:
            return ""
        if not self.wanted and len(guilt.parts) == 1 and guilt.judge == Cosim.name:
            self.part = str(guilt.parts[0])
        return headline(guilt).partition(" on")[0]
