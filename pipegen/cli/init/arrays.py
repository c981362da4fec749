"""A first spec for a `.npz` file or for `.npy` files: which arrays are images, which their labels, and whether they come in splits."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipegen.cli.failures import CannotRun
from pipegen.cli.init.spec import FLIP, PARTS, RESCALE, ROTATION, batch_for, beside, spec_text
from pipegen.errors import OpError
from pipegen.ops.sources.array_rows.npz import read_array, read_arrays
from pipegen.ops.sources.array_rows.rows import read_image
from pipegen.ops.sources.features.arrays import ArrayFeature
from pipegen.ops.sources.features.classes import read_labels
from pipegen.spec.scalars import flow_scalar

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from pipegen.types import FeatureType

_SPLITS = {"train": "train", "val": "validation", "valid": "validation", "validation": "validation", "dev": "validation", "test": "test"}


@dataclass(frozen=True)
class Pair:
    """An array of images, and its labels where it has any.

    Attributes:
        image: Its name in the file.
        label: The name of the labels, or `None`.
        split: The split that its name says, or an empty text.
        count: How many rows it has.
        type: The type of an image.
        classes: How many classes there are, 0 without labels.
    """

    image: str
    label: str | None
    split: str
    count: int
    type: FeatureType
    classes: int


def first_arrays(file: str, spec_folder: str) -> tuple[str, str]:
    """Writes the spec of a `.npz` file, of a `.npy` file or of a folder of those, with paths relative to the spec's folder.

    Returns:
        The text of the spec, and what was found in a few words.

    Raises:
        CannotRun: When the file cannot be read, or holds no images.
    """
    try:
        arrays, places = (read_arrays(file), None) if file.lower().endswith(".npz") else _single(file, spec_folder)
    except OpError as error:
        raise CannotRun(error.message, *error.lines) from None
    pairs = _pairs(arrays)
    if not pairs:
        shown = ", ".join(f"{name} {array.dtype}{list(array.shape)}" for name, array in arrays.items()) or "nothing"
        raise CannotRun(f"{file} holds no images: {shown}", "images are uint8, uint16 or floats, of shape (n, height, width, channels)")
    first = pairs[0]
    summary = f"{sum(p.count for p in pairs):,} images of {first.type.height}×{first.type.width}×{first.type.channels}, {first.type.dtype}"
    summary += f", in {first.classes} classes" if first.label else ""
    comments = [f"{p.image}: {p.count:,} rows" + (f", labels in {p.label}" if p.label else ", no labels") for p in pairs]
    batch = f"batch: {{size: {batch_for(first.count, most=128)}}}"
    return spec_text(summary, comments, [*_source(pairs, beside(file, spec_folder), places), *_steps(first), batch]), summary


def _single(path: str, spec_folder: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The arrays of `.npy` files, by their names, and how the spec names each."""
    names = sorted(os.listdir(path)) if os.path.isdir(path) else [path]
    files = [os.path.join(path, name) if os.path.isdir(path) else name for name in names if name.lower().endswith(".npy")]
    stems = [os.path.splitext(os.path.basename(file))[0] for file in files]
    arrays = {stem: read_array(os.path.abspath(file), "path") for stem, file in zip(stems, files, strict=True)}
    return arrays, {stem: beside(file, spec_folder) for stem, file in zip(stems, files, strict=True)}


def _pairs(arrays: Mapping[str, Any]) -> list[Pair]:
    """Images with their labels: of several, those whose names say a split, training first; else the first alone."""
    found = []
    for name, array in arrays.items():
        try:
            rows, type_ = read_image(name, ArrayFeature(kind="image"), array)
        except OpError:
            continue
        label, classes = _label(name, len(rows), arrays)
        found.append(Pair(name, label, _split(name), len(rows), type_, classes))
    by_split = {pair.split: pair for pair in reversed(found) if pair.split}
    order = [s for s in ("train", "validation", "test") if s in by_split]
    alike = [by_split[s] for s in order if _alike(by_split[s], by_split[order[0]])]
    return alike if order[:1] == ["train"] else found[:1]


def _alike(pair: Pair, other: Pair) -> bool:
    same = (pair.type.dtype, pair.type.shape) == (other.type.dtype, other.type.shape)
    return same and (pair.label is None) == (other.label is None) and pair.classes <= other.classes


def _label(image: str, count: int, arrays: Mapping[str, Any]) -> tuple[str | None, int]:
    """The labels of an array of images: as many, of the same split, with names of classes or few numbers."""
    for name, array in arrays.items():
        if name == image or len(array.shape) not in (1, 2) or len(array) != count or _split(name) != _split(image):
            continue
        try:
            return name, len(read_labels(name, None, 0, array)[1])
        except OpError:
            continue
    return None, 0


def _split(name: str) -> str:
    words = re.split(r"[^a-z]+", name.lower())
    return next((_SPLITS[word] for word in words if word in _SPLITS), "")


def _source(pairs: list[Pair], path: str, places: Mapping[str, str] | None) -> list[str]:
    if len(pairs) == 1:
        splits = f"splits: {{{PARTS}, stratify: label}}"
        return [f"source: {_arrays(pairs[0], path, places)}", *([splits] if pairs[0].label else [])]
    return ["source:", "  by_split:", *(f"    {pair.split}: {_arrays(pair, path, places)}" for pair in pairs)]


def _arrays(pair: Pair, path: str, places: Mapping[str, str] | None) -> str:
    """The source of a pair: by the names of the arrays in the file `path`, or by the `places` of their own files."""

    def place(name: str) -> str:
        return f"key: {flow_scalar(name)}" if places is None else f"path: {places[name]}"

    label = f", label: {{kind: label, {place(pair.label)}}}" if pair.label else ""
    height, width, channels = pair.type.shape
    size = height if height == width else f"[{height}, {width}]"
    image = f"image: {{kind: image, {place(pair.image)}, size: {size}, channels: {channels}}}"
    whole = f"path: {path}, " if places is None else ""
    return f"{{arrays: {{{whole}features: {{{image}{label}}}}}}}"


def _steps(pair: Pair) -> list[str]:
    steps = [FLIP, ROTATION] if pair.label else []
    if pair.type.interval is not None and pair.type.interval.high > 1:
        steps.append(RESCALE)
    return ["transforms:", *steps] if steps else []
