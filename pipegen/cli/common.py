"""Shared parts of the commands: options, loading specs, starting TensorFlow, help texts."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args

import typer
from typer.core import TyperCommand

from pipegen.cli.failures import CannotRun, code_of, print_findings, refused
from pipegen.files import is_irregular, write_whole
from pipegen.frozen import dataclass
from pipegen.spec.allowed import Allowed, granting
from pipegen.terminal import progress, say

if TYPE_CHECKING:
    from pipegen.api.pipeline import Pipeline
    from pipegen.phases.specs import Inspection, Spec


STDIN = "<stdin>"
_READ = 2**20 + 1  # bytes read from standard input: one more than a spec may have, so that the loader can reject it

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

SplitName = Annotated[str | None, typer.Option("--split", metavar="NAME", help="The split; by default train.")]
Quality = Annotated[int, typer.Option("--quality", min=1, max=100, help="JPEG quality.")]
StageNumber = Annotated[
    int | None,
    typer.Option("--stage", metavar="N", min=0, help="Use the spec of this stage of training, from 0; by default the spec as written."),
]


def allowed_code(modules: Iterable[str]) -> tuple[str, ...]:
    """Checks the modules whose functions a spec may call. They may lie in the working directory, which becomes the last of `sys.path`."""
    from pipegen.phases.user_functions import allowed_modules

    try:
        allowed = allowed_modules(list(modules))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="'--allow-code'") from None
    if allowed and "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    return allowed


def read_stdin() -> bytes:
    """Reads the spec from standard input, up to one byte more than a spec may have."""
    return sys.stdin.buffer.read(_READ)


def choose_split(names: Iterable[str], split: str | None) -> str:
    """Checks the name of a split; by default `train`, else the first split."""
    known = list(names)
    if split is None:
        return "train" if "train" in known else known[0]
    if split not in known:
        from pipegen.diagnostics.suggest import hints

        raise CannotRun(f"there is no split `{split}`", hints(split, known, f"the spec has {', '.join(known)}")[0])
    return split


def start_tensorflow() -> None:
    """Imports and starts TensorFlow, without its log lines unless `TF_CPP_MIN_LOG_LEVEL` is set."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # child processes inherit it
    from pipegen.backend.process.quiet import quietly

    with quietly():
        import tensorflow as tf

        tf.config.list_logical_devices()


def write_text(file: str, text: str | bytes, *, new: bool = False) -> None:
    """Writes a text file, only a `new` one if so asked, or raises `CannotRun`."""
    with refused("write", file):
        write_whole(file, text, new=new)


def hand_over(text: str, file: str | None, said: str) -> None:
    """Prints a text; or writes it to a file, if one is named, and prints what is `said` of it."""
    if file is not None:
        write_text(file, text.rstrip("\n") + "\n")
    say(text if file is None else said)


AllowWrite = Annotated[
    list[str],
    typer.Option(
        "--allow-write",
        metavar="FOLDER",
        help="Let the spec write files in this folder, besides its own and the working directory; may be repeated.",
    ),
]
AllowEnv = Annotated[
    list[str],
    typer.Option("--allow-env", metavar="NAME", help="Let the spec use this environment variable anywhere; may be repeated."),
]
_OPTIONS = {"allow_code": AllowCode, "stage": StageNumber, "sets": Sets, "allow_write": AllowWrite, "allow_env": AllowEnv}


@dataclass(frozen=True)
class Given:
    """The options of a command that loads specs: values for params and by path, a stage of training, and modules that may be called."""

    sets: Sequence[str] = ()
    stage: int | None = None
    allow_code: Sequence[str] = ()

    @property
    def values(self) -> dict[str, str]:
        """The values of `--set PATH=VALUE`, as texts."""
        found: dict[str, str] = {}
        for text in self.sets:
            name, equals, value = text.partition("=")
            if not equals or not name.strip():
                raise typer.BadParameter(f"{text!r} is not PATH=VALUE, such as batch.size=64", param_hint="'--set'")
            found[name.strip()] = value
        return found

    def examine(self, file: str) -> Inspection:
        """Loads and checks a spec file, or standard input for `-`."""
        from pipegen.phases.compilation import inspect

        name, text = (STDIN, read_stdin()) if file == "-" else (file, None)
        return inspect(name, overrides=self.values, overrides_from="--set", text=text)

    def load(self, file: str) -> Spec:
        """Loads a spec, or its stage. If it has errors, prints the findings and ends the command."""
        found = self.examine(file)
        loaded = found.spec
        if loaded is None:
            print_findings(found.diagnostics.sorted(), found.loaded.texts, to=sys.stderr)
            raise typer.Exit(code_of(found.diagnostics.items))
        if self.stage is None:
            return loaded
        if self.stage >= len(loaded.stages):
            count = len(loaded.stages)
            hint = (
                f"stages count from 0; the last one is {count - 1}" if count else "`stages: [{epochs: 5, batch: 64}, …]` divides training"
            )
            raise CannotRun(f"there is no stage {self.stage}: the spec has {count or 'none'}", hint)
        return loaded.stages[self.stage].alone()

    def load_split(self, file: str, split: str | None) -> tuple[Spec, str]:
        """Loads a spec like `load`, and checks the name of a split like `choose_split`."""
        loaded = self.load(file)
        return loaded, choose_split(loaded.plans, split)

    def open(self, loaded: Spec) -> Pipeline:
        """Starts TensorFlow and builds the pipeline of a spec, without its stages; shows a bar while the data is listed."""
        start_tensorflow()
        from pipegen.api.building import build

        with progress("listing") as listed:
            return build(replace(loaded, stages=()), progress=listed, allow_code=self.allow_code)


NOTHING = Given()
WithSets = Annotated[Given, "sets"]
WithCode = Annotated[Given, "allow_code", "sets"]
WithStage = Annotated[Given, "allow_code", "stage", "sets"]
"""Types of the last argument `given` of a command, with the options that it stands for."""


def with_allowances(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command that loads specs the options of its argument `given`, and `--allow-write` and `--allow-env`."""
    if "given" not in inspect.signature(command).parameters:
        return command
    signature = inspect.signature(command, eval_str=True)
    kept = {name: p for name, p in signature.parameters.items() if name != "given"}
    own = get_args(signature.parameters["given"].annotation)[1:]

    @wraps(command)
    def run(*args: Any, allow_write: list[str], allow_env: list[str], **options: Any) -> None:
        try:
            allowed = Allowed.by(allow_write, allow_env)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="'--allow-env'" if "allow_env" in str(error) else "'--allow-write'") from None
        given = {name: options.pop(name) for name in own}
        if given.get("allow_code"):
            given["allow_code"] = allowed_code(given["allow_code"])
        with granting(allowed):
            command(*args, given=Given(**given), **options)

    more = {
        name: inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None if name == "stage" else [], annotation=_OPTIONS[name])
        for name in (*own, "allow_write", "allow_env")
    }
    run.__signature__ = signature.replace(parameters=[*kept.values(), *more.values()])  # type: ignore[attr-defined]
    run.__annotations__ = {name: p.annotation for name, p in {**kept, **more}.items()}
    return run


_KEEP_LINES = "\b"  # marks a paragraph that Click must not wrap


def help_text(command: Callable[..., None]) -> str:
    """Turns the docstring of a command into its help; paragraphs with indented lines, such as examples, are not wrapped."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(f"{_KEEP_LINES}\n{p}" if "\n  " in f"\n{p}" else p for p in paragraphs)


class OptionalValues(TyperCommand):
    """A command whose options in `alone` have a default value when given without one.

    Click would take the next argument as the value: `--data flowers.pipegen.yaml` would lose the file.
    """

    alone: ClassVar[dict[str, str]] = {"--data": "sample", "--update": ""}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Inserts the values, then parses as usual."""
        end = args.index("--") if "--" in args else len(args)
        valued = {name for option in self.get_params(ctx) if not getattr(option, "is_flag", False) for name in option.opts}
        written = [f"{arg}={self.alone[arg]}" if arg in self.alone and arg in valued else arg for arg in args[:end]]
        return super().parse_args(ctx, written + args[end:])


def as_app(command: Callable[..., None], name: str, **settings: Any) -> typer.Typer:
    """Wraps a command in a Typer app; `settings` are those of Click's context."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name, cls=OptionalValues, help=help_text(command), context_settings=settings)(with_allowances(command))
    return app


def as_group(about: str, *commands: Callable[..., None]) -> typer.Typer:
    """Wraps several commands in a Typer app, which prints its help if none is named."""
    app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, help=about)
    for command in commands:
        app.command(cls=OptionalValues, help=help_text(command))(with_allowances(command))
    return app


SUFFIX = ".pipegen.yaml"
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "pipegen.lock.d"})


def spec_files(given: Iterable[str]) -> list[str]:
    """Lists specs: files as given, folders searched for `*.pipegen.yaml`, `-` for standard input. A folder without specs is an error."""
    wanted = list(given)
    found: dict[str, None] = {}
    for name in wanted or ["."]:
        if name == "-" or not os.path.isdir(name):
            found[name] = None
            continue
        inside = sorted(_below(name))
        if not inside:
            where = "the working directory" if name == "." else name
            raise CannotRun(f"there is no *{SUFFIX} in or below {where}", "name the files, or write one: `pipegen init FOLDER`")
        found.update(dict.fromkeys(inside))
    return list(found)


def _below(folder: str) -> Iterator[str]:
    """Yields specs at any depth, except pipes, devices and those in hidden folders, virtual environments and installed packages."""
    for root, folders, files in os.walk(folder):
        folders[:] = [f for f in folders if not f.startswith(".") and f not in _SKIPPED]
        folders[:] = [f for f in folders if not os.path.exists(os.path.join(root, f, "pyvenv.cfg"))]
        paths = (os.path.join(root, f) for f in files if f.endswith(SUFFIX))
        yield from (os.path.normpath(path) for path in paths if not is_irregular(path))
