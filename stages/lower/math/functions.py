"""Library functions: PTX text from :mod:`stages.lower.math.library`, through our own parser."""

from __future__ import annotations

from functools import lru_cache

from ir_format.diag import CompileError
from ir_format.ptx import PtxFunction


@lru_cache(maxsize=64)
def load_helper(name: str, target: str) -> PtxFunction:
    """The PTX function ``name``; RuntimeError if the library has none or its text does not parse (a fault of ours)."""
    from stages.lower.math.library import FUNCTIONS, module_text
    from stages.parse import parse_text

    if name not in FUNCTIONS:
        raise RuntimeError(f"no library function '{name}'")
    _, units, diags = parse_text(
        module_text(name), f"{name}.ptx", target.replace("sm_", "compute_"), separate=True
    )  # read alone: several results are fine here
    for unit in units:
        for f in unit.functions:
            if f.name == name:
                return f
    raise CompileError(f"library function '{name}' not supported by orias: {diags[0].message if diags else 'no text'}")
