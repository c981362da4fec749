"""TensorFlow, NumPy and other modules, imported on first use; advice for libraries that cannot be imported."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

__all__ = ["how_to_install", "installed_version", "late", "np", "tf", "what_to_install"]


class _Later:
    """A module. If it `keeps` its attributes, they are then found without a call: for a module in which nothing replaces them."""

    def __init__(self, name: str, *, keeps: bool = False) -> None:
        self._name, self._keeps = name, keeps
        self._module: Any = None

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # introspection of names must not import it
            raise AttributeError(attribute)
        if self._module is None:  # `import_module` would take as long as the attribute itself
            self._module = import_module(self._name)
        found = getattr(self._module, attribute)
        if self._keeps:
            setattr(self, attribute, found)
        return found


if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf
else:
    np, tf = _Later("numpy", keeps=True), _Later("tensorflow")


def late(package: str, *names: str) -> list[Any]:
    """Modules of a package, each of which is imported on first use."""
    return [_Later(f"{package}.{name}") for name in names]


def installed_version(*names: str) -> str | None:
    """Finds the version of the first of several packages that is installed."""
    for name in names:
        with suppress(metadata.PackageNotFoundError):
            return metadata.version(name)
    return None


def how_to_install(library: str, extra: str, error: ImportError) -> str:
    """Advises how to install a library that could not be imported: by an extra of pipegen or, if it is installed, in another release.

    Its name in messages is that on PyPI, except for capitals, spaces and backquotes.
    """
    return what_to_install(library.strip("`").lower().replace(" ", "-"), extra, lacks_module=isinstance(error, ModuleNotFoundError))


def what_to_install(name: str, extra: str, *, lacks_module: bool) -> str:
    """Advises the same by the name on PyPI; `lacks_module` is true if a module was not found: its own, or one that it needs."""
    install = f"pip install 'pipegen[{extra}]'"
    if lacks_module:
        return install
    version = installed_version(name)
    if version is None:
        return install
    parts = version.split(".")  # up to the first number that is not 0, it is the series of compatible releases
    first = next((place for place, part in enumerate(parts) if part != "0"), 0)
    return (
        f"{name} {version} does not work with the other packages installed: `pip install '{name}<{'.'.join(parts[: first + 1])}'` installs "
        f"an older release, `pip install --upgrade {name}` the newest"
    )


_MANY = 100
"""Number of new modules from which their objects are moved to the oldest generation; `gc.get_freeze_count` is slow, so not for fewer."""


@contextmanager
def uncollected() -> Iterator[None]:
    """Pauses the collector while modules are imported, plans made or functions traced.

    Nearly all of the many objects made then stay alive. With TensorFlow loaded, each full collection takes 0.2 s.
    """
    was, modules = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if was:
            # With all objects in the oldest generation, the many new ones trigger no full collection. A freeze of the application stays.
            if len(sys.modules) > modules + _MANY and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
