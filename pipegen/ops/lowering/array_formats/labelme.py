"""The shapes of LabelMe's files, drawn as LabelMe's own export draws them: by Pillow, with their edges."""

from __future__ import annotations

import base64
import io
import json
import math
from typing import Any

from pipegen.lazy import np
from pipegen.ops.lowering.library import UnreadableError


def read(contents: bytes, most: int) -> Any:
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
