"""Whether another compiler is wrong: its cubins at every -O level against the PTX interpreter, a second witness, and a
report for its maker.

It is accused only if something other than our interpreter agrees: its own cubin at another -O level, or the cubin of a
further compiler (``--witness``), computes the expected value in the same launch. Agreement of our own compiler is
reported but does not count: its authors read the manual in the same way as the interpreter's."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ir_format.diag import OriasError
from ir_format.record import Record
from stages.bisect.attempt import Failure, Note, attempt
from stages.bisect.host import host_program
from stages.bisect.judges import Cosim
from stages.bisect.search import Verdict
from stages.check.command import compile_elsewhere
from stages.plumbing.files import write_file

LEVELS: Final = (0, 1, 2, 3)


class Vendor(Record):
    """A compiler with ptxas's command line; ``words``: options for it."""

    program: Path
    file: Path
    text: str
    arch: str
    words: list[str]
    kernels: tuple[str, ...]
    seeds: int | None
    seconds: float

    def cubin(self, level: int, file: Path | None = None) -> bytes | str:
        """Its cubin, or its error output."""
        return compile_elsewhere(self.program, file or self.file, self.arch, [*self.words, f"-O{level}"])

    def judge(self) -> Cosim:
        """A judge of its cubins. Raises OriasError."""
        got = Cosim(self.text, self.arch, self.kernels, self.seeds, self.seconds)
        got.progress = True
        return got

    def command(self, level: int, out: str) -> str:
        """The command line that makes a cubin."""
        return shlex.join([str(self.program), str(self.file), "-arch", self.arch, *self.words, f"-O{level}", "-o", out])


class Case(Record):
    """A wrong cubin: its level, the launch (shrunk), the element, the finding; the witnesses against it."""

    level: int
    cubin: bytes
    judge: Cosim
    said: str
    launch: Any
    evidence: list[str]
    first: tuple[int, int] | None
    witnesses: list[tuple[str, bytes]]
    ours: str


def table(vendor: Vendor, say: Callable[[str], object]) -> tuple[dict[int, bytes], dict[int, tuple[str, Cosim]]]:
    """Its cubins by level, and the verdicts (with the judge)."""
    cubins: dict[int, bytes] = {}
    verdicts: dict[int, tuple[str, Cosim]] = {}
    for level in LEVELS:
        got = vendor.cubin(level)
        judge = vendor.judge()
        if isinstance(got, str):
            verdicts[level] = (f"no cubin: {got}", judge)
            continue
        cubins[level] = got
        judge.look(got)
        word = "WRONG" if judge.kernels else "ok" if judge.launches else "?"
        verdicts[level] = (word, judge)
        say(f"-O{level}: {word}{f' ({judge.said})' if judge.kernels else ''}")
    return cubins, verdicts


def find(vendor: Vendor, witness: Path | None, say: Callable[[str], object]) -> tuple[list[str], Case | None]:
    """The table, and the wrong cubin of the highest level, if there is one."""
    cubins, verdicts = table(vendor, say)
    lines = [f"-O{level}: {word}" for level, (word, _) in verdicts.items()]
    wrong = [level for level, (word, _) in verdicts.items() if word == "WRONG"]
    if not wrong:
        return lines, None
    level = wrong[-1]
    judge = verdicts[level][1]
    launch, evidence, first = judge.explain(cubins[level])
    witnesses = [(f"{vendor.program.name} -O{n}", data) for n, data in cubins.items() if n != level]
    if witness is not None:
        got = compile_elsewhere(witness, vendor.file, vendor.arch, [*vendor.words, f"-O{level}"])
        if isinstance(got, bytes):
            witnesses.append((f"{witness} -O{level}", got))
    said = judge.said  # the judge's text changes with each question
    agree = [(name, data) for name, data in witnesses if judge(data) is Verdict.RIGHT]
    return lines, Case(level, cubins[level], judge, said, launch, evidence, first, agree, _ours(vendor, judge))


def _ours(vendor: Vendor, judge: Cosim) -> str:
    def job(note: Note) -> bytes:
        from orchestrator.api import compile_ptx

        return compile_ptx(vendor.text, vendor.arch, {"fmad": 0}, name=str(vendor.file))

    got = attempt(job, vendor.seconds)
    if isinstance(got, Failure):
        return f"there is none ({got.message})"
    return {Verdict.RIGHT: "agrees", Verdict.WRONG: f"differs: {judge.said}"}.get(judge(got), "can't be judged")


def report(vendor: Vendor, lines: list[str], case: Case) -> list[str]:
    """Lines that can be pasted."""
    out = [
        f"{vendor.program.name} -O{case.level} makes a wrong cubin"
        if case.witnesses
        else f"{vendor.program.name} -O{case.level} and the interpreter differ, and no witness says which is wrong: "
        "not accused (--witness PROGRAM names another compiler)",
        f"target {vendor.arch}, options {shlex.join(vendor.words) or 'none'}; kernel: {', '.join(case.judge.kernels)}",
        f"found by co-simulation: {case.said}",
        *(f"witness: {name} computes the expected value in that launch" for name, _ in case.witnesses),
        f"our cubin: {case.ours}",
        *case.evidence,
        "wrong: " + vendor.command(case.level, "wrong.cubin"),
    ]
    levels = [n for n in LEVELS if (f"{vendor.program.name} -O{n}") in [name for name, _ in case.witnesses]]
    out += ["right: " + vendor.command(levels[-1], "right.cubin")] if levels else []
    return [*out, *lines]


def folder(vendor: Vendor, case: Case, lines: list[str], where: Path) -> None:
    """Write the report, both cubins, a page with the two side by side, the PTX and a host program. Raises OSError."""
    from stages.diff.diff import page, paired
    from stages.diff.timed import read_codes

    where.mkdir(parents=True, exist_ok=True)
    write_file(str(where / "report.txt"), ("\n".join(lines) + "\n").encode())
    write_file(str(where / vendor.file.name), vendor.text.encode("latin-1"))
    write_file(str(where / "wrong.cubin"), case.cubin)
    if case.witnesses:
        write_file(str(where / "right.cubin"), case.witnesses[-1][1])
        try:
            codes = [read_codes(case.witnesses[-1][1]), read_codes(case.cubin)]
            names = (f"right: {case.witnesses[-1][0]}", f"wrong: {vendor.program.name} -O{case.level}")
            write_file(str(where / "report.html"), page(paired(*codes), names, lines).encode())
        except OriasError:
            pass  # code that can't be aligned has no page
    if case.first is not None and case.witnesses:
        write_file(str(where / "repro.cu"), _host(case).encode())


def _host(case: Case) -> str:
    from stages.check.executors import interpret
    from stages.check.memory_compare import size_of

    assert case.first is not None
    k, byte = case.first
    size = size_of(case.launch.types[k])
    base = interpret(case.judge.cosim.module, case.launch)
    at = byte // size * size
    expected = int.from_bytes(bytes(base.buffers[k][at : at + size]), "little")
    return host_program(case.launch, k, byte, size, expected)
