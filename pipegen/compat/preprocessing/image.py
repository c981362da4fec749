"""`keras.preprocessing.image` with the classes and functions that pipegen has, also those of earlier versions of Keras."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipegen.compat import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        """Finds a name here, else in Keras."""
        from pipegen.compat.checks import ours_or_keras

        return ours_or_keras("keras.preprocessing.image", name)
