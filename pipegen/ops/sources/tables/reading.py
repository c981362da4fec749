"""Defines the arguments that say which table is read, and how; a source adds its features to them, and a join takes them as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.ops.model import Model

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.ops.sources.tables.table import Table


class TableReading(Model):
    """Reads a table of one format."""

    def read(self, base: Path) -> Table:
        """Reads the table.

        Args:
            base: What relative paths are relative to.

        Raises:
            OpError: `PG401` when it does not exist, `PG421` when it cannot be read.
        """
        raise NotImplementedError
