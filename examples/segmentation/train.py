"""Train a small network to say for each pixel what it shows, on photos and masks that move together.

Run it from any folder: `python examples/segmentation/train.py`; `--help` lists what can be changed.
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
from make_scenes import GROUNDS, write_scenes

import pipegen

HERE = Path(__file__).resolve().parent
SCENES = {"train": 160, "validation": 32}
IGNORE = 255


def build_model(size: int) -> keras.Model:
    """A small U-Net: three steps down, three up."""
    layers = keras.layers
    x = image = keras.Input((size, size, 3))
    skips = []
    for filters in (16, 32, 48):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(64, 3, padding="same", activation="relu")(x)
    for skip in reversed(skips):
        x = layers.Concatenate()([layers.UpSampling2D()(x), skip])
        x = layers.Conv2D(skip.shape[-1], 3, padding="same", activation="relu")(x)
    model = keras.Model(image, layers.Conv2D(len(GROUNDS), 1, activation="softmax")(x))
    model.compile(keras.optimizers.Adam(2e-3), loss=keras.losses.SparseCategoricalCrossentropy(ignore_class=IGNORE))
    return model


def score(model: keras.Model, pipe: pipegen.Pipeline) -> tuple[float, float]:
    """On the validation scenes: the mean intersection over union of the classes, and the same of the commonest class alone."""
    truth = np.concatenate([mask.numpy()[..., 0] for _, mask in pipe.validation])
    found = np.argmax(model.predict(pipe.validation, verbose=0), axis=-1)
    counted = truth != IGNORE
    commonest = np.full_like(truth, np.bincount(truth[counted]).argmax())

    def mean_iou(answer: np.ndarray) -> float:
        parts = []
        for ground in range(len(GROUNDS)):
            said, true = (answer == ground) & counted, truth == ground
            parts.append((said & true).sum() / max((said | true).sum(), 1))
        return float(np.mean(parts))

    return mean_iou(found), mean_iou(commonest)


def main() -> float:
    """Make the scenes, build, preview, train, evaluate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10, help="passes over the training scenes (default: 10)")
    parser.add_argument("--size", type=int, default=64, help="side of the square that the model sees, a multiple of 8 (default: 64)")
    parser.add_argument("--folder", type=Path, help="where the scenes are written; by default a folder that is removed afterwards")
    parser.add_argument("--preview", default="scenes-preview.png", help="where the contact sheet is written (default: scenes-preview.png)")
    args = parser.parse_args()
    keras.utils.set_random_seed(0)

    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        write_scenes(folder, SCENES)
        pipe = pipegen.build(HERE / "scenes.pipegen.yaml", params={"data": str(folder), "size": args.size})
        print(pipe)
        pipe.preview("train", rows=4, draws=4).save(args.preview)
        print(f"{args.preview} shows masks on their photos, as the model will see them")

        model = build_model(args.size)
        pipe.check(model)
        print(f"\nTraining, {args.epochs} epochs of {pipe.steps('train')} steps")
        # `shuffle=False` only keeps Keras from warning that it leaves the shuffling to the dataset, as it always does.
        model.fit(pipe.train, validation_data=pipe.validation, epochs=args.epochs, shuffle=False, verbose=2)
        learnt, common = score(model, pipe)
    print(f"\nmean IoU on {SCENES['validation']} validation scenes: {learnt:.3f}   the commonest class alone: {common:.3f}")
    return learnt


if __name__ == "__main__":
    main()
