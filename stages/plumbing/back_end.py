"""The back end of the chain: a stream at level `encoded` becomes a cubin."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from ir_format import wire
from ir_format.diag import CompileError, Diagnostic, StreamError
from ir_format.model import Header, Unit
from ir_format.typed import BinaryIO
from stages.plumbing.runner import ABORTED, failed, print_diags


def elf_from_stream(
    inp: BinaryIO, write: Callable[[bytes], object], quiet: bool = False, say: Callable[[str], object] | None = None
) -> int:
    """Link a stream at level `encoded` and pass the bytes of the cubin to ``write``. Returns 0; after errors 1, and
    after an internal fault 2: then diagnostics go to ``say`` (standard error) and nothing is written."""
    from stages.elf.link import link
    from stages.elf.report import usage_warnings

    say = say or sys.stderr.write
    header: Header | None = None
    module = None
    units: list[Unit] = []
    try:
        for tag, body in wire.records(inp):
            if tag == wire.MAGIC:
                header = wire.header_from_wire(body)
                if header.level != "encoded":
                    raise StreamError(f"stage elf reads level 'encoded', this stream is at level '{header.level}'")
            elif tag == "module":
                module = wire.module_from_wire(body)
            else:
                units.append(wire.unit_from_wire(body, "encoded"))
        if header is None or module is None:
            raise StreamError("ori stream: no module record")
        bad = [u for u in units if failed(u)]
        silent = bool(header.options.get("disable-warnings"))
        strict = bool(header.options.get("warning-as-error")) and not silent
        for u in units:
            if not (failed(u) and quiet):
                print_diags(u, header, say)
        if strict and any(d[0] == "warning" for u in units for d in u.diags):
            say(ABORTED)
            return 1
        if bad:
            return 1
        notes: list[str] = []
        data = link(header, module, units, notes)
        for text in notes:
            say(Diagnostic("info", text).render() + "\n")
        warnings = [] if silent else usage_warnings(header, module, units)
        for text in warnings:
            say(Diagnostic("error" if strict else "warning", text).render() + "\n")
        if strict and warnings:
            return 1
        if header.options.get("verbose"):
            from stages.elf.report import resource_lines

            for line in resource_lines(header, module, units):
                say(line + "\n")
    except StreamError as e:
        say(f"orias-elf: {e}\n")
        return 1
    except CompileError as e:
        say(Diagnostic(e.severity, e.message, header.source if header else "", e.line).render() + "\n")
        return 1
    except OSError as e:
        say(f"orias-elf: can't read the stream: {e.strerror or e}\n")
        return 1
    except (MemoryError, RecursionError) as e:
        say(f"orias-elf: {type(e).__name__} while reading the stream\n")
        return 1
    except Exception as e:
        where = e.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        place = f"{os.path.basename(where.tb_frame.f_code.co_filename)}:{where.tb_lineno}" if where is not None else "?"
        say(f"orias-elf: internal fault ({type(e).__name__}: {e}) at {place}; please report it with the stream\n")
        return 2
    write(data)
    return 0
