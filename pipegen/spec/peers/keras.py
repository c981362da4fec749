"""Keras' layers for images as steps of a spec. The arguments of a function are those of the layer, with Keras' defaults."""

from __future__ import annotations

from typing import Any

from pipegen.spec.peers import converting as c

TITLE = "Keras"
IGNORED = frozenset({"seed", "data_format", "name", "dtype", "trainable", "bounding_box_format"})  # arguments that change no pixel here


def contrast_limited_adaptive_histogram_equalization(value_range=(0, 255), clip_limit=4.0, tile_grid_size=(8, 8)) -> c.Steps:
    tiles = c.one_if_equal(*(c.whole("tile_grid_size", n) for n in tile_grid_size))
    nearest = c.step("clahe", limit=c.number("clip_limit", clip_limit), tiles=tiles)
    c.refuse("Keras equalizes each channel on its own, and `clahe` the luma", nearest=nearest)


def random_brightness(factor, value_range=(0, 255)) -> c.Steps:
    darkest, brightest = c.pair("value_range", value_range)
    return c.step("random_brightness", delta=c.zero(*c.around("factor", factor, 0, -1, 1), brightest - darkest))


def random_contrast(factor, value_range=(0, 255)) -> c.Steps:
    low, high = c.around("factor", factor, 0, 0, 1)
    return c.step("random_contrast", factor=c.one(1 - low, 1 + high), pivot="channel")


def random_color_degeneration(factor, value_range=(0, 255)) -> c.Steps:
    low, high = c.around("factor", factor, 0, -1, 1)
    return c.step("random_saturation", factor=c.one(1 - high, 1 - low))


def random_color_jitter(
    value_range=(0, 255), brightness_factor=None, contrast_factor=None, saturation_factor=None, hue_factor=None
) -> c.Steps:
    if saturation_factor is not None:
        random_saturation(saturation_factor, about="saturation_factor")
    found: list[Any] = [] if brightness_factor is None else [random_brightness(brightness_factor, value_range)]
    found += [] if contrast_factor is None else [random_contrast(contrast_factor)]
    found += [] if hue_factor is None else [random_hue(hue_factor, about="hue_factor")]
    return found or c.refuse("no argument is given, so that it does nothing")


def random_flip(mode="horizontal_and_vertical") -> c.Steps:
    if mode == "horizontal_and_vertical":
        return c.step("random_rotation", 0.5, degrees=[180, 180])
    return c.step("random_flip", axis=mode)


def random_gaussian_blur(factor=1.0, kernel_size=3, sigma=1.0, value_range=(0, 255)) -> c.Steps:
    low, high = c.around("sigma", sigma, 0, 0, 1)
    sides = {kernel_size} if not c.is_pair(kernel_size) else {*kernel_size}
    if low != high:
        c.refuse("Keras draws one for each axis, and a number means from 0 to it; a pair of equal numbers is one", "sigma")
    if not all(isinstance(side, int) and side >= 6 * high + 1 for side in sides):
        c.refuse("a kernel this narrow cuts off the bell; pipegen's is 6 · `sigma` + 1 pixels wide or more", "kernel_size")
    return c.step("random_gaussian_blur", _share(factor), sigma=[low, high])


def random_hue(factor, value_range=(0, 255), about: str = "factor") -> c.Steps:
    low, high = c.around(about, factor, 0, 0, 1)
    if c.is_pair(factor) and low > 0:
        c.refuse("Keras turns by it one way or the other, which is two ranges", about)
    return c.step("random_hsv", hue_degrees=c.tidy(high * 180))


def random_invert(factor=1.0, value_range=(0, 255)) -> c.Steps:
    return c.step("random_invert", _share(factor))


def random_posterization(factor, value_range=(0, 255)) -> c.Steps:
    low, high = c.around("factor", factor, 0, 1, 8)
    low, high = c.whole("factor", low), c.whole("factor", high)
    return c.step("random_posterization", bits=[low, max(low, high - 1)])


def random_rotation(factor, fill_mode="reflect", interpolation="bilinear", fill_value=0.0) -> c.Steps:
    degrees = c.zero(*c.around("factor", factor, 0, -1, 1), 360)
    return c.step("random_rotation", degrees=degrees, **_warp(fill_mode, fill_value, interpolation))


def random_saturation(factor, value_range=(0, 255), about: str = "factor") -> c.Steps:
    why = "Keras multiplies the S of HSV by `f / (1 - f)`, so that 0.5 changes nothing; `random_saturation` mixes with gray, and 1 does"
    c.refuse(why, about)


def random_sharpness(factor, value_range=(0, 255)) -> c.Steps:
    low, high = c.around("factor", factor, 0, 0, 1)
    return c.step("random_sharpness", factor=c.one(2 * low, 2 * high))


def random_shear(x_factor=0.0, y_factor=0.0, interpolation="bilinear", fill_mode="reflect", fill_value=0.0) -> c.Steps:
    why = "Keras slants about the top left corner, by slopes; `random_shear` about the centre, by angles"
    c.refuse(why, "x_factor" if x_factor else "y_factor")


def random_translation(height_factor, width_factor, fill_mode="reflect", interpolation="bilinear", fill_value=0.0) -> c.Steps:
    x = c.zero(*c.around("width_factor", width_factor, 0, -1, 1))
    y = c.zero(*c.around("height_factor", height_factor, 0, -1, 1))
    return c.step("random_translation", x=x, y=y, **_warp(fill_mode, fill_value, interpolation))


def random_zoom(height_factor, width_factor=None, fill_mode="reflect", interpolation="bilinear", fill_value=0.0) -> c.Steps:
    y = _enlarged("height_factor", height_factor)
    warp = _warp(fill_mode, fill_value, interpolation)
    if width_factor is None:
        return c.step("random_zoom", factor=y, inverse=True, **warp)
    return c.step("random_zoom", x=_enlarged("width_factor", width_factor), y=y, inverse=True, **warp)


def rescaling(scale, offset=0.0) -> c.Steps:
    scale, offset = c.number("scale", scale), c.number("offset", offset)
    for to in ([0, 1], [-1, 1]):
        if abs(scale - (to[1] - to[0]) / 255) < 1e-9 and offset == to[0]:
            return c.step("rescale", to=to)
    return {"rescale": {"scale": scale, **({"offset": c.tidy(offset)} if offset else {})}}


def resizing(
    height,
    width,
    interpolation="bilinear",
    crop_to_aspect_ratio=False,
    pad_to_aspect_ratio=False,
    fill_mode="constant",
    fill_value=0.0,
    antialias=False,
) -> c.Steps:
    mode = "crop" if crop_to_aspect_ratio else "pad" if pad_to_aspect_ratio else "stretch"
    fill = c.filled(fill_mode, fill_value) if mode == "pad" else None
    method = str(interpolation).lower()
    c.only("interpolation", method, "bilinear", "nearest", "bicubic", "lanczos3", "lanczos5", "area")
    return c.step("resize", size=c.size(height, width), method=method, mode=mode, fill=fill, antialias=True if antialias else None)


def normalization(axis=-1, mean=None, variance=None, invert=False) -> c.Steps:
    if mean is None and variance is None:
        return c.step("standardize", statistics="featurewise")
    roots = [c.tidy(c.number("variance", v) ** 0.5) for v in (variance if c.is_pair(variance) else [variance])]
    return c.step("normalize", mean=[c.number("mean", m) for m in (mean if c.is_pair(mean) else [mean])], std=roots)


def solarization(addition_factor=0.0, threshold_factor=0.0, value_range=(0, 255)) -> c.Steps:
    low, high = c.up_to("threshold_factor", threshold_factor, 0, 1)
    least, most = c.up_to("addition_factor", addition_factor, 0, 1)
    turned = c.step("random_solarization", threshold=[low, c.tidy(high * 255)])  # Keras scales the upper end alone
    return [c.step("random_brightness", delta=[least, c.tidy(most * 255)]), turned] if most else turned


def cut_mix(factor=1.0) -> c.Steps:
    low, high = c.around("factor", factor, 0, 0, 1)
    if low != high:
        why = "Keras draws the parameter of its Beta distribution, and a number means from 0 to it; a pair of equal numbers is one"
        c.refuse(why, "factor")
    return c.step("cutmix", alpha=high)


def _share(factor: Any) -> float:
    """The probability of a layer that first draws a probability from a range."""
    low, high = c.around("factor", factor, 0, 0, 1)
    return c.tidy((low + high) / 2)


def _warp(fill_mode: Any, fill_value: Any, interpolation: Any) -> dict[str, Any]:
    return {"fill": c.filled(fill_mode, fill_value), "interpolation": c.read_between(interpolation)}


def _enlarged(about: str, factor: Any) -> list[float]:
    """The enlargement of a step for Keras' factor, which shows more."""
    low, high = c.around(about, factor, 0)
    if low <= -1 or high > 1:
        c.refuse("Keras takes factors above -1 and up to 1", about)
    return c.span(1 / (1 + high), 1 / (1 + low))
