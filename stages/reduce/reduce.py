"""Delta debugging on the tree of a PTX module: kernels, then instructions in shrinking chunks, then operands, then
declarations.

A candidate is accepted if it is PTX, reads no unwritten register (other than those that the given program reads so),
and the judge still sees the fault. Several candidates are judged at once; the first of them in order is accepted, so
the result does not depend on their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy

from ir_format.diag import OriasError
from ir_format.ptx import PtxFunction
from stages.check.ptx_uses import undefined
from stages.reduce.program import Program, simplified, without, without_unused

Judge = Callable[[str], bool]


class Reducer:
    """One reduction. ``judge``: whether a text still shows the fault; ``say``: called with what was removed."""

    def __init__(
        self, text: str, target: str, judge: Judge, jobs: int = 1, say: Callable[[str], object] = print
    ) -> None:
        self.target = target
        self.judge = judge
        self.say = say
        self.pool = ThreadPoolExecutor(max(jobs, 1))
        self.jobs = max(jobs, 1)
        self.program = Program(text, target)
        self.text = self.program.text()
        self.allowed = {name: self._unread(f) for name, f in self.program.functions().items()}
        self.known: dict[str, bool] = {}

    @staticmethod
    def _unread(f: PtxFunction) -> set[str]:
        return {f.regs[r].name for r in undefined(f)}

    def run(self) -> str:
        """The smallest text found. Raises OriasError if the given one does not show the fault."""
        if not self._shows(self.text):
            raise OriasError("the program does not show the fault (as it is printed from its tree)")
        size = -1
        while size != len(self.text):
            size = len(self.text)
            self._kernels()
            self._bodies()
            self._operands()
            self._declarations()
        self.pool.shutdown()
        return self.text

    # ------------------------------------------------------------ candidates

    def _shows(self, text: str) -> bool:
        """Whether a text is a program that still shows the fault."""
        if text not in self.known:
            self.known[text] = self._sound(text) and self.judge(text)
        return self.known[text]

    def _sound(self, text: str) -> bool:
        try:
            program = Program(text, self.target)
        except OriasError:
            return False
        return all(self._unread(f) <= self.allowed.get(n, set()) for n, f in program.functions().items())

    def _first(self, texts: Iterator[tuple[int, str]]) -> tuple[int, str] | None:
        """The first of the texts that shows the fault, with its number; as many are judged at once as there are
        jobs."""
        done = False
        while not done:
            batch: list[tuple[int, str]] = []
            while len(batch) < self.jobs:
                got = next(texts, None)
                if got is None:
                    done = True
                    break
                if got[1] != self.text:
                    batch.append(got)
            for one, good in zip(batch, self.pool.map(lambda b: self._shows(b[1]), batch)):
                if good:
                    return one
        return None

    def _take(self, text: str, what: str) -> None:
        self.text = text
        self.program = Program(text, self.target)
        self.say(f"{len(text.splitlines())} lines: {what}")

    # ------------------------------------------------------------ steps

    def _kernels(self) -> None:
        """One kernel alone if that suffices, else one fewer repeatedly."""
        names = list(self.program.module.entries)
        tries: Sequence[list[str]] = [[n] for n in names] if len(names) > 1 else []
        got = self._first(enumerate(self.program.text(only) for only in tries))
        if got is not None:
            self._take(got[1], f"kernel {names[got[0]]} alone")
            return
        for name in names if len(names) > 1 else ():
            left = [n for n in self.program.module.entries if n != name]
            text = self.program.text(left)
            if left and self._shows(text):
                self._take(text, f"without kernel {name}")

    def _bodies(self) -> None:
        """Chunks of the instructions of each function, the last first: a definition is removed after its uses."""
        for name in list(self.program.functions()):
            size = max(len(self._body(name)) // 2, 1)
            while size:
                at = len(self._body(name))
                while at > 0:
                    got = self._first(self._chunks(name, size, at))
                    if got is None:
                        break
                    before = len(self._body(name))
                    self._take(got[1], f"{name}: {size} instructions")
                    at = min(got[0], len(self._body(name))) if len(self._body(name)) < before else got[0] - size
                size //= 2

    def _body(self, name: str) -> list[object]:
        f = self.program.functions().get(name)
        return list(f.body) if f is not None else []

    def _chunks(self, name: str, size: int, end: int) -> Iterator[tuple[int, str]]:
        f = self.program.functions().get(name)
        while f is not None and end > 0:
            for new in without(f, max(end - size, 0), end):
                yield end, self.program.text(None, {name: new})
            end -= size

    def _operands(self) -> None:
        for name in list(self.program.functions()):
            at = 0
            while at < len(self._body(name)):
                got = self._first(self._simpler(name, at))
                if got is None:
                    break
                self._take(got[1], f"{name}: an operand")
                at = got[0]

    def _simpler(self, name: str, start: int) -> Iterator[tuple[int, str]]:
        f = self.program.functions()[name]
        for at in range(start, len(f.body)):
            for new in simplified(f, at):
                yield at, self.program.text(None, {name: new})

    def _declarations(self) -> None:
        """Unused labels, registers and variables, all at once; then parameters and module variables one by
        one."""
        tidy = {name: without_unused(f) for name, f in self.program.functions().items()}
        text = self.program.text(None, tidy)
        if text != self.text and self._shows(text):
            self._take(text, "declarations")
        for name, f in self.program.functions().items():
            for p in reversed(f.params):
                new = copy(self.program.functions()[name])
                new.params = tuple([q for q in new.params if q.name != p.name])
                text = self.program.text(None, {name: new})
                if self._shows(text):
                    self._take(text, f"{name}: parameter {p.name}")
        for v in list(self.program.module.variables):
            kept = self.program.module.variables
            self.program.module.variables = [x for x in kept if x.name != v.name]
            text = self.program.text()
            self.program.module.variables = kept
            if self._shows(text):
                self._take(text, f"variable {v.name}")
