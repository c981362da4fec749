"""Numbers of distributions that have no simple inverse, from uniform ones and without a loop of unknown length."""

from __future__ import annotations

import math

from pipegen.lazy import tf

_HALVINGS = 48


def symmetric_dirichlet(u: tf.Tensor, alpha: float) -> tf.Tensor:
    """Shares of the distribution Dirichlet(alpha, …, alpha): the quantiles of Gamma(alpha) at uniform numbers, by their sum.

    Args:
        u: float64 `(..., k)`, uniform in [0, 1).
        alpha: From 0.1 to 100; 1 makes every way to share out equally likely.

    Returns:
        float64 `(..., k)` that sum to 1.
    """
    logs = _log_gamma_quantile(u, alpha)
    parts = tf.exp(logs - tf.reduce_max(logs, -1, keepdims=True))
    return parts / tf.reduce_sum(parts, -1, keepdims=True)


def _log_gamma_quantile(u: tf.Tensor, alpha: float) -> tf.Tensor:
    """The logarithm of the value below which a number of Gamma(alpha) lies with probability `u`, to 1e-12, by halving an interval."""
    u = tf.maximum(u, 2.0**-53)
    if alpha == 1:
        return tf.math.log(-tf.math.log1p(-u))
    low = tf.zeros_like(u) + (math.lgamma(alpha + 1) - 38.0) / alpha  # P(x) is about x^alpha / Gamma(alpha + 1) for small x
    high = tf.zeros_like(u) + math.log(alpha + 40.0 * math.sqrt(alpha) + 40.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        below = tf.math.igamma(tf.constant(alpha, tf.float64), tf.exp(middle)) < u
        low, high = tf.where(below, middle, low), tf.where(below, high, middle)
    return (low + high) / 2.0
