"""Completes a store after its shards: writes the table of its records, its description, and the spec that reads it."""

from __future__ import annotations

import io
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.files import write_whole
from pipegen.ops.sources.listing.strings import Strings
from pipegen.ops.sources.prepared_store.layout import PAGE, RECORDS, Shard, StoreAbout, column_file, write_about
from pipegen.preparing.rest import SPEC, as_text, fitting, rest_of, same_meaning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipegen.preparing.work import Work

Array = np.ndarray[Any, Any]


def finish(work: Work, shards: Sequence[Shard], source: str) -> StoreAbout:
    """Writes everything beside the shards that were written, the description last; `source` is the name of the prepared spec."""
    columns = {**_listed(work, shards), **_stored(work, shards)}
    sums = {}
    for name, values in columns.items():
        content = io.BytesIO()
        np.save(content, values, allow_pickle=False)
        write_whole(column_file(work.folder, name), content.getvalue())
        sums[name] = zlib.crc32(content.getbuffer())
    about = StoreAbout(
        key=work.key,
        of=work.fitted.spec.hash,
        steps=steps_before(work),
        changes=work.options.in_words(),
        splits={split: sum(shard.count for shard in shards if shard.split == split) for split in work.manifest.splits},
        classes=work.described.classes,
        class_names=tuple(work.manifest.listing.class_names),
        label=work.described.label,
        pixels=work.pixels,
        columns=sums,
        rows=work.rows,
        shards=tuple(shards),
        suffix=work.format.suffix,
    )
    _write_spec(work, source)
    write_about(work.folder, about)
    return about


def steps_before(work: Work) -> str:
    """The steps before the cut, in words."""
    if work.options.keeps_files:
        return "reading"
    first = [] if any(step.op == "decode" for step in work.model.transforms[: work.cut.steps]) else ["decode"]
    encoded = any(t.encoded for t in (plan.read[name] for plan in work.fitted.plans.values() for name in work.pictured))
    steps = [*(first if encoded else []), *(step.op for step in work.model.transforms[: work.cut.steps])]
    return " → ".join(steps) or "reading"


def rest_values(work: Work) -> dict[str, Any]:
    """Makes the spec of the remaining steps, as plain values; raises `SpecError` if it has errors."""
    return fitting(rest_of(work.model, work.fitted.spec.hash, work.cut, work.options, work.pixels))


def _write_spec(work: Work, source: str) -> None:
    from pipegen.phases.compilation import load
    from pipegen.spec.allowed import CHECKED

    values = rest_values(work)
    changed = work.options.in_words()
    about = (
        f"Written by `pipegen prepare` from {source}: {steps_before(work)} is done.",
        *(f"Unlike there, {said}." for said in changed),
        *(() if changed else ("Splits, ids, draws and pixels are the same, bit for bit.",)),
    )
    file = work.folder / SPEC
    write_whole(file, as_text(values, about))
    same_meaning(work.model, load(file, allowed=CHECKED).model, work.done_steps)


def _listed(work: Work, shards: Sequence[Shard]) -> dict[str, Array]:
    """Makes the columns of the listing: ids and names of the records."""
    manifest = work.manifest
    ids, keys = [], []
    for split in manifest.splits:
        left_out = [number for shard in shards if shard.split == split for number in shard.left_out]
        kept: Array = np.delete(np.arange(manifest.num_examples(split)), left_out)
        ids.append(np.asarray(manifest.ids(split), np.uint64)[kept])
        keys.append(Strings.hold(list(manifest.keys(split))).take(kept))
    names = Strings.join(keys)
    return {"@ids": np.concatenate(ids), "@keys": np.asarray(names.blob), "@bounds": np.asarray(names.bounds)}


def _stored(work: Work, shards: Sequence[Shard]) -> dict[str, Array]:
    """Joins the columns of the shards, and counts the bytes of each record."""
    parts: dict[str, list[Array]] = {}
    ends: Counter[str] = Counter()
    total = []
    for number, shard in enumerate(shards):
        if not shard.count:
            continue
        sizes: Array = np.full(shard.count, sum(own.row for own in work.pixels.values()), np.int64)
        with np.load(work.columns_file(number), allow_pickle=False) as stored:
            for name in stored.files:
                values = stored[name]
                if name.startswith("@place."):
                    sizes += values[:, 1]
                    held = RECORDS if work.format.suffix else name.partition(".")[2]  # the file of whole records, or of the feature
                    values = values.astype(np.int64) + np.array([[ends[held], 0]])
                parts.setdefault(name, []).append(values)
        for held, size in shard.bytes.items():
            ends[held] += -(-size // PAGE) * PAGE
        total.append(sizes)
    return {name: np.concatenate(values) for name, values in parts.items()} | {"@bytes": np.concatenate(total)}
