"""Starts a dispatcher or a worker of the tf.data service, which is TensorFlow's own and knows nothing of pipelines."""

from __future__ import annotations

import signal
import socket
import threading
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.service.origin import origin_here

if TYPE_CHECKING:
    from collections.abc import Callable

_HEARTBEAT_MS = 1000
_WORKER_TIMEOUT_MS = 10_000
"""Milliseconds without a heartbeat after which a worker counts as gone."""
_JOB_TIMEOUT_MS = 60_000
"""Milliseconds after which a job is forgotten whose trainer is gone."""
_RECONNECT_MS = 3_600_000
"""Milliseconds that a worker waits for a dispatcher that does not answer."""
_GRACE_S = 10
"""Seconds in which a server may stop by itself, before the system ends it."""
_CONNECT_S = 1.0
_HEALTH_S = 5.0
"""Seconds between two looks at what a server has to do."""


def dispatcher(port: int, work_dir: str | None) -> Any:
    """Starts a dispatcher; with a folder for its journal, one that goes on where it was when it is started again."""
    service = tf.data.experimental.service
    config = service.DispatcherConfig(
        port=port,
        work_dir=work_dir,
        fault_tolerant_mode=work_dir is not None,
        worker_timeout_ms=_WORKER_TIMEOUT_MS,
        job_gc_check_interval_ms=_JOB_TIMEOUT_MS // 4,
        job_gc_timeout_ms=_JOB_TIMEOUT_MS,
    )
    return service.DispatchServer(config)


def worker(dispatcher: str, port: int, address: str) -> Any:
    """Starts a worker that trainers reach at `address`, such as `10.0.0.7:5051`."""
    service = tf.data.experimental.service
    config = service.WorkerConfig(
        dispatcher_address=dispatcher,
        worker_address=address,
        port=port,
        heartbeat_interval_ms=_HEARTBEAT_MS,
        dispatcher_timeout_ms=_RECONNECT_MS,
    )
    return service.WorkerServer(config)


def origin_line() -> str:
    """Says on what this server would make batches."""
    found = origin_here()
    return f"TensorFlow {found.tensorflow}, processor {found.processor or 'unknown'}"


def run_until_told(health: Callable[[], str], say: Callable[[str], None]) -> str:
    """Waits for SIGTERM or SIGINT, and says meanwhile how the server is, whenever that has changed; returns the signal's name."""
    told = threading.Event()
    name = ""

    def stop(number: int, _frame: object) -> None:
        nonlocal name
        name = signal.Signals(number).name
        told.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    last = ""
    while not told.wait(_HEALTH_S if last else 0.1):
        line = health()
        if line != last:
            say(line)
            last = line
    return name


def stop(server: Any, needs: str | None) -> None:
    """Stops a server before the process ends.

    Args:
        server: The server.
        needs: The address of the dispatcher that a worker says goodbye to. Where nobody is there, TensorFlow would wait for it, and let no
            other thread of Python run: then the worker just ends.
    """
    if needs is not None and not answers(needs):
        return
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_GRACE_S)
    server.stop()
    signal.alarm(0)


def answers(address: str) -> bool:
    """Returns whether anybody listens at `host:port`."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
    except OSError:
        return False
    return True
