"""Serving functions: from a physical plan in the form `serving` to a function of a request, without datasets, variables or draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from pipegen.backend.features import Features
from pipegen.backend.kernels.chain import lower_for_any_batch, lower_plainly
from pipegen.backend.kernels.lower import apply_element
from pipegen.errors import InternalError
from pipegen.ops.families.decoder import Decodes
from pipegen.ops.lowering.formats import head_of, is_jpeg, kind
from pipegen.ops.lowering.graphs import target
from pipegen.ops.lowering.library import served_formats
from pipegen.ops.stage import Stage
from pipegen.physical import nodes as p
from pipegen.plan.nodes import Element
from pipegen.types import ElementType, FeatureType

WEIGHT = "@weight"  # weight of each example of a batch: 0 for padding
_AT_ONCE = 16  # examples of a request that are processed at a time
_READ = {"GIF": 1, "BMP": 2, "WebP": 3}  # values of `kind`; PNG is 0


def served(plan: p.Physical) -> Callable[[Features], Any]:
    """Makes a function from a request, stored values `(n, ...)` by feature, to the model's inputs."""
    run = chained(plan.functions, lambda function: _function(function, plan))

    def serve(request: Features) -> Any:
        count = tf.shape(next(iter(request.values())))[0]
        return run(request | {"@draws": tf.zeros([count, 1], tf.float64)})

    return serve


def chained(functions: Sequence[p.Function], lower: Callable[[p.Function], Callable[..., Any]]) -> Callable[..., Any]:
    """Chains functions, each in its scope. They are lowered before tracing: tensors made while a map is traced belong to it."""
    made = [(p.node_name(function), lower(function)) for function in functions]

    def call(*given: Any) -> Any:
        for scope, function in made:
            with tf.name_scope(scope):
                given = (function(*given),)
        return given[0]

    return call


def batch_of(emit: p.Emit | p.SplitForDevice, features: Features) -> Any:
    """Arranges a batch for the model. Several inputs without targets are nested in a tuple, or Keras would take the second for targets."""
    output = emit.node.output
    parts: list[Any] = [arrange(output.x, features)]
    if output.y is not None:
        parts.append(arrange(output.y, features))
        weight = features[output.sample_weight] if output.sample_weight else None
        if emit.weighs:
            weight = features[WEIGHT] if weight is None else tf.cast(weight, tf.float32) * features[WEIGHT]
        if weight is not None:
            parts.append(weight)
    return parts[0] if len(parts) == 1 and not isinstance(output.x, list) else tuple(parts)


def arrange(wanted: str | list[str] | dict[str, str], features: Features) -> Any:
    """Arranges features as in `output.x` or `output.y`: one, a tuple, or a map."""
    if isinstance(wanted, str):
        return features[wanted]
    if isinstance(wanted, dict):
        return {key: features[name] for key, name in wanted.items()}
    return tuple(features[name] for name in wanted)


def each(nodes: tuple[Element, ...], stored: ElementType) -> Callable[[Features], Features]:
    """Makes a function of a batch that runs nodes on each example, several at a time; `stored` is their input type."""
    stages = [stage for node in nodes for stage in node.stages]
    touched = dict.fromkeys(name for stage in stages for name in stage.touches())
    out = {name: t for name, t in nodes[-1].out.items() if name in touched}
    signature = {name: tf.TensorSpec(t.shape, tf.as_dtype(t.dtype)) for name, t in out.items()}

    def one(example: Features) -> Features:
        number = example.pop("@number")
        for stage in stages:
            if isinstance(stage, Decodes) and not stage.decode.step.names_unread:
                example[stage.feature] = _of_known_format(example[stage.feature], number, stage.decode.step.infer(stored[stage.feature]))
            with tf.name_scope(scope_of(stage)):
                apply_element(stage, example)
        if target() != "converter":
            return {name: tf.ensure_shape(example[name], t.shape) for name, t in out.items()}
        for name, t in out.items():
            example[name].set_shape(t.shape)
        return {name: example[name] for name in out}

    def run(features: Features) -> Features:
        given = {name: features[name] for name in (*touched, "@draws") if name in features}
        given["@number"] = tf.range(tf.shape(features["@draws"])[0])
        if all(value.shape[0] == 1 for name, value in given.items() if not name.startswith("@")):  # converters handle no loops
            return features | {name: value[None] for name, value in one({name: value[0] for name, value in given.items()}).items()}
        return features | tf.map_fn(one, given, fn_output_signature=signature, parallel_iterations=_AT_ONCE)

    return run


def _of_known_format(contents: tf.Tensor, number: tf.Tensor, decoded: FeatureType) -> tf.Tensor:
    """Checks that TensorFlow's own decoders read an image file correctly; returns its bytes."""
    formats = served_formats(decoded.channels or 3, 8 if decoded.dtype == "uint8" else 16)
    head = head_of(contents)
    known = (kind(head) == 0) | (is_jpeg(head) & ("JPEG" in formats))
    for name, value in _READ.items():
        known |= (kind(head) == value) & (name in formats)
    message = tf.strings.format(
        f"image {{}} of the request (from 0), {{}} bytes, is not a {formats} file", (number, tf.strings.length(contents))
    )
    with tf.control_dependencies([tf.raw_ops.Assert(condition=known, data=[message])]):
        return tf.identity(contents)


def scope_of(stage: Stage) -> str:
    """Names the scope of a stage after its first step, if it has one."""
    used = stage.uses()
    return used[0].id.replace("#", ".") if used else type(stage).__name__.lower()


def _function(function: p.Function, plan: p.Physical) -> Callable[[Features], Any]:
    match function:
        case p.MapRequest():
            return each(function.nodes, plan.plan.read)
        case p.Kernel() if plan.setting.jit and function.node.compiled:
            return lower_for_any_batch(function.node, function.entry)
        case p.Kernel():
            return lower_plainly(function.node, lambda stage: tf.name_scope(scope_of(stage)))
        case p.Emit():
            return lambda features: arrange(function.node.output.x, features)
    raise InternalError(f"{type(function).__name__} in a plan that serves requests")
