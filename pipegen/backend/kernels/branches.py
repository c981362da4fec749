"""Stages that only some examples need: one example at a time, under a branch, compiled for a batch of one."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import tensorflow as tf

from pipegen.backend.index.uses import acts
from pipegen.plan import stages as s

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipegen.backend.features import Features


def apply_branch(stage: s.Branch, features: Features, kernel: Callable[[Features], Features]) -> None:
    """Run a stage on one example, in place, if it acts on it.

    Args:
        stage: The branch.
        features: The example, with `@draws` float64 `(d,)`.
        kernel: The stage as a function of a batch of one.
    """
    name = stage.feature
    image, draws = features[name], features["@draws"]

    def work() -> tf.Tensor:
        return kernel({name: image[None], "@draws": draws[None]})[name][0]

    needed = reduce(tf.logical_or, (acts(ref, draws) for ref in stage.uses()))
    features[name] = tf.cond(needed, work, lambda: tf.identity(image))
    features[name].set_shape(image.shape)
