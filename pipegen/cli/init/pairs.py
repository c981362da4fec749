"""A first spec for folders of pairs: photographs in one, and in another a mask of the same name for each."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from pipegen.cli.init.folder_survey import enter, level, sample_of, split_folders
from pipegen.cli.init.spec import Step, Written, about_sample, by_split, output_of, parts_of, pixels_of, relative, spec_of
from pipegen.data.rounding import spread
from pipegen.frozen import dataclass
from pipegen.ops.lowering.decoding import PNG
from pipegen.ops.sources.folders.scan import Scan

_IMAGES = frozenset({"image", "images", "img", "imgs", "photo", "photos", "picture", "pictures", "input", "inputs", "x"})
MASKS = frozenset({
    "mask", "masks", "label", "labels", "annotation", "annotations", "segmentation", "segmentations", "target", "targets", "gt", "y",
})  # fmt: skip
"""Names of such folders, or words in them."""
_ALONE = frozenset({"x", "y", "input", "inputs", "target", "targets", "label", "labels"})
"""Names that count only if there is no third folder."""
_NEARLY = 0.9  # minimal share of files with a partner
_FEW, _MANY = 32, 64
"""Maximal number of values in a mask: if the names of folders do not identify the masks, and if they do."""
_LOOKED_AT = 50
_HEADER = 26  # bytes up to a PNG's bit depth and colour type (W3C, PNG Specification, 11.2.2)
_GRAY = 0
_LEFT_OUT = 255  # usual value of pixels without a class, which the loss ignores
_SPREAD = 3  # indices may be up to this many times their number: the masks examined may lack some classes


@dataclass(frozen=True)
class Levels:
    """Pixel values of some masks (gray levels, or indices into a palette), or their colours, and for each mask whether it has a palette of
    classes."""

    values: set[Any] = field(default_factory=set)
    palettes: list[bool] = field(default_factory=list)

    @property
    def are_colours(self) -> bool:
        """Whether the values are colours: red, green and blue."""
        return isinstance(next(iter(self.values), None), tuple)

    @property
    def ignored(self) -> int | None:
        """Value that the loss ignores, beside the indices of at least two classes."""
        if self.are_colours:
            return None
        rest = sorted(self.values - {_LEFT_OUT})
        return _LEFT_OUT if len(rest) < len(self.values) and len(rest) > 1 and self._are_indices(rest) else None

    def arguments(self) -> dict[str, Any]:
        """Makes the arguments that map the values of a mask to class indices."""
        if self.are_colours:
            return {"palette": {f"'{_hex(colour)}'": index for index, colour in enumerate(sorted(self.values))}}
        indices = sorted(self.values - {self.ignored})
        if not self._are_indices(indices):
            return {"values": {value: index for index, value in enumerate(indices)}}
        return {"classes": indices[-1] + 1, **({"ignore": self.ignored} if self.ignored is not None else {})}

    def _are_indices(self, values: Sequence[int]) -> bool:
        return (all(self.palettes) and values[-1] < _LEFT_OUT) or (values[0] == 0 and values[-1] <= _SPREAD * len(values))


@dataclass(frozen=True)
class _Two:
    """A folder of images and one of masks, and the relative paths of the pairs in them."""

    images: str
    masks: str
    pairs: list[tuple[str, str]]
    alone: int
    levels: Levels


def _two(folder: str, names: Sequence[str], progress: Callable[[int], None]) -> _Two | None:
    """Finds the folder of images and that of masks among some folders."""
    if len(names) > 2:  # `x` and `y` may be two of several classes
        names = [name for name in names if says(name, _IMAGES - _ALONE) != says(name, MASKS - _ALONE)]
    if len(names) != 2:
        return None
    paths = {name: Scan(os.path.abspath(os.path.join(folder, name)), progress=progress).tree().paths for name in names}
    stems = {name: {os.path.splitext(path)[0]: path for path in several} for name, several in paths.items()}
    are_unique = all(len(stems[name]) == len(paths[name]) for name in names)
    shared = sorted(set(stems[names[0]]) & set(stems[names[1]]))
    if not are_unique or len(shared) < 2 or len(shared) < _NEARLY * max(map(len, stems.values())):
        return None
    images, masks = names
    told = says(masks, MASKS) and says(images, _IMAGES)
    turned = says(images, MASKS) and says(masks, _IMAGES)
    found, alone = [], sum(map(len, stems.values())) - 2 * len(shared)
    for image, mask, sure, wrong in ((images, masks, told, turned), (masks, images, turned, told)):
        pairs = [(stems[image][stem], stems[mask][stem]) for stem in shared]
        files = [(os.path.join(folder, image, one), os.path.join(folder, mask, other)) for one, other in pairs]
        levels = None if wrong else masks_of(files, told=sure)
        if levels is not None:
            found.append(_Two(image, mask, pairs, alone, levels))
    return found[0] if len(found) == 1 else None


def says(name: str, words: frozenset[str]) -> bool:
    """Checks if a name has one of the words."""
    return not words.isdisjoint(re.split(r"[^a-z]+", name.lower()))


def masks_of(files: Sequence[tuple[str, str]], *, told: bool) -> Levels | None:
    """Collects the pixel values of the second files of some pairs; `None` if they are not masks of the first ones.

    Masks are gray or palette PNGs of the same size as the images, with several values, but not many: fewer if no name has `told` that they
    are masks, which may then have colours, too. A sample of the files is read.
    """
    from PIL import Image

    found = Levels()
    for image, mask in (files[i] for i in spread(len(files), _LOOKED_AT)):
        try:
            with Image.open(image) as shown, Image.open(mask) as picture:
                fits = sorted(picture.size) == sorted(shown.size)  # a photograph may be rotated by EXIF
                coloured = told and picture.mode in ("RGB", "RGBA")
                is_mask = fits and picture.format == "PNG" and (coloured or picture.mode in ("1", "L", "P"))
                colours = (picture.convert("RGB") if coloured else picture).getcolors(_MANY if told else _FEW) if is_mask else None
                if colours is None or coloured is not (found.are_colours or (coloured and not found.values)):
                    return None
                if coloured:
                    found.values.update(colour for _, colour in colours)
                    found.palettes.append(False)
                    continue
                with open(mask, "rb") as opened:
                    head = opened.read(_HEADER)
                depth, kind = head[_HEADER - 2], head[_HEADER - 1]
                # Pillow scales gray levels of 1, 2 and 4 bits to the range of a byte; here they count as stored.
                most = (1 << depth) - 1 if head.startswith(PNG) and kind == _GRAY and depth < 8 else 255
                found.values.update(int(value) * most // 255 for _, value in colours)
                found.palettes.append(picture.mode == "P")
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            continue
    return found if len(found.values) > 1 else None


def _hex(colour: Sequence[int]) -> str:
    return f"#{bytes(colour).hex()}"


_BATCH = 16
_SHOWN = 12
_MOST_SPLITS = 2  # maximal number of splits of a spec with one more step: it stays short


def first_pairs(folder: str, spec_folder: str, progress: Callable[[int], None]) -> Written | None:
    """Writes the spec of images and masks of the same names in two folders, directly or below the folders of splits; `None` without pairs.

    Splits without pairs are ignored. Class folders may number their files alike; if the pixels do not decide, the names of the folders
    must. `progress` is called now and then with the number of files seen so far.
    """
    folder = enter(folder)
    full, _ = level(folder)
    splits = split_folders(full)
    splits = splits if "train" in splits and len(splits) > 1 else {"": ""}
    inside = {split: (os.path.join(folder, name), level(os.path.join(folder, name))[0] if name else full) for split, name in splits.items()}
    found = {split: two for split, place in inside.items() if (two := _two(*place, progress)) is not None}
    if not found.keys() & {"", "train"}:
        return None
    coloured = (found.get("") or found["train"]).levels.are_colours
    found = {split: two for split, two in found.items() if two.levels.are_colours is coloured}
    parts = {split: (os.path.join(splits[split], two.images), os.path.join(splits[split], two.masks)) for split, two in found.items()}
    counts = {split: len(two.pairs) for split, two in found.items()}
    first, *others = found.values()
    if "" in found:
        remarks = [f"{name}/ is ignored" for name in full if name not in parts[""]]
        inner, same = (split_folders(level(os.path.join(folder, name))[0]) for name in parts[""])
        if inner == same and "train" in inner and len(inner) > 1:
            numbers = Counter(image.partition("/")[0] for image, _ in first.pairs)
            parts = {split: (f"{first.images}/{name}", f"{first.masks}/{name}") for split, name in inner.items()}
            counts = {split: numbers[name] for split, name in inner.items()}
    else:
        remarks = [f"{name}/ has no pairs of images and masks, and is ignored" for split, name in splits.items() if split not in found]
        if not others:
            parts, counts = {"": parts["train"]}, {"": counts["train"]}
    if any(not says(two.masks, MASKS) for two in (first, *others)):
        names = f"{first.images}/ and {first.masks}/"
        remarks.append(f"if {names} are two classes, not images and masks, the source is `image_folder: {{path: ...}}`")
    paths = [os.path.join(splits[split], two.images, image) for split, two in found.items() for image, _ in two.pairs]
    sample = sample_of(paths, [os.path.join(folder, path) for path in paths])
    levels = Levels(set().union(*(two.levels.values for two in found.values())), [p for two in found.values() for p in two.levels.palettes])
    alone, total, is_split = sum(two.alone for two in found.values()), sum(counts.values()), len(parts) > 1

    def files(folders: tuple[str, str]) -> dict[str, Any]:
        image, mask = (relative(os.path.join(folder, name), spec_folder) for name in folders)
        features = {"image": {"kind": "image", "path": image, **pixels_of(sample)}}
        return {"files": {"features": features | {"mask": {"kind": "mask", "path": mask, **levels.arguments()}}}}

    by_folder = [f"Splits: {', '.join(f'{split} {count:,}' for split, count in counts.items())}"] if is_split else []
    steps: list[Step] = ["flip mask", "brighten image", "rescale"] if len(parts) <= _MOST_SPLITS else ["flip mask", "rescale"]
    return spec_of(
        f"{total:,} images, each with a mask of the same name" + (f", split by folder into {', '.join(parts)}" if is_split else ""),
        [*by_folder, *about_sample(sample), *_about_masks(levels, alone), *remarks],
        by_split({split: files(folders) for split, folders in parts.items()}),
        2 * (counts["train"] if "train" in counts else round(0.8 * total)),
        most=_BATCH,
        splits="" if is_split else parts_of(),
        sample=sample,
        steps=steps,
        output=output_of(["mask"]),
        drops=bool(alone),
    )


def _about_masks(levels: Levels, alone: int) -> list[str]:
    """Describes the pixels of masks, and the number of files without a partner, in lines for comments."""
    colours, values = levels.are_colours, sorted(levels.values)
    shown = ", ".join(_hex(value) if colours else str(value) for value in values[:_SHOWN]) + (", …" if len(values) > _SHOWN else "")
    what = "colours" if colours else "palette indices" if all(levels.palettes) else "values"
    lines = [f"The pixels of the {len(levels.palettes):,} masks examined have the {what} {shown}; any other value will be an error"]
    if levels.ignored is not None:
        lines.append(f"{_LEFT_OUT} is assumed to mean pixels that the loss ignores; without `ignore` it would be a class")
    if alone:
        verb = "file has no partner of the same name, and is" if alone == 1 else "files have no partner of the same name, and are"
        lines.append(f"{alone:,} {verb} left out")
    return lines
