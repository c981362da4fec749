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


@pytest.mark.nightly
def test_graphs_share_what_is_traced_and_a_search_over_sizes_keeps_few() -> None:
    import tensorflow as tf
    from tensorflow.python.eager import context

    from pipegen.ops.lowering.graphs import once

    def graph(by: int) -> int:
        tf.function(lambda x: once(scaled, x, by=by), autograph=False).get_concrete_function(tf.TensorSpec([], tf.int32))
        return len(context.context().list_function_names())

    before = graph(0)
    assert graph(0) <= before + 1
    for by in range(3 * MOST):
        graph(by)
    gc.collect()  # the graphs themselves, which are in cycles
    assert graph(0) <= before + MOST


def plus_one(x: Any) -> Any:
    import tensorflow as tf

    from pipegen.ops.lowering.python_calls import numpy_function

    return numpy_function(lambda value: value + 1, [x], tf.int32)


def test_what_is_shared_calls_python_after_the_graph_that_it_was_traced_in_is_gone() -> None:
    import tensorflow as tf

    from pipegen.ops.lowering.graphs import once

    def called() -> int:
        return int(tf.function(lambda x: once(plus_one, x), autograph=False)(tf.constant(1)))

    assert called() == 2
    gc.collect()
    assert called() == 2
