"""Train a small network on the quickstart's photographs, evaluate it, and name the subjects of unlabelled files.

Run it from any folder: `python examples/quickstart/train.py`; `--help` lists what can be changed.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras

import pipegen

if TYPE_CHECKING:
    from collections.abc import Iterable

HERE = Path(__file__).resolve().parent
PASSES = 3
"""Passes over the training split that the speed and the waiting are measured on."""


def build_model(input_shape: tuple[int, ...], num_classes: int, steps: int) -> keras.Model:
    """A small convolutional network whose learning rate falls to zero over `steps`."""
    layers = keras.layers
    stack: list[keras.layers.Layer] = [keras.Input(input_shape)]
    for filters in (16, 32, 64):
        stack += [layers.Conv2D(filters, 3, strides=2, padding="same", activation="relu"), layers.BatchNormalization(momentum=0.9)]
    stack += [layers.GlobalAveragePooling2D(), layers.Dropout(0.2), layers.Dense(num_classes, activation="softmax")]
    model = keras.Sequential(stack)
    optimizer = keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(3e-3, steps))
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def measure_steps(model: keras.Model, batches: Iterable[tuple[Any, Any]]) -> tuple[float, float]:
    """Train on every batch, `PASSES` times; return (images per second, share of the steps' time spent waiting for input).

    A step is waiting for a batch and training on it. Keras fetches a batch inside its compiled training function, where
    no callback can see it, so this loop fetches by hand. Each pass begins with empty buffers, so its first step waits longest.
    """
    images, waited, trained = 0, 0.0, 0.0
    for _ in range(PASSES):
        iterator = iter(batches)  # between two epochs, so in no step
        while True:
            asked = time.perf_counter()
            batch = next(iterator, None)
            given = time.perf_counter()
            waited += given - asked
            if batch is None:
                break
            model.train_on_batch(*batch)
            trained += time.perf_counter() - given
            images += len(batch[0])
    return images / (waited + trained), waited / (waited + trained)


def predict(pipe: pipegen.Pipeline, model: keras.Model, folder: Path) -> None:
    """Print what the model sees in each file of an unlabelled folder."""
    unlabelled = pipe.predict_on(folder)
    for file, row in zip(unlabelled.files, model.predict(unlabelled.dataset, verbose=0), strict=True):
        print(f"  {Path(file).name:<14} {pipe.class_names[row.argmax()]:<8} {row.max():.0%}")


def main() -> None:
    """Build, train, evaluate, predict, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10, help="passes over the training photographs (default: 10)")
    parser.add_argument("--size", type=int, default=64, help="side of the square that the model sees, in pixels (default: 64)")
    args = parser.parse_args()
    keras.utils.set_random_seed(0)

    pipe = pipegen.build(HERE / "subjects.pipegen.yaml", params={"size": args.size})
    print(pipe)

    steps = pipe.steps("train")
    model = build_model((args.size, args.size, 3), len(pipe.class_names), args.epochs * steps)
    pipe.check(model)
    print(f"\nTraining, {args.epochs} epochs of {steps} steps")
    # `shuffle=False` only keeps Keras from warning that it leaves the shuffling to the dataset, as it always does.
    model.fit(pipe.train, validation_data=pipe.validation, epochs=args.epochs, shuffle=False, verbose=2)

    loss, accuracy = model.evaluate(pipe.validation, verbose=0)
    print(f"\nUnlabelled photographs in {(HERE / 'unlabelled').name}/")
    predict(pipe, model, HERE / "unlabelled")

    batches = pipe.dataset("train", epoch=args.epochs)
    model.train_on_batch(*next(iter(batches)))  # warm-up: the training function for one batch compiles here
    rate, waiting = measure_steps(model, batches)
    print(f"\nvalidation accuracy      {accuracy:8.1%}  on {pipe.num_examples('validation')} crops, loss {loss:.3f}")
    print(f"training speed           {rate:8,.0f}  images/s")
    print(f"step waited for input    {waiting:8.1%}  of its time")


if __name__ == "__main__":
    main()
