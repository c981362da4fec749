"""Holds what tests of labels share: which label is meant, and whether there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipegen.errors import OpError
from pipegen.ops.kinds.registry import kind_of
from pipegen.ops.testing.base import DataTest, unknown_feature

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipegen.ops.testing.evidence import Known


class LabelTest(DataTest):
    """A test of how often the classes of a label occur."""

    feature: str | None = None
    """The label; by default the one that gives the data its classes. Of a label `with: boxes`, the boxes are counted."""

    def features(self) -> tuple[str, ...]:
        return (self.feature,) if self.feature is not None else ()

    def label(self, known: Known) -> str | None:
        """Returns the label that is meant; `None` where there is none."""
        if self.feature is not None:
            return self.feature
        main = known.source.class_feature()
        listed = known.source.infer().items()
        return main or next((name for each in ("example", "item") for name, t in listed if kind_of(t).counts == each), None)

    def problems(self, known: Known) -> Iterator[OpError]:
        name = self.label(known)
        if name is None:
            yield OpError("PG700", f"`{self.op}` counts classes, and the source has no labels", help="remove the test")
            return
        problem = unknown_feature(known, self.splits(known.splits), name)
        if problem is not None:
            yield problem
            return
        if not any(kind_of(t).counts for feature, t in known.source.infer().items() if feature == name):
            labels = [f"`{n}`" for n, t in known.source.infer().items() if kind_of(t).counts]
            help_ = f"the labels are {', '.join(labels)}" if labels else "the source has no labels: remove the test"
            yield OpError("PG700", f"`{self.op}` counts classes, and `{name}` is no label", field="feature", help=help_)
