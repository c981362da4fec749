"""TensorFlow and NumPy, imported when something is asked of them: that takes seconds, and what only describes data needs neither."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["np", "tf"]


class _Later:
    def __init__(self, name: str) -> None:
        self._name = name
        self._module: Any = None

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # nobody who merely looks at a module's names imports it
            raise AttributeError(attribute)
        if self._module is None:  # asked each time, `import_module` would take as long as what is asked for
            self._module = import_module(self._name)
        return getattr(self._module, attribute)


if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf
else:
    np, tf = _Later("numpy"), _Later("tensorflow")
