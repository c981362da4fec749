"""Compares two commits: digests of what a few hundred specs give, and the texts about them.

    python -m benchmarks.digests before.json                       # on the commit before
    python -m benchmarks.digests after.json --against before.json  # on the one after: equal, or what differs

Of each spec: its hash, the order of its files, what is drawn, the bits of batches of two epochs and of the other splits, and the texts of
`explain`, of `print(pipe)` and of every finding. Every step stands there with each of its worked examples, every form of every source, and
what is made of several parts. To add a spec, add it to `SPECS`; steps and sources are found in their registries.
"""

from __future__ import annotations

import argparse
import difflib
import gc
import hashlib
import itertools
import json
import os
import sys
import tempfile
import wave
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from PIL import Image
from rich.progress import track

from benchmarks.written_sources import SOURCES, output_of

COUNT = 20
PLACES = ((0, 0), (1, 2), (3, 0))
"""The epochs and the steps from which on batches are looked at."""
BATCHES = 2
Spec = dict[str, Any]
Digest = dict[str, Any]

PHOTOS: Spec = {"image_folder": {"path": "data/files"}}
MASKS: Spec = {
    "files": {
        "features": {
            "image": {"kind": "image", "path": "scenes/*.png"},
            "mask": {"kind": "mask", "path": "masks/*.png", "of": "image", "classes": 4},
        }
    }
}
SCENES: Spec = {"coco": {"images": "scenes", "annotations": "scenes.json", "max": 6, "min_visibility": 0.2}}
POINTS: Spec = {
    "arrays": {
        "path": "people.npz",
        "features": {
            "image": {"kind": "image"},
            "people": {"kind": "boxes"},
            "joints": {"kind": "keypoints", "with": "people", "names": ["left", "right"], "mirror_pairs": [["left", "right"]]},
        },
    }
}
INSTANCES: Spec = {"coco": SCENES["coco"] | {"masks": "instances"}}
FLIP: list[Any] = ["random_flip", {"random_rotation": {"degrees": 20}}]
SMALL: list[Any] = [{"resize": {"size": 32}}]
CROP: list[Any] = [{"random_crop": {"size": 16}}]
COLOUR: list[Any] = [{"random_brightness": {"factor": 0.2}}, {"random_contrast": {"factor": 0.2}}, {"random_hue": {"degrees": 10}}]
POLICY: list[Any] = [{"one_of": {"steps": [*FLIP, {"random_gaussian_blur": {"sigma": 1}}], "probability": 0.7}}]
NORMAL: list[Any] = [{"normalize": {"preset": "torch"}}]
TWO: Spec = {"parts": {"train": 0.75, "validation": 0.25}}
ONE_HOT: Spec = {"encode": {"label": "one_hot"}}
RAMP: Spec = {"linear": {"from": 0, "to": 20, "epochs": [0, 4]}}


ALONG_TIME: dict[str, Spec] = {
    "audio": {"arrays": {"path": "sounds.npz", "features": {"x": {"kind": "audio", "rate": 16000}}}},
    "series": {
        "series": {"npz": {"path": "rows.npz"}, "window": {"length": 96}, "features": {"x": {"kind": "series", "columns": ["a", "b"]}}}
    },
}
"""Sources of sound and series."""


def _mix(**own: Any) -> Spec:
    parts = {name: {"weight": weight, "source": PHOTOS} for name, weight in (("some", 0.75), ("more", 0.25))}
    return {"mix": {"epoch": 30, "parts": parts, **own}}


def _photos(*steps: Any, **own: Any) -> Spec:
    return {"source": PHOTOS, "transforms": [*SMALL, *steps], **own}


SPECS: dict[str, Spec] = {
    "plain": _photos(),
    "floats": _photos(*FLIP, *COLOUR, *NORMAL),
    "bytes out": _photos(*FLIP, *COLOUR, output={"dtype": "uint8"}),
    "half": _photos(*FLIP, {"rescale": {"to": [-1, 1]}}, output={"dtype": "float16"}),
    "one hot": _photos(output=ONE_HOT),
    "a policy": _photos(*POLICY),
    "policies in a row": _photos(*POLICY, {"some_of": {"count": 2, "steps": [*FLIP, *COLOUR]}}, {"random_order": {"steps": COLOUR}}),
    "a schedule": _photos({"random_rotation": {"degrees": RAMP}}),
    "mixup and cutmix": _photos({"mixup": {"probability": 0.5}}, {"cutmix": {"probability": 0.5}}, output=ONE_HOT),
    "a mosaic": {"source": SCENES, "transforms": [*SMALL, "mosaic"], "output": {"x": "image", "y": "boxes"}},
    "sounds": {"source": {"audio_folder": {"path": "words", "rate": 16000}}, "transforms": [{"crop_or_pad": {"seconds": 0.1}}]},
    "boxes": {"source": SCENES, "transforms": [*SMALL, *FLIP], "output": {"x": "image", "y": "boxes"}},
    "boxes, cut": {"source": SCENES, "transforms": ["random_iou_crop", *SMALL], "output": {"x": "image", "y": "boxes"}},
    "keypoints": {"source": POINTS, "transforms": [*SMALL, *FLIP], "output": {"x": "image", "y": "joints"}},
    "instances": {"source": INSTANCES, "transforms": [*SMALL, *FLIP], "output": {"x": "image", "y": "mask"}},
    "masks": {"source": MASKS, "transforms": [*SMALL, *FLIP], "output": {"x": "image", "y": "mask"}},
    "masks, pasted": {"source": MASKS, "transforms": [*SMALL, "copy_paste"], "output": {"x": "image", "y": "mask"}},
    "a mix": {"source": _mix(), "transforms": [*SMALL, *FLIP]},
    "a mix to the end of its shortest part": {"source": _mix(epoch="shortest"), "transforms": SMALL},
    "views": _photos(*FLIP, views=2),
    "views of two sizes": _photos(
        views={"large": {"transforms": FLIP}, "small": {"count": 2, "transforms": [{"random_crop": {"size": 16}}]}}
    ),
    "rare classes": _photos(sampling={"repeat_factor": {"feature": "label", "threshold": 0.4}}),
    "balanced classes": _photos(sampling={"balance": "label"}),
    "a subset": _photos(sampling={"subset": {"count": 9}}),
    "stages": _photos(stages=[{"epochs": 1, "batch": 2}, {"epochs": 2, "batch": 4}]),
    "folds": _photos(splits={"folds": {"count": 4, "fold": 1}}),
    "splits by hash": _photos(splits={"parts": {"train": 0.6, "validation": 0.2, "test": 0.2}, "method": "hash"}),
    "splits by class": _photos(splits=TWO | {"stratify": "label"}),
    "buckets": {
        "source": PHOTOS,
        "transforms": [{"resize": {"size": "bucket"}}, *FLIP],
        "batch": {"size": 4, "buckets": {"sizes": [[32, 40], [48, 48]]}},
    },
    "a padded end": _photos(splits=TWO, batch={"size": 8, "remainder": {"validation": "pad"}}),
    "steps of an epoch": _photos(epoch={"steps": 3}),
    "without an order": _photos(*FLIP, shuffle="none"),
    "shuffled by block": {"source": SOURCES["tfrecord"].spec(Path("data/tfrecord")), "transforms": SMALL, "shuffle": {"window": "10kB"}},
    "no cache": _photos(*FLIP, runtime={"cache": "none"}),
    "a cache in memory": _photos(*FLIP, runtime={"cache": "memory"}),
    "a cache on disk": _photos(*FLIP, runtime={"cache": {"disk": "cache"}}),
    "the first share": _photos(*FLIP, runtime={"shard": {"index": 0, "count": 2}}),
    "the second share": _photos(*FLIP, runtime={"shard": {"index": 1, "count": 2}}),
    "a share that mixes": _photos("mixup", output=ONE_HOT, runtime={"shard": {"index": 1, "count": 2}}),
    "without XLA": _photos(*FLIP, *COLOUR, *NORMAL, runtime={"jit": "never"}),
    "one thread": _photos(*FLIP, *COLOUR, runtime={"threads": 1, "prefetch": "none"}),
    "damaged files": {
        "source": {"image_folder": {"path": "damaged"}},
        "transforms": SMALL,
        "errors": {"decode": {"skip": {"max_fraction": 0.5}}},
    },
    "two inputs": {"source": MASKS, "transforms": SMALL, "output": {"x": {"a": "image", "b": "mask"}, "y": None}},
    "a typing error": _photos("random_flop", bach={"size": 4}),
    "many errors": {"source": {"image_foldr": {}}, "transforms": [{"resize": {"size": -1}}, {"crop": {}}], "splits": {"parts": {"a": 2}}},
    "no such folder": {"source": {"image_folder": {"path": "nowhere"}}, "transforms": SMALL},
    "an empty folder": {"source": {"image_folder": {"path": "empty"}}, "transforms": SMALL},
    "nothing random": _photos({"random_rotation": {"degrees": 0}}),
    "no scaling": _photos(output={"dtype": "float32"}),
}


def write_data() -> None:
    """Writes pictures to the working folder: files in every form of every source, scenes with boxes, outlines and points, and masks."""
    rng = np.random.default_rng(7)
    np.savez("sounds.npz", x=rng.normal(0, 0.2, (12, 16000)).clip(-1, 1).astype(np.float32))
    for i in range(COUNT):
        Path("words", "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        with wave.open(str(Path("words", "ab"[i % 2], f"{i:02}.wav")), "wb") as file:
            file.setparams((1, 2, 16000, 0, "NONE", ""))
            file.writeframes(np.random.default_rng(i).integers(-3000, 3000, 1600, np.int16).tobytes())
    np.savez("rows.npz", a=rng.normal(size=120), b=rng.normal(size=120))
    photos = []
    for i in range(COUNT):
        width, height = 40 + 8 * (i % 3), 36 + 6 * (i % 4)
        picture = Image.fromarray(rng.integers(0, 256, (6, 6, 3), np.uint8)).resize((width, height), Image.Resampling.BICUBIC)
        path = Path(f"picture-{i}.jpg")
        picture.save(path, quality=95)
        photos.append((path.read_bytes(), int(i % 5 == 4) + int(i % 7 == 6)))
        path.unlink()
    for name, source in SOURCES.items():
        if not source.library or find_spec(source.library) is not None:
            folder = Path("data", name)
            folder.mkdir(parents=True)
            source.write(folder, photos)
    _write_scenes(rng)
    Path("damaged/a").mkdir(parents=True)
    for i, (content, _) in enumerate(photos[:9]):
        Path(f"damaged/a/{i}.jpg").write_bytes(content[:200] if i == 4 else content)
    Path("empty").mkdir()
    Path("styles").mkdir()
    for i, (content, _) in enumerate(photos[:2]):
        Path(f"styles/{i}.jpg").write_bytes(content)


def _write_scenes(rng: np.random.Generator) -> None:
    Path("scenes").mkdir()
    Path("masks").mkdir()
    images, boxes = [], []
    for i in range(COUNT):
        mask = np.zeros((64, 80), np.uint8)
        for _ in range(1 + i % 3):
            x, y = (int(n) for n in rng.integers(2, [50, 34]))
            w, h, kind = int(rng.integers(8, 28)), int(rng.integers(8, 28)), int(rng.integers(1, 4))
            mask[y : y + h, x : x + w] = kind
            corners = [x, y, x + w, y, x + w, y + h, x, y + h]
            own = {"id": len(boxes), "image_id": i, "category_id": kind, "bbox": [x, y, w, h], "area": w * h, "iscrowd": 0}
            boxes.append(own | {"segmentation": [corners]})
        picture = rng.integers(0, 80, (64, 80, 3), np.uint8) + 40 * mask[..., None]
        Image.fromarray(picture).save(f"scenes/{i:02}.png")
        Image.fromarray(mask).save(f"masks/{i:02}.png")
        images.append({"id": i, "file_name": f"{i:02}.png", "width": 80, "height": 64})
    kinds = [{"id": kind, "name": f"kind {kind}"} for kind in (1, 2, 3)]
    Path("scenes.json").write_text(json.dumps({"images": images, "annotations": boxes, "categories": kinds}))
    corners = rng.integers(0, 40, (COUNT, 2, 2)).astype(np.float32)
    people = np.concatenate([corners, corners + rng.integers(6, 20, corners.shape)], 2)
    pictures = rng.integers(0, 256, (COUNT, 64, 64, 3), np.uint8)
    np.savez("people.npz", image=pictures, people=people, joints=np.stack([people[..., :2] + 1, people[..., 2:] - 1], 2))


def every_spec() -> Iterator[tuple[str, Spec]]:
    """Each spec with its name: those of `SPECS`, every worked example of every step (all but the first without XLA), and every form of
    every source."""
    from pipegen.ops.registry import transforms

    yield from SPECS.items()
    for op, step in transforms().items():
        for number, example in enumerate(step.examples):
            runtime = {"runtime": {"jit": "never"}} if number else {}
            yield f"step {op} {number}", _fitting(yaml.safe_load(example.yaml), example.given) | runtime
    for name, source in SOURCES.items():
        if (folder := Path("data", name)).exists():
            read = source.spec(folder)
            yield f"source {name}", {"source": read, "transforms": SMALL, "output": output_of(read)}


def _fitting(step: Any, given: Any) -> Spec:
    """A spec for a step: the first in which it says nothing wrong, of those with labels, masks or boxes; else the first."""
    from pipegen.phases.compilation import inspect
    from pipegen.types import BYTE_RANGE

    if given.kind in ALONG_TIME:
        before = [{"mel_spectrogram": {}}] if len(given.shape) == 3 else []
        after = [{"crop_or_pad": {"seconds": 1}}] if "trim" in step else []  # which leaves sounds of several lengths
        return {"source": ALONG_TIME[given.kind], "transforms": [*before, step, *after], "output": {"x": "x", "y": "x"}}
    sized = [] if given.shape in ((), None) or given.height is None else [{"resize": {"size": [given.height, given.width]}}]
    floats = [{"rescale": {"to": [0, 1]}}] if given.dtype.startswith("float") and given.interval != BYTE_RANGE else []
    floats += [{"cast": {"dtype": given.dtype}}] if given.dtype.startswith("float") and not floats else []
    found = []
    for source, y in ((PHOTOS, "label"), (MASKS, "mask"), (SCENES, "boxes"), (INSTANCES, "mask"), (POINTS, "joints")):
        for after in ([], [{"resize": {"size": 32}}]):
            spec = {"source": source, "transforms": [*sized, *floats, step, *after], "output": {"x": "image", "y": y}}
            found.append(spec)
            if not any(finding.severity.name == "ERROR" for finding in inspect("spec.yaml", text=text_of(spec)).diagnostics):
                return spec
    return found[0]


def text_of(spec: Spec) -> str:
    """A spec as it is written to a file; what `auto` reads off the machine is fixed."""
    runtime = {"ram_budget": "1GiB", "threads": 2} | spec.get("runtime", {})
    return yaml.safe_dump({"pipegen": 1, "batch": {"size": 4}, "seed": 3, **spec, "runtime": runtime}, sort_keys=False)


def digest(spec: Spec) -> Digest:
    """What a spec gives in the working folder, and what is said of it."""
    import pipegen
    from pipegen.diagnostics.text import render_text
    from pipegen.phases.compilation import inspect

    Path("spec.yaml").write_text(text_of(spec))
    seen = inspect("spec.yaml")
    told: Digest = {"findings": render_text(seen.diagnostics)}
    try:
        pipe = pipegen.build("spec.yaml", allow_code=["my_pkg"], allow_write=[Path.cwd()])
        told |= {"hash": pipe.spec_hash, "explain": str(pipe.explain(all=True)), "printed": str(pipe)}
        told |= {f"files of {split}": _sum(repr(list(pipe.files(split))).replace(os.getcwd(), "").encode()) for split in pipe.splits}
        for split in pipe.splits:
            if split != "train":
                told[f"batches of {split}"] = [_bits(batch) for batch in pipe[split].take(BATCHES)]
                continue
            for epoch, step in PLACES:
                pipe.seek(epoch, min(step, pipe.steps("train") - 1))
                try:
                    told[f"batches of epoch {epoch}"] = [_bits(batch) for batch in itertools.islice(pipe.train, BATCHES)]
                except pipegen.StateError as error:  # the stages end before it
                    told[f"batches of epoch {epoch}"] = str(error)
        told["drawn"] = _drawn(pipe)
    except (pipegen.SpecError, pipegen.DataError) as error:
        told["error"] = str(error)
    return told


def _drawn(pipe: Any) -> str:
    with tempfile.TemporaryDirectory() as folder:
        try:
            table = pipe.export(folder, pipe.splits[0], examples=4, draws=2).table
        except ValueError as error:  # of images that are no picture
            return str(error).replace(folder, "FOLDER")
        return _sum(table.read_bytes())


def _bits(batch: Any) -> str:
    import tensorflow as tf

    whole = hashlib.sha256()
    for part in tf.nest.flatten(batch):
        array = part.numpy()
        content = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
        whole.update(f"{array.dtype} {array.shape}".encode() + content)
    return whole.hexdigest()[:16]


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def differences(before: dict[str, Digest], after: dict[str, Digest]) -> list[str]:
    """Lines that say which digests and texts of specs differ; none where nothing does."""
    lines = [f"{name}: only before" for name in before if name not in after]
    lines += [f"{name}: only after" for name in after if name not in before]
    for name in [name for name in before if name in after]:
        for what in sorted(before[name].keys() | after[name].keys()):
            one, other = before[name].get(what), after[name].get(what)
            if one == other:
                continue
            lines.append(f"{name}: {what} differs")
            if isinstance(one, str) and isinstance(other, str):
                lines += [f"    {line}" for line in difflib.unified_diff(one.splitlines(), other.splitlines(), lineterm="", n=0)][2:]
            else:
                lines.append(f"    {one} -> {other}")
    return lines


def main() -> None:
    """Writes digests, and compares them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="where the digests are written")
    parser.add_argument("--against", type=Path, help="digests to compare with")
    parser.add_argument("--only", default="", help="specs whose names hold this")
    told = parser.parse_args()
    out = told.out.absolute()
    found: dict[str, Digest] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        here = Path.cwd()
        sys.path.append(str(Path(__file__).parents[1] / "tests"))  # the functions of the worked examples
        os.chdir(folder)
        write_data()
        for name, spec in track([(name, spec) for name, spec in every_spec() if told.only in name], "specs"):
            found[name] = json.loads(json.dumps(digest(spec)).replace(folder, "FOLDER"))
            gc.collect()  # graphs are in cycles, and each copies every function that is alive
        os.chdir(here)
    out.write_text(json.dumps(found, indent=1))
    failed = sum("error" in one for one in found.values())
    print(f"{len(found)} specs, of which {failed} end in an error that is told")
    if told.against is not None:
        before = {name: one for name, one in json.loads(told.against.read_text()).items() if told.only in name}
        lines = differences(before, found)
        print("\n".join(lines) if lines else "no difference")
        sys.exit(bool(lines))


if __name__ == "__main__":
    main()
