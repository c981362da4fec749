"""Compares what a pipeline gives with what a Keras model takes, before `fit` finds out the hard way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipegen.errors import ModelMismatchError
from pipegen.log import log
from pipegen.ops.kinds.registry import kind_of
from pipegen.plan.outputs import encoding_of
from pipegen.terminal import visible
from pipegen.types import times
from pipegen.views.model_loss import FITS, classes_of_items, counts_padding, dilutes, ending_of, loss_problems, name_of
from pipegen.views.model_range import range_of, range_problems

if TYPE_CHECKING:
    from collections.abc import Sequence

    import keras

    from pipegen.plan.nodes import Plan
    from pipegen.spec.models import Output
    from pipegen.types import ElementType, FeatureType


def check(
    model: keras.Model,
    element_spec: Any,
    output: Output,
    record: ElementType,
    wrong: Sequence[str] = (),
    padded: Sequence[str] = (),
    out: ElementType | None = None,
) -> str:
    """Says in one line what fits; for the arguments see `mismatches`. A model that is not compiled is a warning, and so is a loss that
    counts what fills up the batches of the splits that are `padded`; `wrong` is known already. With the types of what leaves, `out`,
    ranges of values are compared, too: scaled twice is a mismatch, and not at all a warning.

    Raises:
        ModelMismatchError: Listing everything that does not fit.
        TypeError: For anything but a Keras model.
    """
    if not hasattr(model, "predict_on_batch"):
        raise TypeError(f"check takes a Keras model, got {model!r}")
    x = element_spec[0] if isinstance(element_spec, tuple) else element_spec
    twice, unscaled = range_problems(model, x, output.x, out)
    found = [*wrong, *mismatches(model, element_spec, output, record), *twice]
    if found:
        raise ModelMismatchError("the model does not fit the pipeline:\n" + "\n".join(f"  - {m}" for m in found))
    line = visible(summary(model, element_spec, output, record, out))
    diluted = [name_of(t.loss) for t in _targets(model, output)[0] if padded and dilutes(t.loss)]
    if diluted:
        said = " and ".join(f"`{name}`" for name in dict.fromkeys(diluted))
        line += f"; {said} divides by all rows of a padded batch, those of weight 0, too (splits padded: {', '.join(padded)})"
        line += f": compile with `pipegen.WeightedMean({diluted[0]!r})`"
    line += "".join(f"; {problem}" for problem in unscaled)
    if diluted or unscaled or not is_compiled(model):
        log.warning("%s", line)
    return line


def targets_of(plan: Plan) -> ElementType:
    """Returns the types of a record as it is stored, and of padded features as they leave, since places can be cut and mixing adds some."""
    return plan.read.replace(**{name: t for name, t in plan.out.items() if kind_of(t).padded})


def mismatches(model: keras.Model, element_spec: Any, output: Output, record: ElementType) -> list[str]:
    """Everything about `model` that does not fit the batches; empty when it fits.

    Args:
        model: The model.
        element_spec: The shapes and dtypes of a batch.
        output: What the pipeline gives.
        record: The type of a stored record, whose features the targets are.
    """
    x = element_spec[0] if isinstance(element_spec, tuple) else element_spec
    targets, found = _targets(model, output)
    return [*input_mismatches(model, x), *found, *(m for t in targets for m in _of_target(t, output, record))]


def summary(model: keras.Model, element_spec: Any, output: Output, record: ElementType, out: ElementType | None = None) -> str:
    """Says what fits, in one line; of a model that is not compiled also the loss that would."""
    x = element_spec[0] if isinstance(element_spec, tuple) else element_spec
    given = ", ".join(
        f"{f'{name} ' if name else ''}{_shape(tuple(spec.shape))} {spec.dtype.name}{range_of(out, feature)}"
        for name, feature, spec in _inputs(x, output.x)
    )
    targets, _ = _targets(model, output)
    shown = ", ".join(f"{t.feature} {_shape(t.shape)}" if t.shape else t.feature for t in targets)
    losses = ", ".join(name_of(t.loss) for t in targets if t.loss is not None)
    line = f"the model fits: {given}" + (f" -> {shown}" if shown else "") + (f", loss {losses}" if losses else "")
    padded = [f"`{t.feature}`" for t in targets if counts_padding(t.loss) and t.feature in record and kind_of(record[t.feature]).ragged]
    line += f"; the loss counts the zeros that pad {' and '.join(padded)}, too" if padded else ""
    if is_compiled(model):
        return line
    fits = fitting_loss(output, record)
    said = f" ({fits}{'' if '; ' in fits else ' fits the targets'})" if fits else ""
    return f"{line}; it is not compiled, so no loss was looked at{said}"


def _inputs(x: Any, features: Any) -> list[tuple[str | None, str | None, Any]]:
    """Returns the name, the feature and the shape of each input."""
    if isinstance(x, dict):
        return [(name, features.get(name) if isinstance(features, dict) else None, spec) for name, spec in x.items()]
    if isinstance(x, tuple):
        known = features if isinstance(features, (list, tuple)) and len(features) == len(x) else [None] * len(x)
        return [(None, feature, spec) for feature, spec in zip(known, x, strict=True)]
    return [(None, features if isinstance(features, str) else None, x)]


def is_compiled(model: keras.Model) -> bool:
    """Tells whether a model has been compiled."""
    return bool(getattr(model, "compiled", True))


@dataclass(frozen=True)
class _Target:
    """A target of the pipeline and what of the model meets it.

    Attributes:
        feature: The feature.
        said: How messages begin, where there are several.
        shape: The shape of the model's output, the batch included; empty where it is not known.
        loss: Its loss; `None` without one.
        ending: The activation that the output ends in, where it is known.
    """

    feature: str
    said: str
    shape: tuple[int | None, ...]
    loss: Any
    ending: str | None


def _targets(model: keras.Model, output: Output) -> tuple[list[_Target], list[str]]:
    """Returns the targets that have an output, and what is wrong with the others."""
    if output.y is None:
        return [], []
    tensors = list(getattr(model, "outputs", None) or ())
    loss = getattr(model, "loss", None)
    if isinstance(output.y, str):
        if len(tensors) > 1:
            return [], [f"the model has {len(tensors)} outputs, and the pipeline gives one target, `{output.y}`"]
        one = loss[0] if isinstance(loss, (list, tuple)) and len(loss) == 1 else loss
        return [_target(model, output.y, "", tensors[0] if tensors else None, None if isinstance(one, (list, tuple, dict)) else one)], []
    names: list[str] = getattr(model, "output_names", None) or []
    if isinstance(output.y, dict):
        wrong = [
            f"`output: {{y: …}}` gives `{n}`, and the model's outputs are {', '.join(names)}" for n in output.y if names and n not in names
        ]
        wrong += [f"the model has an output `{n}` that `output: {{y: …}}` does not give" for n in names if names and n not in output.y]
        tensor_of = dict(zip(names, tensors, strict=False))
        by_name = loss if isinstance(loss, dict) else dict(zip(names, loss, strict=False)) if isinstance(loss, (list, tuple)) else {}
        named = [n for n in output.y if not names or n in names]
        return [_target(model, output.y[n], f"output `{n}`: ", tensor_of.get(n), by_name.get(n)) for n in named], wrong
    features = list(output.y)
    if tensors and len(tensors) != len(features):
        has = "one output" if len(tensors) == 1 else f"{len(tensors)} outputs"
        help_ = f"; `output: {{y: {features[0]}}}` gives one" if len(tensors) == 1 else ""
        return [], [
            f"the model has {has}, and the pipeline gives {len(features)} targets, {' and '.join(f'`{f}`' for f in features)}{help_}"
        ]
    losses = [loss.get(n) for n in names] if isinstance(loss, dict) else loss if isinstance(loss, (list, tuple)) else [loss] * len(features)
    outputs = tensors or [None] * len(features)
    return [_target(model, f, f"target `{f}`: ", t, one) for f, t, one in zip(features, outputs, losses, strict=False)], []


def _target(model: keras.Model, feature: str, said: str, tensor: Any, loss: Any) -> _Target:
    shape = getattr(tensor, "shape", None) if tensor is not None else getattr(model, "output_shape", None)
    plain = isinstance(shape, tuple) and all(d is None or isinstance(d, int) for d in shape)
    return _Target(
        feature, said, tuple(shape) if plain and shape is not None else (), loss, ending_of(tensor) if tensor is not None else None
    )


def _of_target(t: _Target, output: Output, record: ElementType) -> list[str]:
    target = record.get(t.feature)
    first = output.channels == "first" and target is not None and kind_of(target).categorical
    units = None if not t.shape else t.shape[1] if first and len(t.shape) == 4 else t.shape[-1]
    if target is not None and kind_of(target).padded:
        found = _padding_of(t, target) if counts_padding(t.loss) else []  # another one may match items with places in its own way
    else:
        found = _units_of(output, t.feature, record, units) if isinstance(units, int) else []
    if t.loss is not None:
        found += loss_problems(t.loss, output, t.feature, record, t.ending, units)
    return [t.said + m for m in found]


def _padding_of(t: _Target, target: FeatureType) -> list[str]:
    """Compares the places of a padded target, or of what says which of them hold an item, with those that the model gives."""
    wanted = (None, *target.shape[1:]) if target.buckets else target.shape
    last = target.classes if classes_of_items(target) else 1  # a number for each class
    given = t.shape[1:-1] if len(t.shape) == len(wanted) + 2 and t.shape[-1] == last else t.shape[1:]
    if not t.shape or (len(given) == len(wanted) and all(g in (None, w) for g, w in zip(given, wanted, strict=True))):
        return []
    padded = f"padded to {_shape((None, *target.shape))}"
    if target.buckets:
        lengths = ", ".join(map(str, target.buckets))
        padded = f"{_shape((None, *wanted))}, as long as the batch needs: one of {lengths}; give the model an open length"
    return [f"the model gives {_shape(t.shape)} for each example, and `{t.feature}` is {padded}"]


def input_mismatches(model: keras.Model, x: Any) -> list[str]:
    """Everything about the inputs of a model that does not fit `x`: the shapes and dtypes of one, of a tuple or of a map by name."""
    inputs = getattr(model, "inputs", None)
    if not inputs:
        return []
    names = [tensor.name.split(":")[0] for tensor in inputs]
    if isinstance(x, dict):
        given = dict(x)
        missing, extra = sorted(set(names) - set(given)), sorted(set(given) - set(names))
        found = [f"the model has an input `{n}` that the pipeline does not give; `output: {{x: {{{n}: FEATURE}}}}` does" for n in missing]
        found += [f"`output: {{x: …}}` gives `{n}`, and the model's inputs are {', '.join(names)}" for n in extra]
        pairs = [(n, given[n], t) for n, t in zip(names, inputs, strict=True) if n in given]
    else:
        specs = list(x) if isinstance(x, tuple) else [x]
        if len(specs) != len(inputs):
            return [f"the model has {len(inputs)} inputs ({', '.join(names)}), and the pipeline gives {len(specs)}"]
        found, pairs = [], list(zip(names, specs, inputs, strict=True))
    for name, spec, tensor in pairs:
        found += _tensor(name, spec, tensor)
    return found


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


def _units_of(output: Output, feature: str, record: ElementType, units: int) -> list[str]:
    target = record.get(feature)
    if target is None or kind_of(target).levels:
        return []
    if not kind_of(target).holds_classes:
        wanted = target.shape[-1] if target.shape else 1
        return [] if units == wanted else [f"the model ends in {units} units, and `{feature}` holds {wanted} for each example"]
    encoding, classes = encoding_of(output, feature, target), target.classes
    if encoding == "binary":
        return [] if units == 1 else [f"the model ends in {units} units, and `encode: {{{feature}: binary}}` wants 1"]
    if not classes or (encoding == "int" and units == 1 and classes == 2):
        return []
    return [] if units == classes else [f"the model ends in {units} units, and there are {classes} classes"]


def fitting_loss(output: Output, record: ElementType) -> str | None:
    """Names the Keras loss that fits the target, or one for each of several; `None` without targets.

    No loss of Keras fits a target that is padded: each counts the padding, whose zeros are of the first class.
    """
    targets = _features_of(output.y)
    padded = [f for f in targets if f in record and _is_padded(record[f])]

    def fits(feature: str) -> str:
        target = record.get(feature)
        if feature in padded:
            return "your own"
        if target is None or not kind_of(target).holds_classes:
            return FITS["binary" if target is not None and kind_of(target).valid else "tensor"]
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
    lacking = [name for name in masks if name not in targets and name not in _features_of(output.x)]
    add = f", which {_are(lacking)} not in `output`: add {_listed(lacking)} to `y`" if lacking else ""
    return f"{named}; {_listed(padded)} {_are(padded)} padded where {_listed(masks)} {_are(masks)} false{add}"


def _is_padded(target: FeatureType) -> bool:
    """Tells whether an example has any number of items of it, to which a batch adds padding."""
    return kind_of(target).ragged or target.beside is not None


def _features_of(part: Any) -> list[str]:
    """Returns the features of `x` or `y` of an output."""
    if part is None:
        return []
    return [part] if isinstance(part, str) else list(part.values() if isinstance(part, dict) else part)


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)
