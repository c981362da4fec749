"""Reads stored pictures as small ones of a fixed size, by Pillow."""

from __future__ import annotations

import hashlib
import io
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from pipegen.mounts import content_of
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.lowering.library import ready_for
from pipegen.ops.sources.records.archives.archive import split_path

if TYPE_CHECKING:
    from typing import TypeAlias

    from pipegen.data.manifest import Manifest
    from pipegen.types import Interval

    Array: TypeAlias = np.ndarray[Any, Any]

SIDE = 128
"""Pixels of a small picture's sides, whatever the aspect of the stored one."""
_MOST_BYTES = 2**29
_MOST_PIXELS = 2**27
"""A stored picture of more is not decoded: it would take 400 MB, in each thread."""


class NotAPictureError(ValueError):
    """A record cannot be looked at: it is no picture that Pillow reads, or too large."""


@dataclass(frozen=True)
class Picture:
    """Holds a picture as it is compared.

    Attributes:
        digest: BLAKE2b of what is stored, 16 bytes.
        width: Pixels of the stored picture.
        height: Likewise.
        small: float32 `(128, 128, 3)`, RGB from 0 to 255.
    """

    digest: bytes
    width: int
    height: int
    small: Array


class Pictures:
    """The pictures of a manifest's records, the first one of each, by the number of the record among all.

    Args:
        manifest: The records.
    """

    def __init__(self, manifest: Manifest) -> None:
        self.keys = manifest.every_key
        parts = manifest.by_part().values()
        self._parts = [_InFiles(part) if _are_files(part) else _InReader(part) for part in parts]
        self._firsts = np.cumsum([0, *(part.total for part in parts)]).tolist()

    def read(self, record: int) -> Picture:
        """Reads the picture of a record.

        Raises:
            NotAPictureError: When it cannot be decoded.
            OSError: When its file cannot be read.
        """
        stored, interval = self._stored(record)
        return _shrunk_array(stored, interval) if isinstance(stored, np.ndarray) else decode(stored)

    def image(self, record: int) -> Image.Image:
        """Opens the picture of a record; its pixels may be read later, and raise whatever Pillow raises then."""
        stored, interval = self._stored(record)
        if isinstance(stored, np.ndarray):
            return _eight_bits(stored, interval)
        ready_for(stored)
        picture = Image.open(io.BytesIO(stored))
        if picture.width * picture.height > _MOST_PIXELS:
            raise NotAPictureError(f"it has {picture.width}×{picture.height} pixels")
        return picture

    def source(self, record: int) -> tuple[str, str] | None:
        """Returns what a record is called wherever it is named, and the file that it lies in; `None` for rows of arrays and tables."""
        part, own = self._found(record)
        return part.source(own)

    def _found(self, record: int) -> tuple[_InFiles | _InReader, int]:
        part = bisect_right(self._firsts, record) - 1
        return self._parts[part], record - self._firsts[part]

    def _stored(self, record: int) -> tuple[Any, Interval | None]:
        part, own = self._found(record)
        return part.stored(own)


def _are_files(manifest: Manifest) -> bool:
    return manifest.listing.in_files and manifest.listing.shards is None


class _InFiles:
    """Records that are a file each."""

    def __init__(self, manifest: Manifest) -> None:
        self._files = manifest.every_file

    def stored(self, record: int) -> tuple[Any, None]:
        """Returns the bytes of a file."""
        return content_of(self._files[record], _MOST_BYTES + 1), None

    def source(self, record: int) -> tuple[str, str]:
        """Returns the file, as which the record is known."""
        return self._files[record], self._files[record]


class _InReader:
    """Records that the reader of their split reads."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._splits = {split: (manifest.numbers(split), manifest.places(split)) for split in manifest.splits}
        type_ = manifest.type
        levels = [] if type_ is None else [name for name, t in type_.items() if kind_of(t).levels]
        # Of an archive the data says no more than the arguments do: a member is the one image of its record.
        self._name = levels[0] if levels else "image" if type_ is None else None
        self._interval = type_[levels[0]].interval if type_ is not None and levels else None

    def stored(self, record: int) -> tuple[Any, Interval | None]:
        """Returns the bytes of an encoded picture, or an array.

        Raises:
            NotAPictureError: When the record has none, or it is damaged.
        """
        for split, (numbers, places) in self._splits.items():
            at = int(np.searchsorted(numbers, record))
            if self._name is not None and at < len(numbers) and numbers[at] == record:
                reader = self._manifest.listing.reader(split)
                try:
                    (found,) = reader.stored(self._name, *(place[at : at + 1] for place in places))
                except ValueError as error:
                    raise NotAPictureError(str(error)) from error
                return found, self._interval
        raise NotAPictureError("the record has no picture")

    def source(self, record: int) -> tuple[str, str] | None:
        """Returns the record and its file, where it lies with others in one."""
        listing, name = self._manifest.listing, self._manifest.every_file[record]
        if listing.shards is not None:
            return name, name.rpartition("#")[0]
        inside = split_path(name) if not listing.numbered else None
        return None if inside is None else (name, inside[0])


def decode(data: bytes) -> Picture:
    """Decodes an encoded picture.

    Raises:
        NotAPictureError: When Pillow cannot.
    """
    if len(data) > _MOST_BYTES:
        raise NotAPictureError("it is larger than 512 MiB")
    try:
        ready_for(data)
        with Image.open(io.BytesIO(data)) as picture:
            width, height = picture.size
            if width * height > _MOST_PIXELS:
                raise NotAPictureError(f"it has {width}×{height} pixels")
            picture.draft("RGB", (SIDE, SIDE))
            return Picture(_digest(data), width, height, _shrunk(_rgb(picture)))
    except NotAPictureError:
        raise
    except Exception as error:  # Pillow's readers raise whatever a damaged file makes them stumble over
        raise NotAPictureError(str(error)) from error


def _shrunk_array(pixels: Array, interval: Interval | None) -> Picture:
    """One row of an array `(height, width, channels)`."""
    height, width, _ = pixels.shape
    return Picture(_digest(np.ascontiguousarray(pixels).data), width, height, _shrunk(_eight_bits(pixels, interval)))


def _eight_bits(pixels: Array, interval: Interval | None) -> Image.Image:
    """Pixels in RGB; without an interval their own values say what is black and what is white."""
    channels = pixels.shape[2]
    low, high = (interval.low, interval.high) if interval is not None else (float(pixels.min()), float(pixels.max()))
    eight = np.clip(np.round((pixels.astype(np.float32) - low) * (255 / max(high - low, 1e-9))), 0, 255).astype(np.uint8)
    rgb = eight[..., :3] if channels >= 3 else np.repeat(eight[..., :1], 3, 2)
    return Image.fromarray(np.ascontiguousarray(rgb))


def _digest(data: Any) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _rgb(picture: Image.Image) -> Image.Image:
    if picture.mode.startswith(("I", "F")):
        values = np.asarray(picture, np.float32)
        top = 65535.0 if picture.mode.startswith("I") else max(1.0, float(values.max(initial=1.0)))
        picture = Image.fromarray(np.clip(np.round(values * (255 / top)), 0, 255).astype(np.uint8))
    if picture.mode == "P" and "transparency" in picture.info:
        picture = picture.convert("RGBA")
    return picture.convert("RGB")


def _shrunk(picture: Image.Image) -> Array:
    return np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BOX, reducing_gap=2.0), np.float32)


def cut(small: Array, part: float, side: int) -> Array:
    """Cuts a part off each side of a small picture, float32 `(side, side, 3)`."""
    whole = Image.fromarray(np.round(small).astype(np.uint8))
    box = (part * SIDE, part * SIDE, SIDE - part * SIDE, SIDE - part * SIDE)
    return np.asarray(whole.resize((side, side), Image.Resampling.BILINEAR, box=box), np.float32)


def preview_of(pictures: Pictures, record: int, side: int) -> tuple[bytes, int, int] | None:
    """Makes a small JPEG of a record's picture that keeps its aspect, with its width and height; `None` where it cannot be read."""
    try:
        picture = pictures.image(record)
        picture.thumbnail((side, side), Image.Resampling.BOX, reducing_gap=2.0)
        stream = io.BytesIO()
        _rgb(picture).save(stream, "JPEG", quality=80)
    except Exception:  # as in `decode`
        return None
    return stream.getvalue(), *picture.size
