"""The labels of records, which are read with the records, and all at once only where something depends on them before that."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pipegen.errors import OpError
from pipegen.kept import INDEXES, keep, open_kept
from pipegen.log import log
from pipegen.memory import available_cores
from pipegen.ops.sources.features.classes import read_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pipegen.ops.sources.listing.strings import Ints
    from pipegen.ops.sources.records.features import RecordFeature
    from pipegen.ops.sources.records.index import RecordIndex
    from pipegen.ops.sources.records.paths import Found

_MAGIC = b"pipegen labels\n"
_THREADS = 16


def named_classes(classes: int | tuple[str, ...], offset: int) -> tuple[str, ...]:
    """Returns the names of classes; of so many, their stored indices."""
    return classes if isinstance(classes, tuple) else tuple(map(str, range(offset, classes + offset)))


class LabelColumn:
    """The label of every record of a source, in source order, read when first asked for.

    Args:
        name: The feature.
        feature: Its arguments.
        shards: The files.
        index: Where their records are.
        read: From the number of a shard to what is stored of each record's label: class indices, or the names of classes.
        folder: Where they are kept once they are read; `None` for nowhere.
    """

    def __init__(
        self,
        name: str,
        feature: RecordFeature,
        shards: Sequence[Found],
        index: RecordIndex,
        read: Callable[[int], Sequence[int] | Sequence[str]],
        folder: Path | None,
    ) -> None:
        self._name, self._feature, self._read, self._folder = name, feature, read, folder
        self._shards, self._index = shards, index

    @property
    def total(self) -> int:
        """Counts the records."""
        return int(self._index.first[-1])

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the classes; where the spec does not say them, after every label has been read.

        Raises:
            OpError: `PG420`.
        """
        given = self._feature.classes
        return named_classes(given, self._feature.offset) if given is not None else self._found[1]

    def of(self, files: Ints) -> Ints:
        """Returns the class of every record of some shards, one shard after another, int32."""
        import numpy as np

        first = self._index.first
        return np.concatenate([np.zeros(0, np.int32), *(self._found[0][first[file] : first[file + 1]] for file in files)])

    @cached_property
    def _found(self) -> tuple[Ints, tuple[str, ...]]:
        import numpy as np

        feature = self._feature
        try:
            indices, names = read_labels(self._name, feature.classes, feature.offset, self.stored(), self.place)
        except OpError as error:
            field = f"features.{self._name}" + (f".{error.field}" if error.field else "")
            raise OpError(error.code, error.message, field=field, help=error.help) from None
        return indices.astype(np.int32), names

    def place(self, row: int) -> str:
        """Says whose label is that of a record."""
        import numpy as np

        shard = int(np.searchsorted(self._index.first, row, side="right")) - 1
        return f"the label of {self._shards[shard].path}#{row - int(self._index.first[shard])}"

    def stored(self) -> Any:
        """Reads all labels as they are stored: an array of whole numbers, or of texts."""
        import numpy as np

        kept = self._kept()
        if kept is not None:
            return kept
        shards = range(len(self._shards))
        with ThreadPoolExecutor(min(_THREADS, max(1, 4 * available_cores()))) as pool:
            each = list(pool.map(self._read, shards))
        every = [label for labels in each for label in labels]
        if any(isinstance(label, str) for label in every):
            names, codes = np.unique(np.array([str(label) for label in every]), return_inverse=True)
            self._keep([str(name) for name in names], codes.astype(np.int64))
            return names[codes]
        numbers = np.array(every, np.int64)
        self._keep(None, numbers)
        return numbers

    @cached_property
    def _file(self) -> str:
        about = [(s.key, s.path, s.size, s.mtime) for s in self._shards], self._index.digests, self._feature.key or self._name
        return f"{hashlib.blake2b(json.dumps(about).encode(), digest_size=16).hexdigest()}-labels.{INDEXES}"

    def _kept(self) -> Any:
        import numpy as np

        if self._folder is None:
            return None
        try:
            with open_kept(self._folder, self._file) as stream:
                content = stream.read()
            head = content.index(b"\n", len(_MAGIC))
            names = json.loads(content[len(_MAGIC) : head])
            found = np.frombuffer(content, "<i8", offset=head + 1)
        except (OSError, ValueError):
            return None
        if not content.startswith(_MAGIC) or len(found) != int(self._index.first[-1]):
            return None
        if names is None:
            return found
        return np.array(names)[found] if len(names) and found.min() >= 0 and found.max() < len(names) else None

    def _keep(self, names: list[str] | None, codes: Ints) -> None:
        if self._folder is None:
            return
        try:
            keep(self._folder, self._file, [_MAGIC, json.dumps(names).encode(), b"\n", codes.astype("<i8").tobytes()])
        except OSError as error:
            log.warning("the labels of the records cannot be kept in %s: %s", self._folder, (error.strerror or str(error)).lower())
