"""Finds without data what keeps the workers of the tf.data service from making the batches of a spec: they have TensorFlow alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.diagnostics.catalog import make
from pipegen.spec.joined import part_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.plan.nodes import Plan
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec

SERVICE = ("runtime", "service")
PREPARE = "`pipegen prepare SPEC OUT` writes a store that workers read by themselves, and the spec of the rest"
WITHOUT = "or leave `runtime.service` out"


def check_service(spec: PipelineSpec, plan: Plan | None, locate: Locate) -> Iterator[Diagnostic]:
    """Yields a finding for each step, and each source, that calls Python for the training split; `plan` is that split's."""
    if spec.runtime.service is None:
        return
    asked = locate(SERVICE, "workers are asked for here", key=True)
    if plan is None:
        if "train" not in spec.split_names():
            message = "the workers make batches of the training split, and there is none"
            yield make("PG488", message, locate(SERVICE, key=True), help="leave `runtime.service` out, or name a split `train`")
        return
    stages = (*plan.part_stages(), *plan.stages())
    called = {ref.path: ref.step for stage in stages for ref in stage.uses() if ref.step.calls_python == "always"}
    for path, step in called.items():
        message = f"`{step.op}` calls the Python function `{getattr(step, 'function', step.op)}`, which workers do not have"
        help_ = ("say it with steps of the language (`pipegen ops` lists them)", WITHOUT)
        yield make("PG485", message, locate(path, key=True), asked, help=help_)
    parts = spec.source.mixed()
    for part, source in ({name: one.source for name, one in parts.items()} if parts else {"": spec.source}).items():
        read = source.read_by_python()
        if read:
            message = f"{read} are read by Python, which workers do not have"
            place = locate(part_path(part) if part else ("source", spec.source.op), key=True)
            yield make("PG486", message, place, asked, help=(PREPARE, WITHOUT))
