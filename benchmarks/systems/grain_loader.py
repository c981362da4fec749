"""Google's Grain, with as many worker processes as there are cores. It brings no image ops; Albumentations' are used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks.data import UnavailableError
from benchmarks.systems import albumentations_steps
from benchmarks.systems.base import System, cores

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.data import Dataset
    from benchmarks.recipes import Recipe


class Records:
    """A random-access source of (path or array, label)."""

    def __init__(self, images: Any, labels: Any) -> None:
        """Two sequences of one length."""
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: Any) -> tuple[Any, int]:
        return self.images[i], int(self.labels[i])


class Transform:
    """A function of a record, which pickles."""

    def __init__(self, recipe: Recipe) -> None:
        self.load = albumentations_steps.Load(recipe)

    def __call__(self, record: tuple[Any, int]) -> tuple[Any, int]:
        return self.load(record[0]), record[1]


class Grain(System):
    """`MapDataset.source(…).shuffle().repeat().map(…).batch(…)` with `mp_prefetch`."""

    name: ClassVar[str] = "Grain + Albumentations"
    remarks: ClassVar = albumentations_steps.REMARKS
    lacks: ClassVar = albumentations_steps.LACKS
    heavy: ClassVar[bool] = True

    @property
    def remark(self) -> str:  # type: ignore[override]
        """How many processes there are."""
        return f"{cores()} worker processes; Grain brings no image ops"

    def batches(self, recipe: Recipe, data: Dataset) -> Iterator[tuple[Any, Any]]:
        try:
            from absl import flags
            from grain import MapDataset
            from grain.multiprocessing import MultiprocessingOptions

            transform = Transform(recipe)
        except ImportError as error:
            raise UnavailableError(f"not installed: {error}") from error
        if not flags.FLAGS.is_parsed():
            flags.FLAGS.mark_as_parsed()  # its workers are given the flags of a program that reads them
        photos = None if recipe.data == "arrays" else data.photos(recipe)
        records = Records(*data.arrays) if photos is None else Records(photos.files, photos.labels)
        made = MapDataset.source(records).shuffle(seed=0).repeat().map(transform).to_iter_dataset()
        made = made.batch(recipe.batch, drop_remainder=True).mp_prefetch(MultiprocessingOptions(num_workers=cores()))
        return _run(iter(made))


def _run(iterator: Any) -> Iterator[tuple[Any, Any]]:
    """The batches; the workers end with the iterator."""
    try:
        yield from iterator
    finally:
        if hasattr(iterator, "close"):
            iterator.close()
