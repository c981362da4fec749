"""Devices, variables, options and threads of this process, and values made once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Generic, TypeVar

import tensorflow as tf

from pipegen.memory import ram_budget, threads
from pipegen.private.functions import untraced
from pipegen.spec.models import Runtime


def resolve_device(device: str) -> str:
    """Returns a TensorFlow device name; `auto` is the first accelerator, or the CPU. Raises `ValueError` if the device does not exist."""
    if device != "auto":
        try:
            wanted = tf.DeviceSpec.from_string(device if device.startswith("/") else f"/{device}")
        except ValueError:
            raise ValueError(f"invalid device `{device}`; use for example `GPU:0`") from None
        there = [tf.DeviceSpec.from_string(d.name) for d in tf.config.list_logical_devices()]
        if not any((d.device_type, d.device_index) == (wanted.device_type, wanted.device_index or 0) for d in there):
            known = ", ".join(f"{d.device_type}:{d.device_index}" for d in there)
            raise ValueError(f"unknown device `{device}`; TensorFlow sees {known}")
        return str(wanted.to_string())
    for kind in ("GPU", "TPU"):
        found = tf.config.list_logical_devices(kind)
        if found:
            return str(found[0].name)
    return "/CPU:0"


def hide_accelerators() -> None:
    """Hides the GPU, which another framework uses, from TensorFlow; does nothing once TensorFlow has started."""
    with suppress(RuntimeError):
        tf.config.set_visible_devices([], "GPU")


ANY_THREADS = -1  # as many threads as the machine has


def make_options(runtime: Runtime) -> tf.data.Options:
    """Returns the options of every dataset. Auto-sharding is off: the plan shards."""
    options = untuned()
    options.deterministic = True
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    options.threading.private_threadpool_size = threads(runtime)
    options.threading.max_intra_op_parallelism = 1
    options.autotune.ram_budget = ram_budget(runtime)
    return options


def options_elsewhere(runtime: Runtime) -> tf.data.Options:
    """Returns the options for datasets that run on another machine, without numbers measured on this one."""
    options = make_options(runtime)
    if runtime.threads == "auto":
        options.threading.private_threadpool_size = 0
    if runtime.ram_budget == "auto":
        options.autotune.ram_budget = 0
    return options


def untuned() -> tf.data.Options:
    """Returns options without TensorFlow's autotuning and rewriting, since every number is in the plan.

    To rewrite a graph, TensorFlow parses every function for each new iterator, which takes seconds for a loaded graph.

    The autotuning thread sleeps for up to a minute at a time, longer the longer an iterator lives. By a race, deleting the iterator may
    wait until it wakes up.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return options


T = TypeVar("T")


def on_this_host(make: Callable[[], T]) -> T:
    """Calls `make` eagerly, on the CPU, and outside any distribution strategy.

    In the scope of a strategy a variable would be made for each replica, and inside a function as part of its graph. Both are state of
    the thread, so another thread calls `make`.
    """

    def work() -> T:
        with tf.device("CPU:0"):
            return make()

    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(work).result()


def variable(value: Any, dtype: tf.DType, name: str) -> tf.Variable:
    """Makes a variable on this host with an initial value."""
    return on_this_host(lambda: tf.Variable(value, dtype=dtype, trainable=False, name=name))


def untouched(shape: Sequence[int | None], dtype: tf.DType, name: str) -> tf.Variable:
    """Makes an uninitialised variable on this host, whose memory is allocated only as it is written."""
    return on_this_host(lambda: tf.Variable(tf.raw_ops.Empty(shape=shape, dtype=dtype, init=False), trainable=False, name=name))


def write_row(variable: tf.Variable, row: tf.Tensor, value: tf.Tensor) -> tf.Operation:
    """Writes one row. Returns the operation: the result of `scatter_nd_update` does not wait for it."""
    return tf.raw_ops.ResourceScatterNdUpdate(ref=variable.handle, indices=tf.reshape(row, [1, 1]), updates=tf.expand_dims(value, 0))


@untraced
class Once(Generic[T]):
    """A property that is made on first use, by one thread.

    It is made eagerly, also while a function is traced: a tensor of one function's graph would be out of scope in others.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __get__(self, owner: Any, _of: type) -> T:
        made, name = owner.__dict__, self._make.__name__
        if name not in made:
            with made.setdefault("_making", threading.RLock()), tf.init_scope():
                if name not in made:
                    made[name] = self._make(owner)
        found: T = made[name]
        return found


@untraced
class InTurn(Iterator[Any]):
    """A thread-safe iterator over `elements`, or over what a subclass takes: each element goes to one thread, the end to all."""

    def __init__(self, elements: Iterable[Any] = ()) -> None:
        self._elements = iter(elements)
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
        """Returns the next element, like `next(iterator)`."""
        return next(self)

    def _take(self) -> Any:
        """Returns the next element; called by one thread at a time."""
        return next(self._elements)
