"""Which rules are tried on which mnemonic, in order."""

from __future__ import annotations

from ir_format.isa import facts
from stages.optimize import bits, conditions, fold, fuse, known, wide
from stages.optimize.simplify import Rule

#: Accesses whose address may take an offset along.
_MEMORY = (*facts.loads(), *facts.stores(), *facts.atomics(), *facts.copies())

RULES: dict[str, tuple[Rule, ...]] = {
    "IADD3": (
        known.fold_carry,
        bits.bound_carry,
        bits.drop_carry,
        fold.fold_iadd3,
        fuse.fuse_iadd3,
        wide.fuse_wide,
        wide.fuse_shifted,
        wide.fuse_pair,
        wide.fuse_three,
    ),
    "LDC": (known.constant_index,),
    "IMAD": (fold.narrow_imad, fold.fold_imad, fold.scaled_choice, fuse.wide_constant),
    "LOP3": (fold.fold_lop3, bits.mask_of_known, fuse.fuse_lop3, bits.test_of_shifted),
    "SHF": (fold.fold_shift, fold.scaled_choice, bits.shift_of_known),
    "SEL": (fold.fold_sel, conditions.fold_choice),
    "PRMT": (fold.fold_prmt,),
    "ISETP": (fold.fold_isetp, bits.test_of_known, bits.zero_test, conditions.test_of_choice, conditions.test_of_bits),
    "BMSK": (bits.fold_mask,),
    "SGXT": (bits.fold_field,),
    **{op: (fuse.take_sign,) for op in ("FSETP", "FMUL", "FFMA", "FMNMX", "MUFU", "DADD", "DMUL", "DFMA", "DSETP")},
    "FADD": (fuse.take_sign, fuse.take_saturation),
    "PLOP3": (conditions.opposite, conditions.join_tests),
    **{op: (fuse.fold_address,) for op in _MEMORY},
}
