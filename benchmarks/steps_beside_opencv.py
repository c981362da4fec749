"""The command: `python -m benchmarks.steps_beside_opencv`. What each step costs, beside OpenCV's function of the same work.

Both get the same images of bytes and run on one thread, in turns; what is counted is processor time, to which other programs add least. A
recipe costs less than the sum of its steps: neighbours of one family are one step, and a step leaves its result to the next one. OpenCV
is given the random numbers for nothing, and pipegen draws its own beforehand.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported

import cv2
import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.kernels import arrangements, compile_chain, example_batch, lower

Image = np.ndarray[Any, Any]
SIDE = 224
_ROWS, _COLUMNS = np.indices((SIDE, SIDE), np.float32)
_NEAREST = {"borderMode": cv2.BORDER_REPLICATE}
_AFFINE = cv2.getRotationMatrix2D(((SIDE - 1) / 2, (SIDE - 1) / 2), 17, 1.1)
_CORNERS = np.array([[0, 0], [SIDE, 0], [SIDE, SIDE], [0, SIDE]], np.float32)
_PERSPECTIVE = cv2.getPerspectiveTransform(_CORNERS, _CORNERS + np.array([[9, 4], [-7, 12], [3, -9], [11, 5]], np.float32))
_LINE = np.eye(9, dtype=np.float32) / 9
_DISC = np.full((9, 9), 1 / 81, np.float32)
_SEPIA = np.array([[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]])
_CLAHE = cv2.createCLAHE(2.5, (8, 8))
_GAMMA = np.rint(255 * (np.arange(256) / 255) ** 1.3).astype(np.uint8)
_MOVED = (np.sin(_ROWS / 9) * 5 + _COLUMNS, np.cos(_COLUMNS / 9) * 5 + _ROWS)


def _clahe(image: Image) -> Image:
    lab = cv2.cvtColor(image, cv2.COLOR_RGB2LAB)
    lab[..., 0] = _CLAHE.apply(lab[..., 0])
    return cv2.cvtColor(lab, cv2.COLOR_LAB2RGB)


def _hsv(image: Image) -> Image:
    parts = [cv2.add(part, by) for part, by in zip(cv2.split(cv2.cvtColor(image, cv2.COLOR_RGB2HSV)), (7, 20, 15), strict=True)]
    return cv2.cvtColor(cv2.merge(parts), cv2.COLOR_HSV2RGB)


def _jpeg(image: Image) -> Image:
    return cv2.imdecode(cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 60])[1], cv2.IMREAD_COLOR)


def _noise(image: Image) -> Image:
    return cv2.add(image, cv2.randn(np.empty(image.shape, np.int16), 0, 12), dtype=cv2.CV_8U)


def _equalized(image: Image) -> Image:
    return cv2.merge([cv2.equalizeHist(part) for part in cv2.split(image)])


def _sharp(image: Image) -> Image:
    return cv2.addWeighted(image, 1.5, cv2.GaussianBlur(image, (7, 7), 1), -0.5, 0)


def _elastic(image: Image) -> Image:
    moves = (cv2.GaussianBlur(np.random.rand(SIDE, SIDE).astype(np.float32) * 2 - 1, (31, 31), 5) * 50 for _ in range(2))
    return cv2.remap(image, *(at + by for at, by in zip((_COLUMNS, _ROWS), moves, strict=True)), cv2.INTER_LINEAR, **_NEAREST)


PAIRS: dict[str, tuple[Any, str, Callable[[Image], Image]]] = {
    "flip": ("random_flip", "flip", lambda x: cv2.flip(x, 1)),
    "D4": ("random_d4", "rotate", lambda x: cv2.rotate(x, cv2.ROTATE_90_CLOCKWISE)),
    "affine": ({"random_affine": {"degrees": 20, "factor": 0.2, "x": 0.1, "fill": "nearest"}}, "warpAffine",
        lambda x: cv2.warpAffine(x, _AFFINE, (SIDE, SIDE), flags=cv2.INTER_LINEAR, **_NEAREST)),
    "affine, bicubic": ({"random_affine": {"degrees": 20, "factor": 0.2, "x": 0.1, "fill": "nearest", "interpolation": "bicubic"}},
        "warpAffine, cubic", lambda x: cv2.warpAffine(x, _AFFINE, (SIDE, SIDE), flags=cv2.INTER_CUBIC, **_NEAREST)),
    "perspective": ({"random_perspective": {"x": 0.1, "y": 0.1, "fill": "nearest"}}, "warpPerspective",
        lambda x: cv2.warpPerspective(x, _PERSPECTIVE, (SIDE, SIDE), flags=cv2.INTER_LINEAR, **_NEAREST)),
    "grid distortion": ("random_grid_distortion", "remap",
        lambda x: cv2.remap(x, *_MOVED, cv2.INTER_LINEAR, **_NEAREST)),
    "optical distortion": ({"random_optical_distortion": {"coefficient": 0.3}}, "remap",
        lambda x: cv2.remap(x, *_MOVED, cv2.INTER_LINEAR, **_NEAREST)),
    "elastic": ({"random_elastic": {"alpha": 50, "sigma": 5}}, "two blurs of noise, remap", _elastic),
    "sepia": ({"random_sepia": {"probability": 1}}, "transform", lambda x: cv2.transform(x, _SEPIA)),
    "HSV shift": ({"random_hsv": {"hue_degrees": 20, "saturation_delta": 30, "value_delta": 20}}, "two cvtColor, three add", _hsv),
    "gamma": ({"random_gamma": {"gamma": 0.3}}, "LUT", lambda x: cv2.LUT(x, _GAMMA)),
    "equalization": ("equalization", "equalizeHist, three times", _equalized),
    "CLAHE": ("random_clahe", "createCLAHE, two cvtColor", _clahe),
    "Gaussian blur": ({"random_gaussian_blur": {"sigma": 2}}, "GaussianBlur, 13", lambda x: cv2.GaussianBlur(x, (13, 13), 1.5)),
    "box blur": ({"random_box_blur": {"reach": [1, 3]}}, "blur, 5", lambda x: cv2.blur(x, (5, 5))),
    "median, 3": ({"median_blur": {"side": 3}}, "medianBlur", lambda x: cv2.medianBlur(x, 3)),
    "median, 5": ({"median_blur": {"side": 5}}, "medianBlur", lambda x: cv2.medianBlur(x, 5)),
    "motion blur": ({"random_motion_blur": {"length": [3, 9]}}, "filter2D, 9", lambda x: cv2.filter2D(x, -1, _LINE)),
    "defocus": ({"random_defocus_blur": {"radius": [1, 4]}}, "filter2D, 9", lambda x: cv2.filter2D(x, -1, _DISC)),
    "unsharp mask": ({"random_unsharp_mask": {"sigma": 1, "amount": [0.2, 0.5]}}, "GaussianBlur, addWeighted", _sharp),
    "morphology": ({"random_morphology": {"reach": [1, 2]}}, "dilate, 5", lambda x: cv2.dilate(x, np.ones((5, 5), np.uint8))),
    "Gaussian noise": ({"random_gaussian_noise": {"std": 12}}, "randn, add", _noise),
    "JPEG": ({"random_jpeg": {"quality": [40, 80]}}, "imencode, imdecode", _jpeg),
}  # fmt: skip
"""Steps by what they do, each with OpenCV's functions for it."""


def measured(name: str, batch: int, repeats: int) -> tuple[float, float]:
    """Milliseconds of processor time for an image, by pipegen and by OpenCV: medians of turns, after all has been compiled and run."""
    step, _, function = PAIRS[name]
    plan, done = compile_chain([step], SIDE, batch)
    kernels, entry = arrangements(done)["chain"]
    features = example_batch(plan, SIDE, batch)
    features["@draws"] = np.concatenate([features["@draws"].numpy(), np.zeros((batch, 1))], 1)  # the last one is the epoch
    images = features["image"].numpy()
    run = lower(kernels, entry, batch)

    def work() -> None:
        run(features)["image"].numpy()

    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(2):
        work()
        function(images[0])
    for turn in range(repeats):
        sides = [(ours, work), (theirs, lambda: [function(image) for image in images])]
        for times, side in sides if turn % 2 else sides[::-1]:
            began = time.process_time()
            side()
            times.append(1000 * (time.process_time() - began) / batch)
    return statistics.median(ours), statistics.median(theirs)


def main(argv: list[str] | None = None) -> int:
    """Measure and print the table, the steps that are slower than OpenCV's first."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steps_beside_opencv", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", nargs="+", choices=list(PAIRS), default=list(PAIRS), metavar="STEP", help="which (default: all)")
    parser.add_argument("--batch", type=int, default=64, help="batch size (default: 64)")
    parser.add_argument("--repeats", type=int, default=7, help="turns of each (default: 7)")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    args = parser.parse_args(argv)
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU")
    tf.config.threading.set_intra_op_parallelism_threads(1)
    cv2.setNumThreads(1)
    console = Console(width=max(Console().width, 110))
    rows = []
    with console.status("starting") as status:
        for name in args.steps:
            status.update(name)
            ours, theirs = measured(name, args.batch, args.repeats)
            rows.append((ours / theirs, name, ours, theirs))
    print_rows(console, sorted(rows, reverse=True), markdown=args.markdown)
    return 0


def print_rows(console: Console, rows: list[tuple[float, str, float, float]], *, markdown: bool) -> None:
    """Prints the measured steps."""
    headings = ("step", "OpenCV", "pipegen, ms", "OpenCV, ms", "pipegen / OpenCV")
    cells = [(name, PAIRS[name][1], f"{ours:.3f}", f"{theirs:.3f}", f"{factor:.2f}") for factor, name, ours, theirs in rows]
    if markdown:
        for line in (headings, ("---", "---", "--:", "--:", "--:"), *cells):
            console.print(f"| {' | '.join(line)} |", markup=False, soft_wrap=True)
        return
    out = Table(title="milliseconds of processor time per image of 224×224", title_justify="left")
    for number, heading in enumerate(headings):
        out.add_column(heading, justify="left" if number < 2 else "right")
    for line in cells:
        out.add_row(*line)
    console.print(out)


if __name__ == "__main__":
    sys.exit(main())
