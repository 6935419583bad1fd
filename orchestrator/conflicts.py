"""Options that contradict each other or ask for what a mode does not have: ptxas's verdicts, in its order (measured on
ptxas 13.0)."""

from __future__ import annotations

import os
from collections.abc import Callable

from ir_format import features
from ir_format.diag import Diagnostic
from ir_format.release import DEFAULT
from ir_format.typed import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orchestrator.options import CommandLine


class UsageError(Exception):
    """A command line that ptxas would refuse; the text is what follows ``ptxas fatal   : ``. ``error``: it is an error,
    and the fatal line follows."""

    def __init__(self, text: str, error: bool = False) -> None:
        super().__init__(text)
        self.error = error

    def render(self) -> str:
        """What ptxas prints."""
        return (
            f"ptxas error   : {self}\nptxas fatal   : Ptx assembly aborted due to errors\n"
            if self.error
            else f"ptxas fatal   : {self}\n"
        )


#: --Ofast-compile: level -> the -O levels that it can't be combined with, in ptxas's words; the level that it means.
FAST: Final = {"max": ("1,2,3", 0), "mid": ("0,2,3", 1), "min": ("0,2,3", 1)}
_BEATEN_BY_G: Final = (
    ("generate-line-info", "--device-debug and --generate-line-info", "--generate-line-info"),
    ("register-usage-level", "'--device-debug' and '--register-usage-level'", "'--register-usage-level'"),
    ("Ofast-compile", "'--device-debug' and '--Ofast-compile=<min,mid,max>'", "'--Ofast-compile=<min,mid,max>'"),
    ("fast-compile", "'--device-debug' and '--fast-compile'", "'--fast-compile'"),
)
_DEPRECATED: Final = ("link-info", "force-externals", "key")
#: Options that ptxas ignores for a target without a feature, with a warning of its own (measured on every target). No
#: target has the feature ''.
_ONLY_WITH: Final = (
    ("blocks-are-clusters", "clusters", "Command line option '--{name}' not supported for '{target}', will be ignored"),
    (
        "disable-smem-reservation",
        "options-of-90",
        "Option '{name}' not supported for gpu architecture '{target}', will be ignored",
    ),
    ("sw4575628", "options-of-90", "Command line option '--{name}' not supported for '{target}', will be ignored"),
    ("sw1729687", "", "Conflicting options -arch={target} and --{name} specified, ignoring --{name} option"),
    ("sw200764156", "", "Conflicting options -arch={target} and --{name} specified, ignoring --{name} option"),
)
_NEEDS: Final = (
    (
        "enable-func-clone-sc",
        "compile-only",
        "Option '--enable-func-clone-sc' requires option '--compile-only'; ignoring since latter is not specified",
    ),
    (
        "compiler-stats-file",
        "compiler-stats",
        "Option '--compiler-stats-file' requires option '--compiler-stats'; ignoring since latter is not specified",
    ),
    (
        "use-trace-pid",
        "fdevice-time-trace",
        "Option '--use-trace-pid', ' requires option '--fdevice-time-trace'; ignoring since latter is not specified",
    ),
    (
        "ftrace-phase-after",
        "fdevice-time-trace",
        "Option '--ftrace-phase-after' requires option '--fdevice-time-trace'; ignoring since latter is not specified",
    ),
)
#: Cache operators by the last words of an option's name.
CACHE: Final = {
    "load-cache": ("load", ("ca", "cg", "cs", "lu", "cv")),
    "store-cache": ("store", ("wb", "cg", "cs", "wt")),
}


def resolve_conflicts(cl: CommandLine) -> None:
    """Drop the options that others override, with ptxas's warnings in ``cl.messages``; raises UsageError where
    ptxas gives up."""
    has = cl.values

    def warn(text: str) -> None:
        cl.messages.append(Diagnostic("warning", text))

    def lose(name: str, both: str, loser: str) -> None:
        del has[name]
        warn(f"Conflicting options {both} specified, ignoring {loser} option")

    for name in _DEPRECATED:
        if name in has:
            warn(f"option '{name}' has been deprecated")
    _refuse(cl)
    if "device-debug" in has:
        for name, both, loser in _BEATEN_BY_G:
            if name in has and has[name] != "0":
                lose(name, both, loser)
    elif "register-usage-level" in has and cl.number("opt-level", 3) == 0:
        lose("register-usage-level", "'-O0' and '--register-usage-level'", "'--register-usage-level'")
    level = cl.number("register-usage-level", 5)
    if not 0 <= level <= 10:
        warn(f"Value of RegUsageLevel ({level}) is out of valid range {{0..10}}, option will be ignored")
    if "extensible-whole-program" in has:
        if "compile-only" in has:
            lose(
                "extensible-whole-program",
                "'--compile-only' and '--extensible-whole-program'",
                "'--extensible-whole-program'",
            )
        elif has.get("position-independent-code") == "true":
            lose(
                "position-independent-code",
                "'--position-independent-code' and '--extensible-whole-program'",
                "'--position-independent-code'",
            )
    for kind in ("load", "store"):
        if f"force-{kind}-cache" in has and f"def-{kind}-cache" in has:
            lose(f"def-{kind}-cache", f"force-{kind}-cache and def-{kind}-cache", f"def-{kind}-cache")
    if "device-function-maxrregcount" in has and "compile-only" not in has:
        del has["device-function-maxrregcount"]
        warn(
            "Command line option 'device-function-maxrregcount' not supported for 'whole program "
            "compilation', will be ignored"
        )
    for name in ("minnctapersm", "maxntid"):
        if name in has and "maxrregcount" in has:
            lose(name, f"-maxrregcount and -{name}", f"-{name}")
    if len(has.get("maxntid", "").split(",")) > 3:
        del has["maxntid"]
        warn("Too many values specified for option '-maxntid', option will be ignored")
    if "suppress-debug-info" in has and "device-debug" not in has and "generate-line-info" not in has:
        warn(
            "Option suppress-debug-info requires option device-debug or lineinfo; "
            "ignoring since latter is not specified"
        )
    if "verbose2" in has:
        has["verbose"] = "1"
    if "position-independent-code" in has and has.get("release", DEFAULT) != "13.0":
        del has["position-independent-code"]
        if "suppress-position-independent-code-warning" not in has:
            warn(
                "'--position-independent-code' is a deprecated option and is no longer functional. "
                "It will be removed in a future release"
            )
    _for_target(cl, warn)
    if "fast-compile" in has and "compile-only" in has:
        lose("fast-compile", "'--compile-only' and '--fast-compile'", "'--fast-compile'")
    if cl.number("ptx-length", 0) and "okey" not in has:
        warn("'--ptx-length' option is ignored unless '--okey' option is specified")
    for name in ("sw200387803", "legacy-bar-warp-wide-behavior"):
        if name in has:
            warn(f"'--{name}' is a deprecated option, It will be removed in future release and is not recommended")
    if "jobserver" in has and cl.number("split-compile", 1) != 1:
        _look_for_jobserver(warn)
    for name, needed, text in _NEEDS:
        if name in has and needed not in has and needed not in cl.lists:
            warn(text)


def _look_for_jobserver(warn: Callable[[str], None]) -> None:
    """A warning where make gave no jobserver; raises UsageError where the one it gave is of no use."""
    from orchestrator.jobserver import broken

    useless = broken(os.environ.get("MAKEFLAGS", ""))
    if useless:
        raise UsageError("Jobserver requested, but an error occurred")
    if useless is None:
        warn("GNU Jobserver support requested, but no compatible jobserver found. Ignoring '--jobserver'")


def _for_target(cl: CommandLine, warn: Callable[[str], None]) -> None:
    """Options that are not for every target."""
    has = cl.values
    target = has.get("gpu-name", "sm_75")
    sm = int("".join([c for c in target if c.isdigit()]))
    for name, feature, text in _ONLY_WITH:
        if name in has and not (feature and features.has(sm, feature)):
            del has[name]
            warn(text.format(name=name, target=target))
    if "print-potentially-overlapping-membermasks" in has and not features.has(sm, "membermasks-printed"):
        del has["print-potentially-overlapping-membermasks"]
        warn(
            f"Command line option '--print-potentially-overlapping-membermasks' not supported for "
            f"'{target}', will be ignored"
        )
    if "preserve-relocs" in has and features.has(sm, "relocs-not-preserved"):
        warn(f"'--preserve-relocs' option is not fully implemented for '{target}' and may not work as expected")
    if "sw4915215" in has and target != "sm_100a":
        raise UsageError(f"Option 'sw4915215' not supported for gpu architecture '{target}'", error=True)


def _refuse(cl: CommandLine) -> None:
    """Combinations that ptxas refuses."""
    has = cl.values
    level = str(cl.number("opt-level", 3)) if "opt-level" in has else None
    if cl.number("split-compile", 0) < 0:
        raise UsageError(f"Invalid value '{has['split-compile']}' for option '--split-compile'")
    fast = has.get("Ofast-compile", "0")
    if fast not in FAST and fast != "0":
        raise UsageError(f"Invalid value for --Ofast-compile/-Ofc ({fast}), is not 'max', 'mid', 'min', or '0'")
    if "compile-as-tools-patch" in has and "compile-only" in has:
        raise UsageError("Conflicting options '--compile-only' and --compile-as-tools-patch specified")
    if "device-debug" in has:
        if level is not None and level != "0" and "bare-level" not in has:
            raise UsageError("Optimized debugging not supported")
        if has.get("cloning") == "yes":
            raise UsageError("Conflicting options -cloning=yes and -g specified")
    elif fast in FAST:
        levels, same = FAST[fast]
        if level is not None and "bare-level" not in has and int(level) != same:
            raise UsageError(f"Conflicting options -opt-level=<{levels}> and --Ofast-compile={fast} specified")
        if fast != "max" and has.get("allow-expensive-optimizations") == "false":
            raise UsageError(
                f"Conflicting options -allow-expensive-optimizations=false and --Ofast-compile={fast} specified"
            )
        if fast == "max" and has.get("cloning") == "yes":
            raise UsageError("Conflicting options -cloning=yes and --Ofast-compile=max specified")
    for name, value in has.items():
        kind, known = CACHE.get(name.partition("-")[2], ("", ()))
        if kind and value not in known:
            raise UsageError(f"Invalid default cache modifier on {kind} specified: {value}", error=True)
