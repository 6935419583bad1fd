"""Forms that the simulator does not run: the essential instructions of our cubin and of ptxas's, compared as text.

A kernel has one PTX instruction; its registers are loaded before and stored after it. From both cubins the instructions
whose name matches a pattern are taken, in order, without register numbers. That shows the opcode, every modifier, kinds
and places of operands, offsets and immediates. Which value is in which register shows only through the order of the
loads, as far as :func:`sources` tells.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from tests import oracle

_TYPES = {"r": "b32", "rd": "b64", "h": "b16", "f": "f32", "d": "f64"}
_REG = re.compile(r"%(rd|r|p|h|f|d)\d+")
_HEAD = """.version 9.0
.target sm_{arch}
.address_size 64
.shared .align 16 .b8 sh[1024];
.global .align 16 .b8 gl[64];
.visible .entry k(.param .u64 p0, .param .u64 p1)
{{ .reg .b32 %r<200>; .reg .b64 %rd<40>; .reg .pred %p<9>; .reg .b16 %h<20>; .reg .f32 %f<20>; .reg .f64 %d<20>;
.reg .b128 %q<4>; .reg .b32 %tmp; .reg .b64 %in, %out;
ld.param.u64 %out, [p0]; ld.param.u64 %in, [p1];
"""


def kernel(line: str, arch: str) -> str:
    """A module whose kernel holds ``line`` (one or more instructions)."""
    seen = list(dict.fromkeys(m.group(0) for m in _REG.finditer(line)))
    text = [_HEAD.format(arch=arch)]
    for i, reg in enumerate(seen):
        kind = _REG.fullmatch(reg)
        assert kind is not None
        if kind[1] == "p":
            text.append(f"ld.volatile.global.u32 %tmp, [%in+{16 * i}]; setp.ne.s32 {reg}, %tmp, 0;")
        else:
            text.append(f"ld.volatile.global.{_TYPES[kind[1]]} {reg}, [%in+{16 * i}];")
    text.append(line)
    for i, reg in enumerate(seen):
        kind = _REG.fullmatch(reg)
        assert kind is not None
        if kind[1] == "p":
            text.append(f"selp.u32 %tmp, 1, 0, {reg}; st.volatile.global.u32 [%out+{16 * i}], %tmp;")
        else:
            text.append(f"st.volatile.global.{_TYPES[kind[1]]} [%out+{16 * i}], {reg};")
    return "\n".join([*text, "ret; }\n"])


def _listing(image: bytes) -> list[str]:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as f:
        Path(f.name).write_bytes(image)
        text = oracle.nvdisasm(f.name, "-c")
    return [re.sub(r"\s+", " ", m.group(1)).strip() for m in re.finditer(r"/\*[0-9a-f]{4,}\*/\s+(.*?);", text)]


def _plain(text: str) -> str:
    """Without the guard, and without the numbers of registers."""
    text = re.sub(r"^@!?U?P\w+ ", "", text)
    return re.sub(r"\b(U?[RP])(\d+)\b", r"\1", text).replace(" ;", "").strip()


def chosen(image: bytes, pattern: str) -> list[str]:
    """The instructions of a cubin whose name matches ``pattern``, without register numbers."""
    found = [_plain(t) for t in _listing(image)]
    return [t for t in found if re.match(pattern, t)]


def both(line: str, arch: str, pattern: str) -> tuple[list[str], list[str]]:
    """(ours, ptxas's) instructions for a line of PTX."""
    from orchestrator.api import compile_ptx

    text = kernel(line, arch)
    theirs = oracle.compile_ptx(text, arch, "-O1")
    assert not isinstance(theirs, oracle.ToolError), theirs.stderr
    ours = compile_ptx(text, f"sm_{arch}")
    return chosen(ours, pattern), chosen(theirs.read_bytes(), pattern)
