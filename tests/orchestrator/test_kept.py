"""The file that keeps modules and tables between starts: what it holds is right or is not used."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path

import pytest

from ir_format import kept

VALUE = {"a": (1, "x", frozenset(("p", "q"))), "b": (2, "y", frozenset())}


@pytest.fixture
def restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Begin as a new process does, with a file of this test alone and modules of a package `kept_probe`."""
    package = tmp_path / "kept_probe"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "one.py").write_text("def f():\n    return 1\n")
    (tmp_path / "ir_format").mkdir()
    (tmp_path / "ir_format" / "rows.py").write_text("ROWS = 1\n")
    finders = list(sys.meta_path)
    monkeypatch.setattr(kept, "_HOME", str(tmp_path))
    monkeypatch.setattr(kept, "_FOLDERS", ("kept_probe/",))
    monkeypatch.setattr(kept, "_LIBRARY", str(tmp_path / "library"))
    monkeypatch.setattr(kept, "_path", lambda: str(tmp_path / "kept.image"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.syspath_prepend(str(tmp_path))

    def again() -> None:
        sys.meta_path[:] = finders
        for name in [n for n in sys.modules if n.startswith("kept_probe")]:
            del sys.modules[name]
        invalidate_caches()
        kept._made.clear()
        kept._stamps.clear()
        if kept._image is not None:
            kept._image.close()
        monkeypatch.setattr(kept, "_image", None)
        kept.use()

    again()
    yield again
    again()
    assert kept._image is not None
    kept._image.close()
    sys.meta_path[:] = finders


def table() -> tuple[object, bool]:
    """The value of a kept table, and whether it was computed."""
    made = []

    def compute(n: int) -> dict[str, tuple[int, str, frozenset[str]]]:
        made.append(n)
        return VALUE

    compute.__module__ = "ir_format.rows"
    return kept.kept(compute)(90), bool(made)


def test_a_table_and_a_module_are_kept(restart: Callable[[], None], tmp_path: Path) -> None:
    assert table() == (VALUE, True)
    assert import_module("kept_probe.one").f() == 1
    kept.save()
    restart()
    assert table() == (VALUE, False)
    module = import_module("kept_probe.one")
    assert module.f() == 1 and type(module.__loader__) is kept._Loader
    assert module.__file__ == str(tmp_path / "kept_probe" / "one.py") == module.f.__code__.co_filename
    before = (tmp_path / "kept.image").stat().st_mtime_ns
    kept.save()  # nothing new
    assert (tmp_path / "kept.image").stat().st_mtime_ns == before


def test_changed_sources_count(restart: Callable[[], None], tmp_path: Path) -> None:
    table()
    import_module("kept_probe.one")
    kept.save()
    (tmp_path / "kept_probe" / "one.py").write_text("def f():\n    return 22\n")
    (tmp_path / "ir_format" / "rows.py").write_text("ROWS = 22\n")
    for computed in (True, False):
        restart()
        assert import_module("kept_probe.one").f() == 22
        assert table() == (VALUE, computed)
        kept.save()
    (tmp_path / "kept_probe" / "one.py").unlink()
    restart()
    with pytest.raises(ModuleNotFoundError):
        import_module("kept_probe.one")


def test_a_damaged_file_is_not_used(restart: Callable[[], None], tmp_path: Path) -> None:
    table()
    import_module("kept_probe.one")
    kept.save()
    path = tmp_path / "kept.image"
    whole = path.read_bytes()
    damaged = [whole[:n] for n in range(0, len(whole), 97)]
    damaged += [whole[:n] + bytes((whole[n] ^ 0x41,)) + whole[n + 1 :] for n in range(0, len(whole), 13)]
    for data in damaged:
        path.write_bytes(data)
        restart()
        assert table()[0] == VALUE
        assert import_module("kept_probe.one").f() == 1
    kept.save()
    restart()
    assert table() == (VALUE, False)


@pytest.mark.parametrize("how", ["open to others", "of another user", "a link", "of another Python"])
def test_a_planted_file_is_not_used(
    restart: Callable[[], None], tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table()
    kept.save()
    path = tmp_path / "kept.image"
    if how == "open to others":
        path.chmod(0o664)
    elif how == "of another user":
        if os.geteuid():
            pytest.skip("only root gives files away")
        os.chown(path, 12345, 12345)
    elif how == "a link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    else:
        monkeypatch.setattr(kept, "_IDENTITY", "another")
    restart()
    assert table() == (VALUE, True)


def test_where_nothing_can_be_written_nothing_is_kept(
    restart: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "_path", lambda: str(tmp_path / "absent" / "kept.image"))
    for _ in range(2):
        restart()
        assert table() == (VALUE, True)
        kept.save()
    monkeypatch.setattr(kept, "_path", lambda: str(tmp_path / "kept.image"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    kept.save()
    assert not (tmp_path / "kept.image").exists()
