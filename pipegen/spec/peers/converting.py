"""Shared helpers of the conversions: values in our units, steps without defaults, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any, NoReturn

import yaml

from pipegen.ops.arguments.spectra import defaults
from pipegen.ops.registry import transforms

Steps = dict[str, Any] | list[dict[str, Any]]  # one step, or several in order
_BORDERS = {0: "constant", 1: "nearest", 2: "reflect", 3: "wrap"}
_FILLS = {"edge": "nearest", "replicate": "nearest", "symmetric": "reflect"}


class Unsuited(Exception):
    """The error of a step without an equivalent, or of its argument `about`: the difference, and the nearest step, if any."""

    def __init__(self, why: str, about: str, nearest: dict[str, Any] | None) -> None:
        super().__init__(why)
        self.why, self.about, self.nearest = why, about, nearest


def refuse(why: str, about: str = "", nearest: dict[str, Any] | None = None) -> NoReturn:
    """Raises `Unsuited`."""
    raise Unsuited(why, about, nearest)


def only(about: str, value: Any, *allowed: Any, why: str = "pipegen has no other form") -> None:
    """Refuses a value that is not one of `allowed`; pairs are lists."""
    if (list(value) if isinstance(value, tuple) else value) not in allowed:
        refuse(why, about)


def step(op: str, p: float | None = None, **arguments: Any) -> dict[str, Any]:
    """A step without default arguments; `p` is its probability."""
    fields = transforms()[op].model_fields
    if p is not None and "probability" in fields:
        arguments = {**arguments, "probability": p}
    elif p is not None and (isinstance(p, bool) or p != 1):
        refuse(f"`{op}` is done to every example", "p")
    given = {name: _plain(value) for name, value in arguments.items() if value is not None}
    return {op: {name: value for name, value in given.items() if fields[name].is_required() or not _same(value, fields[name].default)}}


_OUTSIDE = {"constant": "zero", "reflect": "reflect", "replicate": "edge", "edge": "edge"}
_HANN = (None, "hann", "hann_window", "torch.hann_window")


def frames(n_fft: Any, win_length: Any, hop: int, window: Any, about: str, center: Any, pad_mode: Any, power: Any) -> dict[str, Any]:
    """The arguments of spectra whose windows lie in the middle of frames of `n_fft` samples; `about` names that of the `window`."""
    only(about, window, *_HANN, why="the steps take the name of a window function, such as `window_function: hamming`")
    if power is None or float(number("power", power)) not in (1, 2):
        refuse("spectra are magnitudes (1) or powers (2)", "power")
    only("pad_mode", pad_mode, *_OUTSIDE, why="outside the sound is silence, the sound reflected, or its last sample")
    fft, length = whole("n_fft", n_fft), n_fft if win_length is None else whole("win_length", win_length)
    pad = _OUTSIDE[pad_mode] if center else "zero"
    return {"fft": fft, "window": length, "hop": hop, "power": int(power), "center": bool(center), "pad": pad, "frame": "fft"}


def spectra(op: str, preset: str | None, **arguments: Any) -> dict[str, Any]:
    """A step of spectra with those arguments that the defaults of its preset, or of no preset, do not give."""
    known = dict(defaults(preset))
    known |= {"window": known["fft"], "hop": known.get("hop", known["fft"] // 2)} if "fft" in known else {}
    given = {name: value for name, value in arguments.items() if value != known.get(name)}
    # Lengths that follow from another one are written with it.
    given |= {name: arguments[name] for name in ("window", "hop") if "fft" in given}
    return step(op, preset=preset, **given)


def read_step(lines: str) -> dict[str, Any]:
    """Reads a step of a table: a word, or a map with its arguments."""
    step = yaml.safe_load(lines)
    return {step: {}} if isinstance(step, str) else step


def same(arguments: str, lines: str) -> Callable[..., Steps]:
    """The conversion of a library's step with these arguments, of which only the probability `p` matters."""
    defaults = yaml.safe_load(arguments)

    def convert(**given: Any) -> Steps:
        ((op, own),) = read_step(lines).items()
        return step(op, given.get("p", defaults.get("p")), **own)

    return _with_signature(convert, defaults)


def without(arguments: str, nearest: str, why: str) -> Callable[..., Steps]:
    """The refusal of a library's step with these arguments; the name of the nearest step of ours stands for its example."""

    def convert(**_: Any) -> Steps:
        lines = transforms()[nearest].examples[0].yaml if nearest in transforms() else nearest
        refuse(why, nearest=read_step(lines) if lines != "-" else None)

    return _with_signature(convert, dict.fromkeys(arguments.split() if arguments != "-" else ()))


def made(arguments: str, op: str, settings: str, why: str = "") -> Callable[..., Steps]:
    """The conversion to a step with settings such as `std: span pair std_range 0 1 * 255`: a form, the reader of an argument or of two,
    bounds, and a factor. `arguments` are those without a default, then a map. With `why`, the step is only the nearest."""
    required, brace, rest = arguments.partition("{")
    defaults = dict.fromkeys(required.split(), Parameter.empty) | yaml.safe_load(f"{brace}{rest}" or "{}")
    ways = dict(setting.split(": ") for setting in settings.split("; "))

    def convert(**given: Any) -> Steps:
        values = defaults | given
        found = step(op, values.get("p"), **{ours: _read(way, values) for ours, way in ways.items()})
        return refuse(why, nearest=found) if why else found

    return _with_signature(convert, defaults)


def _read(way: str, values: dict[str, Any]) -> Any:
    words, _, times = way.partition(" * ")
    form, reader, *rest = words.split()
    bounds = [float(word) for word in rest if word not in values]
    read = [_READERS[reader](name, values[name], *bounds) for name in rest if name in values]
    ends = [end for one in read for end in (one if isinstance(one, tuple) else (one,))]
    return _FORMS[form](ends[0], ends[-1], *([float(times)] if times else []))


def _with_signature(convert: Callable[..., Steps], defaults: dict[str, Any]) -> Callable[..., Steps]:
    parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default) for name, default in defaults.items()]
    convert.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return convert


def number(about: str, value: Any) -> float:
    """A number; refuses other values."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        refuse("it is not a number", about)
    return value


def whole(about: str, value: Any) -> int:
    """An integer; refuses other values."""
    if isinstance(value, bool) or not isinstance(value, int):
        refuse("it is not a whole number", about)
    return value


def pair(about: str, value: Any, least: float = float("-inf"), most: float = float("inf")) -> tuple[float, float]:
    """A pair of numbers in order, each from `least` to `most`; refuses other values."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        refuse("it is not a pair of numbers", about)
    low, high = sorted(number(about, one) for one in value)
    if low < least or high > most:
        refuse(f"the library takes numbers from {least:g} to {most:g}", about)
    return low, high


def is_pair(value: Any) -> bool:
    """Tests if a value is a list or a tuple."""
    return isinstance(value, (list, tuple))


def around(about: str, value: Any, middle: float = 0, least: float = float("-inf"), most: float = float("inf")) -> tuple[float, float]:
    """The range of a number to both sides of `middle`, cut at `least`; a pair stays."""
    if is_pair(value):
        return pair(about, value, least, most)
    reach = abs(number(about, value))
    if middle + reach > most:
        refuse(f"the library takes numbers up to {most - middle:g}", about)
    return max(middle - reach, least), min(middle + reach, most)


def one_or_pair(about: str, value: Any, least: float = float("-inf"), most: float = float("inf")) -> tuple[float, float]:
    """A pair; a number is both of its ends."""
    return pair(about, value if is_pair(value) else [value, value], least, most)


def zero(low: float, high: float, times: float = 1) -> float | list[float]:
    """A range around 0 for a step: one number if symmetric."""
    return tidy(high * times) if low == -high else [tidy(low * times), tidy(high * times)]


def one(low: float, high: float, times: float = 1) -> float | list[float]:
    """A range around 1 for a step: one number if symmetric."""
    low, high = low * times, high * times
    return tidy(high - 1) if tidy(1 - low) == tidy(high - 1) else [tidy(low), tidy(high)]


def span(low: float, high: float, times: float = 1) -> list[float]:
    """A range as a pair."""
    return [tidy(low * times), tidy(high * times)]


def up_to(about: str, value: Any, least: float, most: float = float("inf")) -> tuple[float, float]:
    """A pair; a number is its upper end, above `least`."""
    return pair(about, value if is_pair(value) else [least, value], least, most)


def one_if_equal(first: Any, second: Any) -> Any:
    """One value for two directions, such as a `size`; a list if they differ."""
    return first if first == second else [first, second]


def jittered(brightness: Any, contrast: Any, saturation: Any, hue: Any, nothing: str) -> list[dict[str, Any]]:
    """The steps of a colour jitter, where 0 changes nothing; refuses one that does nothing at all."""
    named = {"brightness": brightness, "contrast": contrast, "saturation": saturation}
    steps = [step(f"random_{name}", factor=one(*around(name, value, 1, 0))) for name, value in named.items() if value not in (0, [1, 1])]
    hues = around("hue", hue, 0, -0.5, 0.5)
    steps += [step("random_hsv", hue_degrees=zero(*hues, 360))] if hues != (0, 0) else []
    return steps or refuse(nothing)


def tidy(value: float) -> float:
    """A number without rounding noise, as an integer if it is one."""
    if float(value).is_integer():
        return int(value)
    return float(f"{value:.6g}") if 1e-12 < abs(value) < 1e-3 else round(value, 6)  # a floor such as 1e-10 stays


def filled(mode: Any, value: Any = 0, about: str = "fill_mode") -> Any:
    """The `fill` of a step for the name of a mode, or OpenCV's number of one."""
    mode = _BORDERS.get(mode, mode) if isinstance(mode, int) else str(mode).lower().replace("cv2.", "").replace("border_", "")
    mode = _FILLS.get(mode, mode)
    if mode == "constant":
        values = list(value) if is_pair(value) else [value]
        if len(set(values)) != 1:
            refuse("a step fills with one value for all channels", "fill")
        return {"constant": tidy(number("fill", values[0]))}
    why = "a step fills with `reflect` (the edge pixel repeated), `nearest`, `wrap` or a constant"
    only(about, mode, "nearest", "reflect", "wrap", why=why)
    return mode


def read_between(value: Any, about: str = "interpolation") -> str:
    """The `interpolation` of a step for a library's name of it, or OpenCV's number."""
    name = str(value).lower().replace("cv2.", "").replace("inter_", "").replace("interpolationmode.", "").replace("image.", "")
    known = {"0": "nearest", "1": "bilinear", "2": "bicubic", "linear": "bilinear", "cubic": "bicubic"}
    name = known.get(name, name)
    only(about, name, "nearest", "bilinear", "bicubic", why="a step reads `nearest`, `bilinear` or `bicubic`")
    return name


def size(height: Any, width: Any) -> Any:
    """A `size`: one number if both sides are equal."""
    return one_if_equal(whole("height", height), whole("width", width))


_READERS: dict[str, Callable[..., Any]] = {f.__name__: f for f in (number, whole, pair, around, one_or_pair, up_to)}
_FORMS: dict[str, Callable[..., Any]] = {f.__name__: f for f in (zero, one, span, one_if_equal)}


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return tidy(value) if isinstance(value, float) else value


def _same(value: Any, default: Any) -> bool:
    default = default.model_dump() if hasattr(default, "model_dump") else default
    return value == (list(default) if isinstance(default, tuple) else default) and not isinstance(value, bool | None)
