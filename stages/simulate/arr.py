"""The array type that the simulator passes around."""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

Arr: TypeAlias = NDArray[Any]
