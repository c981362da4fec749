"""Defines the closed set of stages that nodes are made of: what can be done to one feature of an example or a batch.

A stage holds op instances and reads only their traits, so a new op needs no new stage. Stages know nothing of
TensorFlow; `backend/kernels/lower.py` gives each its meaning.

`exact` says of a stage that computes floats that a later one rounds them to whole numbers, so that every bit counts: see
`plan/exactness.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from pipegen.ops.base import Arithmetic, Fill, Transform
    from pipegen.spec.models import Encoding
    from pipegen.types import FeatureType, Interval

Path = tuple[str | int, ...]
"""A key path in the spec, such as `("transforms", 2, "random_flip")`."""


@dataclass(frozen=True, slots=True)
class StepRef:
    """One use of a step.

    Attributes:
        step: The op.
        id: What keys its draws.
        path: Where it stands in the spec.
        start: Its first number in the example's vector of draws.
        gated: Whether the number after its own decides, by `probability`, if it acts at all.
        choice: What else decides that: the policy that the step is a part of.
    """

    step: Transform
    id: str
    path: Path
    start: int
    gated: bool
    choice: Choice | None = None

    @property
    def num_draws(self) -> int:
        """Numbers in the example's vector, the gate included."""
        return self.step.num_draws() + self.gated

    @property
    def conditional(self) -> bool:
        """Returns whether it leaves some examples as they are, whatever its own numbers are."""
        return self.gated or self.choice is not None

    @property
    def is_random(self) -> bool:
        """Returns whether what it does depends on the example's draws."""
        return bool(self.num_draws) or self.choice is not None

    @property
    def share(self) -> float:
        """The expected share of the examples that it acts on."""
        own: float = getattr(self.step, "probability", 1.0) if self.gated else 1.0
        if self.choice is None:
            return own
        policy, number = self.choice.policy, self.choice.number
        chosen: float = policy.step.share(number) if number is not None else 1.0  # type: ignore[attr-defined]
        return own * policy.share * chosen

    @property
    def end(self) -> int:
        """Returns how much of the example's vector of draws the stage needs."""
        return max(self.start + self.num_draws, self.choice.policy.end if self.choice is not None else 0)


@dataclass(frozen=True, slots=True)
class Choice:
    """Holds what a policy decides about one of its parts, for each example.

    Attributes:
        policy: The use of the policy.
        number: Which of its choices; `None` where the part acts whenever the policy does.
    """

    policy: StepRef
    number: int | None


@dataclass(frozen=True, slots=True)
class Decode:
    """Bytes to pixels.

    Attributes:
        needed: The least height and width that the next step can use without loss, or `None`.
        like: The image that it is aligned with, whose file is not decoded yet, and what decodes that: both have to be of one size.
    """

    feature: str
    ref: StepRef
    needed: tuple[int, int] | None
    like: tuple[str, StepRef] | None = None


@dataclass(frozen=True, slots=True)
class DecodeWindow:
    """Bytes to the pixels of a crop window, and the crop's finish.

    A window that will be resized may be decoded at a smaller scale, which depends on the window; so decode and crop mean
    something only together. `whole` decodes the whole image at that scale and slices; otherwise the window alone.
    """

    feature: str
    decode: StepRef
    crop: StepRef
    needed: tuple[int, int] | None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Apply:
    """A function of one example."""

    feature: str
    ref: StepRef


@dataclass(frozen=True, slots=True)
class Crop:
    """A window of one example, and the crop's finish."""

    feature: str
    ref: StepRef


@dataclass(frozen=True, slots=True)
class Compose:
    """Multiply one step's matrix into the pending transform of a geometric segment.

    `opens` starts the segment: what was pending before is the identity.
    """

    feature: str
    ref: StepRef
    canvas: tuple[int | None, int | None]
    opens: bool


@dataclass(frozen=True, slots=True)
class Resample:
    """Read the image once through the pending transform, which ends the geometric segment.

    `projective` says that the transform divides: a step's matrix can have a last row other than (0, 0, 1).
    """

    feature: str
    fill: Fill
    interpolation: str
    size: tuple[int | None, int | None]
    projective: bool = False
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Warp:
    """A whole geometric segment: the product of the steps' matrices and one resampling."""

    feature: str
    refs: tuple[StepRef, ...]
    fill: Fill
    interpolation: str
    canvas: tuple[int | None, int | None]
    size: tuple[int | None, int | None]
    mirrors: bool
    """Whether the product only mirrors axes."""
    projective: bool = False
    """Whether a matrix of the product can have a last row other than (0, 0, 1), so that a position is a quotient."""
    exact: bool = False


@dataclass(frozen=True, slots=True)
class ComposeColour:
    """Multiply one step's colour matrix into the pending matrix of a colour segment."""

    feature: str
    ref: StepRef
    channels: int
    opens: bool


@dataclass(frozen=True, slots=True)
class ApplyColour:
    """Apply the pending colour matrix and clip, which ends the colour segment."""

    feature: str
    clip: Interval | None
    uses_mean: bool
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Colour:
    """A whole colour segment: the product of the steps' matrices, applied and clipped once."""

    feature: str
    refs: tuple[StepRef, ...]
    channels: int
    clip: Interval | None
    uses_mean: bool
    exact: bool = False

    @property
    def mixes_channels(self) -> bool:
        """Returns whether an output channel can depend on another channel."""
        return any(r.step.mixes_channels() for r in self.refs)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class LookupTable:
    """Read each value through the tables of the steps, one after another; what is not uint8 is rounded and clipped first.

    Attributes:
        reads_histogram: Whether one of the tables depends on the histogram of the image.
    """

    feature: str
    refs: tuple[StepRef, ...]
    reads_histogram: bool


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """A function of whole images, for the examples that it acts on.

    Attributes:
        clip: The values that may leave, where the step can leave the range of floats that enters it.
        starts_kernel: Whether what computes its input has to be done with before it starts.
    """

    feature: str
    ref: StepRef
    clip: Interval | None
    starts_kernel: bool
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Branch:
    """A conditional stage, run on one example at a time and on those alone that it acts on.

    Attributes:
        entry: The type of the image that enters.
        compiled: Whether XLA compiles it, for a batch of one.
    """

    feature: str
    stage: LookupTable | Neighbourhood
    entry: FeatureType
    compiled: bool


@dataclass(frozen=True, slots=True)
class Mix:
    """Take a part of another example of the group into each one.

    Attributes:
        canvas: The height and width of the images, in pixels.
        label: Whether the feature is a label, which is weighed by the share that is taken.
    """

    feature: str
    ref: StepRef
    canvas: tuple[int | None, int | None]
    label: bool
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Pointwise:
    """Element-wise arithmetic and a dtype."""

    feature: str
    arithmetic: Arithmetic
    refs: tuple[StepRef, ...]
    exact: bool = False


@dataclass(frozen=True, slots=True)
class ChannelsFirst:
    """Move the channel axis of an image before its height."""

    feature: str


@dataclass(frozen=True, slots=True)
class EncodeLabel:
    """Class indices to what the loss wants."""

    feature: str
    encoding: Encoding
    classes: int | None


@dataclass(frozen=True, slots=True)
class Measure:
    """Finds the size of the image that items are aligned with, whose file is not decoded yet.

    Attributes:
        like: The image, and what decodes it.
    """

    feature: str
    like: tuple[str, StepRef]


@dataclass(frozen=True, slots=True)
class Move:
    """Moves items with their image: through the product of the steps' matrices, or as one step crops or resizes. What is no longer on
    the image is left out.

    Attributes:
        kind: The kind of the items.
        canvas: Height and width of the image that enters, in pixels.
        size: The same of the image that leaves.
    """

    feature: str
    kind: str
    refs: tuple[StepRef, ...]
    canvas: tuple[int | None, int | None]
    size: tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class MoveEach(Move):
    """The same where images differ in size, so that each example is worked on by itself."""


Stage = Union[
    Decode, DecodeWindow, Apply, Crop, Compose, Resample, Warp, ComposeColour, ApplyColour, Colour, LookupTable, Neighbourhood,
    Branch, Mix, Pointwise, ChannelsFirst, EncodeLabel, Measure, Move, MoveEach,
]  # fmt: skip
ElementStage = (Decode, DecodeWindow, Apply, Crop, Branch, Measure, MoveEach)
"""The stages that work on one example at a time, whatever its shape."""


def refs(stage: Stage) -> tuple[StepRef, ...]:
    """The uses of steps in a stage, in the spec's order."""
    if isinstance(stage, DecodeWindow):
        return (stage.decode, stage.crop)
    if isinstance(stage, Branch):
        return refs(stage.stage)
    if isinstance(stage, (Decode, Apply, Crop, Compose, ComposeColour, Neighbourhood, Mix)):
        return (stage.ref,)
    if isinstance(stage, (Warp, Colour, LookupTable, Pointwise, Move)):
        return stage.refs
    return ()


def starts_kernel(stage: Stage) -> bool:
    """Returns whether what computes the stage's input has to be done with before the stage starts: it reads whole images first, or
    pixels at other places than it writes."""
    match stage:
        case Warp():
            return not stage.mirrors
        case LookupTable():
            return stage.reads_histogram
        case Neighbourhood():
            return stage.starts_kernel
    return False


def is_compiled(stage: Stage) -> bool:
    """Returns whether XLA compiles the stage in a kernel; a few numbers an example are not worth it."""
    return not isinstance(stage, Move)


def is_random(stage: Stage) -> bool:
    """Returns whether the stage reads the example's draws."""
    return any(r.is_random for r in refs(stage))


def is_lasting(stage: Stage) -> bool:
    """Returns whether what the stage gives may be kept on a disk, for other processes."""
    return all(r.step.lasting() for r in refs(stage))
