"""The plan of the evaluation steps without labels, for `predict_on` and for served models."""

from __future__ import annotations

from pipegen.diagnostics.catalog import make
from pipegen.errors import SpecError
from pipegen.ops.kinds.registry import kind_of
from pipegen.plan.bucketed import sound_plan
from pipegen.plan.lanes import first_view
from pipegen.plan.nodes import Plan
from pipegen.plan.outputs import names
from pipegen.spec.locate import Locate
from pipegen.spec.models import PipelineSpec
from pipegen.types import ElementType


def unlabelled_plan(spec: PipelineSpec, locate: Locate, record: ElementType | None = None) -> Plan:
    """The steps of the first split that is not trained on, else those of a split named `predict`, in source order.

    `record` is the type of a record, where the data says more of it than the spec.

    Raises:
        SpecError: When those steps do not end in a fixed size, or the model takes more than images.
    """
    record = record or spec.source.infer()
    spec, locate = first_view(spec, locate, record)
    wanted = names(spec.output.x)
    images = ElementType(tuple((name, t) for name, t in record.items() if kind_of(t).levels and t.of is None and name in wanted)[:1])
    beside = [f"`{name}`" for name in wanted if name in record and name not in images]
    if beside:
        message = f"`predict_on` is given images alone, and the model takes {' and '.join(beside)} as well"
        help_ = "make a split of the rows to predict, and give `model.predict` that split"
        raise SpecError([make("PG217", message, locate(("output", "x")), help=(help_,))])
    return evaluation_plan(spec, locate, images, record)


def evaluation_plan(spec: PipelineSpec, locate: Locate, features: ElementType, record: ElementType) -> Plan:
    """The steps of the first split that is not trained on, else those of a split named `predict`, on some features of a record, which
    are all that the model takes; in source order, and without a target.

    Raises:
        SpecError: When those steps do not end in a fixed size.
    """
    split = next((s for s in spec.split_names() if s != "train"), "predict")
    output = spec.output.model_copy(update={"y": None, "sample_weight": None, "encode": {}})
    batch = spec.batch.model_copy(update={"remainder": "keep"})
    runtime = spec.runtime.model_copy(update={"shard": "none", "cache": "none"})
    steps = tuple(step for step in spec.transforms if step.feature in (None, *features))
    changes = {"output": output, "batch": batch, "shuffle": "none", "runtime": runtime, "transforms": steps}
    return sound_plan(spec.model_copy(update=changes), split, locate, features, record)
