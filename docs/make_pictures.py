"""Draws the pictures of the op reference: for each step, an image, a sound or a series before and after it.

    pip install -e '.[dev]' scikit-image
    python -m docs.make_pictures [STEP ...]

The photographs come with scikit-image, under CC0 or in the public domain: a cat (Stéfan van der Walt), a
rocket (NASA), a cup of coffee (Rachel Michetti) and an astronaut (NASA).
"""

from __future__ import annotations

import argparse
import logging
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from PIL import Image
from skimage import data

import pipegen
from pipegen.ops.families.combining import CombiningTransform
from pipegen.ops.families.crops import ItemCrop
from pipegen.ops.families.fitted import FittedTransform
from pipegen.ops.families.item_stages import PastingTransform
from pipegen.ops.families.references import ReferenceTransform
from pipegen.ops.kinds.base import kind_named
from pipegen.ops.registry import transforms
from pipegen.ops.transforms.rotate_90 import TurnTransform

if TYPE_CHECKING:
    from pipegen.ops.transform import Transform

PICTURES = Path(__file__).parent / "pictures"
HEIGHT, WIDTH, GAP = 128, 192, 4
"""Size of each image on a picture, and the space between two, in pixels."""
DRAWS = 4
PATCH, PATCHES = (24, 36), 1200
"""Height and width of a patch, in pixels, and the number of patches."""
RATE = 16000
PHOTOS = ("chelsea", "rocket", "coffee", "astronaut")


def photographs(folder: Path, *, alike: bool) -> None:
    """Writes eight files of one class: of one photograph, or of four different ones."""
    (folder / "photo").mkdir(parents=True)
    for i in range(8):
        name = PHOTOS[0] if alike else PHOTOS[i % len(PHOTOS)]
        image = Image.fromarray(np.asarray(getattr(data, name)()))
        image.resize((2 * WIDTH, 2 * HEIGHT), Image.Resampling.LANCZOS).save(folder / "photo" / f"{i}.png")


def masks(folder: Path) -> None:
    """Writes a mask for each photograph: an ellipse in the middle, like an object."""
    (folder / "mask").mkdir()
    y, x = np.mgrid[-1 : 1 : 2j * HEIGHT, -1 : 1 : 2j * WIDTH]
    for photo in sorted((folder / "photo").iterdir()):
        Image.fromarray((x**2 + y**2 < 0.3).astype(np.uint8)).save(folder / "mask" / photo.name)


def patches(folder: Path) -> None:
    """Writes many small patches of the four, for a step that learns how pixels correlate."""
    (folder / "photo").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for i in range(PATCHES):
        image = np.asarray(getattr(data, PHOTOS[i % len(PHOTOS)])())
        top, left = (int(rng.integers(side - 4 * small)) for side, small in zip(image.shape, PATCH, strict=False))
        piece = Image.fromarray(image[top : top + 4 * PATCH[0], left : left + 4 * PATCH[1]])
        piece.resize(PATCH[::-1], Image.Resampling.BOX).save(folder / "photo" / f"{i:04d}.png")


def spec(step: type[Transform], folder: Path) -> dict[str, Any]:
    """Spec of a worked example of the step alone, on images of the size shown if the step takes any size."""
    example = yaml.safe_load(step.examples[0].yaml)
    if issubclass(step, ReferenceTransform):
        example[step.op]["references"] = str(folder.parent / "different" / "photo")
    wide = 2 * HEIGHT if step.random and issubclass(step, TurnTransform) else 2 * WIDTH  # random quarter turns need squares
    size = {"resize": {"size": list(PATCH) if folder.name == "patches" else [2 * HEIGHT, wide]}}
    any_size, varies = step.examples[0].given.height is None, "?" in step.examples[0].then
    steps = [*([] if any_size else [size]), example, *([size] if any_size and varies else [])]
    masked = (folder / "mask").is_dir()
    features = {"image": {"kind": "image", "path": str(folder / "photo")}, "mask": {"kind": "mask", "path": str(folder / "mask")}}
    return {
        "pipegen": 1,
        "source": {"files": {"features": features}} if masked else {"image_folder": {"path": str(folder)}},
        "transforms": steps,
        "shuffle": "none",
        "batch": {"size": 8},
        "output": {"y": "mask"} if masked else {"encode": {"label": "one_hot"}},
        "runtime": {"cache": "none", "jit": "never"},
    }


def sound() -> Any:
    """Two seconds of four syllables with gliding pitches, float32 `(1, frames, 1)` of 16 kHz."""
    rng = np.random.default_rng(0)
    time = np.arange(2 * RATE) / RATE
    made = rng.normal(0, 0.001, len(time))
    for begin, pitch, glide in ((0.2, 180, 60), (0.6, 240, -80), (1.0, 150, 90), (1.4, 210, -40)):
        t = time - begin
        loud = np.where((t > 0) & (t < 0.3), np.sin(np.pi * np.clip(t / 0.3, 0, 1)) ** 2, 0)
        phase = 2 * np.pi * (pitch * t + glide * t**2 / 2 * 3)
        made += loud * sum(np.sin(k * phase) / k for k in range(1, 12)) * 0.3
    return made[None, :, None].astype(np.float32)


def series() -> Any:
    """A series of two waves with noise, float32 `(1, rows, 2)`."""
    rng = np.random.default_rng(0)
    time = np.arange(96)
    made = np.stack([np.sin(time / 6), 0.6 * np.cos(time / 11) + time / 200], 1) + rng.normal(0, 0.05, (96, 2))
    return made[None].astype(np.float32)


def along_time(step: type[Transform]) -> Image.Image:
    """Draws the row of pictures of a step on sound or series: the waveform, lines or spectra before it and after it."""
    example, given = yaml.safe_load(step.examples[0].yaml), step.examples[0].given
    if given.kind == "series":
        source, data, before = {"series": {"features": {"x": {"kind": "series"}}}}, {"x": series()[0]}, []
    else:
        source = {"arrays": {"features": {"x": {"kind": "audio", "rate": RATE}}}}
        data, before = (
            {"x": sound()},
            [{"mel_spectrogram": {"bands": 64}}, *([] if step.op == "log" else ["log"])][: 2 * (len(given.shape) == 3)],
        )
    output = {"output": {"x": "x", "y": "x"}, "runtime": {"cache": "none", "jit": "never"}}
    rows = []
    for steps, count in ((before, 1), ([*before, example], DRAWS if step.random else 1)):
        pad = {"pad": {"to": 2 * RATE}} if steps != before and step.examples[0].then.startswith("float32[?") else {}
        made = {"pipegen": 1, "source": source, "transforms": steps, "batch": {"size": 1, "remainder": "keep", **pad}, **output}
        pipe = pipegen.build(made, data=data)
        for epoch in range(count):
            value = next(iter(pipe.dataset("train", epoch=epoch)))[0].numpy()[0]
            rows.append(shown(kind_named(given.kind).samples.shown(value, pipe._plans["train"].out["x"])))
    return beside(rows)


def shown(image: Any) -> Image.Image:
    """Scales an image of any range to one that can be shown."""
    x = np.asarray(image, np.float32)
    low, high = (0.0, 255.0) if x.min() >= 0 and x.max() > 1.5 else (float(x.min()), max(float(x.max()), float(x.min()) + 1e-6))
    x = np.clip((x - low) / (high - low) * 255, 0, 255).round().astype(np.uint8)
    return Image.fromarray(np.broadcast_to(x, (*x.shape[:2], 3))).resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)


def picture(step: type[Transform], folder: Path) -> Image.Image:
    """Draws the row of images of one step."""
    made = spec(step, folder)
    pipe = pipegen.build(made)
    images = next(iter(pipe.dataset("train", epoch=1)))[0].numpy()[: DRAWS if step.random else 1]
    given = [Image.open(sorted((folder / "photo").iterdir())[0])]
    return beside([shown(np.asarray(g)) for g in given] + [shown(i) for i in images])


def beside(row: list[Image.Image]) -> Image.Image:
    """Puts pictures beside each other."""
    sheet = Image.new("RGB", (len(row) * (WIDTH + GAP) - GAP, HEIGHT), "white")
    for i, image in enumerate(row):
        sheet.paste(image, (i * (WIDTH + GAP), 0))
    return sheet


def main(argv: list[str] | None = None) -> None:
    """Writes the pictures of the named steps, or of all."""
    parser = argparse.ArgumentParser(prog="python -m docs.make_pictures", description="Draw what each step does.")
    parser.add_argument("steps", nargs="*", metavar="STEP", help="which steps (default: all)")
    names = parser.parse_args(argv).steps or list(transforms())
    logging.getLogger("pipegen").setLevel(logging.ERROR)  # not shuffling is intended
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        names_of = ("alike", "different", "masked", "objects", "patches")
        alike, different, masked, objects, pieces = (Path(scratch, name) for name in names_of)
        patches(pieces)
        photographs(alike, alike=True)
        photographs(different, alike=False)
        photographs(masked, alike=False)
        masks(masked)
        photographs(objects, alike=True)
        masks(objects)
        for name in names:
            step = transforms()[name]
            if step.examples[0].given.kind != "image":
                along_time(step).save(PICTURES / f"{name}.jpg", quality=80)
                print(name, flush=True)
                continue
            folders = {PastingTransform: masked, CombiningTransform: different, FittedTransform: pieces}
            folder = next((f for family, f in folders.items() if issubclass(step, family)), alike)
            if issubclass(step, ItemCrop) and "pixels" in step.led_by:
                folder = objects
            picture(step, folder).save(PICTURES / f"{name}.jpg", quality=80)
            print(name, flush=True)


if __name__ == "__main__":
    main()
