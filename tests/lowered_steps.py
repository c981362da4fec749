"""What the backend makes of a step that stands alone: its stages as a plan as built has them, and their lowering."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from planning import callee_of

from pipegen.ops.families.combining import Combine, CombiningTransform
from pipegen.ops.families.custom import CustomTransform
from pipegen.ops.families.decoder import Decode, DecodeTransform
from pipegen.ops.families.item_stages import Paste, PastingTransform
from pipegen.ops.families.lookup_tables import LookupTable, LookupTableTransform
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.stage import Stage, StepRef
from pipegen.ops.step_bases import CropTransform, PointwiseTransform
from pipegen.ops.traits import Family
from pipegen.ops.transform import Transform
from pipegen.plan import stages as s
from pipegen.plan.recipe import recipe
from pipegen.spec.models import PipelineSpec
from pipegen.types import FeatureType

Array = np.ndarray[Any, Any]


def lower(step: Transform, x: FeatureType, y: FeatureType, given: list[Any], u: Array) -> Any:
    """Examples, one for each row of draws, through the backend's own lowering: element stages one by one, others as a batch; a list of
    batches of one where they differ in size."""
    import tensorflow as tf

    from pipegen.backend.kernels.lower import apply_element, apply_stage
    from pipegen.backend.process.traced_functions import plain

    stages = stages_of(step, x, y)
    if stages[0].one_example:
        rows = [{"image": tf.constant(g), "@draws": tf.constant(row, tf.float64)} for g, row in zip(given, u, strict=True)]
        for row in rows:
            plain(apply_element)(stages[0], row)
        done = [row["image"] for row in rows]
        return tf.stack(done) if len({tuple(one.shape) for one in done}) == 1 else [one[None] for one in done]
    features = {"image": tf.constant(np.stack(given)), "@draws": tf.constant(u, tf.float64)}
    if isinstance(step, PastingTransform):
        features["mask"] = tf.cast(features["image"][..., :1] > 0, tf.uint8)
    for stage in stages:
        plain(apply_stage)(stage, features)
    return features["image"]


@cache
def decoder(step: DecodeTransform) -> Any:
    """The graph that a pipeline has for the files that it decodes."""
    import tensorflow as tf

    return tf.function(step.decode, input_signature=[tf.TensorSpec([], tf.string)], autograph=False).get_concrete_function()


def uses_of(step: Transform) -> tuple[StepRef, ...]:
    """A step that stands alone as a plan uses it; a policy as its parts."""
    if isinstance(step, CustomTransform):
        step = step.with_callee(callee_of(step))
    return recipe(PipelineSpec.model_construct(transforms=(step.model_copy(update={"when": "all"}),)), "train").steps


def stages_of(step: Transform, x: FeatureType, y: FeatureType) -> tuple[Stage, ...]:
    """The stages that a plan as built has for a step that stands alone."""
    found: list[Stage] = []
    sizing = [ref for ref in uses_of(step) if ref.conditional and ref.step.only_sizes]
    if sizing:  # crops and resizes that act on some examples are one stage
        x = step.infer(x)
        found.append(s.SometimesSized("image", tuple(sizing), (x.height, x.width)))
    for ref in (ref for ref in uses_of(step) if ref not in sizing):
        y = ref.step.infer(x)
        found += stages_of_use(ref, x, y)
        x = y
    return tuple(found)


def stages_of_use(ref: StepRef, x: FeatureType, y: FeatureType) -> tuple[Stage, ...]:
    """The stages of one use of a step, each segment on its own."""
    step = ref.step
    family = step.traits(x).family
    if isinstance(step, DecodeTransform):
        return (Decode("image", ref, None),)
    if isinstance(step, LookupTableTransform):
        return (LookupTable("image", (ref,), step.needs_histogram),)
    if isinstance(step, PointwiseTransform):
        return (s.Pointwise("image", step.arithmetic(x), (ref,)),)
    if family is Family.GEOMETRIC and not isinstance(step, CropTransform):
        fill, interpolation = step.fill, step.interpolation  # type: ignore[attr-defined]
        projective = step.traits(x).projective
        end = s.Resample("image", fill, interpolation, (y.height, y.width), projective)
        return (s.Compose("image", ref, (x.height, x.width), True), end)
    if family is Family.COLOUR:
        uses_mean = step.uses_mean()  # type: ignore[attr-defined]
        return (s.ComposeColour("image", ref, x.channels or 3, True), s.ApplyColour("image", x.interval, uses_mean))
    if isinstance(step, PastingTransform):
        return (Paste("image", ref.of(PastingTransform), "mask", 0, label=False),)
    if isinstance(step, CombiningTransform):
        return (Combine("image", ref, (x.height, x.width), label=False),)
    if isinstance(step, NeighbourhoodTransform):
        return (step.stage("image", ref, x),)
    return ((s.Crop if isinstance(step, CropTransform) else s.Apply)("image", ref),)
