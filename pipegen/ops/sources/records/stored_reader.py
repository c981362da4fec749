"""`StoredReader`: features in mapped files, such as members of archives or values of a database."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

from pipegen.ops.sources.records.json_fields import JSON_FIELDS, field_of
from pipegen.ops.sources.records.members import unpacked_member
from pipegen.ops.sources.records.reader import MappedReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipegen.ops.sources.records.features import RecordFeature
    from pipegen.ops.sources.records.stored import Stored


_NONE: Mapping[str, tuple[str, ...]] = {}


class StoredReader(MappedReader):
    """A reader of features stored one after another in mapped files, each as in the first record.

    Args:
        features: The arguments of each feature.
        how: How each is stored.
        paths: The paths of features that are fields of JSON.
        about: As for `MappedReader`. The part `check_of(NAME)` has the check of a compressed feature, else 0.
    """

    def __init__(
        self, features: Mapping[str, RecordFeature], how: Mapping[str, Stored], *about: Any, paths: Mapping[str, tuple[str, ...]] = _NONE
    ) -> None:
        super().__init__(*about)
        self.features, self.how, self.paths = features, how, paths
        self.verifies = False

    def verifying(self) -> StoredReader:
        """Returns a reader that also checks the checksums of uncompressed members."""
        made = copy(self)
        made.verifies = True
        return made

    def parts_of(self, features: Sequence[str]) -> tuple[str, ...]:
        return tuple(features)

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        said = super().python(features, ram_budget)
        return said or (JSON_FIELDS if any(name in self.paths for name in features) else "")

    def unpacked(self, feature: str, content: bytes, number: int) -> bytes:
        if check_of(feature) in self.parts:
            content = unpacked_member(content, int(self.index.offsets[number, self.parts.index(check_of(feature))]))
        return field_of(content, self.paths[feature]) if feature in self.paths else content

    def parse(self, features: Sequence[str], parts: dict[str, Any], places: dict[str, Any]) -> dict[str, Any]:
        from pipegen.ops.lowering.record_values import from_member

        checks = self.index.offsets[:, len(self.features) :]
        packed = bool(((checks != 0) if self.verifies else (checks > 0)).any())
        found = {}
        for name in features:
            check = places[check_of(name)][0] if packed else None
            lookup = self.label_columns[name].lookup if name in self.label_columns else None
            read = partial(field_of, path=self.paths[name]) if name in self.paths else None
            found[name] = from_member(name, self.features[name], self.how[name], parts[name], check, lookup, read, whole=self.verifies)
        return found


def check_of(name: str) -> str:
    """Returns the part with the check of a feature."""
    return f"{name}\0check"
