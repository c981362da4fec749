"""Fills in missing arguments: Keras' own settings where the program has imported Keras, else Keras' defaults."""

from __future__ import annotations

import sys
from typing import Any


def image_data_format(given: str | None = None) -> str:
    """Returns where the channels stand: what was given, or Keras' `image_data_format()`.

    Raises:
        ValueError: When it is neither `channels_last` nor `channels_first`.
    """
    value = given if given is not None else _setting("image_data_format", "channels_last")
    if value not in ("channels_last", "channels_first"):
        raise ValueError(f"`data_format` is 'channels_last' (height, width, channels) or 'channels_first', got {given!r}")
    return value


def floatx(given: Any = None) -> Any:
    """The dtype of arrays: what was given, or Keras' `floatx()`."""
    return given if given is not None else _setting("floatx", "float32")


def scipy_ndimage() -> Any:
    """SciPy's image module.

    Raises:
        ImportError: Which says how to install SciPy.
    """
    try:
        from scipy import ndimage
    except ImportError as error:
        message = "the geometric functions of pipegen.compat resample with SciPy, which is not installed: pip install 'pipegen[compat]'"
        raise ImportError(message) from error
    return ndimage


def _setting(name: str, default: str) -> str:
    """A setting of Keras, without importing it: it cannot have been changed where nobody has."""
    keras = sys.modules.get("keras")
    config = getattr(keras, "config", None)
    return getattr(config, name)() if config is not None else default
