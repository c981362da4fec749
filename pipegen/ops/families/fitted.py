"""Steps that are fitted on the training split, and the parts that do their work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import PrivateAttr

from pipegen.errors import OpError
from pipegen.lazy import np
from pipegen.ops.arguments.learned import Fitted, Statistics
from pipegen.ops.step_bases import ElementTransform, require_image
from pipegen.ops.traits import Traits
from pipegen.ops.transform import Part, Transform
from pipegen.types import FLOATING, FeatureType

if TYPE_CHECKING:
    from typing_extensions import Self


class FittedTransform(Transform):
    """A step that can learn numbers from the training split; its parts do the work. `untrained` is the advice for a spec without one."""

    family: ClassVar[str] = "statistics"
    untrained: ClassVar[str]
    kind_of_numbers: ClassVar[type[Statistics]]

    @property
    def each(self) -> str:
        """What has a number of its own, for messages."""
        return "channel"

    _fitted: Fitted | None = PrivateAttr(default=None)

    @property
    def fitted(self) -> Fitted | None:
        """The learned numbers, or `None` before fitting."""
        return self._fitted

    def learns(self) -> bool:
        """Whether its arguments require numbers of the training split."""
        raise NotImplementedError

    def measuring(self, feature: str) -> ElementTransform:
        """The step that replaces it while it is fitted: from its input image to the input of `gather`."""
        raise NotImplementedError

    def gather(self, batches: Iterable[np.ndarray[Any, Any]]) -> Statistics:
        """Computes the numbers in one pass over batches of results of `measuring`, float64 `(n, ...)` each, in memory that does not grow
        with the data. `ValueError` for no images, or images from which nothing can be learned."""
        raise NotImplementedError

    def written_down(self, numbers: Statistics) -> str | None:
        """An equivalent step that needs no fitting, as a line of a spec, if there is one."""
        return None

    def with_numbers(self, fitted: Fitted | None) -> Self:
        """The same step with learned numbers; with `None`, without them."""
        step = self.model_copy()
        step._fitted = fitted
        return step

    def fitted_parts(self, kind: Callable[..., StepPart]) -> tuple[Part, ...]:
        """A part for each feature with its `numbers`; before fitting, one part without numbers."""
        each: Iterable[tuple[str | None, Statistics | None]] = (
            [(self.feature, None)] if self.fitted is None else self.fitted.numbers.items()
        )
        return tuple(Part(kind(owner=self, when=self.when, feature=name, numbers=own)) for name, own in each)

    def traits(self, x: FeatureType) -> Traits:
        return self.parts()[0].step.traits(x)

    def infer(self, x: FeatureType) -> FeatureType:
        """The output type of its part; with numbers of several features, the type without numbers."""
        parts = self.parts()
        return parts[0].step.infer(x) if len(parts) == 1 else self.with_numbers(None).infer(x)


class StepPart(Transform):
    """The step that does the work of another step, or replaces it during fitting."""

    owner: Transform

    @property
    def op(self) -> str:  # type: ignore[override]
        return self.owner.op

    def written(self) -> Transform:
        return self.owner

    def meaning(self) -> dict[str, Any]:
        return self.owner.meaning()


def require_values(step: Transform, x: FeatureType) -> None:
    """Rejects all but images, and sounds where the step acts on them, of bytes, of 16 bits or of floats: another dtype as `PG208`; see
    also `require_image`."""
    require_image(step, x)
    if x.dtype not in ("uint8", "uint16") and x.dtype not in FLOATING:
        raise OpError("PG208", f"`{step.op}` works on whole numbers of 8 and 16 bits and on floats, and gets {x.dtype}")
