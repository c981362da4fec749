"""The work of preparing, a shard at a time: each can be written by any process that has the spec and the data, and is written once.

A shard counts when the file that describes it is there, which is written last. So whatever stops the work, by `kill -9` or a loss of power,
leaves shards that are whole and others that are written anew.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from contextlib import ExitStack, suppress
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from pipegen.backend.datasets.engine import Engine
from pipegen.cache.key import key_of, plain
from pipegen.diagnostics.catalog import make
from pipegen.errors import DataError, SpecError
from pipegen.log import log
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.lowering.resizing import shorter_side_size
from pipegen.ops.sources.prepared_store.layout import PAGE, RECORDS, SHARDS, Pixels, Shard, put, shard_file
from pipegen.phases.compilation import of_first_view
from pipegen.preparing.compute import Computation
from pipegen.preparing.cut import Cut, NoCutError, find_cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pipegen.phases.specs import FittedSpec
    from pipegen.preparing.options import Options

SHARD_BYTES = 1 << 27
"""About so many bytes has a shard."""
_LARGEST_SHARD = 1 << 30
_SIDE = 8
"""A canvas for images of several sizes has sides that are multiples of this, so that rows are aligned."""
_TRIED = 32
"""Examples of each split that the size of encoded files is judged by."""


class Work:
    """Prepares the data of a spec.

    Args:
        fitted: The spec and its data, with what its steps have learned.
        folder: Where the store is.
        options: How to prepare.

    Raises:
        SpecError: `PG572` where nothing can be prepared.
    """

    def __init__(self, fitted: FittedSpec, folder: Path, options: Options) -> None:
        self.fitted, self.folder, self.options = fitted, folder, options
        self.model, self.manifest = fitted.spec.model, fitted.manifest
        self._locate = fitted.spec.loaded.locate.label
        plans = of_first_view(fitted).plans  # what all views share is in the plan of one
        try:
            self.cut: Cut = find_cut(self.model, plans, options.at)
        except NoCutError as error:
            raise SpecError([make("PG572", str(error), self._locate(("transforms",)), help=(error.help,))]) from None
        engine = Engine(fitted, plans)
        self._computations = {
            split: Computation(engine, plan, self.cut.stages[split], self.cut.type, options) for split, plan in plans.items()
        }
        self.pictured = [name for name, t in self.cut.type.items() if kind_of(t).pictured]

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
        most = {name: [0, 0] for name in self.pictured}
        scaled = None
        done = 0
        for split, computation in self._computations.items():
            for record, sizes in self._run(computation, split, 0, self.manifest.num_examples(split), None):
                for name in self.pictured:
                    height, width = (int(side) for side in sizes[name])
                    least = self.cut.least
                    if least is not None and height >= 2 * least[0] and width >= 2 * least[1]:
                        scaled = scaled or computation.locate(record)
                    if self.options.shorter_side is not None and min(height, width) > self.options.shorter_side:
                        height, width = shorter_side_size(height, width, self.options.shorter_side)
                    most[name] = [max(a, b) for a, b in zip(most[name], (height, width), strict=True)]
                done += 1
                progress(done)
        if scaled is not None and not self.options.changes():
            self._refuse_scaled(scaled)
        put(self._sizes_file, json.dumps(most).encode())

    def forget(self) -> None:
        """Forgets the sizes that were measured for something else."""
        self._sizes_file.unlink(missing_ok=True)

    def _refuse_scaled(self, file: str) -> None:
        message = f"the spec decodes large JPEGs at a fraction of their size, such as {file}, and which one depends on the steps behind"
        help_ = (
            "say `decode: {scaled: never}` in the spec: then the store is equal to it, bit for bit",
            "or store less on purpose: `--shorter-side 256` shrinks the images first, which changes what is computed",
        )
        raise SpecError([make("PG573", message, self._locate(("transforms",)), help=help_)])

    @property
    def _needs_sizes(self) -> bool:
        known = all(None not in self.cut.type[name].shape for name in self.pictured) and self.options.shorter_side is None
        canvas = self.options.format == "raw" and not known
        return canvas or (self.cut.least is not None and not self.options.changes())

    @property
    def _sizes_file(self) -> Path:
        return self.folder / SHARDS / "sizes.json"

    @cached_property
    def pixels(self) -> dict[str, Pixels]:
        """Says how the pixels of each feature are stored; known once they are measured."""
        if self.options.format != "raw":
            return {name: Pixels("files") for name in self.pictured}
        most = json.loads(self._sizes_file.read_text()) if self._needs_sizes else {}
        found = {}
        for name in self.pictured:
            t = self.cut.type[name]
            sides = t.shape[:2]
            if None in sides or self.options.shorter_side is not None:
                sides = tuple(-(-side // _SIDE) * _SIDE for side in most[name])
            found[name] = Pixels("rows", t.dtype, (int(sides[0] or 0), int(sides[1] or 0), int(t.shape[2] or 0)))
        return found

    # Shards

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

    @property
    def manifest_total(self) -> int:
        """Counts the examples of every split."""
        return sum(self.manifest.num_examples(split) for split in self.manifest.splits)

    def done(self, number: int) -> Shard | None:
        """Returns the description of a shard that is there whole; `None` for one that is not."""
        try:
            values = json.loads(self._about_shard(number).read_text())
            shard = Shard(**values)
            whole = all(os.stat(self.file(name, number)).st_size == size for name, size in shard.bytes.items())
        except (OSError, ValueError, TypeError):
            return None
        return shard if whole and self.columns_file(number).exists() else None

    def file(self, feature: str, number: int) -> Path:
        """Returns the file of a shard's feature."""
        return shard_file(self.folder, feature, self.pixels[feature].form, number)

    def columns_file(self, number: int) -> Path:
        """Returns the file of what a shard's records have beside pixels."""
        return self.folder / SHARDS / f"{number:05d}.npz"

    def _about_shard(self, number: int) -> Path:
        return self.folder / SHARDS / f"{number:05d}.json"

    def write(self, number: int, progress: Callable[[int], None] | None = None) -> Shard:
        """Writes one shard, unless it is there.

        Raises:
            DataError: For a record that cannot be read.
            OSError: When it cannot be written.
        """
        shard = self.done(number)
        if shard is not None:
            return shard
        shard = self.shards[number]
        sums, sizes = dict.fromkeys(self.pictured, 0), dict.fromkeys(self.pictured, 0)
        columns: dict[str, list[Any]] = {}
        fresh = {name: self.file(name, number).with_suffix(f".{os.getpid()}.part") for name in self.pictured}
        try:
            with ExitStack() as stack:
                streams = {name: stack.enter_context(open(file, "wb")) for name, file in fresh.items()}
                found = self._run(self._computations[shard.split], shard.split, shard.first, shard.count, self.pixels)
                for done, (_, example) in enumerate(found, 1):
                    for name, stream in streams.items():
                        content = example.pop(name)
                        content = memoryview(content) if isinstance(content, bytes) else content.data
                        if self.pixels[name].form == "files":
                            columns.setdefault(f"@place.{name}", []).append((sizes[name], content.nbytes))
                        stream.write(content)
                        sums[name] = zlib.crc32(content, sums[name])
                        sizes[name] += content.nbytes
                    for name, value in example.items():
                        columns.setdefault(name, []).append(value)
                    if progress is not None:
                        progress(done)
                for stream in streams.values():
                    _settle(stream)
            for name, file in fresh.items():
                os.replace(file, self.file(name, number))
        except BaseException:
            for file in fresh.values():
                with suppress(OSError):
                    file.unlink()
            raise
        self._keep_columns(number, columns)
        shard = Shard(shard.split, shard.first, shard.count, sums, sizes)
        put(self._about_shard(number), json.dumps(asdict(shard)).encode())
        return shard

    def _keep_columns(self, number: int, columns: Mapping[str, list[Any]]) -> None:
        file = self.columns_file(number)
        fresh = file.with_suffix(f".{os.getpid()}.part")
        with open(fresh, "wb") as stream:
            np.savez(stream, **{name: np.stack(values) if values else np.zeros(0) for name, values in columns.items()})  # type: ignore[arg-type]
            _settle(stream)
        os.replace(fresh, file)

    def examples(self, split: str, first: int, count: int) -> Iterator[dict[str, Any]]:
        """Computes anew what is stored of some examples."""
        return (example for _, example in self._run(self._computations[split], split, first, count, self.pixels))

    def _run(
        self, computation: Computation, split: str, first: int, count: int, pixels: dict[str, Pixels] | None
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """The numbers of examples in their split, and what is computed of each; the sizes of their images where `pixels` is not given."""
        made = computation.sizes(first, count) if pixels is None else computation.examples(first, count, pixels)
        record = first
        iterator = made.as_numpy_iterator()
        while True:
            try:
                example = next(iterator, None)
            except Exception as error:  # whatever TensorFlow raises for a file
                raise self._damaged(computation, record, error) from None
            if example is None:
                return
            yield record, example
            record += 1

    def _damaged(self, computation: Computation, record: int, error: Exception) -> DataError:
        from pipegen.backend.reading.damage import reason

        log.debug("%s", error)
        help_ = "list it in `errors: {exclude: FILE}`, which `pipegen validate SPEC --data=all --write-exclude FILE` writes"
        return DataError(f"cannot prepare {computation.locate(record)}: {reason(error)}; {help_}")

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
            tried = [sum(len(found[name]) for name in self.pictured) for found in self.examples(split, 0, min(left, _TRIED))]
            total += left * sum(tried) / max(1, len(tried))
        return int(1.1 * total)


def make_folders(folder: Path) -> None:
    """Makes the folders of a store."""
    for inner in (folder / RECORDS, folder / SHARDS):
        inner.mkdir(parents=True, exist_ok=True)


def _settle(stream: BinaryIO) -> None:
    """Waits until what was written is on the disk."""
    stream.flush()
    os.fsync(stream.fileno())
