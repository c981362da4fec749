"""`Pipeline.check`: compares the batches of a pipeline with the inputs, outputs and losses of a Keras model."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pipegen.errors import ModelMismatchError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.fields.notes import is_are
from pipegen.ops.kinds.base import ExampleClass, Indices, Levels, PixelClass, Presence, Samples, TimestepClass, kind_of
from pipegen.ops.step_bases import centred_values
from pipegen.plan.outputs import encoding_of
from pipegen.spec.models import Output, names
from pipegen.terminal import log, visible
from pipegen.types import BYTE_RANGE, ElementType, FeatureType, Interval, times

if TYPE_CHECKING:
    import keras

    from pipegen.plan.nodes import Plan


_SPARSE = ("sparse_categorical_crossentropy", "SparseCategoricalCrossentropy")
_ONE_HOT = ("categorical_crossentropy", "CategoricalCrossentropy", "CategoricalFocalCrossentropy", "categorical_focal_crossentropy")
_BINARY = ("binary_crossentropy", "BinaryCrossentropy", "BinaryFocalCrossentropy", "binary_focal_crossentropy")
FITS = {
    "int": "sparse_categorical_crossentropy",
    "one_hot": "categorical_crossentropy",
    "binary": "binary_crossentropy",
    "multi_hot": "binary_crossentropy",
    "tensor": "mean_squared_error",
}
"""The fitting loss for each encoding of a label or a mask, and for numbers."""
_CLASSES = dict(zip((_SPARSE[0], _ONE_HOT[0], _BINARY[0]), (_SPARSE[1], _ONE_HOT[1], _BINARY[1]), strict=True))
_PROBABILITIES = ("softmax", "sigmoid", "hard_sigmoid")
_NO_PROBABILITIES = ("linear", "relu", "relu6", "tanh", "gelu", "elu", "selu", "silu", "swish", "leaky_relu", "softplus", "log_softmax")
_CARRIERS = frozenset({"Reshape", "Flatten", "Permute", "Dropout", "Identity", "ZeroPadding2D", "Cropping2D", "UpSampling2D"})
"""Layers that pass values on, so that the activation is in an earlier layer."""
_DEPTH = 20


def _loss_problems(t: _Target, target: FeatureType, output: Output, units: int | None) -> list[str]:
    """Lists mismatches of a loss, in any form of Keras, with its target, and with the end of the model: its activation and last axis."""
    name, feature = name_of(t.loss), t.feature
    if target.beside is not None and target.classes is not None:  # the class index of each item of another feature
        found = f"the loss `{name}` takes one-hot classes, but `{feature}` has class indices; use {FITS['int']}"
        return [found] if name in _ONE_HOT else []
    if not kind_of(target).has(ExampleClass, PixelClass):
        is_truth = kind_of(target).has(Presence) or _of_frames(output, feature)
        if name in (*_SPARSE, *_ONE_HOT):
            holds, fits = ("truth values", "binary") if is_truth else ("numbers", "tensor")
            return [f"the loss `{name}` is for classes, but `{feature}` has {holds}; use {FITS[fits]}"]
        return _of_ending(t, units, "sigmoid") if name in _BINARY and is_truth else []
    encoding = encoding_of(output, feature, target)
    unfit = {"int": _ONE_HOT, "one_hot": _SPARSE, "binary": (*_SPARSE, *_ONE_HOT), "multi_hot": (*_SPARSE, *_ONE_HOT)}[encoding]
    if name in unfit:
        return [f"the loss `{name}` does not fit `encode: {{{feature}: {encoding}}}`; use {FITS[encoding]}"]
    if encoding == "int" and name in _BINARY:
        return [f"the loss `{name}` needs `output: {{encode: {{{feature}: binary}}}}`; with `int` use {FITS['int']}"]
    if name in (*_SPARSE, *_ONE_HOT, *_BINARY):
        return _of_ending(t, units, "sigmoid" if name in _BINARY else "softmax")
    return []


def _of_ending(t: _Target, units: int | None, wanted: str) -> list[str]:
    """Checks that a loss of probabilities gets probabilities, and one of logits gets logits."""
    name, ending = name_of(t.loss), t.ending
    if ending == "softmax" and units == 1:
        return ["the model ends in `softmax` over one unit, which is always 1; use `sigmoid`"]
    logits = _takes_logits(t.loss)
    if logits is False and ending in _NO_PROBABILITIES:
        what = "no activation, so in logits" if ending == "linear" else f"`{ending}`, which does not return probabilities"
        made = f"keras.losses.{_CLASSES.get(name, name)}(from_logits=True)"
        way = f"end it in `{wanted}`" + (f", or use `{made}`" if ending == "linear" else "")
        return [f"the model ends in {what}, but the loss `{name}` takes probabilities: {way}"]
    if logits and ending in _PROBABILITIES:
        return [f"the model ends in `{ending}`, but the loss `{name}` has `from_logits=True`: leave out one of the two"]
    return []


def _takes_logits(loss: Any) -> bool | None:
    """Checks if a loss of classes takes logits; `None` if unknown. Names and functions of Keras take probabilities."""
    given = getattr(loss, "from_logits", None)
    if not isinstance(given, bool):
        with suppress(Exception):  # a loss of the user's own may do anything
            given = loss.get_config().get("from_logits")
    if isinstance(given, bool):
        return given
    return False if counts_padding(loss) else None


def counts_padding(loss: Any) -> bool:
    """Checks if a loss is Keras' own, which counts the padding of a padded target as items."""
    return isinstance(loss, str) or (callable(loss) and getattr(loss, "__module__", "").startswith("keras"))


def dilutes(loss: Any) -> bool:
    """Checks if a loss divides by the number of examples, whatever their weights, as Keras' own do by default."""
    return isinstance(loss, str) or getattr(loss, "reduction", None) in ("sum_over_batch_size", "mean", "auto")


def name_of(loss: Any) -> str:
    """Name of a loss."""
    return loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)


def ending_of(tensor: Any, depth: int = 0) -> str | None:
    """Finds the activation of an output of a model; `None` if unknown."""
    layer, node_index, tensor_index = (getattr(tensor, "_keras_history", None) or (None, 0, 0))[:3]
    if layer is None or depth > _DEPTH:
        return None
    kind = type(layer).__name__
    inner = getattr(layer, "outputs", None)
    if inner and hasattr(layer, "layers"):
        return ending_of(inner[min(tensor_index, len(inner) - 1)], depth + 1)
    activation = getattr(layer, "activation", None)
    if activation is not None:
        name = getattr(activation, "__name__", type(activation).__name__.lower())
        return _before(layer, node_index, depth) if kind == "Activation" and name == "linear" else name
    if kind.lower() in (*_PROBABILITIES, *_NO_PROBABILITIES):
        return kind.lower()
    return _before(layer, node_index, depth) if kind in _CARRIERS else None


def _before(layer: Any, node_index: int, depth: int) -> str | None:
    nodes = getattr(layer, "_inbound_nodes", ())
    tensors = getattr(nodes[node_index], "input_tensors", ()) if node_index < len(nodes) else ()
    return ending_of(tensors[0], depth + 1) if tensors else None


_FLAT = 0.1  # width of a layer's input values up to which they may be scaled twice
_SHRUNK = 10.0  # minimal ratio of the width before to that width, for values scaled twice
_LARGE = 16.0  # maximum above which values from 0 up are taken for unscaled
_NORMALISES = ("BatchNormalization", "LayerNormalization", "GroupNormalization", "UnitNormalization", "RMSNormalization")
_Value = tuple[Any, tuple[str, ...]]  # a value in a model, with the names of the layers that changed it
_OPEN_SIDE = 64  # pixels of a side that neither the pipeline nor the model fixes


@dataclass(frozen=True)
class _Seen:
    """Values that the first layer with weights receives, and the layers before it that change values.

    `width` is the maximal variation of one value; less than that of the interval if channels differ. The layer `scales_itself` if it is a
    normalisation, or its first operation is unknown.
    """

    layer: str
    interval: Interval
    width: float
    scaled_by: tuple[str, ...]
    scales_itself: bool


def range_of(out: ElementType | None, feature: str | None) -> str:
    """Describes the values of an image, such as ` in [0, 1]`; "" for other features."""
    t = out.get(feature) if out is not None and feature is not None else None
    if t is None or not kind_of(t).has(Levels):
        return ""
    if t.interval is not None:
        return f" in {t.interval}"
    return f" ({centred_values(t)})" if t.centred else " of unknown range"


def range_problems(model: keras.Model, x: Any, features: Any, out: ElementType | None) -> tuple[list[str], list[str]]:
    """Compares ranges of values; lists inputs that are scaled twice, and inputs that are not scaled.

    `x` has the shapes of the model's inputs in a batch, `features` their features as in `output: {x: …}`, `out` the pipeline's types.
    """
    twice: list[str] = []
    unscaled: list[str] = []
    inputs = _input_names(model)
    for number, (name, feature, spec) in enumerate(_inputs(x, features)):
        t = out.get(feature) if out is not None and feature is not None else None
        if t is None or t.interval is None or not kind_of(t).has(Levels) or t.interval.width <= 0 or (name and name not in inputs):
            continue
        place = inputs.index(name) if name else number
        seen = _seen(model, place, spec, t.interval)
        if not seen:
            continue
        first = seen[0]
        if any(s.width <= _FLAT and t.interval.width >= _SHRUNK * s.width for s in seen):
            by = _listed(first.scaled_by) or "the model"
            message = f"`{feature}` is in {t.interval}, and {by} scales it again: `{first.layer}` gets values in {first.interval}"
            raw = _seen(model, place, spec, BYTE_RANGE)
            takes_bytes = raw and _FLAT < raw[0].width <= _LARGE
            mended = f"the model takes values in {BYTE_RANGE}: leave out `rescale` and `normalize` in the spec"
            twice.append(f"{message}; {mended if takes_bytes else 'scale once, in the spec or in the model'}")
        elif all(s.interval.low >= 0 and s.interval.high > _LARGE and not s.scales_itself for s in seen):
            unscaled.append(
                f"`{feature}` is in {t.interval}, and `{first.layer}` of the model gets it unscaled: use `- rescale: {{to: [0, 1]}}`"
                " in the spec (for pretrained weights, the `normalize: {preset: …}` of their training),"
                " or begin the model with `keras.layers.Rescaling`"
            )
    return twice, unscaled


def _seen(model: keras.Model, place: int, spec: Any, interval: Interval) -> list[_Seen]:
    """Runs the layers before the first weights on the ends of an interval; empty if that fails."""
    shape = [side or _OPEN_SIDE for side in tuple(spec.shape)[1:]]
    ends = np.stack([np.full(shape, interval.low, np.float32), np.full(shape, interval.high, np.float32)])
    found: list[_Seen] = []
    try:
        _walk(model, {place: (ends, ())}, found)
    except Exception:  # custom layers may do anything; then nothing is known
        return []
    return found


def _walk(model: Any, given: dict[int, _Value], found: list[_Seen]) -> dict[int, _Value]:
    """Computes outputs of a model from the values of some inputs, up to the first layers with weights, whose inputs it records."""
    import keras

    if isinstance(model, keras.Sequential):
        value: _Value | None = given.get(0)
        for layer in model.layers:
            if value is not None and type(layer).__name__ != "InputLayer":
                value = _step(layer, [value], (value[0],), {}, found)
        return {} if value is None else {0: value}
    values = {id(tensor): given[place] for place, tensor in enumerate(model.inputs) if place in given}
    for node in _nodes(model):
        inputs = [values.get(id(tensor)) for tensor in node.input_tensors]
        if not inputs or any(value is None for value in inputs):
            continue
        args, kwargs = keras.tree.map_structure(
            lambda tensor: values[id(tensor)][0] if id(tensor) in values else tensor, (node.arguments.args, node.arguments.kwargs)
        )
        result = _step(node.operation, [value for value in inputs if value is not None], args, kwargs, found)
        if result is not None:
            values[id(node.outputs[0])] = result
    return {place: values[id(tensor)] for place, tensor in enumerate(model.outputs) if id(tensor) in values}


def _step(operation: Any, inputs: Sequence[_Value], args: Any, kwargs: Any, found: list[_Seen]) -> _Value | None:
    """Runs an operation without weights, or records the input of one with weights."""
    import keras

    before, names = inputs[0]
    names = tuple(dict.fromkeys(name for _, own in inputs for name in own))
    kind = type(operation).__name__
    if isinstance(operation, keras.Model) and (getattr(operation, "inputs", None) or isinstance(operation, keras.Sequential)):
        return _walk(operation, dict(enumerate(inputs)), found).get(0)
    if not getattr(operation, "built", True):  # builds a copy, never the layer of the user
        operation = type(operation).from_config(operation.get_config())
        operation.build(np.shape(before))
    if getattr(operation, "weights", None) and kind != "Normalization":
        own = isinstance(operation, keras.Model) or not type(operation).__module__.startswith("keras.")
        low, high, width = _ends(before)
        found.append(_Seen(operation.name, Interval(low, high), width, names, own or kind in _NORMALISES))
        return None
    after = operation(*args, **kwargs)
    after = np.asarray(keras.ops.convert_to_numpy(after))
    return after, (*names, operation.name) if _ends(after) != _ends(before) else names


def _ends(values: Any) -> tuple[float, float, float]:
    """Computes the minimum and maximum of two images, and their maximal distance, where they differ.

    Elsewhere, as in the zeros around padded images, the values tell nothing about the range.
    """
    differ = values[0] != values[1]
    if not differ.any():
        raise ValueError("a layer took away the difference")
    kept = values[:, differ]
    return float(np.min(kept)), float(np.max(kept)), float(np.max(np.abs(kept[1] - kept[0])))


def _nodes(model: Any) -> list[Any]:
    """Sorts the calls of a functional model's layers and operations topologically."""
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


def check(
    model: keras.Model, element_spec: Any, output: Output, record: ElementType, wrong: list[str], padded: list[str], out: ElementType | None
) -> str:
    """Describes in one line what fits.

    A model that is not compiled is a warning, and so is a loss that counts the padding in the batches of the `padded` splits. `wrong` lists
    known mismatches. With the output types `out`, ranges of values are compared, too: scaled twice is a mismatch, not scaled a warning.
    Raises `ModelMismatchError` with every mismatch and `TypeError` for anything but a Keras model.
    """
    if not hasattr(model, "predict_on_batch"):
        raise TypeError(f"check takes a Keras model, got {model!r}")
    x = element_spec[0] if isinstance(element_spec, tuple) else element_spec
    twice, unscaled = range_problems(model, x, output.x, out)
    targets, unpaired = _targets(model, output)
    unfit = (m for t in targets for m in _of_target(t, output, record))
    found = [*wrong, *input_mismatches(model, x), *unpaired, *unfit, *twice]
    if found:
        raise ModelMismatchError("the model does not fit the pipeline:\n" + "\n".join(f"  - {m}" for m in found))
    line = visible(_summary(model, x, targets, output, record, out))
    diluted = [name_of(t.loss) for t in targets if padded and dilutes(t.loss)]
    if diluted:
        said = _listed(list(dict.fromkeys(diluted)))
        line += f"; {said} divides by all rows of a padded batch, including those of weight 0 (padded splits: {', '.join(padded)})"
        line += f": compile with `pipegen.WeightedMean({diluted[0]!r})`"
    line += "".join(f"; {problem}" for problem in unscaled)
    if diluted or unscaled or not getattr(model, "compiled", True):
        log.warning("%s", line)
    return line


def targets_of(plan: Plan) -> ElementType:
    """Types of a stored record; for padded features and along time, the output types, since items and times may be cut, and combining adds
    items. Classes of pixels and of time steps have the shape that leaves the steps."""
    made = {n: t for n, t in plan.out.items() if kind_of(t).storage in ("ragged", "made") or _of_frames(plan.emit.output, n)}
    made |= {n: t for n, t in plan.out.items() if kind_of(t).has(Samples)}
    for name, t in plan.read.items():
        if name in plan.out and kind_of(t).has(PixelClass):
            shape = plan.out[name].shape
            first = plan.emit.output.channels == "first" and kind_of(t).has(Indices)
            made[name] = t.with_(shape=shape[:1] if kind_of(t).has(TimestepClass) else (*shape[1:], 1) if first else (*shape[:-1], 1))
    return plan.read.replace(**made)


def _of_frames(output: Output, feature: str) -> bool:
    """Tells whether a feature says for each frame of a sound what happens: 0 or 1, for each class."""
    return output.encode.get(feature) == "frames"


def _summary(model: keras.Model, x: Any, targets: list[_Target], output: Output, record: ElementType, out: ElementType | None) -> str:
    """Describes in one line what fits; for a model that is not compiled, names a fitting loss."""
    inputs = _inputs(x, output.x)
    given = ", ".join(
        f"{name}{' ' * bool(name)}{_shape(tuple(spec.shape))} {spec.dtype.name}{range_of(out, feature)}" for name, feature, spec in inputs
    )
    shown = ", ".join(f"{t.feature} {_shape(t.shape)}" if t.shape else t.feature for t in targets)
    losses = ", ".join(name_of(t.loss) for t in targets if t.loss is not None)
    line = f"the model fits: {given}" + (f" -> {shown}" if shown else "") + (f", loss {losses}" if losses else "")
    padded = [f"`{t.feature}`" for t in targets if counts_padding(t.loss) and t.feature in record and kind_of(record[t.feature]).ragged]
    line += f"; the loss also counts the zeros that pad {' and '.join(padded)}" if padded else ""
    if getattr(model, "compiled", True):
        return line
    fits = fitting_loss(output, record)
    said = f" ({fits}{'' if '; ' in fits else ' fits the targets'})" if fits else ""
    return f"{line}; it is not compiled, so no loss was checked{said}"


def _inputs(x: Any, features: Any) -> list[tuple[str, str | None, Any]]:
    """Lists each input with its name, "" if it has none, and its feature, if known."""
    if isinstance(x, dict):
        return [(name, features.get(name) if isinstance(features, dict) else None, spec) for name, spec in x.items()]
    if isinstance(x, tuple):
        known = features if isinstance(features, (list, tuple)) and len(features) == len(x) else [None] * len(x)
        return [("", feature, spec) for feature, spec in zip(known, x, strict=True)]
    return [("", features if isinstance(features, str) else None, x)]


@dataclass(frozen=True)
class _Target:
    """A target of the pipeline; the shape, batch included (empty if unknown), the loss and the activation of the model's output for it.

    If there are several targets, messages begin with `said`.
    """

    feature: str
    said: str
    shape: tuple[int | None, ...]
    loss: Any
    ending: str | None


def _targets(model: keras.Model, output: Output) -> tuple[list[_Target], list[str]]:
    """Pairs targets with outputs; lists the mismatches of the others."""
    if output.y is None:
        return [], []
    tensors = list(getattr(model, "outputs", None) or ())
    loss = getattr(model, "loss", None)
    if isinstance(output.y, str):
        if len(tensors) > 1:
            return [], [f"the model has {len(tensors)} outputs, and the pipeline gives one target, `{output.y}`"]
        one = loss[0] if isinstance(loss, (list, tuple)) and len(loss) == 1 else loss
        return [_target(model, output.y, "", tensors[0] if tensors else None, None if isinstance(one, (list, tuple, dict)) else one)], []
    ends: list[str] = getattr(model, "output_names", None) or []
    if isinstance(output.y, dict):
        unknown = [n for n in output.y if ends and n not in ends]
        wrong = [f"`output: {{y: …}}` gives `{n}`, and the model's outputs are {', '.join(ends)}" for n in unknown]
        wrong += [f"the model has an output `{n}` that `output: {{y: …}}` does not give" for n in ends if n not in output.y]
        tensor_of = dict(zip(ends, tensors, strict=False))
        by_name = loss if isinstance(loss, dict) else dict(zip(ends, loss, strict=False)) if isinstance(loss, (list, tuple)) else {}
        named = [n for n in output.y if n not in unknown]
        return [_target(model, output.y[n], f"output `{n}`: ", tensor_of.get(n), by_name.get(n)) for n in named], wrong
    features = list(output.y)
    if tensors and len(tensors) != len(features):
        has = "one output" if len(tensors) == 1 else f"{len(tensors)} outputs"
        help_ = f"; `output: {{y: {features[0]}}}` gives one" if len(tensors) == 1 else ""
        return [], [f"the model has {has}, and the pipeline gives {len(features)} targets, {_listed(features)}{help_}"]
    losses = [loss.get(n) for n in ends] if isinstance(loss, dict) else loss if isinstance(loss, (list, tuple)) else [loss] * len(features)
    outputs = tensors or [None] * len(features)
    return [_target(model, f, f"target `{f}`: ", t, one) for f, t, one in zip(features, outputs, losses, strict=False)], []


def _target(model: keras.Model, feature: str, said: str, tensor: Any, loss: Any) -> _Target:
    shape = getattr(tensor, "shape", None) if tensor is not None else getattr(model, "output_shape", None)
    known = tuple(shape) if isinstance(shape, tuple) and all(d is None or isinstance(d, int) for d in shape) else ()
    return _Target(feature, said, known, loss, ending_of(tensor) if tensor is not None else None)


def _of_target(t: _Target, output: Output, record: ElementType) -> list[str]:
    target = record.get(t.feature)
    if target is None or kind_of(target).has(Levels):
        return []
    first = output.channels == "first" and kind_of(target).has(Indices)
    units = None if not t.shape else t.shape[1] if first and len(t.shape) == 4 else t.shape[-1]
    own = counts_padding(t.loss)  # a custom loss may match items, or quantiles of values, in its own way
    if not _of_frames(output, t.feature) and kind_of(target).storage in ("ragged", "made"):
        found = _padding_of(t, target) if own else []
    else:
        found = _units_of(output, t.feature, target, units) if isinstance(units, int) and not _is_along(output, t.feature, target) else []
        found = found or (_shapes_apart(t, output, target, units) if own or t.loss is None else [])
    if t.loss is not None:
        found += _loss_problems(t, target, output, units)
    return [t.said + m for m in found]


def _is_along(output: Output, feature: str, target: FeatureType) -> bool:
    """Tests if a target has a row for each step of time."""
    return _of_frames(output, feature) or kind_of(target).has(Samples, TimestepClass)


def _wanted(output: Output, feature: str, target: FeatureType, units: int | None) -> tuple[int | None, ...]:
    """The shape that a target needs of a model that ends in a number of units, without the batch."""
    kind = kind_of(target)
    if _of_frames(output, feature) or not kind.has(ExampleClass, PixelClass):
        return target.shape
    each = target.shape if kind.has(TimestepClass) else target.shape[:-1] if kind.has(PixelClass) else ()
    single = encoding_of(output, feature, target) == "binary" or (units == 1 and target.classes == 2 and not kind.has(TimestepClass))
    ends = 1 if single else target.classes
    return (ends, *each) if output.channels == "first" and kind.has(Indices) else (*each, ends)


def _shapes_apart(t: _Target, output: Output, target: FeatureType, units: int | None) -> list[str]:
    """Compares the shape of the model's output with the one that a target needs; Keras leaves out a last axis of 1, and would else repeat
    a target, such as a number for each example, along an axis that only the output has."""
    wanted = _wanted(output, t.feature, target, units)
    pairs = [(t.shape[1:], wanted)]
    pairs += [(t.shape[1:-1], wanted)] * (t.shape[-1:] == (1,)) + [(t.shape[1:], wanted[:-1])] * (wanted[-1:] == (1,))
    fits = any(
        len(given) == len(due) and all(None in both or both[0] == both[1] for both in zip(given, due, strict=True)) for given, due in pairs
    )
    if fits or not t.shape:
        return []
    what = ", a row for each step of time" if _is_along(output, t.feature, target) else ""
    needed = times(wanted) or "one number"
    return [f"the model gives {_shape(t.shape)} for each example, and `{t.feature}` needs {needed}{what}"]


def _padding_of(t: _Target, target: FeatureType) -> list[str]:
    """Compares the lengths of a padded target, or of its mask, with the model's output."""
    wanted = (None, *target.shape[1:]) if target.buckets else target.shape
    last = target.classes if target.beside is not None and target.classes is not None else 1  # a number for each class
    given = t.shape[1:-1] if len(t.shape) == len(wanted) + 2 and t.shape[-1] == last else t.shape[1:]
    if not t.shape or (len(given) == len(wanted) and all(g in (None, w) for g, w in zip(given, wanted, strict=True))):
        return []
    padded = f"padded to {_shape((None, *target.shape))}"
    if target.buckets:
        lengths = ", ".join(map(str, target.buckets))
        padded = f"{_shape((None, *wanted))}, as long as the batch needs: one of {lengths}; make the model's length `None`"
    return [f"the model gives {_shape(t.shape)} for each example, and `{t.feature}` is {padded}"]


def _input_names(model: keras.Model) -> list[str]:
    return [tensor.name.split(":")[0] for tensor in getattr(model, "inputs", None) or ()]


def input_mismatches(model: keras.Model, x: Any) -> list[str]:
    """Lists mismatches of the inputs of a model with `x`: the shapes and dtypes of one input, of a tuple or of a map by name."""
    inputs = getattr(model, "inputs", None)
    if not inputs:
        return []
    names = _input_names(model)
    if isinstance(x, dict):
        missing, extra = sorted(set(names) - set(x)), sorted(set(x) - set(names))
        found = [f"the model has an input `{n}` that the pipeline does not give; `output: {{x: {{{n}: FEATURE}}}}` does" for n in missing]
        found += [f"`output: {{x: …}}` gives `{n}`, and the model's inputs are {', '.join(names)}" for n in extra]
        pairs = [(n, x[n], t) for n, t in zip(names, inputs, strict=True) if n in x]
    else:
        specs = list(x) if isinstance(x, tuple) else [x]
        if len(specs) != len(inputs):
            return [f"the model has {len(inputs)} inputs ({', '.join(names)}), and the pipeline gives {len(specs)}"]
        found, pairs = [], list(zip(names, specs, inputs, strict=True))
    return [*found, *(mismatch for pair in pairs for mismatch in _tensor(*pair))]


def _tensor(name: str, spec: Any, tensor: Any) -> list[str]:
    found = []
    given, wanted = tuple(spec.shape), tuple(tensor.shape)
    if wanted and wanted[0] is not None and wanted[0] != given[0]:
        found.append(f"input `{name}` takes batches of {wanted[0]}, and the pipeline gives {given[0] or 'batches of any size'}")
    if len(given) != len(wanted) or any(w is not None and g != w for g, w in zip(given[1:], wanted[1:], strict=True)):
        varies = ", whose length follows the batch: leave it open, as `None`" if None in given[1:] else ""
        varies = ", whose size is that of a bucket: leave both sides open, as `None`" if given[1:].count(None) > 1 else varies
        found.append(f"input `{name}` takes {_shape(wanted)}, and the pipeline gives {_shape(given)}{varies}")
    other = str(tensor.dtype) in ("string", "bool") and str(tensor.dtype) != spec.dtype.name
    if other or (str(tensor.dtype).startswith(("int", "uint")) and spec.dtype.is_floating):
        found.append(f"input `{name}` takes {tensor.dtype}, and the pipeline gives {spec.dtype.name}")
    return found


def _shape(shape: tuple[int | None, ...]) -> str:
    return times(shape[1:]) or "a scalar"


def _units_of(output: Output, feature: str, target: FeatureType, units: int) -> list[str]:
    if not kind_of(target).has(ExampleClass, PixelClass):
        wanted = target.shape[-1] if target.shape else 1
        return [] if units == wanted else [f"the model ends in {units} units, and `{feature}` holds {wanted} for each example"]
    encoding, classes = encoding_of(output, feature, target), target.classes
    if encoding == "binary":
        return [] if units == 1 else [f"the model ends in {units} units, but `encode: {{{feature}: binary}}` needs 1"]
    if not classes or (encoding == "int" and units == 1 and classes == 2):
        return []
    return [] if units == classes else [f"the model ends in {units} units, and there are {classes} classes"]


def fitting_loss(output: Output, record: ElementType) -> str | None:
    """Names the Keras loss that fits the target, or one for each of several; `None` without targets.

    No loss of Keras fits a padded target: each counts the padding, whose zeros would be the first class.
    """
    targets = names(output.y)
    padded = [f for f in targets if f in record and (kind_of(record[f]).ragged or record[f].beside is not None)]

    def fits(feature: str) -> str:
        target = record.get(feature)
        if feature in padded:
            return "your own"
        if _of_frames(output, feature):
            return FITS["binary"]
        if target is None or not kind_of(target).has(ExampleClass, PixelClass):
            return FITS["binary" if target is not None and kind_of(target).has(Presence) else "tensor"]
        return FITS[encoding_of(output, feature, target)]

    if output.y is None:
        return None
    if isinstance(output.y, str):
        named = fits(output.y)
    elif isinstance(output.y, dict):
        named = "{" + ", ".join(f"{key}: {fits(feature)}" for key, feature in output.y.items()) + "}"
    else:
        named = "[" + ", ".join(map(fits, output.y)) + "]"
    if not padded:
        return named
    masks = list(dict.fromkeys(record.valid(f) for f in padded))
    lacking = [name for name in masks if name not in targets and name not in names(output.x)]
    add = f", which {is_are(len(lacking))} not in `output`: add {_listed(lacking)} to `y`" if lacking else ""
    return f"{named}; {_listed(padded)} {is_are(len(padded))} padded where {_listed(masks)} {is_are(len(masks))} false{add}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)
