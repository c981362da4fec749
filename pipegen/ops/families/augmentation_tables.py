"""Does by a look-up table or a filter what RandAugment and its kin give only some examples."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.families.augmentation import NUMBER, LayerPart
from pipegen.ops.families.lookup_tables import LookupTableTransform
from pipegen.ops.families.sharpening import SharpenTransform, gains
from pipegen.ops.lowering.tables import auto_contrasted, equalized, posterized, solarized


class LayerTable(LayerPart, LookupTableTransform):
    """Posterize, solarize or invert: what one layer of a policy says."""

    part = "tables"

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        chosen = self.policy.layers(u)
        operation, bits = chosen.operation[..., self.layer], chosen.bits(self.policy.limits)[..., self.layer]
        reduced, turned = posterized(bits), solarized(chosen.threshold()[..., self.layer])
        inverted = 255 - tf.range(256)
        return tf.where(_is(operation, "posterize"), reduced, tf.where(_is(operation, "solarize"), turned, inverted))


class LayerHistogramTable(LayerPart, LookupTableTransform):
    """Auto-contrast or equalization: what one layer of a policy says."""

    part = "histogram tables"
    needs_histogram = True

    def table(self, u: tf.Tensor, histogram: tf.Tensor | None) -> tf.Tensor:
        stretches = _is(self.policy.operations(u)[..., self.layer], "auto_contrast")
        return tf.where(stretches, auto_contrasted(histogram), equalized(histogram))


class LayerFilter(LayerPart, SharpenTransform):
    """Sharpness: what one layer of a policy says."""

    part = "filter"

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        return gains(1.0 + self.policy.layers(u).signed("sharpness", self.policy.limits.enhancement)[..., self.layer])


def _is(operation: tf.Tensor, name: str) -> tf.Tensor:
    """Returns where a layer does this: bool `(n, 1, 1)`."""
    return (operation == NUMBER[name])[:, None, None]
