"""Does by one matrix for all layers what RandAugment and its kin do to the geometry and to the colour."""

from __future__ import annotations

from pipegen.lazy import tf
from pipegen.ops.base import ColourTransform, GeometricTransform
from pipegen.ops.families.augmentation import COLOUR, AugmentationPart, Chosen, Limits
from pipegen.ops.lowering.linear import LUMA, multiply, radians, stack


class AllGeometry(AugmentationPart, GeometricTransform):
    """The geometry of every layer of a policy, as one matrix."""

    part = "geometry"

    def matrix(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        return product(self.policy.layers(u), self.policy.limits, height, width)


def product(chosen: Chosen, limits: Limits, height: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """Multiplies what all layers do to the geometry: float64 `(..., 3, 3)`, from output to input, on a canvas of this size in pixels."""
    slant_x, slant_y = chosen.signed("shear_x", limits.shear), chosen.signed("shear_y", limits.shear)
    right, down = chosen.signed("translate_x", limits.translation), chosen.signed("translate_y", limits.translation)
    if not limits.in_pixels:
        right, down = right * width, down * height
    angle = radians(chosen.signed("rotate", limits.degrees))
    cos, sin = tf.cos(angle), tf.sin(angle)
    cx, cy = (width - 1.0) / 2.0, (height - 1.0) / 2.0
    # A layer does one of these, so the others are 0 and their terms add up; the corner lies half a pixel outside.
    across = cx - (cos * cx - sin * cy) - 0.5 * slant_x - right
    along = cy - (sin * cx + cos * cy) - 0.5 * slant_y - down
    matrices = stack([[cos, -sin - slant_x, across], [sin - slant_y, cos, along], [0.0, 0.0, 1.0]], angle)
    total = matrices[..., 0, :, :]
    for layer in range(1, int(chosen.operation.shape[-1])):
        total = multiply(total, matrices[..., layer, :, :])
    return total


class AllColour(AugmentationPart, ColourTransform):
    """The colour of every layer of a policy, as one matrix."""

    part = "colour"

    def uses_mean(self) -> bool:
        return any(own.get("contrast", 0) for own in self.policy.shares())

    def mixes_channels(self) -> bool:
        return any(own.get("color", 0) for own in self.policy.shares())

    def matrix(self, u: tf.Tensor, channels: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        chosen, limit = self.policy.layers(u), self.policy.limits.enhancement
        brightness, colour, contrast = (1.0 + chosen.signed(name, limit) for name in COLOUR)
        luma = LUMA if channels == 3 else (1.0,)
        gain = brightness * contrast
        own, gray = gain * colour, gain * (1.0 - colour)
        rows = [[gray * luma[j] + (own if i == j else 0.0) for j in range(channels)] for i in range(channels)]
        matrices, pivots = stack(rows, gain), tf.stack([1.0 - contrast] * channels, -1)
        a, m = matrices[..., 0, :, :], pivots[..., 0, :]
        for layer in range(1, len(self.policy.shares())):
            a, m = (
                multiply(matrices[..., layer, :, :], a),
                tf.reduce_sum(matrices[..., layer, :, :] * m[..., None, :], -1) + pivots[..., layer, :],
            )
        return a, tf.zeros_like(m), m
