"""Default values: Keras' settings if the program has imported Keras, else Keras' defaults."""

from __future__ import annotations

import sys
from typing import Any


def image_data_format(given: str | None = None) -> str:
    """Data format: the given one, or Keras' `image_data_format()`.

    Raises:
        ValueError: When it is neither `channels_last` nor `channels_first`.
    """
    value = given if given is not None else _setting("image_data_format", "channels_last")
    if value not in ("channels_last", "channels_first"):
        raise ValueError(f"`data_format` is 'channels_last' (height, width, channels) or 'channels_first', got {given!r}")
    return value


def floatx(given: Any = None) -> Any:
    """Dtype of arrays: the given one, or Keras' `floatx()`."""
    return given if given is not None else _setting("floatx", "float32")


def scipy_ndimage() -> Any:
    """Imports SciPy's image module.

    Raises:
        ImportError: If SciPy is not installed, with the command to install it.
    """
    try:
        from scipy import ndimage
    except ImportError as error:
        message = "the geometric functions of pipegen.compat resample with SciPy, which is not installed: pip install 'pipegen[compat]'"
        raise ImportError(message) from error
    return ndimage


def _setting(name: str, default: str) -> str:
    """Reads a setting of Keras, without importing it: before the import it is the default."""
    keras = sys.modules.get("keras")
    config = getattr(keras, "config", None)
    return getattr(config, name)() if config is not None else default
