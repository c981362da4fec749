"""PyTorch's `DataLoader` with as many worker processes as there are cores, and two libraries of image ops."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks import steps as s
from benchmarks.data import UnavailableError
from benchmarks.systems import albumentations_steps, torchvision_steps
from benchmarks.systems.base import System, cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.data import Dataset
    from benchmarks.recipes import Recipe


class Examples:
    """A map-style dataset: image `i`, transformed, and its label."""

    def __init__(self, images: Any, labels: Any, load: Callable[[Any], Any]) -> None:
        """`load` turns a path, or an array, into what the model takes."""
        self.images, self.labels, self.load = images, labels, load

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> tuple[Any, int]:
        return self.load(self.images[i]), int(self.labels[i])


class _Loader(System):
    """`DataLoader(shuffle=True, num_workers=cores, persistent_workers=True)`."""

    @property
    def remark(self) -> str:  # type: ignore[override]
        """How many processes there are."""
        return f"{cores()} worker processes; images decoded at full size; torch tensors"

    @abstractmethod
    def load(self, recipe: Recipe) -> Callable[[Any], Any]:
        """From a path, or an array, to what the model takes, for one example; it must pickle.

        Raises:
            ImportError: If the library is not there.
            RuntimeError: If it does not work with this PyTorch.
        """

    def combine(self, recipe: Recipe, classes: int) -> Callable[[Any], Any] | None:
        """What is done to a list of examples in place of stacking them."""
        return None

    def batches(self, recipe: Recipe, data: Dataset) -> Iterator[tuple[Any, Any]]:
        try:
            import torch.utils.data

            load, combine = self.load(recipe), self.combine(recipe, data.classes(recipe))
        except (ImportError, RuntimeError, OSError) as error:  # torchvision's wheel meets another build of PyTorch: not an ImportError
            raise UnavailableError(f"does not import: {error}") from error
        photos = None if recipe.data == "arrays" else data.photos(recipe)
        images, labels = data.arrays if photos is None else (photos.files, photos.labels)
        loader = torch.utils.data.DataLoader(
            Examples(images, labels, load),
            batch_size=recipe.batch,
            shuffle=True,
            drop_last=True,
            num_workers=cores(),
            persistent_workers=True,
            collate_fn=combine,
            multiprocessing_context="forkserver",  # a fork of a process that runs TensorFlow may hang
        )
        return _epochs(loader)


def _epochs(loader: Any) -> Iterator[tuple[Any, Any]]:
    """Epoch after epoch; the workers end with the iterator."""
    try:
        while True:
            yield from loader
    finally:
        if loader._iterator is not None:
            loader._iterator._shutdown_workers()


class Albumentations(_Loader):
    """OpenCV decodes, Albumentations transforms, as its guide for classification has it."""

    name: ClassVar[str] = "DataLoader + Albumentations"
    remarks: ClassVar = albumentations_steps.REMARKS
    lacks: ClassVar = albumentations_steps.LACKS
    heavy: ClassVar[bool] = True

    def load(self, recipe: Recipe) -> Callable[[Any], Any]:
        return albumentations_steps.Load(recipe)


class Torchvision(_Loader):
    """Pillow decodes, `torchvision.transforms.v2` transforms, as its guide has it."""

    name: ClassVar[str] = "DataLoader + torchvision"
    remarks: ClassVar = torchvision_steps.REMARKS
    lacks: ClassVar[dict[type[s.Step], str]] = {}

    def load(self, recipe: Recipe) -> Callable[[Any], Any]:
        return torchvision_steps.Load(recipe)

    def combine(self, recipe: Recipe, classes: int) -> Callable[[Any], Any] | None:
        return torchvision_steps.Combine(recipe, classes) if recipe.combines else None
