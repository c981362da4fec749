"""A first spec for data whose pictures stand in the files themselves: Parquet files, Zarr groups, data sets of TensorFlow Datasets."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipegen.cli.columns import LABELS
from pipegen.cli.failures import CannotRun
from pipegen.cli.init.spec import PARTS, RESCALE, about_sample, batch_for, beside, pixels_of, size_for, spec_text
from pipegen.cli.init.survey import Sample, spread
from pipegen.errors import OpError
from pipegen.ops.sources.folders.sniff import IMAGE_EXTENSIONS
from pipegen.ops.sources.tables.table import text_of
from pipegen.spec.scalars import flow_scalar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_SAMPLE = 50
_MOST_CLASSES = 1000
_IMAGES = ("image", "img", "picture", "photo", "jpg", "png")
_VALIDATION = ("validation", "val", "valid", "dev", "test")


def first_parquet(file: str, spec_folder: str) -> tuple[str, str]:
    """Writes the spec of a Parquet file, with paths relative to the spec's folder.

    Returns:
        The text of the spec, and what was found in a few words.

    Raises:
        CannotRun: When it cannot be read, or has no pictures.
    """
    from pipegen.ops.sources.tables.parquet_files import read_parquet

    try:
        table = read_parquet([os.path.abspath(file)])
        names = table.names or ()
        pictures = [i for i in range(table.width) if table.holds_bytes(i, "")]
        texts = {i: tuple(map(text_of, table.columns(i))) for i in range(table.width) if i not in pictures}
    except OpError as error:
        raise CannotRun(error.message, *error.lines) from None
    paths = [i for i, cells in texts.items() if cells and all(_is_image(cell) for cell in cells)]
    if not (pictures or paths) or not table.num_rows:
        raise CannotRun(f"no column of {file} holds pictures", "one is needed of the bytes of image files, or of their paths")
    image = _called(_IMAGES, names, pictures or paths)
    sample = Sample()
    if pictures:
        reader = table.reader({"image": image})
        sample = sample_of_bytes(reader.take("image", row) for row in spread(table.num_rows, _SAMPLE))
    classes = {i: set(cells) for i, cells in texts.items() if i not in paths}
    likely = [i for i, values in classes.items() if 1 < len(values) <= min(_MOST_CLASSES, table.num_rows // 2) and "" not in values]
    label = _called(LABELS, names, likely) if likely else None
    columns = {"image": names[image], "label": names[label] if label is not None else None}
    about = f"{table.num_rows:,} rows" + (f", in {len(classes[label])} classes" if label is not None else "")
    return _text("parquet", file, spec_folder, columns, "column", sample, table.num_rows, about), about


def first_zarr(folder: str, spec_folder: str) -> tuple[str, str]:
    """Writes the spec of a Zarr group; as `first_parquet`."""
    from pipegen.ops.sources.stores.base import StoreError
    from pipegen.ops.sources.stores.zarr_arrays import ZarrArrays

    try:
        store = ZarrArrays(os.path.abspath(folder))
    except StoreError as error:
        raise CannotRun(f"{folder} cannot be read: {error}") from None
    columns = store.columns()
    pictures = [key for key, held in columns.items() if held.dtype == "bytes" or len(held.shape) in (2, 3)]
    if not pictures:
        raise CannotRun(f"no array of {folder} holds pictures", "one is needed of the shape (n, height, width, channels)")
    image = _named(_IMAGES, pictures)
    labels = [key for key, held in columns.items() if not held.shape and held.dtype[:1] in "iu"]
    label = _named(LABELS, labels) if labels else None
    shape, sample = columns[image].shape, Sample()
    if shape:
        sample.sizes.append((shape[1], shape[0]))
        sample.formats["arrays"] += 1
    else:
        import numpy as np

        sample = sample_of_bytes(store.read((image,), np.array(spread(store.rows, _SAMPLE)))[0])
    about = f"{store.rows:,} records"
    return _text("zarr", folder, spec_folder, {"image": image, "label": label}, "key", sample, store.rows, about), about


def first_prepared(folder: str, spec_folder: str) -> tuple[str, str]:
    """Writes the spec of a data set that TensorFlow Datasets prepared; as `first_parquet`."""
    from pipegen.ops.sources.dataset_folders.tfds import class_names, read_prepared

    try:
        prepared = read_prepared(os.path.abspath(folder))
    except OpError as error:
        raise CannotRun(error.message, *error.lines) from None
    pictures = [key for key, about in prepared.features.items() if "image" in about and "label" not in about["image"]]
    if not pictures or not prepared.splits:
        raise CannotRun(f"{folder} has no feature that is an image", f"its features are {', '.join(prepared.features)}")
    image = _named(_IMAGES, pictures)
    labels = [key for key, about in prepared.features.items() if "classLabel" in about]
    label = _named(LABELS, labels) if labels else None
    first = next((name for name in prepared.splits if name == "train"), next(iter(prepared.splits)))
    second = next((name for name in _VALIDATION if name in prepared.splits and name != first), None)
    split = {"train": first, "validation": second} if second is not None else {"train": f"{first}[:80%]", "validation": f"{first}[80%:]"}
    features = {"image": image} | ({"label": label} if label is not None else {})
    rows = sum(prepared.splits[first])
    lines = [
        "source:",
        "  tfds:",
        f"    name: {flow_scalar(prepared.reference)}",
        f"    data_dir: {beside(prepared.data_dir, spec_folder)}",
    ]
    lines += [f"    split: {{{', '.join(f'{name}: {flow_scalar(text)}' for name, text in split.items())}}}"]
    if features != {"image": "image", "label": "label"}:
        lines += ["    features:", *(_feature(name, name, "key", key) for name, key in features.items())]
    lines += ["transforms:", f"  - resize: {{size: {size_for(_declared(prepared.features[image]))}}}", RESCALE, *_without(label)]
    counted = f" in {len(class_names(prepared, label)):,} classes" if label is not None else ", without labels"
    about = f"{rows:,} records of `{first}`{counted}"
    return spec_text(about, [], [*lines, f"batch: {{size: {batch_for(rows)}}}"]), about


def first_saved(folder: str, spec_folder: str) -> tuple[str, str]:
    """Writes the spec of a data set that Hugging Face's library saved, or that the Hub holds; as `first_parquet`."""
    from pipegen.ops.registry import sources
    from pipegen.ops.sources.dataset_folders.hub import find_saved, key_for

    try:
        saved = find_saved(os.getcwd(), folder)
        image = key_for(saved, "image", "image")
        if image is None:
            raise CannotRun(f"{folder} has no one column of images", f"its columns are {', '.join(saved.features)}")
        label = key_for(saved, "label", "label")
        first = next((name for name in saved.files if name == "train"), next(iter(saved.files)))
        second = next((name for name in _VALIDATION if name in saved.files and name != first), None)
        features: dict[str, dict[str, str]] = {"image": {"kind": "image", "key": image}}
        if label is not None:
            features["label"] = {"kind": "label", "key": label}
        given = {"path": os.path.abspath(folder), "split": first, "features": features}
        rows = sources()["huggingface"].model_validate(given).list(Path.cwd())
    except OpError as error:
        raise CannotRun(error.message, *error.lines) from None
    count = rows.shards.total if rows.shards is not None else len(rows.keys)
    lines = ["source:", "  huggingface:", f"    path: {beside(folder, spec_folder)}"]
    if second is not None:
        lines += [f"    split: {{train: {flow_scalar(first)}, validation: {flow_scalar(second)}}}"]
    elif first != "train":
        lines += [f"    split: {flow_scalar(first)}"]
    own = {name: feature["key"] for name, feature in features.items()}
    if own != {"image": "image", "label": "label"}:
        lines += ["    features:", *(_feature(name, name, "key", key) for name, key in own.items())]
    lines += [] if second is not None else [f"splits: {{{PARTS}}}"]
    lines += ["transforms:", f"  - resize: {{size: {size_for(Sample())}}}", RESCALE, *_without(label)]
    counted = f" in {len(rows.class_names):,} classes" if rows.class_names else ", without labels"
    about = f"{count:,} records of `{first}`{counted}"
    return spec_text(about, [], [*lines, f"batch: {{size: {batch_for(count)}}}"]), about


def _declared(about: Mapping[str, Any]) -> Sample:
    """The size of pictures that all have the same, as the metadata says it."""
    sides = [int(side) for side in about["image"].get("shape", {}).get("dimensions", ())]
    sample = Sample()
    if len(sides) == 3 and min(sides) > 0:
        sample.sizes.append((sides[1], sides[0]))
    return sample


def _text(
    op: str, path: str, spec_folder: str, columns: Mapping[str, str | None], argument: str, sample: Sample, rows: int, about: str
) -> str:
    """The spec of files whose features stand in columns or under keys."""
    label = columns["label"]
    lines = ["source:", f"  {op}:", f"    path: {beside(path, spec_folder)}", "    features:"]
    more = f", {pixels_of(sample)}" if pixels_of(sample) else ""
    lines += [_feature(kind, kind, argument, name, more if kind == "image" else "") for kind, name in columns.items() if name is not None]
    stratify = ", stratify: label" if label is not None and op == "parquet" else ""
    lines += [f"splits: {{{PARTS}{stratify}}}", "transforms:", f"  - resize: {{size: {size_for(sample)}}}"]
    if label is not None:
        lines.append("  # - random_flip  # where a mirrored image means the same")
    lines += [RESCALE, *_without(label), f"batch: {{size: {batch_for(rows)}}}"]
    return spec_text(about, about_sample(sample) if op == "parquet" else [], lines)


def _without(label: str | None) -> list[str]:
    return [] if label is not None else ["output: {x: image, y: null}  # there are no labels"]


def _feature(name: str, kind: str, argument: str, stored: str, more: str = "") -> str:
    where = f", {argument}: {flow_scalar(stored)}" if stored != name else ""
    return f"      {name}: {{kind: {kind}{where}{more}}}"


def _is_image(cell: str) -> bool:
    return os.path.splitext(cell.lower())[1].removeprefix(".") in IMAGE_EXTENSIONS


def _called(wanted: Sequence[str], names: Sequence[str], columns: Sequence[int]) -> int:
    """The column that is called what is wanted, or the first."""
    return next((i for i in columns if names[i].lower() in wanted), columns[0])


def _named(wanted: Sequence[str], names: Sequence[str]) -> str:
    return names[_called(wanted, [name.rpartition("/")[2] for name in names], range(len(names)))]


def sample_of_bytes(contents: Iterable[bytes]) -> Sample:
    """Reads the headers of some pictures."""
    from PIL import Image

    from pipegen.ops.lowering.library import UnreadableError, bits_of

    sample = Sample()
    for number, content in enumerate(contents):
        try:
            with Image.open(io.BytesIO(content)) as image:
                sample.formats[image.format or "unknown"] += 1
                sample.sizes.append(image.size)
                sample.gray += image.mode in ("1", "L", "LA", "I", "I;16", "I;16B", "F")
                sample.deep += bits_of(content) == 16
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, UnreadableError):
            sample.unreadable.append(f"number {number} of those looked at")
    return sample
