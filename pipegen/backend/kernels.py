"""A chain of stages as one function of a batch, compiled by XLA where that works."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.lower import Params, expand, prepare, run
from pipegen.plan import stages as s

if TYPE_CHECKING:
    from pipegen.backend.lower import Features
    from pipegen.plan.nodes import Kernel
    from pipegen.types import ElementType

log = logging.getLogger("pipegen")

KernelFunction = Callable[["Features"], "Features"]


def lower_kernel(node: Kernel, entry: ElementType, batch: int, jit: str) -> KernelFunction:
    """A function of a whole batch.

    Kernels run at one batch size, so that each is compiled once: a smaller last batch is padded in and sliced out.

    Args:
        node: The kernel.
        entry: The type of what enters it.
        batch: Examples of a full batch on this host.
        jit: `auto`, `always` or `never`.

    Raises:
        tf.errors.OpError: If XLA fails and `jit` is `always`.
    """
    chain = _Chain(node, entry)
    locate, body = chain.expand, chain.body
    compiled = node.compiled and jit != "never"
    if compiled:
        try:
            locate, body = chain.compile(batch)
        except (tf.errors.OpError, ValueError, TypeError) as error:
            if jit == "always":
                raise
            log.warning("XLA could not compile a kernel, so it runs as plain TensorFlow: %s", str(error).splitlines()[0])
            compiled = False

    def kernel(features: Features) -> Features:
        inputs = {name: features[name] for name in chain.inputs}
        params = chain.parameters(features)
        if features["@draws"].shape[0] == batch or not compiled:
            return features | body(inputs, locate(inputs, params))
        n = tf.shape(features["@draws"])[0]
        inputs, params = tf.nest.map_structure(lambda t: _pad(t, n, batch), (inputs, params))
        outputs = body(inputs, locate(inputs, params))
        return features | {k: v[:n] for k, v in outputs.items()}

    return kernel


class _Chain:
    """The stages of a kernel, with what they read."""

    def __init__(self, node: Kernel, entry: ElementType) -> None:
        self.stages = node.stages
        self.inputs = tuple(dict.fromkeys(stage.feature for stage in node.stages))
        self.entry = {name: entry[name] for name in self.inputs}

    def parameters(self, features: Features) -> tuple[Params, ...]:
        """Every stage's parameters, outside XLA."""
        return tuple(prepare(stage, features[stage.feature], features["@draws"]) for stage in self.stages)

    def expand(self, features: Features, params: tuple[Params, ...]) -> tuple[Params, ...]:
        """Every stage's parameters of one value a pixel; stages of a kernel that have them stand first in it."""
        return tuple(expand(stage, features[stage.feature], own) for stage, own in zip(self.stages, params, strict=True))

    def body(self, features: Features, params: tuple[Params, ...]) -> Features:
        """The pure part; `params` are expanded."""
        done = dict(features)
        for stage, own in zip(self.stages, params, strict=True):
            done[stage.feature] = run(stage, done[stage.feature], own)
        return done

    def compile(self, batch: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """`expand` and `body` as concrete functions for one batch size, compiled and warmed up with zeros."""
        features = {k: tf.zeros([batch, *t.shape], tf.as_dtype(t.dtype)) for k, t in self.entry.items()}
        width = max((r.start + r.num_draws for st in self.stages for r in s.refs(st)), default=0)
        params = self.parameters(features | {"@draws": tf.zeros([batch, width], tf.float64)})
        locate, params = _concrete(self.expand, features, params)
        body, _ = _concrete(self.body, features, params)
        return locate, body


def _concrete(function: Callable[..., Any], *args: Any) -> tuple[Callable[..., Any], Any]:
    """A function compiled by XLA for arguments of exactly these types, and its result for these."""
    specs = tf.nest.map_structure(lambda t: tf.TensorSpec(t.shape, t.dtype), args)
    concrete = tf.function(function, jit_compile=True, autograph=False).get_concrete_function(*specs)

    def call(*given: Any) -> Any:
        return tf.nest.pack_sequence_as(concrete.structured_outputs, tf.nest.flatten(concrete(*tf.nest.flatten(given))))

    return call, call(*args)


def _pad(t: tf.Tensor, n: tf.Tensor, batch: int) -> tf.Tensor:
    padded = tf.pad(t, [[0, batch - n], *([[0, 0]] * (t.shape.rank - 1))])
    padded.set_shape([batch, *t.shape[1:]])
    return padded
