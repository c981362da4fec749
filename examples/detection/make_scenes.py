"""Write scenes to learn detection from: coins, cups and retinas, cut out of photographs and laid on gravel, grass and brick, as COCO.

The photographs are those that scikit-image ships (`pip install scikit-image`): `coins` of the Brooklyn Museum (no known copyright
restrictions), and under CC0 `coffee` by Rachel Michetti, `retina` by Mikael Häggström, `gravel` and `brick` by Lennart Demes and `grass` by
linolafett. Coins and grounds of the validation scenes are others than those of the training scenes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

if TYPE_CHECKING:
    from collections.abc import Sequence

CLASSES = ("coin", "cup", "retina")
"""The classes, in the order of their indices."""
GROUNDS = ("gravel", "grass", "brick")
SIDES = (160, 120)
"""Width and height of a scene, in pixels."""
SAUCER = (
    (77, 215), (90, 160), (125, 110), (172, 70), (180, 40), (215, 20), (260, 17), (320, 27), (370, 50), (400, 68), (425, 72), (420, 105),
    (445, 135), (470, 180), (479, 240), (465, 300), (430, 345), (380, 372), (330, 385), (270, 378), (210, 360), (150, 325), (105, 280),
)  # fmt: skip
"""The outline of the cup on its saucer, in pixels of the photograph."""
VALIDATION_COINS = 4
"""Every so many-th coin is kept for the validation scenes."""


def cut(photo: Image.Image, shape: Image.Image) -> Image.Image:
    """The part of a photograph that a mask shows, with the mask as its transparency."""
    whole = photo.convert("RGB")
    whole.putalpha(shape.filter(ImageFilter.GaussianBlur(1)))
    return whole.crop(shape.getbbox())


def coins() -> list[Image.Image]:
    """The coins of the photograph: what is brighter than the cloth below it, each in its round."""
    from skimage import data, filters, measure, morphology

    photo = data.coins()
    bright = filters.gaussian(photo, 1.5, preserve_range=True) > filters.threshold_local(photo, 151)
    found = measure.label(morphology.opening(bright, morphology.disk(3)))
    pieces = []
    for region in sorted(measure.regionprops(found), key=lambda region: region.bbox):
        top, left, bottom, right = region.bbox
        if min(bottom - top, right - left) < 28 or max(bottom - top, right - left) > 80:
            continue
        round_ = Image.new("L", photo.shape[::-1])
        ImageDraw.Draw(round_).ellipse((left, top, right - 1, bottom - 1), fill=255)
        pieces.append(cut(Image.fromarray(photo), round_))
    return pieces


def things() -> dict[str, list[Image.Image]]:
    """What is laid on the grounds, by its class."""
    from skimage import data

    cup, retina = Image.fromarray(data.coffee()), Image.fromarray(data.retina()).resize((300, 300))
    outline = Image.new("L", cup.size)
    ImageDraw.Draw(outline).polygon(SAUCER, fill=255)
    round_ = Image.new("L", retina.size)
    ImageDraw.Draw(round_).ellipse((4, 4, 295, 295), fill=255)
    return {"coin": coins(), "cup": [cut(cup, outline)], "retina": [cut(retina, round_)]}


def laid(rng: np.random.Generator, piece: Image.Image) -> Image.Image:
    """A piece as it lies there: of another size, turned, perhaps mirrored, lighter or darker."""
    side = rng.uniform(22, 54)
    scale = side / max(piece.size)
    piece = piece.resize((max(8, round(piece.width * scale)), max(8, round(piece.height * scale))))
    if rng.random() < 0.5:
        piece = piece.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    piece = piece.rotate(rng.uniform(-40, 40), Image.Resampling.BICUBIC, expand=True)
    light = rng.uniform(0.75, 1.2)
    colours = np.clip(np.asarray(piece)[..., :3] * light, 0, 255).astype(np.uint8)
    lit = Image.fromarray(colours)
    lit.putalpha(piece.getchannel("A"))
    return lit


def scene(
    rng: np.random.Generator, pieces: dict[str, list[Image.Image]], grounds: Sequence[Image.Image]
) -> tuple[Image.Image, list[tuple[str, tuple[int, int, int, int]]]]:
    """A photo, and the class and the box of each thing on it; none covers more than a corner of another."""
    ground = grounds[rng.integers(len(grounds))]
    left, top = rng.integers(0, ground.width - SIDES[0]), rng.integers(0, ground.height - SIDES[1])
    photo = ground.crop((left, top, left + SIDES[0], top + SIDES[1]))
    boxes: list[tuple[str, tuple[int, int, int, int]]] = []
    for _ in range(rng.integers(0, 6)):
        name = CLASSES[rng.integers(len(CLASSES))]
        piece = laid(rng, pieces[name][rng.integers(len(pieces[name]))])
        x, y = rng.integers(0, SIDES[0] - piece.width + 1), rng.integers(0, SIDES[1] - piece.height + 1)
        inner = piece.getchannel("A").point(lambda value: 255 * (value > 127)).getbbox() or (0, 0, *piece.size)
        box = (x + inner[0], y + inner[1], x + inner[2], y + inner[3])
        if any(min(box[2], b[2]) - max(box[0], b[0]) > 6 and min(box[3], b[3]) - max(box[1], b[1]) > 6 for _, b in boxes):
            continue
        photo.paste(piece, (int(x), int(y)), piece)
        boxes.append((name, tuple(map(int, box))))  # type: ignore[arg-type]
    return photo, boxes


def write_scenes(folder: Path, counts: dict[str, int]) -> None:
    """Write `folder/PART/NNN.jpg` and `folder/PART.json`, the same ones each time."""
    from skimage import data

    pieces = things()
    whole = [Image.fromarray(getattr(data, name)()).convert("RGB").resize((400, 400)) for name in GROUNDS]
    for part, count in counts.items():
        rng = np.random.default_rng(list(part.encode()))
        held = part == "validation"
        coins_here = [coin for i, coin in enumerate(pieces["coin"]) if (i % VALIDATION_COINS == 0) == held]
        grounds = [ground.crop((0, 260, 400, 400) if held else (0, 0, 400, 260)) for ground in whole]
        (folder / part).mkdir(parents=True, exist_ok=True)
        images: list[dict[str, Any]] = []
        annotations: list[dict[str, Any]] = []
        for i in range(count):
            photo, boxes = scene(rng, pieces | {"coin": coins_here}, grounds)
            photo.save(folder / part / f"{i:03d}.jpg", quality=90)
            images.append({"id": i, "file_name": f"{i:03d}.jpg", "width": SIDES[0], "height": SIDES[1]})
            for name, (x0, y0, x1, y1) in boxes:
                own = {"id": len(annotations), "image_id": i, "category_id": CLASSES.index(name), "iscrowd": 0}
                annotations.append({**own, "bbox": [x0, y0, x1 - x0, y1 - y0], "area": (x1 - x0) * (y1 - y0)})
        categories = [{"id": i, "name": name} for i, name in enumerate(CLASSES)]
        content = {"images": images, "annotations": annotations, "categories": categories}
        (folder / f"{part}.json").write_text(json.dumps(content), encoding="utf-8")
