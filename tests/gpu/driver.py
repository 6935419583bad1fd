"""The CUDA driver through ctypes: only what the kit needs, with every call checked."""

from __future__ import annotations

import ctypes
from typing import Any

#: Names under which the driver library is searched.
LIBRARIES = ("libcuda.so.1", "libcuda.so", "nvcuda.dll")

ATTRIBUTE_MAJOR, ATTRIBUTE_MINOR = 75, 76  # CUdevice_attribute
FUNCTION_ATTRIBUTES = {"shared": 1, "constant": 2, "local": 3, "registers": 4}  # CUfunction_attribute
FUNCTION_MAX_DYNAMIC_SHARED = 8

_P, _U, _I, _Z = ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_size_t
_PP = ctypes.POINTER(ctypes.c_void_p)

#: Argument types of every driver function in use (the C API of cuda.h, 64-bit).
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (_U,),
    "cuDriverGetVersion": (ctypes.POINTER(_I),),
    "cuDeviceGetCount": (ctypes.POINTER(_I),),
    "cuDeviceGet": (ctypes.POINTER(_I), _I),
    "cuDeviceGetName": (ctypes.c_char_p, _I, _I),
    "cuDeviceGetAttribute": (ctypes.POINTER(_I), _I, _I),
    "cuDevicePrimaryCtxRetain": (_PP, _I),
    "cuCtxSetCurrent": (_P,),
    "cuCtxSynchronize": (),
    "cuModuleLoadData": (_PP, ctypes.c_char_p),
    "cuModuleUnload": (_P,),
    "cuModuleGetFunction": (_PP, _P, ctypes.c_char_p),
    "cuModuleGetGlobal_v2": (ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(_Z), _P, ctypes.c_char_p),
    "cuFuncGetAttribute": (ctypes.POINTER(_I), _I, _P),
    "cuFuncSetAttribute": (_P, _I, _I),
    "cuMemAlloc_v2": (ctypes.POINTER(ctypes.c_uint64), _Z),
    "cuMemFree_v2": (ctypes.c_uint64,),
    "cuMemcpyHtoD_v2": (ctypes.c_uint64, _P, _Z),
    "cuMemcpyDtoH_v2": (_P, ctypes.c_uint64, _Z),
    "cuLaunchKernel": (_P, _U, _U, _U, _U, _U, _U, _U, _P, ctypes.POINTER(_P), _PP),
    "cuEventCreate": (_PP, _U),
    "cuEventRecord": (_P, _P),
    "cuEventSynchronize": (_P,),
    "cuEventElapsedTime": (ctypes.POINTER(ctypes.c_float), _P, _P),
    "cuEventDestroy_v2": (_P,),
    "cuGetErrorName": (_I, ctypes.POINTER(ctypes.c_char_p)),
}


class NoDriver(Exception):
    """There is no driver, or no device; the text says which."""


class CudaError(Exception):
    """A driver call failed; the text names the call and the error."""


class Module:
    """A loaded cubin."""

    def __init__(self, driver: Driver, image: bytes) -> None:
        self._driver = driver
        self._handle = _P()
        self._image = ctypes.create_string_buffer(image, len(image) + 1)
        driver.call("cuModuleLoadData", ctypes.byref(self._handle), self._image)

    def function(self, name: str) -> ctypes.c_void_p:
        """The handle of a kernel."""
        handle = _P()
        self._driver.call("cuModuleGetFunction", ctypes.byref(handle), self._handle, name.encode())
        return handle

    def symbol(self, name: str) -> tuple[int, int]:
        """Device address and size in bytes of a global or constant variable."""
        address, size = ctypes.c_uint64(), _Z()
        self._driver.call(
            "cuModuleGetGlobal_v2", ctypes.byref(address), ctypes.byref(size), self._handle, name.encode()
        )
        return address.value, size.value

    def unload(self) -> None:
        """Unload the module."""
        self._driver.call("cuModuleUnload", self._handle)


class Driver:
    """Device 0 with its primary context."""

    def __init__(self, library: str | None = None) -> None:
        self._library = _open(library)
        for name, types in SIGNATURES.items():
            try:
                function = getattr(self._library, name)
            except AttributeError:
                raise NoDriver(f"the driver library has no {name}") from None
            function.argtypes, function.restype = types, ctypes.c_int
        status = self._library.cuInit(0)
        if status:
            raise NoDriver(f"cuInit: {self._error(status)}")
        count = _I()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        if count.value == 0:
            raise NoDriver("no CUDA device")
        self._device = _I()
        self.call("cuDeviceGet", ctypes.byref(self._device), 0)
        context = _P()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self.call("cuCtxSetCurrent", context)

    def _error(self, status: int) -> str:
        text = ctypes.c_char_p()
        if self._library.cuGetErrorName(status, ctypes.byref(text)) or text.value is None:
            return f"error {status}"
        return text.value.decode()

    def call(self, name: str, *args: Any) -> None:
        """Call a driver function; raises :class:`CudaError` if it fails."""
        status = getattr(self._library, name)(*args)
        if status:
            raise CudaError(f"{name}: {self._error(status)}")

    def version(self) -> int:
        """The driver's CUDA version, 13000 for 13.0."""
        value = _I()
        self.call("cuDriverGetVersion", ctypes.byref(value))
        return value.value

    def device_name(self) -> str:
        """The product name of the device."""
        text = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", text, 128, self._device)
        return text.value.decode(errors="replace")

    def capability(self) -> int:
        """The compute capability, 90 for 9.0."""
        major, minor = _I(), _I()
        self.call("cuDeviceGetAttribute", ctypes.byref(major), ATTRIBUTE_MAJOR, self._device)
        self.call("cuDeviceGetAttribute", ctypes.byref(minor), ATTRIBUTE_MINOR, self._device)
        return major.value * 10 + minor.value

    def function_attributes(self, function: ctypes.c_void_p) -> dict[str, int]:
        """Static shared, constant and local bytes, and registers, as the driver read them from the cubin."""
        values: dict[str, int] = {}
        for name, code in FUNCTION_ATTRIBUTES.items():
            value = _I()
            self.call("cuFuncGetAttribute", ctypes.byref(value), code, function)
            values[name] = value.value
        return values

    def allocate(self, size: int) -> int:
        """Device memory of at least one byte."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), max(size, 1))
        return address.value

    def free(self, address: int) -> None:
        """Free device memory."""
        self.call("cuMemFree_v2", address)

    def write(self, address: int, data: bytes) -> None:
        """Copy to the device."""
        if data:
            self.call("cuMemcpyHtoD_v2", address, ctypes.create_string_buffer(data, len(data)), len(data))

    def read(self, address: int, size: int) -> bytes:
        """Copy from the device."""
        data = ctypes.create_string_buffer(max(size, 1))
        if size:
            self.call("cuMemcpyDtoH_v2", data, address, size)
        return data.raw[:size]

    def launch(
        self, function: ctypes.c_void_p, grid: list[int], block: list[int], shared: int, args: list[bytes]
    ) -> None:
        """Run a kernel to its end; ``args`` are the parameters' bytes in order."""
        if shared > 48 * 1024:
            self.call("cuFuncSetAttribute", function, FUNCTION_MAX_DYNAMIC_SHARED, shared)
        self._enqueue(function, grid, block, shared, args)
        self.call("cuCtxSynchronize")

    def _enqueue(
        self, function: ctypes.c_void_p, grid: list[int], block: list[int], shared: int, args: list[bytes]
    ) -> None:
        cells = [ctypes.create_string_buffer(data, len(data)) for data in args]
        pointers = (_P * max(len(cells), 1))(*(ctypes.addressof(cell) for cell in cells))
        self.call("cuLaunchKernel", function, *grid, *block, shared, None, pointers, None)

    def time(
        self, function: ctypes.c_void_p, grid: list[int], block: list[int], shared: int, args: list[bytes], repeat: int
    ) -> float:
        """Microseconds of the fastest of ``repeat`` launches, by events."""
        start, stop = _P(), _P()
        self.call("cuEventCreate", ctypes.byref(start), 0)
        self.call("cuEventCreate", ctypes.byref(stop), 0)
        best = float("inf")
        for _ in range(repeat):
            self.call("cuEventRecord", start, None)
            self._enqueue(function, grid, block, shared, args)
            self.call("cuEventRecord", stop, None)
            self.call("cuEventSynchronize", stop)
            elapsed = ctypes.c_float()
            self.call("cuEventElapsedTime", ctypes.byref(elapsed), start, stop)
            best = min(best, elapsed.value * 1000.0)
        for event in (start, stop):
            self.call("cuEventDestroy_v2", event)
        return best


def _open(library: str | None) -> ctypes.CDLL:
    for name in (library,) if library else LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise NoDriver(f"no NVIDIA driver: {library or LIBRARIES[0]} does not load")
