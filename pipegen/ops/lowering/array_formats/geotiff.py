"""Bands of GeoTIFF files, whole or of a window, by rasterio."""

from __future__ import annotations

import os
import threading
import warnings
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any

from pipegen.lazy import np
from pipegen.mounts import content_of, mounted
from pipegen.ops.lowering.array_formats import npy
from pipegen.ops.lowering.library import UnreadableError

_CUT = b"\x93NUMPY"
_OPEN = 8
"""Files that each thread keeps open."""


def read(contents: bytes, bands: Sequence[int], window: Sequence[int] | None = None) -> Any:
    """Reads bands as they are stored.

    Args:
        contents: The file's bytes; or what `cut` gave.
        bands: Their numbers, counted from 1 as GDAL does.
        window: The first row and column, and height and width, in pixels; everything without. Blocks outside are not decoded.

    Raises:
        UnreadableError: What is wrong.
    """
    import rasterio

    if contents.startswith(_CUT):
        return npy.read(contents)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a picture without a place on Earth is read all the same
        with rasterio.MemoryFile(contents) as memory, memory.open(driver="GTiff") as raster:
            return _read(raster, bands, window)


class Rasters(threading.local):
    """Holds the files that a thread has open: those of GDAL are not to be used by two."""

    def __init__(self) -> None:
        self._open: OrderedDict[Hashable, Any] = OrderedDict()

    def cut(self, path: str, stamp: tuple[int, int], bands: Sequence[int], window: Sequence[int]) -> Any:
        """Reads bands of a window of a file; blocks outside are neither read nor decoded.

        Args:
            path: The file; of another machine it is read as a whole.
            stamp: Its size and when it was written, so that another file of this name is opened anew.
            bands: As of `read`.
            window: As of `read`.

        Raises:
            UnreadableError: What is wrong.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if mounted(path) is not None:
                return read(content_of(path), bands, window)
            key = (os.getpid(), path, stamp)  # a forked process has handles of its own
            if key not in self._open:
                self._open[key] = _opened(path)
            self._open.move_to_end(key)
            while len(self._open) > _OPEN:
                self._open.popitem(last=False)[1].close()
            return _read(self._open[key], bands, window)


def _opened(path: str) -> Any:
    """Opens a raster; no files beside it are looked for."""
    import rasterio

    with rasterio.Env(GDAL_DISABLE_READDIR_ON_OPEN="EMPTY_DIR"):
        return rasterio.open(path, driver="GTiff", sharing=False)


def _read(raster: Any, bands: Sequence[int], window: Sequence[int] | None) -> Any:
    from rasterio.windows import Window

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
