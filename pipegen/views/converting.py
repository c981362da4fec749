"""A pipeline's evaluation steps in front of a model as a file of TFLite or ONNX, where their converters have a form of every operation."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import tensorflow as tf

from pipegen.backend.running.requests import scope_of
from pipegen.diagnostics.catalog import make
from pipegen.errors import SpecError
from pipegen.ops.kinds.registry import kind_of
from pipegen.spec.words import one_of
from pipegen.views.serving import Answers, ServedModel, Serving, about, check_model, check_room, holds_layer, types_of
from pipegen.whole_files import write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from pipegen.phases.specs import BoundSpec
    from pipegen.plan.stages import StepRef

Form = Literal["tflite", "onnx"]
NAMES = {"tflite": "TFLite", "onnx": "ONNX"}
_OPSET = 17
"""Of ONNX; runtimes since 2022 have it."""
_NO_EQUAL = frozenset({"ResizeArea", "ResizeBicubic"})
"""What tf2onnx 1.17 turns into another operation: pixels would differ by up to a fifth of their range, or it would not run."""
_Missing = list[tuple[str, str]]
"""Operations that a converter has no form of, each with the name of its node."""


def export_converted(
    bound: BoundSpec, model: Any, path: Path, *, form: Form, image_size: tuple[int, int] | None, overwrite: bool
) -> ServedModel:
    """Writes the file, and beside it `PATH.json`, which says what a request brings; for the arguments see `Pipeline.export_model`.

    Raises:
        SpecError: `PG543` where the converter has no form of an operation.
        RuntimeError: For ONNX without tf2onnx, and where that fails.
    """
    for file in (path, _beside(path)):
        check_room(file, overwrite=overwrite)
    serving = Serving(bound, "images", jit=False, layered=holds_layer(model))
    check_model(model, serving.given, "export_model")
    answers = Answers(model, bound, 0)
    stored, rows = serving.plan.plan.read, 1 if form == "tflite" else None
    for argument, name in serving.features.items():
        shape = serving.request[argument].shape.as_list()[1:]
        if image_size is not None and kind_of(stored[name]).levels:
            shape[:2] = image_size
        serving.request[argument] = tf.TensorSpec([rows, *shape], serving.request[argument].dtype, argument)
    function = serving.traced(answers.plain, "converter")
    content, missing = _CONVERTERS[form](function)
    if missing:
        raise SpecError(list(_findings(missing, form, serving, bound)))
    gives = types_of(function.get_concrete_function().structured_outputs)
    done = ServedModel(path, form, types_of(serving.request), gives, answers.names if answers.ranks else ())
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(_beside(path), json.dumps(about(done, bound, "images"), indent=2, ensure_ascii=False) + "\n")
    write_whole(path, content)
    return done


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _to_tflite(function: Any) -> tuple[bytes, _Missing]:
    from tensorflow.lite.python.convert import ConverterError

    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()], function)
    try:
        with _quiet():
            return converter.convert(), []
    except ConverterError as error:
        lost = {
            (e.operator.name.removeprefix("tf."), next((c.name for c in e.location.call if c.name), ""))
            for e in error.errors
            if e.operator.name.startswith("tf.") and "neither a custom op nor a flex op" in e.error_message
        }
        if not lost:
            raise
        return b"", sorted(lost)


def _to_onnx(function: Any) -> tuple[bytes, _Missing]:
    try:
        import onnx
        import tf2onnx
    except ImportError:
        raise RuntimeError("ONNX is written by tf2onnx, which is not installed here; `pip install tf2onnx`") from None

    graph = function.get_concrete_function().graph.as_graph_def()
    written = [node for nodes in (graph.node, *(f.node_def for f in graph.library.function)) for node in nodes]
    unequal = sorted({(node.op, node.name) for node in written if node.op in _NO_EQUAL})
    if unequal:
        return b"", unequal
    logger = logging.getLogger("tf2onnx")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with _quiet():
            made, _ = tf2onnx.convert.from_function(function, input_signature=function.input_signature, opset=_OPSET)
    except Exception as error:  # it meets what it does not know with whatever its code runs into
        raise RuntimeError(f"tf2onnx cannot convert this model: {type(error).__name__}: {error}") from error
    finally:
        logger.setLevel(before)

    def nodes(graph: Any) -> Iterator[Any]:
        for node in graph.node:
            yield node
            for attribute in node.attribute:
                yield from nodes(attribute.g)

    # What the converter does not know it leaves in the graph, and logs.
    lost = {(n.op_type, n.name) for n in nodes(made.graph) if not n.domain and not onnx.defs.has(n.op_type, _OPSET, "")}
    if not lost:
        onnx.checker.check_model(made, full_check=True)
    return made.SerializeToString(), sorted(lost)


_CONVERTERS: dict[Form, Callable[[Any], tuple[bytes, _Missing]]] = {"tflite": _to_tflite, "onnx": _to_onnx}


def _findings(missing: _Missing, form: Form, serving: Serving, bound: BoundSpec) -> Iterator[Any]:
    """Yields a finding for each step, and for the model, that an operation is missing for."""
    locate = bound.spec.loaded.locate.label
    steps: dict[str, StepRef] = {scope_of(stage): stage.uses()[0] for stage in serving.plan.plan.stages() if stage.uses()}
    by_step: dict[str, list[str]] = {}
    for op, node in missing:
        by_step.setdefault(next((part for part in node.split("/") if part in steps), ""), []).append(op)
    for scope, ops in by_step.items():
        lost = f"{NAMES[form]} has no form of {one_of(dict.fromkeys(ops), 'and')}"
        help_ = "export a SavedModel, or use a step, or a method of the step, that does without"
        if scope:
            ref = steps[scope]
            yield make("PG543", f"{lost}, which `{ref.step.op}` computes", locate(ref.path, key=True), help=help_)
        else:
            yield make("PG543", f"{lost}, which the model or the output computes", locate(("output",), key=True), help=help_)


@contextmanager
def _quiet() -> Iterator[None]:
    """Holds back what converters write to the process's standard error: what matters of it is said in a finding."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
