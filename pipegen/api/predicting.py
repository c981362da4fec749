"""Offers what a `Pipeline` has for predictions: on new data, on several views of each example, and their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pipegen.untraced import untraced

if TYPE_CHECKING:
    import numpy as np

    from pipegen.api.predictions import Predictions
    from pipegen.backend.datasets.augmented import Augmented
    from pipegen.backend.datasets.engine import Engine
    from pipegen.phases.specs import CompiledSpec


@untraced
class Predicts:
    """Gives data to predict on, and puts predictions in order."""

    _compiled: CompiledSpec
    _engine: Engine

    if TYPE_CHECKING:

        def _require(self, split: str) -> None: ...

        def num_examples(self, split: str) -> int:
            """Counts the examples of a split."""

        def _order(self, split: str) -> np.ndarray[Any, Any] | None: ...

    def tta(self, split: str, views: Any, *, examples: int | None = None) -> Augmented:
        """Returns several views of each example of a split, for predictions that are merged: test-time augmentation.

        The rows of an example stand behind one another, and examples in source order. It is the same whenever it is iterated.

        Args:
            split: The split; not `train`, whose order is drawn.
            views: A number: so many draws of the random steps of training, those that mix examples left out. Or a list, or a map by name,
                of what is done in each view: nothing (`[]`), a step or a list of steps, as a spec has them, in front of the arithmetic at
                the end; or edits of the spec's steps by their ids: `{"replace": {"center_crop": {"corner_crop": {"size": 224}}}}`,
                likewise `remove`, `before`, `after` and `append`.
            examples: Examples of a batch, on all hosts; by default so many that their views are about as many rows as a batch has.

        Returns:
            Batches of inputs and targets for `model.predict` and `model.evaluate`. `merge` makes one row for each example of
            predictions.

        Raises:
            SpecError: For steps that are wrong. `ValueError` for views of different shapes, and for the split `train`.
        """
        from pipegen.api.tta import tta

        self._require(split)
        if split == "train":
            raise ValueError("test-time augmentation is of examples in source order, which those of `train` are not: name another split")
        return tta(self._compiled, split, views, examples)

    def merge(self, predictions: Any, views: Any, *, how: Literal["mean", "geometric", "max", "vote"] = "mean") -> Any:
        """Makes one row for each example of the predictions on its views.

        Args:
            predictions: What `predict` gave for a dataset of `tta`, or of `predict_on` with views: an array, or a list or map of arrays
                for a model with several outputs.
            views: Those, or how many there are.
            how: The `mean`; the `geometric` mean of probabilities, which sum to 1 again; the `max`; or `vote`, the share of the
                views that each class wins.
        """
        from pipegen.api.tta import merged

        return merged(predictions, views, how)

    def predict_on(self, wanted: Any, *, views: Any = None) -> Predictions:
        """Runs this spec's evaluation steps on unlabelled data.

        Args:
            wanted: A folder (every image in it and below), a file, a list of files, or images as an array `(n, height, width, 1 or 3)`
                or a list of arrays: uint8, or uint16 with `bits: 16`; with `channels: 4` also of 4 channels. With the source
                `arrays`: images as an array or a list, of the dtype and the range of values that it was built on.
            views: Several views of each, as for `tta`: then `merge` gives a row for each file.

        Returns:
            `.dataset` for `model.predict`, and `.files`, one for each row (with views for each merged row), in order.
        """
        from pipegen.api.predictions import predict_on

        return predict_on(self._compiled, wanted, views)

    def trim(self, split: str, predictions: Any) -> Any:
        """Removes the rows that `remainder: pad` added: one row for each file remains.

        Args:
            split: The split that was predicted on.
            predictions: What `predict` gave: an array, or a list or map of arrays for a model with several outputs.
        """
        from pipegen.api.predictions import rows_kept

        count = self.num_examples(split)
        return rows_kept(predictions, count, None if self._order(split) is None else self._engine.executor(split).order)
