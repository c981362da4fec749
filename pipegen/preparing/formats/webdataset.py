"""`webdataset`: tar archives whose members of one name are a record, such as `00000012.jpg`, `00000012.cls` and `00000012.json`."""

from __future__ import annotations

import io
import json
import tarfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pipegen.ops.kinds.registry import kind_of, several_labels
from pipegen.ops.sources.prepared_store.layout import RECORDS
from pipegen.preparing.formats.base import ShardFormat, picture_format

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pipegen.preparing.formats.base import Add, Record

_BLOCK = tarfile.BLOCKSIZE


class Format(ShardFormat):
    """Writes the members of each record one behind the other, with nothing in their headers that changes from run to run."""

    suffix: ClassVar[str] = ".tar"

    @contextmanager
    def writer(self, files: Mapping[str, Path]) -> Iterator[Add]:
        """Open an archive; what a member holds lies behind its header."""
        with tarfile.open(files[RECORDS], "w", format=tarfile.USTAR_FORMAT) as archive:

            def add(record: Record) -> dict[str, tuple[int, int]]:
                places = {}
                for name, member, content in self._members(record):
                    about = tarfile.TarInfo(member)
                    about.size, about.mode = len(content), 0o644
                    if name is not None:
                        places[f"@place.{name}"] = (archive.offset + _BLOCK, len(content))
                    archive.addfile(about, io.BytesIO(content))
                return places

            yield add

    def num_bytes(self, record: Record) -> int:
        return sum(_BLOCK + -(-len(content) // _BLOCK) * _BLOCK for _, _, content in self._members(record))

    def same(self, files: Mapping[str, Path], records: Iterable[Record]) -> bool:
        with tarfile.open(files[RECORDS]) as archive:
            for record in records:
                for _, member, content in self._members(record):
                    about = archive.next()
                    stream = archive.extractfile(about) if about is not None and about.name == member else None
                    if stream is None or stream.read() != content:
                        return False
        return True

    def _members(self, record: Record) -> Iterator[tuple[str | None, str, bytes]]:
        """Yields the feature that a member is the encoded file of, the member's name, and what it holds."""
        described, stem = self.described, f"{record.number:08d}"
        texts: dict[str, Any] = {"filename": record.name}
        for name, t in described.type.items():
            value = record.values[name]
            if name in described.pixels:
                ending = picture_format(value)
                yield name, f"{stem}.{ending}" if name == described.picture else f"{stem}.{name}.{ending}", value
                sizes = dict(zip(("height", "width"), (int(side) for side in record.values[f"@size.{name}"]), strict=True))
                texts |= sizes if name == described.picture else {}
            elif kind_of(t).labels:
                indices, names = described.class_indices(name, value), described.class_texts(name, value)
                if several_labels(t):
                    texts |= {name: indices, f"{name}_text": names}
                    continue
                yield None, f"{stem}.cls" if name == described.label else f"{stem}.{name}.cls", str(indices[0]).encode()
                texts |= {name: indices[0]} | ({f"{name}_text": names[0]} if names else {})
            else:
                names = described.class_texts(name, value)
                texts |= {f"{name}_text": names} if name in described.classes else {}
                content = io.BytesIO()
                np.save(content, value, allow_pickle=False)
                yield None, f"{stem}.{name}.npy", content.getvalue()
        yield None, f"{stem}.json", json.dumps(texts, sort_keys=True).encode()
