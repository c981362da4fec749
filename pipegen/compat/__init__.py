"""A drop-in for Keras' `ImageDataGenerator`, for its functions on arrays, and for `image_dataset_from_directory` and its kin.

    from pipegen.compat import ImageDataGenerator        # in place of tensorflow.keras.preprocessing.image

    generator = ImageDataGenerator(rescale=1 / 255, rotation_range=20, horizontal_flip=True, validation_split=0.2)
    train = generator.flow_from_directory("photos", target_size=(224, 224), subset="training")
    validation = generator.flow_from_directory("photos", target_size=(224, 224), subset="validation")
    model.fit(train, validation_data=validation, epochs=10)

The behaviour is the documented one. It differs from Keras' actual behaviour in these points:

- Shifts go in the direction of their names, and images that are not square turn about their centre. To reproduce results of Keras 2.9
  to 3, use `geometry="keras3"`.
- Brightness multiplies floats, so that images in 0..1 do not turn black (`geometry="keras3"`: through 8-bit numbers).
- A seed does not touch NumPy's global stream; `get_random_transform(shape, seed)` still draws the same numbers as Keras.
- `fit` computes statistics in float64, block by block, and augments before it rescales, as flows do.
- `standardize` computes samplewise statistics of each image of a batch, not of the batch.

A flow is compiled: it writes a spec (see `to_spec`), and its iterator reads from the pipeline that `pipegen.build` makes of it. Its draws
depend on the seed, the epoch and the image's place among the files or rows, not on NumPy's stream: two flows of one seed, over images and
over their masks, move alike. They have Keras' distributions, except for the points listed at `to_spec`. The `validation` subset is neither
augmented nor shuffled. `flow.dataset` is the `tf.data.Dataset`, and `flow.pipeline` the pipeline, with its `preview`, `class_weights`,
`explain` and `state`.

The iterators are classes with Keras' names and signatures, for `isinstance`, direct use and subclasses: `NumpyArrayIterator(x, y,
generator)`, `DirectoryIterator`, `DataFrameIterator`, and `Iterator`, their common base. A class derived from `Iterator` itself makes its
batches in Python, as in Keras.

Flows support any `preprocessing_function`, `zca_whitening` and featurewise statistics once they are fitted, files as `grayscale`, `rgb` or
`rgba`, and `save_to_dir`. As in Keras, statistics that are not fitted have no effect, with a warning: call `fit` before making flows. What
a spec cannot express raises `UnsupportedArgument`, which names the argument and an alternative: shifts by more than 64 single distances,
splines above order 1, the filters `hamming` and `box`, and in `to_spec` a function that cannot be imported from a module. The same error is
raised for methods of a subclass that a compiled flow would never call.

`fit` knows the length of an epoch, so leave `steps_per_epoch` out; with a smaller number, Keras 3 cuts every other epoch short.

`image_dataset_from_directory` and `audio_dataset_from_directory` read the files, labels, pixels and samples that Keras' utilities read;
their datasets have `spec()` and `pipeline`. `timeseries_dataset_from_array` cuts the windows that Keras' utility cuts, by one gather a
batch; its dataset has `pipeline`.

TensorFlow and NumPy are imported when a function is called, or an iterator's class is used. The geometric functions need SciPy:
`pip install 'pipegen[compat]'`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipegen.compat.checks import UnsupportedArgument
from pipegen.compat.frames import list_pictures, validate_filename
from pipegen.compat.generator import ImageDataGenerator
from pipegen.compat.images import array_to_img, img_to_array, load_img, save_img, smart_resize
from pipegen.compat.single_images import (
    apply_affine_transform,
    apply_brightness_shift,
    apply_channel_shift,
    flip_axis,
    random_brightness,
    random_channel_shift,
    random_rotation,
    random_shear,
    random_shift,
    random_zoom,
    transform_matrix_offset_center,
)

if TYPE_CHECKING:
    from pipegen.compat.base_iterator import Iterator
    from pipegen.compat.directory_dataset import DirectoryDataset, audio_dataset_from_directory, image_dataset_from_directory
    from pipegen.compat.iterators import DataFrameIterator, DirectoryIterator, NumpyArrayIterator
    from pipegen.compat.series_dataset import timeseries_dataset_from_array

__all__ = [
    "DataFrameIterator",
    "DirectoryDataset",
    "DirectoryIterator",
    "ImageDataGenerator",
    "Iterator",
    "NumpyArrayIterator",
    "UnsupportedArgument",
    "apply_affine_transform",
    "apply_brightness_shift",
    "apply_channel_shift",
    "array_to_img",
    "audio_dataset_from_directory",
    "flip_axis",
    "image_dataset_from_directory",
    "img_to_array",
    "list_pictures",
    "load_img",
    "random_brightness",
    "random_channel_shift",
    "random_rotation",
    "random_shear",
    "random_shift",
    "random_zoom",
    "save_img",
    "smart_resize",
    "timeseries_dataset_from_array",
    "transform_matrix_offset_center",
    "validate_filename",
]

_LATER = {
    "Iterator": "base_iterator",
    **dict.fromkeys(("DataFrameIterator", "DirectoryIterator", "NumpyArrayIterator"), "iterators"),
    **dict.fromkeys(("DirectoryDataset", "audio_dataset_from_directory", "image_dataset_from_directory"), "directory_dataset"),
    "timeseries_dataset_from_array": "series_dataset",
}
"""The modules that import TensorFlow."""
_MISSING = ("text_dataset_from_directory",)


if not TYPE_CHECKING:  # with it, a type checker would accept every name

    def __getattr__(name: str) -> Any:
        if name in _MISSING:
            raise ImportError(f"pipegen reads no text yet: import `{name}` from `keras.utils`")
        if name not in _LATER:
            raise AttributeError(f"module 'pipegen.compat' has no attribute {name!r}")
        import importlib

        value = getattr(importlib.import_module(f"pipegen.compat.{_LATER[name]}"), name)
        globals()[name] = value
        return value


def ours_or_keras(module: str, name: str) -> Any:
    """Finds a name of a module of Keras: that of pipegen if it has one, else Keras' own. Raises `AttributeError` as Keras does."""
    import importlib

    if name in (*__all__, *_MISSING):
        return getattr(importlib.import_module(__name__), name)
    if name.startswith("__"):  # the import system asks for some, and Keras need not be imported for that
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
