"""`Pipeline`, which `pipegen.build` returns, and its stages. TensorFlow is imported when one is made."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakSet

from pipegen.arguments import called_with_count, file_or_folder, got, pair, share, text, whole
from pipegen.data.split_checks import meant_split
from pipegen.diagnostics.suggest import member
from pipegen.lazy import late
from pipegen.phases.state import Timeline, make_state, position_from
from pipegen.physical.decide import extent_of
from pipegen.physical.extent import FIRST, Extent, Position
from pipegen.plan.nodes import Plan
from pipegen.private.functions import untraced
from pipegen.terminal import visible

if TYPE_CHECKING:
    import jax
    import keras
    import numpy as np
    import tensorflow as tf
    from PIL import Image

    from pipegen.api import predictions as predicting
    from pipegen.api.predictions import Predictions
    from pipegen.backend.datasets import engine, epoch_callback
    from pipegen.backend.datasets.device_stage import DeviceStage
    from pipegen.backend.datasets.distributed import DistributedBatches
    from pipegen.backend.datasets.epoch_callback import ResumeCallback, StageCallback
    from pipegen.backend.datasets.grain_batches import GrainBatches
    from pipegen.backend.datasets.jax_batches import JaxBatches
    from pipegen.backend.datasets.numpy_batches import NumpyBatches
    from pipegen.backend.datasets.on_device import OnDevice
    from pipegen.backend.datasets.pipeline_dataset import PipelineDataset
    from pipegen.backend.datasets.requested import Augmented
    from pipegen.backend.datasets.torch_batches import TorchBatches
    from pipegen.backend.running.lowered import Lowered
    from pipegen.backend.service.feed import Fed
    from pipegen.data import buckets, sampling
    from pipegen.page import Explanation, Page
    from pipegen.phases import layered
    from pipegen.phases.specs import CompiledSpec, Spec
    from pipegen.plan.evaluation_plans import Takes
    from pipegen.views import eject, serving, summary
    from pipegen.views.eject import Ejected
    from pipegen.views.export import Exported
    from pipegen.views.serving import EvaluationLayer, ServedModel
else:
    predicting, layered = late("pipegen", "api.predictions", "phases.layered")
    engine, epoch_callback = late("pipegen.backend.datasets", "engine", "epoch_callback")
    buckets, sampling = late("pipegen.data", "buckets", "sampling")
    eject, serving, summary = late("pipegen.views", "eject", "serving", "summary")


def _leave_accelerators(module: str, name: str) -> None:
    """Keeps TensorFlow off the accelerators, for another framework, which must be installed."""
    if find_spec(module) is None:
        raise ModuleNotFoundError(f"`pipe.{module}` needs {name}, which is not installed: `pip install {module}`", name=module)
    from pipegen.backend.process.devices import hide_accelerators

    hide_accelerators()


def _one_of(name: str, value: Any, first: str, second: str) -> Any:
    if not isinstance(value, str):
        raise TypeError(f"`{name}` is {first!r} or {second!r}, got {got(value)}")
    if value not in (first, second):
        raise ValueError(f"`{name}` is {first!r} or {second!r}, got {value!r}")
    return value


def leaves_steps(stages: Any) -> bool:
    """Checks `stages`; true if the steps on batches are left to a layer (`element`), false for `all`."""
    return _one_of("stages", stages, "all", "element") == "element"


def _checkpoints(directory: Any) -> Path | None:
    return None if directory is None else file_or_folder("directory", directory, "checkpoints/")


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"`{name}` is True or False, got {got(value)}")
    return value


LIVE: WeakSet[Pipeline] = WeakSet()  # all pipelines of this process that are in use


@untraced
class Pipeline:
    """A compiled spec and its data, as datasets for training and evaluation. `pipegen.build` makes it."""

    def __init__(self, compiled: CompiledSpec, rebuild: Callable[[Spec], Pipeline], shared: engine.Shared | None = None) -> None:
        self.spec = compiled.spec
        self._rebuild = rebuild
        self._manifest = compiled.manifest
        self._plans = compiled.plans
        self._compiled = compiled
        LIVE.add(self)
        self._engine = engine.Engine(compiled, {split: done.plan for split, done in compiled.splits.items()}, shared)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of training, each a pipeline of its own; empty without `stages` in the spec.

        `for stage in pipe.stages: model.fit(stage.train, initial_epoch=stage.initial_epoch, epochs=stage.epochs)`.
        """
        return ()

    @property
    def _main(self) -> Plan:
        """Plan of the training split, else of the first split."""
        return self._plans["train" if "train" in self._plans else next(iter(self._plans))]

    def _require(self, split: str) -> None:
        if not isinstance(split, str):
            raise TypeError(f"a split must be a name such as {self._main.split!r}, got {got(split)}; known: {', '.join(self._plans)}")
        if split not in self._plans:
            raise KeyError(f"there is no split {split!r}{meant_split(split, self._plans)}")

    def _at(self, split: str, epoch: int | None = None) -> Pipeline:
        """Pipeline that runs a split at an epoch, or now: for `train`, a stage if there are stages; else this pipeline."""
        self._require(split)
        return self

    if not TYPE_CHECKING:  # with it, a type checker would accept every attribute

        def __getattr__(self, name: str) -> Any:
            """Raises an error that lists the splits, for code that uses an unknown attribute such as `pipe.val`."""
            plans = self.__dict__.get("_plans")
            if plans is None or name.startswith("_"):
                raise AttributeError(f"'Pipeline' object has no attribute {name!r}", name=name, obj=self)
            meant = member(name) or meant_split(name, self._plans)
            raise AttributeError(f"a pipeline has no attribute {name!r}{meant}", name=name, obj=self)

    # Datasets

    @property
    def train(self) -> PipelineDataset:
        """The training split. An epoch is counted when its last batch has been handed over.

        Iterators of a distribution strategy read some batches ahead, in short epochs even a whole epoch. Give `fit` the `callback` there:
        it sets the epoch.
        """
        return self["train"]

    @property
    def validation(self) -> PipelineDataset:
        """The validation split: complete and in source order."""
        return self["validation"]

    @property
    def test(self) -> PipelineDataset:
        """The test split: complete and in source order."""
        return self["test"]

    def __getitem__(self, split: str) -> PipelineDataset:
        self._require(split)
        return self._engine.dataset(split)

    def __iter__(self) -> Iterator[str]:
        return iter(self._plans)

    def __reduce__(self) -> tuple[Callable[..., Pipeline], tuple[Spec]]:
        """Pickles as the spec, the arrays and the permissions: a copy is built from these, and starts at epoch 0."""
        return self._rebuild, (self.spec,)

    def __contains__(self, split: object) -> bool:
        return isinstance(split, str) and split in self._plans

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits, in the order of the spec."""
        return tuple(self._plans)

    def dataset(
        self,
        split: str,
        *,
        epoch: int = 0,
        step: int = 0,
        origin: int = 0,
        shift: int = 0,
        shard: tuple[int, int] | None = None,
        device: str | None = None,
        stages: Literal["all", "element"] = "all",
    ) -> PipelineDataset:
        """Makes a dataset of one epoch of a split, from a step on. It has no state, as strategies, services and evaluation need it.

        Args:
            split: The split.
            epoch: The epoch, from 0; it determines the order and the draws of the training split.
            step: The first step.
            origin: The slot of the epoch at which its step 0 begins, if the epoch was begun with another batch size: see `state`.
            shift: With `epoch: {steps: N}`, how many places later in the order the batches lie for that reason: see `state`.
            shard: `(index, count)`: the share of each global batch, in place of the spec's.
            device: Prefetch to this device, such as `GPU:0`; `auto` is the first accelerator. The default is that of
                `runtime: {prefetch: {device: …}}`; `none` leaves the batches on the host, as distribution strategies need it.
            stages: `all`, or `element` for a model that contains `pipe.layer()`: without the steps of that layer. Nothing is cached then.

        Raises:
            ValueError: For an unknown epoch, step, share or device.
            SpecError: With `stages="element"`, if there are random steps among those of the layer.
        """
        pipe = self._at(split, epoch)
        at = pipe._position(split, epoch, step, origin, shift)
        sent = pipe._engine.device(split, None if device is None else text("device", device, "GPU:0"))
        given = split, at, share(shard), sent
        return pipe._before_layer(*given) if leaves_steps(stages) else pipe._engine.fixed(*given)

    def peek(self, split: str = "train", n: int = 1) -> Any:
        """Reads the next `n` examples of a split as NumPy arrays; the position stays."""
        pipe = self._at(split)
        at = pipe._now() if split == "train" else FIRST
        return summary.peek(pipe._engine.executor(split), lambda at: self._from(split, at), at, whole("n", n, 1))

    def preview(
        self,
        split: str = "train",
        *,
        rows: int = 6,
        draws: int = 5,
        epoch: int = 0,
        cell: int = 144,
        progress: Callable[[int], None] | None = None,
    ) -> Image.Image:
        """Draws a contact sheet: originals beside augmented versions, with class names.

        Args:
            split: The split.
            rows: The number of originals, spread over the split.
            draws: The number of augmented versions of each, from as many epochs.
            epoch: The epoch of the first version.
            cell: The longer side of each picture, in pixels.
            progress: Called with the number of rows drawn.
        """
        from pipegen.views.preview import contact_sheet

        pipe = self._at(split, epoch)
        tick = called_with_count(progress)
        rows, draws, cell = (whole(name, value, 1) for name, value in (("rows", rows), ("draws", draws), ("cell", cell)))
        return contact_sheet(pipe._engine, split, rows=rows, draws=draws, first_epoch=whole("epoch", epoch, 0), cell=cell, progress=tick)

    def export(
        self,
        folder: str | os.PathLike[str],
        split: str = "train",
        *,
        examples: int | None = 32,
        draws: int = 1,
        epoch: int = 0,
        form: Literal["png", "jpeg"] = "png",
        quality: int = 95,
        prefix: str = "",
        overwrite: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> Exported:
        """Writes augmented examples as image files, and a table of what was drawn for each.

        Args:
            folder: The folder to write to, made if needed; it must be empty unless `overwrite` is set. The table is its `metadata.jsonl`.
            split: The split.
            examples: The number of examples, in the order of the first epoch; `None` for whole epochs as training sees them. A last batch
                that `remainder: drop` leaves out is not written; `left_out` of the result counts it.
            draws: The number of versions of each, from as many epochs.
            epoch: The epoch of the first version.
            form: `png` or `jpeg`.
            quality: JPEG quality, 1 to 100.
            prefix: The beginning of each file name.
            overwrite: Accept a folder that is not empty, and replace files of the same names.
            progress: Called with the number of examples written.
        """
        from pipegen.views.export import Wanted, export

        pipe = self._at(split, epoch)
        tick = called_with_count(progress)
        count = None if examples is None else whole("examples", examples, 1)
        draws, epoch, quality = whole("draws", draws, 1), whole("epoch", epoch, 0), whole("quality", quality, 1, 100)
        at = file_or_folder("folder", folder, "augmented/")
        wanted = Wanted(at, count, draws, epoch, form, quality, text("prefix", prefix, "rose-"), overwrite)
        return export(pipe._engine, pipe._plans[split], wanted, tick)

    # The data

    def files(self, split: str) -> Sequence[str]:
        """Lists the files of a split in source order, the order of `predict` outside training; for rows, their numbers as text.

        With `batch.buckets`, they are grouped by bucket, as `predict` sees them.
        """
        self._require(split)
        files, order = self._manifest.files(split), self._order(split)
        files = files if order is None else files.take(order)
        return files if self._manifest.own(split).listing.shards is not None else tuple(files)

    def labels(self, split: str) -> np.ndarray[Any, Any] | None:
        """Lists the class index of each example of a split, int64, in the order of `files`; `None` without labels."""
        self._require(split)
        labels, order = self._manifest.labels(split), self._order(split)
        return labels if labels is None or order is None else labels[order]

    def _order(self, split: str) -> np.ndarray[Any, Any] | None:
        """Places in the listing of a split's examples, in the order of its batches; `None` for the listing's order."""
        found = buckets.in_buckets(self.spec.model, self._manifest, split) if split != "train" else None
        return None if found is None else found.members

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes, in the order of their indices."""
        return self._manifest.class_names

    def num_examples(self, split: str) -> int:
        """Counts the examples of a split."""
        self._require(split)
        return self._manifest.num_examples(split)

    def steps(self, split: str) -> int:
        """Counts the batches in an epoch of a split, for `steps_per_epoch` if a dataset's length is unknown.

        With stages of training, an epoch of its split is one of the current stage.
        """
        return self._at(split)._engine.executor(split).steps

    def fed(self) -> Fed:
        """Counts the batches of the training split made by workers of the tf.data service, and those made in this process.

        All are 0 without `runtime.service`. Batches are prefetched, so some may not have been handed over yet. With stages of training,
        the counts are those of the current stage.
        """
        return (self._at("train") if "train" in self else self)._engine.fed()

    @property
    def class_weights(self) -> dict[int, float] | None:
        """Balanced weights of the training classes, for `fit(class_weight=)`: examples / (classes × examples of the class).

        Examples that `sampling` repeats count as often as they are seen: each of several balanced classes weighs 1.
        """
        return sampling.class_weights(self.spec.model, self._manifest) if "train" in self._plans else None

    @property
    def element_spec(self) -> Any:
        """Shapes and dtypes of a training batch; without a training split, of a batch of the first split."""
        return self[self._main.split].element_spec

    @property
    def spec_hash(self) -> str:
        """Hash of the spec's meaning; see also `fingerprint`."""
        return self.spec.hash

    @property
    def fingerprint(self) -> str:
        """Hash of the data, wherever it is mounted: files by relative names and sizes, arrays by their values."""
        return self._manifest.fingerprint

    def callback(self, directory: str | os.PathLike[str] | None = None) -> ResumeCallback:
        """Makes a Keras callback that starts the pipeline at the epoch of `fit`, or at the position of restored weights.

        Put it behind the callback that saves the model, such as `BackupAndRestore(directory, double_checkpoint=True)`. That one keeps the
        previous weights, too: if a process was killed while it wrote the latest ones, the run continues from the previous ones. See
        `docs/resuming.md`. The callback adds to Keras' logs of each epoch `wait_share`, the share of the training steps' time spent
        waiting for data, and `examples_per_second`; a distribution strategy hides both.

        Args:
            directory: The folder of the checkpoints, such as `BackupAndRestore`'s, for the record of the run; without it nothing is kept.
        """
        return epoch_callback.ResumeCallback(self, _checkpoints(directory))

    # For other frameworks

    def numpy(self, split: str) -> NumpyBatches:
        """Makes NumPy batches of a split, for JAX, PyTorch and own loops; keeps TensorFlow off the GPU under another Keras backend."""
        from pipegen.backend.datasets.numpy_batches import NumpyBatches

        keras = sys.modules.get("keras")
        if keras is not None and keras.backend.backend() != "tensorflow":
            _leave_accelerators("keras", "Keras")
        return NumpyBatches(self[split])

    def distribute(self, strategy: tf.distribute.Strategy, split: str = "train") -> DistributedBatches:
        """Makes batches of a split for the replicas of a strategy, for `model.fit` and own loops: `strategy.run(step, args=(batch,))`.

        The shares of the replicas, joined in their order, are the global batch. Each of several workers (`MultiWorkerMirroredStrategy`)
        makes its own share. Keras 3's `fit` does not run under that strategy; own loops do.

        Args:
            strategy: The strategy.
            split: The split.

        Raises:
            ValueError: For a `ParameterServerStrategy`, or if a batch does not divide among the replicas.
        """
        from pipegen.backend.datasets.distributed import DistributedBatches

        self._require(split)
        return DistributedBatches(self, split, strategy)

    def device_stage(self, split: str = "train") -> DeviceStage:
        """Cuts a split in two: the host provides features as they are stored, and an accelerator runs the kernels on them.

        `stage.dataset(epoch=0)` yields `(features, params)`. In a `tf.function`, `stage.apply(features, params)` computes what
        `pipe.dataset` yields: the same bits on a CPU, and equal within rounding (E1) on an accelerator. `on_device` does both for Keras.
        With stages of training, it is made for the current one.

        Raises:
            ValueError: If no step can run on a device; it names the obstacle.
        """
        from pipegen.backend.datasets.device_stage import DeviceStage

        self._require(split)
        return DeviceStage(self, split)

    def on_device(self, model: keras.Model) -> OnDevice:
        """Trains a compiled Keras model with the kernels inside of its training steps: `pipe.on_device(model).fit(epochs=3)`.

        Raises:
            ValueError: If Keras does not run on TensorFlow, the model is not compiled, or no step can run on a device.
        """
        from pipegen.backend.datasets.on_device import OnDevice

        return OnDevice(self, model)

    def torch(self, split: str) -> TorchBatches:
        """Makes an `IterableDataset` of PyTorch tensors on the CPU; keeps TensorFlow off the GPU.

        Large tensors share the memory of the batch, without a copy. Iterate it, or pass it to `DataLoader(…, batch_size=None,
        num_workers=0)`. torchdata's `StatefulDataLoader` saves and restores its position; for the training split that is `pipe.state()`.

        Raises:
            ModuleNotFoundError: If PyTorch is not installed.
        """
        self._require(split)
        _leave_accelerators("torch", "PyTorch")
        from pipegen.backend.datasets.torch_batches import TorchBatches

        return TorchBatches(self, split)

    def jax(self, split: str, sharding: jax.sharding.Sharding | None = None) -> JaxBatches:
        """Makes batches of JAX arrays; the next batch is sent to the devices while one is used. Keeps TensorFlow off the GPU.

        Args:
            split: The split.
            sharding: How the rows of a batch lie on the devices of all processes, such as `NamedSharding(mesh, P("data"))`. Batches are
                then global arrays, of which this process makes only its own rows. Without it, a batch is this process' share, on its
                first device.

        Raises:
            ModuleNotFoundError: If JAX is not installed.
            ValueError: If the rows of a process are not one contiguous, equal share, or a last batch does not divide among the devices.
        """
        self._require(split)
        _leave_accelerators("jax", "JAX")
        from pipegen.backend.datasets.jax_batches import JaxBatches

        return JaxBatches(self, split, sharding)

    def grain(self, split: str) -> GrainBatches:
        """Makes a `grain.IterDataset` of NumPy arrays, whose iterators save and restore their position; keeps TensorFlow off the GPU.

        An iteration of the training split is an epoch; `RepeatIterDataset` would repeat the same one. Transformations of Grain can follow,
        but not `mp_prefetch`, since batches are made in threads.

        Raises:
            ModuleNotFoundError: If Grain is not installed.
        """
        self._require(split)
        _leave_accelerators("grain", "Grain")
        from pipegen.backend.datasets.grain_batches import GrainBatches

        return GrainBatches(self, split)

    # Predictions

    def tta(self, split: str, views: Any, *, examples: int | None = None) -> Augmented:
        """Makes several views of each example of a split, for merged predictions: test-time augmentation.

        The rows of an example are adjacent, and examples come in source order. Each iteration yields the same.

        Args:
            split: The split; not `train`, whose order is random.
            views: A number of draws of the random training steps, without those that combine examples. Or a list, or a map by name, with
                the work of each view: nothing (`[]`), or a step or a list of steps as in a spec, which run before the arithmetic at the
                end; or edits of the spec's steps by their ids: `{"replace": {"center_crop": {"corner_crop": {"size": 224}}}}`, likewise
                `set`, `remove`, `before`, `after` and `append`.
            examples: The number of examples in a batch, on all hosts; by default, their views have about as many rows as a batch.

        Returns:
            Batches of inputs and targets for `model.predict` and `model.evaluate`. `merge` turns the predictions into one row for each
            example.

        Raises:
            SpecError: For invalid steps. `ValueError` for views of different shapes, and for the split `train`.
        """
        self._require(split)
        if split == "train":
            raise ValueError("test-time augmentation needs examples in source order, and `train` is shuffled: use another split")
        return predicting.tta(self._compiled, split, views, examples)

    def merge(self, predictions: Any, views: Any, *, how: Literal["mean", "geometric", "max", "vote"] = "mean") -> Any:
        """Merges the predictions on the views of each example into one row.

        Args:
            predictions: The result of `predict` for a dataset of `tta`, or of `predict_on` with views: an array, or a list or map of
                arrays for a model with several outputs.
            views: The views, or their number.
            how: The `mean`; the `geometric` mean of probabilities, which sum to 1 again; the `max`; or `vote`, the share of the
                views that each class wins.
        """
        return predicting.merged(predictions, views, how)

    def predict_on(self, wanted: Any, *, views: Any = None) -> Predictions:
        """Runs this spec's evaluation steps on unlabelled data.

        Args:
            wanted: A folder (every image in it and below), a file, a list of files, or images as an array `(n, height, width, 1 or 3)`
                or a list of arrays: uint8, or uint16 with `bits: 16`; with `channels: 4` also of 4 channels. With the source
                `arrays`: images as an array or a list, with the dtype and the range of values that it was built on.
            views: Several views of each, as for `tta`; `merge` then makes a row for each file.

        Returns:
            `.dataset` for `model.predict`, and `.files`, one for each row (with views: for each merged row), in order.
        """
        return predicting.predict_on(self._compiled, wanted, views)

    def trim(self, split: str, predictions: Any) -> Any:
        """Removes the rows added by `remainder: pad`: one row for each file remains.

        Args:
            split: The split that was predicted on.
            predictions: The result of `predict`: an array, or a list or map of arrays for a model with several outputs.
        """
        count = self.num_examples(split)
        return predicting.rows_kept(predictions, count, None if self._order(split) is None else self._engine.executor(split).order)

    # Saving and restoring the position

    def _position(self, split: str, epoch: int, step: int, origin: int = 0, shift: int = 0) -> Position:
        self._require(split)
        epoch, step, origin, shift = whole("epoch", epoch), whole("step", step), whole("origin", origin), whole("shift", shift)
        extent = self._engine.executor(split).order
        steps = extent.steps_from(origin)
        if not 0 <= step <= steps or epoch < 0:
            raise ValueError(f"epoch {epoch}, step {step} is not in split {split!r}, whose epochs have {steps} steps")
        return extent.counted(epoch, step, origin, shift)

    def _from(self, split: str, at: Position, shard: tuple[int, int] | None = None, *, sends: bool = False) -> PipelineDataset:
        """Makes a dataset of the rest of an epoch; with `sends`, the last kernels are left to a device."""
        return self._at(split, at.epoch)._engine.fixed(split, at, shard, None, sends=sends)

    def state(self) -> dict[str, Any]:
        """Makes a JSON-compatible state of the training split: the batches handed over, the spec and the data.

        A run may continue from it with another batch size and another number of hosts. The rest of the epoch is then cut into batches of
        that size: `origin` is the slot of the epoch at which its step 0 begins, or would begin, and the next epoch begins at slot 0. With
        `epoch: {steps: N}`, `shift` is how many places later a batch lies in the order than if all batches before it had been of this size.
        """
        self._require("train")
        return self._state_at(self._now())

    def _now(self) -> Position:
        """The position of the next training batch."""
        return self._engine.train_progress().position()

    def _extent_at(self, epoch: int) -> Extent:
        self._require("train")
        return self._engine.executor("train").order

    def _state_at(self, at: Position) -> dict[str, Any]:
        return make_state(self.spec.model, self.spec.hash, self._manifest.split_fingerprint, self._extent_at(at.epoch), at)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Moves the training split to the position of a state; the batch size and the number of hosts may differ.

        Raises:
            StateError: When the data or anything of the spec but the batch size differs; it lists the differences.
            SpecError: `PG412` if some host would have fewer steps than others in the rest of the epoch.
        """
        self._seek(self._position_of(state))

    def _position_of(self, state: Mapping[str, Any]) -> Position:
        self._require("train")
        model, fingerprint = self.spec.model, self._manifest.split_fingerprint
        return position_from(state, model, self.spec.hash, fingerprint, self._extent_at)

    def seek(self, epoch: int, step: int = 0, *, origin: int = 0, shift: int = 0) -> None:
        """Moves the training split to a step of an epoch: the next iterator over `.train` starts there.

        Args:
            epoch: The epoch, from 0.
            step: Its first step; the number of steps of an epoch is the start of the next one.
            origin: The slot of the epoch at which its step 0 begins, if the epoch was begun with another batch size: see `state`.
            shift: With `epoch: {steps: N}`, how many places later in the order the batches lie for that reason: see `state`.

        Raises:
            ValueError: For an unknown epoch or step.
        """
        at, now = self._position("train", epoch, step, origin, shift), self._now()
        # If the position is there already, keep its own origin and shift.
        self._seek(now if now[:2] == at[:2] and not origin and not shift else at)

    def _seek(self, at: Position) -> None:
        self._engine.check_last("train", at)
        self._engine.train_progress().seek(at)

    # Serving

    def serving_fn(self, model: keras.Model | None = None, takes: Takes = "bytes", jit: bool = False) -> Any:
        """Makes a `tf.function` from a request to the model's outputs; without a model, to the inputs that a model would receive.

        It does the work of `predict_on` in plain TensorFlow: it reads no file, draws nothing and calls no Python. It can be saved with a
        `tf.Module`, or as an endpoint of a `keras.export.ExportArchive`, and runs without pipegen.

        Args:
            model: The model, or `None`.
            takes: The form of images in a request. `bytes` of JPEG, PNG, GIF, BMP or WebP files: string `(n,)`, in an argument named after
                the feature with `_bytes`, such as `image_bytes`. Decoded `images` of one size: uint8 `(n, height, width, channels)`, in an
                argument named after the feature. Tensors come as they are stored, float32 `(n, …)`.
            jit: Whether XLA compiles the steps on batches, for each size of request. Without it, the values are those of `predict_on`
                under `runtime: {jit: never}`, bit by bit; with it, they are equal within rounding.

        Raises:
            SpecError: For a random step, a step in Python, and a feature that a request cannot contain.
            ModelMismatchError: When the model's inputs do not fit.
        """
        takes, jit = _one_of("takes", takes, "bytes", "images"), _flag("jit", jit)
        made = serving.Serving(self._compiled, model, takes, "serving_fn", jit=jit)
        return made.traced() if model is None else made.traced(lambda x: model(x, training=False))

    def export_model(
        self,
        model: keras.Model,
        path: str | os.PathLike[str],
        *,
        takes: Takes = "bytes",
        jit: bool = False,
        top_k: int = 5,
        overwrite: bool = False,
        form: Literal["saved_model", "tflite", "onnx"] = "saved_model",
        image_size: tuple[int, int] | None = None,
    ) -> ServedModel:
        """Writes a model with the evaluation steps in front of it as a SavedModel, for TensorFlow Serving and any TensorFlow.

        The signature `serving_default` returns `scores` (of several outputs: each by its name) and, for a classifier, `top_scores`, float32
        `(n, k)`, and `top_classes`, string `(n, k)`, best first. The signature `preprocess` returns the model's inputs. The class names are
        the asset `class_names.txt`; `assets.extra/pipegen.json` describes a request.

        With `form`, it is one file of TFLite, for one image at a time, or of ONNX, by tf2onnx, which must be installed. Both take decoded
        images, return `scores` alone, and resize by their own rules: some values differ by one level. `PATH.json` beside it has the rest.

        Args:
            model: The model.
            path: The folder, such as `models/flowers/1`: TensorFlow Serving looks for numbered versions in `models/flowers`.
            takes: As for `serving_fn`.
            jit: As for `serving_fn`; the server then needs XLA.
            top_k: The number of classes with the highest scores to return; 0 for none.
            overwrite: Replace what is there, atomically.
            form: `saved_model`, `tflite` or `onnx`.
            image_size: For TFLite and ONNX, height and width of every image, in pixels: more steps can be converted with a fixed size. By
                default images may have any size.

        Raises:
            SpecError: As for `serving_fn`, and for an operation that a converter does not support.
            ModelMismatchError: When the model's inputs do not fit.
            FileExistsError: For a folder that is not empty, without `overwrite`.
        """
        at, takes = file_or_folder("path", path, "models/flowers/1"), _one_of("takes", takes, "bytes", "images")
        overwrite, count, jit = _flag("overwrite", overwrite), whole("top_k", top_k, 0), _flag("jit", jit)
        if form == "saved_model":
            if image_size is not None:
                raise ValueError("`image_size` is for TFLite and ONNX; a SavedModel takes images of any size")
            return serving.export_saved_model(self._compiled, model, at, takes=takes, jit=jit, top_k=count, overwrite=overwrite)
        if form not in serving.NAMES:
            raise ValueError(f"`form` is 'saved_model', 'tflite' or 'onnx', got {got(form)}")
        if takes != "images":
            written = f'{serving.NAMES[form]} cannot decode image files: use `takes="images"`'
            raise ValueError(f"{written}, so that requests contain decoded images")
        if jit:
            raise ValueError(f"`jit` is for a SavedModel; {serving.NAMES[form]} has its own compiler")
        size = None if image_size is None else pair("image_size", image_size, "(height, width), such as (480, 640)", 1)
        return serving.export_converted(self._compiled, model, at, form=form, image_size=size, overwrite=overwrite)

    def layer(self) -> EvaluationLayer:
        """Makes a Keras layer that runs the evaluation steps on batches, such as `rescale` and `normalize`, inside a model.

        Feed such a model with `pipe.dataset(split, stages="element")`, which leaves these steps out. The layer is saved and loaded with the
        model; before loading, run `from pipegen import EvaluationLayer`. To use a model without pipegen, see `export_model`.

        Raises:
            SpecError: For random evaluation steps.
            RuntimeError: If Keras does not run on TensorFlow.
        """
        import keras

        if keras.backend.backend() != "tensorflow":
            raise RuntimeError(f"`layer` needs Keras on TensorFlow, and its backend here is {keras.backend.backend()}: set KERAS_BACKEND")
        return serving.EvaluationLayer(self._layer_config)

    @cached_property
    def _evaluation(self) -> Plan:
        """Unoptimised plan of the evaluation steps on the model's inputs."""
        from pipegen.plan.evaluation_plans import served_plan

        spec = self._compiled.spec
        return served_plan(spec.model, spec.loaded.locate.label, self._compiled.manifest.type or spec.model.source.infer(), None)

    @cached_property
    def _layer_config(self) -> dict[str, Any]:
        return layered.layer_config(self._evaluation, self._compiled.plans.values())

    def _before_layer(self, split: str, at: Position, shard: tuple[int, int] | None, device: str | None) -> PipelineDataset:
        """Makes a dataset of the rest of an epoch, without the steps of the layer."""
        locate = self._compiled.spec.loaded.locate.label
        plain = layered.before_layer(self._compiled.plans[split], self._evaluation, self._layer_config, locate)
        return self._engine.fixed(split, at, shard, device, unlayered=plain)

    # Plans and code

    def explain_html(self, split: str | None = None, *, pictures: bool = True, physical: bool = False) -> Page:
        """Explains the compiled plans on an HTML page: nodes, types, costs, the work of each pass, and examples at each edge.

        The page is one file without scripts, and loads nothing: `.save("plan.html")` writes it, and a notebook shows it.

        Args:
            split: The split; by default every one.
            pictures: Run the first examples of each split through its steps, and show them at each edge.
            physical: Also show what runs: each operation of the dataset, and what it calls.
        """
        if split is not None:
            self._require(split)
        chosen = list(self._plans) if split is None else [split]
        return summary.explained_html(self._compiled, self._engine, chosen, pictures=pictures, physical=physical)

    def eject(
        self,
        path: str | os.PathLike[str],
        form: Literal["graph", "code"] = "graph",
        *,
        splits: Sequence[str] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Ejected:
        """Writes the datasets so that they run without the spec, to use them without pipegen or to edit them by hand.

        A `graph` is a folder with a SavedModel for each split, which needs TensorFlow alone. Load it with `tf.saved_model.load`: its
        `.batches(epoch, step)` is the same dataset as `pipe.dataset(SPLIT, epoch=, step=)`, to the bit. Its README explains loading; the
        data is not copied, and may move. `code` is a Python module that uses `pipe.lowered`; its lines are the operations of the
        compiled plan.

        Args:
            path: A new or empty folder for a `graph`, a new file for `code`.
            form: `graph` or `code`.
            splits: The splits; by default all.
            progress: Called with the number of splits written.

        Raises:
            SpecError: With a finding for each part that cannot be written, such as Python functions in a graph.
            FileExistsError: If the path is taken.
        """
        if form not in ("graph", "code"):
            raise ValueError(f'`form` is "graph" or "code", got {got(form)}')
        chosen = list(self._plans) if splits is None else list(splits)
        for split in chosen:
            self._require(split)
        eject_form, tick = eject.eject_graph if form == "graph" else eject.eject_code, called_with_count(progress)
        return eject_form(self._compiled, self._engine, file_or_folder("path", path, "ejected/"), chosen, tick)

    def lowered(self, split: str) -> Lowered:
        """Lowers the parts of a split's compiled plan to TensorFlow functions, for code that builds its datasets by hand.

        `pipegen eject --code` writes such code. The parts use no cache, and work on one example at a time up to the batch.
        """
        from pipegen.backend.running.lowered import Lowered

        self._require(split)
        return Lowered(eject.lowered_executor(self._compiled, self._engine, split))

    # Checks and reports

    def check(self, model: keras.Model, stages: Literal["all", "element"] = "all") -> str:
        """Compares the batches with a Keras model's inputs, ranges of values, output units, activation and loss.

        Returns one line that describes the match. It contains a warning if padded batches would dilute the loss, or if nothing scales the
        images. If the model scales images that are scaled already, that is a mismatch.

        With `stages="element"`, the batches are those of `dataset(split, stages="element")`, for a model that contains `pipe.layer()`.

        Raises:
            ModelMismatchError: With every mismatch. `TypeError` for anything but a Keras model.
        """
        from pipegen.views.model_check import check, targets_of

        split, element = self._main.split, leaves_steps(stages)
        given = self._before_layer(split, FIRST, None, None).element_spec if element else self.element_spec
        wrong = serving.layer_mismatches(model, self._layer_config, split, element=element) if element or serving.holds_layer(model) else []
        padding = [s for s in self if self.spec.model.batch.remainder_for(s) == "pad"]
        extents = {s: self._at(s)._engine.executor(s).order for s in padding}
        padded = [s for s, extent in extents.items() if extent.pads and extent.num_examples % extent.batch]
        out = None if element else self._main.out
        return check(model, given, self._main.emit.output, targets_of(self._main), wrong, padded, out)

    def explain(
        self, split: str | None = None, *, passes: bool = False, all: bool = False, before: bool = False, physical: bool = False
    ) -> Explanation:
        """Describes the compiled plan of a split as text, with the types on its edges and its most expensive stages.

        Args:
            split: The split; by default the training split, with `all` every split.
            passes: Also show what each pass did, and why.
            all: Show every split, every pass, and the cost of every stage.
            before: Also show the plan as written, before any pass.
            physical: Show what runs instead: each operation of the dataset, and what it calls; with `all` in every form.
        """
        main = self._main.split if split is None else split
        pipe = self._at(main)
        chosen = list(pipe._plans) if all and split is None else [main]
        return summary.explained(pipe, pipe._compiled, chosen, passes=passes, whole=all, before=before, physical=physical)

    def _repr_html_(self) -> str:
        return summary.summary_html(self, self._main)

    def __repr__(self) -> str:
        return visible(summary.summary(self, self._main))


def _of_whole(name: str) -> Callable[..., Any]:
    """Makes a method of a stage that asks the pipeline of the whole training."""
    return lambda stage, *args: getattr(stage._of, name)(*args)


@untraced
class Stage(Pipeline):
    """The pipeline of one stage of training: the spec with the stage's params and batch.

    Its training split has the stage's epochs, counted over all stages. The position is that of the whole training: an iterator over
    `.train` starts there, or at the stage's first epoch if the training has not reached it.

    Attributes:
        index: The number of the stage, from 0.
    """

    def __init__(self, compiled: CompiledSpec, of: StagedPipeline, index: int) -> None:
        super().__init__(compiled, of._rebuild, of._shared)
        self.index = index
        self._of = of

    @property
    def epochs(self) -> int:
        """The epoch before which the stage ends, counted over all stages; `epochs` of Keras' `fit`."""
        return self._of.timeline.firsts[self.index + 1]

    @property
    def initial_epoch(self) -> int:
        """The epoch at which `fit` starts: the stage's first one, or the current one; of a finished stage, its end."""
        return min(max(self._of.timeline.firsts[self.index], self._of._now()[0]), self.epochs)

    @property
    def finished(self) -> bool:
        """True if the training is past this stage."""
        return self.initial_epoch == self.epochs

    def __reduce__(self) -> tuple[Callable[..., Pipeline], tuple[Any, ...]]:
        return _stage_of, (self._rebuild, self._of.spec, self.index)

    def __getitem__(self, split: str) -> PipelineDataset:
        self._of.release(self.index)
        return super().__getitem__(split)

    def __repr__(self) -> str:
        first = self._of.timeline.firsts[self.index]
        return f"Stage {self.index}, epochs {first} to {self.epochs - 1}, of {super().__repr__()}"

    # The position is that of the whole training.

    _now, _extent_at, _state_at, _position_of, _seek = map(_of_whole, ("_now", "_extent_at", "_state_at", "_position_of", "_seek"))

    def seek(self, epoch: int, step: int = 0, *, origin: int = 0, shift: int = 0) -> None:
        self._of.seek(epoch, step, origin=origin, shift=shift)

    def callback(self, directory: str | os.PathLike[str] | None = None) -> StageCallback:
        """Makes the Keras callback for `fit` over this stage; see `Pipeline.callback`.

        Keras' `BackupAndRestore` removes its folder at the end of each `fit`. This callback, behind it and with the same folder, keeps the
        final weights of a stage there until the last stage ends. A process that is killed between two stages continues from them.
        """
        return epoch_callback.StageCallback(self._of, self, _checkpoints(directory))


def _stage_of(rebuild: Callable[[Spec], Pipeline], spec: Spec, index: int) -> Pipeline:
    return rebuild(spec).stages[index]


@untraced
class StagedPipeline(Pipeline):
    """The pipeline of a spec with stages: `.train` is that of the first unfinished stage; all else follows the spec as written."""

    def __init__(self, compiled: CompiledSpec, rebuild: Callable[[Spec], Pipeline], stages: tuple[CompiledSpec, ...]) -> None:
        self._shared = engine.Shared()
        super().__init__(compiled, rebuild, self._shared)
        extents: list[Extent] = []
        for stage in stages:
            model, plan = stage.spec.model, stage.plans["train"]
            examples = sampling.examples_of_epoch(model, self._manifest, "train")
            found = buckets.in_buckets(model, self._manifest, "train")
            extents.append(extent_of(model, plan, examples, buckets=() if found is None else found.counts))
        self.extents = tuple(extents)
        self.timeline = Timeline([stage.epochs for stage in self.spec.model.stages], [extent.steps for extent in self.extents])
        self._stages = tuple(Stage(stage, self, index) for index, stage in enumerate(stages))

    @property
    def stages(self) -> tuple[Stage, ...]:
        return self._stages

    def _now(self) -> Position:
        return self._shared.progress.position()

    @property
    def current(self) -> Stage:
        """The first unfinished stage; if all are finished, the last one."""
        return self._stages[self.timeline.stage(self._now()[0])]

    def release(self, before: int) -> None:
        """Frees the datasets of the finished stages before a stage, with their caches; they are made again if needed."""
        for stage in self._stages[:before]:
            if stage.finished and stage._engine.executors():
                plans = {split: done.plan for split, done in stage._compiled.splits.items()}
                stage._engine = engine.Engine(stage._compiled, plans, self._shared)

    def _at(self, split: str, epoch: int | None = None) -> Pipeline:
        self._require(split)
        if split != "train":
            return self
        return self.current if epoch is None else self._stages[self.timeline.stage(whole("epoch", epoch))]

    def __getitem__(self, split: str) -> PipelineDataset:
        return super().__getitem__(split) if split != "train" else self.current[split]

    # Resuming

    def _extent_at(self, epoch: int) -> Extent:
        return self.extents[self.timeline.stage(epoch)]

    def seek(self, epoch: int, step: int = 0, *, origin: int = 0, shift: int = 0) -> None:
        epoch, step, origin, shift = whole("epoch", epoch, 0), whole("step", step, 0), whole("origin", origin), whole("shift", shift)
        most = self._extent_at(epoch).steps_from(origin)
        if step > most or (epoch, step) > (self.timeline.end, 0):
            there = f"they have {self.timeline.end} epochs, and that epoch has {most} steps"
            raise ValueError(f"epoch {epoch}, step {step} is not in the stages: {there}")
        at, now = self._extent_at(epoch).counted(epoch, step, origin, shift), self._now()
        self._seek(now if now[:2] == at[:2] and not origin and not shift else at)

    def _seek(self, at: Position) -> None:
        if at.origin:
            self._stages[self.timeline.stage(at.epoch)]._engine.check_last("train", at)
        self._shared.progress.seek(self._extent_at(at.epoch).settled(at))

    def callback(self, directory: str | os.PathLike[str] | None = None) -> StageCallback:
        """Makes the Keras callback for `fit` over any stage; see `Stage.callback`."""
        return epoch_callback.StageCallback(self, None, _checkpoints(directory))
