"""Offers what a `Pipeline` has for serving: its evaluation steps in front of a model."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from pipegen.arguments import file_or_folder, got, whole
from pipegen.untraced import untraced

if TYPE_CHECKING:
    import os

    import keras

    from pipegen.backend.datasets.engine import Engine
    from pipegen.backend.datasets.pipeline_dataset import PipelineDataset
    from pipegen.phases.specs import CompiledSpec
    from pipegen.physical.position import Position
    from pipegen.plan.nodes import Plan
    from pipegen.plan.served import Takes
    from pipegen.views.layer import EvaluationLayer
    from pipegen.views.serving import ServedModel


@untraced
class Serves:
    """Puts a pipeline's evaluation steps in front of a model."""

    _compiled: CompiledSpec
    _engine: Engine

    def serving_fn(self, model: keras.Model | None = None, takes: Takes = "bytes", jit: bool = False) -> Any:
        """Returns a `tf.function` from a request to what the model gives, or without a model to what the model would receive.

        It does what `predict_on` does, in plain TensorFlow: no file is read, nothing is drawn, no Python is called. So it can be saved
        with a `tf.Module`, or as an endpoint of a `keras.export.ExportArchive`, and runs where pipegen is not.

        Args:
            model: The model, or `None`.
            takes: How a request brings images: `bytes` of JPEG, PNG, GIF, BMP or WebP files, string `(n,)`, in an argument that is
                called as the feature with `_bytes` behind it, such as `image_bytes`; or decoded `images` of one size, uint8 `(n, height,
                width, channels)`, in an argument that is called as the feature. Tensors come as they are stored, float32 `(n, …)`.
            jit: Whether XLA compiles the steps on batches, for each size of request that comes. Without it the values are those of
                `predict_on` under `runtime: {jit: never}`, bit by bit; with it they are within rounding of that.

        Raises:
            SpecError: For a step that draws, a step in Python, and a feature that no request can bring.
            ModelMismatchError: When the model's inputs do not fit.
        """
        from pipegen.views.serving import serving_fn

        return serving_fn(self._compiled, model, _takes(takes), jit=_flag("jit", jit))

    def export_model(
        self,
        model: keras.Model,
        path: str | os.PathLike[str],
        *,
        takes: Takes = "bytes",
        jit: bool = False,
        top_k: int = 5,
        overwrite: bool = False,
        form: Literal["saved_model", "tflite", "onnx"] = "saved_model",
        image_size: tuple[int, int] | None = None,
    ) -> ServedModel:
        """Writes a model with the evaluation steps in front of it as a SavedModel, which TensorFlow Serving and any TensorFlow load.

        The signature `serving_default` gives `scores` (a model with several outputs: each by its name) and, for a classifier,
        `top_scores`, float32 `(n, k)`, and `top_classes`, string `(n, k)`, best first. The signature `preprocess` gives what the model
        receives. The class names are the asset `class_names.txt`, and `assets.extra/pipegen.json` says what a request brings.

        With `form`, it is one file of TFLite, for one image at a time, or of ONNX, by tf2onnx, which is not a part of pipegen. Both take
        decoded images, give `scores` alone, and resize by rules of their own: values differ by a level here and there. `PATH.json` beside
        it says the rest.

        Args:
            model: The model.
            path: The folder, such as `models/flowers/1`: TensorFlow Serving looks for numbered versions in `models/flowers`.
            takes: As for `serving_fn`.
            jit: As for `serving_fn`; the server then needs XLA.
            top_k: How many classes of the highest scores are given; 0 for none.
            overwrite: Replace what is there, in one step.
            form: `saved_model`, `tflite` or `onnx`.
            image_size: For TFLite and ONNX, height and width of every image, in pixels: with them, more steps have a form there. By
                default images may have any size.

        Raises:
            SpecError: As for `serving_fn`, and for an operation that a converter has no form of.
            ModelMismatchError: When the model's inputs do not fit.
            FileExistsError: For a folder that is not empty, without `overwrite`.
        """
        at, takes, overwrite = file_or_folder("path", path, "models/flowers/1"), _takes(takes), _flag("overwrite", overwrite)
        count, jit = whole("top_k", top_k, 0), _flag("jit", jit)
        if form == "saved_model":
            from pipegen.views.serving import export_saved_model

            if image_size is not None:
                raise ValueError("`image_size` is for TFLite and ONNX; a SavedModel takes images of any size")
            return export_saved_model(self._compiled, model, at, takes=takes, jit=jit, top_k=count, overwrite=overwrite)
        from pipegen.views.converting import NAMES, export_converted

        if form not in NAMES:
            raise ValueError(f"`form` is 'saved_model', 'tflite' or 'onnx', got {got(form)}")
        if takes != "images":
            raise ValueError(f'{NAMES[form]} has no decoder of image files: let a request bring decoded ones, with `takes="images"`')
        if jit:
            raise ValueError(f"`jit` is for a SavedModel; {NAMES[form]} compiles in ways of its own")
        size = None if image_size is None else _size(image_size)
        return export_converted(self._compiled, model, at, form=form, image_size=size, overwrite=overwrite)

    def layer(self) -> EvaluationLayer:
        """Makes a Keras layer that does the evaluation steps on batches, such as `rescale` and `normalize`, inside a model.

        `pipe.dataset(split, stages="element")` feeds such a model: it leaves these steps out. The layer is saved and loaded with the model;
        loading needs pipegen and `from pipegen import EvaluationLayer` before it. A model for places without pipegen: `export_model`.

        Raises:
            SpecError: For evaluation steps that draw.
            RuntimeError: Under another backend of Keras than TensorFlow.
        """
        import keras

        from pipegen.views.layer import EvaluationLayer

        if keras.backend.backend() != "tensorflow":
            raise RuntimeError(f"`layer` needs Keras on TensorFlow, and its backend here is {keras.backend.backend()}: set KERAS_BACKEND")
        return EvaluationLayer(self._layer_config)

    @cached_property
    def _evaluation(self) -> Plan:
        """The plainest plan of the evaluation steps on what the model takes."""
        from pipegen.plan.served import layered_plan

        spec = self._compiled.spec
        return layered_plan(spec.model, spec.loaded.locate.label, self._compiled.manifest.type or spec.model.source.infer())

    @cached_property
    def _layer_config(self) -> dict[str, Any]:
        from pipegen.phases.layered import layer_config

        return layer_config(self._evaluation, self._compiled.plans.values())

    def _before_layer(self, split: str, at: Position, shard: tuple[int, int] | None, device: str | None) -> PipelineDataset:
        """Returns what is left of an epoch of a split, without what the layer does."""
        from pipegen.phases.layered import before_layer

        locate = self._compiled.spec.loaded.locate.label
        plain = before_layer(self._compiled.plans[split], self._evaluation, self._layer_config, locate)
        return self._engine.fixed_unlayered(plain, split, at, shard, device)

    def _layer_mismatches(self, model: keras.Model, split: str, *, element: bool) -> list[str]:
        from pipegen.views.layer import layer_mismatches, layers_in

        if not element and not list(layers_in(model)):
            return []
        return layer_mismatches(model, self._layer_config, split, element=element)


def leaves_steps(stages: Any) -> bool:
    """Returns whether `stages` leaves the steps on batches to a layer: `element` does, `all` does not."""
    if not isinstance(stages, str):
        raise TypeError(f"`stages` is 'all' or 'element', got {got(stages)}")
    if stages not in ("all", "element"):
        raise ValueError(f"`stages` is 'all' or 'element', got {stages!r}")
    return stages == "element"


def _takes(value: Any) -> Literal["bytes", "images"]:
    if not isinstance(value, str):
        raise TypeError(f"`takes` is 'bytes' or 'images', got {got(value)}")
    if value not in ("bytes", "images"):
        raise ValueError(f"`takes` is 'bytes' or 'images', got {value!r}")
    return value  # type: ignore[return-value]


def _size(value: Any) -> tuple[int, int]:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise TypeError(f"`image_size` is (height, width), such as (480, 640), got {got(value)}")
    return whole("image_size[0]", value[0], 1), whole("image_size[1]", value[1], 1)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"`{name}` is True or False, got {got(value)}")
    return value
