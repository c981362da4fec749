"""Distort images: by fields of distances, grids and lenses."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipegen.errors import OpError
from pipegen.lazy import np, tf
from pipegen.ops.arguments.magnitudes import ABOVE_ZERO, Amount, Magnitude, amount_within, needs_one, odd_factor
from pipegen.ops.families.neighbourhood import DisplacementTransform
from pipegen.ops.lowering.filters import sides
from pipegen.ops.lowering.linear import uniform
from pipegen.ops.lowering.random import UNIT, key_of, smooth_field, spacing
from pipegen.ops.step_bases import UniformTransform, UnsignedTransform
from pipegen.ops.traits import same_type
from pipegen.types import FeatureType


class ControlPointTransform(UniformTransform, DisplacementTransform):
    """Reads the points of a grid over the image at other places, and each pixel at the place that a sum of functions gives.

    The grid includes the edges of the image. Positions are fractions of the sides: (0, 0) is the top left corner of the image and (1, 1)
    the bottom right one.
    """

    x: Amount = 0.0
    """The distance to the right at which each point is read, as a fraction of the width: 0.05 means from -0.05 to 0.05, a pair is the
    range."""
    y: Amount = 0.0
    """The distance down at which each point is read, as a fraction of the height: 0.05 means from -0.05 to 0.05, a pair is the range."""
    cells: Annotated[int, Field(ge=1, le=8)] = 4
    """The number of cells of the grid along each side: 4 means 5 × 5 points."""

    _given = needs_one("x", "y", message="give `x` (a fraction of the width), `y` (a fraction of the height), or both")

    def basis(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        """The functions whose weighted sum is the displacement: float64 `(k, ...)`, at positions float64 `(...)`."""
        raise NotImplementedError

    def weights(self, moved: tf.Tensor) -> tf.Tensor:
        """The weights of these functions, float64 `(n, 2, k)`, from the distances to the right and down at which the points are read."""
        return moved

    def points(self) -> list[tuple[float, float]]:
        """The positions of the points, `(x, y)`, row by row."""
        lines = [i / self.cells for i in range(self.cells + 1)]
        return [(x, y) for y in lines for x in lines]

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        for name in ("x", "y"):
            low, high = self.ranges()[name]
            if (high - low) * self.cells > 1:
                message = f"two neighbours of the {self.cells + 1} points to a side can pass each other, so the image folds over itself"
                help_ = f"with `cells: {self.cells}` a range of at most {1 / self.cells:.3g} in width keeps it flat"
                return (OpError("PG510", f"`{self.op}`: {message}", field=name, help=help_),)
        return super().lints(x)

    def weight(self) -> float:
        return 2.0 + (self.cells + 1) ** 2 / 25

    def num_draws(self) -> int:
        return 2 * (self.cells + 1) ** 2

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """The distances at which the points are read, row by row: fractions of the side, float64 `(..., points)`."""
        across, down = tf.split(u, 2, axis=-1)
        ranges = self.ranges()
        return {"x": uniform(across, ranges["x"]), "y": uniform(down, ranges["y"])}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        drawn = self.drawn(u)
        across, down = (256.0 * drawn[name] * tf.cast(side, tf.float64) for name, side in (("x", width), ("y", height)))
        return (self.weights(tf.stack([across, down], 1)),)

    def phase(self, images: tf.Tensor, weights: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The distances at which pixels are read, in float64: the order of the sum changes far less than rounding takes away."""
        height, width, _ = sides(images)
        down, across = ((tf.cast(tf.range(side), tf.float64) + 0.5) / tf.cast(side, tf.float64) for side in (height, width))
        x, y = tf.meshgrid(across, down)
        basis = self.basis(x, y)
        total = tf.linalg.matmul(tf.reshape(weights, [-1, basis.shape[0]]), tf.reshape(basis, [basis.shape[0], -1]))
        moved = tf.reshape(tf.cast(tf.round(total), tf.int32), [-1, 2, height, width])
        return moved[:, 0], moved[:, 1]


class RandomElastic(UnsignedTransform, DisplacementTransform):
    """Moves each pixel by a random distance that varies smoothly over the image: the elastic distortion of Simard, Steinkraus and Platt
    (2003).

    Distances across and down are drawn for each pixel, uniform in [-1, 1], smoothed with a Gaussian of standard deviation `sigma`, and
    multiplied by an `alpha` that is drawn uniformly for each image. After smoothing, their standard deviation is alpha / (6.14 · sigma)
    pixels, for example 1.6 for alpha 50 and sigma 5. A wide Gaussian does not need a draw for each pixel: one is made for each square of
    `sigma` pixels (rounded down), with a weight multiplied by the width of the square. The image is read once, at positions in 1/256 pixel
    that are the same everywhere.
    """

    op = "random_elastic"
    cost = 2.5
    draws = 3
    examples = same_type("random_elastic: {alpha: 50, sigma: 5}", "random_elastic: {alpha: [200, 300], sigma: 12, fill: {constant: 0}}")

    alpha: Annotated[Magnitude, amount_within(0, 10_000)]  # so that positions fit 32 bits
    """The distance before smoothing, in pixels: 50 means from 0 to 50, a pair is the range."""
    sigma: Annotated[float, Field(ge=1, le=100)]
    """The standard deviation of the Gaussian that smooths the distances, from 1 to 100 pixels: small values crumple, large ones bend."""

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        largest = self.largest("alpha") / (6.14 * self.sigma)
        if largest > self.sigma / 2:
            message = f"`{self.op}` moves pixels by about {largest:.3g}, and its `sigma` is {self.sigma:g}, so the image folds over itself"
            return (OpError("PG510", message, field="alpha", help="use a larger `sigma` or a smaller `alpha`"),)
        if 0 < largest < 0.05:
            message = f"`{self.op}` moves pixels by about {largest:.2g} pixels, which cannot be seen"
            return (OpError("PG510", message, field="alpha", help="distances after smoothing are about alpha / (6 · sigma)"),)
        return ()

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        alpha = self.drawn(u)["alpha"]
        return key_of(u[:, 1:3]), tf.cast(alpha * (256.0 / (UNIT * spacing(self.sigma))), tf.float32)

    def phase(self, images: tf.Tensor, key: tf.Tensor, gain: tf.Tensor) -> tuple[tf.Tensor, ...]:
        height, width, _ = sides(images)
        field = smooth_field(key, height, width, self.sigma)
        moved = tf.cast(tf.round(field * gain[:, None, None, None]), tf.int32)
        return moved[:, 0], moved[:, 1]


class RandomGridDistortion(UniformTransform, DisplacementTransform):
    """Divides the image by a regular grid, and makes each row and each column of it wider or narrower by its own factor, drawn uniformly.

    The widths are scaled to fill the image again: its edges stay in place, and nothing is uncovered. Between the lines of the grid
    positions are linear. (Albumentations' step is this with `normalized: true`; its columns are whole pixels wide, and the rest is one
    more column.) The image is read once, at positions in 1/256 pixel.
    """

    op = "random_grid_distortion"
    cost = 1.5
    factors = frozenset({"factor"})
    examples = same_type("random_grid_distortion", "random_grid_distortion: {factor: 0.5, cells: 3, probability: 0.5}")

    factor: Annotated[Magnitude, ABOVE_ZERO, odd_factor(low=0.1, high=5)] = 0.3
    """The factor of each row and column of the grid, before they are scaled to fill the image: 0.3 means from 0.7 to 1.3, a pair is the
    range."""
    cells: Annotated[int, Field(ge=2, le=64)] = 5
    """The number of rows and of columns of the grid."""

    def num_draws(self) -> int:
        return 2 * self.cells

    def drawn(self, u: tf.Tensor) -> dict[str, tf.Tensor]:
        """The shares of the width and of the height that the columns and rows read: float64 `(..., cells)`, which sum to 1."""
        stretched = (uniform(part, self.ranges()["factor"]) for part in tf.split(u, 2, axis=-1))
        columns, rows = (part / tf.reduce_sum(part, axis=-1, keepdims=True) for part in stretched)
        return {"columns": columns, "rows": rows}

    def parameters(self, u: tf.Tensor, height: int | tf.Tensor, width: int | tf.Tensor) -> tuple[tf.Tensor, ...]:
        drawn = self.drawn(u)
        return _line(drawn["columns"], width), _line(drawn["rows"], height)

    def phase(self, images: tf.Tensor, right: tf.Tensor, down: tf.Tensor) -> tuple[tf.Tensor, ...]:
        height, width, _ = sides(images)
        size = [tf.shape(right)[0], height, width]
        return tf.broadcast_to(right[:, None, :], size), tf.broadcast_to(down[:, :, None], size)


def _line(parts: tf.Tensor, side: int | tf.Tensor) -> tf.Tensor:
    """The distances along a side, of `side` pixels, at which its pixels are read, in 1/256 pixel: int32 `(n, side)`.

    `parts` are the shares of the side that the cells read, float64 `(n, cells)`.
    """
    cells, length = int(parts.shape[1]), tf.cast(side, tf.float64)
    lines = tf.pad(tf.cumsum(parts, axis=1) * length, [[0, 0], [1, 0]])
    centre = tf.cast(tf.range(side), tf.float64) + 0.5
    place = centre * float(cells) / length
    cell = tf.minimum(tf.cast(place, tf.int32), cells - 1)
    first, last = (tf.gather(lines, cell + i, axis=1) for i in (0, 1))
    read = first + (last - first) * (place - tf.cast(cell, tf.float64))
    return tf.cast(tf.round((read - centre) * 256.0), tf.int32)


_FLATTEST = {"camera": -4 / 11, "fisheye": -1 / 3}
"""The coefficient at which the corners of an image fold over: the derivative of the radius is 0 there."""


class RandomOpticalDistortion(UniformTransform, DisplacementTransform):
    """Bends straight lines outwards or inwards around the centre of the image, as a wide lens does: barrel distortion where the drawn
    coefficient k is above 0, pincushion distortion where it is below.

    The pixel at a distance r from the centre is read at r · (1 + k · r² + k · r⁴) in the model `camera`, where a side measures 1
    (OpenCV's `initUndistortRectifyMap` with the sides for focal lengths and k1 = k2 = k), and at r · (1 + k · r²) in the model
    `fisheye`, where half the diagonal measures 1. (Albumentations' step is the same around a centre half a pixel further right and
    down.) The image is read once, at positions in 1/256 pixel.
    """

    op = "random_optical_distortion"
    cost = 1.2
    examples = same_type(
        "random_optical_distortion: {coefficient: 0.3}", "random_optical_distortion: {coefficient: [0, 0.5], model: fisheye}"
    )

    coefficient: Amount
    """The coefficient k of the model: 0.3 means from -0.3 to 0.3, a pair is the range."""
    model: Literal["camera", "fisheye"] = "camera"
    """The growth of the radius: `camera` by its square and its fourth power, `fisheye` by its square alone."""

    def lints(self, x: FeatureType) -> tuple[OpError, ...]:
        least, flattest = self.ranges()["coefficient"][0], _FLATTEST[self.model]
        if least >= flattest:
            return super().lints(x)
        message = f"`{self.op}` draws coefficients down to {least:g}, and below {flattest:.3g} the corners of an image fold back over it"
        return (OpError("PG510", message, field="coefficient", help=f"begin the range at {flattest:.2g} or above"),)

    def phase(self, images: tf.Tensor, k: tf.Tensor) -> tuple[tf.Tensor, ...]:
        lengths = [tf.cast(side, tf.float64) for side in sides(images)[:2]]
        down, across = (
            tf.cast(tf.range(side), tf.float64) - (length - 1.0) / 2.0 for side, length in zip(sides(images), lengths, strict=False)
        )
        if self.model == "camera":
            square = tf.square(down / lengths[0])[:, None] + tf.square(across / lengths[1])
            growth = square + tf.square(square)
        else:
            growth = (tf.square(down)[:, None] + tf.square(across)) * 4.0 / (tf.square(lengths[0]) + tf.square(lengths[1]))
        moved = (k[:, None, None] * (growth * centred * 256.0) for centred in (across, down[:, None]))
        return tuple(tf.cast(tf.round(m), tf.int32) for m in moved)


class RandomPiecewiseAffine(ControlPointTransform):
    """Reads each point of a regular grid over the image at distances of its own, drawn uniformly, and each of the two triangles of a cell
    through the affine map of its corners.

    The distortion is continuous and has creases along the edges of the triangles; `random_thin_plate_spline` has none. (The steps of this
    name in scikit-image and imgaug draw distances from a normal distribution; Albumentations' weighs the points by distance, which is not
    affine.) The image is read once, at positions in 1/256 pixel.
    """

    op = "random_piecewise_affine"
    examples = same_type("random_piecewise_affine: {x: 0.04, y: 0.04}", "random_piecewise_affine: {x: 0.08, cells: 2, fill: {constant: 0}}")

    def basis(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        """A function for each point: 1 there, 0 at its neighbours, and linear on each triangle. A cell has one triangle on each side of the
        diagonal from its top left corner to its bottom right one."""
        hats = []
        for across, down in self.points():
            right, below = (x - across) * float(self.cells), (y - down) * float(self.cells)
            farthest = tf.maximum(tf.maximum(tf.abs(right), tf.abs(below)), tf.abs(right - below))
            hats.append(tf.maximum(1.0 - farthest, 0.0))
        return tf.stack(hats)


class RandomThinPlateSpline(ControlPointTransform):
    """Reads each point of a regular grid over the image at distances of its own, drawn uniformly, and bends the rest as little as
    possible: the thin-plate spline of Bookstein (Principal Warps, IEEE PAMI 11, 1989).

    Distances between points are fractions of the sides, so images of any shape bend alike. (Albumentations' step draws from a normal
    distribution with a standard deviation of a tenth of its `scale_range`.) The image is read once, at positions in 1/256 pixel.
    """

    op = "random_thin_plate_spline"
    examples = same_type(
        "random_thin_plate_spline: {x: 0.05, y: 0.05}", "random_thin_plate_spline: {x: 0.1, y: 0.1, cells: 2, fill: nearest}"
    )

    def basis(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        """`r² log r²` for the distance r to each point; then 1, x and y."""
        squares = [tf.square(x - across) + tf.square(y - down) for across, down in self.points()]
        return tf.stack([*(tf.math.xlogy(square, square) for square in squares), tf.ones_like(x), x, y])

    def weights(self, moved: tf.Tensor) -> tf.Tensor:
        at = np.array(self.points())
        square = ((at[:, None] - at[None]) ** 2).sum(-1)
        bends = square * np.log(np.where(square > 0, square, 1.0))
        plane = np.concatenate([np.ones((len(at), 1)), at], 1)
        system = np.block([[bends, plane], [plane.T, np.zeros((3, 3))]])
        solution = np.linalg.inv(system)[:, : len(at)]
        return tf.linalg.matmul(moved, tf.constant(solution.T)[None])
