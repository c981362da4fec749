"""Steps whose numbers come from the training split, on which they are fitted, and the parts that do their work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import PrivateAttr

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.arguments.learned import Fitted
from pipegen.ops.base import ElementTransform, require_image
from pipegen.ops.transform import Transform
from pipegen.types import FLOATING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self

    from pipegen.ops.arguments.learned import Statistics
    from pipegen.ops.traits import Traits
    from pipegen.types import FeatureType


class FittedTransform(Transform):
    """A step that takes numbers from the training split, where its arguments ask for that, and is done by its parts.

    Class attributes:
        untrained: What to do instead where there is no training split.
    """

    family: ClassVar[str] = "statistics"
    untrained: ClassVar[str]

    _fitted: Fitted | None = PrivateAttr(default=None)

    @property
    def fitted(self) -> Fitted | None:
        """Returns what it has learned, or `None` before that."""
        return self._fitted

    def learns(self) -> bool:
        """Returns whether its arguments ask for numbers of the training split."""
        raise NotImplementedError

    def kind_of_numbers(self) -> type[Statistics]:
        """Returns the kind of numbers that it learns."""
        raise NotImplementedError

    def measuring(self, feature: str) -> ElementTransform:
        """Returns what stands in its place while it is fitted: from an image that would enter it to what `gather` takes."""
        raise NotImplementedError

    def gather(self, batches: Iterable[np.ndarray[Any, Any]]) -> Statistics:
        """The numbers, in one pass and in memory that does not grow with the data.

        Args:
            batches: What `measuring` gives of images, stacked: float64 `(n, ...)` each.

        Raises:
            ValueError: When there is no image, or nothing can be learned from these.
        """
        raise NotImplementedError

    def written_down(self, numbers: Statistics) -> str | None:
        """A step that does the same and need not be fitted, as a line of a spec, where there is one."""
        return None

    def with_numbers(self, fitted: Fitted | None) -> Self:
        """The same step with what it has learned; with `None`, as if it had not."""
        step = self.model_copy()
        step._fitted = fitted
        return step

    def traits(self, x: FeatureType) -> Traits:
        return self.parts()[0].step.traits(x)

    def infer(self, x: FeatureType) -> FeatureType:
        """Infers what its part gives; with the numbers of several features, what is known without them."""
        parts = self.parts()
        return parts[0].step.infer(x) if len(parts) == 1 else self.with_numbers(None).infer(x)


class StepPart(Transform):
    """Does the work of a step, or stands in for it while it is fitted."""

    owner: Transform
    """The step as it was written."""

    @property
    def op(self) -> str:  # type: ignore[override]
        return self.owner.op

    def written(self) -> Transform:
        return self.owner

    def meaning(self) -> dict[str, Any]:
        return self.owner.meaning()


def require_values(step: Transform, x: FeatureType) -> None:
    """Reject what is no image of bytes, of 16 bits or of floats.

    Raises:
        OpError: `PG208` for another dtype; see also `require_image`.
    """
    require_image(step, x)
    if x.dtype not in ("uint8", "uint16") and x.dtype not in FLOATING:
        raise OpError("PG208", f"`{step.op}` works on whole numbers of 8 and 16 bits and on floats, and gets {x.dtype}")
