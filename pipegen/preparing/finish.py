"""Puts a store together once its shards are there: the table of its records, what it says of itself, and the spec that reads it."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.ops.kinds.registry import kind_of, several_labels
from pipegen.ops.sources.listing.strings import Strings
from pipegen.ops.sources.prepared_store.layout import PAGE, Shard, StoreAbout, column_file, put, shard_file, write_about
from pipegen.preparing.rest import SPEC, as_text, rest_of, same_meaning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipegen.preparing.work import Work

Array = np.ndarray[Any, Any]


def finish(work: Work, shards: Sequence[Shard], source: str) -> StoreAbout:
    """Writes everything beside the shards; afterwards the store is there.

    Args:
        work: The work, which is done.
        shards: What was written.
        source: What the spec that was prepared is called.
    """
    columns = {**_listed(work), **_stored(work, shards)}
    sums = {}
    for name, values in columns.items():
        content = io.BytesIO()
        np.save(content, values, allow_pickle=False)
        put(column_file(work.folder, name), content.getvalue())
        sums[name] = zlib.crc32(content.getbuffer())
    label, classes = _classes(work)
    about = StoreAbout(
        key=work.key,
        of=work.fitted.spec.hash,
        steps=steps_before(work),
        changes=work.options.in_words(),
        splits={split: work.manifest.num_examples(split) for split in work.manifest.splits},
        classes=classes,
        label=label,
        pixels=work.pixels,
        columns=sums,
        rows=work.rows,
        shards=tuple(shards),
    )
    _write_spec(work, source)
    write_about(work.folder, about)
    return about


def steps_before(work: Work) -> str:
    """The steps whose work is done, in words."""
    first = [] if any(step.op == "decode" for step in work.model.transforms[: work.cut.steps]) else ["decode"]
    encoded = any(t.encoded for t in (plan.read[name] for plan in work.fitted.plans.values() for name in work.pictured))
    steps = [*(first if encoded else []), *(step.op for step in work.model.transforms[: work.cut.steps])]
    return " → ".join(steps) or "reading"


def _write_spec(work: Work, source: str) -> None:
    from pipegen.phases.compilation import load

    values = rest_of(work.model, work.fitted.spec.hash, work.cut, work.options, work.pixels)
    changed = work.options.in_words()
    about = (
        f"Written by `pipegen prepare` from {source}: {steps_before(work)} is done.",
        *(f"Otherwise than there, {said}." for said in changed),
        *(() if changed else ("The same splits, ids, draws and pixels as there, bit for bit.",)),
    )
    file = work.folder / SPEC
    put(file, as_text(values, about).encode())
    same_meaning(work.model, load(file).model, work.cut)


def _listed(work: Work) -> dict[str, Array]:
    """Lists what is known of the records without their pixels: ids, and names."""
    manifest = work.manifest
    keys = Strings.join([Strings.hold(list(manifest.keys(split))) for split in manifest.splits])
    return {
        "@ids": np.concatenate([np.asarray(manifest.ids(split), np.uint64) for split in manifest.splits]),
        "@keys": np.asarray(keys.blob),
        "@bounds": np.asarray(keys.bounds),
    }


def _stored(work: Work, shards: Sequence[Shard]) -> dict[str, Array]:
    """Joins what the shards have beside pixels, and the bytes of each record."""
    parts: dict[str, list[Array]] = {}
    ends = dict.fromkeys(work.pictured, 0)
    total = []
    for number, shard in enumerate(shards):
        sizes: Array = np.full(shard.count, sum(own.row for own in work.pixels.values()), np.int64)
        with np.load(work.columns_file(number), allow_pickle=False) as stored:
            for name in stored.files:
                values = stored[name]
                if name.startswith("@place."):
                    feature = name.partition(".")[2]
                    sizes += values[:, 1]
                    values = values.astype(np.int64) + np.array([[ends[feature], 0]])
                parts.setdefault(name, []).append(values)
        for feature, size in shard.bytes.items():
            ends[feature] += -(-size // PAGE) * PAGE
        total.append(sizes)
    return {name: np.concatenate(values) for name, values in parts.items()} | {"@bytes": np.concatenate(total)}


def _classes(work: Work) -> tuple[str | None, dict[str, tuple[str, ...]]]:
    """The label that gives the data its classes, and the names of the classes of each label."""
    listing = work.manifest.listing
    labels = [name for name, t in work.cut.type.items() if kind_of(t).labels]
    single = [name for name in labels if not several_labels(work.cut.type[name])]
    label = "label" if "label" in single else next(iter(single), None)
    classes = {name: tuple(names) for name, names in listing.column_classes.items() if name in labels}
    if label is not None and listing.class_names:
        classes[label] = tuple(listing.class_names)
    return label, classes


def checksum(file: Path) -> int:
    """The CRC-32 of a file, a block at a time."""
    found = 0
    with open(file, "rb") as stream:
        while block := stream.read(1 << 22):
            found = zlib.crc32(block, found)
    return found


def damaged_files(root: Path, about: StoreAbout) -> list[Path]:
    """The files of a store whose bytes are not those that were written."""
    wanted: dict[Path, int] = {column_file(root, name): found for name, found in about.columns.items()}
    for number, shard in enumerate(about.shards):
        for name, found in shard.sums.items():
            wanted[shard_file(root, name, about.pixels[name].form, number)] = found
    return [file for file, found in wanted.items() if not file.is_file() or checksum(file) != found]
