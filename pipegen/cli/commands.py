"""The group of commands. Each command is imported when it runs, so that `validate` starts fast."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from pipegen.cli.common import as_app, help_text
from pipegen.cli.failures import tell
from pipegen.terminal import say, visible

MODULES = {
    "init": "init.command",
    "validate": "validate",
    "test": "test",
    "show": "show",
    "diff": "explain",
    "explain": "explain",
    "preview": "export",
    "export": "export",
    "fit": "prepare",
    "prepare": "prepare",
    "eject": "export",
    "lock": "lock",
    "serve-export": "export",
    "bench": "bench",
    "profile": "profile",
    "tune": "profile",
    "migrate": "migrate",
    "steps": "migrate",
    "ops": "lookup",
    "report": "test",
    "rule": "lookup",
    "schema": "lookup",
    "version": "lookup",
    "doctor": "doctor",
    "monitor": "monitor",
    "help": "lookup",
    "cache": "cache",
    "service": "service",
}
"""The module of each command, in the order of `pipegen --help`. It has a function of the command's name (`help_` for a name of Python's),
or a Typer `app` if the command needs settings."""

_USAGE = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
"""Base class of Typer's usage errors; its module depends on the version of Typer."""


_LONGEST = 1000  # characters of a summary: enough that none is shortened


def app_of(name: str) -> typer.Typer:
    """Imports a command."""
    word = name.replace("-", "_")
    module = import_module(f"pipegen.cli.{MODULES[name]}")
    if hasattr(module, "app"):
        app: typer.Typer = module.app
        return app
    return as_app(getattr(module, word, None) or getattr(module, f"{word}_"), name)


class Commands(TyperGroup):
    """The group of commands, which turns exceptions into messages and exit codes."""

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        self.commands: dict[str, Any] = dict.fromkeys(MODULES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Imports the command."""
        if cmd_name not in self.commands:
            return None
        command = get_command(app_of(cmd_name))
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Lists the commands with their full summaries, wrapped."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(_LONGEST)) for name, command in commands if command is not None])

    def invoke(self, ctx: Any) -> Any:
        """Runs the command."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except (typer.Exit, typer.Abort):
            raise
        except (Exception, KeyboardInterrupt) as error:
            if isinstance(error, _USAGE):
                vars(error)["message"] = visible(str(error))
                raise
            raise typer.Exit(tell(error)) from None
        return result


def _pipegen(
    ctx: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """A compiler from a YAML spec to an optimised tf.data pipeline.

    First steps with a folder of images:

      pipegen init photos/                          write a spec for it
      pipegen preview photos.pipegen.yaml           see what the model will see
      pipegen validate photos.pipegen.yaml --data   check the spec and the files
      pipegen explain photos.pipegen.yaml           read the compiled plan
    """
    if show_version:
        from pipegen.release import __version__

        say(f"pipegen {__version__}")
    elif ctx.invoked_subcommand is None:
        say(ctx.get_help())


app = typer.Typer(
    cls=Commands,
    rich_markup_mode=None,  # plain help: importing rich would cost more than validating a spec
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
app.callback(invoke_without_command=True, help=help_text(_pipegen))(_pipegen)
