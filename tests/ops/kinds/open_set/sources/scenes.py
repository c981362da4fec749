"""Images that say of each pixel where it came from, and points on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.ops.fields.columns import Ragged
from pipegen.ops.fields.strings import Strings
from pipegen.ops.sources.listing.base import Listing, Location, Source
from pipegen.ops.sources.listing.rows import Rows
from pipegen.types import ElementType, FeatureType, Interval

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

SIZE = (40, 56)
MOST = 5


class Scenes(Source):
    """Scenes in memory, or in the files of a folder."""

    op: ClassVar[str] = "scenes"

    count: int = 12
    folder: str | None = None
    buckets: tuple[int, ...] = ()

    def infer(self) -> ElementType:
        rows = FeatureType("image", "float32", (*SIZE, 3), Interval(0, 255))
        image = FeatureType("image", "string", ()) if self.folder is not None else rows
        points = FeatureType("points", "float32", (None, 2), of="image", most=MOST, buckets=self.buckets)
        return ElementType((("image", image), ("points", points)))

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        import numpy as np

        points = [points_of(i) for i in range(self.count)]
        columns = {"points": Ragged(np.concatenate(points), np.array([len(p) for p in points], np.int64))}
        if self.folder is not None:
            keys = tuple(f"{i:02d}.png" for i in range(self.count))
            return Listing(self.folder, Location.below(self.folder, keys, (1,) * self.count), columns=columns)
        rows = Rows({"image": np.stack([scene(*SIZE)] * self.count).astype(np.float32)})
        keys = Strings.hold(map(str, range(self.count)))
        location = Location(keys, keys, np.ones(self.count), np.arange(self.count), "row")
        return Listing("", location, readers={"": rows}, columns=columns, type=self.infer())


def scene(height: int, width: int) -> Any:
    """An image whose pixel (x, y) is the colour (x, y, 255)."""
    import numpy as np

    y, x = np.mgrid[:height, :width]
    return np.stack([x, y, np.full_like(x, 255)], -1).astype(np.uint8)


def points_of(record: int) -> Any:
    """From none to five points, which lie on every scene."""
    import numpy as np

    draw = np.random.default_rng(record)
    return draw.uniform((0, 0), (SIZE[1] - 1, SIZE[0] - 1), (record % (MOST + 1), 2)).astype(np.float32)
