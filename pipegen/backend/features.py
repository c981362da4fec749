"""Names what flows through the backend: an example's or a batch's tensors by feature, and what is computed of them on the way."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

Features = dict[str, tf.Tensor]
"""Features by name; internal ones start with `@`: `@draws` float64 `(n, d)`, and pending matrices."""

Found = tuple[tf.Tensor | None, ...]
"""What a survey says of one example."""

Params = tuple[tf.Tensor, ...]
Phase = Callable[[tf.Tensor, Params], Params]
"""A pure function of a feature `(n, ...)` and of what the phase before gave; the first gets the parameters."""
