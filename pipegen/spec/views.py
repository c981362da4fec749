"""The section `views`: how many views of an example a model receives, and what steps each kind of them has of its own."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipegen.ops.families.selections import InnerStep
from pipegen.ops.model import Model
from pipegen.ops.sampling import FeatureName
from pipegen.ops.transform import When

Count = Annotated[int, Field(ge=1, le=64)]
ViewName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class View(Model):
    """Views of one kind: so many of them, and what is done to each behind the steps that all views have."""

    count: Count = 1
    """How many views of this kind an example has; each draws for itself. Several are numbered from 1: `image_local_1`, `image_local_2`."""
    transforms: tuple[InnerStep, ...] = ()
    """The steps of these views, behind those in `transforms`."""
    of: FeatureName | Annotated[list[FeatureName], Field(min_length=1)] | None = None
    """The image that has these views, or several; by default all have. What is aligned with an image goes with it. An image that has no
    views is there once, under its own name, and goes through the steps of the first branch as on other splits."""
    when: When = "train"
    """The splits that have these views: `train`, `eval` (every split but train), `all`, or a list of names. A split without any has one
    view of each example, the first, under the name of the feature."""

    def images(self) -> tuple[str, ...] | None:
        """Returns the images that the branch names, in one order; `None` where it is of all."""
        return None if self.of is None else tuple(sorted({self.of} if isinstance(self.of, str) else {*self.of}))


Views = Count | Annotated[dict[ViewName, View], Field(min_length=1)]
