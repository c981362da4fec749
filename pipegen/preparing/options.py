"""Holds what `pipegen prepare` was asked for, and what it did."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from pipegen.terminal import masked

if TYPE_CHECKING:
    from pathlib import Path

Format = Literal["raw", "jpeg", "tfrecord", "webdataset", "array_record"]
FORMATS: tuple[Format, ...] = ("raw", "jpeg", "tfrecord", "webdataset", "array_record")
OF_RECORDS: frozenset[Format] = frozenset({"tfrecord", "webdataset", "array_record"})
"""Formats whose shards other programs read, too."""
Encoding = Literal["jpeg", "png", "original"]
ENCODINGS: tuple[Encoding, ...] = ("jpeg", "png", "original")
QUALITY = 90


def not_here(out: str) -> str | None:
    """Says why a store cannot be written to an address, or nothing of a folder of this machine."""
    if "://" not in out:
        return None
    return (
        f"a store is written into a folder, and {masked(out)} is an address: prepare into a folder, then copy it there, or mount the bucket"
    )


@dataclass(frozen=True)
class Options:
    """Says how to prepare; for the arguments see `pipegen.prepare`.

    Attributes:
        encoding: Of images in whole records; `None` where it is yet to be decided, by `preparing/sizes.py`.
    """

    format: Format = "raw"
    at: str | None = None
    shorter_side: int | None = None
    quality: int = QUALITY
    encoding: Encoding | None = None

    @property
    def lossy(self) -> bool:
        """Returns whether images are encoded as JPEG."""
        return self.format != "raw" and self.encoding == "jpeg"

    @property
    def keeps_files(self) -> bool:
        """Returns whether the files of images are stored as they are."""
        return self.encoding == "original"

    def changes(self) -> dict[str, int]:
        """Returns what is computed otherwise than by the spec, as the section `source` has it."""
        found = {} if self.shorter_side is None else {"shorter_side": self.shorter_side}
        return found | ({"jpeg": self.quality} if self.lossy else {})

    def in_words(self) -> tuple[str, ...]:
        """Says the same in words."""
        said = []
        if self.shorter_side is not None:
            said.append(f"images are shrunk to a shorter side of {self.shorter_side} pixels first, by `resize` with `antialias`")
        if self.lossy:
            said.append(f"images are encoded again, as JPEG of quality {self.quality}")
        return tuple(said)

    def plain(self) -> dict[str, object]:
        """Returns it as plain values, without an encoding that a format has by itself: stores of before there was a choice are known."""
        values = asdict(self)
        return values if self.encoding != "jpeg" else {name: value for name, value in values.items() if name != "encoding"}


@dataclass(frozen=True)
class Prepared:
    """Holds what was prepared.

    Attributes:
        folder: Where the store is.
        spec: The file of the spec that reads it and does the rest.
        steps: The steps whose work is done in it, in words.
        rest: Those that are left, in words.
        examples: How many examples it has.
        bytes: The bytes of its pixels or files.
        shards: How many shards it has.
        written: How many of them were written now; the others were there.
        changes: What is computed otherwise than by the spec that it was prepared from, in words; none where it is equal, bit for bit.
        reordered: Whether training goes through the store in another order, as windows are of stored bytes, and blocks those of the source.
        left_out: How many damaged records of the training split were left out, as `errors: {decode: {skip: …}}` says.
        verified: How many examples were compared with what the spec gives, beside every checksum; `None` where that was not asked for.
    """

    folder: Path
    spec: Path
    steps: str
    rest: str
    examples: int
    bytes: int
    shards: int
    written: int
    changes: tuple[str, ...] = ()
    reordered: bool = False
    left_out: int = 0
    verified: int | None = None
