"""Call a Python function on each image."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Probability, Range, check_range, checked, least, most
from pipegen.ops.base import require_image
from pipegen.ops.families.custom import CustomTransform, full_range
from pipegen.ops.lowering.python_calls import Declared, call
from pipegen.ops.traits import ANY_IMAGE, IMAGE_224, Example
from pipegen.types import FeatureType, Interval

Side = Annotated[int, Field(ge=1, le=32767)] | None


class Python(CustomTransform):
    """Calls a Python function on each image: `fn(image)`, one image at a time.

    The function gets a NumPy array `(height, width, channels)` of its own and returns one. Its dtype and its shape are those of the
    image that it gets, unless the step declares others; both are checked at every call, and so is `range`. It has to give the same
    for the same image; what draws random numbers is a `random_python` step. Several threads call it, and one may begin while another is
    in the middle of it: an array that it fills anew at each call has to be the thread's own.

    A spec runs no code by itself. Whoever builds the pipeline allows the function's package: `pipegen.build(spec,
    allow_code=["my_pkg"])`, or `--allow-code my_pkg` on the command line; that covers the modules below it. A function of a
    module that is not allowed is an error, and the module is not imported. `pipegen validate` never imports it.

    A function that fails on an image is treated as an image that cannot be decoded: the error names the file, and `errors: {decode:
    {skip: …}}` takes the next good record in its place. Python works on one image at a time, however many threads there are, so a
    step of pipegen's own is quicker wherever there is one. A batch that is worked on another machine, as in a tf.data service, cannot
    call it.

    The spec names the function and knows nothing of its code. So nothing that comes after this step is kept on a disk: a cache there
    stands before it, and statistics are measured at each build. With a `version` they are kept, until you write another one.
    """

    op = "python"
    examples = (
        Example("python: {function: my_pkg.filters:denoise}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example(
            "python: {function: my_pkg.filters:luminance, dtype: float32, shape: [224, 224, 1], range: [0, 1]}",
            IMAGE_224,
            "float32[224×224×1] in [0, 1]",
        ),
        Example("python: {function: my_pkg.filters:trim, shape: [null, null, 3], version: 2}", ANY_IMAGE, "uint8[?×?×3] in [0, 255]"),
    )

    dtype: Literal["uint8", "uint16", "float16", "bfloat16", "float32"] | None = None
    """The dtype of what the function returns; by default that of the image that it gets."""
    shape: tuple[Side, Side, Side] | None = None
    """What the function returns, as `[height, width, channels]` in pixels, with `null` for a side that varies; by default the shape of
    the image that it gets."""
    range: Annotated[Range | None, checked(check_range)] = None
    """The least and the greatest value that the function may return. Steps such as `rescale: {to}` need to know it; without it nothing
    is known of floats."""
    version: Annotated[int, Field(ge=1)] | None = None
    """Stands for the function's code, in the hash of the spec too: with it, what was computed may be kept on a disk. Write another
    number whenever the function gives another kind of image."""

    def infer(self, x: FeatureType) -> FeatureType:
        """Returns what the step declares."""
        require_image(self, x)
        dtype = self.dtype or x.dtype
        bounds = full_range(dtype)
        interval = Interval(*self.range) if self.range is not None else bounds
        if bounds is not None and interval is not None and not bounds.contains(interval):
            raise OpError("PG105", f"the range {interval} holds values that {dtype} has not: it has those in {bounds}", field="range")
        sides = zip(self.shape or x.shape, x.shape[:2], strict=False)
        if not self.moves_pixels and any(None not in (a, b) and a != b for a, b in sides):
            raise OpError("PG105", "`moves_pixels: false` keeps height and width, and `shape` gives others", field="shape")
        if self.shape is None:
            return x.with_(dtype=dtype, interval=interval, centred=False)
        return x.with_(dtype=dtype, interval=interval, shape=self.shape, uniform=False, centred=False)

    def lasting(self) -> bool:
        return self.version is not None

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        interval = Interval(*self.range) if self.range is not None else None
        declared = Declared(self.function, self.dtype or image.dtype.name, self.shape, interval, not self.moves_pixels)
        return call(self.callee, declared, image)


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
