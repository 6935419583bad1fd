"""Helpers of the parse tests."""

from __future__ import annotations

from pathlib import Path

from ir_format.ptx import PtxModule, PtxUnit
from ir_format.record import Record
from stages.parse import parse_text

ROOT = Path(__file__).resolve().parents[2]


def without_lines(x: object) -> object:
    """Zeroes line numbers in place, so that IR of two texts can be compared."""
    if isinstance(x, Record):
        for name in x.__slots__:
            if name in ("line", "end_line"):
                setattr(x, name, 0)
            else:
                without_lines(getattr(x, name))
    elif isinstance(x, list | tuple):
        for e in x:
            without_lines(e)
    return x


def parse_ok(text: str, arch: str = "sm_90") -> tuple[PtxModule, list[PtxUnit]]:
    """Parses text that must be right."""
    module, units, diagnostics = parse_text(text, "t.ptx", arch)
    assert module is not None, [d.render() for d in diagnostics]
    return module, units


def kernel(
    body: str, before: str = "", params: str = ".param .u64 p", version: str = "9.0", target: str = "sm_90"
) -> str:
    """A module with one kernel and some registers."""
    regs = ".reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<8>; .reg .f64 %fd<8>; .reg .b16 %h<8>;"
    return (
        f".version {version}\n.target {target}\n.address_size 64\n{before}\n.visible .entry "
        f"k({params})\n{{\n{regs}\n{body}\nret;\n}}\n"
    )


def corpus() -> list[Path]:
    """PTX files of the repository: nvcc's output for the kernels, and hand-written ones."""
    folder = ROOT / "tests" / "kernels"
    return sorted([*folder.glob("ptx/*/*.ptx"), *folder.glob("hand/*.ptx")])
