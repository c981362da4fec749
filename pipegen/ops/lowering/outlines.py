"""Draws the outlines of objects as the libraries of COCO and LabelMe draw them."""

from __future__ import annotations

import base64
import io
import json
import math
from itertools import pairwise
from typing import Any, NamedTuple

from pipegen.lazy import np
from pipegen.ops.lowering.library import UnreadableError

HEAD, PART = 3, 5
"""Words of 32 bits in which a packed image begins (its height, its width, how many parts), and that each part then has: its object, the
object's value, whether that lies below others (a crowd), the form of the part, and its bytes, which stand behind all of these."""
SHORT, LONG, COUNTS, TEXT = range(4)
"""The forms: the corners of a polygon in fifths of a pixel, of 16 or 32 bits; the lengths of runs; such as COCO's own text."""
SCALE = 5
"""Parts of a pixel that corners are rounded to."""


def read_coco(contents: bytes) -> Any:
    """Draws the objects: those that lie below, then the larger, then the later ones first. uint8 `(height, width)`.

    The crossings of all polygons of an image are computed together: alone, each would cost NumPy's calls and hardly any numbers.

    Args:
        contents: What `sources.annotations.outlines` packed.
    """
    words = np.frombuffer(contents, np.int32, len(contents) // 4)
    height, width, many = words[:HEAD].tolist()
    at = 4 * (HEAD + PART * many)
    pieces: list[_Piece | None] = [None] * many
    corners: dict[int, Any] = {}
    objects: dict[int, tuple[int, int, list[int]]] = {}
    for part, (number, value, below, form, size) in enumerate(words[HEAD : HEAD + PART * many].reshape(-1, PART).tolist()):
        own = contents[at : at + size]
        at += -size % 4 + size
        objects.setdefault(number, (value, below, []))[2].append(part)
        if form in (SHORT, LONG):
            corners[part] = np.frombuffer(own, np.int16 if form == SHORT else np.int32).reshape(-1, 2)
        else:
            pieces[part] = _Piece(0, _alternating(np.frombuffer(own, np.int32) if form == COUNTS else counts_of(own), first=False))
    for part, piece in zip(corners, _polygons([*corners.values()], height, width), strict=True):
        pieces[part] = piece
    wholes = [(_union([piece for part in own if (piece := pieces[part])]), value, below) for value, below, own in objects.values()]
    drawn = [(not below, -int(np.count_nonzero(whole.shown)), value, whole) for whole, value, below in wholes if whole is not None]
    plane = np.zeros(width * height, np.uint8)
    for *_, value, whole in sorted(drawn, key=lambda one: one[:2]):
        np.copyto(plane[whole.start : whole.start + len(whole.shown)], value, where=whole.shown)
    return np.ascontiguousarray(plane.reshape(width, height).T)


class _Piece(NamedTuple):
    """Some pixels of an image, one column behind the other: from a place on, which are shown."""

    start: int
    shown: Any


def _alternating(runs: Any, *, first: bool) -> Any:
    """Returns runs of False and True in turn, bool: so many of each, the first ones as said."""
    return np.repeat(np.arange(len(runs)) % 2 == (0 if first else 1), runs)


def _union(pieces: list[_Piece]) -> _Piece | None:
    """Joins several pieces: the pixels that any of them shows."""
    if len(pieces) < 2:
        return pieces[0] if pieces else None
    start = min(piece.start for piece in pieces)
    shown: Any = np.zeros(max(piece.start + len(piece.shown) for piece in pieces) - start, bool)
    for piece in pieces:
        shown[piece.start - start :][: len(piece.shown)] |= piece.shown
    return _Piece(start, shown)


def _polygons(polygons: list[Any], height: int, width: int) -> list[_Piece | None]:
    """Fills polygons by the rule of pycocotools' `rleFrPoly`: a pixel is inside where an odd number of edges lies above it in its column.

    There an edge is walked in steps of a fifth of a pixel along its longer side, and a column is crossed between the third and the fourth
    fifth of it, at the upper one of both steps. Here the crossings are computed, however long an edge is.

    Args:
        polygons: x and y of the corners of each in fifths of a pixel, `(n, 2)`.
        height: Rows of the image.
        width: Columns.

    Returns:
        What of each is on the image; `None` where nothing is.
    """
    if not polygons:
        return []
    lengths = np.array([len(corners) for corners in polygons])
    of: Any = np.repeat(np.arange(len(polygons)), lengths)
    start = np.concatenate(polygons).astype(np.int64)
    following = np.arange(1, len(of) + 1)
    following[np.cumsum(lengths) - 1] -= lengths
    end = start[following]
    sides = np.abs(end - start)
    flat = sides[:, 0] >= sides[:, 1]
    turned = np.where(flat, start[:, 0] > end[:, 0], start[:, 1] > end[:, 1])[:, None]
    start, end = np.where(turned, end, start), np.where(turned, start, end)
    moves = flat & (sides[:, 0] > 0)
    found = [_along(start[moves], end[moves], width), _across(start[~flat], end[~flat], width)]
    part = np.concatenate([of[own][edge] for own, (edge, _, _) in zip((moves, ~flat), found, strict=True)])
    column, at = (np.concatenate(both) for both in list(zip(*found, strict=True))[1:])
    # The end of a column is the begin of the next, so that what is crossed there is the same place.
    place = column * height + np.clip((at + SCALE // 2) // SCALE, 0, height)
    size = height * width + 1
    places = np.sort(part * size + place)
    first: Any = np.searchsorted(places, np.arange(len(polygons) + 1) * size)
    runs = np.diff(places)
    return [
        _Piece(int(places[a]) - number * size, _alternating(runs[a : b - 1], first=True)) if b > a else None
        for number, (a, b) in enumerate(pairwise(first.tolist()))
    ]


def _steps(first: Any, last: Any) -> tuple[Any, Any]:
    """Of each edge all columns from a first to a last one: the edge of each column, and the column."""
    many = np.maximum(last - first + 1, 0)
    edge: Any = np.repeat(np.arange(len(many)), many)
    return edge, first[edge] + np.arange(len(edge)) - np.repeat(np.cumsum(many) - many, many)


def _along(start: Any, end: Any, width: int) -> tuple[Any, Any, Any]:
    """The columns that edges cross which are wider than high: which edge, which column, and where, in fifths of a pixel."""
    edge, column = _steps(np.maximum((start[:, 0] + 2) // SCALE, 0), np.minimum((end[:, 0] - 3) // SCALE, width - 1))
    slope = (end[:, 1] - start[:, 1]) / np.maximum(end[:, 0] - start[:, 0], 1)
    step = SCALE * column + 2 - start[edge, 0]
    one, other = (_rounded(start[edge, 1], slope[edge], at) for at in (step, step + 1))
    return edge, column, np.minimum(one, other)


def _across(start: Any, end: Any, width: int) -> tuple[Any, Any, Any]:
    """The same of edges that are higher than wide: the step after which the column changes is found, and of its neighbours the first one
    that is behind."""
    lower, upper = np.minimum(start[:, 0], end[:, 0]), np.maximum(start[:, 0], end[:, 0])
    edge, column = _steps(np.maximum((lower + 2) // SCALE, 0), np.minimum((upper - 3) // SCALE, width - 1))
    run, rise = (end[:, 1] - start[:, 1])[edge], (end[:, 0] - start[:, 0])[edge]
    slope, begin = rise / np.maximum(run, 1), start[edge, 0]
    near = np.ceil((SCALE * column + 2.5 - begin) / slope).astype(np.int64) if len(edge) else column
    found = np.clip(near + 1, 1, run)
    for tried in (near, near - 1):
        step = np.clip(tried, 1, run)
        reached = _rounded(begin, slope, step)
        found = np.where(np.where(rise > 0, reached >= SCALE * column + 3, reached <= SCALE * column + 2), step, found)
    return edge, column, start[edge, 1] + found - 1


def _rounded(begin: Any, slope: Any, step: Any) -> Any:
    """Rounds the place of an edge after some steps as C does: towards 0."""
    return np.trunc(begin + slope * step + 0.5).astype(np.int64)


def counts_of(text: bytes) -> Any:
    """The lengths of runs that COCO's own text says: groups of five bits, of all but the first three the difference to the last but one.

    Raises:
        UnreadableError: Where it is no such text.
    """
    signs = np.frombuffer(text, np.uint8).astype(np.int64) - 48
    if not len(signs) or signs.min() < 0 or signs.max() > 63 or signs[-1] & 32:
        raise UnreadableError("is no text of runs")
    ends = np.flatnonzero(signs & 32 == 0)
    starts = np.concatenate([[0], ends[:-1] + 1])
    if (ends - starts).max() > 7:
        raise UnreadableError("is no text of runs")
    place = np.arange(len(signs)) - np.repeat(starts, ends - starts + 1)
    values = np.add.reduceat((signs & 31) << SCALE * place, starts)
    values -= np.where(signs[ends] & 16, 1 << SCALE * (ends - starts + 1), 0)
    for first in (1, 2):
        values[first::2] = np.cumsum(values[first::2])
    return values


def read_labelme(contents: bytes, most: int) -> Any:
    """Draws the shapes in their order, each with its number, counted from 1: uint8 `(height, width)`. Points and lines show nothing.

    Args:
        contents: The bytes of a file.
        most: How many shapes there may be.

    Raises:
        UnreadableError: What is wrong.
    """
    from PIL import Image, ImageDraw

    held = json.loads(contents)
    width, height, shapes = held.get("imageWidth"), held.get("imageHeight"), held["shapes"]
    if not isinstance(width, int) or not isinstance(height, int) or width < 1 or height < 1:
        raise UnreadableError("does not say how large its image is, by `imageWidth` and `imageHeight`")
    if len(shapes) > most:
        raise UnreadableError(f"has {len(shapes)} shapes, and a mask can tell {most} apart")
    plane = Image.new("L", (width, height))
    pen = ImageDraw.Draw(plane)
    for number, shape in enumerate(shapes, 1):
        points, kind = [tuple(map(float, point)) for point in shape["points"]], shape.get("shape_type") or "polygon"
        if kind == "polygon" and len(points) > 2:
            pen.polygon(points, fill=number, outline=number)
        elif kind == "rectangle":
            (x0, y0), (x1, y1) = points[:2]
            pen.rectangle((min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)), fill=number, outline=number)
        elif kind == "circle":
            (x, y), on = points[:2]
            radius = math.dist((x, y), on)
            pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=number, outline=number)
        elif kind == "mask":
            with Image.open(io.BytesIO(base64.b64decode(shape["mask"]))) as drawn:
                plane.paste(number, (int(points[0][0]), int(points[0][1])), drawn.convert("1"))
    return np.asarray(plane)
