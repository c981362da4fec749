"""A chain of stages as one function of a batch, compiled by XLA if possible, and in two halves for a device."""

from __future__ import annotations

import logging
import operator
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache, cached_property, partial, reduce
from typing import Any

import tensorflow as tf

from pipegen.backend.features import Features, Params
from pipegen.backend.kernels.lower import LOWERINGS, apply_stage, expand, run_stage
from pipegen.backend.kernels.reuse import Places, Reuse, block_size, finished, in_blocks, is_large
from pipegen.backend.process.traced_functions import available, compiled, in_one_node
from pipegen.ops.families.combining import Combine
from pipegen.ops.lowering.graphs import call, made_for
from pipegen.ops.stage import Stage
from pipegen.plan.nodes import Kernel, one_pass_each
from pipegen.terminal import is_terminal, log, note
from pipegen.types import ElementType


@cache
def say_compiling() -> None:
    """Once a process: logs at INFO, else prints if stderr is a terminal."""
    said = "compiling the pipeline; the first batch takes a few seconds"
    if log.isEnabledFor(logging.INFO):
        log.info(said)
    elif is_terminal(sys.stderr):
        note(f"pipegen: {said}")


KernelFunction = Callable[["Features"], "Features"]

_COMPILERS = ThreadPoolExecutor(thread_name_prefix="pipegen-xla")


Scope = Callable[[Any], AbstractContextManager[object]]


def lower_kernel(
    node: Kernel, entry: ElementType, batch: int, jit: str, reuse: Reuse | None = None, scope: Scope = nullcontext
) -> KernelFunction:
    """Makes a function of a whole batch.

    Kernels run at one size, that of a full batch on this host, so that each is compiled once: a smaller last batch is padded in and sliced
    out. With `reuse` of the memory of earlier results, the function holds variables and reads `@slot`; else each result has its own.
    `scope` returns the name scope of a stage, for stages that run one by one. Raises `tf.errors.OpError` if XLA fails and `jit` is
    `always`."""
    plain = lower_plainly(node, scope)
    if not node.compiled or jit == "never" or (jit == "auto" and not available()):
        return plain
    say_compiling()
    chain, made = Chain(node, entry), dict[tuple[int, ...], _Work | None]()

    def work_on(memories: Features) -> _Work | None:
        """Compiles the chain, once for each size of its memories; `None` if XLA cannot, or a size is unknown."""
        if not all(memory.shape.is_fully_defined() for memory in memories.values()):
            return None
        sizes = tuple(int(memory.shape[0]) for memory in memories.values())
        if sizes not in made:
            specs = {name: tf.TensorSpec(memory.shape, memory.dtype) for name, memory in memories.items()}
            with tf.init_scope():  # it may be called while a map is traced
                made[sizes] = _compiled(chain, batch, jit, reuse, specs)
        return made[sizes]

    def kernel(features: Features) -> Features:
        memories = chain.memory(features, batch)
        work = work_on(memories)
        if work is None:
            return plain(features)
        draws, params = features["@draws"], chain.parameters(features)
        inputs = {name: features[name] for name in chain.inputs}
        number = reuse.number(features["@slot"]) if reuse else None
        if draws.shape[0] == batch:
            return features | work(number, inputs | memories, draws, params)
        n = tf.shape(draws)[0]
        inputs, draws, params = tf.nest.map_structure(lambda t: _pad(t, n, batch), (inputs, draws, params))
        outputs = work(number, inputs | memories, draws, params)
        return features | {k: v[:n] for k, v in outputs.items()}

    if not chain.memories:  # of memories, the sizes are known only when the kernel is called
        work_on({})
    return kernel


_Work = Callable[[tf.Tensor | None, "Features", tf.Tensor, tuple[Params, ...]], "Features"]
"""A function from the number of the call, the inputs of a kernel, the draws and the parameters to its results."""


def _compiled(chain: Chain, batch: int, jit: str, reuse: Reuse | None, memories: Features) -> _Work | None:
    """Compiles a chain for one batch size and the types of `memories`; `None` if XLA cannot. Raises `tf.errors.OpError` if XLA fails and
    `jit` is `always`."""
    try:
        first, body = chain.compile(batch, reuse.depth if reuse else 0, memories)
    except (tf.errors.OpError, ValueError, TypeError) as error:
        if jit == "always":
            raise
        log.warning("XLA could not compile a kernel, so it runs as plain TensorFlow: %s", str(error).splitlines()[0])
        return None

    def work(number: tf.Tensor | None, inputs: Features, draws: tf.Tensor, params: tuple[Params, ...]) -> Features:
        params = chain.with_drawn(params, draws)
        for phase in first:
            params = phase(None, inputs, params)
        done: Features = body(number, inputs, params)
        return done

    return work


def lower_for_any_batch(node: Kernel, entry: ElementType) -> KernelFunction:
    """Makes a function of a batch of any size, for a saved graph: XLA compiles it for each size it meets."""
    if node.rows:
        parts = [lower_for_any_batch(part, entry) for part in one_pass_each(node)]
        return lambda features: reduce(lambda done, part: part(done), parts, features)
    chain = Chain(node, entry)
    body, phases = compiled(chain.body), [compiled(phase) for phase in chain.phases()]

    def kernel(features: Features) -> Features:
        given = {name: features[name] for name in chain.inputs} | chain.memory(features)
        params = chain.with_drawn(chain.parameters(features), features["@draws"])
        for phase in phases:
            params = phase(given, params)
        return features | body(given, params)

    return kernel


def lower_plainly(node: Kernel, scope: Scope = nullcontext) -> KernelFunction:
    """Chains stages as plain TensorFlow, for any batch size."""

    def kernel(features: Features) -> Features:
        done = dict(features)
        for stage in node.stages:
            with scope(stage):
                apply_stage(stage, done)
        return done

    return kernel


class Chain:
    """The stages of a kernel and their inputs."""

    def __init__(self, node: Kernel, entry: ElementType) -> None:
        self.stages, self.rows = node.stages, node.rows
        self.quantised = [LOWERINGS[type(stage)].quantised for stage in node.stages]
        self.leads = [all(b.feature != st.feature for b in self.stages[:i]) for i, st in enumerate(self.stages)]
        firsts = {stage.feature: stage for stage in reversed(node.stages)}
        self.memories = {name: (stage, made) for name, stage in firsts.items() if (made := LOWERINGS[type(stage)].memory) is not None}
        """The stages that read their feature from a memory, by feature, each with the function that returns it."""
        self.inputs = tuple(name for name in dict.fromkeys(stage.feature for stage in node.stages) if name not in self.memories)
        self.entry = {name: entry[name] for name in firsts}
        self.foreign = any(not type(ref.step).__module__.startswith("pipegen.") for stage in node.stages for ref in stage.uses())
        """Whether a step comes from another package."""
        self.width = max((r.end for st in self.stages for r in st.uses()), default=0)

    def memory(self, features: Features, batch: int | None = None) -> Features:
        """Returns the memories that replace features; features of a smaller batch are padded to `batch`."""
        n = features["@draws"].shape[0]
        if batch is not None and n != batch:
            n = tf.shape(features["@draws"])[0]
            features = features | {name: _pad(features[name], n, batch) for name in self.memories if name in features}
        return {name: made(stage, features) for name, (stage, made) in self.memories.items()}

    def parameters(self, features: Features, *, quantised: bool = False) -> tuple[Params, ...]:
        """Computes the parameters that XLA must not compute, or the quantised ones; empty for other stages."""
        each = zip(self.stages, self.quantised, strict=True)
        return tuple(LOWERINGS[type(st)].parameters(st, features) if own == quantised else () for st, own in each)

    def with_drawn(self, params: tuple[Params, ...], draws: tf.Tensor) -> tuple[Params, ...]:
        """Adds the quantised parameters, which depend on the draws alone.

        They are a hundred small operations on a few numbers, as one node, which TensorFlow does not inline for every new iterator. XLA
        would take longer to compile them than they take until a run is long. Those of other packages' steps may not compile and stay plain.
        """
        if not any(self.quantised):
            return params
        # Up to the chain's last draw, and the last of all, which is the epoch if a step has a schedule.
        own = tf.concat([draws[:, : self.width], draws[:, -1:]], 1)
        return tuple(map(operator.add, params, (call(self._drawn, own) if self.foreign else in_one_node(self._drawn)(own))))

    @cached_property
    def _drawn(self) -> Any:
        def draw(draws: tf.Tensor) -> tuple[Params, ...]:
            # They read only the shapes of images.
            given = {"@draws": draws, **{name: tf.zeros([1, *t.shape], tf.as_dtype(t.dtype)) for name, t in self.entry.items()}}
            return self.parameters(given, quantised=True)

        return tf.function(draw, autograph=False)

    def phases(self) -> list[Callable[..., Any]]:
        """Lists the functions before the body: the phases of the stages that are the first on their feature."""
        own = [LOWERINGS[type(stage)].phases(stage) if leads else () for stage, leads in zip(self.stages, self.leads, strict=True)]

        def phase(number: int, features: Features, params: tuple[Params, ...]) -> tuple[Params, ...]:
            todo = zip(self.stages, own, params, strict=True)
            return tuple(p[number](features[stage.feature], given) if number < len(p) else given for stage, p, given in todo)

        return [partial(phase, number) for number in range(max(map(len, own)))]

    def body(self, features: Features, params: tuple[Params, ...]) -> Features:
        """Runs all stages with the parameters after the phases: a pure function."""
        done = dict(features)
        for stage, leads, own in zip(self.stages, self.leads, params, strict=True):
            value = done[stage.feature]
            done[stage.feature] = run_stage(stage, value, own if leads else expand(stage, value, own))
        return done

    def in_blocks(self, size: int, into: Sequence[tf.Tensor | None] | None, number: tf.Tensor, *given: Any) -> Features:
        """Runs the phases and the body in one program, `size` examples at a time."""

        def block(features: Features, params: tuple[Params, ...]) -> Features:
            for phase in self.phases():
                params = finished(number >= 0, partial(phase, features, params))
            return self.body(features, params)

        done: Features = in_blocks(block, size, into, given)
        return done

    def by_example(
        self, into: Sequence[tf.Tensor | None] | None, number: tf.Tensor, features: Features, params: tuple[Params, ...]
    ) -> Features:
        """Runs the stages in one program, which goes from example to example and through the stages that change it, in order."""
        (name, images), stages, last = *features.items(), self.stages, len(self.stages)
        acts = [LOWERINGS[type(stage)].acts(stage, images, given) for stage, given in zip(stages, params, strict=True)]
        every = tf.ones([images.shape[0]], tf.bool)
        acting = tf.stack([every if a is None else tf.reduce_any(tf.reshape(a, [images.shape[0], -1]), 1) for a in acts], 1)
        leaves = tf.nest.flatten(params)
        own = [leaf for leaf, shared in zip(leaves, self.shared, strict=True) if not shared]

        def example(image: tf.Tensor, own: list[tf.Tensor], acting: tf.Tensor) -> tf.Tensor:
            def after(place: tf.Tensor) -> tf.Tensor:
                """Returns the first stage that acts, from `place` on."""
                return tf.reduce_min(tf.where(acting[0] & (tf.range(last) >= place), tf.range(last), last))

            def step(place: tf.Tensor, image: tf.Tensor, own: list[tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor, list[tf.Tensor]]:
                single = iter(own)
                flat = [leaf if shared else next(single) for leaf, shared in zip(leaves, self.shared, strict=True)]
                given: tuple[Params, ...] = tf.nest.pack_sequence_as(params, flat)
                each = zip(stages, given, strict=True)
                runs = [partial(_in_phases, stage, image, parts, number >= 0) for stage, parts in each]
                return after(place + 1), runs[0]() if last == 1 else tf.switch_case(place, runs), own

            # The parameters go around the loop, too: elsewhere XLA would slice them for every value that a stage computes.
            return tf.while_loop(lambda place, *_: place < last, step, (after(tf.constant(0)), image, own))[1]

        return {name: in_blocks(example, 1, into, (images, own, acting))}

    @cached_property
    def drawn_types(self) -> Any:
        """The types of all parameters, nested, for `_ROWS` examples."""

        def parameters() -> tuple[Params, ...]:
            draws = tf.zeros([_ROWS, self.width + 1], tf.float64)
            features = {name: tf.zeros([_ROWS, *t.shape], tf.as_dtype(t.dtype)) for name, t in self.entry.items()}
            return self.with_drawn(self.parameters(features | {"@draws": draws}), draws)

        traced: Any = tf.function(parameters, autograph=False).get_concrete_function()
        return traced.structured_outputs

    @cached_property
    def shared(self) -> list[bool]:
        """Whether each parameter, in a flat list, is shared by all examples."""
        return [not t.shape.rank or t.shape[0] != _ROWS for t in tf.nest.flatten(self.drawn_types)]

    def compile(self, batch: int, depth: int, memories: Features) -> tuple[list[Callable[..., Any]], Callable[..., Any]]:
        """Starts to compile the phases and `body` for one batch size.

        With `memories`, which has their types, nothing is compiled ahead. If the results of a phase are too large, there are no phases,
        and `body` does everything.
        """
        features = {k: tf.zeros([batch, *t.shape], tf.as_dtype(t.dtype)) for k, t in self.entry.items()}
        draws = tf.zeros([batch, self.width + 1], tf.float64)
        params: tuple[Any, ...] = self.parameters(features | {"@draws": draws})
        if any(self.quantised):  # traced for the batch, not run: TensorFlow warns of calls that trace
            drawn = self._drawn.get_concrete_function(tf.TensorSpec(draws.shape, draws.dtype)).structured_outputs
            params = tuple(map(operator.add, params, drawn))
        features |= memories
        program = partial(_Program, checked=self.foreign)
        number = tf.constant(0, tf.int64)
        if self.rows:
            each = program(self.by_example, (number, features, params), fills=True).start(depth)
            return [], lambda slot, *given: each(slot, number if slot is None else slot, *given)
        given, first = params, []
        for phase in self.phases():
            first.append(program(phase, (features, given)))
            given = first[-1].structure
        size = block_size(batch, [phase.structure for phase in first]) if depth and not memories else None
        if size is None:
            ahead = not memories
            return [phase.start(ahead=ahead) for phase in first], program(self.body, (features, given)).start(depth, ahead=ahead)
        whole = program(partial(self.in_blocks, size), (number, features, params), fills=True).start(depth)
        return [], lambda number, *given: whole(number, number, *given)


class _Program:
    """A function that XLA compiles for arguments of exactly these types, nested tensors or specs; `structure` has those of its results.

    With `fills`, its first argument is a list with a tensor for each result, whose memory it may fill, or None. With `checked`, an
    operation that XLA does not support raises a `ValueError`; tests check those of our own steps.
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], *, fills: bool = False, checked: bool = True) -> None:
        self._function, self._args, self._fills = function, args, fills
        self._specs = [tf.TensorSpec(t.shape, t.dtype) for t in tf.nest.flatten(args)]

        def flat(*leaves: tf.Tensor) -> Any:
            return self._flat(None, *leaves)

        traced: Any = compiled(flat)
        self._concrete = traced.get_concrete_function(*self._specs)
        if checked:
            traced.experimental_get_compiler_ir(*self._specs)(stage="hlo")
        self.structure = self._concrete.structured_outputs

    def start(self, depth: int = 0, *, ahead: bool = True) -> Callable[..., Any]:
        """Returns the function, which takes the number of the call (it selects the memory) and the arguments.

        With `ahead`, it is compiled on a thread of its own while other kernels are traced and the first examples are decoded, with zeros
        for arguments: for memories they would be too large. `depth` is the number of results in use at a time, if their memory is reused;
        else 0.
        """
        outputs = [tf.TensorSpec(t.shape, t.dtype) for t in tf.nest.flatten(self.structure)]
        run: Callable[..., list[tf.Tensor]] = self._in_fresh_memory
        if depth and any(map(is_large, outputs)):
            run = Places(lambda into, *leaves: tf.nest.flatten(self._flat(into, *leaves)), outputs, depth)
        if ahead:
            _COMPILERS.submit(_warm_up, run, self._specs)

        def call(number: tf.Tensor | None, *given: Any) -> Any:
            return tf.nest.pack_sequence_as(self.structure, run(number, *tf.nest.flatten(given)))

        return call

    def _flat(self, into: Sequence[tf.Tensor | None] | None, *leaves: tf.Tensor) -> Any:
        given = tf.nest.pack_sequence_as(self._args, leaves)
        return self._function(into, *given) if self._fills else self._function(*given)

    def _in_fresh_memory(self, _number: tf.Tensor | None, *leaves: tf.Tensor) -> list[tf.Tensor]:
        return tf.nest.flatten(self._concrete(*leaves))


def _warm_up(run: Callable[..., Any], specs: list[tf.TensorSpec]) -> None:
    """Compiles by running once, inside a dataset: XLA caches programs of eager calls and of datasets separately."""

    def zeros(zero: tf.Tensor) -> Any:
        # Not constants: TensorFlow would try to fold the function when it optimises the graph, and warn that it cannot.
        return run(zero, *(tf.fill(t.shape, tf.cast(zero, t.dtype)) for t in specs))

    next(iter(tf.data.Dataset.range(1).map(tf.autograph.experimental.do_not_convert(zeros))))


def _in_phases(stage: Stage, value: tf.Tensor, params: Params, going: tf.Tensor) -> tf.Tensor:
    """Runs a stage, each of its phases on its own."""
    for phase in LOWERINGS[type(stage)].phases(stage):
        params = finished(going, partial(phase, value, params))
    return run_stage(stage, value, params)


def _pad(t: tf.Tensor, n: tf.Tensor, batch: int) -> tf.Tensor:
    padded = tf.pad(t, [[0, batch - n], *([[0, 0]] * (t.shape.rank - 1))])
    padded.set_shape([batch, *t.shape[1:]])
    return padded


_ROWS = 11  # rows for tracing parameters, to see which have an entry for each example: a number unlikely to be another dimension


class DeviceKernel:
    """A compiled kernel in two halves: the host computes its parameters, tensors `(n, ...)`; a device runs it, on any part of a batch."""

    def __init__(self, node: Kernel, entry: ElementType) -> None:
        self._chain = chain = Chain(node, entry)
        self._phases = [compiled(phase) for phase in (*chain.phases(), chain.body)]

        self._single = chain.shared  # shared parameters are repeated for each example
        self.count = len(self._single)  # number of tensors of its parameters

    def parameters(self, features: Features) -> list[tf.Tensor]:
        """Computes the parameters of a batch, a flat list of tensors `(n, ...)`."""
        draws = features["@draws"]
        params: tuple[Params, ...] = self._chain.with_drawn(self._chain.parameters(features), draws)
        rows = tf.range(tf.shape(draws)[0])
        leaves = zip(tf.nest.flatten(self._counted_from(-rows, params)), self._single, strict=True)
        return [tf.repeat(leaf[None], tf.size(rows), axis=0) if single else leaf for leaf, single in leaves]

    def _counted_from(self, rows: tf.Tensor, params: tuple[Params, ...]) -> tuple[Params, ...]:
        """Adds row numbers, int32 `(n,)`, to those of partners: sent to devices that each get a part of the batch, they are distances."""
        each = zip(self._chain.stages, params, strict=True)
        return tuple((own[0] + rows[:, None], *own[1:]) if isinstance(stage, Combine) else own for stage, own in each)

    def apply(self, features: Features, leaves: Sequence[tf.Tensor]) -> Features:
        """Runs the kernel, which XLA compiles for the current device; matrix products are exact float32."""
        flat = [leaf[0] if single else leaf for leaf, single in zip(leaves, self._single, strict=True)]
        given: tuple[Params, ...] = tf.nest.pack_sequence_as(self._chain.drawn_types, flat)
        inputs = {name: features[name] for name in self._chain.inputs}
        rows = tf.range(tf.shape(next(iter(inputs.values())))[0])
        params = self._counted_from(rows, given)
        *phases, body = self._phases
        with made_for("device"):
            for phase in phases:
                params = phase(inputs, params)
            done: Features = body(inputs, params)
        return features | done
