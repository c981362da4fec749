"""`Feed`: the training split's batches from the service's workers, in order; late ones are made by this process."""

from __future__ import annotations

import atexit
import socket
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import tensorflow as tf

from pipegen.backend.features import Features
from pipegen.backend.running.execute import Executor
from pipegen.backend.running.walk import Run
from pipegen.backend.service.servers import Origin, origin_here, steps_dataset, through_service
from pipegen.errors import StateError
from pipegen.ops.lowering.python_calls import py_function
from pipegen.physical.extent import Position
from pipegen.physical.nodes import Form
from pipegen.spec.models import Service
from pipegen.terminal import log

After = Callable[[Position], Position]
"""A function from a position to the next one."""


class Unusable(Enum):
    """In place of a batch that has arrived but cannot be used."""

    DAMAGED = "damaged"
    REFUSED = "refused"


@dataclass
class Fed:
    """Counts of the batches of one split made by workers and by this process."""

    there: int = 0  # batches of workers that were delivered
    here: int = 0  # batches made by this process, for any reason
    late: int = 0  # batches that arrived after this process had made them
    damaged: int = 0  # batches made by this process because the worker could not read or decode a record
    refused: int = 0  # batches made by this process because the worker has another version or processor
    waited: float = 0.0  # seconds spent waiting for workers
    bytes: int = 0  # bytes of those that workers made, as they were sent


class Arrivals:
    """A reorder buffer of the batches of one job.

    One thread puts batches in as they arrive, and waits while it holds `2 * window`; another one takes them out in order.

    Args:
        first: The position to take first.
        begin: The first position of the job. Earlier batches are made by this process, without a wait.
        after: Returns the next position.
        patience: Seconds to wait for a batch.
        window: Number of later batches that ends the wait.
        fed: The counts to update.
    """

    def __init__(self, first: Position, begin: Position, after: After, patience: float, window: int, fed: Fed) -> None:
        self._begin, self._after, self._patience, self._window, self._fed = begin, after, patience, window, fed
        self._turn = threading.Condition()
        self._held: dict[Position, Any] = {}
        self.ended = False  # whether the job has ended: no more batches arrive or are wanted
        self._came = 0
        self._quiet_since = -1
        self._behind_since: float | None = None
        self.alone = 0  # batches that were taken before any had arrived
        self.next = first  # the position to take next

    def put(self, at: Position, batch: Any) -> bool:
        """Puts in a batch, or an `Unusable`; returns False if no more are wanted."""
        with self._turn:
            self._came += 1
            self._turn.notify_all()
            while not self.ended and len(self._held) >= 2 * self._window and at > self.next:
                self._turn.wait()
            if self.ended:
                return False
            if at < self.next:
                self._fed.late += 1
                self._behind_since = self._behind_since or time.monotonic()
            else:
                self._held[at] = batch
                self._behind_since = None
            self._turn.notify_all()
            return True

    def take(self) -> Any:
        """Takes the next batch; `None` if this process has to make it.

        That is if it has not arrived within the patience, if `window` later ones have arrived, or if none has arrived for as long as the
        patience, until one does.
        """
        with self._turn:
            begun, came = time.monotonic(), self._came
            while self.next not in self._held and not self.ended and self.next >= self._begin and self._came != self._quiet_since:
                later = sum(at > self.next for at in self._held)
                left = begun + self._patience - time.monotonic()
                if left <= 0 and self._came == came:
                    self._quiet_since = came
                if later >= self._window or left <= 0:
                    break
                self._turn.wait(left)
            self.alone += not self._came
            batch = self._held.pop(self.next, None)
            self.next = self._after(self.next)
            self._turn.notify_all()
            self._fed.waited += time.monotonic() - begun
        if not isinstance(batch, Unusable):
            return batch
        self._fed.damaged += batch is Unusable.DAMAGED
        self._fed.refused += batch is Unusable.REFUSED
        return None

    def behind(self, seconds: float = 0.0) -> bool:
        """Checks that all batches of the last `seconds` have been late."""
        since = self._behind_since
        return since is not None and time.monotonic() - since >= seconds

    def wait_for_first(self) -> bool:
        """Waits for any batch, as long as the patience; returns False if none has arrived."""
        end = time.monotonic() + self._patience
        with self._turn:
            while not self._came and not self.ended and (left := end - time.monotonic()) > 0:
                self._turn.wait(left)
            if not self._came:
                self._quiet_since = 0
            return bool(self._came)

    def end(self) -> None:
        """Ends the job and wakes all waiting threads."""
        with self._turn:
            self.ended = True
            self._turn.notify_all()


_JOBS = 2  # most iterators over the split at a time that have a job of their own
_AGAIN_S = 10.0  # seconds until a lost dispatcher is tried again, and until a job that is behind is given up
_MOST_AHEAD = 10_000  # most steps that a job starts ahead
_CONNECT_S = 2.0
_MANY = 8  # number of batches that do not all have a damaged record by chance
_live: weakref.WeakSet[Feed] = weakref.WeakSet()


class Feed:
    """The batches of a split by position, like `batches_of`: workers make what they send, unless they are late.

    A job of the service makes all batches from a position on; a request at any other position starts a new job. A job that is lost or
    stays behind is replaced: the new one starts ahead by the steps that the trainer takes while workers start.

    Args:
        executor: The executor of the split.
        service: The section `runtime.service`.
        here: Makes in this process what a worker sends for the batch of a position.
        element_spec: The type of that.
        name: The prefix of job names.
    """

    def __init__(self, executor: Executor, service: Service, here: Callable[[Position], Any], element_spec: Any, name: str) -> None:
        self._executor, self._service, self._here, self._name = executor, service, here, name
        self._spec = element_spec
        self._lock = threading.Lock()
        self._jobs: list[_Job] = []
        self._not_before = 0.0
        self._checked = False
        self.fed = Fed()
        _live.add(self)
        weakref.finalize(self, _end, self._jobs)

    def batches(self, entering: tf.data.Dataset, form: Form) -> tf.data.Dataset:
        """Makes the batches of epochs; see `batches_of`."""
        return Run(self._executor, self._executor.physical(form), receive=self._received).dataset(entering)

    def _received(self, *at: tf.Tensor) -> Features:
        flat = py_function(self._batch, [*at], [t.dtype for t in tf.nest.flatten(self._spec)])
        for value, t in zip(flat, tf.nest.flatten(self._spec), strict=True):
            value.set_shape(t.shape)
        found: Features = tf.nest.pack_sequence_as(self._spec, flat)
        return found

    def check(self, at: Position) -> None:
        """Starts a job, and checks before the first epoch that workers make the batches that this process would make. Raises `StateError`
        if all that arrived were made by another version of TensorFlow, or on another processor."""
        with self._lock:
            job = self._job(at)
        if self._checked or job is None or not job.arrivals.wait_for_first():
            return
        if job.unlike and not job.accepted and not job.damaged:
            raise StateError(
                f"batches of the workers at {self._service.address} would differ in the last bits from those of this process: "
                f"{'; '.join(job.unlike)}. Run workers of the same version on the same type of processor, or leave `runtime.service` out"
            )
        self._checked = True

    def _batch(self, epoch: tf.Tensor, step: tf.Tensor, since: tf.Tensor) -> list[tf.Tensor]:
        at = Position(int(epoch), int(step), *(int(number) for number in since))
        with self._lock:
            job = self._job(at)
        batch = None if job is None else job.arrivals.take()
        self.fed.here += batch is None
        if batch is None:
            return tf.nest.flatten(self._here(at))
        self.fed.there += 1
        self.fed.bytes += sum(value.dtype.size * value.shape.num_elements() for value in batch)
        return list(batch)

    def _job(self, at: Position) -> _Job | None:
        """Returns the job for a position, or starts one; `None` while the service is lost."""
        job, lead = next((job for job in self._jobs if job.arrivals.next == at), None), 0
        if job is not None and not job.arrivals.ended and not job.arrivals.behind(0 if at.step == 0 else self._soon):
            return job
        if job is not None:
            lead = 0 if job.lost else min(job.arrivals.alone, _MOST_AHEAD)
            job.arrivals.end()
            self._jobs.remove(job)
            if job.lost:
                self._not_before = max(self._not_before, job.lost + self._soon)
        if time.monotonic() < self._not_before:
            return None
        while len(self._jobs) >= _JOBS:
            self._jobs.pop(0).arrivals.end()
        self._jobs.append(_Job(self._executor, self._service, at, lead, self._name, self.fed))
        return self._jobs[-1]

    @property
    def _soon(self) -> float:
        """Seconds until the next try."""
        return max(_AGAIN_S, self._service.patience)


class _Job:
    """A thread that reads the workers' batches from a position on."""

    def __init__(self, executor: Executor, service: Service, at: Position, lead: int, name: str, fed: Fed) -> None:
        self._service, self._name = service, name
        begin, after = at, executor.order.after
        for _ in range(lead):
            begin = after(begin)
        with tf.init_scope():
            made = steps_dataset(executor, begin)
        self.arrivals = Arrivals(at, begin, after, service.patience, service.window, fed)
        self.accepted = self.damaged = 0
        self.unlike: dict[str, None] = {}  # the differences of workers whose batches are refused
        self.lost = 0.0  # the time at which the service was lost, by `time.monotonic`; 0 if it was not
        threading.Thread(target=self._run, args=(made, begin), name="pipegen-service", daemon=True).start()

    def _run(self, made: tf.data.Dataset, at: Position) -> None:
        try:
            self._read(made, at)
        except (tf.errors.OpError, OSError) as error:
            if not self.arrivals.ended:
                self.lost = time.monotonic()
                reason = str(getattr(error, "message", None) or error).splitlines()[0]
                log.warning("lost the tf.data service at %s, so this process makes batches: %s", self._service.address, reason)
        finally:
            self.arrivals.end()

    def _read(self, made: tf.data.Dataset, at: Position) -> None:
        host, _, port = self._service.address.removeprefix("grpc://").rpartition(":")
        socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()  # TensorFlow would wait forever
        origin, known = origin_here(), dict[bytes, str]()
        remote = through_service(made, self._service.address, self._name, self._service.window)
        for there, epoch, step, *batch in remote:
            text = there.numpy()
            if text not in known:
                known[text] = unlike = origin.differs(Origin.parse(text))
                if unlike and unlike not in self.unlike:
                    self.unlike[unlike] = None
                    said = "refusing batches of a worker at %s, whose last bits may differ: %s"
                    log.warning(said, self._service.address, unlike)
            number, damaged = int(step), int(step) < 0
            number = -1 - number if damaged else number
            came = Position(int(epoch), number, at.origin if int(epoch) == at.epoch else 0, at.shift)
            usable = Unusable.REFUSED if known[text] else Unusable.DAMAGED if damaged else batch
            self.accepted += usable is batch
            self.damaged += usable is Unusable.DAMAGED
            if self.damaged == _MANY and not self.accepted:
                said = "workers at %s could read none of %d batches, so this process makes them: is the data at the same paths there?"
                log.warning(said, self._service.address, _MANY)
            if not self.arrivals.put(came, usable):
                return


def _end(jobs: list[_Job]) -> None:
    for job in jobs:
        job.arrivals.end()


@atexit.register
def _close_all() -> None:
    """Ends all jobs at exit: TensorFlow's threads outlive Python's, and may be waiting for one."""
    for feed in [*_live]:
        _end(feed._jobs)
