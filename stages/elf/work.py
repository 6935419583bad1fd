"""The work of `orias-elf`, for any reader of its command line."""

from __future__ import annotations

import sys


def run_elf(stream: str | None, output: str | None) -> int:
    """Make the cubin of a stream; None means standard input and output. Returns the exit code."""
    from stages.plumbing.back_end import elf_from_stream
    from stages.plumbing.files import write_file

    parts: list[bytes] = []
    try:
        if stream is None or stream == "-":
            code = elf_from_stream(sys.stdin.buffer, parts.append, quiet=True)
        else:
            with open(stream, "rb") as inp:
                code = elf_from_stream(inp, parts.append, quiet=True)
        if code == 0 and output is not None:
            write_file(output, b"".join(parts))
        elif code == 0:
            sys.stdout.buffer.write(b"".join(parts))
    except OSError as e:
        sys.stderr.write(f"orias-elf: {e.filename or output or 'standard output'}: {e.strerror}\n")
        code = 1
    return code
