"""Writes shards on Apache Beam: each worker lists the data, and writes its shards like a local run.

All workers must see the data and the store under the same paths.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipegen.errors import DataError
from pipegen.files import write_whole
from pipegen.ops.sources.prepared import SHARDS
from pipegen.ops.sources.stores.base import needs
from pipegen.phases.compilation import load
from pipegen.preparing.options import Options
from pipegen.preparing.work import Work, listed
from pipegen.spec.allowed import CHECKED

_FAILED = ".failed"  # the suffix of files with the error of a shard
_LOOK_SECONDS = 1.0  # seconds between two counts of the written shards


class Beam:
    """A runner on Apache Beam, whose options are `flags` such as `--direct_num_workers=4`; the spec may call modules in `allow_code`."""

    def __init__(self, flags: Sequence[str], allow_code: Sequence[str]) -> None:
        self._flags, self._allow_code = list(flags), tuple(allow_code)

    def check(self) -> None:
        """Raises `MissingLibrary` if Beam is not installed."""
        with needs("Apache Beam", "beam"):
            import apache_beam  # noqa: F401

    def run(self, work: Work, missing: Sequence[int], tell: Callable[[int], None]) -> None:
        """Writes the missing shards; raises `DataError` for a record that cannot be read, and if Beam fails."""
        import apache_beam as beam
        from apache_beam.options.pipeline_options import PipelineOptions

        job = work.fitted.spec.loaded.raw, self._allow_code, str(work.folder), work.options, work.key
        for file in _failures(work.folder):
            file.unlink()
        with _told(work, tell):
            try:
                with beam.Pipeline(options=PipelineOptions(self._flags)) as pipeline:
                    numbers = pipeline | "shards" >> beam.Create(list(missing)) | beam.Reshuffle()
                    _ = numbers | "write" >> beam.Map(write_shard, *job)
            except Exception as error:  # runners raise errors of many types
                lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
                raise DataError(f"Apache Beam failed: {lines[-1]}; run the same command again to continue") from error
        for file in _failures(work.folder):
            raise DataError(file.read_text(encoding="utf-8"))


def write_shard(number: int, sections: dict[str, Any], allow_code: tuple[str, ...], folder: str, options: Options, key: str) -> None:
    """Writes one shard on a worker; raises `DataError` if its data differs from that of the starting process, whose work has a `key`.

    `sections` are the spec with absolute paths, which may call functions of the modules in `allow_code`. Stores the error of an unreadable
    record beside the shards, since a retry would not help.
    """
    with _MAKING:
        work = _WORKS.get((key, folder))
        if work is None:
            work = Work(listed(load(sections, allowed=CHECKED), allow_code), Path(folder), options)
            if work.key != key:
                raise DataError("the spec, its data, or pipegen itself differs between a worker and the machine that started it")
            _WORKS[key, folder] = work
    try:
        work.write(number)
    except DataError as error:
        write_whole(work.folder / SHARDS / f"{number:05d}{_FAILED}", str(error))


_MAKING = threading.Lock()
_WORKS: dict[tuple[str, str], Work] = {}  # the work of each job of this process, by key and folder


@contextmanager
def _told(work: Work, tell: Callable[[int], None]) -> Iterator[None]:
    """Reports progress meanwhile: counts the examples of the shards that workers have written."""
    done = threading.Event()

    def look() -> None:
        while not done.wait(_LOOK_SECONDS):
            tell(sum(shard.count for number, shard in enumerate(work.shards) if work.about_shard(number).exists()))

    looking = threading.Thread(target=look, name="pipegen-prepare", daemon=True)
    looking.start()
    try:
        yield
    finally:
        done.set()
        looking.join()


def _failures(folder: Path) -> list[Path]:
    return sorted((folder / SHARDS).glob(f"*{_FAILED}"))
