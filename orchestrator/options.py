"""The command line of `orias`: ptxas's spelling, one row per option, one generic reader.

Grammar (measured on ptxas 13.0 and 13.5): long names with ``--``, short names with ``-``, exact match; a value is the
next word or follows ``=``;
those of -O and -m may be glued (``-O3``, ``-m64``), that of -O alone must be or follow ``=``; flags take none; a
repeated scalar warns and the last one
wins. Options beyond ptxas's own are in the last group and have long names only.
"""

from __future__ import annotations

import os

from ir_format import features
from ir_format.diag import Diagnostic
from ir_format.model import AttrValue
from ir_format.record import NamedTuple, Record, fresh
from ir_format.release import DEFAULT, RELEASES, Release
from ir_format.target import targets
from ir_format.typed import Final
from orchestrator.conflicts import FAST, UsageError, resolve_conflicts


class Option(NamedTuple):
    """``kind``: flag, str, int, bool (true|false), list (comma list), level (-O), maybe (a value only after `=`).
    ``effect``: ``use`` (acts here), ``ok`` (asks for what orias does anyway, or for what
    changes no code of ptxas's that was seen), ``none`` (changes ptxas's code and not ours: said once), ``refuse`` (not
    supported yet: refused by name).
    ``values``: all that are defined. ``idle``: values of a ``none`` option that change nothing in ptxas's code either.
    ``since``: the first release that has it."""

    long: str
    short: str
    kind: str
    effect: str
    help: str
    values: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    since: str = ""


_OFF: Final = ("false",)
#: Options that change nothing in a whole program, neither in ptxas's code nor in ours.
_OF_OBJECTS: Final = frozenset({"position-independent-code", "enable-func-clone-sc"})

#: By group, in the order of the help. What has no effect was measured: cubins of 17 kernels, whole and relocatable, on
#: sm_75, 90 and 120, with the option and without.
GROUPS: Final[tuple[tuple[str, tuple[Option, ...]], ...]] = (
    ("Input and output", (
        Option("gpu-name", "arch", "str", "use", "target; compute_XX and lto_XX parse only (default 'sm_75')"),
        Option("machine", "m", "int", "ok", "bits of the host: 64", ("64",)),
        Option("compiler-stats", "", "list", "use",
            "print the time, the memory, the time of each stage; detailed: of each pass time, memory, rewrites and "
            "instructions", ("time", "memory", "phase-wise", "detailed", "t", "m", "p", "d")),
        Option("fdevice-time-trace", "", "str", "use",
            "add the times to a Chrome trace (made where there is none): of the compile's parts, and nested of each "
            "kernel, stage and pass"),
        Option("ftrace-phase-after", "", "str", "use",
            "the event of the trace after which they are added, in its process and thread"),
        Option("use-trace-pid", "use-trace-pid", "int", "use", "the process of these events"),
        Option("compiler-stats-file", "", "str", "use", "the file that --compiler-stats prints to"),
        Option("output-file", "o", "str", "use",
            "output file (default 'elf.o'); devices, FIFOs and links are written through"),
        Option("input-as-string", "ias", "str", "use", "PTX text given as an argument"),
        Option("options-file", "optf", "list", "use", "read options from files"),
        Option("compile-only", "c", "flag", "use", "relocatable object for the linker"),
        Option("extensible-whole-program", "ewp", "flag", "use",
            "an object that the linker may add to; its code is that of --compile-only (calls stay calls)"),
        Option("entry", "e", "list", "use", "compile these kernels only"),
        Option("split-compile", "split-compile", "int", "use", "kernels compiled at once (0: one per core)"),
        Option("help", "h", "flag", "use", "print this and stop"),
        Option("version", "V", "flag", "use", "print the version and stop"),
        Option("list-version", "version-ls", "flag", "use", "list the PTX versions and stop"),
        Option("list-arch", "arch-ls", "flag", "use", "list the SMs and stop", since="13.5"),
    )),
    ("Code", (
        Option("opt-level", "O", "level", "use", "optimization level: 0, 1, 2 and more (default 3)"),
        Option("fmad", "fmad", "bool", "use", "mul and add without a rounding modifier become fma (default true)"),
        Option("Ofast-compile", "Ofc", "str", "use", "max: as -O0; mid, min: as -O1; 0: off"),
        Option("maxrregcount", "maxrregcount", "str", "use",
            "most registers a thread may use: N, archmin or archmax; ignored with .maxntid and .reqntid"),
        Option("device-function-maxrregcount", "func-maxrregcount", "str", "use",
            "register limit of device functions with -c"),
        Option("minnctapersm", "minnctapersm", "int", "use", "blocks per SM to make room for"),
        Option("maxntid", "maxntid", "list", "use", "most threads of a block, x,y,z"),
        Option("override-directive-values", "override-directive-values", "flag", "use",
            "let options win over directives"),
        Option("def-load-cache", "dlcm", "str", "use", "default cache operator of loads: ca, cg, cs, lu, cv"),
        Option("def-store-cache", "dscm", "str", "use", "default cache operator of stores: wb, cg, cs, wt"),
        Option("force-load-cache", "flcm", "str", "use", "forced cache operator of loads"),
        Option("force-store-cache", "fscm", "str", "use", "forced cache operator of stores"),
        Option("sp-bounds-check", "sp-bounds-check", "flag", "use",
            "trap where a function's frame leaves local memory"),
        Option("make-errors-visible-at-exit", "make-errors-visible-at-exit", "flag", "use", "error barrier at exit"),
        Option("legacy-bar-warp-wide-behavior", "legacy-bar-warp-wide-behavior", "flag", "use",
            "ignored for .target sm_70 and higher; refused for older ones"),
        Option("gno-tensor-memory-access-check", "gno-tmem-access-check", "flag", "use",
            "no tensor memory checks are made"),
        Option("gno-fabric-access-check", "gno-fabric-access-check", "flag", "use",
            "no checks of fabric operations are made", since="13.5"),
        Option("g-tensor-memory-access-check", "g-tmem-access-check", "flag", "use",
            "ignored for targets without tensor memory; refused for the others"),
        Option("preserve-relocs", "preserve-relocs", "flag", "use",
            "nothing: from sm_90 on as in ptxas, with its warning; below with one of orias"),
        Option("blocks-are-clusters", "blocks-are-clusters", "bool", "use",
            "as the directive .blocksareclusters in every kernel; from sm_90 on"),
    )),
    ("Debugging and messages", (
        Option("device-debug", "g", "flag", "use",
            "debug information: line tables, the PTX text's debug sections; implies -O0"),
        Option("generate-line-info", "lineinfo", "flag", "use", "write line tables"),
        Option("suppress-debug-info", "suppress-debug-info", "flag", "use", "write no line tables and debug sections"),
        Option("compiler-annotations", "annotate", "flag", "use", "note the numbers of instructions and registers"),
        Option("verbose", "v", "flag", "use", "print resources of every kernel"),
        Option("verbose2", "v2", "flag", "use", "as --verbose, after the name of each function", since="13.5"),
        Option("warning-as-error", "Werror", "flag", "use", "treat warnings as errors"),
        Option("disable-warnings", "w", "flag", "use", "print no warnings"),
        Option("warn-on-spills", "warn-spills", "flag", "use", "warn when registers are spilled"),
        Option("warn-on-local-memory-usage", "warn-lmem-usage", "flag", "use", "warn when local memory is used"),
        Option("warn-on-double-precision-use", "warn-double-usage", "flag", "use", "warn at f64 instructions"),
        Option(
            "suppress-async-bulk-multicast-advisory-warning",
            "suppress-async-bulk-multicast-advisory-warning", "flag", "use", "no advice on .multicast::cluster"),
        Option(
            "suppress-sparse-mma-advisory-info",
            "suppress-sparse-mma-advisory-info", "flag", "use", "no advice on mma.sp"),
        Option("suppress-stack-size-warning", "suppress-stack-size-warning", "flag", "use",
            "no warning where the stack's size is not known"),
        Option("suppress-position-independent-code-warning",
            "suppress-position-independent-code-warning",
            "flag", "use", "no warning about --position-independent-code", since="13.5"),
        Option("suppress-double-demote-warning", "suppress-double-demote-warning", "flag", "ok",
            "no target of today demotes doubles"),
        Option("tool-name", "tool-name", "str", "use", "the name at the start of messages (default ptxas)"),
    )),
    ("Taken, without effect: orias does so anyway, or no effect was seen in ptxas's code", (
        Option("disable-optimizer-constants", "disable-optimizer-consts", "flag", "ok",
            "orias makes no bank of optimizer constants"),
        Option("dont-merge-basicblocks", "no-bb-merge", "flag", "ok", ""),
        Option("return-at-end", "ret-end", "flag", "ok", ""),
        Option("allow-expensive-optimizations", "allow-expensive-optimizations", "bool", "ok", ""),
        Option("abi-compile", "", "str", "ok", "yes"),
        Option("cimm", "cimm", "flag", "ok", ""),
        Option("cuda-api-version", "cuda-api-version", "str", "ok", "13.0 to the release's own"),
        Option("device-stack-protector-frame-size-threshold", "", "int", "ok", "orias makes no stack canaries"),
        Option("disable-fast-video-emulation", "disable-fast-video-emulation", "bool", "ok", ""),
        Option("dont-reserve-null-pointer", "dont-reserve-null-pointer", "flag", "ok", ""),
        Option("enable-extended-smem", "enable-extended-smem", "bool", "ok", ""),
        Option("force-externals", "", "flag", "ok", "deprecated"),
        Option("jobserver", "jobserver", "flag", "ok",
            "with --batch and --output-dir: all files but the first wait for tokens of make"),
        Option("key", "", "str", "ok", "deprecated"),
        Option("link-info", "link-info", "str", "ok", "deprecated"),
        Option("no-fastreg", "no-fastreg", "flag", "ok", ""),
        Option("no-membermask-overlap", "no-membermask-overlap", "bool", "ok", ""),
        Option("ptx-length", "", "int", "ok", "nothing alone"),
        Option("query-controls", "query-controls", "str", "ok", ""),
        Option("sw1729687", "sw1729687", "bool", "ok", ""),
        Option("sw200387803", "sw200387803", "bool", "ok", "deprecated"),
        Option("sw200764156", "sw200764156", "bool", "ok", ""),
        Option("sw2837879", "sw2837879", "bool", "ok", ""),
        Option("sw4575628", "sw4575628", "bool", "ok", ""),
        Option("sw4915215", "sw4915215", "bool", "ok", "sm_100a only"),
        Option("sw4936628", "sw4936628", "bool", "ok", ""),
        Option("uumn", "uumn", "flag", "ok", ""),
    )),
    ("Taken, without effect in orias, although they change ptxas's code (a warning says so)", (
        Option("register-usage-level", "regUsageLevel", "int", "none", "0..10", (), ("5",)),
        Option("regAllocOptLevel", "regAllocOptLevel", "int", "none", "effort of register allocation", (), ("1", "2")),
        Option("sanitize", "sanitize", "str", "none", "nothing is instrumented", ("memcheck", "threadsteer")),
        Option("optimize-float-atomics", "opt-fp-atomics", "flag", "none", "atomics stay one for each thread"),
        Option("position-independent-code", "pic", "bool", "none",
            "whole programs are position-independent anyway; objects are not", (), _OFF),
        Option("device-stack-protector", "device-stack-protector", "bool", "none", "no stack canaries are made", (),
        _OFF),
        Option("enable-func-clone-sc", "enable-func-clone-sc", "bool", "none",
            "functions of objects are not cloned", (), _OFF, "13.5"),
        Option(
            "assume-extern-functions-do-not-sync", "assume-extern-functions-do-not-sync", "bool", "none", "", (), _OFF),
        Option("cloning", "cloning", "str", "none", "helpers are always cloned into kernels", ("yes", "no"), ("yes",)),
        Option("disable-smem-reservation", "disable-smem-reservation", "bool", "none",
            "the reserved bytes of shared memory stay reserved", (), _OFF),
        Option("fast-compile", "", "flag", "none", ""),
        Option("force-rela", "force-rela", "flag", "none", "sections of relocations keep their kind"),
        Option("limit-fold-fp", "limit-fold-fp", "bool", "none", "", (), _OFF),
        Option("membermask-overlap", "membermask-overlap", "bool", "none", "", (), _OFF),
        Option("noFwdPrg", "noFwdPrg", "flag", "none", ""),
        Option("opt-pointers", "", "flag", "none", ""),
        Option(
            "print-potentially-overlapping-membermasks",
            "print-potentially-overlapping-membermasks", "flag", "none", ""),
        Option("set-texmode-raw", "set-texmode-raw", "bool", "none", "", (), _OFF),
        Option("sw200428197", "sw200428197", "bool", "none", "", (), _OFF),
        Option("sw2614554", "sw2614554", "bool", "none", "", (), _OFF),
        Option("verbose-tkinfo", "verbose-tkinfo", "bool", "none", "the note names no more than ever", (), _OFF),
    )),
    ("Refused", (
        Option("apply-controls", "apply-controls", "str", "refuse",
            "controls from a file, whose form only NVIDIA knows"),
        Option("compile-as-tools-patch", "astoolspatch", "flag", "refuse", "patch code for tools"),
        Option("ext-desc-file", "ext-desc-file", "str", "refuse", "extended description from a file"),
        Option("ext-desc-string", "ext-desc-string", "str", "refuse", "extended description"),
        Option("nv-host", "nv-host", "str", "refuse", "host code from a file"),
        Option("okey", "", "str", "refuse", "encrypted PTX"),
        Option("profile-options", "", "str", "refuse", "profiling"),
    )),
    ("Beyond ptxas", (
        Option("jobs", "j", "int", "use", "kernels compiled at once (default: cores)"),
        Option("batch", "batch", "str", "use",
            "compile each file of this list by itself; a line is a file name, with options of its own"),
        Option("output-dir", "output-dir", "str", "use", "compile each PTX file by itself, into this folder"),
        Option("report", "report", "str", "use",
            "NAME.html: a page that shows the kernel through all stages and passes; another name, with --batch and "
            "--output-dir: what became of each file, as JSON"),
        Option("remarks", "remarks", "maybe", "use",
            "what passes did, missed and found, and why: =FILE, YAML as LLVM's where it ends in .yaml; without FILE "
            "text on standard error"),
        Option("stats-json", "stats-json", "str", "use",
            "write times, memory, rewrites and instructions of each kernel, stage and pass to this file"),
        Option("cache", "cache", "str", "use",
            "keep compiled code in this folder, and take from it what did not change (docs/speed.md); also by "
            "ORIAS_CACHE"),
        Option("serve", "serve", "str", "use",
            "be the resident server at this socket, whose folder is closed to others (docs/speed.md); used, and "
            "started on demand, by ORIAS_SERVER"),
        Option("exec", "exec", "flag", "use", "run the stages as executables instead of forking them"),
        Option("stage", "stage", "str", "use", "NAME=COMMAND: run this shell command as a stage; may be repeated"),
        Option("save-temps", "save-temps", "str", "use", "keep the stream after every stage in this folder"),
        Option("start-from", "start-from", "str", "use", "continue from a saved stream instead of PTX"),
        Option("allow-undefined", "allow-undefined", "flag", "use",
            "with --start-from: take a stream whose effects depend on words that nothing defines, as a PTX program's "
            "may"),
        Option("stop-after", "stop-after", "str", "use", "stop after this stage and write its stream"),
        Option("stage-timeout", "stage-timeout", "int", "use",
            "seconds without progress after which a stage is killed (default 600)"),
        Option("stage-option", "stage-option", "str", "use",
            "NAME:KEY=VALUE for a stage (skip, only, limit, stop-after, dump-after, verify...); may be repeated"),
        Option("release", "release", "str", "use",
            "replace ptxas of this release, 13.0 or 13.5 (default 13.5); also by ORIAS_RELEASE", tuple(RELEASES)),
        Option("pass", "pass", "str", "use",
            "STAGE:after=NAME:WHAT (or before=): a pass of your own, WHAT being MODULE:FUNCTION, an entry point or a "
            "command; may be repeated"),
        Option("accept-newer-ptx", "accept-newer-ptx", "flag", "use",
            "take a newer .version, and a NUL at the text's end, with a warning; also by ORIAS_ACCEPT_NEWER_PTX=1"),
        Option("diagnostics-format", "diagnostics-format", "str", "use",
            "messages as text, or on standard error as one json array or sarif log with columns and hints",
            ("text", "json", "sarif")),
        Option("show-completion", "show-completion", "str", "use",
            "print what a shell has to read to complete this command line, and stop", ("bash", "zsh", "fish")),
        Option("explain", "explain", "flag", "use", "show the source line and a hint under each diagnostic"),
        Option("time", "time", "flag", "use", "print where the time went, by stage and pass"),
    )),
)  # fmt: skip
OPTIONS: Final = tuple([o for _, group in GROUPS for o in group])

_REPEAT: Final = frozenset(
    {"compiler-stats", "stage", "stage-option", "pass", "input-as-string", "options-file", "entry"}
)
_LONG: Final = {o.long: o for o in OPTIONS}
_SHORT: Final = {o.short: o for o in OPTIONS if o.short}
_MAXREG_NAMES: Final = {"archmin": 32, "archmax": 255}  # measured, every target


class CommandLine(Record):
    """What the user asked for. ``values``: by long option name; ``inputs``: PTX files in order; ``messages``: warnings
    as ptxas's; ``notes``: what only orias
    warns of, never an error; ``smuggled``: stage commands from options files."""

    values: dict[str, str] = fresh(default_factory=dict)
    lists: dict[str, list[str]] = fresh(default_factory=dict)
    inputs: list[str] = fresh(default_factory=list)
    messages: list[Diagnostic] = fresh(default_factory=list)
    notes: list[str] = fresh(default_factory=list)
    smuggled: list[str] = fresh(default_factory=list)

    def flag(self, name: str) -> bool:
        """True when a flag was given."""
        return name in self.values

    def number(self, name: str, default: int) -> int:
        """An integer option."""
        return number(self.values[name]) if name in self.values else default


def number(text: str) -> int:
    """A number as ptxas reads it: C's base prefixes, a sign, blanks before; 32 bits. Raises UsageError."""
    n = _c_number(text)
    if n is None:
        raise UsageError(f"'{text}': expected a number")
    if not -(1 << 31) <= n < 1 << 31:
        raise UsageError(f"32-bit integer value ({text}) out of range")
    return n


def _c_number(text: str) -> int | None:
    """What strtol with base 0 makes of a whole text; None where it stops early."""
    digits = text.lstrip(" \t\n\v\f\r")
    sign = -1 if digits[:1] == "-" else 1
    digits = digits[1:] if digits[:1] in ("-", "+") else digits
    base = 16 if digits[:2] in ("0x", "0X") else 8 if digits[:1] == "0" else 10
    body = digits[2:] if base == 16 else digits
    known = "0123456789abcdefABCDEF" if base == 16 else "01234567" if base == 8 else "0123456789"
    if not body or len(body) > 4096 or any(c not in known for c in body):
        return None
    return sign * int(body, base)


def find(word: str, release: str = DEFAULT) -> tuple[Option, str, str, bool]:
    """The option of a release that a word names, its name as given, its value (or ''), and whether it has one. Raises
    UsageError."""
    name, eq, value = word.partition("=")
    opt = _LONG.get(name[2:]) if name.startswith("--") else _SHORT.get(name[1:])
    if opt is None and name[:2] in ("-O", "-m"):
        opt, name, eq, value = _SHORT[name[1]], name[:2], "=", word[2:].removeprefix("=")
    later = opt is not None and opt.since and float(opt.since) > float(release)
    if opt is None or later or (opt.long in _BEYOND and not name.startswith("--")):
        raise UsageError(f"Unknown option '{word.partition('=')[0][1:]}'")
    return opt, name, value, bool(eq)


def read(argv: list[str]) -> CommandLine:
    """Read a command line and resolve contradictions; raises UsageError."""
    cl = CommandLine()
    if os.environ.get("ORIAS_ACCEPT_NEWER_PTX", "0") not in (
        "",
        "0",
    ):  # build tools hand options of their own to ptxas only
        cl.values["accept-newer-ptx"] = "1"
    given = os.environ.get("ORIAS_RELEASE", "")
    if given:
        _check(_LONG["release"], given)
        cl.values["release"] = given
    given = _wanted(argv) or given
    _read(argv, cl, 0, given if given in RELEASES else DEFAULT)
    if cl.smuggled and "stage" not in cl.lists:
        raise UsageError("'--stage' in an options file runs a command: it needs a '--stage' on the command line")
    cl.lists.setdefault("stage", []).extend(cl.smuggled)
    _of_release(cl)
    resolve_conflicts(cl)
    for opt in OPTIONS:
        if opt.effect == "refuse" and (opt.long in cl.values or opt.long in cl.lists):
            if opt.long == "apply-controls":
                _controls(cl.values[opt.long])
            raise UsageError(f"Option '--{opt.long}' is not supported by orias")
    idle = [
        f"'--{o.long}'"
        for o in OPTIONS
        if o.effect == "none"
        and o.long in cl.values
        and cl.values[o.long] not in o.idle
        and (o.long not in _OF_OBJECTS or "compile-only" in cl.values)
    ]
    sm = "".join([c for c in cl.values.get("gpu-name", "sm_75") if c.isdigit()])
    if cl.flag("preserve-relocs") and not features.has(int(sm), "relocs-not-preserved"):
        idle.append("'--preserve-relocs'")
    if idle:
        cl.notes.append(f"without effect in orias: {', '.join(idle)}")
    return cl


def _controls(path: str) -> None:
    """What ptxas says of a file that holds no controls; raises UsageError."""
    try:
        with open(path, "rb") as f:
            if not f.read(1):
                raise UsageError(f"Input file '{path}' not in expected format")
    except OSError:
        raise UsageError(f"File '{path}' could not be opened") from None


def release_of(cl: CommandLine) -> Release:
    """The release of ptxas that this command line asks for."""
    return RELEASES[cl.values.get("release", DEFAULT)]


def _of_release(cl: CommandLine) -> None:
    """What the release does not have is unknown to it; raises UsageError."""
    release = release_of(cl)
    for opt in OPTIONS:  # an options file may choose the release after them
        if opt.since and opt.long in cl.values and float(opt.since) > float(release.name):
            raise UsageError(f"Unknown option '-{opt.long}'")
    arch = cl.values.get("gpu-name", "sm_75")
    known = targets()[arch.replace("compute_", "sm_").replace("lto_", "sm_")]
    if known.min_ptx > release.newest:
        raise UsageError(f"Value '{arch}' is not defined for option 'gpu-name'")
    api = cl.values.get("cuda-api-version", release.api[0])
    if api not in release.api:
        raise UsageError(f"Invalid value '{api}' for option '--cuda-api-version'")


def _wanted(argv: list[str]) -> str:
    """The release that the last --release names, at any position: the options before it are that release's too."""
    given = ""
    for at, word in enumerate(argv):
        if word == "--release":
            given = argv[at + 1] if at + 1 < len(argv) else ""
        elif word.startswith("--release="):
            given = word.partition("=")[2]
    return given


def _read(argv: list[str], cl: CommandLine, depth: int, release: str = DEFAULT) -> None:
    at = 0
    while at < len(argv):
        word = argv[at]
        at += 1
        if word == "-" or not word.startswith("-"):
            cl.inputs.append(word)
            continue
        opt, name, value, given = find(word, release)
        if opt.kind == "flag":
            if given:
                raise UsageError(f"no argument expected after '{name}'")
            cl.values[opt.long] = "1"
            continue
        if opt.kind == "maybe":
            cl.values[opt.long] = value
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
                _read(_words(path), cl, depth + 1, release)
        elif opt.long == "pass" and depth:
            raise UsageError("'--pass' may run a command: give it on the command line, not in an options file")
        elif opt.long == "stage" and depth:
            cl.smuggled.append(value)
        elif opt.long in _REPEAT:
            cl.lists.setdefault(opt.long, []).extend(value.split(",") if opt.kind == "list" else [value])
        else:
            if opt.long in cl.values and cl.values[opt.long] != value and opt.long != "release":
                text = f"incompatible redefinition for option '{opt.long}', the last value of this option was used"
                cl.messages.append(Diagnostic("warning", text))
            cl.values[opt.long] = value


_BEYOND: Final = frozenset(
    {
        "batch",
        "output-dir",
        "report",
        "remarks",
        "stats-json",
        "cache",
        "serve",
        "exec",
        "stage",
        "save-temps",
        "start-from",
        "allow-undefined",
        "stop-after",
        "stage-timeout",
        "stage-option",
        "pass",
        "accept-newer-ptx",
        "release",
        "diagnostics-format",
        "explain",
        "show-completion",
        "time",
    }
)


_OPTIONS_FILE: Final = 1 << 24
_REGISTER_LIMITS: Final = ("maxrregcount", "device-function-maxrregcount")


def _check(opt: Option, value: str) -> None:
    if opt.kind in ("int", "level"):
        number(value)
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
    if opt.long in _REGISTER_LIMITS and value not in _MAXREG_NAMES and _c_number(value) is None:
        raise UsageError(f"Invalid value '{value}' for option '{opt.long}'")
    if opt.long == "abi-compile" and value != "yes":
        raise UsageError(f"Invalid value '{value}' for option -abi.", error=True)


def _words(path: str) -> list[str]:
    import shlex

    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as f:
            text = f.read(_OPTIONS_FILE + 1)
        if len(text) > _OPTIONS_FILE:
            raise UsageError(f"options file '{path}' has more than {_OPTIONS_FILE} characters")
        return shlex.split(text)
    except (OSError, ValueError):
        raise UsageError(f"Could not open options file '{path}'") from None


#: Flags and words that travel in the header under their own names.
_TRAVEL: Final = (
    "compile-only", "make-errors-visible-at-exit", "warn-on-double-precision-use", "verbose", "verbose2",
    "generate-line-info", "warning-as-error", "disable-warnings", "warn-on-spills",
    "warn-on-local-memory-usage", "explain", "override-directive-values",
        "legacy-bar-warp-wide-behavior", "sp-bounds-check", "compiler-annotations", "accept-newer-ptx",
        "suppress-async-bulk-multicast-advisory-warning",
        "suppress-sparse-mma-advisory-info", "suppress-stack-size-warning",
)  # fmt: skip


def stream_options(cl: CommandLine, target: str) -> dict[str, AttrValue]:
    """The options that travel in the header; may add warnings to ``cl.messages``."""
    level = (
        FAST[cl.values["Ofast-compile"]][1] if cl.values.get("Ofast-compile", "0") != "0" else cl.number("opt-level", 3)
    )
    out: dict[str, AttrValue] = {"opt-level": max(level, 0)}
    for name in ("def-load-cache", "def-store-cache", "force-load-cache", "force-store-cache"):
        if name in cl.values:
            out[name] = cl.values[name]
    for name in _TRAVEL:
        if cl.flag(name):
            out[name] = 1
    if cl.values.get("release", DEFAULT) != DEFAULT:
        out["release"] = cl.values["release"]
    if cl.flag("device-debug"):
        out.update({"device-debug": 1, "generate-line-info": 1, "opt-level": 0})
    if cl.flag("extensible-whole-program"):
        out.update({"compile-only": 1, "extensible-whole-program": 1})
    if cl.flag("gno-tensor-memory-access-check"):  # wins over the other one
        out["tensor-memory-checks"] = "gno"
    elif cl.flag("g-tensor-memory-access-check"):
        out["tensor-memory-checks"] = "g"
    if cl.flag("gno-fabric-access-check"):
        out["fabric-access-checks"] = "gno"
    if cl.flag("suppress-debug-info"):
        out["suppress-debug-info"] = 1
        out.pop("generate-line-info", None)
    if cl.values.get("fmad") == "false":
        out["fmad"] = 0
    if cl.values.get("blocks-are-clusters") == "true":
        out["blocks-are-clusters"] = 1
    if "entry" in cl.lists:
        out["entry"] = tuple(cl.lists["entry"])
    if "minnctapersm" in cl.values:
        out["minnctapersm"] = cl.number("minnctapersm", 0)
    if "maxntid" in cl.values:
        dims = [_c_number(d) or 0 for d in cl.values["maxntid"].split(",")]
        out["maxntid"] = (*dims, 1, 1)[:3]
    for name in _REGISTER_LIMITS:
        if name in cl.values:
            n = _register_limit(cl, cl.values[name], target)
            if n is not None:
                out[name] = n
    return out


def _register_limit(cl: CommandLine, text: str, target: str) -> int | None:
    """A limit on registers as ptxas takes it: None where it is ignored."""
    given = _c_number(text) or 0
    # A C long, and of that the lower 32 bits (measured: 4294967296 counts as 0, and what no long holds as -1).
    n = _MAXREG_NAMES.get(text) or (max(-(1 << 63), min(given, (1 << 63) - 1)) + (1 << 31)) % (1 << 32) - (1 << 31)
    if n > 255 or n < 0:
        cl.messages.append(Diagnostic("warning", f"Too big maxrregcount value specified {n}, will be ignored"))
        return None
    if n < 24:
        message = f"For profile {target} adjusting per thread register count of {n} to lower bound of 24"
        cl.messages.append(Diagnostic("warning", message))
    return max(n, 24)
