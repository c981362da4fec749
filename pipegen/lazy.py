"""TensorFlow by the name `tf`, imported when something is asked of it: that takes seconds, and steps are described without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["tf"]


class _TensorFlow:
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # nobody who merely looks at a module's names imports it
            raise AttributeError(name)
        import tensorflow

        return getattr(tensorflow, name)


if TYPE_CHECKING:
    import tensorflow as tf
else:
    tf = _TensorFlow()
