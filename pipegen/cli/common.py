"""Holds what the commands share: options, loading a spec, printing, progress."""

from __future__ import annotations

import inspect
import os
import sys
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand

from pipegen.cli.failures import CannotRun, code_of, print_findings, refused
from pipegen.files import is_irregular, write_whole
from pipegen.spec.allowed import Allowed, granting
from pipegen.terminal import progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pipegen.api.pipeline import Pipeline
    from pipegen.phases.specs import Inspection, Spec


STDIN = "<stdin>"
_READ = 2**20 + 1
"""Bytes taken from standard input: one more than a spec may have, so that the loader sees that it is too large."""

SpecFile = Annotated[str, typer.Argument(metavar="SPEC", help="The spec, such as flowers.pipegen.yaml; `-` reads standard input.")]
AllowCode = Annotated[
    list[str],
    typer.Option("--allow-code", metavar="MODULE", help="Let the spec call functions of this Python module or package; may be repeated."),
]
Sets = Annotated[
    list[str],
    typer.Option(
        "--set", metavar="PATH=VALUE", help="Set a param, or any value by its path: batch.size=64, transforms.random_flip.axis=both."
    ),
]

Quality = Annotated[int, typer.Option("--quality", min=1, max=100, help="The quality of a JPEG.")]
StageNumber = Annotated[
    int | None,
    typer.Option("--stage", metavar="N", min=0, help="The spec as it is in this stage of training, from 0; by default as it is written."),
]


def parse_sets(given: Iterable[str]) -> dict[str, str]:
    """The values of `--set PATH=VALUE`, as texts.

    Raises:
        BadParameter: If one is no pair.
    """
    values: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"{text!r} is not PATH=VALUE, such as batch.size=64", param_hint="'--set'")
        values[name.strip()] = value
    return values


def allowed_code(modules: Iterable[str]) -> tuple[str, ...]:
    """The modules whose functions a spec may call. They may also lie in the working directory, as for `python -m`: it comes last among
    the places where modules are looked for.

    Raises:
        BadParameter: For what is no module's name.
    """
    from pipegen.phases.functions import allowed_modules

    try:
        allowed = allowed_modules(list(modules))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="'--allow-code'") from None
    if allowed and "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    return allowed


def examine(file: str, sets: Iterable[str]) -> Inspection:
    """Load and check a spec file, or standard input for `-`."""
    from pipegen.phases.compilation import inspect

    values = parse_sets(sets)
    if file == "-":
        return inspect(STDIN, overrides=values, overrides_from="--set", text=read_stdin())
    return inspect(file, overrides=values, overrides_from="--set")


def read_stdin() -> bytes:
    """Returns the spec on standard input, or as much of it as shows that it is too large."""
    return sys.stdin.buffer.read(_READ)


def load_spec(file: str, sets: Iterable[str], stage: int | None = None) -> Spec:
    """A spec without errors, or a stage of it; one with errors ends the command, after its findings.

    Raises:
        CannotRun: If there is no such stage.
    """
    found = examine(file, sets)
    loaded = found.spec
    if loaded is None:
        print_findings(found.diagnostics.sorted(), found.loaded.texts, to=sys.stderr)
        raise typer.Exit(code_of(found.diagnostics.items))
    if stage is None:
        return loaded
    if stage >= len(loaded.stages):
        count = len(loaded.stages)
        hint = f"they count from 0, so the last one is {count - 1}" if count else "`stages: [{epochs: 5, batch: 64}, …]` divides training"
        raise CannotRun(f"there is no stage {stage}: the spec has {count or 'none'}", hint)
    return loaded.stages[stage].alone()


def choose_split(names: Iterable[str], split: str | None) -> str:
    """The split asked for; by default `train`, or the first where there is none.

    Raises:
        CannotRun: If there is no such split.
    """
    known = list(names)
    if split is None:
        return "train" if "train" in known else known[0]
    if split not in known:
        from pipegen.diagnostics.suggest import closest

        near = closest(split, known)
        hint = f"did you mean `{near}`?" if near else f"the spec has {', '.join(known)}"
        raise CannotRun(f"there is no split `{split}`", hint)
    return split


def open_pipeline(loaded: Spec, allowed: tuple[str, ...]) -> Pipeline:
    """Starts TensorFlow and builds the pipeline of a spec as it is written, with a bar while its data is listed."""
    start_tensorflow()
    from pipegen.api.building import build

    with progress("listing") as listed:
        return build(replace(loaded, stages=()), progress=listed, allow_code=allowed)


def start_tensorflow() -> None:
    """Imports TensorFlow and starts it, without its log lines unless `TF_CPP_MIN_LOG_LEVEL` asks for them."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # of the processes that a command starts, too
    from pipegen.backend.process.quiet import quietly

    with quietly():
        import tensorflow as tf

        tf.config.list_logical_devices()


def write_text(file: str, text: str) -> None:
    """Write a text file.

    Raises:
        CannotRun: If that does not work.
    """
    with refused("write", file):
        write_whole(file, text)


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


SUFFIX = ".pipegen.yaml"
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "pipegen.lock.d"})


def spec_files(given: Iterable[str]) -> list[str]:
    """The specs: files as they are named, folders searched for `*.pipegen.yaml`, `-` for standard input.

    Raises:
        CannotRun: If a folder holds none.
    """
    wanted = list(given)
    found: dict[str, None] = {}
    for name in wanted or ["."]:
        if name == "-" or not os.path.isdir(name):
            found[name] = None
            continue
        inside = sorted(_below(name))
        if not inside:
            where = "the working directory" if name == "." else name
            hint = "name the files, or write one: `pipegen init FOLDER`"
            raise CannotRun(f"there is no *{SUFFIX} in or below {where}", hint)
        found.update(dict.fromkeys(inside))
    return list(found)


def _below(folder: str) -> Iterator[str]:
    """Specs at any depth; pipes and devices, hidden folders, virtual environments and installed packages are not searched."""
    for root, folders, files in os.walk(folder):
        folders[:] = [f for f in folders if not f.startswith(".") and f not in _SKIPPED and not _is_environment(os.path.join(root, f))]
        yield from (
            os.path.normpath(os.path.join(root, f)) for f in files if f.endswith(SUFFIX) and not is_irregular(os.path.join(root, f))
        )


def _is_environment(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, "pyvenv.cfg"))
