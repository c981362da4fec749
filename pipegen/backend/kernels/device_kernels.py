"""A kernel in two halves: the host computes its parameters, and a device runs the rest, on a part of a batch or on all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.kernels.chain import Chain
from pipegen.backend.kernels.lower import LOWERINGS
from pipegen.backend.process.traced_functions import compiled
from pipegen.ops.lowering.graphs import made_for

if TYPE_CHECKING:
    from pipegen.backend.features import Features, Params
    from pipegen.plan.nodes import Kernel
    from pipegen.types import ElementType

_ROWS = 11
"""Rows for tracing parameters, to see which have an entry for each example: a number unlikely to be another dimension."""


class DeviceKernel:
    """A compiled kernel whose parameters come from the host, as tensors `(n, ...)` that can be split along their first axis."""

    def __init__(self, node: Kernel, entry: ElementType) -> None:
        self._chain = chain = Chain(node, entry)
        self._lowerings = [LOWERINGS[type(stage)] for stage in chain.stages]
        self._phases = [compiled(phase) for phase in (*chain.phases(), chain.body)]

        def parameters() -> tuple[Params, ...]:
            draws = tf.zeros([_ROWS, chain.width + 1], tf.float64)
            features = {name: tf.zeros([_ROWS, *t.shape], tf.as_dtype(t.dtype)) for name, t in chain.entry.items()}
            return chain.with_drawn(chain.parameters(features | {"@draws": draws}), draws)

        traced: Any = tf.function(parameters, autograph=False).get_concrete_function()
        self._structure = traced.structured_outputs
        self._single = [not t.shape.rank or t.shape[0] != _ROWS for t in tf.nest.flatten(self._structure)]
        """True for parameters shared by all examples, which are repeated for each."""

    def parameters(self, features: Features) -> list[tf.Tensor]:
        """Computes the parameters of a batch, a flat list of tensors `(n, ...)`."""
        draws = features["@draws"]
        params: tuple[Params, ...] = self._chain.with_drawn(self._chain.parameters(features), draws)
        rows = tf.range(tf.shape(draws)[0])
        sent = tuple(how.sent(own, rows) for how, own in zip(self._lowerings, params, strict=True))
        leaves = zip(tf.nest.flatten(sent), self._single, strict=True)
        return [tf.repeat(leaf[None], tf.size(rows), axis=0) if single else leaf for leaf, single in leaves]

    @property
    def count(self) -> int:
        """Number of tensors of its parameters."""
        return len(self._single)

    def apply(self, features: Features, leaves: Sequence[tf.Tensor]) -> Features:
        """Runs the kernel, which XLA compiles for the current device; matrix products are exact float32."""
        flat = [leaf[0] if single else leaf for leaf, single in zip(leaves, self._single, strict=True)]
        given: tuple[Params, ...] = tf.nest.pack_sequence_as(self._structure, flat)
        inputs = {name: features[name] for name in self._chain.inputs}
        rows = tf.range(tf.shape(next(iter(inputs.values())))[0])
        params = tuple(how.received(own, rows) for how, own in zip(self._lowerings, given, strict=True))
        *phases, body = self._phases
        with made_for("device"):
            for phase in phases:
                params = phase(inputs, params)
            done: Features = body(inputs, params)
        return features | done
