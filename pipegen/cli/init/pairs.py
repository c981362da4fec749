"""A first spec for folders of pairs: photographs in one, and in another a mask or a dense map of the same name for each."""

from __future__ import annotations

import os
import re
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from pipegen.cli.init.folder_survey import ARRAYS, enter, level, of_arrays, sample_of, split_folders
from pipegen.cli.init.spec import Step, Written, about_sample, by_split, output_of, parts_of, pixels_of, relative, spec_of
from pipegen.data.rounding import spread
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.lowering.decoding import PNG
from pipegen.ops.sources.folders.scan import Scan

_IMAGES = frozenset({"image", "images", "img", "imgs", "photo", "photos", "picture", "pictures", "input", "inputs", "x"})
MASKS = frozenset({
    "mask", "masks", "label", "labels", "annotation", "annotations", "segmentation", "segmentations", "target", "targets", "gt", "y",
})  # fmt: skip
"""Names of such folders, or words in them."""
_FLOWS = frozenset({"flow", "flows", "motion", "vectors"})
_DEPTHS = frozenset({"depth", "depths", "disparity", "disparities"})
_MAPS = _FLOWS | _DEPTHS | {"map", "maps", "heatmap", "heatmaps", "density", "densities", "height", "heights", "elevation"}
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

    name = kind = "mask"

    def with_those_of(self, others: Sequence[Levels]) -> Levels:
        """Adds the values of the masks of other splits."""
        every = (self, *others)
        return Levels(set().union(*(one.values for one in every)), [palette for one in every for palette in one.palettes])

    def like(self, other: Levels | Maps) -> bool:
        """Checks if the files of another split are of this kind."""
        return isinstance(other, Levels) and other.are_colours is self.are_colours

    def about(self) -> list[str]:
        """Describes the pixels, in lines for comments."""
        colours, values = self.are_colours, sorted(self.values)
        shown = ", ".join(_hex(value) if colours else str(value) for value in values[:_SHOWN]) + (", …" if len(values) > _SHOWN else "")
        what = "colours" if colours else "palette indices" if all(self.palettes) else "values"
        lines = [f"The pixels of the {len(self.palettes):,} masks examined have the {what} {shown}; any other value will be an error"]
        if self.ignored is not None:
            lines.append(f"{_LEFT_OUT} is assumed to mean pixels that the loss ignores; without `ignore` it would be a class")
        return lines

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
class Maps:
    """Dense maps, whose files have numbers for each pixel of an image."""

    name: str  # of the feature
    given: dict[str, Any]  # arguments that tell how to read a file

    kind = "dense"

    def with_those_of(self, others: Sequence[Maps]) -> Maps:
        """Returns the maps of all splits, which are alike."""
        return self

    def like(self, other: Levels | Maps) -> bool:
        """Checks if the files of another split are of this kind."""
        return isinstance(other, Maps) and other.given == self.given

    def about(self) -> list[str]:
        """Describes the numbers, in lines for comments."""
        if "values" in self.given:
            return ["The maps are vectors to the right and down, in pixels: they turn and scale with the image"]
        two = self.given.get("format") == {"npy": {"channels": 2}}
        return ["If the maps are vectors, such as optical flow, add `values: vectors`: then they turn and scale with the image"] * two

    def arguments(self) -> dict[str, Any]:
        """Makes the arguments that tell how to read a file."""
        return self.given


@dataclass(frozen=True)
class _Two:
    """A folder of images and one of masks or maps, and the relative paths of the pairs in them."""

    images: str
    masks: str
    pairs: list[tuple[str, str]]
    alone: int
    levels: Any  # `Levels` or `Maps`


def _two(folder: str, names: Sequence[str], progress: Callable[[int], None]) -> _Two | None:
    """Finds the folder of images and that of masks or maps among some folders."""
    if len(names) > 2:  # `x` and `y` may be two of several classes
        names = [name for name in names if says(name, _IMAGES - _ALONE) != says(name, (MASKS | _MAPS) - _ALONE)]
    if len(names) != 2:
        return None
    paths = {name: _files(os.path.abspath(os.path.join(folder, name)), progress) for name in names}
    stems = {name: {os.path.splitext(path)[0]: path for path in several} for name, several in paths.items()}
    are_unique = all(len(stems[name]) == len(paths[name]) for name in names)
    shared = sorted(set(stems[names[0]]) & set(stems[names[1]]))
    if not are_unique or len(shared) < 2 or len(shared) < _NEARLY * max(map(len, stems.values())):
        return None
    images, masks = names
    told = says(masks, MASKS | _MAPS) and says(images, _IMAGES)
    turned = says(images, MASKS | _MAPS) and says(masks, _IMAGES)
    found, alone = [], sum(map(len, stems.values())) - 2 * len(shared)
    for image, mask, sure, wrong in ((images, masks, told, turned), (masks, images, turned, told)):
        pairs = [(stems[image][stem], stems[mask][stem]) for stem in shared]
        files = [(os.path.join(folder, image, one), os.path.join(folder, mask, other)) for one, other in pairs]
        levels: Levels | Maps | None = None
        if not wrong:
            levels = None if says(mask, _MAPS) else masks_of(files, told=sure)
            levels = maps_of(files, mask) if levels is None and not says(mask, MASKS) else levels
        if levels is not None:
            found.append(_Two(image, mask, pairs, alone, levels))
    return found[0] if len(found) == 1 else None


def _files(folder: str, progress: Callable[[int], None]) -> Sequence[str]:
    """Lists the images below a folder; without any, the files of dense maps."""
    images = Scan(folder, progress=progress).tree().paths
    if len(images):
        return images
    return [path for path in Scan(folder, every_file=True, progress=progress).tree().paths if path.lower().endswith(ARRAYS)]


def _full(folder: str) -> list[str]:
    """Lists the sub-folders with images, or with the files of dense maps."""
    images = level(folder)[0]
    return sorted([*images, *of_arrays(folder, images)])


def maps_of(files: Sequence[tuple[str, str]], folder: str) -> Maps | None:
    """Recognises dense maps in the second files of some pairs, which have as many pixels as the first; `None` if they are none.

    They are `.flo`, `.npy`, gray PNGs of 16 bits, and other gray images if the name of their `folder` says so. A sample is read.
    """
    from PIL import Image

    found: list[dict[str, Any]] = []
    for image, other in (files[i] for i in spread(len(files), _LOOKED_AT)):
        try:
            with Image.open(image) as shown:
                size, given = _map_in(other, vectors=says(folder, _FLOWS), told=says(folder, _MAPS))
                if sorted(size) != sorted(shown.size):  # a photograph may be rotated by EXIF
                    return None
        except (OSError, EOFError, ValueError, SyntaxError, struct.error, Image.DecompressionBombError):
            return None
        if given not in found:
            found.append(given)
    if len(found) != 1:
        return None
    return Maps("flow" if "values" in found[0] else "depth" if says(folder, _DEPTHS) else "map", found[0])


def _map_in(path: str, *, vectors: bool, told: bool) -> tuple[tuple[int, int], dict[str, Any]]:
    """Reads the width and height of a dense map, and makes the arguments to read it; `ValueError` for other files."""
    from PIL import Image

    if path.lower().endswith(".flo"):
        with open(path, "rb") as file:
            if file.read(4) != b"PIEH":  # the format's mark
                raise ValueError(path)
            width, height = struct.unpack("<2i", file.read(8))
        return (width, height), {"values": "vectors"}
    if path.lower().endswith(".npy"):
        array = np.load(path, mmap_mode="r")
        if not isinstance(array, np.ndarray) or array.ndim not in (2, 3) or array.dtype.kind not in "buif":
            raise ValueError(path)
        height, width, channels = (*array.shape, 1)[:3]
        if vectors and channels == 2:
            return (width, height), {"format": "npy", "values": "vectors"}
        return (width, height), {"format": "npy" if channels == 1 else {"npy": {"channels": channels}}}
    with Image.open(path) as picture:
        deep = picture.format == "PNG" and picture.mode in ("I;16", "I")
        if not deep and not (told and picture.mode == "L"):
            raise ValueError(path)
        return picture.size, {"bits": 16} if deep else {}


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
    """Writes the spec of images and masks or dense maps of the same names in two folders, directly or below the folders of splits; `None`
    without pairs.

    Splits without pairs are ignored. Class folders may number their files alike; if the pixels do not decide, the names of the folders
    must. `progress` is called now and then with the number of files seen so far.
    """
    folder = enter(folder)
    full = _full(folder)
    splits = split_folders(full)
    splits = splits if "train" in splits and len(splits) > 1 else {"": ""}
    inside = {split: (os.path.join(folder, name), _full(os.path.join(folder, name)) if name else full) for split, name in splits.items()}
    found = {split: two for split, place in inside.items() if (two := _two(*place, progress)) is not None}
    if not found.keys() & {"", "train"}:
        return None
    leading = (found.get("") or found["train"]).levels
    found = {split: two for split, two in found.items() if leading.like(two.levels)}
    parts = {split: (os.path.join(splits[split], two.images), os.path.join(splits[split], two.masks)) for split, two in found.items()}
    counts = {split: len(two.pairs) for split, two in found.items()}
    first, *others = found.values()
    several, one = ("dense maps", "a dense map") if isinstance(leading, Maps) else ("masks", "a mask")
    if "" in found:
        remarks = [f"{name}/ is ignored" for name in full if name not in parts[""]]
        inner, same = (split_folders(_full(os.path.join(folder, name))) for name in parts[""])
        if inner == same and "train" in inner and len(inner) > 1:
            numbers = Counter(image.partition("/")[0] for image, _ in first.pairs)
            parts = {split: (f"{first.images}/{name}", f"{first.masks}/{name}") for split, name in inner.items()}
            counts = {split: numbers[name] for split, name in inner.items()}
    else:
        remarks = [f"{name}/ has no pairs of images and {several}, and is ignored" for split, name in splits.items() if split not in found]
        if not others:
            parts, counts = {"": parts["train"]}, {"": counts["train"]}
    if any(not says(two.masks, MASKS | _MAPS) for two in (first, *others)):
        names = f"{first.images}/ and {first.masks}/"
        remarks.append(f"if {names} are two classes, not images and {several}, the source is `image_folder: {{path: ...}}`")
    paths = [os.path.join(splits[split], two.images, image) for split, two in found.items() for image, _ in two.pairs]
    sample = sample_of(paths, [os.path.join(folder, path) for path in paths])
    levels = leading.with_those_of([two.levels for two in found.values() if two.levels is not leading])
    alone, total, is_split = sum(two.alone for two in found.values()), sum(counts.values()), len(parts) > 1

    def files(folders: tuple[str, str]) -> dict[str, Any]:
        image, mask = (relative(os.path.join(folder, name), spec_folder) for name in folders)
        features = {"image": {"kind": "image", "path": image, **pixels_of(sample)}}
        return {"files": {"features": features | {levels.name: {"kind": levels.kind, "path": mask, **levels.arguments()}}}}

    by_folder = [f"Splits: {', '.join(f'{split} {count:,}' for split, count in counts.items())}"] if is_split else []
    steps: list[Step] = ["flip mask", "brighten image", "rescale"] if len(parts) <= _MOST_SPLITS else ["flip mask", "rescale"]
    if isinstance(leading, Maps):
        steps = ["flip map", *steps[1:-1], "rescale image"]
    if alone:
        verb = "file has no partner of the same name, and is" if alone == 1 else "files have no partner of the same name, and are"
        remarks.insert(0, f"{alone:,} {verb} left out")
    return spec_of(
        f"{total:,} images, each with {one} of the same name" + (f", split by folder into {', '.join(parts)}" if is_split else ""),
        [*by_folder, *about_sample(sample), *levels.about(), *remarks],
        by_split({split: files(folders) for split, folders in parts.items()}),
        2 * (counts["train"] if "train" in counts else round(0.8 * total)),
        most=_BATCH,
        splits="" if is_split else parts_of(),
        sample=sample,
        steps=steps,
        output=output_of([levels.name]),
        drops=bool(alone),
    )
