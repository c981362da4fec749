"""`keras.preprocessing.image` with the classes and functions that pipegen has, also those of earlier versions of Keras."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipegen.compat import *  # noqa: F403

if not TYPE_CHECKING:  # with it, a type checker would accept every name

    def __getattr__(name: str) -> Any:
        from pipegen.compat import ours_or_keras

        return ours_or_keras("keras.preprocessing.image", name)
