"""Says which items of a padded feature are there."""

from __future__ import annotations

from pipegen.ops.kinds.base import FeatureKind


class Valid(FeatureKind):
    """A truth value for each place; it comes with a ragged feature, and no source gives it."""

    name = "valid"
    plural = "valid masks"
    valid = True
