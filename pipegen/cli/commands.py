"""The commands, put together. Each imports what it needs when it runs: `validate` must start in a blink."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from pipegen.cli import cache, service
from pipegen.cli.allowing import with_allowances
from pipegen.cli.bench import bench
from pipegen.cli.diff import diff
from pipegen.cli.doctor import doctor
from pipegen.cli.eject import eject
from pipegen.cli.explain import explain
from pipegen.cli.export import export
from pipegen.cli.failures import tell
from pipegen.cli.fit import fit
from pipegen.cli.help import help_
from pipegen.cli.init.command import init
from pipegen.cli.lock import lock
from pipegen.cli.migrate import migrate
from pipegen.cli.monitor import monitor
from pipegen.cli.ops import ops
from pipegen.cli.options import OptionalValues, help_text
from pipegen.cli.prepare import prepare
from pipegen.cli.preview import preview
from pipegen.cli.profile import profile
from pipegen.cli.report import report
from pipegen.cli.rule import rule
from pipegen.cli.schema import schema
from pipegen.cli.serve_export import serve_export
from pipegen.cli.show import show
from pipegen.cli.test import test
from pipegen.cli.tune import tune
from pipegen.cli.validate import validate
from pipegen.cli.version import version
from pipegen.terminal import say, visible

_USAGE = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
"""The base of what Typer says about bad usage; where it lives depends on the version of Typer."""


_LONGEST = 1000
"""Characters of a sentence that is never cut short."""


class Commands(TyperGroup):
    """The group of commands, which turns what they raise into messages and exit codes."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands with whole sentences, on several lines where they are long."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(_LONGEST)) for name, command in commands if command is not None])

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
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
      pipegen preview photos.pipegen.yaml           look at what the model will see
      pipegen validate photos.pipegen.yaml --data   check the spec and the files
      pipegen explain photos.pipegen.yaml           read the compiled plan
    """
    ctx.obj = app  # what `schema --write` describes
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
for command in (
    init,
    validate,
    test,
    show,
    diff,
    explain,
    preview,
    export,
    fit,
    prepare,
    eject,
    lock,
    serve_export,
    bench,
    profile,
    tune,
    migrate,
    ops,
    report,
    rule,
    schema,
    version,
):
    app.command(cls=OptionalValues, help=help_text(command))(with_allowances(command))
app.command(cls=OptionalValues, help=help_text(doctor))(with_allowances(doctor))
# What stands behind the command to watch is that command's.
app.command(cls=TyperCommand, help=help_text(monitor), context_settings={"allow_interspersed_args": False})(monitor)
app.command("help", cls=OptionalValues, help=help_text(help_))(help_)
app.add_typer(cache.app, name="cache")
app.add_typer(service.app, name="service")
