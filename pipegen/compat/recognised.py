"""What a function of Keras' layers, as it is given to `map`, does to images and labels: proved by tracing it, or refused.

The function is traced as `tf.data` would trace it, while the layers compute nothing. So its graph has its own operations alone, and the
calls of layers. Each result must be an argument, or a chain of known calls and of a few operations on one argument. Whatever else is met
ends the proof. Operations with an effect or a state, such as prints, random numbers and calls of Python, are refused wherever they stand.
The function is traced twice, so that a choice that Python makes by chance is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pipegen.frozen import dataclass
from pipegen.lazy import np, tf
from pipegen.private.keras import LayerCall, opaque_calls
from pipegen.spec.peers.converting import Unsuited
from pipegen.spec.peers.objects import KerasLayers, layer_node

KNOWN = (
    *("CenterCrop", "Normalization", "RandomBrightness", "RandomColorDegeneration", "RandomContrast", "RandomFlip", "RandomGrayscale"),
    *("RandomHue", "RandomInvert", "RandomRotation", "RandomTranslation", "RandomZoom", "Rescaling", "Resizing"),
)
"""Layers whose steps have the same meaning: the distribution of what is drawn, the fill, the interpolation."""
_PASSED_ON = ("Identity", "StopGradient")
_WITH_A_CONSTANT = ("Mul", "RealDiv", "Sub", "AddV2")


Range = tuple[float, float]


class NotProved(Exception):
    """Says what was met that is not understood."""


@dataclass(frozen=True)
class Proved:
    """What a function of images, or of images and labels, does.

    Attributes:
        steps: The steps of a spec for the images.
        one_hot: The number of classes, if labels are encoded.
        element_spec: The types of the results.
        range: The range of the values of the images; `None` if not known.
    """

    steps: tuple[dict[str, Any], ...]
    one_hot: int | None
    element_spec: Any
    range: Range | None


def recognised(function: Callable[..., Any], element_spec: Any, values: Range | None) -> Proved:
    """Proves what a function does to elements of a data set: images with a range of values, or a pair of images and labels. Raises
    `NotProved`."""
    first, second = (_traced(function, element_spec, values) for _ in range(2))
    if (first.steps, first.one_hot) != (second.steps, second.one_hot):
        raise NotProved("two traces of it differ, by a choice that Python makes")
    return first


def _traced(function: Callable[..., Any], element_spec: Any, values: Range | None) -> Proved:
    import keras

    known = KerasLayers(values)

    given = element_spec if isinstance(element_spec, tuple) else (element_spec,)
    # Other random layers are told by their names, not by the operations inside.
    layers = [layer for name, layer in vars(keras.layers).items() if name in KNOWN or name.startswith("Random")]
    with opaque_calls(layers) as calls:
        try:
            graph = tf.function(function, autograph=True).get_concrete_function(*given).graph
        except Exception as error:  # whatever the code says: it then runs as it is
            said = str(error).strip().splitlines() or [""]
            raise NotProved(f"it cannot be traced: {type(error).__name__}: {said[0]:.90}") from None
    for operation in graph.get_operations():
        if operation.type not in ("Placeholder", "NoOp", "Const") and (operation.op_def is None or operation.op_def.is_stateful):
            raise NotProved(f"the operation `{operation.type}` has side effects or a state")
    walk = _Walk({own.name: i for i, own in enumerate(graph.inputs[: len(given)])}, _captured(graph), calls)
    results = graph.structured_outputs
    several = isinstance(results, (tuple, list))
    results = results if several else (results,)
    if several != isinstance(element_spec, tuple) or len(results) != len(given) or not all(map(tf.is_tensor, results)):
        raise NotProved("its results have another structure than its arguments")
    steps: list[dict[str, Any]] = []
    one_hot: int | None = None
    for place, result in enumerate(results):
        argument, chain = walk.back(result)
        if argument != place:
            raise NotProved("it returns images or labels in another place")
        if place == 0:
            steps = [step for link in chain for step in _steps(link, known)]
        elif chain:
            one_hot = _classes(chain)
    types = tuple(tf.TensorSpec(own.shape, own.dtype) for own in results)
    return Proved(tuple(_joined(steps)), one_hot, types if isinstance(element_spec, tuple) else types[0], known.range)


def _captured(graph: Any) -> dict[str, Any]:
    """The values of tensors from outside of a graph, by the name of their placeholder."""
    known = ((outer, inner) for outer, inner in graph.captures if outer.dtype != tf.resource and hasattr(outer, "numpy"))
    return {inner.name: outer.numpy() for outer, inner in known}


Link = LayerCall | tuple[str, Any]
"""A call of a layer; or an operation with its constant."""


@dataclass(frozen=True)
class _Walk:
    """A way back through a graph."""

    arguments: Mapping[str, int]  # the place of each argument, by the name of its tensor
    captured: Mapping[str, Any]
    calls: Mapping[tuple[int, str], LayerCall]

    def back(self, tensor: Any) -> tuple[int, list[Link]]:
        """Goes back from a result to an argument: its place, and what is done to it, in order."""
        links: list[Link] = []
        while tensor.name not in self.arguments:
            operation, inputs = tensor.op, list(tensor.op.inputs)
            call = self.calls.get((id(operation.graph), operation.name))
            if call is not None:
                links.append(call)
                tensor = call.given
                continue
            source = 0  # the input that comes from the argument
            if operation.type == "Cast":
                if operation.get_attr("SrcT") != operation.get_attr("DstT"):
                    links.append(("Cast", operation.get_attr("DstT")))
            elif operation.type == "OneHot" and operation.get_attr("axis") == -1:
                links.append(("OneHot", (*(float(self.constant(value)) for value in inputs[1:]), operation.get_attr("T"))))
            elif operation.type == "ResizeBilinear" and operation.get_attr("half_pixel_centers"):
                links.append((operation.type, self.constant(inputs[1]).tolist()))
            elif operation.type in _WITH_A_CONSTANT:
                which = [i for i, value in enumerate(inputs) if value.op.type != "Const" and value.name not in self.captured]
                if len(which) != 1 or (which == [1] and operation.type == "RealDiv"):
                    raise NotProved(f"the operation `{operation.type}` is known only with the images first and a constant second")
                (source,) = which
                if tensor.shape.rank != inputs[source].shape.rank:
                    raise NotProved(f"the operation `{operation.type}` adds a dimension")
                links.append((f"{operation.type} from" if source else operation.type, self.constant(inputs[1 - source])))
            elif operation.type not in _PASSED_ON:
                raise NotProved(f"the operation `{operation.type}` is not known")
            tensor = inputs[source]
        return self.arguments[tensor.name], links[::-1]

    def constant(self, tensor: Any) -> Any:
        """The value of a tensor that is the same for every element."""
        value = self.captured.get(tensor.name) if tensor.op.type == "Placeholder" else tf.get_static_value(tensor)
        if value is None:
            raise NotProved(f"`{tensor.op.type}` stands where a constant is due")
        return np.asarray(value)


def _steps(link: Link, keras: KerasLayers) -> list[dict[str, Any]]:
    """The steps of a spec for a link; scales are in numbers."""
    if not isinstance(link, LayerCall):
        steps = _arithmetic(*link)
    else:
        name = type(link.layer).__name__
        if name not in KNOWN:
            raise NotProved(f"`{name}` is not one of the layers that become steps")
        if name.startswith("Random") and not link.training:
            return []
        if name != "Rescaling":
            try:
                return keras.of_one(layer_node(link.layer))
            except Unsuited as error:
                raise NotProved(f"`{name}`: {f'`{error.about}`: ' if error.about else ''}{error.why}") from None
        scale, offset = (np.asarray(value) for value in (link.layer.scale, link.layer.offset))
        if scale.size != 1 or offset.size != 1:
            raise NotProved("`Rescaling`: it has several numbers")
        steps = [{"rescale": {"scale": float(scale), "offset": float(offset)}}]
    for step in steps:
        if "rescale" in step:
            keras.through(**step["rescale"])
    return steps


def _arithmetic(operation: str, value: Any) -> list[dict[str, Any]]:
    """The step for an operation with a constant, on images of float32."""
    if operation == "Cast":
        if value != tf.float32:
            raise NotProved(f"images become {value.name}")
        return []
    if operation == "ResizeBilinear":
        return [{"resize": {"size": value}}]
    if operation == "OneHot" or np.size(value) != 1:
        raise NotProved(f"the operation `{operation}` has several constants")
    number = float(np.ravel(value)[0])
    meanings = {"Mul": (number, 0.0), "RealDiv": (1 / number if number else 0.0, 0.0), "Sub": (1.0, -number), "AddV2": (1.0, number)}
    scale, offset = (-1.0, number) if operation == "Sub from" else meanings[operation.removesuffix(" from")]
    if not scale or not np.isfinite([scale, offset]).all():
        raise NotProved(f"the operation `{operation}` leaves nothing of the image")
    return [{"rescale": {"scale": scale, "offset": offset}}]


def _joined(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The steps, with neighbours that scale as one."""
    found: list[dict[str, Any]] = []
    for step in steps:
        before = found[-1].get("rescale", {}) if found else {}
        own = step.get("rescale", {})
        if "scale" in own and "scale" in before:
            scale = own["scale"]
            made = {"scale": before["scale"] * scale, "offset": before.get("offset", 0.0) * scale + own.get("offset", 0.0)}
            found[-1] = {"rescale": made}
        else:
            found.append(step)
    return [{"rescale": {k: v for k, v in step["rescale"].items() if k != "offset" or v}} if "rescale" in step else step for step in found]


def _classes(chain: list[Link]) -> int:
    """The number of classes of encoded labels."""
    if len(chain) != 1 or isinstance(chain[0], LayerCall) or chain[0][0] != "OneHot":
        raise NotProved("labels are changed")
    depth, on, off, dtype = chain[0][1]
    if (on, off) != (1.0, 0.0) or dtype != tf.float32:
        raise NotProved("labels are encoded otherwise than by 0 and 1")
    return int(depth)
