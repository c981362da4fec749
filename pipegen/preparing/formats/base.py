"""Defines the format of shards: what writes their files, and compares them with what the spec gives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.ops.families.decoder import HEAD, format_of
from pipegen.ops.kinds.registry import kind_of, several_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import TypeAlias

    from pipegen.ops.sources.prepared_store.layout import Pixels
    from pipegen.types import ElementType

    Add: TypeAlias = Callable[["Record"], dict[str, tuple[int, int]]]
    """Writes a record, and returns where its encoded files begin and how long they are: `@place.NAME`."""


_ENDINGS = {"JPEG": "jpg", "TIFF": "tif", "PPM, PGM or PBM": "ppm", "JPEG XL": "jxl"}
"""The endings of files whose format is called otherwise."""


@dataclass(frozen=True)
class Record:
    """Holds what is stored of one example.

    Attributes:
        number: Its number in its split.
        name: What it is called in the data that it comes from.
        values: `NAME` is a row of bytes, an encoded file, or numbers; `@size.NAME` height and width of an image.
    """

    number: int
    name: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Described:
    """Describes the examples of a store.

    Attributes:
        type: What one is.
        pixels: How those of each feature are stored.
        classes: The names of the classes of each label.
        label: The label that gives the data its classes.
    """

    type: ElementType
    pixels: Mapping[str, Pixels]
    classes: Mapping[str, tuple[str, ...]]
    label: str | None

    @cached_property
    def picture(self) -> str | None:
        """Names the feature that an example is a picture of: the first that is none of class indices."""
        return next((name for name in self.pixels if kind_of(self.type[name]).levels), None)

    def class_indices(self, name: str, value: Any) -> list[int]:
        """Returns the classes of an example: of a label that may have several those that are marked, and of items one of each."""
        if kind_of(self.type[name]).ragged:
            return [int(i) for i in value]
        if several_labels(self.type[name]):
            return [int(i) for i in value.nonzero()[0]]
        return [int(value)]

    def class_texts(self, name: str, value: Any) -> list[str]:
        """Returns the names of these classes."""
        return [self.classes[name][i] for i in self.class_indices(name, value)] if name in self.classes else []


class ShardFormat:
    """Writes shards of one format.

    Class attributes:
        suffix: How the names of files end that hold whole records; empty where each feature has files of its own.
    """

    suffix: ClassVar[str] = ""

    def __init__(self, described: Described) -> None:
        self.described = described

    @classmethod
    def check(cls) -> None:
        """Looks whether it can be written here.

        Raises:
            MissingLibrary: Without the library that writes it.
        """

    def writer(self, files: Mapping[str, Path]) -> AbstractContextManager[Add]:
        """Opens the files of a shard; they are whole when the context is left.

        Raises:
            OSError: When they cannot be written.
        """
        raise NotImplementedError

    def num_bytes(self, record: Record) -> int:
        """Returns the bytes that a record takes in its files."""
        raise NotImplementedError

    def same(self, files: Mapping[str, Path], records: Iterable[Record]) -> bool:
        """Tells whether a shard begins with these records, bit for bit."""
        raise NotImplementedError


def picture_format(content: bytes) -> str:
    """Names the format of an encoded image by its first bytes, as the endings of files do."""
    if content.startswith(b"\x89PNG"):
        return "png"
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "webp"
    named = format_of(content[:HEAD]) or "JPEG"
    return _ENDINGS.get(named, named.lower())
