"""The table of combining rules by mnemonic, in order, and the pass that tries them."""

from __future__ import annotations

from ir_format.isa import facts
from ir_format.model import Function
from stages.optimize.analyses import Analyses
from stages.optimize.evaluate.table import EVALUATORS
from stages.optimize.scalar import constant_bank, fold, fuse, halves, known_bits, min_max, predicates, wide_sums
from stages.optimize.scalar.combine import Combiner, Rule

#: Accesses whose address may take an offset along.
_MEMORY = (*facts.loads(), *facts.stores(), *facts.atomics(), *facts.copies())

#: Instructions on pairs of halves.
_PACKED = sorted(facts.with_class("half", "hcmp"))

_RULES: dict[str, tuple[Rule, ...]] = {
    "IADD3": (
        constant_bank.known_carry,
        known_bits.bound_carry,
        known_bits.drop_carry,
        fold.fold_iadd3,
        fuse.funnel_shift,
        fuse.fuse_iadd3,
        min_max.add_condition,
        wide_sums.fuse_wide,
        wide_sums.fuse_shifted,
        wide_sums.fuse_pair,
        wide_sums.fuse_three,
    ),
    "LDC": (constant_bank.constant_index,),
    "IMAD": (fold.narrow_imad, fold.fold_imad, fold.scaled_choice, fuse.wide_constant),
    "LOP3": (fold.fold_lop3, known_bits.mask_of_known, fuse.funnel_shift, fuse.fuse_lop3, known_bits.test_of_shifted),
    "SHF": (fold.fold_shift, fold.scaled_choice, known_bits.shift_of_known),
    "SEL": (fold.fold_sel, predicates.fold_choice, min_max.choose_min_max),
    "PRMT": (fold.fold_prmt, known_bits.bytes_of_known, halves.join_halves),
    "VIMNMX": (min_max.not_negative, min_max.fuse_min_max),
    "ISETP": (
        known_bits.test_of_known,
        known_bits.zero_test,
        predicates.test_of_choice,
        predicates.test_of_bits,
    ),
    "SGXT": (known_bits.fold_field,),
    **{op: (fuse.take_sign,) for op in ("FSETP", "FMUL", "FFMA", "MUFU", "DADD", "DMUL", "DFMA", "DSETP")},
    "FADD": (fuse.take_sign, fuse.take_saturation),
    "FMNMX": (fuse.take_sign, fuse.saturate),
    **{op: (halves.select_half,) for op in _PACKED},
    "PLOP3": (predicates.opposite, predicates.join_tests),
    **{op: (fuse.fold_address,) for op in _MEMORY},
}

#: By mnemonic; constants are folded first.
RULES: dict[str, tuple[Rule, ...]] = {
    **_RULES,
    **{op: (fold.fold_constants, *_RULES.get(op, ())) for op in EVALUATORS if op not in ("COPY", "MOV")},
}


def combine(f: Function, a: Analyses) -> bool:
    """The pass; whether it changed anything."""
    before = a.ctx.rewrites
    Combiner(f, a.ctx, RULES, a.values).run()
    return a.ctx.rewrites > before
