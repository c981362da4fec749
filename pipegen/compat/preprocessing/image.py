"""`keras.preprocessing.image` with the classes and functions that pipegen has, also those of earlier versions of Keras."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pipegen.compat import ours_or_keras

if TYPE_CHECKING:
    from pipegen.compat import *  # noqa: F403

if not TYPE_CHECKING:  # with it, a type checker would accept every name
    __getattr__ = partial(ours_or_keras, "keras.preprocessing.image")
