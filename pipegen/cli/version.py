"""`pipegen version`."""

from __future__ import annotations

from pipegen.cli.common import say

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

    say(f"pipegen     {__version__}")
    say(f"Python      {platform.python_version()} ({platform.python_implementation()})")
    for name, distributions in _LIBRARIES:
        say(f"{name:<11} {_installed(distributions) or 'not installed'}")
    say(f"platform    {platform.platform()}")


def _installed(distributions: tuple[str, ...]) -> str | None:
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as of

    for name in distributions:
        try:
            return of(name)
        except PackageNotFoundError:
            continue
    return None
