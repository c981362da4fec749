"""The constructor's arguments as steps of a spec, in the order of `ImageDataGenerator`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pipegen.migrate.amounts import Knob, Step, is_open, number, varies
from pipegen.migrate.functions import function_step
from pipegen.migrate.geometry import Geometry
from pipegen.migrate.values import Const, Generator, Seq, Unknown
from pipegen.ops.transforms.standardize import LARGEST

RANDOM = (
    "rotation_range", "width_shift_range", "height_shift_range", "shear_range", "zoom_range", "channel_shift_range", "horizontal_flip",
    "vertical_flip", "brightness_range",
)  # fmt: skip
STATISTICS = ("featurewise_center", "featurewise_std_normalization", "zca_whitening")


@dataclass
class Steps(Geometry):
    """Writes the steps of one generator."""

    def augmentation(self) -> list[Step]:
        """Random steps as one run: rotation, shift, shear, zoom, flips; then colours."""
        self.found = []
        look = self._look()
        self._rotation(look)
        self._shift(look)
        self._shear(look)
        self._zoom(look)
        self._flip(look if self.found else "")
        self._colours()
        return self.found

    def values(self) -> list[Step]:
        """Steps on values, which run on every split."""
        self.found = []
        function, name = self._function(), "rescale"
        if function is not None and function.text.startswith("python:"):
            self.found.append(Step("cast: {dtype: float32}", "the dtype that Keras passed to the function"))
        rescale = None
        if is_open(self.generator, name):
            self.found.append(Step(f"rescale: {{scale: {self._open(Knob(name, name), '1')}}}"))
        else:
            rescale = self._number(name)
        if function is not None:
            preset = function.text.startswith("normalize: {preset")
            comment = f"rescale={rescale:g} was applied in addition, and is left out" if rescale and preset else function.comment
            self.found.append(Step(function.text, comment))
            rescale = None if preset else rescale
        if rescale:
            byte = self.files and function is None and not varies(self.generator, name) and _is_of_bytes(rescale)
            self.found.append(Step("rescale: {to: [0, 1]}") if byte else self._scale(rescale))
        self._statistics()
        return self.found

    def _scale(self, rescale: float) -> Step:
        if varies(self.generator, "rescale"):
            return Step(f"rescale: {{scale: {self.knobs.add(Knob('rescale', 'rescale'), number(rescale))}}}")
        return Step(f"rescale: {{scale: {number(rescale)}}}", "1/255" if _is_of_bytes(rescale) else "")

    # Colours

    def _colours(self) -> None:
        shift = self._amount("channel_shift_range")
        if shift:
            self.found.append(Step(f"random_channel_shift: {{delta: {shift}}}"))
            message = (
                "`channel_shift_range` clipped to the smallest and largest value of each image; the step clips to the range of all images"
            )
            self._say("PG623", "channel_shift_range", message)
        if "brightness_range" in self.generator.args:
            self._brightness()

    def _brightness(self) -> None:
        name = "brightness_range"
        given, value = self.generator.argument(name), self.generator.known(name)
        knobs = [Knob(f"brightness_{end}", name, item=i) for i, end in enumerate(("low", "high"))]
        if is_open(self.generator, name):
            self.found.append(Step(f"random_brightness: {{factor: [{', '.join(self._open(knob, '1', ', min: 0') for knob in knobs)}]}}"))
        elif isinstance(value, Unknown):
            self._unknown(name, value)
        elif isinstance(given, Seq) and len(value) == 2 and all(isinstance(v, (int, float)) for v in value):
            ends = [number(v) for v in sorted(max(0.0, float(v)) for v in value)]
            if varies(self.generator, name):
                ends = [self.knobs.add(knob, text, ", min: 0") for knob, text in zip(knobs, ends, strict=True)]
            self.found.append(Step(f"random_brightness: {{factor: [{', '.join(ends)}]}}"))
            message = (
                "`brightness_range` truncated values to integers, and before Keras 2.9 stretched images to 0..255; the step multiplies"
            )
            self._say("PG623", name, message)
        elif value is not None:
            self._say("PG630", name, f"`brightness_range={value!r}` is not a pair, which Keras rejects, too", "it is left out")

    # Values

    def _function(self) -> Step | None:
        given = self.generator.argument("preprocessing_function")
        if given is None or (isinstance(given, Const) and given.value is None):
            return None
        return function_step(given, self.generator.line_of("preprocessing_function"), self.findings)

    def _statistics(self) -> None:
        """Writes means and standard deviations, each image's own first, as in Keras."""
        own_scale = self._truth("samplewise_std_normalization")
        if self._truth("samplewise_center") or own_scale:
            self.found.append(Step(f"standardize: {{statistics: samplewise{'' if own_scale else ', scale: false'}}}"))
        whiten = self._truth("zca_whitening")
        scale = self._truth("featurewise_std_normalization") and not whiten
        centre = self._truth("featurewise_center") or self._truth("featurewise_std_normalization") or whiten
        if centre and self.fitted:
            text = self._whitening() if whiten else None
            self.found.append(Step(text or f"standardize: {{statistics: featurewise{'' if scale else ', scale: false'}}}"))
            message = "`fit` computed its statistics on its array; the step is fitted to the training split"
            self.findings.add(
                "PG623", self.generator.line, message, "the statistics include `preprocessing_function` and the steps before it"
            )
        given, dtype = self.generator.known("data_format"), self.generator.known("dtype")
        if isinstance(given, Unknown):
            self._unknown("data_format", given)
        if isinstance(dtype, Unknown) or dtype not in (None, "float32", "float16"):
            message = "`dtype` is not known, or not a dtype of a model's input"
            self._say("PG610", "dtype", message, "the spec gives float32")

    def _whitening(self) -> str | None:
        """The whitening step, if images are small enough, or may be."""
        if self.size is not None and self.size[0] * self.size[1] * self.channels > LARGEST:
            side = math.isqrt(LARGEST // self.channels)
            message = f"`zca_whitening` of images of {self.size[0]}×{self.size[1]} needs a matrix too large for memory"
            self._say("PG630", "zca_whitening", message, f"the spec only centres the images: `whiten` supports up to {side}×{side}")
            return None
        epsilon = self._number("zca_epsilon")
        message = "`zca_epsilon` was added to singular values; the step adds it to variances. With many examples, the results are similar"
        self._say("PG623", "zca_whitening", message)
        return f"whiten: {{center: channel{f', epsilon: {number(epsilon)}' if epsilon and 0 < epsilon <= 1 and epsilon != 1e-6 else ''}}}"


def augments(generator: Generator) -> bool:
    """True if a generator has random changes, as far as known."""
    return any(generator.known(name) for name in RANDOM)


def _is_of_bytes(scale: float) -> bool:
    return math.isclose(scale, 1 / 255, rel_tol=1e-6)
