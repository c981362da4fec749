"""A first spec for files that contain images: Parquet files, Zarr groups, datasets of TensorFlow Datasets and Hugging Face."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from pipegen.cli.failures import CannotRun
from pipegen.cli.init.folder_survey import readable, sample_of_bytes, sample_of_records
from pipegen.cli.init.guessed_columns import LABEL_KEYS, Values, image_among, is_image_path, label_among, last_of
from pipegen.cli.init.guessed_items import FORMATS, boxed, features_of, fields_of, listed, with_classes
from pipegen.cli.init.spec import Sample, Written, about_sample, beside, block, output_of, parts_of, pixels_of, spec_of
from pipegen.data.rounding import spread
from pipegen.lazy import np
from pipegen.ops.fields.labels import text_of

_SAMPLE = 50
_COUNTED = 2000  # number of records whose values are counted, to find columns of labels
_VALIDATION = ("validation", "val", "valid", "dev", "test")


def first_parquet(file: str, spec_folder: str) -> Written:
    """Writes the spec of a Parquet file, or of a folder of them; raises `CannotRun` if it cannot be read, or has no images."""
    from pipegen.ops.sources.shards.paths import find_shards
    from pipegen.ops.sources.tables.parquet import SUFFIXES, read_parquet

    with readable():
        root, found = find_shards(os.getcwd(), os.path.abspath(file), SUFFIXES)
        table = read_parquet([one.path for one in found], None if os.path.isfile(file) else root)
        names = table.names or ()
        pictures = [i for i, column in enumerate(table.columns) if column.holds_bytes]
        texts = {i: tuple(map(text_of, column.read())) for i, column in enumerate(table.columns) if i not in pictures}
    paths = [i for i, cells in texts.items() if cells and all(map(is_image_path, cells))]
    if not (pictures or paths) or not table.num_rows:
        raise CannotRun(f"no column of {file} contains images", "add a column of encoded images or of image paths")
    whole = [names[i] for i in pictures or paths]
    column, remarks = image_among([name for name in whole if name.rpartition(".")[0] not in whole], "column")
    sample = Sample()
    if pictures:
        reader = table.reader({"image": names.index(column)})
        sample = sample_of_bytes(reader.take("image", row) for row in spread(table.num_rows, _SAMPLE))
    cells_of = {names[i]: set(cells) for i, cells in texts.items() if i not in paths}
    named = {name for name, own in cells_of.items() if not all(cell.lstrip("-").replace(".", "", 1).isdigit() for cell in own)}
    seen = {name: Values(len(own), table.num_rows, name in named) for name, own in cells_of.items() if "" not in own}
    keys = [
        path for i in texts for path, _ in fields_of(names[i], next((cell for cell in table.columns[i].read() if cell is not None), None))
    ]
    keys = list(dict.fromkeys([*(names[i] for i in texts), *keys]))
    lists = partial(listed, "parquet", {"path": os.path.abspath(file)}, "")
    pixels = pixels_of(sample)
    features = features_of(column, None, "column", pixels)
    boxes, doubts = boxed(lists, features, keys, "column")
    label, more = _label(seen, "column") if not boxes else (None, [])
    features = with_classes(lists, features | boxes, keys, "column")[0] if boxes else features_of(column, label, "column", pixels)
    return spec_of(
        f"{table.num_rows:,} rows" + (f", in {seen[label].distinct} classes" if label is not None else ""),
        [*about_sample(sample), *remarks, *more, *doubts],
        ["source:", *block("parquet", {"path": beside(file, spec_folder)}, features)],
        table.num_rows,
        splits=parts_of("parquet", table.num_rows, stratified=label is not None),
        sample=sample,
        steps=["rescale"] if label is None else ["maybe flip", "rescale"],
        output=_without(label, boxes),
    )


def first_zarr(folder: str, spec_folder: str) -> Written:
    """Writes the spec of a Zarr group, or of a folder of groups; see `first_parquet`."""
    from pipegen.ops.sources.shards.paths import find_shards
    from pipegen.ops.sources.stores.field_types import StoreError
    from pipegen.ops.sources.zarr import Zarr, ZarrArrays

    try:
        with readable():
            _, groups = find_shards(os.getcwd(), os.path.abspath(folder), Zarr.suffixes, Zarr.marks)
            stores = [ZarrArrays(group.path) for group in groups]
            store, rows = stores[0], sum(one.rows for one in stores)
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
    shape, looked = columns[image].shape, np.array(spread(store.rows, _SAMPLE))
    sample = Sample(sizes=[(shape[1], shape[0])]) if shape else sample_of_bytes(store.read((image,), looked)[0])
    return spec_of(
        f"{rows:,} records",
        [*remarks, *more],
        ["source:", *block("zarr", {"path": beside(folder, spec_folder)}, features_of(image, label, more=pixels_of(sample)))],
        rows,
        splits=parts_of("zarr", rows),
        sample=sample,
        steps=["rescale"] if label is None else ["maybe flip", "rescale"],
        output=_without(label, {}),
    )


def first_prepared(folder: str, spec_folder: str) -> Written:
    """Writes the spec of a dataset prepared by TensorFlow Datasets; see `first_parquet`."""
    from pipegen.ops.sources.tfds import class_names, described_as, read_prepared

    with readable():
        prepared = read_prepared(os.path.abspath(folder))
    pictures = [key for key, about in prepared.features.items() if "image" in about and "label" not in about["image"]]
    if not pictures or not prepared.splits:
        raise CannotRun(f"{folder} has no image feature", f"its features are {', '.join(prepared.features)}")
    image, remarks = image_among(pictures)
    label, more = _usual_label(key for key, about in prepared.features.items() if "classLabel" in about)
    first, second = _two_splits(prepared.splits)
    split = {"train": first, "validation": second} if second is not None else {"train": f"{first}[:80%]", "validation": f"{first}[80%:]"}
    rows = sum(prepared.splits[first])
    given = {"name": prepared.reference, "data_dir": beside(prepared.data_dir, spec_folder), "split": split}
    lists = partial(listed, "tfds", {**given, "split": first, "data_dir": os.path.abspath(prepared.data_dir)}, "")
    own = any(described_as(prepared, key, "BBoxFeature") for key in prepared.features)
    boxes, doubts = boxed(lists, features_of(image, None), list(prepared.features), formats=["rel_yxyx"] if own else FORMATS)
    counted = _counted(len(class_names(prepared, label)) if label is not None else 0, boxes)
    sides = [int(side) for side in prepared.features[image]["image"].get("shape", {}).get("dimensions", ())]
    return spec_of(
        f"{rows:,} records of `{first}`{counted}",
        [*remarks, *more, *doubts],
        ["source:", *block("tfds", given, _unusual(image, label, boxes))],
        rows,
        sample=Sample(sizes=[(sides[1], sides[0])] if len(sides) == 3 and min(sides) > 0 else []),
        output=_without(label, boxes),
    )


def _fields(key: str, about: Any) -> Iterator[str]:
    """Yields the keys of a column of Hugging Face, or of the fields of a struct or a list of structs."""
    inner = about[0] if isinstance(about, list) else about
    inner = inner.get("feature", inner) if isinstance(inner, dict) else {}
    fields = {} if not isinstance(inner, dict) or "_type" in inner else {k: v for k, v in inner.items() if isinstance(v, (dict, list))}
    yield from (path for name, own in fields.items() for path in _fields(f"{key}.{name}", own))
    if not fields:
        yield key


def first_saved(folder: str, spec_folder: str) -> Written:
    """Writes the spec of a dataset of Hugging Face, saved by its library or from the Hub; see `first_parquet`."""
    from pipegen.ops.sources.huggingface import FILES, find_saved

    with readable():
        saved = find_saved(os.getcwd(), folder)

        def of_type(kind: str) -> list[str]:  # else, by its usual name
            return [column for column, about in saved.features.items() if about.get("_type") == kind]

        pictures = of_type("Image") or of_type(FILES) or [name for name in ("image",) if name in saved.features]
        if not pictures:
            raise CannotRun(f"{folder} has no column of images", f"its columns are {', '.join(saved.features)}")
        image, remarks = image_among(pictures)
        label, more = _usual_label(of_type("ClassLabel") or [name for name in ("label",) if name in saved.features])
        first, second = _two_splits(saved.files)
        lists = partial(listed, "huggingface", {"path": os.path.abspath(folder), "split": first}, "")
        keys = [path for key, about in saved.features.items() for path in _fields(key, about) if key != image]
        boxes, doubts = boxed(lists, features_of(image, None), keys)
        rows = lists(features_of(image, label))
    count = rows.shards.total if rows.shards is not None else len(rows.keys)
    sample = sample_of_records(rows, count)
    split = {"train": first, "validation": second} if second is not None else first
    given = {"path": beside(folder, spec_folder), **({"split": split} if split != "train" else {})}
    return spec_of(
        f"{count:,} records of `{first}`{_counted(len(rows.class_names), boxes)}",
        [*about_sample(sample), *remarks, *more, *doubts],
        ["source:", *block("huggingface", given, _unusual(image, label, boxes))],
        count,
        splits=parts_of("huggingface", count) if second is None else "",
        sample=sample,
        output=_without(label, boxes),
    )


def _counted(classes: int, boxes: Mapping[str, Any]) -> str:
    return f" in {classes:,} classes" if classes else ", with boxes" if boxes else ", without labels"


def _two_splits(names: Iterable[str]) -> tuple[str, str | None]:
    """Chooses the split for training, and one for validation if there is one."""
    known = list(names)
    first = "train" if "train" in known else known[0]
    return first, next((name for name in _VALIDATION if name in known and name != first), None)


def _unusual(image: str, label: str | None, boxes: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Makes the features of a dataset; none if their keys are the usual ones."""
    return {} if not boxes and (image, label) == ("image", "label") else features_of(image, label) | boxes


def _label(seen: Mapping[str, Values], argument: str = "key") -> tuple[str | None, list[str]]:
    """Chooses the labels among columns: by name if they have few values, else by their values."""
    return label_among(seen, [name for name, values in seen.items() if values.likely and last_of(name) in LABEL_KEYS], argument)


def _usual_label(labels: Iterable[str]) -> tuple[str | None, list[str]]:
    """Chooses the labels among columns of classes by name."""
    return label_among({}, sorted(labels, key=lambda key: last_of(key) not in LABEL_KEYS))


def _without(label: str | None, boxes: Mapping[str, Any]) -> str:
    return output_of(boxes) or ("" if label is not None else "output: {x: image, y: null}  # there are no labels")
