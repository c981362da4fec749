"""The base of sources whose records hold each feature under a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import PrivateAttr

from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.features.feature import FeatureSource
from pipegen.ops.sources.features.predicate_syntax import Where, parse_predicate
from pipegen.ops.sources.records.features import RecordFeature

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.ops.model import FeatureName


class DescribedRecords(FeatureSource):
    """Records in files of many, described by the argument `features`, which each source declares."""

    if TYPE_CHECKING:
        features: dict[FeatureName, RecordFeature]

    where: Where | None = None
    """Records that are examples: a comparison of short values in them, such as `age >= 18 and site in ['a', 'b']`, with `and`, `or`, `not`,
    brackets and `in`; a name is a key of the records. Put texts in quotes, and keys that are not plain words in backticks. These values are
    read once for all records. Records keep the ids that they have without it."""

    _folder: Path | None = PrivateAttr(default=None)
    """Folder of the index."""

    def has_rows(self) -> bool:
        """Returns False: records lie in files."""
        return False

    def by_class(self) -> bool:
        """Returns False: a file holds records of every class."""
        return False

    @property
    def read_features(self) -> dict[str, RecordFeature]:
        """The features that are read with each record; others are read once for all records."""
        return {name: feature for name, feature in self.features.items() if not kind_of(feature).ragged}

    def remarks(self) -> tuple[str, ...]:
        names = " and ".join(f"`{name}`" for name in self.features if name not in self.read_features)
        held = (f"{names} of all records are read once and held in memory",) if names else ()
        compared = dict.fromkeys(column.name for column in parse_predicate(self.where).columns()) if self.where is not None else ()
        return (*held, *(f"{name!r}, for `where`, is {self.columns_cost()}" for name in compared))

    def has_columns(self) -> bool:
        """Returns True: short values can be read for all records."""
        return True

    def columns_cost(self) -> str:
        return "read once from all records"

    def split_method(self) -> Literal["random", "hash"]:
        """Returns `hash`, which does not depend on the order of records."""
        return "hash"

    def keep_index_in(self, folder: Path | None) -> None:
        self._folder = folder
