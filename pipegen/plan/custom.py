"""Checks steps that call Python functions: whether aligned features can stay as they are, and whether the functions are allowed."""

from __future__ import annotations

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.ops.families.custom import CustomTransform
from pipegen.plan import followers
from pipegen.plan.recipe import step_path
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec
from pipegen.types import ElementType


def check_functions(spec: PipelineSpec, locate: Locate, record: ElementType) -> list[Diagnostic]:
    """Every finding about such steps that the plan of a split does not show."""
    found = []
    for index, step in enumerate(spec.transforms):
        if not isinstance(step, CustomTransform):
            continue
        path = step_path(index, step)
        left = _left_behind(step, record) if step.moves_pixels else None
        if left is not None:
            message = f"`{step.op}` may move the pixels of `{left[0]}`, and `{left[1]}`, which is aligned with it, would stay where it is"
            advice = ("`moves_pixels: false` says that every pixel stays in its place", "a step of pipegen's own moves both")
            found.append(make("PG203", message, locate(path, key=True), help=advice))
        message = f"`{step.op}` calls the Python function `{step.function}`, on one image at a time however many threads there are"
        package = step.module.partition(".")[0]
        help_ = (f'who builds the spec allows it: `pipegen.build(…, allow_code=["{package}"])`',)
        found.append(make("PG520", message, locate((*path, "function")), help=help_))
    return found


def _left_behind(step: CustomTransform, record: ElementType) -> tuple[str, str] | None:
    """Returns an image that the step acts on, and what is aligned with it."""
    acted = (step.feature,) if step.feature is not None else followers.acted_on(step, record)
    pairs = ((followers.anchor(record, name), name) for name, _ in record.items())
    return next(((image, name) for image, name in pairs if image in acted and image != name), None)
