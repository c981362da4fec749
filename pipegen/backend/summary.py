"""A pipeline in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.backend.model_check import fitting_loss
from pipegen.explanation import describe

if TYPE_CHECKING:
    from pipegen.pipeline import Pipeline
    from pipegen.plan.nodes import Plan


def summary(pipe: Pipeline, main: Plan) -> str:
    """Its splits, what a model receives, the classes and a loss that fits; `main` is the plan of the training split."""
    model = pipe.spec.model
    lines = [f"Pipeline {model.name or 'unnamed'} ({pipe.spec_hash[:12]})"]
    lines += [f"  {s}: {pipe.num_examples(s):,} examples, {pipe.steps(s):,} batches of {model.batch.size}" for s in pipe]
    spec = pipe.element_spec
    parts = spec if isinstance(spec, tuple) else (spec,)
    lines += [f"  {name}: {describe(part)}" for name, part in zip(("x", "y", "sample_weight"), parts, strict=False)]
    if pipe.class_names:
        shown = ", ".join(pipe.class_names[:10]) + (" …" if len(pipe.class_names) > 10 else "")
        lines.append(f"  {len(pipe.class_names)} classes: {shown}")
    loss = fitting_loss(main.emit.output, main.read)
    if loss is not None:
        lines.append(f"  loss: {loss}")
    return "\n".join(lines)
