"""The releases of ptxas that orias replaces: the PTX versions that each accepts, and what callers read from `-V`.

Measured on ptxas 13.0.88 and 13.5.37. Their other differences are listed in docs/front-end.md.
"""

from __future__ import annotations

from ir_format.diag import CompileError
from ir_format.record import NamedTuple
from ir_format.typed import Final


class Release(NamedTuple):
    """``newest``: the last PTX version, as (major, minor). ``build``: what `-V` prints after the name. ``api``: values
    of --cuda-api-version."""

    name: str
    newest: tuple[int, int]
    build: str
    api: tuple[str, ...]

    @property
    def ptx(self) -> str:
        """The last PTX version as text."""
        return f"{self.newest[0]}.{self.newest[1]}"


RELEASES: Final = {
    "13.0": Release("13.0", (9, 0), "V13.0.88", ("13.0",)),
    "13.5": Release("13.5", (9, 5), "V13.5.37", ("13.0", "13.1", "13.2", "13.3", "13.4", "13.5")),
}
DEFAULT: Final = "13.5"

# All PTX versions in order; a release takes those up to its newest.
PTX_VERSIONS: Final = (
    (1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (2, 0), (2, 1), (2, 2), (2, 3), (3, 0), (3, 1), (3, 2),
    (4, 0), (4, 1), (4, 2), (4, 3), (5, 0), (5, 1), (6, 0), (6, 1), (6, 2), (6, 3), (6, 4), (6, 5), (7, 0),
    (7, 1), (7, 2), (7, 3), (7, 4), (7, 5), (7, 6), (7, 7), (7, 8), (8, 0), (8, 1), (8, 2), (8, 3), (8, 4),
    (8, 5), (8, 6), (8, 7), (8, 8), (9, 0), (9, 1), (9, 2), (9, 3), (9, 4), (9, 5),
)  # fmt: skip


def release(name: str) -> Release:
    """The release of a name; raises CompileError for one that orias does not replace."""
    found = RELEASES.get(name)
    if found is None:
        raise CompileError(f"Value '{name}' is not defined for option 'release'", severity="fatal")
    return found
