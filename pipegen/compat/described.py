"""The spec that a generator and the arguments of a flow stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pipegen.compat.arguments import Arguments
from pipegen.compat.files import files_below
from pipegen.compat.specs import UNLABELLED, channels_of, reading_steps, sections, source_of, targets, write_spec
from pipegen.compat.steps import image_steps

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence


class Described(Arguments):
    """Writes the spec of a generator: what an iterator needs of one."""

    _generator: ClassVar[type[Described]]
    """`ImageDataGenerator`, which puts itself here: its flows make iterators, and an iterator without a generator makes one."""

    def to_spec(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        target_size: tuple[int, int] | None = None,
        color_mode: str = "rgb",
        classes: Sequence[str] | None = None,
        class_mode: str | None = "categorical",
        batch_size: int = 32,
        shuffle: bool = True,
        seed: int = 0,
        follow_links: bool = False,
        interpolation: str = "nearest",
        keep_aspect_ratio: bool = False,
        write: str | os.PathLike[str] | None = None,
    ) -> dict[str, Any]:
        """The spec that this generator and a flow's arguments stand for.

        It says what Keras documents, with these differences: validation data is not augmented; `zoom_range` draws the magnification
        uniformly, where Keras draws its reciprocal; shear slants, where Keras stretches the other side by 1/cos as well; a channel shift
        is clipped to the range of all images; brightness keeps fractions; whitening is fitted on the training split of the spec's data,
        whatever `fit` has seen, and adds `zca_epsilon` to variances.

        Featurewise statistics are those that `fit` found; before `fit`, the pipeline measures its training split.

        Args:
            directory: The folder with a sub-folder for each class, as for `flow_from_directory`. Without it the source is `arrays`,
                with an `image` and, for a mode with classes, a `label`, which come from `pipegen.build(spec, data=)`; with `input`
                and without a `validation_split` that is `data={"train": {"image": x}}`.
            target_size: (height, width); (256, 256) by default for a folder. For arrays it says how large they are, which shifts by
                pixels need.
            color_mode: `rgb`, `rgba` or `grayscale`.
            classes: The class folders in the order of their indices; `["."]` for images without classes.
            class_mode: `categorical`, `binary`, `sparse`, `input` or `None`.
            batch_size: Images in a batch; the last one may be smaller.
            shuffle: Whether training images are shuffled.
            seed: Keys the order and the augmentation.
            follow_links: Whether linked folders are entered.
            interpolation: `nearest`, `bilinear`, `bicubic` or `lanczos`.
            keep_aspect_ratio: Cut out the largest centred part of the target's proportions instead of distorting the picture.
            write: A file to write it to as YAML; the folder is then relative to that file.

        Returns:
            The sections, for `pipegen.build` or `pipegen.load`.

        Raises:
            UnsupportedArgument: For the first argument that no spec expresses; it names the argument and says what to do meanwhile.
        """
        source = source_of(directory, classes=classes, class_mode=class_mode, follow_links=follow_links, write=write)
        size, steps = target_size, []
        if directory is not None:
            size = target_size if target_size is not None else (256, 256)
            steps = reading_steps(size, color_mode, interpolation, keep_aspect_ratio, files_below(directory, links=follow_links))
        steps += image_steps(self, size, channels_of(color_mode), measured=True)
        if class_mode == "input" and directory is None and not self._validation_split:
            source = {"by_split": {"train": source}}  # without labels all would be for prediction
        spec = sections(self, source, steps, batch_size=batch_size, shuffle=shuffle, seed=seed)
        spec["output"] = {**spec["output"], **targets(class_mode, labelled=directory is None or list(classes or ()) != UNLABELLED)}
        if part := self._validation_split:
            spec["splits"] = {"parts": {"train": round(1 - part, 12), "validation": part}, "method": "keras"}
        if write is not None:
            write_spec(spec, write)
        return spec
