"""Bands of GeoTIFF files, whole or of a window, by rasterio."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from pipegen.lazy import np
from pipegen.ops.lowering.library import UnreadableError


def read(contents: bytes, bands: Sequence[int], window: Sequence[int] | None = None) -> Any:
    """Reads bands as they are stored.

    Args:
        contents: The file's bytes.
        bands: Their numbers, counted from 1 as GDAL does.
        window: The first row and column, and height and width, in pixels; everything without. Blocks outside are not decoded.

    Raises:
        UnreadableError: What is wrong.
    """
    import rasterio
    from rasterio.windows import Window

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a picture without a place on Earth is read all the same
        with rasterio.MemoryFile(contents) as memory, memory.open(driver="GTiff") as raster:
            missing = [band for band in bands if band > raster.count]
            if missing:
                raise UnreadableError(f"has {raster.count} bands, and band {missing[0]} is due")
            if window is None:
                return np.moveaxis(raster.read(list(bands)), 0, -1)
            top, left, height, width = window
            if top + height > raster.height or left + width > raster.width:
                size = f"{raster.height}×{raster.width}"
                raise UnreadableError(f"has {size} pixels, and the window from row {top} and column {left} ends outside")
            return np.moveaxis(raster.read(list(bands), window=Window(left, top, width, height)), 0, -1)
