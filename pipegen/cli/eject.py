"""`pipegen eject`."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from pipegen.cli.common import AllowCode, Sets, SpecFile, allowed_code, choose_split, load_spec, open_pipeline
from pipegen.cli.failures import CannotRun, check_parent, print_findings
from pipegen.terminal import progress, say

_TAKEN = ("tensorflow", "keras", "numpy", "pipegen")
"""Modules that the written code imports."""


def eject(
    spec: SpecFile,
    out: Annotated[str, typer.Argument(metavar="OUT", help="With --graph a new or empty folder, with --code a new file such as data.py.")],
    graph: Annotated[bool, typer.Option("--graph", help="Write the datasets as SavedModels, which need TensorFlow alone.")] = False,
    code: Annotated[bool, typer.Option("--code", help="Write a Python module, to edit by hand.")] = False,
    splits: Annotated[list[str], typer.Option("--split", metavar="NAME", help="A split; may be repeated. By default all.")] = [],  # noqa: B006
    allow_code: AllowCode = [],  # noqa: B006 - Typer makes a list of its own
    sets: Sets = [],  # noqa: B006 - Typer makes a list of its own
) -> None:
    """Write the datasets so that they run without the spec.

    With --graph, each split becomes a SavedModel that needs no pipegen. After `train = tf.saved_model.load("OUT/train")`,
    `train.batches(epoch, step)` is the dataset of that epoch from that step on, bit for bit as in pipegen. The data is not copied; if it
    moves, pass its new folder. What a graph cannot contain, such as Python functions, is a finding. With --code, the compiled plan
    becomes plain tf.data on pipegen's lowered parts, a line for each operation.

    Examples:
      pipegen eject --graph flowers.pipegen.yaml flowers-graphs/
      pipegen eject --graph flowers.pipegen.yaml validation/ --split validation
      pipegen eject --code flowers.pipegen.yaml flowers_data.py
    """
    if graph == code:
        raise typer.BadParameter("use one of `--graph` and `--code`", param_hint="'--graph'")
    _check_target(out, graph=graph)
    allowed = allowed_code(allow_code)
    loaded = load_spec(spec, sets)
    chosen = [choose_split(loaded.plans, split) for split in dict.fromkeys(splits)] or list(loaded.plans)
    pipe = open_pipeline(loaded, allowed)
    with progress("saving", len(chosen)) as saved:
        try:
            done = pipe.eject(out, "graph" if graph else "code", splits=chosen, progress=saved)
        except FileExistsError as error:
            raise CannotRun(f"cannot write {out}: {(error.strerror or str(error)).lower()}") from None
    if done.remarks:
        print_findings(done.remarks, pipe.spec.loaded.texts, to=sys.stderr)
    what = f"{len(done.splits)} SavedModel{'s' * (len(done.splits) != 1)}" if graph else "code"
    say(f"wrote {done.path}: {what} of {' and '.join(done.splits)}" + ("; its README.md explains how to load them" if graph else ""))


def _check_target(out: str, *, graph: bool) -> None:
    if graph and os.path.isdir(out) and not os.listdir(out):
        return
    if os.path.lexists(out):
        help_ = "choose another path, or move it away: it may contain edits by hand"
        raise CannotRun(f"cannot write {out}: it exists{', and is not an empty folder' if graph else ''}", help_)
    if graph:
        return
    if not out.endswith(".py"):
        raise CannotRun(f"the code is Python, but {out} does not end in .py", "use a name such as `data.py`")
    module = os.path.basename(out).removesuffix(".py")
    if module in sys.stdlib_module_names or module in _TAKEN:
        raise CannotRun(f"a file {module}.py would hide the module `{module}` from Python", "use a name such as `data.py`")
    check_parent(out)
