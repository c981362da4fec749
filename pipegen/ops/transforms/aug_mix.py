"""`aug_mix`: blends of chains of operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from pipegen.errors import OpError
from pipegen.lazy import tf
from pipegen.ops.arguments.magnitudes import Level, as_pair, bounded, check_number, check_range, checked
from pipegen.ops.families.augmentation import GEOMETRY, NUMBER, OPERATIONS, Chosen, Limits, product, signs, uniform_operation
from pipegen.ops.families.chains import PLAIN, SPREAD, STRETCH, Chains, ChainsTransform
from pipegen.ops.families.combining import symmetric_beta
from pipegen.ops.kinds.base import FeatureKind, Geometry, Levels, PixelValues, kind_of
from pipegen.ops.lowering.colours import posterized, solarized
from pipegen.ops.lowering.filters import whole_weights
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.lowering.random import symmetric_dirichlet
from pipegen.ops.lowering.windows import whole_between
from pipegen.ops.traits import same_type
from pipegen.types import FeatureType

MIXED = ("auto_contrast", "equalize", "posterize", "rotate", "solarize", "shear_x", "shear_y", "translate_x", "translate_y")
_LIMITS = Limits(shear=0.3, translation=1 / 3, in_pixels=False, degrees=30.0, enhancement=0.0, bits=4.0)
_STRONGEST = 10.0
_LEAST = 0.1  # the magnitude from which strengths are drawn
Count = Annotated[int, Field(ge=1, le=8)]


class AugMix(ChainsTransform):
    """Blends each image with the results of several chains of operations (AugMix): many different changes, all close to the image.

    A chain does `depth` of nine operations: auto-contrast, equalization, posterize, solarize, rotation, and shear and translation along x
    or y, each at a strength drawn from 0.1 to `magnitude`. At full strength, 10, posterize leaves 1 bit (4 bits at 0), solarize inverts
    every value, and geometry is that of `rand_augment`: 30 degrees, a slope of 0.3, a third of the side. The weights of the chains are
    drawn from Dirichlet(alpha), and the weight of their blend against the image itself from Beta(alpha, alpha). Within a chain tables come
    first, layer by layer, then all geometry as one resampling. Arithmetic is in whole numbers.

    Masks, boxes and points cannot follow chains that move an image in several ways: beside them, the chains choose from the four operations
    on colour alone, as with `geometry: false`. The paper's loss compares two or three `views` of an image, one plain and the others with
    this step.

    Source: Hendrycks, Mu, Cubuk, Zoph, Gilmer, Lakshminarayanan, "AugMix: A Simple Data Processing Method to Improve Robustness and
    Uncertainty" (2020). Its operations leave out colour, contrast, brightness and sharpness, which torchvision and Keras add by default.
    """

    op = "aug_mix"
    random = True
    pairs = frozenset({"depth"})
    examples = same_type(
        "aug_mix",
        "aug_mix: {magnitude: {linear: {from: 1, to: 5, epochs: [0, 50]}}, chains: 2}",
        "aug_mix: {depth: 2, geometry: false, probability: 0.5}",
    )

    chains: Count = 3
    """The number of chains, at most 8."""
    depth: Annotated[Count | tuple[Count, Count], checked(check_range)] = (1, 3)
    """The number of operations of a chain; a pair is the range, both ends included."""
    magnitude: Annotated[Level, checked(check_number), bounded(_LEAST, _STRONGEST)] = 3.0
    """The greatest strength, from 0.1 to 10; a schedule changes it over the epochs."""
    alpha: Annotated[float, Field(ge=0.1, le=100)] = 1.0
    """The parameter of the distributions of the weights, from 0.1 to 100: 1 is uniform, less prefers one chain and extreme blends."""

    @classmethod
    def acts_on(cls, kind: FeatureKind) -> bool:
        return kind.has(PixelValues, Geometry)  # so that `infer` can refuse features that would have to move

    def reaches(self, x: FeatureType) -> bool:
        return kind_of(x).has(Levels) if self.geometry is None else self.geometry

    def beside(self, aligned: Sequence[FeatureType]) -> AugMix:
        follow = all(kind_of(x).has(Levels) for x in aligned)
        return self if follow or self.geometry is not None else self.model_copy(update={"geometry": False})

    def meaning(self) -> dict[str, Any]:
        return super().meaning() | {"geometry": self.geometry is not False}

    def infer(self, x: FeatureType) -> FeatureType:
        if not kind_of(x).has(Levels):
            message = f"`{self.op}` moves the pixels of an image several ways at once, and what is aligned with it cannot follow"
            raise OpError("PG203", message, field="geometry", help="leave `geometry` out: beside such features, chains move no pixels")
        return super().infer(x)

    def used(self) -> tuple[str, ...]:
        """The operations that a chain chooses from."""
        return tuple(name for name in MIXED if self.geometry is not False or name not in GEOMETRY)

    def weight(self) -> float:
        return self.chains * (0.7 if self.geometry is False else 4.0)

    def num_draws(self) -> int:
        return 2 + self.chains * (2 + 3 * as_pair(self.depth)[1])

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """`own_share`, the weight of the image itself; and for each chain, counted from 1, `weight_1` and `operations_1`, the names of its
        operations, joined by `+`."""
        weights, chosen = self._weights(u), self._chosen(u)
        found = {"own_share": weights[..., 0]}
        for chain in range(self.chains):
            found[f"weight_{chain + 1}"] = weights[..., chain + 1]
            names = tf.gather(tf.constant(OPERATIONS), chosen.operation[..., chain, :])
            there = chosen.operation[..., chain, :] > 0
            joined = tf.where(there, tf.strings.join(["+", names]), tf.strings.join(["", tf.zeros_like(names)]))
            found[f"operations_{chain + 1}"] = tf.strings.substr(tf.strings.reduce_join(joined, -1), 1, 1000)
        return found

    def drawn_chains(self, u: tf.Tensor, height: tf.Tensor, width: tf.Tensor) -> Chains:
        chosen = self._chosen(u)
        operation, given = chosen.operation, tf.range(256) + tf.zeros_like(chosen.operation)[..., None]

        def tables(name: str, made: tf.Tensor, before: tf.Tensor) -> tf.Tensor:
            return tf.where((operation == NUMBER[name])[..., None], tf.reshape(made, tf.shape(before)), before)

        bits = tf.maximum(4 - tf.cast(tf.floor(chosen.strength * _LIMITS.bits), tf.int32), 1)
        given = tables("posterize", posterized(tf.reshape(bits, [-1])), given)
        given = tables("solarize", solarized(tf.reshape(256.0 - tf.floor(chosen.strength * 256.0), [-1])), given)
        stretches, spreads = (operation == NUMBER[name] for name in ("auto_contrast", "equalize"))
        kinds = tf.where(stretches, STRETCH, tf.where(spreads, SPREAD, PLAIN))
        whole, _ = whole_weights(self._weights(u))
        return Chains(kinds, given, product(chosen, _LIMITS, height, width), whole)

    def _weights(self, u: tf.Tensor) -> tf.Tensor:
        """The weights of the image itself and of its chains, float64 `(..., 1 + chains)` that sum to 1."""
        share = symmetric_beta(u[..., :2], self.alpha)[..., None]
        return tf.concat([1.0 - share, share * symmetric_dirichlet(u[..., 2 : 2 + self.chains], self.alpha)], -1)

    def _chosen(self, u: tf.Tensor) -> Chosen:
        """The operations of the layers of the chains, `(..., chains, layers)`; a layer beyond a chain's depth does nothing."""
        bounds, first = as_pair(self.depth), 2 + self.chains
        depth = whole_between(u[..., first : first + self.chains], bounds)
        own = tf.reshape(u[..., first + self.chains :], tf.concat([tf.shape(u)[:-1], [3, self.chains, bounds[1]]], 0))
        which, strong, side = (own[..., i, :, :] for i in range(3))
        operation = tf.where(tf.range(bounds[1]) < depth[..., None], uniform_operation(which, self.used()), 0)
        return Chosen(operation, uniform(strong, (_LEAST, self.magnitude)) / _STRONGEST, signs(side))
