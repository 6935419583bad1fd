"""docs/isa.md says which mnemonics exist where: the table is current."""

from __future__ import annotations

from tests.isa.mnemonics import DOC, updated


def test_table_is_current() -> None:
    text = DOC.read_text()
    assert text == updated(text), "run python -m tests.isa.mnemonics"
