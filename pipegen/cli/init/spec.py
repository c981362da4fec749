"""The text of a first spec: few lines that run, and what was found as comments."""

from __future__ import annotations

import os
from statistics import median
from typing import TYPE_CHECKING

from pipegen.spec.scalars import flow_scalar

if TYPE_CHECKING:
    from pipegen.cli.init.survey import Sample, Survey

_SIZES = (32, 48, 64, 96, 128, 160, 192, 224)
_SMALL = 256
"""Images that are all of one size no larger than this keep it."""
_BATCH = 32
_CLASSES_SHOWN = 12


def first_spec(found: Survey, spec_folder: str) -> str:
    """Write a spec for what was found.

    Args:
        found: What lies in the folder.
        spec_folder: Where the spec will stand; its path is relative to that.
    """
    lines = ["# yaml-language-server: $schema=pipegen.schema.json", *(f"# {line}" for line in _comments(found)), "pipegen: 1"]
    labels = "" if found.labelled else ", labels: none"
    lines.append(f"source: {{image_folder: {{path: {flow_scalar(relative(found.folder, spec_folder))}{labels}}}}}")
    lines += _splits(found)
    deep = found.sample.deep > 0 and found.sample.deep == len(found.sample.sizes)
    decode = [f"  - decode: {{{pixels_of(found.sample)}}}"] if deep else []
    lines += ["transforms:", *decode, f"  - resize: {{size: {size_for(found.sample)}}}"]
    if found.layout != "flat":
        lines += [
            "  - random_flip  # left and right; take it out where that matters, as in text",
            "  - random_rotation: {degrees: 10}",
            "  - random_brightness: {factor: 0.2}",
        ]
    lines.append("  - rescale: {to: [0, 1]}  # or what a pretrained model wants, such as normalize: {preset: resnet50}")
    lines.append(f"batch: {{size: {_batch(found)}}}")
    return "\n".join(lines) + "\n"


def _comments(found: Survey) -> list[str]:
    lines = [f"`pipegen init` found {found.summary()}."]
    counts = found.class_counts
    if counts:
        shown = [f"{plain(name)} {n:,}" for name, n in list(counts.items())[:_CLASSES_SHOWN]]
        more = len(counts) - len(shown)
        lines.append(f"Classes: {', '.join(shown)}{f' and {more:,} more' if more else ''}")
    if found.layout == "splits":
        parts = found.listing.parts
        lines.append(f"Splits: {', '.join(f'{split} {parts.count(split) if parts else 0:,}' for split in found.parts)}")
    lines += about_sample(found.sample)
    lines += [plain(remark) for remark in found.remarks]
    return lines


def about_sample(sample: Sample) -> list[str]:
    """Says what the headers of some images hold, in lines for comments."""
    looked = len(sample.sizes) + len(sample.unreadable)
    lines = []
    if sample.sizes:
        widths, heights = zip(*sample.sizes, strict=True)
        formats = ", ".join(name for name, _ in sample.formats.most_common())
        lines.append(f"Of {looked:,} looked at: {formats}; {_range(widths)} pixels wide, {_range(heights)} high")
        if 0 < sample.deep < len(sample.sizes):
            lines.append(
                f"{sample.deep:,} of them have 16 bits and the others 8; a pipeline reads one of the two: convert some, or leave them out"
            )
        if sample.gray == len(sample.sizes) != sample.deep:
            lines.append("All are gray: `- decode: {channels: 1}` as the first step keeps them so")
    if sample.unreadable:
        which = f"{len(sample.unreadable):,} cannot be read, such as {plain(sample.unreadable[0])}"
        lines.append(f"{which}; `pipegen validate SPEC --data=all` names all")
    return lines


def pixels_of(sample: Sample) -> str:
    """Returns the arguments that files need which all have 16 bits."""
    return "channels: 1, bits: 16" if sample.gray == len(sample.sizes) else "bits: 16"


def _range(values: tuple[int, ...]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def _splits(found: Survey) -> list[str]:
    if found.layout == "flat":
        return []
    if found.layout == "splits":
        return [
            f"splits: {{method: folder, parts: {{{', '.join(f'{split}: {flow_scalar(name)}' for split, name in found.parts.items())}}}}}"
        ]
    return ["splits: {parts: {train: 0.8, validation: 0.2}, stratify: label}"]


def size_for(sample: Sample) -> str:
    """Chooses the size to resize to: the size that all have when that is small, else the largest usual one that is no enlargement."""
    distinct = set(sample.sizes)
    if len(distinct) == 1:
        ((width, height),) = distinct
        if max(width, height) <= _SMALL:
            return str(width) if width == height else f"[{height}, {width}]"
    shorter = median(min(size) for size in sample.sizes) if sample.sizes else _SIZES[-1]
    return str(max((size for size in _SIZES if size <= shorter), default=_SIZES[0]))


def _batch(found: Survey) -> int:
    """A usual batch, or a smaller one that leaves small data some steps."""
    size = _BATCH
    while size > 1 and found.layout != "flat" and found.train_count < 2 * size:
        size //= 2
    return size


def relative(folder: str, spec_folder: str) -> str:
    """The folder as the spec names it: relative where it is near."""
    absolute = os.path.abspath(folder)
    relative = os.path.relpath(absolute, os.path.abspath(spec_folder))
    chosen = absolute if relative.startswith(os.path.join("..", "..")) else relative
    return chosen.replace(os.sep, "/") + "/"


def plain(text: str) -> str:
    """A name on one line of a comment."""
    return "".join(c if c.isprintable() else "?" for c in text)
