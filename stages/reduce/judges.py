"""Whether a text still shows the fault: a command, co-simulation, a failure of the chain, or the same culprit as
before."""

from __future__ import annotations

from ir_format.diag import OriasError
from ir_format.model import AttrValue
from stages.bisect.attempt import Failure, Note, attempt
from stages.bisect.bisect import Hunt
from stages.bisect.chain import Chain, parsed
from stages.bisect.judges import Cosim, Crash, run_on
from stages.bisect.report import headline


class Command:
    """A shell command that is given the text's path, for `{}` or at its end: exit code 0 says that the fault is
    there."""

    def __init__(self, command: str, seconds: float) -> None:
        self.command = command
        self.seconds = seconds

    def __call__(self, text: str) -> bool:
        """Judge one text."""
        return run_on(self.command, text.encode("latin-1"), "reduced.ptx", self.seconds)[0] == 0


class ByChain:
    """Judges that compile the text. ``message``: of a failure that is looked for (None: co-simulation, or what the
    first text fails with); ``culprit``: the same stage and pass as the first text's."""

    def __init__(
        self, target: str, options: dict[str, AttrValue], message: str | None, culprit: bool, seconds: float
    ) -> None:
        self.target = target
        self.options = options
        self.message = message
        self.culprit = culprit
        self.seconds = seconds
        self.wanted = ""
        self.first: Failure | None = None
        self.how = ""  # in which way co-simulation finds it wrong: another way is another fault

    def begin(self, text: str) -> str:
        """Look at the text as it is; what is wrong with it, in words. Raises OriasError where nothing is."""
        import stages.check.cosim
        import stages.simulate  # noqa: F401 - here, so that no child imports it for itself

        chain = self._chain(text)
        if isinstance(chain, Failure):
            self.first = chain
        else:
            self.first = chain.on(len(chain.parts)).failure
        if self.culprit:
            self.wanted = self._culprit(text)
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
            return self._culprit(text) == self.wanted
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
        return got if isinstance(got, Failure) else Chain(got, False, seconds=self.seconds)

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

    def _culprit(self, text: str) -> str:
        """The stage and pass that `orias-bisect` names; '' for none."""
        chain = self._chain(text)
        if isinstance(chain, Failure):
            return ""
        try:
            guilt = Hunt(chain, Cosim(text, self.target, (), 3, self.seconds)).run()
        except OriasError:
            return ""
        return headline(guilt).partition(" on")[0]
