"""Reads stored pictures as small ones of a fixed size, by Pillow."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from PIL import Image

from pipegen.mounts import content_of
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.lowering.plugins import ready_for

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
        manifest: The records; not such as lie many in a file.
    """

    def __init__(self, manifest: Manifest) -> None:
        self.keys = manifest.listing.keys
        self.files = manifest.listing.files() if manifest.listing.in_files else None
        self._rows: dict[int, tuple[_Rows, int]] = {}
        if self.files is None:
            for split in manifest.splits:
                rows, images = manifest.rows(split), _images(manifest, split)
                if rows is not None and images is not None:
                    self._rows |= {
                        record: (images, row) for record, row in zip(manifest.members[split].tolist(), rows.tolist(), strict=True)
                    }

    def read(self, record: int) -> Picture:
        """Reads the picture of a record.

        Raises:
            NotAPictureError: When it cannot be decoded.
            OSError: When its file cannot be read.
        """
        if self.files is not None:
            return decode(content_of(self.files[record], _MOST_BYTES + 1))
        if record not in self._rows:
            raise NotAPictureError("the record has no picture")
        images, row = self._rows[record]
        stored = images.array[row]
        return decode(stored) if images.array.dtype == object else _shrunk_array(np.asarray(stored), images.interval)

    def image(self, record: int) -> Image.Image:
        """Opens the picture of a record; its pixels may be read later, and raise whatever Pillow raises then."""
        if self.files is not None:
            data = content_of(self.files[record], _MOST_BYTES)
        else:
            images, row = self._rows[record]
            stored = images.array[row]
            if images.array.dtype != object:
                return _eight_bits(np.asarray(stored), images.interval)
            data = stored
        ready_for(data)
        picture = Image.open(io.BytesIO(data))
        if picture.width * picture.height > _MOST_PIXELS:
            raise NotAPictureError(f"it has {picture.width}×{picture.height} pixels")
        return picture


class _Rows(NamedTuple):
    """Holds the images of rows: an array `(n, height, width, channels)`, or of encoded ones `(n,)`; and the values that can occur."""

    array: Any
    interval: Interval | None


def _images(manifest: Manifest, split: str) -> _Rows | None:
    """The images of a split's rows; `None` where there are none."""
    type_ = manifest.type
    for name, array in getattr(manifest.listing.reader(split), "arrays", {}).items():
        if type_ is None or kind_of(type_[name]).levels:
            return _Rows(array, type_[name].interval if type_ is not None else None)
    return None


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
