"""Specs of flows: a generator's steps, also those of objects that a spec cannot contain, with the source, the batches and the output."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pipegen
from pipegen.compat.checks import UnsupportedArgument, warn
from pipegen.compat.frames import files_below, is_deep
from pipegen.compat.generator_arguments import Arguments, name_of
from pipegen.compat.images import RESAMPLING, Array
from pipegen.files import write_whole
from pipegen.frozen import dataclass
from pipegen.lazy import np
from pipegen.ops.arguments.arithmetic import PRESETS
from pipegen.ops.families.custom import CustomTransform
from pipegen.ops.lowering.resizing import CHOOSES_PASS

_APPLICATION = re.compile(r"(?:^|\.)applications\.(\w+)$")
_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_HANDED = "flow:preprocessing_function"  # placeholder in a flow's spec for a function that cannot be imported


@dataclass(frozen=True)
class Handed:
    """A function that is passed to a pipeline of this process as an object, so that it need not be importable.

    The pipeline calls it with channels last, and takes float32; the function itself gets them `first` if the generator's images are so.
    """

    function: Callable[[Array], Array]
    first: bool

    def __call__(self, image: Array) -> Array:
        given = np.asarray(self.function(np.moveaxis(image, -1, 0) if self.first else image))
        return (np.moveaxis(given, 0, -1) if self.first else given).astype(np.float32)


def preset_of(function: Any) -> str | None:
    """Finds the preset for a `preprocess_input` of Keras."""
    found = _APPLICATION.search(getattr(function, "__module__", None) or "")
    if found is None or getattr(function, "__name__", "") != "preprocess_input":
        return None
    preset = {"imagenet_utils": "caffe"}.get(found[1], found[1])
    return preset if preset in PRESETS else None


def function_steps(function: Any) -> list[Any]:
    """Makes the steps for a `preprocessing_function`.

    Raises:
        UnsupportedArgument: For one that a spec cannot name: a lambda, a nested function, or one of the main program.
    """
    preset = preset_of(function)
    if preset is not None:
        return [{"normalize": {"preset": preset}}]
    module, called = getattr(function, "__module__", None) or "", getattr(function, "__qualname__", None) or ""
    named = module != "__main__" and all(map(_NAME.fullmatch, (module, called))) and "." not in called
    name = _HANDED if isinstance(function, Handed) else f"{module}:{called}"
    if name != _HANDED and not (named and getattr(sys.modules.get(module), called, None) is function):
        why = f"a spec names a function by its module, but {called or repr(function)!r} cannot be imported from one"
        raise UnsupportedArgument("preprocessing_function", why, "move it to a module of its own; flows take any function")
    return [{"cast": {"dtype": "float32"}}, {"python": {"function": name}}]


def with_function(generator: Arguments, spec: Mapping[str, Any] | pipegen.Spec) -> Mapping[str, Any] | pipegen.Spec:
    """Puts the generator's function into a flow's spec; without a function the spec is unchanged.

    Its results are not cached, since it may draw random numbers.
    """
    function = generator.preprocessing_function
    if not isinstance(function, Handed):
        return spec
    loaded = pipegen.load(spec, runtime={"cache": "none"})
    steps = tuple(s.handed(function) if isinstance(s, CustomTransform) else s for s in loaded.model.transforms)
    return replace(loaded, model=loaded.model.model_copy(update={"transforms": steps}))


def with_matrix(generator: Arguments, channels: int, spec: Mapping[str, Any]) -> pipegen.Spec:
    """Puts the generator's matrix, and its mean if there is one, into the step `whiten` of a flow's spec.

    Raises:
        SpecError: When the spec is wrong.
    """
    from pipegen.ops.arguments.learned import Fitted, Whitening
    from pipegen.plan.evaluation_plans import learning_steps

    loaded = pipegen.load(spec)
    ((index, step),) = learning_steps(loaded.model)
    matrix = np.asarray(generator.zca_whitening_matrix, np.float32)
    if generator.data_format == "channels_first":
        order = np.arange(len(matrix)).reshape(channels, -1).T.reshape(-1)  # the flow has channels last
        matrix = matrix[np.ix_(order, order)]
    mean: Array = np.zeros(len(matrix))
    if generator.mean is not None and not generator.featurewise_std_normalization:  # else another step has centred already
        mean = np.resize(np.asarray(generator.mean, np.float64).reshape(-1), len(matrix))
    numbers = Whitening.of(0, float(generator.zca_epsilon), mean, np.ascontiguousarray(matrix), np.zeros(0))
    steps: list[Any] = list(loaded.model.transforms)
    steps[index] = step.with_numbers(Fitted({"image": numbers}, 0, "taken from the generator", given=True))
    return replace(loaded, model=loaded.model.model_copy(update={"transforms": tuple(steps)}))


_MOST = 64  # maximal number of single distances of a shift: each is a step, and all are compiled


def shift_steps(generator: Arguments, size: tuple[int, int] | None, reading: dict[str, Any]) -> list[Any]:
    """Makes the steps of both shifts, for images of `size` (height, width), with the fill and interpolation of `reading`."""
    height, width = size if size is not None else (None, None)
    sides = [("width_shift_range", width), ("height_shift_range", height)]
    steps: list[Any] = []
    ranges = {}
    for axis, (argument, side) in zip("xy", sides if generator.geometry != "keras3" else reversed(sides), strict=True):
        given = getattr(generator, argument)
        if not np.any(given):  # a number, or all of a list
            continue
        if is_choice(given):
            steps += _choice(argument, axis, given, side, reading)
        elif (distance := float(given)) < 1:
            ranges[axis] = abs(distance)
        else:
            ranges[axis] = distance / _side(argument, f"{distance:g} pixels are", side)
    return [{"random_translation": {**ranges, **reading}}, *steps] if ranges else steps


def is_choice(given: Any) -> bool:
    """Checks if a shift is drawn from a list, or from the whole numbers below a limit."""
    if isinstance(given, (int, np.integer)):
        return int(given) > 0
    return not isinstance(given, (float, np.floating))


def _side(argument: str, what: str, side: int | None) -> int:
    if side is None:
        raise UnsupportedArgument(argument, f"{what} a fraction that depends on the size", "give `target_size`")
    return side


def _choice(argument: str, axis: str, given: Any, side: int | None, reading: dict[str, Any]) -> list[Any]:
    """Makes a choice of single distances, of either sign: whole numbers below a limit, or the items of a list."""
    values = range(int(given)) if isinstance(given, (int, np.integer)) else [float(v) for v in given]
    chances = Counter(sign * value for value in values for sign in (1, -1))
    if set(chances) == {0}:
        return []  # such as whole numbers below 1
    if len(chances) > 2 * _MOST:
        help_ = f"write the range as a float: {float(max(values)):g}"
        raise UnsupportedArgument(argument, f"a spec would have a step for each of its {len(chances)} distances", help_)
    unit = 1 if max(values) < 1 else _side(argument, "pixels are", side)
    distances = sorted(chances)
    steps = [{"translation": {axis: distance / unit, **reading}} for distance in distances]
    return [{"one_of": {"steps": steps, "weights": [chances[distance] for distance in distances]}}]


_FILLS = {"nearest": "nearest", "reflect": "reflect", "grid-mirror": "reflect", "wrap": "wrap", "grid-wrap": "wrap"}
_INTERPOLATION = {0: "nearest", 1: "bilinear"}
_EPSILON = 1e-6
_MOVES = ("rotation_range", "width_shift_range", "height_shift_range", "shear_range")


def augments(generator: Arguments) -> bool:
    """Checks if the generator draws anything."""
    mirrors = generator.horizontal_flip or generator.vertical_flip
    colour = generator.brightness_range is not None or generator.channel_shift_range
    return bool(mirrors or colour or list(generator.zoom_range) != [1, 1] or any(np.any(getattr(generator, name)) for name in _MOVES))


def random_steps(generator: Arguments, size: tuple[int, int] | None, channels: int) -> list[Any]:
    """Makes the steps of the augmentation, which come after the resize: geometry, channel shift, flips and brightness.

    `size` is (height, width), if known.

    Raises:
        UnsupportedArgument: For the first argument that a spec cannot express.
    """
    if generator.brightness_range is not None and channels not in (1, 3, 4):
        why = f"a spec cannot change the brightness of {channels} channels"
        raise UnsupportedArgument("brightness_range", why, "pass channels that are not colours separately, as `x=(images, [channels])`")
    steps = _moves(generator, size)
    moves = bool(steps)
    if generator.channel_shift_range:
        steps.append({"random_channel_shift": {"delta": abs(generator.channel_shift_range)}})
    axis = {(True, True): "both", (True, False): "horizontal", (False, True): "vertical"}.get(
        (bool(generator.horizontal_flip), bool(generator.vertical_flip))
    )
    if axis is not None:
        beside = moves and not generator.channel_shift_range  # same fill, for one resampling and no lint about two fills
        steps.append({"random_flip": {"axis": axis, **(_reading(generator) if beside else {})}})
    if generator.brightness_range is not None:
        low, high = sorted(float(v) for v in generator.brightness_range)
        if low < 0:
            raise UnsupportedArgument("brightness_range", f"the factor {low:g} is below 0", "use factors from 0 on; 1 changes nothing")
        steps.append({"random_brightness": {"factor": [low, high]}})
    return steps


def fixed_steps(generator: Arguments, channels: int, *, measured: bool = False) -> list[Any]:
    """Makes the steps of `standardize`, which follow the augmentation, in Keras' order.

    With `measured`, the pipeline may measure statistics that are not fitted, on its training split.
    """
    steps: list[Any] = []
    if generator.preprocessing_function is not None:
        steps += function_steps(generator.preprocessing_function)
    if generator.rescale:
        steps.append({"rescale": {"scale": float(generator.rescale)}})
    if generator.samplewise_center:  # implied by `samplewise_std_normalization`
        scale = {} if generator.samplewise_std_normalization else {"scale": False}
        steps.append({"standardize": {"statistics": "samplewise", **scale}})
    if not generator.zca_whitening or generator.featurewise_std_normalization:  # else the whitening subtracts the mean
        steps += _featurewise(generator, channels, measured=measured)
    if generator.zca_whitening:
        if not 0 < (epsilon := generator.zca_epsilon) <= 1:
            raise UnsupportedArgument("zca_epsilon", f"it must be above 0 and at most 1 in a spec, got {epsilon!r}", "leave it at 1e-6")
        steps.append({"whiten": {"center": "channel", "epsilon": float(epsilon)}})
    return steps


def _featurewise(generator: Arguments, channels: int, *, measured: bool) -> list[Any]:
    """Makes the step with the statistics of the data, fitted or to be measured."""
    if measured and generator.featurewise_center and generator.mean is None and generator.std is None:
        scale = {} if generator.featurewise_std_normalization else {"scale": False}
        return [{"standardize": {"statistics": "featurewise", **scale}}]
    moments = {}
    for argument, name, added in (("featurewise_center", "mean", 0.0), ("featurewise_std_normalization", "std", _EPSILON)):
        if not getattr(generator, argument):
            continue
        if (found := getattr(generator, name)) is None:
            raise UnsupportedArgument(argument, "the generator is not fitted", f"call `fit` first, or set `.{name}`")
        moments[name] = values = [float(v) + added for v in np.asarray(found).reshape(-1)]  # a number, if set by hand
        if len(values) not in (1, channels):
            why = f"`.{name}` has {len(values)} channels, not {channels} as the images"
            raise UnsupportedArgument(argument, why, "fit it on such images")
    return [{"normalize": moments}] if moments else []


def _moves(generator: Arguments, size: tuple[int, int] | None) -> list[Any]:
    """Makes the geometric steps except flips, in the order that composes Keras' matrix."""
    low, high = sorted(generator.zoom_range)
    zooms = (low, high) != (1, 1)
    if not (zooms or any(np.any(getattr(generator, name)) for name in _MOVES)):
        return []
    reading = _reading(generator)
    steps: list[Any] = []
    if generator.rotation_range:
        steps.append({"random_rotation": {"degrees": abs(generator.rotation_range), **reading}})
    steps += shift_steps(generator, size, reading)
    if generator.shear_range:
        steps.append({"random_shear": {"degrees": abs(generator.shear_range), **reading}})
    if zooms:
        if low <= 0:
            why = f"its factors [{low:g}, {high:g}] reach 0 or below, where the image is infinitely large or mirrored"
            raise UnsupportedArgument("zoom_range", why, "use a pair of positive factors, such as [0.5, 1.5]")
        # Keras' factor multiplies the distance of the position read; a spec's factor is the magnification.
        factors = [1 / high, 1 / low]
        steps.append({"random_zoom": {"x": factors, "y": list(factors), **reading}})
    if steps and generator.geometry == "keras3" and (size is None or size[0] != size[1]):
        why = "a spec cannot reproduce the misplaced centre of images that are not square"
        raise UnsupportedArgument("geometry", why, "use square images, or the documented geometry")
    return steps


def _reading(generator: Arguments) -> dict[str, Any]:
    """`fill` and `interpolation`."""
    mode, order = generator.fill_mode, generator.interpolation_order
    if mode != "constant" and mode not in _FILLS:
        raise UnsupportedArgument("fill_mode", f"specs do not support the fill {mode!r}", "use 'nearest', 'reflect', 'wrap' or 'constant'")
    if order not in _INTERPOLATION:
        raise UnsupportedArgument("interpolation_order", f"specs do not support splines of order {order}", "use 0 or 1")
    fill: Any = {"constant": float(generator.cval)} if mode == "constant" else _FILLS[mode]
    return {"fill": fill} if order == 1 else {"fill": fill, "interpolation": _INTERPOLATION[order]}


ENCODINGS = {"categorical": "one_hot", "binary": "binary", "sparse": "int"}  # the encoding of the label for each class mode
_CHANNELS = {"rgb": 3, "rgba": 4, "grayscale": 1}
_DTYPES = ("float32", "float16", "bfloat16", "uint8")
UNLABELLED = ["."]  # the usual `classes` for a folder of images without sub-folders


def _folder(directory: Any, classes: Sequence[str] | None, follow_links: bool, write: Any) -> dict[str, Any]:
    """Makes the `source` of a folder, relative to the file that the spec is written to, if there is one."""
    path = os.fspath(directory)
    found: dict[str, Any] = {"path": path if write is None else os.path.relpath(path, os.path.dirname(os.path.abspath(write)))}
    if classes is not None and list(classes) == UNLABELLED:
        found["labels"] = "none"
    elif classes:
        found["classes"] = list(classes)
    return {"image_folder": {**found, "follow_links": True} if follow_links else found}


def sections(
    generator: Arguments, source: dict[str, Any], steps: list[Any], *, batch_size: int, shuffle: bool, seed: int
) -> dict[str, Any]:
    """Makes a spec without splits and targets."""
    output: dict[str, Any] = {"x": "image"}
    dtype = name_of(generator.dtype)
    if dtype not in _DTYPES:
        raise UnsupportedArgument("dtype", f"batches of a spec are {', '.join(_DTYPES)}, not {dtype}", "cast them afterwards")
    if dtype != "float32":
        output["dtype"] = dtype
    if generator.data_format == "channels_first":
        output["channels"] = "first"
    return {
        "pipegen": 1,
        "source": source,
        "transforms": steps,
        "seed": seed,
        "shuffle": "global" if shuffle else "none",
        "batch": {"size": batch_size, "remainder": "keep"},
        "output": output,
    }


def targets(class_mode: str | None, *, labelled: bool) -> dict[str, Any]:
    """Makes `y` and its encoding.

    Raises:
        UnsupportedArgument: For a mode that needs classes, in a folder without classes.
        ValueError: For an unknown mode.
    """
    if class_mode is None:
        return {"y": None}
    if class_mode == "input":
        return {"y": "image"}
    if class_mode not in ENCODINGS:
        raise ValueError(f"`class_mode` is 'categorical', 'binary', 'sparse', 'input' or None, got {class_mode!r}")
    if not labelled:
        raise UnsupportedArgument("class_mode", "a folder without classes has no targets", "pass `class_mode=None`")
    return {"y": "label", "encode": {"label": ENCODINGS[class_mode]}}


def channels_of(color_mode: str) -> int:
    """Number of channels of a colour mode."""
    if color_mode not in _CHANNELS:
        raise ValueError(f"`color_mode` is 'rgb', 'rgba' or 'grayscale', got {color_mode!r}")
    return _CHANNELS[color_mode]


def reading_steps(
    size: tuple[int, int], color_mode: str, interpolation: str, keep_aspect_ratio: bool, files: Iterable[str] = ()
) -> list[Any]:
    """Makes the steps that decode and resize like Keras with the installed Pillow. Gray keeps 16 bits if the first of `files` has them."""
    if interpolation not in RESAMPLING:
        raise ValueError(f"`interpolation` is 'nearest', 'bilinear', 'bicubic', 'hamming', 'box' or 'lanczos', got {interpolation!r}")
    decode: dict[str, Any] = {"exif": "ignore", "jpeg": "accurate"}
    if color_mode != "rgb":
        decode["channels"] = channels_of(color_mode)
    if color_mode == "grayscale" and is_deep(files):
        decode["bits"] = 16
    import PIL

    earlier = interpolation != "nearest" and int(PIL.__version__.partition(".")[0]) < CHOOSES_PASS
    pillow = {"pillow": {"filter": interpolation, "before": CHOOSES_PASS} if earlier else interpolation}
    method = "nearest" if interpolation == "nearest" and not keep_aspect_ratio else pillow  # a spec's own `nearest` is Pillow's
    resize = {"size": [int(side) for side in size], **({"mode": "crop"} if keep_aspect_ratio else {}), "method": method}
    return [{"decode": decode}, {"resize": resize}]


class Described(Arguments):
    """A generator with its spec, for iterators."""

    _generator: ClassVar[type[Described]]
    """`ImageDataGenerator`, set by its module: flows make iterators, and an iterator without a generator makes one."""

    def to_spec(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        target_size: tuple[int, int] | None = None,
        color_mode: str = "rgb",
        classes: Sequence[str] | None = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int = 0,
        follow_links: bool = False,
        interpolation: str = "nearest",
        keep_aspect_ratio: bool = False,
        write: str | os.PathLike[str] | None = None,
    ) -> dict[str, Any]:
        """Makes the spec of this generator with the arguments of a flow.

        It follows Keras' documentation, with these differences: validation data is not augmented; `zoom_range` draws the magnification
        uniformly, where Keras draws its reciprocal; shear slants only, where Keras also stretches the other side by 1/cos; a channel shift
        is clipped to the range of all images; brightness keeps fractions; whitening is fitted on the training split of the spec's data,
        independently of `fit`, and adds `zca_epsilon` to variances.

        Featurewise statistics are those of `fit`; before `fit`, the pipeline measures its training split.

        Args:
            directory: The folder with a sub-folder for each class, as for `flow_from_directory`. Without it the source is `arrays`,
                with an `image` and, for a mode with classes, a `label`, which come from `pipegen.build(spec, data=)`; with `input`
                and without a `validation_split` that is `data={"train": {"image": x}}`.
            target_size: (height, width); (256, 256) by default for a folder. For arrays, their size, which shifts by pixels need.
            color_mode: `rgb`, `rgba` or `grayscale`.
            classes: The class folders in the order of their indices; `["."]` for images without classes.
            class_mode: `categorical`, `binary`, `sparse`, `input` or `None`.
            batch_size: The number of images in a batch; the last one may be smaller.
            shuffle: Whether training images are shuffled.
            seed: The seed of the order and the augmentation.
            follow_links: Whether to enter linked folders.
            interpolation: `nearest`, `bilinear`, `bicubic` or `lanczos`.
            keep_aspect_ratio: Crop the largest centred part with the target's proportions, instead of distorting the image.
            write: A file to write it to as YAML; the folder is then relative to that file.

        Returns:
            The sections, for `pipegen.build` or `pipegen.load`.

        Raises:
            UnsupportedArgument: For the first argument that a spec cannot express; it names the argument and an alternative.
        """
        size, steps = target_size, []
        if directory is None:
            label = {} if class_mode in (None, "input") else {"label": {"kind": "label"}}
            source: dict[str, Any] = {"arrays": {"features": {"image": {"kind": "image"}, **label}}}
            if class_mode == "input" and not self._validation_split:
                source = {"by_split": {"train": source}}  # without labels, all rows would be for prediction
        else:
            source, size = _folder(directory, classes, follow_links, write), target_size if target_size is not None else (256, 256)
            steps = reading_steps(size, color_mode, interpolation, keep_aspect_ratio, files_below(directory, links=follow_links))
        channels = channels_of(color_mode)
        steps += [*random_steps(self, size, channels), *fixed_steps(self, channels, measured=True)]
        spec = sections(self, source, steps, batch_size=batch_size, shuffle=shuffle, seed=seed)
        spec["output"] = {**spec["output"], **targets(class_mode, labelled=directory is None or list(classes or ()) != UNLABELLED)}
        if part := self._validation_split:
            spec["splits"] = {"parts": {"train": round(1 - part, 12), "validation": part}, "method": "keras"}
        spec = json.loads(json.dumps(spec, default=lambda number: number.item()))  # numbers of NumPy are no YAML
        if write is not None:
            from pipegen.spec.runtime_fix import to_yaml

            write_whole(write, to_yaml(spec, default_flow_style=None, width=120))
        return spec

    def _rows_spec(
        self, source: str, image: dict[str, Any], shape: tuple[int, ...], reading: Sequence[Any] = (), *, validates: bool, **batches: Any
    ) -> dict[str, Any]:
        """Makes the spec of a flow over rows. It returns row numbers, by which targets are looked up, so that any array can be a target.

        The row number is a label, since labels have 64 bits, and float32 tensors cannot count beyond 2^24. Before the augmentation, the
        images have the `shape` (rows, height, width, channels), made by the steps of `reading`. Rows for validation are neither augmented
        nor shuffled.
        """
        count, height, width, channels = shape
        steps = [*reading, *([] if validates else random_steps(self, (height, width), channels)), *fixed_steps(self, channels)]
        found = {source: {"features": {"image": image, "row": {"kind": "label", "classes": count}}}}
        spec = sections(self, found, steps, **{**batches, "shuffle": batches["shuffle"] and not validates})
        spec["output"] = {**spec["output"], "y": "row"}
        return spec


def check_subset(generator: Arguments, subset: str | None) -> None:
    """Checks a subset against the generator; warns of a difference from Keras.

    Raises:
        ValueError: For an unknown word, or a generator without a `validation_split`.
    """
    if subset not in (None, "training", "validation"):
        raise ValueError(f"`subset` is 'training', 'validation' or None, got {subset!r}")
    if subset is not None and not generator._validation_split:
        raise ValueError(f"`subset={subset!r}` needs a generator with a `validation_split`")
    if subset == "validation" and augments(generator):
        warn("the validation subset is not augmented here; Keras augments it")


def rows_of(generator: Arguments, subset: str | None, count: int) -> range:
    """Rows of a subset: the first `validation_split` of all rows are for validation."""
    cut = int(count * generator._validation_split) if subset is not None else 0
    return range(cut) if subset == "validation" else range(cut, count)


def seed_of(given: int | None) -> int:
    """The given seed, or one from NumPy's global stream."""
    return int(given) if given is not None else int(np.random.randint(2**31 - 1))
