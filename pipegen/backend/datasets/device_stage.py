"""A split cut in two: what the host hands over, and what an accelerator makes of it, in a model or before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from pipegen.arguments import share, text
from pipegen.backend.datasets.distributed import DistributedBatches
from pipegen.backend.process.graphs import available
from pipegen.backend.running.requests import batch_of
from pipegen.lazy import untraced
from pipegen.ops.families.mixing import GROUP
from pipegen.physical import nodes as p
from pipegen.physical.device import device_kernels, obstacle
from pipegen.physical.extent import FIRST

if TYPE_CHECKING:
    from pipegen.api.pipeline import Pipeline
    from pipegen.backend.datasets.pipeline_dataset import PipelineDataset
    from pipegen.backend.features import Features


@untraced
class DeviceStage:
    """Gives a split as features and parameters, and makes of them what `pipe.dataset` would have given.

    The features are what enters the first kernel on the device, mostly uint8 images; the parameters are a few numbers for each example,
    drawn by the host. So fewer bytes go to the accelerator, and its kernels cost the host no time.

    Args:
        pipe: The pipeline.
        split: The split.

    Raises:
        ValueError: Where no step can run on a device.
    """

    def __init__(self, pipe: Pipeline, split: str) -> None:
        self._pipe, self._split = pipe._at(split), split
        engine = self._pipe._engine
        executor = engine.executor(split)
        if split == "train" and pipe.spec.model.runtime.service is not None:
            said = "the workers of `runtime: {service: …}` make whole batches, so that nothing is left for a device: choose one of the two"
            raise ValueError(said)
        if not available():
            raise ValueError("a device stage is compiled by XLA, which this TensorFlow has not")
        if not device_kernels(executor.divided, executor.wide):
            raise ValueError(f"split `{split}` has nothing that a device could do: {obstacle(executor.divided)}")
        plan = executor.physical(p.FIXED.sending())
        self._kernels = [executor.device_kernel(f) for f in plan.functions if isinstance(f, p.Prepare)]
        self._send = next(f for f in plan.functions if isinstance(f, p.Send))
        self._mixes = any(stage.mixes for f in plan.functions if isinstance(f, p.Prepare) for stage in f.node.stages)

    @property
    def batches(self) -> PipelineDataset:
        """Returns `(features, params)` of the split epoch by epoch, under the rules of `pipe.train`: they share one position."""
        return self._pipe._engine.dataset(self._split, sends=True)

    def dataset(
        self,
        *,
        epoch: int = 0,
        step: int = 0,
        origin: int = 0,
        shift: int = 0,
        shard: tuple[int, int] | None = None,
        device: str | None = None,
    ) -> PipelineDataset:
        """Returns one epoch from one step on, as `pipe.dataset` does, whose elements are `(features, params)`.

        `features` has tensors `(n, ...)` by name, as the kernels on the device take them; `params` is a tuple of tensors `(n, ...)`.

        Raises:
            ValueError: For an unknown epoch, step, share or device.
        """
        pipe = self._pipe
        at = pipe._position(self._split, epoch, step, origin, shift)
        where = None if device is None else text("device", device, "GPU:0")
        return pipe._engine.fixed(self._split, at, share(shard), where, sends=True)

    def distribute(self, strategy: tf.distribute.Strategy) -> DistributedBatches:
        """Returns `(features, params)` as values for the replicas of a strategy, as `pipe.distribute` does.

        Raises:
            ValueError: As `pipe.distribute`; and where replicas would get parts of groups whose examples are mixed.
        """
        size, replicas = self._pipe.spec.model.batch.size, strategy.num_replicas_in_sync
        if self._mixes and size % (GROUP * replicas):
            raise ValueError(
                f"{size} examples among {replicas} replicas are no whole groups of {GROUP}, within which examples are mixed on the device: "
                f"make `batch.size` a multiple of {GROUP * replicas}, or use `pipe.distribute(strategy)`"
            )
        return DistributedBatches(self._pipe, self._split, strategy, sends=True)

    def apply(self, features: Features, params: Sequence[tf.Tensor]) -> Any:
        """Returns a batch as the model takes it, of what `dataset` gave, or of a part of it: whole groups of 8 where examples are mixed.

        A function of TensorFlow, each kernel a program of XLA; within one that XLA compiles, a part of that. It draws nothing.

        Raises:
            ValueError: Within `strategy.run`, for a part that is no whole number of groups whose examples are mixed.
        """
        self._check_part(features)
        given, done = list(params), dict(features)
        for kernel in self._kernels:
            done = kernel.apply(done, given[: kernel.count])
            given = given[kernel.count :]
        return batch_of(self._send, done)

    @property
    def element_spec(self) -> Any:
        """The shapes and dtypes of `(features, params)`."""
        return self._pipe._engine.fixed(self._split, FIRST, None, None, sends=True).element_spec

    def bytes_per_example(self) -> int:
        """Counts the bytes of one example that cross to the device, parameters included; texts and what has no fixed size are left out."""
        leaves = tf.nest.flatten(self.element_spec)
        sizes = [t.shape[1:].num_elements() for t in leaves if t.dtype != tf.string]
        return sum((size or 0) * t.dtype.size for size, t in zip(sizes, (t for t in leaves if t.dtype != tf.string), strict=True))

    def __len__(self) -> int:
        return self._pipe.steps(self._split)

    def __repr__(self) -> str:
        kernels = f"{len(self._kernels)} kernel{'s' if len(self._kernels) > 1 else ''}"
        return f"<DeviceStage of {self._split}: {kernels}, {self.bytes_per_example():,} bytes an example>"

    def _check_part(self, features: Features) -> None:
        context = tf.distribute.get_replica_context()
        if not self._mixes or context is None or context.num_replicas_in_sync == 1:
            return
        rows = next(iter(features.values())).shape[0]
        if rows is not None and rows % GROUP:
            raise ValueError(f"{rows} examples on a replica are no whole groups of {GROUP}, within which examples are mixed")


_STEPS = ("train_step", "test_step", "predict_step")


@untraced
class OnDevice:
    """Fits, evaluates and predicts with a Keras model whose steps begin with the kernels of a pipeline.

    The model is the one that was given, and afterwards as it was, but for its weights: `model.save` and `model.fit(pipe.train)` know
    nothing of this.

    Args:
        pipe: The pipeline.
        model: A compiled model, on Keras' TensorFlow backend.

    Raises:
        ValueError: For another backend, a model that is not compiled, or a training split that has nothing for a device.
    """

    def __init__(self, pipe: Pipeline, model: keras.Model) -> None:
        if keras.backend.backend() != "tensorflow":
            raise ValueError(
                f"`on_device` puts TensorFlow's kernels into Keras' steps, and Keras runs on {keras.backend.backend()}: there, train on "
                "`pipe.train`, `pipe.numpy` or `pipe.jax`, whose kernels run on the host"
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
        """Trains on the training split, and validates on the validation split where there is one.

        Args:
            **options: As `keras.Model.fit` has them, but for the data; `validation_data=None` leaves validation out, and a split's name
                takes that one.

        Raises:
            TypeError: For data.
        """
        _no_data(options, "fit")
        split = options.pop("validation_data", "validation" if "validation" in self._pipe else None)
        if split is not None and not isinstance(split, str):
            raise TypeError("`validation_data` is the name of a split here, or None")
        train, validation = DeviceStage(self._pipe, "train"), None if split is None else self._stage(split)
        with self._stepping(train_step=train, test_step=validation):
            given = None if split is None else self._data(split, validation)
            return self._model.fit(self._data("train", train), validation_data=given, **options)

    def evaluate(self, split: str = "validation", **options: Any) -> Any:
        """Evaluates on a split; the options are those of `keras.Model.evaluate`, but for the data."""
        _no_data(options, "evaluate")
        stage = self._stage(split)
        with self._stepping(test_step=stage):
            return self._model.evaluate(self._data(split, stage), **options)

    def predict(self, split: str = "test", **options: Any) -> Any:
        """Predicts a split, a row for each file of `pipe.files(split)`; the options are those of `keras.Model.predict` but for the data."""
        _no_data(options, "predict")
        stage = self._stage(split)
        with self._stepping(predict_step=stage):
            return self._model.predict(self._data(split, stage), **options)

    def _stage(self, split: str) -> DeviceStage | None:
        """Returns the device stage of a split; `None` where it has nothing for a device, such as one that is only rescaled by the model."""
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
        """Lets steps of the model begin with kernels, which its functions are traced with anew."""
        model = self._model
        first = next(stage for stage in stages.values())
        if first is not None:
            self._build(first)
        try:
            for name, stage in stages.items():
                if stage is not None:
                    setattr(model, name, _with_kernels(getattr(model, name), stage))
            _forget_functions(model)
            yield
        finally:
            for name in _STEPS:
                if name in model.__dict__:
                    delattr(model, name)
            _forget_functions(model)

    def _build(self, stage: DeviceStage) -> None:
        """Lets Keras see a batch as the model takes it, before it looks at what comes from the host."""
        build = getattr(self._model, "_symbolic_build", None)
        if build is None:
            return
        features, params = stage.element_spec
        made = tf.function(stage.apply, autograph=False).get_concrete_function(features, params)
        with self._model.distribute_strategy.scope():
            build(data_batch=made.structured_outputs)


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
