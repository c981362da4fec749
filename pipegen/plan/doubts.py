"""Keeps what is no longer known of features once a step is wrong, so that the steps after it are judged by the rest."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipegen.errors import OpError
from pipegen.ops.base import CropTransform, Transform
from pipegen.spec.stand_in import UnknownStep, keeps_shape
from pipegen.types import FeatureType

_OF_SHAPES = frozenset({"PG203", "PG204", "PG205", "PG206", "PG215", "PG231"})
"""What an image's kind and shape alone show, whatever its values are."""
_OF_CHANNELS = frozenset({"PG205", "PG231"})
"""What an image's channels alone show."""


@dataclass(slots=True)
class Doubts:
    """The doubts of one split.

    Attributes:
        values: Features whose values are in doubt.
        sizes: Those whose height and width are; a step that fixes the size makes them known again.
        channels: Those whose channels are.
        failed: Those that something is wrong with.
        lost: Those of which nothing is known.
    """

    values: set[str] = field(default_factory=set)
    sizes: set[str] = field(default_factory=set)
    channels: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)

    def all(self) -> set[str]:
        """Returns the features that no plan can be made for."""
        return self.values | self.sizes | self.channels | self.failed | self.lost

    def explain(self, error: OpError, feature: str, x: FeatureType) -> bool:
        """Tells whether an error on `x` may come from what is not known of the feature, rather than from the spec."""
        if error.code not in _OF_SHAPES:
            return feature in self.values
        if error.code in _OF_CHANNELS and feature in self.channels:
            return True
        return feature in self.sizes and (x.height is None or x.width is None)

    def after_unknown(self, step: UnknownStep, feature: str, x: FeatureType) -> FeatureType:
        """Notes what a step that is not known may change; the result is what is left of the type."""
        if not step.keeps_values:
            self.values.add(feature)
        if not step.keeps_channels:
            self.channels.add(feature)
        return x if step.keeps_size else self._without_size(feature, x)

    def after_error(self, step: Transform, feature: str, x: FeatureType) -> FeatureType:
        """Notes what is in doubt behind a step that cannot run on `x`; the result is what the step declares to leave."""
        self.failed.add(feature)
        if isinstance(step, CropTransform) and len(x.shape) == 3 and None not in step.output_size():
            return x.with_(shape=(*step.output_size(), x.channels))
        if step.only_sizes:
            return self._without_size(feature, x)
        (self.values if keeps_shape(type(step)) else self.lost).add(feature)
        return x

    def _without_size(self, feature: str, x: FeatureType) -> FeatureType:
        self.sizes.add(feature)
        return x.with_(shape=(None, None, x.channels)) if len(x.shape) == 3 else x
