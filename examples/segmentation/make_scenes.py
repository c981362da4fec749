"""Write photos and masks to learn segmentation from: patches of grass and brick on gravel, out of the quickstart's photographs.

The masks are palette PNGs, as annotation tools write them: 0 gravel, 1 grass, 2 brick. Photographs of the validation scenes are cut from
other regions than those of the training scenes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

if TYPE_CHECKING:
    from collections.abc import Sequence

PHOTOS = Path(__file__).resolve().parents[1] / "quickstart" / "photos"
GROUNDS = ("gravel", "grass", "brick")
"""The classes, in the order of their indices."""
PALETTE = (128, 128, 128, 46, 160, 67, 230, 57, 70)
"""Red, green and blue of each."""
SIZE = 96
"""The side of a scene, in pixels."""
REGIONS = {"train": (1, 2, 3, 4), "validation": (5,)}
"""The regions of the photographs that each part is cut from."""


def blob(rng: np.random.Generator) -> Image.Image:
    """A round shape with an uneven edge, as a mask of 0 and 255."""
    centre, radius = rng.uniform(0.25, 0.75, 2) * SIZE, rng.uniform(0.18, 0.34) * SIZE
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    reach = radius * (1 + 0.3 * np.sin(3 * angles + rng.uniform(0, 6)) * rng.uniform(0, 1))
    edge = [(float(centre[0] + r * np.cos(a)), float(centre[1] + r * np.sin(a))) for r, a in zip(reach, angles, strict=True)]
    shape = Image.new("L", (SIZE, SIZE))
    ImageDraw.Draw(shape).polygon(edge, fill=255)
    return shape.filter(ImageFilter.GaussianBlur(2)).point(lambda value: 255 * (value > 127))


def scene(rng: np.random.Generator, files: Sequence[Sequence[Path]]) -> tuple[Image.Image, Image.Image]:
    """A photo and its mask."""
    photo, classes = Image.new("RGB", (SIZE, SIZE)), np.zeros((SIZE, SIZE), np.uint8)
    order = [0, *rng.permutation([1, 2]).tolist()]
    for ground in order:
        path = files[ground][rng.integers(len(files[ground]))]
        shape = Image.new("L", (SIZE, SIZE), 255) if ground == 0 else blob(rng)
        with Image.open(path) as texture:
            photo.paste(texture.convert("RGB").resize((SIZE, SIZE)), mask=shape)
        classes[np.asarray(shape) > 0] = ground
    mask = Image.fromarray(classes, mode="P")
    mask.putpalette(PALETTE)
    return photo, mask


def write_scenes(folder: Path, counts: dict[str, int]) -> None:
    """Write `folder/PART/photos/NNN.jpg` and `folder/PART/masks/NNN.png`, the same ones each time."""
    for part, count in counts.items():
        rng = np.random.default_rng(list(part.encode()))
        files = [sorted(p for region in REGIONS[part] for p in (PHOTOS / ground).glob(f"part{region}-*.jpg")) for ground in GROUNDS]
        for name in ("photos", "masks"):
            (folder / part / name).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            photo, mask = scene(rng, files)
            photo.save(folder / part / "photos" / f"{i:03d}.jpg", quality=90)
            mask.save(folder / part / "masks" / f"{i:03d}.png")
