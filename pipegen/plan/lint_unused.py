"""A finding about features that the source describes and nothing uses."""

from __future__ import annotations

from pipegen.diagnostics.advice import write
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.ops.kinds.registry import kind_of
from pipegen.plan import followers
from pipegen.plan.outputs import received, settled
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec
from pipegen.types import ElementType


def lint_unused(spec: PipelineSpec, locate: Locate, record: ElementType) -> list[Diagnostic]:
    """Warns of a feature that neither reaches the model nor says where something belongs or which class an example is of."""
    record, wanted = record.padded(), received(settled(spec))
    if any(name not in record for name in wanted):
        return []  # which feature was meant there is not known
    used = {*wanted, *(followers.anchor(record, name) for name in wanted), spec.source.class_feature()}
    found = []
    for name, path in spec.source.described().items():
        if name not in used:
            form = kind_of(record[name]).output.format(name)
            message = f"the feature `{name}` is never used: the model does not receive it"
            if kind_of(record[name]).weighs and settled(spec).y is None:
                # Weights are those of a loss, which needs a target.
                target = next((other for other in record if kind_of(record[other]).holds_classes), None)
                form = f"output: {{y: {target}, sample_weight: {name}}}" if target is not None else ""
            help_: tuple[str, ...] = ("remove it",)
            if form:
                help_ = (write(form, "spec", "name it in the output, as in {}"), "or remove it")
            found.append(make("PG514", message, locate(("source", spec.source.op, *path), key=True), help=help_))
    return found
