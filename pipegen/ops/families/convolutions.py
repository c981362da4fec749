"""The family of convolutions: filters and rooms, as transfer functions of sound, and the stage of a run of them."""

from __future__ import annotations

from typing import Any, ClassVar

from pipegen.frozen import dataclass
from pipegen.lazy import tf
from pipegen.ops.families.sounds import SoundTransform
from pipegen.ops.lowering.waveforms import convolved, power_of_two, sizes
from pipegen.ops.lowering.windows import Whole
from pipegen.ops.stage import Computes, StepRef, only_identities, uses, weight_ns
from pipegen.ops.traits import Family
from pipegen.types import FeatureType, Interval


class ConvolutionTransform(SoundTransform):
    """A function of sound that is a product in the frequency domain.

    Adjacent steps that act on every example multiply, and are one convolution of the sound that enters the first: silence lies around it,
    and the result is cut to its length once, behind the last. (With steps that act on some examples, an example would often pay for more
    and longer transforms than its own steps need.)
    """

    family = Family.CONVOLUTION

    def reach(self, *given: tf.Tensor) -> Whole:
        """Returns for how many frames the result outlasts the sound, at most, from the `parameters`."""
        raise NotImplementedError

    def transfer(self, length: Whole, *given: tf.Tensor) -> tf.Tensor:
        """Computes the transfer function for sounds of `length` frames, a power of two, from the `parameters`: float32 or complex64 `(n, 1
        or channels, length // 2 + 1)`."""
        raise NotImplementedError

    def interval_after(self, interval: Interval) -> None:
        return None

    def phase(self, sounds: tf.Tensor, *given: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (self.transfer(power_of_two(sizes(sounds)[0] + self.reach(*given)), *given),)

    def finish(self, images: tf.Tensor, *given: tf.Tensor) -> tf.Tensor:
        return convolved(images, *given)

    def stage(self, feature: str, ref: StepRef[Any], x: FeatureType) -> Convolution:  # type: ignore[override]  # a stage of its own
        return Convolution(feature, (ref,))


@dataclass(frozen=True, slots=True)
class Convolution(Computes):
    """One convolution by the product of the transfer functions of a run of steps; or of one step that acts on some examples."""

    branches: ClassVar[bool] = True
    ns_per_value: ClassVar[float] = 0.8
    shared: ClassVar[float] = 11.2  # nanoseconds for each value of the transforms of the sound, which all steps share

    feature: str
    refs: tuple[StepRef[ConvolutionTransform], ...]
    exact: bool = False

    @property
    def conditional(self) -> bool:
        """Whether it is one step, of which a gate or a choice decides if it acts on an example."""
        return self.refs[0].conditional

    def says(self) -> str:
        return f"one convolution: {uses(self.refs)}" if len(self.refs) > 1 else uses(self.refs)

    def leads(self) -> bool:
        return True

    def is_identity(self, x: FeatureType, y: FeatureType) -> bool:
        return only_identities(self.refs, x, y)

    def ns(self, x: FeatureType) -> float:
        return self.shared + sum(max(0.0, weight_ns(ref, self.ns_per_value, x) - self.shared) for ref in self.refs)
