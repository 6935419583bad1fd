"""The first look: judges that need no test. Each blames the stage that wrote what breaks its rule.

They check the whole chain, in the order of the stages, before anything is searched. The first with a finding is the
judge of the search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ir_format import wire
from ir_format.diag import CompileError, OriasError
from ir_format.record import Record
from stages.bisect.attempt import Failure, Note, attempt
from stages.bisect.chain import Made
from stages.check.streams import Stream

Findings = Iterator[str]


class Rule(Record, frozen=True):
    """A judge. ``stage``: the stage that it blames; ``needs``: streams that it looks at ('' for the cubin); ``ask``:
    its findings."""

    name: str
    stage: str
    needs: tuple[str, ...]
    ask: Callable[[Made], Findings]


def _rules(stage: str) -> Rule:
    def ask(made: Made) -> Findings:
        from stages.check.streams import verify

        yield from verify(Stream(made.streams[stage]))

    return Rule("rules of the level", stage, (stage,), ask)


def _undefined(made: Made) -> Findings:
    from stages.check.streams import newly_undefined

    yield from newly_undefined(Stream(made.streams["lower"]), Stream(made.streams["optimize"]))


def _allocation(made: Made) -> Findings:
    from stages.check.streams import allocation

    yield from allocation(Stream(made.streams["optimize"]), Stream(made.streams["regalloc"]))


def _order(made: Made) -> Findings:
    from stages.check.streams import order

    yield from order(Stream(made.streams["regalloc"]), Stream(made.streams["schedule"]))


def _encoding(made: Made) -> Findings:
    from stages.check.streams import encoding

    yield from encoding(Stream(made.streams["schedule"]), Stream(made.streams["encode"]))


def _image(made: Made) -> Findings:
    from stages.check.coding import image

    stream = Stream(made.streams["encode"])
    yield from image(wire.module_from_wire(wire.unpack(stream.module)), list(stream.units()), made.cubin)


def _schedule(made: Made) -> Findings:
    from stages.check import scoreboards
    from stages.check.schedule_checker import check_bytes

    yield from map(str, check_bytes(made.cubin).findings)
    yield from scoreboards.check_bytes(made.cubin)


def _records(made: Made) -> Findings:
    from stages.check.records import check_records

    yield from check_records(made.cubin)


def _convergence(made: Made) -> Findings:
    from stages.check.convergence_checker import check_bytes

    yield from map(str, check_bytes(made.cubin).findings)


#: In the order of the stages. Rules about the code itself come before judges that read the code.
RULES: Final = (
    _rules("lower"),
    _rules("optimize"),
    Rule("undefined words", "optimize", ("lower", "optimize"), _undefined),
    _rules("regalloc"),
    Rule("allocation checker", "regalloc", ("optimize", "regalloc"), _allocation),
    _rules("schedule"),
    Rule("order checker", "schedule", ("regalloc", "schedule"), _order),
    Rule("decoder", "encode", ("schedule", "encode"), _encoding),
    Rule("reader of cubins", "elf", ("encode", ""), _image),
    Rule("schedule checker", "schedule", ("",), _schedule),
    Rule("records", "elf", ("",), _records),
)
#: The search finds the stage to blame: lower or optimize places the convergence barriers.
CONVERGENCE: Final = Rule("convergence checker", "", ("",), _convergence)


def left_undefined(made: Made, ptx: bytes) -> list[str]:
    """Effects that depend on words which nothing defines in the stream after `lower`, although the PTX (a stream of
    level `ptx`) writes all that it reads. Later stages choose the value of such a word, so that a right cubin is
    luck."""
    import io

    from stages.check.ptx_uses import undefined as unread
    from stages.check.streams import undefined
    from stages.plumbing.chain import stage
    from stages.plumbing.runner import read_unit

    if "lower" not in made.streams:
        return []
    row = stage("lower")
    units = [read_unit(row, b) for tag, b in wire.records(io.BytesIO(ptx), raw_lists=True) if tag == "unit"]
    open_units = {u.name for u in units if any(unread(f) for f in u.functions)}
    return [f for f in undefined(Stream(made.streams["lower"])) if f.partition(":")[0] not in open_units]


def applicable(rule: Rule, made: Made) -> bool:
    """Whether the streams that a rule needs exist."""
    return all(made.cubin if not name else name in made.streams for name in rule.needs)


def findings(rule: Rule, made: Made, seconds: float) -> list[str]:
    """A judge's findings; none if it cannot judge or takes too long."""

    def job(note: Note) -> list[str]:
        note(rule.name)
        return asked(rule, made)

    got = attempt(job, seconds)
    return [] if isinstance(got, Failure) else got


def asked(rule: Rule, made: Made) -> list[str]:
    """A judge's findings, computed in this process."""
    if not applicable(rule, made):
        return []
    try:
        return [str(f) for f in rule.ask(made)]
    except CompileError as e:
        return [e.message]
    except OriasError as e:
        return [] if rule.stage == "elf" and rule.name != "reader of cubins" else [str(e)]


def first_look(made: Made, seconds: float, say: Callable[[str], object]) -> tuple[Rule, list[str]] | None:
    """The first judge with a finding, and all its findings."""

    def job(note: Note) -> tuple[int, list[str]] | None:
        for n, rule in enumerate((*RULES, CONVERGENCE)):
            note(rule.name)
            try:
                found = asked(rule, made)
            except Exception as e:  # a judge that crashes on damaged code leaves the verdict to the others
                note((rule.name, f"{type(e).__name__}: {e}"))
                continue
            if found:
                return n, found
        return None

    got = attempt(job, seconds, say, lambda broken: say(f"{broken[0]} can't judge: {broken[1]}"))
    if isinstance(got, Failure):
        say(f"first look: {got}")
        return None
    return None if got is None else ((*RULES, CONVERGENCE)[got[0]], got[1])
