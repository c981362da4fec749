"""The script that made `photos/`, `unlabelled/` and `ATTRIBUTION.md`: small crops of photographs that scikit-image ships.

    pip install pillow scikit-image
    python make_photos.py [FOLDER]

Each photograph is one class. It is cut into six regions of equal size, and no crop crosses from one region into
another, so that a split that keeps regions whole never shows the model a pixel that it is tested on. Five regions
become `photos/CLASS/partN-NN.jpg`; the sixth is kept for `unlabelled/`. Crops differ in place, scale and shape, are
never enlarged, and are seeded by class and region: the same Pillow writes the same bytes.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

CROPS_PER_REGION = 10
UNLABELLED = 12
SIDES = (96, 160)
"""The least and the greatest side of a crop, in pixels."""
QUALITY = 82
HELD_BACK = 1
"""The region that goes to `unlabelled/`: the middle one of the upper row, where the subject is plain to see."""


@dataclass(frozen=True)
class Photo:
    """A photograph and where it comes from.

    Attributes:
        name: The class.
        file: The file in scikit-image's `data` folder.
        box: The part that shows the subject: left, upper, right, lower, in pixels.
        title: What it shows.
        author: Who made it.
        licence: Its terms.
        source: Where scikit-image took it from.
    """

    name: str
    file: str
    box: tuple[int, int, int, int]
    title: str
    author: str
    licence: str
    source: str


CC0 = "CC0 1.0"
PHOTOS = (
    Photo("brick", "brick.png", (0, 0, 512, 512), "Brick wall (Bricks25)", "Lennart Demes, CC0Textures", CC0,
          "https://cc0textures.com/view.php?tex=Bricks25"),
    Photo("cat", "chelsea.png", (0, 0, 400, 300), "Chelsea the cat", "Stefan van der Walt", CC0,
          "given to scikit-image by the photographer"),
    Photo("coffee", "coffee.png", (0, 0, 600, 400), "Coffee cup", "Rachel Michetti, courtesy of Pikolo Espresso Bar", CC0,
          "given to scikit-image by the photographer"),
    Photo("eye", "retina.jpg", (208, 208, 1203, 1203), "Fundus photograph of normal left eye", "Mikael Häggström", CC0,
          "https://commons.wikimedia.org/wiki/File:Fundus_photograph_of_normal_left_eye.jpg"),
    Photo("grass", "grass.png", (0, 0, 512, 512), "Grass 01", "linolafett", CC0, "https://www.deviantart.com/linolafett/art/Grass-01-434853879"),
    Photo("gravel", "gravel.png", (0, 0, 512, 512), "Gravel (Gravel04)", "Lennart Demes, CC0Textures", CC0,
          "https://cc0textures.com/view.php?tex=Gravel04"),
    Photo("rocket", "rocket.jpg", (0, 121, 639, 427), "DSCOVR on Falcon 9 at Cape Canaveral", "SpaceX",
          "public domain (released by SpaceX)", "https://www.flickr.com/photos/spacexphotos/16511594820/"),
    Photo("stars", "hubble_deep_field.jpg", (0, 0, 999, 872), "Hubble eXtreme Deep Field", "NASA",
          "public domain (NASA)", "http://hubblesite.org/newscenter/archive/releases/2012/37/image/a/"),
)  # fmt: skip


def find_sources() -> Path:
    """The folder of photographs inside the installed scikit-image.

    Raises:
        FileNotFoundError: If scikit-image is not installed.
    """
    spec = importlib.util.find_spec("skimage")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("scikit-image is not installed: pip install scikit-image")
    return Path(spec.origin).parent / "data"


def regions(box: tuple[int, int, int, int]) -> list[tuple[int, int, int, int]]:
    """Six equal boxes, three across and two down, row by row."""
    left, upper, right, lower = box
    w, h = (right - left) // 3, (lower - upper) // 2
    return [(left + x * w, upper + y * h, left + (x + 1) * w, upper + (y + 1) * h) for y in range(2) for x in range(3)]


def crops(image: Image.Image, box: tuple[int, int, int, int], count: int, seed: str) -> list[Image.Image]:
    """`count` crops from inside `box`, at random places, scales and shapes."""
    rng = random.Random(seed)
    box_width, box_height = box[2] - box[0], box[3] - box[1]
    found = []
    for _ in range(count):
        width, height = min(rng.randint(*SIDES), box_width), min(rng.randint(*SIDES), box_height)
        scale = rng.uniform(1.0, min(box_width / width, box_height / height))
        taken_width, taken_height = int(width * scale), int(height * scale)
        x, y = box[0] + rng.randint(0, box_width - taken_width), box[1] + rng.randint(0, box_height - taken_height)
        found.append(image.resize((width, height), Image.Resampling.LANCZOS, (x, y, x + taken_width, y + taken_height)))
    return found


def make_class(photo: Photo, sources: Path, out: Path) -> None:
    """Write `out/photos/CLASS/` and this class's share of `out/unlabelled/`."""
    with Image.open(sources / photo.file) as opened:
        image = opened.copy()
    boxes = regions(photo.box)
    held_back = boxes.pop(HELD_BACK)
    folder, unlabelled = out / "photos" / photo.name, out / "unlabelled"
    folder.mkdir(parents=True, exist_ok=True)
    unlabelled.mkdir(parents=True, exist_ok=True)
    for part, box in enumerate(boxes, 1):
        for i, crop in enumerate(crops(image, box, CROPS_PER_REGION, f"{photo.name}/{part}")):
            crop.save(folder / f"part{part}-{i:02d}.jpg", quality=QUALITY)
    share = len(range(PHOTOS.index(photo), UNLABELLED, len(PHOTOS)))
    for i, crop in enumerate(crops(image, held_back, share, f"{photo.name}/unlabelled"), 1):
        crop.save(unlabelled / f"{photo.name}-{i}.jpg", quality=QUALITY)


def attribution() -> str:
    """The text of `ATTRIBUTION.md`."""
    rows = "\n".join(f"| `{p.name}` | `{p.file}` | {p.title} | {p.author} | {p.licence} | {p.source} |" for p in PHOTOS)
    return f"""# Attribution

Every file in `photos/` and `unlabelled/` is a crop, made smaller, of one of the photographs below, which
[scikit-image](https://scikit-image.org) ships in its `skimage/data` folder and whose terms its documentation of
`skimage.data` states. All are CC0 or in the public domain; the crops are given under the same terms. Written by
`make_photos.py`.

| class | file | title | author | licence | source |
|---|---|---|---|---|---|
{rows}
"""


def main() -> None:
    """Make everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = Path(__file__).resolve().parent
    parser.add_argument("folder", nargs="?", type=Path, default=here, help="where to write (default: beside this script)")
    out = parser.parse_args().folder
    for photo in PHOTOS:
        make_class(photo, find_sources(), out)
    (out / "ATTRIBUTION.md").write_text(attribution(), encoding="utf-8")
    files = [*out.glob("photos/*/*.jpg"), *out.glob("unlabelled/*.jpg")]
    print(f"{len(files)} photographs, {sum(f.stat().st_size for f in files) / 1e6:.2f} MB, in {out}")


if __name__ == "__main__":
    main()
