"""Call a Python function that draws random numbers on each image."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Probability, least, most
from pipegen.ops.base import ANY_IMAGE, IMAGE_224, Example, require_image
from pipegen.ops.families.custom import CustomTransform, full_range
from pipegen.ops.lowering.calling import Declared, call
from pipegen.types import FeatureType

_SEEDS = 2
"""Draws that seed the generator, 32 bits each."""


class RandomPython(CustomTransform):
    """Calls a Python function with an image and a random generator: `fn(image, rng)`, one image at a time.

    The function gets a NumPy array `(height, width, channels)` of its own and a `numpy.random.Generator`, and returns an array of the
    same shape and dtype, which is checked at every call. Whatever it draws has to come from that generator, whose seed follows from
    the spec's seed, the epoch and the image: then every epoch draws anew, and a resumed run draws what it would have drawn. What a
    seed gives is NumPy's to say, and may change between its versions.

    As every random step it runs on the training split alone. Nothing is known of the values of floats that it returns, so put it
    before `rescale` and `normalize`, where images are bytes. `allow_code` and the rest are as for `python`.
    """

    op = "random_python"
    random = True
    handles_probability = True
    call = "fn(image, rng)"
    num_arguments = 2
    examples = (
        Example("random_python: {function: my_pkg.weather:rain}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_python: {function: my_pkg.weather:rain, probability: 0.3}", ANY_IMAGE, "uint8[?×?×3] in [0, 255]"),
    )

    probability: Probability = 1.0
    """The share of images that the function is called on."""

    def infer(self, x: FeatureType) -> FeatureType:
        """The same type. The other splits keep the range of values that they have, so where the function could leave it none is known."""
        require_image(self, x)
        return x if x.interval == full_range(x.dtype) else x.with_(interval=None)

    def is_identity(self, x: FeatureType) -> bool:
        return most(self.probability) == 0 and self.infer(x) == x

    def num_draws(self) -> int:
        return _SEEDS + (least(self.probability) < 1)

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """The `seed` of the generator, `numpy.random.SeedSequence(seed)` for `PCG64`; and whether the function is `called`."""
        seed = {"seed": tf.cast(u[..., :_SEEDS] * 2.0**32, tf.int64)}
        return seed if least(self.probability) == 1 else {**seed, "called": u[..., _SEEDS] < self.probability}

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        def called() -> tf.Tensor:
            return call(self.callee, Declared(self.function, image.dtype.name), image, drawn["seed"])

        drawn = self.drawn(u)
        return called() if least(self.probability) == 1 else tf.cond(drawn["called"], called, lambda: tf.identity(image))
