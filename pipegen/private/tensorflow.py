"""What TensorFlow does not promise. Tried on 2.16 and on 2.21.

Where a name is missing in a later version, a slower public way is taken. Where there is none, the error says which name is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

import tensorflow as tf

from pipegen.private.functions import name_of, untraced


class MissingName(ImportError):
    """A name that this version of TensorFlow no longer has, and that nothing public replaces."""

    def __init__(self, name: str) -> None:
        needs = "which this version of pipegen needs: install an older TensorFlow, or a newer pipegen"
        super().__init__(f"TensorFlow {tf.__version__} has no `{name}`, {needs}")


def required(owner: Any, name: str) -> Any:
    """Reads an attribute of TensorFlow. Raises `MissingName` if there is none."""
    found = getattr(owner, name, None)
    if found is None:
        raise MissingName(f"{getattr(owner, '__name__', type(owner).__name__)}.{name}")
    return found


@contextmanager
def not_optimized() -> Iterator[None]:
    """Switches graph optimization off for functions traced inside.

    Otherwise TensorFlow optimizes each of them for every new iterator, which takes a fifth of the time of making one. Functions that would
    gain are compiled by XLA. Uses `function_call_options` of the eager context; without it, functions are optimized.
    """
    now: Any = None
    try:
        from tensorflow.python.eager import context

        here = context.context()
        usual, config = here.function_call_options, here.config
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        here.function_call_options = context.FunctionCallOptions(usual.executor_type, config)
        now = here
    except (ImportError, AttributeError, TypeError):
        usual = None
    try:
        yield
    finally:
        if now is not None:
            now.function_call_options = usual


def function_here(function: Callable[..., Any], signature: Sequence[tf.TensorSpec]) -> Any:
    """Makes a `tf.function` that `tf.data` runs on the device of the dataset.

    Otherwise `tf.data` places each operation and optimizes the graph for every new iterator, which takes two thirds of the time of making
    one. Uses the attribute `experimental_ints_on_device` of functions, which has an effect on integers only on accelerators, where these
    functions never run; without it, operations are placed.
    """
    make = partial(tf.function, function, input_signature=signature, autograph=False)
    try:
        return make(experimental_attributes={"experimental_ints_on_device": True})
    except (TypeError, ValueError):
        return make()


@untraced
class CustomDataset(tf.data.Dataset):
    """A dataset of a class of our own. A subclass names the dataset inside, and may check or replace what other datasets are built on.

    Overrides `_inputs` and `_variant_tensor`.

    Its argument is the variant tensor of the dataset.
    """

    _pipegen_inner: Any = None  # the dataset that this one is made of, whose options it takes over; set before `__init__`

    def _pipegen_variant(self) -> tf.Tensor:
        """Returns the tensor that derived datasets and iterators are built on."""
        return self._variant_tensor_attr

    def _inputs(self) -> list[tf.data.Dataset]:
        return [] if self._pipegen_inner is None else [self._pipegen_inner]

    @property
    def _variant_tensor(self) -> tf.Tensor:
        """The tensor that derived datasets and iterators are built on."""
        return self._pipegen_variant()


for _name in ("_inputs", "_variant_tensor"):  # with another name, an override that checks something would never be called
    required(tf.data.Dataset, _name)


@untraced
class Applied(CustomDataset):
    """The result of a raw operation of `tf.data` on a dataset of dense tensors.

    Uses `_common_args` of datasets; without it, the dataset has no name in a profile.

    Args:
        ds: The dataset.
        function: A concrete function that the operation runs on elements, if it takes one.
        spec: The type of an element of the result.
        name: Its name in a profile.
        operation: Such as `tf.raw_ops.MapDataset`, which also takes `own`.
    """

    def __init__(
        self, ds: tf.data.Dataset, function: Any, spec: Any, name: str | None, operation: Callable[..., tf.Tensor], **own: Any
    ) -> None:
        self._pipegen_inner, self._name, self._pipegen_spec = ds, name, spec
        self._pipegen_operation, self._pipegen_own = operation, own
        self._pipegen_function = function  # must live as long as the dataset
        given = {}
        if function is not None:
            if not tf.executing_eagerly():
                required(function, "add_to_graph")(tf.compat.v1.get_default_graph())
            given = {"other_arguments": function.captured_inputs, "f": function}
        flat = tf.nest.flatten(spec)
        types = {"output_types": [t.dtype for t in flat], "output_shapes": [t.shape for t in flat]}
        args = getattr(self, "_common_args", types)
        super().__init__(operation(input_dataset=tf.data.experimental.to_variant(ds), **given, **own, **args))

    @property
    def element_spec(self) -> Any:
        """Shapes and dtypes of an element."""
        return self._pipegen_spec


_DISTRIBUTE = ("tensorflow.python.distribute.input_lib", "_create_cloned_datasets_from_dataset")


def distributes_dataset(caller: FrameType) -> bool:
    """Checks for the function in which a distribution strategy derives its datasets. Goes by its name on the call stack, see `keras.py`."""
    return name_of(caller) == _DISTRIBUTE


def shards_dataset(caller: FrameType) -> bool:
    """Checks for the same function sharding among processes, not among the devices of one."""
    return distributes_dataset(caller) and bool(getattr(caller.f_locals.get("input_context"), "num_input_pipelines", 1) > 1)


def is_onednn_build() -> bool | None:
    """Checks for a TensorFlow with oneDNN. Uses `_pywrap_util_port`; without it, the answer is unknown: `None`."""
    try:
        from tensorflow.python.util import _pywrap_util_port

        return bool(_pywrap_util_port.IsMklEnabled())
    except (ImportError, AttributeError):
        return None


def lite_errors(error: Exception) -> list[Any]:
    """Returns what the converter to LiteRT reports of single operations: objects with `operator`, `location` and `error_message`.

    Uses `ConverterError.errors`; without it, the list is empty.
    """
    return list(getattr(error, "errors", ()))


def dot_in_full_precision(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Contracts the last dimension of `a` with the last but one of `b`, for XLA on an accelerator, in full float32 precision.

    Uses the module `tf2xla.python.xla`: `tf.linalg.matmul` would round to the accelerator's short floats. Returns the dimensions of `a` but
    its last, then those of `b` but the contracted one. Raises `MissingName` if there is no such module."""
    try:
        from tensorflow.compiler.tf2xla.python import xla

        dimensions, precision = xla.DotDimensionNumbers(), xla.PrecisionConfig()
    except (ImportError, AttributeError):
        raise MissingName("tensorflow.compiler.tf2xla.python.xla") from None
    dimensions.lhs_contracting_dimensions.append(a.shape.rank - 1)
    dimensions.rhs_contracting_dimensions.append(b.shape.rank - 2)
    precision.operand_precision.extend([xla.PrecisionConfig.HIGHEST] * 2)
    return required(xla, "dot_general")(a, b, dimensions, precision)
