"""Does things once, whichever thread or traced function comes first: makes shared parts, and takes elements."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import tensorflow as tf

from pipegen.untraced import untraced

T = TypeVar("T")


@untraced
class Once(Generic[T]):
    """Makes a value when it is first asked for, and gives the same one from then on.

    It is made eagerly, also while a function is traced: a tensor of one function's graph would be out of scope in every other.

    Args:
        make: Makes the value.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make: Callable[[], T] | None = make
        self._lock = threading.RLock()
        self._made: T

    def __call__(self) -> T:
        if self._make is not None:
            with self._lock, tf.init_scope():
                if self._make is not None:
                    self._made = self._make()
                    self._make = None
        return self._made


@untraced
class InTurn(Iterator[Any]):
    """Hands over one element at a time: each once, whichever threads ask, and the end to every one of them."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._ended = False

    def __next__(self) -> Any:
        with self._turn:
            if self._ended:
                raise StopIteration
            try:
                return self._take()
            except StopIteration:
                self._ended = True
                raise

    def get_next(self) -> Any:
        """Returns the next element; as `next(iterator)`."""
        return next(self)

    def _take(self) -> Any:
        """Returns the next element; no other thread is in here meanwhile."""
        raise NotImplementedError


class GeneratedInTurn(InTurn):
    """The elements of a generator, which Python itself lets no two threads ask at a time."""

    def __init__(self, generator: Iterator[Any]) -> None:
        super().__init__()
        self._generator = generator

    def _take(self) -> Any:
        return next(self._generator)
