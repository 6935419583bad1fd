"""The table of docs/isa.md: which mnemonics have rows on which SM, and how many forms.

    python -m tests.isa.mnemonics [--check]

Rewrites the part of docs/isa.md between its markers; ``--check`` only says whether it is current.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ir_format import isa
from ir_format.isa import evidence
from ir_format.isa.machine import Target
from ir_format.isa.rowlang import SMS

DOC = Path(__file__).resolve().parents[2] / "docs" / "isa.md"
BEGIN, END = "<!-- mnemonics: made by tests/isa/mnemonics.py -->", "<!-- end of mnemonics -->"


def cell(target: Target, op: str) -> str:
    """Number of forms of a mnemonic, with ° if ptxas was never seen to write one on this SM."""
    rows = target.rows(op)
    if not rows:
        return ""
    return f"{len(target.forms(op))}{'' if any(target.provenance(r) == 'ptxas' for r in rows) else '°'}"


def table() -> str:
    """Markdown: a line per mnemonic, the number of encoding forms on each SM."""
    targets = [isa.target(sm) for sm in SMS]
    ops = sorted({op for t in targets for op in t.mnemonics()})
    lines = ["| mnemonic | " + " | ".join(map(str, SMS)) + " |", "|---" * (len(SMS) + 1) + "|"]
    lines += [f"| {op} | " + " | ".join(cell(t, op) for t in targets) + " |" for op in ops]
    lines += ["| **all** | " + " | ".join(str(len(t.mnemonics())) for t in targets) + " |"]
    lines += [
        "",
        f"{len(unseen())} of {len(evidence.keys())} rows rest on nvdisasm alone: "
        + ", ".join(f"`{k}`" for k in unseen())
        + ".",
    ]
    return "\n".join(lines)


def unseen() -> list[str]:
    """Short names of the rows that ptxas was never seen to write."""
    return [key for key in evidence.keys().values() if not evidence.seen().get(key)]


def updated(text: str) -> str:
    """The document with a fresh table."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    if not rest:
        head = (
            text.rstrip()
            + "\n\n## Mnemonics by SM\n\nNumber of encoding forms; an empty cell: the SM has none, or it has no row "
            "yet and is refused by name.\n\n"
        )
        tail = "\n"
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


def main() -> int:
    """Rewrite or check."""
    old = DOC.read_text()
    new = updated(old)
    if "--check" in sys.argv:
        return int(old != new)
    DOC.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
