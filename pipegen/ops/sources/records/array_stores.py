"""The base of sources of arrays: row i of each is one example."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.array_rows.rows import check_channels
from pipegen.ops.sources.records.by_library import StoreSource
from pipegen.ops.sources.records.described import PIXELS
from pipegen.types import ElementType, FeatureType

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from pipegen.ops.sources.records.index import RecordIndex
    from pipegen.ops.sources.records.paths import Found
    from pipegen.ops.sources.stores.base import Store


class ArrayStoreSource(StoreSource):
    """Files of arrays. The key of a feature is an array; images are the bytes of image files, or arrays."""

    arrays: ClassVar[bool] = True

    def store_arguments(self) -> tuple[Hashable, ...]:
        return tuple(dict.fromkeys(self.key_of(name) for name in self.features))

    def possible(self) -> tuple[ElementType, ...]:
        """Lists types with images as the bytes of files, and as arrays."""
        encoded = self.infer()
        images = [name for name, t in encoded.items() if kind_of(t).levels]
        found = [encoded]
        for dtype, interval in PIXELS.items():
            for channels in (3, 1, 4):
                array = FeatureType("image", dtype, (None, None, channels), interval, uniform=True)
                found.append(encoded.replace(**{name: array.with_(of=encoded[name].of) for name in images}))
        return tuple(found) if images else (encoded,)

    def examine(self, shards: Sequence[Found], index: RecordIndex) -> None:
        super().examine(shards, index)
        columns = self.first(shards, index).columns()
        for name, feature in self.features.items():
            held = columns[self.key_of(name)]
            if kind_of(feature).levels and len(held.shape) == 3:
                check_channels(name, (int(index.first[-1]), *held.shape), "store `np.moveaxis(x, 1, -1)`", f"features.{name}")

    def record_type(self, store: Store) -> ElementType:
        """Infers the type with the size of images that are arrays."""
        found, columns = self.infer(), store.columns()
        for name in self.read_features:
            held, t = columns[self.key_of(name)], found[name]
            if kind_of(t).levels and not held.encoded:
                shape = held.shape if len(held.shape) == 3 else (*held.shape, 1)
                image = FeatureType("image", held.dtype, shape, PIXELS[held.dtype], t.of, uniform=True)
                found = found.replace(**{name: image})
        return found
