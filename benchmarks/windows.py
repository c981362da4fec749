"""The command: `python -m benchmarks.windows`. Windows of a time series, beside Keras' utility.

Every system cuts windows of 96 rows of 8 channels out of 400,000 rows of float32, with the first channel of the row after each as target,
shuffled over all windows, in batches of 64. All have a turn in each repeat; ratios are taken within it, of processor time.
"""

from __future__ import annotations

import argparse
import os
import statistics
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported

import numpy as np
from rich.console import Console
from rich.table import Table

import pipegen
from benchmarks.measure import ratio, rested
from benchmarks.sound import turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROWS, CHANNELS, LENGTH = 400_000, 8, 96
TARGET = 15
"""The least ratio to Keras' utility that pipegen is meant to reach, in processor time."""


def of_pipegen(values: Any, batch: int) -> Iterator[Any]:
    """The source `series`, epoch after epoch."""
    features = {"x": {"kind": "series", "column": "values"}, "y": {"kind": "tensor", "column": "first", "at": "next"}}
    spec = {
        "pipegen": 1,
        "source": {"series": {"window": {"length": LENGTH, "horizon": 1}, "features": features}},
        "batch": {"size": batch},
        "output": {"x": "x", "y": "y"},
    }
    return iter(pipegen.build(spec, data={"values": values, "first": values[:, 0]}).train.repeat())


def of_compat(values: Any, batch: int) -> Iterator[Any]:
    """The drop-in for Keras' utility."""
    from pipegen.compat import timeseries_dataset_from_array

    return iter(
        timeseries_dataset_from_array(values[:-LENGTH], values[LENGTH:, 0], LENGTH, batch_size=batch, shuffle=True, seed=1).repeat()
    )


def of_keras(values: Any, batch: int) -> Iterator[Any]:
    """Keras' utility."""
    import keras

    made = keras.utils.timeseries_dataset_from_array(values[:-LENGTH], values[LENGTH:, 0], LENGTH, batch_size=batch, shuffle=True, seed=1)
    return iter(made.repeat())


def of_tf_data(values: Any, batch: int) -> Iterator[Any]:
    """By hand as well as it goes: starts are shuffled whole, and a batch is one gather."""
    import tensorflow as tf

    rows, targets = tf.constant(values), tf.constant(values[:, 0])
    starts = tf.data.Dataset.range(ROWS - LENGTH).shuffle(ROWS, reshuffle_each_iteration=True).repeat().batch(batch, drop_remainder=True)

    def cut(at: Any) -> Any:
        return tf.gather(rows, at[:, None] + tf.range(LENGTH, dtype=tf.int64)), tf.gather(targets, at + LENGTH)

    return iter(starts.map(cut, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE))


SYSTEMS: dict[str, Callable[[Any, int], Iterator[Any]]] = {
    "pipegen": of_pipegen,
    "pipegen.compat": of_compat,
    "keras.utils.timeseries_dataset_from_array": of_keras,
    "tf.data by hand, one gather a batch": of_tf_data,
}


def main(argv: list[str] | None = None) -> None:
    """Print rates, processor times and ratios."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.windows", description="Measure windows of a time series.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--batch", type=int, default=64)
    given = parser.parse_args(argv)
    values = np.random.default_rng(0).normal(size=(ROWS, CHANNELS)).astype(np.float32)
    rates: dict[str, list[float]] = {name: [] for name in SYSTEMS}
    times: dict[str, list[float]] = {name: [] for name in SYSTEMS}
    for number in range(given.repeats):
        for name in (list(SYSTEMS), list(reversed(SYSTEMS)))[number % 2]:
            batches = SYSTEMS[name](values, given.batch)
            found, used = turn(batches, given.batch, given.seconds)
            rates[name].append(found)
            times[name] += [used] if used is not None else []
            del batches
            rested()
    table = Table("system", "windows/s", "µs of processor time", "its time / pipegen's")
    for name in SYSTEMS:
        of = ratio(times[name], times["pipegen"])
        rate = f"{statistics.median(rates[name]):,.0f}"
        used_us = f"{1e3 * statistics.median(times[name]):,.2f}" if times[name] else ""
        table.add_row(name, rate, used_us, f"{of:.2f}" if of and name != "pipegen" else "")
    console = Console()
    console.print(table)
    of = ratio(times["keras.utils.timeseries_dataset_from_array"], times["pipegen"])
    if of is not None:
        console.print(f"target beside Keras: {TARGET} ×, {'reached' if of >= TARGET else 'not reached'}")


if __name__ == "__main__":
    main()
