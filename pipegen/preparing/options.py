"""The options and the result of `pipegen prepare`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from pipegen.frozen import dataclass
from pipegen.terminal import masked

Format = Literal["raw", "jpeg", "tfrecord", "webdataset", "array_record"]
FORMATS: tuple[Format, ...] = get_args(Format)
OF_RECORDS: frozenset[Format] = frozenset({"tfrecord", "webdataset", "array_record"})
"""Formats of whole records, which other programs can read."""
Encoding = Literal["jpeg", "png", "original"]
ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
QUALITY = 90


def not_here(out: str) -> str | None:
    """Explains that a store cannot be written to an address; `None` for a local folder."""
    if "://" not in out:
        return None
    return f"a store needs a folder, and {masked(out)} is an address: prepare into a folder, then copy it there, or mount the bucket"


@dataclass(frozen=True)
class Options:
    """The options of preparing; see the arguments of `pipegen.prepare`. `Work` chooses an encoding that is `None`."""

    format: Format = "raw"
    at: str | None = None
    shorter_side: int | None = None
    quality: int = QUALITY
    encoding: Encoding | None = None

    @property
    def lossy(self) -> bool:
        """Images are encoded as JPEG."""
        return self.format != "raw" and self.encoding == "jpeg"

    @property
    def keeps_files(self) -> bool:
        """The files of images are stored unchanged."""
        return self.encoding == "original"

    def changes(self) -> dict[str, int]:
        """Lists the deviations from the spec, as in the section `source`."""
        found = {} if self.shorter_side is None else {"shorter_side": self.shorter_side}
        return found | ({"jpeg": self.quality} if self.lossy else {})

    def in_words(self) -> tuple[str, ...]:
        """Describes the deviations from the spec."""
        said = []
        if self.shorter_side is not None:
            said.append(f"images are shrunk to a shorter side of {self.shorter_side} pixels first, by `resize` with `antialias`")
        if self.lossy:
            said.append(f"images are encoded again, as JPEG of quality {self.quality}")
        return tuple(said)


@dataclass(frozen=True)
class Prepared:
    """A prepared store."""

    folder: Path  # the folder of the store
    spec: Path  # the file of the spec that reads the store and does the remaining steps
    steps: str  # the steps whose results are stored, in words
    rest: str  # the remaining steps, in words
    examples: int  # number of examples
    bytes: int  # the bytes of pixels or files
    shards: int  # number of shards
    written: int  # number of shards written now; the others existed
    changes: tuple[str, ...] = ()  # deviations from the original spec, in words; empty if results are equal
    rounded: bool = False  # values are equal but for rounding; else bit for bit
    reordered: bool = False  # training has another order, since shuffle windows count stored bytes, and blocks are those of the source
    left_out: int = 0  # number of damaged records of the training split that were left out, by `errors: {decode: {skip: …}}`
    verified: int | None = None  # number of examples compared with the results of the spec, besides all checksums; `None` without `verify`
