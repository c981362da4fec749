"""Offers what a `Pipeline` has for training loops that are not TensorFlow's."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pipegen.untraced import untraced

if TYPE_CHECKING:
    import jax
    import keras
    import tensorflow as tf

    from pipegen.backend.datasets.arrays import NumpyBatches
    from pipegen.backend.datasets.device_stage import DeviceStage
    from pipegen.backend.datasets.distributed import DistributedBatches
    from pipegen.backend.datasets.jax_batches import JaxBatches
    from pipegen.backend.datasets.on_device import OnDevice
    from pipegen.backend.datasets.pipeline_dataset import PipelineDataset
    from pipegen.backend.datasets.torch_batches import TorchBatches


@untraced
class Feeds:
    """Hands a pipeline's batches to other frameworks."""

    if TYPE_CHECKING:

        def _require(self, split: str) -> None: ...

        def __getitem__(self, split: str) -> PipelineDataset: ...

    def numpy(self, split: str) -> NumpyBatches:
        """Returns a split as NumPy batches, for JAX, PyTorch and own loops; keeps TensorFlow off the GPU under another Keras backend."""
        from pipegen.backend.datasets.arrays import NumpyBatches

        keras = sys.modules.get("keras")
        if keras is not None and keras.backend.backend() != "tensorflow":
            _leave_accelerators()
        return NumpyBatches(self[split])

    def distribute(self, strategy: tf.distribute.Strategy, split: str = "train") -> DistributedBatches:
        """Returns a split as values for the replicas of a strategy, for `model.fit` and own loops: `strategy.run(step, args=(batch,))`.

        Joined in the order of the replicas they are the global batch. Several workers (`MultiWorkerMirroredStrategy`) each make their
        share alone; Keras 3's `fit` does not run under that strategy, own loops do.

        Args:
            strategy: The strategy.
            split: The split.

        Raises:
            ValueError: For a `ParameterServerStrategy`, and where a batch does not divide among the replicas.
        """
        from pipegen.backend.datasets.distributed import DistributedBatches

        self._require(split)
        return DistributedBatches(self, split, strategy)  # type: ignore[arg-type] # a Pipeline

    def device_stage(self, split: str = "train") -> DeviceStage:
        """Returns a split cut in two: the host hands over features as they are stored, and an accelerator runs the kernels on them.

        `stage.dataset(epoch=0)` gives `(features, params)`, and `stage.apply(features, params)`, inside of a `tf.function`, what
        `pipe.dataset` would have given: the same bits on a CPU, and within rounding (E1) on an accelerator. `on_device` does both for
        Keras. Where training has stages, the stage is that of the current one.

        Raises:
            ValueError: Where no step can run on a device; which stands in the way is said.
        """
        from pipegen.backend.datasets.device_stage import DeviceStage

        self._require(split)
        return DeviceStage(self, split)  # type: ignore[arg-type] # a Pipeline

    def on_device(self, model: keras.Model) -> OnDevice:
        """Returns a compiled Keras model with this pipeline's data, whose kernels its steps run: `pipe.on_device(model).fit(epochs=3)`.

        Raises:
            ValueError: Where Keras does not run on TensorFlow, the model is not compiled, or no step can run on a device.
        """
        from pipegen.backend.datasets.on_device import OnDevice

        return OnDevice(self, model)  # type: ignore[arg-type] # a Pipeline

    def torch(self, split: str) -> TorchBatches:
        """Returns a split as an `IterableDataset` of PyTorch tensors on the CPU; keeps TensorFlow off the GPU.

        Large tensors take over the memory of the batch, without a copy. Iterate it, or hand it to `DataLoader(…, batch_size=None,
        num_workers=0)`. torchdata's `StatefulDataLoader` saves and restores where it stands; for the training split that is
        `pipe.state()`.

        Raises:
            ModuleNotFoundError: Where PyTorch is not installed.
        """
        self._require(split)
        _needs("torch", "PyTorch")
        from pipegen.backend.datasets.torch_batches import TorchBatches

        _leave_accelerators()
        return TorchBatches(self, split)  # type: ignore[arg-type] # a Pipeline

    def jax(self, split: str, sharding: jax.sharding.Sharding | None = None) -> JaxBatches:
        """Returns a split as JAX arrays, the next batch on its way to the devices while one is used; keeps TensorFlow off the GPU.

        Args:
            split: The split.
            sharding: How the rows of a batch lie on the devices of all processes, such as `NamedSharding(mesh, P("data"))`: batches are
                global arrays then, of which this process makes its rows alone. Without one a batch is this process' share, on its
                first device.

        Raises:
            ModuleNotFoundError: Where JAX is not installed.
            ValueError: Where the rows of a process are no equal share in one piece, or a last batch does not divide among the devices.
        """
        self._require(split)
        _needs("jax", "JAX")
        from pipegen.backend.datasets.jax_batches import JaxBatches

        _leave_accelerators()
        return JaxBatches(self, split, sharding)  # type: ignore[arg-type] # a Pipeline


def _leave_accelerators() -> None:
    from pipegen.backend.process.devices import hide_accelerators

    hide_accelerators()


def _needs(module: str, name: str) -> None:
    if find_spec(module) is None:
        raise ModuleNotFoundError(f"`pipe.{module}` needs {name}, which is not installed: `pip install {module}`", name=module)
