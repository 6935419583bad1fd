"""Completion of `orias`'s command line by shells: scripts made from the table of options. (The other programs have
Typer's.)"""

from __future__ import annotations

import shlex

from ir_format.target import targets
from ir_format.typed import Final
from orchestrator.options import GROUPS, OPTIONS, Option

SHELLS: Final = ("bash", "zsh", "fish")


def _spellings(o: Option) -> list[str]:
    return [f"--{o.long}"] + ([f"-{o.short}"] if o.short and o not in GROUPS[-1][1] else [])


def _values(o: Option) -> list[str]:
    if o.long == "gpu-name":
        return sorted(targets())
    return ["true", "false"] if o.kind == "bool" else list(o.values)


def _bash() -> str:
    cases = []
    for o in OPTIONS:
        if o.kind not in ("flag", "maybe"):
            words = " ".join(_values(o))
            reply = f'compgen -W "{words}"' if words else "compgen -f"
            cases.append(f'    {"|".join(_spellings(o))}) COMPREPLY=($({reply} -- "$cur")); return ;;')
    names = " ".join([s for o in OPTIONS for s in _spellings(o)])
    return "\n".join(
        [
            "_orias() {",
            "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}",
            '  case "$prev" in',
            *cases,
            "  esac",
            '  case "$cur" in',
            f'    -*) COMPREPLY=($(compgen -W "{names}" -- "$cur")) ;;',
            '    *) COMPREPLY=($(compgen -f -X \'!*.ptx\' -- "$cur") $(compgen -d -- "$cur")) ;;',
            "  esac",
            "}",
            "complete -o filenames -F _orias orias\n",
        ]
    )


def _fish() -> str:
    lines = []
    for o in OPTIONS:
        words = ["complete", "-c", "orias", "-l", o.long]
        words += ["-o", o.short] if len(_spellings(o)) > 1 else []
        words += ["-r"] if o.kind not in ("flag", "maybe") else []
        words += ["-a", " ".join(_values(o))] if _values(o) else []
        lines.append(shlex.join([*words, "-d", o.help]))
    return "\n".join(lines) + "\n"


def script(shell: str) -> str:
    """What the shell has to read: `eval "$(orias --show-completion bash)"`."""
    if shell == "fish":
        return _fish()
    return ("autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else "") + _bash()
