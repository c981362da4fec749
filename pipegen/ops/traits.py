"""Traits of steps, which passes rely on, and worked examples."""

from __future__ import annotations

from enum import Enum

from pipegen.frozen import dataclass
from pipegen.types import BYTE_RANGE, FeatureType, Interval


class Family(str, Enum):
    """The way an op composes with its neighbours; passes read this and never an op's name."""

    ELEMENT = "element"  # a function of one example, at any shape
    GEOMETRIC = "geometric"  # a 3x3 matrix from output to input pixel coordinates; adjacent ones multiply and resample once
    COLOUR = "colour"  # a matrix on the channels; adjacent ones multiply and clip once
    LOOKUP_TABLE = "look-up table"  # a table of 256 values for each channel; adjacent ones fold into one look-up
    CONVOLUTION = "convolution"  # a transfer function of sound; adjacent ones multiply and are one convolution
    NEIGHBOURHOOD = "neighbourhood"  # a function of a batch of whole images; it does not compose, and stays in its place
    COMBINING = "combining"  # a function of an example and others of its group; it needs whole batches, and combines labels, too
    POINTWISE = "pointwise"  # a per-channel scale, offset and order, and a dtype
    POLICY = "policy"  # a choice among steps of other families, which do its work
    CUSTOM = "custom"  # a user's function of one example in Python: only the declarations of its step are known

    __str__ = str.__str__


@dataclass(frozen=True, slots=True)
class Traits:
    """Properties of a step on a given input type that passes rely on."""

    family: Family | str  # the way it composes; a name of its own for a family that no pass knows
    crops: bool = False  # whether it is a crop window followed by a deterministic finish, so that a decoder can decode only the window
    moves_pixels_only: bool = False
    """Whether every output pixel is an unchanged input pixel (flips, crops), so that element-wise arithmetic commutes with it exactly."""
    mirrors: bool = False  # whether its matrix only mirrors axes, so that reversing them is enough
    turns: bool = False  # whether its matrix only mirrors and swaps axes, so that no pixel is resampled
    projective: bool = False  # whether the last row of its matrix can differ from (0, 0, 1), so that a position is a quotient
    decodes: bool = False  # whether it turns stored bytes into pixels
    decodes_windows: bool = False  # whether it can decode only a window, with the same pixels
    decodes_scaled: bool = False  # whether it may decode at a fraction of the size, if the next step needs no more
    pads: bool = False  # whether its window can reach outside the image, where its `fill` shows
    chosen: bool = False  # whether its window depends on items of the image, such as boxes, not only on draws
    resizes: bool = False  # whether it interpolates to another size
    bilinear: bool = False  # whether it is a crop whose finish resizes the window by `bilinear` without `antialias`
    displaces: bool = False  # whether it reads each pixel at its own distance, by the field of a `DisplacementTransform`
    stretches: bool = False  # whether it always shows the whole image
    weight: float = 1.0  # its cost in multiples of the usual cost of its family, for predictions


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example that the tests run and the documentation prints: the step as written in a spec, the type of the input image, and
    `str()` of the output type."""

    yaml: str
    given: FeatureType
    then: str


ANY_IMAGE = FeatureType("image", "uint8", (None, None, 3), BYTE_RANGE)  # an RGB image of any size, as after `decode`
IMAGE_224 = FeatureType("image", "uint8", (224, 224, 3), BYTE_RANGE)  # an RGB image of 224 by 224 pixels
FLOAT_224 = IMAGE_224.with_(dtype="float32")
UNIT_224 = FLOAT_224.with_(interval=Interval(0, 1))


def same_type(*steps: str, given: FeatureType = IMAGE_224) -> tuple[Example, ...]:
    """Examples that keep the type of an image."""
    return tuple(Example(step, given, str(given)) for step in steps)


def to_float32(*steps: str) -> tuple[Example, ...]:
    """Examples that turn an RGB image of bytes into float32, in the same range."""
    return tuple(Example(step, IMAGE_224, "float32[224×224×3] in [0, 255]") for step in steps)
