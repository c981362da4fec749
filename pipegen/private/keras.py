"""What Keras does not promise. Tried on Keras 3.7 and on 3.15.

Where a name is missing in a later version, a slower public way or none is taken, and the docstring says what is lost. The names of
functions on the call stack have no such way: `tests/test_private.py` fails if Keras renames one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from threading import RLock, get_ident
from types import FrameType
from typing import Any, NamedTuple

from pipegen.private.functions import callers, name_of

_FIT = ("keras.src.backend.tensorflow.trainer", "fit")
_BUILD_MODEL = ("keras.src.backend.tensorflow.trainer", "_maybe_symbolic_build")
_DISTRIBUTE = ("keras.src.distribution.distribution_lib", "distribute_dataset")


def initial_epoch(model: Any) -> int | None:
    """Returns the epoch for which a checkpoint was restored, at which `fit` begins; `None` if there was none.

    Reads `Model._initial_epoch`, which `BackupAndRestore` sets; without it, the checkpoint's file tells the epoch.
    """
    return getattr(model, "_initial_epoch", None)


def set_initial_epoch(model: Any, epoch: int | None) -> None:
    """Sets the epoch at which `fit` begins, or with `None` leaves it to `fit`.

    Sets `Model._initial_epoch`; without it, `fit` begins at its own, and the callback raises an error that says what to pass.
    """
    if hasattr(model, "_initial_epoch"):
        model._initial_epoch = epoch


def build_symbolically(model: Any, batch: Any) -> None:
    """Builds a model and its metrics on a batch of symbolic tensors. Calls `Model._symbolic_build`; without it, `fit` builds on its own."""
    build = getattr(model, "_symbolic_build", None)
    if build is not None:
        build(data_batch=batch)


def optimizer_runs(optimizer: Any) -> Any:
    """Returns how often an optimizer has run, a scalar: once a batch, even while it accumulates gradients; `None` without an optimizer.

    Reads `Optimizer._iterations`; without it, `iterations` counts, which skips what an optimizer accumulates.
    """
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    return getattr(optimizer, "_iterations", getattr(optimizer, "iterations", None))


_OPAQUE = RLock()


class LayerCall(NamedTuple):
    """A call of a layer in a graph."""

    layer: Any
    training: bool
    given: Any  # the tensor that it was called with


@contextmanager
def opaque_calls(classes: Iterable[type]) -> Iterator[dict[tuple[int, str], LayerCall]]:
    """Within, layers of exactly these classes compute nothing in the graphs of this thread: each call gives a placeholder of the shape and
    dtype of its result. Yields the calls, by the id of the graph and the name of the placeholder.

    Replaces `call` of the classes, which Keras runs with `training` resolved: the argument, else that of the layer around it, else true.
    Layers that were built in a graph, and hold tensors of it, are built again outside, so that they can be used elsewhere. It serves one
    thread at a time: two would restore each other's methods.
    """
    import tensorflow as tf

    calls: dict[tuple[int, str], LayerCall] = {}
    thread = get_ident()

    def replaced(of: Any, original: Any) -> Any:
        takes = "training" in signature(original).parameters

        @wraps(original)  # Keras reads the signature
        def call(layer: Any, data: Any, *args: Any, training: bool = True, **options: Any) -> Any:
            plain = not args and all(value is None for value in options.values()) and isinstance(training, bool)
            traced = thread == get_ident() and tf.is_tensor(data) and not tf.executing_eagerly()
            if type(layer) is not of or not plain or not traced:
                return original(layer, data, *args, **options, **({"training": training} if takes else {}))
            shape = layer.compute_output_shape(tuple(data.shape))
            made = tf.raw_ops.Placeholder(dtype=layer.compute_dtype, shape=shape)
            calls[id(made.graph), made.op.name] = LayerCall(layer, bool(training), data)
            return made

        return call

    with _OPAQUE:
        own = {each: vars(each).get("call") for each in classes}
        for each in own:
            each.call = replaced(each, each.call)  # type: ignore[attr-defined]
        try:
            yield calls
        finally:
            for each, original in own.items():
                if original is None:
                    del each.call  # type: ignore[attr-defined]
                else:
                    each.call = original  # type: ignore[attr-defined]
            for made in calls.values():
                held = () if made.layer.weights else vars(made.layer).values()
                if any(tf.is_tensor(value) and not hasattr(value, "numpy") for value in held):
                    with tf.init_scope():
                        made.layer.built = False
                        made.layer.build(tuple(made.given.shape))


def fits() -> bool:
    """Checks the call stack for Keras' `fit`."""
    return any(name_of(caller) == _FIT for caller in callers())


def builds_model() -> bool:
    """Checks the call stack for Keras taking a batch only for its shapes, before `fit` or `evaluate` begin."""
    return any(name_of(caller) == _BUILD_MODEL for caller in callers())


def callbacks_of_fit(caller: FrameType) -> list[Any] | None:
    """Returns the callbacks that `fit` was given; `None` if the caller is not Keras' `fit`."""
    if name_of(caller) != _FIT:
        return None
    given = caller.f_locals.get("callbacks")
    listed = getattr(given, "callbacks", None) or (given if isinstance(given, (list, tuple)) else [given])
    return list(listed)


def shards_dataset(caller: FrameType) -> bool:
    """Checks for Keras' `distribute_dataset`, which shards a dataset among processes."""
    own = caller.f_locals.get("self") if name_of(caller) == _DISTRIBUTE else None
    return bool(getattr(own, "_is_multi_process", False) and getattr(own, "auto_shard_dataset", True))
