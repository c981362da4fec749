"""The smoke set runs with TensorFlow, Keras and pipegen as users have them; other tests take shortcuts, which are told apart here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest
import tensorflow as tf
from tensorflow.core.config import flags

import pipegen

pytestmark = [pytest.mark.tf, pytest.mark.smoke]

TESTS = Path(__file__).resolve().parent
PATCHED = {
    "tensorflow.python.util.tf_stack.extract_stack",
    "tensorflow.python.framework.ops._create_graph_constant",
    "tensorflow.python.framework.auto_control_deps._get_resource_inputs",
}


def replaced() -> Iterator[str]:
    """Functions of TensorFlow, Keras and pipegen, and methods of their classes, whose code is a file of the tests."""
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").partition(".")[0] not in ("tensorflow", "keras", "pipegen"):
            continue
        for name, value in list(vars(module).items()):
            members = vars(value).items() if isinstance(value, type) and value.__module__ == module.__name__ else ()
            for path, function in [(name, value), *((f"{name}.{member}", found) for member, found in members)]:
                if isinstance(function, FunctionType) and function.__code__.co_filename.startswith(f"{TESTS}{os.sep}"):
                    yield f"{module.__name__}.{path}"


def test_the_smoke_set_replaces_nothing_and_has_onednn(as_users: bool) -> None:
    assert pipegen.__version__
    assert tf.constant([1, 2]).shape == (2,)
    found = set(replaced())
    assert flags.config().graph_building_optimization.value() != as_users
    if as_users:
        assert found <= {"pipegen.ops.families.references.files_at"}  # by a fixture that the smoke set does without
        assert os.environ.get("TF_ENABLE_ONEDNN_OPTS") in (None, "1")
        assert "optimization_level" not in os.environ.get("XLA_FLAGS", "")
    else:
        assert found >= PATCHED
