"""A source that is made up as it is read: files of many records, whose pictures and classes follow from the file and the row."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.ops.registry import sources
from pipegen.ops.sources.listing.base import Listing, Location, Shards, Source
from pipegen.ops.sources.listing.reader import Reader
from pipegen.types import BYTE_RANGE, ElementType, FeatureType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pipegen.ops.sources.listing.reader import Hold, Read

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

    def has_rows(self) -> bool:
        return False

    def by_class(self) -> bool:
        return False

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        import numpy as np

        rows = np.full(self.files, self.each, np.int64) + np.arange(self.files) % 3 - 1
        keys = tuple(f"{'validation' if i % 5 == 4 else 'train'}/{i:05}.rec" for i in range(self.files))
        shards = Shards(rows, np.arange(self.files), tuple(f"{n}" for n in rows))
        classes = tuple(f"class {i}" for i in range(CLASSES))
        readers = {"": Made(rows, self)}
        location = Location.below("/made/up", keys, rows * 100)
        return Listing.labelled("/made/up", location, None, classes, shards=shards, readers=readers)


class Made(Reader):
    """Reads what was never written."""

    def __init__(self, rows: Any, source: MadeUp) -> None:
        self.rows, self.source = rows, source
        self.at_once = source.each if source.by_block else 1

    def open(self, feature: str, ram_budget: int, hold: Hold) -> Read:
        return label_of if feature == "label" else self._picture

    def column(self, name: str, files: Any) -> Any:
        import numpy as np

        return np.concatenate([label_of(np.full(self.rows[i], i), np.arange(self.rows[i])) for i in files]).astype(np.int32)

    def stored(self, feature: str, *place: Any) -> Any:
        raise ValueError("what is made up in a graph is stored nowhere")

    def _picture(self, shard: Any, row: Any) -> Any:
        import tensorflow as tf

        numbers = (shard[..., None], row[..., None] // 256, row[..., None] % 256)
        pixel = tf.cast(tf.stack([tf.squeeze(n, -1) % 256 for n in numbers], -1), tf.uint8)
        image = tf.zeros([2, 2, 1], tf.uint8) + pixel[..., None, None, :]
        if not self.source.encoded:
            return image
        return tf.where((shard == self.source.damaged) & (row == 0), "junk", tf.io.encode_png(image))


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
