"""`SelectingSource`, the base of sources whose records are no rows of a table, but have columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import SerializerFunctionWrapHandler, model_serializer

from pipegen.lazy import np
from pipegen.ops.kinds.base import ExampleClass, Numbers, single_values
from pipegen.ops.sources.features.predicate import Where
from pipegen.ops.sources.listing.base import Listing, Source
from pipegen.ops.sources.tables.readings import Join

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class SelectingSource(Source):
    """A source whose records are no rows of a table, but have columns: their path, and features of one class or number."""

    attributes: ClassVar[tuple[str, ...]] = ("path",)
    """Columns of the records that are none of their features: `path`; `height` and `width` in pixels according to annotations."""

    where: Where | None = None
    """Records that are examples: a comparison of their columns, such as `label in ['cat', 'dog'] and age >= 2`, with `and`, `or`, `not`,
    brackets and `in`. Columns are features of one class or one number, those of a joined table, the `path` that identifies a record, and,
    of images with boxes, `height` and `width` by the annotations; for `coco` also the other numbers and texts of `images`, and `image_id`.
    Put texts in quotes, and column names that are not plain words in backticks. Records keep the ids that they have without it."""
    join: Join | None = None
    """A table whose columns are added to the records with the same key, for `where`, splits, sampling and tests:
    `{table: {csv: {path: patients.csv}}, on: {path: file}}`."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leaves out `where` and `join` that are not given, so that they are no part of the hash of such a spec."""
        return {name: value for name, value in written(self).items() if name not in ("where", "join") or value is not None}

    def column_names(self) -> tuple[str, ...] | None:
        return None if self.join is not None else self._own_columns()

    def _own_columns(self) -> tuple[str, ...]:
        """Returns the `attributes`, and the features that are one class or one number of a record."""
        type_ = self.infer()
        single = (name for name in single_values(type_, ExampleClass, Numbers) if len(type_[name].shape) <= 1)
        return tuple(dict.fromkeys((*self.attributes, *single)))

    def selected(self, listing: Listing, base: Path, more: Mapping[str, Sequence[Any]] | None = None) -> Listing:
        """Keeps the records that `where` and `join` choose, and adds the columns.

        Args:
            listing: The records; without any after an error.
            base: What relative paths are relative to.
            more: Further columns, a value for each record; `None` for one without it.

        Raises:
            OpErrors: As `kept_rows`, and as the source of the joined table.
        """
        if not len(listing.keys):
            return listing
        from pipegen.ops.sources.tables.record_columns import ListedColumns

        columns = ListedColumns(f"`{self.op}`", listing, self._own_columns(), more or {})
        listing = replace(listing, cells=columns.column)
        if self.where is None and self.join is None:
            return listing
        from pipegen.ops.sources.tables.join import kept_rows, partners_of

        if self.join is not None:
            columns.partners = partners_of(self.join, columns, columns.place, base)
        rows, notes = kept_rows(columns, self.where, {}, columns.partners)
        kept = listing if len(rows) == columns.num_rows else listing.take(np.fromiter(rows, np.int64, len(rows)))
        return replace(kept, notes=(*kept.notes, *notes))
