"""A chain of stages as one function of a batch, compiled by XLA where that works."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import tensorflow as tf

from pipegen.backend.lower import Params, prepare, run
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
    body: Callable[..., Features] = tf.function(chain.body, jit_compile=True)
    compiled = node.compiled and jit != "never" and _compiles(body, chain, batch, jit)
    if not compiled:
        body = chain.body

    def kernel(features: Features) -> Features:
        done = dict(features)
        inputs = {name: features[name] for name in chain.inputs}
        params = chain.parameters(features)
        n = tf.shape(features["@draws"])[0]
        static = features["@draws"].shape[0]
        if static == batch or not compiled:
            done.update(body(inputs, params))
            return done
        padded = tf.nest.map_structure(lambda t: _pad(t, n, batch), (inputs, params))
        outputs = body(*padded)
        done.update({k: v[:n] for k, v in outputs.items()})
        return done

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

    def body(self, features: Features, params: tuple[Params, ...]) -> Features:
        """The pure part."""
        done = dict(features)
        for stage, own in zip(self.stages, params, strict=True):
            done[stage.feature] = run(stage, done[stage.feature], own)
        return done

    def zeros(self, batch: int) -> tuple[Features, tuple[Params, ...]]:
        """A batch of nothing, of the right types, to compile with."""
        features = {k: tf.zeros([batch, *t.shape], tf.as_dtype(t.dtype)) for k, t in self.entry.items()}
        width = max((r.start + r.num_draws for st in self.stages for r in s.refs(st)), default=0)
        return features, self.parameters(features | {"@draws": tf.zeros([batch, width], tf.float64)})


def _pad(t: tf.Tensor, n: tf.Tensor, batch: int) -> tf.Tensor:
    padded = tf.pad(t, [[0, batch - n], *([[0, 0]] * (t.shape.rank - 1))])
    padded.set_shape([batch, *t.shape[1:]])
    return padded


def _compiles(body: Callable[..., Features], chain: _Chain, batch: int, jit: str) -> bool:
    """Compile a kernel once, which also warms it up; say so and go on without XLA where it fails."""
    try:
        body(*chain.zeros(batch))
    except (tf.errors.OpError, ValueError, TypeError) as error:
        if jit == "always":
            raise
        log.warning("XLA could not compile a kernel, so it runs as plain TensorFlow: %s", str(error).splitlines()[0])
        return False
    return True
