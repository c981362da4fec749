"""The arguments of `ImageDataGenerator`: attributes of the same names, with Keras' checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import InitVar, dataclass, field
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from pipegen.compat.checks import UnsupportedArgument, floatx, image_data_format, warn
from pipegen.compat.images import Array
from pipegen.compat.single_images import Geometry, check_geometry

_A = TypeVar("_A", bound="Arguments")


@dataclass(eq=False, repr=False)
class Arguments:
    """The arguments of an `ImageDataGenerator`, and the results of its `fit`."""

    featurewise_center: bool = False
    samplewise_center: bool = False
    featurewise_std_normalization: bool = False
    samplewise_std_normalization: bool = False
    zca_whitening: bool = False
    zca_epsilon: float = 1e-6
    rotation_range: float = 0
    width_shift_range: Any = 0.0
    height_shift_range: Any = 0.0
    brightness_range: Any = None
    shear_range: float = 0.0
    zoom_range: Any = 0.0
    channel_shift_range: float = 0.0
    fill_mode: str = "nearest"
    cval: float = 0.0
    horizontal_flip: bool = False
    vertical_flip: bool = False
    rescale: float | None = None
    preprocessing_function: Callable[[Array], Array] | None = None
    data_format: str | None = None
    validation_split: InitVar[float] = 0.0
    interpolation_order: int = 1
    dtype: Any = None
    geometry: Geometry = field(default="documented", kw_only=True)
    mean: Array | None = field(init=False, default=None)
    """The mean found by `fit`, in the shape of an image with one pixel; it may be set by hand."""
    std: Array | None = field(init=False, default=None)
    """The standard deviation found by `fit`, in the same shape; it may be set by hand."""
    zca_whitening_matrix: Array | None = field(init=False, default=None)
    """The square matrix found by `fit`, with a row for each value of an image."""

    def __post_init__(self, validation_split: float) -> None:
        check_geometry(self.geometry)
        bright, zoom = self.brightness_range, self.zoom_range
        if bright is not None and (not isinstance(bright, (tuple, list)) or len(bright) != 2):
            raise ValueError(f"`brightness_range` is a pair of factors, got {bright!r}")
        if isinstance(zoom, (int, float)):
            zoom = [1 - zoom, 1 + zoom]
        elif len(zoom) != 2 or not all(isinstance(v, (int, float)) for v in zoom):
            raise ValueError(f"`zoom_range` is a number, or a pair of numbers, got {zoom!r}")
        self.zoom_range = list(zoom)
        self._face(self.data_format)
        self.dtype = floatx(self.dtype)
        if validation_split and not 0 < validation_split < 1:
            raise ValueError(f"`validation_split` lies between 0 and 1, got {validation_split!r}")
        self._validation_split = validation_split
        self._imply()

    def _face(self, data_format: str | None) -> None:
        """Sets the data format, by default Keras' setting, and the axes of a batch."""
        self.data_format = image_data_format(data_format)
        self.channel_axis, self.row_axis, self.col_axis = (1, 2, 3) if self.data_format == "channels_first" else (3, 1, 2)

    def _imply(self) -> None:
        """Switches on the arguments that others need, and off those that they replace, with a warning for each."""
        if self.zca_whitening and self.featurewise_std_normalization:
            self.featurewise_std_normalization = False
            warn("`zca_whitening` replaces `featurewise_std_normalization`, which is off now")
        for cause, needed in (
            ("zca_whitening", "featurewise_center"),
            ("featurewise_std_normalization", "featurewise_center"),
            ("samplewise_std_normalization", "samplewise_center"),
        ):
            if getattr(self, cause) and not getattr(self, needed):
                setattr(self, needed, True)
                warn(f"`{cause}` needs `{needed}`, which is on now")


Arguments.__init__.__qualname__ = "ImageDataGenerator.__init__"  # for Python's error about an unknown keyword


def name_of(dtype: Any) -> str:
    """Name of a dtype, given as one of NumPy or TensorFlow, or as text."""
    return str(getattr(dtype, "name", None) or getattr(dtype, "__name__", dtype))


_FITTED = {"featurewise_center": "mean", "featurewise_std_normalization": "std", "zca_whitening": "zca_whitening_matrix"}
"""Arguments that need `fit`, and the attributes for its results."""
_WITHOUT: WeakKeyDictionary[Arguments, WeakSet[Any]] = WeakKeyDictionary()
"""The flows of each generator that were made before it was fitted."""


def for_flow(generator: _A, flow: object, data_format: str | None, dtype: Any) -> _A:
    """Copies a generator for a flow that is being made, with the flow's own data format and dtype if they are given.

    The copy is without the arguments that need `fit` and are not fitted, with a warning for each: a flow cannot measure the statistics
    itself, as a spec of `to_spec` does, since validation data would use its own.
    """
    asked = copy(generator)
    asked._face(generator.data_format if data_format is None else data_format)
    asked.dtype = generator.dtype if dtype is None else dtype
    for argument, name in _FITTED.items():
        if getattr(asked, argument) and getattr(asked, name) is None:
            setattr(asked, argument, False)
            warn(
                f"`{argument}` has no effect on this flow, because the generator is not fitted; before making the flow, call `fit` with "
                f"training images, or set `.{name}`"
            )
            _WITHOUT.setdefault(generator, WeakSet()).add(flow)
    return asked


def check_flows(generator: Arguments) -> None:
    """Warns of flows that were made before the generator was fitted: in Keras they would use the new statistics."""
    count = len(_WITHOUT.pop(generator, ()))
    if count:
        which = "a flow of this generator was" if count == 1 else f"{count} flows of this generator were"
        warn(f"{which} made before `fit`, and will not use its statistics; make flows after it")


OF_A_GENERATOR = ("get_random_transform", "apply_transform", "random_transform", "standardize")
"""Methods that the iterators of some versions of Keras call for each image."""
OF_AN_ITERATOR = (
    "_get_batches_of_transformed_samples",
    "_flow_index",
    "_set_index_array",
    "set_processing_attrs",
    "white_list_formats",
    "allowed_class_modes",
    "filepaths",
    "labels",
    "sample_weight",
    "__len__",
)
"""Methods and attributes of Keras' iterators that determine the images of a batch, or their processing."""


def overridden(thing: object, base: type, name: str) -> bool:
    """Checks if a subclass of a class of this package overrides a method or another attribute."""
    ours = base.__module__.rpartition(".")[0]
    kinds = type(thing).__mro__
    return any(name in vars(kind) and not kind.__module__.startswith(ours) for kind in kinds[: kinds.index(base)])


def check_overrides(thing: object, base: type, names: Iterable[str], remedy: str) -> None:
    """Refuses a subclass of `base`, or a changed instance, that overrides one of the methods `names`, which nothing would call.

    Raises:
        UnsupportedArgument: For the first of them, with the `remedy`.
    """
    own = vars(thing)
    found = next((name for name in names if overridden(thing, base, name) or callable(own.get(name))), None)
    if found is not None:
        who = "the instance" if found in own else type(thing).__name__
        why = f"{who} overrides it, but batches come from a compiled pipeline, which would not call it"
        raise UnsupportedArgument(found, why, remedy)
