"""Types of the backend: the tensors of an example or a batch by feature, and parameters computed from them; and a search in stretches."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

Features = dict[str, tf.Tensor]  # features by name; internal ones start with `@`: `@draws` float64 `(n, d)`, and pending matrices

Found = tuple[tf.Tensor | None, ...]  # the result of a survey for one example

Params = tuple[tf.Tensor, ...]  # of stages of several steps, also tuples of tensors
Phase = Callable[[tf.Tensor, Params], Params]
"""A pure function of a feature `(n, ...)` and of the previous phase's result; the first gets the parameters."""


def last_begun(begins: tf.Tensor, at: tf.Tensor) -> tf.Tensor:
    """Finds the last of ascending `begins` that is at or before each number: int64, like `at`. Empty stretches hold no number."""
    found = tf.searchsorted(begins, tf.reshape(at, [-1]), side="right", out_type=tf.int64) - 1
    return tf.reshape(found, tf.shape(at))
