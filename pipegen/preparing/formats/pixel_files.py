"""`raw` and `jpeg`: a file for each feature that has pixels, of rows of bytes or of encoded files, one behind the other."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.preparing.formats.base import ShardFormat

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pipegen.preparing.formats.base import Add, Record


class Format(ShardFormat):
    """Writes pixels into files that are mapped into memory."""

    @contextmanager
    def writer(self, files: Mapping[str, Path]) -> Iterator[Add]:
        """Open a file for each feature."""
        with ExitStack() as stack:
            streams = {name: stack.enter_context(open(file, "wb")) for name, file in files.items()}

            def add(record: Record) -> dict[str, tuple[int, int]]:
                places = {}
                for name, stream in streams.items():
                    content = _bytes(record.values[name])
                    if self.described.pixels[name].form == "files":
                        places[f"@place.{name}"] = (stream.tell(), content.nbytes)
                    stream.write(content)
                return places

            yield add

    def num_bytes(self, record: Record) -> int:
        return sum(_bytes(record.values[name]).nbytes for name in self.described.pixels)

    def same(self, files: Mapping[str, Path], records: Iterable[Record]) -> bool:
        with ExitStack() as stack:
            streams = {name: stack.enter_context(open(file, "rb")) for name, file in files.items()}
            for record in records:
                for name, stream in streams.items():
                    content = _bytes(record.values[name])
                    if stream.read(content.nbytes) != content:
                        return False
        return True


def _bytes(content: Any) -> memoryview:
    return memoryview(content) if isinstance(content, bytes) else np.ascontiguousarray(content).data
