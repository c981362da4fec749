"""What makes graphs cheaper to trace by day, with nothing changed that they compute. By night, and for the smoke set, they are traced as
users have it."""

from __future__ import annotations

from typing import Any

import numpy as np

_MOST = 10_000
"""Constants that are kept as messages."""
_PLAIN = (bool, int, float, str, np.generic)


def note_one_stack() -> None:
    """Every operation of a graph notes the same calls of Python as those that made it.

    TensorFlow walks up the whole stack for each, which is deepest in tests: a sixth of the time of those that build pipelines. No test
    asks where an operation was made.
    """
    from tensorflow.python.util import tf_stack

    one = tf_stack.extract_stack()
    tf_stack.extract_stack = lambda stacklevel=1: one


def read_arguments_in_c() -> None:
    """What an operation is given is looked through by TensorFlow's own program in C++, which it has and leaves off.

    In Python, that is a fifth of the time of those tests that build pipelines.
    """
    from tensorflow.core.config import flags

    flags.config().graph_building_optimization.reset(True)


def order_what_holds_resources() -> None:
    """Only operations that are given a resource, or a data set, which can hold one, are asked for the resources that they touch."""
    import tensorflow as tf
    from tensorflow.python.framework import auto_control_deps

    ask, holding = auto_control_deps._get_resource_inputs, {tf.resource, tf.variant}

    def touched(operation: Any) -> Any:
        return ask(operation) if any(tensor.dtype in holding for tensor in operation.inputs) else ()

    auto_control_deps._get_resource_inputs = touched


def share_constants() -> None:
    """Equal constants of a graph are one operation, as Grappler makes them later on.

    A slice is three constants and the slice itself, so that of all operations that are traced nearly half are constants, and nine out of
    ten are there already: a third of the time of those tests that build pipelines.
    """
    from tensorflow.python.framework import ops

    make = ops._create_graph_constant

    def constant(value: Any, dtype: Any, shape: Any, *others: Any, **more: Any) -> Any:
        graph: Any = ops.get_default_graph()
        known = _known(value)
        placed = graph._control_dependencies_stack, *graph._colocation_stack.peek_objs(), *graph._device_function_stack.peek_objs()
        if known is None or any(placed) or graph._attr_scope_map or not graph.building_function:
            return make(value, dtype, shape, *others, **more)
        shared = graph._shared_constants = getattr(graph, "_shared_constants", {})
        key = known, dtype, str(shape)
        if key not in shared:
            shared[key] = make(value, dtype, shape, *others, **more)
        return shared[key]

    ops._create_graph_constant = constant


def keep_constants() -> None:
    """A plain constant is written as a message once a process, whichever graph has it."""
    from tensorflow.python.framework import tensor_util

    make, kept = tensor_util.make_tensor_proto, dict[Any, Any]()

    def proto(values: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False, allow_broadcast: bool = False) -> Any:
        known = _known(values)
        if known is None or len(kept) > _MOST:
            return make(values, dtype, shape, verify_shape, allow_broadcast)
        key = known, dtype, str(shape), verify_shape, allow_broadcast
        if key not in kept:
            kept[key] = make(values, dtype, shape, verify_shape, allow_broadcast)
        return kept[key]

    tensor_util.make_tensor_proto = proto


def _known(value: Any) -> Any:
    """What tells plain values apart, also -0.0 from 0.0, or `None` for others, such as arrays."""
    if isinstance(value, (list, tuple)):
        parts = [_known(part) for part in value]
        return None if None in parts else (type(value), *parts)
    return (type(value), repr(value)) if isinstance(value, _PLAIN) else None
