"""`WeightedMean`, a loss that is right for padded batches and for several replicas."""

from __future__ import annotations

from typing import Any

import keras


@keras.saving.register_keras_serializable(package="pipegen")
class WeightedMean(keras.losses.Loss):
    """The sum of the weighted losses divided by the sum of the weights, over all replicas of a distribution strategy.

    Keras' default divides by the number of examples. That counts the examples added by `pad`, although their weight is 0, and takes a
    mean for each replica. With this loss, a padded last batch has the loss and gradients of its real examples, on any number of devices.

    Args:
        loss: A Keras loss, by name or as an object; its `reduction` is ignored. It computes a number for each example, or for each
            place in one, such as a pixel.
        name: Its name in Keras.
    """

    def __init__(self, loss: Any, name: str = "weighted_mean") -> None:
        super().__init__(name=name)
        self.loss = keras.losses.get(loss)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Computes the losses, neither weighted nor summed."""
        return self.loss.call(y_true, y_pred) if isinstance(self.loss, keras.losses.Loss) else self.loss(y_true, y_pred)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        ops = keras.ops
        losses = self.call(y_true, y_pred)
        weights = ops.ones_like(losses)
        for given in (sample_weight, getattr(y_pred, "_keras_mask", None)):
            if given is not None:
                factor = ops.cast(given, losses.dtype)
                weights *= ops.reshape(factor, (*factor.shape, *[1] * (len(losses.shape) - len(factor.shape))))
        # The gradients of replicas are summed, so each replica divides its part by the total weight. The gradient stops at the weights:
        # in a batch of unknown length it would go through, and replicas of different lengths would deadlock in their reductions.
        return ops.divide_no_nan(ops.sum(losses * weights), _over_replicas(ops.stop_gradient(ops.sum(weights))))

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments from which Keras rebuilds it."""
        return {"loss": keras.losses.serialize(self.loss), "name": self.name}


def _over_replicas(weight: Any) -> Any:
    """Sums a number over the replicas of a strategy; JAX computes with global arrays already."""
    if keras.backend.backend() != "tensorflow":
        return weight
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return weight
    return context.all_reduce(tf.distribute.ReduceOp.SUM, weight)
