"""The description of a kernel launch, its expected results, and the comparison.

Every consumer (simulator tests, PTX interpreter tests, the GPU kit) reads the same descriptions. This module imports
nothing of the compiler.

A consumer of a :class:`Launch`
  1. gives every :class:`Buffer` separate memory, filled with ``data`` (also when ``data`` is empty: any valid
     address);
  2. loads the module afresh (symbols have their initial values) and sets the symbols named in ``globals``;
  3. lays out ``args`` in the parameter space (:func:`pack_params`) and runs ``entry``;
  4. hands the buffers' contents and the symbols of ``expect_globals`` to :func:`check`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Dim3 = tuple[int, int, int]

HERE = Path(__file__).resolve().parent

#: Mismatches shown for one array before the rest are only counted.
SHOWN = 4

#: Elements after the end of every output buffer that a kernel must not change.
GUARD = 4


@dataclass(frozen=True, slots=True)
class Scalar:
    """A parameter by value: ``data`` is its little-endian bytes, ``align`` its alignment in bytes."""

    name: str
    data: bytes
    align: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A pointer parameter; ``data`` is the contents before the launch.  ``output`` buffers have an expectation."""

    name: str
    data: Array
    output: bool = False


@dataclass(frozen=True, slots=True)
class Expected:
    """Contents after the launch.

    ``mask`` False leaves an element unchecked (unspecified by the PTX manual).  Floats compare by bits, any NaN
    equal to any NaN, unless a bound is given: ``ulp`` counts floats between the result and the correctly rounded
    one, ``rel`` and ``abs`` bound the difference; an element passes if it meets one of the given bounds.
    ``source`` says where a bound comes from.
    """

    values: Array
    ulp: int = 0
    rel: float = 0.0
    abs: float = 0.0
    mask: NDArray[np.bool_] | None = None
    source: str = ""


Arg = Scalar | Buffer


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch: geometry, dynamic shared memory in bytes, arguments, symbols, expectations."""

    entry: str
    label: str
    grid: Dim3
    block: Dim3
    shared: int
    args: list[Arg]
    globals: dict[str, Array] = field(default_factory=dict)
    expect: dict[str, Expected] = field(default_factory=dict)
    expect_globals: dict[str, Expected] = field(default_factory=dict)

    def buffers(self) -> dict[str, Buffer]:
        """The buffers by name, in argument order."""
        return {arg.name: arg for arg in self.args if isinstance(arg, Buffer)}

    def threads(self) -> int:
        """Threads of the whole launch."""
        gx, gy, gz = self.grid
        bx, by, bz = self.block
        return gx * gy * gz * bx * by * bz


Maker = Callable[[np.random.Generator], list[Launch]]


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """A kernel of this folder and its launches.

    ``folder`` is "" for the sixteen, "corpus" for other CUDA kernels, "hand" for kernels written in PTX, which have one
    file for all SMs from ``min_sm`` on.
    """

    name: str
    make: Maker
    folder: str = ""
    min_sm: int = 75

    def launches(self, seed: int = 0) -> list[Launch]:
        """The launches for a seed: the same seed gives the same bytes."""
        generator = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        with np.errstate(all="ignore"):
            return self.make(generator)

    def source(self) -> Path:
        """The source: CUDA, or PTX for a hand-written kernel."""
        return HERE / self.folder / f"{self.name}.{'ptx' if self.folder == 'hand' else 'cu'}"

    def ptx(self, sm: int = 90) -> Path:
        """The PTX that nvcc made for an SM of :data:`tests.kernels.make_ptx.SMS`, or the hand-written one."""
        if self.folder == "hand":
            return self.source()
        return HERE / self.folder / "ptx" / f"sm_{sm}" / f"{self.name}.ptx"


def combined_ptx(sm: int = 90) -> Path:
    """One PTX module with all sixteen main kernels."""
    return HERE / "ptx" / f"sm_{sm}" / "all16.ptx"


# --- arguments -------------------------------------------------------------------------------------------------


def scalar(name: str, dtype: str, value: float) -> Scalar:
    """A number: ``dtype`` is a numpy type name ("int32", "float32", "uint64"...)."""
    item = np.array(value, dtype=dtype)
    return Scalar(name, item.tobytes(), item.dtype.itemsize, f"{dtype} {value!r}")


def s32(name: str, value: int) -> Scalar:
    """A 32-bit signed parameter."""
    return scalar(name, "int32", value)


def u32(name: str, value: int) -> Scalar:
    """A 32-bit unsigned parameter."""
    return scalar(name, "uint32", value)


def u64(name: str, value: int) -> Scalar:
    """A 64-bit unsigned parameter."""
    return scalar(name, "uint64", value)


def f32(name: str, value: float) -> Scalar:
    """A float parameter."""
    return scalar(name, "float32", value)


def inp(name: str, data: Array) -> Buffer:
    """An input buffer: exactly the given elements, and it must not change."""
    return Buffer(name, np.ascontiguousarray(data))


def out(name: str, before: Array) -> Buffer:
    """An output buffer: ``before`` plus :data:`GUARD` guard elements."""
    data = np.ascontiguousarray(before)
    return Buffer(name, np.concatenate([data, guard(data.dtype)]), output=True)


def fresh(name: str, count: int, dtype: str) -> Buffer:
    """An output buffer of ``count`` elements filled with a pattern, so that a missing store shows."""
    kind = np.dtype(dtype)
    pattern = np.full(count * kind.itemsize, 0xA5, np.uint8).view(kind)
    return out(name, pattern)


def guard(dtype: np.dtype[Any]) -> Array:
    """The guard elements of an output buffer."""
    return np.full(GUARD * dtype.itemsize, 0x5A, np.uint8).view(dtype)


def expected(
    values: Array, *, ulp: int = 0, rel: float = 0.0, abs: float = 0.0, mask: Array | None = None, source: str = ""
) -> Expected:
    """An expectation for a buffer made by :func:`out` or :func:`fresh`: the guard is added, always checked."""
    data = np.ascontiguousarray(values)
    full = np.concatenate([data, guard(data.dtype)])
    if mask is not None:
        mask = np.concatenate([np.asarray(mask, np.bool_), np.ones(GUARD, np.bool_)])
    return Expected(full, ulp, rel, abs, mask, source)


def pack_params(args: list[Arg], addresses: Mapping[str, int]) -> tuple[bytes, list[int]]:
    """The parameter space (natural alignment, 8-byte pointers) and the offset of each argument."""
    blob = bytearray()
    offsets: list[int] = []
    for arg in args:
        data, align = (
            (addresses[arg.name].to_bytes(8, "little"), 8) if isinstance(arg, Buffer) else (arg.data, arg.align)
        )
        blob += b"\0" * (-len(blob) % align)
        offsets.append(len(blob))
        blob += data
    return bytes(blob), offsets


# --- comparison ------------------------------------------------------------------------------------------------


def _ordered(values: Array) -> NDArray[Any]:
    """Floats as integers in the order of the reals, both zeros at 0, one step per float."""
    bits = values.view(f"i{values.dtype.itemsize}")
    magnitude = (bits & np.array(np.iinfo(bits.dtype).max, bits.dtype)).astype(object)
    return np.asarray(np.where(bits < 0, -magnitude, magnitude), object)


def _mismatch(want: Expected, got: Array) -> NDArray[np.bool_]:
    """True for each wrong element."""
    values = want.values
    kind = f"u{values.dtype.itemsize}"
    if values.dtype.kind != "f":
        bad = np.asarray(values != got, np.bool_)
    else:
        bad = np.asarray(values.view(kind) != got.view(kind), np.bool_)
        bad = bad & ~(np.isnan(values) & np.isnan(got))
        if want.ulp or want.rel or want.abs:
            bad = bad & ~_within(want, got)
    if want.mask is not None:
        bad = bad & want.mask
    return bad


def _within(want: Expected, got: Array) -> NDArray[np.bool_]:
    """True for each float inside one of its bounds (guard elements are finite and equal anyway)."""
    values = want.values
    with np.errstate(all="ignore"):
        close = np.zeros(values.shape, np.bool_)
        both = np.isfinite(values) & np.isfinite(got)
        if want.ulp:
            # Infinity counts as the float after the largest: a bound may round to it.
            defined = ~np.isnan(values) & ~np.isnan(got)
            steps = _ordered(values) - _ordered(got)
            close |= defined & np.array([-want.ulp <= step <= want.ulp for step in steps.ravel()]).reshape(values.shape)
        if want.rel or want.abs:
            exact = values.astype(np.float64)
            difference = np.abs(exact - got.astype(np.float64))
            close |= both & (difference <= want.abs + want.rel * np.abs(exact))
    return close


def _show(value: Any) -> str:
    item = np.asarray(value)
    if item.dtype.kind == "f":
        return f"{item!s} ({int(item.view(f'u{item.dtype.itemsize}')):#x})"
    return f"{int(item)} ({int(item) & ((1 << 8 * item.dtype.itemsize) - 1):#x})"


def compare(name: str, want: Expected, got: Array) -> list[str]:
    """The differences of one array, as lines of text."""
    values = want.values
    if got.dtype != values.dtype or got.shape != values.shape:
        return [f"{name}: {got.dtype}{list(got.shape)} given, {values.dtype}{list(values.shape)} expected"]
    wrong = np.flatnonzero(_mismatch(want, np.ascontiguousarray(got)))
    lines = [f"{name}[{i}]: got {_show(got[i])}, want {_show(values[i])}" for i in wrong[:SHOWN]]
    if len(wrong) > SHOWN:
        lines.append(f"{name}: {len(wrong)} of {values.size} elements differ")
    return lines


def check(launch: Launch, outputs: Mapping[str, Array], globals_after: Mapping[str, Array] | None = None) -> list[str]:
    """Everything wrong with a launch's results; empty if all is right.

    ``outputs`` must contain every output buffer (guard included), ``globals_after`` every symbol of
    ``expect_globals``; input buffers may be given too and must be unchanged.
    """
    lines: list[str] = []
    for name, buffer in launch.buffers().items():
        if name not in outputs:
            if buffer.output:
                lines.append(f"{name}: no result given")
            continue
        want = launch.expect[name] if buffer.output else Expected(buffer.data.view(f"u{buffer.data.dtype.itemsize}"))
        got = outputs[name] if buffer.output else outputs[name].view(want.values.dtype)
        lines += compare(name, want, got)
    after = globals_after or {}
    for name, want in launch.expect_globals.items():
        lines += compare(name, want, after[name]) if name in after else [f"{name}: no value given"]
    return lines
