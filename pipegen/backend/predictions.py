"""A pipeline's evaluation steps on data without labels: one row for each file, in order."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.backend import damage
from pipegen.backend.datasets import PipelineDataset, fixed_dataset
from pipegen.backend.execute import Executor, Job
from pipegen.backend.records import Records
from pipegen.data.fingerprint import example_id
from pipegen.diagnostics.catalog import make
from pipegen.errors import OpError, SpecError
from pipegen.ops.sources.image_folder import ImageFolder

if TYPE_CHECKING:
    from pipegen.plan.nodes import Plan
    from pipegen.spec.models import PipelineSpec

Wanted = str | os.PathLike[str] | Sequence[Any] | np.ndarray[Any, Any]


@dataclass(frozen=True)
class Predictions:
    """What `predict_on` gives.

    Attributes:
        dataset: Batches of inputs, for `model.predict`.
        files: The file of each row, in order; for arrays, their positions as text.
    """

    dataset: PipelineDataset
    files: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.files)

    def __repr__(self) -> str:
        return f"Predictions({len(self.files)} rows, {self.dataset.element_spec})"


def predictions(spec: PipelineSpec, plan: Plan, wanted: Wanted, where: damage.Where) -> Predictions:
    """Build the dataset.

    Args:
        spec: The spec.
        plan: The optimised plan of an evaluation split on unlabelled images.
        wanted: A folder, a list of files, or images as arrays.
        where: Finds the place of a step, for the message about a damaged file.

    Raises:
        SpecError: When there is nothing, or a file is missing.
        TypeError: When an array is no uint8 image.
    """
    records = _records(wanted)
    executor = Executor(Job(plan, spec, records, place=damage.place_of_decode(plan, where), advice="leave it out of the list"))

    def translate(error: Exception, at: tuple[int, int] | None) -> Exception:
        return damage.explain_failure(executor, error, at, where)

    return Predictions(fixed_dataset(executor, 0, 0, translate), tuple(records.paths))


def _records(wanted: Wanted) -> Records:
    if isinstance(wanted, (str, os.PathLike)):
        path = Path(wanted)
        return _files([str(path)]) if path.is_file() else _folder(path)
    if isinstance(wanted, np.ndarray) and wanted.ndim == 3 and wanted.shape[-1] in (1, 3):
        raise TypeError(f"an array of shape {wanted.shape} looks like one image; predict_on takes several: wrap it in a list")
    if not isinstance(wanted, (np.ndarray, Sequence)) or isinstance(wanted, bytes):
        raise TypeError(f"predict_on takes a folder, a file, a list of files or uint8 images as arrays, got {type(wanted).__name__}")
    items = list(wanted)
    if not items:
        raise SpecError([make("PG402", "there is nothing to predict on: the list is empty")])
    if all(isinstance(item, (str, os.PathLike)) for item in items):
        return _files([os.fspath(item) for item in items])
    return _arrays(items)


def _folder(path: Path) -> Records:
    try:
        listing = ImageFolder(path=str(path), labels="none").list(Path.cwd())
    except OpError as error:
        raise SpecError([make(error.code, error.message, help=error.help or ())]) from None
    paths = [listing.path(i) for i in range(len(listing.keys))]
    return Records(paths, [example_id("predict", key) for key in listing.keys], None)


def _files(paths: list[str]) -> Records:
    missing = [p for p in paths if not Path(p).is_file()]
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise SpecError([make("PG401", f"{len(missing)} of {len(paths)} files do not exist: {shown}")])
    return Records(paths, [example_id("predict", p) for p in paths], None)


def _arrays(items: list[Any]) -> Records:
    contents = [_encode(np.asarray(item), i) for i, item in enumerate(items)]
    names = [str(i) for i in range(len(items))]
    return Records(names, [example_id("predict", n) for n in names], None, contents=contents)


def _encode(image: np.ndarray[Any, Any], position: int) -> bytes:
    """Losslessly, so that arrays take the same way as files."""
    from PIL import Image

    if image.dtype != np.uint8 or image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[-1] not in (1, 3)):
        raise TypeError(
            f"image {position} is {image.dtype} of shape {image.shape}; predict_on takes uint8 images of shape height × width × 1 or 3"
        )
    if image.ndim == 3 and image.shape[-1] == 1:
        image = image[..., 0]
    out = io.BytesIO()
    Image.fromarray(image).save(out, "PNG", compress_level=1)
    return out.getvalue()
