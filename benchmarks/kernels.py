"""The command: `python -m benchmarks.kernels`. What the chain of kernels costs against the sum of its parts.

XLA on a CPU recomputes a fused producer for every reader, so one kernel too few can cost five times what its parts do,
and one too many passes over memory once more. `form_kernels` decides by rule where to cut; this measures whether the
rule holds. It is a script and no test, because a clock on a busy machine proves nothing; what it counts is processor
time, to which other programs add least.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported

from rich.console import Console
from rich.table import Table

from pipegen.passes import PASSES, PassContext, run_passes
from pipegen.plan.check import check
from pipegen.plan.nodes import Batch, Kernel
from pipegen.spec.load import load

if TYPE_CHECKING:
    from pipegen.passes import Compiled
    from pipegen.plan.nodes import Plan
    from pipegen.types import ElementType

LIMIT = 1.3
"""A chain may cost this many times the sum of its parts."""

_ROTATION = {"random_rotation": {"degrees": 20}}
_CUBIC_AFFINE = {"random_affine": {"degrees": 20, "x": 0.1, "factor": 0.2, "interpolation": "bicubic"}}
_PERSPECTIVE = {"random_perspective": {"x": 0.1, "y": 0.1}}
_CUBIC_PERSPECTIVE = {"random_perspective": {"x": 0.1, "y": 0.1, "interpolation": "bicubic"}}
_SHEAR_ON_BLACK = {"random_shear": {"degrees": 10, "fill": {"constant": 0}}}
_BRIGHTNESS = {"random_brightness": {"factor": 0.2}}
_COLOUR = [
    _BRIGHTNESS,
    {"random_contrast": {"factor": 0.2}},
    {"random_saturation": {"factor": 0.2}},
    {"random_hue": {"degrees": 10}},
]
_TABLES = [{"random_solarization": {"threshold": [0, 255]}}, {"random_gamma": {"gamma": 0.5}}]
_HISTOGRAM = "equalization"
_BLUR = {"random_gaussian_blur": {"sigma": 2}}
_ERASING = "random_erasing"
_NORMALISE = {"normalize": {"preset": "torch"}}

CHAINS: dict[str, list[Any]] = {
    "mirror, arithmetic": ["random_flip", _NORMALISE],
    "warp, arithmetic": [_ROTATION, {"random_zoom": {"factor": 0.2}}, _NORMALISE],
    "colour, arithmetic": [*_COLOUR, _NORMALISE],
    "mirror, colour, arithmetic": [{"random_flip": {"axis": "both"}}, *_COLOUR, _NORMALISE],
    "warp, colour, arithmetic": [_ROTATION, *_COLOUR, _NORMALISE],
    "warp, brightness, arithmetic": [_ROTATION, {"random_zoom": {"factor": 0.2}}, _BRIGHTNESS, _NORMALISE],
    "warp, contrast, arithmetic": [_ROTATION, {"random_contrast": {"factor": 0.2}}, _NORMALISE],
    "mirror, brightness, arithmetic": ["random_flip", _BRIGHTNESS, _NORMALISE],
    "mirror, hue, arithmetic": ["random_flip", {"random_hue": {"degrees": 10}}, _NORMALISE],
    "warp, tables, brightness": [_ROTATION, *_TABLES, _BRIGHTNESS],
    "brightness, mirror": [_BRIGHTNESS, {"random_flip": {"axis": "both"}}],
    "warp, erasing, brightness": [_ROTATION, _ERASING, _BRIGHTNESS],
    "colour, warp": [*_COLOUR, _ROTATION],
    "colour, mirror": [*_COLOUR, {"random_flip": {"axis": "both"}}],
    "warp, mirror": [_SHEAR_ON_BLACK, {"random_flip": {"axis": "both"}}],
    "arithmetic, warp": [{"rescale": {"to": [0, 1]}}, _ROTATION],
    "warp, warp": [_ROTATION, _SHEAR_ON_BLACK],
    "tables, arithmetic": [*_TABLES, _NORMALISE],
    "mirror, tables": [{"random_flip": {"axis": "both"}}, *_TABLES],
    "warp, tables, arithmetic": [_ROTATION, *_TABLES, _NORMALISE],
    "colour, tables": [*_COLOUR, *_TABLES],
    "tables, mirror": [*_TABLES, {"random_flip": {"axis": "both"}}],
    "tables, warp, colour": [*_TABLES, _ROTATION, *_COLOUR],
    "histogram, arithmetic": [_HISTOGRAM, _NORMALISE],
    "warp, tables of the histogram": [_ROTATION, *_TABLES, _HISTOGRAM],
    "colour, histogram": [*_COLOUR, _HISTOGRAM],
    "mirror, histogram, arithmetic": [{"random_flip": {"axis": "both"}}, _HISTOGRAM, _NORMALISE],
    "blur, arithmetic": [_BLUR, _NORMALISE],
    "warp, blur, colour": [_ROTATION, _BLUR, *_COLOUR],
    "colour, sharpness, arithmetic": [*_COLOUR, {"random_sharpness": {"factor": 0.5}}, _NORMALISE],
    "mirror, noise, arithmetic": ["random_flip", {"random_gaussian_noise": {"std": 10}}, _NORMALISE],
    "warp, erasing, arithmetic": [_ROTATION, _ERASING, _NORMALISE],
    "colour, erasing, arithmetic": [*_COLOUR, _ERASING, _NORMALISE],
    "erasing, warp": [_ERASING, _ROTATION],
    "elastic, noise, arithmetic": [{"random_elastic": {"alpha": 50, "sigma": 5}}, {"random_gaussian_noise": {"std": 10}}, _NORMALISE],
    "bicubic warp, arithmetic": [_CUBIC_AFFINE, _NORMALISE],
    "bicubic warp, colour, arithmetic": [_CUBIC_AFFINE, *_COLOUR, _NORMALISE],
    "perspective, arithmetic": [_ROTATION, _PERSPECTIVE, _NORMALISE],
    "perspective, colour, arithmetic": [_PERSPECTIVE, *_COLOUR, _NORMALISE],
    "colour, bicubic perspective": [*_COLOUR, _CUBIC_PERSPECTIVE],
    "two layers of warp, colour": [_ROTATION, *_COLOUR, _SHEAR_ON_BLACK, {"random_contrast": {"factor": 0.3}}],
}
"""Steps behind a `resize`, by the families that meet in them."""

Step = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass
class Row:
    """A chain's milliseconds of processor time per image, one figure a turn.

    Attributes:
        name: What meets in it.
        kernels: Into how many kernels `form_kernels` groups it.
        parts: How many stages it has.
        times: By arrangement: `chain` as the pass groups it, `parts` each stage alone, `whole` all in one kernel.
    """

    name: str
    kernels: int
    parts: int
    times: dict[str, list[float]] = field(default_factory=lambda: {"chain": [], "parts": [], "whole": []})

    def median(self, arrangement: str) -> float:
        """Milliseconds per image."""
        return statistics.median(self.times[arrangement])

    def ratio(self, arrangement: str) -> float:
        """The median over the turns of this arrangement's time divided by that of the parts in the same turn."""
        return statistics.median(a / b for a, b in zip(self.times[arrangement], self.times["parts"], strict=True))


def compile_chain(steps: list[Any], size: int, batch: int) -> tuple[Plan, Compiled]:
    """The compiled training plan of some steps behind a resize, and what the passes did."""
    source = {"image_folder": {"path": "nowhere"}}
    sections = {"pipegen": 1, "source": source, "transforms": [{"resize": {"size": size}}, *steps], "batch": {"size": batch}}
    loaded = load(sections, env={})
    if loaded.spec is None:
        raise ValueError(str(loaded.diagnostics))
    plan = check(loaded.spec, loaded.locate.label, classes=10).plans["train"]
    done = run_passes(plan, PASSES, PassContext(loaded.spec.runtime))
    return done.plan, done


def arrangements(done: Compiled) -> dict[str, tuple[list[Kernel], ElementType]]:
    """The kernels of a plan as the pass groups them, one for each stage, and all in one; with the type that enters."""
    forming = next(r for r in done.records if r.name == "form_kernels")
    parts = [Kernel(n.out, n.stages, compiled=True) for n in forming.before.nodes if isinstance(n, Kernel)]
    chain = [n for n in forming.after.nodes if isinstance(n, Kernel)]
    whole = Kernel(chain[-1].out, tuple(s for n in chain for s in n.stages), compiled=True)
    entry = next(n.out for n in forming.after.nodes if isinstance(n, Batch))
    return {"chain": (chain, entry), "parts": (parts, entry), "whole": ([whole], entry)}


def lower(kernels: list[Kernel], entry: ElementType, batch: int) -> Step:
    """The kernels one after another, in a graph, as the pipeline calls them."""
    import tensorflow as tf

    from pipegen.backend.kernels.chain import lower_kernel

    functions = []
    for kernel in kernels:
        functions.append(lower_kernel(kernel, entry, batch, "always"))
        entry = kernel.out

    def run(features: dict[str, Any]) -> dict[str, Any]:
        for function in functions:
            features = function(features)
        return {"image": features["image"]}

    return tf.function(run, autograph=False)


def example_batch(plan: Plan, size: int, batch: int) -> dict[str, Any]:
    """Noise for images, and draws."""
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(0)
    return {
        "image": tf.constant(rng.integers(0, 256, (batch, size, size, 3), dtype=np.uint8)),
        "label": tf.zeros([batch], tf.int64),
        "@draws": tf.constant(rng.random((batch, plan.index.num_draws)), tf.float64),
    }


def measure(name: str, *, size: int = 224, batch: int = 64, repeats: int = 7) -> Row:
    """Time one chain in each arrangement, in turns, after everything has been compiled and run twice."""
    plan, done = compile_chain(CHAINS[name], size, batch)
    found = arrangements(done)
    features = example_batch(plan, size, batch)
    runs = {kind: lower(kernels, entry, batch) for kind, (kernels, entry) in found.items()}
    for run in runs.values():
        for _ in range(2):
            run(features)
    row = Row(name, kernels=len(found["chain"][0]), parts=len(found["parts"][0]))
    for turn in range(repeats):
        order = list(runs)
        start = turn % len(order)  # each turn starts with another one, so that none always follows the same
        for kind in order[start:] + order[:start]:
            began = time.process_time()
            runs[kind](features)["image"].numpy()
            row.times[kind].append(1000 * (time.process_time() - began) / batch)
    return row


def table(rows: list[Row]) -> Table:
    """The rows as a table."""
    out = Table(title="milliseconds of processor time per image", title_justify="left")
    out.add_column("chain")
    for heading in ("stages", "kernels", "sum of parts", "chain", "chain / parts", "in one kernel", "one / parts"):
        out.add_column(heading, justify="right")
    for row in rows:
        mark = "" if row.ratio("chain") <= LIMIT else " [red]above the limit[/red]"
        out.add_row(
            row.name + mark, str(row.parts), str(row.kernels), f"{row.median('parts'):.3f}", f"{row.median('chain'):.3f}",
            f"{row.ratio('chain'):.2f}", f"{row.median('whole'):.3f}", f"{row.ratio('whole'):.2f}",
        )  # fmt: skip
    return out


def main(argv: list[str] | None = None) -> int:
    """Measure every chain and print the table. Returns 1 where a chain is above the limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--chains", nargs="+", choices=list(CHAINS), default=list(CHAINS), metavar="CHAIN", help="which (default: all)")
    parser.add_argument("--size", type=int, default=224, help="side of the images, in pixels (default: 224)")
    parser.add_argument("--batch", type=int, default=64, help="batch size (default: 64)")
    parser.add_argument("--repeats", type=int, default=7, help="turns of each arrangement (default: 7)")
    args = parser.parse_args(argv)
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU")
    tf.config.threading.set_intra_op_parallelism_threads(1)
    console = Console(width=max(Console().width, 110))
    rows = []
    with console.status("starting") as status:
        for name in args.chains:
            status.update(name)
            rows.append(measure(name, size=args.size, batch=args.batch, repeats=args.repeats))
    console.print(table(rows))
    return 0 if all(row.ratio("chain") <= LIMIT for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
