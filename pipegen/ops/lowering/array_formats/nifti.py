"""Volumes of NIfTI-1 and NIfTI-2, plain or compressed, by nibabel."""

from __future__ import annotations

import zlib
from typing import Any

from pipegen.lazy import np
from pipegen.ops.lowering.library import UnreadableError

_LARGEST = 1 << 32
"""Bytes of a volume at most, so that a small file cannot fill the memory."""


def read(contents: bytes, index: int | None = None) -> Any:
    """Reads a volume as it is stored, first axis first, with the slope and the intercept of its header.

    Args:
        contents: The bytes of a `.nii` or a `.nii.gz` file.
        index: The slice along the third axis that is wanted; all of them without.

    Raises:
        UnreadableError: What is wrong.
    """
    import nibabel as nib

    if contents[:2] == b"\x1f\x8b":
        unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
        contents = unpacking.decompress(contents, _LARGEST)
        if not unpacking.eof:
            raise UnreadableError("is a compressed volume that is cut short, or larger than 4 GiB")
    kind = nib.Nifti2Image if contents[:4] in (b"\x1c\x02\x00\x00", b"\x00\x00\x02\x1c") else nib.Nifti1Image
    image = kind.from_bytes(contents)
    shape = image.shape
    if len(shape) < 2 or any(side != 1 for side in shape[3:]):
        raise UnreadableError(f"is a volume of the shape {tuple(shape)}, and one of three axes is due")
    if index is None:
        return np.asarray(image.dataobj).reshape(*shape[:2], -1)
    depth = shape[2] if len(shape) > 2 else 1
    if index >= depth:
        raise UnreadableError(f"has {depth} slices, counted from 0, and slice {index} is due")
    place = (slice(None), slice(None), index, *(0 for _ in shape[3:]))[: len(shape)]
    return np.asarray(image.dataobj[place])
