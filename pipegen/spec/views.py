"""The section `views`: how many views of an example a model receives, and what steps each kind of them has of its own."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pipegen.ops.families.selections import InnerStep
from pipegen.ops.model import Model
from pipegen.ops.transform import When

Count = Annotated[int, Field(ge=1, le=64)]
ViewName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class View(Model):
    """Views of one kind: so many of them, and what is done to each behind the steps that all views have."""

    count: Count = 1
    """How many views of this kind an example has; each draws for itself. Several are numbered from 1: `image_local_1`, `image_local_2`."""
    transforms: tuple[InnerStep, ...] = ()
    """The steps of these views, behind those in `transforms`."""
    when: When = "train"
    """The splits that have these views: `train`, `eval` (every split but train), `all`, or a list of names. A split without any has one
    view of each example, the first, under the name of the feature."""


Views = Count | Annotated[dict[ViewName, View], Field(min_length=1)]
