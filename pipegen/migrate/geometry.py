"""Random geometric changes: rotation, shift, shear, zoom, flips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipegen.migrate.amounts import Amounts, Knob, Step, is_open, number, varies
from pipegen.migrate.values import Seq, Unknown, is_number

_FILLS = ("nearest", "reflect", "wrap")
_ORDERS = {0: "nearest", 3: "bicubic"}


@dataclass
class Geometry(Amounts):
    """Writes the geometric steps, in the order of `ImageDataGenerator`."""

    def _look(self) -> str:
        """Arguments that all geometric steps have: fill and interpolation."""
        mode, order = self.generator.known("fill_mode", "nearest"), self.generator.known("interpolation_order", 1)
        fill = "nearest"
        if mode == "constant":
            fill = f"{{constant: {number(self._number('cval') or 0.0)}}}"
        elif mode in _FILLS:
            fill = str(mode)
        elif isinstance(mode, Unknown):
            self._unknown("fill_mode", mode)
        else:
            self._say("PG630", "fill_mode", f"`fill_mode={mode!r}` has no equivalent", "the spec has `nearest`, the default")
        if mode == "wrap":
            message = "`fill_mode='wrap'` repeated the image with a period one pixel too short; `wrap` repeats the whole image"
            self._say("PG623", "fill_mode", message)
        if isinstance(order, Unknown):
            self._unknown("interpolation_order", order)
        elif order not in (0, 1, 3):
            message = f"`interpolation_order={order!r}` has no equivalent"
            self._say("PG630", "interpolation_order", message, "the spec is bilinear")
        method = f", interpolation: {_ORDERS[order]}" if isinstance(order, int) and order in _ORDERS else ""
        return f"fill: {fill}{method}"

    def _rotation(self, look: str) -> None:
        degrees = self._amount("rotation_range")
        if degrees:
            self.found.append(Step(f"random_rotation: {{degrees: {degrees}, {look}}}"))

    def _shift(self, look: str) -> None:
        parts = []
        remarks = []
        for name, key, axis in (("width_shift_range", "x", 1), ("height_shift_range", "y", 0)):
            if is_open(self.generator, name):
                parts.append(f"{key}: {self._open(Knob(name, name), '0', ', min: 0, max: 1')}")
                continue
            share, remark = self._share(name, axis)
            fraction = varies(self.generator, name) and not remark and 0 <= self.generator.known(name) < 1
            if fraction:
                parts.append(f"{key}: {self.knobs.add(Knob(name, name), number(share or 0.0), ', min: 0, max: 1')}")
            elif share:
                parts.append(f"{key}: {number(share)}")
            if remark:
                remarks.append(remark)
        if parts:
            self.found.append(Step(f"random_translation: {{{', '.join(parts)}, {look}}}", "; ".join(remarks)))

    def _share(self, name: str, axis: int) -> tuple[float | None, str]:
        """Largest shift of images, as a fraction of the side."""
        value = self.generator.known(name)
        if isinstance(value, Unknown):
            self._unknown(name, value)
            return None, ""
        if isinstance(value, (list, tuple)) and value and all(isinstance(v, (int, float)) for v in value):
            message = f"`{name}={value!r}` draws one of these numbers with a random sign; the spec draws any number up to the largest"
            self._say("PG621", name, message)
            most, pixels = max(abs(float(v)) for v in value), max(value) >= 1
        elif not is_number(value):
            if value not in (None, False):
                self._say("PG610", name, f"`{name}={value!r}` is not a distance", "it is left out of the spec")
            return None, ""
        elif isinstance(value, int) and value > 0:
            most, pixels = float(value - 1), True
            if most:
                message = f"`{name}={value}` draws whole pixels from -{value - 1} to {value - 1}; the spec draws any number between them"
                self._say("PG621", name, message)
        else:
            most, pixels = abs(float(value)), value >= 1
        if not pixels or not most:
            return most or None, ""
        if self.size is None:
            message = f"`{name}` is in pixels, but the size of the images is not known"
            self._say("PG610", name, message, "add it as a fraction of the side")
            return None, ""
        side = self.size[axis]
        return round(most / side, 6), f"{number(most)} of {side} pixels"

    def _shear(self, look: str) -> None:
        degrees = None if is_open(self.generator, "shear_range") else self._number("shear_range")
        if degrees is not None and abs(degrees) >= 90:
            message = f"`shear_range={degrees:g}` is invalid: a shear is below 90 degrees"
            self._say("PG630", "shear_range", message)
            return
        text = self._amount("shear_range")
        if text:
            silenced = "pipegen: ignore[PG503] as in the old code" if degrees is not None and abs(degrees) < 1 else ""
            self.found.append(Step(f"random_shear: {{degrees: {text}, {look}}}", silenced))

    def _zoom(self, look: str) -> None:
        """Writes `zoom_range`, which scales coordinates: 0.8 magnifies by 1 / 0.8."""
        name, comment = "zoom_range", ""
        given, value = self.generator.argument(name), self.generator.known(name)
        pair = isinstance(given, Seq) and len(given.items) == 2 and varies(self.generator, name)
        forms = ("1 / {}", "1 / {}", 1, 0) if pair else ("1 / (1 + {})", "1 / (1 - {})", None, None)
        knobs = Knob("zoom_low", name, forms[0], forms[2]), Knob("zoom_high", name, forms[1], forms[3])
        if is_open(self.generator, name):
            ends = [self._open(knob, "1", ", min: 0.001") for knob in knobs]
        elif isinstance(value, Unknown):
            self._unknown(name, value)
            return
        else:
            if isinstance(value, (list, tuple)) and len(value) == 2 and all(isinstance(v, (int, float)) for v in value):
                low, high = sorted(float(v) for v in value)
            elif is_number(value):
                low, high = 1 - abs(value), 1 + abs(value)
            else:
                if value not in (None, False):
                    self._say("PG610", name, f"`zoom_range={value!r}` is neither a number nor a pair", "it is left out of the spec")
                return
            if (low, high) == (1.0, 1.0) and not varies(self.generator, name):
                return
            if low <= 0:
                message = f"`zoom_range={value!r}` reaches factors of zero and below, which have no equivalent"
                self._say("PG630", name, message, "it is left out")
                return
            ends = [number(1 / high), number(1 / low)]
            if varies(self.generator, name):
                ends = [self.knobs.add(knob, text, ", min: 0.001") for knob, text in zip(knobs, ends, strict=True)]
            comment = f"zoom_range={_shown(value)}: 1/{number(high)} to 1/{number(low)}"
        factors = f"[{', '.join(ends)}]"
        self.found.append(Step(f"random_zoom: {{x: {factors}, y: {factors}, {look}}}", comment))
        message = "`zoom_range` draws a divisor of coordinates; the spec draws the magnification uniformly from the same range"
        self._say("PG621", name, message)

    def _flip(self, look: str) -> None:
        names = ("horizontal_flip", "vertical_flip")
        if any(varies(self.generator, name) or is_open(self.generator, name) for name in names):
            for name in names:
                self._perhaps_flip(name.removesuffix("_flip"), look)
            return
        across, down = (self._truth(name) for name in names)
        if across or down:
            self._add_flip("both" if across and down else "horizontal" if across else "vertical", look)

    def _perhaps_flip(self, axis: str, look: str) -> None:
        """Writes one of two flips, if one of them depends on run time."""
        knob = Knob(f"{axis}_flip", f"{axis}_flip", "0.5 if {} else 0.0")
        unknown = is_open(self.generator, knob.argument)
        flips = False if unknown else self._truth(knob.argument)
        often = ""
        if unknown:
            often = self._open(knob, "0.0", ", min: 0, max: 1")
        elif varies(self.generator, knob.argument):
            often = self.knobs.add(knob, "0.5" if flips else "0.0", ", min: 0, max: 1", "how often")
        if often or flips:
            self._add_flip(axis, look if self.found else "", often)

    def _add_flip(self, axis: str, look: str, often: str = "") -> None:
        args = [f"axis: {axis}"] if axis != "horizontal" else []
        args += [f"probability: {often}"] if often else []
        args += [look] if look else []
        self.found.append(Step(f"random_flip: {{{', '.join(args)}}}" if args else "random_flip"))


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else str(list(value))
