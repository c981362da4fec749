"""Iterators over a pipeline that behave as those of Keras' `ImageDataGenerator`. Importing this imports TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pipegen
from pipegen.backend.derived import DerivedDataset
from pipegen.compat.functions import with_function
from pipegen.compat.saving import Saving
from pipegen.compat.specs import UNLABELLED
from pipegen.compat.whitening import with_matrix

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf

    from pipegen.compat.arguments import Arguments
    from pipegen.compat.frames import Frame

    Array = np.ndarray[Any, Any]


class BatchIterator(DerivedDataset):
    """Batches of a pipeline as NumPy arrays, without an end.

    It is a dataset by type, since Keras' `fit` takes no other iterable that knows its length and starts anew; `len` is the number of
    batches in an epoch. `iter(it)`, a `for` loop and each epoch of `fit` begin with the first batch of the epoch that has not been handed
    over to its end; `next(it)` goes on from batch to batch and from epoch to epoch, until `reset`.

    Attributes:
        pipeline: The `pipegen.Pipeline` that it walks.
        dataset: The same batches as a `tf.data.Dataset` of one epoch a pass, which is the quickest for `fit`.
        image_data_generator: The generator.
        n: How many images there are.
        samples: The same.
        batch_size: Images in a batch.
        shuffle: As it was given; the validation subset is never shuffled.
        seed: As it was given.
        batch_index: Which batch of the epoch `next` gives next.
        total_batches_seen: How many batches `next` has given.
        image_shape: The shape of an image.
        data_format: Where its channels stand.
        dtype: The dtype of images.
        subset: As it was given, as are `save_to_dir`, `save_prefix` and `save_format`.
    """

    _numbered = False
    """Whether the pipeline gives images with their rows."""

    def __init__(
        self,
        generator: Arguments,
        pipe: pipegen.Pipeline,
        split: str,
        *,
        shuffle: bool,
        seed: int | None,
        subset: str | None,
        saves: tuple[str | None, str, str] = (None, "", "png"),
    ) -> None:
        self.pipeline = pipe
        self.image_data_generator = generator
        self.batch_size = pipe.spec.model.batch.size
        self.n = self.samples = pipe.num_examples(split)
        self.seed = seed
        self.subset = subset
        self.data_format = generator.data_format
        self.dtype = generator.dtype
        self.batch_index = self.total_batches_seen = 0
        self._split = split
        self._walk: Iterator[Any] | None = None
        self._ahead: tuple[int, int, Iterator[Any]] | None = None
        self._pass = pipe[split]
        self.save_to_dir, self.save_prefix, self.save_format = saves
        self._saving = None if saves[0] is None else Saving(saves[0], *saves[1:], self.data_format)
        saved = self._pass if self._saving is None else self._saving.during(self._pass, rows=self._numbered)
        self.dataset: tf.data.Dataset = self._complete(saved)
        own = self.dataset is not self._pass
        super().__init__(self.dataset if own else self._pass._pipegen_plain, self._pass._pipegen_translate, self._pass.cardinality())
        self.shuffle = shuffle  # Keras' attribute, in the place of the dataset's method
        spec = self.dataset.element_spec
        self.image_shape = tuple(_first(spec).shape[1:])

    def _complete(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """What `fit` gets, from what the pipeline gives."""
        return batches

    def _arrays(self, batch: Any) -> Any:
        """What `next` gives, from what the pipeline gives as arrays."""
        raise NotImplementedError

    def _pipegen_source(self) -> tf.data.Dataset:
        return self.dataset._pipegen_source()

    def __iter__(self) -> Iterator[Any]:
        import tensorflow as tf

        if not tf.executing_eagerly():
            return super().__iter__()
        return self._endless()

    def _endless(self) -> Iterator[Any]:
        while True:
            for batch in self._pass:
                yield self._handed_over(batch)

    def __next__(self) -> Any:
        if self._walk is None:
            self._walk = self._endless()
        batch = next(self._walk)
        self.batch_index = (self.batch_index + 1) % len(self)
        self.total_batches_seen += 1
        return batch

    def next(self) -> Any:
        """The next batch; the same as `next(it)`."""
        return next(self)

    def __getitem__(self, index: int) -> Any:
        """A batch of the current epoch. One after the other is quick; each jump starts anew.

        Raises:
            ValueError: For a batch that there is not.
        """
        if not 0 <= index < len(self):
            raise ValueError(f"there is no batch {index}: an epoch has {len(self)}, counted from 0")
        epoch = self._epoch()
        if self._ahead is None or self._ahead[:2] != (epoch, index):
            self._ahead = (epoch, index, iter(self.pipeline.dataset(self._split, epoch=epoch, step=index)))
        walk = self._ahead[2]
        batch = next(walk)
        self._ahead = (epoch, index + 1, walk)
        return self._handed_over(batch)

    def _handed_over(self, batch: Any) -> Any:
        arrays = _numpy(batch)
        if self._saving is not None:
            self._saving.write(*(arrays if self._numbered else [_first(arrays)]))
        return self._arrays(arrays)

    def _epoch(self) -> int:
        """The epoch that stands open."""
        return int(self.pipeline._engine.train_progress().position()[0]) if self._split == "train" else 0

    def reset(self) -> None:
        """Let `next` begin the epoch that stands open again."""
        self._walk = self._ahead = None
        self.batch_index = 0

    def on_epoch_end(self) -> None:
        """Go to the next epoch: another order, other draws."""
        if self._split == "train":
            self.pipeline._seek(self._epoch() + 1, 0)
        self.reset()


class NumpyArrayIterator(BatchIterator):
    """Batches from arrays; made by `ImageDataGenerator.flow`.

    Attributes:
        x: The images of the subset, channels last.
        y: Their targets, or `None`.
        sample_weight: Their weights, or `None`.
        x_misc: The arrays that go along.
    """

    _numbered = True

    def __init__(
        self,
        generator: Arguments,
        spec: Mapping[str, Any],
        images: Array,
        beside: Mapping[str, Array],
        misc: list[Array],
        **settings: Any,
    ) -> None:
        import numpy as np

        self.x, self.x_misc = images, misc
        self.y, self.sample_weight = beside.get("y"), beside.get("sample_weight")
        pipe = pipegen.build(with_function(generator, with_matrix(generator, spec)), data={"image": images, "row": np.arange(len(images))})
        super().__init__(generator, pipe, "train", **settings)

    def _beside(self) -> list[Array]:
        """The arrays whose rows join the images, those of `x` first."""
        return [*self.x_misc, *(a for a in (self.y, self.sample_weight) if a is not None)]

    def _complete(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        import tensorflow as tf

        tables = [tf.constant(a) for a in self._beside()]
        return batches.map(lambda images, rows: self._packed(images, [tf.gather(t, rows) for t in tables]))

    def _arrays(self, batch: Any) -> Any:
        images, rows = batch
        return self._packed(images, [a[rows] for a in self._beside()], listed=True)

    def _packed(self, images: Any, found: list[Any], *, listed: bool = False) -> Any:
        """`x`, `(x, y)` or `(x, y, sample_weight)`; several inputs as a list, for `tf.data`, which would stack that, as a tuple."""
        count = len(self.x_misc)
        inputs = [images, *found[:count]]
        x: Any = images if count == 0 else inputs if listed else tuple(inputs)
        return (x, *found[count:]) if len(found) > count else x


class DirectoryIterator(BatchIterator):
    """Batches from a folder; made by `ImageDataGenerator.flow_from_directory`.

    Attributes:
        directory: The folder.
        class_indices: The index of each class, by its name.
        num_classes: How many classes there are.
        classes: The class index of each file of the subset, int32, in the order of `filenames`.
        filenames: The files of the subset, relative to the folder, in stored order: that of batches where nothing is shuffled.
        filepaths: Their paths.
        class_mode: As it was given, as are `target_size`, `color_mode`, `interpolation`, `keep_aspect_ratio` and `follow_links`.
    """

    directory: str
    class_mode: str | None
    target_size: tuple[int, int]
    color_mode: str
    interpolation: str
    keep_aspect_ratio: bool
    follow_links: bool

    def __init__(self, generator: Arguments, spec: Mapping[str, Any], split: str, settings: Mapping[str, Any], **common: Any) -> None:
        import numpy as np

        for name, value in settings.items():
            setattr(self, name, value)
        pipe = pipegen.build(with_function(generator, with_matrix(generator, spec)))
        super().__init__(generator, pipe, split, **common)
        self.filenames = [os.path.relpath(path, self.directory) for path in pipe.files(split)]
        labels = pipe.labels(split)
        names = UNLABELLED if labels is None else pipe.class_names
        self.class_indices = {name: i for i, name in enumerate(names)}
        self.num_classes = len(names)
        self.classes: Array = np.zeros(self.n, np.int32) if labels is None else labels.astype(np.int32)

    @property
    def labels(self) -> Array:
        """The same as `classes`."""
        return self.classes

    @property
    def filepaths(self) -> list[str]:
        """The paths of the files of the subset."""
        return [os.path.join(self.directory, name) for name in self.filenames]

    def _arrays(self, batch: Any) -> Any:
        if self.class_mode is None:
            return batch
        images, y = batch
        if self.class_mode in ("categorical", "input"):
            return images, y
        return images, y.reshape(-1).astype(images.dtype)


class DataFrameIterator(BatchIterator):
    """Batches of files that a table names; made by `ImageDataGenerator.flow_from_dataframe`.

    Attributes:
        directory: The folder that paths are relative to, or `None`.
        filenames: The files of the subset, as the table has them, in its order.
        class_indices: The index of each class, by its name; only where there are classes, as are the next two.
        num_classes: How many classes there are.
        classes: The class index of each row, or the list of them.
        sample_weight: The weights, or `None`.
        class_mode: As it was given, as are `target_size`, `color_mode` and `interpolation`.
    """

    _numbered = True

    directory: str | None
    class_mode: str | None
    target_size: tuple[int, int]
    color_mode: str
    interpolation: str

    def __init__(self, generator: Arguments, spec: Mapping[str, Any], frame: Frame, settings: Mapping[str, Any], **common: Any) -> None:
        for name, value in settings.items():
            setattr(self, name, value)
        self.filenames = frame.files
        self.sample_weight = frame.weights
        self._targets = frame.targets
        if frame.class_indices is not None:
            self.class_indices, self.num_classes, self.classes = frame.class_indices, len(frame.class_indices), frame.classes
        pipe = pipegen.build(
            with_function(generator, with_matrix(generator, spec)), data={"file": frame.files, "row": list(range(len(frame.files)))}
        )
        super().__init__(generator, pipe, "train", **common)

    @property
    def labels(self) -> Any:
        """The classes where there are any, else the targets."""
        return self.classes if self.class_mode in ("binary", "categorical", "sparse") else self._y(self._targets)

    @property
    def filepaths(self) -> list[str]:
        """The paths of the files of the subset."""
        return [os.path.join(self.directory or "", name) for name in self.filenames]

    def _y(self, targets: list[Any]) -> Any:
        return targets if self.class_mode == "multi_output" else targets[0] if targets else None

    def _complete(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        import tensorflow as tf

        weights = [] if self.sample_weight is None else [self.sample_weight]
        tables = [tf.constant(a) for a in (*self._targets, *weights)]

        def joined(images: tf.Tensor, rows: tf.Tensor) -> Any:
            found = [tf.gather(t, rows) for t in tables]
            y = self._y(found[: len(self._targets)])
            y = tuple(y) if isinstance(y, list) else images if self.class_mode == "input" else y
            return images if self.class_mode is None else (images, y, *found[len(self._targets) :])

        return batches.map(joined)

    def _arrays(self, batch: Any) -> Any:
        images, rows = batch
        if self.class_mode is None:
            return images
        y = images.copy() if self.class_mode == "input" else self._y([t[rows] for t in self._targets])
        return (images, y) if self.sample_weight is None else (images, y, self.sample_weight[rows])


def _numpy(batch: Any) -> Any:
    import tensorflow as tf

    return tf.nest.map_structure(lambda t: t.numpy(), batch)


def _first(spec: Any) -> Any:
    """The spec of the images in that of a batch."""
    while isinstance(spec, (tuple, list)):
        spec = spec[0]
    return spec
