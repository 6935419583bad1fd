"""Records behave like slotted dataclasses."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import typing
from dataclasses import dataclass, field

import pytest

from ir_format.record import NamedTuple, Record, fields, fresh, replace


class Point(Record):
    """Two numbers and a list."""

    x: int
    y: int = 5
    names: list[str] = fresh(default_factory=list)


@dataclass(slots=True)
class Twin:
    """The same as a dataclass."""

    x: int
    y: int = 5
    names: list[str] = field(default_factory=list)


class Key(Record, frozen=True):
    """Hashable."""

    a: str
    b: int = 1


class Nothing(Record):
    """No fields."""


@pytest.mark.parametrize(
    "args", [((1,), {}), ((1, 2), {}), ((), {"y": 3, "x": 4}), ((1, 2, ["a"]), {}), ((1,), {"names": ["b"]})]
)
def test_as_a_dataclass(args: tuple[tuple[object, ...], dict[str, object]]) -> None:
    ours, theirs = Point(*args[0], **args[1]), Twin(*args[0], **args[1])  # type: ignore[arg-type]
    assert (ours.x, ours.y, ours.names) == (theirs.x, theirs.y, theirs.names)
    assert repr(ours)[len("Point") :] == repr(theirs)[len("Twin") :]


@pytest.mark.parametrize(("args", "keys"), [((), {}), ((1, 2, [], 4), {}), ((1,), {"z": 2}), ((1,), {"x": 2})])
def test_wrong_arguments_are_refused_by_name(args: tuple[object, ...], keys: dict[str, object]) -> None:
    for cls in (Point, Twin):
        with pytest.raises(TypeError, match=rf"{cls.__name__}\.__init__\(\)"):
            cls(*args, **keys)  # type: ignore[arg-type]


def test_fresh_defaults_are_not_shared_and_values_decide() -> None:
    a, b = Point(1), Point(1)
    assert a == b and a.names is not b.names
    b.names.append("x")
    assert a != b and a != Twin(1)
    assert Nothing() == Nothing() and repr(Nothing()) == "Nothing()"


def test_slots_hash_and_replace() -> None:
    assert fields(Point) == ("x", "y", "names") == Point.__slots__
    with pytest.raises(AttributeError):
        Point(1).other = 3  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        hash(Point(1))
    assert {Key("a"): 1}[Key("a", 1)] == 1
    assert replace(Key("a"), b=7) == Key("a", 7)


def test_the_chain_imports_neither_dataclasses_nor_inspect() -> None:
    """They take a fifth of the time of a small kernel."""
    code = (
        "import sys, orchestrator.preload as d; d.import_stages('sm_90'); import stages.parse; "
        "print(sorted({'dataclasses', 'inspect'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class Place(NamedTuple):
    """A named tuple of ours."""

    file: str
    line: int = 3
    sub: int = 0

    def twice(self) -> int:
        """A method."""
        return 2 * self.line


class TypingPlace(typing.NamedTuple):
    """The same by typing."""

    file: str
    line: int = 3
    sub: int = 0


@pytest.mark.parametrize(("args", "named"), [(("a",), {}), (("a", 1), {"sub": 2}), ((), {"file": "x"})])
def test_named_tuples_are_made_compared_and_printed_as_those_of_typing(
    args: tuple[object, ...], named: dict[str, object]
) -> None:
    ours, theirs = Place(*args, **named), TypingPlace(*args, **named)  # type: ignore[arg-type]
    assert ours == theirs and hash(ours) == hash(theirs) and isinstance(ours, tuple) and type(ours) is Place
    assert repr(ours) == repr(theirs).replace("TypingPlace", "Place")
    assert (ours.file, ours.line, ours.sub) == tuple(theirs)
    assert ours._replace(sub=9) == theirs._replace(sub=9) and type(ours._replace(sub=9)) is Place
    assert ours._asdict() == theirs._asdict() and ours.twice() == 2 * theirs.line
    assert copy.copy(ours) == ours and type(copy.deepcopy(ours)) is Place
    assert pickle.loads(pickle.dumps(ours)) == ours


@pytest.mark.parametrize("wrong", [(), ("a", 1, 2, 3)])
def test_named_tuples_refuse_wrong_numbers_of_fields_by_name(wrong: tuple[object, ...]) -> None:
    with pytest.raises(TypeError, match=r"Place\.__new__\(\) .* positional argument"):
        Place(*wrong)  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        Place("a")._replace(colour=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Place("a").line = 4  # type: ignore[misc]


def test_a_match_statement_destructures_a_named_tuple() -> None:
    match Place("a", 5):
        case Place(file, line):
            assert (file, line) == ("a", 5)
