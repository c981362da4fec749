"""Transforms of Albumentations as steps of a spec. The arguments of a function are those of the transform, with its defaults."""

from __future__ import annotations

from typing import Any

from pipegen.spec.peers import converting as c

TITLE = "Albumentations"
IGNORED = frozenset({"mask_interpolation", "fill_mask", "rotate_method", "keypoint_remapping_method", "mask_drop_value", "always_apply"})
"""Arguments that change no pixel of an image here."""


def additive_noise(noise_type="uniform", spatial_mode="constant", noise_params=None, approximation=1.0, p=0.5) -> c.Steps:
    ranges = (noise_params or {}).get("ranges", [[-0.1, 0.1]])
    if not isinstance(ranges, list) or len(ranges) != 1:
        c.refuse("one range for all channels can be written", "noise_params")
    return c.step("random_channel_shift", p, delta=c.zero(*c.pair("noise_params", ranges[0], -1, 1), 255), per_channel=True)


def affine(
    scale=(1.0, 1.0),
    translate_percent=None,
    translate_px=None,
    rotate=0.0,
    shear=(0.0, 0.0),
    interpolation=1,
    fit_output=False,
    keep_ratio=False,
    balanced_scale=False,
    border_mode=0,
    fill=0,
    p=0.5,
) -> c.Steps:
    warp = _warp(border_mode, fill, interpolation)
    degrees = c.one_or_pair("rotate", rotate)
    x, y = _both("translate_percent", translate_percent or 0, 0)
    slant_x, slant_y = _both("shear", shear, 1)
    wide, high = _both("scale", scale, 1)
    if sum(turn != (0, 0) for turn in (degrees, slant_x, slant_y)) > 1:
        why = "Albumentations turns before it slants, and slants both ways at once; `random_affine` slants along x, along y, then turns"
        c.refuse(why, "shear")
    moved = {"degrees": c.zero(*degrees), "x": c.zero(*x), "y": c.zero(*y)}
    slants = {"shear_x": c.zero(-slant_x[1], -slant_x[0]), "shear_y": c.zero(-slant_y[1], -slant_y[0])}
    together = wide == high and (keep_ratio or wide[0] == wide[1])
    if not together and (any(moved.values()) or any(slants.values())):
        why = "each side is scaled by a number of its own, which is `random_zoom` on its own, or one for both with `keep_ratio: true`"
        c.refuse(why, "scale")
    if not together:
        return c.step("random_zoom", p, x=c.span(*wide), y=c.span(*high), **warp)
    factor = c.one(*wide) if wide != (1, 1) else None
    return c.step("random_affine", p, **moved, **slants, factor=factor, **warp)


def blur(blur_limit=(3, 7), p=0.5) -> c.Steps:
    low, high = _sides(blur_limit)
    return c.step("random_box_blur", p, reach=[(low - 1) // 2, (high - 1) // 2])


def clahe(clip_limit=4.0, tile_grid_size=(8, 8), p=0.5) -> c.Steps:
    limit = c.span(*c.up_to("clip_limit", clip_limit, 1))
    c.pair("tile_grid_size", tile_grid_size, 1)
    nearest = c.step("random_clahe", p, limit=limit, tiles=c.one_if_equal(*tile_grid_size))
    c.refuse("Albumentations equalizes the L of LAB, and `random_clahe` the luma", nearest=nearest)


def coarse_dropout(num_holes_range=(1, 2), hole_height_range=(0.1, 0.2), hole_width_range=(0.1, 0.2), fill=0, p=0.5) -> c.Steps:
    holes = c.one_if_equal(*c.pair("num_holes_range", num_holes_range, 1))
    heights, widths = _shares("hole_height_range", hole_height_range), _shares("hole_width_range", hole_width_range)
    return c.step("random_coarse_dropout", p, holes=holes, height=heights, width=widths, fill=_value(fill))


def color_jitter(brightness=(0.8, 1.2), contrast=(0.8, 1.2), saturation=(0.8, 1.2), hue=(-0.5, 0.5), p=0.5) -> c.Steps:
    steps = c.jittered(brightness, contrast, saturation, hue, "nothing changes")
    if len(steps) > 1:
        return c.step("random_order", p, steps=steps)
    ((op, arguments),) = steps[0].items()
    return c.step(op, p, **arguments)


def crop(x_min=0, y_min=0, x_max=1024, y_max=1024, pad_if_needed=False, pad_position="center", border_mode=0, fill=0, p=1.0) -> c.Steps:
    top, left, bottom, right = (c.whole(n, v) for n, v in (("y_min", y_min), ("x_min", x_min), ("y_max", y_max), ("x_max", x_max)))
    return c.step("crop", p, size=c.size(bottom - top, right - left), top=top, left=left)


def crop_non_empty_mask_if_exists(height, width, ignore_values=None, ignore_channels=None, p=1.0) -> c.Steps:
    background = None if ignore_values is None else [0, *[value for value in ignore_values if value != 0]]
    return c.step("random_crop_around", p, size=c.size(height, width), background=background)


def downscale(scale_range=(0.25, 0.25), interpolation_pair=None, p=0.5) -> c.Steps:
    factor = c.span(*c.pair("scale_range", scale_range, 0, 1))
    nearest = c.step("random_downscale", p, factor=factor)
    if interpolation_pair is None:
        c.refuse("OpenCV's nearest is up to a pixel away; its `INTER_NEAREST_EXACT` is pipegen's", "interpolation_pair", nearest)
    ways = {_method(way, "interpolation_pair") for way in interpolation_pair.values()}
    if len(ways) != 1 or not ways <= {"nearest", "bilinear"}:
        c.refuse("both ways are read `nearest` or `bilinear`", "interpolation_pair", nearest)
    return c.step("random_downscale", p, factor=factor, method=ways.pop())


def elastic_transform(
    alpha=1.0, sigma=50.0, interpolation=1, approximate=False, same_dxdy=False, noise_distribution="gaussian", border_mode=0, fill=0, p=0.5
) -> c.Steps:
    strength = c.number("alpha", alpha)
    return c.step(
        "random_elastic", p, alpha=[strength, strength], sigma=c.number("sigma", sigma), **_warp(border_mode, fill, interpolation)
    )


def erasing(scale=(0.02, 0.33), ratio=(0.3, 3.3), fill=0, p=0.5) -> c.Steps:
    area, ratios = c.pair("scale", scale, 0, 1), c.pair("ratio", ratio, 0)
    if area[1] > min(ratios[0], 1 / ratios[1]):
        c.refuse("areas above the least ratio are left out in Albumentations, and cut at a side in `random_erasing`", "scale")
    return c.step("random_erasing", p, area=c.span(*area), aspect_ratio=c.span(*ratios), fill=_value(fill))


def gaussian_blur(blur_limit=0, sigma_limit=(0.5, 3.0), p=0.5) -> c.Steps:
    made = c.step("random_gaussian_blur", p, sigma=c.span(*c.up_to("sigma_limit", sigma_limit, 0)))
    if blur_limit not in (0, [0, 0]):
        c.refuse("the width of a kernel follows from `sigma`, which is `blur_limit: 0`", "blur_limit", made)
    return made


def grid_distortion(num_steps=5, distort_limit=(-0.3, 0.3), interpolation=1, normalized=True, p=0.5, border_mode=0, fill=0) -> c.Steps:
    low, high = c.around("distort_limit", distort_limit, 0, -1, 1)
    cells = c.whole("num_steps", num_steps)
    nearest = c.step("random_grid_distortion", p, factor=c.one(1 + low, 1 + high), cells=cells, **_warp(border_mode, fill, interpolation))
    c.refuse("Albumentations' columns are whole pixels wide, with one more for what is left over", nearest=nearest)


def grid_dropout(ratio=0.5, random_offset=True, unit_size_range=None, holes_number_xy=None, shift_xy=(0, 0), fill=0, p=0.5) -> c.Steps:
    if unit_size_range is not None or holes_number_xy is None:
        c.refuse("the number of cells, `holes_number_xy`, says how large they are", "unit_size_range")
    c.pair("holes_number_xy", holes_number_xy, 1)
    across, down = (c.whole("holes_number_xy", n) for n in holes_number_xy)
    nearest = c.step("random_grid_dropout", p, cells=c.one_if_equal(down, across), ratio=c.number("ratio", ratio), fill=_value(fill))
    c.refuse("Albumentations' holes reach over the ends of their cells", nearest=nearest)


def longest_max_size(max_size, max_size_hw=None, interpolation=1, area_for_downscale=None, p=1) -> c.Steps:
    side = c.whole("max_size", max_size)
    return [c.step("resize", p, longer_side=side, method=_method(interpolation)), c.step("pad", size=side)]


def median_blur(blur_limit=(3, 7), p=0.5) -> c.Steps:
    low, high = _sides(blur_limit)
    if high > 5:
        c.refuse("`random_median_blur` has sides of 3 and 5", "blur_limit")
    if low == high:
        return c.step("random_median_blur", p, side=low)
    return c.step("one_of", p, steps=[c.step("random_median_blur", 1, side=side) for side in (3, 5)])


def normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), max_pixel_value=255.0, normalization="standard", p=1.0) -> c.Steps:
    if normalization == "image_per_channel":
        c.refuse("`standardize: {statistics: samplewise}` has one mean of an image for all of its channels", "normalization")
    means, stds = ([c.number(n, one) for one in (v if c.is_pair(v) else [v] * 3)] for n, v in (("mean", mean), ("std", std)))
    return [c.step("rescale", to=[0, 1]), c.step("normalize", mean=means, std=stds)]


def optical_distortion(distort_limit=(-0.05, 0.05), interpolation=1, mode="camera", p=0.5, border_mode=0, fill=0) -> c.Steps:
    limit = c.around("distort_limit", distort_limit)
    made = c.step("random_optical_distortion", p, coefficient=c.zero(*limit), model=mode, **_warp(border_mode, fill, interpolation))
    return made if mode == "fisheye" else c.refuse("the centre is half a pixel off in Albumentations", "mode", made)


def pad(padding=0, fill=0, border_mode=0, p=1.0) -> c.Steps:
    if c.is_pair(padding) and len(set(padding)) == 1:
        padding = padding[0]
    return c.step("pad", p, padding=c.whole("padding", padding), fill=c.filled(border_mode, fill, "border_mode"))


def pad_if_needed(
    min_height=1024, min_width=1024, pad_height_divisor=None, pad_width_divisor=None, position="center", border_mode=0, fill=0, p=1.0
) -> c.Steps:
    sides = c.one_if_equal(c.whole("min_height", min_height), c.whole("min_width", min_width))
    return c.step("pad", p, at_least=sides, position=position, fill=c.filled(border_mode, fill, "border_mode"))


def pixel_dropout(dropout_prob=0.01, per_channel=False, drop_value=0, p=0.5) -> c.Steps:
    share = c.number("dropout_prob", dropout_prob)
    values = set(drop_value) if c.is_pair(drop_value) else {drop_value}
    if len(values) != 1 or None in values:
        c.refuse("one value is put in the place of all channels", "drop_value")
    value = c.whole("drop_value", values.pop())
    return c.step("random_pixel_dropout", p, share=[share, share], value=value, per_channel=True if per_channel else None)


def planckian_jitter(mode="blackbody", temperature_limit=None, sampling_method="uniform", p=0.5) -> c.Steps:
    low, high = c.pair("temperature_limit", temperature_limit or [3000 if mode == "blackbody" else 4000, 15000])
    light = "blackbody" if mode == "blackbody" else "daylight"
    steps = [c.step("random_color_temperature", kelvins=kelvins, light=light) for kelvins in ([c.tidy(low), 6000], [6000, c.tidy(high)])]
    return c.step("one_of", p, steps=steps, weights=[0.4, 0.6])


def posterize(num_bits=4, p=0.5) -> c.Steps:
    if c.is_pair(num_bits) and len(num_bits) > 2:
        c.refuse("all channels keep as many bits", "num_bits")
    bits = c.one_or_pair("num_bits", num_bits, 1, 7)
    return c.step("random_posterization", p, bits=[c.whole("num_bits", bit) for bit in bits])


def rgb_shift(r_shift_limit=(-20, 20), g_shift_limit=(-20, 20), b_shift_limit=(-20, 20), p=0.5) -> c.Steps:
    limits = {"red": ("r_shift_limit", r_shift_limit), "green": ("g_shift_limit", g_shift_limit), "blue": ("b_shift_limit", b_shift_limit)}
    ranges = {ours: c.around(*theirs) for ours, theirs in limits.items()}
    shifts = {ours: c.zero(*limit, 1 if max(map(abs, limit)) > 1 else 255) for ours, limit in ranges.items()}
    return c.step("random_rgb_shift", p, **shifts)


def random_brightness_contrast(
    brightness_limit=(-0.2, 0.2), contrast_limit=(-0.2, 0.2), brightness_by_max=True, ensure_safe_range=False, p=0.5
) -> c.Steps:
    bright, contrast = c.around("brightness_limit", brightness_limit), c.around("contrast_limit", contrast_limit)
    return c.step("random_brightness", p, factor=c.one(1 + contrast[0], 1 + contrast[1]), delta=c.zero(*bright, 255))


def random_crop(height, width, pad_if_needed=False, pad_position="center", border_mode=0, fill=0, p=1.0) -> c.Steps:
    padded = {"padding": "as_needed", "fill": c.filled(border_mode, fill, "border_mode")} if pad_if_needed else {}
    return c.step("random_crop", p, size=c.size(height, width), **padded)


def random_grid_shuffle(grid=(3, 3), p=0.5) -> c.Steps:
    cells = c.one_if_equal(*(c.whole("grid", n) for n in grid)) if c.is_pair(grid) else grid
    return c.step("random_grid_shuffle", p, cells=cells)


def random_resized_crop(size, scale=(0.08, 1.0), ratio=(0.75, 4 / 3), interpolation=1, area_for_downscale=None, p=1.0) -> c.Steps:
    side = size[0] if c.is_pair(size) and size[0] == size[1] else size
    arguments = {"area": c.span(*c.pair("scale", scale, 0, 1)), "aspect_ratio": list(c.pair("ratio", ratio, 0))}
    return c.step("random_resized_crop", p, size=side, **arguments, method=_method(interpolation))


def random_scale(scale_limit=(-0.1, 0.1), interpolation=1, area_for_downscale=None, p=0.5) -> c.Steps:
    low, high = c.around("scale_limit", scale_limit)
    nearest = c.step("random_zoom", p, factor=c.one(1 + low, 1 + high))
    c.refuse("its images have sizes of their own, and those of `random_zoom` keep theirs", nearest=nearest)


def random_sized_crop(min_max_height, size, w2h_ratio=1.0, interpolation=1, area_for_downscale=None, p=1.0) -> c.Steps:
    rows = [c.whole("min_max_height", side) for side in c.pair("min_max_height", min_max_height, 1)]
    ratio, sides = c.number("w2h_ratio", w2h_ratio), c.one_if_equal(*size)
    return c.step("random_resized_crop", p, size=sides, rows=rows, aspect_ratio=[ratio, ratio], method=_method(interpolation))


def random_tone_curve(scale=0.1, per_channel=False, p=0.5) -> c.Steps:
    return c.step("random_tone_curve", p, std=c.number("scale", scale), per_channel=True if per_channel else None)


def resize(height, width, interpolation=1, area_for_downscale=None, p=1) -> c.Steps:
    return c.step("resize", p, size=c.size(height, width), method=_method(interpolation))


def rotate(limit=(-90, 90), interpolation=1, border_mode=0, crop_border=False, fill=0, p=0.5) -> c.Steps:
    return c.step("random_rotation", p, degrees=c.zero(*c.around("limit", limit)), **_warp(border_mode, fill, interpolation))


def salt_and_pepper(amount=(0.01, 0.06), salt_vs_pepper=(0.4, 0.6), p=0.5) -> c.Steps:
    low, high = c.pair("salt_vs_pepper", salt_vs_pepper, 0, 1)
    if high - low > 0.3:
        c.refuse("the share of salt is one number", "salt_vs_pepper")
    return c.step("random_salt_and_pepper", p, share=c.span(*c.pair("amount", amount, 0, 1)), salt=c.tidy((low + high) / 2))


def shift_scale_rotate(
    shift_limit=(-0.0625, 0.0625),
    scale_limit=(-0.1, 0.1),
    rotate_limit=(-45, 45),
    interpolation=1,
    border_mode=0,
    shift_limit_x=None,
    shift_limit_y=None,
    fill=0,
    p=0.5,
) -> c.Steps:
    x = c.around("shift_limit_x", shift_limit if shift_limit_x is None else shift_limit_x, 0, -1, 1)
    y = c.around("shift_limit_y", shift_limit if shift_limit_y is None else shift_limit_y, 0, -1, 1)
    low, high = c.around("scale_limit", scale_limit)
    moved = {
        "degrees": c.zero(*c.around("rotate_limit", rotate_limit)),
        "x": c.zero(*x),
        "y": c.zero(*y),
        "factor": c.one(1 + low, 1 + high),
    }
    return c.step("random_affine", p, **moved, **_warp(border_mode, fill, interpolation))


def smallest_max_size(max_size, max_size_hw=None, interpolation=1, area_for_downscale=None, p=1) -> c.Steps:
    return c.step("resize", p, shorter_side=c.whole("max_size", max_size), method=_method(interpolation))


def to_float(max_value=None, p=1.0) -> c.Steps:
    return c.step("rescale", to=[0, 1]) if max_value in (None, 255) else {"rescale": {"scale": 1 / c.number("max_value", max_value)}}


def _warp(border_mode: Any, fill: Any, interpolation: Any) -> dict[str, Any]:
    return {"fill": c.filled(border_mode, fill, "border_mode"), "interpolation": c.read_between(interpolation)}


def _method(interpolation: Any, about: str = "interpolation") -> str:
    """The `method` of a resizing step for OpenCV's number or name."""
    name = str(interpolation).lower()
    if name in ("6", "nearest_exact") or name.endswith("inter_nearest_exact"):
        return "nearest"
    if name.endswith(("area", "3")):
        return "area"
    way = c.read_between(interpolation, about)
    c.only(about, way, "bilinear", "bicubic", why="OpenCV's nearest is up to a pixel away; its `INTER_NEAREST_EXACT` is pipegen's")
    return way


def _sides(limit: Any) -> tuple[int, int]:
    """The least and the greatest odd side of a kernel, from `blur_limit`."""
    low, high = c.pair("blur_limit", limit, 0) if c.is_pair(limit) else (3, c.whole("blur_limit", limit))
    low, high = (max(3, c.whole("blur_limit", side)) for side in (low, high))
    return low + (low % 2 == 0), high + (high % 2 == 0)


def _both(about: str, value: Any, default: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """The ranges across and down of an argument of `Affine`, which is a map of both, or one for both."""
    if not isinstance(value, dict):
        value = {"x": value, "y": value}
    across, down = (c.one_or_pair(about, value.get(axis, default)) for axis in ("x", "y"))
    return across, down


def _shares(about: str, value: Any) -> list[float]:
    low, high = c.pair(about, value, 0)
    if high >= 1:
        c.refuse("sides are shares of the image's", about)
    return c.span(low, high)


def _value(fill: Any) -> Any:
    """The `fill` of a dropout, which is one value."""
    if isinstance(fill, str):
        c.refuse("a hole is filled with one value", "fill")
    return c.filled("constant", fill)
