"""Says what a graph is made for: this process, or a file that runs where pipegen, and what it calls in Python, are not."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

Target = Literal["process", "file", "converter", "device"]
"""`process`: this one. `file`: any process with TensorFlow. `converter`: another runtime, which has the ordinary operations alone.
`device`: XLA on an accelerator, perhaps."""

_T = TypeVar("_T")


@contextmanager
def meanwhile(variable: ContextVar[_T], value: _T) -> Iterator[None]:
    """Gives a variable a value for what is traced within."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


_target: ContextVar[Target] = ContextVar("target", default="process")


def made_for(target: Target) -> AbstractContextManager[None]:
    """Lets what is traced meanwhile be made for a target."""
    return meanwhile(_target, target)


def target() -> Target:
    """Returns what the graph that is being traced is made for."""
    return _target.get()


_compiled: ContextVar[bool] = ContextVar("compiled", default=False)


def for_xla() -> AbstractContextManager[None]:
    """Lets what is traced meanwhile be compiled by XLA as a whole."""
    return meanwhile(_compiled, True)


def is_compiled() -> bool:
    """Returns whether XLA compiles what is being traced."""
    return _compiled.get()


_elsewhere: ContextVar[bool] = ContextVar("elsewhere", default=False)


def may_run_elsewhere() -> AbstractContextManager[None]:
    """Lets what is traced meanwhile read nothing that only this process has."""
    return meanwhile(_elsewhere, True)


def runs_elsewhere() -> bool:
    """Returns whether the graph that is being traced may run in another process that sees the same files."""
    return _elsewhere.get()


_around: ContextVar[Any] = ContextVar("around", default=None)


def called_in(graph: Any) -> AbstractContextManager[None]:
    """Lets what is traced meanwhile, for a function that TensorFlow makes ready anew at each call, take what is large from `graph`."""
    return meanwhile(_around, graph)


def graph_around() -> Any:
    """Returns the graph that calls the function which is being traced, where that is to be as small as can be; else `None`."""
    return _around.get()
