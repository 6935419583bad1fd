"""The result in words: lines for a bug report, and the commands that reproduce it."""

from __future__ import annotations

import difflib
import io
import shlex
from collections.abc import Sequence

from ir_format import wire
from ir_format.diag import OriasError
from stages.bisect.bisect import Guilt
from stages.bisect.chain import Chain, Setting, header_of
from stages.bisect.search import Verdict, first_wrong
from stages.plumbing.runner import VERSION

#: Most lines of a difference that are shown.
SHOWN = 60


def words_of(setting: Setting) -> list[str]:
    """The `orias` command-line options that give the stages these flags."""
    words: list[str] = []
    for name, command in setting.foreign.items():
        words += ["--stage", f"{name}={command}"]
    for name, f in setting.flags.items():
        if name in setting.foreign:
            continue
        words += [w for text in f.added for w in ("--pass", f"{name}:{text}")]
        settings = [f"skip={','.join(f.skip)}"] if f.skip else []
        settings += [f"only={','.join(f.only)}"] if f.only else []
        settings += [f"{k}={v}" for k, v in f.extra.items()]
        settings += [f"start-after={f.start_after}"] if f.start_after else []
        settings += [f"stop-after={f.stop_after}"] if f.stop_after else []
        if f.limit is not None:
            settings.append(f"limit={f.limit_unit}:{f.limit}" if f.limit_unit else f"limit={f.limit}")
        for s in settings:
            words += ["--stage-option", f"{name}:{s}"]
    return words


def command(chain: Chain, setting: Setting, source: str, given: Sequence[str], out: str) -> str:
    """The `orias` command line that makes one of the two cubins. ``given``: the user's options."""
    words = ["orias", "--start-from", source] if chain.saved else ["orias", source, *given]
    if chain.saved and undefined_itself(chain):
        words.append("--allow-undefined")
    return shlex.join([*words, *words_of(setting), "-o", out])


def undefined_itself(chain: Chain) -> bool:
    """Whether the given stream has effects that depend on words which nothing defines."""
    from stages.check.streams import Stream, undefined

    return any(True for _ in undefined(Stream(chain.data)))


def texts(data: bytes) -> list[str]:
    """The lines of a stream's text."""
    from ir_format.text import print_unit

    if not data:
        return []
    frames = list(wire.frames(io.BytesIO(data)))
    level = wire.header_from_wire(wire.unpack(frames[0][1])).level
    if level == "ptx":
        return []
    units = [wire.unit_from_wire(wire.unpack(d), level) for tag, d in frames if tag == "unit"]
    return [line for u in units for line in print_unit(u, level).splitlines()]


def changed(before: bytes, after: bytes) -> list[str]:
    """The lines in which two streams differ, as a unified difference of their text."""
    return list(difflib.unified_diff(texts(before), texts(after), "right", "wrong", lineterm="", n=2))


def undefined_by(chain: Chain, guilt: Guilt) -> list[str]:
    """The pass and the rewrite of `optimize` that first make a defined word undefined, and what reads it. Later stages
    may use any register for such a word, so the value becomes wrong only there."""
    from stages.check.streams import Stream, newly_undefined

    mine = [n + 1 for n, p in enumerate(chain.parts[: guilt.on or len(chain.parts)]) if p.stage == "optimize"]
    if not mine or guilt.stage == "optimize":
        return []
    first = chain.on(0).streams.get("lower") or chain.data
    if header_of(first).level != "ori":
        return []
    base = Stream(first)

    def findings(on: int, limit: int | None = None) -> list[str]:
        made = chain.stream(on, limit)
        return list(newly_undefined(base, Stream(made))) if made else []

    def verdict(on: int, limit: int | None = None) -> Verdict:
        return Verdict.WRONG if findings(on, limit) else Verdict.RIGHT

    if not findings(mine[-1]):
        return []
    low, on = first_wrong(mine[0] - 1, mine[-1], lambda n: verdict(n) if n >= mine[0] else Verdict.RIGHT)
    start, end = chain.counted(on)
    rewrite = first_wrong(start, end, lambda n: verdict(on, n))[1] if end - start > 1 else end
    return [
        f"undefined from {chain.parts[on - 1]} on, rewrite {rewrite} of {start + 1} to {end}:",
        *(f"  {t}" for t in findings(on, rewrite)[:5]),
    ]


def headline(guilt: Guilt) -> str:
    """The first line: the culprit."""
    if len(guilt.parts) > 1:
        names = f"{guilt.parts[0]} to {guilt.parts[-1]} (what lies between can't be judged)"
    elif guilt.parts and guilt.parts[0].command:
        names = f"{guilt.stage}: the command given for it"
    else:
        names = (
            f"{guilt.stage}: {guilt.name}"
            if guilt.name
            else f"stage {guilt.stage}"
            if guilt.stage
            else "the given stream"
        )
    return f"wrong from {names} on" + (
        f", rewrite {guilt.rewrite} of {guilt.of[0] + 1} to {guilt.of[1]}" if guilt.rewrite else ""
    )


def rules_of(chain: Chain, guilt: Guilt) -> list[str]:
    """What the guilty stage counts in the wrong step: rules that the pass applied, by its own names."""
    if guilt.right is None or guilt.wrong is None:
        return []
    right, wrong = (chain.make(s).counts.get(guilt.stage, {}) for s in (guilt.right, guilt.wrong))
    return [k.removeprefix("rule ") for k, n in wrong.items() if n > right.get(k, 0)]


def report(chain: Chain, guilt: Guilt, source: str, given: Sequence[str] = ()) -> list[str]:
    """Lines for people. ``chain``: of the whole module."""
    lines = [headline(guilt), f"found by {guilt.judge}: {guilt.said}"]
    options = shlex.join(given) or f"-O{chain.opt}"
    lines.append(f"orias {VERSION}, {chain.header.target}, {options}; kernel: {', '.join(guilt.kernels) or 'any'}")
    rules = rules_of(chain, guilt)
    lines += [f"rule: {', '.join(rules)}"] if rules else []
    lines += [f"note: {n}" for n in (*guilt.notes, *undefined_by(chain, guilt))]
    if guilt.right is not None:
        lines.append("right: " + command(chain, guilt.right, source, given, "right.cubin"))
    if guilt.wrong is not None:
        lines.append("wrong: " + command(chain, guilt.wrong, source, given, "wrong.cubin"))
    if guilt.wrong is not None and "simulation" in guilt.judge and not chain.saved:
        words = ["orias-check", source, "--cosim", "--arch", chain.header.target, "--cubin", "wrong.cubin"]
        words += [w for k in guilt.kernels[:1] for w in ("--kernel", k)]
        lines.append("check: " + shlex.join([*words, *(["--strict"] if guilt.judge.startswith("strict") else [])]))
    lines += guilt.evidence
    lines += [f"  {t}" for t in _schedule(chain, guilt)[:10]]
    if guilt.before and guilt.after:
        diff = changed(guilt.before, guilt.after)
        lines += diff[:SHOWN]
        if len(diff) > SHOWN:
            lines.append(f"... {len(diff) - SHOWN} more lines")
    return lines


def _schedule(chain: Chain, guilt: Guilt) -> list[str]:
    """The schedule checker's findings on the wrong one."""
    from stages.check.schedule_checker import check_bytes

    made = chain.make(guilt.wrong) if guilt.wrong is not None else None
    if made is None or not made.cubin:
        return []
    try:
        return [f"schedule checker: {f}" for f in check_bytes(made.cubin).findings]
    except OriasError as e:
        return [f"schedule checker: {e}"]


def page(chain: Chain, guilt: Guilt, lines: Sequence[str]) -> str:
    """The report as one HTML page, with the two streams side by side."""
    import html

    table = difflib.HtmlDiff(wrapcolumn=90).make_table(
        texts(guilt.before), texts(guilt.after), "right", "wrong", context=True, numlines=4
    )
    style = (
        "body{font-family:sans-serif;margin:1em}pre{background:#f4f4f4;color:#111;padding:1em;overflow:auto}"
        "table.diff{font-family:monospace;font-size:12px;border-collapse:collapse}.diff td{padding:0 "
        ".5em;white-space:pre-wrap}"
        ".diff_add{background:#cfe8ff}.diff_sub{background:#ffe0b3}.diff_chg{background:#ffffa0}"
        ".diff_next{display:none}"
    )
    body = html.escape("\n".join(lines))
    return (
        f"<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>{html.escape(headline(guilt))}</title>"
        f"<style>{style}</style><pre>{body}</pre>{table}</html>\n"
    )
