"""`DirectoryIterator`, over a folder. Importing this imports TensorFlow."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pipegen.compat.checks import UnsupportedArgument, warn
from pipegen.compat.functions import handing
from pipegen.compat.iterator import CompiledIterator
from pipegen.compat.specs import UNLABELLED, channels_of, seed_of
from pipegen.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import tensorflow as tf

    from pipegen.compat.images import Array
    from pipegen.compat.specs import Described


class DirectoryIterator(CompiledIterator):
    """Batches from a folder.

    Arguments and errors are those of `ImageDataGenerator.flow_from_directory`.

    Args:
        image_data_generator: The generator; `None` for one without arguments.
        data_format: The data format, in place of the generator's.
        dtype: The dtype, in place of the generator's.

    Attributes:
        directory: The folder.
        class_indices: The index of each class, by name.
        num_classes: The number of classes.
        classes: The class index of each file of the subset, int32, in the order of `filenames`.
        filenames: The files of the subset, relative to the folder, in stored order, which is that of batches without shuffling.
        filepaths: Their paths.
        class_mode: As given; likewise `target_size`, `color_mode`, `interpolation`, `keep_aspect_ratio` and `follow_links`.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        image_data_generator: Described | None,
        target_size: tuple[int, int] = (256, 256),
        color_mode: str = "rgb",
        classes: Sequence[str] | None = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int | None = None,
        data_format: str | None = None,
        save_to_dir: str | None = None,
        save_prefix: str = "",
        save_format: str = "png",
        follow_links: bool = False,
        subset: str | None = None,
        interpolation: str = "nearest",
        keep_aspect_ratio: bool = False,
        dtype: Any = None,
    ) -> None:
        asked = self._ask(image_data_generator, subset, data_format, dtype)
        self.directory = directory
        height, width = target_size
        self.target_size = (height, width)
        self.color_mode = color_mode
        self.class_mode = class_mode
        self.interpolation = interpolation
        self.keep_aspect_ratio = keep_aspect_ratio
        self.follow_links = follow_links
        spec = handing(asked).to_spec(
            directory,
            target_size=(int(height), int(width)),
            color_mode=color_mode,
            classes=classes,
            class_mode=class_mode,
            batch_size=batch_size,
            shuffle=shuffle,
            seed=seed_of(seed),
            follow_links=follow_links,
            interpolation=interpolation,
            keep_aspect_ratio=keep_aspect_ratio,
        )
        unlabelled = classes is not None and list(classes) == UNLABELLED
        if subset is None:
            spec.pop("splits", None)
        elif unlabelled:
            raise UnsupportedArgument("subset", "all images without classes are for prediction", "leave it out")
        split = "predict" if unlabelled else "validation" if subset == "validation" else "train"
        saves = (save_to_dir, save_prefix, save_format)
        walk: dict[str, Any] = {"split": split, "channels": channels_of(color_mode), "shuffle": shuffle, "seed": seed, "saves": saves}
        self._numbers = False
        try:
            self._walk_over(asked, spec, **walk)
        except SpecError as error:
            errors = [d for d in error.diagnostics if d.severity.value == "error"]
            if class_mode != "binary" or [d.code for d in errors] != ["PG218"]:
                raise
            self._numbers = True
            spec["output"]["encode"] = {"label": "int"}
            self._walk_over(asked, spec, **walk)
            number = len(self.pipeline.class_names)
            warn(f"`class_mode='binary'` returns the class indices, as in Keras, because there are {number} classes, not two; use 'sparse'")
        self._list()

    def _list(self) -> None:
        import numpy as np

        self.filenames = [os.path.relpath(path, self.directory) for path in self.pipeline.files(self._split)]
        labels = self.pipeline.labels(self._split)
        names = UNLABELLED if labels is None else self.pipeline.class_names
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

    def _complete(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        import tensorflow as tf

        return batches.map(lambda x, y: (x, tf.cast(y, x.dtype)[:, None])) if self._numbers else batches

    def _arrays(self, batch: Any) -> Any:
        if self.class_mode is None:
            return batch
        images, y = batch
        if self.class_mode == "input":
            return images, y
        return images, (y if self.class_mode == "categorical" else y.reshape(-1)).astype(images.dtype)
