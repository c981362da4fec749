"""Checks the image that enters a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.errors import OpError
from pipegen.ops.kinds.registry import kind_of

if TYPE_CHECKING:
    from pipegen.ops.transform import Transform
    from pipegen.types import FeatureType


def require_image(step: Transform, x: FeatureType) -> None:
    """Rejects what is not a decoded image: another kind as `PG203`, a wrong rank as `PG204`."""
    if x.encoded:
        raise OpError("PG203", f"`{step.op}` needs a decoded image and gets an encoded file", help="`decode` comes first")
    if not step.acts_on(kind_of(x)):
        known = f"it knows: {', '.join(step.known_kinds())}"
        raise OpError("PG203", f"`{step.op}` has no rule for a feature of kind `{x.kind}`", help=known)
    if len(x.shape) != 3:
        raise OpError("PG204", f"`{step.op}` needs an image of shape height × width × channels and gets rank {len(x.shape)}")


def is_standardised(x: FeatureType) -> bool:
    """Returns whether the values were centred, so that 0 is no longer black."""
    return x.centred if x.interval is None else x.interval.low < 0


def centred_values(x: FeatureType) -> str:
    """Such values in words."""
    return f"standardised values{f' in {x.interval}' if x.interval else ''}"
