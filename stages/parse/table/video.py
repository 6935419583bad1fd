"""Scalar and SIMD video instructions.  Column meaning: see `stages.parse.table`."""

_SCALAR = """
{op} | u32,s32.u32,s32.u32,s32 | T sat? | d, sel, sel | v2.0 t20 | selectors
{op} | u32,s32.u32,s32.u32,s32 | T sat? add/min/max? | d, sel, sel, s | v2.0 t20 | selectors
{op} | u32,s32.u32,s32.u32,s32 | T sat? | dsel, sel, sel, s | v2.0 t20 | selectors
"""
_SHIFT = """
{op} | u32,s32.u32,s32.u32 | T sat? clamp/wrap | d, sel, sel | v2.0 t20 | selectors
{op} | u32,s32.u32,s32.u32 | T sat? clamp/wrap add/min/max? | d, sel, sel, s | v2.0 t20 | selectors
{op} | u32,s32.u32,s32.u32 | T sat? clamp/wrap | dsel, sel, sel, s | v2.0 t20 | selectors
"""
_SIMD = """
{op} | u32,s32.u32,s32.u32,s32 | T sat? | dmask, msel, msel, msel | v3.0 t30 | selectors
{op} | u32,s32.u32,s32.u32,s32 | T add | dmask, msel, msel, msel | v3.0 t30 | selectors
"""

ROWS = (
    "".join([_SCALAR.format(op=op) for op in ("vadd", "vsub", "vabsdiff", "vmin", "vmax")])
    + "".join([_SHIFT.format(op=op) for op in ("vshl", "vshr")])
    + "".join(
        [_SIMD.format(op=op + n) for n in ("2", "4") for op in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax")]
    )
    + """
vmad | u32,s32.u32,s32.u32,s32 | T po? sat? shr7/shr15? | d, nsel, nsel, nsel | v2.0 t20 | selectors
vset | u32,s32.u32,s32 | T eq/ne/lt/le/gt/ge | d:u32, sel, sel | v2.0 t20 | selectors
vset | u32,s32.u32,s32 | T eq/ne/lt/le/gt/ge add/min/max? | d:u32, sel, sel, s:u32 | v2.0 t20 | selectors
vset | u32,s32.u32,s32 | T eq/ne/lt/le/gt/ge | dsel, sel, sel, s:u32 | v2.0 t20 | selectors
vset2 | u32,s32.u32,s32 | T eq/ne/lt/le/gt/ge add? | dmask!, msel, msel, msel! | v3.0 t30 | selectors
vset4 | u32,s32.u32,s32 | T eq/ne/lt/le/gt/ge add? | dmask!, msel, msel, msel! | v3.0 t30 | selectors
"""
)
