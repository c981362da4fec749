"""The arguments of the class: kept as attributes of the same names, checked as Keras checks them."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar

from pipegen.compat.defaults import floatx, image_data_format
from pipegen.compat.geometry import Geometry, check_geometry
from pipegen.compat.refusals import warn

if TYPE_CHECKING:
    from pipegen.compat.images import Array

_A = TypeVar("_A", bound="Arguments")


class Arguments:
    """Holds what an `ImageDataGenerator` was made with, and what its `fit` found."""

    mean: Array | None
    """What `fit` found, of the shape of an image with one pixel; set it by hand where it is known."""
    std: Array | None
    """Likewise."""
    zca_whitening_matrix: Array | None
    """Square, a side for each value of an image."""

    def __init__(
        self,
        featurewise_center: bool = False,
        samplewise_center: bool = False,
        featurewise_std_normalization: bool = False,
        samplewise_std_normalization: bool = False,
        zca_whitening: bool = False,
        zca_epsilon: float = 1e-6,
        rotation_range: float = 0,
        width_shift_range: Any = 0.0,
        height_shift_range: Any = 0.0,
        brightness_range: Any = None,
        shear_range: float = 0.0,
        zoom_range: Any = 0.0,
        channel_shift_range: float = 0.0,
        fill_mode: str = "nearest",
        cval: float = 0.0,
        horizontal_flip: bool = False,
        vertical_flip: bool = False,
        rescale: float | None = None,
        preprocessing_function: Callable[[Array], Array] | None = None,
        data_format: str | None = None,
        validation_split: float = 0.0,
        interpolation_order: int = 1,
        dtype: Any = None,
        *,
        geometry: Geometry = "documented",
    ) -> None:
        check_geometry(geometry)
        self.geometry = geometry
        self.featurewise_center = featurewise_center
        self.samplewise_center = samplewise_center
        self.featurewise_std_normalization = featurewise_std_normalization
        self.samplewise_std_normalization = samplewise_std_normalization
        self.zca_whitening = zca_whitening
        self.zca_epsilon = zca_epsilon
        self.rotation_range = rotation_range
        self.width_shift_range = width_shift_range
        self.height_shift_range = height_shift_range
        self.brightness_range = _brightness(brightness_range)
        self.shear_range = shear_range
        self.zoom_range = _zoom(zoom_range)
        self.channel_shift_range = channel_shift_range
        self.fill_mode = fill_mode
        self.cval = cval
        self.horizontal_flip = horizontal_flip
        self.vertical_flip = vertical_flip
        self.rescale = rescale
        self.preprocessing_function = preprocessing_function
        self._face(image_data_format(data_format))
        self.interpolation_order = interpolation_order
        self.dtype = floatx(dtype)
        if validation_split and not 0 < validation_split < 1:
            raise ValueError(f"`validation_split` lies between 0 and 1, got {validation_split!r}")
        self._validation_split = validation_split
        self.mean = self.std = self.zca_whitening_matrix = None
        self._imply()

    def _face(self, data_format: str) -> None:
        """Set where the axes of a batch stand."""
        self.data_format = data_format
        self.channel_axis, self.row_axis, self.col_axis = (1, 2, 3) if data_format == "channels_first" else (3, 1, 2)

    def _asked(self: _A, data_format: str | None, dtype: Any) -> _A:
        """The same, for an iterator that asks for a format or a dtype of its own."""
        asked = copy(self)
        asked._face(self.data_format if data_format is None else image_data_format(data_format))
        asked.dtype = self.dtype if dtype is None else dtype
        return asked

    def _imply(self) -> None:
        """Switch on what other arguments need, and off what they take the place of, with a warning for each."""
        scaled = self.featurewise_std_normalization
        if self.zca_whitening and scaled:
            self.featurewise_std_normalization = False
            warn("`zca_whitening` takes the place of `featurewise_std_normalization`, which is off now")
        for cause, needed in (
            ("zca_whitening", "featurewise_center"),
            ("featurewise_std_normalization", "featurewise_center"),
            ("samplewise_std_normalization", "samplewise_center"),
        ):
            if getattr(self, cause) and not getattr(self, needed):
                setattr(self, needed, True)
                warn(f"`{cause}` needs `{needed}`, which is on now")


def _zoom(given: Any) -> list[float]:
    if isinstance(given, (int, float)):
        return [1 - given, 1 + given]
    if len(given) != 2 or not all(isinstance(v, (int, float)) for v in given):
        raise ValueError(f"`zoom_range` is a number, or a pair of numbers, got {given!r}")
    return list(given)


def _brightness(given: Any) -> Any:
    if given is not None and (not isinstance(given, (tuple, list)) or len(given) != 2):
        raise ValueError(f"`brightness_range` is a pair of factors, got {given!r}")
    return given


Arguments.__init__.__qualname__ = "ImageDataGenerator.__init__"  # Python's complaint about a wrong keyword names the class that people know


def name_of(dtype: Any) -> str:
    """The name of a dtype: of NumPy, of TensorFlow or in words."""
    return str(getattr(dtype, "name", None) or getattr(dtype, "__name__", dtype))
