"""Compares what a pipeline gives with what a Keras model takes, before `fit` finds out the hard way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.plan.outputs import encoding_of

if TYPE_CHECKING:
    import keras

    from pipegen.spec.models import Output
    from pipegen.types import ElementType

_SPARSE = ("sparse_categorical_crossentropy", "SparseCategoricalCrossentropy")
_ONE_HOT = ("categorical_crossentropy", "CategoricalCrossentropy", "CategoricalFocalCrossentropy", "categorical_focal_crossentropy")
_BINARY = ("binary_crossentropy", "BinaryCrossentropy", "BinaryFocalCrossentropy", "binary_focal_crossentropy")
_FITS = {
    "int": "sparse_categorical_crossentropy",
    "one_hot": "categorical_crossentropy",
    "binary": "binary_crossentropy",
    "multi_hot": "binary_crossentropy",
    "tensor": "mean_squared_error",
}
"""The loss for each encoding of a label or a mask, and for numbers."""


def mismatches(model: keras.Model, element_spec: Any, output: Output, record: ElementType) -> list[str]:
    """Everything about `model` that does not fit the batches; empty when it fits.

    Args:
        model: The model.
        element_spec: The shapes and dtypes of a batch.
        output: What the pipeline gives.
        record: The type of a stored record, whose features the targets are.
    """
    x = element_spec[0] if isinstance(element_spec, tuple) else element_spec
    return [*_inputs(model, x), *_units(model, output, record), *_loss(model, output, record)]


def _inputs(model: keras.Model, x: Any) -> list[str]:
    inputs = getattr(model, "inputs", None)
    if not inputs:
        return []
    names = [tensor.name.split(":")[0] for tensor in inputs]
    if isinstance(x, dict):
        given = dict(x)
        missing, extra = sorted(set(names) - set(given)), sorted(set(given) - set(names))
        found = [f"the model has an input `{n}` that `output: {{x: …}}` does not give" for n in missing]
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
    if len(given) != len(wanted) or any(g is not None and w is not None and g != w for g, w in zip(given[1:], wanted[1:], strict=True)):
        found.append(f"input `{name}` takes {_shape(wanted)}, and the pipeline gives {_shape(given)}")
    if str(tensor.dtype) in ("string", "bool") or (str(tensor.dtype).startswith("int") and spec.dtype.is_floating):
        found.append(f"input `{name}` takes {tensor.dtype}, and the pipeline gives {spec.dtype.name}")
    return found


def _shape(shape: tuple[int | None, ...]) -> str:
    return "×".join("?" if d is None else str(d) for d in shape[1:]) or "a scalar"


def _units(model: keras.Model, output: Output, record: ElementType) -> list[str]:
    outputs = getattr(model, "outputs", None) or ()
    if len(outputs) > 1 and isinstance(output.y, str):
        return [f"the model has {len(outputs)} outputs, and the pipeline gives one target, `{output.y}`"]
    if isinstance(output.y, dict):
        given = sorted(output.y)
        names: list[str] = getattr(model, "output_names", None) or given
        shapes: Any = getattr(model, "output_shape", None)
        found = [f"`output: {{y: …}}` gives `{n}`, and the model's outputs are {', '.join(names)}" for n in given if n not in names]
        if isinstance(shapes, (list, tuple)) and len(shapes) == len(names) and all(isinstance(s, (list, tuple)) for s in shapes):
            shapes = dict(zip(names, shapes, strict=True))
        for name in given if isinstance(shapes, dict) else ():
            units = shapes[name][-1] if name in shapes else None
            if isinstance(units, int):
                found += [f"output `{name}`: {m}" for m in _units_of(output, output.y[name], record, units)]
        return found
    shape = getattr(model, "output_shape", None)
    if not isinstance(shape, tuple) or not shape or not isinstance(output.y, str):
        return []
    target = record.get(output.y)
    first = output.channels == "first" and target is not None and target.decoded_kind == "mask"
    units = shape[1] if first and len(shape) == 4 else shape[-1]
    return _units_of(output, output.y, record, units) if isinstance(units, int) else []


def _units_of(output: Output, feature: str, record: ElementType, units: int) -> list[str]:
    target = record.get(feature)
    if target is None or target.decoded_kind == "image":
        return []
    if not target.holds_classes:
        wanted = target.shape[-1] if target.shape else 1
        return [] if units == wanted else [f"the model ends in {units} units, and `{feature}` holds {wanted} for each example"]
    encoding, classes = encoding_of(output, feature, target), target.classes
    if encoding == "binary":
        return [] if units == 1 else [f"the model ends in {units} units, and `encode: binary` wants 1"]
    if not classes or (encoding == "int" and units == 1 and classes == 2):
        return []
    return [] if units == classes else [f"the model ends in {units} units, and there are {classes} classes"]


def _loss(model: keras.Model, output: Output, record: ElementType) -> list[str]:
    loss = getattr(model, "loss", None)
    if isinstance(loss, list) and len(loss) == 1:
        loss = loss[0]
    if isinstance(loss, dict) and isinstance(output.y, dict):
        return [m for key, feature in output.y.items() if key in loss for m in _loss_of(loss[key], output, feature, record)]
    if loss is None or isinstance(loss, (dict, list)) or not isinstance(output.y, str):
        return []
    return _loss_of(loss, output, output.y, record)


def _loss_of(loss: Any, output: Output, feature: str, record: ElementType) -> list[str]:
    target = record.get(feature)
    name = loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)
    if target is None or target.decoded_kind == "image":
        return []
    if not target.holds_classes:
        wrong = name in (*_SPARSE, *_ONE_HOT)
        return [f"the loss `{name}` is for classes, and `{feature}` holds numbers; {_FITS['tensor']} fits them"] if wrong else []
    encoding = encoding_of(output, feature, target)
    unfit = {"int": _ONE_HOT, "one_hot": _SPARSE, "binary": (*_SPARSE, *_ONE_HOT), "multi_hot": (*_SPARSE, *_ONE_HOT)}[encoding]
    if name in unfit:
        return [f"the loss `{name}` does not fit `encode: {encoding}`; {_FITS[encoding]} does"]
    if encoding == "int" and name in _BINARY:
        return [f"the loss `{name}` wants `output: {{encode: {{{feature}: binary}}}}`; with `int` use {_FITS['int']}"]
    return []


def fitting_loss(output: Output, record: ElementType) -> str | None:
    """The Keras loss that fits the target, or one for each of several, as text; `None` without targets."""

    def fits(feature: str) -> str:
        target = record.get(feature)
        if target is None or not target.holds_classes:
            return _FITS["tensor"]
        return _FITS[encoding_of(output, feature, target)]

    if output.y is None:
        return None
    if isinstance(output.y, str):
        return fits(output.y)
    if isinstance(output.y, dict):
        return "{" + ", ".join(f"{key}: {fits(feature)}" for key, feature in output.y.items()) + "}"
    return "[" + ", ".join(map(fits, output.y)) + "]"
