"""A chain of stages as one function of a batch, compiled by XLA where that works."""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.lower import Params, apply_stage, expand, parameters, phases, prepare, rounds
from pipegen.backend.lower import run as run_stage
from pipegen.backend.reuse import Places, Reuse, is_large
from pipegen.plan import stages as s

if TYPE_CHECKING:
    from pipegen.backend.lower import Features
    from pipegen.plan.nodes import Kernel
    from pipegen.types import ElementType

log = logging.getLogger("pipegen")

KernelFunction = Callable[["Features"], "Features"]

_COMPILERS = ThreadPoolExecutor(thread_name_prefix="pipegen-xla")


def lower_kernel(node: Kernel, entry: ElementType, batch: int, jit: str, reuse: Reuse | None = None) -> KernelFunction:
    """A function of a whole batch.

    Kernels run at one batch size, so that each is compiled once: a smaller last batch is padded in and sliced out.

    Args:
        node: The kernel.
        entry: The type of what enters it.
        batch: Examples of a full batch on this host.
        jit: `auto`, `always` or `never`.
        reuse: How the memory of its results is used again; without it, each has its own. With it, the function holds variables
            and reads `@slot`.

    Raises:
        tf.errors.OpError: If XLA fails and `jit` is `always`.
    """
    if not node.compiled or jit == "never":
        return _plain(node)
    chain = _Chain(node, entry)
    depth = reuse.depth if reuse else 0
    try:
        drawn, first, body = chain.compile(batch, depth)
    except (tf.errors.OpError, ValueError, TypeError) as error:
        if jit == "always":
            raise
        log.warning("XLA could not compile a kernel, so it runs as plain TensorFlow: %s", str(error).splitlines()[0])
        return _plain(node)

    def work(number: tf.Tensor | None, inputs: Features, draws: tf.Tensor, params: tuple[Params, ...]) -> Features:
        if drawn is not None:
            params = tuple(map(operator.add, params, drawn(None, chain.own(draws))))
        for phase in first:
            params = phase(None, inputs, params)
        done: Features = body(number, inputs, params)
        return done

    def kernel(features: Features) -> Features:
        draws = features["@draws"]
        given = {name: features[name] for name in chain.inputs}, draws, chain.parameters(features)
        number = reuse.number(features["@slot"]) if reuse else None
        if draws.shape[0] == batch:
            return features | work(number, *given)
        n = tf.shape(draws)[0]
        outputs = work(number, *tf.nest.map_structure(lambda t: _pad(t, n, batch), given))
        return features | {k: v[:n] for k, v in outputs.items()}

    return kernel


def _plain(node: Kernel) -> KernelFunction:
    """The stages one after another, as plain TensorFlow and at any batch size."""

    def kernel(features: Features) -> Features:
        done = dict(features)
        for stage in node.stages:
            apply_stage(stage, done)
        return done

    return kernel


class _Chain:
    """The stages of a kernel, with what they read."""

    def __init__(self, node: Kernel, entry: ElementType) -> None:
        self.stages = node.stages
        self.leads = [all(b.feature != st.feature for b in self.stages[:i]) for i, st in enumerate(self.stages)]
        self.inputs = tuple(dict.fromkeys(stage.feature for stage in node.stages))
        self.entry = {name: entry[name] for name in self.inputs}
        self.width = max((r.end for st in self.stages for r in s.refs(st)), default=0)

    def parameters(self, features: Features) -> tuple[Params, ...]:
        """The parameters that XLA is not to compute; nothing for other stages."""
        return tuple(() if rounds(stage) else parameters(stage, features) for stage in self.stages)

    def own(self, draws: tf.Tensor) -> tf.Tensor:
        """The draws up to the chain's last one, and behind them the last of all, which is the epoch where a step has a schedule."""
        return tf.concat([draws[:, : self.width], draws[:, -1:]], 1)

    def drawn(self, draws: tf.Tensor) -> tuple[Params, ...]:
        """The parameters of the other stages. Each is made of dozens of small operations, which cost TensorFlow more than they compute."""
        images = {name: tf.zeros([1, *t.shape], tf.as_dtype(t.dtype)) for name, t in self.entry.items()}  # of which they read the shape
        return tuple(prepare(stage, images[stage.feature], draws) if rounds(stage) else () for stage in self.stages)

    def phases(self) -> list[Callable[..., Any]]:
        """What comes before the body, one function after another: the phases of the stages that are the first on their feature."""
        own = [phases(stage) if leads else () for stage, leads in zip(self.stages, self.leads, strict=True)]

        def phase(number: int, features: Features, params: tuple[Params, ...]) -> tuple[Params, ...]:
            todo = zip(self.stages, own, params, strict=True)
            return tuple(p[number](features[stage.feature], given) if number < len(p) else given for stage, p, given in todo)

        return [partial(phase, number) for number in range(max(map(len, own)))]

    def body(self, features: Features, params: tuple[Params, ...]) -> Features:
        """The pure part; `params` are what the phases gave."""
        done = dict(features)
        for stage, leads, own in zip(self.stages, self.leads, params, strict=True):
            value = done[stage.feature]
            done[stage.feature] = run_stage(stage, value, own if leads else expand(stage, value, own))
        return done

    def compile(self, batch: int, depth: int) -> tuple[Callable[..., Any] | None, list[Callable[..., Any]], Callable[..., Any]]:
        """`drawn`, where it has anything to do, the phases and `body` as functions for one batch size, being compiled."""
        features = {k: tf.zeros([batch, *t.shape], tf.as_dtype(t.dtype)) for k, t in self.entry.items()}
        draws = tf.zeros([batch, self.width + 1], tf.float64)
        params: tuple[Any, ...] = self.parameters(features | {"@draws": draws})
        drawn = None
        if any(map(rounds, self.stages)):
            drawn, known = _concrete(self.drawn, 0, draws)
            params = tuple(map(operator.add, params, known))
        first = []
        for function in self.phases():
            phase, params = _concrete(function, 0, features, params)
            first.append(phase)
        body, _ = _concrete(self.body, depth, features, params)
        return drawn, first, body


def _concrete(function: Callable[..., Any], depth: int, *args: Any) -> tuple[Callable[..., Any], Any]:
    """A function compiled by XLA for arguments of exactly these types, and the types of its results.

    That XLA knows every operation is seen at once. The machine code, which takes longer, is made on a thread of its own
    while other kernels are traced and the first examples are decoded; a call that comes earlier waits for it.

    Args:
        function: Takes the arguments.
        depth: How many of its results are in use at a time, where their memory is used again; else 0.
        *args: Tensors or specs, nested as the function takes them.

    Returns:
        The function, which takes the number of the call (it says which memory is used) and the arguments.

    Raises:
        ValueError: If XLA has no form of an operation.
    """
    specs = [tf.TensorSpec(t.shape, t.dtype) for t in tf.nest.flatten(args)]

    def flat(*leaves: tf.Tensor) -> Any:
        return function(*tf.nest.pack_sequence_as(args, leaves))

    compiled = tf.function(flat, jit_compile=True, autograph=False)
    concrete = compiled.get_concrete_function(*specs)
    compiled.experimental_get_compiler_ir(*specs)(stage="hlo")
    structure = concrete.structured_outputs
    outputs = [tf.TensorSpec(t.shape, t.dtype) for t in tf.nest.flatten(structure)]

    run: Callable[..., list[tf.Tensor]] = partial(_in_fresh_memory, concrete)
    if depth and any(map(is_large, outputs)):
        run = Places(lambda *leaves: tf.nest.flatten(flat(*leaves)), outputs, depth)
    _COMPILERS.submit(_warm_up, run, specs)

    def call(number: tf.Tensor | None, *given: Any) -> Any:
        return tf.nest.pack_sequence_as(structure, run(number, *tf.nest.flatten(given)))

    return call, structure


def _in_fresh_memory(concrete: Callable[..., Any], _number: tf.Tensor | None, *leaves: tf.Tensor) -> list[tf.Tensor]:
    return tf.nest.flatten(concrete(*leaves))


def _warm_up(run: Callable[..., Any], specs: list[tf.TensorSpec]) -> None:
    """Compile by running once, inside a dataset: XLA keeps what an eager call compiles apart from what a dataset's does."""

    def zeros(zero: tf.Tensor) -> Any:
        # Constants would not do: TensorFlow would try to work out the function when it optimises the graph, and warn that it cannot.
        return run(zero, *(tf.fill(t.shape, tf.cast(zero, t.dtype)) for t in specs))

    next(iter(tf.data.Dataset.range(1).map(tf.autograph.experimental.do_not_convert(zeros))))


def _pad(t: tf.Tensor, n: tf.Tensor, batch: int) -> tf.Tensor:
    padded = tf.pad(t, [[0, batch - n], *([[0, 0]] * (t.shape.rank - 1))])
    padded.set_shape([batch, *t.shape[1:]])
    return padded
