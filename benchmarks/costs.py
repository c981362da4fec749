"""The command: `python -m benchmarks.costs PHOTOS`. How far the predicted cost of a plan is from what its processor time is.

`explain` predicts costs, and `cache: auto` decides by them, from the constants in `pipegen/plan/cost.py`. This runs recipes
on one thread, and prints the microseconds of processor time per image beside the prediction. Constants are set so that the
ratios lie around 1 on the machine that the README names; elsewhere they share a factor. What counts is that none stands out.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported
os.environ["PIPEGEN_MACHINE"] = "off"  # the constants as they stand, and not as they were fitted

from rich.console import Console
from rich.table import Table

from pipegen.phases.machine_settings import circumstances
from pipegen.plan.cost import plan_cost

_SIZE = {"resize": {"size": 224}}
_CROP = {"random_resized_crop": {"size": 224}}
_COLOUR = [{"random_brightness": {"factor": 0.2}}, {"random_contrast": {"factor": 0.2}}]

RECIPES: dict[str, tuple[list[Any], str]] = {
    "decode, resize": ([_SIZE], "none"),
    "decode, resize with antialias": ([{"resize": {"size": 224, "antialias": True}}], "none"),
    "decode a window": ([_CROP], "none"),
    "from the cache": ([_SIZE], "memory"),
    "from the cache, 32×32": ([{"resize": {"size": 32}}], "memory"),
    "from the cache, single examples": ([_SIZE, {"random_crop": {"size": 192}}], "memory"),
    "cache, mirror": ([_SIZE, "random_flip"], "memory"),
    "cache, warp": ([_SIZE, {"random_rotation": {"degrees": 20}}], "memory"),
    "cache, nearest warp": ([_SIZE, {"random_rotation": {"degrees": 20, "interpolation": "nearest"}}], "memory"),
    "cache, bicubic warp": ([_SIZE, {"random_rotation": {"degrees": 20, "interpolation": "bicubic"}}], "memory"),
    "cache, blur": ([_SIZE, {"random_gaussian_blur": {"sigma": [0.1, 2]}}], "memory"),
    "cache, brightness": ([_SIZE, _COLOUR[0]], "memory"),
    "cache, colour": ([_SIZE, *_COLOUR], "memory"),
    "cache, hue": ([_SIZE, {"random_hue": {"degrees": 10}}], "memory"),
    "cache, normalize": ([_SIZE, {"normalize": {"preset": "torch"}}], "memory"),
    "cache, warp, brightness, normalize": (
        [_SIZE, {"random_rotation": {"degrees": 20}}, _COLOUR[0], {"normalize": {"preset": "torch"}}],
        "memory",
    ),
    "cache, warp, colour, normalize": (
        [_SIZE, {"random_rotation": {"degrees": 20}}, *_COLOUR, {"normalize": {"preset": "torch"}}],
        "memory",
    ),
}
"""Steps, and where they are cached: what is cached is measured from the second epoch on."""

_SECONDS = 2.0
"""Processor time of one measurement."""


def measure(photos: str, steps: list[Any], cache: str, batch: int) -> tuple[float, float]:
    """Microseconds per image, predicted and measured."""
    import pipegen

    source = {"image_folder": {"path": photos, "labels": "none"}}
    files = sum(len(names) for _, _, names in os.walk(photos))
    sections = {"pipegen": 1, "source": source, "splits": {"parts": {"train": files}}, "transforms": steps, "batch": {"size": batch}}
    # One long epoch, for starting an iterator takes as long as many images.
    pipe = pipegen.build({**sections, "epoch": {"steps": 1_000_000}}, runtime={"cache": cache, "threads": 1})
    plan, size = pipe._compiled.splits["train"].plan, pipe._manifest.mean_bytes("train")
    predicted = plan_cost(plan, circumstances(pipe.spec.model, 1, examples=files, file_bytes=size)).us
    batches = iter(pipe.train)
    for _ in range(files // batch + 4):  # compiles, and fills the cache
        next(batches)
    images, began = 0, time.process_time()
    while time.process_time() - began < _SECONDS:
        next(batches)
        images += batch
    return predicted, 1e6 * (time.process_time() - began) / images


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="Compare the predicted cost of recipes with their processor time.")
    parser.add_argument("photos", help="a folder of images; a few hundred will do")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--only", help="recipes whose name holds this")
    options = parser.parse_args()
    table = Table(title="microseconds of one core per image", title_justify="left")
    table.add_column("recipe")
    for heading in ("predicted", "measured", "measured / predicted"):
        table.add_column(heading, justify="right")
    for name, (steps, cache) in RECIPES.items():
        if options.only is None or options.only in name:
            predicted, measured = measure(options.photos, steps, cache, options.batch)
            table.add_row(name, f"{predicted:.0f}", f"{measured:.0f}", f"{measured / predicted:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
