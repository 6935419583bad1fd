"""Arguments of a launch as the command line writes them.

``buf:TYPE[COUNT]=FILL`` a buffer, FILL one of zero, ones, iota, random, random:LOW:HIGH or a number; ``buf:FILE.npy`` a
buffer from a file; ``TYPE=VALUE`` a scalar; ``map:ARRAY,box=64x128,...`` a tensor map over a buffer, see
:func:`parse_map`. TYPE: i8 u8 i16 u16 f16 i32 u32 f32 i64 u64 f64.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

TYPES: Final[dict[str, str]] = {
    "i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16", "f16": "float16", "i32": "int32", "u32": "uint32",
    "f32": "float32",
    "i64": "int64", "u64": "uint64", "f64": "float64", "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64",
}  # fmt: skip
_BUFFER: Final = re.compile(r"buf:(?P<type>\w+)\[(?P<count>\d+)\](?:=(?P<fill>.+))?$")
_SCALAR: Final = re.compile(r"(?P<type>\w+)=(?P<value>.+)$")
MAX_ELEMENTS: Final = 1 << 28


class ArgError(ValueError):
    """An argument that can't be read; the text says why."""


def _dtype(name: str) -> np.dtype[Any]:
    if name not in TYPES:
        raise ArgError(f"unknown type '{name}' (one of {', '.join(sorted(TYPES))})")
    return np.dtype(TYPES[name])


def _number(text: str, dtype: np.dtype[Any]) -> Any:
    try:
        value = float(text) if dtype.kind == "f" else int(text, 0)
    except ValueError:
        raise ArgError(f"'{text}' is not a number of type {dtype.name}") from None
    if dtype.kind != "f":
        assert isinstance(value, int)
        bits = 8 * dtype.itemsize
        if not -(1 << (bits - 1)) <= value < 1 << bits:
            raise ArgError(f"{text} does not fit {dtype.name}")
        return np.array(value & ((1 << bits) - 1), f"u{dtype.itemsize}").view(dtype)[()]
    return dtype.type(value)


def _fill(dtype: np.dtype[Any], count: int, fill: str, generator: np.random.Generator) -> NDArray[Any]:
    if fill in ("zero", ""):
        return np.zeros(count, dtype)
    if fill == "ones":
        return np.ones(count, dtype)
    if fill == "iota":
        return np.arange(count).astype(dtype)
    if fill.startswith("random"):
        bounds = fill.split(":")[1:]
        if len(bounds) not in (0, 2):
            raise ArgError("random takes no bounds or two: random:LOW:HIGH")
        if dtype.kind == "f":
            low, high = (float(_number(b, dtype)) for b in bounds) if bounds else (-1.0, 1.0)
            return generator.uniform(low, high, count).astype(dtype)
        info = np.iinfo(dtype)
        low_int, high_int = (int(_number(b, dtype)) for b in bounds) if bounds else (int(info.min), int(info.max))
        if low_int > high_int:
            raise ArgError("random: LOW is above HIGH")
        return generator.integers(low_int, high_int, count, dtype=dtype, endpoint=True)
    return np.full(count, _number(fill, dtype), dtype)


_ARRAY: Final = re.compile(r"(?P<type>\w+)\[(?P<dims>\d+(?:x\d+)*)\](?:=(?P<fill>.+))?$")
_NUMBERS: Final = ("box", "dims", "strides", "steps")


def parse_map(text: str, generator: np.random.Generator) -> tuple[bytes, dict[int, NDArray[Any]]]:
    """A tensor map, ``ARRAY,NAME=VALUE,...``: ARRAY is FILE.npy or ``TYPE[ROWSxCOLUMNS]=FILL``, whose last extent is
    the innermost dimension. ``box=``, ``dims=``, ``strides=`` (bytes, without the innermost), ``steps=``: numbers with
    x between, innermost first; ``swizzle=`` 32, 64 or 128; ``type=`` the element type, if it is not the array's;
    ``nan``: elements out of bounds read as NaN. Raises :class:`ArgError`."""
    from stages.simulate.tensor_maps import MapError, tensor_map

    first, *options = text.split(",")
    match = _ARRAY.match(first)
    if match:
        dims = [int(x) for x in match["dims"].split("x")]
        count = int(np.prod(dims, dtype=object))
        if count > MAX_ELEMENTS:
            raise ArgError(f"more than {MAX_ELEMENTS} elements")
        array = _fill(_dtype(match["type"]), count, match["fill"] or "zero", generator).reshape(dims)
    else:
        array = parse_arg(f"buf:{first}", generator)
    given: dict[str, Any] = {}
    for option in options:
        name, _, value = option.partition("=")
        try:
            if name in _NUMBERS:
                given[name] = [int(x) for x in value.split("x")]
            elif name == "swizzle":
                given[name] = int(value)
            elif name == "type":
                given["type_"] = value
            elif option == "nan":
                given["nan"] = True
            else:
                raise ArgError(f"a tensor map has no '{option}'")
        except ArgError:
            raise
        except ValueError:
            raise ArgError(f"'{option}' of a tensor map is not a number") from None
    if "box" not in given:
        raise ArgError("a tensor map needs box=")
    try:
        return tensor_map(array, given.pop("box"), **given)
    except MapError as e:
        raise ArgError(f"not a valid tensor map: {e}") from None


def parse_arg(text: str, generator: np.random.Generator) -> Any:
    """A numpy array (buffer), a numpy scalar or the record of a tensor map. Raises :class:`ArgError`."""
    if text.startswith("map:"):
        return parse_map(text[4:], generator)
    if text.startswith("buf:") and text.endswith(".npy"):
        try:
            loaded = np.load(text[4:], allow_pickle=False)
        except (OSError, ValueError) as e:
            raise ArgError(f"can't read '{text[4:]}': {e}") from None
        if not isinstance(loaded, np.ndarray):
            raise ArgError(f"'{text[4:]}' does not hold one array")
        return np.ascontiguousarray(loaded)
    match = _BUFFER.match(text)
    if match:
        count = int(match["count"])
        if count > MAX_ELEMENTS:
            raise ArgError(f"more than {MAX_ELEMENTS} elements")
        return _fill(_dtype(match["type"]), count, match["fill"] or "zero", generator)
    match = _SCALAR.match(text)
    if match:
        return _number(match["value"], _dtype(match["type"]))
    raise ArgError(f"'{text}' is not an argument (buf:TYPE[COUNT]=FILL, buf:FILE.npy or TYPE=VALUE)")


def parse_dim(text: str) -> tuple[int, ...]:
    """``4`` or ``4,2,1`` (or with x). Raises :class:`ArgError`."""
    try:
        parts = tuple(int(p) for p in re.split("[,x]", text))
    except ValueError:
        raise ArgError(f"'{text}' is not an extent (N or N,N,N)") from None
    if not 1 <= len(parts) <= 3 or any(p < 1 for p in parts):
        raise ArgError(f"'{text}' is not an extent (N or N,N,N)")
    return parts
