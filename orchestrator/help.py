"""The help text of `orias`."""

from __future__ import annotations

from ir_format.release import DEFAULT, RELEASES, Release
from ir_format.target import targets
from ir_format.typed import Final
from orchestrator.options import GROUPS, Option

WIDTH: Final = 100
_VALUE: Final = {"flag": "", "bool": " <true|false>", "int": " <N>", "level": " <N>", "maybe": "[=<value>]"}


def _row(option: Option) -> str:
    short = f" (-{option.short})" if option.short and len(option.short) < len(option.long) + 1 else ""
    return f"  {'--' + option.long + _VALUE.get(option.kind, ' <value>') + short:58} {option.help}".rstrip()


def _targets(release: Release) -> list[str]:
    """All values of -arch, quoted as tools that read a help text look for them."""
    names = sorted([name for name, t in targets().items() if t.min_ptx <= release.newest])
    words = [f"'{kind}_{name.removeprefix('sm_')}'" for kind in ("compute", "lto", "sm") for name in names]
    lines = ["  Allowed values of --gpu-name:"]
    for word in words:
        if len(lines[-1]) + len(word) + 1 > WIDTH or len(lines) == 1:
            lines.append("   ")
        lines[-1] += f" {word},"
    lines[-1] = lines[-1].removesuffix(",") + "."
    return lines


def usage(release: Release = RELEASES[DEFAULT]) -> str:
    """Help text: the options and targets of a release."""
    rows = [
        "Usage  : orias [options] <ptx file>,...",
        "",
        "Compiles PTX to a cubin. Values follow as the next word or after '='.",
    ]
    for title, options in GROUPS:
        rows += ["", f"{title}:"]
        known = [_row(o) for o in options if not o.since or float(o.since) <= float(release.name)]
        if options[0].long == "gpu-name":
            known[1:1] = _targets(release)
        rows += known
    return "\n".join(rows) + "\n"
