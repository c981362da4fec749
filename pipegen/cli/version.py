"""`pipegen version`."""

from __future__ import annotations

from pipegen.terminal import aligned, say

_LIBRARIES = (
    ("TensorFlow", ("tensorflow", "tensorflow-cpu", "tf-nightly", "tensorflow-macos")),
    ("Keras", ("keras",)),
    ("pydantic", ("pydantic",)),
)


def version() -> None:
    """Print the versions of pipegen, Python and TensorFlow.

    Example:
      pipegen version
    """
    import platform

    from pipegen.release import __version__

    python = f"{platform.python_version()} ({platform.python_implementation()})"
    libraries = [(name, _installed(distributions) or "not installed") for name, distributions in _LIBRARIES]
    for line in aligned([("pipegen", __version__), ("Python", python), *libraries, ("platform", platform.platform())]):
        say(line)


def _installed(distributions: tuple[str, ...]) -> str | None:
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as of

    for name in distributions:
        try:
            return of(name)
        except PackageNotFoundError:
            continue
    return None
