"""Prepares the data of a spec: checks the request, writes the shards, and completes the store."""

from __future__ import annotations

import errno
import fcntl
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pipegen.diagnostics.catalog import make
from pipegen.errors import DataError, OpError, SpecError
from pipegen.files import remove_parts, write_whole
from pipegen.ops.sources.prepared_store.layout import ABOUT, RECORDS, SHARDS, damaged_files, read_about
from pipegen.ops.sources.stores.field_types import MissingLibrary
from pipegen.preparing.finish import finish, rest_values, steps_before
from pipegen.preparing.options import Options, Prepared
from pipegen.preparing.rest import SPEC
from pipegen.preparing.shard_formats import SHARD_FORMATS
from pipegen.preparing.work import Work
from pipegen.spec.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pipegen.ops.sources.prepared_store.layout import Shard
    from pipegen.phases.specs import FittedSpec
    from pipegen.preparing.beam import Beam


_KEY = "key"
_COMPARED = 64
"""Examples of each split that are computed again to verify a store."""


def prepare(
    fitted: FittedSpec,
    folder: Path,
    options: Options,
    *,
    verify: bool = False,
    runner: Beam | None = None,
    progress: Callable[[int], None] | None = None,
) -> Prepared:
    """Prepares data; for the arguments see `pipegen.prepare`. Without a runner, shards are written one after another.

    Raises:
        SpecError: `PG572`, `PG573`, `PG576` and `PG577` if the spec cannot be prepared so, `PG574` if the disk has no room, `PG575` without
            a library.
        FileExistsError: If the folder holds something else.
        DataError: For a record that cannot be read, and for a damaged store.
        OSError: If it cannot be written.
    """
    work = Work(fitted, folder, options)
    _check_libraries(work, runner)
    _check_folder(work)
    for inner in (RECORDS, SHARDS):
        (folder / inner).mkdir(parents=True, exist_ok=True)
    tell = progress or (lambda _done: None)
    with _alone(folder):
        _claim(work)
        for place in (folder, folder / RECORDS, folder / SHARDS):
            remove_parts(place, older=0)
        work.measure(tell)
        missing = [number for number in range(len(work.shards)) if work.done(number) is None]
        _check_room(work)
        rest_values(work)  # its errors are reported before anything is written
        if missing and runner is not None:
            runner.run(work, missing, tell)
        elif missing:
            _write(work, missing, tell)
        done = [work.done(number) for number in range(len(work.shards))]
        if None in done:
            raise DataError(f"shard {done.index(None)} of {folder} was not written")
        shards = [shard for shard in done if shard is not None]
        left_out = _left_out(work, shards)
        if missing or not (folder / ABOUT).exists():
            (folder / ABOUT).unlink(missing_ok=True)
            finish(work, shards, fitted.spec.loaded.file or "a spec in Python")
    compared = verified(work) if verify else None
    return _said(work, shards, len(missing), left_out, compared)


def _write(work: Work, missing: Sequence[int], tell: Callable[[int], None]) -> None:
    """Writes shards one after another, and reports the number of examples done."""
    done = work.manifest_total - sum(work.shards[number].count for number in missing)
    for number in missing:
        work.write(number, lambda count, before=done: tell(before + count))  # type: ignore[misc]
        done += work.shards[number].count


def _check_libraries(work: Work, runner: Beam | None) -> None:
    """Checks that the libraries of the format and of the runner are installed."""
    checks = {f"--format {work.options.format}": SHARD_FORMATS[work.options.format].check}
    checks |= {"--runner beam": runner.check} if runner is not None else {}
    for option, check in checks.items():
        try:
            check()
        except MissingLibrary as error:
            label = work.fitted.spec.loaded.locate.label(("source",))
            raise SpecError([make("PG575", f"`{option}` needs {error}", label, help=(error.help,))]) from None


def _check_folder(work: Work) -> None:
    """Checks that the folder is free, or holds a store."""
    folder = work.folder
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FileExistsError(errno.EEXIST, "it is a file", str(folder))
    if any(folder.iterdir()) and not (folder / SHARDS).is_dir():
        raise FileExistsError(errno.EEXIST, "it is a folder with other files", str(folder))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Locks the folder against other processes; the system releases the lock when the process ends."""
    with open(folder / SHARDS / "lock", "w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FileExistsError(errno.EEXIST, "another process is preparing into it", str(folder)) from None
        yield


def _claim(work: Work) -> None:
    """Records the key of the work, so that only the same work is resumed. Without any shard, it starts again."""
    file = work.folder / SHARDS / _KEY
    if file.exists() and file.read_text() == work.key:
        return
    if next(file.parent.glob("[0-9]*.json"), None) is not None:
        said = "it holds a store of another spec, other data or other options; take another folder"
        raise FileExistsError(errno.EEXIST, said, str(work.folder))
    work.forget()
    write_whole(file, work.key)


def _check_room(work: Work) -> None:
    need = work.expected_bytes()
    free = shutil.disk_usage(work.folder).free
    if need <= free:
        return
    smaller = ["`--format jpeg` takes about a quarter" if work.options.format == "raw" else ""]
    smaller += ["`--shorter-side 256` shrinks the images first"] if work.options.shorter_side is None else []
    message = f"the store needs {format_bytes(need)} more, but {str(work.folder)!r} has {format_bytes(free)} free"
    label = work.fitted.spec.loaded.locate.label(("source",))
    raise SpecError([make("PG574", message, label, help=tuple(filter(None, smaller)) or ("choose a folder on another disk",))])


def verified(work: Work) -> int:
    """Compares all checksums of a store, and some examples with the results of the spec; returns the number of these."""
    try:
        about = read_about(work.folder)
    except OpError as error:
        raise DataError(error.message) from None
    wrong = list(damaged_files(work.folder, about))
    if wrong:
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise DataError(f"{wrong[0][0]}{more} is damaged: {wrong[0][1]}; delete it and {work.folder / ABOUT}, and prepare again")
    count = 0
    of_split: dict[str, list[int]] = {}
    for number, shard in enumerate(about.shards):
        of_split.setdefault(shard.split, []).append(number)
    for numbers in of_split.values():
        number = numbers[len(numbers) // 2]
        some = min(_COMPARED, about.shards[number].count)
        if not work.same(number, some):
            raise DataError(f"{next(iter(work.files[number].values()), work.folder)} differs from the results of the spec now")
        count += some
    return count


def _left_out(work: Work, shards: list[Shard]) -> int:
    """Counts the damaged records that were left out; raises `DataError` if they are more than the spec allows."""
    left = sum(len(shard.left_out) for shard in shards)
    most = work.model.errors.skip.max_fraction if work.model.errors.skip is not None else 0.0
    if left and left > most * work.manifest.num_examples("train"):
        raise DataError(f"{left:,} records of the training split are damaged, and `errors.decode.skip.max_fraction` is {most:g}")
    return left


def _said(work: Work, shards: list[Shard], written: int, left_out: int, compared: int | None) -> Prepared:
    left = [*(step.op for step in work.model.transforms[work.done_steps :]), *(["views"] if work.model.views != 1 else [])]
    rest = " → ".join(left) or "nothing"
    return Prepared(
        folder=work.folder,
        spec=work.folder / SPEC,
        steps=steps_before(work),
        rest=rest,
        examples=sum(shard.count for shard in shards),
        bytes=sum(size for shard in shards for size in shard.bytes.values()),
        shards=len(shards),
        written=written,
        changes=work.options.in_words(),
        reordered=work.reordered or left_out > 0,
        left_out=left_out,
        verified=compared,
    )
