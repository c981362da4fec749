"""The command: `python -m benchmarks.device_stage FOLDER`. What the host pays with the kernels on it, and with the kernels on a device.

For each recipe, in interleaved turns: bytes of a batch that cross to the device, processor time of the host for an image (of all threads;
batches are made and not used, so that the device's own time is left out), and images/s. Then the time of the kernels on whatever device
TensorFlow has: on a machine without an accelerator that is the processor again, which says nothing of one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported

from rich.console import Console
from rich.table import Table

_TURNS: list[Any] = [{"random_rotation": {"degrees": 20}}, {"random_zoom": {"factor": 0.2}}]
_COLOUR: list[Any] = [{f"random_{name}": {"factor": 0.3}} for name in ("brightness", "contrast", "saturation")]
_LAST = {"normalize": {"preset": "torch"}}
RECIPES: dict[str, dict[str, Any]] = {
    "geometric and colour": {"transforms": [{"resize": {"size": 224}}, "random_flip", *_TURNS, *_COLOUR, _LAST]},
    "imagenet": {"transforms": [{"random_resized_crop": {"size": 224}}, "random_flip", _LAST]},
    "combining": {
        "transforms": [{"resize": {"size": 224}}, "random_flip", {"mixup": {"alpha": 0.2}}, {"cutmix": {"alpha": 1.0}}, _LAST],
        "output": {"encode": {"label": "one_hot"}},
    },
}
BATCH = 64
WARM_UP = 8
"""Batches before a turn is timed: they come out of what was read ahead."""


@dataclass
class Side:
    """What one side of a recipe took.

    Attributes:
        bytes: Bytes of a batch that cross to the device.
        host_us: Microseconds of processor time for an image, of each turn.
        rates: Images per second, of each turn.
    """

    bytes: int
    host_us: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)


def size_of(batch: Any) -> int:
    """The bytes of a batch, whatever its structure is."""
    import tensorflow as tf

    return sum(int(t.shape.num_elements()) * t.dtype.size for t in tf.nest.flatten(batch))


def spec(folder: Path, name: str, cached: bool) -> dict[str, Any]:
    """A recipe on a folder of photographs, from a cache in memory where that is wanted."""
    runtime = {"runtime": {"cache": "memory" if cached else "none"}}
    return {"pipegen": 1, "source": {"image_folder": {"path": str(folder.resolve())}}, "batch": {"size": BATCH}, **RECIPES[name], **runtime}


def endless(dataset: Any) -> Iterator[Any]:
    """The batches of one epoch again and again, from one iterator where that can be."""
    return itertools.chain.from_iterable(itertools.repeat(dataset))


def turn(batches: Iterable[Any], count: int) -> tuple[float, float]:
    """Takes so many batches, and returns microseconds of processor time for an image, and images per second."""
    for _ in itertools.islice(batches, WARM_UP):
        pass
    cpu, began = time.process_time(), time.perf_counter()
    for _ in itertools.islice(batches, count):
        pass
    images = count * BATCH
    return 1e6 * (time.process_time() - cpu) / images, images / (time.perf_counter() - began)


def measured(folder: Path, name: str, *, cached: bool, count: int, repeats: int) -> dict[str, Side]:
    """Both sides of a recipe, turn by turn."""
    import pipegen

    pipe = pipegen.build(spec(folder, name, cached))
    stage = pipe.device_stage("train")
    streams = {"host": pipe.dataset("train", epoch=0), "device": stage.dataset(epoch=0)}
    sides = {side: Side(size_of(next(iter(dataset)))) for side, dataset in streams.items()}
    for repeat in range(repeats):
        for side in sorted(streams, reverse=bool(repeat % 2)):
            us, rate = turn(endless(streams[side]), count)
            sides[side].host_us.append(us)
            sides[side].rates.append(rate)
    return sides


def on_device(folder: Path, name: str, seconds: float) -> tuple[str, float]:
    """The first accelerator, or the processor, and how many images its kernels work off in a second, of a batch that is there already."""
    import tensorflow as tf

    import pipegen

    device = next((f"GPU:{i}" for i, _ in enumerate(tf.config.list_logical_devices("GPU"))), "CPU:0")
    stage = pipegen.build(spec(folder, name, cached=False)).device_stage("train")
    apply = tf.function(stage.apply, autograph=False)
    with tf.device(device):
        given = tf.nest.map_structure(tf.identity, next(iter(stage.dataset())))
        last = tf.nest.flatten(apply(*given))[0]
        done, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            last = tf.nest.flatten(apply(*given))[0]
            float(tf.reshape(last, [-1])[0])  # waits until it is there
            done += 1
    return device, done * BATCH / (time.perf_counter() - began)


def main() -> None:
    """Measure, print tables, and write what was measured as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, help="photographs, a folder for each class")
    parser.add_argument("--recipes", nargs="+", choices=sorted(RECIPES), default=list(RECIPES))
    parser.add_argument("--batches", type=int, default=40, help="batches of a turn")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="for the kernels on the device")
    parser.add_argument("--cached", action="store_true", help="from a cache in memory, so that no file is decoded")
    parser.add_argument("--out", type=Path, help="a file for the figures, as JSON")
    given, console, found = parser.parse_args(), Console(), {}
    table = Table("recipe", "kernels", "bytes a batch", "host, µs an image", "images/s", title=f"batches of {BATCH}")
    for name in given.recipes:
        sides = measured(given.folder, name, cached=given.cached, count=given.batches, repeats=given.repeats)
        device, rate = on_device(given.folder, name, given.seconds)
        for side, one in sides.items():
            table.add_row(name, f"on the {side}", f"{one.bytes:,}", f"{min(one.host_us):,.0f}", f"{statistics.median(one.rates):,.0f}")
        table.add_row(name, f"alone, on {device}", "", "", f"{rate:,.0f}", end_section=True)
        found[name] = {side: vars(one) for side, one in sides.items()} | {"kernels": {"device": device, "images_per_second": rate}}
    console.print(table)
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
