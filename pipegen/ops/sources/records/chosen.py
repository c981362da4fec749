"""Renamed labels, and records with ignored classes: `map` and `ignore`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipegen.errors import OpError
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.sources.features.label_values import meaning_of
from pipegen.ops.sources.listing.adapted_reader import Changes, read_with
from pipegen.ops.sources.listing.base import Listing, Note, shards_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.sources.records.features import RecordFeature
    from pipegen.ops.sources.records.labels import LabelColumn

_WIDEST = 1_000_000  # largest table from stored to meant class indices


@dataclass(frozen=True)
class StoredLabels:
    """Stored labels of every record, and their meaning."""

    feature: RecordFeature  # the arguments for reading the label as it is stored
    classes: tuple[str, ...]  # the classes that are meant
    table: Ints  # the meant index of each stored class index, or -1: int64
    stays: Ints  # whether each record is kept: bool `(records,)`
    notes: tuple[Note, ...]  # findings about the labels

    @classmethod
    def of(cls, name: str, feature: RecordFeature, column: LabelColumn) -> StoredLabels:
        """Reads every label; `PG402` if none is left, `PG420` for an invalid label."""
        field = f"features.{name}"
        stored = column.stored()
        odd: list[Note] = []
        try:
            indices, classes, stays = feature.chosen_labels(name, stored, column.place, odd)
        except OpError as error:
            raise error.below(field) from None
        as_stored: dict[str, Any] = {"map": None, "ignore": 0}
        if stored.numbers is None:
            meaning = meaning_of(stored.texts, None, 0)
            numbers = meaning.indices if not meaning.fractions and not meaning.missing else None
            values = None if numbers is None else np.array([numbers[text] for text in stored.texts], np.int64)[stored.codes]
        else:
            values = stored.numbers
        if values is None:
            as_stored["classes"], as_stored["offset"], places = stored.texts, 0, stored.codes
        else:
            low, high = int(values.min()), int(values.max())
            if high - low >= _WIDEST:
                message = f"the labels of `{name}` range from {low:,} to {high:,}, which is too wide for class indices"
                raise OpError("PG420", message, field=field, help="store class indices or names")
            as_stored["classes"], as_stored["offset"], places = high - low + 1, low, values - low
        table: Ints = np.full(len(as_stored["classes"]) if values is None else as_stored["classes"], -1, np.int64)
        table[places] = indices
        kept: Ints = np.zeros(column.total, bool)
        kept[slice(None) if column.used is None else column.used] = stays
        message = f"`{name}` selects classes, so all {column.total:,} labels were read once"
        help_ = "they are read again if records change" if stays.all() else "records of other classes are left out of every split"
        notes = (*feature.chosen.notes(stored.as_texts().texts, None, field), *odd, Note("PG432", message, help_, field))
        return cls(feature.model_copy(update=as_stored), classes, table, kept, notes)


def chosen(listing: Listing, stored: Mapping[str, StoredLabels], main: str | None) -> Listing:
    """Applies chosen classes to a listing whose labels were taken as stored; `PG402` if no record stays."""
    kept = np.logical_and.reduce([held.stays for held in stored.values()])
    if not kept.any():
        raise OpError("PG402", "`ignore` leaves out every record", field="features")
    type_ = listing.type
    if type_ is not None:
        type_ = type_.replace(**{name: type_[name].with_(classes=len(held.classes)) for name, held in stored.items()})
    others = {name: held.classes for name, held in stored.items() if name != main}
    made = replace(
        listing,
        class_names=stored[main].classes if main is not None and main in stored else listing.class_names,
        column_classes={**listing.column_classes, **others},
        type=type_,
        notes=(*listing.notes, *(note for held in stored.values() for note in held.notes)),
        shards=replace(shards_of(listing), kept=None if kept.all() else kept),
    )
    return read_with(made, Changes(tables={name: held.table for name, held in stored.items()}, label=main))
