"""`TableReading`: the arguments for reading a table, which sources extend by features and joins use as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.ops.model import Model

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.ops.sources.tables.table import Table


class TableReading(Model):
    """Arguments for reading a table of one format."""

    def read(self, base: Path) -> Table:
        """Reads the table.

        Args:
            base: What relative paths are relative to.

        Raises:
            OpError: `PG401` if it does not exist, `PG421` if it cannot be read.
        """
        raise NotImplementedError
