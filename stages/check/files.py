"""Reading what is judged."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

#: Most bytes of a file.
MOST: Final = 1 << 28


def read(path: Path) -> bytes:
    """A file's bytes. Raises OSError, also for files of more than `MOST` bytes."""
    with path.open("rb") as file:
        data = file.read(MOST + 1)
    if len(data) > MOST:
        raise OSError(errno.EFBIG, f"more than {MOST} bytes", str(path))
    return data
