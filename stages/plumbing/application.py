"""The Typer application that all command lines are made from: the same help options, plain tracebacks, `--version`, and
completion for shells (`--show-completion`, `--install-completion`)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer


def _tell(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        from stages.plumbing.runner import VERSION

        typer.echo(f"{ctx.info_name} {VERSION}")
        raise typer.Exit(0)


_Version = Annotated[bool, typer.Option("--version", help="print the version and stop", callback=_tell, is_eager=True)]


class Application(typer.Typer):
    """A Typer application whose commands have `--version`."""

    def command(  # type: ignore[override]
        self, *args: Any, **options: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """As Typer's."""
        register = super().command(*args, **options)

        def decorate(work: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(work)
            def run(*given: Any, version: bool = False, **values: Any) -> Any:
                return work(*given, **values)

            own = inspect.signature(work, eval_str=True)
            last = inspect.Parameter("version", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_Version)
            run.__signature__ = own.replace(parameters=[*own.parameters.values(), last])  # type: ignore[attr-defined]
            register(run)
            return work

        return decorate


def new_app() -> Application:
    """An empty application with `-h` as well as `--help`."""
    return Application(pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]})
