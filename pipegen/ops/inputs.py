"""Checks the image that enters a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.diagnostics.diagnostic import write
from pipegen.errors import OpError
from pipegen.ops.kinds.registry import kind_of
from pipegen.types import BYTE_RANGE

if TYPE_CHECKING:
    from pipegen.ops.transform import Transform
    from pipegen.types import FeatureType

_EARLIER: str = "put it before `rescale` and `normalize`, where the values are still from 0 to 255"


def require_image(step: Transform, x: FeatureType) -> None:
    """Rejects what is not a decoded image: another kind as `PG203`, a wrong rank as `PG204`."""
    if x.encoded:
        raise OpError("PG203", f"`{step.op}` needs a decoded image and gets an encoded file", help="`decode` comes first")
    if not step.acts_on(kind_of(x)):
        known = f"it knows: {', '.join(step.known_kinds())}"
        raise OpError("PG203", f"`{step.op}` has no rule for a feature of kind `{x.kind}`", help=known)
    if len(x.shape) != 3:
        raise OpError("PG204", f"`{step.op}` needs an image of shape height × width × channels and gets rank {len(x.shape)}")


def require_bytes(step: Transform, x: FeatureType) -> None:
    """Rejects, as `PG221`, what are neither bytes nor float32 from 0 to 255, which are rounded."""
    if x.dtype not in ("uint8", "float32"):
        said = "put {} before it; it rounds to 256 values"
        help_ = write("rescale: {to: [0, 255]}", "before", said) if x.dtype == "uint16" else None
        raise OpError("PG221", f"`{step.op}` works on uint8, or on float32 from 0 to 255, and gets {x.dtype}", help=help_)
    whole = x.interval is not None and x.interval.high > 1 and BYTE_RANGE.contains(x.interval, slack=0.5)
    if x.dtype == "uint8" or whole:
        return
    given, earlier = f"values in {x.interval}", _EARLIER
    if x.interval is None:
        given = "values of an unknown range"
        earlier = write("cast: {dtype: uint8}", "before", "if they are from 0 to 255, put {} before it")
    raise OpError("PG221", f"`{step.op}` rounds to whole numbers from 0 to 255, but gets {given}", help=earlier)


def is_standardised(x: FeatureType) -> bool:
    """Returns whether the values were centred, so that 0 is no longer black."""
    return x.centred if x.interval is None else x.interval.low < 0


def centred_values(x: FeatureType) -> str:
    """Such values in words."""
    return f"standardised values{f' in {x.interval}' if x.interval else ''}"
