"""Everything that is known about a target, in one tree of plain values."""

from __future__ import annotations

import json
from dataclasses import asdict, is_dataclass
from typing import Any, Final

from ir_format import features, isa
from ir_format import target as targets
from ir_format.hazards import load
from ir_format.isa import facts, sregs
from ir_format.isa.rowlang import Row, SlotSpec

#: Version of the JSON's shape. It grows when a key changes its meaning or is removed; new keys do not change it.
FORMAT: Final = 1
_LIMITS: Final = (
    "PARAM_MAX", "SHARED_MAX", "CONST_MAX", "WARP", "B_COUNT", "BARRIER_COUNT", "SCOREBOARDS", "REG_RESERVED",
    "REG_FLOOR", "REG_CEILING", "ABI_CALL_FLOOR",
    "STACK_REG", "RETURN_REG", "ARG_REGS", "CALLEE_SAVED",
)  # fmt: skip


def as_json(name: str, indent: int = 1) -> str:
    """The facts of a target as JSON text. Raises CompileError for an unknown target."""
    return json.dumps(collect(name), indent=indent or None, sort_keys=True) + "\n"


def collect(name: str) -> dict[str, Any]:
    """The facts of a target (``sm_90a``)."""
    target = targets.target(name)
    sm = target.sm
    machine = isa.target(sm)
    return {
        "format": FORMAT,
        "target": {key: _plain(getattr(target, key)) for key in type(target).__annotations__},
        "limits": {key.lower(): _plain(getattr(targets, key)) for key in _LIMITS},
        "features": {f: what for f, (sms, what) in features.table().items() if features.covers(sms, sm)},
        "tags": dict(facts.TAGS),
        "classes": _classes(sm),
        "distances": _distances(sm),
        "special_registers": {"thread": sregs.THREAD, "steady": sregs.INVARIANT, "clock": sregs.CLOCKS},
        "instructions": {op: _instruction(op, sm, machine) for op in sorted(machine.mnemonics())},
    }


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if hasattr(type(value), "__annotations__") and not isinstance(value, tuple):
        return {key: _plain(getattr(value, key)) for key in type(value).__annotations__}
    return value


def _classes(sm: int) -> dict[str, Any]:
    boards, stalls = load.scoreboards(sm), load.stalls(sm)
    out: dict[str, Any] = {}
    for name, pipe in load.pipes().items():
        board, board_source = boards.get(name, ("", ""))
        stall, stall_source = stalls.get(name, ("1", ""))
        out[name] = {
            "pipe": pipe.name, "interval": pipe.interval, "latency": pipe.latency, "boards": board,
            "boards_source": board_source, "stall": int(stall),
            "stall_source": stall_source,
        }  # fmt: skip
    return out


def _distances(sm: int) -> dict[str, Any]:
    """kind (raw, waw, war) -> register file -> later role or group -> earlier column or class -> [cycles, source]."""
    out: dict[str, Any] = {}
    for (kind, file), matrix in load.matrices(sm).items():
        out.setdefault(kind, {})[file] = {
            later: {earlier: [c.cycles, c.source] for earlier, c in line.items()} for later, line in matrix.items()
        }
    return out


def _instruction(op: str, sm: int, machine: isa.Target) -> dict[str, Any]:
    f = facts.table()[op]
    return {
        "tags": sorted(f.tags),
        "read": sorted(f.read),
        "write": sorted(f.write),
        "effect": f.values.get("effect", ""),
        "ctl": f.values.get("ctl", ""),
        "classes": [{"mods": sorted(mods), "class": name} for mods, name in load.classes(sm).get(op, ())],
        "rows": [_row(row, machine) for row in machine.rows(op)],
    }


def _row(row: Row, machine: isa.Target) -> dict[str, Any]:
    return {
        "name": row.name,
        "opcode": row.opcode,
        "layout": row.layout,
        "dsts": [_slot(s) for s in row.dsts],
        "srcs": [_slot(s) for s in row.srcs],
        "mods": [[v for v in m.values if v is not None] for m in row.mods],
        "commutes": row.facts.get("comm", ""),
        "provenance": machine.provenance(row),
    }


def _slot(s: SlotSpec) -> dict[str, Any]:
    return {
        "name": s.name,
        "kind": s.kind,
        "width": s.width,
        "width_by": s.group,
        "default": s.default,
        "optional": bool(s.opt),
    }
