"""Find the part of the chain, and the rewrite, with which a cubin becomes wrong.

The plain chain (:mod:`stages.bisect.chain`) must be right and the whole one wrong. The first part with which it is wrong is found by binary search; of a part that
counts its rewrites, the first wrong rewrite likewise. What is found is a pair of cubins, one right, one wrong, that differ by one step.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

from ir_format.diag import OriasError
from ir_format.record import Record, fresh
from orchestrator.api import ChainError
from stages.bisect.chain import Chain, Part, header_of
from stages.bisect.search import Verdict, first_wrong

#: Lines of a difference that are shown.
SHOWN = 60


class Guilt(Record):
    """What was found. ``parts``: the guilty part; several where what lies between them could not be judged; none where the plain chain is wrong already.
    ``rewrite``: its first wrong rewrite, counted in its stage, 0 where it counts none. ``before``, ``after``: cubins without and with the step; streams behind the guilty part."""

    parts: list[Part]
    on: int = 0
    rewrite: int = 0
    of: tuple[int, int] = (0, 0)
    right: bytes = b""
    wrong: bytes = b""
    before: bytes = b""
    after: bytes = b""
    notes: list[str] = fresh(default_factory=list)


class Unfit(OriasError):
    """There is nothing to look for: the cubin is right, or can't be judged (``verdict``)."""

    def __init__(self, verdict: Verdict, why: str) -> None:
        super().__init__(f"the whole chain's cubin {'is right' if verdict is Verdict.RIGHT else verdict.value}: {why}")
        self.verdict = verdict


def bisect(chain: Chain, judge: Callable[[bytes], Verdict], say: Callable[[str], object] = lambda text: None) -> Guilt:
    """Find the guilty part. ``judge``: a cubin's verdict. Raises Unfit where the whole chain is not wrong."""
    known: dict[bytes, tuple[Verdict, str]] = {}

    def verdict(on: int, limit: int | None = None) -> Verdict:
        return seen(on, limit)[0]

    def seen(on: int, limit: int | None) -> tuple[Verdict, str]:
        what = "plain" if not on else f"up to {chain.parts[on - 1]}" + ("" if limit is None else f", {limit} rewrites")
        try:
            cubin = chain.cubin(on, limit)
        except ChainError as e:
            say(f"{what}: no cubin ({str(e).strip()})")
            return Verdict.OPEN, str(e).strip()
        if cubin not in known:
            known[cubin] = judge(cubin), getattr(judge, "said", "")
        found, said = known[cubin]
        say(f"{what}: {found.value}{f' ({said})' if said else ''}")
        return found, said

    whole = len(chain.parts)
    first, why = seen(whole, None)
    if first is not Verdict.WRONG:
        raise Unfit(first, why)
    plain = verdict(0) if whole else Verdict.WRONG
    if plain is not Verdict.RIGHT:
        return Guilt([], wrong=chain.cubin(whole), notes=[_not_plain(plain)])
    low, high = first_wrong(0, whole, verdict)
    guilt = Guilt(chain.parts[low:high], high)
    if high - low > 1 or not guilt.parts[0].counted:
        guilt.right, guilt.wrong = chain.cubin(low), chain.cubin(high)
        if high - low == 1:
            guilt.before, guilt.after = chain.stream(high - 1, None) if low else b"", chain.stream(high, None)
        return guilt
    same = low > 0 and chain.parts[low - 1].stage == guilt.parts[0].stage
    start, end = chain.rewrites(low) if same else 0, chain.rewrites(high)
    under, over = first_wrong(start, end, lambda n: verdict(high, n)) if end - start > 1 else (start, end)
    guilt.of = (start, end)
    guilt.rewrite = over if over - under == 1 else 0
    if over - under != 1:
        guilt.notes.append(f"rewrites {under + 1} to {over} can't be told apart")
    guilt.right, guilt.wrong = chain.cubin(high, under), chain.cubin(high, over)
    guilt.before, guilt.after = chain.stream(high, under), chain.stream(high, over)
    return guilt


def _not_plain(plain: Verdict) -> str:
    said = "wrong too" if plain is Verdict.WRONG else plain.value
    return f"the plain chain (no optional pass, naive allocator, serial schedule) is {said}: look at parse, lower, encode and elf, or at the test"


def command(guilt: Guilt, chain: Chain, rewrite: int | None, source: str, out: str) -> str:
    """The `orias` command line that makes one of the two cubins."""
    import shlex

    words = ["orias", "--start-from", source] if chain.saved else ["orias", source, "-arch", chain.header.target]
    for key, value in sorted(chain.header.options.items()) if not chain.saved else ():
        if isinstance(value, int | str):
            words.append(
                f"-O{value}"
                if key == "opt-level"
                else f"--{key}={str(bool(value)).lower() if key == 'fmad' else value}"
            )
    on = guilt.on - (rewrite is None and out.startswith("right"))
    for name, f in chain.flags(on, rewrite).items():
        settings = [f"skip={','.join(f.skip)}"] if f.skip else []
        settings += [f"{k}={v}" for k, v in f.extra.items()]
        settings += [f"limit={f.limit}"] if f.limit is not None else []
        for s in settings:
            words += ["--stage-option", f"{name}:{s}"]
    return shlex.join([*words, "-o", out])


def changed(before: bytes, after: bytes) -> list[str]:
    """The lines in which two streams differ, as a unified difference of their text."""
    import io

    from ir_format import wire
    from ir_format.text import print_unit

    texts: list[list[str]] = []
    for data in (before, after):
        frames = list(wire.frames(io.BytesIO(data)))
        level = wire.header_from_wire(wire.unpack(frames[0][1])).level
        units = [wire.unit_from_wire(wire.unpack(d), level) for tag, d in frames if tag == "unit"]
        texts.append([line for u in units for line in print_unit(u, level).splitlines()])
    return list(difflib.unified_diff(texts[0], texts[1], "right", "wrong", lineterm="", n=2))


def opinions(chain: Chain, guilt: Guilt) -> list[str]:
    """What the static judges say of the wrong one: the allocation checker where the allocator was run, the schedule checker of the cubin."""
    from stages.check.schedule_checker import check_bytes

    out = []
    if any(p.stage == "regalloc" for p in guilt.parts):
        flags = chain.flags(guilt.on)
        flags["regalloc"].verify = True
        try:
            chain.with_flags(flags)
        except ChainError as e:
            out.append(str(e).strip())
    try:
        out += [f"schedule checker: {f}" for f in check_bytes(guilt.wrong).findings]
    except OriasError as e:
        out.append(f"schedule checker: {e}")
    return out


def undefined_by(chain: Chain, guilt: Guilt) -> list[str]:
    """The pass and the rewrite of `optimize` that first make a word undefined that was defined, and what reads it. The stages behind may take any register for
    such a word, so that the value becomes wrong only there."""
    from stages.check.streams import Stream, newly_undefined

    mine = [n + 1 for n, p in enumerate(chain.parts[: guilt.on or len(chain.parts)]) if p.stage == "optimize"]
    if not mine or header_of(chain.data).level != "ori":
        return []
    first = Stream(chain.data)

    def findings(on: int, limit: int | None = None) -> list[str]:
        return list(newly_undefined(first, Stream(chain.stream(on, limit))))

    def verdict(on: int, limit: int | None = None) -> Verdict:
        return Verdict.WRONG if findings(on, limit) else Verdict.RIGHT

    if not findings(mine[-1]):
        return []
    low, on = first_wrong(mine[0] - 1, mine[-1], lambda n: verdict(n) if n >= mine[0] else Verdict.RIGHT)
    start, end = chain.rewrites(low) if low >= mine[0] else 0, chain.rewrites(on)
    rewrite = first_wrong(start, end, lambda n: verdict(on, n))[1] if end - start > 1 else end
    return [
        f"undefined from {chain.parts[on - 1]} on, rewrite {rewrite} of {start + 1} to {end}:",
        *(f"  {t}" for t in findings(on, rewrite)[:5]),
    ]


def report(chain: Chain, guilt: Guilt, source: str) -> Sequence[str]:
    """Lines for people."""
    lines = [f"note: {n}" for n in (*guilt.notes, *undefined_by(chain, guilt))]
    if not guilt.parts:
        return lines + [f"  {t}" for t in opinions(chain, guilt)[:10]]
    names = (
        str(guilt.parts[0])
        if len(guilt.parts) == 1
        else f"{guilt.parts[0]} to {guilt.parts[-1]} (what lies between can't be judged)"
    )
    lines.insert(
        0,
        f"wrong from {names} on"
        + (f", rewrite {guilt.rewrite} of {guilt.of[0] + 1} to {guilt.of[1]}" if guilt.rewrite else ""),
    )
    counted = guilt.rewrite or None
    lines.append("right: " + command(guilt, chain, counted and counted - 1, source, "right.cubin"))
    lines.append("wrong: " + command(guilt, chain, counted, source, "wrong.cubin"))
    lines += [f"  {t}" for t in opinions(chain, guilt)[:10]]
    if counted:
        diff = changed(guilt.before, guilt.after)
        lines += diff[:SHOWN]
        if len(diff) > SHOWN:
            lines.append(f"... {len(diff) - SHOWN} more lines")
    return lines
