"""Conversion of arrays and of sound to pictures, with masks, boxes and points drawn on them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pipegen.lazy import np
from pipegen.types import Interval

if TYPE_CHECKING:
    from PIL import Image


Array: TypeAlias = "np.ndarray[Any, Any]"


def mapped_range(image: Array, interval: Interval | None = None) -> tuple[float, float] | None:
    """Returns the values that become black and white; `None` if an image of any shape has levels from 0 to 255 already, up to rounding.
    Without an `interval` of the possible values, those of the image count."""
    if image.dtype == "uint8":
        return None
    low, high = (interval.low, interval.high) if interval is not None else (float(image.min(initial=0)), float(image.max(initial=1)))
    return (low, high) if low < 0 or high > 255 or high <= 1 else None


def levels(image: Array, interval: Interval | None = None) -> Array:
    """Converts an image to uint8: values from 0 to 255 are rounded, half to even; others are mapped from their `mapped_range`."""
    if image.dtype == "uint8":
        return image
    values, bounds = np.asarray(image, np.float64), mapped_range(image, interval)
    if bounds is not None:
        values = (values - bounds[0]) * (255.0 / max(bounds[1] - bounds[0], 1e-6))
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


_WIDTH, _HEIGHT = 400, 200  # of a drawn sound, in pixels


def waveform(samples: Array) -> Array:
    """Draws samples `(frames, channels)` from left to right, one channel above the other, uint8 `(height, width, 1)`: each column spans
    the values of its time, from -1 at the bottom to 1 at the top, or to the largest value."""
    frames, channels = samples.shape
    width = max(1, min(_WIDTH, frames))
    edges = np.linspace(0, frames, width + 1).astype(int)[:-1]
    rows = np.arange(_HEIGHT)[:, None]
    drawn = []
    for channel in range(channels):
        values = np.nan_to_num(samples[:, channel]) if frames else np.zeros(1)
        largest = max(1.0, float(np.abs(values).max()))
        low, high = (extreme.reduceat(values, edges) / largest for extreme in (np.minimum, np.maximum))
        top, bottom = (np.rint((1 - side) * (_HEIGHT - 1) / 2) for side in (high, low))
        drawn.append(np.where((rows >= top) & (rows <= bottom), 40, 255))
    return np.concatenate(drawn)[..., None].astype(np.uint8)


def line_chart(values: Array) -> Array:
    """Draws a series `(length, channels)` from left to right, one channel above the other, each from its least value at the bottom to its
    largest at the top: uint8 `(height, width, 1)`. Where a value is missing, the line has a gap."""
    length, channels = values.shape
    times = np.linspace(0, max(length - 1, 0), _WIDTH)
    rows = np.arange(_HEIGHT)[:, None]
    drawn = [np.full((_HEIGHT, _WIDTH), 255)] * (not channels)
    for channel in range(channels):
        own = np.asarray(values[:, channel], np.float64)
        known = own[np.isfinite(own)]
        low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
        scaled = (own - low) / (high - low) if high > low else own - low + 0.5
        heights: Array = (1 - np.interp(times, np.arange(length), scaled) if length else np.full(_WIDTH, np.nan)) * (_HEIGHT - 1)
        # A column spans half the way to its neighbours, so that steep lines have no gaps.
        middle = (heights[1:] + heights[:-1]) / 2
        ends = np.stack([np.append(middle[:1], middle), heights, np.append(middle, middle[-1:])])
        top, bottom = np.rint(ends.min(0)), np.rint(ends.max(0))
        drawn.append(np.where((rows >= top) & (rows <= bottom), 40, 255))
    return np.concatenate(drawn)[..., None].astype(np.uint8)


_DRAWN_DB = 80.0  # below the largest value of a drawn spectrum, all is black


def spectrum(values: Array, decibels: float = 0.0) -> Array:
    """Draws spectra `(steps, bands, channels)` from left to right, low bands at the bottom, one channel above the other: uint8
    `(height, width, 1)`, from the least value in black to the largest in white. With `decibels`, 10 for powers and 20 for magnitudes, they
    are drawn by their logarithms."""
    known = np.nan_to_num(values.astype(np.float64), posinf=0.0, neginf=0.0)
    if decibels:
        known = decibels * np.log10(np.maximum(known, max(float(known.max(initial=0)), 1e-30) * 10 ** (-_DRAWN_DB / decibels)))
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    drawn = np.concatenate([known[..., channel].T[::-1] for channel in range(known.shape[2])])
    return np.rint((drawn - low) * (255.0 / max(high - low, 1e-6)))[..., None].astype(np.uint8)


def encode_image(image: Array, form: Literal["png", "jpeg"], quality: int) -> bytes:
    """Encodes uint8 `(height, width, channels)` as a `png` of 1, 3 or 4 channels, or as a `jpeg` of 1 or 3 at a quality of 1 to 100;
    `ValueError` for another number."""
    from PIL import Image

    channels = image.shape[-1]
    if channels not in ((1, 3, 4) if form == "png" else (1, 3)):
        raise ValueError(f"a {form.upper()} cannot have {channels} channels")
    return _file(Image.fromarray(image[..., 0] if channels == 1 else image), form, quality)


def encode_mask(mask: Array) -> bytes:
    """Encodes class ids, integers from 0 to 65535 `(height, width, 1)`, as a PNG of 8 bits, or of 16 if one is above 255."""
    from PIL import Image

    ids = mask[..., 0]
    return _file(Image.fromarray(ids.astype("uint8" if ids.max(initial=0) <= 255 else "uint16")), "png")


def _file(picture: Image.Image, form: str, quality: int = 0) -> bytes:
    held = io.BytesIO()
    picture.save(held, form.upper(), **({"quality": quality} if form == "jpeg" else {}))
    return held.getvalue()


_COLOURS = ((230, 57, 70), (29, 135, 229), (255, 193, 7), (46, 160, 67), (156, 39, 176), (255, 112, 32), (0, 172, 193), (121, 85, 72))
"""Colours of the classes from 1 on, repeated; class 0 is the background and stays clear."""
_OPACITY = 0.5
_LEFT_OUT = (128, 128, 128)


def _rgb(image: Array) -> Array:
    """The first three channels, or the first one three times."""
    return np.broadcast_to(image[..., :3] if image.shape[-1] >= 3 else image[..., :1], (*image.shape[:2], 3))


def overlay(image: np.ndarray[Any, Any], mask: np.ndarray[Any, Any], ignore: int) -> np.ndarray[Any, Any]:
    """Colours each pixel of an image, uint8 `(height, width, channels)`, by its class in a mask, uint8 `(height, width, 1)`; the class
    index that the loss ignores is gray, unless it is 0. Returns uint8 `(height, width, 3)`; of an image with fewer than three channels,
    only the first is shown."""
    plain: Array = _rgb(image).astype(np.float32)
    classes: np.ndarray[Any, Any] = mask[..., 0].astype(np.int64)
    colours = np.array(_COLOURS, np.float32)[(classes - 1) % len(_COLOURS)]
    if ignore:
        colours = np.where((classes == ignore)[..., None], np.array(_LEFT_OUT, np.float32), colours)
    mixed = plain * (1 - _OPACITY) + colours * _OPACITY
    return np.where((classes == 0)[..., None], plain, np.rint(mixed)).astype(np.uint8)


def blended(image: Array, other: Array) -> Array:
    """Blends an image with a picture of the same size, half and half: uint8 `(height, width, 3)`."""
    return np.rint(_rgb(image) * (1 - _OPACITY) + _rgb(other) * _OPACITY).astype(np.uint8)


def directions(vectors: Array) -> Array:
    """Shows vectors, `(height, width, 2)` to the right and down, as uint8 `(height, width, 3)`: the colour is the direction, red to the
    right and then clockwise yellow, green, blue, and the longest ones are the strongest; 0 is white."""
    from PIL import Image

    x, y = np.moveaxis(np.nan_to_num(np.asarray(vectors, np.float64), posinf=0.0, neginf=0.0), -1, 0)
    length = np.hypot(x, y)
    parts = np.arctan2(y, x) / (2 * np.pi) % 1.0, length / max(float(length.max(initial=0)), 1e-6), np.ones_like(x)
    return np.asarray(Image.fromarray(np.rint(np.stack(parts, -1) * 255).astype(np.uint8), "HSV").convert("RGB"))


def _drawing(image: Array, least: int, lines: int) -> tuple[Image.Image, Any, Any]:
    """An image to draw on, the pen, and a font of at least `least` pixels, of which so many lines are as long as the image."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.fromarray(np.ascontiguousarray(_rgb(image), np.uint8))
    return picture, ImageDraw.Draw(picture), ImageFont.load_default(size=max(least, round(max(picture.size) / lines)))


def outlined(image: np.ndarray[Any, Any], boxes: np.ndarray[Any, Any], names: Sequence[str] = ()) -> np.ndarray[Any, Any]:
    """Draws boxes on an image as of `overlay`, each class in its own colour: left, top, right and bottom edge of each in pixels, `(n, 4)`,
    and the class of each, or none."""
    picture, pen, font = _drawing(image, 10, 22)
    line = max(1, round(max(picture.size) / 160))
    known = sorted(set(names))
    for i, box in enumerate(np.asarray(boxes, np.float64).tolist()):
        colour = _COLOURS[(known.index(names[i]) if i < len(names) else 0) % len(_COLOURS)]
        left, top, right, bottom = box[0], box[1], max(box[0], box[2] - 1), max(box[1], box[3] - 1)  # from edges to pixels
        pen.rectangle([left, top, right, bottom], outline=colour, width=line)
        if i < len(names):
            under = pen.textbbox((left + line, top + line), names[i], font=font)
            pen.rectangle(under, fill=colour)
            pen.text((left + line, top + line), names[i], fill=(255, 255, 255), font=font)
    return np.asarray(picture)


def spanned(image: np.ndarray[Any, Any], shares: np.ndarray[Any, Any], names: Sequence[str] = ()) -> np.ndarray[Any, Any]:
    """Marks times on a drawn sound, uint8 `(height, width, channels)`, by lines above and at both ends, each class in its own colour: start
    and end of each event as shares of the width, `(n, 2)`, and the class of each, or none."""
    picture, pen, font = _drawing(image, 10, 22)
    line, known = max(1, round(picture.width / 160)), sorted(set(names))
    for i, (start, end) in enumerate((shares * picture.width).tolist()):
        row = known.index(names[i]) if i < len(names) else 0
        colour, top = _COLOURS[row % len(_COLOURS)], row * (font.size + 2 * line) % max(picture.height - 1, 1)
        pen.rectangle([start, top, max(start, end - 1), picture.height - 1], outline=colour, width=line)
        if i < len(names):
            pen.text((start + 2 * line, top + line), names[i], fill=colour, font=font)
    return np.asarray(picture)


def dotted(image: np.ndarray[Any, Any], points: np.ndarray[Any, Any], names: Sequence[str] = ()) -> np.ndarray[Any, Any]:
    """Draws points on an image as of `overlay`, each name in its own colour: x, y and visibility of each, `(n, 3)`, and the name of each,
    or none. A hidden one is a ring, and those of visibility 0 are absent."""
    picture, pen, font = _drawing(image, 8, 30)
    radius = max(1.0, max(picture.size) / 100)
    known = list(dict.fromkeys(names))
    for i, (x, y, visibility) in enumerate(np.asarray(points, np.float64).tolist()):
        if visibility == 0:
            continue
        colour = _COLOURS[(known.index(names[i]) if i < len(names) else 0) % len(_COLOURS)]
        around = [x - radius, y - radius, x + radius, y + radius]
        pen.ellipse(around, fill=colour if visibility == 2 else None, outline=colour, width=max(1, round(radius / 2)))
        if i < len(names):
            pen.text((x + 1.5 * radius, y), names[i], fill=colour, font=font, anchor="lm")
    return np.asarray(picture)
