"""`image_dataset_from_directory` and `audio_dataset_from_directory`, Keras' utilities, on a pipeline. Importing this imports TensorFlow."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from pipegen.api.building import _built
from pipegen.api.pipeline import Pipeline
from pipegen.arguments import one_of
from pipegen.backend.datasets.pipeline_dataset import DerivedDataset, Explains
from pipegen.compat.checks import UnsupportedArgument, image_data_format
from pipegen.compat.flow_specs import channels_of
from pipegen.compat.recognised import NotProved, recognised
from pipegen.data.lengths import with_lengths, with_longest
from pipegen.data.manifest import Manifest
from pipegen.errors import SpecError
from pipegen.frozen import dataclass
from pipegen.lazy import np, tf
from pipegen.ops.arguments.geometry import OVERSHOOTS
from pipegen.ops.lowering.library import UnreadableError
from pipegen.ops.lowering.sounds import stored_sound
from pipegen.ops.registry import transforms
from pipegen.ops.sources.listing.base import Listing, Location
from pipegen.ops.step_bases import GeometricTransform
from pipegen.ops.traits import IMAGE_224
from pipegen.phases.compilation import collect_data, load
from pipegen.phases.specs import Spec
from pipegen.private.functions import untraced
from pipegen.spec.peers.objects import BYTES, Steps
from pipegen.terminal import log, say
from pipegen.waiting import WATCHERS, Waiting

if TYPE_CHECKING:
    from pipegen.backend.datasets.grain_batches import GrainBatches

Labels = Literal["int", "categorical", "binary"]
_HEADERS = 100  # files whose rate and channels are looked at
_METHODS = ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")
_OF_MAP = frozenset({"num_parallel_calls", "deterministic", "name"})
_SUBSETS = {"training": "train", "validation": "validation"}


@dataclass(frozen=True)
class Utility:
    """What tells one of Keras' utilities from another."""

    formats: tuple[str, ...]  # the endings of the files
    plural: str  # what they hold
    sections: Callable[[Mapping[str, Any], Sequence[str]], dict[str, Any]]  # of the spec, from the arguments and the paths of the files
    element: Callable[[dict[str, Any], str], tuple[Sequence[int | None], tuple[float, float] | None]]
    """From the sections and the data format to the shape of a float32 input, and the range of its values; `None` if it is not known."""
    input: Callable[[Any, str], Any]  # from the `x` of a batch, and the data format, to Keras' input
    ragged: bool = False  # whether inputs of a batch differ in length


@dataclass(frozen=True)
class Recipe:
    """What a dataset reads and does, before it is built."""

    listing: Listing  # all files, in the order of a spec
    members: Mapping[str, Any]  # the places of the files of each split
    split: str
    sections: dict[str, Any]  # of the spec
    paths: list[str]  # the files of the split, in Keras' order
    class_names: list[str] | None
    mode: Labels | None
    data_format: str
    batched: bool
    numbered: bool  # whether `labels` was a list
    element_spec: Any
    range: tuple[float, float] | None  # of the values of the input; `None` if not known
    utility: Utility
    verbose: bool
    exact: bool  # whether each layer resamples
    repeats: int = 1  # the epochs of an iteration; -1 is endless
    cut: bool = False  # whether files were taken or skipped

    @property
    def length(self) -> int:
        """Number of elements of an iteration; -1 is endless."""
        return -1 if self.repeats < 0 else self.epoch * self.repeats

    @property
    def epoch(self) -> int:
        """Number of elements of an epoch."""
        batch, count = self.sections["batch"], len(self.paths)
        full, rest = divmod(count, batch["size"])
        rest *= batch["remainder"] == "keep"
        return full + bool(rest) if self.batched else full * batch["size"] + rest

    @property
    def draws(self) -> bool:
        """Whether a step is random."""
        return any(transforms()[next(iter(step))].random for step in self.sections["transforms"])

    def pipeline(self) -> Pipeline:
        def built(spec: Spec) -> Pipeline:
            manifest, place = Manifest(self.listing, self.members, next(iter(self.sections["source"]))), spec.loaded.locate.label
            manifest, _ = with_lengths(spec.model, manifest, place)
            return _built(spec, with_longest(spec.model, manifest, place)[0], built, None, None)

        cache = self.sections.get("runtime", {}).get("cache", {})
        return built(load(self.sections, allow_write=[cache["disk"]] if cache else ()))

    def part(self, begin: int, end: int | None) -> Recipe | None:
        """The recipe with some elements alone, if each epoch has the same; `None` if it has none, or they are not whole batches."""
        shuffled = self.split == "train" and self.sections.get("shuffle") != "none"
        cut_off = not self.batched and self.sections["batch"]["remainder"] == "drop"
        size = self.sections["batch"]["size"] if self.batched else 1
        where = slice(begin * size, None if end is None else end * size)
        paths = self.paths[where]
        if shuffled or cut_off or self.repeats != 1 or begin < 0 or not paths:
            return None
        return replace(self, paths=paths, members={**self.members, self.split: self.members[self.split][where]}, cut=True)

    def grain(self) -> GrainBatches:
        """The batches as a dataset of Grain, with `class_names` and `file_paths`."""
        from pipegen.backend.datasets.grain_batches import GrainBatches

        made: Any = GrainBatches(self.pipeline(), self.split, self.as_keras())
        made.class_names, made.file_paths = self.class_names, self.paths
        return made

    def as_keras(self) -> Any:
        """The function that gives a batch Keras' types and shapes."""
        utility, form, mode = self.utility, self.data_format, self.mode

        def alone(x: Any) -> Any:
            return utility.input(x, form)

        def labelled(x: Any, y: tf.Tensor) -> tuple[Any, tf.Tensor]:
            if mode == "binary":
                y = tf.cast(y, tf.float32)[:, None]
            return utility.input(x, form), tf.cast(y, tf.int32) if mode == "int" else y

        return alone if mode is None else labelled

    def described(self) -> dict[str, Any]:
        """The sections, if a spec reads the same files. Raises `UnsupportedArgument`."""
        if self.cut:
            raise UnsupportedArgument("take", "a spec has no part of a split", "name the files in a table with a column for the split")
        if self.numbered:
            raise UnsupportedArgument("labels", "a spec has no list of labels", "write files and labels to a table, and read it with `csv`")
        manifest, ours = collect_data(load(self.sections)), {split: {*self.listing.keys.take(own)} for split, own in self.members.items()}
        keys = {*manifest.listing.keys}
        odd = sorted(keys ^ set().union(*ours.values()))
        if odd:
            whose = "a spec reads" if odd[0] in keys else "Keras reads, and a spec does not,"
            why = f"{whose} {odd[0]!r}" + (f" and {len(odd) - 1} more such file{'s' * (len(odd) > 2)}" if odd[1:] else "")
            raise UnsupportedArgument("directory", why, "move it, or read the folder with a spec of your own")
        if any({*manifest.keys(split)} != own for split, own in ours.items()):
            why = "without it, validation is the end of the sorted list, which no method of `splits` takes"
            raise UnsupportedArgument("shuffle", why, "leave `shuffle` out, or name the files in a table with a column for the split")
        return self.sections

    def mapped(self, function: Any) -> Recipe:
        """The recipe with what a function does. Raises `NotProved`."""
        if self.data_format == "channels_first":
            raise NotProved("channels come first")
        if self.utility is not IMAGES:
            raise NotProved("only layers on images become steps")
        found = recognised(function, self.element_spec, self.range)
        steps = [self._everywhere(self._exactly(step)) for step in found.steps]
        sections, mode = {**self.sections, "transforms": [*self.sections["transforms"], *steps]}, self.mode
        if found.one_hot is not None:
            if mode != "int" or found.one_hot != len(self.class_names or ()):
                raise NotProved("labels are encoded for another number of classes")
            mode, sections["output"] = "categorical", {**sections["output"], "encode": {"label": "one_hot"}}
        try:
            load(sections)
        except SpecError as error:
            raise NotProved(f"pipegen refuses the step: {error.diagnostics[0].message}") from None
        return replace(self, sections=sections, mode=mode, element_spec=found.element_spec, range=found.range)

    def stepped(self, steps: Iterable[dict[str, Any]]) -> Recipe:
        """The recipe with more steps. Raises `SpecError`."""
        sections = {**self.sections, "transforms": [*self.sections["transforms"], *map(self._everywhere, steps)]}
        load(sections)
        return replace(self, sections=sections, range=None)

    def _exactly(self, step: dict[str, Any]) -> dict[str, Any]:
        """The step of a layer, which resamples by itself if so asked."""
        ((op, arguments),) = step.items()
        resamples = (
            issubclass(transforms()[op], GeometricTransform) and not transforms()[op](**arguments).traits(IMAGE_224).moves_pixels_only
        )
        return {op: {**arguments, "exact": True}} if self.exact and resamples else step

    def _everywhere(self, step: dict[str, Any]) -> dict[str, Any]:
        """The step as it was called, so that a random one also changes images that are not for training."""
        ((op, arguments),) = step.items()
        random = self.split != "train" and op in transforms() and transforms()[op].random
        return {op: {**arguments, "when": "all"}} if random else step


@untraced
class DirectoryDataset(Explains):
    """Batches of a folder of images or sounds: a `tf.data.Dataset`. The pipeline is built when they are asked for.

    `map` with a function of Keras' layers, `cache`, `shuffle`, `batch`, `unbatch`, `prefetch`, `repeat`, `take` and `skip` become parts of
    the pipeline where they mean the same. Anything else runs as it is, on top of it, and a line of the log says from where on.

    Attributes:
        class_names: The classes, in the order of their indices; `None` without labels.
        file_paths: The files, in Keras' order; that of batches, unless they are shuffled.
    """

    def __init__(self, recipe: Recipe) -> None:
        super().__init__(tf.data.experimental.to_variant(tf.data.Dataset.range(0)))  # in place of the dataset, until it is asked for
        self._pipegen_recipe = recipe
        self.class_names, self.file_paths = recipe.class_names, recipe.paths

    def spec(self) -> dict[str, Any]:
        """The sections of a spec that reads the same files, with the same pixels and draws, for `pipegen.build` or to be written as YAML.
        Its validation files come in the order of their paths.

        Raises:
            UnsupportedArgument: For `labels` in a list, and for files that a spec leaves out, such as hidden ones.
        """
        return self._pipegen_recipe.described()

    @cached_property
    def pipeline(self) -> Pipeline:
        """The pipeline that it reads from, with `preview`, `explain` and `state`."""
        return self._pipegen_recipe.pipeline()

    @cached_property
    def _pipegen_built(self) -> DerivedDataset:
        recipe = self._pipegen_recipe
        made = self.pipeline[recipe.split].map(recipe.as_keras())
        source = made._pipegen_source() if recipe.batched else made._pipegen_source().unbatch()
        if recipe.verbose and recipe.split == "train":
            waiting = self.pipeline._engine.executor("train").waiting
            WATCHERS.append(_FirstEpoch(waiting, recipe.epoch, len(recipe.paths), recipe.utility.plural))
        counted = source.apply(tf.data.experimental.assert_cardinality(recipe.epoch))
        counted = counted if recipe.repeats == 1 else counted.repeat(recipe.repeats)
        return DerivedDataset(counted, made, tf.constant(recipe.length, tf.int64))

    @property
    def _pipegen(self) -> Any:  # type: ignore[override]  # a member of the dataset that is built
        return self._pipegen_built._pipegen

    def _pipegen_source(self) -> tf.data.Dataset:
        return self._pipegen_built._pipegen_source()

    def _pipegen_variant(self) -> tf.Tensor:
        return self._pipegen_built._pipegen_variant()

    def options(self) -> tf.data.Options:
        """Returns the options of the dataset."""
        return self._pipegen_built.options()

    @property
    def element_spec(self) -> Any:
        """Shapes and dtypes of an element."""
        return self._pipegen_recipe.element_spec

    def cardinality(self) -> tf.Tensor:
        """Returns the number of elements, int64; -1 if it is endless."""
        return tf.constant(self._pipegen_recipe.length, tf.int64)

    def __len__(self) -> int:
        if self._pipegen_recipe.length < 0:
            raise TypeError("this dataset is infinite")
        return self._pipegen_recipe.length

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pipegen_built)

    def map(self, map_func: Any, *args: Any, **options: Any) -> Any:
        """Maps like `tf.data.Dataset.map`; a function of Keras' layers becomes steps of the pipeline, if that means the same. Steps of
        `pipegen.from_albumentations` and its kin are added to the pipeline."""
        if isinstance(map_func, Steps):
            made = DirectoryDataset(self._pipegen_recipe.stepped(Steps(map_func)))
            made._pipegen_recipe = replace(made._pipegen_recipe, element_spec=made._pipegen_built.element_spec)
            return made
        if not tf.executing_eagerly() or len(args) > 2 or {*options} - _OF_MAP:
            return super().map(map_func, *args, **options)
        try:
            recipe = self._pipegen_recipe.mapped(map_func)
        except NotProved as refused:
            log.warning("`map` and what follows run as they are, on top of the pipeline: %s", refused)
            return super().map(map_func, *args, **options)
        if recipe.verbose:
            ops = [f"`{next(iter(step))}`" for step in recipe.sections["transforms"][len(self._pipegen_recipe.sections["transforms"]) :]]
            what = ", ".join(ops) or "part of the pipeline"
            once = (
                "clip once; in Keras each layer does"
                if recipe.exact
                else "resample and clip once; with `exact=True` each resamples, as in Keras"
            )
            say(f"`map` became {what}. Neighbouring steps {once}.")
        return DirectoryDataset(recipe)

    def cache(self, filename: str = "", name: str | None = None) -> Any:
        """Caches like `tf.data.Dataset.cache`. A pipeline keeps images in memory by itself, as far as they fit; a file name is a folder
        for them. Behind random layers the draws of the first epoch are kept, as in Keras."""
        recipe = self._pipegen_recipe
        if recipe.repeats != 1:
            return super().cache(filename, name)
        if recipe.draws:
            log.warning("`cache` behind random layers keeps what they drew in the first epoch: put it before `map`")
            return super().cache(filename, name)
        if not filename:
            return self
        return DirectoryDataset(replace(recipe, sections={**recipe.sections, "runtime": {"cache": {"disk": os.path.abspath(filename)}}}))

    def shuffle(self, buffer_size: int, *args: Any, **options: Any) -> Any:
        """Shuffles like `tf.data.Dataset.shuffle`. Training files that are shuffled already stay in their order, which is another one of
        all files in each epoch."""
        recipe = self._pipegen_recipe
        if recipe.split == "train" and recipe.sections.get("shuffle") != "none":
            if options.get("reshuffle_each_iteration") is False or args[1:2] == (False,):
                log.warning("`reshuffle_each_iteration=False` has no effect: each epoch has a new order of all training files")
            return self
        if recipe.batched:
            log.warning("`shuffle` behind batches changes the order of batches, not what is in them")
        return super().shuffle(buffer_size, *args, **options)

    def batch(self, batch_size: int, drop_remainder: bool = False, *args: Any, **options: Any) -> Any:
        """Batches like `tf.data.Dataset.batch`."""
        recipe = self._pipegen_recipe
        if recipe.batched or args or options or recipe.repeats != 1 or recipe.sections["batch"]["remainder"] == "drop":
            return super().batch(batch_size, drop_remainder, *args, **options)
        batch = {"size": int(batch_size), "remainder": "drop" if drop_remainder else "keep"}
        spec = tf.nest.map_structure(
            lambda t: tf.TensorSpec([int(batch_size) if drop_remainder else None, *t.shape], t.dtype), recipe.element_spec
        )
        return DirectoryDataset(replace(recipe, sections={**recipe.sections, "batch": batch}, batched=True, element_spec=spec))

    def unbatch(self, name: str | None = None) -> Any:
        """Takes batches apart like `tf.data.Dataset.unbatch`."""
        recipe = self._pipegen_recipe
        if not recipe.batched:
            return super().unbatch(name)
        spec = tf.nest.map_structure(lambda t: tf.TensorSpec(t.shape[1:], t.dtype), recipe.element_spec)
        return DirectoryDataset(replace(recipe, batched=False, element_spec=spec))

    def repeat(self, count: int | None = None, name: str | None = None) -> Any:
        """Repeats like `tf.data.Dataset.repeat`, through the following epochs."""
        times = -1 if count is None else int(count)
        if self._pipegen_recipe.repeats != 1 or not times:
            return super().repeat(count, name)
        return DirectoryDataset(replace(self._pipegen_recipe, repeats=times))

    def take(self, count: int, name: str | None = None) -> Any:
        """Takes the first elements like `tf.data.Dataset.take`."""
        part = self._pipegen_recipe.part(0, None if count == -1 else int(count))
        return super().take(count, name) if part is None else DirectoryDataset(part)

    def skip(self, count: int, name: str | None = None) -> Any:
        """Skips like `tf.data.Dataset.skip`. Of training files it skips others in each epoch, as in Keras."""
        part = self._pipegen_recipe.part(int(count), None)
        if part is not None:
            return DirectoryDataset(part)
        if self._pipegen_recipe.split == "train" and self._pipegen_recipe.sections.get("shuffle") != "none":
            log.warning(
                "`take` and `skip` of shuffled files mix their parts in each epoch: divide by `validation_split`, or `shuffle=False`"
            )
        return super().skip(count, name)

    def prefetch(self, buffer_size: int, name: str | None = None) -> Any:
        """Returns itself: a pipeline prefetches."""
        return self


class _FirstEpoch:
    """Prints the speed of the first epoch, without its first element, before which functions are traced."""

    def __init__(self, waiting: Waiting, length: int, examples: int, plural: str) -> None:
        self._waiting, self._length, self._examples, self._plural = waiting, length, examples, plural
        self._begun: tuple[float, Waiting] | None = None

    def __call__(self, waiting: Waiting) -> None:
        """Counts an element that was handed over."""
        if waiting is not self._waiting:
            return
        now = time.perf_counter()
        if self._begun is None:
            self._begun = now, replace(waiting)
            return
        taken, seconds = waiting.since(self._begun[1]), now - self._begun[0]
        if taken.batches >= self._length - 1:
            WATCHERS.remove(self)
            rate, share = self._examples * taken.batches / self._length / seconds, min(1.0, taken.seconds / seconds)
            say(f"The first epoch: {rate:,.0f} {self._plural}/s; {share:.0%} of the time went into waiting for them.")


def image_dataset_from_directory(
    directory: str | os.PathLike[str],
    labels: Literal["inferred"] | Sequence[int] | None = "inferred",
    label_mode: Labels | None = "int",
    class_names: Sequence[str] | None = None,
    color_mode: str = "rgb",
    batch_size: int | None = 32,
    image_size: int | Sequence[int] = (256, 256),
    shuffle: bool = True,
    seed: int | None = None,
    validation_split: float | None = None,
    subset: str | None = None,
    interpolation: str = "bilinear",
    follow_links: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    data_format: str | None = None,
    format: str = "tf",
    verbose: bool = True,
    *,
    exact: bool = False,
) -> Any:
    """Reads a folder of images like `keras.utils.image_dataset_from_directory`: the same classes, labels and files in each subset, and
    pixels that differ by at most half a level, since they are rounded to whole numbers.

    It differs from Keras' in these points:

    - Training files come in a new order of all files in each epoch, not through a buffer of eight batches.
    - A validation subset keeps the order of `file_paths`, so that `take` and `skip` divide it.
    - `nearest` takes the other neighbour where a position falls between two pixels.
    - `crop_to_aspect_ratio` and `pad_to_aspect_ratio` place the centre exactly, up to a pixel from Keras'.
    - RGBA is read from every format, and a PNG of 16 bits is an error.

    Args:
        directory: The folder, with a sub-folder for each class where `labels` is `inferred`.
        labels: `inferred`, `None`, or the class index of each file, in the order of their sorted paths.
        label_mode: `int` for int32 `(batch,)`, `categorical` for one-hot float32 `(batch, classes)`, `binary` for float32 `(batch, 1)`, or
            `None` for images alone.
        class_names: The sub-folders in the order of their class indices; by default all, sorted.
        color_mode: `rgb`, `rgba` or `grayscale`.
        batch_size: The number of images in a batch, of which the last may have fewer; `None` for single images.
        image_size: (height, width) in pixels.
        shuffle: Whether files are shuffled before they are divided, and training files in each epoch.
        seed: The seed of both; needed with a `validation_split`.
        validation_split: The fraction of the files that are validation.
        subset: `training`, `validation`, or `both` for a list of two datasets.
        interpolation: A method of the step `resize`.
        follow_links: Whether linked folders are entered.
        crop_to_aspect_ratio: Cut off the longer side in place of changing the proportions.
        pad_to_aspect_ratio: Fill the shorter side with zeros in place of changing the proportions.
        data_format: `channels_last` or `channels_first`; by default Keras' setting.
        format: `tf`, or `grain` for a `grain.IterDataset` of NumPy arrays, whose iterators save their position.
        verbose: Print how many files there are, what a `map` became, and the speed of the first epoch.
        exact: Resample at each layer of a `map`, as Keras does, in place of once for all. It is not an argument of Keras.

    Returns:
        A `DirectoryDataset` of float32 images `(batch, height, width, channels)` from 0 to 255, alone or with labels, or the dataset of
        Grain; a list of two for `both`.

    Raises:
        ValueError: For an invalid argument, and for a folder without images.
        UnsupportedArgument: For what a pipeline cannot do, with an alternative.
    """
    asked = dict(locals())
    _check_images(asked)
    return _datasets(asked, IMAGES)


def _datasets(asked: dict[str, Any], utility: Utility) -> Any:
    """The dataset of a subset, or a list of both."""
    _check(asked)
    directory, labels, seed, subset = asked["directory"], asked["labels"], asked["seed"], asked["subset"]
    shuffle, validation_split, verbose = asked["shuffle"], asked["validation_split"], asked["verbose"]
    label_mode, batched = asked["label_mode"], asked["batch_size"] is not None
    mode = None if labels is None else label_mode
    drawn = int(np.random.randint(int(1e6))) if seed is None else int(seed)
    root = os.path.abspath(os.fspath(directory))
    names, numbers, classes = _listed(root, labels if mode is not None else None, asked, utility)
    if verbose:
        say(f"Found {len(names)} files." if classes is None else f"Found {len(names)} files belonging to {len(classes)} classes.")
    if mode == "binary" and len(classes or ()) != 2:
        raise ValueError(f"`label_mode='binary'` needs exactly 2 classes, got {classes}")
    order = np.arange(len(names))
    if shuffle:
        np.random.RandomState(drawn).shuffle(order)  # as Keras, whose stream NumPy has frozen
    cut = len(order) - int((validation_split or 0) * len(order))
    parts = {"train": order[:cut], "validation": order[cut:]} if validation_split else {"train": order}
    wanted = [*_SUBSETS] if subset == "both" else [subset or "training"]
    for which in wanted:
        if not len(parts[_SUBSETS[which]]):
            kind = "" if subset is None else f"{which} "
            formats = ", ".join(utility.formats)
            raise ValueError(f"no {kind}{utility.plural} found in {os.fspath(directory)!r}; allowed formats: {formats}")
        if verbose and subset is not None:
            say(f"Using {len(parts[_SUBSETS[which]])} files for {which}.")
    if verbose and shuffle and "training" in wanted:
        say("Each epoch has a new order of all training files; Keras shuffles them in a buffer of eight batches.")
    sections = _sections(root, asked | {"label_mode": mode, "seed": drawn}, utility, names)
    stored = sorted(range(len(names)), key=lambda i: (numbers[i], names[i]))  # as a spec lists them, whose order in training is the same
    places = np.argsort(stored)
    members = {split: np.sort(places[own]) if shuffle and split == "train" else places[own] for split, own in parts.items()}
    keys = [names[i] for i in stored]
    location = Location.below(root, keys, [os.path.getsize(os.path.join(root, key)) for key in keys])
    listing = Listing.labelled(root, location, numbers[stored], classes or [utility.plural], in_table=True)
    form = image_data_format(asked.get("data_format"))
    shape, values = utility.element(sections, form)
    lead = [None] * batched
    given: Any = tf.TensorSpec([*lead, *shape], tf.float32)
    if utility.ragged:
        given = tf.RaggedTensorSpec(given.shape, tf.float32, ragged_rank=int(batched))
    spec = _element_spec(given, mode, len(classes or ()), lead)
    found = []
    for which in wanted:
        split = _SUBSETS[which]
        paths = [os.path.join(os.fspath(directory), names[i]) for i in parts[split].tolist()]
        of_split = listing, members, split, sections, paths, classes, mode, form
        recipe = Recipe(*of_split, batched, labels not in ("inferred", None), spec, values, utility, verbose, asked.get("exact", False))
        found.append(recipe.grain() if asked.get("format") == "grain" else DirectoryDataset(recipe))
    return found if subset == "both" else found[0]


def _element_spec(given: Any, mode: Labels | None, classes: int, lead: list[None]) -> Any:
    """The types of an element, from that of its input and the sides before those of a label."""
    if mode is None:
        return given
    labels = {"int": ([], tf.int32), "binary": ([1], tf.float32), "categorical": ([classes], tf.float32)}
    shape, dtype = labels[mode]
    return given, tf.TensorSpec([*lead, *shape], dtype)


def _image_element(sections: dict[str, Any], data_format: str) -> tuple[Sequence[int | None], tuple[float, float] | None]:
    decode, resize = sections["transforms"][0]["decode"], sections["transforms"][-1]["resize"]
    channels, size = decode.get("channels", 3), resize["size"]
    return [channels, *size] if data_format == "channels_first" else [*size, channels], BYTES if resize[
        "method"
    ] not in OVERSHOOTS else None


def _image_sections(asked: Mapping[str, Any], _files: Sequence[str]) -> dict[str, Any]:
    size, channels = asked["image_size"], channels_of(asked["color_mode"])
    method, fit = asked["interpolation"].lower(), {"crop": asked["crop_to_aspect_ratio"], "pad": asked["pad_to_aspect_ratio"]}
    decode = {"jpeg": "tensorflow", "exif": "ignore", **({} if channels == 3 else {"channels": channels})}
    resize: dict[str, Any] = {"size": [size, size] if isinstance(size, int) else [*map(int, size)], "method": method}
    if chosen := [word for word, given in fit.items() if given]:
        resize["mode"] = chosen[0]
    cast = [{"cast": {"dtype": "float32"}}] if method in OVERSHOOTS else []  # Keras' values exceed 0 to 255, too
    return {"source": {"image_folder": {}}, "transforms": [{"decode": decode}, *cast, {"resize": resize}], "output": {"x": "image"}}


def _sections(root: str, asked: dict[str, Any], utility: Utility, names: list[str]) -> dict[str, Any]:
    """The sections of the spec, given the folder, the arguments and the files."""
    mode, seed, own = asked["label_mode"], asked["seed"], utility.sections(asked, [os.path.join(root, name) for name in names])
    ((op, arguments),) = own["source"].items()
    links = {"follow_links": True} if asked["follow_links"] else {}
    classes = {"classes": [*asked["class_names"]]} if asked["class_names"] is not None else {}
    sections: dict[str, Any] = {
        "pipegen": 1,
        "source": {op: {"path": root, **links, **classes, **arguments}},
        "transforms": own["transforms"],
        "batch": {"size": asked["batch_size"] or 32, "remainder": "keep", **own.get("batch", {})},
        "seed": seed,
        "output": {**own["output"], "y": None if mode is None else "label"},
    }
    if asked["validation_split"]:
        share = float(asked["validation_split"])
        sections["splits"] = {"parts": {"train": round(1 - share, 12), "validation": share}, "method": "keras_utility", "seed": seed}
    if not asked["shuffle"]:
        sections["shuffle"] = "none"
    if mode == "categorical":
        sections["output"]["encode"] = {"label": "one_hot"}
    return sections


def _check_images(asked: dict[str, Any]) -> None:
    """Raises `ValueError` for an invalid argument about images, and `UnsupportedArgument` for one that a pipeline cannot serve."""
    one_of("color_mode", asked["color_mode"], ("grayscale", "rgb", "rgba"), repr)
    one_of("interpolation", str(asked["interpolation"]).lower(), _METHODS, repr)
    one_of("format", asked["format"], ("tf", "grain"), repr)
    size = asked["image_size"]
    if not isinstance(size, int) and not (isinstance(size, (list, tuple)) and len(size) == 2):
        raise ValueError(f"`image_size` is a pair of whole numbers, (height, width), got {size!r}")
    if asked["crop_to_aspect_ratio"] and asked["pad_to_aspect_ratio"]:
        raise ValueError("only one of `crop_to_aspect_ratio` and `pad_to_aspect_ratio` can be true")
    if asked["format"] == "grain" and asked["batch_size"] is None:
        raise UnsupportedArgument("batch_size", "Grain gets batches of a pipeline, not single images", "give a number")


def _check(asked: dict[str, Any]) -> None:
    """Raises `ValueError` for an invalid argument of any utility, and `UnsupportedArgument` for one that a pipeline cannot serve."""
    labels, split, subset = asked["labels"], asked["validation_split"], asked["subset"]
    one_of("label_mode", asked["label_mode"], ("int", "categorical", "binary", None), repr)
    one_of("subset", subset, ("training", "validation", "both", None), repr)
    if labels not in ("inferred", None) and not isinstance(labels, (list, tuple)):
        raise ValueError(f"`labels` is 'inferred', None, or a list with the class index of each file, got {labels!r}")
    if labels != "inferred" and asked["class_names"]:
        raise ValueError("`class_names` needs `labels='inferred'`")
    if split and not 0 < split < 1:
        raise ValueError(f"`validation_split` is a number between 0 and 1, got {split}")
    if bool(split) != bool(subset):
        raise ValueError("`subset` and `validation_split` go together: give both, or neither")
    if split and asked["shuffle"] and asked["seed"] is None:
        raise ValueError("with a `validation_split` give a `seed`, or `shuffle=False`: else training and validation could overlap")
    if "://" in os.fspath(asked["directory"]):
        address = os.fspath(asked["directory"])
        raise UnsupportedArgument("directory", f"{address} is an address", f"write a spec: `source: {{image_folder: {{path: {address}}}}}`")


def _listed(root: str, labels: Any, asked: Mapping[str, Any], utility: Utility) -> tuple[list[str], Any, list[str] | None]:
    """Lists the files as Keras does: their paths relative to the folder, their class indices, int32, and the names of the classes; zeros
    and `None` without labels."""
    class_names, links, formats = asked["class_names"], asked["follow_links"], utility.formats
    if labels != "inferred":
        names = [*_walk(root, links, formats)]
        if labels is None:
            return names, np.zeros(len(names), np.int32), None
        if len(labels) != len(names):
            raise ValueError(f"`labels` has {len(labels)} numbers, but there are {len(names)} {utility.plural} in {root!r}")
        known = sorted(set(labels))
        if known != [*range(len(known))]:
            raise UnsupportedArgument("labels", f"its numbers are {known}, not those from 0 on", "number the classes from 0 on")
        return names, np.asarray(labels, np.int32), [*map(str, known)]
    folders = sorted(name for name in os.listdir(root) if os.path.isdir(os.path.join(root, name)) and not name.startswith("."))
    if class_names is not None and not {*class_names} <= {*folders}:
        raise ValueError(f"`class_names` is {[*class_names]}, but the sub-folders of {root!r} are {folders}")
    classes = [*(class_names or folders)]
    each = [[f"{name}/{path}" for path in _walk(os.path.join(root, name), links, formats)] for name in classes]
    numbers: Any = np.repeat(np.arange(len(classes), dtype=np.int32), [*map(len, each)])
    return [path for paths in each for path in paths], numbers, classes


def _walk(folder: str, links: bool, formats: tuple[str, ...]) -> Iterator[str]:
    """Yields the files with such endings below a folder, relative to it: folders by their whole path, files by name."""
    for place, _, names in sorted(os.walk(folder, followlinks=links), key=lambda found: found[0]):
        for name in sorted(names):
            if name.lower().endswith(formats):
                yield os.path.relpath(os.path.join(place, name), folder).replace(os.sep, "/")


def _image_input(x: tf.Tensor, data_format: str) -> tf.Tensor:
    return tf.transpose(x, [0, 3, 1, 2]) if data_format == "channels_first" else x


IMAGES = Utility((".bmp", ".gif", ".jpeg", ".jpg", ".png"), "images", _image_sections, _image_element, _image_input)


def audio_dataset_from_directory(
    directory: str | os.PathLike[str],
    labels: Literal["inferred"] | Sequence[int] | None = "inferred",
    label_mode: Labels | None = "int",
    class_names: Sequence[str] | None = None,
    batch_size: int | None = 32,
    sampling_rate: int | None = None,
    output_sequence_length: int | None = None,
    ragged: bool = False,
    shuffle: bool = True,
    seed: int | None = None,
    validation_split: float | None = None,
    subset: str | None = None,
    follow_links: bool = False,
    verbose: bool = True,
) -> Any:
    """Reads a folder of WAV files like `keras.utils.audio_dataset_from_directory`: the same classes, labels, files in each subset, and
    samples.

    It differs from Keras' in these points:

    - `sampling_rate` needs no other library, and resamples with a windowed sinc. Without it, the rate is that of most of the first 100
      files; files of another rate are resampled to it, where Keras mixes rates.
    - WAV files of every width are read, not only of 16 bits.
    - Training files come in a new order of all files in each epoch, not through a buffer of eight batches.

    Args:
        directory: The folder, with a sub-folder for each class where `labels` is `inferred`.
        labels: `inferred`, `None`, or the class index of each file, in the order of their sorted paths.
        label_mode: `int` for int32 `(batch,)`, `categorical` for one-hot float32 `(batch, classes)`, `binary` for float32 `(batch, 1)`, or
            `None` for sounds alone.
        class_names: The sub-folders in the order of their class indices; by default all, sorted.
        batch_size: The number of sounds in a batch, of which the last may have fewer; `None` for single sounds.
        sampling_rate: Samples a second.
        output_sequence_length: The number of samples of every sound: longer ones are cut, shorter ones padded with zeros. By default those
            of a batch are padded to the longest of it.
        ragged: Whether each sound keeps its length, in a `tf.RaggedTensor`.
        shuffle: Whether files are shuffled before they are divided, and training files in each epoch.
        seed: The seed of both; needed with a `validation_split`.
        validation_split: The fraction of the files that are validation.
        subset: `training`, `validation`, or `both` for a list of two datasets.
        follow_links: Whether linked folders are entered.
        verbose: Print how many files there are, and the speed of the first epoch.

    Returns:
        A `DirectoryDataset` of float32 samples `(batch, frames, channels)` from -1 to 1, alone or with labels; a list of two for `both`.

    Raises:
        ValueError: For an invalid argument, and for a folder without WAV files.
        UnsupportedArgument: For what a pipeline cannot do, with an alternative.
    """
    asked = dict(locals())
    if ragged and output_sequence_length is not None:
        raise ValueError("`ragged` keeps the length of each sound, and `output_sequence_length` sets one; leave one of them out")
    for name in ("sampling_rate", "output_sequence_length"):
        given = asked[name]
        if given is not None and (not isinstance(given, int) or given < 1):
            raise ValueError(f"`{name}` is a whole number above 0, got {given!r}")
    if output_sequence_length is not None:
        return _datasets(asked, SOUNDS_OF_ONE_LENGTH)
    return _datasets(asked, RAGGED_SOUNDS if ragged or batch_size is None else SOUNDS)


def _sound_sections(asked: Mapping[str, Any], files: Sequence[str]) -> dict[str, Any]:
    rate, channels = _most_common(files)
    rate, length = asked["sampling_rate"] or rate, asked["output_sequence_length"]
    source = {"audio_folder": {"rate": rate, "channels": channels}}
    pad = {"to": length, "longer": "cut"} if length is not None else {}
    return {"source": source, "transforms": [], "output": {"x": ["audio", "audio_length"]}, "batch": {"pad": pad}}


def _most_common(files: Sequence[str]) -> tuple[int, int]:
    """The rate and the number of channels of most of the first files; those of speech if no header can be read."""
    found: Counter[tuple[int, int]] = Counter()
    for file in files[:_HEADERS]:
        with suppress(UnreadableError, OSError):  # which is reported when it is read
            rate, channels, _ = stored_sound(file)
            found[rate, channels] += 1
    return found.most_common(1)[0][0] if found else (16000, 1)


def _sound_element(sections: dict[str, Any], _data_format: str) -> tuple[Sequence[int | None], tuple[float, float] | None]:
    return [sections["batch"]["pad"].get("to"), sections["source"]["audio_folder"]["channels"]], None


def _to_the_longest(x: Any, _data_format: str) -> tf.Tensor:
    """Cuts a padded batch to its longest sound, as Keras pads it."""
    sounds, lengths = x
    return sounds[:, : tf.reduce_max(lengths)]


def _each_its_length(x: Any, _data_format: str) -> tf.RaggedTensor:
    sounds, lengths = x
    return tf.RaggedTensor.from_tensor(sounds, lengths, ragged_rank=1)


SOUNDS = Utility((".wav",), "sounds", _sound_sections, _sound_element, _to_the_longest)
SOUNDS_OF_ONE_LENGTH = replace(SOUNDS, input=lambda x, _data_format: x[0])
RAGGED_SOUNDS = replace(SOUNDS, input=_each_its_length, ragged=True)
