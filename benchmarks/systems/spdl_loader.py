"""Meta's SPDL: a pipeline of threads that decodes, crops and resizes with FFmpeg. It brings no other image ops; Albumentations' are used.

Its wheel loads the system's FFmpeg, of a version from 4 to 9, so that its shared libraries have to be installed.
"""

from __future__ import annotations

import math
import random
import threading
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks import steps as s
from benchmarks.data import UnavailableError
from benchmarks.systems import albumentations_steps
from benchmarks.systems.base import System, cores

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.data import Dataset
    from benchmarks.recipes import Recipe

FILTERED = (s.Resize, s.RandomResizedCrop, s.Flip)
"""Steps that FFmpeg's filters do, where a recipe begins with them."""


class Load:
    """From a path, or an array, and a label to a float32 image and the label; several threads call it."""

    def __init__(self, recipe: Recipe) -> None:
        self.size = recipe.size
        self.filtered = () if recipe.data == "arrays" else tuple(takewhile(lambda step: isinstance(step, FILTERED), recipe.steps))
        self.rest = [step for step in recipe.steps if step not in self.filtered]
        self.own = threading.local()  # Albumentations' transforms have a state

    def __call__(self, record: tuple[Any, int]) -> tuple[Any, int]:
        import numpy as np

        source, label = record
        image = source if isinstance(source, np.ndarray) else self._decode(source)
        if not hasattr(self.own, "transform"):
            self.own.transform = albumentations_steps.composed(self.rest, self.size)
        return np.asarray(self.own.transform(image=image)["image"], np.float32), label

    def _decode(self, path: str) -> Any:
        """The picture behind the filters."""
        from spdl import io

        packets = io.demux_image(path)
        filters = ",".join(filter(None, (self._filter(step, packets.width, packets.height) for step in self.filtered)))
        frames = io.decode_packets(packets, filter_desc=f"{filters},format=pix_fmts=rgb24")
        return io.to_numpy(io.convert_frames(frames))

    def _filter(self, step: s.Step, width: int, height: int) -> str:
        """A step as a filter of FFmpeg, for an image of this size."""
        scale = f"scale={self.size}:{self.size}:flags=bilinear"
        match step:
            case s.RandomResizedCrop():
                x, y, w, h = window(step, width, height)
                return f"crop={w}:{h}:{x}:{y}:exact=1,{scale}"
            case s.Resize():
                return scale
        return "hflip" if random.random() < 1 / 2 else ""


def window(step: s.RandomResizedCrop, width: int, height: int) -> tuple[int, int, int, int]:
    """A random window: its left, top, width and height. As torchvision has it, but for images that no window fits in: they are whole."""
    for _ in range(10):
        area = width * height * random.uniform(*step.area)
        aspect = math.exp(random.uniform(*map(math.log, step.aspect)))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    return 0, 0, width, height


class Spdl(System):
    """`spdl.dataloader.DataLoader` with as many threads as there are cores."""

    name: ClassVar[str] = "SPDL + Albumentations"
    remarks: ClassVar = albumentations_steps.REMARKS | {
        s.Resize: "FFmpeg's scale, which smooths what it shrinks",
        s.RandomResizedCrop: "decodes whole images; FFmpeg's scale, which smooths what it shrinks",
    }
    lacks: ClassVar = albumentations_steps.LACKS
    heavy: ClassVar[bool] = True

    @property
    def remark(self) -> str:  # type: ignore[override]
        """How many threads there are."""
        return f"{cores()} threads of one process; SPDL brings no image ops but FFmpeg's"

    def batches(self, recipe: Recipe, data: Dataset) -> Iterator[tuple[Any, Any]]:
        try:
            from spdl import io
            from spdl.dataloader import DataLoader

            albumentations_steps.composed([], recipe.size)
            io.demux_config()  # which loads FFmpeg: a RuntimeError where there is none
        except (ImportError, RuntimeError) as error:
            raise UnavailableError(f"does not import: {error}") from error
        photos = None if recipe.data == "arrays" else data.photos(recipe)
        images, labels = data.arrays if photos is None else (photos.files, photos.labels)
        threads = cores()
        loader = DataLoader(
            _shuffled(images, labels),
            preprocessor=Load(recipe),
            batch_size=recipe.batch,
            drop_last=True,
            aggregator=_stack,
            num_threads=threads,
        )
        return iter(loader)


def _shuffled(images: Any, labels: Any) -> Iterator[tuple[Any, int]]:
    """Epoch after epoch of examples."""
    order = list(range(len(images)))
    while True:
        random.shuffle(order)
        for i in order:
            yield images[i], int(labels[i])


def _stack(examples: list[tuple[Any, int]]) -> tuple[Any, Any]:
    """Examples as a batch."""
    import numpy as np

    images, labels = zip(*examples, strict=True)
    return np.stack(images), np.array(labels)
