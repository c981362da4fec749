"""Writes shards on Apache Beam: each worker lists the data for itself, and writes the shards that it is given as the local run does.

The data and the store lie where every worker sees them under the same paths.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipegen.errors import DataError
from pipegen.files import write_whole
from pipegen.ops.sources.prepared_store.layout import SHARDS
from pipegen.ops.sources.stores.base import MissingLibrary
from pipegen.phases.compilation import load
from pipegen.preparing.work import Work, listed
from pipegen.spec.allowed import CHECKED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipegen.preparing.options import Options

_FAILED = ".failed"
"""How the names of files end that say why a shard cannot be written."""
_LOOK_SECONDS = 1.0
"""Between two looks at which shards are there."""


@dataclass(frozen=True)
class Job:
    """Holds what a worker needs to know.

    Attributes:
        sections: The spec, whose paths are absolute.
        allow_code: Modules whose functions it may call.
        folder: Where the store is.
        options: How to prepare.
        key: Identifies everything that decides the bytes of the store.
    """

    sections: dict[str, Any]
    allow_code: tuple[str, ...]
    folder: str
    options: Options
    key: str


class Beam:
    """Runs the work on Apache Beam.

    Args:
        flags: Options of Beam and its runners, such as `--direct_num_workers=4`.
        allow_code: Modules whose functions the spec may call.
    """

    called = "--runner beam"

    def __init__(self, flags: Sequence[str], allow_code: Sequence[str]) -> None:
        self._flags, self._allow_code = list(flags), tuple(allow_code)

    def check(self) -> None:
        """Looks whether Beam is there.

        Raises:
            MissingLibrary: Without it.
        """
        try:
            import apache_beam  # noqa: F401
        except ImportError as error:
            raise MissingLibrary("Apache Beam", "beam", error) from None

    def run(self, work: Work, missing: Sequence[int], tell: Callable[[int], None]) -> None:
        """Writes the shards that are missing.

        Raises:
            DataError: For a record that cannot be read, and where Beam stops.
        """
        import apache_beam as beam
        from apache_beam.options.pipeline_options import PipelineOptions

        job = Job(work.fitted.spec.loaded.raw, self._allow_code, str(work.folder), work.options, work.key)
        for file in _failures(work.folder):
            file.unlink()
        with _told(work, tell):
            try:
                with beam.Pipeline(options=PipelineOptions(self._flags)) as pipeline:
                    numbers = pipeline | "shards" >> beam.Create(list(missing)) | beam.Reshuffle()
                    _ = numbers | "write" >> beam.Map(write_shard, job=job)
            except Exception as error:  # of whatever kind its runner raises
                raise DataError(f"Apache Beam stopped: {_last_line(error)}; the same command goes on where it was") from error
        for file in _failures(work.folder):
            raise DataError(file.read_text(encoding="utf-8"))


def write_shard(number: int, job: Job) -> None:
    """Writes one shard on a worker. A record that cannot be read is noted beside the shards: trying again would not help."""
    with _MAKING:
        if (job.key, job.folder) not in _WORKS:
            _WORKS[job.key, job.folder] = _work(job)
        work = _WORKS[job.key, job.folder]
    try:
        work.write(number)
    except DataError as error:
        write_whole(work.folder / SHARDS / f"{number:05d}{_FAILED}", str(error))


_MAKING = threading.Lock()
_WORKS: dict[tuple[str, str], Work] = {}
"""The work of each job that this process has a part in, by its key and its folder."""


def _work(job: Job) -> Work:
    """Lists the data as the process that asked has listed it.

    Raises:
        DataError: Where it is not the same here.
    """
    work = Work(listed(load(job.sections, allowed=CHECKED), job.allow_code), Path(job.folder), job.options)
    if work.key != job.key:
        raise DataError("the spec, its data, or pipegen itself is another on a worker than where it was started")
    return work


@contextmanager
def _told(work: Work, tell: Callable[[int], None]) -> Iterator[None]:
    """Counts meanwhile the examples of the shards that are there, whoever writes them."""
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


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
