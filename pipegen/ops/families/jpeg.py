"""The losses of JPEG: what the random and the deterministic form share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.types import FeatureType

Quality = Annotated[int, Field(ge=1, le=100)]


class JpegTransform(NeighbourhoodTransform):
    """Encodes each image as JPEG and decodes it, by libjpeg, so that every bit is what a file would give."""

    on_bytes = True
    on_host = True

    def infer(self, x: FeatureType) -> FeatureType:
        """uint8 of any value."""
        y = super().infer(x)
        if x.channels not in (1, 3):
            raise OpError("PG205", f"`{self.op}` works on 1 or 3 channels, and gets {x.channels}")
        return y

    def weight(self) -> float:
        return 1.1

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        def one(single: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
            image, quality = single
            file = tf.raw_ops.EncodeJpegVariableQuality(images=image, quality=quality)
            return tf.io.decode_jpeg(file, int(images.shape[-1]), dct_method="INTEGER_ACCURATE")

        (quality,) = given
        done = tf.map_fn(one, (images, quality), fn_output_signature=tf.TensorSpec(images.shape[1:], tf.uint8))
        done.set_shape(images.shape)
        return done
