"""Reads the row groups of Parquet files: images whose bytes stand in a column."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.ops.sources.listing.blocks import BlockReader, Stamp
from pipegen.ops.sources.tables.parquet_footer import leaves_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipegen.ops.sources.listing.strings import Ints

_HASHED = 1 << 22
_EMPTY = "the cell is empty"
_EMPTY_FIELD = "the field {!r} is empty; where a path beside it names the picture, the file has to be written again with its bytes"


class ArrowBlock:
    """Holds the encoded bytes of a row group in one buffer of Arrow's; `empty` is said of a row that has none."""

    def __init__(self, column: Any, empty: str) -> None:
        self.column, self.empty = column, empty
        self.nbytes = int(column.nbytes)

    def take(self, rows: Ints) -> Any:
        """Returns the bytes of some rows as objects.

        Raises:
            ValueError: For a row without any.
        """
        import numpy as np

        found: Any = np.empty(len(rows), object)
        for place, row in enumerate(rows.tolist()):
            value = self.column[row]
            if not value.is_valid:
                raise ValueError(self.empty)
            found[place] = value.as_py()
        return found


class RowGroups(BlockReader):
    """Reads columns of bytes from the row groups of Parquet files, each once for as long as its records are in use.

    Args:
        files: The absolute paths.
        columns: The column of each feature: its name, and the field in it that holds the bytes, or `None`.
    """

    numbered: ClassVar[bool] = True
    called: str = "row groups"
    checksums: str | None = "those of pages, where the writer wrote them"

    def __init__(self, files: Sequence[str], columns: Mapping[str, tuple[str, str | None]]) -> None:
        import numpy as np
        import pyarrow.parquet as pq

        self.files, self.columns = tuple(files), dict(columns)
        self._stamps = [Stamp(file) for file in files]
        held = [pq.read_metadata(file) for file in files]
        sizes = [meta.row_group(i).num_rows for meta in held for i in range(meta.num_row_groups)]
        self._metadata = held
        self._place = [(file, i) for file, meta in enumerate(held) for i in range(meta.num_row_groups)]
        super().__init__(np.array(sizes, np.int64))
        self.row_bytes = self._row_bytes(held)

    def _row_bytes(self, held: Sequence[Any]) -> Ints:
        """Returns how many bytes a row of each row group takes in memory, on average: int64 `(blocks,)`."""
        import numpy as np

        wanted = {name for name, _ in self.columns.values()}
        leaves = [leaves_of(file) for file in self.files]
        found = []
        for file, group in self._place:
            size = sum(leaf.unpacked for leaf in leaves[file][group] if leaf.name in wanted)
            found.append(size // max(1, held[file].row_group(group).num_rows))
        return np.array(found, np.int64)

    def load(self, block: int, feature: str) -> ArrowBlock:
        """Reads one column of a row group.

        Raises:
            OSError: When it cannot be read, or its file was changed.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        file, group = self._place[block]
        self._stamps[file].check()
        name, inner = self.columns[feature]
        try:
            # A handle of its own: one is not to be used by two threads. With the metadata at hand, opening reads nothing.
            with pq.ParquetFile(self.files[file], metadata=self._metadata[file], page_checksum_verification=True) as opened:
                column = opened.read_row_group(group, columns=[name if inner is None else f"{name}.{inner}"], use_threads=False)[name]
            if len(column) != int(self.starts[block + 1] - self.starts[block]):
                raise ValueError(f"it has {len(column):,} values, and {int(self.starts[block + 1] - self.starts[block]):,} rows are due")
            column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            if isinstance(column, pa.ChunkedArray):
                column = pa.concat_arrays(column.chunks)
            for part in inner.split(".") if inner is not None else ():
                column = column.field(part)
            return ArrowBlock(column, _EMPTY if inner is None else _EMPTY_FIELD.format(f"{name}.{inner}"))
        except (OSError, ValueError, pa.ArrowException) as error:
            raise OSError(f"row group {group} of {self.files[file]} cannot be read: {error}") from error

    def row_sizes(self) -> Ints:
        """Returns the bytes of each record, on average over its row group: int64 `(n,)`."""
        import numpy as np

        return np.repeat(self.row_bytes, np.diff(self.starts))

    def digest(self, *, whole: bool = False) -> str:
        """Identifies the files by the metadata at their ends, which hold the place, size and extremes of every column; or by all bytes."""
        found = hashlib.blake2b(repr(sorted(self.columns.items())).encode(), digest_size=32)
        for file in self.files:
            with open(file, "rb") as stream:
                if not whole:
                    stream.seek(-8, 2)
                    length = int.from_bytes(stream.read(4), "little")
                    stream.seek(-8 - length, 2)
                while part := stream.read(_HASHED):
                    found.update(part)
        return found.hexdigest()
