"""An open ptxas: PTX text in, a cubin that NVIDIA's driver loads out.

>>> cubin = orias.compile(Path("saxpy.ptx"), arch="sm_90", maxrregcount=64)
>>> cubin.kernels["saxpy"].registers
13
>>> print(orias.disassemble(cubin))

docs/python.md describes all that is here. Importing this module imports nothing else of the package: each name is
imported where it is first used. The stages and their model lie under it: `orias.stages`, `orias.ir_format`,
`orias.orchestrator`.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # `typing` takes as long to import as Python to start; type checkers take the name for true
if TYPE_CHECKING:
    from typing import Any, Final

    from orchestrator.diagnostics import Finding as Finding
    from orias._api import check as check
    from orias._api import compile as compile
    from orias._api import disassemble as disassemble
    from orias._api import options as options
    from orias._api import passes as passes
    from orias._api import run as run
    from orias._results import CompileError as CompileError
    from orias._results import Cubin as Cubin
    from orias._results import InternalError as InternalError
    from orias._results import Kernel as Kernel
    from orias._results import Occupancy as Occupancy
    from orias._results import OptionError as OptionError
    from orias._results import PassInfo as PassInfo
    from orias._results import Verdict as Verdict
    from stages.simulate.device import Device as Device
    from stages.simulate.device import Stats as Stats

__version__: Final = "0.1.0"

_HOMES: Final = {
    **dict.fromkeys(("check", "compile", "disassemble", "options", "passes", "run"), "_api"),
    **dict.fromkeys(
        ("CompileError", "Cubin", "InternalError", "Kernel", "Occupancy", "OptionError", "PassInfo", "Verdict"),
        "_results",
    ),
    "Finding": "orchestrator.diagnostics",
    "Device": "stages.simulate.device",
    "Stats": "stages.simulate.device",
}
__all__ = [
    "CompileError",
    "Cubin",
    "Device",
    "Finding",
    "InternalError",
    "Kernel",
    "Occupancy",
    "OptionError",
    "PassInfo",
    "Stats",
    "Verdict",
    "check",
    "compile",
    "disassemble",
    "options",
    "passes",
    "run",
]

if not os.path.isdir(os.path.join(os.path.dirname(__file__), "stages")):
    from orias import _checkout

    _checkout.lead()


def __getattr__(name: str) -> Any:
    """Import a name on first use."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'orias' has no attribute '{name}'")
    import importlib

    found = getattr(importlib.import_module(f"orias.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
