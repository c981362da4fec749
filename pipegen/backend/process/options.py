"""`tf.data.Options` from the runtime section: a pool of our own and a memory budget that knows of containers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from pipegen.memory import ram_budget, threads

if TYPE_CHECKING:
    from pipegen.spec.models import Runtime

ANY_THREADS = -1
"""Threads: as many as the machine has, whichever that is."""


def make_options(runtime: Runtime) -> tf.data.Options:
    """The options of every dataset that pipegen makes.

    Auto-sharding is off because shards are part of the plan.
    """
    options = untuned()
    options.deterministic = True
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    options.threading.private_threadpool_size = threads(runtime)
    options.threading.max_intra_op_parallelism = 1
    options.autotune.ram_budget = ram_budget(runtime)
    return options


def options_elsewhere(runtime: Runtime) -> tf.data.Options:
    """The same for datasets that run on another machine, less what was measured on this one."""
    options = make_options(runtime)
    if runtime.threads == "auto":
        options.threading.private_threadpool_size = 0
    if runtime.ram_budget == "auto":
        options.autotune.ram_budget = 0
    return options


def untuned() -> tf.data.Options:
    """Returns options without TensorFlow's autotuning and rewriting, which find nothing to do: every number is in the plan.

    To rewrite a graph, TensorFlow takes every function apart whenever an iterator is made, which takes seconds for a graph that was loaded.

    The thread of autotuning sleeps for up to a minute at a time, and longer the longer an iterator lives. Where the iterator goes just
    then, the thread may look whether it has ended before that is noted, and whoever lets the iterator go waits until it wakes up.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return options
