"""A first spec for files of records: it looks into the first record for images and labels."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipegen.cli.columns import LABELS
from pipegen.cli.failures import CannotRun
from pipegen.cli.init.archives import class_folders, first_archive
from pipegen.cli.init.spec import PARTS, RESCALE, batch_for, beside, spec_text
from pipegen.cli.init.stores import ENDINGS, LOOKS, of_example
from pipegen.errors import OpError
from pipegen.mounts import Opened
from pipegen.ops.registry import sources
from pipegen.ops.sources.folders.sniff import IMAGE_EXTENSIONS, sniff
from pipegen.ops.sources.listing.shards import shards_of
from pipegen.ops.sources.mds import read_columns
from pipegen.ops.sources.records.paths import find_shards
from pipegen.ops.sources.records.tar_headers import tar_members
from pipegen.ops.sources.records.tf_example import read_example
from pipegen.ops.sources.records.zip_directory import zip_members
from pipegen.ops.sources.tfrecord import index_tfrecord
from pipegen.spec.scalars import flow_scalar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pipegen.ops.sources.listing.base import Listing
    from pipegen.ops.sources.records.paths import Found

FILES = {
    ".tfrecord": "tfrecord", ".tfrecords": "tfrecord", ".tfrec": "tfrecord", ".tar": "webdataset", ".zip": "zip", ".mds": "mds", **ENDINGS,
}  # fmt: skip
"""By the ending of a file, the source that reads it."""
_OF_SPLIT = re.compile(r"(train|validation|val|test)-\d+-of-\d+\b")
_SPLITS = {"val": "validation"}
_LABEL_KEYS = frozenset({*LABELS, "cls", "image/class/label", "fine_label"})
_SHOWN = 12
_SIZE = 224

Features = dict[str, dict[str, Any]]


def source_of(path: str) -> str | None:
    """Returns the source that reads a file, or a folder that holds such files and no others of records; `None` where there is none."""
    if not os.path.isdir(path):
        return FILES.get(os.path.splitext(path)[1].lower())
    names = [entry.name for entry in os.scandir(path) if entry.is_file() and not entry.name.startswith(".")]
    found = {FILES.get(os.path.splitext(name)[1].lower()) for name in names} - {None}
    images = any(os.path.splitext(name)[1].lower().lstrip(".") in IMAGE_EXTENSIONS for name in names)
    return found.pop() if len(found) == 1 and not images else None


def first_records(path: str, op: str, spec_folder: str) -> tuple[str, str]:
    """Writes the spec of files of records, with paths relative to the spec's folder.

    Returns:
        The text of the spec, and what was found in a few words.

    Raises:
        CannotRun: When they cannot be read, or hold no images.
    """
    classes = class_folders(os.path.abspath(path)) if op in ("zip", "webdataset") and os.path.isfile(path) else None
    if classes is not None:
        return first_archive(classes, path, spec_folder)
    try:
        _, shards = find_shards(os.getcwd(), os.path.abspath(path), sources()[op].suffixes)  # type: ignore[attr-defined]
        features, others, own = _look(op, next((shard for shard in shards if shard.size), shards[0]))
        if not any(feature["kind"] == "image" for feature in features.values()):
            raise CannotRun(f"{path}: the first record holds no image, but {', '.join(others) or 'nothing'}")
        arguments = {"path": os.path.abspath(path), "features": features, **own}
        listing = sources()[op].model_validate(arguments).list(Path.cwd())
    except (OpError, OSError, ValueError) as error:
        raise CannotRun(f"{path}: {error.message if isinstance(error, OpError) else error}") from None
    count = shards_of(listing).total
    if "label" in features:
        features["label"] |= _classes(listing)
    summary = f"{count:,} records in {len(shards):,} {'file' if len(shards) == 1 else 'files'}"
    comments = [f"The records also have {', '.join(others[:_SHOWN])}"] if others else []
    about = [*(f"{key}: {value}" for key, value in own.items()), "features:"]
    about += [f"  {name}: {_flow(feature)}" for name, feature in features.items()]
    splits = _splits(shards)
    if splits:
        lines = ["source:", "  by_split:"]
        for split, pattern in splits.items():
            where = beside(os.path.join(path, pattern), spec_folder)
            lines += [f"    {split}:", f"      {op}:", f"        path: {where}", *(f"        {line}" for line in about)]
    else:
        written = [f"path: {beside(path, spec_folder)}", *about]
        lines = ["source:", f"  {op}:", *(f"    {line}" for line in written), f"splits: {{{PARTS}}}"]
    lines += ["transforms:", f"  - resize: {{size: {_SIZE}}}", RESCALE, f"batch: {{size: {batch_for(count, 32)}}}"]
    return spec_text(summary, comments, lines), summary


def _splits(shards: Sequence[Found]) -> dict[str, str]:
    """The pattern of each split's files, where all are called `SPLIT-00000-of-00004` and train is among them."""
    named = [_OF_SPLIT.match(shard.key) for shard in shards]
    found = {match[1]: f"{match[1]}-*{os.path.splitext(shard.key)[1]}" for match, shard in zip(named, shards, strict=True) if match}
    if None in named or "train" not in found or len(found) < 2:
        return {}
    return {_SPLITS.get(name, name): found[name] for name in sorted(found, key=("train", "val", "validation", "test").index)}


def _classes(listing: Listing) -> dict[str, Any]:
    """The classes of a label, which all labels have told: their names, or how many there are and what they are counted from."""
    names = listing.class_names
    if not all(re.fullmatch(r"\d+", name) for name in names):
        return {"classes": list(names)}
    labels = listing.reader().labels(shards_of(listing).numbers)
    from_one = labels is not None and len(labels) and int(labels.min()) == 1
    return {"classes": len(names) - 1, "offset": 1} if from_one else {"classes": len(names)}


def _flow(feature: dict[str, Any]) -> str:
    return "{" + ", ".join(f"{key}: {_value(value)}" for key, value in feature.items()) + "}"


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(flow_scalar(str(item)) for item in value) + "]"
    return str(value) if isinstance(value, int) else flow_scalar(str(value))


def _look(op: str, shard: Found) -> tuple[Features, list[str], dict[str, Any]]:
    """The features of the first record, what else it holds, in words, and other arguments of the source."""
    if op in LOOKS:
        held, whole, own = LOOKS[op](shard.path)
        return (*_features(held, whole), own)
    if op == "tfrecord":
        return _example(shard)
    if op == "mds":
        with Opened(shard.path) as stream:
            columns, _ = read_columns(stream, shard.size)
        pictured = {"jpeg", "png"}
        held = {name: "image" if how in pictured else how for name, how in zip(columns.names, columns.encodings, strict=True)}
        whole = {name for name, how in held.items() if how == "int" or how.startswith(("int", "uint")) or how == "str"}
        return (*_features(held, whole), {})
    members, damage = (tar_members if op == "webdataset" else zip_members)(shard.path, shard.size)
    if not members:
        raise ValueError(damage or "the archive is empty")
    return (*_members(members.names), {})


def _example(shard: Found) -> tuple[Features, list[str], dict[str, Any]]:
    index = index_tfrecord(shard.path, shard.size)
    if not len(index.offsets):
        raise ValueError(index.damage or "the file holds no record")
    with open(shard.path, "rb") as stream:
        stream.seek(int(index.offsets[0, 0]))
        record = stream.read(int(index.lengths[0, 0]))
    if sniff(record) is not None:
        return {"image": {"kind": "image"}}, [], {"content": "bytes"}
    return (*_features(*of_example(read_example(record))), {})


def _members(names: Iterable[str]) -> tuple[Features, list[str]]:
    stem, held, whole = None, {}, set()
    for path in names:
        folder, _, name = path.rpartition("/")
        own, dot, key = name.partition(".")
        if not dot or not own or name.startswith("."):
            continue
        stem = stem or (folder, own)
        if (folder, own) != stem:
            break
        held[key] = "image" if key.lower() in IMAGE_EXTENSIONS else key.rpartition(".")[2]
        if key.lower() in _LABEL_KEYS:
            whole.add(key)
    return _features(held, whole)


def _last(key: str) -> str:
    """The name that a key ends in: of a path all that counts in `tf.Example`, and of others its last part; less what stands for numbers."""
    name = key.lower().removesuffix("*").rstrip("-_:/.")
    return name if name in _LABEL_KEYS else re.split(r"[/.]", name)[-1]


def _features(held: dict[str, str], whole: set[str]) -> tuple[Features, list[str]]:
    """From what each key holds, and the keys that may be labels, to features."""
    features: Features = {}
    image = next((key for key, what in held.items() if what == "image"), None)
    if image is not None:
        features["image"] = {"kind": "image"} | ({"key": image} if image != "image" else {})
    label = next((key for key in held if key in whole and _last(key) in _LABEL_KEYS), None)
    if label is not None:
        features["label"] = {"kind": "label"} | ({"key": label} if label != "label" else {})
    return features, [f"{json.dumps(key)} ({what})" for key, what in held.items() if key not in (image, label)]
