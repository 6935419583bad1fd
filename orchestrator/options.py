"""The command line of `orias`: ptxas's spelling, one row per option, one generic reader.

Grammar (measured on ptxas 13.0): long names with ``--``, short names with ``-``, exact match; a value is the next word or follows ``=``;
those of -O and -m may be glued (``-O3``, ``-m64``), that of -O alone must be or follow ``=``; flags take none; a repeated scalar warns and the last one
wins. Options beyond ptxas's own are in the last group and have long names only.
"""

from __future__ import annotations

from typing import Final

from ir_format.diag import Diagnostic
from ir_format.model import AttrValue
from ir_format.record import NamedTuple, Record, fresh
from ir_format.target import targets
from orchestrator.conflicts import FAST, UsageError, settle


class Option(NamedTuple):
    """``kind``: flag, str, int, bool (true|false), list (comma list), level (-O). ``effect``: ``use`` (acts here), ``ok`` (asks for what
    orias does anyway, or only affects messages and speed), ``refuse`` (not supported yet: refused by name). ``values``: all that are defined."""

    long: str
    short: str
    kind: str
    effect: str
    help: str
    values: tuple[str, ...] = ()


OPTIONS: Final = (
    Option("gpu-name", "arch", "str", "use", "target: sm_75 ... sm_121f; compute_XX or lto_XX parses only (default sm_75)"),
    Option("opt-level", "O", "level", "use", "optimization level: 0, 1, 2 and more (default 3)"),
    Option("output-file", "o", "str", "use", "output file (default elf.o)"),
    Option("verbose", "v", "flag", "use", "print resources of every kernel"),
    Option("maxrregcount", "maxrregcount", "str", "use", "most registers a thread may use: N, archmin or archmax"),
    Option("generate-line-info", "lineinfo", "flag", "use", "write line tables"),
    Option("compile-only", "c", "flag", "use", "relocatable object for the linker"),
    Option("entry", "e", "list", "use", "compile these kernels only"),
    Option("fmad", "fmad", "bool", "use", "contract mul and add into fma (default true)"),
    Option("warning-as-error", "Werror", "flag", "use", "treat warnings as errors"),
    Option("disable-warnings", "w", "flag", "use", "print no warnings"),
    Option("warn-on-spills", "warn-spills", "flag", "use", "warn when registers are spilled"),
    Option("warn-on-local-memory-usage", "warn-lmem-usage", "flag", "use", "warn when local memory is used"),
    Option("warn-on-double-precision-use", "warn-double-usage", "flag", "use", "warn at f64 instructions"),
    Option("input-as-string", "ias", "str", "use", "PTX text given as an argument"),
    Option("options-file", "optf", "list", "use", "read options from files"),
    Option("split-compile", "split-compile", "int", "use", "kernels compiled at once (0: one per core)"),
    Option("machine", "m", "int", "ok", "host bits: 64", ("64",)),
    Option("minnctapersm", "minnctapersm", "int", "use", "blocks per SM to make room for"),
    Option("maxntid", "maxntid", "list", "use", "most threads of a block, x,y,z"),
    Option("override-directive-values", "override-directive-values", "flag", "use", "let options win over directives"),
    Option("device-function-maxrregcount", "func-maxrregcount", "str", "use", "register limit of device functions with -c"),
    Option("register-usage-level", "regUsageLevel", "int", "ok", "0..10"),
    Option("allow-expensive-optimizations", "allow-expensive-optimizations", "bool", "ok", "no effect"),
    Option("optimize-float-atomics", "opt-fp-atomics", "flag", "ok", "no effect"),
    Option("dont-merge-basicblocks", "no-bb-merge", "flag", "ok", "blocks are not merged anyway"),
    Option("return-at-end", "ret-end", "flag", "ok", "no effect"),
    Option("disable-optimizer-constants", "disable-optimizer-consts", "flag", "ok", "no optimizer constants are made"),
    Option("position-independent-code", "pic", "bool", "ok", "no effect"),
    Option("preserve-relocs", "preserve-relocs", "flag", "use", "nothing from sm_90 on; refused below"),
    Option("device-debug", "g", "flag", "use", "debug information: line tables, the PTX text's debug sections; implies -O0"),
    Option("suppress-debug-info", "suppress-debug-info", "flag", "use", "write no line tables and debug sections"),
    Option("device-stack-protector", "device-stack-protector", "bool", "use", "warns: no stack canaries are made"),
    Option("sp-bounds-check", "sp-bounds-check", "flag", "use", "trap where a function's frame leaves local memory"),
    Option("extensible-whole-program", "ewp", "flag", "use", "as --compile-only: an object that the linker may add to"),
    Option("compile-as-tools-patch", "astoolspatch", "flag", "refuse", "patch code for tools"),
    Option("sanitize", "sanitize", "str", "refuse", "instrument for a sanitizer", ("memcheck", "threadsteer")),
    Option("compiler-annotations", "annotate", "flag", "use", "note the numbers of instructions and registers"),
    Option("make-errors-visible-at-exit", "make-errors-visible-at-exit", "flag", "use", "error barrier at exit"),
    Option("legacy-bar-warp-wide-behavior", "legacy-bar-warp-wide-behavior", "flag", "use", "ignored for .target sm_70 and higher; refused for older ones"),
    Option("def-load-cache", "dlcm", "str", "use", "default cache operator of loads: ca, cg, cs, lu, cv"),
    Option("def-store-cache", "dscm", "str", "use", "default cache operator of stores: wb, cg, cs, wt"),
    Option("force-load-cache", "flcm", "str", "use", "forced cache operator of loads"),
    Option("force-store-cache", "fscm", "str", "use", "forced cache operator of stores"),
    Option("g-tensor-memory-access-check", "g-tmem-access-check", "flag", "use", "ignored for targets without tensor memory; refused for the others"),
    Option("gno-tensor-memory-access-check", "gno-tmem-access-check", "flag", "use", "no tensor memory checks are made"),
    Option("Ofast-compile", "Ofc", "str", "use", "max: as -O0; mid, min: as -O1; 0: off"),
    Option("suppress-async-bulk-multicast-advisory-warning", "suppress-async-bulk-multicast-advisory-warning", "flag", "ok", "messages"),
    Option("suppress-double-demote-warning", "suppress-double-demote-warning", "flag", "ok", "messages"),
    Option("suppress-sparse-mma-advisory-info", "suppress-sparse-mma-advisory-info", "flag", "ok", "messages"),
    Option("suppress-stack-size-warning", "suppress-stack-size-warning", "flag", "ok", "messages"),
    Option("help", "h", "flag", "use", "print this and stop"),
    Option("version", "V", "flag", "use", "print the version and stop"),
    Option("list-version", "version-ls", "flag", "use", "list the PTX versions and stop"),
    # ptxas accepts these without listing them.
    Option("cloning", "cloning", "str", "ok", "helpers are always cloned into kernels"),
    Option("fast-compile", "", "flag", "ok", "no effect"),
    Option("jobserver", "jobserver", "flag", "ok", "no effect"),
    Option("tool-name", "tool-name", "str", "ok", "messages say ptxas"),
    Option("noFwdPrg", "noFwdPrg", "flag", "ok", "no effect"),
    Option("uumn", "uumn", "flag", "ok", "no effect"),
    Option("verbose-tkinfo", "verbose-tkinfo", "bool", "ok", "no effect"),
    Option("link-info", "link-info", "str", "ok", "deprecated, no effect"),
    Option("force-externals", "", "flag", "ok", "deprecated, no effect"),
    Option("compiler-stats", "", "list", "refuse", "statistics of the compiler", ("time", "memory", "phase-wise", "detailed", "t", "m", "p", "d")),
    Option("compiler-stats-file", "", "str", "ok", "nothing alone"),
    Option("fdevice-time-trace", "", "str", "refuse", "time trace"),
    Option("ftrace-phase-after", "", "str", "ok", "nothing alone"),
    Option("use-trace-pid", "use-trace-pid", "int", "ok", "nothing alone"),
    # Beyond ptxas.
    Option("jobs", "j", "int", "use", "kernels compiled at once (default: cores)"),
    Option("exec", "exec", "flag", "use", "run the stages as executables instead of forking them"),
    Option("stage", "stage", "str", "use", "NAME=COMMAND: run this shell command as a stage; may be repeated"),
    Option("save-temps", "save-temps", "str", "use", "keep the stream after every stage in this folder"),
    Option("start-from", "start-from", "str", "use", "continue from a saved stream instead of PTX"),
    Option("stop-after", "stop-after", "str", "use", "stop after this stage and write its stream"),
    Option("stage-timeout", "stage-timeout", "int", "use", "seconds without progress after which a stage is killed (default 600)"),
    Option("stage-option", "stage-option", "str", "use", "NAME:KEY=VALUE for a stage (skip, only, limit, stop-after, dump-after, verify...); may be repeated"),
    Option("explain", "explain", "flag", "use", "show the source line and a hint under each diagnostic"),
    Option("time", "time", "flag", "use", "print where the time went"),
)

_REPEAT: Final = frozenset({"stage", "stage-option", "input-as-string", "options-file", "entry"})
_LONG: Final = {o.long: o for o in OPTIONS}
_SHORT: Final = {o.short: o for o in OPTIONS if o.short}
_MAXREG_NAMES: Final = {"archmin": 32, "archmax": 255}  # measured, every target


class CommandLine(Record):
    """What the user asked for. ``values``: by long option name; ``inputs``: PTX files in order; ``strings``: -ias texts."""

    values: dict[str, str] = fresh(default_factory=dict)
    lists: dict[str, list[str]] = fresh(default_factory=dict)
    inputs: list[str] = fresh(default_factory=list)
    messages: list[Diagnostic] = fresh(default_factory=list)

    def flag(self, name: str) -> bool:
        """True when a flag was given."""
        return name in self.values

    def number(self, name: str, default: int) -> int:
        """An integer option."""
        return int(self.values.get(name, default))


def _find(word: str) -> tuple[Option, str, str, bool]:
    """The option that a word names, its name as given, its value (or ''), and whether it has one. Raises UsageError."""
    name, eq, value = word.partition("=")
    opt = _LONG.get(name[2:]) if name.startswith("--") else _SHORT.get(name[1:])
    if opt is None and name[:2] in ("-O", "-m"):
        opt, name, eq, value = _SHORT[name[1]], name[:2], "=", word[2:].removeprefix("=")
    if opt is None or (opt.long in _BEYOND and not name.startswith("--")):
        raise UsageError(f"Unknown option '{word.partition('=')[0][1:]}'")
    return opt, name, value, bool(eq)


def read(argv: list[str]) -> CommandLine:
    """Read a command line and settle what contradicts itself; raises UsageError."""
    cl = CommandLine()
    _read(argv, cl, 0)
    settle(cl)
    sm = "".join([c for c in cl.values.get("gpu-name", "sm_75") if c.isdigit()])
    if cl.flag("preserve-relocs") and int(sm) < 90:
        raise UsageError("Option '--preserve-relocs' is not supported by orias below sm_90")
    for opt in OPTIONS:
        if opt.effect == "refuse" and (opt.long in cl.values or opt.long in cl.lists):
            raise UsageError(f"Option '--{opt.long}' is not supported by orias")
    return cl


def _read(argv: list[str], cl: CommandLine, depth: int) -> None:
    at = 0
    while at < len(argv):
        word = argv[at]
        at += 1
        if word == "-" or not word.startswith("-"):
            cl.inputs.append(word)
            continue
        opt, name, value, given = _find(word)
        if opt.kind == "flag":
            if given:
                raise UsageError(f"no argument expected after '{name}'")
            cl.values[opt.long] = "1"
            continue
        if name == "-O" and not given:  # accepted
            cl.values.setdefault("opt-level", "3")
            cl.values["bare-level"] = "1"
            continue
        if not given:
            if at >= len(argv):
                raise UsageError(f"argument expected after '{name}'")
            value = argv[at]
            at += 1
        if opt.kind == "level":
            cl.values.pop("bare-level", None)
        _check(opt, value)
        if opt.long == "options-file":
            if depth > 8:
                raise UsageError("options files nest too deep")
            for path in value.split(","):
                _read(_words(path), cl, depth + 1)
        elif opt.long in _REPEAT:
            cl.lists.setdefault(opt.long, []).extend(value.split(",") if opt.kind == "list" else [value])
        else:
            if opt.long in cl.values and cl.values[opt.long] != value:
                text = f"incompatible redefinition for option '{opt.long}', the last value of this option was used"
                cl.messages.append(Diagnostic("warning", text))
            cl.values[opt.long] = value


_BEYOND: Final = frozenset({"exec", "stage", "save-temps", "start-from", "stop-after", "stage-timeout", "stage-option", "explain", "time"})


_REGISTER_LIMITS: Final = ("maxrregcount", "device-function-maxrregcount")


def _check(opt: Option, value: str) -> None:
    if opt.kind in ("int", "level") and not value.removeprefix("-").isdigit():
        raise UsageError(f"'{value}': expected a number")
    if opt.kind == "bool" and value not in ("true", "false"):
        raise UsageError(f"'{value}': expected true or false")
    known = opt.values
    if opt.long == "gpu-name":
        value, full = value.replace("compute_", "sm_").replace("lto_", "sm_"), value
        if value not in targets():
            raise UsageError(f"Value '{full}' is not defined for option 'gpu-name'")
    for one in value.split(",") if opt.kind == "list" else (value,):
        if known and one not in known:
            raise UsageError(f"Value '{one}' is not defined for option '{opt.long}'")
    if opt.long in _REGISTER_LIMITS and value not in _MAXREG_NAMES and not value.removeprefix("-").isdigit():
        raise UsageError(f"Invalid value '{value}' for option '{opt.long}'")


def _words(path: str) -> list[str]:
    import shlex

    try:
        with open(path, encoding="utf-8") as f:
            return shlex.split(f.read())
    except (OSError, ValueError):
        raise UsageError(f"Could not open options file '{path}'") from None


#: Flags and words that travel in the header under their own names.
_TRAVEL: Final = (
    "compile-only", "make-errors-visible-at-exit", "warn-on-double-precision-use", "verbose", "generate-line-info", "warning-as-error", "disable-warnings", "warn-on-spills",
    "warn-on-local-memory-usage", "explain", "override-directive-values", "legacy-bar-warp-wide-behavior", "sp-bounds-check", "compiler-annotations",
)  # fmt: skip


def stream_options(cl: CommandLine, target: str) -> dict[str, AttrValue]:
    """The options that travel in the header; may add warnings to ``cl.messages``."""
    level = FAST[cl.values["Ofast-compile"]][1] if cl.values.get("Ofast-compile", "0") != "0" else cl.number("opt-level", 3)
    out: dict[str, AttrValue] = {"opt-level": max(level, 0)}
    for name in ("def-load-cache", "def-store-cache", "force-load-cache", "force-store-cache"):
        if name in cl.values:
            out[name] = cl.values[name]
    for name in _TRAVEL:
        if cl.flag(name):
            out[name] = 1
    if cl.flag("device-debug"):
        out.update({"device-debug": 1, "generate-line-info": 1, "opt-level": 0})
    if cl.flag("extensible-whole-program"):
        out.update({"compile-only": 1, "extensible-whole-program": 1})
    if cl.flag("gno-tensor-memory-access-check"):  # wins over the other one
        out["tensor-memory-checks"] = "gno"
    elif cl.flag("g-tensor-memory-access-check"):
        out["tensor-memory-checks"] = "g"
    if cl.flag("suppress-debug-info"):
        out["suppress-debug-info"] = 1
        out.pop("generate-line-info", None)
    if cl.values.get("fmad") == "false":
        out["fmad"] = 0
    if "entry" in cl.lists:
        out["entry"] = tuple(cl.lists["entry"])
    if "minnctapersm" in cl.values:
        out["minnctapersm"] = cl.number("minnctapersm", 0)
    if "maxntid" in cl.values:
        dims = [int(d) if d.isdigit() else 0 for d in cl.values["maxntid"].split(",")]
        out["maxntid"] = (*dims, 1, 1)[:3]
    for name in _REGISTER_LIMITS:
        if name in cl.values:
            n = _register_limit(cl, cl.values[name], target)
            if n is not None:
                out[name] = n
    return out


def _register_limit(cl: CommandLine, text: str, target: str) -> int | None:
    """A limit on registers as ptxas takes it: None where it is ignored."""
    n = _MAXREG_NAMES.get(text) or int(text)
    if n > 255 or n < 0:
        cl.messages.append(Diagnostic("warning", f"Too big maxrregcount value specified {n}, will be ignored"))
        return None
    if n < 24:
        message = f"For profile {target} adjusting per thread register count of {n} to lower bound of 24"
        cl.messages.append(Diagnostic("warning", message))
    return max(n, 24)


def usage() -> str:
    """Help text."""
    rows = ["Usage  : orias [options] <ptx file>,...", "", "Compiles PTX to a cubin. Options:"]
    for o in OPTIONS:
        if o.effect == "refuse":
            continue
        value = {"flag": "", "bool": " <true|false>", "int": " <N>", "level": "<N>"}.get(o.kind, " <value>")
        short = "" if o.long in _BEYOND or not o.short else f" (-{o.short})"
        rows.append(f"  {'--' + o.long + value + short:58} {o.help}")
    rows.append("Options of ptxas that orias refuses by name: " + ", ".join("--" + o.long for o in OPTIONS if o.effect == "refuse"))
    return "\n".join(rows) + "\n"
