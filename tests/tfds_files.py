"""Writes folders as TensorFlow Datasets prepares them, without it: metadata, and records of which its own files hold the same bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from record_files import write_tfrecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CLASSES = "tensorflow_datasets.core.features"


def described(value: Any, classes: int) -> dict[str, Any]:
    """The entry of `features.json` for what a record holds."""
    if isinstance(value, bytes):
        dimensions = ["-1", "-1", "3"]
        return {"pythonClassName": f"{_CLASSES}.image_feature.Image", "image": {"dtype": "uint8", "shape": {"dimensions": dimensions}}}
    if isinstance(value, int):
        return {"pythonClassName": f"{_CLASSES}.class_label_feature.ClassLabel", "classLabel": {"numClasses": str(classes)}}
    if isinstance(value, str):
        return {"pythonClassName": f"{_CLASSES}.text_feature.Text", "text": {}}
    tensor = {"dtype": "float32", "encoding": "none", "shape": {"dimensions": [str(len(value))] if isinstance(value, list) else []}}
    return {"pythonClassName": f"{_CLASSES}.tensor_feature.Tensor", "tensor": tensor}


def prepare(
    root: Path,
    splits: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]],
    *,
    name: str = "pets",
    version: str = "1.0.0",
    classes: Sequence[str] = (),
    file_format: str = "tfrecord",
) -> Path:
    """Writes a data set: the records of each shard of each split. Returns its folder."""
    folder = root / name / version
    folder.mkdir(parents=True, exist_ok=True)
    listed = []
    for split, shards in splits.items():
        for number, records in enumerate(shards):
            write_tfrecord(folder / f"{name}-{split}.{file_format}-{number:05}-of-{len(shards):05}", records)
        template = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
        listed.append({"name": split, "filepathTemplate": template, "shardLengths": [str(len(records)) for records in shards]})
    first = next(iter(splits.values()))[0][0]
    features = {key: described(value, len(classes)) for key, value in first.items()}
    (folder / "dataset_info.json").write_text(json.dumps({"name": name, "version": version, "fileFormat": file_format, "splits": listed}))
    (folder / "features.json").write_text(json.dumps({"featuresDict": {"features": features}}))
    if classes:
        (folder / "label.labels.txt").write_text("\n".join(classes))
    return folder


def write_page(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Writes the data set of a page of the catalogue: a folder `NAME` with two files, of which one is the split `test`."""
    half = len(records) // 2
    prepare(path.parent, {"train": [records[:half]], "test": [records[half:]]}, name=path.name, classes=("cat", "dog", "owl"))
