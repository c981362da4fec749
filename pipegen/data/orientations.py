"""Lets what lies on images agree with how their EXIF turns them: the size that annotations say tells which way they were drawn."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.data.fingerprint import fingerprint
from pipegen.data.sides import ignores_exif
from pipegen.kept import INDEXES, keep, kept_folder, open_kept
from pipegen.log import log
from pipegen.memory import threads
from pipegen.mounts import mounted
from pipegen.ops.acting import anchor
from pipegen.ops.kinds.ragged import Ragged
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.lowering.exif import BACK
from pipegen.ops.sources.annotations.sizes import orientation_of, sides_of
from pipegen.ops.sources.listing.base import Note
from pipegen.ops.sources.listing.wording import count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipegen.ops.sources.listing.base import Listing
    from pipegen.spec.models import PipelineSpec
    from pipegen.types import ElementType

Array = np.ndarray[Any, Any]
_FORMAT = 1
_WORTH_KEEPING = 1000
"""Files whose headers take long enough to read that what they say is kept."""
_AT_ONCE = 256
"""Files that a thread reads between two reports of progress."""
_LOOKED_AT = 32
"""Images of another machine that are looked at: where none of them is turned, the others are taken not to be."""


def with_orientations(spec: PipelineSpec, listing: Listing, progress: Callable[[int], None] | None) -> Listing:
    """Turns what annotations say of images with the images, and notes where nothing tells which way they were drawn.

    An image whose sides its EXIF swaps is annotated as it is stored, or upright: its annotated size says which. Features in columns, such
    as boxes, are turned to lie on the image as it is decoded. Nothing tells it of an image that is square, mirrored or upside down, or
    of annotations without a size: these are taken to be of the image as it is decoded.
    """
    type_ = listing.type or spec.source.infer()
    for image, lying in _annotated(listing, type_).items():
        listing = _turned(spec, listing, type_, image, lying, progress)
    return listing


def _annotated(listing: Listing, type_: ElementType) -> dict[str, list[str]]:
    """The images that are files, and what lies on each."""
    if listing.shards is not None or not listing.in_files or listing.numbered:
        return {}
    found: dict[str, list[str]] = {}
    for name, t in type_.items():
        image = anchor(type_, name)
        if image != name and kind_of(t).lives and type_[image].encoded and kind_of(type_[image]).levels and image not in listing.columns:
            found.setdefault(image, []).append(name)
    return found


def _turned(
    spec: PipelineSpec, listing: Listing, type_: ElementType, image: str, lying: Sequence[str], progress: Callable[[int], None] | None
) -> Listing:
    files = listing.beside[image].paths if image in listing.beside else listing.files()
    orientations = _orientations(spec, listing, image, files, progress)
    odd = np.flatnonzero(orientations > 1)
    if not len(odd):
        return listing
    stored = np.array([_stored(files[i]) for i in odd.tolist()], np.float64)[:, ::-1]
    said = np.full((len(odd), 2), np.nan) if listing.sides is None else np.asarray(listing.sides, np.float64)[odd]
    swaps = (orientations[odd] >= 5) & (stored[:, 0] != stored[:, 1])
    as_stored, as_upright = swaps & (said == stored).all(1), swaps & (said == stored[:, ::-1]).all(1)
    ignored = ignores_exif(spec, image)
    which = as_upright if ignored else as_stored
    notes = []
    if which.any():
        records = odd[which]
        turn: Array = np.zeros(len(orientations), np.int64)
        turn[records] = np.array((0, *BACK))[orientations[records]] if ignored else orientations[records]
        listing = _with_columns(listing, type_, lying, turn)
        notes.append(_told(files, records, ignored=ignored))
    untold = odd[~(as_stored | as_upright)]
    if len(untold):
        notes.append(_untold(files, orientations, untold, lying, ignored=ignored))
    return replace(listing, notes=(*listing.notes, *notes))


def _with_columns(listing: Listing, type_: ElementType, lying: Sequence[str], turn: Array) -> Listing:
    """The listing with items turned where `turn` says an orientation, and with the sides of their images."""
    assert listing.sides is not None  # noqa: S101 - which have said so
    sides = np.array(listing.sides, np.float64)
    columns = dict(listing.columns)
    for name in lying:
        column = columns.get(name)
        if not isinstance(column, Ragged):
            continue  # pixels are turned when they are decoded
        values, of = np.array(column.values), np.repeat(np.arange(len(column)), column.lengths)
        for orientation in np.unique(turn[turn > 0]).tolist():
            own = np.flatnonzero(turn[of] == orientation)
            values[own] = kind_of(type_[name]).turned(values[own], orientation, sides[of[own]], type_[name])
        columns[name] = Ragged(values, column.lengths)
    swapped = turn >= 5
    sides[swapped] = sides[swapped][:, ::-1]
    return replace(listing, columns=columns, sides=sides)


def _told(files: Sequence[str], records: Array, *, ignored: bool) -> Note:
    first = f"the annotations of {files[int(records[0])]} are of the image {'upright' if ignored else 'as it is stored'}"
    message = f"{first}, as the size in them says, and are turned with it; so it is with {len(records):,} of {count(len(files), 'image')}"
    return Note("PG660", message)


def _untold(files: Sequence[str], orientations: Array, untold: Array, lying: Sequence[str], *, ignored: bool) -> Note:
    names = " and ".join(f"`{name}`" for name in lying)
    one = len(untold) == 1
    which = f"{count(len(untold), 'image')} {'has' if one else 'have'} an EXIF orientation"
    example = f"such as {files[int(untold[0])]} ({int(orientations[untold[0]])})"
    taken = "as they are stored" if ignored else "upright"
    message = f"{which}, {example}, and no size tells how {names} {'was' if len(lying) == 1 else 'were'} drawn: taken for {taken}"
    if ignored:
        return Note("PG661", message, "where they were drawn on the upright images, leave `exif: ignore` out")
    return Note("PG661", message, "where they were drawn on the stored pixels, begin with `decode: {exif: ignore}`")


def _stored(path: str) -> tuple[int, int]:
    found = sides_of(path)
    return (0, 0) if found is None else found.stored


def _orientations(spec: PipelineSpec, listing: Listing, image: str, files: Sequence[str], progress: Callable[[int], None] | None) -> Array:
    """The orientation of each image, uint8 `(n,)`."""
    total = len(files)
    folder = kept_folder(spec.runtime, INDEXES) if total >= _WORTH_KEEPING else None
    bare = replace(listing, columns={}, labels=None, beside={image: listing.beside[image]} if image in listing.beside else {})
    key = hashlib.sha256(f"{fingerprint(bare)}\n{image}\n{_FORMAT}".encode()).hexdigest()[:32] if folder is not None else ""
    name = f"{key}.turns.{INDEXES}"
    if folder is not None:
        try:
            with open_kept(folder, name) as stream:
                held: Array = np.frombuffer(stream.read(), np.uint8)
            if len(held) == total:
                return held
        except (OSError, ValueError):
            pass
    found: Array = np.ones(total, np.uint8)
    first = range(0, total, max(1, total // _LOOKED_AT)) if mounted(files[0]) is not None else range(total)
    with ThreadPoolExecutor(threads(spec.runtime)) as pool:
        _look(pool, files, first, found, progress)
        if len(first) < total and (found > 1).any():
            _look(pool, files, range(total), found, progress)
    if folder is not None:
        try:
            keep(folder, name, [found.tobytes()])
        except OSError as error:
            log.warning("the orientations of images cannot be kept in %s: %s", folder, (error.strerror or str(error)).lower())
    return found


def _look(pool: ThreadPoolExecutor, files: Sequence[str], which: range, found: Array, progress: Callable[[int], None] | None) -> None:
    parts = [which[at : at + _AT_ONCE] for at in range(0, len(which), _AT_ONCE)]
    for part, own in zip(parts, pool.map(lambda part: [orientation_of(files[i]) for i in part], parts), strict=True):
        found[list(part)] = own
        if progress is not None:
            progress(part[-1] + 1)
