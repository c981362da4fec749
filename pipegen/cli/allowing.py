"""The options by which every command that loads a spec takes what its caller allows: `--allow-write` and `--allow-env`."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipegen.spec.allowed import Allowed, granting

if TYPE_CHECKING:
    from collections.abc import Callable

AllowWrite = Annotated[
    list[str],
    typer.Option(
        "--allow-write",
        metavar="FOLDER",
        help="Let the spec name files to write in this folder, besides its own and the working directory; may be repeated.",
    ),
]
AllowEnv = Annotated[
    list[str],
    typer.Option("--allow-env", metavar="NAME", help="Let the spec use this variable of the environment for anything; may be repeated."),
]
_OPTIONS = {"allow_write": AllowWrite, "allow_env": AllowEnv}


def with_allowances(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command both options if it loads a spec, which those do that have `--set`."""
    if "sets" not in inspect.signature(command).parameters:
        return command
    signature = inspect.signature(command, eval_str=True)

    @wraps(command)
    def run(*args: Any, allow_write: list[str], allow_env: list[str], **options: Any) -> None:
        try:
            allowed = Allowed.by(allow_write, allow_env)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="'--allow-env'" if "allow_env" in str(error) else "'--allow-write'") from None
        with granting(allowed):
            command(*args, **options)

    more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=[], annotation=of) for name, of in _OPTIONS.items()]
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *more])  # type: ignore[attr-defined]
    run.__annotations__ = {**{name: p.annotation for name, p in signature.parameters.items()}, **_OPTIONS}
    return run
