"""Steps as Keras' preprocessing layers, on batches: what both Keras' own dataset and the tutorials use."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from benchmarks import steps as s
from benchmarks.data import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    import tensorflow as tf

    from benchmarks.recipes import Recipe

    Augment = Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]

REMARKS = {
    s.Affine: "four resamplings, zoom draws one factor, shear one way",
    s.Brightness: "brightness adds",
    s.ColorJitter: "brightness adds, hue by way of HSV",
    s.RandAugment: "keras.layers.RandAugment, which draws the same ops for a whole batch",
}
"""What the layers do differently."""


def layers_for(step: s.Step) -> list[Any]:
    """The layers of one step, for images in [0, 255].

    Raises:
        UnavailableError: If this Keras has none.
    """
    import keras

    layers = keras.layers
    try:
        match step:
            case s.Flip():
                return [layers.RandomFlip("horizontal")]
            case s.Affine():
                fill = {"fill_mode": "nearest"}
                return [
                    layers.RandomRotation(step.rotation / 360, **fill),
                    layers.RandomTranslation(step.translation, step.translation, **fill),
                    layers.RandomShear(x_factor=math.tan(math.radians(step.shear)), **fill),
                    layers.RandomZoom(step.zoom, **fill),
                ]
            case s.Brightness():
                return [layers.RandomBrightness(step.amount)]
            case s.ColorJitter():
                around = (0.5 - step.saturation / 2, 0.5 + step.saturation / 2)
                return [layers.RandomColorJitter((0, 255), step.brightness, step.contrast, around, step.hue / 180)]
            case s.Blur():
                return [layers.RandomGaussianBlur(step.probability, step.kernel, step.sigma)]
            case s.RandAugment():
                return [layers.RandAugment((0, 255), num_ops=step.layers, factor=step.magnitude)]
            case s.MixUp():
                return [layers.MixUp(step.alpha)]
            case s.CutMix():
                return [layers.CutMix()]
            case s.Normalise():
                return [layers.Normalization(mean=[255 * m for m in step.mean], variance=[(255 * d) ** 2 for d in step.std])]
    except AttributeError as error:
        raise UnavailableError(f"Keras {keras.__version__}: {error}") from error
    raise UnavailableError(f"Keras has no layer for {type(step).__name__}")


def augment(recipe: Recipe, wanted: tuple[s.Step, ...], classes: int) -> Augment:
    """The steps as one function of a batch of images and labels, for `map`."""
    import keras
    import tensorflow as tf

    chain = [(isinstance(step, s.COMBINING), layer) for step in wanted for layer in layers_for(step)]

    def run(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        x = tf.cast(x, tf.float32)
        if recipe.combines:
            y = keras.ops.one_hot(y, classes)
        for combines, layer in chain:
            if combines:
                both = layer({"images": x, "labels": y}, training=True)
                x, y = both["images"], both["labels"]
            else:
                x = layer(x) if isinstance(layer, keras.layers.Normalization) else layer(x, training=True)
        return x, y

    return run
