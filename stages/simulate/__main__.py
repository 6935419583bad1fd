"""``orias-run``: execute a kernel of a cubin on the CPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from stages.plumbing.application import new_app

app = new_app()


@app.command()
def run(
    cubin: Annotated[Path, typer.Argument(help="the cubin, ours or another compiler's")],
    kernel: Annotated[str, typer.Option(help="kernel to run (default: the only one)")] = "",
    grid: Annotated[str, typer.Option(help="blocks: N or N,N,N")] = "1",
    block: Annotated[str, typer.Option(help="threads of a block: N or N,N,N")] = "32",
    cluster: Annotated[str, typer.Option(help="blocks of a cluster: N or N,N,N")] = "",
    arg: Annotated[
        list[str] | None,
        typer.Option(
            "--arg",
            help="buf:TYPE[COUNT]=FILL, buf:FILE.npy, TYPE=VALUE or map:FILE.npy,box=..; once for each parameter",
        ),
    ] = None,
    out: Annotated[list[str] | None, typer.Option("--out", help="INDEX=FILE.npy: save a buffer afterwards")] = None,
    show: Annotated[list[int] | None, typer.Option("--show", help="INDEX: print a buffer afterwards")] = None,
    put: Annotated[list[str] | None, typer.Option("--set", help="NAME=FILE.npy: set a module variable before")] = None,
    get: Annotated[
        list[str] | None, typer.Option("--get", help="NAME=FILE.npy: save a module variable's bytes afterwards")
    ] = None,
    shared: Annotated[int, typer.Option(help="dynamic shared memory in bytes")] = 0,
    stack: Annotated[int, typer.Option(help="local memory of a thread in bytes")] = 1024,
    seed: Annotated[int, typer.Option(help="seed of random buffers, uninitialised registers and scheduling")] = 0,
    limit: Annotated[int, typer.Option(help="most warp instructions")] = 400_000_000,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="honour stall counts and scoreboards: a value read too early is the old one, printed, and exit code 1",
        ),
    ] = False,
    races: Annotated[
        bool, typer.Option("--races", help="look for accesses of shared and global memory that nothing orders")
    ] = False,
    order: Annotated[
        str,
        typer.Option(
            "--order",
            help=(
                "the order in which warps run, each by itself: far, back, parts, random, starve; all: every order, "
                "results compared"
            ),
        ),
    ] = "",
    progress: Annotated[
        bool,
        typer.Option(
            "--progress", help="a warp never blocks at BSYNCs: threads that wait there continue (ptxas's code needs it)"
        ),
    ] = False,
    cycles: Annotated[
        bool, typer.Option("--cycles", help="estimate issue cycles, by instruction and PTX line")
    ] = False,
    stats: Annotated[bool, typer.Option("--stats", help="print instruction count and rate")] = False,
) -> None:
    """Execute a kernel of CUBIN on the CPU."""
    try:
        _execute(cubin, kernel, (grid, block, cluster), arg or [], (out or [], show or [], put or [], get or []),
                 {"shared": shared, "stack": stack, "seed": seed, "limit": limit, "strict": strict, "cycles": cycles,
                 "races": races, "order": order, "progress": progress}, stats)  # fmt: skip
    except _Failure as e:
        sys.stderr.write(f"orias-run: error: {e}\n")
        raise typer.Exit(e.code) from None


class _Failure(Exception):
    """``code``: the exit code, 1 where the launch failed, 2 where there was none."""

    def __init__(self, text: str, code: int = 2) -> None:
        super().__init__(text)
        self.code = code


def _pairs(items: list[str], what: str) -> list[tuple[str, str]]:
    pairs = []
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key or not value:
            raise _Failure(f"--{what} {item}: expected KEY=FILE")
        pairs.append((key, value))
    return pairs


def _execute(
    cubin: Path,
    kernel: str,
    dims: tuple[str, str, str],
    args: list[str],
    files: tuple[list[str], list[int], list[str], list[str]],
    options: dict[str, Any],
    stats: bool,
) -> None:
    import numpy as np

    from stages.simulate.argspec import ArgError, parse_arg, parse_dim
    from stages.simulate.device import Device
    from stages.simulate.elfread import ImageError
    from stages.simulate.machine import SimError
    from stages.simulate.orders import ORDERS

    out, show, put, get = files
    try:
        device = Device(cubin.read_bytes())
        generator = np.random.default_rng(options["seed"])
        values = [parse_arg(a, generator) for a in args]
        for name, path in _pairs(put, "set"):
            device.set_global(name, np.load(path, allow_pickle=False))
        if not kernel and len(device.kernels) > 1:
            raise _Failure(f"several kernels, name one with --kernel: {', '.join(device.kernels)}")
        every = options["order"] == "all"
        if options["order"] and not every and options["order"] not in ORDERS:
            raise _Failure(f"no order '{options['order']}': there are {', '.join(ORDERS)} and all")
        what = (kernel or device.kernels[0], parse_dim(dims[0]), parse_dim(dims[1]))
        options |= {"cluster": parse_dim(dims[2]) if dims[2] else None, "order": "" if every else options["order"]}
        differ = _orders(device, what, values, options) if every else []
        result = device.launch(*what, values, **options)
        sys.stdout.write(result.output)
        for index, path in _pairs(out, "out"):
            np.save(path, _buffer(values, index))
        for position in show:
            sys.stdout.write(f"{position}: {_buffer(values, str(position))}\n")
        for name, path in _pairs(get, "get"):
            np.save(path, device.get_global(name))
    except OSError as e:
        raise _Failure(f"{e.filename}: {e.strerror}") from None
    except ImageError as e:
        raise _Failure(f"'{cubin}': {e}") from None
    except SimError as e:
        raise _Failure(str(e), 1) from None
    except (ArgError, ValueError) as e:
        raise _Failure(str(e)) from None
    if result.cycles:
        from stages.simulate.cycles import report

        sys.stdout.write(report(result.cycles))
    if result.advanced:
        sys.stdout.write(f"{result.advanced} times a warp was blocked, and threads were released from a BSYNC\n")
    for race in result.races:
        sys.stdout.write(f"{race.text}\n")
    for text in result.hazards:
        sys.stdout.write(f"{text}\n")
    for line in differ:
        sys.stdout.write(f"{line}\n")
    if stats:
        sys.stdout.write(
            f"{result.instructions} warp instructions, {result.blocks} blocks, {result.seconds:.3f} s, "
            f"{result.rate:.0f} a second\n"
        )
    if differ or result.hazards or any(race.kind == "race" for race in result.races):
        raise typer.Exit(1)


def _orders(device: Any, what: tuple[Any, ...], values: list[Any], options: dict[str, Any]) -> list[str]:
    """Run the launch on copies of its arguments in every order; report where the results differ from the machine's
    own."""
    import numpy as np

    from stages.simulate.machine import SimError
    from stages.simulate.orders import ORDERS

    variables = device.globals.copy()
    out: list[str] = []
    first: list[Any] | None = None
    for name in ("", *ORDERS):
        mine = [_copied(v) for v in values]
        try:
            device.launch(*what, mine, **(options | {"order": name, "races": False, "cycles": False}))
        except SimError as e:
            if not name:
                raise
            out.append(f"order {name}: {e}")
            continue
        finally:
            state = device.globals.copy()
            device.globals[:] = variables
        ends = [*(a for v in mine for a in _arrays(v)), state]
        if first is None:
            first = ends
        for k, (one, two) in enumerate(zip(first, ends, strict=True)):
            bad = np.flatnonzero(one.reshape(-1).view(np.uint8) != two.reshape(-1).view(np.uint8))
            if len(bad):
                title = f"buffer {k}" if k + 1 < len(ends) else "module variables"
                out.append(f"order {name}: {title} ends otherwise in {len(bad)} bytes, the first at {bad[0]}")
    return out


def _buffer(values: list[Any], index: str) -> Any:
    found = _arrays(values[int(index)]) if index.isdecimal() and int(index) < len(values) else []
    if not found:
        raise _Failure(f"argument {index} is not a buffer")
    return found[0]


def _arrays(value: Any) -> list[Any]:
    """The buffers of an argument: itself, or those of a record (of a tensor map its tensor)."""
    import numpy as np

    return list(value[1].values()) if isinstance(value, tuple) else [value] if isinstance(value, np.ndarray) else []


def _copied(value: Any) -> Any:
    if isinstance(value, tuple):
        return value[0], {at: a.copy() for at, a in value[1].items()}
    return value.copy() if _arrays(value) else value


def main() -> None:
    """Entry point of ``orias-run``."""
    from stages.plumbing.console import run_tool

    run_tool("orias-run", app)


if __name__ == "__main__":
    main()
