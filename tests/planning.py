"""Specs, plans and records for tests, without files: what `build` does, step by step and in memory."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import yaml

from pipegen.backend.reading.damage import Treatment
from pipegen.backend.reading.graph_caches import MemoryCache
from pipegen.backend.running.walk import batches_of
from pipegen.ops.arguments.learned import Fitted
from pipegen.ops.families.custom import CustomTransform
from pipegen.passes import PASSES, PassContext, run_passes
from pipegen.plan.check import Checked, check
from pipegen.plan.evaluation_plans import fitted_features, fitting_plan, learning_steps
from pipegen.spec.load import load
from pipegen.spec.models import received

if TYPE_CHECKING:
    from pipegen.backend.reading.split_records import Records
    from pipegen.passes import Compiled
    from pipegen.plan.nodes import Plan
    from pipegen.spec.models import PipelineSpec

DEFAULTS: dict[str, Any] = {
    "pipegen": 1,
    "source": {"image_folder": {"path": "photos/"}},
    "splits": {"parts": {"train": 0.75, "validation": 0.25}},
    "batch": {"size": 8},
}
"""What a test does not care about."""
AS_ERRORS = Treatment(None, str, "leave it out")  # of damaged records


def load_spec(text: str | dict[str, Any] = "", **sections: Any) -> PipelineSpec:
    """A spec from YAML or sections, over `DEFAULTS`."""
    own = (yaml.safe_load(text) or {}) if isinstance(text, str) else text
    loaded = load({**DEFAULTS, **own, **sections}, env={})
    assert loaded.spec is not None, [d.message for d in loaded.diagnostics.items]
    return with_code(loaded.spec)


def with_code(spec: PipelineSpec) -> PipelineSpec:
    """The spec with the Python functions that it names, all of which are allowed here."""
    steps = (s.with_callee(callee_of(s)) if isinstance(s, CustomTransform) else s for s in spec.transforms)
    return spec.model_copy(update={"transforms": tuple(steps)})


def callee_of(step: CustomTransform) -> Any:
    """The function that a step names."""
    return getattr(import_module(step.module), step.name)


def checked(text: str | dict[str, Any] = "", *, classes: int | None = None, **sections: Any) -> Checked:
    """The plans of every split and the findings of the plan phase."""
    own = (yaml.safe_load(text) or {}) if isinstance(text, str) else text
    loaded = load({**DEFAULTS, **own, **sections}, env={})
    assert loaded.spec is not None, [d.message for d in loaded.diagnostics.items]
    return check(with_code(loaded.spec), loaded.locate.label, classes=classes)


def built(text: str | dict[str, Any] = "", *, split: str = "train", classes: int | None = None, **sections: Any) -> Plan:
    """The plan of one split as built."""
    found = checked(text, classes=classes, **sections)
    assert split in found.plans, [f"{d.code} {d.message}" for d in found.diagnostics.items]
    return found.plans[split]


def learned(text: str, data: Records, *, split: str = "train", classes: int | None = None) -> tuple[PipelineSpec, Plan]:
    """A spec that runs without XLA, with what its steps learn of some records as a build finds it; and the plan of one split as built."""
    own = yaml.safe_load(text)
    loaded = load({**DEFAULTS, **own, "runtime": {**own.get("runtime", {}), "jit": "never"}}, env={})
    assert loaded.spec is not None, [d.message for d in loaded.diagnostics.items]
    spec, locate = with_code(loaded.spec), loaded.locate.label
    record = spec.source.infer()
    for index, step in learning_steps(spec):
        numbers = {}
        for feature in fitted_features(spec, step, record):
            measuring, plan = fitting_plan(spec, index, feature, locate, record)
            numbers[feature] = step.gather(run_plan(plan, measuring, data))
        steps = list(spec.transforms)
        steps[index] = step.with_numbers(Fitted(numbers, len(data)))
        spec = spec.model_copy(update={"transforms": tuple(steps)})
    return spec, check(spec, locate, classes=classes).plans[split]


def compiled(
    plan: Plan,
    spec: PipelineSpec,
    *,
    num_examples: int | None = None,
    ram_budget: int | None = None,
    file_bytes: float | None = None,
    epoch_examples: int | None = None,
) -> Compiled:
    """The plan after every pass, with a record of each. The epoch is a long one unless `epoch_examples` says otherwise."""
    context = PassContext(
        spec.runtime, num_examples, ram_budget, file_bytes=file_bytes, epoch_examples=epoch_examples, canvases=spec.source.canvases()
    )
    return run_passes(plan, PASSES, context)


@cache
def photos(count: int = 21, height: int = 90, width: int = 130, form: str = "JPEG") -> tuple[bytes, ...]:
    """Encoded images of several sizes that are smooth in places and busy in others."""
    import io

    import numpy as np
    from PIL import Image

    made = []
    for number in range(count):
        rng = np.random.default_rng(number)
        h, w = height + 3 * (number % 5), width + 7 * (number % 3)
        y, x = np.mgrid[:h, :w]
        waves = [127 + 120 * np.sin(x / (3 + 2 * c + number % 4) + y / (9 - 2 * c) + number) for c in range(3)]
        image = np.stack(waves, -1)
        image[h // 3 : h // 2] = rng.integers(0, 256, image[h // 3 : h // 2].shape)
        stream = io.BytesIO()
        Image.fromarray(np.clip(image, 0, 255).astype(np.uint8)).save(stream, form, quality=90)
        made.append(stream.getvalue())
    return tuple(made)


def records(contents: tuple[bytes, ...], classes: int = 3) -> Records:
    """Records in memory, labelled in stored order."""
    import numpy as np

    from pipegen.backend.reading.split_records import Records
    from pipegen.ops.sources.listing.rows import Rows

    n = len(contents)
    ids = [(i + 1) * 0x9E3779B97F4A7C15 % 2**64 for i in range(n)]
    names, labels = [f"photo-{i}.jpg" for i in range(n)], [i * classes // n for i in range(n)]
    return Records(
        names, ids, labels, sum(map(len, contents)) / n, Rows({"image": np.array(contents, object)}), ("image",), rows=np.arange(n)
    )


def interpret(plan: Plan, spec: PipelineSpec, data: Records) -> dict[str, Any]:
    """Every feature that the model receives, one row a record in stored order, as NumPy arrays.

    It runs the executor's functions one by one and eagerly, which shows the numbers without a dataset around them.
    """
    import tensorflow as tf

    from pipegen.backend.process.traced_functions import plain
    from pipegen.backend.running.execute import Executor
    from pipegen.plan.nodes import Batch, Element, Kernel, Read

    x = Executor(plan, spec, data, damage=AS_ERRORS)
    record = tf.range(len(data), dtype=tf.int64)
    draws = x.draws(x.tensors, record, tf.zeros_like(record))
    compute = plain(x.compute([n for n in plan.nodes if isinstance(n, (Read, Element))]))
    rows = [compute({"@record": r, "@draws": d}) for r, d in zip(record, draws, strict=True)]
    features = {name: tf.stack([row[name] for row in rows]) for name in rows[0]}
    features |= {"@draws": draws, "@epoch": tf.zeros_like(record), "@slot": record}
    entry = plan.batch.out
    for node in plan.nodes[plan.nodes.index(plan.batch) :]:
        if isinstance(node, Kernel):
            features = plain(x.kernel(node, entry))(features)
        entry = node.out
    assert any(isinstance(n, Batch) for n in plan.nodes)
    return {name: features[name].numpy() for name in received(plan.emit.output)}


def run_plan(plan: Plan, spec: PipelineSpec, data: Records, *, shard: tuple[int, int] = (0, 1), epochs: int = 1) -> list[Any]:
    """The batches of some epochs as NumPy arrays, through the dataset."""
    import tensorflow as tf

    from pipegen.backend.process.devices import make_options
    from pipegen.backend.running.execute import Executor

    executor = Executor(plan, spec, data, shard, damage=AS_ERRORS, cache=lambda node: MemoryCache(node, len(data), data.features))
    heads = tf.data.Dataset.from_tensor_slices((tf.range(epochs, dtype=tf.int64), tf.zeros([epochs], tf.int64)))
    ds = batches_of(executor, heads).map(lambda _epoch, _step, batch: batch).with_options(make_options(spec.runtime))
    return [tf.nest.map_structure(lambda t: t.numpy(), batch) for batch in ds]
