"""TensorFlow and NumPy, imported when something is asked of them: that takes seconds, and what only describes data needs neither."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["np", "tf"]


class _Later:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # nobody who merely looks at a module's names imports it
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)


if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf
else:
    np, tf = _Later("numpy"), _Later("tensorflow")
