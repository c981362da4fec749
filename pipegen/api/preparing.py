"""Prepares the data of a spec once: `pipegen.prepare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipegen.arguments import called_with_count, file_or_folder, whole
from pipegen.phases.compilation import bind, collect_data, load
from pipegen.phases.functions import allowed_modules, with_functions
from pipegen.phases.specs import FittedSpec
from pipegen.preparing.options import FORMATS, QUALITY, Format, Options, Prepared

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from pipegen.phases.specs import Spec


def prepare(
    spec: str | os.PathLike[str] | Mapping[str, Any] | Spec,
    out: str | os.PathLike[str],
    *,
    format: Format = "raw",
    at: str | None = None,
    shorter_side: int | None = None,
    quality: int = QUALITY,
    verify: bool = False,
    params: Mapping[str, object] | None = None,
    overrides: Mapping[str, object] | None = None,
    data: Mapping[str, object] | None = None,
    allow_code: Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
) -> Prepared:
    """Runs a spec up to its last deterministic step, stores what comes out, and writes the spec that reads it and does the rest.

    The examples of a store have the splits, the ids and the draws that they had. What stops goes on where it was when it is called again.

    Args:
        spec: The path of a spec, a map with its sections, or a `pipegen.Spec`.
        out: The folder of the store: a new or empty one, or one whose work was stopped.
        format: `raw` stores pixels as rows of bytes, which are equal to the spec's, bit for bit; `jpeg` encodes images again.
        at: The name or the id of the step to stop behind; by default the last that works.
        shorter_side: Shrink images to this side first, in pixels, which changes what is computed.
        quality: Of a JPEG, from 1 to 100.
        verify: Compare every checksum afterwards, and some examples with what the spec gives.
        params: Values for declared params.
        overrides: Values for anything by its path.
        data: For the source `arrays`, its arrays by name.
        allow_code: Modules whose functions the spec may call.
        progress: Called with the number of examples that are done.

    Raises:
        SpecError: When the spec is wrong or cannot be prepared so, or the disk has no room.
        FileExistsError: When the folder holds something else.
        DataError: For a record that cannot be read, or a store that is damaged.
        ValueError: For options that do not go together.
    """
    called_with_count("progress", progress)
    options = _options(format, at, shorter_side, quality)
    folder = Path(file_or_folder("out", out, "prepared/")).absolute()
    loaded = with_functions(
        load(Path(spec) if isinstance(spec, str) else spec, params=params, overrides=overrides), allowed_modules(allow_code)
    )
    bound = bind(loaded, collect_data(loaded, None, data))
    return prepare_bound(FittedSpec(loaded, bound.manifest, bound.plans, ()), folder, options, verify=verify, progress=progress)


def prepare_bound(
    fitted: FittedSpec, folder: Path, options: Options, *, verify: bool = False, progress: Callable[[int], None] | None = None
) -> Prepared:
    """Does what `prepare` does, with a spec whose data is listed."""
    from pipegen.preparing.prepare import prepare as run

    return run(fitted, folder, options, verify=verify, progress=progress)


def _options(form: str, at: str | None, shorter_side: int | None, quality: int) -> Options:
    if form not in FORMATS:
        raise ValueError(f"`format` is one of {', '.join(FORMATS)}, got {form!r}")
    if shorter_side is not None:
        shorter_side = whole("shorter_side", shorter_side, 1)
    if not 1 <= whole("quality", quality, 1) <= 100:
        raise ValueError(f"`quality` is 1 to 100, got {quality}")
    return Options(form, at, shorter_side, quality)  # type: ignore[arg-type]
