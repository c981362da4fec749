"""The class itself: arguments, draws, transforms of single images, and statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pipegen.compat.arguments import check_flows
from pipegen.compat.checks import warn
from pipegen.compat.draws import draw, stream
from pipegen.compat.flows import Flows
from pipegen.compat.geometry import apply_affine_transform, apply_brightness_shift, apply_channel_shift, flip_axis
from pipegen.compat.images import moments, whitening
from pipegen.compat.specs import Described

if TYPE_CHECKING:
    from pipegen.compat.images import Array

_EPSILON = 1e-6
"""Added to a standard deviation before it divides."""
_MOVES = {"theta": 0, "tx": 0, "ty": 0, "shear": 0, "zx": 1, "zy": 1}
"""What `apply_affine_transform` takes, and the value that changes nothing."""
_BLOCK = 256
"""Images whose statistics are taken at a time."""


class ImageDataGenerator(Flows):
    """Keras' `ImageDataGenerator` on pipegen: the same arguments, the documented behaviour, and compiled flows.

    Args:
        featurewise_center: Subtract from each channel its mean over the data that `fit` has seen.
        samplewise_center: Subtract from each image its mean, one number for all channels.
        featurewise_std_normalization: Divide each channel by its standard deviation over the data that `fit` has seen; centres as well.
        samplewise_std_normalization: Divide each image by its standard deviation; centres as well.
        zca_whitening: Whiten by the matrix that `fit` computes; centres as well, and takes the place of `featurewise_std_normalization`.
        zca_epsilon: Added to the singular values of the data before they divide.
        rotation_range: Degrees: turned by up to this much either way.
        width_shift_range: How far across: a float below 1 is a fraction of the width, from 1 on pixels; a whole number n draws whole pixels
            *below* n; a list draws one of its values, of either sign.
        height_shift_range: Likewise, down.
        brightness_range: A pair of factors: 1 changes nothing.
        shear_range: Degrees.
        zoom_range: A number z for [1 - z, 1 + z], or a pair; below 1 magnifies. Each side draws its own.
        channel_shift_range: Added to all channels, up to this much either way, and clipped to the values of the image.
        fill_mode: What lies outside: `nearest`, `constant`, `reflect`, `wrap`.
        cval: The value outside for `constant`, before `rescale`.
        horizontal_flip: Mirror half of the images left to right.
        vertical_flip: Mirror half of the images upside down.
        rescale: Multiplies the values, after `preprocessing_function`.
        preprocessing_function: Called with each image after the augmentation; gives an image of the same shape.
        data_format: `channels_last` or `channels_first`; Keras' setting by default.
        validation_split: The share of the data that `subset="validation"` takes.
        interpolation_order: The order of the spline, 0 to 5.
        dtype: Of the arrays; Keras' `floatx` by default. Flows compute `float64` as float32, and hand it over as float64.
        geometry: `documented`, or `keras3` for what Keras 2.9 to 3 really do: the two shifts swapped, the centre of an image that is not
            square beside it, and brightness through 8-bit numbers.

    Raises:
        ValueError: For arguments that Keras rejects too.
    """

    # One image

    def get_random_transform(self, img_shape: tuple[int, ...], seed: int | None = None) -> dict[str, Any]:
        """Draw the parameters of one transform.

        Args:
            img_shape: The shape of the image, 3 dimensions.
            seed: Draws the parameters that Keras draws for it; NumPy's global stream is not touched. Without it they come from there.

        Returns:
            `theta` and `shear` in degrees, `tx` and `ty` in pixels, `zx` and `zy`, `flip_horizontal`, `flip_vertical`,
            `channel_shift_intensity` and `brightness` (`None` where not asked for).
        """
        return self._draw(img_shape, stream(seed))

    def _draw(self, img_shape: tuple[int, ...], rng: Any) -> dict[str, Any]:
        return draw(self, img_shape[self.row_axis - 1], img_shape[self.col_axis - 1], rng)

    def apply_transform(self, x: Array, transform_parameters: dict[str, Any]) -> Array:
        """Transform one image: one affine resampling, then channel shift, flips and brightness.

        Args:
            x: One image, 3 dimensions.
            transform_parameters: As from `get_random_transform`; what is left out changes nothing.

        Returns:
            An image of the same shape.
        """
        given = transform_parameters.get
        row_axis, col_axis, channel_axis = self.row_axis - 1, self.col_axis - 1, self.channel_axis - 1
        moves = [given(name, unmoved) for name, unmoved in _MOVES.items()]
        moves += [row_axis, col_axis, channel_axis, self.fill_mode, self.cval, self.interpolation_order]
        x = apply_affine_transform(x, *moves, geometry=self.geometry)
        if given("channel_shift_intensity") is not None:
            x = apply_channel_shift(x, transform_parameters["channel_shift_intensity"], channel_axis)
        if given("flip_horizontal", False):
            x = flip_axis(x, col_axis)
        if given("flip_vertical", False):
            x = flip_axis(x, row_axis)
        if given("brightness") is not None:
            exact = self.geometry == "keras3"
            x = apply_brightness_shift(x, transform_parameters["brightness"], False, through_bytes=exact, channel_axis=channel_axis)
        return x

    def random_transform(self, x: Array, seed: int | None = None) -> Array:
        """`apply_transform` with parameters from `get_random_transform`."""
        return self.apply_transform(x, self.get_random_transform(x.shape, seed))

    def standardize(self, x: Array) -> Array:
        """Apply `preprocessing_function`, `rescale`, the samplewise and the featurewise statistics and the whitening, in this order.

        Args:
            x: An image or a batch of images. As documented, floats are changed in place as far as that goes; whole numbers never are.

        Returns:
            The values, in the shape of `x`. Statistics that were not fitted are left out, with a warning.
        """
        import numpy as np

        if self.preprocessing_function:
            x = self.preprocessing_function(x)
        if not np.issubdtype(x.dtype, np.inexact):
            x = x.astype(self.dtype)
        if self.rescale:
            x *= self.rescale
        each = tuple(range(x.ndim - 3, x.ndim))
        if self.samplewise_center:
            x -= np.mean(x, each, keepdims=True)
        if self.samplewise_std_normalization:
            x /= np.std(x, each, keepdims=True) + _EPSILON
        if (mean := self._fitted("featurewise_center", self.mean)) is not None:
            x -= mean
        if (std := self._fitted("featurewise_std_normalization", self.std)) is not None:
            x /= std + _EPSILON
        if (matrix := self._fitted("zca_whitening", self.zca_whitening_matrix)) is not None:
            x = (x.reshape(-1, len(matrix)) @ matrix).reshape(x.shape)
        return x

    def _fitted(self, argument: str, found: Array | None) -> Array | None:
        """Returns what was found for an argument, if it was given; a warning where it was given and nothing found."""
        if not getattr(self, argument):
            return None
        if found is None:
            warn(f"`{argument}` has no effect before `fit` has seen data")
        return found

    # Statistics

    def fit(self, x: Any, augment: bool = False, rounds: int = 1, seed: int | None = None) -> None:
        """Take the statistics that the featurewise arguments and the whitening need.

        They are those of what a flow gives: augmented first where asked for, then times `rescale`. `preprocessing_function` and the
        samplewise arguments are not applied, as documented, which a warning says.

        Args:
            x: Images, 4 dimensions.
            augment: Of augmented images.
            rounds: How many augmented images of each.
            seed: For the augmentation.

        Raises:
            ValueError: For another shape, or images too large to be whitened.
        """
        import numpy as np

        images = np.asarray(x)
        if images.ndim != 4:
            raise ValueError(f"`fit` takes images as an array of 4 dimensions, got the shape {images.shape}")
        channels = images.shape[self.channel_axis]
        if channels not in (1, 3, 4):
            warn(f"with `{self.data_format}`, {images.shape} are images of {channels} channels, not of 1, 3 or 4")
        if not self.featurewise_center:  # the other two switch it on
            return
        if self.preprocessing_function or self.samplewise_center:
            warn("`fit` takes statistics without `preprocessing_function` and without the samplewise arguments")
        rng = stream(seed)

        seen = self._seen(images, rounds if augment else 0, rng)
        whole = np.concatenate(list(seen)) if self.zca_whitening else None
        mean, std = moments(seen if whole is None else [whole], self.channel_axis)
        one_pixel = [1, 1, 1]
        one_pixel[self.channel_axis - 1] = channels
        self.mean = mean.reshape(one_pixel).astype(self.dtype)
        if self.featurewise_std_normalization:
            self.std = std.reshape(one_pixel).astype(self.dtype)
        if whole is not None:
            rows = (whole - mean.reshape(one_pixel)).reshape(len(whole), -1)
            self.zca_whitening_matrix = whitening(rows, self.zca_epsilon).astype(self.dtype)
        check_flows(self)

    def _seen(self, images: Array, rounds: int, rng: Any) -> Iterator[Array]:
        """Blocks of what statistics are taken of, float64."""
        import numpy as np

        for _ in range(max(rounds, 1)):
            for start in range(0, len(images), _BLOCK):
                block = np.asarray(images[start : start + _BLOCK], self.dtype)
                if rounds:
                    block = np.stack([self.apply_transform(image, self._draw(image.shape, rng)) for image in block])
                yield block.astype(np.float64) * (self.rescale or 1)


Described._generator = ImageDataGenerator
