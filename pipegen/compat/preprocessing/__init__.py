"""`keras.preprocessing` with the functions that pipegen has."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pipegen.compat import ours_or_keras
from pipegen.compat.preprocessing import image as image

if TYPE_CHECKING:
    from pipegen.compat import audio_dataset_from_directory as audio_dataset_from_directory
    from pipegen.compat import image_dataset_from_directory as image_dataset_from_directory

if not TYPE_CHECKING:  # with it, a type checker would accept every name
    __getattr__ = partial(ours_or_keras, "keras.preprocessing")
