"""Saves the dataset of a split as a SavedModel, which needs only TensorFlow: a function from an epoch and a step to the rest of that epoch.

It runs the form of derived datasets, which holds no variable of a run and names damaged files. Columns of the data become variables of
the file, so graphs do not grow with the data. Paths are joined to a folder that is an input.
"""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf

from pipegen.backend.process.devices import options_elsewhere
from pipegen.backend.reading.manifest_columns import columns_saved, paths_below
from pipegen.backend.running.execute import Executor
from pipegen.backend.running.walk import Run, plan_elsewhere
from pipegen.errors import InternalError
from pipegen.ops.lowering.graphs import made_for, meanwhile
from pipegen.physical import nodes as p

_PYTHON = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})
_NUMBER, _PATH = tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.string)


def save_dataset(executor: Executor, folder: str, root: str | None) -> Any:
    """Saves the batches of a split.

    The object loaded by `tf.saved_model.load` has the function `batches(epoch, step, root)`, from int64 scalars and the folder of the
    data, which may be omitted, to a dataset.

    Args:
        executor: The executor of the split, for a plan without a cache or Python.
        folder: Where to save.
        root: The absolute folder of all data files, or ""; `None` if the data cannot move.

    Returns:
        The types of a batch, nested as the model takes it.
    """
    plan, columns = plan_elsewhere(executor, p.FIXED.built_on(), columns=False), dict[int, tf.Variable]()
    with tf.init_scope():
        for f in plan.functions:
            if isinstance(f, p.Kernel):  # compiled now, or it would become a part of the function below
                executor.kernel(f.node, f.entry, f.batch)

    def below(epoch: tf.Tensor, step: tf.Tensor, root_now: tf.Tensor) -> tf.data.Dataset:
        inside = (epoch >= 0) & (step >= 0) & (step <= executor.steps)
        if root is None:
            fixed = "the data of this graph cannot be moved to another folder: put a link in the old place; got"
            tf.debugging.Assert(root_now == default, [fixed, root_now])
        tf.debugging.Assert(inside, [f"an epoch has {executor.steps} steps, and epochs and steps are counted from 0; got", epoch, step])
        with made_for("file"), meanwhile(columns_saved, columns), meanwhile(paths_below, (os.fsencode(root or ""), root_now)):
            run = Run(executor, plan)
            batches = run.dataset(run.dataset(tf.data.Dataset.from_tensors((epoch, step))), hands_over=True)
        length = tf.data.experimental.assert_cardinality(tf.constant(executor.steps, tf.int64) - step)
        return batches.apply(length).with_options(options_elsewhere(executor.spec.runtime))

    def batches(epoch: tf.Tensor, step: tf.Tensor, root: tf.Tensor | None = None) -> tf.data.Dataset:
        return traced(epoch, step, default if root is None else root)

    default = tf.constant(os.fsencode(root or ""))
    traced = tf.function(below, autograph=False, input_signature=[_NUMBER, _NUMBER, _PATH])
    graph = traced.get_concrete_function().graph.as_graph_def()
    nodes = [*graph.node, *(node for inner in graph.library.function for node in inner.node_def)]
    found = next((node.name for node in nodes if node.op in _PYTHON), None)
    if found is not None:
        raise InternalError(f"`{found}` calls Python in a graph to be saved")
    module = tf.Module()
    module.batches, module.columns = tf.function(batches, autograph=False), list(columns.values())
    made = module.batches.get_concrete_function(_NUMBER, _NUMBER)
    module.batches.get_concrete_function(_NUMBER, _NUMBER, _PATH)
    policy = tf.saved_model.experimental.VariablePolicy.SAVE_VARIABLE_DEVICES  # the CPU, since datasets run there
    tf.saved_model.save(module, folder, options=tf.saved_model.SaveOptions(experimental_variable_policy=policy))
    return made.structured_outputs.element_spec
