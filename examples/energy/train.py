"""Train a small network to predict the load of the next day.

Run it from any folder: `python examples/energy/train.py`; `--help` lists what can be changed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import numpy as np
from make_readings import write_readings

import pipegen

HERE = Path(__file__).resolve().parent
LENGTH, HORIZON = 96, 24


def build_model() -> keras.Model:
    """A dense network that corrects the load of the day before."""
    layers = keras.layers
    load, seen = keras.Input((LENGTH, 1), name="load"), keras.Input((LENGTH, 1), name="seen")
    weather, calendar = keras.Input((LENGTH + HORIZON, 1), name="weather"), keras.Input((LENGTH + HORIZON, 4), name="calendar")
    known = [layers.Flatten()(part) for part in (load, seen, layers.Rescaling(0.1)(weather), calendar)]
    x = layers.Dense(128, activation="relu")(layers.Concatenate()(known))
    x = layers.Dense(64, activation="relu")(layers.Dropout(0.1)(x))
    change = layers.Reshape((HORIZON, 1))(layers.Dense(HORIZON)(x))
    day_before = layers.Cropping1D((LENGTH - HORIZON, 0))(load)
    model = keras.Model([load, seen, weather, calendar], layers.Add()([day_before, change]))
    model.compile(keras.optimizers.Adam(1e-3), loss="mae")
    return model


def main() -> tuple[float, float]:
    """Make the readings, build, preview, train, evaluate; returns the error, and that of repeating the day before."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=15, help="passes over the training windows (default: 15)")
    parser.add_argument("--folder", type=Path, help="where the readings are written; by default a folder that is removed afterwards")
    parser.add_argument("--preview", default="energy-preview.png", help="where the contact sheet is written (default: energy-preview.png)")
    args = parser.parse_args()
    keras.utils.set_random_seed(0)

    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        write_readings(folder)
        pipe = pipegen.build(HERE / "energy.pipegen.yaml", params={"data": str(folder)})
        print(pipe)
        pipe.preview("train", rows=4, draws=2).save(args.preview)
        print(f"{args.preview} shows the windows as the model will see them")

        model = build_model()
        pipe.check(model)
        print(f"\nTraining, {args.epochs} epochs of {pipe.steps('train')} steps")
        # `shuffle=False` only keeps Keras from warning that it leaves the shuffling to the dataset, as it always does.
        model.fit(pipe.train, validation_data=pipe.validation, epochs=args.epochs, shuffle=False, verbose=2)
        error = float(model.evaluate(pipe.test, verbose=0))
        naive = float(np.mean([np.abs(y - x[0][:, -HORIZON:]).mean() for x, y in pipe.test.as_numpy_iterator()]))
    print(f"\nmean absolute error of the last weeks: {error:.3f}   repeating the day before: {naive:.3f}")
    return error, naive


if __name__ == "__main__":
    main()
