"""Parts that are the same in every graph, such as the decoders of the formats: traced once a process."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import tensorflow as tf


def once(function: Callable[..., tf.Tensor], *tensors: tf.Tensor, **options: Any) -> tf.Tensor:
    """Calls a function that is traced when a graph first calls it with such tensors and options.

    Every later graph has a call of what was traced, which TensorFlow writes into it as if it had been traced there.

    Args:
        function: Takes the tensors and the options, and reads no other tensor.
        tensors: What it works on.
        options: Hashable.
    """
    import tensorflow as tf

    if tf.executing_eagerly():
        return function(*tensors, **options)
    found: tf.Tensor = _traced(function, tuple(options.items()))(*tensors)
    return found


# Bounded: each graph that is made copies every function that is alive, so a search over image sizes would slow down.
@lru_cache(maxsize=16)
def _traced(function: Callable[..., tf.Tensor], options: tuple[tuple[str, Any], ...]) -> Callable[..., tf.Tensor]:
    import tensorflow as tf

    return tf.function(partial(function, **dict(options)), autograph=False)
