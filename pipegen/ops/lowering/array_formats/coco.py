"""The outlines of the objects of an image, as the source `coco` packs them, drawn as pycocotools draws them."""

from __future__ import annotations

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


def read(contents: bytes) -> Any:
    """Draws the objects: those that lie below, then the larger, then the later ones first. uint8 `(height, width)`.

    Args:
        contents: What `sources.annotations.outlines` packed.
    """
    words = np.frombuffer(contents, np.int32, len(contents) // 4)
    height, width, many = words[:HEAD].tolist()
    plane = np.zeros((height, width), np.uint8)
    at = 4 * (HEAD + PART * many)
    objects: dict[int, tuple[int, int, list[_Piece]]] = {}
    for number, value, below, form, size in words[HEAD : HEAD + PART * many].reshape(-1, PART).tolist():
        piece = _piece(contents[at : at + size], form, height, width)
        at += -size % 4 + size
        _, _, pieces = objects.setdefault(number, (value, below, []))
        if piece is not None:
            pieces.append(piece)
    wholes = [(_union(own), value, below) for value, below, own in objects.values()]
    drawn = [(not below, -int(np.count_nonzero(whole.shown)), value, whole) for whole, value, below in wholes if whole is not None]
    for *_, value, whole in sorted(drawn, key=lambda one: one[:2]):
        rows, columns = whole.shown.shape
        plane[whole.top : whole.top + rows, whole.left : whole.left + columns][whole.shown] = value
    return plane


class _Piece(NamedTuple):
    """Some pixels: a rectangle that lies at a place, and which of it are shown."""

    top: int
    left: int
    shown: Any


def _piece(part: bytes, form: int, height: int, width: int) -> _Piece | None:
    if form in (SHORT, LONG):
        return polygon(np.frombuffer(part, np.int16 if form == SHORT else np.int32).reshape(-1, 2).astype(np.int64), height, width)
    runs = np.frombuffer(part, np.int32) if form == COUNTS else counts_of(part)
    return _Piece(0, 0, np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(width, height).T)


def _union(pieces: list[_Piece]) -> _Piece | None:
    """Joins several pieces: the pixels that any of them shows."""
    if len(pieces) < 2:
        return pieces[0] if pieces else None
    top, left = min(piece.top for piece in pieces), min(piece.left for piece in pieces)
    bottom = max(piece.top + piece.shown.shape[0] for piece in pieces)
    right = max(piece.left + piece.shown.shape[1] for piece in pieces)
    shown = np.zeros((bottom - top, right - left), bool)
    for piece in pieces:
        rows, columns = piece.shown.shape
        shown[piece.top - top :, piece.left - left :][:rows, :columns] |= piece.shown
    return _Piece(top, left, shown)


def polygon(corners: Any, height: int, width: int) -> _Piece | None:
    """Fills a polygon by the rule of pycocotools' `rleFrPoly`: a pixel is inside where an odd number of edges lies above it in its column.

    There an edge is walked in steps of a fifth of a pixel along its longer side, and a column is crossed between the third and the fourth
    fifth of it, at the upper one of both steps. Here the crossings are computed, however long an edge is.

    Args:
        corners: x and y in fifths of a pixel, int64 `(n, 2)`.
        height: Rows of the image.
        width: Columns.

    Returns:
        The least rectangle with all of the polygon that is on the image; `None` where nothing is.
    """
    start, end = corners, np.roll(corners, -1, 0)
    sides = np.abs(end - start)
    flat = sides[:, 0] >= sides[:, 1]
    lead = np.where(flat, 0, 1)[:, None]
    turned = np.take_along_axis(start, lead, 1) > np.take_along_axis(end, lead, 1)
    start, end = np.where(turned, end, start), np.where(turned, start, end)
    moves = sides.any(1)
    crossed = [_along(start[flat & moves], end[flat & moves], width), _across(start[~flat], end[~flat], width)]
    columns, at = (np.concatenate(both) for both in zip(*crossed, strict=True))
    if not len(columns):
        return None
    rows = np.clip((at + SCALE // 2) // SCALE, 0, height)
    left, top, bottom = int(columns.min()), int(rows.min()), int(rows.max())
    if bottom == top:
        return None
    wide, high = int(columns.max()) - left + 1, bottom - top + 1
    toggled = np.bincount((columns - left) * high + rows - top, minlength=wide * high).astype(np.uint8).reshape(wide, high)
    return _Piece(top, left, (np.cumsum(toggled[:, :-1], 1, dtype=np.uint8) & 1).astype(bool).T)


def _steps(first: Any, last: Any) -> tuple[Any, Any]:
    """Of each edge all columns from a first to a last one: the edge of each column, and the column."""
    many = np.maximum(last - first + 1, 0)
    edge: Any = np.repeat(np.arange(len(many)), many)
    return edge, first[edge] + np.arange(len(edge)) - np.repeat(np.cumsum(many) - many, many)


def _along(start: Any, end: Any, width: int) -> tuple[Any, Any]:
    """The columns that edges cross which are wider than high, and where: in fifths of a pixel."""
    edge, column = _steps(np.maximum((start[:, 0] + 2) // SCALE, 0), np.minimum((end[:, 0] - 3) // SCALE, width - 1))
    slope = (end[:, 1] - start[:, 1]) / np.maximum(end[:, 0] - start[:, 0], 1)
    step = SCALE * column + 2 - start[edge, 0]
    one, other = (_rounded(start[edge, 1], slope[edge], at) for at in (step, step + 1))
    return column, np.minimum(one, other)


def _across(start: Any, end: Any, width: int) -> tuple[Any, Any]:
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
    return column, start[edge, 1] + found - 1


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
