"""Make ImageNet-like folders from large photographs, one sub-folder per photograph that the images come from.

    apt-get download mate-backgrounds plasma-workspace-wallpapers
    for deb in *.deb; do dpkg -x "$deb" wallpapers; done
    python -m benchmarks.make_photos wallpapers photos                      # 3,000 JPEGs of about 500×375 pixels and 80 KB
    python -m benchmarks.make_photos wallpapers photos-large --kind large   # 48 JPEGs of 12 megapixels and about 5 MB
    python -m benchmarks.make_photos wallpapers photos-png --kind png       # 600 PNGs of about 500×375 pixels

Windows of large photographs, resized, with noise like a sensor's, so that the files are as heavy to decode as a
camera's. Seeded: image number i is the same whatever the count.
"""

from __future__ import annotations

import argparse
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rich.progress import track

KDE = ("Autumn", "BytheWater", "ColdRipple", "ColorfulCups", "EveningGlow", "FallenLeaf", "Kite", "OneStandsOut", "Path")
"""The wallpapers of plasma-workspace-wallpapers that are photographs."""


@dataclass(frozen=True)
class Kind:
    """What a folder holds.

    Attributes:
        sizes: Width and height in pixels; what stands there twice is twice as likely.
        count: How many images, unless told.
        noise: Standard deviation of the noise, in levels of 0..255.
        reduction: Range of the window's size over the image's, as far as the photograph is large enough.
        suffix: Of the files.
        options: For Pillow's `save`.
    """

    sizes: tuple[tuple[int, int], ...]
    count: int
    noise: float
    reduction: tuple[float, float] = (1.0, 1.6)
    suffix: str = "jpg"
    options: dict[str, Any] = field(default_factory=lambda: {"quality": 95})


_SMALL = ((500, 375), (500, 375), (500, 333), (375, 500), (640, 480), (400, 400))

KINDS = {
    "photos": Kind(_SMALL, count=3000, noise=5.0),
    "large": Kind(((4000, 3000), (4000, 3000), (3000, 4000), (4032, 3024)), count=48, noise=5.0),
    "png": Kind(_SMALL, count=600, noise=2.0, suffix="png", options={"compress_level": 6}),
}


def find_sources(root: Path) -> list[Path]:
    """The photographs among the unpacked wallpapers, sorted.

    Raises:
        FileNotFoundError: If there are none.
    """
    mate = root / "usr/share/backgrounds/mate"
    found = sorted(mate.glob("nature/*.jpg")) + sorted(mate.glob("abstract/Elephants_3840x2160.jpg"))
    found += [path for name in KDE if (path := root / f"usr/share/wallpapers/{name}/contents/images/2560x1600.jpg").exists()]
    if not found:
        raise FileNotFoundError(f"no wallpapers under {root}; unpack mate-backgrounds and plasma-workspace-wallpapers there with dpkg -x")
    return found


def make_one(photo: Image.Image, seed: int, kind: Kind) -> Image.Image:
    """One window of a photograph, resized, with noise."""
    rng = random.Random(seed)
    width, height = rng.choice(kind.sizes)
    scale = rng.uniform(*kind.reduction)
    taken_width, taken_height = min(photo.width, int(width * scale)), min(photo.height, int(height * scale))
    x, y = rng.randint(0, photo.width - taken_width), rng.randint(0, photo.height - taken_height)
    window = photo.resize((width, height), Image.Resampling.LANCZOS, (x, y, x + taken_width, y + taken_height))
    noise = np.random.default_rng(seed).normal(0.0, kind.noise, (height, width, 3))
    return Image.fromarray(np.clip(np.asarray(window) + noise, 0, 255).astype(np.uint8))


def make(sources: list[Path], out: Path, count: int, kind: Kind = KINDS["photos"]) -> None:
    """Write `count` images in turn from each source, one folder per source."""
    photos = [Image.open(path).convert("RGB") for path in sources]
    for i in track(range(count), description="Making images"):
        k = i % len(photos)
        folder = out / f"class_{k:03d}"
        folder.mkdir(parents=True, exist_ok=True)
        make_one(photos[k], i, kind).save(folder / f"{i:06d}.{kind.suffix}", **kind.options)


def main() -> int:
    """Make the folder. Returns the exit code."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m benchmarks.make_photos", description=__doc__, formatter_class=raw)
    parser.add_argument("wallpapers", type=Path, help="where the packages were unpacked")
    parser.add_argument("out", type=Path, help="the folder to make")
    parser.add_argument("--kind", choices=list(KINDS), default="photos", help="what the folder holds (default: photos)")
    parser.add_argument("--count", type=int, help="how many images (default: 3000 photos, 48 large, 600 png)")
    args = parser.parse_args()
    kind = KINDS[args.kind]
    try:
        make(find_sources(args.wallpapers), args.out, args.count or kind.count, kind)
    except FileNotFoundError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
