"""Joins the listings of several splits into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain
from typing import Any

from pipegen.lazy import np
from pipegen.ops.fields.columns import Ragged, classes_used, joined, with_classes
from pipegen.ops.fields.notes import Note
from pipegen.ops.fields.strings import Ints, Strings
from pipegen.ops.kinds.base import Indices, kind_of
from pipegen.ops.sources.listing.base import Listing, Location, Parts, Shards
from pipegen.ops.sources.parts.adapted import counts_classes, item_classes
from pipegen.types import ElementType, Interval


def merge(listings: Mapping[str, Listing], reference: str, *, root: str | None = None, notes: Sequence[Note] = ()) -> Listing:
    """Joins the listings of several splits.

    A class that the reference split lacks is a `PG408` note, and its records are left out.

    Args:
        listings: The listing of each split; their notes are kept.
        reference: The split whose classes count, else the first.
        root: The folder that all keys are relative to already; by default keys become `SPLIT/key`.
        notes: More notes, put first.
    """
    if not listings:
        return Listing(root or "", Location.below("", (), ()), tuple(notes))
    first = listings.get(reference) or next(iter(listings.values()))
    listings = {split: replace(listing, label=first.label) for split, listing in listings.items()}
    all_notes = list(notes)
    chosen: dict[str, Listing] = {}
    for split, listing in listings.items():
        all_notes += listing.notes
        if reference in listings:
            all_notes += _unknown(split, listing, reference, first.class_names, "parts." if root is not None else "")
        columns, wrong = _columns(split, listing, first, reference)
        all_notes += wrong
        taken = replace(listing, columns=columns)
        known = None if taken.labels is None or first.label not in listing.classes else taken.labels >= 0
        kept = taken if known is None or known.all() else taken.take(np.flatnonzero(known))
        keys = kept.keys if root is not None else kept.keys.below(f"{split}/")
        chosen[split] = replace(kept, location=replace(kept.location, keys=keys))
    every = tuple(chosen.values())
    starts = np.cumsum([0, *(len(listing.keys) for listing in every)]).tolist()
    cells = [listing.cells for listing in every if listing.cells is not None]
    all_notes += _apart(listings, first, reference)
    apart = len({listing.shards is None for listing in every}) > 1
    types = [listing.type for listing in every if listing.type is not None]
    return Listing(
        root=root if root is not None else first.root,
        location=Location.join([listing.location for listing in every]),
        notes=tuple(all_notes),
        parts=Parts(tuple(chosen), np.repeat(np.arange(len(every), dtype=np.int16), [len(listing.keys) for listing in every])),
        readers={split: listing.reader() for split, listing in listings.items()},
        in_table=any(listing.in_table for listing in listings.values()),
        columns={} if apart else _joined([listing.columns for listing in every if listing.columns]),
        beside={name: Location.join([listing.location_of(name) for listing in every]) for name in {**every[0].beside}},
        cells=(lambda *named: tuple(chain.from_iterable([own(*named) for own in cells]))) if len(cells) == len(every) else None,
        classes=first.classes,
        label=first.label,
        type=None if first.type is None else _common_type(types, first.type),
        shards=_all_shards(every),
        sides=None if apart else _some([own.sides for own in every], [np.full((len(own.keys), 2), np.nan) for own in every]),
        by_split={split: _alone(split, own, first) for split, own in chosen.items()} if apart else {},
        missing=tuple(
            group.within(split, start, rooted=root is not None)
            for (split, listing), start in zip(chosen.items(), starts, strict=False)
            for group in listing.missing
        ),
    )


def _some(columns: Sequence[Any], otherwise: Sequence[Any]) -> Any:
    """Joins a column that some parts may lack, with other values for these; `None` if all do."""
    if all(column is None for column in columns):
        return None
    return np.concatenate([other if own is None else own for own, other in zip(columns, otherwise, strict=True)])


def _columns(split: str, listing: Listing, first: Listing, reference: str) -> tuple[dict[str, Any], list[Note]]:
    """Renumbers a split's labels by the reference, with a `PG408` note for each class that it lacks; -1 for such classes of the label that
    gives the data its classes, see `_unknown`."""
    values, notes = dict(listing.columns), []
    for name, own in listing.classes.items():
        if name not in values:
            continue
        names = first.classes.get(name, own)
        lacking = classes_used(values[name], own) - set(names) if values[name] is not listing.labels else ()
        if lacking:
            message = f"`{split}` has the class {min(lacking)!r} in `{name}`, which `{reference}` lacks"
            notes.append(Note("PG408", message, f"the classes of `{reference}`: {', '.join(names)}", split, "error"))
        else:
            values[name] = with_classes(values[name], own, names)
    for name in values.keys() - listing.classes.keys():
        if counts_classes(listing, name) and item_classes(listing) != item_classes(first):
            message = f"`{split}` and `{reference}` have different classes, which number the pixels of `{name}`"
            notes.append(Note("PG408", message, "name them in both: `classes: […]`", split, "error"))
        each = listing.columns[name], first.columns.get(name, listing.columns[name])
        shape, due = (own.shape[2 if isinstance(own, Ragged) else 1 :] for own in each)
        if shape != due and listing.location.kind != "row":
            message = f"`{split}`: `{name}` has the shape {shape}, but {due} in `{reference}`"
            notes.append(Note("PG210", message, field=split, severity="error"))
        elif listing.type and first.type and name in first.type and kind_of(first.type[name]).guides("points"):
            here, there = (kind_of(own[name]).arguments_of(own[name]) for own in (listing.type, first.type))
            if here != there:
                message = f"`{split}`: `{name}` has other names or mirror pairs than in `{reference}`"
                notes.append(Note("PG210", message, "give both the same `names` and `mirror_pairs`", split, "error"))
    return values, notes


def _common_type(parts: Sequence[ElementType], reference: ElementType) -> ElementType:
    """Joins the types of several splits: with the values that occur in any, and places for the items of each."""
    found = []
    for name, x in reference.items():
        own = [part[name] for part in parts if name in part]
        known = [t.interval for t in own if t.interval is not None]
        most = max(t.most or 0 for t in own) if x.most is not None else None
        found.append((name, x.with_(interval=reduce(Interval.union, known) if len(known) == len(own) else None, most=most)))
    return ElementType(tuple(found))


def _mismatch(reference: ElementType, other: ElementType) -> str | None:
    """Describes how rows of another split differ from the reference; a model takes one shape and one dtype."""
    for name, y in other.items():
        x = reference[name]
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            return f"`{name}` is {y.with_(interval=None)} here, but {x.with_(interval=None)} there"
        if kind_of(x).has(Indices) and (x.classes, x.ignore) != (y.classes, y.ignore):
            return f"`{name}` has different `classes` or `ignore` here and there"
    return None


def _all_shards(parts: Sequence[Listing]) -> Shards | None:
    """Joins the shards of several splits; each split's reader keeps its own numbers, and a file of one record has -1."""
    if all(part.shards is None for part in parts):
        return None
    held = [_single(part) if part.shards is None else part.shards for part in parts]
    rows, numbers = (np.concatenate([getattr(shards, name) for shards in held]) for name in ("rows", "numbers"))
    blocks = _some([shards.block_rows for shards in held], [shards.rows for shards in held])
    offsets = _some([shards.offsets for shards in held], [np.zeros_like(shards.rows) for shards in held])
    kept = _some([shards.kept for shards in held], [np.ones(shards.total, bool) for shards in held])
    return Shards(rows, numbers, Strings.join([shards.digests for shards in held]), blocks, offsets, kept)


def _alone(split: str, listing: Listing, first: Listing) -> Listing:
    """The listing of a split by itself, with the classes of the reference; all together have the notes, and what is missing."""
    parts = Parts((split,), np.zeros(len(listing.keys), np.int16))
    return replace(listing, parts=parts, classes=first.classes, label=first.label, notes=(), missing=())


def _single(listing: Listing) -> Shards:
    ones: Ints = np.ones(len(listing.keys), np.int64)
    return Shards(ones, -ones, Strings.hold([""] * len(ones)))


def _joined(columns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Joins the columns of several splits; returns none if a note reports a mismatch."""
    try:
        return {name: joined([part[name] for part in columns]) for name in (columns[0] if columns else {})}
    except (KeyError, ValueError):
        return {}


def _apart(listings: Mapping[str, Listing], first: Listing, reference: str) -> list[Note]:
    """Notes splits that cannot be read like the reference: other rows, other storage, other classes."""
    notes = []
    for split, listing in listings.items():
        rows = first.location.kind == listing.location.kind == "row"
        what = _mismatch(first.type, listing.type) if rows and first.type and listing.type else None
        if what is not None:
            notes.append(Note("PG210", f"`{split}`: {what}", field=split, severity="error"))
        else:
            read = {name: first.classes.get(name, own) for name, own in listing.classes.items() if name not in listing.columns}
            for name in (name for name, names in read.items() if names != listing.classes[name]):  # read with their records
                label = "" if name == listing.label else f" of `{name}`"
                message = f"`{split}` and `{reference}` have different classes{label}, or in another order"
                notes.append(Note("PG408", message, f"the classes of `{reference}`: {', '.join(read[name])}", split, "error"))
    return notes


def _unknown(split: str, listing: Listing, reference: str, names: tuple[str, ...], prefix: str) -> list[Note]:
    """Notes, with `PG408`, each class of a split that the reference lacks."""
    found = []
    for i, name in enumerate(listing.class_names):
        own = (listing.labels == i).nonzero()[0][:1] if listing.labels is not None and name not in names else np.zeros(0, np.int64)
        for example in listing.location.paths.take(own):
            row = listing.location.kind == "row"
            where = f"in row {example}" if row else f"such as {example}"
            if not (row or listing.in_table):
                where = f"in {example[: example.index(f'/{name}/', len(listing.root)) + len(name) + 1]!r}"
            message = f"`{split}` has the class {name!r}, {where}, which `{reference}` lacks"
            found.append(Note("PG408", message, f"the classes of `{reference}`: {', '.join(names)}", prefix + split, "error"))
    return found
