"""`keras.preprocessing` with the functions that pipegen has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.compat.preprocessing import image as image

if TYPE_CHECKING:
    from pipegen.compat import image_dataset_from_directory

    __all__ = ["image", "image_dataset_from_directory"]
else:

    def __getattr__(name: str) -> Any:
        """Finds a name here, else in Keras."""
        from pipegen.compat.checks import ours_or_keras

        return ours_or_keras("keras.preprocessing", name)
