"""Give images the low frequencies of a reference image."""

from __future__ import annotations

from typing import Annotated

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Span, check_pair, check_range, checked, span_range
from pipegen.ops.base import IMAGE_224, Example
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.families.references import ReferenceTransform
from pipegen.ops.lowering.filters import sides
from pipegen.ops.lowering.linear import choice, uniform
from pipegen.types import FeatureType


class RandomFourierAdaptation(ReferenceTransform, NeighbourhoodTransform):
    """Puts the amplitudes of the low frequencies of one of the reference images, each as likely, in the place of the image's own: Fourier
    domain adaptation, Albumentations' `FDA`. Phases stay, and with them what is where.

    Low are the frequencies from -b to b - 1 along both axes, where b is the shorter side times a share that is drawn uniformly, rounded
    down; a b of 0 leaves an image as it is. The references are brought to the image's size, bilinear. It is computed in float64 and
    rounded to bytes, by TensorFlow's own transform and not by XLA.

    Source: Yang, Soatto, "FDA: Fourier Domain Adaptation for Semantic Segmentation" (2020).
    """

    op = "random_fourier_adaptation"
    random = True
    on_bytes = True
    on_host = True
    examples = (
        Example("random_fourier_adaptation: {references: styles/}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
        Example("random_fourier_adaptation: {references: styles/, beta: [0, 0.3]}", IMAGE_224, "uint8[224×224×3] in [0, 255]"),
    )

    beta: Annotated[Span, checked(check_pair), checked(check_range, 0, 0.5)] = (0.0, 0.1)
    """The range of the share of the shorter side that is low, from 0 to 0.5."""

    def infer(self, x: FeatureType) -> FeatureType:
        """uint8 of any value, of gray or RGB."""
        y = super().infer(x)
        if x.channels not in (1, 3):
            raise OpError("PG205", f"`{self.op}` works on 1 or 3 channels, and gets {x.channels}")
        return y

    def idle(self) -> bool:
        return super().idle() or span_range(self.beta)[1] == 0

    def weight(self) -> float:
        return 25.0

    def num_draws(self) -> int:
        return 2

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`beta`, and `reference`: which of them, in an order that their content decides."""
        return {"beta": uniform(u[..., 0], span_range(self.beta)), "reference": choice(u[..., 1], len(self.pictures(3)))}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        drawn = self.drawn(u)
        shorter = tf.cast(tf.minimum(height, width), tf.float64)
        return tf.cast(tf.floor(drawn["beta"] * shorter), tf.int32), drawn["reference"]

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        border, reference = given
        height, width, channels = sides(images)
        pictures = [tf.image.resize(picture, (height, width)) for picture in self.pictures(channels)]
        theirs = tf.abs(_spectra(tf.stack(pictures)))
        own = _spectra(images)
        size = tf.abs(own)
        low = _low(height, border)[:, None, :, None] & _low(width, border)[:, None, None, :]
        amplitude = tf.where(low, tf.gather(theirs, reference), size)
        phase = own / tf.cast(tf.maximum(size, 1e-300), tf.complex128)
        mixed = tf.where(size > 0, tf.cast(amplitude, tf.complex128) * phase, tf.cast(amplitude, tf.complex128))
        pixels = tf.transpose(tf.math.real(tf.signal.ifft2d(mixed)), [0, 2, 3, 1])
        return tf.cast(tf.clip_by_value(tf.round(pixels), 0.0, 255.0), tf.uint8)


def _spectra(images: tf.Tensor) -> tf.Tensor:
    """The transform of each channel: complex128 `(n, channels, height, width)`."""
    return tf.signal.fft2d(tf.cast(tf.transpose(tf.cast(images, tf.float64), [0, 3, 1, 2]), tf.complex128))


def _low(length: int | tf.Tensor, border: tf.Tensor) -> tf.Tensor:
    """Returns which frequencies along an axis are low for each example: bool `(n, length)`."""
    place = tf.range(length)
    frequency = tf.where(place < (length + 1) // 2, place, place - length)
    return (frequency >= -border[:, None]) & (frequency < border[:, None])
