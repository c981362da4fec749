"""Says what a graph is made for: this process, or a file that runs where pipegen, and what it calls in Python, are not."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

Target = Literal["process", "file", "converter", "device"]
"""`process`: this one. `file`: any process with TensorFlow. `converter`: another runtime, which has the ordinary operations alone.
`device`: XLA on an accelerator, perhaps."""

_target: ContextVar[Target] = ContextVar("target", default="process")


@contextmanager
def made_for(target: Target) -> Iterator[None]:
    """Lets what is traced meanwhile be made for a target."""
    token = _target.set(target)
    try:
        yield
    finally:
        _target.reset(token)


def target() -> Target:
    """Returns what the graph that is being traced is made for."""
    return _target.get()


_compiled: ContextVar[bool] = ContextVar("compiled", default=False)


@contextmanager
def compiled() -> Iterator[None]:
    """Lets what is traced meanwhile be compiled by XLA as a whole."""
    token = _compiled.set(True)
    try:
        yield
    finally:
        _compiled.reset(token)


def is_compiled() -> bool:
    """Returns whether XLA compiles what is being traced."""
    return _compiled.get()


_elsewhere: ContextVar[bool] = ContextVar("elsewhere", default=False)


@contextmanager
def may_run_elsewhere() -> Iterator[None]:
    """Lets what is traced meanwhile read nothing that only this process has."""
    token = _elsewhere.set(True)
    try:
        yield
    finally:
        _elsewhere.reset(token)


def runs_elsewhere() -> bool:
    """Returns whether the graph that is being traced may run in another process that sees the same files."""
    return _elsewhere.get()


_around: ContextVar[Any] = ContextVar("around", default=None)


@contextmanager
def called_in(graph: Any) -> Iterator[None]:
    """Lets what is traced meanwhile, for a function that TensorFlow makes ready anew at each call, take what is large from `graph`."""
    token = _around.set(graph)
    try:
        yield
    finally:
        _around.reset(token)


def graph_around() -> Any:
    """Returns the graph that calls the function which is being traced, where that is to be as small as can be; else `None`."""
    return _around.get()
