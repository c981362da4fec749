"""Makes the dataset that the workers of the service run: from numbers of steps to whole batches, without anything of this process."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.process.graphs import plain_map
from pipegen.backend.process.options import ANY_THREADS, options_elsewhere
from pipegen.backend.running.walk import Run
from pipegen.backend.service.origin import origin_there
from pipegen.ops.lowering.graphs import made_for
from pipegen.physical.decide import decide
from pipegen.physical.forms import SERVICE

if TYPE_CHECKING:
    from pipegen.backend.running.execute import Executor
    from pipegen.physical.nodes import Physical
    from pipegen.physical.position import Position

_ENDLESS = 1 << 40
"""Steps that no training takes."""


def service_plan(executor: Executor) -> Physical:
    """Returns what a worker runs of an executor's plan."""
    threads = executor.setting.threads if executor.spec.runtime.threads != "auto" else ANY_THREADS
    return decide(executor.plan, SERVICE, replace(executor.setting, threads=threads))


def steps_dataset(executor: Executor, at: Position) -> tf.data.Dataset:
    """The batches from a position on, epoch after epoch, as a dataset that runs anywhere.

    Its source is a range, which the service divides among the workers element by element. Nothing in it asserts a length, which would
    fail on each worker, holds a variable, or calls Python.

    Returns:
        Elements `(origin, epoch, step, *batch)`: a string for `Origin.parse`, int64 scalars, and the flat parts of the batch. The step of a
        batch with a damaged record is `-1 - step`.
    """
    order = executor.order
    rest, steps = order.steps_from(at.origin) - at.step, order.steps
    # Blocks of an epoch that was begun with batches of another size lie otherwise towards groups: the executor is for that epoch alone.
    numbers = tf.data.Dataset.range(rest if order.anywhere else _ENDLESS)

    def step_of(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        own, later = number < rest, number - rest
        begun, first, from_slot, shift = (tf.constant(one, tf.int64) for one in at)
        epoch = tf.where(own, begun, begun + 1 + later // steps)
        step = tf.where(own, first + number, later % steps)
        return epoch, step, tf.stack([tf.where(own, from_slot, 0), shift])

    def with_origin(epoch: tf.Tensor, step: tf.Tensor, batch: Any) -> tuple[tf.Tensor, ...]:
        return origin_there(), epoch, step, *tf.nest.flatten(batch)

    with made_for("file"):
        made = Run(executor, service_plan(executor)).dataset(plain_map(numbers, step_of))
    return plain_map(made, with_origin).with_options(options_elsewhere(executor.spec.runtime))


def through_service(made: tf.data.Dataset, address: str, name: str, outstanding: int) -> tf.data.Dataset:
    """The elements of a dataset as the workers make them, each once at most, in any order. It waits until the dispatcher answers.

    Args:
        made: The dataset.
        address: The dispatcher, such as `grpc://dispatcher:5050`.
        name: What the job's name begins with. Jobs of one name would share their elements, so that each gets a name of its own.
        outstanding: Elements that may be asked for at a time.
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
