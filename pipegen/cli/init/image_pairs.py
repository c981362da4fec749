"""A first spec for folders of images and masks: what a model for segmentation learns from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pipegen.cli.init.spec import about_sample, pixels_of, plain, relative, size_for
from pipegen.spec.scalars import flow_scalar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipegen.cli.init.pairing import Pairs

_BATCH = 16
_LEFT_OUT = 255
"""The value that many masks hold where there is no telling, and which a loss then leaves out."""
_SPREAD = 3
"""Values that are indices reach up to this many times their number: some classes may be in no mask that was looked at."""
_SHOWN = 12
_MOST_LINES = 12


def first_pairs(found: Pairs, spec_folder: str) -> str:
    """Write a spec for pairs of images and masks.

    Args:
        found: What lies in the folder.
        spec_folder: Where the spec will stand; its paths are relative to that.
    """
    comments = ["# yaml-language-server: $schema=pipegen.schema.json", *(f"# {line}" for line in _comments(found))]
    live = ["pipegen: 1", *_source(found, spec_folder), *_splits(found), "transforms:", f"  - resize: {{size: {size_for(found.sample)}}}"]
    live += ["  - random_flip  # left and right, the mask as the image; take it out where that matters"]
    last = [
        "  - rescale: {to: [0, 1]}  # or what a pretrained model wants, such as normalize: {preset: resnet50}",
        "output: {x: image, y: mask}  # the mask holds the class index of each pixel",
        f"batch: {{size: {_batch(found)}}}",
    ]
    if len(live) + len(last) < _MOST_LINES:
        live.append("  - random_brightness: {factor: 0.2}  # changes the image and leaves the mask alone")
    return "\n".join([*comments, *live, *last]) + "\n"


def _comments(found: Pairs) -> list[str]:
    lines = [f"`pipegen init` found {found.summary()}."]
    if len(found.parts) > 1:
        lines.append(f"Splits: {', '.join(f'{split} {count:,}' for split, count in found.counts.items())}")
    lines += about_sample(found.sample)
    values = ", ".join(map(str, found.values[:_SHOWN])) + (", …" if len(found.values) > _SHOWN else "")
    what = "places in the palette" if found.palette else "values"
    lines.append(f"Of {found.masks:,} masks looked at, the pixels hold the {what} {values}; any other is an error when it is met")
    if _ignored(found) is not None:
        lines.append(f"{_LEFT_OUT} is taken for what the loss leaves out; without `ignore` it would have to be a class of its own")
    if found.alone:
        verb = "file has no partner of the same name, and is" if found.alone == 1 else "files have no partner of the same name, and are"
        lines.append(f"{found.alone:,} {verb} ignored")
    return lines + [plain(remark) for remark in found.remarks]


def _source(found: Pairs, spec_folder: str) -> list[str]:
    def features(folders: tuple[str, str]) -> str:
        image, mask = (flow_scalar(relative(os.path.join(found.folder, name), spec_folder)) for name in folders)
        deep = found.sample.deep > 0 and found.sample.deep == len(found.sample.sizes)
        pixels = f", {pixels_of(found.sample)}" if deep else ""
        return f"image: {{kind: image, path: {image}{pixels}}}, mask: {{kind: mask, path: {mask}{classes_of(found)}}}"

    if len(found.parts) == 1:
        (folders,) = found.parts.values()
        return ["source:", f"  files: {{features: {{{features(folders)}}}}}"]
    parts = (f"    {split}: {{files: {{features: {{{features(folders)}}}}}}}" for split, folders in found.parts.items())
    return ["source:", "  by_split:", *parts]


def _splits(found: Pairs) -> list[str]:
    return ["splits: {parts: {train: 0.8, validation: 0.2}}"] if len(found.parts) == 1 else []


def _ignored(found: Pairs) -> int | None:
    """The value that a loss leaves out, beside the indices of at least two classes."""
    rest = [value for value in found.values if value != _LEFT_OUT]
    return _LEFT_OUT if len(rest) < len(found.values) and len(rest) > 1 and _are_indices(rest, found) else None


def _are_indices(values: Sequence[int], found: Pairs) -> bool:
    return (found.palette and values[-1] < _LEFT_OUT) or (values[0] == 0 and values[-1] <= _SPREAD * len(values))


def classes_of(found: Pairs) -> str:
    """Returns what the values of a mask mean, as arguments: they are class indices, or each stands for one."""
    ignored = _ignored(found)
    indices = [value for value in found.values if value != ignored]
    if _are_indices(indices, found):
        return f", classes: {indices[-1] + 1}" + (f", ignore: {ignored}" if ignored is not None else "")
    return f", values: {{{', '.join(f'{value}: {index}' for index, value in enumerate(indices))}}}"


def _batch(found: Pairs) -> int:
    """A usual batch, or a smaller one that leaves small data some steps."""
    train = found.counts["train"] if "train" in found.counts else round(0.8 * sum(found.counts.values()))
    size = _BATCH
    while size > 1 and train < 2 * size:
        size //= 2
    return size
