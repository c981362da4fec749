"""Make an ImageNet-like folder: JPEGs of about 500×375 pixels and 80 KB, one sub-folder per photograph they come from.

    apt-get download mate-backgrounds plasma-workspace-wallpapers
    for deb in *.deb; do dpkg -x "$deb" wallpapers; done
    python -m benchmarks.make_photos wallpapers photos [--count 3000]

Windows of large photographs, slightly reduced, with noise like a sensor's, so that the files are as heavy to decode
as a camera's. Seeded: image number i is the same whatever the count.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

import numpy as np
from PIL import Image
from rich.progress import track

SIZES = ((500, 375), (500, 375), (500, 333), (375, 500), (640, 480), (400, 400))
"""Width and height in pixels, with the landscape format twice as likely."""
REDUCTION = (1.0, 1.6)
NOISE = 5.0
"""Standard deviation of the noise, in levels of 0..255."""
QUALITY = 95
KDE = ("Autumn", "BytheWater", "ColdRipple", "ColorfulCups", "EveningGlow", "FallenLeaf", "Kite", "OneStandsOut", "Path")
"""The wallpapers of plasma-workspace-wallpapers that are photographs."""


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


def make_one(photo: Image.Image, seed: int) -> Image.Image:
    """One window of a photograph, reduced, with noise."""
    rng = random.Random(seed)
    width, height = rng.choice(SIZES)
    scale = rng.uniform(*REDUCTION)
    taken_width, taken_height = min(photo.width, int(width * scale)), min(photo.height, int(height * scale))
    x, y = rng.randint(0, photo.width - taken_width), rng.randint(0, photo.height - taken_height)
    window = photo.resize((width, height), Image.Resampling.LANCZOS, (x, y, x + taken_width, y + taken_height))
    noise = np.random.default_rng(seed).normal(0.0, NOISE, (height, width, 3))
    return Image.fromarray(np.clip(np.asarray(window) + noise, 0, 255).astype(np.uint8))


def make(sources: list[Path], out: Path, count: int) -> None:
    """Write `count` images in turn from each source, one folder per source."""
    photos = [Image.open(path).convert("RGB") for path in sources]
    for i in track(range(count), description="Making photographs"):
        k = i % len(photos)
        folder = out / f"class_{k:03d}"
        folder.mkdir(parents=True, exist_ok=True)
        make_one(photos[k], i).save(folder / f"{i:06d}.jpg", quality=QUALITY)


def main() -> int:
    """Make the folder. Returns the exit code."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m benchmarks.make_photos", description=__doc__, formatter_class=raw)
    parser.add_argument("wallpapers", type=Path, help="where the packages were unpacked")
    parser.add_argument("out", type=Path, help="the folder to make")
    parser.add_argument("--count", type=int, default=3000, help="how many images (default: 3000)")
    args = parser.parse_args()
    try:
        make(find_sources(args.wallpapers), args.out, args.count)
    except FileNotFoundError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
