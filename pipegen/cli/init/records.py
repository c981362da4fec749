"""A first spec for files of records: it looks into the first record for images and labels."""

from __future__ import annotations

import gzip
import json
import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pipegen.cli.failures import CannotRun
from pipegen.cli.init.archives import class_folders, first_archive
from pipegen.cli.init.choosing import LABEL_KEYS, Values, image_among, label_among, last_of
from pipegen.cli.init.samples import sample_of_records
from pipegen.cli.init.spec import RESCALE, about_sample, batch_for, beside, parts_of, size_for, spec_text
from pipegen.cli.init.stores import IMAGE, LOOKS, of_example
from pipegen.errors import OpError
from pipegen.mounts import Opened
from pipegen.ops.registry import sources
from pipegen.ops.sources.folders.sniff import IMAGE_EXTENSIONS, sniff
from pipegen.ops.sources.listing.shards import shards_of
from pipegen.ops.sources.mds import read_columns
from pipegen.ops.sources.records.inflated import index_inflated
from pipegen.ops.sources.records.paths import find_shards
from pipegen.ops.sources.records.tar_headers import tar_members
from pipegen.ops.sources.records.tf_example import read_example
from pipegen.ops.sources.records.zip_directory import zip_members
from pipegen.ops.sources.tfrecord import index_tfrecord
from pipegen.spec.scalars import flow_scalar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipegen.cli.init.shards import Shards
    from pipegen.cli.init.stores import Held
    from pipegen.ops.sources.listing.base import Listing
    from pipegen.ops.sources.records.paths import Found
    from pipegen.ops.sources.records.source import RecordSource

_OF_SPLIT = re.compile(r"(train|validation|val|test)-\d+-of-\d+\b")
_SPLITS = {"val": "validation"}
_TEXTS = ("cls", "class", "label", "id", "index", "txt", "text")
"""What members of archives end in that may be labels."""
_MOST_TRIED = 8
"""Keys of which every value is read, to find labels that are not called so."""
_SHOWN = 12

Features = dict[str, dict[str, Any]]


def first_records(asked: Shards, spec_folder: str) -> tuple[str, str]:
    """Writes the spec of files of records, with paths relative to the spec's folder.

    Returns:
        The text of the spec, and what was found in a few words.

    Raises:
        CannotRun: When they cannot be read, or hold no images.
    """
    path, op = asked.path, asked.op
    try:
        _, shards = find_shards(os.getcwd(), os.path.abspath(path), cast("type[RecordSource]", sources()[op]).suffixes)
        only = shards[0].path if len(shards) == 1 and op in ("zip", "webdataset") else None
        classes = class_folders(only) if only is not None else None
        if only is not None and classes is not None:
            return first_archive(classes, only, spec_folder)
        shard = next((shard for shard in shards if shard.size), shards[0])
        held, whole, own = _look(op, shard, asked.options)
        features, remarks = _chosen(op, shard, held, whole, own)
        read = {feature.get("key", name) for name, feature in features.items()}
        others = [f"{json.dumps(key)} ({what})" for key, what in held.items() if key not in read and (what != IMAGE or not features)]
        if not features:
            raise CannotRun(f"{path}: the first record holds no image, but {', '.join(others) or 'nothing'}")
        arguments = {"path": os.path.abspath(path), "features": features, **own}
        listing = sources()[op].model_validate(arguments).list(Path.cwd())
    except (OpError, OSError, ValueError) as error:
        raise CannotRun(f"{path}: {error.message if isinstance(error, OpError) else error}") from None
    count = shards_of(listing).total
    if "label" in features:
        features["label"] |= _classes(listing)
    summary = f"{count:,} records in {len(shards):,} {'file' if len(shards) == 1 else 'files'}"
    sample = sample_of_records(listing, "image")
    comments = about_sample(sample) + remarks + ([f"The records also have {', '.join(others[:_SHOWN])}"] if others else [])
    about = [*(f"{key}: {value}" for key, value in own.items()), "features:"]
    about += [f"  {name}: {_flow(feature)}" for name, feature in features.items()]
    splits = _splits(shards)
    if splits:
        lines = ["source:", "  by_split:"]
        for split, pattern in splits.items():
            where = beside(asked.beside(pattern), spec_folder)
            lines += [f"    {split}:", f"      {op}:", f"        path: {where}", *(f"        {line}" for line in about)]
    else:
        written = [f"path: {beside(path, spec_folder)}", *about]
        lines = ["source:", f"  {op}:", *(f"    {line}" for line in written), f"splits: {{{parts_of(op, count)}}}"]
    lines += ["transforms:", f"  - resize: {{size: {size_for(sample)}}}", RESCALE, f"batch: {{size: {batch_for(count, 32)}}}"]
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


def _look(op: str, shard: Found, options: dict[str, Any]) -> Held:
    """Reads what the keys of the first record hold; `options` are arguments of the source."""
    if op in LOOKS:
        return LOOKS[op](shard.path)
    if op == "tfrecord":
        return _example(shard, options)
    if op == "mds":
        with Opened(shard.path) as stream:
            columns, _ = read_columns(stream, shard.size)
        pictured = {"jpeg", "png"}
        held = {name: IMAGE if how in pictured else how for name, how in zip(columns.names, columns.encodings, strict=True)}
        return held, {name for name, how in held.items() if how == "int" or how.startswith(("int", "uint")) or how == "str"}, {}
    members, damage = (tar_members if op == "webdataset" else zip_members)(shard.path, shard.size)
    if not members:
        raise ValueError(damage or "the archive is empty")
    return (*_members(members.names), {})


def _example(shard: Found, options: dict[str, Any]) -> Held:
    index = (index_inflated if options else partial(index_tfrecord, size=shard.size))(shard.path)
    if not len(index.offsets):
        raise ValueError(index.damage or "the file holds no record")
    with gzip.open(shard.path) if options else open(shard.path, "rb") as stream:
        stream.seek(int(index.offsets[0, 0]))
        record = stream.read(int(index.lengths[0, 0]))
    if sniff(record) is not None:
        return {"image": IMAGE}, set(), {**options, "content": "bytes"}
    return (*of_example(read_example(record)), options)


def _members(names: Iterable[str]) -> tuple[dict[str, str], set[str]]:
    stem, held, whole = None, {}, set()
    for path in names:
        folder, _, name = path.rpartition("/")
        own, dot, key = name.partition(".")
        if not dot or not own or name.startswith("."):
            continue
        stem = stem or (folder, own)
        if (folder, own) != stem:
            break
        held[key] = IMAGE if key.lower() in IMAGE_EXTENSIONS else key.rpartition(".")[2]
        if key.lower() in LABEL_KEYS or held[key].lower() in _TEXTS:
            whole.add(key)
    return held, whole


def _chosen(op: str, shard: Found, held: Mapping[str, str], whole: set[str], own: Mapping[str, Any]) -> tuple[Features, list[str]]:
    """From what each key holds, and the keys that may be labels, to features, and comments on the choice."""
    images = [key for key, what in held.items() if what == IMAGE]
    images = [key for key in images if key.rpartition(".")[0] not in images]  # of a struct that is an image, not its bytes, too
    if not images:
        return {}, []
    image, remarks = image_among(images)
    features: Features = {"image": {"kind": "image"} | ({"key": image} if image != "image" else {})}
    likely = [key for key in held if key in whole]
    usual = [key for key in likely if last_of(key) in LABEL_KEYS]
    seen = {} if len(usual) == 1 else dict(_counted(op, shard, features, key, own) for key in (usual or likely)[:_MOST_TRIED])
    label, more = label_among(seen, usual)
    if label is not None:
        features["label"] = {"kind": "label"} | ({"key": label} if label != "label" else {})
    return features, [*remarks, *more]


def _counted(op: str, shard: Found, features: Features, key: str, own: Mapping[str, Any]) -> tuple[str, Values]:
    """Counts the values of a key in a shard, read as labels."""
    import numpy as np

    arguments = {"path": shard.path, "features": features | {"label": {"kind": "label", "key": key}}, **own}
    try:
        listing = sources()[op].model_validate(arguments).list(Path.cwd())
        labels = listing.reader().labels(shards_of(listing).numbers)
    except (OpError, OSError, ValueError):
        return key, Values(0, 0, named=False)
    named = not all(name.isdigit() for name in listing.class_names)
    return key, Values(0 if labels is None else len(np.unique(labels)), shards_of(listing).total, named)
