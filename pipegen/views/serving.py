"""Serving: the evaluation steps in front of a model, as a function of requests, as a SavedModel that needs no pipegen, or as a layer."""

from __future__ import annotations

import errno
import json
import logging
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, Signature
from keyword import iskeyword
from pathlib import Path
from typing import Any, Literal

import keras
import tensorflow as tf

from pipegen.backend.process.quiet import without_noise
from pipegen.backend.running.requests import arrange, scope_of, served
from pipegen.diagnostics.catalog import make
from pipegen.errors import ModelMismatchError, SpecError
from pipegen.files import whole_place, write_whole
from pipegen.frozen import dataclass
from pipegen.ops.kinds.base import ExampleClass, Levels, kind_of
from pipegen.ops.lowering.graphs import Target, made_for
from pipegen.ops.stage import StepRef
from pipegen.phases.compilation import optimise
from pipegen.phases.layered import before_layer, layer_config, plan_of_layer, steps_said
from pipegen.phases.specs import BoundSpec
from pipegen.physical.decide import assumed_examples, decide, extent_of
from pipegen.physical.nodes import SERVED, Physical, Setting
from pipegen.plan.evaluation_plans import Takes, served_plan
from pipegen.plan.nodes import Plan
from pipegen.private.tensorflow import lite_errors
from pipegen.release import __version__
from pipegen.spec.expect import one_of
from pipegen.spec.models import PipelineSpec
from pipegen.views.model_check import ending_of, input_mismatches

CLASSES_FILE = "class_names.txt"
ABOUT = Path("assets.extra") / "pipegen.json"  # the description of a SavedModel, in the folder that TensorFlow reserves for others


class Serving:
    """The conversion of requests to the inputs of a model, which may run the steps on batches in a layer of its own.

    With `jit`, XLA compiles these for each size of request. For the errors see `check_model`; messages name the function `who`.

    Attributes:
        features: The feature of each argument of a request.
        request: The type of each argument of a request, with the batch axis.
    """

    def __init__(self, bound: BoundSpec, model: Any, takes: Takes, who: str, *, jit: bool) -> None:
        spec, locate = bound.spec.model, bound.spec.loaded.locate.label
        record = bound.manifest.type or spec.source.infer()
        plain = served_plan(spec, locate, record, takes)
        if holds_layer(model):
            evaluation = served_plan(spec, locate, record, None)
            plain = before_layer(plain, evaluation, layer_config(evaluation, bound.plans.values()), locate)
        self.plan = physical_of(spec, plain, jit=jit)
        self.features: dict[str, str] = {}
        self.request: dict[str, tf.TensorSpec] = {}
        for feature, t in plain.read.items():
            name = f"{feature}_bytes" if t.encoded else feature  # TensorFlow Serving takes and returns `{"b64": …}` for such names
            argument = f"{name}_" if iskeyword(name) else name
            self.features[argument] = feature
            self.request[argument] = tf.TensorSpec([None, *t.shape], tf.as_dtype(t.dtype), argument)
        if model is not None:
            out = {name: tf.TensorSpec([None, *t.shape], tf.as_dtype(t.dtype)) for name, t in self.plan.plan.out.items()}
            check_model(model, arrange(self.plan.plan.emit.output.x, out), who)

    def function(self, then: Callable[[Any], Any] = lambda x: x, target: Target = "file") -> Callable[..., Any]:
        """Makes a function of the arguments of a request, which returns `then` of the model's inputs."""
        run = served(self.plan)

        def serve(*given: Any, **named: Any) -> Any:
            brought = dict(zip(self.request, given, strict=False)) | named
            with made_for(target):
                x = run({feature: tf.convert_to_tensor(brought[argument]) for argument, feature in self.features.items()})
            return then(x)

        parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in self.request]
        vars(serve)["__signature__"] = Signature(parameters)
        return serve

    def traced(self, then: Callable[[Any], Any] = lambda x: x, target: Target = "file") -> Any:
        """Makes the same as a `tf.function` with fixed types."""
        return tf.function(self.function(then, target), input_signature=list(self.request.values()), autograph=False)


def physical_of(spec: PipelineSpec, plain: Plan, *, jit: bool) -> Physical:
    """Compiles an unoptimised plan of evaluation steps to the physical plan for a request."""
    runtime = spec.runtime.model_copy(update={"jit": "auto" if jit else "never"})
    plan = optimise(spec.model_copy(update={"runtime": runtime}), plain, cache=False).plan
    return decide(plan, SERVED, Setting(extent_of(spec, plan, assumed_examples(plan)), 1, jit))


@keras.saving.register_keras_serializable(package="pipegen")
class EvaluationLayer(keras.layers.Layer):
    """The evaluation steps of a pipeline that work on batches; `pipe.layer()` makes it.

    Its input is `x` of `pipe.dataset(split, stages="element")`; its output is the usual input of the model. It has no weights and draws
    nothing. A model with this layer is saved as usual; before loading it, import this class: `from pipegen import EvaluationLayer`.

    Args:
        steps: The steps, as plain values.
        options: Options of every Keras layer, such as `name`.
    """

    def __init__(self, steps: Mapping[str, Any], **options: Any) -> None:
        super().__init__(**{"trainable": False, "autocast": False, "name": "evaluation_steps", **options})
        self.steps = steps
        self._plan = physical_of(*plan_of_layer(steps), jit=False)
        self._run = served(self._plan)

    def call(self, inputs: Any) -> Any:
        """Runs the stages on a batch: a tensor, or a tuple or a map of them."""
        wanted = self._plan.plan.emit.output.x
        if isinstance(wanted, dict):
            given = {name: inputs[key] for key, name in wanted.items()}
        else:
            given = dict(zip([wanted] if isinstance(wanted, str) else wanted, [inputs] if isinstance(wanted, str) else inputs, strict=True))
        return self._run({name: tf.cast(value, self._plan.plan.read[name].dtype) for name, value in given.items()})

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments from which Keras rebuilds it."""
        return {**super().get_config(), "steps": self.steps}


def layers_in(model: Any) -> Iterator[EvaluationLayer]:
    """Yields the `EvaluationLayer`s of a model, at any depth."""
    for layer in getattr(model, "layers", ()):
        if isinstance(layer, EvaluationLayer):
            yield layer
        yield from layers_in(layer)


def holds_layer(model: Any) -> bool:
    """Checks if a model contains an `EvaluationLayer`."""
    return next(layers_in(model), None) is not None


def layer_mismatches(model: Any, own: Mapping[str, Any], split: str, *, element: bool) -> list[str]:
    """Lists mismatches of the layers in a model, for complete batches, or for those of `stages="element"`."""
    held = list(layers_in(model))
    if element and not held:
        return [f"these batches leave {steps_said(own)} to a layer, but the model has none: use `pipe.layer()` behind its input"]
    if held and not element:
        done = f"the model does {steps_said(held[0].steps)} in its layer `{held[0].name}`, but the pipeline has done so already"
        return [f'{done}: feed it `pipe.dataset({split!r}, stages="element")`, or leave the layer out']
    if held and held[0].steps != own:
        made = f"the layer `{held[0].name}` was made by another spec, and does {steps_said(held[0].steps)}"
        return [f"{made}; this spec leaves {steps_said(own)} to it: build the model with its `pipe.layer()`"]
    return []


def check_model(model: Any, given: Any, who: str) -> None:
    """Checks that a model fits the batches of the pipeline, and runs on TensorFlow. Raises `TypeError` for anything but a Keras model;
    `ModelMismatchError` when its inputs do not fit; `RuntimeError` if Keras does not run on TensorFlow."""
    if not hasattr(model, "predict_on_batch"):
        raise TypeError(f"{who} takes a Keras model, got {model!r}")
    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise RuntimeError(f"{who} needs Keras on TensorFlow, and its backend here is {backend}: set KERAS_BACKEND=tensorflow")
    found = input_mismatches(model, given)
    if found:
        raise ModelMismatchError("the model does not fit the pipeline:\n" + "\n".join(f"  - {m}" for m in found))


@dataclass(frozen=True)
class ServedModel:
    """The result of `export_model`."""

    path: Path  # the file or the folder
    form: str  # `saved_model`, `tflite` or `onnx`
    request: Mapping[str, tuple[str, tuple[int | None, ...]]]
    """Dtype and shape of each argument of a request; `None` is any size, and the first axis is the batch."""
    gives: Mapping[str, tuple[str, tuple[int | None, ...]]]  # dtype and shape of each output, by name
    class_names: tuple[str, ...] = ()  # the classes in the order of `scores`, for a classifier

    def __repr__(self) -> str:
        asked, given = (", ".join(f"{name} {_said(t)}" for name, t in side.items()) for side in (self.request, self.gives))
        return f"ServedModel({str(self.path)!r}: {asked} -> {given})"


def _said(t: tuple[str, tuple[int | None, ...]]) -> str:
    return f"{t[0]}[{', '.join('?' if side is None else str(side) for side in t[1])}]"


def types_of(tensors: Mapping[str, Any]) -> dict[str, tuple[str, tuple[int | None, ...]]]:
    """Dtype and shape of each tensor or spec."""
    return {name: (t.dtype.name, tuple(t.shape.as_list())) for name, t in tensors.items()}


class Answers:
    """The named outputs of a model, with the classes of the `top_k` highest scores."""

    def __init__(self, model: Any, bound: BoundSpec, top_k: int) -> None:
        self.model, self.names, self._top_k = model, bound.manifest.class_names, top_k
        target = bound.spec.model.output.y
        outputs: list[Any] = list(getattr(model, "outputs", None) or [])
        units = outputs[0].shape[-1] if len(outputs) == 1 and len(outputs[0].shape) == 2 else None
        record = bound.manifest.type or bound.spec.model.source.infer()
        classified = isinstance(target, str) and target in record and kind_of(record[target]).has(ExampleClass)
        self.binary = classified and units == 1 and len(self.names) == 2 and ending_of(outputs[0]) == "sigmoid"
        """Whether the one score is the probability of the second of two classes."""
        self.ranks = bool(self.names) and classified and (self.binary or units == len(self.names))
        """Whether the scores are those of the classes."""

    def plain(self, x: Any) -> dict[str, tf.Tensor]:
        """Runs the model; returns its outputs by name."""
        y = self.model(x, training=False)
        if isinstance(y, dict):
            return dict(y)
        names = list(getattr(self.model, "output_names", None) or [])
        if isinstance(y, (list, tuple)):
            return dict(zip(names if len(names) == len(y) else [f"output_{i}" for i in range(len(y))], y, strict=True))
        return {"scores": y}

    def ranked(self, x: Any, name_of: Callable[[tf.Tensor], tf.Tensor]) -> dict[str, tf.Tensor]:
        """Runs the model; adds the highest scores of each example and the names of their classes, best first."""
        given = self.plain(x)
        if not self.ranks or not self._top_k:
            return given
        (scores,) = given.values()
        scores = tf.concat([1 - scores, scores], -1) if self.binary else scores
        best = tf.math.top_k(scores, min(self._top_k, len(self.names)))
        return {**given, "top_scores": best.values, "top_classes": name_of(tf.cast(best.indices, tf.int64))}


def export_saved_model(bound: BoundSpec, model: Any, path: Path, *, takes: Takes, jit: bool, top_k: int, overwrite: bool) -> ServedModel:
    """Writes a SavedModel; for the arguments see `Pipeline.export_model`."""
    check_room(path, overwrite=overwrite)
    serving = Serving(bound, model, takes, "export_model", jit=jit)
    answers = Answers(model, bound, top_k)
    archive = keras.export.ExportArchive()
    archive.track(model)
    with tempfile.TemporaryDirectory() as folder:
        name_of: Callable[[tf.Tensor], tf.Tensor] = tf.as_string
        if answers.ranks:
            names = Path(folder) / CLASSES_FILE
            names.write_text("".join(f"{' '.join(name.splitlines())}\n" for name in answers.names), encoding="utf-8")
            whole, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
            table = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(str(names), tf.int64, number, tf.string, whole), "")
            archive.track(table)
            name_of = table.lookup
        signature = list(serving.request.values())
        served = archive.add_endpoint("serving_default", serving.function(lambda x: answers.ranked(x, name_of)), input_signature=signature)
        named = serving.function(lambda x: {f"input_{i}": t for i, t in enumerate(x)} if isinstance(x, tuple) else x)
        archive.add_endpoint("preprocess", named, input_signature=signature)  # signatures need names
        gives = types_of(served.get_concrete_function().structured_outputs)
        done = ServedModel(path, "saved_model", types_of(serving.request), gives, answers.names if answers.ranks else ())
        with whole_place(path, new=not overwrite) as part:
            archive.write_out(str(part), verbose=False)
            (part / ABOUT).parent.mkdir(exist_ok=True)
            (part / ABOUT).write_text(about(done, bound, takes), encoding="utf-8")
    return done


def about(done: ServedModel, bound: BoundSpec, takes: str) -> str:
    """Describes a served model as JSON."""
    known = {
        "version": 1,
        "takes": takes,
        "request": {name: {"dtype": d, "shape": list(s)} for name, (d, s) in done.request.items()},
        "gives": {name: {"dtype": d, "shape": list(s)} for name, (d, s) in done.gives.items()},
        "class_names": list(done.class_names),
        "spec": bound.spec.model.name,
        "spec_hash": bound.spec.hash,
        "data": bound.manifest.fingerprint,
        "pipegen": __version__,
        "tensorflow": tf.version.VERSION,
    }
    return json.dumps(known, indent=2, ensure_ascii=False) + "\n"


def check_room(path: Path, *, overwrite: bool) -> None:
    """Raises `FileExistsError` if a path is taken, without `overwrite`."""
    if not overwrite and (path.is_file() or (path.is_dir() and any(path.iterdir()))):
        raise FileExistsError(errno.EEXIST, "it exists already; replace it with `overwrite`", str(path))


Form = Literal["tflite", "onnx"]
NAMES = {"tflite": "TFLite", "onnx": "ONNX"}
_OPSET = 17  # version of ONNX's operations, which runtimes since 2022 support
_NO_EQUAL = frozenset({"ResizeArea", "ResizeBicubic"})
"""Operations that tf2onnx 1.17 converts wrongly: pixels would differ by up to a fifth of their range, or it would not run."""
_EVERY_LINE = re.compile(rb".*")  # what converters write to standard error; findings report what matters
_Missing = list[tuple[str, str]]  # operations that a converter does not support, each with the name of its node


def export_converted(
    bound: BoundSpec, model: Any, path: Path, *, form: Form, image_size: tuple[int, int] | None, overwrite: bool
) -> ServedModel:
    """Writes the file, and `PATH.json` beside it, which describes a request; for the arguments and errors see `Pipeline.export_model`.

    ONNX without tf2onnx, and an error of tf2onnx, are a `RuntimeError`.
    """
    for file in (path, _beside(path)):
        check_room(file, overwrite=overwrite)
    serving = Serving(bound, model, "images", "export_model", jit=False)
    answers = Answers(model, bound, 0)
    stored, rows = serving.plan.plan.read, 1 if form == "tflite" else None
    for argument, name in serving.features.items():
        shape = serving.request[argument].shape.as_list()[1:]
        if image_size is not None and kind_of(stored[name]).has(Levels):
            shape[:2] = image_size
        serving.request[argument] = tf.TensorSpec([rows, *shape], serving.request[argument].dtype, argument)
    function = serving.traced(answers.plain, "converter")
    content, missing = _CONVERTERS[form](function)
    if missing:
        raise SpecError(list(_findings(missing, form, serving, bound)))
    gives = types_of(function.get_concrete_function().structured_outputs)
    done = ServedModel(path, form, types_of(serving.request), gives, answers.names if answers.ranks else ())
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(_beside(path), about(done, bound, "images"))
    write_whole(path, content)
    return done


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _to_tflite(function: Any) -> tuple[bytes, _Missing]:
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()], function)
    try:
        with without_noise(_EVERY_LINE):
            return converter.convert(), []
    except Exception as error:  # its class is not public
        lost = {
            (e.operator.name.removeprefix("tf."), next((c.name for c in e.location.call if c.name), ""))
            for e in lite_errors(error)
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
        raise RuntimeError("ONNX needs tf2onnx, which is not installed: `pip install tf2onnx`") from None

    graph = function.get_concrete_function().graph.as_graph_def()
    written = [node for nodes in (graph.node, *(f.node_def for f in graph.library.function)) for node in nodes]
    unequal = sorted({(node.op, node.name) for node in written if node.op in _NO_EQUAL})
    if unequal:
        return b"", unequal
    logger = logging.getLogger("tf2onnx")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with without_noise(_EVERY_LINE):
            made, _ = tf2onnx.convert.from_function(function, input_signature=function.input_signature, opset=_OPSET)
    except Exception as error:  # it raises errors of any type for what it does not support
        raise RuntimeError(f"tf2onnx cannot convert this model: {type(error).__name__}: {error}") from error
    finally:
        logger.setLevel(before)

    def nodes(graph: Any) -> Iterator[Any]:
        for node in graph.node:
            yield node
            for attribute in node.attribute:
                yield from nodes(attribute.g)

    # The converter leaves unsupported operations in the graph, and logs them.
    lost = {(n.op_type, n.name) for n in nodes(made.graph) if not n.domain and not onnx.defs.has(n.op_type, _OPSET, "")}
    if not lost:
        onnx.checker.check_model(made, full_check=True)
    return made.SerializeToString(), sorted(lost)


_CONVERTERS: dict[Form, Callable[[Any], tuple[bytes, _Missing]]] = {"tflite": _to_tflite, "onnx": _to_onnx}


def _findings(missing: _Missing, form: Form, serving: Serving, bound: BoundSpec) -> Iterator[Any]:
    """Yields a finding for each step, and for the model, with an unsupported operation."""
    locate = bound.spec.loaded.locate.label
    steps: dict[str, StepRef] = {scope_of(stage): stage.uses()[0] for stage in serving.plan.plan.stages() if stage.uses()}
    by_step: dict[str, list[str]] = {}
    for op, node in missing:
        by_step.setdefault(next((part for part in node.split("/") if part in steps), ""), []).append(op)
    for scope, ops in by_step.items():
        lost = f"{NAMES[form]} does not support {one_of(dict.fromkeys(ops), 'and')}"
        help_ = "export a SavedModel, or use another step, or another method of the step"
        who, path = (f"`{steps[scope].step.op}`", steps[scope].path) if scope else ("the model or the output", ("output",))
        yield make("PG543", f"{lost}, which {who} computes", locate(path, key=True), help=help_)
