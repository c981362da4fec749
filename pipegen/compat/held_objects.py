"""Objects that a spec cannot contain: a `preprocessing_function`, and the whitening matrix computed by `fit`."""

from __future__ import annotations

import re
import sys
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import pipegen
from pipegen.compat.checks import UnsupportedArgument
from pipegen.frozen import dataclass
from pipegen.ops.arguments.arithmetic import PRESETS
from pipegen.ops.families.custom import CustomTransform

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipegen.compat.generator_arguments import Arguments
    from pipegen.compat.images import Array

_G = TypeVar("_G", bound="Arguments")
_APPLICATION = re.compile(r"(?:^|\.)applications\.(\w+)$")
_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_HANDED = "flow:preprocessing_function"
"""Placeholder in a flow's spec for a function that cannot be imported."""


@dataclass(frozen=True)
class Handed:
    """A function that is passed to a pipeline of this process as an object, not by name."""

    function: Callable[[Array], Array]

    def __call__(self, image: Array) -> Array:
        return self.function(image)


def preset_of(function: Any) -> str | None:
    """Finds the preset for a `preprocess_input` of Keras."""
    found = _APPLICATION.search(getattr(function, "__module__", None) or "")
    if found is None or getattr(function, "__name__", "") != "preprocess_input":
        return None
    preset = {"imagenet_utils": "caffe"}.get(found[1], found[1])
    return preset if preset in PRESETS else None


def function_steps(function: Any) -> list[Any]:
    """Makes the steps for a `preprocessing_function`.

    Raises:
        UnsupportedArgument: For one that a spec cannot name: a lambda, a nested function, or one of the main program.
    """
    preset = preset_of(function)
    if preset is not None:
        return [{"normalize": {"preset": preset}}]
    name = _HANDED if isinstance(function, Handed) else _importable(function)
    if name is None:
        called = getattr(function, "__qualname__", None) or repr(function)
        why = f"a spec names a function by its module, but {called!r} cannot be imported from one"
        raise UnsupportedArgument("preprocessing_function", why, "move it to a module of its own; flows take any function")
    return [{"cast": {"dtype": "float32"}}, {"python": {"function": name}}]


def handing(generator: _G) -> _G:
    """Copies a generator for a flow's spec, in which the function need not be importable."""
    function = generator.preprocessing_function
    if function is None or preset_of(function) is not None:
        return generator
    copied = copy(generator)
    copied.preprocessing_function = Handed(function)
    return copied


def with_function(generator: Arguments, spec: Mapping[str, Any] | pipegen.Spec) -> Mapping[str, Any] | pipegen.Spec:
    """Puts the generator's function into a flow's spec; without a function the spec is unchanged.

    Its results are not cached, since it may draw random numbers.
    """
    function = generator.preprocessing_function
    if function is None or preset_of(function) is not None:
        return spec
    loaded = pipegen.load(spec, runtime={"cache": "none"})
    steps = tuple(s.handed(_channels_last(generator, function)) if isinstance(s, CustomTransform) else s for s in loaded.model.transforms)
    return replace(loaded, model=loaded.model.model_copy(update={"transforms": steps}))


def with_matrix(generator: Arguments, channels: int, spec: Mapping[str, Any]) -> pipegen.Spec:
    """Puts the generator's matrix, and its mean if there is one, into the step `whiten` of a flow's spec.

    Raises:
        SpecError: When the spec is wrong.
    """
    import numpy as np

    from pipegen.ops.arguments.learned import Fitted, Whitening
    from pipegen.plan.evaluation_plans import learning_steps

    loaded = pipegen.load(spec)
    ((index, step),) = learning_steps(loaded.model)
    matrix = np.asarray(generator.zca_whitening_matrix, np.float32)
    if generator.data_format == "channels_first":
        order = np.arange(len(matrix)).reshape(channels, -1).T.reshape(-1)  # the flow has channels last
        matrix = matrix[np.ix_(order, order)]
    mean: Array = np.zeros(len(matrix))
    if generator.mean is not None and not generator.featurewise_std_normalization:  # else another step has centred already
        mean = np.resize(np.asarray(generator.mean, np.float64).reshape(-1), len(matrix))
    numbers = Whitening.of(0, float(generator.zca_epsilon), mean, np.ascontiguousarray(matrix), np.zeros(0))
    steps: list[Any] = list(loaded.model.transforms)
    steps[index] = step.with_numbers(Fitted({"image": numbers}, 0, "taken from the generator", given=True))
    return replace(loaded, model=loaded.model.model_copy(update={"transforms": tuple(steps)}))


def _channels_last(generator: Arguments, function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Wraps a function for the pipeline, which calls it with channels last and takes float32."""
    import numpy as np

    first = generator.data_format == "channels_first"

    def called(image: Array) -> Array:
        given = np.asarray(function(np.moveaxis(image, -1, 0) if first else image))
        return (np.moveaxis(given, 0, -1) if first else given).astype(np.float32)

    return called


def _importable(function: Any) -> str | None:
    """Name `module:function` from which a function can be imported, or `None`."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not module or not name or module == "__main__" or _NAME.fullmatch(module) is None or _NAME.fullmatch(name) is None or "." in name:
        return None
    return f"{module}:{name}" if getattr(sys.modules.get(module), name, None) is function else None
