"""What training with Keras takes from pipegen beside a pipeline: a loss, and a callback that watches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras

from pipegen.arguments import file_or_folder
from pipegen.observe.picture import form_of, write_picture
from pipegen.observe.records import Summary, curves, read_record
from pipegen.observe.watch import Inside, require
from pipegen.terminal import note_between
from pipegen.waiting import WATCHERS, Waits


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


class Monitor(keras.callbacks.Callback):
    """Watches `fit`: processor per core, memory, disk, network, GPUs, and how long each step waits for its batch.

    `pipegen monitor -- python train.py` does the same from outside, without a change to the code. It takes less than 1 % of one core, on
    a thread of its own. It needs the extra `pipegen[monitor]`.

    Args:
        out: The file of the record, JSON lines. A second `fit` writes `run-2.jsonl` beside `run.jsonl`.
        picture: A file to draw when training ends, or several: `.svg`, `.png`, `.pdf` or `.html`.
        every: Seconds between samples, 0.1 at least.
        live: Seconds between lines on standard error; 0 for none.

    Attributes:
        summary: The sums of the latest run; `summary.verdict()` says in a sentence what it waited for.

    Raises:
        ImportError: Where a library of the extra is missing, with the command that installs it.
        ValueError: For a picture of another kind, or an interval that is too short.
    """

    def __init__(
        self,
        out: str | os.PathLike[str] = "run.jsonl",
        picture: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
        *,
        every: float = 1.0,
        live: float = 0.0,
    ) -> None:
        super().__init__()
        several = [picture] if isinstance(picture, (str, os.PathLike)) else picture
        self._out = Path(file_or_folder("out", out, "run.jsonl"))
        self._pictures = [Path(file_or_folder("picture", one, "run.svg")) for one in several]
        for path in self._pictures:
            form_of(path)
        if every < 0.1:
            raise ValueError(f"`every` is at least 0.1 seconds, got {every!r}")
        require("psutil", *(["matplotlib"] if self._pictures else []))
        self._every, self._live = every, live
        self._runs = 0
        self._inside: Inside | None = None
        self._waits: Waits | None = None
        self.summary = Summary()

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Begins the record."""
        self._stop()
        self._runs += 1
        self._inside = Inside(self._numbered(self._out), self._every, self._live, note_between)
        self.summary = self._inside.summary
        self._waits = Waits(self._inside.waited)
        WATCHERS.append(self._waits)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Notes where an epoch begins."""
        if self._inside is not None:
            self._inside.mark("epoch", epoch=epoch)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Ends the record, and draws it."""
        self._stop()
        if self._pictures:
            found = curves(read_record(self._numbered(self._out)))
            for path in self._pictures:
                write_picture(found, self._numbered(path))

    def _stop(self) -> None:
        if self._inside is not None and self._waits is not None:
            WATCHERS.remove(self._waits)
            self._inside.stop()
            self._inside = None

    def _numbered(self, path: Path) -> Path:
        return path if self._runs < 2 else path.with_name(f"{path.stem}-{self._runs}{path.suffix}")
