"""TurboLoader: images in a TAR of its own, decoded and resized in C++ threads."""

from __future__ import annotations

import itertools
import tarfile
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks import steps as s
from benchmarks.data import UnavailableError
from benchmarks.systems.base import SystemWithFiles, cores

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.data import Dataset, Photos
    from benchmarks.recipes import Recipe

_ONE_BY_ONE = "one image after another in one thread"


class TurboLoader(SystemWithFiles):
    """`turboloader.DataLoader` with as many threads as there are cores."""

    name: ClassVar[str] = "TurboLoader"
    remark: ClassVar[str] = "reads a TAR of its own, written beforehand; NumPy arrays"
    remarks: ClassVar = {
        s.Resize: f"steps behind the resize: {_ONE_BY_ONE}",
        s.Affine: "one factor of zoom for both axes, black outside",
    }
    lacks: ClassVar = {
        s.RandAugment: "its random resized crop goes with a flip and a normalisation alone",
        s.ColorJitter: "only the steps of `geometric`, `imagenet` and `large` are written for it here",
        s.Blur: "its blur has one strength, and blurs every image",
        s.MixUp: "its DataLoader combines no images",
        s.CutMix: "its DataLoader combines no images",
    }
    reads: ClassVar[tuple[str, ...]] = ("photos", "large")

    def batches(self, recipe: Recipe, data: Dataset) -> Iterator[tuple[Any, Any]]:
        try:
            import turboloader
        except ImportError as error:
            raise UnavailableError(f"not installed: {error}") from error
        photos = data.photos(recipe)
        path = self.folder / f"{recipe.data}.tar"
        _write(photos, path)
        crops = recipe.find(s.RandomResizedCrop) is not None  # with the flip, in the C++ that decodes
        steps = [step for step in recipe.steps if not isinstance(step, (s.Resize, s.RandomResizedCrop, *((s.Flip,) if crops else ())))]
        loader = turboloader.DataLoader(
            str(path),
            batch_size=recipe.batch,
            num_workers=cores(),
            shuffle=True,
            drop_last=True,
            image_size=recipe.size,
            output_format="numpy",
            transform=turboloader.Compose([transform(step) for step in steps]),
            train_aug=crops,
        )
        return _epochs(loader, photos.labels)


def transform(step: s.Step) -> Any:
    """The transform of one step, for images in [0, 255].

    Raises:
        NotImplementedError: For a step that is not written here.
    """
    import turboloader

    match step:
        case s.Flip():
            return turboloader.RandomHorizontalFlip(0.5)
        case s.Affine():
            zoom = 1 - step.zoom, 1 + step.zoom
            return turboloader.RandomAffine(step.rotation, step.translation, step.translation, *zoom, step.shear)
        case s.Brightness():
            return turboloader.ColorJitter(brightness=step.amount)
        case s.Normalise():
            return turboloader.Normalize(list(step.mean), list(step.std))
    raise NotImplementedError(type(step).__name__)


def _write(photos: Photos, path: Path) -> None:
    """Writes the archive, unless it is there; its members have the order of the photographs."""
    if path.exists():
        return
    with tarfile.open(path, "w") as archive:
        for number, file in enumerate(photos.files):
            archive.add(file, f"{number:08d}.jpg")


def _epochs(loader: Any, labels: tuple[int, ...]) -> Iterator[tuple[Any, Any]]:
    """Epoch after epoch; the threads end with the iterator."""
    import numpy as np

    of = np.array(labels)
    try:
        for epoch in itertools.count():
            loader.set_epoch(epoch)
            for images, about in loader:
                yield np.asarray(images, np.float32), of[about["indices"]]
    finally:
        loader.close()
