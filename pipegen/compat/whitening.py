"""The whitening of a generator in the spec of a flow: what `fit` has computed, in place of what the spec would learn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pipegen

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from pipegen.compat.arguments import Arguments

    Array = np.ndarray[Any, Any]


def with_matrix(generator: Arguments, channels: int, spec: Mapping[str, Any]) -> pipegen.Spec:
    """A flow's spec, whose step `whiten` has the generator's matrix, and its mean where there is one.

    Raises:
        SpecError: When the spec is wrong.
    """
    import numpy as np

    from pipegen.ops.arguments.learned import Fitted
    from pipegen.ops.arguments.whitening import Whitening
    from pipegen.plan.fitting_plans import learning_steps

    loaded = pipegen.load(spec)
    ((index, step),) = learning_steps(loaded.model)
    matrix = np.asarray(generator.zca_whitening_matrix, np.float32)
    if generator.data_format == "channels_first":
        order = np.arange(len(matrix)).reshape(channels, -1).T.reshape(-1)  # the flow has channels last
        matrix = matrix[np.ix_(order, order)]
    mean: Array = np.zeros(len(matrix))
    if generator.mean is not None and not generator.featurewise_std_normalization:  # else another step has done the centring
        mean = np.resize(np.asarray(generator.mean, np.float64).reshape(-1), len(matrix))
    numbers = Whitening.of(0, float(generator.zca_epsilon), mean, np.ascontiguousarray(matrix), np.zeros(0))
    steps: list[Any] = list(loaded.model.transforms)
    steps[index] = step.with_numbers(Fitted({"image": numbers}, 0, "taken from the generator", given=True))
    return replace(loaded, model=loaded.model.model_copy(update={"transforms": tuple(steps)}))
