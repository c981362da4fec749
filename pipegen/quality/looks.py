"""Looks at every record once: hashes, size, brightness and sharpness, in 100 bytes a record, kept for the next time."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from PIL import Image
from PIL import __version__ as pillow_version

from pipegen.kept import LOOKS, keep, kept_folder, open_kept
from pipegen.log import log
from pipegen.memory import threads
from pipegen.quality.perceptual import GRAYS, frequencies, gray, phash, shrink
from pipegen.quality.pictures import NotAPictureError, Pictures, cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from typing import TypeAlias

    from pipegen.data.manifest import Manifest
    from pipegen.quality.pictures import Picture
    from pipegen.spec.models import Runtime

    Array: TypeAlias = np.ndarray[Any, Any]

T = TypeVar("T")
R = TypeVar("R")

UNSEEN, SEEN, UNREADABLE = 0, 1, 2
LOOK = np.dtype(
    [
        ("state", "u1"),
        ("digest", "<u8", (2,)),  # BLAKE2b of what is stored
        ("hash", "<u8"),  # pHash, and that of the mirror image
        ("mirror", "<u8"),
        ("inner", "<u8"),  # pHash of all but 3 % at each side, which is what a copy may show that was cut a little
        ("width", "<u4"),  # of the stored picture
        ("height", "<u4"),
        ("brightness", "<f4"),  # the mean luma, 0 to 255
        ("contrast", "<f4"),  # from the 5th to the 95th percentile of the luma
        ("sharpness", "<f4"),  # the variance of the Laplacian, of the picture in 128×128 pixels
        ("means", "<f4", (3,)),  # of red, green and blue, 0 to 1
        ("squares", "<f4", (3,)),
    ]
)
"""What is kept of a record: little endian, without gaps."""
_FLAT = 24.0
_CUT = 0.03
_FORMAT = 1
_KEY = np.dtype([("path", "<u8", (2,)), ("size", "<i8"), ("changed", "<i8")])
"""What a kept look is found by: the BLAKE2b of the file's path, its bytes, and when it was written, in nanoseconds."""
CHUNK = 16
"""Records that a thread takes at once."""


def flat(looks: Array) -> Array:
    """Returns which pictures have so little contrast that their hashes say nothing: bool `(n,)`."""
    few: Array = looks["contrast"] < _FLAT
    return few


def look_at(manifest: Manifest, runtime: Runtime, *, progress: Callable[[int], None] | None = None) -> Array:
    """Looks at the picture of every record that is in a split, several at once; what is known from an earlier run is not read again.

    Where it is interrupted, what was seen by then is kept.

    Args:
        manifest: The records.
        runtime: Says how many threads there are, and by its cache in which folder the looks are kept.
        progress: Called with how many records are done.

    Returns:
        `LOOK (n,)`, for each record of the listing; the state of others than pictures is `UNREADABLE`, of those in no split `UNSEEN`.
    """
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
    """Yields what `work` makes of each item, in order, several at a time and few ahead; when it is left, nothing more is begun."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="pipegen-look")
    waiting: deque[Any] = deque()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # too large ones are refused by their size
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
    except (OSError, NotAPictureError):
        look["state"] = UNREADABLE
        return look
    _describe(look, picture)
    return look


def _describe(look: Array, picture: Picture) -> None:
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


class _Kept:
    """The looks of an earlier run over the same data, in a file; of rows of arrays and tables nothing is kept."""

    def __init__(self, manifest: Manifest, runtime: Runtime, pictures: Pictures) -> None:
        self._folder: Path | None = kept_folder(runtime, LOOKS)
        self._pictures = pictures
        made_by = f"{_FORMAT}\0{pillow_version}"
        named = f"{made_by}\0{manifest.source_name}\0{manifest.listing.root or manifest.listing.path(0)}".encode("utf-8", "surrogateescape")
        self._name = f"{hashlib.blake2b(named, digest_size=16).hexdigest()}.{LOOKS}"
        self._keys: Array = np.zeros(0, _KEY)

    def fill(self, looks: Array, wanted: Array) -> Array:
        """Fills in what is known; returns for which of the wanted records it is, bool `(n,)`."""
        known: Array = np.zeros(len(wanted), bool)
        if self._folder is None:
            return known
        self._keys = np.zeros(len(looks), _KEY)
        for record in wanted.tolist():
            self._keys[record] = _key(self._pictures.source(record))
        keys, rows = self._read()
        places = {key.tobytes(): i for i, key in enumerate(keys)}
        for i, record in enumerate(wanted.tolist()):
            place = places.get(self._keys[record].tobytes())
            if place is not None and self._keys[record]["changed"]:
                looks[record], known[i] = rows[place], True
        return known

    def _read(self) -> tuple[Array, Array]:
        """The keys and the looks of the file; none where there is no sound one."""
        nothing: tuple[Array, Array] = np.zeros(0, _KEY), np.zeros(0, LOOK)
        if self._folder is None:
            return nothing
        try:
            with open_kept(self._folder, self._name) as stream:
                content = stream.read()
        except OSError:
            return nothing
        count, rest = divmod(len(content), _KEY.itemsize + LOOK.itemsize)
        if rest:
            return nothing
        return np.frombuffer(content, _KEY, count), np.frombuffer(content, LOOK, count, count * _KEY.itemsize)

    def write(self, looks: Array) -> None:
        """Keeps what is known of files that can be read."""
        if self._folder is None:
            return
        if not self._keys["changed"].any():
            return  # rows have no files
        seen = ((looks["state"] == SEEN) & (self._keys["changed"] != 0)).nonzero()[0]
        try:
            keep(self._folder, self._name, (self._keys[seen].tobytes(), looks[seen].tobytes()))
        except OSError as error:
            log.warning("what was seen of the pictures cannot be kept in %s: %s", self._folder, (error.strerror or str(error)).lower())


def _key(source: tuple[str, str] | None) -> Array:
    """Returns what a look at a record is found by, of its name and its file; all zeros where it has none, or that is not there."""
    key: Array = np.zeros((), _KEY)
    if source is None:
        return key
    try:
        about = os.stat(source[1])
    except (OSError, ValueError):
        return key
    key["path"] = np.frombuffer(hashlib.blake2b(os.fsencode(source[0]), digest_size=16).digest(), "<u8")
    key["size"], key["changed"] = about.st_size, about.st_mtime_ns
    return key
