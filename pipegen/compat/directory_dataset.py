"""`image_dataset_from_directory`, Keras' utility, on a pipeline. Importing this imports TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pipegen.api.building import _built
from pipegen.api.pipeline import Pipeline
from pipegen.backend.datasets.pipeline_dataset import DerivedDataset
from pipegen.compat.checks import UnsupportedArgument, image_data_format
from pipegen.compat.flow_specs import channels_of
from pipegen.data.manifest import Manifest
from pipegen.frozen import dataclass
from pipegen.lazy import np, tf
from pipegen.ops.arguments.geometry import OVERSHOOTS
from pipegen.ops.sources.listing.base import Listing, Location
from pipegen.phases.compilation import collect_data, load
from pipegen.phases.specs import Spec
from pipegen.private.functions import untraced
from pipegen.terminal import say

Labels = Literal["int", "categorical", "binary"]
_FORMATS = (".bmp", ".gif", ".jpeg", ".jpg", ".png")
_METHODS = ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")
_SUBSETS = {"training": "train", "validation": "validation"}


@untraced
class DirectoryDataset(DerivedDataset):
    """Batches of a folder of images: a `tf.data.Dataset`.

    Attributes:
        class_names: The classes, in the order of their indices; `None` without labels.
        file_paths: The files, in Keras' order; that of batches, unless they are shuffled.
        pipeline: The pipeline that it reads from, with `preview`, `explain` and `state`.
    """

    def __init__(self, pipeline: Pipeline, split: str, inner: DerivedDataset, files: Files, *, batched: bool) -> None:
        dataset = inner._pipegen_source()
        length = inner.cardinality()
        if not batched:
            dataset, length = dataset.unbatch(), tf.constant(len(files.paths), tf.int64)
        super().__init__(dataset, inner, length)
        self.pipeline, self.class_names, self.file_paths = pipeline, files.class_names, files.paths
        self._pipegen_files, self._pipegen_split = files, split

    def spec(self) -> dict[str, Any]:
        """The sections of a spec that reads the same files, with the same pixels and draws, for `pipegen.build` or to be written as YAML.
        Its validation files come in the order of their paths.

        Raises:
            UnsupportedArgument: For `labels` in a list, and for files that a spec leaves out, such as hidden ones.
        """
        return self._pipegen_files.described()


@dataclass(frozen=True)
class Files:
    """The files of a folder, as Keras lists them, and the spec that reads them."""

    keys: Mapping[str, frozenset[str]]  # the paths of the files of each split, relative to the folder
    class_names: list[str] | None
    paths: list[str]  # those of the subset
    sections: dict[str, Any]
    listed: bool  # whether `labels` was a list

    def described(self) -> dict[str, Any]:
        if self.listed:
            raise UnsupportedArgument("labels", "a spec has no list of labels", "write files and labels to a table, and read it with `csv`")
        manifest = collect_data(load(self.sections))
        keys = {*manifest.listing.keys}
        odd = sorted(keys ^ frozenset().union(*self.keys.values()))
        if odd:
            whose = "a spec reads" if odd[0] in keys else "Keras reads, and a spec does not,"
            why = f"{whose} {odd[0]!r}" + (f" and {len(odd) - 1} more such file{'s' * (len(odd) > 2)}" if odd[1:] else "")
            raise UnsupportedArgument("directory", why, "move it, or read the folder with a spec of your own")
        if any({*manifest.keys(split)} != own for split, own in self.keys.items()):
            why = "without it, validation is the end of the sorted list, which no method of `splits` takes"
            raise UnsupportedArgument("shuffle", why, "leave `shuffle` out, or name the files in a table with a column for the split")
        return self.sections


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
        format: `tf`.
        verbose: Print how many files there are.

    Returns:
        A `DirectoryDataset` of float32 images `(batch, height, width, channels)` from 0 to 255, alone or with labels; a list of two for
        `both`.

    Raises:
        ValueError: For an invalid argument, and for a folder without images.
        UnsupportedArgument: For what a pipeline cannot do, with an alternative.
    """
    asked = dict(locals())
    _check(asked)
    mode = None if labels is None else label_mode
    drawn = int(np.random.randint(int(1e6))) if seed is None else int(seed)
    root = os.path.abspath(os.fspath(directory))
    names, numbers, classes = _listed(root, labels if mode is not None else None, class_names, follow_links)
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
            raise ValueError(f"no {kind}images found in {os.fspath(directory)!r}; allowed formats: {', '.join(_FORMATS)}")
        if verbose and subset is not None:
            say(f"Using {len(parts[_SUBSETS[which]])} files for {which}.")
    if verbose and shuffle and "training" in wanted:
        say("Each epoch has a new order of all training files; Keras shuffles them in a buffer of eight batches.")
    sections = _sections(root, asked | {"label_mode": mode, "seed": drawn})
    stored = sorted(range(len(names)), key=lambda i: (numbers[i], names[i]))  # as a spec lists them, whose order in training is the same
    places = np.argsort(stored)
    members = {split: np.sort(places[own]) if shuffle and split == "train" else places[own] for split, own in parts.items()}
    location = _location(root, [names[i] for i in stored])
    listing = Listing.labelled(root, location, numbers[stored], classes or ["images"], in_table=True)
    pipe = _pipeline(listing, members, sections)
    keys = {split: frozenset(names[i] for i in own.tolist()) for split, own in parts.items()}
    found = []
    for which in wanted:
        split = _SUBSETS[which]
        paths = [os.path.join(os.fspath(directory), names[i]) for i in parts[split].tolist()]
        files = Files(keys, classes, paths, sections, listed=labels not in ("inferred", None))
        inner = pipe[split].map(_as_keras(mode, image_data_format(data_format)))
        found.append(DirectoryDataset(pipe, split, inner, files, batched=batch_size is not None))
    return found if subset == "both" else found[0]


def _sections(root: str, asked: dict[str, Any]) -> dict[str, Any]:
    """The sections of the spec, given the folder and the arguments."""
    size, mode, seed, channels = asked["image_size"], asked["label_mode"], asked["seed"], channels_of(asked["color_mode"])
    method, fit = asked["interpolation"].lower(), {"crop": asked["crop_to_aspect_ratio"], "pad": asked["pad_to_aspect_ratio"]}
    source: dict[str, Any] = {"path": root, **({"follow_links": True} if asked["follow_links"] else {})}
    if asked["class_names"] is not None:
        source["classes"] = [*asked["class_names"]]
    decode = {"jpeg": "tensorflow", "exif": "ignore", **({} if channels == 3 else {"channels": channels})}
    resize: dict[str, Any] = {"size": [size, size] if isinstance(size, int) else [*map(int, size)], "method": method}
    if chosen := [word for word, given in fit.items() if given]:
        resize["mode"] = chosen[0]
    sections: dict[str, Any] = {
        "pipegen": 1,
        "source": {"image_folder": source},
        "transforms": [
            {"decode": decode},
            *([{"cast": {"dtype": "float32"}}] if method in OVERSHOOTS else []),  # Keras' values exceed 0 to 255, too
            {"resize": resize},
        ],
        "batch": {"size": asked["batch_size"] or 32, "remainder": "keep"},
        "seed": seed,
        "output": {"x": "image", "y": None if mode is None else "label"},
    }
    if asked["validation_split"]:
        share = float(asked["validation_split"])
        sections["splits"] = {"parts": {"train": round(1 - share, 12), "validation": share}, "method": "keras_utility", "seed": seed}
    if not asked["shuffle"]:
        sections["shuffle"] = "none"
    if mode == "categorical":
        sections["output"]["encode"] = {"label": "one_hot"}
    return sections


def _check(asked: dict[str, Any]) -> None:
    """Raises `ValueError` for an invalid argument, and `UnsupportedArgument` for one that a pipeline cannot serve."""
    labels, split, subset = asked["labels"], asked["validation_split"], asked["subset"]
    _one_of("label_mode", asked["label_mode"], "int", "categorical", "binary", None)
    _one_of("color_mode", asked["color_mode"], "grayscale", "rgb", "rgba")
    _one_of("interpolation", str(asked["interpolation"]).lower(), *_METHODS)
    _one_of("subset", subset, "training", "validation", "both", None)
    _one_of("format", asked["format"], "tf", "grain")
    if labels not in ("inferred", None) and not isinstance(labels, (list, tuple)):
        raise ValueError(f"`labels` is 'inferred', None, or a list with the class index of each file, got {labels!r}")
    if labels != "inferred" and asked["class_names"]:
        raise ValueError("`class_names` needs `labels='inferred'`")
    size = asked["image_size"]
    if not isinstance(size, int) and not (isinstance(size, (list, tuple)) and len(size) == 2):
        raise ValueError(f"`image_size` is a pair of whole numbers, (height, width), got {size!r}")
    if split and not 0 < split < 1:
        raise ValueError(f"`validation_split` is a number between 0 and 1, got {split}")
    if bool(split) != bool(subset):
        raise ValueError("`subset` and `validation_split` go together: give both, or neither")
    if split and asked["shuffle"] and asked["seed"] is None:
        raise ValueError("with a `validation_split` give a `seed`, or `shuffle=False`: else training and validation could overlap")
    if asked["crop_to_aspect_ratio"] and asked["pad_to_aspect_ratio"]:
        raise ValueError("only one of `crop_to_aspect_ratio` and `pad_to_aspect_ratio` can be true")
    if asked["format"] == "grain":
        raise UnsupportedArgument("format", "a pipeline gives a `tf.data.Dataset`", "leave it out")
    if "://" in os.fspath(asked["directory"]):
        address = os.fspath(asked["directory"])
        raise UnsupportedArgument("directory", f"{address} is an address", f"write a spec: `source: {{image_folder: {{path: {address}}}}}`")


def _one_of(argument: str, given: Any, *known: Any) -> None:
    """Raises `ValueError` for a value that is not known."""
    if given not in known:
        raise ValueError(f"`{argument}` is one of {', '.join(map(repr, known))}, got {given!r}")


def _listed(root: str, labels: Any, class_names: Sequence[str] | None, links: bool) -> tuple[list[str], Any, list[str] | None]:
    """Lists the files as Keras does: their paths relative to the folder, their class indices, int32, and the names of the classes; zeros
    and `None` without labels."""
    if labels != "inferred":
        names = [*_walk(root, links)]
        if labels is None:
            return names, np.zeros(len(names), np.int32), None
        if len(labels) != len(names):
            raise ValueError(f"`labels` has {len(labels)} numbers, but there are {len(names)} images in {root!r}")
        known = sorted(set(labels))
        if known != [*range(len(known))]:
            raise UnsupportedArgument("labels", f"its numbers are {known}, not those from 0 on", "number the classes from 0 on")
        return names, np.asarray(labels, np.int32), [*map(str, known)]
    folders = sorted(name for name in os.listdir(root) if os.path.isdir(os.path.join(root, name)) and not name.startswith("."))
    if class_names is not None and not {*class_names} <= {*folders}:
        raise ValueError(f"`class_names` is {[*class_names]}, but the sub-folders of {root!r} are {folders}")
    classes = [*(class_names or folders)]
    each = [[f"{name}/{path}" for path in _walk(os.path.join(root, name), links)] for name in classes]
    numbers: Any = np.repeat(np.arange(len(classes), dtype=np.int32), [*map(len, each)])
    return [path for paths in each for path in paths], numbers, classes


def _walk(folder: str, links: bool) -> Iterator[str]:
    """Yields the images below a folder, relative to it: folders by their whole path, files by name."""
    for place, _, names in sorted(os.walk(folder, followlinks=links), key=lambda found: found[0]):
        for name in sorted(names):
            if name.lower().endswith(_FORMATS):
                yield os.path.relpath(os.path.join(place, name), folder).replace(os.sep, "/")


def _location(root: str, keys: Sequence[str]) -> Location:
    return Location.below(root, keys, [os.path.getsize(os.path.join(root, key)) for key in keys])


def _pipeline(listing: Listing, members: dict[str, Any], sections: dict[str, Any]) -> Pipeline:
    """Builds the pipeline of a spec on files that are listed already, with the places of those of each split."""

    def built(spec: Spec) -> Pipeline:
        return _built(spec, Manifest(listing, members, "image_folder"), built, None, None)

    return built(load(sections))


def _as_keras(mode: Labels | None, data_format: str) -> Any:
    """The function that gives a batch Keras' types and shapes."""

    def image(x: tf.Tensor) -> tf.Tensor:
        return tf.transpose(x, [0, 3, 1, 2]) if data_format == "channels_first" else x

    def alone(x: tf.Tensor) -> tf.Tensor:
        return image(x)

    def labelled(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        if mode == "binary":
            y = tf.cast(y, tf.float32)[:, None]
        return image(x), tf.cast(y, tf.int32) if mode == "int" else y

    return alone if mode is None else labelled
