"""Maps datasets by functions that are written as graphs already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function as it is: our code is written as graphs, and AutoGraph would only slow the tracing and complain."""
    return tf.autograph.experimental.do_not_convert(function)


def plain_map(ds: tf.data.Dataset, function: Callable[..., Any], calls: int | None = None, name: str | None = None) -> tf.data.Dataset:
    """Maps a dataset in order, on `calls` threads, without AutoGraph."""
    return ds.map(plain(function), num_parallel_calls=calls, deterministic=None if calls is None else True, name=name)
