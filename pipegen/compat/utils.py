"""`keras.utils` with the functions that pipegen has: `from pipegen.compat import utils` in place of `from keras import utils`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pipegen.compat import ours_or_keras

if TYPE_CHECKING:
    from pipegen.compat import array_to_img as array_to_img
    from pipegen.compat import audio_dataset_from_directory as audio_dataset_from_directory
    from pipegen.compat import image_dataset_from_directory as image_dataset_from_directory
    from pipegen.compat import img_to_array as img_to_array
    from pipegen.compat import load_img as load_img
    from pipegen.compat import save_img as save_img

if not TYPE_CHECKING:  # with it, a type checker would accept every name
    __getattr__ = partial(ours_or_keras, "keras.utils")
