"""`whiten`: remove the correlations between pixels of the training split."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.lazy import np, tf
from pipegen.ops.arguments.learned import Whitening
from pipegen.ops.families.fitted import FittedTransform, StepPart, require_values
from pipegen.ops.families.neighbourhood import NeighbourhoodTransform
from pipegen.ops.lowering.statistics import fitted, whiten
from pipegen.ops.step_bases import ElementTransform, UnconditionalTransform
from pipegen.ops.traits import Example, Family, Traits
from pipegen.ops.transform import Part, Transform
from pipegen.types import BYTE_RANGE, FeatureType, Interval, times

LARGEST = 8192  # the most values of an image that can be whitened: the matrix takes 256 MiB, and computing it 3 GiB and about ten minutes


class WhitenImages(UnconditionalTransform, StepPart, NeighbourhoodTransform):
    """Subtracts a mean image and multiplies by a matrix. Until these are known its numbers are NaN."""

    numbers: Any
    """The `Whitening` that was learned, or `None` before that."""

    def waits(self) -> bool:
        return self.numbers is None

    def meaning(self) -> dict[str, Any]:
        """With the numbers, since the content of a cache behind the step depends on them."""
        return {**self.owner.meaning(), "numbers": self.numbers.digest if self.numbers is not None else None}

    def traits(self, x: FeatureType) -> Traits:
        values = math.prod(d or 0 for d in x.shape)
        return Traits(Family.NEIGHBOURHOOD, weight=max(1.0, 0.05 * values))  # of each output value, for each input value

    def infer(self, x: FeatureType) -> FeatureType:
        require_whitenable(self, x)
        y = x.with_(dtype="float32", interval=None, centred=True)
        if self.numbers is None or math.prod(d or 0 for d in x.shape) == 0:
            return y
        size, fitted = math.prod(d or 0 for d in x.shape), len(self.numbers.mean)
        if size != fitted:
            raise OpError("PG231", f"`{self.op}` was fitted on images of {fitted:,} values, and gets {size:,}")
        if x.interval is None:
            return y
        up, down, middle = self.numbers.reach
        low, high = x.interval.low, x.interval.high
        return y.with_(interval=Interval(float((low * up + high * down - middle).min()), float((high * up + low * down - middle).max())))

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return whiten(images, self.numbers)


class ImageValues(StepPart, ElementTransform):
    """The values of an image, whose covariance is computed."""

    learns: dict[str, Any]
    """The arguments that the learned numbers depend on."""

    def meaning(self) -> dict[str, Any]:
        return self.learns

    def infer(self, x: FeatureType) -> FeatureType:
        require_whitenable(self, x)
        return x.with_(dtype="float64", interval=None)

    def apply(self, image: tf.Tensor, u: tf.Tensor) -> tf.Tensor:
        return tf.cast(image, tf.float64)


def require_whitenable(step: Transform, x: FeatureType) -> None:
    """Rejects, as `PG231`, images without a fixed size, and those of too many values for a matrix; see also `require_values`."""
    require_values(step, x)
    if not x.is_static:
        help_ = write(f"resize: {{size: {_side(x.channels)}}}", "before", "add {} or smaller before it")
        raise OpError("PG231", f"`{step.op}` needs images of one size, and gets {times(x.shape)}", help=help_)
    values = math.prod(d or 0 for d in x.shape)
    if values <= LARGEST:
        return
    matrix = f"a matrix of {values:,}×{values:,} numbers ({values**2 * 4 / 2**30:,.1f} GiB)"
    ways = [f"`- resize: {{size: {_side(x.channels)}}}` or smaller before it"] if (x.channels or 1) <= LARGEST else []
    if x.channels == 3:
        ways.append(f"`- grayscale` before it and a size of at most {_side(1)}")
    ways.append("in its place `- standardize: {statistics: featurewise}`")
    message = f"`{step.op}` needs {matrix} for images of {times(x.shape)}, and works up to {LARGEST:,} values an image"
    raise OpError("PG231", message, help=", or ".join(ways))


def _side(channels: int | None) -> int:
    """The side of the largest square that can be whitened, in pixels."""
    return math.isqrt(LARGEST // min(channels or 3, LARGEST))


_IMAGE_16 = FeatureType("image", "uint8", (16, 16, 3), BYTE_RANGE)


class Whiten(FittedTransform):
    """Subtracts the mean image and removes the correlation between values: y = (x - mean) · W, as float32.

    With the values of an image in one row, the covariance of the training split is U · diag(v) · Uᵀ, and W is
    U · diag(1 / √(v + epsilon)) · Uᵀ, known as ZCA: among all matrices that uncorrelate the values and give each the variance 1, the one
    that changes images least. Edges stay, and even or smooth areas vanish.

    The training split is taken as it reaches this step without augmentation: without the random steps before it, or with their evaluation
    forms. `pipegen.build` computes the matrix in one pass over it, stores it beside the other caches, and reads it from there as long as
    the data, the training split, the steps before and the arguments here are the same; `pipegen fit` does that in advance. The memory does
    not grow with the number of examples, but fast with their size: they have at most 8,192 values (52×52×3). For 32×32×3 the matrix takes
    36 MiB, and computing it half a minute in addition to the pass over the images. Use more examples than values; with fewer, the result
    depends on `epsilon`, and a warning tells you.

    Keras' `ImageDataGenerator(featurewise_center=True, zca_whitening=True)` is `whiten: {center: channel}`: it subtracts one mean from each
    channel. Keras 2.9 to 3 add `zca_epsilon` to other numbers (singular values) and remove directions that no image shows, which this step
    magnifies by up to 1 / √epsilon; with many more examples than values there is no difference.
    """

    op = "whiten"
    examples = (
        Example("whiten", _IMAGE_16, "float32[16×16×3]"),
        Example("whiten: {method: zca, center: channel, epsilon: 0.1}", _IMAGE_16, "float32[16×16×3]"),
    )
    kind_of_numbers = Whitening
    untrained = "whitening computes its matrix from training data: name that split `train`, or leave the step out"

    method: Literal["zca"] = "zca"
    """How values are uncorrelated: `zca` rotates the images back, so that they still look like images."""
    center: Literal["pixel", "channel"] = "pixel"
    """What is subtracted: from each value of each pixel its own mean over the training split (`pixel`), or from each channel one mean
    (`channel`), about which the covariance is computed, as in Keras."""
    epsilon: Annotated[float, Field(gt=0, le=1e6)] = 1e-6
    """What is added to the variances before dividing by their root, in squared units of the incoming values: 1e-6 suits values from 0 to 1,
    and 0.1 values from 0 to 255. A larger one magnifies noise less."""

    def learns(self) -> bool:
        return True

    def measuring(self, feature: str) -> ElementTransform:
        learns = {"method": self.method, "center": self.center, "epsilon": self.epsilon}
        return ImageValues(owner=self, when="all", feature=feature, learns=learns)

    def gather(self, batches: Iterable[np.ndarray[Any, Any]]) -> Whitening:
        return fitted(batches, self.epsilon, by_channel=self.center == "channel")

    def parts(self) -> tuple[Part, ...]:
        return self.fitted_parts(WhitenImages)
