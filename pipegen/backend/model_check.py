"""Compares what a pipeline gives with what a Keras model takes, before `fit` finds out the hard way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import keras

    from pipegen.spec.models import Output

_SPARSE = ("sparse_categorical_crossentropy", "SparseCategoricalCrossentropy")
_ONE_HOT = ("categorical_crossentropy", "CategoricalCrossentropy", "CategoricalFocalCrossentropy", "categorical_focal_crossentropy")
_BINARY = ("binary_crossentropy", "BinaryCrossentropy", "BinaryFocalCrossentropy", "binary_focal_crossentropy")


def mismatches(model: keras.Model, element_spec: Any, output: Output, num_classes: int) -> list[str]:
    """Everything about `model` that does not fit the batches; empty when it fits."""
    x = element_spec[0] if isinstance(element_spec, tuple) else element_spec
    return [*_inputs(model, x), *_units(model, output, num_classes), *_loss(model, output)]


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


def _units(model: keras.Model, output: Output, num_classes: int) -> list[str]:
    shape = getattr(model, "output_shape", None)
    outputs = getattr(model, "outputs", None) or ()
    if len(outputs) > 1 and isinstance(output.y, str):
        return [f"the model has {len(outputs)} outputs, and the pipeline gives one target, `{output.y}`"]
    if not isinstance(shape, tuple) or not shape or not isinstance(shape[-1], int) or not num_classes or not isinstance(output.y, str):
        return []
    encoding, units = output.encode.get(output.y, "int"), shape[-1]
    if encoding == "binary":
        return [] if units == 1 else [f"the model ends in {units} units, and `encode: binary` wants 1"]
    if encoding == "int" and units == 1 and num_classes == 2:
        return []
    return [] if units == num_classes else [f"the model ends in {units} units, and there are {num_classes} classes"]


def _loss(model: keras.Model, output: Output) -> list[str]:
    loss = getattr(model, "loss", None)
    if isinstance(loss, list) and len(loss) == 1:
        loss = loss[0]
    if loss is None or isinstance(loss, (dict, list)) or not isinstance(output.y, str):
        return []
    name = loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)
    encoding = output.encode.get(output.y, "int")
    wrong = {"int": (*_ONE_HOT,), "one_hot": (*_SPARSE,), "binary": (*_SPARSE, *_ONE_HOT)}.get(encoding, ())
    fits = {"int": "sparse_categorical_crossentropy", "one_hot": "categorical_crossentropy", "binary": "binary_crossentropy"}
    if name in wrong:
        return [f"the loss `{name}` does not fit `encode: {encoding}`; {fits[encoding]} does"]
    if encoding == "int" and name in _BINARY:
        return [f"the loss `{name}` wants `output: {{encode: {{{output.y}: binary}}}}`; with `int` use {fits['int']}"]
    return []


def fitting_loss(output: Output) -> str | None:
    """The name of the Keras loss that fits the targets."""
    if not isinstance(output.y, str):
        return None
    encoding = output.encode.get(output.y, "int")
    return {"int": "sparse_categorical_crossentropy", "one_hot": "categorical_crossentropy"}.get(encoding, "binary_crossentropy")
