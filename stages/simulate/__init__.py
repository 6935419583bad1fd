"""The simulator: executes a cubin on the CPU, warp by warp, with numpy (see docs/simulator.md).

>>> from stages.simulate import Device
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stages.simulate.device import Device, Stats
    from stages.simulate.elfread import ImageError
    from stages.simulate.machine import SimError

__all__ = ["Device", "ImageError", "SimError", "Stats"]
_HOMES = {"Device": "device", "Stats": "device", "ImageError": "elfread", "SimError": "machine"}


def __getattr__(name: str) -> Any:
    """Import on first use: numpy is slow to load."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(name)
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
