"""Predictions on unlabelled data, and test-time augmentation."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import tensorflow as tf

from pipegen.arguments import got, one_of, whole
from pipegen.backend.datasets.pipeline_dataset import PipelineDataset, fixed_dataset
from pipegen.backend.datasets.requested import Augmented, together
from pipegen.backend.reading import damage
from pipegen.backend.reading.mixed_records import records_of_plan
from pipegen.backend.reading.split_records import Records
from pipegen.backend.running.execute import Executor
from pipegen.data.buckets import InBuckets, in_buckets
from pipegen.data.fingerprint import example_ids
from pipegen.data.image_sides import ignores_exif, image_of
from pipegen.data.lengths import lengths_of
from pipegen.diagnostics.catalog import make
from pipegen.errors import OpError, SpecError
from pipegen.frozen import dataclass
from pipegen.memory import ram_budget
from pipegen.ops.families.combining import CombiningTransform, on_split
from pipegen.ops.families.decoder import Decodes
from pipegen.ops.families.fitted import FittedTransform
from pipegen.ops.kinds.base import Levels, Samples, having, kind_of
from pipegen.ops.kinds.image import read_image
from pipegen.ops.sampling_sections import Buckets
from pipegen.ops.sources.annotations.sizes import sides_of
from pipegen.ops.sources.class_folders import AudioFolder, ImageFolder
from pipegen.ops.sources.features.feature import ArrayFeature
from pipegen.ops.sources.listing.reader import FileReader, Reader
from pipegen.ops.sources.listing.rows import Rows
from pipegen.ops.sources.records.archives import LISTS
from pipegen.ops.stage import step_kwargs
from pipegen.ops.traits import ANY_IMAGE, Family
from pipegen.ops.transform import Transform
from pipegen.phases.compilation import optimise, read_once
from pipegen.phases.hosts import resolve_share
from pipegen.phases.specs import BoundSpec
from pipegen.physical.extent import Extent, Position
from pipegen.plan.check import build_split, possible_types
from pipegen.plan.evaluation_plans import unlabelled_plan
from pipegen.plan.lanes import first_view
from pipegen.plan.nodes import Plan
from pipegen.spec.lengths import bucketed_feature, with_longest
from pipegen.spec.load import load
from pipegen.spec.models import PipelineSpec
from pipegen.spec.step_list import ids_of
from pipegen.types import ElementType, FeatureType

How = Literal["mean", "geometric", "max", "vote"]
_EDITS = ("set", "replace", "remove", "before", "after", "append")
_ENDING = (Family.POINTWISE, FittedTransform.family)
"""Families of the closing steps, whose output the model takes; a view inserts its steps before them."""


def specs_of_views(spec: PipelineSpec, views: Any, hosts: int = 1, examples: int | None = None) -> list[tuple[PipelineSpec, int]]:
    """Makes the spec of each view, and the epoch of its draws.

    A batch has so many `examples`; by default, all views together have about as many rows as a batch of the spec.

    Raises:
        SpecError: With every finding about the steps of a view.
        TypeError: For views of the wrong type.
    """
    if isinstance(views, int) and not isinstance(views, bool):
        drawn = tuple(_everywhere(step) for step in spec.transforms if not isinstance(step, CombiningTransform))
        steps = [drawn] * whole("views", views, 1)
    elif isinstance(views, (Mapping, Sequence)) and not isinstance(views, (str, bytes)) and views:
        steps = [_edited(spec.transforms, each) for each in (views.values() if isinstance(views, Mapping) else views)]
    else:
        raise TypeError(f"`views` is a number, or a list of views such as [[], ['flip']], got {got(views)}")
    size = max(spec.batch.size // len(steps) // hosts, 1) * hosts if examples is None else whole("examples", examples, 1)
    batch = spec.batch.model_copy(update={"size": size})
    runtime = spec.runtime.model_copy(update={"cache": "none"})
    changes = [{"transforms": own, "batch": batch, "runtime": runtime} for own in steps]
    return [(spec.model_copy(update=each), epoch) for epoch, each in enumerate(changes)]


def _everywhere(step: Transform) -> Transform:
    """Makes a random step run on every split, unless it has a `when` of its own."""
    return step.model_copy(update={"when": "all"}) if step.random and step.when is None else step


def _edited(steps: tuple[Transform, ...], view: Any) -> tuple[Transform, ...]:
    if isinstance(view, Mapping) and view and set(view) <= set(_EDITS):
        return _carried_out(steps, view)
    added = _parsed(view)
    place = 0
    for number, step in enumerate(steps, 1):
        acts = on_split(step, "predict")  # outside training
        if acts and step.traits(ANY_IMAGE).family not in _ENDING:
            place = number
    return (*steps[:place], *added, *steps[place:])


def _carried_out(steps: tuple[Transform, ...], edits: Mapping[str, Any]) -> tuple[Transform, ...]:
    """Edits steps by their ids, as a spec edits those of its base."""
    ids = list(ids_of(steps))
    named = {name for key in _EDITS[:-1] for name in edits.get(key, ())}
    unknown = sorted(named - set(ids))
    if unknown:
        raise ValueError(f"a view edits {', '.join(map(repr, unknown))}, but the steps are {', '.join(ids)}")
    new = {key: {name: _parsed(value) for name, value in edits.get(key, {}).items()} for key in ("replace", "before", "after")}
    set_: Mapping[str, Mapping[str, Any]] = edits.get("set", {})
    found: list[Transform] = []
    for own, step in zip(ids, steps, strict=True):
        changed = _parsed({step.op: {**step_kwargs(step), **set_[own]}}) if own in set_ else (step,)
        kept = () if own in edits.get("remove", ()) else new["replace"].get(own, changed)
        found += [*new["before"].get(own, ()), *kept, *new["after"].get(own, ())]
    return (*found, *_parsed(edits.get("append", ())))


def _parsed(given: Any) -> tuple[Transform, ...]:
    """Parses the steps of a view: none, one, or a list, as in a spec."""
    listed = list(given) if isinstance(given, (list, tuple)) else [given] if given else []
    if not listed:
        return ()
    loaded = load({"pipegen": 1, "source": {"image_folder": {"path": "."}}, "transforms": listed}, env={})
    if loaded.spec is None:
        raise SpecError(loaded.diagnostics.sorted())
    return tuple(_everywhere(step) for step in loaded.spec.transforms)


def tta(bound: BoundSpec, split: str, views: Any, examples: int | None) -> Augmented:
    """Makes several views of each example of a split; see `Pipeline.tta`."""
    spec, manifest, locate = bound.spec.model, bound.manifest, bound.spec.loaded.locate.label
    shard = resolve_share(spec.runtime).pair

    def made(model: PipelineSpec, epoch: int) -> PipelineDataset:
        record = possible_types(model, len(manifest.class_names) or None, manifest.record)[0]
        model, where = first_view(model, locate, record)
        built = build_split(model, split, where, record)
        if built.plan is None:
            raise SpecError(built.findings)
        plan = read_once(model, built.plan, manifest)
        records = records_of_plan(manifest, split, plan, model.runtime)
        buckets = in_buckets(model, manifest, split) if plan.buckets else None
        treatment = damage.Treatment(None, bound.spec.where, damage.advice(split, skips=False))
        executor = Executor(plan, model, records, shard, damage=treatment, buckets=buckets)
        return fixed_dataset(executor, Position(epoch))

    with tf.init_scope():  # called while a function is traced, they would belong to its graph
        return together([made(*each) for each in specs_of_views(spec, views, shard[1], examples)])


def merged(predictions: Any, views: Any, how: How) -> Any:
    """Merges the rows of the views of each example; see `Pipeline.merge`."""
    one_of("how", how, get_args(How))
    if isinstance(views, Augmented):
        count = views.views
    else:
        listed = isinstance(views, (Mapping, Sequence)) and not isinstance(views, (str, bytes))
        count = whole("views", len(views) if listed else views, 1)

    def one(predicted: Any) -> Any:
        rows = np.asarray(predicted)
        if len(rows) % count:
            raise ValueError(f"{len(rows)} rows of predictions are not a multiple of {count} views")
        return _WAYS[how](rows.reshape(-1, count, *rows.shape[1:]))

    return _on_each(predictions, one, "__array__", "view of each example")


def _on_each(predictions: Any, function: Callable[[Any], Any], needs: str, row: str) -> Any:
    """Applies a function to an array of predictions, or to each array in a list or map."""

    def checked(own: Any) -> Any:
        if isinstance(own, (str, bytes)) or not hasattr(own, needs) or getattr(own, "ndim", 1) == 0:
            raise TypeError(f"`predictions` must be an array from `model.predict`, with a row for each {row}, got {got(own)}")
        return function(own)

    return tf.nest.map_structure(checked, predictions)


def _mean(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    kept = rows.dtype if rows.dtype.kind == "f" else np.dtype(np.float32)
    return rows.mean(1, dtype=np.float64).astype(kept)


def _geometric(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Geometric mean of probabilities, scaled so that the classes sum to 1."""
    found = np.exp(np.log(np.maximum(rows.astype(np.float64), 1e-30)).mean(1))
    if rows.ndim > 2 and rows.shape[-1] > 1:
        found /= found.sum(-1, keepdims=True)
    return found.astype(rows.dtype if rows.dtype.kind == "f" else np.float32)


def _vote(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Share of the views in which each class has the highest score; for a single score, in which it is above 0.5."""
    if rows.shape[-1] == 1 or rows.ndim == 2:
        return _mean((rows > 0.5).astype(np.float32))
    return np.eye(rows.shape[-1], dtype=np.float32)[rows.argmax(-1)].mean(1, dtype=np.float64).astype(np.float32)


_WAYS: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "mean": _mean,
    "geometric": _geometric,
    "max": partial(np.max, axis=1),
    "vote": _vote,
}


_Stored = tuple[Sequence[str], Sequence[str], np.ndarray[Any, Any] | None, Reader]
"""Names and keys of the records, their rows if they are no files, and their reader."""
Wanted = str | os.PathLike[str] | Sequence[Any] | np.ndarray[Any, Any]


@dataclass(frozen=True)
class Predictions:
    """The result of `predict_on`.

    Attributes:
        dataset: Batches of inputs, for `model.predict`.
        files: The file of each row, in order; for arrays, their positions as text. With several views, the file of each merged row.
            With `batch.buckets`, they are grouped by bucket.
    """

    dataset: PipelineDataset | Augmented
    files: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.files)

    def __repr__(self) -> str:
        return f"Predictions({len(self.files)} rows, {self.dataset.element_spec})"


def predict_on(bound: BoundSpec, wanted: Any, views: Any = None) -> Predictions:
    """Runs the evaluation steps of a spec on unlabelled data: a folder, a file, a list of files, or images as arrays.

    A pipeline of arrays takes images as rows of an array.

    Raises:
        SpecError: For an empty list or folder, and for a missing file.
        TypeError: For an array that is not an image of the type that the plan decodes.
    """
    spec, manifest = bound.spec.model, bound.manifest
    arrays = manifest.type is not None and manifest.listing.location.kind == "row" and not any(t.encoded for _, t in manifest.type.items())
    rows, type_ = rows_like(manifest.type, wanted) if manifest.type is not None and arrays else (None, None)
    type_ = type_ or with_longest(spec.source.infer(), manifest.type)
    each = [(spec, 0)] if views is None else specs_of_views(spec, views)
    plans = [optimise(own, unlabelled_plan(own, bound.spec.loaded.locate.label, type_), cache=False).plan for own, _ in each]
    with tf.init_scope():  # called while a function is traced, they would belong to its graph
        names, keys, places, reader = _numbered(rows) if rows is not None else _stored(wanted, plans[0])
        buckets = _buckets(spec, plans[0].split, wanted, names) if plans[0].buckets else None
        found, treatment = [], damage.Treatment(None, bound.spec.where, "leave it out of the list")
        for (own, epoch), plan in zip(each, plans, strict=True):
            features = tuple(name for name, _ in plan.read.items())
            records = Records(names, example_ids("predict", keys), None, 0.0, reader, features, ram_budget(spec.runtime), places)
            found.append(fixed_dataset(Executor(plan, own, records, damage=treatment, buckets=buckets), Position(epoch)))
        ordered = names if buckets is None else [names[i] for i in buckets.members.tolist()]
        return Predictions(found[0] if views is None else together(found), tuple(ordered))


def _buckets(spec: PipelineSpec, split: str, wanted: Wanted, names: Sequence[str]) -> InBuckets:
    """Assigns each image or sound to a bucket by its own size: the array's, or that in the file's header."""
    images: Any = wanted
    arrays = not isinstance(wanted, (str, os.PathLike)) and hasattr(images[0], "shape")
    name = bucketed_feature(spec)
    if name is not None:
        decoder: Any = spec.source.decoders()[name]
        lengths: Any = np.array([len(sound) for sound in images], np.int64) if arrays else lengths_of(decoder, names)
        return InBuckets.by_length(spec, split, spec.source.infer()[name], lengths)
    assert isinstance(spec.batch.buckets, Buckets)  # noqa: S101 - its plan has some, of images
    if arrays:
        sides = [image.shape[:2] for image in images]
    else:
        found = [sides_of(name) for name in names]
        stored = ignores_exif(spec, image_of(spec))
        sides = [(np.nan, np.nan) if own is None else (own.stored if stored else own.upright)[::-1] for own in found]
    return InBuckets.by_size(spec.batch.buckets.sizes, np.array(sides, np.float64))


def _stored(wanted: Wanted, plan: Plan) -> _Stored:
    """Lists files, or encodes arrays for a pipeline of files."""
    of_sounds = bool(having(plan.read, Samples))
    if isinstance(wanted, (str, os.PathLike)):
        path = Path(wanted)
        if path.is_file() and path.suffix.lower() not in LISTS:
            return _files([str(path)])
        try:
            folder = AudioFolder(path=str(path), labels="none", rate=1) if of_sounds else ImageFolder(path=str(path), labels="none")
            listing = folder.list(Path.cwd())
        except OpError as error:
            raise SpecError([make(error.code, error.message, help=error.help or ())]) from None
        return listing.location.paths, listing.keys, listing.location.rows, listing.reader()
    if isinstance(wanted, np.ndarray) and wanted.ndim == 3 and wanted.shape[-1] in (1, 3) and not of_sounds:
        raise TypeError(f"an array of shape {wanted.shape} looks like one image; predict_on takes several: wrap it in a list")
    if not isinstance(wanted, (np.ndarray, Sequence)) or isinstance(wanted, bytes):
        raise TypeError(f"predict_on takes a folder, a file, a list of files or images as arrays, got {type(wanted).__name__}")
    items = list(wanted)
    if not items:
        raise SpecError([make("PG402", "nothing to predict on: the list is empty")])
    if all(isinstance(item, (str, os.PathLike)) for item in items):
        return _files([os.fspath(item) for item in items])
    stage = next(st for st in plan.stages() if isinstance(st, Decodes))
    like = stage.decode.step.infer(plan.read[stage.feature])  # a decoded image or sound
    encode = _encode_sound if of_sounds else _encode
    images = np.array([encode(np.asarray(item), i, like) for i, item in enumerate(items)], object)
    return _numbered(Rows({name: images for name, _ in plan.read.items()}))


def rows_like(record: ElementType, wanted: Any) -> tuple[Rows, ElementType]:
    """Reads images or sounds for a pipeline that was built on arrays: the rows, and the type of a row.

    Shapes are `(n, height, width, channels)`, or `(n, height, width)` for gray; or a list of images of one size. Those of sounds are
    `(n, frames, channels)` or `(n, frames)`.

    Raises:
        TypeError: For anything else, and for another dtype, another number of channels or values outside the range.
    """
    name, like = next((name, record[name]) for name in (*having(record, Levels), *having(record, Samples)))
    items = wanted if isinstance(wanted, (list, tuple)) else [wanted]
    if any(isinstance(item, (str, bytes, os.PathLike)) for item in items):
        raise TypeError("this pipeline was built on arrays, so predict_on takes images as an array or as a list of arrays of one size")
    kind = kind_of(like)
    if kind.samples is not None:
        given: dict[str, Any] = {"channels": like.shape[1]} if "channels" in kind.arguments else {}
        feature = ArrayFeature(kind=like.kind, **given, **kind.arguments_of(like))
        try:
            column = kind.read_array(name, feature, wanted, lambda row: f"row {row}")
        except OpError as error:
            raise TypeError(f"{error.message}; {error.help}" if error.help else error.message) from None
        if any(due not in (None, side) for due, side in zip(like.shape, column.type.shape, strict=True)):
            raise TypeError(f"the {kind.plural} of `{name}` need the shape {_listed(like.shape)}, not {_listed(column.type.shape)}")
        return Rows({name: column.values}), ElementType(((name, column.type.with_(interval=like.interval)),))
    bounds = like.interval if like.dtype == "float32" else None
    feature = ArrayFeature(kind="image", channels=like.channels, range=(bounds.low, bounds.high) if bounds is not None else None)
    try:
        array, found = read_image(name, feature, wanted)
    except OpError as error:
        raise TypeError(f"{error.message}; {error.help}" if error.help else error.message) from None
    if found.dtype != like.dtype:
        raise TypeError(f"the images are {found.dtype}, but the pipeline was built on {like.dtype}")
    return Rows({name: array}), ElementType(((name, found.with_(interval=like.interval)),))


def _listed(shape: tuple[int | None, ...]) -> str:
    """Formats the shape of several rows."""
    return f"(n, {', '.join('any' if side is None else str(side) for side in shape)})"


def _numbered(rows: Rows) -> _Stored:
    names = [str(i) for i in range(len(next(iter(rows.arrays.values()))))]
    return names, names, np.arange(len(names)), rows


def _files(paths: list[str]) -> _Stored:
    missing = [p for p in paths if not Path(p).is_file()]
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise SpecError([make("PG401", f"{len(missing)} of {len(paths)} files do not exist: {shown}")])
    return paths, paths, None, FileReader()


def _encode(image: np.ndarray[Any, Any], position: int, like: FeatureType) -> bytes:
    """Encodes an image losslessly, so that arrays and files share one path."""
    channels = (1, 3, 4) if like.channels == 4 else (1, 3)
    if image.dtype != like.dtype or image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[-1] not in channels):
        wanted = f"{like.dtype} images of shape height × width × {' or '.join(map(str, channels))}"
        raise TypeError(f"image {position} is {image.dtype} of shape {image.shape}; predict_on takes {wanted}")
    return tf.io.encode_png(image if image.ndim == 3 else image[..., None], compression=1).numpy()


def _encode_sound(sound: np.ndarray[Any, Any], position: int, like: FeatureType) -> bytes:
    """Encodes samples as a file that holds them as they are."""
    values, samples = sound[..., None] if sound.ndim == 1 else sound, kind_of(like).samples
    if sound.dtype.kind != "f" or values.ndim != 2 or values.shape[1] not in (1, like.shape[1]) or samples is None:
        due = f"floats of shape frames × {like.shape[1]}"
        raise TypeError(f"sound {position} is {sound.dtype} of shape {sound.shape}; predict_on takes {due}")
    return samples.encode(values, like, "png", 0)


def rows_kept(predictions: Any, count: int, order: Extent | None) -> Any:
    """Removes padding rows from predictions: an array, or a list or map of arrays for a model with several outputs.

    Padding follows the `count` rows of examples or, with the `order` of buckets, the rows of each bucket.
    """
    rows: slice | np.ndarray[Any, Any] = slice(count)
    if order is not None:
        begins = np.cumsum([0, *(steps * order.batch for steps in order.bucket_steps)])
        rows = np.concatenate([begin + np.arange(n) for begin, n in zip(begins, order.buckets, strict=False)])
    return _on_each(predictions, lambda own: own[rows], "__getitem__", "example")
