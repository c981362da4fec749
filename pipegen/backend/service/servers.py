"""Servers of TensorFlow's tf.data service, and the dataset of its workers."""

from __future__ import annotations

import os
import signal
import socket
import threading
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from pipegen.backend.process.devices import options_elsewhere
from pipegen.backend.process.traced_functions import plain_map
from pipegen.backend.running.execute import Executor
from pipegen.backend.running.walk import Run, plan_elsewhere
from pipegen.ops.lowering.graphs import made_for, made_once
from pipegen.physical.extent import Position
from pipegen.physical.nodes import SERVICE

_SEPARATOR = "|"
_FLAGS = r"avx\w*|amx\w*|fma\w*|f16c|sse\w*|sve\w*|bf16|asimd\w*"  # instruction sets for which TensorFlow and XLA have their own code
_ONEDNN = "TF_ENABLE_ONEDNN_OPTS"


class Origin(NamedTuple):
    """The software and hardware of a process. Unknown parts are empty."""

    tensorflow: str  # the version of TensorFlow, such as `2.21.0`
    processor: str  # the model of the processor
    instructions: str  # its instruction sets
    onednn: str  # `TF_ENABLE_ONEDNN_OPTS`

    @classmethod
    def parse(cls, text: bytes) -> Origin:
        """Parses the result of `origin_there`."""
        parts = text.decode("utf-8", "replace").split(_SEPARATOR)
        return cls(*(part.strip() for part in (*parts, "", "", "", "")[:4]))

    def differs(self, other: Origin) -> str:
        """Describes the difference of another origin; "" if batches of both are equal to the bit, as far as known."""
        told = [bool(a and b) for a, b in zip(self, other, strict=True)]
        if told[0] and self.tensorflow != other.tensorflow:
            return f"TensorFlow {other.tensorflow} in place of {self.tensorflow}"
        if told[1] and self.processor != other.processor:
            return f"a processor {other.processor!r} in place of {self.processor!r}"
        if told[2] and self.instructions != other.instructions:
            ours, theirs = set(self.instructions.split()), set(other.instructions.split())
            only = [*(f"without {name}" for name in sorted(ours - theirs)), *(f"with {name}" for name in sorted(theirs - ours))]
            return f"a processor {other.processor!r} {', '.join(only)}"
        if self.onednn != other.onednn:
            return f"{_ONEDNN}={other.onednn} in place of {self.onednn}"
        return ""


def origin_here() -> Origin:
    """Returns the origin of this process."""
    found = Origin.parse(tf.function(_read, autograph=False)().numpy())
    # The environment may have changed between the start of the process and the import of TensorFlow.
    return found._replace(tensorflow=tf.version.VERSION, onednn=os.environ.get(_ONEDNN, "1"))


def origin_there() -> tf.Tensor:
    """Returns the origin of the process that runs the graph, for `Origin.parse`: a string scalar, computed once a process."""
    return made_once("pipegen_origin", tf.string, _read)


def _read() -> tf.Tensor:
    """Reads the origin of this process, using only operations."""
    # The version is in the name of the folder `*.dist-info` beside the package.
    library = _line("/proc/self/maps", r".*/tensorflow/libtensorflow_framework\.so.*")
    folder = tf.strings.regex_replace(library, r"^[^/]*(/.*)/tensorflow/libtensorflow_framework.*$", r"\1")
    installed = tf.io.matching_files(tf.strings.join([folder, "/tensorflow*-*.dist-info/METADATA"]))
    wanted = tf.strings.regex_full_match(installed, r".*/tensorflow(_cpu|_gpu|_intel|_rocm|_cpu_aws)?-[0-9][^/]*\.dist-info/METADATA")
    metadata = tf.boolean_mask(installed, wanted)
    first = tf.concat([metadata, [""]], 0)[0]
    version = tf.strings.regex_replace(first, r"^.*/tensorflow\w*-([^/]*)\.dist-info/METADATA$", r"\1")
    processor = tf.strings.join([_line("/proc/cpuinfo", rf"{name}\s*:.*") for name in ("model name", "CPU implementer", "CPU part")])
    processor = tf.strings.regex_replace(processor, r"(model name|CPU implementer|CPU part)\s*:\s*", " ")
    flags = _line("/proc/cpuinfo", r"(flags|Features)\s*:.*")
    words = tf.strings.split(flags)
    words = tf.boolean_mask(words, tf.strings.regex_full_match(words, _FLAGS))
    environment = _line("/proc/self/environ", r"(.|\x00|\n)*")
    named = tf.strings.regex_full_match(environment, rf"(.|\n)*(^|\x00){_ONEDNN}=[0-9]+(\x00(.|\n)*|$)")
    set_to = tf.strings.regex_replace(environment, rf"^((.|\n)*\x00)?{_ONEDNN}=([0-9]+)(\x00(.|\n)*)?$", r"\3")
    parts = [version, processor, tf.strings.reduce_join(words, separator=" "), tf.where(named, set_to, "1")]
    return tf.strings.join([tf.strings.regex_replace(part, r"\|", " ") for part in parts], _SEPARATOR)


def _line(file: str, pattern: str) -> tf.Tensor:
    """Returns the first line of a file that fully matches a pattern: a string scalar, "" without such a line or file."""
    lines = tf.data.TextLineDataset(file).filter(lambda line: tf.strings.regex_full_match(line, pattern))
    return lines.ignore_errors(log_warning=False).concatenate(tf.data.Dataset.from_tensors("")).take(1).get_single_element()


_HEARTBEAT_MS = 1000
_WORKER_TIMEOUT_MS = 10_000  # milliseconds without a heartbeat until a worker counts as lost
_JOB_TIMEOUT_MS = 60_000  # milliseconds until a job without a trainer is dropped
_RECONNECT_MS = 3_600_000  # milliseconds that a worker waits for a dispatcher that does not answer
_GRACE_S = 10  # seconds that a server has to stop before the system ends it
_CONNECT_S = 1.0
_HEALTH_S = 5.0  # seconds between two health checks of a server


def dispatcher(port: int, work_dir: str | None) -> Any:
    """Starts a dispatcher; with a folder for its journal, a restarted one resumes."""
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


def run_until_told(health: Callable[[], str], say: Callable[[str], None]) -> str:
    """Waits for SIGTERM or SIGINT, and reports the server's health whenever it changes; returns the signal's name."""
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

    If `needs`, the address of a worker's dispatcher, does not answer, the worker is not stopped, since TensorFlow would wait for it with
    Python's lock held.
    """
    if needs is not None and not answers(needs):
        return
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_GRACE_S)
    server.stop()
    signal.alarm(0)


def answers(address: str) -> bool:
    """Checks that a server listens at `host:port`."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
    except OSError:
        return False
    return True


_ENDLESS = 1 << 40  # more steps than any training takes


def steps_dataset(executor: Executor, at: Position) -> tf.data.Dataset:
    """Makes the batches from a position on, epoch after epoch, as a dataset that runs in any process.

    Its source is a range, which the service divides among the workers element by element. It asserts no length, which would fail on each
    worker, holds no variable, and does not call Python. Returns elements `(origin, epoch, step, *batch)`: a string for `Origin.parse`,
    int64 scalars, and the flat parts of the batch. The step of a batch with a damaged record is `-1 - step`."""
    order = executor.order
    rest, steps = order.steps_from(at.origin) - at.step, order.steps
    # An epoch begun with another batch size has unaligned blocks and its own executor, which makes no other epoch.
    numbers = tf.data.Dataset.range(rest if order.anywhere else _ENDLESS)

    def step_of(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        own, later = number < rest, number - rest
        begun, first, from_slot, shift = (tf.constant(one, tf.int64) for one in at)
        epoch = tf.where(own, begun, begun + 1 + later // steps)
        step = tf.where(own, first + number, later % steps)
        return epoch, step, tf.stack([tf.where(own, from_slot, 0), shift])

    with made_for("file"):
        made = Run(executor, plan_elsewhere(executor, SERVICE)).dataset(plain_map(numbers, step_of))
    told = plain_map(made, lambda epoch, step, batch: (origin_there(), epoch, step, *tf.nest.flatten(batch)))
    return told.with_options(options_elsewhere(executor.spec.runtime))


def through_service(made: tf.data.Dataset, address: str, name: str, outstanding: int) -> tf.data.Dataset:
    """Has workers compute the elements of a dataset, each at most once, in any order. It waits until the dispatcher answers.

    `address` is that of the dispatcher, such as `grpc://dispatcher:5050`; `name` begins that of the job, which is unique: jobs of one name
    would share their elements. At most `outstanding` elements are requested at a time.
    """
    service = tf.data.experimental.service
    apply = service.distribute(
        processing_mode=service.ShardingPolicy.DYNAMIC,
        service=address,
        job_name=f"{name}-{uuid.uuid4().hex}",
        max_outstanding_requests=outstanding,
        compression=None,
    )
    return made.apply(apply)
