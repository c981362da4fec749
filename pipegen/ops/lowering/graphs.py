"""Targets of graphs, and functions that are single nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import Any, Literal, TypeVar

from pipegen.lazy import tf

Target = Literal["process", "file", "converter", "device"]
"""`process`: this one. `file`: any process with TensorFlow. `converter`: another runtime, with only common operations. `device`: XLA,
possibly on an accelerator."""

_T = TypeVar("_T")


@contextmanager
def meanwhile(variable: ContextVar[_T], value: _T) -> Iterator[None]:
    """Sets a variable for code traced inside."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


_target: ContextVar[Target] = ContextVar("target", default="process")


def made_for(target: Target) -> AbstractContextManager[None]:
    """Sets the target of graphs traced inside."""
    return meanwhile(_target, target)


def target() -> Target:
    """Returns the target of the graph being traced."""
    return _target.get()


by_xla: ContextVar[bool] = ContextVar("by_xla", default=False)  # whether XLA compiles the function being traced
elsewhere: ContextVar[bool] = ContextVar("elsewhere", default=False)
"""Whether the graph being traced may run in another process that sees the same files."""
long_run: ContextVar[tf.Tensor | None] = ContextVar("long_run", default=None)
"""Whether the graph being traced runs late in a long run, a bool scalar; `None` if nothing is compiled then."""
plain_jpegs: ContextVar[bool] = ContextVar("plain_jpegs", default=False)
"""Whether almost all files that the graph being traced decodes are plain JPEGs."""
graph_around: ContextVar[Any] = ContextVar("graph_around", default=None)
"""The graph from which functions that TensorFlow instantiates at each call take large tensors; `None` for their own."""


def decodes_rare_files_in_python() -> bool:
    """Checks that the graph being traced decodes the few files that are not plain JPEGs by a call of Python."""
    return plain_jpegs.get() and target() == "process" and not elsewhere.get() and not tf.executing_eagerly()


def once(function: Callable[..., tf.Tensor], *tensors: tf.Tensor, **options: Any) -> tf.Tensor:
    """Calls a function of tensors and of hashable options, which reads no other tensor. It is traced once for all graphs, for each type of
    its tensors and each value of its options."""
    if tf.executing_eagerly():
        return function(*tensors, **options)
    found: tf.Tensor = call(_traced(function, tuple(options.items()), (target(), by_xla.get(), decodes_rare_files_in_python())), *tensors)
    return found


# Bounded: each new graph copies every function that is alive, so a search over image sizes would slow down.
@lru_cache(maxsize=16)
def _traced(
    function: Callable[..., tf.Tensor], options: tuple[tuple[str, Any], ...], _made_for: tuple[str, bool, bool]
) -> Callable[..., tf.Tensor]:
    return tf.function(partial(function, **dict(options)), autograph=False)


def apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function one node of each graph that calls it, whose own nodes cost nothing until it is run."""
    if tf.executing_eagerly():
        return function
    # TensorFlow would inline a normal call, and each node would cost a step.
    return partial(call, tf.function(function, autograph=False, experimental_attributes={"_noinline": True}))


def call(function: Callable[..., Any], *given: Any, late: Callable[..., Any] | None = None) -> Any:
    """Calls a `tf.function` from a graph, on nested tensors, as one node.

    TensorFlow's own node for a call prepares the function for several devices, for each node and each iterator: 3 to 10 ms. A branch of a
    `Case` is run unchanged. XLA and saved graphs get a normal call. `late` is an equal function that captures no tensors, for a long run.
    """
    if tf.executing_eagerly() or by_xla.get() or target() != "process":
        return function(*given)
    long = late and long_run.get()
    made: list[Any] = [function] if long is None else [function, late]
    specs = tf.nest.map_structure(lambda one: tf.TensorSpec(one.shape, one.dtype) if isinstance(one, tf.Tensor) else one, given)
    branches = [one.get_concrete_function(*specs) for one in made]
    concrete = branches[0]
    tensors = [one for one in tf.nest.flatten(given) if isinstance(one, tf.Tensor)]
    results = tf.nest.flatten(concrete.structured_outputs)
    node = tf.raw_ops.Case if any(map(is_stateful, branches)) else tf.raw_ops.StatelessCase
    with tf.device("CPU"):  # a branch runs on the device of its node, and accelerators do not decode
        found = node(
            branch_index=tf.constant(0) if long is None else tf.cast(long, tf.int32),
            input=[*tensors, *concrete.captured_inputs],
            Tout=[one.dtype for one in results],
            branches=branches,
            output_shapes=[one.shape.as_proto() for one in results],
        )
    return tf.nest.pack_sequence_as(concrete.structured_outputs, found)


def made_once(name: str, dtype: tf.DType, make: Callable[[], tf.Tensor], shape: Sequence[int] = ()) -> tf.Tensor:
    """Returns a tensor of a shape that the process which runs the graph makes at the first call, and keeps in a resource of this name."""
    if tf.executing_eagerly():  # by itself, a node that makes a second resource inside would wait for ever
        return tf.function(partial(made_once, name, dtype, make, shape), autograph=False)()
    signature = [tf.TensorSpec([], tf.resource)]

    def nothing(held: tf.Tensor) -> tuple[()]:  # noqa: ARG001 - TensorFlow names an input by it
        return ()

    def fill(held: tf.Tensor) -> tuple[()]:
        tf.raw_ops.AssignVariableOp(resource=held, value=make())
        return ()

    # `tf.cond` would inline `make` into the outer graph: for maps some operations for every file, skipped at each call.
    there, lacking = (tf.function(f, signature, autograph=False).get_concrete_function() for f in (nothing, fill))
    around = graph_around.get()
    with around.as_default() if around is not None else nullcontext(), tf.device("CPU:0"):
        held = tf.raw_ops.VarHandleOp(dtype=dtype, shape=shape, shared_name=name)
        is_there = tf.raw_ops.VarIsInitializedOp(resource=held)
        made = tf.raw_ops.If(cond=is_there, input=[held], Tout=[], then_branch=there, else_branch=lacking)
        with tf.control_dependencies([made]):
            return tf.raw_ops.ReadVariableOp(resource=held, dtype=dtype)


def is_stateful(concrete: Any) -> bool:
    """Checks for an operation with side effects in a traced function."""
    return any(operation.op_def.is_stateful for operation in {one.type: one for one in concrete.graph.get_operations()}.values())


def asserted(value: tf.Tensor, condition: tf.Tensor, message: Any) -> tf.Tensor:
    """Returns a tensor after checking a bool scalar; fails with a message, a string scalar, if that is false."""
    checked = tf.debugging.Assert(condition, [message])
    with tf.control_dependencies([checked] if checked is not None else []):
        return tf.identity(value)


def chosen(index: tf.Tensor, branches: Sequence[Callable[..., tf.Tensor]], *given: tf.Tensor) -> tf.Tensor:
    """Calls one of several functions of tensors, which read no others, by an int32 scalar; their results have the same dtype and shape. It
    is one node, as with `either`."""
    if tf.executing_eagerly():
        return branches[int(index)](*given)
    signature = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in given]
    made = [tf.function(branch, input_signature=signature, autograph=False).get_concrete_function() for branch in branches]
    result = made[0].structured_outputs
    node = tf.raw_ops.Case if any(map(is_stateful, made)) else tf.raw_ops.StatelessCase
    (found,) = node(branch_index=index, input=[*given], Tout=[result.dtype], branches=made, output_shapes=[result.shape.as_proto()])
    return found


def either(condition: tf.Tensor, then: Callable[..., Any], otherwise: Callable[..., Any], *given: Any) -> Any:
    """Calls one of two functions of nested tensors, by a bool scalar; their results have the same dtypes and shapes. `tf.cond` inlines both
    into the graph, where each node, and each tensor that they read, costs a step even if it is not run."""
    if tf.executing_eagerly():
        return then(*given) if condition else otherwise(*given)
    flat = tf.nest.flatten(given)
    signature = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in flat]

    def made(branch: Callable[..., Any]) -> Any:
        called = tf.function(lambda *tensors: branch(*tf.nest.pack_sequence_as(given, tensors)), input_signature=signature, autograph=False)
        return called.get_concrete_function()

    both = made(then), made(otherwise)
    if any(function.captured_inputs for function in both):  # both branches would need the captured inputs of both
        return tf.cond(condition, partial(then, *given), partial(otherwise, *given))
    results = both[0].structured_outputs
    dtypes, shapes = zip(*((one.dtype, one.shape.as_proto()) for one in tf.nest.flatten(results)), strict=True)
    branches = {"then_branch": both[0], "else_branch": both[1]}
    return tf.nest.pack_sequence_as(results, tf.raw_ops.If(cond=condition, input=flat, Tout=dtypes, output_shapes=shapes, **branches))
