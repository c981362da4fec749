"""Measures how many edited copies the search for leaks finds, what it calls copies that are none, and how fast it is.

    python -m benchmarks.leaks PHOTOS [--copies 300] [--hashes 1000000]

PHOTOS holds one sub-folder of photographs per class, as `python -m benchmarks.make_photos` makes. Copies are made of some: saved anew
with quality 50, half as wide and high, cut by 3 % at each side, brighter by 30 %, in gray, mirrored. Other pictures are all pairs of
photographs of different classes, as far as those are of different scenes.
"""

from __future__ import annotations

import argparse
import glob
import io
import os
import resource
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from pipegen.data.collect import collect
from pipegen.phases.compilation import load
from pipegen.quality.leaks import find_leaks, near_pairs
from pipegen.quality.looks import look_at

EDITS: dict[str, Callable[[Image.Image], Image.Image]] = {
    "JPEG, quality 50": lambda i: i,
    "half size": lambda i: i.resize((i.width // 2, i.height // 2)),
    "cut 3 %": lambda i: i.crop((round(i.width * 0.03), round(i.height * 0.03), round(i.width * 0.97), round(i.height * 0.97))),
    "brighter 1.3": lambda i: ImageEnhance.Brightness(i).enhance(1.3),
    "gray": lambda i: i.convert("L"),
    "mirrored": ImageOps.mirror,
}


def spec_of(source: dict[str, Any], cache: str) -> Any:
    """A spec of some source."""
    steps, runtime = [{"resize": {"size": 32}}], {"cache": {"disk": cache}}
    return load({"pipegen": 1, "source": source, "transforms": steps, "batch": {"size": 1}, "runtime": runtime}).model


def leaks_of(source: dict[str, Any], cache: str) -> Any:
    """Looks at the data of a source, and searches it."""
    spec = spec_of(source, cache)
    manifest = collect(spec).manifest
    if manifest is None:
        raise SystemExit("the photographs cannot be listed")
    return manifest, find_leaks(manifest, look_at(manifest, spec.runtime), manifest.splits, spec.runtime, near=True)


def recall(photos: str, copies: int, folder: str) -> dict[str, dict[str, float]]:
    """The share of copies that are errors, and errors or warnings, by edit."""
    files = sorted(glob.glob(os.path.join(photos, "*", "*.jpg")))
    files = files[:: max(1, len(files) // copies)][:copies]
    found = {}
    for name, edit in EDITS.items():
        split = os.path.join(folder, name)
        for i, file in enumerate(files):
            os.makedirs(os.path.join(split, "a"), exist_ok=True)
            with Image.open(file) as picture:
                edit(picture.convert("RGB")).save(os.path.join(split, "a", f"{i}.jpg"), quality=50)
        os.makedirs(os.path.join(folder, "originals", "a"), exist_ok=True)
        for i, file in enumerate(files):
            target = os.path.join(folder, "originals", "a", f"{i}.jpg")
            if not os.path.exists(target):
                os.symlink(os.path.abspath(file), target)
        parts = {"train": split, "validation": os.path.join(folder, "originals")}
        source = {"by_split": {part: {"image_folder": {"path": path}} for part, path in parts.items()}}
        _, leaks = leaks_of(source, os.path.join(folder, "cache"))
        pairs = [p for p in leaks.pairs if os.path.basename(p.key) == os.path.basename(p.other_key)]
        found[name] = {s: len({p.key for p in pairs if p.severity in of}) / len(files) for s, of in SEVERITIES.items()}
    return found


SEVERITIES = {"error": ("error",), "error or warning": ("error", "warning")}


def false_pairs(photos: str, cache: str) -> dict[str, float]:
    """Pairs per million of photographs of different classes: near by their hashes, and confirmed by their pixels; and images/s."""
    spec = spec_of({"image_folder": {"path": photos}}, cache)
    manifest = collect(spec).manifest
    if manifest is None or manifest.listing.labels is None:
        raise SystemExit("the photographs cannot be listed")
    labels = manifest.listing.labels
    began = time.perf_counter()
    looks = look_at(manifest, spec.runtime)
    seconds = time.perf_counter() - began
    # Each class is a split of its own, so that only pairs of different classes are compared.
    from dataclasses import replace

    members = {name: np.flatnonzero(labels == i) for i, name in enumerate(manifest.class_names)}
    leaks = find_leaks(replace(manifest, members=members), looks, list(members), spec.runtime, near=True)
    counts = np.bincount(labels).astype(np.float64)
    pairs = (counts.sum() ** 2 - (counts**2).sum()) / 2 / 1e6
    began = time.perf_counter()
    look_at(manifest, spec.runtime)
    again = time.perf_counter() - began
    near = len(leaks.pairs) / pairs
    return {
        "images/s": len(labels) / seconds,
        "again, s": again,
        "candidates": near,
        "errors": sum(p.severity == "error" for p in leaks.pairs) / pairs,
        "warnings": sum(p.severity == "warning" for p in leaks.pairs) / pairs,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", help="a folder of photographs, one sub-folder per class")
    parser.add_argument("--copies", type=int, default=300, help="photographs that are copied and edited")
    parser.add_argument("--hashes", type=int, default=0, help="also search so many random hashes")
    options = parser.parse_args()
    out = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        speed = false_pairs(options.photos, os.path.join(folder, "all"))
        out.write(", ".join(f"{name} {value:.2f}" for name, value in speed.items()) + " (pairs per million of other classes)\n")
        for name, shares in recall(options.photos, options.copies, folder).items():
            out.write(f"{name:18}" + ", ".join(f"{what} {share:.1%}" for what, share in shares.items()) + "\n")
    if options.hashes:
        hashes = np.unique(np.random.default_rng(0).integers(0, 2**64, options.hashes, dtype=np.uint64))
        began = time.perf_counter()
        found = sum(len(block) for block in near_pairs(hashes, 8))
        out.write(f"{len(hashes):,} random hashes: {found} pairs within 8 in {time.perf_counter() - began:.1f} s\n")
    out.write(f"largest resident memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB\n")
    print(out.getvalue(), end="")


if __name__ == "__main__":
    main()
