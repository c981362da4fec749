"""Permissions that the caller gives a spec: folders to write to, and environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pipegen.arguments import got
from pipegen.frozen import dataclass

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Allowed:
    """The permissions of one call."""

    write: tuple[str, ...] = ()  # folders in which a spec may write files, absolute and without links
    env: frozenset[str] = frozenset()  # environment variables that a spec may use for anything
    everything: bool = False  # whether the spec was checked before and comes from pipegen itself

    @classmethod
    def by(cls, write: Iterable[str | os.PathLike[str]], env: Iterable[str]) -> Allowed:
        """Checks the arguments `allow_write` and `allow_env`. Raises `TypeError` for anything but lists of names, such as a single string;
        `ValueError` for an invalid name or path."""
        folders = [os.fspath(folder) for folder in _listed("allow_write", write, (str, os.PathLike), "folders", "runs/")]
        names = _listed("allow_env", env, (str,), "variables of the environment", "DATA_TOKEN")
        for name in names:
            if _VARIABLE.fullmatch(name) is None:
                raise ValueError(f"invalid environment variable {name!r} in `allow_env`; use for example 'DATA_TOKEN'")
        for folder in folders:
            if not folder or "\0" in folder:
                raise ValueError(f"invalid folder {folder!r} in `allow_write`; use for example 'runs/'")
        return cls(tuple(os.path.realpath(os.path.expanduser(folder)) for folder in folders), frozenset(names))

    def __or__(self, other: Allowed) -> Allowed:
        return Allowed(
            tuple(dict.fromkeys((*self.write, *other.write))), self.env | other.env, everything=self.everything or other.everything
        )


def _listed(argument: str, given: object, types: tuple[type, ...], what: str, example: str) -> list[str]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise TypeError(f'`{argument}` is a list of {what}, such as ["{example}"], got {got(given)}')
    listed = list(given)
    for one in listed:
        if not isinstance(one, types):
            raise TypeError(f'`{argument}` is a list of {what}, such as ["{example}"], got {got(one)} in it')
    return listed


NOTHING = Allowed()
CHECKED = Allowed(everything=True)
_granted: ContextVar[Allowed] = ContextVar("pipegen_allowed", default=NOTHING)


def granted() -> Allowed:
    """The permissions given on the command line."""
    return _granted.get()


@contextmanager
def granting(allowed: Allowed) -> Iterator[None]:
    """Gives the permissions to every spec loaded in the `with` block."""
    token = _granted.set(allowed)
    try:
        yield
    finally:
        _granted.reset(token)
