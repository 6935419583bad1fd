"""What the functions of :mod:`orias` return and raise."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ir_format.diag import OriasError
from orchestrator.diagnostics import Finding

if TYPE_CHECKING:
    from stages.analysis.occupancy import Occupancy as Occupancy


class CompileError(OriasError):
    """The PTX was refused. ``diagnostics``: all that was said, with places; the text of the exception is ptxas's."""

    def __init__(self, diagnostics: Sequence[Finding]) -> None:
        super().__init__("\n".join([d.text for d in diagnostics]))
        self.diagnostics = tuple(diagnostics)


class InternalError(OriasError):
    """A fault of orias itself; the text names the file that reproduces it."""


class OptionError(OriasError, TypeError):
    """An option that there is not, or a value that it does not take."""


@dataclass(frozen=True)
class Kernel:
    """A kernel of a cubin, and what it needs of the machine.

    ``spill_stores``, ``spill_loads``: bytes a thread, counted in the code; ``stack``: bytes of local memory of a thread
    (the kernel's own frame); ``shared``: bytes of static shared memory; ``barriers``: named barriers; ``parameters``:
    bytes; ``instructions``: without the padding; ``threads``: of a block, as the PTX bounds them (.reqntid, .maxntid),
    or 0.
    """

    name: str
    arch: str
    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared: int
    barriers: int
    parameters: int
    instructions: int
    threads: int

    def occupancy(self, threads: int = 0, dynamic_shared: int = 0) -> Occupancy:
        """How many blocks of ``threads`` threads (by default the PTX's bound, or 256) one SM holds, and what limits
        them."""
        from ir_format.target import target
        from stages.analysis.occupancy import occupancy

        threads = threads or self.threads or 256
        if dynamic_shared < 0:
            raise ValueError(f"a block has 1 to 1024 threads and no negative amount of shared memory, not {threads}")
        return occupancy(target(self.arch), self.registers, self.shared + dynamic_shared, threads)


@dataclass(frozen=True)
class Cubin:
    """A compiled module. ``image``: the file's bytes; ``kernels``: by name; ``diagnostics``: warnings and notes;
    ``report``: the resources of all kernels as `ptxas -v` prints them."""

    image: bytes
    arch: str
    kernels: Mapping[str, Kernel]
    diagnostics: tuple[Finding, ...]
    report: str

    def __bytes__(self) -> bytes:
        return self.image

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file; it appears whole or not at all."""
        from stages.plumbing.files import write_file

        write_file(os.fspath(path), self.image)


@dataclass(frozen=True)
class PassInfo:
    """A pass of a stage. ``level``: the lowest -O level at which it runs; ``required``: it can't be skipped."""

    name: str
    level: int
    required: bool


@dataclass(frozen=True)
class Verdict:
    """What the judges say of a cubin. ``findings``: rules that are broken; ``unjudged``: what could not be judged.
    True where neither is."""

    findings: tuple[str, ...]
    unjudged: tuple[str, ...]
    instructions: int

    def __bool__(self) -> bool:
        return not self.findings and not self.unjudged


def __getattr__(name: str) -> type:
    if name == "Occupancy":
        from stages.analysis.occupancy import Occupancy

        return Occupancy
    raise AttributeError(name)
