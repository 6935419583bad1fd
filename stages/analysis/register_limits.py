"""The number of registers that a unit may use: directives, launch bounds (which ask for an occupancy) and -maxrregcount
(rules measured on 11 targets, 768 of 768 cases)."""

from __future__ import annotations

from collections.abc import Mapping

from ir_format.model import AttrValue, Unit
from ir_format.target import ARCHMAX, ARCHMIN, REG_CEILING, REG_FLOOR, REG_RESERVED, SM_RESIDENCY
from ir_format.typed import Final

REGISTERS_PER_SM: Final = 65536
# P7 and UP7 are PT and UPT. UR comes from the target record.
# ptxas never uses UR0..UR3 (measured: no occurrence in 212 cubins of sm_80, 90, 100 and 120). Their purpose is unknown,
# so we do not use them either.
FIRST_UR: Final = 4
# ptxas never puts operands of warpgroup products below this register. With fewer registers it fails (measured:
# -maxrregcount 24 and 26).
FIRST_PRODUCT_REG: Final = 24
FILE_SIZES: Final = {"P": 7, "UP": 7, "B": 16}


def _number(value: AttrValue | None) -> int:
    if isinstance(value, tuple):
        product = 1
        for item in value:
            product *= max(1, item) if isinstance(item, int) else 1
        return product
    return value if isinstance(value, int) else 0


def launch_bound_limit(sm: int, threads: int, min_ctas: int) -> int:
    """The largest register count at which the occupancy is ``min_ctas`` blocks of ``threads`` threads on one SM; 255 if
    the bounds say nothing."""
    if threads <= 0:
        return REG_CEILING
    warps = -(-threads // 32)
    max_warps, max_ctas = SM_RESIDENCY.get(sm, (64, 32))
    ctas = max(1, min_ctas)
    if ctas > max_ctas or warps * ctas > max_warps:
        ctas = 1
    total = (warps * ctas + 3) // 4 * 4
    return min(REG_CEILING, REGISTERS_PER_SM // (32 * total) // 8 * 8)


def register_option(value: AttrValue | None) -> int:
    """A -maxrregcount value: number, archmin or archmax; 0 when absent or out of range."""
    if value == "archmin":
        return ARCHMIN
    if value == "archmax":
        return ARCHMAX
    if isinstance(value, str):
        value = int(value) if value.isdigit() else 0
    if not isinstance(value, int) or value <= 0 or value > REG_CEILING:
        return 0
    return max(value, REG_FLOOR)


def _threads(unit: Unit) -> int:
    """The most threads of a block. Both bounds are there where -override-directive-values adds the option's."""
    return max(_number(unit.attrs.get("reqntid")), _number(unit.attrs.get("maxntid")))


def bounded_registers(unit: Unit, sm: int) -> int:
    """What a unit's threads and blocks for each SM leave to a thread."""
    return launch_bound_limit(sm, _threads(unit), _number(unit.attrs.get("minnctapersm")))


def register_limit(unit: Unit, sm: int, options: Mapping[str, AttrValue]) -> int:
    """The largest REGCOUNT that the unit may report (24..255). .maxnreg takes precedence over launch bounds, and launch
    bounds over -maxrregcount, also if only .maxntid or .reqntid is given. With -override-directive-values the option
    takes precedence (measured on sm_75, 90 and 120: 144 of 144 combinations)."""
    option = register_option(options.get("maxrregcount"))
    if unit.kind != "entry":
        return register_option(options.get("device-function-maxrregcount")) or option or REG_CEILING
    explicit = _number(unit.attrs.get("maxnreg"))
    explicit = max(explicit, REG_FLOOR) if 0 < explicit <= REG_CEILING else 0
    threads = _threads(unit)
    min_ctas = _number(unit.attrs.get("minnctapersm"))
    bounds = launch_bound_limit(sm, threads, min_ctas)
    if option and options.get("override-directive-values"):
        return min(option, bounds)
    if explicit:
        return explicit
    if threads:
        return max(bounds, REG_FLOOR)
    return option or REG_CEILING


def last_register(limit: int) -> int:
    """Highest R index allowed under a REGCOUNT of ``limit``."""
    return limit - 1 - REG_RESERVED
