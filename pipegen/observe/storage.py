"""The needs of a spec, and measurements of the storage of its files."""

from __future__ import annotations

import glob
import os
import random
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipegen.data.named_files import source_paths
from pipegen.diagnostics.diagnostic import Diagnostic
from pipegen.errors import SpecError
from pipegen.frozen import dataclass
from pipegen.phases.compilation import collect_data
from pipegen.phases.machine_settings import circumstances
from pipegen.phases.specs import Spec
from pipegen.plan.cost import plan_cost
from pipegen.plan.nodes import Cache, Plan

if TYPE_CHECKING:
    from pipegen.data.manifest import Manifest


_LISTED = 50_000  # the most files that are listed
_TAKEN = 3000  # the most files that are read
_LARGE = 4 << 20  # bytes from which a file counts as a shard, of which parts are read
_PART = 128 << 10
_CHUNK = 1 << 20
_SECONDS = 1.5  # seconds for each of the three measurements

Piece = tuple[str, int, int]  # a file, an offset, and a number of bytes


@dataclass(frozen=True)
class Rates:
    """Measured rates in bytes per second: of pieces in `random` order, alone or by several threads `together`, and in stored order.

    A piece is a file of so many `mean_bytes`, or a part of a large one (`shards`). `kept` is the share of pieces that were in memory,
    although dropped from the page cache.
    """

    random: float
    together: float
    sequential: float
    mean_bytes: float
    shards: bool
    kept: float


def files_of(path: str) -> list[str]:
    """Lists files below a folder or of a pattern, at most `_LISTED`; or the file itself."""
    if os.path.isdir(path):
        below = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names if not name.startswith("."))
        return list(islice(below, _LISTED))
    return list(islice(glob.iglob(path, recursive=True), _LISTED))


def measure(files: Sequence[str], threads: int) -> Rates | None:
    """Measures the reading of files; `None` if they are empty."""
    chance = random.Random(0)  # noqa: S311 - not secret
    taken = sorted(chance.sample(list(files), min(_TAKEN, len(files))))
    sizes = {name: os.path.getsize(name) for name in taken}
    total = sum(sizes.values())
    if not total:
        return None
    mean = total / len(taken)
    parts = ((name, i * _PART, _PART) for name, size in sizes.items() for i in range(min(size // _PART, 4096)))
    pieces: list[Piece] = list(parts) if mean >= _LARGE else [(name, 0, size) for name, size in sizes.items()]
    shuffled = chance.sample(pieces, len(pieces))
    third = max(1, len(pieces) // 3)
    kept: list[bool] = []
    one = _rate(shuffled[:third], 1, map, kept)
    with ThreadPoolExecutor(threads) as pool:
        several = _rate(shuffled[third : 2 * third] or shuffled, 4 * threads, pool.map, kept)
    start = chance.randrange(max(1, len(pieces) - third))
    order = _rate(pieces[start : start + third], 1, map, kept)
    return Rates(one, several, order, mean, mean >= _LARGE, sum(kept) / len(kept))


def _rate(pieces: Sequence[Piece], at_once: int, mapped: Callable[..., Iterable[Any]], kept: list[bool]) -> float:
    """Reads pieces, so many `at_once`, for `_SECONDS`; returns the bytes per second."""
    done, begin = 0, time.perf_counter()
    for at in range(0, len(pieces), at_once):
        for count, was_kept in mapped(_read, pieces[at : at + at_once]):
            done += count
            kept.append(was_kept)
        if time.perf_counter() - begin > _SECONDS:
            break
    return done / max(time.perf_counter() - begin, 1e-9)


def _read(piece: Piece) -> tuple[int, bool]:
    """Reads a piece; returns its bytes, and true if it was in memory although it was dropped."""
    name, begin, size = piece
    file = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.posix_fadvise(file, begin, size, os.POSIX_FADV_DONTNEED)
        kept, done = _in_memory(file, begin), 0
        with memoryview(bytearray(min(_CHUNK, size))) as room:
            while done < size and (count := os.preadv(file, [room[: size - done]], begin + done)):
                done += count
        return done, kept
    finally:
        os.close(file)


def _in_memory(file: int, begin: int) -> bool:
    try:
        return os.preadv(file, [bytearray(1)], begin, os.RWF_NOWAIT) > 0
    except OSError:  # not in memory, or not supported by the file system
        return False


def place_of(path: str) -> Path:
    """Finds the nearest existing folder or file above a pattern or a path."""
    whole = Path(path).absolute()
    return next(place for place in (whole, *whole.parents) if place.exists()).resolve()


@dataclass(frozen=True)
class Needs:
    """The needs of a spec, for its training split or its first one, and the rate of the model, else that at which cores prepare images."""

    spec: Spec
    images_per_s: float | None = None

    @property
    def paths(self) -> list[str]:
        """The files, folders and patterns that the source names."""
        given = [path for _, path in source_paths(self.spec.loaded.raw.get("source"), ("source",))]
        return [path for path in given if "://" not in path]

    @property
    def split(self) -> str:
        """The split."""
        return "train" if "train" in self.spec.compiled else next(iter(self.spec.compiled))

    @cached_property
    def listed(self) -> Manifest | Diagnostic | None:
        """The manifest of the data, or the finding that prevents it; `None` if the data comes from Python."""
        if self.spec.model.source.needs_data():
            return None
        try:
            return collect_data(self.spec)
        except SpecError as error:
            return error.diagnostics[0]

    @property
    def manifest(self) -> Manifest | None:
        """The manifest, if the data could be listed."""
        return None if isinstance(self.listed, Diagnostic) else self.listed

    @property
    def parts(self) -> dict[str, Manifest]:
        """The data of the split, by part of a mix; a single source is named ""."""
        return {} if self.manifest is None else dict(self.manifest.of(self.split))

    @property
    def files(self) -> list[str]:
        """Files of the split, at most `_TAKEN`; none if its records are rows of arrays."""
        found = [file for part in self.parts.values() for file in files_in(part, self.split)]
        if not found and any(part.blocks(self.split) is not None for part in self.parts.values()):
            return [file for path in self.paths for file in files_of(path)]  # a file whose rows are read block by block
        return found

    @property
    def example_bytes(self) -> float | None:
        """The mean size of a stored example of the split in bytes, if the data could be listed."""
        return None if self.manifest is None else self.manifest.mean_bytes(self.split) or None

    @property
    def threads(self) -> int | None:
        """The threads that the spec asks for; `None` for `auto`."""
        return None if self.spec.model.runtime.threads == "auto" else self.spec.model.runtime.threads

    @property
    def cache(self) -> str | None:
        """The kind of the plan's cache: `memory` or `disk`; `None` without one."""
        node = next((n for n in self._plan.nodes if isinstance(n, Cache)), None)
        return None if node is None else node.kind.name

    @property
    def _plan(self) -> Plan:
        return self.spec.compiled[self.split].plan

    def prepared_per_s(self, cores: int, file_bytes: float) -> float:
        """Estimates the images per second that a number of cores can prepare without a cache, by the cost model."""
        given = circumstances(self.spec.model, cores, file_bytes=file_bytes)
        return given.threads * 1e6 / plan_cost(self._plan, given).first_us

    def memory(self, cores: int) -> int:
        """Estimates the memory of the plan in bytes."""
        found, examples, file_bytes = self.manifest, None, None
        if found is not None:
            examples, file_bytes = found.num_examples(self.split), found.mean_bytes(self.split)
        return plan_cost(self._plan, circumstances(self.spec.model, cores, examples=examples, file_bytes=file_bytes)).bytes


def files_in(manifest: Manifest, split: str) -> list[str]:
    """Lists files of a split of one source, at most `_TAKEN`: images or shards."""
    manifest = manifest.own(split)
    listing = manifest.listing
    if listing.shards is not None:
        every: Sequence[str] = listing.location.paths.take(manifest.members[split].shards)  # type: ignore[attr-defined]  # it is sharded
    elif listing.in_files:
        every = manifest.files(split)
    else:
        return []
    if len(every) <= _TAKEN:
        return list(every)
    return [every[i] for i in sorted(random.Random(0).sample(range(len(every)), _TAKEN))]  # noqa: S311 - no secret
