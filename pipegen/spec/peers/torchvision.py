"""Classes of `torchvision.transforms.v2` as steps of a spec. The arguments of a function are those of the class, with its defaults."""

from __future__ import annotations

from typing import Any

from pipegen.spec.peers import converting as c

TITLE = "torchvision"
IGNORED = frozenset({"inplace"})  # arguments that change no pixel here


def aug_mix(severity=3, mixture_width=3, chain_depth=-1, alpha=1.0, all_ops=True, interpolation="bilinear", fill=None) -> c.Steps:
    depth = [1, 3] if chain_depth == -1 else [chain_depth, chain_depth]
    return c.step("aug_mix", magnitude=severity, chains=mixture_width, depth=depth, alpha=alpha, **_warp(fill, interpolation))


def auto_augment(policy="imagenet", interpolation="nearest", fill=None) -> c.Steps:
    name = str(policy).rpartition(".")[2].lower()
    c.only("policy", name, "imagenet", "cifar10", "svhn")
    return c.step("auto_augment", policy=name, **_warp(fill, interpolation))


def center_crop(size) -> c.Steps:
    return c.step("center_crop", size=_size(size))


def color_jitter(brightness=None, contrast=None, saturation=None, hue=None) -> c.Steps:
    steps = c.jittered(brightness or 0, contrast or 0, saturation or 0, hue or 0, "no argument is given, so that it does nothing")
    return c.step("random_order", steps=steps) if len(steps) > 1 else steps[0]


def elastic_transform(alpha=50.0, sigma=5.0, interpolation="bilinear", fill=0) -> c.Steps:
    for about, value in (("alpha", alpha), ("sigma", sigma)):
        if c.is_pair(value) and value[0] != value[1]:
            c.refuse("it is alike across and down", about)
    strength, width = (value[0] if c.is_pair(value) else value for value in (alpha, sigma))
    return c.step("random_elastic", alpha=[c.tidy(strength / 2)] * 2, sigma=width, **_warp(fill, interpolation))


def gaussian_blur(kernel_size, sigma=(0.1, 2.0)) -> c.Steps:
    low, high = c.one_or_pair("sigma", sigma, 0)
    sides = list(kernel_size) if c.is_pair(kernel_size) else [kernel_size]
    if not all(isinstance(side, int) and side >= 6 * high + 1 for side in sides):
        c.refuse("a kernel this narrow cuts off the bell; pipegen's is 6 · `sigma` + 1 pixels wide or more", "kernel_size")
    return c.step("random_gaussian_blur", sigma=c.span(low, high))


def normalize(mean, std) -> c.Steps:
    means, stds = ([c.number(n, one) for one in (v if c.is_pair(v) else [v])] for n, v in (("mean", mean), ("std", std)))
    if len(means) == len(stds) == 1:
        return [c.step("rescale", to=[0, 1]), c.step("normalize", mean=means[0], std=stds[0])]
    return [c.step("rescale", to=[0, 1]), c.step("normalize", mean=means, std=stds)]


def pad(padding, fill=0, padding_mode="constant") -> c.Steps:
    if c.is_pair(padding) and len(set(padding)) == 1:
        padding = padding[0]
    return c.step("pad", padding=c.whole("padding", padding), fill=_outside(padding_mode, fill))


def rand_augment(num_ops=2, magnitude=9, num_magnitude_bins=31, interpolation="nearest", fill=None) -> c.Steps:
    most = c.whole("num_magnitude_bins", num_magnitude_bins) - 1
    return c.step("rand_augment", num_ops=num_ops, magnitude=magnitude, max_magnitude=most, **_warp(fill, interpolation))


def random_affine(degrees, translate=None, scale=None, shear=None, interpolation="nearest", fill=0, center=None) -> c.Steps:
    x, y = (0.0, 0.0) if translate is None else (c.number("translate", part) for part in translate)
    slants = c.around("shear", shear or 0) if not c.is_pair(shear) or len(shear) == 2 else tuple(shear[:2])
    down = tuple(shear[2:]) if c.is_pair(shear) and len(shear) == 4 else (0, 0)
    left, right = c.around("degrees", degrees)  # clockwise there, and so are slants
    moved: dict[str, Any] = {"degrees": c.zero(-right, -left), "x": x, "y": y, "shear_x": c.zero(-slants[1], -slants[0])}
    if c.zero(*down):
        c.refuse("`random_affine` slants along x first, torchvision along y", "shear")
    factor = c.one(*c.pair("scale", scale, 0)) if scale is not None else None
    return c.step("random_affine", **moved, factor=factor, **_warp(fill, interpolation))


def random_crop(size, padding=None, pad_if_needed=False, fill=0, padding_mode="constant") -> c.Steps:
    if padding is not None and pad_if_needed:
        c.refuse("a crop pads by so many pixels or as needed", "pad_if_needed")
    if c.is_pair(padding):
        c.only("padding", len(set(padding)), 1, why="all sides get as many pixels")
        padding = padding[0]
    around_it = "as_needed" if pad_if_needed else padding
    return c.step("random_crop", size=_size(size), padding=around_it, fill=_outside(padding_mode, fill) if around_it else None)


def random_erasing(p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0) -> c.Steps:
    if value is None or isinstance(value, str):
        c.refuse("a hole is filled with one value, not with noise", "value")
    return c.step(
        "random_erasing", p, area=c.pair("scale", scale, 0, 1), aspect_ratio=c.pair("ratio", ratio, 0), fill=c.filled("constant", value)
    )


def random_photometric_distort(brightness=(0.875, 1.125), contrast=(0.5, 1.5), saturation=(0.5, 1.5), hue=(-0.05, 0.05), p=0.5) -> c.Steps:
    factors = {"brightness": brightness, "contrast": contrast, "saturation": saturation}
    arguments: dict[str, Any] = {f"{name}_factor": list(c.pair(name, value, 0)) for name, value in factors.items()}
    return c.step("random_photometric_distort", **arguments, hue_degrees=c.span(*c.pair("hue", hue, -0.5, 0.5), 360), each=c.number("p", p))


def random_resized_crop(size, scale=(0.08, 1.0), ratio=(0.75, 4 / 3), interpolation="bilinear", antialias=True) -> c.Steps:
    arguments: dict[str, Any] = {"area": c.span(*c.pair("scale", scale, 0, 1)), "aspect_ratio": list(c.pair("ratio", ratio, 0))}
    return c.step(
        "random_resized_crop", size=_size(size), **arguments, method=c.read_between(interpolation), antialias=True if antialias else None
    )


def random_rotation(degrees, interpolation="nearest", expand=False, center=None, fill=0) -> c.Steps:
    return c.step("random_rotation", degrees=c.zero(*c.around("degrees", degrees)), **_warp(fill, interpolation))


def resize(size, interpolation="bilinear", max_size=None, antialias=True) -> c.Steps:
    side = {"size" if c.is_pair(size) and len(size) == 2 else "shorter_side": _size(size)}
    return c.step("resize", **side, method=c.read_between(interpolation), antialias=True if antialias else None)


def trivial_augment_wide(num_magnitude_bins=31, interpolation="nearest", fill=None) -> c.Steps:
    return c.step("trivial_augment", **_warp(fill, interpolation))


def _size(size: Any) -> Any:
    return c.size(*size) if c.is_pair(size) and len(size) == 2 else c.whole("size", size[0] if c.is_pair(size) else size)


def _warp(fill: Any, interpolation: Any) -> dict[str, Any]:
    return {"fill": c.filled("constant", 0 if fill is None else fill), "interpolation": c.read_between(interpolation)}


def _outside(mode: Any, fill: Any) -> Any:
    if mode == "reflect":
        c.refuse("torchvision's `reflect` leaves the edge pixel out; `symmetric` repeats it, as pipegen does", "padding_mode")
    return c.filled(mode, 0 if fill is None else fill, "padding_mode")
