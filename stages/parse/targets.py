"""PTX versions, targets, and which target runs on which architecture.

All tables measured on ptxas 13.0 and 13.5 (the matrices of version x target and target x architecture).
"""

from __future__ import annotations

from ir_format import features
from ir_format.late_pattern import late_pattern
from ir_format.record import NamedTuple
from ir_format.release import DEFAULT, PTX_VERSIONS, RELEASES, Release
from ir_format.target import targets
from ir_format.typed import Final
from stages.parse.table import Gate

VERSIONS: Final = frozenset([f"{major}.{minor}" for major, minor in PTX_VERSIONS])

# Target number -> minimum PTX version times ten: old targets, for which no code is made, and names of before.
_OLD: Final[dict[int, int]] = {
    10: 10, 11: 10, 12: 12, 13: 12, 20: 20, 21: 20, 30: 30, 32: 40, 35: 31, 37: 41, 50: 40, 52: 41, 53: 42,
    60: 50, 61: 50, 62: 50, 70: 51, 72: 61, 82: 62, 101: 86,
}  # fmt: skip
_MINIMUM: Final[dict[int, int]] = _OLD | {
    t.sm: 10 * t.min_ptx[0] + t.min_ptx[1] for t in targets().values() if not t.suffix
}
_SUFFIXED: Final[dict[str, int]] = {"101a": 86, "101f": 88} | {
    f"{t.sm}{t.suffix}": 10 * t.min_ptx[0] + t.min_ptx[1] for t in targets().values() if t.suffix
}
_FAMILY: Final[dict[int, int]] = {t.sm: t.family for t in targets().values() if t.suffix == "f"}
_ALIAS: Final = {101: 110}
_NAME: Final = late_pattern(r"(?:sm|compute|lto)_([0-9]+)([af]?)")
OPTIONS: Final = frozenset(("texmode_unified", "texmode_independent", "debug", "map_f64_to_f32"))


def is_newer(version: str, release: Release) -> bool:
    """True for a version beyond the last one of a release."""
    major, dot, minor = version.partition(".")
    if not (dot and major.isdigit() and minor.isdigit() and len(version) < 9):
        return False
    return (int(major), int(minor)) > release.newest


class Sm(NamedTuple):
    """A parsed target or architecture name."""

    number: int
    suffix: str


def parse_name(name: str) -> Sm | None:
    """Splits `sm_90a`; None if it is no target that PTX knows."""
    m = _NAME.fullmatch(name)
    if m is None:
        return None
    number, suffix = int(m.group(1)) if len(m.group(1)) < 5 else 0, m.group(2)
    if number not in _MINIMUM or (suffix and f"{number}{suffix}" not in _SUFFIXED):
        return None
    return Sm(number, suffix)


def minimum_version(sm: Sm) -> int:
    """The first PTX version (times ten) that knows a target."""
    return _SUFFIXED[f"{sm.number}{sm.suffix}"] if sm.suffix else _MINIMUM[sm.number]


def arch_error(target: str, sm: Sm, arch: str) -> str | None:
    """Why PTX for a target cannot be compiled for an architecture; None if it can."""
    goal = parse_name(arch)
    if goal is None:
        return None
    number = _ALIAS.get(sm.number, sm.number)
    have = _ALIAS.get(goal.number, goal.number)
    if sm.suffix == "a":
        if number == have and goal.suffix == "a":
            return None
        if number > have:
            return "SM version specified by .target is higher than default SM version assumed"
        if number == have:
            return f"PTX with .target '{target}' cannot be compiled for architecture '{arch}'"
        return f"Program with .target '{target}' cannot be compiled to future architecture"
    if sm.number > goal.number and number > have:
        return "SM version specified by .target is higher than default SM version assumed"
    if sm.suffix == "f" and _FAMILY.get(number) != _FAMILY.get(have):
        return f"Program with .target '{target}' cannot be compiled to different SM-family architecture"
    return None


class Target:
    """The version and target of a module: answers whether a gate lets something pass."""

    __slots__ = ("independent", "name", "number", "real", "release", "suffix", "version")

    def __init__(
        self,
        name: str,
        sm: Sm,
        version: int,
        real: bool,
        independent: bool = False,
        release: Release = RELEASES[DEFAULT],
    ) -> None:
        self.name = name
        self.release = release
        self.real = real  # code is made, not only checked (`-arch sm_...`, not `compute_...`)
        self.number = _ALIAS.get(sm.number, sm.number)
        self.suffix = sm.suffix
        self.version = version
        self.independent = independent  # textures and samplers are chosen apart (`texmode_independent`)

    def since(self, release: str) -> bool:
        """True if ptxas of this release or a later one is asked for."""
        return self.release.newest >= RELEASES[release].newest

    def can(self, feature: str) -> bool:
        """True if the target has a feature of :mod:`ir_format.features`."""
        return features.has(self.number, feature)

    def has(self, only: tuple[tuple[int, str], ...]) -> bool:
        """True if the target is one of those listed."""
        for number, kind in only:
            number = _ALIAS.get(number, number)
            if kind == "g":
                if self.number >= number:
                    return True
            elif kind == "a":
                if self.number == number and self.suffix == "a":
                    return True
            elif self.suffix and self.number >= number and _FAMILY.get(self.number) == _FAMILY.get(number):
                return True
        return False

    def knows(self, gate: Gate) -> bool:
        """False for a form of old times that this version or target has no more."""
        return not (
            (gate.version_below and self.version >= gate.version_below)
            or (gate.target_below and self.number >= gate.target_below)
        )

    def before(self, version: int) -> bool:
        """True if the module's version is older.  What asks for 6.0 is there from 5.1 on (measured)."""
        return self.version < version and (version != 60 or self.version < 51)

    def closed(self, gate: Gate) -> bool:
        """True if the gate lets nothing pass here."""
        if gate.version_below and self.version >= gate.version_below:
            return False
        return self.number < gate.target or self.before(gate.version) or bool(gate.only and not self.has(gate.only))

    def refuses(self, gate: Gate, kind: str, quoted: str) -> list[str]:
        """The messages of a gate that is closed, about a `kind` (Feature, Instruction, Modifier) with a name."""
        out: list[str] = []
        for what in gate.order:
            if what in "tT" and self.number < gate.target:
                word = "Instruction" if what == "T" else kind
                out.append(f"{word} '{quoted}' requires .target sm_{gate.target} or higher")
            elif what == "v" and self.before(gate.version):
                out.append(
                    f"{kind} '{quoted}' requires PTX ISA .version {gate.version // 10}.{gate.version % 10} or later"
                )
            elif what == "o" and gate.only and not self.has(gate.only):
                out.append(f"{kind} '{quoted}' not supported on .target '{self.name}'")
        return out
