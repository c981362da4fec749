"""Looks at every record: its hashes, size, brightness and sharpness, in 100 bytes, which are kept for the next run."""

from __future__ import annotations

import hashlib
import io
import os
import warnings
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from PIL import Image
from PIL import __version__ as pillow_version

from pipegen.frozen import dataclass
from pipegen.kept import LOOKS, keep_or_warn, kept_folder, open_kept
from pipegen.memory import threads
from pipegen.mounts import content_of
from pipegen.ops.kinds.base import Levels, Samples, having
from pipegen.ops.lowering.library import ready_for
from pipegen.types import Interval

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest
    from pipegen.ops.sources.listing.reader import Reader
    from pipegen.spec.models import Runtime


Array = np.ndarray[Any, Any]

SIDE = 128  # the sides of a small picture in pixels, whatever the aspect of the stored one
_MOST_BYTES = 2**29
_MOST_PIXELS = 2**27  # the most pixels of a picture that is decoded: more would take 400 MB in each thread


class NotAPictureError(ValueError):
    """A record has no picture that Pillow reads, or a too large one; with the digest of its bytes, if they were read whole."""

    def __init__(self, message: str, digest: bytes | None = None) -> None:
        super().__init__(message)
        self.digest = digest


@dataclass(frozen=True)
class Picture:
    """A picture as it is compared: BLAKE2b of the stored bytes, their size in pixels, and float32 `(128, 128, 3)`, RGB from 0 to 255."""

    digest: bytes
    width: int
    height: int
    small: Array


class Pictures:
    """The pictures of a manifest's records, by number; of several pictures of a record, the first."""

    def __init__(self, manifest: Manifest) -> None:
        self.keys = manifest.every_key
        self._parts = [*manifest.by_part().values()]
        self._firsts = np.cumsum([0, *(part.total for part in self._parts)]).tolist()

    def read(self, record: int) -> Picture:
        """Reads the picture of a record. Raises `NotAPictureError` if it cannot be decoded; `OSError` if its file cannot be read."""
        stored, interval = self._stored(record)
        if not isinstance(stored, np.ndarray):
            return decode(stored)
        part = self._found(record)[0]
        if part.type is not None and not having(part.type, Levels):
            raise NotAPictureError("the record has no picture", _digest(np.ascontiguousarray(stored).data))
        height, width, _ = stored.shape
        return Picture(_digest(np.ascontiguousarray(stored).data), width, height, _shrunk(_eight_bits(stored, interval)))

    def image(self, record: int) -> Image.Image:
        """Opens the picture of a record; Pillow may read its pixels, and raise errors, later."""
        stored, interval = self._stored(record)
        return _eight_bits(stored, interval) if isinstance(stored, np.ndarray) else _opened(stored)

    def source(self, record: int) -> tuple[str, str] | None:
        """The name of a record and its file, which may hold others; `None` for rows of arrays and tables."""
        _, (reader, place, name) = self._found(record)
        file = reader.file_of(*place) if place else name
        return None if file is None else (name, file)

    def _found(self, record: int) -> tuple[Manifest, tuple[Reader, tuple[Array, ...], str]]:
        """Finds the source of a record, or the part of a mix; and its reader, place and name there."""
        part = bisect_right(self._firsts, record) - 1
        return self._parts[part], self._parts[part].listing.place_of(record - self._firsts[part])

    def _stored(self, record: int) -> tuple[Any, Interval | None]:
        """Reads the bytes of an encoded picture, or an array, of a record without a picture those of its sound; raises `NotAPictureError`
        if it has neither, or its container is damaged."""
        part, (reader, place, name) = self._found(record)
        if not place:
            return content_of(name, _MOST_BYTES + 1), None
        # An archive has no type of its own: a member is the only image of its record.
        image = "image" if part.type is None else next(iter([*having(part.type, Levels), *having(part.type, Samples)]), None)
        if image is None:
            raise NotAPictureError("the record has no picture")
        try:
            (found,) = reader.stored(image, *place)
        except ValueError as error:
            raise NotAPictureError(str(error)) from error
        return found, None if part.type is None else part.type[image].interval


def decode(data: bytes) -> Picture:
    """Decodes an encoded picture; raises `NotAPictureError` if Pillow cannot decode it."""
    if len(data) > _MOST_BYTES:
        raise NotAPictureError("it is larger than 512 MiB")
    try:
        with _opened(data) as picture:
            width, height = picture.size
            picture.draft("RGB", (SIDE, SIDE))
            return Picture(_digest(data), width, height, _shrunk(_rgb(picture)))
    except NotAPictureError as error:
        raise NotAPictureError(str(error), _digest(data)) from None
    except Exception as error:  # Pillow raises many types for damaged files
        raise NotAPictureError(str(error), _digest(data)) from error


def _opened(data: bytes) -> Image.Image:
    ready_for(data)
    picture = Image.open(io.BytesIO(data))
    if picture.width * picture.height > _MOST_PIXELS:
        raise NotAPictureError(f"it has {picture.width}×{picture.height} pixels")
    return picture


def _eight_bits(pixels: Array, interval: Interval | None) -> Image.Image:
    """Converts pixels to RGB of 8 bits; without an interval, their own minimum is black and their maximum white."""
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
    """Crops a fraction off each side of a small picture: float32 `(side, side, 3)`."""
    whole = Image.fromarray(np.round(small).astype(np.uint8))
    box = (part * SIDE, part * SIDE, SIDE - part * SIDE, SIDE - part * SIDE)
    return np.asarray(whole.resize((side, side), Image.Resampling.BILINEAR, box=box), np.float32)


def preview_of(pictures: Pictures, record: int, side: int) -> tuple[bytes, int, int] | None:
    """Makes a small JPEG of a record's picture, with its width and height; keeps the aspect. `None` if it cannot be read."""
    try:
        picture = pictures.image(record)
        picture.thumbnail((side, side), Image.Resampling.BOX, reducing_gap=2.0)
        stream = io.BytesIO()
        _rgb(picture).save(stream, "JPEG", quality=80)
    except Exception:  # as in `decode`
        return None
    return stream.getvalue(), *picture.size


GRAYS, LOW = 32, 8
_COSINES = np.cos(np.pi * np.arange(LOW)[:, None] * (2 * np.arange(GRAYS)[None] + 1) / (2 * GRAYS)).astype(np.float64)


def gray(small: Array) -> Array:
    """Computes the luma (Rec. 601) of RGB: float32 `(..., height, width)` from `(..., height, width, 3)`."""
    return small @ np.array([0.299, 0.587, 0.114], np.float32)


def shrink(picture: Array, side: int) -> Array:
    """Averages an image `(height, width, ...)` in `side` × `side` cells."""
    height, width = picture.shape[:2]
    return picture.reshape(side, height // side, side, width // side, *picture.shape[2:]).mean((1, 3))


def frequencies(grays: Array) -> Array:
    """Computes the lowest frequencies of an image, float64 `(8, 8)`: a DCT-II (not normalised) of `(32, 32)`."""
    return _COSINES @ grays.astype(np.float64) @ _COSINES.T


def phash(low: Array) -> tuple[int, int]:
    """Computes the pHashes of an image and of its mirror image, which change little when it is encoded again.

    They are the signs, about their median, of the 8×8 lowest frequencies of a DCT-II of the image in 32×32 grays (Zauner, "Implementation
    and benchmarking of perceptual image hash functions", 2010).
    """
    return _signs(low), _signs(low * np.where(np.arange(LOW) % 2, -1.0, 1.0))


def _signs(low: Array) -> int:
    bits = (low > np.median(low.ravel()[1:])).ravel()
    bits[0] = low[0, 0] > 128 * GRAYS * GRAYS  # the mean, which is far from all others
    return int(np.packbits(bits).view(">u8")[0])


T = TypeVar("T")
R = TypeVar("R")

UNSEEN, SEEN, UNREADABLE = 0, 1, 2  # of an unreadable picture, or a sound, the digest alone is known, or nothing
LOOK = np.dtype(
    [
        ("state", "u1"),
        ("digest", "<u8", (2,)),  # BLAKE2b of the stored bytes
        ("hash", "<u8"),  # pHash, and that of the mirror image
        ("mirror", "<u8"),
        ("inner", "<u8"),  # pHash without 3 % at each side, for copies that were slightly cropped
        ("width", "<u4"),  # of the stored picture
        ("height", "<u4"),
        ("brightness", "<f4"),  # the mean luma, 0 to 255
        ("contrast", "<f4"),  # from the 5th to the 95th percentile of the luma
        ("sharpness", "<f4"),  # the variance of the Laplacian, of the picture in 128×128 pixels
        ("means", "<f4", (3,)),  # of red, green and blue, 0 to 1
        ("squares", "<f4", (3,)),
    ]
)
"""The kept values of a record: little endian, without gaps."""
_FLAT = 24.0
_CUT = 0.03
_FORMAT = 1
_KEY = np.dtype([("path", "<u8", (2,)), ("size", "<i8"), ("changed", "<i8")])
"""The key of a kept look: the BLAKE2b of the record's name, and the size and the time (in nanoseconds) of its file."""
CHUNK = 16  # records that a thread takes at once


def hashed(looks: Array) -> Array:
    """Finds the records whose stored bytes are known: bool `(n,)`."""
    return np.asarray(looks["digest"].any(1))


def flat(looks: Array) -> Array:
    """Finds pictures with too little contrast for hashes: bool `(n,)`."""
    return looks["contrast"] < _FLAT


def look_at(manifest: Manifest, runtime: Runtime, *, progress: Callable[[int], None] | None = None) -> Array:
    """Looks at the picture of every record in a split, in several threads; takes those of earlier runs from a file.

    After an interruption, the looks so far are kept. `runtime` sets the number of threads and the folder of kept looks; `progress` is
    called with the number of records done. Returns `LOOK (n,)`, for each record of the listing; the state is `UNREADABLE` without a
    picture, and `UNSEEN` for records in no split."""
    looks: Array = np.zeros(manifest.total, LOOK)
    pictures = Pictures(manifest)
    wanted = np.unique(np.concatenate([looks["state"][:0], *map(manifest.numbers, manifest.splits)])).astype(np.int64)
    kept = _Kept(manifest, runtime, pictures)
    missing = wanted[~kept.fill(looks, wanted)]
    done = len(wanted) - len(missing)
    if progress is not None:
        progress(done)
    chunks = [missing[i : i + CHUNK] for i in range(0, len(missing), CHUNK)]
    try:
        for chunk, seen in zip(chunks, at_once(lambda c: [_look(pictures, r) for r in c], chunks, threads(runtime)), strict=True):
            for record, row in zip(chunk.tolist(), seen, strict=True):
                looks[record] = row
            done += len(chunk)
            if progress is not None:
                progress(done)
    finally:
        if len(missing):
            kept.write(looks)
    return looks


def at_once(work: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[R]:
    """Maps `work` over items in threads, in order and only a few items ahead; starts nothing more when it is closed."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="pipegen-look")
    waiting: deque[Any] = deque()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # `_MOST_PIXELS` is checked instead
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > 4 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _look(pictures: Pictures, record: int) -> Array:
    look: Array = np.zeros((), LOOK)
    try:
        picture = pictures.read(record)
    except (OSError, NotAPictureError) as error:
        look["state"] = UNREADABLE
        digest = getattr(error, "digest", None)
        if digest is not None:
            look["digest"] = np.frombuffer(digest, "<u8")
        return look
    luma = gray(picture.small)
    look["state"] = SEEN
    look["digest"] = np.frombuffer(picture.digest, "<u8")
    look["hash"], look["mirror"] = phash(frequencies(shrink(luma, GRAYS)))
    look["inner"] = phash(frequencies(gray(cut(picture.small, _CUT, GRAYS))))[0]
    look["width"], look["height"] = picture.width, picture.height
    look["brightness"] = luma.mean()
    look["contrast"] = float(np.percentile(luma, 95)) - float(np.percentile(luma, 5))
    look["sharpness"] = (4 * luma[1:-1, 1:-1] - luma[:-2, 1:-1] - luma[2:, 1:-1] - luma[1:-1, :-2] - luma[1:-1, 2:]).var()
    scaled = picture.small / 255
    look["means"], look["squares"] = scaled.mean((0, 1)), (scaled**2).mean((0, 1))
    return look


class _Kept:
    """The kept looks of earlier runs over the same data; rows of arrays and tables are not kept."""

    def __init__(self, manifest: Manifest, runtime: Runtime, pictures: Pictures) -> None:
        self._folder: Path | None = kept_folder(runtime.cache, LOOKS)
        self._pictures = pictures
        made_by = f"{_FORMAT}\0{pillow_version}"
        place = manifest.listing.root or manifest.listing.location.paths[0]
        named = f"{made_by}\0{manifest.source_name}\0{place}".encode("utf-8", "surrogateescape")
        self._name = f"{_digest(named).hex()}.{LOOKS}"
        self._keys: Array = np.zeros(0, _KEY)

    def fill(self, looks: Array, wanted: Array) -> Array:
        """Fills in kept looks; returns a mask of the wanted records that have one, bool `(n,)`."""
        known: Array = np.zeros(len(wanted), bool)
        if self._folder is None:
            return known
        self._keys = np.zeros(len(looks), _KEY)
        for record in wanted.tolist():
            # The key of a record without a file is all zeros.
            name, file = self._pictures.source(record) or ("", "")
            with suppress(OSError, ValueError):
                about, hashed = os.stat(file), np.frombuffer(_digest(os.fsencode(name)), "<u8")
                self._keys[record] = tuple(hashed.tolist()), about.st_size, about.st_mtime_ns
        try:
            with open_kept(self._folder, self._name) as stream:
                content = stream.read()
        except OSError:
            return known
        count, rest = divmod(len(content), _KEY.itemsize + LOOK.itemsize)
        if rest:  # it is damaged
            return known
        places = {key.tobytes(): i for i, key in enumerate(np.frombuffer(content, _KEY, count))}
        rows: Array = np.frombuffer(content, LOOK, count, count * _KEY.itemsize)
        for i, record in enumerate(wanted.tolist()):
            place = places.get(self._keys[record].tobytes())
            if place is not None and self._keys[record]["changed"]:
                looks[record], known[i] = rows[place], True
        return known

    def write(self, looks: Array) -> None:
        if self._folder is None or not self._keys["changed"].any():
            return
        seen = ((looks["state"] == SEEN) & (self._keys["changed"] != 0)).nonzero()[0]
        keep_or_warn(self._folder, self._name, (self._keys[seen].tobytes(), looks[seen].tobytes()), "the looks at pictures")
