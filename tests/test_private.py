"""What TensorFlow and Keras do not promise, each on the versions that the smoke set runs on; and where a name is missing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from pipegen.backend.process.traced_functions import Traced, plain_flat_map, plain_map
from pipegen.private import keras as private_keras
from pipegen.private import tensorflow as private
from pipegen.private.functions import callers, untraced

pytestmark = [pytest.mark.tf, pytest.mark.smoke]
PIPEGEN = Path(__file__).resolve().parents[1] / "pipegen"
NOT_PUBLIC = {
    "_variant_tensor", "_variant_tensor_attr", "_common_args", "_inputs", "add_to_graph", "function_call_options", "FunctionCallOptions",
    "_initial_epoch", "_symbolic_build", "_iterations", "_is_multi_process", "_getframe", "f_back", "f_locals", "currentframe",
}  # fmt: skip
"""Attributes of TensorFlow, Keras and Python's frames."""
OVERRIDDEN = {"_variant_tensor", "_inputs"}


def doubled() -> tf.data.Dataset:
    return plain_map(tf.data.Dataset.range(3), lambda x: 2 * x, name="doubled")


class Probe(private.CustomDataset):
    """A dataset that counts how often others are built on it, and notes what it sees on the call stack."""

    def __init__(self, inner: tf.data.Dataset) -> None:
        self._pipegen_inner, self.asked, self.seen = inner, 0, set[str]()
        super().__init__(tf.data.experimental.to_variant(inner))

    def _pipegen_variant(self) -> tf.Tensor:
        self.asked += 1
        found = list(callers())
        self.seen |= {"distributes"} if any(map(private.distributes_dataset, found)) else set()
        self.seen |= {"shards"} if any(map(private_keras.shards_dataset, found)) else set()
        self.seen |= {"fits"} if private_keras.fits() else set()
        return super()._pipegen_variant()

    @property
    def element_spec(self) -> Any:
        return self._pipegen_inner.element_spec


def model() -> keras.Model:
    made = keras.Sequential([keras.layers.Input([2]), keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made


def batches() -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices((np.ones([8, 2], np.float32), np.ones([8, 1], np.float32))).batch(2)


# Nothing elsewhere


def test_no_other_file_uses_what_is_not_public() -> None:
    found = []
    for path in PIPEGEN.rglob("*.py"):
        if path.parent == PIPEGEN / "private":
            continue
        text = path.read_text(encoding="utf-8")
        if not any(name in text for name in (*NOT_PUBLIC, "tensorflow.", "keras.src")):
            continue
        for node in ast.walk(ast.parse(text)):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            private_modules = [name for name in modules if name.startswith(("tensorflow.", "keras.src"))]
            is_foreign = isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id == "self")
            names = [node.attr] if is_foreign and node.attr in NOT_PUBLIC else []
            names += (
                [part.name for part in node.body if isinstance(part, ast.FunctionDef) and part.name in OVERRIDDEN]
                if isinstance(node, ast.ClassDef)
                else []
            )
            found += [f"{path.relative_to(PIPEGEN)}: {name}" for name in private_modules + names]
    assert found == []


# TensorFlow


def test_functions_are_traced_without_optimization_and_the_options_come_back() -> None:
    from tensorflow.python.eager import context

    def disabled() -> bool:
        config = tf.compat.v1.ConfigProto.FromString(context.context().function_call_options.config_proto_serialized)
        return bool(config.graph_options.rewrite_options.disable_meta_optimizer)

    before = disabled()
    with private.not_optimized():
        assert disabled()
    assert disabled() == before


def test_without_the_options_functions_work(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorflow.python.eager import context

    monkeypatch.delattr(context, "FunctionCallOptions")
    assert list(doubled().as_numpy_iterator()) == [0, 2, 4]


def test_functions_carry_the_mark_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    concrete = Traced(lambda x: 2 * x, tf.TensorSpec([], tf.int64)).concrete
    assert concrete.function_def.attr["experimental_ints_on_device"].b
    plain = tf.function

    def refuses(*args: Any, experimental_attributes: Any = None, **options: Any) -> Any:
        if experimental_attributes is not None:
            raise ValueError("unknown attribute")
        return plain(*args, **options)

    monkeypatch.setattr(tf, "function", refuses)
    assert list(doubled().as_numpy_iterator()) == [0, 2, 4]


def test_a_dataset_of_ours_is_asked_for_what_others_are_built_on() -> None:
    options = tf.data.Options()
    options.deterministic = False
    probe = Probe(tf.data.Dataset.range(4).with_options(options))
    before = probe.asked
    assert [x.tolist() for x in probe.batch(2).as_numpy_iterator()] == [[0, 1], [2, 3]]
    assert probe.asked > before
    assert probe.options().deterministic is False


def test_a_missing_override_is_an_error_that_names_it() -> None:
    with pytest.raises(private.MissingName, match=r"`DatasetV2\._no_such`, .*install an older TensorFlow"):
        private.required(tf.data.Dataset, "_no_such")


def test_an_applied_operation_has_a_name_and_works_in_a_graph() -> None:
    assert b"doubled" in doubled()._common_args["metadata"]

    @tf.function(autograph=False)
    def total() -> tf.Tensor:
        return plain_flat_map(doubled(), lambda x: tf.data.Dataset.range(x)).reduce(tf.constant(0, tf.int64), lambda a, b: a + b)

    assert int(total()) == 0 + (0 + 1) + (0 + 1 + 2 + 3)


def test_without_common_arguments_an_operation_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = next(base for base in tf.data.Dataset.__mro__ if "_common_args" in vars(base))
    given, traced = tf.data.Dataset.range(3), Traced(lambda x: 2 * x, tf.TensorSpec([], tf.int64))
    monkeypatch.delattr(owner, "_common_args")
    made = plain_map(given, traced)
    assert made.element_spec == tf.TensorSpec([], tf.int64)
    monkeypatch.undo()
    assert list(made.as_numpy_iterator()) == [0, 2, 4]


def test_autograph_leaves_marked_methods_alone() -> None:
    @untraced
    class Marked:
        def sign(self, x: Any) -> Any:
            return 1 if x > 0 else -1  # AutoGraph would convert it

    assert "autograph_info__" in vars(tf.autograph.experimental.do_not_convert(lambda: None))
    marked = Marked()
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        tf.function(lambda x: marked.sign(x))(tf.constant(1))


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4)])
def test_a_product_in_full_precision(shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    b = np.random.default_rng(1).normal(size=(4, 5)).astype(np.float32)
    found = tf.function(private.dot_in_full_precision, jit_compile=True)(a, b).numpy()
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert (np.abs(found - exact) <= 8 * np.finfo(np.float32).eps * (np.abs(a) @ np.abs(b))).all(), "an order of the sum, and no rounding"


def test_a_strategy_is_seen_on_the_call_stack() -> None:
    probe = Probe(batches())
    tf.distribute.MirroredStrategy(["CPU:0"]).experimental_distribute_dataset(probe)
    assert probe.seen == {"distributes"}


def test_onednn_is_known() -> None:
    assert isinstance(private.is_onednn_build(), bool)


def test_operations_that_the_converter_does_not_know_are_named() -> None:
    function = tf.function(lambda x: tf.raw_ops.PopulationCount(x=x), input_signature=[tf.TensorSpec([2], tf.int32)])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()], function)
    with pytest.raises(Exception, match="PopulationCount") as raised:
        converter.convert()
    assert [error.operator.name for error in private.lite_errors(raised.value)] == ["tf.PopulationCount"]


# Keras


def test_fit_begins_at_the_epoch_that_was_set() -> None:
    made = model()
    assert private_keras.initial_epoch(made) is None
    private_keras.set_initial_epoch(made, 2)
    assert private_keras.initial_epoch(made) == 2
    assert made.fit(batches(), epochs=3, verbose=0).epoch == [2]


def test_keras_is_seen_on_the_call_stack() -> None:
    noted: list[Any] = []

    class Watched(Probe, tf.distribute.DistributedDataset):
        """Batches that Keras takes in Python, under a strategy."""

        def prefetch(self, *_: Any, **__: Any) -> Watched:
            return self

        def __iter__(self) -> Iterator[Any]:
            for batch in self._pipegen_inner:
                given = [found for found in map(private_keras.callbacks_of_fit, callers()) if found is not None]
                noted.append((private_keras.fits(), private_keras.builds_model(), given))
                yield batch

    mine = keras.callbacks.Callback()
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        made = keras.Sequential([keras.layers.Dense(1)])
        made.compile("sgd", "mse", run_eagerly=True)
    made.fit(Watched(batches()), verbose=0, callbacks=[mine])
    assert noted[0] == (True, True, [[mine]])  # only for the shapes
    assert {(fits, builds) for fits, builds, _ in noted[1:]} == {(True, False)}
    assert not private_keras.fits()


def test_keras_sharding_a_dataset_is_seen() -> None:
    distribution = object.__new__(keras.distribution.DataParallel)  # before Keras 3.8 there is none on TensorFlow
    distribution._is_multi_process, distribution._auto_shard_dataset = True, True
    probe = Probe(batches())
    with suppress(Exception):  # it fails later on: there is one process
        distribution.distribute_dataset(probe)
    assert "shards" in probe.seen


def test_a_model_is_built_on_symbolic_tensors() -> None:
    made = keras.Sequential([keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    private_keras.build_symbolically(made, (keras.KerasTensor([4, 2]), keras.KerasTensor([4, 1])))
    assert made.built


def test_every_run_of_an_optimizer_counts() -> None:
    made = keras.Sequential([keras.layers.Input([2]), keras.layers.Dense(1)])
    made.compile(keras.optimizers.SGD(gradient_accumulation_steps=2), "mse")
    made.fit(batches(), epochs=1, verbose=0)
    assert int(keras.ops.convert_to_numpy(private_keras.optimizer_runs(made.optimizer))) == 4
    assert private_keras.optimizer_runs(None) is None
