"""What makes graphs cheaper to trace, with nothing changed that they compute. The smoke set, and `--as-users`, trace them as users do."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

_MOST = 10_000
"""Constants that are kept as messages."""
_PLAIN = (bool, int, float, str, np.generic)


def quicken() -> None:
    """Does all of it."""
    note_one_stack()
    read_arguments_in_c()
    order_what_holds_resources()
    make_operations_plainly()
    share_constants()
    keep_constants()


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


def make_operations_plainly() -> None:
    """An operation is made at once from what TensorFlow's program in C++ has of it.

    In between, TensorFlow writes its attributes as messages, reads them again, and enters the graph, a scope and a lock that it is in
    already. What has a device, a control dependency or the like is left to TensorFlow.
    """
    from tensorflow.python.client import pywrap_tf_session as c
    from tensorflow.python.framework import _op_def_library_pybind, errors, op_callbacks, op_def_library, op_def_registry, ops, tensor
    from tensorflow.python.framework.func_graph import FuncGraph
    from tensorflow.python.util import tf_stack

    apply, create = op_def_library._apply_op_helper, FuncGraph._create_op_internal
    stack, version = tf_stack.extract_stack(), ops.Graph().graph_def_versions.producer

    @cache
    def known(kind: str) -> tuple[Any, tuple[str, ...], bool]:
        """An operation, the names of what it is given, and whether that is a list anywhere; no names where one is odd."""
        op = op_def_registry.get(kind)
        lists = any(arg.number_attr or arg.type_list_attr for arg in op.input_arg)
        odd = lists or any(arg.is_ref for arg in op.input_arg) or any("func" in own.type for own in op.attr)
        return op, () if odd else tuple(arg.name for arg in op.input_arg), lists

    def is_plain(graph: Any) -> bool:
        stacks = graph._control_dependencies_stack, graph._colocation_stack, graph._device_function_stack, graph._attr_scope_map
        others = graph._container, graph._control_flow_context, graph._op_to_kernel_label_map, graph._gradient_override_map
        return not (any(map(len, stacks)) or any(others) or graph.capture_by_value)

    def finished(graph: Any, kind: str, name: str, inputs: Any, attributes: Any) -> Any:
        with graph._c_graph.get() as own:
            described = c.TF_NewOperation(own, kind, name)
        for value in inputs:
            if isinstance(value, list):
                c.TF_AddInputList(described, [each._as_tf_output() for each in value])
            else:
                c.TF_AddInput(described, value._as_tf_output())
        for key, message in attributes:
            c.TF_SetAttrValueProto(described, key, message)
        try:
            operation = ops.Operation(c.TF_FinishOperation(described), ops.SymbolicTensor)
        except errors.InvalidArgumentError as error:
            raise ValueError(error.message) from None
        c.TF_SetOpStackTrace(operation._c_op, stack)
        operation._init(graph)
        operation._colocation_code_locations = {}
        operation._gradient_function = graph._gradient_function_map.get(kind)
        return operation

    def applied(kind: str, name: str | None = None, **given: Any) -> Any:
        graph: Any = ops.get_default_graph()
        op, names, _ = known(kind)
        inputs = [given.get(own) for own in names]
        if not inputs or not graph.building_function or not all(isinstance(own, tensor.Tensor) for own in inputs):
            return apply(kind, name, **given)
        if type(graph)._create_op_internal is not created or not is_plain(graph) or op_callbacks.should_invoke_op_callbacks():
            return apply(kind, name, **given)
        attributes, inputs, _, structure = _op_def_library_pybind.process_inputs(kind, version, given)
        scope, whole = graph._name_stack, name[:-1] if name and name[-1] == "/" else graph.unique_name(name or kind)
        graph._name_stack = whole
        try:
            inputs = [graph.capture(own) for own in inputs]
        finally:
            graph._name_stack = scope
        operation = finished(graph, kind, whole, inputs, attributes.items())
        return structure, op.is_stateful, operation, operation.outputs

    def created(self: Any, op_type: str, inputs: Any, *others: Any, **own: Any) -> Any:
        if op_type == "Enter" or len(others) > 1 or not is_plain(self):
            return create(self, op_type, inputs, *others, **own)
        name, attrs = own.get("name"), own.get("attrs")
        op, _, lists = known(op_type)
        inputs = [self.capture(own) for own in inputs]
        whole = name[:-1] if name and name[-1] == "/" else self.unique_name(name or op_type)
        inputs = ops._reconstruct_sequence_inputs(op, inputs, attrs) if lists else inputs
        return finished(self, op_type, whole, inputs, ((key, value.SerializeToString()) for key, value in (attrs or {}).items()))

    op_def_library._apply_op_helper, FuncGraph._create_op_internal = applied, created


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
