"""FFCV on the CPU: images in a file of its own, loaded and transformed by what Numba compiles.

There is no wheel of it: `pip install ffcv==1.0.2` builds it where OpenCV and libjpeg-turbo are there with their headers, beside PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks import steps as s
from benchmarks.data import UnavailableError
from benchmarks.systems.base import SystemWithFiles, cores

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.data import Dataset, Photos
    from benchmarks.recipes import Recipe

QUALITY = 90
"""Of the JPEGs that it writes."""
_OTHERS = (s.Resize, s.Affine, s.Brightness, s.ColorJitter, s.Blur, s.RandAugment, s.MixUp, s.CutMix)


class Examples:
    """What FFCV's writer asks for: a picture and its class."""

    def __init__(self, photos: Photos) -> None:
        self.photos = photos

    def __len__(self) -> int:
        return len(self.photos.files)

    def __getitem__(self, i: int) -> tuple[Any, int]:
        from PIL import Image

        return Image.open(self.photos.files[i]).convert("RGB"), self.photos.labels[i]


def write(photos: Photos, path: Path, form: str, longer_side: int | None = None) -> None:
    """Writes a `.beton` file, unless it is there.

    Args:
        photos: What it holds.
        path: The file.
        form: `raw` or `jpeg`.
        longer_side: What longer sides are shrunk to, in pixels; `None` leaves images as they are.

    Raises:
        UnavailableError: If FFCV is not installed.
    """
    try:
        from ffcv.fields import IntField, RGBImageField
        from ffcv.writer import DatasetWriter
    except ImportError as error:
        raise UnavailableError(f"not installed: {error}") from error
    if path.exists():
        return
    image = RGBImageField({"raw": "raw", "jpeg": "jpg"}[form], max_resolution=longer_side, jpeg_quality=QUALITY)
    part = path.with_suffix(".part")
    # One process, since a fork of one that runs TensorFlow may hang.
    DatasetWriter(str(part), {"image": image, "label": IntField()}, num_workers=1).from_indexed_dataset(Examples(photos), chunksize=50)
    part.rename(path)


def batches_of(path: Path, batch: int, size: int, normalise: s.Normalise) -> Iterator[tuple[Any, Any]]:
    """Endless batches `(images, labels)` of a `.beton` file: random resized crop, flip, normalise; float32, channels last."""
    import numpy as np
    from ffcv.fields.basics import IntDecoder
    from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor

    mean, std = (np.array(values) * 255 for values in (normalise.mean, normalise.std))
    image = [RandomResizedCropRGBImageDecoder((size, size)), RandomHorizontalFlip(), NormalizeImage(mean, std, np.float32), ToTensor()]
    loader = Loader(
        str(path),
        batch_size=batch,
        num_workers=cores(),
        order=OrderOption.RANDOM,
        drop_last=True,
        os_cache=True,
        pipelines={"image": image, "label": [IntDecoder(), ToTensor()]},
    )
    while True:
        for images, labels in loader:
            yield images, labels[:, 0]


class Ffcv(SystemWithFiles):
    """FFCV with as many threads as there are cores."""

    name: ClassVar[str] = "FFCV"
    remark: ClassVar[str] = f"reads a file of its own, written beforehand: JPEG of quality {QUALITY} at full size; torch tensors"
    lacks: ClassVar = dict.fromkeys(_OTHERS, "only the steps of `imagenet` are written for it here")
    reads: ClassVar[tuple[str, ...]] = ("photos",)

    def batches(self, recipe: Recipe, data: Dataset) -> Iterator[tuple[Any, Any]]:
        photos, normalise = data.photos(recipe), recipe.find(s.Normalise)
        if normalise is None or recipe.find(s.RandomResizedCrop) is None:
            raise UnavailableError("only the steps of `imagenet` are written for it here")
        path = self.folder / "photos.beton"
        write(photos, path, "jpeg")
        return batches_of(path, recipe.batch, recipe.size, normalise)
