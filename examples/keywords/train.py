"""Train a small network to recognise spoken words in noise.

Run it from any folder: `python examples/keywords/train.py`; `--help` lists what can be changed. It needs the program espeak-ng, which
speaks the words.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
from make_words import WORDS, write_words

import pipegen

HERE = Path(__file__).resolve().parent


def build_model(shape: tuple[int, ...], steps: int) -> keras.Model:
    """Three convolutions over time and bands; the rate of learning falls over so many steps."""
    layers = keras.layers
    x = spectra = keras.Input(shape)
    for filters in (16, 32, 64):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.Activation("relu")(layers.BatchNormalization(momentum=0.9)(x))
        x = layers.MaxPooling2D()(x)
    x = layers.Dropout(0.3)(layers.GlobalAveragePooling2D()(x))
    model = keras.Model(spectra, layers.Dense(len(WORDS), activation="softmax")(x))
    rate = keras.optimizers.schedules.CosineDecay(4e-3, steps)
    model.compile(keras.optimizers.Adam(rate), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def main() -> float:
    """Speak the words, build, preview, train, evaluate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=30, help="passes over the training words (default: 30)")
    parser.add_argument("--each", type=int, default=4, help="recordings of each word by each voice (default: 4)")
    parser.add_argument("--folder", type=Path, help="where the words are written; by default a folder that is removed afterwards")
    parser.add_argument(
        "--preview", default="keywords-preview.png", help="where the contact sheet is written (default: keywords-preview.png)"
    )
    args = parser.parse_args()
    keras.utils.set_random_seed(0)

    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        write_words(folder, args.each)
        pipe = pipegen.build(HERE / "keywords.pipegen.yaml", params={"data": str(folder)})
        print(pipe)
        pipe.preview("train", rows=4, draws=4).save(args.preview)
        print(f"{args.preview} shows the spectra as the model will see them")

        model = build_model(tuple(pipe.train.element_spec[0].shape[1:]), args.epochs * pipe.steps("train"))
        pipe.check(model)
        print(f"\nTraining, {args.epochs} epochs of {pipe.steps('train')} steps")
        # `shuffle=False` only keeps Keras from warning that it leaves the shuffling to the dataset, as it always does.
        model.fit(pipe.train, validation_data=pipe.validation, epochs=args.epochs, shuffle=False, verbose=2)
        accuracy = float(model.evaluate(pipe.validation, verbose=0)[1])
    print(f"\naccuracy on voices that were not heard in training: {accuracy:.3f}   guessing: {1 / len(WORDS):.3f}")
    return accuracy


if __name__ == "__main__":
    main()
