"""What a graph is made for, and the parts of it that are functions of their own."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pipegen.lazy import tf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager


Target = Literal["process", "file", "converter", "device"]
"""`process`: this one. `file`: any process with TensorFlow. `converter`: another runtime, which has the ordinary operations alone.
`device`: XLA on an accelerator, perhaps."""

_T = TypeVar("_T")


@contextmanager
def meanwhile(variable: ContextVar[_T], value: _T) -> Iterator[None]:
    """Gives a variable a value for what is traced within."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


_target: ContextVar[Target] = ContextVar("target", default="process")


def made_for(target: Target) -> AbstractContextManager[None]:
    """Lets what is traced meanwhile be made for a target."""
    return meanwhile(_target, target)


def target() -> Target:
    """Returns what the graph that is being traced is made for."""
    return _target.get()


_compiled: ContextVar[bool] = ContextVar("compiled", default=False)


def for_xla() -> AbstractContextManager[None]:
    """Lets what is traced meanwhile be compiled by XLA as a whole."""
    return meanwhile(_compiled, True)


def is_compiled() -> bool:
    """Returns whether XLA compiles what is being traced."""
    return _compiled.get()


_elsewhere: ContextVar[bool] = ContextVar("elsewhere", default=False)


def may_run_elsewhere() -> AbstractContextManager[None]:
    """Lets what is traced meanwhile read nothing that only this process has."""
    return meanwhile(_elsewhere, True)


def runs_elsewhere() -> bool:
    """Returns whether the graph that is being traced may run in another process that sees the same files."""
    return _elsewhere.get()


_around: ContextVar[Any] = ContextVar("around", default=None)


def called_in(graph: Any) -> AbstractContextManager[None]:
    """Lets what is traced meanwhile, for a function that TensorFlow makes ready anew at each call, take what is large from `graph`."""
    return meanwhile(_around, graph)


def graph_around() -> Any:
    """Returns the graph that calls the function which is being traced, where that is to be as small as can be; else `None`."""
    return _around.get()


def once(function: Callable[..., tf.Tensor], *tensors: tf.Tensor, **options: Any) -> tf.Tensor:
    """Calls a function that is traced when a graph first calls it with such tensors and options, and not again for later graphs.

    Args:
        function: Takes the tensors and the options, and reads no other tensor.
        tensors: What it works on.
        options: Hashable.
    """
    if tf.executing_eagerly():
        return function(*tensors, **options)
    found: tf.Tensor = call(_traced(function, tuple(options.items()), (target(), is_compiled())), *tensors)
    return found


# Bounded: each graph that is made copies every function that is alive, so a search over image sizes would slow down.
@lru_cache(maxsize=16)
def _traced(
    function: Callable[..., tf.Tensor], options: tuple[tuple[str, Any], ...], _made_for: tuple[str, bool]
) -> Callable[..., tf.Tensor]:
    return tf.function(partial(function, **dict(options)), autograph=False)


def apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as one node of each graph that calls it, whose own nodes cost nothing until it is run."""
    if tf.executing_eagerly():
        return function
    # Where the usual node calls it, TensorFlow would write it into the graph, and its nodes would cost a step each.
    return partial(call, tf.function(function, autograph=False, experimental_attributes={"_noinline": True}))


def call(function: Callable[..., Any], *given: Any) -> Any:
    """Calls a `tf.function` from a graph, on nested tensors, as one node.

    TensorFlow's own node for a call prepares the function for several devices, anew for each node and each iterator: from 3 to 10 ms. The
    only branch of a choice is run as it is. XLA, and what writes graphs to files, know the usual node.
    """
    if tf.executing_eagerly() or is_compiled() or target() != "process":
        return function(*given)
    made: Any = function
    concrete = made.get_concrete_function(*tf.nest.map_structure(_spec, given))
    tensors = [one for one in tf.nest.flatten(given) if isinstance(one, tf.Tensor)]
    results = tf.nest.flatten(concrete.structured_outputs)
    node = tf.raw_ops.Case if is_stateful(concrete) else tf.raw_ops.StatelessCase
    with tf.device("CPU"):  # a branch runs where its node does, and no accelerator decodes
        found = node(
            branch_index=tf.constant(0),
            input=[*tensors, *concrete.captured_inputs],
            Tout=[one.dtype for one in results],
            branches=[concrete],
            output_shapes=[one.shape.as_proto() for one in results],
        )
    return tf.nest.pack_sequence_as(concrete.structured_outputs, found)


def is_stateful(concrete: Any) -> bool:
    """Returns whether a traced function has an operation that does more than to compute."""
    return any(operation.op_def.is_stateful for operation in {one.type: one for one in concrete.graph.get_operations()}.values())


def _spec(given: Any) -> Any:
    return tf.TensorSpec(given.shape, given.dtype) if isinstance(given, tf.Tensor) else given


def either(condition: tf.Tensor, then: Callable[..., Any], otherwise: Callable[..., Any], *given: Any) -> Any:
    """Gives what one of two functions gives, which is called.

    `tf.cond` writes both into the graph, where a node costs a step whether it is run or not, and so does each tensor that they read.

    Args:
        condition: A bool scalar.
        then: Takes `given`, and gives nested tensors.
        otherwise: Likewise, of the same dtypes and shapes.
        given: Nested tensors.
    """
    if tf.executing_eagerly():
        return then(*given) if condition else otherwise(*given)
    flat = tf.nest.flatten(given)
    signature = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in flat]

    def made(branch: Callable[..., Any]) -> Any:
        called = tf.function(lambda *tensors: branch(*tf.nest.pack_sequence_as(given, tensors)), input_signature=signature, autograph=False)
        return called.get_concrete_function()

    both = made(then), made(otherwise)
    if any(function.captured_inputs for function in both):  # of which each would have to have those of the other, too
        return tf.cond(condition, partial(then, *given), partial(otherwise, *given))
    results = both[0].structured_outputs
    dtypes, shapes = zip(*((one.dtype, one.shape.as_proto()) for one in tf.nest.flatten(results)), strict=True)
    branches = {"then_branch": both[0], "else_branch": both[1]}
    return tf.nest.pack_sequence_as(results, tf.raw_ops.If(cond=condition, input=flat, Tout=dtypes, output_shapes=shapes, **branches))
