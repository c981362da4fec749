"""Allowances of the caller, beyond what every spec may do: folders to write to, and variables of the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from pipegen.arguments import got

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Allowed:
    """Allowances of one caller.

    Attributes:
        write: Folders that a spec may name files to write in, absolute and without links.
        env: Variables of the environment that a spec may use for anything.
        everything: Whether the spec was checked before, and comes from pipegen itself.
    """

    write: tuple[str, ...] = ()
    env: frozenset[str] = frozenset()
    everything: bool = False

    @classmethod
    def by(cls, write: Iterable[str | os.PathLike[str]], env: Iterable[str]) -> Allowed:
        """Checks what `allow_write` and `allow_env` name.

        Raises:
            TypeError: For anything but lists of names, such as one text in place of a list.
            ValueError: For a name that cannot be one.
        """
        folders = [os.fspath(folder) for folder in _listed("allow_write", write, (str, os.PathLike), "folders", "runs/")]
        names = _listed("allow_env", env, (str,), "variables of the environment", "DATA_TOKEN")
        for name in names:
            if _VARIABLE.fullmatch(name) is None:
                raise ValueError(f"`allow_env` names variables of the environment, such as 'DATA_TOKEN', and {name!r} is not such a name")
        for folder in folders:
            if not folder or "\0" in folder:
                raise ValueError(f"`allow_write` names folders, such as 'runs/', and {folder!r} is not a path")
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
    """Returns what the command line allows; a call from Python has it in its arguments."""
    return _granted.get()


@contextmanager
def granting(allowed: Allowed) -> Iterator[None]:
    """Allows it to every spec that is loaded inside."""
    token = _granted.set(allowed)
    try:
        yield
    finally:
        _granted.reset(token)
