"""Sizes of the images at a cut, canvases for their pixels, and encodings of their files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pipegen.diagnostics.catalog import make
from pipegen.errors import SpecError
from pipegen.ops.families.decoder import Decode
from pipegen.ops.families.item_stages import Enter, Measure
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.lowering.resizing import side_size
from pipegen.ops.sources.prepared_store.layout import Pixels
from pipegen.plan.nodes import Read
from pipegen.preparing.cut import NoCutError, find_cut
from pipegen.preparing.options import OF_RECORDS, QUALITY
from pipegen.preparing.rest import fitting, rest_of
from pipegen.spec.steps import ids_of
from pipegen.types import times

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    from pipegen.diagnostics.diagnostic import Label
    from pipegen.phases.specs import Spec
    from pipegen.plan.nodes import Plan
    from pipegen.preparing.cut import Cut
    from pipegen.preparing.options import Options
    from pipegen.spec.models import PipelineSpec

    Place: TypeAlias = tuple[str, int]
    """A split, and the number of a record in it."""

_SIDE = 8
"""The sides of a canvas for images of several sizes are multiples of this, so that rows are aligned."""


def largest(
    measured: Iterable[tuple[Place, Mapping[str, Any]]], cut: Cut, options: Options, pictured: Sequence[str]
) -> tuple[dict[str, list[int]], Place | None]:
    """Finds the largest height and width of the images of each `pictured` feature as they are stored, of those `measured` at the cut.

    Returns the sides, and the first record that the spec would have decoded at a fraction of its size.
    """
    most = {name: [0, 0] for name in pictured}
    scaled: Place | None = None
    for place, sizes in measured:
        for name in pictured:
            height, width = (int(side) for side in sizes[name])
            if cut.least is not None and height >= 2 * cut.least[0] and width >= 2 * cut.least[1]:
                scaled = scaled or place
            if options.shorter_side is not None and min(height, width) > options.shorter_side:
                height, width = side_size(height, width, options.shorter_side)
            most[name] = [max(a, b) for a, b in zip(most[name], (height, width), strict=True)]
    return most, scaled


def stored_pixels(cut: Cut, options: Options, pictured: Sequence[str], most: Mapping[str, Sequence[int]]) -> dict[str, Pixels]:
    """Chooses the form in which the pixels of each `pictured` feature are stored; `most` has the largest sides of those measured."""
    if options.format != "raw":
        return {name: Pixels("records" if options.format in OF_RECORDS else "files") for name in pictured}
    found = {}
    for name in pictured:
        t = cut.type[name]
        sides = t.shape[:2]
        if None in sides or options.shorter_side is not None:
            sides = tuple(-(-side // _SIDE) * _SIDE for side in most[name])
        found[name] = Pixels("rows", t.dtype, (int(sides[0] or 0), int(sides[1] or 0), int(t.shape[2] or 0)))
    return found


def refusal(file: str, label: Label) -> SpecError:
    """Makes the error for a file that the spec decodes at a fraction of its size: `PG573`."""
    message = f"the spec decodes large JPEGs, such as {file}, at a fraction of their size, which depends on the steps after the cut"
    help_ = (
        "with `decode: {scaled: never}` in the spec, the store is equal to it, bit for bit",
        "or store less on purpose: `--shorter-side 256` shrinks the images first, which changes the results",
    )
    return SpecError([make("PG573", message, label, help=help_)])


class ChangedFilesError(Exception):
    """Files cannot be kept unchanged; the message is the reason."""


def with_encoding(options: Options, spec: PipelineSpec, plans: Mapping[str, Plan], cut: Cut) -> Options:
    """Sets the encoding: the original files if the steps before the cut do not change them, else JPEG.

    Raises:
        ChangedFilesError: If the options ask for the original files, and steps change them.
    """
    if options.format not in OF_RECORDS:
        return replace(options, encoding="jpeg")
    changed = _changed(options, spec, plans, cut)
    if options.keeps_files and changed is not None:
        raise ChangedFilesError(changed)
    if options.encoding is not None:
        return options
    return replace(options, encoding="original" if changed is None and options.quality == QUALITY else "jpeg")


def _changed(options: Options, spec: PipelineSpec, plans: Mapping[str, Plan], cut: Cut) -> str | None:
    """Describes why the original files cannot be stored; `None` if they can."""
    if options.shorter_side is not None:
        return f"images are shrunk to a shorter side of {options.shorter_side} pixels"
    for stage in (stage for own in cut.stages.values() for stage in own):
        if not isinstance(stage, (Decode, Enter, Measure)):
            return f"`{stage.uses()[0].id}` comes before the cut, and changes `{stage.feature}`"
    read = [node.out for plan in plans.values() for node in plan.nodes if isinstance(node, Read)]
    for name, t in cut.type.items():
        if kind_of(t).levels and kind_of(t).pictured and (name in spec.source.decoders() or not all(own[name].encoded for own in read)):
            return f"`{name}` is not stored in files that `decode` reads"
    return None


def check_shrinking(spec: Spec, plans: Mapping[str, Plan], cut: Cut, options: Options) -> None:
    """Raises `PG576` if the steps after the cut need the size of images that are not shrunk."""
    side = options.shorter_side
    if side is None or _fits(spec, cut, options) or not _fits(spec, cut, replace(options, shorter_side=None)):
        return
    ids = ids_of(spec.model.transforms)
    last = ids[cut.steps - 1] if cut.steps else "decode"
    sizes = {times(t.shape[:2]) for _, t in cut.type.items() if kind_of(t).pictured and None not in t.shape[:2]}
    size = " or ".join(sorted(sizes)) or "a fixed size of"
    message = f"the steps after `{last}` need its size of {size} pixels, and `--shorter-side {side}` changes it"
    help_ = [f"leave `--shorter-side` out: the store has images in the size of `{last}`"]
    earlier = next((own for own in reversed(ids[: cut.steps - 1]) if _fits_behind(spec, plans, own, options)), None)
    if earlier is not None:
        help_.append(f"or use `--at {earlier}`, which shrinks them before `{ids[ids.index(earlier) + 1]}`")
    elif not any(step.op == "decode" for step in spec.model.transforms):
        help_.append(f"or begin with the step `- decode` and use `--at decode`, which shrinks them before `{ids[0]}`")
    label = spec.loaded.locate.label(("transforms", max(0, cut.steps - 1)))
    raise SpecError([make("PG576", message, label, help=tuple(help_))])


def _fits_behind(spec: Spec, plans: Mapping[str, Plan], step: str, options: Options) -> bool:
    """Decides if a cut after a step leaves a valid spec."""
    try:
        return _fits(spec, find_cut(spec.model, plans, step), options)
    except NoCutError:
        return False


def _fits(spec: Spec, cut: Cut, options: Options) -> bool:
    try:
        fitting(rest_of(spec.model, spec.hash, cut, options, {}))
    except SpecError:
        return False
    return True
