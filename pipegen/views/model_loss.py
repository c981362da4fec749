"""Checks that a loss fits the targets, and the model's last layer the loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.ops.kinds.registry import kind_of
from pipegen.plan.outputs import encoding_of

if TYPE_CHECKING:
    from pipegen.spec.models import Output
    from pipegen.types import ElementType, FeatureType

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
"""The loss for each encoding of a label or a mask, and for numbers."""
_CLASSES = dict(zip((_SPARSE[0], _ONE_HOT[0], _BINARY[0]), (_SPARSE[1], _ONE_HOT[1], _BINARY[1]), strict=True))
_PROBABILITIES = ("softmax", "sigmoid", "hard_sigmoid")
_NO_PROBABILITIES = ("linear", "relu", "relu6", "tanh", "gelu", "elu", "selu", "silu", "swish", "leaky_relu", "softplus", "log_softmax")
_CARRIERS = frozenset({"Reshape", "Flatten", "Permute", "Dropout", "Identity", "ZeroPadding2D", "Cropping2D", "UpSampling2D"})
"""Layers that hand values on; what they are decided before."""
_DEPTH = 20


def loss_problems(loss: Any, output: Output, feature: str, record: ElementType, ending: str | None, units: int | None) -> list[str]:
    """Returns everything about a loss that fits neither its target nor what the model ends in.

    Args:
        loss: The loss, as Keras takes it.
        output: What the pipeline gives.
        feature: The target.
        record: The type of a stored record.
        ending: The activation that the model ends in, where it is known.
        units: The size of the last axis, where it is known.
    """
    target = record.get(feature)
    name = name_of(loss)
    if target is None or kind_of(target).levels:
        return []
    if classes_of_items(target):
        return (
            [f"the loss `{name}` takes one-hot classes, and `{feature}` holds class indices; {FITS['int']} fits them"]
            if name in _ONE_HOT
            else []
        )
    if not kind_of(target).holds_classes:
        if name in (*_SPARSE, *_ONE_HOT):
            holds, fits = ("truth values", "binary") if kind_of(target).valid else ("numbers", "tensor")
            return [f"the loss `{name}` is for classes, and `{feature}` holds {holds}; {FITS[fits]} fits them"]
        return _of_ending(loss, name, ending, units, "sigmoid") if name in _BINARY and kind_of(target).valid else []
    encoding = encoding_of(output, feature, target)
    unfit = {"int": _ONE_HOT, "one_hot": _SPARSE, "binary": (*_SPARSE, *_ONE_HOT), "multi_hot": (*_SPARSE, *_ONE_HOT)}[encoding]
    if name in unfit:
        return [f"the loss `{name}` does not fit `encode: {{{feature}: {encoding}}}`; {FITS[encoding]} does"]
    if encoding == "int" and name in _BINARY:
        return [f"the loss `{name}` wants `output: {{encode: {{{feature}: binary}}}}`; with `int` use {FITS['int']}"]
    if name in (*_SPARSE, *_ONE_HOT, *_BINARY):
        return _of_ending(loss, name, ending, units, "sigmoid" if name in _BINARY else "softmax")
    return []


def classes_of_items(target: FeatureType) -> bool:
    """Tells whether it is the class index of each item of another feature."""
    return target.beside is not None and target.classes is not None


def _of_ending(loss: Any, name: str, ending: str | None, units: int | None, wanted: str) -> list[str]:
    """Checks whether a loss that takes probabilities gets them, and one that takes logits those."""
    if ending == "softmax" and units == 1:
        return ["the model ends in `softmax` over one unit, which is always 1; use `sigmoid`"]
    logits = _takes_logits(loss)
    if logits is False and ending in _NO_PROBABILITIES:
        what = "no activation, so in logits" if ending == "linear" else f"`{ending}`, which gives no probabilities"
        made = f"keras.losses.{_CLASSES.get(name, name)}(from_logits=True)"
        way = f"end it in `{wanted}`" + (f", or use `{made}`" if ending == "linear" else "")
        return [f"the model ends in {what}, and the loss `{name}` takes probabilities: {way}"]
    if logits and ending in _PROBABILITIES:
        return [f"the model ends in `{ending}`, and the loss `{name}` has `from_logits=True`: leave out one of the two"]
    return []


def _takes_logits(loss: Any) -> bool | None:
    """Tells whether a loss of classes takes logits; `None` where it does not say. Names and functions of Keras take probabilities."""
    own = getattr(loss, "from_logits", None)
    if isinstance(own, bool):
        return own
    try:
        given = loss.get_config().get("from_logits")
    except Exception:  # a loss of the user's own may do anything
        given = None
    if isinstance(given, bool):
        return given
    return False if counts_padding(loss) else None


def counts_padding(loss: Any) -> bool:
    """Tells whether a loss is Keras' own, to which every place of a padded target is an item."""
    return isinstance(loss, str) or (callable(loss) and getattr(loss, "__module__", "").startswith("keras"))


def dilutes(loss: Any) -> bool:
    """Tells whether a loss divides by the examples of a batch, whatever they weigh, as Keras' own do unless told otherwise."""
    return isinstance(loss, str) or getattr(loss, "reduction", None) in ("sum_over_batch_size", "mean", "auto")


def name_of(loss: Any) -> str:
    """Returns what a loss is called."""
    return loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)


def ending_of(tensor: Any, depth: int = 0) -> str | None:
    """Returns the activation that decides an output of a model; `None` where it is not known."""
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
