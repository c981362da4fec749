"""The command: `python -m benchmarks.resampling`. Other ways to resample than those that pipegen takes, timed beside them.

Two questions, each of one image of 500×375 pixels to 224×224, on one thread:

- Antialiased resizing: does anything give what TensorFlow's operation gives, in less time than weighing rows twice?
- A resize and a warp after it read the image twice. Is one gather from a batch of decoded canvases cheaper?

It prints processor time per image, and the ratio to what pipegen does. A way that gives other numbers says by how much.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read when TensorFlow is imported
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false"

import numpy as np
import tensorflow as tf
from rich.console import Console
from rich.table import Table

from pipegen.backend.kernels.warp import fixed_matrix, locate, read
from pipegen.ops.lowering.resizing import resize

if TYPE_CHECKING:
    from collections.abc import Callable

HEIGHT, WIDTH, SIDE, CANVAS, BATCH = 375, 500, 224, 512, 32
BLOCK = 16
"""Rows of a banded product that are computed together."""
_ROUNDS, _SECONDS = 7, 0.4

Array = np.ndarray[Any, Any]


def cost(function: Callable[[], Any], images: int) -> float:
    """Microseconds of processor time for an image: the least of several rounds, after one that is not counted."""
    function()
    best = float("inf")
    for _ in range(_ROUNDS):
        calls, began = 0, time.process_time()
        while time.process_time() - began < _SECONDS:
            function()
            calls += 1
        best = min(best, (time.process_time() - began) / (calls * images))
    return 1e6 * best


def triangle(size: int) -> Array:
    """The weights of an antialiased bilinear resize to `SIDE`, float32 `(SIDE, size)`."""
    scale = size / SIDE
    centres = (np.arange(SIDE) + 0.5) * scale - 0.5
    weights = np.maximum(0.0, 1.0 - np.abs(np.arange(size)[None] - centres[:, None]) / max(scale, 1.0))
    return (weights / weights.sum(1, keepdims=True)).astype(np.float32)


def gathered(image: tf.Tensor) -> tf.Tensor:
    """Rows, then columns: a sum of shifted rows, each weighted."""
    x = tf.cast(image, tf.float32)
    for axis in (0, 1):
        weights = triangle(int(image.shape[axis]))
        taps = int((weights > 0).sum(1).max())
        first = np.minimum(np.argmax(weights > 0, 1), weights.shape[1] - taps)
        shape = [-1, 1, 1] if axis == 0 else [1, -1, 1]
        x = tf.add_n([tf.gather(x, first + k, axis=axis) * weights[np.arange(SIDE), first + k].reshape(shape) for k in range(taps)])
    return x


def dense(image: tf.Tensor) -> tf.Tensor:
    """Two matrix products with all the weights, most of which are 0."""
    rows = tf.tensordot(tf.constant(triangle(HEIGHT)), tf.cast(image, tf.float32), [[1], [0]])
    return tf.einsum("ow,hwc->hoc", tf.constant(triangle(WIDTH)), rows)


def banded(image: tf.Tensor) -> tf.Tensor:
    """The same in blocks of rows, without most of the zeros."""

    def across(x: tf.Tensor, size: int) -> tf.Tensor:
        weights = triangle(size)
        first = np.argmax(weights > 0, 1)[::BLOCK]
        last = size - np.argmax(weights[:, ::-1] > 0, 1)[BLOCK - 1 :: BLOCK]
        length = int((last - first).max())
        first = np.minimum(first, size - length)
        bands = np.stack([weights[i * BLOCK : (i + 1) * BLOCK, s : s + length] for i, s in enumerate(first)])
        return tf.reshape(tf.matmul(tf.constant(bands), tf.stack([x[s : s + length] for s in first])), [SIDE, -1])

    rows = tf.reshape(across(tf.reshape(tf.cast(image, tf.float32), [HEIGHT, -1]), HEIGHT), [SIDE, WIDTH, 3])
    turned = across(tf.reshape(tf.transpose(rows, [1, 0, 2]), [WIDTH, -1]), WIDTH)
    return tf.transpose(tf.reshape(turned, [SIDE, SIDE, 3]), [1, 0, 2])


def sparse(image: tf.Tensor) -> tf.Tensor:
    """The same products with weights that are stored without their zeros."""

    def across(x: tf.Tensor, size: int) -> tf.Tensor:
        weights = triangle(size)
        at = np.argwhere(weights > 0)
        matrix = tf.sparse.SparseTensor(at, weights[tuple(at.T)], weights.shape)
        return tf.reshape(tf.sparse.sparse_dense_matmul(matrix, tf.reshape(x, [size, -1])), [SIDE, -1, 3])

    rows = across(tf.cast(image, tf.float32), HEIGHT)
    return tf.transpose(across(tf.transpose(rows, [1, 0, 2]), WIDTH), [1, 0, 2])


def antialiasing() -> list[tuple[str, float, str]]:
    """Name, cost, and how far the result is from TensorFlow's, of each way."""
    image = tf.constant(np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8))
    # Floats come of TensorFlow's operation, so that ours is given floats too.
    ways: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
        "antialiased, as pipegen does it": lambda x: resize(tf.cast(x, tf.float32), SIDE, SIDE, "bilinear", antialias=True),
        "as TensorFlow does it": lambda x: tf.image.resize(x, (SIDE, SIDE), antialias=True),
        "two passes of gathers": gathered,
        "two dense products": dense,
        "two banded products": banded,
        "two sparse products": sparse,
        "`method: area`": lambda x: tf.image.resize(x, (SIDE, SIDE), method="area"),
        "without antialias": lambda x: tf.image.resize(x, (SIDE, SIDE)),
    }
    wanted = next(iter(ways.values()))(image)
    found = []
    for name, way in ways.items():
        function = tf.function(way, autograph=False)
        apart = float(tf.reduce_max(tf.abs(function(image) - wanted)))
        found.append((name, cost(lambda f=function: f(image), 1), f"{apart:.2g} of 255"))
    return found


def merging() -> list[tuple[str, float, str]]:
    """Name and cost of each part of both ways, and of both as a whole."""
    rng = np.random.default_rng(0)
    images = [tf.constant(rng.integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)) for _ in range(BATCH)]
    turns = [(np.cos(a), np.sin(a)) for a in rng.uniform(-0.35, 0.35, BATCH)]
    turned = np.array([[[c, -s, 9.0], [s, c, -9.0], [0, 0, 1]] for c, s in turns])
    enlarged = np.diag([WIDTH / SIDE, HEIGHT / SIDE, 1.0]) @ turned

    def graph(function: Callable[..., Any], *, compiled: bool = False) -> Callable[..., Any]:
        return tf.function(function, autograph=False, jit_compile=compiled or None)

    def place(matrix: tf.Tensor, side: int) -> Any:
        return locate(matrix, canvas=(side, side), size=(SIDE, SIDE), fill="reflect", interpolation="bilinear", narrow=True)

    def four(images: tf.Tensor, first: tf.Tensor, fy: tf.Tensor, fx: tf.Tensor) -> tf.Tensor:
        """Bilinear from a batch whose margins are there already, so that none are added."""
        flat = tf.reshape(images, [BATCH, -1, 3])
        start = tf.reshape(first // (CANVAS + 1) * CANVAS + first % (CANVAS + 1), [BATCH, -1])
        down, across = (tf.reshape(tf.cast(f, tf.int32), [BATCH, -1, 1]) for f in (fy, fx))
        rows = []
        for row in (0, CANVAS):
            left, right = (tf.cast(tf.gather(flat, tf.minimum(start + row + c, CANVAS**2 - 1), batch_dims=1), tf.int32) for c in (0, 1))
            rows.append(left * (256 - across) + right * across)
        total = rows[0] * (256 - down) + rows[1] * down + (1 << 15)
        return tf.cast(tf.bitwise.right_shift(total, 16), tf.uint8)

    shrink = graph(lambda x: tf.cast(tf.round(tf.image.resize(x, (SIDE, SIDE))), tf.uint8))
    pad = graph(lambda x: tf.pad(x, [[0, CANVAS - HEIGHT], [0, CANVAS - WIDTH], [0, 0]]))
    stack = graph(lambda *rows: tf.stack(rows))
    both: list[tuple[str, float, str]] = []
    for name, prepare, warp, matrix, side in (
        ("resize, then warp", shrink, lambda x, *at: read(x, at, "reflect"), turned, SIDE),
        ("one gather from padded canvases", pad, four, enlarged, CANVAS),
    ):
        rows = [prepare(x) for x in images]
        where, warped = graph(partial(place, side=side), compiled=True), graph(warp, compiled=True)
        fixed = fixed_matrix(tf.constant(matrix), "bilinear")
        each = cost(partial(_all, prepare, images), BATCH)
        stacked = cost(partial(stack, *rows), BATCH)
        moved = cost(partial(where, fixed), BATCH) + cost(partial(warped, stack(*rows), *where(fixed)), BATCH)
        both.append((name, each + stacked + moved, f"{each:.0f} each image + {stacked:.0f} to stack them + {moved:.0f} to warp them"))
    return both


def _all(function: Callable[[Any], Any], values: list[Any]) -> list[Any]:
    return [function(value) for value in values]


def main() -> None:
    """Measure, and print two tables."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    for title, ways, note in (("antialiased resize", antialiasing(), "differs by"), ("resize and warp", merging(), "of which")):
        table = Table(title=f"{title}: µs of one core per image", title_justify="left")
        for heading in ("way", "µs", "ratio", note):
            table.add_column(heading, justify="left" if heading in ("way", note) else "right")
        for name, us, said in ways:
            table.add_row(name, f"{us:.0f}", f"{us / ways[0][1]:.2f}", said)
        Console().print(table)


if __name__ == "__main__":
    main()
