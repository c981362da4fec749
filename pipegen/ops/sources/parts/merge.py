"""Joins the listings of several splits into one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from pipegen.lazy import np
from pipegen.ops.kinds.ragged import Ragged, counts_classes, joined
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.array_rows.rows import common_type, mismatch
from pipegen.ops.sources.features.columns import Labels, classes_used, with_classes
from pipegen.ops.sources.listing.base import Files, Listing, Note, Parts
from pipegen.ops.sources.listing.shards import Shards
from pipegen.ops.sources.listing.strings import Strings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipegen.ops.sources.listing.base import Cells
    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.types import ElementType


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
        return Listing(root or "", Strings.hold(()), None, (), np.zeros(0), tuple(notes))
    first = listings.get(reference) or next(iter(listings.values()))
    names = first.class_names
    index = {name: i for i, name in enumerate(names)}
    all_notes = list(notes)
    columns: list[dict[str, Any]] = []
    chosen: dict[str, Listing] = {}
    for split, listing in listings.items():
        all_notes += listing.notes
        if reference in listings:
            all_notes += _unknown(split, listing, reference, names, "parts." if root is not None else "")
        taken, kept = listing, np.arange(len(listing.keys))
        if listing.labels is not None:
            renumber: Ints = np.array([index.get(name, -1) for name in listing.class_names], np.int32)
            taken = replace(listing, labels=renumber[listing.labels])
            kept = np.flatnonzero(renumber[listing.labels] >= 0)
        chosen[split] = taken if len(kept) == len(listing.keys) else taken.take(kept)
        if listing.columns:
            own, wrong = _columns(split, listing, first, reference)
            columns.append({name: values[kept] for name, values in own.items()} if len(kept) < len(listing.keys) else own)
            all_notes += wrong
    every = tuple(chosen.values())
    starts = np.cumsum([0, *(len(listing.keys) for listing in every)]).tolist()
    cells = [listing.cells for listing in every if listing.cells is not None]
    all_notes += _apart(listings, first, reference)
    apart = root is None or any(listing.paths is not None for listing in every)
    types = [listing.type for listing in listings.values() if listing.type is not None and listing.numbered]
    return Listing(
        root=root if root is not None else first.root,
        keys=Strings.join([listing.keys if root is not None else listing.keys.below(f"{split}/") for split, listing in chosen.items()]),
        labels=_all([listing.labels for listing in every]) if first.labels is not None else None,
        class_names=names,
        sizes=_all([listing.sizes for listing in every]),
        notes=tuple(all_notes),
        parts=Parts(tuple(chosen), np.repeat(np.arange(len(every), dtype=np.int16), [len(listing.keys) for listing in every])),
        paths=Strings.join([listing.files() for listing in every]) if apart else None,
        readers={split: listing.reader() for split, listing in listings.items()},
        in_table=any(listing.in_table for listing in listings.values()),
        columns=_joined(columns),
        beside=_all_files([listing.beside for listing in every]),
        cells=partial(_cells, cells) if cells else None,
        rows=_rows(every),
        column_classes=first.column_classes,
        type=common_type(types, first.type) if first.type is not None and first.numbered else _with_room(every, first.type),
        shards=_all_shards([listing.shards for listing in every]),
        sides=_all_sides(every),
        missing=tuple(
            group.within(split, start, f"{split}/", group.field, rooted=root is not None)
            for (split, listing), start in zip(chosen.items(), starts, strict=False)
            for group in listing.missing
        ),
    )


def _all_sides(parts: Sequence[Listing]) -> Any:
    if all(listing.sides is None for listing in parts):
        return None
    return np.concatenate([np.full((len(own.keys), 2), np.nan) if own.sides is None else own.sides for own in parts])


def _columns(split: str, listing: Listing, first: Listing, reference: str) -> tuple[dict[str, Any], list[Note]]:
    """Renumbers a split's labels by the reference, with a `PG408` note for each class that it lacks."""
    values, notes = dict(listing.columns), []
    for name, own in listing.column_classes.items():
        names = first.column_classes.get(name, own)
        labels = Labels(listing.columns[name], own)
        lacking = classes_used(labels) - set(names)
        if lacking:
            message = f"`{split}` has the class {min(lacking)!r} in `{name}`, which `{reference}` lacks"
            notes.append(Note("PG408", message, f"the classes of `{reference}`: {', '.join(names)}", split, "error"))
        else:
            values[name] = with_classes(labels, names)
    for name in values.keys() - listing.column_classes.keys():
        if counts_classes(listing, name) and listing.column_classes != first.column_classes:
            message = f"`{split}` and `{reference}` have different classes, which number the pixels of `{name}`"
            notes.append(Note("PG408", message, "name them in both: `classes: […]`", split, "error"))
        shape, due = (own.shape[2 if isinstance(own, Ragged) else 1 :] for own in (listing.columns[name], first.columns[name]))
        if shape != due and not listing.numbered:
            message = f"`{split}`: `{name}` has the shape {shape}, but {due} in `{reference}`"
            notes.append(Note("PG210", message, field=split, severity="error"))
        elif listing.type and first.type and name in first.type and kind_of(first.type[name]).points:
            here, there = (kind_of(own[name]).arguments_of(own[name]) for own in (listing.type, first.type))
            if here != there:
                message = f"`{split}`: `{name}` has other names or mirror pairs than in `{reference}`"
                notes.append(Note("PG210", message, "give both the same `names` and `mirror_pairs`", split, "error"))
    return values, notes


def _with_room(parts: Sequence[Listing], reference: ElementType | None) -> ElementType | None:
    """Gives a type enough places for the items of every split."""
    if reference is None:
        return None
    types = [listing.type for listing in parts if listing.type is not None]
    room = {name: max(own[name].most or 0 for own in types if name in own) for name, t in reference.items() if t.most is not None}
    return reference.replace(**{name: reference[name].with_(most=most) for name, most in room.items()})


def _cells(parts: list[Cells], column: str | int, field: str) -> tuple[str, ...]:
    return tuple(chain.from_iterable([cells(column, field) for cells in parts]))


def _rows(parts: Sequence[Listing]) -> Ints | None:
    """Joins the rows of several splits, if any; each split's reader knows its own."""
    if all(listing.rows is None for listing in parts):
        return None
    return _all([_own_rows(listing) for listing in parts])


def _own_rows(listing: Listing) -> Ints:
    """Returns the rows of a split; zeros for files, which are read by path."""
    if listing.rows is not None:
        return listing.rows
    numbered = listing.reader().numbered
    return np.array([listing.row(i) if numbered else 0 for i in range(len(listing.keys))], np.int64)


def _all_files(parts: Sequence[Mapping[str, Files]]) -> dict[str, Files]:
    return {
        name: Files(
            Strings.join([part[name].keys for part in parts]),
            Strings.join([part[name].paths for part in parts]),
            _all([part[name].sizes for part in parts]),
        )
        for name in next(iter(parts), {})
    }


def _all(columns: Sequence[Ints | None]) -> Ints:
    return np.concatenate([column for column in columns if column is not None] or [np.zeros(0, np.int32)])


def _all_shards(parts: Sequence[Shards | None]) -> Shards | None:
    """Joins the shards of several splits; each split's reader keeps its own numbers."""
    held = [shards for shards in parts if shards is not None]
    if not held:
        return None
    rows, numbers = (_all([getattr(shards, name) for shards in held]) for name in ("rows", "numbers"))
    blocks = None
    if any(shards.block_rows is not None for shards in held):
        blocks = _all([shards.rows if shards.block_rows is None else shards.block_rows for shards in held])
    offsets = None
    if any(shards.offsets is not None for shards in held):
        offsets = _all([np.zeros_like(shards.rows) if shards.offsets is None else shards.offsets for shards in held])
    kept = None
    if any(shards.kept is not None for shards in held):
        kept = _all([np.ones(shards.total, bool) if shards.kept is None else shards.kept for shards in held])
    return Shards(rows, numbers, Strings.join([shards.digests for shards in held]), blocks, offsets, kept)


def _joined(columns: list[dict[str, Any]]) -> dict[str, Any]:
    """Joins the columns of several splits; returns none if a note reports a mismatch."""
    try:
        return {name: joined([part[name] for part in columns]) for name in (columns[0] if columns else {})}
    except ValueError:
        return {}


def _apart(listings: Mapping[str, Listing], first: Listing, reference: str) -> list[Note]:
    """Notes splits that cannot be read like the reference: other rows, other storage, other classes."""
    notes = []
    for split, listing in listings.items():
        what = mismatch(first.type, listing.type) if first.type and listing.type and first.numbered and listing.numbered else None
        if (listing.shards is None) != (first.shards is None):
            what = f"files hold many records each either here or in `{reference}`, but not in both"
        if what is not None:
            notes.append(Note("PG210", f"`{split}`: {what}", field=split, severity="error"))
        elif listing.shards is not None and listing.class_names != first.class_names:
            help_ = f"the classes of `{reference}`: {', '.join(first.class_names)}"
            notes.append(Note("PG408", f"`{split}` and `{reference}` have different classes, or in another order", help_, split, "error"))
    return notes


def _unknown(split: str, listing: Listing, reference: str, names: tuple[str, ...], prefix: str) -> list[Note]:
    """Notes, with `PG408`, each class of a split that the reference lacks."""
    found = []
    for i, name in enumerate(listing.class_names):
        with_it: list[int] = (listing.labels == i).nonzero()[0][:1].tolist() if listing.labels is not None and name not in names else []
        for example in map(listing.path, with_it):
            where = f"in row {example}" if listing.numbered else f"such as {example}"
            if not (listing.numbered or listing.in_table):
                where = f"in {example[: example.index(f'/{name}/', len(listing.root)) + len(name) + 1]!r}"
            message = f"`{split}` has the class {name!r}, {where}, which `{reference}` lacks"
            found.append(Note("PG408", message, f"the classes of `{reference}`: {', '.join(names)}", prefix + split, "error"))
    return found
