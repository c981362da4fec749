"""Steps of a spec from the objects of Albumentations, Keras and torchvision, with the values that the objects hold."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from itertools import pairwise
from typing import Any

from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostic, Label
from pipegen.errors import OpError, SpecError
from pipegen.frozen import dataclass
from pipegen.ops.families.selections import rank
from pipegen.ops.registry import transforms
from pipegen.ops.sampling_sections import sized
from pipegen.ops.step_bases import ColourTransform, GeometricTransform
from pipegen.ops.traits import IMAGE_224
from pipegen.spec.expect import valid, validated
from pipegen.spec.peers.converting import Unsuited, number, refuse, whole
from pipegen.spec.peers.words import Meaning, is_elsewhere, meaning_in
from pipegen.spec.templates import written
from pipegen.spec.translate import instead_of_step
from pipegen.terminal import log
from pipegen.types import FeatureType, Interval

BYTES, UNIT = (0.0, 255.0), (0.0, 1.0)
OWN = "it is code of your own: use the step `random_python`, or `python`"
_UNITS = ("delta", "std")
"""Arguments in the units of the values, which are written for bytes."""
_IN_ANY_UNITS = {"factor", "hue_degrees", "probability", *_UNITS}
_SHAPES = {"area", "aspect_ratio", "cells", "fill", "height", "holes", "probability", "ratio", "width"}
"""Arguments of steps that put a value into holes."""


_DERIVED = {"PadIfNeeded": ("padding",), "RGBShift": ("approximation", "noise_params", "noise_type", "spatial_mode")}
"""Arguments of base classes that Albumentations saves, too; they follow from those of the class."""


class Steps(list[dict[str, Any]]):
    """Steps for the section `transforms` of a spec, as maps.

    Attributes:
        remarks: A line for each difference that is small, and for each setting that is not part of a step.
    """

    def __init__(self, steps: Iterable[dict[str, Any]] = (), remarks: Iterable[str] = ()) -> None:
        super().__init__({step: {}} if isinstance(step, str) else {op: given or {} for op, given in step.items()} for step in steps)
        self.remarks = tuple(remarks)

    def to_yaml(self) -> str:
        """The section `transforms` as YAML, below the remarks as comments."""
        return "\n".join([*(f"# {line}" for line in self.remarks), "transforms:", *(f"  - {written(step)}" for step in self), ""])


def from_albumentations(compose: Any) -> Steps:
    """Translates a transform of Albumentations 2, such as a `Compose`, or what `A.to_dict` gives for one.

    Args:
        compose: The object, or a map that `A.to_dict` wrote.

    Returns:
        The steps, as a list for `transforms`.

    Raises:
        SpecError: For what has no form in a spec, or another meaning; it names each.
        TypeError: For anything else than a transform of Albumentations.
    """
    return _told(steps_of_saved(compose if isinstance(compose, Mapping) else _saved(compose)))


def steps_of_saved(saved: Any) -> Steps:
    """Translates what `A.to_dict` or `A.save` wrote. Raises as `from_albumentations` does; remarks are not logged."""
    top = saved.get("transform", saved) if isinstance(saved, Mapping) else {}
    if not isinstance(top, Mapping) or "__class_fullname__" not in top:
        raise TypeError("it is not what Albumentations saves: a map with `transform`, which has `__class_fullname__`")
    return _translated(_of_saved(top), _Albumentations())


def from_torchvision(compose: Any) -> Steps:
    """Translates a transform of `torchvision.transforms` or `torchvision.transforms.v2`, or a list of some.

    Args:
        compose: The object, such as a `Compose`.

    Returns:
        The steps, as a list for `transforms`.

    Raises:
        SpecError: For what has no form in a spec, or another meaning; it names each.
    """
    return _told(_translated(_of_object(compose), _Torchvision()))


def from_keras(layers: Any) -> Steps:
    """Translates preprocessing layers of Keras: a layer, a list of some, a `Sequential` or a `Pipeline`.

    The layers are taken to get images from 0 to 255. Random ones act in training alone, as they do in Keras.

    Args:
        layers: The layer or layers.

    Returns:
        The steps, as a list for `transforms`.

    Raises:
        SpecError: For what has no form in a spec, or another meaning; it names each.
    """
    return _told(_translated(_of_layer(layers), KerasLayers()))


@dataclass(frozen=True)
class _Node:
    """A transform of a library, or a group of some."""

    name: str  # of its class; "" for a list
    arguments: Mapping[str, Any]
    children: tuple[_Node, ...] | None = None
    problem: str = ""  # the reason why it cannot be read

    def forced(self) -> _Node:
        """The transform without its own probability."""
        return _Node(self.name, {**self.arguments, "p": 1.0}, self.children, self.problem) if "p" in self.arguments else self

    @property
    def p(self) -> float:
        """Its probability; 1 without one. Raises `Unsuited` if it is no number."""
        return float(number("p", self.arguments.get("p", 1.0)))


def _translated(node: _Node, library: _Library) -> Steps:
    steps = [*library.steps(node, "")]
    if library.problems:
        raise SpecError(library.problems)
    return Steps(steps, dict.fromkeys([*library.remarks, *_neighbours(steps)]))


def _neighbours(steps: list[dict[str, Any]]) -> Iterator[str]:
    """Yields what is done once for steps side by side, which each does by itself in other libraries."""
    made = [validated(transforms()[op], given) for step in steps for op, given in step.items()]
    for one, other in pairwise(made):
        if isinstance(one, ColourTransform) and isinstance(other, ColourTransform):
            yield "colour steps side by side, or in `random_order`, clip once"
        if all(isinstance(step, GeometricTransform) and not step.traits(IMAGE_224).moves_pixels_only for step in (one, other)):
            yield "geometric steps side by side resample once; with `exact: true`, a step resamples for itself"
    if any(step.op == "random_order" and sum(isinstance(inner, ColourTransform) for inner in step.inner_steps()) > 1 for step in made):
        yield "colour steps side by side, or in `random_order`, clip once"


def _told(steps: Steps) -> Steps:
    for remark in steps.remarks:
        log.warning("%s", remark)
    return steps


class _Library:
    """The translation of a tree of one library's transforms, in order."""

    name: str
    groups: frozenset[str] = frozenset()  # transforms that do all that they hold, with a probability
    for_bytes = True  # whether the table writes amounts for bytes, whatever the values are

    def __init__(self, values: tuple[float, float] | None = BYTES) -> None:
        self.range = values  # of the values so far; `None` if not known
        self.problems: list[Diagnostic] = []
        self.remarks: list[str] = []

    def steps(self, node: _Node, path: str) -> list[dict[str, Any]]:
        """The steps of a transform; none for one that has a problem, which is then in the list."""
        try:
            return self.of_one(node) if node.children is None else self.of_group(node, path)
        except Unsuited as error:
            near = f"; the nearest is `{written(error.nearest)}`" if error.nearest is not None else ""
            about = f"`{error.about}` of `{node.name}`" if error.about else f"`{node.name}`" if node.name else "this object"
            message = f"pipegen has no form of {about}"
            self.problems.append(make("PG103", message, Label(None, path=path or node.name), help=f"{error.why}{near}"))
            return []

    def of_one(self, node: _Node) -> list[dict[str, Any]]:
        """The steps of a single transform. Raises `Unsuited`."""
        if node.problem:
            refuse(node.problem)
        return self.own(node)

    def own(self, node: _Node) -> list[dict[str, Any]]:
        """The steps of a single transform that can be read, for the values at this place. Raises `Unsuited`."""
        meaning = self.meaning(node)
        if meaning.differs:
            self.remarks.append(f"`{node.name}`: {meaning.remark}")
        return [self._in_units(step) for step in meaning.steps]

    def of_group(self, node: _Node, path: str) -> list[dict[str, Any]]:
        """The steps of a transform that holds others. Raises `Unsuited`."""
        children = node.children or ()
        inner = [(child, f"{path}.{node.name}[{i}]".removeprefix(".") if node.name else f"[{i}]") for i, child in enumerate(children)]
        if node.name in self.groups or not node.name:
            return self._together([step for child, place in inner for step in self.steps(child, place)], node)
        return self.of_choice(node, inner)

    def of_choice(self, node: _Node, inner: list[tuple[_Node, str]]) -> list[dict[str, Any]]:
        """The step of a transform that does some of those that it holds. Raises `Unsuited`."""
        refuse("a spec has no such group of steps")

    def _together(self, steps: list[dict[str, Any]], node: _Node) -> list[dict[str, Any]]:
        """All steps, with the probability of the group."""
        if node.p >= 1 or not steps:
            return steps
        if len(steps) == 1:
            return [self._less_often(steps[0], node.p)]
        return [_policy("some_of", node.p, count=len(steps), steps=_in_order(steps))]

    def _less_often(self, step: dict[str, Any], p: float) -> dict[str, Any]:
        ((op, arguments),) = step.items()
        field = transforms()[op].model_fields.get("probability")
        if field is None:
            refuse(f"`{op}` is done to every example", "p")
        own = arguments.get("probability", 1.0 if field.is_required() else field.default)
        return {op: {**arguments, "probability": round(own * p, 9)}}

    def _each(self, inner: Iterable[tuple[_Node, str]]) -> list[dict[str, Any] | None]:
        """The one step of each transform; `None` for one that does nothing."""
        found: list[dict[str, Any] | None] = []
        before, known = self.range, len(self.problems)
        for child, place in inner:
            steps = self.steps(child, place)
            if len(steps) > 1:
                refuse(f"`{child.name}` in it is several steps, and a choice is between single ones")
            none: list[dict[str, Any] | None] = [None] if len(self.problems) == known else []
            found += steps or none
        if self.range != before:
            refuse("what is in it changes the range of the values")
        return found

    def _one_of(self, steps: list[dict[str, Any] | None], weights: list[float], p: float) -> list[dict[str, Any]]:
        """One of several steps, of which some may do nothing."""
        some = [(step, weight) for step, weight in zip(steps, weights, strict=False) if step is not None and weight]
        share = sum(weight for _, weight in some) / (sum(weights) or 1)
        if not some or not p:
            return []
        if len(some) == 1:
            return [some[0][0] if share * p == 1 else self._less_often(some[0][0], share * p)]
        differ = len({weight for _, weight in some}) > 1
        weighted = {"weights": [round(weight, 9) for _, weight in some]} if differ else {}
        return [_policy("one_of", round(share * p, 9), steps=[step for step, _ in some], **weighted)]

    def _some_of(self, steps: list[dict[str, Any] | None], count: int, p: float) -> list[dict[str, Any]]:
        """A number of different steps, in their order."""
        if count == 1:
            return self._one_of(steps, [1.0] * len(steps), p)
        if None in steps:
            refuse("one that does nothing is among them, and `some_of` counts steps")
        listed = _in_order([step for step in steps if step is not None])
        return [_policy("some_of", p, count=count, steps=listed)] if listed else []

    def _random_order(self, steps: list[dict[str, Any] | None], p: float) -> list[dict[str, Any]]:
        """All steps, in a random order."""
        some = [step for step in steps if step is not None]
        if len(some) < 2:
            return [step if p == 1 else self._less_often(step, p) for step in some]
        return [_policy("random_order", p, steps=some)]

    def meaning(self, node: _Node, **arguments: Any) -> Meaning:
        """The steps of a transform that the table of the library has, whatever the values are before it. Raises `Unsuited`."""
        given = {**node.arguments, **arguments}
        meaning = meaning_in(self.name, node.name, given)
        if meaning is None:
            advice = (said for word in (f"{self.name}.{node.name}", node.name) for said in instead_of_step(word, given))
            refuse(str(next(advice, "a spec has no such step")))
        if not meaning.steps or meaning.lacking:
            refuse(meaning.why or "it is not given", meaning.about or "".join(meaning.lacking[:1]), meaning.nearest)
        if meaning.strange:
            has = f"; it has {', '.join(meaning.arguments)}" if meaning.arguments else ""
            refuse(f"{meaning.library} has no such argument{has}", meaning.strange[0])
        return meaning

    def _in_units(self, step: dict[str, Any]) -> dict[str, Any]:
        """A step for values in their range at this place. Raises `Unsuited`."""
        ((op, arguments),) = step.items()
        if self.range == BYTES:
            return step
        if "steps" in arguments:
            return {op: {**arguments, "steps": [self._in_units(inner) for inner in arguments["steps"]]}}
        if not (transforms()[op].moves or {*arguments} <= (_IN_ANY_UNITS if self.range == UNIT else set()) | _SHAPES):
            refuse(f"values are {_said(self.range)} here, and `{op}` is for 0 to 255: put it before that")
        units = {name: arguments[name] for name in _UNITS if name in arguments and self.for_bytes}
        scaled = arguments | {name: [n / 255 for n in of] if isinstance(of, list) else of / 255 for name, of in units.items()}
        self._check(op, scaled)
        return {op: scaled}

    def _check(self, op: str, arguments: dict[str, Any]) -> None:
        """Raises `Unsuited` if a step does not take values of this range."""
        values = FeatureType("image", "float32", (224, 224, 3), Interval(*self.range) if self.range else None)
        try:
            sized(validated(transforms()[op], arguments), (224, 224)).infer(values)
        except OpError as error:
            refuse(f"values are {_said(self.range)} here: {error}")

    def scaled(self, to: tuple[float, float] = UNIT) -> list[dict[str, Any]]:
        """The step from bytes to numbers of a range; none where they are in it."""
        if self.range == to:
            return []
        if self.range != BYTES:
            refuse("values are not bytes here")
        self.range = to
        return [{"rescale": {"to": [*map(int, to)]}}]

    def through(self, scale: float, offset: float = 0.0) -> None:
        """Scales the range."""
        ends = sorted(round(end * scale + offset, 6) for end in self.range or ())
        self.range = (ends[0], ends[1]) if ends else None

    def normalized(self, node: _Node, *, scaled: bool, **arguments: Any) -> list[dict[str, Any]]:
        """The step of a normalisation, and one before it if it is `scaled`: if it gets values from 0 to 1."""
        steps = [step for step in self.meaning(node, **arguments).steps if "rescale" not in step]
        before = self.scaled() if scaled else []
        self.range = None
        return [*before, *steps]


class _Albumentations(_Library):
    name = "albumentations"
    groups = frozenset({"Compose", "ReplayCompose", "Sequential"})

    def own(self, node: _Node) -> list[dict[str, Any]]:
        if node.name == "NoOp":
            return []
        if node.name == "ToTensorV2":
            self.remarks.append("`ToTensorV2`: channels come last in a batch; `output: {channels: first}` puts them first")
            return []
        if node.name == "ToFloat":
            steps = list(self.meaning(node).steps)
            if node.arguments.get("max_value") in (None, self.range and self.range[1]):
                return self.scaled()
            self.through(1 / node.arguments["max_value"])
            return steps
        if node.name == "Normalize":
            most = node.arguments.get("max_pixel_value", 255)
            small = max(_flat([node.arguments.get("mean", 0), node.arguments.get("std", 0)])) <= 1
            if most not in (1, 255) or (self.range == UNIT and most != 1) or (self.range == BYTES and most == 1 and small):
                refuse(f"values are {_said(self.range)} here", "max_pixel_value")
            return self.normalized(node, scaled=most == 255, max_pixel_value=255)
        for name in ("fill_mask", "mask_interpolation", "mask_drop_value"):
            given = node.arguments.get(name)
            if given is not None and (given != 0 or "Dropout" in node.name):
                self.remarks.append(
                    f"`{name}` of `{node.name}`: masks are read by the nearest pixel, and filled with the `ignore` of the mask"
                )
        return super().own(node)

    def of_group(self, node: _Node, path: str) -> list[dict[str, Any]]:
        for name, what in (("bbox_params", "boxes"), ("keypoint_params", "keypoints")):
            given = node.arguments.get(name) or {}
            least = [f"`{key}: {given[key]:g}`" for key in ("min_area", "min_visibility", "min_width", "min_height") if given.get(key)]
            if given:
                self.remarks.append(f"`{name}`: {what} are a feature of the source, which has their `format`{' and '.join(['', *least])}")
        if node.name == "ReplayCompose":
            self.remarks.append("`ReplayCompose`: `draw: group` on a step gives 8 consecutive examples one draw; others are not replayed")
        if node.arguments.get("additional_targets"):
            self.remarks.append("`additional_targets`: each is a feature of the source, with an `align` of its own")
        return super().of_group(node, path)

    def of_choice(self, node: _Node, inner: list[tuple[_Node, str]]) -> list[dict[str, Any]]:
        count = min(whole("n", node.arguments.get("n", 1)), len(inner))
        always = [(child.forced(), place) for child, place in inner]
        if node.name == "OneOf":
            return self._one_of(self._each(always), [child.p for child, _ in inner], node.p)
        if node.name == "OneOrOther":
            return self._one_of(self._each([always[0], always[-1]]), [node.p, 1 - node.p], 1)
        if node.name not in ("RandomOrder", "SomeOf"):
            return super().own(node)
        if node.arguments.get("replace") and count > 1:
            refuse("a step can be chosen twice", "replace")
        if node.name == "RandomOrder" and 1 < count < len(inner):
            refuse("`random_order` does all of its steps", "n")
        steps = self._each(inner)
        return self._random_order(steps, node.p) if node.name == "RandomOrder" and count > 1 else self._some_of(steps, count, node.p)


class _Torchvision(_Library):
    name = "torchvision"
    groups = frozenset({"Compose", "RandomApply", "Sequential"})
    cast = False  # whether bytes have become floats as they are

    def own(self, node: _Node) -> list[dict[str, Any]]:
        if node.name in ("Identity", "PILToTensor", "ToImage", "ToPureTensor"):
            return []
        if node.name == "ToTensor":
            return self.scaled()
        if node.name in ("ConvertImageDtype", "ToDtype"):
            dtype = str(node.arguments["dtype"]).removeprefix("torch.")
            if dtype == "uint8" and self.range == BYTES:
                return []
            if dtype != "float32":
                refuse("images become float32, or stay bytes", "dtype")
            if node.arguments.get("scale", node.name != "ToDtype"):
                return self.scaled()
            self.cast = self.range == BYTES
            return [{"cast": {"dtype": "float32"}}]
        if node.name == "Normalize":
            small = max(*node.arguments["mean"], *node.arguments["std"]) <= 1
            if small and self.cast and self.range == BYTES:
                refuse("values are between 0 and 255 here: `ToDtype` does not scale them without `scale=True`", "mean")
            if small and self.range == BYTES:
                self.remarks.append("`Normalize`: images are scaled to 0 to 1 before it, as `ToTensor` does")
            return self.normalized(node, scaled=small)
        return super().own(node)

    def of_choice(self, node: _Node, inner: list[tuple[_Node, str]]) -> list[dict[str, Any]]:
        steps = self._each(inner)
        if node.name == "RandomOrder":
            return self._random_order(steps, 1)
        if node.name == "RandomChoice":
            return self._one_of(steps, [*map(float, node.arguments["p"] or [1] * len(inner))], 1)
        return super().of_choice(node, inner)


class KerasLayers(_Library):
    """The translation of layers of Keras, in order."""

    name = "keras"
    groups = frozenset({"Pipeline", "Sequential"})
    for_bytes = False

    def own(self, node: _Node) -> list[dict[str, Any]]:
        given = node.arguments.get("value_range")
        if given is not None and tuple(given) != self.range:
            refuse(f"values are {_said(self.range)} here", "value_range")
        if node.name == "Rescaling":
            return self._rescaled(*(self._one(name, node.arguments[name]) for name in ("scale", "offset")))
        if node.name == "Normalization":
            return self.normalized(node, scaled=False)
        if node.name == "GaussianNoise":
            refuse("it does not clip, and `random_gaussian_noise` does: leave it in the model")
        return super().own(node)

    def _one(self, name: str, value: Any) -> float:
        numbers = [] if isinstance(value, Mapping) else _flat(_plain(value))  # Keras writes an array as a map
        if len(numbers) != 1:
            refuse("it has several numbers", name)
        return numbers[0]

    def _rescaled(self, scale: float, offset: float) -> list[dict[str, Any]]:
        for to in (UNIT, (-1.0, 1.0)):
            if self.range == BYTES and abs(scale - (to[1] - to[0]) / 255) < 1e-9 and offset == to[0]:
                return self.scaled(to)
        arguments = {"scale": scale} | ({"offset": offset} if offset else {})
        self._check("rescale", arguments)
        self.through(scale, offset)
        return [{"rescale": arguments}]


def _said(values: tuple[float, float] | None) -> str:
    return "normalised" if values is None else f"between {values[0]:g} and {values[1]:g}"


def _saved(compose: Any) -> Mapping[str, Any]:
    """What `A.to_dict` gives for an object."""
    if not _is_of(compose, "albumentations") or not hasattr(compose, "to_dict"):
        raise TypeError(f"`from_albumentations` takes a transform of Albumentations, or what `A.to_dict` gives, got {compose!r:.80}")
    try:
        saved: Mapping[str, Any] = compose.to_dict()
    except Exception as error:  # a transform of the user's own
        raise SpecError(
            [make("PG103", f"Albumentations cannot save this: {error}", help="leave it out, and use the step `python`")]
        ) from None
    return saved


def _of_saved(saved: Mapping[str, Any]) -> _Node:
    name = str(saved.get("__class_fullname__", ""))
    name = name.rpartition(".")[2] if name.startswith("albumentations.") else name
    left_out = ("__class_fullname__", "transforms", *_DERIVED.get(name, ()))
    arguments = {key: _plain(value) for key, value in saved.items() if key not in left_out}
    children = saved.get("transforms")
    problem = OWN if "." in name or name == "Lambda" else ""
    if children is not None and not (isinstance(children, list) and all(isinstance(child, Mapping) for child in children)):
        raise TypeError(f"it is not what Albumentations saves: `transforms` of `{name}` is not a list of maps")
    return _Node(name, arguments, None if children is None else tuple(map(_of_saved, children)), problem)


def _is_of(value: Any, *packages: str) -> bool:
    return type(value).__module__.partition(".")[0] in packages


def _of_object(value: Any) -> _Node:
    """A transform of torchvision, by the attributes in which it keeps its arguments."""
    if isinstance(value, (list, tuple)):
        return _Node("", {}, tuple(map(_of_object, value)))
    cls = type(value)
    if cls.__name__ == "Lambda" or (
        not _is_of(value, "torchvision") and not (_is_of(value, "torch") and cls.__name__ in ("Identity", "Sequential"))
    ):
        return _Node(getattr(value, "__name__", cls.__name__), {}, problem=OWN)
    children = list(value) if cls.__name__ == "Sequential" else getattr(value, "transforms", None)
    names = [] if _is_of(value, "torch") else [name for name in inspect.signature(cls).parameters if name != "transforms"]
    kept = {name: name if hasattr(value, name) else f"_{name}" for name in names}
    lost = [name for name, attribute in kept.items() if not hasattr(value, attribute)]
    arguments = {name: _plain(getattr(value, attribute, None)) for name, attribute in kept.items()}
    problem = f"its argument `{lost[0]}` cannot be read from the object" if lost and is_elsewhere(f"torchvision.{cls.__name__}") else ""
    return _Node(cls.__name__, arguments, None if children is None else tuple(map(_of_object, children)), problem)


def _plain(value: Any) -> Any:
    """A value without types of other libraries: words for enumerations, lists for tensors and tuples."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def _flat(value: Any) -> list[float]:
    return [number for one in value for number in _flat(one)] if isinstance(value, list) else [float(value)]


def _of_layer(layer: Any) -> _Node:
    """A layer of Keras, by its configuration."""
    if isinstance(layer, (list, tuple)):
        return _Node("", {}, tuple(map(_of_layer, layer)))
    name = type(layer).__name__
    if not _is_of(layer, "keras"):
        return _Node(getattr(layer, "__name__", name), {}, problem=OWN)
    if name in ("Pipeline", "Sequential"):
        return _Node(name, {}, tuple(_of_layer(one) for one in layer.layers if type(one).__name__ != "InputLayer"))
    return layer_node(layer)


def layer_node(layer: Any) -> _Node:
    """A layer of Keras with the arguments that are set, and the reason why its meaning is not that of steps."""
    arguments, name, problem = layer.get_config(), type(layer).__name__, ""
    if getattr(layer, "data_format", "channels_last") != "channels_last":
        problem = "channels come first"
    elif arguments.get("interpolation", "bilinear") != "bilinear":
        problem = "`interpolation` other than `bilinear` gives other pixels"
    elif arguments.get("fill_mode") == "wrap" or (name in ("RandomRotation", "RandomZoom") and arguments["fill_mode"] == "nearest"):
        problem = f"`fill_mode={arguments['fill_mode']!r}` gives other pixels"
    elif name == "Resizing" and (arguments["crop_to_aspect_ratio"] or arguments["pad_to_aspect_ratio"]):
        problem = "Keras cuts and pads by whole pixels"
    elif name == "Normalization":
        arguments = {"mean": arguments.get("mean"), "variance": arguments.get("variance")}
        if arguments["mean"] is None:
            problem = "its numbers are not among its arguments: `standardize` learns them from the data"
        elif layer.axis not in ((-1,), -1) or getattr(layer, "invert", False):
            problem = "it has another `axis` than that of the channels, or is inverted"
        else:
            arguments = {key: _flat(_plain(value)) for key, value in arguments.items()}
    return _Node(name, {key: value for key, value in arguments.items() if value is not None}, problem=problem)


def _policy(op: str, p: float, **arguments: Any) -> dict[str, Any]:
    """A step that holds others, with a probability. Raises `Unsuited` if it cannot hold them."""
    cls: Any = transforms()[op]
    arguments |= {"probability": p} if p != 1 else {}
    for step in arguments["steps"]:
        ((inner, given),) = step.items()
        problem = cls.refuses(validated(transforms()[inner], given)) if valid(transforms()[inner], given) else None
        if problem is not None:
            refuse(problem[0])
    if not valid(cls, arguments):
        refuse(f"`{op}` takes no such steps")
    return {op: arguments}


def _in_order(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The steps, if a block of a policy runs them in this order. Raises `Unsuited`."""
    ranks = [rank(validated(transforms()[op], given)) for step in steps for op, given in step.items()]
    if ranks != sorted(ranks):
        refuse("a group runs crops first, then tables and filters, then geometry, then colour, which is another order than here")
    return steps
