"""Feeds the training split with batches of the service's workers, in order; what they do not bring in time is made here."""

from __future__ import annotations

import atexit
import socket
import threading
import time
import weakref
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.index.order import From
from pipegen.backend.process.graphs import plain_flat_map, plain_map
from pipegen.backend.service.origin import Origin, origin_here
from pipegen.backend.service.servers import steps_dataset, through_service
from pipegen.errors import StateError
from pipegen.ops.lowering.python_calls import py_function
from pipegen.physical.extent import Position
from pipegen.plan.nodes import Prefetch
from pipegen.terminal import log

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipegen.backend.running.execute import Executor
    from pipegen.physical.nodes import Form
    from pipegen.spec.models import Service


if TYPE_CHECKING:
    After = Callable[[Position], Position]
    """From a position to the one behind its batch."""


class Unusable(Enum):
    """Stands for a batch that came and cannot be used."""

    DAMAGED = "damaged"
    REFUSED = "refused"


@dataclass
class Fed:
    """Counts the batches of one split that workers and this process have made.

    Attributes:
        there: Batches of workers that were handed over.
        here: Batches that were made here, for whatever reason.
        late: Batches that came when they had been made here.
        damaged: Of those made here, batches with a record that the worker could not read or decode.
        refused: Of those made here, batches of workers of another version or processor.
        waited: Seconds that were spent waiting for workers.
    """

    there: int = 0
    here: int = 0
    late: int = 0
    damaged: int = 0
    refused: int = 0
    waited: float = 0.0


class Arrivals:
    """Holds the batches of one job that have come, each until its turn.

    A thread puts them in as they come, and waits while there are `2 * window`; another one takes them out in order.

    Args:
        first: The position that is taken first.
        begin: The position that comes first. Those before are to be made here, at once.
        after: Says what follows a position.
        patience: Seconds to wait for a batch.
        window: Later batches that end the wait.
        fed: Counts.
    """

    def __init__(self, first: Position, begin: Position, after: After, patience: float, window: int, fed: Fed) -> None:
        self._begin, self._after, self._patience, self._window, self._fed = begin, after, patience, window, fed
        self._turn = threading.Condition()
        self._held: dict[Position, Any] = {}
        self._ended = False
        self._came = 0
        self._quiet_since = -1
        self._behind_since: float | None = None
        self.alone = 0
        """Batches that were taken before any had come."""
        self.next = first
        """The position that is taken next."""

    def put(self, at: Position, batch: Any) -> bool:
        """Takes in a batch, or what stands for one that cannot be used; returns whether more are wanted."""
        with self._turn:
            self._came += 1
            self._turn.notify_all()
            while not self._ended and len(self._held) >= 2 * self._window and at > self.next:
                self._turn.wait()
            if self._ended:
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
        """Returns the batch whose turn it is; `None` where it is to be made here.

        That is when it has not come within the patience, when `window` later ones have come, and, until another one comes, when nothing
        at all has come for as long as the patience.
        """
        with self._turn:
            begun, came = time.monotonic(), self._came
            while self._awaits(self.next) and self._came != self._quiet_since:
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

    def _awaits(self, at: Position) -> bool:
        return at not in self._held and not self._ended and at >= self._begin

    def behind(self, seconds: float = 0.0) -> bool:
        """Returns whether all that came lately was late, for so long."""
        since = self._behind_since
        return since is not None and time.monotonic() - since >= seconds

    def wait_for_first(self) -> bool:
        """Waits until anything has come, as long as the patience; returns whether it has."""
        end = time.monotonic() + self._patience
        with self._turn:
            while not self._came and not self._ended and (left := end - time.monotonic()) > 0:
                self._turn.wait(left)
            if not self._came:
                self._quiet_since = 0
            return bool(self._came)

    @property
    def ended(self) -> bool:
        """Returns whether nothing comes any more."""
        return self._ended

    def end(self) -> None:
        """Lets whoever waits go: nothing comes any more, or nothing is wanted."""
        with self._turn:
            self._ended = True
            self._turn.notify_all()


_JOBS = 2
"""Iterators that may go through the split at a time, each with a job of its own, before one takes the other's."""
_AGAIN_S = 10.0
"""Seconds after which a dispatcher that was lost is looked for again, and after which a job that is behind is given up."""
_MOST_AHEAD = 10_000
"""Steps that a job begins ahead at most."""
_CONNECT_S = 2.0
_MANY = 8
"""Batches of which not all hold a damaged record by chance."""
_live: weakref.WeakSet[Feed] = weakref.WeakSet()


class Feed:
    """Gives the batches of a split by position, as `Executor.batches` does, made by workers wherever they come in time.

    A job of the service makes all batches from a position on; a request that follows no other begins one. A job that was lost, or that
    stays behind, is followed by another: that one begins as many steps ahead as the trainer takes while workers get ready.

    Args:
        executor: The split's executor.
        service: The section `runtime.service`.
        here: Makes the batch of a position in this process.
        element_spec: The type of a batch.
        name: What the names of jobs begin with.
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
        """The batches of some epochs, one after another; see `Executor.batches`."""
        order, types = self._executor.order, [t.dtype for t in tf.nest.flatten(self._spec)]

        def steps(epoch: tf.Tensor, first: tf.Tensor, since: tf.Tensor) -> tf.data.Dataset:
            numbers = tf.data.Dataset.range(first, order.steps_of(From(*tf.unstack(since))))
            return plain_map(numbers, lambda step: (epoch, step, since))

        def batch(epoch: tf.Tensor, step: tf.Tensor, since: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, Any]:
            flat = py_function(self._flat, [epoch, step, since], types)
            for value, t in zip(flat, tf.nest.flatten(self._spec), strict=True):
                value.set_shape(t.shape)
            return epoch, step, tf.nest.pack_sequence_as(self._spec, flat)

        ready = sum(n.batches for n in self._executor.plan.nodes if isinstance(n, Prefetch))
        return plain_map(plain_flat_map(entering, steps), batch).prefetch(max(1, ready))

    def check(self, at: Position) -> None:
        """Lets workers begin, and looks before the first epoch whether theirs are batches that this process would make.

        Raises:
            StateError: When all that came were made by another version of TensorFlow, or on another processor.
        """
        with self._lock:
            job = self._job(at)
        if self._checked or job is None or not job.arrivals.wait_for_first():
            return
        if job.unlike and not job.accepted and not job.damaged:
            raise StateError(
                f"batches of the workers at {self._service.address} would differ from those made here in the last bits: "
                f"{'; '.join(job.unlike)}. Run workers of the same version on the same type of processor, or leave `runtime.service` out"
            )
        self._checked = True

    def close(self) -> None:
        """Lets everybody go who waits."""
        _end(self._jobs)

    def _flat(self, epoch: tf.Tensor, step: tf.Tensor, since: tf.Tensor) -> list[tf.Tensor]:
        origin, shift = (int(number) for number in since)
        return tf.nest.flatten(self._batch(Position(int(epoch), int(step), origin, shift)))

    def _batch(self, at: Position) -> Any:
        with self._lock:
            job = self._job(at)
        batch = None if job is None else job.arrivals.take()
        if batch is None:
            self.fed.here += 1
            return self._here(at)
        self.fed.there += 1
        return batch

    def _job(self, at: Position) -> _Job | None:
        """Returns the job whose turn a position is, perhaps a new one; `None` while there is none to be had."""
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
        """The seconds after which something is tried again."""
        return max(_AGAIN_S, self._service.patience)


class _Job:
    """Reads what the workers make from a position on, in a thread of its own."""

    def __init__(self, executor: Executor, service: Service, at: Position, lead: int, name: str, fed: Fed) -> None:
        self._service, self._name = service, name
        begin, after = at, executor.order.after
        for _ in range(lead):
            begin = after(begin)
        with tf.init_scope():
            made = steps_dataset(executor, begin)
        self.arrivals = Arrivals(at, begin, after, service.patience, service.window, fed)
        self.accepted = self.damaged = 0
        self.unlike: dict[str, None] = {}
        """How workers differ whose batches are not taken."""
        self.lost = 0.0
        """When the service was lost, by `time.monotonic`; 0 if it was not."""
        threading.Thread(target=self._run, args=(made, begin), name="pipegen-service", daemon=True).start()

    def _run(self, made: tf.data.Dataset, at: Position) -> None:
        try:
            self._read(made, at)
        except (tf.errors.OpError, OSError) as error:
            if not self.arrivals.ended:
                self.lost = time.monotonic()
                reason = str(getattr(error, "message", None) or error).splitlines()[0]
                log.warning("the tf.data service at %s is lost, and batches are made here: %s", self._service.address, reason)
        finally:
            self.arrivals.end()

    def _read(self, made: tf.data.Dataset, at: Position) -> None:
        host, _, port = self._service.address.removeprefix("grpc://").rpartition(":")
        socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()  # TensorFlow would wait for ever
        origin, known = origin_here(), dict[bytes, str]()
        remote = through_service(made, self._service.address, self._name, self._service.window)
        for there, epoch, step, *batch in remote:
            text = there.numpy()
            if text not in known:
                known[text] = origin.differs(Origin.parse(text))
                if known[text]:
                    self._refuse(known[text])
            number, damaged = int(step), int(step) < 0
            number = -1 - number if damaged else number
            came = Position(int(epoch), number, at.origin if int(epoch) == at.epoch else 0, at.shift)
            usable = Unusable.REFUSED if known[text] else Unusable.DAMAGED if damaged else batch
            self.accepted += usable is batch
            self.damaged += usable is Unusable.DAMAGED
            if self.damaged == _MANY and not self.accepted:
                log.warning(
                    "workers at %s could read none of %d batches, which are made here: do they see the data under the same paths?",
                    self._service.address,
                    _MANY,
                )
            if not self.arrivals.put(came, usable):
                return

    def _refuse(self, unlike: str) -> None:
        if unlike not in self.unlike:
            self.unlike[unlike] = None
            where = self._service.address
            log.warning("batches of a worker at %s are not taken, since their last bits may differ: %s", where, unlike)


def _end(jobs: list[_Job]) -> None:
    for job in jobs:
        job.arrivals.end()


@atexit.register
def _close_all() -> None:
    """Python's threads end before those of TensorFlow, which may be waiting in one of ours."""
    for feed in [*_live]:
        feed.close()
