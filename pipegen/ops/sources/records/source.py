"""The base of sources whose files hold many records each: finds the shards, keeps their index, and lists them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, field_validator

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.mounts import content_of
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.sources.features.arrays import FeatureName
from pipegen.ops.sources.listing.base import Listing, Note
from pipegen.ops.sources.listing.shards import Shards
from pipegen.ops.sources.records.described import DescribedRecords
from pipegen.ops.sources.records.features import RecordFeature
from pipegen.ops.sources.records.findings import compression, finding_notes, tallied, unpacking_help
from pipegen.ops.sources.records.index import RecordIndex, ShardRecords, build_index
from pipegen.ops.sources.records.labels import LabelColumn
from pipegen.ops.sources.records.paths import Found, expand, find_shards

if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Iterable

    from pipegen.ops.sources.listing.reader import Reader
    from pipegen.ops.sources.listing.strings import Ints

Path_ = Annotated[str, Field(min_length=1)]


@dataclass(frozen=True)
class Indexed:
    """Holds what is known of shards once they are indexed.

    Attributes:
        root: The absolute folder that they lie in.
        shards: The files.
        index: Where their records are.
        notes: What was odd.
    """

    root: str
    shards: Sequence[Found]
    index: RecordIndex
    notes: tuple[Note, ...]


class RecordSource(DescribedRecords):
    """Files that hold many records each: shards. A record is known as `SHARD#NUMBER`, counted from 0.

    A source of a format derives from it and says how a shard is indexed (`index_shard`) and what reads its records (`reader`). One whose
    library finds records by their numbers has no `parts()`, and its `index_shard` counts them: `counted(rows)`.
    """

    suffixes: ClassVar[tuple[str, ...]]
    """How the names of shards end, where `path` is a folder."""
    unpacks: ClassVar[Mapping[str, str]] = {}
    """By the `compression` that shards may have, what stands behind their names then."""
    marks: ClassVar[tuple[str, ...]] = ()
    """Names of files of which a folder holds one where it is a shard as a whole."""
    checksums: ClassVar[str] = ""
    """What checksums the format has; see `Reader.checksums`."""
    labels_of_one_type: ClassVar[bool] = False
    """Whether the reader takes a label from all records as the type that the first one has: a number, or text."""
    indexed_from: ClassVar[int] = 1
    """The version of what `index_shard` finds: raise it where that changes, and indexes that were kept are made again."""

    path: Path_ | Annotated[tuple[Path_, ...], Field(min_length=1)]
    """The shards, relative to the spec's file: a file, a folder, a pattern such as `data/train-*`, a range such as
    `train-{000..099}.tar`, or a list of these."""
    features: Annotated[dict[FeatureName, RecordFeature], Field(min_length=1)]
    """What each record holds, by the name of the feature: `{image: {kind: image, key: image/encoded}, label: {kind: label}}`."""

    @field_validator("path")
    @classmethod
    def _sound_braces(cls, path: str | tuple[str, ...]) -> str | tuple[str, ...]:
        for one in (path,) if isinstance(path, str) else path:
            next(expand(one))
        return path

    # What every format has in common

    def has_folders(self) -> bool:
        """Yes: shards may lie in a folder for each split."""
        return True

    def key_of(self, name: str) -> str:
        """Returns the key that holds a feature."""
        return self.features[name].key or name

    def list(self, base: Path, progress: Callable[[int], None] | None = None, data: Mapping[str, object] | None = None) -> Listing:
        """Index the shards; see `Source.list`. A shard that is damaged is an error note.

        Raises:
            OpError: `PG401` and `PG402` as `find_shards`, `PG402` where no shard holds a record, `PG430` for one that cannot be read,
                `PG431` where the records hold something else than the features say, `PG420` for labels that name no class.
        """
        found = self._indexed(base, progress)
        choosing = {name: self._labels(name, found) for name, feature in self.features.items() if feature.chosen}
        if not choosing:
            return self.listed(found)
        from pipegen.ops.sources.records.chosen import StoredLabels, chosen

        stored = {name: StoredLabels.of(name, self.features[name], column) for name, column in choosing.items()}
        plain = self.model_copy(update={"features": {**self.features, **{name: held.feature for name, held in stored.items()}}})
        return chosen(plain.listed(found), stored, self.class_feature())

    def _indexed(self, base: Path, progress: Callable[[int], None] | None) -> Indexed:
        beside: builtins.list[Note] = []
        root, shards = find_shards(str(base), self.path, self.shard_endings(), self.marks, beside, self.unpacks)
        index = build_index(
            shards,
            self._index,
            parts=len(self.parts()),
            name=f"{self.op}\0{self.indexed_from}\0{root}\0{self.parts()}{self.index_options()}",
            folder=self._folder,
            progress=progress,
        )
        notes = [_damaged(shard, damage) for shard, damage in zip(shards, index.damage, strict=True) if damage]
        found = [(shard.path, findings) for shard, findings in zip(shards, index.findings, strict=True)]
        empty = {place for place, rows in enumerate(index.rows) if not rows and not index.damage[place] and not found[place][1]}
        notes += finding_notes((path, {"empty": (1, "")} if place in empty else own) for place, (path, own) in enumerate(found))
        nothing = not int(index.first[-1])
        _raise_grave(notes if nothing else ())
        notes += [*self.noted(shards, index), *beside]
        if nothing:
            _raise_grave(notes)
            help_ = next((f"{note.message}; {note.help}" if note.help else note.message for note in notes if note not in beside), None)
            raise OpError("PG402", f"there is no record in {shards[0].path!r}{_others(len(shards) - 1)}", field="path", help=help_)
        self.examine(shards, index)
        return Indexed(root, shards, index, tuple(notes))

    def listed(self, found: Indexed) -> Listing:
        """Returns the listing of indexed shards whose labels are taken as they are stored.

        Raises:
            OpError: `PG420` for labels that name no class.
        """
        import numpy as np

        shards, index, notes = found.shards, found.index, [*found.notes]
        type_, main = self.infer(), self.class_feature()
        columns = {name: self._labels(name, found) for name, feature in self.features.items() if kind_of(feature).labels}
        for name, column in columns.items():
            type_ = type_.replace(**{name: type_[name].with_(classes=len(column.names))})
            notes += self._scanned(name, column)
        reader = self.reader(shards, index, columns)
        reader.checksums = self.checksums
        return Listing(
            found.root,
            [shard.key for shard in shards],  # type: ignore[arg-type]
            None,
            columns[main].names if main is not None else (),
            self.record_bytes(shards, index),
            tuple(notes),
            readers={"": reader},
            column_classes={name: column.names for name, column in columns.items() if name != main},
            shards=Shards(index.rows, np.arange(len(shards)), index.digests, reader.block_rows(index.rows)),  # type: ignore[arg-type]
            type=type_,
        )

    def _labels(self, name: str, found: Indexed) -> LabelColumn:
        def read(shard: int) -> Sequence[Any]:
            if not found.index.rows[shard]:
                return ()
            try:
                return self.stored_labels(name, found.shards[shard], *found.index.of(shard))
            except (OSError, ValueError) as error:  # an index that was kept hides that the file is damaged
                raise OpError("PG430", f"the labels of {found.shards[shard].path!r} cannot be read: {error}") from None

        def first() -> Any:
            return self.first_label(name, found.shards, found.index)

        about = name, self.features[name], found.shards, found.index, read, first, self._folder
        return LabelColumn(*about, one_type=self.labels_of_one_type)

    def _scanned(self, name: str, column: LabelColumn) -> builtins.list[Note]:
        """Notes about labels that had to be read for their classes."""
        if self.features[name].classes is not None:
            return []
        message = f"`{name}` does not say its classes, so the labels of all {column.total:,} records were read once to find them"
        help_ = write(f"classes: {len(column.names)}", "arguments", "{} says how many there are, and a list what they are called")
        return [*column.notes, Note("PG432", message, help_, f"features.{name}")]

    def _index(self, path: str, size: int) -> ShardRecords:
        """Finds the records of one shard as `index_shard`, and tells one that is compressed from one that is damaged.

        Raises:
            OpError: `PG430` for one that is compressed as the source can read it, and does not say so.
        """
        found = self.index_shard(path, size)
        packed = compression(content_of(path, 16)) if found.damage and not len(found.offsets) and not os.path.isdir(path) else ""
        if packed in self.unpacks:
            raise OpError("PG430", f"{path!r} is compressed by {packed}", field="path", help=unpacking_help(packed))
        return replace(found, damage="", findings=tallied([("compressed", packed)])) if packed else found

    # What each format says

    def shard_endings(self) -> tuple[str, ...]:
        """Returns how the names of shards end, where `path` is a folder."""
        return self.suffixes

    def record_bytes(self, shards: Sequence[Found], index: RecordIndex) -> Ints:
        """Returns the bytes that the records of each shard take when they are read, int64; by default those of the file."""
        import numpy as np

        return np.array([shard.size for shard in shards], np.int64)

    def parts(self) -> tuple[str, ...]:
        """Returns the names of the parts of a record that the index knows the places of; by default the record as a whole."""
        return ("",)

    def index_options(self) -> str:
        """Returns what else `index_shard` depends on, as text."""
        return ""

    def index_shard(self, path: str, size: int) -> ShardRecords:
        """Finds the records of one shard. It runs in threads, and reads as little as it can.

        Raises:
            OSError: Where it cannot be read.
            OpError: Where it is something else altogether.
        """
        raise NotImplementedError

    def noted(self, shards: Sequence[Found], index: RecordIndex) -> Iterable[Note]:
        """Reports what is odd about the shards, where the format writes down which there are; by default nothing.

        Raises:
            OpError: `PG401` where one is missing.
        """
        return ()

    def examine(self, shards: Sequence[Found], index: RecordIndex) -> None:
        """Looks into the first record.

        Raises:
            OpError: `PG431` where it does not hold what the features say.
        """

    def stored_labels(self, name: str, shard: Found, offsets: Ints, lengths: Ints) -> Sequence[Any]:
        """Reads what is stored of a label of each record of a shard, as it is stored: numbers, texts or bytes.

        Args:
            name: The label.
            shard: The file.
            offsets: As in `ShardRecords`.
            lengths: Likewise.

        Raises:
            OpError: `PG431` where a record has no such label.
        """
        raise NotImplementedError

    def first_label(self, name: str, shards: Sequence[Found], index: RecordIndex) -> Any:
        """Reads what is stored of the label of the first record; for errors see `stored_labels`."""
        shard = int((index.rows > 0).argmax())
        offsets, lengths = index.of(shard)
        return self.stored_labels(name, shards[shard], offsets[:1], lengths[:1])[0]

    def reader(self, shards: Sequence[Found], index: RecordIndex, labels: Mapping[str, LabelColumn]) -> Reader:
        """Returns what reads the records; `labels` has the column of each label."""
        raise NotImplementedError


def _raise_grave(notes: Iterable[Note]) -> None:
    """Raises the first note that is an error.

    Raises:
        OpError: With what it says.
    """
    grave = next((note for note in notes if note.severity == "error"), None)
    if grave is not None:
        raise OpError(grave.code, grave.message, field=grave.field, help=grave.help)


def _damaged(shard: Found, damage: str) -> Note:
    help_ = ("write the file again", "`errors: {exclude: FILE}` leaves out whole shards that FILE names")
    return Note("PG430", f"{shard.path!r} is damaged {damage}", help_, "path", "error")


def _others(n: int) -> str:
    return f" nor in {n} other shard{'s' * (n > 1)}" if n else ""
