"""The random changes of place: rotation, shift, shear, zoom, flips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipegen.migrate.amounts import Amounts, Step, number
from pipegen.migrate.knobs import Knob, is_open, is_pair, varies
from pipegen.migrate.values import Unknown, plain

_FILLS = ("nearest", "reflect", "wrap")
_ORDERS = {0: "nearest", 3: "bicubic"}


@dataclass
class Geometry(Amounts):
    """Writes the steps that move pixels, in the order in which `ImageDataGenerator` composes them."""

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
            fraction = varies(self.generator, name) and not remark and 0 <= plain(self.generator.args[name].value) < 1
            if fraction:
                parts.append(f"{key}: {self.knobs.add(Knob(name, name), number(share or 0.0), ', min: 0, max: 1')}")
            elif share:
                parts.append(f"{key}: {number(share)}")
            if remark:
                remarks.append(remark)
        if parts:
            self.found.append(Step(f"random_translation: {{{', '.join(parts)}, {look}}}", "; ".join(remarks)))

    def _share(self, name: str, axis: int) -> tuple[float | None, str]:
        """Returns how far images move at most, as a fraction of the side."""
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
        degrees = None if is_open(self.generator, "shear_range") else self._number("shear_range")
        if degrees is not None and abs(degrees) >= 90:
            self.findings.add(
                "PG630", self._line("shear_range"), f"`shear_range={degrees:g}` folds images over: a shear stays below 90 degrees"
            )
            return
        text = self._amount("shear_range")
        if text:
            silenced = "pipegen: ignore[PG503] as in the old code" if degrees is not None and abs(degrees) < 1 else ""
            self.found.append(Step(f"random_shear: {{degrees: {text}, {look}}}", silenced))

    def _zoom(self, look: str) -> None:
        """`zoom_range` scales coordinates, so that 0.8 magnifies by 1 / 0.8."""
        if "zoom_range" not in self.generator.args:
            return
        value = plain(self.generator.args["zoom_range"].value)
        line = self._line("zoom_range")
        if is_open(self.generator, "zoom_range"):
            knobs = (Knob("zoom_low", "zoom_range", "1 / (1 + {})"), Knob("zoom_high", "zoom_range", "1 / (1 - {})"))
            low_end, high_end = (self._open(knob, "1", ", min: 0.001") for knob in knobs)
            self.found.append(Step(f"random_zoom: {{x: [{low_end}, {high_end}], y: [{low_end}, {high_end}], {look}}}"))
            self._other_zoom()
            return
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
        if (low, high) == (1.0, 1.0) and not varies(self.generator, "zoom_range"):
            return
        if low <= 0:
            self.findings.add(
                "PG630", line, f"`zoom_range={value!r}` reaches factors of zero and below, which have no equivalent", "it is left out"
            )
            return
        ends = f"[{number(1 / high)}, {number(1 / low)}]"
        if varies(self.generator, "zoom_range"):
            forms = ("1 / {}", "1 / {}", 1, 0) if is_pair(self.generator, "zoom_range") else ("1 / (1 + {})", "1 / (1 - {})", None, None)
            least = self.knobs.add(Knob("zoom_low", "zoom_range", forms[0], forms[2]), number(1 / high), ", min: 0.001")
            most = self.knobs.add(Knob("zoom_high", "zoom_range", forms[1], forms[3]), number(1 / low), ", min: 0.001")
            ends = f"[{least}, {most}]"
        self.found.append(
            Step(f"random_zoom: {{x: {ends}, y: {ends}, {look}}}", f"zoom_range={_shown(value)}: 1/{number(high)} to 1/{number(low)}")
        )
        self._other_zoom()

    def _other_zoom(self) -> None:
        message = "`zoom_range` draws what coordinates are divided by; the spec draws the magnification from the same range, evenly"
        self.findings.add("PG621", self._line("zoom_range"), message)

    def _flip(self, look: str) -> None:
        names = ("horizontal_flip", "vertical_flip")
        if any(varies(self.generator, name) or is_open(self.generator, name) for name in names):
            for name in names:
                self._perhaps_flip(name.removesuffix("_flip"), look)
            return
        across, down = (self._truth(name) for name in names)
        if not across and not down:
            return
        axis = "both" if across and down else "horizontal" if across else "vertical"
        args = [f"axis: {axis}"] if axis != "horizontal" else []
        args += [look] if look else []
        self.found.append(Step(f"random_flip: {{{', '.join(args)}}}" if args else "random_flip"))

    def _perhaps_flip(self, axis: str, look: str) -> None:
        """One of two flips, of which one may be switched on or off at run time."""
        args = [f"axis: {axis}"] if axis != "horizontal" else []
        knob = Knob(f"{axis}_flip", f"{axis}_flip", "0.5 if {} else 0.0")
        unknown = is_open(self.generator, knob.argument)
        flips = False if unknown else self._truth(knob.argument)
        if unknown:
            args.append(f"probability: {self._open(knob, '0.0', ', min: 0, max: 1')}")
        elif varies(self.generator, knob.argument):
            args.append(f"probability: {self.knobs.add(knob, '0.5' if flips else '0.0', ', min: 0, max: 1', 'how often')}")
        elif not flips:
            return
        args += [look] if look and self.found else []
        self.found.append(Step(f"random_flip: {{{', '.join(args)}}}" if args else "random_flip"))


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) else str(list(value))
