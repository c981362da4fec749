"""`Reader`: reads the records of a source, however they are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from pipegen.ops.fields.strings import Ints

Read: TypeAlias = Callable[..., Any]
"""Returns a feature at places of records, as TensorFlow ops: scalars if encoded, else `(..., *shape)`."""
Hold: TypeAlias = Callable[[Any], Read]
"""Holds an array `(n, ...)` in TensorFlow's memory, and returns a function that takes rows of it."""
Together: TypeAlias = Callable[..., dict[str, Any]]
"""Returns features by name, given their names and the places of records, int64 `(n,)` each: lists of n tensors, or tensors `(n, ...)`,
strings if encoded."""


class Reader:
    """A reader of a source's records. Another way of storing them needs a source in a file of its own, with a reader in it.

    `Source.list` is the index: it lists the records as `Location` or as `Shards`. The place of a record follows from it: the path of its
    file, its row, or, in shards, the number of the file and the row in it. Errors name a record likewise.
    """

    in_place: bool = False  # whether a graph maps the files into memory by name, so that they must not move
    at_once: int = 1  # number of records that reading one unpacks. Above 1 random access is expensive: an order must not jump about.
    called: str = "files"  # the word for what is read whole without random access: files, row groups, chunks
    keeps: str = ""  # what it keeps in this process, in words; a graph running elsewhere does not need it
    fetches: bool = False
    """Whether reading waits for the network. The results of `open` and `open_together` then have `ahead`, which starts fetching records at
    places `(n,)` and returns an op that does not wait."""
    checksums: str | None = None
    """Description of the format's checksums, which `validate --data=all` checks; empty if it has none, `None` if a record is a file or a
    row of its own."""
    starts: Ints | None = None
    """First record number of each block, int64 `(blocks + 1,)` with the end, for rows read block by block."""

    def open(self, feature: str, ram_budget: int, hold: Hold) -> Read:
        """Returns a function that reads a feature.

        Args:
            feature: Its name.
            ram_budget: Bytes of memory that may be used.
            hold: Holds an array outside of the graph.
        """
        raise NotImplementedError

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together | None:
        """Returns a function that reads several features of records at once; `None` if each has its own `open`, whose arguments are the
        same."""
        return None

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        """Reads the stored values of a feature without TensorFlow: bytes if encoded, else arrays.

        Args:
            feature: An image, or another feature that is read with its record.
            place: The places of records, integers `(n,)`: rows, or numbers of files and rows in them.

        Raises:
            OSError: A value cannot be read.
            ValueError: A value is damaged or missing.
        """
        raise NotImplementedError

    def file_of(self, *place: Ints) -> str | None:
        """Returns the path of the file that holds a record; `None` for rows of arrays and tables."""
        return None

    def check(self) -> None:
        """Raises `DataError` if a file changed since listing. Called on opening, and at each epoch."""

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        """Describes what reading these features calls Python for, or "": then any process with TensorFlow can read them."""
        return ""

    def hold_window(self, num_bytes: int, ram_budget: int) -> None:
        """Announces that an order jumps about within windows of `num_bytes`; called before `open`."""

    def held_bytes(self, features: Iterable[str], ram_budget: int) -> int:
        """Counts the bytes in memory that a graph reading these features elsewhere would hold."""
        return 0

    def verifying(self) -> Reader:
        """Returns a reader that also checks checksums which this one skips, if the format has any."""
        return self

    def damaged_files(self) -> Iterator[tuple[str, str]]:
        """Reads every file with a recorded checksum, and yields path and problem of those that differ. Raises `OSError` if a file cannot be
        read."""
        return iter(())

    def column(self, name: str, files: Ints) -> Ints | None:
        """Lists a label, int32, or a single number of every record of shards, file by file; a scalar if it is the same for all, `None` for
        other features.

        Called only if something depends on it before records are read. `files` are numbers as in `Shards.numbers`.
        """
        return None

    def lengths(self, feature: str) -> Ints | None:
        """Returns the length of a decoded feature along its first axis in every row, int64 `(rows,)`; `None` if it is not recorded."""
        return None

    def digest(self, *, whole: bool = False) -> str:
        """Identifies the stored content beyond keys and sizes, in hexadecimal; large arrays by a sample of rows, unless `whole`."""
        return ""


class FileReader(Reader):
    """A reader of encoded features with a file each."""

    def open(self, feature: str, ram_budget: int, hold: Hold) -> Read:
        from pipegen.lazy import tf

        return tf.io.read_file
