"""The base of sources whose records hold each feature under a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import PrivateAttr

from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.features.feature import FeatureSource
from pipegen.ops.sources.records.features import RecordFeature

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.ops.model import FeatureName


class DescribedRecords(FeatureSource):
    """Records in files of many, described by the argument `features`, which each source declares."""

    if TYPE_CHECKING:
        features: dict[FeatureName, RecordFeature]

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
        return (f"{names} of all records are read once and held in memory",) if names else ()

    def split_method(self) -> Literal["random", "hash"]:
        """Returns `hash`, which does not depend on the order of records."""
        return "hash"

    def keep_index_in(self, folder: Path | None) -> None:
        self._folder = folder
