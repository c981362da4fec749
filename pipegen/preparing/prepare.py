"""Prepares the data of a spec: checks the request, writes the shards, and completes the store."""

from __future__ import annotations

import errno
import fcntl
import io
import shutil
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipegen.diagnostics.catalog import make
from pipegen.errors import DataError, OpError, SpecError
from pipegen.files import remove_parts, write_whole
from pipegen.ops.fields.strings import Strings
from pipegen.ops.sources import prepared as layout
from pipegen.ops.sources.stores.field_types import MissingLibrary
from pipegen.phases.compilation import load
from pipegen.phases.specs import FittedSpec
from pipegen.preparing.cut import SPEC, as_text, fitting, rest_of, same_meaning
from pipegen.preparing.options import Options, Prepared
from pipegen.preparing.shard_formats import SHARD_FORMATS
from pipegen.preparing.work import Work
from pipegen.spec.allowed import CHECKED
from pipegen.spec.units import format_bytes

if TYPE_CHECKING:
    from pipegen.preparing.beam import Beam


Array = np.ndarray[Any, Any]

_KEY = "key"
_COMPARED = 64  # examples of each split that are computed again to verify a store


def prepare(
    fitted: FittedSpec, folder: Path, options: Options, *, verify: bool, runner: Beam | None, progress: Callable[[int], None]
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
    with _claimed(work):
        for place in (folder, folder / layout.RECORDS, folder / layout.SHARDS):
            remove_parts(place, older=0)
        work.measure(progress)
        missing = [number for number in range(len(work.shards)) if work.done(number) is None]
        _check_room(work)
        # Its errors are reported before anything is written.
        rest = fitting(rest_of(work.model, work.fitted.spec.hash, work.cut, work.options, work.pixels))
        if missing and runner is not None:
            runner.run(work, missing, progress)
        else:
            total = sum(work.manifest.num_examples(split) for split in work.manifest.splits)
            before = total - sum(work.shards[number].count for number in missing)
            for number in missing:
                work.write(number, lambda count, before=before: progress(before + count))  # type: ignore[misc]
                before += work.shards[number].count
        done = [work.done(number) for number in range(len(work.shards))]
        if None in done:
            raise DataError(f"shard {done.index(None)} of {folder} was not written")
        shards = [shard for shard in done if shard is not None]
        left_out = sum(len(shard.left_out) for shard in shards)
        most = work.model.errors.skip.max_fraction if work.model.errors.skip is not None else 0.0
        if left_out and left_out > most * work.manifest.num_examples("train"):
            said = f"{left_out:,} records of the training split are damaged, and `errors.decode.skip.max_fraction` is {most:g}"
            raise DataError(said)
        if missing or not (folder / layout.ABOUT).exists():
            (folder / layout.ABOUT).unlink(missing_ok=True)
            _finish(work, shards, rest)
    return _said(work, shards, len(missing), left_out, verified(work) if verify else None)


def _check_libraries(work: Work, runner: Beam | None) -> None:
    checks = {f"--format {work.options.format}": SHARD_FORMATS[work.options.format].check}
    checks |= {"--runner beam": runner.check} if runner is not None else {}
    for option, check in checks.items():
        try:
            check()
        except MissingLibrary as error:
            label = work.fitted.spec.loaded.locate.label(("source",))
            raise SpecError([make("PG575", f"`{option}` needs {error}", label, help=(error.help,))]) from None


@contextmanager
def _claimed(work: Work) -> Iterator[None]:
    """Makes the folder, and locks it against other processes; the system releases the lock when the process ends.

    Records the key of the work, so that only the same work is resumed. Without any shard, it starts again.
    """
    folder, file = work.folder, work.folder / layout.SHARDS / _KEY

    def taken(why: str) -> FileExistsError:
        return FileExistsError(errno.EEXIST, why, str(folder))

    if folder.exists() and not folder.is_dir():
        raise taken("it is a file")
    if folder.exists() and any(folder.iterdir()) and not (folder / layout.SHARDS).is_dir():
        raise taken("it is a folder with other files")
    for inner in (layout.RECORDS, layout.SHARDS):
        (folder / inner).mkdir(parents=True, exist_ok=True)
    with open(folder / layout.SHARDS / "lock", "w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise taken("another process is preparing into it") from None
        if not file.exists() or file.read_text() != work.key:
            if next(file.parent.glob("[0-9]*.json"), None) is not None:
                raise taken("it holds a store of another spec, other data or other options; take another folder")
            work.forget()
            write_whole(file, work.key)
        yield


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
        about = layout.read_about(work.folder)
    except OpError as error:
        raise DataError(error.message) from None
    wrong = list(layout.damaged_files(work.folder, about))
    if wrong:
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise DataError(f"{wrong[0][0]}{more} is damaged: {wrong[0][1]}; delete it and {work.folder / layout.ABOUT}, and prepare again")
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


def _said(work: Work, shards: list[layout.Shard], written: int, left_out: int, compared: int | None) -> Prepared:
    left = [*(step.op for step in work.model.transforms[work.done_steps :]), *(["views"] if work.model.views != 1 else [])]
    return Prepared(
        folder=work.folder,
        spec=work.folder / SPEC,
        steps=_steps_before(work),
        rest=" → ".join(left) or "nothing",
        examples=sum(shard.count for shard in shards),
        bytes=sum(size for shard in shards for size in shard.bytes.values()) or _of_columns(work),
        shards=len(shards),
        written=written,
        changes=work.options.in_words(),
        rounded=work.cut.rounds,
        reordered=work.reordered or left_out > 0,
        left_out=left_out,
        verified=compared,
    )


def _of_columns(work: Work) -> int:
    """Counts the bytes of a store without files of shards, such as of windows of series."""
    return sum(layout.column_file(work.folder, name).stat().st_size for name in work.cut.type)


def _finish(work: Work, shards: Sequence[layout.Shard], rest: dict[str, Any]) -> None:
    """Writes everything beside the shards that were written, the description last; `rest` is the spec of the remaining steps."""
    columns = {**_listed(work, shards), **_stored(work, shards)}
    sums = {}
    for name, values in columns.items():
        content = io.BytesIO()
        np.save(content, values, allow_pickle=False)
        write_whole(layout.column_file(work.folder, name), content.getvalue())
        sums[name] = zlib.crc32(content.getbuffer())
    about = layout.StoreAbout(
        key=work.key,
        of=work.fitted.spec.hash,
        steps=_steps_before(work),
        changes=work.options.in_words(),
        splits={split: sum(shard.count for shard in shards if shard.split == split) for split in work.manifest.splits},
        classes=work.format.classes,
        label=work.format.label,
        pixels=work.pixels,
        columns=sums,
        rows=work.rows,
        shards=tuple(shards),
        suffix=work.format.suffix,
    )
    source = work.fitted.spec.loaded.file or "a spec in Python"
    changes = [f"Unlike there, {said}." for said in work.options.in_words()]
    comments = [f"Written by `pipegen prepare` from {source}: {_steps_before(work)} is done."]
    same = (
        "Splits, ids and draws are the same; values, but for rounding."
        if work.cut.rounds
        else "Splits, ids, draws and values are the same, bit for bit."
    )
    comments += changes or [same]
    write_whole(work.folder / SPEC, as_text(rest, comments))
    same_meaning(work.model, load(work.folder / SPEC, allowed=CHECKED).model, work.done_steps)
    layout.write_about(work.folder, about)


def _steps_before(work: Work) -> str:
    """The steps before the cut, in words."""
    if work.options.keeps_files:
        return "reading"
    first = [] if any(step.op == "decode" for step in work.model.transforms[: work.cut.steps]) else ["decode"]
    encoded = any(t.encoded for t in (plan.read[name] for plan in work.fitted.plans.values() for name in work.contents))
    steps = [*(first if encoded else []), *(step.op for step in work.model.transforms[: work.cut.steps])]
    return " → ".join(steps) or "reading"


def _listed(work: Work, shards: Sequence[layout.Shard]) -> dict[str, Array]:
    """Makes the columns of the listing: ids and names of the records."""
    manifest = work.manifest
    ids, keys = [], []
    for split in manifest.splits:
        left_out = [number for shard in shards if shard.split == split for number in shard.left_out]
        kept: Array = np.delete(np.arange(manifest.num_examples(split)), left_out)
        ids.append(np.asarray(manifest.ids(split), np.uint64)[kept])
        keys.append(Strings.hold(list(manifest.keys(split))).take(kept))
    names = Strings.join(keys)
    return {"@ids": np.concatenate(ids), "@keys": np.asarray(names.blob), "@bounds": np.asarray(names.bounds)}


def _stored(work: Work, shards: Sequence[layout.Shard]) -> dict[str, Array]:
    """Joins the columns of the shards, and counts the bytes of each record."""
    parts: dict[str, list[Array]] = {}
    ends: Counter[str] = Counter()
    total = []
    for number, shard in enumerate(shards):
        if not shard.count:
            continue
        sizes: Array = np.full(shard.count, sum(own.row for own in work.pixels.values()), np.int64)
        with np.load(work.columns_file(number), allow_pickle=False) as stored:
            for name in stored.files:
                values = stored[name]
                if name.startswith("@place."):
                    sizes += values[:, 1]
                    held = layout.RECORDS if work.format.suffix else name.partition(".")[2]  # the file of whole records, or of the feature
                    values = values.astype(np.int64) + np.array([[ends[held], 0]])
                elif not work.pixels and not name.startswith("@"):  # such as windows of series
                    sizes += values.nbytes // shard.count
                parts.setdefault(name, []).append(values)
        for held, size in shard.bytes.items():
            ends[held] += -(-size // layout.PAGE) * layout.PAGE
        total.append(sizes)
    return {name: np.concatenate(values) for name, values in parts.items()} | {"@bytes": np.concatenate(total)}
