"""The table of mnemonics in docs/isa.md is current, and every row has a provenance."""

from __future__ import annotations

from ir_format import isa
from ir_format.isa import evidence
from ir_format.isa.rowlang import SMS, sm_set
from tests.isa.mnemonics import DOC, updated


def test_table_is_current() -> None:
    text = DOC.read_text()
    assert text == updated(text), "run python -m tests.isa.mnemonics"


def test_evidence_names_rows() -> None:
    """The table of words seen in ptxas's output names only existing rows, on SMs that have them."""
    names = set(evidence.keys().values())
    assert set(evidence.seen()) <= names, "run python -m tests.isa.evidence on the corpus"
    rows = {
        sm: {
            evidence.keys()[isa.target(sm).written(r)]
            for op in isa.target(sm).mnemonics()
            for r in isa.target(sm).rows(op)
        }
        for sm in SMS
    }
    for key, sms in evidence.seen().items():
        assert all(key in rows[sm] for sm in sms), key
    assert len(evidence.seen()) > 0.8 * len(names)


def test_provenance() -> None:
    target = isa.target(90)
    assert target.provenance(target.rows("IADD3")[0]) == "ptxas"
    assert evidence.describe("no such row", 90) == "nvdisasm"
    assert evidence.ranges(sm_set("75-89,100,120+")) == "75-89,100,120-121"
