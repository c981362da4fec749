"""`pipegen fit`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pipegen.cli.common import AllowCode, Sets, SpecFile, allowed_code, load_spec, start_tensorflow
from pipegen.terminal import aligned, progress, say

if TYPE_CHECKING:
    from pipegen.phases.specs import Learned, Spec


def fit(
    spec: SpecFile,
    again: Annotated[bool, typer.Option("--again", help="Measure again, even if the numbers are stored.")] = False,
    output_format: Annotated[Literal["text", "json"], typer.Option("--format", help="How to print the numbers.")] = "text",
    allow_code: AllowCode = [],  # noqa: B006 - Typer makes a list of its own
    sets: Sets = [],  # noqa: B006 - Typer makes a list of its own
) -> None:
    """Measure what steps learn from the training split, and store it.

    Steps such as `standardize: {statistics: featurewise}` and `whiten` need the mean and the spread of the training data. This
    command measures them in one pass over the training split, without augmentation, so that `pipegen.build` starts at once. It stores
    them in the cache folder of the spec, else of the user. They are valid until the data, the training split or the steps before change.

    Examples:
      pipegen fit flowers.pipegen.yaml
      pipegen fit flowers.pipegen.yaml --again --format json
    """
    from pipegen.api.fitting import fit as fit_spec
    from pipegen.phases.compilation import bind, collect_data
    from pipegen.phases.user_functions import with_functions
    from pipegen.plan.evaluation_plans import learning_steps

    allowed = allowed_code(allow_code)
    loaded = load_spec(spec, sets)
    learned: tuple[Learned, ...] = ()
    if learning_steps(loaded.model):
        loaded = with_functions(loaded, allowed)
        with progress("listing") as listed:
            manifest = collect_data(loaded, listed)
        start_tensorflow()
        learned = fit_spec(bind(loaded, manifest), again=again).learned
    if output_format == "json":
        steps: list[dict[str, Any]] = []
        for found in learned:
            step = {"step": loaded.model.transforms[found.step].op, "path": ["transforms", found.step], "feature": found.feature}
            stored = {"file": str(found.file) if found.file is not None else None, "measured": found.measured}
            steps.append({**step, "examples": found.examples, **found.numbers.as_json(), **stored})
        say(json.dumps({"version": 1, "steps": steps}, indent=2))
        return
    if not learned:
        say("nothing to fit: no step of this spec learns from the data")
    for found in learned:
        _tell(loaded, found)


def _tell(spec: Spec, found: Learned) -> None:
    from pipegen.ops.families.fitted import FittedTransform
    from pipegen.plan.recipe import step_path

    step = spec.model.transforms[found.step]
    say(f"`{step.op}` ({spec.where(step_path(found.step, step))}) of `{found.feature}`: {found.origin}")
    for line in aligned(found.numbers.figures().items(), gap=" "):
        say(f"  {line}")
    if isinstance(step, FittedTransform) and (written := step.written_down(found.numbers)) is not None:
        say(f"  as fixed numbers: {written}")
