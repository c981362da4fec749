"""A first spec for files that contain images: Parquet files, Zarr groups, datasets of TensorFlow Datasets and Hugging Face."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipegen.cli.failures import CannotRun
from pipegen.cli.init.columns import LABEL_KEYS, Values, image_among, is_image_path, label_among, last_of
from pipegen.cli.init.spec import RESCALE, about_sample, batch_for, beside, parts_of, pixels_of, size_for, spec_text
from pipegen.cli.init.survey import Sample, sample_of_bytes, sample_of_records, spread
from pipegen.errors import OpError
from pipegen.ops.sources.tables.table import text_of
from pipegen.spec.compose import flow_scalar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipegen.ops.sources.dataset_folders.hub import Saved

_SAMPLE = 50
_COUNTED = 2000
"""Number of records whose values are counted, to find columns of labels."""
_VALIDATION = ("validation", "val", "valid", "dev", "test")


def first_parquet(file: str, spec_folder: str) -> tuple[str, str]:
    """Writes the spec of a Parquet file, or of a folder of them, with paths relative to the spec's folder.

    Returns:
        The text of the spec, and a summary of the data.

    Raises:
        CannotRun: When it cannot be read, or has no images.
    """
    from pipegen.ops.sources.records.paths import find_shards
    from pipegen.ops.sources.tables.parquet import SUFFIXES
    from pipegen.ops.sources.tables.parquet_files import read_parquet

    try:
        root, found = find_shards(os.getcwd(), os.path.abspath(file), SUFFIXES)
        table = read_parquet([one.path for one in found], None if os.path.isfile(file) else root)
        names = table.names or ()
        pictures = [i for i in range(table.width) if table.holds_bytes(i, "")]
        texts = {i: tuple(map(text_of, table.columns(i))) for i in range(table.width) if i not in pictures}
    except OpError as error:
        raise CannotRun(error.message, *error.lines) from None
    paths = [i for i, cells in texts.items() if cells and all(map(is_image_path, cells))]
    if not (pictures or paths) or not table.num_rows:
        raise CannotRun(f"no column of {file} contains images", "add a column of encoded images or of image paths")
    column, remarks = image_among([names[i] for i in pictures or paths], "column")
    sample = Sample()
    if pictures:
        reader = table.reader({"image": names.index(column)})
        sample = sample_of_bytes(reader.take("image", row) for row in spread(table.num_rows, _SAMPLE))
    cells_of = {names[i]: set(cells) for i, cells in texts.items() if i not in paths}
    seen = {name: Values(len(own), table.num_rows, not all(map(_is_number, own))) for name, own in cells_of.items() if "" not in own}
    label, more = _label(seen, "column")
    about = f"{table.num_rows:,} rows" + (f", in {seen[label].distinct} classes" if label is not None else "")
    columns = {"image": column, "label": label}
    return _text("parquet", file, spec_folder, columns, "column", sample, table.num_rows, about, [*remarks, *more]), about


def first_zarr(folder: str, spec_folder: str) -> tuple[str, str]:
    """Writes the spec of a Zarr group, or of a folder of groups; see `first_parquet`."""
    import numpy as np

    from pipegen.ops.sources.records.paths import find_shards
    from pipegen.ops.sources.stores.base import StoreError
    from pipegen.ops.sources.stores.zarr_arrays import ZarrArrays
    from pipegen.ops.sources.zarr import Zarr

    try:
        _, groups = find_shards(os.getcwd(), os.path.abspath(folder), Zarr.suffixes, Zarr.marks)
        stores = [ZarrArrays(group.path) for group in groups]
        store, rows = stores[0], sum(one.rows for one in stores)
    except OpError as error:
        raise CannotRun(error.message, *error.lines) from None
    except StoreError as error:
        raise CannotRun(f"{folder} cannot be read: {error}") from None
    columns = store.columns()
    pictures = [key for key, held in columns.items() if held.dtype == "bytes" or len(held.shape) in (2, 3)]
    if not pictures:
        raise CannotRun(f"no array of {folder} contains images", "add one of the shape (n, height, width, channels)")
    image, remarks = image_among(pictures)
    labels = [key for key, held in columns.items() if not held.shape and held.dtype[:1] in "iu"]
    looked = np.array(spread(store.rows, _COUNTED), np.int64)
    seen = {key: Values(len(np.unique(np.asarray(store.read((key,), looked)[0]))), len(looked), named=False) for key in labels}
    label, more = _label(seen)
    shape, sample = columns[image].shape, Sample()
    if shape:
        sample.sizes.append((shape[1], shape[0]))
        sample.formats["arrays"] += 1
    else:
        sample = sample_of_bytes(store.read((image,), np.array(spread(store.rows, _SAMPLE)))[0])
    about = f"{rows:,} records"
    return _text("zarr", folder, spec_folder, {"image": image, "label": label}, "key", sample, rows, about, [*remarks, *more]), about


def first_prepared(folder: str, spec_folder: str) -> tuple[str, str]:
    """Writes the spec of a dataset prepared by TensorFlow Datasets; see `first_parquet`."""
    from pipegen.ops.sources.dataset_folders.tfds import class_names, read_prepared

    try:
        prepared = read_prepared(os.path.abspath(folder))
    except OpError as error:
        raise CannotRun(error.message, *error.lines) from None
    pictures = [key for key, about in prepared.features.items() if "image" in about and "label" not in about["image"]]
    if not pictures or not prepared.splits:
        raise CannotRun(f"{folder} has no image feature", f"its features are {', '.join(prepared.features)}")
    image, remarks = image_among(pictures)
    labels = [key for key, about in prepared.features.items() if "classLabel" in about]
    label, more = label_among({}, sorted(labels, key=lambda key: last_of(key) not in LABEL_KEYS))
    first, second = _two_splits(prepared.splits)
    split = {"train": first, "validation": second} if second is not None else {"train": f"{first}[:80%]", "validation": f"{first}[80%:]"}
    features = {"image": image} | ({"label": label} if label is not None else {})
    rows = sum(prepared.splits[first])
    lines = [
        "source:",
        "  tfds:",
        f"    name: {flow_scalar(prepared.reference)}",
        f"    data_dir: {beside(prepared.data_dir, spec_folder)}",
    ]
    lines += [f"    split: {{{', '.join(f'{name}: {flow_scalar(text)}' for name, text in split.items())}}}", *_keys(features)]
    lines += ["transforms:", f"  - resize: {{size: {size_for(_declared(prepared.features[image]))}}}", RESCALE, *_without(label)]
    counted = f" in {len(class_names(prepared, label)):,} classes" if label is not None else ", without labels"
    about = f"{rows:,} records of `{first}`{counted}"
    return spec_text(about, [*remarks, *more], [*lines, f"batch: {{size: {batch_for(rows)}}}"]), about


def first_saved(folder: str, spec_folder: str) -> tuple[str, str]:
    """Writes the spec of a dataset of Hugging Face, saved by its library or from the Hub; see `first_parquet`."""
    from pipegen.ops.registry import sources
    from pipegen.ops.sources.dataset_folders.hub import find_saved

    try:
        saved = find_saved(os.getcwd(), folder)
        pictures = _of_type(saved, "Image") or [name for name in ("image",) if name in saved.features]
        if not pictures:
            raise CannotRun(f"{folder} has no column of images", f"its columns are {', '.join(saved.features)}")
        image, remarks = image_among(pictures)
        labels = _of_type(saved, "ClassLabel") or [name for name in ("label",) if name in saved.features]
        label, more = label_among({}, sorted(labels, key=lambda key: last_of(key) not in LABEL_KEYS))
        first, second = _two_splits(saved.files)
        features: dict[str, dict[str, str]] = {"image": {"kind": "image", "key": image}}
        if label is not None:
            features["label"] = {"kind": "label", "key": label}
        given = {"path": os.path.abspath(folder), "split": first, "features": features}
        rows = sources()["huggingface"].model_validate(given).list(Path.cwd())
    except OpError as error:
        raise CannotRun(error.message, *error.lines) from None
    count, sample = rows.shards.total if rows.shards is not None else len(rows.keys), sample_of_records(rows, "image")
    lines = ["source:", "  huggingface:", f"    path: {beside(folder, spec_folder)}"]
    if second is not None:
        lines += [f"    split: {{train: {flow_scalar(first)}, validation: {flow_scalar(second)}}}"]
    elif first != "train":
        lines += [f"    split: {flow_scalar(first)}"]
    lines += _keys({name: feature["key"] for name, feature in features.items()})
    lines += [] if second is not None else [f"splits: {{{parts_of('huggingface', count)}}}"]
    lines += ["transforms:", f"  - resize: {{size: {size_for(sample)}}}", RESCALE, *_without(label)]
    counted = f" in {len(rows.class_names):,} classes" if rows.class_names else ", without labels"
    about = f"{count:,} records of `{first}`{counted}"
    return spec_text(about, [*about_sample(sample), *remarks, *more], [*lines, f"batch: {{size: {batch_for(count)}}}"]), about


def _two_splits(names: Iterable[str]) -> tuple[str, str | None]:
    """Chooses the split for training, and one for validation if there is one."""
    known = list(names)
    first = "train" if "train" in known else known[0]
    return first, next((name for name in _VALIDATION if name in known and name != first), None)


def _keys(keys: Mapping[str, str]) -> list[str]:
    """Writes the features of a dataset by their keys; nothing if these are the usual ones."""
    if keys == {"image": "image", "label": "label"}:
        return []
    return ["    features:", *(_feature(name, name, "key", key) for name, key in keys.items())]


def _of_type(saved: Saved, kind: str) -> list[str]:
    """Columns of a type of Hugging Face's library, by the metadata."""
    return [column for column, about in saved.features.items() if about.get("_type") == kind]


def _label(seen: Mapping[str, Values], argument: str = "key") -> tuple[str | None, list[str]]:
    """Chooses the labels among columns: by name if they have few values, else by their values."""
    return label_among(seen, [name for name, values in seen.items() if values.likely and last_of(name) in LABEL_KEYS], argument)


def _declared(about: Mapping[str, Any]) -> Sample:
    """Reads the common size of the images from the metadata."""
    sides = [int(side) for side in about["image"].get("shape", {}).get("dimensions", ())]
    sample = Sample()
    if len(sides) == 3 and min(sides) > 0:
        sample.sizes.append((sides[1], sides[0]))
    return sample


def _text(
    op: str,
    path: str,
    spec_folder: str,
    columns: Mapping[str, str | None],
    argument: str,
    sample: Sample,
    rows: int,
    about: str,
    remarks: Sequence[str],
) -> str:
    """Writes the spec of files with features in columns or under keys."""
    label = columns["label"]
    lines = ["source:", f"  {op}:", f"    path: {beside(path, spec_folder)}", "    features:"]
    more = f", {pixels_of(sample)}" if pixels_of(sample) else ""
    lines += [_feature(kind, kind, argument, name, more if kind == "image" else "") for kind, name in columns.items() if name is not None]
    stratify = ", stratify: label" if label is not None and op == "parquet" else ""
    lines += [f"splits: {{{parts_of(op, rows)}{stratify}}}", "transforms:", f"  - resize: {{size: {size_for(sample)}}}"]
    if label is not None:
        lines.append("  # - random_flip  # where a mirrored image means the same")
    lines += [RESCALE, *_without(label), f"batch: {{size: {batch_for(rows)}}}"]
    return spec_text(about, [*(about_sample(sample) if op == "parquet" else []), *remarks], lines)


def _without(label: str | None) -> list[str]:
    return [] if label is not None else ["output: {x: image, y: null}  # there are no labels"]


def _feature(name: str, kind: str, argument: str, stored: str, more: str = "") -> str:
    where = f", {argument}: {flow_scalar(stored)}" if stored != name else ""
    return f"      {name}: {{kind: {kind}{where}{more}}}"


def _is_number(cell: str) -> bool:
    return cell.lstrip("-").replace(".", "", 1).isdigit()
