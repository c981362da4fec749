"""Masks of the items of a padded feature."""

from __future__ import annotations

from pipegen.ops.kinds.base import FeatureKind


class Valid(FeatureKind):
    """A boolean for each item, false for padding. It is made with a ragged feature; no source has it."""

    name = "valid"
    plural = "valid masks"
    valid = True
