"""Train one network on two targets of a table: how likely a solar cell is defective, and of which kind it is.

The images and the table are those of the package elpv-dataset, read where pip has put them: `pip install elpv-dataset`.
Run it from any folder: `python examples/solar_cells/train.py`; `--help` lists what can be changed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import numpy as np

import pipegen

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).resolve().parent


def find_table() -> Path:
    """The table of the installed package, which is not imported.

    Raises:
        SystemExit: Where it is not installed.
    """
    found = importlib.util.find_spec("elpv_dataset")
    if found is None or found.origin is None:
        raise SystemExit("the images are those of the package elpv-dataset: python -m pip install elpv-dataset")
    return Path(found.origin).parent / "data" / "labels.csv"


def build_model(size: int) -> keras.Model:
    """A small convolutional network with two outputs: `defect`, a number in 0..1, and `kind`, the probability of the second class."""
    layers = keras.layers
    image = keras.Input((size, size, 1), name="image")
    x = image
    for filters in (16, 32, 64, 64):
        x = layers.Conv2D(filters, 3, strides=2, padding="same", activation="relu")(x)
        x = layers.BatchNormalization(momentum=0.9)(x)
    x = layers.Dropout(0.2)(layers.GlobalAveragePooling2D()(x))
    outputs = {name: layers.Dense(1, activation="sigmoid", name=name)(x) for name in ("defect", "kind")}
    model = keras.Model(image, outputs)
    model.compile(
        keras.optimizers.Adam(2e-3),
        loss={"defect": "mean_squared_error", "kind": "binary_crossentropy"},
        metrics={"defect": ["mae"], "kind": ["accuracy"]},
    )
    return model


def report_balance(pipe: pipegen.Pipeline) -> None:
    """Print how many cells of each kind are in each split, and the weights that would balance them."""
    print(f"\n{'split':<12}" + "".join(f"{name:>8}" for name in pipe.class_names))
    for split in pipe:
        counts = Counter(np.asarray(pipe.labels(split)).tolist())
        print(f"{split:<12}" + "".join(f"{counts[i]:>8,}" for i in range(len(pipe.class_names))))
    weights = pipe.class_weights or {}
    print(f"{'weights':<12}" + "".join(f"{weight:>8.2f}" for weight in weights.values()))


def guess(pipe: pipegen.Pipeline) -> tuple[float, float]:
    """What a constant answer scores on the test split: the mean absolute error of the median, and the share of the larger class."""
    defect = {split: np.concatenate([y["defect"].numpy() for _, y in pipe.dataset(split, epoch=0)]) for split in ("train", "test")}
    kinds = np.bincount(np.asarray(pipe.labels("test")))
    return float(np.abs(defect["test"] - np.median(defect["train"])).mean()), float(kinds.max() / kinds.sum())


def main() -> Mapping[str, float]:
    """Build, train, evaluate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=8, help="passes over the training images (default: 8)")
    parser.add_argument("--size", type=int, default=96, help="side of the square that the model sees, in pixels (default: 96)")
    args = parser.parse_args()
    keras.utils.set_random_seed(0)

    pipe = pipegen.build(HERE / "cells.pipegen.yaml", params={"table": str(find_table()), "size": args.size})
    print(pipe)
    report_balance(pipe)

    model = build_model(args.size)
    pipe.check(model)
    print(f"\nTraining, {args.epochs} epochs of {pipe.steps('train')} steps")
    # `shuffle=False` only keeps Keras from warning that it leaves the shuffling to the dataset, as it always does.
    model.fit(pipe.train, validation_data=pipe.validation, epochs=args.epochs, shuffle=False, verbose=2)

    scores = model.evaluate(pipe.test, return_dict=True, verbose=0)
    error, share = guess(pipe)
    print(f"\ntest split, {pipe.num_examples('test')} cells")
    print(f"defect   mean absolute error {scores['defect_mae']:6.3f}   the median alone: {error:.3f}")
    print(f"kind     accuracy            {scores['kind_accuracy']:6.1%}   the larger class alone: {share:.1%}")
    return scores


if __name__ == "__main__":
    main()
