"""The page of a kernel (--report NAME.html)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.driver import Run
    from stages.plumbing.observe import Seen


def pages(run: Run, seen: Sequence[Seen], cubin: bytes) -> Iterator[tuple[str, bytes]]:
    """(file name, page) of each kernel."""
    from orchestrator.driver import Abort

    raise Abort("Option '--report' for a page is not supported by orias yet")
