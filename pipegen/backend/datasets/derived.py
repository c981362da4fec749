"""Datasets that are built on ours: errors keep naming files in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from pipegen.backend.datasets.iterators import TranslatingIterator
from pipegen.backend.datasets.sharing import Handed
from pipegen.diagnostics.foreign import member
from pipegen.untraced import untraced
from pipegen.waiting import Waiting

if TYPE_CHECKING:
    from pipegen.backend.datasets.pipeline_dataset import RepeatedDataset
    from pipegen.physical.position import Position

Translate = Callable[[Exception, "Position | None"], Exception]
"""From an error, and where its batch stands, if that is known, to the error that a user should see."""


@untraced
class Explains(tf.data.Dataset):
    """Explains the errors of what `fit` itself derives: it repeats on request, maps and prefetches for `class_weight`.

    Behind other transformations the error is TensorFlow's, and holds ours.
    """

    _pipegen_translate: Translate
    _pipegen_waiting: Waiting
    _pipegen_check: Callable[[], None]
    _pipegen_handed: Handed

    if not TYPE_CHECKING:  # a type checker that sees it takes every attribute for one that is there

        def __getattr__(self, name: str) -> Any:
            """Names what the pipeline has, where code asks its dataset for a member of another library's, such as `class_names`."""
            meant = "" if name.startswith("_") else member(name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{meant}", name=name, obj=self)

    def _pipegen_source(self) -> tf.data.Dataset:
        """Returns what to build on: of a length that is not asserted, since the first epoch after a resume is shorter."""
        raise NotImplementedError

    def repeat(self, *args: Any, **options: Any) -> DerivedDataset | RepeatedDataset:
        """As `tf.data.Dataset.repeat`; runs on through the epochs."""
        return DerivedDataset(self._pipegen_source().repeat(*args, **options), self)

    def map(self, *args: Any, **options: Any) -> DerivedDataset:
        """As `tf.data.Dataset.map`."""
        return DerivedDataset(self._pipegen_source().map(*args, **options), self, self.cardinality())

    def prefetch(self, *args: Any, **options: Any) -> DerivedDataset:
        """As `tf.data.Dataset.prefetch`."""
        return DerivedDataset(self._pipegen_source().prefetch(*args, **options), self, self.cardinality())

    def take(self, *args: Any, **options: Any) -> DerivedDataset:
        """As `tf.data.Dataset.take`."""
        length = super().take(*args, **options).cardinality()
        return DerivedDataset(self._pipegen_source().take(*args, **options), self, length)

    def skip(self, *args: Any, **options: Any) -> DerivedDataset:
        """As `tf.data.Dataset.skip`."""
        length = super().skip(*args, **options).cardinality()
        return DerivedDataset(self._pipegen_source().skip(*args, **options), self, length)


@untraced
class DerivedDataset(Explains):
    """A dataset built on one of ours: it runs as TensorFlow made it, and its errors are put in our words."""

    def __init__(self, inner: tf.data.Dataset, source: Explains, length: tf.Tensor | None = None) -> None:
        self._pipegen_inner = inner
        self._pipegen_length = inner.cardinality() if length is None else length
        self._pipegen_translate, self._pipegen_waiting = source._pipegen_translate, source._pipegen_waiting
        self._pipegen_check, self._pipegen_handed = source._pipegen_check, source._pipegen_handed
        super().__init__(inner._variant_tensor)

    @property
    def _variant_tensor(self) -> tf.Tensor:
        """Returns the tensor that derived datasets are built on."""
        self._pipegen_handed.check()
        return self._variant_tensor_attr

    def _inputs(self) -> list[tf.data.Dataset]:
        return [self._pipegen_inner]

    def _pipegen_source(self) -> tf.data.Dataset:
        return self._pipegen_inner

    def cardinality(self) -> tf.Tensor:
        """Elements from the first to the last, int64; negative when there is no end or it is not known."""
        return self._pipegen_length

    def __len__(self) -> int:
        length = int(self._pipegen_length)
        if length < 0:
            raise TypeError("this dataset has no length: it is repeated, or has no known end")
        return length

    @property
    def element_spec(self) -> Any:
        """The shapes and dtypes of an element."""
        return self._pipegen_inner.element_spec

    def __iter__(self) -> Iterator[Any]:
        if not tf.executing_eagerly():
            return super().__iter__()
        return _DerivedIterator(self)


class _DerivedIterator(TranslatingIterator):
    def __init__(self, dataset: DerivedDataset) -> None:
        super().__init__(dataset)
        dataset._pipegen_check()
        self._inner = iter(dataset._pipegen_inner)

    def _take(self) -> Any:
        return self._take_uncounted(self._inner)
