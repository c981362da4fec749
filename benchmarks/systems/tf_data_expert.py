"""`tf.data` as someone who knows it well writes it by hand: bytes as long as possible, one resampling, XLA for the tail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks import steps as s
from benchmarks.systems import expert_tail
from benchmarks.systems.base import cores
from benchmarks.systems.decoding import FAST_JPEG, decode_window
from benchmarks.systems.tf_data import CachingSystem, files

if TYPE_CHECKING:
    from collections.abc import Iterator

    import tensorflow as tf

    from benchmarks.data import Dataset
    from benchmarks.recipes import Recipe


class TfDataExpert(CachingSystem):
    """Decodes what is needed, keeps uint8 until the batch, and runs the tail of a batch in one XLA kernel."""

    name: ClassVar[str] = "tf.data expert"
    remark: ClassVar[str] = "fast decoding, uint8 until batched, XLA for the tail, order not deterministic"
    remarks: ClassVar = {
        s.Resize: "JPEGs decoded at 1/2 to 1/8 where that covers the output",
        s.RandomResizedCrop: "decodes the window alone; windows have 37 % of an image on average, where uniform areas have 43 %",
        s.Affine: "one ImageProjectiveTransformV3 a batch",
        s.CutMix: "partner: the next example of the batch",
    }
    lacks: ClassVar = {s.RandAugment: "TensorFlow has no RandAugment outside Keras' layer; by hand it is a library"}

    def batches(self, recipe: Recipe, data: Dataset) -> Iterator[tuple[Any, Any]]:
        import tensorflow as tf

        options = tf.data.Options()
        options.deterministic = False
        options.threading.private_threadpool_size = cores()
        options.threading.max_intra_op_parallelism = 1
        augment = expert_tail.augment(recipe, data.classes(recipe))
        batches = self._arrays(recipe, data) if recipe.data == "arrays" else self._images(recipe, data)
        return iter(batches.map(augment, num_parallel_calls=cores()).prefetch(2).with_options(options))

    def _arrays(self, recipe: Recipe, data: Dataset) -> tf.data.Dataset:
        """Indices are shuffled and batched, and images gathered by the batch."""
        import tensorflow as tf

        x, y = (tf.constant(part) for part in data.arrays)
        indices = tf.data.Dataset.range(data.num_arrays).shuffle(data.num_arrays).repeat().batch(recipe.batch, drop_remainder=True)
        return indices.map(lambda i: (tf.gather(x, i), tf.gather(y, i)), num_parallel_calls=cores())

    def _images(self, recipe: Recipe, data: Dataset) -> tf.data.Dataset:
        """Batches of uint8 images; where they are cached, the cache is full."""
        import tensorflow as tf

        photos = data.photos(recipe)

        def load(path: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            image = tf.image.resize(_decode(tf.io.read_file(path), recipe), [recipe.size, recipe.size])
            return tf.cast(tf.round(image), tf.uint8), label

        if recipe.cached:
            loaded = self.cached(recipe, lambda: files(photos).map(load, num_parallel_calls=tf.data.AUTOTUNE))
            images = loaded.shuffle(len(photos.files)).repeat()
        else:
            images = files(photos).shuffle(len(photos.files)).repeat().map(load, num_parallel_calls=tf.data.AUTOTUNE)
        return images.batch(recipe.batch, drop_remainder=True)


def _decode(contents: tf.Tensor, recipe: Recipe) -> tf.Tensor:
    """The pixels that the resize needs, and not many more."""
    import tensorflow as tf

    if recipe.data == "png":
        return tf.io.decode_png(contents, 3)
    crop = recipe.find(s.RandomResizedCrop)
    if crop is not None:
        return decode_window(contents, crop)
    shape = tf.io.extract_jpeg_shape(contents)
    fits = tf.minimum(shape[0], shape[1]) // recipe.size
    branch = tf.reduce_sum(tf.cast(fits >= [2, 4, 8], tf.int32))
    return tf.switch_case(branch, [lambda r=r: tf.io.decode_jpeg(contents, 3, ratio=r, **FAST_JPEG) for r in (1, 2, 4, 8)])
