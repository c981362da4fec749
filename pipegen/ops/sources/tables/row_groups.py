"""`RowGroups`: reads images from a column of Parquet files, by row group."""

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
_EMPTY_FIELD = "the field {!r} is empty; if a path beside it names the image, write the file again with the bytes"


class ArrowBlock:
    """The encoded bytes of a row group in one Arrow buffer; `empty` is the error for a row without any."""

    def __init__(self, column: Any, empty: str) -> None:
        self.column, self.empty = column, empty
        self.nbytes = int(column.nbytes)

    def take(self, rows: Ints) -> Any:
        """Returns the bytes of some rows as objects; `ValueError` for a row without any."""
        import numpy as np

        found: Any = np.empty(len(rows), object)
        for place, row in enumerate(rows.tolist()):
            value = self.column[row]
            if not value.is_valid:
                raise ValueError(self.empty)
            found[place] = value.as_py()
        return found


class RowGroups(BlockReader):
    """A reader of binary columns by row groups of Parquet files, each read once while its records are in use.

    Args:
        files: The absolute paths.
        columns: The column of each feature, and the field in it that holds the bytes, if any.
    """

    numbered: ClassVar[bool] = True
    called: str = "row groups"
    checksums: str | None = "those of pages, if written"

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
        """Returns the average bytes of a row in memory for each row group: int64 `(blocks,)`."""
        import numpy as np

        wanted = {name for name, _ in self.columns.values()}
        leaves = [leaves_of(file) for file in self.files]
        found = []
        for file, group in self._place:
            size = sum(leaf.unpacked for leaf in leaves[file][group] if leaf.name in wanted)
            found.append(size // max(1, held[file].row_group(group).num_rows))
        return np.array(found, np.int64)

    def load(self, block: int, feature: str) -> ArrowBlock:
        """Reads one column of a row group; `OSError` if that fails, or if its file changed."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        file, group = self._place[block]
        self._stamps[file].check()
        name, inner = self.columns[feature]
        try:
            # A new handle, since handles are not thread-safe. With given metadata, opening reads nothing.
            with pq.ParquetFile(self.files[file], metadata=self._metadata[file], page_checksum_verification=True) as opened:
                column = opened.read_row_group(group, columns=[name if inner is None else f"{name}.{inner}"], use_threads=False)[name]
            if len(column) != int(self.starts[block + 1] - self.starts[block]):
                raise ValueError(f"it has {len(column):,} values for {int(self.starts[block + 1] - self.starts[block]):,} rows")
            column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            if isinstance(column, pa.ChunkedArray):
                column = pa.concat_arrays(column.chunks)
            for part in inner.split(".") if inner is not None else ():
                column = column.field(part)
            return ArrowBlock(column, _EMPTY if inner is None else _EMPTY_FIELD.format(f"{name}.{inner}"))
        except (OSError, ValueError, pa.ArrowException) as error:
            raise OSError(f"row group {group} of {self.files[file]} cannot be read: {error}") from error

    def row_sizes(self) -> Ints:
        """Returns the bytes of each record, averaged over its row group: int64 `(n,)`."""
        import numpy as np

        return np.repeat(self.row_bytes, np.diff(self.starts))

    def digest(self, *, whole: bool = False) -> str:
        """Identifies the files by their footers, with place, size and extremes of every column; or, with `whole`, by content."""
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
