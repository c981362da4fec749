"""The work of preparing, a shard at a time: each can be written by any process that has the spec and the data, and is written once.

A shard counts when the file that describes it is there, which is written last. So whatever stops the work, by `kill -9` or a loss of power,
leaves shards that are whole and others that are written anew.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pipegen.backend.datasets.engine import Engine
from pipegen.cache.key import key_of, plain
from pipegen.diagnostics.catalog import make
from pipegen.errors import DataError, InternalError, SpecError
from pipegen.files import whole_file, whole_files, write_whole
from pipegen.ops.kinds.registry import kind_of, several_labels
from pipegen.ops.sources.prepared_store.checksums import checksum
from pipegen.ops.sources.prepared_store.layout import PAGE, SHARDS, Shard, shard_files
from pipegen.phases.compilation import bind, collect_data, of_first_view
from pipegen.phases.functions import allowed_modules, with_functions
from pipegen.phases.specs import FittedSpec
from pipegen.preparing.compute import Computation
from pipegen.preparing.cut import Cut, NoCutError, find_cut
from pipegen.preparing.formats import Described, Record, named
from pipegen.preparing.sizes import ChangedFilesError, are_needed, check_shrinking, largest, refusal, stored_pixels, with_encoding
from pipegen.terminal import log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pipegen.ops.sources.prepared_store.layout import Pixels
    from pipegen.phases.specs import Spec
    from pipegen.preparing.formats import ShardFormat
    from pipegen.preparing.options import Options

SHARD_BYTES = 1 << 27
"""About so many bytes has a shard."""
_LARGEST_SHARD = 1 << 30
_LEAVE_OUT = "list it in `errors: {exclude: FILE}`, which `pipegen validate SPEC --data=all --write-exclude FILE` writes"
_ENCODE = (
    "leave `--encoding` out: images are encoded as JPEG then",
    "or say `--encoding png`, which keeps every bit; `--at` may name a step before those that change them",
)
_ENCODABLE = ("uint8", "uint16")
_TRIED = 32
"""Examples of each split that the size of encoded files is judged by."""


class Work:
    """Prepares the data of a spec.

    Args:
        fitted: The spec and its data, with what its steps have learned.
        folder: Where the store is.
        options: How to prepare.

    Raises:
        SpecError: `PG572` where nothing can be prepared, `PG576` and `PG577` where not in this way.
    """

    def __init__(self, fitted: FittedSpec, folder: Path, options: Options) -> None:
        self.fitted, self.folder, self.options = fitted, folder, options
        self.model, self.manifest = fitted.spec.model, fitted.manifest
        self._locate = fitted.spec.loaded.locate.label
        plans = of_first_view(fitted).plans  # what all views share is in the plan of one
        try:
            self.cut: Cut = find_cut(self.model, plans, options.at)
            _check_encodable(self.cut, options)
            self.options = options = with_encoding(options, self.model, plans, self.cut)
        except NoCutError as error:
            raise SpecError([make("PG572", str(error), self._locate(("transforms",)), help=(error.help,))]) from None
        except ChangedFilesError as error:
            raise SpecError([make("PG577", f"{error}", self._locate(("transforms",)), help=_ENCODE)]) from None
        engine = Engine(fitted, plans)
        self._computations = {
            split: Computation(engine, plan, self.cut.stages[split], self.cut.type, options) for split, plan in plans.items()
        }
        self._left_out: set[str] = set()
        self.pictured = [name for name, t in self.cut.type.items() if kind_of(t).pictured]
        check_shrinking(fitted.spec, plans, self.cut, options)

    @property
    def done_steps(self) -> int:
        """Counts the spec's steps whose work is done in the store: none where files are kept as they are."""
        return 0 if self.options.keeps_files else self.cut.steps

    @property
    def reordered(self) -> bool:
        """Returns whether training goes through the store in another order: windows are of stored bytes, and blocks of the source's."""
        if "train" not in self.manifest.splits or self.model.shuffle == "none":
            return False
        return self.model.shuffle != "global" or self.manifest.listing.reader("train").at_once > 1

    @cached_property
    def key(self) -> str:
        """Identifies everything that decides the bytes of the store."""
        stages = [stage for own in self.cut.stages.values() for stage in own]
        splits = {split: self.manifest.num_examples(split) for split in self.manifest.splits}
        more = {"dealt": self.manifest.split_fingerprint, "splits": splits, "cut": self.cut.steps, "of": self.fitted.spec.hash}
        return key_of(self.model, self.manifest.fingerprint, stages, options=plain(self.options), shard=SHARD_BYTES, **more)

    # Sizes

    def measure(self, progress: Callable[[int], None]) -> None:
        """Finds how large the images are, where that is not known before, and keeps it for the next run; checks that no file would have
        been decoded at a fraction of its size.

        Raises:
            SpecError: `PG573`.
            DataError: For a record that cannot be read.
        """
        if not self._needs_sizes or self._sizes_file.exists():
            return
        most, scaled = largest(self._measured(progress), self.cut, self.options, self.pictured)
        if scaled is not None and not self.options.changes():
            split, record = scaled
            raise refusal(self._computations[split].locate(record), self._locate(("transforms",)))
        write_whole(self._sizes_file, json.dumps(most))

    def _measured(self, progress: Callable[[int], None]) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
        """Yields each record, and the sizes of its images."""
        done = 0
        for split, computation in self._computations.items():
            for record, sizes in self._run(computation, split, 0, self.manifest.num_examples(split), None):
                yield (split, record), sizes
                done += 1
                progress(done)

    def forget(self) -> None:
        """Forgets the sizes that were measured for something else."""
        self._sizes_file.unlink(missing_ok=True)

    @property
    def _needs_sizes(self) -> bool:
        return are_needed(self.cut, self.options, self.pictured)

    @property
    def _sizes_file(self) -> Path:
        return self.folder / SHARDS / "sizes.json"

    @cached_property
    def pixels(self) -> dict[str, Pixels]:
        """Says how the pixels of each feature are stored; known once they are measured."""
        measured = self.options.format == "raw" and self._needs_sizes
        most = json.loads(self._sizes_file.read_text()) if measured else {}
        return stored_pixels(self.cut, self.options, self.pictured, most)

    # Shards

    @cached_property
    def described(self) -> Described:
        """Describes what is stored; known once images are measured."""
        listing, type_ = self.manifest.listing, self.cut.type
        labels = [name for name, t in type_.items() if kind_of(t).counts]
        single = [name for name in labels if kind_of(type_[name]).labels and not several_labels(type_[name])]
        label = "label" if "label" in single else next(iter(single), None)
        classes = {name: tuple(names) for name, names in listing.column_classes.items() if name in labels}
        if label is not None and listing.class_names:
            classes[label] = tuple(listing.class_names)
        return Described(type_, self.pixels, classes, label)

    @cached_property
    def format(self) -> ShardFormat:
        """Returns what writes shards."""
        return named(self.options.format)(self.described)

    @cached_property
    def rows(self) -> int:
        """Rows of a full shard: whole pages of every feature that is stored as rows."""
        row = max((own.row for own in self.pixels.values()), default=0)
        if not row:
            return max(1, SHARD_BYTES // max(1, int(self.manifest.mean_bytes()) or 1))
        unit = math.lcm(*(PAGE // math.gcd(PAGE, own.row) for own in self.pixels.values()))
        return max(1, min(SHARD_BYTES // (unit * row), max(1, _LARGEST_SHARD // (unit * row)))) * unit

    @cached_property
    def shards(self) -> tuple[Shard, ...]:
        """Every shard, before it is written."""
        found = []
        for split in self.manifest.splits:
            n = self.manifest.num_examples(split)
            found += [Shard(split, first, min(self.rows, n - first)) for first in range(0, n, self.rows)]
        return tuple(found)

    @cached_property
    def files(self) -> list[dict[str, Path]]:
        """The files of each shard, by what they hold."""
        return shard_files(self.folder, self.shards, self.pixels, self.format.suffix)

    @property
    def manifest_total(self) -> int:
        """Counts the examples of every split."""
        return sum(self.manifest.num_examples(split) for split in self.manifest.splits)

    def done(self, number: int) -> Shard | None:
        """Returns the description of a shard that is there whole; `None` for one that is not."""
        try:
            values = json.loads(self.about_shard(number).read_text())
            shard = Shard(**values)
            whole = all(os.stat(file).st_size == shard.bytes[held] for held, file in self.files[number].items())
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return shard if whole and self.columns_file(number).exists() else None

    def columns_file(self, number: int) -> Path:
        """Returns the file of what a shard's records have beside pixels."""
        return self.folder / SHARDS / f"{number:05d}.npz"

    def about_shard(self, number: int) -> Path:
        """Returns the file that describes a shard, which is written last."""
        return self.folder / SHARDS / f"{number:05d}.json"

    def write(self, number: int, progress: Callable[[int], None] | None = None) -> Shard:
        """Writes one shard, unless it is there. Several processes may write the same one: the files of the last count, which are equal.

        Raises:
            DataError: For a record that cannot be read.
            OSError: When it cannot be written.
        """
        shard = self.done(number)
        if shard is not None:
            return shard
        shard = self.shards[number]
        columns: dict[str, list[Any]] = {}
        left = set(range(shard.first, shard.first + shard.count))
        with whole_files(self.files[number], self.folder / SHARDS) as fresh:
            with self.format.writer(fresh) as add:
                for record in self.records(shard.split, shard.first, shard.count):
                    left.discard(record.number)
                    places = add(record)
                    for name, value in (self._beside(record.values) | places).items():
                        columns.setdefault(name, []).append(value)
                    if progress is not None:
                        progress(record.number + 1 - shard.first)
            sums = {held: checksum(file) for held, file in fresh.items()}
            sizes = {held: file.stat().st_size for held, file in fresh.items()}
        self._keep_columns(number, columns)
        shard = Shard(shard.split, shard.first, shard.count - len(left), tuple(sorted(left)), sums, sizes)
        write_whole(self.about_shard(number), json.dumps(asdict(shard)))
        return shard

    def _beside(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Takes what is stored of a record beside its pixels: sizes only where these lie on a canvas."""
        sized = {f"@size.{name}" for name, own in self.pixels.items() if own.form != "rows"}
        return {name: value for name, value in values.items() if name not in self.pixels and name not in sized}

    def _keep_columns(self, number: int, columns: Mapping[str, list[Any]]) -> None:
        with whole_file(self.columns_file(number)) as stream:
            np.savez(stream, **{name: self._column(name, values) for name, values in columns.items()})

    def _column(self, name: str, values: Sequence[Any]) -> Any:
        """A column of a shard: a row for each record, or the items of all records one behind the other."""
        t = self.cut.type.get(name)
        if not values:
            return np.zeros(0)
        return np.concatenate(values) if t is not None and kind_of(t).ragged else np.stack(values)

    def same(self, number: int, count: int) -> bool:
        """Tells whether the first examples of a shard are stored as they are computed now, bit for bit."""
        shard, columns = self.shards[number], cast("dict[str, list[Any]]", {})

        def computed() -> Iterator[Record]:
            for record in islice(self.records(shard.split, shard.first, shard.count), count):
                for name, value in self._beside(record.values).items():
                    columns.setdefault(name, []).append(value)
                yield record

        if not self.format.same(self.files[number], computed()):
            return False
        with np.load(self.columns_file(number), allow_pickle=False) as stored:
            wanted = {name: self._column(name, values) for name, values in columns.items()}
            return all(values.tobytes() == stored[name][: len(values)].tobytes() for name, values in wanted.items())

    def records(self, split: str, first: int, count: int) -> Iterator[Record]:
        """Computes what is stored of some examples."""
        names = self._names[split]
        for number, values in self._run(self._computations[split], split, first, count, self.pixels):
            yield Record(number, names[number], values)

    @cached_property
    def _names(self) -> dict[str, Sequence[str]]:
        return {split: self.manifest.keys(split) for split in self.manifest.splits}

    def _run(
        self, computation: Computation, split: str, first: int, count: int, pixels: dict[str, Pixels] | None
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """The numbers of examples in their split, and what is computed of each; the sizes of their images where `pixels` is not given."""
        made = computation.sizes(first, count) if pixels is None else computation.examples(first, count, pixels)
        iterator = made.as_numpy_iterator()
        for record in range(first, first + count):
            try:
                example = next(iterator)
            except StopIteration:
                raise InternalError(f"the examples of {split} end before record {record}") from None
            except Exception as error:  # whatever TensorFlow raises for a file
                log.debug("%s", error)
                where, why = computation.locate(record), _reason(error)
                if split != "train" or self.model.errors.skip is None:
                    raise DataError(f"cannot prepare {where}: {why}; {_LEAVE_OUT}") from None
                if where not in self._left_out:
                    log.warning("%s is left out: %s", where, why)
                    self._left_out.add(where)
                continue
            yield record, example

    # Room

    def expected_bytes(self) -> int:
        """Returns the bytes of the shards that are not there yet; of encoded files by those of a few examples."""
        missing = [shard for number, shard in enumerate(self.shards) if self.done(number) is None]
        row = sum(own.row for own in self.pixels.values())
        if row or not missing:
            return row * sum(shard.count for shard in missing)
        total = 0.0
        for split in {shard.split for shard in missing}:
            left = sum(shard.count for shard in missing if shard.split == split)
            tried = [self.format.num_bytes(record) for record in self.records(split, 0, min(left, _TRIED))]
            total += left * sum(tried) / max(1, len(tried))
        return int(1.1 * total)


def _check_encodable(cut: Cut, options: Options) -> None:
    """Checks that what is to be encoded can be; `NoCutError` where it cannot."""
    for name, t in cut.type.items():
        if options.format != "raw" and kind_of(t).pictured and (t.dtype not in _ENCODABLE or t.shape[2] not in (1, 3, 4)):
            what = f"`{name}` has {t.shape[2]} channels of {t.dtype}, and an image file has 1, 3 or 4 of whole numbers of 8 or 16 bits"
            raise NoCutError(what, "`--format raw` stores it, and `--at` may name a step before it is that")


def listed(spec: Spec, allow_code: Iterable[str], data: Mapping[str, object] | None = None) -> FittedSpec:
    """Lists the data of a spec; for the arguments see `pipegen.prepare`.

    Raises:
        SpecError: When the spec or its data is wrong.
    """
    loaded = with_functions(spec, allowed_modules(allow_code))
    bound = bind(loaded, collect_data(loaded, None, data))
    return FittedSpec(loaded, bound.manifest, bound.plans, ())


def _reason(error: Exception) -> str:
    """Says why a record cannot be computed, without where in the graph that was."""
    from pipegen.backend.reading.damage import reason

    return reason(error).rpartition("Iterator::Root::Prefetch::ParallelMapV2: ")[2]
