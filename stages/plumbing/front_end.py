"""The front end of the chain: PTX text becomes a stream at level `ptx`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from ir_format import features, wire
from ir_format.diag import Diagnostic
from ir_format.model import AttrValue, Header
from ir_format.release import DEFAULT
from ir_format.typed import TYPE_CHECKING, Final
from stages.plumbing.runner import ABORTED, VERSION

if TYPE_CHECKING:
    from ir_format.ptx import PtxModule
    from stages.parse import ParseResult

LINES_UNASKED = 2  # the value of generate-line-info if no option asks for it

#: Option that turns an advisory off -> how the advisory begins.
ADVICE: Final = {
    "suppress-async-bulk-multicast-advisory-warning": "Advisory: '.multicast::cluster'",
    "suppress-sparse-mma-advisory-info": "Advisory: Modifier '.sp::ordered_metadata'",
}


def parse_to_stream(
    sources: Sequence[tuple[str, bytes]],
    target: str,
    options: dict[str, AttrValue],
    out: Callable[[bytes], object],
    flush: Callable[[], object] | None = None,
    say: Callable[[str], object] | None = None,
) -> int:
    """Parse (name, bytes) sources into one module and write a stream at level `ptx`. Returns 0, or 1 after errors,
    which go to ``say`` (standard error); nothing is written then."""
    say = say or sys.stderr.write
    from ir_format import ptx_wire
    from stages.parse import parse_sources

    result = parse_sources(sources, target, options)
    werror = bool(options.get("warning-as-error"))
    bad = False
    silent = tuple([text for name, text in ADVICE.items() if options.get(name)])
    for d in result.diagnostics:
        if silent and d.severity in ("info", "warning") and d.message.startswith(silent):
            continue
        if d.severity == "warning" and options.get("disable-warnings"):  # comes before -Werror, as in ptxas
            continue
        severity = "error" if werror and d.severity == "warning" else d.severity
        bad = bad or severity in ("error", "fatal")
        say(Diagnostic(severity, d.message, d.file, d.line).render() + "\n")
    if bad or result.module is None:
        last = result.diagnostics[-1]
        late = last.severity == "fatal" and not last.file  # from a later phase of ptxas, which prints no more
        if not late and not any(
            d.severity == "fatal" and "aborted due to errors" in d.message for d in result.diagnostics
        ):
            say(ABORTED)
        return 1
    if "debug" in result.module.target_options:  # as -g, also without it (measured)
        options.update({"device-debug": 1, "opt-level": 0})
        if not options.get("suppress-debug-info"):
            options["generate-line-info"] = 1
    odd = _for_target(result.module, options, say) or _stacks(result, options, say)
    wanted = options.get("entry")
    if not odd and isinstance(wanted, tuple) and wanted:
        odd = _choose(result, wanted, options)
    if odd:
        say(odd)
        return 1
    located = any(f.locs for u in result.units for f in u.functions)
    if located and not options.get("suppress-debug-info"):
        # ptxas writes line tables, without an option, if the program has .loc (measured).
        options.setdefault("generate-line-info", LINES_UNASKED)
    if options.get("generate-line-info") and len(sources) == 1:
        result.module.text = sources[0][1].decode("latin-1")
    name = sources[0][0].encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")  # may be any bytes
    header = Header("ptx", target, name)
    header.ptx_target = result.module.target
    header.ptx_version = "%d.%d" % result.module.version
    header.options = options
    header.producers = [("parse", VERSION)]
    writer = wire.Writer(out, flush)
    writer.record(wire.MAGIC, wire.header_to_wire(header))
    writer.record("module", ptx_wire.module_to_wire(result.module))
    for unit in result.units:
        writer.record("unit", ptx_wire.unit_to_wire(unit))
    writer.end()
    return 0


def _stacks(result: ParseResult, options: dict[str, AttrValue], say: Callable[[str], object]) -> str:
    """Warn of kernels whose stack size can't be determined (measured: recursion counts, a call by pointer does not).
    13.0 warns with -g only; 13.5 always, and without -g of allocations too. Returns a text that ends the compile, or
    ''."""
    from stages.parse.bounds import allocating, recursive

    quiet = options.get("suppress-stack-size-warning") or options.get("disable-warnings")
    debug = options.get("device-debug")
    old = options.get("release", DEFAULT) == "13.0"
    if quiet or (old and not debug) or options.get("compile-only"):
        return ""
    found = {*recursive(result.units), *(() if debug or old else allocating(result.units))}
    names = [u.name for u in (result.units if debug else result.units[::-1]) if u.name in found]
    strict = bool(options.get("warning-as-error"))
    for name in names:
        say(
            Diagnostic(
                "error" if strict else "warning",
                f"Stack size for entry function '{name}' cannot be statically determined",
            ).render()
            + "\n"
        )
    return ABORTED if names and strict else ""


def _for_target(module: PtxModule, options: dict[str, AttrValue], say: Callable[[str], object]) -> str:
    """Check options that depend on the .target of the PTX. Print that an option is ignored if ptxas ignores it; return
    the error if the option would need other code."""
    name = module.target.partition("_")[2]
    number, suffix = int("0" + name.rstrip("af")), name[-1:] in ("a", "f")
    if options.get("legacy-bar-warp-wide-behavior"):
        if not features.has(number, "independent-threads"):
            return (
                "ptxas fatal   : Option '--legacy-bar-warp-wide-behavior' is not supported by orias for a .target "
                "below sm_70\n"
            )
        if not options.get("disable-warnings"):
            say(
                "ptxas warning : Command line option '--legacy-bar-warp-wide-behavior' not supported for '.target "
                "sm_70', will be ignored\n"
            )
    if options.get("fabric-access-checks") and not features.has(number, "fabric-access-check"):
        say(
            f"ptxas info    : Command line option '--gno-fabric-access-check' not supported for '.target "
            f"{module.target}', will be ignored\n"
        )
    if options.get("device-debug") and not options.get("disable-warnings"):
        held = {s.name for s in module.sections}
        missing = [name for name in (".debug_abbrev", ".debug_info") if name not in held]
        strict = bool(options.get("warning-as-error"))
        for name in missing:
            say(Diagnostic("error" if strict else "warning", f" {name} section not found").render() + "\n")
        if missing and strict:
            return ABORTED
    checks = options.get("tensor-memory-checks")
    if checks:
        if not (suffix and features.has(number, "tensor-memory-checks")):
            both = "--g-tensor-memory-access-check / --gno-tensor-memory-access-check"
            say(
                f"ptxas info    : Command line option '{both}' not supported for '.target {module.target}', will be "
                f"ignored\n"
            )
        elif checks == "g":
            return "ptxas fatal   : Option '--g-tensor-memory-access-check' is not supported by orias\n"
    return ""


def _choose(result: ParseResult, wanted: tuple[AttrValue, ...], options: dict[str, AttrValue]) -> str:
    """Keep the kernels that ``-e`` names; returns the error for a name that does not exist. Objects keep all kernels
    (measured)."""
    module = result.module
    assert module is not None
    for name in wanted:
        if name in module.functions:
            return f"ptxas error   : Entry function '{name}' not found\n{ABORTED}"
        if name not in module.entries:
            return f"ptxas fatal   : Unknown function {name}\n"
    if not options.get("compile-only"):
        module.entries = [n for n in module.entries if n in wanted]
        result.units[:] = [u for u in result.units if u.name in wanted]
    return ""
