"""Says what to do about a library that cannot be imported."""

from __future__ import annotations

from importlib import metadata


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
