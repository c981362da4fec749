"""Weights: a number that weighs each example in the loss."""

from __future__ import annotations

from pipegen.ops.kinds.tensor import Tensor


class Weight(Tensor):
    """A number, at least 0."""

    name = "weight"
    plural = "weights"
    arguments = ()
    weighs = True
    each = ""
    output = "output: {{sample_weight: {}}}"
