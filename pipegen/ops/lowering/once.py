"""Parts of a graph that stay functions: what is the same in every graph, traced once a process, and what is rarely run."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from pipegen.lazy import tf
from pipegen.ops.lowering.target import target

if TYPE_CHECKING:
    from collections.abc import Callable


def once(function: Callable[..., tf.Tensor], *tensors: tf.Tensor, **options: Any) -> tf.Tensor:
    """Calls a function that is traced when a graph first calls it with such tensors and options.

    Every later graph has a call of what was traced, which TensorFlow writes into it as if it had been traced there.

    Args:
        function: Takes the tensors and the options, and reads no other tensor.
        tensors: What it works on.
        options: Hashable.
    """
    return _called(function, tensors, options, inlined=True)


def once_apart(function: Callable[..., tf.Tensor], *tensors: tf.Tensor, **options: Any) -> tf.Tensor:
    """Calls a function as `once` does, which stays one node of the graph as with `apart`, and of which a graph holds one copy."""
    return _called(function, tensors, options, inlined=False)


def _called(function: Callable[..., tf.Tensor], tensors: tuple[tf.Tensor, ...], options: dict[str, Any], *, inlined: bool) -> tf.Tensor:
    if tf.executing_eagerly():
        return function(*tensors, **options)
    found: tf.Tensor = _traced(function, tuple(options.items()), target(), inlined)(*tensors)
    return found


# Bounded: each graph that is made copies every function that is alive, so a search over image sizes would slow down.
@lru_cache(maxsize=32)
def _traced(
    function: Callable[..., tf.Tensor], options: tuple[tuple[str, Any], ...], _made_for: str, inlined: bool
) -> Callable[..., tf.Tensor]:
    attributes = None if inlined else {"_noinline": True}
    return tf.function(partial(function, **dict(options)), autograph=False, experimental_attributes=attributes)


def apart(branch: Callable[..., Any]) -> Callable[..., Any]:
    """The branch as a function that stays one node of the graph.

    TensorFlow writes both branches of a condition into the graph, and the one that is not taken still costs a step for
    each of its nodes: with the rare formats inlined, what comes before the decoder took twice as long.
    """
    if tf.executing_eagerly():
        return branch
    return tf.function(branch, autograph=False, experimental_attributes={"_noinline": True})


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
