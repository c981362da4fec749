"""The constructor's arguments as steps of a spec, in the order in which `ImageDataGenerator` works."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipegen.migrate.functions import function_step
from pipegen.migrate.values import Const, Dotted, Generator, Local, Seq, Unknown, plain
from pipegen.ops.families.whitening import LARGEST

if TYPE_CHECKING:
    from pipegen.migrate.findings import Findings

RANDOM = (
    "rotation_range", "width_shift_range", "height_shift_range", "shear_range", "zoom_range", "channel_shift_range", "horizontal_flip",
    "vertical_flip", "brightness_range",
)  # fmt: skip
STATISTICS = ("featurewise_center", "featurewise_std_normalization", "zca_whitening")
_FILLS = ("nearest", "reflect", "wrap")
_ORDERS = {0: "nearest", 3: "bicubic"}


@dataclass(frozen=True)
class Step:
    """One step: its text in a spec, and what to say beside it."""

    text: str
    comment: str = ""


@dataclass
class Steps:
    """Writes the steps of one generator.

    Attributes:
        generator: The constructor.
        size: Height and width of the images, where they are known.
        files: Whether the images come from files, so that their values are 0 to 255.
        findings: Takes what has no equivalent or changes its meaning.
        fitted: Whether `fit` is called on the generator.
        channels: How many channels the images have.
    """

    generator: Generator
    size: tuple[int, int] | None
    files: bool
    findings: Findings
    fitted: bool = False
    channels: int = 3
    found: list[Step] = field(default_factory=list)

    def augmentation(self) -> list[Step]:
        """The random steps, as one run: rotation, shift, shear, zoom, flips; then the colours."""
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
        """The steps on values, which run on every split."""
        self.found = []
        function = self._function()
        if function is not None and function.text.startswith("python:"):
            self.found.append(Step("cast: {dtype: float32}", "what Keras gave the function"))
        rescale = self._number("rescale")
        if function is not None and rescale:
            self.found.append(
                Step(function.text, f"rescale={rescale:g} came on top of it, and is left out" if _is_preset(function) else "")
            )
            if not _is_preset(function):
                self.found.append(_scale(rescale))
        elif function is not None:
            self.found.append(function)
        elif rescale:
            byte = self.files and math.isclose(rescale, 1 / 255, rel_tol=1e-6)
            self.found.append(Step("rescale: {to: [0, 1]}") if byte else _scale(rescale))
        self._statistics()
        return self.found

    # Reading arguments

    def _line(self, name: str) -> int:
        return getattr(self.generator.args[name].node, "lineno", self.generator.line)

    def _number(self, name: str) -> float | None:
        """A number that is given and not zero; anything else is reported."""
        if name not in self.generator.args:
            return None
        value = plain(self.generator.args[name].value)
        if isinstance(value, Unknown):
            self._unknown(name, value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            return float(value) if value else None
        elif value not in (None, False):
            self.findings.add("PG610", self._line(name), f"`{name}={value!r}` is no number", "it is left out of the spec")
        return None

    def _truth(self, name: str) -> bool:
        if name not in self.generator.args:
            return False
        if isinstance(self.generator.args[name].value, (Dotted, Local)):
            return True  # a function or a class
        value = plain(self.generator.args[name].value)
        if isinstance(value, Unknown):
            self._unknown(name, value)
            return False
        return bool(value)

    def _unknown(self, name: str, value: Unknown) -> None:
        line = value.line or self._line(name)
        self.findings.add("PG610", line, f"`{name}` is not known: {value.reason or 'it is computed at run time'}", "add its step by hand")

    # Geometry

    def _look(self) -> str:
        """The arguments that every geometric step has: what lies outside, and the interpolation."""
        mode = plain(self.generator.args["fill_mode"].value) if "fill_mode" in self.generator.args else "nearest"
        fill = "nearest"
        if mode == "constant":
            fill = f"{{constant: {number(self._number('cval') or 0.0)}}}"
        elif mode in _FILLS:
            fill = str(mode)
        elif isinstance(mode, Unknown):
            self._unknown("fill_mode", mode)
        else:
            self.findings.add(
                "PG630", self._line("fill_mode"), f"`fill_mode={mode!r}` has no equivalent", "the spec has `nearest`, the default"
            )
        if mode == "wrap":
            message = "`fill_mode='wrap'` repeated the image with a period that is one pixel short; `wrap` repeats the whole image"
            self.findings.add("PG623", self._line("fill_mode"), message)
        order = plain(self.generator.args["interpolation_order"].value) if "interpolation_order" in self.generator.args else 1
        if isinstance(order, Unknown):
            self._unknown("interpolation_order", order)
        elif order not in (0, 1, 3):
            self.findings.add(
                "PG630", self._line("interpolation_order"), f"`interpolation_order={order!r}` has no equivalent", "the spec is bilinear"
            )
        method = f", interpolation: {_ORDERS[order]}" if isinstance(order, int) and order in _ORDERS else ""
        return f"fill: {fill}{method}"

    def _rotation(self, look: str) -> None:
        degrees = self._number("rotation_range")
        if degrees is not None:
            self.found.append(Step(f"random_rotation: {{degrees: {number(abs(degrees))}, {look}}}"))

    def _shift(self, look: str) -> None:
        parts = []
        remarks = []
        for name, key, axis in (("width_shift_range", "x", 1), ("height_shift_range", "y", 0)):
            share, remark = self._share(name, axis)
            if share:
                parts.append(f"{key}: {number(share)}")
            if remark:
                remarks.append(remark)
        if parts:
            self.found.append(Step(f"random_translation: {{{', '.join(parts)}, {look}}}", "; ".join(remarks)))

    def _share(self, name: str, axis: int) -> tuple[float | None, str]:
        """How far images move at most, as a fraction of the side."""
        if name not in self.generator.args:
            return None, ""
        value = plain(self.generator.args[name].value)
        line = self._line(name)
        if isinstance(value, Unknown):
            self._unknown(name, value)
            return None, ""
        if isinstance(value, (list, tuple)) and value and all(isinstance(v, (int, float)) for v in value):
            message = f"`{name}={value!r}` draws one of these numbers with a random sign; the spec draws any amount up to the largest"
            self.findings.add("PG621", line, message)
            most, pixels = max(abs(float(v)) for v in value), max(value) >= 1
        elif isinstance(value, int) and not isinstance(value, bool) and value > 0:
            most, pixels = float(value - 1), True
            if most:
                message = f"`{name}={value}` draws whole pixels from -{value - 1} to {value - 1}; the spec draws any amount between"
                self.findings.add("PG621", line, message)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            most, pixels = abs(float(value)), value >= 1
        else:
            if value not in (None, False):
                self.findings.add("PG610", line, f"`{name}={value!r}` is no distance", "it is left out of the spec")
            return None, ""
        if not pixels or not most:
            return most or None, ""
        if self.size is None:
            self.findings.add(
                "PG610", line, f"`{name}` is in pixels, and the size of the images is not known", "add it as a fraction of the side"
            )
            return None, ""
        side = self.size[axis]
        return round(most / side, 6), f"{number(most)} of {side} pixels"

    def _shear(self, look: str) -> None:
        degrees = self._number("shear_range")
        if degrees is None:
            return
        if abs(degrees) >= 90:
            self.findings.add(
                "PG630", self._line("shear_range"), f"`shear_range={degrees:g}` folds images over: a shear stays below 90 degrees"
            )
            return
        silenced = "pipegen: ignore[PG503] as in the old code" if abs(degrees) < 1 else ""
        self.found.append(Step(f"random_shear: {{degrees: {number(abs(degrees))}, {look}}}", silenced))

    def _zoom(self, look: str) -> None:
        """`zoom_range` scales coordinates, so that 0.8 magnifies by 1 / 0.8."""
        if "zoom_range" not in self.generator.args:
            return
        value = plain(self.generator.args["zoom_range"].value)
        line = self._line("zoom_range")
        if isinstance(value, Unknown):
            self._unknown("zoom_range", value)
            return
        pair = isinstance(value, (list, tuple)) and len(value) == 2
        if pair and all(isinstance(v, (int, float)) for v in value):
            low, high = sorted(float(v) for v in value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            low, high = 1 - abs(value), 1 + abs(value)
        else:
            if value not in (None, False):
                self.findings.add("PG610", line, f"`zoom_range={value!r}` is neither a number nor a pair", "it is left out of the spec")
            return
        if (low, high) == (1.0, 1.0):
            return
        if low <= 0:
            self.findings.add(
                "PG630", line, f"`zoom_range={value!r}` reaches factors of zero and below, which have no equivalent", "it is left out"
            )
            return
        ends = f"[{number(1 / high)}, {number(1 / low)}]"
        self.found.append(
            Step(f"random_zoom: {{x: {ends}, y: {ends}, {look}}}", f"zoom_range={_shown(value)}: 1/{number(high)} to 1/{number(low)}")
        )
        message = "`zoom_range` draws what coordinates are divided by; the spec draws the magnification from the same range, evenly"
        self.findings.add("PG621", line, message)

    def _flip(self, look: str) -> None:
        across, down = self._truth("horizontal_flip"), self._truth("vertical_flip")
        if not across and not down:
            return
        axis = "both" if across and down else "horizontal" if across else "vertical"
        args = [f"axis: {axis}"] if axis != "horizontal" else []
        args += [look] if look else []
        self.found.append(Step(f"random_flip: {{{', '.join(args)}}}" if args else "random_flip"))

    # Colours

    def _colours(self) -> None:
        shift = self._number("channel_shift_range")
        if shift is not None:
            self.found.append(Step(f"random_channel_shift: {{delta: {number(abs(shift))}}}"))
            message = "`channel_shift_range` was clipped to each image's least and greatest value; now it is to those any image can have"
            self.findings.add("PG623", self._line("channel_shift_range"), message)
        if "brightness_range" in self.generator.args:
            self._brightness()

    def _brightness(self) -> None:
        given = self.generator.args["brightness_range"].value
        value, line = plain(given), self._line("brightness_range")
        if isinstance(value, Unknown):
            self._unknown("brightness_range", value)
        elif isinstance(given, Seq) and len(value) == 2 and all(isinstance(v, (int, float)) for v in value):
            low, high = sorted(max(0.0, float(v)) for v in value)
            self.found.append(Step(f"random_brightness: {{factor: [{number(low)}, {number(high)}]}}"))
            message = "`brightness_range` cut values to whole numbers, and before Keras 2.9 stretched images to 0..255; the step multiplies"
            self.findings.add("PG623", line, message)
        elif value is not None:
            self.findings.add("PG630", line, f"`brightness_range={value!r}` is no pair, which Keras refuses too", "it is left out")

    # Values

    def _function(self) -> Step | None:
        if "preprocessing_function" not in self.generator.args:
            return None
        argument = self.generator.args["preprocessing_function"]
        if isinstance(argument.value, Const) and argument.value.value is None:
            return None
        return function_step(argument.value, self._line("preprocessing_function"), self.findings)

    def _statistics(self) -> None:
        """Means and standard deviations, each image's own first, as Keras has it."""
        own_scale = self._truth("samplewise_std_normalization")
        if self._truth("samplewise_center") or own_scale:
            self.found.append(Step(f"standardize: {{statistics: samplewise{'' if own_scale else ', scale: false'}}}"))
        whiten = self._truth("zca_whitening")
        scale = self._truth("featurewise_std_normalization") and not whiten
        centre = self._truth("featurewise_center") or self._truth("featurewise_std_normalization") or whiten
        if centre and self.fitted:
            text = self._whitening() if whiten else None
            self.found.append(Step(text or f"standardize: {{statistics: featurewise{'' if scale else ', scale: false'}}}"))
            message = "`fit` took its statistics from the array that it was given; now they are those of the training split"
            self.findings.add("PG623", self.generator.line, message, "`preprocessing_function` and the steps before count, too")
        given = plain(self.generator.args["data_format"].value) if "data_format" in self.generator.args else None
        if isinstance(given, Unknown):
            self._unknown("data_format", given)
        dtype = plain(self.generator.args["dtype"].value) if "dtype" in self.generator.args else None
        if isinstance(dtype, Unknown) or dtype not in (None, "float32", "float16"):
            message = "`dtype` is not known, or not a dtype that models take"
            self.findings.add("PG610", self._line("dtype"), message, "the spec gives float32")

    def _whitening(self) -> str | None:
        """The step that whitens, where images are known to be small enough, or may be."""
        line = self._line("zca_whitening")
        if self.size is not None and self.size[0] * self.size[1] * self.channels > LARGEST:
            side = math.isqrt(LARGEST // self.channels)
            message = f"`zca_whitening` of images of {self.size[0]}×{self.size[1]} needs a matrix that no memory holds"
            self.findings.add("PG630", line, message, f"the spec centres the images alone: `whiten` works up to {side}×{side}")
            return None
        epsilon = self._number("zca_epsilon")
        message = "`zca_epsilon` was added to singular values; the step adds it to variances. More examples than values make them alike"
        self.findings.add("PG623", line, message)
        return f"whiten: {{center: channel{f', epsilon: {number(epsilon)}' if epsilon and 0 < epsilon <= 1 and epsilon != 1e-6 else ''}}}"


def augments(generator: Generator) -> bool:
    """Whether a constructor asks for anything random, as far as is known."""
    for name in RANDOM:
        if name in generator.args:
            value = plain(generator.args[name].value)
            if isinstance(value, Unknown) or value:
                return True
    return False


def _scale(rescale: float) -> Step:
    comment = "1/255" if math.isclose(rescale, 1 / 255, rel_tol=1e-6) else ""
    return Step(f"rescale: {{scale: {number(rescale)}}}", comment)


def _is_preset(step: Step) -> bool:
    return step.text.startswith("normalize: {preset")


def number(value: float) -> str:
    """A number as YAML has it, with at most twelve digits."""
    if value == int(value) and abs(value) < 1e9:
        return str(int(value))
    text = f"{value:.12g}"
    return text if len(text) < 8 else f"{value:.6g}" if "e" not in f"{value:.6g}" and abs(value) >= 0.01 else repr(value)


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else str(list(value))
