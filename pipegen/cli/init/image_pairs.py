"""A first spec for folders of images and masks: what a model for segmentation learns from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipegen.cli.init.spec import DROPS, OUTPUT, PARTS, RESCALE, about_sample, batch_for, pixels_of, plain, relative, size_for, spec_text
from pipegen.spec.scalars import flow_scalar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipegen.cli.init.pairing import Levels, Pairs

_BATCH = 16
_LEFT_OUT = 255
"""The value that many masks hold where there is no telling, and which a loss then leaves out."""
_SPREAD = 3
"""Values that are indices reach up to this many times their number: some classes may be in no mask that was looked at."""
_SHOWN = 12
_MOST_LINES = 8


def first_pairs(found: Pairs, spec_folder: str) -> str:
    """Writes the spec of pairs of images and masks, whose paths are relative to the spec's folder."""
    splits = [f"splits: {{{PARTS}}}"] if len(found.parts) == 1 else []
    live = [*_source(found, spec_folder), *splits, "transforms:", f"  - resize: {{size: {size_for(found.sample)}}}"]
    live += ["  - random_flip  # left and right, the mask as the image; take it out where that matters"]
    if len(live) < _MOST_LINES:
        live.append("  - random_brightness: {factor: 0.2}  # changes the image and leaves the mask alone")
    train = found.counts["train"] if "train" in found.counts else round(0.8 * sum(found.counts.values()))
    live += [RESCALE, OUTPUT, f"batch: {{size: {batch_for(2 * train, _BATCH)}}}"]
    live += [DROPS] if found.alone else []
    return spec_text(found.summary(), _comments(found), live)


def _comments(found: Pairs) -> list[str]:
    lines = []
    if len(found.parts) > 1:
        lines.append(f"Splits: {', '.join(f'{split} {count:,}' for split, count in found.counts.items())}")
    lines += about_sample(found.sample)
    levels = found.levels
    values = ", ".join(map(str, levels.ordered[:_SHOWN])) + (", …" if len(levels.values) > _SHOWN else "")
    what = "places in the palette" if levels.palette else "values"
    looked = len(levels.palettes)
    lines.append(f"Of {looked:,} masks looked at, the pixels hold the {what} {values}; any other is an error when it is met")
    if _ignored(levels) is not None:
        lines.append(f"{_LEFT_OUT} is taken for what the loss leaves out; without `ignore` it would have to be a class of its own")
    if found.alone:
        verb = "file has no partner of the same name, and is" if found.alone == 1 else "files have no partner of the same name, and are"
        lines.append(f"{found.alone:,} {verb} left out")
    return lines + [plain(remark) for remark in found.remarks]


def _source(found: Pairs, spec_folder: str) -> list[str]:
    pixels = f", {pixels_of(found.sample)}" if pixels_of(found.sample) else ""

    def features(folders: tuple[str, str]) -> str:
        image, mask = (flow_scalar(relative(os.path.join(found.folder, name), spec_folder)) for name in folders)
        return f"image: {{kind: image, path: {image}{pixels}}}, mask: {{kind: mask, path: {mask}{classes_of(found.levels)}}}"

    if len(found.parts) == 1:
        (folders,) = found.parts.values()
        return ["source:", f"  files: {{features: {{{features(folders)}}}}}"]
    parts = (f"    {split}: {{files: {{features: {{{features(folders)}}}}}}}" for split, folders in found.parts.items())
    return ["source:", "  by_split:", *parts]


def _ignored(found: Levels) -> int | None:
    """The value that a loss leaves out, beside the indices of at least two classes."""
    rest = [value for value in found.ordered if value != _LEFT_OUT]
    return _LEFT_OUT if len(rest) < len(found.values) and len(rest) > 1 and _are_indices(rest, found) else None


def _are_indices(values: Sequence[int], found: Levels) -> bool:
    return (found.palette and values[-1] < _LEFT_OUT) or (values[0] == 0 and values[-1] <= _SPREAD * len(values))


def classes_of(found: Levels) -> str:
    """Returns what the values of a mask mean, as arguments: they are class indices, or each stands for one."""
    ignored = _ignored(found)
    indices = [value for value in found.ordered if value != ignored]
    if _are_indices(indices, found):
        return f", classes: {indices[-1] + 1}" + (f", ignore: {ignored}" if ignored is not None else "")
    return f", values: {{{', '.join(f'{value}: {index}' for index, value in enumerate(indices))}}}"
