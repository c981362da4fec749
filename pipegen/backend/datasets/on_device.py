"""Training of a Keras model whose steps run the last kernels of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

from pipegen.backend.datasets.device_stage import DeviceStage
from pipegen.backend.datasets.owner import Owner
from pipegen.private.functions import untraced
from pipegen.private.keras import build_symbolically


@untraced
class OnDevice:
    """`fit`, `evaluate` and `predict` of a Keras model whose steps begin with the kernels of a pipeline.

    Only the weights of the model change: `model.save` and `model.fit(pipe.train)` work as before.

    Raises:
        ValueError: For another backend, a model that is not compiled, or a training split without steps for a device.
    """

    def __init__(self, pipe: Owner, model: keras.Model) -> None:
        if keras.backend.backend() != "tensorflow":
            raise ValueError(
                f"`on_device` needs Keras' TensorFlow backend, but Keras runs on {keras.backend.backend()}: train on `pipe.train`, "
                "`pipe.numpy` or `pipe.jax`, whose kernels run on the host"
            )
        if not isinstance(model, keras.Model):
            raise TypeError(f"`on_device` takes a Keras model, got {model!r}")
        if not model.compiled:
            raise ValueError("compile the model first: `model.compile(optimizer, loss)`")
        self._pipe, self._model = pipe, model
        self._replicas = model.distribute_strategy.num_replicas_in_sync
        if "train" in pipe:
            DeviceStage(pipe, "train")

    def fit(self, **options: Any) -> keras.callbacks.History:
        """Trains on the training split, and validates on the validation split if there is one.

        Args:
            **options: Options of `keras.Model.fit`, except for data. `validation_data` is the name of a split, or None for no validation.

        Raises:
            TypeError: If data is passed.
        """
        _no_data(options, "fit")
        split = options.pop("validation_data", "validation" if "validation" in self._pipe else None)
        if split is not None and not isinstance(split, str):
            raise TypeError("`validation_data` must be the name of a split, or None")
        train, validation = DeviceStage(self._pipe, "train"), None if split is None else self._stage(split)
        with self._stepping(train_step=train, test_step=validation):
            given = None if split is None else self._data(split, validation)
            return self._model.fit(self._data("train", train), validation_data=given, **options)

    def evaluate(self, split: str = "validation", **options: Any) -> Any:
        """Evaluates on a split, with the options of `keras.Model.evaluate` except for data."""
        _no_data(options, "evaluate")
        stage = self._stage(split)
        with self._stepping(test_step=stage):
            return self._model.evaluate(self._data(split, stage), **options)

    def predict(self, split: str = "test", **options: Any) -> Any:
        """Predicts a split, one row a file of `pipe.files(split)`, with the options of `keras.Model.predict` except for data."""
        _no_data(options, "predict")
        stage = self._stage(split)
        with self._stepping(predict_step=stage):
            return self._model.predict(self._data(split, stage), **options)

    def _stage(self, split: str) -> DeviceStage | None:
        """Returns the device stage of a split; `None` if it has no steps for a device."""
        try:
            return DeviceStage(self._pipe, split)
        except ValueError:
            return None

    def _data(self, split: str, stage: DeviceStage | None) -> Any:
        if self._replicas > 1:
            strategy = self._model.distribute_strategy
            return self._pipe.distribute(strategy, split) if stage is None else stage.distribute(strategy)
        return self._pipe[split] if stage is None else stage.batches

    @contextmanager
    def _stepping(self, **stages: DeviceStage | None) -> Iterator[None]:
        """Puts kernels at the start of the model's steps, whose functions are traced again."""
        model = self._model
        first = next(iter(stages.values()))
        if first is not None:  # built on a complete batch, before Keras sees one of the host
            made = tf.function(first.apply, autograph=False).get_concrete_function(*first.element_spec)
            with model.distribute_strategy.scope():
                build_symbolically(model, made.structured_outputs)

        own = {name: model.__dict__[name] for name in stages if name in model.__dict__}
        try:
            for name, stage in stages.items():
                if stage is not None:
                    setattr(model, name, _with_kernels(getattr(model, name), stage))
            _forget_functions(model)
            yield
        finally:
            for name in stages.keys() & model.__dict__:
                delattr(model, name)
            for name, step in own.items():
                setattr(model, name, step)
            _forget_functions(model)


def _with_kernels(step: Any, stage: DeviceStage) -> Any:
    def begin(data: Any) -> Any:
        return step(stage.apply(*data))

    return begin


def _forget_functions(model: keras.Model) -> None:
    model.train_function = model.test_function = model.predict_function = None


def _no_data(options: dict[str, Any], method: str) -> None:
    given = [name for name in ("x", "y", "sample_weight", "batch_size", "validation_split") if name in options]
    if given:
        raise TypeError(f"`on_device(model).{method}` takes its data from the pipeline: leave out {' and '.join(given)}")
