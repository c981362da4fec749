"""A first spec for images with boxes: annotation files of COCO, Pascal VOC, YOLO or LabelMe in a folder."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from pipegen.cli.failures import CannotRun
from pipegen.cli.init.folder_survey import readable, sample_of, some_folders, split_of
from pipegen.cli.init.spec import Written, about_sample, beside, by_split, classes_line, output_of, parts_of, pixels_of, relative, spec_of
from pipegen.data.collect import without_missing
from pipegen.errors import OpError
from pipegen.ops.fields.notes import count
from pipegen.ops.lowering.array_formats import WITHOUT_AREA
from pipegen.ops.registry import sources
from pipegen.ops.sources.annotations.files import DamagedError, read_json, read_xml
from pipegen.ops.sources.folders.scan import IMAGE_EXTENSIONS
from pipegen.ops.sources.listing.base import Listing
from pipegen.ops.sources.yolo import YAMLS, described
from pipegen.spec.models import Errors

_HEAD = 1 << 16
_COCO = re.compile(rb'"(images|annotations|categories|info|licenses)"\s*:\s*[\[{]')
_OUTLINED = re.compile(rb'"segmentation"\s*:\s*(\[\s*\[\s*[\d.-]|\{)')
_OUTLINES_WITHIN = 1 << 27
"""Bytes of a COCO file in which the first outline is searched: in a large file, the annotations follow the images."""
_OTHERS = ("keypoint", "caption", "stuff", "panoptic", "image_info")
"""Words in the names of COCO files without boxes, or with the same boxes again."""
_LOOKED_AT = 20
_BOX_AND_SCORE = 6  # numbers of a line of YOLO with a box and a confidence; an outline has more
_POINTS = {"keypoints": "instances"}
_BATCH = 16
_YOLO_LINE = re.compile(r"\d+(\s+[\d.eE+-]+){4,}\s*\Z")


def first_boxed(path: str, spec_folder: str, progress: Callable[[int], None] | None = None) -> Written | None:
    """Writes the spec of images with boxes; `None` without annotations of boxes."""
    whole = os.path.abspath(path)
    if os.path.isdir(path):
        is_yolo = not {"labels", *YAMLS}.isdisjoint(os.listdir(path))
        parts = _coco(whole) or (_yolo(whole) if is_yolo else None) or _voc(whole) or _labelme(whole)
        if parts is None:
            return None
    else:
        parts = (_coco if path.lower().endswith(".json") else _yolo)(whole)
        if parts is None:
            raise CannotRun(f"{path} has no boxes of images in its folder or below", "run `pipegen init` on the folder of the images")
    if not all("keypoints" in arguments for _, arguments in parts.values()):
        parts = {split: (op, {k: v for k, v in arguments.items() if k != "keypoints"}) for split, (op, arguments) in parts.items()}
    own = {split: sources()[op].model_validate(arguments) for split, (op, arguments) in parts.items()}
    with readable():
        listings = {split: source.list(Path.cwd(), progress) for split, source in own.items()}
    lacking = any(listing.missing for listing in listings.values())
    left = {split: without_missing(Errors(missing="drop"), listing)[0] for split, listing in listings.items()}
    return _spec(parts, {split: listing for split, listing in left.items() if listing is not None}, spec_folder, drops=lacking)


_Source = tuple[str, dict[str, Any]]  # the name of a source, and its arguments with absolute paths


def _some_files(folder: str, ending: str) -> list[str]:
    found = (os.path.join(at, name) for at, names in some_folders(folder) for name in names if name.lower().endswith(ending))
    return list(islice(found, _LOOKED_AT))


def _coco(path: str) -> dict[str, _Source] | None:
    """Finds files with images, annotations and categories, and the folder of the images of each.

    Returns the source of each split; the empty name stands for all.
    """
    folder, *files = (path,) if os.path.isdir(path) else os.path.split(path)
    if not files:
        for at in ("", *sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))):
            names = sorted(name for name in os.listdir(os.path.join(folder, at)) if name.lower().endswith(".json"))
            files += [os.path.join(at, name) for name in names[:_LOOKED_AT]]
    known = [file for file in files if _is_coco(_head(os.path.join(folder, file)))]
    plainest = [file for file in known if not any(word in file.lower() for word in _OTHERS)]
    found: dict[str, _Source] = {}
    for file in plainest or known:
        images, points = _images_of(folder, os.path.join(folder, file))
        if images is not None:
            split = split_of(os.path.basename(file)) or split_of(os.path.dirname(file)) or ""
            found.setdefault(split, ("coco", {"images": images, "annotations": os.path.join(folder, file), **points}))
    if not found:
        return None
    return found if "train" in found and len(found) > 1 else {"": next(iter(found.values()))}


def _head(file: str) -> bytes:
    with open(file, "rb") as stream:
        return stream.read(_HEAD)


def _is_coco(head: bytes) -> bool:
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and _COCO.search(head) is not None and b'"shapes"' not in head


def _images_of(folder: str, file: str) -> tuple[str | None, dict[str, str]]:
    """Finds the folder of a file's first image, `None` if the file has no boxes or its images are missing, and the argument that reads its
    keypoints, if any."""
    try:
        content = read_json(file, 1 << 32, hook=lambda read: {k: v for k, v in read.items() if k != "segmentation"})
    except DamagedError as error:
        raise CannotRun(str(error)) from error
    lists = [content.get(name) if isinstance(content, dict) else None for name in ("images", "annotations", "categories")]
    if not all(isinstance(one, list) for one in lists) or not any(isinstance(a, dict) and "bbox" in a for a in lists[1] or ()):
        return None, {}
    named = any(isinstance(category, dict) and category.get("keypoints") for category in lists[2] or ())
    points = [annotation.get("keypoints") for annotation in lists[1] or () if named and isinstance(annotation, dict)]
    pointed = any(isinstance(own, list) and any(own[2::3]) for own in points)
    names = [str(image["file_name"]) for image in lists[0] or () if isinstance(image, dict) and "file_name" in image]
    places = [os.path.dirname(file), folder, *(at for at, _ in some_folders(folder))]
    found = next((at for at in places for name in names[:_LOOKED_AT] if os.path.isfile(os.path.join(at, name))), None)
    return found, dict(_POINTS) if pointed else {}


def _yolo(path: str) -> dict[str, _Source] | None:
    """Finds a folder with a text file for each image, whose lines are a class and a box; or the YAML file that describes it."""
    try:
        about = described(os.path.dirname(path), path)
    except OpError:
        return None
    if not any(map(_YOLO_LINE.match, _first_lines(about.folder))):
        return None
    arguments: dict[str, Any] = {"path": path, **(_POINTS if about.points is not None else {})}
    named = {split_of(name) or name: name for name in about.splits}
    if not named and os.path.isdir(f"{about.folder}/images"):
        named = {split_of(name) or "": name for name in sorted(os.listdir(f"{about.folder}/images"))}
        named.pop("", None)
    splits = {split: name for split, name in named.items() if all(map(os.path.exists, about.splits.get(name, ())))}
    return {"": ("yolo", arguments | ({"split": splits} if "train" in splits and len(splits) > 1 else {}))}


def _first_lines(folder: str) -> Iterator[str]:
    return (_head(file).partition(b"\n")[0].decode("utf-8", "replace") for file in _some_files(folder, ".txt"))


def _voc(folder: str) -> dict[str, _Source] | None:
    """Finds a folder with an XML file for each image."""
    if not any(map(_is_voc, _some_files(folder, ".xml"))):
        return None
    arguments: dict[str, Any] = {"path": folder}
    lists = f"{folder}/ImageSets/Main"
    if all(os.path.isfile(f"{lists}/{name}.txt") for name in ("train", "val")):
        arguments["split"] = {"train": "train", "validation": "val"}
    elif not os.path.isdir(f"{folder}/Annotations") or os.path.isdir(lists):
        inner = [name for name in sorted(os.listdir(folder)) if os.path.isdir(f"{folder}/{name}/Annotations")]
        if len(inner) == 1:  # such as `VOCdevkit/VOC2012`
            return _voc(f"{folder}/{inner[0]}")
    return {"": ("voc", arguments)}


def _is_voc(file: str) -> bool:
    try:
        tree = read_xml(file)
    except DamagedError:
        return False
    return tree.tag == "annotation" and (tree.find("object/bndbox") is not None or tree.find("size") is not None)


def _labelme(folder: str) -> dict[str, _Source] | None:
    """Finds a folder with a JSON file of shapes beside each image."""
    for file in _some_files(folder, ".json"):
        stem = os.path.splitext(file)[0]
        if b'"shapes"' in _head(file) and any(os.path.isfile(f"{stem}.{ending}") for ending in IMAGE_EXTENSIONS):
            return {"": ("labelme", {"path": folder, **_points_of(folder)})}
    return None


def _points_of(folder: str) -> dict[str, Any]:
    """Returns the arguments that read the points of LabelMe: with the boxes of their groups, or those of the image."""
    groups, alone = 0, []
    for file in _some_files(folder, ".json"):
        with suppress(DamagedError):
            content = read_json(file, hook=lambda read: {k: v for k, v in read.items() if k != "imageData"})
            shapes = [own for own in (content.get("shapes") if isinstance(content, dict) else None) or () if isinstance(own, dict)]
            points = [shape for shape in shapes if shape.get("shape_type") == "point"]
            areas = {str(shape.get("group_id")) for shape in shapes if shape.get("shape_type") not in WITHOUT_AREA}
            own = [str(point.get("label")) for point in points if point.get("group_id") is None or str(point["group_id"]) not in areas]
            groups += len(points) - len(own)
            alone += [own] if own else []
    if groups:
        return dict(_POINTS)
    named = len({tuple(sorted(own)) for own in alone}) == 1 and len({*alone[0]}) == len(alone[0]) > 1
    return {"keypoints": "image", **({"names": sorted(alone[0])} if named else {})} if alone else {}


def _spec(parts: Mapping[str, _Source], listings: Mapping[str, Listing], spec_folder: str, *, drops: bool) -> Written:
    first = next(iter(listings.values()))
    sample = sample_of(first.keys, first.location.paths)
    boxes: dict[str, Any] = {split: listing.columns["labels"] for split, listing in listings.items()}  # ragged columns
    counts: Counter[str] = Counter()
    for split, listing in listings.items():
        names = listing.classes["labels"]
        counts.update(dict.fromkeys(names, 0))
        counts.update(names[i] for i in boxes[split].values.tolist())
    lengths = sorted(length for own in boxes.values() for length in own.lengths.tolist())
    comments = classes_line(counts) if counts else []
    if counts:
        comments.append(f"Boxes on an image: {lengths[0]:,} to {lengths[-1]:,}, mostly {lengths[len(lengths) // 2]:,}")
    comments += [f"{split}: {count(len(listing.keys), 'image')}" for split, listing in listings.items() if split]
    offered = [op for op, arguments in parts.values() if _has_outlines(op, arguments)]
    if len(offered) == len(parts) and counts:
        comments.append(f"Outlines: `masks: instances` in `{offered[0]}` turns them into a `mask` with the number of each box")
    comments += about_sample(sample)
    comments += [note.message for listing in listings.values() for note in listing.notes]
    train = len(listings["train"].keys) if "train" in listings else round(0.8 * len(first.keys))
    what = [f"{count(sum(counts.values()), 'box', 'boxes')} of {count(len(counts), 'class', 'classes')}"] if counts else []
    what += ["keypoints"] if "keypoints" in first.columns else []
    images = count(sum(len(listing.keys) for listing in listings.values()), "image")

    def placed(arguments: dict[str, Any]) -> dict[str, Any]:
        paths = {name: value for name, value in arguments.items() if isinstance(value, str) and name not in _POINTS}
        return arguments | {name: (relative if os.path.isdir(path) else beside)(path, spec_folder) for name, path in paths.items()}

    return spec_of(
        f"{images} with {' and '.join(what)}",
        comments,
        by_split({split: {op: placed(arguments)} for split, (op, arguments) in parts.items()}),
        2 * train,
        most=_BATCH,
        splits="" if len(parts) > 1 or "split" in parts[""][1] else parts_of(),
        decode=pixels_of(sample),
        sample=sample,
        steps=["flip boxes" if counts else "flip points", "rescale"],
        output=output_of({*first.columns, "boxes", "labels"} if counts else {*first.columns} - {"boxes", "labels"}),
        drops=drops,
    )


def _has_outlines(op: str, arguments: Mapping[str, Any]) -> bool:
    """Checks if annotations have outlines, or masks beside them."""
    if op == "coco":
        with open(arguments["annotations"], "rb") as stream:
            return _OUTLINED.search(stream.read(_OUTLINES_WITHIN)) is not None
    if op == "yolo":
        about = described("", arguments["path"])
        return about.points is None and any(len(line.split()) > _BOX_AND_SCORE for line in _first_lines(about.folder))
    return op == "labelme" or (op == "voc" and os.path.isdir(f"{arguments['path']}/SegmentationObject"))
