"""Build hook: `ORIAS_COMPILE=1 pip install .` compiles the hot modules with mypyc (the value is the C compiler's -O
level, and after a colon folders of :data:`HOT` may stand, to compile those alone: `1:ir_format,stages/encode`).

Without the variable nothing is compiled and the package is pure Python. The Python sources stay the one source: what is
compiled is generated from them, and makes the same bytes (tests/chain/test_compiled.py).
"""

from __future__ import annotations

import os
import tomllib

from setuptools import setup

#: Modules worth compiling, found by profile. Classes that others subclass, and what runs once, stay interpreted.
HOT = {
    "ir_format": "framing model flow wire unit_copy rename",
    "ir_format/isa": "machine plan codec special tmem vectors",
    "ir_format/hazards": "model classes",
    "stages/parse": "scan operands units",
    "stages/analysis": "abi dependences divergence register_limits",
    "stages/lower": "legalize spaces cleanup",
    "stages/lower/convergence": "divergence converge",
    "stages/optimize": "analyses values",
    "stages/optimize/ssa": "construct destruct webs",
    "stages/optimize/scalar": "combine constant_bank constant_pool dce fold fuse known_bits predicates rules wide_sums",
    "stages/optimize/control": "if_conversion simplify_cfg",
    "stages/optimize/memory": "atomics guarded_vectors redundancy vectorize_loads",
    "stages/optimize/loops": "induction licm natural rotate share_pointers unroll",
    "stages/optimize/late": "list_schedule places pressure rematerialize return_register sink uniform_promotion",
    "stages/regalloc": "allocate assign coalescing divergent_ranges finish live_ranges moves operand_slots"
    " parallel_copies register_counts spill warpgroup",
    "stages/schedule": "control list_scheduling reuse schedule_unit scoreboards zero_pairs",
    "stages/encode": "encode",
}


def _dependencies() -> list[str]:
    """What the package needs at run time: mypy reads the types of its decorators from there."""
    with open("pyproject.toml", "rb") as f:
        listed: list[str] = tomllib.load(f)["project"]["dependencies"]
    return listed


def main() -> None:
    """Set up, with or without extension modules."""
    level, _, some = os.environ.get("ORIAS_COMPILE", "").partition(":")
    if not level:
        setup()
        return
    try:
        from mypyc.build import mypycify
    except ImportError:  # the first question of an isolated build: what it needs
        setup(setup_requires=["mypy>=1.11", "msgpack-types", *_dependencies()])
        return
    folders = some.split(",") if some else list(HOT)
    paths = [f"{folder}/{name}.py" for folder in folders for name in HOT[folder].split()]
    options = (
        ["--ignore-missing-imports"]
        if os.path.exists("pyproject.toml")
        else ["--ignore-missing-imports", "--config-file="]
    )
    setup(ext_modules=mypycify([*options, *paths], opt_level=level, debug_level="0", multi_file=True))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
