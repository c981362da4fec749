"""Defines the reader: what a source gives beside the list of its records, so that however they are stored they are read alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from pipegen.ops.sources.listing.strings import Ints

    Read: TypeAlias = Callable[..., Any]
    """From the places of records to a feature of theirs, as TensorFlow ops: scalars where it is encoded, else `(..., *shape)`."""
    Hold: TypeAlias = Callable[[Any], Read]
    """Holds an array `(n, ...)` where TensorFlow reads it, and returns what takes rows of it."""
    Together: TypeAlias = Callable[..., dict[str, Any]]
    """From the names of features and the places of records, int64 `(n,)` each, to these features: lists of n tensors, or tensors
    `(n, ...)`, strings where they are encoded."""


class Reader:
    """Reads what is stored of a source's records. To store them in another way takes a source in a file of its own, and in it a reader.

    `Source.list` is the index: it lists the records as a table, or as `Shards`. From it follow the place that a record is read by, which
    is the path of its file, or its row where records are `numbered`, or in shards the number of the file and the row in it; and what
    the record is called in errors: its file, its row, or the file of the shard and the row.
    """

    numbered: ClassVar[bool] = False
    """Whether records are rows that have no files, and are known by their numbers."""
    archived: ClassVar[bool] = False
    """Whether records are read by their numbers and are known by paths all the same, as the members of an archive are."""
    in_place: bool = False
    """Whether a graph maps the files into memory by name, so that they have to stay where they are."""
    at_once: int = 1
    """Records that reading one takes along, which is what it costs. Above 1 access is not random: an order must not jump about."""
    called: str = "files"
    """What is read whole where access is not random, in words: files, row groups, chunks."""
    fetches: bool = False
    """Whether reading waits for other machines: what `open` and `open_together` return then has `ahead`, which takes the places of records
    `(n,)`, begins to fetch them, and gives an op that waits for nothing."""
    checksums: str | None = None
    """What checksums the format has, in words, of which `validate --data=all` compares every one; empty where it has none, and `None` where
    a record is a file or a row of its own."""
    starts: Ints | None = None
    """Of numbered records that are read block by block: the first number of each block, int64 `(blocks + 1,)` with the end."""

    def open(self, feature: str, ram_budget: int, hold: Hold) -> Read:
        """Returns what reads a feature.

        Args:
            feature: Its name.
            ram_budget: Bytes of memory that may be used.
            hold: What to hold an array with, so that it is no part of a graph.
        """
        raise NotImplementedError

    def open_together(self, features: Iterable[str], ram_budget: int, hold: Hold) -> Together | None:
        """Returns what reads several features of records in one go, where a record holds all of them; `None` where each has its own `open`.

        Args:
            features: The names of all that will be asked for.
            ram_budget: Bytes of memory that may be used.
            hold: What to hold an array with, so that it is no part of a graph.
        """
        return None

    def stored(self, feature: str, *place: Ints) -> Sequence[Any]:
        """Reads what is stored of a feature, without TensorFlow: bytes where it is encoded, else arrays.

        Args:
            feature: An image, or another feature that is read with its record.
            place: The places of records, whole numbers `(n,)`: their rows, or the numbers of their files and the rows in these.

        Raises:
            OSError: When it cannot be read.
            ValueError: When it is damaged, or the record has none.
        """
        raise NotImplementedError

    def check(self) -> None:
        """Looks whether the files are still what they were when they were listed. Asked when they are opened, and at each epoch.

        Raises:
            DataError: When one has changed.
        """

    def python(self, features: Iterable[str], ram_budget: int) -> str:
        """Says in words what reading these features calls Python for. Without any it runs in every process that has TensorFlow."""
        return ""

    def block_rows(self, rows: Ints) -> Ints | None:
        """Returns how many records a block holds, of files of so many: int64 `(files,)`. `None` where a file is one block, or has none."""
        return None

    def hold_window(self, num_bytes: int, ram_budget: int) -> None:
        """Learns that an order jumps about among so many bytes of records before it goes on; `open` is called after it."""

    def keeps(self) -> tuple[str, bool]:
        """Returns what it keeps in this process, in words, and whether a graph that may run elsewhere would need that, too."""
        return "", False

    def held_bytes(self, features: Iterable[str], ram_budget: int) -> int:
        """Counts the bytes of arrays in memory that a graph would hold which reads these features elsewhere."""
        return 0

    def verifying(self) -> Reader:
        """Returns a reader of the same that compares the checksums of what it reads, where the format has any that it passes over."""
        return self

    def damaged_files(self) -> Iterator[tuple[str, str]]:
        """Reads every file that a checksum was written down for, and yields the paths of those that have another, and what is wrong.

        Raises:
            OSError: When one cannot be read.
        """
        return iter(())

    def labels(self, files: Ints) -> Ints | None:
        """Lists the class of every record of shards, int32, one file after another; `None` without labels.

        Asked for only where something depends on labels before records are read. `files` are numbers as `Shards.numbers` has them.
        """
        return None

    def digest(self, *, whole: bool = False) -> str:
        """Identifies what is stored, in hexadecimal, as far as keys and sizes do not; large arrays by a sample of rows, unless `whole`."""
        return ""


class FileReader(Reader):
    """Reads records whose encoded features are a file each."""

    def open(self, feature: str, ram_budget: int, hold: Hold) -> Read:
        """Returns what reads the bytes of a file, from its path."""
        from pipegen.ops.lowering.stored import read_file

        return read_file
