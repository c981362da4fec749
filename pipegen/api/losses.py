"""A loss that padded batches and several replicas leave as it is."""

from __future__ import annotations

from typing import Any

import keras


@keras.saving.register_keras_serializable(package="pipegen")
class WeightedMean(keras.losses.Loss):
    """Divides the sum of the weighted losses by the sum of the weights, over all replicas of a distribution strategy.

    Keras' default divides by the number of examples: those that `pad` adds weigh nothing, but count, and each replica has a mean of its
    own. With this loss a last batch that is padded has the loss and the gradients of its real examples, on one device and on several.

    Args:
        loss: A loss of Keras, by name or as an object; its `reduction` does not matter. It gives a number for each example, or for each
            place in one, such as a pixel.
        name: What Keras calls it.
    """

    def __init__(self, loss: Any, name: str = "weighted_mean") -> None:
        super().__init__(name=name)
        self.loss = keras.losses.get(loss)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the losses, neither weighed nor summed."""
        return self.loss.call(y_true, y_pred) if isinstance(self.loss, keras.losses.Loss) else self.loss(y_true, y_pred)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        ops = keras.ops
        losses = self.call(y_true, y_pred)
        weights = ops.ones_like(losses)
        for given in (sample_weight, getattr(y_pred, "_keras_mask", None)):
            if given is not None:
                factor = ops.cast(given, losses.dtype)
                weights *= ops.reshape(factor, (*factor.shape, *[1] * (len(losses.shape) - len(factor.shape))))
        # The gradients of replicas are summed, so each divides its part by what all weigh together. No gradient goes through the weights:
        # of a batch of unknown length one would, and replicas of other lengths would wait for each other at different places.
        return ops.divide_no_nan(ops.sum(losses * weights), _over_replicas(ops.stop_gradient(ops.sum(weights))))

    def get_config(self) -> dict[str, Any]:
        """Returns what Keras makes it of again."""
        return {"loss": keras.losses.serialize(self.loss), "name": self.name}


def _over_replicas(weight: Any) -> Any:
    """Returns the sum of a number over the replicas of a strategy; JAX computes with global arrays."""
    if keras.backend.backend() != "tensorflow":
        return weight
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return weight
    return context.all_reduce(tf.distribute.ReduceOp.SUM, weight)
