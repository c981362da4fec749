"""Whiten images by what the training split has in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field

from pipegen.lazy import np
from pipegen.ops.arguments.learned import Statistics
from pipegen.ops.arguments.whitening import Whitening
from pipegen.ops.base import ElementTransform, Example, Part
from pipegen.ops.families.fitted import FittedTransform
from pipegen.ops.families.whitening import ImageValues, WhitenImages
from pipegen.ops.lowering.whitening import fitted
from pipegen.types import BYTE_RANGE, FeatureType

_IMAGE_16 = FeatureType("image", "uint8", (16, 16, 3), BYTE_RANGE)


class Whiten(FittedTransform):
    """Subtracts the mean image and removes what values have in common with each other: y = (x - mean) · W, as float32.

    With the values of an image in one row, the covariance of the training split is U · diag(v) · Uᵀ, and W is
    U · diag(1 / √(v + epsilon)) · Uᵀ, known as ZCA: of all ways to uncorrelate the values and to give each the variance 1, the one
    that keeps images most as they are. Edges stay, and what is even or smooth goes.

    The training split is taken as it reaches this step without augmentation: without the random steps before it, or with
    their evaluation forms. `pipegen.build` finds the matrix in one pass over it, keeps it beside the other caches, and takes it
    from there as long as the data, the training split, the steps before and the arguments here are the same; `pipegen fit` does
    that ahead. The memory that this takes does not grow with the number of examples, but fast with their size: they have at most
    8,192 values (52×52×3). For 32×32×3 the matrix takes 36 MiB, and finding it half a minute beside the pass over the images. There
    should be more examples than values; with fewer, `epsilon` decides, and a warning says so.

    Keras' `ImageDataGenerator(featurewise_center=True, zca_whitening=True)` is `whiten: {center: channel}`: it subtracts one mean
    from each channel. Keras 2.9 to 3 add `zca_epsilon` to other numbers (singular values) and take out what none of the images
    shows, where this step magnifies it by up to 1 / √epsilon; with many more examples than values there is no difference.
    """

    op = "whiten"
    examples = (
        Example("whiten", _IMAGE_16, "float32[16×16×3]"),
        Example("whiten: {method: zca, center: channel, epsilon: 0.1}", _IMAGE_16, "float32[16×16×3]"),
    )
    untrained = "whitening takes its matrix from training data: name that split `train`, or leave the step out"

    method: Literal["zca"] = "zca"
    """How values are uncorrelated: `zca` turns the images back to where they were, so that they still look like images."""
    center: Literal["pixel", "channel"] = "pixel"
    """What is subtracted: from each value of each pixel its own mean over the training split (`pixel`), or from each channel one mean
    (`channel`), around which the covariance is then taken, as Keras does it."""
    epsilon: Annotated[float, Field(gt=0, le=1e6)] = 1e-6
    """What is added to the variances before their root divides, in squared units of the values that enter: 1e-6 suits values of
    0 to 1, and 0.1 those of 0 to 255. More of it leaves noise less magnified."""

    def learns(self) -> bool:
        return True

    def kind_of_numbers(self) -> type[Statistics]:
        return Whitening

    def measuring(self, feature: str) -> ElementTransform:
        learns = {"method": self.method, "center": self.center, "epsilon": self.epsilon}
        return ImageValues(owner=self, when="all", feature=feature, learns=learns)

    def gather(self, batches: Iterable[np.ndarray[Any, Any]]) -> Whitening:
        return fitted(batches, self.epsilon, by_channel=self.center == "channel")

    def parts(self) -> tuple[Part, ...]:
        if self.fitted is None:
            return (Part(WhitenImages(owner=self, when=self.when, feature=self.feature, numbers=None)),)
        return tuple(Part(WhitenImages(owner=self, when=self.when, feature=f, numbers=n)) for f, n in self.fitted.numbers.items())
