"""File names as other programs want them: relative to the working directory, with forward slashes."""

from __future__ import annotations

import os

PACKAGE, GIT = "pkg:", "git+"
"""Beginnings of the addresses of shared base specs."""


def is_address(file: str) -> bool:
    """Returns whether a file name is the address of a shared base, which is no file of the project."""
    return file.startswith((PACKAGE, GIT))


def relative_path(file: str) -> str:
    """`file` relative to the working directory when it lies inside it, else as it is; with forward slashes.

    A name that is no path, such as `<stdin>` or the address of a shared base, stays as it is.
    """
    if file.startswith("<") or is_address(file):
        return file
    shown = file
    try:
        absolute = os.path.abspath(file)
        relative = os.path.relpath(absolute)
        shown = absolute if relative == os.pardir or relative.startswith(os.pardir + os.sep) else relative
    except (OSError, ValueError):
        # Another drive, a NUL in the name, or a working directory that is gone: the name as given is the best there is.
        pass
    return shown.replace(os.sep, "/")


def file_uri(file: str) -> str:
    """A URI reference: relative inside the working directory, `file:///…` elsewhere."""
    from urllib.parse import quote

    path = relative_path(file)
    encoded = quote(path.encode("utf-8", "surrogateescape"), safe="/")
    if path.startswith("/"):
        return f"file://{encoded}"
    if len(path) > 1 and path[1] == ":":
        return f"file:///{path[0]}:{encoded[4:]}"
    return encoded
