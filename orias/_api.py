"""The functions of :mod:`orias`. All of them work inside this process, and start no other."""

from __future__ import annotations

import gc
import io
import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ir_format import wire
from ir_format.diag import Diagnostic
from ir_format.model import AttrValue, Header, Module, Unit
from ir_format.target import named_target
from orchestrator.diagnostics import Finding, read_back
from orias._results import CompileError, Cubin, InternalError, Kernel, OptionError, PassInfo, Verdict

if TYPE_CHECKING:
    from orchestrator.options import Option
    from stages.simulate.device import Arg, Stats

Source = str | bytes | os.PathLike[str]
Image = bytes | Cubin | os.PathLike[str]
Value = bool | int | str | Sequence[int] | Sequence[str]

#: Threads take turns: the stages keep tables that they fill on first use, and one interpreter runs one of them at a
#: time anyway.
_turn: Final = threading.RLock()
#: Options of the command line whose meaning for the stages has another name in a stream's header.
_OTHERS: Final = frozenset({"Ofast-compile", "gno-tensor-memory-access-check", "g-tensor-memory-access-check"})
_OWN: Final = frozenset({"tensor-memory-checks", "explain"})


def _known() -> dict[str, Option]:
    """The options that a compile takes, by all their names, with `_` for `-`."""
    from orchestrator.options import OPTIONS
    from stages.plumbing.chain import OPTIONS as HEADER

    named = (HEADER | _OTHERS) - _OWN
    out: dict[str, Option] = {}
    for o in OPTIONS:
        if o.long in named:
            for name in filter(None, (o.short, o.long)):
                out[name.replace("-", "_")] = o
    return out


def options() -> dict[str, str]:
    """The options of :func:`compile` and what each does."""
    found: dict[str, str] = {}
    for o in _known().values():
        found[o.long.replace("-", "_")] = o.help
    return dict(sorted(found.items()))


def _words(given: Mapping[str, Value | None]) -> list[str]:
    """The command line that says the same. Raises OptionError."""
    known = _known()
    out: list[str] = []
    for name, value in given.items():
        o = known.get(name)
        if o is None:
            raise OptionError(f"there is no option '{name}'; there are {', '.join(options())}")
        if value is None or (o.kind == "flag" and value is False):
            continue
        if o.kind == "flag":
            if value is not True:
                raise OptionError(f"option '{name}' is on or off: True or False, not {value!r}")
            out.append(f"--{o.long}")
        elif isinstance(value, bool):
            if o.kind != "bool":
                raise OptionError(f"option '{name}' takes a value, not {value!r}")
            out.append(f"--{o.long}={str(value).lower()}")
        elif isinstance(value, int | str):
            out.append(f"--{o.long}={value}")
        else:
            out.append(f"--{o.long}={','.join([str(v) for v in value])}")
    return out


def _settings(arch: str, given: Mapping[str, Value | None]) -> tuple[dict[str, AttrValue], list[Diagnostic]]:
    """The options of the stream, and warnings about them."""
    from orchestrator.conflicts import UsageError
    from orchestrator.options import read, stream_options

    if not arch.startswith("sm_"):
        raise OptionError(f"'{arch}' is no target of a cubin: those begin with sm_")
    try:
        line = read([f"--gpu-name={arch}", *_words(given)])
        return stream_options(line, arch), line.messages
    except UsageError as e:
        raise OptionError(str(e)) from None


def _source(ptx: Source, name: str) -> tuple[str, bytes]:
    if isinstance(ptx, str):
        return name or "input.ptx", ptx.encode("utf-8", "surrogateescape")
    if isinstance(ptx, bytes | bytearray):
        return name or "input.ptx", bytes(ptx)
    with open(ptx, "rb") as f:
        return name or os.fspath(ptx), f.read()


def compile(ptx: Source, arch: str | None = None, *, name: str = "", **options: Value | None) -> Cubin:
    """Compile PTX.

    ``ptx``: the text, or a path-like object that names a file (``pathlib.Path``). ``arch``: the target, by default the
    PTX's own ``.target``. ``name``: of the source in messages. ``options``: those of the command line by their long or
    short names with ``_`` for ``-`` (:func:`orias.options` lists them): flags are True or False, lists sequences.

    Raises CompileError for PTX that is refused, OptionError for an option that there is not, OSError for a file that
    can't be read. Safe to call from several threads, which take turns; starts no process.
    """
    source = _source(ptx, name)
    if arch is None:
        arch = named_target(source[1])
        if not arch:
            raise OptionError("the PTX has no .target: name an arch")
    with _turn:
        settings, warnings = _settings(arch, options)
        said = io.StringIO()
        for d in warnings:
            said.write(d.render() + "\n")
        collects = gc.isenabled()
        gc.disable()  # the trees of a compile live until its end
        try:
            return _compile(source, arch, settings, said)
        finally:
            if collects:
                gc.enable()


def _compile(source: tuple[str, bytes], arch: str, settings: dict[str, AttrValue], said: io.StringIO) -> Cubin:
    from stages.elf.report import resource_lines
    from stages.plumbing.back_end import elf_from_stream
    from stages.plumbing.chain import MIDDLE
    from stages.plumbing.front_end import parse_to_stream
    from stages.plumbing.in_process import run_in_process

    def diagnostics() -> tuple[Finding, ...]:
        return tuple(read_back(said.getvalue(), [source]))

    parsed, encoded = io.BytesIO(), io.BytesIO()
    if parse_to_stream([source], arch, settings, parsed.write, say=said.write):
        raise CompileError(diagnostics())
    parsed.seek(0)
    at = [""]
    if run_in_process(MIDDLE, parsed, encoded, lambda stage: at.__setitem__(0, stage)) > 1:
        raise InternalError(f"stage {at[0]} failed; standard error names the file that reproduces it")
    parts: list[bytes] = []
    encoded.seek(0)
    code = elf_from_stream(encoded, parts.append, say=said.write)
    if code > 1:
        raise InternalError(said.getvalue())
    if code:
        raise CompileError(diagnostics())
    encoded.seek(0)
    header, module, units = _read(encoded)
    kernels = {u.name: _kernel(u, header) for u in units if u.kind == "entry"}
    report = "\n".join(resource_lines(header, module, units)) + "\n"
    return Cubin(b"".join(parts), arch, kernels, diagnostics(), report)


def _read(stream: io.BytesIO) -> tuple[Header, Module, list[Unit]]:
    header, module, units = Header("", ""), Module(), []
    for tag, body in wire.records(stream):
        if tag == wire.MAGIC:
            header = wire.header_from_wire(body)
        elif tag == "module":
            module = wire.module_from_wire(body)
        else:
            units.append(wire.unit_from_wire(body, "encoded"))
    return header, module, units


def _kernel(unit: Unit, header: Header) -> Kernel:
    from ir_format.target import target
    from stages.elf.layout import build_kernel

    k = build_kernel(unit, target(header.target), 0, header.options)
    bound = unit.attrs.get("reqntid") or unit.attrs.get("maxntid") or ()
    threads = 1 if bound else 0
    for n in bound if isinstance(bound, tuple) else (bound,):
        threads *= n if isinstance(n, int) and n > 0 else 1
    barriers = unit.attrs.get("barriers", 0)
    return Kernel(
        name=unit.name,
        arch=header.target,
        registers=k.regcount,
        spill_stores=sum([f.spills[0] for f in unit.functions]),
        spill_loads=sum([f.spills[1] for f in unit.functions]),
        stack=k.functions[0].code.frame,
        shared=k.static_shared,
        barriers=barriers if isinstance(barriers, int) else 0,
        parameters=k.param_size,
        instructions=sum([len(c.data) for c in unit.code]) // 16,
        threads=threads,
    )


def _image(cubin: Image) -> bytes:
    if isinstance(cubin, Cubin):
        return cubin.image
    if isinstance(cubin, bytes | bytearray | memoryview):
        return bytes(cubin)
    with open(cubin, "rb") as f:
        return f.read()


def disassemble(cubin: Image, *, hex: bool = False, exact: bool = False) -> str:
    """The listing of a cubin, of orias or another compiler, as `nvdisasm -c` prints it. ``hex``: the words next to the
    text; ``exact``: notes with what the text leaves out and the control word. Raises OriasError for what is no
    cubin."""
    from stages.disasm.cubin import read_cubin
    from stages.disasm.listing import print_cubin

    with _turn:
        return "".join(print_cubin(read_cubin(_image(cubin)), hex, exact))


def run(
    cubin: Image,
    kernel: str = "",
    *,
    grid: int | Sequence[int] = 1,
    block: int | Sequence[int] = 32,
    args: Sequence[Arg] = (),
    shared: int = 0,
    **launch: Any,
) -> Stats:
    """Run a kernel (by default the only one) in the simulator. numpy arrays among ``args`` are buffers, and hold what
    the kernel wrote afterwards; scalars are numpy's, whose types say how many bytes they have. ``launch``: further
    arguments of :meth:`orias.Device.launch` (strict, seed, cluster, cycles, races, ...). Raises SimError."""
    from stages.simulate.device import Device

    with _turn:
        device = Device(_image(cubin))
        if not kernel and len(device.kernels) != 1:
            raise ValueError(f"name one of the kernels: {', '.join(device.kernels) or 'there are none'}")
        return device.launch(kernel or device.kernels[0], grid, block, args, shared=shared, **launch)


def check(cubin: Image) -> Verdict:
    """Run the judges on a cubin: each stall and scoreboard wait over all paths, where threads reconverge, and the
    records as well as the code. Raises OriasError for input that is no cubin."""
    from stages.check.command import judge

    with _turn:
        found = judge(_image(cubin))
    return Verdict(tuple([str(f) for f in found.findings]), tuple(found.unjudged), found.instructions)


def passes() -> dict[str, tuple[PassInfo, ...]]:
    """The passes of each stage, in the order in which they run."""
    from stages.plumbing.chain import MIDDLE

    with _turn:
        return {s.name: tuple([PassInfo(p.name, p.min_opt, p.required) for p in s.passes()]) for s in MIDDLE}
