"""`SelectingSource`, the base of sources whose records are no rows of a table, but have columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from pydantic import SerializerFunctionWrapHandler, model_serializer, model_validator

from pipegen.errors import PartError
from pipegen.lazy import np
from pipegen.ops.kinds.base import ExampleClass, Levels, Numbers, having, single_values
from pipegen.ops.model import FeatureName
from pipegen.ops.sources.features.feature import aligned_images, lacking
from pipegen.ops.sources.features.items import item_numbers
from pipegen.ops.sources.features.predicate import Where
from pipegen.ops.sources.listing.base import Listing, Source
from pipegen.ops.sources.tables.features import InTable, JoinedFeature
from pipegen.ops.sources.tables.readings import Join
from pipegen.types import ElementType


class SelectingSource(Source):
    """A source whose records are no rows of a table, but have columns: their path, and features of one class or number."""

    attributes: ClassVar[tuple[str, ...]] = ("path",)
    """Columns of the records that are none of their features: `path`; `height` and `width` in pixels according to annotations."""

    where: Where | None = None
    """Records that are examples: a comparison of their columns, such as `label in ['cat', 'dog'] and age >= 2`, with `and`, `or`, `not`,
    brackets and `in`. Columns are the records' own features of one class or one number, those of a joined table under their names there,
    the `path` that identifies a record, and, of images with boxes, `height` and `width` by the annotations; for `coco` also the other
    numbers and texts of `images`, and `image_id`. Put texts in quotes, and column names that are not plain words in backticks. Records keep
    the ids that they have without it."""
    join: Join | None = None
    """A table whose columns are added to the records with the same key, for `where`, splits, sampling, tests, and `features` of images in
    files: `{table: {csv: {path: patients.csv}}, on: {path: file}}`."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leaves out what is not given, so that it is no part of the hash of such a spec."""
        return {name: value for name, value in written(self).items() if name not in ("where", "join", "features") or value}

    @model_validator(mode="after")
    def _of_a_table(self) -> SelectingSource:
        first = next((name for name, feature in self.joined.items() if feature.value is None), None)
        if first is not None and self.join is None:
            help_ = "such as `join: {table: {csv: {path: FILE}}, on: {path: COLUMN}}`"
            raise PartError(f"`{first}` is in a joined table, which needs a `join`", "features", first, help=help_)
        return self

    @property
    def joined(self) -> Mapping[str, InTable]:
        """The features in columns of the joined table."""
        return {}

    def with_joined(self, own: ElementType) -> ElementType:
        """Adds the features of the joined table to those that records have without it. Raises `PartError` for a name that is taken, and as
        `aligned_images`."""
        taken = next((name for name in self.joined if name in own), None)
        if taken is not None:
            raise PartError(f"`{taken}` is already a feature of `{self.op}`", taken, help="rename the feature of the joined table")
        images: dict[str, Any] = {name: own[name] for name in having(own, Levels)}
        of = aligned_images({**images, **self.joined}) if self.joined else {}
        return own.replace(**{name: feature.type().with_(of=of.get(name)) for name, feature in self.joined.items()})

    def column_names(self) -> tuple[str, ...] | None:
        return None if self.join is not None else self._own_columns()

    def _own_columns(self) -> tuple[str, ...]:
        """Returns the `attributes`, and the features that are one class or one number of a record."""
        type_ = self.infer()
        single = (n for n in single_values(type_, ExampleClass, Numbers) if len(type_[n].shape) <= 1 and n not in self.joined)
        return tuple(dict.fromkeys((*self.attributes, *single)))

    def selected(self, listing: Listing, base: Path, more: Mapping[str, Sequence[Any]] | None = None) -> Listing:
        """Keeps the records that `where` and `join` choose, and adds the columns, and features of the joined table.

        Args:
            listing: The records; without any after an error.
            base: What relative paths are relative to.
            more: Further columns, a value for each record; `None` for one without it.

        Raises:
            OpErrors: As `RecordColumns.choose`.
        """
        if not len(listing.keys):
            return listing
        from pipegen.ops.sources.tables.join import ListedColumns

        columns = ListedColumns(f"`{self.op}`", listing, self._own_columns(), more or {})
        listing = replace(listing, cells=columns.column)
        rows, notes, held = columns.choose(self.where, self.join, self.joined, base)
        kept = listing if len(rows) == columns.num_rows else listing.take(np.fromiter(rows, np.int64, len(rows)))
        kept = replace(kept, notes=(*kept.notes, *notes))
        marks: dict[str, Any] = {name: feature for name, feature in getattr(self, "features", {}).items() if feature.home in held}
        if not held:
            return kept
        label = self.labelled_by() or kept.label
        kept = replace(kept, label=label, in_table=kept.in_table or label in held)
        return kept.with_columns(held | item_numbers(marks, held), self.infer())


class JoiningSource(SelectingSource):
    """A source of images whose further features are columns of a joined table."""

    features: dict[FeatureName, JoinedFeature] = {}
    """Further features of each image, in columns of the joined table: `{age: {kind: tensor}, breed: {kind: label, column: name}}`."""

    @model_validator(mode="after")
    def _beside_its_own(self) -> JoiningSource:
        try:
            if self.features:
                self.infer()
        except PartError as error:
            raise PartError(str(error), "features", *error.path, help=error.help) from None
        except ValueError:  # another argument is wrong, which has a check of its own
            pass
        return self

    def lacks(self, split: str) -> frozenset[str]:
        return lacking(self.features, split)

    @property
    def joined(self) -> Mapping[str, JoinedFeature]:
        return self.features
