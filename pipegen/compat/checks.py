"""Checks what flows ask of their arguments, and fills in the missing ones as Keras does."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from pipegen.errors import PipegenError
from pipegen.private.functions import callers, name_of
from pipegen.terminal import visible


class UnsupportedArgument(PipegenError, NotImplementedError):
    """An argument of `ImageDataGenerator` or its methods that a spec cannot express, or an overridden method that is never called.

    Attributes:
        argument: Its name.
        help: What to do instead.
    """

    def __init__(self, argument: str, why: str, help: str) -> None:
        self.argument = argument
        self.help = help
        super().__init__(f"`{argument}`: {why}; {help}")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the line of the user's program that called into `pipegen.compat`."""
    found = list(callers())  # from this function on
    modules = [name_of(caller)[0] for caller in found]
    level = 1 + next((at for at, module in enumerate(modules) if not module.startswith("pipegen.compat")), 0)
    warnings.warn(visible(message), category, stacklevel=level)


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
