"""Parts that are traced once a process: shared between graphs, and not kept for good."""

from __future__ import annotations

import gc
from typing import Any

import pytest

pytestmark = pytest.mark.tf
MOST = 20
"""Functions that stay alive, with some room."""


def scaled(x: Any, *, by: int) -> Any:
    return x * by


def test_graphs_share_what_is_traced_and_a_search_over_sizes_keeps_few() -> None:
    import tensorflow as tf
    from tensorflow.python.eager import context

    from pipegen.ops.lowering.once import once

    def graph(by: int) -> int:
        tf.function(lambda x: once(scaled, x, by=by), autograph=False).get_concrete_function(tf.TensorSpec([], tf.int32))
        return len(context.context().list_function_names())

    before = graph(0)
    assert graph(0) <= before + 1
    for by in range(3 * MOST):
        graph(by)
    gc.collect()  # the graphs themselves, which are in cycles
    assert graph(0) <= before + MOST
