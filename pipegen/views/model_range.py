"""Compares the range of the values that a pipeline gives with what the first layers of a Keras model make of them.

Layers without weights are run on two images, one of the lowest value and one of the highest: what a layer with weights then sees is
measured, whichever layers or functions came before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipegen.ops.inputs import centred_values
from pipegen.ops.kinds.registry import kind_of
from pipegen.types import BYTE_RANGE, Interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import keras

    from pipegen.types import ElementType, FeatureType

_FLAT = 0.1
"""Width of what a layer sees below which the values were scaled down once too often."""
_SHRUNK = 10.0
"""How many times wider the values were before."""
_LARGE = 16.0
"""The highest value from 0 up that has not been scaled at all."""
_NORMALISES = ("BatchNormalization", "LayerNormalization", "GroupNormalization", "UnitNormalization", "RMSNormalization")
_OPEN_SIDE = 64
"""Pixels of a side that neither the pipeline nor the model fixes."""


@dataclass(frozen=True)
class _Seen:
    """Values that the first layer with weights receives.

    Attributes:
        layer: Its name.
        interval: The values.
        width: The most that one value can vary; less than the width of the interval where channels differ.
        scaled_by: The layers before it that change values.
        scales_itself: The layer is a normalisation, or hides what it does first.
    """

    layer: str
    interval: Interval
    width: float
    scaled_by: tuple[str, ...]
    scales_itself: bool


def range_of(out: ElementType | None, feature: str | None) -> str:
    """Describes the values of an image, such as ` in [0, 1]`; "" for other features."""
    t = out.get(feature) if out is not None and feature is not None else None
    if t is None or not kind_of(t).levels:
        return ""
    if t.interval is not None:
        return f" in {t.interval}"
    return f" ({centred_values(t)})" if t.centred else " of unknown range"


def range_problems(model: keras.Model, x: Any, features: Any, out: ElementType | None) -> tuple[list[str], list[str]]:
    """Compares ranges; returns what scales values twice, and what leaves them as large as they were.

    Args:
        model: The model.
        x: The shapes of its inputs in a batch.
        features: The features that are its inputs: one, a list, or a map by name, as in `output: {x: …}`.
        out: The types of what leaves the pipeline.
    """
    twice: list[str] = []
    unscaled: list[str] = []
    for feature, place, spec in _inputs(model, x, features):
        t = out.get(feature) if out is not None else None
        if t is None or t.interval is None or not kind_of(t).levels or t.interval.width <= 0:
            continue
        seen = _seen(model, place, spec, t.interval)
        if not seen:
            continue
        first = seen[0]
        if any(s.width <= _FLAT and t.interval.width >= _SHRUNK * s.width for s in seen):
            twice.append(_scaled_twice(model, place, spec, feature, t, first))
        elif all(s.interval.low >= 0 and s.interval.high > _LARGE and not s.scales_itself for s in seen):
            unscaled.append(
                f"`{feature}` is in {t.interval}, and `{first.layer}` of the model gets it unscaled: use `- rescale: {{to: [0, 1]}}`"
                " in the spec (for weights of others, the `normalize: {preset: …}` that they were trained with),"
                " or begin the model with `keras.layers.Rescaling`"
            )
    return twice, unscaled


def _scaled_twice(model: keras.Model, place: int, spec: Any, feature: str, t: FeatureType, first: _Seen) -> str:
    by = " and ".join(f"`{name}`" for name in first.scaled_by)
    message = f"`{feature}` is in {t.interval}, and {by or 'the model'} scales it again: `{first.layer}` gets values in {first.interval}"
    raw = _seen(model, place, spec, BYTE_RANGE)
    if raw and _FLAT < raw[0].width <= _LARGE:
        return f"{message}; the model takes values in {BYTE_RANGE}: leave out `rescale` and `normalize` in the spec"
    return f"{message}; scale in the spec or in the model, once"


def _inputs(model: keras.Model, x: Any, features: Any) -> Iterator[tuple[str, int, Any]]:
    """Yields the feature, the place among the model's inputs and the shape of each input that has all three."""
    if isinstance(features, str):
        yield features, 0, x
    elif isinstance(features, dict) and isinstance(x, dict):
        names = [tensor.name.split(":")[0] for tensor in getattr(model, "inputs", None) or ()]
        for name, feature in features.items():
            if name in names and name in x:
                yield feature, names.index(name), x[name]
    elif isinstance(features, (list, tuple)) and isinstance(x, (list, tuple)):
        yield from ((feature, place, spec) for place, (feature, spec) in enumerate(zip(features, x, strict=False)))


def _seen(model: keras.Model, place: int, spec: Any, interval: Interval) -> list[_Seen]:
    """Runs the layers before the first weights on the ends of an interval; empty where that cannot be done."""
    import numpy as np

    shape = [side or _OPEN_SIDE for side in tuple(spec.shape)[1:]]
    ends = np.stack([np.full(shape, interval.low, np.float32), np.full(shape, interval.high, np.float32)])
    walk = _Walk()
    try:
        walk.model(model, {place: (ends, ())})
    except Exception:  # layers of the user's own may do anything; then nothing is known
        return []
    return walk.found


class _Walk:
    """Goes forward through a model from the inputs, up to the first layers with weights."""

    def __init__(self) -> None:
        self.found: list[_Seen] = []

    def model(self, model: Any, given: dict[int, tuple[Any, tuple[str, ...]]]) -> dict[int, tuple[Any, tuple[str, ...]]]:
        """Takes the values of some inputs, each with the layers that changed it; returns those of the outputs that are reached."""
        import keras

        if isinstance(model, keras.Sequential):
            value: tuple[Any, tuple[str, ...]] | None = given.get(0)
            for layer in model.layers:
                if value is not None and type(layer).__name__ != "InputLayer":
                    value = self._step(layer, [value], (value[0],), {})
            return {} if value is None else {0: value}
        values = {id(tensor): given[place] for place, tensor in enumerate(model.inputs) if place in given}
        for node in _nodes(model):
            inputs = [values.get(id(tensor)) for tensor in node.input_tensors]
            if not inputs or any(value is None for value in inputs):
                continue
            args, kwargs = keras.tree.map_structure(
                lambda tensor: values[id(tensor)][0] if id(tensor) in values else tensor, (node.arguments.args, node.arguments.kwargs)
            )
            result = self._step(node.operation, [value for value in inputs if value is not None], args, kwargs)
            if result is not None:
                values[id(node.outputs[0])] = result
        return {place: values[id(tensor)] for place, tensor in enumerate(model.outputs) if id(tensor) in values}

    def _step(
        self, operation: Any, inputs: Sequence[tuple[Any, tuple[str, ...]]], args: Any, kwargs: Any
    ) -> tuple[Any, tuple[str, ...]] | None:
        """Runs an operation without weights, or notes what one with weights sees."""
        import keras
        import numpy as np

        before, names = inputs[0]
        names = tuple(dict.fromkeys(name for _, own in inputs for name in own))
        kind = type(operation).__name__
        if isinstance(operation, keras.Model) and (getattr(operation, "inputs", None) or isinstance(operation, keras.Sequential)):
            return self.model(operation, dict(enumerate(inputs))).get(0)
        if not getattr(operation, "built", True):  # a copy is built for the question, never the layer of the user
            operation = type(operation).from_config(operation.get_config())
            operation.build(np.shape(before))
        if getattr(operation, "weights", None) and kind != "Normalization":
            own = isinstance(operation, keras.Model) or not type(operation).__module__.startswith("keras.")
            low, high, width = _ends(before)
            self.found.append(_Seen(operation.name, Interval(low, high), width, names, own or kind in _NORMALISES))
            return None
        after = operation(*args, **kwargs)
        after = np.asarray(keras.ops.convert_to_numpy(after))
        return after, (*names, operation.name) if _ends(after) != _ends(before) else names


def _ends(values: Any) -> tuple[float, float, float]:
    """Returns the least and the greatest value of two images, and how far they are apart, where they differ at all.

    Where they do not, as in the zeros around padded images, the values say nothing of the range.
    """
    import numpy as np

    differ = values[0] != values[1]
    if not differ.any():
        raise ValueError("a layer took away the difference")
    kept = values[:, differ]
    return float(np.min(kept)), float(np.max(kept)), float(np.max(np.abs(kept[1] - kept[0])))


def _nodes(model: Any) -> list[Any]:
    """Returns the calls of a functional model's layers and operations, each behind those that it depends on."""
    inputs = {id(tensor) for tensor in model.inputs}
    ordered: dict[int, Any] = {}
    waiting = [(_node_of(tensor), False) for tensor in model.outputs]
    entered: set[int] = set()
    while waiting:
        node, done = waiting.pop()
        if done:
            ordered.setdefault(id(node), node)
        elif node is not None and id(node) not in entered:
            entered.add(id(node))
            waiting.append((node, True))
            waiting += [(_node_of(tensor), False) for tensor in node.input_tensors if id(tensor) not in inputs]
    return list(ordered.values())


def _node_of(tensor: Any) -> Any:
    operation, index = tensor._keras_history[:2]
    return operation._inbound_nodes[index]
