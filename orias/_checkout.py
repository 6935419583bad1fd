"""In a checkout: `orias.stages`, `orias.ir_format` and `orias.orchestrator` are the folders next to this one.

A name such as `orias.stages.elf` leads to the module `stages.elf` itself, not to a second copy of it, so that classes
are the same under both names. An installation has the folders inside this package, and not this file.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as in `orias`
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType
    from typing import Any, Final

FOLDERS: Final = ("stages", "ir_format", "orchestrator")
_PREFIX: Final = "orias."


def _imported(name: str) -> ModuleType:
    __import__(name)  # `importlib` would import `warnings`
    return sys.modules[name]


class _Lead:
    """A finder and loader. It has no base class: those of `importlib.abc` would import thirty modules."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """The spec of a name after `orias.`; None where it is nothing of the checkout."""
        if not fullname.startswith(_PREFIX) or fullname.split(".")[1] not in FOLDERS:
            return None
        own = fullname.removeprefix(_PREFIX)
        try:
            module = _imported(own)
        except ModuleNotFoundError as e:
            if e.name == own:
                return None
            raise
        assert module.__spec__ is not None
        spec = type(module.__spec__)(fullname, self, is_package=hasattr(module, "__path__"))  # type: ignore[arg-type]
        spec.loader_state = module, module.__spec__
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module under its own name."""
        module: ModuleType = spec.loader_state[0]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is run again; the import system has put the spec of the second name into the module."""
        given = module.__spec__
        if given is not None and given.name.startswith(_PREFIX):
            module.__spec__ = given.loader_state[1]

    def get_code(self, fullname: str) -> CodeType | None:
        """What `python -m orias.stages.lower` runs."""
        spec = _imported(fullname.removeprefix(_PREFIX)).__spec__
        if spec is None or spec.loader is None:
            return None
        code: CodeType | None = spec.loader.get_code(spec.name)  # type: ignore[attr-defined]
        return code


def lead() -> None:
    """Let the import system know."""
    if not any(isinstance(f, _Lead) for f in sys.meta_path):
        # First: the finder of paths would find a second copy of what lies in a package's folder.
        sys.meta_path.insert(0, _Lead())
