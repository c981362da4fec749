"""What can be done to one feature of an example or a batch: the closed set of stages that nodes are made of.

A stage holds op instances and reads only their traits, so a new op needs no new stage. Stages know nothing of
TensorFlow; `backend/lower.py` gives each its meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from pipegen.ops.base import Arithmetic, Fill, Transform
    from pipegen.spec.models import Encoding
    from pipegen.types import Interval

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
    """

    step: Transform
    id: str
    path: Path
    start: int
    gated: bool

    @property
    def num_draws(self) -> int:
        """Numbers in the example's vector, the gate included."""
        return self.step.num_draws() + self.gated


@dataclass(frozen=True, slots=True)
class Decode:
    """Bytes to pixels. `needed` is the least height and width that the next step can use without loss, or `None`."""

    feature: str
    ref: StepRef
    needed: tuple[int, int] | None


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
    """Read the image once through the pending transform, which ends the geometric segment."""

    feature: str
    fill: Fill
    interpolation: str
    size: tuple[int | None, int | None]


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


@dataclass(frozen=True, slots=True)
class Colour:
    """A whole colour segment: the product of the steps' matrices, applied and clipped once."""

    feature: str
    refs: tuple[StepRef, ...]
    channels: int
    clip: Interval | None
    uses_mean: bool


@dataclass(frozen=True, slots=True)
class Pointwise:
    """Element-wise arithmetic and a dtype."""

    feature: str
    arithmetic: Arithmetic
    refs: tuple[StepRef, ...]


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


Stage = Union[
    Decode, DecodeWindow, Apply, Crop, Compose, Resample, Warp, ComposeColour, ApplyColour, Colour, Pointwise, ChannelsFirst, EncodeLabel
]
ElementStage = (Decode, DecodeWindow, Apply, Crop)
"""The stages that work on one example at a time, whatever its shape."""


def refs(stage: Stage) -> tuple[StepRef, ...]:
    """The uses of steps in a stage, in the spec's order."""
    if isinstance(stage, DecodeWindow):
        return (stage.decode, stage.crop)
    if isinstance(stage, (Decode, Apply, Crop, Compose, ComposeColour)):
        return (stage.ref,)
    if isinstance(stage, (Warp, Colour, Pointwise)):
        return stage.refs
    return ()


def is_random(stage: Stage) -> bool:
    """Whether the stage reads the example's draws."""
    return any(r.num_draws for r in refs(stage))
