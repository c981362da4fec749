"""Adds to Typer: options that may stand alone or have a value, and help texts with examples."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar

import typer
from typer.core import TyperCommand

from pipegen.cli.allowing import with_allowances

if TYPE_CHECKING:
    from collections.abc import Callable

_KEEP_LINES = "\b"
"""Stands before a paragraph that is not to be filled."""


def help_text(command: Callable[..., None]) -> str:
    """The docstring of a command as its help; paragraphs with indented lines, such as examples, keep their lines."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(f"{_KEEP_LINES}\n{p}" if "\n  " in f"\n{p}" else p for p in paragraphs)


class OptionalValues(TyperCommand):
    """A command whose options in `alone` get a value of their own when they stand alone.

    Click would take the next argument, so that `--data flowers.pipegen.yaml` would lose the file.
    """

    alone: ClassVar[dict[str, str]] = {"--data": "sample", "--update": ""}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write the values out, then parse as ever."""
        end = args.index("--") if "--" in args else len(args)
        valued = {name for option in self.get_params(ctx) if not getattr(option, "is_flag", False) for name in option.opts}
        written = [f"{arg}={self.alone[arg]}" if arg in self.alone and arg in valued else arg for arg in args[:end]]
        return super().parse_args(ctx, written + args[end:])


def as_app(command: Callable[..., None], name: str, cls: type[TyperCommand] = OptionalValues, **settings: Any) -> typer.Typer:
    """A command as an app of its own; `settings` are those of Click's context."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name, cls=cls, help=help_text(command), context_settings=settings)(with_allowances(command))
    return app
