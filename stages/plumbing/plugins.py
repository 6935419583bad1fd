"""Passes of the user's own in a stage: ``after=NAME:WHAT``, where WHAT is a Python function
(``package.module:function``), an entry point of the group ``orias.passes``, or a command that reads a stream of one
unit and writes one."""

from __future__ import annotations

import io
import re
import subprocess
from collections.abc import Callable, Sequence

from ir_format import wire
from ir_format.diag import CompileError, StreamError
from ir_format.model import Unit
from ir_format.typed import Final
from ir_format.verify import verify_unit
from stages.plumbing.stage import Context, Pass, Stage, as_tuples

#: The group of entry points that name passes.
GROUP: Final = "orias.passes"
_FUNCTION: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_NAME: Final = re.compile(r"[A-Za-z_][\w.-]*")


def with_added(stage: Stage, passes: Sequence[Pass], added: Sequence[str]) -> list[Pass]:
    """The passes of a stage with the user's among them. Raises StreamError."""
    out = list(passes)
    for text in added:
        where, eq, rest = text.partition("=")
        name, colon, what = rest.partition(":")
        if where not in ("after", "before") or not eq or not colon or not what:
            raise StreamError(f"'{text}': expected after=NAME:WHAT or before=NAME:WHAT")
        known = [p.name for p in out]
        if name not in known:
            raise StreamError(f"stage {stage.name} has no pass '{name}'; it has {', '.join(known) or 'none'}")
        own = _own(stage, what)
        label = own.name
        while label in known:
            label += "'"
        out.insert(known.index(name) + (where == "after"), Pass(label, _at_level(stage, own.run)))
    return out


def _at_level(stage: Stage, run: Callable[[Unit, Context], object]) -> Callable[[Unit, Context], object]:
    """The pass, after what brings the unit to the level as it is documented: a stage may have a form of its own
    between its passes."""
    if stage.finish is None:
        return run
    finish = stage.finish()

    def own(unit: Unit, ctx: Context) -> None:
        finish(unit, ctx)
        run(unit, ctx)

    return own


def _own(stage: Stage, what: str) -> Pass:
    if _FUNCTION.fullmatch(what):
        return Pass(what, _imported(what))
    if _NAME.fullmatch(what):
        from importlib.metadata import entry_points

        for point in entry_points(group=GROUP, name=what):
            return Pass(what, point.load())
    return Pass(what, lambda unit, ctx: _filtered(stage, what, unit, ctx))


def _imported(what: str) -> Callable[[Unit, Context], object]:
    import importlib
    import os
    import sys

    module, _, name = what.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # the user asked for a module by name: it may lie where the command runs
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as e:
        raise StreamError(f"pass '{what}': {e}") from None
    if not callable(found):
        raise StreamError(f"pass '{what}': it can't be called")
    return found  # type: ignore[no-any-return]


def _level(stage: Stage, unit: Unit) -> str:
    """The level of a unit between two passes: that which the stage writes as soon as it keeps its
    rules."""
    insts = [i for f in unit.functions for b in f.blocks for i in b.insts]
    if stage.writes == "scheduled":
        return "scheduled" if all(i.ctl is not None for i in insts) else "allocated"
    if stage.writes == "encoded":
        return "encoded" if unit.code else "scheduled"
    if stage.writes == "allocated":
        return "ori" if any(f.vregs for f in unit.functions) else "allocated"
    return stage.writes


def _keeps_rules(unit: Unit, level: str, target: str) -> bool:
    try:
        verify_unit(unit, level, target)
    except CompileError:
        return False
    return True


def piped(command: str, data: bytes) -> tuple[bytes, str]:
    """What a shell command writes when it reads ``data``, and how it failed ('' where it did not)."""
    done = subprocess.run(command, shell=True, input=data, capture_output=True)
    if not done.returncode:
        return done.stdout, ""
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return b"", f"ended with exit code {done.returncode}" + (f": {said[-1]}" if said else "")


def _filtered(stage: Stage, command: str, unit: Unit, ctx: Context) -> None:
    """Run a command over the unit, in place. Raises CompileError, which blames the command."""

    def blame(text: str) -> CompileError:
        return CompileError(f"pass '{command}' of stage {stage.name} {text}")

    level = _level(stage, unit)
    whole = _keeps_rules(unit, level, ctx.header.target)  # between two passes it need not
    header = wire.header_from_wire(as_tuples(wire.header_to_wire(ctx.header)))
    header.level = level
    out, failed = piped(command, wire.stream_of(header, ctx.module, [unit]))
    if failed:
        raise blame(failed)
    try:
        got = [wire.unit_from_wire(body, level) for tag, body in wire.records(io.BytesIO(out)) if tag == "unit"]
        if [u.name for u in got] != [unit.name]:
            raise blame(f"wrote the units {', '.join(u.name for u in got) or '(none)'}, not {unit.name}")
        if whole:
            verify_unit(got[0], level, ctx.header.target)
    except StreamError as e:
        raise blame(f"wrote no valid stream ({e})") from None
    except CompileError as e:
        if e.message.startswith("pass '"):
            raise
        raise blame(f"broke a rule: {e.message}") from None
    new = got[0]
    unit.functions, unit.params, unit.code, unit.symbols = new.functions, new.params, new.code, new.symbols
    unit.attrs, unit.diags, unit.sections = new.attrs, new.diags, new.sections
