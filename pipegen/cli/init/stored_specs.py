"""A first spec for files that contain images: Parquet files, Zarr groups, datasets of TensorFlow Datasets and Hugging Face."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from pipegen.cli.failures import CannotRun
from pipegen.cli.init.folder_survey import readable, sample_of_bytes, sample_of_records
from pipegen.cli.init.guessed_columns import (
    IMAGE,
    KINDS,
    LABEL_KEYS,
    SOUND,
    USUAL_RATE,
    Lists,
    Values,
    chosen_among,
    columns_of,
    held_in,
    label_among,
    last_of,
    told_by,
)
from pipegen.cli.init.guessed_items import FORMATS, boxed, features_of, fields_of, listed, with_classes
from pipegen.cli.init.sound_specs import sample_of_sounds, sounds_of_records, spec_of_sounds
from pipegen.cli.init.spec import WITHOUT_LABELS, Sample, Written, about_sample, beside, block, output_of, parts_of, pixels_of, spec_of
from pipegen.cli.init.table_specs import DUE, of_numbers
from pipegen.data.rounding import spread
from pipegen.lazy import np
from pipegen.ops.fields.labels import text_of

_SAMPLE = 50
_COUNTED = 2000  # number of records whose values are counted, to find columns of labels
_VALIDATION = ("validation", "val", "valid", "dev", "test")


def first_parquet(file: str, spec_folder: str) -> Written:
    """Writes the spec of a Parquet file, or of a folder of them; `CannotRun` if it cannot be read, or has neither images nor sounds."""
    from pipegen.ops.sources.shards.paths import find_shards
    from pipegen.ops.sources.tables.parquet import SUFFIXES, read_parquet

    with readable():
        root, found = find_shards(os.getcwd(), os.path.abspath(file), SUFFIXES)
        table = read_parquet([one.path for one in found], None if os.path.isfile(file) else root)
        names = table.names or ()
        pictures = [i for i, column in enumerate(table.columns) if column.holds_bytes]
        texts = {i: tuple(map(text_of, column.read())) for i, column in enumerate(table.columns) if i not in pictures}
    reader = table.reader({names[i]: i for i in pictures}) if pictures else None

    def taken(column: str, rows: Iterable[int]) -> list[bytes]:
        return [reader.take(column, row) for row in rows] if reader is not None else []

    held = {i: kinds.pop() for i, own in texts.items() if len(kinds := {*map(told_by, own)}) == 1}
    held |= {i: held_in(next(iter(taken(names[i], range(min(1, table.num_rows)))), None)) or IMAGE for i in pictures}
    if table.num_rows and not {*held.values()} & {*KINDS} and sum(column.numbers is not None for column in columns_of(table)) > 1:
        return of_numbers(table, "parquet", {"path": beside(file, spec_folder)})
    if not table.num_rows or not {*held.values()} & {*KINDS}:
        raise CannotRun(f"no column of {file} contains images or sounds, and no two contain numbers", DUE)
    what = IMAGE if IMAGE in held.values() else SOUND
    found_in = [i for i in pictures if held[i] == what] or [i for i in texts if held.get(i) == what]
    whole = [names[i] for i in found_in]
    column, remarks = chosen_among([name for name in whole if name.rpartition(".")[0] not in whole], "column", what)
    cells_of = {names[i]: set(cells) for i, cells in texts.items() if held.get(i) not in KINDS}
    named = {name for name, own in cells_of.items() if not all(cell.lstrip("-").replace(".", "", 1).isdigit() for cell in own)}
    of_lists = {name: own for i, cells in texts.items() if (own := Lists.of(cells, name := names[i])) is not None}
    beside_paths = not any(held[i] in KINDS for i in pictures)
    left = [own.feature(name, name, beside_paths=beside_paths) for name, own in of_lists.items() if own.classes or own.numbers != 0]
    seen = {
        name: Values(len(own), table.num_rows, name in named) for name, own in cells_of.items() if "" not in own and name not in of_lists
    }
    keys = [
        path for i in texts for path, _ in fields_of(names[i], next((cell for cell in table.columns[i].read() if cell is not None), None))
    ]
    keys = list(dict.fromkeys([*(names[i] for i in texts), *keys]))
    contents = taken(column, spread(table.num_rows, _SAMPLE)) if found_in[0] in pictures else []
    rows, place, splits = table.num_rows, {"path": beside(file, spec_folder)}, partial(parts_of, "parquet", table.num_rows)
    if what == SOUND:
        label, more = _label(seen, "column")
        root = file if os.path.isdir(file) else os.path.dirname(os.path.abspath(file))
        cells = [] if contents else [str(cell) for cell in table.columns[names.index(column)].read()]
        files = [os.path.join(root, cell) for cell in cells]
        heard = sample_of_sounds(cells or [*map("row {}".format, range(len(contents)))], files or contents)
        features = features_of(column, label, "column", {"rate": heard.rate}, SOUND)
        return spec_of_sounds(
            f"{rows:,} rows" + (f", in {seen[label].distinct} classes" if label is not None else ""),
            [*heard.comments(), *remarks, *more],
            ["source:", *block("parquet", place, features, left)],
            rows,
            heard,
            splits=splits(stratified=label is not None),
            labelled=label is not None,
        )
    sample = sample_of_bytes(contents) if contents else Sample()
    lists = partial(listed, "parquet", {"path": os.path.abspath(file)}, "")
    pixels = pixels_of(sample)
    features = features_of(column, None, "column", pixels)
    boxes, doubts = boxed(lists, features, keys, "column")
    label, more = _label(seen, "column") if not boxes else (None, [])
    features = with_classes(lists, features | boxes, keys, "column")[0] if boxes else features_of(column, label, "column", pixels)
    return spec_of(
        f"{rows:,} rows" + (f", in {seen[label].distinct} classes" if label is not None else ""),
        [*about_sample(sample), *remarks, *more, *doubts],
        ["source:", *block("parquet", place, features, [] if boxes else left)],
        rows,
        splits=splits(stratified=label is not None),
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
    image, remarks = chosen_among(pictures)
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
    held = {
        key: what
        for key, about in prepared.features.items()
        for what, kind in KINDS.items()
        if kind in about and "label" not in about[kind]
    }
    if not held or not prepared.splits:
        raise CannotRun(f"{folder} has no image and no sound", f"its features are {', '.join(prepared.features)}")
    what = IMAGE if IMAGE in held.values() else SOUND
    image, remarks = chosen_among([key for key, own in held.items() if own == what], what=what)
    label, more = _usual_label(key for key, about in prepared.features.items() if "classLabel" in about)
    first, second = _two_splits(prepared.splits)
    split = {"train": first, "validation": second} if second is not None else {"train": f"{first}[:80%]", "validation": f"{first}[80%:]"}
    rows = sum(prepared.splits[first])
    given = {"name": prepared.reference, "data_dir": beside(prepared.data_dir, spec_folder), "split": split}
    lists = partial(listed, "tfds", {**given, "split": first, "data_dir": os.path.abspath(prepared.data_dir)}, "")
    about = prepared.features[image][KINDS[what]]
    sides, classes = [int(side) for side in about.get("shape", {}).get("dimensions", ())], len(class_names(prepared, label)) if label else 0
    if what == SOUND:
        told = {"rate": int(about.get("sampleRate") or USUAL_RATE), "channels": sides[1] if len(sides) > 1 else 1}
        features = features_of(
            image, label, more={name: value for name, value in told.items() if (name, value) != ("channels", 1)}, what=SOUND
        )
        with readable():
            heard = sounds_of_records(lists(features), rows)
        source = ["source:", *block("tfds", given, features)]
        summary = f"{rows:,} records of `{first}`{_counted(classes, {})}"
        return spec_of_sounds(summary, [*heard.comments(), *remarks, *more], source, rows, heard, splits="", labelled=label is not None)
    own = any(described_as(prepared, key, "BBoxFeature") for key in prepared.features)
    boxes, doubts = boxed(lists, features_of(image, None), list(prepared.features), formats=["rel_yxyx"] if own else FORMATS)
    return spec_of(
        f"{rows:,} records of `{first}`{_counted(classes, boxes)}",
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
        heard = [] if pictures else of_type("Audio")
        if not (pictures or heard):
            raise CannotRun(f"{folder} has no column of images or sounds", f"its columns are {', '.join(saved.features)}")
        what = SOUND if heard else IMAGE
        image, remarks = chosen_among(pictures or heard, what=what)
        label, more = _usual_label(of_type("ClassLabel") or [name for name in ("label",) if name in saved.features])
        first, second = _two_splits(saved.files)
        lists = partial(listed, "huggingface", {"path": os.path.abspath(folder), "split": first}, "")
        keys = [path for key, about in saved.features.items() for path in _fields(key, about) if key != image]
        boxes, doubts = ({}, []) if heard else boxed(lists, features_of(image, None), keys)
        rows = lists(features_of(image, label, what=what))
    count = rows.shards.total if rows.shards is not None else len(rows.keys)
    split = {"train": first, "validation": second} if second is not None else first
    given = {"path": beside(folder, spec_folder), **({"split": split} if split != "train" else {})}
    summary = f"{count:,} records of `{first}`{_counted(len(rows.class_names), boxes)}"
    splits = parts_of("huggingface", count) if second is None else ""
    if heard:
        of_sounds = sounds_of_records(rows, count)
        features = features_of(image, label, "key", {"rate": of_sounds.rate}, SOUND)
        comments, source = [*of_sounds.comments(), *remarks, *more], ["source:", *block("huggingface", given, features)]
        return spec_of_sounds(summary, comments, source, count, of_sounds, splits=splits, labelled=label is not None)
    sample = sample_of_records(rows, count)
    return spec_of(
        summary,
        [*about_sample(sample), *remarks, *more, *doubts],
        ["source:", *block("huggingface", given, _unusual(image, label, boxes))],
        count,
        splits=splits,
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
    return output_of(boxes) or ("" if label is not None else WITHOUT_LABELS.format("image"))
