"""Looks at some pictures, spread over all of them: their formats and sizes. It decodes none."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from io import BytesIO
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pipegen.ops.sources.listing.base import Listing

FILES = 200
"""How many pictures are looked at."""
_RECORDS = 20
"""How many in records: compressed files are inflated up to each."""
_HEAD = 1024


@dataclass
class Sample:
    """Holds what the headers of some pictures say.

    Attributes:
        formats: How many there are of each format.
        sizes: `(width, height)` of each, in pixels.
        gray: How many are gray.
        deep: How many have 16 bits.
        unreadable: What those are called that Pillow cannot read.
    """

    formats: Counter[str] = field(default_factory=Counter)
    sizes: list[tuple[int, int]] = field(default_factory=list)
    gray: int = 0
    deep: int = 0
    unreadable: list[str] = field(default_factory=list)


def spread(count: int, most: int) -> list[int]:
    """Returns up to `most` of so many indices, evenly spaced."""
    taken = min(most, count)
    return [k * count // taken for k in range(taken)]


def sample_of(names: Sequence[str], path: Callable[[int], str]) -> Sample:
    """Reads the headers of some of several files; `path` gives where the one of a number lies."""
    sample = Sample()
    for i in spread(len(names), FILES):
        try:
            with open(path(i), "rb") as file:
                _add(file, sample)
        except (OSError, ValueError):
            sample.unreadable.append(names[i])
    return sample


def sample_of_bytes(contents: Iterable[bytes]) -> Sample:
    """Reads the headers of some pictures."""
    sample = Sample()
    for number, content in enumerate(contents):
        try:
            _add(BytesIO(content), sample)
        except (OSError, ValueError):
            sample.unreadable.append(f"number {number} of those looked at")
    return sample


def sample_of_records(listing: Listing, feature: str) -> Sample:
    """Reads the headers of some pictures that lie in records, or the shapes of such as are stored as arrays."""
    import numpy as np

    shards, reader, sample = listing.shards, listing.reader(), Sample()
    ends = np.array([len(listing.keys)]) if shards is None else np.cumsum(shards.rows)
    for i in spread(int(ends[-1]), _RECORDS):
        file = int(np.searchsorted(ends, i, side="right"))
        place: list[Any] = [i]
        if shards is not None:
            place = [shards.numbers[file], i - ends[file] + shards.rows[file] + (0 if shards.offsets is None else shards.offsets[file])]
        try:
            (found,) = reader.stored(feature, *(np.array([int(number)]) for number in place))
            if isinstance(found, bytes):
                _add(BytesIO(found), sample)
            else:
                sample.sizes.append((found.shape[1], found.shape[0]))
        except (OSError, ValueError):
            sample.unreadable.append(f"number {i}")
    return sample


def _add(file: IO[bytes], sample: Sample) -> None:
    """Adds what the header of a picture says; `OSError` or `ValueError` where it cannot be read."""
    from PIL import Image

    from pipegen.ops.lowering.library import UnreadableError, bits_of

    try:
        with Image.open(file) as image:
            form, size, gray = image.format or "unknown", image.size, image.mode in ("1", "L", "LA", "I", "I;16", "I;16B", "F")
            file.seek(0)
            deep = bits_of(file.read() if form == "TIFF" else file.read(_HEAD)) == 16
    except (SyntaxError, Image.DecompressionBombError, UnreadableError) as error:
        raise ValueError(str(error)) from error
    sample.formats[form] += 1
    sample.sizes.append(size)
    sample.gray += gray
    sample.deep += deep
