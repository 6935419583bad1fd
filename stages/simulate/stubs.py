"""Functions that the driver provides to device code: vprintf, malloc, free, __assertfail, and (sm_120) multicast
copies."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stages.simulate.build import Context
from stages.simulate.image import GLOBAL_BASE, Image
from stages.simulate.machine import Bundle, Fault, Machine
from stages.simulate.memory import LOCAL_HI, SHARED_HI, Memory
from stages.simulate.ops_bulk import multicast

Arr = NDArray[Any]
#: Argument registers of the calling convention (measured): pairs from R4.
_ARG0: Final = 4
ARENA: Final = 1 << 20
MAX_TEXT: Final = 1 << 20
_CONVERSION = re.compile(rb"%([-+ #0]*)(\d+|\*)?(?:\.(\d+|\*))?(hh|h|ll|l|z|j|t)?([diouxXeEfFgGaAcsp%])")


class Stubs:
    """The driver functions that a module refers to; their output and heap."""

    def __init__(self, image: Image) -> None:
        known: dict[str, Callable[[Machine, Bundle, Arr], None]] = {
            "vprintf": self._vprintf, "malloc": self._malloc, "free": self._free, "__assertfail": self._assertfail,
            "__cuda_syscall_cp_async_bulk_multicast": self._multicast,
        }  # fmt: skip
        self.table = {address: known.get(name, _unknown(name)) for address, name in image.stubs.items()}
        self.names = set(image.stubs.values())
        self.context: Context | None = None
        self.parts: list[str] = []
        self.size = 0
        self.used = 0

    @property
    def memory(self) -> Memory:
        """The memories of the launch, which sets its context before it runs."""
        assert self.context is not None
        memory: Memory = self.context.memory
        return memory

    def arenas(self) -> list[tuple[str, int]]:
        """The global allocations that the functions need."""
        return [("device heap", ARENA)] if "malloc" in self.names else []

    def text(self) -> str:
        """Everything printed."""
        return "".join(self.parts)

    def _bytes(self, address: int, size: int, lane: int, bundle: Bundle) -> bytes:
        """Bytes at a generic address of one lane."""
        memory = self.memory
        upper, low = address >> 32, address & 0xFFFFFFFF
        if upper in (SHARED_HI, LOCAL_HI):
            window = memory.shared if upper == SHARED_HI else memory.local
            if low + size > window.size:
                raise Fault("driver function given an address outside its window", lane)
            at = int(bundle.view.wide(window.lane_key)[lane]) + low
            return window.data[at : at + size].tobytes()
        at = address - GLOBAL_BASE
        if at < 0 or at + size > len(memory.heap.data):
            raise Fault(f"driver function given a bad address {address:#x}", lane)
        return memory.heap.data[at : at + size].tobytes()

    def _string(self, address: int, lane: int, bundle: Bundle) -> bytes:
        out = bytearray()
        while len(out) < 4096:
            byte = self._bytes(address + len(out), 1, lane, bundle)
            if byte == b"\0":
                break
            out += byte
        return bytes(out)

    def _vprintf(self, machine: Machine, bundle: Bundle, mask: Arr) -> None:
        u = bundle.view.U
        for lane in np.flatnonzero(mask).tolist():
            form = int(u[_ARG0][lane]) | int(u[_ARG0 + 1][lane]) << 32
            values = int(u[_ARG0 + 2][lane]) | int(u[_ARG0 + 3][lane]) << 32
            text = self._format(self._string(form, lane, bundle), values, lane, bundle)
            if self.size + len(text) > MAX_TEXT:
                raise Fault(f"more than {MAX_TEXT} bytes printed", lane)
            self.size += len(text)
            self.parts.append(text)
            u[_ARG0][lane] = len(_CONVERSION.findall(self._string(form, lane, bundle)))

    def _format(self, form: bytes, values: int, lane: int, bundle: Bundle) -> str:
        at = values

        def take(size: int) -> bytes:
            nonlocal at
            at = -(-at // size) * size
            got = self._bytes(at, size, lane, bundle)
            at += size
            return got

        def convert(match: re.Match[bytes]) -> bytes:
            flags, width, precision, length, kind = match.groups()
            if kind == b"%":
                return b"%"
            spec = b"%" + flags
            if width is not None:
                spec += str(struct.unpack("<i", take(4))[0]).encode() if width == b"*" else width
            if precision is not None:
                spec += b"." + (str(struct.unpack("<i", take(4))[0]).encode() if precision == b"*" else precision)
            letter = kind.decode()
            if letter in "diouxXc":
                wide = length in (b"l", b"ll", b"z", b"j", b"t")
                number = struct.unpack("<q" if wide else "<i", take(8 if wide else 4))[0]
                if letter in "ouxX":
                    number &= (1 << (64 if wide else 32)) - 1
                if letter == "c":
                    return bytes([number & 0xFF])
                return str((spec + (b"d" if letter in "iu" else kind)).decode() % number).encode()
            if letter in "eEfFgG":
                return str((spec + kind).decode() % struct.unpack("<d", take(8))[0]).encode()
            if letter in "aA":
                return float.hex(struct.unpack("<d", take(8))[0]).encode()
            pointer = struct.unpack("<Q", take(8))[0]
            if letter == "s":
                return (
                    (spec + b"s").decode() % self._string(pointer, lane, bundle).decode("utf-8", "replace")
                ).encode()
            return hex(pointer).encode()

        return _CONVERSION.sub(convert, form).decode("utf-8", "replace")

    def _malloc(self, machine: Machine, bundle: Bundle, mask: Arr) -> None:
        memory = self.memory
        u = bundle.view.U
        slot = memory.heap.names.index("device heap")
        for lane in np.flatnonzero(mask):
            size = int(u[_ARG0][lane]) | int(u[_ARG0 + 1][lane]) << 32
            need = -(-max(size, 1) // 16) * 16
            address = memory.heap.starts[slot] + self.used if self.used + need <= ARENA else 0
            if address:
                self.used += need
            u[_ARG0][lane], u[_ARG0 + 1][lane] = address & 0xFFFFFFFF, address >> 32

    def _free(self, machine: Machine, bundle: Bundle, mask: Arr) -> None:
        """Memory is not reused within a launch."""

    def _assertfail(self, machine: Machine, bundle: Bundle, mask: Arr) -> None:
        lane = int(mask.argmax())
        u = bundle.view.U
        message = self._string(int(u[_ARG0][lane]) | int(u[_ARG0 + 1][lane]) << 32, lane, bundle)
        raise Fault(f"assertion failed: {message.decode('utf-8', 'replace')}", lane)

    def _multicast(self, machine: Machine, bundle: Bundle, mask: Arr) -> None:
        """R4 destination, R6 source, R8 bytes, R9 blocks of the cluster, R10 barrier object, addresses in pairs
        (measured); R12, a cache policy, is not read."""
        assert self.context is not None
        u = bundle.view.U
        for lane in np.flatnonzero(mask).tolist():
            to, low, high, size, blocks, barrier = (int(u[_ARG0 + k][lane]) for k in (0, 2, 3, 4, 5, 6))
            if size:
                multicast(self.context, bundle.view, lane, to, low | high << 32, size, blocks & 0xFFFF, barrier)


def _unknown(name: str) -> Callable[[Machine, Bundle, Arr], None]:
    def run(machine: Machine, bundle: Bundle, mask: Arr) -> None:
        raise Fault(f"driver function '{name}' is not supported by the simulator")

    return run
