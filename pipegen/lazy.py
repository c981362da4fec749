"""TensorFlow and NumPy, imported when something is asked of them, and what to say where a library cannot be imported."""

from __future__ import annotations

from importlib import import_module, metadata
from inspect import isfunction
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["how_to_install", "np", "tf", "untraced", "what_to_install"]


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


def how_to_install(library: str, extra: str, error: ImportError) -> str:
    """Says what to type so that a library can be imported: the extra that brings it, or where it is here already, another release of it.

    Args:
        library: The library as messages call it: its name on PyPI, but for capitals, spaces and backquotes.
        extra: The extra of pipegen that brings it.
        error: What importing it raised.
    """
    return what_to_install(library.strip("`").lower().replace(" ", "-"), extra, lacks_module=isinstance(error, ModuleNotFoundError))


def what_to_install(name: str, extra: str, *, lacks_module: bool) -> str:
    """Says the same of a library by its name on PyPI; `lacks_module` where importing it found no module, be it of one that it needs."""
    install = f"pip install 'pipegen[{extra}]'"
    if lacks_module:
        return install
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return install
    return (
        f"{name} {version} is installed, and does not fit what else is: `pip install '{name}<{_series(version)}'` takes an older release, "
        f"`pip install --upgrade {name}` the newest"
    )


def _series(version: str) -> str:
    """Returns a version up to its first number that is not 0: the series of releases that it is of."""
    parts = version.split(".")
    first = next((place for place, part in enumerate(parts) if part != "0"), 0)
    return ".".join(parts[: first + 1])


C = TypeVar("C", bound=type)


def untraced(cls: C) -> C:
    """Marks the methods of a class as plain Python; a class decorator.

    Called from a function that is being traced, each would be rewritten with all that it calls, which takes seconds. The mark is the
    one that `tf.autograph.experimental.do_not_convert` leaves. Functions that a method is handed are converted as ever.
    """
    for method in vars(cls).values():
        if isfunction(method):
            vars(method)["autograph_info__"] = None
    return cls
