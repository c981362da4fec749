"""Runs of `fit` that are broken off anywhere and resumed. Importing this imports neither TensorFlow nor Keras."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from remembering import CrashAt, CrashingBackup, Memory

PRIME = 1_000_000_007


class Crash(Exception):
    """What breaks a run off."""


def memory(execution: int = 1, optimizer: Any = None, ran: int = 1) -> Memory:
    """Returns a compiled model that has seen nothing.

    Args:
        execution: Steps per execution.
        optimizer: SGD unless told otherwise.
        ran: How often it runs for a batch.
    """
    import keras
    from remembering import Memory

    model = Memory(ran)
    optimizer = keras.optimizers.SGD(0.1) if optimizer is None else optimizer
    model.compile(optimizer, run_eagerly=True, steps_per_execution=execution, jit_compile=False)
    return model


def digest_of(batches: Sequence[Sequence[int]]) -> int:
    """Returns what a model remembers that was trained on these batches."""
    value = 0
    for batch in batches:
        for row in batch:
            value = (31 * value + row + 1) % PRIME
    return value


def with_small_graph(pipe: Any) -> Any:
    """Returns the pipeline with a training split whose batches are numbered from one epoch to the next, and made by next to nothing.

    Everything around them is the pipeline's: where an epoch begins, what is noted, what iterators do. To make an iterator of it takes
    TensorFlow a tenth of the time, and a run that is broken off takes one.
    """
    import tensorflow as tf

    from pipegen.backend.datasets import pipeline_dataset
    from pipegen.backend.datasets.pipeline_dataset import training_dataset
    from pipegen.backend.running.walk import handed_over

    engine = pipe._engine
    real = engine.executor("train")
    steps = real.steps

    def batches(epochs: Any, form: Any) -> Any:
        def of(epoch: Any, first: Any, _since: Any) -> Any:
            made = tf.data.Dataset.range(first, steps)
            return made.map(lambda step: (epoch, step, (tf.zeros([2, 2, 2, 1]), tf.cast((epoch * steps + step)[None], tf.float32))))

        return epochs.flat_map(of)

    small = SimpleNamespace(spec=real.spec, records=real.records, steps=steps, waiting=real.waiting, order=real.order)
    stand_ins = {
        "batches_of": lambda _, entering, form: batches(entering, form),
        "handed_over": lambda _, *given, **named: handed_over(real, *given, **named),
        "explain_failure": lambda _, error, at: error,
    }
    with patch.multiple(pipeline_dataset, **stand_ins):
        made = engine._datasets["train", False] = training_dataset(small, engine.train_progress(), None)
    assert engine.dataset("train") is made, "it is what `pipe.train` is made of"
    return pipe


def crash_at(batches: int) -> CrashAt:
    """Returns a callback that breaks off after so many batches."""
    from remembering import CrashAt

    return CrashAt(batches)


def backup_in(folder: Path, save_freq: Any, crash: int = 0, **options: Any) -> CrashingBackup:
    """Returns Keras' callback that saves, and breaks off at one of its saves."""
    from remembering import CrashingBackup

    return CrashingBackup(folder, save_freq, crash, **options)
