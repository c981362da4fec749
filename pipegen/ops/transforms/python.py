"""Call a Python function on each image."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Probability, Range, check_range, checked, least, most
from pipegen.ops.families.custom import CustomTransform
from pipegen.ops.lowering.python_calls import Declared, call
from pipegen.ops.step_bases import require_image
from pipegen.ops.traits import ANY_IMAGE, IMAGE_224, Example
from pipegen.types import INTEGER_RANGES, FeatureType, Interval

Side = Annotated[int, Field(ge=1, le=32767)] | None


class Python(CustomTransform):
    """Calls a Python function on each image: `fn(image)`, one image at a time.

    The function gets its own NumPy array `(height, width, channels)` and returns an array. The result has the dtype and shape of the
    image, unless the step declares others; both are checked at every call, and so is `range`. The function has to return the same for the
    same image; use `random_python` for a function with random numbers. Several threads call it at once: an array that it fills at each call
    has to be local to the thread.

    A spec does not run code by itself. The code that builds the pipeline allows the function's package: `pipegen.build(spec,
    allow_code=["my_pkg"])`, or `--allow-code my_pkg` on the command line, also for the modules below it. A function of a module that is not
    allowed is an error, and the module is not imported. `pipegen validate` never imports it.

    If the function fails on an image, that counts as an image that cannot be decoded: the error names the file, and `errors: {decode:
    {skip: …}}` takes the next good record instead. Python runs one image at a time, whatever the number of threads, so pipegen's own steps
    are faster. Batches that are made on another machine, as in a tf.data service, cannot call the function.

    The spec names the function but does not contain its code. So results after this step are not stored on a disk: a disk cache comes
    before it, and statistics are computed at each build. With a `version` they are stored, until you change it.
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
    """The dtype of the result; by default that of the image."""
    shape: tuple[Side, Side, Side] | None = None
    """The shape of the result, `[height, width, channels]` in pixels, with `null` for a side that varies; by default that of the image."""
    range: Annotated[Range | None, checked(check_range)] = None
    """The least and the greatest value of the result, which steps such as `rescale: {to}` need; without it, the range of floats is
    unknown."""
    version: Annotated[int, Field(ge=1)] | None = None
    """The version of the function's code, also in the hash of the spec: with it, results may be stored on a disk. Change it whenever the
    results of the function change."""

    def infer(self, x: FeatureType) -> FeatureType:
        require_image(self, x)
        dtype = self.dtype or x.dtype
        bounds = INTEGER_RANGES.get(dtype)
        interval = Interval(*self.range) if self.range is not None else bounds
        if bounds is not None and interval is not None and not bounds.contains(interval):
            raise OpError("PG105", f"the range {interval} does not fit {dtype}, which holds {bounds}", field="range")
        sides = zip(self.shape or x.shape, x.shape[:2], strict=False)
        if not self.moves_pixels and any(None not in (a, b) and a != b for a, b in sides):
            raise OpError("PG105", "`moves_pixels: false` keeps height and width, and `shape` gives others", field="shape")
        y = x.with_(dtype=dtype, interval=interval, centred=False)
        return y if self.shape is None else y.with_(shape=self.shape, uniform=False)

    def lasting(self) -> bool:
        return self.version is not None

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        interval = Interval(*self.range) if self.range is not None else None
        declared = Declared(self.function, self.dtype or image.dtype.name, self.shape, interval, not self.moves_pixels)
        return call(self.callee, declared, image)


_SEEDS = 2  # draws that seed the generator, 32 bits each


class RandomPython(CustomTransform):
    """Calls a Python function with an image and a random generator: `fn(image, rng)`, one image at a time.

    The function gets its own NumPy array `(height, width, channels)` and a `numpy.random.Generator`, and returns an array of the same
    shape and dtype, which is checked at every call. It has to take all random numbers from that generator, whose seed depends on the spec's
    seed, the epoch and the image: then each epoch draws other numbers, and a resumed run draws the same as an uninterrupted one. NumPy
    decides which numbers a seed gives, and may change them between versions.

    Like every random step it runs on the training split alone. The range of floats that it returns is unknown, so put it before `rescale`
    and `normalize`, where images are bytes. `allow_code` and the rest are as for `python`.
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
        """The same type, without an interval where the function could leave it: the other splits keep theirs."""
        require_image(self, x)
        return x if x.interval == INTEGER_RANGES.get(x.dtype) else x.with_(interval=None)

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
