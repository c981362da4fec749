"""`arrays`: rows of arrays, passed to `build(data=)` or read from `.npz` and `.npy` files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, field_validator, model_validator

from pipegen.ops.kinds.base import Levels, having
from pipegen.ops.model import FeatureName
from pipegen.ops.sources.features.arrays import ArrayFeature
from pipegen.ops.sources.features.feature import aligned_images, record_type
from pipegen.ops.sources.listing.base import Listing
from pipegen.ops.sources.tables.selecting import SelectingSource
from pipegen.types import ElementType


class Arrays(SelectingSource):
    """Rows of arrays: images and labels from `pipegen.build(spec, data={"image": x, "label": y})`, or from files by `path`.

    Row i of each array is one example, identified by `i`. All arrays have the same number of rows. A batch of small images is one gather
    of rows; no function runs per example.
    """

    op: ClassVar[str] = "arrays"
    attributes: ClassVar[tuple[str, ...]] = ()

    features: Annotated[dict[FeatureName, ArrayFeature], Field(min_length=1)]
    """Kind and arguments of each array, by feature name: `{image: {kind: image}, label: {kind: label, classes: 10}}`."""
    path: Annotated[str, Field(min_length=1)] | None = None
    """Path of a `.npz` file with the arrays, relative to the spec's file. By default the arrays come from `build(data=)`."""

    @field_validator("features")
    @classmethod
    def _one_image(cls, features: dict[str, ArrayFeature]) -> dict[str, ArrayFeature]:
        if not having(features, Levels):
            raise ValueError("`features` has no image; add one such as `image: {kind: image}`")
        aligned_images(features)
        return features

    @model_validator(mode="after")
    def _one_place(self) -> Arrays:
        own = [name for name, feature in self.features.items() if feature.path is not None]
        if own and self.path is not None:
            raise ValueError(f"`path` holds every array, and `{own[0]}` has a `path` of its own; leave one of them out")
        if own and len(own) < len(self.features):
            bare = next(name for name in self.features if name not in own)
            raise ValueError(f"`features`: `{own[0]}` has a `path` and `{bare}` has none; give each array one")
        return self

    def infer(self) -> ElementType:
        """Infers the type of a row before the data is known: 8-bit RGB images of one size, unless the features say more."""
        return self.possible()[0]

    def possible(self) -> tuple[ElementType, ...]:
        """Lists every type that the features allow."""
        of = aligned_images(self.features)
        choices = product(*(feature.own_kind.array_types(feature) for feature in self.features.values()))
        return tuple(record_type(dict(zip(self.features, chosen, strict=True)), of) for chosen in choices)

    def needs_data(self) -> bool:
        return self.path is None and all(feature.path is None for feature in self.features.values())

    def unpacked(self, base: Path) -> int:
        from pipegen.ops.sources.array_rows.npz import packed_bytes

        return packed_bytes(self.features, self.path, str(base)) if self.path is not None else 0

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """Inspect the arrays; see `Source.list`. Images of floats are read in full."""
        from pipegen.ops.sources.array_rows.npz import read_files
        from pipegen.ops.sources.array_rows.rows import given_arrays, list_rows

        given = given_arrays(self.features, data) if self.needs_data() else read_files(self.features, self.path, str(base))
        return self.selected(list_rows(self.features, given, self.main_label()), base)
