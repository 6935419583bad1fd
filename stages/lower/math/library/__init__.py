"""The math library: device functions in PTX text for operations without a hardware instruction.

One file holds one ``.func`` whose arguments and results are registers, or one per rounding mode (``@round@``,
``@ftz@``, ``@name@`` are filled in; lines with ``@nearest@`` and ``@directed@`` belong only to ``rn`` or to the other
modes). The text goes through the project's parser and lowering, like any device function, and becomes a
:class:`ir_format.model.Function` of kind ``helper`` in the unit that calls it. The functions use integer instructions,
branches, f64 arithmetic and approximate seeds, and call nothing. docs/math.md has the proof of each.
"""

from __future__ import annotations

import os
from functools import cache

from ir_format.typed import Final

# PTX name -> file stem. The order is the order of the helpers in a unit that uses several.
FUNCTIONS: Final[dict[str, str]] = {
    **{
        f"__orias_{op}_f32_{r}{z}": f"{op}_f32"
        for op in ("div", "rcp", "sqrt")
        for r in ("rn", "rz", "rm", "rp")
        for z in ("", "_ftz")
    },
    **{f"__orias_{op}_f64_{r}": f"{op}_f64" for op in ("div", "rcp", "sqrt") for r in ("rn", "rz", "rm", "rp")},
    **{f"__orias_{op}_{k}64": f"divmod_{k}64" for k in "us" for op in ("divmod", "div", "rem")},
    "__orias_fns": "fns",
}

# The lowest version and target that have every instruction of the library.
HEADER: Final = ".version 7.0\n.target sm_75\n.address_size 64\n"


@cache
def function_text(name: str) -> str:
    """The text of one ``.func``; KeyError for an unknown name."""
    stem = FUNCTIONS[name]
    with open(os.path.join(os.path.dirname(__file__), f"{stem}.ptx"), encoding="ascii") as f:
        text = f.read()
    if stem.startswith("divmod"):
        op = name.split("_")[3]
        kept, local = {"div": ("q", "r"), "rem": ("r", "q"), "divmod": ("qr", "")}[op]
        text = (
            text.replace("@op@", op)
            .replace("@results@", ", ".join(f".reg .b64 {x}" for x in kept))
            .replace("@locals@", "".join(f", {x}" for x in local))
        )
        return text.replace("@quotient@", "" if "q" in kept else "//").replace(
            "@remainder@", "" if "r" in kept else "//"
        )
    variant = name.removeprefix(f"__orias_{stem}").removeprefix("_")
    rounding, _, flush = variant.partition("_")
    text = text.replace("@nearest@", "" if rounding == "rn" else "//").replace(
        "@directed@", "//" if rounding == "rn" else ""
    )
    return text.replace("@name@", variant).replace("@round@", rounding).replace("@ftz@", f".{flush}" if flush else "")


def module_text(name: str) -> str:
    """A whole PTX module that holds the one function."""
    return HEADER + function_text(name)
