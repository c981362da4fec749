"""Holds what passes may assume about a step, and the worked examples that each step carries."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from pipegen.types import BYTE_RANGE, FeatureType

if TYPE_CHECKING:
    pass


class Family(str, Enum):
    """Says how an op composes with its neighbours; passes read this and never an op's name."""

    ELEMENT = "element"
    """A function of one example, at any shape."""
    GEOMETRIC = "geometric"
    """A 3x3 matrix from output to input pixel coordinates; adjacent ones multiply and resample once."""
    COLOUR = "colour"
    """A matrix on the channels; adjacent ones multiply and clip once."""
    LOOKUP_TABLE = "look-up table"
    """A table of 256 values for each channel; adjacent ones fold into one look-up."""
    NEIGHBOURHOOD = "neighbourhood"
    """A function of a batch of whole images; nothing of it composes, so it stands where it is written."""
    MIXING = "mixing"
    """A function of an example and another one of its group; it needs whole batches, and its labels follow."""
    POINTWISE = "pointwise"
    """A per-channel scale, offset and order, and a dtype."""
    POLICY = "policy"
    """A choice among steps of other families, which do its work."""
    CUSTOM = "custom"
    """A function of one example that a user wrote in Python: nothing is known of it but what its step declares."""

    __str__ = str.__str__


@dataclass(frozen=True, slots=True)
class Traits:
    """Holds what passes may assume about a step on a given input type.

    Attributes:
        family: How it composes; where that concerns nobody but the family itself, a name of its own.
        crops: Whether it is a crop window followed by a deterministic finish, so that a decoder can decode the
            window alone.
        moves_pixels_only: Whether every output pixel is one input pixel unchanged (flips, crops), so that
            element-wise arithmetic commutes with it exactly.
        mirrors: Whether its matrix does nothing but mirror the axes, so that reversing them is all there is to do.
        turns: Whether its matrix does nothing but mirror the axes and swap them, so that no pixel is resampled.
        projective: Whether its matrix can have a last row other than (0, 0, 1), so that a position is a quotient.
        decodes: Whether it turns stored bytes into pixels.
        decodes_windows: Whether it can decode a window alone, and gives the same pixels then.
        decodes_scaled: Whether it may decode at a fraction of the size, where the next step needs no more.
        pads: Whether its window can lie beyond the image, where its `fill` shows.
        chosen: Whether its window depends on items of the image, such as boxes, and not on draws alone.
        resizes: Whether it interpolates to another size.
        bilinear: Whether it is such a crop, and its finish resizes the window by `bilinear` without `antialias`.
        displaces: Whether it reads each pixel at a distance of its own, by a field that a `DisplacementTransform` gives.
        stretches: Whether what it shows is the whole image, however large that is.
        weight: How many times dearer it is than what its family usually costs; predictions of cost read it.
    """

    family: Family | str
    crops: bool = False
    moves_pixels_only: bool = False
    mirrors: bool = False
    turns: bool = False
    projective: bool = False
    decodes: bool = False
    decodes_windows: bool = False
    decodes_scaled: bool = False
    pads: bool = False
    chosen: bool = False
    resizes: bool = False
    bilinear: bool = False
    displaces: bool = False
    stretches: bool = False
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example that the tests run and the documentation prints.

    Attributes:
        yaml: The step as written in a spec, such as `resize: {size: 224}`.
        given: The type of the image that enters.
        then: `str()` of the type that leaves.
    """

    yaml: str
    given: FeatureType
    then: str


ANY_IMAGE = FeatureType("image", "uint8", (None, None, 3), BYTE_RANGE)
"""An RGB image as `decode` gives it: any size."""
IMAGE_224 = FeatureType("image", "uint8", (224, 224, 3), BYTE_RANGE)
"""An RGB image of 224 by 224 pixels."""


def same_type(*steps: str) -> tuple[Example, ...]:
    """Examples that keep the type of an RGB image of bytes."""
    return tuple(Example(step, IMAGE_224, "uint8[224×224×3] in [0, 255]") for step in steps)


def to_float32(*steps: str) -> tuple[Example, ...]:
    """Examples that turn an RGB image of bytes into float32, in the same range."""
    return tuple(Example(step, IMAGE_224, "float32[224×224×3] in [0, 255]") for step in steps)
