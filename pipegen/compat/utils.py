"""`keras.utils` with the functions that pipegen has: `from pipegen.compat import utils` in place of `from keras import utils`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipegen.compat import array_to_img, image_dataset_from_directory, img_to_array, load_img, save_img

    __all__ = ["array_to_img", "image_dataset_from_directory", "img_to_array", "load_img", "save_img"]
else:

    def __getattr__(name: str) -> Any:
        """Finds a name here, else in Keras."""
        from pipegen.compat.checks import ours_or_keras

        return ours_or_keras("keras.utils", name)
