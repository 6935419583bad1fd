"""What every start of orias would make again: the code of its modules, and tables that follow from its own text.

CPython finds, reads and checks a .pyc file for each module, and a compile of one small kernel imports 250. Here they
(and those of the standard library) are records of one file, which is open while the process lives; a module is
unmarshalled when it is imported. :func:`kept` does the same for values that are computed from the rows and tables of
the program alone.

The file lies in `__pycache__` beside the .pyc files and is as good as they are: a record counts only if the sources
that it was made from still have the sizes and times of then, and if its digest is right. The file counts only if it
belongs to the owner of the program, to root or to the user, and nobody else may write it. Whatever is missing or
wrong is made as ever, and :func:`save` adds it at the end of a command; where it can't be written, nothing is kept.

Only command lines use it (:func:`use`): a program that imports orias has its imports to itself.
"""

from __future__ import annotations

import marshal
import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER, SourceFileLoader, cache_from_source
from _imp import source_hash
from collections.abc import Callable, Sequence

from ir_format.typed import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

if TYPE_CHECKING:
    from types import CodeType, ModuleType

P = ParamSpec("P")
T = TypeVar("T")

_PREFIX: Final = __name__.removesuffix("ir_format.kept")  # "orias." in an installation
_HOME: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FOLDERS: Final = ("ir_format/", "stages/", "orchestrator/")
_LIBRARY: Final = os.path.dirname(os.__file__) + "/"
_IDENTITY: Final = repr((_HOME, _LIBRARY, sys.version, sys.flags.optimize))
_HEAD: Final = b"orias kept 3 " + MAGIC_NUMBER
_KEY: Final = int.from_bytes(MAGIC_NUMBER, "little")
_SIZES: Final = 16  # bytes after _HEAD: length and digest of the index

Stamp = tuple[int, int]  # size and time of a source
#: (offset, size, digest, stamp of what it was made from, source of a module / '' for a table)
Entry = tuple[int, int, bytes, Any, str]


def _stamp(path: str) -> Stamp:
    s = os.stat(path)
    return s.st_size, s.st_mtime_ns


def _path() -> str:
    """Where the file is, or would be; one for each Python that runs the program."""
    own = source_hash(_KEY, _IDENTITY.encode("utf-8", "surrogateescape")).hex()
    return cache_from_source(os.path.join(_HOME, "ir_format", "kept.py")).removesuffix("pyc") + f"{own}.image"


class _Image:
    """The open file, or none: then the index is empty."""

    def __init__(self) -> None:
        self.index: dict[str, Entry] = {}
        self.stale = False  # a module was asked for whose record doesn't hold
        self.fd = -1
        self.base = 0
        try:
            self.fd = os.open(_path(), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            if self.fd > 2:  # else it has the number of a standard stream that is closed
                self._read()
        except (OSError, ValueError, EOFError, TypeError, NotImplementedError):
            self.index = {}
        if not self.index:
            self.close()

    def _read(self) -> None:
        s = os.fstat(self.fd)
        if s.st_mode & 0o022 or s.st_uid not in (0, os.geteuid(), os.stat(__file__).st_uid):
            return
        head = os.pread(self.fd, len(_HEAD) + _SIZES, 0)
        if not head.startswith(_HEAD) or len(head) != len(_HEAD) + _SIZES:
            return
        sizes = head[len(_HEAD) :]
        size = int.from_bytes(sizes[:8], "little")
        self.base = len(head) + size
        body = os.pread(self.fd, size, len(head)) if self.base <= s.st_size else b""
        if source_hash(_KEY, body) == sizes[8:]:
            identity, index = marshal.loads(body)
            self.index = index if identity == _IDENTITY else {}

    def data(self, entry: Entry | None, stamp: object) -> bytes | None:
        """A record as it was written; None if there is none, or its sources have changed."""
        if entry is None or entry[3] != stamp:
            return None
        try:
            data = os.pread(self.fd, entry[1], self.base + entry[0])
        except OSError:
            return None
        return data if source_hash(_KEY, data) == entry[2] else None

    def close(self) -> None:
        """Close the file."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class _Loader(SourceFileLoader):
    """Loads a module from its record. Its source is what tracebacks and `inspect` show."""

    def __init__(self, name: str, path: str, data: bytes) -> None:
        super().__init__(name, path)
        self.record = data

    def get_code(self, fullname: str) -> CodeType | None:
        """The code of the module."""
        if self.record:
            code: CodeType = marshal.loads(self.record)
            self.record = b""
            return code
        return super().get_code(fullname)


class _Finder:
    """Finds the modules that have a record."""

    def __init__(self, image: _Image) -> None:
        self.image = image

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module; None where the import system has to look for itself."""
        entry = self.image.index.get(fullname)
        source = entry[4] if entry is not None else ""
        if not source:
            return None
        try:
            data = self.image.data(entry, _stamp(source))
        except OSError:
            return None
        if data is None:
            self.image.stale = True
            return None
        folder, _, file = source.rpartition("/")
        spec = ModuleSpec(fullname, _Loader(fullname, source, data), origin=source)
        spec.has_location = True
        if not sys.pycache_prefix:  # asked for anyway, and found more slowly by the import system
            spec.cached = f"{folder}/__pycache__/{file[:-2]}{sys.implementation.cache_tag}.pyc"
        if file == "__init__.py":
            spec.submodule_search_locations = [folder]
        return spec


_image: _Image | None = None
_made: dict[str, tuple[str, bytes]] = {}  # tables that were computed: package they belong to, value
_stamps: dict[str, bytes] = {}  # package -> digest of the stamps of its files


def use() -> None:
    """Take modules and tables from the file from now on."""
    global _image
    if _image is None:
        _image = _Image()
        sys.meta_path.insert(0, _Finder(_image))


def _files_of(package: str) -> list[str]:
    """The sources that tables of a package follow from: its own, and those of `ir_format`."""
    out: list[str] = []
    work = [os.path.join(_HOME, *p.split("/")) for p in sorted({"ir_format", package})]
    for folder in work:  # grows while it is read
        with os.scandir(folder) as found:
            for one in found:
                if one.name.endswith(".py"):
                    out.append(one.path)
                elif "." not in one.name and not one.name.startswith("__"):
                    work.append(one.path)
    return sorted(out)


def _digest(files: list[str]) -> bytes:
    """A digest of the stamps of files."""
    return source_hash(_KEY, repr([(path, _stamp(path)) for path in files]).encode("utf-8", "surrogateescape"))


def _state(package: str, image: _Image) -> bytes:
    """The digest of the sources of a package, whose names are a record of their own."""
    found = _stamps.get(package)
    if found is None:
        name = f"files {package}"
        entry = image.index.get(name)
        try:
            data = image.data(entry, b"")
            files: list[str] = marshal.loads(data) if data is not None else _files_of(package)
            found = _digest(files)
        except OSError:
            found = b""
        _stamps[package] = found
    return found


def kept(make: Callable[P, T]) -> Callable[P, T]:
    """As functools.cache, for a function whose value follows from its arguments and the text of the program alone. Its
    package may import itself and `ir_format`. The value is made of what marshal writes: strings, numbers, tuples,
    lists, dicts, sets, None."""
    known: dict[Any, T] = {}
    own = make.__module__.removeprefix(_PREFIX).split(".")
    package = own[0] if own[0] == "ir_format" else "/".join(own[:2])

    def got(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return known[args]
        except KeyError:
            pass
        image = _image
        name = f"{make.__module__}.{make.__qualname__}{args}"
        data = None if image is None else image.data(image.index.get(name), _state(package, image))
        if data is not None:
            value: T = marshal.loads(data)
        else:
            value = make(*args, **kwargs)
            if image is not None:
                _made[name] = package, marshal.dumps(value)  # type: ignore[arg-type]
        known[args] = value
        return value

    return got


def _own_modules() -> dict[str, SourceFileLoader]:
    """The modules of this process that did not come from the file, ours and Python's own, with their loaders."""
    tops = tuple([os.path.join(_HOME, folder) for folder in (*_FOLDERS, _LIBRARY)])
    out: dict[str, SourceFileLoader] = {}
    for name, module in list(sys.modules.items()):
        loader = getattr(module, "__loader__", None)
        if type(loader) is SourceFileLoader and loader.name == name and loader.path.startswith(tops):
            if "/site-" not in loader.path:
                out[name] = loader
    return out


def _new_modules(index: dict[str, Entry]) -> dict[str, tuple[bytes, Any, str]]:
    """The modules of this process that an image does not have: code, stamp, source."""
    out: dict[str, tuple[bytes, Any, str]] = {}
    for name, loader in _own_modules().items():
        try:
            stamp = _stamp(loader.path)
            if name in index and index[name][3] == stamp:
                continue
            code = loader.get_code(name)
            if code is not None and _stamp(loader.path) == stamp:
                out[name] = marshal.dumps(code), stamp, loader.path
        except (OSError, SyntaxError):
            continue
    return out


def _states(packages: set[str]) -> dict[str, bytes]:
    """The digests of the sources of packages, as they are now."""
    return {p: _digest(_files_of(p)) for p in packages}


def save() -> None:
    """Add what this process had to make to the file. Nothing happens where it can't be written."""
    if _image is None or sys.dont_write_bytecode:
        return
    if not (_made or _image.stale or any(name not in _image.index for name in _own_modules())):
        return
    known = _Image()  # another process may have added to it meanwhile
    try:
        new = _new_modules(known.index)
        if _made:
            states = _states({package for package, _ in _made.values()})
            for name, (package, value) in _made.items():
                if name not in known.index or known.index[name][3] != states[package]:
                    new[name] = value, states[package], ""
                    new[f"files {package}"] = marshal.dumps(_files_of(package)), b"", ""
        if new:
            _write(known, new)
    except Exception:  # the work is done: it must not fail for what the next start would have gained
        pass
    finally:
        known.close()


def _write(known: _Image, new: dict[str, tuple[bytes, Any, str]]) -> None:
    """Write new records, with those of ``known`` that still hold, as one file that replaces it."""
    states = {*_states({name[6:] for name in known.index if name.startswith("files ")}).values(), b""}
    for name, entry in known.index.items():
        data = known.data(entry, entry[3]) if name not in new and _holds(entry, states) else None
        if data is not None:
            new[name] = data, entry[3], entry[4]
    index: dict[str, Entry] = {}
    at = 0
    for name, (data, stamp, source) in new.items():
        index[name] = at, len(data), source_hash(_KEY, data), stamp, source
        at += len(data)
    body = marshal.dumps((_IDENTITY, index))
    head = _HEAD + len(body).to_bytes(8, "little") + source_hash(_KEY, body)
    path = _path()
    part = f"{path}.{os.getpid()}"
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        with open(fd, "wb") as out:
            out.write(b"".join([head, body, *[data for data, _, _ in new.values()]]))
        os.replace(part, path)
    except OSError:
        os.unlink(part)
        raise


def _holds(entry: Entry, states: set[bytes]) -> bool:
    """Whether the sources of a record are still what they were."""
    if not entry[4]:
        return entry[3] in states
    try:
        return bool(_stamp(entry[4]) == entry[3])
    except OSError:
        return False
