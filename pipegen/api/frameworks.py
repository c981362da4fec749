"""Offers what a `Pipeline` has for training loops that are not TensorFlow's."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pipegen.untraced import untraced

if TYPE_CHECKING:
    import jax

    from pipegen.backend.datasets.arrays import NumpyBatches
    from pipegen.backend.datasets.jax_batches import JaxBatches
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
