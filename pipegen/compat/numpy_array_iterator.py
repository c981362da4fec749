"""`NumpyArrayIterator`, over arrays. Importing this imports TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.compat.checks import warn
from pipegen.compat.iterator import CompiledIterator
from pipegen.compat.specs import rows_of, rows_spec, seed_of

if TYPE_CHECKING:
    import tensorflow as tf

    from pipegen.compat.images import Array
    from pipegen.compat.specs import Described


class NumpyArrayIterator(CompiledIterator):
    """Batches from arrays.

    Arguments and errors are those of `ImageDataGenerator.flow`.

    Args:
        image_data_generator: The generator; `None` for one without arguments.
        shuffle: Off by default, unlike in `flow`.
        data_format: The data format, in place of the generator's.
        dtype: The dtype, in place of the generator's.

    Attributes:
        x: The images of the subset, channels last.
        y: Their targets, or `None`.
        sample_weight: Their weights, or `None`.
        x_misc: The further inputs.
    """

    _numbered = True

    def __init__(
        self,
        x: Any,
        y: Any,
        image_data_generator: Described | None,
        batch_size: int = 32,
        shuffle: bool = False,
        sample_weight: Any = None,
        seed: int | None = None,
        data_format: str | None = None,
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        subset: str | None = None,
        ignore_class_split: bool = False,
        dtype: Any = None,
    ) -> None:
        import numpy as np

        asked = self._ask(image_data_generator, subset, data_format, dtype, shuffle, seed, (save_to_dir, save_prefix, save_format))
        images, misc = _images(x)
        _check_rows(len(images), misc, y, sample_weight)
        rows = rows_of(asked, subset, len(images))
        if subset is not None and y is not None and not ignore_class_split:
            _check_targets(np.asarray(y), rows)
        part = slice(rows.start, rows.stop)
        self.x = kept = _as_last(images[part], self.data_format)
        if not len(kept):
            raise ValueError(f"the subset {subset!r} of {len(images)} images is empty")
        self.x_misc = [array[part] for array in misc]
        self.y = None if y is None else np.asarray(y)[part]
        self.sample_weight = None if sample_weight is None else np.asarray(sample_weight)[part]
        batches = {"batch_size": batch_size, "shuffle": shuffle, "seed": seed_of(seed)}
        spec = rows_spec(asked, "arrays", {"kind": "image"}, len(kept), kept.shape[1:], batches, validates=subset == "validation")
        data = {"image": kept, "row": np.arange(len(kept))}
        self._walk_over(asked, spec, channels=kept.shape[-1], data=data)

    def _beside(self) -> list[Array]:
        """Lists the arrays whose rows belong to the images, those of `x` first."""
        return [*self.x_misc, *(a for a in (self.y, self.sample_weight) if a is not None)]

    def _complete(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        import tensorflow as tf

        tables = [tf.constant(a) for a in self._beside()]
        return batches.map(lambda images, rows: self._packed(images, [tf.gather(t, rows) for t in tables]))

    def _arrays(self, batch: Any) -> Any:
        images, rows = batch
        return self._packed(images, [a[rows] for a in self._beside()], listed=True)

    def _packed(self, images: Any, found: list[Any], *, listed: bool = False) -> Any:
        """Packs `x`, `(x, y)` or `(x, y, sample_weight)`; several inputs are a list, or a tuple for `tf.data`, which would stack a list."""
        count = len(self.x_misc)
        inputs = [images, *found[:count]]
        x: Any = images if count == 0 else inputs if listed else tuple(inputs)
        return (x, *found[count:]) if len(found) > count else x


def _images(x: Any) -> tuple[Array, list[Array]]:
    """Splits `x` into the images and the further inputs."""
    import numpy as np

    misc: list[Array] = []
    if isinstance(x, (tuple, list)):
        if len(x) != 2:
            message = f"`x` is an array, or a pair of images and further inputs, got {len(x)} items"
            raise ValueError(f"{message}; stack a list of images with `np.stack`")
        misc = [np.asarray(m) for m in (x[1] if isinstance(x[1], list) else [x[1]])]
        x = x[0]
    images = np.asarray(x)
    if images.ndim != 4:
        raise ValueError(f"images must be an array of 4 dimensions, got the shape {images.shape}")
    return images, misc


def _check_rows(count: int, misc: list[Array], y: Any, sample_weight: Any) -> None:
    """Checks that all arrays have a row for each image; the messages begin like Keras', which programs may match."""
    if sample_weight is not None and y is None:
        raise ValueError("`sample_weight` weighs the loss, which needs targets: pass `y`")
    beside = [
        *(("All of the arrays in `x`", "a further input", array) for array in misc),
        ("`x` (images tensor) and `y` (labels)", "`y`", y),
        ("`x` (images tensor) and `sample_weight`", "`sample_weight`", sample_weight),
    ]
    for which, name, array in beside:
        if array is not None and len(array) != count:
            raise ValueError(f"{which} must have one row for each image: there are {count} images, but {name} has {len(array)} rows")


def _check_targets(y: Array, rows: range) -> None:
    import numpy as np

    inside, outside = y[rows.start : rows.stop], np.concatenate([y[: rows.start], y[rows.stop :]])
    if not np.array_equal(np.unique(inside), np.unique(outside)):
        found = "Training and validation subsets have different number of classes after the split, or different classes"
        raise ValueError(f"{found}: the first rows are validation; shuffle the arrays first, or pass `ignore_class_split=True`")


def _as_last(images: Array, data_format: str) -> Array:
    """Moves the channels last, and casts to a dtype that pipegen reads; a view if possible."""
    import numpy as np

    if data_format == "channels_first":
        images = np.moveaxis(images, 1, -1)
    known = images.dtype.kind == "f" or images.dtype in (np.uint8, np.uint16)
    if known or images.dtype.kind not in "biuO":
        return images
    try:
        numbers = images.astype(np.float64) if images.dtype.kind == "O" else images
    except (TypeError, ValueError):
        return images  # reported with the other findings
    whole = images.dtype.kind != "O" or not (numbers % 1).any()
    bytes_do = whole and numbers.size > 0 and numbers.min() >= 0 and numbers.max() <= 255
    cast: Array = numbers.astype(np.uint8 if bytes_do else np.float32)
    warn(f"the images are {images.dtype}, and are cast to {cast.dtype}: pass `x.astype({str(cast.dtype)!r})` to avoid the copy")
    return cast
