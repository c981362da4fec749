"""The text of a first spec: few lines that run, and a description of the data as comments."""

from __future__ import annotations

import os
from statistics import median
from typing import TYPE_CHECKING

from pipegen.ops.registry import sources
from pipegen.spec.compose import flow_scalar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipegen.cli.init.survey import Sample, Survey

_SIZES = (32, 48, 64, 96, 128, 160, 192, 224)
_SMALL = 256
"""Images of one size keep it up to this length of the sides."""
_CLASSES_SHOWN = 12
RESCALE = "  - rescale: {to: [0, 1]}  # or what a pretrained model needs, such as normalize: {preset: resnet50}"
FLIP = "  - random_flip  # left and right; remove it if direction matters, as in text"
ROTATION = "  - random_rotation: {degrees: 10}"
OUTPUT = "output: {x: image, y: mask}  # the mask holds the class index of each pixel"
PARTS = "parts: {train: 0.8, validation: 0.2}"
_FEW = 5_000
"""Number of records below which shares by hash can be far from the requested ones."""
DROPS = "errors: {missing: drop}  # remove it once every file is there, so that a missing file is an error"


def spec_text(summary: str, comments: Iterable[str], sections: Iterable[str]) -> str:
    """Joins a spec from its comments and the lines of its sections."""
    said = ["yaml-language-server: $schema=pipegen.schema.json", f"`pipegen init` found {summary}.", *comments]
    return "\n".join([*(f"# {line}" for line in said), "pipegen: 1", *sections, ""])


def parts_of(op: str, records: int) -> str:
    """Writes the parts of the splits of a source; exact ones if it would split few records by their hashes."""
    by_hash = sources()[op].model_construct().split_method() == "hash"
    return f"method: random, {PARTS}" if by_hash and records < _FEW else PARTS


def first_spec(found: Survey, spec_folder: str) -> str:
    """Writes the spec of a folder, whose path is relative to the spec's own folder."""
    labels = ("" if found.labelled else ", labels: none") + (", follow_links: true" if found.follow_links else "")
    lines = [f"source: {{image_folder: {{path: {flow_scalar(relative(found.folder, spec_folder))}{labels}}}}}"]
    if found.layout == "splits":
        parts = ", ".join(f"{split}: {flow_scalar(name)}" for split, name in found.parts.items())
        lines.append(f"splits: {{method: folder, parts: {{{parts}}}}}")
    elif found.layout == "classes":
        lines.append(f"splits: {{{PARTS}, stratify: label}}")
    pixels = pixels_of(found.sample)
    lines += ["transforms:", *([f"  - decode: {{{pixels}}}"] if pixels else []), f"  - resize: {{size: {size_for(found.sample)}}}"]
    if found.layout != "flat":
        lines += [FLIP, ROTATION, "  - random_brightness: {factor: 0.2}"]
    batch = 32 if found.layout == "flat" else batch_for(2 * found.train_count, 32)
    return spec_text(found.summary(), _comments(found), [*lines, RESCALE, f"batch: {{size: {batch}}}"])


def _comments(found: Survey) -> list[str]:
    lines = []
    counts = found.class_counts
    if counts:
        shown = [f"{plain(name)} {n:,}" for name, n in list(counts.items())[:_CLASSES_SHOWN]]
        more = len(counts) - len(shown)
        lines.append(f"Classes: {', '.join(shown)}{f' and {more:,} more' if more else ''}")
    if found.layout == "splits":
        parts = found.listing.parts
        lines.append(f"Splits: {', '.join(f'{split} {parts.count(split) if parts else 0:,}' for split in found.parts)}")
    return [*lines, *about_sample(found.sample), *(plain(remark) for remark in found.remarks)]


def about_sample(sample: Sample) -> list[str]:
    """Describes the headers of some images, in lines for comments."""
    looked = len(sample.sizes) + len(sample.unreadable)
    lines = []
    if sample.sizes:
        widths, heights = zip(*sample.sizes, strict=True)
        formats = ", ".join(name for name, _ in sample.formats.most_common())
        lines.append(f"{looked:,} images examined: {formats}; {_range(widths)} pixels wide, {_range(heights)} high")
        if 0 < sample.deep < len(sample.sizes):
            lines.append(f"{sample.deep:,} of them have 16 bits and the others 8; a pipeline reads one of the two: convert or exclude some")
        if sample.gray == len(sample.sizes) != sample.deep:
            lines.append("All are gray: `- decode: {channels: 1}` as the first step keeps one channel")
    if sample.unreadable:
        which = f"{len(sample.unreadable):,} cannot be read, such as {plain(sample.unreadable[0])}"
        lines.append(f"{which}; `pipegen validate SPEC --data=all` lists all")
    return lines


def pixels_of(sample: Sample) -> str:
    """Writes the arguments for files that all have 16 bits; empty for others."""
    if not sample.deep or sample.deep < len(sample.sizes):
        return ""
    return "channels: 1, bits: 16" if sample.gray == len(sample.sizes) else "bits: 16"


def _range(values: tuple[int, ...]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def size_for(sample: Sample) -> str:
    """Chooses the size to resize to: a common small size, else the largest usual size that does not enlarge images."""
    distinct = set(sample.sizes)
    if len(distinct) == 1:
        ((width, height),) = distinct
        if max(width, height) <= _SMALL:
            return str(width) if width == height else f"[{height}, {width}]"
    shorter = median(min(size) for size in sample.sizes) if sample.sizes else _SIZES[-1]
    return str(max((size for size in _SIZES if size <= shorter), default=_SIZES[0]))


def batch_for(rows: int, most: int = 64) -> int:
    """Chooses a batch size, a power of 2 up to `most`, for at least 4 steps in an epoch."""
    size = most
    while size > 1 and rows < 4 * size:
        size //= 2
    return size


def relative(folder: str, spec_folder: str) -> str:
    """Writes the path of a folder for a spec: relative if it is near."""
    absolute = os.path.abspath(folder)
    relative = os.path.relpath(absolute, os.path.abspath(spec_folder))
    chosen = absolute if relative.startswith(os.path.join("..", "..")) else relative
    return chosen.replace(os.sep, "/") + "/"


def beside(path: str, spec_folder: str) -> str:
    """Writes the path of a file or a folder for a spec, relative to the spec's folder."""
    return flow_scalar(relative_to(path, spec_folder))


def relative_to(path: str, spec_folder: str) -> str:
    """Computes a path relative to a folder, with slashes."""
    return os.path.relpath(os.path.abspath(path), os.path.abspath(spec_folder)).replace(os.sep, "/")


def plain(text: str) -> str:
    """Replaces unprintable characters, for a comment."""
    return "".join(c if c.isprintable() else "?" for c in text)
