"""Pictures of DICOM files, by pydicom."""

from __future__ import annotations

import io
from typing import Any

from pipegen.lazy import np
from pipegen.ops.lowering.library import UnreadableError


def read(contents: bytes, values: str) -> Any:
    """Reads the one picture of a file.

    Args:
        contents: The file's bytes.
        values: `stored`: as they are in the file; `rescaled`: by the modality's slope, intercept or table, such as to Hounsfield units
            (DICOM PS3.3, C.11.1).

    Raises:
        UnreadableError: What is wrong.
    """
    import pydicom
    from pydicom.pixels.processing import apply_modality_lut

    data = pydicom.dcmread(io.BytesIO(contents))
    if "PixelData" not in data and "FloatPixelData" not in data and "DoubleFloatPixelData" not in data:
        raise UnreadableError("is a DICOM file without a picture, or one that is cut short")
    if int(data.get("NumberOfFrames") or 1) != 1:
        raise UnreadableError(f"is a DICOM file of {data.NumberOfFrames} pictures, and one is due")
    if int(data.get("SamplesPerPixel") or 1) != 1:
        raise UnreadableError(f"is a DICOM file of {data.SamplesPerPixel} samples a pixel, and one is due")
    pixels = data.pixel_array
    return np.asarray(apply_modality_lut(pixels, data) if values == "rescaled" else pixels)
