"""The text of a first spec: few lines that run, and a description of the data as comments."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from statistics import median
from typing import Any, Literal

from pipegen.frozen import dataclass
from pipegen.ops.registry import sources
from pipegen.spec.compose import flow

_SIZES = (32, 48, 64, 96, 128, 160, 192, 224)
_SMALL = 256  # images of one size keep it up to this length of the sides
_CLASSES_SHOWN = 12
Step = Literal[
    "flip", "flip boxes", "flip points", "flip mask", "flip map", "maybe flip", "maybe flip mask", "rotate", "brighten", "brighten image",
    "rescale", "rescale image",
]  # fmt: skip
_STEPS: dict[str, str] = {
    "flip": "- random_flip  # left and right; remove it if direction matters, as in text",
    "flip boxes": "- random_flip  # left and right, boxes as well; remove it if direction matters, as in text",
    "flip points": "- random_flip  # left and right, points as well; remove it if direction matters, as in text",
    "flip mask": "- random_flip  # left and right, the mask as the image; remove it if direction matters",
    "flip map": "- random_flip  # left and right, the map as the image; remove it if direction matters",
    "maybe flip": "# - random_flip  # where a mirrored image means the same",
    "maybe flip mask": "# - random_flip  # left and right, the mask as the image",
    "rotate": "- random_rotation: {degrees: 10}",
    "brighten": "- random_brightness: {factor: 0.2}",
    "brighten image": "- random_brightness: {factor: 0.2}  # changes the image alone",
    "rescale": "- rescale: {to: [0, 1]}  # or what a pretrained model needs, such as normalize: {preset: resnet50}",
    "rescale image": "- rescale: {to: [0, 1]}  # the image alone, or what a pretrained model needs, such as normalize: {preset: resnet50}",
}
"""The lines of steps after the resizing."""
_BOXES = "output: {x: image, y: {boxes: boxes, labels: labels, there: boxes_valid}}  # left, top, right, bottom; false `there` is padding"
_OUTPUTS: dict[tuple[str, ...], str] = {
    ("boxes", "labels"): _BOXES,
    ("boxes",): _BOXES.replace(" labels: labels,", ""),
    ("points",): "output: {x: image, y: points}  # x, y and visibility of each point; a visibility of 0 is an absent point",
    ("mask",): "output: {x: image, y: mask}  # the mask holds the class index of each pixel",
    **{(name,): f"output: {{x: image, y: {name}}}  # float32 numbers of each pixel" for name in ("flow", "depth", "map")},
}
"""What a model receives, by features of a source; a label needs no `output`."""
WITHOUT_LABELS = "output: {{x: {}, y: null}}  # there are no labels"
_PARTS = "parts: {train: 0.8, validation: 0.2}"
_FEW = 5_000  # number of records below which shares by hash can be far from the requested ones
_DROPS = "errors: {missing: drop}  # remove it once every file is there, so that a missing file is an error"

Written = tuple[str, str]  # the text of a spec, whose paths are relative to the spec's folder, and a summary of the data


@dataclass
class Sample:
    """Headers of some images: `(width, height)` in pixels, the numbers of gray ones and of those with 16 bits, and unreadable ones."""

    formats: Counter[str] = field(default_factory=Counter)
    sizes: list[tuple[int, int]] = field(default_factory=list)
    gray: int = 0
    deep: int = 0
    unreadable: list[str] = field(default_factory=list)


def spec_of(
    summary: str,
    comments: Iterable[str],
    source: Iterable[str],
    rows: int | None,
    *,
    most: int = 64,
    splits: str = "",
    decode: Mapping[str, int] | None = None,
    sample: Sample | None = None,
    steps: Iterable[Step | str] = ("rescale",),
    output: str = "",
    drops: bool = False,
) -> Written:
    """Writes a spec from the lines of its source and the contents of its sections.

    The batch size is `most`, or less for few `rows`. Images are resized by a `sample` of them. `steps` are names of usual ones, or lines.
    With `drops`, missing files are left out.
    """
    size = most  # a power of 2, for at least 4 steps in an epoch
    while rows is not None and size > 1 and rows < 4 * size:
        size //= 2
    resize = f"- resize: {{size: {size_for(sample)}}}" if sample is not None else ""
    done = [
        f"  {line}" for line in (f"- decode: {flow(decode)}" if decode else "", resize, *(_STEPS.get(step, step) for step in steps)) if line
    ]
    said = ["yaml-language-server: $schema=pipegen.schema.json", f"`pipegen init` found {summary}.", *comments]
    sections = [f"splits: {{{splits}}}" if splits else "", "transforms:" if done else "", *done]
    sections += [output, f"batch: {{size: {size}}}", _DROPS if drops else ""]
    return "\n".join([*(f"# {plain(line)}" for line in said), "pipegen: 1", *source, *filter(None, sections), ""]), summary


def output_of(features: Collection[str]) -> str:
    """Chooses what the model receives beside the image: boxes, keypoints or a mask; "" for the default, the label."""
    found = next((output for needed, output in _OUTPUTS.items() if set(needed) <= set(features)), "")
    names = [name for name in ("keypoints", "point_labels") if name in features]
    names += ["keypoints_valid"] if "point_labels" in names else []
    points = ", ".join(f"{name}: {name}" for name in names)
    if not points or found:
        return found.replace("labels: labels", f"labels: labels, {points}") if points else found
    return f"output: {{x: image, y: {{{points}}}}}  # x, y and visibility of each point: 0 is absent, 1 hidden, 2 visible"


def block(op: str, arguments: Mapping[str, Any], features: Mapping[str, Any], remarks: Iterable[str] = (), indent: str = "  ") -> list[str]:
    """Writes a source in lines: its arguments, then its features and remarks on them."""
    lines = [f"{name}: {flow(value)}" for name, value in arguments.items()]
    if features:
        lines += ["features:", *(f"  {name}: {flow(value)}" for name, value in features.items())]
        lines += [f"  # {plain(remark)}" for remark in remarks]
    return [f"{indent}{op}:", *(f"{indent}  {line}" for line in lines)]


def by_split(given: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Writes the source of each split in a line; a single one is for all."""
    if len(given) == 1:
        return [f"source: {flow(source)}" for source in given.values()]
    return ["source:", "  by_split:", *(f"    {split}: {flow(source)}" for split, source in given.items())]


def parts_of(op: str = "", records: int = 0, *, stratified: bool = False) -> str:
    """Writes the parts of the splits; exact ones for a source that would split few records by their hashes."""
    by_hash = bool(op) and sources()[op].model_construct().split_method() == "hash"
    return ("method: random, " if by_hash and records < _FEW else "") + _PARTS + (", stratify: label" if stratified else "")


def classes_line(counts: Mapping[str, int]) -> list[str]:
    """Lists the first classes with their counts, in a line for a comment; none without classes."""
    shown = [f"{name} {n:,}" for name, n in list(counts.items())[:_CLASSES_SHOWN]]
    more = len(counts) - len(shown)
    return [f"Classes: {', '.join(shown)}{f' and {more:,} more' if more else ''}"] if counts else []


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
        which = f"{len(sample.unreadable):,} cannot be read, such as {sample.unreadable[0]}"
        lines.append(f"{which}; `pipegen validate SPEC --data=all` lists all")
    return lines


def pixels_of(sample: Sample) -> dict[str, int]:
    """Arguments for files that all have 16 bits; empty for others."""
    if not sample.deep or sample.deep < len(sample.sizes):
        return {}
    return {**({"channels": 1} if sample.gray == len(sample.sizes) else {}), "bits": 16}


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


def relative(folder: str, spec_folder: str) -> str:
    """Computes the path of a folder for a spec: relative if it is near."""
    near = beside(folder, spec_folder)
    return (os.path.abspath(folder).replace(os.sep, "/") if near.startswith("../..") else near) + "/"


def beside(path: str, spec_folder: str) -> str:
    """Computes the path of a file or a folder relative to the spec's folder, with slashes."""
    return os.path.relpath(os.path.abspath(path), os.path.abspath(spec_folder)).replace(os.sep, "/")


def plain(text: str) -> str:
    """Replaces unprintable characters, for a comment."""
    return "".join(c if c.isprintable() else "?" for c in text)
