"""A source that is made up as it is read: files of many records, whose pictures and classes follow from the file and the row."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.ops.registry import sources
from pipegen.ops.sources.base import Listing, Source
from pipegen.ops.sources.shards import Shards
from pipegen.types import BYTE_RANGE, ElementType, FeatureType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

CLASSES = 10


class MadeUp(Source):
    """`files` files of about `each` records, every fifth in the folder `validation/`; with `encoded`, pictures are PNG files, and the first
    row of file number `damaged` is none."""

    op: ClassVar[str] = "made_up"

    files: int = 20
    each: int = 50
    encoded: bool = False
    by_block: bool = False
    damaged: int = -1

    def infer(self) -> ElementType:
        kind = FeatureType("image", "uint8", (2, 2, 3), BYTE_RANGE, uniform=True)
        if self.encoded:
            kind = FeatureType("image", "string", ())
        return ElementType((("image", kind), ("label", FeatureType("label", "int64", (), classes=CLASSES))))

    def has_labels(self) -> bool:
        return True

    def has_rows(self) -> bool:
        return False

    def by_class(self) -> bool:
        return False

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        import numpy as np

        rows = np.full(self.files, self.each, np.int64) + np.arange(self.files) % 3 - 1
        keys = tuple(f"{'validation' if i % 5 == 4 else 'train'}/{i:05}.rec" for i in range(self.files))

        def labels(numbers: Any) -> Any:
            return np.concatenate([label_of(np.full(rows[i], i), np.arange(rows[i])) for i in numbers]).astype(np.int32)

        shards = Shards(rows, np.arange(self.files), tuple(f"{n}" for n in rows), self._read, labels, self.by_block)
        classes = tuple(f"class {i}" for i in range(CLASSES))
        return Listing("/made/up", keys, None, classes, tuple((rows * 100).tolist()), shards=shards)

    def _read(self, feature: str, shard: Any, row: Any) -> Any:
        import tensorflow as tf

        if feature == "label":
            return label_of(shard, row)
        numbers = (shard[..., None], row[..., None] // 256, row[..., None] % 256)
        pixel = tf.cast(tf.stack([tf.squeeze(n, -1) % 256 for n in numbers], -1), tf.uint8)
        image = tf.zeros([2, 2, 1], tf.uint8) + pixel[..., None, None, :]
        if not self.encoded:
            return image
        return tf.where((shard == self.damaged) & (row == 0), "junk", tf.io.encode_png(image))


def label_of(shard: Any, row: Any) -> Any:
    """The class of records."""
    return (shard * 7 + row) % CLASSES


@contextmanager
def registered() -> Iterator[None]:
    """Specs may name the source for a while."""
    known: Any = sources()
    known[MadeUp.op] = MadeUp
    try:
        yield
    finally:
        del known[MadeUp.op]
