"""Runs a query interruptibly: another thread waits for the database, this one for that thread.

Drivers wait in C, where neither Ctrl-C nor a time limit reaches them.
"""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

_CHUNK = 1000  # rows per chunk
_WAITING = 4  # chunks in the queue at most
_LOOK = 0.05  # seconds between checks for an interrupt
_PATIENCE = 2.0  # seconds that a database may take to end a cancelled statement


class LateError(Exception):
    """The database exceeded its time limit."""


class Running:
    """A running query.

    Args:
        work: Queries the database in the other thread: calls its argument with the driver's connection, then yields the column names, then
            rows.
        limit: Seconds for everything.
    """

    def __init__(self, work: Callable[[Callable[[Any], None]], Iterator[Any]], limit: float) -> None:
        self._work, self._until = work, time.monotonic() + limit
        self._results: queue.Queue[tuple[str, Any]] = queue.Queue(_WAITING)
        self._stopped = threading.Event()
        self._connection: Any = None
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._ask,), name="pipegen-query", daemon=True)
        self._thread.start()

    def columns(self) -> Any:
        """Returns the column names. Raises `LateError` if it takes too long; `Exception`: Whatever the work raises."""
        return self._next()[1]

    def rows(self) -> Iterator[Any]:
        """Yields the rows; raises as `columns`."""
        while (got := self._next())[0] == "rows":
            yield from got[1]

    def end(self) -> None:
        self._stopped.set()
        while self._thread.is_alive():
            _cancel(self._connection)
            self._thread.join(_LOOK)
            if time.monotonic() > self._until + _PATIENCE:
                break
            self._until = min(self._until, time.monotonic())

    def _next(self) -> tuple[str, Any]:
        while True:
            left = self._until - time.monotonic()
            with suppress(queue.Empty):
                kind, value = self._results.get(timeout=max(0.0, min(_LOOK, left)))
                if kind == "error":
                    raise value
                return kind, value
            if left <= 0:
                raise LateError

    def _ask(self) -> None:
        try:
            found = self._work(self._connected)
            self._hand("columns", next(found))
            chunk = []
            for row in found:
                chunk.append(row)
                if len(chunk) == _CHUNK:
                    self._hand("rows", chunk)
                    chunk = []
            self._hand("rows", chunk)
            self._hand("end", None)
        except _StoppedError:
            return
        except BaseException as error:  # raised again by the caller's thread
            with suppress(_StoppedError):
                self._hand("error", error)

    def _connected(self, connection: Any) -> None:
        self._connection = connection
        if self._stopped.is_set():
            raise _StoppedError

    def _hand(self, kind: str, value: Any) -> None:
        while not self._stopped.is_set():
            with suppress(queue.Full):
                self._results.put((kind, value), timeout=_LOOK)
                return
        raise _StoppedError


class _StoppedError(Exception):
    """The query was cancelled."""


def _cancel(connection: Any) -> None:
    """Cancels what a driver's connection does, by the driver's own method."""
    for name in ("interrupt", "cancel", "_force_close", "close"):  # SQLite and DuckDB; PostgreSQL and Oracle; PyMySQL; others
        method = getattr(connection, name, None)
        if method is not None:
            with suppress(Exception):
                method()
            return
