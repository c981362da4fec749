"""A step of another package may hold what XLA cannot compile; its kernel runs as plain TensorFlow, which a warning says."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest
from planning import built, compiled, load_spec

from pipegen.ops.transforms.contrast import AutoContrast
from pipegen.ops.transforms.rotation import RandomRotation

pytestmark = pytest.mark.tf


class Foreign(AutoContrast):
    """`auto_contrast` by a function of Python."""

    op = "foreign_auto_contrast"

    def table(self, u, histogram):  # type: ignore[no-untyped-def]
        import tensorflow as tf

        made = super().table(u, histogram)
        return tf.ensure_shape(tf.numpy_function(lambda table: table, [made], made.dtype), made.shape)


def test_what_xla_cannot_compile_runs_as_plain_tensorflow(caplog: pytest.LogCaptureFixture) -> None:
    import tensorflow as tf

    from pipegen.backend.kernels.chain import lower_kernel
    from pipegen.plan.nodes import Kernel

    sections = {"transforms": [{"resize": {"size": [8, 9]}}, "auto_contrast"], "batch": {"size": 4}}
    plan = compiled(built(sections, classes=2), load_spec(sections)).plan
    before, node = next((a, b) for a, b in zip(plan.nodes, plan.nodes[1:], strict=False) if isinstance(b, Kernel))
    stages = tuple(replace(stage, refs=tuple(replace(ref, step=Foreign()) for ref in stage.refs)) for stage in node.stages)  # type: ignore[attr-defined,type-var]
    images = np.random.default_rng(1).integers(0, 256, (4, 8, 9, 3), dtype=np.uint8)

    def run(kernel: Kernel, jit: str) -> np.ndarray:
        return lower_kernel(kernel, before.out, 4, jit)({"image": tf.constant(images), "@draws": tf.zeros([4, 1], tf.float64)})["image"]

    foreign = replace(node, stages=stages)
    with caplog.at_level(logging.WARNING):
        found = run(foreign, "auto")
    assert "XLA could not compile a kernel, so it runs as plain TensorFlow" in caplog.text
    np.testing.assert_array_equal(found, run(node, "always"))
    with pytest.raises((tf.errors.OpError, ValueError)):
        run(foreign, "always")


class ForeignRotation(RandomRotation):
    """`random_rotation` by a function of Python."""

    op = "foreign_random_rotation"

    def matrix(self, u, height, width):  # type: ignore[no-untyped-def]
        import tensorflow as tf

        made = super().matrix(u, height, width)
        return tf.ensure_shape(tf.numpy_function(lambda matrix: matrix, [made], made.dtype), made.shape)


@pytest.mark.nightly
def test_parameters_of_such_a_step_are_not_compiled_in_a_long_run() -> None:
    import tensorflow as tf

    from pipegen.backend.kernels.chain import lower_kernel
    from pipegen.ops.lowering.graphs import long_run, meanwhile
    from pipegen.plan.nodes import Kernel

    sections = {"transforms": [{"resize": {"size": [8, 9]}}, {"random_rotation": {"degrees": 40}}], "batch": {"size": 4}}
    plan = compiled(built(sections, classes=2), load_spec(sections)).plan
    before, node = next((a, b) for a, b in zip(plan.nodes, plan.nodes[1:], strict=False) if isinstance(b, Kernel))
    own = ForeignRotation(degrees=40)
    stages = tuple(replace(stage, refs=tuple(replace(ref, step=own) for ref in stage.refs)) for stage in node.stages)  # type: ignore[attr-defined,type-var]
    images = np.random.default_rng(1).integers(0, 256, (4, 8, 9, 3), dtype=np.uint8)
    features = {"image": tf.constant(images), "@draws": tf.constant(np.random.default_rng(2).random((4, 1)))}

    def run(kernel: Kernel) -> np.ndarray:
        made = lower_kernel(kernel, before.out, 4, "auto")

        @tf.function(autograph=False)
        def late() -> tf.Tensor:
            with meanwhile(long_run, tf.constant(True)):
                return made(features)["image"]

        return late().numpy()

    np.testing.assert_array_equal(run(replace(node, stages=stages)), run(node))
