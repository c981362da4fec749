"""From a mix and its data to a manifest: lists each part, unites their classes, and assigns the records of each to its splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.data.exclude import below, excluded_keys
from pipegen.data.mix.counts import part_seed
from pipegen.data.mix.manifest import MixedManifest
from pipegen.data.one_source import Collected, chosen, collect_part, collected, list_part
from pipegen.data.sampling.choice import epochs_of
from pipegen.diagnostics.catalog import make
from pipegen.diagnostics.diagnostic import Diagnostics
from pipegen.errors import OpError
from pipegen.kept import INDEXES, kept_folder
from pipegen.ops.kinds.packed import counts_classes
from pipegen.ops.sources.listing.base import Files, Listing
from pipegen.ops.sources.listing.shards import Shards
from pipegen.ops.sources.listing.strings import Strings
from pipegen.ops.sources.parts.adapted import filled, united
from pipegen.spec.joined import PartSource, joined, part_path, relocated

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipegen.data.manifest import Manifest
    from pipegen.diagnostics.diagnostic import Diagnostic
    from pipegen.spec.locate import Locate
    from pipegen.spec.models import PipelineSpec


def collect_mixed(
    spec: PipelineSpec,
    diagnostics: Diagnostics,
    locate: Locate,
    base: Path,
    progress: Callable[[int], None] | None,
    data: Mapping[str, object] | None,
    *,
    late_files: bool,
) -> Collected:
    """Lists the data of every part, unites their classes, and assigns the records of each to its splits; see `collect`.

    Findings come to the `diagnostics` that are there.
    """
    listings: dict[str, Listing] = {}
    seen = 0
    for name in spec.source.mixed():
        own, at = joined(spec, name), relocated(locate, spec, name)
        own.source.keep_index_in(kept_folder(spec.runtime, INDEXES))
        listing, findings = list_part(own, at, base, _after(seen, progress), _data_of(name, own, data))
        diagnostics.extend(findings)
        if listing is not None:
            listings[name] = listing
            seen += len(listing.keys)
    if len(listings) < len(spec.source.mixed()):
        return Collected(None, diagnostics)
    excluded, unlisted = excluded_keys(spec, listings, base, locate)
    diagnostics.extend(unlisted)
    missing: list[str] = []
    lost: list[Diagnostic] = []
    for name in [*listings]:
        own, at = joined(spec, name), relocated(locate, spec, name)
        left, keys, found = chosen(own, listings[name], _of_part(name, excluded), at, late_files=late_files)
        lost += found
        missing += [below(name, key) for key in keys]
        if left is None:
            del listings[name]
        else:
            listings[name] = left
    diagnostics.extend(lost)
    if unlisted or len(listings) < len(spec.source.mixed()):
        return Collected(None, diagnostics, missing=tuple(missing), lost=tuple(lost), excluded=tuple(sorted(excluded)))
    parts: dict[str, Manifest] = {}
    gone = frozenset(below(name, key) for name, listing in listings.items() for key in listing.excluded)
    copies, wrong = excluded_keys(spec, listings, base, locate, "splits", gone)
    diagnostics.extend(wrong)
    for name, listing in _united(spec, listings, locate, diagnostics).items():
        own, at = joined(spec, name), relocated(locate, spec, name)
        manifest, findings = collect_part(_of_single_examples(own), listing, at, base, name, _of_part(name, copies))
        diagnostics.extend(findings)
        if manifest is not None:
            parts[name] = manifest
    if len(parts) < len(listings):
        return Collected(None, diagnostics, missing=tuple(missing), lost=tuple(lost), excluded=tuple(sorted(excluded)))
    made = mixed_manifest(spec, parts)
    diagnostics.extend(_judged(spec, made, locate))
    return collected(made, diagnostics, missing, lost)


def _of_part(name: str, keys: frozenset[str]) -> frozenset[str]:
    """The keys of one part, as it has them itself."""
    return frozenset(key.removeprefix(f"{name}/") for key in keys if key.startswith(f"{name}/"))


def _of_single_examples(spec: PipelineSpec) -> PipelineSpec:
    """The spec of a part, which need not fill a batch alone."""
    return spec.model_copy(update={"batch": spec.batch.model_copy(update={"size": 1, "remainder": None})})


def mixed_manifest(spec: PipelineSpec, parts: Mapping[str, Manifest]) -> MixedManifest:
    """The manifest of a mix from those of its parts."""
    source: Any = spec.source
    listing = _listing({name: part.listing for name, part in parts.items()})
    firsts = np.cumsum([0, *(part.total for part in parts.values())])
    members: dict[str, Any] = {}
    for split in spec.split_names():
        own = [
            np.asarray(part.numbers(split), np.int64) + first
            for part, first in zip(parts.values(), firsts, strict=False)
            if split in part.members
        ]
        members[split] = np.concatenate(own) if own else np.zeros(0, np.int64)
    excluded = tuple(f"{name}/{key}" for name, part in parts.items() for key in part.excluded)
    left_out = tuple(f"{name}/{key}" for name, part in parts.items() for key in part.left_out)
    return MixedManifest(listing, members, "mix", excluded, left_out=left_out, parts=parts, source=source, sampled=_sampled(spec, parts))


def _sampled(spec: PipelineSpec, parts: Mapping[str, Manifest]) -> dict[str, Any]:
    """Finds which examples a pass through each sampled part has; each part is gone through in an order of its own."""
    seeded = ((name, joined(spec, name).model_copy(update={"seed": part_seed(spec.seed, name)})) for name in parts)
    return {name: epochs_of(own, parts[name]) for name, own in seeded if own.samples and "train" in parts[name].members}


def _after(seen: int, progress: Callable[[int], None] | None) -> Callable[[int], None] | None:
    return None if progress is None else lambda n: progress(seen + n)


def _data_of(name: str, spec: PipelineSpec, data: Mapping[str, object] | None) -> Any:
    """Takes the part of `data` that one part of the mix reads."""
    if data is None or not spec.source.needs_data():
        return None
    return data.get(name) if isinstance(data, Mapping) else None


def _united(spec: PipelineSpec, listings: Mapping[str, Listing], locate: Locate, diagnostics: Diagnostics) -> dict[str, Listing]:
    """The listings with labels that count the classes of all parts, in the order in which these have them, and what is filled."""
    classes = tuple(dict.fromkeys(name for listing in listings.values() for name in listing.class_names))
    columns: dict[str, tuple[str, ...]] = {}
    for listing in listings.values():
        for name, own in listing.column_classes.items():
            columns[name] = tuple(dict.fromkeys((*columns.get(name, ()), *own)))
    found = {}
    for name, listing in listings.items():
        source = joined(spec, name).source
        if any(counts_classes(listing, column) for column in listing.columns) and listing.column_classes != columns:
            message = f"the part `{name}` has other classes than the mix, by which the pixels of its mask count"
            diagnostics.add(make("PG462", message, locate(part_path(name)), help="name them in each part: `classes: […]`"))
            continue
        made = united(listing, classes, columns, source.class_feature())
        if isinstance(source, PartSource):
            try:
                made = filled(made, source.adapting, columns)
            except OpError as error:
                at = (*part_path(name), *(error.field or "").split("."))
                diagnostics.add(make(error.code, error.message, locate(at), help=error.help or ()))
        found[name] = made
    return _as_long(found)


def _as_long(listings: Mapping[str, Listing]) -> dict[str, Listing]:
    """The listings with as many places for the items of a ragged feature in each as the part needs that has the most."""
    types = [listing.type for listing in listings.values() if listing.type is not None]
    most: dict[str, int] = {}
    for name, t in (item for type_ in types for item in type_.items()):
        if t.most is not None:
            most[name] = max(most.get(name, 0), t.most)
    found = dict(listings)
    for part, listing in listings.items() if most else ():
        if listing.type is not None:
            longer = {name: t.with_(most=most[name]) for name, t in listing.type.items() if name in most}
            found[part] = replace(listing, type=listing.type.replace(**longer))
    return found


def _listing(parts: Mapping[str, Listing]) -> Listing:
    """Joins the listings of the parts into one: its keys are those of the parts below their names."""
    every = tuple(parts.values())
    first = every[0]
    keys = Strings.join([listing.keys.below(f"{name}/") for name, listing in parts.items()])
    labels = [listing.labels for listing in every]
    sharded = any(listing.shards is not None for listing in every)
    known = [own for own in labels if own is not None]
    beside = {
        name: [listing.beside[name] for listing in every] for name in first.beside if all(name in listing.beside for listing in every)
    }
    return Listing(
        first.root,
        keys,
        np.concatenate(known) if len(known) == len(labels) and not sharded else None,
        first.class_names,
        np.concatenate([np.asarray(listing.sizes, np.int64) for listing in every]),
        paths=Strings.join([_paths(name, listing) for name, listing in parts.items()]),
        readers={name: listing.reader() for name, listing in parts.items()},
        in_table=any(listing.in_table for listing in every),
        column_classes=first.column_classes,
        beside={
            name: Files(Strings.join([f.keys for f in own]), Strings.join([f.paths for f in own]), np.concatenate([f.sizes for f in own]))
            for name, own in beside.items()
        },
        shards=_shards(every) if sharded else None,
    )


def _paths(name: str, listing: Listing) -> Strings:
    return listing.keys.below(f"{name}/") if listing.numbered else listing.files()


def _shards(every: Sequence[Listing]) -> Shards:
    """The files of all parts as shards; one that holds a single record has one row."""
    made = [
        listing.shards
        if listing.shards is not None
        else Shards(np.ones(len(listing.keys), np.int64), np.arange(len(listing.keys)), Strings.hold([""] * len(listing.keys)))
        for listing in every
    ]
    rows, numbers = np.concatenate([s.rows for s in made]), np.concatenate([s.numbers for s in made])
    return Shards(rows, numbers, Strings.join([s.digests for s in made]))


def _judged(spec: PipelineSpec, made: MixedManifest, locate: Locate) -> Diagnostics:
    """Finds splits of the mix with an epoch of no or too many examples, or that fill no batch."""
    found, size = Diagnostics(), spec.batch.size
    for split in made.members:
        try:
            examples = made.epoch_examples(split)
        except OpError as error:
            found.add(make(error.code, error.message, locate(("source", "mix", error.field or "epoch")), help=error.help or ()))
            continue
        if examples < size and spec.batch.remainder_for(split) == "drop":
            message = f"an epoch of `{split}` has {examples} examples of all parts, fewer than one batch of {size}: no step is left"
            keep = f"or keep the smaller batch: `remainder: {{{split}: keep}}`"
            labels = [locate(("batch", "size"))]
            labels += [locate(("source", "mix", "epoch"), f"{examples} examples")] if split == "train" else []
            found.add(make("PG407", message, *labels, help=(f"lower `batch.size` to {examples} or less", keep)))
    return found
