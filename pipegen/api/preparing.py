"""Prepares the data of a spec once: `pipegen.prepare`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pipegen.arguments import called_with_count, file_or_folder, whole
from pipegen.phases.compilation import load
from pipegen.preparing.options import ENCODINGS, FORMATS, OF_RECORDS, QUALITY, Encoding, Format, Options, Prepared, not_here

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipegen.phases.specs import Spec

T = TypeVar("T")
RUNNERS = ("local", "beam")


def prepare(
    spec: str | os.PathLike[str] | Mapping[str, Any] | Spec,
    out: str | os.PathLike[str],
    *,
    format: Format = "raw",
    at: str | None = None,
    shorter_side: int | None = None,
    quality: int = QUALITY,
    encoding: Encoding | None = None,
    verify: bool = False,
    params: Mapping[str, object] | None = None,
    overrides: Mapping[str, object] | None = None,
    data: Mapping[str, object] | None = None,
    allow_code: Sequence[str] = (),
    allow_write: Sequence[str | os.PathLike[str]] = (),
    allow_env: Sequence[str] = (),
    runner: Literal["local", "beam"] = "local",
    beam_options: Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
) -> Prepared:
    """Runs a spec up to its last deterministic step, stores what comes out, and writes the spec that reads it and does the rest.

    The examples of a store have the splits, the ids and the draws that they had. What stops goes on where it was when it is called again.

    Args:
        spec: The path of a spec, a map with its sections, or a `pipegen.Spec`.
        out: The folder of the store: a new or empty one, or one whose work was stopped.
        format: `raw` stores pixels as rows of bytes, which are equal to the spec's, bit for bit; `jpeg` encodes images again; `tfrecord`,
            `webdataset` and `array_record` write whole records, which other programs read, too.
        at: The name or the id of the step to stop behind; by default the last that works.
        shorter_side: Shrink images to this side first, in pixels, which changes what is computed.
        quality: Of a JPEG, from 1 to 100.
        encoding: Of images in whole records: `original` keeps their files as they are, `jpeg` encodes them again, and `png` does so with
            every bit. By default `original` where nothing but decoding comes before the cut and `quality` is not given, else `jpeg`.
        verify: Compare every checksum afterwards, and some examples with what the spec gives.
        params: Values for declared params.
        overrides: Values for anything by its path.
        data: For the source `arrays`, its arrays by name.
        allow_code: Modules whose functions the spec may call.
        allow_write: Folders that the spec may name files to write in, besides its own and the working directory.
        allow_env: Variables of the environment that the spec may use for anything, secrets among them.
        runner: `beam` shares the shards out to the workers of Apache Beam, which see the data and `out` under the same paths; it takes
            `pip install 'pipegen[beam]'`.
        beam_options: What Beam and its runners are told, such as `["--runner=FlinkRunner", "--parallelism=8"]`.
        progress: Called with the number of examples that are done.

    Raises:
        SpecError: When the spec is wrong or cannot be prepared so, or the disk has no room.
        FileExistsError: When the folder holds something else.
        DataError: For a record that cannot be read, or a store that is damaged.
        ValueError: For options that do not go together, and for an address in place of a folder.
    """
    called_with_count("progress", progress)
    options = _options(format, at, shorter_side, quality, encoding)
    folder = _folder(out)
    _check_runner(runner, beam_options, handed=data is not None)
    given = Path(spec) if isinstance(spec, str) else spec
    loaded = load(given, params=params, overrides=overrides, allow_write=allow_write, allow_env=allow_env)
    from pipegen.preparing.beam import Beam
    from pipegen.preparing.prepare import prepare as run
    from pipegen.preparing.work import listed

    on = Beam(beam_options, allow_code) if runner == "beam" else None
    return run(listed(loaded, allow_code, data), folder, options, verify=verify, runner=on, progress=progress)


def _folder(out: str | os.PathLike[str]) -> Path:
    folder = Path(file_or_folder("out", out, "prepared/")).absolute()
    elsewhere = not_here(os.fspath(out))
    if elsewhere is not None:
        raise ValueError(elsewhere)
    return folder


def _check_runner(runner: str, beam_options: Sequence[str], *, handed: bool) -> None:
    """Checks what runs the work; `handed` tells whether arrays in memory are the data."""
    if runner not in RUNNERS:
        raise ValueError(f"`runner` is one of {', '.join(RUNNERS)}, got {runner!r}")
    if beam_options and runner != "beam":
        raise ValueError(f"`beam_options` are for the runner `beam`, and it is {runner!r}")
    if handed and runner == "beam":
        raise ValueError("workers of Apache Beam read data from files, and cannot be handed `data`")


def _options(form: str, at: str | None, shorter_side: int | None, quality: int, encoding: str | None) -> Options:
    format_ = _one_of("format", form, FORMATS)
    if shorter_side is not None:
        shorter_side = whole("shorter_side", shorter_side, 1)
    if not 1 <= whole("quality", quality, 1) <= 100:
        raise ValueError(f"`quality` is 1 to 100, got {quality}")
    encoding_ = None if encoding is None else _one_of("encoding", encoding, ENCODINGS)
    if encoding_ not in (None, "jpeg") and format_ not in OF_RECORDS:
        raise ValueError(f"`encoding` is of images in whole records ({', '.join(sorted(OF_RECORDS))}), and the format is {format_}")
    return Options(format_, at, shorter_side, quality, encoding_)


def _one_of(name: str, given: str, known: tuple[T, ...]) -> T:
    for one in known:
        if one == given:
            return one
    raise ValueError(f"`{name}` is one of {', '.join(map(str, known))}, got {given!r}")
