"""Which rules are tried on which mnemonic, in order."""

from __future__ import annotations

from stages.optimize import conditions, fold, fuse, known
from stages.optimize.simplify import Rule

_MEMORY = ["LDG", "STG", "LD", "ST", "LDS", "STS", "LDL", "STL", "ATOMG", "ATOMS", "ATOM", "RED", "REDG", "LDSM", "STSM", "LDGSTS"]

RULES: dict[str, tuple[Rule, ...]] = {
    "IADD3": (known.fold_carry, fold.fold_iadd3, fuse.fuse_iadd3, fuse.fuse_wide),
    "LDC": (known.constant_index,),
    "IMAD": (fold.fold_imad, fuse.wide_constant),
    "LOP3": (fold.fold_lop3, fuse.fuse_lop3),
    "SHF": (fold.fold_shift,),
    "SEL": (fold.fold_sel, conditions.fold_choice),
    "PRMT": (fold.fold_prmt,),
    "ISETP": (fold.fold_isetp, conditions.test_of_choice, conditions.test_of_bits),
    "PLOP3": (conditions.join_tests,),
    **{op: (fuse.fold_address,) for op in _MEMORY},
}
